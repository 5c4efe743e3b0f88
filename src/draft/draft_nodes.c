/* SPDX-License-Identifier: Apache-2.0 */
/* draft_nodes.c - see draft_nodes.h. */
#include "draft/draft_nodes.h"

void hn_draft_nodes_start(hn_draft_nodes *x, const hn_propose *p) {
    x->n = 0;
    x->text_n = p->text.n;
    x->budget = p->budget;
}

int hn_draft_nodes_push(hn_draft_nodes *x, int parent, int32_t token, float estimate) {
    if (x->n == HN_NODES_MAX) return -1;
    x->token[x->n] = token;
    x->parent[x->n] = (int16_t)parent;
    x->row[x->n] = -1;
    x->estimate[x->n] = estimate;
    x->stays[x->n] = false;
    return x->n++;
}

int hn_draft_nodes_propose(hn_draft_nodes *x, hn_propose *p, int drafter, int level) {
    if (x->text_n != p->text.n) return 0;
    int added = 0, budget = p->budget;
    for (int i = 0; i < x->n; i++) {
        const int row = x->parent[i] < 0 ? 0 : x->row[x->parent[i]];
        if (row < 0 || p->tree->depth[row] != level) continue;
        const int before = p->tree->n_rows;
        const bool may_make = budget > 0 && i < x->budget;
        if (!may_make && hn_tree_child(p->tree, row, x->token[i]) < 0) continue;
        x->row[i] = (int16_t)hn_tree_add(p->tree, row, x->token[i], drafter, x->estimate[i]);
        if (x->row[i] < 0) continue;
        p->tree->candidate[p->tree->n_candidates - 1].stays = x->stays[i];
        budget -= p->tree->n_rows - before;
        added++;
    }
    return added;
}
