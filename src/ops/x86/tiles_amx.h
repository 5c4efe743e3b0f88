/* SPDX-License-Identifier: Apache-2.0 */
/* tiles_amx.h - operations on tiles, as instructions. Tiles are literal numbers.
 *
 * Not the compiler's intrinsics: those of gcc 12 do not declare the memory that they read, so that stores to it may be
 * moved after them. These keep their order among the program's stores.
 */
#ifndef HN_TILES_AMX_H
#define HN_TILES_AMX_H
#include <string.h>

#include "ops/x86/tiles.h"

/* Gives this thread's tiles the shapes `want`, if they have others: loading shapes takes 200 cycles and clears all
 * tiles, storing them 20. The contents of tiles are undefined afterwards. */
static inline void hn_tiles_shape(const hn_tile_config *want) {
    hn_tile_config now;
    __asm__ volatile("sttilecfg %0" : "=m"(now));
    if (memcmp(&now, want, sizeof now) != 0) __asm__ volatile("ldtilecfg %0" : : "m"(*want));
}

/* Loads or stores the tile's rows at p, `stride` bytes apart. */
#define hn_tile_load(tile, p, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(p), "r"((size_t)(stride)) : "memory")
#define hn_tile_store(tile, p, stride) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(p), "r"((size_t)(stride)) : "memory")

#define hn_tile_zero(tile) __asm__ volatile("tilezero %%tmm" #tile : :)

/* sum[i][o] += sum over quads r and c < 4 of a[i][4r + c] * b[r][4o + c], in 32 bits. a is signed; b too, or unsigned. */
#define hn_tile_dot_signed(sum, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)
#define hn_tile_dot_unsigned(sum, a, b) __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)

/* sum[i][o] += the sum of first + the sum of second products of the pairs r of bf16: a[i][2r] * b[r][2o], a[i][2r + 1] * b[r][2o + 1],
 * both added one after another by fma. Denormals are zero everywhere, sums are rounded to nearest even whatever MXCSR says. */
#define hn_tile_dot_bf16(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)
#endif
