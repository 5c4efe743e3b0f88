/* SPDX-License-Identifier: Apache-2.0 */
/* tool_flags.c - see tool_flags.h: the table of flags and its lookup. */
#include "app/tool_flags.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "app/tool_commands.h"
#include "app/tool_options.h"

enum { READ, ANSWER, TEXTS, HEAD, STUDENT, LEARNING, DRAFTING, LOSSY, SAMPLING, PENALTIES, MEASURING, SERVING, ENGINE, OUTPUT };
const char *const tool_groups[] = {[READ] = "What to read",
                                   [ANSWER] = "How much to answer",
                                   [TEXTS] = "Texts to learn from: data, and KIND with files",
                                   [HEAD] = "The head",
                                   [STUDENT] = "Draft models: model",
                                   [LEARNING] = "Training",
                                   [DRAFTING] = "Drafting: faster, the same text",
                                   [LOSSY] = "Lossy drafting: changes the text",
                                   [SAMPLING] = "Sampling",
                                   [PENALTIES] = "Penalties",
                                   [MEASURING] = "Measuring",
                                   [SERVING] = "Serving",
                                   [ENGINE] = "Engine",
                                   [OUTPUT] = "Output",
                                   NULL};

const char *const tool_type_names[] = {"q8_0", "q4_0", "bf16", "f32", NULL};
const char *const tool_kv_names[] = {"default", "bf16", "f16", "f32", "q8_0", NULL}; /* in the order of hunch_kv */
static const char *const precision_names[] = {"native", "f32", NULL};
const char *const tool_verify_names[] = {"default", "greedy", "match", "ratio", "block", "traversal", NULL}; /* of hunch_verify */
const char *const tool_pooling_names[] = {"none", "mean", "last", NULL}; /* of hunch_pooling */
static const char *const head_formats[] = {"gguf", "hf", NULL};
static const char *const divergences[] = {"forward", "reverse", "jsd", "tvd", NULL};
static const char *const centroid_starts[] = {"kmeans", "random", "frequency", NULL};
static const char *const color_names[] = {"auto", "always", "never", NULL};

enum {
    PROMPTED = TOOL_RUN | TOOL_COMPARE,
    TEXTED = TOOL_RUN | TOOL_COMPARE | TOOL_PLAN | TOOL_LOGITS | TOOL_SCORE | TOOL_DRAFT,
    GENERATES = TOOL_RUN | TOOL_COMPARE | TOOL_PLAN | TOOL_CHAT,
    SAMPLED = GENERATES | TOOL_DRAFT,
    ENGINED = TEXTED | TOOL_CHAT | TOOL_BENCH | TOOL_CHECK | TOOL_SERVE,
    ALL = ENGINED | TOOL_TOKENIZE | TOOL_INSPECT | TOOL_CONVERT,
    EVERY = ALL | TOOL_HELP | TOOL_MANUAL | TOOL_COMPLETION | TOOL_VERSION | TOOL_DEVICES | TOOL_TRAIN
};

/* The words of a parameter of requests: of a choice by its name, of other kinds none. */
#define WORDS_CHOICE(ID) tool_##ID##_names
#define WORDS_REAL(ID) NULL
#define WORDS_ABOVE(ID) NULL
#define WORDS_INT(ID) NULL
#define WORDS_LIMIT(ID) NULL
#define WORDS_INT64(ID) NULL
#define WORDS_SWITCH(ID) NULL
#define WORDS_TEXT(ID) NULL
#define WORDS_TEXTS(ID) NULL
#define WORDS_INTS(ID) NULL
#define WORDS_BIASES(ID) NULL

