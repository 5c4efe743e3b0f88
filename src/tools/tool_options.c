/* SPDX-License-Identifier: Apache-2.0 */
/* tool_options.c - see tool_options.h. Numbers are strict: the whole argument, within its range. Owns no meaning of a
 * flag beyond its type; what a command does with one stands in cmd_*.c. */
#include "tool_options.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* PLACE: --flag for standard output, "-", or --flag=FILE. */
enum kind { FLAG, TEXT, PLACE, INT, INT64, REAL, ABOVE, PAIR, CHOICE, TEXTS, INTS, BIASES };

typedef struct option {
    const char *name, *alias; /* with their dashes */
    enum kind kind;
    size_t at; /* offset in tool_options */
    unsigned commands;
    double min, max;            /* INT, INT64, REAL, INTS; ABOVE and both of PAIR: min itself is too small */
    const char *const *choices; /* CHOICE: accepted words, then NULL */
    const char *value, *help;
} option;

static const char *const kv_names[] = {"default", "bf16", "f16", "f32", "q8_0", NULL}; /* in the order of hunch_kv */
static const char *const precision_names[] = {"native", "f32", NULL};
static const char *const verify_names[] = {"default", "greedy", "match", "ratio", "block", "traversal", NULL}; /* likewise */
static const char *const color_names[] = {"auto", "always", "never", NULL};

enum {
    PROMPTED = TOOL_RUN | TOOL_COMPARE,
    TEXTED = TOOL_RUN | TOOL_COMPARE | TOOL_LOGITS | TOOL_SCORE | TOOL_DRAFT,
    GENERATES = TOOL_RUN | TOOL_COMPARE | TOOL_CHAT,
    SAMPLED = GENERATES | TOOL_DRAFT,
    ENGINED = TEXTED | TOOL_CHAT | TOOL_BENCH,
    ALL = ENGINED | TOOL_TOKENIZE | TOOL_INSPECT | TOOL_CONVERT
};

