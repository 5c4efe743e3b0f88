/* SPDX-License-Identifier: Apache-2.0 */
/* check_rows_test.c - the row kernels at every level against ref, bit for bit; ref against double arithmetic; and the
 * row operations against plain loops, with any number of threads. */
#include "check.h"

/* Calls fn for each level, ref included. */
static void each_level(void (*fn)(const struct hn_kernels *k, const char *name)) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int round = 0; round < 60; round++) fn(hn_kernels_get(isa), hn_isa_name(isa));
    }
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

static void exp_test(void **state HN_UNUSED) {
    double worst = 0;
    for (int i = 0; i < 200000; i++) {
        float x = (float)(check_unit() * 175 - 87);
        double error = fabs(hn_exp(x) / exp(x) - 1) / 0x1p-23;
        worst = error > worst ? error : worst;
    }
    assert_true(worst < 2);
    assert_true(isnan(hn_exp(NAN)));
    assert_true(hn_exp(0) == 1);
    assert_true(hn_exp(-INFINITY) == hn_exp(-87) && hn_exp(INFINITY) == hn_exp(88) && isfinite(hn_exp(88)));
}

static void one_rmsnorm(const struct hn_kernels *k, const char *name) {
    int in = check_int(1, 300);
    check_buf bx, bw, by, bz;
    float *x = check_guarded(&bx, in), *w = check_guarded(&bw, in), *y = check_guarded(&by, in), *z = check_guarded(&bz, in);
    enum check_kind kind = check_any_kind();
    check_fill(x, in, kind);
    check_fill(w, in, USUAL);
    hn_rmsnorm(check_ref(), x, w, in, 1e-5f, y);
    hn_rmsnorm(k, x, w, in, 1e-5f, z);
    check_same_row(z, y, in, name, in);
    double sum = 0;
    for (int i = 0; i < in; i++) sum += (double)x[i] * x[i];
    for (int i = 0; i < in && kind == USUAL; i++) {
        double want = x[i] / sqrt(sum / in + 1e-5) * w[i];
        assert_true(fabs(y[i] - want) <= 1e-5 * fabs(want) + 1e-30);
    }
    check_free(&bx);
    check_free(&bw);
    check_free(&by);
    check_free(&bz);
}

static void rmsnorm_test(void **state HN_UNUSED) { each_level(one_rmsnorm); }

/* Centred rows, beside double. */
static void layer_norm_test(void **state HN_UNUSED) {
    for (int round = 0; round < 100; round++) {
        float x[300], w[300], b[300], y[300];
        const int in = check_int(1, 300);
        double mean = 0, squares = 0;
        for (int i = 0; i < in; i++) {
            x[i] = 3 + check_normal();
            w[i] = check_normal();
            b[i] = check_normal();
            mean += x[i];
        }
        mean /= in;
        for (int i = 0; i < in; i++) squares += (x[i] - mean) * (x[i] - mean);
        const double inverse = 1 / sqrt(squares / in + 1e-5);
        const hn_row_sums sums = hn_centred_sums(x, in, 1e-5f);
        for (int with = 0; with < 4; with++) {
            hn_centre(x, with & 1 ? w : NULL, with & 2 ? b : NULL, in, sums, y);
            for (int i = 0; i < in; i++) {
                const double want = (x[i] - mean) * inverse * (with & 1 ? w[i] : 1) + (with & 2 ? b[i] : 0);
                assert_true(fabs(y[i] - want) <= 1e-4 * (in == 1 ? 10 : 1));
            }
        }
    }
}

static bool same_group(const hn_q8_group *a, const hn_q8_group *b) {
    bool same = memcmp(a->q, b->q, sizeof a->q) == 0 && memcmp(a->n8, b->n8, sizeof a->n8) == 0 &&
                memcmp(a->n128, b->n128, sizeof a->n128) == 0;
    for (int i = 0; i < 2; i++) same = same && check_same(a->d[i], b->d[i]) && check_same(a->ds[i], b->ds[i]);
    return same;
}

/* Ref's codes represent x: at most half a step away, and the sums are those of the codes. */
static void check_group(const hn_q8_group *g, const hn_q8_parts *parts, const float *x, int count, bool usual) {
    for (int b = 0; b < 2; b++) {
        int sum = 0, part[2] = {0};
        for (int i = 32 * b; i < 32 * b + 32; i++) {
            sum += g->q[i];
            part[i % 32 / 16] += g->q[i];
            assert_true(g->q[i] >= -127); /* the AVX2 kernels rely on it */
            if (usual && i < count) assert_true(fabs((double)g->d[b] * g->q[i] - x[i]) <= g->d[b] * 0.5001);
            if (i >= count) assert_true(g->q[i] == 0);
        }
        assert_true(g->n8[b] == -8 * sum && g->n128[b] == -128 * sum);
        assert_true(check_same(g->ds[b], g->d[b] * (float)sum));
        for (int p = 0; p < 2; p++) {
            assert_int_equal(parts->n4[2 * b + p], -4 * part[p]);
            assert_int_equal(parts->n32[2 * b + p], -32 * part[p]);
        }
    }
}

