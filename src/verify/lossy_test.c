/* SPDX-License-Identifier: Apache-2.0 */
/* lossy_test.c - the lossy rules by their definitions, on hand-made distributions; the cost of lenience is a table in
 * rule_acceptance_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "verify/toy_for_tests.h"

enum { V = 4, ROWS = 8 };
static const hunch_sampling warm = {.temperature = 1, .top_p = 1}, cold = {.temperature = 0, .top_p = 1};

/* P by row; logits are its logarithms. A row left out is flat. */
typedef struct rows {
    double p[ROWS][V];
    float logits[V];
    const hn_sampler *reader; /* set by verify */
    const hunch_sampling *asked;
} rows;

static const float *row_logits(void *ctx, int row) {
    rows *r = ctx;
    assert_memory_equal(&r->reader->params, r->asked, offsetof(hunch_sampling, dry_breakers)); /* the request's, at any time */
    for (int i = 0; i < V; i++) r->logits[i] = r->p[row][0] > 0 ? (float)log(r->p[row][i]) : 0;
    return r->logits;
}

static hn_verdict verify(hn_rule rule, double a, double b, const hunch_sampling *params, rows *r, const hn_tree *t) {
    static const int32_t text[] = {0, 3, 0};
    hn_sampler s;
    hn_verifier *w = NULL;
    hn_verdict v;
    hunch_error err = {0};
    assert_int_equal(hn_sampler_init(&s, params, V, NULL), HUNCH_OK);
    assert_int_equal(hn_verifier_open(&w, V, NULL), HUNCH_OK);
    r->reader = &s;
    r->asked = params;
    const hn_verification ver = {.rule = rule,
                                 .a = a,
                                 .b = b,
                                 .sampler = &s,
                                 .committed = {.text = text, .n = 3, .n_prompt = 1},
                                 .rows = {row_logits, NULL, r}};
    if (hn_verify_tree(w, t, &ver, &v, &err)) fail_msg("%s", err.message);
    hn_verifier_close(&w);
    hn_sampler_fini(&s);
    return v;
}

/* True if a single child with this token is accepted. */
static bool accepts(hn_rule rule, double a, double b, const hunch_sampling *params, rows *r, int32_t token) {
    hn_tree t;
    hn_tree_reset(&t, 0, ROWS);
    hn_tree_add(&t, 0, token, 0, .5f);
    const hn_verdict v = verify(rule, a, b, params, r, &t);
    assert_in_range(v.next, 0, V - 1);
    return v.n_accepted == 1;
}

/* P > min(epsilon, alpha e^-H): a sharp distribution requires epsilon, a flat one less. */
static void test_typical(void **state) {
    (void)state;
    rows flat = {.p = {{.25, .25, .25, .25}}}, sharp = {.p = {{.9, .07, .02, .01}}};
    double h = 0;
    for (int i = 0; i < V; i++) h -= sharp.p[0][i] * log(sharp.p[0][i] + 1e-5);
    const double alpha = .1, limit = alpha * exp(-h); /* .068 */
    assert_true(limit > .06 && limit < .07);
    assert_true(accepts(HN_RULE_TYPICAL, .3, alpha, &warm, &sharp, 1));
    assert_false(accepts(HN_RULE_TYPICAL, .3, alpha, &warm, &sharp, 2));
    assert_true(accepts(HN_RULE_TYPICAL, .015, alpha, &warm, &sharp, 2)); /* epsilon is the smaller */
    assert_false(accepts(HN_RULE_TYPICAL, .015, alpha, &warm, &sharp, 3));
    for (int x = 0; x < V; x++) {
        assert_true(accepts(HN_RULE_TYPICAL, .3, .9, &warm, &flat, x));        /* .225 */
        assert_false(accepts(HN_RULE_TYPICAL, .3, 1 - 2e-5, &warm, &flat, x)); /* for the 1e-5 */
    }
}

static void test_top_m(void **state) {
    (void)state;
    rows r = {.p = {{.2, .3, .2, .3}}};
    static const int order[] = {1, 3, 0, 2}; /* ties to the lowest id */
    const hunch_sampling *const both[] = {&warm, &cold};
    for (int temperature = 0; temperature < 2; temperature++)
        for (int m = 1; m <= V; m++)
            for (int i = 0; i < V; i++)
                assert_int_equal(accepts(HN_RULE_TOP_M, m, 0, both[temperature], &r, order[i]), i < m);
    const hunch_sampling narrow = {.temperature = 1, .top_k = 2, .top_p = 1};
    assert_false(accepts(HN_RULE_TOP_M, 4, 0, &narrow, &r, 0)); /* never a token outside the distribution */
    uint64_t rng = 3;
    for (int i = 0; i < 200; i++) { /* in any distribution exactly M are good */
        for (int x = 0; x < V; x++) r.p[0][x] = .1 + (double)(hn_splitmix(&rng) >> 40) * 0x1p-24;
        int good = 0;
        for (int x = 0; x < V; x++) good += accepts(HN_RULE_TOP_M, 1 + i % V, 0, both[i % 2], &r, x);
        assert_int_equal(good, 1 + i % V);
    }
}

/* At temperature 0: at least L times as likely as the best by processed logits, whatever truncation the request has for other
 * temperatures; and the next token is the best of the last row. */
