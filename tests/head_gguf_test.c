/* SPDX-License-Identifier: Apache-2.0 */
/* head_gguf_test.c - draft heads in GGUF files: a file written by hunch convert, and one as llama.cpp's converter writes it, drafts the
 * same tokens with the same q and logits as the folder, bit for bit; quantised ones open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "engine/engine.h"
#include "fixture.h"
#include "random_head.h"
#include "tiny_gguf.h"

#include "head_gguf.h"

#define HEADS HUNCH_TEST_DATA "/goldens-heads"
#define LLAMA HEADS "/targets/llama-a"
#define QWEN3 HEADS "/targets/qwen3-a"
#define META HEADS "/targets/meta-b"
#define LAYERS "which layers of its model it reads: expected --target"

enum { MOST_NODES = 64, VOCAB = 512, DEPTH = 4 };
static const hunch_token prompt[] = {1, 8, 200, 10, 8, 9, 77, 210, 8, 200, 10, 8, 9, 23, 55, 8, 200, 10};

/* ---- two heads draft the same bits -------------------------------------------------------------------------------------------- */

typedef struct drafted {
    int n, root;
    hunch_draft_node node[MOST_NODES];
    float logits[DEPTH][VOCAB];
    int levels;
} drafted;

static void keep(void *user, int level, const float *logits, int vocab) {
    drafted *d = user;
    assert_true(level < DEPTH && vocab <= VOCAB);
    memcpy(d->logits[level], logits, (size_t)vocab * sizeof *logits);
    d->levels = level + 1;
}

static void draft(drafted out[2], hunch_model *m, const char *spec, const char *rest) {
    char text[900];
    snprintf(text, sizeof text, "%s%s", spec, rest);
    hunch_engine *e = open_engine(m, text, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    const int most = e->drafter[0].needs.max_depth, depth = most < DEPTH ? most : DEPTH;
    for (int round = 0; round < 2; round++) {
        hunch_draft_result r;
        memset(&out[round], 0, sizeof out[round]);
        must(hunch_draft(e, prompt, sizeof prompt / sizeof *prompt, depth, round ? 2 : -1, NULL, keep, &out[round], &r, err));
        assert_true(r.n > 0 && r.n <= MOST_NODES);
        out[round].n = r.n;
        out[round].root = r.root;
        for (int i = 0; i < r.n; i++) {
            const hunch_draft_node *from = &r.node[i];
            hunch_draft_node *to = &out[round].node[i]; /* field by field: bytes between them are undefined */
            to->token = from->token, to->parent = from->parent, to->drafter = from->drafter;
            to->q = from->q, to->estimate = from->estimate, to->logp = from->logp;
        }
        hunch_free(r.node);
    }
    hunch_engine_close(&e);
}

static bool same(hunch_model *m, const char *one, const char *other, const char *rest) {
    static drafted a[2], b[2];
    draft(a, m, one, rest);
    draft(b, m, other, rest);
    assert_true(a[0].levels > 0 && memcmp(a[0].logits, a[1].logits, sizeof a[0].logits));
    return memcmp(a, b, sizeof a) == 0;
}

static void assert_same_drafts(const char *target, const char *folder, const char *file) {
    static const char *const ways[] = {"", ",tree=dynamic,topk=3,total=12", ",weights=f32"};
    static const hunch_precision precisions[] = {HUNCH_PRECISION_F32, HUNCH_PRECISION_NATIVE};
    for (int p = 0; p < 2; p++) {
        hunch_model *m = open_model(target, "best", 1, precisions[p]);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            if (i == 1 && !strncmp(folder, "falcon", 6)) continue; /* its levels come in blocks */
            if (!same(m, folder, file, ways[i])) fail_msg("%s%s drafts otherwise than %s, precision %d", file, ways[i], folder, p);
            const char *path = strchr(file, ':');
            if (path && !same(m, file, path + 1, ways[i])) fail_msg("%s without its kind drafts otherwise", file);
        }
        hunch_model_close(&m);
    }
}

static const char *spec_of(const char *kind, const char *path) {
    static char text[4][800];
    static int next;
    char *out = text[next++ & 3];
    snprintf(out, 800, "%s:%s", kind, path);
    return out;
}