static void one_quantise(const struct hn_kernels *k, const char *name) {
    int in = check_int(1, 200), groups = hn_act_groups(in);
    check_buf bx, ba = check_alloc((size_t)groups * sizeof(hn_q8_group), 0),
                  bb = check_alloc((size_t)groups * sizeof(hn_q8_group), 0),
                  pa = check_alloc((size_t)groups * sizeof(hn_q8_parts), 32 * (size_t)check_int(0, 1)),
                  pb = check_alloc((size_t)groups * sizeof(hn_q8_parts), 32 * (size_t)check_int(0, 1));
    float *x = check_guarded(&bx, in);
    enum check_kind kind = check_any_kind();
    check_fill(x, in, kind);
    hn_q8_group *a = (hn_q8_group *)ba.p, *b = (hn_q8_group *)bb.p;
    hn_q8_parts *parts = (hn_q8_parts *)pa.p;
    check_ref()->quantise(x, in, a, parts);
    k->quantise(x, in, b, (hn_q8_parts *)pb.p);
    for (int g = 0; g < groups; g++) {
        if (!same_group(&b[g], &a[g])) fail_msg("%s: group %d of %d inputs, kind %d", name, g, in, kind);
        check_group(&a[g], &parts[g], x + 64 * g, in - 64 * g, kind == USUAL);
    }
    if (memcmp(pa.p, pb.p, pa.size) != 0) fail_msg("%s: parts of %d inputs, kind %d", name, in, kind);
    check_free(&bx);
    check_free(&ba);
    check_free(&bb);
    check_free(&pa);
    check_free(&pb);
}

static void quantise_test(void **state HN_UNUSED) {
    each_level(one_quantise);
    float x[32] = {0};
    hn_q8_group g;
    hn_q8_parts parts;
    x[7] = NAN;
    check_ref()->quantise(x, 32, &g, &parts);
    assert_true(isnan(g.d[0]) && g.q[7] == 0 && g.d[1] == 0 && parts.n4[0] == 0);
}

static void one_round_bf16(const struct hn_kernels *k, const char *name) {
    const int in = check_int(1, 200), padded = (in + 1) / 2 * 2;
    const enum check_kind kind = check_any_kind();
    check_buf bx, ba = check_alloc((size_t)padded * 2, 0), bb = check_alloc((size_t)padded * 2, 2 * (size_t)check_int(0, 31));
    float *x = check_guarded(&bx, in);
    check_fill(x, in, kind);
    if (kind == DENORMAL) x[0] = 0x1.fffffep-127f; /* would be rounded up to a normal number */
    const uint16_t *a = (uint16_t *)(void *)ba.p, *b = (uint16_t *)(void *)bb.p;
    check_ref()->round_bf16(x, in, (uint16_t *)(void *)ba.p);
    k->round_bf16(x, in, (uint16_t *)(void *)bb.p);
    for (int i = 0; i < padded; i++) {
        const float have = hn_bf16_to_f32(b[i]), want = i < in ? x[i] : 0;
        if (!check_same(have, hn_bf16_to_f32(a[i]))) fail_msg("%s: bf16 %d of %d, kind %d", name, i, in, kind);
        if (isnan(want) ? !isnan(have) : isinf(want) ? have != want : fabsf(want) < 0x1p-126f ? have != 0
                          : !(fabs((double)have - want) <= 0x1p-8 * fabs((double)want)) && !isinf(have))
            fail_msg("%s: %a became %a", name, want, have);
    }
    check_free(&bx);
    check_free(&ba);
    check_free(&bb);
}

static void round_bf16_test(void **state HN_UNUSED) { each_level(one_round_bf16); }

static void one_rope(const struct hn_kernels *k, const char *name) {
    int dims = 2 * check_int(1, 70);
    check_buf bc, bx, by;
    float *cs = check_guarded(&bc, dims), *x = check_guarded(&bx, dims), *y = check_guarded(&by, dims);
    bool interleaved = check_int(0, 1);
    for (int i = 0; i < dims / 2; i++) {
        double angle = check_unit() * 100;
        cs[i] = (float)cos(angle);
        cs[dims / 2 + i] = (float)sin(angle);
    }
    check_fill(x, dims, check_any_kind());
    memcpy(y, x, (size_t)dims * sizeof *x);
    int a = interleaved ? 2 : 0, b = interleaved ? 3 : dims / 2; /* the pair 1, or pair 0 of halves */
    int pair = interleaved ? 1 : 0;
    float before[2] = {x[a % dims], x[b % dims]};
    check_ref()->rope(x, cs, dims, interleaved);
    k->rope(y, cs, dims, interleaved);
    check_same_row(y, x, dims, name, dims);
    if (dims > 2 && isfinite(before[0]) && isfinite(before[1]) && fabsf(before[0]) < 1e30f) {
        double c = cs[pair], s = cs[dims / 2 + pair], want = before[0] * c - before[1] * s;
        assert_true(fabs(x[a] - want) <= 1e-6 * (fabs(before[0]) + fabs(before[1])) + 1e-37);
        want = before[1] * c + before[0] * s;
        assert_true(fabs(x[b] - want) <= 1e-6 * (fabs(before[0]) + fabs(before[1])) + 1e-37);
    }
    check_free(&bc);
    check_free(&bx);
    check_free(&by);
}

