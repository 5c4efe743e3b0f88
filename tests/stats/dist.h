/* SPDX-License-Identifier: Apache-2.0 */
/* dist.h - for statistics through the real engine: the joint distribution of the first tokens of a model's text, enumerated. Each text is a
 * cell: the digits of the cell's number, to the base of the support's size, are indices of its tokens, in order of the text.
 * Include after cmocka and fixture.h. */
#ifndef HN_TEST_DIST_H
#define HN_TEST_DIST_H
#include "sample/sampler.h"

enum { DIST_TOP = 3, DIST_TOKENS = 4, DIST_NODES = 40, DIST_CELLS = 81, DIST_PROMPT = 16 };

/* The distribution of the token after one text. */
typedef struct dist_node {
    hunch_token token[DIST_TOP];
    double p[DIST_TOP];
} dist_node;

/* node[0]: after the prompt; the i-th token of node n leads to node n * top + i + 1. */
typedef struct dist {
    hunch_sampling params; /* top_k = top */
    hunch_token prompt[DIST_PROMPT];
    int n_prompt, top, tokens;
    int unseen; /* number of the newest tokens that the processors do not see: a mistake to be found; 0: none */
    dist_node node[DIST_NODES];
    int cells;
    double p[DIST_CELLS];
} dist;

typedef struct dist_row {
    float *logits;
    size_t want;
} dist_row;

HELPER void dist_keep_row(void *user, size_t position, const float *logits, int vocab) {
    dist_row *r = user;
    if (position == r->want) memcpy(r->logits, logits, (size_t)vocab * sizeof(float));
}

/* The distribution after ids[n], of which the processors see the first `seen`. */
HELPER dist_node dist_after(const dist *l, hunch_engine *e, int vocab, const hunch_token *ids, int n, int seen) {
    dist_node out = {{0}, {0}};
    dist_row row = {calloc((size_t)vocab, sizeof(float)), (size_t)n - 1};
    hn_sampler s;
    hn_dist p;
    must(hunch_evaluate(e, ids, (size_t)n, dist_keep_row, &row, err));
    must(hn_sampler_init(&s, &l->params, vocab, err));
    const hn_history h = {.text = ids, .n = seen, .n_prompt = l->n_prompt};
    hn_sampler_dist(&s, row.logits, &h, &p);
    assert_int_equal(p.n, l->top);
    for (int i = 0; i < p.n; i++) {
        out.token[i] = p.id[i];
        out.p[i] = (double)p.weight[i] / p.sum;
    }
    hn_sampler_fini(&s);
    free(row.logits);
    return out;
}

HELPER void dist_grow(dist *l, hunch_engine *e, int vocab, hunch_token *ids, int node, int depth, int cell, double p) {
    if (depth == l->tokens) {
        l->p[cell] = p;
        return;
    }
    const int n = l->n_prompt + depth;
    l->node[node] = dist_after(l, e, vocab, ids, n, n - (l->unseen < depth ? l->unseen : depth));
    for (int i = 0; i < l->top; i++) {
        ids[n] = l->node[node].token[i];
        dist_grow(l, e, vocab, ids, node * l->top + i + 1, depth + 1, cell * l->top + i, p * l->node[node].p[i]);
    }
}

/* e: an engine without sessions. */
HELPER void dist_enumerate(dist *l, hunch_engine *e, const hunch_model *m) {
    hunch_model_info info;
    hunch_token ids[DIST_PROMPT + DIST_TOKENS];
    hunch_model_get_info(m, &info);
    memcpy(ids, l->prompt, (size_t)l->n_prompt * sizeof *ids);
    l->params.top_k = l->top;
    l->cells = 1;
    for (int i = 0; i < l->tokens; i++) l->cells *= l->top;
    assert_true(l->cells <= DIST_CELLS && l->top <= DIST_TOP);
    dist_grow(l, e, info.vocab, ids, 0, 0, 0, 1);
}

/* -1: outside the distribution's support. */
HELPER int dist_find(const dist *l, const hunch_token *text) {
    int node = 0, cell = 0;
    for (int i = 0; i < l->tokens; i++) {
        int k = 0;
        while (k < l->top && l->node[node].token[k] != text[i]) k++;
        if (k == l->top) return -1;
        cell = cell * l->top + k;
        node = node * l->top + k + 1;
    }
    return cell;
}

HELPER int dist_cell(const dist *l, const hunch_token *text) {
    const int cell = dist_find(l, text);
    if (cell < 0) fail_msg("%d %d %d is outside the distribution's support", text[0], text[1], text[2]);
    return cell;
}
#endif
