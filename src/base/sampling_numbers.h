/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_numbers.h - the numbers of hunch_sampling in one table: how they are named and bounded wherever they are given. From it come
 * their check (sample/sampling_check.c), the flags with help, manual and completion, the settings of a chat, the keys of rows of prompts
 * (tools/), and the fields of the server's protocols.
 *
 * To add one: its field in hunch_sampling, and a row. */
#ifndef HN_SAMPLING_NUMBERS_H
#define HN_SAMPLING_NUMBERS_H

/* ROW(FIELD, NAME, FLAG, SERVED, KIND, LEAST, MOST, SERVED_LEAST, USUAL, OFF, GROUP, VALUE, HELP)
 *   FIELD   of hunch_sampling, and the key of a row
 *   NAME    in a chat;  FLAG of a command;  SERVED: the server's field, as vLLM and llama.cpp name it
 *   KIND    REAL, ABOVE (LEAST itself is too small) or INT
 *   SERVED_LEAST  the server's bound: -1 where its clients send that for "off", which is 0 here
 *   USUAL   what 0 in the field stands for, if that is not 0
 *   OFF     what messages say of the value that switches it off
 *   GROUP, VALUE, HELP  of the flag (tools/tool_flags.c) */
#define HN_SAMPLING_NUMBERS(ROW)                                                                                                      \
    ROW(temperature, "temperature", "--temperature", "temperature", REAL, 0, 1000, 0, 0, "0: greedy", SAMPLING | TOOL_BASIC, "T",      \
        "0 is greedy; default: the model's, else 0")                                                                                  \
    ROW(top_k, "top_k", "--top-k", "top_k", INT, 0, INT_MAX, -1, 0, "0: off", SAMPLING, "K", "keep the K likeliest tokens; 0 is off") \
    ROW(top_p, "top_p", "--top-p", "top_p", ABOVE, 0, 1, 0, 0, "1: off", SAMPLING, "P",                                               \
        "keep the likeliest tokens that hold P; 1 is off")                                                                            \
    ROW(min_p, "min_p", "--min-p", "min_p", REAL, 0, 1, 0, 0, "0: off", SAMPLING, "P",                                                \
        "drop tokens below P times the likeliest; 0 is off")                                                                          \
    ROW(top_n_sigma, "top_n_sigma", "--top-n-sigma", "top_n_sigma", REAL, 0, 1000, 0, 0, "0: off", SAMPLING, "S",                     \
        "keep logits within S standard deviations of the largest; 0 is off")                                                          \
    ROW(typical_p, "typical", "--typical", "typical_p", REAL, 0, 1, 0, 0, "0 or 1: off", SAMPLING, "P",                               \
        "keep the tokens of the most typical information that hold P; 0 and 1 are off")                                               \
    ROW(xtc_probability, "xtc_probability", "--xtc-probability", "xtc_probability", REAL, 0, 1, 0, 0, "0: off", SAMPLING, "P",        \
        "with this probability drop all tokens of --xtc-threshold but the last; 0 is off")                                            \
    ROW(xtc_threshold, "xtc_threshold", "--xtc-threshold", "xtc_threshold", REAL, 0, 0.5, 0, 0.1,                                     \
        "a probability that two tokens can have", SAMPLING, "P", "probability from which XTC drops, default 0.1")                     \
    ROW(repetition_penalty, "repetition_penalty", "--repetition-penalty", "repetition_penalty", REAL, 0, 100, 0, 0, "0 or 1: off",    \
        PENALTIES, "R", "divides logits of tokens that prompt or answer hold; 0 and 1 are off")                                       \
    ROW(presence_penalty, "presence_penalty", "--presence-penalty", "presence_penalty", REAL, -2, 2, -2, 0, "0: off", PENALTIES, "X", \
        "subtracted once from tokens of the answer; 0 is off")                                                                        \
    ROW(frequency_penalty, "frequency_penalty", "--frequency-penalty", "frequency_penalty", REAL, -2, 2, -2, 0, "0: off", PENALTIES,  \
        "X", "subtracted as often as the answer holds the token; 0 is off")                                                           \
    ROW(dry_multiplier, "dry_multiplier", "--dry-multiplier", "dry_multiplier", REAL, 0, 1000, 0, 0, "0: off", PENALTIES, "X",        \
        "penalty of repeating a sequence (DRY); 0 is off")                                                                            \
    ROW(dry_base, "dry_base", "--dry-base", "dry_base", REAL, 1, 100, 1, 1.75, "0: 1.75", PENALTIES, "X",                             \
        "grows the DRY penalty a token, default 1.75")                                                                                \
    ROW(dry_allowed_length, "dry_allowed_length", "--dry-allowed-length", "dry_allowed_length", INT, 1, 1000, 1, 2, "0: 2",           \
        PENALTIES, "N", "repetitions of N tokens cost nothing yet, default 2")                                                        \
    ROW(dry_range, "dry_range", "--dry-range", "dry_penalty_last_n", INT, 0, INT_MAX, -1, 0, "0: the whole text", PENALTIES, "N",     \
        "tokens that DRY looks back; 0, the default: all")

#endif
