/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - from rows to logits: rows are described in buffers (pass_rows.c), then all workers run the same layer code. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/least.h"
#include "base/mem.h"
#include "model/pass_private.h"

static int pad16(int n) {
    return (n + 15) & ~15;
}

static bool wants_boundary(const hn_feature_set *s, int k) {
    return k < 256 && (s->layers[k / 64] >> (k % 64) & 1);
}

/* Reserves the next bytes of the block of buffers. */
static hn_buf take(size_t *total, size_t bytes) {
    const hn_buf b = {NULL, *total};
    *total += (bytes + 63) & ~(size_t)63;
    return b;
}

static hn_buf take_floats(const hn_runner *r, size_t *total, int cols) {
    return take(total, sizeof(float) * (size_t)r->max_rows * (size_t)cols);
}

static hn_matrix take_matrix(size_t *total, int rows, int cols) {
    return (hn_matrix){take(total, sizeof(float) * (size_t)rows * (size_t)pad16(cols)), cols, pad16(cols)};
}

/* As many rows as a pass may have. */
static hn_matrix take_rows(const hn_runner *r, size_t *total, int cols) {
    return take_matrix(total, r->max_rows, cols);
}

static hn_act take_act(const hn_runner *r, size_t *total, int rows, int in) {
    return (hn_act){take(total, r->m->ops.act_bytes(in, rows)), in, rows, 0};
}

/* The largest widths of any layer. */
typedef struct widths {
    int q, kv, ffn, qkv, mixed, fused, z, gates;
    int experts, used, expert, pairs; /* pairs of rows and experts */
    bool in_steps, branch;
    size_t scratch, delta;
} widths;

static void widen_delta(widths *w, const hn_layer_desc *l) {
    const hn_delta d = hn_layer_delta_sizes(l);
    const size_t scratch = hn_delta_scratch(&d);
    w->qkv = hn_most(w->qkv, hn_delta_channels(&d));
    w->mixed = hn_most(w->mixed, hn_delta_values(&d));
    w->z = hn_most(w->z, hn_delta_values(&d));
    w->gates = hn_most(w->gates, 2 * d.value_heads);
    if (l->delta.fused || l->delta.fused_gates)
        w->fused = hn_most(w->fused, hn_delta_channels(&d) + hn_delta_values(&d) + 2 * d.value_heads);
    if (scratch > w->delta) w->delta = scratch;
}

static widths widest(const hn_runner *r, int max_context) {
    const hn_model *m = r->m;
    const hn_arch *a = &m->arch;
    widths w = {0};
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        w.ffn = hn_most(w.ffn, d->ffn == HN_FFN_EXPERTS ? d->experts.shared_width : d->ffn_width);
        w.experts = hn_most(w.experts, d->experts.count);
        w.used = hn_most(w.used, d->experts.used);
        w.expert = hn_most(w.expert, d->experts.width);
        w.in_steps |= hn_ffn_in_steps(a, i);
        w.branch |= d->post_norms || d->experts.shared_width > 0;
        if (d->mixer == HN_MIXER_DELTA) {
            widen_delta(&w, d);
            continue;
        }
        const size_t s = m->ops.attention_scratch(&m->ops, r->max_rows, d->heads, d->head_dim, max_context + HN_MAX_ROWS);
        w.q = hn_most(w.q, d->heads * d->head_dim);
        w.kv = hn_most(w.kv, d->kv_heads * d->head_dim);
        if (s > w.scratch) w.scratch = s;
        if (d->gated) w.fused = hn_most(w.fused, 2 * d->heads * d->head_dim);
        if (d->gated) w.z = hn_most(w.z, d->heads * d->head_dim);
    }
    w.qkv = hn_most(w.qkv, w.q + 2 * w.kv);
    w.mixed = hn_most(w.mixed, w.q);
    w.pairs = r->max_rows * w.used;
    return w;
}

/* The most steps of a pass: its rows, and for each sequence rows before it, which may all be absorbed, and draft rows of earlier ones. */
static size_t most_steps(const hn_runner *r) {
    return (size_t)r->max_rows + (size_t)HN_MAX_TEXTS * (2 * HN_MAX_ROWS + HN_MOST_TAPS);
}

