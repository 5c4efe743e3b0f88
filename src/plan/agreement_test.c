/* SPDX-License-Identifier: Apache-2.0 */
/* agreement_test.c - what the agreement of two drafters tells is measured: alone, and in the reach of rows that a controller expects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fixture.h"
#include "plan/controller_private.h"

enum { OUTCOMES = 400 };

static double uniform(uint64_t *rng) {
    return (double)(hn_splitmix(rng) >> 11) / (double)(1ull << 53);
}

static hn_agreed agreed(int a, double of_a, int b, double of_b) {
    hn_agreed x = HN_AGREED_NONE;
    hn_agreed_add(&x, a, of_a);
    if (b >= 0) hn_agreed_add(&x, b, of_b);
    return x;
}

/* Two that are right for different reasons, two of which one copies the other, and one that is alone and less often right then. */
static void test_pairs(void **state) {
    (void)state;
    hn_agreement a;
    uint64_t rng = 3, other = 5;
    const hn_agreed different = agreed(0, 0.6, 3, 0.5), copies = agreed(5, 0.6, 1, 0.6), alone = agreed(2, 0.4, -1, 0);
    hn_agreement_init(&a);
    assert_float_equal(hn_agreement_rate(&a, &different), 0.6, 1e-9);
    for (int i = 0; i < OUTCOMES; i++) {
        hn_agreement_learn(&a, &different, uniform(&rng) < 0.85);
        hn_agreement_learn(&a, &copies, uniform(&rng) < 0.6);
        hn_agreement_learn(&a, &alone, uniform(&other) < 0.15);
    }
    assert_float_equal(hn_agreement_rate(&a, &different), 0.85, 0.05);
    assert_float_equal(hn_agreement_rate(&a, &copies), 0.6, 0.06);
    assert_float_equal(hn_agreement_rate(&a, &alone), 0.15, 0.05);
    const hn_agreed unlikely = agreed(3, 0.2, 0, 0.1);
    assert_true(hn_agreement_rate(&a, &unlikely) > 0.4 && hn_agreement_rate(&a, &unlikely) < 0.6); /* by the same factor of the odds */
}

/* The two likeliest drafters count, each once. */
static void test_likeliest_two(void **state) {
    (void)state;
    hn_agreed x = HN_AGREED_NONE;
    hn_agreed_add(&x, 4, 0.3);
    hn_agreed_add(&x, 4, 0.5);
    assert_true(x.drafter == 4 && x.other == -1 && x.rate == 0.5);
    hn_agreed_add(&x, 2, 0.1);
    hn_agreed_add(&x, 1, 0.2);
    assert_true(x.drafter == 4 && x.other == 1 && x.of_other == 0.2);
    hn_agreed_add(&x, 1, 0.9);
    assert_true(x.drafter == 1 && x.other == 4 && x.rate == 0.9 && x.of_other == 0.5);
}

/* A round: two drafters propose token 1 after the root, the first of them alone token 2, with the same estimate. */
static void round_make(hn_tree *t) {
    hn_tree_reset(t, 9, HN_TREE_ROWS);
    hn_tree_add(t, 0, 1, 0, 0.5f);
    hn_tree_add(t, 0, 1, 1, 0.5f);
    hn_tree_add(t, 0, 2, 0, 0.5f);
}

static void test_reach(void **state) {
    (void)state;
    static const hn_draft_cost kinds[] = {HN_COST_PER_ROUND, HN_COST_PER_ROUND};
    hn_controller *c;
    hn_tree t;
    uint64_t rng = 4;
    must(hn_controller_open(&c, kinds, 2, 1, err));
    hn_controller_begin(c, 0);
    for (int d = 0; d < 2; d++) c->drafter[d].why = HN_CALLED_CHEAP;
    const hn_plan_seq s = {0, 10, &t, 8, 0, 0};
    for (int i = 0; i < 3 * OUTCOMES; i++) { /* each is right in half of its rounds, and both agree in those of which most are right */
        const bool both = uniform(&rng) < 0.4, right = uniform(&rng) < (both ? 0.9 : 0.25);
        const int16_t row = 1;
        hn_tree_reset(&t, 9, HN_TREE_ROWS);
        hn_tree_add(&t, 0, 1, 0, 0.5f);
        hn_tree_add(&t, 0, both ? 1 : 3, 1, 0.5f);
        hn_round_drafts r;
        hn_round_drafts_make(&r, &t, &row, right, false);
        hn_controller_observe(c, 0, &r);
    }
    round_make(&t);
    hn_plan_rates(c, &s, 1, false);
    hn_plan_reach(c, 0, &t, HN_PLAN_ANY);
    const double agree = c->reach[0][1], alone = c->reach[0][2];
    hn_plan_reach(c, 0, &t, 0);
    const double one = c->reach[0][1];
    assert_true(one > 0.3 && one < 0.65);
    assert_true(agree > one + 0.15 && agree < 0.97);
    assert_float_equal(c->reach[0][2], one, 1e-12); /* of this drafter alone it does not matter who else has it */
    assert_float_equal(alone, 0.25, 0.1);
    hn_controller_forget(c); /* pairs too */
    hn_plan_rates(c, &s, 1, false);
    hn_plan_reach(c, 0, &t, HN_PLAN_ANY);
    assert_float_equal(c->reach[0][1], (double)hn_plan_larger((double)c->rate[0][0], (double)c->rate[0][1]), 1e-9);
    hn_controller_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_likeliest_two), cmocka_unit_test(test_reach)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