#define AT(field) offsetof(tool_options, field)
static const option options[] = {
    {"--model", "-m", TEXT, AT(model), ALL, 0, 0, NULL, "MODEL", "a GGUF file, a Hugging Face folder, or the name of a download (see hunch --help)"},
    {"--prompt", "-p", TEXT, AT(prompt), TEXTED | TOOL_TOKENIZE, 0, 0, NULL, "TEXT", "the text; - reads standard input"},
    {"--file", "-f", TEXT, AT(file), TEXTED | TOOL_TOKENIZE, 0, 0, NULL, "FILE", "the text from a file (prompts: text or JSON lines)"},
    {"--prompt-tokens", "--tokens", TEXT, AT(tokens_file), TEXTED, 0, 0, NULL, "FILE", "token ids, a JSON array; no template, no BOS added"},
    {"--raw", NULL, FLAG, AT(raw), GENERATES, 0, 0, NULL, NULL, "text without the chat template"},
    {"--chat-template-file", NULL, TEXT, AT(chat_template_file), GENERATES, 0, 0, NULL, "FILE", "a chat template instead of the model's own"},
    {"--template-arg", NULL, TEXTS, AT(template_args), GENERATES, 0, 0, NULL, "K=V", "a variable of the chat template, such as enable_thinking=false; V is JSON, else a text (repeatable)"},
    {"--tools", NULL, TEXT, AT(chat_tools_file), GENERATES, 0, 0, NULL, "FILE", "tools that the template tells the model of: a JSON array, in OpenAI's shape as a rule"},
    {"--system", NULL, TEXT, AT(system), TOOL_CHAT, 0, 0, NULL, "TEXT", "the system message of the conversation"},
    {"--output", "-o", TEXT, AT(output), TOOL_LOGITS | TOOL_CONVERT | TOOL_DRAFT, 0, 0, NULL, "FILE", "the file to write"},
    {"-n", NULL, INT, AT(n), GENERATES, 1, INT_MAX, NULL, "N", "at most N new tokens (run 512, compare 200, chat: what the context holds)"},
    {"--ignore-eos", NULL, FLAG, AT(ignore_eos), GENERATES, 0, 0, NULL, NULL, "do not stop at the end-of-sequence token"},
    {"--stop", NULL, TEXTS, AT(stops), GENERATES, 0, 0, NULL, "TEXT", "end the text before TEXT (repeatable)"},
    {"--draft", NULL, TEXTS, AT(drafts), SAMPLED, 0, 0, NULL, "SPEC", "KIND[:PATH][,key=value...]: none, auto, ngram, cache, suffix, prediction, model, forced (repeatable; A+B draft together); default auto"},
    {"--verify", NULL, CHOICE, AT(verify), GENERATES, 0, 0, verify_names, "RULE", "greedy, match, ratio, block or traversal; default: greedy at temperature 0, else match"},
    {"--lossy-lenience", NULL, ABOVE, AT(lossy_lenience), GENERATES, 0, 1, NULL, "L", "accept drafts with min(1, p/(L q)): changes what is said"},
    {"--lossy-typical", NULL, PAIR, AT(lossy_typical), GENERATES, 0, 1, NULL, "EPS,ALPHA", "accept drafts of p > min(EPS, ALPHA e^-entropy): changes what is said"},
    {"--lossy-top-m", NULL, INT, AT(lossy_top_m), GENERATES, 1, INT_MAX, NULL, "M", "accept drafts among the M likeliest: changes what is said"},
    {"--temperature", NULL, REAL, AT(temperature), SAMPLED, 0, 1000, NULL, "T", "0 is greedy; default: the model's, else 0"},
    {"--top-k", NULL, INT, AT(top_k), SAMPLED, 0, INT_MAX, NULL, "K", "keep the K likeliest tokens; 0 is off"},
    {"--top-p", NULL, ABOVE, AT(top_p), SAMPLED, 0, 1, NULL, "P", "keep the likeliest tokens that hold P; 1 is off"},
    {"--min-p", NULL, REAL, AT(min_p), SAMPLED, 0, 1, NULL, "P", "drop tokens below P times the likeliest; 0 is off"},
    {"--top-n-sigma", NULL, REAL, AT(top_n_sigma), SAMPLED, 0, 1000, NULL, "S", "keep logits within S standard deviations of the largest; 0 is off"},
    {"--typical", NULL, REAL, AT(typical), SAMPLED, 0, 1, NULL, "P", "keep the tokens of the most typical information that hold P; 0 and 1 are off"},
    {"--xtc-probability", NULL, REAL, AT(xtc_probability), SAMPLED, 0, 1, NULL, "P", "with this probability drop all tokens of --xtc-threshold but the last; 0 is off"},
    {"--xtc-threshold", NULL, REAL, AT(xtc_threshold), SAMPLED, 0, 0.5, NULL, "P", "probability from which XTC drops, default 0.1"},
    {"--repetition-penalty", NULL, REAL, AT(repetition_penalty), SAMPLED, 0, 100, NULL, "R", "divides logits of tokens that prompt or answer hold; 0 and 1 are off"},
    {"--presence-penalty", NULL, REAL, AT(presence_penalty), SAMPLED, -2, 2, NULL, "X", "subtracted once from tokens of the answer; 0 is off"},
    {"--frequency-penalty", NULL, REAL, AT(frequency_penalty), SAMPLED, -2, 2, NULL, "X", "subtracted as often as the answer holds the token; 0 is off"},
    {"--dry-multiplier", NULL, REAL, AT(dry_multiplier), SAMPLED, 0, 1000, NULL, "X", "penalty of repeating a sequence (DRY); 0 is off"},
    {"--dry-base", NULL, REAL, AT(dry_base), SAMPLED, 1, 100, NULL, "X", "grows the DRY penalty a token, default 1.75"},
    {"--dry-allowed-length", NULL, INT, AT(dry_allowed_length), SAMPLED, 1, 1000, NULL, "N", "repetitions of N tokens cost nothing yet, default 2"},
    {"--dry-range", NULL, INT, AT(dry_range), SAMPLED, 0, INT_MAX, NULL, "N", "tokens that DRY looks back; 0, the default: all"},
    {"--dry-breaker", NULL, TEXTS, AT(breakers), SAMPLED, 0, 0, NULL, "TEXT", "tokens that hold TEXT end a repetition (repeatable); default: newline, colon, quote, asterisk"},
    {"--logit-bias", NULL, BIASES, AT(biases), SAMPLED, 0, 0, NULL, "ID=BIAS", "adds BIAS to a token's logit; -inf forbids it (repeatable)"},
    {"--seed", NULL, INT64, AT(seed), SAMPLED, 0, 9223372036854775807.0, NULL, "S", "of the random streams; default: random, and reported"},
    {"--logprobs", NULL, FLAG, AT(logprobs), TOOL_RUN | TOOL_CHAT, 0, 0, NULL, NULL, "the target's log-probability of every token (with --json or --json-lines)"},
    {"--why", NULL, FLAG, AT(why), TOOL_RUN, 0, 0, NULL, NULL, "what the controller considered and chose, a line a round"},
    {"--samples", NULL, INT, AT(samples), TOOL_RUN, 1, INT_MAX, NULL, "N", "N answers with seeds S, S+1, ... (with --json-lines)"},
    {"--cold", NULL, FLAG, AT(cold), TOOL_COMPARE, 0, 0, NULL, NULL, "empty what drafters learned before each prompt"},
    {"--repeat", NULL, INT, AT(repeat), TOOL_COMPARE, 1, 100000, NULL, "N", "answer each prompt N times, with emptied stores each time"},
    {"--until-width", NULL, ABOVE, AT(until_width), TOOL_COMPARE, 0, INT_MAX, NULL, "W", "repeat each prompt until its interval is within +-W, at most --repeat (32) times"},
    {"--show", NULL, FLAG, AT(show), TOOL_COMPARE, 0, 0, NULL, NULL, "show the answers side by side, coloured by who proposed each token"},
    {"--rows", NULL, INTS, AT(rows), TOOL_BENCH, 1, 64, NULL, "LIST", "rows of a pass, default 1,2,3,4,6,8,12,16,24,32,48,64; with --profile 1,8"},
    {"--contexts", NULL, INTS, AT(contexts), TOOL_BENCH, 0, INT_MAX, NULL, "LIST", "committed rows before the pass, default 256,2048,8192; with --profile 256,2048"},
    {"--machine", NULL, FLAG, AT(machine), TOOL_BENCH, 0, 0, NULL, NULL, "the machine alone, without a model: reading by threads, pages and size, arithmetic, barrier"},
    {"--profile", NULL, FLAG, AT(profile), TOOL_BENCH, 0, 0, NULL, NULL, "where the time of a pass goes, by kind of operation"},
    {"--requests", NULL, FLAG, AT(requests), TOOL_BENCH, 0, 0, NULL, NULL, "measure what lines of standard input ask for (see below)"},
    {"--quick", NULL, FLAG, AT(quick), TOOL_BENCH, 0, 0, NULL, NULL, "3 turns instead of 7, and fewer rows and contexts by default"},
    {"--depth", NULL, INT, AT(depth), TOOL_DRAFT, 1, HUNCH_MAX_DEPTH, NULL, "K", "levels to draft, default 8"},
    {"--accept", NULL, INT, AT(accept), TOOL_DRAFT, 0, HUNCH_MAX_DEPTH, NULL, "N", "commit N drafts of the chain and show the second round"},
    {"--template", NULL, TEXT, AT(template_file), TOOL_TOKENIZE, 0, 0, NULL, "FILE", "a chat template to render, instead of the model's"},
    {"--messages", NULL, TEXT, AT(messages_file), TOOL_TOKENIZE, 0, 0, NULL, "FILE", "variables of the template: a JSON object with \"messages\""},
    {"--text", NULL, FLAG, AT(text_only), TOOL_TOKENIZE, 0, 0, NULL, NULL, "print the rendered text, not its ids (needs no model)"},
    {"--now", NULL, TEXT, AT(now), TOOL_TOKENIZE, 0, 0, NULL, "TIME", "the template's clock, \"YYYY-MM-DD HH:MM:SS\""},
    {"--parallel", NULL, INT, AT(parallel), PROMPTED | TOOL_BENCH, 1, 1024, NULL, "N", "sequences at once, default 1"},
    {"--threads", NULL, INT, AT(threads), ENGINED, 1, 256, NULL, "N", "default: the cores this process may use"},
    {"--isa", NULL, TEXT, AT(isa), ENGINED, 0, 0, NULL, "LEVEL", "ref, avx2, avx512, ... or best"},
    {"--precision", NULL, CHOICE, AT(precision), ENGINED, 0, 0, precision_names, "MODE", "native, or f32 as the published reference computes"},
    {"--mapped", NULL, FLAG, AT(mapped), ENGINED, 0, 0, NULL, NULL, "leave the weights in the file: for models larger than memory; slower, the same bits"},
    {"--kv", NULL, CHOICE, AT(kv), ENGINED, 0, 0, kv_names, "TYPE", "bf16, f16, f32 or q8_0; default bf16, with --precision f32 f32"},
    {"--context", NULL, INT, AT(context), ENGINED, 1, INT_MAX, NULL, "ROWS", "rows a sequence may hold (score: of a window)"},
    {"--chunk", NULL, INT, AT(chunk), ENGINED, 1, INT_MAX, NULL, "N", "rows of prefill a pass, default 64, as many as one holds"},
    {"--pool-rows", NULL, INT, AT(pool_rows), GENERATES, 1, INT_MAX, NULL, "N", "cache rows of all sequences together; default: --parallel times the context"},
    {"--no-prefix-reuse", NULL, FLAG, AT(no_prefix_reuse), GENERATES, 0, 0, NULL, NULL, "read every prompt from its first token on"},
    {"--json", NULL, FLAG, AT(json), ALL & ~TOOL_CHAT & ~TOOL_BENCH, 0, 0, NULL, NULL, "JSON on standard output, everything else on standard error"},
    {"--json-lines", NULL, FLAG, AT(json_lines), TOOL_RUN | TOOL_CHAT | TOOL_TOKENIZE, 0, 0, NULL, NULL, "one JSON object a line"},
    {"--json", NULL, PLACE, AT(json_to), TOOL_BENCH, 0, 0, NULL, "[=FILE]", "JSON on standard output instead of the table, or in FILE beside it"},
    {"--csv", NULL, PLACE, AT(csv_to), TOOL_BENCH, 0, 0, NULL, "[=FILE]", "comma-separated values, likewise"},
    {"--svg", NULL, TEXT, AT(svg), TOOL_BENCH, 0, 0, NULL, "FILE", "a plot of pass times by rows, and their limits"},
    {"--color", NULL, CHOICE, AT(color), ALL, 0, 0, color_names, "WHEN", "auto, always or never; NO_COLOR is honoured"},
    {"--help", "-h", FLAG, AT(help), ALL, 0, 0, NULL, NULL, "this text"},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

/* ---- values -------------------------------------------------------------------------------------------------- */

static int unknown_flag(const char *flag, const tool_command *c) {
    const char *names[2 * N_OPTIONS];
    size_t n = 0;
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(options[i].commands & c->bit))
            continue;
        names[n++] = options[i].name;
        if (options[i].alias)
            names[n++] = options[i].alias;
    }
    const char *near = tool_nearest(flag, names, n);
    if (near)
        return tool_usage("%s: unknown flag %s, did you mean %s?", c->name, flag, near);
    return tool_usage("%s: unknown flag %s, see hunch %s --help", c->name, flag, c->name);
}

