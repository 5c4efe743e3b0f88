/* SPDX-License-Identifier: Apache-2.0 */
/* workers_test.c - work is split into pieces that cover it once; teams and networks report missing memory and free everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "train/nets/eagle3_net.h"
#include "train/nets/eagle_net.h"
#include "train/math/numbers_for_tests.h"

enum { MOST = 1000 };

static void count_items(void *arg, int rank, int first, int end) {
    int *seen = arg;
    assert_true(rank >= 0 && first < end);
    for (int i = first; i < end; i++) seen[i]++;
}

static void test_pieces_cover_the_work(void **state) {
    (void)state;
    hn_pool *pool = pool_of(3);
    hn_workers t;
    hunch_error err;
    assert_int_equal(hn_workers_open(&t, pool, HN_ISA_REF, HN_PRODUCTS_F32, 0, &err), HUNCH_OK);
    static const int counts[] = {0, 1, 7, 64, 65, 999}, grains[] = {1, 16, 64, 2000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (size_t j = 0; j < sizeof grains / sizeof *grains; j++) {
            int seen[MOST] = {0};
            hn_workers_split(&t, counts[i], grains[j], count_items, seen);
            for (int k = 0; k < MOST; k++) assert_int_equal(seen[k], k < counts[i]);
        }
    }
    hn_workers_close(&t);
    hn_pool_free(pool);
}

/* Opens workers and both networks; returns the first error. */
static hunch_status open_all(hn_pool *pool, hunch_error *err) {
    static hn_real numbers_of[16 * 8];
    const hn_eagle3_shape s3 = {{{8, 2, 1, 4, 10, 1e-5, 10000}}, 12, 16, false, {0, 0, NULL}};
    const hn_eagle_shape s1 = {{{8, 2, 1, 4, 10, 1e-5, 10000}}, true};
    const hn_mat table = hn_mat_of(numbers_of, 16, 8);
    const hn_eagle_frozen frozen = {table, table};
    hn_workers t = {0};
    hn_eagle3_net *n3 = NULL;
    hn_eagle_net *n1 = NULL;
    hunch_status s = hn_workers_open(&t, pool, HN_ISA_REF, HN_PRODUCTS_F32, 100, err);
    if (s == HUNCH_OK) s = hn_eagle3_net_open(&n3, &t, &s3, 2, 1, table, 20, err);
    if (s == HUNCH_OK) s = hn_eagle_net_open(&n1, &t, &s1, 2, 1, 0.1, &frozen, 20, err);
    hn_eagle_net_close(n1);
    hn_eagle3_net_close(n3);
    hn_workers_close(&t);
    return s;
}

static void test_memory_runs_out(void **state) {
    (void)state;
    hn_pool *pool = pool_of(2);
    hunch_error err;
    hn_fault_arm(HN_FAULT_ALLOC, INT64_MAX, false);
    assert_int_equal(open_all(pool, &err), HUNCH_OK);
    const int64_t calls = (int64_t)hn_fault_count(HN_FAULT_ALLOC);
    assert_true(calls > 8);
    for (int64_t n = 0; n < calls; n++) {
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        const hunch_status s = open_all(pool, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_int_equal(s, HUNCH_NO_MEMORY);
        assert_true(err.message[0] != 0);
    }
    assert_int_equal(open_all(pool, &err), HUNCH_OK);
    hn_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_cover_the_work),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
