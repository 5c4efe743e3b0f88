/* SPDX-License-Identifier: Apache-2.0 */
/* tree_fitted.c - the fixed shape that fits measured rates: Medusa's greedy search (2401.10774), the node of the likeliest path
 * first (head_tree.h). It is tree_best.c over the rates of each depth, in descending order. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "draft/shape/head_tree.h"

typedef struct sorted {
    int n, rank[HN_TREE_ROWS];
    float log_p[HN_TREE_ROWS];
} sorted;

/* The ranks that were ever right, the likeliest first, of equal ones the lower. */
static void sort_ranks(sorted *out, const double *rate, int ranks) {
    out->n = 0;
    for (int r = 0; r < ranks; r++) {
        if (!(rate[r] > 0)) continue;
        int at = out->n++;
        for (; at > 0 && rate[out->rank[at - 1]] < rate[r]; at--) out->rank[at] = out->rank[at - 1];
        out->rank[at] = r;
    }
    for (int i = 0; i < out->n; i++) out->log_p[i] = (float)log(rate[out->rank[i]]);
}

hunch_status hn_shape_fitted(hn_shape *s, const hn_rank_rates *rates, int depth, int total, hunch_error *err) {
    hn_tree_level level[HN_TREE_ROWS - 1];
    hn_best_tree best;
    const int levels = depth < rates->depths ? depth : rates->depths;
    sorted *by = hn_zalloc((size_t)levels + 1, sizeof *by);
    if (!by) return hn_fail_memory(err, "the ranks of a tree", ((size_t)levels + 1) * sizeof *by);
    for (int l = 0; l < levels; l++) {
        sort_ranks(&by[l], rates->rate[l], rates->ranks);
        level[l] = (hn_tree_level){by[l].n, by[l].log_p};
    }
    hn_best_tree_make(&best, level, levels, total, -INFINITY);
    memset(s, 0, sizeof *s);
    s->n = best.n;
    for (int i = 0; i < best.n; i++) {
        s->node[i] = best.node[i];
        s->node[i].rank = (int16_t)by[best.node[i].depth - 1].rank[best.node[i].rank];
    }
    hn_free(by);
    hn_shape_finish(s);
    return HUNCH_OK;
}
