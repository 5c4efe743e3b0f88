/* SPDX-License-Identifier: Apache-2.0 */
/* head_mtp_blocks.c - the passes of a head with several blocks of multi-token prediction (DeepSeek-V3, 2412.19437), which draft in turn:
 * level j is drafted by block j % blocks.
 *
 *   block 0       row of slot p: token p, the target's feature of p - 1
 *   block k > 0   row of slot p: token p, the output of block k - 1 at slot p - 1
 *
 * Each block is a layer of the head's one group, so a committed row has keys and values of all of them: rows of the text are evaluated by
 * one block after another. Drafts are evaluated only by the block whose turn it is: at its first turn, level k of block k, all k drafts so
 * far, later the newest one, which then attends to the text and to the block's earlier rows. In a text whose first rows were restored,
 * block k continues k rows later, because the outputs of the block before for the restored rows do not exist: the restored rows have
 * these keys and values (hn_cache_group.recompute: they are computed again). */
#include <assert.h>
#include <limits.h>

#include "base/mem.h"
#include "draft/head/head_passes.h"

enum { PLACES = 4 }; /* of a block's outputs in a sequence: the newest row's, that of the row before, and two for their successors */

/* ---- places of outputs ---------------------------------------------------------------------------------------------- */

static int first_place(const hn_head_passes *h) {
    return 2 * h->n_seqs * h->width * h->blocks;
}

static int zero_place(const hn_head_passes *h) {
    return first_place(h) + HN_MAX_ROWS + h->n_seqs * h->blocks * PLACES;
}

int hn_mtp_outputs(const hn_head_passes *h) {
    return h->blocks > 1 ? zero_place(h) + 1 : first_place(h);
}

/* Number `which` (0, 1) of the places with neither the newest row's output nor that of the row before. */
static int fresh_place(const hn_head_passes *h, int seq, int block, int which) {
    const hn_head_in_turn *t = &h->in_turn[seq];
    const int begin = first_place(h) + HN_MAX_ROWS + (seq * h->blocks + block) * PLACES;
    for (int place = begin; place < begin + PLACES; place++)
        if (place != t->newest[block] && place != t->before[block] && which-- == 0) return place;
    assert(false && "four places, two are taken");
    return begin;
}

static int rows_late(const hn_head_in_turn *t, int block) {
    return block > t->since ? block - t->since : 0;
}

