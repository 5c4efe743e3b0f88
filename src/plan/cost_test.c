/* SPDX-License-Identifier: Apache-2.0 */
/* cost_test.c - the filter of cost.h on simulated machines, and its file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "fixture.h"
#include "plan/cost.h"
#include "plan/machine_for_tests.h"

/* Of one text. */
static bool curve_of(const hn_cost *c, int context, double *seconds, double *optimistic, double optimism) {
    const hn_cost_round r = {.texts = 1, .reads = context * MACHINE_POSITION};
    return hn_cost_curve(c, &r, seconds, optimistic, optimism);
}

static void pass_experts(hn_cost *c, int rows, double distinct, double seconds) {
    hn_cost_pass(c, &(hn_cost_work){.rows = rows, .distinct = distinct}, seconds);
}

static double ratio(const hn_cost *c, int rows, int context) {
    return pass_cost(c, rows, context) / pass_cost(c, 1, context);
}

static void test_nothing_is_known(void **state) {
    (void)state;
    hn_cost c;
    double curve[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
    hn_cost_init(&c);
    assert_true(isnan(pass_cost(&c, 1, 0)));
    assert_true(isnan(hn_cost_of_draft(&c, 0, 1)));
    assert_false(curve_of(&c, 0, curve, optimistic, 1));
    record_pass(&c, 0, 0, 1);
    record_pass(&c, -1, 0, 1);
    record_pass(&c, 1, 0, 0);
    record_pass(&c, 1, 0, -1);
    record_pass(&c, 1, 0, NAN);
    record_pass(&c, 1, 0, INFINITY);
    hn_cost_draft(&c, 0, 1, 0, 1);
    assert_int_equal(hn_cost_draft_calls(&c, 0), 0);
    assert_false(curve_of(&c, 0, curve, optimistic, 1));
    record_pass(&c, 1, 0, 0.5);
    assert_true(fabs(pass_cost(&c, 1, 0) - 0.5) < 1e-12);
    assert_true(pass_cost(&c, 2, 0) > 0.5 && pass_cost(&c, 2, 0) < 0.55); /* low enough to be tried */
}

/* A noisy machine whose speed jumps: the shape is learned all the same. */
static void test_shape_under_drift(void **state) {
    (void)state;
    hn_cost c;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        machine m = machine_make(TILES, 0.05, seed);
        hn_cost_init(&c);
        for (int i = 0; i < 2000; i++) {
            static const int widths[] = {1, 1, 4, 8, 6, 2, 8, 16};
            if (i % 150 == 149) m.speed = 0.7 + 0.6 * machine_uniform(&m);
            const int rows = widths[(int)(8 * machine_uniform(&m))];
            record_pass(&c, rows, 100, machine_pass(&m, rows, 100));
        }
        static const int seen[] = {2, 4, 6, 8, 16};
        for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
            const double want = machine_shape(&m, seen[i], 100);
            if (fabs(ratio(&c, seen[i], 100) / want - 1) > 0.04)
                fail_msg("seed %d, %d rows: %g, the machine's is %g", (int)seed, seen[i], ratio(&c, seen[i], 100),
                         want);
        }
    }
}

/* One width alone for long, while the machine becomes slower: that changes the speed. */
static void test_slower_is_not_dearer(void **state) {
    (void)state;
    hn_cost c;
    machine m = machine_make(TILES, 0, 1);
    hn_cost_init(&c);
    for (int i = 0; i < 300; i++) record_pass(&c, 1 + 7 * (i % 2), 0, machine_pass(&m, 1 + 7 * (i % 2), 0));
    const double before = ratio(&c, 8, 0);
    m.speed *= 1.5;
    for (int i = 0; i < 100; i++) record_pass(&c, 8, 0, machine_pass(&m, 8, 0));
    assert_true(fabs(ratio(&c, 8, 0) / before - 1) < 0.03);
    assert_true(fabs(pass_cost(&c, 8, 0) / machine_pass(&m, 8, 0) - 1) < 0.01);
    assert_true(fabs(pass_cost(&c, 1, 0) / machine_pass(&m, 1, 0) - 1) < 0.04);
}

