/* SPDX-License-Identifier: Apache-2.0 */
/* check_experts_test.c - experts: the router against sorting all scores; every pair's results against the plain
 * operations on only that row and that expert's matrices, bit for bit, for every type and level, packed and stored,
 * with any number of threads; and plain products of more rows than a call takes. */
#include "base/run_mode_for_tests.h"
#include "check.h"

/* ---- the router -------------------------------------------------------------------------------------------------------- */

typedef struct choice {
    hn_router router;
    int n, ld;
    hn_buf scores;
    hn_routing to;
} choice;

static hn_routing routing_create(hn_backend *o, int experts, int used, int rows) {
    const size_t pairs = (size_t)(rows * used) * sizeof(int32_t);
    return (hn_routing){.experts = experts,
                        .used = used,
                        .max_rows = rows,
                        .id = check_mem(o, pairs),
                        .share = check_mem(o, pairs),
                        .pair = check_mem(o, pairs),
                        .row = check_mem(o, pairs),
                        .first = check_mem(o, (size_t)(experts + 1) * 4),
                        .distinct = check_mem(o, (size_t)(experts + 1) * 4)};
}

static void routing_free(hn_backend *o, hn_routing *r) {
    hn_buf *const all[] = {&r->id, &r->share, &r->pair, &r->row, &r->first, &r->distinct};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) o->mem_free(o, all[i]->mem);
}

typedef struct route_call {
    hn_backend *o;
    const choice *c;
} route_call;

static void route_rank(void *arg, int rank, int ranks) {
    const route_call *r = arg;
    const hn_exec ex = {r->o->ops, r->o, rank, ranks};
    r->o->ops->route(&ex, check_number(r->c->n), &r->c->router, (hn_matrix){r->c->scores, r->c->router.experts, r->c->ld}, &r->c->to);
}

static float value_of(float score, const float *bias, int e) {
    const float v = bias ? score + bias[e] : score;
    return isnan(v) ? -INFINITY : v;
}

/* The number of candidates before e: larger, or equal with a lower id. */
static int rank_of(const float *value, const bool *allowed, int n, int e) {
    int before = 0;
    for (int i = 0; i < n; i++)
        if (allowed[i] && i != e && (value[i] > value[e] || (value[i] == value[e] && i < e))) before++;
    return before;
}

/* The experts that may be chosen: those of the best groups. */
static void allow(const hn_router *r, const float *value, bool *allowed) {
    const int groups = r->groups > 1 ? r->groups : 1, each = r->experts / groups;
    float sum[HN_MAX_EXPERTS];
    bool all[HN_MAX_EXPERTS];
    for (int g = 0; g < groups; g++) {
        float a = -INFINITY, b = -INFINITY;
        for (int e = g * each; e < (g + 1) * each; e++) {
            if (value[e] > a) {
                b = a;
                a = value[e];
            } else if (value[e] > b)
                b = value[e];
        }
        sum[g] = each > 1 && !r->largest ? a + b : a;
        all[g] = true;
    }
    for (int e = 0; e < r->experts; e++)
        allowed[e] = groups == 1 || rank_of(sum, all, groups, e / each) < r->groups_used;
}

