/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - the one round: draft, pass, verify, commit, emit; over any number of sessions, each for itself.
 *
 *   prefilling sessions   rows = the next chunk of the prompt; the last row decides the first token
 *   decoding sessions     rows = the draft tree, whose root is the newest token
 * Sessions are packed into passes of at most HN_MAX_ROWS rows; by contract C2 the packing changes no bit. */
#include <assert.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"

double hn_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool prefilling(const hunch_session *s) {
    return (size_t)hn_cache_committed(s->engine->cache, s->id) < s->n_prompt;
}

/* ---- drafting ------------------------------------------------------------------------------------------------------- */

/* How deep a tree may go: never past what may still be emitted (the last token is the target's own), nor the context. */
static int depth_limit(const hunch_session *s) {
    const size_t left = s->max_new - hn_session_emitted(s) - 1, room = (size_t)s->engine->context - s->n_text;
    const size_t d = left < room ? left : room;
    return d < HUNCH_MAX_DEPTH ? (int)d : HUNCH_MAX_DEPTH;
}

/* One level of every tree by one drafter. Sessions that are as deep as they may go are left out. */
static int propose_level(hn_drafter *d, hunch_session *const *s, int n, int level) {
    hn_propose p[HN_MAX_ROWS];
    int m = 0;
    for (int i = 0; i < n; i++) {
        if (s[i]->plain || level >= depth_limit(s[i])) continue;
        p[m++] = (hn_propose){.seq = s[i]->id,
                              .text = {s[i]->text, (int)s[i]->n_text, (int)s[i]->n_prompt},
                              .tree = &s[i]->tree,
                              .budget = s[i]->tree.max_rows - s[i]->tree.n_rows,
                              .temperature = s[i]->sampler.params.temperature,
                              .seed = s[i]->sampler.params.seed};
    }
    return m > 0 ? d->ops->propose(d, p, m, level) : 0;
}

static void draft(hunch_engine *e, hunch_session *const *s, int n) {
    const double start = hn_now();
    for (int i = 0; i < n; i++) hn_tree_reset(&s[i]->tree, s[i]->text[s[i]->n_text - 1], HN_MAX_ROWS / n);
    if (e->n_drafters == 0) return;
    int added = 1;
    for (int level = 0; added > 0 && level < HUNCH_MAX_DEPTH; level++) {
        added = 0;
        for (int d = 0; d < e->n_drafters; d++) added += propose_level(&e->drafter[d], s, n, level);
    }
    const double share = (hn_now() - start) / n;
    for (int i = 0; i < n; i++) {
        s[i]->stats.draft_s += share;
        s[i]->stats.decode_s += share;
    }
}

/* ---- passes --------------------------------------------------------------------------------------------------------- */

typedef struct batch {
    hn_row row[HN_MAX_ROWS];
    hunch_session *session[HN_MAX_ROWS];
    int cache_seq[HN_MAX_ROWS];
    int n_rows, n_sessions;
} batch;

static int rows_wanted(const hunch_session *s) {
    if (!prefilling(s)) return s->tree.n_rows;
    const int left = (int)s->n_prompt - hn_cache_committed(s->engine->cache, s->id);
    return left < s->engine->chunk ? left : s->engine->chunk;
}

static void add_rows(batch *b, hunch_session *s) {
    const int done = hn_cache_committed(s->engine->cache, s->id), seq = b->n_sessions;
    const bool prompt = prefilling(s);
    s->first_row = b->n_rows;
    for (int i = 0; i < s->n_rows; i++) {
        hn_row *r = &b->row[b->n_rows++];
        const int parent = prompt ? i - 1 : s->tree.parent[i];
        r->seq = (int16_t)seq;
        r->parent = (int16_t)(parent < 0 ? -1 : s->first_row + parent);
        r->token = prompt ? s->text[done + i] : s->tree.token[i];
        r->logits = !prompt || (size_t)(done + i) + 1 == s->n_prompt;
        r->feature = s->engine->feeds && !s->plain;
    }
    b->session[seq] = s;
    b->cache_seq[seq] = s->id;
    b->n_sessions++;
}

