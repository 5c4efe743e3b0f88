/* SPDX-License-Identifier: Apache-2.0 */
/* linear_tiles_neon.h - products of block types with quantised rows, tile by tile: what the ARM levels share.
 *
 * A file defines BLOCK_SUMS (as hn_block_dots_neon) and includes this once; it gets strips_q8_Q4_0 and so on. A lane is an
 * output, a quarter of a strip a register. Integer sums of a tile stay in registers for a block; float sums wait in c.
 */
#include "ops/arm/dots_neon.h"
#include "ops/kernels.h"

enum { CHUNK_GROUPS = 8 }; /* groups of a strip (whole superblocks) that all tiles of rows use before the next */

/* A quarter of a row's sums continued with one block. scales: d of both blocks of its group, then ds of both. */
HN_INLINE float32x4_t add_block(const hn_dtype t, float32x4_t acc, int32x4_t sum, float32x4_t d, float32x4_t m,
                                const int odd, float32x4_t scales) {
    acc = hn_fma_lane_neon(acc, vmulq_f32(vcvtq_f32_s32(sum), d), scales, odd);
    if (hn_adds_minimum(t)) return hn_fma_lane_neon(acc, m, scales, 2 + odd);
    if (hn_takes_minimum(t) && t != HN_Q2_K) return hn_fma_lane_neon(acc, vnegq_f32(m), scales, 2 + odd);
    return acc;
}

/* Of Q2_K: the minimum of both parts, dmin a quarter of the superblock's. */
HN_INLINE float32x4_t add_minimums(float32x4_t acc, const unsigned char *super, int b, const int j, float32x4_t dmin,
                                   const int odd, float32x4_t scales, const hn_q8_parts *parts) {
    int32x4_t sum = vmulq_n_s32(hn_part_minimum_neon(super, b, 0, j), parts->n4[2 * odd]);
    sum = vmlaq_n_s32(sum, hn_part_minimum_neon(super, b, 1, j), parts->n4[2 * odd + 1]);
    return hn_fma_lane_neon(acc, vmulq_f32(vcvtq_f32_s32(sum), dmin), scales, odd);
}

/* Block b of a superblock, which is block `odd` of a group, for T rows and Q quarters from j on; c[T][16] continued. */
HN_INLINE void block_q8(const hn_dtype t, const int T, const int Q, const int j, const unsigned char *super, int b,
                        const int odd, const hn_tile_rows *rows, float *c) {
    int32x4_t sum[4 * HN_TILE_ROWS];
    BLOCK_SUMS(t, T, Q, j, super, b, odd, rows, sum);
    HN_UNROLL for (int k = 0; k < Q; k++) {
        const float32x4_t d = hn_block_scale_neon(t, super, b, odd, j + k);
        float32x4_t m = d;
        if (hn_has_minimum(t)) m = hn_block_minimum_neon(t, super, b, odd, j + k);
        if (t == HN_Q2_K) m = vmulq_f32(m, vdupq_n_f32(0.25f));
        HN_UNROLL for (int i = 0; i < T; i++) {
            float *at = c + HN_STRIP * i + 4 * (j + k);
            const float32x4_t scales = vld1q_f32((const float *)((const unsigned char *)rows->x[i] + offsetof(hn_q8_group, d)));
            float32x4_t acc = add_block(t, vld1q_f32(at), sum[Q * i + k], d, m, odd, scales);
            if (t == HN_Q2_K) acc = add_minimums(acc, super, b, j + k, m, odd, scales, rows->parts[i]);
            vst1q_f32(at, acc);
        }
    }
}

/* A strip from a superblock on, and the rows from there on. */
typedef struct tile_job {
    const unsigned char *w, *x, *parts; /* parts are read of types that have them */
    size_t x_stride;
    int groups;
    float *c;
} tile_job;
typedef void tile_fn(const tile_job *j);

/* Quarters at once: as many as leave registers for what they are multiplied with. */
HN_INLINE int quarters(const hn_dtype t, const int T) { return T <= 2 ? 4 : hn_has_parts(t) && T > 4 ? 1 : 2; }

HN_INLINE void tile_q8(const hn_dtype t, const int T, const tile_job *job) {
    const hn_layout l = hn_layout_of(t);
    const int Q = quarters(t, T);
    const unsigned char *w = job->w, *x = job->x, *parts = job->parts;
    for (int g = 0; g < job->groups; g++, x += sizeof(hn_q8_group), parts += sizeof(hn_q8_parts)) {
        const int in_super = g % (l.inputs / HN_GROUP);
        hn_tile_rows rows;
        HN_UNROLL for (int i = 0; i < T; i++) {
            rows.x[i] = (const hn_q8_group *)(x + job->x_stride * (size_t)i);
            rows.parts[i] = (const hn_q8_parts *)(parts + job->x_stride * (size_t)i);
        }
        HN_UNROLL for (int b = 0; b < 2; b++) {
            for (int j = 0; j < 4; j += Q) block_q8(t, T, Q, j, w, 2 * in_super + b, b, &rows, job->c);
        }
        if (in_super == l.inputs / HN_GROUP - 1) w += hn_super_bytes(l);
    }
}

static void strips_q8(hn_dtype t, tile_fn *const *by_rows, const hn_strips_job *j) {
    const hn_layout l = hn_layout_of(t);
    int groups = hn_act_groups(j->in), tiles = (j->n + HN_TILE_ROWS - 1) / HN_TILE_ROWS;
    int step = tiles > 1 ? CHUNK_GROUPS : groups;
    memset(j->c, 0, (size_t)j->strips * (size_t)j->n * HN_STRIP * sizeof(float));
    for (int s = 0; s < j->strips; s++) {
        for (int g = 0; g < groups; g += step) {
            for (int part = 0, row = 0; part < tiles; part++) {
                int rows = j->n * (part + 1) / tiles - row;
                const unsigned char *x = j->x + j->x_stride * (size_t)row;
                by_rows[rows](&(tile_job){
                    .w = j->w[s] + hn_super_bytes(l) * (size_t)(g * HN_GROUP / l.inputs),
                    .x = x + sizeof(hn_q8_group) * (size_t)g,
                    .parts = x + hn_act_parts_off(j->in) + sizeof(hn_q8_parts) * (size_t)g,
                    .x_stride = j->x_stride,
                    .groups = groups - g < step ? groups - g : step,
                    .c = j->c + ((size_t)s * (size_t)j->n + (size_t)row) * HN_STRIP,
                });
                row += rows;
            }
        }
    }
}

#define TILE(type, T)                                                                                                 \
    static __attribute__((noinline)) void tile_##type##_##T(const tile_job *j) { tile_q8(HN_##type, T, j); }
#define TILES(type)                                                                                                   \
    TILE(type, 1) TILE(type, 2) TILE(type, 3) TILE(type, 4) TILE(type, 5) TILE(type, 6) TILE(type, 7) TILE(type, 8)   \
    static void strips_q8_##type(const hn_strips_job *j) {                                                            \
        static tile_fn *const by_rows[HN_TILE_ROWS + 1] = {                                                           \
            NULL,            tile_##type##_1, tile_##type##_2, tile_##type##_3, tile_##type##_4,                      \
            tile_##type##_5, tile_##type##_6, tile_##type##_7, tile_##type##_8};                                      \
        strips_q8(HN_##type, by_rows, j);                                                                             \
    }
HN_BLOCK_TYPES(TILES)
