/* SPDX-License-Identifier: Apache-2.0 */
/* student_net.h - a language model that is trained on another one's distributions, to draft for it (DistillSpec, 2310.08461).
 *
 *     z   = embedding of each token; through the layers (stack.h)
 *     q   = softmax(head · norm(z)), over all tokens, or some of them among themselves; embedding and head are not trained
 *
 * A text is its first token, `before`, and a row of the batch for each of the others; the label of row i is dist[i], the
 * target's after its token. The loss is the weighted mean over rows of a divergence of q from the distribution. */
#ifndef HN_STUDENT_NET_H
#define HN_STUDENT_NET_H
#include "train/math/loss/divergence.h"
#include "train/math/parts.h"
#include "train/nets/net_batch.h"
#include "train/nets/stack.h"

typedef struct hn_student_shape {
    HN_SIZES;
    int layers, vocab;
    bool head_norms; /* norms of queries and keys */
    bool tied;       /* the output matrix is the embedding */
} hn_student_shape;

/* Parts of each layer are in the order of hn_stack_layer's, under their names; then comes the final norm. */
enum { HN_STUDENT_LAYER_PARTS = 11 };
static inline int hn_student_parts(const hn_student_shape *s) {
    return s->layers * HN_STUDENT_LAYER_PARTS + 1;
}
size_t hn_student_count(const hn_student_shape *s);
/* A part that it does not have has no rows. */
hn_mat hn_student_part_of(const hn_student_shape *s, int part, hn_real *vector);
void hn_student_part_name(const hn_student_shape *s, int part, char *out); /* as in transformers, of at most 80 bytes */
hn_stack_layer hn_student_layer_of(const hn_student_shape *s, int layer, hn_real *vector);

typedef struct hn_student_net hn_student_net;

/* For batches of at most `rows` rows. table [tokens][hidden] and head [vocabulary][hidden] are not trained; they, the
 * workers, and the weights must outlive the network. */
hunch_status hn_student_net_open(hn_student_net **out, hn_workers *t, const hn_student_shape *s, hn_divergence d,
                                 hn_mat table, hn_mat head, int rows, hunch_error *err);
void hn_student_net_close(hn_student_net *n); /* NULL is fine */
/* The loss; gradient, unless NULL: adds the gradient of the loss to it. Without any weight it is 0. */
double hn_student_net_loss(hn_student_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient);
#endif
