/* SPDX-License-Identifier: Apache-2.0 */
/* largest.c - see largest.h: the k-th largest number is found by its upper half, then among those by its lower half. */
#include "model/largest.h"

#include <string.h>

/* The largest bin with `k` counts in it and those above; *k: how many of it. */
static uint32_t bin_of(const int32_t *counts, int *k) {
    uint32_t bin = HN_LARGEST_COUNTS - 1;
    while (counts[bin] < *k) *k -= counts[bin--];
    return bin;
}

void hn_largest(const uint32_t *x, int n, int k, int32_t *which, int32_t counts[HN_LARGEST_COUNTS]) {
    const size_t bytes = HN_LARGEST_COUNTS * sizeof *counts;
    int left = k, m = 0;
    memset(counts, 0, bytes);
    for (int i = 0; i < n; i++) counts[x[i] >> 16]++;
    const uint32_t upper = bin_of(counts, &left);
    memset(counts, 0, bytes);
    for (int i = 0; i < n; i++)
        if (x[i] >> 16 == upper) counts[x[i] & 0xffff]++;
    const uint32_t least = upper << 16 | bin_of(counts, &left);
    for (int i = 0; m < k; i++)
        if (x[i] > least || (x[i] == least && left-- > 0)) which[m++] = i;
}
