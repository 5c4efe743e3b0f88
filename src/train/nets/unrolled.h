/* SPDX-License-Identifier: Apache-2.0 */
/* unrolled.h - the common part of heads that are trained by steps: one layer, run S times over the rows of a batch.
 *
 *     r   = residual + o · attention(q, k, v of x)                     keys that step k sees: attention_back.h
 *     out = r + down · swiglu(gate, up of norm_post(r))
 *
 * A head computes x and the residual of a step, and uses out (eagle3_net.c, eagle_net.c). Forwards, the values that the
 * backward pass reads are kept in a hn_unrolled_step for each step. Backwards, from the last step to the first, the
 * gradient of a step's keys and values is complete at the step's own turn, since only it and later steps read them. */
#ifndef HN_UNROLLED_H
#define HN_UNROLLED_H
#include "train/math/layers/attention_back.h"
#include "train/math/parts.h"
#include "train/math/room.h"

/* The layer's weights, or their gradients. */
typedef struct hn_unrolled_layer {
    hn_mat q, k, v; /* [heads * head_dim], [kv_heads * head_dim] twice, [inputs] */
    hn_mat o;       /* [hidden][heads * head_dim] */
    hn_mat q_norm, k_norm; /* of each head before rotation, gains [1][head_dim]; p NULL: without head_norms */
    hn_mat post;    /* a gain [1][hidden] */
    hn_mat gate, up, down;
} hn_unrolled_layer;

/* Values of one step, [rows of the batch][..]. */
typedef struct hn_unrolled_step {
    hn_mat x; /* [inputs]; the caller writes it */
    hn_mat q, k, v, dk, dv;
    hn_mat plain_q, plain_k;         /* with head_norms: before the norms */
    hn_real *inverse_q, *inverse_k;
    hn_mat y;           /* of the attention */
    hn_mat r, post;     /* [hidden]; norm_post(r) */
    hn_mat gate, up, s; /* [ffn] */
    hn_mat out, dout;   /* dout: from the loss and later steps, then that of r */
    hn_real *log_sums;  /* [heads] */
    hn_real *inverse_post;
    int *token; /* tokens that the rows read: `step` places later */
} hn_unrolled_step;

typedef struct hn_unrolled {
    HN_SIZES;
    hn_workers *workers;
    int inputs;
    bool head_norms; /* norms of queries and keys, as in Qwen3 */
    bool alone;      /* rows of a step see only the keys of that step, of all rows up to their own: each step is another layer */
    int steps, most_rows;
    hn_unrolled_step at[HN_MOST_STEPS];
    /* of one step at a time */
    hn_mat dq, wide, dpost;   /* wide: [ffn], then attention's width */
    hn_real *weight, *losses; /* weights of the rows' losses: shares that add up to 1, or all 0 */
    int *position;
    hn_mat some, dsome;    /* [hidden]: `out` of the rows with a loss, and its gradient */
    int *some_row, *dist_row; /* for each of those: its row of the batch, and of the batch's distributions */
    hn_real *some_weight;
    /* of one batch */
    int texts;
    const int *start;
    hn_unrolled_layer w, g; /* of the current step */
} hn_unrolled;

/* Allocates the matrices of u, whose sizes are set. */
void hn_unrolled_lay_out(hn_unrolled *u, hn_room *r);

int hn_unrolled_rows(const hn_unrolled *u);
/* The rows of the batch in a matrix with room for the most rows. */
hn_mat hn_unrolled_now(const hn_unrolled *u, hn_mat m);
/* Sets u->position, and for step k its tokens and u->weight from those of the batch: row i gets those of row i + k; a
 * row beyond the end of its text reads any token, and has weight 0. */
void hn_unrolled_look_ahead(hn_unrolled *u, int k, const int *token, const hn_real *weight);
/* Copies `from` (at[k].out, or a result of it) of the rows with a loss to u->some, and returns their number: only these
 * are multiplied with the output matrix. dist_row [rows]: the row of the batch's distributions after the row's token; NULL: the
 * same row. */
int hn_unrolled_pick(hn_unrolled *u, int k, hn_mat from, const int *dist_row);
/* Adds u->dsome to at[k].dout of these rows. */
void hn_unrolled_put_back(hn_unrolled *u, int k, int count);
/* at[k].out from at[k].x. */
void hn_unrolled_forward(hn_unrolled *u, int k, hn_mat residual);
/* Call it before the first backward step. */
void hn_unrolled_begin_back(hn_unrolled *u);
/* From at[k].dout to the gradient of x in dx; at[k].dout becomes that of r, which is also the residual's. */
void hn_unrolled_back(hn_unrolled *u, int k, hn_mat dx);
#endif
