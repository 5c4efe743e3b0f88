/* SPDX-License-Identifier: Apache-2.0 */
/* positions.h - the common part of heads that draft the positions 1 to K from one state of the target, with weights of their own
 * for each (Medusa, Hydra, IBM's speculator): the rows of a batch, and their labels k places after their token.
 *
 * Row i of a batch has the target's state at a place of a text and the token after it; position k of row i drafts the token k +
 * 1 places after that one; its label is the distribution of row i + k. The tokens between are those of the text: teacher forcing. */
#ifndef HN_POSITIONS_H
#define HN_POSITIONS_H
#include "train/math/room.h"
#include "train/nets/net_batch.h"

/* The rows of a position. */
typedef struct hn_one_wait {
    int n;
    int *row;        /* [n] rows of the batch, ascending */
    int *dist_row;    /* [n] their rows of the distributions */
    int *token;      /* [n]: a later row's token, see below */
    hn_real *weight; /* [n]: shares that add up to `share` */
    hn_real *losses; /* [n]: room */
} hn_one_wait;

void hn_one_wait_lay_out(hn_one_wait *a, int most_rows, hn_room *r);
/* Sets the rows of position k. share: the weight of the position's loss in the whole. */
void hn_one_wait_pick(hn_one_wait *a, const hn_net_batch *b, int k, double share);
/* Sets a->token to the tokens j places after the rows' own; j is at most the position. */
void hn_one_wait_tokens(hn_one_wait *a, const hn_net_batch *b, int j);
/* to [n][cols of from] = those rows of from. */
void hn_one_wait_copy(const hn_one_wait *a, hn_mat from, hn_mat to);
#endif
