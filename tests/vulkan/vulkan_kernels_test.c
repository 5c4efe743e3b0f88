/* SPDX-License-Identifier: Apache-2.0 */
/* vulkan_kernels_test.c - kernels of a device at odd sizes. Products, norms and inputs of products have the bits of the same sums in C: all
 * that they compute is exact or rounded to nearest, in one order (src/vulkan/shaders/common.glsl). Attention, angles and sums
 * are compared with double precision. Around each result are numbers that must stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "fixture.h"
#include "ops/kv.h"
#include "vulkan/vk_device.h"

enum { BYTES = 48 << 20, GUARD = 256 };
static const float guard_value = 12345.75f;

static hn_backend *device;
static hn_mem *mem;
static size_t used;
static uint64_t seed = 20261128;

static int below(int n) {
    return (int)(hn_splitmix(&seed) % (uint64_t)n);
}
static float number(void) {
    double s = 0;
    for (int i = 0; i < 4; i++) s += (double)(hn_splitmix(&seed) >> 11) * 0x1p-53 - 0.5;
    return (float)(s * 1.7);
}

/* A part of the memory, with guards around it. */
static hn_buf take(size_t bytes) {
    const size_t at = used + GUARD, all = (bytes + 2 * GUARD + 255) / 256 * 256;
    float *fill = malloc(all);
    for (size_t i = 0; i < all / 4; i++) fill[i] = guard_value;
    assert_true(used + all <= BYTES);
    device->write(device, (hn_buf){mem, used}, fill, all);
    free(fill);
    used += all;
    return (hn_buf){mem, at};
}

static void check_guards(hn_buf b, size_t bytes, const char *what) {
    const hn_buf from = {mem, b.off - GUARD};
    const unsigned char *p = device->read(device, (hn_ticket){0}, from, bytes + 2 * GUARD);
    float f;
    for (size_t i = 0; i < GUARD; i += 4) {
        memcpy(&f, p + i, 4);
        if (f != guard_value) fail_msg("%s wrote %zu bytes before its result", what, GUARD - i);
        memcpy(&f, p + GUARD + (bytes + 3) / 4 * 4 + i % (GUARD - 64), 4);
        if (f != guard_value) fail_msg("%s wrote behind its result", what);
    }
}

static hn_buf put(const void *x, size_t bytes) {
    const hn_buf b = take(bytes);
    device->write(device, b, x, bytes);
    return b;
}

static const float *get(hn_buf b, size_t n) {
    return device->read(device, (hn_ticket){0}, b, 4 * n);
}

