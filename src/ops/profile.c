/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c - see profile.h. Each rank records in cache lines of its own; they are added when the sums are taken. */
#include "ops/profile.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ops/cpu_mem.h"
#include "ops/delta.h"
#include "ops/short_conv.h"
#include "ops/ssm.h"
#include "ops/pack.h"

typedef struct note {
    int calls;
    int64_t ns, waited;
    double bytes, macs;
} note;

typedef struct rank_notes {
    _Alignas(64) note phase[HN_PHASES];
} rank_notes;

struct hn_profile {
    hn_ops ops; /* first: wrappers find the profile from its address */
    const hn_ops *inner;
    hn_pool *pool;
    int ranks;
    rank_notes *rank; /* [ranks] */
};

/* ---- one operation ------------------------------------------------------------------------------------------ */

typedef struct span {
    hn_exec ex; /* with the inner table */
    const hn_profile *of;
    note *to;
    int64_t begun, waited;
} span;

static const hn_profile *profile_of(const hn_exec *ex) {
    return (const hn_profile *)(const void *)ex->ops;
}

static span span_begin(const hn_exec *ex, hn_phase phase) {
    const hn_profile *p = profile_of(ex);
    span s = {.ex = {p->inner, ex->backend, ex->rank, ex->ranks}, .of = p, .to = &p->rank[ex->rank].phase[phase]};
    s.to->calls++;
    s.waited = hn_pool_waited(p->pool, ex->rank);
    s.begun = hn_now_ns();
    return s;
}

static void span_end(const span *s) {
    s->to->ns += hn_now_ns() - s->begun;
    s->to->waited += hn_pool_waited(s->of->pool, s->ex.rank) - s->waited;
}

/* ---- products and attention ----------------------------------------------------------------------------------- */

static double matrix_bytes(const span *s, const hn_weight *w) {
    return (double)s->ex.backend->matrix_bytes(s->ex.backend, w->dtype, w->out, w->in);
}

static void note_product(const span *s, hn_count n, const hn_weight *w) {
    s->to->bytes += matrix_bytes(s, w);
    s->to->macs += (double)hn_cpu_number(n) * w->out * w->in;
}

static void linear(const hn_exec *ex, hn_count n, hn_act a, const hn_linear_out *outs, int n_outs, bool add) {
    const span s = span_begin(ex, outs[0].w->phase);
    for (int i = 0; i < n_outs; i++) note_product(&s, n, outs[i].w);
    s.ex.ops->linear(&s.ex, n, a, outs, n_outs, add);
    span_end(&s);
}

static void linear_glu(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *gate, const hn_weight *up, hn_glu act,
                       hn_act y) {
    const span s = span_begin(ex, HN_PHASE_GATE_UP);
    note_product(&s, n, gate);
    note_product(&s, n, up);
    s.ex.ops->linear_glu(&s.ex, n, a, gate, up, act, y);
    span_end(&s);
}

static void glu(const hn_exec *ex, hn_count n, hn_glu act, const hn_glu_in *in, float scale, hn_act y) {
    const span s = span_begin(ex, HN_PHASE_GATE_UP);
    s.ex.ops->glu(&s.ex, n, act, in, scale, y);
    span_end(&s);
}

static void linear_top(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_output_rows *out, const hn_top *top) {
    const span s = span_begin(ex, HN_PHASE_OUTPUT);
    note_product(&s, n, w);
    s.ex.ops->linear_top(&s.ex, n, a, w, out, top);
    span_end(&s);
}

/* Notes what the rows' clusters read, also those that several rows have. */
static void clusters_top(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_clusters *of, const hn_output_rows *out,
                         const hn_top *top) {
    const span s = span_begin(ex, HN_PHASE_OUTPUT);
    const double outputs = (double)hn_cpu_number(n) * of->used * of->size;
    s.to->bytes += matrix_bytes(&s, w) * outputs / (hn_strips(w->out) * HN_STRIP);
    s.to->macs += outputs * w->in;
    s.ex.ops->clusters_top(&s.ex, n, a, w, of, out, top);
    span_end(&s);
}

