/* SPDX-License-Identifier: Apache-2.0 */
/* arch_dense.c - what the dense families share: RMSNorm, grouped-query attention with RoPE, SwiGLU, and the names of keys and
 * tensors. What sets one apart stands in its own file (arch_llama.c, arch_qwen.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch.h"

const char *const hn_dense_gguf_names[HN_ROLES] = {[HN_ROLE_EMBEDDING] = "token_embd.weight",
                                                   [HN_ROLE_OUTPUT_NORM] = "output_norm.weight",
                                                   [HN_ROLE_OUTPUT] = "output.weight",
                                                   [HN_ROLE_ATTN_NORM] = "blk.%d.attn_norm.weight",
                                                   [HN_ROLE_Q] = "blk.%d.attn_q.weight",
                                                   [HN_ROLE_K] = "blk.%d.attn_k.weight",
                                                   [HN_ROLE_V] = "blk.%d.attn_v.weight",
                                                   [HN_ROLE_O] = "blk.%d.attn_output.weight",
                                                   [HN_ROLE_FFN_NORM] = "blk.%d.ffn_norm.weight",
                                                   [HN_ROLE_GATE] = "blk.%d.ffn_gate.weight",
                                                   [HN_ROLE_UP] = "blk.%d.ffn_up.weight",
                                                   [HN_ROLE_DOWN] = "blk.%d.ffn_down.weight",
                                                   [HN_ROLE_Q_BIAS] = "blk.%d.attn_q.bias",
                                                   [HN_ROLE_K_BIAS] = "blk.%d.attn_k.bias",
                                                   [HN_ROLE_V_BIAS] = "blk.%d.attn_v.bias",
                                                   [HN_ROLE_Q_NORM] = "blk.%d.attn_q_norm.weight",
                                                   [HN_ROLE_K_NORM] = "blk.%d.attn_k_norm.weight",
                                                   [HN_ROLE_PRE_FFN_NORM] = "blk.%d.ffn_norm.weight",
                                                   [HN_ROLE_POST_ATTN_NORM] = "blk.%d.post_attention_norm.weight",
                                                   [HN_ROLE_POST_FFN_NORM] = "blk.%d.post_ffw_norm.weight",
                                                   [HN_ROLE_QKV] = "blk.%d.attn_qkv.weight",
                                                   [HN_ROLE_GATE_UP] = "blk.%d.ffn_up.weight"};

static const char *const hf_names[HN_ROLES] = {
    [HN_ROLE_EMBEDDING] = "model.embed_tokens.weight",
    [HN_ROLE_OUTPUT_NORM] = "model.norm.weight",
    [HN_ROLE_OUTPUT] = "lm_head.weight",
    [HN_ROLE_ATTN_NORM] = "model.layers.%d.input_layernorm.weight",
    [HN_ROLE_Q] = "model.layers.%d.self_attn.q_proj.weight",
    [HN_ROLE_K] = "model.layers.%d.self_attn.k_proj.weight",
    [HN_ROLE_V] = "model.layers.%d.self_attn.v_proj.weight",
    [HN_ROLE_O] = "model.layers.%d.self_attn.o_proj.weight",
    [HN_ROLE_FFN_NORM] = "model.layers.%d.post_attention_layernorm.weight",
    [HN_ROLE_GATE] = "model.layers.%d.mlp.gate_proj.weight",
    [HN_ROLE_UP] = "model.layers.%d.mlp.up_proj.weight",
    [HN_ROLE_DOWN] = "model.layers.%d.mlp.down_proj.weight",
    [HN_ROLE_Q_BIAS] = "model.layers.%d.self_attn.q_proj.bias",
    [HN_ROLE_K_BIAS] = "model.layers.%d.self_attn.k_proj.bias",
    [HN_ROLE_V_BIAS] = "model.layers.%d.self_attn.v_proj.bias",
    [HN_ROLE_Q_NORM] = "model.layers.%d.self_attn.q_norm.weight",
    [HN_ROLE_K_NORM] = "model.layers.%d.self_attn.k_norm.weight",
    [HN_ROLE_PRE_FFN_NORM] = "model.layers.%d.pre_feedforward_layernorm.weight",
    [HN_ROLE_POST_ATTN_NORM] = "model.layers.%d.post_attention_layernorm.weight",
    [HN_ROLE_POST_FFN_NORM] = "model.layers.%d.post_feedforward_layernorm.weight",
    [HN_ROLE_QKV] = "model.layers.%d.self_attn.qkv_proj.weight",
    [HN_ROLE_GATE_UP] = "model.layers.%d.mlp.gate_up_proj.weight"};

typedef struct dense_keys {
    int layers, hidden, ffn, heads, kv_heads, head_dim, context, vocab, rope_dims;
    double eps, theta;
} dense_keys;

void hn_dense_key(const hn_dense *f, const char *suffix, char out[96]) {
    snprintf(out, 96, "%s.%s", f->prefix, suffix);
}

typedef struct family_key {
    char name[96];
    hn_key key;
} family_key;

static const hn_key *key_of(family_key *k, const hn_dense *f, const char *suffix, const char *hf, double min,
                            double max, double dflt) {
    hn_dense_key(f, suffix, k->name);
    k->key = (hn_key){k->name, hf, min, max, dflt};
    return &k->key;
}

/* What these files may say and nobody here does. */
static hunch_status refuse_variants(const hn_source *src, const hn_dense *f, hunch_error *err) {
    family_key key;
    int n = 0;
    hunch_status st = hn_key_int(src, key_of(&key, f, "expert_count", "num_local_experts", 0, 4096, 0), &n, err);
    if (st) return st;
    if (n > 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d experts a layer: only dense %s models are read", hn_source_path(src),
                       n, f->prefix);
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return HUNCH_OK;
    static const char *const flags[] = {"attention_bias", "mlp_bias", "use_sliding_window",
                                        "use_bidirectional_attention"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool on = false, found;
        st = hn_source_bool(src, flags[i], &on, &found, err);
        if (st) return st;
        if (on)
            return hn_fail(err, HUNCH_REFUSED, "%s: %s is true: %s models are read without", hn_source_path(src),
                           flags[i], f->prefix);
    }
    const char *key_name = f->activation_key ? f->activation_key : "hidden_act",
               *wanted = f->activation ? f->activation : "silu", *act = wanted;
    bool found;
    st = hn_source_str(src, key_name, &act, NULL, &found, err);
    if (!st && strcmp(act, wanted))
        st =
            hn_fail(err, HUNCH_REFUSED, "%s: %s is \"%.40s\", expected %s", hn_source_path(src), key_name, act, wanted);
    return st;
}

