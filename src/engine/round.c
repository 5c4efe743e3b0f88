/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - the one round: draft, pass, verify, commit, emit; over any number of independent sessions.
 *
 *   prefilling sessions   rows = the next chunk of the prompt, whose last row decides the first token; or, of a text that
 *                         was preempted, of its tokens so far
 *   decoding sessions     rows = the draft tree, whose root is the newest token
 * Sessions are packed into passes of at most most.rows rows, most.logits of them with logits: decoding ones first, then prompts, as many
 * rows of these as the pause between two tokens of the others allows (chunked prefill, Sarathi 2308.16369). Half of them are the oldest
 * prompt's; the others go to the prompts that have least left, so that a short one does not wait behind a long one, and a long one goes
 * on beside any number of short ones. By contract C2 the packing changes no bit. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/least.h"
#include "engine/drafting.h"
#include "engine/pass_costs.h"
#include "engine/prefixes.h"
#include "engine/round.h"
#include "engine/scheduling.h"
#include "engine/statistics.h"
#include "sample/constraint.h"

static bool prefilling(const hunch_session *s) {
    return (size_t)hn_cache_committed(s->engine->cache, s->id, 0) < hn_prefill_rows(s);
}

/* ---- passes --------------------------------------------------------------------------------------------------------- */

/* Seconds that the round would take without prompts. */
static double plain_seconds(const hunch_engine *e, int rows) {
    if (rows == 0) return 0;
    return rows > e->plain_rows && e->plain_rows > 0 ? e->plain_s * rows / e->plain_rows : e->plain_s;
}

/* As many as the pause allows at the speed of the newest rounds, and a few in any case, fewer of a pause that the user chose. Of one that
 * nobody chose readers of the other texts notice little: their rounds take about twice as long. */
int hn_prompt_budget(const hunch_engine *e, int beside) {
    enum { USUAL_LEAST = 16, CHOSEN_LEAST = 8 };
    static const double USUAL = 0.1, UNNOTICED = 0.01;
    const int most = hn_most(e->chunk, HN_MAX_ROWS);
    if (beside == 0) return most;
    const double plain = plain_seconds(e, beside), twice = 2 * plain + UNNOTICED;
    const double pause = e->max_pause > 0 ? e->max_pause : twice < USUAL ? twice : USUAL;
    const int least = e->max_pause > 0 ? CHOSEN_LEAST : USUAL_LEAST;
    const double rows = e->row_s > 0 ? (pause - plain) / (e->row_s + 2 * e->row_dev) : least;
    return rows > most ? most : rows > least ? (int)rows : least;
}

/* What a row of a prompt adds to a round: the mean, and how far rounds are from it: seldom one shall take longer than it may. */
static void learn_row(hunch_engine *e, double seconds) {
    e->row_dev = e->row_s > 0 ? (3 * e->row_dev + fabs(seconds - e->row_s)) / 4 : 0;
    e->row_s = e->row_s > 0 ? (e->row_s + seconds) / 2 : seconds;
}

static void learn_round(hunch_engine *e, double seconds, int rows, int prompt_rows) {
    static const double LEAST_PART = 0.1; /* of a round, that its prompts took */
    if (prompt_rows > 0) {
        const double more = seconds - plain_seconds(e, rows), least = LEAST_PART * seconds;
        learn_row(e, (more > least ? more : least) / prompt_rows);
    } else if (rows > 0) {
        e->plain_s = e->plain_s > 0 ? (e->plain_s + seconds) / 2 : seconds;
        e->plain_rows = e->plain_rows > 0 ? (e->plain_rows + rows) / 2 : rows;
    }
}

static size_t rows_left(const hunch_session *s) {
    return hn_prefill_rows(s) - (size_t)hn_cache_committed(s->engine->cache, s->id, 0);
}

/* Of a prompt, at most `budget`. */
static int chunk_rows(const hunch_session *s, int budget) {
    const int done = hn_cache_committed(s->engine->cache, s->id, 0), left = (int)rows_left(s);
    int chunk = s->engine->chunk;
    if (s->request.prompt_logprobs) chunk = hn_least(chunk, HN_MAX_ROWS);
    if (s->engine->model->target.recurrent) chunk -= done % chunk; /* ends where the index keeps states */
    return hn_least(hn_least(left, chunk), budget);
}

