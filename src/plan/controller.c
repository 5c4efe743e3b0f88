/* SPDX-License-Identifier: Apache-2.0 */
/* controller.c - `auto`, see controller.h. What a pass costs is cost.c's, how likely a candidate is acceptance.c's; here
 * the two meet.
 *
 * Every choice is one list of rows with their probabilities, sorted, and one cut through it (best_cut): the rows before it
 * are verified. The existing trees, one drafter alone, and what a stepping drafter might draw are such lists.
 *
 * What is cut off teaches too: under greedy and match the target's token at a row that was reached says of every candidate
 * there whether it would have been accepted (and under the point-mass rule it says so on average). So the trees are kept as
 * they were before the cut, and looked at again when the token is known: it is the root of the next round's tree. Trying
 * costs nothing then, except for a drafter that steps, which has a small allowance (probe).
 */
#include "plan/controller.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

static const double WORTH = 1.02;      /* drafting must promise this much more than its absence */
static const double STEP_WORTH = 1.03; /* the same of a stepping drafter that did not run in the last round */
static const double FLAT = 0.995;      /* of equal choices (this much of the best) the one of fewest rows */
/* Where drafts are always verified, what one row costs becomes hearsay. A round without them now and then tells it, and
 * costs what they would have gained: once in LEAST_BETWEEN + gain / REFERENCE rounds, at most REFERENCE of the time. */
static const double REFERENCE = 0.005, LEAST_BETWEEN = 8;
static const double HOPE = 0.7;       /* of what is not known about the cost of a width, see hn_cost_curve */
static const double ALLOWANCE = 0.01; /* of the time may go into trying stepping drafters that promise nothing */
static const double MOST_SAVED = 2;   /* rounds' worth of time that the allowance may grow to */
enum { LEAST_PAUSE = 16 };            /* rounds between such trials of one of them: more would not teach more */
enum { MOST_MEASURED = 8 };           /* rounds in which one may run to be timed; it may have nothing to say */
enum { MOST_AHEAD = 16, LIST = HN_TREE_ROWS + MOST_AHEAD }; /* levels that are looked ahead; items of a sequence */
enum { MOST_CHOICES = HN_ACCEPT_DRAFTERS + 2, SEVERAL = -2, NONE = -1, ANY = -1 };

/* The tree of the last round before the cut. */
typedef struct shadow {
    hn_tree tree;
    bool kept[HN_TREE_ROWS];
    int row; /* the last one that was reached; its next token is not known yet. -1: nothing to learn */
} shadow;

typedef struct text {
    hn_acceptance own;
    shadow shadow;
} text;

typedef struct item {
    double key, p; /* sorted by key: p, or above all others for a row that must stay */
    int16_t seq, row, depth;
} item;

typedef struct considered {
    hunch_choice choice[MOST_CHOICES];
    int n, chosen;
} considered;

struct hn_controller {
    hn_cost cost;
    hn_acceptance all;
    bool steps[HN_ACCEPT_DRAFTERS];
    int n_drafters, max_seqs;
    int stepper, levels; /* of this round: which stepping drafter was chosen, levels gone on with */
    bool trying;         /* it is a probe: one level */
    int last_stepper;    /* of the round before */
    double allowance;    /* seconds */
    uint64_t round, tried[HN_ACCEPT_DRAFTERS]; /* the round a stepping drafter last ran in */
    int measured[HN_ACCEPT_DRAFTERS];          /* rounds it ran to be measured */
    hunch_choice stepping[HN_ACCEPT_DRAFTERS]; /* the best of each for the whole round; rows 0: not considered */
    double seconds[HN_COST_ROWS + 1], hoped[HN_COST_ROWS + 1]; /* of a pass in this round, by rows */
    text *text;                                                /* [max_seqs] */
    float (*rate)[HN_TREE_CANDIDATES];                         /* [max_seqs]: calibrated, of the trees of this round */
    double (*reach)[HN_TREE_ROWS];   /* [max_seqs]: probability that a row is on the accepted path */
    double (*chain)[MOST_AHEAD + 1]; /* [max_seqs]: by history, one drafter's rate at each depth */
    item *list;                      /* [max_seqs * LIST] */
    considered *report;              /* [max_seqs]: of the last round */
    int n_report;
    int since_plain; /* rounds */
    double gain;     /* of the last round's choice, to plain decoding: 0 is none */
};

