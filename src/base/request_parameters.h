/* SPDX-License-Identifier: Apache-2.0 */
/* request_parameters.h - the parameters of hunch_request in one table: how each is named and bounded wherever it is given. From it come
 * the flags with help, manual and completion, the settings of a chat, the keys of rows of prompts (tools/), the fields of the server's
 * protocols (server/), and the check of those of sampling (sample/sampling_check.c).
 *
 * To add one: its member of hunch_request, and a row. That is all of numbers (REAL, ABOVE, INT) and switches; other kinds are also read
 * by hand: lists in cli/tool_row_keys.c (list_take), they, LIMIT and INT64 in app/tool_open.c, all of them in the server
 * (serve_parameters_read, serve_request.c). */
#ifndef HN_REQUEST_PARAMETERS_H
#define HN_REQUEST_PARAMETERS_H

/* ROW(ID, MEMBER, KIND, LEAST, MOST,  KEY, SET,  SERVED, WHERE, NONE,  USUAL, OFF,  FLAG, COMMANDS, GROUP, VALUE, HELP)
 *   ID      the member of tool_options; of numbers of sampling also that of hunch_sampling
 *   MEMBER  of hunch_request
 *   KIND    as of flags (app/tool_flags.h): REAL, ABOVE (LEAST itself is too small), INT, LIMIT (-1: none), INT64, SWITCH, TEXT, CHOICE
 *           (its words are tool_ID_names, declared in app/tool_flags.h), TEXTS, INTS, BIASES
 *   KEY     of a row;  SET: in a chat;  NULL: it has none
 *   SERVED  the field of OpenAI's endpoints, as vLLM and llama.cpp name it; NULL: none
 *   WHERE   OPTIONS: every protocol has it by this name, Ollama's in its options; BODY: every protocol, in the body;
 *           LISTED: other protocols have it by names of their own, or not at all (theirs are in the lists of serve_PROTOCOL.c)
 *   NONE    a number that the server's clients send for "off", which is 0 here; 0: there is no such
 *   USUAL   what 0 in the member stands for, if that is not 0
 *   OFF     what messages say of the value that switches a number of sampling off
 *   FLAG, COMMANDS, GROUP, VALUE, HELP  as in app/tool_flags.c, whose words these are */
