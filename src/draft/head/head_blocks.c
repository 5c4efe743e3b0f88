/* SPDX-License-Identifier: Apache-2.0 */
/* head_blocks.c - the passes of a draft head that drafts a block at once (head_passes.h).
 *
 *   slots:   0 ............. rows | pending .............. | x[n] mask mask ... |
 *            keys and values of   | their features are in  | the block: tentative rows of one pass, all of which
 *            the text's features  | the store              | attend to each other; dropped after it
 *
 * A row of the text is in its own token's slot, computed from that token's feature alone. A block is always computed as a whole, even if
 * only some of its tokens are requested: fewer masks would be another function. Levels that are not requested cost no row of the output
 * matrix. */
#include <assert.h>

#include "draft/head/head_passes.h"

static int rows_held(const hn_head_passes *h, int seq) {
    return hn_cache_committed(h->cache, seq, h->model_id);
}

/* ---- the text ---------------------------------------------------------------------------------------------------------- */

typedef struct context_batch {
    int n_rows, n_seqs;
    hn_row row[HN_MAX_ROWS];
    int32_t feature[HN_MAX_ROWS];
    int cache_seq[HN_MAX_ROWS], rows[HN_MAX_ROWS]; /* of each sequence */
} context_batch;

/* Adds pending rows to the pass. False: some did not fit. */
static bool context_add(hn_head_passes *h, context_batch *b, int seq) {
    hn_head_seq *s = &h->seq[seq];
    const int room = HN_MAX_ROWS - b->n_rows, n = s->n_pending < room ? s->n_pending : room;
    if (s->n_pending == 0 || s->lost) return true;
    if (n == 0) return false;
    if (!hn_head_reserve(h, seq, n)) { /* the text continues without drafts */
        hn_head_lose(h, s);
        return true;
    }
    for (int i = 0; i < n; i++) {
        const int at = b->n_rows++;
        b->feature[at] = s->slot[i];
        b->row[at] = (hn_row){.seq = (int16_t)b->n_seqs, .parent = (int16_t)(i ? at - 1 : -1)};
    }
    b->rows[b->n_seqs] = n;
    b->cache_seq[b->n_seqs++] = seq;
    return n == s->n_pending;
}

static void context_run(hn_head_passes *h, context_batch *b) {
    const hn_pass_options more = {.feature = b->feature, .context = true};
    if (b->n_rows == 0) return;
    const bool ran = hn_head_run(h, b->row, b->n_rows, b->cache_seq, b->n_seqs, &more);
    for (int i = 0; i < b->n_seqs; i++) {
        hn_head_seq *s = &h->seq[b->cache_seq[i]];
        if (!ran) {
            hn_head_lose(h, s);
            continue;
        }
        hn_cache_commit(h->cache, b->cache_seq[i], h->model_id, NULL, b->rows[i]);
        hn_head_pending_drop(h, s, b->rows[i]);
    }
    b->n_rows = b->n_seqs = 0;
}

