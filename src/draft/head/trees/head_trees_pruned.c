/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees_pruned.c - DART's tree of a head that gives all levels with the root (tree_pruned.h), made as a whole at level 0. */
#include <string.h>

#include "base/mem.h"
#include "draft/head/trees/head_trees_private.h"
#include "draft/shape/tree_pruned.h"

typedef struct hn_head_pruned {
    hn_trie trie;
    char *path;     /* of the trie; NULL: there is none */
    bool lost;      /* the file was changed: it is not used any more */
    int32_t ends;   /* the token that ends a text; -1: none */
    hn_pruned *seq; /* [n_seqs] */
    bool *right;    /* force: [n_seqs] all tokens so far were replaced on purpose */
} hn_head_pruned;

hunch_status hn_head_pruned_read(hn_head_trees *t, const hn_spec *spec, const hn_head_options *o, hunch_error *err) {
    hn_head_pruned *g = t->grams = hn_zalloc(1, sizeof *g);
    if (!g) return hn_fail_memory(err, "a draft tree", sizeof *g);
    g->ends = o->tokenizer ? hn_tokenizer_eos(o->tokenizer) : -1;
    if (!o->trie) return HUNCH_OK;
    if (!o->tokenizer)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': a trie is of a tokenizer's tokens, expected a model that has one", spec->text);
    g->path = hn_strdup(o->trie);
    return g->path ? hn_trie_open(&g->trie, g->path, o->tokenizer, err) : hn_fail_memory(err, "a name", strlen(o->trie) + 1);
}

hunch_status hn_head_pruned_open(hn_head_trees *t, hunch_error *err) {
    hn_head_pruned *g = t->grams;
    g->seq = hn_zalloc((size_t)t->n_seqs, sizeof *g->seq);
    g->right = hn_zalloc((size_t)t->n_seqs, sizeof *g->right);
    hunch_status s = g->seq && g->right ? HUNCH_OK : hn_fail_memory(err, "a draft tree", (size_t)t->n_seqs * sizeof *g->seq);
    for (int i = 0; !s && i < t->n_seqs; i++) s = hn_pruned_open(&g->seq[i], t->depth, err);
    return s;
}

void hn_head_pruned_close(hn_head_trees *t) {
    hn_head_pruned *g = t->grams;
    if (!g) return;
    for (int i = 0; g->seq && i < t->n_seqs; i++) hn_pruned_close(&g->seq[i]);
    hn_trie_close(&g->trie);
    hn_free(g->seq);
    hn_free(g->right);
    hn_free(g->path);
    hn_free(g);
}

/* Reads the root's row, or that of a level after it. */
static void take_level(hn_head_round *c, int i, int mask, int row) {
    hn_head_trees *t = c->t;
    hn_head_pruned *g = t->grams;
    const hn_propose *p = &c->p[t->of[i]];
    int32_t token[HN_PRUNED_TOKENS];
    float prob[HN_PRUNED_TOKENS];
    c->level = mask;
    hn_head_level_certainty(c, p, mask, row);
    const int m = hn_head_choose(c, p, row, NULL, t->topk, token, prob);
    if (t->forced && g->right[p->seq] && m > 0) g->right[p->seq] = hn_head_force(c, p, &t->seq[p->seq], token, m) >= 0;
    hn_pruned_level(&g->seq[p->seq], token, prob, m, g->path && !g->lost ? &g->trie : NULL, g->ends);
}

static float path_of(const hn_pruned *tree, int at) {
    float p = 1;
    for (; at >= 0; at = tree->node[at].parent) p *= tree->node[at].p;
    return p;
}

/* Adds the best nodes, in the order of creation. */
static void add_best(hn_head_round *c, hn_propose *p, const hn_pruned *tree) {
    const int total = c->t->total < p->budget ? c->t->total : p->budget;
    int list[HN_TREE_ROWS], row[HN_TREE_ROWS];
    const int n = hn_pruned_best(tree, total, list);
    for (int i = 0; i < n; i++) {
        const hn_pruned_node *k = &tree->node[list[i]];
        int parent = i;
        row[i] = HN_NONE;
        while (parent >= 0 && list[parent] != k->parent) parent--; /* the root, or an earlier one */
        const int behind = parent < 0 ? 0 : row[parent];
        if (behind == HN_NONE || (double)path_of(tree, list[i]) < c->t->min_p) continue;
        row[i] = hn_tree_add(p->tree, behind, k->token, c->d->index, k->p);
        if (row[i] == HN_NONE) continue;
        hn_head_set_level_certainty(c, p);
        c->added++;
    }
}

/* Trees go on without a trie whose file was changed. */
static void check_trie(const hn_head_round *c, hn_head_pruned *g) {
    hunch_error why = {0};
    if (!g->path || g->lost) return;
    g->lost = hn_map_check(&g->trie.map, g->path, &why) != HUNCH_OK;
    if (g->lost) hn_drafter_record(c->d, &why);
}

int hn_head_propose_pruned(hn_head_round *c, int n) {
    hn_head_pruned *g = c->t->grams;
    check_trie(c, g);
    for (int i = 0; i < n; i++) {
        const hn_propose *p = &c->p[i];
        hn_pruned_start(&g->seq[p->seq], p->text.token, p->text.n);
        g->right[p->seq] = true;
    }
    c->take = take_level;
    hn_head_run_roots(c, n);
    for (int i = 0; i < n; i++) add_best(c, &c->p[i], &g->seq[c->p[i].seq]);
    return c->added;
}
