/* SPDX-License-Identifier: Apache-2.0 */
/* head_blocks.c - the passes of a draft head that drafts a block at once (head_passes.h).
 *
 *   slots:   0 ............. rows | pending .............. | x[n] mask mask ... |
 *            keys and values of   | their features are in  | the block: tentative rows of one pass, all of which
 *            the text's features  | the store              | attend to each other; dropped after it
 *
 * A row of the text is in its own token's slot, computed from that token's feature alone. A block whose rows see later ones is always
 * computed as a whole, even if only some of its tokens are requested: fewer masks would be another function. Of one whose rows see none
 * (JetSpec) only the rows up to the last requested level are computed, which are the same in a block of any length. Levels that are not
 * requested cost no row of the output matrix. */
#include <assert.h>

#include "draft/head/head_passes_private.h"

/* ---- the text ---------------------------------------------------------------------------------------------------------- */

typedef struct context_batch {
    hn_head_pass pass;
    int rows[HN_MAX_ROWS]; /* of each sequence */
} context_batch;

/* Adds pending rows to the pass. False: some did not fit. */
static bool context_add(hn_head_passes *h, context_batch *b, int seq) {
    hn_head_seq *s = &h->seq[seq];
    hn_head_pass *p = &b->pass;
    const int room = HN_MAX_ROWS - p->n_rows, n = s->n_pending < room ? s->n_pending : room;
    if (s->n_pending == 0 || s->lost) return true;
    if (n == 0) return false;
    if (!hn_head_reserve(h, seq, n)) { /* the text continues without drafts */
        hn_head_lose(h, s);
        return true;
    }
    for (int i = 0; i < n; i++) {
        const int at = p->n_rows++;
        p->feature[at] = s->slot[i];
        p->row[at] = (hn_row){.seq = (int16_t)p->n_seqs, .parent = (int16_t)(i ? at - 1 : -1)};
    }
    b->rows[p->n_seqs] = n;
    p->cache_seq[p->n_seqs++] = seq;
    return n == s->n_pending;
}

static void context_run(hn_head_passes *h, context_batch *b) {
    hn_head_pass *p = &b->pass;
    const hn_pass_options more = {.feature = p->feature, .context = true};
    if (p->n_rows == 0) return;
    const bool ran = hn_head_run(h, p, &more);
    for (int i = 0; i < p->n_seqs; i++) {
        hn_head_seq *s = &h->seq[p->cache_seq[i]];
        if (!ran) {
            hn_head_lose(h, s);
            continue;
        }
        hn_cache_commit(h->cache, p->cache_seq[i], h->model_id, NULL, b->rows[i]);
        hn_head_pending_drop(h, s, b->rows[i]);
    }
    hn_head_pass_start(p);
}

void hn_head_blocks_evaluate(hn_head_passes *h, const int *seq, int n) {
    context_batch b;
    hn_head_pass_start(&b.pass);
    for (int i = 0; i < n; i++)
        while (!context_add(h, &b, seq ? seq[i] : i)) context_run(h, &b);
    context_run(h, &b);
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

typedef struct block_batch {
    hn_head_pass pass;
    int node[HN_MAX_ROWS], first[HN_MAX_ROWS]; /* of each sequence: its root's node, its first row in the pass */
} block_batch;

bool hn_head_block_is_whole(const hn_arch *a) {
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].ahead) return true;
    return hn_head_in_order(&a->draft_head);
}

/* Rows of the block of a root. */
static int block_rows(const hn_head_passes *h, const hn_head_node *node) {
    const hn_arch *a = &h->model.arch;
    const hn_block_desc *d = &a->draft_head.rows.block;
    return hn_head_block_is_whole(a) ? d->n : node->masks + 1 + !d->root_drafts;
}

/* DSpark's recurrence begins with the root's row, whether it drafts or not. */
static bool begins_at_root(const hn_head_passes *h) {
    const hn_head_desc *d = &h->model.arch.draft_head;
    return hn_head_has_markov(d) && d->output.markov.kind == HN_MARKOV_RNN;
}