/* ---- files written by convert ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *kind, *target;
    const char *needs; /* what the folder leaves open, in the error's words; NULL: nothing */
} goldens[] = {
    {"eagle1-bias-bin", "eagle", LLAMA, NULL},
    {"eagle2-nobias-gqa", "eagle", LLAMA, NULL},
    {"eagle2-qkv-bias", "eagle", LLAMA, NULL},
    {"hass-bias", "hass", QWEN3, NULL},
    {"eagle3-official-d2t", "eagle3", LLAMA, LAYERS},
    {"eagle3-official-fullvocab", "eagle3", QWEN3, LAYERS},
    {"eagle3-outputs", "eagle3", LLAMA, NULL},
    {"eagle3-narrow", "eagle3", QWEN3, NULL},
    {"eagle3spec-plain", "eagle3", LLAMA, NULL},
    {"eagle3spec-norm-before-residual", "eagle3", QWEN3, NULL},
    {"eagle3spec-v31", "eagle3", LLAMA, NULL},
    {"eagle3spec-qwen3-mqa", "eagle3", QWEN3, NULL},
    {"eagle3spec-biases", "eagle3", LLAMA, NULL},
    {"eagle3spec-2layers", "eagle3", LLAMA, NULL},
    {"peagle-spec-2layers", "peagle", LLAMA, NULL},
    {"mtp-spec-qwen3", "mtp", QWEN3, NULL},
    {"mtp-untied-bias", "mtp", LLAMA, NULL},
    {"peagle-biases", "peagle", QWEN3, NULL},
    {"peagle-norms", "peagle", LLAMA, NULL},
    {"peagle-vllm-4layers", "peagle", LLAMA, NULL},
    {"medusa-2heads-pt", "medusa", QWEN3, NULL},
    {"medusa-4heads", "medusa", LLAMA, NULL},
    {"medusa-3blocks", "medusa", LLAMA, NULL},
    {"medusa-vllm-map", "medusa", LLAMA, NULL},
    {"medusa-vllm-5heads", "medusa", QWEN3, NULL},
    {"medusa-vllm-one-output", "medusa", QWEN3, NULL},
    {"medusa-blockwise", "medusa", LLAMA, "how many tokens its model has: expected --target"},
    {"hydra-2blocks", "hydra", QWEN3, NULL},
    {"hydra-ungrounded", "hydra", QWEN3, NULL},
    {"hydra-offset", "hydra", LLAMA, NULL},
    {"hydra-prefix", "hydra", LLAMA, "its prefix layer is like the model's layers: expected --target"},
    {"mlp-tied-scaled", "mlp", QWEN3, NULL},
    {"mlp-tied-5", "mlp", LLAMA, NULL},
    {"mlp-untied-narrow", "mlp", QWEN3, NULL},
    {"mlp-arctic-lstm", "mlp", LLAMA, NULL},
    {"mlp-arctic-fused", "mlp", QWEN3, NULL},
    {"mlp-arctic-rnn", "mlp", LLAMA, NULL},
    {"meta-3tokens", "meta-mtp", META, NULL},
    {"dart-d2t", "dart", LLAMA, LAYERS},
    {"dart-7masks", "dart", QWEN3, LAYERS},
    {"dflash-zlab", "dflash", QWEN3, NULL},
    {"dflash-default-ids", "dflash", LLAMA, NULL},
    {"dflashmask-zlab", "dflash", LLAMA, NULL},
    {"dflashwin-zlab", "dflash", LLAMA, NULL},
    {"dflashspec-d2t", "dflash", LLAMA, NULL},
    {"dflashspec-windows", "dflash", LLAMA, NULL},
    {"dflashspec-ahead-anchor", "dflash", LLAMA, NULL},
    {"dspark-vanilla", "dspark", LLAMA, NULL},
    {"dspark-gated", "dspark", LLAMA, NULL},
    {"dspark-rnn", "dspark", LLAMA, NULL},
    {"dspark-windows", "dspark", LLAMA, NULL},
    {"domino-early", "domino", LLAMA, NULL},
    {"dflash2-zlab", "dflash2", LLAMA, NULL},
    {"dflash2spec-windows", "dflash2", LLAMA, NULL},
    {"dflash-deepspec", "dflash", LLAMA, NULL},
    {"dflash-swa-sinks", "dflash", LLAMA, NULL},
    {"dflash-causal", "jetspec", LLAMA, NULL},
    {"dflash-noncausal", "dflash", LLAMA, NULL},
    {"dspark-deepspec", "dspark", LLAMA, NULL},
    {"pard-llama-tied", "pard", LLAMA, NULL},
    {"pard-qwen2-padded", "pard", LLAMA, NULL},
    {"pard-2-qwen3", "pard", QWEN3, "it counts layers from its model's last: expected --target"},
    {"jetspec-official", "jetspec", QWEN3, NULL},
    {"jetspec-automodel", "jetspec", LLAMA, NULL},
    {"falcon-k2", "falcon", LLAMA, NULL},
    {"falcon-k3", "falcon", LLAMA, NULL},
};