static void rope_test(void **state HN_UNUSED) { each_level(one_rope); }

static void one_to_cache(const struct hn_kernels *k, const char *name) {
    static const hn_dtype types[] = {HN_F32, HN_F16, HN_BF16};
    int n = check_int(1, 100);
    hn_dtype t = types[check_int(0, 2)];
    size_t bytes = (size_t)n * (t == HN_F32 ? 4 : 2);
    check_buf bx, a = check_alloc(bytes, 2), b = check_alloc(bytes, 2);
    float *x = check_guarded(&bx, n);
    check_fill(x, n, check_any_kind());
    for (int i = 0; i < n; i++) x[i] = isnan(x[i]) ? 0 : x[i]; /* the payload of a NaN may differ */
    check_ref()->to_cache(t, x, n, a.p);
    k->to_cache(t, x, n, b.p);
    if (memcmp(a.p, b.p, bytes) != 0) fail_msg("%s: %d values to %s", name, n, hn_dtype_name(t));
    check_free(&bx);
    check_free(&a);
    check_free(&b);
    uint16_t h[16] = {0};
    float not_a_number[16];
    for (int i = 0; i < 16; i++) not_a_number[i] = -NAN;
    k->to_cache(HN_BF16, not_a_number, 16, h);
    for (int i = 0; i < 16; i++) assert_true(isnan(hn_bf16_to_f32(h[i])));
}

static void to_cache_test(void **state HN_UNUSED) { each_level(one_to_cache); }

static void one_at_least(const struct hn_kernels *k, const char *name) {
    enum { MOST = 9 };
    const int n = check_int(1, MOST), cols = check_int(1, HN_STRIP);
    float least[MOST];
    uint16_t lanes[MOST];
    unsigned all = 0;
    check_buf bc = check_alloc((size_t)(n * HN_STRIP) * sizeof(float), 0);
    float *c = (float *)(void *)bc.p;
    check_fill(c, n * HN_STRIP, check_any_kind());
    for (int r = 0; r < n; r++) least[r] = check_int(0, 3) ? c[r * HN_STRIP + check_int(0, 15)] : -INFINITY;
    const unsigned have = k->at_least(c, n, cols, least, lanes);
    for (int i = 0; i < n * HN_STRIP; i++) {
        const int r = i / HN_STRIP, o = i % HN_STRIP;
        if ((lanes[r] >> o & 1) != (o < cols && c[i] >= least[r])) fail_msg("%s: %a, at least %a", name, c[i], least[r]);
        all |= lanes[r];
    }
    assert_int_equal(have, all);
    check_free(&bc);
}

static void at_least_test(void **state HN_UNUSED) { each_level(one_at_least); }

/* ---- operations ---------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 40, HEADS = 4, KV_HEADS = 2, DIM = 32, ROPE_DIMS = 20, PAGE_ROWS = 16, PAGES = 8, VOCAB = 105 };

/* One small model's worth of buffers. */
typedef struct world {
    check_ops c;
    hn_rows rows;
    hn_weight table;
    hn_kv kv;
    hn_rope rope;
    bool store_only; /* without a rotation */
    hn_act act;
    hn_buf x, normed, norm, cs, q, k, v, index, places, gathered, from, to, moves;
    int in, ld, n_moves;
} world;

/* The operations in the order of a layer. */
static void world_rank(void *arg, int rank, int ranks) {
    const world *w = arg;
    hn_backend *o = w->c.o;
    hn_exec ex = {o->ops, o, rank, ranks};
    const hn_matrix x = {w->x, w->in, w->ld}, normed = {w->normed, w->in, w->ld};
    const hn_rope_table turned = {&w->rope, w->cs};
    const hn_qkv heads = {{w->q, HEADS * DIM, w->ld}, {w->k, KV_HEADS * DIM, w->ld}, {w->v, KV_HEADS * DIM, w->ld}, DIM};
    o->ops->embed(&ex, &w->rows, &w->table, 1.5f, x);
    const hn_norm norm = {.w = w->norm, .kind = HN_RMS_NORM, .eps = 1e-5f};
    o->ops->norm(&ex, w->rows.n, x, &norm, w->act, normed);
    o->ops->gather(&ex, w->rows.n, w->index, normed, w->places, (hn_matrix){w->gathered, w->in, w->ld});
    o->ops->rope_table(&ex, &w->rows, &turned);
    o->ops->rope_store(&ex, &w->rows, w->store_only ? NULL : &turned, &w->kv, &heads);
    o->ops->kv_move(&ex, &w->kv, check_number(w->n_moves), w->moves);
}

static hn_buf put_ints(hn_backend *o, int n, int lo, int hi) {
    hn_buf b = check_mem(o, (size_t)n * sizeof(int32_t));
    for (int i = 0; i < n; i++) ((int32_t *)hn_host(b))[i] = check_int(lo, hi);
    return b;
}

