/* SPDX-License-Identifier: Apache-2.0 */
/* controller_select.c - which drafters are called in a round. Their time is measured (cost.h), and there are three reasons to
 * spend it:
 *
 *   cheap   its time is negligible, and so is that of all such drafters together: they are always called, first
 *   worth   its expected gain beyond the drafts that exist pays for its time: for a drafter that is decided on level by level it
 *           is that of a chain by its rates at each depth, for others the mean of their past rounds (drafter_gain.h)
 *   tried   it has no expected gain, but an account, to which a small part of the time is added: it was never timed, or may have
 *           become better. The account is charged for the trial's time, less what its accepted drafts saved: so one that loses
 *           little is tried often, and one of which a single round is expensive is found if it is good
 *
 * A drafter that has to read text before it can draft (a draft model that did not run for a while) is charged for that too, over
 * the rounds in which it may be of use.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "plan/controller_private.h"

static const double CHEAP = 0.005;       /* of a plain round; a drafter that takes more is decided on */
static const double STAYS_CHEAP = 1.5;   /* times CHEAP, for one that was cheap in the last round */
static const double ALL_CHEAP = 0.01;    /* of a plain round: the cheap ones together */
static const double LEVEL_WORTH = 1.03;  /* least value ratio of a drafter that was not used in the last round */
static const double PRICE_WORTH = 0.5;   /* least gain for others, in parts of their price relative to the round, if that is less */
static const double ALLOWANCE = 0.01;    /* of the time is added to the accounts of those that are not cheap */
static const double FIRST_SAVED = 0.7;   /* rounds' worth of time that an account begins with */
static const double MOST_SAVED = 2;      /* its upper limit in rounds' worth, or the price of one trial */
static const double MOST_OWED = 1;       /* rounds' worth: limits the debt of one trial, because its time was not known before */
static const double INDEXING = 1.0 / 16; /* of the target's time for a text, at most: reading it without a model */
static const double READ_OVER = 32;      /* rounds over which reading is paid back */
static const double COLD = 4;            /* rounds' worth: a first call of up to that is repeated at once, it may have waited for memory */
enum { LEAST_PAUSE = 16 };               /* rounds between trials of one level: more trials would not tell more */
enum { MOST_UNTIMED = 8 };               /* rounds to time it in: it may have to read, or may propose nothing */
/* If drafts are always verified, the measured cost of one row becomes outdated. A round without drafts now and then updates it
 * and costs what they would have gained: one in LEAST_BETWEEN + gain / REFERENCE rounds, at most REFERENCE of the time. */
static const double REFERENCE = 0.005, LEAST_BETWEEN = 8;

bool hn_plan_plain_due(const hn_controller *c) {
    return c->since_plain >= LEAST_BETWEEN + c->gain / REFERENCE;
}

int hn_plan_deepest(const hn_plan_seq *s, int n) {
    int deepest = 0;
    for (int i = 0; i < n; i++)
        if (s[i].depth_limit > deepest) deepest = s[i].depth_limit;
    return deepest < HN_PLAN_AHEAD ? deepest : HN_PLAN_AHEAD;
}

/* ---- cost of a drafter ---- */

static double reading(const hn_controller *c, int drafter) {
    return hn_cost_of_reading(&c->cost, drafter, c->drafter[drafter].behind);
}

/* Of one call for the texts that it may be called for. NAN: never timed. */
static double call_of(const hn_controller *c, int drafter) {
    const int texts = c->drafter[drafter].texts;
    return hn_plan_level_cost_call(c, drafter, hn_cost_of_draft(&c->cost, drafter, texts > 0 ? texts : 1));
}

/* The same with its part of the reading. */
static double price(const hn_controller *c, int drafter) {
    return call_of(c, drafter) + reading(c, drafter) / READ_OVER;
}

/* levels: a mean; 0 for a drafter that is called for a whole round. */
static double cost_of_levels(const hn_controller *c, int drafter, double levels) {
    const double more = levels > 1 ? (levels - 1) * hn_cost_of_draft_level(&c->cost, drafter, c->drafter[drafter].texts) : 0;
    return price(c, drafter) + more;
}

