/* SPDX-License-Identifier: Apache-2.0 */
/* draft_api.c - one draft of an engine's drafters after a text, made of the steps of a round, on the internal sequence. */
#include <math.h>

#include "base/mem.h"
#include "engine/drafting.h"
#include "engine/pass_costs.h"
#include "engine/round.h"
#include "engine/scheduling.h"

/* The probability of a token in the proposal: see hunch_draft_node.q. */
static double proposal_probability(const hunch_engine *e, const hn_round_draft *d) {
    if (d->drawn) return d->q;
    return e->drafter[d->drafter].needs.has_logits ? (double)d->p : 1;
}

int hn_round_nodes(const hunch_engine *e, const hn_round_drafts *r, hunch_draft_node *node) {
    for (int k = 0; k < r->n; k++) {
        const hn_round_draft *d = &r->draft[k];
        if (!d->first && d->made == d->child) continue; /* another's is shown */
        node[d->made - 1] = (hunch_draft_node){.token = d->token, .parent = d->row - 1, .drafter = d->drafter, .rank = d->rank,
                                                .q = proposal_probability(e, d), .estimate = (double)d->estimate, .depth = d->depth,
                                                .margin = (double)d->certainty.margin, .entropy = (double)d->certainty.entropy};
    }
    for (int i = 0; i < r->n_rows - 1; i++)
        node[i].logp = log(node[i].q) + (node[i].parent < 0 ? 0 : node[node[i].parent].logp);
    return r->n_rows - 1;
}

static hunch_status copy_tree(hunch_session *s, hunch_draft_result *out, hunch_error *err) {
    const hn_tree *t = &s->round.tree;
    out->node = hn_zalloc((size_t)t->n_rows, sizeof *out->node);
    if (!out->node) return hn_fail_memory(err, "draft", (size_t)t->n_rows * sizeof *out->node);
    out->root = t->token[0];
    hn_round_drafts_make(&s->round.drafts, t, NULL, -1, true);
    out->n = hn_round_nodes(s->engine, &s->round.drafts, out->node);
    return HUNCH_OK;
}

/* Accepts the first drafts of the tree's first path, as if they had been right. */
static hunch_status accept_drafts(hunch_session *s, int accept, hunch_error *err) {
    const hn_tree *t = &s->round.tree;
    hn_verdict *v = &s->round.verdict;
    int row = 0;
    v->n_accepted = 0;
    while (v->n_accepted < accept && t->first[row] >= 0) {
        const hn_candidate *c = &t->candidate[t->first[row]];
        v->drafter_of[v->n_accepted] = c->drafter;
        v->path[v->n_accepted++] = c->child;
        row = c->child;
    }
    v->next_row = (int16_t)row;
    v->next = hn_tree_best(s, row);
    if (v->next < 0)
        return hn_fail(err, HUNCH_FAILED, "%s: no token behind the drafts: every logit is NaN or -inf", s->engine->model->path);
    return hn_tree_take(s, err);
}

/* A round whose verdict is ours: a chain is drafted, and its first drafts are accepted whatever the target says. */
static hunch_status accepting_round(hunch_session *s, int accept, int depth, hunch_error *err) {
    hunch_engine *e = s->engine;
    hn_batch b = hn_batch_begin(e);
    hunch_error why = {0};
    hn_draft_trees(e, &s, 1, NULL, &(hn_draft_probe){.depth = depth, .chain = true});
    s->round.n_rows = s->round.tree.n_rows;
    if (!hn_make_room(s)) return HUNCH_OK; /* it failed */
    hn_batch_add(&b, s);
    hunch_status st = hn_batch_run(e, &b, err);
    if (st) return st;
    if (accept_drafts(s, accept, &why)) hn_session_fail(s, &why);
    hn_batch_end(e, &b);
    return HUNCH_OK;
}

