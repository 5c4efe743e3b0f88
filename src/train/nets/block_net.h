/* SPDX-License-Identifier: Apache-2.0 */
/* block_net.h - heads that draft all their tokens in one pass as networks for training: P-EAGLE (2602.01469), DART (2601.19278), DFlash
 * (2602.06036).
 *
 *     PEAGLE, DART: a row of a text has EAGLE-3's input, g = fc · taps, its first layer reads x = [norm_token(embedding) |
 *     norm_state(g)] beside the stream g. It is followed by masks 1, 2, .. at the next positions, each of which sees the text up to
 *     that row and the masks before it:
 *         PEAGLE   as a row of a text, with the embedding of mask_token, and `mask` [taps] for the taps
 *         DART     x = `mask` [2 hidden], and the stream begins as its first half
 *     q = softmax(head · norm(z)), in DART norm(norm(z)); the row itself drafts too.
 *
 *     DFLASH: a text's row gives only c = norm_state(fc · taps), for keys and values of every layer. It is followed by a block: the
 *     embedding of the row's token, and masks with that of mask_token; all rows of a block see each other. The masks draft; layers
 *     as in Qwen3. With a Markov head (DSpark) logits += markov_out · markov_in[token before the draft], from the text. With a prefix
 *     (Domino) those of prefix_net.h are added; the loss has also that of the logits without them, with the share base_share.
 *
 * Row i of a text has the target's states at place i and the token after it, token[i]. The label of its k-th draft, k from 0, is dist[i
 * + k]: cross entropy with the target's distribution. In PEAGLE and DART draft 0 is the row's own, draft k that of mask k; in DFLASH
 * that of mask k + 1. The loss is the mean over all learned drafts (block_plan.h) weighted by weight[i + k] decay^k. */
#ifndef HN_BLOCK_NET_H
#define HN_BLOCK_NET_H
#include "train/math/parts.h"
#include "train/nets/net_batch.h"
#include "train/nets/block_plan.h"
#include "train/nets/prefix_net.h"
#include "train/nets/stack.h"

typedef enum hn_block_kind { HN_BLOCK_PEAGLE, HN_BLOCK_DART, HN_BLOCK_DFLASH } hn_block_kind;

typedef struct hn_block_shape {
    HN_SIZES;
    hn_block_kind kind;
    int taps, layers; /* taps: width of all states of a row together */
    int vocab;     /* number of tokens that it drafts */
    bool borrowed; /* the output matrix is the target's and is not trained: DFLASH with a whole vocabulary */
    int drafts;    /* in a row; in DFLASH a block has one row more */
    int mask_token;
    bool causal;   /* of DFLASH: rows of a block see none after them (JetSpec) */
    int markov_rank, tokens; /* for DFLASH with a Markov head; tokens: of the target */
    hn_prefix_shape prefix;  /* for DFLASH */
    double decay;
    double keep, least; /* for PEAGLE: block_plan.h */
} hn_block_shape;

/* Parts outside layers, then those of each layer. */
typedef enum hn_block_part {
    HN_BLOCK_FC,
    HN_BLOCK_NORM_STATE,
    HN_BLOCK_MASK,
    HN_BLOCK_NORM,
    HN_BLOCK_HEAD,
    HN_BLOCK_MARKOV_IN,
    HN_BLOCK_MARKOV_OUT,
    HN_BLOCK_GRU_INPUT,
    HN_BLOCK_GRU_STATE,
    HN_BLOCK_BIAS_IN,
    HN_BLOCK_BIAS_OUT,
    HN_BLOCK_LAYERS,
    HN_BLOCK_INPUT = 0, /* in the first layer of PEAGLE and DART: norm of the embedding */
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
/* As those of eagle3_net.h. A part has no rows if the kind does not have it. */
size_t hn_block_count(const hn_block_shape *s);
hn_mat hn_block_part_of(const hn_block_shape *s, int part, hn_real *vector);
/* Its name in the folder, of at most 80 bytes. */
void hn_block_part_name(const hn_block_shape *s, int part, char *out);

typedef struct hn_block_net hn_block_net;

/* For batches of at most `rows` rows of texts. table [tokens][hidden] and, if it is borrowed, head [vocab][hidden] are
 * not trained; they, the workers, and the weights must outlive the network. */
hunch_status hn_block_net_open(hn_block_net **out, hn_workers *t, const hn_block_shape *s, hn_mat table, hn_mat head,
                               int rows, hunch_error *err);
void hn_block_net_close(hn_block_net *n); /* NULL is fine */
/* The whole loss; losses [drafts], the mean of each draft. gradient, unless NULL: adds the gradient of the loss to it. */
double hn_block_net_loss(hn_block_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
#endif