void hn_head_blocks_evaluate(hn_head_passes *h, int first, int end) {
    context_batch b;
    b.n_rows = b.n_seqs = 0;
    for (int seq = first; seq < end; seq++)
        while (!context_add(h, &b, seq)) context_run(h, &b);
    context_run(h, &b);
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

typedef struct block_batch {
    int n, node[HN_MAX_ROWS], cache_seq[HN_MAX_ROWS];
    hn_row row[HN_MAX_ROWS];
} block_batch;

static int next_state(hn_head_passes *h) {
    return h->generation * h->n_seqs * h->width + h->n_outputs++;
}

static void next_generation(hn_head_passes *h) {
    h->generation ^= 1;
    h->n_outputs = 0;
}

/* The first drafts of the pass's blocks. A recurrence begins with the root's row, whether it drafts or not. */
static void markov_roots(hn_head_passes *h, const block_batch *b, hn_head_node *node, hn_head_take take, void *ctx) {
    const hn_head_desc *d = &h->model.arch.draft_head;
    hn_markov_row row[HN_MAX_ROWS];
    const int first = !d->root_drafts, begin = d->markov == HN_MARKOV_RNN ? 0 : first;
    for (int k = begin; k <= first; k++) {
        next_generation(h);
        for (int i = 0; i < b->n; i++)
            row[i] = (hn_markov_row){i * d->block + k, node[b->node[i]].token, k == begin ? -1 : row[i].to, next_state(h)};
        hn_pass_markov(h->runner, row, b->n);
    }
    for (int i = 0; i < b->n; i++) {
        node[b->node[i]].kept = row[i].place;
        node[b->node[i]].output = row[i].to;
    }
    for (int i = 0; i < b->n; i++) take(ctx, b->node[i], 0, i);
}

void hn_head_blocks_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx) {
    hn_markov_row row[HN_MAX_ROWS];
    next_generation(h);
    for (int first = 0, m; first < n; first += m) {
        m = n - first < HN_MAX_ROWS ? n - first : HN_MAX_ROWS;
        for (int i = 0; i < m; i++) {
            hn_head_node *at = &node[first + i];
            row[i] = (hn_markov_row){at->kept + 1, at->token, at->output, next_state(h)};
            at->kept++;
            at->output = row[i].to;
        }
        hn_pass_markov(h->runner, row, m);
        for (int i = 0; i < m; i++) take(ctx, first + i, 0, i);
    }
}

static void block_run(hn_head_passes *h, block_batch *b, hn_head_node *node, hn_head_take take, void *ctx) {
    const hn_head_desc *d = &h->model.arch.draft_head;
    const hn_pass_options more = {0};
    if (b->n == 0) return;
    const bool ran = hn_head_run(h, b->row, b->n * d->block, b->cache_seq, b->n, &more);
    if (ran && d->markov) {
        markov_roots(h, b, node, take, ctx);
        b->n = 0;
        return;
    }
    for (int i = 0; ran && i < b->n; i++)
        for (int level = 0; level <= node[b->node[i]].masks; level++)
            take(ctx, b->node[i], level, i * d->block + level + !d->root_drafts);
    b->n = 0;
}

/* Adds the root and the masks after it; with logits of the rows that draft the requested levels. */
static void block_add(const hn_head_passes *h, block_batch *b, int i, const hn_head_node *node) {
    const hn_head_desc *d = &h->model.arch.draft_head;
    const int first = d->markov == HN_MARKOV_RNN ? -1 : 0; /* a recurrence begins with the root's row */
    for (int k = 0; k < d->block; k++) {
        const int at = b->n * d->block + k, level = k - !d->root_drafts;
        b->row[at] = (hn_row){.token = k ? d->mask_token : node->token,
                              .seq = (int16_t)b->n,
                              .parent = (int16_t)(k ? at - 1 : -1),
                              .logits = level >= first && level <= node->masks ? HN_LOGITS_ALL : HN_LOGITS_NONE,
                              .n_lookahead = (int16_t)(d->block - 1 - k),
                              .before = (int16_t)(d->windows_of_root ? k : 0)};
    }
    b->node[b->n] = i;
    b->cache_seq[b->n++] = node->seq;
}

void hn_head_blocks_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx) {
    const int block = h->model.arch.draft_head.block;
    context_batch c;
    block_batch b;
    c.n_rows = c.n_seqs = b.n = 0;
    for (int i = 0; i < n; i++)
        while (!context_add(h, &c, node[i].seq)) context_run(h, &c);
    context_run(h, &c);
    for (int i = 0; i < n; i++) {
        if (h->seq[node[i].seq].lost || rows_held(h, node[i].seq) != text_n[i] - 1) continue;
        if ((b.n + 1) * block > HN_MAX_ROWS) block_run(h, &b, node, take, ctx);
        block_add(h, &b, i, &node[i]);
        if (!hn_head_reserve(h, node[i].seq, block)) b.n--; /* nothing is drafted */
    }
    block_run(h, &b, node, take, ctx);
}