/* Buffers of layers with experts. */
static void lay_out_experts(hn_runner *r, const widths *w, size_t *total) {
    hn_pass_buffers *l = &r->buf;
    const size_t ids = sizeof(int32_t) * (size_t)w->pairs;
    if (w->experts == 0) return;
    l->scores = take_rows(r, total, w->experts);
    l->shared_gate = take_rows(r, total, 1);
    l->expert_gated = take_act(r, total, w->pairs, w->expert);
    l->expert_out = take_matrix(total, w->pairs, r->m->arch.hidden);
    l->routing = (hn_routing){.experts = w->experts, .used = w->used, .max_rows = r->max_rows};
    l->routing.gathered = take_act(r, total, w->pairs, r->m->arch.hidden);
    hn_buf *const lists[] = {&l->routing.id, &l->routing.share, &l->routing.pair, &l->routing.row};
    for (int i = 0; i < 4; i++) *lists[i] = take(total, ids);
    l->routing.first = take(total, sizeof(int32_t) * (size_t)(w->experts + 1));
    l->routing.distinct = take(total, sizeof(int32_t) * (size_t)(w->experts + 1) * (size_t)r->m->arch.layers);
}

/* Buffers of a draft head outside its layers. */
static void lay_out_head(hn_runner *r, size_t *total) {
    const hn_arch *a = &r->m->arch;
    const hn_head_desc *d = &a->draft_head;
    hn_pass_buffers *l = &r->buf;
    const int feature = d->features * d->feature_width, read = d->joint ? a->hidden + feature : feature;
    if (d->features == 0) return;
    l->joint = take_rows(r, total, read);
    l->joint_in = take_act(r, total, r->max_rows, read);
    l->states = take_rows(r, total, d->fc_norms || d->joint_norms ? feature : 0);
    l->pair = take_rows(r, total, 2 * a->hidden);
    l->token = take_rows(r, total, a->hidden);
    l->lstm = take_rows(r, total, d->lstm ? 4 * a->hidden : 0);
    r->store = take_matrix(total, r->store_rows, feature);
    r->outputs = take_matrix(total, r->output_rows, hn_pass_output_width(a));
}

static void lay_out_steps(hn_runner *r, size_t *total) {
    const hn_step_widths w = hn_pass_step_widths(&r->m->arch);
    hn_step_buffers *s = &r->steps;
    if (r->m->arch.draft_head.steps.n == 0) return;
    s->state = take_rows(r, total, w.state);
    s->result = take_rows(r, total, w.result);
    s->mid = take_rows(r, total, w.mid);
    s->token = take_rows(r, total, w.token);
    s->in = take_act(r, total, r->max_rows, w.in);
}

static void lay_out_clusters(hn_runner *r, size_t *total) {
    const int k = r->m->arch.draft_head.clusters_used;
    const size_t n = HN_LOGIT_ROWS * (size_t)k;
    if (k == 0) return;
    r->nearest = (hn_top){.k = k,
                          .id = take(total, sizeof(int32_t) * n),
                          .value = take(total, sizeof(float) * n),
                          .scratch = take(total, r->m->ops.top_scratch(&r->m->ops, HN_LOGIT_ROWS, k))};
}

/* Bytes of row descriptions with `paths` entries of paths. */
static size_t image_bytes(const hn_runner *r, int paths) {
    return offsetof(hn_row_image, path_slots) + sizeof *r->image->path_slots * (size_t)paths;
}