/* One row by sorting; x: its product. */
static void check_route_row(const choice *c, const float *x, int row) {
    const hn_router *r = &c->router;
    const float *bias = r->bias.mem ? hn_host_f32(r->bias) : NULL;
    const int32_t *id = hn_host_i32(c->to.id) + row * r->used;
    const float *share = hn_host_f32(c->to.share) + row * r->used;
    float score[HN_MAX_EXPERTS], value[HN_MAX_EXPERTS], most = -INFINITY, sum = 0, chosen = 0;
    bool allowed[HN_MAX_EXPERTS];
    for (int e = 0; e < r->experts; e++) most = x[e] > most ? x[e] : most;
    for (int e = 0; e < r->experts; e++) sum += hn_exp(x[e] - most);
    for (int e = 0; e < r->experts; e++) {
        score[e] = r->sigmoid ? 1 / (1 + hn_exp(-x[e])) : hn_exp(x[e] - most) / sum;
        value[e] = value_of(score[e], bias, e);
    }
    allow(r, value, allowed);
    for (int k = 0; k < r->used; k++) {
        assert_true(id[k] >= 0 && id[k] < r->experts && (k == 0 || id[k] > id[k - 1]));
        if (!allowed[id[k]] || rank_of(value, allowed, r->experts, id[k]) >= r->used)
            fail_msg("row %d: expert %d was chosen: %a, %d are better", row, id[k], (double)value[id[k]],
                     rank_of(value, allowed, r->experts, id[k]));
        chosen += score[id[k]];
    }
    for (int k = 0; k < r->used; k++) {
        const float own = r->expert_scale.mem ? hn_host_f32(r->expert_scale)[id[k]] : 1;
        const float want = (r->normalised ? score[id[k]] / (chosen + 1e-20f) : score[id[k]]) * r->scale * own;
        if (!check_same(share[k], want)) fail_msg("row %d, expert %d: share %a, expected %a", row, id[k], (double)share[k], (double)want);
    }
}

/* Pairs are ordered by expert, then by row, and all lists agree. */
static void check_pairs(const choice *c) {
    const int used = c->router.used, *id = hn_host_i32(c->to.id), *pair = hn_host_i32(c->to.pair);
    const int32_t *first = hn_host_i32(c->to.first), *row = hn_host_i32(c->to.row), *distinct = hn_host_i32(c->to.distinct);
    int seen = 0;
    assert_int_equal(first[0], 0);
    assert_int_equal(first[c->router.experts], c->n * used);
    for (int e = 0; e < c->router.experts; e++) {
        int rows = 0;
        for (int i = 0; i < c->n * used; i++) {
            if (id[i] != e) continue;
            assert_int_equal(pair[i], first[e] + rows++);
            assert_int_equal(row[pair[i]], i / used);
        }
        assert_int_equal(first[e + 1], first[e] + rows);
        if (rows > 0) assert_int_equal(distinct[1 + seen++], e);
    }
    assert_int_equal(distinct[0], seen);
}

/* Numbers of few values have many ties. */
static void fill_scores(float *x, int n) {
    const int kind = check_int(0, 5);
    for (int i = 0; i < n; i++)
        x[i] = kind == 0 ? (float)check_int(-2, 2) : kind == 1 ? check_value(NOT_FINITE) : check_normal() * (kind == 2 ? 30 : 2);
}

static hn_router random_router(hn_backend *o) {
    const int each = check_int(1, 20), groups = check_int(1, 8), count = check_int(1, groups);
    hn_router r = {.experts = each * groups,
                   .sigmoid = check_int(0, 1),
                   .normalised = check_int(0, 1),
                   .largest = check_int(0, 1),
                   .scale = check_int(0, 1) ? 1 : 2.5f};
    const bool grouped = check_int(0, 1);
    r.groups = grouped ? groups : check_int(0, 1);
    r.groups_used = grouped ? count : check_int(0, 1);
    const int room = grouped ? each * count : r.experts;
    r.used = check_int(1, room < HN_MAX_USED ? room : HN_MAX_USED);
    if (check_int(0, 1)) r.bias = check_put_random(o, r.experts);
    if (check_int(0, 2) == 0) r.expert_scale = check_put_random(o, r.experts);
    return r;
}

