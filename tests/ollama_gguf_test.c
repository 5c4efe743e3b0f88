/* SPDX-License-Identifier: Apache-2.0 */
/* ollama_gguf_test.c - a file of every family that Ollama's converter writes, as its source (convert/ of ollama/ollama) names keys and
 * tensors: it opens, and has the logits of the same weights as hunch convert writes them, bit for bit, or is refused with the sentence of
 * the table in docs/formats.md. The converted weights themselves are compared with transformers' in golden/golden_test.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "fixture.h"
#include "format/gguf_writer.h"
#include "model/arch/arch.h"
#include "gguf_edit.h" /* last: it calls a type "bytes" */

/* ---- what the converter writes otherwise ------------------------------------------------------------------------------------ */

/* Tensors of other parts of the model, which no text needs. */
static void add_parts(edit *e) {
    edit_add(e, "v.blk.0.attn_q.weight", 8, 8);
    edit_add(e, "mm.input_projection.weight", 8, 8);
    edit_add(e, "a.conv1d.0.weight", 8, 8);
}

static void of_llama(edit *e) {
    const uint32_t width = edit_value(e, "llama.embedding_length"), heads = edit_value(e, "llama.attention.head_count"),
                   dim = width / heads;
    edit_u32(e, "llama.attention.head_dim", dim);
    edit_u32(e, "llama.attention.key_length", dim);
    edit_u32(e, "llama.attention.value_length", dim);
    edit_u32(e, "llama.rope.dimension_count", dim / 2); /* as if the width was not that of all heads */
    edit_drop(e, "llama.rope.scaling");
}

/* The reference: experts half as wide as the model, else no shape shows which matrix is which. */
static void narrow_mixtral(edit *e) {
    const uint32_t width = edit_value(e, "llama.embedding_length");
    edit_u32(e, "llama.feed_forward_length", width / 2);
    for (size_t i = 0; i < e->n_tensors; i++) {
        edit_tensor *t = &e->tensor[i];
        if (!strstr(t->name, "_exps")) continue;
        t->dims[strstr(t->name, "down") ? 0 : 1] = width / 2;
        t->data.size /= 2;
    }
}

static void of_mixtral(edit *e) {
    edit_rename(e, false, "ffn_up_exps", "exchanged");
    edit_rename(e, false, "ffn_down_exps", "ffn_up_exps");
    edit_rename(e, false, "exchanged", "ffn_down_exps");
    edit_drop(e, "llama.expert_feed_forward_length");
}

static void of_gemma3(edit *e) {
    static const uint32_t local[] = {1, 1, 1, 1, 1, 0};
    edit_list(e, "gemma3.attention.sliding_window_pattern", EDIT_BOOL, local, 6);
    edit_drop(e, "gemma3.rope.freq_base_swa");
    edit_f32(e, "gemma3.rope.local.freq_base", 10000);
}

/* The reference: with the context and the scaling of models that see images. */
static void gemma3_images(edit *e) {
    edit_u32(e, "gemma3.context_length", 131072);
}

static void of_gemma3_images(edit *e) {
    edit_drop(e, "gemma3.rope.");
    edit_drop(e, "gemma3.attention.layer_norm_rms_epsilon");
    edit_u32(e, "gemma3.vision.block_count", 1);
    edit_u32(e, "gemma3.mm.tokens_per_image", 256);
    add_parts(e);
}

static void of_older_gemma3(edit *e) {
    edit_rename(e, true, "gemma3.rope.freq_base", "gemma3.rope.global.freq_base");
    edit_drop(e, "gemma3.rope.scaling");
    edit_drop(e, "gemma3.attention.layer_norm_rms_epsilon");
    edit_f32(e, "gemma3.rope.local.freq_base", 10000);
}

static void of_gemma4(edit *e) {
    edit_u32(e, "gemma4.vision.block_count", 1);
    add_parts(e);
    edit_add(e, "blk.5.attn_k.weight", 64, 32); /* of a layer that reads another's */
    edit_add(e, "blk.5.attn_v.weight", 64, 32);
    edit_add(e, "blk.5.attn_k_norm.weight", 32, 0);
}

