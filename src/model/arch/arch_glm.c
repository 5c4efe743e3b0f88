/* SPDX-License-Identifier: Apache-2.0 */
/* arch_glm.c - GLM-4-0414: norms before and after both branches, gate and up in one matrix; half of each head turns, in neighbouring pairs
 * in folders too. GLM-4.5, 4.6 and Air: the plain block with biases on q, k and v, some with norms of heads, half of each head rotated; the
 * first layers are dense, the others have experts chosen by sigmoids and a correction (as in DeepSeek-V3), and one that all rows share.
 * The last block of a file predicts a further token and is not a layer of the model. */
#include <math.h>

#include "model/arch/arch.h"

static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-5),
    HN_ROTATED(0.5),
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "attention_bias", 0, 1}, /* o has none */
    {HN_LAYER(BOOL, qk_norm), "?blk.0.attn_q_norm.weight", "use_qk_norm", 0, 1},
    HN_ROWS_END};

static const hn_role_other names[] = {
    {HN_ROLE_FFN_NORM, "blk.%d.post_attention_norm.weight", NULL, NULL}, HN_SHARED_NAMES("mlp.shared_experts"), HN_NAMES_END};

const hn_family hn_family_glm4_moe = {.gguf_name = "glm4moe", .hf_type = "glm4_moe", .names = names,
                                      .keys = {hn_next_layers, hn_moe_keys, hn_moe_of_deepseek, hn_moe_of_v3, keys}};

static const hn_key_row dense_keys[] = {
    HN_EPS(NAN, 1.5625e-7), HN_CONTEXT(131072), HN_ROTATED(0.5), HN_HEAD_DIM(128), HN_KV_HEADS(2),
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "attention_bias", 0, 1, {0, 1}}, /* o has none */
    HN_ALWAYS(HN_LAYER(BOOL, post_norms), 1),
    {HN_LAYER(BOOL, fused_gate_up), .usual = {0, 1}, .read = hn_read_gate_up},
    HN_ROWS_END};
static const hn_role_other dense_names[] = {{HN_ROLE_POST_ATTN_NORM, NULL, "model.layers.%d.post_self_attn_layernorm.weight", NULL},
                                            {HN_ROLE_PRE_FFN_NORM, NULL, "model.layers.%d.post_attention_layernorm.weight", NULL},
                                            {HN_ROLE_POST_FFN_NORM, NULL, "model.layers.%d.post_mlp_layernorm.weight", NULL},
                                            HN_NAMES_END};
const hn_family hn_family_glm4 = {
    .gguf_name = "glm4", .hf_type = "glm4", .pairs = true, .folder_pairs = true, .names = dense_names, .keys = {dense_keys}};