hunch_status hn_controller_open(hn_controller **out, const bool *steps, int n_drafters, int max_seqs,
                                hunch_error *err) {
    assert(n_drafters >= 0 && max_seqs >= 1);
    *out = NULL;
    if (n_drafters > HN_ACCEPT_DRAFTERS)
        return hn_fail(err, HUNCH_USAGE, "auto: %d drafters, expected at most %d", n_drafters, HN_ACCEPT_DRAFTERS);
    const size_t n = (size_t)max_seqs;
    hn_controller *c = hn_zalloc(1, sizeof *c);
    if (!c) return hn_fail_memory(err, "controller", sizeof *c);
    c->text = hn_zalloc(n, sizeof *c->text);
    c->rate = hn_zalloc(n, sizeof *c->rate);
    c->reach = hn_zalloc(n, sizeof *c->reach);
    c->chain = hn_zalloc(n, sizeof *c->chain);
    c->list = hn_zalloc(n, LIST * sizeof *c->list);
    c->report = hn_zalloc(n, sizeof *c->report);
    if (!c->text || !c->rate || !c->reach || !c->chain || !c->list || !c->report) {
        hn_controller_close(&c);
        return hn_fail_memory(err, "controller", n * sizeof *c->text);
    }
    c->n_drafters = n_drafters;
    c->max_seqs = max_seqs;
    c->stepper = c->last_stepper = NONE;
    memcpy(c->steps, steps, (size_t)n_drafters * sizeof *steps);
    hn_cost_init(&c->cost);
    hn_controller_forget(c);
    *out = c;
    return HUNCH_OK;
}

void hn_controller_close(hn_controller **c) {
    if (!*c) return;
    hn_free((*c)->text);
    hn_free((*c)->rate);
    hn_free((*c)->reach);
    hn_free((*c)->chain);
    hn_free((*c)->list);
    hn_free((*c)->report);
    hn_free(*c);
    *c = NULL;
}

void hn_controller_begin(hn_controller *c, int seq) {
    assert(seq >= 0 && seq < c->max_seqs);
    hn_acceptance_init(&c->text[seq].own);
    c->text[seq].shadow.row = NONE;
}

void hn_controller_forget(hn_controller *c) {
    hn_acceptance_init(&c->all);
    for (int i = 0; i < c->max_seqs; i++) hn_controller_begin(c, i);
}

hn_cost *hn_controller_cost(hn_controller *c) {
    return &c->cost;
}

/* ---- learning ---- */

static void learn(hn_controller *c, text *x, const hn_candidate *k, int depth, bool accepted) {
    hn_acceptance_learn(&c->all, &x->own, k->drafter, depth, (double)k->estimate, accepted);
}

/* The row was reached and the target's token there is known: what the candidates that were cut off would have done. */
static void shadow_learn(hn_controller *c, text *x, int row, int32_t token) {
    const hn_tree *t = &x->shadow.tree;
    for (int k = t->first[row]; k >= 0; k = t->candidate[k].next)
        if (!x->shadow.kept[t->candidate[k].child])
            learn(c, x, &t->candidate[k], t->depth[row] + 1, t->candidate[k].token == token);
}

/* Follows the accepted path through the tree as it was before the cut. */
static void shadow_follow(hn_controller *c, text *x, const hn_tree *t, const int16_t *path, int n_accepted) {
    shadow *w = &x->shadow;
    for (int i = 0; i < n_accepted && w->row >= 0; i++) {
        const int32_t token = t->token[path[i]];
        shadow_learn(c, x, w->row, token);
        w->row = hn_tree_child(&w->tree, w->row, token);
    }
}

/* The roots of the new trees are the tokens that the target gave behind the last paths. */
static void settle(hn_controller *c, const hn_plan_seq *s, int n) {
    for (int i = 0; i < n; i++) {
        text *x = &c->text[s[i].seq];
        assert(s[i].seq >= 0 && s[i].seq < c->max_seqs);
        if (x->shadow.row >= 0) shadow_learn(c, x, x->shadow.row, s[i].tree->token[0]);
        x->shadow.row = NONE;
    }
}

void hn_controller_observe(hn_controller *c, int seq, const hn_tree *t, const int16_t *path, int n_accepted) {
    assert(seq >= 0 && seq < c->max_seqs);
    text *x = &c->text[seq];
    for (int i = 0; i <= n_accepted; i++) {
        const int row = i == 0 ? 0 : path[i - 1], next = i < n_accepted ? path[i] : NONE;
        for (int k = t->first[row]; k >= 0; k = t->candidate[k].next)
            learn(c, x, &t->candidate[k], t->depth[row] + 1, t->candidate[k].child == next);
    }
    shadow_follow(c, x, t, path, n_accepted);
    hn_acceptance_round(&x->own, c->n_drafters);
}