/* ALL if more of a row than its best token is used: by another rule or a processor, log-probabilities, a callback. */
static hn_logits logits_wanted(const hunch_session *s) {
    const hn_session_request *r = &s->request;
    const bool best = r->rule == HN_RULE_GREEDY && hn_sampler_takes_best(&s->sampler, s->text.n) && !r->logprobs && !r->on_logits;
    return best ? HN_LOGITS_BEST : HN_LOGITS_ALL;
}

bool hn_session_is_matched(const hunch_session *s) {
    const hn_session_request *r = &s->request;
    if (!s->engine->model->target.backend->one_wait || r->logprobs || r->on_logits || s->engine->keeps_wrong_heads) return false;
    if (r->rule == HN_RULE_GREEDY) return hn_sampler_takes_best(&s->sampler, s->text.n);
    return r->rule == HN_RULE_MATCH && hn_sampler_is_plain(&s->sampler);
}

hn_batch hn_batch_begin(hunch_engine *e) {
    const hn_text_lists *l = &e->list;
    return (hn_batch){
        .row = l->row, .session = l->pass, .cache_seq = l->pass_seq, .n_certain = l->n_certain, .first_token = l->first_token};
}

/* Where a round waits once: where the rows' tokens are, and the session's tree, or the root alone after a prompt, if the backend is to
 * verify it. */
static void match_tree(hunch_session *s, int seq, bool prompt) {
    const hn_text_lists *l = &s->engine->list;
    hn_session_round *r = &s->round;
    for (int i = 0; i < r->n_rows; i++) l->source[r->first_row + i] = prompt ? (hn_token_source){0} : r->tree.source[i];
    l->match[seq] = (hn_pass_tree){0};
    if (!r->matched) return;
    l->match[seq] = (hn_pass_tree){.first = r->root_row, .n = r->first_row + r->n_rows - r->root_row};
    if (s->sampler.params.temperature == 0) return;
    l->draw[seq] = hn_sampler_describe(&s->sampler, (uint64_t)s->text.n);
    l->match[seq].draw = &l->draw[seq];
    for (int i = r->root_row; i < r->first_row + r->n_rows; i++) l->row[i].logits = HN_LOGITS_DRAWN;
}

void hn_batch_add(hn_batch *b, hunch_session *s) {
    const int done = hn_cache_committed(s->engine->cache, s->id, 0), seq = b->n_sessions;
    const bool prompt = prefilling(s);
    hn_session_round *r = &s->round;
    r->first_row = b->n_rows;
    r->first_committed = done;
    r->n_committed = 0;
    r->from_tree = false;
    r->root_row = prompt ? b->n_rows + r->n_rows - 1 : b->n_rows;
    for (int i = 0; i < r->n_rows; i++) {
        hn_row *row = &b->row[b->n_rows++];
        const int parent = prompt ? i - 1 : r->tree.parent[i];
        row->seq = (int16_t)seq;
        row->parent = (int16_t)(parent < 0 ? -1 : r->first_row + parent);
        row->token = prompt ? s->text.token[done + i] : r->tree.token[i];
        /* in a text that resumes no prompt row decides a token */
        const size_t at = (size_t)(done + i);
        row->logits = !prompt || at + 1 == s->text.n ? logits_wanted(s)
                      : hn_prompt_wants_logits(s, at) ? HN_LOGITS_ALL
                                                      : HN_LOGITS_NONE;
        row->feature = s->engine->feeds || (prompt && hn_prompt_wants_state(s, at));
        b->n_prompt_rows += prompt;
        b->n_logits += row->logits != HN_LOGITS_NONE;
    }
    r->decides = !prompt || ((size_t)(done + r->n_rows) == s->text.n && !s->request.prompt_only);
    r->matched = r->decides && hn_session_is_matched(s);
    if (s->engine->model->target.backend->one_wait) match_tree(s, seq, prompt);
    b->session[seq] = s;
    b->cache_seq[seq] = s->id;
    b->n_certain[seq] = prompt ? r->n_rows : 1;
    b->first_token[seq] = hn_session_emitted(s) == 0;
    b->n_sessions++;
    b->work.reads += hn_reads(s->engine, done);
    b->work.again += (r->n_rows - 1) * hn_reads(s->engine, prompt ? done + r->n_rows / 2 : done);
}

