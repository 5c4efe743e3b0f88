/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - opening an engine (pool, runner, drafters) and its sessions. */
#include "engine/engine.h"

#include <string.h>

#include "base/mem.h"

enum { DEFAULT_CONTEXT = 8192 };

void hunch_engine_options_defaults(hunch_engine_options *o) {
    memset(o, 0, sizeof *o);
    o->parallel = 1;
    o->chunk = HN_MAX_ROWS;
    o->page_rows = 64;
}

static hunch_status check_options(const hunch_engine_options *o, const hunch_model *m, hunch_error *err) {
    if (o->context < 0 || o->context > m->target.arch.context)
        return hn_fail(err, HUNCH_USAGE, "context %d: this model takes 1 to %d", o->context, m->target.arch.context);
    if (o->parallel < 1 || o->parallel > HN_MAX_ROWS)
        return hn_fail(err, HUNCH_USAGE, "parallel %d: expected 1 to %d", o->parallel, HN_MAX_ROWS);
    if (o->chunk < 1 || o->chunk > HN_MAX_ROWS)
        return hn_fail(err, HUNCH_USAGE, "chunk %d: expected 1 to %d", o->chunk, HN_MAX_ROWS);
    if (o->n_drafts < 0) return hn_fail(err, HUNCH_USAGE, "%d drafters", o->n_drafts);
    return HUNCH_OK;
}

static hn_dtype kv_type(const hunch_engine *e, hunch_kv kv) {
    if (kv == HUNCH_KV_DEFAULT) kv = e->model->precision == HUNCH_PRECISION_F32 ? HUNCH_KV_F32 : HUNCH_KV_BF16;
    return kv == HUNCH_KV_F32 ? HN_F32 : kv == HUNCH_KV_F16 ? HN_F16 : HN_BF16;
}

/* "none" opens nothing; "auto" is today the drafter that every model has: n-gram lookup. */
static hunch_status open_drafters(hunch_engine *e, const hunch_engine_options *o, hunch_error *err) {
    const hn_arch *a = &e->model->target.arch;
    const hn_target_info info = {a->vocab, a->hidden, a->layers, e->context};
    if (o->n_drafts == 0) return HUNCH_OK;
    e->drafter = hn_zalloc((size_t)o->n_drafts, sizeof *e->drafter);
    if (!e->drafter) return hn_fail_memory(err, "drafters", (size_t)o->n_drafts * sizeof *e->drafter);
    for (int i = 0; i < o->n_drafts; i++) {
        const char *spec = o->drafts[i];
        if (!strcmp(spec, "none")) continue;
        if (!strcmp(spec, "auto")) spec = "ngram";
        hn_drafter *d = &e->drafter[e->n_drafters];
        hunch_status st = hn_drafter_open(d, spec, e->n_drafters, e->parallel + 1, &info, err);
        if (st) return st;
        e->n_drafters++;
        e->needs_oracle |= d->needs.oracle;
        e->feeds |= d->ops->feed != NULL;
    }
    return HUNCH_OK;
}

/* The features that any drafter wants. */
static hn_feature_set feature_set(const hunch_engine *e) {
    hn_feature_set f = {{0}, false};
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_feature_set *want = &e->drafter[i].needs.features;
        for (int w = 0; w < 4; w++) f.layers[w] |= want->layers[w];
        f.post_norm |= want->post_norm;
    }
    return f;
}

hunch_status hunch_engine_open(hunch_engine **out, hunch_model *m, const hunch_engine_options *o, hunch_error *err) {
    *out = NULL;
    const hn_arch *a = &m->target.arch;
    hunch_status st = check_options(o, m, err);
    if (st) return st;
    hunch_engine *e = hn_zalloc(1, sizeof *e);
    if (!e) return hn_fail_memory(err, "engine", sizeof *e);
    e->model = m;
    e->context = o->context ? o->context : a->context < DEFAULT_CONTEXT ? a->context : DEFAULT_CONTEXT;
    e->parallel = o->parallel;
    e->chunk = o->chunk;
    e->verify = o->verify;
    const hn_layer_desc *d = &a->layer[0];
    const hn_cache_group full = {"attention", a->layers, d->kv_heads, d->head_dim, kv_type(e, o->kv), o->page_rows, 0};
    e->session = hn_zalloc((size_t)e->parallel, sizeof(hunch_session *));
    if (!e->session) st = hn_fail_memory(err, "sessions", (size_t)e->parallel * sizeof(hunch_session *));
    if (!st) st = open_drafters(e, o, err);
    if (!st) st = hn_cache_open(&e->cache, &m->target.ops, &full, 1, e->parallel + 1, e->context, err);
    const hn_feature_set features = feature_set(e);
    if (!st) st = hn_runner_open(&e->runner, &m->target, e->cache, e->context, &features, err);
    if (st) {
        hunch_engine_close(&e);
        return st;
    }
    *out = e;
    return HUNCH_OK;
}

