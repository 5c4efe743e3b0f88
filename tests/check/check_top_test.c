/* SPDX-License-Identifier: Apache-2.0 */
/* check_top_test.c - the best outputs of a product, against sorting all of them: at every level, with any number of threads, with ties,
 * with rows of no numbers, with more rows than a call of a kernel has, through a map of ids, with a bias; rows that are not to be
 * written do not change; the sums of the written rows' weights; the same of clusters that each row chooses, without reading others.
 * Matrices of rows picked from others. */
#include "check.h"

enum { MOST_OUT = 300, MANY_OUT = 2 * HN_SUM_PART + 77 };

typedef struct work {
    check_ops c;
    hn_weight w;
    hn_act act;
    hn_buf x, y, all;
    hn_top top;
    int n, n_written, ldy;
    float scale, cap;
} work;

static void work_rank(void *arg, int rank, int ranks) {
    const work *k = arg;
    hn_backend *o = k->c.o;
    const hn_exec ex = {o->ops, o, rank, ranks};
    const hn_linear_out all = {&k->w, {k->all, k->w.out, k->ldy}};
    const hn_output_rows out = {k->scale, k->cap, check_number(k->n_written), {k->y, k->w.out, k->ldy}};
    o->ops->quantise(&ex, check_number(k->n), (hn_matrix){k->x, k->w.in, k->w.in}, k->act);
    o->ops->linear(&ex, check_number(k->n), k->act, &all, 1, false);
    if (k->top.bias.mem) o->ops->add_bias(&ex, check_number(k->n), all.y, k->top.bias);
    if (k->scale != 1) o->ops->scale(&ex, check_number(k->n), all.y, k->scale);
    o->ops->linear_top(&ex, check_number(k->n), k->act, &k->w, &out, &k->top);
}

static hn_weight weight_create(hn_backend *o, hn_dtype t, int out, int in) {
    const size_t row = check_row_bytes(t, in);
    hn_weight w = {.dtype = t, .out = out, .in = in};
    check_place(o, &w);
    unsigned char *rows = hn_alloc(row * (size_t)out);
    float *factors = check_factors(t, in);
    for (int i = 0; i < out; i++) {
        if (i > 0 && check_int(0, 3) == 0)
            memcpy(rows + row * (size_t)i, rows + row * (size_t)check_int(0, i - 1), row); /* a tie in every row */
        else
            check_weights(t, in, SMALL, rows + row * (size_t)i);
    }
    check_pack(o, &w, 0, rows, row, factors);
    hn_free(rows);
    hn_free(factors);
    return w;
}

/* Different ids in any order. */
static void fill_map(int32_t *map, int n) {
    for (int i = 0; i < n; i++) map[i] = 1000 + 3 * i;
    for (int i = n - 1; i > 0; i--) {
        const int j = check_int(0, i);
        const int32_t id = map[i];
        map[i] = map[j];
        map[j] = id;
    }
}

