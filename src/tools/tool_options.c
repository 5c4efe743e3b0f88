/* SPDX-License-Identifier: Apache-2.0 */
/* tool_options.c - see tool_options.h. Numbers are strict: the whole argument, within its range. Owns no meaning of a
 * flag beyond its type; what a command does with one stands in cmd_*.c. */
#include "tool_options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, INT, INT64, REAL, CHOICE, TEXTS, INTS };

typedef struct option {
    const char *name, *alias; /* with their dashes */
    enum kind kind;
    size_t at; /* offset in tool_options */
    unsigned commands;
    double min, max;            /* INT, INT64, REAL, INTS */
    const char *const *choices; /* CHOICE: accepted words, then NULL */
    const char *const *later;   /* CHOICE: words of the language that this build does not have, then NULL */
    const char *value, *help;
} option;

static const char *const kv_names[] = {"default", "bf16", "f16", "f32", NULL}; /* in the order of hunch_kv */
static const char *const kv_later[] = {"q8_0", NULL};
static const char *const precision_names[] = {"native", "f32", NULL};
static const char *const verify_names[] = {"default", "greedy", "match", NULL}; /* in the order of hunch_verify */
static const char *const verify_later[] = {"ratio", "block", "traversal", NULL};
static const char *const color_names[] = {"auto", "always", "never", NULL};

enum {
    PROMPTED = TOOL_RUN | TOOL_COMPARE,
    TEXTED = TOOL_RUN | TOOL_COMPARE | TOOL_LOGITS | TOOL_SCORE,
    ENGINED = TEXTED | TOOL_BENCH,
    LOADED = ENGINED | TOOL_TOKENIZE,
    ALL = LOADED | TOOL_INSPECT | TOOL_CONVERT
};