double hn_plan_levels_price(const hn_controller *c, int drafter, int levels) {
    return levels > 0 ? cost_of_levels(c, drafter, levels) : 0;
}

double hn_plan_spent(const hn_controller *c) {
    const double own = c->levels > 0 ? hn_plan_levels_price(c, c->by_level, c->levels) : 0;
    return isnan(own) ? c->spent : c->spent + own; /* NAN: it is timed in this round */
}

void hn_plan_by_level_ends(hn_controller *c) {
    if (c->by_level < 0) return;
    hn_plan_drafter *d = &c->drafter[c->by_level];
    const double all = hn_plan_spent(c);
    d->levels = c->levels;
    d->spent = all - c->spent;
    if (d->why == HN_CALLED_TRIED) c->trials += d->spent;
    c->spent = all;
    c->by_level = HN_PLAN_NONE;
    c->levels = 0;
}

/* seconds < 0: charges it. */
static void account_add(hn_controller *c, int drafter, int n, double seconds) {
    hn_plan_drafter *x = &c->drafter[drafter];
    const double call = call_of(c, drafter), trial = isnan(call) ? 0 : call + reading(c, drafter);
    const double round = hn_plan_on_curve(c, c->seconds, n);
    if (seconds < 0)
        x->trial_budget = hn_plan_larger(x->trial_budget + seconds, fmin(x->trial_budget, -MOST_OWED * round));
    else
        x->trial_budget = fmin(x->trial_budget + seconds, hn_plan_larger(MOST_SAVED * round, trial));
}

void hn_plan_trials_allow(hn_controller *c, int n, double seconds) {
    int costly = 0;
    for (int d = 0; d < c->n_drafters; d++) costly += c->drafter[d].why != HN_CALLED_CHEAP;
    for (int d = 0; d < c->n_drafters; d++)
        if (c->drafter[d].why != HN_CALLED_CHEAP) account_add(c, d, n, ALLOWANCE * seconds / costly);
}

void hn_plan_trial_saved(hn_controller *c, int drafter, int rows, int accepted) {
    if (c->n_report > 0 && c->value > 0) account_add(c, drafter, c->n_report, accepted / c->value - rows * c->each_row);
}

static void trials_open(hn_controller *c, int n) {
    if (c->trials_open) return;
    c->trials_open = true;
    for (int d = 0; d < c->n_drafters; d++)
        c->drafter[d].trial_budget = hn_plan_larger(c->drafter[d].trial_budget, FIRST_SAVED * hn_plan_on_curve(c, c->seconds, n));
}

void hn_controller_took(hn_controller *c, int drafter, int n, int level, int added, double seconds) {
    assert(drafter >= 0 && drafter < c->n_drafters && n >= 1);
    hn_plan_drafter *d = &c->drafter[drafter];
    if (d->why == HN_CALLED_TRIED && hn_cost_draft_calls(&c->cost, drafter) > 0)
        account_add(c, drafter, n, -seconds);
    const bool by_levels = d->kind == HN_COST_PER_LEVEL;
    hn_plan_level_cost_took(c, drafter, seconds);
    if (by_levels && added == 0) c->levels = level; /* it proposed nothing more */
    if (!by_levels || (added > 0 && level == 0))
        hn_cost_draft(&c->cost, drafter, n, d->behind, seconds);
    else if (added > 0)
        hn_cost_draft_level(&c->cost, drafter, n, seconds);
}

/* ---- the drafts that exist ---- */

static double value_of(const hn_controller *c, double tokens, double rows, double spent) {
    return tokens / (hn_plan_on_curve(c, c->optimistic, rows) + spent);
}

/* By history the values of drawn candidates must not decide: they count with the mean yield of their drafters. */
static void base_of_drawn(hn_controller *c, const hn_plan_seq *s, int i) {
    bool counted[HN_ACCEPT_DRAFTERS] = {false};
    const hn_tree *t = s[i].tree;
    for (int k = 0; k < t->n_candidates; k++) {
        const int d = t->candidate[k].drafter;
        if (!t->candidate[k].q || counted[d]) continue;
        const hn_drafter_gain_mean p = hn_drafter_gain_of(&c->gains, &c->text[s[i].seq].gains, d);
        counted[d] = true;
        if (p.gain > c->base[i].gain) c->base[i] = (hn_plan_base){p.gain, p.rows, false};
    }
}

