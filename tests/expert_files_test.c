/* SPDX-License-Identifier: Apache-2.0 */
/* expert_files_test.c - experts as different programs write them: a tensor of each or stacks, gates and ups apart or as one, in folders
 * and GGUF files, old ones too, 8-bit floats with factors, types that differ within a layer. The same weights give the same logits,
 * packed and left in the file; what does not fit together is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "format/source.h"
#include "model/convert.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

enum { MOST = 400, LAYERS = 3, EXPERTS = 8, HIDDEN = 64 }; /* the last three of mixtral-top2 */

typedef struct part {
    char name[120];
    hn_dtype type;
    int n_dims;
    uint64_t dims[HN_MAX_DIMS]; /* inputs first */
    bytes data;
} part;

/* The tensors of a model's files, which tests put together in another way. */
typedef struct parts {
    part at[MOST];
    int n;
    bytes keys; /* of a GGUF: its metadata, as it is stored */
    uint64_t n_keys;
} parts;

static part *part_find(parts *p, const char *name) {
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->at[i].name, name)) return &p->at[i];
    return NULL;
}

static part *part_add(parts *p, const char *name, hn_dtype type, int n_dims, const uint64_t *dims) {
    assert_true(p->n < MOST);
    part *t = &p->at[p->n++];
    *t = (part){.type = type, .n_dims = n_dims};
    snprintf(t->name, sizeof t->name, "%s", name);
    memcpy(t->dims, dims, (size_t)n_dims * sizeof *dims);
    return t;
}

static void part_drop(parts *p, const char *name) {
    part *t = part_find(p, name);
    if (!t) fail_msg("no tensor is called %s", name);
    bytes_free(&t->data);
    *t = p->at[--p->n];
}

