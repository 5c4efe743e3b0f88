/* SPDX-License-Identifier: Apache-2.0 */
/* check_q8_cache_test.c - products of bf16 over a Q8_0 cache, with scales of every kind: each level that has them against ref, copies and
 * products without a copy, bit for bit; products without a copy against products over the copy. */
#include "base/run_mode_for_tests.h"
#include "check.h"

enum { MOST_DIM = 128 };

/* One span of one head: chunk c is the rows from 16 c on of pages of page_rows. */
typedef struct span {
    int dim, page_rows;
    int8_t *k, *v;             /* [page][dim][page_rows], [page][page_rows][dim] */
    float *k_scale, *v_scale;  /* [page][dim / 32][page_rows], [page][page_rows][dim / 32] */
    uint16_t q[HN_CODE_QUERIES][MOST_DIM], e[HN_CODE_QUERIES][HN_KEY_SPAN];
    const uint16_t *rows[HN_CODE_QUERIES];
    hn_keys keys;
} span;

/* What kernels write. */
typedef struct results {
    _Alignas(64) unsigned char keys[HN_KEY_SPAN * MOST_DIM * 2 + 64], values[HN_KEY_SPAN * MOST_DIM * 2 + 64];
    float s[HN_CODE_QUERIES][HN_KEY_SPAN], o[HN_CODE_QUERIES][MOST_DIM];
} results;

static span *span_draw(void) {
    span *x = hn_zalloc(1, sizeof *x);
    const enum check_kind kind = check_any_kind();
    x->dim = HN_KV_SCALED * check_int(1, 4);
    x->page_rows = HN_KEY_CHUNK << check_int(0, 4);
    const size_t count = (size_t)x->dim * HN_KEY_SPAN;
    x->k = hn_alloc(count);
    x->v = hn_alloc(count);
    x->k_scale = hn_alloc(count / HN_KV_SCALED * sizeof(float));
    x->v_scale = hn_alloc(count / HN_KV_SCALED * sizeof(float));
    for (size_t i = 0; i < count; i++) x->k[i] = (int8_t)check_int(-127, 127);
    for (size_t i = 0; i < count; i++) x->v[i] = (int8_t)check_int(-127, 127);
    check_fill(x->k_scale, (int)count / HN_KV_SCALED, kind);
    check_fill(x->v_scale, (int)count / HN_KV_SCALED, kind);
    for (int i = 0; i < HN_CODE_QUERIES; i++) {
        for (int d = 0; d < x->dim; d++) x->q[i][d] = hn_f32_to_bf16(check_value(check_int(0, 3) ? USUAL : kind));
        for (int p = 0; p < HN_KEY_SPAN; p++) x->e[i][p] = hn_f32_to_bf16((float)exp(-check_unit() * 90));
        x->rows[i] = x->q[i];
    }
    for (int c = 0; c < HN_KEY_CHUNKS; c++) {
        const int page = c * HN_KEY_CHUNK / x->page_rows, row = c * HN_KEY_CHUNK % x->page_rows, at = page * x->page_rows;
        x->keys.k[c] = x->k + at * x->dim + row;
        x->keys.v[c] = x->v + (at + row) * x->dim;
        x->keys.k_scale[c] = x->k_scale + at * (x->dim / HN_KV_SCALED) + row;
        x->keys.v_scale[c] = x->v_scale + (at + row) * (x->dim / HN_KV_SCALED);
        x->keys.k_stride[c] = x->page_rows;
    }
    x->keys.codes = true;
    return x;
}

static void span_free(span *x) {
    hn_free(x->k);
    hn_free(x->v);
    hn_free(x->k_scale);
    hn_free(x->v_scale);
    hn_free(x);
}

