/* SPDX-License-Identifier: Apache-2.0 */
/* common_tokens.c - see common_tokens.h. */
#include "train/data/common_tokens.h"

#include <stdlib.h>

#include "base/mem.h"

static const uint64_t special_first = UINT64_MAX / 2;

typedef struct counted {
    uint64_t n; /* special ones: plus special_first */
    int32_t id;
} counted;

/* The more frequent first, then the smaller id. */
static int more_often(const void *a, const void *b) {
    const counted *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_id(const void *a, const void *b) {
    const counted *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Counts the tokens of the target's answers; returns their number. */
static uint64_t count(counted *c, int vocab, const hn_features_read *f) {
    uint64_t all = 0;
    for (int i = 0; i < vocab; i++) c[i] = (counted){0, i};
    for (size_t t = 0; t < f->n; t++) {
        for (int i = f->text[t].own; i < f->text[t].n; i++) c[f->text[t].ids[i]].n++;
        all += (uint64_t)(f->text[t].n - f->text[t].own);
    }
    return all;
}

hunch_status hn_common_tokens_choose(hn_common_tokens *out, hunch_model *m, const hn_features_read *f, int n,
                                     hunch_error *err) {
    const int vocab = m->target.arch.vocab;
    counted *c = hn_zalloc((size_t)vocab, sizeof *c);
    *out = (hn_common_tokens){.n = n,
                              .ids = hn_alloc((size_t)n * sizeof *out->ids),
                              .first = hn_alloc((size_t)n * sizeof *out->first),
                              .output = hn_alloc((size_t)vocab * sizeof *out->output)};
    if (!c || !out->ids || !out->first || !out->output) {
        hn_free(c);
        return hn_fail_memory(err, "a vocabulary", (size_t)vocab * sizeof *c);
    }
    const uint64_t all = count(c, vocab, f);
    uint64_t there = 0;
    for (int i = 0; i < vocab; i++) {
        if (m->tokenizer && hn_tokenizer_is_special(m->tokenizer, i)) c[i].n += special_first;
        out->output[i] = -1;
    }
    qsort(c, (size_t)vocab, sizeof *c, more_often);
    for (int i = 0; i < n; i++) out->first[i] = c[i].id;
    qsort(c, (size_t)n, sizeof *c, by_id);
    for (int i = 0; i < n; i++) {
        out->ids[i] = c[i].id;
        out->output[c[i].id] = i;
        there += c[i].n % special_first;
    }
    out->coverage = all ? (double)there / (double)all : 0;
    hn_free(c);
    return HUNCH_OK;
}

void hn_common_tokens_free(hn_common_tokens *c) {
    hn_free(c->ids);
    hn_free(c->first);
    hn_free(c->output);
    *c = (hn_common_tokens){0};
}
