/* SPDX-License-Identifier: Apache-2.0 */
/* arch_lfm2_moe.c - LFM2 and LFM2.5 with experts: the layers of arch_lfm2.c, of which the first are dense; the others have experts chosen
 * by sigmoids and, if the file has it, a correction. */
#include <math.h>

#include "model/arch/short_conv_desc.h"

static const hn_key_row sparse[] = {
    HN_EXPERTS("num_experts", 32), HN_USED("num_experts_per_tok", 4),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 1792}},
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "intermediate_size", 1, 1 << 20, {NAN, 7168}},
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", "num_dense_layers", 0, 0, {0, 2}, .up_to = hn_moe_layers,
     .written = hn_moe_first},
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", "routed_scaling_factor", 0, 1e6, {1, 1}, .written = hn_unusual_choice},
    {HN_LAYER(BOOL, experts.bias), NULL, "use_expert_bias", 0, 1, {0, 1}},
    HN_ALWAYS(HN_LAYER(BOOL, experts.sigmoid), 1), HN_ALWAYS(HN_LAYER(FLOAT, experts.sum_more), 1e-6), HN_NORMALISED(1, 1),
    HN_ROWS_END};

const hn_family hn_family_lfm2_moe = {.gguf_name = "lfm2moe", .hf_type = "lfm2_moe", .names = hn_lfm2_names,
                                      .keys = {hn_norms_of_heads, hn_moe_keys, hn_lfm2_keys, sparse}, .finish = hn_lfm2_layers};