/* Sets the offset of every buffer; the memory is allocated later. */
static size_t lay_out(hn_runner *r, int max_context) {
    const hn_model *m = r->m;
    const hn_arch *a = &m->arch;
    const widths w = widest(r, max_context);
    const bool pair = a->layers > 0 && a->layer[0].input == HN_INPUT_PAIR;
    size_t total = 0;
    hn_pass_buffers *l = &r->buf;
    l->x = take_rows(r, &total, a->hidden);
    l->in = take_act(r, &total, r->max_rows, pair ? 2 * a->hidden : a->hidden);
    l->mixed = take_act(r, &total, r->max_rows, w.mixed);
    l->gated = take_act(r, &total, r->max_rows, w.ffn);
    l->qkv = take_rows(r, &total, w.qkv);
    l->attended = take_rows(r, &total, w.q);
    l->gate = take_rows(r, &total, w.in_steps ? w.ffn : 0);
    l->up = take_rows(r, &total, w.in_steps ? w.ffn : 0);
    l->branch = take_rows(r, &total, w.branch ? a->hidden : 0);
    for (int i = 0; i < a->rotations; i++)
        l->rotation[i] = (hn_rope_table){hn_model_rope(m, i, max_context), take_floats(r, &total, pad16(a->rotation[i].dims))};
    l->scratch = take(&total, w.scratch);
    lay_out_experts(r, &w, &total);
    l->fused = take_rows(r, &total, w.fused);
    l->z = take_rows(r, &total, w.z);
    l->gates = take_rows(r, &total, w.gates);
    l->delta_bytes = (w.delta + 63) & ~(size_t)63;
    l->delta_scratch = take(&total, l->delta_bytes * (size_t)hn_pool_threads(m->ops.pool));
    if (r->step) {
        r->walk.step = take(&total, most_steps(r) * sizeof *r->step);
        r->walk.first = take(&total, sizeof r->step_first);
        r->walk.fresh = take(&total, sizeof r->step_fresh);
        r->next_state = take(&total, sizeof(int32_t) * HN_MAX_TEXTS * (size_t)r->rows[r->states_group].page_stride);
    }
    lay_out_head(r, &total);
    lay_out_steps(r, &total);
    r->out_x = take_matrix(&total, r->out_rows, a->hidden);
    r->out_norm = take_matrix(&total, r->out_rows, a->hidden);
    r->out_act = take_act(r, &total, r->out_rows, a->hidden);
    r->logits = take_matrix(&total, HN_LOGIT_ROWS, hn_arch_logits(a));
    r->best = (hn_top){.k = r->best.k,
                       .id = take(&total, sizeof(int32_t) * HN_LOGIT_ROWS * (size_t)r->best.k),
                       .value = take(&total, sizeof(float) * HN_LOGIT_ROWS * (size_t)r->best.k),
                       .map = m->head.ids,
                       .scratch = take(&total, m->ops.top_scratch(&m->ops, HN_LOGIT_ROWS, r->best.k))};
    r->best.sums = take(&total, a->draft_head.features ? sizeof(float) * HN_LOGIT_ROWS * (size_t)hn_sum_parts(hn_arch_logits(a)) : 0);
    lay_out_clusters(r, &total);
    r->features = take_matrix(&total, r->max_rows * (r->n_boundaries + 1), a->hidden);
    r->image_buf = take(&total, image_bytes(r, r->path_room));
    for (int g = 0; g < r->n_groups; g++)
        r->rows[g].page_table = take(&total, sizeof(int32_t) * HN_MAX_TEXTS * (size_t)r->rows[g].page_stride);
    return total;
}