static int bad_number(const tool_command *c, const option *o, const char *name, const char *s) {
    static const char *const what[] = {[INT] = "a whole number", [INT64] = "a whole number", [REAL] = "a number",
                                       [ABOVE] = "a number", [PAIR] = "two numbers A,B",
                                       [INTS] = "a list of whole numbers"};
    bool above = o->kind == ABOVE || o->kind == PAIR;
    if (o->max >= INT_MAX)
        return tool_usage("%s: %s %s is not %s %s %.0f", c->name, name, s, what[o->kind],
                          above ? "above" : "of at least", o->min);
    return tool_usage("%s: %s %s is not %s %s %g%s %g", c->name, name, s, what[o->kind], above ? "above" : "from",
                      o->min, above ? " and at most" : " to", o->max);
}

static int set_ints(const tool_command *c, const option *o, const char *name, const char *s, tool_ints *list) {
    size_t room = 1;
    for (const char *p = s; *p; p++)
        room += *p == ',';
    free(list->items);
    list->items = tool_alloc(room, sizeof(int));
    list->n = tool_parse_ints(s, (int64_t)o->min, (int64_t)o->max, list->items);
    return list->n ? -1 : bad_number(c, o, name, s);
}

static int add_bias(const tool_command *c, const char *name, const char *s, tool_biases *list) {
    hunch_bias bias;
    if (!tool_parse_bias(s, &bias))
        return tool_usage("%s: %s %s is not ID=BIAS: a token id, and a number or -inf", c->name, name, s);
    size_t cap = (size_t)list->n;
    list->items = tool_grow(list->items, &cap, (size_t)list->n + 1, sizeof *list->items);
    list->items[list->n++] = bias;
    return -1;
}