/* The base of the rotation: beside the rest, or in rope_parameters, where transformers 5 puts it, by kind of layer for
 * Gemma. */
static hunch_status read_theta(dense_keys *k, const hn_source *src, const hn_dense *f, hunch_error *err) {
    static const char *const places[] = {"rope_parameters.full_attention.rope_theta", "rope_parameters.rope_theta",
                                         "rope_theta"};
    family_key key;
    hunch_status st = HUNCH_OK;
    k->theta = 0;
    for (int i = 0; !st && k->theta < 1 && i < 3; i++)
        st = hn_key_real(src, key_of(&key, f, "rope.freq_base", places[i], 1, 1e12, 0), &k->theta, err);
    if (k->theta < 1) k->theta = f->theta > 0 ? f->theta : 10000;
    return st;
}

/* How many dims of a head turn: all, unless a folder names a part of them. */
static hunch_status read_rotated(dense_keys *k, const hn_source *src, const hn_dense *f, hunch_error *err) {
    static const hn_key part = {NULL, "partial_rotary_factor", 0.01, 1, 1},
                        part_new = {NULL, "rope_parameters.partial_rotary_factor", 0.01, 1, 1};
    family_key key;
    double old = 1, newer = 1;
    hunch_status st = hn_key_real(src, &part, &old, err);
    if (!st) st = hn_key_real(src, &part_new, &newer, err);
    const int dims = (int)(k->head_dim * (old < newer ? old : newer));
    return st ? st : hn_key_int(src, key_of(&key, f, "rope.dimension_count", NULL, 2, 512, dims), &k->rope_dims, err);
}

