/* SPDX-License-Identifier: Apache-2.0 */
/* numbers_for_tests.h - random numbers and matrices of them, and pools. Include after cmocka's headers. */
#ifndef HN_NUMBERS_FOR_TESTS_H
#define HN_NUMBERS_FOR_TESTS_H
#include <string.h>

#include "base/helper_for_tests.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/threads.h"
#include "train/math/real.h"


/* Between -1 and 1. */
HELPER hn_real number(uint64_t *seed) {
    return (hn_real)((double)(hn_splitmix(seed) >> 11) * 0x1p-52 - 1);
}

HELPER hn_real *numbers(size_t n, uint64_t *seed) {
    hn_real *p = hn_alloc(n * sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) p[i] = number(seed);
    return p;
}

/* A matrix whose rows have `more` unused numbers. */
HELPER hn_mat wide_matrix(int rows, int cols, int more, uint64_t *seed) {
    const size_t ld = (size_t)(cols + more);
    return (hn_mat){numbers((size_t)rows * ld, seed), rows, cols, ld};
}

HELPER hn_mat copy_of(hn_mat m) {
    hn_mat c = m;
    const size_t bytes = (size_t)m.rows * m.ld * sizeof *m.p;
    c.p = hn_alloc(bytes);
    assert_non_null(c.p);
    memcpy(c.p, m.p, bytes);
    return c;
}

HELPER hn_pool *pool_of(int threads) {
    hn_pool *p = NULL;
    hunch_error err;
    assert_int_equal(hn_pool_create(&p, threads, &err), HUNCH_OK);
    return p;
}
#endif
