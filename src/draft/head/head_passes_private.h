/* SPDX-License-Identifier: Apache-2.0 */
/* head_passes_private.h - what the files of a head's passes (head_passes.h) share: pending rows, a pass that is put together, and the
 * calls by which they reach each other. */
#ifndef HN_HEAD_PASSES_PRIVATE_H
#define HN_HEAD_PASSES_PRIVATE_H
#include "draft/head/head_passes.h"

/* ---- what kind of head it is ---- */

static inline hn_rows_kind hn_head_rows_kind(const hn_head_passes *h) { return h->model.arch.draft_head.rows.kind; }
/* Its rows see those of the target, and are not kept (head_borrowed.c). */
static inline bool hn_head_is_borrowed(const hn_head_passes *h) { return hn_head_rows_kind(h) == HN_ROWS_BORROWED; }
/* A head without layers, or with layers that borrow, has no rows in the cache: it reads the newest feature only. */
static inline bool hn_head_has_rows(const hn_head_passes *h) { return h->model.arch.layers > 0 && !hn_head_is_borrowed(h); }
/* With weights for each position: its drafts are no rows of the cache. */
static inline bool hn_head_has_steps(const hn_head_passes *h) { return hn_head_rows_kind(h) == HN_ROWS_STEPS; }
/* Whether rows of drafts are kept until the round is over, because later ones see them. */
static inline bool hn_head_keeps_drafts(const hn_head_passes *h) { return !hn_head_has_steps(h) && !hn_head_is_borrowed(h); }
/* It drafts a block at once, and its rows of the text have keys and values only (head_blocks.c). */
static inline bool hn_head_is_block(const hn_head_passes *h) { return hn_head_rows_kind(h) == HN_ROWS_BLOCK; }
/* A block is run as a whole: a row sees later ones, or drafts are chosen in order, and read their places' rows later. */
bool hn_head_block_is_whole(const hn_arch *a); /* head_blocks.c */
/* Whether its embedding has a row for the token: that of a whole model may have fewer than the target. */
static inline bool hn_head_knows(const hn_head_passes *h, int32_t token) {
    return hn_head_is_block(h) || token < h->model.arch.draft_head.input.embeddings;
}
/* How many of a restored text's last rows lack something, and are computed again. */
static inline int hn_head_recompute(const hn_head_passes *h) { return h->modules > 1 ? h->modules : h->span; }
static inline int hn_head_rows_held(const hn_head_passes *h, int seq) { return hn_cache_committed(h->cache, seq, h->model_id); }

/* ---- a pass (head_passes.c) ---- */

/* Rows that one pass is to have. Those of a sequence are added side by side. */
typedef struct hn_head_pass {
    int n_rows, n_seqs;
    hn_row row[HN_MAX_ROWS];
    int32_t feature[HN_MAX_ROWS], output[HN_MAX_ROWS]; /* of each row: slots that it reads and writes (hn_pass_options) */
    hn_token_source source[HN_MAX_ROWS];               /* of each row whose token is HN_TOKEN_LATER */
    int cache_seq[HN_MAX_ROWS];                        /* of each sequence */
    hn_draft_rows drafts[HN_MAX_ROWS];                 /* the same, if the pass continues rows of drafts */
} hn_head_pass;
static inline void hn_head_pass_start(hn_head_pass *p) { p->n_rows = p->n_seqs = 0; }

/* Runs it, its pages being reserved; pass_run of a head that does not borrow, or whose views are taken; runs one that continues draft rows,
 * for which it reserves them; reserves pages for rows of a sequence. False: it failed. Without pages less is drafted; any other failure is
 * recorded, and the pass's sequences are given up. */
bool hn_head_run(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more);
hunch_status hn_head_pass_run(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more, hunch_error *err);
bool hn_head_run_drafts(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more);
bool hn_head_reserve(hn_head_passes *h, int seq, int rows);
/* Where the token of node i of a level is; NULL: rounds do not wait once. */
static inline const hn_token_source *hn_head_source_of(const hn_head_passes *h, int i) { return h->source ? &h->source[i] : NULL; }
/* Places of outputs: there are two halves, as a level reads the outputs of the one before. The next level's begin; one of this level's. */
void hn_head_next_level(hn_head_passes *h);
int32_t hn_head_next_output(hn_head_passes *h);

