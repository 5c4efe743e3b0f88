/* SPDX-License-Identifier: Apache-2.0 */
/* train_features.c - how fast a target makes features of texts, beside the bare int8 instruction (operands in registers) and the
 * products of its own kernels (operands in the L2 cache). The best of several turns, limits and passes in turns; seconds are those of
 * the clock, or with one thread those that the processor worked, so that what else runs does not count.
 *
 *     cmake --build build --target train_features && build/train_features MODEL [THREADS [ROWS [TEXTS]]]
 *
 * ROWS: of a text, default 300; TEXTS default 4. Multiply-accumulates: those of every layer's matrices, and none of the output. */
#include <hunch/hunch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "ops/machine.h"
#include "train/data/states.h"

enum { TURNS = 9, MOST = 4096 };

static void end(hunch_status st, const hunch_error *err) {
    if (!st) return;
    fprintf(stderr, "train_features: %s\n", err->message);
    exit(1);
}

static double now(int threads) {
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the matrices that features need. */
static double macs_of(const hn_model *m) {
    const hn_arch *a = &m->arch;
    return m->macs_per_row - (double)a->hidden * a->vocab;
}

int main(int argc, char **argv) {
    const int threads = argc > 2 ? atoi(argv[2]) : 1, rows = argc > 3 ? atoi(argv[3]) : 300,
              texts = argc > 4 ? atoi(argv[4]) : 4;
    if (argc < 2 || threads < 1 || rows < 1 || texts < 1 || texts > 256 || rows > MOST) {
        fprintf(stderr, "usage: train_features MODEL [THREADS [ROWS [TEXTS]]]\n");
        return 2;
    }
    hunch_model_options o;
    hunch_model *m;
    hunch_error err;
    hn_states *s;
    hn_machine *machine;
    hn_peaks peaks, best = {0};
    hunch_model_options_defaults(&o);
    o.threads = threads;
    end(hunch_model_open(&m, argv[1], &o, &err), &err);
    const hn_arch *a = &m->target.arch;
    const int32_t boundary[] = {2, a->layers / 2, a->layers - 3, -1};
    end(hn_states_open(&s, &m->target, boundary, 4, rows, &err), &err);
    end(hn_machine_open(&machine, m->target.pool, m->target.isa, &err), &err);
    const size_t numbers = (size_t)rows * 4 * (size_t)a->hidden;
    uint16_t *to = hn_alloc(numbers * sizeof *to);
    hn_states_text text[256];
    static int32_t ids[MOST];
    if (!to) end(hn_fail_memory(&err, "states", numbers * sizeof *to), &err);
    for (int i = 0; i < rows; i++) ids[i] = (int)((unsigned)i * 2654435761u % (unsigned)a->vocab);
    for (int i = 0; i < texts; i++) text[i] = (hn_states_text){ids, rows, to};
    double fastest = 0;
    for (int i = 0; i < TURNS; i++) {
        end(hn_machine_peaks(machine, &peaks, &err), &err);
        if (peaks.int8_dot_gmac_s > best.int8_dot_gmac_s) best.int8_dot_gmac_s = peaks.int8_dot_gmac_s;
        if (peaks.int8_gmac_s > best.int8_gmac_s) best.int8_gmac_s = peaks.int8_gmac_s;
        const double start = now(threads);
        end(hn_states_compute(s, text, (size_t)texts, &err), &err);
        const double speed = (double)rows * texts / (now(threads) - start);
        if (speed > fastest) fastest = speed;
    }
    const double gmac = 1e-9 * macs_of(&m->target) * fastest;
    printf("%s, %d threads, level %s, %d texts of %d rows\n", a->name, threads, hn_isa_name(m->target.isa), texts,
           rows);
    printf("%.0f tokens/s, %.1f M multiply-accumulates a token: %.0f GMAC/s\n", fastest, 1e-6 * macs_of(&m->target),
           gmac);
    printf("int8 products of this level %.0f GMAC/s: %.3f of them; bare instruction %.0f GMAC/s: %.3f of it\n",
           best.int8_gmac_s, gmac / best.int8_gmac_s, best.int8_dot_gmac_s, gmac / best.int8_dot_gmac_s);
    hn_free(to);
    hn_machine_close(&machine);
    hn_states_close(&s);
    hunch_model_close(&m);
    return 0;
}
