/* SPDX-License-Identifier: Apache-2.0 */
/* meta_net.h - the further heads of Meta's multi-token prediction (2404.19737) as a network for training, on a fixed trunk.
 *
 *     z_k = z + o · attention(q, k, v of norm_input(z)), then + down · swiglu(gate, up of norm_post): a layer for each position k
 *     q_k = softmax(head · norm(z_k)), one norm for all; head is the target's output matrix, or some of its rows; it is not trained
 *
 * z is the target's state entering its last layer, which is the first head. Every head reads z, none reads another head. Row i of a
 * text has z at place i; the label of position k is dist[i + k], the distribution after the token k + 1 places later (positions.h). The
 * loss is the sum of the positions' mean cross entropies times decay^k; Meta's have equal weights. Heads are computed one after another,
 * so that only one has logits at a time. */
#ifndef HN_META_NET_H
#define HN_META_NET_H
#include "train/math/parts.h"
#include "train/nets/positions.h"
#include "train/nets/stack.h"

typedef struct hn_meta_shape {
    HN_SIZES;
    int positions;
} hn_meta_shape;

/* Parts of each position's layer, then the norm. */
typedef enum hn_meta_part {
    HN_META_INPUT,
    HN_META_Q,
    HN_META_K,
    HN_META_V,
    HN_META_O,
    HN_META_POST,
    HN_META_GATE,
    HN_META_UP,
    HN_META_DOWN,
    HN_META_LAYER_PARTS
} hn_meta_part;

static inline int hn_meta_parts(const hn_meta_shape *s) {
    return s->positions * HN_META_LAYER_PARTS + 1;
}
/* As those of eagle3_net.h. */
size_t hn_meta_count(const hn_meta_shape *s);
hn_mat hn_meta_part_of(const hn_meta_shape *s, int part, hn_real *vector);
/* as Meta's: "extra_heads.0.attention.wq.weight", of at most 80 bytes */
void hn_meta_part_name(const hn_meta_shape *s, int part, char *out);

typedef struct hn_meta_net hn_meta_net;

/* For batches of at most `rows` rows; their token is not read. head [vocabulary][hidden], the workers and the weights must
 * outlive the network. */
hunch_status hn_meta_net_open(hn_meta_net **out, hn_workers *t, const hn_meta_shape *s, double decay, hn_mat head, int rows,
                              hunch_error *err);
void hn_meta_net_close(hn_meta_net *n); /* NULL is fine */
/* As hn_medusa_net_loss. */
double hn_meta_net_loss(hn_meta_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
#endif