static bool equal_files(const char *one, const char *other) {
    bytes a = test_file_read(one), b = test_file_read(other);
    const bool equal = a.size == b.size && !memcmp(a.at, b.at, a.size);
    bytes_free(&a);
    bytes_free(&b);
    return equal;
}

/* README: "A draft head that `hunch convert` wrote drafts the bits of its folder." */
static void test_goldens(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i += light() ? 3 : 1) {
        char folder[600], with[600], without[600];
        hunch_error error = {0};
        snprintf(folder, sizeof folder, "%s/%s/head", HEADS, goldens[i].name);
        snprintf(with, sizeof with, "%s", test_path("with.gguf"));
        snprintf(without, sizeof without, "%s", test_path("without.gguf"));
        must(hunch_convert(folder, with, &(hunch_convert_options){.target = goldens[i].target}, err));
        assert_same_drafts(goldens[i].target, spec_of(goldens[i].kind, folder), spec_of(goldens[i].kind, with));
        if (goldens[i].needs) {
            assert_int_equal(hunch_convert(folder, without, NULL, &error), HUNCH_USAGE);
            assert_non_null(strstr(error.message, goldens[i].needs));
            continue;
        }
        must(hunch_convert(folder, without, NULL, err));
        if (!equal_files(with, without)) fail_msg("%s: converts otherwise without its target", goldens[i].name);
    }
}

/* Configurations that no golden head has: the GGUF file drafts the same bits as the folder. */
static void test_configs(void **state) {
    static const char *const changes[] = {
        "{\"rope_theta\": 12345.6789}",
        "{\"partial_rotary_factor\": 0.5}",
        "{\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 3.3}}",
        "{\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 7.7, \"low_freq_factor\": 1, \"high_freq_factor\": 4,"
        " \"original_max_position_embeddings\": 64}}",
        "{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 3.7, \"original_max_position_embeddings\": 64}}",
        "{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, \"attention_factor\": 1.13}}",
        "{\"rope_scaling\": {\"rope_type\": \"longrope\", \"original_max_position_embeddings\": 64, \"factor\": 8,"
        " \"short_factor\": [1, 1.1, 1.2, 1.3, 1.5, 1.7, 2.1, 2.3], \"long_factor\": [1, 2, 3.1, 4, 5.3, 6, 7.7, 9]}}",
        "{\"rms_norm_eps\": 1.3e-6, \"max_position_embeddings\": 777, \"norm_before_residual\": true, \"norm_output\": true}",
    };
    static const head_form *const forms[] = {&LLAMA_EAGLE, &LLAMA_EAGLE3, &LLAMA_PEAGLE, &LLAMA_MTP, &LLAMA_DART,
                                             &LLAMA_DFLASH, &LLAMA_CLUSTERS};
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            char folder[600], file[600];
            random_head h;
            head_make(&h, forms[k]);
            json_t *change = json_loads(changes[i], 0, NULL);
            assert_int_equal(json_object_update(h.config, change), 0);
            json_decref(change);
            snprintf(folder, sizeof folder, "%s", test_path("folder"));
            snprintf(file, sizeof file, "%s", test_path("head.gguf"));
            head_write(&h, folder);
            head_free(&h);
            hunch_model *m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_F32);
            must(hunch_convert(folder, file, NULL, err));
            if (!same(m, spec_of(head_kind_of(forms[k]), folder), spec_of(head_kind_of(forms[k]), file), ""))
                fail_msg("%s with %s drafts otherwise from a GGUF", head_kind_of(forms[k]), changes[i]);
            snprintf(folder, sizeof folder, "%s/model.safetensors", test_path("folder"));
            must(hunch_convert(folder, file, &(hunch_convert_options){.target = LLAMA}, err)); /* a file of weights */
            assert_true(same(m, spec_of(head_kind_of(forms[k]), folder), file, ",tree=dynamic"));
            hunch_model_close(&m);
        }
}

