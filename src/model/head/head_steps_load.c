/* SPDX-License-Identifier: Apache-2.0 */
/* head_steps_load.c - after the load of head_steps.h's tensors: what steps share, and a smaller vocabulary. */
#include <string.h>

#include "base/mem.h"
#include "model/head/head_steps.h"
#include "model/head/reduced_output.h"
#include "ops/pack.h"

/* 1 / sqrt 2 as the weights of a norm. */
static void write_root_half(hn_model *m) {
    const float half = 0.70710678f;
    m->head.root_half.w.mem = m->weights;
    for (int i = 0; i < m->arch.draft_head.input.feature_width; i++)
        m->backend->write(m->backend, hn_at(m->head.root_half.w, (size_t)i * sizeof half), &half, sizeof half);
}

void hn_steps_share(hn_model *m) {
    const hn_steps_desc *d = &m->arch.draft_head.rows.steps;
    const hn_own_state_desc *state = hn_steps_own_state(d);
    const hn_step *first = m->head.step;
    for (int k = 0; k < d->n; k++) {
        hn_step *s = &m->head.step[k];
        if (!m->arch.draft_head.output.own) s->output = m->output;
        if (k == 0) continue;
        if (d->one_output) {
            s->output = first->output;
            s->output_bias = first->output_bias;
        }
        if (!state || !state->tied) continue;
        s->embedding = first->embedding;
        s->norm = first->norm;
        s->norm_bias = first->norm_bias;
        s->cell_norm = first->cell_norm;
        s->cell_norm_bias = first->cell_norm_bias;
        if (k > 1) memcpy(s->gate, m->head.step[1].gate, sizeof s->gate);
    }
    if (state && state->scale_input) write_root_half(m);
}

/* ---- a smaller vocabulary ------------------------------------------------------------------------------------------------- */

static hunch_status trim_bias(hn_model *m, hn_buf *bias, const int32_t *ids, int n, hunch_error *err) {
    if (!bias->mem) return HUNCH_OK;
    float *chosen = hn_alloc((size_t)n * sizeof *chosen);
    hunch_status st = chosen ? HUNCH_OK : hn_fail_memory(err, "chosen rows of the output", (size_t)n * sizeof *chosen);
    if (!st) {
        const float *all = m->backend->read(m->backend, (hn_ticket){0}, *bias, (size_t)m->arch.vocab * sizeof *all);
        for (int i = 0; i < n; i++) chosen[i] = all[ids[i]];
        m->backend->write(m->backend, *bias, chosen, (size_t)n * sizeof *chosen); /* in its place: it is shorter */
    }
    hn_free(chosen);
    return st;
}

hunch_status hn_steps_trim(hn_model *m, const int32_t *ids, int n, hunch_error *err) {
    const hn_steps_desc *d = &m->arch.draft_head.rows.steps;
    const hn_source *files = m->head.step[0].output.stored.rows ? m->files : NULL;
    hunch_status st = files ? hn_source_check(files, err) : HUNCH_OK; /* a truncated file cannot be read */
    if (st) return st;
    m->head.picked = hn_zalloc((size_t)d->n, sizeof *m->head.picked);
    if (!m->head.picked) return hn_fail_memory(err, "chosen rows of the output", (size_t)d->n * sizeof *m->head.picked);
    for (int k = 0; !st && k < (d->one_output ? 1 : d->n); k++) {
        hn_step *s = &m->head.step[k];
        hn_reduced_output r;
        st = hn_reduce_output(m, &s->output, ids, n, &r, err);
        if (st) return st;
        m->head.picked[k] = r.mem;
        m->head.ids = r.ids;
        m->weight_bytes += hn_packed_bytes(m, &r.w) - hn_packed_bytes(m, &s->output);
        m->macs_per_row += (double)r.w.in * (r.w.out - s->output.out);
        m->bytes.memory += r.bytes;
        s->output = r.w;
        st = trim_bias(m, &s->output_bias, ids, n, err);
    }
    for (int k = 1; !st && d->one_output && k < d->n; k++) m->head.step[k].output = m->head.step[0].output;
    m->arch.vocab = n;
    return st || !files ? st : hn_source_check(files, err); /* nor is a file that was changed meanwhile the model */
}

void hn_steps_close(hn_model *m) {
    for (int k = 0; m->head.picked && k < m->arch.draft_head.rows.steps.n; k++) m->backend->mem_free(m->backend, m->head.picked[k]);
    hn_free(m->head.picked);
    hn_free(m->head.step);
}
