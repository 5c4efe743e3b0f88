/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_gain_test.c - the mean result of calling a drafter, over past rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "plan/drafter_gain.h"

static hn_drafter_gain all, own;

static int setup(void **state) {
    (void)state;
    memset(&all, 0, sizeof all);
    memset(&own, 0, sizeof own);
    return 0;
}

static void learn(int rows, double gain, int got) {
    const hn_drafter_gain_round r = {rows, rows, gain, true, got, 0};
    hn_drafter_gain_pass(&own, 3);
    hn_drafter_gain_learn(&all, &own, 2, &r);
}

static hn_drafter_gain_mean mean(void) {
    return hn_drafter_gain_of(&all, &own, 2);
}

static void near(double got, double want, double by) {
    if (!(fabs(got - want) <= by)) fail_msg("%g, expected %g", got, want);
}

/* A drafter that proposes in every tenth round is worth a tenth of such a round, in a tenth of the rows. */
static void test_silence_counts(void **state) {
    (void)state;
    assert_true(mean().gain == 0 && mean().rows == 0);
    for (int i = 0; i < 400; i++) learn(i % 10 ? 0 : 8, i % 10 ? 0 : 6, i % 10 ? 0 : 6);
    near(mean().gain, 0.6, 0.2);
    near(mean().rows, 0.8, 0.25);
    assert_true(hn_drafter_gain_of(&all, &own, 1).gain == 0);
}

/* High estimates, all wrong: a few rounds are enough, while the means are still high. */
static void test_what_does_not_come_true(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) learn(6, 4, 0);
    assert_true(mean().gain < 0.75 && mean().rows > 5.9);
    for (int i = 0; i < 60; i++) learn(6, 4, 4);
    near(mean().gain, 4, 0.5);
    for (int i = 0; i < 60; i++) learn(4, 2, 8); /* more than was expected, but never more than there are rows */
    near(mean().gain, 4, 0.2);
}

/* The first text's outcomes count once, not as its own and again as those of all texts. */
static void test_counts_once(void **state) {
    (void)state;
    learn(4, 2, 0);
    near(mean().gain, 1, 1e-3);
}

/* Unverified drafts change nothing in the fraction that is accepted. */
static void test_unverified(void **state) {
    (void)state;
    const hn_drafter_gain_round r = {5, 5, 3, false, 0, 0};
    for (int i = 0; i < 20; i++) hn_drafter_gain_learn(&all, &own, 2, &r);
    near(mean().gain, 3, 1e-3);
}

/* A text begins with the values of the others, and soon has its own. */
static void test_a_new_text(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) learn(5, 3, 3);
    hn_drafter_gain_begin(&own, &all);
    near(mean().gain, 3, 0.1);
    for (int i = 0; i < 12; i++) learn(0, 0, 0);
    assert_true(mean().gain < 0.9);
    hn_drafter_gain_begin(&own, &all);
    assert_true(mean().gain > 2);
}

/* After a pause one round counts more than it did in a row of them. */
static void test_after_a_pause(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) learn(0, 0, 0);
    const hn_drafter_gain before = own;
    learn(5, 3, 3);
    assert_true(mean().gain < 0.3);
    own = before;
    for (int i = 0; i < 200; i++) hn_drafter_gain_pass(&own, 3);
    learn(5, 3, 3);
    assert_true(mean().gain > 1);
    for (int i = 0; i < 100000; i++) hn_drafter_gain_pass(&own, 3);
    assert_true(isnormal(own.of[2].rounds) && isfinite(mean().gain));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_silence_counts, setup), cmocka_unit_test_setup(test_what_does_not_come_true, setup),
        cmocka_unit_test_setup(test_unverified, setup),     cmocka_unit_test_setup(test_a_new_text, setup),
        cmocka_unit_test_setup(test_after_a_pause, setup),  cmocka_unit_test_setup(test_counts_once, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