/* The first drafts of the pass's blocks, of a head that drafts in order. */
static void first_places(hn_head_passes *h, const block_batch *b, hn_head_node *node, hn_head_row_list *list) {
    const hn_block_desc *d = &h->model.arch.draft_head.rows.block;
    hn_place place[HN_MAX_ROWS];
    const int n = b->pass.n_seqs, first = !d->root_drafts, begin = begins_at_root(h) ? 0 : first;
    hn_pass_block(h->runner, n);
    for (int k = begin; k <= first; k++) {
        hn_head_next_level(h);
        for (int i = 0; i < n; i++)
            place[i] = (hn_place){i * d->n + k, node[b->node[i]].token, k == begin ? -1 : place[i].to, hn_head_next_output(h)};
        hn_pass_places(h->runner, place, n);
    }
    for (int i = 0; i < n; i++) {
        node[b->node[i]].kept = place[i].row;
        node[b->node[i]].output = place[i].to;
    }
    for (int i = 0; i < n; i++) hn_head_row_list_add(list, b->node[i], 0, i);
}

void hn_head_blocks_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx) {
    hn_place place[HN_MAX_ROWS];
    hn_head_row_list list = {.take = take, .ctx = ctx};
    for (int first = 0, m; first < n; first += m) {
        m = n - first < HN_MAX_ROWS ? n - first : HN_MAX_ROWS;
        for (int i = 0; i < m; i++) {
            hn_head_node *at = &node[first + i];
            place[i] = (hn_place){at->kept + 1, at->token, at->output, hn_head_next_output(h)};
            at->kept++;
            at->output = place[i].to;
        }
        hn_pass_places(h->runner, place, m);
        for (int i = 0; i < m; i++) hn_head_row_list_add(&list, first + i, 0, i);
        hn_head_row_list_end(&list);
    }
}

static void block_run(hn_head_passes *h, block_batch *b, hn_head_node *node, hn_head_take take, void *ctx) {
    const hn_block_desc *d = &h->model.arch.draft_head.rows.block;
    const hn_pass_options more = {0};
    const bool in_order = hn_head_in_order(&h->model.arch.draft_head);
    if (b->pass.n_rows == 0) return;
    const bool ran = hn_head_run(h, &b->pass, &more);
    hn_head_row_list list = {.take = take, .ctx = ctx};
    if (ran && in_order) first_places(h, b, node, &list);
    for (int i = 0; ran && !in_order && i < b->pass.n_seqs; i++)
        for (int level = 0; level <= node[b->node[i]].masks; level++)
            hn_head_row_list_add(&list, b->node[i], level, b->first[i] + level + !d->root_drafts);
    hn_head_row_list_end(&list);
    hn_head_pass_start(&b->pass);
}

/* Adds the root and the masks after it, n rows; with logits of the rows that draft the requested levels. */
static void block_add(const hn_head_passes *h, block_batch *b, int i, const hn_head_node *node, int n) {
    const hn_block_desc *d = &h->model.arch.draft_head.rows.block;
    const int first = begins_at_root(h) ? -1 : 0;
    hn_head_pass *p = &b->pass;
    b->first[p->n_seqs] = p->n_rows;
    for (int k = 0; k < n; k++) {
        const int at = p->n_rows++, level = k - !d->root_drafts;
        p->row[at] = (hn_row){.token = k ? d->mask_token : node->token,
                              .seq = (int16_t)p->n_seqs,
                              .parent = (int16_t)(k ? at - 1 : -1),
                              .logits = level >= first && level <= node->masks ? HN_LOGITS_ALL : HN_LOGITS_NONE,
                              .n_lookahead = (int16_t)(n - 1 - k),
                              .before = (int16_t)(d->windows_of_root ? k : 0)};
    }
    b->node[p->n_seqs] = i;
    p->cache_seq[p->n_seqs++] = node->seq;
}

void hn_head_blocks_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx) {
    context_batch c;
    block_batch b;
    hn_head_pass_start(&c.pass);
    hn_head_pass_start(&b.pass);
    for (int i = 0; i < n; i++)
        while (!context_add(h, &c, node[i].seq)) context_run(h, &c);
    context_run(h, &c);
    for (int i = 0; i < n; i++) {
        if (h->seq[node[i].seq].lost || hn_head_rows_held(h, node[i].seq) != text_n[i] - 1) continue;
        const int rows = block_rows(h, &node[i]);
        if (b.pass.n_rows + rows > HN_MAX_ROWS) block_run(h, &b, node, take, ctx);
        if (hn_head_reserve(h, node[i].seq, rows)) block_add(h, &b, i, &node[i], rows); /* else nothing is drafted */
    }
    block_run(h, &b, node, take, ctx);
}