void hunch_engine_close(hunch_engine **ep) {
    hunch_engine *e = *ep;
    *ep = NULL;
    if (!e) return;
    for (int i = 0; e->session && i < e->parallel; i++)
        if (e->session[i]) hunch_session_cancel(e->session[i]);
    for (int i = 0; i < e->n_drafters; i++) hn_drafter_close(&e->drafter[i]);
    hn_runner_close(&e->runner);
    hn_cache_close(&e->cache);
    hn_free(e->drafter);
    hn_free(e->session);
    hn_free(e);
}

int hunch_engine_drafters(const hunch_engine *e) {
    return e->n_drafters;
}

const char *hunch_engine_drafter_name(const hunch_engine *e, int index) {
    return index >= 0 && index < e->n_drafters ? e->drafter[index].name : NULL;
}

void hunch_engine_forget(hunch_engine *e) {
    for (int i = 0; i < e->n_drafters; i++)
        if (e->drafter[i].ops->forget) e->drafter[i].ops->forget(&e->drafter[i]);
}

/* ---- sessions -------------------------------------------------------------------------------------------------------- */

void hn_session_release(hunch_session *s) {
    hunch_engine *e = s->engine;
    if (s->id < 0) return;
    for (int i = 0; i < e->n_drafters && !s->plain; i++)
        if (e->drafter[i].ops->end) e->drafter[i].ops->end(&e->drafter[i], s->id);
    hn_cache_seq_end(e->cache, s->id);
    if (!s->plain) e->session[s->id] = NULL;
    s->id = -1;
}

/* The plain continuation of a request, generated with the inside sequence before the session begins. */
static hunch_status run_oracle(hunch_engine *e, const hunch_request *r, hunch_session **oracle, hunch_error *err) {
    hunch_request plain = *r;
    plain.on_logits = NULL;
    hn_look_end_measure(e);
    hunch_status st = hn_session_create(oracle, e, &plain, e->parallel, err);
    if (st) return st;
    (*oracle)->plain = true;
    while (!st && hn_session_running(*oracle)) st = hn_round(e, oracle, 1, err);
    if (!st && (*oracle)->stats.finish == HUNCH_FINISH_FAILED)
        st = hn_fail(err, (*oracle)->stats.error.status, "%s", (*oracle)->stats.error.message);
    hn_session_release(*oracle);
    return st;
}

static hunch_status begin_drafters(hunch_session *s, const hunch_session *oracle, hunch_error *err) {
    hunch_engine *e = s->engine;
    const hn_begin b = {.seq = s->id,
                        .seed = s->sampler.params.seed,
                        .rows_restored = 0,
                        .oracle = oracle ? oracle->text + oracle->n_prompt : NULL,
                        .n_oracle = oracle ? (int)hn_session_emitted(oracle) : 0};
    for (int i = 0; i < e->n_drafters; i++) {
        hunch_status st = e->drafter[i].ops->begin(&e->drafter[i], &b, 1, err);
        if (st) {
            while (--i >= 0) e->drafter[i].ops->end(&e->drafter[i], s->id);
            return st;
        }
    }
    return HUNCH_OK;
}

hunch_status hunch_session_open(hunch_session **out, hunch_engine *e, const hunch_request *r, hunch_error *err) {
    *out = NULL;
    int id = 0;
    hunch_session *s = NULL, *oracle = NULL;
    while (id < e->parallel && e->session[id]) id++;
    if (id == e->parallel)
        return hn_fail(err, HUNCH_NO_MEMORY, "%d sessions are open already: the engine was opened for %d", e->parallel,
                       e->parallel);
    hunch_status st = e->needs_oracle ? run_oracle(e, r, &oracle, err) : HUNCH_OK;
    if (!st) st = hn_session_create(&s, e, r, id, err);
    if (!st && (st = begin_drafters(s, oracle, err))) {
        hn_cache_seq_end(e->cache, id);
        hn_session_destroy(s);
    }
    if (oracle) hn_session_destroy(oracle);
    if (st) return st;
    e->session[id] = s;
    *out = s;
    return HUNCH_OK;
}

void hunch_session_close(hunch_session **sp) {
    hunch_session *s = *sp;
    if (!s) return;
    *sp = NULL;
    hn_session_release(s);
    hn_session_destroy(s);
}
