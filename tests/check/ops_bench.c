/* SPDX-License-Identifier: Apache-2.0 */
/* ops_bench.c - times the operations on the shapes of SmolLM2-135M, for tuning kernels: all matrix products of a pass on
 * distinct weights, then the other operations of a layer, beside the machine's limits in the same seconds.
 *
 *   ops_bench [LEVEL [THREADS [CONTEXT [ROWS...]]]]      defaults: best, all cores, 256, 1 to 64 rows
 *   ops_bench attention [LEVEL [THREADS [HEADS [KV_HEADS [DIM [CONTEXT [PAGE_ROWS [TYPE [V_DIM]]]]]]]]]
 *                                                     attention alone; 16 heads, 8 kv heads of 128; one context, 0: three;
 *                                                     one kv head and V_DIM below DIM: V is the front of K (latent attention)
 *   ops_bench types [LEVEL [THREADS [TYPE...]]]          one product for each weight type; how fast one thread packs it
 *
 * BENCH_TYPE=q4_0 or q8_0 in the environment: the type of the layers' weights, else Q4_1. BENCH_GREEDY: no row of logits is
 * written, only its best is found.
 *
 * Not part of the build. From the root of the repository, with the library built in build/:
 *   cc -O2 -D_GNU_SOURCE -Iinclude -Isrc tests/check/ops_bench.c build/libhunch.a -lpthread -lm -o build/ops_bench
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "ops/cpu_mem.h"
#include "ops/machine.h"
#include "ops/pack.h"

enum { LAYERS = 30, HIDDEN = 576, FFN = 1536, HEADS = 9, KV_HEADS = 3, DIM = 64, VOCAB = 49152, PAGE_ROWS = 64,
       MAX_CONTEXT = 8192, QKV = HIDDEN + 2 * KV_HEADS * DIM, REPEATS = 15 };

typedef struct layer {
    hn_weight q, k, v, o, gate, up, down;
    hn_kv kv;
} layer;

typedef struct bench {
    hn_backend *o;
    hn_pool *pool;
    hn_dtype type; /* of the layers; the head is Q8_0 */
    int n, context;
    bool products_only, greedy; /* greedy: only the best logit of each row */
    layer layers[LAYERS];
    hn_weight head;
    hn_act act, wide;
    hn_buf x, qkv, att, logits, scratch;
    hn_norm norm;
    hn_top best;
    hn_rows rows;
    hn_rope rope;
    hn_rope_table turned;
    hn_buf weights; /* all in one block, for huge pages */
    size_t weight_bytes;
    double parts[8]; /* seconds of the best run on rank 0, by operation */
} bench;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Time of this thread only: less affected by other work on the machine. */
static double thread_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t seed = 1;

/* One thread is timed by its own CPU time. */
static double clock_s(const bench *b) { return hn_pool_threads(b->pool) == 1 ? thread_s() : now_s(); }

static hn_buf mem(bench *b, size_t bytes) {
    hn_buf m = {.off = 0};
    if (b->o->mem_create(b->o, HN_MEM_WORK, bytes, &m.mem, NULL) != HUNCH_OK) exit(4);
    return m;
}

static hn_weight weight(bench *b, hn_dtype t, int out, int in) {
    const size_t bytes = b->o->matrix_bytes(b->o, t, out, in);
    hn_weight w = {.dtype = t, .out = out, .in = in, .place = b->o->place(b->o, t, in, hn_at(b->weights, b->weight_bytes))};
    uint64_t *p = hn_host(w.place.at);
    for (size_t i = 0; i < bytes / 8; i++) p[i] = (hn_splitmix(&seed) & 0x03ff03ff03ff03ffu) | 0x1000100010001000u;
    b->weight_bytes += bytes;
    return w;
}