/* Rows of the gates of all experts, then those of the ups: two tensors. */
static void split_gates(edit *e, const char *name) {
    edit_tensor *both = edit_tensor_of(e, name);
    assert_non_null(both);
    const size_t half = both->data.size / (size_t)both->dims[2] / 2;
    edit_tensor parts[2] = {*both, *both};
    for (int k = 0; k < 2; k++) {
        parts[k].data = (bytes){0};
        parts[k].dims[1] /= 2;
        for (uint64_t i = 0; i < both->dims[2]; i++)
            bytes_put(&parts[k].data, both->data.at + (2 * (size_t)i + (size_t)k) * half, half);
        snprintf(parts[k].name, sizeof parts[k].name, "%.*s%s_exps.weight", (int)(strstr(name, "gate_up") - name), name, k ? "up" : "gate");
    }
    bytes_free(&both->data);
    *both = parts[0];
    assert_true(e->n_tensors < EDIT_MOST_TENSORS);
    e->tensor[e->n_tensors++] = parts[1];
}

static void of_older_gemma4(edit *e) {
    char name[96];
    edit_rename(e, false, "ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale");
    for (uint32_t i = 0; i < edit_value(e, "gemma4.block_count"); i++) {
        snprintf(name, sizeof name, "blk.%u.ffn_gate_up_exps.weight", i);
        split_gates(e, name);
    }
    add_parts(e);
}

static void of_phi3(edit *e) {
    edit_add(e, "rope_factors_long.weight", 0, 0);
    edit_add(e, "rope_factors_short.weight", 0, 0);
    edit_u32(e, "phi3.rope.scaling.original_context_length", 4096);
    edit_drop(e, "phi3.attention.key_length");
    edit_drop(e, "phi3.attention.value_length");
}

static void of_long_phi3(edit *e) {
    edit_drop(e, "phi3.rope.scaling.type");
    edit_drop(e, "phi3.rope.scaling.factor");
    edit_u32(e, "phi3.rope.dimension_count", 32); /* width by heads: the rotated part is in the tables alone */
    edit_u32(e, "phi3.attention.sliding_window", 262144);
}

static void of_gpt_oss(edit *e) {
    edit_u32(e, "general.file_type", 4);
    edit_drop(e, "gpt-oss.rope.dimension_count");
    edit_u32(e, "gpt-oss.attention.key_length", 16);
    edit_u32(e, "gpt-oss.attention.value_length", 16);
}

static void of_older_gpt_oss(edit *e) {
    of_gpt_oss(e);
    edit_text(e, "general.architecture", "gptoss");
    edit_drop(e, "gpt-oss.rope.scaling.type");
    edit_drop(e, "gpt-oss.rope.scaling.yarn");
    edit_drop(e, "gpt-oss.expert_feed_forward_length");
    edit_rename(e, true, "gpt-oss.", "gptoss.");
    edit_rename(e, false, "attn_output", "attn_out");
    edit_rename(e, false, "attn_sinks.weight", "attn_sinks");
    edit_rename(e, false, "post_attention_norm", "ffn_norm");
}