/* Upper limit of a session's rows with logits in the next pass. */
static int most_logits(const hunch_session *s) {
    return prefilling(s) && !s->request.prompt_logprobs ? 1 : s->round.n_rows;
}

/* Of a row of the session's tree. */
static const float *logits_of(void *session, int row) {
    const hunch_session *s = session;
    return hn_pass_logits(s->engine->runner, s->round.root_row + row);
}

static int32_t greedy_of(void *session, int row) {
    const hunch_session *s = session;
    return hn_pass_argmax(s->engine->runner, s->round.root_row + row);
}

/* Emits the verdict token by token; *kept is how many of its tokens were emitted. */
static hunch_status emit_verdict(hunch_session *s, int *kept, hunch_error *err) {
    const hn_verdict *v = &s->round.verdict;
    bool ended = false;
    *kept = 0;
    for (int i = 0; i <= v->n_accepted && !ended; i++) {
        const bool own = i == v->n_accepted;
        const int32_t token = own ? v->next : s->round.tree.token[v->path[i]];
        const int row = own ? v->next_row : s->round.tree.parent[v->path[i]];
        hunch_status st = hn_session_emit(s, token, own ? -1 : v->drafter_of[i], logits_of(s, row), &ended, err);
        if (st) return st;
        ++*kept;
        if (!own) hn_stats_accepted(s, v->drafter_of[i], i + 1);
    }
    return HUNCH_OK;
}

/* Whether the round has decided nothing of a session. */
static bool without_verdict(const hunch_session *s) {
    return s->stats.finish == HUNCH_FINISH_FAILED || s->stats.finish == HUNCH_FINISH_GRAMMAR;
}

/* Feeds the committed rows of the pass to the drafters that read the target, of all its sessions together. Texts that ended are
 * included: their rows will be shared. */
static void feed(hunch_engine *e, const hn_batch *b) {
    hn_feed_row *rows = e->list.feed;
    hn_buf buffers[HN_MAX_FEATURES];
    int n = 0;
    for (int k = 0; k < b->n_sessions; k++) {
        const hunch_session *s = b->session[k];
        if (without_verdict(s)) continue;
        for (int i = 0; i < s->round.n_committed; i++) {
            const int node = s->round.from_tree ? s->round.committed[i] : -1, at = s->round.first_committed + i;
            rows[n++] = (hn_feed_row){s->id, at, s->text.token[at], s->text.token[at + 1], (int16_t)node,
                                      hn_pass_feature_row(e->runner, s->round.first_row + (node < 0 ? i : node))};
        }
    }
    for (int d = 0; d < e->n_drafters && n > 0; d++) {
        hn_drafter *to = &e->drafter[d];
        hn_features f = {.buffer = buffers};
        if (!to->ops->feed) continue;
        f.n = hn_pass_features(e->runner, &to->needs.features, buffers, &f.ld);
        for (int i = 0; i < n; i += HN_FEED_ROWS) to->ops->feed(to, rows + i, n - i < HN_FEED_ROWS ? n - i : HN_FEED_ROWS, &f);
    }
    hn_note_failures(e);
}

/* ---- what the target decides ----------------------------------------------------------------------------------------- */

