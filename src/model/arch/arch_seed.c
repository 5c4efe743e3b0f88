/* SPDX-License-Identifier: Apache-2.0 */
/* arch_seed.c - Seed-OSS: the plain dense block with biases on q, k and v, which a key of their own adds to o; a GGUF has another name
 * for the norm before the gated half. Dropouts are for training. */
#include <math.h>

#include "model/arch/arch.h"

static const hn_key_row keys[] = {
    HN_HEAD_DIM(128), HN_KV_HEADS(8), HN_EPS(NAN, 1e-6),
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "attention_bias", 0, 1, {0, 1}},
    {HN_LAYER(BOOL, o_bias), "?blk.0.attn_output.bias", "attention_out_bias", 0, 1},
    HN_ROWS_END};

static const hn_role_other names[] = {{HN_ROLE_FFN_NORM, "blk.%d.post_attention_norm.weight", NULL, NULL}, {HN_ROLES, NULL, NULL, NULL}};

const hn_family hn_family_seed_oss = {.gguf_name = "seed_oss", .hf_type = "seed_oss", .names = names, .keys = {hn_mlp_bias_keys, keys}};
