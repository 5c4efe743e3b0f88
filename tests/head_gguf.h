/* SPDX-License-Identifier: Apache-2.0 */
/* head_gguf.h - a draft head of random weights (random_head.h) as a GGUF file of which tests change any part (tiny_gguf.h): as
 * llama.cpp's converter writes EAGLE-3, as hunch convert writes the others; the names are listed independently of the library's.
 * Include after both. */
#ifndef HN_TESTS_HEAD_GGUF_H
#define HN_TESTS_HEAD_GGUF_H

/* Names of a tensor. pairs: each attention head's rows are in adjacent pairs there. */
static const struct {
    const char *folder, *gguf;
    bool pairs;
} head_gguf_names[] = {
    {"fc.weight", "fc.weight", false},
    {"fc.bias", "fc.bias", false},
    {"norm.weight", "output_norm.weight", false},
    {"lm_head.weight", "output.weight", false},
    {"d2t", "d2t", false},
    {"embed_tokens.weight", "token_embd.weight", false},
    {"mask_hidden", "mask_hidden", false},
    {"mask_rep", "mask_rep", false},
    {"input_layernorm.weight", "attn_norm.weight", false},
    {"hidden_norm.weight", "attn_norm_2.weight", false},
    {"self_attn.q_proj.weight", "attn_q.weight", true},
    {"self_attn.k_proj.weight", "attn_k.weight", true},
    {"self_attn.q_proj.bias", "attn_q.bias", true},
    {"self_attn.k_proj.bias", "attn_k.bias", true},
    {"self_attn.v_proj.bias", "attn_v.bias", false},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", true},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", true},
    {"self_attn.v_proj.weight", "attn_v.weight", false},
    {"self_attn.o_proj.weight", "attn_output.weight", false},
    {"post_attention_layernorm.weight", "ffn_norm.weight", false},
    {"mlp.gate_proj.weight", "ffn_gate.weight", false},
    {"mlp.up_proj.weight", "ffn_up.weight", false},
    {"mlp.down_proj.weight", "ffn_down.weight", false},
    {"input_proj.weight", "nextn.eh_proj.weight", false},
    {"token_layernorm.weight", "nextn.enorm.weight", false},
    {"hidden_layernorm.weight", "nextn.hnorm.weight", false},
    {"final_layernorm.weight", "nextn.shared_head_norm.weight", false},
    {"markov_head.markov_w1.weight", "markov_w1.weight", false},
    {"markov_head.markov_w2.weight", "markov_w2.weight", false},
    {"prefix_gru.weight_ih_l0", "prefix_gru_ih.weight", false},
    {"prefix_gru.weight_hh_l0", "prefix_gru_hh.weight", false},
    {"embed_proj.0.weight", "embed_proj_in.weight", false},
    {"embed_proj.2.weight", "embed_proj_out.weight", false},
    {"candidate_selector.hidden_projection.weight", "selector_hidden.weight", false},
    {"candidate_selector.predecessor_codebook", "selector_predecessor.weight", false},
    {"candidate_selector.successor_codebook", "selector_successor.weight", false},
    {"attention_conv.base_kernel", "attn_conv_base", false},
    {"attention_conv.kernel_projection.weight", "attn_conv_proj.weight", false},
    {"mlp_conv.base_kernel", "ffn_conv_base", false},
    {"mlp_conv.kernel_projection.weight", "ffn_conv_proj.weight", false},
    {"masked_embedding.centroids.weight", "masked_embd_centroids.weight", false},
    {"masked_embedding.token_ordering", "masked_embd_ordering", false},
    {"lstm.weight_ih_l0", "lstm.0.weight", false},
    {"lstm.weight_ih_l1", "lstm.1.weight", false},
    {"lstm.bias_ih_l0", "lstm.0.bias", false},
    {"lstm.bias_ih_l1", "lstm.1.bias", false},
    {"lstm.bias_hh_l0", "lstm.0.state_bias", false},
    {"lstm.bias_hh_l1", "lstm.1.state_bias", false},
};

