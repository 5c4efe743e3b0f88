/* SPDX-License-Identifier: Apache-2.0 */
/* cost.h - what a pass costs: seconds by rows and context, learned from passes as they happen (contract C5: no constant
 * speaks of a machine).
 *
 * seconds(rows, context) = speed · shape(rows, context). The speed of the moment (a neighbour's load, another placement of
 * the cores) moves fast and is common to all; the shape, seconds relative to one row, moves slowly. So a pass of eight
 * rows on a machine that has just become slower says "slower", not "eight rows are expensive".
 */
#ifndef HN_COST_H
#define HN_COST_H
#include <stdbool.h>

#include "base/status.h"

enum { HN_COST_ROWS = 64, HN_COST_CONTEXTS = 8, HN_COST_DRAFTERS = 16, HN_COST_MOST_SECONDS = 1000000 };

typedef struct hn_cost {
    double speed; /* seconds of one row now, at the class of context of the last pass; 0: nothing is known */
    double doubt; /* variance of its logarithm */
    int at;       /* class of context of the last pass */
    struct {
        double ratio;  /* to one row at the same context */
        double doubt;  /* variance of its logarithm, growing while others are seen; 0: never seen */
        double shared; /* covariance with the speed's: they were told apart by few passes */
    } shape[HN_COST_CONTEXTS][HN_COST_ROWS + 1]; /* by class of context (doubling), by rows; of one row always 1 */
    double one_row[HN_COST_CONTEXTS]; /* seconds of one row at this class, slow average; 0: class was never seen */
    struct {
        double ratio, count;  /* to one row of the target; times measured */
        double last;          /* seconds of the last one */
    } step[HN_COST_DRAFTERS]; /* a level of a drafter that steps, for one sequence */
} hn_cost;

void hn_cost_init(hn_cost *c);
/* A pass happened. More rows than HN_COST_ROWS, or a time that cannot be (0, 1e-300, 1e300, no number), teach nothing. */
void hn_cost_pass(hn_cost *c, int rows, int context, double seconds);
/* So did a level of a stepping drafter: seconds a sequence. Teaches nothing before the first pass. */
void hn_cost_step(hn_cost *c, int drafter, double seconds);
/* Predicted seconds for all row counts, [0..HN_COST_ROWS], 0 of no row. Between row counts that were seen it interpolates
 * (never below the fewer rows' time), beyond them it goes on with the slope of their wider half, and what was seen once only
 * is held against its neighbours: a spike does not condemn a width for good. A class of context that was never seen is like
 * the nearest. hoped: with `hope` standard deviations of what is not known well taken off, so that widths that nobody tried,
 * or not for long, look good enough to be tried; never below one row's time. False: nothing is known yet. */
bool hn_cost_curve(const hn_cost *c, int context, double *seconds, double *hoped, double hope);
/* Seconds of a level for one sequence. NAN: measured less than HN_COST_STEP_TRIES times, so not known (the first ones read
 * the prompt, touch cold memory, ...). */
enum { HN_COST_STEP_TRIES = 3 };
double hn_cost_of_step(const hn_cost *c, int drafter);

/* The curves of one (CPU, build, threads, model), kept in a file of the user's cache folder between processes; times of
 * steps are not. key: any text that names all of it. load: HUNCH_OK and *found false, *c untouched, if there is none, it
 * is of another key, or damaged. save: written beside `path`, then renamed; the folder must exist. */
hunch_status hn_cost_load(hn_cost *c, const char *path, const char *key, bool *found, hunch_error *err);
hunch_status hn_cost_save(const hn_cost *c, const char *path, const char *key, hunch_error *err);
#endif