/* Keys and values of heads in one matrix, a head's keys before its values. Elements of two bytes. */
static void join_heads(edit *e, int layer) {
    char name[96];
    snprintf(name, sizeof name, "blk.%d.attn_k_b.weight", layer);
    edit_tensor *k = edit_tensor_of(e, name);
    snprintf(name, sizeof name, "blk.%d.attn_v_b.weight", layer);
    edit_tensor *v = edit_tensor_of(e, name);
    assert_true(k && v);
    const size_t nope = (size_t)k->dims[0], rank = (size_t)k->dims[1], heads = (size_t)k->dims[2], value = (size_t)v->dims[1];
    bytes both = {0};
    for (size_t h = 0; h < heads; h++) {
        for (size_t n = 0; n < nope; n++)
            for (size_t r = 0; r < rank; r++) bytes_put(&both, k->data.at + 2 * (h * nope * rank + r * nope + n), 2);
        bytes_put(&both, v->data.at + 2 * h * value * rank, 2 * value * rank);
    }
    bytes_free(&k->data);
    bytes_free(&v->data);
    k->data = both;
    k->n_dims = 2;
    k->dims[0] = rank;
    k->dims[1] = heads * (nope + value);
    snprintf(k->name, sizeof k->name, "blk.%d.attn_kv_b.weight", layer);
    *v = e->tensor[--e->n_tensors];
    e->tensor[e->n_tensors] = (edit_tensor){0};
}

/* The reference: without what the converter loses. */
static void deepseek_without(edit *e) {
    edit_drop(e, "deepseek2.rope.scaling.yarn_beta");
}

static void of_deepseek(edit *e) {
    const uint32_t heads = edit_value(e, "deepseek2.attention.head_count");
    edit_u32(e, "deepseek2.attention.key_length", edit_value(e, "deepseek2.attention.key_length_mla"));
    edit_u32(e, "deepseek2.attention.value_length", edit_value(e, "deepseek2.attention.value_length_mla"));
    edit_u32(e, "deepseek2.attention.head_count_kv", heads);
    edit_drop(e, "deepseek2.attention.key_length_mla");
    edit_drop(e, "deepseek2.attention.value_length_mla");
    edit_drop(e, "deepseek2.expert_group");
    for (uint32_t i = 0; i < edit_value(e, "deepseek2.block_count"); i++) join_heads(e, (int)i);
}

/* Moonlight: no rank of queries, no scaling. */
static void of_deepseek_without_ranks(edit *e) {
    of_deepseek(e);
    edit_u32(e, "deepseek2.attention.q_lora_rank", 0);
    edit_f32(e, "deepseek2.rope.scaling.factor", 0);
    edit_u32(e, "deepseek2.rope.scaling.original_context_length", 0);
    edit_text(e, "deepseek2.rope.scaling.type", "");
    edit_f32(e, "deepseek2.rope.scaling.yarn_log_multiplier", 0);
    edit_rename(e, false, "attn_q.weight", "self_attn.q_proj.weight");
}

static void of_glm(edit *e) {
    edit_u32(e, "deepseek2.expert_group_count", 1);
    edit_u32(e, "deepseek2.expert_group_used_count", 1);
}

static void of_older_glm(edit *e) {
    const uint32_t key = edit_value(e, "deepseek2.attention.key_length"), value = edit_value(e, "deepseek2.attention.value_length");
    edit_text(e, "general.architecture", "glm4moelite");
    edit_u32(e, "deepseek2.attention.key_length", edit_value(e, "deepseek2.attention.key_length_mla"));
    edit_u32(e, "deepseek2.attention.value_length", edit_value(e, "deepseek2.attention.value_length_mla"));
    edit_u32(e, "deepseek2.attention.key_length_mla", key);
    edit_u32(e, "deepseek2.attention.value_length_mla", value);
    edit_u32(e, "deepseek2.attention.head_count_kv", edit_value(e, "deepseek2.attention.head_count"));
    edit_drop(e, "deepseek2.expert_group");
    edit_rename(e, true, "deepseek2.", "glm4moelite.");
}

/* ---- Qwen's hybrids ---------------------------------------------------------------------------------------------------------- */

static void of_hybrid(edit *e, const char *arch) {
    static const uint32_t sections[] = {2, 1, 1};
    char key[96];
    snprintf(key, sizeof key, "%s.mrope_sections", arch);
    edit_list(e, key, EDIT_I32, sections, 3);
    snprintf(key, sizeof key, "%s.rope.mrope_section", arch);
    edit_list(e, key, EDIT_I32, sections, 3);
    snprintf(key, sizeof key, "%s.rope.mrope_interleaved", arch);
    edit_bool(e, key, true);
    snprintf(key, sizeof key, "%s.vision.block_count", arch);
    edit_u32(e, key, 1);
    add_parts(e);
}

