/* SPDX-License-Identifier: Apache-2.0 */
/* golden_mtp_test.c - the blocks of multi-token prediction in models' own files, from folders and from the GGUF files
 * of convert: drafts and logits of each round against those of transformers' module; the text is bit for bit that of
 * plain decoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "engine/engine.h"
#include "format/bytes_for_tests.h"
#include "format/gguf_writer.h"
#include "golden/golden.h"

enum { MOST = 8, CONTEXT = 256, TOKENS = 40 };
static const char *const folders[] = {"goldens/qwen3_5-dense", "goldens/qwen3_next-moe", "goldens/qwen3_5_moe-fused",
                                      "goldens/glm4_moe-qknorm", "goldens/glm4_moe-3blocks", "goldens/qwen3_next-odd",
                                      "goldens/deepseek_v3-yarn", "goldens/deepseek_v3-mtp2", "goldens/glm4_moe_lite-base",
                                      "goldens/hy_v3-mtp"};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

typedef struct taken {
    float logits[MOST][1024];
    int vocab;
} taken;

static void take(void *user, int level, const float *logits, int vocab) {
    taken *t = user;
    assert_true(level < MOST && vocab <= 1024);
    t->vocab = vocab;
    memcpy(t->logits[level], logits, (size_t)vocab * sizeof *logits);
}

/* The folder's model, or the GGUF's, at a precision. */
static hunch_model *open_form(const char *folder, bool converted, hunch_precision precision, bool mapped) {
    if (!converted) return open_model_as(data_path(folder), "best", 1, precision, mapped);
    char path[] = "/tmp/hunch-mtp-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    must(hunch_convert(data_path(folder), path, NULL, err));
    hunch_model *m = open_model_as(path, "best", 1, precision, mapped);
    return m;
}

static void close_form(hunch_model *m, bool converted) {
    char path[300];
    snprintf(path, sizeof path, "%s", m->path);
    hunch_model_close(&m);
    if (converted) unlink(path);
}

static json_t *golden_of(const char *folder) {
    char name[200];
    snprintf(name, sizeof name, "%s/golden_mtp.json", folder);
    json_t *g = json_load_file(data_path(name), 0, NULL);
    assert_non_null(g);
    return g;
}

/* The number of levels of a golden. */
static int depth_of(const json_t *g) {
    const size_t n = json_array_size(json_object_get(json_array_get(json_object_get(g, "prompts"), 0), "drafts"));
    assert_true(n >= 4 && n <= MOST);
    return (int)n;
}

static void check_drafts(const hunch_draft_result *r, const json_t *want, const char *what) {
    const json_t *drafts = json_object_get(want, "drafts");
    assert_int_equal(r->root, json_integer_value(json_object_get(want, "next")));
    assert_int_equal(r->n, json_array_size(drafts));
    for (int i = 0; i < r->n; i++)
        if (r->node[i].token != json_integer_value(json_array_get(drafts, (size_t)i)))
            fail_msg("%s: draft %d is %d", what, i, r->node[i].token);
}

static void check_logits(const taken *have, int depth, const golden_tensor *want, const char *what) {
    double square = 0;
    assert_int_equal(want->n, (size_t)depth * (size_t)have->vocab);
    for (size_t i = 0; i < want->n; i++) square += (double)want->data[i] * (double)want->data[i];
    for (int l = 0; l < depth; l++) {
        const double d = largest_difference(have->logits[l], want->data + (size_t)l * want->cols, want->cols);
        if (!(d <= 5e-4 * sqrt(square / (double)want->n))) fail_msg("%s: level %d is off by %g", what, l, d);
    }
}

