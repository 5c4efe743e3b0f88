/* SPDX-License-Identifier: Apache-2.0 */
/* head_passes.h - the passes of a draft head: which rows it has, which are pending, and the passes that compute them. What is drafted
 * from their logits is not decided here.
 *
 *   head_store.c        rows of the text: their features are fed, they are pending
 *   head_text_rows.c    rows of the text: they are computed, and the newest one drafts
 *   head_levels.c       rows of drafts, a level a pass
 *   head_blocks.c       both, of a head that drafts blocks at once (DFlash, DSpark)
 *   head_mtp_modules.c   both, of the further ones of several blocks of multi-token prediction that draft in turn
 *   head_borrowed.c     the passes of a head whose layers read the target's keys and values (Gemma 4's assistants)
 *   head_passes.c       what all have in common; which of these files computes the rows of a head
 *
 * A row of the head is a token and the target's feature of the token before it (for a head of blocks: a token's own feature), and is in the
 * slot of its token: so a page depends only on the tokens of its own slots and those before them, and can be shared. Slot 0 has a row
 * without a feature, to which no other row attends.
 *
 *   slots:   0 .......... rows | pending ............. | draft rows ...
 *            committed rows    | their features are in | rows of drafts, of the head's own outputs;
 *            of true features  | the store             | dropped when the round is over
 *
 * feed stores the features of committed rows; they are evaluated with the next round's first level, or when the store is full,
 * or when the text ends or another begins with them. So each committed token is evaluated once, from the target's feature, never from a
 * prediction, and a head that is not called costs almost nothing.
 */
#ifndef HN_HEAD_PASSES_H
#define HN_HEAD_PASSES_H
#include "draft/drafter.h"
#include "model/head/head.h"

enum { HN_MOST_DRAFT_ROWS = 192 }; /* rows of drafts of a sequence in one round */
enum { HN_MOST_MASKS = HN_MAX_ROWS - 2 };

typedef struct hn_head_seq {
    int n_pending;
    int32_t *token, *slot; /* [room of the store] of pending rows: the token, its feature's slot in the store */
    int32_t root, root_slot; /* of the newest row after it was evaluated: it may be evaluated again; 0: not possible */
    int text_n;             /* of a head without rows: tokens of the text whose newest row is pending */
    bool lost;              /* a row is missing: nothing is drafted before the next begin */
    int n_draft_rows;             /* rows of drafts in the cache; with blocks of `span` rows, the text's last ones are among them */
    int16_t draft_parent[HN_MOST_DRAFT_ROWS]; /* of each the one that it continues, -1: the text */
} hn_head_seq;

/* State of a sequence for a head whose modules draft in turn (head_mtp_modules.c), by module. */
typedef struct hn_head_in_turn {
    int since; /* rows evaluated since the first ones were restored: block k continues with the k-th of them; large: none were restored */
    int32_t newest[HN_MOST_HEAD_MODULES], before[HN_MOST_HEAD_MODULES]; /* slots of its outputs of the newest row and the one before */
    int n_draft_rows[HN_MOST_HEAD_MODULES];                     /* its own rows among those of drafts */
    int16_t parent[HN_MOST_HEAD_MODULES][HN_MOST_DRAFT_ROWS];   /* of each, by its number among them */
    /* for each of all draft rows: its number among those of the module that drafted after it, and of the module whose turn it is, -1: it
     * has
       none; its token; the slot of its output, of this level's block and of the previous level's */
    int16_t own[HN_MOST_DRAFT_ROWS], made[HN_MOST_DRAFT_ROWS];
    int32_t token[HN_MOST_DRAFT_ROWS], output[2][HN_MOST_DRAFT_ROWS];
} hn_head_in_turn;

typedef struct hn_head_passes {
    hn_drafter *drafter; /* whose they are: its failures are recorded there */
    hn_model model;
    hn_runner *runner;
    hn_cache *cache;
    int model_id, n_seqs;
    int width;          /* outputs of a sequence that a level may have */
    int span;       /* rows of a block that attend to each other; 1: none do */
    int modules;        /* that draft in turn; 1: there is one */
    hn_head_in_turn *in_turn; /* [n_seqs]; NULL: there is one block */
    hn_feature_set set; /* requested from the target */
    int n_states;
    int order[HN_MOST_HEAD_FEATURES]; /* state k of a feature is the order[k]-th of the fed buffers */
    int32_t *ids;       /* [outputs] the target's token of each, NULL: the same */
    float *logits;      /* [workers][vocab] of a row in the target's vocabulary, if that differs */
    int workers;        /* of the pool: they read rows of a pass at the same time */
    int vocab;          /* the target's */
    int room;           /* slots of the store; slot 0 holds zeros, slot 1 the mask's feature */
    int32_t *free_slot;
    int n_free;
    int n_outputs, generation; /* outputs of this level; which half of them */
    int level;          /* of this round */
    bool ahead;         /* of this round: it waits once (hn_propose.ahead), so that nodes have sources, and nothing else of rows is read */
    /* where rounds wait once, else NULL: [n_seqs * width] of the nodes of a level, those whose token is HN_TOKEN_LATER */
    hn_token_source *source;
    hn_token_source (*kept_source)[HN_MOST_DRAFT_ROWS]; /* [n_seqs] the same of draft rows, of modules in turn */
    int n_ahead;        /* of its passes so far those with logits */
    const hn_arch *target; /* set before open */
    hn_cache_view **view;  /* [n_seqs] of a head that borrows: what a sequence's rows see during a pass; else NULL */
    hn_head_seq *seq;
    int32_t *lists;     /* memory of the sequences' lists */
} hn_head_passes;

