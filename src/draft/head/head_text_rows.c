/* SPDX-License-Identifier: Apache-2.0 */
/* head_text_rows.c - the passes over rows of the text of a draft head (head_passes.h): pending rows are evaluated and kept, and the
 * newest one, the root, drafts. Several sequences share a pass. Heads that draft blocks at once: head_blocks.c.
 *
 * A root drafts the first level, and more of them in the same pass if the head has
 *
 *   masks          rows of the mask token after it, one a level, which are dropped (P-EAGLE, DART, PARD)
 *   steps          further outputs of its own row, one a level (Medusa, Hydra, Meta)
 *   span > 1       a last block: the text's last rows, which see each other and draft one level each (Falcon)
 */
#include "draft/head/head_passes_private.h"

typedef struct batch {
    hn_head_pass pass;
    int n_further;                  /* outputs of further steps, in all */
    int further[HN_MAX_ROWS];       /* of each row */
    /* of each sequence */
    int rows[HN_MAX_ROWS];          /* rows of the text */
    int last[HN_MAX_ROWS];          /* the row of the pass that is the last of them */
    int node[HN_MAX_ROWS];          /* if that is the root, its node; else -1 */
    int levels[HN_MAX_ROWS];        /* if it is, those that it drafts after the first */
} batch;

static void batch_start(batch *b) {
    hn_head_pass_start(&b->pass);
    b->n_further = 0;
}

/* ---- adding rows -------------------------------------------------------------------------------------------------------- */

/* What of a sequence goes into a pass. */
typedef struct share {
    int rows;    /* of the text: the first pending ones */
    bool root;   /* the last of them is the newest row of the text, which drafts */
    int masks;   /* rows of the mask after it */
    int further; /* outputs of further steps of it */
} share;

/* levels: those that the root is to draft after the first. */
static share share_of(const hn_head_passes *h, const batch *b, int missing, bool root, int levels) {
    const int room = HN_MAX_ROWS - b->pass.n_rows - b->n_further;
    if (h->span > 1) levels = 0; /* the rows of the last block give them */
    share s = {.rows = missing < room ? missing : room, .root = root && missing + levels <= room};
    /* the root and its masks must be in one pass, and so must the rows of the last block */
    if (root && !s.root && s.rows > missing - h->span) s.rows = missing - h->span;
    if (s.root && hn_head_has_steps(h)) s.further = levels;
    if (s.root && !hn_head_has_steps(h)) s.masks = levels;
    return s;
}

static void add_row(batch *b, bool first, int32_t token, int feature, int output, bool logits) {
    hn_head_pass *p = &b->pass;
    const int at = p->n_rows++;
    p->feature[at] = feature;
    p->output[at] = output;
    b->further[at] = 0;
    p->row[at] = (hn_row){.token = token, .seq = (int16_t)p->n_seqs, .parent = (int16_t)(first ? -1 : at - 1),
                          .logits = logits ? HN_LOGITS_ALL : HN_LOGITS_NONE};
}

/* The last rows of the pass become a block: they see each other, and all of them draft. */
static void join_rows(hn_head_passes *h, hn_head_pass *p) {
    for (int i = 0; i < h->span; i++) {
        const int at = p->n_rows - h->span + i;
        p->row[at].n_lookahead = (int16_t)(h->span - 1 - i);
        p->row[at].logits = HN_LOGITS_ALL;
        p->output[at] = hn_head_next_output(h);
    }
}

/* The slot of a mask's feature, -1: it has none. */
static int mask_feature(const hn_masks_desc *d, int root) {
    switch (d->input) {
    case HN_MASK_OWN: return HN_MASK_FEATURE;
    case HN_MASK_PAIR: break;
    case HN_MASK_ROOT: return root;
    }
    return -1;
}

/* Adds pending rows of a sequence to the pass, and what its root drafts with. node: the root's; -1: all rows but the last, whose logits
 * may still be needed. False: some did not fit. */
static bool batch_add(hn_head_passes *h, batch *b, int seq, int node, int levels) {
    const hn_rows_stage *d = &h->model.arch.draft_head.rows;
    hn_head_pass *p = &b->pass;
    hn_head_seq *s = &h->seq[seq];
    const int missing = s->n_pending - (node < 0 ? h->span : 0), i = p->n_seqs;
    if (missing <= 0 || s->lost) return true;
    const share of = share_of(h, b, missing, node >= 0, levels);
    if (of.rows <= 0) return false;
    if (hn_head_has_rows(h) && !hn_head_reserve(h, seq, of.rows + of.masks)) { /* the text continues without drafts */
        hn_head_lose(h, s);
        return true;
    }
    for (int k = 0; k < of.rows; k++) {
        const bool root = of.root && k == of.rows - 1;
        add_row(b, k == 0, s->token[k], s->slot[k], root && h->span == 1 ? hn_head_next_output(h) : -1, root);
    }
    b->last[i] = p->n_rows - 1;
    b->further[b->last[i]] = of.further;
    b->n_further += of.further;
    if (of.root && h->span > 1) join_rows(h, p);
    const int feature = of.masks > 0 ? mask_feature(&d->masks, s->slot[of.rows - 1]) : 0;
    for (int k = 0; k < of.masks; k++) add_row(b, false, d->masks.token, feature, -1, true);
    b->rows[i] = of.rows;
    b->node[i] = of.root ? node : -1;
    b->levels[i] = of.root && h->span > 1 ? h->span - 1 : of.masks + of.further;
    p->cache_seq[p->n_seqs++] = seq;
    return of.rows == missing;
}

/* ---- running a pass ----------------------------------------------------------------------------------------------------- */