static work work_create(hn_isa isa, hn_dtype t, bool f32) {
    const bool many = check_int(0, 7) == 0;
    const int block = hn_dtype_block(t), in = block * (many ? 1 : check_int(1, 256 / block));
    const int out = many ? check_int(HN_SUM_PART, MANY_OUT) : check_int(1, MOST_OUT);
    const int most = many ? 3 : check_int(0, 3) ? HN_MAX_ROWS : 3 * HN_MAX_ROWS;
    work k = {.c = check_open(check_int(1, 4), isa, f32), .n = check_int(1, most), .ldy = out + 3};
    hn_backend *o = k.c.o;
    k.n_written = check_int(0, 2) ? check_int(0, k.n) : 0;
    k.scale = check_int(0, 1) ? 1 : 0.125f;
    k.cap = check_int(0, 1) ? 0 : 0.5f; /* small: many different numbers tie at +-0.5 */
    k.w = weight_create(o, t, out, in);
    k.act = (hn_act){check_mem(o, o->act_bytes(in, k.n)), in, k.n, o->act_forms(o, t)};
    k.x = check_mem(o, (size_t)(k.n * in) * sizeof(float));
    for (int r = 0; r < k.n; r++)
        check_fill(hn_host_f32(k.x) + r * in, in, check_int(0, 3) ? USUAL : check_int(0, 1) ? ZERO : NOT_FINITE);
    k.y = check_put_random(o, k.n * k.ldy);
    k.all = check_mem(o, (size_t)(k.n * k.ldy) * sizeof(float));
    k.top.k = check_int(0, 1) ? 1 : check_int(2, HN_MAX_TOP);
    k.top.id = check_mem(o, (size_t)(k.n * k.top.k) * sizeof(int32_t));
    k.top.value = check_mem(o, (size_t)(k.n * k.top.k) * sizeof(float));
    k.top.scratch = check_mem(o, o->top_scratch(o, k.n, k.top.k));
    if (check_int(0, 1)) k.top.bias = check_put_random(o, out);
    if (check_int(0, 1)) k.top.sums = check_put_random(o, k.n * hn_sum_parts(out));
    if (check_int(0, 1)) k.top.moments = check_put_random(o, k.n * hn_sum_parts(out));
    if (check_int(0, 1)) {
        k.top.map = check_mem(o, (size_t)out * sizeof(int32_t));
        fill_map((int32_t *)hn_host(k.top.map), out);
    }
    return k;
}

static void work_free(work *k) {
    const hn_buf all[] = {k->w.place.at, k->act.data, k->x, k->y, k->all, k->top.id, k->top.value, k->top.scratch, k->top.map, k->top.sums,
                          k->top.moments, k->top.bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) k->c.o->mem_free(k->c.o, all[i].mem);
    check_close(&k->c);
}

/* The best of a row that is not `taken` yet, or -1. */
static int next_best(const work *k, const float *row, const bool *taken) {
    const int32_t *map = k->top.map.mem ? hn_host_i32(k->top.map) : NULL;
    int best = -1;
    for (int i = 0; i < k->w.out; i++) {
        if (taken[i] || isnan(row[i])) continue;
        if (best < 0 || row[i] > row[best] || (row[i] == row[best] && map && map[i] < map[best])) best = i;
    }
    return best;
}

static void check_row(const work *k, int r) {
    const float *row = hn_host_f32(k->all) + r * k->ldy;
    bool taken[MANY_OUT] = {false};
    for (int i = 0; i < k->top.k; i++) {
        const int best = next_best(k, row, taken), at = r * k->top.k + i;
        const int32_t want = best < 0 ? -1 : k->top.map.mem ? hn_host_i32(k->top.map)[best] : best;
        assert_int_equal(hn_host_i32(k->top.id)[at], want);
        assert_true(check_same(hn_host_f32(k->top.value)[at], best < 0 ? NAN : row[best]));
        if (best >= 0) taken[best] = true;
    }
}

/* A written row: each part against sums and moments in plain C, and in double. */
static void check_sums(const work *k, int r) {
    const float *row = hn_host_f32(k->y) + r * k->ldy, best = hn_host_f32(k->top.value)[r * k->top.k];
    const int parts = hn_sum_parts(k->w.out);
    for (int p = 0; p < parts; p++) {
        const int first = p * HN_SUM_PART, left = k->w.out - first, n = left < HN_SUM_PART ? left : HN_SUM_PART;
        double want = 0;
        if (k->top.moments.mem)
            assert_true(check_same(hn_host_f32(k->top.moments)[r * parts + p], check_ref()->exp_moment(row + first, n, best)));
        if (!k->top.sums.mem) continue;
        const float sum = hn_host_f32(k->top.sums)[r * parts + p];
        assert_true(check_same(sum, check_ref()->exp_sum(row + first, n, best)));
        for (int i = first; i < first + n; i++)
            if (row[i] <= best) want += exp((double)row[i] - (double)best);
        assert_true(!isfinite(best) || fabs(sum - want) <= 1e-5 * want + 1e-30);
    }
}