/* First rounds, and second ones after `rounds` right drafts. */
static void check_first(hunch_engine *e, const char *folder, const json_t *g, hn_source *f) {
    hunch_token ids[CONTEXT];
    char name[40];
    const int depth = depth_of(g);
    for (size_t p = 0; p < 5; p++) {
        const json_t *q = json_array_get(json_object_get(g, "prompts"), p), *rounds;
        const size_t n = ids_of(json_object_get(q, "ids"), ids);
        static taken t, again;
        hunch_draft_result r;
        must(hunch_draft(e, ids, n, depth, -1, NULL, take, &t, &r, err));
        check_drafts(&r, q, folder);
        hunch_free(r.node);
        snprintf(name, sizeof name, "draft_logits.%zu", p);
        if (p >= 2) {
            const golden_tensor want = get_golden(f, name);
            check_logits(&t, depth, &want, folder);
        }
        snprintf(name, sizeof name, "%zu", p);
        rounds = json_object_get(json_object_get(g, "rounds"), name);
        if (rounds) { /* the second round, after the accepted drafts */
            const int right = (int)json_integer_value(json_object_get(json_array_get(rounds, 0), "accepted"));
            must(hunch_draft(e, ids, n, depth, right, NULL, NULL, NULL, &r, err));
            check_drafts(&r, json_array_get(rounds, 1), folder);
            hunch_free(r.node);
        }
        /* none right: as if the text had ended one token later */
        must(hunch_draft(e, ids, n, depth, 0, NULL, take, &t, &r, err));
        hunch_free(r.node);
        ids[n] = (hunch_token)json_integer_value(json_object_get(q, "next"));
        must(hunch_draft(e, ids, n + 1, depth, -1, NULL, take, &again, &r, err));
        hunch_free(r.node);
        assert_memory_equal(t.logits, again.logits, sizeof t.logits);
    }
}

typedef struct trace {
    const json_t *rounds;
    size_t at;
    int last; /* rows after which the text's end cuts drafts */
} trace;

static void follow(void *user, const hunch_round_report *report) {
    trace *t = user;
    const json_t *want = json_array_get(t->rounds, t->at++);
    if (!want || report->context >= t->last) return;
    if (report->context != json_integer_value(json_object_get(want, "n")) ||
        report->accepted != json_integer_value(json_object_get(want, "accepted")))
        fail_msg("round %zu: %d accepted behind %d rows", t->at - 1, report->accepted, report->context);
}

/* Whole texts: the right drafts of each round. */
static void check_rounds(hunch_engine *e, hunch_model *m, const json_t *g) {
    hunch_token ids[CONTEXT];
    for (size_t p = 2; p < 5; p += 2) {
        char name[40];
        snprintf(name, sizeof name, "%zu", p);
        hunch_request r;
        hunch_request_defaults(&r, m);
        r.prompt = ids;
        r.n_prompt = ids_of(json_object_get(json_array_get(json_object_get(g, "prompts"), p), "ids"), ids);
        r.max_tokens = TOKENS;
        r.ignore_eos = true;
        r.sampling = (hunch_sampling){.top_p = 1};
        trace t = {json_object_get(json_object_get(g, "rounds"), name), 0, (int)r.n_prompt + TOKENS - depth_of(g) - 1};
        r.on_round = follow;
        r.on_round_user = &t;
        answer a = {0};
        run_requests(e, &r, 1, false, &a);
        assert_true(t.at > 5 && a.accepted > 5);
        answer_free(&a);
    }
}

static void test_goldens(void **state) {
    (void)state;
    for (int f = 0; f < N_FOLDERS; f++)
        for (int converted = 0; converted < 2; converted++) {
            char name[200];
            json_t *g = golden_of(folders[f]);
            hn_source *tensors = NULL;
            hunch_model *m = open_form(folders[f], converted, HUNCH_PRECISION_F32, false);
            char spec[40];
            snprintf(spec, sizeof spec, "mtp,depth=%d", depth_of(g));
            hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
            snprintf(name, sizeof name, "%s/golden_mtp.safetensors", folders[f]);
            must(hn_source_open_safetensors(&tensors, data_path(name), err));
            check_first(e, folders[f], g, tensors);
            check_rounds(e, m, g);
            hn_source_close(&tensors);
            hunch_engine_close(&e);
            close_form(m, converted);
            json_decref(g);
        }
}

/* README: "By default tokens and logits are the same bits with and without drafting, at temperature 0 and with
 * sampling." */
