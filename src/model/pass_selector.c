/* SPDX-License-Identifier: Apache-2.0 */
/* pass_selector.c - the stage after DFlash 2's block: the likeliest tokens of a place, its candidates, are scored by the token before it.
 *
 *   score(b) = logit(b) + sum over k of A[token before][k] (W h)[k] B[b][k]           h: the place's state after the last norm
 *
 * The candidates of all places and what of the scores depends on them are computed once a block; of other tokens there is no score. */
#include <math.h>
#include <stddef.h>

#include "model/pass_places.h"

typedef struct selector {
    hn_places places;
    hn_matrix before;        /* A's rows of the rows' tokens */
    hn_matrix hidden, after; /* W h of the gathered rows; B's rows of their candidates, side by side below each other */
    hn_act in;
    hn_buf candidate;        /* int32 [gathered rows][candidates] tokens */
    int32_t token[HN_MAX_ROWS * HN_MAX_TOP]; /* the same, 0 where there is none */
    /* results of the rows, best first */
    int32_t best[HN_MAX_ROWS][HN_MAX_TOP]; /* -1: there are no more */
    float score[HN_MAX_ROWS][HN_MAX_TOP];
    int n[HN_MAX_ROWS];
} selector;

enum { LANES = 16 }; /* of the sum: k mod LANES, then in halves */

static selector *selector_of(const hn_runner *r) {
    return (selector *)r->places;
}

static const hn_selector_desc *desc_of(const hn_runner *r) {
    return &r->m->arch.draft_head.output.selector;
}

static void list(const hn_runner *r, hn_buf_room *room) {
    const hn_selector_desc *d = desc_of(r);
    selector *k = selector_of(r);
    k->before = hn_buf_room_results(room, HN_MAX_ROWS, d->rank);
    k->hidden = hn_buf_room_results(room, HN_MAX_ROWS, d->rank);
    k->after = hn_buf_room_results(room, HN_MAX_ROWS * d->candidates, d->rank);
    k->in = hn_buf_room_act(room, HN_MAX_ROWS, r->m->arch.hidden);
    k->candidate = hn_buf_room_take(room, sizeof(int32_t) * (size_t)(HN_MAX_ROWS * d->candidates));
}

/* ---- of a block ------------------------------------------------------------------------------------------------------------ */

/* The best outputs of each gathered row of the pass: as many as it lists, which are at least the candidates. */
static const int32_t *listed(const hn_runner *r, int row) {
    return r->out.host_best + row * r->out.best.k;
}

static void prepare(const hn_exec *ex, const void *arg) {
    const hn_runner *r = arg;
    const selector *k = selector_of(r);
    const hn_head *h = &r->m->head;
    const hn_exec own = hn_runner_exec(ex, r);
    const int n = r->out.n_full;
    const hn_rows rows = {.n = hn_number(n * desc_of(r)->candidates), .token = k->candidate};
    hn_place_product(&own, hn_number(n), r->out.norm, k->in, &h->selector, k->hidden);
    own.ops->embed(&own, &rows, &h->codes_after, 1, k->after);
}

static void begin(hn_runner *r, int blocks HN_UNUSED) {
    const int candidates = desc_of(r)->candidates, n = r->out.n_full * candidates;
    hn_backend *o = r->m->backend;
    selector *k = selector_of(r);
    for (int i = 0; i < n; i++) {
        const int32_t token = listed(r, i / candidates)[i % candidates];
        k->token[i] = token < 0 ? 0 : token;
    }
    o->write(o, k->candidate, k->token, sizeof *k->token * (size_t)n);
    o->submit(o, prepare, r);
}

/* ---- of rows ----------------------------------------------------------------------------------------------------------------- */

static void run(const hn_exec *ex, const hn_runner *r) {
    const selector *k = selector_of(r);
    const hn_rows rows = {.n = hn_place_count(&k->places), .token = hn_place_at(&k->places, offsetof(hn_place_image, token))};
    ex->ops->embed(ex, &rows, &r->m->head.codes_before, 1, k->before);
}

static float product_of_three(const float *a, const float *b, const float *c, int n) {
    float lane[LANES] = {0};
    for (int i = 0; i < n; i++) lane[i % LANES] += a[i] * b[i] * c[i];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static const float *row_of(const hn_runner *r, hn_matrix x, int row) {
    return hn_place_read(r, x.at, sizeof(float), x.ld, row);
}

/* Enters a candidate into the list of row i, best first, of equal ones the lower token. */
static void insert(selector *k, int i, int32_t token, float score) {
    int at = k->n[i]++;
    for (; at > 0 && (score > k->score[i][at - 1] || (score == k->score[i][at - 1] && token < k->best[i][at - 1])); at--) {
        k->score[i][at] = k->score[i][at - 1];
        k->best[i][at] = k->best[i][at - 1];
    }
    k->score[i][at] = score;
    k->best[i][at] = token;
}

static void score_row(hn_runner *r, int i) {
    selector *k = selector_of(r);
    const hn_selector_desc *d = desc_of(r);
    const int row = k->places.image.place[i];
    const int32_t *candidate = listed(r, row);
    const float *logit = r->out.host_value + row * r->out.best.k;
    k->n[i] = 0;
    for (int c = 0; c < d->candidates && candidate[c] >= 0; c++) {
        const float more = product_of_three(row_of(r, k->before, i), row_of(r, k->hidden, row),
                                            row_of(r, k->after, row * d->candidates + c), d->rank);
        if (logit[c] + more > -INFINITY) insert(k, i, candidate[c], logit[c] + more);
    }
    for (int c = k->n[i]; c < HN_MAX_TOP; c++) {
        k->best[i][c] = -1;
        k->score[i][c] = -INFINITY;
    }
}

static void finish(hn_runner *r) {
    for (int i = 0; i < r->places->n; i++) score_row(r, i);
}

static hn_place_result result(const hn_runner *r, int i) {
    const selector *k = selector_of(r);
    hn_place_result p = {.logits = k->score[i], .tokens = k->best[i], .n_tokens = k->n[i], .best = k->best[i], .value = k->score[i],
                         .confidence = NAN};
    double moment = 0;
    for (int c = 0; c < k->n[i]; c++) {
        const double d = (double)k->score[i][c] - (double)k->score[i][0];
        p.sum += exp(d);
        moment += d * exp(d);
    }
    if (!(p.sum > 1)) p.sum = 1;
    p.entropy = log(p.sum) - moment / p.sum;
    return p;
}

const hn_places_kind hn_places_selector = {.bytes = sizeof(selector), .list = list, .begin = begin, .run = run, .finish = finish,
                                           .result = result};