/* Place of row i of the n rows that a sequence has in the pass; the first is row `first` of the pass. */
static int place_of(const hn_head_passes *h, int seq, int block, int i, int n, int first) {
    return i >= n - 2 ? fresh_place(h, seq, block, i - (n - 2)) : first_place(h) + first + i;
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

hunch_status hn_mtp_open(hn_head_passes *h, hunch_error *err) {
    if (h->blocks < 2) return HUNCH_OK;
    h->in_turn = hn_zalloc((size_t)h->n_seqs, sizeof *h->in_turn);
    return h->in_turn ? HUNCH_OK : hn_fail_memory(err, "blocks that draft in turn", (size_t)h->n_seqs * sizeof *h->in_turn);
}

void hn_mtp_begin(hn_head_passes *h, int seq, bool restored) {
    hn_head_in_turn *t = &h->in_turn[seq];
    t->since = restored ? 0 : INT_MAX / 2;
    for (int k = 0; k < h->blocks; k++) t->newest[k] = t->before[k] = zero_place(h); /* there is no row before slot 0 */
}

void hn_mtp_again(hn_head_passes *h, int seq) {
    hn_head_in_turn *t = &h->in_turn[seq];
    t->since--;
    for (int k = 0; k < h->blocks; k++) t->newest[k] = t->before[k];
}

void hn_mtp_round(hn_head_passes *h, int seq) {
    for (int k = 0; k < h->blocks; k++) h->in_turn[seq].n_kept[k] = 0;
}

/* ---- rows of the text ------------------------------------------------------------------------------------------------- */

void hn_mtp_places(const hn_head_passes *h, const hn_head_rows_of *of, int n_seqs, int32_t *output) {
    for (int s = 0, first = 0; s < n_seqs; first += of[s++].n)
        for (int i = 0; i < of[s].n; i++) output[first + i] = place_of(h, of[s].seq, 0, i, of[s].n, first);
}

typedef struct block_pass {
    hn_row row[HN_MAX_ROWS];
    hn_kept kept[HN_MAX_ROWS];
    int32_t feature[HN_MAX_ROWS], output[HN_MAX_ROWS];
    int cache_seq[HN_MAX_ROWS];
    int n_rows, n_seqs;
} block_pass;

/* Adds a sequence's rows, of->n of the pass from row `first` on, as a block reads them. */
static void add_text(const hn_head_passes *h, block_pass *p, int block, const hn_head_rows_of *of, const hn_row *row, int first) {
    static const int16_t chain[HN_MOST_HEAD_BLOCKS] = {-1, 0, 1, 2, 3, 4, 5, 6};
    const hn_head_in_turn *t = &h->in_turn[of->seq];
    const int late = rows_late(t, block), last = block == h->blocks - 1;
    for (int i = late; i < of->n; i++) {
        const int at = p->n_rows++;
        int parent = at - 1;
        if (i == late) parent = late ? hn_kept_parent(late - 1) : -1;
        p->row[at] = (hn_row){.token = row[first + i].token, .seq = (int16_t)p->n_seqs, .logits = HN_LOGITS_NONE,
                              .parent = (int16_t)parent};
        p->feature[at] = i ? place_of(h, of->seq, block - 1, i - 1, of->n, first) : t->newest[block - 1];
        p->output[at] = last ? -1 : place_of(h, of->seq, block, i, of->n, first);
    }
    if (late >= of->n) return;
    p->kept[p->n_seqs] = (hn_kept){late, chain};
    p->cache_seq[p->n_seqs++] = of->seq;
}

static void advance(hn_head_passes *h, const hn_head_rows_of *of) {
    hn_head_in_turn *t = &h->in_turn[of->seq];
    for (int k = 0; k < h->blocks; k++) {
        const int n = of->n - rows_late(t, k), before = fresh_place(h, of->seq, k, 0), newest = fresh_place(h, of->seq, k, 1);
        if (n < 1) continue;
        t->before[k] = n > 1 ? before : t->newest[k];
        t->newest[k] = newest;
    }
    t->since += of->n;
}

bool hn_mtp_follow(hn_head_passes *h, const hn_head_rows_of *of, int n_seqs, const hn_row *row) {
    for (int block = 1; block < h->blocks; block++) {
        block_pass p = {.n_rows = 0};
        for (int s = 0, first = 0; s < n_seqs; first += of[s++].n) add_text(h, &p, block, &of[s], row, first);
        const hn_pass_options more = {.kept = p.kept, .feature = p.feature, .output = p.output, .drafts = true, .block = block};
        if (p.n_rows > 0 && !hn_head_run(h, p.row, p.n_rows, p.cache_seq, p.n_seqs, &more)) return false;
    }
    for (int s = 0; s < n_seqs; s++) advance(h, &of[s]);
    return true;
}

/* ---- rows of drafts --------------------------------------------------------------------------------------------------- */

/* The state of one level's passes. */
typedef struct level {
    hn_head_passes *h;
    hn_head_node *node;
    int block, number, first; /* nodes [first, ...) are in the pass */
    int32_t (*next_output)(hn_head_passes *h);
    hn_head_take take;
    void *ctx;
    block_pass pass;
    int row_of[HN_MAX_ROWS], node_of[HN_MAX_ROWS], n_nodes; /* the row of each node */
    int before; /* rows of the block that the last sequence had before the pass */
} level;

/* The ancestor of a kept row, `steps` up; -1: the text. */
static int ancestor(const hn_head_seq *s, int row, int steps) {
    for (; steps > 0 && row >= 0; steps--) row = s->kept_parent[row];
    return row;
}

/* Adds a row of the block after row `parent` of its own (-1: the text), and returns its number among them. */
static int add_row(level *l, int seq, int32_t token, int parent, int32_t feature, int farther, bool logits) {
    hn_head_in_turn *t = &l->h->in_turn[seq];
    block_pass *p = &l->pass;
    const int at = p->n_rows++, base = at - (t->n_kept[l->block] - l->before);
    int in_pass = -1; /* the same row, as the pass names it */
    if (parent >= 0) in_pass = parent < l->before ? hn_kept_parent(parent) : base + parent - l->before;
    p->feature[at] = feature;
    p->output[at] = l->next_output(l->h);
    p->row[at] = (hn_row){.token = token, .seq = (int16_t)(p->n_seqs - 1), .farther = (int16_t)farther,
                          .logits = logits ? HN_LOGITS_ALL : HN_LOGITS_NONE,
                          .parent = (int16_t)in_pass};
    t->parent[l->block][t->n_kept[l->block]] = (int16_t)parent;
    return t->n_kept[l->block]++;
}

/* For a block at its first turn: adds rows of the drafts before a node that it has not computed yet. Returns the last one's number. */
static int add_path(level *l, const hn_head_node *node) {
    const hn_head_seq *s = &l->h->seq[node->seq];
    hn_head_in_turn *t = &l->h->in_turn[node->seq];
    int own = -1;
    for (int up = l->number - 2; up >= 0; up--) {
        const int row = ancestor(s, node->kept, up), parent = s->kept_parent[row];
        if (t->made[row] < 0) {
            const int32_t feature = parent < 0 ? t->newest[l->block - 1] : t->output[~l->number & 1][parent];
            t->made[row] = (int16_t)add_row(l, node->seq, t->token[row], own, feature, 0, false);
            t->output[l->number & 1][row] = l->pass.output[l->pass.n_rows - 1];
        }
        own = t->made[row];
    }
    return own;
}

/* Adds a node's own row. After its first turn a block skips the drafts since its last turn: other blocks evaluated them. */
static void add_node(level *l, int i) {
    hn_head_node *node = &l->node[i];
    hn_head_seq *s = &l->h->seq[node->seq];
    hn_head_in_turn *t = &l->h->in_turn[node->seq];
    const int blocks = l->h->blocks, turn = l->number / blocks;
    int parent, before = l->number - 1;
    if (turn == 0) {
        parent = add_path(l, node);
    } else {
        const int up = ancestor(s, node->kept, blocks - 1);
        parent = up < 0 ? -1 : t->own[up];
        before = l->block + turn - 1;
    }
    const int own = add_row(l, node->seq, node->token, parent, node->output, l->number - 1 - before, true);
    l->row_of[l->n_nodes] = l->pass.n_rows - 1;
    l->node_of[l->n_nodes++] = i;
    t->own[s->n_kept] = t->made[s->n_kept] = (int16_t)own;
    t->token[s->n_kept] = node->token;
    t->output[l->number & 1][s->n_kept] = node->output = l->pass.output[l->pass.n_rows - 1];
    s->kept_parent[s->n_kept] = (int16_t)node->kept;
    node->kept = s->n_kept++;
}

/* False: the pass failed, so there are no more levels. */
static bool run_level(level *l) {
    block_pass *p = &l->pass;
    const hn_pass_options more = {.kept = p->kept, .feature = p->feature, .output = p->output, .drafts = true, .block = l->block};
    if (p->n_rows > 0 && !hn_head_run(l->h, p->row, p->n_rows, p->cache_seq, p->n_seqs, &more)) return false;
    for (int i = 0; i < l->n_nodes; i++) l->take(l->ctx, l->node_of[i], 0, l->row_of[i]);
    p->n_rows = p->n_seqs = l->n_nodes = 0;
    return true;
}

/* The rows that follow are of this sequence. */
static void turn_to(level *l, int seq) {
    hn_head_in_turn *t = &l->h->in_turn[seq];
    l->before = t->n_kept[l->block];
    l->pass.kept[l->pass.n_seqs] = (hn_kept){l->before, t->parent[l->block]};
    l->pass.cache_seq[l->pass.n_seqs++] = seq;
}

void hn_mtp_level(hn_head_passes *h, hn_head_node *node, int n, int32_t (*next_output)(hn_head_passes *h), hn_head_take take, void *ctx) {
    level l = {.h = h, .node = node, .block = h->level % h->blocks, .number = h->level,
               .next_output = next_output, .take = take, .ctx = ctx};
    for (int i = 0; i < n; i++) {
        const int seq = node[i].seq, rows = h->level < h->blocks ? h->level : 1;
        const bool other = i == 0 || seq != node[i - 1].seq;
        if (h->seq[seq].lost) return;
        for (int g = 0; other && g < h->seq[seq].n_kept; g++) h->in_turn[seq].made[g] = -1;
        const bool full = l.pass.n_rows + rows > HN_MAX_ROWS;
        if (full && !run_level(&l)) return;
        if (full || other) turn_to(&l, seq);
        add_node(&l, i);
    }
    run_level(&l);
}
