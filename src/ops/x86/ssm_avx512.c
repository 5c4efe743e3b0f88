/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_avx512.c - the kernels of state space layers with AVX-512. Results: ref/ssm_ref.c, bit for bit. */
#include <immintrin.h>

#include "ops/kernels.h"

/* v vectors of columns, n rows. */
HN_INLINE void read_tile(const hn_ssm_read *r, int col, int v, int first, int n) {
    __m512 sum[4][4];
    HN_UNROLL for (int i = 0; i < n; i++)
        HN_UNROLL for (int k = 0; k < v; k++) sum[i][k] = _mm512_setzero_ps();
    for (int d = 0; d < r->dim; d++) {
        const float *s = r->s + (size_t)d * (size_t)r->width + col;
        __m512 part[4];
        HN_UNROLL for (int k = 0; k < v; k++) part[k] = _mm512_loadu_ps(s + 16 * k);
        HN_UNROLL for (int i = 0; i < n; i++) {
            const __m512 c = _mm512_set1_ps(r->c[first + i][d]);
            HN_UNROLL for (int k = 0; k < v; k++) sum[i][k] = _mm512_fmadd_ps(part[k], c, sum[i][k]);
        }
    }
    HN_UNROLL for (int i = 0; i < n; i++)
        HN_UNROLL for (int k = 0; k < v; k++)
            _mm512_storeu_ps(r->y + (size_t)(first + i) * (size_t)r->width + col + 16 * k, sum[i][k]);
}

HN_INLINE void read_columns(const hn_ssm_read *r, int col, int v) {
    int i = 0;
    for (; i + 4 <= r->n; i += 4) read_tile(r, col, v, i, 4);
    switch (r->n - i) {
    case 3: read_tile(r, col, v, i, 3); return;
    case 2: read_tile(r, col, v, i, 2); return;
    case 1: read_tile(r, col, v, i, 1); return;
    default: return;
    }
}

static void ssm_read(const hn_ssm_read *r) {
    int col = 0;
    for (; col + 64 <= r->width; col += 64) read_columns(r, col, 4);
    switch ((r->width - col) / 16) {
    case 3: read_columns(r, col, 3); return;
    case 2: read_columns(r, col, 2); return;
    case 1: read_columns(r, col, 1); return;
    default: return;
    }
}

/* Two rows of the state at a time hide the latency of each row's steps. */
HN_INLINE void move_tile(const hn_ssm_move *m, int col, int v, int d, int n) {
    __m512 s[2][4];
    HN_UNROLL for (int k = 0; k < n; k++)
        HN_UNROLL for (int c = 0; c < v; c++) {
            const size_t at = (size_t)(d + k) * (size_t)m->width + (size_t)(col + 16 * c);
            s[k][c] = m->from ? _mm512_loadu_ps(m->from + at) : _mm512_setzero_ps();
        }
    for (int i = 0; i < m->n; i++) {
        const __m512 g = _mm512_set1_ps(m->g[i]);
        const float *u = m->u + (size_t)i * (size_t)m->width + col;
        HN_UNROLL for (int k = 0; k < n; k++) {
            const __m512 b = _mm512_set1_ps(m->b[i][d + k]);
            HN_UNROLL for (int c = 0; c < v; c++)
                s[k][c] = _mm512_fmadd_ps(b, _mm512_loadu_ps(u + 16 * c), _mm512_mul_ps(g, s[k][c]));
        }
    }
    HN_UNROLL for (int k = 0; k < n; k++)
        HN_UNROLL for (int c = 0; c < v; c++)
            _mm512_storeu_ps(m->to + (size_t)(d + k) * (size_t)m->width + (size_t)(col + 16 * c), s[k][c]);
}

HN_INLINE void move_columns(const hn_ssm_move *m, int col, int v) {
    int d = 0;
    for (; d + 2 <= m->dim; d += 2) move_tile(m, col, v, d, 2);
    if (d < m->dim) move_tile(m, col, v, d, 1);
}

static void ssm_move(const hn_ssm_move *m) {
    int col = 0;
    for (; col + 64 <= m->width; col += 64) move_columns(m, col, 4);
    switch ((m->width - col) / 16) {
    case 3: move_columns(m, col, 3); return;
    case 2: move_columns(m, col, 2); return;
    case 1: move_columns(m, col, 1); return;
    default: return;
    }
}

static void add_rows(const float *w, const float *const *x, int n, int count, float *y) {
    int j = 0;
    for (; j + 64 <= count; j += 64) {
        __m512 sum[4];
        HN_UNROLL for (int k = 0; k < 4; k++) sum[k] = _mm512_loadu_ps(y + j + 16 * k);
        for (int i = 0; i < n; i++) {
            const __m512 a = _mm512_set1_ps(w[i]);
            HN_UNROLL for (int k = 0; k < 4; k++) sum[k] = _mm512_fmadd_ps(a, _mm512_loadu_ps(x[i] + j + 16 * k), sum[k]);
        }
        HN_UNROLL for (int k = 0; k < 4; k++) _mm512_storeu_ps(y + j + 16 * k, sum[k]);
    }
    for (; j < count; j += 16) {
        const __mmask16 lanes = count - j >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << (count - j)) - 1);
        __m512 sum = _mm512_maskz_loadu_ps(lanes, y + j);
        for (int i = 0; i < n; i++) sum = _mm512_fmadd_ps(_mm512_set1_ps(w[i]), _mm512_maskz_loadu_ps(lanes, x[i] + j), sum);
        _mm512_mask_storeu_ps(y + j, lanes, sum);
    }
}

void hn_kernels_avx512_ssm(struct hn_kernels *k) {
    k->ssm_read = ssm_read;
    k->ssm_move = ssm_move;
    k->add_rows = add_rows;
}
