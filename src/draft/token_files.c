/* SPDX-License-Identifier: Apache-2.0 */
/* token_files.c - see token_files.h. */
#include "draft/token_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "draft/text_tokens.h"
#include "base/json_load.h"
#include "format/torch_file.h"

static const size_t MOST_LIST = (size_t)64 << 20;

/* The error for a text that is not JSON. */
static hunch_status fail_json(const char *path, int line, const json_error_t *where, hunch_error *err) {
    if (json_error_code(where) == json_error_out_of_memory) return hn_fail_memory(err, path, 0);
    return hn_fail(err, HUNCH_REFUSED, "%s: not readable as JSON: line %d: %s", path, line, where->text);
}

/* ---- lists of ids ------------------------------------------------------------------------------------------------------- */

typedef struct id_list {
    const char *path;
    int vocab, n;
    int32_t *id;
    bool *seen; /* [vocab] */
} id_list;

static hunch_status add_id(id_list *l, int64_t id, hunch_error *err) {
    if (id < 0 || id >= l->vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: entry %d is token %" PRId64 ", expected 0 to %d", l->path, l->n + 1, id, l->vocab - 1);
    if (l->seen[id])
        return hn_fail(err, HUNCH_REFUSED, "%s: entry %d is token %" PRId64 ", as one before it is", l->path, l->n + 1, id);
    l->seen[id] = true;
    l->id[l->n++] = (int32_t)id; /* there is room: each occurs once */
    return HUNCH_OK;
}

static hunch_status fail_number(const id_list *l, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: entry %d is no whole number: expected token ids, likeliest first, as a list in JSON or with "
                   "white space between them", l->path, l->n + 1);
}

static hunch_status read_json(id_list *l, const char *text, size_t size, hunch_error *err) {
    json_error_t where;
    size_t held = 0;
    json_t *root = hn_json_parse(text, size, &held, &where);
    hunch_status st = HUNCH_OK;
    if (!root) return fail_json(l->path, where.line, &where, err);
    for (size_t i = 0; !st && i < json_array_size(root); i++) { /* it began with '[' */
        const json_t *id = json_array_get(root, i);
        st = json_is_integer(id) ? add_id(l, json_integer_value(id), err) : fail_number(l, err);
    }
    json_decref(root);
    return st;
}

static hunch_status read_numbers(id_list *l, const char *text, size_t size, hunch_error *err) {
    static const char space[] = " \t\r\n\f\v";
    hunch_status st = HUNCH_OK;
    for (size_t at = strspn(text, space); !st && at < size; at += strspn(text + at, space)) {
        const size_t len = strcspn(text + at, space); /* ends at a NUL, too, which is not a number */
        char *end;
        errno = 0;
        const long long id = strtoll(text + at, &end, 10);
        const bool whole = len > 0 && (size_t)(end - (text + at)) == len && !errno && strspn(text + at, "-0123456789") == len;
        st = whole ? add_id(l, id, err) : fail_number(l, err);
        at += len;
    }
    return st;
}

/* A Python list, as torch.save writes it. */
static hunch_status read_torch(id_list *l, hunch_error *err) {
    hn_map map = {0};
    hn_torch_file f;
    hunch_status st = hn_map_open(&map, l->path, err);
    if (st) return st;
    st = hn_torch_file_open(&f, &map, l->path, err);
    if (!st) {
        const hn_pickle *p = &f.dictionary;
        const hn_py *list = hn_pickle_root(p);
        if (list->kind != HN_PY_LIST)
            st = hn_fail(err, HUNCH_REFUSED, "%s: a checkpoint of PyTorch that is no list, expected a list of token ids", l->path);
        uint32_t item = list->first;
        for (uint32_t i = 0; !st && i < list->n; i++, item = p->items[item].next) {
            const hn_py *id = &p->values[p->items[item].value];
            st = id->kind == HN_PY_INT ? add_id(l, id->i, err) : fail_number(l, err);
        }
        hn_torch_file_close(&f);
    }
    hn_map_close(&map);
    return st;
}

hunch_status hn_token_file_ids(const char *path, int vocab, int32_t *id, int *n, hunch_error *err) {
    id_list l = {.path = path, .vocab = vocab, .id = id};
    char *text = NULL;
    size_t size = 0;
    hunch_status st = hn_file_read(path, MOST_LIST, &text, &size, err);
    if (st) return st;
    l.seen = hn_zalloc((size_t)vocab, sizeof *l.seen);
    const char *first = text + strspn(text, " \t\r\n");
    if (!l.seen)
        st = hn_fail_memory(err, "a list of tokens", (size_t)vocab * sizeof *l.seen);
    else if (size > 4 && !memcmp(text, "PK\3\4", 4))
        st = read_torch(&l, err);
    else
        st = *first == '[' ? read_json(&l, text, size, err) : read_numbers(&l, text, size, err);
    if (!st && l.n == 0) st = hn_fail(err, HUNCH_REFUSED, "%s: no token in it, expected a list of ids, likeliest first", path);
    *n = l.n;
    hn_free(l.seen);
    hn_free(text);
    return st;
}

/* ---- texts ---------------------------------------------------------------------------------------------------------------- */

typedef struct counter {
    uint64_t *times, all;
} counter;

static hunch_status count_tokens(void *user, const int32_t *ids, size_t n, bool ends HN_UNUSED, hunch_error *err HN_UNUSED) {
    counter *c = user;
    for (size_t i = 0; i < n; i++) c->times[ids[i]]++;
    c->all += n;
    return HUNCH_OK;
}

hunch_status hn_token_file_count(const char *path, const hn_tokenizer *t, uint64_t *times, hunch_error *err) {
    counter c = {times, 0};
    hunch_status st = hn_text_tokens(path, t, count_tokens, &c, err);
    if (!st && c.all == 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: no text in it, expected some whose tokens can be counted%s", path,
                     hn_text_is_rows(path) ? ": rows with text, prompt, content or the like" : "");
    return st;
}