static void test_lenience_at_zero(void **state) {
    (void)state;
    rows r = {.p = {{.1, .5, .3, .1}, {.1, .2, .3, .4}}};
    assert_true(accepts(HN_RULE_LENIENCE, .59, 0, &cold, &r, 2));
    assert_false(accepts(HN_RULE_LENIENCE, .61, 0, &cold, &r, 2));
    assert_true(accepts(HN_RULE_LENIENCE, 1, 0, &cold, &r, 1));
    const hunch_sampling cut = {.temperature = 0, .top_k = 1, .top_p = .1, .min_p = .9};
    assert_true(accepts(HN_RULE_LENIENCE, .59, 0, &cut, &r, 2));
    const hunch_bias bias[] = {{2, log(2)}};
    const hunch_sampling biased = {.temperature = 0, .top_p = 1, .bias = bias, .n_bias = 1};
    assert_false(accepts(HN_RULE_LENIENCE, .9, 0, &biased, &r, 1)); /* .5 against .6 */
    assert_true(accepts(HN_RULE_LENIENCE, .8, 0, &biased, &r, 1));
    hn_tree t;
    hn_tree_reset(&t, 0, ROWS);
    hn_tree_add(&t, 0, 2, 0, .5f);
    const hn_verdict v = verify(HN_RULE_LENIENCE, .5, 0, &cold, &r, &t);
    assert_int_equal(v.n_accepted, 1);
    assert_int_equal(v.next, 3);
}

/*  0 ─ 1(token 0) ─ 3(token 1) ─ 6(token 3)
 *    └ 2(token 1) ─ 4(token 0)
 *                 └ 5(token 2)    */
static void grow(hn_tree *t) {
    hn_tree_reset(t, 0, ROWS);
    const int a = hn_tree_add(t, 0, 0, 0, .5f), b = hn_tree_add(t, 0, 1, 0, .5f);
    const int c = hn_tree_add(t, a, 1, 0, .5f);
    hn_tree_add(t, b, 0, 0, .5f);
    hn_tree_add(t, b, 2, 1, .5f);
    hn_tree_add(t, c, 3, 0, .5f);
}

static void test_longest_path(void **state) {
    (void)state;
    rows r = {.p = {{.4, .4, .1, .1},
                    {.4, .3, .2, .1},
                    {.3, .1, .5, .1},
                    {.7, .1, .1, .1},
                    {1e-9, 1, 1e-9, 1e-9},
                    {1e-9, 1e-9, 1, 1e-9}}};
    hn_tree t;
    grow(&t);
    hn_verdict v = verify(HN_RULE_TOP_M, 4, 0, &warm, &r, &t);
    assert_int_equal(v.n_accepted, 3); /* everything is good: the deepest */
    assert_int_equal(v.path[2], 6);
    v = verify(HN_RULE_TOP_M, 2, 0, &warm, &r, &t); /* row 6 is not: .4 x .3, .4 x .3, .4 x .5 */
    assert_int_equal(v.n_accepted, 2);
    assert_int_equal(v.path[0], 2);
    assert_int_equal(v.path[1], 5);
    assert_int_equal(v.drafter_of[1], 1);
    assert_int_equal(v.next, 2); /* from the distribution after it */
    r.p[2][0] = .29, r.p[2][1] = .41, r.p[2][2] = .2;
    v = verify(HN_RULE_TOP_M, 2, 0, &warm, &r, &t); /* .4 x .3 against .4 x .29 */
    assert_int_equal(v.n_accepted, 2);
    assert_int_equal(v.path[1], 3);
    v = verify(HN_RULE_TOP_M, 1, 0, &warm, &r, &t); /* token 0 of the tie, then nothing */
    assert_int_equal(v.n_accepted, 1);
    assert_int_equal(v.path[0], 1);
}

/* Any tree: drawn and one-hot candidates of several drafters at one row. With L = 1 and candidates of one kind it is the ratio
 * rule. */
static void test_lenience_takes_any_tree(void **state) {
    (void)state;
    rows r = {
        .p = {{.4, .3, .2, .1}, {.25, .25, .25, .25}, {.25, .25, .25, .25}, {.25, .25, .25, .25}, {.1, .2, .3, .4}}};
    const float weight[V] = {1, 1, 1, 5};
    const hn_proposal_dist dist = {V, NULL, weight}, *const q = &dist;
    hunch_sampling p = warm;
    int accepted[2] = {0};
    for (uint64_t seed = 0; seed < 400; seed++)
        for (int l = 0; l < 2; l++) {
            hn_tree t;
            hn_tree_reset(&t, 0, ROWS);
            hn_tree_add_drawn(&t, 0, 3, 0, .5f, q, true);
            hn_tree_add(&t, 0, 0, 1, .5f);
            hn_tree_add_drawn(&t, 0, 2, 0, .5f, q, true);
            hn_tree_add(&t, 1, 1, 1, .5f);
            p.seed = seed;
            const hn_verdict v = verify(HN_RULE_LENIENCE, l ? .25 : 1, 0, &p, &r, &t);
            if (v.n_accepted == 0) assert_int_equal(v.next, 1); /* the only token left */
            accepted[l] += v.n_accepted;
        }
    assert_true(accepted[0] > 200 && accepted[1] > accepted[0] + 100);
}

static void test_lenience_of_one_is_ratio(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        toy y = {.m = {.vocab = 3, .salt = (uint64_t)i},
                 .params = warm,
                 .rule = HN_RULE_LENIENCE,
                 .a = 1,
                 .tokens = 2,
                 .rounds = 2,
                 .first = {.branch = {2, 1}, .without = i & 1, .one_hot = i & 2, .kind = (toy_q)(i % 3)},
                 .second = {.branch = {1}}};
        assert_true(toy_distance(&y) < 1e-12);
        y.a = .5;
        assert_true(toy_distance(&y) > 1e-4); /* it is lossy */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typical),
        cmocka_unit_test(test_top_m),
        cmocka_unit_test(test_lenience_at_zero),
        cmocka_unit_test(test_longest_path),
        cmocka_unit_test(test_lenience_takes_any_tree),
        cmocka_unit_test(test_lenience_of_one_is_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
