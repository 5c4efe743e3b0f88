/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_folder.c - the JSON files of a Hugging Face folder: config.json, the index of its shards, generation_config.json, and
 * tokenizer.json, in this order. A folder that opens is read as a model's description, and converted: the result opens again. */
#include <unistd.h>

#include "fuzz_source.h"
#include "model/model.h"

#define LAYER "model.layers.0."

/* A llama of one layer, 8 wide, 16 tokens, whose data is all zeros, in a and b; or with two experts instead of the dense layer: a, d
 * and one of c (a tensor of each expert), e (stacks), f (a tensor of each, by Mixtral's names). Or a GPT-OSS of one layer, 32 wide:
 * g, and its experts in MXFP4 (h) or by columns (i). Or latent attention (j), with queries of a rank and a correction (p) or without (q),
 * before a dense half (k) or experts (l). Or a layer of Gemma 4 (m) with the dense half (k), inputs of tokens (n) or experts (o). Or the
 * llama's layer with its queries packed as by AWQ (r) or by GPTQ (s), before the dense half (k). */
static const struct {
    char shard;
    const char *name;
    int n_dims, dims[4];
} TENSORS[] = {
    {'a', "model.embed_tokens.weight", 2, {16, 8}},
    {'a', "lm_head.weight", 2, {16, 8}},
    {'a', "model.norm.weight", 1, {8}},
    {'b', LAYER "input_layernorm.weight", 1, {8}},
    {'b', LAYER "post_attention_layernorm.weight", 1, {8}},
    {'b', LAYER "self_attn.q_proj.weight", 2, {8, 8}},
    {'b', LAYER "self_attn.k_proj.weight", 2, {8, 8}},
    {'b', LAYER "self_attn.v_proj.weight", 2, {8, 8}},
    {'b', LAYER "self_attn.o_proj.weight", 2, {8, 8}},
    {'b', LAYER "mlp.gate_proj.weight", 2, {8, 8}},
    {'b', LAYER "mlp.up_proj.weight", 2, {8, 8}},
    {'b', LAYER "mlp.down_proj.weight", 2, {8, 8}},
    {'c', LAYER "self_attn.q_norm.weight", 1, {4}},
    {'c', LAYER "self_attn.k_norm.weight", 1, {4}},
    {'c', LAYER "mlp.gate.weight", 2, {2, 8}},
    {'c', LAYER "mlp.experts.0.gate_proj.weight", 2, {8, 8}},
    {'c', LAYER "mlp.experts.0.up_proj.weight", 2, {8, 8}},
    {'c', LAYER "mlp.experts.0.down_proj.weight", 2, {8, 8}},
    {'c', LAYER "mlp.experts.1.gate_proj.weight", 2, {8, 8}},
    {'c', LAYER "mlp.experts.1.up_proj.weight", 2, {8, 8}},
    {'c', LAYER "mlp.experts.1.down_proj.weight", 2, {8, 8}},
    {'f', LAYER "block_sparse_moe.gate.weight", 2, {2, 8}},
    {'f', LAYER "block_sparse_moe.experts.0.w1.weight", 2, {8, 8}},
    {'f', LAYER "block_sparse_moe.experts.0.w2.weight", 2, {8, 8}},
    {'f', LAYER "block_sparse_moe.experts.0.w3.weight", 2, {8, 8}},
    {'f', LAYER "block_sparse_moe.experts.1.w1.weight", 2, {8, 8}},
    {'f', LAYER "block_sparse_moe.experts.1.w2.weight", 2, {8, 8}},
    {'f', LAYER "block_sparse_moe.experts.1.w3.weight", 2, {8, 8}},
    {'e', LAYER "self_attn.q_norm.weight", 1, {4}},
    {'e', LAYER "self_attn.k_norm.weight", 1, {4}},
    {'e', LAYER "mlp.gate.weight", 2, {2, 8}},
    {'e', LAYER "mlp.experts.gate_up_proj", 3, {2, 16, 8}},
    {'e', LAYER "mlp.experts.down_proj", 3, {2, 8, 8}},
    {'d', LAYER "input_layernorm.weight", 1, {8}},
    {'d', LAYER "post_attention_layernorm.weight", 1, {8}},
    {'d', LAYER "self_attn.q_proj.weight", 2, {8, 8}},
    {'d', LAYER "self_attn.k_proj.weight", 2, {8, 8}},
    {'d', LAYER "self_attn.v_proj.weight", 2, {8, 8}},
    {'d', LAYER "self_attn.o_proj.weight", 2, {8, 8}},
    {'g', "model.embed_tokens.weight", 2, {16, 32}},
    {'g', "lm_head.weight", 2, {16, 32}},
    {'g', "model.norm.weight", 1, {32}},
    {'g', LAYER "input_layernorm.weight", 1, {32}},
    {'g', LAYER "post_attention_layernorm.weight", 1, {32}},
    {'g', LAYER "self_attn.q_proj.weight", 2, {8, 32}},
    {'g', LAYER "self_attn.k_proj.weight", 2, {8, 32}},
    {'g', LAYER "self_attn.v_proj.weight", 2, {8, 32}},
    {'g', LAYER "self_attn.o_proj.weight", 2, {32, 8}},
    {'g', LAYER "self_attn.q_proj.bias", 1, {8}},
    {'g', LAYER "self_attn.k_proj.bias", 1, {8}},
    {'g', LAYER "self_attn.v_proj.bias", 1, {8}},
    {'g', LAYER "self_attn.o_proj.bias", 1, {32}},
    {'g', LAYER "self_attn.sinks", 1, {2}},
    {'g', LAYER "mlp.router.weight", 2, {2, 32}},
    {'g', LAYER "mlp.router.bias", 1, {2}},
    {'g', LAYER "mlp.experts.gate_up_proj_bias", 2, {2, 64}},
    {'g', LAYER "mlp.experts.down_proj_bias", 2, {2, 32}},
    {'h', LAYER "mlp.experts.gate_up_proj_blocks", 4, {2, 64, 1, 16}},
    {'h', LAYER "mlp.experts.gate_up_proj_scales", 3, {2, 64, 1}},
    {'h', LAYER "mlp.experts.down_proj_blocks", 4, {2, 32, 1, 16}},
    {'h', LAYER "mlp.experts.down_proj_scales", 3, {2, 32, 1}},
    {'i', LAYER "mlp.experts.gate_up_proj", 3, {2, 32, 64}},
    {'i', LAYER "mlp.experts.down_proj", 3, {2, 32, 32}},
    {'j', LAYER "input_layernorm.weight", 1, {8}},
    {'j', LAYER "post_attention_layernorm.weight", 1, {8}},
    {'p', LAYER "self_attn.q_a_proj.weight", 2, {4, 8}},
    {'p', LAYER "self_attn.q_a_layernorm.weight", 1, {4}},
    {'p', LAYER "self_attn.q_b_proj.weight", 2, {8, 4}},
    {'q', LAYER "self_attn.q_proj.weight", 2, {8, 8}},
    {'j', LAYER "self_attn.kv_a_proj_with_mqa.weight", 2, {10, 8}},
    {'j', LAYER "self_attn.kv_a_layernorm.weight", 1, {8}},
    {'j', LAYER "self_attn.kv_b_proj.weight", 2, {8, 8}},
    {'j', LAYER "self_attn.o_proj.weight", 2, {8, 4}},
    {'k', LAYER "mlp.gate_proj.weight", 2, {8, 8}},
    {'k', LAYER "mlp.up_proj.weight", 2, {8, 8}},
    {'k', LAYER "mlp.down_proj.weight", 2, {8, 8}},
    {'l', LAYER "mlp.gate.weight", 2, {2, 8}},
    {'p', LAYER "mlp.gate.e_score_correction_bias", 1, {2}},
    {'l', LAYER "mlp.experts.gate_up_proj", 3, {2, 16, 8}},
    {'l', LAYER "mlp.experts.down_proj", 3, {2, 8, 8}},
    {'l', LAYER "mlp.shared_experts.gate_proj.weight", 2, {8, 8}},
    {'l', LAYER "mlp.shared_experts.up_proj.weight", 2, {8, 8}},
    {'l', LAYER "mlp.shared_experts.down_proj.weight", 2, {8, 8}},
    {'m', LAYER "input_layernorm.weight", 1, {8}},
    {'m', LAYER "post_attention_layernorm.weight", 1, {8}},
    {'m', LAYER "self_attn.q_proj.weight", 2, {8, 8}},
    {'m', LAYER "self_attn.k_proj.weight", 2, {8, 8}},
    {'m', LAYER "self_attn.v_proj.weight", 2, {8, 8}},
    {'m', LAYER "self_attn.o_proj.weight", 2, {8, 8}},
    {'m', LAYER "self_attn.q_norm.weight", 1, {4}},
    {'m', LAYER "self_attn.k_norm.weight", 1, {4}},
    {'m', LAYER "pre_feedforward_layernorm.weight", 1, {8}},
    {'m', LAYER "post_feedforward_layernorm.weight", 1, {8}},
    {'m', LAYER "layer_scalar", 1, {1}},
    {'n', "model.embed_tokens_per_layer.weight", 2, {16, 4}},
    {'n', "model.per_layer_model_projection.weight", 2, {4, 8}},
    {'n', "model.per_layer_projection_norm.weight", 1, {4}},
    {'n', LAYER "per_layer_input_gate.weight", 2, {4, 8}},
    {'n', LAYER "per_layer_projection.weight", 2, {8, 4}},
    {'n', LAYER "post_per_layer_input_norm.weight", 1, {8}},
    {'o', LAYER "pre_feedforward_layernorm_2.weight", 1, {8}},
    {'o', LAYER "post_feedforward_layernorm_1.weight", 1, {8}},
    {'o', LAYER "post_feedforward_layernorm_2.weight", 1, {8}},
    {'o', LAYER "router.proj.weight", 2, {2, 8}},
    {'o', LAYER "router.scale", 1, {8}},
    {'o', LAYER "router.per_expert_scale", 1, {2}},
    {'o', LAYER "experts.gate_up_proj", 3, {2, 16, 8}},
    {'o', LAYER "experts.down_proj", 3, {2, 8, 8}},
    {'r', LAYER "input_layernorm.weight", 1, {8}},
    {'r', LAYER "post_attention_layernorm.weight", 1, {8}},
    {'r', LAYER "self_attn.k_proj.weight", 2, {8, 8}},
    {'r', LAYER "self_attn.v_proj.weight", 2, {8, 8}},
    {'r', LAYER "self_attn.o_proj.weight", 2, {8, 8}},
    {'r', LAYER "self_attn.q_proj.qweight", 2, {8, 1}},
    {'r', LAYER "self_attn.q_proj.qzeros", 2, {2, 1}},
    {'r', LAYER "self_attn.q_proj.scales", 2, {2, 8}},
    {'s', LAYER "input_layernorm.weight", 1, {8}},
    {'s', LAYER "post_attention_layernorm.weight", 1, {8}},
    {'s', LAYER "self_attn.k_proj.weight", 2, {8, 8}},
    {'s', LAYER "self_attn.v_proj.weight", 2, {8, 8}},
    {'s', LAYER "self_attn.o_proj.weight", 2, {8, 8}},
    {'s', LAYER "self_attn.q_proj.qweight", 2, {1, 8}},
    {'s', LAYER "self_attn.q_proj.qzeros", 2, {2, 1}},
    {'s', LAYER "self_attn.q_proj.scales", 2, {2, 8}},
    {'s', LAYER "self_attn.q_proj.g_idx", 1, {8}},
};
enum { N_TENSORS = sizeof TENSORS / sizeof *TENSORS, SHARD_BYTES = 32768, FIRST_FILE = 4 };

