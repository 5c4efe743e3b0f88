/* SPDX-License-Identifier: Apache-2.0 */
/* split.c - see split.h. */
#include "model/split.h"

#include <string.h>

#include "base/least.h"
#include "base/mem.h"
#include "model/arch/latent_desc.h"
#include "model/mixers.h"

enum { GROUP = 64, LEAST_UNIT = 4 };

/* ---- slices --------------------------------------------------------------------------------------------------------------- */

/* Whole units, as evenly as they go; the last one may be shorter. The leader has one of the most. */
static void deal(hn_slices *s, int cols, int unit) {
    const int units = (cols + unit - 1) / unit;
    for (int r = 0; r <= s->ranks; r++) s->first[r] = hn_least(cols, unit * ((units * r + s->ranks - 1) / s->ranks));
}

void hn_split_mark_groups(hn_slices *s) {
    s->groups = true;
    for (int r = 1; r < s->ranks + (s->stripes > 1); r++) s->groups &= s->first[r] % GROUP == 0;
}

void hn_split_columns(hn_slices *s, int cols) {
    int unit = GROUP;
    while (unit > LEAST_UNIT && (cols + unit - 1) / unit < s->ranks) unit /= 4;
    s->stripes = 1;
    deal(s, cols, unit);
    hn_split_mark_groups(s);
}

bool hn_split_has_empty(const hn_slices *s) {
    for (int r = 0; r < s->ranks; r++)
        if (s->first[r] == s->first[r + 1]) return true;
    return false;
}

/* The heads of a rank: with those of keys that it has whole; or, if there are fewer of these than ranks, a part of the queries of one,
 * whose keys other ranks have too. */
typedef struct heads {
    int first, n, kv_first, kv_n;
} heads;

static heads heads_of(const hn_layer_desc *d, int rank, int ranks) {
    const int kv = d->kv_heads, each = d->heads / kv;
    if (kv >= ranks) {
        const int from = (kv * rank + ranks - 1) / ranks, to = (kv * (rank + 1) + ranks - 1) / ranks;
        return (heads){from * each, (to - from) * each, from, to - from};
    }
    const int of = rank * kv / ranks, begin = (of * ranks + kv - 1) / kv, end = ((of + 1) * ranks + kv - 1) / kv, with = end - begin;
    const int from = each * (rank - begin) / with, to = each * (rank - begin + 1) / with;
    return (heads){of * each + from, to - from, of, 1};
}

static void deal_heads(hn_slices *s, const hn_layer_desc *d) {
    const int width = hn_layer_mixed_width(d) / d->heads;
    s->stripes = 1;
    for (int r = 0; r < s->ranks; r++) s->first[r] = width * heads_of(d, r, s->ranks).first;
    s->first[s->ranks] = width * d->heads;
    hn_split_mark_groups(s);
}

static void deal_rows(hn_slices *q, hn_slices *k, const hn_layer_desc *d) {
    for (int r = 0; r < q->ranks; r++) {
        const heads h = heads_of(d, r, q->ranks);
        const bool again = r > 0 && heads_of(d, r - 1, q->ranks).kv_first == h.kv_first;
        q->first[r] = d->head_dim * h.first;
        k->first[r] = d->head_dim * (h.kv_first + again);
    }
    q->first[q->ranks] = d->head_dim * d->heads;
    k->first[q->ranks] = d->head_dim * d->kv_heads;
}

/* ---- what is divided ---------------------------------------------------------------------------------------------------------- */

static bool attends(const hn_layer_desc *d) { return hn_layer_is(d, &hn_mixer_attention) || hn_layer_is(d, &hn_mixer_latent); }

