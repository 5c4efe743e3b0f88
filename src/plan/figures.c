/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - see figures.h. */
#include "plan/figures.h"

#include <math.h>

double hn_figures_seconds(const hn_figures_machine *m, const hn_figures_work *w) {
    const double reads = w->bytes / m->bandwidth, computes = w->macs / m->peak, p = HN_FIGURES_OVERLAP;
    const double most = fmax(reads, computes), least = fmin(reads, computes);
    return (most > 0 ? most * pow(1 + pow(least / most, p), 1 / p) : 0) + w->operations * HN_FIGURES_OPERATION;
}

double hn_figures_limit(const hn_figures_machine *m, const hn_figures_work *w) {
    return fmax(w->bytes / m->bandwidth, w->macs / m->peak);
}

double hn_figures_links_seconds(const hn_figures_links *l, const hn_figures_exchange *e, int machines, double rows) {
    enum { TOLD_AND_BEST = 3 };
    int steps = 0;
    while (1 << steps < machines) steps++;
    return (e->n + TOLD_AND_BEST) * steps * l->latency + rows * e->row_bytes * (machines - 1) / machines / l->bytes_s;
}