static void route_test(void **state HN_UNUSED) {
    for (int round = 0; round < 200 / test_every(1, 4); round++) {
        check_ops ops = check_open(check_int(1, 4), HN_ISA_REF, false);
        choice c = {.router = random_router(ops.o), .n = check_int(1, round % 4 ? 9 : 130)};
        c.ld = c.router.experts + check_int(0, 3);
        c.to = routing_create(ops.o, c.router.experts, c.router.used, c.n);
        float *x = hn_alloc((size_t)(c.n * c.ld) * sizeof *x);
        for (int i = 0; i < c.n; i++) fill_scores(x + i * c.ld, c.ld);
        c.scores = check_put(ops.o, x, (size_t)(c.n * c.ld) * sizeof *x);
        hn_pool_run(ops.pool, route_rank, &(route_call){ops.o, &c});
        for (int i = 0; i < c.n; i++) {
            bool finite = true;
            for (int e = 0; e < c.router.experts; e++) finite = finite && isfinite(x[i * c.ld + e]);
            if (finite) check_route_row(&c, x + i * c.ld, i);
        }
        check_pairs(&c); /* for any numbers, a row has `used` different experts */
        hn_free(x);
        ops.o->mem_free(ops.o, c.scores.mem);
        ops.o->mem_free(ops.o, c.router.bias.mem);
        ops.o->mem_free(ops.o, c.router.expert_scale.mem);
        routing_free(ops.o, &c.to);
        check_close(&ops);
    }
}

/* ---- the products ------------------------------------------------------------------------------------------------------ */

enum { GATE, UP, DOWN, PARTS };

/* Matrices of one part, packed and as they are stored: each expert's apart. */
typedef struct part {
    hn_weight packed, stored;
    unsigned char *raw;
    float *factors;
    hn_stored *each;
} part;

static part part_create(hn_backend *o, hn_dtype t, int experts, int out, int in) {
    const size_t row = check_row_bytes(t, in), matrix_bytes = row * (size_t)out + 1;
    const int grid = (in + HN_F8_TILE - 1) / HN_F8_TILE * (out / HN_F8_TILE + 1);
    part p = {.raw = hn_alloc(matrix_bytes * (size_t)experts), .each = hn_zalloc((size_t)experts, sizeof *p.each)};
    const hn_weight shape = {.dtype = t, .out = out, .in = in, .experts = experts};
    p.stored = p.packed = shape;
    check_place(o, &p.packed);
    p.stored.each = p.each;
    if (t == HN_F8_E4M3) {
        p.factors = hn_alloc((size_t)(grid * experts) * sizeof *p.factors);
        check_fill(p.factors, grid * experts, USUAL);
    }
    for (int e = 0; e < experts; e++) {
        unsigned char *rows = p.raw + matrix_bytes * (size_t)e;
        p.each[e] = (hn_stored){.rows = rows, .row_bytes = row, .factors = p.factors ? p.factors + grid * e : NULL};
        for (int i = 0; i < out; i++) check_weights(t, in, SMALL, rows + row * (size_t)i);
        for (int first = 0; first < out; first += HN_STRIP)
            o->pack(o, &p.packed, e, first, rows + row * (size_t)first, row, hn_stored_factors(&p.each[e], in, first));
    }
    return p;
}

static void part_free(hn_backend *o, part *p) {
    o->mem_free(o, p->packed.place.at.mem);
    hn_free(p->raw);
    hn_free(p->factors);
    hn_free(p->each);
}

/* An expert's matrix as a plain one. */
static hn_weight alone(const part *p, int expert) {
    hn_weight w = p->packed;
    w.place.at = hn_at(w.place.at, w.place.step * (size_t)(expert * hn_strips(w.out)));
    w.experts = 0;
    return w;
}

typedef struct layer_call {
    hn_backend *o;
    const hn_weight *w[PARTS];
    choice *c;
    hn_act in, gated, one, one_gated; /* the last two: of a row alone */
    hn_matrix x, results, sum, row;
    hn_shared shared;
    hn_expert_unit unit;
    bool add;
    hn_buf bias;               /* of down */
    hn_matrix both, hidden;    /* of a row alone: gate | up, and the unit of them */
    int ldy;
    int alone_row, alone_expert;
    hn_weight single[PARTS];
} layer_call;

