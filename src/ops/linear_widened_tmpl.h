/* SPDX-License-Identifier: Apache-2.0 */
/* linear_widened_tmpl.h - products with float rows for levels that widen weights to f32 first, a group of inputs at a
 * time, into the L1 cache. Included by a level's file after its
 *   FLOAT_ROWS    most rows a tile
 *   float_tiles   [log2 of strips][rows], NULL if there are not enough registers for the sums; one strip always
 *   widen         inputs [k, k + count) of a strip as f32 [count][16]; k a multiple of 64. Scratch holds a group
 *   widen_pairs   `count` inputs of BF16, even; swap 1: the two of a pair swapped */

/* One widened chunk of all strips for `rows` rows: as many strips at once as there is a tile for, to hide the latency of the sums. */
static void float_chunk(const float *const *w, int strips, int rows, const float *x, size_t x_stride, int count,
                        float *c, size_t c_stride) {
    for (int s = 0; s < strips;) {
        int wide = 2;
        while (s + (1 << wide) > strips || !float_tiles[wide][rows]) wide--;
        float_tiles[wide][rows](w + s, x, x_stride, count, c + c_stride * (size_t)s, c_stride);
        s += 1 << wide;
    }
}

static void strips_f32(hn_dtype t, const hn_strips_job *j) {
    _Alignas(64) float scratch[HN_CALL_STRIPS][HN_GROUP * HN_STRIP];
    size_t x_stride = j->x_stride / sizeof(float), c_stride = (size_t)j->n * HN_STRIP;
    int parts = (j->n + FLOAT_ROWS - 1) / FLOAT_ROWS;
    memset(j->c, 0, (size_t)j->strips * c_stride * sizeof(float));
    for (int k = 0; k < j->in; k += HN_GROUP) {
        int count = j->in - k < HN_GROUP ? j->in - k : HN_GROUP;
        const float *w[HN_CALL_STRIPS];
        for (int s = 0; s < j->strips; s++) w[s] = widen(t, j->in, j->w[s], k, count, scratch[s]);
        for (int part = 0, row = 0; part < parts; part++) {
            int rows = j->n * (part + 1) / parts - row;
            float_chunk(w, j->strips, rows, (const float *)j->x + x_stride * (size_t)row + k, x_stride, count,
                        j->c + HN_STRIP * row, c_stride);
            row += rows;
        }
    }
}

/* BF16 rows against BF16 weights: both are widened with the two of each pair swapped, so that one chain in the order of
 * inputs is the chain of pairs. Called while small numbers are flushed to zero, so not inlined: a compiler may move
 * arithmetic, but no call, over a change of modes. */
static __attribute__((noinline)) void chains_bf16(const hn_strips_job *j) {
    _Alignas(64) float scratch[HN_CALL_STRIPS][HN_GROUP * HN_STRIP];
    float rows[FLOAT_ROWS][HN_GROUP];
    const size_t c_stride = (size_t)j->n * HN_STRIP;
    memset(j->c, 0, (size_t)j->strips * c_stride * sizeof(float));
    for (int k = 0; k < j->in; k += HN_GROUP) {
        const int left = (j->in - k + 1) / 2 * 2, count = left < HN_GROUP ? left : HN_GROUP;
        const float *w[HN_CALL_STRIPS];
        for (int s = 0; s < j->strips; s++) {
            widen_pairs(j->w[s] + (size_t)k * HN_STRIP * 2, count, 1, scratch[s]);
            w[s] = scratch[s];
        }
        for (int r = 0, n; r < j->n; r += n) {
            n = j->n - r < FLOAT_ROWS ? j->n - r : FLOAT_ROWS;
            for (int i = 0; i < n; i++) {
                hn_act_swapped_bf16((const uint16_t *)(j->x + j->x_stride * (size_t)(r + i)) + k, count, rows[i]);
            }
            float_chunk(w, j->strips, n, rows[0], HN_GROUP, count, j->c + HN_STRIP * r, c_stride);
        }
    }
}
