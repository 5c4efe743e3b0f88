/* SPDX-License-Identifier: Apache-2.0 */
/* tree_opt.c - OPT-Tree's growth (2406.17276; head_tree.h), over the levels of head_tree.c. A node that is not among the likeliest
 * so far cannot have successors that are among them later, because these are no likelier; so it is not expanded. */
#include <math.h>

#include "draft/shape/head_tree.h"

/* The best `total` of all nodes; returns how many. *tokens: the sum of their probabilities. */
static int read_best(const hn_beam *b, int total, int *list, double *tokens) {
    const int n = hn_beam_best(b, total, list);
    *tokens = 0;
    for (int i = 0; i < n; i++) *tokens += exp((double)b->node[list[i]].score);
    return n;
}

static bool is_among(const int *list, int n, int i) {
    for (int k = 0; k < n; k++)
        if (list[k] == i) return true;
    return false;
}

void hn_opt_advance(hn_beam *b, int total, double gain, double *expected) {
    int list[HN_TREE_ROWS], kept = 0;
    double tokens;
    const int n = read_best(b, total, list, &tokens);
    hn_beam_advance(b);
    const bool grew = tokens - *expected > gain;
    *expected = tokens;
    for (int i = 0; grew && i < b->n_frontier; i++)
        if (is_among(list, n, b->frontier[i])) b->frontier[kept++] = b->frontier[i];
    b->n_frontier = kept;
}
