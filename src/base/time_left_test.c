/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time_left.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Units in steps of 512, each of which took a + 2 growth * its number seconds; the time left after `done` of 131072. */
static double left_after(double done, double a, double growth) {
    hn_time_left t = {.last = {0, 0}};
    double elapsed = 0;
    for (double x = 512; x <= done; x += 512) {
        elapsed = x * (a + growth * x);
        hn_time_left_note(&t, x, elapsed);
    }
    return hn_time_left_of(&t, done, 131072, elapsed);
}

static void check(double got, double want) {
    if (fabs(got - want) > 1e-6 * want) fail_msg("%f seconds, expected %f", got, want);
}

static void test_growing(void **state) {
    (void)state;
    const double a = 2e-3, growth = 3e-7, whole = 131072 * (a + growth * 131072);
    for (double done = 2048; done < 131072; done *= 3) check(left_after(done, a, growth), whole - done * (a + growth * done));
}

static void test_even(void **state) {
    (void)state;
    check(left_after(512, 2e-3, 0), (131072 - 512) * 2e-3); /* too early to compare */
    check(left_after(65536, 2e-3, 0), 65536 * 2e-3);
}

/* Faster than before: as if even. Slower than any growth from nothing can be: as if the first took no time. */
static void test_limits(void **state) {
    (void)state;
    hn_time_left t = {.last = {0, 0}};
    hn_time_left_note(&t, 100, 10);
    hn_time_left_note(&t, 200, 15);
    check(hn_time_left_of(&t, 200, 400, 15), 15);
    check(hn_time_left_of(&t, 200, 400, 1000), 3000);
    hn_time_left_note(&t, 300, 15); /* less than twice the last note */
    check(hn_time_left_of(&t, 300, 600, 30), 30);
    check(hn_time_left_of(&t, 400, 400, 30), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_growing), cmocka_unit_test(test_even), cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
