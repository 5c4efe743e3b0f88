/* SPDX-License-Identifier: Apache-2.0 */
/* check_delta_test.c - gated delta nets: the kernels at every level against ref, bit for bit; the operation against the recurrence
 * in double precision, over trees, batches and any number of threads; and rows that are absorbed later against rows that are
 * computed at once, bit for bit. */
#include "check.h"

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

static void one_gate(const struct hn_kernels *k, const char *name) {
    const int n = check_int(1, 100);
    check_buf b[4];
    float *x[4];
    for (int i = 0; i < 4; i++) x[i] = check_guarded(&b[i], n);
    const enum check_kind kind = check_any_kind();
    for (int glu = 0; glu < 2; glu++) {
        check_fill(x[0], n, kind);
        check_fill(x[1], n, USUAL);
        for (int i = 2; i < 4; i++) memcpy(x[i], x[0], (size_t)n * sizeof(float));
        (glu ? check_ref()->sigmoid_glu : check_ref()->swiglu)(x[2], x[1], n);
        (glu ? k->sigmoid_glu : k->swiglu)(x[3], x[1], n);
        check_same_row(x[3], x[2], n, name, glu);
        for (int i = 0; i < n && kind == USUAL; i++) {
            const double want = (double)x[1][i] * (glu ? 1 : (double)x[0][i]) / (1 + exp(-(double)x[0][i]));
            assert_true(fabs(x[2][i] - want) <= 1e-5 * fabs(want) + 1e-30);
        }
    }
    for (int i = 0; i < 4; i++) check_free(&b[i]);
}

/* The unit with limits; its value, gates of NaN included. */
static void one_clamped(const struct hn_kernels *k, const char *name) {
    const int n = check_int(1, 100);
    const float limit = check_int(0, 1) ? 7 : 0.5f, alpha = check_int(0, 1) ? 1.702f : 1;
    check_buf b[4];
    float *x[4];
    for (int i = 0; i < 4; i++) x[i] = check_guarded(&b[i], n);
    const enum check_kind kind = check_any_kind();
    check_fill(x[0], n, kind);
    check_fill(x[1], n, kind);
    for (int i = 0; i < n; i++) x[1][i] *= check_int(0, 1) ? 1 : 20;
    for (int i = 2; i < 4; i++) memcpy(x[i], x[0], (size_t)n * sizeof(float));
    check_ref()->clamped_glu(x[2], x[1], n, alpha, limit);
    k->clamped_glu(x[3], x[1], n, alpha, limit);
    check_same_row(x[3], x[2], n, name, 0);
    for (int i = 0; i < n; i++) {
        const double g = fmin((double)x[0][i], (double)limit), u = fmax(fmin((double)x[1][i], (double)limit), -(double)limit);
        const double want = (u + 1) * g / (1 + exp(-(double)alpha * g));
        if (isnan(x[0][i]) || isnan(x[1][i]))
            assert_true(isnan(x[2][i]));
        else if (kind == USUAL)
            assert_true(fabs((double)x[2][i] - want) <= 1e-5 * fabs(want) + 1e-6);
    }
    for (int i = 0; i < 4; i++) check_free(&b[i]);
}

static void one_convolution(const struct hn_kernels *k, const char *name) {
    const int taps = check_int(1, HN_MOST_TAPS), count = check_int(1, 100), ldw = count + check_int(0, 9);
    const bool biased = check_int(0, 1);
    check_buf bw, bc, ba, bb, bm[HN_MOST_TAPS];
    float *w = check_guarded(&bw, taps * ldw), *bias = check_guarded(&bc, count), *a = check_guarded(&ba, count),
          *b = check_guarded(&bb, count);
    const float *m[HN_MOST_TAPS];
    check_fill(w, taps * ldw, USUAL);
    check_fill(bias, count, USUAL);
    for (int t = 0; t < taps; t++) {
        float *row = check_guarded(&bm[t], count);
        check_fill(row, count, USUAL);
        m[t] = check_int(0, 4) ? row : NULL;
    }
    check_ref()->convolve(m, taps, w, ldw, biased ? bias : NULL, count, a);
    k->convolve(m, taps, w, ldw, biased ? bias : NULL, count, b);
    check_same_row(b, a, count, name, 0);
    for (int c = 0; c < count; c++) {
        double sum = biased ? (double)bias[c] : 0;
        for (int t = 0; t < taps; t++) sum += m[t] ? (double)w[t * ldw + c] * (double)m[t][c] : 0;
        assert_true(fabs(a[c] - sum / (1 + exp(-sum))) <= 1e-5);
    }
    for (int t = 0; t < taps; t++) check_free(&bm[t]);
    check_free(&bw);
    check_free(&bc);
    check_free(&ba);
    check_free(&bb);
}

