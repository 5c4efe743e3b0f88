/* SPDX-License-Identifier: Apache-2.0 */
/* text_tokens.c - see text_tokens.h. */
#include "draft/text_tokens.h"

#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/json_load.h"

enum { PIECE = 1 << 16, MOST_PIECE = 1 << 20, WINDOW = 1 << 20, MOST_LINE = 1 << 26, DEEPEST = 8 };

typedef struct reader {
    const char *path;
    const hn_tokenizer *t;
    hn_text_take take;
    void *user;
    hn_map map;
    size_t at;      /* of the file: bytes that were processed */
    char *window;   /* [cap] the next bytes: n of them, from `first` on */
    size_t first, n, cap;
    int line;       /* of rows, from 1 */
} reader;

/* ---- the file, window by window ------------------------------------------------------------------------------------------ */

static bool is_last(const reader *r) {
    return r->at + r->n == r->map.size;
}

static const char *window_text(const reader *r) {
    return r->window + r->first;
}

/* Reads more bytes after those in the window. */
static hunch_status window_grow(reader *r, hunch_error *err) {
    const size_t left = r->map.size - r->at - r->n, more = left < WINDOW ? left : WINDOW;
    if (r->n > 0) memmove(r->window, window_text(r), r->n);
    r->first = 0;
    if (!hn_grow((void **)&r->window, &r->cap, r->n + more, 1)) return hn_fail_memory(err, r->path, r->n + more);
    const hunch_status st = hn_map_read(&r->map, r->path, r->at + r->n, more, r->window + r->n, err);
    if (!st) r->n += more;
    return st;
}

static void window_drop(reader *r, size_t n) {
    r->first += n;
    r->n -= n;
    r->at += n;
}

/* ---- pieces ---------------------------------------------------------------------------------------------------------------- */

static hunch_status take_piece(const reader *r, const char *text, size_t len, bool ends, hunch_error *err) {
    int32_t *ids = NULL;
    size_t n = 0;
    hunch_status st = hn_tokenizer_encode(r->t, text, len, 0, &ids, &n, err);
    if (st && st != HUNCH_NO_MEMORY) { /* it cannot be spelled with these tokens */
        hn_error_prefix(err, "%s", r->path);
        if (err) err->status = HUNCH_REFUSED;
        st = HUNCH_REFUSED;
    }
    if (!st) st = r->take(r->user, ids, n, ends, err);
    hn_free(ids);
    return st;
}

/* Length of the next piece of a text: to the end of a line, if there is one soon; all: nothing follows. 0: more bytes are needed. */
static size_t piece_of(const char *text, size_t len, bool all) {
    const size_t most = len < MOST_PIECE ? len : MOST_PIECE;
    const char *end = most > PIECE ? memchr(text + PIECE, '\n', most - PIECE) : NULL;
    if (end) return (size_t)(end + 1 - text);
    if (len <= MOST_PIECE) return all ? len : 0;
    return hn_utf8_complete(text, MOST_PIECE);
}

/* Takes a complete text of valid UTF-8. */
static hunch_status take_text(const reader *r, const char *text, size_t len, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (size_t at = 0, n; !st && at < len; at += n) {
        n = piece_of(text + at, len - at, true);
        st = take_piece(r, text + at, n, at + n == len, err);
    }
    return st;
}

static hunch_status read_text(reader *r, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    while (!st && r->at < r->map.size) {
        const size_t n = r->n > 0 ? piece_of(window_text(r), r->n, is_last(r)) : 0;
        if (n == 0) {
            st = window_grow(r, err);
            continue;
        }
        const size_t valid = hn_utf8_check(window_text(r), n);
        if (valid < n) return hn_fail(err, HUNCH_REFUSED, "%s: not valid UTF-8 at byte %zu, expected text", r->path, r->at + valid);
        st = take_piece(r, window_text(r), n, r->at + n == r->map.size, err);
        window_drop(r, n);
    }
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------- */

static bool is_text_key(const char *key) {
    static const char *const keys[] = {"text", "content", "prompt", "completion", "response", "answer", "output", "value"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key)) return true;
    return false;
}

/* key: that of the value, also through lists. */
static hunch_status take_value(const reader *r, const char *key, const json_t *value, int depth, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    const json_t *item;
    const char *name;
    size_t i;
    if (depth > DEEPEST) return HUNCH_OK;
    if (json_is_string(value) && is_text_key(key)) return take_text(r, json_string_value(value), json_string_length(value), err);
    if (json_is_array(value))
        json_array_foreach (value, i, item)
            if (!st) st = take_value(r, key, item, depth + 1, err);
    if (hn_json_is_object(value))
        json_object_foreach ((json_t *)(uintptr_t)value, name, item)
            if (!st) st = take_value(r, name, item, depth + 1, err);
    return st;
}

static bool is_blank(const char *text, size_t len) {
    while (len > 0 && text[len - 1] && strchr(" \t\r\n", text[len - 1])) len--;
    return len == 0;
}

/* text is a part of the window: no NUL ends it. */
static hunch_status take_row(const reader *r, const char *text, size_t len, hunch_error *err) {
    json_error_t where;
    size_t held = 0;
    if (is_blank(text, len)) return HUNCH_OK;
    json_t *row = hn_json_parse(text, len, &held, &where);
    hunch_status st = HUNCH_OK;
    if (!row && json_error_code(&where) == json_error_out_of_memory)
        st = hn_fail_memory(err, r->path, 0);
    else if (!row)
        st = hn_fail(err, HUNCH_REFUSED, "%s: not readable as JSON: line %d: %s", r->path, r->line, where.text);
    else if (!hn_json_is_object(row))
        st = hn_fail(err, HUNCH_REFUSED, "%s: line %d: expected an object", r->path, r->line);
    else
        st = take_value(r, "", row, 0, err);
    json_decref(row);
    return st;
}

static hunch_status read_rows(reader *r, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    size_t seen = 0; /* bytes of the window without an end of line */
    while (!st && r->at < r->map.size) {
        const char *end = r->n > seen ? memchr(window_text(r) + seen, '\n', r->n - seen) : NULL;
        if (!end && !is_last(r)) {
            seen = r->n;
            if (seen > MOST_LINE)
                return hn_fail(err, HUNCH_REFUSED, "%s: line %d: has more than %d bytes", r->path, r->line, MOST_LINE);
            st = window_grow(r, err);
            continue;
        }
        const size_t n = end ? (size_t)(end + 1 - window_text(r)) : r->n;
        st = take_row(r, window_text(r), n, err);
        window_drop(r, n);
        seen = 0;
        r->line++;
    }
    return st;
}

bool hn_text_is_rows(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (!strcasecmp(dot, ".jsonl") || !strcasecmp(dot, ".ndjson"));
}

hunch_status hn_text_tokens(const char *path, const hn_tokenizer *t, hn_text_take take, void *user, hunch_error *err) {
    reader r = {.path = path, .t = t, .take = take, .user = user, .line = 1};
    hunch_status st = hn_map_open(&r.map, path, err);
    if (!st) st = hn_text_is_rows(path) ? read_rows(&r, err) : read_text(&r, err);
    hn_free(r.window);
    hn_map_close(&r.map);
    return st;
}
