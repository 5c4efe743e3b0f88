/* SPDX-License-Identifier: Apache-2.0 */
/* product_tile.h - what kernels of every level do alike, compiled with the flags of each: packing, and adding a tile to C. */
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

/* Two numbers rounded to bf16, to nearest, ties to even; a the lower half. NaN stays NaN. */
static inline uint32_t hn_bf16_pair(float a, float b) {
    union { float f; uint32_t u; } x = {a}, y = {b};
    const uint32_t lo = a != a ? 0x7FC0u : (x.u + 0x7FFFu + (x.u >> 16 & 1)) >> 16;
    const uint32_t hi = b != b ? 0x7FC00000u : (y.u + 0x7FFFu + (y.u >> 16 & 1)) & 0xFFFF0000u;
    return lo | hi;
}

/* A strip of pairs of bf16, in groups of 2 or 32, filled up with zeros to a multiple of 32 terms. */
static inline void hn_pack_bf16(hn_operand x, int first, int width, int k0, int n, int group, void *strip) {
    uint32_t *to = strip; /* [k / group][i][pair of the group] */
    const int there = x.outputs - first < width ? x.outputs - first : width, pairs = group / 2;
    const int whole = n / 2, filled = (n + HN_MAX_GROUP - 1) / HN_MAX_GROUP * HN_MAX_GROUP / 2;
    const hn_real *p = x.p + (size_t)first * x.across + (size_t)k0 * x.along;
    const size_t w = (size_t)width, g = (size_t)pairs;
    if (there < width || n % HN_MAX_GROUP != 0) memset(to, 0, (size_t)filled * w * sizeof *to);
    for (int h = 0; x.across == 1 && h < (n + 1) / 2; h++) { /* outputs side by side */
        const hn_real *lo = p + (size_t)(2 * h) * x.along, *hi = h < whole ? lo + x.along : NULL;
        uint32_t *at = to + (size_t)(h / pairs) * w * g + (size_t)(h % pairs);
        if (pairs == 1 && hi)
            for (int i = 0; i < there; i++) at[i] = hn_bf16_pair((float)lo[i], (float)hi[i]);
        else
            for (int i = 0; i < there; i++) at[(size_t)i * g] = hn_bf16_pair((float)lo[i], hi ? (float)hi[i] : 0);
    }
    for (int i = 0; x.across != 1 && i < there; i++) { /* terms side by side */
        const hn_real *row = p + (size_t)i * x.across;
        for (int h = 0; h < whole; h++)
            to[((size_t)(h / pairs) * w + (size_t)i) * g + (size_t)(h % pairs)] =
                hn_bf16_pair((float)row[2 * h], (float)row[2 * h + 1]);
        if (n % 2) to[((size_t)(whole / pairs) * w + (size_t)i) * g + (size_t)(whole % pairs)] = hn_bf16_pair((float)row[n - 1], 0);
    }
}
#endif