static void bind(hn_runner *r) {
    hn_pass_buffers *l = &r->buf;
    hn_matrix *matrices[] = {&l->x,     &l->qkv,   &l->attended, &l->gate,         &l->up,         &l->branch, &r->out_x,  &r->out_norm,
                             &r->logits, &r->features, &l->joint, &l->states,      &l->pair,       &l->lstm,   &l->fused,  &l->z,
                             &l->gates, &l->token, &r->store,    &r->outputs,      &r->steps.state, &r->steps.result,
                             &r->steps.mid, &r->steps.token, &l->scores, &l->shared_gate, &l->expert_out};
    hn_buf *all[] = {&l->in.data, &l->mixed.data, &l->gated.data, &l->scratch, &r->out_act.data, &r->best.id, &r->best.value,
                     &r->best.scratch, &r->nearest.id, &r->nearest.value, &r->nearest.scratch, &r->image_buf, &l->joint_in.data,
                     &l->delta_scratch, &r->walk.step, &r->walk.first, &r->walk.fresh, &r->next_state, &r->steps.in.data,
                     &l->routing.gathered.data, &l->expert_gated.data, &l->routing.id, &l->routing.share, &l->routing.pair,
                     &l->routing.row, &l->routing.first, &l->routing.distinct};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) matrices[i]->at.mem = r->buffers;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i]->mem = r->buffers;
    for (int i = 0; i < r->m->arch.rotations; i++) l->rotation[i].cs.mem = r->buffers;
    if (r->m->arch.draft_head.features > 0) r->best.sums.mem = r->buffers;
    hn_rows *rows = &r->rows[0];
    const struct {
        hn_buf *b;
        size_t off;
    } part[] = {{&rows->token, offsetof(hn_row_image, token)},
                {&rows->position, offsetof(hn_row_image, position)},
                {&rows->slot, offsetof(hn_row_image, slot)},
                {&rows->seq, offsetof(hn_row_image, seq)},
                {&rows->path_start, offsetof(hn_row_image, path_start)},
                {&rows->path_slots, offsetof(hn_row_image, path_slots)},
                {&rows->seq_first, offsetof(hn_row_image, seq_first)},
                {&rows->committed, offsetof(hn_row_image, committed)},
                {&rows->direct, offsetof(hn_row_image, direct)},
                {&rows->last, offsetof(hn_row_image, last)},
                {&rows->from, offsetof(hn_row_image, seen_from)}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) *part[i].b = hn_at(r->image_buf, part[i].off);
    l->rows = rows;
    l->each = hn_at(r->image_buf, offsetof(hn_row_image, each));
    for (int i = 0; i < HN_PASS_ROWS; i++) r->image->each[i] = i;
    r->turned = *rows;
    r->turned.position = hn_at(r->image_buf, offsetof(hn_row_image, turned));
    for (int g = 0; g < r->n_groups; g++) {
        const hn_buf table = {r->buffers, r->rows[g].page_table.off};
        const int stride = r->rows[g].page_stride;
        r->rows[g] = *rows;
        r->rows[g].page_table = table;
        r->rows[g].page_stride = stride;
    }
}

/* The model's groups in the cache start at first_group, each with its own page table. */
static hunch_status open_tables(hn_runner *r, int first_group, hunch_error *err) {
    hn_cache_group group[HN_MODEL_GROUPS];
    r->place = hn_zalloc((size_t)r->m->arch.layers + 1, sizeof *r->place); /* a head may have none */
    r->image = hn_zalloc(1, image_bytes(r, r->path_room));
    if (!r->place || !r->image) return hn_fail_memory(err, "row tables", image_bytes(r, r->path_room));
    r->first_group = first_group;
    r->n_groups = hn_kv_groups(&r->m->arch, HN_F32, group, r->place);
    assert(r->n_groups > 0 || r->m->arch.layers == 0);
    if (r->n_groups > 0) r->model_id = hn_cache_model_id(r->cache, first_group);
    r->inputs_group = r->states_group = -1;
    for (int g = 0; g < r->n_groups; g++) {
        if (group[g].kind == HN_CACHE_ROWS) {
            r->inputs_group = g;
            r->taps = group[g].window;
            r->step = hn_zalloc(most_steps(r), sizeof *r->step);
            if (!r->step) return hn_fail_memory(err, "a walk", most_steps(r) * sizeof *r->step);
        }
        if (group[g].kind == HN_CACHE_STATE) r->states_group = g;
        assert(hn_cache_model_id(r->cache, first_group + g) == r->model_id);
        r->rows[g].page_stride = hn_cache_table_stride(r->cache, first_group + g);
        const size_t table = (size_t)r->rows[g].page_stride * HN_MAX_TEXTS;
        r->table[g] = hn_zalloc(table, sizeof *r->table[g]);
        if (r->states_group == g) r->next_table = hn_zalloc(table, sizeof *r->next_table);
        if (!r->table[g] || (r->states_group == g && !r->next_table))
            return hn_fail_memory(err, "page tables", table * sizeof *r->table[g]);
    }
    return HUNCH_OK;
}

/* Entries for the paths of a tree of HN_MAX_ROWS rows, including draft rows, or of one or more chains of max_rows rows in all. */
static int most_paths(int max_rows) {
    const int tree = HN_MAX_ROWS * HN_MAX_ROWS, chain = max_rows * (max_rows + 1) / 2;
    return hn_most(tree, chain);
}

