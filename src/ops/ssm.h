/* SPDX-License-Identifier: Apache-2.0 */
/* ssm.h - state space layers of Mamba-2 (2405.21060) without their products: inputs and outputs of the operation, and its two sums.
 *
 * In a layer, with z | m | dt the row's product (m: x B C, `channels` numbers; heads share the B and C of their group):
 *
 *   x | B | C = silu(bias + sum over taps of w[tap] m[row - taps + 1 + tap])    zeros before the text
 *   d = ln(1 + e^(dt + bias)), brought into [least, most]
 *   S' = e^(decay d) S + (d x) (x) B,  y = S'^T C + skip x       a matrix S [state][head_dim] a head
 *   o = norm over each group of (silu(z) y)                      the gate first
 *
 * A state is made at multiples of HN_GRID rows alone. A row at position t reads that of the rows below a(t), a multiple at least HN_GRID
 * rows back, and sums what its own path adds from there:
 *
 *   a(t) = HN_GRID * max(0, t / HN_GRID - 1),  s(j) = the sum of decay d over the rows a(t) .. j, ascending, each step an fma
 *   y = e^s(t) (S^T C), then + e^(s(t) - s(j)) d(j) (B(j) . C) x(j) for j = a(t) .. t, then + skip x(t), each step an fma
 *   S' = fma(B, d x, e^(decay d) S), row by row, from zero
 *
 * S^T C is summed over the state's rows ascending, B . C with the lanes of inverse_rms. So a row's bits depend on its path alone (C2):
 * neither on where the committed rows end nor on the other rows of the pass. A draft of up to HN_GRID levels below them needs no state but
 * those of committed rows, in a tree as in a chain: a tree is these sums over ancestors. Deeper rows get states of their own path, which
 * exist during the pass. A row keeps x, B and d after the convolution, and m, for those that follow it; the state in the cache moves on
 * when all rows below a multiple are committed. The order in which a pass makes states: hn_state_grid. */
#ifndef HN_SSM_H
#define HN_SSM_H
#include "ops/walk.h"

enum {
    HN_GRID = 16,
    HN_GRID_SUMS = 2 * HN_GRID,                    /* the most rows that one sums over, itself included */
    HN_GRID_LEVELS = HN_MAX_ROWS / HN_GRID + 1     /* states of a path that is not committed, at once */
};
static inline int hn_grid_floor(int rows) { return rows / HN_GRID * HN_GRID; }
/* The rows that are in the state which a row at this position reads. */
static inline int hn_grid_of(int position) { return position < HN_GRID ? 0 : hn_grid_floor(position) - HN_GRID; }

/* Sizes and weights of a layer. */
typedef struct hn_ssm {
    int heads, head_dim, groups, state, taps; /* heads is a multiple of groups */
    float least, most;          /* of steps */
    hn_buf conv, conv_bias;     /* f32 [taps][channels], the oldest row's first; [channels], mem NULL: none */
    hn_buf decay, dt, skip;     /* f32 [heads]; decay is negative */
    hn_norm norm;               /* [inner / groups] at a time, w [inner] */
} hn_ssm;

static inline int hn_ssm_inner(const hn_ssm *d) { return d->heads * d->head_dim; }
static inline int hn_ssm_channels(const hn_ssm *d) { return hn_ssm_inner(d) + 2 * d->groups * d->state; }
/* Floats of what a row keeps after the convolution: x | B | d. */
static inline int hn_ssm_kept(const hn_ssm *d) { return hn_ssm_inner(d) + d->groups * d->state + d->heads; }
static inline int hn_ssm_width(const hn_ssm *d) { return (d->head_dim + 15) & ~15; }
/* Floats of a head's state, [state][width]. */
static inline int hn_ssm_state(const hn_ssm *d) { return d->state * hn_ssm_width(d); }

/* A step of the order in which states are made: rows are added to one, then rows of the pass read the result. */
typedef struct hn_grid_cell {
    int32_t from, to;     /* levels: HN_WALK_STATE is the cache's; from HN_WALK_NONE: zero. Without rows to add the result is `from` */
    int32_t slot, slots;  /* the rows that are added, in the list of slots: a multiple of HN_GRID */
    int32_t row, rows;    /* the rows that read it, in the list of rows */
} hn_grid_cell;

/* All cells of a pass. The cache's state is read from its place, and written to the place of the next one. */
typedef struct hn_state_grid {
    hn_buf cell;  /* hn_grid_cell [first[n_seqs]] */
    hn_buf first; /* int32 [n_seqs + 1] the first cell of each sequence */
    hn_buf slot;  /* int32: rows in the cache, or of the pass, which have stored what they keep */
    hn_buf row;   /* int32 [n]: all rows of the pass, by cells */
} hn_state_grid;

/* z | m | dt: y replaces x in m and o replaces z. */
typedef struct hn_ssm_job {
    const hn_ssm *net;
    const hn_rows *rows; /* their slots and paths, the same in all groups */
    const hn_state_grid *grid;
    hn_input_pages inputs, kept; /* m; x | B | d */
    hn_state_pages states;
    hn_matrix z, m, dt;
    hn_buf scratch; /* ssm_scratch bytes of the backend */
} hn_ssm_job;

void hn_cpu_ssm(const hn_exec *ex, const hn_ssm_job *j);

/* A kernel's sum: y[r][j] = the sum of S[n][j] c[r][n], n ascending, each step an fma; width is a multiple of 16. */
typedef struct hn_ssm_read {
    const float *s;        /* [dim][width] */
    int width, dim, n;     /* n rows */
    const float *const *c; /* [n] rows of [dim] */
    float *y;              /* [n][width] */
} hn_ssm_read;

/* Rows are added to a state, one after another: S'[i][j] = fma(b[i], u[j], g * S[i][j]). */
typedef struct hn_ssm_move {
    const float *from; /* NULL: zero */
    float *to;         /* may be `from` */
    int width, dim, n; /* n: 1..HN_GRID rows */
    const float *const *b; /* [n] rows of [dim] */
    const float *u;    /* [n][width] */
    const float *g;    /* [n] */
} hn_ssm_move;
#endif