#define AT(field) offsetof(tool_options, field)
static const option options[] = {
    {"--model", "-m", TEXT, AT(model), ALL, 0, 0, NULL, NULL, "MODEL", "a GGUF file or a Hugging Face folder"},
    {"--prompt", "-p", TEXT, AT(prompt), TEXTED | TOOL_TOKENIZE, 0, 0, NULL, NULL, "TEXT", "the text; - reads standard input"},
    {"--file", "-f", TEXT, AT(file), TEXTED | TOOL_TOKENIZE, 0, 0, NULL, NULL, "FILE", "the text from a file (prompts: text or JSON lines)"},
    {"--prompt-tokens", "--tokens", TEXT, AT(tokens_file), TEXTED, 0, 0, NULL, NULL, "FILE", "token ids, a JSON array; no template, no BOS added"},
    {"--raw", NULL, FLAG, AT(raw), PROMPTED, 0, 0, NULL, NULL, NULL, "text without the chat template"},
    {"--output", "-o", TEXT, AT(output), TOOL_LOGITS | TOOL_CONVERT, 0, 0, NULL, NULL, "FILE", "the file to write"},
    {"-n", NULL, INT, AT(n), PROMPTED, 1, INT_MAX, NULL, NULL, "N", "at most N new tokens (run 512, compare 200)"},
    {"--ignore-eos", NULL, FLAG, AT(ignore_eos), PROMPTED, 0, 0, NULL, NULL, NULL, "do not stop at the end-of-sequence token"},
    {"--stop", NULL, TEXTS, AT(stops), PROMPTED, 0, 0, NULL, NULL, "TEXT", "end the text before TEXT (repeatable)"},
    {"--draft", NULL, TEXTS, AT(drafts), PROMPTED, 0, 0, NULL, NULL, "SPEC", "KIND[,key=value...]: none, auto, ngram, forced (repeatable; A+B draft together); default auto = ngram"},
    {"--verify", NULL, CHOICE, AT(verify), PROMPTED, 0, 0, verify_names, verify_later, "RULE", "greedy or match; default: greedy at temperature 0, else match"},
    {"--temperature", NULL, REAL, AT(temperature), PROMPTED, 0, 1000, NULL, NULL, "T", "0 is greedy; default: the model's, else 0"},
    {"--top-k", NULL, INT, AT(top_k), PROMPTED, 0, INT_MAX, NULL, NULL, "K", "keep the K likeliest tokens; 0 is off"},
    {"--top-p", NULL, REAL, AT(top_p), PROMPTED, 0, 1, NULL, NULL, "P", "keep the likeliest tokens that hold P; 1 is off"},
    {"--min-p", NULL, REAL, AT(min_p), PROMPTED, 0, 1, NULL, NULL, "P", "drop tokens below P times the likeliest; 0 is off"},
    {"--seed", NULL, INT64, AT(seed), PROMPTED, 0, 9223372036854775807.0, NULL, NULL, "S", "of the random streams; default: random, and reported"},
    {"--samples", NULL, INT, AT(samples), TOOL_RUN, 1, INT_MAX, NULL, NULL, "N", "N answers with seeds S, S+1, ... (with --json-lines)"},
    {"--cold", NULL, FLAG, AT(cold), TOOL_COMPARE, 0, 0, NULL, NULL, NULL, "empty what drafters learned before each prompt"},
    {"--show", NULL, FLAG, AT(show), TOOL_COMPARE, 0, 0, NULL, NULL, NULL, "show the answers side by side, coloured by who proposed each token"},
    {"--rows", NULL, INTS, AT(rows), TOOL_BENCH, 1, 64, NULL, NULL, "LIST", "rows of a pass, default 1,2,3,4,6,8,12,16,32,64"},
    {"--contexts", NULL, INTS, AT(contexts), TOOL_BENCH, 0, INT_MAX, NULL, NULL, "LIST", "committed rows before the pass, default 256,2048"},
    {"--template", NULL, TEXT, AT(template_file), TOOL_TOKENIZE, 0, 0, NULL, NULL, "FILE", "a chat template to render, instead of the model's"},
    {"--messages", NULL, TEXT, AT(messages_file), TOOL_TOKENIZE, 0, 0, NULL, NULL, "FILE", "variables of the template: a JSON object with \"messages\""},
    {"--text", NULL, FLAG, AT(text_only), TOOL_TOKENIZE, 0, 0, NULL, NULL, NULL, "print the rendered text, not its ids (needs no model)"},
    {"--now", NULL, TEXT, AT(now), TOOL_TOKENIZE, 0, 0, NULL, NULL, "TIME", "the template's clock, \"YYYY-MM-DD HH:MM:SS\""},
    {"--parallel", NULL, INT, AT(parallel), PROMPTED | TOOL_BENCH, 1, 1024, NULL, NULL, "N", "sequences at once, default 1"},
    {"--threads", NULL, INT, AT(threads), LOADED, 1, 256, NULL, NULL, "N", "default: the cores this process may use"},
    {"--isa", NULL, TEXT, AT(isa), LOADED, 0, 0, NULL, NULL, "LEVEL", "ref, avx2, avx512 or best"},
    {"--precision", NULL, CHOICE, AT(precision), LOADED, 0, 0, precision_names, NULL, "MODE", "native, or f32 as the published reference computes"},
    {"--kv", NULL, CHOICE, AT(kv), ENGINED, 0, 0, kv_names, kv_later, "TYPE", "bf16, f16 or f32; default bf16, with --precision f32 f32"},
    {"--context", NULL, INT, AT(context), ENGINED, 1, INT_MAX, NULL, NULL, "ROWS", "rows a sequence may hold (score: of a window)"},
    {"--chunk", NULL, INT, AT(chunk), ENGINED, 1, 64, NULL, NULL, "N", "rows of prefill a pass, 1 to 64"},
    {"--json", NULL, FLAG, AT(json), ALL, 0, 0, NULL, NULL, NULL, "JSON on standard output, everything else on standard error"},
    {"--json-lines", NULL, FLAG, AT(json_lines), TOOL_RUN | TOOL_TOKENIZE, 0, 0, NULL, NULL, NULL, "one JSON object a line"},
    {"--csv", NULL, FLAG, AT(csv), TOOL_BENCH, 0, 0, NULL, NULL, NULL, "comma-separated values on standard output"},
    {"--color", NULL, CHOICE, AT(color), ALL, 0, 0, color_names, NULL, "WHEN", "auto, always or never; NO_COLOR is honoured"},
    {"--help", "-h", FLAG, AT(help), ALL, 0, 0, NULL, NULL, NULL, "this text"},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

/* ---- nearest names ------------------------------------------------------------------------------------------- */

static size_t min3(size_t a, size_t b, size_t c) {
    return a < b ? (a < c ? a : c) : b < c ? b : c;
}

/* Edit distance (insert, delete, replace: 1 each) of two words below 64 letters. */
static size_t distance(const char *a, const char *b) {
    size_t row[64], na = strlen(a), nb = strlen(b);
    if (na >= 64 || nb >= 64)
        return 64;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[nb];
}

const char *tool_nearest(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t least = 64;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, names[i]);
        /* A name that begins with what was typed is near however long its rest. */
        if (strlen(word) >= 4 && strncmp(word, names[i], strlen(word)) == 0)
            d = 1;
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return least <= 2 + strlen(word) / 4 ? best : NULL;
}

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

/* ---- values -------------------------------------------------------------------------------------------------- */

static bool number_begins(const char *s) {
    return (*s >= '0' && *s <= '9') || *s == '-' || *s == '.';
}

static bool parse_int64(const char *s, int64_t *out) {
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    *out = v;
    return number_begins(s) && *end == 0 && end != s && errno == 0;
}

static bool parse_real(const char *s, double *out) {
    char *end;
    *out = strtod(s, &end);
    return number_begins(s) && !strpbrk(s, "xX") && *end == 0 && end != s && isfinite(*out);
}