static void verification_of(hunch_session *s, const hn_batch *b) {
    const hunch_engine *e = s->engine;
    hn_session_round *r = &s->round;
    hn_verify_job *j = &r->verification;
    if (prefilling(s)) hn_tree_reset(&r->tree, s->text.token[s->text.n_prompt - 1], 1);
    assert(hn_tree_valid(&r->tree) && hn_rule_fits(s->request.rule, &r->tree));
    j->tree = &r->tree;
    j->out = &r->verdict;
    j->whole_rows = b->row[r->root_row].logits == HN_LOGITS_ALL;
    j->how = (hn_verification){.rule = s->request.rule,
                               .a = e->lossy.a,
                               .b = e->lossy.b,
                               .sampler = &s->sampler,
                               .committed = {s->text.token, (int)s->text.n, (int)s->text.n_prompt, NULL, 0},
                               .rows = {logits_of, greedy_of, s}};
}

/* What the backend decided, as the verifier would have said it. */
static void matched_verdict(hunch_session *s, int seq) {
    const hunch_engine *e = s->engine;
    hn_session_round *r = &s->round;
    hn_verify_job *j = &r->verification;
    const hn_pass_path path = hn_pass_tree_path(e->runner, seq);
    int32_t token[HN_TREE_ROWS];
    int16_t row[HN_TREE_ROWS];
    if (prefilling(s)) hn_tree_reset(&r->tree, s->text.token[s->text.n_prompt - 1], 1);
    for (int i = 0; i < r->tree.n_rows; i++) token[i] = hn_pass_token(e->runner, r->root_row + i);
    for (int i = 0; i < path.n; i++) row[i] = (int16_t)path.row[i];
    hn_tree_fill(&r->tree, token, row, path.n);
    hn_verdict_at(&r->verdict, &r->tree, path.n > 0 ? row[path.n - 1] : 0, path.next);
    j->seconds = 0;
    j->status = HUNCH_OK;
    if (path.next < 0) j->status = hn_fail_no_token(&s->sampler, (int)s->text.n + path.n, &j->error);
}

/* The verdicts on all trees of the pass, by all workers; what they say is emitted later, in order. A text's part of the time is by its
 * part of the work. */
static void verify(hunch_engine *e, const hn_batch *b) {
    hn_verify_job **job = e->list.job;
    const double start = hn_now();
    double sum = 0;
    int n = 0;
    for (int i = 0; i < b->n_sessions; i++) {
        if (!b->session[i]->round.decides) continue;
        if (b->session[i]->round.matched) {
            matched_verdict(b->session[i], i);
            continue;
        }
        verification_of(b->session[i], b);
        job[n++] = &b->session[i]->round.verification;
    }
    hn_verify_trees(e->verifiers, job, n);
    for (int i = 0; i < n; i++) sum += job[i]->seconds;
    const double wall = hn_now() - start;
    for (int i = 0; i < b->n_sessions; i++) {
        hunch_session *s = b->session[i];
        if (!s->round.decides || prefilling(s)) continue;
        s->round.drafts.verify_s = sum > 0 ? wall * s->round.verification.seconds / sum : 0;
        s->stats.verify_s += s->round.drafts.verify_s;
    }
}

/* HUNCH_OK, or why there is no verdict. */
static hunch_status verdict_status(const hunch_session *s, hunch_error *err) {
    const hn_verify_job *j = &s->round.verification;
    if (!j->status) return HUNCH_OK;
    *err = j->error;
    if (j->status == HUNCH_FAILED) hn_error_prefix(err, "%s", s->engine->model->path); /* NaN logits */
    return j->status;
}

static void report_round(const hunch_session *s) {
    const hn_round_drafts *d = &s->round.drafts;
    hunch_draft_node node[HN_TREE_ROWS];
    int path[HN_TREE_ROWS];
    if (!s->request.on_round) return;
    for (int i = 0; i < d->n_emitted; i++) path[i] = s->round.verdict.path[i] - 1;
    (void)hn_round_nodes(s->engine, d, node);
    hunch_round_report r = {.round = s->stats.rounds,
                            .context = d->context,
                            .controlled = s->engine->controller != NULL,
                            .chosen = -1,
                            .rows = d->n_rows,
                            .accepted = d->n_emitted,
                            .draft_s = d->draft_s,
                            .draft_pass_s = d->draft_pass_s,
                            .pass_s = d->pass_s,
                            .root = s->round.tree.token[0],
                            .node = node,
                            .path = path};
    if (r.controlled)
        r.n_considered = hn_controller_considered(s->engine->controller, s->round.place, &r.considered, &r.chosen, &r.reason);
    s->request.on_round(s->request.on_round_user, &r);
}

