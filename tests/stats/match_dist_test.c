/* SPDX-License-Identifier: Apache-2.0 */
/* match_dist_test.c - sampling with drafts, through the real engine on a real tiny model: the joint distribution of the first
 * tokens equals the model's own, enumerated, with processors that look at earlier tokens too; the same seed gives the same
 * text with and without drafting; and a verifier or a history that is wrong on purpose is found by the same statistic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "fixture.h"
#include "dist.h"
#include "sample/chi_square.h"

enum { TOKENS = 3, TOP = 3, CONTEXT = 64 };

/* Four tokens that occur often, so that a row's distribution depends on the path before it. */
static const hunch_bias bias[] = {{261, 12}, {378, 12}, {407, 12}, {286, 12}, {403, -INFINITY}};
static const char *const breakers[] = {"nothing like this is in a vocabulary"};
static dist plain_dist = {.prompt = {1, 403, 407, 261, 378},
                        .n_prompt = 5,
                        .top = TOP,
                        .tokens = TOKENS,
                        .params = {.temperature = 1.3, .top_p = 1}},
           /* Processors that read earlier tokens: each row must see its own path, and no other. */
    history_dist = {.prompt = {1, 403, 407, 261, 378},
                   .n_prompt = 5,
                   .top = TOP,
                   .tokens = TOKENS,
                   .params = {.temperature = 1.3,
                              .top_p = 1,
                              .bias = bias,
                              .n_bias = 5,
                              .repetition_penalty = 1.2,
                              .presence_penalty = .7,
                              .frequency_penalty = .5,
                              .dry_multiplier = .6,
                              .dry_allowed_length = 1,
                              .dry_breakers = breakers,
                              .n_dry_breakers = 1}};

static hunch_model *model;

static hunch_engine *open_plain(void) {
    return open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
}

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_plain();
    dist_enumerate(&plain_dist, e, model);
    dist_enumerate(&history_dist, e, model);
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

/* An answer of TOKENS + 3 tokens. */
static answer answer_of(hunch_engine *e, const hunch_sampling *params, uint64_t seed) {
    answer a = {0};
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = plain_dist.prompt;
    r.n_prompt = (size_t)plain_dist.n_prompt;
    r.max_tokens = TOKENS + 3;
    r.ignore_eos = true;
    r.sampling = *params;
    r.sampling.seed = seed;
    run_requests(e, &r, 1, false, &a);
    return a;
}

/* Answers by seed; every `compare`-th is compared with plain decoding's: a seed means the same text. Returns the number of
 * accepted candidates. count may be NULL. */
static uint64_t sample_engine(const char *draft, const hunch_sampling *params, const dist *l, int n, int compare,
                              long *count) {
    hunch_engine *e = open_engine(model, draft, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT), *plain = open_plain();
    uint64_t accepted = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t seed = (uint64_t)i * 7919 + 17;
        answer a = answer_of(e, params, seed);
        if (i % compare == 0) {
            answer b = answer_of(plain, params, seed);
            assert_same(&b, &a, draft ? draft : "none");
            answer_free(&b);
        }
        if (count) count[dist_cell(l, a.token)]++;
        accepted += a.accepted;
        answer_free(&a);
    }
    hunch_engine_close(&e);
    hunch_engine_close(&plain);
    return accepted;
}

static void check_dist(const char *draft, const dist *l) {
    long count[DIST_CELLS] = {0};
    const int n = light() ? 400 : 2000;
    const uint64_t accepted = sample_engine(draft, &l->params, l, n, 16, count);
    if (draft) assert_true(accepted > (uint64_t)n / 4);
    if (!chi_square_fits(count, l->p, l->cells, n)) fail_msg("%s: another distribution", draft ? draft : "none");
}