static hunch_status draft_rounds(hunch_session *s, int accept, int depth, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    while (!st && hn_session_running(s) && hn_session_emitted(s) == 0) st = hn_round(s->engine, &s, 1, err);
    if (!st && accept >= 0 && hn_session_running(s)) st = accepting_round(s, accept, depth, err);
    if (!st && s->stats.finish == HUNCH_FINISH_FAILED)
        st = hn_fail(err, s->stats.error.status, "%s", s->stats.error.message);
    if (!st && accept > 0 && s->stats.accepted < (uint64_t)accept)
        st = hn_fail(err, HUNCH_USAGE, "%d drafts to accept, and only %llu were made", accept,
                     (unsigned long long)s->stats.accepted);
    return st;
}

/* The caller's callback. */
typedef struct viewer {
    void (*on_logits)(void *user, int level, const float *logits, int vocab);
    void *user;
    int vocab;
} viewer;

static void show_logits(void *ctx, int level, const float *logits) {
    const viewer *v = ctx;
    v->on_logits(v->user, level, logits, v->vocab);
}

/* A text that has reached the end of the context has its newest token and no drafts. Logits are those of a chain: if the draft is a
 * tree, a chain is drafted before it. */
static hunch_status last_draft(hunch_session *s, int depth, viewer *v, hunch_draft_result *out, hunch_error *err) {
    hunch_engine *e = s->engine;
    float confidence[HUNCH_MAX_DEPTH + 1];
    hn_draft_probe probe = {.depth = depth, .on_logits = v->on_logits ? show_logits : NULL, .on_logits_ctx = v};
    for (int i = 0; i < e->n_drafters; i++) out->is_tree |= e->drafter[i].needs.is_tree;
    for (int i = 0; i <= HUNCH_MAX_DEPTH; i++) confidence[i] = NAN;
    if (!hn_session_running(s)) {
        hn_tree_reset(&s->round.tree, s->text.token[s->text.n - 1], 1);
        return copy_tree(s, out, err);
    }
    probe.chain = true;
    probe.confidence = confidence;
    if (v->on_logits || !out->is_tree) hn_draft_trees(e, &s, 1, NULL, &probe);
    if (out->is_tree) hn_draft_trees(e, &s, 1, NULL, &(hn_draft_probe){.depth = depth});
    const hunch_status st = copy_tree(s, out, err);
    for (int i = 0; !st && i < out->n; i++)
        out->node[i].confidence = out->is_tree || isnan(confidence[i]) ? -1 : (double)confidence[i];
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
    viewer v = {on_logits, user, e->model->target.arch.vocab};
    st = hn_engine_check_idle(e, err);
    if (!st) st = check_depth(e, &depth, err);
    if (st) return st;
    if (accept < -1 || accept > depth)
        return hn_fail(err, HUNCH_USAGE, "accept %d: expected -1 (the first round) to the depth of %d", accept, depth);
    if (hunch_engine_running(e))
        return hn_fail(err, HUNCH_USAGE, "the engine has running sessions: expected none while looking at a draft");
    hn_internal_end(e);
    hunch_request_defaults(&r, e->model);
    r.prompt = tokens;
    r.n_prompt = n;
    r.ignore_eos = true;
    r.sampling = sampling ? *sampling : (hunch_sampling){.top_p = 1};
    st = hn_session_create(&s, e, &r, err);
    if (st) return st;
    hn_engine_enter(e);
    r.max_tokens = 2 * HUNCH_MAX_DEPTH + 2; /* length of the oracle: at most what two rounds need */
    st = hn_oracle_text(e, &r, &s->request.oracle, &s->request.n_oracle, err);
    if (!st) st = hn_session_place(s, hn_internal_seq(e), err);
    if (!st) st = draft_rounds(s, accept, depth, err);
    if (!st) st = last_draft(s, depth, &v, out, err);
    hn_session_release(s);
    hn_session_destroy(s);
    hn_engine_leave(e);
    return st;
}