#define HN_SAMPLING_NUMBERS(ROW)                                                                                                         \
    ROW(temperature, sampling.temperature, REAL, 0, 1000, "temperature", "temperature", "temperature", OPTIONS, 0, 0, "0: greedy",      \
        "--temperature", SAMPLED, SAMPLING | TOOL_BASIC, "T", "0 is greedy; default: the model's, else 0")                              \
    ROW(top_k, sampling.top_k, INT, 0, INT_MAX, "top_k", "top_k", "top_k", OPTIONS, -1, 0, "0: off",                                    \
        "--top-k", SAMPLED, SAMPLING, "K", "keep the K likeliest tokens; 0 is off")                                                     \
    ROW(top_p, sampling.top_p, ABOVE, 0, 1, "top_p", "top_p", "top_p", OPTIONS, 0, 0, "1: off",                                         \
        "--top-p", SAMPLED, SAMPLING, "P", "keep the likeliest tokens that hold P; 1 is off")                                           \
    ROW(min_p, sampling.min_p, REAL, 0, 1, "min_p", "min_p", "min_p", OPTIONS, 0, 0, "0: off",                                          \
        "--min-p", SAMPLED, SAMPLING, "P", "drop tokens below P times the likeliest; 0 is off")                                         \
    ROW(top_n_sigma, sampling.top_n_sigma, REAL, 0, 1000, "top_n_sigma", "top_n_sigma", "top_n_sigma", OPTIONS, 0, 0, "0: off",         \
        "--top-n-sigma", SAMPLED, SAMPLING, "S", "keep logits within S standard deviations of the largest; 0 is off")                   \
    ROW(typical_p, sampling.typical_p, REAL, 0, 1, "typical_p", "typical", "typical_p", OPTIONS, 0, 0, "0 or 1: off",                   \
        "--typical", SAMPLED, SAMPLING, "P", "keep the tokens of the most typical information that hold P; 0 and 1 are off")            \
    ROW(xtc_probability, sampling.xtc_probability, REAL, 0, 1, "xtc_probability", "xtc_probability", "xtc_probability", OPTIONS, 0, 0,  \
        "0: off", "--xtc-probability", SAMPLED, SAMPLING, "P",                                                                          \
        "with this probability drop all tokens of --xtc-threshold but the last; 0 is off")                                              \
    ROW(xtc_threshold, sampling.xtc_threshold, REAL, 0, 0.5, "xtc_threshold", "xtc_threshold", "xtc_threshold", OPTIONS, 0, 0.1,        \
        "a probability that two tokens can have", "--xtc-threshold", SAMPLED, SAMPLING, "P",                                            \
        "probability from which XTC drops, default 0.1")                                                                                \
    ROW(repetition_penalty, sampling.repetition_penalty, REAL, 0, 100, "repetition_penalty", "repetition_penalty",                      \
        "repetition_penalty", OPTIONS, 0, 0, "0 or 1: off", "--repetition-penalty", SAMPLED, PENALTIES, "R",                            \
        "divides logits of tokens that prompt or answer hold; 0 and 1 are off")                                                         \
    ROW(presence_penalty, sampling.presence_penalty, REAL, -2, 2, "presence_penalty", "presence_penalty", "presence_penalty", OPTIONS,  \
        0, 0, "0: off", "--presence-penalty", SAMPLED, PENALTIES, "X", "subtracted once from tokens of the answer; 0 is off")           \
    ROW(frequency_penalty, sampling.frequency_penalty, REAL, -2, 2, "frequency_penalty", "frequency_penalty", "frequency_penalty",      \
        OPTIONS, 0, 0, "0: off", "--frequency-penalty", SAMPLED, PENALTIES, "X",                                                        \
        "subtracted as often as the answer holds the token; 0 is off")                                                                  \
    ROW(dry_multiplier, sampling.dry_multiplier, REAL, 0, 1000, "dry_multiplier", "dry_multiplier", "dry_multiplier", OPTIONS, 0, 0,    \
        "0: off", "--dry-multiplier", SAMPLED, PENALTIES, "X", "penalty of repeating a sequence (DRY); 0 is off")                       \
    ROW(dry_base, sampling.dry_base, REAL, 1, 100, "dry_base", "dry_base", "dry_base", OPTIONS, 0, 1.75, "0: 1.75",                     \
        "--dry-base", SAMPLED, PENALTIES, "X", "grows the DRY penalty a token, default 1.75")                                           \
    ROW(dry_allowed_length, sampling.dry_allowed_length, INT, 1, 1000, "dry_allowed_length", "dry_allowed_length",                      \
        "dry_allowed_length", OPTIONS, 0, 2, "0: 2", "--dry-allowed-length", SAMPLED, PENALTIES, "N",                                   \
        "repetitions of N tokens cost nothing yet, default 2")                                                                          \
    ROW(dry_range, sampling.dry_range, INT, 0, INT_MAX, "dry_range", "dry_range", "dry_penalty_last_n", OPTIONS, -1, 0,                 \
        "0: the whole text", "--dry-range", SAMPLED, PENALTIES, "N", "tokens that DRY looks back; 0, the default: all")