static void one_dot(const struct hn_kernels *k, const char *name) {
    const int n = check_int(1, 300);
    check_buf bx, by;
    float *x = check_guarded(&bx, n), *y = check_guarded(&by, n);
    check_fill(x, n, check_any_kind());
    check_fill(y, n, USUAL);
    const float want = check_ref()->dot(x, y, n), have = k->dot(x, y, n);
    check_same_row(&have, &want, 1, name, 0);
    check_free(&bx);
    check_free(&by);
}

static void one_step(const struct hn_kernels *k, const char *name) {
    const int width = 16 * check_int(1, 4), dim = check_int(1, 130), size = width * dim, place = check_int(0, 2);
    check_buf b[9];
    float *from = check_guarded(&b[0], size), *to = check_guarded(&b[1], size), *other = check_guarded(&b[2], size),
          *kk = check_guarded(&b[3], dim), *q = check_guarded(&b[4], dim), *v = check_guarded(&b[5], width),
          *o = check_guarded(&b[6], width), *p = check_guarded(&b[7], width), *copy = check_guarded(&b[8], size);
    check_fill(from, size, check_int(0, 5) ? USUAL : check_any_kind());
    check_fill(kk, dim, USUAL);
    check_fill(q, dim, USUAL);
    check_fill(v, width, USUAL);
    memset(o, 0, (size_t)width * sizeof *o);
    memset(p, 0, (size_t)width * sizeof *p);
    hn_delta_step s = {from, place == 0 ? NULL : to, width, dim, kk, check_int(0, 3) ? q : NULL, v, o,
                       (float)check_unit(), (float)check_unit(), (float)check_normal()};
    check_ref()->delta_step(&s);
    memcpy(copy, from, (size_t)size * sizeof *from);
    s.o = p;
    s.to = place == 0 ? NULL : place == 1 ? other : copy;
    if (place == 2) s.from = copy; /* in place */
    k->delta_step(&s);
    check_same_row(p, o, width, name, place);
    if (place) check_same_row(s.to, to, size, name, place);
    for (int i = 0; i < 9; i++) check_free(&b[i]);
}

static void kernels_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int round = 0; round < 60; round++) {
            one_gate(hn_kernels_get(isa), hn_isa_name(isa));
            one_clamped(hn_kernels_get(isa), hn_isa_name(isa));
            one_convolution(hn_kernels_get(isa), hn_isa_name(isa));
            one_dot(hn_kernels_get(isa), hn_isa_name(isa));
            one_step(hn_kernels_get(isa), hn_isa_name(isa));
        }
}

/* ---- the operation ---------------------------------------------------------------------------------------------------------- */

enum { ROWS = 24, SEQS = 2, MOST_VALUES = 4 * 80, MOST_CHANNELS = 2 * 2 * 40 + MOST_VALUES };

/* One layer over a chain of rows of each of two texts. */
typedef struct bench {
    hn_delta d;
    hn_delta_job j;
    hn_row_walk w;
    int channels, values, pages;
    float m[SEQS][ROWS][MOST_CHANNELS], z[SEQS][ROWS][MOST_VALUES], a[SEQS][ROWS][4], b[SEQS][ROWS][4];
    int row[ROWS][SEQS]; /* of the pass */
} bench;

static float small(void) {
    return check_normal();
}

static void make_texts(bench *t) {
    for (int s = 0; s < SEQS; s++)
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < t->channels; c++) t->m[s][r][c] = small();
            for (int c = 0; c < t->values; c++) t->z[s][r][c] = small();
            for (int h = 0; h < t->d.value_heads; h++) {
                t->a[s][r][h] = small();
                t->b[s][r][h] = small();
            }
        }
}

