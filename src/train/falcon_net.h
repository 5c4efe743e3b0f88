/* SPDX-License-Identifier: Apache-2.0 */
/* falcon_net.h - Falcon's head (2412.12639) as a network that learns: k tokens a pass, and passes that read the head's own guesses.
 *
 *     u   = lstm(lstm([embedding of the row's token | f]))     lstm.h, each row from a state of zero
 *     r   = u + o · attention(q, k, v of u)                    rows of a block of k see all rows before it and each other
 *     out = r + down · swiglu(gate, up of norm_post(r))
 *     q   = softmax(head · out), the target's own output matrix, or some of its rows; it does not learn
 *
 * Row i of a text has f, the target's last state behind the final norm at place i, and the token behind it; its out is a guess of the state k
 * places on. In pass 0 each text is cut into blocks of k, from a row at random on. In pass 1 a block stands behind each: the tokens k places on,
 * and out of pass 0 in the place of f, through which no gradient flows, as in HASS; it sees the rows of the text up to the block's end, and itself,
 * which is what the head sees when it has drafted k tokens. More passes than two are drafted, not learned. Blocks that a text's end would cut
 * are left out: rows of a block see each other, so that a cut one is another function.
 *
 * The loss of a pass is the mean over its rows, by the weights of what they guess, of state_share times Smooth-L1 to the state and law_share times the
 * cross entropy with the law; the loss of the whole is the sum over passes. The paper chooses rows that read the target's states by how many
 * it has drafted wrong (CSGD); here all rows learn from both. */
#ifndef HN_FALCON_NET_H
#define HN_FALCON_NET_H
#include "train/stack.h"

typedef struct hn_falcon_shape {
    int hidden, heads, kv_heads, head_dim, ffn;
    int together, passes; /* k, 1 to HN_MOST_BLOCK; 1 or 2 */
    double eps, theta, state_share, law_share;
} hn_falcon_shape;

typedef enum hn_falcon_part {
    HN_FALCON_LSTM_1, /* [4 hidden][2 hidden], gates in the order i, f, g, o */
    HN_FALCON_LSTM_2,
    HN_FALCON_BIAS_1,
    HN_FALCON_BIAS_2,
    HN_FALCON_STATE_BIAS_1, /* added to the first bias, as torch's bias_hh */
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
const char *hn_falcon_part_name(hn_falcon_part part); /* its release's: "lstm.weight_ih_l0" */

typedef struct hn_falcon_batch {
    int texts;
    const int *start;      /* [texts + 1], as in attention_back.h; start[0] is 0 */
    const int *token;      /* [rows] */
    hn_mat state;          /* [rows][hidden]: the target's at the row's place */
    hn_mat next;           /* [rows][hidden]: one place on */
    hn_mat law;            /* [..][vocabulary], the target's behind the token */
    const hn_real *weight; /* [rows], 0: no loss there */
    const int *law_row;    /* [rows]: where in law the row's is, if it has a loss; NULL: in its own row */
    uint64_t seed;         /* of where texts are cut */
    bool same_guesses;     /* pass 1 reads what pass 0 made in the call before, of the same batch: for tests of gradients */
} hn_falcon_batch;

typedef struct hn_falcon_net hn_falcon_net;

/* For batches of at most `rows` rows. table [tokens][hidden] and head [vocabulary][hidden] do not learn; they, the team and the weights outlive
 * the network. */
hunch_status hn_falcon_net_open(hn_falcon_net **out, hn_team *t, const hn_falcon_shape *s, hn_mat table, hn_mat head, int rows, hunch_error *err);
void hn_falcon_net_close(hn_falcon_net *n); /* NULL is fine */
/* The loss of the whole; losses [passes * together], the mean of each draft's. gradient, unless NULL: the loss's is added to it. */
double hn_falcon_net_loss(hn_falcon_net *n, hn_real *weights, const hn_falcon_batch *b, hn_real *gradient, double *losses);
#endif
