/* SPDX-License-Identifier: Apache-2.0 */
/* arch_llama.c - Llama 2/3 and its equals (SmolLM2, the tiny story models): the plain dense block, with biases if the
 * file has them. Mistral: the same, with a sliding window if its folder specifies one; Mixtral: Mistral with experts.
 * All use the GGUF architecture llama. */
#include "model/arch/arch.h"

static hunch_status llama_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense llama = {.prefix = "llama", .interleaved = true, .attention_bias = true, .mlp_bias = true};
    const hn_key experts = {"llama.expert_count", NULL, 0, HN_MAX_EXPERTS, 0};
    int n = 0;
    hunch_status st = hn_key_int(src, &experts, &n, err);
    if (st) return st;
    return n > 0 ? hn_mixtral_read(a, src, err) : hn_dense_read(a, src, &llama, err);
}

static hunch_status mistral_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense mistral = {.prefix = "llama", .interleaved = true, .windowed = true};
    return hn_dense_read(a, src, &mistral, err);
}

const hn_family hn_family_llama = {"llama", "llama", llama_read};
const hn_family hn_family_mistral = {"llama", "mistral", mistral_read};
