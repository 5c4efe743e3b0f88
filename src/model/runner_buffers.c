/* SPDX-License-Identifier: Apache-2.0 */
/* runner_buffers.c - the buffers of a runner: one list of all, each with its size. The lists of its parts follow pass_private.h. */
#include <string.h>

#include "base/least.h"
#include "model/arch/latent_desc.h"
#include "model/ffns.h"
#include "model/mixers.h"
#include "model/pass_private.h"
#include "model/split.h"

/* The largest widths of any layer. */
typedef struct widths {
    hn_widths mix;
    hn_ffn_widths ffn;
    int pairs;  /* of rows and experts */
    int token;  /* of a token's own input */
    int inputs; /* of tokens, for all layers */
} widths;

/* Those of the layer's mixers. */
static void widen_mixers(hn_widths *w, const hn_runner *r, int i) {
    const hn_layer_desc *d = &r->m->run.at[i];
    const hn_layer_place *place = &r->groups.place[i];
    for (int k = 0, at = 0; k < hn_layer_mixers(d); at += place->n[k++]) {
        hn_width_of of = {.backend = r->m->backend, .rows = r->rows.max, .positions = r->max_context + HN_MAX_ROWS};
        const hn_kept_place first = place->kept[at];
        hn_kv kv;
        if (place->n[k] > 0 && r->groups.kind[first.group] == HN_CACHE_KV) {
            kv = hn_cache_kv(r->groups.cache, r->groups.first + first.group, first.index);
            of.kv = &kv;
        }
        if (d->mixer[k].kind->widen) d->mixer[k].kind->widen(w, d, &d->mixer[k], &of);
    }
}

static widths widest(const hn_runner *r) {
    const hn_model *m = r->m;
    widths w = {0};
    for (int i = 0; i < m->run.n; i++) {
        const hn_layer_desc *d = &m->run.at[i];
        const hn_ffn_kind *ffn = hn_ffn_of(d);
        if (ffn) ffn->widen(&w.ffn, m, i);
        w.inputs += d->token_input;
        w.token = hn_most(w.token, d->token_input);
        w.ffn.branch |= d->post_norms;
        widen_mixers(&w.mix, r, i);
    }
    w.mix.qkv = hn_most(w.mix.qkv, w.mix.attended + 2 * w.mix.kv);
    w.mix.mixed = hn_most(w.mix.mixed, w.mix.attended);
    w.pairs = r->rows.max * w.ffn.used;
    return w;
}

static hn_matrix room_rows(hn_buf_room *room, const hn_runner *r, int cols) {
    return hn_buf_room_matrix(room, r->rows.max, cols);
}

/* Of ranks: what joins need beside the own slices. */
static void list_joins(hn_buf_room *room, hn_runner *r, const widths *w) {
    const hn_backend *b = r->m->backend;
    int width = r->m->arch.hidden, expert = 0, heads = 0;
    for (int i = 0; i < r->m->arch.layers; i++) {
        const hn_layer_split *s = &r->m->split->layer[i];
        width = hn_most(width, hn_most(hn_slices_width(&s->mixer.mixed), hn_most(hn_slices_width(&s->gated), hn_slices_width(&s->shared))));
        expert = hn_most(expert, hn_slices_width(&s->expert));
        if (hn_layer_norms_rows(&r->m->run.at[i])) heads = hn_most(heads, hn_slices_width(&s->q) + hn_slices_width(&s->k));
    }
    const size_t of_rows = b->join_room(b, r->rows.max, hn_most(width, heads), r->out.max_logits, r->out.best.k);
    const size_t of_pairs = b->join_room(b, w->pairs, expert, 0, 0);
    r->buf.heads = room_rows(room, r, heads);
    r->buf.joined = hn_buf_room_act(room, r->rows.max, width);
    r->buf.expert_joined = hn_buf_room_act(room, w->pairs, expert);
    r->buf.join_room = hn_buf_room_take(room, of_rows > of_pairs ? of_rows : of_pairs);
}

