/* SPDX-License-Identifier: Apache-2.0 */
/* round_test.c - texts are the same, token for token and logit for logit, with any number of workers: at temperatures 0, 0.7 and 1, under
 * every rule, drafted by a chain or a tree, alone or beside others. The workers draw and verify; each text has its own noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"
#include "random_head.h"

enum { TEXTS = 6, TOKENS = 20, CONTEXT = 128 };
#define STORIES "models/stories260K/stories260K.f32.gguf"

static char model_draft[600], chain_head[600], tree_head[600], fixed_head[600], masks[600], modules[600];

static int setup(void **state) {
    (void)state;
    snprintf(model_draft, sizeof model_draft, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    snprintf(chain_head, sizeof chain_head, "eagle3:%s,depth=3", head_write_form(&STORIES_EAGLE3, test_path("three")));
    snprintf(tree_head, sizeof tree_head, "eagle3:%s,tree=dynamic,topk=3,total=9,depth=3", test_path("three"));
    snprintf(fixed_head, sizeof fixed_head, "eagle3:%s,tree=eagle_mc_sim_7b_63", test_path("three"));
    snprintf(masks, sizeof masks, "peagle:%s,tree=eagle_mc_sim_7b_63", head_write_form(&STORIES_PEAGLE, test_path("masks")));
    snprintf(modules, sizeof modules, "mtp:%s,depth=3", head_write_form(&STORIES_MTP, test_path("mtp")));
    return 0;
}

typedef struct way {
    const char *draft;
    hunch_verify verify;
    hunch_lossy lossy;
} way;

/* Text i: its temperature, and other parameters. */
static hunch_request request_of(const hunch_model *m, int i) {
    static const double temperature[] = {0, .7, 1};
    static hunch_token prompt[TEXTS][16];
    hunch_request r;
    hunch_request_defaults(&r, m);
    for (int k = 0; k < 16; k++) prompt[i][k] = k == 0 ? 1 : (hunch_token)((k * 37 + i * 11) % 11 + 300);
    r.prompt = prompt[i];
    r.n_prompt = (size_t)(5 + 2 * i);
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature[i % 3], .top_p = i < 3 ? 1 : .95, .top_k = i == 4 ? 40 : 0,
                                  .repetition_penalty = i == 5 ? 1.1 : 0, .seed = 10 + (uint64_t)i};
    return r;
}

static void run_way(hunch_model *m, const way *w, int parallel, answer *out) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = CONTEXT;
    o.page_rows = 16;
    o.verify = w->verify;
    o.lossy = w->lossy;
    hunch_engine *e = open_engine_with(m, w->draft, o);
    hunch_request r[TEXTS];
    for (int i = 0; i < TEXTS; i++) r[i] = request_of(m, i);
    for (int i = 0; i < TEXTS; i += parallel) run_requests(e, r + i, parallel, true, out + i);
    hunch_engine_close(&e);
}

/* Returns the accepted drafts. */
static uint64_t check_way(hunch_model *one, hunch_model *three, const way *w) {
    answer want[TEXTS] = {{0}}, together[TEXTS] = {{0}}, workers[TEXTS] = {{0}};
    uint64_t accepted = 0;
    char what[800];
    run_way(one, w, 1, want);
    run_way(one, w, TEXTS, together);
    run_way(three, w, TEXTS, workers);
    for (int i = 0; i < TEXTS; i++) {
        snprintf(what, sizeof what, "draft %s, rule %d, lossy %d, text %d", w->draft ? w->draft : "none", (int)w->verify,
                 (int)w->lossy.rule, i);
        assert_same(&together[i], &workers[i], what);
        assert_int_equal(together[i].accepted, workers[i].accepted);
        /* rows for a tree depend on how many texts there are, and with them what these rules accept: not the law */
        if (w->verify <= HUNCH_VERIFY_MATCH && w->lossy.rule == HUNCH_LOSSLESS) assert_same(&want[i], &workers[i], what);
        accepted += workers[i].accepted;
        answer_free(&want[i]);
        answer_free(&together[i]);
        answer_free(&workers[i]);
    }
    return accepted;
}

static void test_workers(void **state) {
    (void)state;
    const way ways[] = {{NULL, HUNCH_VERIFY_DEFAULT, {0}},
                        {"ngram,min=1+suffix", HUNCH_VERIFY_MATCH, {0}},
                        {"ngram,min=1", HUNCH_VERIFY_RATIO, {0}},
                        {model_draft, HUNCH_VERIFY_MATCH, {0}},
                        {model_draft, HUNCH_VERIFY_RATIO, {0}},
                        {model_draft, HUNCH_VERIFY_BLOCK, {0}},
                        {model_draft, HUNCH_VERIFY_TRAVERSAL, {0}},
                        {chain_head, HUNCH_VERIFY_MATCH, {0}},
                        {chain_head, HUNCH_VERIFY_BLOCK, {0}},
                        {tree_head, HUNCH_VERIFY_MATCH, {0}},
                        {fixed_head, HUNCH_VERIFY_MATCH, {0}},
                        {fixed_head, HUNCH_VERIFY_RATIO, {0}},
                        {fixed_head, HUNCH_VERIFY_TRAVERSAL, {0}},
                        {masks, HUNCH_VERIFY_MATCH, {0}},
                        {masks, HUNCH_VERIFY_TRAVERSAL, {0}},
                        {modules, HUNCH_VERIFY_RATIO, {0}},
                        {model_draft, HUNCH_VERIFY_DEFAULT, {.rule = HUNCH_LOSSY_LENIENCE, .a = .6}},
                        {model_draft, HUNCH_VERIFY_DEFAULT, {.rule = HUNCH_LOSSY_TYPICAL, .a = .3, .b = .1}},
                        {model_draft, HUNCH_VERIFY_DEFAULT, {.rule = HUNCH_LOSSY_TOP_M, .a = 2}}};
    hunch_model *one = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_model *three = open_model(data_path(STORIES), "best", 3, HUNCH_PRECISION_NATIVE);
    uint64_t accepted = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) accepted += check_way(one, three, &ways[i]);
    assert_true(accepted > 100);
    hunch_model_close(&one);
    hunch_model_close(&three);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_workers)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