static bench *open_bench(hn_backend *o) {
    bench *t = hn_zalloc(1, sizeof *t);
    const int key_heads = check_int(1, 2), each = check_int(1, 2);
    t->d = (hn_delta){.key_heads = key_heads, .value_heads = key_heads * each, .key_dim = check_int(1, 40),
                      .value_dim = check_int(1, 80), .taps = check_int(1, 5), .tiled = check_int(0, 1)};
    hn_delta *d = &t->d;
    t->channels = hn_delta_channels(d);
    t->values = hn_delta_values(d);
    d->conv = check_put_random(o, d->taps * t->channels);
    d->dt = check_put_random(o, d->value_heads);
    d->norm = (hn_norm){.w = check_put_random(o, d->value_dim), .kind = HN_RMS_NORM, .eps = 1e-6f};
    d->decay = check_put_random(o, d->value_heads);
    for (int h = 0; h < d->value_heads; h++) hn_host_f32(d->decay)[h] = -fabsf(hn_host_f32(d->decay)[h]) - 0.1f;
    t->w = (hn_row_walk){check_mem(o, SEQS * HN_WALK_STEPS * sizeof(hn_walk_step)), check_mem(o, (SEQS + 1) * sizeof(int32_t)),
                           check_mem(o, SEQS * sizeof(int32_t))};
    const size_t row = sizeof(float) * (size_t)(hn_delta_inputs(d) + 3), unit = sizeof(float) * (size_t)hn_delta_state(d);
    const size_t page = 2 * row > unit ? 2 * row : unit;
    t->pages = ROWS / 2 + d->value_heads;
    t->j = (hn_delta_job){.net = d, .walk = &t->w, .n_seqs = check_number(SEQS)};
    hn_buf pool = check_mem(o, page * (size_t)(SEQS * t->pages)), table = check_mem(o, SEQS * (size_t)t->pages * sizeof(int32_t));
    for (int i = 0; i < SEQS * t->pages; i++) ((int32_t *)hn_host(table))[i] = SEQS * t->pages - 1 - i;
    t->j.inputs = (hn_input_pages){pool, table, page, row, 0, 2, t->pages};
    t->j.states = (hn_state_pages){pool, hn_at(table, ROWS / 2 * sizeof(int32_t)), hn_at(table, ROWS / 2 * sizeof(int32_t)), page, unit, 0,
                                    1, t->pages};
    t->j.m = (hn_matrix){check_mem(o, sizeof(float) * HN_MAX_ROWS * (size_t)t->channels), t->channels, t->channels};
    t->j.z = (hn_matrix){check_mem(o, sizeof(float) * HN_MAX_ROWS * (size_t)t->values), t->values, t->values};
    t->j.a = (hn_matrix){check_mem(o, sizeof(float) * HN_MAX_ROWS * 4), d->value_heads, d->value_heads};
    t->j.b = (hn_matrix){check_mem(o, sizeof(float) * HN_MAX_ROWS * 4), d->value_heads, d->value_heads};
    t->j.scratch = check_mem(o, o->delta_scratch(o, d));
    make_texts(t);
    return t;
}

static void close_bench(hn_backend *o, bench *t) {
    const hn_buf all[] = {t->d.conv, t->d.dt, t->d.norm.w, t->d.decay, t->w.step, t->w.first, t->w.fresh, t->j.inputs.pool,
                          t->j.inputs.table, t->j.m.at, t->j.z.at, t->j.a.at, t->j.b.at, t->j.scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) o->mem_free(o, all[i].mem);
    hn_free(t);
}

static void fill_before(const bench *t, hn_walk_step *s, const int *slot_row, int slot) {
    for (int k = 0; k < HN_MOST_TAPS - 1; k++) {
        const int at = slot - 1 - k;
        s->before[k] = k >= t->d.taps - 1 || at < 0 ? HN_WALK_NONE : slot_row[at] >= 0 ? slot_row[at] : hn_walk_slot(at);
    }
}

static void run_delta(void *arg, int rank, int ranks) {
    const void *const *both = arg;
    const hn_backend *o = both[0];
    const hn_exec ex = {o->ops, o, rank, ranks};
    o->ops->delta(&ex, both[1]);
}

/* A pass: rows [absorbed, committed) of each text are absorbed, rows [committed, end) are new, the first `n_certain` of them go into the
 * state. out: [SEQS][ROWS][values], the new rows'. */
static void run_pass(hn_backend *o, bench *t, int absorbed, int committed, int end, int n_certain, float *out) {
    int n = 0, steps = 0;
    int32_t *first = hn_host(t->w.first), *fresh = hn_host(t->w.fresh);
    hn_walk_step *step = hn_host(t->w.step);
    for (int s = 0; s < SEQS; s++) {
        int slot_row[ROWS];
        first[s] = steps;
        fresh[s] = absorbed == 0;
        for (int r = 0; r < ROWS; r++) slot_row[r] = r >= committed && r < end ? n + r - committed : -1;
        for (int r = absorbed; r < end; r++) {
            const bool state = r < committed + n_certain;
            const int from = r <= committed + n_certain ? 0 : 1, to = state ? 0 : r + 1 < end ? 1 : HN_WALK_NONE;
            step[steps] = (hn_walk_step){slot_row[r], r, {0}, from, to};
            fill_before(t, &step[steps++], slot_row, r);
        }
        for (int r = committed; r < end; r++, n++) {
            memcpy(hn_host_row(t->j.m, n), t->m[s][r], (size_t)t->channels * sizeof(float));
            memcpy(hn_host_row(t->j.z, n), t->z[s][r], (size_t)t->values * sizeof(float));
            memcpy(hn_host_row(t->j.a, n), t->a[s][r], (size_t)t->j.a.cols * sizeof(float));
            memcpy(hn_host_row(t->j.b, n), t->b[s][r], (size_t)t->j.b.cols * sizeof(float));
        }
    }
    first[SEQS] = steps;
    const void *const both[2] = {o, &t->j};
    hn_pool_run(hn_cpu_of(o)->pool, run_delta, (void *)both);
    n = 0;
    for (int s = 0; s < SEQS; s++)
        for (int r = committed; r < end; r++, n++)
            memcpy(out + (size_t)(s * ROWS + r) * (size_t)t->values, hn_host_row(t->j.z, n), (size_t)t->values * sizeof(float));
}

