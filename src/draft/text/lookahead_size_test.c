/* SPDX-License-Identifier: Apache-2.0 */
/* lookahead_size_test.c - the window follows the price of rows: none too large, the largest where rows are free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "draft/text/lookahead_size.h"

enum { MOST = 64 };

/* A row costs `each` of the first one. */
static hn_lookahead_size best_at(double each, int most) {
    double seconds[MOST + 1] = {0};
    for (int r = 1; r <= MOST; r++) seconds[r] = 1e-3 * (1 + each * (r - 1));
    hn_lookahead_size s = {0};
    assert_int_equal(hn_lookahead_best_size(seconds, most, &s), most >= 8);
    return s;
}

static void test_prices(void **state) {
    (void)state;
    const hn_lookahead_size free_rows = best_at(0, MOST), dear = best_at(0.5, MOST);
    assert_int_equal(free_rows.window, 7);
    assert_true(fabs(free_rows.speed_up - 1.9) < 1e-9);
    assert_int_equal(dear.window, 2);
    assert_true(fabs(dear.speed_up - 1.55 / (1 + 0.5 * 5.3)) < 1e-9);
    int last = free_rows.window; /* never larger where rows are dearer */
    for (double each = 0; each < 0.5; each += 0.001) {
        const hn_lookahead_size s = best_at(each, MOST);
        assert_true(s.window <= last);
        last = s.window;
    }
}

static void test_few_rows(void **state) {
    (void)state;
    assert_int_equal(best_at(0, 16).ngram, 4); /* 12.4 rows, between 13 and 14 */
    assert_int_equal(best_at(0, 8).window, 2);
    (void)best_at(0, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prices), cmocka_unit_test(test_few_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