/* Falcon with blocks of one row: the GGUF says so, although such rows draft as those of a chain do. */
static void test_blocks_of_one(void **state) {
    head_form form = LLAMA_FALCON;
    char folder[600], file[600];
    random_head h;
    (void)state;
    form.falcon = 1;
    head_make(&h, &form);
    snprintf(folder, sizeof folder, "%s", test_path("folder"));
    snprintf(file, sizeof file, "%s", test_path("head.gguf"));
    head_write(&h, folder);
    head_free(&h);
    hunch_model *m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_F32);
    must(hunch_convert(folder, file, NULL, err));
    assert_true(same(m, spec_of("falcon", folder), spec_of("falcon", file), ""));
    hunch_model_close(&m);
}

/* Number of the file's tensors of a type. */
static int tensors_of(const char *path, const char *type) {
    char *text = NULL;
    json_t *t;
    size_t i;
    int n = 0;
    must(hunch_inspect(path, &text, err));
    json_t *all = json_loads(text, 0, NULL);
    json_array_foreach(json_object_get(all, "types"), i, t)
        if (!strcmp(json_string_value(json_object_get(t, "type")), type)) n = (int)json_integer_value(json_object_get(t, "tensors"));
    json_decref(all);
    hunch_free(text);
    return n;
}

/* A quantised file drafts the same as a folder of floats that are packed in the same type, and is never packed in another type. */
static void test_types(void **state) {
    static const char *const types[] = {"q8_0", "q4_0", "bf16", "f32"}, *const names[] = {"Q8_0", "Q4_0", "BF16", "F32"};
    static const hunch_precision precisions[] = {HUNCH_PRECISION_F32, HUNCH_PRECISION_NATIVE};
    size_t uneven = 0; /* heads with rows that are not whole blocks */
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        char folder[600], file[600], one[800], other[800];
        snprintf(folder, sizeof folder, "%s/%s/head", HEADS, goldens[i].name);
        for (size_t k = light() ? i % 4 : 0; k < sizeof types / sizeof *types; k += light() ? 4 : 1) {
            snprintf(file, sizeof file, "%s", test_path("typed.gguf"));
            must(hunch_convert(folder, file, &(hunch_convert_options){.target = goldens[i].target, .type = types[k]}, err));
            const int typed = tensors_of(file, names[k]), halves = tensors_of(file, "BF16");
            assert_true(k == 3 ? typed > 4 && halves == 0 : typed > 1 || (k < 2 && halves > 1)); /* vectors are F32 */
            uneven += k == 0 && halves > 0;
            snprintf(one, sizeof one, "%s:%s,weights=%s", goldens[i].kind, folder, types[k]);
            snprintf(other, sizeof other, "%s,weights=%s", file, types[k < 2 ? 1 - k : k]); /* ignored for a quantised file */
            for (int p = 0; p < 2; p++) {
                hunch_model *m = open_model(goldens[i].target, "best", 1, precisions[p]);
                if (!same(m, one, other, "")) fail_msg("%s drafts otherwise from a file of %s", goldens[i].name, types[k]);
                if (k < 2 && !same(m, one, file, "")) fail_msg("%s: a file of %s alone", goldens[i].name, types[k]);
                hunch_model_close(&m);
            }
        }
    }
    assert_true(light() || (uneven >= 5 && uneven + 5 <= sizeof goldens / sizeof *goldens));
    hunch_error error = {0};
    const hunch_convert_options unknown = {.target = LLAMA, .type = "q5_0"};
    assert_int_equal(hunch_convert(HEADS "/eagle1-bias-bin/head", test_path("no.gguf"), &unknown, &error), HUNCH_USAGE);
    assert_non_null(strstr(error.message, "type q5_0: expected q8_0, q4_0, bf16 or f32"));
    assert_false(test_file_exists(test_path("no.gguf")));
}

static void refused_to_convert(const char *path, const char *target, hunch_status status, const char *says) {
    hunch_error error = {0};
    char file[600];
    snprintf(file, sizeof file, "%s", test_path("refused.gguf"));
    const hunch_status have = hunch_convert(path, file, &(hunch_convert_options){.target = target}, &error);
    if (have != status || !strstr(error.message, says))
        fail_msg("%s: expected %d and \"%s\", got %d and \"%s\"", path, (int)status, says, (int)have, error.message);
    assert_false(test_file_exists(file));
}