/* Only what is used of a tree. */
static void tree_copy(hn_tree *to, const hn_tree *from) {
    const size_t rows = (size_t)from->n_rows;
    to->n_rows = from->n_rows;
    to->n_candidates = from->n_candidates;
    to->max_rows = from->max_rows;
    memcpy(to->token, from->token, rows * sizeof *to->token);
    memcpy(to->parent, from->parent, rows * sizeof *to->parent);
    memcpy(to->depth, from->depth, rows * sizeof *to->depth);
    memcpy(to->first, from->first, rows * sizeof *to->first);
    memcpy(to->last, from->last, rows * sizeof *to->last);
    memcpy(to->candidate, from->candidate, (size_t)from->n_candidates * sizeof *to->candidate);
}

/* ---- lists and cuts ---- */

static double larger(double a, double b) {
    return a > b ? a : b; /* fmax looks for NaN, in a call */
}

static double on_curve(const double *seconds, int rows) {
    if (rows <= HN_COST_ROWS) return seconds[rows];
    return seconds[HN_COST_ROWS] * rows / HN_COST_ROWS;
}

/* The curve at the sequences' mean context. */
static bool curve_take(hn_controller *c, const hn_plan_seq *s, int n) {
    double context = 0;
    for (int i = 0; i < n; i++) context += s[i].context;
    return n > 0 && hn_cost_curve(&c->cost, (int)(context / n), c->seconds, c->hoped, HOPE);
}

/* Drawn under by_history: what it is may not count, so its rate is that of its depth. */
static void rates_read(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    for (int i = 0; i < n; i++) {
        const hn_tree *t = s[i].tree;
        const hn_acceptance *own = &c->text[s[i].seq].own;
        for (int k = 0; k < t->n_candidates; k++) {
            const hn_candidate *a = &t->candidate[k];
            const int depth = t->depth[a->child];
            c->rate[i][k] =
                (float)(by_history && a->q ? hn_acceptance_at(&c->all, own, a->drafter, depth)
                                           : hn_acceptance_rate(&c->all, own, a->drafter, depth, (double)a->estimate));
        }
    }
}

/* Of two candidates with one row the likelier counts. only: of one drafter, or ANY. */
static void reach_read(hn_controller *c, int i, const hn_tree *t, int only) {
    double best[HN_TREE_ROWS] = {0};
    for (int k = 0; k < t->n_candidates; k++) {
        const hn_candidate *a = &t->candidate[k];
        if (only == ANY || a->drafter == only) best[a->child] = larger(best[a->child], (double)c->rate[i][k]);
    }
    c->reach[i][0] = 1;
    for (int r = 1; r < t->n_rows; r++) c->reach[i][r] = best[r] * c->reach[i][t->parent[r]];
}

/* The rows that drawn candidates lead to, and what lies before them. */
static void must_stay(const hn_tree *t, bool *stay) {
    for (int k = 0; k < t->n_candidates; k++)
        if (t->candidate[k].q) stay[t->candidate[k].child] = true;
    for (int r = t->n_rows - 1; r > 0; r--)
        if (stay[r]) stay[t->parent[r]] = true;
}

/* Rows of tree i behind the list's first n; returns the new n. */
static int list_tree(hn_controller *c, int i, const hn_tree *t, bool by_history, int n) {
    bool stay[HN_TREE_ROWS] = {false};
    if (by_history) must_stay(t, stay);
    for (int r = 1; r < t->n_rows; r++) {
        const double p = c->reach[i][r];
        if (p > 0 || stay[r]) c->list[n++] = (item){stay[r] ? 2 : p, p, (int16_t)i, (int16_t)r, t->depth[r]};
    }
    return n;
}

static int list_trees(hn_controller *c, const hn_plan_seq *s, int n, int only, bool by_history) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        reach_read(c, i, s[i].tree, only);
        m = list_tree(c, i, s[i].tree, by_history, m);
    }
    return m;
}

/* Parents come before children even where probabilities are equal. */
static bool before(const item *a, const item *b) {
    if (a->key != b->key) return a->key > b->key;
    if (a->depth != b->depth) return a->depth < b->depth;
    return a->seq != b->seq ? a->seq < b->seq : a->row < b->row;
}

