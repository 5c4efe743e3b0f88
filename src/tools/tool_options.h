/* SPDX-License-Identifier: Apache-2.0 */
/* tool_options.h - the flags of all subcommands: one table, one parser, one help text.
 *
 * To add a flag: a field here and a line in the table of tool_options.c that says which commands know it. */
#ifndef HN_TOOL_OPTIONS_H
#define HN_TOOL_OPTIONS_H

#include "tool_output.h"
#include "tool_values.h"

enum {
    TOOL_RUN = 1,
    TOOL_COMPARE = 2,
    TOOL_BENCH = 4,
    TOOL_INSPECT = 8,
    TOOL_TOKENIZE = 16,
    TOOL_LOGITS = 32,
    TOOL_SCORE = 64,
    TOOL_CONVERT = 128,
    TOOL_CHAT = 256,
    TOOL_DRAFT = 512
};

typedef struct tool_command {
    unsigned bit; /* one of the above */
    const char *name, *synopsis, *summary, *notes;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
} tool_command;
extern const tool_command tool_commands[]; /* ends with a NULL name */
const tool_command *tool_command_find(unsigned bit);

/* A repeatable flag's values, in order. */
typedef struct tool_texts {
    const char **items; /* point into argv */
    int n;
} tool_texts;
typedef struct tool_ints {
    int *items; /* NULL: not given */
    int n;
} tool_ints;

typedef struct tool_biases {
    hunch_bias *items;
    int n;
} tool_biases;

enum { TOOL_UNSET = -1 }; /* integers and choices that were not given; reals are NAN, texts NULL */

typedef struct tool_options {
    const char *model, *prompt, *file, *tokens_file, *output, *template_file, *messages_file, *now, *isa, *positional;
    const char *chat_template_file, *chat_tools_file, *system;
    const char *json_to, *csv_to, *svg; /* "-": standard output */
    tool_texts drafts, stops, breakers, template_args;
    tool_ints rows, contexts;
    tool_biases biases;
    bool raw, ignore_eos, json, json_lines, cold, show, text_only, help, mapped, logprobs, why, no_prefix_reuse, machine, profile,
        requests, quick;
    int n, top_k, threads, context, kv, precision, verify, chunk, parallel, samples, color, pool_rows, repeat, depth,
        accept, dry_allowed_length, dry_range, lossy_top_m;
    int64_t seed;
    double temperature, top_p, min_p, top_n_sigma, typical, xtc_probability, xtc_threshold, dry_multiplier, dry_base,
        repetition_penalty, presence_penalty, frequency_penalty, lossy_lenience, until_width;
    double lossy_typical[2];
} tool_options;

/* Parses argv[1..] and refuses flags that contradict each other. Returns -1 to go on, else the exit code at which the
 * command ends: 0 after --help was printed, HUNCH_USAGE after a message that names the flag. Strings point into argv. */
int tool_options_parse(tool_options *o, unsigned command, int argc, char **argv);
void tool_options_fini(tool_options *o);
void tool_help(FILE *to); /* of the whole program */

#endif