/* Replaces a tensor's data by bytes of any type. */
static inline void head_gguf_data(tiny_tensor *t, uint32_t type, const void *data, size_t size) {
    assert_int_equal(size % sizeof *t->data, 0);
    free(t->data);
    t->type = type;
    t->n = size / sizeof *t->data;
    t->data = calloc(t->n, sizeof *t->data);
    assert_non_null(t->data);
    memcpy(t->data, data, size);
}

/* Sets the offsets from the tensors' sizes. */
static inline void head_gguf_place(tiny *t) {
    uint64_t at = 0;
    for (size_t i = 0; i < t->n_tensors; i++) {
        t->tensor[i].offset = at;
        at += (t->tensor[i].n * sizeof(float) + TINY_ALIGNMENT - 1) / TINY_ALIGNMENT * TINY_ALIGNMENT;
    }
}

static inline void head_gguf_pairs(float *to, const float *from, int rows, int cols, int size) {
    for (int r = 0; r < rows; r++) {
        const int head = r / size, i = r % size, half = size / 2;
        memcpy(to + (size_t)(head * size + (i < half ? 2 * i : 2 * (i - half) + 1)) * (size_t)cols, from + (size_t)r * (size_t)cols,
               (size_t)cols * sizeof *to);
    }
}

static inline void head_gguf_tensor(tiny *t, const head_tensor *from, const head_form *f) {
    size_t i = 0, n = sizeof head_gguf_names / sizeof *head_gguf_names;
    static const char *const fronts[] = {"midlayer.", "layers.0.", "layers.1.", "mtp_layers.0."};
    size_t front = 0;
    for (int k = 0; k < 4; k++)
        if (!strncmp(from->name, fronts[k], strlen(fronts[k]))) front = strlen(fronts[k]);
    const int layer = !strncmp(from->name, fronts[2], strlen(fronts[2]));
    char name[60];
    while (i < n && strcmp(from->name + front, head_gguf_names[i].folder)) i++;
    if (i == n) fail_msg("no GGUF name for %s", from->name);
    if (front)
        snprintf(name, sizeof name, "blk.%d.%s", layer, head_gguf_names[i].gguf);
    else
        snprintf(name, sizeof name, "%s",
                 f->block && !strcmp(from->name, "hidden_norm.weight") ? "enc.output_norm.weight" : head_gguf_names[i].gguf);
    const uint64_t rows = (uint64_t)from->rows, cols = (uint64_t)from->cols;
    const bool mask = !strcmp(name, "mask_hidden");
    tiny_add(t, name, mask ? cols : cols ? cols : rows, mask || !cols ? 0 : rows);
    tiny_tensor *to = &t->tensor[t->n_tensors - 1];
    if (from->sides) {
        to->n_dims = 3;
        to->dims[1] = rows / (uint64_t)from->sides;
        to->dims[2] = (uint64_t)from->sides;
    }
    head_gguf_data(to, !strcmp(from->type, "I64") ? 27 : 0, from->data.at, from->data.size);
    if (head_gguf_names[i].pairs && f->eagle3)
        head_gguf_pairs(to->data, (const float *)(const void *)from->data.at, from->rows, from->cols ? from->cols : 1,
                         f->hidden / f->heads);
    for (int d = 0; !strcmp(name, "d2t") && d < from->rows; d++) {
        int64_t id;
        memcpy(&id, from->data.at + (size_t)d * sizeof id, sizeof id);
        id += d;
        memcpy((char *)to->data + (size_t)d * sizeof id, &id, sizeof id);
    }
}

static inline void head_gguf_u32(tiny *t, const char *architecture, const char *suffix, int value) {
    char key[80];
    snprintf(key, sizeof key, "%s.%s", architecture, suffix);
    tiny_u32(t, key, (uint32_t)value);
}

