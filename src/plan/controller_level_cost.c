/* SPDX-License-Identifier: Apache-2.0 */
/* controller_level_cost.c - how many levels are drafted by a drafter that makes all of them in one call, if fewer take less time: a level
 * is worth it if the tokens that it is expected to add are worth its time, and that of its row in the target's pass.
 *
 * What a level takes is the slope of the times of past calls over their numbers of levels. So that there is a slope the first calls
 * differ, and so that later levels' rates stay known, one call in ALL_EVERY drafts all. */
#include <math.h>

#include "plan/controller_private.h"

static const double KEEP = 0.95;   /* of older calls, in the sums */
static const double SPREAD = 0.25; /* least variance of levels from which a slope is read */
enum { ALL_EVERY = 16 };

void hn_controller_saves(hn_controller *c, int drafter) {
    c->drafter[drafter].level_cost.on = true;
}

/* The tokens that level d adds to a path that reached it. */
static double gain_at(const hn_controller *c, const hn_plan_text *x, int drafter, int d) {
    double sum = 0;
    hn_plan_rates_of r;
    if (d > HN_TREE_GROWTH_DEPTHS) return hn_acceptance_at(&c->all, &x->own, drafter, d);
    hn_plan_rates_ahead(c, x, drafter, d, &r);
    for (int k = 0; k < r.n; k++) sum += r.rate[k];
    return fmin(sum, 1);
}

static int levels_worth(const hn_controller *c, int seq, int drafter, int most) {
    const double one = hn_plan_on_curve(c, c->seconds, 1), value = c->last_value > 0 ? c->last_value : 1 / one;
    const double least = value * (c->drafter[drafter].level_cost.each * one + c->each_row);
    double p = 1;
    for (int d = 1; d <= most; d++)
        if ((p *= gain_at(c, &c->text[seq], drafter, d)) < least) return d > 1 ? d - 1 : 1;
    return most;
}

int hn_controller_levels(hn_controller *c, int seq, int drafter, int most) {
    hn_plan_level_cost *f = &c->drafter[drafter].level_cost;
    int levels = most;
    if (!f->on || c->n_seconds == 0) return most;
    f->whole = f->known && f->calls % ALL_EVERY == 0;
    if (!f->known && f->calls % 2) levels = (most + 1) / 2;
    if (f->known && !f->whole) levels = levels_worth(c, seq, drafter, most);
    f->asked += levels;
    return levels;
}

void hn_plan_level_cost_took(hn_controller *c, int drafter, double seconds) {
    hn_plan_level_cost *f = &c->drafter[drafter].level_cost;
    const double x = f->asked, y = seconds / hn_plan_on_curve(c, c->seconds, 1);
    if (!f->on || f->asked == 0 || c->drafter[drafter].behind > 0 || f->calls++ == 0) return; /* the first may have waited for memory */
    if (!f->whole) f->usual = x;
    f->n = KEEP * f->n + 1;
    f->x = KEEP * f->x + x;
    f->y = KEEP * f->y + y;
    f->xx = KEEP * f->xx + x * x;
    f->xy = KEEP * f->xy + x * y;
    const double mean = f->x / f->n, variance = f->xx / f->n - mean * mean;
    if (f->n < 1.9 || variance < SPREAD) return;
    f->each = fmax((f->xy / f->n - mean * f->y / f->n) / variance, 0);
    f->known = true;
}

double hn_plan_level_cost_call(const hn_controller *c, int drafter, double measured) {
    const hn_plan_level_cost *f = &c->drafter[drafter].level_cost;
    if (!f->known || isnan(measured)) return measured;
    const double ratio = f->y / f->n + f->each * (f->usual - f->x / f->n);
    return fmax(ratio, 0) * hn_plan_on_curve(c, c->seconds, 1);
}
