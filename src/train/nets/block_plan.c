/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.c - see block_plan.h. */
#include "train/nets/block_plan.h"

#include <math.h>

#include "base/random.h"

static double share_of(const hn_block_plan *p, int depth) {
    const double share = pow(p->keep, depth);
    return share > p->least ? share : p->least;
}

int hn_block_plan_most(const hn_block_plan *p) {
    double shares = 0;
    for (int d = 1; d < p->drafts; d++) shares += share_of(p, d);
    return p->block ? 2 * p->most_rows + p->block : (int)ceil(shares * p->most_rows) + p->drafts;
}

/* Whether a draft after row i has a label. In chains the first draft is not that of a mask. */
static bool has_label(const hn_block_plan *p, int i, int end, const hn_real *weight) {
    for (int k = p->block ? 0 : 1; k < p->drafts && i + k < end; k++)
        if (weight[i + k] > 0) return true;
    return false;
}

/* Rows of all texts with labels, in random order. Returns their number. */
static int candidates(hn_block_plan *p, int texts, const int *start, const hn_real *weight, uint64_t seed) {
    int n = 0;
    for (int text = 0; text < texts; text++)
        for (int i = start[text]; i < start[text + 1]; i++) {
            p->depth[i] = 0;
            if (has_label(p, i, start[text + 1], weight)) p->chosen[n++] = i;
        }
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)(hn_splitmix(&seed) % (uint64_t)(i + 1)), kept = p->chosen[i];
        p->chosen[i] = p->chosen[k];
        p->chosen[k] = kept;
    }
    return n;
}

/* The end of a row's text. */
static int end_of(const int *start, int texts, int row) {
    int low = 0, high = texts;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        *(start[middle] <= row ? &low : &high) = middle;
    }
    return start[low + 1];
}

/* A chain of depth d has all depths before: the first rows in the random order have the longest ones. */
static void choose_chains(hn_block_plan *p, int n, int texts, const int *start) {
    for (int d = 1; d < p->drafts; d++) {
        const int most = (int)(share_of(p, d) * n);
        for (int j = 0, taken = 0; j < n && taken < most; j++) {
            const int i = p->chosen[j];
            if (p->depth[i] != d - 1 || i + d >= end_of(start, texts, i)) continue;
            p->depth[i] = d;
            taken++;
        }
    }
}

static void choose_anchors(hn_block_plan *p, int n) {
    const int most = hn_block_plan_most(p) / p->block;
    for (int j = 0; j < n && j < most; j++) p->depth[p->chosen[j]] = p->block;
}

void hn_block_plan_choose(hn_block_plan *p, int texts, const int *start, const hn_real *weight, uint64_t seed) {
    const int n = candidates(p, texts, start, weight, seed);
    if (p->block)
        choose_anchors(p, n);
    else
        choose_chains(p, n, texts, start);
    p->blocks = p->rows = 0;
    for (int text = 0; text < texts; text++) {
        p->first[text] = p->blocks;
        for (int i = start[text]; i < start[text + 1]; i++) {
            if (p->depth[i] == 0) continue;
            p->of[p->blocks] = (hn_text_block){p->rows, p->depth[i], i - start[text] + 1};
            p->root[p->blocks++] = i;
            p->rows += p->depth[i];
        }
    }
    p->first[texts] = p->blocks;
}
