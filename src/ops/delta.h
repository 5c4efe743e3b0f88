/* SPDX-License-Identifier: Apache-2.0 */
/* delta.h - gated delta nets (2412.06464): inputs and outputs of the operation. The order in which it walks rows: walk.h.
 *
 * In a layer, with m the row's q | k | v from their product (`channels` numbers):
 *
 *   u = silu(sum over taps of w[tap] m[row - taps + 1 + tap])    zeros before the text
 *   k, q = each head of u over the root of its sum of squares + 1e-6; q also over the root of its size
 *   beta = 1 / (1 + e^-b), g = e^(decay * log(1 + e^(a + dt)))
 *   S' = g S + k (x) beta (v - g S^T k),  out = S'^T q           a matrix S [key_dim][value_dim] a value head
 *   y = silu(z) * rmsnorm(out)                                   each value head separately
 *
 * A row is computed only from its parent's S, always by this step, so its bits depend only on its path (C2). The state
 * in the cache is that of committed rows; a tentative row stores its m, beta and g there (its inputs), from which a
 * later pass absorbs it into the state if it was committed. States of tentative rows exist during a pass, 64 columns at a
 * time: rows are visited depth first, and the states of rows with several children are kept on a stack of the rank.
 */
#ifndef HN_DELTA_H
#define HN_DELTA_H
#include "ops/walk.h"

enum { HN_STATE_COLS = 64 }; /* columns of a state that are computed at a time */

/* Sizes and weights of a layer. */
typedef struct hn_delta {
    int key_heads, value_heads, key_dim, value_dim, taps; /* value_heads is a multiple of key_heads */
    bool tiled;       /* value head h reads key head h % key_heads; else the value heads of a key head are adjacent */
    hn_buf conv;      /* f32 [taps][channels], the oldest row's first */
    hn_buf decay, dt; /* f32 [value_heads]; decay is negative */
    hn_norm norm;     /* [value_dim] */
} hn_delta;

static inline int hn_delta_values(const hn_delta *d) { return d->value_heads * d->value_dim; }
static inline int hn_delta_keys(const hn_delta *d) { return d->key_heads * d->key_dim; }
static inline int hn_delta_channels(const hn_delta *d) { return 2 * hn_delta_keys(d) + hn_delta_values(d); }
/* Floats of a row's inputs: m | beta | g. */
static inline int hn_delta_inputs(const hn_delta *d) { return hn_delta_channels(d) + 2 * d->value_heads; }
/* Floats of a head's state: columns in panels of HN_STATE_COLS, [key_dim][columns] each, the last one a multiple of 16. */
static inline int hn_delta_state(const hn_delta *d) { return d->key_dim * ((d->value_dim + 15) / 16 * 16); }

/* y is written in place of z. */
typedef struct hn_delta_job {
    const hn_delta *net;
    const hn_row_walk *walk;
    hn_count n_seqs;
    hn_input_pages inputs;
    hn_state_pages states;
    hn_matrix m, z, b, a;
    hn_buf scratch; /* delta_scratch bytes of the backend */
} hn_delta_job;

void hn_cpu_delta(const hn_exec *ex, const hn_delta_job *j);

/* A kernel's step on columns of a state, [dim][width] floats, width 16, 32, 48 or 64:
 *   sk = sum of S[d] k[d], sq = sum of S[d] q[d], d ascending, each step an fma
 *   u = beta * fma(-g, sk, v);  o = fma(u, kq, g * sq);  S'[d] = fma(k[d], u, g * S[d]) */
typedef struct hn_delta_step {
    const float *from;
    float *to;       /* S'; NULL: not wanted; may be `from` */
    int width, dim;
    const float *k, *q; /* q NULL: no output */
    const float *v;
    float *o;        /* [width] */
    float g, beta, kq;
} hn_delta_step;
#endif
