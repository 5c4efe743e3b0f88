/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_net.h - EAGLE-3's head as a network for training, by training-time test (2503.01840).
 *
 *     g  = step 0: fc · taps; step k: out of step k - 1, the gradient flows back through it
 *     j  = [norm_input(embedding of the row's token k places on) | norm_hidden(g)]
 *     r  = (norm_before_residual: norm_hidden(g), else g) + o · attention(q, k, v of j)      attention_back.h
 *     out = r + down · swiglu(gate, up of norm_post(r))
 *     q  = softmax(head · norm(out)); with clusters: of the tokens of those with the best scores, centroids · norm(out)
 *
 * Row i of a text has the target's states at place i (taps) and the token after it, token[i]; its first output is a distribution
 * of the token after that. At step k it reads token[i + k], has position i + k, and label dist[i + k]; rows whose text
 * ends before that have no loss. The loss of a step is the weighted mean over its rows of the cross entropy with the
 * target's distribution, with clusters that of cluster_loss.h; the whole loss is the sum of decay^k times the loss of step k. */
#ifndef HN_EAGLE3_NET_H
#define HN_EAGLE3_NET_H
#include "train/math/layers/attention_back.h"
#include "train/math/loss/cluster_loss.h"
#include "train/math/parts.h"
#include "train/nets/net_batch.h"

typedef struct hn_eagle3_shape {
    HN_SIZES;  /* hidden: of the head and of the embedding */
    int taps;  /* width of all states of a row together, usually three times the target's width */
    int vocab; /* number of tokens that it drafts */
    bool norm_before_residual;
    hn_token_clusters clusters; /* of the tokens that it drafts; count 0: none */
} hn_eagle3_shape;

typedef enum hn_eagle3_part {
    HN_EAGLE3_FC,
    HN_EAGLE3_NORM_INPUT,
    HN_EAGLE3_NORM_HIDDEN,
    HN_EAGLE3_Q,
    HN_EAGLE3_K,
    HN_EAGLE3_V,
    HN_EAGLE3_O,
    HN_EAGLE3_NORM_POST,
    HN_EAGLE3_GATE,
    HN_EAGLE3_UP,
    HN_EAGLE3_DOWN,
    HN_EAGLE3_NORM,
    HN_EAGLE3_HEAD,
    HN_EAGLE3_PARTS, /* of a head without clusters */
    HN_EAGLE3_CENTROIDS = HN_EAGLE3_PARTS,
    HN_EAGLE3_ALL_PARTS
} hn_eagle3_part;

/* All weights are in one vector, part after part, and so are gradients and the optimiser's averages. */
size_t hn_eagle3_count(const hn_eagle3_shape *s);
/* A part of such a vector: a matrix [outputs][inputs], or a norm's gain [1][hidden]. */
hn_mat hn_eagle3_part_of(const hn_eagle3_shape *s, hn_eagle3_part part, hn_real *vector);
/* Its name in published checkpoints: "midlayer.self_attn.q_proj.weight". */
const char *hn_eagle3_part_name(hn_eagle3_part part);

typedef struct hn_eagle3_net hn_eagle3_net;

/* For batches of at most `rows` rows. table [tokens][hidden]: the embedding, which is not trained; it, the workers, and
 * the weights must outlive the network. */
hunch_status hn_eagle3_net_open(hn_eagle3_net **out, hn_workers *t, const hn_eagle3_shape *s, int steps, double decay,
                                hn_mat table, int rows, hunch_error *err);
void hn_eagle3_net_close(hn_eagle3_net *n); /* NULL is fine */
/* The whole loss; losses [steps], those of the steps. gradient, unless NULL: adds the gradient of the loss to it. The
 * loss of a step without any weight is 0. */
double hn_eagle3_net_loss(hn_eagle3_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient,
                          double *losses);
/* The logits of step 0, whose softmax is the distribution of the head's first draft after each row: [rows][vocab]. */
void hn_eagle3_net_drafts(hn_eagle3_net *n, hn_real *weights, const hn_net_batch *b, hn_mat logits);
#endif
