/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_gain.c - the means of drafter_gain.h. */
#include "plan/drafter_gain.h"

#include <assert.h>
#include <math.h>

static const float KEEP_ALL = 1 - 1.0f / 256, KEEP_OWN = 1 - 1.0f / 32; /* a round in which it was called */
static const float KEEP_TEXT = 1 - 1.0f / 64; /* a round of the text: calls after a pause count more */
static const float LEAST = 1e-3f;             /* rounds: avoids denormal numbers */
static const float FIRST_ROUNDS = 4;          /* rounds of all texts that a text begins with */
static const double PRIOR_TOKENS = 2;         /* tokens that the prior counts against those accepted */

static void scale(hn_drafter_gain_sums *s, float by) {
    s->rounds *= by;
    s->rows *= by;
    s->depth *= by;
    s->levels *= by;
    s->gain *= by;
    s->expected *= by;
    s->got *= by;
}

void hn_drafter_gain_begin(hn_drafter_gain *own, const hn_drafter_gain *all) {
    *own = *all;
    for (int d = 0; d < HN_ACCEPT_DRAFTERS; d++)
        if (own->of[d].rounds > FIRST_ROUNDS) scale(&own->of[d], FIRST_ROUNDS / own->of[d].rounds);
}

void hn_drafter_gain_pass(hn_drafter_gain *own, int n_drafters) {
    for (int d = 0; d < n_drafters; d++)
        if (own->of[d].rounds > LEAST) scale(&own->of[d], KEEP_TEXT);
}

static void add(hn_drafter_gain_sums *s, const hn_drafter_gain_round *r, float keep) {
    scale(s, keep);
    s->rounds += 1;
    s->rows += (float)r->rows;
    s->depth += (float)r->depth;
    s->levels += (float)r->levels;
    s->gain += (float)r->gain;
    s->expected += r->verified ? (float)r->gain : 0;
    s->got += r->verified ? (float)r->got : 0;
}

void hn_drafter_gain_learn(hn_drafter_gain *all, hn_drafter_gain *own, int drafter, const hn_drafter_gain_round *r) {
    assert(drafter >= 0 && drafter < HN_ACCEPT_DRAFTERS);
    add(&all->of[drafter], r, KEEP_ALL);
    add(&own->of[drafter], r, KEEP_OWN);
}

/* Accepted tokens by expected ones; `before`: the prior. */
static double accepted_ratio(double got, double expected, double before) {
    return (got + PRIOR_TOKENS * before) / (expected + PRIOR_TOKENS);
}

hn_drafter_gain_mean hn_drafter_gain_of(const hn_drafter_gain *all, const hn_drafter_gain *own, int drafter) {
    assert(drafter >= 0 && drafter < HN_ACCEPT_DRAFTERS);
    const hn_drafter_gain_sums *a = &all->of[drafter], *o = &own->of[drafter], *s = o->rounds > 0 ? o : a;
    if (!(s->rounds > 0)) return (hn_drafter_gain_mean){0};
    const double rounds = (double)s->rounds, expected = (double)o->expected, got = (double)o->got;
    /* those of other texts, and of this one that it has forgotten: its own count once */
    const double others_expected = fmax((double)a->expected - expected, 0), others_got = fmax((double)a->got - got, 0);
    const double before = accepted_ratio(others_got, others_expected, 1);
    hn_drafter_gain_mean p = {(double)s->rows / rounds, (double)s->depth / rounds, (double)s->levels / rounds,
                     (double)s->gain / rounds * accepted_ratio(got, expected, before)};
    if (p.gain > p.rows) p.gain = p.rows;
    return p;
}
