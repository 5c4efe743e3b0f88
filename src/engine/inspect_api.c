/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_api.c - inspection: logits of a text, one draft, the contents of a file. They use the engine's internal sequence (id
 * `parallel`), so that running sessions are not affected. Measuring: measure_api.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "draft/head/head_kind.h"
#include "convert/head_to_gguf.h"
#include "engine/engine.h"
#include "format/json_load.h"

void hn_chain_rows(hn_row *rows, const hunch_token *tokens, int n, hn_logits logits) {
    for (int i = 0; i < n; i++) rows[i] = (hn_row){.token = tokens[i], .parent = (int16_t)(i - 1), .logits = logits};
}

hunch_status hunch_evaluate(hunch_engine *e, const hunch_token *tokens, size_t n,
                            void (*row)(void *user, size_t position, const float *logits, int vocab), void *user,
                            hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"tokens", tokens || n == 0}, {"row", row}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hn_row rows[HN_MAX_ROWS];
    const int id = e->parallel, vocab = e->model->target.arch.vocab;
    if (n == 0) return hn_fail(err, HUNCH_USAGE, "no tokens: expected at least one");
    if (n > (size_t)e->context) return hn_fail_context(e, "text", n, err);
    st = hn_check_tokens(e, "", tokens, n, err);
    if (!st) st = hn_engine_check_idle(e, err);
    if (st) return st;
    hn_measure_end(e);
    e->busy = true;
    hn_cache_seq_begin(e->cache, id);
    const int chunk = e->chunk < HN_MAX_ROWS ? e->chunk : HN_MAX_ROWS;
    for (size_t at = 0; !st && at < n; at += (size_t)chunk) {
        const int m = n - at < (size_t)chunk ? (int)(n - at) : chunk;
        hn_chain_rows(rows, tokens + at, m, HN_LOGITS_ALL);
        const hn_pass_options more = {.n_certain = &m};
        st = hn_pass_reserve(e->runner, rows, m, &id, 1, &more, err);
        if (!st) st = hn_pass_run_with(e->runner, rows, m, &id, 1, &more, err);
        for (int i = 0; !st && i < m; i++) row(user, at + (size_t)i, hn_pass_logits(e->runner, i), vocab);
        if (!st) hn_cache_commit(e->cache, id, 0, NULL, m);
    }
    hn_cache_seq_end(e->cache, id);
    e->busy = false;
    return st;
}

/* ---- one draft --------------------------------------------------------------------------------------------------------- */

/* The probability of a token in the proposal: see hunch_draft_node.q. */
static double proposal_probability(const hunch_engine *e, const hn_candidate *k) {
    if (k->q) return hn_proposal_probability(k->q, k->token);
    return e->drafter[k->drafter].needs.has_logits ? (double)k->p : 1;
}

/* Rank among its drafter's candidates at the same row. */
static int rank_of(const hn_tree *t, int candidate) {
    int rank = 0;
    const hn_candidate *k = &t->candidate[candidate];
    for (int c = t->first[k->row]; c != candidate; c = t->candidate[c].next) rank += t->candidate[c].drafter == k->drafter;
    return rank;
}

int hn_draft_nodes(const hunch_engine *e, const hn_tree *t, hunch_draft_node *node) {
    for (int c = t->n_candidates - 1; c >= 0; c--) { /* of candidates that share a row the first is kept */
        const hn_candidate *k = &t->candidate[c];
        node[k->child - 1] = (hunch_draft_node){.token = k->token, .parent = k->row - 1, .drafter = k->drafter, .rank = rank_of(t, c),
                                                .q = proposal_probability(e, k), .estimate = (double)k->estimate};
    }
    for (int i = 0; i < t->n_rows - 1; i++)
        node[i].logp = log(node[i].q) + (node[i].parent < 0 ? 0 : node[node[i].parent].logp);
    return t->n_rows - 1;
}

static hunch_status copy_tree(const hunch_engine *e, const hn_tree *t, hunch_draft_result *out, hunch_error *err) {
    out->node = hn_zalloc((size_t)t->n_rows, sizeof *out->node);
    if (!out->node) return hn_fail_memory(err, "draft", (size_t)t->n_rows * sizeof *out->node);
    out->root = t->token[0];
    out->n = hn_draft_nodes(e, t, out->node);
    return HUNCH_OK;
}

