/* SPDX-License-Identifier: Apache-2.0 */
/* pass_places.c - see pass_places.h. */
#include "model/pass_places.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"

static const hn_places_kind *kind_of(const hn_output_stage *d) {
    switch (d->kind) {
    case HN_OUTPUT_MARKOV: return &hn_places_markov;
    case HN_OUTPUT_PREFIX: return &hn_places_prefix;
    case HN_OUTPUT_SELECTOR: return &hn_places_selector;
    case HN_OUTPUT_ALL:
    case HN_OUTPUT_CLUSTERS: break;
    }
    return NULL;
}

static void list_buffers(void *runner, hn_buf_room *room) {
    hn_runner *r = runner;
    r->places->image_buf = hn_buf_room_take(room, sizeof r->places->image);
    r->places->kind->list(r, room);
}

hunch_status hn_places_open(hn_runner *r, int states, hunch_error *err) {
    const hn_places_kind *kind = kind_of(&r->m->arch.draft_head.output);
    if (!kind) return HUNCH_OK;
    r->places = hn_zalloc(1, kind->bytes);
    if (!r->places) return hn_fail_memory(err, "the places of a block", kind->bytes);
    r->places->kind = kind;
    r->places->states = states + 1;
    const hunch_status st = kind->open ? kind->open(r, err) : HUNCH_OK;
    return st ? st : hn_buf_room_open(&r->places->buffers, r->m->backend, list_buffers, r, err);
}

void hn_places_close(hn_runner *r) {
    if (!r->places) return;
    hn_buf_room_close(&r->places->buffers);
    if (r->places->kind->close) r->places->kind->close(r);
    hn_free(r->places);
    r->places = NULL;
}

hn_top hn_place_top(const hn_runner *r, hn_buf_room *room, int outputs) {
    const size_t best = HN_MAX_ROWS * (size_t)r->out.best.k, sums = sizeof(float) * HN_MAX_ROWS * (size_t)hn_sum_parts(outputs);
    return (hn_top){.k = r->out.best.k,
                    .id = hn_buf_room_result(room, sizeof(int32_t) * best),
                    .value = hn_buf_room_result(room, sizeof(float) * best),
                    .scratch = hn_buf_room_take(room, room->backend->top_scratch(room->backend, HN_MAX_ROWS, r->out.best.k)),
                    .sums = hn_buf_room_result(room, sums),
                    .moments = hn_buf_room_result(room, sums)};
}

void hn_place_product(const hn_exec *ex, hn_count n, hn_matrix x, hn_act room, const hn_weight *w, hn_matrix y) {
    const hn_act in = hn_act_of(room, w->in, ex->backend->act_forms(ex->backend, w->dtype));
    const hn_linear_out out = {w, y};
    ex->ops->quantise(ex, n, x, in);
    ex->ops->linear(ex, n, in, &out, 1, false);
}

static void forward(const hn_exec *ex, const void *arg) {
    const hn_runner *r = arg;
    const hn_exec own = hn_runner_exec(ex, r);
    r->places->kind->run(&own, r);
}

void hn_pass_block(hn_runner *r, int blocks) {
    if (r->places->kind->begin) r->places->kind->begin(r, blocks);
}

void hn_pass_places(hn_runner *r, const hn_place *places, int n) {
    hn_places *k = r->places;
    hn_backend *b = r->m->backend;
    assert(n >= 1 && n <= HN_MAX_ROWS);
    for (int i = 0; i < n; i++) {
        assert(r->out.of_row[places[i].row] >= 0 && places[i].from < k->states - 1 && places[i].to >= 0 &&
               places[i].to < k->states - 1);
        k->image.token[i] = places[i].token;
        k->image.place[i] = r->out.of_row[places[i].row];
        k->image.from[i] = places[i].from + 1;
        k->image.to[i] = places[i].to + 1;
    }
    k->n = k->image.n = n;
    b->write(b, k->image_buf, &k->image, sizeof k->image);
    if (k->kind->describe) k->kind->describe(r, places);
    k->ticket = b->submit(b, forward, r);
    b->wait(b, k->ticket);
    if (k->kind->finish) k->kind->finish(r);
}

const void *hn_place_read(const hn_runner *r, hn_buf at, size_t size, int width, int row) {
    hn_backend *b = r->m->backend;
    const size_t bytes = size * (size_t)width;
    return b->read(b, r->places->ticket, hn_at(at, bytes * (size_t)row), bytes);
}

hn_place_result hn_place_of(const hn_runner *r, int i, hn_matrix logits, const hn_top *best) {
    const int parts = hn_sum_parts(logits.cols);
    const float *moments = r->out.entropy ? hn_place_read(r, best->moments, sizeof *moments, parts, i) : NULL;
    hn_place_result p = {.logits = hn_place_read(r, logits.at, sizeof(float), logits.ld, i),
                         .best = hn_place_read(r, best->id, sizeof(int32_t), best->k, i),
                         .value = hn_place_read(r, best->value, sizeof(float), best->k, i),
                         .sum = hn_parts_sum(hn_place_read(r, best->sums, sizeof(float), parts, i), parts),
                         .confidence = NAN};
    p.entropy = hn_entropy_of(p.sum, moments, parts);
    return p;
}

hn_place_result hn_pass_place(const hn_runner *r, int i) {
    return r->places->kind->result(r, i);
}
