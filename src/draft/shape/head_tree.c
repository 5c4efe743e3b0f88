/* SPDX-License-Identifier: Apache-2.0 */
/* head_tree.c - EAGLE-2's tree of the likeliest paths, see head_tree.h. */
#include "draft/shape/head_tree.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

hunch_status hn_beam_open(hn_beam *b, int width, int levels, hunch_error *err) {
    b->width = width;
    b->cap = width + (levels - 1) * width * width;
    b->node = hn_zalloc((size_t)b->cap, sizeof *b->node);
    b->frontier = hn_zalloc((size_t)width, sizeof *b->frontier);
    return b->node && b->frontier ? HUNCH_OK : hn_fail_memory(err, "draft tree", (size_t)b->cap * sizeof *b->node);
}

void hn_beam_close(hn_beam *b) {
    hn_free(b->node);
    hn_free(b->frontier);
    memset(b, 0, sizeof *b);
}

void hn_beam_start(hn_beam *b) {
    b->n = b->first = b->n_frontier = 0;
}

void hn_beam_add(hn_beam *b, int parent, const int32_t *token, const float *p, int n) {
    assert(parent < b->first || parent == -1);
    for (int i = 0; i < n && b->n < b->cap; i++) {
        const float before = parent < 0 ? 0 : b->node[parent].score;
        if (token[i] < 0) return; /* a row with fewer tokens */
        b->node[b->n++] = (hn_beam_node){.token = token[i], .parent = parent, .p = p[i], .score = before + logf(p[i])};
    }
}

/* Inserts i into a list of at most `most` nodes, best first, of equal ones the earlier; returns the list's length. */
static int list_insert(const hn_beam *b, int *list, int n, int most, int i) {
    int at = n;
    while (at > 0 && b->node[list[at - 1]].score < b->node[i].score) at--;
    if (at == most) return n;
    const int end = n < most ? n : most - 1;
    memmove(list + at + 1, list + at, (size_t)(end - at) * sizeof *list);
    list[at] = i;
    return end + 1;
}

void hn_beam_advance(hn_beam *b) {
    b->n_frontier = 0;
    for (int i = b->first; i < b->n; i++) b->n_frontier = list_insert(b, b->frontier, b->n_frontier, b->width, i);
    b->first = b->n;
}

int hn_beam_best(const hn_beam *b, int total, int *list) {
    int n = 0;
    /* A child's score is never above its parent's, and of equal ones the parent is the earlier: it is taken first. */
    for (int i = 0; i < b->n && total > 0; i++) n = list_insert(b, list, n, total, i);
    for (int i = 1; i < n; i++) /* in the order of creation */
        for (int k = i; k > 0 && list[k - 1] > list[k]; k--) {
            const int t = list[k];
            list[k] = list[k - 1];
            list[k - 1] = t;
        }
    return n;
}
