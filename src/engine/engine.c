/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - opening an engine (pool, runner, drafters) and its sessions; scheduler.c decides which sessions have a place. */
#include "engine/drafting.h"
#include "engine/pass_costs.h"
#include "engine/statistics.h"

#include <assert.h>
#include <string.h>

#include "base/keyed_hash.h"
#include "base/least.h"
#include "base/mem.h"
#include "plan/tree_rows.h"

enum { DEFAULT_CONTEXT = 8192 };

void hunch_engine_options_defaults(hunch_engine_options *o) {
    if (!o) return;
    memset(o, 0, sizeof *o);
    o->parallel = 1;
    o->page_rows = 64;
}

enum { MOST_PAUSE = 3600 };

static hunch_status check_options(const hunch_engine_options *o, const hunch_model *m, hunch_error *err) {
    if (o->context < 0 || o->context > m->target.arch.context)
        return hn_fail(err, HUNCH_USAGE, "context %d: this model takes 1 to %d", o->context, m->target.arch.context);
    _Static_assert((int)HUNCH_MOST_PARALLEL == (int)HN_MAX_TEXTS, "hunch.h says how many");
    if (o->parallel < 1 || o->parallel > HN_MAX_TEXTS)
        return hn_fail(err, HUNCH_USAGE, "parallel %d: expected 1 to %d", o->parallel, HN_MAX_TEXTS);
    if (o->draft_depth < 0 || o->draft_depth > HUNCH_MAX_DEPTH)
        return hn_fail(err, HUNCH_USAGE, "draft_depth %d: expected 0 (as drafters choose) to %d", o->draft_depth, HUNCH_MAX_DEPTH);
    if (!(o->max_pause >= 0 && o->max_pause <= MOST_PAUSE))
        return hn_fail(err, HUNCH_USAGE, "max_pause %g: expected 0 (about two rounds) to %d seconds", o->max_pause, MOST_PAUSE);
    if (o->chunk < 0) return hn_fail(err, HUNCH_USAGE, "chunk %d: expected 1 or more, or 0 (as the model asks)", o->chunk);
    /* a caller in another language may send any number */
    if ((unsigned)o->kv > HUNCH_KV_Q8_0) return hn_fail(err, HUNCH_USAGE, "cache type %d: expected one of enum hunch_kv", (int)o->kv);
    if ((unsigned)o->verify > HUNCH_VERIFY_TRAVERSAL)
        return hn_fail(err, HUNCH_USAGE, "verify %d: expected one of enum hunch_verify", (int)o->verify);
    if (o->pool_rows < 0) return hn_fail(err, HUNCH_USAGE, "pool_rows %d: expected 0 (as the context asks) or more", o->pool_rows);
    if (o->n_drafts < 0 || (o->n_drafts > 0 && !o->drafts))
        return hn_fail(err, HUNCH_USAGE, "%d drafters: expected a list of so many", o->n_drafts);
    for (int i = 0; i < o->n_drafts; i++)
        if (!o->drafts[i]) return hn_fail(err, HUNCH_USAGE, "drafter %d: expected a spec, such as \"ngram\"", i);
    return HUNCH_OK;
}

/* ---- drafters ----------------------------------------------------------------------------------------------------------- */

bool hn_gives_way(const hunch_engine *e, const hn_drafter *d, hn_rule rule) {
    bool any_dist = false;
    for (int i = 0; i < e->n_drafters; i++) any_dist |= e->drafter[i].needs.has_dist;
    return d->needs.for_grammar && any_dist && hn_rule_wants_dist(rule);
}

/* A rule that does not fit the drafters' trees is refused at opening, not in the middle of a text. */
static hunch_status check_rule(const hunch_engine *e, hunch_error *err) {
    const hunch_sampling warm = {.temperature = 1, .top_p = 1};
    hn_rule_drafter d[HN_MAX_MODELS];
    hn_rule rule = HN_RULE_GREEDY;
    hunch_status st = HUNCH_OK;
    if (e->verify != HUNCH_VERIFY_GREEDY) st = hn_rule_choose(e->verify, &e->lossy, &warm, &rule, err);
    int n = 0;
    for (int i = 0; !st && i < e->n_drafters; i++) {
        const hn_drafter *o = &e->drafter[i];
        if (!hn_gives_way(e, o, rule)) d[n++] = (hn_rule_drafter){o->name, o->needs.has_dist, o->needs.branches};
    }
    return st ? st : hn_rule_check(rule, d, n, err);
}

