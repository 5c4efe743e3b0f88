/* SPDX-License-Identifier: Apache-2.0 */
/* controller_why.c - what was considered in a round, for `run --why`: notes about the decisions, which influence none. */
#include <assert.h>

#include "plan/controller_private.h"

static void note(hn_plan_considered *r, hunch_choice choice) {
    assert(r->n < HN_PLAN_CHOICES);
    r->choice[r->n++] = choice;
}

/* Sequence i's part of the front of the list. */
static hunch_choice part_of(const hn_controller *c, hn_plan_cut k, int i, int drafter) {
    hunch_choice out = {drafter, 0, 0, 1, k.seconds};
    for (int m = 0; m < k.rows; m++) {
        if (c->list[m].seq != i || c->list[m].p <= 0) continue; /* 0: another drafter's row that has to stay */
        out.rows++;
        out.expected += c->list[m].p;
        if (c->list[m].depth > out.depth) out.depth = c->list[m].depth;
    }
    return out;
}

int hn_plan_sole(const hn_plan_seq *s, int n) {
    int found = HN_PLAN_NONE;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s[i].tree->n_candidates; k++) {
            const int d = s[i].tree->candidate[k].drafter;
            if (found != HN_PLAN_NONE && found != d) return HN_PLAN_SEVERAL;
            found = d;
        }
    return found;
}

void hn_plan_note_plain(hn_controller *c, int n) {
    for (int i = 0; i < n; i++) {
        c->report[i].n = c->report[i].chosen = 0;
        note(&c->report[i], (hunch_choice){HN_PLAN_NONE, 0, 0, 1, hn_plan_on_curve(c->seconds, n)});
    }
}

/* Each sequence's share of a drafter's expected gain. */
static void note_expected(hn_controller *c, int n, int drafter) {
    hunch_choice h = c->drafter[drafter].best;
    h.rows = (h.rows + n - 1) / n;
    h.expected /= n;
    for (int i = 0; i < n && h.rows > 0; i++) note(&c->report[i], h);
}

void hn_plan_note_alone(hn_controller *c, int n, int drafter, hn_plan_cut k) {
    if (k.rows == 0) note_expected(c, n, drafter);
    for (int i = 0; i < n && k.rows > 0; i++) note(&c->report[i], part_of(c, k, i, drafter));
}

void hn_plan_note_uncalled(hn_controller *c, int n) {
    for (int d = 0; d < c->n_drafters; d++)
        if (c->drafter[d].why == HN_NOT_CALLED) note_expected(c, n, d);
}

void hn_plan_note_chosen(hn_controller *c, int n, hn_plan_cut k, int sole) {
    for (int i = 0; i < n && k.rows > 0; i++) {
        c->report[i].chosen = c->report[i].n;
        note(&c->report[i], part_of(c, k, i, sole));
    }
}

int hn_controller_considered(const hn_controller *c, int i, const hunch_choice **list, int *chosen) {
    if (i < 0 || i >= c->n_report) return 0;
    *list = c->report[i].choice;
    *chosen = c->report[i].chosen;
    return c->report[i].n;
}
