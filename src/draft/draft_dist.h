/* SPDX-License-Identifier: Apache-2.0 */
/* draft_dist.h - drawing drafts from logits, for every drafter whose candidates carry q (hn_propose.drawn): the request's own
 * distribution over a row of logits, and one token drawn from it or several without replacement.
 *
 * Distributions are stored here, one for each (sequence, slot), because candidates point to them until the sequence's next round. The
 * drafter defines the slots: a level of a chain, a row of a tree; it uses each once a round.
 */
#ifndef HN_DRAFT_DIST_H
#define HN_DRAFT_DIST_H
#include "draft/drafter.h"

typedef struct hn_draft_dist {
    hn_proposal_dist q; /* n 0: nothing can be drawn */
    double sum;        /* of its weights */
    int32_t *id;       /* what q points into */
    float *weight;
    size_t cap_id, cap_weight;
} hn_draft_dist;

typedef struct hn_draft_dists {
    int vocab, slots;
    size_t n;
    hn_draft_dist *dist;    /* [seqs * slots] */
    struct {
        double *weight; /* weights that may still be drawn, of the distribution that is drawn from */
        size_t cap;
    } *left; /* [workers] */
    int workers;
} hn_draft_dists;

/* workers: the threads that make and draw at one time, each for another sequence. */
hunch_status hn_draft_dists_open(hn_draft_dists *l, int vocab, int seqs, int slots, int workers, hunch_error *err);
void hn_draft_dists_close(hn_draft_dists *l); /* zeroed distributions are fine */

/* Allocates what making and drawing the distribution need at most, by any worker: they allocate nothing then. False: no memory. */
bool hn_draft_dist_reserve(hn_draft_dists *l, int seq, int slot, const hn_sampler *s);

/* The distribution after a history, over logits [vocab] in the target's ids, -inf for tokens that cannot be drafted. It is sparse unless it
 * contains most of the vocabulary. NULL: nothing can be drawn, or no memory; then nothing is drafted there. */
const hn_draft_dist *hn_draft_dist_make(hn_draft_dists *l, int seq, int slot, hn_sampler *s, const float *logits,
                                      const hn_history *h);

/* Draws up to n tokens from the distribution, which is drawn from only once, and adds them after the row: siblings drawn without
 * replacement if n is more than 1 (verification.md 6.2). Fewer if the tree or p->budget has less room, which is checked
 * before anything is drawn, or if the distribution has no more tokens. Returns how many; child[i]: their rows, in order of
 * drawing. Noise is keyed by contract C3. worker: which of the threads this is.
 * Estimates are the largest probabilities of the distribution in descending order, not those of the drawn tokens: pruning by
 * estimates may depend on q, never on the draw. */
int hn_draft_dist_draw(hn_draft_dists *l, const hn_draft_dist *dist, const hn_propose *p, int drafter, int row, int n,
                      int16_t child[HN_TREE_ROWS], int worker);
#endif