/* The likeliest tokens after each row of the tree: all its rows want the same of the output matrix. */
static const int32_t *best_of_tree(const hunch_session *s) {
    const float *values;
    const int32_t *best = hn_pass_best(s->engine->runner, s->round.first_row, &values);
    assert(best + (s->round.n_rows - 1) * s->engine->most.best ==
           hn_pass_best(s->engine->runner, s->round.first_row + s->round.n_rows - 1, &values));
    return best;
}

/* Drafters observe the emitted tokens, `kept` of them: if the text ended inside the path, its newest token is one of the path. The
 * controller observes what the rule accepted. */
static void notify_drafters(hunch_session *s, const hn_verdict *v, int kept) {
    hunch_engine *e = s->engine;
    const hn_observe seen = {s->id,   &s->round.tree, kept - 1, v->path, s->text.token[s->text.n - 1], best_of_tree(s),
                             e->most.best};
    for (int d = 0; d < e->n_drafters; d++)
        if (e->drafter[d].ops->observe) e->drafter[d].ops->observe(&e->drafter[d], &seen, 1);
    if (e->controller) hn_controller_observe(e->controller, s->id, &s->round.drafts);
    if (!s->request.one_token && !e->keeps_wrong_heads) hn_watch_heads(s);
}

/* The first token that was decided, as if nothing had been drafted. */
static void first_alone(hunch_session *s) {
    hn_verdict *v = &s->round.verdict;
    if (v->n_accepted == 0) return;
    v->next = s->round.tree.token[v->path[0]];
    v->next_row = 0;
    v->n_accepted = 0;
}

/* The record of its drafts, but for what is not known before it is emitted. */
static void record_drafts(hunch_session *s) {
    hn_session_round *r = &s->round;
    hn_round_drafts_make(&r->drafts, &r->tree, r->verdict.path, r->verdict.n_accepted, s->request.on_round != NULL);
    hn_round_drafts_times(&r->drafts, &s->engine->drafting);
    r->drafts.context = r->first_committed;
}

hunch_status hn_tree_take(hunch_session *s, hunch_error *err) {
    hn_session_round *r = &s->round;
    int kept;
    record_drafts(s);
    if (s->request.one_token) first_alone(s);
    s->stats.rounds++;
    hn_stats_drafted(s);
    hunch_status st = emit_verdict(s, &kept, err);
    if (st) return st;
    r->drafts.n_emitted = hn_least(kept, r->verdict.n_accepted);
    r->committed[0] = 0;
    memcpy(r->committed + 1, r->verdict.path, (size_t)(kept - 1) * sizeof *r->committed);
    r->n_committed = kept;
    r->from_tree = true;
    hn_cache_commit(s->engine->cache, s->id, 0, r->committed, kept);
    return HUNCH_OK;
}

int32_t hn_tree_best(const hunch_session *s, int row) {
    return hn_pass_argmax(s->engine->runner, s->round.root_row + row);
}

static hunch_status read_tree(hunch_session *s, hunch_error *err) {
    const hunch_status st = verdict_status(s, err);
    return st ? st : hn_tree_take(s, err);
}

static hunch_status read_prompt(hunch_session *s, hunch_error *err) {
    hn_session_round *r = &s->round;
    hn_prompt_rows_read(s);
    hn_cache_commit(s->engine->cache, s->id, 0, NULL, r->n_rows);
    r->n_committed = r->n_rows;
    const size_t done = (size_t)(r->first_committed + r->n_rows);
    int kept;
    if (s->stats.n_prefilled < s->text.n_prompt) s->stats.n_prefilled = done < s->text.n_prompt ? done : s->text.n_prompt;
    if (r->decides) {
        const hunch_status st = verdict_status(s, err);
        return st ? st : emit_verdict(s, &kept, err);
    }
    if (s->request.prompt_only && done == s->text.n_prompt) hn_session_finish(s, HUNCH_FINISH_LENGTH);
    return HUNCH_OK;
}