static void one_product(hn_isa isa, hn_dtype t, bool f32) {
    work k = work_create(isa, t, f32);
    float *before = hn_alloc((size_t)(k.n * k.ldy) * sizeof *before);
    memcpy(before, hn_host(k.y), (size_t)(k.n * k.ldy) * sizeof *before);
    hn_pool_run(k.c.pool, work_rank, &k);
    for (int r = 0; r < k.n && k.cap > 0; r++) check_ref()->softcap(hn_host_f32(k.all) + r * k.ldy, k.w.out, k.cap);
    for (int r = 0; r < k.n; r++) {
        const float *y = hn_host_f32(k.y) + r * k.ldy;
        check_row(&k, r);
        if (r < k.n_written) memcpy(before + r * k.ldy, hn_host_f32(k.all) + r * k.ldy, (size_t)k.w.out * sizeof *y);
        check_same_row(y, before + r * k.ldy, k.ldy, "written", r);
        if (r < k.n_written) check_sums(&k, r);
    }
    hn_free(before);
    work_free(&k);
}

static void top_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int t = 0; t < HN_WEIGHT_TYPES; t++) one_product(isa, (hn_dtype)t, t % 4 == 3);
}

/* ---- of each row's clusters ----------------------------------------------------------------------------------------- */

typedef struct cluster_case {
    work k;
    hn_clusters of;
} cluster_case;

static void cluster_rank(void *arg, int rank, int ranks) {
    const cluster_case *c = arg;
    const work *k = &c->k;
    const hn_exec ex = {k->c.o->ops, k->c.o, rank, ranks};
    const hn_output_rows out = {k->scale, k->cap, check_number(k->n_written), {k->y, c->of.used * c->of.size, k->ldy}};
    k->c.o->ops->clusters_top(&ex, check_number(k->n), k->act, &k->w, &c->of, &out, &k->top);
}

/* Different clusters for each row; sometimes fewer than all. */
static void choose_clusters(const cluster_case *c, int clusters) {
    int32_t *id = (int32_t *)hn_host(c->of.id);
    int order[MANY_OUT];
    for (int r = 0; r < c->k.n; r++) {
        const int none = check_int(0, 5) ? c->of.used : check_int(0, c->of.used - 1);
        for (int i = 0; i < clusters; i++) order[i] = i;
        for (int i = 0; i < c->of.used; i++) {
            const int j = check_int(i, clusters - 1), chosen = order[j];
            order[j] = order[i];
            order[i] = chosen;
            id[r * c->of.used + i] = i < none ? chosen : -1;
        }
    }
}

/* Strips without any output of a row's clusters are overwritten: they must not be read. */
static void spoil_others(const cluster_case *c) {
    const int32_t *id = hn_host_i32(c->of.id);
    for (int s = 0; s < hn_strips(c->k.w.out); s++) {
        bool read = false;
        for (int i = 0; i < c->k.n * c->of.used; i++)
            read |= id[i] >= 0 && id[i] * c->of.size < (s + 1) * HN_STRIP && (id[i] + 1) * c->of.size > s * HN_STRIP;
        if (!read) memset((char *)hn_host(c->k.w.place.at) + c->k.w.place.step * (size_t)s, 0x7F, c->k.w.place.step);
    }
}

/* By way of all outputs: those of other clusters do not count. */
static void check_clusters_row(const cluster_case *c, int r) {
    const work *k = &c->k;
    float *row = hn_host_f32(k->all) + r * k->ldy, *kept = hn_alloc((size_t)k->ldy * sizeof *kept);
    const float *y = hn_host_f32(k->y) + r * k->ldy;
    const int32_t *id = hn_host_i32(c->of.id) + r * c->of.used;
    memcpy(kept, row, (size_t)k->ldy * sizeof *kept);
    for (int i = 0; i < k->w.out; i++) row[i] = NAN;
    for (int i = 0; i < c->of.used; i++)
        for (int j = 0; j < c->of.size; j++) {
            const float want = id[i] < 0 ? -INFINITY : kept[id[i] * c->of.size + j];
            if (id[i] >= 0) row[id[i] * c->of.size + j] = want;
            if (r < k->n_written) assert_true(check_same(y[i * c->of.size + j], want));
        }
    check_row(k, r);
    hn_free(kept);
}