static void test_texts(void **state) {
    (void)state;
    enum { TEXTS = 5 };
    static const char *const drafts[] = {"mtp", "mtp,depth=7,kv=f32,min_p=0.05", "mtp,depth=4,tree=dynamic,topk=4,total=14",
                                         "mtp,depth=3+forced,accept=0.6,depth=6,tree=random,seed=2", "auto"};
    for (int f = 0; f < N_FOLDERS; f++) {
        uint64_t accepted = 0;
        for (int way = 0; way < 4; way++) {
            const bool converted = way == 1, mapped = way == 3;
            json_t *g = golden_of(folders[f]);
            hunch_model *m = open_form(folders[f], converted, HUNCH_PRECISION_NATIVE, mapped);
            static hunch_token ids[TEXTS][CONTEXT];
            hunch_request r[TEXTS];
            answer want[TEXTS] = {{0}}, got[TEXTS];
            for (int p = 0; p < TEXTS; p++) {
                hunch_request_defaults(&r[p], m);
                r[p].prompt = ids[p];
                r[p].n_prompt = ids_of(json_object_get(json_array_get(json_object_get(g, "prompts"), (size_t)p), "ids"), ids[p]);
                r[p].max_tokens = light() ? 10 : 30;
                r[p].ignore_eos = true;
                r[p].sampling = (hunch_sampling){.temperature = way == 2 ? 0.8 : 0, .top_p = 1, .seed = 7 + (uint64_t)p};
            }
            hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
            for (int p = 0; p < TEXTS; p++) run_requests(e, &r[p], 1, true, &want[p]);
            hunch_engine_close(&e);
            for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
                memset(got, 0, sizeof got);
                e = open_engine(m, drafts[d], d % 2 ? TEXTS : 1, d % 3 ? 64 : 5, HUNCH_KV_DEFAULT, 16, CONTEXT);
                for (int p = 0; p < TEXTS; p += d % 2 ? TEXTS : 1) run_requests(e, &r[p], d % 2 ? TEXTS : 1, true, &got[p]);
                for (int p = 0; p < TEXTS; p++) {
                    assert_same(&want[p], &got[p], drafts[d]);
                    accepted += got[p].accepted;
                    answer_free(&got[p]);
                }
                hunch_engine_close(&e);
            }
            for (int p = 0; p < TEXTS; p++) answer_free(&want[p]);
            close_form(m, converted);
            json_decref(g);
        }
        assert_true(accepted > 0); /* the test did commit paths */
    }
}

/* Tensors of a draft block are not reported as unused; a language model may have tensors of vision beside it. */
static void test_notes(void **state) {
    (void)state;
    for (int f = 0; f < N_FOLDERS; f++)
        for (int converted = 0; converted < 2; converted++) {
            hunch_model *m = open_form(folders[f], converted, HUNCH_PRECISION_NATIVE, false);
            hunch_model_info info;
            hunch_model_get_info(m, &info);
            if (info.n_unused != (f == 0 && !converted ? 2 : 0)) fail_msg("%s: not used: %s", folders[f], info.unused);
            close_form(m, converted);
        }
}

/* The bytes of a vector in a file. */
static unsigned char *vector_in(const bytes *file, const char *path, const char *name, size_t *size) {
    hn_source *s = NULL;
    must(hn_source_open(&s, path, err));
    hn_tensor *t = hn_source_take(s, name);
    assert_non_null(t);
    float values[256];
    assert_true(t->dtype == HN_F32 && t->dims[0] <= 256);
    *size = (size_t)t->dims[0] * sizeof *values;
    must(hn_source_read(s, t, 0, *size, values, err));
    hn_source_close(&s);
    unsigned char *at = memmem(file->at, file->size, values, *size);
    assert_non_null(at);
    return at;
}