static void test_unseen_widths(void **state) {
    (void)state;
    hn_cost c;
    double curve[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
    hn_cost_init(&c);
    for (int i = 0; i < 200; i++) {
        record_pass(&c, 1, 0, 1);
        record_pass(&c, 4, 0, 1.3);
        record_pass(&c, 8, 0, 2.1);
        record_pass(&c, 10, 0, 2.0); /* fewer seconds than for 8 are impossible */
    }
    assert_true(curve_of(&c, 0, curve, optimistic, 1));
    assert_true(curve[0] == 0);
    assert_true(fabs(curve[2] - 1.1) < 0.03 && fabs(curve[3] - 1.2) < 0.03 && fabs(curve[6] - 1.67) < 0.04);
    assert_true(fabs(curve[8] - 2.05) < 0.03 && fabs(curve[10] - 2.05) < 0.03);
    for (int r = 2; r <= HN_COST_ROWS; r++) assert_true(curve[r] >= curve[r - 1]);
    assert_true(curve[16] > 2.3 && curve[16] < 3.2); /* extrapolated with the slope from 4 to 10 */
    for (int r = 1; r <= HN_COST_ROWS; r++) {
        assert_true(optimistic[r] <= curve[r] && optimistic[r] >= optimistic[1]);
    }
    assert_true(optimistic[1] == curve[1] && optimistic[8] > 0.98 * curve[8]);
    assert_true(optimistic[6] < 0.95 * curve[6] && optimistic[24] < 0.8 * curve[24]); /* not seen; far from what was seen */
}

/* Clocks that jump, and machines that sleep: whatever times they give, predictions are numbers, and plausible passes restore
 * them. */
static void test_absurd_times(void **state) {
    (void)state;
    static const double times[] = {0, -1, NAN, INFINITY, -INFINITY, 1e-320, 1e-300, 1e-12, 1, 1e9, 1e300, 1.7e308};
    enum { TIMES = sizeof times / sizeof *times };
    machine m = machine_make(BANDWIDTH, 0, 5);
    for (int seed = 0; seed < 200; seed++) {
        hn_cost c;
        double curve[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
        hn_cost_init(&c);
        for (int i = 0; i < 60; i++) {
            const int context = 1 << (int)(machine_uniform(&m) * 20);
            record_pass(&c, 1 + (int)(machine_uniform(&m) * HN_COST_ROWS), context,
                         times[(int)(machine_uniform(&m) * TIMES)]);
            hn_cost_draft(&c, 0, 1 + i, i % 5 ? 0 : i, times[(int)(machine_uniform(&m) * TIMES)]);
            const double call = hn_cost_of_draft(&c, 0, 1 + i / 2);
            assert_true(isnan(call) || (isfinite(call) && call >= 0 && isfinite(hn_cost_of_reading(&c, 0, 100))));
            if (!curve_of(&c, context, curve, optimistic, 0.7)) continue;
            for (int r = 1; r <= HN_COST_ROWS; r++)
                if (!(isfinite(curve[r]) && curve[r] > 0 && isfinite(optimistic[r]) && optimistic[r] > 0))
                    fail_msg("seed %d, pass %d: %g (%g) seconds of %d rows", seed, i, curve[r], optimistic[r], r);
        }
        for (int i = 0; i < 300; i++) record_pass(&c, 1 + 7 * (i % 2), 100, 0.01 * (1 + i % 2));
        if (!(fabs(log2(pass_cost(&c, 1, 100) / 0.01)) < 1 && fabs(log2(pass_cost(&c, 8, 100) / 0.02)) < 1))
            fail_msg("seed %d: %g and %g", seed, pass_cost(&c, 1, 100), pass_cost(&c, 8, 100));
    }
}

/* A pass that the system interrupted does not rule out its width, nor do the next ones change the speed. */
static void test_spikes(void **state) {
    (void)state;
    hn_cost c;
    hn_cost_init(&c);
    for (int i = 0; i < 100; i++) {
        record_pass(&c, 1, 0, 1);
        record_pass(&c, 8, 0, 1.4);
    }
    record_pass(&c, 6, 0, 6.5);
    assert_true(ratio(&c, 6, 0) < 1.29 * 1.3);
    record_pass(&c, 8, 0, 7);
    for (int i = 0; i < 10; i++) record_pass(&c, 1, 0, 1);
    assert_true(fabs(pass_cost(&c, 1, 0) - 1) < 0.05);
    assert_true(fabs(ratio(&c, 8, 0) / 1.4 - 1) < 0.03);
    for (int i = 0; i < 20; i++) { /* and it is learned once it is seen again */
        record_pass(&c, 1, 0, 1);
        record_pass(&c, 6, 0, 1.3);
    }
    if (fabs(ratio(&c, 6, 0) / 1.3 - 1) > 0.06) fail_msg("6 rows: %g, are 1.3", ratio(&c, 6, 0));
}

/* A longer context is expected to cost what it has to read; how much more each further row takes is learned there. */
static void test_contexts(void **state) {
    (void)state;
    hn_cost c;
    machine m = machine_make(CONTEXT, 0.01, 3);
    hn_cost_init(&c);
    for (int i = 0; i < 400; i++) record_pass(&c, 1 + 7 * (i % 2), 100, machine_pass(&m, 1 + 7 * (i % 2), 100));
    assert_true(fabs(ratio(&c, 8, 100) / machine_shape(&m, 8, 100) - 1) < 0.03);
    assert_true(fabs(pass_cost(&c, 1, 30000) / machine_seconds(&m, 1, 30000) - 1) < 0.1); /* what is read is known by its bytes */
    assert_true(fabs(ratio(&c, 8, 30000) / machine_shape(&m, 8, 30000) - 1) < 0.3);
    for (int i = 0; i < 400; i++) record_pass(&c, 1 + 7 * (i % 2), 4000, machine_pass(&m, 1 + 7 * (i % 2), 4000));
    assert_true(fabs(ratio(&c, 8, 4000) / machine_shape(&m, 8, 4000) - 1) < 0.03);
    assert_true(fabs(ratio(&c, 8, 100) / machine_shape(&m, 8, 100) - 1) < 0.03); /* not forgotten */
    assert_true(fabs(pass_cost(&c, 1, 4000) / pass_cost(&c, 1, 100) /
                         (machine_seconds(&m, 1, 4000) / machine_seconds(&m, 1, 100)) -
                     1) < 0.05);
}

/* Several texts of different lengths: each one's rows cost what they read. The price of that by the bytes is wrong by a half, and is
 * corrected by passes with long and with short texts. */
static void test_rows_cost_what_they_read(void **state) {
    (void)state;
    const double read = 1.5, again = 0.5;
    hn_cost c;
    machine m = machine_make(BANDWIDTH, 0.02, 4);
    hn_cost_init(&c);
    for (int i = 0; i < 600; i++) {
        const int texts = 1 + i % 4, rows = texts + (int)(8 * machine_uniform(&m));
        const double reads = machine_uniform(&m) < 0.5 ? 0.05 : 2; /* of each */
        const hn_cost_work w = {.rows = rows, .reads = texts * reads, .again = (rows - texts) * reads};
        hn_cost_pass(&c, &w, machine_pass(&m, rows, 0) + m.speed * (read * w.reads + again * w.again));
    }
    assert_true(fabs(c.part[HN_COST_READ].each / read - 1) < 0.1 && fabs(c.part[HN_COST_AGAIN].each / again - 1) < 0.15);
    assert_true(fabs(hn_cost_of_again(&c) / (again * m.speed) - 1) < 0.15);
    double seconds[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
    const hn_cost_round r = {.texts = 3, .reads = 1};
    assert_true(hn_cost_curve(&c, &r, seconds, optimistic, 0));
    for (int rows = 1; rows <= 10; rows++) {
        const double want = machine_seconds(&m, rows, 0) + m.speed * (read * fmin(rows, 3) + again * fmax(rows - 3, 0));
        if (fabs(seconds[rows] / want - 1) > 0.06) fail_msg("%d rows: %g, the machine's is %g", rows, seconds[rows], want);
    }
}

/* Passes with rows of prompts, which have no logits, and passes of more rows than the curve has. */
static void test_prompts_and_wide_passes(void **state) {
    (void)state;
    const double output = 0.2, wide = 0.1; /* of a row; passes of one row that a row beyond the curve takes */
    hn_cost c;
    machine m = machine_make(COMPUTING, 0.02, 4);
    hn_cost_init(&c);
    hn_cost_set_output(&c, output);
    for (int i = 0; i < 800; i++) {
        const int rows = 1 + (int)(16 * machine_uniform(&m)), prompt = i % 2 ? 0 : (int)(240 * machine_uniform(&m));
        const double all = rows + (1 - output) * prompt, inside = fmin(all, HN_COST_ROWS);
        const double time = 1 + 0.2 * (inside - 1) + wide * (all - inside);
        hn_cost_pass(&c, &(hn_cost_work){.rows = rows, .prompt = prompt}, m.speed * time * exp(m.noise * machine_gauss(&m)));
    }
    double alone[HN_COST_ROWS + 1], beside[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
    assert_true(curve_of(&c, 0, alone, optimistic, 0));
    const hn_cost_round r = {.texts = 4, .beside = {.prompt = 200}};
    assert_true(hn_cost_curve(&c, &r, beside, optimistic, 0));
    for (int rows = 2; rows <= 16; rows += 7) {
        const double want = m.speed * (1 + 0.2 * (rows - 1));
        const double with = m.speed * (1 + 0.2 * (HN_COST_ROWS - 1) + wide * (rows + 160 - HN_COST_ROWS));
        if (fabs(alone[rows] / want - 1) > 0.06) fail_msg("%d rows: %g, the machine's is %g", rows, alone[rows], want);
        if (fabs(beside[rows] / with - 1) > 0.06) fail_msg("%d rows beside 200: %g, the machine's is %g", rows, beside[rows], with);
    }
    const double row = (beside[16] - beside[2]) / 14; /* a drafted row there costs what it adds there */
    assert_true(fabs(row / (wide * m.speed) - 1) < 0.25);
}

enum { RECORDED = 300 };

static int passes_read(const char *path, hn_cost_work *w, double *seconds) {
    FILE *f = fopen(path, "r");
    int n = 0;
    assert_non_null(f);
    while (n < RECORDED && fscanf(f, "%d %d %lf %lf %lf", &w[n].rows, &w[n].prompt, &w[n].reads, &w[n].again, &seconds[n]) == 5) n++;
    assert_int_equal(fclose(f), 0);
    return n;
}

/* The recorded passes of a server with sixteen clients and drafts, again and again, as in a long run: they fit the model of cost.h only
 * roughly (rows of prompts take less than others, texts take time of their own, the machine has neighbours), and passes of a few rows
 * are rare. Speed, shapes and prices must not drift away together; what a few rows take is still known. */
static void test_long_runs(void **state) {
    (void)state;
    static hn_cost_work w[RECORDED];
    static double took[RECORDED];
    hn_cost c;
    const int n = passes_read(data_path("passes/sixteen-clients.txt"), w, took);
    double ones = 0, squares[2] = {0};
    int n_ones = 0;
    assert_int_equal(n, 267);
    hn_cost_init(&c);
    hn_cost_set_output(&c, 0.21);
    for (int turn = 0; turn < 100; turn++)
        for (int i = 0; i < n; i++) {
            double seconds[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
            hn_cost_round r = {.texts = 1, .beside = w[i], .most = 1};
            r.beside.rows = w[i].rows - 1;
            if ((turn == 1 || turn == 99) && w[i].rows > 0) {
                assert_true(hn_cost_curve(&c, &r, seconds, optimistic, 0));
                const double off = log(took[i] / seconds[1]);
                squares[turn == 99] += off * off;
                if (turn == 99 && w[i].rows + w[i].prompt == 1) ones += off, n_ones++;
            }
            hn_cost_pass(&c, &w[i], took[i]);
        }
    assert_true(n_ones > 5);
    if (fabs(ones / n_ones) > 0.25) fail_msg("a row takes %.2f of what is expected", exp(ones / n_ones));
    if (squares[1] > 1.1 * squares[0]) fail_msg("squared errors: %.2f, at first %.2f", squares[1], squares[0]);
    for (int rows = 2; rows <= HN_COST_ROWS; rows++)
        if (c.shape[rows].variance > 0 && c.shape[rows].ratio < 0.9) fail_msg("%d rows are taken for %g of one", rows, c.shape[rows].ratio);
}

static double call(const hn_cost *c, int seqs) {
    return hn_cost_of_draft(c, 3, seqs);
}

/* The time of a drafter: the first calls touch cold memory, later ones are interrupted now and then. */
static void test_drafters(void **state) {
    (void)state;
    hn_cost c;
    hn_cost_init(&c);
    record_pass(&c, 1, 0, 1);
    assert_true(isnan(call(&c, 1)));
    hn_cost_draft(&c, 3, 1, 0, 40);
    assert_true(fabs(call(&c, 1) - 40) < 1e-9);
    for (int i = 0; i < 4; i++) hn_cost_draft(&c, 3, 1, 0, 0.2);
    assert_true(fabs(call(&c, 1) - 0.2) < 1e-9);
    assert_int_equal(hn_cost_draft_calls(&c, 3), 5);
    for (int i = 0; i < 100; i++) hn_cost_draft(&c, 3, 1, 0, 0.3);
    assert_true(fabs(call(&c, 1) - 0.3) < 0.01);
    hn_cost_draft(&c, 3, 1, 0, 50);
    assert_true(call(&c, 1) < 0.4);
    for (int i = 0; i < 50; i++) hn_cost_draft(&c, 3, 1, 0, 0.3);
    for (int i = 0; i < 100; i++) record_pass(&c, 1, 0, 2); /* the whole machine became slower */
    assert_true(fabs(call(&c, 1) - 0.6) < 0.03);
    assert_true(isnan(hn_cost_of_draft(&c, 2, 1)));
}

/* A drafter that costs nothing in most rounds and much in every fourth has a mean cost of a quarter of that. */
static void test_bursts_of_a_drafter(void **state) {
    (void)state;
    hn_cost c;
    double sum = 0;
    hn_cost_init(&c);
    record_pass(&c, 1, 0, 1);
    for (int i = 0; i < 500; i++) {
        hn_cost_draft(&c, 3, 1, 0, i % 4 == 3 ? 2 : 0.001);
        if (i == 60 && call(&c, 1) < 0.3)
            fail_msg("after 60 calls a drafter of 0.5 is held for one of %g", call(&c, 1));
        if (i >= 400) sum += call(&c, 1);
    }
    if (fabs(sum / 100 - 0.5) > 0.05) fail_msg("a drafter of 0.5 is held for one of %g", sum / 100);
}

/* The cost for other numbers of sequences is estimated optimistically, then learned. Reading is counted separately. */
static void test_drafters_for_several(void **state) {
    (void)state;
    hn_cost c;
    hn_cost_init(&c);
    record_pass(&c, 1, 0, 1);
    for (int i = 0; i < 20; i++) hn_cost_draft(&c, 3, 4, 0, 0.4);
    assert_true(fabs(call(&c, 4) - 0.4) < 1e-9 && fabs(call(&c, 3) - 0.4) < 1e-9);
    assert_true(fabs(call(&c, 64) - 0.4) < 1e-9 && fabs(call(&c, 1) - 0.1) < 1e-9);
    for (int i = 0; i < 20; i++) hn_cost_draft(&c, 3, 1, 0, 0.3);
    assert_true(fabs(call(&c, 4) - 0.4) < 1e-9 && fabs(call(&c, 1) - 0.3) < 1e-9);
    assert_true(hn_cost_of_reading(&c, 3, 100) == 0);
    hn_cost_draft(&c, 3, 1, 200, 10.3);
    assert_true(fabs(hn_cost_of_reading(&c, 3, 100) - 5) < 1e-9 && fabs(call(&c, 1) - 0.3) < 1e-9);
}

/* ---- the file ---- */

static char folder[64], path[100];

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/hunch-cost-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/curve.json", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if a temporary file was left */
}

static hn_cost experienced(void) {
    hn_cost c;
    machine m = machine_make(TILES, 0.03, 9);
    hn_cost_init(&c);
    for (int i = 0; i < 500; i++) {
        const int rows = 1 + (int)(16 * machine_uniform(&m)), context = i < 250 ? 100 : 3000;
        record_pass(&c, rows, context, machine_pass(&m, rows, context));
    }
    return c;
}

static void test_round_trip(void **state) {
    (void)state;
    const hn_cost a = experienced();
    hn_cost b, zero;
    bool found;
    hn_cost_init(&b);
    hn_cost_init(&zero);
    unlink(path);
    must(hn_cost_load(&b, path, "key", &found, err));
    assert_false(found);
    must(hn_cost_save(&zero, path, "key", err)); /* nothing known: no file */
    assert_int_equal(access(path, F_OK), -1);
    must(hn_cost_save(&a, path, "cpu \"x\"\n\\ 2 threads", err));
    must(hn_cost_load(&b, path, "another", &found, err));
    assert_false(found);
    assert_memory_equal(&b, &zero, sizeof b);
    must(hn_cost_load(&b, path, "cpu \"x\"\n\\ 2 threads", &found, err));
    assert_true(found);
    for (int rows = 1; rows <= HN_COST_ROWS; rows++)
        for (int context = 0; context < 20000; context += 1900)
            assert_true(fabs(pass_cost(&b, rows, context) / pass_cost(&a, rows, context) - 1) < 0.03);
    must(hn_cost_save(&b, path, "key", err)); /* over the old one */
    must(hn_cost_load(&b, path, "key", &found, err));
    assert_true(found);
}

/* ---- experts ---- */

static machine fine_machine(enum machine_kind kind, double noise, uint64_t seed, hn_cost *c) {
    const machine m = machine_make(kind, noise, seed);
    hn_cost_init(c);
    hn_cost_set_experts(c, machine_experts(&m), MACHINE_USED, machine_part(&m) * 0.7); /* bytes are not time */
    return m;
}

static void runs(machine *m, hn_cost *c, int rows, int n) {
    for (int i = 0; i < n; i++) machine_run(m, c, rows, 0);
}

/* The time of an expert and the number that rows use are learned from passes of few widths; other widths follow. */
static void test_experts_are_learned(void **state) {
    (void)state;
    hn_cost c;
    for (int kind = FINE128; kind <= FINE256; kind++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            machine m = fine_machine((enum machine_kind)kind, 0.04, seed, &c);
            for (int i = 0; i < 100; i++) {
                runs(&m, &c, 1, 3);
                runs(&m, &c, 2 + 2 * (i % 4), 1);
            }
            for (int rows = 2; rows <= 32; rows *= 2) {
                const double want = machine_shape(&m, rows, 0), distinct = machine_distinct(&m, rows);
                if (fabs(hn_cost_distinct_experts(&c, rows) / distinct - 1) > 0.12)
                    fail_msg("%d rows: %g experts, the machine's are %g", rows, hn_cost_distinct_experts(&c, rows), distinct);
                if (fabs(ratio(&c, rows, 0) / want - 1) > (rows > 8 ? 0.2 : 0.07))
                    fail_msg("kind %d, %d rows: %g, the machine's is %g", kind, rows, ratio(&c, rows, 0), want);
            }
            if (fabs(c.experts.each / (machine_part(&m) / MACHINE_USED) - 1) > 0.25)
                fail_msg("an expert: %g, the machine's is %g", c.experts.each, machine_part(&m) / MACHINE_USED);
        }
}

/* A text whose rows use the same experts, then one whose rows differ: two rows predict the cost of eight, approximately. */
static void test_a_text_that_uses_more_experts(void **state) {
    (void)state;
    hn_cost c;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        machine m = fine_machine(FINE128, 0.03, seed, &c);
        m.fresh = 0.15;
        for (int i = 0; i < 60; i++) {
            runs(&m, &c, 1, 2);
            runs(&m, &c, 2, 1);
            runs(&m, &c, 8, 1);
        }
        const double before = machine_shape(&m, 8, 0), got = ratio(&c, 8, 0);
        if (fabs(got / before - 1) > 0.07) fail_msg("8 rows: %g, the machine's is %g", got, before);
        m.fresh = 0.7;
        for (int i = 0; i < 40; i++) {
            runs(&m, &c, 1, 2);
            runs(&m, &c, 2, 1);
        }
        const double want = machine_shape(&m, 8, 0);
        assert_true(want > 1.4 * before);
        if (fabs(ratio(&c, 8, 0) / want - 1) > 0.22) fail_msg("8 rows: %g, the machine's is %g", ratio(&c, 8, 0), want);
    }
}

/* Rows of one text choose alike: the more there are, the less each adds. Learned from up to five, it says what more of them use. */
static void test_rows_choose_alike(void **state) {
    (void)state;
    hn_cost c;
    for (int kind = FINE128; kind <= FINE256; kind++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            machine m = fine_machine((enum machine_kind)kind, 0.03, seed, &c);
            m.alike = 0.4;
            for (int i = 0; i < 100; i++) {
                runs(&m, &c, 1, 1);
                runs(&m, &c, 2 + i % 4, 2);
            }
            if (fabs(c.experts.alike - m.alike) > 0.2) fail_msg("kind %d, alike %g, the machine's is %g", kind, c.experts.alike, m.alike);
            for (int rows = 3; rows <= 8; rows++) {
                const double want = machine_distinct(&m, rows), got = hn_cost_distinct_experts(&c, rows);
                if (fabs(got / want - 1) > 0.14) fail_msg("kind %d, %d rows: %g experts, the machine's are %g", kind, rows, got, want);
                const double least = machine_shape(&m, rows, 0), told = ratio(&c, rows, 0);
                if (fabs(told / least - 1) > 0.14) fail_msg("kind %d, %d rows: %g, the machine's is %g", kind, rows, told, least);
            }
        }
}

/* Impossible numbers of experts change nothing; a model that uses all of its experts has no curve of them. */
static void test_experts_that_cannot_be(void **state) {
    (void)state;
    hn_cost c;
    static const double wrong[] = {0, -5, 3, 129, NAN, INFINITY, -INFINITY, 1e300};
    (void)fine_machine(FINE128, 0, 1, &c);
    const double fresh = c.experts.fresh;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) pass_experts(&c, 1 + 3 * ((int)i % 2), wrong[i], 0.01);
    assert_true(c.experts.fresh == fresh && c.experts.seen == 0 && pass_cost(&c, 8, 0) > 0);
    for (int i = 0; i < 50; i++) pass_experts(&c, 60, 128, 0.08); /* all of them: no information on how soon */
    assert_true(c.experts.fresh == fresh && isfinite(pass_cost(&c, 64, 0)));
    hn_cost_init(&c);
    hn_cost_set_experts(&c, 4, 4, 0.5);
    pass_experts(&c, 3, 4, 0.01);
    assert_true(hn_cost_distinct_experts(&c, 5) == 0 && pass_cost(&c, 3, 0) > 0);
}

/* Their part of the curve is saved; a file of the other kind is ignored. */
static void test_experts_in_the_file(void **state) {
    (void)state;
    hn_cost c, b, dense;
    bool found;
    machine m = fine_machine(FINE256, 0.02, 5, &c);
    m.alike = 0.5;
    for (int i = 0; i < 50; i++) runs(&m, &c, 1 + i % 6, 1);
    assert_true(c.experts.alike > 0.1);
    unlink(path);
    must(hn_cost_save(&c, path, "key", err));
    (void)fine_machine(FINE256, 0, 1, &b);
    must(hn_cost_load(&b, path, "key", &found, err));
    assert_true(found && b.experts.count == 256 && fabs(b.experts.each / c.experts.each - 1) < 1e-6);
    assert_true(fabs(b.experts.alike - c.experts.alike) < 1e-6);
    for (int rows = 1; rows <= HN_COST_ROWS; rows++)
        assert_true(fabs(pass_cost(&b, rows, 0) / pass_cost(&c, rows, 0) - 1) < 0.03);
    hn_cost_init(&dense);
    must(hn_cost_load(&dense, path, "key", &found, err));
    assert_false(found);
    dense = experienced();
    must(hn_cost_save(&dense, path, "key", err));
    (void)fine_machine(FINE256, 0, 1, &b);
    must(hn_cost_load(&b, path, "key", &found, err));
    assert_false(found);
}

static size_t file_get(char *text, size_t cap) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, cap, f);
    fclose(f);
    return n;
}

