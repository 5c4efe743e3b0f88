/* SPDX-License-Identifier: Apache-2.0 */
/* net_batch.h - the rows that a network learns from at once. Networks read what they need of them. */
#ifndef HN_NET_BATCH_H
#define HN_NET_BATCH_H
#include <stdbool.h>
#include <stdint.h>

#include "train/math/real.h"

typedef struct hn_net_batch {
    int texts;
    const int *start;      /* [texts + 1], as in attention_back.h; start[0] is 0 */
    const int *token;      /* [rows]: the token after the place of the states */
    hn_mat state;          /* [rows]: the target's states at the row's place that the network reads, side by side */
    hn_mat dist;           /* [..][vocabulary]: the target's after the token (hn_target_dist), of tokens that are drafted */
    const hn_real *weight; /* [rows], 0: no loss there */
    const int *dist_row;   /* [rows]: its row of `dist`, if it has a loss; NULL: the same row */
    hn_mat next;           /* [rows][hidden]: the last state after the norm, one place later */
    const int *before;     /* [texts]: the token at the place of the first row's states */
    const int *label;      /* [rows]: number of the drafted token after the row's token, -1: another token, or the end of the text */
    uint64_t seed;         /* of random choices */
    double done;           /* share of the planned steps, 0 to 1; 1 in checks */
    double base_share;     /* of blocks with a prefix: of the loss without it, 0 to 1 */
    bool same_guesses;     /* Falcon's second pass reads the guesses of the call before, for the same batch: for tests of gradients */
} hn_net_batch;
#endif