/* Positions [lo, hi) for values, the chunks that have them for the rest. */
static void run(const struct hn_kernels *k, const span *x, int lo, int hi, int nq, results *y) {
    const int c0 = lo / HN_KEY_CHUNK, c1 = (hi + HN_KEY_CHUNK - 1) / HN_KEY_CHUNK;
    memset(y, CHECK_BYTE, sizeof *y);
    for (int i = 0; i < HN_CODE_QUERIES; i++)
        for (int d = 0; d < MOST_DIM; d++) y->o[i][d] = (float)(i - d);
    k->keys_q8_to_bf16(&x->keys, c0, c1, x->dim, y->keys);
    k->values_q8_to_bf16(&x->keys, c0, c1, x->dim, y->values);
    k->scores_q8_bf16(&x->keys, c0, c1, x->rows, nq, x->dim, 0.3f, y->s[0]);
    k->values_q8_bf16(&x->keys, lo, hi, x->e[0], nq, x->dim, y->o[0], MOST_DIM);
}

/* The same by products over the copies. */
static void run_copies(const struct hn_kernels *k, const span *x, int lo, int hi, int nq, results *y) {
    const int c0 = lo / HN_KEY_CHUNK, c1 = (hi + HN_KEY_CHUNK - 1) / HN_KEY_CHUNK;
    const size_t chunk = hn_kv_bytes(HN_BF16, x->dim, HN_KEY_CHUNK);
    hn_keys keys = {.ahead = NULL};
    for (int c = c0; c < c1; c++) {
        keys.k[c] = y->keys + chunk * (size_t)(c - c0);
        keys.v[c] = y->values + chunk * (size_t)(c - c0);
        keys.k_stride[c] = HN_KEY_CHUNK;
    }
    k->scores_bf16(&keys, c0, c1, x->rows, nq, x->dim, 0.3f, y->s[0]);
    for (int i = 0; i < HN_CODE_QUERIES; i++)
        for (int d = 0; d < MOST_DIM; d++) y->o[i][d] = (float)(i - d);
    k->values_bf16(&keys, lo, hi, x->e[0], nq, x->dim, y->o[0], MOST_DIM);
}

static void check_halves(const unsigned char *got, const unsigned char *want, const char *what, int round) {
    for (size_t i = 0; i < HN_KEY_SPAN * MOST_DIM + 32; i++) {
        uint16_t a, b;
        memcpy(&a, got + 2 * i, sizeof a);
        memcpy(&b, want + 2 * i, sizeof b);
        if (!check_same(hn_bf16_to_f32(a), hn_bf16_to_f32(b)))
            fail_msg("%s, round %d: number %zu is %x, expected %x", what, round, i, a, b);
    }
}

static void check_results(const results *got, const results *want, const char *level, int round) {
    check_halves(got->keys, want->keys, level, round);
    check_halves(got->values, want->values, level, round);
    check_same_row(got->s[0], want->s[0], HN_CODE_QUERIES * HN_KEY_SPAN, level, round);
    check_same_row(got->o[0], want->o[0], HN_CODE_QUERIES * MOST_DIM, level, round);
}

static void kernels_test(void **state HN_UNUSED) {
    results *want = hn_alloc(sizeof *want), *got = hn_alloc(sizeof *got), *copies = hn_alloc(sizeof *copies);
    for (int round = 0; round < 60 / test_every(1, 6); round++) {
        span *x = span_draw();
        const int lo = check_int(0, HN_KEY_SPAN - 1), hi = check_int(lo + 1, HN_KEY_SPAN), nq = check_int(1, HN_CODE_QUERIES);
        run(hn_kernels_get(HN_ISA_REF), x, lo, hi, nq, want);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            const struct hn_kernels *k = hn_kernels_get(isa);
            run(k, x, lo, hi, nq, got);
            check_results(got, want, hn_isa_name(isa), round);
            if (k->sums_of_tiles) continue; /* has copies alone, with other sums */
            *copies = *got;
            run_copies(k, x, lo, hi, nq, copies);
            check_results(copies, want, "copies", round);
        }
        span_free(x);
    }
    hn_free(want);
    hn_free(got);
    hn_free(copies);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_test)};
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
