/* SPDX-License-Identifier: Apache-2.0 */
/* acceptance_test.c - the estimates of acceptance.h against known rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "fixture.h"
#include "plan/acceptance.h"
#include "plan/machine_for_tests.h"

static hn_acceptance all, own;

static void begin(void) {
    hn_acceptance_init(&all);
    hn_acceptance_init(&own);
}

static void outcomes(int drafter, int depth, double estimate, int tried, int accepted) {
    for (int i = 0; i < tried; i++) hn_acceptance_learn(&all, &own, drafter, depth, estimate, i < accepted);
}

static double rate(int drafter, int depth, double estimate) {
    return hn_acceptance_rate(&all, &own, drafter, depth, estimate);
}

/* Without data: the drafter's own estimate. */
static void test_prior(void **state) {
    (void)state;
    begin();
    for (int depth = 1; depth < 64; depth++)
        for (double e = 0.01; e < 1; e += 0.07) {
            assert_true(fabs(rate(0, depth, e) - e) < 1e-6);
            assert_true(fabs(hn_acceptance_rate(&all, NULL, 0, depth, e) - e) < 1e-6);
        }
    const double odd[] = {0, 1, -3, 7, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_true(rate(1, 1, odd[i]) > 0 && rate(1, 1, odd[i]) < 1);
        hn_acceptance_learn(&all, &own, 1, 1, odd[i], true);
        assert_true(rate(1, 1, odd[i]) > 0 && rate(1, 1, odd[i]) < 1);
    }
    assert_true(hn_acceptance_at(&all, &own, 2, 1) > 0.5);
}

/* Conditional rates a_i, a depth that changes at random, only rows that were reached are observed. */
static void test_converges_whatever_the_depth(void **state) {
    (void)state;
    static const double a[] = {0.8, 0.5, 0.9};
    machine m = machine_make(BANDWIDTH, 0, 11);
    double counted[3] = {0}, rounds = 0;
    begin();
    for (int round = 0; round < 20000; round++) {
        const int depth = (int)(4 * machine_uniform(&m)); /* 0..3 */
        bool on = true;
        for (int d = 1; d <= depth && on; d++) {
            on = machine_uniform(&m) < a[d - 1];
            hn_acceptance_learn(&all, &own, 0, d, 0.6, on);
            counted[d - 1] += on;
        }
        hn_acceptance_round(&own, 1);
        rounds++;
    }
    double chain = 1;
    for (int d = 1; d <= 3; d++) {
        chain *= a[d - 1];
        if (fabs(hn_acceptance_rate(&all, NULL, 0, d, 0.6) - a[d - 1]) > 0.06 || fabs(rate(0, d, 0.6) - a[d - 1]) > 0.1)
            fail_msg("depth %d: %g, in the text %g; is %g", d, hn_acceptance_rate(&all, NULL, 0, d, 0.6),
                     rate(0, d, 0.6), a[d - 1]);
        assert_true(fabs(hn_acceptance_at(&all, &own, 0, d) - a[d - 1]) < 0.1);
        assert_true(counted[d - 1] / rounds < chain - 0.1); /* a rate per round would be wrong */
    }
}

/* Classes of the estimate have separate rates, the highest ones too. */
static void test_classes(void **state) {
    (void)state;
    static const double estimate[] = {0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.98, 0.995};
    enum { N = sizeof estimate / sizeof *estimate };
    begin();
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 200; k++) hn_acceptance_learn(&all, NULL, 0, 1, estimate[i], k % (i + 2) == 0);
    for (int i = 0; i < N; i++) {
        const double got = hn_acceptance_rate(&all, NULL, 0, 1, estimate[i]);
        if (fabs(got - 1.0 / (i + 2)) > 0.05) fail_msg("estimate %g: %g, was %g", estimate[i], got, 1.0 / (i + 2));
    }
    assert_true(fabs(hn_acceptance_rate(&all, NULL, 1, 1, 0.5) - 0.5) < 1e-6); /* another drafter */
    outcomes(0, 4, 0.5, 200, 160); /* another depth: like the previous one, then its own */
    assert_true(fabs(hn_acceptance_rate(&all, NULL, 0, 1, 0.5) - 0.25) < 0.05);
    assert_true(fabs(hn_acceptance_rate(&all, NULL, 0, 2, 0.5) - 0.25) < 0.05);
    assert_true(fabs(hn_acceptance_rate(&all, NULL, 0, 4, 0.5) - 0.8) < 0.08);
}

