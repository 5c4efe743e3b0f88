/* SPDX-License-Identifier: Apache-2.0 */
/* check_heads_test.c - products with a matrix for each head: every head and row against the plain product of that row and matrix alone,
 * bit for bit, for every type and level, with any room for inputs and any number of threads. */
#include "base/run_mode_for_tests.h"
#include "check.h"

typedef struct heads_call {
    hn_backend *o;
    hn_weight w, alone;
    hn_head_columns x, y;
    hn_act room, one;
    hn_matrix row;
    int n, rest, head, at;
} heads_call;

static void heads_rank(void *arg, int rank, int ranks) {
    const heads_call *c = arg;
    const hn_exec ex = {c->o->ops, c->o, rank, ranks};
    c->o->ops->heads_linear(&ex, check_number(c->n), &c->w, c->x, c->rest, c->room, c->y);
}

static void alone_rank(void *arg, int rank, int ranks) {
    const heads_call *c = arg;
    const hn_exec ex = {c->o->ops, c->o, rank, ranks};
    const hn_linear_out out = {&c->alone, c->row};
    c->o->ops->quantise(&ex, check_number(1), hn_columns(hn_rows_from(c->x.rows, c->at), c->head * c->x.step, c->w.in), c->one);
    c->o->ops->linear(&ex, check_number(1), c->one, &out, 1, false);
}

static hn_weight random_heads(hn_backend *o, hn_dtype t, int heads, int out, int in) {
    const size_t row = check_row_bytes(t, in);
    unsigned char *rows = hn_alloc(row * (size_t)out);
    hn_weight w = {.dtype = t, .out = out, .in = in, .experts = heads, .of_heads = true};
    check_place(o, &w);
    for (int h = 0; h < heads; h++) {
        for (int i = 0; i < out; i++) check_weights(t, in, SMALL, rows + row * (size_t)i);
        check_pack(o, &w, h, rows, row, NULL);
    }
    hn_free(rows);
    return w;
}

static void check_call(heads_call *c, const char *level) {
    hn_pool_run(hn_cpu_of(c->o)->pool, heads_rank, c);
    for (c->at = 0; c->at < c->n; c->at++)
        for (c->head = 0; c->head < c->w.experts; c->head++) {
            const float *got = hn_host_row(c->y.rows, c->at) + c->head * c->y.step;
            const float *rest = hn_host_row(c->x.rows, c->at) + c->head * c->x.step + c->w.in;
            c->alone = c->w;
            c->alone.experts = 0;
            c->alone.place.at = hn_at(c->w.place.at, c->w.place.step * (size_t)(c->head * hn_strips(c->w.out)));
            hn_pool_run(hn_cpu_of(c->o)->pool, alone_rank, c);
            check_same_row(got, hn_host_row(c->row, 0), c->w.out, level, c->at);
            check_same_row(got + c->w.out, rest, c->rest, "the rest", c->at);
        }
}

static void check_type(hn_dtype t, hn_isa isa) {
    const int block = hn_dtype_block(t), in = block * check_int(1, block > 32 ? 2 : block > 1 ? 4 : 70), out = check_int(1, 70);
    const int heads = check_int(1, 6), n = check_int(1, 9);
    check_ops ops = check_open(check_int(1, 3), isa, check_int(0, 3) == 0);
    hn_backend *o = ops.o;
    heads_call c = {.o = o, .w = random_heads(o, t, heads, out, in), .n = n, .rest = check_int(0, 9)};
    const int rows = heads * check_int(1, n + 1), x_step = in + c.rest + check_int(0, 5), y_step = out + c.rest + check_int(0, 5);
    c.x = (hn_head_columns){{check_put_random(o, n * heads * x_step), heads * x_step, heads * x_step}, x_step};
    c.y = (hn_head_columns){{check_mem(o, (size_t)(n * heads * y_step) * sizeof(float)), heads * y_step, heads * y_step}, y_step};
    c.room = (hn_act){check_mem(o, o->act_bytes(in + 64, rows)), in + 64, rows, 0}; /* may be wider than the inputs */
    c.one = (hn_act){check_mem(o, o->act_bytes(in, 1)), in, 1, o->act_forms(o, t)};
    c.row = (hn_matrix){check_mem(o, (size_t)out * sizeof(float)), out, out};
    check_call(&c, hn_isa_name(isa));
    hn_buf all[] = {c.w.place.at, c.x.rows.at, c.y.rows.at, c.room.data, c.one.data, c.row.at};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) o->mem_free(o, all[i].mem);
    check_close(&ops);
}

static void heads_test(void **state HN_UNUSED) {
    static const hn_dtype types[] = {HN_F32, HN_F16, HN_BF16, HN_Q8_0, HN_Q4_0, HN_Q4_K, HN_Q6_K};
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            for (int round = 0; round < 6 / test_every(1, 3); round++) check_type(types[i], isa);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads_test)};
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
