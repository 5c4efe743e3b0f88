/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - from rows to logits: rows are described in buffers (pass_rows.c), then all workers run the same layer code. Its results:
 * pass_results.c. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "model/pass_private.h"

/* Copies the chosen rows of the residual stream (or of its norm) to the block of a feature. */
static void export_rows(const hn_exec *ex, const hn_runner *r, size_t index, hn_matrix from, int place) {
    ex->ops->gather(ex, r->features.n, hn_image_at(r, index), from, (hn_buf){NULL, 0}, hn_feature_block(r, place));
}

static void export_boundary(const hn_exec *ex, const hn_runner *r, int k) {
    if (r->features.n > 0 && k <= 256 && r->features.slot[k] >= 0)
        export_rows(ex, r, offsetof(hn_row_image, feature), r->buf.x, r->features.slot[k]);
}

void hn_pass_rotations(const hn_exec *ex, const hn_runner *r) {
    for (int i = 0; i < r->m->arch.rotations; i++) ex->ops->rope_table(ex, &r->rows.turned, &r->buf.rotation[i]);
}

/* The beginning of the stream: embeddings, or a draft head's combination of them with its features. */
static void prologue(const hn_exec *ex, const hn_runner *r) {
    const hn_head_input in = hn_head_input_of(r);
    hn_layer_head(ex, r->m, &in, &r->buf);
    hn_token_products_make(ex, r->m, &r->buf);
    hn_pass_rotations(ex, r);
}

static void delta_layer(const hn_exec *ex, const hn_runner *r, int i) {
    const hn_layer_place place = r->groups.place[i];
    const hn_delta d = hn_layer_delta_sizes(&r->m->arch.layer[i]);
    const int inputs = r->groups.first + r->groups.inputs, states = r->groups.first + r->groups.states;
    const hn_plain_rows rows = hn_cache_rows(r->groups.cache, inputs);
    const hn_rows *in = &r->rows.group[r->groups.inputs], *at_states = &r->rows.group[r->groups.states];
    const hn_delta_at at = {.walk = &r->walk.at,
                            .inputs = {rows.pool, in->page_table, rows.page_bytes, rows.row_bytes,
                                       hn_layer_delta_bytes(&d) * (size_t)place.index, rows.page_rows, in->page_stride},
                            .states = {rows.pool, at_states->page_table, r->walk.next_state, rows.page_bytes,
                                       sizeof(float) * (size_t)hn_delta_state(&d), d.value_heads * place.index,
                                       hn_cache_page_units(r->groups.cache, states), at_states->page_stride}};
    hn_layer_delta(ex, r->m, i, &at, &r->buf);
}

static void mixer(const hn_exec *ex, const hn_runner *r, int i) {
    const hn_layer_place place = r->groups.place[i];
    if (r->m->arch.layer[i].mixer == HN_MIXER_DELTA) {
        delta_layer(ex, r, i);
        return;
    }
    const hn_kv kv = hn_cache_kv(r->groups.cache, r->groups.first + place.group, place.index);
    if (r->m->arch.layer[i].mixer == HN_MIXER_LATENT)
        hn_layer_latent(ex, r->m, i, &r->rows.group[place.group], &kv, &r->buf);
    else if (r->head.context)
        hn_layer_context(ex, r->m, i, &r->rows.group[place.group], &kv, &r->buf);
    else
        hn_layer_attention(ex, r->m, i, &r->rows.group[place.group], &kv, &r->buf);
}

static void layers(const hn_exec *ex, const hn_runner *r) {
    const bool in_turn = r->m->arch.draft_head.rows.kind == HN_ROWS_TURNS;
    for (int i = 0; i < r->m->arch.layers; i++) {
        if (in_turn && i != r->head.module) continue;
        export_boundary(ex, r, i);
        mixer(ex, r, i);
        if (r->head.context) continue; /* keys and values only */
        hn_layer_ffn(ex, r->m, i, &r->buf);
        if (i == 0) hn_token_inputs_make(ex, r->m, &r->buf);
        if (r->m->arch.layer[i].token_input > 0) hn_layer_token_input(ex, r->m, i, &r->buf);
    }
    export_boundary(ex, r, r->m->arch.layers);
}

/* Logits of the wanted rows: of all outputs, or of the clusters that are nearest by their centroids. */
static void output(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_arch *a = &m->arch;
    const hn_output_stage *d = &a->draft_head.output;
    const hn_act in = hn_act_of(r->out.act, a->hidden, m->output_forms);
    const hn_output_rows out = {a->logit_scale, a->logit_cap, r->out.n_full, r->out.logits}, centroids = {.scale = 1};
    if (d->kind != HN_OUTPUT_CLUSTERS) {
        ex->ops->linear_top(ex, r->out.n_logits, in, &m->output, &out, &r->out.best);
        return;
    }
    const hn_clusters of = {d->clusters.used, a->vocab / d->clusters.n, r->out.nearest.id};
    ex->ops->linear_top(ex, r->out.n_logits, in, &m->head.centroids, &centroids, &r->out.nearest);
    ex->ops->clusters_top(ex, r->out.n_logits, in, &m->output, &of, &out, &r->out.best);
}