/* Metadata of blocks in speculators' format, whose windows are counted from the root. */
static inline void head_gguf_block(tiny *t, const head_form *f) {
    static const char *const numbers[] = {"conv_kernel_size", "conv_group_size", "selector_top_k", "selector_rank"};
    const int value[] = {2, 16, 12, f->selector};
    tiny_text(t, "hunch.head.kind", f->rank ? "dspark" : f->state ? "domino" : f->selector ? "dflash2" : "dflash");
    for (int i = 0; i < 4 && f->selector; i++) head_gguf_u32(t, "dflash", numbers[i], value[i]);
    if (f->selector) tiny_set(t, "hunch.head.sliding_window_non_causal", BOOL, 1, 1, NULL);
    if (f->state) tiny_u32(t, "hunch.head.pure_draft_prefix_len", 1);
    tiny_u32(t, "dflash.block_size", (uint32_t)f->block);
    tiny_set(t, "dflash.sample_from_anchor", BOOL, f->rank || f->state, f->rank || f->state, NULL);
    tiny_u32(t, "tokenizer.ggml.mask_token_id", (uint32_t)f->mask_token);
}

static inline void head_gguf_open(tiny *t, const random_head *h, const head_form *f) {
    const char *a = f->block ? "dflash" : f->eagle3 ? "eagle3" : "hunch-head";
    char key[80];
    *t = (tiny){.version = 3};
    tiny_text(t, "general.architecture", a);
    head_gguf_u32(t, a, "block_count", f->mask_token ? 2 : 1);
    head_gguf_u32(t, a, "embedding_length", f->hidden);
    head_gguf_u32(t, a, "feed_forward_length", f->ffn);
    head_gguf_u32(t, a, "attention.head_count", f->heads);
    head_gguf_u32(t, a, "attention.head_count_kv", f->kv_heads);
    head_gguf_u32(t, a, "context_length", 512);
    head_gguf_u32(t, a, "vocab_size", f->vocab);
    head_gguf_u32(t, a, "rope.dimension_count", f->hidden / f->heads);
    snprintf(key, sizeof key, "%s.rope.freq_base", a);
    tiny_f32(t, key, 10000);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", a);
    tiny_f32(t, key, 1e-5);
    if (f->eagle3 || f->block) {
        snprintf(key, sizeof key, "%s.target_layers", a);
        bytes *b = tiny_array(t, key, I32, (uint64_t)f->n_taps);
        for (int i = 0; i < f->n_taps; i++) bytes_number(b, (uint64_t)f->taps[i], 4);
        head_gguf_u32(t, a, "target_hidden_size", f->hidden);
    } else
        tiny_text(t, "hunch.head.kind", f->mtp ? "mtp" : f->falcon ? "falcon" : "eagle");
    if (f->mtp) tiny_u32(t, "hunch-head.nextn_predict_layers", 1);
    if (f->block) head_gguf_block(t, f);
    if (f->falcon) tiny_u32(t, "hunch-head.k_mask", (uint32_t)f->falcon);
    if (f->mask_token && !f->block) tiny_u32(t, "hunch.head.mask_token_id", (uint32_t)f->mask_token);
    if (f->clusters) tiny_u32(t, "hunch.head.centroid_top_k", (uint32_t)f->clusters_used);
    if (f->dart) tiny_u32(t, "hunch.head.draft_length", (uint32_t)f->dart);
    for (int i = 0; i < h->n; i++) /* an LSTM's matrices for its state are not read: the state is zero */
        if (strncmp(h->tensor[i].name, "lstm.weight_hh", 14)) head_gguf_tensor(t, &h->tensor[i], f);
    head_gguf_place(t);
}

static inline void head_gguf_write(tiny *t, const char *path) {
    head_gguf_place(t);
    bytes b = tiny_bytes(t);
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
}
#endif