static int32_t *ints(hn_buf b) { return (int32_t *)hn_host(b); }

static void world_rows(world *w, int n) {
    hn_backend *o = w->c.o;
    w->rows = (hn_rows){.n = check_number(n), .n_seqs = check_number(1), .page_stride = PAGES};
    w->rows.token = put_ints(o, n, 0, VOCAB - 1);
    w->rows.position = put_ints(o, n, 0, 131071);
    w->rows.slot = put_ints(o, n, 0, 0);
    w->rows.seq = put_ints(o, n, 0, 0);
    w->rows.page_table = put_ints(o, PAGES, 0, 0);
    for (int i = 0; i < n; i++) ints(w->rows.slot)[i] = 3 * i % (PAGES * PAGE_ROWS);
    for (int i = 0; i < PAGES; i++) ints(w->rows.page_table)[i] = 5 * i % PAGES; /* some order */
}

static void world_cache(world *w, hn_dtype type) {
    hn_backend *o = w->c.o;
    size_t plane = hn_kv_bytes(type, DIM, PAGE_ROWS) * KV_HEADS;
    w->kv = (hn_kv){.type = type, .page_bytes = 2 * plane, .v_off = plane, .page_rows = PAGE_ROWS,
                    .kv_heads = KV_HEADS, .head_dim = DIM, .v_dim = DIM};
    w->kv.pool = check_mem(o, w->kv.page_bytes * PAGES);
    w->n_moves = 5;
    w->from = put_ints(o, w->n_moves, 0, 0);
    w->to = put_ints(o, w->n_moves, 0, 0);
    for (int i = 0; i < w->n_moves; i++) {
        ints(w->from)[i] = 30 + 9 * i;
        ints(w->to)[i] = 30 + 6 * i;
    }
    w->moves = check_mem(o, (size_t)w->n_moves * sizeof(hn_row_move));
    for (int i = 0; i < w->n_moves; i++) {
        const int from = ints(w->from)[i], to = ints(w->to)[i];
        const int32_t *page = ints(w->rows.page_table);
        ((hn_row_move *)hn_host(w->moves))[i] =
            (hn_row_move){page[from / PAGE_ROWS], from % PAGE_ROWS, page[to / PAGE_ROWS], to % PAGE_ROWS};
    }
}

static void world_table(world *w, hn_dtype type) {
    hn_backend *o = w->c.o;
    const size_t row_bytes = check_row_bytes(type, w->in);
    unsigned char *rows = hn_alloc(row_bytes * VOCAB);
    float *factors = check_factors(type, w->in);
    for (int i = 0; i < VOCAB; i++) check_weights(type, w->in, SMALL, rows + row_bytes * (size_t)i);
    w->table = (hn_weight){.dtype = type, .out = VOCAB, .in = w->in};
    check_place(o, &w->table);
    check_pack(o, &w->table, 0, rows, row_bytes, factors);
    hn_free(rows);
    hn_free(factors);
}

static world world_create(hn_isa isa, int threads, hn_dtype table, hn_dtype cache, bool interleaved) {
    world w = {.c = check_open(threads, isa, false), .in = hn_dtype_block(table) > 160 ? 256 : 160};
    w.ld = w.in + 10;
    hn_backend *o = w.c.o;
    int n = check_int(1, ROWS);
    world_rows(&w, n);
    world_cache(&w, cache);
    world_table(&w, table);
    w.store_only = check_int(0, 4) == 0;
    w.rope = (hn_rope){.first = check_int(0, 1) ? DIM - ROPE_DIMS : 0, .dims = ROPE_DIMS, .interleaved = interleaved, .scale = 1.25f,
                       .freq = check_mem(o, ROPE_DIMS / 2 * sizeof(float))};
    for (int i = 0; i < ROPE_DIMS / 2; i++) hn_host_f32(w.rope.freq)[i] = i % 4 == 3 ? 0 : powf(10000, -2.0f * (float)i / ROPE_DIMS);
    w.act = (hn_act){check_mem(o, o->act_bytes(w.in, n)), w.in, n, HN_ACT_F32 | HN_ACT_Q8 | HN_ACT_BF16};
    w.x = check_mem(o, (size_t)(n * w.ld) * sizeof(float));
    w.normed = check_mem(o, (size_t)(n * w.ld) * sizeof(float));
    w.gathered = check_mem(o, (size_t)(n * w.ld) * sizeof(float));
    w.norm = check_put_random(o, w.in);
    w.cs = check_mem(o, (size_t)(n * ROPE_DIMS) * sizeof(float));
    w.q = check_put_random(o, n * w.ld);
    w.k = check_put_random(o, n * w.ld);
    w.v = check_put_random(o, n * w.ld);
    w.index = put_ints(o, n, 0, n - 1);
    w.places = put_ints(o, n, 0, 0);
    for (int i = 0; i < n; i++) ints(w.places)[i] = n - 1 - i;
    if (n % 2) {
        o->mem_free(o, w.places.mem);
        w.places.mem = NULL; /* each row in its own place */
    }
    return w;
}

