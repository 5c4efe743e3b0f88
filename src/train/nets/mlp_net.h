/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_net.h - IBM's speculator as a network for training (2404.19124), and Arctic's with a cell: a state of its own that reads the
 * tokens, without attention.
 *
 *     s     = rms(h) / sqrt 2, h the target's state
 *     s     = gelu(norm(P s + a E[t]) + b) for each position, t the row's token k places later; one P for the first position and one for
 *             all others; E, norm and b are shared by all
 *     q_k   = softmax(U s), over the vocabulary of the head
 *
 * With a cell, for each position, starting with c = 0:
 *
 *     f | i | o | n = P s + a (E[t] | E[t] | E[t] | E[t])
 *     c     = sigmoid(f) c + sigmoid(i) gelu(norm_c(n) + b_c)
 *     s     = sigmoid(o) gelu(norm(c) + b)
 *
 * with a = sqrt((1 - w^2) I / 2) / w, w = 0.5^(0.5 / positions), I the width of s; the norm's gain is its own, its eps 1e-6. E is the
 * head's own, and is trained. Losses are those of medusa_net.h; gradients flow back through the states of all positions. */
#ifndef HN_MLP_NET_H
#define HN_MLP_NET_H
#include "train/nets/positions.h"
#include "train/math/workers.h"

typedef struct hn_mlp_shape {
    int hidden, inner, positions, tokens, vocab; /* tokens: of E */
    bool cell;
} hn_mlp_shape;

typedef enum hn_mlp_part {
    HN_MLP_EMBEDDING,
    HN_MLP_FIRST, /* P of the first position */
    HN_MLP_LATER, /* P of all others, if there are any */
    HN_MLP_NORM,
    HN_MLP_BIAS,
    HN_MLP_CELL_NORM, /* with a cell */
    HN_MLP_CELL_BIAS,
    HN_MLP_OUTPUT,
    HN_MLP_PARTS
} hn_mlp_part;

/* As those of eagle3_net.h. */
size_t hn_mlp_count(const hn_mlp_shape *s);
hn_mat hn_mlp_part_of(const hn_mlp_shape *s, hn_mlp_part part, hn_real *vector);
const char *hn_mlp_part_name(const hn_mlp_shape *s, hn_mlp_part part); /* IBM's "speculator.emb.0.weight", Arctic's "forget_emb.0.weight" */

typedef struct hn_mlp_net hn_mlp_net;

/* For batches of at most `rows` rows. The workers must outlive the network. */
hunch_status hn_mlp_net_open(hn_mlp_net **out, hn_workers *t, const hn_mlp_shape *s, double decay, int rows, hunch_error *err);
void hn_mlp_net_close(hn_mlp_net *n); /* NULL is fine */
/* As hn_medusa_net_loss. */
double hn_mlp_net_loss(hn_mlp_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
#endif