static void parts_free(parts *p) {
    for (int i = 0; i < p->n; i++) bytes_free(&p->at[i].data);
    bytes_free(&p->keys);
    p->n = 0;
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

/* The metadata of a GGUF file: what stands between its head and the first tensor's name. */
static void keys_read(parts *p, const char *path) {
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

static void parts_read(parts *p, const char *path) {
    hn_source *s = NULL;
    *p = (parts){.n = 0};
    must(hn_source_open(&s, path, err));
    for (size_t i = 0; i < hn_source_tensor_count(s); i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        bytes_put(&part_add(p, t->name, t->dtype, t->n_dims, t->dims)->data, t->data, t->bytes);
    }
    if (hn_source_get_kind(s) == HN_SOURCE_GGUF) keys_read(p, path);
    hn_source_close(&s);
}

/* A folder with these tensors, and the config.json of `like`, in which `find` is replaced (NULL: nothing). */
static const char *folder_of(const parts *p, const char *like, const char *find, const char *replace) {
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

static uint32_t ggml_type(hn_dtype t) {
    hn_dtype found;
    for (uint32_t i = 0; i < 64; i++)
        if (hn_dtype_from_ggml(i, &found) && found == t) return i;
    fail_msg("%s: no type of a GGUF", hn_dtype_name(t));
    return 0;
}

static const char *gguf_of(const parts *p) {
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

/* The GGUF file that a golden folder makes. */
static const char *converted(const char *golden) {
    const char *to = test_path("converted.gguf");
    unlink(to);
    must(hn_convert(data_path(golden), to, err));
    return to;
}

/* ---- other ways to lie ---------------------------------------------------------------------------------------------- */

static void name_layer(char out[96], const char *pattern, int layer) {
    snprintf(out, 96, pattern, layer);
}

/* Tensors named by pattern (layer, expert), every expert's, become one, and where there is a second pattern, its behind each. */
static void stack(parts *p, const char *first, const char *second, const char *stacked) {
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

/* A stack of a GGUF becomes a tensor of each expert. */
static void take_apart(parts *p, const char *stacked, const char *each) {
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

/* Stacks of gates and ups of a layer become one: each expert's gate, then its up. */
static void join(parts *p, int layer) {
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
static void retype(parts *p, const char *word, hn_dtype type, bool widened) {
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

/* ---- what they say -------------------------------------------------------------------------------------------------- */

typedef enum way { PACKED, MAPPED_EXPERTS, MAPPED, WAYS } way;

static void say(const char *path, const char *draft, way how, hunch_precision precision, answer *out) {
    enum { VOCAB = 256 };
    hunch_model *m = NULL;
    hunch_model_options o;
    hunch_request r;
    hunch_token prompt[40];
    hunch_model_options_defaults(&o);
    o.threads = 2;
    o.precision = precision;
    o.mapped = how == MAPPED;
    o.mapped_experts = how == MAPPED_EXPERTS;
    must(hunch_model_open(&m, path, &o, err));
    for (int i = 0; i < 40; i++) prompt[i] = (hunch_token)((i * 97 + i * i * 31) % VOCAB);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = 40;
    r.max_tokens = 12;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    hunch_engine *e = open_engine(m, draft, 1, 16, HUNCH_KV_DEFAULT, 16, 128);
    *out = (answer){0};
    run_requests(e, &r, 1, true, out);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* Bit for bit what `want` is, however weights come into memory. */
static void same(const answer *want, const char *path, const char *what) {
    for (int how = PACKED; how < WAYS; how++) {
        answer got;
        say(path, NULL, (way)how, HUNCH_PRECISION_NATIVE, &got);
        assert_same(want, &got, what);
        answer_free(&got);
    }
}

/* Logits within a thousandth of their spread: the same values, in types whose sums are rounded otherwise. */
static void close_to(const answer *want, const char *path, way how, const char *what) {
    answer got;
    double sum = 0, squares = 0, most = 0;
    say(path, NULL, how, HUNCH_PRECISION_F32, &got);
    assert_true(got.vocab == want->vocab && got.token[0] == want->token[0]);
    for (int i = 0; i < want->vocab; i++) { /* of the first token: what is behind it may differ */
        const double w = (double)want->logits[i];
        sum += w;
        squares += w * w;
        most = fmax(most, fabs((double)got.logits[i] - w));
    }
    const double spread = sqrt(squares / want->vocab - sum / want->vocab * (sum / want->vocab));
    if (!(most <= 1e-3 * spread)) fail_msg("%s: a logit is off by %g, they spread %g", what, most, spread);
    answer_free(&got);
}

static void refused(const char *path, const char *words) {
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.threads = 1;
    assert_int_equal(hunch_model_open(&m, path, &o, &err), HUNCH_REFUSED);
    if (!strstr(err.message, words)) fail_msg("said \"%s\", expected \"%s\"", err.message, words);
}

#define EACH "model.layers.%d.block_sparse_moe.experts.%d."
#define MIXTRAL data_path("goldens/mixtral-top2")

/* Mixtral as newer programs write it: stacks below mlp, and its router there. */
static void mixtral_stack(parts *p) {
    stack(p, EACH "w1.weight", EACH "w3.weight", "model.layers.%d.mlp.experts.gate_up_proj");
    stack(p, EACH "w2.weight", NULL, "model.layers.%d.mlp.experts.down_proj");
    for (int i = 0; i < p->n; i++) {
        char layer[96];
        const char *at = strstr(p->at[i].name, ".block_sparse_moe.gate.weight");
        if (!at) continue;
        snprintf(layer, sizeof layer, "%.*s.mlp.gate.weight", (int)(at - p->at[i].name), p->at[i].name);
        strcpy(p->at[i].name, layer);
    }
}

static void test_stacked_mixtral(void **state) {
    (void)state;
    parts p;
    answer want;
    char path[800];
    say(MIXTRAL, NULL, PACKED, HUNCH_PRECISION_NATIVE, &want);
    parts_read(&p, MIXTRAL);
    mixtral_stack(&p);
    same(&want, folder_of(&p, MIXTRAL, NULL, NULL), "stacked");
    snprintf(path, sizeof path, "%s", test_path("again.gguf"));
    must(hn_convert(test_path("folder"), path, err));
    same(&want, path, "stacked, converted");
    part_drop(&p, "model.layers.1.mlp.gate.weight");
    refused(folder_of(&p, MIXTRAL, NULL, NULL), "tensor model.layers.1.mlp.gate.weight is missing");
    parts_free(&p);
    answer_free(&want);
}

/* Old files have a tensor of each expert. */
static void test_old_mixtral(void **state) {
    (void)state;
    parts p;
    answer want;
    say(MIXTRAL, NULL, PACKED, HUNCH_PRECISION_NATIVE, &want);
    parts_read(&p, converted("goldens/mixtral-top2"));
    take_apart(&p, "blk.%d.ffn_gate_exps.weight", "blk.%d.ffn_gate.%d.weight");
    take_apart(&p, "blk.%d.ffn_up_exps.weight", "blk.%d.ffn_up.%d.weight");
    take_apart(&p, "blk.%d.ffn_down_exps.weight", "blk.%d.ffn_down.%d.weight");
    same(&want, gguf_of(&p), "a tensor of each expert");
    retype(&p, "blk.1.ffn_down.5.weight", HN_F32, false);
    refused(gguf_of(&p), "blk.1.ffn_down.5.weight has type F32, blk.1.ffn_down.0.weight has BF16: expected one type");
    part_drop(&p, "blk.1.ffn_down.5.weight");
    refused(gguf_of(&p), "tensor blk.1.ffn_down.5.weight is missing");
    parts_free(&p);
    answer_free(&want);
}

static void keep_level(void *user, int level, const float *logits, int vocab) {
    keep_logits(user, (size_t)level, logits, vocab);
}

/* The logits of what a file's own block drafts. */
static void drafts_of(const char *path, answer *out) {
    enum { LEVELS = 3 };
    static const hunch_token text[] = {5, 71, 200, 9, 33, 180, 2};
    hunch_model *m = open_model(path, "best", 2, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "mtp", 1, 16, HUNCH_KV_DEFAULT, 16, 128);
    hunch_draft_result r;
    *out = (answer){0};
    must(hunch_draft(e, text, 7, LEVELS, -1, NULL, keep_level, out, &r, err));
    assert_int_equal(r.n, LEVELS);
    out->n = LEVELS;
    out->token = calloc(LEVELS, sizeof *out->token);
    for (int i = 0; i < LEVELS; i++) out->token[i] = r.node[i].token;
    hunch_free(r.node);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void same_drafts(const answer *want, const char *path) {
    answer got;
    drafts_of(path, &got);
    assert_same(want, &got, "mtp");
    answer_free(&got);
}

/* Gates and ups in one stack of a GGUF; of layers, of a block that drafts, or both. */
static void test_joined(void **state) {
    (void)state;
    static const struct {
        const char *folder;
        int first, last;
        bool drafts;
    } models[] = {{"goldens/mixtral-top2", 0, 2, false},    {"goldens/qwen3_moe-fine", 1, 1, false},
                  {"goldens/qwen3_5_moe-fused", 0, 4, true}, {"goldens/qwen3_5_moe-fused", 4, 4, true},
                  {"goldens/qwen3_5_moe-fused", 0, 3, true}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        parts p;
        answer want, drafted = {0};
        const char *whole = converted(models[i].folder);
        say(whole, NULL, PACKED, HUNCH_PRECISION_NATIVE, &want);
        if (models[i].drafts) drafts_of(whole, &drafted);
        parts_read(&p, whole);
        const int before = p.n;
        for (int layer = models[i].first; layer <= models[i].last; layer++) join(&p, layer);
        assert_int_equal(p.n, before - (models[i].last - models[i].first + 1));
        same(&want, gguf_of(&p), models[i].folder);
        if (models[i].drafts) same_drafts(&drafted, gguf_of(&p));
        part_drop(&p, "blk.1.ffn_down_exps.weight");
        refused(gguf_of(&p), "tensor blk.1.ffn_down_exps.weight is missing");
        parts_free(&p);
        answer_free(&want);
        answer_free(&drafted);
    }
}

/* ---- types ---------------------------------------------------------------------------------------------------------- */

/* Gates, ups and downs each of a type of their own; beside them the same values as F32. */
static void test_types_of_a_layer(void **state) {
    (void)state;
    static const hn_dtype types[][3] = {{HN_F32, HN_F16, HN_BF16}, {HN_Q8_0, HN_Q4_0, HN_F16}, {HN_BF16, HN_Q8_0, HN_Q4_0}};
    static const char *const names[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        parts p, wide;
        answer want;
        char first[800];
        parts_read(&wide, converted("goldens/mixtral-top2"));
        for (int k = 0; k < 3; k++) retype(&wide, names[k], types[i][k], true);
        snprintf(first, sizeof first, "%s", gguf_of(&wide));
        say(first, NULL, PACKED, HUNCH_PRECISION_F32, &want);
        parts_read(&p, test_path("converted.gguf"));
        for (int k = 0; k < 3; k++) retype(&p, names[k], types[i][k], false);
        for (int how = PACKED; how < WAYS; how++) close_to(&want, gguf_of(&p), (way)how, names[i]);
        parts_free(&p);
        parts_free(&wide);
        answer_free(&want);
    }
}

/* Random codes of 8-bit floats in a stack, a factor for each block of 128 x 128 of every expert; or, wide, the values as F32. */
static void put_f8(parts *p, int layer, const char *pattern, int in, int out, bool wide) {
    const uint64_t across = ((uint64_t)in + 127) / 128, down = ((uint64_t)out + 127) / 128,
                   dims[3] = {(uint64_t)in, (uint64_t)out, EXPERTS}, grid[3] = {across, down, EXPERTS};
    char name[96], factors[120];
    bytes codes = {0}, scale = {0};
    name_layer(name, pattern, layer);
    snprintf(factors, sizeof factors, "%s_scale_inv", name);
    uint64_t x = 11 + (uint64_t)(layer * 1000 + out);
    for (uint64_t k = 0; k < across * down * EXPERTS; k++) {
        const float f = 0.02f + 0.01f * (float)(k % 7);
        bytes_put(&scale, &f, sizeof f);
    }
    for (uint64_t k = 0; k < dims[0] * dims[1] * dims[2]; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const uint8_t code = (uint8_t)((x >> 60 & 1) << 7 | (40 + (x >> 40) % 24)); /* of either sign, about 1 */
        const uint64_t col = k % dims[0], row = k / dims[0] % dims[1], e = k / dims[0] / dims[1];
        float f;
        memcpy(&f, scale.at + 4 * ((e * down + row / 128) * across + col / 128), sizeof f);
        f *= hn_f8_to_f32(code);
        bytes_put(&codes, wide ? (const void *)&f : &code, wide ? sizeof f : 1);
    }
    if (wide)
        bytes_free(&scale);
    else
        part_add(p, factors, HN_F32, 3, grid)->data = scale;
    part_add(p, name, wide ? HN_F32 : HN_F8_E4M3, 3, dims)->data = codes;
}

/* Experts wide enough for several blocks, the second of which holds gates and ups. */
static void test_stacked_f8(void **state) {
    (void)state;
    enum { WIDTH = 160 };
    static const char size[] = "\"intermediate_size\": 64", other[] = "\"intermediate_size\": 160";
    answer want = {0};
    for (int wide = 1; wide >= 0; wide--) {
        parts p;
        parts_read(&p, MIXTRAL);
        mixtral_stack(&p);
        for (int layer = 0; layer < LAYERS; layer++) {
            char name[2][96];
            name_layer(name[0], "model.layers.%d.mlp.experts.gate_up_proj", layer);
            name_layer(name[1], "model.layers.%d.mlp.experts.down_proj", layer);
            for (int k = 0; k < 2; k++) part_drop(&p, name[k]);
            put_f8(&p, layer, "model.layers.%d.mlp.experts.gate_up_proj", HIDDEN, 2 * WIDTH, wide);
            put_f8(&p, layer, "model.layers.%d.mlp.experts.down_proj", WIDTH, HIDDEN, wide);
        }
        const char *path = folder_of(&p, MIXTRAL, size, other);
        if (wide)
            say(path, NULL, PACKED, HUNCH_PRECISION_F32, &want);
        else
            for (int how = PACKED; how < WAYS; how++) close_to(&want, path, (way)how, "8-bit floats");
        if (!wide) {
            part_drop(&p, "model.layers.2.mlp.experts.down_proj_scale_inv");
            refused(folder_of(&p, MIXTRAL, size, other), "tensor model.layers.2.mlp.experts.down_proj_scale_inv is missing");
        }
        parts_free(&p);
    }
    answer_free(&want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stacked_mixtral), cmocka_unit_test(test_old_mixtral),
                                       cmocka_unit_test(test_joined), cmocka_unit_test(test_types_of_a_layer),
                                       cmocka_unit_test(test_stacked_f8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
