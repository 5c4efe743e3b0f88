/* SPDX-License-Identifier: Apache-2.0 */
/* gemma_long_test.c - Gemma 3 270M, Q4_K_M: a real file with Q4_K, Q5_0, Q6_K and Q8_0, and windows in five of six
 * layers. Scores and greedy texts agree with transformers on the same dequantised weights (tools/make_gemma_golden.py),
 * native precision costs little, and drafting changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "real_model.h"

enum { CONTEXT = 1024, MOST = 800 };

static const char *gemma_path(void) {
    static char path[600];
    return cached_model("HUNCH_GEMMA3", "gemma-3-270m-Q4_K_M.gguf", "scripts/fetch-model.sh gemma3", path);
}

static json_t *golden(void) {
    json_t *g = json_load_file(data_path("goldens/gemma3-270m-q4_k_m.json"), 0, NULL);
    assert_non_null(g);
    return g;
}

static size_t read_ids(const json_t *list, hunch_token *ids) {
    const size_t n = json_array_size(list);
    assert_true(n > 0 && n <= MOST);
    for (size_t i = 0; i < n; i++) ids[i] = (hunch_token)json_integer_value(json_array_get(list, i));
    return n;
}

static hunch_request ask(const hunch_model *m, const hunch_token *prompt, size_t n, int tokens) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = n;
    r.max_tokens = tokens;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    return r;
}

/* Scores every golden text; adds up over all. each: compare text by text. */
static double texts_nll(hunch_engine *e, bool each) {
    static hunch_token ids[MOST];
    json_t *g = golden(), *text;
    double all = 0, scored = 0;
    size_t i;
    json_array_foreach (json_object_get(g, "texts"), i, text) {
        likelihood l = {.ids = ids, .n = read_ids(json_object_get(text, "ids"), ids)};
        const double want = json_real_value(json_object_get(text, "nll_sum"));
        must(hunch_evaluate(e, ids, l.n, likelihood_row, &l, err));
        if (each) {
            print_message("text %zu: %.4f nats over %zu tokens, transformers %.4f\n", i, l.nll, l.scored, want);
            assert_true(fabs(l.nll - want) < 2e-4 * want);
        }
        all += l.nll;
        scored += (double)l.scored;
    }
    json_decref(g);
    return all / scored;
}

static void test_agrees_with_transformers(void **state) {
    (void)state;
    static hunch_token prompt[MOST], want[MOST];
    const char *isa[HN_ISA_COUNT];
    for (int k = levels(isa), v = 1; v < k; v++) { /* ref: the same bits, an hour */
        hunch_model *m = open_model(gemma_path(), isa[v], 2, HUNCH_PRECISION_F32);
        hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
        json_t *g = golden(), *row;
        size_t i;
        texts_nll(e, true);
        json_array_foreach (json_object_get(g, "greedy"), i, row) {
            const size_t n_prompt = read_ids(json_object_get(row, "prompt_ids"), prompt),
                         n = read_ids(json_object_get(row, "ids"), want);
            hunch_request r = ask(m, prompt, n_prompt, (int)n);
            answer a = {0};
            run_requests(e, &r, 1, false, &a);
            assert_int_equal(a.n, n);
            assert_memory_equal(a.token, want, n * sizeof *want);
            answer_free(&a);
        }
        json_decref(g);
        hunch_engine_close(&e);
        hunch_model_close(&m);
    }
}

static void test_native_costs_little(void **state) {
    (void)state;
    double nll[2];
    for (int p = 0; p < 2; p++) {
        hunch_model *m = open_model(gemma_path(), "best", 2, p ? HUNCH_PRECISION_F32 : HUNCH_PRECISION_NATIVE);
        hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
        nll[p] = texts_nll(e, false);
        hunch_engine_close(&e);
        hunch_model_close(&m);
    }
    print_message("perplexity f32 %.4f, native %.4f (%+.3f %%)\n", exp(nll[1]), exp(nll[0]),
                  100 * (exp(nll[0] - nll[1]) - 1));
    assert_true(exp(nll[0] - nll[1]) < 1.005);
}

/* After a prompt that is longer than a window, alone and together. */
static void test_drafting_changes_nothing(void **state) {
    (void)state;
    static const char *const ways[] = {"ngram", "suffix", "auto", "forced,accept=0.7,depth=6",
                                       "forced,accept=0.6,depth=6,tree=random"};
    static hunch_token ids[4][MOST];
    json_t *g = golden(), *text;
    hunch_request r[4];
    size_t n = 0;
    hunch_model *m = open_model(gemma_path(), "best", 2, HUNCH_PRECISION_NATIVE);
    json_array_foreach (json_object_get(g, "texts"), n, text) {
        const size_t len = read_ids(json_object_get(text, "ids"), ids[n]);
        r[n] = ask(m, ids[n], len, 64);
        if (n % 2) r[n].sampling = (hunch_sampling){.temperature = 0.8, .top_k = 40, .top_p = 1, .seed = 3};
    }
    json_decref(g);
    answer want[4] = {{0}};
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
    for (size_t i = 0; i < n; i++) run_requests(e, &r[i], 1, true, &want[i]);
    hunch_engine_close(&e);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int together = 1; together <= 4; together += 3) {
            e = open_engine(m, ways[w], together, together == 1 ? 64 : 24, HUNCH_KV_DEFAULT, 16, CONTEXT);
            answer got[4] = {{0}};
            for (size_t i = 0; i < n; i += (size_t)together) run_requests(e, r + i, together, true, got + i);
            for (size_t i = 0; i < n; i++) {
                assert_same(&want[i], &got[i], ways[w]);
                answer_free(&got[i]);
            }
            hunch_engine_close(&e);
        }
    for (size_t i = 0; i < n; i++) answer_free(&want[i]);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_transformers),
                                       cmocka_unit_test(test_native_costs_little),
                                       cmocka_unit_test(test_drafting_changes_nothing)};
    return gemma_path() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
