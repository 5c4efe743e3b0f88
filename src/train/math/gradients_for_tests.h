/* SPDX-License-Identifier: Apache-2.0 */
/* gradients_for_tests.h - a gradient against finite differences, in double, and one worker for both. Include after cmocka. */
#ifndef HN_GRADIENTS_FOR_TESTS_H
#define HN_GRADIENTS_FOR_TESTS_H
#include <math.h>

#include "base/mem.h"
#include "train/math/layers/attention_back.h"
#include "train/math/numbers_for_tests.h"

_Static_assert(sizeof(hn_real) == sizeof(double), "the floor compiled with double");

static hn_pool *pool;
static hn_workers workers;

HELPER int open_workers(void **state) {
    (void)state;
    hunch_error err;
    pool = pool_of(1); /* thousands of small calls: waking other threads would take most of the time */
    return hn_workers_open(&workers, pool, HN_ISA_REF, HN_PRODUCTS_F32, hn_attention_scratch(100), &err) == HUNCH_OK ? 0 : -1;
}

HELPER int close_workers(void **state) {
    (void)state;
    hn_workers_close(&workers);
    hn_pool_free(pool);
    return 0;
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

typedef double value_fn(void *of);

HELPER double slope(value_fn *f, void *of, hn_real *x) {
    static const double h = 1e-3;
    const hn_real kept = *x;
    double f_at[5];
    for (int i = -2; i <= 2; i++) {
        *x = kept + i * h;
        f_at[i + 2] = i ? f(of) : 0;
    }
    *x = kept;
    return (f_at[0] - 8 * f_at[1] + 8 * f_at[3] - f_at[4]) / (12 * h);
}

/* Checks the gradient of f by the n numbers at x, each to 1e-6 of itself (or of a thousandth of the median if it is smaller). */
HELPER void check_gradient(const char *what, value_fn *f, void *of, hn_real *x, const hn_real *gradient, size_t n) {
    double square = 0;
    for (size_t i = 0; i < n; i++) square += gradient[i] * gradient[i];
    const double middle = sqrt(square / (double)n);
    assert_true(middle > 0);
    for (size_t i = 0; i < n; i++) {
        const double s = slope(f, of, x + i), size = fmax(fabs(s), 1e-3 * middle);
        if (!(fabs(s - gradient[i]) <= 1e-6 * size))
            fail_msg("%s: by number %zu the slope is %.12g, not %.12g", what, i, s, gradient[i]);
    }
}

HELPER void check_mat(const char *what, value_fn *f, void *of, hn_mat x, hn_mat gradient) {
    for (int r = 0; r < x.rows; r++)
        check_gradient(what, f, of, hn_mat_row(x, r), hn_mat_row(gradient, r), (size_t)x.cols);
}

/* The scalar that operations end in: Σ y dy. */
HELPER double along(hn_mat y, hn_mat dy) {
    double sum = 0;
    for (int r = 0; r < y.rows; r++)
        for (int c = 0; c < y.cols; c++) sum += hn_mat_row(y, r)[c] * hn_mat_row(dy, r)[c];
    return sum;
}

HELPER hn_mat zeros(hn_mat like) {
    hn_mat m = copy_of(like);
    memset(m.p, 0, (size_t)m.rows * m.ld * sizeof *m.p);
    return m;
}

/* Subtracts `before` from a gradient that was added to, in place. */
HELPER void less(hn_mat gradient, hn_mat before) {
    for (size_t i = 0; i < (size_t)gradient.rows * gradient.ld; i++) gradient.p[i] -= before.p[i];
}
#endif