static void world_free(world *w) {
    hn_buf all[] = {w->rows.token, w->rows.position, w->rows.slot, w->rows.seq, w->rows.page_table, w->table.place.at,
                    w->kv.pool, w->rope.freq, w->act.data, w->x, w->normed, w->norm, w->cs, w->q, w->k, w->v,
                    w->index, w->places, w->gathered, w->from, w->to, w->moves};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) w->c.o->mem_free(w->c.o, all[i].mem);
    check_close(&w->c);
}

/* The element of K (or V) that the cache holds for a slot. */
static float cached(const world *w, bool key, int slot, int head, int d) {
    const unsigned char *page = (unsigned char *)hn_host(w->kv.pool) +
                                w->kv.page_bytes * (size_t)ints(w->rows.page_table)[slot / PAGE_ROWS];
    const hn_kv_row row = (key ? hn_kv_key_row : hn_kv_value_row)(&w->kv, head, slot % PAGE_ROWS);
    const unsigned char *at = page + hn_kv_element(&w->kv, &row, d);
    if (w->kv.type == HN_F32) return *(const float *)(const void *)at;
    if (w->kv.type == HN_Q8_0) {
        const float *scale = (const float *)(const void *)(page + row.scale_at + row.scale_step * (size_t)(d / 32));
        return (float)*(const int8_t *)at * *scale;
    }
    const uint16_t h = *(const uint16_t *)(const void *)at;
    return w->kv.type == HN_F16 ? hn_f16_to_f32(h) : hn_bf16_to_f32(h);
}

/* The slot whose content is at `slot` after the moves; -1: a move overwrote it. */
static int source_of(const world *w, int slot) {
    for (int i = w->n_moves - 1; i >= 0; i--) {
        if (ints(w->to)[i] == slot) slot = ints(w->from)[i];
    }
    return slot;
}

/* q, k, v before the pass. */
static void check_world_cache(const world *w, const float *q, const float *k, const float *v) {
    double tolerance = w->kv.type == HN_F32 ? 2e-5 : w->kv.type == HN_F16 ? 1e-3 : 1e-2;
    for (int i = 0; i < hn_cpu_number(w->rows.n); i++) {
        int slot = ints(w->rows.slot)[i], pair = check_int(0, ROPE_DIMS / 2 - 1), head = check_int(0, KV_HEADS - 1);
        const int first = w->rope.first, a = first + (w->rope.interleaved ? 2 * pair : pair);
        const int b = w->rope.interleaved ? a + 1 : a + ROPE_DIMS / 2;
        float angle = (float)ints(w->rows.position)[i] * hn_host_f32(w->rope.freq)[pair];
        const double c = w->store_only ? 1 : cos(angle) * 1.25, s = w->store_only ? 0 : sin(angle) * 1.25;
        const float *x = q + i * w->ld + head * DIM, *y = hn_host_f32(w->q) + i * w->ld + head * DIM;
        assert_true(fabs(y[a] - (x[a] * c - x[b] * s)) < 2e-5);
        assert_true(fabs(y[b] - (x[b] * c + x[a] * s)) < 2e-5);
        for (int d = 0; d < DIM; d++) assert_true(y[d] == x[d] || (d >= first && d < first + ROPE_DIMS));
        for (int to = 0; to < PAGES * PAGE_ROWS; to++) {
            if (source_of(w, to) != slot) continue;
            x = k + i * w->ld + head * DIM;
            assert_true(fabs(cached(w, true, to, head, a) - (x[a] * c - x[b] * s)) < 4 * tolerance);
            assert_true(fabs(cached(w, true, to, head, b) - (x[b] * c + x[a] * s)) < 4 * tolerance);
            assert_true(fabs(cached(w, false, to, head, a) - v[i * w->ld + head * DIM + a]) < 4 * tolerance);
        }
    }
}

static void check_world_rows(const world *w) {
    float row[256];
    const int groups = hn_act_groups(w->in);
    for (int i = 0; i < hn_cpu_number(w->rows.n); i++) {
        int token = ints(w->rows.token)[i], from = ints(w->index)[i];
        const unsigned char *strip = (unsigned char *)hn_host(w->table.place.at) + w->table.place.step * (size_t)(token / 16);
        hn_strip_row(w->table.dtype, w->in, strip, token % 16, 0, w->in, row);
        for (int k = 0; k < w->in; k++) row[k] *= 1.5f;
        check_same_row(hn_host_f32(w->x) + i * w->ld, row, w->in, "embed", i);
        hn_rmsnorm(check_ref(), row, hn_host_f32(w->norm), w->in, 1e-5f, row);
        check_same_row(hn_host_f32(w->normed) + i * w->ld, row, w->in, "norm", i);
        const unsigned char *act = hn_host(w->act.data);
        check_same_row((const float *)(act + hn_act_f32_off(w->in, w->act.max_rows, i)), row, w->in, "f32 row", i);
        hn_q8_group q8[4];
        hn_q8_parts parts[4];
        check_ref()->quantise(row, w->in, q8, parts);
        const unsigned char *have = act + hn_act_q8_off(w->in, i);
        for (int g = 0; g < groups; g++) assert_true(same_group((const hn_q8_group *)have + g, &q8[g]));
        assert_memory_equal(have + hn_act_parts_off(w->in), parts, sizeof *parts * (size_t)groups);
        uint16_t half[256];
        check_ref()->round_bf16(row, w->in, half);
        assert_memory_equal(act + hn_act_bf16_off(w->in, w->act.max_rows, i), half, (size_t)w->in * sizeof *half);
        const int at = w->places.mem ? ints(w->places)[i] : i;
        check_same_row(hn_host_f32(w->gathered) + at * w->ld, hn_host_f32(w->normed) + from * w->ld, w->in, "gather", i);
    }
}