/* The rows of one pass that nodes read, while they are listed. */
typedef struct hn_head_row_list {
    hn_head_take take;
    void *ctx;
    int n;
    hn_head_row row[4 * HN_MAX_ROWS];
} hn_head_row_list;
static inline void hn_head_row_list_end(hn_head_row_list *l) {
    if (l->n > 0) l->take(l->ctx, l->row, l->n);
    l->n = 0;
}
/* If the list is full its rows are taken already. */
static inline void hn_head_row_list_add(hn_head_row_list *l, int node, int mask, int row) {
    if (l->n == 4 * HN_MAX_ROWS) hn_head_row_list_end(l);
    l->row[l->n++] = (hn_head_row){node, mask, row};
}

/* ---- the store, and pending rows (head_store.c) ---- */

enum { HN_NO_FEATURE = 0, HN_MASK_FEATURE = 1 }; /* slots of the store: zeros, and the mask's */

/* Which states are read, and the lists of slots and pending rows, for h->n_seqs sequences. */
hunch_status hn_head_store_open(hn_head_passes *h, const int *boundaries, int n_states, hunch_error *err);
void hn_head_store_close(hn_head_passes *h);
void hn_head_store_mask(hn_head_passes *h); /* after the runner is open: the mask's feature */

void hn_head_pending_add(hn_head_seq *s, int32_t token, int slot);
void hn_head_pending_drop(hn_head_passes *h, hn_head_seq *s, int n); /* the first n, and their slots */
void hn_head_forget_root(hn_head_passes *h, hn_head_seq *s);         /* the newest row will not be evaluated again */
void hn_head_lose(hn_head_passes *h, hn_head_seq *s);                /* drops all, and gives the sequence up until its next begin */

/* ---- rows of the text (head_text_rows.c), of blocks (head_blocks.c) ---- */

/* Evaluates the pending rows of n sequences (seq NULL: 0 to n - 1): all but the last ones, whose logits may be needed; of blocks all.
 * The first calls that of the head's kind. */
void hn_head_evaluate(hn_head_passes *h, const int *seq, int n);
void hn_head_text_evaluate(hn_head_passes *h, const int *seq, int n);
void hn_head_blocks_evaluate(hn_head_passes *h, const int *seq, int n);
/* hn_head_roots, of each. */
void hn_head_text_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx);
void hn_head_blocks_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx);

/* ---- rows of drafts: hn_head_level ---- */

void hn_head_drafts_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx); /* head_levels.c */
/* With a bias from the previous token (DSpark): the slots after drafted tokens, from the roots' pass. */
void hn_head_blocks_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx);
void hn_mtp_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx);

/* ---- of the target's keys and values (head_borrowed.c) ---- */

hunch_status hn_head_borrowed_attach(hn_head_passes *h, const hn_head_stores *stores, int context, hunch_error *err);
void hn_head_borrowed_close(hn_head_passes *h);
/* Whether the target's rows of a text of text_n tokens have places, all but that of the newest. */
bool hn_head_borrowed_ready(const hn_head_passes *h, int seq, int text_n);
hunch_status hn_head_borrowed_run(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more, hunch_error *err);

/* ---- several blocks that draft in turn (head_mtp_modules.c) ---- */

typedef struct hn_head_rows_of {
    int seq, n; /* n rows of the pass, after those of the previous sequences */
} hn_head_rows_of;
int hn_mtp_outputs(const hn_head_passes *h); /* total slots of outputs */
hunch_status hn_mtp_open(hn_head_passes *h, hunch_error *err);
void hn_mtp_begin(hn_head_passes *h, int seq, bool restored); /* restored: rows came with a prefix */
void hn_mtp_again(hn_head_passes *h, int seq); /* its newest row was rewound */
void hn_mtp_round(hn_head_passes *h, int seq); /* it has no rows of drafts */
/* Places of the first block's outputs for rows of the text; follow, after its pass, computes those of the other blocks. False: a pass
 * failed. */
void hn_mtp_slots(const hn_head_passes *h, const hn_head_rows_of *of, int n_seqs, int32_t *output);
bool hn_mtp_follow(hn_head_passes *h, const hn_head_rows_of *of, int n_seqs, const hn_row *row);
#endif
