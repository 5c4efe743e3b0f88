/* SPDX-License-Identifier: Apache-2.0 */
/* mtp_net.h - a module of multi-token prediction (DeepSeek-V3, 2412.19437) as a network for training in a chain (FastMTP, 2509.18362).
 *
 *     f   = step 0: the target's state; step k: o of step k - 1, the gradient flows back through it
 *     u   = fc · [norm_token(embedding of the row's token k places on) | norm_hidden(f)]
 *     r   = u + o_proj · attention(q, k, v of norm_input(u))   queries and keys are normed head by head; attention_back.h
 *     out = r + down · swiglu(gate, up of norm_post(r))
 *     o   = norm_output(out)
 *     q   = softmax(head · o), the target's own output matrix, or some of its rows; it is not trained
 *
 * Row i has the target's last state at place i, after the final norm, and the token after it; its first output is a distribution of the
 * token after that. At step k it reads token[i + k], has position i + k, and label dist[i + k]; rows whose text ends before that have no
 * loss. The loss of a step is the weighted mean over its rows of the cross entropy with the target's distribution; the whole loss is the
 * sum of decay^k times the loss of step k, over the sum of decay^k. FastMTP's own steps differ: they keep the positions of step 0, and
 * see only their own step's keys. Here a step sees the same keys as in drafting.
 *
 * With several modules step k belongs to module k, as DeepSeek-V3 trains (2412.19437): its rows see only its own keys and values, of the
 * same text up to themselves, and each reads module k - 1's output of the same row. */
#ifndef HN_MTP_NET_H
#define HN_MTP_NET_H
#include "train/math/layers/attention_back.h"
#include "train/math/parts.h"
#include "train/nets/net_batch.h"

typedef struct hn_mtp_shape {
    HN_SIZES;
    int modules; /* 1: it is chained; else one for each step, with weights of its own */
} hn_mtp_shape;

typedef enum hn_mtp_part {
    HN_MTP_NORM_TOKEN,
    HN_MTP_NORM_HIDDEN,
    HN_MTP_FC,
    HN_MTP_NORM_INPUT,
    HN_MTP_Q,
    HN_MTP_K,
    HN_MTP_V,
    HN_MTP_O,
    HN_MTP_Q_NORM,
    HN_MTP_K_NORM,
    HN_MTP_NORM_POST,
    HN_MTP_GATE,
    HN_MTP_UP,
    HN_MTP_DOWN,
    HN_MTP_NORM_OUTPUT,
    HN_MTP_PARTS
} hn_mtp_part;

/* As those of eagle3_net.h. Parts of module m are [m * HN_MTP_PARTS, ..). */
size_t hn_mtp_count(const hn_mtp_shape *s);
hn_mat hn_mtp_part_of(const hn_mtp_shape *s, int part, hn_real *vector);
void hn_mtp_part_name(int part, char *out); /* as in speculators: "mtp_layers.0.input_proj.weight", of at most 80 bytes */

typedef struct hn_mtp_net hn_mtp_net;

/* For batches of at most `rows` rows. table [tokens][hidden] and head [vocabulary][hidden], the target's, are not
 * trained; they, the workers, and the weights must outlive the network. */
hunch_status hn_mtp_net_open(hn_mtp_net **out, hn_workers *t, const hn_mtp_shape *s, int steps, double decay, hn_mat table,
                             hn_mat head, int rows, hunch_error *err);
void hn_mtp_net_close(hn_mtp_net *n); /* NULL is fine */
/* As hn_eagle3_net_loss. */
double hn_mtp_net_loss(hn_mtp_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
#endif