static void of_qwen35(edit *e) {
    of_hybrid(e, "qwen35");
    edit_bool(e, "qwen35.ssm.v_head_reordered", true);
}

static void of_qwen35_moe(edit *e) {
    of_hybrid(e, "qwen35moe");
    edit_bool(e, "qwen35moe.ssm.v_head_reordered", true);
    edit_bool(e, "qwen35moe.norm_top_k_prob", true);
    edit_u32(e, "qwen35moe.feed_forward_length", 0);
}

static void of_older_hybrid(edit *e, const char *arch) {
    char key[96];
    uint32_t heads[64] = {0};
    snprintf(key, sizeof key, "%s.block_count", arch);
    const uint32_t layers = edit_value(e, key);
    snprintf(key, sizeof key, "%s.full_attention_interval", arch);
    const uint32_t period = edit_value(e, key);
    snprintf(key, sizeof key, "%s.attention.head_count_kv", arch);
    const uint32_t kv = edit_value(e, key);
    for (uint32_t i = 0; i < layers; i++) heads[i] = (i + 1) % period ? 0 : kv;
    edit_list(e, key, EDIT_U32, heads, layers);
    edit_rename(e, false, "ssm_dt.bias", "ssm_dt");
    edit_add(e, "mtp.fc.weight", 128, 64);
}

static void of_older_qwen35(edit *e) {
    of_qwen35(e);
    of_older_hybrid(e, "qwen35");
}

static void of_older_qwen35_moe(edit *e) {
    of_qwen35_moe(e);
    of_older_hybrid(e, "qwen35moe");
}

static void of_older_next(edit *e) {
    of_older_hybrid(e, "qwen3next");
}

/* Rows of q, k, v and z by key heads become q, k and v of all heads, and z. Rows of two bytes a number. */
static void split_rows(edit *e, uint32_t layer) {
    const size_t heads = edit_value(e, "qwen3next.ssm.group_count"), key = edit_value(e, "qwen3next.ssm.state_size"),
                 values = edit_value(e, "qwen3next.ssm.inner_size") / heads, all = 2 * key + 2 * values;
    const size_t from[] = {0, key, 2 * key, 2 * key + values}, rows[] = {key, key, values, values};
    char name[96];
    snprintf(name, sizeof name, "blk.%u.ssm_in.weight", layer);
    edit_tensor *both = edit_tensor_of(e, name);
    if (!both) return; /* a layer with attention */
    const size_t width = 2 * (size_t)both->dims[0];
    edit_tensor qkv = *both, z = *both;
    qkv.data = z.data = (bytes){0};
    for (size_t part = 0; part < 4; part++)
        for (size_t h = 0; h < heads; h++)
            bytes_put(part < 3 ? &qkv.data : &z.data, both->data.at + (h * all + from[part]) * width, rows[part] * width);
    qkv.dims[1] = heads * (2 * key + values);
    z.dims[1] = heads * values;
    snprintf(qkv.name, sizeof qkv.name, "blk.%u.attn_qkv.weight", layer);
    snprintf(z.name, sizeof z.name, "blk.%u.attn_gate.weight", layer);
    bytes_free(&both->data);
    *both = qkv;
    assert_true(e->n_tensors < EDIT_MOST_TENSORS);
    e->tensor[e->n_tensors++] = z;
}

/* Qwen3-Next is written as the other with experts, the order of its heads as it was. */
static void of_next(edit *e) {
    assert_non_null(edit_tensor_of(e, "blk.0.ssm_in.weight"));
    for (uint32_t i = 0; i < edit_value(e, "qwen3next.block_count"); i++) split_rows(e, i);
    edit_text(e, "general.architecture", "qwen35moe");
    edit_rename(e, true, "qwen3next.", "qwen35moe.");
    edit_bool(e, "qwen35moe.norm_top_k_prob", true);
}

