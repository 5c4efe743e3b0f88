/* SPDX-License-Identifier: Apache-2.0 */
/* expert_parts.h - the tensors of mixtral-top2 and similar models, read from their files, combined in another way, and written again:
 * folders and GGUF files as other programs would. Include after cmocka and fixture.h. */
#ifndef HN_TESTS_EXPERT_PARTS_H
#define HN_TESTS_EXPERT_PARTS_H
#include "fixture.h"
#include "format/source.h"
#include "convert/convert.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

enum { MOST = 400, LAYERS = 3, EXPERTS = 8, HIDDEN = 64 }; /* the last three of mixtral-top2 */

typedef struct part {
    char name[120];
    hn_dtype type;
    int n_dims;
    uint64_t dims[HN_MAX_DIMS]; /* inputs first */
    bytes data;
} part;

/* The tensors of a model's files, which tests combine in another way. */
typedef struct parts {
    part at[MOST];
    int n;
    bytes keys; /* of a GGUF: its metadata, as it is stored */
    uint64_t n_keys;
} parts;

static inline part *part_find(parts *p, const char *name) {
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->at[i].name, name)) return &p->at[i];
    return NULL;
}

static inline part *part_add(parts *p, const char *name, hn_dtype type, int n_dims, const uint64_t *dims) {
    assert_true(p->n < MOST);
    part *t = &p->at[p->n++];
    *t = (part){.type = type, .n_dims = n_dims};
    snprintf(t->name, sizeof t->name, "%s", name);
    memcpy(t->dims, dims, (size_t)n_dims * sizeof *dims);
    return t;
}

static inline void part_drop(parts *p, const char *name) {
    part *t = part_find(p, name);
    if (!t) fail_msg("no tensor is called %s", name);
    bytes_free(&t->data);
    *t = p->at[--p->n];
}

static inline void parts_free(parts *p) {
    for (int i = 0; i < p->n; i++) bytes_free(&p->at[i].data);
    bytes_free(&p->keys);
    p->n = 0;
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

/* The metadata of a GGUF file: the bytes between its head and the first tensor's name. */
static inline void keys_read(parts *p, const char *path) {
    enum { HEAD = 24 };
    bytes file = test_file_read(path);
    size_t end = file.size;
    for (int i = 0; i < p->n; i++) {
        bytes name = {0};
        bytes_text(&name, p->at[i].name);
        const unsigned char *at = memmem(file.at, file.size, name.at, name.size);
        assert_non_null(at);
        if ((size_t)(at - file.at) < end) end = (size_t)(at - file.at);
        bytes_free(&name);
    }
    memcpy(&p->n_keys, file.at + 16, sizeof p->n_keys);
    bytes_put(&p->keys, file.at + HEAD, end - HEAD);
    bytes_free(&file);
}

static inline void parts_read(parts *p, const char *path) {
    const size_t len = strlen(path), end = strlen(".safetensors");
    const bool as_stored = len > end && !strcmp(path + len - end, ".safetensors"); /* the tensors of a folder, none joined */
    hn_source *s = NULL;
    *p = (parts){.n = 0};
    must(as_stored ? hn_source_open_safetensors(&s, path, err) : hn_source_open(&s, path, err));
    for (size_t i = 0; i < hn_source_tensor_count(s); i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        bytes_put(&part_add(p, t->name, t->dtype, t->n_dims, t->dims)->data, t->data, t->bytes);
    }
    if (hn_source_get_kind(s) == HN_SOURCE_GGUF) keys_read(p, path);
    hn_source_close(&s);
}

/* A folder with these tensors, and the config.json of `like`, in which `find` is replaced (NULL: nothing). */
static inline const char *folder_of(const parts *p, const char *like, const char *find, const char *replace) {
    bytes head = {0}, data = {0}, all = {0};
    char path[1300], text[2000];
    const char *to = test_path("folder");
    for (int i = 0; i < p->n; i++) {
        const part *t = &p->at[i];
        char line[300], shape[80] = "";
        for (int k = t->n_dims - 1; k >= 0; k--)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%llu%s", (unsigned long long)t->dims[k], k ? "," : "");
        snprintf(line, sizeof line, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", i ? ',' : '{', t->name,
                 hn_dtype_name(t->type), shape, data.size, data.size + t->data.size);
        bytes_put(&head, line, strlen(line));
        bytes_put(&data, t->data.at, t->data.size);
    }
    bytes_put(&head, "}", 1);
    bytes_number(&all, head.size, 8);
    bytes_put(&all, head.at, head.size);
    bytes_put(&all, data.at, data.size);
    (void)mkdir(to, 0700);
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    test_file_write(path, all.at, all.size);
    snprintf(path, sizeof path, "%s/config.json", like);
    bytes config = test_file_read(path);
    bytes_number(&config, 0, 1);
    const char *at = find ? strstr((const char *)config.at, find) : (const char *)config.at;
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - (const char *)config.at), (const char *)config.at, find ? replace : "",
             at + (find ? strlen(find) : 0));
    snprintf(path, sizeof path, "%s/config.json", to);
    test_file_write(path, text, strlen(text));
    bytes_free(&head);
    bytes_free(&data);
    bytes_free(&all);
    bytes_free(&config);
    return to;
}