static void same_bits(const float *a, const float *b, size_t n, const char *what) {
    for (size_t i = 0; i < n; i++) {
        uint32_t x, y;
        memcpy(&x, a + i, 4);
        memcpy(&y, b + i, 4);
        if (x != y && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s: number %zu is %.9g, expected %.9g", what, i, (double)a[i], (double)b[i]);
    }
}

/* ---- the arithmetic of common.glsl -------------------------------------------------------------------------------------- */

static float of_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static float reciprocal(float x) {
    float r = of_bits(0x7ef311c7u - bits_of(x));
    for (int i = 0; i < 4; i++) r = r * (2.0f - x * r);
    return r;
}

static float reciprocal_root(float x) {
    float r = of_bits(0x5f375a86u - (bits_of(x) >> 1));
    const float h = 0.5f * x;
    for (int i = 0; i < 4; i++) r = r * (1.5f - h * r * r);
    return r;
}

static float exponential(float x) {
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float k = (x * 1.44269502f + 12582912.0f) - 12582912.0f;
    float r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    float p = r * 1.38986113e-3f + 8.36345181e-3f;
    p = p * r + 4.16637734e-2f;
    p = p * r + 1.66665524e-1f;
    p = p * r + 5.0e-1f;
    return (1.0f + (p * (r * r) + r)) * of_bits((uint32_t)((int)k + 127) << 23);
}
static float swish(float x) {
    return x * reciprocal(1.0f + exponential(-x));
}

static float add_all(const float *part, int width) { /* sum.glsl */
    float eighth[8];
    for (int i = 0; i < 8; i++) {
        eighth[i] = part[i * width / 8];
        for (int k = 1; k < width / 8; k++) eighth[i] = eighth[i] + part[i * width / 8 + k];
    }
    float t = eighth[0];
    for (int i = 1; i < 8; i++) t = t + eighth[i];
    return t;
}

static void quantise_block(const float *x, int n, int8_t *codes, float *scale) {
    uint32_t top = 0;
    for (int i = 0; i < n; i++) top = (bits_of(x[i]) & 0x7fffffffu) > top ? bits_of(x[i]) & 0x7fffffffu : top;
    const bool usual = top < 0x7f800000u && top >= 0x0d800000u;
    const float inverse = 127.0f * reciprocal(of_bits(top));
    for (int i = 0; i < 32; i++) codes[i] = i < n && usual ? (int8_t)((x[i] * inverse + 12582912.0f) - 12582912.0f) : 0;
    *scale = top >= 0x7f800000u ? NAN : usual ? of_bits(top) * 7.874015718698501587e-3f : 0;
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

typedef struct product {
    hn_weight w;
    hn_act a;
    hn_matrix x, y;
    hn_count n;
    bool add;
} product;

static void run_product(const hn_exec *ex, const void *arg) {
    const product *p = arg;
    const hn_linear_out out = {&p->w, p->y};
    ex->ops->quantise(ex, p->n, p->x, p->a);
    ex->ops->linear(ex, p->n, p->a, &out, 1, p->add);
}

/* One output of a row: 32 runs of steps, each ascending, then the runs. */
static float expect_output(hn_dtype t, const unsigned char *row, const float *w, const float *x, int in, bool packed) {
    float run[32] = {0};
    const int steps = packed ? in / 32 : (in + 7) / 8;
    for (int s = 0; s < steps; s++) {
        float *sum = &run[s % 32];
        if (packed) {
            int8_t codes[32];
            float scale, d;
            int total = 0;
            uint16_t half;
            const unsigned char *block = row + (size_t)s * (size_t)hn_dtype_block_bytes(t);
            quantise_block(x + 32 * s, 32, codes, &scale);
            memcpy(&half, block, 2);
            d = hn_f16_to_f32(half);
            for (int i = 0; i < 32; i++)
                total +=
                    codes[i] * (t == HN_Q4_0 ? (block[2 + i % 16] >> (i < 16 ? 0 : 4) & 15) - 8 : (int8_t)block[2 + i]);
            *sum = *sum + ((float)total * d) * scale;
        } else {
            for (int i = 8 * s; i < 8 * s + 8 && i < in; i++) *sum = *sum + w[i] * x[i];
        }
    }
    float t0 = run[0];
    for (int i = 1; i < 32; i++) t0 = t0 + run[i];
    return t0;
}

static void check_product(hn_dtype t, int out, int in, int n, bool f32, bool add) {
    size_t row_bytes;
    assert_true(hn_dtype_row_bytes(t, (uint64_t)in, &row_bytes));
    unsigned char *stored = calloc((size_t)(out + 16), row_bytes);
    float *row = malloc(sizeof *row * (size_t)in), *x = malloc(sizeof *x * (size_t)in * (size_t)n),
          *w = malloc(sizeof *w * (size_t)in * (size_t)out);
    const int ld = out + below(20), ldx = in + below(9);
    float *want = malloc(sizeof *want * (size_t)ld * (size_t)n),
          *before = malloc(sizeof *before * (size_t)ld * (size_t)n);
    char what[100];
    snprintf(what, sizeof what, "%s, %d outputs of %d, %d rows%s%s", hn_dtype_name(t), out, in, n, f32 ? ", f32" : "",
             add ? ", added" : "");
    used = 0;
    for (int o = 0; o < out; o++) {
        for (int i = 0; i < in; i++) row[i] = number();
        hn_quantise(t, row, (size_t)in, stored + row_bytes * (size_t)o);
        hn_dequantise(t, stored + row_bytes * (size_t)o, (size_t)in, w + (size_t)in * (size_t)o);
    }
    hn_backend *b = NULL;
    hunch_error err;
    assert_int_equal(device->open_like(device, f32, &b, &err), HUNCH_OK);
    const size_t bytes = b->matrix_bytes(b, t, out, in), act = b->act_bytes(in, n);
    product p = {.w = {.dtype = t, .out = out, .in = in}, .n = hn_number(n), .add = add};
    p.w.place = b->place(b, t, in, take(bytes));
    for (int first = 0; first < out; first += HN_STRIP)
        b->pack(b, &p.w, 0, first, stored + row_bytes * (size_t)first, row_bytes, NULL);
    p.a = (hn_act){take(act), in, n, b->act_forms(b, t)};
    float *xs = calloc((size_t)ldx * (size_t)n, sizeof *xs);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < in; i++) xs[r * ldx + i] = x[r * in + i] = below(50) ? number() : 0;
    p.x = (hn_matrix){put(xs, sizeof *xs * (size_t)ldx * (size_t)n), in, ldx};
    for (int i = 0; i < ld * n; i++) before[i] = want[i] = number();
    const size_t result = sizeof *want * (size_t)ld * (size_t)n;
    p.y = (hn_matrix){put(before, result), out, ld};
    b->wait(b, b->submit(b, run_product, &p));
    for (int r = 0; r < n; r++)
        for (int o = 0; o < out; o++) {
            const float v =
                expect_output(t, stored + row_bytes * (size_t)o, w + in * o, x + r * in, in, p.a.forms == HN_ACT_Q8);
            want[r * ld + o] = add ? before[r * ld + o] + v : v;
        }
    same_bits(get(p.y.at, (size_t)ld * (size_t)n), want, (size_t)ld * (size_t)n, what); /* what is between rows stays */
    check_guards(p.y.at, result, what);
    b->close(b);
    free(stored), free(row), free(x), free(xs), free(w), free(want), free(before);
}

static void test_products(void **state) {
    (void)state;
    static const hn_dtype types[] = {HN_F32, HN_F16, HN_BF16, HN_Q4_0, HN_Q8_0};
    static const int rows[] = {1, 2, 3, 5, 8, 9, 17, 64};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            if (light() && (k + r) % 4) continue;
            const bool block = types[k] >= HN_Q4_0;
            const int in = block ? 32 * (1 + below(80)) : 1 + below(700), out = 1 + below(90);
            if (types[k] != HN_F16) check_product(types[k], out, in, rows[r], false, r & 1);
            if (block || types[k] == HN_F16) check_product(types[k], out, in, rows[r], true, k & 1);
        }
}

