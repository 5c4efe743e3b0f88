/* SPDX-License-Identifier: Apache-2.0 */
/* many_texts_test.c - as many texts at once as an engine takes have the bits that each has alone (contract C2): dense, hybrid and window
 * models, mixtures of experts, drafters of every sort, shared prefixes, texts that lose their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "fixture.h"
#include "preempt_for_tests.h"

enum { TEXTS = 256, TOKENS = 12, SHARED = 40, LONGEST = SHARED + 12, CONTEXT = 128, VOCAB = 100 };

static hunch_token prompt[TEXTS][LONGEST];
static hunch_request request[TEXTS];
static answer want[TEXTS];

/* Greedy texts, sampled ones, and some with penalties, whose rows need all logits; of different lengths, so that they end and begin in
 * different rounds. shared: tokens that all begin with. */
static void ask(const hunch_model *m, int shared) {
    for (int i = 0; i < TEXTS; i++) {
        hunch_request *r = &request[i];
        uint64_t seed = 7000 + (uint64_t)i, common = 3;
        hunch_request_defaults(r, m);
        for (int k = 0; k < LONGEST; k++) prompt[i][k] = (hunch_token)(hn_splitmix(k < shared ? &common : &seed) % VOCAB);
        r->prompt = prompt[i];
        r->n_prompt = (size_t)(shared + 1 + i % 11);
        r->max_tokens = TOKENS - i % 3;
        r->ignore_eos = true;
        r->sampling = (hunch_sampling){.temperature = i % 4 == 1 ? 0.8 : 0, .top_p = 1, .seed = (uint64_t)i};
        if (i % 8 == 2) r->sampling.repetition_penalty = 1.3;
    }
}

static hunch_engine *open_for(hunch_model *m, const char *draft, int parallel) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = CONTEXT;
    o.page_rows = 16;
    return open_engine_with(m, draft, o);
}

/* Each text alone. */
static void expect(hunch_model *m) {
    hunch_engine *e = open_for(m, NULL, 1);
    for (int i = 0; i < TEXTS; i++) {
        answer_free(&want[i]);
        run_requests(e, &request[i], 1, i % 16 < 3, &want[i]);
        hunch_engine_forget(e);
    }
    hunch_engine_close(&e);
}

/* As alone. Returns how many rows were restored, and how often texts were preempted. */
static void check_answers(answer *got, const char *what, uint64_t *restored, uint64_t *preempted) {
    *restored = *preempted = 0;
    for (int i = 0; i < TEXTS; i++) {
        assert_same(&want[i], &got[i], what);
        *restored += got[i].restored;
        *preempted += got[i].preempted;
        answer_free(&got[i]);
    }
}

static int most_at_once;
static void note_running(hunch_engine *e) {
    int n = 0;
    for (int i = 0; i < e->parallel; i++) n += e->session[i] != NULL;
    if (n > most_at_once) most_at_once = n;
}

static void check_together(hunch_model *m, const char *draft) {
    static answer got[TEXTS];
    hunch_session *s[TEXTS] = {0};
    uint64_t restored, preempted;
    hunch_engine *e = open_for(m, draft, TEXTS);
    most_at_once = 0;
    for (int i = 0; i < TEXTS; i++) {
        hunch_request r = request[i];
        if (i % 16 < 3) r.on_logits = keep_logits;
        r.on_logits_user = &got[i];
        must(hunch_session_open(&s[i], e, &r, err));
    }
    while (hunch_engine_running(e) > 0) {
        must(hunch_engine_round(e, err));
        note_running(e);
    }
    assert_int_equal(most_at_once, TEXTS);
    for (int i = 0; i < TEXTS; i++) {
        keep_answer(&got[i], s[i]);
        hunch_session_close(&s[i]);
    }
    check_answers(got, draft ? draft : "none", &restored, &preempted);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
}

static void check_model(const char *path, const char *const *drafts, int n) {
    hunch_model *m = open_model(data_path(path), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    ask(m, 0);
    expect(m);
    for (int i = 0; i < n; i++) check_together(m, drafts[i]);
    hunch_model_close(&m);
}

static void test_drafters(void **state) {
    (void)state;
    char self[600];
    snprintf(self, sizeof self, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    const char *const drafts[] = {NULL, "auto", self, "forced,accept=0.7,depth=5,tree=random", "ngram,min=1+suffix",
                                  "recycle+lookahead,window=3,ngram=3,guess=2"};
    check_model("models/stories260K/stories260K.f32.gguf", drafts, 6);
}

static void test_models(void **state) {
    (void)state;
    static const char *const drafts[] = {NULL, "forced,accept=0.7,depth=3"},
                             *const models[] = {"goldens/qwen3_5-dense", "goldens/gemma3_text-local", "goldens/qwen3_next-moe"};
    for (int i = 0; i < (light() ? 1 : 3); i++) check_model(models[i], drafts, 2);
}

static void test_heads(void **state) {
    (void)state;
    static const char *const heads[] = {"eagle:%s/goldens-heads/eagle2-nobias-gqa/head,tree=dynamic,depth=3",
                                        "eagle3:%s/goldens-heads/eagle3-official-d2t/head,depth=3",
                                        "medusa:%s/goldens-heads/medusa-3blocks/head,tree=mc_sim_7b_63",
                                        "mtp:%s/goldens-heads/mtp-untied-bias/head,depth=2", "dspark:%s/goldens-heads/dspark-rnn/head",
                                        "dflash:%s/goldens-heads/dflash-default-ids/head"};
    enum { N = sizeof heads / sizeof *heads };
    char spec[N][600];
    const char *drafts[N];
    for (int i = 0; i < N; i++) {
        snprintf(spec[i], sizeof spec[i], heads[i], HUNCH_TEST_DATA);
        drafts[i] = spec[i];
    }
    check_model("goldens-heads/targets/llama-a", drafts, light() ? 2 : N);
}

/* All begin alike: one computes what they share. Then with places lost every few rounds, so that texts go on from what the index has. */
static void test_prefixes_and_preemption(void **state) {
    (void)state;
    static answer got[TEXTS];
    uint64_t restored, preempted;
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    ask(m, SHARED);
    expect(m);
    for (int lost = 0; lost < 2; lost++) {
        hunch_engine *e = open_for(m, "forced,accept=0.3,depth=3", TEXTS);
        if (lost)
            run_preempted_requests(e, request, TEXTS, got);
        else
            run_requests(e, request, TEXTS, false, got);
        check_answers(got, lost ? "preempted" : "a shared prefix", &restored, &preempted);
        assert_true(restored >= (uint64_t)(TEXTS - 1) * (SHARED / 16 * 16));
        assert_int_equal(preempted > 0, lost);
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drafters), cmocka_unit_test(test_models), cmocka_unit_test(test_heads),
                                       cmocka_unit_test(test_prefixes_and_preemption)};
    return cmocka_run_group_tests(tests, NULL, teardown);
}
