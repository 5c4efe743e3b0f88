/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_avx2.c - the kernels of state space layers with AVX2 and FMA. Results: ref/ssm_ref.c, bit for bit. */
#include <immintrin.h>

#include "ops/kernels.h"
#include "ops/x86/math_avx2.h"

/* 16 columns, n rows: two vectors of each stay in registers. */
HN_INLINE void read_tile(const hn_ssm_read *r, int col, int first, int n) {
    __m256 sum[4][2];
    HN_UNROLL for (int i = 0; i < n; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    for (int d = 0; d < r->dim; d++) {
        const float *s = r->s + (size_t)d * (size_t)r->width + col;
        const __m256 low = _mm256_loadu_ps(s), high = _mm256_loadu_ps(s + 8);
        HN_UNROLL for (int i = 0; i < n; i++) {
            const __m256 c = _mm256_set1_ps(r->c[first + i][d]);
            sum[i][0] = _mm256_fmadd_ps(low, c, sum[i][0]);
            sum[i][1] = _mm256_fmadd_ps(high, c, sum[i][1]);
        }
    }
    HN_UNROLL for (int i = 0; i < n; i++) {
        float *y = r->y + (size_t)(first + i) * (size_t)r->width + col;
        _mm256_storeu_ps(y, sum[i][0]);
        _mm256_storeu_ps(y + 8, sum[i][1]);
    }
}

/* One row of all, or of 64 columns: eight chains of sums. */
HN_INLINE void read_row(const hn_ssm_read *r, int col, int row) {
    __m256 sum[8];
    HN_UNROLL for (int k = 0; k < 8; k++) sum[k] = _mm256_setzero_ps();
    for (int d = 0; d < r->dim; d++) {
        const float *s = r->s + (size_t)d * (size_t)r->width + col;
        const __m256 c = _mm256_set1_ps(r->c[row][d]);
        HN_UNROLL for (int k = 0; k < 8; k++) sum[k] = _mm256_fmadd_ps(_mm256_loadu_ps(s + 8 * k), c, sum[k]);
    }
    HN_UNROLL for (int k = 0; k < 8; k++) _mm256_storeu_ps(r->y + (size_t)row * (size_t)r->width + col + 8 * k, sum[k]);
}

static void ssm_read(const hn_ssm_read *r) {
    int i = 0;
    for (; i + 4 <= r->n; i += 4)
        for (int col = 0; col < r->width; col += 16) read_tile(r, col, i, 4);
    for (; i < r->n; i++) {
        int col = 0;
        for (; col + 64 <= r->width; col += 64) read_row(r, col, i);
        for (; col < r->width; col += 16) read_tile(r, col, i, 1);
    }
}

static void ssm_move(const hn_ssm_move *m) {
    for (int d = 0; d < m->dim; d++)
        for (int col = 0; col < m->width; col += 16) {
            const size_t at = (size_t)d * (size_t)m->width + (size_t)col;
            __m256 low = _mm256_setzero_ps(), high = low;
            if (m->from) {
                low = _mm256_loadu_ps(m->from + at);
                high = _mm256_loadu_ps(m->from + at + 8);
            }
            for (int i = 0; i < m->n; i++) {
                const __m256 g = _mm256_set1_ps(m->g[i]), b = _mm256_set1_ps(m->b[i][d]);
                const float *u = m->u + (size_t)i * (size_t)m->width + col;
                low = _mm256_fmadd_ps(b, _mm256_loadu_ps(u), _mm256_mul_ps(g, low));
                high = _mm256_fmadd_ps(b, _mm256_loadu_ps(u + 8), _mm256_mul_ps(g, high));
            }
            _mm256_storeu_ps(m->to + at, low);
            _mm256_storeu_ps(m->to + at + 8, high);
        }
}

static void add_rows(const float *w, const float *const *x, int n, int count, float *y) {
    for (int j = 0; j < count; j += 8) {
        __m256 sum = hn_load_avx2(y + j, count - j);
        for (int i = 0; i < n; i++) sum = _mm256_fmadd_ps(_mm256_set1_ps(w[i]), hn_load_avx2(x[i] + j, count - j), sum);
        hn_store_avx2(y + j, count - j, sum);
    }
}

void hn_kernels_avx2_ssm(struct hn_kernels *k) {
    k->ssm_read = ssm_read;
    k->ssm_move = ssm_move;
    k->add_rows = add_rows;
}
