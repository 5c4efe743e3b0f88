/* SPDX-License-Identifier: Apache-2.0 */
/* measure_api.c - measuring: times of passes, prefills, plain decoding and commits, the phases of a pass, what it reads and computes,
 * and the limits of the machine. Rows: those of the internal sequence (internal_rows.c). */
#include <string.h>

#include "base/mem.h"
#include "engine/pass_costs.h"
#include "model/ffns.h"
#include "model/mixers.h"
#include "ops/machine.h"
#include "ops/pack.h"
#include "ops/profile.h"

/* ---- its rows ------------------------------------------------------------------------------------------------------------ */

/* Extends it to `upto` committed rows of arbitrary text, `chunk` rows a pass; last_logits: of the last row. */
static hunch_status read_on(hunch_engine *e, int upto, int chunk, bool last_logits, hunch_error *err) {
    const int id = hn_internal_seq(e), vocab = e->model->target.arch.vocab;
    hn_row *rows = e->list.row;
    uint64_t seed = 1;
    for (int at; (at = hn_cache_committed(e->cache, id, 0)) < upto;) {
        const int m = upto - at < chunk ? upto - at : chunk;
        for (int i = 0; i < m; i++)
            rows[i] = (hn_row){.token = (hunch_token)(hn_splitmix(&seed) % (uint64_t)vocab), .parent = (int16_t)(i - 1)};
        if (last_logits && at + m == upto) rows[m - 1].logits = HN_LOGITS_ALL;
        hunch_status st = hn_internal_read(e, rows, m, err);
        if (st) return st;
    }
    return HUNCH_OK;
}

static hunch_status check_measure(const hunch_engine *e, int rows, int most, int context, hunch_error *err) {
    if (rows < 1 || rows > most) return hn_fail(err, HUNCH_USAGE, "%d rows: expected 1 to %d", rows, most);
    if (context < 0 || context > e->context - rows)
        return hn_fail(err, HUNCH_USAGE, "%d rows behind %d: the context is %d", rows, context, e->context);
    if (hunch_engine_running(e))
        return hn_fail(err, HUNCH_USAGE, "the engine has running sessions: expected none while measuring");
    return hn_engine_check_idle(e, err);
}

/* Checks the request and makes the internal sequence `context` rows long. */
static hunch_status prepare_measure(hunch_engine *e, int rows, int most, int context, hunch_error *err) {
    hunch_status st = check_measure(e, rows, most, context, err);
    if (st) return st;
    if (!e->internal) hn_internal_begin(e);
    const int id = hn_internal_seq(e);
    if (hn_cache_committed(e->cache, id, 0) > context) hn_cache_rewind(e->cache, id, 0, context); /* may leave fewer rows */
    return read_on(e, context, HN_MAX_ROWS, false, err);
}

/* ---- times ------------------------------------------------------------------------------------------------------------- */

/* One pass over `rows` chain rows, all logits, after the rows of the internal sequence. */
static hunch_status timed_pass(hunch_engine *e, int rows, double *seconds, hunch_error *err) {
    const int id = hn_internal_seq(e), vocab = e->model->target.arch.vocab;
    hn_row row[HN_MAX_ROWS];
    hunch_token t[HN_MAX_ROWS];
    for (int i = 0; i < rows; i++) t[i] = (i * 7919 + 1) % vocab;
    hn_chain_rows(row, t, rows, HN_LOGITS_ALL);
    const hunch_status st = hn_pass_run(e->runner, row, rows, &id, 1, err);
    *seconds = st ? 0 : hn_pass_seconds(e->runner);
    return st;
}

hunch_status hunch_measure_pass(hunch_engine *e, int rows, int context, int reps, double *seconds, hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"seconds", seconds}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    st = prepare_measure(e, rows, HN_MAX_ROWS, context, err);
    for (int i = 0; !st && i < reps; i++) st = timed_pass(e, rows, &seconds[i], err);
    return st;
}

double hunch_measure_experts(const hunch_engine *e) {
    return e ? hn_experts_used(e) : 0;
}