/* NULL, or what of a layer is not divided yet. */
static const char *undivided(const hn_layer_desc *d) {
    if (hn_layer_mixers(d) != 1) return "layers with another number of mixers than one";
    if (!attends(d) && !d->mixer[0].kind->divide) return d->mixer[0].kind->name;
    if (hn_layer_norms_rows(d) && (d->norm_late || d->gate.in_q)) return "such norms over the rows of all heads";
    if (d->kv_back > 0 && (d[-d->kv_back].heads != d->heads || d[-d->kv_back].kv_heads != d->kv_heads))
        return "keys and values of a layer with other heads";
    if (hn_layer_reads_pair(d)) return "draft heads";
    return NULL;
}

static hunch_status refuse(const hn_model *m, const hn_source *src, const char *what, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: %s: not divided among ranks yet (%s): run it without mpirun", hn_source_path(src), what,
                   m->arch.architecture);
}

/* Of each rank something. */
static hunch_status check_shares(const hn_model *m, const hn_source *src, const hn_layer_split *s, const hn_layer_desc *d,
                                 hunch_error *err) {
    const int ranks = s->mixer.mixed.ranks;
    const bool empty = hn_split_has_empty(&s->mixer.mixed) || hn_split_has_empty(&m->split->hidden) ||
                       (hn_layer_is_dense(d) && hn_split_has_empty(&s->gated)) ||
                       (hn_layer_has_experts(d) && hn_split_has_empty(&s->expert)) ||
                       (d->experts.shared_width > 0 && hn_split_has_empty(&s->shared));
    if (!empty) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: %d %s, %d numbers of a row and %d of a feed-forward part (experts: %d) cannot be divided among %d ranks: "
                   "expected fewer", hn_source_path(src), attends(d) ? d->heads : hn_slices_width(&s->mixer.mixed),
                   attends(d) ? "heads" : "results of mixers", m->arch.hidden, d->ffn_width, d->experts.width, ranks);
}

static hunch_status split_layer(hn_model *m, const hn_source *src, int i, hunch_error *err) {
    const hn_layer_desc *d = &m->arch.layer[i];
    hn_layer_split *s = &m->split->layer[i];
    hn_layer_desc *own = &m->split->own[i];
    const char *what = undivided(d);
    if (what) return refuse(m, src, what, err);
    s->mixer.mixed = s->gated = s->expert = s->shared = m->split->hidden;
    s->q = s->k = m->split->hidden;
    if (hn_layer_norms_rows(d)) deal_rows(&s->q, &s->k, d);
    if (attends(d)) deal_heads(&s->mixer.mixed, d);
    else if (!d->mixer[0].kind->divide(&d->mixer[0], &own->mixer[0], &s->mixer)) return check_shares(m, src, s, d, err);
    hn_split_columns(&s->gated, d->ffn_width);
    hn_split_columns(&s->expert, d->experts.width);
    hn_split_columns(&s->shared, d->experts.shared_width);
    if (attends(d)) {
        const heads h = heads_of(d, s->mixer.mixed.rank, s->mixer.mixed.ranks);
        own->heads = h.n;
        own->kv_heads = h.kv_n;
    }
    own->ffn_width = hn_own_count(&s->gated);
    own->experts.width = hn_own_count(&s->expert);
    own->experts.shared_width = hn_own_count(&s->shared);
    return check_shares(m, src, s, d, err);
}

hunch_status hn_split_open(hn_model *m, const hn_source *src, hunch_error *err) {
    const hn_link *l = m->backend->link;
    const hn_arch *a = &m->arch;
    const size_t layers = (size_t)a->layers;
    if (!l) return HUNCH_OK;
    m->split = hn_zalloc(1, sizeof *m->split);
    if (m->split) m->split->layer = hn_zalloc(layers, sizeof *m->split->layer);
    if (m->split) m->split->own = hn_zalloc(layers, sizeof *m->split->own);
    if (!m->split || !m->split->layer || !m->split->own) return hn_fail_memory(err, "a split of layers", layers * sizeof *m->split->layer);
    memcpy(m->split->own, a->layer, layers * sizeof *a->layer);
    m->split->hidden = m->split->vocab = (hn_slices){.rank = l->rank, .ranks = l->ranks, .stripes = 1};
    hn_split_columns(&m->split->hidden, a->hidden);
    deal(&m->split->vocab, a->vocab, HN_SUM_PART);
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < a->layers; i++) st = split_layer(m, src, i, err);
    m->run = (hn_layers){m->split->own, a->layers};
    return st;
}

