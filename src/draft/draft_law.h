/* SPDX-License-Identifier: Apache-2.0 */
/* draft_law.h - drawing drafts from logits, for every drafter whose candidates carry q (hn_propose.drawn): the request's own
 * law over a row of logits, and one token drawn from it or several without replacement.
 *
 * Laws are stored here, one for each (sequence, place), because candidates point to them until the sequence's next round. The drafter
 * defines the places: a level of a chain, a row of a tree; it uses each once a round.
 */
#ifndef HN_DRAFT_LAW_H
#define HN_DRAFT_LAW_H
#include "draft/drafter.h"

typedef struct hn_draft_law {
    hn_proposal_law q; /* n 0: nothing can be drawn */
    double sum;        /* of its weights */
    int32_t *id;       /* what q points into */
    float *weight;
    size_t cap_id, cap_weight;
} hn_draft_law;

typedef struct hn_draft_laws {
    int vocab, places;
    size_t n;
    hn_draft_law *law;    /* [seqs * places] */
    double *left;         /* [cap_left] weights that may still be drawn, of the law that is drawn from */
    size_t cap_left;
} hn_draft_laws;

hunch_status hn_draft_laws_open(hn_draft_laws *l, int vocab, int seqs, int places, hunch_error *err);
void hn_draft_laws_close(hn_draft_laws *l); /* zeroed laws are fine */

/* The law after a history, over logits [vocab] in the target's ids, -inf for tokens that cannot be drafted. It is sparse unless it
 * contains most of the vocabulary. NULL: nothing can be drawn, or no memory; then nothing is drafted there. */
const hn_draft_law *hn_draft_law_make(hn_draft_laws *l, int seq, int place, hn_sampler *s, const float *logits,
                                      const hn_history *h);

/* Draws up to n tokens from the law, which is drawn from only once, and adds them after the row: siblings drawn without
 * replacement if n is more than 1 (verification.md 6.2). Fewer if the tree or p->budget has less room, which is checked
 * before anything is drawn, or if the law has no more tokens. Returns how many; child[i]: their rows, in order of
 * drawing. Noise is keyed by contract C3.
 * Estimates are the largest probabilities of the law in descending order, not those of the drawn tokens: pruning by
 * estimates may depend on q, never on the draw. */
int hn_draft_law_draw(hn_draft_laws *l, const hn_draft_law *law, const hn_propose *p, int drafter, int row, int n,
                      int16_t child[HN_TREE_ROWS]);
#endif