static hunch_status draft_rounds(hunch_session *s, int accept, hunch_error *err) {
    hunch_engine *e = s->engine;
    hunch_status st = HUNCH_OK;
    while (!st && hn_session_running(s) && hn_session_emitted(s) == 0) st = hn_round(e, &s, 1, err);
    s->accept_cap = accept;
    s->draft_chain = true;
    if (!st && accept >= 0 && hn_session_running(s)) st = hn_round(e, &s, 1, err);
    if (!st && s->stats.finish == HUNCH_FINISH_FAILED)
        st = hn_fail(err, s->stats.error.status, "%s", s->stats.error.message);
    if (!st && accept > 0 && s->stats.accepted < (uint64_t)accept)
        st = hn_fail(err, HUNCH_USAGE, "%d drafts to accept, and only %llu were made", accept,
                     (unsigned long long)s->stats.accepted);
    return st;
}

/* A text that has reached the end of the context has its newest token and no drafts. Logits are those of a chain: if the draft is a
 * tree, a chain is drafted before it. */
static hunch_status last_draft(hunch_session *s, void (*on_logits)(void *user, int level, const float *logits, int vocab),
                               void *user, hunch_draft_result *out, hunch_error *err) {
    const hunch_engine *e = s->engine;
    for (int i = 0; i < e->n_drafters; i++) out->is_tree |= e->drafter[i].needs.is_tree;
    s->on_draft = on_logits;
    s->on_draft_user = user;
    if (!hn_session_running(s)) {
        hn_tree_reset(&s->round.tree, s->text.token[s->text.n - 1], 1);
        return copy_tree(e, &s->round.tree, out, err);
    }
    if (on_logits && out->is_tree) hn_draft_trees(s->engine, &s, 1);
    if (out->is_tree) s->on_draft = NULL;
    s->draft_chain = !out->is_tree;
    for (int i = 0; i <= HUNCH_MAX_DEPTH; i++) s->draft_confidence[i] = NAN;
    hn_draft_trees(s->engine, &s, 1);
    const hunch_status st = copy_tree(e, &s->round.tree, out, err);
    for (int i = 0; !st && i < out->n; i++)
        out->node[i].confidence = out->is_tree || isnan(s->draft_confidence[i]) ? -1 : (double)s->draft_confidence[i];
    return st;
}

/* A head that cannot draft to the requested depth is an error: heads are compared level by level. Other drafters may end earlier. */
static hunch_status check_depth(const hunch_engine *e, int *depth, hunch_error *err) {
    enum { USUAL = 8 };
    const bool said = *depth != 0;
    if (*depth < 0 || *depth > HUNCH_MAX_DEPTH)
        return hn_fail(err, HUNCH_USAGE, "depth %d: expected 1 to %d", *depth, HUNCH_MAX_DEPTH);
    if (!said) *depth = USUAL;
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        if (!d->ops->feed || *depth <= d->needs.max_depth) continue;
        if (said)
            return hn_fail(err, HUNCH_USAGE, "drafter '%s': depth %d: it drafts %d level%s", d->name, *depth, d->needs.max_depth,
                           d->needs.max_depth == 1 ? "" : "s");
        *depth = d->needs.max_depth;
    }
    return HUNCH_OK;
}

