/* SPDX-License-Identifier: Apache-2.0 */
/* product_kernels.h - a level's part of a matrix product: its tile, the packing of operands, and its inner loop.
 *
 * A strip holds `width` rows (of A) or columns (of B) of a slice of the sum, `group` consecutive terms of each side by
 * side:
 *     strip[k / group][i][k % group]      i < width, k < depth; zero outside of the matrix
 * so that f32 (group 1) reads a vector per term, pairs of bf16 (2) a vector per pair, and tiles of AMX (A in groups of 32) a row. */
#ifndef HN_PRODUCT_KERNELS_H
#define HN_PRODUCT_KERNELS_H
#include "train/math/workers.h"

/* One operand, seen as [outputs][terms of the sum]: element (i, k) is p[i * across + k * along]. One stride is 1. */
typedef struct hn_operand {
    const hn_real *p;
    size_t across, along;
    int outputs;
} hn_operand;

/* The destination of a tile: rows x cols of C, which may be smaller than the tile. */
typedef struct hn_tile_out {
    hn_real *c;
    size_t ld;
    int rows, cols;
    bool add;
} hn_tile_out;

enum { HN_MAX_GROUP = 32 };

typedef struct hn_product_kernel {
    hn_isa isa;
    hn_products products;
    int rows, cols;       /* of a tile: width of the strips of A and of B */
    int group_a, group_b; /* terms side by side */
    int depth;            /* terms of a slice: fixes the order of the sum */
    size_t bytes;         /* of a packed number */
    /* Packs terms [k0, k0 + n) of the outputs from `first` on, `width` of them, filled up to whole groups of
     * HN_MAX_GROUP terms where group > 1. */
    void (*pack)(hn_operand x, int first, int width, int k0, int n, int group, void *strip);
    /* out (+)= the product of two strips of n terms. */
    void (*tile)(int n, const void *a, const void *b, hn_tile_out out);
} hn_product_kernel;

extern const hn_product_kernel hn_product_ref;
#if defined(__x86_64__) && !defined(HN_TRAIN_DOUBLE)
extern const hn_product_kernel hn_product_avx2, hn_product_avx512, hn_product_avx512bf16, hn_product_amx;
#endif

/* The best kernel of a level or of the levels below; NULL: none (for bf16). */
const hn_product_kernel *hn_product_kernel_of(hn_isa isa, hn_products products);

/* Bytes of the packed operands of one slice. */
typedef struct hn_product_room {
    size_t a, b;
} hn_product_room;
hn_product_room hn_product_room_of(const hn_product_kernel *k);    /* of hn_product */
hn_product_room hn_product_room_alone(const hn_product_kernel *k); /* of hn_product_alone */
#endif
