/* SPDX-License-Identifier: Apache-2.0 */
/* largest_test.c - the largest of random numbers, of many equal ones, of infinities, compared with a sort. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "model/largest.h"

enum { MOST = 700 };
static uint32_t order[MOST];

/* Largest first, of equal ones the first. */
static int compare(const void *a, const void *b) {
    const int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    return order[i] != order[k] ? (order[i] < order[k]) - (order[i] > order[k]) : (i > k) - (i < k);
}

static int ascending(const void *a, const void *b) {
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* kinds: how many different values there are, 0: any. */
static void check(int n, int k, int kinds, uint64_t seed) {
    static int32_t room[MOST], want[MOST], have[MOST];
    static uint32_t most[MOST];
    for (int i = 0; i < n; i++) {
        const uint64_t r = hn_splitmix(&seed);
        const float x = kinds ? (float)(r % (uint64_t)kinds) - 1 : (float)((double)(int64_t)r * 1e-15);
        order[i] = hn_order(kinds > 2 && r % 7 == 0 ? -INFINITY : x);
        want[i] = i;
    }
    qsort(want, (size_t)n, sizeof *want, compare);
    qsort(want, (size_t)k, sizeof *want, ascending);
    hn_largest(order, n, k, have);
    assert_memory_equal(have, want, (size_t)k * sizeof *want);
    for (int i = 0; i < n; i++) {
        uint32_t *of = &most[i / HN_LARGEST_GROUP];
        if (i % HN_LARGEST_GROUP == 0 || order[i] > *of) *of = order[i];
        const int first = i / HN_LARGEST_GROUP * HN_LARGEST_GROUP;
        assert_int_equal(hn_largest_one(order + first, i - first + 1), *of);
    }
    hn_largest_of_groups(order, n, most, k, have, room);
    assert_memory_equal(have, want, (size_t)k * sizeof *want);
}

static void test_as_sorted(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        check(MOST, 1 + (int)seed * 50, 0, seed);
        check(MOST, 1 + (int)seed * 50, 5, seed);
        check(333, 333, (int)seed % 3, seed);
        check(1 + (int)seed, 1, 1, seed);
        check(MOST - (int)seed, (int)seed, 0, seed);
        check(MOST - (int)seed, 3 * (int)seed, 5, seed);
    }
}

static void test_order(void **state) {
    static const float x[] = {-INFINITY, -3e38f, -2, -1, -1e-40f, -0.0f, 0, 1e-40f, 1, 1.5f, 3e38f, INFINITY};
    (void)state;
    for (size_t i = 1; i < sizeof x / sizeof *x; i++) assert_true(hn_order(x[i - 1]) < hn_order(x[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_sorted), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
