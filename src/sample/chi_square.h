/* SPDX-License-Identifier: Apache-2.0 */
/* chi_square.h - for tests: whether counts follow a distribution. */
#ifndef HN_CHI_SQUARE_H
#define HN_CHI_SQUARE_H
#include <math.h>
#include <stdbool.h>

/* Pearson's statistic of counts[cells] with total n against p[cells]; cells with expected counts below 5 are merged into
 * one. It is infinite if a count is above 0 where p is 0. *df: degrees of freedom. */
static inline double chi_square(const long *counts, const double *p, int cells, long n, int *df) {
    double sum = 0, rest_expected = 0, rest_count = 0;
    int used = 0;
    for (int i = 0; i < cells; i++) {
        double expected = p[i] * (double)n;
        if (expected == 0 && counts[i] > 0) return INFINITY;
        if (expected < 5) {
            rest_expected += expected;
            rest_count += (double)counts[i];
            continue;
        }
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
        used++;
    }
    if (rest_expected >= 5) {
        sum += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
        used++;
    }
    *df = used > 1 ? used - 1 : 1;
    return sum;
}

/* The value that the statistic exceeds with probability 1e-6 (Wilson and Hilferty; a little above the exact value). */
static inline double chi_square_limit(int df) {
    const double z = 4.7534, v = 2.0 / (9.0 * df);
    return df * pow(1 - v + z * sqrt(v), 3);
}

static inline bool chi_square_fits(const long *counts, const double *p, int cells, long n) {
    int df = 1;
    double x = chi_square(counts, p, cells, n, &df);
    return x <= chi_square_limit(df);
}
#endif