static void one_clustered(hn_isa isa, hn_dtype t, bool f32) {
    cluster_case c = {.k = work_create(isa, t, f32)};
    work *k = &c.k;
    const int out = k->w.out;
    c.of.size = check_int(1, out < 60 ? out : 60);
    const int clusters = out / c.of.size, most = clusters < HN_MAX_TOP ? clusters : HN_MAX_TOP;
    c.of.used = check_int(1, most);
    c.of.id = check_mem(k->c.o, (size_t)(k->n * c.of.used) * sizeof(int32_t));
    if (k->top.bias.mem) k->c.o->mem_free(k->c.o, k->top.bias.mem);
    k->top.bias.mem = NULL;
    choose_clusters(&c, clusters);
    hn_pool_run(k->c.pool, work_rank, k);
    for (int r = 0; r < k->n && k->cap > 0; r++) check_ref()->softcap(hn_host_f32(k->all) + r * k->ldy, out, k->cap);
    spoil_others(&c);
    hn_pool_run(k->c.pool, cluster_rank, &c);
    for (int r = 0; r < k->n; r++) check_clusters_row(&c, r);
    const hn_weight w = k->w;
    k->w.out = c.of.used * c.of.size; /* the sums' */
    for (int r = 0; r < k->n_written; r++) check_sums(k, r);
    k->w = w;
    k->c.o->mem_free(k->c.o, c.of.id.mem);
    work_free(k);
}

static void clusters_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int t = 0; t < HN_WEIGHT_TYPES; t++) one_clustered(isa, (hn_dtype)t, t % 4 == 3);
}

typedef struct picking {
    const hn_weight *w, *to;
    hn_buf ids;
} picking;

static void pick(const hn_exec *ex, const void *arg) {
    const picking *p = arg;
    ex->ops->pick_rows(ex, p->w, p->ids, p->to);
}

/* Every weight of a matrix of picked rows is that of the row it was picked from, and none is in a row that there is not. */
static void pick_test(void **state HN_UNUSED) {
    enum { ROWS = 70, PICKED = 37 };
    check_ops c = check_open(2, HN_ISA_REF, false);
    for (int t = 0; t < HN_WEIGHT_TYPES; t++) {
        const int block = hn_dtype_block((hn_dtype)t), in = block * check_int(1, 600 / block);
        hn_weight w = weight_create(c.o, (hn_dtype)t, ROWS, in), to = {.dtype = w.dtype, .out = PICKED, .in = in};
        int32_t ids[PICKED];
        for (int i = 0; i < PICKED; i++) ids[i] = check_int(0, ROWS - 1);
        check_place(c.o, &to);
        memset(hn_host(to.place.at), 0x7F, c.o->matrix_bytes(c.o, to.dtype, PICKED, in));
        const picking p = {&w, &to, check_put(c.o, ids, sizeof ids)};
        float *want = hn_alloc((size_t)in * sizeof *want), *have = hn_alloc((size_t)in * sizeof *have);
        hn_backend_run(c.o, pick, &p);
        for (int row = 0; row < hn_strips(PICKED) * HN_STRIP; row++) {
            const hn_weight *from[2] = {&to, &w};
            const int at[2] = {row, row < PICKED ? ids[row] : 0};
            float *rows[2] = {have, want};
            for (int i = 0; i < 2; i++)
                hn_strip_row((hn_dtype)t, in,
                             (unsigned char *)hn_host(hn_at(from[i]->place.at, from[i]->place.step * (size_t)(at[i] / HN_STRIP))),
                             at[i] % HN_STRIP, 0, in, rows[i]);
            for (int i = 0; i < in; i++) assert_true(row < PICKED ? check_same(have[i], want[i]) : have[i] == 0);
        }
        hn_free(want);
        hn_free(have);
        c.o->mem_free(c.o, p.ids.mem);
        c.o->mem_free(c.o, to.place.at.mem);
        c.o->mem_free(c.o, w.place.at.mem);
    }
    check_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(top_test), cmocka_unit_test(clusters_test), cmocka_unit_test(pick_test)};
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
