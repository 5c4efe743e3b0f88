/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - measures read bandwidth, the arithmetic of products, and barriers with the workers of a pool. */
#include "ops/machine.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ops/cpu_mem.h"
#include "ops/pack.h"

enum {
    BARRIERS = 3000,
    TIMES = 9, SLOW_TIMES = 2,  /* repetitions, the best one is used; for products in plain C */
    IN = 1024, ROWS = 32,       /* of the products */
    RANK_BYTES = 256 << 10,     /* weights of a rank: half of a common L2 cache, or less */
    DOT_ROUNDS = 100000
};
static const size_t read_least = (size_t)64 << 20; /* bytes per reading: some milliseconds */

/* Results of a rank. */
typedef struct mark {
    _Alignas(64) double begin, end; /* seconds */
    uint64_t sum;                   /* so that its reads are not optimised away */
} mark;

struct hn_machine {
    hn_cpu_backend cpu;
    mark *mark; /* [ranks] */
    unsigned char *memory;
    size_t size;
    bool huge;
};

hunch_status hn_machine_open(hn_machine **out, hn_pool *pool, hn_isa isa, hunch_error *err) {
    const size_t ranks = (size_t)hn_pool_threads(pool);
    hn_machine *m = hn_zalloc(1, sizeof *m);
    *out = NULL;
    if (m) m->mark = hn_zalloc(ranks, sizeof *m->mark);
    if (!m || !m->mark) {
        hn_free(m);
        return hn_fail_memory(err, "measuring the machine", sizeof *m + ranks * sizeof *m->mark);
    }
    hn_cpu_backend_init(&m->cpu, pool, isa, false);
    *out = m;
    return HUNCH_OK;
}

void hn_machine_close(hn_machine **mp) {
    hn_machine *m = *mp;
    *mp = NULL;
    if (!m) return;
    hn_pages_free(m->memory, m->size);
    hn_free(m->mark);
    hn_free(m);
}

/* All ranks begin together, run the measured function, and end. */
static void mark_begin(hn_machine *m, int rank) {
    hn_barrier(m->cpu.pool, rank);
    m->mark[rank].begin = hn_now();
}

/* Seconds from the first rank's begin to the last one's end, on rank 0 (a rank that leaves the barrier late has its
 * work started or done by others: its own time would be too short). */
static double mark_end(hn_machine *m, int rank) {
    m->mark[rank].end = hn_now();
    hn_barrier(m->cpu.pool, rank);
    double begin = m->mark[0].begin, end = m->mark[0].end;
    for (int i = 1; rank == 0 && i < hn_pool_threads(m->cpu.pool); i++) {
        if (m->mark[i].begin < begin) begin = m->mark[i].begin;
        if (m->mark[i].end > end) end = m->mark[i].end;
    }
    return end - begin;
}

