/* SPDX-License-Identifier: Apache-2.0 */
/* medusa_net.h - Medusa's and Hydra's heads as networks for training (2401.10774, 2402.05109): resblocks for each position.
 *
 *     s     = h, the target's state; grounded, position k: h | E[x] | E[d1] ... E[dk], x the row's token, d those after it
 *     y     = h;  y += silu(W y + b), for each block
 *     y     = R s + r + silu(W s + b), the first block if it is grounded
 *     q_k   = softmax(U y + c), over the vocabulary of the head
 *
 * The loss of position k is the weighted mean over rows with a label (positions.h) of the cross entropy with the target's
 * distribution there; the whole loss is Σ decay^k times it. Positions are independent, so they are computed one at a time, and
 * there is one matrix of logits. */
#ifndef HN_MEDUSA_NET_H
#define HN_MEDUSA_NET_H
#include "train/nets/positions.h"
#include "train/math/workers.h"

typedef struct hn_medusa_shape {
    int hidden, positions, resblocks, vocab;
    bool grounded, output_bias; /* it reads tokens; it has c */
} hn_medusa_shape;

typedef enum hn_medusa_kind {
    HN_MEDUSA_W,
    HN_MEDUSA_B,
    HN_MEDUSA_RESIDUAL,
    HN_MEDUSA_RESIDUAL_BIAS,
    HN_MEDUSA_OUTPUT,
    HN_MEDUSA_OUTPUT_BIAS
} hn_medusa_kind;

/* The place of a part; parts are ordered by positions; in a position: resblocks, residual, output. */
typedef struct hn_medusa_place {
    int position, block;
    hn_medusa_kind kind;
} hn_medusa_place;

int hn_medusa_parts(const hn_medusa_shape *s);
hn_medusa_place hn_medusa_place_of(const hn_medusa_shape *s, int part);
/* As those of eagle3_net.h. */
size_t hn_medusa_count(const hn_medusa_shape *s);
hn_mat hn_medusa_part_of(const hn_medusa_shape *s, int part, hn_real *vector);

typedef struct hn_medusa_net hn_medusa_net;

/* For batches of at most `rows` rows. table: the target's embedding [tokens][hidden], read if the head is grounded; it
 * is not trained. The workers and the table must outlive the network. */
hunch_status hn_medusa_net_open(hn_medusa_net **out, hn_workers *t, const hn_medusa_shape *s, double decay, hn_mat table, int rows,
                                hunch_error *err);
void hn_medusa_net_close(hn_medusa_net *n); /* NULL is fine */
/* The whole loss; losses [positions], those of the positions without their decay. gradient, unless NULL: adds the
 * gradient of the loss to it. */
double hn_medusa_net_loss(hn_medusa_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
#endif