static inline uint32_t ggml_type(hn_dtype t) {
    hn_dtype found;
    for (uint32_t i = 0; i < 64; i++)
        if (hn_dtype_from_ggml(i, &found) && found == t) return i;
    fail_msg("%s: no type of a GGUF", hn_dtype_name(t));
    return 0;
}

static inline const char *gguf_of(const parts *p) {
    enum { ALIGNMENT = 32 };
    bytes file = {0}, data = {0};
    const char *to = test_path("made.gguf");
    bytes_put(&file, "GGUF", 4);
    bytes_number(&file, 3, 4);
    bytes_number(&file, (uint64_t)p->n, 8);
    bytes_number(&file, p->n_keys, 8);
    bytes_put(&file, p->keys.at, p->keys.size);
    for (int i = 0; i < p->n; i++) {
        const part *t = &p->at[i];
        bytes_text(&file, t->name);
        bytes_number(&file, (uint64_t)t->n_dims, 4);
        for (int k = 0; k < t->n_dims; k++) bytes_number(&file, t->dims[k], 8);
        bytes_number(&file, ggml_type(t->type), 4);
        bytes_number(&file, data.size, 8);
        bytes_put(&data, t->data.at, t->data.size);
        bytes_zeros(&data, (ALIGNMENT - data.size % ALIGNMENT) % ALIGNMENT);
    }
    bytes_zeros(&file, (ALIGNMENT - file.size % ALIGNMENT) % ALIGNMENT);
    bytes_put(&file, data.at, data.size);
    test_file_write(to, file.at, file.size);
    bytes_free(&file);
    bytes_free(&data);
    return to;
}

/* The GGUF file converted from a golden folder. */
static inline const char *converted(const char *golden) {
    const char *to = test_path("converted.gguf");
    unlink(to);
    must(hn_convert(data_path(golden), to, err));
    return to;
}

/* The model is refused with these words. */
static inline void refused(const char *path, const char *words) {
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.threads = 1;
    assert_int_equal(hunch_model_open(&m, path, &o, &err), HUNCH_REFUSED);
    if (!strstr(err.message, words)) fail_msg("said \"%s\", expected \"%s\"", err.message, words);
}

/* ---- other layouts ---------------------------------------------------------------------------------------------- */

static inline void name_layer(char out[96], const char *pattern, int layer) {
    snprintf(out, 96, pattern, layer);
}

/* Joins the tensors named by a pattern (layer, expert) of all experts; with a second pattern, each expert's second
 * tensor follows its first. */
