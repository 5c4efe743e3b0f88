/* SPDX-License-Identifier: Apache-2.0 */
/* tool_row_keys.c - see tool_row_keys.h. Values have the ranges of the flags: tool_flags.c. */
#include "tool_row_keys.h"

#include <string.h>

#include "tool_flags.h"
#include "tool_open.h"

#define AT(field) offsetof(hunch_request, field)
static const struct {
    const char *key, *flag;
    size_t at;
} keys[] = {
    {"max_tokens", "-n", AT(max_tokens)},
    {"max_completion_tokens", "-n", AT(max_tokens)},
    {"temperature", "--temperature", AT(sampling.temperature)},
    {"top_p", "--top-p", AT(sampling.top_p)},
    {"top_k", "--top-k", AT(sampling.top_k)},
    {"min_p", "--min-p", AT(sampling.min_p)},
    {"seed", "--seed", AT(sampling.seed)},
    {"repetition_penalty", "--repetition-penalty", AT(sampling.repetition_penalty)},
    {"presence_penalty", "--presence-penalty", AT(sampling.presence_penalty)},
    {"frequency_penalty", "--frequency-penalty", AT(sampling.frequency_penalty)},
};
enum { KEYS = sizeof keys / sizeof *keys };

static const tool_flag *flag_of(int key) {
    return tool_flag_find(keys[key].flag, strlen(keys[key].flag), TOOL_RUN);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static bool value_fits(const tool_flag *f, const json_t *value) {
    if (f->kind == TOOL_REAL || f->kind == TOOL_ABOVE)
        return json_is_number(value) && tool_in_range(f, json_number_value(value));
    if (!json_is_integer(value))
        return false;
    const json_int_t n = json_integer_value(value);
    return f->kind == TOOL_INT64 ? n >= (json_int_t)f->min
                                 : tool_in_range(f, (double)n) || (f->kind == TOOL_LIMIT && n == -1);
}

/* A text, or a list of them. A zero byte would truncate it. */
static bool stop_fits(const json_t *stop) {
    return json_string_length(stop) > 0 && strlen(json_string_value(stop)) == json_string_length(stop);
}

static int stops_take(tool_prompt *to, const json_t *stop, const char *where) {
    const size_t n = json_is_array(stop) ? json_array_size(stop) : 1;
    to->stops = tool_alloc(n, sizeof *to->stops);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(stop) ? json_array_get(stop, i) : stop;
        if (!stop_fits(one))
            return tool_usage("%s: \"stop\" is not a text, or a list of texts, none of them empty", where);
        to->stops[to->n_stops++] = json_string_value(one);
    }
    return 0;
}

static int setting_take(tool_prompt *to, int key, json_t *value, const char *where) {
    char range[160];
    const tool_flag *f = flag_of(key);
    if (!value_fits(f, value))
        return tool_usage("%s: \"%s\" is not %s", where, keys[key].key, tool_range_text(f, range, sizeof range));
    json_object_set(to->settings, keys[key].key, value);
    return 0;
}

static int key_find(const char *name) {
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].key, name) == 0)
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
        const bool stop = strcmp(name, "stop") == 0;
        if (key < 0 && !stop) {
            if (!is_known(name))
                unknown_add(p, name, to->line);
            continue;
        }
        if (json_is_null(value))
            continue;
        if (!to->settings)
            to->settings = json_object();
        if (stop)
            json_object_set(to->settings, name, value);
        if ((code = stop ? stops_take(to, value, where) : setting_take(to, key, value, where)))
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
    for (int i = 0; i < KEYS && p->settings; i++) {
        const json_t *value = json_object_get(p->settings, keys[i].key);
        if (value)
            setting_set(r, i, value);
    }
}
