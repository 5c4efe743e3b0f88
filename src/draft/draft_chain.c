/* SPDX-License-Identifier: Apache-2.0 */
/* draft_chain.c - see draft_chain.h. */
#include "draft/draft_chain.h"

void hn_draft_chain_start(hn_draft_chain *c, int text_n) {
    c->len = c->tip = 0;
    c->text_n = text_n;
}

bool hn_draft_chain_push(hn_draft_chain *c, int32_t token, float estimate) {
    if (c->len == HN_CHAIN_MAX) return false;
    c->token[c->len] = token;
    c->estimate[c->len++] = estimate;
    return true;
}

float hn_draft_chain_estimate(int agreed) {
    return (float)(agreed + 1) / (float)(agreed + 2);
}

int hn_draft_chain_propose(hn_draft_chain *c, hn_propose *p, int drafter, int level) {
    if (level >= c->len || c->text_n != p->text.n) return 0;
    const int32_t token = c->token[level];
    int row = -1;
    if (p->budget > 0 || hn_tree_child(p->tree, c->tip, token) >= 0)
        row = hn_tree_add(p->tree, c->tip, token, drafter, c->estimate[level]);
    if (row < 0) {
        c->len = level; /* a deeper level must not be attached to a wrong row */
        return 0;
    }
    c->tip = row;
    return 1;
}

int hn_draft_chain_agreed(const hn_draft_chain *c, const hn_observe *o, int *verified) {
    int row = 0, agreed = 0;
    for (*verified = 0; *verified < c->len; ++*verified) {
        row = hn_tree_child(o->tree, row, c->token[*verified]);
        if (row < 0) break;
    }
    for (; agreed < o->n_accepted && agreed < c->len; agreed++)
        if (o->tree->token[o->path[agreed]] != c->token[agreed]) return agreed;
    return agreed == o->n_accepted && agreed < c->len && o->next_token == c->token[agreed] ? agreed + 1 : agreed;
}
