/* SPDX-License-Identifier: Apache-2.0 */
/* product_tile.h - what kernels of every level do alike, compiled with the flags of each: packing, and adding a tile to
 * C. */
#ifndef HN_PRODUCT_TILE_H
#define HN_PRODUCT_TILE_H
#include <stdint.h>
#include <string.h>

#include "train/product_kernels.h"

/* tile [..][width] to where it belongs. */
static inline void hn_tile_write(const hn_real *tile, int width, hn_tile_out out) {
    for (int i = 0; i < out.rows; i++) {
        const hn_real *from = tile + (size_t)i * (size_t)width;
        hn_real *to = out.c + (size_t)i * out.ld;
        if (!out.add)
            memcpy(to, from, (size_t)out.cols * sizeof *to);
        else
            for (int j = 0; j < out.cols; j++) to[j] += from[j];
    }
}

/* The strip of unrounded numbers, group 1. */
static inline void hn_pack_plain(hn_operand x, int first, int width, int k0, int n, int group, void *strip) {
    (void)group;
    hn_real *to = strip;
    const int there = x.outputs - first < width ? x.outputs - first : width;
    const hn_real *p = x.p + (size_t)first * x.across + (size_t)k0 * x.along;
    const size_t w = (size_t)width;
    if (there < width) memset(to, 0, (size_t)n * w * sizeof *to);
    if (x.across == 1)
        for (int k = 0; k < n; k++) memcpy(to + (size_t)k * w, p + (size_t)k * x.along, (size_t)there * sizeof *to);
    else
        for (int i = 0; i < there; i++)
            for (int k = 0; k < n; k++) to[(size_t)k * w + (size_t)i] = p[(size_t)i * x.across + (size_t)k];
}

/* To bf16: to nearest, ties to even. NaN stays NaN. */
static inline uint16_t hn_bf16_of(float f) {
    const union {
        float f;
        uint32_t u;
    } x = {f};
    return (uint16_t)(f != f ? 0x7FC0u : (x.u + 0x7FFFu + (x.u >> 16 & 1)) >> 16);
}

/* Outputs side by side in the matrix: two terms of all of them are woven into pairs. */
static inline void hn_pack_bf16_across(const hn_real *p, size_t along, int there, size_t w, int n, int group,
                                       uint32_t *to) {
    const int pairs = group / 2;
    uint32_t *at = to;
    for (int h = 0; h < (n + 1) / 2; h++) {
        const hn_real *lo = p + (size_t)(2 * h) * along, *hi = 2 * h + 1 < n ? lo + along : NULL;
        at = h % pairs ? at + 1 : to + (size_t)h * w; /* a group has `pairs` for each of w outputs */
        for (int i = 0; pairs == 1 && hi && i < there; i++)
            at[i] = (uint32_t)hn_bf16_of((float)lo[i]) | (uint32_t)hn_bf16_of((float)hi[i]) << 16;
        for (int i = 0; !(pairs == 1 && hi) && i < there; i++)
            at[i * pairs] = (uint32_t)hn_bf16_of((float)lo[i]) | (hi ? (uint32_t)hn_bf16_of((float)hi[i]) << 16 : 0);
    }
}

/* Terms side by side: a row is rounded as it is, then its groups go to their places. */
static inline void hn_pack_bf16_along(const hn_real *p, size_t across, int there, size_t w, int n, int group,
                                      uint32_t *to) {
    enum { MOST = 512 }; /* the depth of a slice */
    const int pairs = group / 2, groups = (n + group - 1) / group;
    union {
        uint16_t one[MOST];
        uint32_t pair[MOST / 2];
    } row;
    memset(row.one + n, 0, sizeof(uint16_t) * (size_t)(groups * group - n));
    for (int i = 0; i < there; i++) {
        for (int k = 0; k < n; k++) row.one[k] = hn_bf16_of((float)p[(size_t)i * across + (size_t)k]);
        for (int g = 0; pairs == 1 && g < groups; g++) to[(size_t)g * w + (size_t)i] = row.pair[g];
        for (int g = 0; pairs > 1 && g < groups; g++)
            memcpy(to + ((size_t)g * w + (size_t)i) * (size_t)pairs, row.pair + g * pairs,
                   sizeof(uint32_t) * (size_t)pairs);
    }
}

/* A strip of pairs of bf16, in groups of 2 or 32, filled up with zeros to a multiple of 32 terms. */
static inline void hn_pack_bf16(hn_operand x, int first, int width, int k0, int n, int group, void *strip) {
    const int there = x.outputs - first < width ? x.outputs - first : width;
    const hn_real *p = x.p + (size_t)first * x.across + (size_t)k0 * x.along;
    const size_t w = (size_t)width, filled = (size_t)((n + HN_MAX_GROUP - 1) / HN_MAX_GROUP * HN_MAX_GROUP);
    if (there < width || n % HN_MAX_GROUP != 0) memset(strip, 0, filled * w * sizeof(uint16_t));
    if (x.across == 1)
        hn_pack_bf16_across(p, x.along, there, w, n, group, strip);
    else
        hn_pack_bf16_along(p, x.across, there, w, n, group, strip);
}
#endif