static hunch_status read_keys(dense_keys *k, hn_source *src, const hn_dense *f, hunch_error *err) {
    const struct {
        const char *suffix, *hf;
        double max;
        int *out;
    } sizes[] = {{"block_count", "num_hidden_layers", 1024, &k->layers},
                 {"embedding_length", "hidden_size", 1 << 17, &k->hidden},
                 {"feed_forward_length", "intermediate_size", 1 << 20, &k->ffn},
                 {"attention.head_count", "num_attention_heads", 1024, &k->heads},
                 {"context_length", "max_position_embeddings", 1 << 24, &k->context}};
    family_key key;
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof sizes / sizeof *sizes; i++)
        st = hn_key_int(src, key_of(&key, f, sizes[i].suffix, sizes[i].hf, 1, sizes[i].max, NAN), sizes[i].out, err);
    if (!st)
        st = hn_key_real(src, key_of(&key, f, "attention.layer_norm_rms_epsilon", "rms_norm_eps", 0, 1, NAN), &k->eps,
                         err);
    if (!st) st = read_theta(k, src, f, err);
    if (st) return st;
    int value_dim = 0, usual = k->hidden / k->heads;
    st = hn_key_int(src, key_of(&key, f, "attention.head_count_kv", "num_key_value_heads", 1, 1024, k->heads),
                    &k->kv_heads, err);
    if (!st)
        st = hn_key_int(src, key_of(&key, f, "attention.key_length", "head_dim", 2, 512, usual), &k->head_dim, err);
    if (!st)
        st = hn_key_int(src, key_of(&key, f, "attention.value_length", "head_dim", 2, 512, usual), &value_dim, err);
    if (!st) st = read_rotated(k, src, f, err);
    if (st) return st;
    if (k->heads % k->kv_heads)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d heads do not share %d key heads evenly", hn_source_path(src),
                       k->heads, k->kv_heads);
    if (k->head_dim < 2 || k->head_dim % 2 || k->rope_dims % 2 || k->rope_dims > k->head_dim ||
        value_dim != k->head_dim)
        return hn_fail(err, HUNCH_REFUSED, "%s: head size %d (values %d, rotated %d): expected even and equal sizes",
                       hn_source_path(src), k->head_dim, value_dim, k->rope_dims);
    return HUNCH_OK;
}

/* Llama 3's scaling (targets.md 1 in our own words): long waves are slowed by `factor`, short ones kept, linear between. */
static hunch_status scale_llama3(hn_arch *a, hn_source *src, const char *prefix, hunch_error *err) {
    static const char *const names[4] = {"factor", "low_freq_factor", "high_freq_factor",
                                         "original_max_position_embeddings"};
    double v[4];
    for (int i = 0; i < 4; i++) {
        char key[80];
        snprintf(key, sizeof key, "%s.%s", prefix, names[i]);
        const hn_key k = {NULL, key, 1e-6, 1e9, NAN};
        hunch_status st = hn_key_real(src, &k, &v[i], err);
        if (st) return st;
    }
    const double factor = v[0], low = v[1], high = v[2], original = v[3];
    if (high <= low)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s.high_freq_factor %g, expected more than low_freq_factor %g",
                       hn_source_path(src), prefix, high, low);
    for (int i = 0; i < a->rope_dims / 2; i++) {
        const double f = a->rope_freq[i], wave = 2 * M_PI / f;
        if (wave < original / high) continue;
        const double s = (original / wave - low) / (high - low);
        a->rope_freq[i] = wave > original / low ? f / factor : (1 - s) * f / factor + s * f;
    }
    return HUNCH_OK;
}

