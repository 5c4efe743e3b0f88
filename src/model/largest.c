/* SPDX-License-Identifier: Apache-2.0 */
/* largest.c - see largest.h: the k-th largest number is found digit by digit. */
#include "model/largest.h"

enum { DIGITS = 3, BINS = 1 << 11 };

/* The largest bin with `k` counts in it and those above; *k: how many of it. */
static uint32_t bin_of(const int32_t *counts, uint32_t last, int *k) {
    while (counts[last] < *k) *k -= counts[last--];
    return last;
}

void hn_largest(const uint32_t *x, int n, int k, int32_t *which) {
    static const int first[DIGITS] = {21, 10, 0}, bits[DIGITS] = {11, 11, 10};
    uint32_t least = 0, known = 0; /* its digits so far, and their bits */
    int left = k, m = 0;
    for (int d = 0; d < DIGITS; d++) {
        const uint32_t last = (1u << bits[d]) - 1;
        int32_t counts[BINS] = {0};
        for (int i = 0; i < n; i++)
            if ((x[i] & known) == least) counts[x[i] >> first[d] & last]++;
        least |= bin_of(counts, last, &left) << first[d];
        known |= last << first[d];
    }
    for (int i = 0; m < k; i++)
        if (x[i] > least || (x[i] == least && left-- > 0)) which[m++] = i;
}

/* So many groups have a number as large as the k-th largest of their largest ones: smaller numbers are none of the k. */
static uint32_t bound_of(const uint32_t *most, int groups, int k, int32_t *room) {
    uint32_t least = UINT32_MAX;
    if (groups <= k) return 0;
    hn_largest(most, groups, k, room);
    for (int i = 0; i < k; i++) least = most[room[i]] < least ? most[room[i]] : least;
    return least;
}

void hn_largest_of_groups(uint32_t *x, int n, const uint32_t *most, int k, int32_t *which, int32_t *room) {
    const int groups = (n + HN_LARGEST_GROUP - 1) / HN_LARGEST_GROUP;
    const uint32_t least = bound_of(most, groups, k, room);
    int m = 0;
    for (int g = 0; g < groups; g++) {
        const int first = g * HN_LARGEST_GROUP, end = first + HN_LARGEST_GROUP < n ? first + HN_LARGEST_GROUP : n;
        for (int i = first; most[g] >= least && i < end; i++)
            if (x[i] >= least) {
                x[m] = x[i]; /* m <= i */
                room[m++] = i;
            }
    }
    hn_largest(x, m, k, which);
    for (int i = 0; i < k; i++) which[i] = room[which[i]];
}