static void layer_create(bench *b, layer *l) {
    l->q = weight(b, b->type, HIDDEN, HIDDEN);
    l->k = weight(b, b->type, KV_HEADS * DIM, HIDDEN);
    l->v = weight(b, b->type, KV_HEADS * DIM, HIDDEN);
    l->o = weight(b, b->type, HIDDEN, HIDDEN);
    l->gate = weight(b, b->type, FFN, HIDDEN);
    l->up = weight(b, b->type, FFN, HIDDEN);
    b->o->pair(b->o, &l->gate.place, &l->up.place);
    l->down = weight(b, b->type, HIDDEN, FFN);
    size_t plane = hn_kv_bytes(HN_BF16, DIM, PAGE_ROWS) * KV_HEADS;
    l->kv = (hn_kv){.type = HN_BF16, .page_bytes = 2 * plane, .v_off = plane, .page_rows = PAGE_ROWS,
                    .kv_heads = KV_HEADS, .head_dim = DIM, .v_dim = DIM};
    l->kv.pool = mem(b, l->kv.page_bytes * (MAX_CONTEXT / PAGE_ROWS + 2));
    memset(hn_host(l->kv.pool), 0, l->kv.pool.mem->size);
}

static void rows_create(bench *b, int context, int page_rows) {
    hn_rows *r = &b->rows;
    r->position = mem(b, 4 * HN_PASS_ROWS);
    r->slot = r->last = r->from = r->position;
    r->token = mem(b, 4 * HN_PASS_ROWS);
    r->seq = mem(b, 4 * HN_PASS_ROWS);
    r->path_start = mem(b, 4 * HN_PASS_ROWS);
    r->path_slots = mem(b, 4 * HN_PASS_ROWS);
    r->seq_first = mem(b, 8);
    r->committed = mem(b, 4);
    r->direct = mem(b, 4);
    r->page_stride = (context + 2 * HN_PASS_ROWS) / page_rows + 1;
    r->page_table = mem(b, 4 * (size_t)r->page_stride);
    for (int i = 0; i < r->page_stride; i++) ((int32_t *)hn_host(r->page_table))[i] = i;
    b->rope = (hn_rope){.dims = DIM, .interleaved = true, .scale = 1, .freq = mem(b, DIM * 2)};
}

static void rows_set(bench *b) {
    hn_rows *r = &b->rows;
    r->n = hn_number(b->n);
    r->n_seqs = hn_number(1);
    for (int i = 0; i < b->n; i++) {
        ((int32_t *)hn_host(r->position))[i] = b->context + i;
        ((int32_t *)hn_host(r->path_slots))[i] = b->context + i;
    }
    ((int32_t *)hn_host(r->seq_first))[1] = b->n;
    *(int32_t *)hn_host(r->committed) = b->context;
    *(int32_t *)hn_host(r->direct) = 1;
}

static void mark(bench *b, int rank, int part, double *t) {
    if (rank != 0) return;
    double now = clock_s(b);
    b->parts[part] += now - *t;
    *t = now;
}

static void run_layer(bench *b, const hn_exec *ex, layer *l, double *t) {
    hn_backend *o = b->o;
    int n = b->n;
    const hn_matrix all = {b->qkv, QKV, QKV}, x = {b->x, HIDDEN, HIDDEN};
    const hn_qkv heads = {hn_columns(all, 0, HIDDEN), hn_columns(all, HIDDEN, KV_HEADS * DIM),
                          hn_columns(all, HIDDEN + KV_HEADS * DIM, KV_HEADS * DIM), DIM};
    if (!b->products_only) o->ops->norm(ex, hn_number(n), x, &b->norm, b->act, hn_no_matrix);
    mark(b, ex->rank, 5, t);
    hn_linear_out qkv[3] = {{&l->q, heads.q}, {&l->k, heads.k}, {&l->v, heads.v}};
    o->ops->linear(ex, hn_number(n), b->act, qkv, 3, false);
    mark(b, ex->rank, 0, t);
    if (!b->products_only) {
        o->ops->rope_store(ex, &b->rows, &b->turned, &l->kv, &heads);
        mark(b, ex->rank, 6, t);
        const hn_attention_params how = {.heads = HEADS, .scale = 0.125f};
        o->ops->attention(ex, &b->rows, &l->kv, &how, heads.q, (hn_matrix){b->att, HIDDEN, HIDDEN}, b->act, b->scratch);
        mark(b, ex->rank, 4, t);
    }
    hn_linear_out out = {&l->o, x}, down = {&l->down, x};
    o->ops->linear(ex, hn_number(n), b->act, &out, 1, true);
    mark(b, ex->rank, 0, t);
    if (!b->products_only) o->ops->norm(ex, hn_number(n), x, &b->norm, b->act, hn_no_matrix);
    mark(b, ex->rank, 5, t);
    o->ops->linear_glu(ex, hn_number(n), b->act, &l->gate, &l->up, HN_SILU, b->wide);
    mark(b, ex->rank, 1, t);
    o->ops->linear(ex, hn_number(n), b->wide, &down, 1, true);
    mark(b, ex->rank, 2, t);
}

