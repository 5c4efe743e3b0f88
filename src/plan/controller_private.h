/* SPDX-License-Identifier: Apache-2.0 */
/* controller_private.h - what the files of the controller share: controller.c owns the state and updates it, controller_cuts.c finds
 * the best rows of trees, controller_select.c chooses the drafter to call, controller_levels.c the number of levels of a drafter that is
 * decided on level by level, controller_why.c reports what was considered. */
#ifndef HN_CONTROLLER_PRIVATE_H
#define HN_CONTROLLER_PRIVATE_H
#include "plan/agreement.h"
#include "plan/controller.h"
#include "plan/tree_growth.h"
#include "plan/tree_rows.h"
#include "plan/drafter_gain.h"

/* Levels of look-ahead; expected nodes of each; items of a sequence. */
enum { HN_PLAN_AHEAD = HN_TREE_GROWTH_DEPTHS, HN_PLAN_FRONTIER = 16, HN_PLAN_LIST = HN_TREE_ROWS + HN_PLAN_AHEAD * HN_PLAN_FRONTIER };
enum { HN_PLAN_MOST_ROWS = 5 * HN_COST_ROWS }; /* of all trees of a round */
enum { HN_PLAN_CHOICES = HN_ACCEPT_DRAFTERS + 2, HN_PLAN_SEVERAL = -2, HN_PLAN_NONE = -1, HN_PLAN_ANY = -1 };

/* The tree of the last round before the cut. */
typedef struct hn_plan_last_tree {
    hn_tree tree;
    bool kept[HN_TREE_ROWS];
    int row;   /* the last one that was reached; its next token is not known yet. -1: nothing to learn */
    bool root_used; /* the root of this round has been learned from */
} hn_plan_last_tree;

typedef struct hn_plan_text {
    hn_acceptance own;
    hn_drafter_gain gains;
    hn_tree_growth growth;
    hn_plan_last_tree last_tree;
    bool called[HN_ACCEPT_DRAFTERS]; /* called in this round, for all its levels; with what result: */
    hn_drafter_gain_round result[HN_ACCEPT_DRAFTERS];
} hn_plan_text;

/* The rates of the candidates that a level of a drafter adds after a row, descending. */
typedef struct hn_plan_rates_of {
    int n;
    double rate[HN_TREE_GROWTH_RANKS];
} hn_plan_rates_of;

/* The likeliest nodes of a level that is not drafted yet: their probabilities, descending, and the sum of these. */
typedef struct hn_plan_frontier {
    int n;
    double p[HN_PLAN_FRONTIER], mass;
} hn_plan_frontier;

typedef struct hn_plan_cut {
    int rows;       /* drafted */
    double seconds; /* of the pass and of what was spent before it */
    double value;   /* tokens a second */
    double gain;    /* over only the rows that must stay */
} hn_plan_cut;

typedef struct hn_plan_considered {
    hunch_choice choice[HN_PLAN_CHOICES];
    bool forecast[HN_PLAN_CHOICES];   /* expected before the drafter was called, if it was */
    double drafting[HN_PLAN_CHOICES]; /* its seconds that are drafters' */
    int n, chosen;
    hunch_reason reason;
} hn_plan_considered;

/* Why a drafter was called in a round. */
typedef enum hn_plan_why {
    HN_NOT_CALLED,
    HN_CALLED_CHEAP, /* its time is negligible */
    HN_CALLED_WORTH, /* its expected gain pays for its time */
    HN_CALLED_TRIED  /* to measure its time and gain, paid from its account */
} hn_plan_why;

/* Of a drafter whose calls take less time with fewer levels (controller_level_cost.c). */
typedef struct hn_plan_level_cost {
    bool on, known, whole;  /* it is one; `each` is known; this call drafts all levels */
    int calls, asked;       /* levels of this call, of all texts */
    double usual;           /* levels of the last call that did not draft all */
    double n, x, y, xx, xy; /* decaying sums over calls: levels x, times y in passes of one row */
    double each;            /* of a level */
} hn_plan_level_cost;