void hn_split_close(hn_model *m) {
    if (!m->split) return;
    hn_free(m->split->layer);
    hn_free(m->split->own);
    hn_free(m->split);
    m->split = NULL;
}

double hn_split_exchanged(const hn_arch *a, double number, int *exchanges) {
    double bytes = 0;
    *exchanges = 0;
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        hn_mixer_desc own = d->mixer[0];
        hn_mixer_split s = {.mixed = {.ranks = 1, .stripes = 1}};
        const bool divides = !attends(d) && own.kind && own.kind->divide && own.kind->divide(&d->mixer[0], &own, &s);
        const int mixed = divides ? hn_slices_width(&s.mixed) : hn_layer_mixed_width(d);
        const hn_expert_desc *e = &d->experts;
        const int branches = hn_layer_is_dense(d) + (hn_layer_has_experts(d) ? 1 + (e->shared_width > 0) : 0);
        bytes += mixed * number + (1 + hn_layer_is_dense(d) + (e->shared_width > 0)) * (double)sizeof(float) * a->hidden;
        if (hn_layer_is_dense(d)) bytes += d->ffn_width * number;
        if (hn_layer_has_experts(d)) bytes += e->used * (e->width * number + (double)sizeof(float) * a->hidden) + e->shared_width * number;
        if (hn_layer_norms_rows(d)) bytes += (d->heads + d->kv_heads) * d->head_dim * (double)sizeof(float);
        *exchanges += 2 + 2 * branches + 2 * hn_layer_norms_rows(d);
    }
    return bytes;
}

/* ---- loading -------------------------------------------------------------------------------------------------------------------- */

/* A part of rows, of which each head has as many. */
static hn_part part_of_heads(int first, int rows, int all, int from, int n) {
    const int each = rows / all;
    return (hn_part){first + each * from, each * n, NULL};
}

static hn_part part_of_slices(int first, const hn_slices *s) { return (hn_part){first + hn_own_first(s), hn_own_count(s), NULL}; }

static hn_part part_of_runs(const hn_runs *r) {
    hn_part part = {0, 0, r};
    for (int i = 0; i < r->n; i++) part.count += r->count[i];
    return part;
}