static void pass(void *arg, int rank, int ranks) {
    bench *b = arg;
    hn_exec ex = {b->o->ops, b->o, rank, ranks};
    double t = clock_s(b);
    if (!b->products_only) b->o->ops->rope_table(&ex, &b->rows, &b->turned);
    for (int i = 0; i < LAYERS; i++) run_layer(b, &ex, &b->layers[i], &t);
    const hn_output_rows out = {1, 0, hn_number(b->greedy ? 0 : b->n), {b->logits, VOCAB, VOCAB}};
    b->o->ops->linear_top(&ex, hn_number(b->n), b->act, &b->head, &out, &b->best);
    mark(b, rank, 3, &t);
}

/* Best time of some passes, and its parts. */
static double best_pass(bench *b, int n, bool products_only) {
    double best = 1e9, parts[sizeof b->parts / sizeof *b->parts] = {0};
    b->n = n;
    b->products_only = products_only;
    rows_set(b);
    for (int i = 0; i < REPEATS; i++) {
        memset(hn_host(b->x), 0, 4 * HIDDEN); /* residuals must not grow without end */
        memset(b->parts, 0, sizeof b->parts);
        double start = clock_s(b);
        hn_pool_run(b->pool, pass, b);
        double s = clock_s(b) - start;
        if (s > best) continue;
        best = s;
        memcpy(parts, b->parts, sizeof parts);
    }
    memcpy(b->parts, parts, sizeof parts);
    return best;
}

static void buffers_create(bench *b) {
    b->act = (hn_act){mem(b, b->o->act_bytes(HIDDEN, HN_MAX_ROWS)), HIDDEN, HN_MAX_ROWS, HN_ACT_Q8};
    b->wide = (hn_act){mem(b, b->o->act_bytes(FFN, HN_MAX_ROWS)), FFN, HN_MAX_ROWS, HN_ACT_Q8};
    b->x = mem(b, 4 * HN_MAX_ROWS * HIDDEN);
    b->qkv = mem(b, 4 * HN_MAX_ROWS * QKV);
    b->att = mem(b, 4 * HN_MAX_ROWS * HIDDEN);
    b->logits = mem(b, (size_t)4 * HN_MAX_ROWS * VOCAB);
    b->norm = (hn_norm){.w = mem(b, 4 * HIDDEN), .kind = HN_RMS_NORM, .eps = 1e-5f};
    b->turned = (hn_rope_table){&b->rope, mem(b, 4 * HN_MAX_ROWS * DIM)};
    b->best = (hn_top){.k = 1, .id = mem(b, 4 * HN_MAX_ROWS), .value = mem(b, 4 * HN_MAX_ROWS),
                       .scratch = mem(b, b->o->top_scratch(b->o, HN_MAX_ROWS, 1))};
    b->scratch = mem(b, b->o->attention_scratch(b->o, HN_MAX_ROWS, HEADS, &b->layers[0].kv, MAX_CONTEXT));
}

/* ---- attention alone: shapes of models, types of cache ------------------------------------------------------------------ */

enum { ATTENTION_BYTES = 256 << 20, ATTENTION_REPEATS = 5, MOST_LAYERS = 32 };

/* What is asked for. */
typedef struct shape {
    int heads, kv_heads, dim, v_dim, page_rows;
} shape;