/* ---- the table ---------------------------------------------------------------------------------------------------------------- */

/* Its architecture runs, from llama.cpp's files; what Ollama's converter writes was not looked at. */
#define UNTRIED "not tried"
typedef struct family {
    const char *class, *arch, *golden; /* golden NULL: it is refused, or UNTRIED */
    void (*both)(edit *e), (*ollamas)(edit *e);
    const char *says; /* UNTRIED, or why it is refused; NULL: its architecture is unknown */
} family;

static const family families[] = {
    {"LlamaForCausalLM", "llama", "llama-gqa", NULL, of_llama, NULL},
    {"MllamaForConditionalGeneration", "mllama", NULL, NULL, NULL, NULL},
    {"Llama4ForConditionalGeneration", "llama4", NULL, NULL, NULL, NULL},
    {"Mistral3ForConditionalGeneration", "mistral3", NULL, NULL, NULL, UNTRIED},
    {"Ministral3ForCausalLM", "mistral3", NULL, NULL, NULL, UNTRIED},
    {"MixtralForCausalLM", "llama", "mixtral-top2", narrow_mixtral, of_mixtral, NULL},
    {"GemmaForCausalLM", "gemma", NULL, NULL, NULL, NULL},
    {"Gemma2ForCausalLM", "gemma2", NULL, NULL, NULL, NULL},
    {"Gemma3ForCausalLM", "gemma3", "gemma3_text-local", NULL, of_gemma3, NULL},
    {"Gemma3ForConditionalGeneration", "gemma3", "gemma3_text-local", gemma3_images, of_gemma3_images, NULL},
    {"Gemma3TextModel", "gemma-embedding", NULL, NULL, NULL, NULL},
    {"Gemma3nForConditionalGeneration", "gemma3n", NULL, NULL, NULL, NULL},
    {"Gemma4ForConditionalGeneration", "gemma4", "gemma4-e", NULL, of_gemma4, NULL},
    {"Gemma4ForCausalLM", "gemma4", NULL, NULL, NULL, "gemma4.block_count is 0, expected 1 to 1024"},
    {"Phi3ForCausalLM", "phi3", "phi3-fused", NULL, of_phi3, NULL},
    {"Qwen2ForCausalLM", "qwen2", "qwen2-bias", NULL, NULL, NULL},
    {"Qwen2_5_VLForConditionalGeneration", "qwen25vl", NULL, NULL, NULL, NULL},
    {"Qwen3VLForConditionalGeneration", "qwen3vl", NULL, NULL, NULL, NULL},
    {"Qwen3VLMoeForConditionalGeneration", "qwen3vlmoe", NULL, NULL, NULL, NULL},
    {"Olmo3ForCausalLM", "olmo2", NULL, NULL, NULL, UNTRIED},
    {"BertModel", "bert", NULL, NULL, NULL, NULL},
    {"NomicBertModel", "nomic-bert", NULL, NULL, NULL, NULL},
    {"NomicBertMoEModel", "nomic-bert-moe", NULL, NULL, NULL, NULL},
    {"CohereForCausalLM", "command-r", NULL, NULL, NULL, NULL},
    {"GptOssForCausalLM", "gpt-oss", "gpt_oss-mxfp4", NULL, of_gpt_oss, NULL},
    {"DeepseekOCRForCausalLM", "deepseekocr", NULL, NULL, NULL, NULL},
    {"DeepseekV3ForCausalLM", "deepseek2", "kimi_k2-like", deepseek_without, of_deepseek, NULL},
    {"Glm4MoeLiteForCausalLM", "deepseek2", "glm4_moe_lite-base", NULL, of_glm, NULL},
    {"LagunaForCausalLM", "laguna", NULL, NULL, NULL, UNTRIED},
    {"GlmOcrForConditionalGeneration", "glmocr", NULL, NULL, NULL, NULL},
    {"Lfm2ForCausalLM", "lfm2", NULL, NULL, NULL, UNTRIED},
    {"Lfm2MoeForCausalLM", "lfm2moe", NULL, NULL, NULL, UNTRIED},
    {"Lfm2VlForConditionalGeneration", "lfm2", NULL, NULL, NULL, UNTRIED},
    {"Qwen3NextForCausalLM", "qwen35moe", "qwen3_next-moe", NULL, of_next, NULL},
    {"Qwen3_5ForConditionalGeneration", "qwen35", "qwen3_5-dense", NULL, of_qwen35, NULL},
    {"Qwen3_5MoeForConditionalGeneration", "qwen35moe", "qwen3_5_moe-fused", NULL, of_qwen35_moe, NULL},
    {"NemotronH_Nano_VL_V2", "nemotron_h_omni", NULL, NULL, NULL, NULL},
    {"NemotronH_Nano_Omni_Reasoning_V3", "nemotron_h_omni", NULL, NULL, NULL, NULL},
    {"NemotronHForCausalLM", "nemotron_h", NULL, NULL, NULL, NULL}};

