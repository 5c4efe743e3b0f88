/* SPDX-License-Identifier: Apache-2.0 */
/* machine_for_tests.h - simulated machines for the tests of plan/: pass times by rows and context, with noise. */
#ifndef HN_MACHINE_FOR_TESTS_H
#define HN_MACHINE_FOR_TESTS_H
#include <math.h>
#include <stdint.h>

#include "plan/cost.h"

enum machine_kind {
    BANDWIDTH, /* nearly flat, then bound by computing */
    TILES,     /* steps: 8 rows cost what 5 do, 16 what 9 do */
    COMPUTING, /* every row costs */
    EXPENSIVE,      /* every row costs nearly a pass of its own */
    FINE128,   /* eight experts of 128 for each row, over half of a pass of one row: a row costs the new experts that it uses */
    FINE256,   /* eight of 256, with a larger share of the pass */
    CONTEXT,   /* BANDWIDTH, and rows cost more after a long context */
    MACHINES,
    SMOLLM2_135M, /* recorded: two cores of an EPYC, context 256 (bench/results) */
    GEMMA3_270M
};

typedef struct machine {
    enum machine_kind kind;
    double noise, speed; /* standard deviation; seconds of one row */
    uint64_t random;
    double fresh; /* of experts: how much a second row differs from the first in the experts that it uses, 0..1 */
    double alike; /* how much less later rows do: by their number to this power */
} machine;

__attribute__((unused)) static machine machine_make(enum machine_kind kind, double noise, uint64_t seed) {
    return (machine){kind, noise, 0.01, seed * 0x9E3779B97F4A7C15u + 1, 0.7, 0};
}

__attribute__((unused)) static double machine_uniform(machine *m) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (double)(m->random >> 11) * 0x1p-53;
}

enum { MACHINE_USED = 8 };

/* Experts of a layer; 0: it has none. */
__attribute__((unused)) static int machine_experts(const machine *m) {
    return m->kind == FINE128 ? 128 : m->kind == FINE256 ? 256 : 0;
}

/* The share of its experts in the time of a pass of one row. */
__attribute__((unused)) static double machine_part(const machine *m) {
    return m->kind == FINE128 ? 0.55 : m->kind == FINE256 ? 0.75 : 0;
}

/* Experts that this many rows use, on average. */
static double machine_distinct(const machine *m, int rows) {
    const double e = machine_experts(m);
    const double fresh = m->fresh * pow(2.0 / rows, m->alike);
    return e > 0 ? e * (1 - pow(1 - MACHINE_USED / e, 1 + fresh * (rows - 1))) : 0;
}

/* Relative time of a pass that uses this many experts. */
static double machine_with_experts(const machine *m, int rows, double distinct) {
    const double part = machine_part(m);
    return 1 - part + 0.01 * (rows - 1) + part * distinct / MACHINE_USED;
}

/* Milliseconds of a pass: the medians of smollm2-135m-q4_1.pass.csv and gemma3-270m-q4_k_m.pass.csv of amd-epyc-family25-model17. */
static const struct machine_time {
    int rows;
    double ms;
} machine_smollm2[] = {{1, 3.62422}, {2, 3.64474}, {3, 3.68586}, {4, 3.91248}, {6, 4.5127}, {8, 5.43166}, {12, 7.61496}, {16, 9.97824},
                       {32, 18.9756}, {64, 38.213}},
  machine_gemma3[] = {{1, 9.17116}, {2, 8.70277}, {3, 9.2355}, {4, 9.52006}, {6, 9.9628}, {8, 10.682}, {12, 13.0063}, {16, 16.9008},
                      {32, 34.7598}, {64, 71.9833}};

/* Between the rows that were recorded, and beyond them. */
static double machine_recorded(const struct machine_time *t, int n, int rows) {
    int i = 0;
    while (i + 2 < n && t[i + 1].rows < rows) i++;
    return (t[i].ms + (rows - t[i].rows) * (t[i + 1].ms - t[i].ms) / (t[i + 1].rows - t[i].rows)) / t[0].ms;
}