static bool values_in_keys(const shape *s) { return s->kv_heads == 1 && s->v_dim < s->dim; }

typedef struct attention {
    bench *b;
    hn_attention_params how;
    int layers;
    hn_kv kv[MOST_LAYERS];
    hn_buf q, out;
    hn_act act;
    double seconds; /* of the last pass, a layer, on rank 0: its own time where it is alone */
} attention;

static void attention_pass(void *arg, int rank, int ranks) {
    attention *a = arg;
    const hn_exec ex = {a->b->o->ops, a->b->o, rank, ranks};
    const int heads = a->how.heads, q_width = heads * a->kv[0].head_dim, width = heads * a->kv[0].v_dim;
    double start = ranks == 1 ? thread_s() : now_s();
    for (int i = 0; i < a->layers; i++) {
        const hn_matrix q = {a->q, q_width, q_width}, out = {a->out, width, width};
        a->b->o->ops->attention(&ex, &a->b->rows, &a->kv[i], &a->how, q, out, a->act, a->b->scratch);
    }
    if (rank == 0) a->seconds = ((ranks == 1 ? thread_s() : now_s()) - start) / a->layers;
}

static double attention_time(attention *a, int n, int context) {
    double best = 1e9;
    a->b->n = n;
    a->b->context = context;
    rows_set(a->b);
    for (int i = 0; i < ATTENTION_REPEATS; i++) {
        hn_pool_run(a->b->pool, attention_pass, a);
        best = a->seconds < best ? a->seconds : best;
    }
    return best;
}

/* Pages of all layers side by side, as in a cache, of more bytes than the caches hold; elements of every type stay small. */
static void attention_cache(attention *a, hn_dtype type, const shape *s, int context) {
    const size_t keys = hn_kv_bytes(type, s->dim, s->page_rows) * (size_t)s->kv_heads,
                 both = keys + (values_in_keys(s) ? 0 : hn_kv_bytes(type, s->v_dim, s->page_rows) * (size_t)s->kv_heads);
    const int pages = (context + 2 * HN_PASS_ROWS) / s->page_rows + 1;
    const size_t layers = ATTENTION_BYTES / (both * (size_t)(context / s->page_rows + 1)) + 1;
    a->layers = layers < MOST_LAYERS ? (int)layers : MOST_LAYERS;
    const hn_buf pool = mem(a->b, both * (size_t)a->layers * (size_t)pages);
    for (int i = 0; i < a->layers; i++) {
        a->kv[i] = (hn_kv){.type = type, .pool = pool, .page_bytes = both * (size_t)a->layers, .k_off = both * (size_t)i,
                           .v_off = both * (size_t)i + keys, .page_rows = s->page_rows, .kv_heads = s->kv_heads,
                           .head_dim = s->dim, .v_dim = s->v_dim, .v_in_k = values_in_keys(s)};
    }
    uint64_t *p = hn_host(pool);
    for (size_t i = 0; i < pool.mem->size / 8; i++) p[i] = (hn_splitmix(&seed) & 0x83ff83ff83ff83ffu) | 0x3000300030003000u;
}

typedef struct limits {
    double read_gb_s, bf16_gmac_s, f32_gmac_s;
} limits;

static limits limits_now(bench *b) {
    hn_machine *machine;
    hn_peaks peaks;
    double read[5];
    const int threads = hn_pool_threads(b->pool);
    if (hn_machine_open(&machine, b->pool, hn_cpu_of(b->o)->isa, NULL) != HUNCH_OK ||
        hn_machine_read(machine, ATTENTION_BYTES, threads, true, 5, read, NULL) != HUNCH_OK ||
        hn_machine_peaks(machine, &peaks, NULL) != HUNCH_OK) exit(4);
    hn_machine_close(&machine);
    for (int i = 1; i < 5; i++) read[0] = read[i] > read[0] ? read[i] : read[0];
    const limits l = {read[0], peaks.bf16_dot_gmac_s > 0 ? peaks.bf16_dot_gmac_s : peaks.bf16_gmac_s, peaks.f32_gmac_s};
    printf("read %.1f GB/s, bf16 %.0f, f32 %.0f G MAC/s\n", l.read_gb_s, l.bf16_gmac_s, l.f32_gmac_s);
    return l;
}

