/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_index.h - finds which of many strings a text begins with, shortest first. Read-only after hn_prefix_index_finish. */
#ifndef HN_PREFIX_INDEX_H
#define HN_PREFIX_INDEX_H
#include "text/tokenizer/token_map.h"

typedef struct hn_prefix_index {
    hn_piece *pieces; /* sorted by their bytes: those with a common prefix are neighbours */
    uint32_t *values; /* of each piece */
    size_t n;
    uint32_t *from; /* [first byte << 8 | second byte]: the first piece that is not less than these two bytes */
} hn_prefix_index;

/* Room for n pieces. False: no memory. */
bool hn_prefix_index_init(hn_prefix_index *x, size_t n);
void hn_prefix_index_fini(hn_prefix_index *x);
/* Keeps the bytes' address. Empty pieces are ignored, of equal ones the first stays. At most n calls. */
void hn_prefix_index_put(hn_prefix_index *x, hn_piece piece, uint32_t value);
/* False: no memory. */
bool hn_prefix_index_finish(hn_prefix_index *x);

typedef struct hn_prefix_walk {
    const char *text;
    size_t len;
    size_t common;    /* bytes of the text that all of pieces[lo, hi) begin with */
    size_t lo, hi;    /* range of pieces that were not returned yet */
    size_t found_len; /* of the piece that was found, */
    uint32_t value;   /* and its value */
} hn_prefix_walk;

/* len > 0. The time of a step does not depend on the number of pieces while all in the range continue with the same byte. */
void hn_prefix_walk_begin(const hn_prefix_index *x, hn_prefix_walk *w, const char *text, size_t len);
/* The next longer piece that the text begins with; false: there is none. */
bool hn_prefix_walk_next(const hn_prefix_index *x, hn_prefix_walk *w);
#endif