/* The features that the drafters and pooled states need, together. */
static hn_feature_set feature_set(const hunch_engine *e) {
    hn_feature_set f = {{0}, e->pooling};
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_feature_set *want = &e->drafter[i].needs.features;
        for (int w = 0; w < 4; w++) f.layers[w] |= want->layers[w];
        f.post_norm |= want->post_norm;
    }
    return f;
}

enum { USUAL_STATES = 16 }; /* kept for later texts, if four times their size is available */

/* How many states of recurrent layers the index may keep: a text's states of the model and of all drafters count together. */
static hunch_status limit_states(hn_cache_group *group, int n, uint64_t bytes, size_t left, hunch_error *err) {
    uint64_t each = 0;
    for (int g = 0; g < n; g++)
        if (group[g].kind == HN_CACHE_STATE) each += (uint64_t)group[g].units * group[g].unit_bytes;
    if (each == 0) return HUNCH_OK;
    const uint64_t fit = (bytes ? bytes : left / 4) / each, limit = bytes ? INT16_MAX : USUAL_STATES;
    if (bytes && fit < 1)
        return hn_fail(err, HUNCH_USAGE, "state_bytes %llu: a text's state takes %llu, those of its draft models included",
                       (unsigned long long)bytes, (unsigned long long)each);
    const int kept = fit > limit ? (int)limit : (int)fit;
    for (int g = 0; g < n; g++)
        if (group[g].kind == HN_CACHE_STATE) group[g].kept = kept > 1 ? kept : 1;
    return HUNCH_OK;
}

/* ---- prefill -------------------------------------------------------------------------------------------------------------- */

/* Rows of a prompt: with experts so many that on average ROWS_OF_EXPERT of them use one: reading its weights then takes a small part of
 * the time of its products. The usual number is as fast as more in a dense model; in a recurrent one a pass leaves
 * one state for the index, so with longer passes a text that begins like another one finds fewer of them. */
static int rows_of_prompt(hn_layers of, int usual) {
    enum { ROWS_OF_EXPERT = 16 };
    int rows = hn_model_is_recurrent(of) ? HN_MAX_ROWS : usual;
    for (int i = 0; i < of.n; i++) {
        const hn_expert_desc *d = &of.at[i].experts;
        while (hn_layer_has_experts(&of.at[i]) && rows < HN_PASS_ROWS && rows * d->used < ROWS_OF_EXPERT * d->count) rows *= 2;
    }
    return rows;
}

/* About the memory of a pass of this many rows: pairs of rows and experts while they are computed, and each text's inputs of recurrent
 * layers that rows leave in the cache. */
static size_t bytes_of_rows(const hunch_engine *e, int rows) {
    const hn_arch *a = &e->model->target.arch;
    const size_t inputs = (size_t)hn_model_group_bytes(e->model->target.run, HN_CACHE_ROWS) * (size_t)(e->parallel + 1);
    size_t most = 0;
    for (int i = 0; i < a->layers; i++) {
        const hn_expert_desc *d = &a->layer[i].experts;
        const size_t of_pair = 2 * sizeof(float) * (size_t)(a->hidden + d->width);
        if (hn_layer_has_experts(&a->layer[i]) && of_pair * (size_t)d->used > most) most = of_pair * (size_t)d->used;
    }
    return (most + inputs) * (size_t)rows;
}

/* As many as that, or half as many of recurrent layers, if context and memory allow. */
static void choose_chunk(hunch_engine *e, int asked) {
    const hn_layers of = e->model->target.run;
    const int usual = hn_model_is_recurrent(of) ? HN_PASS_ROWS / 2 : HN_PASS_ROWS;
    hn_backend_limits limits;
    e->model->target.backend->limits(e->model->target.backend, &limits);
    int rows = asked ? asked : rows_of_prompt(of, limits.prompt_rows);
    while (!asked && rows > HN_MAX_ROWS &&
           (rows > usual || rows > e->context || bytes_of_rows(e, rows) > limits.memory_left / 8))
        rows /= 2;
    e->chunk = rows < HN_PASS_ROWS ? rows : HN_PASS_ROWS;
}

/* Of a pass: all trees of a round, and beside them the last row of each prompt, have logits; a single text has one or the other. */
static void choose_sizes(hunch_engine *e) {
    _Static_assert(HN_MAX_TEXTS + HN_TREE_ROWS <= HN_PASS_ROWS, "one pass has all trees");
    const int trees = e->parallel > 1 ? e->parallel + HN_TREE_ROWS : HN_TREE_ROWS;
    e->most.texts = hn_most(e->parallel, HN_MAX_ROWS);
    e->most.logits = trees;
    e->most.rows = hn_least(hn_most(e->chunk, HN_MAX_ROWS) + trees, HN_PASS_ROWS);
    e->most.best = 1;
    for (int i = 0; i < e->n_drafters; i++) e->most.best = hn_most(e->most.best, e->drafter[i].needs.best);
}

