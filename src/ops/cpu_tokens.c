/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_tokens.c - operations on tokens for backends where a round waits once: what the host does else in sample/, verify/ and draft/shape/.
 * On a CPU they are the definition that these are compared with, token for token: plain loops, not fast ones. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "ops/cpu_mem.h"
#include "ops/vocab_ops.h"

void hn_cpu_take_tokens(const hn_exec *ex, hn_count n, hn_buf from, hn_buf src, hn_buf to, hn_buf dst) {
    const int32_t *at = hn_host_i32(from), *place = hn_host_i32(to), *token = hn_host_i32(src);
    int32_t *out = hn_host(dst);
    for (int i = 0; ex->rank == 0 && i < hn_cpu_number(n); i++) out[place[i]] = token[at[i]] < 0 ? 0 : token[at[i]];
    hn_cpu_barrier(ex);
}

/* ---- draws ------------------------------------------------------------------------------------------------------------ */

/* A number that orders floats as they are ordered, and its inverse. NaN is the least. */
static uint32_t order_of(float x) {
    uint32_t u;
    if (isnan(x)) return 0;
    memcpy(&u, &x, sizeof u);
    return u >> 31 ? ~u : u | 0x80000000u;
}

/* What is kept of a row: weight[i] > 0. Of the tokens of the least key that is kept, those of lower id. */
typedef struct cut {
    const float *key;
    float *weight;
    int vocab;
} cut;

/* The weight counts as one, or as its mass in units. */
static double counted(float w, bool mass) { return w > 0 ? mass ? hn_mass_of(w) : 1 : 0; }

static double counted_from(const cut *c, uint32_t least, bool mass) {
    double sum = 0;
    for (int i = 0; i < c->vocab; i++)
        if (order_of(c->key[i]) >= least) sum += counted(c->weight[i], mass);
    return sum;
}

/* Keeps the shortest run of tokens, by descending key and then ascending id, that counts `target`; all if there is none. */
static void cut_run(const cut *c, double target, bool mass) {
    uint32_t low = 0, high = UINT32_MAX; /* the greatest key from which on the tokens count enough is in [low, high) */
    if (counted_from(c, low, mass) < target) return;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        *(counted_from(c, middle, mass) >= target ? &low : &high) = middle;
    }
    double sum = counted_from(c, low + 1, mass);
    for (int i = 0; i < c->vocab; i++) {
        const uint32_t at = order_of(c->key[i]);
        if (at > low) continue;
        if (at < low || sum >= target) {
            c->weight[i] = 0;
            continue;
        }
        sum += counted(c->weight[i], mass);
    }
}

static int32_t race(const hn_draw *d, const float *weight, int vocab) {
    hn_random_key key = {.seed = d->seed, .position = d->position, .purpose = HN_PURPOSE_TARGET};
    double first = INFINITY;
    int32_t winner = -1;
    for (int i = 0; i < vocab; i++) {
        if (!(weight[i] > 0)) continue;
        key.token = (uint32_t)i;
        const double time = -log(hn_random_uniform(&key)) / (double)weight[i];
        if (time < first) {
            first = time;
            winner = i;
        }
    }
    return winner;
}

static int32_t draw(const hn_draw *d, const float *l, int vocab, float *weight) {
    const hn_vocab_ops *v = hn_vocab_ops_best();
    const int32_t best = v->argmax(l, vocab);
    if (best < 0) return -1;
    v->weights(l, vocab, l[best], d->scale, weight);
    if (d->top_k > 0 && d->top_k < vocab) {
        const cut by_logit = {l, weight, vocab};
        for (int i = 0; i < vocab; i++)
            if (weight[i] == 0 && l[i] > -INFINITY) weight[i] = 0x1p-149f; /* it is one of the k, if it cannot be drawn either */
        cut_run(&by_logit, d->top_k, false);
        for (int i = 0; i < vocab; i++)
            if (weight[i] == 0x1p-149f) weight[i] = 0;
    }
    if (d->top_p < 1) {
        const cut by_weight = {weight, weight, vocab};
        cut_run(&by_weight, d->top_p * counted_from(&by_weight, 0, true), true);
    }
    for (int i = 0; i < vocab; i++)
        if ((double)weight[i] < d->min_p) weight[i] = 0; /* the greatest weight is 1 */
    return race(d, weight, vocab);
}

size_t hn_cpu_sample_scratch(const hn_backend *b, int vocab) { return sizeof(float) * (size_t)vocab * hn_cpu_threads(b); }