static int bad_number(const tool_command *c, const option *o, const char *name, const char *s) {
    const char *what = o->kind == REAL ? "a number" : o->kind == INTS ? "a list of whole numbers" : "a whole number";
    if (o->max >= INT_MAX)
        return tool_usage("%s: %s %s is not %s of at least %.0f", c->name, name, s, what, o->min);
    return tool_usage("%s: %s %s is not %s from %g to %g", c->name, name, s, what, o->min, o->max);
}

static int set_ints(const tool_command *c, const option *o, const char *name, const char *s, tool_ints *list) {
    size_t room = 1;
    for (const char *p = s; *p; p++)
        room += *p == ',';
    free(list->items);
    *list = (tool_ints){tool_alloc(room, sizeof(int)), 0};
    for (const char *p = s;;) {
        char word[16];
        size_t len = strcspn(p, ",");
        int64_t v;
        if (len == 0 || len >= sizeof word)
            return bad_number(c, o, name, s);
        memcpy(word, p, len);
        word[len] = 0;
        if (!parse_int64(word, &v) || v < (int64_t)o->min || v > (int64_t)o->max)
            return bad_number(c, o, name, s);
        list->items[list->n++] = (int)v;
        if (p[len] == 0)
            return -1;
        p += len + 1;
    }
}

static int set_choice(const tool_command *c, const option *o, const char *name, const char *s, int *out) {
    for (int i = 0; o->choices[i]; i++)
        if (strcmp(s, o->choices[i]) == 0 && strcmp(s, "default") != 0) {
            *out = i;
            return -1;
        }
    for (int i = 0; o->later && o->later[i]; i++)
        if (strcmp(s, o->later[i]) == 0)
            return tool_usage("%s: %s %s is not available in this build: %s", c->name, name, s, o->help);
    return tool_usage("%s: %s %s is unknown: %s", c->name, name, s, o->help);
}

static int set_value(const tool_command *c, const option *o, const char *name, const char *s, tool_options *to) {
    void *at = (char *)to + o->at;
    int64_t v;
    double r;
    switch (o->kind) {
    case FLAG:
        *(bool *)at = true;
        return -1;
    case TEXT:
        *(const char **)at = s;
        return -1;
    case INT:
        if (!parse_int64(s, &v) || v < (int64_t)o->min || v > (int64_t)o->max)
            return bad_number(c, o, name, s);
        *(int *)at = (int)v;
        return -1;
    case INT64:
        if (!parse_int64(s, &v) || v < 0)
            return bad_number(c, o, name, s);
        *(int64_t *)at = v;
        return -1;
    case REAL:
        if (!parse_real(s, &r) || r < o->min || r > o->max)
            return bad_number(c, o, name, s);
        *(double *)at = r;
        return -1;
    case CHOICE:
        return set_choice(c, o, name, s, at);
    case TEXTS: {
        tool_texts *list = at;
        size_t cap = (size_t)list->n;
        list->items = tool_grow(list->items, &cap, (size_t)list->n + 1, sizeof *list->items);
        list->items[list->n++] = s;
        return -1;
    }
    default:
        return set_ints(c, o, name, s, at);
    }
}

/* ---- the parser ---------------------------------------------------------------------------------------------- */

static void options_clear(tool_options *o) {
    *o = (tool_options){.n = TOOL_UNSET, .top_k = TOOL_UNSET, .threads = TOOL_UNSET, .context = TOOL_UNSET,
                        .kv = TOOL_UNSET, .precision = TOOL_UNSET, .verify = TOOL_UNSET, .chunk = TOOL_UNSET,
                        .parallel = TOOL_UNSET, .samples = TOOL_UNSET, .color = TOOL_COLOR_AUTO, .seed = TOOL_UNSET,
                        .temperature = NAN, .top_p = NAN, .min_p = NAN};
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
                 o->value ? " " : "", o->value ? o->value : "");
        printf("  %-32s %s\n", left, o->help);
    }
    if (c->notes)
        printf("\n%s", c->notes);
}

static int parse_one(tool_options *o, const tool_command *c, int argc, char **argv, int *i) {
    const char *arg = argv[*i], *equals = strchr(arg, '=');
    if (arg[0] != '-' || arg[1] == 0) {
        if (!(c->bit & TOOL_INSPECT) || o->positional)
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
    if (found->kind != FLAG && !value) {
        if (*i + 1 >= argc)
            return tool_usage("%s: %s needs a value: %s", c->name, name, found->help);
        value = argv[++*i];
    }
    return set_value(c, found, name, value, o);
}

int tool_options_parse(tool_options *o, unsigned command, int argc, char **argv) {
    const tool_command *c = tool_command_find(command);
    options_clear(o);
    for (int i = 1; i < argc; i++) {
        int code = parse_one(o, c, argc, argv, &i);
        if (code >= 0) {
            tool_options_fini(o);
            return code;
        }
        if (o->help) {
            command_help(c);
            tool_options_fini(o);
            return tool_done(HUNCH_OK);
        }
    }
    return -1;
}

void tool_options_fini(tool_options *o) {
    free(o->drafts.items);
    free(o->stops.items);
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
                "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 model refused, 4 out of memory, 130 interrupted.\n");
}
