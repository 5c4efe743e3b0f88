/* SPDX-License-Identifier: Apache-2.0 */
/* cost.h - the cost of a pass: seconds by rows and by what they read, measured in the passes themselves (contract C5: no constants of a
 * machine).
 *
 * seconds = speed · (shape(rows) + parts that are proportional: keys and values that are read, rows beyond the curve, experts). The
 * speed of the moment (a neighbour's load, another placement of the cores) moves fast and is common to all; the shape, seconds relative
 * to one row, moves slowly, and so do the prices of the parts. So a pass of eight rows on a machine that has just become slower lowers the
 * speed, and does not make eight rows expensive.
 */
#ifndef HN_COST_H
#define HN_COST_H
#include <stdbool.h>

#include "base/status.h"

enum { HN_COST_ROWS = 64, HN_COST_DRAFTERS = 16, HN_COST_MOST_SECONDS = 1000000 };
enum { HN_COST_WIDTHS = 9, HN_COST_FIRST = 3, HN_COST_FRESH = 2, HN_COST_ALIKE = 1, HN_COST_EXPERTS = 4096 };

typedef struct hn_cost_call {
    double ratio, count; /* of a call; calls that were timed */
    double most;         /* largest ratio with which the next one is counted */
} hn_cost_call;

/* Of a drafter, in times of the target's pass of one row. By how many sequences it drafts for, doubling: a call may cost the same for
 * all of them. */
typedef struct hn_cost_drafter {
    hn_cost_call call[HN_COST_WIDTHS];    /* of a round, or of a round's first level, including the rows that the round before added */
    hn_cost_call further[HN_COST_WIDTHS]; /* of a later level */
    double row;           /* of one row of text that it has to read before it can draft; 0: not known */
} hn_cost_drafter;

/* Of a mixture of experts; count 0: the model has none. */
typedef struct hn_cost_experts {
    int count, used;    /* of a layer; of a row */
    double each, variance; /* time of one more expert that is used in every layer, in passes of one row; variance of the logarithm */
    double fresh, at, alike; /* of hn_cost_fresh: 0..HN_COST_FRESH, 0..log(HN_COST_ROWS / 2), 0..HN_COST_ALIKE */
    double seen;                     /* number of passes in fresh and `at` */
    int last_rows;                   /* of the pass before; 0: there was none */
    double last;                     /* and what each of its rows added */
    double spread_rows, spread_both; /* weighted sums of squares and products, of which alike is the slope */
} hn_cost_experts;

/* What is paid for besides the rows. */
typedef enum hn_cost_kind {
    HN_COST_READ,  /* keys and values that each text's first row reads */
    HN_COST_AGAIN, /* the same for each further row of a text: they are in the caches, but are computed with again */
    HN_COST_WIDE,  /* rows beyond HN_COST_ROWS, relative to the slope at the curve's end */
    HN_COST_KINDS
} hn_cost_kind;

typedef struct hn_cost_part {
    double each, variance; /* for an amount of 1: in passes of one row; of its logarithm */
} hn_cost_part;

typedef struct hn_cost {
    double speed; /* seconds of one row without context now; 0: nothing is known */
    double variance; /* of its logarithm */
    double spread;   /* of passes about what was expected, of the newest ones: mean of absolute values, by the logarithm */
    struct {
        double ratio;  /* to one row, without context; with experts: of the time without them */
        double variance; /* of its logarithm, growing while others are seen; 0: never seen */
        double covariance; /* with the speed, large while few passes separate the two */
    } shape[HN_COST_ROWS + 1]; /* by rows; of one row always 1 */
    hn_cost_part part[HN_COST_KINDS];
    double output; /* 0..1: part of a row that only rows with logits take */
    hn_cost_drafter drafter[HN_COST_DRAFTERS];
    hn_cost_experts experts;
} hn_cost;

/* What a pass consists of. The unit of `reads` is what a pass of one row reads without context: a text whose keys and values have half as
 * many bytes as all weights has 0.5. */
typedef struct hn_cost_work {
    int rows;     /* with logits: of trees, of texts that decode */
    int prompt;   /* without: of prompts */
    double reads; /* by texts, once each, summed */
    double again; /* by further rows of these texts, summed */
    double distinct; /* experts of a layer that were used, on average over layers; 0: not known, or the model has none */
} hn_cost_work;

