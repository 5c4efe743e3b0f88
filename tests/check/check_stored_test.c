/* SPDX-License-Identifier: Apache-2.0 */
/* check_stored_test.c - operations on matrices as their file stores them: the same bits as packed ones, for every type
 * and level, with any number of threads. */
#include "check.h"

enum { MOST_OUT = 150, MOST_IN = 512, MATRICES = 2, LD = MOST_IN + 6, FIRST = 7 * HN_STRIP };

/* One matrix twice over the same numbers. */
typedef struct twin {
    hn_weight packed, stored;
    unsigned char *raw;
    float *factors;
} twin;

/* Rows have an odd address; the matrix starts at row FIRST of its tensor, so that it crosses a block of factors. */
static twin twin_create(hn_backend *o, hn_dtype t, int out, int in) {
    const size_t row_bytes = check_row_bytes(t, in);
    const int across = (in + HN_F8_TILE - 1) / HN_F8_TILE, grid = across * ((FIRST + out) / HN_F8_TILE + 1);
    twin w = {.raw = hn_alloc(row_bytes * (size_t)out + 1)};
    for (int i = 0; i < out; i++) check_weights(t, in, SMALL, w.raw + 1 + row_bytes * (size_t)i);
    if (t == HN_F8_E4M3) {
        w.factors = hn_alloc((size_t)grid * sizeof *w.factors);
        check_fill(w.factors, grid, USUAL);
    }
    const hn_weight shape = {.dtype = t, .out = out, .in = in};
    w.stored = w.packed = shape;
    w.stored.stored = (hn_stored){.rows = w.raw + 1, .row_bytes = row_bytes, .factors = w.factors, .first = FIRST};
    check_place(o, &w.packed);
    for (int first = 0; first < out; first += HN_STRIP)
        o->pack(o, &w.packed, 0, first, w.raw + 1 + row_bytes * (size_t)first, row_bytes, hn_stored_factors(&w.stored.stored, in, first));
    return w;
}

static void twin_free(hn_backend *o, twin *w) {
    o->mem_free(o, w->packed.place.at.mem);
    hn_free(w->raw);
    hn_free(w->factors);
}

/* Results of one way to hold the weights. */
typedef struct call {
    hn_backend *o;
    const hn_weight *w[MATRICES];
    int n;
    hn_act act, glu;
    hn_rows rows;
    hn_buf x, y[MATRICES], embedded;
} call;

static void call_rank(void *arg, int rank, int ranks) {
    const call *c = arg;
    const hn_exec ex = {c->o->ops, c->o, rank, ranks};
    const hn_linear_out outs[MATRICES] = {{c->w[0], {c->y[0], c->w[0]->out, LD}}, {c->w[1], {c->y[1], c->w[1]->out, LD}}};
    c->o->ops->quantise(&ex, check_number(c->n), (hn_matrix){c->x, c->w[0]->in, c->w[0]->in}, c->act);
    c->o->ops->linear(&ex, check_number(c->n), c->act, outs, MATRICES, true);
    c->o->ops->linear_glu(&ex, check_number(c->n), c->act, c->w[0], c->w[1], HN_SILU, c->glu);
    c->o->ops->embed(&ex, &c->rows, c->w[0], 1.5f, (hn_matrix){c->embedded, c->w[0]->in, LD});
}