/* Shell's sort; a few chains in a row are nearly sorted, and short lists are inserted. */
static void list_sort(item *list, int n) {
    static const int gaps[] = {301, 57, 10, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        const int gap = gaps[g];
        if (gap > 1 && gap * 4 > n) continue;
        for (int i = gap; i < n; i++) {
            const item x = list[i];
            int j = i;
            for (; j >= gap && before(&x, &list[j - gap]); j -= gap) list[j] = list[j - gap];
            list[j] = x;
        }
    }
}

typedef struct cut {
    int rows;       /* drafted */
    double seconds; /* of the pass and of what was spent before it */
    double value;   /* tokens a second */
    double gain;    /* over no rows but those that must stay */
} cut;

/* The best number of rows from the front of a sorted list, for n sequences, after `spent` seconds of drafting. */
static cut best_cut(const hn_controller *c, const item *list, int n_list, int n, double spent) {
    double value[HN_COST_ROWS + 1], tokens = n, best = 0;
    int first = 0, last = 0;
    while (first < n_list && list[first].key > 1) tokens += list[first++].p;
    const int most = n_list - first < HN_COST_ROWS ? n_list - first : HN_COST_ROWS;
    for (int m = 0; m <= most; m++) {
        if (m > 0) tokens += list[first + m - 1].p;
        value[m] = tokens / (on_curve(c->hoped, n + first + m) + spent);
        best = larger(best, value[m]);
    }
    if (best >= value[0] * WORTH)
        while (value[last] < best * FLAT) last++;
    return (cut){first + last, on_curve(c->seconds, n + first + last) + spent, value[last], value[last] / value[0] - 1};
}

static cut trees_cut(hn_controller *c, const hn_plan_seq *s, int n, int only, bool by_history, double spent) {
    const int m = list_trees(c, s, n, only, by_history);
    list_sort(c->list, m);
    return best_cut(c, c->list, m, n, spent);
}

/* Is this a round without drafts, to see what it costs? */
static bool reference_due(const hn_controller *c) {
    return c->since_plain >= LEAST_BETWEEN + c->gain / REFERENCE;
}

/* ---- stepping drafters ---- */

static int deepest_limit(const hn_plan_seq *s, int n) {
    int deepest = 0;
    for (int i = 0; i < n; i++)
        if (s[i].depth_limit > deepest) deepest = s[i].depth_limit;
    return deepest < MOST_AHEAD ? deepest : MOST_AHEAD;
}

static void chains_read(hn_controller *c, const hn_plan_seq *s, int n, int drafter) {
    for (int i = 0; i < n; i++)
        for (int d = 1; d <= deepest_limit(s, n); d++)
            c->chain[i][d] = d > s[i].depth_limit ? 0 : hn_acceptance_at(&c->all, &c->text[s[i].seq].own, drafter, d);
}

/* Levels that the drafter would add behind something of probability p at depth `from`. Returns the list's new length. */
static int list_chain(hn_controller *c, int i, double p, int from, int levels, int n) {
    for (int d = from + 1; d <= from + levels && (p *= c->chain[i][d]) > 0; d++)
        c->list[n++] = (item){p, p, (int16_t)i, NONE, (int16_t)d};
    return n;
}

static double chain_gain(const hn_controller *c, int i, int levels) {
    double p = 1, sum = 0;
    for (int d = 1; d <= levels; d++) sum += p *= c->chain[i][d];
    return sum;
}

static double tree_gain(const hn_controller *c, int i, const hn_tree *t) {
    double sum = 0;
    for (int r = 1; r < t->n_rows; r++) sum += c->reach[i][r];
    return sum;
}

/* A stepping drafter gives each sequence a chain of so many levels; one whose tree promises more keeps to that. */
static cut chains_cut(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int levels) {
    int m = 0;
    for (int i = 0; i < n; i++)
        m = chain_gain(c, i, levels) > tree_gain(c, i, s[i].tree) ? list_chain(c, i, 1, 0, levels, m)
                                                                  : list_tree(c, i, s[i].tree, false, m);
    list_sort(c->list, m);
    return best_cut(c, c->list, m, n, levels * n * hn_cost_of_step(&c->cost, drafter));
}

static cut best_chains(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int *levels) {
    cut best = {0};
    chains_read(c, s, n, drafter);
    for (int k = 1; k <= deepest_limit(s, n); k++) {
        const cut one = chains_cut(c, s, n, drafter, k);
        if (one.value <= best.value) continue;
        best = one;
        *levels = k;
    }
    return best;
}