static hunch_status runner_open(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context, int max_rows,
                                const hn_feature_set *set, const hn_head_stores *stores, hunch_error *err) {
    *out = NULL;
    hn_runner *r = hn_zalloc(1, sizeof *r);
    if (!r) return hn_fail_memory(err, "runner", sizeof *r);
    r->m = m;
    r->ops = &m->ops;
    r->cache = cache;
    r->max_rows = max_rows;
    r->out_rows = hn_most(HN_LOGIT_ROWS, (set && set->post_norm) || stores->features ? max_rows : 0);
    r->path_room = most_paths(max_rows);
    r->store_rows = stores->features;
    r->output_rows = stores->outputs;
    r->best.k = stores->best;
    if (set) r->set = *set;
    for (int k = 0; k <= 256; k++)
        r->feature_slot[k] = k <= m->arch.layers && wants_boundary(&r->set, k) ? r->n_boundaries++ : -1;
    hunch_status st = open_tables(r, first_group, err);
    if (!st) st = m->ops.mem_create(&m->ops, lay_out(r, max_context), &r->buffers, err);
    if (st) {
        hn_runner_close(&r);
        return st;
    }
    bind(r);
    *out = r;
    return HUNCH_OK;
}

hunch_status hn_runner_open(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                            const hn_feature_set *features, hunch_error *err) {
    return hn_runner_open_for(out, m, cache, first_group, max_context, HN_MAX_ROWS, features, err);
}

hunch_status hn_runner_open_for(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context, int max_rows,
                                const hn_feature_set *features, hunch_error *err) {
    const hn_head_stores none = {0, 0, 1};
    assert(m->arch.draft_head.features == 0 && max_rows >= HN_MAX_ROWS && max_rows <= HN_PASS_ROWS);
    return runner_open(out, m, cache, first_group, max_context, max_rows, features, &none, err);
}

hunch_status hn_runner_open_head(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                                 const hn_head_stores *stores, hunch_error *err) {
    assert(m->arch.draft_head.features > 0 && stores->features > 0 && stores->outputs > 0 && stores->best > 0);
    hunch_status st = runner_open(out, m, cache, first_group, max_context, HN_MAX_ROWS, NULL, stores, err);
    if (!st && m->arch.draft_head.markov) st = hn_markov_open(*out, stores->outputs, err);
    if (st && *out) hn_runner_close(out);
    return st;
}

void hn_runner_set_ops(hn_runner *r, const hn_ops *o) {
    r->ops = o ? o : &r->m->ops;
}

void hn_runner_close(hn_runner **rp) {
    hn_runner *r = *rp;
    *rp = NULL;
    if (!r) return;
    hn_markov_close(r);
    r->m->ops.mem_free(&r->m->ops, r->buffers);
    for (int g = 0; g < HN_MODEL_GROUPS; g++) hn_free(r->table[g]);
    hn_free(r->step);
    hn_free(r->next_table);
    hn_free(r->image);
    hn_free(r->place);
    hn_free(r);
}

/* ---- the pass ------------------------------------------------------------------------------------------------------- */

static hn_matrix feature_block(const hn_runner *r, int place) {
    return hn_rows_from(r->features, r->max_rows * place);
}

/* Copies the chosen rows of the residual stream (or of its norm) to the block of a feature. */
static void export_rows(const hn_exec *ex, const hn_runner *r, size_t index, hn_matrix from, int place) {
    ex->ops->gather(ex, r->n_features, hn_at(r->image_buf, index), from, (hn_buf){NULL, 0}, feature_block(r, place));
}

static void export_boundary(const hn_exec *ex, const hn_runner *r, int k) {
    if (r->n_features > 0 && k <= 256 && r->feature_slot[k] >= 0)
        export_rows(ex, r, offsetof(hn_row_image, feature), r->buf.x, r->feature_slot[k]);
}

void hn_pass_rotations(const hn_exec *ex, const hn_runner *r) {
    for (int i = 0; i < r->m->arch.rotations; i++) ex->ops->rope_table(ex, &r->turned, &r->buf.rotation[i]);
}