static void ignore_drawn(hn_controller *c, const hn_plan_seq *s, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s[i].tree->n_candidates; k++)
            if (s[i].tree->candidate[k].q) c->rate[i][k] = 0;
}

/* Fills base, updates rates and reach. Returns the value of the trees as they are. */
static double base_read(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    double tokens = n, rows = n;
    hn_plan_rates(c, s, n, by_history);
    if (by_history) ignore_drawn(c, s, n);
    const hn_plan_cut k = hn_plan_trees_cut(c, s, n, HN_PLAN_ANY, false, c->spent);
    memset(c->base, 0, (size_t)n * sizeof *c->base);
    for (int m = 0; m < k.rows; m++) {
        c->base[c->list[m].seq].gain += c->list[m].p;
        c->base[c->list[m].seq].rows += 1;
    }
    if (!by_history) return k.value;
    for (int i = 0; i < n; i++) {
        base_of_drawn(c, s, i);
        tokens += c->base[i].gain;
        rows += c->base[i].rows;
    }
    return value_of(c, tokens, rows, c->spent);
}

/* ---- expectation from past rounds ---- */

/* A sequence whose tree has a larger expected gain keeps its tree. */
static double round_value(hn_controller *c, const hn_plan_seq *s, int n, int drafter) {
    double tokens = n, rows = n, depth = 0, levels = 0;
    for (int i = 0; i < n; i++) {
        const hn_drafter_gain_mean p = hn_drafter_gain_of(&c->gains, &c->text[s[i].seq].gains, drafter);
        const double gain = fmin(p.gain, s[i].depth_limit);
        const bool more = hn_plan_has(&s[i], drafter) && gain > c->base[i].gain;
        tokens += more ? gain : c->base[i].gain;
        rows += more ? p.rows : c->base[i].rows;
        depth = hn_plan_larger(depth, p.depth);
        levels = hn_plan_larger(levels, p.levels);
    }
    const double cost = cost_of_levels(c, drafter, levels);
    const int drafted = (int)ceil(rows - n);
    c->drafter[drafter].best = (hunch_choice){drafter, drafted > 0 ? drafted : 1, depth > 1 ? (int)lround(depth) : 1,
                                              tokens, hn_plan_on_curve(c, c->seconds, rows) + c->spent + cost};
    return value_of(c, tokens, rows, c->spent + cost);
}

/* ---- the next drafter ---- */

static int call_begin(hn_controller *c, int drafter, hn_plan_why why) {
    hn_plan_drafter *d = &c->drafter[drafter];
    const double cost = price(c, drafter);
    d->why = why;
    if (why != HN_CALLED_CHEAP) d->tried = c->round;
    if (d->kind == HN_COST_PER_LEVEL) {
        c->by_level = drafter;
        c->stepped = true;
    } else if (!isnan(cost)) {
        *(why == HN_CALLED_CHEAP ? &c->cheap : &c->spent) += cost;
        if (why == HN_CALLED_TRIED) c->trials += cost;
    }
    return drafter;
}

/* As long as nothing is known of the machine all drafters are called that need no decision. */
static int next_cheap(hn_controller *c, int n, bool known) {
    const double round = known ? hn_plan_on_curve(c, c->seconds, n) : 0;
    for (int d = 0; d < c->n_drafters; d++) {
        const hn_plan_drafter *x = &c->drafter[d];
        if (x->kind == HN_COST_PER_LEVEL || x->why != HN_NOT_CALLED || x->texts == 0) continue;
        if (!known) return call_begin(c, d, HN_CALLED_TRIED);
        if (x->stays) continue;
        const double cost = price(c, d), most = CHEAP * (x->before == HN_CALLED_CHEAP ? STAYS_CHEAP : 1);
        if (cost <= most * round && c->cheap + cost <= ALL_CHEAP * round) return call_begin(c, d, HN_CALLED_CHEAP);
    }
    return HN_PLAN_NONE;
}