#define HN_REQUEST_PARAMETERS(ROW)                                                                                                       \
    HN_SAMPLING_NUMBERS(ROW)                                                                                                            \
    ROW(breakers, sampling.dry_breakers, TEXTS, 0, 0, NULL, NULL, "dry_sequence_breakers", OPTIONS, 0, 0, NULL,                     \
        "--dry-breaker", SAMPLED, PENALTIES, "TEXT",                                                                                    \
        "tokens that hold TEXT end a repetition (repeatable); default: newline, colon, quote, asterisk")                                \
    ROW(biases, sampling.bias, BIASES, 0, 0, NULL, NULL, "logit_bias", OPTIONS, 0, 0, NULL,                                               \
        "--logit-bias", SAMPLED, PENALTIES, "ID=BIAS", "adds BIAS to a token's logit; -inf forbids it (repeatable)")                    \
    ROW(seed, sampling.seed, INT64, -1, 9223372036854775807.0, "seed", "seed", "seed", OPTIONS, 0, 0, NULL,                             \
        "--seed", SAMPLED, SAMPLING | TOOL_BASIC, "S", "of the random streams; -1, the default: random, and reported")                  \
    ROW(n, max_tokens, LIMIT, 1, INT_MAX, "max_tokens", "max_tokens", "max_tokens", LISTED, 0, 0, NULL,                                 \
        "-n", TOOL_RUN | TOOL_CHAT, ANSWER | TOOL_BASIC, "N",                                                                           \
        "at most N new tokens; -1: what the context holds (default: run 512, chat -1)")                                                 \
    ROW(stops, stop, TEXTS, 0, 0, "stop", "stop", "stop", LISTED, 0, 0, NULL,                                                            \
        "--stop", GENERATES, ANSWER, "TEXT", "end the text before TEXT (repeatable)")                                                   \
    ROW(stop_tokens, stop_tokens, INTS, 0, INT_MAX, "stop_token_ids", NULL, "stop_token_ids", OPTIONS, 0, 0, NULL,                      \
        "--stop-token", TOOL_RUN, ANSWER, "IDS",                                                                                        \
        "tokens that end the text as an end-of-sequence token does: ids, such as 13,198")                                               \
    ROW(ignore_eos, ignore_eos, SWITCH, 0, 0, NULL, "ignore_eos", "ignore_eos", OPTIONS, 0, 0, NULL,                                    \
        "--ignore-eos", GENERATES, ANSWER, NULL, "do not stop at the end-of-sequence token")                                            \
    ROW(loop_tokens, loop_tokens, INT, 0, INT_MAX, "loop_tokens", NULL, "loop_tokens", OPTIONS, 0, 0, NULL,                             \
        "--loop-tokens", TOOL_RUN, ANSWER, "N",                                                                                         \
        "end the text where its last N tokens stand in it for the fourth time; 0, the default: never")                                  \
    ROW(min_tokens, min_tokens, INT, 0, INT_MAX, "min_tokens", NULL, "min_tokens", OPTIONS, 0, 0, NULL,                                 \
        "--min-tokens", TOOL_RUN, ANSWER, "N", "the text does not end before it has N tokens; default 0")                               \
    ROW(thinking_budget, thinking_budget, INT, 1, INT_MAX, "thinking_budget", "thinking_budget", "thinking_token_budget", OPTIONS, 0, 0, \
        NULL, "--thinking-budget", GENERATES, ANSWER, "N",                                                                              \
        "after N tokens of thinking its end mark follows, as the template has it; default: as many as the model likes")                 \
    ROW(deadline, deadline_s, ABOVE, 0, 1e9, "deadline", NULL, "deadline", BODY, 0, 0, NULL,                                            \
        "--deadline", TOOL_RUN, ANSWER, "SECONDS",                                                                                      \
        "the answer ends with what it has so many seconds after it was asked for; default: never")                                      \
    ROW(prompt_only, prompt_only, SWITCH, 0, 0, "prompt_only", NULL, NULL, LISTED, 0, 0, NULL,                                          \
        "--prompt-only", TOOL_RUN, ANSWER, NULL, "read the prompt, and generate nothing: for --prompt-logprobs and --pooling")          \
    ROW(only_drafters, drafters, TEXTS, 0, 0, "drafters", NULL, "speculation.draft", LISTED, 0, 0, NULL,                                \
        "--drafters", TOOL_RUN, DRAFTING, "NAME",                                                                                       \
        "of the drafters of --draft NAME alone may propose, the others only read (repeatable), none: no one may; default all")          \
    ROW(draft_depth, draft_depth, INT, 1, HUNCH_MAX_DEPTH, "draft_depth", NULL, "speculation.depth", LISTED, 0, 0, NULL,                \
        "--draft-depth", TOOL_RUN, DRAFTING, "N", "at most N levels are drafted for a text in a round")                                 \
    ROW(draft_rows, draft_rows, INT, 1, HUNCH_MAX_ROWS, "draft_rows", NULL, "speculation.rows", LISTED, 0, 0, NULL,                     \
        "--draft-rows", TOOL_RUN, DRAFTING, "N", "at most N rows are drafted for a text in a round")                                    \
    ROW(prompt_logprobs, prompt_logprobs, SWITCH, 0, 0, "prompt_logprobs", NULL, NULL, LISTED, 0, 0, NULL,                              \
        "--prompt-logprobs", TOOL_RUN, OUTPUT, NULL,                                                                                    \
        "the target's log-probability of every token of the prompt, and with --logprobs=N the N likeliest in its place (with --json "   \
        "or --json-lines)")                                                                                                             \
    ROW(pooling, pooling, CHOICE, 0, 0, "pooling", NULL, NULL, LISTED, 0, 0, NULL,                                                      \
        "--pooling", TOOL_RUN, OUTPUT, "HOW",                                                                                           \
        "one vector for the prompt: none, the mean of its last states, or the last row's (with --json or --json-lines)")                \
    ROW(special_text, special_text, SWITCH, 0, 0, "special_text", NULL, NULL, LISTED, 0, 0, NULL,                                       \
        "--special-text", TOOL_RUN, OUTPUT, NULL, "the text has special tokens too, by their names, but not the one that ends it")      \
    ROW(priority, priority, INT, 0, 1000, "priority", NULL, NULL, LISTED, 0, 0, NULL,                                                   \
        "--priority", TOOL_RUN, ENGINE, "N",                                                                                            \
        "of rows that wait for a place (--parallel) those with larger numbers go first, but one place in eight is the oldest's; "       \
        "default 0")                                                                                                                    \
    ROW(salt, salt, TEXT, 0, 0, "cache_salt", NULL, "cache_salt", BODY, 0, 0, NULL,                                                     \
        "--salt", TOOL_RUN, ENGINE, "TEXT", "texts share rows of prefixes only with those of the same salt")

#endif