#define AT(field) offsetof(tool_options, field)
const tool_flag tool_flags[] = {
    {"--model", "-m", TOOL_TEXT, AT(model), ALL & ~TOOL_CONVERT, READ | TOOL_BASIC, 0, 0, NULL, "MODEL",
     "a GGUF file, a Hugging Face folder, or the name of a download (hunch help models)"},
    {"--model", "-m", TOOL_TEXT, AT(model), TOOL_CONVERT, READ | TOOL_BASIC, 0, 0, NULL, "FOLDER",
     "a Hugging Face folder, or the name of one that was downloaded (hunch help models); a draft head's folder or file "
     "of weights"},
    {"--target", NULL, TOOL_TEXT, AT(target), TOOL_CONVERT, READ | TOOL_BASIC, 0, 0, NULL, "MODEL",
     "of a draft head: the model that it drafts for; the head is checked against it; needed if the head's folder does "
     "not specify the layers that it reads"},
    {"--type", NULL, TOOL_CHOICE, AT(type), TOOL_CONVERT, OUTPUT | TOOL_BASIC, 0, 0, tool_type_names, "TYPE",
     "matrices of a draft head or a draft model as q8_0, q4_0, bf16 or f32, those whose rows are not whole blocks of 32 "
     "as bf16; default: as stored"},
    {"--prompt", "-p", TOOL_TEXT, AT(prompt), TEXTED | TOOL_TOKENIZE, READ | TOOL_BASIC, 0, 0, NULL, "TEXT",
     "the text; - reads standard input"},
    {"--file", "-f", TOOL_TEXT, AT(file), TEXTED | TOOL_TOKENIZE, READ | TOOL_BASIC, 0, 0, NULL, "FILE",
     "the text from a file (prompts: text or JSON lines)"},
    {"--prompt-tokens", "--tokens", TOOL_TEXT, AT(tokens_file), TEXTED, READ, 0, 0, NULL, "FILE",
     "token ids, a JSON array; no template, no BOS added"},
    {"--prompt-tokens", "--tokens", TOOL_TEXT, AT(tokens_file), TOOL_CHECK, READ, 0, 0, NULL, "FILE",
     "token ids, a JSON array: the text that the model continues instead of the built-in ones, as without a tokenizer"},
    {"--raw", NULL, TOOL_SWITCH, AT(raw), GENERATES, READ, 0, 0, NULL, NULL, "text without the chat template"},
    {"--chat-template-file", NULL, TOOL_TEXT, AT(chat_template_file), GENERATES | TOOL_SERVE, READ, 0, 0, NULL, "FILE",
     "a chat template instead of the model's own"},
    {"--template-arg", NULL, TOOL_TEXTS, AT(template_args), GENERATES, READ, 0, 0, NULL, "K=V",
     "a variable of the chat template, such as enable_thinking=false; V is JSON, else a text (repeatable)"},
    {"--tools", NULL, TOOL_TEXT, AT(chat_tools_file), GENERATES, READ, 0, 0, NULL, "FILE",
     "tools for the chat template: a JSON array, usually in OpenAI's format"},
    {"--tool-choice", NULL, TOOL_TEXT, AT(tool_choice), TOOL_RUN, READ, 0, 0, NULL, "NAME",
     "whether the answer calls a tool: auto, none, required, or the name of the one to call; calls are in --json"},
    {"--tool-format", NULL, TOOL_TEXT, AT(tool_format), TOOL_RUN | TOOL_CHAT | TOOL_SERVE, READ, 0, 0, NULL, "NAME",
     "the format of calls of tools in answers, such as hermes; else by the marks that the chat template has"},
    {"--system", NULL, TOOL_TEXT, AT(system), TOOL_RUN | TOOL_CHAT, READ | TOOL_BASIC, 0, 0, NULL, "TEXT",
     "the system message of the conversation"},
    {"--output", "-o", TOOL_TEXT, AT(output), TOOL_LOGITS | TOOL_CONVERT | TOOL_DRAFT, OUTPUT | TOOL_BASIC, 0, 0, NULL,
     "FILE", "the file to write; - is standard output"},
    {"--output", "-o", TOOL_TEXT, AT(output), TOOL_RUN, OUTPUT, 0, 0, NULL, "FILE",
     "write the objects of --json-lines to a file, each as soon as it is complete"},
    {"--resume", NULL, TOOL_SWITCH, AT(resume), TOOL_RUN, OUTPUT, 0, 0, NULL, NULL,
     "keep the answers that -o FILE has, and answer the other rows: those that failed, too"},
    {"--force", NULL, TOOL_SWITCH, AT(force), TOOL_CONVERT, OUTPUT | TOOL_BASIC, 0, 0, NULL, NULL,
     "replace an existing file"},
    {"--force", NULL, TOOL_SWITCH, AT(force), TOOL_RUN, OUTPUT, 0, 0, NULL, NULL,
     "let -o, and save= of a drafter, replace a file that holds something else"},
    {"--force", NULL, TOOL_SWITCH, AT(force), SAMPLED & ~TOOL_RUN, OUTPUT, 0, 0, NULL, NULL,
     "let save= of a drafter replace a file that holds something else"},
    {"-n", NULL, TOOL_INT, AT(n), TOOL_COMPARE | TOOL_PLAN, ANSWER | TOOL_BASIC, 1, INT_MAX, NULL, "N",
     "at most N new tokens, default 200"},
    {"--keep", NULL, TOOL_INT, AT(keep), TOOL_CHAT, ANSWER, 0, INT_MAX, NULL, "N",
     "the first N turns stay when the context is full and the oldest are left out; default 0"},
    {"--no-loop-guard", NULL, TOOL_SWITCH, AT(no_loop_guard), TOOL_CHAT, ANSWER, 0, 0, NULL, NULL,
     "do not end an answer that repeats the same 64 tokens a fourth time"},
    {"--json-schema", NULL, TOOL_TEXT, AT(json_schema_file), GENERATES, ANSWER, 0, 0, NULL, "FILE",
     "the answer is JSON that the schema of FILE validates"},
    {"--json-object", NULL, TOOL_SWITCH, AT(json_object), GENERATES, ANSWER, 0, 0, NULL, NULL, "the answer is a JSON object"},
    {"--regex", NULL, TOOL_TEXT, AT(regex), GENERATES, ANSWER, 0, 0, NULL, "REGEX",
     "the whole answer matches a regular expression"},
    {"--grammar", NULL, TOOL_TEXT, AT(grammar_file), GENERATES, ANSWER, 0, 0, NULL, "FILE",
     "the answer matches the rule root of a grammar in GBNF"},
    {"--draft", NULL, TOOL_TEXTS, AT(drafts), SAMPLED | TOOL_SERVE, DRAFTING | TOOL_BASIC, 0, 0, NULL, "SPEC",
     "the drafter, such as none, ngram or suffix,depth=8 (hunch help drafts); repeatable; A+B draft together; default "
     "auto"},
    {"--draft", NULL, TOOL_TEXTS, AT(drafts), TOOL_INSPECT, READ | TOOL_BASIC, 0, 0, NULL, "SPEC",
     "also what a text costs in this drafter's own memory (hunch help drafts); repeatable"},
    {"--schema", NULL, TOOL_SWITCH, AT(schema), TOOL_INSPECT, READ | TOOL_BASIC, 0, 0, NULL, NULL,
     "also the keys and tensors that files of its family have, by their names in a GGUF and in a folder"},
    {"--draft", NULL, TOOL_TEXTS, AT(drafts), TOOL_CHECK, READ | TOOL_BASIC, 0, 0, NULL, "SPEC",
     "the draft head: its folder or file, or a SPEC such as eagle3:PATH (hunch help drafts)"},
    {"--no-smoke", NULL, TOOL_SWITCH, AT(no_smoke), TOOL_CHECK, MEASURING | TOOL_BASIC, 0, 0, NULL, NULL,
     "only check that the head fits: no text is generated"},
    {"--verify", NULL, TOOL_CHOICE, AT(verify), GENERATES | TOOL_SERVE, DRAFTING, 0, 0, tool_verify_names, "RULE",
     "the lossless rule that accepts drafts: greedy, match, ratio, block or traversal; default: greedy at temperature "
     "0, else match"},
    {"--verify-exact", NULL, TOOL_SWITCH, AT(verify_exact), TOOL_RUN | TOOL_CHAT, DRAFTING, 0, 0, NULL, NULL,
     "decode the answer plainly beside, and compare tokens and logits bit for bit: exit code 1 at the first difference (greedy and match)"},
    {"--lossy-lenience", NULL, TOOL_ABOVE, AT(lossy_lenience), GENERATES, LOSSY, 0, 1, NULL, "L",
     "accept drafts with min(1, p/(L q))"},
    {"--lossy-typical", NULL, TOOL_PAIR, AT(lossy_typical), GENERATES, LOSSY, 0, 1, NULL, "EPS,ALPHA",
     "accept drafts of p > min(EPS, ALPHA e^-entropy)"},
    {"--lossy-top-m", NULL, TOOL_INT, AT(lossy_top_m), GENERATES, LOSSY, 1, INT_MAX, NULL, "M",
     "accept drafts among the M likeliest"},
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, USUAL, OFF, FLAG, COMMANDS, GROUP, VALUE, HELP) \
    {FLAG, NULL, TOOL_##KIND, AT(ID), COMMANDS, GROUP, LEAST, MOST, WORDS_##KIND(ID), VALUE, HELP},
    HN_REQUEST_PARAMETERS(ROW)
#undef ROW
    {"--logprobs", NULL, TOOL_COUNT, AT(logprobs), TOOL_RUN | TOOL_CHAT, OUTPUT, 0, HUNCH_MOST_TOP_LOGPROBS, NULL,
     "[=N]",
     "the target's log-probability of every token, and the N likeliest in its place (with --json or --json-lines)"},
    {"--why", NULL, TOOL_SWITCH, AT(why), TOOL_RUN, OUTPUT, 0, 0, NULL, NULL,
     "what the controller considered and chose, a line a round"},
    {"--why-html", NULL, TOOL_TEXT, AT(why_html), TOOL_RUN, OUTPUT, 0, 0, NULL, "FILE",
     "the tree of every round, who guessed, what was considered and the time it took, as one HTML file"},
    {"--trees", NULL, TOOL_SWITCH, AT(trees), TOOL_RUN | TOOL_COMPARE, OUTPUT, 0, 0, NULL, NULL,
     "the tree of every round and its accepted path (with --json or --json-lines; compare: --json)"},
    {"--samples", NULL, TOOL_INT, AT(samples), TOOL_RUN, ANSWER, 1, INT_MAX, NULL, "N",
     "N answers with seeds S, S+1, ... (with --json-lines)"},
    {"--cold", NULL, TOOL_SWITCH, AT(cold), TOOL_COMPARE, MEASURING, 0, 0, NULL, NULL,
     "empty what drafters learned before each prompt"},
    {"--repeat", NULL, TOOL_INT, AT(repeat), TOOL_COMPARE, MEASURING, 1, 100000, NULL, "N",
     "answer each prompt N times, with emptied stores each time"},
    {"--until-width", NULL, TOOL_ABOVE, AT(until_width), TOOL_COMPARE, MEASURING, 0, INT_MAX, NULL, "W",
     "repeat each prompt until its interval is within +-W, at most --repeat (32) times"},
    {"--record", NULL, TOOL_TEXT, AT(record), TOOL_COMPARE, OUTPUT, 0, 0, NULL, "FILE",
     "instead of the table: what every drafter proposes at every position of the plain text, to depth 8, as JSON lines"},
    {"--show", NULL, TOOL_SWITCH, AT(show), TOOL_COMPARE, OUTPUT | TOOL_BASIC, 0, 0, NULL, NULL,
     "show the answers side by side, coloured by the drafter that proposed each token"},
    {"--rows", NULL, TOOL_INTS, AT(rows), TOOL_BENCH, MEASURING | TOOL_BASIC, 1, 64, NULL, "LIST",
     "rows of a pass, default 1,2,3,4,6,8,12,16,24,32,48,64; with --profile 1,8"},
    {"--contexts", NULL, TOOL_INTS, AT(contexts), TOOL_BENCH, MEASURING | TOOL_BASIC, 0, INT_MAX, NULL, "LIST",
     "committed rows before the pass, default 256,2048,8192; with --profile 256,2048"},
    {"--machine", NULL, TOOL_SWITCH, AT(machine), TOOL_BENCH, MEASURING | TOOL_BASIC, 0, 0, NULL, NULL,
     "the machine alone, without a model: reading by threads, pages and size, arithmetic, barrier"},
    {"--batch", NULL, TOOL_INTS, AT(batches), TOOL_PLAN, MEASURING | TOOL_BASIC, 1, HUNCH_MOST_PARALLEL, NULL, "LIST",
     "texts at once, default 1,4,16; the recommendation is for the first"},
    {"--seconds", NULL, TOOL_ABOVE, AT(seconds), TOOL_PLAN, MEASURING, 0, 1e6, NULL, "T",
     "each method answers the prompts for at most T seconds, default 60"},
    {"--machine", NULL, TOOL_TEXT, AT(figures), TOOL_PLAN, MEASURING | TOOL_BASIC, 0, 0, NULL, "bandwidth=B,peak=P",
     "another machine, whose cores together read B bytes and multiply P int8 pairs a second, such as bandwidth=36e9,peak=470e9; MODEL "
     "is then a config.json, or --parameters"},
    {"--parameters", NULL, TOOL_TEXT, AT(parameters), TOOL_PLAN, MEASURING, 0, 0, NULL, "N",
     "with --machine: of a model of which no more is known, such as 8B"},
    {"--type", NULL, TOOL_TEXT, AT(figures_type), TOOL_PLAN, MEASURING, 0, 0, NULL, "TYPE",
     "with --machine: of its matrices, such as Q4_K, Q8_0 or BF16, the default"},
    {"--machines", NULL, TOOL_INT, AT(machines), TOOL_PLAN, MEASURING, 2, 64, NULL, "N",
     "up to so many machines that divide the model, 2, 4, ..: what speculation gives there"},
    {"--link", NULL, TOOL_TEXT, AT(link), TOOL_PLAN, MEASURING, 0, 0, NULL, "latency=S,bandwidth=B",
     "with --machines: the links between them, seconds and bytes a second, default latency=50e-6,bandwidth=3.1e9 (25 Gbit)"},
    {"--profile", NULL, TOOL_SWITCH, AT(profile), TOOL_BENCH, MEASURING, 0, 0, NULL, NULL,
     "where the time of a pass goes, by kind of operation"},
    {"--requests", NULL, TOOL_SWITCH, AT(requests), TOOL_BENCH, MEASURING, 0, 0, NULL, NULL,
     "measure the requests of standard input (text above)"},
    {"--quick", NULL, TOOL_SWITCH, AT(quick), TOOL_BENCH, MEASURING | TOOL_BASIC, 0, 0, NULL, NULL,
     "3 turns instead of 7, and fewer rows and contexts by default"},
    {"--depth", NULL, TOOL_INT, AT(depth), TOOL_DRAFT, DRAFTING | TOOL_BASIC, 1, HUNCH_MAX_DEPTH, NULL, "K",
     "levels to draft, default 8"},
    {"--accept", NULL, TOOL_INT, AT(accept), TOOL_DRAFT, DRAFTING, 0, HUNCH_MAX_DEPTH, NULL, "N",
     "commit N drafts of the chain, 0 or more, and show the second round"},
    {"--tree", NULL, TOOL_TEXT, AT(tree), TOOL_DRAFT, DRAFTING, 0, 0, NULL, "TOPK,TOTAL",
     "of a draft head EAGLE-2's tree: TOPK nodes a level go on, TOTAL are kept"},
    {"--template", NULL, TOOL_TEXT, AT(template_file), TOOL_TOKENIZE, READ | TOOL_BASIC, 0, 0, NULL, "FILE",
     "a chat template to render, instead of the model's"},
    {"--messages", NULL, TOOL_TEXT, AT(messages_file), TOOL_TOKENIZE, READ | TOOL_BASIC, 0, 0, NULL, "FILE",
     "variables of the template: a JSON object with \"messages\""},
    {"--text", NULL, TOOL_SWITCH, AT(text_only), TOOL_TOKENIZE, OUTPUT | TOOL_BASIC, 0, 0, NULL, NULL,
     "print the rendered text, not its ids (needs no model)"},
    {"--now", NULL, TOOL_TEXT, AT(now), TOOL_TOKENIZE, READ, 0, 0, NULL, "TIME",
     "the template's clock, \"YYYY-MM-DD HH:MM:SS\""},
    {"--parallel", NULL, TOOL_INT, AT(parallel), PROMPTED | TOOL_BENCH, ENGINE, 1, HUNCH_MOST_PARALLEL, NULL, "N",
     "sequences at once, at most 256; default 1"},
    {"--parallel", NULL, TOOL_INT, AT(parallel), TOOL_INSPECT, READ, 1, HUNCH_MOST_PARALLEL, NULL, "N",
     "with --draft: of so many texts at once; default 32"},
    {"--parallel", NULL, TOOL_INT, AT(parallel), TOOL_SERVE, ENGINE | TOOL_BASIC, 1, HUNCH_MOST_PARALLEL, NULL, "N",
     "texts at once, at most 256; default 32"},
    {"--memory", NULL, TOOL_TEXT, AT(memory), TOOL_SERVE, ENGINE | TOOL_BASIC, 0, 0, NULL, "SIZE",
     "of keys and values of all texts together, such as 6G or 500M; default: four fifths of what is free once the model "
     "is loaded, as far as that many whole contexts need it"},
    {"--kept-prefixes", NULL, TOOL_TEXT, AT(kept_prefixes), TOOL_SERVE, ENGINE, 0, 0, NULL, "SIZE",
     "of the keys and values of texts that have ended, for others that begin like them; 0: none; default: half of --memory"},
    {"--grammar-memory", NULL, TOOL_TEXT, AT(grammar_memory), TOOL_SERVE, ENGINE, 0, 0, NULL, "SIZE",
     "of the grammars of running and waiting texts, and of those that are kept for further requests; default 256M"},
    {"--host", NULL, TOOL_TEXT, AT(host), TOOL_SERVE, SERVING | TOOL_BASIC, 0, 0, NULL, "ADDRESS",
     "where it listens; default 127.0.0.1, this machine alone"},
    {"--port", NULL, TOOL_INT, AT(port), TOOL_SERVE, SERVING | TOOL_BASIC, 0, 65535, NULL, "N",
     "default 8080; 0: the system picks one, which the first line reports"},
    {"--api-key-file", NULL, TOOL_TEXT, AT(api_key_file), TOOL_SERVE, SERVING | TOOL_BASIC, 0, 0, NULL, "FILE",
     "keys, one a line, one of which each request needs, but for /health and /metrics"},
    {"--served-model-name", "--alias", TOOL_TEXTS, AT(served_names), TOOL_SERVE, SERVING, 0, 0, NULL, "NAME",
     "the model's id for clients; default: the last part of MODEL, without .gguf (repeatable: answers have the first)"},
    {"--queue", NULL, TOOL_INT, AT(queue), TOOL_SERVE, SERVING, 1, 100000, NULL, "N",
     "requests that may wait for a place; more are refused with status 429; default 256"},
    {"--stall", NULL, TOOL_INT, AT(stall), TOOL_SERVE, SERVING, 1, 3600, NULL, "SECONDS",
     "a client that neither reads nor sends for so long is dropped, and a request has to arrive within them; default 60"},
    {"--connections", NULL, TOOL_INT, AT(connections), TOOL_SERVE, SERVING, 1, 1000000, NULL, "N",
     "at once, as far as the limit of open files allows; default 16384"},
    {"--connections-per-address", NULL, TOOL_INT, AT(connections_per_address), TOOL_SERVE, SERVING, 0, 1000000, NULL, "N",
     "at once from one address, but for this machine and --proxy; 0: any number; default 1024"},
    {"--proxy", NULL, TOOL_TEXT, AT(proxy), TOOL_SERVE, SERVING, 0, 0, NULL, "ADDRESS",
     "of a proxy before the server: the log has the client that it names in X-Forwarded-For"},
    {"--max-body", NULL, TOOL_INT, AT(max_body), TOOL_SERVE, SERVING, 1, 256, NULL, "MB",
     "the largest body of a request; default 16"},
    {"--cors", NULL, TOOL_TEXTS, AT(cors), TOOL_SERVE, SERVING, 0, 0, NULL, "ORIGINS",
     "pages of these origins may call from browsers, such as https://chat.example.org,app://obsidian.md, null, or * for any; "
     "default: none but the server's own (repeatable)"},
    {"--host-name", NULL, TOOL_TEXTS, AT(host_names), TOOL_SERVE, SERVING, 0, 0, NULL, "NAME",
     "a name by which clients may reach a server that listens on this machine alone, beside localhost, this machine's own "
     "and those under .local and .internal (repeatable)"},
    {"--allow-anyone", NULL, TOOL_SWITCH, AT(allow_anyone), TOOL_SERVE, SERVING, 0, 0, NULL, NULL,
     "do not warn that the server listens to other machines and asks for no key"},
    {"--log-json", NULL, TOOL_SWITCH, AT(log_json), TOOL_SERVE, OUTPUT, 0, 0, NULL, NULL,
     "the log as JSON, one object a request"},
    {"--log-text", NULL, TOOL_SWITCH, AT(log_text), TOOL_SERVE, OUTPUT, 0, 0, NULL, NULL,
     "the log has prompts and answers, too, which it never has otherwise"},
    {"--threads", NULL, TOOL_INT, AT(threads), ENGINED | TOOL_TRAIN, ENGINE | TOOL_BASIC, 1, 256, NULL, "N",
     "threads of a pass; default: the cores this process may use"},
    {"--isa", NULL, TOOL_TEXT, AT(isa), ENGINED | TOOL_TRAIN, ENGINE, 0, 0, NULL, "LEVEL",
     "instruction level: ref, avx2, avx512, ... (hunch version lists them); default best"},
    {"--device", NULL, TOOL_TEXT, AT(device), ENGINED, ENGINE, 0, 0, NULL, "NAME",
     "cpu, vulkan or vulkan:N (a GPU of hunch devices), or auto: a GPU if there is one; default cpu"},
    {"--precision", NULL, TOOL_CHOICE, AT(precision), ENGINED, ENGINE, 0, 0, precision_names, "MODE",
     "native, or f32 as the published reference computes; default native"},
    {"--mapped", NULL, TOOL_SWITCH, AT(mapped), ENGINED, ENGINE, 0, 0, NULL, NULL,
     "leave the weights in the file: for models larger than memory; slower, the same bits"},
    {"--mapped-experts", NULL, TOOL_SWITCH, AT(mapped_experts), ENGINED, ENGINE, 0, 0, NULL, NULL,
     "leave experts alone in the file, the rest in memory"},
    {"--kv", NULL, TOOL_CHOICE, AT(kv), ENGINED & ~TOOL_CHECK, ENGINE, 0, 0, tool_kv_names, "TYPE",
     "type of keys and values in the cache: bf16, f16, f32 or q8_0; default bf16, with --precision f32 f32"},
    {"--context", NULL, TOOL_INT, AT(context), ENGINED & ~TOOL_CHECK, ENGINE | TOOL_BASIC, 1, INT_MAX, NULL, "ROWS",
     "rows a sequence may hold; default: the model's, at most 8192; of a window of score 2048; compare, bench, logits: "
     "what they need"},
    {"--chunk", NULL, TOOL_INT, AT(chunk), ENGINED & ~TOOL_CHECK, ENGINE, 1, INT_MAX, NULL, "N",
     "rows of prefill a pass, to 512; default 128, more where experts are many"},
    {"--max-pause", NULL, TOOL_INT, AT(max_pause), TOOL_RUN | TOOL_SERVE, ENGINE, 1, 3600000, NULL, "MS",
     "with --parallel: the longest pause between tokens that prompts may cause, which are read meanwhile; default: "
     "about two rounds, at most 100"},
    {"--state-memory", NULL, TOOL_INT, AT(state_memory), GENERATES | TOOL_SERVE, ENGINE, 1, INT_MAX, NULL, "MB",
     "of models with recurrent layers: memory for saved states that later texts can start from; default: 16 states"},
    {"--pool-rows", NULL, TOOL_INT, AT(pool_rows), GENERATES, ENGINE, 1, INT_MAX, NULL, "N",
     "cache rows of all sequences together, at least a context; default: a context for each that may run at once and "
     "one more, as far as there is memory"},
    {"--no-prefix-reuse", NULL, TOOL_SWITCH, AT(no_prefix_reuse), GENERATES | TOOL_SERVE, ENGINE, 0, 0, NULL, NULL,
     "compute every prompt from its first token"},
    {"--json", NULL, TOOL_SWITCH, AT(json),
     (ALL & ~TOOL_CHAT & ~TOOL_BENCH & ~TOOL_SERVE) | TOOL_VERSION | TOOL_DEVICES, OUTPUT | TOOL_BASIC, 0, 0,
     NULL, NULL, "JSON on standard output, everything else on standard error"},
    {"--json-lines", NULL, TOOL_SWITCH, AT(json_lines), TOOL_RUN | TOOL_CHAT | TOOL_TOKENIZE, OUTPUT | TOOL_BASIC, 0, 0,
     NULL, NULL, "one JSON object a line"},
    {"--json", NULL, TOOL_PLACE, AT(json_to), TOOL_BENCH, OUTPUT | TOOL_BASIC, 0, 0, NULL, "[=FILE]",
     "JSON on standard output instead of the table, or in FILE beside it"},
    {"--csv", NULL, TOOL_PLACE, AT(csv_to), TOOL_BENCH, OUTPUT, 0, 0, NULL, "[=FILE]",
     "comma-separated values, likewise"},
    {"--svg", NULL, TOOL_TEXT, AT(svg), TOOL_BENCH, OUTPUT, 0, 0, NULL, "FILE",
     "a plot of pass times by rows, and their limits"},
    {"--svg", NULL, TOOL_TEXT, AT(svg), TOOL_PLAN, OUTPUT, 0, 0, NULL, "FILE", "a plot of pass times by rows, and of the choice"},
    {"--color", NULL, TOOL_CHOICE, AT(color), ALL | TOOL_HELP | TOOL_TRAIN, OUTPUT, 0, 0, color_names, "WHEN",
     "auto, always or never; default auto, which honours NO_COLOR"},
    {"--quiet", "-q", TOOL_SWITCH, AT(quiet), ENGINED, OUTPUT | TOOL_BASIC, 0, 0, NULL, NULL,
     "only the answer and errors: no summary, no notes, no progress"},
    {"--no-history", NULL, TOOL_SWITCH, AT(no_history), TOOL_CHAT, OUTPUT, 0, 0, NULL, NULL,
     "do not save typed lines for later sessions (hunch help environment)"},
    {"--list", NULL, TOOL_SWITCH, AT(list), TOOL_MANUAL, OUTPUT | TOOL_BASIC, 0, 0, NULL, NULL,
     "the names of all pages"},
    {"--model", "-m", TOOL_TEXT, AT(model), TOOL_TRAIN, READ | TOOL_BASIC, 0, 0, NULL, "MODEL",
     "the model that drafts are for (hunch help models)"},
    {"--file", "-f", TOOL_TEXTS, AT(files), TOOL_TRAIN, READ | TOOL_BASIC, 0, 0, NULL, "FILE",
     "data: rows or texts; trie: texts, as words without a flag; KIND: a folder of data, or files, from which texts are "
     "generated first (repeatable)"},
    {"--self", NULL, TOOL_INT, AT(self), TOOL_TRAIN, TEXTS, 0, 1e8, NULL, "N",
     "N prompts generated by the model, in addition to the files'; default 0"},
    {"--leave-out", NULL, TOOL_TEXTS, AT(leave_out), TOOL_TRAIN, TEXTS, 0, 0, NULL, "FILE",
     "rows that share every fifth run of eight words with FILE are left out (repeatable)"},
    {"--temperature", NULL, TOOL_REALS, AT(temperatures), TOOL_TRAIN, TEXTS, 0, 10, NULL, "T",
     "of the answers; repeatable: all are answered at each; default 0 and 0.7"},
    {"--tokens", "-n", TOOL_INT, AT(n), TOOL_TRAIN, TEXTS, 1, 1e6, NULL, "N", "the most tokens of an answer; default 320"},
    {"--speaker", NULL, TOOL_TEXT, AT(speaker), TOOL_TRAIN, TEXTS, 0, 0, NULL, "MODEL",
     "a draft model that answers instead of the model, in its tokens, to be trained on its own texts"},
    {"--parallel", NULL, TOOL_INT, AT(parallel), TOOL_TRAIN, TEXTS, 1, 64, NULL, "N",
     "answers at once, of --on-policy, too; default 24"},
    {"--context", NULL, TOOL_INT, AT(context), TOOL_TRAIN, TEXTS, 64, 1e6, NULL, "ROWS",
     "rows of a text; default 2048, or the model's"},
    {"--vocab", NULL, TOOL_INT, AT(vocab), TOOL_TRAIN, HEAD | TOOL_BASIC, 1, 1e7, NULL, "N",
     "tokens that it drafts, or whose distribution it learns (eagle, mtp): the most frequent, and all special ones; default 8192"},
    {"--unroll", NULL, TOOL_INT, AT(unroll), TOOL_TRAIN, HEAD | TOOL_BASIC, 1, 16, NULL, "N",
     "drafts in a row that it learns; default 3, peagle and dart 5, dflash 7"},
    {"--taps", NULL, TOOL_TEXT, AT(taps), TOOL_TRAIN, HEAD, 0, 0, NULL, "LOW:MID:HIGH",
     "eagle3, peagle, dart, dflash: layers whose entering states it reads; default 2, half, all but 3"},
    {"--layers", NULL, TOOL_INT, AT(layers), TOOL_TRAIN, HEAD, 1, 64, NULL, "N",
     "peagle and dflash: layers (to 8; default 1, dflash 2); mtp: modules, as many as --unroll; model: kept layers, "
     "spread from the first to the last; default a quarter, with --init all"},
    {"--ffn", NULL, TOOL_INT, AT(width), TOOL_TRAIN, HEAD, 16, 1e6, NULL, "N",
     "width of its feed-forward layer; default the model's"},
    {"--cell", NULL, TOOL_SWITCH, AT(cell), TOOL_TRAIN, HEAD, 0, 0, NULL, NULL, "mlp: Arctic's form, with a cell"},
    {"--shift-label", NULL, TOOL_SWITCH, AT(shift_label), TOOL_TRAIN, HEAD, 0, 0, NULL, NULL, "domino: rows draft the token after theirs"},
    {"--pure-prefix", NULL, TOOL_INT, AT(pure_prefix), TOOL_TRAIN, HEAD, 0, 15, NULL, "N", "domino: first drafts without bias; default 0"},
    {"--centroids", NULL, TOOL_TEXT, AT(centroids), TOOL_TRAIN, HEAD, 0, 0, NULL, "C[:K]",
     "eagle3: its tokens are in C clusters of equal size, and a draft has logits of the K with the best centroids; default "
     "K an eighth of C, at most 32"},
    {"--centroid-start", NULL, TOOL_WORD, AT(centroid_start), TOOL_TRAIN, HEAD, 0, 0, centroid_starts, "NAME",
     "which tokens are in a cluster: kmeans (similar ones), random, or frequency; default kmeans"},
    {"--init", NULL, TOOL_TEXT, AT(init), TOOL_TRAIN, STUDENT, 0, 0, NULL, "MODEL",
     "the model that it starts from, with the same tokens; default the model itself"},
    {"--divergence", NULL, TOOL_WORD, AT(divergence), TOOL_TRAIN, STUDENT, 0, 0, divergences, "NAME",
     "what is minimised: forward, reverse, jsd or tvd; default forward"},
    {"--on-policy", NULL, TOOL_REAL, AT(on_policy), TOOL_TRAIN, STUDENT, 0, 1, NULL, "S",
     "share of the texts of each step that are its own answers, by its present weights, to the same prompts; default 0"},
    {"--policy-temperature", NULL, TOOL_REAL, AT(policy_temperature), TOOL_TRAIN, STUDENT, 0, 10, NULL, "T",
     "of these answers; default 1"},
    {"--refresh", NULL, TOOL_INT, AT(refresh), TOOL_TRAIN, STUDENT, 1, 1e6, NULL, "N",
     "steps for which it answers at once: of --on-policy; default 8, fewer at the end of an epoch"},
    {"--seconds", NULL, TOOL_REAL, AT(seconds), TOOL_TRAIN, LEARNING | TOOL_BASIC, 1, 1e7, NULL, "T",
     "as many steps as fit into that time on this machine"},
    {"--steps", NULL, TOOL_INT, AT(steps), TOOL_TRAIN, LEARNING | TOOL_BASIC, 0, 1e7, NULL, "N",
     "of the optimiser; 0 writes the head with its initial weights; more than before: training goes on"},
    {"--batch", NULL, TOOL_INT, AT(batch), TOOL_TRAIN, LEARNING, 64, 65536, NULL, "ROWS",
     "the most tokens of a step; default 2048"},
    {"--length", NULL, TOOL_INT, AT(length), TOOL_TRAIN, LEARNING, 16, 65536, NULL, "ROWS",
     "the most tokens of a text in one piece; default 512"},
    {"--rate", NULL, TOOL_REAL, AT(rate), TOOL_TRAIN, LEARNING, 0, 1, NULL, "R", "peak of the learning rate; default 0.001"},
    {"--token-share", NULL, TOOL_REAL, AT(token_share), TOOL_TRAIN, LEARNING, 0, 1, NULL, "S",
     "share of the text's next token in the labels: 0 only the model's distribution, 1 only the token; default 0"},
    {"--state-share", NULL, TOOL_REAL, AT(state_share), TOOL_TRAIN, LEARNING, 0, 100, NULL, "S",
     "eagle and falcon: weight of the distance to the model's state, in addition to a tenth for its distribution; 0: only the "
     "distribution; default 1"},
    {"--held-out", NULL, TOOL_INT, AT(held_out), TOOL_TRAIN, LEARNING, 2, 10000, NULL, "N",
     "texts that it is not trained on but measured with, at most half; default 32, at most a quarter"},
    {"--seed", NULL, TOOL_INT64, AT(seed), TOOL_TRAIN, LEARNING, 0, 1e15, NULL, "S", "of everything random; default 0"},
    {"--features", NULL, TOOL_TEXT, AT(features), TOOL_TRAIN, LEARNING, 0, 0, NULL, "WHERE",
     "stored or online: on the disk, or computed for each batch; default stored if there is room and they are read more "
     "than once. A folder: stored there, for all trainings of this model on these texts whose states are among those of "
     "the first"},
    {"--output", "-o", TOOL_TEXT, AT(output), TOOL_TRAIN, OUTPUT | TOOL_BASIC, 0, 0, NULL, "OUT",
     "data: the folder of the texts; trie: its file; KIND: the head, with a plot of the training in OUT.svg"},
    {"--format", NULL, TOOL_WORD, AT(format), TOOL_TRAIN, OUTPUT, 0, 0, head_formats, "NAME",
     "gguf, or hf: a folder that other programs read, if the kind has one; default by the name of OUT"},
    {"--verifier", NULL, TOOL_TEXT, AT(verifier), TOOL_TRAIN, OUTPUT, 0, 0, NULL, "ID",
     "the model's name in the folder's config.json, by which speculators and vLLM open it: a folder, or an id of a model hub; default "
     "MODEL's path, which they open if it is a folder"},
    {"--force", NULL, TOOL_SWITCH, AT(force), TOOL_TRAIN, OUTPUT, 0, 0, NULL, NULL,
     "replace what is there and is not of this run; learn from texts that another model made"},
    {"--type", NULL, TOOL_WORD, AT(head_type), TOOL_TRAIN, OUTPUT, 0, 0, tool_type_names, "TYPE",
     "of a gguf's matrices: q8_0, q4_0, bf16 or f32; default q8_0, the type that they draft with"},
    {"--quiet", "-q", TOOL_SWITCH, AT(quiet), TOOL_TRAIN, OUTPUT | TOOL_BASIC, 0, 0, NULL, NULL, "only errors"},
    {"--help", "-h", TOOL_SWITCH, AT(help), EVERY, OUTPUT | TOOL_BASIC, 0, 0, NULL, NULL,
     "help with all flags; -h: the most used flags"},
};
const int tool_n_flags = sizeof tool_flags / sizeof *tool_flags;