static void layer_rank(void *arg, int rank, int ranks) {
    const layer_call *l = arg;
    const hn_exec ex = {l->o->ops, l->o, rank, ranks};
    l->o->ops->route(&ex, check_number(l->c->n), &l->c->router, (hn_matrix){l->c->scores, l->c->router.experts, l->c->ld}, &l->c->to);
    l->o->ops->quantise(&ex, check_number(l->c->n), l->x, l->in);
    l->o->ops->experts_glu(&ex, check_number(l->c->n), &l->c->to, l->in, l->w[GATE], l->w[UP], &l->unit, l->gated);
    l->o->ops->experts_linear(&ex, check_number(l->c->n), &l->c->to, l->gated, l->w[DOWN], l->results);
    l->o->ops->combine(&ex, check_number(l->c->n), &l->c->to, l->results, l->bias, &l->shared, l->add, l->sum);
}

static void limited(float *gate, const float *up, int n, float limit) {
    for (int i = 0; i < n; i++) {
        const float one = 1;
        check_ref()->swiglu(gate + i, &one, 1);
        gate[i] = fminf(gate[i], limit) * fmaxf(fminf(up[i], limit), -limit);
    }
}

/* The unit of GELU, or with limits, and biases or none, by plain operations. */
static void alone_unit(const layer_call *l, const hn_exec *ex) {
    const int width = l->hidden.cols;
    const hn_matrix gate = hn_columns(l->both, 0, width), up = hn_columns(l->both, width, width);
    const hn_linear_out outs[] = {{&l->single[GATE], gate}, {&l->single[UP], up}};
    const size_t at = sizeof(float) * (size_t)l->alone_expert * (size_t)l->unit.ld_bias;
    l->o->ops->linear(ex, check_number(1), l->one, outs, 2, false);
    if (l->unit.gate_bias.mem) l->o->ops->add_bias(ex, check_number(1), gate, hn_at(l->unit.gate_bias, at));
    if (l->unit.gate_bias.mem) l->o->ops->add_bias(ex, check_number(1), up, hn_at(l->unit.up_bias, at));
    if (ex->rank == 0) {
        if (l->unit.gelu)
            check_ref()->geglu(hn_host_row(gate, 0), hn_host_row(up, 0), width);
        else if (l->unit.alpha == 0)
            limited(hn_host_row(gate, 0), hn_host_row(up, 0), width, l->unit.limit);
        else
            check_ref()->clamped_glu(hn_host_row(gate, 0), hn_host_row(up, 0), width, l->unit.alpha, l->unit.limit);
        memcpy(hn_host_row(l->hidden, 0), hn_host_row(gate, 0), (size_t)width * sizeof(float));
    }
    hn_barrier(hn_cpu_of(l->o)->pool, ex->rank);
    l->o->ops->quantise(ex, check_number(1), l->hidden, l->one_gated);
}

static void alone_rank(void *arg, int rank, int ranks) {
    const layer_call *l = arg;
    const hn_exec ex = {l->o->ops, l->o, rank, ranks};
    const hn_linear_out out = {&l->single[DOWN], l->row};
    l->o->ops->quantise(&ex, check_number(1), hn_rows_from(l->x, l->alone_row), l->one);
    if (l->unit.gelu || l->unit.limit > 0)
        alone_unit(l, &ex);
    else
        l->o->ops->linear_glu(&ex, check_number(1), l->one, &l->single[GATE], &l->single[UP], HN_SILU, l->one_gated);
    l->o->ops->linear(&ex, check_number(1), l->one_gated, &out, 1, false);
}

/* Row i of the sum, from results that were checked; x: the row before. */
static void check_sum(const layer_call *l, const float *x, int i) {
    const int used = l->c->router.used, cols = l->w[DOWN]->out, *pair = hn_host_i32(l->c->to.pair) + i * used;
    const float *share = hn_host_f32(l->c->to.share) + i * used;
    const int32_t *id = hn_host_i32(l->c->to.id) + i * used;
    for (int k = 0; k < cols; k++) {
        float sum = 0;
        for (int j = 0; j < used; j++) {
            const float result = hn_host_row(l->results, pair[j])[k];
            sum = fmaf(share[j], l->bias.mem ? result + hn_host_f32(l->bias)[id[j] * cols + k] : result, sum);
        }
        if (l->shared.y.at.mem) {
            const float y = hn_host_row(l->shared.y, i)[k];
            sum += l->shared.gate.at.mem ? y * (1 / (1 + hn_exp(-*hn_host_row(l->shared.gate, i)))) : y;
        }
        const float want = l->add ? x[i * l->ldy + k] + sum : sum, got = hn_host_row(l->sum, i)[k];
        if (!check_same(got, want)) fail_msg("row %d, column %d: %a, expected %a", i, k, (double)got, (double)want);
    }
}