/* head.model is open, head.drafter and head.target set.
 * boundaries[n_states]: layers whose entering state is read, or one HN_FEATURE_POST_NORM. Fills
 * needs' features and group. */
hunch_status hn_head_passes_open(hn_head_passes *h, const int *boundaries, int n_states, const int32_t *ids, int vocab,
                                 int n_seqs, int width, hn_dtype kv, hn_needs *needs, hunch_error *err);
hunch_status hn_head_passes_attach(hn_head_passes *h, hn_cache *cache, int first_group, int model_id, int context, int best,
                                   hunch_error *err);
/* Whether levels that a root's pass is not asked for save rows, or products. */
bool hn_head_saves_levels(const hn_head_passes *h);
size_t hn_head_text_bytes(const hn_head_passes *h); /* of a sequence in its stores and lists */
void hn_head_passes_close(hn_head_passes *h); /* zeroed is fine; the model too */

void hn_head_begin(hn_head_passes *h, const hn_begin *b);
void hn_head_end(hn_head_passes *h, int seq);
void hn_head_feed(hn_head_passes *h, const hn_feed_row *rows, int n, const hn_features *f);
/* Evaluates the pending rows of n sequences, except the newest row of each, whose logits may be needed: those that can be shared. */
void hn_head_flush_pending(hn_head_passes *h, const int *seq, int n);
int hn_head_rows(const hn_head_passes *h, int seq); /* cache rows that hold the committed text */

/* A drafted token, or a root, whose successors are requested. */
typedef struct hn_head_node {
    int seq;
    int32_t token;
    int masks;  /* of a root: levels after its own that are requested from the same pass, at most HN_MOST_MASKS; 0: of a head that gives
                   one level */
    int kept;   /* out: of the passes; in: that of the child's parent; -1: the root */
    int output; /* the same */
    const int32_t *path; /* of a drafted token of a head that continues by blocks: the tokens of one, the node's own last */
} hn_head_node;

/* A row of a pass that a node reads: its own (mask 0), and then each level after a root that was computed with it, the first of which is
 * mask 1: its logits are those of every node of that depth. For a head that continues by blocks also after drafted tokens: those of nodes
 * of that depth after it. */
typedef struct hn_head_row {
    int node, mask, row;
} hn_head_row;
/* Called after a pass while the logits of its rows can be read, with those that nodes read, of each node in order. */
typedef void (*hn_head_take)(void *ctx, const hn_head_row *read, int n);

/* The roots of sequences (nodes in any order, each of another sequence; text_n[i] tokens committed): evaluates pending rows. take gets
 * nothing for a node whose sequence cannot be drafted for. */
void hn_head_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx);
/* A level of drafted tokens, those of a sequence side by side, at most `width` of each. */
void hn_head_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx);

/* Ahead, of a row that take gets: its best token of this rank. */
hn_token_source hn_head_source(const hn_head_passes *h, int row, int rank);
/* Whether a round of n texts can be drafted ahead; whether one more level, of n nodes, can: the lists of all passes so far are kept. */
bool hn_head_can_go_ahead(const hn_head_passes *h, int n, int levels);
bool hn_head_keeps_lists(const hn_head_passes *h, int n);
/* Of a row that take gets, until this worker's next call: logits in the target's vocabulary, -inf outside a reduced one. */
const float *hn_head_logits(const hn_head_passes *h, int row, int worker);
/* Its best tokens, value descending, ties to the lower id of the head's; rows with fewer numbers end in -1. */
const int32_t *hn_head_best(const hn_head_passes *h, int row, const float **value);
double hn_head_sum(const hn_head_passes *h, int row); /* over all of its logits the sum of e^(logit - the best one) */
/* The certainty of a row's logits; its entropy is known of passes after it was wanted. */
void hn_head_want_certainty(hn_head_passes *h, bool wanted);
hn_certainty hn_head_certainty(const hn_head_passes *h, int row);
double hn_head_confidence(const hn_head_passes *h, int row); /* confidence that its best token is accepted; NAN: the head has none */

/* Of a head that drafts a block from which later tokens are drafted one by one (DSpark): how many sequences a round can have, since only
 * one pass has room for their blocks. */
static inline int hn_head_block_seqs(const hn_head_desc *d) { return HN_MAX_ROWS / d->rows.block.n; }
#endif