/* A pass that is planned. */
typedef struct hn_cost_round {
    int texts;    /* each of the first so many rows is another one's */
    double reads; /* of a text, on average */
    hn_cost_work beside; /* what is in the pass besides: rows of prompts */
    int most;     /* rows up to which the curve is wanted; less than HN_COST_ROWS: up to those */
} hn_cost_round;

void hn_cost_init(hn_cost *c);
/* The share of the output's matrix in the bytes that a pass of one row reads, 0..1: rows without logits do not take it. */
void hn_cost_set_output(hn_cost *c, double part);
/* The model's layers have `count` experts, of which a row uses `used` (1..count); part: their share of all bytes that a pass of one row
 * reads, 0..1, which is used as their share of its time until passes have been measured. */
void hn_cost_set_experts(hn_cost *c, int count, int used, double part);
/* How much each of so many rows differs on average in its experts from those before it, fresh * exp(alike * (at - log(rows / 2))): rows of
 * one text choose alike, and the more there are, the less a further one adds. 0..HN_COST_FRESH, in a row's experts. */
double hn_cost_fresh(const hn_cost_experts *x, double rows);
/* Rows choose alike to this degree (0..HN_COST_ALIKE), learned earlier; x->fresh is of two rows, and counts as a mean of this many
 * passes. */
void hn_cost_set_alike(hn_cost_experts *x, double alike, double passes);
/* How many experts of a layer this many rows are expected to use; 0: the model has none. */
double hn_cost_distinct_experts(const hn_cost *c, double rows);
/* Records a pass. One without rows, or with an impossible time (0, 1e-300, 1e300, no number), is ignored. */
void hn_cost_pass(hn_cost *c, const hn_cost_work *w, double seconds);
/* Records a drafter's call for this many sequences (a level, or its whole round: hn_draft_cost), before which it had to read
 * `behind` rows of text that it had not seen yet. With such rows the call gives the cost of a row to read, not of a call. Ignored
 * before the first pass. Of the first HN_COST_FIRST calls the quickest counts (cold memory); later a single slow one has little
 * weight (another process had the core), several among few calls have their full weight. */
void hn_cost_draft(hn_cost *c, int drafter, int seqs, int behind, double seconds);
/* The same for a level after a round's first one. */
void hn_cost_draft_level(hn_cost *c, int drafter, int seqs, double seconds);
/* Predicted seconds of the pass for all row counts, [0..HN_COST_ROWS], or to r->most, 0 for no row. Between row counts that were seen it
 * interpolates (never below the fewer rows' time), beyond them it extrapolates with the slope of their wider half, and a time that was
 * seen only once is compared with its neighbours, so that one spike does not rule out a width for good. optimistic: less `optimism`
 * standard deviations of the uncertainty, so that widths that were not tried yet, or not recently, look good enough to be tried; never
 * below one row's time. False: nothing is known yet. */
bool hn_cost_curve(const hn_cost *c, const hn_cost_round *r, double *seconds, double *optimistic, double optimism);
/* Seconds of what a further row of a text reads, for reads 1. */
double hn_cost_of_again(const hn_cost *c);
/* Seconds of a drafter's next call for this many sequences; NAN: it was never timed. A time for another number of sequences is
 * scaled so that it looks cheap and is tried. */
double hn_cost_of_draft(const hn_cost *c, int drafter, int seqs);
/* Of a level after the first one; if none was timed, of the first. */
double hn_cost_of_draft_level(const hn_cost *c, int drafter, int seqs);
int hn_cost_draft_calls(const hn_cost *c, int drafter); /* how many were timed */
bool hn_cost_knows_level(const hn_cost *c, int drafter, int seqs); /* a level after the first was timed */
/* Seconds of reading this many rows before it can draft; 0: not known. */
double hn_cost_of_reading(const hn_cost *c, int drafter, int behind);

/* Whether it is a price that passes can teach: they stay within limits. */
bool hn_cost_price_can_be(hn_cost_kind kind, double each);

/* The curves of one (CPU, build, threads, model), kept in a file of the user's cache folder between processes; times of
 * drafters are not. key: any text that identifies all of these. load (with experts after hn_cost_set_experts): HUNCH_OK and
 * *found false, *c unchanged, if there is no file, or it has another key or is damaged. save: written beside `path`, then renamed;
 * the folder must exist. */
hunch_status hn_cost_load(hn_cost *c, const char *path, const char *key, bool *found, hunch_error *err);
hunch_status hn_cost_save(const hn_cost *c, const char *path, const char *key, hunch_error *err);
#endif
