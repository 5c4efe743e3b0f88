/* SPDX-License-Identifier: Apache-2.0 */
/* toy_mixers.h - kinds of mixers that no model has, put into the layers that passes of an opened model run (hn_model.run): what the cache
 * and the passes do for any kind. Without weights, and plain C on the memory of a CPU. Include after cmocka.
 *
 *   a running mean   the mean of a layer's input over the last rows of a row's path: rows of a window, no state
 *   a running sum    S = S / 2 + the layer's input: a state, of another shape than a delta net's, and the inputs of rows
 */
#ifndef HN_TEST_TOY_MIXERS_H
#define HN_TEST_TOY_MIXERS_H
#include "engine/engine.h"
#include "fixture.h"
#include "model/mixers.h"
#include "model/weights.h"
#include "ops/act.h"
#include "ops/cpu_mem.h"

typedef struct toy_desc {
    int width, taps; /* of the input; of the mean: rows */
} toy_desc;
HELPER const toy_desc *toy_of(const hn_mixer_desc *own) { return (const void *)own->own; }

HELPER float *toy_input(const hn_mixing *x, int row) {
    return (float *)(void *)((unsigned char *)hn_host(x->in.data) + hn_act_f32_off(x->in.in, x->in.max_rows, row));
}

/* What a row keeps at a slot. */
HELPER float *toy_kept(const hn_input_pages *p, int seq, int slot) {
    const int32_t page = hn_host_i32(p->table)[p->stride * seq + slot / p->page_rows];
    unsigned char *at = (unsigned char *)hn_host(p->pool) + p->page_bytes * (size_t)page + p->row_bytes * (size_t)(slot % p->page_rows);
    return (float *)(void *)(at + p->off);
}

HELPER void toy_add(const hn_mixing *x, int row, const float *y, float times) {
    float *to = hn_host_row(x->to, row);
    for (int d = 0; d < toy_of(x->own)->width; d++) to[d] = (x->add ? to[d] : 0) + times * y[d];
}

/* ---- a running mean ---------------------------------------------------------------------------------------------------------- */

HELPER int mean_keeps(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_cache_group keep[HN_MOST_KEPT]) {
    keep[0] = (hn_cache_group){.name = "rows", .kind = HN_CACHE_ROWS, .window = toy_of(own)->taps, .units = 1,
                               .unit_bytes = sizeof(float) * (size_t)toy_of(own)->width};
    return 1;
}

HELPER void mean_run(const hn_exec *ex, const hn_mixing *x) {
    const hn_rows *rows = x->kept[0].rows;
    const hn_input_pages *p = &x->kept[0].inputs;
    const int32_t *seq = hn_host_i32(rows->seq), *slot = hn_host_i32(rows->slot), *position = hn_host_i32(rows->position);
    const toy_desc *t = toy_of(x->own);
    float *sum = malloc((size_t)t->width * sizeof *sum);
    int first, last;
    hn_share(ex, hn_cpu_number(rows->n), &first, &last);
    for (int i = first; i < last; i++) memcpy(toy_kept(p, seq[i], slot[i]), toy_input(x, i), (size_t)t->width * sizeof(float));
    hn_cpu_barrier(ex);
    for (int i = first; i < last; i++) {
        const int committed = hn_host_i32(rows->committed)[seq[i]], from = position[i] < t->taps ? 0 : position[i] - t->taps + 1;
        const bool in_order = hn_host_i32(rows->direct)[seq[i]];
        memset(sum, 0, (size_t)t->width * sizeof *sum);
        for (int at = from; at <= position[i]; at++) {
            const int32_t *path = hn_host_i32(rows->path_slots) + hn_host_i32(rows->path_start)[i];
            const float *row = toy_kept(p, seq[i], at < committed || in_order ? at : path[at - committed]);
            for (int d = 0; d < t->width; d++) sum[d] += row[d];
        }
        toy_add(x, i, sum, x->times / (float)(position[i] + 1 - from));
    }
    hn_cpu_barrier(ex);
    free(sum);
}
HELPER const hn_mixer_kind toy_mean = {.name = "a running mean", .keeps = mean_keeps, .run = mean_run};

/* ---- a running sum ------------------------------------------------------------------------------------------------------------ */

HELPER int sum_keeps(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_cache_group keep[HN_MOST_KEPT]) {
    const size_t bytes = sizeof(float) * (size_t)toy_of(own)->width;
    keep[0] = (hn_cache_group){.name = "state", .kind = HN_CACHE_STATE, .units = 1, .unit_bytes = bytes};
    keep[1] = (hn_cache_group){.name = "inputs", .kind = HN_CACHE_ROWS, .window = 1, .units = 1, .unit_bytes = bytes};
    return 2;
}