/* Norms the gathered rows for the output matrix, and into out.norm if that is exported, or read by a later pass. */
static void norm_rows(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_output_stage *d = &m->arch.draft_head.output;
    const hn_ops *o = ex->ops;
    const float eps = m->arch.norm_eps;
    const hn_buf norm = r->head.module > 0 ? m->head.further[r->head.module - 1].output_norm : m->output_norm;
    const hn_act act = hn_act_of(r->out.act, m->arch.hidden, m->output_forms);
    hn_matrix from = r->out.x, kept = hn_no_matrix;
    if (d->norm == HN_NORM_TWICE) {
        o->rmsnorm(ex, r->out.n, r->out.x, norm, eps, hn_act_of(act, act.in, 0), r->out.norm);
        from = r->out.norm;
    } else if (r->features.set.post_norm || d->norm == HN_NORM_READ || hn_head_in_order(&m->arch.draft_head)) {
        kept = r->out.norm;
    }
    if (d->norm == HN_NORM_NONE)
        o->quantise(ex, r->out.n, r->out.x, act);
    else
        o->rmsnorm(ex, r->out.n, from, norm, eps, act, kept);
}

/* What the rows of the next level read, as a product of the normed rows. */
static void carry_rows(const hn_exec *ex, const hn_runner *r) {
    const hn_linear_out out = {&r->m->head.carry, r->out.carried};
    const hn_act in = hn_act_of(r->out.act, r->m->arch.hidden, r->m->output_forms);
    if (r->head.n_output_rows > 0) ex->ops->linear(ex, r->out.n, in, &out, 1, false);
}

/* From the stream to logits: the wanted rows are normed and multiplied by the output matrix. */
static void tail(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_ops *o = ex->ops;
    const hn_buf none = {NULL, 0};
    if (r->out.n > 0) {
        o->gather(ex, r->out.n, hn_image_at(r, offsetof(hn_row_image, out)), r->buf.x, none, r->out.x);
        norm_rows(ex, r);
        if (m->arch.draft_head.output.norm == HN_NORM_CARRIED) carry_rows(ex, r);
    }
    if (r->features.set.post_norm && r->features.n > 0)
        export_rows(ex, r, offsetof(hn_row_image, normed), r->out.norm, r->features.n_boundaries);
    if (hn_arch_is_head(&m->arch)) hn_head_keep_outputs(ex, r);
    if (r->out.n_logits > 0) output(ex, r);
}

static void forward(void *arg, int rank, int ranks) {
    const hn_runner *r = arg;
    const hn_exec ex = {r->ops, rank, ranks};
    if (r->m->arch.draft_head.rows.kind == HN_ROWS_STEPS) {
        hn_pass_steps(&ex, r);
        return;
    }
    prologue(&ex, r);
    layers(&ex, r);
    tail(&ex, r);
}

hunch_status hn_pass_run(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, hunch_error *err) {
    const hn_pass_options nothing = {0};
    const hunch_status st = hn_pass_reserve(r, rows, n, cache_seq, n_seqs, &nothing, err);
    return st ? st : hn_pass_run_with(r, rows, n, cache_seq, n_seqs, &nothing, err);
}

void hn_pass_expect(const hn_runner *r, int32_t token) {
    hn_token_input_expect(r->m, token);
}

static hunch_status run_rows(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                             const hn_pass_options *more, hunch_error *err) {
    /* matrices in a file are checked before, since a truncated file cannot be read, and after, since a file that was
     * changed meanwhile is not the model */
    const hn_source *files = r->m->files;
    hunch_status st = files ? hn_source_check(files, err) : HUNCH_OK;
    if (st) return st;
    for (int i = 0; i < n; i++) hn_pass_expect(r, rows[i].token);
    hn_pass_describe(r, rows, n, cache_seq, n_seqs, more);
    const hn_ops *o = &r->m->ops;
    hn_pool_run(o->pool, forward, r);
    if (r->walk.step) hn_walk_done(r, cache_seq, n_seqs);
    st = files ? hn_source_check(files, err) : HUNCH_OK;
    if (st) return st;
    r->out.host_logits = o->view(o, r->out.logits.at);
    r->features.host = o->view(o, r->features.states.at);
    r->out.host_best = o->view(o, r->out.best.id);
    r->out.host_value = o->view(o, r->out.best.value);
    r->out.host_clusters = r->out.nearest.k ? o->view(o, r->out.nearest.id) : NULL;
    r->out.host_sums = r->out.best.sums.mem ? o->view(o, r->out.best.sums) : NULL;
    return HUNCH_OK;
}

hunch_status hn_pass_run_with(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                              const hn_pass_options *more, hunch_error *err) {
    const double start = hn_now();
    const hunch_status st = run_rows(r, rows, n, cache_seq, n_seqs, more, err);
    r->seconds += hn_now() - start;
    return st;
}