/* For every pair of some rows: the plain operations on that row and expert. */
static void check_results(layer_call *l, const part *p, const char *level) {
    const int used = l->c->router.used, cols = l->w[DOWN]->out, n = l->c->n;
    for (int i = 0; i < n; i += n < 12 ? 1 : check_int(1, 9))
        for (int j = 0; j < used; j++) {
            const int expert = hn_host_i32(l->c->to.id)[i * used + j];
            for (int k = 0; k < PARTS; k++) l->single[k] = alone(&p[k], expert);
            l->alone_row = i;
            l->alone_expert = expert;
            hn_pool_run(hn_cpu_of(l->o)->pool, alone_rank, l);
            check_same_row(hn_host_row(l->results, hn_host_i32(l->c->to.pair)[i * used + j]), hn_host_row(l->row, 0), cols, level, i);
        }
}

static void call_create(layer_call *l, hn_backend *o, const part *p, bool stored, choice *c, const float *x, const float *sum) {
    const int in = p[GATE].packed.in, width = p[GATE].packed.out, pairs = c->n * c->router.used, out = p[DOWN].packed.out;
    *l = (layer_call){.o = o, .c = c, .ldy = out + 5};
    for (int k = 0; k < PARTS; k++) l->w[k] = stored ? &p[k].stored : &p[k].packed;
    const int forms = o->act_forms(o, l->w[GATE]->dtype) | o->act_forms(o, l->w[UP]->dtype), down = o->act_forms(o, l->w[DOWN]->dtype);
    l->in = (hn_act){check_mem(o, o->act_bytes(in, c->n)), in, c->n, forms};
    c->to.gathered = (hn_act){check_mem(o, o->act_bytes(in, pairs + 1)), in, pairs + 1, forms};
    l->gated = (hn_act){check_mem(o, o->act_bytes(width, pairs + 2)), width, pairs + 2, down};
    l->one = (hn_act){check_mem(o, o->act_bytes(in, 1)), in, 1, forms};
    l->one_gated = (hn_act){check_mem(o, o->act_bytes(width, 1)), width, 1, down};
    l->x = (hn_matrix){check_put(o, x, (size_t)(c->n * in) * sizeof *x), in, in};
    l->results = (hn_matrix){check_mem(o, (size_t)(pairs * l->ldy) * sizeof(float)), out, l->ldy};
    l->sum = (hn_matrix){check_put(o, sum, (size_t)(c->n * l->ldy) * sizeof *sum), out, l->ldy};
    l->row = (hn_matrix){check_mem(o, (size_t)l->ldy * sizeof(float)), out, l->ldy};
    l->both = (hn_matrix){check_mem(o, 2 * (size_t)width * sizeof(float)), 2 * width, 2 * width};
    l->hidden = (hn_matrix){check_mem(o, (size_t)width * sizeof(float)), width, width};
    l->add = check_int(0, 1);
    l->unit.gelu = check_int(0, 2) == 0;
    if (!l->unit.gelu && check_int(0, 1)) { /* one buffer with both biases, or two */
        const int experts = c->router.experts, ld = check_int(0, 1) ? width : 2 * width;
        l->unit = (hn_expert_unit){.limit = 7, .alpha = 1.702f, .ld_bias = ld, .gate_bias = check_put_random(o, experts * 2 * width)};
        l->unit.up_bias = hn_at(l->unit.gate_bias, sizeof(float) * (size_t)(ld == width ? experts * width : width));
        l->bias = check_put_random(o, experts * out);
    } else if (!l->unit.gelu && check_int(0, 1)) {
        l->unit.limit = 0.4f;
    }
    const int more = check_int(0, 2);
    if (more > 0) l->shared.y = (hn_matrix){check_put_random(o, c->n * (out + 2)), out, out + 2};
    if (more > 1) l->shared.gate = (hn_matrix){check_put_random(o, c->n * 3), 1, 3};
}

