/* SPDX-License-Identifier: Apache-2.0 */
/* tool_row_keys.c - see tool_row_keys.h. Values have the ranges of the flags: tool_flags.c. */
#include "cli/tool_row_keys.h"

#include <limits.h>
#include <string.h>

#include "base/least.h"
#include "app/tool_flags.h"
#include "cli/tool_grammar.h"
#include "app/tool_open.h"

#define AT(field) offsetof(hunch_request, field)
static const struct {
    const char *key, *flag; /* key NULL: rows have none */
    size_t at;
} keys[] = {
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, USUAL, OFF, FLAG, ...) {KEY, FLAG, AT(MEMBER)},
    HN_REQUEST_PARAMETERS(ROW)
#undef ROW
    {"max_completion_tokens", "-n", AT(max_tokens)}, /* behind max_tokens: of both it is the one that counts, as in the server */
};
enum { KEYS = sizeof keys / sizeof *keys };

static const tool_flag *flag_of(int key) {
    return tool_flag_find(keys[key].flag, strlen(keys[key].flag), TOOL_RUN);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* A zero byte would truncate it. */
static bool text_fits(const json_t *text) {
    return json_string_length(text) > 0 && strlen(json_string_value(text)) == json_string_length(text);
}

/* The index of a choice's word; -1: it is none. */
static int word_find(const tool_flag *f, const char *word) {
    for (int i = 0; word && f->choices[i]; i++)
        if (strcmp(f->choices[i], word) == 0)
            return i;
    return -1;
}

static bool value_fits(const tool_flag *f, const json_t *value) {
    if (f->kind == TOOL_SWITCH)
        return json_is_boolean(value);
    if (f->kind == TOOL_TEXT)
        return text_fits(value);
    if (f->kind == TOOL_CHOICE)
        return word_find(f, json_string_value(value)) >= 0;
    if (f->kind == TOOL_REAL || f->kind == TOOL_ABOVE)
        return json_is_number(value) && tool_in_range(f, json_number_value(value));
    if (!json_is_integer(value))
        return false;
    const json_int_t n = json_integer_value(value);
    return f->kind == TOOL_INT64 ? n >= (json_int_t)f->min
                                 : tool_in_range(f, (double)n) || (f->kind == TOOL_LIMIT && n == -1);
}

static const char *what_fits(const tool_flag *f, char *out, size_t size) {
    char words[128];
    if (f->kind == TOOL_CHOICE)
        snprintf(out, size, "one of %s", tool_choices_text(f, words, sizeof words));
    else if (f->kind == TOOL_SWITCH || f->kind == TOOL_TEXT)
        snprintf(out, size, "%s", f->kind == TOOL_SWITCH ? "true or false" : "a text that is not empty");
    else
        tool_range_text(f, out, size);
    return out;
}

/* A text, or a list of them; they belong to the row's settings. */
static int texts_take(const char ***to, int *n_to, const char *key, const json_t *value, const char *where) {
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    *to = tool_alloc(n + 1, sizeof **to);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        if (!text_fits(one))
            return tool_usage("%s: \"%s\" is not a text, or a list of texts, none of them empty", where, key);
        (*to)[(*n_to)++] = json_string_value(one);
    }
    return 0;
}

static bool is_list(int key) {
    return key >= 0 && (flag_of(key)->kind == TOOL_TEXTS || flag_of(key)->kind == TOOL_INTS);
}

static int list_take(tool_prompt *to, const char *key, json_t *value, const char *where) {
    char place[1200];
    json_object_set(to->settings, key, value);
    if (strcmp(key, "stop") == 0)
        return texts_take(&to->stops, &to->n_stops, key, value, where);
    if (strcmp(key, "drafters") == 0)
        return texts_take(&to->drafters, &to->n_drafters, key, value, where);
    snprintf(place, sizeof place, "%s: \"%s\"", where, key);
    return tool_tokens_from_json(value, place, &to->stop_tokens, &to->n_stop_tokens);
}

static int setting_take(tool_prompt *to, int key, json_t *value, const char *where) {
    char range[160], shown[100];
    const tool_flag *f = flag_of(key);
    if (!value_fits(f, value))
        return tool_usage("%s: \"%s\" is not %s, it is %s", where, keys[key].key, what_fits(f, range, sizeof range),
                          hn_json_show(value, shown, sizeof shown));
    json_object_set(to->settings, keys[key].key, value);
    return 0;
}

static int key_find(const char *name) {
    for (int i = 0; i < KEYS; i++)
        if (keys[i].key && strcmp(keys[i].key, name) == 0)
            return i;
    return -1;
}