/* Commits and emits what was decided of one session. A session that fails ends alone. */
static void read_pass(hunch_session *s) {
    hunch_error why = {0};
    const double start = hn_now();
    const bool prompt = prefilling(s);
    if (prompt ? read_prompt(s, &why) : read_tree(s, &why)) {
        const bool stuck = why.status == HUNCH_NO_MEMORY && hn_sampler_is_stuck(&s->sampler);
        s->stats.error = why;
        hn_session_finish(s, stuck ? HUNCH_FINISH_GRAMMAR : HUNCH_FINISH_FAILED);
    }
    if (prompt) return;
    const double seconds = hn_now() - start;
    s->round.drafts.verify_s += seconds;
    s->stats.verify_s += seconds;
}

/* Reports to drafters, controller and index. */
static void report_session(hunch_session *s, double pass_s) {
    hn_session_round *r = &s->round;
    if (without_verdict(s)) return;
    r->drafts.pass_s = pass_s;
    if (r->from_tree) notify_drafters(s, &r->verdict, r->n_committed);
    hn_session_publish(s);
    if (r->from_tree) report_round(s);
}

/* Sessions that ended are released, after their drafters' pending rows were computed in one batch. */
static void release_ended(hunch_engine *e, const hn_batch *b) {
    hunch_session **ended = e->list.ended;
    int n = 0;
    for (int i = 0; i < b->n_sessions; i++)
        if (!hn_session_running(b->session[i])) ended[n++] = b->session[i];
    if (n > 1) hn_flush_pending(e, ended, n);
    for (int i = 0; i < n; i++) hn_session_release(ended[i]);
}

/* For tests: what a kernel would do that computes a row in another way beside drafts. Of the first tree with drafts the root's logits
 * change by one in the last place, of one token. */
static void plant_fault(const hunch_engine *e, const hn_batch *b) {
    for (int i = 0; i < b->n_sessions; i++) {
        const hn_session_round *r = &b->session[i]->round;
        if (prefilling(b->session[i]) || r->n_rows < 2 || b->row[r->first_row].logits != HN_LOGITS_ALL) continue;
        if (!hn_fault_hit(HN_FAULT_LOGIT)) return;
        hn_pass_set_logit(e->runner, r->first_row, 0, nextafterf(hn_pass_logits(e->runner, r->first_row)[0], INFINITY));
        return;
    }
}

hunch_status hn_batch_run(hunch_engine *e, hn_batch *b, hunch_error *err) {
    hn_pass_options more = {.n_certain = b->n_certain};
    if (e->model->target.backend->one_wait) {
        more.source = e->list.source;
        more.tree = e->list.match;
    }
    hunch_status st = hn_pass_begin(e->runner, b->row, b->n_rows, b->cache_seq, b->n_sessions, &more, err);
    if (!st) st = hn_pass_end(e->runner, err);
    b->pass_s = st ? 0 : hn_pass_seconds(e->runner);
    b->read_at = hn_now();
    if (!st) plant_fault(e, b);
    e->stats.passes++;
    e->stats.rows += (uint64_t)b->n_rows;
    e->stats.prompt_rows += (uint64_t)b->n_prompt_rows;
    e->stats.pass_s += b->pass_s;
    for (int i = 0; !st && i < b->n_sessions; i++) b->session[i]->stats.passes++;
    return st;
}

/* The time of the pass is distributed by rows. */
void hn_batch_end(hunch_engine *e, hn_batch *b) {
    if (e->feeds) feed(e, b);
    for (int i = 0; i < b->n_sessions; i++) report_session(b->session[i], b->pass_s);
    release_ended(e, b);
    const double whole = b->pass_s + (hn_now() - b->read_at), per_row = whole / b->n_rows;
    if (e->controller) {
        b->work.rows = b->n_logits;
        b->work.prompt = b->n_rows - b->n_logits;
        b->work.distinct = hn_experts_used(e);
        hn_cost_pass(hn_controller_cost(e->controller), &b->work, whole);
    }
    for (int i = 0; i < b->n_sessions; i++) {
        hunch_session_state *t = &b->session[i]->stats;
        *(b->first_token[i] ? &t->prefill_s : &t->decode_s) += per_row * b->session[i]->round.n_rows;
    }
    *b = hn_batch_begin(e);
}

