/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - measures read bandwidth, int8 arithmetic and barriers with the workers of a pool. */
#include "ops/machine.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "ops/kernels.h"

enum {
    READS = 8,
    BARRIERS = 20000,
    MAC_IN = 256, MAC_ROWS = 8, MAC_CALLS = 4000, MAC_REPEATS = 5 /* about 20 KiB of operands a worker */
};
static const size_t read_bytes = (size_t)1 << 30;

/* Rank 0 keeps the times; every other field is set before the run. */
typedef struct measurement {
    const hn_ops *o;
    uint64_t *memory;         /* read_bytes */
    unsigned char *operands;  /* of all ranks */
    size_t operands_stride;   /* bytes of one rank's */
    uint64_t *sums;           /* [ranks], so that the reads have a use */
    double read_s, macs_s, barriers_s; /* best times */
} measurement;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t sum_words(const uint64_t *p, size_t n) {
    uint64_t sum[4] = {0};
    for (size_t i = 0; i < n; i += 4) {
        for (size_t j = 0; j < 4; j++) sum[j] += p[i + j];
    }
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* Sets *best to the shorter of itself and the time since start, on rank 0. */
static void keep_best(double *best, double start, int rank) {
    double s = now_s() - start;
    if (rank == 0 && (*best == 0 || s < *best)) *best = s;
}

static void measure_read(void *arg, int rank, int ranks) {
    measurement *m = arg;
    size_t words = read_bytes / sizeof(uint64_t) / (size_t)ranks / 4 * 4;
    uint64_t *mine = m->memory + words * (size_t)rank;
    memset(mine, 1, words * sizeof *mine); /* a page that was never written is not memory yet */
    for (int i = 0; i < READS; i++) {
        hn_barrier(m->o->pool, rank);
        double start = now_s();
        m->sums[rank] += sum_words(mine, words);
        hn_barrier(m->o->pool, rank);
        keep_best(&m->read_s, start, rank);
    }
}

/* One rank's strips, rows and results inside its operands, all zero: the time does not depend on the values. */
static hn_strips_job mac_job(const measurement *m, int rank) {
    unsigned char *p = m->operands + m->operands_stride * (size_t)rank;
    hn_strips_job j = {.strips = HN_CALL_STRIPS, .in = MAC_IN, .n = MAC_ROWS, .x_stride = hn_act_q8_stride(MAC_IN)};
    for (int i = 0; i < HN_CALL_STRIPS; i++, p += hn_strip_bytes(HN_Q8_0, MAC_IN)) j.w[i] = p;
    j.x = p;
    j.c = (float *)(p + j.x_stride * MAC_ROWS);
    return j;
}

static void measure_macs(void *arg, int rank, int ranks HN_UNUSED) {
    measurement *m = arg;
    hn_strips_job j = mac_job(m, rank);
    for (int i = 0; i < MAC_REPEATS; i++) {
        hn_barrier(m->o->pool, rank);
        double start = now_s();
        for (int k = 0; k < MAC_CALLS / (m->o->isa == HN_ISA_REF ? 100 : 1); k++) {
            m->o->kernels->linear_q8[HN_Q8_0](&j);
        }
        hn_barrier(m->o->pool, rank);
        keep_best(&m->macs_s, start, rank);
    }
}

static void measure_barriers(void *arg, int rank, int ranks HN_UNUSED) {
    measurement *m = arg;
    double start = now_s();
    for (int i = 0; i < BARRIERS; i++) hn_barrier(m->o->pool, rank);
    keep_best(&m->barriers_s, start, rank);
}

hunch_status hn_machine_measure(const hn_ops *o, double *read_gb_s, double *int8_gmac_s, double *barrier_us,
                                hunch_error *err) {
    int ranks = hn_pool_threads(o->pool);
    size_t results = sizeof(float) * HN_CALL_STRIPS * MAC_ROWS * HN_STRIP;
    measurement m = {.o = o};
    m.operands_stride = (HN_CALL_STRIPS * hn_strip_bytes(HN_Q8_0, MAC_IN) + MAC_ROWS * hn_act_q8_stride(MAC_IN) +
                         results + 4095) / 4096 * 4096;
    m.memory = hn_pages_alloc(read_bytes);
    m.operands = hn_zalloc((size_t)ranks, m.operands_stride);
    m.sums = hn_zalloc((size_t)ranks, sizeof *m.sums);
    hunch_status status = HUNCH_OK;
    if (!m.memory || !m.operands || !m.sums) {
        status = hn_fail_memory(err, "measuring the machine", read_bytes);
    } else {
        hn_pool_run(o->pool, measure_read, &m);
        hn_pool_run(o->pool, measure_macs, &m);
        hn_pool_run(o->pool, measure_barriers, &m);
        double calls = MAC_CALLS / (o->isa == HN_ISA_REF ? 100 : 1);
        *read_gb_s = (double)read_bytes / m.read_s * 1e-9;
        *int8_gmac_s = calls * ranks * HN_CALL_STRIPS * HN_STRIP * MAC_IN * MAC_ROWS / m.macs_s * 1e-9;
        *barrier_us = m.barriers_s / BARRIERS * 1e6;
    }
    hn_pages_free(m.memory, read_bytes);
    hn_free(m.operands);
    hn_free(m.sums);
    return status;
}