static hunch_status scale_folder(hn_arch *a, hn_source *src, hunch_error *err) {
    static const char *const prefixes[] = {"rope_parameters.full_attention", "rope_parameters", "rope_scaling"},
                             *const spellings[] = {"rope_type", "type"};
    const char *type = "default", *prefix = NULL;
    for (int p = 0; p < 3 && !prefix; p++)
        for (int s = 0; s < 2 && !prefix; s++) {
            char key[96];
            bool found = false;
            snprintf(key, sizeof key, "%s.%s", prefixes[p], spellings[s]);
            hunch_status st = hn_source_str(src, key, &type, NULL, &found, err);
            if (st) return st;
            if (found) prefix = prefixes[p];
        }
    if (!prefix || !strcmp(type, "default")) return HUNCH_OK;
    if (!strcmp(type, "llama3")) return scale_llama3(a, src, prefix, err);
    if (strcmp(type, "linear"))
        return hn_fail(err, HUNCH_REFUSED, "%s: rope scaling \"%.40s\", expected default, linear or llama3",
                       hn_source_path(src), type);
    char key[96];
    double factor = 1;
    snprintf(key, sizeof key, "%s.factor", prefix);
    const hn_key k = {NULL, key, 1e-6, 1e9, NAN};
    hunch_status st = hn_key_real(src, &k, &factor, err);
    for (int i = 0; !st && i < a->rope_dims / 2; i++) a->rope_freq[i] /= factor;
    return st;
}

/* rope_freqs.weight holds a divisor a frequency; llama.rope.scaling.* the linear form. */
static hunch_status scale_gguf(hn_arch *a, hn_source *src, const hn_dense *family, hunch_error *err) {
    const char *type = "none";
    family_key key;
    bool found;
    hunch_status st =
        hn_source_str(src, key_of(&key, family, "rope.scaling.type", NULL, 0, 0, 0)->gguf, &type, NULL, &found, err);
    if (st) return st;
    double factor = 1;
    if (!strcmp(type, "linear")) {
        st = hn_key_real(src, key_of(&key, family, "rope.scaling.factor", NULL, 1e-6, 1e9, NAN), &factor, err);
        if (st) return st;
    } else if (strcmp(type, "none"))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s \"%.40s\", expected none or linear", hn_source_path(src), key.name,
                       type);
    static const char *const longrope[] = {"rope_factors_short.weight", "rope_factors_long.weight"};
    for (int i = 0; i < 2; i++)
        if (hn_source_take(src, longrope[i]))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: longrope scaling is not read", hn_source_path(src),
                           longrope[i]);
    const uint64_t half = (uint64_t)a->rope_dims / 2;
    hn_tensor *t = hn_source_take(src, "rope_freqs.weight");
    if (t && (!t->known || t->dtype != HN_F32 || t->n_dims != 1 || t->dims[0] != half))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor rope_freqs.weight: expected F32 [%llu]", hn_source_path(src),
                       (unsigned long long)half);
    for (uint64_t i = 0; i < half; i++) {
        float d = 1;
        if (t) memcpy(&d, (const char *)t->data + i * sizeof d, sizeof d);
        if (!(d > 0 && d < 1e9f))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor rope_freqs.weight: value %g, expected a positive divisor",
                           hn_source_path(src), (double)d);
        a->rope_freq[i] /= factor * (double)d;
    }
    return HUNCH_OK;
}

static hunch_status read_rope(hn_arch *a, const dense_keys *k, hn_source *src, const hn_dense *f, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    a->rope_dims = k->rope_dims;
    a->rope_interleaved = gguf && f->interleaved;
    a->rope_scale = 1;
    a->rope_freq = hn_zalloc((size_t)k->rope_dims / 2, sizeof *a->rope_freq);
    if (!a->rope_freq) return hn_fail_memory(err, "rope frequencies", (size_t)k->rope_dims * sizeof(double));
    for (int i = 0; i < k->rope_dims / 2; i++) a->rope_freq[i] = pow(k->theta, -2.0 * i / k->rope_dims);
    return gguf ? scale_gguf(a, src, f, err) : scale_folder(a, src, err);
}

static hunch_status read_name(hn_arch *a, const hn_source *src, hunch_error *err) {
    const char *name = NULL;
    bool found = false;
    hunch_status st = hn_source_str(src, hn_source_get_kind(src) == HN_SOURCE_GGUF ? "general.name" : "_name_or_path",
                                    &name, NULL, &found, err);
    if (!st) snprintf(a->name, sizeof a->name, "%s", found ? name : a->architecture);
    return st;
}