static void test_plain(void **state) {
    (void)state;
    check_dist(NULL, &plain_dist);
}
static void test_chain(void **state) {
    (void)state;
    check_dist("forced,accept=0.6,depth=4,seed=5", &plain_dist);
}
static void test_tree(void **state) {
    (void)state;
    check_dist("forced,accept=0.5,depth=4,tree=random,seed=6", &plain_dist);
}
static void test_wide(void **state) {
    (void)state;
    check_dist("forced,accept=0.7,depth=3,width=3,seed=7", &plain_dist);
}
static void test_history_plain(void **state) {
    (void)state;
    check_dist(NULL, &history_dist);
}
static void test_history_chain(void **state) {
    (void)state;
    check_dist("forced,accept=0.6,depth=4,seed=8", &history_dist);
}
static void test_history_tree(void **state) {
    (void)state;
    check_dist("forced,accept=0.5,depth=4,tree=random,seed=9", &history_dist);
}

/* XTC's random number and every cut: their distribution is not enumerated here, but the text is the same with drafts as without. */
/* README: "By default a seed gives one text, whichever drafter is used." */
static void test_every_processor(void **state) {
    (void)state;
    hunch_sampling q = history_dist.params;
    q.top_k = 60;
    q.top_p = .98;
    q.min_p = .005;
    q.typical_p = .99;
    q.top_n_sigma = 3;
    q.xtc_probability = .5;
    q.xtc_threshold = .1;
    const int n = light() ? 40 : 200;
    assert_true(sample_engine("forced,accept=0.6,depth=4,width=2,seed=10", &q, NULL, n, 1, NULL) > (uint64_t)n / 4);
}

/* ---- mistakes are found ----------------------------------------------------------------------------------------- */

static int pick(const dist_node *b, uint64_t *rng) {
    double u = (double)(hn_splitmix(rng) >> 11) * 0x1p-53;
    int i = 0;
    for (; i < TOP - 1 && u >= b->p[i]; i++) u -= b->p[i];
    return i;
}

/* A verifier that accepts the draft whenever the target's probability is high enough: a common mistake, which is biased. */
static int wrong_pick(const dist_node *b, uint64_t *rng) {
    const int draft = (int)(hn_splitmix(rng) % TOP);
    return b->p[draft] > 0.25 ? draft : pick(b, rng);
}

/* One text drawn from the distribution's tree. */
static void draw_text(const dist *l, int (*choose)(const dist_node *, uint64_t *), uint64_t *rng, hunch_token *text) {
    for (int i = 0, node = 0; i < TOKENS; i++) {
        const int k = choose(&l->node[node], rng);
        text[i] = l->node[node].token[k];
        node = node * TOP + k + 1;
    }
}

/* Do texts that are drawn by `choose` from one distribution follow another? */
static bool passes(const dist *drawn, int (*choose)(const dist_node *, uint64_t *), const dist *want) {
    enum { DRAWS = 5000 };
    long count[DIST_CELLS] = {0};
    uint64_t rng = 99;
    for (int i = 0; i < DRAWS; i++) {
        hunch_token text[TOKENS];
        draw_text(drawn, choose, &rng, text);
        const int cell = dist_find(want, text);
        if (cell < 0) return false;
        count[cell]++;
    }
    return chi_square_fits(count, want->p, want->cells, DRAWS);
}

/* README: "The tests of these distributions detect a verifier or drafter that is wrong on purpose." */
static void test_wrong_verifier_is_rejected(void **state) {
    (void)state;
    assert_true(passes(&plain_dist, pick, &plain_dist)); /* the test itself passes without a mistake */
    assert_false(passes(&plain_dist, wrong_pick, &plain_dist));
}

/* Rows whose processors see only the committed text, and rows that see one drafted token too few. */
static void test_wrong_histories_are_rejected(void **state) {
    (void)state;
    hunch_engine *e = open_plain();
    assert_true(passes(&history_dist, pick, &history_dist));
    static const int unseen[] = {TOKENS, 1};
    for (int i = 0; i < 2; i++) {
        dist wrong = history_dist;
        wrong.unseen = unseen[i];
        dist_enumerate(&wrong, e, model);
        if (passes(&wrong, pick, &history_dist)) fail_msg("histories without %d tokens pass", unseen[i]);
    }
    hunch_engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_history_plain),
        cmocka_unit_test(test_history_chain),
        cmocka_unit_test(test_history_tree),
        cmocka_unit_test(test_every_processor),
        cmocka_unit_test(test_wrong_verifier_is_rejected),
        cmocka_unit_test(test_wrong_histories_are_rejected),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
