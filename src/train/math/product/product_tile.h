/* SPDX-License-Identifier: Apache-2.0 */
/* product_tile.h - code shared by kernels of every level, compiled with the flags of each: packing, and adding a tile to C. */
#ifndef HN_PRODUCT_TILE_H
#define HN_PRODUCT_TILE_H
#include <string.h>

#include "train/math/product/product_kernels.h"

/* Writes tile [..][width] to its destination. */
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
#endif
