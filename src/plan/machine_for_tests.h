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
    DEAR,      /* every row costs nearly a pass of its own */
    CONTEXT,   /* BANDWIDTH, and rows cost more behind a long context */
    MACHINES
};

typedef struct machine {
    enum machine_kind kind;
    double noise, speed; /* standard deviation; seconds of one row */
    uint64_t random;
} machine;

__attribute__((unused)) static machine machine_make(enum machine_kind kind, double noise, uint64_t seed) {
    return (machine){kind, noise, 0.01, seed * 0x9E3779B97F4A7C15u + 1};
}

__attribute__((unused)) static double machine_uniform(machine *m) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (double)(m->random >> 11) * 0x1p-53;
}

static double machine_relative(const machine *m, int rows, int context) {
    switch (m->kind) {
    case BANDWIDTH: return 1 + 0.03 * (rows - 1) + 0.12 * fmax(rows - 10, 0);
    case TILES: return rows == 1 ? 1 : rows <= 4 ? 1.1 : rows <= 8 ? 1.35 : 1 + 0.4 * ((rows + 7) / 8);
    case COMPUTING: return 1 + 0.2 * (rows - 1);
    case DEAR: return 1 + 0.9 * (rows - 1);
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

__attribute__((unused)) static double machine_pass(machine *m, int rows, int context) {
    const double a = machine_uniform(m), b = machine_uniform(m);
    const double gauss = sqrt(-2 * log(a + 1e-300)) * cos(6.283185307179586 * b);
    return machine_seconds(m, rows, context) * exp(m->noise * gauss);
}
/* Predicted seconds of a pass; NAN: nothing is known. */
__attribute__((unused)) static double pass_cost(const hn_cost *c, int rows, int context) {
    double seconds[HN_COST_ROWS + 1], hoped[HN_COST_ROWS + 1];
    return hn_cost_curve(c, context, seconds, hoped, 0) ? seconds[rows] : NAN;
}
#endif
