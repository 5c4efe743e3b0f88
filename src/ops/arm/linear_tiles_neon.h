/* SPDX-License-Identifier: Apache-2.0 */
/* linear_tiles_neon.h - products of block types with quantised rows, tile by tile, for all ARM levels.
 *
 * The rows of a tile are taken one by one or in pairs. A vector of sums holds a quarter of a strip: four outputs of a row;
 * or half a quarter of two rows, in smmla's order: output 0 of the first and the second row, then output 1. Integer sums of
 * a tile stay in registers for a block; float sums are kept in c.
 *
 * A file includes this once and defines before BY_PAIRS(T), whether a tile of T rows (even) takes them in pairs, and
 * PAIRS(t, P, codes, p, x, step, sum): as hn_dots_neon for rows, for P pairs and both vectors of each. x[i]: of a pair,
 * inputs 0..7 of the block of both rows, inputs 8..15 and so on. This defines strips_q8_Q4_0 and so on.
 */
#include "ops/arm/dots_neon.h"
#include "ops/kernels.h"

enum {
    TILE_ROWS = 8,   /* most rows a tile */
    CHUNK_GROUPS = 8 /* groups of a strip (whole superblocks) that all tiles of rows use before the next */
};

/* ---- rows and pairs ------------------------------------------------------------------------------------------------- */

/* Values of a row or pair for a block beside its codes, each in all lanes. */
typedef struct factors {
    float32x4_t d, ds;
    int32x4_t start[2], n4[2]; /* for each part: initial value of integer sums; sums for minimums of parts */
} factors;

HN_INLINE factors row_factors(const hn_dtype t, const hn_q8_group *x, const hn_q8_parts *parts, const int odd) {
    factors f = {.d = vdupq_n_f32(x->d[odd]), .ds = vdupq_n_f32(x->ds[odd])};
    HN_UNROLL for (int p = 0; p < 2; p++) {
        f.start[p] = vdupq_n_s32(hn_start_neon(t, x, parts, odd, p));
        f.n4[p] = hn_has_part_minimums(t) ? vdupq_n_s32(parts->n4[2 * odd + p]) : f.start[p];
    }
    return f;
}

HN_INLINE factors pair_factors(const factors *a, const factors *b) {
    factors f = {.d = vzip1q_f32(a->d, b->d), .ds = vzip1q_f32(a->ds, b->ds)};
    HN_UNROLL for (int p = 0; p < 2; p++) {
        f.start[p] = vzip1q_s32(a->start[p], b->start[p]);
        f.n4[p] = vzip1q_s32(a->n4[p], b->n4[p]);
    }
    return f;
}

/* A block of two rows: alternately eight inputs of each. */
HN_INLINE void interleave_rows(const int8_t *a, const int8_t *b, int8_t *to) {
    HN_UNROLL for (int p = 0; p < 2; p++, to += 2 * HN_PART) {
        const int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(a + HN_PART * p));
        const int64x2_t y = vreinterpretq_s64_s8(vld1q_s8(b + HN_PART * p));
        vst1q_s8(to, vreinterpretq_s8_s64(vzip1q_s64(x, y)));
        vst1q_s8(to + HN_PART, vreinterpretq_s8_s64(vzip2q_s64(x, y)));
    }
}

/* Values of four outputs for vector h of H. */
HN_INLINE float32x4_t spread(float32x4_t v, const int H, const int h) {
    return H == 1 ? v : h ? vzip2q_f32(v, v) : vzip1q_f32(v, v);
}
HN_INLINE int32x4_t spread_int(int32x4_t v, const int H, const int h) {
    return H == 1 ? v : h ? vzip2q_s32(v, v) : vzip1q_s32(v, v);
}

