/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_desc.h - sizes of a state space layer of Mamba-2 (ops/ssm.h, model/mixer_ssm.c) in the description of a layer, and the roles of its
 * tensors. */
#ifndef HN_SSM_DESC_H
#define HN_SSM_DESC_H
#include <string.h>

#include "model/arch/arch.h"

typedef struct hn_ssm_desc {
    int heads, head_dim, groups, state, taps;
    int conv_bias, in_bias, out_bias; /* of the convolution, of the products before and after it */
    int least, most;                  /* of steps: bits of floats, as a row of keys writes them */
} hn_ssm_desc;
_Static_assert(sizeof(hn_ssm_desc) <= sizeof(int[HN_MIXER_NUMBERS]), "numbers of a mixer");

static inline const hn_ssm_desc *hn_ssm_of(const hn_mixer_desc *x) { return (const void *)x->own; }
/* Where the rows of a family read it, in layers of other kinds too. */
static inline hn_ssm_desc *hn_ssm_at(hn_layer_desc *l) { return (void *)l->mixer[0].own; }
#define HN_SSM(TYPE, field) HN_MIXER(TYPE, 0, hn_ssm_desc, field)
static inline float hn_ssm_limit(int bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#define HN_ROLE_SSM_IN HN_ROLE_OF(ssm, 0) /* z | x | B | C | dt */
#define HN_ROLE_SSM_IN_BIAS HN_ROLE_OF(ssm, 1)
#define HN_ROLE_SSM_CONV HN_ROLE_OF(ssm, 2)
#define HN_ROLE_SSM_CONV_BIAS HN_ROLE_OF(ssm, 3)
#define HN_ROLE_SSM_DECAY HN_ROLE_OF(ssm, 4)
#define HN_ROLE_SSM_DT HN_ROLE_OF(ssm, 5)
#define HN_ROLE_SSM_SKIP HN_ROLE_OF(ssm, 6)
#define HN_ROLE_SSM_NORM HN_ROLE_OF(ssm, 7)
#define HN_ROLE_SSM_OUT HN_ROLE_OF(ssm, 8)
#define HN_ROLE_SSM_OUT_BIAS HN_ROLE_OF(ssm, 9)
#endif
