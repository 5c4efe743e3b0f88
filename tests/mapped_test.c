/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_test.c - models whose matrices stay in the file (hunch_model_options.mapped): tokens and logits bit for bit those of
 * the packed model, for GGUF files and folders, at every level, with one thread and two. One matrix of each type:
 * check/check_stored_test.c. How much memory it takes: memory_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "goldens.h"

static void answer_of(hunch_model *m, const char *draft, answer *out) {
    static const hunch_token prompt[] = {1, 5, 9, 3, 12, 5, 9, 3, 20, 7, 5, 9};
    hunch_engine *e = open_engine(m, draft, 1, 5, HUNCH_KV_DEFAULT, 16, 48);
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = 10;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    run_requests(e, &r, 1, true, out);
    hunch_engine_close(&e);
}

static void check_model(const char *name, const char *isa, int threads, hunch_precision precision) {
    char what[300];
    answer want = {0}, got = {0};
    hunch_model_info info;
    hunch_model *m = open_model(data_path(name), isa, threads, precision);
    answer_of(m, NULL, &want);
    hunch_model_get_info(m, &info);
    assert_int_equal(info.mapped_bytes, 0);
    const uint64_t packed = info.memory_bytes;
    hunch_model_close(&m);
    m = open_model_as(data_path(name), isa, threads, precision, true);
    hunch_model_get_info(m, &info);
    assert_true(info.mapped_bytes > 0 && info.memory_bytes < packed);
    for (int i = 0; i < 2; i++) {
        snprintf(what, sizeof what, "%s mapped, %s, %d threads, precision %d, draft %d", name, isa, threads, precision, i);
        answer_of(m, i ? "ngram" : NULL, &got);
        assert_same(&want, &got, what);
        answer_free(&got);
    }
    answer_free(&want);
    hunch_model_close(&m);
}

/* Those whose tensors may stay in their files: experts that a folder has by columns, and packed integers, may not. */
static int mappable(int n, char path[MOST_GOLDENS][GOLDEN_NAME]) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        hunch_model_options o;
        hunch_model *m = NULL;
        hunch_error error = {0};
        hunch_model_options_defaults(&o);
        o.mapped = true;
        const hunch_status st = hunch_model_open(&m, data_path(path[i]), &o, &error);
        if (st && !strstr(error.message, "cannot stay in the file")) fail_msg("%s: %s", path[i], error.message);
        if (!st) memmove(path[kept++], path[i], GOLDEN_NAME);
        hunch_model_close(&m);
    }
    return kept;
}

/* README: "`--mapped` gives the same bits as weights in memory." */
static void test_same_bits(void **state) {
    (void)state;
    char models[MOST_GOLDENS][GOLDEN_NAME];
    int all = mappable(golden_apart(golden_any, UINT64_MAX, models), models);
    assert_true(all + 3 <= MOST_GOLDENS);
    snprintf(models[all++], GOLDEN_NAME, "models/stories260K/stories260K.f16.gguf");
    snprintf(models[all++], GOLDEN_NAME, "models/babyllama105/babyllama105.q8_0.gguf");
    snprintf(models[all++], GOLDEN_NAME, "goldens/qwen3-fp8");
    const char *isa[HN_ISA_COUNT];
    const int n = levels(isa);
    for (int i = 0; i < all; i++)
        for (int k = 0; k < n; k++)
            for (int threads = 1; threads <= 2; threads++) {
                /* lightly: the best level and one other, each with one or two threads */
                if (light() && ((k < n - 1 && k != i % n) || threads % 2 != (i + k) % 2)) continue;
                check_model(models[i], isa[k], threads, HUNCH_PRECISION_NATIVE);
                if (!light()) check_model(models[i], isa[k], threads, HUNCH_PRECISION_F32);
            }
}