/* Five rejections in a text lower its drafter's rate, in other classes and depths too; not that of other drafters or texts. */
static void test_a_text_is_learned_fast(void **state) {
    (void)state;
    hn_acceptance other;
    begin();
    hn_acceptance_init(&other);
    for (int k = 0; k < 900; k++) hn_acceptance_learn(&all, NULL, 0, 1 + k % 3, 0.75, k % 4 != 0);
    const double before = rate(0, 1, 0.75);
    assert_true(before > 0.7);
    outcomes(0, 1, 0.75, 3, 0);
    assert_true(rate(0, 1, 0.75) < 0.5);
    outcomes(0, 1, 0.75, 2, 0);
    assert_true(rate(0, 1, 0.75) < 0.35);
    assert_true(rate(0, 2, 0.75) < 0.45);
    assert_true(rate(0, 1, 0.9) < 0.7);
    assert_true(fabs(hn_acceptance_rate(&all, &other, 0, 1, 0.75) - before) < 0.03);
    assert_true(fabs(rate(1, 1, 0.75) - 0.75) < 1e-6);
    outcomes(0, 1, 0.75, 12, 12); /* and it recovers as fast */
    assert_true(rate(0, 1, 0.75) > 0.6);
}

/* Old counts of a text decay to nothing, its shift stays, but after a pause a few outcomes move it far. */
static void test_fades(void **state) {
    (void)state;
    begin();
    for (int k = 0; k < 300; k++) hn_acceptance_learn(&all, NULL, 0, 1, 0.75, k % 4 != 0);
    outcomes(0, 1, 0.75, 60, 0);
    const hn_acceptance then = own;
    const double low = rate(0, 1, 0.75);
    assert_true(low < 0.1);
    for (int i = 0; i < 20000; i++) hn_acceptance_round(&own, 1);
    assert_true(own.count[0][0][4].tried == 0); /* no denormal numbers */
    assert_true(rate(0, 1, 0.75) < 0.25 && own.text[0].shift == then.text[0].shift);
    outcomes(0, 1, 0.75, 5, 5);
    assert_true(rate(0, 1, 0.75) > 0.6);
    own = then;
    outcomes(0, 1, 0.75, 5, 5); /* without the pause it is slower */
    assert_true(rate(0, 1, 0.75) < 0.5);
}

/* Many texts that differ: a new one starts at their mean. */
static void test_texts_differ(void **state) {
    (void)state;
    machine m = machine_make(BANDWIDTH, 0, 5);
    begin();
    for (int text = 0; text < 200; text++) {
        const double a = machine_uniform(&m) < 0.5 ? 0.2 : 0.8;
        hn_acceptance_init(&own);
        for (int i = 0; i < 30; i++) {
            hn_acceptance_learn(&all, &own, 0, 1, 0.9, machine_uniform(&m) < a);
            hn_acceptance_round(&own, 1);
        }
        assert_true(fabs(rate(0, 1, 0.9) - a) < 0.3);
    }
    hn_acceptance_init(&own);
    assert_true(fabs(rate(0, 1, 0.9) - 0.5) < 0.12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prior),   cmocka_unit_test(test_converges_whatever_the_depth),
        cmocka_unit_test(test_classes), cmocka_unit_test(test_a_text_is_learned_fast),
        cmocka_unit_test(test_fades),   cmocka_unit_test(test_texts_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
