/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - from rows to logits: rows are described in buffers (pass_rows.c), then all workers run the same layer code. Its results:
 * pass_results.c. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "model/pass_private.h"
#include "model/split.h"

/* Copies the chosen rows of the residual stream (or of its norm) to the block of a feature. */
static void export_rows(const hn_exec *ex, const hn_runner *r, size_t index, hn_matrix from, int place) {
    const hn_count n = hn_image_count(r, offsetof(hn_row_image, n_features), r->features.n);
    ex->ops->gather(ex, n, hn_image_at(r, index), from, (hn_buf){NULL, 0}, hn_feature_block(r, place));
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

static void layers(const hn_exec *ex, const hn_runner *r) {
    const bool in_turn = r->m->arch.draft_head.rows.kind == HN_ROWS_TURNS;
    for (int i = 0; i < r->m->run.n; i++) {
        const bool runs = hn_layer_set_has(&r->rows.layers, i);
        if (in_turn && i != r->head.module) continue;
        export_boundary(ex, r, i);
        if (runs) hn_pass_mix(ex, r, i);
        if (r->head.context) continue; /* keys and values only */
        if (runs) hn_layer_ffn(ex, r->m, i, &r->buf);
        if (i == 0) hn_token_inputs_make(ex, r->m, &r->buf);
        if (!runs) continue;
        if (r->m->run.at[i].token_input > 0) hn_layer_token_input(ex, r->m, i, &r->buf);
    }
    export_boundary(ex, r, r->m->arch.layers);
}

/* Of ranks: those of the own slice, which the leader gets. */
static void output_slice(const hn_exec *ex, const hn_runner *r, hn_count n, hn_act in, const hn_output_rows *out, const hn_top *best) {
    const hn_slices *s = &r->m->split->vocab;
    const int first = hn_own_first(s), count = hn_own_count(s);
    hn_output_rows own = *out;
    hn_top top = *best;
    assert(!best->map.mem && !best->sums.mem && !best->moments.mem && best->ld_bias == 0);
    own.y = hn_columns(out->y, first, count);
    if (top.bias.mem) top.bias = hn_at(top.bias, sizeof(float) * (size_t)first);
    if (count > 0) ex->ops->linear_top(ex, n, in, &r->m->split->output, &own, &top);
    ex->ops->join_top(ex, n, s, out, best, r->buf.join_room);
}

/* Logits of the wanted rows: of all outputs, or of the clusters that are nearest by their centroids. */
static void output(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_arch *a = &m->arch;
    const hn_output_stage *d = &a->draft_head.output;
    const hn_act in = hn_act_of(r->out.act, a->hidden, m->output_forms);
    const hn_count n = hn_image_count(r, offsetof(hn_row_image, n_logits), r->out.n_logits);
    const hn_output_rows centroids = {.scale = 1};
    const hn_count full = hn_image_count(r, offsetof(hn_row_image, n_full), r->out.n_full);
    const hn_output_rows out = {a->logit_scale, a->logit_cap, full, r->out.logits};
    hn_top best = hn_runner_top(r, r->out.best);
    if (a->output_bias) best.bias = m->output_bias;
    if (m->split) {
        output_slice(ex, r, n, in, &out, &best);
        return;
    }
    if (d->kind != HN_OUTPUT_CLUSTERS) {
        ex->ops->linear_top(ex, n, in, &m->output, &out, &best);
        return;
    }
    const hn_clusters of = {d->clusters.used, a->vocab / d->clusters.n, r->out.nearest.id};
    ex->ops->linear_top(ex, n, in, &m->head.centroids, &centroids, &r->out.nearest);
    ex->ops->clusters_top(ex, n, in, &m->output, &of, &out, &best);
}

/* The gathered rows. */
static hn_count out_rows(const hn_runner *r) {
    return hn_image_count(r, offsetof(hn_row_image, n_out), r->out.n);
}

/* Norms the gathered rows for the output matrix, and into out.norm if that is exported, or read by a later pass. */
static void norm_rows(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_output_stage *d = &m->arch.draft_head.output;
    const hn_ops *o = ex->ops;
    const hn_count n = out_rows(r);
    const hn_norm *norm = r->head.module > 0 ? &m->head.further[r->head.module - 1].output_norm : &m->output_norm;
    const hn_act act = hn_act_of(r->out.act, m->arch.hidden, m->output_forms);
    hn_matrix from = r->out.x, kept = hn_no_matrix;
    if (d->norm == HN_NORM_TWICE) {
        o->norm(ex, n, r->out.x, norm, hn_act_of(act, act.in, 0), r->out.norm);
        from = r->out.norm;
    } else if (r->features.set.post_norm || d->norm == HN_NORM_READ || hn_head_in_order(&m->arch.draft_head)) {
        kept = r->out.norm;
    }
    if (d->norm == HN_NORM_NONE)
        o->quantise(ex, n, r->out.x, act);
    else
        o->norm(ex, n, from, norm, act, kept);
}

/* What the rows of the next level read, as a product of the normed rows. */
static void carry_rows(const hn_exec *ex, const hn_runner *r) {
    const hn_linear_out out = {&r->m->head.carry, r->out.carried};
    const hn_act in = hn_act_of(r->out.act, r->m->arch.hidden, r->m->output_forms);
    if (r->head.n_output_rows > 0) ex->ops->linear(ex, out_rows(r), in, &out, 1, false);
}

/* From the stream to logits: the wanted rows are normed and multiplied by the output matrix. */
static void tail(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_ops *o = ex->ops;
    const hn_buf none = {NULL, 0};
    if (r->out.n > 0) {
        o->gather(ex, out_rows(r), hn_image_at(r, offsetof(hn_row_image, out)), r->buf.x, none, r->out.x);
        norm_rows(ex, r);
        if (m->arch.draft_head.output.norm == HN_NORM_CARRIED) carry_rows(ex, r);
    }
    if (r->features.set.post_norm && r->features.n > 0)
        export_rows(ex, r, offsetof(hn_row_image, normed), r->out.norm, r->features.n_boundaries);
    if (hn_arch_is_head(&m->arch)) hn_head_keep_outputs(ex, r);
    if (r->out.n_logits > 0) output(ex, r);
}

static void forward(const hn_exec *ex, const void *arg) {
    const hn_runner *r = arg;
    const hn_exec own = hn_runner_exec(ex, r);
    if (r->run.moves) hn_cache_move(ex, r->groups.cache);
    hn_one_wait_take(&own, r);
    if (r->m->arch.draft_head.rows.kind == HN_ROWS_STEPS) {
        hn_pass_steps(&own, r);
        return;
    }
    prologue(&own, r);
    layers(&own, r);
    tail(&own, r);
    hn_one_wait_verify(&own, r);
}

hunch_status hn_pass_run(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, hunch_error *err) {
    const hn_pass_options nothing = {0};
    const hunch_status st = hn_pass_reserve(r, rows, n, cache_seq, n_seqs, &nothing, err);
    return st ? st : hn_pass_run_with(r, rows, n, cache_seq, n_seqs, &nothing, err);
}

void hn_pass_expect(const hn_runner *r, int32_t token) {
    hn_token_input_expect(r->m, token);
}

/* Of a model whose matrices are in a file, which is checked before a pass, since a truncated file cannot be read, and after it, since a
 * file that was changed meanwhile is not the model. */
static hunch_status check_files(const hn_runner *r, hunch_error *err) {
    return r->m->files ? hn_source_check(r->m->files, err) : HUNCH_OK;
}

hunch_status hn_pass_begin(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more,
                           hunch_error *err) {
    hn_backend *b = r->m->backend;
    const double start = hn_now();
    const hunch_status st = check_files(r, err);
    assert(!r->run.open);
    const hunch_status lost = st ? st : hn_backend_failed(b, err);
    if (lost) return lost;
    for (int i = 0; i < n; i++)
        if (rows[i].token >= 0) hn_pass_expect(r, rows[i].token);
    hn_told_begin(r);
    hn_pass_describe(r, rows, n, cache_seq, n_seqs, more);
    memcpy(r->run.cache_seq, cache_seq, (size_t)n_seqs * sizeof *cache_seq);
    r->run.moves = hn_cache_moves_ready(r->groups.cache);
    if (r->run.moves && !r->told) hn_cache_tell_moves(r->groups.cache); /* a drafter's pass, of which ranks hear nothing */
    hn_told_send(r);
    r->run.seconds = hn_now() - start;
    r->out.host_logits = r->out.host_value = r->out.host_sums = r->out.host_moments = NULL;
    r->out.host_best = r->out.host_clusters = NULL;
    r->run.ticket = b->submit(b, forward, r);
    r->run.open = true;
    return HUNCH_OK;
}

/* What the host reads of every pass; the rest is read when it is asked for. */
static void read_results(hn_runner *r) {
    hn_backend *b = r->m->backend;
    hn_pass_output *o = &r->out;
    const hn_ticket t = r->run.ticket;
    const size_t full = (size_t)o->n_host, k = (size_t)o->n_logits * (size_t)o->best.k;
    const size_t sums = full * (size_t)hn_sum_parts(hn_arch_logits(&r->m->arch));
    o->host_logits = full ? b->read(b, t, o->logits.at, sizeof(float) * full * (size_t)o->logits.ld) : NULL;
    o->host_sums = full && o->best.sums.mem ? b->read(b, t, o->best.sums, sizeof(float) * sums) : NULL;
    o->host_moments = o->entropy && o->host_sums ? b->read(b, t, o->best.moments, sizeof(float) * sums) : NULL;
    o->host_best = k ? b->read(b, t, o->best.id, sizeof(int32_t) * k) : NULL;
    o->host_value = k ? b->read(b, t, o->best.value, sizeof(float) * k) : NULL;
    hn_one_wait_read(r);
    o->host_clusters = k && o->nearest.k ? b->read(b, t, o->nearest.id, sizeof(int32_t) * (size_t)(o->n_logits * o->nearest.k)) : NULL;
}

hunch_status hn_pass_end(hn_runner *r, hunch_error *err) {
    hn_backend *b = r->m->backend;
    assert(r->run.open);
    r->run.open = false;
    r->run.seconds += b->wait(b, r->run.ticket);
    r->seconds += r->run.seconds;
    if (hn_runner_has_states(r)) hn_walk_done(r, r->run.cache_seq, r->rows.n_seqs);
    hunch_status st = check_files(r, err);
    if (!st) st = hn_backend_failed(b, err);
    if (!st) read_results(r);
    return st;
}

void hn_pass_leave(hn_runner *r) {
    assert(r->run.open && r->m->backend->one_wait && r->n_left < HN_KEPT_LISTS);
    r->run.open = false;
    r->seconds += r->run.seconds;
    r->left[r->n_left++] = r->run.ticket;
    if (hn_runner_has_states(r)) hn_walk_done(r, r->run.cache_seq, r->rows.n_seqs);
}

bool hn_pass_may_leave(hn_runner *r) {
    (void)hn_runner_seconds(r);
    return r->n_left < HN_KEPT_LISTS;
}

hunch_status hn_pass_run_with(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                              const hn_pass_options *more, hunch_error *err) {
    const hunch_status st = hn_pass_begin(r, rows, n, cache_seq, n_seqs, more, err);
    return st ? st : hn_pass_end(r, err);
}

hunch_status hn_pass_run_followed(hn_runner *r, hunch_error *err) {
    hn_backend *b = r->m->backend;
    hunch_status st = check_files(r, err);
    for (int i = 0; !st && i < r->rows.n; i++)
        if (r->rows.image->token[i] >= 0) hn_pass_expect(r, r->rows.image->token[i]);
    if (!st) hn_backend_run(b, forward, r);
    return st ? st : check_files(r, err);
}

void hn_pass_set_logit(hn_runner *r, int row, int32_t token, float value) {
    hn_backend *b = r->m->backend;
    assert(!r->run.open && r->out.of_row[row] >= 0 && r->out.of_row[row] < r->out.n_full);
    b->write(b, hn_at(hn_rows_from(r->out.logits, r->out.of_row[row]).at, sizeof value * (size_t)token), &value, sizeof value);
    r->run.ticket = b->submit(b, NULL, NULL);
    b->wait(b, r->run.ticket);
    read_results(r);
}