hunch_status hunch_measure_prefill(hunch_engine *e, int rows, double *seconds, hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"seconds", seconds}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    st = check_measure(e, rows, e->context, 0, err);
    if (st) return st;
    hn_internal_begin(e);
    const double start = hn_now();
    st = read_on(e, rows, e->chunk, true, err);
    *seconds = hn_now() - start;
    return st;
}

hunch_status hunch_measure_decode(hunch_engine *e, int rows, int context, double *seconds, hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"seconds", seconds}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    const int id = hn_internal_seq(e);
    st = prepare_measure(e, rows, e->context, context, err);
    hn_row row = {.token = 1 % e->model->target.arch.vocab, .parent = -1, .logits = HN_LOGITS_BEST};
    const double start = hn_now();
    for (int i = 0; !st && i < rows; i++) {
        st = hn_pass_run(e->runner, &row, 1, &id, 1, err);
        if (st) break;
        hn_cache_commit(e->cache, id, 0, NULL, 1);
        const int32_t best = hn_pass_argmax(e->runner, 0);
        row.token = best < 0 ? 0 : best;
    }
    *seconds = hn_now() - start;
    return st;
}

hunch_status hunch_measure_commit(hunch_engine *e, int rows, int commit, int context, int reps, double *seconds,
                                  hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"seconds", seconds}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    const int id = hn_internal_seq(e);
    int16_t path[HN_MAX_ROWS] = {0};
    st = prepare_measure(e, rows, HN_MAX_ROWS, context, err);
    if (!st && (commit < 1 || commit > rows))
        st = hn_fail(err, HUNCH_USAGE, "commit of %d rows: expected 1 to %d", commit, rows);
    for (int i = 1; !st && i < commit; i++) path[i] = (int16_t)(rows - commit + i);
    for (int i = -1; !st && i < reps; i++) { /* the first warms up */
        st = hn_cache_reserve(e->cache, id, 0, rows, err);
        if (st) break;
        const double start = hn_now();
        hn_cache_commit(e->cache, id, 0, path, commit);
        hn_cache_flush(e->cache);
        if (i >= 0) seconds[i] = hn_now() - start;
        hn_cache_rewind(e->cache, id, 0, context);
    }
    return st;
}

/* A draft, the commit of its accepted rows, and the next row. */
static hunch_status timed_rollback(hunch_engine *e, int rows, int commit, double *seconds, hunch_error *err) {
    const int id = hn_internal_seq(e), vocab = e->model->target.arch.vocab, one = 1;
    hn_row row[HN_MAX_ROWS];
    hunch_token t[HN_MAX_ROWS];
    for (int i = 0; i < rows; i++) t[i] = (i * 7919 + 1) % vocab;
    hn_chain_rows(row, t, rows, HN_LOGITS_BEST);
    const hn_pass_options more = {.n_certain = &one};
    const double start = hn_now();
    hunch_status st = hn_pass_reserve(e->runner, row, rows, &id, 1, &more, err);
    if (!st) st = hn_pass_run_with(e->runner, row, rows, &id, 1, &more, err);
    if (st) return st;
    hn_cache_commit(e->cache, id, 0, NULL, commit);
    st = hn_pass_reserve(e->runner, row, 1, &id, 1, &more, err);
    if (!st) st = hn_pass_run_with(e->runner, row, 1, &id, 1, &more, err);
    *seconds = hn_now() - start;
    return st;
}

hunch_status hunch_measure_rollback(hunch_engine *e, int rows, int commit, int context, int reps, double *seconds,
                                    hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"seconds", seconds}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    st = prepare_measure(e, rows + 1, HN_MAX_ROWS, context, err);
    if (!st && (commit < 1 || commit > rows))
        st = hn_fail(err, HUNCH_USAGE, "commit of %d rows: expected 1 to %d", commit, rows);
    for (int i = -1; !st && i < reps; i++) { /* the first warms up */
        double s;
        if (hn_cache_committed(e->cache, hn_internal_seq(e), 0) + rows + 1 > e->context)
            st = prepare_measure(e, rows + 1, HN_MAX_ROWS, context, err);
        if (!st) st = timed_rollback(e, rows, commit, i < 0 ? &s : &seconds[i], err);
    }
    return st;
}