/* README: "Every kernel of every instruction level computes the bits of the plain C reference of its operation and level." */
static void operations_test(void **state HN_UNUSED) {
    static const hn_dtype caches[] = {HN_BF16, HN_F16, HN_F32, HN_Q8_0};
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int table = 0; table < HN_WEIGHT_TYPES; table++) {
            world w = world_create(isa, check_int(1, 4), (hn_dtype)table, caches[table % 4], check_int(0, 1));
            size_t bytes = (size_t)(hn_cpu_number(w.rows.n) * w.ld) * sizeof(float);
            float *before[3] = {hn_alloc(bytes), hn_alloc(bytes), hn_alloc(bytes)};
            memcpy(before[0], hn_host(w.q), bytes);
            memcpy(before[1], hn_host(w.k), bytes);
            memcpy(before[2], hn_host(w.v), bytes);
            hn_pool_run(w.c.pool, world_rank, &w);
            check_world_rows(&w);
            check_world_cache(&w, before[0], before[1], before[2]);
            for (int i = 0; i < 3; i++) hn_free(before[i]);
            world_free(&w);
        }
    }
}

/* ---- gates and biases ------------------------------------------------------------------------------------------------ */

enum { GLU_ROWS = 5, GLU_COLS = 200, GLU_LD = 208 };

typedef struct glu_work {
    hn_backend *o;
    hn_glu act;
    hn_buf gate, up, gate_bias, up_bias, sum, bias;
    float scale, limit;
    hn_act y;
} glu_work;

static void glu_rank(void *arg, int rank, int ranks) {
    const glu_work *w = arg;
    const hn_exec ex = {w->o->ops, w->o, rank, ranks};
    const hn_glu_in in = {{w->gate, GLU_COLS, GLU_LD}, {w->up, GLU_COLS, GLU_LD}, w->gate_bias, w->up_bias, w->limit};
    w->o->ops->glu(&ex, check_number(GLU_ROWS), w->act, &in, w->scale, w->y);
    w->o->ops->add_bias(&ex, check_number(GLU_ROWS), (hn_matrix){w->sum, GLU_COLS, GLU_LD}, w->bias);
}

static double glu_want(hn_glu act, double gate, double up, double limit) {
    if (limit > 0) return fmin(gate / (1 + exp(-gate)), limit) * fmin(fmax(up, -limit), limit);
    return act == HN_GELU ? check_gelu(gate) * up : gate / (1 + exp(-gate)) * up;
}

static void glu_test(void **state HN_UNUSED) {
    for (int round = 0; round < 24; round++) {
        check_ops c = check_open(check_int(1, 4), hn_isa_best(), false);
        const hn_buf none = {NULL, 0};
        glu_work w = {c.o, round & 1 ? HN_GELU : HN_SILU, check_put_random(c.o, GLU_ROWS * GLU_LD),
                      check_put_random(c.o, GLU_ROWS * GLU_LD), none, none, check_put_random(c.o, GLU_ROWS * GLU_LD),
                      check_put_random(c.o, GLU_COLS), round & 8 ? 0.25f : 1, round % 6 == 4 ? 0.4f : 0,
                      {check_mem(c.o, c.o->act_bytes(GLU_COLS, GLU_ROWS)), GLU_COLS, GLU_ROWS,
                       HN_ACT_F32 | HN_ACT_Q8 | HN_ACT_BF16}};
        if (round & 2) w.gate_bias = check_put_random(c.o, GLU_COLS);
        if (round & 4) w.up_bias = check_put_random(c.o, GLU_COLS);
        float gate[GLU_ROWS * GLU_LD], up[GLU_ROWS * GLU_LD], sum[GLU_ROWS * GLU_LD];
        memcpy(gate, hn_host(w.gate), sizeof gate);
        memcpy(up, hn_host(w.up), sizeof up);
        memcpy(sum, hn_host(w.sum), sizeof sum);
        hn_pool_run(c.pool, glu_rank, &w);
        for (int i = 0; i < GLU_ROWS * GLU_LD; i++) {
            const int k = i % GLU_LD;
            const bool inside = k < GLU_COLS;
            const double x = (double)gate[i] + (inside && w.gate_bias.mem ? (double)hn_host_f32(w.gate_bias)[k] : 0),
                         y = (double)up[i] + (inside && w.up_bias.mem ? (double)hn_host_f32(w.up_bias)[k] : 0),
                         want = glu_want(w.act, x, y, (double)w.limit) * (double)w.scale;
            if (inside) assert_true(fabs((double)act_f32(&w.y, i / GLU_LD)[k] - want) <= 2e-6 * (1 + fabs(x) * fabs(y)));
            assert_true(hn_host_f32(w.sum)[i] == (inside ? sum[i] + hn_host_f32(w.bias)[k] : sum[i]));
        }
        for (int i = 0; i < GLU_ROWS; i++) check_act_forms(&w.y, i);
        const hn_buf all[] = {w.gate, w.up, w.sum, w.bias, w.gate_bias, w.up_bias, w.y.data};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) c.o->mem_free(c.o, all[i].mem);
        check_close(&c);
    }
}