static double tap_sum(const bench *t, int s, int r, int c) {
    const float *w = hn_host_f32(t->d.conv);
    double sum = 0;
    for (int k = 0; k < t->d.taps; k++) {
        const int at = r - t->d.taps + 1 + k;
        if (at >= 0) sum += (double)w[k * t->channels + c] * (double)t->m[s][at][c];
    }
    return sum / (1 + exp(-sum));
}

/* The rule of delta.h for one value head, in double precision. */
static void by_definition(const bench *t, int s, int h, double out[ROWS][80]) {
    const hn_delta *d = &t->d;
    const int keys = hn_delta_keys(d), kd = d->key_dim, vd = d->value_dim,
              key = d->tiled ? h % d->key_heads : h / (d->value_heads / d->key_heads);
    static double state[40][80];
    memset(state, 0, sizeof state);
    for (int r = 0; r < ROWS; r++) {
        double k[40], q[40], kk = 1e-6, qq = 1e-6, mean = 0;
        for (int i = 0; i < kd; i++) {
            q[i] = tap_sum(t, s, r, key * kd + i);
            k[i] = tap_sum(t, s, r, keys + key * kd + i);
            kk += k[i] * k[i];
            qq += q[i] * q[i];
        }
        const double beta = 1 / (1 + exp(-(double)t->b[s][r][h]));
        const double g = exp((double)hn_host_f32(d->decay)[h] * log1p(exp((double)t->a[s][r][h] + (double)hn_host_f32(d->dt)[h])));
        for (int j = 0; j < vd; j++) {
            double seen = 0;
            out[r][j] = 0;
            for (int i = 0; i < kd; i++) seen += (state[i][j] *= g) * k[i] / sqrt(kk);
            const double u = beta * (tap_sum(t, s, r, 2 * keys + h * vd + j) - seen);
            for (int i = 0; i < kd; i++) out[r][j] += (state[i][j] += u * k[i] / sqrt(kk)) * q[i] / sqrt(qq) / sqrt(kd);
            mean += out[r][j] * out[r][j] / vd;
        }
        for (int j = 0; j < vd; j++) {
            const double z = (double)t->z[s][r][h * vd + j];
            out[r][j] *= (double)hn_host_f32(d->norm.w)[j] / sqrt(mean + 1e-6) * z / (1 + exp(-z));
        }
    }
}

static void check_definition(const bench *t, const float *out) {
    static double want[ROWS][80];
    for (int s = 0; s < SEQS; s++)
        for (int h = 0; h < t->d.value_heads; h++) {
            by_definition(t, s, h, want);
            for (int r = 0; r < ROWS; r++)
                for (int j = 0; j < t->d.value_dim; j++) {
                    const double have = (double)out[(size_t)(s * ROWS + r) * (size_t)t->values + (size_t)(h * t->d.value_dim + j)];
                    if (!(fabs(have - want[r][j]) <= 2e-3 * (1 + fabs(want[r][j]))))
                        fail_msg("text %d, head %d, row %d, column %d: %g, expected %g", s, h, r, j, have, want[r][j]);
                }
        }
}

/* The bits do not depend on the cut into passes, nor on folding in the same or the next one. */
static void operation_test(void **state HN_UNUSED) {
    for (int round = 0; round < 40; round++) {
        check_ops c = check_open(check_int(1, 3), hn_isa_best(), true), ref = check_open(1, HN_ISA_REF, true);
        bench *t = open_bench(c.o);
        const size_t size = (size_t)(SEQS * ROWS * t->values);
        float *whole = hn_zalloc(size, sizeof *whole), *cut = hn_zalloc(size, sizeof *cut);
        run_pass(ref.o, t, 0, 0, ROWS, 0, whole);
        check_definition(t, whole);
        for (int at = 0, absorbed = 0; at < ROWS;) {
            const int most = at + check_int(1, 7), end = most < ROWS ? most : ROWS, keep = check_int(1, end - at);
            const int n_certain = check_int(0, keep);
            run_pass(c.o, t, absorbed, at, end, n_certain, cut); /* rows after `keep` are rolled back */
            absorbed = at + n_certain;
            at += keep;
        }
        check_same_row(cut, whole, (int)size, "rows cut into passes", round);
        hn_free(whole);
        hn_free(cut);
        close_bench(c.o, t);
        check_close(&c);
        check_close(&ref);
    }
}

int main(void) {
    check_seed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_test), cmocka_unit_test(operation_test)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