static void call_run(hn_backend *o, const twin *w, bool stored, const float *x, const int32_t *tokens, int n,
                     float *results) {
    const int in = w[0].packed.in;
    const size_t each = (size_t)n * LD;
    call c = {.o = o, .n = n, .rows = {.n = check_number(n), .token = check_put(o, tokens, (size_t)n * sizeof *tokens)}};
    for (int i = 0; i < MATRICES; i++) c.w[i] = stored ? &w[i].stored : &w[i].packed;
    c.act = (hn_act){check_mem(o, o->act_bytes(in, n)), in, n, HN_ACT_F32 | HN_ACT_BF16 | (in % HN_BLOCK ? 0 : HN_ACT_Q8)};
    c.x = check_put(o, x, (size_t)(n * in) * sizeof *x);
    c.glu = (hn_act){check_mem(o, o->act_bytes(w[0].packed.out, n)), w[0].packed.out, n, HN_ACT_F32};
    hn_buf *const out[] = {&c.y[0], &c.y[1], &c.embedded};
    for (int i = 0; i < 3; i++) *out[i] = check_mem(o, each * sizeof(float));
    hn_pool_run(hn_cpu_of(o)->pool, call_rank, &c);
    for (int i = 0; i < 3; i++) {
        memcpy(results + each * (size_t)i, hn_host(*out[i]), each * sizeof(float));
        o->mem_free(o, out[i]->mem);
    }
    memset(results + each * 3, 0, each * sizeof *results);
    for (int i = 0; i < n; i++)
        memcpy(results + each * 3 + LD * i, act_f32(&c.glu, i), (size_t)c.glu.in * sizeof *results);
    o->mem_free(o, c.glu.data.mem);
    o->mem_free(o, c.x.mem);
    o->mem_free(o, c.act.data.mem);
    o->mem_free(o, c.rows.token.mem);
}

/* At one level: stored against packed. */
static void check_level(hn_isa isa, const twin *w, bool f32, const float *x, const int32_t *tokens, int n, float *want,
                        float *got) {
    check_ops c = check_open(check_int(1, 4), isa, f32);
    const hn_weight *const types[MATRICES] = {&w[0].stored, &w[1].stored};
    const hn_matrix_place room = check_place_stored(c.o, types, MATRICES);
    twin own[MATRICES] = {w[0], w[1]};
    for (int i = 0; i < MATRICES; i++) own[i].stored.place = room;
    call_run(c.o, w, false, x, tokens, n, want);
    call_run(c.o, own, true, x, tokens, n, got);
    check_same_row(got, want, 4 * n * LD, hn_isa_name(isa), w[0].packed.dtype);
    c.o->mem_free(c.o, room.at.mem);
    check_close(&c);
}

static hn_dtype random_type(int in) {
    hn_dtype t;
    do t = (hn_dtype)check_int(0, HN_WEIGHT_TYPES - 1);
    while (in % hn_dtype_block(t));
    return t;
}

/* A matrix of each type, beside one of the same type and one of any. */
static void stored_test(void **state HN_UNUSED) {
    enum { RESULTS = 4 * HN_MAX_ROWS * LD };
    float *want = hn_alloc(RESULTS * sizeof *want), *got = hn_alloc(RESULTS * sizeof *got);
    float *x = hn_alloc(HN_MAX_ROWS * MOST_IN * sizeof *x);
    int32_t tokens[HN_MAX_ROWS];
    check_ops c = check_open(1, HN_ISA_REF, false);
    for (int round = 0; round < 2 * HN_WEIGHT_TYPES; round++) {
        const hn_dtype t = (hn_dtype)(round / 2);
        const int block = hn_dtype_block(t);
        const int in = block == 1 ? check_int(1, 300) : block * check_int(1, MOST_IN / block);
        const int out = check_int(1, MOST_OUT), n = check_int(1, round % 3 ? 5 : 20);
        twin w[MATRICES] = {twin_create(c.o, t, out, in), twin_create(c.o, round % 2 ? random_type(in) : t, out, in)};
        check_fill(x, n * in, USUAL);
        for (int i = 0; i < n; i++) tokens[i] = check_int(0, out - 1);
        const bool f32 = in % HN_BLOCK || check_int(0, 2) == 0;
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
            check_level(isa, w, f32, x, tokens, n, want, got);
        for (int i = 0; i < MATRICES; i++) twin_free(c.o, &w[i]);
    }
    check_close(&c);
    hn_free(want);
    hn_free(got);
    hn_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stored_test)};
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