/* The beginning of the stream: embeddings, or a draft head's combination of them with its features. */
static void prologue(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_pass_buffers *l = &r->buf;
    const hn_head_input in = {hn_at(r->image_buf, offsetof(hn_row_image, from)), r->drafts ? r->outputs : r->store,
                              r->drafts, r->n_masks,
                              hn_at(r->image_buf, offsetof(hn_row_image, zero)),
                              hn_at(r->image_buf, offsetof(hn_row_image, mask_row)), r->context, r->module};
    if (m->arch.draft_head.features > 0)
        hn_layer_head(ex, m, &in, l);
    else
        ex->ops->embed(ex, l->rows, &m->embedding, m->arch.embed_scale, l->x);
    hn_pass_rotations(ex, r);
}

static void delta_layer(const hn_exec *ex, const hn_runner *r, int i) {
    const hn_layer_place place = r->place[i];
    const hn_delta d = hn_layer_delta_sizes(&r->m->arch.layer[i]);
    const int inputs = r->first_group + r->inputs_group, states = r->first_group + r->states_group;
    const hn_plain_rows rows = hn_cache_rows(r->cache, inputs);
    const hn_rows *in = &r->rows[r->inputs_group], *at_states = &r->rows[r->states_group];
    const size_t layer_bytes = sizeof(float) * (size_t)pad16(hn_delta_inputs(&d));
    const hn_delta_at at = {.walk = &r->walk,
                            .inputs = {rows.pool, in->page_table, rows.page_bytes, rows.row_bytes,
                                       layer_bytes * (size_t)place.index, rows.page_rows, in->page_stride},
                            .states = {rows.pool, at_states->page_table, r->next_state, rows.page_bytes,
                                       sizeof(float) * (size_t)hn_delta_state(&d), d.value_heads * place.index,
                                       hn_cache_page_units(r->cache, states), at_states->page_stride}};
    hn_layer_delta(ex, r->m, i, &at, &r->buf);
}

static void mixer(const hn_exec *ex, const hn_runner *r, int i) {
    const hn_layer_place place = r->place[i];
    if (r->m->arch.layer[i].mixer == HN_MIXER_DELTA) {
        delta_layer(ex, r, i);
        return;
    }
    const hn_kv kv = hn_cache_kv(r->cache, r->first_group + place.group, place.index);
    if (r->context)
        hn_layer_context(ex, r->m, i, &r->rows[place.group], &kv, &r->buf);
    else
        hn_layer_attention(ex, r->m, i, &r->rows[place.group], &kv, &r->buf);
}

static void layers(const hn_exec *ex, const hn_runner *r) {
    const bool in_turn = hn_head_modules(&r->m->arch.draft_head) > 1;
    for (int i = 0; i < r->m->arch.layers; i++) {
        if (in_turn && i != r->module) continue;
        export_boundary(ex, r, i);
        mixer(ex, r, i);
        if (r->context) continue; /* keys and values only */
        hn_layer_ffn(ex, r->m, i, &r->buf);
    }
    export_boundary(ex, r, r->m->arch.layers);
}

/* Stores outputs of a draft head that later rows read. */
static void keep_outputs(const hn_exec *ex, const hn_runner *r) {
    const hn_buf from = hn_at(r->image_buf, offsetof(hn_row_image, output_row)),
                 to = hn_at(r->image_buf, offsetof(hn_row_image, output_slot));
    if (r->n_output_rows > 0)
        ex->ops->gather(ex, r->n_output_rows, from, r->m->arch.draft_head.norm_output ? r->out_norm : r->buf.x, to, r->outputs);
}

/* Logits of the wanted rows: of all outputs, or of the clusters that are nearest by their centroids. */
static void output(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_arch *a = &m->arch;
    const hn_head_desc *d = &a->draft_head;
    const hn_act in = hn_act_of(r->out_act, a->hidden, m->output_forms);
    const hn_output_rows out = {a->logit_scale, a->logit_cap, r->n_full, r->logits}, centroids = {.scale = 1};
    if (d->clusters == 0) {
        ex->ops->linear_top(ex, r->n_logits, in, &m->output, &out, &r->best);
        return;
    }
    const hn_clusters of = {d->clusters_used, a->vocab / d->clusters, r->nearest.id};
    ex->ops->linear_top(ex, r->n_logits, in, &m->head.centroids, &centroids, &r->nearest);
    ex->ops->clusters_top(ex, r->n_logits, in, &m->output, &of, &out, &r->best);
}