static void draft_of(const char *path, taken *t) {
    static const hunch_token text[] = {5, 77, 101, 9, 44, 60};
    hunch_draft_result r;
    hunch_model *m = open_model(path, "best", 1, HUNCH_PRECISION_F32);
    hunch_engine *e = open_engine(m, "mtp,depth=4", 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
    memset(t, 0, sizeof *t);
    must(hunch_draft(e, text, 6, 4, -1, NULL, take, t, &r, err));
    hunch_free(r.node);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* A block in a GGUF without a norm of its own before the output matrix uses the model's. */
static void test_shared_norm(void **state) {
    (void)state;
    static taken own, same, none;
    static const char norm[] = "blk.4.nextn.shared_head_norm.weight";
    const char *path = test_path("norm.gguf");
    must(hunch_convert(data_path(folders[0]), path, NULL, err));
    draft_of(path, &own);
    bytes file = test_file_read(path);
    size_t size;
    const unsigned char *model = vector_in(&file, path, "output_norm.weight", &size);
    memcpy(vector_in(&file, path, norm, &size), model, size);
    test_file_write(path, file.at, file.size);
    draft_of(path, &same);
    *(unsigned char *)memmem(file.at, file.size, norm, sizeof norm - 1) = 'X';
    test_file_write(path, file.at, file.size);
    draft_of(path, &none);
    bytes_free(&file);
    assert_memory_not_equal(own.logits, same.logits, sizeof own.logits);
    assert_memory_equal(same.logits, none.logits, sizeof same.logits);
}

/* The bytes of a file's draft block as a separate file: without the model's layers, as llama.cpp's converter writes it. */
static void write_side(const char *from, const char *to, int layers) {
    bytes file = test_file_read(from);
    for (int i = 0; i < layers; i++) {
        char name[20];
        snprintf(name, sizeof name, "blk.%d.", i);
        for (unsigned char *at; (at = memmem(file.at, file.size, name, strlen(name)));) *at = 'X';
    }
    test_file_write(to, file.at, file.size);
    bytes_free(&file);
}

/* Chains of four, by a model of a folder or of a GGUF. */
static void draft_by(hunch_model *m, const char *spec, taken *t) {
    static const hunch_token text[] = {5, 77, 101, 9, 44, 60};
    hunch_draft_result r;
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
    memset(t, 0, sizeof *t);
    must(hunch_draft(e, text, 6, 4, -1, NULL, take, t, &r, err));
    assert_int_equal(r.n, 4);
    hunch_free(r.node);
    hunch_engine_close(&e);
}

/* A block in a separate file drafts as in the model's, in any form; a block after another number of layers belongs to another model. */
static void test_side_files(void **state) {
    (void)state;
    static taken own, side;
    char path[300], spec[400];
    hunch_error why;
    hunch_engine_options o;
    hunch_engine *e;
    const char *list = spec;
    snprintf(path, sizeof path, "%s", test_path("side.gguf"));
    for (int f = 0; f < N_FOLDERS; f++)
        for (int converted = 0; converted < 2; converted++) {
            hunch_model *m = open_form(folders[f], converted, HUNCH_PRECISION_F32, false);
            must(hunch_convert(data_path(folders[f]), test_path("whole.gguf"), NULL, err));
            write_side(test_path("whole.gguf"), path, m->target.arch.layers);
            draft_by(m, "mtp", &own);
            snprintf(spec, sizeof spec, "mtp:%s", path);
            draft_by(m, spec, &side);
            assert_memory_equal(own.logits, side.logits, sizeof own.logits);
            draft_by(m, path, &side); /* the kind is found */
            assert_memory_equal(own.logits, side.logits, sizeof own.logits);
            close_form(m, converted);
        }
    must(hunch_convert(data_path("goldens/glm4_moe-qknorm"), test_path("whole.gguf"), NULL, err)); /* of four layers, not two */
    write_side(test_path("whole.gguf"), path, 4);
    hunch_model *m = open_model(data_path("goldens/glm4_moe-3blocks"), "best", 1, HUNCH_PRECISION_F32);
    hunch_engine_options_defaults(&o);
    o.drafts = &list;
    o.n_drafts = 1;
    assert_int_equal(hunch_engine_open(&e, m, &o, &why), HUNCH_REFUSED);
    assert_non_null(strstr(why.message, "no tensor blk.2.nextn.eh_proj.weight"));
    hunch_model_close(&m);
}

/* The same with an output of some tokens only, and their ids. */
static void write_side_of_tokens(const char *from, const char *to, const char *block, const int32_t *ids, int n) {
    hn_source *s = NULL;
    hn_gguf_writer *w = NULL;
    const uint64_t some = (uint64_t)n;
    must(hn_source_open(&s, from, err));
    const hn_tensor *output = hn_source_find(s, "output.weight");
    assert_non_null(output);
    const uint64_t shape[] = {output->dims[0], some};
    const size_t row = output->bytes / output->dims[1];
    must(hn_gguf_writer_open(&w, to, err));
    must(hn_gguf_put_str(w, "general.architecture", "qwen35", 6, err));
    must(hn_gguf_declare(w, "output.weight", output->dtype, 2, shape, err));
    must(hn_gguf_declare(w, "d2t", HN_I32, 1, &some, err));
    for (size_t i = 0; i < hn_source_tensor_count(s); i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        if (!strncmp(t->name, block, strlen(block))) must(hn_gguf_declare(w, t->name, t->dtype, t->n_dims, t->dims, err));
    }
    must(hn_gguf_data_begin(w, row * some, err));
    for (int i = 0; i < n; i++) must(hn_gguf_data_piece(w, (const char *)output->data + row * (size_t)ids[i], row, err));
    must(hn_gguf_data(w, ids, some * sizeof *ids, err));
    for (size_t i = 0; i < hn_source_tensor_count(s); i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        if (!strncmp(t->name, block, strlen(block))) must(hn_gguf_data(w, t->data, t->bytes, err));
    }
    must(hn_gguf_writer_finish(&w, err));
    hn_source_close(&s);
}

/* A separate file of a block may draft a part of the tokens, with the whole block's logits, bit for bit. */
static void test_side_tokens(void **state) {
    (void)state;
    enum { SOME = 200 };
    static taken whole, few;
    int32_t ids[SOME];
    bool in[1024] = {false};
    char spec[400], path[300];
    snprintf(path, sizeof path, "%s", test_path("some.gguf"));
    for (int i = 0; i < SOME; i++) in[ids[i] = 5 * i % 512] = true; /* in no order */
    must(hunch_convert(data_path(folders[0]), test_path("whole.gguf"), NULL, err));
    write_side_of_tokens(test_path("whole.gguf"), path, "blk.4.", ids, SOME);
    hunch_model *m = open_model(data_path(folders[0]), "best", 1, HUNCH_PRECISION_F32);
    draft_by(m, "mtp", &whole);
    snprintf(spec, sizeof spec, "mtp:%s", path);
    draft_by(m, spec, &few);
    for (int t = 0; t < few.vocab; t++)
        if (in[t] ? few.logits[0][t] != whole.logits[0][t] : few.logits[0][t] != -INFINITY) fail_msg("token %d", t);
    hunch_model_close(&m);
}

/* vocab=N drafts only the likeliest tokens, with the whole block's logits, bit for bit. */
static void test_trimmed(void **state) {
    (void)state;
    static taken whole, few;
    for (int f = 0; f < N_FOLDERS; f += 3) {
        hunch_model *m = open_form(folders[f], false, HUNCH_PRECISION_F32, false);
        FILE *ids = fopen(test_path("ids.txt"), "w");
        bool in[1024] = {false};
        char spec[400];
        int same = 0;
        assert_non_null(ids);
        const int vocab = m->target.arch.vocab, kept = vocab * 75 / 128;
        for (int i = 0; i < kept; i++) in[7 * i % vocab] = true, fprintf(ids, "%d\n", 7 * i % vocab);
        fclose(ids);
        draft_by(m, "mtp", &whole);
        snprintf(spec, sizeof spec, "mtp,vocab=%d,ids=%s", kept, test_path("ids.txt"));
        draft_by(m, spec, &few);
        for (int t = 0; t < few.vocab; t++) {
            if (in[t] ? few.logits[0][t] != whole.logits[0][t] : few.logits[0][t] != -INFINITY) fail_msg("token %d", t);
            same += in[t];
        }
        assert_int_equal(same, kept);
        close_form(m, false);
    }
}

/* `auto` opens the block in the model's file; requesting one of a model without it is an error. */
static void test_opening(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(folders[0]), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "auto", 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
    bool there = false;
    for (int i = 0; i < hunch_engine_drafters(e); i++) there |= !strncmp(hunch_engine_drafter_name(e, i), "mtp", 3);
    assert_true(there);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    m = open_model(data_path("goldens/llama-gqa"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine_options o;
    hunch_error err;
    const char *spec = "mtp";
    hunch_engine_options_defaults(&o);
    o.drafts = &spec;
    o.n_drafts = 1;
    assert_int_equal(hunch_engine_open(&e, m, &o, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "holds no block of multi-token prediction"));
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_goldens),     cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_opening),     cmocka_unit_test(test_notes),
                                       cmocka_unit_test(test_shared_norm), cmocka_unit_test(test_side_tokens),
                                       cmocka_unit_test(test_side_files),  cmocka_unit_test(test_trimmed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