/* ---- functions of numbers --------------------------------------------------------------------------------------------- */

enum { APPLY_ROWS = 3, APPLY_COLS = 77, APPLY_LD = 80 };

typedef struct apply_work {
    hn_backend *o;
    hn_function f;
    hn_into into;
    hn_buf x, y, bias;
} apply_work;

static void apply_rank(void *arg, int rank, int ranks) {
    const apply_work *w = arg;
    const hn_exec ex = {w->o->ops, w->o, rank, ranks};
    const hn_matrix x = {w->x, APPLY_COLS, APPLY_LD}, y = {w->y, APPLY_COLS, APPLY_LD};
    w->o->ops->apply(&ex, check_number(APPLY_ROWS), w->f, w->into, x, w->bias, y);
}

static double apply_want(hn_function f, double x) {
    switch (f) {
    case HN_SAME: return x;
    case HN_SWISH: return x / (1 + exp(-x));
    case HN_SIGMOID: return 1 / (1 + exp(-x));
    case HN_GELU_ERF: return x * erfc(-x / sqrt(2)) / 2;
    case HN_TANH: return (exp(2 * x) - 1) / (exp(2 * x) + 1);
    case HN_SOFTPLUS: return log(1 + exp(x));
    case HN_RELU2: return x > 0 ? x * x : 0;
    }
    return NAN;
}

static void apply_test(void **state HN_UNUSED) {
    for (int round = 0; round < 84; round++) {
        check_ops c = check_open(check_int(1, 4), hn_isa_best(), false);
        apply_work w = {c.o,
                        (hn_function)(round % 7),
                        (hn_into)(round % 3),
                        check_put_random(c.o, APPLY_ROWS * APPLY_LD),
                        {NULL, 0},
                        {NULL, 0}};
        w.y = round % 4 == 0 ? w.x : check_put_random(c.o, APPLY_ROWS * APPLY_LD);
        if (round & 1) w.bias = check_put_random(c.o, APPLY_COLS);
        float x[APPLY_ROWS * APPLY_LD], y[APPLY_ROWS * APPLY_LD];
        memcpy(x, hn_host(w.x), sizeof x);
        memcpy(y, hn_host(w.y), sizeof y);
        hn_pool_run(c.pool, apply_rank, &w);
        for (int i = 0; i < APPLY_ROWS * APPLY_LD; i++) {
            const int k = i % APPLY_LD;
            const double f = apply_want(w.f, (double)x[i] + (w.bias.mem && k < APPLY_COLS ? (double)hn_host_f32(w.bias)[k] : 0)),
                         old = (double)y[i], want = w.into == HN_INTO_SET ? f : w.into == HN_INTO_ADD ? old + f : old * f;
            if (k >= APPLY_COLS)
                assert_true(hn_host_f32(w.y)[i] == y[i]);
            else
                assert_true(fabs((double)hn_host_f32(w.y)[i] - want) <= 1e-6 * (1 + fabs(old)) * (1 + fabs(f)));
        }
        if (w.y.mem != w.x.mem) c.o->mem_free(c.o, w.y.mem);
        c.o->mem_free(c.o, w.x.mem);
        c.o->mem_free(c.o, w.bias.mem);
        check_close(&c);
    }
}

/* ---- a step of a GRU ---------------------------------------------------------------------------------------------------- */

enum { GRU_ROWS = 3, GRU_SIZE = 77, GRU_LD = 240 };

typedef struct gru_work {
    hn_backend *o;
    hn_buf input, own, s;
} gru_work;

static void gru_rank(void *arg, int rank, int ranks) {
    const gru_work *w = arg;
    const hn_exec ex = {w->o->ops, w->o, rank, ranks};
    w->o->ops->gru(&ex, check_number(GRU_ROWS), (hn_matrix){w->input, 3 * GRU_SIZE, GRU_LD}, (hn_matrix){w->own, 3 * GRU_SIZE, GRU_LD},
              (hn_matrix){w->s, GRU_SIZE, GRU_LD});
}