/* ---- the parts of a pass ------------------------------------------------------------------------------------------------ */

_Static_assert((int)HUNCH_PHASES == (int)HN_PHASES, "one list of phases");

hunch_status hunch_measure_profile(hunch_engine *e, int rows, int context, hunch_phase phases[HUNCH_PHASES], double *pass_s,
                                   hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"phases", phases}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hn_phase_sum sum[HN_PHASES];
    hn_profile *p = NULL;
    double seconds;
    if (e->model->target.backend->failed) /* a device: the host records its operations, which run later */
        return hn_fail(err, HUNCH_USAGE, "the parts of a pass are measured on CPUs alone: expected a model opened with --device cpu");
    st = hunch_measure_pass(e, rows, context, 1, &seconds, err); /* warms up */
    if (!st) st = hn_profile_open(&p, e->model->target.backend->ops, e->model->target.pool, err);
    if (st) return st;
    hn_runner_set_ops(e->runner, hn_profile_ops(p));
    st = timed_pass(e, rows, &seconds, err);
    hn_runner_set_ops(e->runner, NULL);
    hn_profile_take(p, sum);
    hn_profile_close(&p);
    for (int i = 0; i < HN_PHASES; i++) { /* the unnamed phase comes last */
        const hn_phase at = (hn_phase)((i + 1) % HN_PHASES);
        phases[i] = (hunch_phase){hn_phase_name(at), sum[at].calls, sum[at].seconds, sum[at].waited, sum[at].bytes, sum[at].macs};
    }
    if (pass_s) *pass_s = seconds;
    return st;
}

static void add_matrix(const hn_backend *o, const hn_weight *w, double rows, hunch_work *work) {
    const int form = w->wide ? HN_ACT_F32 : o->act_forms(o, w->dtype);
    double *to = form == HN_ACT_Q8 ? &work->macs_int8 : form == HN_ACT_F32 ? &work->macs_f32 : &work->macs_bf16;
    *to += rows * w->out * w->in;
}

static void add_mixer(const hn_backend *o, const hn_mixer_kind *kind, const hn_layer *l, const void *own, double rows, hunch_work *work) {
    const hn_weight *w[HN_MIXER_MATRICES];
    const int n = kind->matrices ? kind->matrices(l, own, w) : 0;
    for (int i = 0; i < n; i++) add_matrix(o, w[i], rows * (w[i]->of_heads ? w[i]->experts : 1), work);
}

static void add_ffn(const hn_backend *o, const hn_ffn_kind *kind, const hn_layer *l, double rows, hunch_work *work) {
    hn_ffn_matrix w[HN_FFN_MATRICES];
    const int n = kind ? kind->matrices(l, w) : 0;
    for (int i = 0; i < n; i++) add_matrix(o, w[i].w, rows * w[i].used, work);
}

void hunch_engine_work(const hunch_engine *e, int rows, int logits, int context, hunch_work *out) {
    if (!out) return;
    *out = (hunch_work){0};
    if (!e) return;
    const hn_model *m = &e->model->target;
    const double output_bytes = (double)hn_packed_bytes(m, &m->output);
    const hn_kv_work kv = hn_model_kv_work(m->run, e->kv, context, rows);
    *out = (hunch_work){.weight_bytes = (double)m->weight_bytes - (logits ? 0 : output_bytes), .kv_bytes = kv.bytes};
    *(m->backend->attention_in_bf16(m->backend, e->kv) ? &out->macs_bf16 : &out->macs_f32) += kv.macs;
    add_matrix(m->backend, &m->output, logits, out);
    add_matrix(m->backend, &m->token_product, rows, out);
    for (int i = 0; i < m->run.n; i++) {
        const hn_layer *l = &m->layer[i];
        const hn_layer_desc *d = &m->run.at[i];
        add_matrix(m->backend, &l->input_gate, rows, out);
        add_matrix(m->backend, &l->input_product, rows, out);
        for (int k = 0; k < hn_layer_mixers(d); k++) add_mixer(m->backend, d->mixer[k].kind, l, l->own[k], rows, out);
        add_ffn(m->backend, hn_ffn_of(d), l, rows, out);
    }
}