static void list_layers(hn_buf_room *room, hn_runner *r, const widths *w) {
    const hn_model *m = r->m;
    const hn_arch *a = &m->arch;
    const bool pair = m->run.n > 0 && hn_layer_reads_pair(&m->run.at[0]);
    hn_pass_buffers *l = &r->buf;
    l->x = room_rows(room, r, a->hidden);
    l->in = hn_buf_room_act(room, r->rows.max, pair ? 2 * a->hidden : a->hidden);
    l->mixed = hn_buf_room_act(room, r->rows.max, w->mix.mixed);
    l->gated = hn_buf_room_act(room, r->rows.max, hn_most(w->ffn.gated, w->token));
    if (m->split) list_joins(room, r, w);
    if (m->sorted_width > 0) l->sorted = hn_buf_room_act(room, r->rows.max, m->sorted_width);
    l->qkv = room_rows(room, r, w->mix.qkv);
    l->attended = room_rows(room, r, w->mix.attended);
    l->gate = room_rows(room, r, hn_most(w->ffn.gate, w->token));
    l->up = room_rows(room, r, w->ffn.up);
    l->token_inputs = room_rows(room, r, w->inputs);
    l->token_products = room_rows(room, r, w->inputs);
    l->branch = room_rows(room, r, w->ffn.branch || hn_head_conv_desc(&a->draft_head) ? a->hidden : 0);
    l->halves = room_rows(room, r, w->ffn.halves ? a->hidden : 0);
    for (int i = 0; i < a->rotations; i++)
        l->rotation[i] = (hn_rope_table){hn_model_rope(m, i, r->max_context), room_rows(room, r, a->rotation[i].dims).at};
    l->scratch = hn_buf_room_take(room, w->mix.scratch);
    l->fused = room_rows(room, r, w->mix.fused);
    l->z = room_rows(room, r, w->mix.z);
    l->gates = room_rows(room, r, w->mix.gates);
    l->head_in = hn_buf_room_act(room, hn_least(r->rows.max, HN_MAX_ROWS) * w->mix.heads, w->mix.head);
}

static void list_experts(hn_buf_room *room, hn_runner *r, const widths *w) {
    const hn_arch *a = &r->m->arch;
    const size_t ids = sizeof(int32_t) * (size_t)w->pairs, counts = sizeof(int32_t) * (size_t)(w->ffn.experts + 1);
    hn_pass_buffers *l = &r->buf;
    if (w->ffn.experts == 0) return;
    l->scores = room_rows(room, r, w->ffn.experts);
    l->shared_gate = room_rows(room, r, 1);
    l->expert_gated = hn_buf_room_act(room, w->pairs, w->ffn.expert);
    l->expert_out = hn_buf_room_matrix(room, w->pairs, a->hidden);
    l->routing = (hn_routing){.experts = w->ffn.experts,
                              .used = w->ffn.used,
                              .max_rows = r->rows.max,
                              .id = hn_buf_room_take(room, ids),
                              .share = hn_buf_room_take(room, ids),
                              .pair = hn_buf_room_take(room, ids),
                              .row = hn_buf_room_take(room, ids),
                              .first = hn_buf_room_take(room, counts),
                              .distinct = hn_buf_room_result(room, counts * (size_t)a->layers),
                              .gathered = hn_buf_room_act(room, w->pairs, a->hidden)};
}

