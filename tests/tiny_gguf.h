/* SPDX-License-Identifier: Apache-2.0 */
/* tiny_gguf.h - a Llama of one layer, 8 wide, with 15 tokens, as a GGUF file of which tests change any part: keys,
 * tensors, counts of the header. Include after command.h or cmocka. */
#ifndef HN_TINY_GGUF_H
#define HN_TINY_GGUF_H
#include "format/bytes_for_tests.h"

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, KEY_TYPES };
enum { TINY_MOST = 48, TINY_WIDE = 8, TINY_VOCAB = 15, TINY_ALIGNMENT = 32 };

typedef struct tiny_key {
    char name[80];
    uint32_t type;
    bytes value;
} tiny_key;

typedef struct tiny_tensor {
    char name[80];
    uint32_t type;
    uint32_t n_dims;
    uint64_t dims[8];
    uint64_t offset;
    float *data; /* owned */
    size_t n;
} tiny_tensor;

typedef struct tiny {
    uint32_t version;
    tiny_key key[TINY_MOST];
    size_t n_keys, more_keys; /* more_: counted in the header but missing */
    tiny_tensor tensor[TINY_MOST];
    size_t n_tensors, more_tensors;
} tiny;

/* ---- keys ----------------------------------------------------------------------------------------------------- */

static inline tiny_key *tiny_find(tiny *t, const char *name) {
    for (size_t i = 0; i < t->n_keys; i++)
        if (strcmp(t->key[i].name, name) == 0) return &t->key[i];
    return NULL;
}

/* A key with nothing in it, in place of the one of that name. */
static inline bytes *tiny_put(tiny *t, const char *name, uint32_t type) {
    tiny_key *k = tiny_find(t, name);
    if (!k) {
        assert_true(t->n_keys < TINY_MOST);
        k = &t->key[t->n_keys++];
        snprintf(k->name, sizeof k->name, "%s", name);
    }
    bytes_free(&k->value);
    k->type = type;
    return &k->value;
}

static inline void tiny_remove(tiny *t, const char *name) {
    tiny_key *k = tiny_find(t, name);
    assert_non_null(k);
    bytes_free(&k->value);
    *k = t->key[--t->n_keys];
    t->key[t->n_keys] = (tiny_key){0};
}

