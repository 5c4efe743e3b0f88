/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.h - the parts of hunch_plan: forecast_api.c (the order of things), forecast_curve.c (times of passes, measured or from figures),
 * forecast_figures.c (what a model that is not here reads and computes), forecast_methods.c (acceptance and times of drafters, measured by
 * answering requests, or published), forecast_speed.c (tokens a second), forecast_advice.c (what to use, and why), forecast_report.c
 * (the JSON). docs/control.md has the arithmetic. */
#ifndef HN_FORECAST_H
#define HN_FORECAST_H
#include "engine/engine.h"
#include "plan/figures.h"

enum { HN_FORECAST_OPERATIONS = 10 }; /* of a layer: norms, products, rotation, attention and sums */
enum { HN_FORECAST_WIDTHS = 12, HN_FORECAST_DEPTHS = 10, HN_FORECAST_TURNS = 24, HN_FORECAST_BATCHES = 16 };
/* Rows of the passes that are timed. */
static const int HN_FORECAST_WIDTH[HN_FORECAST_WIDTHS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, HN_TREE_ROWS};
/* Depths at which a tree may be cut; the last is no cut. */
static const int HN_FORECAST_DEPTH[HN_FORECAST_DEPTHS] = {1, 2, 3, 4, 6, 8, 12, 16, 32, HUNCH_MAX_DEPTH};
enum { HN_FORECAST_UNCUT = HN_FORECAST_DEPTHS - 1 };

typedef struct hn_forecast_curve {
    int rows[HN_FORECAST_WIDTHS], n, context;
    double turn[HN_FORECAST_WIDTHS][HN_FORECAST_TURNS]; /* seconds */
    int turns;
    double seconds[HN_FORECAST_WIDTHS], limit[HN_FORECAST_WIDTHS]; /* of a pass */
    double text_s;                                                 /* of reading the keys and values of one text */
} hn_forecast_curve;

/* Sums over the rounds of a method, in seconds but for levels. */
typedef struct hn_forecast_sums {
    double levels, draft_pass_s, draft_s, pass_s;
    double wall_s;  /* of the rounds that decoded */
    double spent_s; /* of all */
    bool decoded;  /* a round since this was cleared did */
} hn_forecast_sums;

/* What one method does in a round of one text, as far as it was seen. Position i of an array is depth i + 1. */
typedef struct hn_forecast_method {
    const char *name;
    bool measured;    /* else acceptance is a published one: */
    const char *from; /* where that is from */
    bool head;        /* it has a draft head */
    bool absent;      /* it is not here: what it would give is a hint, no recommendation */
    bool controlled;  /* the controller chooses how much is drafted in each round */
    double rounds, tokens;
    double drafted[HUNCH_MAX_DEPTH], accepted[HUNCH_MAX_DEPTH]; /* a round */
    double rows[HN_FORECAST_DEPTHS][HN_TREE_ROWS + 1]; /* part of the rounds with so many rows if trees are cut there */
    int deepest;
    double level_s, round_s; /* drafting: passes of each level; what a round takes beside them */
    double other_s;          /* of a round: what is neither its pass nor drafting; a method that was not measured: plain decoding's */
    double ran_s;            /* a round took while it was counted; 0: not measured */
    hn_forecast_sums sums;
} hn_forecast_method;

typedef struct hn_forecast {
    hunch_model *model; /* NULL: figures */
    const hunch_plan_options *o;
    hn_figures_machine machine; /* measured, or given */
    hunch_machine here;         /* measured */
    double few_gb_s;            /* read by half of the threads; 0: not measured */
    double bits;                /* of a weight */
    double bytes, macs;         /* of a pass of one row without context, in those of figures.h */
    double params;
    double row_bytes, window_bytes, state_bytes, input_bytes; /* of a text, as hunch_model_row_bytes and hunch_model_info have them */
    int experts, experts_used;
    hn_forecast_curve curve;
    hn_forecast_method *method; /* [n] the first is plain decoding */
    hunch_engine **engine;      /* [n] theirs; NULL: figures */
    int n;
    int batch[HN_FORECAST_BATCHES], n_batch;
    hn_figures_exchange exchange; /* of ranks; n 0: unknown */
    int machines;                 /* for which times of passes are asked; 0 or 1: this one alone */
    double operations_s;          /* of a pass: what more machines do not divide */
} hn_forecast;

