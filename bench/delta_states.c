/* SPDX-License-Identifier: Apache-2.0 */
/* delta_states.c - times the operation of gated delta nets inside whole passes of a model, whose other layers put the states out of
 * the nearest caches, beside the time that reading and writing these states alone would take here (docs/decisions/delta-nets.md).
 *
 *   build-test/delta_states MODEL [THREADS [ROWS...]]      defaults: all cores; passes of 1, 2, 4, 8 and 16 rows
 *
 * A round commits all rows of a pass, as plain decoding and accepted chains do: the next pass applies them to the state before its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/engine.h"
#include "model/kv_groups.h"
#include "ops/delta.h"
#include "ops/machine.h"
#include "quantile.h"

enum { CONTEXT = 1024, TIMES = 21 };

static const hn_ops *model_ops;
static double pass_seconds; /* of rank 0 in the operation, in one pass; the barrier at its end included */
static int pass_calls;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void timed_delta(const hn_exec *ex, const hn_delta_job *j) {
    const hn_exec own = {model_ops, ex->backend, ex->rank, ex->ranks};
    const double begin = now_s();
    model_ops->delta(&own, j);
    if (ex->rank != 0) return;
    pass_seconds += now_s() - begin;
    pass_calls++;
}

static void check(hunch_status st, const hunch_error *err) {
    if (!st) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

/* Seconds of the operation in a pass of n rows, all layers together: the median. */
static double time_rows(hunch_model *m, hn_cache *cache, hn_runner *runner, int n, hunch_error *err) {
    double times[TIMES];
    const int seq = 0;
    hn_row row[HN_MAX_ROWS];
    hn_cache_seq_begin(cache, seq);
    for (int i = -2; i < TIMES; i++) {
        for (int k = 0; k < n; k++)
            row[k] = (hn_row){.token = (i + 2 + 31 * k) % m->target.arch.vocab, .parent = (int16_t)(k - 1), .logits = HN_LOGITS_NONE};
        pass_seconds = pass_calls = 0;
        check(hn_pass_run(runner, row, n, &seq, 1, err), err);
        hn_cache_commit(cache, seq, 0, NULL, n);
        if (i >= 0) times[i] = pass_seconds;
    }
    hn_cache_seq_end(cache, seq);
    return median(times, TIMES);
}

static double read_gb_s(const hn_model *m, hunch_error *err) {
    const int threads = hn_pool_threads(m->pool);
    double gb_s[TIMES];
    hn_machine *machine;
    check(hn_machine_open(&machine, m->pool, m->isa, err), err);
    check(hn_machine_read(machine, (size_t)1 << 30, threads, true, TIMES, gb_s, err), err);
    hn_machine_close(&machine);
    return median(gb_s, TIMES);
}

int main(int argc, char **argv) {
    static const int usual[] = {1, 2, 4, 8, 16};
    hunch_error err = {0};
    hunch_model_options o;
    hunch_model_info info;
    hunch_model *m;
    hn_cache_group group[HN_MODEL_GROUPS];
    hn_cache *cache;
    hn_runner *runner;
    if (argc < 2) return 2;
    hunch_model_options_defaults(&o);
    if (argc > 2) o.threads = atoi(argv[2]);
    check(hunch_model_open(&m, argv[1], &o, &err), &err);
    hunch_model_get_info(m, &info);
    const int n_groups = hn_kv_groups(m->target.run, HN_BF16, group, NULL);
    group[0].page_rows = 64;
    check(hn_cache_open(&cache, m->target.backend, group, n_groups, 1, CONTEXT, 0, &err), &err);
    check(hn_runner_open(&runner, &m->target, cache, 0, CONTEXT, NULL, &err), &err);
    hn_ops timed = *m->target.backend->ops;
    model_ops = m->target.backend->ops;
    timed.delta = timed_delta;
    hn_runner_set_ops(runner, &timed);
    const double gb_s = read_gb_s(&m->target, &err), gb = 2e-9 * (double)info.state_bytes;
    printf("states %.2f MB, read and written once: %.3f ms at %.1f GB/s, what reading alone reaches\n", gb / 2 * 1e3,
           gb / gb_s * 1e3, gb_s);
    printf("rows  layers      ms   of the limit   ms a row beyond the first\n");
    double first = 0;
    for (int i = 0; i < (argc > 3 ? argc - 3 : 5); i++) {
        const int rows = argc > 3 ? atoi(argv[3 + i]) : usual[i];
        if (rows < 1 || rows > 16) return 2;
        const double s = time_rows(m, cache, runner, rows, &err);
        if (i == 0) first = s;
        printf("%4d  %6d  %6.3f  %6.2f x        %s", rows, pass_calls, s * 1e3, s * gb_s / gb, i ? "" : "\n");
        if (i) printf("%.3f\n", rows > 1 ? (s - first) / (rows - 1) * 1e3 : 0);
    }
    hn_runner_close(&runner);
    hn_cache_close(&cache);
    hunch_model_close(&m);
    return 0;
}