typedef struct tree_logits {
    const hn_runner *runner;
    int first;
} tree_logits;

static const float *logits_of(void *ctx, int row) {
    const tree_logits *t = ctx;
    return hn_pass_logits(t->runner, t->first + row);
}

static int32_t greedy_of(void *ctx, int row) {
    const tree_logits *t = ctx;
    return hn_pass_argmax(t->runner, t->first + row);
}

/* Emits the verdict token by token; *kept is how many of its tokens were emitted. */
static hunch_status emit_verdict(hunch_session *s, const hn_verdict *v, tree_logits *src, int *kept, hunch_error *err) {
    bool ended = false;
    *kept = 0;
    for (int i = 0; i <= v->n_accepted && !ended; i++) {
        const bool own = i == v->n_accepted;
        const int32_t token = own ? v->next : s->tree.token[v->path[i]];
        const int row = own ? v->next_row : s->tree.parent[v->path[i]];
        hunch_status st = hn_session_emit(s, token, own ? -1 : v->provenance[i], logits_of(src, row), &ended, err);
        if (st) return st;
        ++*kept;
        if (!own) {
            s->stats.accepted++;
            s->stats.accepted_per_position[s->tree.depth[v->path[i]] - 1]++;
        }
    }
    return HUNCH_OK;
}

/* Tells the drafters which rows were committed: n rows from position `first` on; path NULL: a prompt chunk, else the tree
 * rows they came from. */
static hunch_status feed(hunch_session *s, int first, const int16_t *path, int n, hunch_error *err) {
    hunch_engine *e = s->engine;
    hn_feed_row rows[HN_MAX_ROWS];
    hn_buf buffers[HN_MAX_FEATURES];
    hn_features f = {.buffer = buffers};
    if (!e->feeds || s->plain || !hn_session_running(s)) return HUNCH_OK;
    f.n = hn_pass_features(e->runner, buffers, &f.ld);
    for (int i = 0; i < n; i++) {
        const int row = s->first_row + (path ? path[i] : i);
        rows[i] = (hn_feed_row){s->id,
                                first + i,
                                s->text[first + i],
                                s->text[first + i + 1],
                                path ? path[i] : (int16_t)-1,
                                hn_pass_feature_row(e->runner, row)};
    }
    for (int d = 0; d < e->n_drafters; d++) {
        hunch_status st =
            e->drafter[d].ops->feed ? e->drafter[d].ops->feed(&e->drafter[d], rows, n, &f, err) : HUNCH_OK;
        if (st) return st;
    }
    return HUNCH_OK;
}

static hunch_status finish_prompt(hunch_session *s, hn_runner *runner, hunch_error *err) {
    tree_logits t = {runner, s->first_row + s->n_rows - 1};
    const hn_logits_source src = {logits_of, greedy_of, &t};
    hn_verdict v;
    int kept;
    hn_tree_reset(&s->tree, s->text[s->n_prompt - 1], 1);
    hunch_status st = hn_verify_tree(&s->tree, s->rule, &s->sampler, &src, s->n_prompt - 1, &v, err);
    return st ? st : emit_verdict(s, &v, &t, &kept, err);
}

static hunch_status finish_tree(hunch_session *s, hn_runner *runner, hunch_error *err) {
    hunch_engine *e = s->engine;
    tree_logits t = {runner, s->first_row};
    const hn_logits_source src = {logits_of, greedy_of, &t};
    const double start = hn_now();
    hn_verdict v;
    int kept;
    assert(hn_tree_valid(&s->tree) && hn_rule_fits(s->rule, &s->tree));
    hunch_status st = hn_verify_tree(&s->tree, s->rule, &s->sampler, &src, s->n_text - 1, &v, err);
    if (st) return st;
    s->stats.rounds++;
    s->stats.drafted += (uint64_t)s->tree.n_candidates;
    s->stats.depth_drafted += (uint64_t)hn_tree_depth(&s->tree);
    st = emit_verdict(s, &v, &t, &kept, err);
    if (st) return st;
    /* Rows of the root and of every emitted token but the newest, whose row comes with the next tree. */
    int16_t path[HN_TREE_ROWS] = {0};
    memcpy(path + 1, v.path, (size_t)(kept - 1) * sizeof *path);
    const int root = hn_cache_committed(e->cache, s->id);
    hn_cache_commit(e->cache, s->id, path, kept);
    st = feed(s, root, path, kept, err);
    if (st) return st;
    const hn_observe seen = {s->id, &s->tree, kept < v.n_accepted ? kept : v.n_accepted, v.path, v.next};
    for (int d = 0; d < e->n_drafters && !s->plain; d++)
        if (e->drafter[d].ops->observe) e->drafter[d].ops->observe(&e->drafter[d], &seen, 1);
    s->stats.verify_s += hn_now() - start;
    return HUNCH_OK;
}