hn_part hn_split_part(const hn_model *m, hn_tensor_id t, hn_part part) {
    if (m->split && t.role == HN_ROLE_OUTPUT) return hn_split_output(m);
    if (!m->split || !hn_role_of_layer(t.role)) return part;
    const hn_layer_desc *d = &m->arch.layer[t.k];
    uint64_t dims[2];
    hn_arch_shape(&m->arch, t, dims);
    const int rows = part.count ? part.count : (int)dims[hn_role_is_vector(t.role) ? 0 : 1];
    const hn_layer_split *s = &m->split->layer[t.k];
    const int share = hn_tensor_row_of(t.role)->share;
    if (share == HN_SHARE_STREAM) return part_of_slices(part.first, &m->split->hidden);
    if (share > 0) return part_of_runs(&s->mixer.rows[share - 1]);
    if (hn_layer_norms_rows(d) && (t.role == HN_ROLE_Q_BIAS || t.role == HN_ROLE_K_BIAS)) return part;
    const heads h = attends(d) ? heads_of(d, m->split->hidden.rank, m->split->hidden.ranks) : (heads){0};
    switch ((int)t.role) { /* those of a kind of mixers have no names of the type */
    case HN_ROLE_Q: case HN_ROLE_Q_BIAS: case HN_ROLE_SINKS: case HN_ROLE_Q_B:
    case HN_ROLE_HEADS_GATE: return part_of_heads(part.first, rows, d->heads, h.first, h.n);
    case HN_ROLE_K: case HN_ROLE_V: case HN_ROLE_K_BIAS:
    case HN_ROLE_V_BIAS: return part_of_heads(part.first, rows, d->kv_heads, h.kv_first, h.kv_n);
    case HN_ROLE_GATE: case HN_ROLE_UP: case HN_ROLE_GATE_BIAS:
    case HN_ROLE_UP_BIAS: return part_of_slices(part.first, &s->gated);
    case HN_ROLE_EXPERT_GATE: case HN_ROLE_EXPERT_UP: case HN_ROLE_EXPERT_GATE_BIAS:
    case HN_ROLE_EXPERT_UP_BIAS: return part_of_slices(part.first, &s->expert);
    case HN_ROLE_SHARED_GATE: case HN_ROLE_SHARED_UP: case HN_ROLE_SHARED_GATE_BIAS:
    case HN_ROLE_SHARED_UP_BIAS: return part_of_slices(part.first, &s->shared);
    case HN_ROLE_O: case HN_ROLE_DOWN: case HN_ROLE_EXPERT_DOWN: case HN_ROLE_EXPERT_DOWN_BIAS: case HN_ROLE_SHARED_DOWN:
    case HN_ROLE_SHARED_DOWN_BIAS: return part_of_slices(part.first, &m->split->hidden);
    default: return part;
    }
}

hn_part hn_split_heads(const hn_model *m, int layer) {
    const hn_layer_desc *d = &m->arch.layer[layer];
    const heads h = m->split ? heads_of(d, m->split->hidden.rank, m->split->hidden.ranks) : (heads){.n = d->heads};
    return (hn_part){h.first, h.n, NULL};
}

hn_part hn_split_output(const hn_model *m) {
    const bool part = m->split && m->backend->link->rank > 0 && hn_own_count(&m->split->vocab) > 0;
    return part ? part_of_slices(0, &m->split->vocab) : (hn_part){0, 0, NULL};
}

/* The own slice of a matrix that this rank has whole. */
static hn_weight slice_of(const hn_weight *w, const hn_slices *s) {
    hn_weight own = *w;
    const int first = hn_own_first(s);
    own.out = hn_own_count(s);
    if (hn_is_stored(w)) {
        own.stored.rows = (const char *)w->stored.rows + w->stored.row_bytes * (size_t)first;
        own.stored.first += first;
        if (w->stored.scales) own.stored.scales += w->stored.scale_bytes * (size_t)first;
    } else {
        own.place.at = hn_at(w->place.at, w->place.step * (size_t)(first / HN_STRIP));
    }
    return own;
}

/* The product that leads from a mixer to the stream. */
static hn_weight *result_of(const hn_layer_desc *d, const hn_layer *l) {
    return (hn_weight *)(void *)((unsigned char *)l->own[0] + d->mixer[0].kind->result);
}

void hn_split_finish(hn_model *m) {
    if (!m->split) return;
    for (int i = 0; i < m->arch.layers; i++) {
        hn_layer *l = &m->layer[i];
        hn_weight *result = attends(&m->arch.layer[i]) ? &l->o : result_of(&m->arch.layer[i], l);
        result->ins = &m->split->layer[i].mixer.mixed;
        l->down.ins = &m->split->layer[i].gated;
        l->experts.down.ins = &m->split->layer[i].expert;
        l->experts.shared_down.ins = &m->split->layer[i].shared;
        result->outs = l->down.outs = l->experts.down.outs = l->experts.shared_down.outs = &m->split->hidden;
        l->experts.unit.ld_bias = m->split->own[i].experts.width;
    }
    const bool whole = m->output.out == m->arch.vocab;
    m->split->output = whole ? slice_of(&m->output, &m->split->vocab) : m->output;
}
