/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_dist.c - lookup of tokens in a proposal distribution: one, a range, or a list, without a pass over the vocabulary. */
#include "draft/proposal_dist.h"

#include <string.h>

#include "sample/sampler.h"

int hn_proposal_find(const hn_proposal_dist *q, int32_t token) {
    if (token < 0) return -1;
    if (!q->id) return token < q->n ? token : -1;
    return hn_dist_find(q->id, q->n, token);
}

float hn_proposal_weight(const hn_proposal_dist *q, int32_t token) {
    const int i = hn_proposal_find(q, token);
    return i < 0 ? 0 : q->weight[i];
}

double hn_proposal_probability(const hn_proposal_dist *q, int32_t token) {
    const double sum = hn_weights_sum(q->weight, q->n);
    return sum > 0 ? (double)hn_proposal_weight(q, token) / sum : 0;
}

/* The first index from `at` on whose id is not below the token. Galloping, then binary search: almost free
 * if two lists are similar, and few steps if the distribution's is far longer. */
static int seek(const hn_proposal_dist *q, int at, int32_t token) {
    int step = 1, end = at; /* ids before `at` are below */
    while (end < q->n && q->id[end] < token) {
        at = end + 1;
        end = q->n - at > step ? at + step : q->n;
        step *= 2;
    }
    while (at < end) {
        const int half = at + (end - at) / 2;
        if (q->id[half] < token)
            at = half + 1;
        else
            end = half;
    }
    return at;
}

const float *hn_proposal_range(const hn_proposal_dist *q, int *from, int32_t first, int n, float *room) {
    if (!q->id && q->n - first >= n) return q->weight + first;
    memset(room, 0, (size_t)n * sizeof *room);
    if (!q->id) {
        if (q->n > first) memcpy(room, q->weight + first, (size_t)(q->n - first) * sizeof *room);
        return room;
    }
    int i = seek(q, *from, first);
    for (; i < q->n && q->id[i] - first < n; i++) room[q->id[i] - first] = q->weight[i];
    *from = i;
    return room;
}

const float *hn_proposal_of(const hn_proposal_dist *q, int *from, const int32_t *token, int n, float *room) {
    if (!q->id && token[n - 1] < q->n) {
        for (int j = 0; j < n; j++) room[j] = q->weight[token[j]];
        return room;
    }
    for (int j = 0; j < n; j++) {
        if (q->id) *from = seek(q, *from, token[j]);
        const bool listed = q->id ? *from < q->n && q->id[*from] == token[j] : token[j] < q->n;
        room[j] = listed ? q->weight[q->id ? *from : token[j]] : 0;
    }
    return room;
}
