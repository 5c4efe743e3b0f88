/* SPDX-License-Identifier: Apache-2.0 */
/* tool_options.c - see tool_options.h. Numbers are strict: the whole argument, within its range. Knows only the types
 * of flags; their meaning is in cmd_*.c. */
#include "app/tool_options.h"

#include "base/least.h"
#include "app/tool_flags.h"
#include "app/tool_foreign.h"
#include "app/tool_check_files.h"
#include "app/tool_help.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- values -------------------------------------------------------------------------------------------------- */

static int unknown_flag(const char *flag, const tool_command *c) {
    const tool_foreign *other = tool_foreign_flag(flag);
    if (other && !other->ours)
        return tool_usage("%s: there is no %s: %s", c->name, flag, other->note);
    if (other && tool_flag_find(other->ours, strlen(other->ours), c->bit))
        return tool_usage("%s: unknown flag %s, did you mean %s?", c->name, flag, other->ours);
    const char *near = tool_flag_near(flag, c->bit);
    if (near)
        return tool_usage("%s: unknown flag %s, did you mean %s?", c->name, flag, near);
    return tool_usage("%s: unknown flag %s, see hunch %s --help", c->name, flag, c->name);
}

static int bad_number(const tool_command *c, const tool_flag *o, const char *name, const char *s) {
    char range[160], shown[TOOL_SHOWN];
    return tool_usage("%s: %s %s is not %s", c->name, name, tool_value_shown(s, shown), tool_range_text(o, range, sizeof range));
}

static int set_ints(const tool_command *c, const tool_flag *o, const char *name, const char *s, tool_ints *list) {
    size_t room = 1;
    for (const char *p = s; *p; p++)
        room += *p == ',';
    hn_free(list->items);
    list->items = tool_alloc(room, sizeof(int));
    list->n = tool_parse_ints(s, (int64_t)o->min, (int64_t)o->max, list->items);
    return list->n ? -1 : bad_number(c, o, name, s);
}