static void promise(hunch_engine *e, hn_account_part part, int64_t bytes) {
    e->promised[part] += bytes;
    hn_account_add(&e->model->account, part, bytes, 0);
}

/* What its texts may take beside pages, planned before these are: lists by token, of samplers and of drafters that draw. */
static void promise_lists(hunch_engine *e) {
    const int64_t vocab = e->model->target.arch.vocab, texts = e->parallel;
    promise(e, HN_ACCOUNT_SAMPLERS, texts * (int64_t)hn_sampler_most_bytes((int)vocab));
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        const int64_t of_token = sizeof(int32_t) + sizeof(float);
        if (d->needs.has_dist && e->verify != HUNCH_VERIFY_DEFAULT && e->verify != HUNCH_VERIFY_MATCH && e->verify != HUNCH_VERIFY_GREEDY)
            promise(e, HN_ACCOUNT_DISTS, texts * of_token * vocab * d->needs.max_depth);
    }
}

/* Once drafters are attached. */
static void plan_stores(hunch_engine *e) {
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        if (d->ops->text_bytes) promise(e, HN_ACCOUNT_STORES, (int64_t)e->parallel * (int64_t)d->ops->text_bytes(d, e->context));
    }
}

static void promise_end(hunch_engine *e) {
    for (int i = 0; i < HN_ACCOUNT_PARTS; i++) hn_account_add(&e->model->account, i, -e->promised[i], 0);
}

/* One pool for the target and for every drafter with rows of its own (contract C7). */
static hunch_status open_pool(hunch_engine *e, const hunch_engine_options *o, hunch_error *err) {
    hn_cache_group group[HN_MAX_GROUPS];
    const int of_target = hn_kv_groups(e->model->target.run, e->kv, group, NULL);
    int n = of_target;
    if (n == 0) return hn_fail(err, HUNCH_REFUSED, "layers with more than %d kinds of rows", HN_MODEL_GROUPS);
    group[0].page_rows = o->page_rows;
    for (int g = 0; g < of_target; g++) group[g].tentative = group[g].window ? hn_most(e->chunk, HN_MAX_ROWS) : 0;
    for (int i = 0; i < e->n_drafters; i++)
        for (int g = 0; g < e->drafter[i].needs.n_groups; g++) {
            if (n == HN_MAX_GROUPS) return hn_fail(err, HUNCH_USAGE, "drafters with more than %d cache groups", n - of_target);
            group[n] = e->drafter[i].needs.group[g];
            group[n++].model_id = i + 1;
        }
    hunch_status st = limit_states(group, n, o->state_bytes, hn_backend_memory_left(e->model->target.backend), err);
    for (int g = 0; g < of_target; g++) e->states = group[g].kept > e->states ? group[g].kept : e->states;
    if (!st) st = hn_cache_open(&e->cache, e->model->target.backend, group, n, e->parallel + 1, e->context, o->pool_rows, err);
    if (!st && o->kept_bytes) hn_cache_keep(e->cache, o->kept_bytes > 0 ? (size_t)o->kept_bytes : 0);
    int first = of_target;
    for (int i = 0; !st && i < e->n_drafters; i++) {
        hn_drafter *d = &e->drafter[i];
        if (d->ops->attach) st = d->ops->attach(d, e->cache, first, i + 1, err);
        first += d->needs.n_groups;
    }
    return st;
}

static hunch_status open_controller(hunch_engine *e, hunch_error *err) {
    hn_draft_cost kinds[HN_MAX_MODELS] = {HN_COST_PER_ROUND};
    for (int i = 0; i < e->n_drafters; i++) kinds[i] = e->drafter[i].needs.cost;
    hunch_status st = hn_controller_open(&e->controller, kinds, e->n_drafters, e->parallel + 1, err);
    for (int d = 0; !st && d < e->n_drafters; d++) {
        hn_controller_limit(e->controller, d, e->drafter[d].needs.max_depth);
        if (e->drafter[d].needs.stays) hn_controller_stays(e->controller, d);
        if (e->drafter[d].needs.shorter) hn_controller_saves(e->controller, d);
    }
    return st ? st : hn_curves_open(e, err);
}