/* Of models with recurrent layers. */
static void list_walk(hn_buf_room *room, hn_runner *r) {
    const size_t cells = (size_t)hn_grid_most_cells(r);
    if (!hn_runner_has_states(r)) return;
    r->walk.at.step = hn_buf_room_take(room, r->walk.step ? hn_walk_most_steps(r) * sizeof *r->walk.step : 0);
    r->walk.at.first = hn_buf_room_take(room, sizeof r->walk.first);
    r->walk.at.fresh = hn_buf_room_take(room, sizeof r->walk.fresh);
    r->grid.at.cell = hn_buf_room_take(room, r->grid.cell ? cells * sizeof *r->grid.cell : 0);
    r->grid.at.slot = hn_buf_room_take(room, r->grid.cell ? cells * HN_GRID * sizeof *r->grid.slot : 0);
    r->grid.at.row = hn_buf_room_take(room, r->grid.cell ? (size_t)r->rows.max * sizeof *r->grid.row : 0);
    r->grid.at.first = hn_buf_room_take(room, sizeof r->grid.first);
    for (int g = 0; g < r->groups.n; g++) {
        const size_t pages = (size_t)r->rows.max_texts * (size_t)r->rows.group[g].page_stride;
        if (r->groups.kind[g] == HN_CACHE_STATE) r->walk.next_state[g] = hn_buf_room_take(room, sizeof(int32_t) * pages);
    }
}

/* Of a draft head outside its layers. */
static void list_head(hn_buf_room *room, hn_runner *r) {
    const hn_arch *a = &r->m->arch;
    const hn_input_stage *d = &a->draft_head.input;
    hn_pass_buffers *l = &r->buf;
    const bool lstm = d->stream == HN_STREAM_LSTM, joint = d->stream == HN_STREAM_JOINT;
    const bool normed = joint ? d->joint.norms : d->stream == HN_STREAM_FEATURE && d->feature.norm_each;
    const int feature = d->features * d->feature_width, read = joint || lstm ? hn_arch_token_width(a) + feature : feature;
    const hn_conv_desc *conv = hn_head_conv_desc(&a->draft_head);
    if (!hn_arch_is_head(a)) return;
    l->normed = room_rows(room, r, conv ? a->hidden : 0);
    l->coefficients = room_rows(room, r, conv ? hn_conv_coefficients(conv, a->hidden) : 0);
    l->joint = room_rows(room, r, read);
    l->joint_in = hn_buf_room_act(room, r->rows.max, read);
    l->states = room_rows(room, r, normed ? feature : 0);
    l->pair = room_rows(room, r, 2 * a->hidden);
    l->token = room_rows(room, r, a->hidden);
    l->lstm = room_rows(room, r, lstm ? 4 * a->hidden : 0);
    r->head.store = hn_buf_room_matrix(room, r->head.store_rows, feature);
    r->head.outputs = hn_buf_room_matrix(room, r->head.output_rows, hn_pass_output_width(a));
}

static void list_steps(hn_buf_room *room, hn_runner *r) {
    hn_step_buffers *s = &r->steps.buffers;
    if (!hn_head_steps(&r->m->arch.draft_head)) return;
    const hn_step_widths w = hn_pass_step_widths(&r->m->arch);
    s->state = room_rows(room, r, w.state);
    s->result = room_rows(room, r, w.result);
    s->mid = room_rows(room, r, w.mid);
    s->token = room_rows(room, r, w.token);
    s->in = hn_buf_room_act(room, r->rows.max, w.in);
}

/* The k best of each row with logits, `lists` times. */
static hn_top room_top(hn_buf_room *room, const hn_runner *r, int k, int lists) {
    const size_t n = (size_t)r->out.max_logits * (size_t)k * (size_t)lists;
    return (hn_top){.k = k,
                    .id = hn_buf_room_result(room, sizeof(int32_t) * n),
                    .value = hn_buf_room_result(room, sizeof(float) * n),
                    .scratch = hn_buf_room_take(room, room->backend->top_scratch(room->backend, r->out.max_logits, k))};
}

