/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - one forward of a model, the target's or a draft model's or head's, over a batch of rows. Prefill chunks, plain rows,
 * chains and trees are the same pass with different rows (contract C2: a row's logits do not depend on the other rows).
 *
 * A runner owns every buffer that a pass writes; nothing is allocated after open. A runner is used by one thread. */
#ifndef HN_PASS_H
#define HN_PASS_H
#include "cache/cache.h"
#include "model/model.h"

/* What a row needs of the output matrix: all its logits, or only the id of the best, without writing a row of logits. */
typedef enum hn_logits {
    HN_LOGITS_NONE,
    HN_LOGITS_ALL,
    HN_LOGITS_BEST,
    HN_LOGITS_DRAWN /* all, from which the backend draws: the host does not read them */
} hn_logits;

typedef struct hn_row {
    int32_t token;
    int16_t seq; /* index into the pass's list of sequences; rows of a sequence are contiguous, sequences ascending */
    /* the earlier row of the same sequence and pass that it continues; -1: the committed text; hn_draft_parent(k): row k
     * of the draft rows of earlier passes */
    int16_t parent;
    hn_logits logits;
    bool feature; /* exports the runner's features */
    /* rows of a block, each of which continues the one before */
    int16_t n_lookahead; /* number of later rows of this pass that it sees, in layers that look ahead */
    int16_t before; /* windows are counted back from the row this many before it: 0, or the distance to its block's first row */
    int32_t rope_offset; /* added to its position in the path for the rotation: the rows between belong to other modules */
    int16_t adapter; /* 1, 2, ..: the set of adapters whose products it adds; 0: none, the only one that models have so far */
} hn_row;

/* Layers of a model that a pass runs; the others leave the stream as it is. */
typedef struct hn_layer_set {
    uint64_t bits[4]; /* bit k: layer k */
} hn_layer_set;
static inline bool hn_layer_set_has(const hn_layer_set *s, int layer) { return s->bits[layer / 64 & 3] >> (layer % 64) & 1; }
/* Whether a model's rows can run these alone: no layer reads the keys and values of one that is left out. */
bool hn_layer_set_fits(const hn_layer_set *s, hn_layers of);

/* Where the token of a row is that an earlier pass found and the host has not read: a place in a list of best tokens (hn_pass_source). */
typedef struct hn_token_source {
    hn_buf list; /* mem NULL: the host knows the token */
    int32_t at;
} hn_token_source;

/* A draft tree among the rows of a pass, whose accepted path the backend finds, by the rule greedy or match. */
typedef struct hn_pass_tree {
    int first, n;        /* the root's row, and how many rows the tree has, which follow each other; n 0: the host decides */
    const hn_draw *draw; /* what the token after the root is drawn from, rows with HN_LOGITS_DRAWN; NULL: the best tokens */
} hn_pass_tree;

/* Which features a runner exports for rows that want them. */
typedef struct hn_feature_set {
    uint64_t layers[4]; /* bit k: the residual stream entering layer k (k = layers: leaving the last) */
    bool post_norm;     /* after the final norm */
} hn_feature_set;
enum { HN_FEATURE_POST_NORM = -1 };

typedef struct hn_runner hn_runner;

/* The most of a pass: numbers that do not depend on each other, but that each sequence has a row. */
typedef struct hn_pass_sizes {
    int texts;  /* sequences, up to HN_MAX_TEXTS: a page table each */
    int logits; /* rows with logits, up to HN_PASS_ROWS. Those that have their best one alone need none of the memory for all logits: the
                   system gives it when it is written */
    int rows;   /* up to HN_PASS_ROWS */
    int best;   /* best outputs that hn_pass_best returns for a row with logits, 1..HN_MAX_TOP */
} hn_pass_sizes;

/* For passes of HN_MAX_ROWS of each, and one best output of a row. max_context: the most rows of a sequence. first_group: the first of the
 * model's groups (hn_kv_groups) in the cache, in order, all of one model_id (hn_cache_group); a head without layers has none. features may
 * be NULL. The model and the cache are borrowed. */
hunch_status hn_runner_open(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                            const hn_feature_set *features, hunch_error *err);
void hn_runner_close(hn_runner **r);
/* The same for passes of other sizes, all at least HN_MAX_ROWS but the number of best outputs. */
hunch_status hn_runner_open_for(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                                const hn_pass_sizes *most, const hn_feature_set *features, hunch_error *err);
/* Sets the table of operations for later passes, which forwards to the backend's (ops/profile.h); NULL: the backend's. */
void hn_runner_set_ops(hn_runner *r, const hn_ops *o);

/* Runs n rows of n_seqs sequences, some of them with logits, as many of each as the runner was opened for; cache_seq[i] is the cache's
 * id of sequence i. Row j of a sequence takes the sequence's tentative slot j; its position is committed + depth. Reserves the slots,
 * and runs the pass without options. Errors: HUNCH_NO_MEMORY (pages). Nothing is committed. */
hunch_status hn_pass_run(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, hunch_error *err);

/* A row of a later pass will have this token: what the model reads of its file for it is fetched meanwhile. */
void hn_pass_expect(const hn_runner *r, int32_t token);

/* ---- rows over several passes, and draft heads ---- */

/* Tentative rows of a sequence that earlier passes wrote to the cache: its first n tentative slots. They can be parents
 * of a pass's rows, so that a tree grows level by level and no row is computed twice. */
typedef struct hn_draft_rows {
    int n;
    const int16_t *parent; /* [n] of each, an earlier one; -1: the committed text */
} hn_draft_rows;
static inline int16_t hn_draft_parent(int k) { return (int16_t)(-2 - k); }

/* Options of a pass. */
typedef struct hn_pass_options {
    /* [n_seqs]; NULL: none. The pass's rows take the slots after them. If it is given, even with no rows, states of
     * recurrent layers do not change */
    const hn_draft_rows *draft_rows;
    /* [n_seqs] how many of each sequence's first rows form a chain that will certainly be committed: a model with
     * recurrent layers absorbs them into its state at once. NULL: none */
    const int *n_certain;
    /* Draft heads: the place of each row's feature in its store; the place to store its output, -1: not stored. drafts:
     * features are outputs of the head's earlier passes, else states of the target. A feature of -1: the row of a mask,
     * with hn_masks_desc.pair. */
    const int32_t *feature, *output; /* [n] */
    bool drafts;
    /* Heads with steps: the step of the rows' own outputs; how many further outputs, of the next steps, each row with
     * logits needs (NULL: none), at most HN_MAX_ROWS outputs in all. Drafts are not rows of the cache, and all have
     * logits. */
    int step;
    const int *further; /* [n] */
    int module; /* heads with several modules that draft in turn: that of the rows */
    /* Heads that draft blocks: rows of the text, from whose features only keys and values are computed; else rows of
     * blocks, which have neither feature nor output: a row without a parent is a root, the rows after it are masks. */
    bool context;
    /* Runners that borrow: [n_seqs] what the rows of each sequence see, all of its rows, held until the pass is over; and the
     * position of its rows, counted from the view's end (-1: that of its last row). Windows are counted back from there. */
    const hn_cache_view *const *views;
    int shift;
    /* Layers that the rows run, of the model itself as its own drafter (2309.08168, 2404.16710): all or NULL, or a set that fits. Those of
     * some layers are drafts, so draft_rows is given; others continue them with the same layers. What they leave in the cache is replaced
     * when their tokens are verified. Rows of a pass run the same ones: a pass for each set costs what one with several would. */
    const hn_layer_set *layers;
    /* Backends where a round waits once: [n] where the rows' tokens are (NULL: in the rows); [n_seqs] trees (NULL: none). */
    const hn_token_source *source;
    const hn_pass_tree *tree;
} hn_pass_options;

/* Reserves the slots of a pass, after those of draft rows. HUNCH_NO_MEMORY: there are too few pages; slots of the sequences before the one
 * that lacked them stay reserved. */
hunch_status hn_pass_reserve(const hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more,
                             hunch_error *err);
/* A pass with options, whose slots are reserved: by hn_pass_reserve, or by the caller, sequence by sequence (hn_cache_reserve). Paths are
 * at most HN_MAX_ROWS rows long. The tentative slots of a sequence are limited by its group. begin describes it and submits its work, and
 * the rows of the cache that are still to be moved before it; end waits for it, and its results can be read. In between the host may do
 * other things, but nothing with this runner, nor with these sequences of its cache. Errors: files that changed. */
hunch_status hn_pass_begin(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more,
                           hunch_error *err);
hunch_status hn_pass_end(hn_runner *r, hunch_error *err);
/* Instead of end, where a round waits once: nothing is waited for, and nothing can be read, but later passes find its tokens. */
void hn_pass_leave(hn_runner *r);
bool hn_pass_may_leave(hn_runner *r); /* not before some that were left are over */
/* Of the last pass: the rank-th best token of a row with logits, for a row of a pass of this runner or another. It is there until
 * HN_KEPT_LISTS further passes of this runner had logits. */
enum { HN_KEPT_LISTS = 128 };
hn_token_source hn_pass_source(const hn_runner *r, int row, int rank);
/* Both. */
hunch_status hn_pass_run_with(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                              const hn_pass_options *more, hunch_error *err);

/* The number of a layer's experts that the rows of the last pass used; *which (may be NULL): their ids, ascending. 0: it has none. */
int hn_pass_experts(const hn_runner *r, int layer, const int32_t **which);
/* ---- after a block, of a head whose outputs are drafted in order (hn_head_in_order; pass_places.c) ---- */

/* A draft whose logits are needed: the row of the last pass that drafts its position, the token before it, and for a
 * recurrence the place of the state after that token's, -1 at the begin of the block, and the place of its own
 * (hn_head_stores.outputs). */
typedef struct hn_place {
    int row;
    int32_t token;
    int from, to;
} hn_place;
/* As of a row of a pass: see hn_pass_logits, _best, _sum, _entropy. */
typedef struct hn_place_result {
    const float *logits;   /* of all outputs, or of tokens[n_tokens] */
    const int32_t *tokens; /* the target's; NULL: of all outputs. All others have no logit, and probability 0 */
    int n_tokens;
    const int32_t *best;
    const float *value;
    double sum, entropy;
    double confidence; /* 0..1, the probability that the draft is accepted; NAN: the head has no confidence */
} hn_place_result;
void hn_pass_block(hn_runner *r, int blocks); /* once after each pass, which had the rows of so many blocks */
/* n <= HN_MAX_ROWS, those of a block side by side, all the same distance behind the roots of their blocks. The rows of the last pass do
 * not change. Results: of places[i], until the next call. */
void hn_pass_places(hn_runner *r, const hn_place *places, int n);
hn_place_result hn_pass_place(const hn_runner *r, int i);

/* Seconds that this runner's passes have taken so far, and the last one: until they were described, and in the backend. Those that were
 * left count when they are over. */
double hn_runner_seconds(hn_runner *r);
double hn_pass_seconds(const hn_runner *r);
/* For tests of what finds wrong logits: one of a row that has all is this from now on. */
void hn_pass_set_logit(hn_runner *r, int row, int32_t token, float value);

/* Sizes of a draft head's stores. */
typedef struct hn_head_stores {
    int features; /* rows of the target's states */
    int outputs;  /* rows of outputs of its own */
    int best;     /* number of best outputs that hn_pass_best returns for a row, 1..HN_MAX_TOP */
} hn_head_stores;
hunch_status hn_runner_open_head(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                                 const hn_head_stores *stores, hunch_error *err);
/* A runner that borrows: layer i reads the keys and values of layer place[i] of another model, whose groups in the cache begin at
 * first_group, and computes queries alone. Its rows have no slots: nothing is reserved, stored or committed, and each sees the rows of a
 * view (hn_pass_options.views). stores: of a draft head; NULL: the model is none. */
struct hn_layer_place;
hunch_status hn_runner_open_borrowed(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group,
                                     const struct hn_layer_place *place, const hn_head_stores *stores, int max_context, hunch_error *err);
/* states[k]: f32 [.][ld], the k-th state of a feature. Copies row from[i] of each to place to[i] of the store, n <= HN_MAX_ROWS. */
void hn_pass_store(hn_runner *r, const hn_buf *states, int ld, const int32_t *from, const int32_t *to, int n);

size_t hn_pass_store_bytes(const hn_runner *r); /* of both stores of a head */

/* The row number for the calls below of the output of a row's `step`-th further step (1: the first). */
int hn_pass_further(const hn_runner *r, int row, int step);
/* Results of the last pass, valid until the next one. The row must have asked for them. */
const float *hn_pass_logits(const hn_runner *r, int row);                /* [hn_arch_logits]; NULL: the row has only its best one */
/* Of a head with clusters: those of the row [clusters.used], whose outputs are its logits, cluster after cluster; -1: none, and -infinity
 * for its outputs. NULL: the model has none. */
const int32_t *hn_pass_clusters(const hn_runner *r, int row);
int32_t hn_pass_argmax(const hn_runner *r, int row);                     /* -1: every logit is NaN or -inf */
/* The best outputs of a row, value descending, ties to the lower id: ids (the target's, also with a reduced vocabulary)
 * and values, as many as the runner was opened for: [stores.best], [most.best], else one. Rows with fewer numbers end in -1. The lists of
 * rows of a pass that follow each other and want the same of the output matrix follow each other too. */
const int32_t *hn_pass_best(const hn_runner *r, int row, const float **values);
/* A head's runner: the sum of e^(logit - the best one) over all logits of a row that has asked for all. */
double hn_pass_sum(const hn_runner *r, int row);
/* The same: the entropy of their softmax in nats, in passes and places after it was wanted; else NAN. */
void hn_pass_want_entropy(hn_runner *r, bool wanted);
double hn_pass_entropy(const hn_runner *r, int row);
const float *hn_pass_feature(const hn_runner *r, int boundary, int row); /* [hidden]; layer k or HN_FEATURE_POST_NORM */
/* The buffers of some of the features that the runner exports, one each, f32 [rows][*ld], the boundaries in
 * ascending order, then post-norm. Returns their number; row i of the pass is row hn_pass_feature_row(i) of each. */
enum { HN_MAX_FEATURES = 258 };
int hn_pass_features(const hn_runner *r, const hn_feature_set *wanted, hn_buf buffers[HN_MAX_FEATURES], int *ld);
int hn_pass_feature_row(const hn_runner *r, int row);

/* What was found of the tree of a sequence: rows of the tree, counted from its root. */
typedef struct hn_pass_path {
    int n;              /* accepted rows after the root */
    int32_t next;       /* the token after them; -1: every logit is NaN or -inf */
    const int32_t *row; /* [n] */
} hn_pass_path;
hn_pass_path hn_pass_tree_path(const hn_runner *r, int seq);
int32_t hn_pass_token(const hn_runner *r, int row); /* of any row of a pass with trees, also of one that the host did not know */
#endif
