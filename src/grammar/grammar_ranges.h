/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_ranges.h - sets of code points as ranges, and the expression of one character of such a set (grammar_class.c). */
#ifndef HN_GRAMMAR_RANGES_H
#define HN_GRAMMAR_RANGES_H
#include "grammar/grammar_private.h"

enum { HN_LAST_CODE_POINT = 0x10FFFF };

typedef struct hn_range {
    uint32_t first, last;
} hn_range;

typedef struct hn_ranges {
    hn_range *at;
    size_t n, cap;
} hn_ranges;

typedef struct hn_word {
    const char *bytes;
    size_t len;
} hn_word;

/* False: no memory. An empty range adds nothing. */
bool hn_ranges_add(hn_ranges *r, uint32_t first, uint32_t last);
void hn_ranges_fini(hn_ranges *r);
void hn_ranges_sort(hn_ranges *r);   /* ascending, none touches another */
bool hn_ranges_invert(hn_ranges *r); /* all other code points, sorted. False: no memory */
/* One character of sorted ranges, as UTF-8; surrogates are none. */
hn_expr hn_expr_ranges(hn_builder *b, const hn_ranges *r);
#endif
