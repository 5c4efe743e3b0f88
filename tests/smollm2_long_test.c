/* SPDX-License-Identifier: Apache-2.0 */
/* smollm2_long_test.c - the full product on a real chat model: every level, drafter, chunk, thread and batch size; and what
 * native precision costs in perplexity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "smollm2.h"

static void test_full_product(void **state) {
    (void)state;
    static const char *const drafts[] = {"ngram", "forced,accept=0.7,depth=6", "forced,accept=0.6,depth=6,tree=random",
                                         "forced,accept=0.8,depth=4,width=3"};
    static const int chunks[] = {1, 3, 64};
    static way ways[4 * 3 * 2 * 2 * 2];
    const char *isa[HN_ISA_COUNT];
    int n = 0;
    for (int d = 0; d < 4; d++)
        for (int c = 0; c < 3; c++)
            for (int parallel = 1; parallel <= 8; parallel += 7)
                for (int threads = 1; threads <= 2; threads++)
                    for (int t = 0; t < 2; t++) ways[n++] = (way){drafts[d], parallel, chunks[c], threads, t ? 0.8 : 0};
    for (int k = levels(isa), i = 0; i < k; i++)
        smollm2_check(smollm2_path(), isa[i], ways, n,
                      i == 0 ? 8 : 64); /* ref is slow and the same code at any length */
}

/* Mean log-likelihood of the real stories that came with the tiny models. */
static double story_nll(hunch_precision precision) {
    static char line[1 << 18];
    hunch_model *m = open_model(smollm2_path(), "best", 2, precision);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 1024);
    likelihood all = {0};
    FILE *f = fopen(data_path("models/stories260K/nll.jsonl"), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *row = json_loads(line, 0, NULL);
        const char *text = json_string_value(json_object_get(row, "text"));
        hunch_token *ids = NULL;
        likelihood l = {0};
        assert_non_null(text);
        must(hunch_tokenize(m, text, strlen(text), 0, &ids, &l.n, err));
        l.ids = ids;
        must(hunch_evaluate(e, ids, l.n, likelihood_row, &l, err));
        all.nll += l.nll;
        all.scored += l.scored;
        hunch_free(ids);
        json_decref(row);
    }
    fclose(f);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    assert_true(all.scored > 700);
    return all.nll / (double)all.scored;
}

static void test_native_costs_little(void **state) {
    (void)state;
    const double native = story_nll(HUNCH_PRECISION_NATIVE), f32 = story_nll(HUNCH_PRECISION_F32);
    print_message("perplexity f32 %.4f, native %.4f (%+.3f %%)\n", exp(f32), exp(native),
                  100 * (exp(native - f32) - 1));
    assert_true(exp(native - f32) < 1.005);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_native_costs_little), cmocka_unit_test(test_full_product)};
    return smollm2_path() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
