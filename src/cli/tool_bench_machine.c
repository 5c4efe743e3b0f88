/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench_machine.c - see tool_bench.h: the machine's limits, when idle and during a measurement. */
#include <math.h>
#include <unistd.h>

#include "cli/tool_bench.h"

enum { MIB = 1 << 20, WHOLE_MIB = 1024 };

/* ---- load ---------------------------------------------------------------------------------------------------- */

/* Clock ticks of all processors so far, and those without work. */
static bool ticks_read(double *all, double *idle) {
    double t[8];
    FILE *f = fopen("/proc/stat", "r");
    const int n =
        f ? fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
          : 0;
    if (f)
        fclose(f);
    *all = 0;
    for (int i = 0; i < n; i++)
        *all += t[i];
    *idle = n == 8 ? t[3] + t[4] : 0;
    return n == 8;
}

double bench_busy(void) {
    double all, idle, all_after, idle_after;
    if (!ticks_read(&all, &idle) || usleep(400000) != 0 || !ticks_read(&all_after, &idle_after) || all_after <= all)
        return NAN;
    return 1 - (idle_after - idle) / (all_after - all);
}

/* ---- bandwidth ------------------------------------------------------------------------------------------------- */

static int read_one(bench *b, int threads, bool huge, int mib, int n) {
    double gb_s[BENCH_MOST_TURNS];
    hunch_error err = {0};
    const size_t bytes = (size_t)mib * MIB;
    if (hunch_meter_read(b->meter, bytes, threads, huge, n, gb_s, &err) != HUNCH_OK)
        return tool_failed(&err);
    b->reads[b->n_reads++] = (bench_read){threads, huge, bytes, tool_spread_of(gb_s, (size_t)n)};
    return tool_interrupted ? HUNCH_CANCELLED : 0;
}

int bench_machine_reads(bench *b) {
    static const int sizes[] = {1024, 512, 128, 32, 8}; /* MiB; the largest first: its memory is reused */
    enum { SIZES = sizeof sizes / sizeof *sizes, COUNTS = 10 };
    const int all = b->machine.threads;
    int counts[COUNTS], n = 0, code = 0;
    for (int t = 1; t < all && n < COUNTS - 1; t *= 2)
        counts[n++] = t;
    counts[n++] = all;
    b->reads = tool_alloc((size_t)(2 * SIZES * n), sizeof *b->reads);
    tool_progress bar;
    tool_progress_begin(&bar, "reading memory", NULL);
    for (int huge = 1; huge >= 0; huge--)
        for (int s = 0; s < SIZES && !code; s++)
            for (int t = 0; t < n && !code; t++) {
                code = read_one(b, counts[t], huge, sizes[s], b->o.quick ? 3 : 7);
                tool_progress_at(&bar, b->n_reads, 2 * SIZES * n);
            }
    tool_progress_end(&bar);
    return code;
}

/* ---- beside a model ------------------------------------------------------------------------------------------- */

int bench_machine_peaks(bench *b) {
    const hunch_machine was = b->machine;
    hunch_error err = {0};
    if (hunch_meter_machine(b->meter, &b->machine, &err) != HUNCH_OK)
        return tool_failed(&err);
    if (was.threads) { /* load of other processes during one of them does not lower the limits */
        hunch_machine *m = &b->machine;
        m->read_gb_s = fmax(m->read_gb_s, was.read_gb_s);
        m->int8_gmac_s = fmax(m->int8_gmac_s, was.int8_gmac_s);
        m->bf16_gmac_s = fmax(m->bf16_gmac_s, was.bf16_gmac_s);
        m->f32_gmac_s = fmax(m->f32_gmac_s, was.f32_gmac_s);
        m->int8_dot_gmac_s = fmax(m->int8_dot_gmac_s, was.int8_dot_gmac_s);
        m->bf16_dot_gmac_s = fmax(m->bf16_dot_gmac_s, was.bf16_dot_gmac_s);
        m->barrier_us = fmin(m->barrier_us, was.barrier_us);
    }
    return 0;
}

int bench_machine_turn(bench *b, double *gb_s) {
    double reading[2];
    hunch_error err = {0};
    if (hunch_meter_read(b->meter, (size_t)WHOLE_MIB * MIB, b->machine.threads, true, 2, reading, &err) != HUNCH_OK)
        return tool_failed(&err);
    *gb_s = fmax(reading[0], reading[1]);
    b->read_gb_s = tool_grow(b->read_gb_s, &b->cap_read, b->n_read + 1, sizeof *b->read_gb_s);
    b->read_gb_s[b->n_read++] = *gb_s;
    return 0;
}

double bench_limit(const bench *b, const hunch_work *w, double read_gb_s) {
    const hunch_machine *m = &b->machine;
    double reading = (w->weight_bytes + w->kv_bytes) / read_gb_s;
    double arithmetic = w->macs_int8 / m->int8_gmac_s + w->macs_bf16 / m->bf16_gmac_s + w->macs_f32 / m->f32_gmac_s;
    return fmax(reading, arithmetic) * 1e-9;
}