/* Runs and processes a batch. */
static hunch_status flush(hunch_engine *e, hn_batch *b, hunch_error *err) {
    if (b->n_rows == 0) return HUNCH_OK;
    hunch_status st = hn_batch_run(e, b, err);
    if (st) return st;
    const double start = hn_now();
    verify(e, b);
    for (int i = 0; i < b->n_sessions; i++) read_pass(b->session[i]);
    e->stats.verify_s += hn_now() - start;
    hn_batch_end(e, b);
    return HUNCH_OK;
}

double hn_experts_used(const hunch_engine *e) {
    const hn_model *m = &e->model->target;
    double sum = 0;
    for (int i = 0; m->expert_layers > 0 && i < m->arch.layers; i++) sum += hn_pass_experts(e->runner, i, NULL);
    return m->expert_layers > 0 ? sum / m->expert_layers : 0;
}

/* Which prompt is read first: that of higher priority, else the one that has least left, else the older. */
static int by_rows_left(const void *x, const void *y) {
    const hunch_session *a = *(hunch_session *const *)x, *b = *(hunch_session *const *)y;
    const int p = hn_session_rank(a), q = hn_session_rank(b);
    const size_t m = rows_left(a), n = rows_left(b);
    if (p != q) return p > q ? -1 : 1;
    return m != n ? (m < n ? -1 : 1) : a->admission < b->admission ? -1 : a->admission > b->admission;
}

/* Distributes the round's rows of prompts among them: half to the oldest, then in order of what is left. */
static void share_budget(hunch_engine *e, hunch_session *const *sessions, int n, int budget) {
    hunch_session **prompts = e->list.prompts, *oldest = NULL;
    int n_prompts = 0;
    for (int i = 0; i < n; i++) {
        if (sessions[i]->id < 0 || !prefilling(sessions[i])) continue;
        if (!oldest) oldest = sessions[i]; /* they are in order of age */
        sessions[i]->round.n_rows = 0;
        prompts[n_prompts++] = sessions[i];
    }
    if (!oldest) return;
    oldest->round.n_rows = chunk_rows(oldest, budget - budget / 2);
    qsort(prompts, (size_t)n_prompts, sizeof *prompts, by_rows_left);
    budget -= oldest->round.n_rows;
    for (int i = 0; i < n_prompts; i++) {
        const int had = prompts[i]->round.n_rows;
        prompts[i]->round.n_rows = chunk_rows(prompts[i], had + budget);
        budget -= prompts[i]->round.n_rows - had;
    }
}

/* The rows of prompts that are expected in the pass of n_decoding texts whose trees are not made yet: a row each. */
static hn_cost_work prompts_beside(hunch_engine *e, hunch_session *const *sessions, int n, int n_decoding) {
    hn_cost_work beside = {0};
    share_budget(e, sessions, n, hn_prompt_budget(e, n_decoding));
    for (int i = 0; i < n; i++) {
        if (!prefilling(sessions[i])) continue;
        const int rows = sessions[i]->round.n_rows, done = hn_cache_committed(e->cache, sessions[i]->id, 0);
        if (n_decoding + beside.prompt + rows > e->most.rows) break;
        if (rows == 0) continue;
        beside.prompt += rows;
        beside.reads += hn_reads(e, done);
        beside.again += (rows - 1) * hn_reads(e, done + rows / 2);
    }
    return beside;
}

/* Reserves each session's rows of the round, the oldest first. Returns the rows of prompts. */
static int reserve_rows(hunch_engine *e, hunch_session *const *sessions, int n, int beside) {
    int of_prompts = 0;
    share_budget(e, sessions, n, hn_prompt_budget(e, beside));
    for (int i = 0; i < n; i++) {
        hunch_session *s = sessions[i];
        if (s->id < 0) continue; /* an older one needed its pages */
        const bool prompt = prefilling(s);
        if (!prompt) s->round.n_rows = s->round.tree.n_rows;
        if (s->round.n_rows > 0 && hn_make_room(s) && prompt) of_prompts += s->round.n_rows;
    }
    return of_prompts;
}