/* Norms the gathered rows for the output matrix, and into out_norm if that is exported, or read by a later pass. */
static void norm_rows(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_head_desc *d = &m->arch.draft_head;
    const hn_ops *o = ex->ops;
    const float eps = m->arch.norm_eps;
    const hn_buf norm = r->module > 0 ? m->head.further[r->module - 1].output_norm : m->output_norm;
    const hn_act act = hn_act_of(r->out_act, m->arch.hidden, m->output_forms);
    hn_matrix from = r->out_x, kept = hn_no_matrix;
    if (d->norm_twice) {
        o->rmsnorm(ex, r->n_out, r->out_x, norm, eps, hn_act_of(act, act.in, 0), r->out_norm);
        from = r->out_norm;
    } else if (r->set.post_norm || d->norm_output || d->markov) {
        kept = r->out_norm;
    }
    if (d->no_norm)
        o->quantise(ex, r->n_out, r->out_x, act);
    else
        o->rmsnorm(ex, r->n_out, from, norm, eps, act, drafts);
}

/* From the stream to logits: the wanted rows are normed and multiplied by the output matrix. */
static void tail(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_ops *o = ex->ops;
    const hn_buf none = {NULL, 0};
    if (r->n_out > 0) {
        o->gather(ex, r->n_out, hn_at(r->image_buf, offsetof(hn_row_image, out)), r->buf.x, none, r->out_x);
        norm_rows(ex, r);
    }
    if (r->set.post_norm && r->n_features > 0)
        export_rows(ex, r, offsetof(hn_row_image, normed), r->out_norm, r->n_boundaries);
    if (m->arch.draft_head.features > 0) keep_outputs(ex, r);
    if (r->n_logits > 0) output(ex, r);
}

