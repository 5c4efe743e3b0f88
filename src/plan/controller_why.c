/* SPDX-License-Identifier: Apache-2.0 */
/* controller_why.c - what was considered in a round, for `run --why`: notes about the decisions, which influence none. */
#include <assert.h>

#include "plan/controller_private.h"

/* Of choices that differ by less. A drafter that is not in use has to gain 3 % (controller_select.c), drafting at all 2 %, and of choices
 * within 0.5 % the one of fewest rows is taken (controller_cuts.c). */
static const double NEAR = 1.04;

static void note(hn_plan_considered *r, hunch_choice choice, bool forecast, double drafting) {
    assert(r->n < HN_PLAN_CHOICES);
    r->forecast[r->n] = forecast;
    r->drafting[r->n] = drafting;
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
        note(&c->report[i], (hunch_choice){HN_PLAN_NONE, 0, 0, 1, hn_plan_on_curve(c, c->seconds, n)}, false, 0);
    }
}

/* Each sequence's share of a drafter's expected gain. */
static void note_expected(hn_controller *c, int n, int drafter) {
    hunch_choice h = c->drafter[drafter].best;
    h.rows = (h.rows + n - 1) / n;
    h.expected /= n;
    for (int i = 0; i < n && h.rows > 0; i++) note(&c->report[i], h, true, 0);
}

void hn_plan_note_alone(hn_controller *c, int n, int drafter, hn_plan_cut k, double drafting) {
    if (k.rows == 0) note_expected(c, n, drafter);
    for (int i = 0; i < n && k.rows > 0; i++) note(&c->report[i], part_of(c, k, i, drafter), false, drafting);
}

void hn_plan_note_uncalled(hn_controller *c, int n) {
    for (int d = 0; d < c->n_drafters; d++)
        if (c->drafter[d].why == HN_NOT_CALLED) note_expected(c, n, d);
}

/* ---- why another may have better numbers ---- */

static double speed(const hunch_choice *h) {
    return h->expected / h->seconds;
}

/* Of all texts, after more seconds: every text has the same choices, and the decision is about their sum. */
static double speed_of_all(const hn_controller *c, int n, int choice, double more) {
    double tokens = 0;
    for (int i = 0; i < n; i++) tokens += c->report[i].choice[choice].expected;
    return tokens / (c->report[0].choice[choice].seconds + more);
}

static int best_of(const hn_plan_considered *r) {
    int best = r->chosen;
    for (int k = 0; k < r->n; k++)
        if (speed(&r->choice[k]) > speed(&r->choice[best])) best = k;
    return best;
}

static bool was_called(const hn_controller *c, int drafter) {
    return drafter >= 0 && c->drafter[drafter].why != HN_NOT_CALLED;
}

/* When rows are chosen all drafters have taken their time. What was drafted is charged for all of it, but plain decoding is reported
 * without, and a drafter alone with its own. So an alternative is compared once more, after the time that it was not charged for. */
static hunch_reason reason_of(const hn_controller *c, int n, const hn_plan_considered *r, int drafted, bool by_history) {
    const int best = best_of(r), drafter = r->choice[best].drafter;
    if (best == r->chosen) return HUNCH_REASON_NUMBERS;
    const double chosen = speed_of_all(c, n, r->chosen, 0), other = speed_of_all(c, n, best, 0);
    if (chosen >= other) return HUNCH_REASON_TEXTS;
    if (r->forecast[best] && (was_called(c, drafter) || (by_history && c->stepped))) return HUNCH_REASON_DRAFTED;
    const bool itself = drafter >= 0 && c->drafter[drafter].why == HN_CALLED_TRIED, spent = drafted > 0 && !r->forecast[best];
    const double after_trials = speed_of_all(c, n, best, spent ? c->trials - (itself ? r->drafting[best] : 0) : 0);
    const double after_all = speed_of_all(c, n, best, spent ? c->spent - r->drafting[best] : 0);
    if (chosen >= after_trials) return HUNCH_REASON_TRIED;
    if (chosen >= after_all) return HUNCH_REASON_DRAFTED;
    if (drafted > 0 && c->list[0].key > 1) return HUNCH_REASON_DRAWN;
    if (chosen * NEAR >= other) return HUNCH_REASON_NEAR;
    if (chosen * NEAR >= after_trials) return HUNCH_REASON_TRIED;
    return chosen * NEAR >= after_all ? HUNCH_REASON_DRAFTED : HUNCH_REASON_UNCERTAIN;
}

void hn_plan_note_chosen(hn_controller *c, int n, hn_plan_cut k, int sole, bool by_history, bool measured) {
    for (int i = 0; i < n && k.rows > 0; i++) {
        c->report[i].chosen = c->report[i].n;
        note(&c->report[i], part_of(c, k, i, sole), false, c->spent);
    }
    for (int i = 0; i < n; i++) {
        const hunch_reason reason = reason_of(c, n, &c->report[i], k.rows, by_history);
        c->report[i].reason = measured && reason != HUNCH_REASON_NUMBERS ? HUNCH_REASON_MEASURED : reason;
    }
}

int hn_controller_considered(const hn_controller *c, int i, const hunch_choice **list, int *chosen, hunch_reason *reason) {
    if (i < 0 || i >= c->n_report) return 0;
    *list = c->report[i].choice;
    *chosen = c->report[i].chosen;
    *reason = c->report[i].reason;
    return c->report[i].n;
}