static int stepper_run(hn_controller *c, int drafter, bool trying) {
    c->stepper = drafter;
    c->trying = trying;
    c->tried[drafter] = c->round;
    return drafter;
}

/* None is worth it: the one that was not tried for longest, if the allowance pays for a level. What it drafts need not be
 * verified to teach. What it really took is charged in prune: it may have to catch up. */
static int probe(hn_controller *c, int n) {
    int oldest = NONE;
    for (int d = 0; d < c->n_drafters; d++)
        if (!isnan(hn_cost_of_step(&c->cost, d)) && (oldest < 0 || c->tried[d] < c->tried[oldest])) oldest = d;
    if (oldest < 0 || c->round < c->tried[oldest] + LEAST_PAUSE) return NONE;
    if (n * hn_cost_of_step(&c->cost, oldest) > c->allowance) return NONE;
    return stepper_run(c, oldest, true);
}

/* One whose level was never timed, to time it. */
static int unmeasured(hn_controller *c) {
    for (int d = 0; d < c->n_drafters; d++)
        if (c->steps[d] && isnan(hn_cost_of_step(&c->cost, d)) && c->measured[d]++ < MOST_MEASURED)
            return stepper_run(c, d, true);
    return NONE;
}

/* The stepping drafter that promises more than the trees as they are. */
static int best_stepper(hn_controller *c, const hn_plan_seq *s, int n) {
    double value = trees_cut(c, s, n, ANY, false, 0).value;
    int best = NONE;
    for (int d = 0; d < c->n_drafters; d++) {
        int levels = 0;
        if (!c->steps[d] || isnan(hn_cost_of_step(&c->cost, d))) continue;
        const cut one = best_chains(c, s, n, d, &levels);
        const double promise = d == c->last_stepper ? one.value : one.value / STEP_WORTH;
        c->stepping[d] = (hunch_choice){d, one.rows, levels, one.value * one.seconds, one.seconds};
        if (promise <= value) continue;
        value = promise;
        best = d;
    }
    return best;
}

int hn_controller_choose(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    bool any = false;
    settle(c, s, n);
    c->last_stepper = c->trying ? NONE : c->stepper;
    c->stepper = NONE;
    c->trying = false;
    c->levels = 0;
    c->round++;
    memset(c->stepping, 0, sizeof c->stepping);
    for (int d = 0; d < c->n_drafters; d++) any |= c->steps[d];
    if (!any || reference_due(c) || !curve_take(c, s, n) || deepest_limit(s, n) == 0) return NONE;
    if (unmeasured(c) >= 0) return c->stepper;
    rates_read(c, s, n, by_history);
    const int best = best_stepper(c, s, n);
    return best >= 0 ? stepper_run(c, best, false) : probe(c, n);
}

/* The list if the drafter went on for `more` levels behind what it has drawn. */
static cut further_cut(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int level, int more,
                       bool by_history) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        const hn_tree *t = s[i].tree;
        double tip = 0;
        m = list_tree(c, i, t, by_history, m);
        for (int k = 0; k < t->n_candidates; k++)
            if (t->candidate[k].drafter == drafter && t->depth[t->candidate[k].child] == level)
                tip = larger(tip, c->reach[i][t->candidate[k].child]);
        if (tip > 0) m = list_chain(c, i, tip, level, more, m);
    }
    list_sort(c->list, m);
    return best_cut(c, c->list, m, n, (level + more) * n * hn_cost_of_step(&c->cost, drafter));
}

bool hn_controller_go_on(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int level, bool by_history) {
    if (drafter != c->stepper || level >= deepest_limit(s, n)) return false;
    if (level > 0) {
        if (c->trying || !curve_take(c, s, n)) return false;
        rates_read(c, s, n, by_history);
        chains_read(c, s, n, drafter);
        for (int i = 0; i < n; i++) reach_read(c, i, s[i].tree, ANY);
        const double stop = further_cut(c, s, n, drafter, level, 0, by_history).value;
        bool pays = false;
        for (int more = 1; more <= deepest_limit(s, n) - level && !pays; more++)
            pays = further_cut(c, s, n, drafter, level, more, by_history).value > stop;
        if (!pays) return false;
    }
    c->levels = level + 1;
    return true;
}

/* ---- what was considered ---- */

static void note(considered *r, hunch_choice choice) {
    assert(r->n < MOST_CHOICES);
    r->choice[r->n++] = choice;
}