/* Adds those that are prompts, or those that are not, to passes. */
static hunch_status run_rows(hunch_engine *e, hn_batch *b, hunch_session *const *sessions, int n, bool prompts, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < n; i++) {
        hunch_session *s = sessions[i];
        if (s->id < 0 || s->round.n_rows == 0 || prefilling(s) != prompts) continue;
        if (b->n_rows + s->round.n_rows > e->most.rows || b->n_logits + most_logits(s) > e->most.logits) st = flush(e, b, err);
        if (!st) hn_batch_add(b, s);
    }
    return st;
}

hunch_status hn_round(hunch_engine *e, hunch_session *const *sessions, int n, hunch_error *err) {
    hunch_session **decoding = e->list.decoding;
    hn_batch b = hn_batch_begin(e);
    int n_decoding = 0, rows = 0;
    const double start = hn_now();
    assert(n <= e->parallel);
    for (int i = 0; i < n; i++) {
        if (prefilling(sessions[i])) continue;
        sessions[i]->round.place = n_decoding;
        decoding[n_decoding++] = sessions[i];
    }
    if (n_decoding > 0) {
        const hn_cost_work beside = prompts_beside(e, sessions, n, n_decoding);
        hn_draft_trees(e, decoding, n_decoding, &beside, NULL);
    }
    for (int i = 0; i < n_decoding; i++) rows += decoding[i]->round.tree.n_rows;
    const int prompt_rows = reserve_rows(e, sessions, n, rows);
    hunch_status st = run_rows(e, &b, sessions, n, false, err);
    if (!st) st = run_rows(e, &b, sessions, n, true, err);
    if (!st) st = flush(e, &b, err);
    if (!st) learn_round(e, hn_now() - start, rows, prompt_rows);
    return st;
}

/* What drafters put off until now. */
static void work_between(hunch_engine *e) {
    for (int d = 0; d < e->n_drafters; d++)
        if (e->drafter[d].ops->work) (void)e->drafter[d].ops->work(&e->drafter[d]);
}

static int by_age(const void *a, const void *b) {
    const uint64_t x = (*(hunch_session *const *)a)->admission, y = (*(hunch_session *const *)b)->admission;
    return x < y ? -1 : x > y;
}

hunch_status hunch_engine_round(hunch_engine *e, hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    int n = 0;
    if (e->in_output_callback) return hn_fail(err, HUNCH_USAGE, "a round from inside on_output: expected the callback to return first");
    st = hn_engine_check_idle(e, err);
    if (st) return st;
    hunch_session **running = e->list.running;
    hn_expire(e);
    hn_admit(e);
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i] && hn_session_awake(e->session[i])) running[n++] = e->session[i];
    qsort(running, (size_t)n, sizeof *running, by_age); /* older sessions get pages first */
    const double start = hn_now();
    hn_engine_enter(e);
    hunch_error why = {0};
    if (n > 0) st = hn_round(e, running, n, err ? err : &why);
    if (st == HUNCH_DEVICE_LOST) hn_fail_all(e, err ? err : &why);
    work_between(e);
    e->stats.rounds += n > 0;
    e->stats.round_s += hn_now() - start;
    hn_engine_leave(e);
    hn_stream_deliver(e);
    return st;
}

hunch_status hunch_engine_run(hunch_engine *e, hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    do st = hunch_engine_round(e, err); /* the first one also delivers output of sessions that ended since the last round */
    while (!st && hunch_engine_running(e) > 0);
    return st;
}

int hunch_engine_running(const hunch_engine *e) {
    int n = 0;
    if (!e) return 0;
    for (int i = 0; i < e->parallel; i++) n += e->session[i] && hn_session_awake(e->session[i]);
    for (const hunch_session *s = e->queue; s; s = s->next) n += !s->stats.paused;
    return n;
}