static void file_put(const char *text, size_t n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

/* Whatever the file holds: no error, and either a curve that can be used or none. */
static bool load_is_sane(void) {
    hn_cost c;
    double curve[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
    bool found;
    hn_cost_init(&c);
    must(hn_cost_load(&c, path, "key", &found, err));
    assert_int_equal(found, curve_of(&c, 100, curve, optimistic, 1));
    for (int r = 1; found && r <= HN_COST_ROWS; r++) assert_true(isfinite(curve[r]) && curve[r] > 0);
    return found;
}

static void test_damage(void **state) {
    (void)state;
    static char text[1 << 16], copy[1 << 16];
    const hn_cost a = experienced();
    machine m = machine_make(TILES, 0, 77);
    must(hn_cost_save(&a, path, "key", err));
    const size_t n = file_get(text, sizeof text);
    assert_true(n > 100 && n < sizeof text && load_is_sane());
    for (size_t cut = 0; cut < n; cut += 1 + n / (light() ? 30 : 200)) {
        file_put(text, cut);
        assert_false(load_is_sane());
    }
    int found = 0, cases = light() ? 50 : 500;
    for (int i = 0; i < cases; i++) {
        memcpy(copy, text, n);
        copy[(size_t)((double)n * machine_uniform(&m))] = (char)(unsigned)(256 * machine_uniform(&m));
        file_put(copy, n);
        found += load_is_sane();
    }
    assert_true(found < cases);
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"format\":1}",
        "null",
        "{\"format\":1,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":0,\"shape\":[],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1e300,\"shape\":[],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"shape\":[],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1,1],[0,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[8,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1,1],[1e300,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1,2],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1,0],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[[65,1,1]],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[[1,1,1]],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[[2,0,1]],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[[2,1]],\"parts\":[[1,1],[1,1],[1,1]]}",
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"parts\":[[1,1],[1,1],[1,1]]}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        file_put(wrong[i], strlen(wrong[i]));
        assert_false(load_is_sane());
    }
    static const char *const bad_experts[] = {
        "[]", "[0.1,0.1]", "[0.1,0.1,0.5]", "[0,0.1,0.5,0.1]", "[1e300,0.1,0.5,0.1]", "[0.1,0,0.5,0.1]", "[0.1,0.1,3,0.1]",
        "[0.1,0.1,0,0.1]", "[0.1,0.1,\"x\",0.1]", "[0.1,0.1,0.5,-0.1]", "[0.1,0.1,0.5,1.1]", "[0.1,0.1,0.5,null]", "{}"};
    for (size_t i = 0; i < sizeof bad_experts / sizeof *bad_experts; i++) {
        hn_cost c;
        bool there;
        (void)fine_machine(FINE128, 0, 1, &c);
        snprintf(copy, sizeof copy, "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[],\"parts\":[[1,1],[1,1],[1,1]],"
                                    "\"experts\":%s}", bad_experts[i]);
        file_put(copy, strlen(copy));
        must(hn_cost_load(&c, path, "key", &there, err));
        if (there || c.speed > 0) fail_msg("%s was believed", bad_experts[i]);
    }
    static const char right[] =
        "{\"format\":2,\"key\":\"key\",\"speed\":1,\"shape\":[[2,1.5,1]],\"parts\":[[1,1],[0.1,0.5],[1,1]]}";
    file_put(right, strlen(right));
    assert_true(load_is_sane());
}

static void test_failures(void **state) {
    (void)state;
    const hn_cost a = experienced();
    hn_cost b;
    bool found;
    hunch_error e = {0};
    hn_cost_init(&b);
    char nowhere[150];
    snprintf(nowhere, sizeof nowhere, "%s/none/curve.json", folder);
    assert_int_equal(hn_cost_save(&a, nowhere, "key", &e), HUNCH_FAILED);
    assert_non_null(strstr(e.message, nowhere));
    assert_int_equal(hn_cost_save(&a, folder, "key", &e), HUNCH_FAILED); /* a folder of that name */
    assert_int_equal(hn_cost_save(&a, path, "\xff", &e), HUNCH_FAILED);
    must(hn_cost_load(&b, folder, "key", &found, err));
    assert_false(found);
    must(hn_cost_save(&a, path, "key", err));
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    assert_int_equal(hn_cost_save(&a, path, "key", &e), HUNCH_NO_MEMORY);
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    assert_int_equal(hn_cost_load(&b, path, "key", &found, &e), HUNCH_NO_MEMORY);
    assert_false(found);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    hn_fault_arm(HN_FAULT_READ, 0, false);
    must(hn_cost_load(&b, path, "key", &found, err)); /* cannot be read: as without a file */
    assert_false(found);
    hn_fault_arm(HN_FAULT_READ, -1, false);
    must(hn_cost_load(&b, path, "key", &found, err));
    assert_true(found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known),
        cmocka_unit_test(test_shape_under_drift),
        cmocka_unit_test(test_slower_is_not_dearer),
        cmocka_unit_test(test_unseen_widths),
        cmocka_unit_test(test_absurd_times),
        cmocka_unit_test(test_spikes),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_rows_cost_what_they_read),
        cmocka_unit_test(test_prompts_and_wide_passes), cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_drafters),
        cmocka_unit_test(test_bursts_of_a_drafter),
        cmocka_unit_test(test_drafters_for_several),
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test(test_experts_are_learned),
        cmocka_unit_test(test_rows_choose_alike),
        cmocka_unit_test(test_a_text_that_uses_more_experts),
        cmocka_unit_test(test_experts_that_cannot_be),
        cmocka_unit_test_setup_teardown(test_experts_in_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