static void keep_best(double *best, double s, int rank) {
    if (rank == 0 && (*best == 0 || s < *best)) *best = s;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

#define READ read_plain
static hn_read_fn READ;
#include "ops/read_tmpl.h"

static hn_read_fn *read_of(hn_isa isa) {
#if defined(__x86_64__)
    if (hn_isa_includes(isa, HN_ISA_AVX512)) return hn_read_avx512;
    if (hn_isa_includes(isa, HN_ISA_AVX2)) return hn_read_avx2;
#endif
    (void)isa;
    return read_plain;
}

typedef struct reading {
    hn_machine *m;
    size_t bytes;
    int threads, n;
    double *gb_s; /* [n] */
} reading;

/* A page that was never written has no memory yet. */
static void touch(void *arg, int rank, int ranks) {
    hn_machine *m = arg;
    const size_t part = m->size / (size_t)ranks, first = part * (size_t)rank;
    memset(m->memory + first, 1, rank == ranks - 1 ? m->size - first : part);
}

static void read_parts(void *arg, int rank, int ranks HN_UNUSED) {
    const reading *r = arg;
    hn_read_fn *read = read_of(r->m->cpu.isa);
    const size_t part = r->bytes / (size_t)r->threads / 256 * 256;
    const int sums = (int)((read_least + r->bytes - 1) / r->bytes);
    const unsigned char *mine = r->m->memory + part * (size_t)rank;
    for (int i = sums > 1 ? -1 : 0; i < r->n; i++) { /* -1: fills the caches */
        mark_begin(r->m, rank);
        for (int k = 0; k < sums && rank < r->threads; k++) r->m->mark[rank].sum += read(mine, part);
        const double s = mark_end(r->m, rank);
        if (rank == 0 && i >= 0) r->gb_s[i] = (double)part * r->threads * sums / s * 1e-9;
    }
}

/* The available memory is checked first, as for weights: a system that runs out while it is touched kills the process without a message. */
static hunch_status memory_get(hn_machine *m, size_t bytes, bool huge, hunch_error *err) {
    if (m->memory && m->huge == huge && m->size >= bytes) return HUNCH_OK;
    hn_pages_free(m->memory, m->size);
    m->memory = NULL;
    const size_t left = hn_memory_available();
    if (bytes > left)
        return hn_fail(err, HUNCH_NO_MEMORY, "measuring the machine needs %zu bytes of memory, %zu are available", bytes, left);
    m->memory = hn_pages_alloc(bytes);
    if (!m->memory) return hn_fail_memory(err, "measuring the machine", bytes);
    m->size = bytes;
    m->huge = huge;
    if (!huge) hn_pages_no_huge(m->memory, bytes);
    hn_pool_run(m->cpu.pool, touch, m);
    return HUNCH_OK;
}

hunch_status hn_machine_read(hn_machine *m, size_t bytes, int threads, bool huge_pages, int n, double *gb_s,
                             hunch_error *err) {
    hunch_status st = memory_get(m, bytes, huge_pages, err);
    reading r = {.m = m, .bytes = bytes, .threads = threads, .n = n, .gb_s = gb_s};
    if (!st) hn_pool_run(m->cpu.pool, read_parts, &r);
    return st;
}

/* ---- arithmetic --------------------------------------------------------------------------------------------- */

/* A product with all operands zero: the time does not depend on the values. */
typedef struct product {
    hn_machine *m;
    hn_weight w;
    hn_act a;
    hn_buf y;
    double best_s;
} product;

static void run_product(void *arg, int rank, int ranks) {
    product *p = arg;
    const hn_exec ex = hn_cpu_exec(&p->m->cpu, rank, ranks);
    const hn_linear_out out = {&p->w, {p->y, p->w.out, p->w.out}};
    for (int i = 0; i < (p->m->cpu.isa == HN_ISA_REF ? SLOW_TIMES : TIMES); i++) {
        mark_begin(p->m, rank);
        ex.ops->linear(&ex, hn_number(ROWS), p->a, &out, 1, false);
        keep_best(&p->best_s, mark_end(p->m, rank), rank);
    }
}

static hunch_status measure_product(hn_machine *m, hn_dtype type, double *gmac_s, hunch_error *err) {
    hn_backend *b = &m->cpu.base;
    const int ranks = hn_pool_threads(m->cpu.pool);
    const size_t strip = b->matrix_bytes(b, type, HN_STRIP, IN), strips = (RANK_BYTES / strip + 1) * (size_t)ranks;
    const size_t act = (b->act_bytes(IN, ROWS) + 63) / 64 * 64;
    product p = {.m = m, .w = {.dtype = type, .out = (int)strips * HN_STRIP, .in = IN},
                 .a = {.in = IN, .max_rows = ROWS, .forms = HN_ACT_F32 | HN_ACT_Q8 | HN_ACT_BF16}};
    hn_mem *mem;
    hunch_status st = b->mem_create(b, HN_MEM_WORK, strip * strips + act + sizeof(float) * ROWS * (size_t)p.w.out, &mem, err);
    if (st) return st;
    p.a.data.mem = p.y.mem = mem;
    p.w.place = b->place(b, type, IN, (hn_buf){mem, 0});
    p.a.data.off = strip * strips;
    p.y.off = p.a.data.off + act;
    hn_pool_run(m->cpu.pool, run_product, &p);
    *gmac_s = (double)ROWS * p.w.out * IN / p.best_s * 1e-9;
    b->mem_free(b, mem);
    return HUNCH_OK;
}

typedef struct dots {
    hn_machine *m;
    hn_dots_fn *fn;
    double best_s, macs; /* macs: of one rank */
} dots;

static void run_dots(void *arg, int rank, int ranks HN_UNUSED) {
    dots *d = arg;
    for (int i = 0; i < TIMES; i++) {
        mark_begin(d->m, rank);
        const double macs = d->fn(DOT_ROUNDS);
        keep_best(&d->best_s, mark_end(d->m, rank), rank);
        if (rank == 0) d->macs = macs;
    }
}

static hn_dots_fn *int8_dots(hn_isa isa) {
#if defined(__x86_64__)
    if (hn_isa_includes(isa, HN_ISA_AMX)) return hn_dots_int8_amx;
    if (hn_isa_includes(isa, HN_ISA_AVX512)) return hn_dots_int8_avx512;
    if (hn_isa_includes(isa, HN_ISA_AVXVNNI)) return hn_dots_int8_avxvnni;
#elif defined(__aarch64__)
    if (hn_isa_includes(isa, HN_ISA_I8MM)) return hn_dots_int8_i8mm;
    if (hn_isa_includes(isa, HN_ISA_DOTPROD)) return hn_dots_int8_dotprod;
#endif
    (void)isa;
    return NULL;
}

static hn_dots_fn *bf16_dots(hn_isa isa) {
#if defined(__x86_64__)
    if (hn_isa_includes(isa, HN_ISA_AMX)) return hn_dots_bf16_amx;
    if (hn_isa_includes(isa, HN_ISA_AVX512BF16)) return hn_dots_bf16_avx512bf16;
#endif
    (void)isa;
    return NULL;
}

static double measure_dots(hn_machine *m, hn_dots_fn *fn) {
    dots d = {.m = m, .fn = fn};
    if (!fn) return 0;
    hn_pool_run(m->cpu.pool, run_dots, &d);
    return d.macs * hn_pool_threads(m->cpu.pool) / d.best_s * 1e-9;
}

/* ---- barriers ----------------------------------------------------------------------------------------------- */

typedef struct barriers {
    hn_machine *m;
    double seconds;
} barriers;

static void run_barriers(void *arg, int rank, int ranks HN_UNUSED) {
    barriers *b = arg;
    for (int t = 0; t < TIMES; t++) {
        mark_begin(b->m, rank);
        for (int i = 0; i < BARRIERS; i++) hn_barrier(b->m->cpu.pool, rank);
        keep_best(&b->seconds, mark_end(b->m, rank), rank);
    }
}

hunch_status hn_machine_peaks(hn_machine *m, hn_peaks *out, hunch_error *err) {
    barriers b = {.m = m};
    *out = (hn_peaks){.int8_gmac_s = 0};
    hunch_status st = measure_product(m, HN_Q8_0, &out->int8_gmac_s, err);
    if (!st) st = measure_product(m, HN_BF16, &out->bf16_gmac_s, err);
    if (!st) st = measure_product(m, HN_F32, &out->f32_gmac_s, err);
    if (st) return st;
    out->int8_dot_gmac_s = measure_dots(m, int8_dots(m->cpu.isa));
    out->bf16_dot_gmac_s = measure_dots(m, bf16_dots(m->cpu.isa));
    hn_pool_run(m->cpu.pool, run_barriers, &b);
    out->barrier_us = b.seconds / BARRIERS * 1e6;
    return HUNCH_OK;
}