/* Any type: integers take the low bits of u, floats f, a string the text, an array is one of three u8. */
static inline void tiny_set(tiny *t, const char *name, uint32_t type, uint64_t u, double f, const char *text) {
    static const size_t sizes[KEY_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    bytes *b = tiny_put(t, name, type);
    const float single = (float)f;
    if (type == STRING)
        bytes_text(b, text);
    else if (type == ARRAY)
        bytes_number(b, U8, 4), bytes_number(b, 3, 8), bytes_number(b, u, 3);
    else if (type == F32)
        bytes_put(b, &single, sizeof single);
    else if (type == F64)
        bytes_put(b, &f, sizeof f);
    else
        bytes_number(b, u, sizes[type]);
}

static inline void tiny_u32(tiny *t, const char *name, uint32_t value) {
    tiny_set(t, name, U32, value, 0, NULL);
}

static inline void tiny_f32(tiny *t, const char *name, double value) {
    tiny_set(t, name, F32, 0, value, NULL);
}

static inline void tiny_text(tiny *t, const char *name, const char *text) {
    tiny_set(t, name, STRING, 0, 0, text);
}

/* The head of an array; its elements must be appended. */
static inline bytes *tiny_array(tiny *t, const char *name, uint32_t type, uint64_t count) {
    bytes *b = tiny_put(t, name, ARRAY);
    bytes_number(b, type, 4);
    bytes_number(b, count, 8);
    return b;
}

static inline void tiny_vocabulary(tiny *t) {
    static const char *const pieces[TINY_VOCAB] = {"<unk>",
                                                   "<s>",
                                                   "</s>",
                                                   "<0x0A>",
                                                   "<0x0D>",
                                                   "<0x20>",
                                                   "<0x41>",
                                                   "\xE2\x96\x81",
                                                   "a",
                                                   "b",
                                                   "c",
                                                   "\xE2\x96\x81"
                                                   "a",
                                                   "bc",
                                                   "\xE2\x96\x81"
                                                   "abc",
                                                   "<pad>"};
    static const unsigned char types[TINY_VOCAB] = {2, 3, 3, 6, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 4};
    tiny_text(t, "tokenizer.ggml.model", "llama");
    bytes *b = tiny_array(t, "tokenizer.ggml.tokens", STRING, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) bytes_text(b, pieces[i]);
    b = tiny_array(t, "tokenizer.ggml.scores", F32, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) {
        const float score = -(float)i;
        bytes_put(b, &score, sizeof score);
    }
    b = tiny_array(t, "tokenizer.ggml.token_type", I32, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) bytes_number(b, types[i], 4);
    tiny_u32(t, "tokenizer.ggml.bos_token_id", 1);
    tiny_u32(t, "tokenizer.ggml.eos_token_id", 2);
    tiny_u32(t, "tokenizer.ggml.unknown_token_id", 0);
    tiny_set(t, "tokenizer.ggml.add_bos_token", BOOL, 1, 0, NULL);
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

static inline tiny_tensor *tiny_tensor_of(tiny *t, const char *name) {
    for (size_t i = 0; i < t->n_tensors; i++)
        if (strcmp(t->tensor[i].name, name) == 0) return &t->tensor[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Appends an F32 tensor. rows 0: a vector. */
static inline void tiny_add(tiny *t, const char *name, uint64_t cols, uint64_t rows) {
    assert_true(t->n_tensors < TINY_MOST);
    tiny_tensor *to = &t->tensor[t->n_tensors++];
    const size_t n = (size_t)(cols * (rows ? rows : 1)), align = TINY_ALIGNMENT;
    *to = (tiny_tensor){.n_dims = rows ? 2 : 1, .dims = {cols, rows}, .n = n, .data = calloc(n, sizeof *to->data)};
    assert_non_null(to->data);
    snprintf(to->name, sizeof to->name, "%s", name);
    if (t->n_tensors > 1) to->offset = (to[-1].offset + to[-1].n * sizeof *to->data + align - 1) / align * align;
    for (size_t i = 0; i < n; i++) to->data[i] = rows ? (float)((int)(i * 37 % 17) - 8) / 16 : 1;
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

static inline void tiny_open(tiny *t) {
    static const char *const square[] = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
    *t = (tiny){.version = 3};
    tiny_text(t, "general.architecture", "llama");
    tiny_text(t, "general.name", "tiny");
    tiny_u32(t, "llama.block_count", 1);
    tiny_u32(t, "llama.embedding_length", TINY_WIDE);
    tiny_u32(t, "llama.feed_forward_length", TINY_WIDE);
    tiny_u32(t, "llama.attention.head_count", 2);
    tiny_u32(t, "llama.attention.head_count_kv", 2);
    tiny_u32(t, "llama.context_length", 64);
    tiny_f32(t, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    tiny_f32(t, "llama.rope.freq_base", 10000);
    tiny_u32(t, "llama.rope.dimension_count", 4);
    tiny_u32(t, "llama.vocab_size", TINY_VOCAB);
    tiny_vocabulary(t);
    tiny_add(t, "token_embd.weight", TINY_WIDE, TINY_VOCAB);
    tiny_add(t, "output_norm.weight", TINY_WIDE, 0);
    tiny_add(t, "blk.0.attn_norm.weight", TINY_WIDE, 0);
    tiny_add(t, "blk.0.ffn_norm.weight", TINY_WIDE, 0);
    for (size_t i = 0; i < sizeof square / sizeof *square; i++) {
        char name[80];
        snprintf(name, sizeof name, "blk.0.%s.weight", square[i]);
        tiny_add(t, name, TINY_WIDE, TINY_WIDE);
    }
}

static inline void tiny_close(tiny *t) {
    for (size_t i = 0; i < t->n_keys; i++) bytes_free(&t->key[i].value);
    for (size_t i = 0; i < t->n_tensors; i++) free(t->tensor[i].data);
    *t = (tiny){0};
}

/* The file's bytes; bytes_free. */
static inline bytes tiny_bytes(const tiny *t) {
    bytes b = {0};
    bytes_put(&b, "GGUF", 4);
    bytes_number(&b, t->version, 4);
    bytes_number(&b, t->n_tensors + t->more_tensors, 8);
    bytes_number(&b, t->n_keys + t->more_keys, 8);
    for (size_t i = 0; i < t->n_keys; i++) {
        bytes_text(&b, t->key[i].name);
        bytes_number(&b, t->key[i].type, 4);
        bytes_put(&b, t->key[i].value.at, t->key[i].value.size);
    }
    for (size_t i = 0; i < t->n_tensors; i++) {
        const tiny_tensor *x = &t->tensor[i];
        bytes_text(&b, x->name);
        bytes_number(&b, x->n_dims, 4);
        for (uint32_t d = 0; d < x->n_dims && d < 8; d++) bytes_number(&b, x->dims[d], 8);
        bytes_number(&b, x->type, 4);
        bytes_number(&b, x->offset, 8);
    }
    for (size_t i = 0; i < t->n_tensors; i++) {
        bytes_zeros(&b, -b.size & (TINY_ALIGNMENT - 1));
        bytes_put(&b, t->tensor[i].data, t->tensor[i].n * sizeof(float));
    }
    return b;
}
#endif
