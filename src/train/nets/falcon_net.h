/* SPDX-License-Identifier: Apache-2.0 */
/* falcon_net.h - Falcon's head (2412.12639) as a network for training: k tokens per pass, and passes that read the head's own guesses.
 *
 *     u   = lstm(lstm([embedding of the row's token | f]))     lstm.h, each row from a state of zero
 *     r   = u + o · attention(q, k, v of u)                    rows of a block of k see all rows before it and each other
 *     out = r + down · swiglu(gate, up of norm_post(r))
 *     q   = softmax(head · out), the target's own output matrix, or some of its rows; it is not trained
 *
 * Row i of a text has f, the target's last state after the final norm at place i, and the token after it; its out is a guess of the
 * state k places on. In pass 0 each text is cut into blocks of k, from a random row on. In pass 1 each is followed by a block: the
 * tokens k places on, and out of pass 0 in place of f, without a gradient through it, as in HASS; it sees the rows of the text up to
 * the block's end, and itself, as when the head has drafted k tokens. Drafting may use more than two passes, training does not. Blocks
 * cut by a text's end are left out: rows of a block see each other, so that a cut one is another function.
 *
 * The loss of a pass is the mean over its rows, weighted by their labels' weights, of state_share times Smooth-L1 to the state and
 * dist_share times the cross entropy with the distribution; the whole loss is the sum over passes. The paper chooses rows that read the
 * target's states by how many of their drafts are wrong (CSGD); here all rows learn from both. */
#ifndef HN_FALCON_NET_H
#define HN_FALCON_NET_H
#include "train/math/parts.h"
#include "train/nets/net_batch.h"
#include "train/nets/stack.h"

typedef struct hn_falcon_shape {
    HN_SIZES;
    int span, passes; /* k, 1 to HN_MOST_BLOCK; 1 or 2 */
    double state_share, dist_share;
} hn_falcon_shape;

typedef enum hn_falcon_part {
    HN_FALCON_LSTM_1, /* [4 hidden][2 hidden], gates in the order i, f, g, o */
    HN_FALCON_LSTM_2,
    HN_FALCON_BIAS_1,
    HN_FALCON_BIAS_2,
    HN_FALCON_STATE_BIAS_1, /* added to the first bias, like torch's bias_hh */
    HN_FALCON_STATE_BIAS_2,
    HN_FALCON_Q,
    HN_FALCON_K,
    HN_FALCON_V,
    HN_FALCON_O,
    HN_FALCON_POST,
    HN_FALCON_GATE,
    HN_FALCON_UP,
    HN_FALCON_DOWN,
    HN_FALCON_PARTS
} hn_falcon_part;

/* As those of eagle3_net.h. */
size_t hn_falcon_count(const hn_falcon_shape *s);
hn_mat hn_falcon_part_of(const hn_falcon_shape *s, hn_falcon_part part, hn_real *vector);
const char *hn_falcon_part_name(hn_falcon_part part); /* as in its release: "lstm.weight_ih_l0" */

typedef struct hn_falcon_net hn_falcon_net;

/* For batches of at most `rows` rows. table [tokens][hidden] and head [vocabulary][hidden] are not trained; they, the
 * workers and the weights must outlive the network. */
hunch_status hn_falcon_net_open(hn_falcon_net **out, hn_workers *t, const hn_falcon_shape *s, hn_mat table, hn_mat head,
                                int rows, hunch_error *err);
void hn_falcon_net_close(hn_falcon_net *n); /* NULL is fine */
/* The whole loss; losses [passes * span], the mean of each draft. gradient, unless NULL: adds the gradient of the loss to it. */
double hn_falcon_net_loss(hn_falcon_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
#endif