static int add_text(tool_texts *list, const char *s) {
    size_t cap = (size_t)list->n;
    list->items = tool_grow(list->items, &cap, (size_t)list->n + 1, sizeof *list->items);
    list->items[list->n++] = s;
    return -1;
}

static int set_choice(const tool_command *c, const option *o, const char *name, const char *s, int *out) {
    for (int i = 0; o->choices[i]; i++)
        if (strcmp(s, o->choices[i]) == 0 && strcmp(s, "default") != 0) {
            *out = i;
            return -1;
        }
    return tool_usage("%s: %s %s is unknown: %s", c->name, name, s, o->help);
}

static bool in_range(const option *o, double x) {
    return (o->kind == ABOVE || o->kind == PAIR ? x > o->min : x >= o->min) && x <= o->max;
}

static int set_integer(const tool_command *c, const option *o, const char *name, const char *s, void *at) {
    int64_t v;
    if (!tool_parse_int64(s, &v) || v < (int64_t)o->min || (o->kind == INT && v > (int64_t)o->max))
        return bad_number(c, o, name, s);
    if (o->kind == INT)
        *(int *)at = (int)v;
    else
        *(int64_t *)at = v;
    return -1;
}

static int set_real(const tool_command *c, const option *o, const char *name, const char *s, double *at) {
    double r[2] = {0};
    bool pair = o->kind == PAIR;
    if (!(pair ? tool_parse_pair(s, r) : tool_parse_real(s, r)) || !in_range(o, r[0]) || (pair && !in_range(o, r[1])))
        return bad_number(c, o, name, s);
    at[0] = r[0];
    if (pair)
        at[1] = r[1];
    return -1;
}

