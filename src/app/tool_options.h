/* SPDX-License-Identifier: Apache-2.0 */
/* tool_options.h - the parsed flags and arguments of a subcommand. tool_flags.h has the table of flags.
 *
 * Words without a flag are the command's arguments in order, without those that a flag has set: `run MODEL TEXT`, `run
 * -m MODEL -p TEXT` and `run -m MODEL TEXT` are the same. */
#ifndef HN_TOOL_OPTIONS_H
#define HN_TOOL_OPTIONS_H

#include "base/request_parameters.h"
#include "app/tool_commands.h"
#include "app/tool_output.h"
#include "app/tool_values.h"

struct tool_flag;

/* A repeatable flag's values, in order. */
typedef struct tool_texts {
    const char **items; /* point into argv */
    int n;
} tool_texts;
typedef struct tool_ints {
    int *items; /* NULL: not given */
    int n;
} tool_ints;

typedef struct tool_reals {
    double *items;
    int n;
} tool_reals;

typedef struct tool_biases {
    hunch_bias *items;
    int n;
} tool_biases;

/* The types of parameters, by their kinds (base/request_parameters.h). */
#define HN_TYPE_REAL double
#define HN_TYPE_ABOVE double
#define HN_TYPE_INT int
#define HN_TYPE_LIMIT int
#define HN_TYPE_CHOICE int
#define HN_TYPE_INT64 int64_t
#define HN_TYPE_SWITCH bool
#define HN_TYPE_TEXT const char *
#define HN_TYPE_TEXTS tool_texts
#define HN_TYPE_INTS tool_ints
#define HN_TYPE_BIASES tool_biases

enum { TOOL_UNSET = -1 }; /* value of integers and choices that were not given; reals are NAN, texts NULL. n 0: no limit */

typedef struct tool_options {
    const char *model, *target, *prompt, *file, *tokens_file, *output, *tree, *template_file, *messages_file, *now,
        *isa, *device, *positional; /* positional: neither model nor text */
    const char *chat_template_file, *chat_tools_file, *tool_format, *tool_choice, *system;
    const char *json_schema_file, *grammar_file, *regex; /* of answers */
    const char *record;
    const char *json_to, *csv_to, *svg; /* "-": standard output */
    const char *figures, *parameters, *figures_type, *link; /* of plan */
    int machines;                                          /* the same */
    const char *why_html;
    tool_texts drafts, template_args;
    tool_texts words; /* arguments after the others, of commands that take any number of them */
    tool_ints rows, contexts, batches;
    bool schema, raw, json, json_lines, cold, show, text_only, help, mapped, mapped_experts, resume, why, trees,
        no_prefix_reuse, machine, profile, requests, quick, quiet, list, force, no_smoke,
        no_loop_guard, no_history, json_object, verify_exact;
    int logprobs, threads, context, kv, precision, verify, type, chunk, max_pause, parallel, samples, color, pool_rows,
        state_memory, repeat, depth, accept, lossy_top_m, keep;
    /* of requests */
#define ROW(ID, MEMBER, KIND, ...) HN_TYPE_##KIND ID;
    HN_REQUEST_PARAMETERS(ROW)
#undef ROW
    double lossy_lenience, until_width;
    double lossy_typical[2];
    bool pools; /* pooling was asked for, by its flag or a row; set by the command */
    uint64_t grammar_bytes; /* as hunch_model_options and hunch_engine_options have them; set by the server */
    int64_t kept_bytes;
    /* of serve */
    const char *host, *memory, *kept_prefixes, *grammar_memory, *api_key_file, *proxy;
    tool_texts served_names, cors, host_names;
    int port, queue, stall, connections, connections_per_address, max_body;
    bool log_json, log_text, allow_anyone;
    /* of train: positional is data, trie or the kind of head */
    tool_texts files, leave_out;
    tool_reals temperatures;
    const char *format, *head_type, *taps, *features, *init, *divergence, *speaker, *centroids, *centroid_start, *verifier;
    int self, steps, vocab, width, layers, unroll, batch, length, held_out, refresh;
    double seconds, rate, token_share, state_share, on_policy, policy_temperature;
    bool cell, shift_label;
    int pure_prefix;
    unsigned command; /* the command they belong to */
} tool_options;

/* Parses argv[1..] and refuses flags that contradict each other, and an output file that is also read (tool_check_files.h). Returns -1 on
 * success, else the exit code of the command: 0 after --help was printed, HUNCH_USAGE after a message that names the flag. Strings point
 * into argv. */
int tool_options_parse(tool_options *o, unsigned command, int argc, char **argv);
void tool_options_fini(tool_options *o);

/* For later changes. Sets one flag of o->command as `name VALUE` would; a list is appended to. -1, or HUNCH_USAGE after a message. The
 * value is borrowed. */
int tool_option_set(tool_options *o, const struct tool_flag *f, const char *name, const char *value);
void tool_option_unset(tool_options *o, const struct tool_flag *f); /* as if it had not been given; a list is not freed */
void tool_option_free(tool_options *o, const struct tool_flag *f);  /* its list, if it is one */
/* Whether flags contradict each other, or have no effect alone. -1: they do not. */
int tool_options_check(const tool_options *o);

#endif