/* The internal sequence has no tree beside others. */
static hunch_status open_cut(hunch_engine *e, hunch_error *err) {
    const size_t n = (size_t)e->parallel * HN_TREE_ROWS;
    e->cut = hn_zalloc(n, sizeof *e->cut);
    return e->cut ? HUNCH_OK : hn_fail_memory(err, "rows of trees", n * sizeof *e->cut);
}

/* ---- the engine -------------------------------------------------------------------------------------------------------- */

static hunch_status open_parts(hunch_engine *e, const hunch_engine_options *o, hunch_error *err) {
    bool controlled = false;
    e->session = hn_zalloc((size_t)e->parallel, sizeof(hunch_session *));
    if (!e->session) return hn_fail_memory(err, "sessions", (size_t)e->parallel * sizeof(hunch_session *));
    hunch_status st = hn_engine_open_drafters(e, o, &controlled, err);
    if (!st) st = check_rule(e, err);
    if (!st) st = hn_stats_open(e, err);
    if (!st && e->n_drafters > 0) st = open_cut(e, err);
    choose_chunk(e, o->chunk);
    choose_sizes(e);
    if (!st) st = hn_text_lists_open(&e->list, e->parallel, e->most.rows, err);
    if (!st) promise_lists(e);
    if (!st) st = open_pool(e, o, err);
    if (!st) plan_stores(e);
    const hn_feature_set features = feature_set(e);
    if (!st) st = hn_runner_open_for(&e->runner, &e->model->target, e->cache, 0, e->context, &e->most, &features, err);
    if (!st) st = hn_verifiers_open(&e->verifiers, e->model->target.pool, e->model->target.arch.vocab, err);
    if (!st && controlled) st = open_controller(e, err);
    return st ? st : hn_oracle_open(e, o, err);
}

/* The default: short enough that longrope does not use its factors for long texts. */
static int usual_context(const hn_arch *a) {
    int most = hn_least(a->context, DEFAULT_CONTEXT);
    for (int i = 0; i < a->rotations; i++)
        if (a->rotation[i].freq_long) most = hn_least(most, (int)a->rotation[i].scaling.original);
    return most;
}

hunch_status hunch_engine_open(hunch_engine **out, hunch_model *m, const hunch_engine_options *o, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {"m", m}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    const hn_arch *a = &m->target.arch;
    hunch_engine_options usual;
    hunch_engine_options_defaults(&usual);
    if (!o) o = &usual;
    if (m->text_only) return hn_fail(err, HUNCH_USAGE, "this model was opened for its text alone: expected one with weights");
    st = check_options(o, m, err);
    if (st) return st;
    hunch_engine *e = hn_zalloc(1, sizeof *e);
    if (!e) return hn_fail_memory(err, "engine", sizeof *e);
    e->model = m;
    e->context = o->context ? o->context : usual_context(a);
    e->parallel = o->parallel;
    e->verify = o->verify;
    e->lossy = o->lossy;
    e->max_pause = o->max_pause;
    e->kv = hn_kv_type(m, o->kv);
    e->reuse = !o->no_prefix_reuse;
    e->pooling = o->pooling;
    hn_hash_key(e->salt_key);
    st = open_parts(e, o, err);
    if (st) {
        hunch_engine_close(&e);
        return st;
    }
    *out = e;
    return HUNCH_OK;
}

void hunch_engine_close(hunch_engine **ep) {
    hunch_engine *e = ep ? *ep : NULL;
    if (!e) return;
    *ep = NULL;
    for (int i = 0; e->session && i < e->parallel; i++)
        if (e->session[i]) hunch_session_cancel(e->session[i]);
    while (e->queue) hunch_session_cancel(e->queue);
    while (e->streams) hn_stream_end(e->streams); /* ended, but their callbacks were not called: no round followed */
    promise_end(e);
    hn_oracle_close(e);
    hn_curves_close(e);
    hn_controller_close(&e->controller);
    for (int i = 0; i < e->n_drafters; i++) hn_drafter_close(&e->drafter[i]);
    hn_verifiers_close(&e->verifiers);
    hn_runner_close(&e->runner);
    hn_cache_close(&e->cache);
    hn_name_list_fini(&e->notes);
    hn_name_list_fini(&e->left_out);
    hn_free(e->drafter);
    hn_free(e->session);
    hn_free(e->drafter_stats);
    hn_text_lists_close(&e->list);
    hn_free(e->cut);
    hn_free(e);
}

