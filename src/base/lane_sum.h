/* SPDX-License-Identifier: Apache-2.0 */
/* lane_sum.h - sums of long rows in eight lanes, so that the compiler vectorises them. The order is fixed: element i is in lane i % 8, the
 * last n % 8 come first, then the lanes from the first on. */
#ifndef HN_LANE_SUM_H
#define HN_LANE_SUM_H

enum { HN_SUM_LANES = 8 };

static inline double hn_lane_sum(const double *x, int n) {
    double lane[HN_SUM_LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + HN_SUM_LANES <= n; i += HN_SUM_LANES)
        for (int j = 0; j < HN_SUM_LANES; j++) lane[j] += x[i + j];
    for (; i < n; i++) sum += x[i];
    for (int j = 0; j < HN_SUM_LANES; j++) sum += lane[j];
    return sum;
}

static inline double hn_lane_sum_floats(const float *x, int n) {
    double lane[HN_SUM_LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + HN_SUM_LANES <= n; i += HN_SUM_LANES)
        for (int j = 0; j < HN_SUM_LANES; j++) lane[j] += (double)x[i + j];
    for (; i < n; i++) sum += (double)x[i];
    for (int j = 0; j < HN_SUM_LANES; j++) sum += lane[j];
    return sum;
}
#endif
