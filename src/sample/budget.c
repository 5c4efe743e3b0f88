/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - see budget.h. */
#include "sample/budget.h"

#include <string.h>

hn_spent hn_budget_start(const hn_budget *b) {
    return (hn_spent){.thinking = b->begins};
}

/* How many elements of a sequence a text ends with, after one more; before it ended with n of them, which are not all. */
static int suffix_next(const void *sequence, size_t size, int n, const void *next) {
    const char *at = sequence;
    for (int k = n; k >= 0; k--) {
        const bool borders = memcmp(at, at + (size_t)(n - k) * size, (size_t)k * size) == 0;
        if (borders && memcmp(at + (size_t)k * size, next, size) == 0) return k + 1;
    }
    return 0;
}

hn_spent hn_budget_next(const hn_budget *b, hn_spent s, int32_t token) {
    const bool before = s.thinking;
    size_t len = 0;
    const char *bytes = hn_tokenizer_piece(b->tokenizer, token, &len);
    if (before && b->channels && hn_tokenizer_is_special(b->tokenizer, token)) s = (hn_spent){.used = s.used};
    for (size_t i = 0; i < len; i++) {
        const char *mark = b->mark[s.thinking];
        s.matched = suffix_next(mark, 1, s.matched, bytes + i);
        if (mark[s.matched]) continue;
        s.thinking = !s.thinking;
        s.matched = s.tail = 0;
    }
    if (!s.thinking || !before) return s;
    s.used++;
    s.tail = suffix_next(b->end, sizeof *b->end, s.tail, &token);
    if (s.tail == b->n_end) s.tail = 0; /* it began to think again in the same token */
    return s;
}

int32_t hn_budget_forced(const hn_budget *b, hn_spent s) {
    return s.thinking && s.used >= b->most ? b->end[s.tail] : -1;
}