static void test_convert_refuses(void **state) {
    char folder[600];
    random_head h;
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_path("bad"));
    refused_to_convert(HEADS "/eagle2-nobias-gqa/head", QWEN3, HUNCH_REFUSED, "expected the target's 80");
    refused_to_convert(HEADS "/eagle3-official-d2t/head", QWEN3, HUNCH_REFUSED, "hidden size 64, and no embedding");
    refused_to_convert(HEADS "/eagle3spec-plain/head", QWEN3, HUNCH_REFUSED, "an embedding of 480 tokens");
    refused_to_convert(HEADS "/eagle3spec-plain/head", "/nowhere", HUNCH_REFUSED, "/nowhere: no such file");
    refused_to_convert(LLAMA, QWEN3, HUNCH_USAGE, "is no draft head, expected one beside --target");
    refused_to_convert("/nowhere", QWEN3, HUNCH_REFUSED, "/nowhere: no such file");
    head_make(&h, &LLAMA_EAGLE);
    json_object_del(h.config, "vocab_size");
    head_write(&h, folder);
    refused_to_convert(folder, NULL, HUNCH_USAGE, "it does not say how many tokens its model has: expected --target");
    json_object_set_new(h.config, "vocab_size", json_integer(480));
    head_drop(&h, "layers.0.mlp.up_proj.weight");
    head_write(&h, folder);
    refused_to_convert(folder, NULL, HUNCH_REFUSED, "tensor layers.0.mlp.up_proj.weight is missing");
    head_free(&h);
    head_make(&h, &LLAMA_EAGLE3);
    head_floats(&h, "", "midlayer.more.weight", 8, 8);
    head_write(&h, folder);
    refused_to_convert(folder, NULL, HUNCH_REFUSED, "tensor midlayer.more.weight: heads of this kind, of 1 layer, have none");
    head_find(&h, "midlayer.more.weight")->name[0] = 'x';
    head_write(&h, folder);
    must(hunch_convert(folder, test_path("good.gguf"), NULL, err));
    refused_to_convert(test_path("good.gguf"), NULL, HUNCH_USAGE, "is a GGUF file, expected a folder");
    json_object_set_new(h.config, "speculators_model_type", json_string("xpress"));
    head_write(&h, folder);
    refused_to_convert(folder, NULL, HUNCH_REFUSED, "a draft head of kind xpress, which has no drafter here");
    head_free(&h);
}

/* ---- files written by others -------------------------------------------------------------------------------------------------- */

static const head_form four = {true, "midlayer.", 64, 4, 2, 256, 480, 160, {2, 4, 5, 1}, 4, 0, .mtp = false};

/* Writes a random head in both formats. more: it has biases and norms of q and k. */
static void write_both_with(tiny *t, const head_form *f, bool more, char folder[600], char file[600]) {
    const int size = f->hidden / f->heads;
    random_head h;
    head_make(&h, f);
    if (more) {
        head_floats(&h, f->layer, "self_attn.q_proj.bias", f->heads * size, 0);
        head_floats(&h, f->layer, "self_attn.k_proj.bias", f->kv_heads * size, 0);
        head_floats(&h, f->layer, "self_attn.v_proj.bias", f->kv_heads * size, 0);
        head_floats(&h, f->layer, "self_attn.q_norm.weight", size, 0);
        head_floats(&h, f->layer, "self_attn.k_norm.weight", size, 0);
    }
    snprintf(folder, 600, "%s", test_path("folder"));
    snprintf(file, 600, "%s", test_path("head.gguf"));
    head_write(&h, folder);
    head_gguf_open(t, &h, f);
    head_gguf_write(t, file);
    head_free(&h);
}

static void write_both(tiny *t, const head_form *f, char folder[600], char file[600]) {
    write_both_with(t, f, false, folder, file);
}

static void test_formats(void **state) {
    static const head_form *const forms[] = {&LLAMA_EAGLE, &LLAMA_EAGLE3, &LLAMA_PEAGLE, &LLAMA_MTP, &four, &LLAMA_DART,
                                             &LLAMA_CLUSTERS};
    (void)state;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        char folder[600], file[600];
        tiny t;
        for (int more = 0; more < (forms[k]->mask_token ? 1 : 2); more++) {
            write_both_with(&t, forms[k], more, folder, file);
            assert_same_drafts(LLAMA, spec_of(head_kind_of(forms[k]), folder), spec_of(head_kind_of(forms[k]), file));
            tiny_close(&t);
        }
    }
}

