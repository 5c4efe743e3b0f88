/* SPDX-License-Identifier: Apache-2.0 */
/* block_parts.c - the weights of heads of blocks: shapes, places in the vector of all, and names in their folders
 * (P-EAGLE and DFlash as speculators, DART as its release). */
#include <stdio.h>

#include "train/nets/block_net.h"
#include "train/math/parts.h"

int hn_block_parts(const hn_block_shape *s) {
    return hn_block_layer_part(s->layers, HN_BLOCK_INPUT);
}

static hn_mat front_shape(const hn_block_shape *s, int part) {
    switch (part) {
    case HN_BLOCK_FC: return hn_mat_of(NULL, s->hidden, s->taps);
    case HN_BLOCK_MASK:
        return hn_mat_of(NULL, s->kind != HN_BLOCK_DFLASH, s->kind == HN_BLOCK_PEAGLE ? s->taps : 2 * s->hidden);
    case HN_BLOCK_MARKOV_IN: return hn_mat_of(NULL, s->markov_rank ? s->tokens : 0, s->markov_rank);
    case HN_BLOCK_MARKOV_OUT: return hn_mat_of(NULL, s->markov_rank ? s->vocab : 0, s->markov_rank);
    case HN_BLOCK_GRU_INPUT: return hn_mat_of(NULL, 3 * s->prefix.state, s->hidden);
    case HN_BLOCK_GRU_STATE: return hn_mat_of(NULL, 3 * s->prefix.state, s->prefix.state);
    case HN_BLOCK_BIAS_IN: return hn_mat_of(NULL, s->prefix.width, s->hidden + s->prefix.state);
    case HN_BLOCK_BIAS_OUT: return hn_mat_of(NULL, s->prefix.width ? s->vocab : 0, s->prefix.width);
    case HN_BLOCK_HEAD: return hn_mat_of(NULL, s->borrowed ? 0 : s->vocab, s->hidden);
    default: return hn_mat_of(NULL, 1, s->hidden);
    }
}

static hn_mat layer_shape(const hn_block_shape *s, int layer, hn_block_part part) {
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, norms = s->kind == HN_BLOCK_DFLASH;
    const int inputs = layer == 0 && s->kind != HN_BLOCK_DFLASH ? 2 * s->hidden : s->hidden;
    switch (part) {
    case HN_BLOCK_Q: return hn_mat_of(NULL, q, inputs);
    case HN_BLOCK_K:
    case HN_BLOCK_V: return hn_mat_of(NULL, kv, inputs);
    case HN_BLOCK_O: return hn_mat_of(NULL, s->hidden, q);
    case HN_BLOCK_Q_NORM:
    case HN_BLOCK_K_NORM: return hn_mat_of(NULL, norms, s->head_dim);
    case HN_BLOCK_GATE:
    case HN_BLOCK_UP: return hn_mat_of(NULL, s->ffn, s->hidden);
    case HN_BLOCK_DOWN: return hn_mat_of(NULL, s->hidden, s->ffn);
    default: return hn_mat_of(NULL, 1, s->hidden);
    }
}

static hn_mat shape_of(const void *shape, int part) {
    const hn_block_shape *s = shape;
    const int behind = part - HN_BLOCK_LAYERS;
    return behind < 0 ? front_shape(s, part)
                      : layer_shape(s, behind / HN_BLOCK_LAYER_PARTS, (hn_block_part)(behind % HN_BLOCK_LAYER_PARTS));
}

size_t hn_block_count(const hn_block_shape *s) {
    return hn_parts_before(shape_of, s, hn_block_parts(s));
}

hn_mat hn_block_part_of(const hn_block_shape *s, int part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

void hn_block_part_name(const hn_block_shape *s, int part, char *out) {
    static const char *const front[][3] = {
        {"fc.weight", "fc.weight", "fc.weight"},
        {"layers.0.hidden_norm.weight", "midlayer.hidden_norm.weight", "hidden_norm.weight"},
        {"mask_hidden", "midlayer.mask_rep", ""},
        {"norm.weight", "norm.weight", "norm.weight"},
        {"lm_head.weight", "lm_head.weight", "lm_head.weight"},
        {"", "", "markov_head.markov_w1.weight"},
        {"", "", "markov_head.markov_w2.weight"},
        {"", "", "prefix_gru.weight_ih_l0"},
        {"", "", "prefix_gru.weight_hh_l0"},
        {"", "", "embed_proj.0.weight"},
        {"", "", "embed_proj.2.weight"}};
    static const char *const of_layer[HN_BLOCK_LAYER_PARTS] = {
        "input_layernorm",  "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
        "self_attn.o_proj", "self_attn.q_norm", "self_attn.k_norm", "post_attention_layernorm",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    const int behind = part - HN_BLOCK_LAYERS, layer = behind / HN_BLOCK_LAYER_PARTS;
    if (behind < 0)
        snprintf(out, 80, "%s", front[part][s->kind]);
    else if (s->kind == HN_BLOCK_DART)
        snprintf(out, 80, "midlayer.%s.weight", of_layer[behind % HN_BLOCK_LAYER_PARTS]);
    else
        snprintf(out, 80, "layers.%d.%s.weight", layer, of_layer[behind % HN_BLOCK_LAYER_PARTS]);
}
