/* SPDX-License-Identifier: Apache-2.0 */
/* speedup_test.c - the arithmetic of speculation against published numbers: an article on multi-token prediction heads (llama.cpp's pull
 * requests 22400 and 22673), and tables that were computed apart. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/speedup.h"

static void near(double x, double expected, double most) {
    if (!(fabs(x - expected) <= most)) fail_msg("%g, expected %g", x, expected);
}

static void test_published_factors(void **state) {
    (void)state;
    near(hn_speedup_factor(.55, 4, .20, 1), 1.17, .005);
    near(hn_speedup_factor(.55, 4, .30, 1), 0.96, .005);
    near(hn_speedup_factor(.83, 3, .04, 1), 2.76, .005);
}

/* Of measured speeds: two heads and a draft model. The bytes of the heads' weights alone would give .016 to .04. */
static void test_costs_that_speeds_imply(void **state) {
    (void)state;
    near(hn_speedup_cost(2.24, .83, 2), .093, .001);
    near(hn_speedup_cost(2.40, .72, 3), .106, .001);
    near(hn_speedup_cost(2.50, .68, 16), .235, .001);
}

/* Accepted / drafted is not the rate of a draft. */
static void test_rates(void **state) {
    (void)state;
    near(hn_speedup_rate(.83, 2), .882, .001);
    near(hn_speedup_rate(.72, 3), .845, .001);
    near(hn_speedup_rate(.5, 1), .5, 1e-9);
    near(hn_speedup_rate(1, 4), 1, 1e-9);
    assert_true(hn_speedup_rate(0, 4) == 0 && hn_speedup_rate(.5, 0) == 0);
}

static void test_best_depths(void **state) {
    static const struct {
        double a, c;
        int k;
        double factor;
    } table[] = {{.5, .02, 4, 1.794}, {.6, .05, 4, 1.921},  {.7, .10, 4, 1.981}, {.8, .02, 11, 3.817},
                 {.8, .20, 4, 1.868}, {.9, .02, 19, 6.365}, {.9, .20, 7, 2.373}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(hn_speedup_depth(table[i].a, table[i].c, 32), table[i].k);
        near(hn_speedup_factor(table[i].a, table[i].k, table[i].c, 1), table[i].factor, 5e-4);
    }
    assert_int_equal(hn_speedup_depth(.2, .2, 32), 0); /* a gain needs a > c */
    assert_int_equal(hn_speedup_depth(.21, .2, 32), 1);
    near(hn_speedup_factor(.21, 1, .2, 1), 1.21 / 1.2, 1e-12);
}

static void test_operations(void **state) {
    (void)state;
    near(hn_speedup_operations(.6, 3, .05), 1.907, 5e-4);
    near(hn_speedup_operations(.6, 5, .05), 2.622, 5e-4);
    near(hn_speedup_operations(.8, 3, .05), 1.406, 5e-4);
    near(hn_speedup_operations(.9, 5, .05), 1.334, 5e-4);
    near(hn_speedup_operations(.7, 0, .05), 1, 0);
}

static void test_experts(void **state) {
    static const int rows[] = {1, 2, 3, 4, 5, 8, 16, 32, 64};
    static const struct {
        int count, used;
        double distinct[9];
    } table[] = {{8, 2, {2, 3.5, 4.62, 5.47, 6.10, 7.20, 7.92, 8.00, 8.00}},
                 {64, 6, {6, 11.44, 16.37, 20.83, 24.88, 34.88, 50.75, 61.26, 63.88}},
                 {128, 8, {8, 15.5, 22.53, 29.12, 35.30, 51.62, 82.42, 111.8, 125.9}},
                 {256, 8, {8, 15.75, 23.26, 30.53, 37.58, 57.42, 102.0, 163.3, 222.4}},
                 {384, 8, {8, 15.83, 23.50, 31.01, 38.37, 59.52, 109.8, 188.2, 284.2}}};
    (void)state;
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (int i = 0; i < 9; i++)
            near(hn_speedup_experts(table[t].count, table[t].used, rows[i]), table[t].distinct[i],
                 table[t].distinct[i] < 100 ? .006 : .06);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_factors),
                                       cmocka_unit_test(test_costs_that_speeds_imply),
                                       cmocka_unit_test(test_rates),
                                       cmocka_unit_test(test_best_depths),
                                       cmocka_unit_test(test_operations),
                                       cmocka_unit_test(test_experts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