/* Notes what the distinct experts read. */
static void note_experts(const span *s, hn_count n, const hn_routing *by, const hn_weight *w) {
    s->to->bytes += matrix_bytes(s, w) * hn_host_i32(by->distinct)[0];
    s->to->macs += (double)hn_cpu_number(n) * by->used * w->out * w->in;
}

static void route(const hn_exec *ex, hn_count n, const hn_router *router, hn_matrix scores, const hn_routing *to) {
    const span s = span_begin(ex, HN_PHASE_ROUTER);
    s.ex.ops->route(&s.ex, n, router, scores, to);
    span_end(&s);
}

static void experts_glu(const hn_exec *ex, hn_count n, const hn_routing *by, hn_act a, const hn_weight *gate, const hn_weight *up,
                        const hn_expert_unit *unit, hn_act y) {
    const span s = span_begin(ex, HN_PHASE_GATE_UP);
    note_experts(&s, n, by, gate);
    note_experts(&s, n, by, up);
    s.ex.ops->experts_glu(&s.ex, n, by, a, gate, up, unit, y);
    span_end(&s);
}

static void experts_linear(const hn_exec *ex, hn_count n, const hn_routing *by, hn_act a, const hn_weight *w, hn_matrix y) {
    const span s = span_begin(ex, HN_PHASE_DOWN);
    note_experts(&s, n, by, w);
    s.ex.ops->experts_linear(&s.ex, n, by, a, w, y);
    span_end(&s);
}

static void heads_linear(const hn_exec *ex, hn_count n, const hn_weight *w, hn_head_columns x, int rest, hn_act room, hn_head_columns y) {
    const span s = span_begin(ex, w->phase);
    s.to->bytes += matrix_bytes(&s, w) * w->experts;
    s.to->macs += (double)hn_cpu_number(n) * w->experts * w->out * w->in;
    s.ex.ops->heads_linear(&s.ex, n, w, x, rest, room, y);
    span_end(&s);
}

static void combine(const hn_exec *ex, hn_count n, const hn_routing *by, hn_matrix results, hn_buf bias, const hn_shared *shared,
                    bool add, hn_matrix x) {
    const span s = span_begin(ex, HN_PHASE_ROUTER);
    s.ex.ops->combine(&s.ex, n, by, results, bias, shared, add, x);
    span_end(&s);
}

/* Notes the keys and values that a pass reads of each sequence, and those that each of its rows sees. */
static void note_attention(const span *s, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how) {
    const int32_t *first = hn_host_i32(rows->seq_first), *committed = hn_host_i32(rows->committed);
    const int32_t *from = hn_host_i32(rows->from), *last = hn_host_i32(how->ahead ? rows->last : rows->position);
    const int n = hn_cpu_number(rows->n), n_seqs = hn_cpu_number(rows->n_seqs);
    const bool stored = rows->slot.mem; /* the rows themselves are read too */
    for (int i = 0; i < n_seqs; i++)
        s->to->bytes += hn_kv_read_bytes(kv, hn_kv_read(how, committed[i], stored ? first[i + 1] - first[i] : 0));
    for (int i = 0; i < n; i++) s->to->macs += hn_kv_macs(kv, how, from[i], last[i]);
}

static void attention(const hn_exec *ex, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q,
                      hn_matrix out, hn_act a, hn_buf scratch) {
    const span s = span_begin(ex, HN_PHASE_ATTENTION);
    note_attention(&s, rows, kv, how);
    s.ex.ops->attention(&s.ex, rows, kv, how, q, out, a, scratch);
    span_end(&s);
}

/* ---- other operations ------------------------------------------------------------------------------------------------- */

static void embed(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x) {
    const span s = span_begin(ex, HN_PHASE_EMBED);
    s.ex.ops->embed(&s.ex, rows, table, scale, x);
    span_end(&s);
}

static void norm(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, hn_act a, hn_matrix y) {
    const span s = span_begin(ex, HN_PHASE_NORM);
    s.ex.ops->norm(&s.ex, n, x, by, a, y);
    span_end(&s);
}