/* Further forms: without a class those of earlier versions, and of downloads that are still offered. */
static const family forms[] = {
    {"Gemma4ForConditionalGeneration", "gemma4", "gemma4_text-moe", NULL, add_parts, NULL},
    {"Phi3ForCausalLM", "phi3", "phi3-longrope", NULL, of_long_phi3, NULL},
    {"DeepseekV3ForCausalLM", "deepseek2", "deepseek_v3-noqlora", NULL, of_deepseek_without_ranks, NULL},
    {NULL, "gemma3", "gemma3_text-local", gemma3_images, of_older_gemma3, NULL},
    {NULL, "gemma4", "gemma4_text-moe", NULL, of_older_gemma4, NULL},
    {NULL, "gptoss", "gpt_oss-mxfp4", NULL, of_older_gpt_oss, NULL},
    {NULL, "glm4moelite", "glm4_moe_lite-base", NULL, of_older_glm, NULL},
    {NULL, "qwen35", "qwen3_5-dense", NULL, of_older_qwen35, NULL},
    {NULL, "qwen35moe", "qwen3_5_moe-fused", NULL, of_older_qwen35_moe, NULL},
    {NULL, "qwen3next", "qwen3_next-moe", NULL, of_older_next, NULL}};

/* ---- checks -------------------------------------------------------------------------------------------------------------------- */

typedef struct kept {
    float *logits;
    size_t n;
} kept;

static void keep_row(void *user, size_t position, const float *logits, int vocab) {
    kept *k = user;
    (void)position;
    k->logits = realloc(k->logits, (k->n + (size_t)vocab) * sizeof(float));
    memcpy(k->logits + k->n, logits, (size_t)vocab * sizeof(float));
    k->n += (size_t)vocab;
}

static kept logits_of(const char *path) {
    enum { TOKENS = 24 };
    hunch_token ids[TOKENS];
    kept k = {0};
    for (int i = 0; i < TOKENS; i++) ids[i] = i * 37 % 251;
    hunch_model *m = open_model(path, "ref", 1, HUNCH_PRECISION_F32);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 64);
    must(hunch_evaluate(e, ids, TOKENS, keep_row, &k, err));
    hunch_engine_close(&e);
    hunch_model_close(&m);
    return k;
}

static void check_opens(const family *f) {
    char golden[300], made[600], ollamas[600];
    snprintf(golden, sizeof golden, "goldens/%s", f->golden);
    snprintf(made, sizeof made, "%s", test_path("made.gguf"));
    snprintf(ollamas, sizeof ollamas, "%s", test_path("ollamas.gguf"));
    must(hunch_convert(data_path(golden), made, NULL, err));
    edit *e = edit_open(made);
    if (f->both) {
        f->both(e);
        edit_write(e, made);
    }
    if (f->ollamas) f->ollamas(e);
    edit_text(e, "general.architecture", f->arch);
    edit_write(e, ollamas);
    edit_close(e);
    kept want = logits_of(made), got = logits_of(ollamas);
    if (got.n != want.n || memcmp(got.logits, want.logits, want.n * sizeof(float)) != 0)
        fail_msg("%s, %s: logits differ from those of the same weights as llama.cpp writes them", f->arch, f->golden);
    free(want.logits);
    free(got.logits);
}

