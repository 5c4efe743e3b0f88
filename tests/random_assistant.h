/* SPDX-License-Identifier: Apache-2.0 */
/* random_assistant.h - assistants of Gemma 4 of random weights, for any target whose layers have attention with plain rotations. They
 * draft nothing useful, but read what they should. Include after cmocka's headers. */
#ifndef HN_TESTS_RANDOM_ASSISTANT_H
#define HN_TESTS_RANDOM_ASSISTANT_H
#include "model/arch/arch.h"
#include "random_head.h"

typedef struct assistant_form {
    int hidden, heads, ffn, layers, clusters, clusters_used; /* clusters 0: all tokens */
} assistant_form;
static const assistant_form SMALL_ASSISTANT = {32, 4, 48, 3, 0, 0}, CLUSTERED_ASSISTANT = {32, 4, 48, 3, 16, 4};

/* The last layer of the target with a window, or without, that stores keys and values; NULL: none. */
static inline const hn_layer_desc *assistant_reads(const hn_arch *target, bool window) {
    const hn_layer_desc *l = NULL;
    for (int i = 0; i < target->layers; i++)
        if ((target->layer[i].window > 0) == window && target->layer[i].kv_back == 0) l = &target->layer[i];
    return l;
}

static inline void assistant_layer(random_head *h, const assistant_form *f, int i, int head_dim) {
    char front[32];
    snprintf(front, sizeof front, "model.layers.%d.", i);
    head_floats(h, front, "input_layernorm.weight", f->hidden, 0);
    head_floats(h, front, "self_attn.q_proj.weight", f->heads * head_dim, f->hidden);
    head_floats(h, front, "self_attn.q_norm.weight", head_dim, 0);
    head_floats(h, front, "self_attn.o_proj.weight", f->hidden, f->heads * head_dim);
    head_floats(h, front, "post_attention_layernorm.weight", f->hidden, 0);
    head_floats(h, front, "pre_feedforward_layernorm.weight", f->hidden, 0);
    head_floats(h, front, "mlp.gate_proj.weight", f->ffn, f->hidden);
    head_floats(h, front, "mlp.up_proj.weight", f->ffn, f->hidden);
    head_floats(h, front, "mlp.down_proj.weight", f->hidden, f->ffn);
    head_floats(h, front, "post_feedforward_layernorm.weight", f->hidden, 0);
    head_floats(h, front, "layer_scalar", 1, 0);
}

static inline json_t *assistant_rotation(const hn_arch *target, const hn_layer_desc *l, bool full) {
    const hn_rotation *r = l ? &target->rotation[l->rotation] : &target->rotation[0];
    const double part = r->scaling.kind == HN_SCALING_PART ? 2.0 * r->scaling.pairs / r->dims : 1;
    json_t *to = json_pack("{s:s, s:f}", "rope_type", full ? "proportional" : "default", "rope_theta", r->scaling.theta);
    if (full) json_object_set_new(to, "partial_rotary_factor", json_real(part));
    return to;
}

static inline void assistant_config(random_head *h, const assistant_form *f, const hn_arch *target, const hn_layer_desc *window,
                                    const hn_layer_desc *full) {
    json_t *types = json_array(), *rotations = json_object();
    for (int i = 0; i < f->layers; i++) {
        const bool slides = window && (!full || i < f->layers - 1);
        json_array_append_new(types, json_string(slides ? "sliding_attention" : "full_attention"));
    }
    json_object_set_new(rotations, "sliding_attention", assistant_rotation(target, window, false));
    json_object_set_new(rotations, "full_attention", assistant_rotation(target, full, true));
    const hn_layer_desc *w = window ? window : full, *g = full ? full : window;
    json_t *text = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:o, s:o, s:b, s:n}", "model_type",
                             "gemma4_text", "hidden_size", f->hidden, "intermediate_size", f->ffn, "num_hidden_layers", f->layers,
                             "num_kv_shared_layers", f->layers, "num_attention_heads", f->heads, "num_key_value_heads", w->kv_heads,
                             "num_global_key_value_heads", g->kv_heads, "head_dim", w->head_dim, "global_head_dim", g->head_dim,
                             "sliding_window", window ? window->window : 16, "max_position_embeddings", 4096, "rms_norm_eps", 1e-6,
                             "hidden_activation", "gelu_pytorch_tanh", "layer_types", types, "rope_parameters", rotations,
                             "attention_k_eq_v", 1, "final_logit_softcapping");
    json_object_set_new(text, "vocab_size", json_integer(target->vocab));
    h->config = json_pack("{s:s, s:i, s:b, s:o}", "model_type", "gemma4_assistant", "backbone_hidden_size", target->hidden,
                          "tie_word_embeddings", 1, "text_config", text);
}

static inline void assistant_clusters(random_head *h, const assistant_form *f, int vocab) {
    head_floats(h, "", "masked_embedding.centroids.weight", f->clusters, f->hidden);
    head_tensor *t = head_add(h, "", "masked_embedding.token_ordering", "I64", vocab, 0);
    for (int i = 0; i < vocab; i++) {
        const int64_t token = (int64_t)i * 7 % vocab; /* no divisor of the vocabularies here */
        bytes_put(&t->data, &token, sizeof token);
    }
    json_object_set_new(h->config, "num_centroids", json_integer(f->clusters));
    json_object_set_new(h->config, "centroid_intermediate_top_k", json_integer(f->clusters_used));
}

static inline void assistant_make(random_head *h, const assistant_form *f, const hn_arch *target) {
    const hn_layer_desc *window = assistant_reads(target, true), *full = assistant_reads(target, false);
    *h = (random_head){.n = 0};
    head_floats(h, "", "pre_projection.weight", f->hidden, 2 * target->hidden);
    head_floats(h, "", "post_projection.weight", target->hidden, f->hidden);
    for (int i = 0; i < f->layers; i++)
        assistant_layer(h, f, i, window && (!full || i < f->layers - 1) ? window->head_dim : full->head_dim);
    head_floats(h, "", "model.norm.weight", f->hidden, 0);
    head_floats(h, "", "model.embed_tokens.weight", target->vocab, f->hidden);
    assistant_config(h, f, target, window, full);
    if (f->clusters) assistant_clusters(h, f, target->vocab);
}

/* Returns `to`. */
static inline const char *assistant_write(const assistant_form *f, const hn_arch *target, const char *to) {
    random_head h;
    assistant_make(&h, f, target);
    head_write(&h, to);
    head_free(&h);
    return to;
}
#endif