hunch_status hunch_draft(hunch_engine *e, const hunch_token *tokens, size_t n, int depth, int accept,
                         const hunch_sampling *sampling,
                         void (*on_logits)(void *user, int level, const float *logits, int vocab), void *user,
                         hunch_draft_result *out, hunch_error *err) {
    if (out) *out = (hunch_draft_result){0};
    const hn_argument needed[] = {{"e", e}, {"tokens", tokens || n == 0}, {"out", out}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hunch_session *s = NULL;
    hunch_request r;
    st = hn_engine_check_idle(e, err);
    if (!st) st = check_depth(e, &depth, err);
    if (st) return st;
    if (accept < -1 || accept > depth)
        return hn_fail(err, HUNCH_USAGE, "accept %d: expected -1 (the first round) to the depth of %d", accept, depth);
    if (hunch_engine_running(e))
        return hn_fail(err, HUNCH_USAGE, "the engine has running sessions: expected none while looking at a draft");
    hn_measure_end(e);
    hunch_request_defaults(&r, e->model);
    r.prompt = tokens;
    r.n_prompt = n;
    r.ignore_eos = true;
    r.sampling = sampling ? *sampling : (hunch_sampling){.top_p = 1};
    st = hn_session_create(&s, e, &r, err);
    if (st) return st;
    e->busy = true;
    s->depth_cap = depth;
    r.max_tokens = 2 * HUNCH_MAX_DEPTH + 2; /* length of the oracle: at most what two rounds need */
    st = hn_oracle_text(e, &r, &s->request.oracle, &s->request.n_oracle, err);
    if (!st) st = hn_session_place(s, e->parallel, err);
    if (!st) st = draft_rounds(s, accept, err);
    if (!st) st = last_draft(s, on_logits, user, out, err);
    hn_session_release(s);
    hn_session_destroy(s);
    e->busy = false;
    return st;
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

/* Adds whether the model runs, its description if so, and the tensors that it does not use. For one that does not run, these are
 * unknown. False: no memory. */
static bool describe_model(json_t *d, const hn_arch *a, const hn_model_bytes *bytes, hunch_status fits, const char *why) {
    const json_t *tensors = json_object_get(d, "tensors");
    json_t *unused = json_array(), *t;
    size_t i;
    bool ok = unused != NULL && json_object_set_new(d, "runs", json_boolean(fits == HUNCH_OK)) == 0;
    json_array_foreach (tensors, i, t) {
        if (fits != HUNCH_OK)
            ok = ok && json_object_set_new(t, "used", json_null()) == 0;
        else if (!json_is_true(json_object_get(t, "used")))
            ok = ok && json_array_append(unused, json_object_get(t, "name")) == 0;
    }
    if (fits != HUNCH_OK) {
        json_decref(unused);
        return ok && json_object_set_new(d, "refused", hn_json_from_bytes(why, strlen(why))) == 0;
    }
    if (json_object_set_new(d, "unused", unused) != 0) ok = false;
    json_t *model = json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:I, s:I}", "architecture", a->architecture, "name",
                              hn_json_from_bytes(a->name, strlen(a->name)), "layers", a->layers, "hidden", a->hidden, "vocab",
                              a->vocab, "context", a->context, "packed_bytes", (json_int_t)bytes->memory,
                              "mapped_bytes", (json_int_t)bytes->stored);
    uint64_t window;
    const uint64_t row = hn_model_row_bytes(a, HN_BF16, &window), state = hn_model_group_bytes(a, HN_CACHE_STATE);
    ok = ok && json_object_set_new(model, "cache_row_bytes", json_integer((json_int_t)row)) == 0;
    if (window > 0) ok = ok && json_object_set_new(model, "cache_window_row_bytes", json_integer((json_int_t)window)) == 0;
    if (state > 0) ok = ok && json_object_set_new(model, "state_bytes", json_integer((json_int_t)state)) == 0;
    if (bytes->experts_stored > 0)
        ok = ok && json_object_set_new(model, "expert_bytes", json_integer((json_int_t)bytes->experts_stored)) == 0 &&
             json_object_set_new(model, "packed_expert_bytes", json_integer((json_int_t)bytes->experts_memory)) == 0;
    return json_object_set_new(d, "model", model) == 0 && ok;
}

/* Whether a draft head opens depends on the model. */
static hunch_status inspect_head(hn_source *src, const char *kind, char **json, hunch_error *err) {
    char why[160];
    json_t *d = NULL;
    hunch_status st = hn_source_describe(src, &d, err);
    if (st) return st;
    snprintf(why, sizeof why, "a draft head of kind %.40s, which drafts for a model: --draft %.40s:PATH", kind, kind);
    if (describe_model(d, NULL, NULL, HUNCH_REFUSED, why) && !json_object_set_new(d, "head", hn_json_from_bytes(kind, strlen(kind))))
        *json = hn_json_dump(d, JSON_INDENT(1));
    json_decref(d);
    return *json ? HUNCH_OK : hn_fail_memory(err, "description", 0);
}

static hunch_status inspect_model(hn_source *src, char **json, hunch_error *err) {
    json_t *d = NULL;
    hn_arch arch = {0};
    hn_model_bytes bytes = {0};
    hunch_error why = {0};
    hunch_status st;
    const hunch_status fits = hn_model_mark(src, &arch, &bytes, &why);
    if (fits == HUNCH_NO_MEMORY || fits == HUNCH_FAILED) /* no statement about the model */
        st = hn_fail(err, fits, "%s", why.message);
    else
        st = hn_source_describe(src, &d, err);
    if (!st) {
        *json = describe_model(d, &arch, &bytes, fits, why.message) && !json_object_set_new(d, "head", json_null())
                    ? hn_json_dump(d, JSON_INDENT(1)) : NULL;
        if (!*json) st = hn_fail_memory(err, "description", 0);
    }
    json_decref(d);
    hn_arch_fini(&arch);
    return st;
}

hunch_status hunch_inspect(const char *path, char **json, hunch_error *err) {
    const hn_argument needed[] = {{"path", path}, {"json", json}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hn_source *src = NULL;
    *json = NULL;
    st = hn_source_open_head(&src, path, err);
    const char *kind = st ? NULL : hn_head_kind(src);
    if (hn_head_is(kind)) {
        st = inspect_head(src, kind, json, err);
    } else if (st != HUNCH_NO_MEMORY && st != HUNCH_FAILED) {
        hn_source_close(&src);
        st = hn_source_open(&src, path, err); /* a model must have all files, a head may lack some */
        if (!st) st = inspect_model(src, json, err);
    }
    hn_source_close(&src);
    return st;
}