/* One line for each type of cache and context: microseconds a layer for numbers of rows, and the share of the limit: K and V
 * read once, or the products. */
static void time_attention(bench *b, const shape *s, int only_context, const char *only_type) {
    static const hn_dtype types[] = {HN_BF16, HN_F16, HN_Q8_0};
    static const int contexts[] = {256, 2048, 8128}, rows[] = {1, 2, 4, 8, 16, 64};
    attention a = {.b = b, .how = {.heads = s->heads, .scale = 0.1f}};
    const int q_width = s->heads * s->dim, width = s->heads * s->v_dim;
    a.q = mem(b, (size_t)4 * HN_PASS_ROWS * (size_t)q_width);
    a.out = mem(b, (size_t)4 * HN_PASS_ROWS * (size_t)width);
    a.act = (hn_act){mem(b, b->o->act_bytes(width, HN_PASS_ROWS)), width, HN_PASS_ROWS, HN_ACT_Q8};
    for (int i = 0; i < HN_PASS_ROWS * q_width; i++) hn_host_f32(a.q)[i] = (float)(hn_splitmix(&seed) % 2001) * 1e-3f - 1;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        if (only_type && strcmp(only_type, hn_dtype_name(types[t]))) continue;
        for (size_t c = 0; c < (only_context ? 1 : sizeof contexts / sizeof *contexts); c++) {
            const int context = only_context ? only_context : contexts[c];
            const limits l = limits_now(b);
            attention_cache(&a, types[t], s, context);
            b->scratch = mem(b, b->o->attention_scratch(b->o, HN_PASS_ROWS, s->heads, &a.kv[0], context + HN_PASS_ROWS));
            rows_create(b, context, s->page_rows);
            printf("%d/%d heads of %d, %-4s context %4d: us a layer", s->heads, s->kv_heads, s->dim, hn_dtype_name(types[t]), context);
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                const double t_s = attention_time(&a, rows[i], context), seen = context + rows[i] / 2.0;
                const double macs = (double)rows[i] * s->heads * (s->dim + s->v_dim) * seen,
                             bytes = hn_kv_read_bytes(&a.kv[0], context + rows[i]);
                const double rate = b->o->attention_in_bf16(b->o, types[t]) ? l.bf16_gmac_s : l.f32_gmac_s;
                const double by_bytes = bytes / l.read_gb_s, by_macs = macs / rate;
                printf(" | %d %.1f %.2f%s", rows[i], t_s * 1e6, (by_bytes > by_macs ? by_bytes : by_macs) * 1e-9 / t_s,
                       by_bytes > by_macs ? "" : "m");
            }
            printf("\n");
            fflush(stdout);
            b->o->mem_free(b->o, a.kv[0].pool.mem);
            b->o->mem_free(b->o, b->scratch.mem);
        }
    }
}

/* ---- types: one product over more weights than the caches hold -------------------------------------------------------- */

enum { TYPES_IN = 4096, TYPES_BYTES = 64 << 20, TYPES_REPEATS = 5 };

typedef struct product {
    hn_backend *o;
    hn_weight w;
    hn_act act;
    hn_buf x, y;
    int n;
    double seconds; /* of the last pass on rank 0: its own time where it is alone */
} product;

static void product_pass(void *arg, int rank, int ranks) {
    product *p = arg;
    hn_exec ex = {p->o->ops, p->o, rank, ranks};
    hn_linear_out out = {&p->w, {p->y, p->w.out, p->w.out}};
    double start = ranks == 1 ? thread_s() : now_s();
    p->o->ops->linear(&ex, hn_number(p->n), p->act, &out, 1, false);
    if (rank == 0) p->seconds = (ranks == 1 ? thread_s() : now_s()) - start;
}

static void product_rows(void *arg, int rank, int ranks) {
    product *p = arg;
    hn_exec ex = {p->o->ops, p->o, rank, ranks};
    p->o->ops->quantise(&ex, hn_number(HN_MAX_ROWS), (hn_matrix){p->x, TYPES_IN, TYPES_IN}, p->act);
}