hunch_status hn_engine_check_idle(const hunch_engine *e, hunch_error *err) {
    if (!e->busy) return HUNCH_OK;
    return hn_fail(err, HUNCH_USAGE, "the engine is in the middle of a call: expected its callback to return first");
}

void hn_engine_enter(hunch_engine *e) {
    assert(!e->busy && e->n_held == 0);
    e->busy = true;
    for (int i = 0; i < e->parallel; i++) {
        if (!e->session[i]) continue;
        e->session[i]->held = true;
        e->list.held[e->n_held++] = e->session[i];
    }
}

void hn_engine_leave(hunch_engine *e) {
    e->busy = false;
    while (e->n_held > 0) hn_session_let_go(e->list.held[--e->n_held]);
    if (e->forget) hunch_engine_forget(e);
}

/* Of what only texts have: those that have a place. */
static void count_texts(const hunch_engine *e, hunch_memory *m) {
    int placed = 0;
    for (int i = 0; i < e->parallel; i++) {
        const hunch_session *s = e->session[i];
        if (!s) continue;
        placed++;
        m->part[HUNCH_MEMORY_SAMPLERS].taken += hn_sampler_bytes(&s->sampler);
        for (int d = 0; d < e->n_drafters; d++)
            if (e->drafter[d].ops->text_bytes)
                m->part[HUNCH_MEMORY_STORES].taken += e->drafter[d].ops->text_bytes(&e->drafter[d], (int)s->text.n);
    }
    m->part[HUNCH_MEMORY_DISTS].taken = m->part[HUNCH_MEMORY_DISTS].planned / (uint64_t)e->parallel * (uint64_t)placed;
}

void hunch_engine_get_memory(const hunch_engine *e, hunch_memory *out) {
    _Static_assert((int)HUNCH_MEMORY_PARTS == (int)HN_ACCOUNT_PARTS && (int)HUNCH_MEMORY_BUFFERS == (int)HN_ACCOUNT_BUFFERS &&
                       (int)HUNCH_MEMORY_SAMPLERS == (int)HN_ACCOUNT_SAMPLERS,
                   "the parts of hunch.h");
    if (!out) return;
    *out = (hunch_memory){0};
    if (!e) return;
    for (int i = 0; i < HUNCH_MEMORY_PARTS; i++) {
        const int64_t planned = hn_account_planned(&e->model->account, i), taken = hn_account_taken(&e->model->account, i);
        out->part[i] = (hunch_memory_part){planned > 0 ? (uint64_t)planned : 0, taken > 0 ? (uint64_t)taken : 0};
    }
    count_texts(e, out);
    for (int i = 0; i < HUNCH_MEMORY_PARTS; i++) {
        out->planned += out->part[i].planned;
        out->taken += out->part[i].taken;
    }
}

const char *hunch_memory_part_name(int part) {
    static const char *const names[] = {"weights", "pages", "stores", "samplers", "distributions", "grammars", "buffers"};
    return part >= 0 && part < HUNCH_MEMORY_PARTS ? names[part] : NULL;
}

int hunch_engine_states(const hunch_engine *e) {
    return e ? e->states : 0;
}

int hunch_engine_context(const hunch_engine *e) {
    return e ? e->context : 0;
}

int hunch_engine_chunk(const hunch_engine *e) {
    return e ? e->chunk : 0;
}

int hunch_engine_drafters(const hunch_engine *e) {
    return e ? e->n_drafters : 0;
}

const char *hunch_engine_drafter_name(const hunch_engine *e, int index) {
    return e && index >= 0 && index < e->n_drafters ? e->drafter[index].label : NULL;
}

const char *hunch_engine_drafter_about(const hunch_engine *e, int index) {
    return e && index >= 0 && index < e->n_drafters ? e->drafter[index].about : NULL;
}

uint64_t hunch_engine_drafter_bytes(const hunch_engine *e, int index, int tokens) {
    const hn_drafter *d = e && index >= 0 && index < e->n_drafters ? &e->drafter[index] : NULL;
    return d && d->ops->text_bytes ? d->ops->text_bytes(d, hn_most(tokens, 0)) : 0;
}

void hunch_engine_forget(hunch_engine *e) {
    if (!e) return;
    e->forget = e->busy;
    if (e->busy) return;
    for (int i = 0; i < e->n_drafters; i++)
        if (e->drafter[i].ops->forget) e->drafter[i].ops->forget(&e->drafter[i]);
    hn_cache_index_clear(e->cache);
    if (e->controller) hn_controller_forget(e->controller);
}
