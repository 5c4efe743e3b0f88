/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - one forward of the target over a batch of rows. Prefill chunks, plain rows, chains and trees are the same pass
 * with different rows (contract C2: a row's logits do not depend on what else is in it).
 *
 * A runner owns every buffer that a pass writes; nothing is allocated after open. One thread of control a runner. */
#ifndef HN_PASS_H
#define HN_PASS_H
#include "cache/cache.h"
#include "model/model.h"

/* What a row wants of the output matrix: all its logits, or only the id of the best, without a row of logits written. */
typedef enum hn_logits { HN_LOGITS_NONE, HN_LOGITS_ALL, HN_LOGITS_BEST } hn_logits;

typedef struct hn_row {
    int32_t token;
    int16_t seq; /* index into the pass's list of sequences; rows of a sequence are contiguous, sequences ascending */
    int16_t parent; /* row of this pass that it continues (of the same sequence, an earlier one); -1: the committed text;
                       hn_kept_parent(k): row k of those kept from passes before */
    hn_logits logits;
    bool feature; /* wants the runner's features */
    /* of a block of rows, each continuing the one before it */
    int16_t behind; /* how many rows behind it, all of this pass, it sees too, in layers that look ahead */
    int16_t before; /* a window is counted back from the row so many before it: 0, or to its block's first row */
    int16_t farther; /* it is rotated by a position so many farther on than its place in the path: rows between are of other blocks */
} hn_row;

/* Which features a runner exports for rows that want them. */
typedef struct hn_feature_set {
    uint64_t layers[4]; /* bit k of the whole: the residual stream entering layer k (k = layers: leaving the last) */
    bool post_norm;     /* after the final norm */
} hn_feature_set;
enum { HN_FEATURE_POST_NORM = -1 };

typedef struct hn_runner hn_runner;

/* max_context: rows a sequence may reach. first_group: the first of the model's groups (hn_kv_groups) in the cache, in
 * order; rows are their owner's; a head without layers has none. features may be NULL. The model and the cache are borrowed. */
hunch_status hn_runner_open(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                            const hn_feature_set *features, hunch_error *err);
void hn_runner_close(hn_runner **r);
/* The same for passes of up to max_rows rows (HN_MAX_ROWS..HN_PASS_ROWS): what is beyond HN_MAX_ROWS
 * are rows of prompts, without logits. */
hunch_status hn_runner_open_for(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context, int max_rows,
                                const hn_feature_set *features, hunch_error *err);
/* From here on passes call the operations of this table, one that hands on to the model's (ops/profile.h); NULL: the model's. */
void hn_runner_call(hn_runner *r, const hn_ops *o);

/* Runs n rows (1..HN_MAX_ROWS, or what the runner was opened for) of n_seqs sequences (at most HN_MAX_TEXTS), of which HN_LOGIT_ROWS at
 * most want logits; cache_seq[i] is the cache's id of sequence i. Row j of a sequence
 * takes the sequence's tentative slot j; its position is committed + depth. Reserves the slots.
 * Errors: HUNCH_NO_MEMORY (pages). Nothing is committed. */
hunch_status hn_pass_run(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, hunch_error *err);

/* ---- rows over several passes, and draft heads ---- */

/* Tentative rows of a sequence that earlier passes left in the cache: its first n tentative slots. Rows of a pass may name
 * them as parents, so that a tree grows level by level and no row is computed twice. */
typedef struct hn_kept {
    int n;
    const int16_t *parent; /* [n] of each, an earlier one; -1: the committed text */
} hn_kept;
static inline int16_t hn_kept_parent(int k) { return (int16_t)(-2 - k); }

/* What a pass may be told beside its rows. */
typedef struct hn_pass_more {
    const hn_kept *kept; /* [n_seqs]; NULL: none. The rows follow behind them in slots. Where it is given, of no rows too, states of
                            recurrent layers stay as they are: of no row more than before */
    const int *sure; /* [n_seqs] how many rows of each, from its first on, follow each other and will be committed, whatever is said
                        of the others: a model with recurrent layers takes them into its state at once. NULL: none */
    /* Of a draft head: the place of each row's feature in its store; the place that its output is kept in, -1: not kept (a
     * row that asked for logits may be). drafts: features are outputs of the head's passes before, else of the target.
     * A feature of -1: a mask's row, of a head with mask_pair. */
    const int32_t *feature, *output; /* [n] */
    bool drafts;
    /* Of a head with steps: that of the rows' own outputs; how many further ones each row that asked for logits wants of the steps
     * behind it (NULL: none), at most HN_LOGIT_ROWS outputs in all. Drafts are no rows of the cache, and all ask for logits. */
    int step;
    const int *further; /* [n] */
    int block; /* of a head with several blocks that draft in turn: which of them the rows are of */
    /* Of a head that drafts blocks: rows of the text, whose features make keys and values and nothing else; else rows of blocks, which
     * have neither feature nor output: a row without a parent is a root, those behind it masks. */
    bool context;
} hn_pass_more;

/* hn_pass_run with more; paths are at most HN_MAX_ROWS rows long. Tentative slots of a sequence in all: as its group allows. */
hunch_status hn_pass_run_more(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                              const hn_pass_more *more, hunch_error *err);

/* How many experts of a layer the rows of the last pass used; *which (may be NULL): their ids, ascending. 0: it has none. */
int hn_pass_experts(const hn_runner *r, int layer, const int32_t **which);
/* ---- behind a block (pass_markov.c) ---- */

/* A draft whose logits are wanted: the row of the last pass that drafts its place, the token before it, and of a recurrence the state
 * behind that token, -1 where the block begins, and where its own goes: places of the runner's (hn_head_stores.outputs). */
typedef struct hn_markov_row {
    int place;
    int32_t token;
    int from, to;
} hn_markov_row;
typedef struct hn_markov hn_markov;
/* n <= HN_MAX_ROWS. The rows of the last pass stay as they are. What follows is of row i of these, until the next call. */
void hn_pass_markov(hn_runner *r, const hn_markov_row *rows, int n);
const float *hn_markov_logits(const hn_runner *r, int i);
const int32_t *hn_markov_best(const hn_runner *r, int i, const float **value);
double hn_markov_sum(const hn_runner *r, int i);
double hn_markov_sure(const hn_runner *r, int i); /* 0..1, how likely the draft is accepted; NAN: the head does not say */

/* What this runner's passes have taken so far. */
double hn_runner_seconds(const hn_runner *r);

/* What the runner of a draft head has beside. */
typedef struct hn_head_stores {
    int features; /* rows of the target's states */
    int outputs;  /* rows of outputs of its own */
    int best;     /* how many best outputs of a row hn_pass_best gives, 1..HN_MAX_TOP */
} hn_head_stores;
hunch_status hn_runner_open_head(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                                 const hn_head_stores *stores, hunch_error *err);
/* states[k]: f32 [.][ld], the k-th state of a feature. Row from[i] of each goes to place to[i] of the store, n <= HN_MAX_ROWS. */
void hn_pass_store(hn_runner *r, const hn_buf *states, int ld, const int32_t *from, const int32_t *to, int n);

/* The number that the output of a row's `step`-th further step (1: the first) goes by in the calls below. */
int hn_pass_further(const hn_runner *r, int row, int step);
/* Of the last pass, until the next one. The row must have asked for it. */
const float *hn_pass_logits(const hn_runner *r, int row);                /* [vocab]; NULL: it has its best one only */
int32_t hn_pass_argmax(const hn_runner *r, int row);                     /* -1: every logit is NaN or -inf */
/* The best outputs of a row, value descending, ties to the lower id: ids (of a reduced vocabulary the target's) and values,
 * [stores.best] of a head's runner, else one. Rows with fewer numbers end in -1. */
const int32_t *hn_pass_best(const hn_runner *r, int row, const float **values);
/* Of a head's runner: over all of a row's logits the sum of e^(logit - the best one); the row has asked for all. */
double hn_pass_sum(const hn_runner *r, int row);
const float *hn_pass_feature(const hn_runner *r, int boundary, int row); /* [hidden]; layer k or HN_FEATURE_POST_NORM */
/* Where features lie for those who read them on the device: of a part of those that the runner exports, one buffer each, f32
 * [rows][*ld], the boundaries in rising order, then post-norm. Returns how many; row i of the pass is row
 * hn_pass_feature_row(i) of each. */
enum { HN_MAX_FEATURES = 258 };
int hn_pass_features(const hn_runner *r, const hn_feature_set *wanted, hn_buf buffers[HN_MAX_FEATURES], int *ld);
int hn_pass_feature_row(const hn_runner *r, int row);
#endif
