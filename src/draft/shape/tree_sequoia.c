/* SPDX-License-Identifier: Apache-2.0 */
/* tree_sequoia.c - the fixed shape of most accepted tokens by Sequoia's dynamic programming (2402.12374; head_tree.h).
 *
 *   whole(l, m)    most tokens of a subtree of at most m nodes whose first is at depth l, including that one:
 *                  1 + among(l, 0, m - 1)
 *   among(l, r, n) most tokens of n nodes after a node of depth l, distributed over its candidates of ranks r, r + 1, ...:
 *                  max over j of rate(l, r) whole(l + 1, j) + among(l, r + 1, n - j)
 *
 * computed from the deepest level up. Of equal choices the one with fewer nodes for the better rank, so useless nodes are left out. */
#include <string.h>

#include "base/mem.h"
#include "draft/shape/head_tree.h"

enum { MOST = HN_TREE_ROWS };

typedef struct programme {
    const hn_rank_rates *rates;
    int depth, total, ranks;
    double whole[2][MOST + 1];             /* of depth l + 1 and of depth l */
    uint8_t (*given)[MOST + 1][MOST + 1];  /* [depth][rank][n]: the best j */
} programme;

/* whole of depth l from that of depth l + 1. */
static void level_up(programme *p, int l) {
    double among[2][MOST + 1] = {{0}}; /* of rank r + 1 and of rank r */
    for (int r = p->ranks - 1; r >= 0; r--) {
        const double *after = among[(r + 1) % 2];
        double *here = among[r % 2];
        for (int n = 0; n <= p->total; n++) {
            here[n] = after[n];
            p->given[l][r][n] = 0;
            for (int j = 1; j <= n; j++) {
                const double sum = p->rates->rate[l][r] * p->whole[(l + 1) % 2][j] + after[n - j];
                if (!(sum > here[n])) continue;
                here[n] = sum;
                p->given[l][r][n] = (uint8_t)j;
            }
        }
    }
    p->whole[l % 2][0] = 0;
    for (int m = 1; m <= p->total + 1; m++) p->whole[l % 2][m] = 1 + among[0][m - 1];
}

/* Places n nodes after `parent`, which is at depth l. */
static void place(const programme *p, hn_shape *s, int parent, int l, int n) {
    for (int r = 0; l < p->depth && r < p->ranks && n > 0; r++) {
        const int j = p->given[l][r][n];
        if (j == 0) continue;
        const int at = s->n++;
        s->node[at] = (hn_shape_node){(int16_t)parent, (int16_t)r, (int16_t)(l + 1)};
        place(p, s, at, l + 1, j - 1);
        n -= j;
    }
}

hunch_status hn_shape_sequoia(hn_shape *s, const hn_rank_rates *rates, int depth, int total, double *tokens, hunch_error *err) {
    programme p = {.rates = rates, .total = total, .ranks = rates->ranks, .depth = depth < rates->depths ? depth : rates->depths};
    const size_t bytes = sizeof *p.given * (size_t)(p.depth > 0 ? p.depth : 1);
    p.given = hn_alloc(bytes);
    if (!p.given) return hn_fail_memory(err, "the choices of a tree", bytes);
    for (int m = 0; m <= MOST; m++) p.whole[p.depth % 2][m] = m > 0;
    for (int l = p.depth - 1; l >= 0; l--) level_up(&p, l);
    if (tokens) *tokens = p.whole[0][total + 1];
    memset(s, 0, sizeof *s);
    place(&p, s, -1, 0, total);
    hn_free(p.given);
    hn_shape_finish(s);
    return HUNCH_OK;
}
