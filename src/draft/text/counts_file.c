/* SPDX-License-Identifier: Apache-2.0 */
/* counts_file.c - see counts_file.h. Files are untrusted: everything is checked before use. */
#include "draft/text/counts_file.h"

#include "base/file.h"
#include "base/file_out.h"
#include "base/mem.h"

enum { HEAD = (HN_COUNTS_N + 1) * 4, PAIR = 8, LOOK = 64 << 10 };

static int32_t number_at(const unsigned char *p) {
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    hn_counts *x;
    const char *path;
    const unsigned char *data;
    size_t size, at;
    int min, max, vocab;
} reader;

static hunch_status damaged(const reader *r, size_t at, hunch_error *err, const char *what) {
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: %s at byte %zu, expected a lookup cache (n-grams and counts) of this vocabulary of %d", r->path,
                   what, at, r->vocab);
}

/* Reads the n-gram; *n tokens. */
static hunch_status gram_read(const reader *r, int32_t gram[HN_COUNTS_N], int *n, hunch_error *err) {
    *n = 0;
    for (int i = 0; i < HN_COUNTS_N; i++) {
        gram[i] = number_at(r->data + r->at + 4 * i);
        if (gram[i] == -1) continue;
        if (gram[i] < 0 || gram[i] >= r->vocab)
            return damaged(r, r->at + 4 * (size_t)i, err, "a token id outside the vocabulary");
        if (*n != i) return damaged(r, r->at + 4 * (size_t)i, err, "an n-gram with a hole");
        ++*n;
    }
    return *n > 0 ? HUNCH_OK : damaged(r, r->at, err, "an n-gram without tokens");
}

static hunch_status pairs_read(const reader *r, const int32_t gram[HN_COUNTS_N], size_t at, int n_pairs, bool keep,
                               hunch_error *err) {
    for (int i = 0; i < n_pairs; i++, at += PAIR) {
        const int32_t token = number_at(r->data + at), count = number_at(r->data + at + 4);
        if (token < 0 || token >= r->vocab) return damaged(r, at, err, "a token id outside the vocabulary");
        if (count < 1) return damaged(r, at + 4, err, "a count below 1");
        if (!keep) continue;
        const hn_counts_entry *e = i > 0 ? hn_counts_find(r->x, gram) : NULL;
        if (e && hn_counts_pair_of(r->x, e, token)) return damaged(r, at, err, "a token that follows its n-gram twice");
        if (!hn_counts_add(r->x, gram, token, (uint32_t)count))
            return hn_fail_memory(err, r->path, hn_counts_bytes(r->x));
    }
    return HUNCH_OK;
}

static hunch_status record_read(reader *r, hunch_error *err) {
    int32_t gram[HN_COUNTS_N];
    int n;
    if (r->size - r->at < HEAD) return damaged(r, r->at, err, "a record that is cut off");
    hunch_status st = gram_read(r, gram, &n, err);
    if (st) return st;
    const int32_t n_pairs = number_at(r->data + r->at + 4 * HN_COUNTS_N);
    const size_t pairs_at = r->at + HEAD;
    if (n_pairs < 1) return damaged(r, pairs_at - 4, err, "an n-gram that nothing follows");
    if ((size_t)n_pairs > (r->size - pairs_at) / PAIR)
        return damaged(r, pairs_at - 4, err, "more pairs than the file holds");
    const bool keep = n >= r->min && n <= r->max;
    if (keep && hn_counts_find(r->x, gram)) return damaged(r, r->at, err, "an n-gram that is there twice");
    r->at = pairs_at + (size_t)n_pairs * PAIR;
    return pairs_read(r, gram, pairs_at, n_pairs, keep, err);
}

hunch_status hn_counts_read(hn_counts *x, const char *path, int min, int max, int vocab, hunch_error *err) {
    hn_map map;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    st = hn_map_copy_head(&map, path, map.size, err);
    reader r = {x, path, map.data, map.size, 0, min, max, vocab};
    while (!st && r.at < r.size) st = record_read(&r, err);
    hn_map_close(&map);
    return st;
}

/* ---- what kind of file it is --------------------------------------------------------------------------------------- */

/* One record of the beginning of a file of `size` bytes, whose pairs may go on after that beginning. */
static hunch_status record_look(reader *r, size_t size, hunch_error *err) {
    int32_t gram[HN_COUNTS_N];
    int n;
    hunch_status st = gram_read(r, gram, &n, err);
    if (st) return st;
    const int32_t n_pairs = number_at(r->data + r->at + 4 * HN_COUNTS_N);
    const size_t pairs_at = r->at + HEAD, here = (r->size - pairs_at) / PAIR;
    if (n_pairs < 1 || (size_t)n_pairs > (size - pairs_at) / PAIR)
        return damaged(r, pairs_at - 4, err, "a number of pairs that it does not hold");
    r->at = pairs_at + (size_t)n_pairs * PAIR;
    return pairs_read(r, gram, pairs_at, (size_t)n_pairs < here ? n_pairs : (int)here, false, err);
}

hunch_status hn_counts_file_check(const char *path, hunch_error *err) {
    hn_map map;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    const size_t n = map.size < LOOK ? map.size : LOOK;
    unsigned char *begin = hn_alloc(n ? n : 1);
    st = begin ? hn_map_read(&map, path, 0, n, begin, err) : hn_fail_memory(err, path, n);
    reader r = {.path = path, .data = begin, .size = n, .vocab = INT32_MAX};
    while (!st && r.at < n && n - r.at >= HEAD) st = record_look(&r, map.size, err);
    const bool ends_within = r.at < n && n == map.size;
    if (st == HUNCH_REFUSED || (!st && ends_within)) st = hn_fail(err, HUNCH_REFUSED, "%s: not a lookup cache (n-grams and counts)", path);
    hn_free(begin);
    hn_map_close(&map);
    return st;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static hunch_status number_put(hn_out *o, uint32_t v, hunch_error *err) {
    const unsigned char b[4] = {(unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
                                (unsigned char)(v >> 24)};
    return hn_out_write(o, b, sizeof b, err);
}

static hunch_status entry_put(hn_out *o, const hn_counts *x, const hn_counts_entry *e, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int k = 0; !st && k < HN_COUNTS_N; k++) st = number_put(o, (uint32_t)e->gram[k], err);
    if (!st) st = number_put(o, e->n_pairs, err);
    for (uint32_t p = e->first; !st && p != HN_COUNTS_NONE; p = x->pair[p].next) {
        st = number_put(o, (uint32_t)x->pair[p].token, err);
        if (!st) st = number_put(o, x->pair[p].count < INT32_MAX ? x->pair[p].count : INT32_MAX, err);
    }
    return st;
}

hunch_status hn_counts_write(const hn_counts *x, const char *path, hunch_error *err) {
    hn_out *o;
    hunch_status st = hn_out_open(&o, path, true, err);
    for (size_t i = 0; !st && i < x->n_entries; i++) st = entry_put(o, x, &x->entry[i], err);
    if (!st) return hn_out_finish(&o, err);
    hn_out_abort(&o);
    return st;
}