/* Least ratio of values for a drafter that is not in use: lower for one that costs little. */
static double threshold(const hn_controller *c, int drafter, int n) {
    const hn_plan_drafter *d = &c->drafter[drafter];
    if (d->before == HN_CALLED_WORTH) return 1;
    if (d->kind == HN_COST_PER_LEVEL) return LEVEL_WORTH;
    return fmin(LEVEL_WORTH, 1 + PRICE_WORTH * price(c, drafter) / hn_plan_on_curve(c, c->seconds, n));
}

/* Value of a drafter that is decided on level by level: of its levels by their rates, or of past rounds of such decisions. */
static double worth(hn_controller *c, const hn_plan_seq *s, int n, int drafter, bool by_history) {
    const double past = round_value(c, s, n, drafter);
    if (c->drafter[drafter].kind == HN_COST_PER_ROUND) return past;
    const hunch_choice past_choice = c->drafter[drafter].best;
    const double levels = hn_plan_levels_value(c, s, n, drafter, by_history);
    if (past > levels) c->drafter[drafter].best = past_choice;
    return hn_plan_larger(past, levels);
}

/* The drafter with the largest value above that of the drafts that exist. */
static int call_best(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    double value = c->value = base_read(c, s, n, by_history);
    int best = HN_PLAN_NONE;
    for (int d = 0; d < c->n_drafters; d++) {
        if (c->drafter[d].why != HN_NOT_CALLED || c->drafter[d].texts == 0 || isnan(price(c, d))) continue;
        const double one = worth(c, s, n, d, by_history) / threshold(c, d, n);
        if (one <= value) continue;
        value = one;
        best = d;
    }
    return best < 0 ? HN_PLAN_NONE : call_begin(c, best, HN_CALLED_WORTH);
}

/* The very first call may have included reading the texts, if it took much less than the target would take for them. */
static bool may_have_read(const hn_controller *c, const hn_plan_seq *s, int n, double call) {
    double rows = 0;
    for (int i = 0; i < n; i++) rows += s[i].context;
    return call <= INDEXING * rows * c->seconds[HN_COST_ROWS] / HN_COST_ROWS;
}

/* Never timed, or not recently, and its account pays for a trial. Its drafts need not be verified to be learned from. */
static bool may_be_tried(hn_controller *c, const hn_plan_seq *s, int n, int drafter) {
    hn_plan_drafter *d = &c->drafter[drafter];
    const double call = call_of(c, drafter);
    const int calls = hn_cost_draft_calls(&c->cost, drafter);
    if (d->why != HN_NOT_CALLED || d->texts == 0) return false;
    if (calls == 0) return d->rounds_untimed++ < MOST_UNTIMED;
    if (calls == 1 && call <= COLD * hn_plan_on_curve(c, c->seconds, n)) return true;
    if (calls == 1 && d->kind == HN_COST_PER_ROUND && may_have_read(c, s, n, call)) return true;
    if (call + reading(c, drafter) > d->trial_budget) return false;
    return calls < HN_COST_FIRST || d->kind == HN_COST_PER_ROUND || c->round >= d->tried + LEAST_PAUSE;
}

static int next_trial(hn_controller *c, const hn_plan_seq *s, int n) {
    for (int d = 0; d < c->n_drafters; d++)
        if (may_be_tried(c, s, n, d)) return call_begin(c, d, HN_CALLED_TRIED);
    return HN_PLAN_NONE;
}

static bool all_called(const hn_controller *c) {
    for (int d = 0; d < c->n_drafters; d++)
        if (c->drafter[d].why == HN_NOT_CALLED && c->drafter[d].texts > 0) return false;
    return true;
}

int hn_controller_choose(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    hn_plan_by_level_ends(c);
    if ((c->stepped && by_history) || all_called(c) || hn_plan_deepest(s, n) == 0) return HN_PLAN_NONE;
    const bool known = hn_plan_curve(c, s, n);
    if (known) trials_open(c, n);
    const int cheap = next_cheap(c, n, known);
    if (cheap >= 0 || !known || hn_plan_plain_due(c)) return cheap;
    const int worth = call_best(c, s, n, by_history);
    return worth >= 0 ? worth : next_trial(c, s, n);
}