static int add_bias(const tool_command *c, const char *name, const char *s, tool_biases *list) {
    hunch_bias bias;
    char shown[TOOL_SHOWN];
    if (!tool_parse_bias(s, &bias))
        return tool_usage("%s: %s %s is not ID=BIAS: a token id, 0 to %d, and a number, %g to %g, or -inf", c->name, name,
                          tool_value_shown(s, shown), INT32_MAX, -DBL_MAX, DBL_MAX);
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

static int set_choice(const tool_command *c, const tool_flag *o, const char *name, const char *s, void *at) {
    char words[128], shown[TOOL_SHOWN];
    for (int i = 0; o->choices[i]; i++)
        if (strcmp(s, o->choices[i]) == 0 && strcmp(s, "default") != 0) {
            if (o->kind == TOOL_WORD)
                *(const char **)at = s;
            else
                *(int *)at = i;
            return -1;
        }
    const char *near = tool_choice_near(o, s);
    tool_choices_text(o, words, sizeof words);
    tool_value_shown(s, shown);
    return near ? tool_usage("%s: %s %s is unknown, did you mean %s? (%s)", c->name, name, shown, near, words)
                : tool_usage("%s: %s %s is unknown: expected %s", c->name, name, shown, words);
}

static int set_integer(const tool_command *c, const tool_flag *o, const char *name, const char *s, void *at) {
    int64_t v;
    const bool whole = tool_parse_int64(s, &v), none = whole && o->kind == TOOL_LIMIT && v == -1;
    if (!none && (!whole || v < (int64_t)o->min || (o->kind != TOOL_INT64 && v > (int64_t)o->max)))
        return bad_number(c, o, name, s);
    if (o->kind == TOOL_INT64)
        *(int64_t *)at = v;
    else
        *(int *)at = none ? 0 : (int)v;
    return -1;
}

static int set_real(const tool_command *c, const tool_flag *o, const char *name, const char *s, double *at) {
    double r[2] = {0};
    bool pair = o->kind == TOOL_PAIR;
    if (!(pair ? tool_parse_pair(s, r) : tool_parse_real(s, r)) || !tool_in_range(o, r[0]) ||
        (pair && !tool_in_range(o, r[1])))
        return bad_number(c, o, name, s);
    at[0] = r[0];
    if (pair)
        at[1] = r[1];
    return -1;
}

static int add_real(const tool_command *c, const tool_flag *o, const char *name, const char *s, tool_reals *list) {
    double x;
    const int code = set_real(c, o, name, s, &x);
    if (code >= 0)
        return code;
    size_t cap = (size_t)list->n;
    list->items = tool_grow(list->items, &cap, (size_t)list->n + 1, sizeof *list->items);
    list->items[list->n++] = x;
    return -1;
}

static int set_value(const tool_command *c, const tool_flag *o, const char *name, const char *s, tool_options *to) {
    void *at = (char *)to + o->at;
    switch (o->kind) {
    case TOOL_SWITCH:
        *(bool *)at = true;
        return -1;
    case TOOL_TEXT:
    case TOOL_PLACE:
        *(const char **)at = s;
        return -1;
    case TOOL_COUNT:
    case TOOL_INT:
    case TOOL_LIMIT:
    case TOOL_INT64:
        return set_integer(c, o, name, s, at);
    case TOOL_REAL:
    case TOOL_ABOVE:
    case TOOL_PAIR:
        return set_real(c, o, name, s, at);
    case TOOL_CHOICE:
    case TOOL_WORD:
        return set_choice(c, o, name, s, at);
    case TOOL_TEXTS:
        return add_text(at, s);
    case TOOL_REALS:
        return add_real(c, o, name, s, at);
    case TOOL_BIASES:
        return add_bias(c, name, s, at);
    default:
        return set_ints(c, o, name, s, at);
    }
}

/* ---- the parser ---------------------------------------------------------------------------------------------- */

void tool_option_unset(tool_options *o, const tool_flag *f) {
    void *at = (char *)o + f->at;
    switch (f->kind) {
    case TOOL_SWITCH:
        *(bool *)at = false;
        break;
    case TOOL_TEXT:
    case TOOL_PLACE:
    case TOOL_WORD:
        *(const char **)at = NULL;
        break;
    case TOOL_COUNT:
    case TOOL_INT:
    case TOOL_LIMIT:
    case TOOL_CHOICE:
        *(int *)at = TOOL_UNSET;
        break;
    case TOOL_INT64:
        *(int64_t *)at = TOOL_UNSET;
        break;
    case TOOL_PAIR:
        ((double *)at)[1] = NAN;
        __attribute__((fallthrough));
    case TOOL_REAL:
    case TOOL_ABOVE:
        *(double *)at = NAN;
        break;
    case TOOL_TEXTS:
        *(tool_texts *)at = (tool_texts){0};
        break;
    case TOOL_INTS:
        *(tool_ints *)at = (tool_ints){0};
        break;
    case TOOL_REALS:
        *(tool_reals *)at = (tool_reals){0};
        break;
    case TOOL_BIASES:
        *(tool_biases *)at = (tool_biases){0};
        break;
    }
}

void tool_option_free(tool_options *o, const tool_flag *f) {
    void *at = (char *)o + f->at;
    if (f->kind == TOOL_TEXTS)
        hn_free(((tool_texts *)at)->items);
    else if (f->kind == TOOL_INTS)
        hn_free(((tool_ints *)at)->items);
    else if (f->kind == TOOL_REALS)
        hn_free(((tool_reals *)at)->items);
    else if (f->kind == TOOL_BIASES)
        hn_free(((tool_biases *)at)->items);
}

int tool_option_set(tool_options *o, const tool_flag *f, const char *name, const char *value) {
    return set_value(tool_command_find(o->command), f, name, value, o);
}

static void options_clear(tool_options *o) {
    *o = (tool_options){0};
    for (int i = 0; i < tool_n_flags; i++)
        tool_option_unset(o, &tool_flags[i]);
    o->color = TOOL_COLOR_AUTO;
}

/* Positional arguments, assigned at the end (arguments_place). */
typedef struct words {
    tool_texts list;
    bool flags_end; /* "--" was given */
} words;

static bool takes_more(const char *argument) {
    return strcmp(argument, "FILES") == 0;
}

static int word_take(words *w, const tool_command *c, const char *word) {
    int most = 0;
    while (most < TOOL_MOST_ARGUMENTS && c->arguments[most])
        most++;
    if (w->list.n == most && !(most && takes_more(c->arguments[most - 1])))
        return tool_usage("%s: unexpected argument %s, see hunch %s --help", c->name, word, c->name);
    return add_text(&w->list, word);
}

/* Assigns each word to the first of the command's arguments that no flag has set. */
static int arguments_place(tool_options *o, const tool_command *c, const tool_texts *w) {
    int at = 0;
    for (int i = 0; i < TOOL_MOST_ARGUMENTS && c->arguments[i]; i++) {
        const bool text = strcmp(c->arguments[i], "TEXT") == 0;
        const bool model = strcmp(c->arguments[i], "MODEL") == 0 || strcmp(c->arguments[i], "FOLDER") == 0;
        const char **to = text ? &o->prompt : model ? &o->model : &o->positional;
        if (takes_more(c->arguments[i]))
            while (at < w->n)
                add_text(&o->words, w->items[at++]);
        else if (at < w->n && !*to && !(text && (o->file || o->tokens_file)))
            *to = w->items[at++];
    }
    if (at == w->n)
        return -1;
    return tool_usage("%s: unexpected argument %s: %s", c->name, w->items[at],
                      o->prompt || o->file || o->tokens_file ? "model and text are there already"
                                                             : "the model is there already");
}

/* The bytes of an argument that name a flag: those before =, and the first two of a number that follows a short flag directly (-n3). */
static size_t name_length(const char *arg, const tool_command *c) {
    const size_t before = strcspn(arg, "=");
    const tool_flag *shorter = arg[1] == '-' ? NULL : tool_flag_find(arg, 2, c->bit);
    const bool number = shorter && (shorter->kind == TOOL_INT || shorter->kind == TOOL_LIMIT);
    return number && strchr("-0123456789", arg[2]) ? 2 : before;
}

static int parse_one(tool_options *o, const tool_command *c, int argc, char **argv, int *i, words *w) {
    const char *arg = argv[*i];
    if (strcmp(arg, "--") == 0 && !w->flags_end) {
        w->flags_end = true;
        return -1;
    }
    if (arg[0] != '-' || arg[1] == 0 || w->flags_end)
        return word_take(w, c, arg);
    char name[64];
    const size_t len = name_length(arg, c);
    snprintf(name, sizeof name, "%.*s", (int)hn_least_size(len, 63), arg);
    const tool_flag *found = tool_flag_find(arg, len, c->bit);
    if (!found)
        return unknown_flag(name, c);
    const char *value = len < strlen(arg) ? arg + len + (arg[len] == '=') : NULL;
    if (found->kind == TOOL_SWITCH && value)
        return tool_usage("%s: %s takes no value", c->name, name);
    if (found->kind == TOOL_PLACE && !value)
        value = "-";
    if (found->kind == TOOL_COUNT && !value)
        value = "0";
    if (found->kind != TOOL_SWITCH && !value) {
        if (*i + 1 >= argc)
            return tool_usage("%s: %s needs a value, %s: %s", c->name, name, found->value, found->help);
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
    const bool not_exact = o->verify == HUNCH_VERIFY_RATIO || o->verify == HUNCH_VERIFY_BLOCK || o->verify == HUNCH_VERIFY_TRAVERSAL;
    if (o->verify_exact && (rule || not_exact))
        return tool_usage("%s: --verify-exact contradicts %s%s: a text is that of plain decoding under greedy and match alone", c->name,
                          rule ? rule : "--verify ", rule ? "" : tool_verify_names[o->verify]);
    if (rule && o->verify != TOOL_UNSET)
        return tool_usage("%s: %s contradicts --verify, which names a lossless rule: give one of them", c->name, rule);
    return -1;
}

/* Flags that have no effect alone. */
static int no_effect_check(const tool_options *o, const tool_command *c) {
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
        code = no_effect_check(o, c);
    const char *shaped = o->chat_template_file ? "--chat-template-file"
                         : o->chat_tools_file  ? "--tools"
                         : o->template_args.n  ? "--template-arg"
                                               : NULL;
    if (code < 0 && o->raw && shaped)
        code = tool_usage("%s: --raw uses no template and contradicts %s", c->name, shaped);
    if (code < 0 && o->output && tool_is_standard(o->output) && o->json)
        code = tool_usage("%s: -o - and --json would both write to standard output: give one", c->name);
    return code;
}

int tool_options_check(const tool_options *o) {
    return contradictions(o, tool_command_find(o->command));
}

static int arguments_read(tool_options *o, const tool_command *c, int argc, char **argv, words *w) {
    for (int i = 1; i < argc; i++) {
        int code = parse_one(o, c, argc, argv, &i, w);
        if (code >= 0)
            return code;
        if (o->help) {
            tool_help_command(c, strcmp(argv[i], "-h") == 0, o->color);
            return tool_done(HUNCH_OK);
        }
    }
    const int code = arguments_place(o, c, &w->list);
    return code < 0 ? contradictions(o, c) : code;
}

static int arguments_parse(tool_options *o, const tool_command *c, int argc, char **argv) {
    words w = {0};
    const int code = arguments_read(o, c, argc, argv, &w);
    hn_free(w.list.items);
    return code < 0 ? tool_check_files(o, c) : code;
}

int tool_options_parse(tool_options *o, unsigned command, int argc, char **argv) {
    options_clear(o);
    o->command = command;
    int code = arguments_parse(o, tool_command_find(command), argc, argv);
    if (code >= 0)
        tool_options_fini(o);
    else
        tool_quiet = o->quiet;
    return code;
}

void tool_options_fini(tool_options *o) {
    for (const tool_flag *f = tool_flags; f < tool_flags + tool_n_flags; f++) {
        tool_option_free(o, f);
        tool_option_unset(o, f); /* another flag may have the same place */
    }
    hn_free(o->words.items);
    *o = (tool_options){0};
}