static void call_free(layer_call *l) {
    hn_mem *const all[] = {l->in.data.mem, l->c->to.gathered.data.mem, l->gated.data.mem, l->one.data.mem, l->one_gated.data.mem,
                           l->x.at.mem, l->results.at.mem, l->sum.at.mem, l->row.at.mem, l->shared.y.at.mem, l->shared.gate.at.mem,
                           l->both.at.mem, l->hidden.at.mem, l->unit.gate_bias.mem, l->bias.mem};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) l->o->mem_free(l->o, all[i]);
}

static void check_level(hn_isa isa, bool f32, const part *p, const hn_router *router, int n, const float *x, const float *scores,
                        const float *sum) {
    for (int stored = 0; stored < 2; stored++) {
        check_ops ops = check_open(check_int(1, 4), isa, f32);
        choice c = {.router = *router, .n = n, .ld = router->experts};
        layer_call l;
        const hn_weight *const types[PARTS] = {&p[GATE].stored, &p[UP].stored, &p[DOWN].stored};
        const hn_matrix_place room = check_place_stored(ops.o, types, PARTS);
        part own[PARTS];
        for (int k = 0; k < PARTS; k++) {
            own[k] = p[k];
            own[k].stored.place = room;
        }
        c.to = routing_create(ops.o, router->experts, router->used, n);
        c.scores = check_put(ops.o, scores, (size_t)(n * c.ld) * sizeof *scores);
        call_create(&l, ops.o, own, stored, &c, x, sum);
        hn_pool_run(ops.pool, layer_rank, &l);
        check_results(&l, p, hn_isa_name(isa));
        for (int i = 0; i < n; i++) check_sum(&l, sum, i);
        call_free(&l);
        routing_free(ops.o, &c.to);
        ops.o->mem_free(ops.o, c.scores.mem);
        ops.o->mem_free(ops.o, room.at.mem);
        check_close(&ops);
    }
}

/* Any type whose blocks divide a row of `in` values, which is a multiple of 32. */
static hn_dtype type_of(int in) {
    if (in % 256) return check_int(0, 1) ? HN_Q8_0 : HN_BF16;
    return (hn_dtype)check_int(0, HN_WEIGHT_TYPES - 1);
}

/* A layer of each type of gate, the other two of any, few rows and more than a call takes. */
static void experts_test(void **state HN_UNUSED) {
    const int each = 2 / test_every(1, 2);
    for (int round = 0; round < each * HN_WEIGHT_TYPES; round++) {
        const hn_dtype t = (hn_dtype)(round / each);
        check_ops ops = check_open(1, HN_ISA_REF, false);
        const int experts = check_int(2, 9), n = round % 4 == 3 ? check_int(60, 140) : check_int(1, 6);
        const int in = hn_dtype_block(t) == 1 ? check_int(8, 100) : 256, width = round % 2 ? 256 : check_int(1, 4) * 32,
                  out = check_int(3, 90);
        const bool float_only = in % HN_BLOCK != 0;
        const hn_dtype up = float_only ? HN_F32 : type_of(in), down = type_of(width);
        part p[PARTS] = {part_create(ops.o, t, experts, width, in), part_create(ops.o, round % 3 ? t : up, experts, width, in),
                         part_create(ops.o, down, experts, out, width)};
        const hn_router router = {.experts = experts, .used = check_int(1, experts), .scale = 1, .normalised = true};
        const int ldy = out + 5;
        float *x = hn_alloc((size_t)(n * in) * sizeof *x), *scores = hn_alloc((size_t)(n * experts) * sizeof *scores),
              *sum = hn_alloc((size_t)(n * ldy) * sizeof *sum);
        check_fill(x, n * in, USUAL);
        check_fill(scores, n * experts, USUAL);
        check_fill(sum, n * ldy, USUAL);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
            check_level(isa, float_only || check_int(0, 2) == 0, p, &router, n, x, scores, sum);
        for (int k = 0; k < PARTS; k++) part_free(ops.o, &p[k]);
        hn_free(x);
        hn_free(scores);
        hn_free(sum);
        check_close(&ops);
    }
}

