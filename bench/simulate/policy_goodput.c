/* SPDX-License-Identifier: Apache-2.0 */
/* policy_goodput.c - SmartSpec (2406.14066): one depth K for all texts, the one with the largest goodput
 *
 *   sum over texts of (1 - a^(K+1)) / (1 - a) / (K steps of the drafter + pass),   pass = alpha context + gamma rows + delta
 *
 * a: a moving average of each text's acceptance of a draft; alpha, gamma and delta are fitted to the recorded passes once. */
#include <math.h>
#include <stdlib.h>

#include "simulate.h"

static const double KEEP = 0.9, FIRST = 0.7; /* of a round; acceptance before anything is known */

typedef struct goodput {
    sim_settings s;
    double alpha, gamma, delta, step; /* step: seconds of a level, for one text */
    double a[SIM_TEXTS], all;
    int tried[SIM_TEXTS], depth;
} goodput;

/* Least squares of seconds = gamma rows + delta over the first context's passes; alpha of the passes of one row at both. */
static void fit(goodput *g, const sim_curve *c) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < c->n[0]; i++) {
        const double rows = c->rows[0][i], s = c->seconds[0][i];
        n++, x += rows, y += s, xx += rows * rows, xy += rows * s;
    }
    g->gamma = (n * xy - x * y) / (n * xx - x * x);
    g->delta = (y - g->gamma * x) / n;
    if (c->n[1] > 0) g->alpha = (c->seconds[1][0] - c->seconds[0][0]) / (c->context[1] - c->context[0]);
}

static void *open(const sim_data *d, const sim_settings *s) {
    goodput *g = sim_alloc(sizeof *g);
    double seconds = 0, levels = 0;
    g->s = *s;
    g->all = FIRST;
    fit(g, &d->curve);
    for (int i = 0; i < d->n_answers; i++)
        for (int k = 0; k + 1 < d->answer[i].n; k++) {
            seconds += d->answer[i].at[s->drafter][k].seconds;
            levels += d->answer[i].at[s->drafter][k].levels;
        }
    g->step = levels > 0 ? seconds / levels : 0;
    return g;
}

static void begin(void *state, int place) {
    goodput *g = state;
    g->a[place] = g->all;
}

static double value(const goodput *g, const sim_round *r, int depth) {
    double tokens = 0, context = 0;
    for (int i = 0; i < r->n; i++) {
        const double a = fmin(g->a[r->place[i]], 0.999);
        tokens += (1 - pow(a, depth + 1)) / (1 - a);
        context += r->text[i]->answer->prompt + r->text[i]->at;
    }
    const double rows = (double)r->n * (depth + 1) + r->prompt_rows;
    return tokens / (depth * g->step * r->n + g->alpha * context + g->gamma * rows + g->delta);
}

static void draft(void *state, sim_round *r) {
    goodput *g = state;
    g->depth = 0;
    for (int k = 1; k <= SIM_DEPTH && r->n * (k + 1) <= r->most_rows; k++)
        if (value(g, r, k) > value(g, r, g->depth)) g->depth = k;
    for (int level = 0; level < g->depth && sim_propose(r, g->s.drafter, level) > 0; level++) {}
    for (int i = 0; i < r->n; i++) g->tried[i] = hn_tree_depth(&r->text[i]->tree);
}

/* Accepted drafts, and whether one was refused after them. */
static void passed(void *state, const sim_round *r, int rows, double seconds) {
    goodput *g = state;
    (void)rows, (void)seconds;
    for (int i = 0; i < r->n; i++) {
        const int right = r->text[i]->accepted, asked = right + (right < g->tried[i]);
        double *a = &g->a[r->place[i]];
        if (asked == 0) continue;
        *a = KEEP * *a + (1 - KEEP) * right / asked;
        g->all = 0.99 * g->all + 0.01 * right / asked;
    }
}

const sim_policy sim_goodput = {"goodput", "SmartSpec: the depth of the largest goodput, by a linear model of passes", true,
                                open, free, begin, draft, passed};