typedef struct hn_plan_drafter {
    hn_draft_cost kind;
    hn_plan_why why, before; /* in this round, and in the last */
    double trial_budget;          /* seconds that its trials may lose; below 0: they lost more */
    uint64_t tried;          /* the round in which it was last tried */
    int rounds_untimed;      /* rounds in which it was tried before a call of it could be timed */
    int behind;              /* rows that it has to read in this round before it can draft */
    int most_levels;         /* that it can draft */
    bool stays;              /* its candidates do */
    int texts;               /* of this round for which it may be called */
    int levels;              /* drafted in this round, of one that is decided on level by level, and their seconds */
    double spent;
    hn_plan_level_cost level_cost;
    hunch_choice best;       /* its expected gain, for the whole round; rows 0: not considered */
} hn_plan_drafter;

/* Of one sequence, while drafters are called: the gain and rows of the drafts so far. */
typedef struct hn_plan_base {
    double gain, rows;
    bool takes; /* the drafter under consideration would add to it */
} hn_plan_base;

/* Of a drafted row of one sequence. */
typedef struct hn_plan_price {
    double more;   /* seconds, than of a row of mean context */
    double weight; /* of its probability in the order of rows: the price of the cheapest sequence's row to that of its own */
} hn_plan_price;

struct hn_controller {
    hn_cost cost;
    hn_acceptance all;
    hn_agreement agreement;
    hn_drafter_gain gains;
    hn_tree_growth growth;
    hn_plan_drafter drafter[HN_ACCEPT_DRAFTERS];
    int n_drafters, max_seqs;
    int most_rows;       /* of all trees of this round, roots included */
    hn_cost_work beside; /* in this round's pass */
    double beside_part, added_part, own; /* of the newest rounds, those with prompts; of a round's time alone, what it adds to a pass with
                                            prompts; and of that time, what counts in this round */
    uint64_t own_round;
    uint64_t round;
    bool trials_open;
    int by_level, levels; /* of this round: the drafter that is being decided on level by level, and its levels so far */
    bool stepped;        /* there was one in this round */
    double spent, cheap; /* seconds of this round's drafters that cost, less those of the one by level; of the cheap ones */
    double trials;       /* of spent: of those that were tried */
    /* of a pass in this round, by rows: up to those of this round, at least HN_COST_ROWS; without what prompts add to its plain pass */
    double seconds[HN_PLAN_MOST_ROWS + 1], optimistic[HN_PLAN_MOST_ROWS + 1];
    int n_seconds;
    hn_plan_text *text;                                        /* [max_seqs] */
    float (*rate)[HN_TREE_CANDIDATES];                         /* [max_seqs]: calibrated, of the trees of this round */
    double (*reach)[HN_TREE_ROWS];      /* [max_seqs]: probability that a row is on the accepted path */
    hn_plan_rates_of (*ahead)[HN_PLAN_AHEAD + 1]; /* [max_seqs]: by history, one drafter's rates at each depth */
    int ahead_of, ahead_depths;         /* whose rates these are, up to this depth, in this round */
    uint64_t ahead_round;
    hn_plan_frontier (*frontier)[HN_PLAN_AHEAD + 1];    /* [max_seqs]: the levels that it would draft, by depth */
    hn_plan_item *list;                 /* [max_seqs * HN_PLAN_LIST] */
    hn_plan_base *base;                 /* [max_seqs] */
    hn_plan_price *price;               /* [max_seqs] */
    hn_plan_considered *report;         /* [max_seqs]: of the last round */
    int n_report;
    int since_plain; /* rounds */
    double gain;     /* of the last round's choice, to plain decoding: 0 is none */
    double value;    /* tokens a second, of the last round without the drafters that were tried; 0: none was considered */
    double last_value; /* the same, of the last round that had one */
    double each_row; /* seconds that each drafted row added to the last round's pass */
};

/* Whether a drafter may be called for the sequence. */
static inline bool hn_plan_has(const hn_plan_seq *s, int drafter) {
    return !(s->without >> drafter & 1);
}

static inline double hn_plan_larger(double a, double b) {
    return a > b ? a : b; /* fmax looks for NaN, in a call */
}

/* ---- controller_cuts.c ---- */

