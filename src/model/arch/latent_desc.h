/* SPDX-License-Identifier: Apache-2.0 */
/* latent_desc.h - latent attention (DeepSeek-V2, 2405.04434), in its absorbed form (model/mixer_latent.c), in the description of a layer,
 * whose first mixer it is: all heads read one row of `rank` numbers, their keys and values, and `rope` numbers that are rotated; a head's
 * query is made as wide by a matrix of its own, and its result brought back by another. The layer's kv_heads is 1, its head_dim that of a
 * row. Beside the roles of its own tensors it has q, unless its queries have a rank, and o. */
#ifndef HN_LATENT_DESC_H
#define HN_LATENT_DESC_H
#include "model/arch/arch.h"

typedef struct hn_latent_desc {
    int query_rank; /* of the product that makes the queries; 0: it is one matrix */
    int rank, rope; /* of a row of the cache */
    int nope, value; /* width of a head's query without its rotated part, and of its result */
    int split;      /* the file has the two matrices of each head apart, those of the keys transposed */
} hn_latent_desc;
_Static_assert(sizeof(hn_latent_desc) <= sizeof(int[HN_MIXER_NUMBERS]), "numbers of a mixer");

static inline const hn_latent_desc *hn_latent_of(const hn_mixer_desc *x) { return (const void *)x->own; }
/* Where the rows of a family read it. */
static inline hn_latent_desc *hn_latent_at(hn_layer_desc *l) { return (void *)l->mixer[0].own; }
#define HN_LATENT(TYPE, field) HN_MIXER(TYPE, 0, hn_latent_desc, field)
/* NULL: the layer has another mixer. */
static inline const hn_latent_desc *hn_layer_latent(const hn_layer_desc *l) {
    return l->mixer[0].kind == &hn_mixer_latent ? hn_latent_of(l->mixer) : NULL;
}
/* Columns before the queries in the products of a latent layer. */
static inline int hn_latent_queries_at(const hn_latent_desc *d) { return d->query_rank + d->rank + d->rope; }
/* Width of the values of keys in the cache; of the input of o. */
static inline int hn_layer_value_dim(const hn_layer_desc *l) {
    const hn_latent_desc *d = hn_layer_latent(l);
    return d ? d->rank : l->narrow ? l->narrow : l->head_dim;
}
static inline int hn_layer_mixed_width(const hn_layer_desc *l) {
    const hn_latent_desc *d = hn_layer_latent(l);
    return l->heads * (d ? d->value : hn_layer_value_dim(l));
}

#define HN_ROLE_Q_A HN_ROLE_OF(latent, 0) /* with Q_B instead of q if the queries have a rank */
#define HN_ROLE_Q_A_BIAS HN_ROLE_OF(latent, 1)
#define HN_ROLE_Q_A_NORM HN_ROLE_OF(latent, 2)
#define HN_ROLE_Q_B HN_ROLE_OF(latent, 3)
#define HN_ROLE_KV_A HN_ROLE_OF(latent, 4)
#define HN_ROLE_KV_A_BIAS HN_ROLE_OF(latent, 5)
#define HN_ROLE_KV_A_NORM HN_ROLE_OF(latent, 6)
#define HN_ROLE_KV_B HN_ROLE_OF(latent, 7) /* rows of keys, then of values, of each head; or these two, a matrix for each head: */
#define HN_ROLE_K_B HN_ROLE_OF(latent, 8)  /* with rows and columns exchanged */
#define HN_ROLE_V_B HN_ROLE_OF(latent, 9)
#endif