/* Lists what the root of sequence i drafts. */
static void read_root(const hn_head_passes *h, const batch *b, int i, hn_head_node *node, hn_head_row_list *list) {
    const int root = b->last[i], first = root - (h->span - 1); /* of the rows that draft */
    if (b->node[i] < 0) return;
    node[b->node[i]].kept = h->span > 1 ? h->span - 1 : -1;
    node[b->node[i]].output = b->pass.output[first];
    for (int level = 0; level <= b->levels[i]; level++) {
        const int row = level && hn_head_has_steps(h) ? hn_pass_further(h->runner, root, level) : first + level;
        hn_head_row_list_add(list, b->node[i], level, row);
    }
}

/* Keeps the rows of sequence i but those of its last block, which may be evaluated again: until then these are kept like drafts. */
static void keep_before_block(hn_head_passes *h, const batch *b, int i) {
    hn_head_seq *s = &h->seq[b->pass.cache_seq[i]];
    const int n = b->rows[i] - h->span;
    hn_cache_commit(h->cache, b->pass.cache_seq[i], h->model_id, NULL, n);
    hn_head_pending_drop(h, s, n);
    for (int k = 0; k < h->span; k++) s->draft_parent[k] = (int16_t)(k - 1);
    s->n_draft_rows = h->span;
}

/* Keeps the rows of sequence i; of the root its feature, too, as it may be evaluated again. */
static void keep_rows(hn_head_passes *h, const batch *b, int i) {
    hn_head_seq *s = &h->seq[b->pass.cache_seq[i]];
    hn_cache_commit(h->cache, b->pass.cache_seq[i], h->model_id, NULL, b->rows[i]);
    if (b->node[i] >= 0) {
        s->root = s->token[s->n_pending - 1];
        s->root_slot = s->slot[s->n_pending - 1];
        s->slot[s->n_pending - 1] = HN_NO_FEATURE;
    }
    hn_head_pending_drop(h, s, b->rows[i]);
}

static void keep(hn_head_passes *h, const batch *b, int i) {
    if (!hn_head_has_rows(h)) return; /* its newest feature stays pending */
    if (h->span > 1 && b->node[i] >= 0)
        keep_before_block(h, b, i);
    else
        keep_rows(h, b, i);
}

/* Evaluates and keeps the rows. take may be NULL if there is no root. */
static void batch_run(hn_head_passes *h, batch *b, hn_head_node *node, hn_head_take take, void *ctx) {
    hn_head_pass *p = &b->pass;
    const hn_pass_options more = {.feature = p->feature, .output = p->output, .further = b->further};
    hn_head_rows_of of[HN_MAX_ROWS];
    if (p->n_rows == 0) return;
    for (int i = 0; i < p->n_seqs; i++) of[i] = (hn_head_rows_of){p->cache_seq[i], b->rows[i]};
    if (h->modules > 1) hn_mtp_slots(h, of, p->n_seqs, p->output);
    bool ran = hn_head_run(h, p, &more);
    hn_head_row_list list = {.take = take, .ctx = ctx};
    for (int i = 0; ran && i < p->n_seqs; i++) read_root(h, b, i, node, &list);
    hn_head_row_list_end(&list);
    if (ran && h->modules > 1) ran = hn_mtp_follow(h, of, p->n_seqs, p->row);
    for (int i = 0; i < p->n_seqs; i++) {
        if (ran)
            keep(h, b, i);
        else
            hn_head_lose(h, &h->seq[p->cache_seq[i]]);
    }
    batch_start(b);
}

/* ---- all of a call ------------------------------------------------------------------------------------------------------ */

void hn_head_text_evaluate(hn_head_passes *h, const int *seq, int n) {
    batch b;
    batch_start(&b);
    for (int i = 0; i < n; i++)
        while (!batch_add(h, &b, seq ? seq[i] : i, -1, 0)) batch_run(h, &b, NULL, NULL, NULL);
    batch_run(h, &b, NULL, NULL, NULL);
}

/* A round begins: the sequence has no rows of drafts. If no token was accepted since the root was evaluated, that is pending again. */
static void start_round(hn_head_passes *h, int seq) {
    hn_head_seq *s = &h->seq[seq];
    s->n_draft_rows = 0;
    if (h->modules > 1) hn_mtp_round(h, seq);
    if (s->n_pending > 0 || s->root_slot == HN_NO_FEATURE) return;
    hn_cache_rewind(h->cache, seq, h->model_id, hn_head_rows_held(h, seq) - 1);
    hn_head_pending_add(s, s->root, s->root_slot);
    s->root_slot = HN_NO_FEATURE;
    if (h->modules > 1) hn_mtp_again(h, seq);
}

/* Whether the root is pending, of a text of this many tokens, and no row before it is missing. */
static bool has_root(const hn_head_passes *h, int seq, int text_n) {
    const hn_head_seq *s = &h->seq[seq];
    const int there = hn_head_has_rows(h) ? hn_head_rows_held(h, seq) + s->n_pending : s->text_n;
    if (s->lost || s->n_pending < h->span || there != text_n) return false;
    if (hn_head_is_borrowed(h)) return hn_head_borrowed_ready(h, seq, text_n);
    return h->span == 1 || text_n > h->span; /* slot 0 is not a row of a block */
}

void hn_head_text_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx) {
    batch b;
    batch_start(&b);
    hn_head_next_level(h);
    for (int i = 0; i < n; i++) {
        start_round(h, node[i].seq);
        if (!has_root(h, node[i].seq, text_n[i])) continue;
        while (!batch_add(h, &b, node[i].seq, i, node[i].masks)) batch_run(h, &b, node, take, ctx);
    }
    batch_run(h, &b, node, take, ctx);
}
