/* SPDX-License-Identifier: Apache-2.0 */
/* arch_minimax.c - MiniMax-M2: norms over the whole rows of q and k; a part of each head turns; experts in every layer, as wide as
 * intermediate_size, chosen by sigmoids and a correction. */
#include <math.h>

#include "model/arch/arch.h"

/* Published folders say how many dims turn, where others say which part of a head. */
static hunch_status read_rotated(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const hn_key dims = {NULL, "rotary_dim", 2, 512, 0};
    double n = 0;
    hunch_status st = hn_read_rotated(r, k, v, err);
    if (!st && *v == k->usual[HN_SOURCE_HF]) st = hn_key_real(r->src, &dims, &n, err);
    if (n > 0) *v = n / r->l->head_dim;
    return st;
}

static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-6), HN_CONTEXT(196608), HN_THETA(5e6), HN_HEAD_DIM(128), HN_KV_HEADS(8),
    HN_ALWAYS(HN_LAYER(BOOL, norm_rows), 1),
    {HN_MODEL(REAL, files.rotated), .usual = {1, 1}, .read = read_rotated},
    HN_EXPERTS("num_local_experts num_experts", 256), HN_USED("num_experts_per_tok", 8),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "intermediate_size", 1, 1 << 20, .follows = hn_width_of_dense},
    HN_ROWS_END};
static const hn_role_other names[] = {
    HN_MIXTRAL_NAMES, {HN_ROLE_ROUTER_BIAS, NULL, "model.layers.%d.block_sparse_moe.e_score_correction_bias", NULL}, HN_NAMES_END};

const hn_family hn_family_minimax_m2 = {.gguf_name = "minimax-m2", .hf_type = "minimax_m2", .names = names,
                                        .keys = {hn_norms_of_heads, hn_moe_keys, hn_moe_of_v3, hn_moe_normalised, keys}};