/* Converts sums of pairs of rows between their order in c and vectors of both rows. */
HN_INLINE void turn_pairs(const int T, float *c, const bool back) {
    HN_UNROLL for (int i = 0; i < T; i += 2) {
        HN_UNROLL for (int j = 0; j < HN_STRIP; j += 4) {
            float *a = c + HN_STRIP * i + j, *b = a + HN_STRIP;
            const float32x4_t x = vld1q_f32(a), y = vld1q_f32(b);
            vst1q_f32(a, back ? vuzp1q_f32(x, y) : vzip1q_f32(x, y));
            vst1q_f32(b, back ? vuzp2q_f32(x, y) : vzip2q_f32(x, y));
        }
    }
}

/* ---- a block ---------------------------------------------------------------------------------------------------------- */

/* Block b of a superblock, which is block `odd` of a group, for U rows (H = 1) or pairs (H = 2). */
typedef struct block_job {
    const unsigned char *super;
    int b;
    const int8_t *x[TILE_ROWS]; /* codes of each row or pair */
    factors by[TILE_ROWS];
} block_job;

/* sum[U][Q][H]: integer sums of Q quarters from j on; in types with parts times their scales. */
HN_INLINE void block_sums(const hn_dtype t, const int U, const int H, const int Q, const int j, const int odd,
                          const block_job *w, int32x4_t *sum) {
    const bool scaled = hn_has_parts(t);
    int32x4_t apart[4 * TILE_ROWS], *part = scaled ? apart : sum;
    HN_UNROLL for (int p = 0; p < 2; p++) {
        if (p == 0 || scaled) {
            HN_UNROLL for (int i = 0; i < U; i++) {
                HN_UNROLL for (int k = 0; k < Q * H; k++) part[i * Q * H + k] = w->by[i].start[p];
            }
        }
        HN_UNROLL for (int k = 0; k < Q; k++) {
            const unsigned char *codes = hn_codes_neon(t, w->super, w->b, j + k);
            if (H == 1) hn_dots_neon(t, U, codes, p, w->x, Q, part + k);
            if (H == 2) PAIRS(t, U, codes, p, w->x, 2 * Q, part + 2 * k);
            if (!scaled) continue;
            const int32x4_t s = hn_part_scale_neon(t, w->super, w->b, odd, p, j + k);
            HN_UNROLL for (int h = 0; h < H; h++) {
                const int32x4_t by = spread_int(s, H, h);
                HN_UNROLL for (int i = 0; i < U; i++) {
                    const int at = (i * Q + k) * H + h;
                    sum[at] = p ? vmlaq_s32(sum[at], part[at], by) : vmulq_s32(part[at], by);
                }
            }
        }
    }
}

