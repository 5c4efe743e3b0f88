/* SPDX-License-Identifier: Apache-2.0 */
/* largest.h - the largest of many numbers, by counting: four passes, whatever their values. */
#ifndef HN_LARGEST_H
#define HN_LARGEST_H
#include <stdint.h>

/* Numbers in the order of floats: a < b if and only if hn_order(a) < hn_order(b), -0 below 0; x is not NaN. */
static inline uint32_t hn_order(float x) {
    const union {
        float f;
        uint32_t u;
    } v = {x};
    return v.u & 0x80000000u ? ~v.u : v.u | 0x80000000u;
}

/* The largest of x[n], n of at least 1; by signed comparisons, which every machine has for several numbers at once. */
static inline uint32_t hn_largest_one(const uint32_t *x, int n) {
    const uint32_t sign = 0x80000000u;
    int32_t most = INT32_MIN;
    for (int i = 0; i < n; i++) {
        const int32_t one = (int32_t)(x[i] ^ sign);
        most = one > most ? one : most;
    }
    return (uint32_t)most ^ sign;
}

/* which[k] = the indices of the k largest of x[n], ascending; of equal ones the first. 1 <= k <= n. */
void hn_largest(const uint32_t *x, int n, int k, int32_t *which);

/* The same of numbers in groups of HN_LARGEST_GROUP, most[groups] the largest of each, in time for the groups alone. Overwrites x;
 * room [n]. */
enum { HN_LARGEST_GROUP = 16 };
void hn_largest_of_groups(uint32_t *x, int n, const uint32_t *most, int k, int32_t *which, int32_t *room);
#endif