static int set_value(const tool_command *c, const option *o, const char *name, const char *s, tool_options *to) {
    void *at = (char *)to + o->at;
    switch (o->kind) {
    case FLAG:
        *(bool *)at = true;
        return -1;
    case TEXT:
    case PLACE:
        *(const char **)at = s;
        return -1;
    case INT:
    case INT64:
        return set_integer(c, o, name, s, at);
    case REAL:
    case ABOVE:
    case PAIR:
        return set_real(c, o, name, s, at);
    case CHOICE:
        return set_choice(c, o, name, s, at);
    case TEXTS:
        return add_text(at, s);
    case BIASES:
        return add_bias(c, name, s, at);
    default:
        return set_ints(c, o, name, s, at);
    }
}

/* ---- the parser ---------------------------------------------------------------------------------------------- */

/* Whatever the table says is a number or a choice begins as not given. */
static void options_clear(tool_options *o) {
    *o = (tool_options){0};
    for (int i = 0; i < N_OPTIONS; i++) {
        void *at = (char *)o + options[i].at;
        switch (options[i].kind) {
        case INT:
        case CHOICE:
            *(int *)at = TOOL_UNSET;
            break;
        case INT64:
            *(int64_t *)at = TOOL_UNSET;
            break;
        case PAIR:
            ((double *)at)[1] = NAN;
            __attribute__((fallthrough));
        case REAL:
        case ABOVE:
            *(double *)at = NAN;
            break;
        default:
            break;
        }
    }
    o->color = TOOL_COLOR_AUTO;
}

static const option *option_find(const char *name, size_t len, unsigned command) {
    for (int i = 0; i < N_OPTIONS; i++) {
        const option *o = &options[i];
        bool is = (strlen(o->name) == len && memcmp(o->name, name, len) == 0) ||
                  (o->alias && strlen(o->alias) == len && memcmp(o->alias, name, len) == 0);
        if (is && (o->commands & command))
            return o;
    }
    return NULL;
}

static void command_help(const tool_command *c) {
    printf("usage: hunch %s\n%s\n\n", c->synopsis, c->summary);
    for (int i = 0; i < N_OPTIONS; i++) {
        const option *o = &options[i];
        if (!(o->commands & c->bit))
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s%s", o->name, o->alias ? ", " : "", o->alias ? o->alias : "",
                 o->value && o->kind != PLACE ? " " : "", o->value ? o->value : "");
        printf("  %-32s %s\n", left, o->help);
    }
    if (c->notes)
        printf("\n%s", c->notes);
}

