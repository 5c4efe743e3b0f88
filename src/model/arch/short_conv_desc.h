/* SPDX-License-Identifier: Apache-2.0 */
/* short_conv_desc.h - sizes of a gated short convolution (ops/short_conv.h, model/mixer_short_conv.c) in the description of a layer, and
 * the roles of its tensors. */
#ifndef HN_SHORT_CONV_DESC_H
#define HN_SHORT_CONV_DESC_H
#include "model/arch/arch.h"

typedef struct hn_short_conv_desc {
    int width, taps;
    int bias; /* both products and the convolution have biases */
} hn_short_conv_desc;
_Static_assert(sizeof(hn_short_conv_desc) <= sizeof(int[HN_MIXER_NUMBERS]), "numbers of a mixer");

static inline const hn_short_conv_desc *hn_short_conv_of(const hn_mixer_desc *x) { return (const void *)x->own; }
/* Where the rows of a family read it, in layers of other kinds too. */
static inline hn_short_conv_desc *hn_short_conv_at(hn_layer_desc *l) { return (void *)l->mixer[0].own; }
#define HN_SHORT_CONV(TYPE, field) HN_MIXER(TYPE, 0, hn_short_conv_desc, field)

#define HN_ROLE_SHORT_CONV_IN HN_ROLE_OF(short_conv, 0) /* B | C | x */
#define HN_ROLE_SHORT_CONV_IN_BIAS HN_ROLE_OF(short_conv, 1)
#define HN_ROLE_SHORT_CONV HN_ROLE_OF(short_conv, 2)
#define HN_ROLE_SHORT_CONV_BIAS HN_ROLE_OF(short_conv, 3)
#define HN_ROLE_SHORT_CONV_OUT HN_ROLE_OF(short_conv, 4)
#define HN_ROLE_SHORT_CONV_OUT_BIAS HN_ROLE_OF(short_conv, 5)

/* Of LFM2, dense and with experts (arch_lfm2.c). */
extern const hn_key_row hn_lfm2_keys[];
extern const hn_role_other hn_lfm2_names[];
hunch_status hn_lfm2_layers(hn_arch *a, hn_source *src, hunch_error *err); /* `finish`: which layers are what */
#endif
