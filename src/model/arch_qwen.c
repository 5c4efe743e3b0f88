/* SPDX-License-Identifier: Apache-2.0 */
/* arch_qwen.c - Qwen2 and 2.5: biases on q, k and v. Qwen3 dense: none, but every head of q and k is normed. */
#include "model/arch.h"

static hunch_status qwen2_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense qwen2 = {.prefix = "qwen2", .qkv_bias = true};
    return hn_dense_read(a, src, &qwen2, err);
}

static hunch_status qwen3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense qwen3 = {.prefix = "qwen3", .qk_norm = true};
    return hn_dense_read(a, src, &qwen3, err);
}

const hn_family hn_family_qwen2 = {"qwen2", "qwen2", qwen2_read};
const hn_family hn_family_qwen3 = {"qwen3", "qwen3", qwen3_read};
