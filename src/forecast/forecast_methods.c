/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_methods.c - what a method's rounds are like: counted while it answers the requests, one after the other as `hunch compare` does;
 * or published acceptance of drafters of its kind. */
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "forecast/forecast.h"
#include "plan/speedup.h"
#include "engine/session.h"

/* ---- measured ---------------------------------------------------------------------------------------------------------- */

/* Levels of a chain, or of the deepest path; and how many rows a cut at each depth leaves. */
static int count_rows(const hunch_round_report *r, int rows_of_depth[HUNCH_MAX_DEPTH + 1]) {
    int deepest = 0;
    memset(rows_of_depth, 0, (HUNCH_MAX_DEPTH + 1) * sizeof *rows_of_depth);
    for (int i = 0; i + 1 < r->rows; i++) {
        rows_of_depth[r->node[i].depth]++;
        deepest = hn_most(deepest, r->node[i].depth);
    }
    return deepest;
}

static void count_round(void *user, const hunch_round_report *r) {
    hn_forecast_method *m = user;
    hn_forecast_sums *c = &m->sums;
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

void hn_forecast_means(hn_forecast_method *m) {
    const hn_forecast_sums *c = &m->sums;
    const double n = m->rounds;
    m->measured = n > 0;
    if (n == 0) {
        for (int k = 0; k < HN_FORECAST_DEPTHS; k++) m->rows[k][1] = 1;
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
    m->other_s = fmax(c->wall_s - c->pass_s - c->draft_s, 0) / n;
    m->ran_s = c->wall_s / n;
}

static hunch_status run_text(hunch_engine *e, const hunch_request *r, hn_forecast_sums *c, double until, hunch_error *err) {
    hunch_session *s = NULL;
    hunch_status st = hunch_session_open(&s, e, r, err);
    while (!st && hunch_engine_running(e) > 0 && hn_now() < until) {
        c->decoded = false;
        const double start = hn_now();
        st = hunch_engine_round(e, err);
        if (c->decoded) c->wall_s += hn_now() - start;
    }
    if (!st && s->stats.finish == HUNCH_FINISH_FAILED)
        st = hn_fail(err, s->stats.error.status, "%s", s->stats.error.message);
    hunch_session_close(&s);
    return st;
}

hunch_status hn_forecast_answer(const hn_forecast *f, hn_forecast_method *m, hunch_engine *e, int request, bool *enough,
                                hunch_error *err) {
    const double most = f->o->seconds > 0 ? f->o->seconds : 60, start = hn_now();
    hunch_request r = f->o->requests[request];
    r.on_round = count_round;
    r.on_round_user = m;
    r.on_output = NULL;
    r.on_logits = NULL;
    r.drafters = HUNCH_ALL_DRAFTERS;
    const hunch_status st = run_text(e, &r, &m->sums, start + most - m->sums.spent_s, err);
    m->sums.spent_s += hn_now() - start;
    *enough |= m->sums.spent_s >= most;
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
