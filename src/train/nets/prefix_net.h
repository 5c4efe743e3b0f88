/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_net.h - Domino's stage after a block (2605.29707) in training: a bias on the logits of its drafts by a state of the tokens from
 * the root to the one before the draft, which are the text's (teacher forcing).
 *
 *     s = GRU(s, embedding of each token), from 0 at the root;   logits += bias_out silu(bias_in (normed | s))
 *
 * A place is a token of a block: its state has read it. Blocks are side by side, place by place. */
#ifndef HN_PREFIX_NET_H
#define HN_PREFIX_NET_H
#include "train/math/room.h"
#include "train/math/workers.h"

typedef struct hn_prefix_shape {
    int state, width; /* numbers of the state, and of the input of bias_out; 0: there is no such stage */
    int plain;        /* the first drafts of a block, which have no bias */
    bool shifted;     /* rows draft the token after their own position, so that the root's row drafts too (shift_label) */
} hn_prefix_shape;

typedef struct hn_prefix_weights {
    hn_mat gru_input, gru_state, bias_in, bias_out; /* [3 state][hidden], [3 state][state], [width][hidden + state], [vocab][width] */
} hn_prefix_weights;

typedef struct hn_prefix_net {
    hn_workers *workers;
    hn_prefix_shape shape;
    int hidden, places, most_blocks, most_drafts; /* places: of a block; most_drafts: of a call */
    int blocks;                                   /* of the batch */
    hn_prefix_weights w, g;
    int *token; /* [places][blocks], set by the owner */
    hn_mat embedded, gates, own;  /* [places * blocks] */
    hn_mat state, dstate;         /* the same, and before them those of the root: zero */
    hn_mat joint, mid, acted, djoint, dmid; /* of some drafts */
} hn_prefix_net;

void hn_prefix_lay_out(hn_prefix_net *n, hn_room *r);
static inline int hn_prefix_place(const hn_prefix_net *n, int block, int place) {
    return place * n->blocks + block;
}
/* The states of all places. back: gradients will be asked for. */
void hn_prefix_states(hn_prefix_net *n, hn_mat table, bool back);
/* Of some drafts, at[i] the place of the token before draft i, -1: it has no bias. */
void hn_prefix_bias(hn_prefix_net *n, const int *at, hn_mat normed, hn_mat logits);
/* Behind it: from the gradient of the logits to the weights' and, added, that of normed; the states' is kept. */
void hn_prefix_bias_back(hn_prefix_net *n, const int *at, hn_mat dlogits, hn_mat dnormed);
/* At the end, through time. */
void hn_prefix_states_back(hn_prefix_net *n);
#endif
