/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_methods.c - what a method's rounds are like: counted while it answers the requests, one after the other as `hunch compare` does;
 * or published acceptance of drafters of its kind. */
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "forecast/forecast.h"
#include "plan/speedup.h"

/* ---- measured ---------------------------------------------------------------------------------------------------------- */

typedef struct counts {
    hn_forecast_method *m;
    double levels, draft_pass_s, draft_s, pass_s;
    bool decoded; /* a round since this was cleared did */
} counts;

/* Levels of a chain, or of the deepest path; and how many rows a cut at each depth leaves. */
static int count_rows(const hunch_round_report *r, int rows_of_depth[HUNCH_MAX_DEPTH + 1]) {
    int depth[HN_TREE_ROWS], deepest = 0;
    memset(rows_of_depth, 0, (HUNCH_MAX_DEPTH + 1) * sizeof *rows_of_depth);
    for (int i = 0; i + 1 < r->rows; i++) {
        depth[i] = r->node[i].parent < 0 ? 1 : depth[r->node[i].parent] + 1;
        rows_of_depth[depth[i]]++;
        deepest = hn_most(deepest, depth[i]);
    }
    return deepest;
}

static void count_round(void *user, const hunch_round_report *r) {
    counts *c = user;
    hn_forecast_method *m = c->m;
    int rows_of_depth[HUNCH_MAX_DEPTH + 1];
    const int deepest = count_rows(r, rows_of_depth);
    m->deepest = hn_most(m->deepest, deepest);
    for (int i = 0; i < deepest; i++) m->drafted[i]++;
    for (int i = 0; i < r->accepted; i++) m->accepted[i]++;
    for (int k = 0; k < HN_FORECAST_DEPTHS; k++) {
        int rows = 1;
        for (int d = 1; d <= hn_least(deepest, HN_FORECAST_DEPTH[k]); d++) rows += rows_of_depth[d];
        m->rows[k][rows]++;
    }
    m->rounds++;
    m->tokens += r->accepted + 1;
    c->levels += deepest;
    c->draft_pass_s += r->draft_pass_s;
    c->draft_s += r->draft_s;
    c->pass_s += r->pass_s;
    c->decoded = true;
}

/* From sums to means of a round. wall: seconds of the rounds that decoded. */
static void take_means(counts *c, double wall) {
    hn_forecast_method *m = c->m;
    const double n = m->rounds;
    m->measured = n > 0;
    if (n == 0) {
        m->rows[HN_FORECAST_UNCUT][1] = 1;
        return;
    }
    for (int i = 0; i < HUNCH_MAX_DEPTH; i++) {
        m->drafted[i] /= n;
        m->accepted[i] /= n;
    }
    for (int k = 0; k < HN_FORECAST_DEPTHS; k++)
        for (int rows = 0; rows <= HN_TREE_ROWS; rows++) m->rows[k][rows] /= n;
    m->level_s = c->levels > 0 ? c->draft_pass_s / c->levels : 0;
    m->round_s = (c->draft_s - (c->levels > 0 ? c->draft_pass_s : 0)) / n;
    m->other_s = fmax(wall - c->pass_s - c->draft_s, 0) / n;
    m->ran_s = wall / n;
}

/* Runs one text. *wall grows by the seconds of the rounds that decoded. */
static hunch_status run_text(hunch_engine *e, const hunch_request *r, counts *c, double until, double *wall,
                             hunch_error *err) {
    hunch_session *s = NULL;
    hunch_status st = hunch_session_open(&s, e, r, err);
    while (!st && hunch_engine_running(e) > 0 && hn_now() < until) {
        c->decoded = false;
        const double start = hn_now();
        st = hunch_engine_round(e, err);
        if (c->decoded) *wall += hn_now() - start;
    }
    if (!st && s->stats.finish == HUNCH_FINISH_FAILED)
        st = hn_fail(err, s->stats.error.status, "%s", s->stats.error.message);
    hunch_session_close(&s);
    return st;
}

hunch_status hn_forecast_measure(hn_forecast *f, hn_forecast_method *m, hunch_engine *e, hunch_error *err) {
    counts c = {.m = m};
    double wall = 0;
    const double until = hn_now() + (f->o->seconds > 0 ? f->o->seconds : 60);
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < f->o->n_requests && hn_now() < until; i++) {
        hunch_request r = f->o->requests[i];
        r.on_round = count_round;
        r.on_round_user = &c;
        r.on_output = NULL;
        r.on_logits = NULL;
        r.drafters = HUNCH_ALL_DRAFTERS;
        st = run_text(e, &r, &c, until, &wall, err);
    }
    if (!st) take_means(&c, wall);
    return st;
}

/* ---- published --------------------------------------------------------------------------------------------------------- */

/* The rate of a draft, and its time in passes of one row; 0: they follow from how many times as fast k drafts were, of which r were
 * accepted. */
static const struct published {
    const char *kind;
    double rate, cost, speed, r;
    int k;
    const char *from;
} published[] = {
    {"mtp", 0, 0, 2.40, .72, 3, "multi-token prediction, .72 of 3 drafts (llama.cpp, pull request 22673)"},
    {"model", .75, 0, 2.50, .68, 16, "T5-small for T5-XXL (2211.17192); a 0.8B for a 27B model (llama.cpp, pull request 22673)"},
    {"head", .75, .10, 0, 0, 0, "chains of EAGLE (2401.15077)"},
    {"text", .37, 0, 0, 0, 0, "prompt lookup on Spec-Bench (2401.07851)"}};

void hn_forecast_assume(const hn_forecast *f, hn_forecast_method *m, const char *spec) {
    const struct published *p = published;
    while (strcmp(p->kind, "text") && strncmp(spec, p->kind, strlen(p->kind)) && !(m->head && !strcmp(p->kind, "head")))
        p++;
    const double rate = p->rate > 0 ? p->rate : hn_speedup_rate(p->r, p->k);
    const double cost = p->speed > 0 ? hn_speedup_cost(p->speed, p->r, p->k) : p->cost;
    double reach = 1;
    m->from = p->from;
    m->deepest = 16;
    m->other_s = f->method[0].other_s;
    m->level_s = cost * hn_forecast_pass(f, 1, 1);
    for (int i = 0; i < m->deepest; i++) {
        m->drafted[i] = 1;
        m->accepted[i] = reach *= rate;
    }
    for (int k = 0; k < HN_FORECAST_DEPTHS; k++) m->rows[k][1 + hn_least(HN_FORECAST_DEPTH[k], m->deepest)] = 1;
}