static void norm_add(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, float times, hn_matrix y) {
    const span s = span_begin(ex, HN_PHASE_NORM);
    s.ex.ops->norm_add(&s.ex, n, x, by, times, y);
    span_end(&s);
}

static void quantise(const hn_exec *ex, hn_count n, hn_matrix x, hn_act a) {
    const span s = span_begin(ex, HN_PHASE_NORM);
    s.ex.ops->quantise(&s.ex, n, x, a);
    span_end(&s);
}

static void permute(const hn_exec *ex, hn_count n, hn_act from, hn_buf order, hn_act to) {
    const span s = span_begin(ex, HN_PHASE_NORM);
    s.ex.ops->permute(&s.ex, n, from, order, to);
    span_end(&s);
}

static void rope_table(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *to) {
    const span s = span_begin(ex, HN_PHASE_ROPE);
    s.ex.ops->rope_table(&s.ex, rows, to);
    span_end(&s);
}

static void fix_heads(const hn_exec *ex, hn_count n, const hn_head_fix *fix, const hn_qkv *x) {
    const span s = span_begin(ex, HN_PHASE_ROPE);
    s.ex.ops->fix_heads(&s.ex, n, fix, x);
    span_end(&s);
}

static void rope_store(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *by, const hn_kv *kv, const hn_qkv *x) {
    const span s = span_begin(ex, HN_PHASE_ROPE);
    s.ex.ops->rope_store(&s.ex, rows, by, kv, x);
    span_end(&s);
}

static void gather(const hn_exec *ex, hn_count n, hn_buf from, hn_matrix src, hn_buf to, hn_matrix dst) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->gather(&s.ex, n, from, src, to, dst);
    span_end(&s);
}

static void add_bias(const hn_exec *ex, hn_count n, hn_matrix x, hn_buf bias) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->add_bias(&s.ex, n, x, bias);
    span_end(&s);
}

static void apply(const hn_exec *ex, hn_count n, hn_function f, hn_into into, hn_matrix x, hn_buf bias, hn_matrix y) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->apply(&s.ex, n, f, into, x, bias, y);
    span_end(&s);
}

static void scale_rows(const hn_exec *ex, hn_count n, hn_matrix x, float a) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->scale(&s.ex, n, x, a);
    span_end(&s);
}

static void scale_groups(const hn_exec *ex, hn_count n, hn_matrix by, int each, hn_matrix x) {
    const span s = span_begin(ex, HN_PHASE_ATTENTION);
    s.ex.ops->scale_groups(&s.ex, n, by, each, x);
    span_end(&s);
}

static void scale_by_position(const hn_exec *ex, const hn_rows *rows, const hn_position_scale *by, hn_matrix x) {
    const span s = span_begin(ex, HN_PHASE_ROPE);
    s.ex.ops->scale_by_position(&s.ex, rows, by, x);
    span_end(&s);
}

static void pick(const hn_exec *ex, hn_count n, const hn_pick *parts, int n_parts) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->pick(&s.ex, n, parts, n_parts);
    span_end(&s);
}

static void gru(const hn_exec *ex, hn_count n, hn_matrix input, hn_matrix own, hn_matrix x) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->gru(&s.ex, n, input, own, x);
    span_end(&s);
}

static void convolve(const hn_exec *ex, hn_count n, const hn_convolution *c, hn_matrix x, bool add, hn_matrix y) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->convolve(&s.ex, n, c, x, add, y);
    span_end(&s);
}

/* A head's state is read and written. */
static void delta(const hn_exec *ex, const hn_delta_job *job) {
    const span s = span_begin(ex, HN_PHASE_ATTENTION);
    const double state = (double)hn_delta_state(job->net) * job->net->value_heads * hn_cpu_number(job->n_seqs);
    s.to->bytes += 2 * state * (double)sizeof(float);
    s.ex.ops->delta(&s.ex, job);
    span_end(&s);
}

/* A head's state is read; where it moves on, written too. */
static void ssm(const hn_exec *ex, const hn_ssm_job *job) {
    const span s = span_begin(ex, HN_PHASE_ATTENTION);
    s.to->bytes += (double)hn_ssm_state(job->net) * job->net->heads * hn_cpu_number(job->rows->n_seqs) * (double)sizeof(float);
    s.ex.ops->ssm(&s.ex, job);
    span_end(&s);
}