static bool is_named(const char *name, const char *text, size_t len) {
    return name && strlen(name) == len && memcmp(name, text, len) == 0;
}

const tool_flag *tool_flag_find(const char *name, size_t len, unsigned command) {
    for (int i = 0; i < tool_n_flags; i++) {
        const tool_flag *f = &tool_flags[i];
        if ((f->commands & command) && (is_named(f->name, name, len) || is_named(f->alias, name, len)))
            return f;
    }
    return NULL;
}

bool tool_flag_writes(const tool_flag *f) {
    return f->value && strstr(f->value, "FILE") && (f->group & ~(unsigned)TOOL_BASIC) == OUTPUT;
}

const char *tool_flag_near(const char *name, unsigned command) {
    const char *names[2 * sizeof tool_flags / sizeof *tool_flags];
    size_t n = 0;
    for (int i = 0; i < tool_n_flags; i++) {
        if (!(tool_flags[i].commands & command))
            continue;
        names[n++] = tool_flags[i].name;
        if (tool_flags[i].alias)
            names[n++] = tool_flags[i].alias;
    }
    return hn_nearest(name, names, n);
}

bool tool_flag_needs_value(const tool_flag *f) {
    return f->kind != TOOL_SWITCH && f->kind != TOOL_PLACE && f->kind != TOOL_COUNT;
}