void hn_cpu_sample(const hn_exec *ex, hn_count count, const hn_sample *s) {
    const int n = hn_cpu_number(count), vocab = s->logits.cols;
    const hn_draw *d = hn_host(s->draw);
    int32_t *token = hn_host(s->token);
    for (int i = ex->rank; i < n; i += ex->ranks) {
        const size_t best = (size_t)i * (size_t)s->k;
        if (d[i].scale > 0)
            token[i] = draw(&d[i], hn_host_row(s->logits, i), vocab, hn_host_f32(s->scratch) + (size_t)ex->rank * (size_t)vocab);
        else
            token[i] = hn_host_f32(s->value)[best] > -INFINITY ? hn_host_i32(s->id)[best] : -1;
    }
    hn_cpu_barrier(ex);
}

/* ---- paths ------------------------------------------------------------------------------------------------------------ */

static void match_tree(const hn_match *m, int first, int rows, int32_t *out) {
    const int32_t *parent = hn_host_i32(m->parent) + first, *token = hn_host_i32(m->token) + first;
    const int32_t *after = hn_host_i32(m->after), *of_row = hn_host_i32(m->of_row) + first;
    int depth[HN_MAX_ROWS] = {0}, deepest = 0; /* -1: the target would not have said it */
    assert(rows >= 1 && rows <= HN_MAX_ROWS);
    for (int i = 1; i < rows; i++) {
        assert(parent[i] >= 0 && parent[i] < i);
        depth[i] = depth[parent[i]] >= 0 && token[i] == after[of_row[parent[i]]] ? depth[parent[i]] + 1 : -1;
        if (depth[i] > depth[deepest]) deepest = i;
    }
    out[0] = depth[deepest];
    out[1] = after[of_row[deepest]];
    for (int i = deepest; i > 0; i = parent[i]) out[1 + depth[i]] = i;
}

void hn_cpu_verify_match(const hn_exec *ex, const hn_match *m) {
    int32_t *out = hn_host(m->out);
    for (int t = ex->rank; t < hn_cpu_number(m->n); t += ex->ranks)
        match_tree(m, hn_host_i32(m->first)[t], hn_host_i32(m->rows)[t], out + t * HN_MATCH_OUT);
    hn_cpu_barrier(ex);
}

/* ---- likeliest paths -------------------------------------------------------------------------------------------------- */

/* The nodes that are taken so far, best first. */
typedef struct best_paths {
    int n, width;
    int32_t *row, *token;
    float *score;
} best_paths;

/* Behind those of the same score, which are earlier. */
static void take_path(best_paths *b, int32_t row, int32_t token, float score) {
    int at = b->n;
    while (at > 0 && b->score[at - 1] < score) at--;
    if (at == b->width) return;
    if (b->n < b->width) b->n++;
    for (int i = b->n - 1; i > at; i--) {
        b->row[i] = b->row[i - 1];
        b->token[i] = b->token[i - 1];
        b->score[i] = b->score[i - 1];
    }
    b->row[at] = row;
    b->token[at] = token;
    b->score[at] = score;
}

static void take_successors(const hn_beam_level *l, best_paths *b, int row) {
    const int32_t *id = hn_host_i32(l->from.id) + (size_t)row * (size_t)l->from.k;
    const float *value = hn_host_f32(l->from.value) + (size_t)row * (size_t)l->from.k, before = hn_host_f32(l->score)[row];
    double sum = 0;
    for (int i = 0; i < l->sum_parts; i++) sum += (double)hn_host_f32(l->from.sums)[row * l->sum_parts + i];
    if (!(sum > 1)) sum = 1;
    for (int k = 0; k < l->from.k && id[k] >= 0 && value[k] > -INFINITY; k++)
        take_path(b, row, id[k], before + logf((float)(exp((double)value[k] - (double)value[0]) / sum)));
}

void hn_cpu_beam(const hn_exec *ex, const hn_beam_level *l) {
    const int32_t *first = hn_host_i32(l->first);
    assert(l->width >= 1 && l->width <= HN_MAX_TOP);
    for (int t = ex->rank; t < hn_cpu_number(l->n); t += ex->ranks) {
        const size_t at = (size_t)t * (size_t)l->width;
        best_paths b = {.width = l->width, .row = (int32_t *)hn_host(l->row) + at, .token = (int32_t *)hn_host(l->token) + at,
                        .score = hn_host_f32(l->path_score) + at};
        for (int row = first[t]; row < first[t + 1]; row++) take_successors(l, &b, row);
        for (int i = b.n; i < l->width; i++) b.row[i] = b.token[i] = -1;
    }
    hn_cpu_barrier(ex);
}
