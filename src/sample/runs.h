/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - the shortest run of candidates in order of falling keys (ties: in the order in which they stand) that adds up to
 * something: the k largest, the likeliest that hold a share. Without sorting: the range of keys is halved, and what lies above
 * the middle counted, until only a few are left to sort. The sampler's own. */
#ifndef HN_RUNS_H
#define HN_RUNS_H
#include "sample/lanes.h"

/* Candidates stand in parallel arrays and stay in their order. */
typedef struct hn_run {
    int32_t *id;
    float *value;
    float *key;     /* what they are ordered by: value itself, or an array that is worked on. No NaN. */
    int n;
    bool count;     /* what adds up: their number, else the masses of value */
    double target;
    float low, high; /* all keys lie between these */
} hn_run;

/* Moves the run to the front, returns its length; all candidates, if they do not add up to the target. */
int hn_run_cut(const hn_lanes *lanes, const hn_run *r);
/* A key that at least `least` of n keys reach, and not many more; n >= least. high: no key is above this. */
float hn_run_floor(const hn_lanes *lanes, const float *key, int n, int least, float high);
#endif