static bool is_above(const tool_flag *f) {
    return f->kind == TOOL_ABOVE || f->kind == TOOL_PAIR;
}

bool tool_in_range(const tool_flag *f, double x) {
    return (is_above(f) ? x > f->min : x >= f->min) && x <= f->max;
}

/* The end of a flag's range. The largest int64_t is not a double: the table has the next larger one. */
static const char *limit_text(double limit, char text[32]) {
    if (limit >= (double)INT64_MAX)
        snprintf(text, 32, "%" PRId64, INT64_MAX);
    else
        snprintf(text, 32, limit == floor(limit) ? "%.0f" : "%g", limit);
    return text;
}

char *tool_range_text(const tool_flag *f, char *out, size_t size) {
    const char *what = f->kind == TOOL_INTS                                            ? "a list of whole numbers"
                       : f->kind == TOOL_PAIR                                          ? "two numbers A,B"
                       : f->kind == TOOL_REAL || f->kind == TOOL_REALS || f->kind == TOOL_ABOVE ? "a number"
                                                                                       : "a whole number";
    char least[32], most[32];
    snprintf(out, size, "%s %s %s%s %s%s", what, is_above(f) ? "above" : "from", limit_text(f->min, least),
             is_above(f) ? " and at most" : " to", limit_text(f->max, most),
             f->kind == TOOL_LIMIT ? ", or -1 for no limit" : "");
    return out;
}

/* The words that are accepted: those after "default", if the list begins with it. */
static const char *const *choice_words(const tool_flag *f) {
    return f->choices + (strcmp(f->choices[0], "default") == 0);
}

char *tool_choices_text(const tool_flag *f, char *out, size_t size) {
    size_t at = 0;
    const char *const *words = choice_words(f);
    out[0] = 0;
    for (int i = 0; words[i] && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    return out;
}

const char *tool_choice_near(const tool_flag *f, const char *word) {
    size_t n = 0;
    const char *const *words = choice_words(f);
    while (words[n])
        n++;
    return hn_nearest(word, words, n);
}