/* Seconds of `rows` rows, not necessarily an integer, on one of the two curves; beyond the round's rows with the slope of its last ones. */
double hn_plan_on_curve(const hn_controller *c, const double *seconds, double rows);
/* Takes the curve at the sequences' mean context, and each one's price of a row; false: nothing is known. */
bool hn_plan_curve(hn_controller *c, const hn_plan_seq *s, int n);
/* The candidates' rates. by_history: drawn ones have the rate of their depth, because their values must not influence it. */
void hn_plan_rates(hn_controller *c, const hn_plan_seq *s, int n, bool by_history);
/* Whether more than one drafter was called in this round, so that one which proposes a row alone is not confirmed. */
bool hn_plan_several_called(const hn_controller *c);
/* The rows' probabilities; of two candidates that share a row the likelier counts, by what is measured of such pairs. only: of one drafter,
 * or HN_PLAN_ANY. */
void hn_plan_reach(hn_controller *c, int i, const hn_tree *t, int only);
/* Appends the rows of tree i, by their reach, after the list's first n; returns the new n. */
int hn_plan_list_tree(hn_controller *c, int i, const hn_tree *t, bool by_history, int n);
/* The best number of rows from the front of a sorted list, for n sequences, after `spent` seconds of drafting. */
hn_plan_cut hn_plan_best_cut(const hn_controller *c, const hn_plan_item *list, int n_list, int n, double spent);
/* The same of the trees; the list is left sorted. */
hn_plan_cut hn_plan_trees_cut(hn_controller *c, const hn_plan_seq *s, int n, int only, bool by_history, double spent);

/* ---- controller_select.c ---- */

/* Whether this is a round without drafts, to measure its cost. */
bool hn_plan_plain_due(const hn_controller *c);
/* The deepest level that is considered, over all sequences. */
int hn_plan_deepest(const hn_plan_seq *s, int n);
/* Seconds of this many levels of a drafter that is decided on level by level, with its part of the rows to read. */
double hn_plan_levels_price(const hn_controller *c, int drafter, int levels);
/* Seconds of this round's drafting that count in the choice: not of cheap drafters; reading text is spread over rounds. */
double hn_plan_spent(const hn_controller *c);
/* Ends the drafter that was being decided on level by level. */
void hn_plan_by_level_ends(hn_controller *c);
/* Adds to the accounts their part of a round of this many seconds. */
void hn_plan_trials_allow(hn_controller *c, int n, double seconds);
/* A drafter that was tried in the last round had this many rows in a text's tree that no other had, and of these so many were accepted:
 * adds to its account what they saved. */
void hn_plan_trial_saved(hn_controller *c, int drafter, int rows, int accepted);

/* ---- controller_levels.c ---- */

/* What is known of the candidates that a level (from 1) of a drafter adds for a text: at least one. */
void hn_plan_rates_ahead(const hn_controller *c, const hn_plan_text *x, int drafter, int depth, hn_plan_rates_of *out);
/* Value of calling a drafter that is decided on level by level: that of the best number of levels, as expected before the first. To be
 * called after base_read: the trees' rows are in `reach`. Records its expected gain. */
double hn_plan_levels_value(hn_controller *c, const hn_plan_seq *s, int n, int drafter, bool by_history);
/* Learns from such a drafter's tree, from rates and the reach of that drafter alone. */
void hn_plan_levels_learn(hn_controller *c, const hn_plan_seq *s, int n, int drafter);

/* ---- controller_why.c ---- */

/* The drafter of all candidates in the trees; HN_PLAN_NONE: there are none. */
int hn_plan_sole(const hn_plan_seq *s, int n);
void hn_plan_note_plain(hn_controller *c, int n);
/* A drafter that was called, from the list's front, with its own seconds of drafting, or (rows 0) its expected gain. */
void hn_plan_note_alone(hn_controller *c, int n, int drafter, hn_plan_cut k, double drafting);
/* The drafters that were not called. */
void hn_plan_note_uncalled(hn_controller *c, int n);
/* The choice that was made, from the list that it was made from. measured: of no drafts, to measure the time of such a round. */
void hn_plan_note_chosen(hn_controller *c, int n, hn_plan_cut k, int sole, bool by_history, bool measured);
/* ---- controller_level_cost.c ---- */

void hn_plan_level_cost_took(hn_controller *c, int drafter, double seconds);
/* Seconds of a call of as many levels as are usual; measured: of all calls. */
double hn_plan_level_cost_call(const hn_controller *c, int drafter, double measured);
#endif
