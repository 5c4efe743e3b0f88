/* SPDX-License-Identifier: Apache-2.0 */
/* round_drafts.h - the record of one text's drafts in one round: what was verified, what became of it, and what it took. Made once, of the
 * tree and the verdict on it; the controller, the watch over heads, the counters and on_round read it, and nobody walks the tree again.
 *
 * A draft is not reached if the row that it continues is not on the accepted path: nothing is known of it then (censoring). Rows that were
 * cut from the tree before the pass are not here. Fixed size: no allocation after start.
 */
#ifndef HN_ROUND_DRAFTS_H
#define HN_ROUND_DRAFTS_H
#include "cache/cache.h"
#include "draft/tree.h"

typedef enum hn_outcome { HN_NOT_REACHED, HN_REJECTED, HN_ACCEPTED } hn_outcome;

/* A candidate. */
typedef struct hn_round_draft {
    int32_t token;
    int16_t row, child; /* of the tree: the one that it continues, and its own */
    int16_t made;       /* the row that was made for it, if it turned out to be the path of `child` (hn_tree_fill); else `child` */
    int16_t depth;      /* from 1 */
    int16_t drafter;
    int16_t rank;       /* among its drafter's candidates of the row, 0: the first */
    bool first;         /* of the candidates that share its child */
    bool alone;         /* no other drafter has one there */
    bool drawn;
    hn_outcome outcome;
    float estimate, p; /* as of hn_candidate */
    hn_certainty certainty;
    double q;           /* its token's probability in the distribution that it was drawn from; NAN: not drawn, or not asked for */
} hn_round_draft;

/* What one drafter had. */
typedef struct hn_round_drafter {
    int drafted, drafted_first; /* candidates; of them at the root */
    int levels;                 /* depth of the deepest */
    uint64_t accepted_at;       /* bit i: it had the accepted token of depth i + 1 */
    double calls_s, share_s;    /* its calls in this round: for all texts, and for each of them */
    double pass_s;              /* of calls_s: passes of its own that were waited for */
} hn_round_drafter;

typedef struct hn_round_drafts {
    int context;        /* committed rows before it */
    int n_rows, depth;  /* that were verified, root included; of the deepest */
    int n_accepted;     /* by the rule */
    int n_emitted;      /* of these: fewer if the text ended, or emits one token a round */
    int n, n_reached;   /* drafts, those that were reached first: in the order of the accepted path, of each row as they were added */
    hn_round_draft draft[HN_TREE_CANDIDATES];
    hn_round_drafter drafter[HN_MAX_MODELS];
    double draft_s, draft_pass_s; /* the text's share of drafting; of that, of passes of drafters */
    double pass_s, verify_s;      /* the target's pass, which other texts may share; the text's share of verification */
} hn_round_drafts;

/* What the calls of drafters in a round took, for all its texts together. */
typedef struct hn_drafting_times {
    int texts;
    double all_s, pass_s; /* of all drafters, and of that passes of their own */
    struct {
        int texts; /* that it may propose for */
        double calls_s, pass_s;
    } drafter[HN_MAX_MODELS];
} hn_drafting_times;

/* path: the accepted rows after the root. n_accepted -1: there is no verdict, and no draft is reached. with_q: probabilities in q are asked
 * for. All but the times, context and n_emitted. */
void hn_round_drafts_make(hn_round_drafts *r, const hn_tree *t, const int16_t *path, int n_accepted, bool with_q);
/* The text's part of these times. */
void hn_round_drafts_times(hn_round_drafts *r, const hn_drafting_times *of_all);
/* Tokens of the path, from the root on, that the drafter had. */
int hn_round_followed(const hn_round_drafter *d);
#endif
