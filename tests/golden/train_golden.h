/* SPDX-License-Identifier: Apache-2.0 */
/* train_golden.h - reads PyTorch's results for the trainer (tools/make_train_goldens.py) as the trainer's matrices, and
 * opens workers to compute the same. Include after cmocka. */
#ifndef HN_TESTS_TRAIN_GOLDEN_H
#define HN_TESTS_TRAIN_GOLDEN_H
#include "golden/golden.h"
#include "train/math/layers/attention_back.h"
#include "train/math/numbers_for_tests.h"

enum { MOST_ROWS = 128, MOST_IDS = 128 };

static hn_source *file;
static hn_pool *pool;
static hn_workers workers;

HELPER void open_workers(hn_isa isa, int threads, hn_products products) {
    pool = pool_of(threads);
    must(hn_workers_open(&workers, pool, isa, products, hn_attention_scratch(MOST_ROWS), err));
}

HELPER void close_workers(void) {
    hn_workers_close(&workers);
    hn_pool_free(pool);
}

HELPER golden_tensor get(const char *what, const char *name) {
    char full[100];
    snprintf(full, sizeof full, "%s.%s", what, name);
    return get_golden(file, full);
}

/* A copy, freed by the caller. */
HELPER hn_mat mat(const char *what, const char *name) {
    const golden_tensor g = get(what, name);
    const hn_mat m = hn_mat_of(hn_alloc(g.n * sizeof *g.data), (int)(g.n / g.cols), (int)g.cols);
    assert_non_null(m.p);
    memcpy(m.p, g.data, g.n * sizeof *g.data);
    return m;
}

HELPER hn_mat zeros_like(hn_mat m) {
    return hn_mat_of(hn_zalloc((size_t)m.rows * (size_t)m.cols, sizeof *m.p), m.rows, m.cols);
}

HELPER int ids(const char *what, const char *name, int *to) {
    const golden_tensor g = get(what, name);
    assert_true(g.n <= MOST_IDS);
    for (size_t i = 0; i < g.n; i++) to[i] = (int)g.data[i];
    return (int)g.n;
}

/* Compares all numbers, to `error` relative to the size of the golden's numbers. */
HELPER void check(const char *what, const char *name, const hn_real *is, double error) {
    const golden_tensor want = get(what, name);
    double square = 0;
    for (size_t i = 0; i < want.n; i++) square += (double)want.data[i] * (double)want.data[i];
    const double d = largest_difference(is, want.data, want.n), middle = sqrt(square / (double)want.n);
    if (!(d <= error * fmax(middle, 1e-3))) fail_msg("%s.%s is off by %g of %g", what, name, d, middle);
}

HELPER void free_all(size_t n, const hn_mat *m) {
    for (size_t i = 0; i < n; i++) hn_free(m[i].p);
}
#define FREE(...) free_all(sizeof((hn_mat[]){__VA_ARGS__}) / sizeof(hn_mat), (hn_mat[]){__VA_ARGS__})
#endif