/* Sequence i's part of the front of the list. */
static hunch_choice part_of(const hn_controller *c, cut k, int i, int drafter) {
    hunch_choice out = {drafter, 0, 0, 1, k.seconds};
    for (int m = 0; m < k.rows; m++) {
        if (c->list[m].seq != i) continue;
        out.rows++;
        out.expected += c->list[m].p;
        if (c->list[m].depth > out.depth) out.depth = c->list[m].depth;
    }
    return out;
}

/* The drafter of all candidates in the trees; NONE: there are no candidates. */
static int sole_drafter(const hn_plan_seq *s, int n) {
    int found = NONE;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s[i].tree->n_candidates; k++) {
            const int d = s[i].tree->candidate[k].drafter;
            if (found != NONE && found != d) return SEVERAL;
            found = d;
        }
    return found;
}

/* Plain, and each drafter alone; in c->list lies nothing of use afterwards. */
static void note_alone(hn_controller *c, const hn_plan_seq *s, int n, double spent, int sole) {
    for (int i = 0; i < n; i++) {
        c->report[i].n = c->report[i].chosen = 0;
        note(&c->report[i], (hunch_choice){NONE, 0, 0, 1, on_curve(c->seconds, n)});
    }
    for (int d = 0; d < c->n_drafters; d++) {
        if (c->steps[d] && d != c->stepper && c->stepping[d].rows > 0)
            for (int i = 0; i < n; i++) { /* its share */
                hunch_choice h = c->stepping[d];
                h.rows = (h.rows + n - 1) / n;
                h.expected /= n;
                note(&c->report[i], h);
            }
        if (c->steps[d] && d != c->stepper) continue;
        if (sole != SEVERAL) continue; /* what is chosen is its best */
        const cut k = trees_cut(c, s, n, d, false, d == c->stepper ? spent : 0);
        for (int i = 0; i < n && k.rows > 0; i++) note(&c->report[i], part_of(c, k, i, d));
    }
}

/* What is about to be done, from the list that it was made from. */
static void note_chosen(hn_controller *c, int n, cut k, int sole) {
    for (int i = 0; i < n; i++) {
        const hunch_choice mine = part_of(c, k, i, sole);
        if (k.rows == 0) continue;
        c->report[i].chosen = c->report[i].n;
        note(&c->report[i], mine);
    }
}

int hn_controller_considered(const hn_controller *c, int i, const hunch_choice **list, int *chosen) {
    if (i < 0 || i >= c->n_report) return 0;
    *list = c->report[i].choice;
    *chosen = c->report[i].chosen;
    return c->report[i].n;
}

/* ---- the cut ---- */

static void tree_cut(hn_controller *c, const hn_plan_seq *s, int i, cut k) {
    hn_tree *t = s[i].tree;
    shadow *w = &c->text[s[i].seq].shadow;
    int n = 1;
    memset(w->kept, 0, sizeof w->kept);
    w->kept[0] = true;
    for (int m = 0; m < k.rows; m++) {
        if (c->list[m].seq != i) continue;
        w->kept[c->list[m].row] = true;
        n++;
    }
    if (n == t->n_rows) return;
    tree_copy(&w->tree, t);
    w->row = 0;
    hn_tree_keep(t, w->kept, NULL);
}

/* Of the drafting passes of this round. */
static double step_seconds(hn_controller *c, int n) {
    if (c->levels == 0) return 0;
    const double step = hn_cost_of_step(&c->cost, c->stepper);
    if (isnan(step)) return 0; /* it is being timed */
    if (c->trying) c->allowance -= n * c->cost.step[c->stepper].last;
    return c->levels * n * step;
}

void hn_controller_prune(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    assert(n <= c->max_seqs);
    settle(c, s, n);
    c->n_report = 0;
    if (!curve_take(c, s, n)) return; /* nothing is known of the machine: any pass will teach */
    const double spent = step_seconds(c, n);
    const int sole = sole_drafter(s, n);
    rates_read(c, s, n, by_history);
    note_alone(c, s, n, spent, sole);
    cut best = trees_cut(c, s, n, ANY, by_history, spent);
    c->gain = best.gain;
    if (reference_due(c) && c->levels == 0) best = best_cut(c, c->list, 0, n, spent);
    c->since_plain = best.rows > 0 ? c->since_plain + 1 : 0;
    note_chosen(c, n, best, sole);
    c->n_report = n;
    c->allowance = fmin(c->allowance + ALLOWANCE * best.seconds, MOST_SAVED * best.seconds);
    for (int i = 0; i < n; i++) tree_cut(c, s, i, best);
}