/* ---- forecast_curve.c ---- */

/* One more turn of all widths, in an engine without drafters. */
hunch_status hn_forecast_turn(hn_forecast *f, hunch_engine *plain, hunch_error *err);
/* Medians of the turns at the speed of the passes in rounds, and limits; after hn_forecast_means. */
void hn_forecast_settle(hn_forecast *f, const hunch_engine *plain);
/* Seconds of a pass with so many rows of so many texts, on one machine; on as many as f->machines says. */
double hn_forecast_pass_alone(const hn_forecast *f, double rows, int texts);
double hn_forecast_pass(const hn_forecast *f, double rows, int texts);
/* What ranks exchange in its passes. number: hn_split_exchanged's. */
void hn_forecast_exchanges(hn_forecast *f, const hn_arch *a, double number);

/* ---- forecast_figures.c ---- */

/* Fills bits, bytes, macs and the curve from the figures. */
hunch_status hn_forecast_from_figures(hn_forecast *f, hunch_error *err);

/* ---- forecast_methods.c ---- */

/* Answers one more request with the engine, as far as o->seconds allow the method; *enough: they are over. */
hunch_status hn_forecast_answer(const hn_forecast *f, hn_forecast_method *m, hunch_engine *e, int request, bool *enough,
                                hunch_error *err);
/* From sums to means of a round, after the last request. */
void hn_forecast_means(hn_forecast_method *m);
/* Acceptance that was published for this kind of drafter. */
void hn_forecast_assume(const hn_forecast *f, hn_forecast_method *m, const char *spec);

/* ---- forecast_speed.c ---- */

/* Tokens a second of all texts together; cut: index of HN_FORECAST_DEPTH. */
double hn_forecast_speed(const hn_forecast *f, const hn_forecast_method *m, int cut, int texts);
double hn_forecast_plain(const hn_forecast *f, int texts);
/* As the method runs: measured ones without a cut, others at their best; *cut (may be NULL): which. A controller drafts nothing where that
 * is faster. */
double hn_forecast_best(const hn_forecast *f, const hn_forecast_method *m, int texts, int *cut);
/* Of one draft, in passes of one row, at a cut. */
double hn_forecast_cost(const hn_forecast *f, const hn_forecast_method *m, int cut);
/* How often a draft is right that was verified after right ones. */
double hn_forecast_rate(const hn_forecast_method *m, int cut);
/* How many of all drafts are accepted, which is less. */
double hn_forecast_accepted(const hn_forecast_method *m, int cut);
/* The c that a gain over plain decoding implies: drafting, and what a pass of its rows takes beyond one row. */
double hn_forecast_whole_cost(const hn_forecast *f, const hn_forecast_method *m, int cut);
/* Drafts of a round that has any; passes of one row that a round's pass takes. */
double hn_forecast_levels(const hn_forecast_method *m, int cut);
double hn_forecast_verify(const hn_forecast *f, const hn_forecast_method *m, int cut);
int hn_forecast_depth(const hn_forecast_method *m, int cut); /* at most what it drafts */

/* ---- forecast_advice.c ---- */

typedef struct hn_forecast_advice {
    const hn_forecast_method *method; /* plain decoding is one */
    int cut;
    double speed;
    char flags[400], why[700], help[700];
} hn_forecast_advice;
void hn_forecast_advise(const hn_forecast *f, int texts, hn_forecast_advice *out);

/* ---- forecast_report.c ---- */

json_t *hn_forecast_report(const hn_forecast *f);
#endif
