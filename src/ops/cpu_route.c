/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_route.c - the choice of a row's experts, and the sum of their results. The products: cpu_experts.c.
 *
 * One rank computes a row from its scores to its choice; then the first rank sorts the pairs of all rows.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ops/cpu_mem.h"
#include "ops/kernels.h"

/* ---- the choice of a row ------------------------------------------------------------------------------------------- */

static void softmax(float *x, int n) {
    float most = -INFINITY, sum = 0;
    for (int e = 0; e < n; e++) most = x[e] > most ? x[e] : most;
    for (int e = 0; e < n; e++) sum += x[e] = hn_exp(x[e] - most);
    for (int e = 0; e < n; e++) x[e] /= sum;
}

static void sigmoids(float *x, int n) {
    for (int e = 0; e < n; e++) x[e] = 1 / (1 + hn_exp(-x[e]));
}

/* The `most` best in [first, last), in order, ties to the lower id; returns their number. */
static int best_of(const float *value, int first, int last, int most, int *best, int n) {
    for (int e = first; e < last; e++) {
        int at = n;
        if (n == most) {
            if (!(value[e] > value[best[n - 1]])) continue;
            at--;
        } else
            n++;
        for (; at > 0 && value[e] > value[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = e;
    }
    return n;
}

/* Chooses groups by the sum of their two largest scores, or by the largest alone; in ascending order. */
static void best_groups(const hn_router *r, const float *value, int *chosen) {
    const int each = r->experts / r->groups;
    float sum[HN_MAX_EXPERTS];
    for (int g = 0; g < r->groups; g++) {
        int two[2] = {g * each, 0};
        const int n = best_of(value, g * each, (g + 1) * each, r->largest ? 1 : 2, two, 0);
        sum[g] = value[two[0]] + (n > 1 ? value[two[1]] : 0);
    }
    const int n = best_of(sum, 0, r->groups, r->groups_used, chosen, 0);
    for (int i = 1; i < n; i++) {
        const int g = chosen[i];
        int at = i;
        for (; at > 0 && chosen[at - 1] > g; at--) chosen[at] = chosen[at - 1];
        chosen[at] = g;
    }
}

static int choose(const hn_router *r, const float *score, int *best) {
    float value[HN_MAX_EXPERTS];
    int group[HN_MAX_EXPERTS], n = 0;
    const float *bias = r->bias.mem ? hn_host_f32(r->bias) : NULL;
    for (int e = 0; e < r->experts; e++) {
        value[e] = bias ? score[e] + bias[e] : score[e];
        if (isnan(value[e])) value[e] = -INFINITY;
    }
    if (r->groups <= 1 || r->groups_used >= r->groups) return best_of(value, 0, r->experts, r->used, best, 0);
    const int each = r->experts / r->groups;
    best_groups(r, value, group);
    for (int g = 0; g < r->groups_used; g++) n = best_of(value, group[g] * each, (group[g] + 1) * each, r->used, best, n);
    return n;
}

static void route_row(const hn_router *r, float *score, int32_t *id, float *share) {
    int best[HN_MAX_USED];
    float sum = 0;
    (r->sigmoid ? sigmoids : softmax)(score, r->experts);
    const int n = choose(r, score, best);
    assert(n == r->used);
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && id[at - 1] > best[i]; at--) id[at] = id[at - 1];
        id[at] = best[i];
    }
    for (int i = 0; i < n; i++) sum += share[i] = score[id[i]];
    for (int i = 0; i < n; i++) {
        if (r->normalised) share[i] /= sum + (r->sum_more > 0 ? r->sum_more : 1e-20f); /* as the reference does: sigmoids may all be 0 */
        share[i] *= r->scale;
        if (r->expert_scale.mem) share[i] *= hn_host_f32(r->expert_scale)[id[i]];
    }
}

/* ---- the pairs of all rows ------------------------------------------------------------------------------------------ */

static void order_pairs(int n, const hn_routing *to) {
    const int32_t *id = hn_host_i32(to->id);
    int32_t *pair = hn_host(to->pair), *row = hn_host(to->row), *first = hn_host(to->first), *distinct = hn_host(to->distinct);
    int32_t next[HN_MAX_EXPERTS] = {0};
    int at = 0, used = to->used;
    for (int i = 0; i < n * used; i++) next[id[i]]++;
    distinct[0] = 0;
    for (int e = 0; e < to->experts; e++) {
        if (next[e] > 0) distinct[1 + distinct[0]++] = e;
        first[e] = at;
        at += next[e];
        next[e] = first[e];
    }
    first[to->experts] = at;
    for (int i = 0; i < n * used; i++) {
        pair[i] = next[id[i]]++;
        row[pair[i]] = i / used;
    }
}

void hn_cpu_route(const hn_exec *ex, hn_count count, const hn_router *router, hn_matrix scores, const hn_routing *to) {
    const int n = hn_cpu_number(count);
    const int used = to->used;
    int first, last;
    assert(n >= 1 && n <= to->max_rows && router->experts <= HN_MAX_EXPERTS && used <= HN_MAX_USED);
    assert(router->experts == to->experts && router->used == used);
    hn_share(ex, n, &first, &last);
    for (int i = first; i < last; i++)
        route_row(router, hn_host_row(scores, i), (int32_t *)hn_host(to->id) + i * used, hn_host_f32(to->share) + i * used);
    hn_cpu_barrier(ex);
    if (ex->rank == 0) order_pairs(n, to);
    hn_cpu_barrier(ex);
}

/* ---- the sum -------------------------------------------------------------------------------------------------------- */

/* Inputs [from, from + count) of row i, at most a group. */
static void combine_part(const hn_exec *ex, const hn_routing *by, hn_matrix results, hn_buf bias, const hn_shared *shared, int i, int from,
                         int count, bool add, float *x) {
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    const int32_t *pair = hn_host_i32(by->pair) + i * by->used, *id = hn_host_i32(by->id) + i * by->used;
    const float *share = hn_host_f32(by->share) + i * by->used;
    float sum[HN_GROUP] = {0}, own[HN_GROUP];
    for (int j = 0; j < by->used; j++) {
        const float *result = hn_host_row(results, pair[j]) + from;
        if (bias.mem) {
            memcpy(own, result, (size_t)count * sizeof *own);
            k->add(own, hn_host_f32(bias) + (size_t)id[j] * (size_t)results.cols + from, count);
            result = own;
        }
        k->merge(sum, result, count, 1, share[j]);
    }
    if (shared->y.at.mem) {
        const float *y = hn_host_row(shared->y, i) + from;
        if (shared->gate.at.mem) {
            const float gate = *hn_host_row(shared->gate, i);
            k->scale(own, y, count, 1 / (1 + hn_exp(-gate)));
            y = own;
        }
        k->add(sum, y, count);
    }
    if (add)
        k->add(x, sum, count);
    else
        memcpy(x, sum, (size_t)count * sizeof *sum);
}

void hn_cpu_combine(const hn_exec *ex, hn_count count, const hn_routing *by, hn_matrix results, hn_buf bias, const hn_shared *shared,
                    bool add, hn_matrix x) {
    const int n = hn_cpu_number(count);
    const int groups = hn_act_groups(x.cols);
    int first, last;
    assert(results.cols == x.cols);
    hn_share(ex, n * groups, &first, &last);
    for (int item = first; item < last; item++) {
        const int i = item / groups, from = item % groups * HN_GROUP, left = x.cols - from;
        combine_part(ex, by, results, bias, shared, i, from, left < HN_GROUP ? left : HN_GROUP, add, hn_host_row(x, i) + from);
    }
    hn_cpu_barrier(ex);
}