/* After the pass: commit, verify, emit. A session that fails ends alone. */
static void settle(hunch_session *s, hn_runner *runner) {
    hunch_error why = {0};
    hunch_status st = HUNCH_OK;
    s->stats.passes++;
    if (prefilling(s)) {
        const int first = hn_cache_committed(s->engine->cache, s->id);
        hn_cache_commit(s->engine->cache, s->id, NULL, s->n_rows);
        s->stats.n_prefilled += (size_t)s->n_rows;
        if (!prefilling(s)) st = finish_prompt(s, runner, &why);
        if (!st) st = feed(s, first, NULL, s->n_rows, &why);
    } else
        st = finish_tree(s, runner, &why);
    if (st) hn_session_fail(s, &why);
    if (!hn_session_running(s)) hn_session_release(s);
}

/* Runs and settles a batch; the pass's time is shared by rows. */
static hunch_status flush(hunch_engine *e, batch *b, hunch_error *err) {
    if (b->n_rows == 0) return HUNCH_OK;
    bool was_prompt[HN_MAX_ROWS];
    for (int i = 0; i < b->n_sessions; i++) was_prompt[i] = prefilling(b->session[i]);
    const double start = hn_now();
    hunch_status st = hn_pass_run(e->runner, b->row, b->n_rows, b->cache_seq, b->n_sessions, err);
    if (st) return st;
    for (int i = 0; i < b->n_sessions; i++) settle(b->session[i], e->runner);
    const double per_row = (hn_now() - start) / b->n_rows;
    for (int i = 0; i < b->n_sessions; i++) {
        hunch_session_state *t = &b->session[i]->stats;
        *(was_prompt[i] ? &t->prefill_s : &t->decode_s) += per_row * b->session[i]->n_rows;
    }
    b->n_rows = b->n_sessions = 0;
    return HUNCH_OK;
}

hunch_status hn_round(hunch_engine *e, hunch_session *const *sessions, int n, hunch_error *err) {
    hunch_session *decoding[HN_MAX_ROWS];
    batch b = {.n_rows = 0, .n_sessions = 0};
    int n_decoding = 0;
    assert(n <= HN_MAX_ROWS);
    for (int i = 0; i < n; i++)
        if (!prefilling(sessions[i])) decoding[n_decoding++] = sessions[i];
    if (n_decoding > 0) draft(e, decoding, n_decoding);
    for (int i = 0; i < n; i++) {
        hunch_session *s = sessions[i];
        hunch_error why = {0};
        s->n_rows = rows_wanted(s);
        if (hn_cache_reserve(e->cache, s->id, s->n_rows, &why)) {
            hn_session_fail(s, &why);
            hn_session_release(s);
            continue;
        }
        if (b.n_rows + s->n_rows > HN_MAX_ROWS) {
            hunch_status st = flush(e, &b, err);
            if (st) return st;
        }
        add_rows(&b, s);
    }
    return flush(e, &b, err);
}

hunch_status hunch_engine_round(hunch_engine *e, hunch_error *err) {
    hunch_session *running[HN_MAX_ROWS];
    int n = 0;
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i] && hn_session_running(e->session[i])) running[n++] = e->session[i];
    return n > 0 ? hn_round(e, running, n, err) : HUNCH_OK;
}

int hunch_engine_running(const hunch_engine *e) {
    int n = 0;
    for (int i = 0; i < e->parallel; i++) n += e->session[i] && hn_session_running(e->session[i]);
    return n;
}