static void forward(void *arg, int rank, int ranks) {
    const hn_runner *r = arg;
    const hn_exec ex = {r->ops, rank, ranks};
    if (r->m->arch.draft_head.steps.n > 0) {
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

static hunch_status run_rows(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                             const hn_pass_options *more, hunch_error *err) {
    /* matrices in a file are checked before, since a truncated file cannot be read, and after, since a file that was
     * changed meanwhile is not the model */
    const hn_source *files = r->m->files;
    hunch_status st = files ? hn_source_check(files, err) : HUNCH_OK;
    if (st) return st;
    hn_pass_describe(r, rows, n, cache_seq, n_seqs, more);
    const hn_ops *o = &r->m->ops;
    hn_pool_run(o->pool, forward, r);
    if (r->step) hn_walk_done(r, cache_seq, n_seqs);
    st = files ? hn_source_check(files, err) : HUNCH_OK;
    if (st) return st;
    r->host_logits = o->view(o, r->logits.at);
    r->host_features = o->view(o, r->features.at);
    r->host_best = o->view(o, r->best.id);
    r->host_value = o->view(o, r->best.value);
    r->host_clusters = r->nearest.k ? o->view(o, r->nearest.id) : NULL;
    r->host_sums = r->best.sums.mem ? o->view(o, r->best.sums) : NULL;
    return HUNCH_OK;
}

hunch_status hn_pass_run_with(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                              const hn_pass_options *more, hunch_error *err) {
    const double start = hn_now();
    const hunch_status st = run_rows(r, rows, n, cache_seq, n_seqs, more, err);
    r->seconds += hn_now() - start;
    return st;
}

int hn_pass_experts(const hn_runner *r, int layer, const int32_t **which) {
    if (r->m->arch.layer[layer].ffn != HN_FFN_EXPERTS) return 0;
    const int32_t *distinct = r->m->ops.view(&r->m->ops, hn_distinct_of(&r->buf.routing, layer));
    if (which) *which = distinct + 1;
    return distinct[0];
}

double hn_runner_seconds(const hn_runner *r) {
    return r->seconds;
}

static void store_states(void *arg, int rank, int ranks) {
    const hn_runner *r = arg;
    const hn_exec ex = {r->ops, rank, ranks};
    const hn_head_desc *d = &r->m->arch.draft_head;
    const hn_buf from = hn_at(r->image_buf, offsetof(hn_row_image, store_from)),
                 to = hn_at(r->image_buf, offsetof(hn_row_image, store_to));
    for (int k = 0; k < d->features; k++) {
        const hn_matrix state = {r->states[k], d->feature_width, r->ld_states};
        ex.ops->gather(&ex, r->n_stored, from, state, to, hn_columns(r->store, k * d->feature_width, d->feature_width));
    }
}

void hn_pass_store(hn_runner *r, const hn_buf *states, int ld, const int32_t *from, const int32_t *to, int n) {
    const hn_ops *o = &r->m->ops;
    assert(n >= 1 && n <= HN_MAX_ROWS);
    for (int i = 0; i < n; i++) assert(to[i] >= 0 && to[i] < r->store_rows);
    o->write(o, hn_at(r->image_buf, offsetof(hn_row_image, store_from)), from, (size_t)n * sizeof *from);
    o->write(o, hn_at(r->image_buf, offsetof(hn_row_image, store_to)), to, (size_t)n * sizeof *to);
    r->states = states;
    r->ld_states = ld;
    r->n_stored = n;
    hn_pool_run(o->pool, store_states, r);
}

const float *hn_pass_logits(const hn_runner *r, int row) {
    assert(r->out_of_row[row] >= 0 && r->out_of_row[row] < r->n_logits);
    return r->out_of_row[row] < r->n_full ? r->host_logits + (size_t)r->out_of_row[row] * (size_t)r->logits.ld : NULL;
}

const int32_t *hn_pass_clusters(const hn_runner *r, int row) {
    return r->host_clusters ? r->host_clusters + r->out_of_row[row] * r->nearest.k : NULL;
}

int32_t hn_pass_argmax(const hn_runner *r, int row) {
    const int at = r->out_of_row[row] * r->best.k;
    return r->host_value[at] > -INFINITY ? r->host_best[at] : -1;
}

const int32_t *hn_pass_best(const hn_runner *r, int row, const float **values) {
    const int at = r->out_of_row[row] * r->best.k;
    *values = r->host_value + at;
    return r->host_best + at;
}

double hn_pass_sum(const hn_runner *r, int row) {
    const int parts = hn_sum_parts(hn_arch_logits(&r->m->arch));
    double sum = 0;
    assert(r->host_sums && r->out_of_row[row] >= 0 && r->out_of_row[row] < r->n_full);
    for (int i = 0; i < parts; i++) sum += (double)r->host_sums[r->out_of_row[row] * parts + i];
    return sum > 1 ? sum : 1; /* also if the best is infinite */
}

const float *hn_pass_feature(const hn_runner *r, int boundary, int row) {
    const int place = boundary == HN_FEATURE_POST_NORM ? r->n_boundaries : r->feature_slot[boundary];
    assert(r->feature_of_row[row] >= 0 && place >= 0);
    return r->host_features + ((size_t)place * (size_t)r->max_rows + (size_t)r->feature_of_row[row]) * (size_t)r->features.ld;
}

int hn_pass_features(const hn_runner *r, const hn_feature_set *wanted, hn_buf buffers[HN_MAX_FEATURES], int *ld) {
    int n = 0;
    for (int k = 0; k <= r->m->arch.layers && k <= 256; k++)
        if (wants_boundary(wanted, k)) {
            assert(r->feature_slot[k] >= 0);
            buffers[n++] = feature_block(r, r->feature_slot[k]).at;
        }
    assert(r->set.post_norm || !wanted->post_norm);
    if (wanted->post_norm) buffers[n++] = feature_block(r, r->n_boundaries).at;
    *ld = r->features.ld;
    return n;
}

int hn_pass_further(const hn_runner *r, int row, int step) {
    return r->further[row] + step - 1;
}

int hn_pass_feature_row(const hn_runner *r, int row) {
    return r->feature_of_row[row];
}