/* ---- plain products of many rows ------------------------------------------------------------------------------------------ */

typedef struct many {
    hn_backend *o;
    hn_weight gate, up;
    hn_act in, gated;
    hn_matrix x, y;
    int n;
} many;

static void many_rank(void *arg, int rank, int ranks) {
    const many *m = arg;
    const hn_exec ex = {m->o->ops, m->o, rank, ranks};
    const hn_linear_out outs[] = {{&m->gate, hn_columns(m->y, 0, m->gate.out)}, {&m->up, hn_columns(m->y, m->gate.out, m->up.out)}};
    m->o->ops->quantise(&ex, check_number(m->n), m->x, m->in);
    m->o->ops->linear(&ex, check_number(m->n), m->in, outs, 2, true);
    m->o->ops->linear_glu(&ex, check_number(m->n), m->in, &m->gate, &m->up, HN_SILU, m->gated);
}

/* n rows at once, or each alone: y and the gated rows into `to`. */
static void many_run(many m, int n, int at, float *to) {
    const int width = m.gate.out;
    m.n = n;
    m.x = hn_rows_from(m.x, at);
    m.y = (hn_matrix){check_mem(m.o, (size_t)(n * 2 * width) * sizeof(float)), 2 * width, 2 * width};
    hn_pool_run(hn_cpu_of(m.o)->pool, many_rank, &m);
    for (int i = 0; i < n; i++) {
        memcpy(to + (size_t)(i * 3 * width), hn_host_row(m.y, i), (size_t)(2 * width) * sizeof *to);
        memcpy(to + (size_t)(i * 3 * width + 2 * width), act_f32(&m.gated, i), (size_t)width * sizeof *to);
    }
    m.o->mem_free(m.o, m.y.at.mem);
}

static void many_rows_test(void **state HN_UNUSED) {
    enum { N = 150, IN = 256, WIDTH = 100 };
    float *all = hn_alloc(N * 3 * WIDTH * sizeof *all), *one = hn_alloc(3 * WIDTH * sizeof *one);
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        check_ops c = check_open(2, isa, isa == HN_ISA_REF);
        part gate = part_create(c.o, HN_Q4_K, 1, WIDTH, IN), up = part_create(c.o, HN_BF16, 1, WIDTH, IN);
        many m = {.o = c.o, .gate = alone(&gate, 0), .up = alone(&up, 0), .x = {check_put_random(c.o, N * IN), IN, IN}};
        m.in = (hn_act){check_mem(c.o, c.o->act_bytes(IN, N)), IN, N, HN_ACT_F32 | HN_ACT_Q8 | HN_ACT_BF16};
        m.gated = (hn_act){check_mem(c.o, c.o->act_bytes(WIDTH, N)), WIDTH, N, HN_ACT_F32};
        m.up.wide = true; /* reads floats in native precision too */
        many_run(m, N, 0, all);
        for (int i = 0; i < N; i += 7) {
            many_run(m, 1, i, one);
            check_same_row(all + i * 3 * WIDTH, one, 3 * WIDTH, hn_isa_name(isa), i);
            c.o->f32 = true;
            many_run(m, 1, i, one);
            c.o->f32 = isa == HN_ISA_REF;
            check_same_row(all + i * 3 * WIDTH + WIDTH, one + WIDTH, WIDTH, hn_isa_name(isa), i);
        }
        hn_mem *const mems[] = {m.in.data.mem, m.gated.data.mem, m.x.at.mem};
        for (int i = 0; i < 3; i++) c.o->mem_free(c.o, mems[i]);
        part_free(c.o, &gate);
        part_free(c.o, &up);
        check_close(&c);
    }
    hn_free(all);
    hn_free(one);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(route_test), cmocka_unit_test(experts_test), cmocka_unit_test(many_rows_test)};
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