/* c[U * H][16] continued with quarter j, whose integer sums are sum[step * i + h]. */
HN_INLINE void add_quarter(const hn_dtype t, const int U, const int H, const int j, const int odd, const block_job *w,
                           const int32x4_t *sum, const int step, float *c) {
    const float32x4_t d = hn_block_scale_neon(t, w->super, w->b, odd, j);
    const float32x4_t m = hn_has_minimum(t) ? hn_block_minimum_neon(t, w->super, w->b, odd, j) : d;
    HN_UNROLL for (int h = 0; h < H; h++) {
        const float32x4_t by = spread(d, H, h), least = spread(m, H, h);
        HN_UNROLL for (int i = 0; i < U; i++) {
            float *at = c + HN_STRIP * (i * H + h) + 4 * j;
            const factors *f = &w->by[i];
            float32x4_t acc = vfmaq_f32(vld1q_f32(at), vmulq_f32(vcvtq_f32_s32(sum[step * i + h]), by), f->d);
            if (hn_has_part_minimums(t)) {
                const int32x4_t m0 = spread_int(hn_part_minimum_neon(w->super, w->b, 0, j), H, h);
                const int32x4_t m1 = spread_int(hn_part_minimum_neon(w->super, w->b, 1, j), H, h);
                const float32x4_t msum = vcvtq_f32_s32(vmlaq_s32(vmulq_s32(m0, f->n4[0]), m1, f->n4[1]));
                acc = vfmaq_f32(acc, vmulq_f32(msum, vmulq_f32(least, vdupq_n_f32(0.25f))), f->d);
            } else if (hn_adds_minimum(t)) {
                acc = vfmaq_f32(acc, least, f->ds);
            } else if (hn_takes_minimum(t)) {
                acc = vfmsq_f32(acc, least, f->ds);
            }
            vst1q_f32(at, acc);
        }
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------------ */

/* An even number of rows a tile is best. */
#define TILE_END(row, n) ((row) < (n) ? ((row) + 1) / 2 * 2 : (n))
#include "ops/linear_walk_tmpl.h"

/* Quarters at once: as many as leave registers for the rows' operands. */
HN_INLINE int quarters(const hn_dtype t, const int T) { return T <= 2 ? 4 : hn_has_parts(t) && T > 4 ? 1 : 2; }

/* Group g of the tile: its two blocks. */
HN_INLINE void tile_group(const hn_dtype t, const int T, const int H, const tile_job *job, const unsigned char *super, int g) {
    const int Q = quarters(t, T);
    HN_UNROLL for (int odd = 0; odd < 2; odd++) {
        int8_t interleaved[TILE_ROWS][HN_BLOCK];
        block_job w = {.super = super, .b = 2 * g % (hn_layout_of(t).inputs / HN_BLOCK) + odd};
        HN_UNROLL for (int i = 0; i < T; i++) {
            const size_t row = job->x_stride * (size_t)i;
            const hn_q8_group *x = (const hn_q8_group *)(job->x + row) + g;
            const factors f = row_factors(t, x, (const hn_q8_parts *)(job->parts + row) + g, odd);
            const int8_t *q = x->q + HN_BLOCK * odd;
            if (H == 1) {
                w.by[i] = f;
                w.x[i] = q;
            } else if (i % 2 == 0) {
                w.by[i / 2] = f;
                w.x[i / 2] = q;
            } else {
                w.by[i / 2] = pair_factors(&w.by[i / 2], &f);
                interleave_rows(w.x[i / 2], q, interleaved[i - 1]);
                w.x[i / 2] = interleaved[i - 1];
            }
        }
        for (int j = 0; j < 4; j += Q) {
            int32x4_t sum[4 * TILE_ROWS];
            block_sums(t, T / H, H, Q, j, odd, &w, sum);
            HN_UNROLL for (int k = 0; k < Q; k++) add_quarter(t, T / H, H, j + k, odd, &w, sum + k * H, Q * H, job->c);
        }
    }
}

HN_INLINE void tile_q8(const hn_dtype t, const int T, const tile_job *job) {
    const hn_layout l = hn_layout_of(t);
    const int H = BY_PAIRS(T) ? 2 : 1;
    const unsigned char *w = job->w;
    if (H == 2) turn_pairs(T, job->c, false);
    for (int g = 0; g < job->groups; g++) {
        tile_group(t, T, H, job, w, g);
        if ((g + 1) % (l.inputs / HN_GROUP) == 0) w += hn_super_bytes(l);
    }
    if (H == 2) turn_pairs(T, job->c, true);
}

#define TILE(type, T)                                                                                                 \
    static __attribute__((noinline)) void tile_##type##_##T(const tile_job *j) { tile_q8(HN_##type, T, j); }
#define TILES(type, ...)                                                                                              \
    TILE(type, 1) TILE(type, 2) TILE(type, 3) TILE(type, 4) TILE(type, 5) TILE(type, 6) TILE(type, 7) TILE(type, 8)   \
    static void strips_q8_##type(const hn_strips_job *j) {                                                            \
        static tile_fn *const by_rows[TILE_ROWS + 1] = {                                                              \
            NULL,            tile_##type##_1, tile_##type##_2, tile_##type##_3, tile_##type##_4,                      \
            tile_##type##_5, tile_##type##_6, tile_##type##_7, tile_##type##_8};                                      \
        strips_q8(HN_##type, by_rows, j);                                                                             \
    }
HN_BLOCK_TYPES(TILES)