static inline void stack(parts *p, const char *first, const char *second, const char *stacked) {
    for (int layer = 0; layer < LAYERS; layer++) {
        bytes all = {0};
        uint64_t dims[3] = {0};
        hn_dtype type = HN_F32;
        for (int e = 0; e < EXPERTS; e++)
            for (int k = 0; k < (second ? 2 : 1); k++) {
                char name[96];
                snprintf(name, sizeof name, k ? second : first, layer, e);
                const part *t = part_find(p, name);
                assert_non_null(t);
                bytes_put(&all, t->data.at, t->data.size);
                memcpy(dims, t->dims, 2 * sizeof *dims);
                type = t->type;
                part_drop(p, name);
            }
        dims[1] *= second ? 2 : 1;
        dims[2] = EXPERTS;
        char name[96];
        name_layer(name, stacked, layer);
        part_add(p, name, type, 3, dims)->data = all;
    }
}

/* Splits a stack of a GGUF into a tensor for each expert. */
static inline void take_apart(parts *p, const char *stacked, const char *each) {
    for (int layer = 0; layer < LAYERS; layer++) {
        char name[96], one[96];
        name_layer(name, stacked, layer);
        const part *t = part_find(p, name);
        assert_true(t && t->n_dims == 3 && t->dims[2] == EXPERTS);
        const part whole = *t;
        for (int e = 0; e < EXPERTS; e++) {
            const size_t size = whole.data.size / EXPERTS;
            snprintf(one, sizeof one, each, layer, e);
            bytes_put(&part_add(p, one, whole.type, 2, whole.dims)->data, whole.data.at + size * (size_t)e, size);
        }
        part_drop(p, name);
    }
}

/* Joins the stacks of gates and ups of a layer: each expert's gate, then its up. */
static inline void join(parts *p, int layer) {
    char gate_name[96], up_name[96], both[96];
    name_layer(gate_name, "blk.%d.ffn_gate_exps.weight", layer);
    name_layer(up_name, "blk.%d.ffn_up_exps.weight", layer);
    name_layer(both, "blk.%d.ffn_gate_up_exps.weight", layer);
    assert_non_null(part_find(p, gate_name));
    const part gate = *part_find(p, gate_name), up = *part_find(p, up_name);
    const uint64_t dims[3] = {gate.dims[0], 2 * gate.dims[1], gate.dims[2]};
    bytes all = {0};
    for (uint64_t e = 0; e < dims[2]; e++)
        for (int k = 0; k < 2; k++) {
            const bytes *from = k ? &up.data : &gate.data;
            const size_t size = from->size / dims[2];
            bytes_put(&all, from->at + size * e, size);
        }
    part_drop(p, gate_name);
    part_drop(p, up_name);
    part_add(p, both, gate.type, 3, dims)->data = all;
}

/* Matrices whose names hold `word` in another type; widened: that type's values, as F32. */
static inline void retype(parts *p, const char *word, hn_dtype type, bool widened) {
    int found = 0;
    for (int i = 0; i < p->n; i++) {
        part *t = &p->at[i];
        if (!strstr(t->name, word)) continue;
        size_t n = 1, row;
        for (int k = 0; k < t->n_dims; k++) n *= t->dims[k];
        assert_true(hn_dtype_row_bytes(type, t->dims[0], &row));
        float *f = malloc(n * sizeof *f);
        unsigned char *q = malloc(n / t->dims[0] * row);
        hn_dequantise(t->type, t->data.at, n, f);
        hn_quantise(type, f, n, q);
        if (widened) hn_dequantise(type, q, n, f);
        bytes_free(&t->data);
        bytes_put(&t->data, widened ? (const void *)f : q, widened ? n * sizeof *f : n / t->dims[0] * row);
        t->type = widened ? HN_F32 : type;
        free(f);
        free(q);
        found++;
    }
    assert_true(found > 0);
}
#endif