static double machine_relative(const machine *m, int rows, int context) {
    switch (m->kind) {
    case SMOLLM2_135M: return machine_recorded(machine_smollm2, sizeof machine_smollm2 / sizeof *machine_smollm2, rows);
    case GEMMA3_270M: return machine_recorded(machine_gemma3, sizeof machine_gemma3 / sizeof *machine_gemma3, rows);
    case BANDWIDTH: return 1 + 0.03 * (rows - 1) + 0.12 * fmax(rows - 10, 0);
    case TILES: return rows == 1 ? 1 : rows <= 4 ? 1.1 : rows <= 8 ? 1.35 : 1 + 0.4 * ((rows + 7) / 8);
    case COMPUTING: return 1 + 0.2 * (rows - 1);
    case EXPENSIVE: return 1 + 0.9 * (rows - 1);
    case FINE128:
    case FINE256: return machine_with_experts(m, rows, machine_distinct(m, rows));
    case CONTEXT:
    default: return 1 + 0.03 * (rows - 1) + context * (1e-4 + 3e-5 * (rows - 1));
    }
}

/* Without noise. */
__attribute__((unused)) static double machine_seconds(const machine *m, int rows, int context) {
    return m->speed * machine_relative(m, rows, context);
}

__attribute__((unused)) static double machine_shape(const machine *m, int rows, int context) {
    return machine_relative(m, rows, context) / machine_relative(m, 1, context);
}

static double machine_gauss(machine *m) {
    const double a = machine_uniform(m), b = machine_uniform(m);
    return sqrt(-2 * log(a + 1e-300)) * cos(6.283185307179586 * b);
}

__attribute__((unused)) static double machine_pass(machine *m, int rows, int context) {
    return machine_seconds(m, rows, context) * exp(m->noise * machine_gauss(m));
}

/* What reading a position costs by its bytes, in passes of one row. */
static const double MACHINE_POSITION = 1e-4;

/* What a row reads after this context; of other machines nothing that would take time. */
__attribute__((unused)) static double machine_reads(const machine *m, int context) {
    return m->kind == CONTEXT ? context * MACHINE_POSITION : 0;
}

/* `rows` rows of one text, each of which reads so much. */
static hn_cost_work machine_work(int rows, double reads) {
    return (hn_cost_work){.rows = rows, .reads = reads, .again = reads * (rows - 1)};
}

__attribute__((unused)) static void record_pass(hn_cost *c, int rows, int context, double seconds) {
    const hn_cost_work w = machine_work(rows, context * MACHINE_POSITION);
    hn_cost_pass(c, &w, seconds);
}

/* Runs a pass, with the experts that its rows use, and records it in the cost. */
__attribute__((unused)) static double machine_run(machine *m, hn_cost *c, int rows, int context) {
    hn_cost_work w = machine_work(rows, machine_reads(m, context));
    if (machine_experts(m) == 0) {
        const double seconds = machine_pass(m, rows, context);
        hn_cost_pass(c, &w, seconds);
        return seconds;
    }
    const double spread = rows > 1 ? 0.15 * machine_gauss(m) : 0, most = fmin(machine_experts(m), MACHINE_USED * rows);
    const double distinct = fmin(fmax(machine_distinct(m, rows) * (1 + spread), MACHINE_USED), most);
    const double seconds = m->speed * machine_with_experts(m, rows, distinct) * exp(m->noise * machine_gauss(m));
    w.distinct = distinct;
    hn_cost_pass(c, &w, seconds);
    return seconds;
}

/* Predicted seconds of a pass; NAN: nothing is known. */
__attribute__((unused)) static double pass_cost(const hn_cost *c, int rows, int context) {
    double seconds[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
    const hn_cost_round r = {.texts = 1, .reads = context * MACHINE_POSITION};
    return hn_cost_curve(c, &r, seconds, optimistic, 0) ? seconds[rows] : NAN;
}
#endif
