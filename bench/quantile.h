/* SPDX-License-Identifier: Apache-2.0 */
/* quantile.h - what the programs of bench/ say of many times. */
#ifndef BENCH_QUANTILE_H
#define BENCH_QUANTILE_H
#include <stdlib.h>

static inline int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which this part of the n lies, 0 of none; sorts them. */
static inline double quantile(double *values, size_t n, double part) {
    if (n == 0) return 0;
    qsort(values, n, sizeof *values, by_size);
    const size_t at = (size_t)(part * (double)n);
    return values[at < n ? at : n - 1];
}

static inline double median(double *values, size_t n) {
    return quantile(values, n, 0.5);
}
#endif