static void list_outputs(hn_buf_room *room, hn_runner *r) {
    const hn_arch *a = &r->m->arch;
    const hn_output_stage *d = &a->draft_head.output;
    const int logits = hn_arch_logits(a);
    r->out.x = hn_buf_room_matrix(room, r->out.rows, a->hidden);
    r->out.norm = hn_buf_room_matrix(room, r->out.rows, a->hidden);
    r->out.carried = hn_buf_room_matrix(room, r->out.rows, d->norm == HN_NORM_CARRIED ? a->draft_head.input.feature_width : 0);
    r->out.act = hn_buf_room_act(room, r->out.rows, a->hidden);
    r->out.logits = hn_buf_room_results(room, r->out.max_logits, logits);
    r->out.lists = room_top(room, r, r->out.best.k, room->backend->one_wait && hn_arch_is_head(a) ? HN_KEPT_LISTS : 1);
    r->out.lists.map = r->m->head.ids;
    const size_t sums = sizeof(float) * (size_t)r->out.max_logits * (size_t)hn_sum_parts(logits);
    r->out.lists.sums = hn_buf_room_result(room, hn_arch_is_head(a) ? sums : 0);
    r->out.lists.moments = hn_buf_room_result(room, hn_arch_is_head(a) ? sums : 0);
    r->out.best = r->out.lists;
    if (d->kind == HN_OUTPUT_CLUSTERS) r->out.nearest = room_top(room, r, d->clusters.used, 1);
    r->features.states = hn_buf_room_results(room, r->rows.max * (r->features.n_boundaries + 1), a->hidden);
}

/* The descriptions of rows: parts of one buffer, and the page tables of each group. */
static void list_rows(hn_buf_room *room, hn_runner *r) {
    const size_t bytes = hn_image_bytes(r->rows.path_room);
    const hn_buf image = r->rows.image_buf = room->backend->one_wait ? hn_buf_room_result(room, bytes) : hn_buf_room_take(room, bytes);
    const hn_rows rows = {.n = {hn_at(image, offsetof(hn_row_image, n)), 0},
                          .n_seqs = {hn_at(image, offsetof(hn_row_image, n_seqs)), 0},
                          .token = hn_at(image, offsetof(hn_row_image, token)),
                          .position = hn_at(image, offsetof(hn_row_image, position)),
                          .slot = hn_at(image, offsetof(hn_row_image, slot)),
                          .seq = hn_at(image, offsetof(hn_row_image, seq)),
                          .path_start = hn_at(image, offsetof(hn_row_image, path_start)),
                          .path_slots = hn_at(image, offsetof(hn_row_image, path_slots)),
                          .seq_first = hn_at(image, offsetof(hn_row_image, seq_first)),
                          .committed = hn_at(image, offsetof(hn_row_image, committed)),
                          .direct = hn_at(image, offsetof(hn_row_image, direct)),
                          .last = hn_at(image, offsetof(hn_row_image, last)),
                          .from = hn_at(image, offsetof(hn_row_image, seen_from))};
    for (int g = 0; g < HN_MODEL_GROUPS; g++) {
        const int stride = r->rows.group[g].page_stride;
        r->rows.group[g] = rows;
        r->rows.group[g].page_stride = stride;
        if (r->groups.borrowed) r->rows.group[g].slot = (hn_buf){NULL, 0};
        r->rows.group[g].page_table = hn_buf_room_take(room, sizeof(int32_t) * (size_t)r->rows.max_texts * (size_t)stride);
    }
    r->rows.turned = rows;
    r->rows.turned.position = hn_at(image, offsetof(hn_row_image, turned));
    r->buf.rows = &r->rows.group[0];
    r->buf.each = hn_at(image, offsetof(hn_row_image, each));
}

void hn_runner_list_buffers(void *runner, hn_buf_room *room) {
    hn_runner *r = runner;
    const widths w = widest(r);
    list_layers(room, r, &w);
    list_experts(room, r, &w);
    list_walk(room, r);
    list_head(room, r);
    list_steps(room, r);
    list_outputs(room, r);
    list_rows(room, r);
    hn_one_wait_list_buffers(room, r);
}
