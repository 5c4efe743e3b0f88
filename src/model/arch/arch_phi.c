/* SPDX-License-Identifier: Apache-2.0 */
/* arch_phi.c - Phi-3, Phi-3.5 and Phi-4 (mini): the plain dense block with q, k, v in one matrix and gate, up in
 * another, a sliding window, a part of each head that is not rotated, and longrope (arch_rope.c). */
#include "model/arch/arch.h"

/* Beside tables of divisors as many dims are rotated as these are for: Ollama's converter writes another number. */
static hunch_status read_heads(hn_arch *a, hn_layer_desc *l, const hn_source *src, hunch_error *err) {
    const hunch_status st = hn_family_heads(a, l, src, err);
    const hn_tensor *table = hn_source_find(src, "rope_factors_long.weight");
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    if (!st && gguf && table && table->n_dims == 1 && table->dims[0] > 0 && table->dims[0] < (uint64_t)a->rotation[0].dims / 2)
        a->rotation[0].dims = 2 * (int)table->dims[0];
    return st;
}

static const hn_key_row keys[] = {
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, .how = HN_ZERO_IS_NONE, .written = hn_any_window},
    {HN_LAYER(LIST, window), NULL},
    {HN_LAYER(BOOL, fused_qkv), "?blk.0.attn_qkv.weight", NULL, 0, 1, {0, 1}},
    {HN_LAYER(BOOL, fused_gate_up), .usual = {0, 1}, .read = hn_read_gate_up},
    HN_ROWS_END};

const hn_family hn_family_phi3 = {
    .gguf_name = "phi3", .hf_type = "phi3", .keys = {keys}, .heads = read_heads, .finish = hn_family_short_windows};