/* A file with every matrix in Q8_0 drafts the same as a head of floats, which is packed as Q8_0. */
static void test_q8_0(void **state) {
    char folder[600], file[600];
    tiny t;
    (void)state;
    write_both(&t, &LLAMA_EAGLE3, folder, file);
    for (size_t i = 0; i < t.n_tensors; i++) {
        tiny_tensor *x = &t.tensor[i];
        size_t row;
        if (x->n_dims != 2) continue;
        assert_true(hn_dtype_row_bytes(HN_Q8_0, x->dims[0], &row));
        unsigned char *q = calloc(x->dims[1], row);
        hn_quantise(HN_Q8_0, x->data, x->n, q);
        head_gguf_data(x, 8, q, row * x->dims[1]);
        free(q);
    }
    head_gguf_write(&t, file);
    tiny_close(&t);
    hunch_model *m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_NATIVE);
    assert_true(same(m, spec_of("eagle3", folder), file, ""));
    assert_false(same(m, spec_of("eagle3", folder), file, ",weights=f32")); /* ignored for a quantised file */
    hunch_model_close(&m);
}

/* Blocks of 256 values, of random bits, compared with floats of the same values: in f32 their products are the same. */
static void test_q4_k(void **state) {
    static const char *const names[] = {"fc.weight", "blk.0.ffn_down.weight"};
    char folder[600], file[600], floats[600];
    tiny t;
    (void)state;
    write_both(&t, &four, folder, file);
    snprintf(floats, sizeof floats, "%s", test_path("floats.gguf"));
    for (int write = 0; write < 2; write++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            tiny_tensor *x = tiny_tensor_of(&t, names[i]);
            const size_t n = (size_t)(x->dims[0] * x->dims[1]), bytes_all = n / 256 * 144;
            unsigned char *q = calloc(bytes_all, 1);
            float *f = calloc(n, sizeof *f);
            uint64_t seed = 5 + i;
            for (size_t k = 0; k < bytes_all; k++) q[k] = (unsigned char)(hn_splitmix(&seed) >> 40);
            for (size_t k = 0; k < bytes_all; k += 144) memcpy(q + k, "\x00\x10\x00\x14", 4); /* d, dmin: small */
            hn_dequantise(HN_Q4_K, q, n, f);
            head_gguf_data(x, write ? 12 : 0, write ? (void *)q : (void *)f, write ? bytes_all : n * sizeof *f);
            free(q);
            free(f);
        }
        head_gguf_write(&t, write ? file : floats);
    }
    tiny_close(&t);
    hunch_model *m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_F32);
    assert_true(same(m, floats, file, ""));
    hunch_model_close(&m);
    m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_NATIVE);
    drafted d[2];
    draft(d, m, file, ",tree=dynamic");
    hunch_model_close(&m);
}

/* ---- inspect ------------------------------------------------------------------------------------------------------------------ */

static void assert_inspected(const char *path, const char *kind) {
    char *text = NULL;
    must(hunch_inspect(path, &text, err));
    json_t *d = json_loads(text, 0, NULL);
    assert_non_null(d);
    assert_string_equal(json_string_value(json_object_get(d, "head")), kind);
    assert_true(json_is_false(json_object_get(d, "runs")));
    assert_non_null(strstr(json_string_value(json_object_get(d, "refused")), "a draft head of kind "));
    json_decref(d);
    hunch_free(text);
}

static void test_inspect(void **state) {
    char folder[600], file[600], *text = NULL;
    tiny t;
    (void)state;
    write_both(&t, &LLAMA_PEAGLE, folder, file);
    tiny_close(&t);
    assert_inspected(folder, "peagle");
    assert_inspected(file, "peagle");
    assert_inspected(HEADS "/eagle1-bias-bin/head", "eagle");
    must(hunch_inspect(LLAMA, &text, err));
    assert_non_null(strstr(text, "\"head\": null"));
    hunch_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),         cmocka_unit_test(test_configs), cmocka_unit_test(test_types),
        cmocka_unit_test(test_convert_refuses), cmocka_unit_test(test_formats), cmocka_unit_test(test_q8_0),
        cmocka_unit_test(test_q4_k),            cmocka_unit_test(test_inspect), cmocka_unit_test(test_blocks_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
