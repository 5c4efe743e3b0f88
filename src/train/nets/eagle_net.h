/* SPDX-License-Identifier: Apache-2.0 */
/* eagle_net.h - EAGLE-1's head (and -2's) as a network for training, by the steps of HASS (2401.15077, 2408.15766).
 *
 *     f   = step 0: the target's state; step k: out of step k - 1, through which no gradient flows
 *     u   = fc · [embedding of the row's token k places on | f] + bias
 *     r   = u + o · attention(q, k, v of u)           attention_back.h: its steps are also those of HASS
 *     out = r + down · swiglu(gate, up of norm_post(r))
 *     q   = softmax(head · out), the target's own output matrix, or some of its rows; it is not trained
 *
 * Row i has the target's last state at place i, after the final norm, and the token after it; its out is a guess of the
 * state there. At step k row i has labels next[i + k] and dist[i + k]; rows whose text ends before that have no loss.
 * The loss of a step is the weighted mean over its rows of state_share times Smooth-L1 to the state and dist_share times
 * the cross entropy with the distribution; the whole loss is the sum over the steps. One step is EAGLE-1's training. Not
 * implemented: HASS's loss on the likeliest tokens only, biases of q, k and v. */
#ifndef HN_EAGLE_NET_H
#define HN_EAGLE_NET_H
#include "train/math/layers/attention_back.h"
#include "train/math/parts.h"
#include "train/nets/net_batch.h"

typedef struct hn_eagle_shape {
    HN_SIZES;
    bool bias; /* of fc */
} hn_eagle_shape;

typedef enum hn_eagle_part {
    HN_EAGLE_FC,
    HN_EAGLE_FC_BIAS,
    HN_EAGLE_Q,
    HN_EAGLE_K,
    HN_EAGLE_V,
    HN_EAGLE_O,
    HN_EAGLE_NORM_POST,
    HN_EAGLE_GATE,
    HN_EAGLE_UP,
    HN_EAGLE_DOWN,
    HN_EAGLE_PARTS
} hn_eagle_part;

/* As those of eagle3_net.h. The bias has no rows if there is none. */
size_t hn_eagle_count(const hn_eagle_shape *s);
hn_mat hn_eagle_part_of(const hn_eagle_shape *s, hn_eagle_part part, hn_real *vector);
const char *hn_eagle_part_name(hn_eagle_part part); /* "layers.0.self_attn.q_proj.weight" */

typedef struct hn_eagle_frozen {
    hn_mat table; /* the target's embedding [tokens][hidden] */
    hn_mat head;  /* its output matrix [vocabulary][hidden] */
} hn_eagle_frozen;

typedef struct hn_eagle_net hn_eagle_net;

/* For batches of at most `rows` rows. Frozen matrices, the workers, and the weights must outlive the network. */
hunch_status hn_eagle_net_open(hn_eagle_net **out, hn_workers *t, const hn_eagle_shape *s, int steps, double state_share,
                               double dist_share, const hn_eagle_frozen *f, int rows, hunch_error *err);
void hn_eagle_net_close(hn_eagle_net *n); /* NULL is fine */
/* The whole loss; losses [steps], those of the steps. gradient, unless NULL: adds the gradient of the loss to it. */
double hn_eagle_net_loss(hn_eagle_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
#endif
