/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_class.c - classes of characters as the UTF-8 of their members: sorts and joins ranges of code points, and splits each where the
 * bytes of its ends differ, so that every piece is a sequence of ranges of bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/number_index.h"
#include "base/utf8.h"
#include "grammar/grammar_ranges.h"

/* ---- sets of bytes, each once ---- */

static uint64_t hash_of_set(const void *builder, size_t i) {
    const hn_builder *b = builder;
    return hn_bytes_hash(&b->sets[i], sizeof b->sets[i], 1);
}

hn_expr hn_expr_set(hn_builder *b, const hn_byte_set *set) {
    if (b->failed) return -1;
    if (2 * (b->n_sets + 1) > b->cap_index && !hn_number_index_grow(&b->set_index, &b->cap_index, 256, 0, b->n_sets, hash_of_set, b))
        return hn_builder_no_memory(b);
    size_t at = hn_bytes_hash(set, sizeof *set, 1) & (b->cap_index - 1);
    while (b->set_index[at] && memcmp(&b->sets[b->set_index[at] - 1], set, sizeof *set) != 0) at = (at + 1) & (b->cap_index - 1);
    if (!b->set_index[at]) {
        if (!hn_grow((void **)&b->sets, &b->cap_sets, b->n_sets + 1, sizeof *b->sets)) return hn_builder_no_memory(b);
        b->sets[b->n_sets++] = *set;
        b->set_index[at] = (int32_t)b->n_sets;
    }
    return hn_expr_put(b, HN_EXPR_SET, b->set_index[at] - 1, 0, 1);
}

/* ---- ranges of code points ---- */

bool hn_ranges_add(hn_ranges *r, uint32_t first, uint32_t last) {
    if (first > last) return true;
    if (!hn_grow((void **)&r->at, &r->cap, r->n + 1, sizeof *r->at)) return false;
    r->at[r->n++] = (hn_range){first, last};
    return true;
}

void hn_ranges_fini(hn_ranges *r) {
    hn_free(r->at);
    *r = (hn_ranges){0};
}

static int compare_ranges(const void *a, const void *b) {
    const hn_range *x = a, *y = b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : 0;
}

void hn_ranges_sort(hn_ranges *r) {
    size_t n = 0;
    if (r->n) qsort(r->at, r->n, sizeof *r->at, compare_ranges);
    for (size_t i = 0; i < r->n; i++) {
        if (n && r->at[i].first <= r->at[n - 1].last + 1) {
            if (r->at[i].last > r->at[n - 1].last) r->at[n - 1].last = r->at[i].last;
        } else {
            r->at[n++] = r->at[i];
        }
    }
    r->n = n;
}

bool hn_ranges_invert(hn_ranges *r) {
    hn_ranges out = {0};
    uint32_t next = 0;
    bool ok = true;
    hn_ranges_sort(r);
    for (size_t i = 0; ok && i < r->n; i++) {
        if (r->at[i].first > next) ok = hn_ranges_add(&out, next, r->at[i].first - 1);
        next = r->at[i].last + 1;
    }
    if (ok && next <= HN_LAST_CODE_POINT) ok = hn_ranges_add(&out, next, HN_LAST_CODE_POINT);
    hn_ranges_fini(r);
    *r = out;
    return ok;
}

/* ---- as UTF-8 ---- */

/* Alternatives that are collected: one for the bytes below 0x80, and a sequence for each piece above. */
typedef struct pieces {
    hn_builder *b;
    hn_byte_set ascii;
    bool has_ascii;
    hn_expr *at;
    size_t n, cap;
} pieces;

static bool put_piece(pieces *p, hn_expr e) {
    if (e < 0) return false;
    if (!hn_grow((void **)&p->at, &p->cap, p->n + 1, sizeof *p->at)) return hn_builder_no_memory(p->b), false;
    p->at[p->n++] = e;
    return true;
}

/* Both ends have n bytes, and every combination of bytes between them is in the range. */
static bool put_sequence(pieces *p, const char *low, const char *high, int n) {
    hn_expr part[4];
    for (int i = 0; i < n; i++) {
        hn_byte_set s = {{0}};
        hn_byte_set_add(&s, (unsigned char)low[i], (unsigned char)high[i]);
        part[i] = hn_expr_set(p->b, &s);
    }
    return put_piece(p, hn_expr_seq(p->b, part, (size_t)n));
}

static const uint32_t last_of_length[] = {0x7F, 0x7FF, 0xFFFF, HN_LAST_CODE_POINT};

/* The last code point, at most `last`, up to which a range from `first` is one piece. */
static uint32_t piece_end(uint32_t first, uint32_t last) {
    for (int i = 0; i < 4; i++)
        if (first <= last_of_length[i] && last > last_of_length[i]) last = last_of_length[i];
    if (first < 0xD800 && last >= 0xD800) last = 0xD7FF;
    for (int shift = 6; shift <= 18; shift += 6) { /* the lower bytes must run over all values, or the upper ones be equal */
        const uint32_t mask = ((uint32_t)1 << shift) - 1;
        if ((first & ~mask) == (last & ~mask)) continue;
        if (first & mask) return first | mask;
        if ((last & mask) != mask) last = (last & ~mask) - 1;
    }
    return last;
}

static bool put_range(pieces *p, uint32_t first, uint32_t last) {
    while (first <= last) {
        char low[4], high[4];
        if (first >= 0xD800 && first <= 0xDFFF) first = 0xE000;
        if (first > last) break;
        const uint32_t end = piece_end(first, last);
        if (end < 0x80) {
            hn_byte_set_add(&p->ascii, first, end);
            p->has_ascii = true;
        } else {
            const int n = hn_utf8_encode(first, low);
            hn_utf8_encode(end, high);
            if (!put_sequence(p, low, high, n)) return false;
        }
        first = end + 1;
    }
    return true;
}

hn_expr hn_expr_ranges(hn_builder *b, const hn_ranges *r) {
    pieces p = {.b = b};
    bool ok = !b->failed;
    for (size_t i = 0; ok && i < r->n; i++) ok = put_range(&p, r->at[i].first, r->at[i].last);
    if (ok && p.has_ascii) ok = put_piece(&p, hn_expr_set(b, &p.ascii));
    const hn_expr e = ok ? hn_expr_alt(b, p.at, p.n) : -1;
    hn_free(p.at);
    return e;
}

hn_expr hn_expr_class(hn_builder *b, const uint32_t *ranges, size_t n_pairs, bool negated) {
    hn_ranges r = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < n_pairs; i++) {
        const uint32_t last = ranges[2 * i + 1];
        ok = hn_ranges_add(&r, ranges[2 * i], last > HN_LAST_CODE_POINT ? HN_LAST_CODE_POINT : last);
    }
    if (ok && negated) ok = hn_ranges_invert(&r);
    hn_ranges_sort(&r);
    const hn_expr e = ok ? hn_expr_ranges(b, &r) : hn_builder_no_memory(b);
    hn_ranges_fini(&r);
    return e;
}