/* Seconds to pack the matrix, on this thread, from as many bytes as a file would have of it. */
static double pack_time(product *p, const unsigned char *stored, size_t row_bytes) {
    static const float factors[TYPES_IN / HN_F8_TILE] = {1};
    double start = thread_s();
    for (int s = 0; s < hn_strips(p->w.out); s++) {
        p->o->pack(p->o, &p->w, 0, s * HN_STRIP, stored + row_bytes * (size_t)(s * HN_STRIP), row_bytes,
                   p->w.dtype == HN_F8_E4M3 ? factors : NULL);
    }
    return thread_s() - start;
}

static void time_type(bench *b, product *p, hn_dtype t, const unsigned char *stored) {
    static const int rows[] = {1, 2, 4, 8, 16, 32};
    size_t row_bytes;
    hn_dtype_row_bytes(t, TYPES_IN, &row_bytes);
    b->weight_bytes = 0;
    p->w = weight(b, t, (int)((size_t)TYPES_BYTES / hn_strip_bytes(t, TYPES_IN)) * HN_STRIP, TYPES_IN);
    double pack = pack_time(p, stored, row_bytes), again = pack_time(p, stored, row_bytes), one = 0;
    pack = again < pack ? again : pack;
    b->weight_bytes = 0;
    p->w = weight(b, t, p->w.out, TYPES_IN); /* less random numbers: no NaN, few infinities */
    printf("%-8s pack %5.2f GB/s |", hn_dtype_name(t), (double)row_bytes * p->w.out / pack * 1e-9);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double best = 1e9;
        p->n = rows[i];
        for (int r = 0; r < TYPES_REPEATS; r++) {
            hn_pool_run(b->pool, product_pass, p);
            best = p->seconds < best ? p->seconds : best;
        }
        if (i == 0) printf(" 1 row %7.3f ms %5.1f GB/s |", best * 1e3, (double)b->weight_bytes / best * 1e-9);
        if (i == 0) one = best;
        if (i > 0) printf(" %d rows x%.2f", rows[i], best / one);
    }
    printf("\n");
    fflush(stdout);
}

/* names: those to time; none: all. */
static void time_types(bench *b, int count, char **names) {
    product p = {.o = b->o};
    const int most_out = TYPES_BYTES / TYPES_IN * 8; /* of two bits a weight */
    size_t stored_bytes = (size_t)TYPES_BYTES + (1 << 20);
    b->weights = mem(b, (size_t)TYPES_BYTES);
    p.x = mem(b, (size_t)HN_MAX_ROWS * TYPES_IN * sizeof(float));
    p.y = mem(b, (size_t)HN_MAX_ROWS * (size_t)most_out * sizeof(float));
    p.act = (hn_act){mem(b, b->o->act_bytes(TYPES_IN, HN_MAX_ROWS)), TYPES_IN, HN_MAX_ROWS, HN_ACT_F32 | HN_ACT_Q8 | HN_ACT_BF16};
    for (int i = 0; i < HN_MAX_ROWS * TYPES_IN; i++) hn_host_f32(p.x)[i] = (float)(hn_splitmix(&seed) % 2001) * 1e-3f - 1;
    hn_pool_run(b->pool, product_rows, &p);
    uint64_t *stored = hn_host(mem(b, stored_bytes));
    for (size_t i = 0; i < stored_bytes / 8; i++) stored[i] = hn_splitmix(&seed);
    for (int t = 0; t < HN_WEIGHT_TYPES; t++) {
        bool named = count == 0;
        for (int i = 0; i < count; i++) named = named || !strcmp(names[i], hn_dtype_name((hn_dtype)t));
        if (named) time_type(b, &p, (hn_dtype)t, (const unsigned char *)stored);
    }
}