/* The type of a tensor, by its name; *bytes: of an element. */
static const char *type_of(const char *name, size_t *bytes) {
    const bool parts = strstr(name, "_blocks") || strstr(name, "_scales"), words = strstr(name, ".q_proj.q") || strstr(name, ".g_idx");
    *bytes = parts ? 1 : strstr(name, ".scales") ? 2 : 4;
    return parts ? "U8" : strstr(name, ".scales") ? "F16" : words ? "I32" : "F32";
}

static size_t head_text(char *out, size_t size, char shard) {
    size_t len = (size_t)snprintf(out, size, "{\"__metadata__\":{\"format\":\"pt\"}"), at = 0;
    for (int i = 0; i < N_TENSORS; i++) {
        if (TENSORS[i].shard != shard) continue;
        size_t bytes;
        const char *type = type_of(TENSORS[i].name, &bytes);
        len += (size_t)snprintf(out + len, size - len, ",\"%s\":{\"dtype\":\"%s\",\"shape\":", TENSORS[i].name, type);
        for (int d = 0; d < TENSORS[i].n_dims; d++) {
            len += (size_t)snprintf(out + len, size - len, "%c%d", d ? ',' : '[', TENSORS[i].dims[d]);
            bytes *= (size_t)TENSORS[i].dims[d];
        }
        len += (size_t)snprintf(out + len, size - len, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    return len + (size_t)snprintf(out + len, size - len, "}");
}

static void shard_make(char shard) {
    static uint8_t bytes[SHARD_BYTES];
    char name[] = "a.safetensors";
    memset(bytes, 0, sizeof bytes);
    size_t len = head_text((char *)bytes + 8, SHARD_BYTES / 4, shard);
    bytes[0] = (uint8_t)len;
    bytes[1] = (uint8_t)(len >> 8);
    name[0] = shard;
    fuzz_folder_file(name, FIRST_FILE + shard - 'a', (fuzz_bytes){bytes, sizeof bytes}, false);
}

/* A supported model is converted, unless GGUF cannot express its tokenizer. */
static void convert(void) {
    static char path[200];
    hn_source *s = NULL;
    hunch_error err = {0};
    snprintf(path, sizeof path, "%s/converted", fuzz_folder());
    hunch_status st = hunch_convert(fuzz_folder(), path, NULL, &err);
    fuzz_check(st, &err, NULL);
    FUZZ_MUST(st == HUNCH_OK || access(path, F_OK) != 0);
    if (st != HUNCH_OK) return;
    FUZZ_MUST(hn_source_open(&s, path, &err) == HUNCH_OK);
    fuzz_read_source(s);
    hn_source_close(&s);
    FUZZ_MUST(unlink(path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool made;
    fuzz_bytes rest = {data, size};
    hn_source *s = NULL;
    hn_arch arch = {0};
    hunch_error err = {0};
    if (!made) {
        for (char shard = 'a'; shard <= 's'; shard++) shard_make(shard);
        made = true;
    }
    fuzz_folder_file("config.json", 0, fuzz_part(&rest), false);
    fuzz_folder_file("model.safetensors.index.json", 1, fuzz_part(&rest), false);
    fuzz_folder_file("generation_config.json", 2, fuzz_part(&rest), true);
    fuzz_folder_file("tokenizer.json", 3, fuzz_part(&rest), true);
    hunch_status st = hn_source_open(&s, fuzz_folder(), &err);
    fuzz_check(st, &err, fuzz_folder());
    if (st == HUNCH_OK) {
        fuzz_read_source(s);
        st = hn_model_mark(s, &arch, NULL, &err);
        fuzz_check(st, &err, fuzz_folder());
        if (st == HUNCH_OK) hn_arch_fini(&arch);
        if (st == HUNCH_OK) convert();
    }
    hn_source_close(&s);
    return 0;
}
