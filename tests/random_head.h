/* SPDX-License-Identifier: Apache-2.0 */
/* random_head.h - draft heads of random weights for a target of any shape, in the layout of published files; tests may change
 * them before they are written. Such a head is useless, but opens. Include after cmocka's headers. */
#ifndef HN_TESTS_RANDOM_HEAD_H
#define HN_TESTS_RANDOM_HEAD_H
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "base/random.h"
#include "format/bytes_for_tests.h"

typedef struct head_form {
    bool eagle3;        /* rows as EAGLE-3's, else EAGLE-1's and -2's */
    const char *layer;  /* "layers.0.", "midlayer." */
    int hidden, heads, kv_heads, ffn, vocab; /* the target's hidden and vocab */
    int outputs;        /* of eagle3: tokens that it drafts; below vocab: with d2t */
    int taps[4], n_taps; /* of eagle3 */
    int mask_token;      /* of P-EAGLE: with eagle3 two layers, an embedding and a mask; 0: none */
    bool mtp;            /* instead: speculators' module of multi-token prediction */
    int block;           /* instead: speculators' DFlash, rows of a block, with outputs, taps and mask_token; 0: none */
    int rank;            /* with block: rank of DSpark's bias; 0: none */
    bool causal;         /* with block: JetSpec's mark */
    bool pard;           /* instead: a whole model of PARD-2, with mask_token and taps: hidden states, negative ones from the last */
    int state;           /* with block: numbers of Domino's state, in SpecForge's files; 0: none */
    int selector;        /* with block: rank of DFlash 2's selector; 0: none */
    int falcon;          /* an LSTM instead of EAGLE's fc: number of rows that attend to each other; 0: another kind */
    int dart;            /* with eagle3: number of DART's masks; 0: another kind */
    int clusters, clusters_used; /* with eagle3: of its outputs; 0: none */
} head_form;

/* The kind of drafter that reads it. */
static inline const char *head_kind_of(const head_form *f) {
    if (f->mtp) return "mtp";
    if (f->pard) return "pard";
    if (f->block) return f->selector ? "dflash2" : f->state ? "domino" : f->rank ? "dspark" : f->causal ? "jetspec" : "dflash";
    if (f->falcon) return "falcon";
    if (f->dart) return "dart";
    return !f->eagle3 ? "eagle" : f->mask_token ? "peagle" : "eagle3";
}