/* The vocabulary is as wide as the embedding; a key that says otherwise is a damaged file. */
static hunch_status read_vocab(hn_arch *a, hn_source *src, const hn_dense *f, hunch_error *err) {
    const char *name = a->names[HN_ROLE_EMBEDDING];
    const hn_tensor *t = hn_source_take(src, name);
    if (!t || t->n_dims != 2 || t->dims[0] != (uint64_t)a->hidden || t->dims[1] < 1 || t->dims[1] > 1 << 23)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: %s [%d, vocabulary]", hn_source_path(src), name,
                       t ? "expected the shape" : "is missing, expected", a->hidden);
    a->vocab = (int)t->dims[1];
    family_key key;
    int said = 0;
    hunch_status st = hn_key_int(src, key_of(&key, f, "vocab_size", "vocab_size", 1, 1 << 24, a->vocab), &said, err);
    if (!st && said != a->vocab)
        st = hn_fail(err, HUNCH_REFUSED, "%s: vocabulary of %d by its key, %d rows in tensor %s", hn_source_path(src),
                     said, a->vocab, name);
    return st;
}

static hunch_status read_tied(hn_arch *a, hn_source *src, hunch_error *err) {
    bool tied = false, found = false;
    if (hn_source_get_kind(src) == HN_SOURCE_HF) {
        hunch_status st = hn_source_bool(src, "tie_word_embeddings", &tied, &found, err);
        if (st) return st;
    }
    a->tied = tied || !hn_source_take(src, a->names[HN_ROLE_OUTPUT]);
    return HUNCH_OK;
}

/* Null, absent, or 0 in a GGUF: none. */
static hunch_status read_window(const hn_source *src, const hn_dense *f, int *window, hunch_error *err) {
    family_key key;
    hn_key k = *key_of(&key, f, "attention.sliding_window", "sliding_window", 0, 1 << 24, 0);
    if (!f->window_key) k.gguf = NULL;
    if (hn_source_get_kind(src) == HN_SOURCE_HF) k.min = 1;
    return hn_key_int(src, &k, window, err);
}

hunch_status hn_dense_read(hn_arch *a, hn_source *src, const hn_dense *family, hunch_error *err) {
    dense_keys k = {0};
    a->dense = family;
    a->names = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_dense_gguf_names : hf_names;
    hunch_status st = refuse_variants(src, family, err);
    if (!st) st = read_keys(&k, src, family, err);
    if (st) return st;
    a->layers = k.layers;
    a->hidden = k.hidden;
    a->context = k.context;
    a->norm_eps = (float)k.eps;
    a->embed_scale = a->residual_scale = a->logit_scale = 1;
    st = read_name(a, src, err);
    if (!st) st = read_vocab(a, src, family, err);
    if (!st) st = read_tied(a, src, err);
    if (!st) st = read_rope(a, &k, src, family, err);
    if (st) return st;
    a->layer = hn_zalloc((size_t)k.layers, sizeof *a->layer);
    if (!a->layer) return hn_fail_memory(err, "layer descriptions", (size_t)k.layers * sizeof *a->layer);
    int window = 0;
    if (family->windowed) st = read_window(src, family, &window, err);
    for (int i = 0; i < k.layers; i++)
        a->layer[i] = (hn_layer_desc){.mixer = HN_MIXER_ATTENTION,
                                      .heads = k.heads,
                                      .kv_heads = k.kv_heads,
                                      .head_dim = k.head_dim,
                                      .window = window,
                                      .attention_scale = 1.0f / sqrtf((float)k.head_dim),
                                      .fused = family->fused,
                                      .qkv_bias = family->qkv_bias,
                                      .qk_norm = family->qk_norm,
                                      .ffn = HN_FFN_SWIGLU,
                                      .ffn_width = k.ffn};
    return st || !family->finish ? st : family->finish(a, src, err);
}
