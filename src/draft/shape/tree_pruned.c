/* SPDX-License-Identifier: Apache-2.0 */
/* tree_pruned.c - see tree_pruned.h. Numbers are those of fvliang/DART, 13f34a5. */
#include "draft/shape/tree_pruned.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { ROOT = -1 };
static const float LEAST = 1e-10f, NGRAMS = 0.5f;

hunch_status hn_pruned_open(hn_pruned *t, int levels, hunch_error *err) {
    t->cap = HN_PRUNED_TOKENS + (levels - 1) * HN_PRUNED_PATHS * HN_PRUNED_TOKENS;
    t->node = hn_zalloc((size_t)t->cap, sizeof *t->node);
    return t->node ? HUNCH_OK : hn_fail_memory(err, "draft tree", (size_t)t->cap * sizeof *t->node);
}

void hn_pruned_close(hn_pruned *t) {
    hn_free(t->node);
    memset(t, 0, sizeof *t);
}

void hn_pruned_start(hn_pruned *t, const int32_t *text, int n) {
    t->n = t->n_levels = t->first = t->n_paths = 0;
    t->n_context = n < HN_TRIE_CONTEXT ? n : HN_TRIE_CONTEXT;
    memcpy(t->context, text + n - t->n_context, (size_t)t->n_context * sizeof *text);
}

/* Reads the last tokens of text and path. */
static int context_of(const hn_pruned *t, int at, int32_t out[HN_TRIE_CONTEXT]) {
    int n = 0, left = t->n_context;
    for (; n < HN_TRIE_CONTEXT && at != ROOT; at = t->node[at].parent) out[HN_TRIE_CONTEXT - 1 - n++] = t->node[at].token;
    while (n < HN_TRIE_CONTEXT && left > 0) out[HN_TRIE_CONTEXT - 1 - n++] = t->context[--left];
    memmove(out, out + HN_TRIE_CONTEXT - n, (size_t)n * sizeof *out);
    return n;
}

static void add_children(hn_pruned *t, int parent, const int32_t *token, const float *own, const float *p, int n, const hn_trie *trie) {
    const float weight = powf((float)(t->n_levels + 1), -0.7f), before = parent == ROOT ? 0 : t->node[parent].score;
    int32_t context[HN_TRIE_CONTEXT];
    float grams[HN_PRUNED_TOKENS];
    if (trie) hn_trie_query(trie, context, context_of(t, parent, context), token, n, grams);
    for (int i = 0; i < n; i++) {
        const float more = trie ? NGRAMS * logf(grams[i] + LEAST) : 0;
        assert(t->n < t->cap);
        t->node[t->n++] = (hn_pruned_node){token[i], parent, p[i], before + weight * (own[i] + more)};
    }
}

/* Whether a path is better than another that was made before it. */
static bool is_better_path(const hn_pruned *t, int a, int b, int32_t ends) {
    const bool a_ends = t->node[a].token == ends, b_ends = t->node[b].token == ends;
    return a_ends != b_ends ? b_ends : t->node[a].score > t->node[b].score;
}

static void choose_paths(hn_pruned *t, int32_t ends) {
    t->n_paths = 0;
    for (int i = t->first; i < t->n; i++) {
        int at = t->n_paths;
        while (at > 0 && is_better_path(t, i, t->path[at - 1], ends)) at--;
        if (at == HN_PRUNED_PATHS) continue;
        if (t->n_paths < HN_PRUNED_PATHS) t->n_paths++;
        memmove(t->path + at + 1, t->path + at, (size_t)(t->n_paths - 1 - at) * sizeof *t->path);
        t->path[at] = i;
    }
}

void hn_pruned_level(hn_pruned *t, const int32_t *token, const float *p, int n, const hn_trie *trie, int32_t ends) {
    float own[HN_PRUNED_TOKENS];
    const float weight = powf(0.9f, (float)t->n_levels);
    double sum = 0;
    assert(n <= HN_PRUNED_TOKENS);
    for (int i = 0; i < n; i++) sum += (double)p[i];
    for (int i = 0; i < n; i++) own[i] = weight * logf((float)((double)p[i] / sum) + LEAST);
    t->first = t->n;
    if (t->n_levels == 0) add_children(t, ROOT, token, own, p, n, trie);
    for (int k = 0; k < t->n_paths; k++) add_children(t, t->path[k], token, own, p, n, trie);
    choose_paths(t, ends);
    t->n_levels++;
}

int hn_pruned_best(const hn_pruned *t, int total, int *list) {
    int n = 0;
    /* A child's score is never above its parent's, and of equal ones the parent is the earlier: it is taken first. */
    for (int i = 0; i < t->n && total > 0; i++) {
        int at = n;
        while (at > 0 && t->node[list[at - 1]].score < t->node[i].score) at--;
        if (at == total) continue;
        if (n < total) n++;
        memmove(list + at + 1, list + at, (size_t)(n - 1 - at) * sizeof *list);
        list[at] = i;
    }
    for (int i = 1; i < n; i++) { /* in the order of creation */
        const int node = list[i];
        int at = i;
        for (; at > 0 && list[at - 1] > node; at--) list[at] = list[at - 1];
        list[at] = node;
    }
    return n;
}