static void check_refused(const family *f, const char *sentence) {
    hn_gguf_writer *w = NULL;
    hunch_model *m = NULL;
    hunch_error e = {0};
    char key[96];
    const char *path = test_path("refused.gguf");
    static const float zeros[32 * 32];
    must(hn_gguf_writer_open(&w, path, err));
    must(hn_gguf_put_str(w, "general.architecture", f->arch, strlen(f->arch), err));
    snprintf(key, sizeof key, "%s.block_count", f->arch);
    must(hn_gguf_put_u32(w, key, f->says ? 0 : 2, err)); /* where it finds no sizes it writes 0 */
    must(hn_gguf_declare(w, "token_embd.weight", HN_F32, 2, (const uint64_t[]){32, 32}, err));
    must(hn_gguf_data(w, zeros, sizeof zeros, err));
    must(hn_gguf_writer_finish(&w, err));
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    if (hunch_model_open(&m, path, &o, &e) != HUNCH_REFUSED || !strstr(e.message, sentence))
        fail_msg("%s: '%s', docs/formats.md says '%s'", f->class, e.message, sentence);
}

/* The row of docs/formats.md's table that begins with `class`; NULL: there is none. */
static const char *row_of(const char *document, const char *class, char row[400]) {
    char start[100];
    snprintf(start, sizeof start, "\n| `%s` |", class);
    const char *at = strstr(document, start), *end = at ? strchr(at + 1, '\n') : NULL;
    if (!end || end - at > 390) return NULL;
    snprintf(row, 400, "%.*s", (int)(end - at - 1), at + 1);
    return row;
}

/* The table has the families of this test and no others. */
static void check_rows(const char *document) {
    const char *at = strstr(document, "### Files of Ollama's converter"), *end = at ? strstr(at, "What is read otherwise") : NULL;
    size_t rows = 0;
    assert_true(at && end);
    for (; (at = strstr(at, "\n| `")) && at < end; at++) rows++;
    assert_int_equal(rows, sizeof families / sizeof *families);
}

static void test_families(void **state) {
    (void)state;
    bytes document = test_file_read(HUNCH_TEST_DATA "/../../docs/formats.md");
    bytes_number(&document, 0, 1);
    check_rows((const char *)document.at);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        char row[400], arch[64], unknown[100];
        snprintf(arch, sizeof arch, "| `%s` |", f->arch);
        if (!row_of((const char *)document.at, f->class, row) || !strstr(row, arch))
            fail_msg("docs/formats.md has no row of %s and %s", f->class, f->arch);
        if (f->golden) {
            if (!strstr(row, "| opens")) fail_msg("docs/formats.md does not say that %s opens", f->class);
            check_opens(f);
            continue;
        }
        snprintf(unknown, sizeof unknown, "unknown architecture \"%s\", expected one of", f->arch);
        if (f->says && !strcmp(f->says, UNTRIED)) {
            if (!strstr(row, UNTRIED)) fail_msg("docs/formats.md does not say that files of %s were not tried", f->class);
            check_refused(f, "block_count is 0"); /* the architecture is known */
            continue;
        }
        const char *sentence = f->says ? f->says : unknown;
        if (!strstr(row, "refused") || !strstr(row, sentence)) fail_msg("docs/formats.md does not say how %s is refused", f->class);
        check_refused(f, sentence);
    }
    bytes_free(&document);
}

static void test_other_forms(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check_opens(&forms[i]);
}

/* ---- lists -------------------------------------------------------------------------------------------------------------------- */

typedef struct listed {
    const char *golden, *key;
    uint32_t list[8];
    size_t n;
    const char *says; /* NULL: it opens */
} listed;

