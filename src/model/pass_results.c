/* SPDX-License-Identifier: Apache-2.0 */
/* pass_results.c - what the last pass computed, by the numbers of its rows. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/pass_private.h"

bool hn_feature_wants(const hn_feature_set *s, int boundary) {
    return boundary < 256 && (s->layers[boundary / 64] >> (boundary % 64) & 1);
}

hn_matrix hn_feature_block(const hn_runner *r, int place) {
    return hn_rows_from(r->features.states, r->rows.max * place);
}

int hn_pass_experts(const hn_runner *r, int layer, const int32_t **which) {
    if (!hn_layer_has_experts(&r->m->run.at[layer])) return 0;
    hn_backend *b = r->m->backend;
    const size_t bytes = sizeof(int32_t) * (size_t)(r->buf.routing.experts + 1);
    const int32_t *distinct = b->read(b, r->run.ticket, hn_distinct_of(&r->buf.routing, layer), bytes);
    if (which) *which = distinct + 1;
    return distinct[0];
}

double hn_runner_seconds(hn_runner *r) {
    hn_backend *b = r->m->backend;
    int over = 0;
    while (over < r->n_left && b->done(b, r->left[over])) r->seconds += b->wait(b, r->left[over++]);
    r->n_left -= over;
    memmove(r->left, r->left + over, sizeof *r->left * (size_t)r->n_left);
    return r->seconds;
}

double hn_pass_seconds(const hn_runner *r) {
    return r->run.seconds;
}

const float *hn_pass_logits(const hn_runner *r, int row) {
    assert(r->out.of_row[row] >= 0 && r->out.of_row[row] < r->out.n_logits);
    return r->out.of_row[row] < r->out.n_host ? r->out.host_logits + (size_t)r->out.of_row[row] * (size_t)r->out.logits.ld : NULL;
}

const int32_t *hn_pass_clusters(const hn_runner *r, int row) {
    return r->out.host_clusters ? r->out.host_clusters + r->out.of_row[row] * r->out.nearest.k : NULL;
}

int32_t hn_pass_argmax(const hn_runner *r, int row) {
    const int at = r->out.of_row[row] * r->out.best.k;
    return r->out.host_value[at] > -INFINITY ? r->out.host_best[at] : -1;
}

const int32_t *hn_pass_best(const hn_runner *r, int row, const float **values) {
    const int at = r->out.of_row[row] * r->out.best.k;
    *values = r->out.host_value + at;
    return r->out.host_best + at;
}

double hn_pass_sum(const hn_runner *r, int row) {
    const int parts = hn_sum_parts(hn_arch_logits(&r->m->arch));
    assert(r->out.host_sums && r->out.of_row[row] >= 0 && r->out.of_row[row] < r->out.n_host);
    return hn_parts_sum(r->out.host_sums + r->out.of_row[row] * parts, parts);
}

void hn_pass_want_entropy(hn_runner *r, bool wanted) {
    r->out.entropy = wanted;
}

double hn_pass_entropy(const hn_runner *r, int row) {
    const int parts = hn_sum_parts(hn_arch_logits(&r->m->arch));
    const float *moments = r->out.host_moments;
    return hn_entropy_of(hn_pass_sum(r, row), moments ? moments + r->out.of_row[row] * parts : NULL, parts);
}

double hn_parts_sum(const float *parts, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)parts[i];
    return sum > 1 ? sum : 1; /* also if the best is infinite */
}

double hn_entropy_of(double sum, const float *moments, int parts) {
    double moment = 0;
    for (int i = 0; moments && i < parts; i++) moment += (double)moments[i];
    return moments ? log(sum) - moment / sum : NAN;
}

const float *hn_pass_feature(const hn_runner *r, int boundary, int row) {
    const int place = boundary == HN_FEATURE_POST_NORM ? r->features.n_boundaries : r->features.slot[boundary];
    assert(r->features.of_row[row] >= 0 && place >= 0);
    hn_backend *b = r->m->backend;
    const hn_matrix states = hn_rows_from(hn_feature_block(r, place), r->features.of_row[row]);
    return b->read(b, r->run.ticket, states.at, sizeof(float) * (size_t)states.cols);
}

int hn_pass_features(const hn_runner *r, const hn_feature_set *wanted, hn_buf buffers[HN_MAX_FEATURES], int *ld) {
    int n = 0;
    for (int k = 0; k <= r->m->arch.layers && k <= 256; k++)
        if (hn_feature_wants(wanted, k)) {
            assert(r->features.slot[k] >= 0);
            buffers[n++] = hn_feature_block(r, r->features.slot[k]).at;
        }
    assert(r->features.set.post_norm || !wanted->post_norm);
    if (wanted->post_norm) buffers[n++] = hn_feature_block(r, r->features.n_boundaries).at;
    *ld = r->features.states.ld;
    return n;
}

int hn_pass_further(const hn_runner *r, int row, int step) {
    return r->steps.further[row] + step - 1;
}

int hn_pass_feature_row(const hn_runner *r, int row) {
    return r->features.of_row[row];
}