/* Weights in several blocks, with a matrix across the end of the first. */
static void test_blocks(void **state) {
    enum { IN = 640, OUT = 3000, N = 2 };
    (void)state;
    vk_device *d = vk_of(device)->d;
    const size_t usual = d->largest_block;
    hn_mem *weights;
    size_t row_bytes;
    d->largest_block = vk_part_overlap + ((size_t)1 << 20);
    must(device->mem_create(device, HN_MEM_WEIGHTS, (size_t)3 << 20, &weights, err)); /* of one block */
    assert_int_equal(vk_mem_of(weights)->n_blocks, 1);
    device->mem_free(device, weights);
    must(device->mem_create(device, HN_MEM_WEIGHTS, vk_part_overlap + ((size_t)3 << 20), &weights, err));
    d->largest_block = usual;
    assert_true(vk_mem_of(weights)->n_blocks > 1);
    hn_dtype_row_bytes(HN_Q8_0, IN, &row_bytes);
    unsigned char *stored = malloc(row_bytes * OUT);
    float row[IN], x[N * IN], want[N * OUT];
    used = 0;
    for (int i = 0; i < N * IN; i++) x[i] = number();
    for (int o = 0; o < OUT; o++) {
        for (int i = 0; i < IN; i++) row[i] = number();
        hn_quantise(HN_Q8_0, row, IN, stored + row_bytes * (size_t)o);
    }
    product p = {.w = {.dtype = HN_Q8_0, .out = OUT, .in = IN}, .n = hn_number(N), .x = {put(x, sizeof x), IN, IN}};
    p.w.place = device->place(device, HN_Q8_0, IN, (hn_buf){weights, ((size_t)1 << 20) - 256 * 1000});
    for (int first = 0; first < OUT; first += HN_STRIP)
        device->pack(device, &p.w, 0, first, stored + row_bytes * (size_t)first, row_bytes, NULL);
    p.a = (hn_act){take(device->act_bytes(IN, N)), IN, N, HN_ACT_Q8};
    p.y = (hn_matrix){take(sizeof want), OUT, OUT};
    device->wait(device, device->submit(device, run_product, &p));
    for (int r = 0; r < N; r++)
        for (int o = 0; o < OUT; o++)
            want[r * OUT + o] = expect_output(HN_Q8_0, stored + row_bytes * (size_t)o, NULL, x + r * IN, IN, true);
    same_bits(get(p.y.at, N * OUT), want, N * OUT, "a matrix across blocks");
    device->mem_free(device, weights);
    free(stored);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

typedef struct rows_job {
    hn_matrix x, y, gate, up;
    hn_buf w;
    hn_act a;
    hn_count n;
    int what;
} rows_job;

static void run_rows(const hn_exec *ex, const void *arg) {
    const rows_job *j = arg;
    const hn_glu_in in = {.gate = j->gate, .up = j->up};
    const hn_norm norm = {.w = j->w, .kind = HN_RMS_NORM, .eps = 1e-5f};
    if (j->what == 0) ex->ops->norm(ex, j->n, j->x, &norm, j->a, j->y);
    if (j->what == 1) ex->ops->norm_add(ex, j->n, j->x, &norm, 0.75f, j->y);
    if (j->what == 2) ex->ops->glu(ex, j->n, HN_SILU, &in, 1, j->a);
}

static void check_rows(int what, int width, int n) {
    const size_t count = (size_t)width * (size_t)n;
    float *x = malloc(4 * count), *w = malloc(4 * (size_t)width), *y = malloc(4 * count), *u = malloc(4 * count),
          *want = malloc(4 * count);
    char name[80];
    snprintf(name, sizeof name, "operation %d on %d rows of %d", what, n, width);
    used = 0;
    for (size_t i = 0; i < count; i++) x[i] = number() * 3, y[i] = number(), u[i] = number();
    for (int i = 0; i < width; i++) w[i] = number();
    const size_t act = device->act_bytes(width, n);
    rows_job j = {.x = {put(x, 4 * count), width, width},
                  .y = {put(y, 4 * count), width, width},
                  .w = put(w, 4 * (size_t)width),
                  .gate = {put(x, 4 * count), width, width},
                  .up = {put(u, 4 * count), width, width},
                  .a = {take(act), width, n, HN_ACT_F32 | HN_ACT_Q8},
                  .n = hn_number(n),
                  .what = what};
    device->wait(device, device->submit(device, run_rows, &j));
    for (int r = 0; r < n; r++) {
        const float *row = x + r * width;
        float part[128] = {0};
        for (int i = 0; i < width; i++) part[i % 128] = part[i % 128] + row[i] * row[i];
        const float times = reciprocal_root(add_all(part, 128) * (1 / (float)width) + 1e-5f);
        for (int i = 0; i < width; i++) {
            const float v = row[i] * times * w[i];
            want[r * width + i] = what == 0   ? v
                                  : what == 1 ? (y[r * width + i] + v) * 0.75f
                                              : swish(row[i]) * u[r * width + i];
        }
    }
    const vk_act a = hn_vk_act(j.a);
    if (what < 2) same_bits(get(j.y.at, count), want, count, name);
    if (what < 2) check_guards(j.y.at, 4 * count, name);
    for (int r = 0; r < n && what != 1; r++) {
        same_bits(get(hn_at(a.plain, 4 * (size_t)a.ld_plain * (size_t)r), (size_t)width), want + r * width,
                  (size_t)width, name);
        const int8_t *codes =
            device->read(device, (hn_ticket){0}, hn_at(a.codes, 4 * (size_t)a.ld_codes * (size_t)r), 4 * a.ld_codes);
        const float *meta = get(hn_at(a.meta, 4 * (size_t)a.ld_meta * (size_t)r), a.ld_meta);
        for (int b = 0; b < (width + 31) / 32; b++) {
            int8_t code[32];
            float scale;
            int32_t sum = 0, got;
            quantise_block(want + r * width + 32 * b, width - 32 * b < 32 ? width - 32 * b : 32, code, &scale);
            for (int i = 0; i < 32; i++) sum += code[i];
            assert_memory_equal(codes + 32 * b, code, 32);
            same_bits(meta + 2 * b, &scale, 1, name);
            memcpy(&got, meta + 2 * b + 1, 4);
            assert_int_equal(got, sum);
        }
    }
    check_guards(j.a.data, act, name);
    free(x), free(w), free(y), free(u), free(want);
}

static void test_rows(void **state) {
    (void)state;
    for (int what = 0; what < 3; what++)
        for (int i = 0; i < (light() ? 3 : 12); i++) check_rows(what, 1 + below(i % 2 ? 900 : 140), 1 + below(9));
}

/* ---- angles ---------------------------------------------------------------------------------------------------------------- */

typedef struct angles {
    hn_rows rows;
    hn_rope rope;
    hn_rope_table table;
} angles;

static void run_angles(const hn_exec *ex, const void *arg) {
    const angles *a = arg;
    ex->ops->rope_table(ex, &a->rows, &a->table);
}

static void test_angles(void **state) {
    enum { N = 60, HALF = 33 };
    (void)state;
    int32_t position[N];
    float freq[HALF];
    used = 0;
    for (int i = 0; i < N; i++) position[i] = i < 20 ? i : below(i < 40 ? 5000 : 1 << 20);
    for (int i = 0; i < HALF; i++) freq[i] = i ? (float)pow(10000, -i / (double)HALF) : 1;
    angles a = {.rows = {.n = hn_number(N), .position = put(position, sizeof position)},
                .rope = {.dims = 2 * HALF, .scale = 1}};
    a.rope.freq = put(freq, sizeof freq);
    a.table = (hn_rope_table){&a.rope, take(sizeof(float) * N * 2 * HALF)};
    device->wait(device, device->submit(device, run_angles, &a));
    const float *cs = get(a.table.cs, (size_t)N * 2 * HALF);
    for (int r = 0; r < N; r++)
        for (int i = 0; i < HALF; i++) {
            const double angle = (double)((float)position[r] * freq[i]), c = (double)cs[r * 2 * HALF + i] - cos(angle),
                         s = (double)cs[r * 2 * HALF + HALF + i] - sin(angle);
            if (fabs(c) > 1.5e-7 || fabs(s) > 1.5e-7)
                fail_msg("position %d, number %d: off by %g, %g", (int)position[r], i, c, s);
        }
}

/* ---- attention ------------------------------------------------------------------------------------------------------------ */

enum { SEQS = 2, MOST_SLOTS = 700, MOST_TREE = 80 };

typedef struct attended {
    hn_kv kv;
    hn_rows stored, rows; /* what is committed, in passes of their own; then the rows that attend */
    hn_qkv store, own;
    hn_attention_params how;
    hn_matrix out;
    hn_buf scratch;
    bool begin;
} attended;

static void run_attended(const hn_exec *ex, const void *arg) {
    const attended *a = arg;
    if (a->begin) ex->ops->rope_store(ex, &a->stored, NULL, &a->kv, &a->store);
    if (a->begin) ex->ops->rope_store(ex, &a->rows, NULL, &a->kv, &a->own);
    ex->ops->attention(ex, &a->rows, &a->kv, &a->how, a->own.q, a->out, (hn_act){.data = {NULL, 0}}, a->scratch);
}

/* A number row as the cache gives it back. */
static void as_kept(hn_dtype t, float *x, int n) {
    unsigned char room[4 * 700];
    if (t == HN_Q8_0) {
        for (int b = 0; b < n; b += 32) {
            int8_t code[32];
            float scale;
            quantise_block(x + b, 32, code, &scale);
            for (int i = 0; i < 32; i++) x[b + i] = (float)code[i] * scale;
        }
        return;
    }
    hn_quantise(t, x, (size_t)n, room);
    hn_dequantise(t, room, (size_t)n, x);
}

typedef struct attended_case {
    hn_dtype type;
    int heads, kv_heads, dim, v_dim, page_rows, committed[SEQS], tree, chain, window, first;
    bool sinks;
} attended_case;

/* Text 0 has a tree of rows, each in a slot of its own; text 1 a chain in a row. What nobody sees is NaN. */
static void check_attention(const attended_case *c) {
    static int32_t position[MOST_TREE], slot[MOST_TREE], seq[MOST_TREE], start[MOST_TREE],
        path[MOST_TREE * HN_MAX_ROWS], zero[MOST_SLOTS], at[MOST_SLOTS];
    const int n = c->tree + c->chain, kw = c->kv_heads * c->dim, vw = c->kv_heads * c->v_dim, qw = c->heads * c->dim,
              ow = c->heads * c->v_dim;
    const int pages = MOST_SLOTS / c->page_rows + 1, ldo = ow + 3;
    const size_t all = (size_t)SEQS * MOST_SLOTS;
    float *k = malloc(4 * all * (size_t)kw), *v = malloc(4 * all * (size_t)vw), *q = malloc(4 * (size_t)(n * qw)),
          *own_k = malloc(4 * (size_t)(n * kw)), *own_v = malloc(4 * (size_t)(n * vw)),
          *before = malloc(4 * (size_t)(n * ldo)), sink[64];
    int32_t committed[SEQS] = {c->committed[0], c->committed[1]}, direct[SEQS] = {0, 1},
            *table = malloc(4 * (size_t)(SEQS * pages));
    char what[160];
    int n_path = 0, seen = 0;
    snprintf(
        what, sizeof what,
        "attention in %s, %d heads of %d over %d of %d and %d, %d and %d rows behind %d and %d, window %d from %d%s",
        hn_dtype_name(c->type), c->heads, c->dim, c->kv_heads, c->dim, c->v_dim, c->tree, c->chain, committed[0],
        committed[1], c->window, c->first, c->sinks ? ", sinks" : "");
    used = 0;
    for (size_t i = 0; i < all * (size_t)kw; i++) k[i] = number();
    for (size_t i = 0; i < all * (size_t)vw; i++) v[i] = number();
    for (int i = 0; i < n * qw; i++) q[i] = 3 * number();
    for (int i = 0; i < n * ldo; i++) before[i] = number();
    for (int i = 0; i < c->heads; i++) sink[i] = number();
    for (int i = 0; i < SEQS * pages; i++) table[i] = SEQS * pages - 1 - i;
    for (int i = 0; i < n; i++) {
        const int s = i >= c->tree, in = s ? i - c->tree : i, parent = s ? in - 1 : in ? below(in) : -1;
        seq[i] = s;
        slot[i] = committed[s] + in;
        position[i] = parent < 0 ? committed[s] : position[s ? c->tree + parent : parent] + 1;
        start[i] = n_path;
        if (parent >= 0)
            for (int p = 0; p < position[i] - committed[s]; p++, n_path++)
                path[n_path] = path[start[s ? c->tree + parent : parent] + p];
        path[n_path++] = slot[i];
        seen = position[i] + 1 > seen ? position[i] + 1 : seen;
        memcpy(own_k + i * kw, k + (s * MOST_SLOTS + slot[i]) * kw, 4 * (size_t)kw);
        memcpy(own_v + i * vw, v + (s * MOST_SLOTS + slot[i]) * vw, 4 * (size_t)vw);
    }
    for (int i = 0; i < MOST_SLOTS; i++) zero[i] = 0, at[i] = i;
    attended a = {.kv = {.type = c->type,
                         .page_rows = c->page_rows,
                         .kv_heads = c->kv_heads,
                         .head_dim = c->dim,
                         .v_dim = c->v_dim},
                  .how = {.heads = c->heads, .scale = 0.3f, .window = c->window, .first = c->first},
                  .begin = true};
    const hn_buf tables = put(table, 4 * (size_t)(SEQS * pages));
    a.rows = (hn_rows){.n = hn_number(n),
                       .n_seqs = hn_number(SEQS),
                       .position = put(position, 4 * (size_t)n),
                       .slot = put(slot, 4 * (size_t)n),
                       .seq = put(seq, 4 * (size_t)n),
                       .path_start = put(start, 4 * (size_t)n),
                       .path_slots = put(path, 4 * (size_t)n_path),
                       .from = put(position, 4 * (size_t)n),
                       .committed = put(committed, sizeof committed),
                       .direct = put(direct, sizeof direct),
                       .page_table = tables,
                       .page_stride = pages,
                       .most_seen = seen};
    a.own = (hn_qkv){{put(q, 4 * (size_t)(n * qw)), qw, qw},
                     {put(own_k, 4 * (size_t)(n * kw)), kw, kw},
                     {put(own_v, 4 * (size_t)(n * vw)), vw, vw},
                     c->dim};
    if (c->sinks) a.how.sinks = put(sink, 4 * (size_t)c->heads);
    a.out = (hn_matrix){put(before, 4 * (size_t)(n * ldo)), ow, ldo};
    a.scratch = take(device->attention_scratch(device, n, c->heads, &a.kv, MOST_SLOTS));
    const size_t keys = hn_kv_bytes(c->type, c->dim, c->page_rows) * (size_t)c->kv_heads,
                 values = hn_kv_bytes(c->type, c->v_dim, c->page_rows) * (size_t)c->kv_heads;
    a.kv.v_off = keys;
    a.kv.page_bytes = (keys + values + 63) / 64 * 64;
    const size_t pool = a.kv.page_bytes * (size_t)(SEQS * pages);
    unsigned char *nan = malloc(pool);
    memset(nan, 0xff, pool);
    a.kv.pool = put(nan, pool);
    for (int s = 0; s < SEQS; s++) { /* that of text 1 with the rows that attend */
        const int count = committed[s];
        const hn_buf own_table = hn_at(tables, 4 * (size_t)(s * pages));
        a.stored = (hn_rows){.n = hn_number(count),
                             .n_seqs = hn_number(1),
                             .slot = put(at, 4 * (size_t)count),
                             .seq = put(zero, 4 * (size_t)count),
                             .page_table = own_table,
                             .page_stride = pages};
        a.store = (hn_qkv){{{NULL, 0}, 0, 0},
                           {put(k + s * MOST_SLOTS * kw, 4 * (size_t)(count * kw)), kw, kw},
                           {put(v + s * MOST_SLOTS * vw, 4 * (size_t)(count * vw)), vw, vw},
                           c->dim};
        device->wait(device, device->submit(device, run_attended, &a));
    }
    const size_t numbers = (size_t)(n * ldo);
    float *got = malloc(4 * numbers);
    memcpy(got, get(a.out.at, numbers), 4 * numbers);
    check_guards(a.out.at, 4 * numbers, what);
    for (size_t i = 0; i < all * (size_t)c->kv_heads; i++)
        as_kept(c->type, k + i * (size_t)c->dim, c->dim), as_kept(c->type, v + i * (size_t)c->v_dim, c->v_dim);
    for (int r = 0; r < n; r++)
        for (int h = 0; h < c->heads; h++) {
            const int s = seq[r], kv_head = h / (c->heads / c->kv_heads), last = position[r];
            int begin = c->window > 0 && last >= c->window ? last - c->window + 1 : 0;
            if (last >= c->first && begin < c->first) begin = c->first;
            double e[MOST_SLOTS], most = c->sinks ? (double)sink[h] : -1e300, sum = 0;
            const float *value[MOST_SLOTS];
            for (int p = begin; p <= last; p++) {
                const int where = p < committed[s] ? p : path[start[r] + p - committed[s]];
                const float *key = k + (s * MOST_SLOTS + where) * kw + kv_head * c->dim;
                value[p] = v + (s * MOST_SLOTS + where) * vw + kv_head * c->v_dim;
                e[p] = 0;
                for (int d = 0; d < c->dim; d++) e[p] += (double)q[r * qw + h * c->dim + d] * (double)key[d];
                e[p] *= (double)0.3f;
                most = e[p] > most ? e[p] : most;
            }
            if (c->sinks) sum = exp((double)sink[h] - most);
            for (int p = begin; p <= last; p++) sum += e[p] = exp(e[p] - most);
            for (int d = 0; d < c->v_dim; d++) {
                double want = 0;
                for (int p = begin; p <= last; p++) want += e[p] * (double)value[p][d];
                const double is = (double)got[r * ldo + h * c->v_dim + d];
                if (!(fabs(is - want / sum) < 2e-5))
                    fail_msg("%s: row %d, head %d, number %d is %g, expected %g", what, r, h, d, is, want / sum);
            }
        }
    for (int r = 0; r < n; r++) same_bits(got + r * ldo + ow, before + r * ldo + ow, (size_t)(ldo - ow), what);
    /* each row alone has the same bits, though its spans are then divided among workgroups */
    a.begin = false;
    for (int r = 0; r < n; r += 1 + n / 4) {
        attended one = a;
        const size_t off = 4 * (size_t)r;
        one.rows.n = hn_number(1);
        one.rows.most_seen = position[r] + 1;
        one.rows.position = hn_at(a.rows.position, off), one.rows.from = hn_at(a.rows.from, off),
        one.rows.seq = hn_at(a.rows.seq, off);
        one.rows.path_start = hn_at(a.rows.path_start, off);
        one.own.q = hn_rows_from(a.own.q, r);
        device->wait(device, device->submit(device, run_attended, &one));
        same_bits(get(a.out.at, (size_t)ow), got + r * ldo, (size_t)ow, what);
    }
    free(k), free(v), free(q), free(own_k), free(own_v), free(before), free(table), free(nan), free(got);
}

static void test_attention(void **state) {
    (void)state;
    static const attended_case cases[] = {{HN_F32, 1, 1, 7, 7, 16, {1, 20}, 5, 3, 0, 0, false},
                                          {HN_F32, 6, 2, 66, 10, 32, {255, 256}, 6, 2, 0, 0, true},
                                          {HN_F32, 2, 1, 300, 258, 16, {520, 3}, 3, 1, 100, 2, false},
                                          {HN_BF16, 4, 2, 2, 34, 64, {257, 530}, 7, 4, 0, 0, false},
                                          {HN_BF16, 8, 4, 64, 64, 16, {300, 300}, 2, 70, 40, 0, false},
                                          {HN_BF16, 3, 3, 130, 130, 32, {511, 512}, 4, 1, 0, 3, true},
                                          {HN_F16, 5, 1, 6, 2, 16, {100, 600}, 8, 5, 33, 0, true},
                                          {HN_F16, 2, 2, 256, 256, 64, {260, 10}, 3, 2, 0, 0, false},
                                          {HN_Q8_0, 4, 1, 32, 96, 16, {270, 540}, 6, 3, 0, 0, false},
                                          {HN_Q8_0, 2, 1, 160, 32, 32, {3, 300}, 2, 66, 129, 1, true},
                                          {HN_F16, 2, 1, 576, 512, 16, {300, 2}, 2, 1, 0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!light() || i % 3 == 0) check_attention(&cases[i]);
}

/* ---- the best of a row ------------------------------------------------------------------------------------------------------ */

typedef struct best {
    hn_weight w;
    hn_act a;
    hn_matrix x;
    hn_count n;
    hn_output_rows out;
    hn_top top;
} best;

static void run_best(const hn_exec *ex, const void *arg) {
    const best *b = arg;
    ex->ops->quantise(ex, b->n, b->x, b->a);
    ex->ops->linear_top(ex, b->n, b->a, &b->w, &b->out, &b->top);
}

static bool comes_before(float v, int i, float w, int j) {
    return v > w || (v == w && i < j);
}

static void check_best(int out, int n, int k, bool bias, bool map, float cap) {
    enum { IN = 8 };
    const int parts = hn_sum_parts(out), ld = out + 5;
    const size_t cells = (size_t)ld * (size_t)n;
    float *w = malloc(4 * (size_t)out * IN), *b = malloc(4 * (size_t)out), *before = malloc(4 * cells), x[IN * 16];
    int32_t *ids = malloc(4 * (size_t)out);
    char what[100];
    snprintf(what, sizeof what, "the best %d of %d outputs, %d rows%s%s, cap %g", k, out, n, bias ? ", bias" : "",
             map ? ", map" : "", (double)cap);
    used = 0;
    for (int i = 0; i < out * IN; i++) w[i] = below(9) || i < IN ? number() : w[i % IN];
    for (int o = 3; o < out; o += 7)
        memcpy(w + o * IN, w + (o - 3) * IN, 4 * IN); /* equal outputs, if there is no bias */
    if (out > 20) w[11 * IN] = NAN;
    for (int i = 0; i < out; i++) b[i] = number(), ids[i] = map ? out - 1 - i : i;
    for (int i = 0; i < n * IN; i++) x[i] = number();
    for (size_t i = 0; i < cells; i++) before[i] = number();
    best j = {
        .w = {.dtype = HN_F32, .out = out, .in = IN}, .n = hn_number(n), .x = {put(x, 4 * (size_t)(n * IN)), IN, IN}};
    j.w.place = device->place(device, HN_F32, IN, take(device->matrix_bytes(device, HN_F32, out, IN)));
    for (int first = 0; first < out; first += HN_STRIP)
        device->pack(device, &j.w, 0, first, w + first * IN, 4 * IN, NULL);
    j.a = (hn_act){take(device->act_bytes(IN, n)), IN, n, HN_ACT_F32};
    j.out = (hn_output_rows){
        .scale = 0.7f, .cap = cap, .n_written = hn_number(n - n / 3), .y = {put(before, 4 * cells), out, ld}};
    const size_t lists = 4 * (size_t)(n * k), sums = 4 * (size_t)(n * parts);
    j.top = (hn_top){.k = k,
                     .id = take(lists),
                     .value = take(lists),
                     .scratch = take(device->top_scratch(device, n, k)),
                     .sums = take(sums),
                     .moments = take(sums)};
    if (bias) j.top.bias = put(b, 4 * (size_t)out);
    if (map) j.top.map = put(ids, 4 * (size_t)out);
    device->wait(device, device->submit(device, run_best, &j));
    float *y = malloc(4 * cells), *value = malloc(lists), *sum = malloc(2 * sums);
    int32_t *id = malloc(lists);
    memcpy(y, get(j.out.y.at, cells), 4 * cells), memcpy(value, get(j.top.value, (size_t)(n * k)), lists);
    memcpy(id, get(j.top.id, (size_t)(n * k)), lists), memcpy(sum, get(j.top.sums, sums / 4), sums);
    memcpy(sum + sums / 4, get(j.top.moments, sums / 4), sums);
    check_guards(j.out.y.at, 4 * cells, what), check_guards(j.top.id, lists, what),
        check_guards(j.top.value, lists, what);
    check_guards(j.top.sums, sums, what), check_guards(j.top.moments, sums, what);
    for (int r = 0; r < n; r++) {
        const bool written = r < j.out.n_written.most;
        float *row = malloc(4 * (size_t)out);
        for (int o = 0; o < out; o++) {
            float v = expect_output(HN_F32, NULL, w + o * IN, x + r * IN, IN, false);
            if (bias) v = v + b[o];
            v = v * 0.7f;
            if (cap > 0) {
                const float is = written ? y[r * ld + o] : 0;
                const double t = (double)cap * tanh((double)v / (double)cap);
                if (written && !isnan(v) && !(fabs((double)is - t) < 2e-6))
                    fail_msg("%s: output %d is %g, expected %g", what, o, (double)is, t);
                v = is;
            }
            row[o] = v;
        }
        if (written) same_bits(y + r * ld, row, (size_t)out, what);
        same_bits(y + r * ld + (written ? out : 0), before + r * ld + (written ? out : 0),
                  (size_t)(written ? ld - out : ld), what);
        float last = 0;
        int last_id = -1;
        for (int rank = 0; rank < k && (written || cap == 0);
             rank++) { /* each is the best of those behind the one before */
            float v = 0;
            int which = -1;
            for (int o = 0; o < out; o++)
                if (!isnan(row[o]) && (rank == 0 || comes_before(last, last_id, row[o], ids[o])) &&
                    (which < 0 || comes_before(row[o], ids[o], v, which))) {
                    v = row[o];
                    which = ids[o];
                }
            if (id[r * k + rank] != which)
                fail_msg("%s: rank %d of row %d is %d, expected %d", what, rank, r, (int)id[r * k + rank], which);
            if (which < 0) {
                assert_true(isnan(value[r * k + rank]));
                while (++rank < k) assert_int_equal(id[r * k + rank], -1);
                break;
            }
            same_bits(value + r * k + rank, &v, 1, what);
            last = v;
            last_id = which;
        }
        for (int p = 0; written && p < parts; p++) {
            double s = 0, m = 0;
            for (int o = p * HN_SUM_PART; o < out && o < (p + 1) * HN_SUM_PART; o++) {
                const double d = (double)row[o] - (double)value[r * k];
                if (isnan(d)) continue;
                s += exp(d);
                if (d >= -87) m += d * exp(d);
            }
            if (!(fabs((double)sum[r * parts + p] - s) <= 1e-5 * s + 1e-12))
                fail_msg("%s: sum %d is %g, expected %g", what, p, (double)sum[r * parts + p], s);
            if (!(fabs((double)sum[sums / 4 + (size_t)(r * parts + p)] - m) <= 1e-5 * fabs(m) + 1e-6))
                fail_msg("%s: moment %d", what, p);
        }
        free(row);
    }
    free(w), free(b), free(before), free(ids), free(y), free(value), free(sum), free(id);
}

static void test_best(void **state) {
    (void)state;
    check_best(1, 1, 1, false, false, 0);
    check_best(50, 9, 64, false, true, 0);
    check_best(4097, 3, 5, true, false, 3);
    check_best(33000, 2, 64, false, false, 0); /* more than are searched at a time */
    if (light()) return;
    check_best(8191, 16, 2, false, true, 2);
    check_best(40001, 1, 7, true, true, 0);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------------------ */

static void test_ranges(void **state) {
    (void)state;
    const vk_mem m = {.size = 10000}, other = {.size = 10000};
    const vk_range a = {&m, 100, 50, 0, 0, true}, b = {&m, 149, 10, 0, 0, false}, c = {&m, 150, 10, 0, 0, false},
                   d = {&other, 100, 50, 0, 0, true};
    assert_true(hn_vk_ranges_meet(&a, &b) && hn_vk_ranges_meet(&b, &a));
    assert_false(hn_vk_ranges_meet(&a, &c) || hn_vk_ranges_meet(&c, &a) || hn_vk_ranges_meet(&a, &d));
    /* columns of the same rows, which are 100 bytes apart */
    const vk_range x = {&m, 1000, 340, 100, 40, true}, y = {&m, 1040, 340, 100, 40, true},
                   z = {&m, 1030, 340, 100, 20, false}, whole = {&m, 1000, 400, 0, 0, false};
    assert_false(hn_vk_ranges_meet(&x, &y) || hn_vk_ranges_meet(&y, &x));
    assert_true(hn_vk_ranges_meet(&x, &z) && hn_vk_ranges_meet(&z, &x) && hn_vk_ranges_meet(&y, &z));
    assert_true(hn_vk_ranges_meet(&y, &whole));
}

static int setup(void **state) {
    hunch_error err = {0};
    (void)state;
    if (hn_vulkan_open(&device, 0, false, &err)) {
        print_message("skipped: %s\n", err.message);
        exit(77);
    }
    return device->mem_create(device, HN_MEM_WORK, BYTES, &mem, &err) ? -1 : 0;
}

static int teardown(void **state) {
    (void)state;
    device->mem_free(device, mem);
    device->close(device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_blocks), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_angles), cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_best)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