/* Keys of the prompt itself, and descriptive keys of common prompt files, which have no effect. */
static bool is_known(const char *name) {
    static const char *const known[] = {"prompt", "messages", "tokens",      "tools", "prediction", "id",
                                        "group",  "category", "question_id", "turns", "reference"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

static void unknown_add(tool_prompts *p, const char *name, int line) {
    if (!p->unknown)
        p->unknown = json_object();
    if (!json_object_get(p->unknown, name))
        json_object_set_new(p->unknown, name, json_integer(line));
}

int tool_row_keys_take(tool_prompts *p, tool_prompt *to, json_t *row, const char *where) {
    const char *name;
    json_t *value;
    int code = 0;
    json_object_foreach(row, name, value) {
        const int key = key_find(name);
        const bool list = is_list(key);
        const int grammar = json_is_null(value) ? 0 : tool_grammar_key(name, value, where);
        if (grammar < 0)
            return HUNCH_USAGE;
        if (key < 0 && !grammar) {
            if (!is_known(name))
                unknown_add(p, name, to->line);
            continue;
        }
        if (json_is_null(value))
            continue;
        if (!to->settings)
            to->settings = json_object();
        if (grammar)
            json_object_set(to->settings, name, value);
        else if ((code = list ? list_take(to, name, value, where) : setting_take(to, key, value, where)))
            return code;
    }
    return 0;
}

void tool_row_keys_note(const tool_prompts *p, const char *path) {
    enum { MOST = 8 };
    char list[MOST * 80 + 40];
    size_t at = 0, n = 0;
    const char *name;
    json_t *line;
    if (!p->unknown || tool_quiet)
        return;
    json_object_foreach(p->unknown, name, line) {
        if (n++ < MOST)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s\"%.40s\" (line %lld)", n > 1 ? ", " : "", name,
                                   (long long)json_integer_value(line));
    }
    if (n > MOST)
        snprintf(list + at, sizeof list - at, " and %zu more", n - MOST);
    tool_message("%s: unknown %s %s: ignored", path, n > 1 ? "keys" : "key", list);
}

/* ---- a request ----------------------------------------------------------------------------------------------- */

static void setting_set(hunch_request *r, int key, const json_t *value) {
    const tool_flag *f = flag_of(key);
    void *at = (char *)r + keys[key].at;
    const json_int_t n = json_integer_value(value);
    if (f->kind == TOOL_REAL || f->kind == TOOL_ABOVE)
        *(double *)at = json_number_value(value);
    else if (f->kind == TOOL_SWITCH)
        *(bool *)at = json_is_true(value);
    else if (f->kind == TOOL_TEXT)
        *(const char **)at = json_string_value(value);
    else if (f->kind == TOOL_CHOICE)
        *(int *)at = word_find(f, json_string_value(value));
    else if (f->kind == TOOL_INT64)
        *(uint64_t *)at = n < 0 ? tool_random_seed() : (uint64_t)n;
    else
        *(int *)at = n < 0 ? 0 : (int)n;
}

void tool_row_request(hunch_request *r, const tool_prompt *p) {
    r->prompt = p->ids;
    r->n_prompt = p->n_ids;
    r->prediction = p->prediction_ids;
    r->n_prediction = p->n_prediction;
    if (p->n_stops) {
        r->stop = p->stops;
        r->n_stop = p->n_stops;
    }
    if (p->n_stop_tokens) {
        r->stop_tokens = p->stop_tokens;
        r->n_stop_tokens = (int)hn_least_size(p->n_stop_tokens, INT_MAX);
    }
    for (int i = 0; i < KEYS && p->settings; i++) {
        const json_t *value = keys[i].key ? json_object_get(p->settings, keys[i].key) : NULL;
        if (value && !is_list(i))
            setting_set(r, i, value);
    }
}

/* A drafter's name is its SPEC without a path: "ngram,depth=4", for which "ngram" is enough. */
static bool is_drafter(const char *drafter, const char *name) {
    const size_t n = strlen(name);
    return strncmp(drafter, name, n) == 0 && (drafter[n] == 0 || drafter[n] == ',');
}

hunch_status tool_row_drafters(hunch_request *r, const hunch_engine *e, const tool_options *o, const tool_prompt *p, hunch_error *err) {
    const char *const *names = p->drafters ? p->drafters : o->only_drafters.items;
    const int n = p->drafters ? p->n_drafters : o->only_drafters.n;
    if (!p->drafters && n == 0)
        return HUNCH_OK;
    r->drafters = 0;
    for (int i = 0; i < n; i++) {
        uint32_t found = 0;
        for (int d = 0; d < hunch_engine_drafters(e); d++)
            found |= is_drafter(hunch_engine_drafter_name(e, d), names[i]) ? (uint32_t)1 << d : 0;
        r->drafters |= found;
        if (found || strcmp(names[i], "none") == 0)
            continue;
        err->status = HUNCH_USAGE;
        snprintf(err->message, sizeof err->message, "drafters: \"%.100s\" is none of this engine's (\"drafters\" of a result lists them)",
                 names[i]);
        return HUNCH_USAGE;
    }
    return HUNCH_OK;
}
