/* SPDX-License-Identifier: Apache-2.0 */
/* speedup.c - see speedup.h. */
#include "plan/speedup.h"

#include <math.h>

double hn_speedup_tokens(double a, int k) {
    double sum = 1, reach = 1;
    for (int i = 0; i < k; i++) sum += reach *= a;
    return sum;
}

double hn_speedup_factor(double a, int k, double c, double v) {
    return hn_speedup_tokens(a, k) / (k * c + v);
}

double hn_speedup_operations(double a, int k, double c_op) {
    return (k * c_op + k + 1) / hn_speedup_tokens(a, k);
}

double hn_speedup_rate(double r, int k) {
    double low = 0, high = 1;
    if (!(r > 0) || k < 1) return 0;
    for (int i = 0; i < 60; i++) { /* the sum grows with the rate */
        const double a = (low + high) / 2;
        *(hn_speedup_tokens(a, k) - 1 < r * k ? &low : &high) = a;
    }
    return (low + high) / 2;
}

double hn_speedup_cost(double factor, double r, double k) {
    return ((1 + r * k) / factor - 1) / k;
}

int hn_speedup_depth(double a, double c, int most) {
    int best = 0;
    double factor = 1;
    for (int k = 1; k <= most; k++) {
        const double f = hn_speedup_factor(a, k, c, 1);
        if (f > factor) best = k, factor = f;
    }
    return best;
}

double hn_speedup_experts(int count, int used, double n) {
    return count * (1 - pow(1 - (double)used / count, n));
}