/* Experts in the file, the rest in memory. */
static void test_experts_alone(void **state) {
    (void)state;
    char models[MOST_GOLDENS][GOLDEN_NAME];
    const int n = mappable(golden_apart(golden_experts, UINT64_MAX, models), models);
    for (int i = 0; i < n; i++) {
        hunch_model_options o;
        hunch_model_info packed, all, info;
        hunch_model *m = open_model_as(data_path(models[i]), "best", 2, HUNCH_PRECISION_NATIVE, false);
        answer want = {0};
        hunch_model_get_info(m, &packed);
        answer_of(m, NULL, &want);
        hunch_model_close(&m);
        m = open_model_as(data_path(models[i]), "best", 2, HUNCH_PRECISION_NATIVE, true);
        hunch_model_get_info(m, &all);
        hunch_model_close(&m);
        hunch_model_options_defaults(&o);
        o.threads = 2;
        o.mapped_experts = true;
        must(hunch_model_open(&m, data_path(models[i]), &o, err));
        hunch_model_get_info(m, &info);
        assert_true(info.mapped_bytes > 0 && info.mapped_bytes < all.mapped_bytes);
        assert_true(info.memory_bytes > all.memory_bytes && info.memory_bytes < packed.memory_bytes);
        for (int d = 0; d < 2; d++) {
            answer got = {0};
            answer_of(m, d ? "ngram" : NULL, &got);
            assert_same(&want, &got, models[i]);
            answer_free(&got);
        }
        answer_free(&want);
        hunch_model_close(&m);
    }
}

/* Whether hunch inspect tells what the experts take in the file. */
static bool experts_told(const char *path) {
    char *text = NULL;
    must(hunch_inspect(path, &text, err));
    const bool told = strstr(text, "\"expert_bytes\"") != NULL;
    hunch_free(text);
    return told;
}

/* Rows of a matrix that is stored by columns are nowhere in the file; a GGUF has them. */
static void test_stored_by_columns(void **state) {
    (void)state;
    char path[] = "/tmp/hunch-mapped-XXXXXX";
    for (int i = 0; i < 2; i++) {
        hunch_model_options o;
        hunch_model *m = NULL;
        hunch_error error = {0};
        hunch_model_options_defaults(&o);
        o.mapped = i;
        o.mapped_experts = !i;
        assert_int_equal(hunch_model_open(&m, data_path("goldens/gpt_oss-bf16"), &o, &error), HUNCH_REFUSED);
        assert_non_null(strstr(error.message, "model.layers.0.mlp.experts.gate_up_proj is stored by columns"));
    }
    assert_false(experts_told(data_path("goldens/gpt_oss-bf16")));
    assert_true(experts_told(data_path("goldens/gpt_oss-mxfp4")));
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    must(hunch_convert(data_path("goldens/gpt_oss-bf16"), path, NULL, err));
    answer want = {0}, got = {0};
    for (int i = 0; i < 2; i++) {
        hunch_model *m = open_model_as(path, "best", 1, HUNCH_PRECISION_NATIVE, i);
        answer_of(m, NULL, i ? &got : &want);
        hunch_model_close(&m);
    }
    assert_same(&want, &got, "a converted folder, mapped");
    answer_free(&want);
    answer_free(&got);
    unlink(path);
}

/* Text comes from what was read before the source was trimmed. */
static void test_text(void **state) {
    (void)state;
    static const char *const models[] = {"models/stories260K/stories260K.f16.gguf", "models/stories260K/hf"};
    for (size_t i = 0; i < 2; i++) {
        hunch_model *m = open_model_as(data_path(models[i]), "best", 1, HUNCH_PRECISION_NATIVE, true);
        hunch_token *ids;
        char *text;
        size_t n, len;
        must(hunch_tokenize(m, "Once upon a time", 16, 0, &ids, &n, err));
        must(hunch_detokenize(m, ids, n, &text, &len, err));
        assert_memory_equal(text, "Once upon a time", 16);
        hunch_free(ids);
        hunch_free(text);
        hunch_model_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_experts_alone),
                                       cmocka_unit_test(test_stored_by_columns), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