/* torch's formula, in double; numbers that are no state's stay. */
static void check_gru(const float *input, const float *own, const float *s, const float *have) {
    for (int i = 0; i < GRU_ROWS * GRU_LD; i++) {
        const int k = i % GRU_LD, at = i - k;
        if (k >= GRU_SIZE) {
            assert_true(have[i] == s[i]);
            continue;
        }
        double in[3], hidden[3];
        for (int part = 0; part < 3; part++) {
            in[part] = (double)input[at + part * GRU_SIZE + k];
            hidden[part] = (double)own[at + part * GRU_SIZE + k];
        }
        const double r = 1 / (1 + exp(-(in[0] + hidden[0]))), u = 1 / (1 + exp(-(in[1] + hidden[1])));
        const double want = (1 - u) * tanh(in[2] + r * hidden[2]) + u * (double)s[i];
        assert_true(fabs((double)have[i] - want) <= 2e-6 * (1 + fabs((double)s[i])));
    }
}

/* The same bits at each level, by any number of ranks. */
static void gru_test(void **state HN_UNUSED) {
    static float input[GRU_ROWS * GRU_LD], own[GRU_ROWS * GRU_LD], s[GRU_ROWS * GRU_LD], first[GRU_ROWS * GRU_LD];
    for (int round = 0; round < 8; round++) {
        check_ops c = check_open(1 + round % 4, round & 1 ? hn_isa_best() : HN_ISA_REF, false);
        gru_work w = {c.o, check_put_random(c.o, GRU_ROWS * GRU_LD), check_put_random(c.o, GRU_ROWS * GRU_LD),
                      check_put_random(c.o, GRU_ROWS * GRU_LD)};
        if (round == 0) {
            memcpy(input, hn_host(w.input), sizeof input);
            memcpy(own, hn_host(w.own), sizeof own);
            memcpy(s, hn_host(w.s), sizeof s);
        }
        c.o->write(c.o, w.input, input, sizeof input);
        c.o->write(c.o, w.own, own, sizeof own);
        c.o->write(c.o, w.s, s, sizeof s);
        hn_pool_run(c.pool, gru_rank, &w);
        if (round == 0) memcpy(first, hn_host(w.s), sizeof first);
        check_gru(input, own, s, hn_host_f32(w.s));
        assert_memory_equal(first, hn_host(w.s), sizeof first);
        const hn_buf all[] = {w.input, w.own, w.s};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) c.o->mem_free(c.o, all[i].mem);
        check_close(&c);
    }
}

/* ---- convolutions of blocks --------------------------------------------------------------------------------------------- */

enum { CONV_ROWS = 11, CONV_BLOCK = 4, CONV_COLS = 48, CONV_LD = 64 };

typedef struct conv_work {
    hn_backend *o;
    hn_convolution c;
    bool add;
    hn_buf x, y;
} conv_work;

static void conv_rank(void *arg, int rank, int ranks) {
    const conv_work *w = arg;
    const hn_exec ex = {w->o->ops, w->o, rank, ranks};
    w->o->ops->convolve(&ex, check_number(CONV_ROWS), &w->c, (hn_matrix){w->x, CONV_COLS, CONV_LD}, w->add,
                        (hn_matrix){w->y, CONV_COLS, CONV_LD});
}

/* Rows of whole blocks and of a part of one, sums in the order of the taps. */
static void convolve_test(void **state HN_UNUSED) {
    for (int round = 0; round < 40; round++) {
        check_ops c = check_open(check_int(1, 4), hn_isa_best(), false);
        const int taps = 1 + round % 3, group = round & 4 ? 16 : 3, groups = CONV_COLS / group;
        conv_work w = {c.o,
                       {CONV_BLOCK, taps, group, check_put_random(c.o, taps * CONV_COLS),
                        {check_put_random(c.o, CONV_ROWS * taps * groups), taps * groups, taps * groups}},
                       round & 1,
                       check_put_random(c.o, CONV_ROWS * CONV_LD),
                       check_put_random(c.o, CONV_ROWS * CONV_LD)};
        const float *x = hn_host_f32(w.x), *base = hn_host_f32(w.c.base), *p = hn_host_f32(w.c.coefficients.at);
        float y[CONV_ROWS * CONV_LD];
        memcpy(y, hn_host(w.y), sizeof y);
        hn_pool_run(c.pool, conv_rank, &w);
        for (int i = 0; i < CONV_ROWS; i++)
            for (int k = 0; k < CONV_COLS; k++) {
                float sum = w.add ? y[i * CONV_LD + k] : 0;
                for (int t = 0; t < taps && t <= i % CONV_BLOCK; t++)
                    sum += (base[t * CONV_COLS + k] + p[(i * taps + t) * groups + k / group]) * x[(i - t) * CONV_LD + k];
                assert_true(hn_host_f32(w.y)[i * CONV_LD + k] == sum);
            }
        const hn_buf all[] = {w.x, w.y, w.c.base, w.c.coefficients.at};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) c.o->mem_free(c.o, all[i].mem);
        check_close(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_test),    cmocka_unit_test(rmsnorm_test),  cmocka_unit_test(layer_norm_test), cmocka_unit_test(quantise_test),
        cmocka_unit_test(round_bf16_test),
        cmocka_unit_test(rope_test),   cmocka_unit_test(to_cache_test), cmocka_unit_test(at_least_test),
        cmocka_unit_test(operations_test), cmocka_unit_test(glu_test), cmocka_unit_test(apply_test),
        cmocka_unit_test(gru_test),    cmocka_unit_test(convolve_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
