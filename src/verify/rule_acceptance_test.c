/* SPDX-License-Identifier: Apache-2.0 */
/* rule_acceptance_test.c - the acceptance of each rule: the tables of expected acceptance (verification.md 2, 5, 6, 7, 10) by
 * enumeration of the real code, their identities (T6), and the extremes (T5). The distribution of the emitted tokens:
 * exact_dist_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verify/toy_for_tests.h"

static const hunch_sampling warm = {.temperature = 1, .top_p = 1};

/* Logits are float32 logarithms of the tables' distributions. */
static void near(const char *what, double got, double want) {
    if (!(fabs(got - want) < 2e-6)) fail_msg("%s: %.8f, expected %.8f", what, got, want);
}

/* One round of a fixed P and Q. */
static toy fixed(hn_rule rule, int vocab, const double *p, const double *q) {
    return (toy){
        .m = {.vocab = vocab, .same = p}, .params = warm, .rule = rule, .tokens = 1, .rounds = 1, .first = {.same = q}};
}

static double accepted_by_chain(hn_rule rule, const double *p, const double *q, int depth) {
    toy y = fixed(rule, 2, p, q);
    for (int i = 0; i < depth; i++) y.first.branch[i] = 1;
    assert_true(toy_distance(&y) < 1e-12);
    return y.accepted;
}

static void test_chains(void **state) {
    (void)state;
    const double p[] = {1. / 3, 2. / 3}, q[] = {2. / 3, 1. / 3};
    const double ratio[] = {2. / 3, 10. / 9, 38. / 27, 130. / 81, 422. / 243},
                 block[] = {2. / 3, 11. / 9, 5. / 3, 166. / 81, 64. / 27};
    for (int k = 1; k <= 5; k++) {
        near("ratio", accepted_by_chain(HN_RULE_RATIO, p, q, k), ratio[k - 1]);
        near("block", accepted_by_chain(HN_RULE_BLOCK, p, q, k), block[k - 1]);
        near("traversal", accepted_by_chain(HN_RULE_TRAVERSAL, p, q, k), block[k - 1]);
    }
}

/* Chance that one of k candidates is accepted. */
static double accepted_of(hn_rule rule, int vocab, const double *p, const double *q, int k, bool without,
                          bool one_hot) {
    toy y = fixed(rule, vocab, p, q);
    y.first.branch[0] = k;
    y.first.without = without;
    y.first.one_hot = one_hot;
    assert_true(toy_distance(&y) < 1e-12);
    return y.first_accepted;
}

typedef struct several {
    double q[5];
    int k;
    double with, without, points; /* points < 0: not in the table */
} several;

static void check_several(int vocab, const double *p, const several *row) {
    static const hn_rule rules[] = {HN_RULE_RATIO, HN_RULE_TRAVERSAL}; /* at one level they are the same */
    for (int r = 0; r < 2; r++) {
        near("with", accepted_of(rules[r], vocab, p, row->q, row->k, false, false), row->with);
        near("without", accepted_of(rules[r], vocab, p, row->q, row->k, true, false), row->without);
    }
    if (row->points < 0) return;
    near("one-hot, ratio", accepted_of(HN_RULE_RATIO, vocab, p, row->q, row->k, false, true), row->points);
    near("one-hot, match", accepted_of(HN_RULE_MATCH, vocab, p, row->q, row->k, false, true), row->points);
}

static void test_several_candidates(void **state) {
    (void)state;
    const double p3[] = {.5, .3, .2}, p5[] = {6. / 20, 5. / 20, 4. / 20, 3. / 20, 2. / 20};
    const several three[] = {{{.2, .2, .6}, 1, .6, .6, .2},       {{.2, .2, .6}, 2, .76, .9, .7},
                             {{.2, .2, .6}, 3, .828, 1, 1},       {{.6, .2, .2}, 1, .9, .9, .5},
                             {{.6, .2, .2}, 2, .92, .95, .8},     {{.6, .2, .2}, 3, .936, 1, 1},
                             {{.7, .2, .1}, 2, .86, 29. / 30, .8}};
    const several five[] = {{{.5, .05, .05, .2, .2}, 2, 137. / 200, 567. / 800, -1},
                            {{.5, .05, .05, .2, .2}, 3, 1433. / 2000, 1919. / 2400, -1}};
    for (size_t i = 0; i < sizeof three / sizeof *three; i++) check_several(3, p3, &three[i]);
    for (size_t i = 0; i < sizeof five / sizeof *five; i++) check_several(5, p5, &five[i]);
}