/* ---- the machine -------------------------------------------------------------------------------------------------------- */

struct hunch_meter {
    hn_pool *pool; /* owned; NULL: the model's */
    const hn_pool *runs; /* that, or the model's */
    hn_isa isa;
    hn_machine *machine;
};

hunch_status hunch_meter_open(hunch_meter **out, const hunch_model *m, const hunch_model_options *o, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hn_isa isa = HN_ISA_REF;
    hunch_model_options usual;
    hunch_model_options_defaults(&usual);
    if (!o) o = &usual;
    if (m && m->text_only)
        return hn_fail(err, HUNCH_USAGE, "this model was opened for its text alone: expected one with weights");
    st = m ? HUNCH_OK : hn_isa_parse(o->isa, &isa, err);
    if (st) return st;
    hunch_meter *t = hn_zalloc(1, sizeof *t);
    if (!t) return hn_fail_memory(err, "a meter", sizeof *t);
    if (!m) st = hn_pool_create(&t->pool, o->threads ? o->threads : hn_cores(), err);
    hn_pool *pool = m ? m->target.pool : t->pool;
    t->runs = pool;
    t->isa = m ? m->target.isa : isa;
    if (!st) st = hn_machine_open(&t->machine, pool, t->isa, err);
    if (st) {
        hunch_meter_close(&t);
        return st;
    }
    *out = t;
    return HUNCH_OK;
}

void hunch_meter_close(hunch_meter **tp) {
    hunch_meter *t = tp ? *tp : NULL;
    if (!t) return;
    *tp = NULL;
    hn_machine_close(&t->machine);
    hn_pool_free(t->pool);
    hn_free(t);
}

hunch_status hunch_meter_read(hunch_meter *t, size_t bytes, int threads, bool huge_pages, int n, double *gb_s,
                              hunch_error *err) {
    const hn_argument needed[] = {{"t", t}, {"gb_s", gb_s}, {0}};
    if (hn_check_arguments(__func__, needed, err)) return HUNCH_USAGE;
    const int most = hn_pool_threads(t->runs);
    if (threads < 1 || threads > most) return hn_fail(err, HUNCH_USAGE, "%d threads: expected 1 to %d", threads, most);
    if (bytes / 4096 < (size_t)threads)
        return hn_fail(err, HUNCH_USAGE, "%zu bytes to read: expected 4096 a thread at least", bytes);
    return hn_machine_read(t->machine, bytes, threads, huge_pages, n, gb_s, err);
}

hunch_status hunch_meter_machine(hunch_meter *t, hunch_machine *out, hunch_error *err) {
    const hn_argument needed[] = {{"t", t}, {"out", out}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    enum { READINGS = 8 };
    double gb_s[READINGS];
    hn_peaks p;
    memset(out, 0, sizeof *out);
    hn_cpu_name(out->cpu, sizeof out->cpu);
    out->isa = hn_isa_name(t->isa);
    out->threads = hn_pool_threads(t->runs);
    st = hn_machine_read(t->machine, (size_t)1 << 30, out->threads, true, READINGS, gb_s, err);
    if (!st) st = hn_machine_peaks(t->machine, &p, err);
    if (st) return st;
    for (int i = 0; i < READINGS; i++)
        if (gb_s[i] > out->read_gb_s) out->read_gb_s = gb_s[i];
    out->int8_gmac_s = p.int8_gmac_s;
    out->bf16_gmac_s = p.bf16_gmac_s;
    out->f32_gmac_s = p.f32_gmac_s;
    out->int8_dot_gmac_s = p.int8_dot_gmac_s;
    out->bf16_dot_gmac_s = p.bf16_dot_gmac_s;
    out->barrier_us = p.barrier_us;
    return HUNCH_OK;
}