static void short_conv(const hn_exec *ex, const hn_rows *rows, const hn_short_conv *c, const hn_input_pages *kept, hn_matrix x) {
    const span s = span_begin(ex, HN_PHASE_ATTENTION);
    s.ex.ops->short_conv(&s.ex, rows, c, kept, x);
    span_end(&s);
}

static void rows_move(const hn_exec *ex, const hn_plain_rows *at, hn_count n, hn_buf moves) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->rows_move(&s.ex, at, n, moves);
    span_end(&s);
}

static void kv_move(const hn_exec *ex, const hn_kv *kv, hn_count n, hn_buf moves) {
    const span s = span_begin(ex, HN_PHASE_OTHER);
    s.ex.ops->kv_move(&s.ex, kv, n, moves);
    span_end(&s);
}

/* ---- the profile ------------------------------------------------------------------------------------------------ */

static void wrap(hn_ops *o) {
    o->embed = embed;
    o->norm = norm;
    o->quantise = quantise;
    o->permute = permute;
    o->linear = linear;
    o->linear_glu = linear_glu;
    o->route = route;
    o->experts_glu = experts_glu;
    o->experts_linear = experts_linear;
    o->heads_linear = heads_linear;
    o->combine = combine;
    o->rope_table = rope_table;
    o->fix_heads = fix_heads;
    o->rope_store = rope_store;
    o->attention = attention;
    o->gather = gather;
    o->linear_top = linear_top;
    o->clusters_top = clusters_top;
    o->norm_add = norm_add;
    o->glu = glu;
    o->add_bias = add_bias;
    o->apply = apply;
    o->scale = scale_rows;
    o->scale_groups = scale_groups;
    o->scale_by_position = scale_by_position;
    o->kv_move = kv_move;
    o->pick = pick;
    o->gru = gru;
    o->convolve = convolve;
    o->delta = delta;
    o->short_conv = short_conv;
    o->ssm = ssm;
    o->rows_move = rows_move;
}

hunch_status hn_profile_open(hn_profile **out, const hn_ops *o, hn_pool *pool, hunch_error *err) {
    *out = NULL;
    hn_profile *p = hn_zalloc(1, sizeof *p);
    const int ranks = hn_pool_threads(pool);
    if (p) p->rank = hn_zalloc((size_t)ranks, sizeof *p->rank);
    if (!p || !p->rank) {
        hn_free(p);
        return hn_fail_memory(err, "a profile", (size_t)ranks * sizeof(rank_notes));
    }
    p->ops = *o;
    p->inner = o;
    p->pool = pool;
    p->ranks = ranks;
    wrap(&p->ops);
    hn_pool_count_waits(pool, true);
    *out = p;
    return HUNCH_OK;
}

void hn_profile_close(hn_profile **pp) {
    hn_profile *p = *pp;
    *pp = NULL;
    if (!p) return;
    hn_pool_count_waits(p->pool, false);
    hn_free(p->rank);
    hn_free(p);
}

const hn_ops *hn_profile_ops(const hn_profile *p) {
    return &p->ops;
}

const char *hn_phase_name(hn_phase phase) {
    static const char *const names[HN_PHASES] = {"other", "embed", "norm", "qkv", "rope", "attention",
                                                 "o", "gate up", "down", "router", "output"};
    return names[phase];
}

void hn_profile_take(hn_profile *p, hn_phase_sum sums[HN_PHASES]) {
    for (int i = 0; i < HN_PHASES; i++) {
        const note *n = &p->rank[0].phase[i];
        double waited = 0;
        for (int r = 0; r < p->ranks; r++) waited += (double)p->rank[r].phase[i].waited;
        sums[i] = (hn_phase_sum){n->calls, (double)n->ns * 1e-9, waited * 1e-9 / p->ranks, n->bytes, n->macs};
    }
    memset(p->rank, 0, (size_t)p->ranks * sizeof *p->rank);
}
