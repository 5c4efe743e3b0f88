/* SPDX-License-Identifier: Apache-2.0 */
/* head_levels.c - the passes over drafted rows of a head that continues from its own output, a level a pass (head_passes.h): each row
 * reads the output of the row before it, and is kept until the round is over.
 *
 * A head that drafts blocks of several tokens (`span`, Falcon) has that many rows of a node, the last tokens of its path, which see
 * each other and start from the outputs of the block before. Drafts of a head with steps, or over the target's rows, are no
 * rows of the cache, and are not kept. */
#include <assert.h>

#include "draft/head/head_passes_private.h"

/* Adds the rows of node i of a level: of a sequence that has none in the pass yet, or beside the others of it. */
static void add_node(hn_head_passes *h, hn_head_pass *p, const hn_head_node *nodes, int i, bool first_of_seq) {
    const hn_head_node *node = &nodes[i];
    const hn_token_source *source = hn_head_source_of(h, i);
    const hn_head_seq *s = &h->seq[node->seq];
    if (first_of_seq) {
        p->drafts[p->n_seqs] = (hn_draft_rows){s->n_draft_rows, s->draft_parent};
        p->cache_seq[p->n_seqs++] = node->seq;
    }
    for (int j = 0; j < h->span; j++) {
        const int at = p->n_rows++;
        p->feature[at] = node->output + j;
        p->output[at] = hn_head_next_output(h);
        if (source) p->source[at] = *source;
        p->row[at] = (hn_row){.token = h->span > 1 ? node->path[j] : node->token,
                              .seq = (int16_t)(p->n_seqs - 1),
                              .parent = node->kept < 0 ? (int16_t)-1 : hn_draft_parent(node->kept),
                              .logits = HN_LOGITS_ALL,
                              .n_lookahead = (int16_t)(h->span - 1 - j)};
        if (j) p->row[at].parent = (int16_t)(at - 1);
    }
}

/* The node's rows were computed, the first of them as row `first` of the pass: its children read their outputs and continue them. */
static void keep_node(hn_head_passes *h, const hn_head_pass *p, hn_head_node *node, int first) {
    hn_head_seq *s = &h->seq[node->seq];
    node->output = p->output[first];
    if (!hn_head_keeps_drafts(h)) return;
    for (int j = 0; j < h->span; j++, s->n_draft_rows++) s->draft_parent[s->n_draft_rows] = (int16_t)(j ? s->n_draft_rows - 1 : node->kept);
    node->kept = s->n_draft_rows - 1;
}

/* Nodes [first, last) in one pass. */
static void level_pass(hn_head_passes *h, hn_head_node *node, int first, int last, hn_head_take take, void *ctx) {
    hn_head_pass p;
    hn_head_pass_start(&p);
    assert(first < last && (last - first) * h->span <= HN_MAX_ROWS);
    for (int i = first; i < last; i++) add_node(h, &p, node, i, i == first || node[i].seq != node[i - 1].seq);
    const hn_pass_options more = {.draft_rows = hn_head_keeps_drafts(h) ? p.drafts : NULL, .feature = p.feature, .output = p.output,
                                  .drafts = true, .step = h->level};
    if (!hn_head_run_drafts(h, &p, &more)) return; /* no more levels */
    for (int i = first; i < last; i++) keep_node(h, &p, &node[i], (i - first) * h->span);
    hn_head_row_list list = {.take = take, .ctx = ctx};
    for (int i = first; i < last; i++)
        for (int j = 0; j < h->span; j++) hn_head_row_list_add(&list, i, j, (i - first) * h->span + j);
    hn_head_row_list_end(&list);
}

void hn_head_drafts_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx) {
    const int most = HN_MAX_ROWS / h->span;
    for (int first = 0; first < n; first += most) level_pass(h, node, first, n - first < most ? n : first + most, take, ctx);
}