/* For tests/data/models/stories260K, and for tests/data/goldens-heads/targets/llama-a. */
static const head_form STORIES_EAGLE = {false, "layers.0.", 64, 8, 4, 96, 512, 0, {0}, 0, 0, .mtp = false},
                       STORIES_EAGLE3 = {true, "midlayer.", 64, 8, 4, 96, 512, 200, {1, 2, 3}, 3, 0, .mtp = false},
                       STORIES_PEAGLE = {true, "layers.0.", 64, 8, 4, 96, 512, 200, {1, 2, 3}, 3, 500, .mtp = false},
                       STORIES_MTP = {false, "mtp_layers.0.", 64, 8, 4, 96, 512, 0, {0}, 0, 0, .mtp = true},
                       STORIES_DART = {true, "midlayer.", 64, 8, 4, 96, 512, 200, {1, 2, 3}, 3, 0, .dart = 6},
                       STORIES_FALCON = {false, "layers.0.", 64, 8, 4, 96, 512, 0, {0}, 0, 0, .falcon = 2},
                       LLAMA_FALCON = {false, "layers.0.", 64, 4, 2, 96, 480, 0, {0}, 0, 0, .falcon = 3},
                       LLAMA_EAGLE = {false, "layers.0.", 64, 4, 2, 96, 480, 0, {0}, 0, 0, .mtp = false},
                       LLAMA_EAGLE3 = {true, "midlayer.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 0, .mtp = false},
                       LLAMA_SPECULATORS = {true, "layers.0.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 0, .mtp = false},
                       LLAMA_PEAGLE = {true, "layers.0.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 477, .mtp = false},
                       LLAMA_DART = {true, "midlayer.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 0, .dart = 6},
                       STORIES_CLUSTERS = {true, "midlayer.", 64, 8, 4, 96, 512, 200, {1, 2, 3}, 3, 0, .clusters = 10, .clusters_used = 3},
                       LLAMA_CLUSTERS = {true, "layers.0.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 0, .clusters = 20, .clusters_used = 6},
                       LLAMA_MTP = {false, "mtp_layers.0.", 64, 4, 2, 96, 480, 0, {0}, 0, 0, .mtp = true},
                       STORIES_DFLASH = {false, "layers.0.", 64, 8, 4, 96, 512, 200, {1, 2, 3}, 3, 500, .block = 8},
                       STORIES_DSPARK = {false, "layers.0.", 64, 8, 4, 96, 512, 200, {1, 2, 3}, 3, 500, .block = 6, .rank = 16},
                       STORIES_JETSPEC = {false, "layers.0.", 64, 8, 4, 96, 512, 200, {1, 2, 3}, 3, 500, .block = 8, .causal = true},
                       LLAMA_JETSPEC = {false, "layers.0.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 477, .block = 8, .causal = true},
                       STORIES_PARD = {false, "", 64, 8, 4, 96, 512, 512, {-1, 1, -4}, 3, 500, .pard = true},
                       LLAMA_PARD = {false, "", 64, 4, 2, 96, 480, 480, {-1, 2, -4}, 3, 477, .pard = true},
                       STORIES_DOMINO = {false, "layers.0.", 64, 8, 4, 96, 512, 512, {1, 2, 3}, 3, 500, .block = 6, .state = 20},
                       STORIES_DFLASH2 = {false, "layers.0.", 64, 8, 4, 96, 512, 512, {1, 2, 3}, 3, 500, .block = 6, .selector = 12},
                       LLAMA_DOMINO = {false, "layers.0.", 64, 4, 2, 96, 480, 480, {2, 4, 5}, 3, 477, .block = 6, .state = 20},
                       LLAMA_DFLASH2 = {false, "layers.0.", 64, 4, 2, 96, 480, 480, {2, 4, 5}, 3, 477, .block = 6, .selector = 12},
                       LLAMA_DFLASH = {false, "layers.0.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 477, .block = 8},
                       LLAMA_DSPARK = {false, "layers.0.", 64, 4, 2, 96, 480, 160, {2, 4, 5}, 3, 477, .block = 6, .rank = 16};

typedef struct head_tensor {
    char name[80];
    const char *type; /* "F32", "I64" */
    int rows, cols;   /* cols 0: a vector */
    int sides;        /* of rows in a tensor of three dimensions; 0: it has fewer */
    bytes data;
} head_tensor;

typedef struct random_head {
    head_tensor tensor[60];
    int n;
    json_t *config;
} random_head;

static inline head_tensor *head_add(random_head *h, const char *front, const char *name, const char *type, int rows, int cols) {
    head_tensor *t = &h->tensor[h->n++];
    *t = (head_tensor){.type = type, .rows = rows, .cols = cols};
    snprintf(t->name, sizeof t->name, "%s%s", front, name);
    return t;
}

/* A matrix of random numbers, or a norm's vector of numbers around 1. */
static inline void head_floats(random_head *h, const char *front, const char *name, int rows, int cols) {
    head_tensor *t = head_add(h, front, name, "F32", rows, cols);
    uint64_t seed = (uint64_t)h->n * 977;
    for (int i = 0; i < rows * (cols ? cols : 1); i++) {
        const double u = (double)(hn_splitmix(&seed) >> 11) / (double)(1ull << 53) - 0.5;
        const float x = (float)(cols ? 3.4 * u / sqrt(cols) : 1 + u / 4);
        bytes_put(&t->data, &x, sizeof x);
    }
}

static inline void head_layer(random_head *h, const head_form *f, const char *front, int in) {
    const int size = f->hidden / f->heads;
    head_floats(h, front, "self_attn.q_proj.weight", f->heads * size, in);
    head_floats(h, front, "self_attn.k_proj.weight", f->kv_heads * size, in);
    head_floats(h, front, "self_attn.v_proj.weight", f->kv_heads * size, in);
    head_floats(h, front, "self_attn.o_proj.weight", f->hidden, f->heads * size);
    head_floats(h, front, "post_attention_layernorm.weight", f->hidden, 0);
    head_floats(h, front, "mlp.gate_proj.weight", f->ffn, f->hidden);
    head_floats(h, front, "mlp.up_proj.weight", f->ffn, f->hidden);
    head_floats(h, front, "mlp.down_proj.weight", f->hidden, f->ffn);
}

/* Every second or third token, from 3 on. */
static inline void head_offsets(random_head *h, const head_form *f) {
    head_tensor *t = head_add(h, "", "d2t", "I64", f->outputs, 0);
    for (int i = 0; i < f->outputs; i++) {
        const int64_t offset = 3 + (int64_t)i * (f->vocab - 4) / f->outputs - i;
        bytes_put(&t->data, &offset, sizeof offset);
    }
}

static inline void head_make_config(random_head *h, const head_form *f, int layers) {
    h->config = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:i, s:i}", "model_type", "llama", "hidden_act", "silu",
                          "hidden_size", f->hidden, "intermediate_size", f->ffn, "num_attention_heads", f->heads,
                          "num_key_value_heads", f->kv_heads, "num_hidden_layers", layers, "rms_norm_eps", 1e-5, "vocab_size",
                          f->vocab, "max_position_embeddings", 512);
}

static inline void head_make_mtp(random_head *h, const head_form *f) {
    head_floats(h, f->layer, "input_proj.weight", f->hidden, 2 * f->hidden);
    head_floats(h, f->layer, "token_layernorm.weight", f->hidden, 0);
    head_floats(h, f->layer, "hidden_layernorm.weight", f->hidden, 0);
    head_floats(h, f->layer, "input_layernorm.weight", f->hidden, 0);
    head_layer(h, f, f->layer, f->hidden);
    head_floats(h, f->layer, "final_layernorm.weight", f->hidden, 0);
    head_make_config(h, f, 1);
    json_object_set_new(h->config, "speculators_model_type", json_string("mtp"));
    json_object_set_new(h->config, "num_nextn_predict_layers", json_integer(1));
}

/* P-EAGLE's additional tensors. */
static inline void head_make_masks(random_head *h, const head_form *f) {
    head_floats(h, "", "mask_hidden", 1, f->n_taps * f->hidden);
    head_floats(h, "", "embed_tokens.weight", f->vocab, f->hidden);
    head_floats(h, "layers.1.", "input_layernorm.weight", f->hidden, 0);
    head_layer(h, f, "layers.1.", f->hidden);
    json_object_set_new(h->config, "mask_token_id", json_integer(f->mask_token));
    json_object_set_new(h->config, "speculators_model_type", json_string("peagle"));
}

/* Output, drafted tokens and layers read. list: the key of the layers. */
static inline void head_make_outputs(random_head *h, const head_form *f, const char *list) {
    head_floats(h, "", "norm.weight", f->hidden, 0);
    if (!f->block || f->outputs < f->vocab) head_floats(h, "", "lm_head.weight", f->outputs, f->hidden);
    if (f->outputs < f->vocab) head_offsets(h, f);
    json_t *ids = json_array();
    for (int i = 0; i < f->n_taps; i++) json_array_append_new(ids, json_integer(f->taps[i]));
    json_object_set_new(h->config, list, ids);
    json_object_set_new(h->config, "draft_vocab_size", json_integer(f->outputs));
}

/* Centroids of the outputs' clusters, and the outputs in their order. */
static inline void head_make_clusters(random_head *h, const head_form *f) {
    head_floats(h, "", "masked_embedding.centroids.weight", f->clusters, f->hidden);
    head_tensor *t = head_add(h, "", "masked_embedding.token_ordering", "I64", f->outputs, 0);
    for (int i = 0; i < f->outputs; i++) {
        const int64_t output = (int64_t)i * 7 % f->outputs; /* no divisor of the numbers of outputs here */
        bytes_put(&t->data, &output, sizeof output);
    }
    json_object_set_new(h->config, "num_centroids", json_integer(f->clusters));
    json_object_set_new(h->config, "centroid_intermediate_top_k", json_integer(f->clusters_used));
}

/* DFlash 2's convolutions of two taps around the halves of a layer. */
static inline void head_convolutions(random_head *h, const head_form *f, const char *front) {
    static const char *const halves[] = {"attention_conv.", "mlp_conv."};
    for (int i = 0; i < 2; i++) {
        char begin[60];
        snprintf(begin, sizeof begin, "%s%s", front, halves[i]);
        head_floats(h, begin, "base_kernel", 4, f->hidden);
        h->tensor[h->n - 1].sides = 2;
        head_floats(h, begin, "kernel_projection.weight", 4 * f->hidden / 16, f->hidden);
    }
}

static inline void head_make_selector(random_head *h, const head_form *f) {
    static const struct {
        const char *key;
        int value;
    } numbers[] = {{"conv_kernel_size", 2}, {"conv_group_size", 16}, {"selector_top_k", 12}};
    for (int i = 0; i < 3; i++) json_object_set_new(h->config, numbers[i].key, json_integer(numbers[i].value));
    json_object_set_new(h->config, "selector_rank", json_integer(f->selector));
    head_floats(h, "candidate_selector.", "hidden_projection.weight", f->selector, f->hidden);
    head_floats(h, "candidate_selector.", "predecessor_codebook", f->vocab, f->selector);
    head_floats(h, "candidate_selector.", "successor_codebook", f->vocab, f->selector);
}

static inline void head_make_domino(random_head *h, const head_form *f) {
    enum { WIDTH = 16 };
    head_floats(h, "prefix_gru.", "weight_ih_l0", 3 * f->state, f->hidden);
    head_floats(h, "prefix_gru.", "weight_hh_l0", 3 * f->state, f->state);
    head_floats(h, "embed_proj.", "0.weight", WIDTH, f->hidden + f->state);
    head_floats(h, "embed_proj.", "2.weight", f->outputs, WIDTH);
    json_object_set_new(h->config, "dflash_config",
                        json_pack("{s:s, s:i, s:i, s:b, s:i}", "projector_type", "domino", "gru_hidden_dim", f->state, "emb_dim", WIDTH,
                                  "shift_label", 1, "pure_draft_prefix_len", 1));
}

static inline void head_make_block(random_head *h, const head_form *f) {
    head_floats(h, "", "fc.weight", f->hidden, f->n_taps * f->hidden);
    head_floats(h, "", "hidden_norm.weight", f->hidden, 0);
    for (int i = 0; i < 2; i++) {
        const char *front = i ? "layers.1." : "layers.0.";
        head_floats(h, front, "input_layernorm.weight", f->hidden, 0);
        head_layer(h, f, front, f->hidden);
        if (f->selector) head_convolutions(h, f, front);
    }
    head_make_config(h, f, 2);
    head_make_outputs(h, f, "aux_hidden_state_layer_ids");
    json_object_set_new(h->config, "block_size", json_integer(f->block));
    json_object_set_new(h->config, "mask_token_id", json_integer(f->mask_token));
    if (f->state) {
        head_make_domino(h, f);
        return;
    }
    if (f->causal)
        json_object_set_new(h->config, "dflash_config", json_pack("{s:b}", "causal_head", 1));
    else
        json_object_set_new(h->config, "speculators_model_type", json_string(f->rank ? "dspark" : f->selector ? "dflash2" : "dflash"));
    if (f->selector) head_make_selector(h, f);
    if (!f->rank) return;
    head_floats(h, "", "markov_head.markov_w1.weight", f->vocab, f->rank);
    head_floats(h, "", "markov_head.markov_w2.weight", f->outputs, f->rank);
}

static inline void head_make_pard(random_head *h, const head_form *f) {
    head_floats(h, "model.", "embed_tokens.weight", f->vocab, f->hidden);
    for (int i = 0; i < 2; i++) {
        const char *front = i ? "model.layers.1." : "model.layers.0.";
        head_floats(h, front, "input_layernorm.weight", f->hidden, 0);
        head_layer(h, f, front, f->hidden);
    }
    head_floats(h, "model.", "norm.weight", f->hidden, 0);
    head_floats(h, "", "target_proj.weight", f->hidden, f->n_taps * f->hidden);
    head_make_config(h, f, 2);
    json_t *ids = json_array();
    for (int i = 0; i < f->n_taps; i++) json_array_append_new(ids, json_integer(f->taps[i]));
    json_object_set_new(h->config, "pard_token", json_integer(f->mask_token));
    json_object_set_new(h->config, "pard2_target_layers", ids);
    json_object_set_new(h->config, "pard2_scale", json_real(0.125));
}

static inline void head_make_lstm(random_head *h, const head_form *f) {
    static const char *const names[2][4] = {{"lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l0", "lstm.bias_hh_l0"},
                                            {"lstm.weight_ih_l1", "lstm.weight_hh_l1", "lstm.bias_ih_l1", "lstm.bias_hh_l1"}};
    for (int i = 0; i < 2; i++) {
        head_floats(h, "", names[i][0], 4 * f->hidden, i ? f->hidden : 2 * f->hidden);
        head_floats(h, "", names[i][1], 4 * f->hidden, f->hidden);
        head_floats(h, "", names[i][2], 4 * f->hidden, 0);
        head_floats(h, "", names[i][3], 4 * f->hidden, 0);
    }
}

static inline void head_make(random_head *h, const head_form *f) {
    *h = (random_head){.n = 0};
    if (f->block) {
        head_make_block(h, f);
        return;
    }
    if (f->pard) {
        head_make_pard(h, f);
        return;
    }
    if (f->mtp) {
        head_make_mtp(h, f);
        return;
    }
    if (f->falcon)
        head_make_lstm(h, f);
    else
        head_floats(h, "", "fc.weight", f->hidden, f->eagle3 ? f->n_taps * f->hidden : 2 * f->hidden);
    head_layer(h, f, f->layer, f->eagle3 ? 2 * f->hidden : f->hidden);
    head_make_config(h, f, f->mask_token ? 2 : 1);
    if (f->falcon) json_object_set_new(h->config, "k_mask", json_integer(f->falcon));
    if (!f->eagle3) return;
    head_floats(h, f->layer, "input_layernorm.weight", f->hidden, 0);
    head_floats(h, f->layer, "hidden_norm.weight", f->hidden, 0);
    head_make_outputs(h, f, "eagle_aux_hidden_state_layer_ids");
    /* by this key the list names states, not outputs, if it begins with 1 */
    json_object_set_new(h->config, "speculators_model_type", json_string("eagle3"));
    if (f->mask_token) head_make_masks(h, f);
    if (f->clusters) head_make_clusters(h, f);
    if (!f->dart) return;
    head_floats(h, f->layer, "mask_rep", 2 * f->hidden, 0);
    json_object_set_new(h->config, "draft_length", json_integer(f->dart));
    json_object_set_new(h->config, "speculators_model_type", json_string("dart")); /* no kind of speculators: for the list of states */
}

static inline void head_free(random_head *h) {
    for (int i = 0; i < h->n; i++) bytes_free(&h->tensor[i].data);
    json_decref(h->config);
    *h = (random_head){.n = 0};
}

/* NULL: there is none. */
static inline head_tensor *head_find(random_head *h, const char *name) {
    for (int i = 0; i < h->n; i++)
        if (!strcmp(h->tensor[i].name, name)) return &h->tensor[i];
    return NULL;
}

/* Changes a shape: keeps the values that fit, then adds zeros. */
static inline void head_shape(head_tensor *t, int rows, int cols) {
    const size_t of = !strcmp(t->type, "I64") ? 8 : 4, want = (size_t)rows * (size_t)(cols ? cols : 1) * of;
    if (t->data.size < want) bytes_zeros(&t->data, want - t->data.size);
    t->data.size = want;
    t->rows = rows;
    t->cols = cols;
}

static inline void head_drop(random_head *h, const char *name) {
    head_tensor *t = head_find(h, name);
    bytes_free(&t->data);
    *t = h->tensor[--h->n];
}

static inline bytes head_safetensors(const random_head *h) {
    bytes head = {0}, data = {0}, all = {0};
    for (int i = 0; i < h->n; i++) {
        const head_tensor *t = &h->tensor[i];
        char line[300], cols[20] = "", sides[20] = "";
        if (t->cols) snprintf(cols, sizeof cols, ",%d", t->cols);
        if (t->sides) snprintf(sides, sizeof sides, "%d,", t->sides);
        snprintf(line, sizeof line, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s%d%s],\"data_offsets\":[%zu,%zu]}", i ? ',' : '{',
                 t->name, t->type, sides, t->sides ? t->rows / t->sides : t->rows, cols, data.size, data.size + t->data.size);
        bytes_put(&head, line, strlen(line));
        bytes_put(&data, t->data.at, t->data.size);
    }
    bytes_put(&head, "}", 1);
    bytes_number(&all, head.size, 8);
    bytes_put(&all, head.at, head.size);
    bytes_put(&all, data.at, data.size);
    bytes_free(&head);
    bytes_free(&data);
    return all;
}

/* Writes config.json and model.safetensors to a folder, which is created. */
static inline void head_write(const random_head *h, const char *to) {
    char path[600];
    bytes b = head_safetensors(h);
    char *config = json_dumps(h->config, JSON_ENCODE_ANY);
    (void)mkdir(to, 0700);
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    test_file_write(path, b.at, b.size);
    snprintf(path, sizeof path, "%s/config.json", to);
    test_file_write(path, config, strlen(config));
    free(config);
    bytes_free(&b);
}

/* Returns `to`. */
static inline const char *head_write_form(const head_form *f, const char *to) {
    random_head h;
    head_make(&h, f);
    head_write(&h, to);
    head_free(&h);
    return to;
}
#endif
