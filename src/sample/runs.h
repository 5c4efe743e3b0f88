/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - the shortest run of candidates in order of descending keys (ties: in array order) that adds up to a target: the k
 * largest, or the likeliest with a share of the mass. Without sorting: the range of keys is bisected, and the candidates above
 * the middle are counted, until only a few are left to sort. Internal to the sampler. */
#ifndef HN_RUNS_H
#define HN_RUNS_H
#include "ops/vocab_ops.h"

/* Candidates are in parallel arrays and keep their order. */
typedef struct hn_run {
    int32_t *id;
    float *value;
    float *key;     /* order: value itself, or an array that is modified. No NaN. */
    int n;
    bool count;     /* the sum is their number, else that of the masses of value */
    double target;
    float low, high; /* bounds of all keys */
} hn_run;

/* Moves the run to the front, returns its length; all candidates, if they do not add up to the target. */
int hn_run_cut(const hn_vocab_ops *vocab_ops, const hn_run *r);
/* A threshold that at least `least` of n keys reach, and not many more; n >= least. high: upper bound of the keys. */
float hn_run_floor(const hn_vocab_ops *vocab_ops, const float *key, int n, int least, float high);
#endif