static void test_lenience(void **state) {
    (void)state;
    static const double p[] = {.5, .3, .2}, q[] = {.2, .2, .6};
    static const struct {
        double l, accepted, out[3];
    } rows[] = {{1, .6, {.5, .3, .2}}, {.8, .65, {.447916667, .302083333, .25}}, {.5, .8, {1. / 3, .8 / 3, .4}}};
    for (int i = 0; i < 3; i++) {
        toy y = fixed(HN_RULE_LENIENCE, 3, p, q);
        double joint[TOY_CELLS];
        y.first.branch[0] = 1;
        y.a = rows[i].l;
        toy_joint(&y, joint);
        near("lenience", y.accepted, rows[i].accepted);
        for (int x = 0; x < 3; x++) near("what lenience says", joint[x], rows[i].out[x]);
    }
}

/* P of the first token, by the sampler. */
static void first_dist(const toy *y, double *p) {
    toy one = *y;
    one.tokens = 1;
    toy_product(&one, p);
}

static double kept(const double *p, const float *q, int vocab) {
    double sum = 0, both = 0;
    for (int i = 0; i < vocab; i++) sum += (double)q[i];
    for (int i = 0; i < vocab; i++) both += fmin(p[i], (double)q[i] / sum);
    return both;
}

/* The first position is accepted as often as P and Q overlap; block and traversal accept no less than the top-down rule, and
 * are one rule on a chain. */
static void test_identities(void **state) {
    (void)state;
    int better = 0;
    for (int i = 0; i < 12; i++) {
        toy y = {.m = {.vocab = 2 + i % 3, .salt = (uint64_t)i},
                 .params = warm,
                 .rule = HN_RULE_RATIO,
                 .tokens = 1,
                 .rounds = 1,
                 .first = {.branch = {1, 1}, .kind = (toy_q)(i % 4)}};
        double p[TOY_CELLS];
        assert_true(toy_distance(&y) < 1e-12);
        first_dist(&y, p);
        assert_true(fabs(y.first_accepted - kept(p, y.first.q[0], y.m.vocab)) < 1e-12);
        toy block = y, traversal = y, up = y, down = y;
        block.rule = HN_RULE_BLOCK;
        traversal.rule = up.rule = HN_RULE_TRAVERSAL;
        up.first.branch[1] = down.first.branch[1] = 2;
        up.first.without = down.first.without = i % 2;
        assert_true(toy_distance(&block) < 1e-12 && toy_distance(&traversal) < 1e-12);
        assert_true(toy_distance(&up) < 1e-12 && toy_distance(&down) < 1e-12);
        assert_true(fabs(block.accepted - traversal.accepted) < 1e-12 && block.accepted > y.accepted - 1e-12);
        assert_true(up.accepted > down.accepted - 1e-12);
        better += block.accepted > y.accepted + 1e-3 && up.accepted > down.accepted + 1e-3;
    }
    assert_true(better > 2);
}

static const hn_rule drawn_rules[] = {HN_RULE_RATIO, HN_RULE_BLOCK, HN_RULE_TRAVERSAL};

static void test_extremes(void **state) {
    (void)state;
    static const double half[] = {.5, .5, 0}, third[] = {0, 0, 1};
    static const double scales[] = {1e-30, 1e30};
    for (int r = 0; r < 3; r++) {
        toy same = {.m = {.vocab = 3, .salt = 4},
                    .params = warm,
                    .rule = drawn_rules[r],
                    .tokens = 3,
                    .rounds = 2,
                    .first = {.branch = {1, 1, 1}, .kind = TOY_Q_TARGET}};
        assert_true(toy_distance(&same) < 1e-12);
        assert_true(same.accepted > 3 - 1e-12); /* all, always */
        for (int i = 0; i < 2; i++) {           /* weights of any sum */
            toy scaled = same;
            scaled.first.kind = TOY_Q_CONTEXT;
            const double off = toy_distance(&scaled), accepted = scaled.accepted;
            scaled.first.scale = scales[i];
            assert_true(off < 1e-12 && toy_distance(&scaled) < 1e-12);
            assert_true(fabs(accepted - scaled.accepted) < 1e-6);
        }
        toy disjoint = fixed(drawn_rules[r], 3, half, third);
        disjoint.first.branch[0] = disjoint.first.branch[1] = 1;
        assert_true(toy_distance(&disjoint) < 1e-12);
        assert_true(disjoint.accepted == 0);
    }
}

