/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - see rows.h. */
#include "train/data/rows.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json_load.h"
#include "base/mem.h"

enum { MOST_FILE = 1 << 30, PIECE = 4000, RUN = 8, NEAR = 5, MOST_WRONG = 20 };

/* ---- sets of numbers --------------------------------------------------------------------------------------------------- */

/* Open addressing; 0 is not a member. */
typedef struct hn_train_runs {
    uint64_t *slot;
    size_t n, cap;
} hn_train_runs;

static bool runs_have(const hn_train_runs *s, uint64_t x) {
    if (!s || s->cap == 0) return false;
    for (size_t i = x & (s->cap - 1); s->slot[i]; i = (i + 1) & (s->cap - 1))
        if (s->slot[i] == x) return true;
    return false;
}

static void runs_put(hn_train_runs *s, uint64_t x) {
    size_t i = x & (s->cap - 1);
    while (s->slot[i] && s->slot[i] != x) i = (i + 1) & (s->cap - 1);
    s->n += !s->slot[i];
    s->slot[i] = x;
}

static hunch_status runs_add(hn_train_runs **set, uint64_t x, hunch_error *err) {
    if (!*set && !(*set = hn_zalloc(1, sizeof **set))) return hn_fail_memory(err, "a set", sizeof **set);
    hn_train_runs *s = *set;
    if (2 * (s->n + 1) > s->cap) {
        hn_train_runs more = {hn_zalloc(s->cap ? 2 * s->cap : 1024, sizeof *more.slot), 0, s->cap ? 2 * s->cap : 1024};
        if (!more.slot) return hn_fail_memory(err, "a set", more.cap * sizeof *more.slot);
        for (size_t i = 0; i < s->cap; i++)
            if (s->slot[i]) runs_put(&more, s->slot[i]);
        hn_free(s->slot);
        *s = more;
    }
    runs_put(s, x);
    return HUNCH_OK;
}

static void runs_free(hn_train_runs **s) {
    if (*s) hn_free((*s)->slot);
    hn_free(*s);
    *s = NULL;
}

/* ---- runs of words ----------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

/* The next word's hash, ignoring case; 0: the end of the text. */
static uint64_t next_word(const char **at) {
    const unsigned char *p = (const unsigned char *)*at;
    uint64_t h = 1;
    while (*p && !(isalnum(*p) || *p >= 128)) p++;
    const unsigned char *start = p;
    for (; *p && (isalnum(*p) || *p >= 128); p++) h = mix(h, (uint64_t)tolower(*p));
    *at = (const char *)p;
    return p > start ? h | 1 : 0;
}

/* Calls take for every run of RUN words. */
static hunch_status each_run(const char *text, hunch_status (*take)(void *user, uint64_t run, hunch_error *err),
                             void *user, hunch_error *err) {
    uint64_t word[RUN] = {0}, w;
    hunch_status st = HUNCH_OK;
    for (size_t n = 1; !st && (w = next_word(&text)); n++) {
        uint64_t run = 1;
        memmove(word, word + 1, (RUN - 1) * sizeof *word);
        word[RUN - 1] = w;
        for (int i = 0; i < RUN; i++) run = mix(run, word[i]);
        if (n >= RUN) st = take(user, run | 1, err);
    }
    return st;
}

static hunch_status run_add(void *user, uint64_t run, hunch_error *err) {
    return runs_add(user, run, err);
}

typedef struct count {
    const hn_train_runs *in;
    size_t all, there;
} count;

static hunch_status run_count(void *user, uint64_t run, hunch_error *err HN_UNUSED) {
    count *c = user;
    c->all++;
    c->there += runs_have(c->in, run);
    return HUNCH_OK;
}

static bool is_near(const hn_train_rows *r, const char *text) {
    count c = {.in = r->unseen};
    (void)each_run(text, run_count, &c, NULL);
    return c.all > 0 && NEAR * c.there >= c.all;
}

