/* SPDX-License-Identifier: Apache-2.0 */
/* delta_desc.h - sizes and layout of a gated delta net (ops/delta.h, model/mixer_delta.c) in the description of a layer, whose only mixer
 * it is, and the roles of its tensors. */
#ifndef HN_DELTA_DESC_H
#define HN_DELTA_DESC_H
#include "model/arch/arch.h"

typedef struct hn_delta_desc {
    int key_heads, value_heads, key_dim, value_dim, taps;
    int tiled;       /* the file has its value heads tiled */
    int fused;       /* q, k, v and z of each key head are adjacent rows of one matrix */
    int fused_gates; /* b and a of each key head are adjacent rows of one matrix */
} hn_delta_desc;
_Static_assert(sizeof(hn_delta_desc) <= sizeof(int[HN_MIXER_NUMBERS]), "numbers of a mixer");

static inline const hn_delta_desc *hn_delta_of(const hn_mixer_desc *x) { return (const void *)x->own; }
/* Where the rows of a family read it, in layers of other kinds too. */
static inline hn_delta_desc *hn_delta_at(hn_layer_desc *l) { return (void *)l->mixer[0].own; }
#define HN_DELTA(TYPE, field) HN_MIXER(TYPE, 0, hn_delta_desc, field)

#define HN_ROLE_DELTA_QKV HN_ROLE_OF(delta, 0)
#define HN_ROLE_DELTA_Z HN_ROLE_OF(delta, 1)
#define HN_ROLE_DELTA_QKVZ HN_ROLE_OF(delta, 2) /* instead of both */
#define HN_ROLE_DELTA_B HN_ROLE_OF(delta, 3)
#define HN_ROLE_DELTA_A HN_ROLE_OF(delta, 4)
#define HN_ROLE_DELTA_BA HN_ROLE_OF(delta, 5) /* instead of both */
#define HN_ROLE_DELTA_CONV HN_ROLE_OF(delta, 6)
#define HN_ROLE_DELTA_DECAY HN_ROLE_OF(delta, 7)
#define HN_ROLE_DELTA_DT HN_ROLE_OF(delta, 8)
#define HN_ROLE_DELTA_NORM HN_ROLE_OF(delta, 9)
#define HN_ROLE_DELTA_OUT HN_ROLE_OF(delta, 10)
#endif
