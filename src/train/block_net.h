/* SPDX-License-Identifier: Apache-2.0 */
/* block_net.h - heads that draft all their tokens in one pass as networks that learn: P-EAGLE (2602.01469), DART (2601.19278), DFlash
 * (2602.06036).
 *
 *     PEAGLE, DART: a row of a text has EAGLE-3's input, g = fc · taps, its first layer reads x = [norm_token(embedding) |
 *     norm_state(g)] beside the stream g. Behind it stand masks 1, 2, .. at the places that follow, each of which sees the text up to
 *     that row and the masks before it:
 *         PEAGLE   as a row of a text, with the embedding of mask_token, and `mask` [taps] for the taps
 *         DART     x = `mask` [2 hidden], and the stream begins as its first half
 *     q = softmax(head · norm(z)), of DART norm(norm(z)); the row itself drafts too.
 *
 *     DFLASH: of a text's row only c = norm_state(fc · taps) is read, as keys and values of every layer. Behind it stands a block: the
 *     embedding of the row's token, and masks, that of mask_token; all of a block see each other. The masks draft, Qwen3's layers.
 *     With a Markov head (DSpark) logits += markov_out · markov_in[token before the draft], that of the text.
 *
 * Row i of a text knows the target's states at place i and the token behind it, token[i]. Its k-th draft, k from 0, is held against
 * law[i + k]: cross entropy with the target's law, of PEAGLE and DART drafts 0, 1, .. are the row's own and mask k's, of DFLASH mask
 * k + 1's. The loss is the mean over all drafts that are learned (block_plan.h) by weight[i + k] decay^k. */
#ifndef HN_BLOCK_NET_H
#define HN_BLOCK_NET_H
#include "train/block_plan.h"
#include "train/stack.h"

typedef enum hn_block_kind { HN_BLOCK_PEAGLE, HN_BLOCK_DART, HN_BLOCK_DFLASH } hn_block_kind;

typedef struct hn_block_shape {
    hn_block_kind kind;
    int hidden, taps; /* taps: numbers of all states of a row */
    int heads, kv_heads, head_dim, ffn, layers;
    int vocab;     /* tokens that it drafts */
    bool borrowed; /* the output matrix is the target's, and does not learn: DFLASH's over a whole vocabulary */
    int drafts;    /* in a row; of DFLASH a block has one row more */
    int mask_token;
    int markov_rank, tokens; /* of DFLASH with a Markov head; tokens: of the target */
    double eps, theta;
    double decay;
    double keep, least; /* of PEAGLE: block_plan.h */
} hn_block_shape;

/* Parts of no layer, then those of each. */
typedef enum hn_block_part {
    HN_BLOCK_FC,
    HN_BLOCK_NORM_STATE,
    HN_BLOCK_MASK,
    HN_BLOCK_NORM,
    HN_BLOCK_HEAD,
    HN_BLOCK_MARKOV_IN,
    HN_BLOCK_MARKOV_OUT,
    HN_BLOCK_LAYERS,
    HN_BLOCK_INPUT = 0, /* of the first layer of PEAGLE and DART the norm of the embedding */
    HN_BLOCK_Q,
    HN_BLOCK_K,
    HN_BLOCK_V,
    HN_BLOCK_O,
    HN_BLOCK_Q_NORM,
    HN_BLOCK_K_NORM,
    HN_BLOCK_POST,
    HN_BLOCK_GATE,
    HN_BLOCK_UP,
    HN_BLOCK_DOWN,
    HN_BLOCK_LAYER_PARTS
} hn_block_part;

int hn_block_parts(const hn_block_shape *s);
static inline int hn_block_layer_part(int layer, hn_block_part part) {
    return HN_BLOCK_LAYERS + layer * HN_BLOCK_LAYER_PARTS + (int)part;
}
/* As those of eagle3_net.h. A part has no rows where the kind has none. */
size_t hn_block_count(const hn_block_shape *s);
hn_mat hn_block_part_of(const hn_block_shape *s, int part, hn_real *vector);
/* In the folder, of at most 80 bytes. */
void hn_block_part_name(const hn_block_shape *s, int part, char *out);

typedef struct hn_block_batch {
    int texts;
    const int *start;      /* [texts + 1], as in attention_back.h; start[0] is 0 */
    const int *token;      /* [rows] */
    hn_mat taps;           /* [rows][taps] */
    hn_mat law;            /* [rows][vocab], the target's behind the token: hn_law_kept */
    const hn_real *weight; /* [rows], 0: no loss there */
    const int *law_row;    /* [rows]: where in law the row's is, if it has a loss; NULL: in its own row */
    uint64_t seed;         /* of what is chosen */
} hn_block_batch;

typedef struct hn_block_net hn_block_net;

/* For batches of at most `rows` rows of texts. table [tokens][hidden] and, where it is borrowed, head [vocab][hidden] do not learn; they,
 * the team, and the weights outlive the network. */
hunch_status hn_block_net_open(hn_block_net **out, hn_team *t, const hn_block_shape *s, hn_mat table, hn_mat head,
                               int rows, hunch_error *err);
void hn_block_net_close(hn_block_net *n); /* NULL is fine */
/* The loss of the whole; losses [drafts], the mean of each draft's. gradient, unless NULL: the loss's is added to it. */
double hn_block_net_loss(hn_block_net *n, hn_real *weights, const hn_block_batch *b, hn_real *gradient, double *losses);
#endif
