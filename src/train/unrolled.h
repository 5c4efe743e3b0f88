/* SPDX-License-Identifier: Apache-2.0 */
/* unrolled.h - what heads that are trained by steps have in common: one layer, run S times over the rows of a batch.
 *
 *     r   = residual + o · attention(q, k, v of x)                     attention_back.h says which keys step k sees
 *     out = r + down · swiglu(gate, up of norm_post(r))
 *
 * A head says what x and the residual of a step are, and what becomes of out (eagle3_net.c, eagle_net.c). Forwards all
 * that the way back reads is kept, a hn_unrolled_step a step. Backwards, from the last step to the first, the gradient
 * of a step's keys and values is whole when the step's own turn comes, for only it and later steps read them. */
#ifndef HN_UNROLLED_H
#define HN_UNROLLED_H
#include "train/attention_back.h"
#include "train/room.h"

/* The layer's weights, or their gradients. */
typedef struct hn_unrolled_layer {
    hn_mat q, k, v; /* [heads * head_dim], [kv_heads * head_dim] twice, [inputs] */
    hn_mat o;       /* [hidden][heads * head_dim] */
    hn_mat q_norm, k_norm; /* of each head before it is turned, gains [1][head_dim]; p NULL: none, as head_norms says */
    hn_mat post;    /* a gain [1][hidden] */
    hn_mat gate, up, down;
} hn_unrolled_layer;

/* Of one step, [rows of the batch][..]. */
typedef struct hn_unrolled_step {
    hn_mat x; /* [inputs]; the caller writes it */
    hn_mat q, k, v, dk, dv;
    hn_mat plain_q, plain_k;         /* with head_norms: before them */
    hn_real *inverse_q, *inverse_k;
    hn_mat y;           /* attention's */
    hn_mat r, post;     /* [hidden]; norm_post(r) */
    hn_mat gate, up, s; /* [ffn] */
    hn_mat out, dout;   /* dout: of the loss and of later steps, then that of r */
    hn_real *log_sums;  /* [heads] */
    hn_real *inverse_post;
    int *token; /* that the rows read: `step` places on */
} hn_unrolled_step;

typedef struct hn_unrolled {
    hn_team *team;
    int hidden, inputs, heads, kv_heads, head_dim, ffn;
    double eps, theta;
    bool head_norms; /* of queries and keys, as Qwen3 has them */
    bool alone;      /* rows of a step see the keys of that step alone, of all rows up to their own: each step is another layer */
    int steps, most_rows;
    hn_unrolled_step at[HN_MOST_STEPS];
    /* of one step at a time */
    hn_mat dq, wide, dpost;   /* wide: [ffn], then attention's width */
    hn_real *weight, *losses; /* of the rows' losses: shares that add up to 1, or all 0 */
    int *position;
    hn_mat some, dsome;    /* [hidden]: `out` of the rows that have a loss, and its gradient */
    int *some_row, *law_row; /* of each of those: its row of the batch, and of the batch's laws */
    hn_real *some_weight;
    /* of one batch */
    int texts;
    const int *start;
    hn_unrolled_layer w, g; /* of the step whose turn it is */
} hn_unrolled;

/* Takes what u needs, whose sizes are set. */
void hn_unrolled_lay_out(hn_unrolled *u, hn_room *r);

int hn_unrolled_rows(const hn_unrolled *u);
/* The rows of the batch in a matrix for the most that there may be. */
hn_mat hn_unrolled_now(const hn_unrolled *u, hn_mat m);
/* Sets u->position, and for step k its tokens and u->weight from those of the batch: row i's are those of row i + k; a
 * row beyond the end of its text reads some token, and has weight 0. */
void hn_unrolled_look_ahead(hn_unrolled *u, int k, const int *token, const hn_real *weight);
/* Copies `from` (at[k].out, or what became of it) of the rows that have a loss to u->some, side by side, and says how many they are: a
 * vocabulary is multiplied for them alone. law_row [rows]: the row of the batch's laws that holds what comes behind the row's token;
 * NULL: its own number. */
int hn_unrolled_pick(hn_unrolled *u, int k, hn_mat from, const int *law_row);
/* Adds u->dsome to at[k].dout of these rows. */
void hn_unrolled_put_back(hn_unrolled *u, int k, int count);
/* at[k].out from at[k].x. */
void hn_unrolled_forward(hn_unrolled *u, int k, hn_mat residual);
/* Before the first step back. */
void hn_unrolled_begin_back(hn_unrolled *u);
/* From at[k].dout to the gradient of x in dx; at[k].dout becomes that of r, which the residual's is. */
void hn_unrolled_back(hn_unrolled *u, int k, hn_mat dx);
#endif
