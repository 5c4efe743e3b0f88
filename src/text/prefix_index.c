/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_index.c - narrows a range of the sorted pieces byte by byte: needs no memory beside the sorted pieces. */
#include "text/prefix_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { PAIRS = 65536 };

bool hn_prefix_index_init(hn_prefix_index *x, size_t n) {
    x->pieces = hn_zalloc(n, sizeof *x->pieces);
    x->values = hn_zalloc(n, sizeof *x->values);
    x->from = hn_zalloc(PAIRS + 1, sizeof *x->from);
    return x->pieces && x->values && x->from;
}

void hn_prefix_index_fini(hn_prefix_index *x) {
    hn_free(x->pieces);
    hn_free(x->values);
    hn_free(x->from);
    *x = (hn_prefix_index){0};
}

void hn_prefix_index_put(hn_prefix_index *x, hn_piece piece, uint32_t value) {
    if (!piece.len) return;
    x->pieces[x->n] = piece;
    x->values[x->n++] = value;
}

static int compare_bytes(hn_piece p, hn_piece q) {
    int order = memcmp(p.bytes, q.bytes, p.len < q.len ? p.len : q.len);
    return order ? order : p.len < q.len ? -1 : p.len > q.len;
}

static int compare_pieces(const void *a, const void *b, void *pieces) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare_bytes(((hn_piece *)pieces)[x], ((hn_piece *)pieces)[y]);
    return order ? order : x < y ? -1 : x > y; /* equal ones in the order they were added */
}

static unsigned first_two(hn_piece p) {
    return (unsigned)(unsigned char)p.bytes[0] << 8 | (p.len > 1 ? (unsigned char)p.bytes[1] : 0);
}

bool hn_prefix_index_finish(hn_prefix_index *x) {
    hn_prefix_index sorted = {0};
    uint32_t *order = hn_alloc(x->n * sizeof *order);
    if (!order || !hn_prefix_index_init(&sorted, x->n)) {
        hn_free(order);
        hn_prefix_index_fini(&sorted);
        return false;
    }
    for (size_t i = 0; i < x->n; i++) order[i] = (uint32_t)i;
    qsort_r(order, x->n, sizeof *order, compare_pieces, x->pieces);
    for (size_t i = 0; i < x->n; i++) {
        bool again = sorted.n && compare_bytes(sorted.pieces[sorted.n - 1], x->pieces[order[i]]) == 0;
        if (!again) hn_prefix_index_put(&sorted, x->pieces[order[i]], x->values[order[i]]);
    }
    unsigned next = 0;
    for (size_t i = 0; i < sorted.n; i++) {
        while (next <= first_two(sorted.pieces[i])) sorted.from[next++] = (uint32_t)i;
    }
    while (next <= PAIRS) sorted.from[next++] = (uint32_t)sorted.n;
    hn_free(order);
    hn_prefix_index_fini(x);
    *x = sorted;
    return true;
}

void hn_prefix_walk_begin(const hn_prefix_index *x, hn_prefix_walk *w, const char *text, size_t len) {
    unsigned first = (unsigned)(unsigned char)text[0] << 8;
    *w = (hn_prefix_walk){.text = text, .len = len, .common = 1, .lo = x->from[first], .hi = x->from[first + 256]};
}

/* First of pieces[lo, hi) whose byte `at` is not below b. All are longer than `at` bytes and equal up to there. */
static size_t lower(const hn_prefix_index *x, size_t lo, size_t hi, size_t at, unsigned b) {
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if ((unsigned char)x->pieces[mid].bytes[at] < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Narrows the range to the pieces with the text's next byte. All have more than `common` bytes. */
static void narrow(const hn_prefix_index *x, hn_prefix_walk *w) {
    size_t at = w->common++;
    unsigned b = (unsigned char)w->text[at];
    if (at == 1) {
        unsigned pair = (unsigned)(unsigned char)w->text[0] << 8 | b;
        if (x->from[pair] > w->lo) w->lo = x->from[pair];
        w->hi = x->from[pair + 1] > w->lo ? x->from[pair + 1] : w->lo;
        return;
    }
    unsigned char low = (unsigned char)x->pieces[w->lo].bytes[at], high = (unsigned char)x->pieces[w->hi - 1].bytes[at];
    if (low != b || high != b) {
        w->lo = lower(x, w->lo, w->hi, at, b);
        w->hi = lower(x, w->lo, w->hi, at, b + 1);
    }
}

bool hn_prefix_walk_next(const hn_prefix_index *x, hn_prefix_walk *w) {
    while (w->lo < w->hi) {
        if (x->pieces[w->lo].len == w->common) {
            w->found_len = w->common;
            w->value = x->values[w->lo++];
            return true;
        }
        if (w->common == w->len) return false;
        narrow(x, w);
    }
    return false;
}