static uint64_t number_of(const char *text) {
    uint64_t h = 1, w;
    while ((w = next_word(&text))) h = mix(h, w);
    return h | 1;
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static hunch_status row_add(hn_train_rows *r, json_t *messages, const char *text, hunch_error *err) {
    char *copy = text ? hn_strdup(text) : NULL;
    if ((text && !copy) || !hn_grow((void **)&r->item, &r->cap, r->n + 1, sizeof *r->item)) {
        hn_free(copy);
        json_decref(messages);
        return hn_fail_memory(err, "rows to learn from", r->n);
    }
    r->item[r->n++] = (hn_train_row){messages, copy};
    return HUNCH_OK;
}

/* Owns the list. */
static hunch_status conversation_add(hn_train_rows *r, json_t *messages, hunch_error *err) {
    uint64_t number = 1;
    bool near = false;
    const json_t *m;
    size_t i;
    json_array_foreach(messages, i, m) {
        const char *content = json_string_value(json_object_get(m, "content"));
        number = mix(number, number_of(content));
        near |= is_near(r, content);
    }
    const bool twice = runs_have(r->seen, number | 1);
    r->near += near;
    r->doubles += !near && twice;
    const bool left_out = near || twice;
    hunch_status st = left_out ? HUNCH_OK : runs_add(&r->seen, number | 1, err);
    if (!st && !left_out) return row_add(r, messages, NULL, err);
    json_decref(messages);
    return st;
}

static hunch_status prompt_add(hn_train_rows *r, const char *text, const char *more, hunch_error *err) {
    json_t *messages = more && *more ? json_pack("[{s:s, s:s++}]", "role", "user", "content", text, "\n\n", more)
                                     : json_pack("[{s:s, s:s}]", "role", "user", "content", text);
    return messages ? conversation_add(r, messages, err) : hn_fail_memory(err, "a prompt", strlen(text));
}

hunch_status hn_train_rows_add_prompt(hn_train_rows *r, const char *text, hunch_error *err) {
    return prompt_add(r, text, NULL, err);
}

/* Messages up to the last one of the user; NULL: there is none, or one is not a message. */
static json_t *to_last_question(const json_t *list, const char *role_key, const char *content_key) {
    json_t *all = json_array();
    size_t i, n = 0;
    const json_t *m;
    json_array_foreach(list, i, m) {
        const char *role = json_string_value(json_object_get(m, role_key)),
                   *content = json_string_value(json_object_get(m, content_key));
        if (!role || !content) break;
        if (!strcmp(role, "human")) role = "user";
        if (!strcmp(role, "gpt")) role = "assistant";
        json_array_append_new(all, json_pack("{s:s, s:s}", "role", role, "content", content));
        if (!strcmp(role, "user")) n = i + 1;
    }
    while (json_array_size(all) > n) json_array_remove(all, json_array_size(all) - 1);
    if (n > 0) return all;
    json_decref(all);
    return NULL;
}

static const char *string_of(const json_t *row, const char *key) {
    return json_string_value(json_object_get(row, key));
}

static hunch_status row_read(hn_train_rows *r, const json_t *row, const char *path, size_t line, hunch_error *err) {
    const json_t *list = json_object_get(row, "messages"), *turns = json_object_get(row, "conversations");
    json_t *messages = list    ? to_last_question(list, "role", "content")
                       : turns ? to_last_question(turns, "from", "value")
                               : NULL;
    const char *prompt = string_of(row, "prompt");
    if (!prompt) prompt = string_of(row, "question");
    if (!prompt) prompt = string_of(row, "instruction");
    if (messages) return conversation_add(r, messages, err);
    if (prompt && *prompt) return prompt_add(r, prompt, string_of(row, "input"), err);
    if (string_of(row, "text")) return row_add(r, NULL, string_of(row, "text"), err);
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: row %zu: expected an object with messages, prompt, question, instruction or text", path, line);
}

/* ---- files ------------------------------------------------------------------------------------------------------------- */

typedef hunch_status row_taker(hn_train_rows *r, const json_t *row, const char *path, size_t line, hunch_error *err);

/* Rows that are not taken. */
typedef struct wrong_rows {
    size_t number[MOST_WRONG], n;
    hunch_error first;
} wrong_rows;

/* Keeps a refusal of a row, so that the other rows are looked at, too; other errors remain. */
static hunch_status keep_refusal(wrong_rows *w, size_t number, hunch_status st, hunch_error *err) {
    if (st != HUNCH_REFUSED) return st;
    if (w->n == 0 && err) w->first = *err;
    if (w->n < MOST_WRONG) w->number[w->n] = number;
    w->n++;
    if (err) *err = (hunch_error){0};
    return HUNCH_OK;
}

static hunch_status report_wrong(const wrong_rows *w, hunch_error *err) {
    char list[MOST_WRONG * 24];
    size_t n = 0;
    if (w->n == 0) return HUNCH_OK;
    if (w->n == 1) return hn_fail(err, HUNCH_REFUSED, "%s", w->first.message);
    for (size_t i = 0; i < w->n && i < MOST_WRONG; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%zu", i ? ", " : "", w->number[i]);
    return hn_fail(err, HUNCH_REFUSED, "%.480s; wrong are %zu rows: %s%s", w->first.message, w->n, list,
                   w->n > MOST_WRONG ? ", ..." : "");
}

static hunch_status each_row(hn_train_rows *r, char *data, const char *path, row_taker *take, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    wrong_rows wrong = {.n = 0};
    json_error_t why;
    size_t line = 0, i;
    json_t *row;
    if (data[strspn(data, " \t\r\n")] == '[') {
        json_t *list = hn_json_load(data, strlen(data), 0, &why);
        if (!list) return hn_fail(err, HUNCH_REFUSED, "%s: line %d: %s", path, why.line, why.text);
        json_array_foreach(list, i, row) if (!st) st = keep_refusal(&wrong, i + 1, take(r, row, path, i + 1, err), err);
        json_decref(list);
        return st ? st : report_wrong(&wrong, err);
    }
    for (char *at = data, *next; !st && *at; at = next) {
        const size_t n = strcspn(at, "\n");
        next = at + n + (at[n] == '\n');
        line++;
        if (strspn(at, " \t\r") >= n) continue;
        row = hn_json_load(at, n, 0, &why);
        st = row ? take(r, row, path, line, err)
                 : hn_fail(err, HUNCH_REFUSED, "%s: line %zu is not JSON: %s", path, line, why.text);
        st = keep_refusal(&wrong, line, st, err);
        json_decref(row);
    }
    return st ? st : report_wrong(&wrong, err);
}

/* Pieces that end at a paragraph. */
static hunch_status each_piece(hn_train_rows *r, char *data, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (char *at = data, *next; !st && *at; at = next) {
        char *end = strlen(at) > PIECE ? strstr(at + PIECE, "\n\n") : NULL;
        next = end ? end + 2 : at + strlen(at);
        if (end) *end = 0;
        if (at[strspn(at, " \t\r\n")]) st = row_add(r, NULL, at, err);
    }
    return st;
}

static bool is_json(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (!strcmp(dot, ".jsonl") || !strcmp(dot, ".json"));
}

hunch_status hn_train_rows_read(hn_train_rows *r, const char *path, hunch_error *err) {
    char *data;
    size_t size;
    hunch_status st = hn_file_read(path, MOST_FILE, &data, &size, err);
    if (st) return st;
    if (strlen(data) != size)
        st = hn_fail(err, HUNCH_REFUSED, "%s: byte %zu is 0, expected a text", path, strlen(data));
    else
        st = is_json(path) ? each_row(r, data, path, row_read, err) : each_piece(r, data, err);
    hn_free(data);
    return st;
}

static hunch_status strings_of(hn_train_rows *r, const json_t *v, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    const char *key;
    json_t *one;
    size_t i;
    if (json_is_string(v)) return each_run(json_string_value(v), run_add, &r->unseen, err);
    json_array_foreach(v, i, one) if (!st) st = strings_of(r, one, err);
    if (hn_json_is_object(v))
        json_object_foreach((json_t *)(uintptr_t)v, key, one) if (!st) st = strings_of(r, one, err);
    return st;
}

static hunch_status unseen_read(hn_train_rows *r, const json_t *row, const char *path HN_UNUSED, size_t line HN_UNUSED,
                                hunch_error *err) {
    return strings_of(r, row, err);
}

hunch_status hn_train_rows_leave_out(hn_train_rows *r, const char *path, hunch_error *err) {
    char *data;
    size_t size;
    hunch_status st = hn_file_read(path, MOST_FILE, &data, &size, err);
    if (st) return st;
    st = is_json(path) ? each_row(r, data, path, unseen_read, err) : each_run(data, run_add, &r->unseen, err);
    hn_free(data);
    return st;
}

void hn_train_rows_fini(hn_train_rows *r) {
    for (size_t i = 0; i < r->n; i++) {
        json_decref(r->item[i].messages);
        hn_free(r->item[i].text);
    }
    hn_free(r->item);
    runs_free(&r->seen);
    runs_free(&r->unseen);
    *r = (hn_train_rows){0};
}