/* The steps of one sequence, as a delta net's (ops/cpu_delta.c); level k > 0 is a row of `levels`. */
HELPER void sum_walk(const hn_mixing *x, int seq, float *levels) {
    const hn_state_pages *p = &x->kept[0].states;
    const int32_t *first = hn_host_i32(x->walk->first);
    const hn_walk_step *step = (const hn_walk_step *)hn_host(x->walk->step);
    const int width = toy_of(x->own)->width, at = p->stride * seq + p->first / p->page_units;
    unsigned char *unit = (unsigned char *)hn_host(p->pool) + p->unit_bytes * (size_t)(p->first % p->page_units);
    const float *state = (const float *)(const void *)(unit + p->page_bytes * (size_t)hn_host_i32(p->table)[at]);
    float *next = (float *)(void *)(unit + p->page_bytes * (size_t)hn_host_i32(p->next)[at]), *leaf = levels;
    if (hn_host_i32(x->walk->fresh)[seq]) memset(next, 0, p->unit_bytes), state = next;
    for (int i = first[seq]; i < first[seq + 1]; i++) {
        const hn_walk_step *s = &step[i];
        float *kept = toy_kept(&x->kept[1].inputs, seq, s->slot);
        if (s->row >= 0) memcpy(kept, toy_input(x, s->row), (size_t)width * sizeof *kept);
        const float *from = s->from ? levels + (size_t)width * (size_t)s->from : state;
        float *to = s->to < 0 ? leaf : s->to ? levels + (size_t)width * (size_t)s->to : next;
        for (int d = 0; d < width; d++) to[d] = from[d] / 2 + kept[d];
        if (s->to == HN_WALK_STATE) state = next;
        if (s->row >= 0) toy_add(x, s->row, to, x->times);
    }
}

HELPER void sum_run(const hn_exec *ex, const hn_mixing *x) {
    float *levels = malloc((size_t)(HN_WALK_LEVELS + 1) * (size_t)toy_of(x->own)->width * sizeof *levels);
    int first, last;
    hn_share(ex, hn_cpu_number(x->s->rows->n_seqs), &first, &last);
    for (int s = first; s < last; s++) sum_walk(x, s, levels);
    hn_cpu_barrier(ex);
    free(levels);
}
HELPER const hn_mixer_kind toy_sum = {.name = "a running sum", .keeps = sum_keeps, .run = sum_run};

/* ---- models that have them ---------------------------------------------------------------------------------------------------- */

HELPER hn_mixer_desc toy(const hn_mixer_kind *kind, const hn_model *m, int taps, float times) {
    hn_mixer_desc d = {.kind = kind, .times = times};
    *(toy_desc *)(void *)d.own = (toy_desc){m->arch.hidden, taps};
    return d;
}

/* The model runs layers that `change` has changed, until it closes. */
HELPER void toy_change(hn_model *m, void (*change)(const hn_model *m, hn_layer_desc *l, int i)) {
    enum { OPEN = 8, MOST = 8 };
    static hn_layer_desc layer[OPEN][MOST];
    static int opened;
    hn_layer_desc *l = layer[opened++ % OPEN];
    assert_in_range(m->arch.layers, 1, MOST);
    memcpy(l, m->arch.layer, (size_t)m->arch.layers * sizeof *l);
    for (int i = 0; i < m->arch.layers; i++) change(m, &l[i], i);
    m->run.at = l;
    hn_model_choose_forms(m);
}

/* Beside each mixer a mean, over more or fewer rows. */
HELPER void toy_beside(const hn_model *m, hn_layer_desc *l, int i) { l->mixer[1] = toy(&toy_mean, m, 2 + 3 * (i % 2), 0.5f); }
/* Means alone: no keys, no state. The second layer has a mixer alone, the third a feed-forward part alone. */
HELPER void toy_alone(const hn_model *m, hn_layer_desc *l, int i) {
    l->mixer[0] = i == 2 ? (hn_mixer_desc){.kind = NULL} : toy(&toy_mean, m, 4, 0);
    if (i == 1) l->ffn = HN_FFN_NONE;
}
/* In place of every other layer's mixer. */
HELPER void toy_turns(const hn_model *m, hn_layer_desc *l, int i) {
    if (i % 2) l->mixer[0] = toy(&toy_mean, m, 5, 0);
}
/* Recurrent layers of two shapes; all that attended have the one. */
HELPER void toy_shapes(const hn_model *m, hn_layer_desc *l, int i HN_UNUSED) {
    if (hn_layer_attends(l)) l->mixer[0] = toy(&toy_sum, m, 1, 0.25f);
}
/* Recurrent layers, a mean, and attention, each beside another. */
HELPER void toy_pairs(const hn_model *m, hn_layer_desc *l, int i) {
    l->mixer[1] = i % 2 ? toy(&toy_mean, m, 3, 0.5f) : toy(&toy_sum, m, 1, 0.25f);
}
#endif
