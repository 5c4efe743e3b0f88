/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_attention.h - what the two files of attention share: a call, and a tile of queries. For files of this folder only. */
#ifndef HN_CPU_ATTENTION_H
#define HN_CPU_ATTENTION_H
#include "ops/cpu_mem.h"
#include "ops/kernels.h"

/* One call of the operation. */
typedef struct hn_attention_call {
    const hn_exec *ex;
    const hn_rows *rows;
    int n, n_seqs; /* of them */
    const hn_kv *kv;
    const struct hn_kernels *kernels;
    const hn_attention_params *how;
    const float *sinks;
    const int32_t *from, *last; /* for each row: the position that its window is counted back from, the last position that it sees */
    bool bf16;    /* products of pairs */
    bool widened; /* of a Q8_0 cache, as BF16 */
    bool tiles;   /* products of bf16, with sums of tiles */
    int group; /* query heads that share a kv head */
    const hn_act *act; /* gets the rows too, in these forms */
    int forms;
    const float *q;
    int ldq;
    float *out;
    int ldo;
    int first_span, last_span;      /* that any row sees */
    int alike[HN_MAX_TEXTS];        /* spans from position 0 on that a sequence has in the pages of the one before it */
    int bundle, bundles;                  /* queries of an item, of all rows in order; bundles of a kv head */
    bool split;                     /* items are single spans */
    int wave;                       /* spans whose partial results are kept at a time, if split */
    float *part;                    /* [row][head][1 + wave][STATS + v_dim], if split: what is merged so far, then a wave's */
} hn_attention_call;

/* Keys or values gathered from their slots, as a page of HN_KEY_CHUNK rows, and these slots, which have one position each. */
typedef struct hn_gathered {
    int32_t slot[HN_KEY_CHUNK]; /* -1: none */
    _Alignas(64) unsigned char at[HN_KEY_CHUNK * HN_MAX_HEAD_DIM * sizeof(float)];
    _Alignas(64) unsigned char widened[HN_KEY_CHUNK * HN_MAX_HEAD_DIM * sizeof(uint16_t)];
} hn_gathered;

/* What the kernels read in another form than the cache has it, for all tiles of a span: a Q8_0 cache as BF16, and values that are in
 * keys in their own layout. Chunks [from, to) of a kv head in one sequence's span are there. */
typedef struct hn_span_copy {
    unsigned char *keys, *values; /* [HN_KEY_CHUNKS] chunks each */
    int seq, kv_head, span, from, to;
} hn_span_copy;

/* Queries that read the same pages of a span and see something of it, and their results. */
typedef struct hn_attention_tile {
    int seq, kv_head, span; /* seq: one of those whose pages these are */
    int n_next;
    struct {
        int seq, kv_head, span;
    } next[2]; /* what is read after it */
    int n;
    int row[HN_QUERIES], head[HN_QUERIES], at[HN_QUERIES]; /* at: their places in the item */
    int lo[HN_QUERIES], hi[HN_QUERIES]; /* positions seen, counted from the span's first */
    const float *q[HN_QUERIES];
    const uint16_t *q16[HN_QUERIES];
    float m[HN_QUERIES], l[HN_QUERIES];
    _Alignas(64) float s[HN_QUERIES * HN_KEY_SPAN];
    _Alignas(64) uint16_t e[HN_QUERIES * HN_KEY_SPAN];
    _Alignas(64) float o[HN_QUERIES * HN_MAX_HEAD_DIM]; /* [n][v_dim] */
    hn_gathered own;
    hn_span_copy copy;
} hn_attention_tile;

/* Partial results of all queries of the tile on its span. fetch: the span's values, and the keys of the span that follows, are
 * prefetched meanwhile. */
void hn_attention_span(const hn_attention_call *c, hn_attention_tile *t, bool fetch);

/* The positions of a span that a row sees; false: none. */
static inline bool hn_attention_sees(const hn_attention_call *c, int row, int span, int *lo, int *hi) {
    const int base = span * HN_KEY_SPAN, from = hn_kv_seen_from(c->how, c->from[row]) - base, to = c->last[row] + 1 - base;
    *hi = to < HN_KEY_SPAN ? to : HN_KEY_SPAN;
    *lo = from > 0 ? from : 0;
    return *lo < *hi;
}
#endif