/* A candidate outside its distribution, or of an invalid distribution, is rejected; its own estimate is never used. */
static void test_broken_dists(void **state) {
    (void)state;
    static const double p[] = {.5, .25, .25};
    static const float weights[][3] = {{0, 0, 0}, {NAN, 1, 1}, {1, 1, 0}, {INFINITY, 1, 1}};
    static const int32_t two[] = {0, 1}; /* not the drafted one */
    const hn_proposal_dist dists[] = {{3, NULL, weights[0]}, {3, NULL, weights[1]}, {3, NULL, weights[2]},
                                    {3, NULL, weights[3]}, {2, NULL, weights[2]}, {2, two, weights[2]},
                                    {0, two, weights[2]}};
    toy_model m = {.vocab = 3, .same = p};
    hn_sampler s;
    hn_verifier *w = NULL;
    assert_int_equal(hn_sampler_init(&s, &warm, 3, NULL), HUNCH_OK);
    assert_int_equal(hn_verifier_open(&w, 3, NULL), HUNCH_OK);
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 7; i++)
            for (uint64_t seed = 0; seed < 40; seed++) {
                hn_tree t;
                hn_verdict v;
                toy_pass pass = {.m = &m, .t = &t, .n = TOY_PROMPT, .text = {1, 0, 2}};
                hn_tree_reset(&t, 2, 8);
                hn_tree_add_drawn(&t, 0, 2, 0, .5f, &dists[i], false);
                s.params.seed = seed;
                const hn_verification ver = toy_verification(&pass, drawn_rules[r], &s);
                assert_int_equal(hn_verify_tree(w, &t, &ver, &v, NULL), HUNCH_OK);
                assert_int_equal(v.n_accepted, 0);
                assert_in_range(v.next, 0, 2);
            }
    hn_verifier_close(&w);
    hn_sampler_fini(&s);
}

/* match with a drafter that draws with the target's own noise (section 10): the frequency of agreement. */
static double agreement(const double *p, const double *q, int vocab) {
    enum { DRAWS = 40000 };
    toy_model m = {.vocab = vocab, .same = p};
    hn_sampler s;
    hn_verifier *w = NULL;
    int agreed = 0;
    assert_int_equal(hn_sampler_init(&s, &warm, vocab, NULL), HUNCH_OK);
    assert_int_equal(hn_verifier_open(&w, vocab, NULL), HUNCH_OK);
    for (int i = 0; i < DRAWS; i++) {
        hn_tree t;
        hn_verdict v;
        toy_pass pass = {.m = &m, .t = &t, .n = TOY_PROMPT, .text = {1, 0, 2}};
        const hn_random_key key = {.seed = (uint64_t)i, .position = TOY_PROMPT, .purpose = HN_PURPOSE_TARGET};
        s.params.seed = (uint64_t)i;
        hn_tree_reset(&t, 2, 8);
        hn_tree_add(&t, 0, toy_race(&key, q, vocab), 0, .5f);
        const hn_verification ver = toy_verification(&pass, HN_RULE_MATCH, &s);
        assert_int_equal(hn_verify_tree(w, &t, &ver, &v, NULL), HUNCH_OK);
        agreed += v.n_accepted;
    }
    hn_verifier_close(&w);
    hn_sampler_fini(&s);
    return (double)agreed / DRAWS;
}

static void test_coupling(void **state) {
    (void)state;
    static const double p3[] = {.5, .3, .2}, far[] = {.2, .2, .6}, close[] = {.6, .2, .2}, p2[] = {1. / 3, 2. / 3},
                        q2[] = {2. / 3, 1. / 3};
    assert_true(fabs(agreement(p3, far, 3) - .576471) < .012); /* 4.5 sigma */
    assert_true(fabs(agreement(p3, close, 3) - .881818) < .008);
    assert_true(fabs(agreement(p2, q2, 2) - .666667) < .011);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),   cmocka_unit_test(test_several_candidates),
        cmocka_unit_test(test_lenience), cmocka_unit_test(test_identities),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_broken_dists),
        cmocka_unit_test(test_coupling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