static int parse_one(tool_options *o, const tool_command *c, int argc, char **argv, int *i) {
    const char *arg = argv[*i], *equals = strchr(arg, '=');
    if (arg[0] != '-' || arg[1] == 0) {
        if (!(c->bit & (TOOL_INSPECT | TOOL_BENCH)) || o->positional)
            return tool_usage("%s: unexpected argument %s, see hunch %s --help", c->name, arg, c->name);
        o->positional = arg;
        return -1;
    }
    char name[64];
    size_t len = equals && arg[1] == '-' ? (size_t)(equals - arg) : strlen(arg);
    snprintf(name, sizeof name, "%.*s", (int)(len < 63 ? len : 63), arg);
    const option *found = option_find(arg, len, c->bit);
    if (!found)
        return unknown_flag(name, c);
    const char *value = len < strlen(arg) ? arg + len + 1 : NULL;
    if (found->kind == FLAG && value)
        return tool_usage("%s: %s takes no value", c->name, name);
    if (found->kind == PLACE && !value)
        value = "-";
    if (found->kind != FLAG && !value) {
        if (*i + 1 >= argc)
            return tool_usage("%s: %s needs a value: %s", c->name, name, found->help);
        value = argv[++*i];
    }
    return set_value(c, found, name, value, o);
}

static int rules_check(const tool_options *o, const tool_command *c) {
    static const char *const lossy[] = {"--lossy-lenience", "--lossy-typical", "--lossy-top-m"};
    const bool given[] = {!isnan(o->lossy_lenience), !isnan(o->lossy_typical[0]), o->lossy_top_m != TOOL_UNSET};
    const char *rule = NULL;
    for (int i = 0; i < 3; i++) {
        if (given[i] && rule)
            return tool_usage("%s: %s and %s contradict each other: give one rule", c->name, rule, lossy[i]);
        rule = given[i] ? lossy[i] : rule;
    }
    if (rule && o->verify != TOOL_UNSET)
        return tool_usage("%s: %s contradicts --verify, which names a lossless rule: give one of them", c->name, rule);
    return -1;
}

/* Flags that would do nothing alone. */
static int lonely_check(const tool_options *o, const tool_command *c) {
    const char *dry = !isnan(o->dry_base)                   ? "--dry-base"
                      : o->dry_allowed_length != TOOL_UNSET ? "--dry-allowed-length"
                      : o->dry_range != TOOL_UNSET          ? "--dry-range"
                      : o->breakers.n                       ? "--dry-breaker"
                                                            : NULL;
    if (dry && isnan(o->dry_multiplier))
        return tool_usage("%s: %s does nothing without --dry-multiplier", c->name, dry);
    if (!isnan(o->xtc_threshold) && isnan(o->xtc_probability))
        return tool_usage("%s: --xtc-threshold does nothing without --xtc-probability", c->name);
    return -1;
}

static int contradictions(const tool_options *o, const tool_command *c) {
    int code = rules_check(o, c);
    if (code < 0)
        code = lonely_check(o, c);
    const char *shaped = o->chat_template_file ? "--chat-template-file"
                         : o->chat_tools_file  ? "--tools"
                         : o->template_args.n  ? "--template-arg"
                                               : NULL;
    if (code < 0 && o->raw && shaped)
        code = tool_usage("%s: --raw uses no template and contradicts %s", c->name, shaped);
    return code;
}

static int arguments_parse(tool_options *o, const tool_command *c, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        int code = parse_one(o, c, argc, argv, &i);
        if (code >= 0)
            return code;
        if (o->help) {
            command_help(c);
            return tool_done(HUNCH_OK);
        }
    }
    return contradictions(o, c);
}

int tool_options_parse(tool_options *o, unsigned command, int argc, char **argv) {
    options_clear(o);
    int code = arguments_parse(o, tool_command_find(command), argc, argv);
    if (code >= 0)
        tool_options_fini(o);
    return code;
}

void tool_options_fini(tool_options *o) {
    free(o->drafts.items);
    free(o->stops.items);
    free(o->breakers.items);
    free(o->template_args.items);
    free(o->biases.items);
    free(o->rows.items);
    free(o->contexts.items);
    *o = (tool_options){0};
}

void tool_help(FILE *to) {
    fprintf(to, "hunch %s: a language model answers faster, with the same text\n\nusage: hunch COMMAND [FLAG...]\n\n",
            hunch_version());
    for (const tool_command *c = tool_commands; c->name; c++)
        fprintf(to, "  %-9s %s\n", c->name, c->summary);
    fprintf(to, "\nhunch COMMAND --help lists a command's flags; hunch --version names the version.\n"
                "A MODEL is a path, or the name of a download in the caches of Hugging Face (org/name, org/name:Q4_K_M),\n"
                "Ollama (name:tag), llama.cpp or hunch.\n"
                "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 model refused, 4 out of memory, 130 interrupted.\n");
}
