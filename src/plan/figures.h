/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - the time of a pass from a few figures of a machine and a model that may not be here: what must be read, what must be
 * computed, how many operations it has. The controller does not use it: it measures (contract C5).
 */
#ifndef HN_FIGURES_H
#define HN_FIGURES_H

typedef struct hn_figures_machine {
    double bandwidth; /* bytes a second that all cores read */
    double peak;      /* int8 multiply-accumulates a second of all cores */
} hn_figures_machine;

typedef struct hn_figures_work {
    double bytes, macs; /* macs: in those of int8; one of bf16 is two of them, one of f32 four */
    int operations;     /* each ends with all threads waiting for the last */
} hn_figures_work;

/* Two numbers of hunch, not of a machine, fitted on the passes of 1 and 8 rows of SmolLM2-135M (tests/plan_figures_test.c): seconds of an
 * operation beside its reading and computing; and how reading and computing overlap: 1 is one after the other, infinite is perfectly. */
#define HN_FIGURES_OPERATION 1.45e-6
#define HN_FIGURES_OVERLAP 1.85

double hn_figures_seconds(const hn_figures_machine *m, const hn_figures_work *w);
/* The larger of reading and computing. */
double hn_figures_limit(const hn_figures_machine *m, const hn_figures_work *w);

/* Links between machines that divide a model (docs/machines.md), and what a pass exchanges by them: a number of exchanges, and bytes of a
 * row in all of them. */
typedef struct hn_figures_links {
    double latency, bytes_s; /* seconds; a second */
} hn_figures_links;
typedef struct hn_figures_exchange {
    int n;
    double row_bytes;
} hn_figures_exchange;
/* Seconds of a pass beside its computing: what is told to the others, the exchanges, and two for the best outputs, each of as many steps as
 * doublings reach all machines; and each machine gets what the others have computed. */
double hn_figures_links_seconds(const hn_figures_links *l, const hn_figures_exchange *e, int machines, double rows);
#endif