#define KV_HEADS "qwen35.attention.head_count_kv"
static const listed lists[] = {
    {"llama-gqa", "llama.feed_forward_length", {128, 128, 128}, 3, NULL}, /* as many as there are layers, or not: one number */
    {"llama-gqa", "llama.attention.head_count", {4, 4}, 2, NULL},
    {"llama-gqa", "llama.feed_forward_length", {128, 128, 64}, 3, "llama.feed_forward_length is a list, 128 of layer 0 and 64 of layer 2"},
    {"llama-gqa", "llama.attention.head_count_kv", {2, 0}, 2, "llama.attention.head_count_kv is a list, 2 of layer 0 and 0 of layer 1"},
    {"llama-gqa", "llama.block_count", {0}, 0, "llama.block_count is an array"},
    {"qwen3_5-dense", KV_HEADS, {2, 2, 2, 2}, 4, NULL},
    {"qwen3_5-dense", KV_HEADS, {0, 0, 0, 2}, 4, NULL},
    {"qwen3_5-dense", KV_HEADS, {0, 0, 2, 2}, 4, "gives layer 2 heads of keys, expected as qwen35.full_attention_interval, 4, says"},
    {"qwen3_5-dense", KV_HEADS, {0, 0, 0}, 3, KV_HEADS " is a list of 3 without any number above 0"},
    {"qwen3_5-dense", KV_HEADS, {0, 1, 0, 2}, 4, KV_HEADS " is 2 for layer 3, expected 0 or one number"},
    {"qwen3_5-dense", KV_HEADS, {0, 0, 2}, 3, KV_HEADS ", expected 5 flags"}};

static void test_lists(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const listed *l = &lists[i];
        char golden[300], made[600];
        hunch_model *m = NULL;
        hunch_model_options o;
        hunch_error e = {0};
        snprintf(golden, sizeof golden, "goldens/%s", l->golden);
        snprintf(made, sizeof made, "%s", test_path("listed.gguf"));
        must(hunch_convert(data_path(golden), made, NULL, err));
        edit *file = edit_open(made);
        edit_list(file, l->key, EDIT_U32, l->list, l->n);
        edit_write(file, made);
        edit_close(file);
        hunch_model_options_defaults(&o);
        const hunch_status st = hunch_model_open(&m, made, &o, &e);
        if (l->says ? st != HUNCH_REFUSED || !strstr(e.message, l->says) : st != HUNCH_OK)
            fail_msg("%s, list %zu: '%s', expected '%s'", l->key, i, e.message, l->says ? l->says : "that it opens");
        hunch_model_close(&m);
    }
}

/* DeepSeek-V3's experts are in groups, also where a file does not say it. */
static void test_groups(void **state) {
    (void)state;
    static const struct {
        uint32_t count, said; /* 0: not written */
        int groups, used;
    } cases[] = {{256, 0, 8, 4}, {256, 1, 1, 1}, {128, 0, 1, 1}};
    char made[600];
    snprintf(made, sizeof made, "%s", test_path("groups.gguf"));
    must(hunch_convert(data_path("goldens/kimi_k2-like"), made, NULL, err));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_source *s = NULL;
        hn_arch a;
        edit *file = edit_open(made);
        edit_u32(file, "deepseek2.expert_count", cases[i].count);
        if (cases[i].said) edit_u32(file, "deepseek2.expert_group_count", cases[i].said);
        edit_write(file, made);
        edit_close(file);
        must(hn_source_open(&s, made, err));
        must(hn_arch_read(&a, s, err));
        const hn_expert_desc *e = &a.layer[1].experts;
        assert_true(e->groups == cases[i].groups && e->groups_used == cases[i].used);
        hn_arch_fini(&a);
        hn_source_close(&s);
        must(hunch_convert(data_path("goldens/kimi_k2-like"), made, NULL, err));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families), cmocka_unit_test(test_other_forms), cmocka_unit_test(test_lists),
                                       cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
