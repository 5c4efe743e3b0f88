/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench.h - the parts of `hunch bench`: cmd_bench.c opens the model and chooses what to measure; tool_bench_machine.c,
 * tool_bench_model.c and tool_bench_profile.c measure and compute limits; tool_bench_show.c, tool_bench_files.c and tool_bench_plot.c write
 * the results; tool_bench_requests.c measures what another program requests. Functions that return int give 0, or an exit code after a
 * message. */
#ifndef HN_TOOL_BENCH_H
#define HN_TOOL_BENCH_H

#include "app/tool_file.h"
#include "app/tool_open.h"
#include "cli/show/tool_stats.h"

enum { BENCH_MOST_TURNS = 7, BENCH_MOST_ROWS = 64, BENCH_PREFILL = 512, BENCH_DECODE = 64, BENCH_ROLLBACKS = 6 };

/* Passes of one number of rows after one context. Each turn has its time and the read bandwidth of the same turn. */
typedef struct bench_pass {
    int rows, context;
    hunch_work work;
    double experts; /* distinct experts that its rows use per layer, the mean; 0: no experts */
    double seconds[BENCH_MOST_TURNS];
    double read_gb_s[BENCH_MOST_TURNS];
    tool_spread s;                    /* of seconds */
    double one_row_s;                 /* median of one row after the same context, in the same turns */
    double limit_s, fraction, of_bandwidth; /* medians over turns: the limit, limit / time, bytes / time / bandwidth */
    int commit;                       /* rows kept by the commit that is measured beside it */
    double commit_s;
} bench_pass;

/* A pass, a commit of some of its rows, and the one-row pass that follows. */
typedef struct bench_rollback {
    int rows, commit, context;
    double seconds; /* median */
} bench_rollback;

/* Generation of `parallel` texts at once. */
typedef struct bench_plain {
    int prompt, new_tokens, context; /* context: in the middle of the new tokens */
    hunch_work work;                 /* of one new token of each text */
    double prefill_tok_s[BENCH_MOST_TURNS], decode_tok_s[BENCH_MOST_TURNS], read_gb_s[BENCH_MOST_TURNS];
    tool_spread prefill, decode;
    double prefill_limit_tok_s, prefill_fraction, decode_limit_tok_s, decode_fraction, of_bandwidth;
} bench_plain;

/* Read bandwidth of one number of threads, kind of pages and size. */
typedef struct bench_read {
    int threads;
    bool huge;
    size_t bytes;
    tool_spread gb_s;
} bench_read;

typedef struct bench_profile {
    int rows, context;
    double pass_s;                      /* medians of many passes */
    hunch_phase phase[HUNCH_PHASES];
} bench_profile;

typedef struct bench {
    tool_options o;
    const char *name; /* of the model, as given */
    hunch_model *model;
    hunch_engine *engine;
    hunch_meter *meter;
    hunch_model_info info;
    hunch_machine machine; /* the best values measured */
    double busy; /* share of the processors that other processes used at the start; NAN: unknown */
    double load_s;
    int turns, parallel;
    bench_read *reads; /* --machine */
    int n_reads;
    double *read_gb_s; /* of all turns so far */
    size_t n_read, cap_read;
    bench_plain plain;
    bench_pass *passes; /* by context, then by rows, as asked for */
    int n_passes;
    bench_rollback rollback[BENCH_ROLLBACKS];
    int n_rollbacks;
    bench_profile *profiles;
    int n_profiles;
} bench;

/* ---- tool_bench_machine.c ---- */

double bench_busy(void);             /* takes 0.4 s */
int bench_machine_reads(bench *b);   /* threads, pages and sizes */
int bench_machine_peaks(bench *b);   /* the peaks only; b->machine keeps the better of old and new */
int bench_machine_turn(bench *b, double *gb_s); /* the read bandwidth now */
/* The least seconds that the machine needs for this work. */
double bench_limit(const bench *b, const hunch_work *w, double read_gb_s);

/* ---- tool_bench_model.c, tool_bench_profile.c, tool_bench_requests.c ---- */

/* Fills b->passes with those that the flags select and that fit. Returns their number. */
int bench_passes_plan(bench *b);
int bench_plain_measure(bench *b);
int bench_passes_measure(bench *b);
void bench_fractions(bench *b); /* after the machine was measured for the last time */
int bench_profiles_measure(bench *b);
int bench_requests_serve(bench *b);

/* ---- tool_bench_show.c, tool_bench_files.c, tool_bench_plot.c ---- */

int bench_table(const bench *b);
int bench_files_check(const bench *b); /* before anything is measured for them: 0, or an exit code after a message */
int bench_files(const bench *b); /* the files that the flags name, then standard output */
int bench_plot(const bench *b, const char *path);

#endif