int main(int argc, char **argv) {
    static bench b;
    hn_isa isa;
    hunch_error err = {.status = HUNCH_OK};
    hn_pool *pool;
    const bool types = argc > 1 && !strcmp(argv[1], "types"), alone = argc > 1 && !strcmp(argv[1], "attention");
    if (types || alone) argv++, argc--;
    int threads = argc > 2 ? atoi(argv[2]) : hn_cores();
    b.context = argc > 3 ? atoi(argv[3]) : 256;
    if (hn_isa_parse(argc > 1 ? argv[1] : "best", &isa, &err) != HUNCH_OK ||
        hn_pool_create(&pool, threads, &err) != HUNCH_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    b.pool = pool;
    if (hn_cpu_backend_open(&b.o, pool, isa, false, &err) != HUNCH_OK) return 4;
    if (types) {
        time_types(&b, argc > 3 ? argc - 3 : 0, argv + 3);
        hn_pool_free(pool);
        return 0;
    }
    b.greedy = getenv("BENCH_GREEDY") != NULL;
    if (alone) {
        shape s = {argc > 3 ? atoi(argv[3]) : 16, argc > 4 ? atoi(argv[4]) : 8, argc > 5 ? atoi(argv[5]) : 128, 0,
                   argc > 7 ? atoi(argv[7]) : PAGE_ROWS};
        s.v_dim = argc > 9 ? atoi(argv[9]) : s.dim;
        time_attention(&b, &s, argc > 6 ? atoi(argv[6]) : 0, argc > 8 ? argv[8] : NULL);
        hn_pool_free(pool);
        return 0;
    }
    b.type = getenv("BENCH_TYPE") && !strcmp(getenv("BENCH_TYPE"), "q8_0") ? HN_Q8_0
             : getenv("BENCH_TYPE") && !strcmp(getenv("BENCH_TYPE"), "q4_0") ? HN_Q4_0 : HN_Q4_1;
    b.weights = mem(&b, (size_t)256 << 20);
    for (int i = 0; i < LAYERS; i++) layer_create(&b, &b.layers[i]);
    b.head = weight(&b, HN_Q8_0, VOCAB, HIDDEN);
    buffers_create(&b);
    rows_create(&b, MAX_CONTEXT, PAGE_ROWS);
    double read[8];
    hn_peaks peaks;
    hn_machine *machine;
    if (hn_machine_open(&machine, &b.o, &err) != HUNCH_OK ||
        hn_machine_read(machine, (size_t)1 << 30, threads, true, 8, read, &err) != HUNCH_OK ||
        hn_machine_peaks(machine, &peaks, &err) != HUNCH_OK)
        return 4;
    hn_machine_close(&machine);
    for (int i = 1; i < 8; i++) read[0] = read[i] > read[0] ? read[i] : read[0];
    printf("%s, %d threads: read %.1f GB/s, int8 %.0f G MAC/s, barrier %.2f us; weights %.1f MB, context %d\n",
           hn_isa_name(isa), threads, read[0], peaks.int8_gmac_s, peaks.barrier_us, (double)b.weight_bytes * 1e-6, b.context);
    static const int usual[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64};
    int count = argc > 4 ? argc - 4 : (int)(sizeof usual / sizeof *usual);
    double one[2] = {0, 0};
    for (int i = 0; i < count; i++) {
        int n = argc > 4 ? atoi(argv[4 + i]) : usual[i];
        if (n < 1 || n > HN_MAX_ROWS) return 2;
        double products = best_pass(&b, n, true), all = best_pass(&b, n, false);
        if (i == 0) one[0] = products, one[1] = all;
        printf("n %2d  products %7.3f ms %5.1f GB/s x%.2f | all %7.3f ms %5.1f GB/s x%.2f |", n, products * 1e3,
               (double)b.weight_bytes / products * 1e-9, products / one[0], all * 1e3,
               (double)b.weight_bytes / all * 1e-9, all / one[1]);
        static const char *const names[] = {"qkv+o", "glu", "down", "head", "attention", "norm+quant", "rope"};
        for (int p = 0; p < 7; p++) printf(" %s %.0f", names[p], b.parts[p] * 1e6);
        printf("\n");
    }
    hn_pool_free(pool);
    return 0;
}
