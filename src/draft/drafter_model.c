/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_model.c - a smaller model of the same vocabulary drafts for the target.
 *
 *   model:PATH[,depth=K][,precision=native|f32][,kv=bf16|f16|f32][,over=leader|ranks]
 *
 *   PATH       a model as the command opens it; its token ids must mean what the target's do (vocabulary_fit.h)
 *   depth      levels a round                                                                      5
 *   precision  how it computes                                                                     as the target
 *   kv         type of its cache rows                                                              as the target's
 *   over       where ranks divide the target: whether they divide it too, or the leader has it     leader
 *
 * Its rows are a cache group of its own in the engine's pool, slot == position. A round of K levels is K passes over all
 * sequences together and no token is evaluated twice:
 *
 *   level 0   evaluates every token of the text that has no row yet: the newest one, and the last draft if all were
 *             accepted; after rounds without it, or at the start, many, in passes of at most HN_MAX_ROWS rows. The last
 *             row's logits give the first draft.
 *   level k   evaluates draft k - 1, which gives draft k. The last draft is not evaluated: the target may reject it.
 *             (One token is evaluated twice: a draft that was removed from the tree and that the target then chooses.)
 *
 * Rows of drafts are kept from level to level (hn_draft_rows), and dropped like any tentative rows, so that a model with recurrent
 * layers may draft too. After verification those whose tokens were accepted, whichever drafter proposed them, are committed. Text of
 * rounds without this drafter is evaluated in the next level 0.
 *
 *   cache rows:   0 ... committed-1 | chain[0] chain[1] ..
 *                 committed text    | drafts of the open round
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "draft/draft_dist.h"
#include "draft/vocabulary_fit.h"
#include "model/kv_groups.h"

enum { DEFAULT_DEPTH = 5 };
_Static_assert((int)HN_MODEL_GROUPS <= (int)HN_MAX_DRAFT_GROUPS, "a draft model's groups");

typedef struct model_seq {
    int n_chain;    /* drafts of the current round; 0: no round */
    int n_draft_rows;     /* number of them that have rows, from the first */
    int32_t *chain; /* [depth] their tokens */
    bool lost;      /* a pass failed: nothing is drafted before the next begin */
} model_seq;

typedef struct model_state {
    hn_model model;
    hn_source *files; /* of a model of which something stays there (Gemma 4's table of tokens' inputs); else NULL */
    hn_runner *runner;
    hn_cache *cache;
    int model_id;
    int depth, context;
    int vocab;     /* the target's */
    int workers;   /* of the pool: they draw, each for another sequence */
    float *logits; /* [workers][vocab] if the draft model has fewer; else NULL */
    hn_draft_dists dists; /* of drawn drafts, a slot a level */
    int n_seqs;
    model_seq *seq;  /* [n_seqs] */
    int32_t *chains; /* what seq[].chain point into */
} model_state;

/* ---- open and close ------------------------------------------------------------------------------------------------ */

static void state_free(model_state *st) {
    if (!st) return;
    hn_runner_close(&st->runner);
    hn_model_close(&st->model);
    hn_source_close(&st->files);
    hn_draft_dists_close(&st->dists);
    hn_free(st->chains);
    hn_free(st->seq);
    hn_free(st->logits);
    hn_free(st);
}

static void model_close(hn_drafter *d) {
    state_free(d->state);
}

static hunch_status tables_create(model_state *st, hunch_error *err) {
    const size_t n = (size_t)st->n_seqs, slots = n * (size_t)st->depth, vocab = (size_t)st->vocab;
    st->seq = hn_zalloc(n, sizeof *st->seq);
    st->chains = hn_zalloc(slots, sizeof *st->chains);
    const bool fewer = st->model.arch.vocab < st->vocab;
    if (fewer) st->logits = hn_zalloc((size_t)st->workers * vocab, sizeof *st->logits);
    if (!st->seq || !st->chains || (fewer && !st->logits))
        return hn_fail_memory(err, "the tables of drafter 'model'",
                              slots * sizeof *st->chains + (fewer ? (size_t)st->workers * vocab * sizeof *st->logits : 0));
    for (int i = 0; i < st->n_seqs; i++) st->seq[i].chain = st->chains + (size_t)i * (size_t)st->depth;
    return hn_draft_dists_open(&st->dists, st->vocab, st->n_seqs, st->depth, st->workers, err);
}

/* Checks the vocabularies before weights are read. */
static hunch_status check_fit(hn_source *src, const hn_target_info *target, hunch_error *err) {
    hn_arch arch = {0};
    hn_tokenizer *tokenizer = NULL;
    hunch_status s = hn_arch_read(&arch, src, err);
    if (s) return s;
    s = hn_tokenizer_open(&tokenizer, src, err);
    if (!s && tokenizer && hn_tokenizer_vocab(tokenizer) > arch.vocab)
        s = hn_fail(err, HUNCH_REFUSED, "tokenizer of %d tokens, model of %d", hn_tokenizer_vocab(tokenizer),
                    arch.vocab);
    if (!s) {
        const hn_vocabulary t = {target->name, target->vocab, target->tokenizer},
                            d = {arch.name, arch.vocab, tokenizer};
        s = hn_vocabulary_fit(&t, &d, err);
    }
    hn_tokenizer_close(&tokenizer);
    hn_arch_fini(&arch);
    return s;
}

typedef struct model_options {
    bool f32;
    hn_dtype kv;
    long depth;
    bool over_ranks;
} model_options;

static hunch_status options_read(model_options *o, hn_spec *spec, const hn_target_info *target, hunch_error *err) {
    static const char *const precisions[] = {"native", "f32", NULL};
    static const char *const places[] = {"leader", "ranks", NULL};
    int precision = 0, over = 0;
    if (!spec->path) return hn_fail(err, HUNCH_USAGE, "drafter '%s': which model? (expected model:PATH)", spec->text);
    hunch_status s = hn_spec_choice(spec, "precision", precisions, target->f32, &precision, err);
    if (!s) s = hn_spec_kv(spec, target->kv, &o->kv, err);
    if (!s) s = hn_spec_int(spec, "depth", 1, HN_TREE_ROWS - 1, target->depth ? target->depth : DEFAULT_DEPTH, &o->depth, err);
    if (!s) s = hn_spec_choice(spec, "over", places, 0, &over, err);
    o->f32 = precision == 1;
    o->over_ranks = over == 1;
    return s;
}

static hunch_status state_open(model_state *st, const char *path, const model_options *o, const hn_target_info *target,
                               hunch_error *err) {
    hn_model_load load = {.pool = target->pool, .like = target->model ? target->model->backend : NULL, .isa = target->isa,
                                .f32 = o->f32};
    hn_source *src = NULL;
    hunch_status s = hn_source_open(&src, path, err);
    if (!s) s = check_fit(src, target, err);
    if (!s && o->over_ranks && target->open_over_ranks) s = target->open_over_ranks(target->machines, &st->model, src, &load, err);
    else if (!s) s = hn_model_open(&st->model, src, &load, err);
    if (!s && st->model.files) {
        hn_source_trim(src);
        st->files = src;
    } else {
        hn_source_close(&src);
    }
    if (s) return s;
    st->context = st->model.arch.context < target->context ? st->model.arch.context : target->context;
    st->vocab = target->vocab;
    st->depth = (int)o->depth;
    st->workers = hn_pool_threads(st->model.pool);
    return tables_create(st, err);
}

/* The cache groups; a round that is started again rewinds the newest token's row. */
static hunch_status groups_wanted(const model_state *st, hn_dtype kv, hn_needs *needs, hunch_error *err) {
    needs->n_groups = hn_kv_groups(st->model.run, kv, needs->group, NULL);
    if (needs->n_groups == 0) return hn_fail(err, HUNCH_REFUSED, "layers with more than %d kinds of rows", HN_MODEL_GROUPS);
    for (int g = 0; g < needs->n_groups; g++) {
        needs->group[g].name = "draft model";
        needs->group[g].told = st->model.told_id;
        if (needs->group[g].window && !needs->group[g].back) needs->group[g].back = 1;
    }
    return HUNCH_OK;
}

static hunch_status model_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs,
                               hunch_error *err) {
    model_options o = {0};
    hunch_status s = options_read(&o, spec, target, err);
    if (!s) s = hn_spec_all_used(spec, err); /* before the model is loaded */
    if (s) return s;
    model_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "drafter 'model'", sizeof *st);
    st->n_seqs = d->max_seqs;
    s = state_open(st, spec->path, &o, target, err);
    if (!s) s = groups_wanted(st, o.kv, needs, err);
    if (s) {
        hn_error_prefix(err, "drafter '%s'", spec->text);
        state_free(st);
        return s;
    }
    d->state = st;
    needs->max_depth = st->depth;
    needs->has_dist = true;
    needs->cost = HN_COST_PER_LEVEL;
    return HUNCH_OK;
}

static hunch_status model_attach(hn_drafter *d, hn_cache *cache, int first_group, int model_id, hunch_error *err) {
    model_state *st = d->state;
    st->cache = cache;
    st->model_id = model_id;
    return hn_runner_open(&st->runner, &st->model, cache, first_group, st->context, NULL, err);
}

/* ---- rows and the text ------------------------------------------------------------------------------------------------ */

static int rows_held(const model_state *st, int seq) {
    return hn_cache_committed(st->cache, seq, st->model_id);
}

/* Ends the round: drops rows of drafts, and those of the text from `rows` on (more, if windows or a state had moved past them). */
static void rows_cut(model_state *st, int seq, int rows) {
    st->seq[seq].n_chain = st->seq[seq].n_draft_rows = 0;
    if (rows < rows_held(st, seq)) hn_cache_rewind(st->cache, seq, st->model_id, rows);
}

static hunch_status model_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err HN_UNUSED) {
    model_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs && seqs[i].rows_restored <= rows_held(st, seqs[i].seq));
        rows_cut(st, seqs[i].seq, seqs[i].rows_restored);
        st->seq[seqs[i].seq].lost = false;
    }
    return HUNCH_OK;
}

/* Rows of drafts whose tokens were accepted are committed. */
static void round_end(model_state *st, const hn_observe *o) {
    model_seq *s = &st->seq[o->seq];
    int same = 0;
    while (same < s->n_draft_rows && same < o->n_accepted && s->chain[same] == o->tree->token[o->path[same]]) same++;
    if (same > 0) hn_cache_commit(st->cache, o->seq, st->model_id, NULL, same);
    s->n_chain = s->n_draft_rows = 0;
}

static void model_observe(hn_drafter *d, const hn_observe *o, int n) {
    model_state *st = d->state;
    for (int i = 0; i < n; i++) round_end(st, &o[i]);
}

static int model_valid_rows(const hn_drafter *d, int seq) {
    return rows_held(d->state, seq);
}

static void model_end(hn_drafter *d, int seq) {
    model_state *st = d->state;
    st->seq[seq].n_chain = st->seq[seq].n_draft_rows = 0;
}

/* ---- choosing a draft ---------------------------------------------------------------------------------------------- */

/* The tree's row of the last draft, the root at level 0; -1: it was removed. */
static int chain_tip(const model_seq *s, const hn_tree *t) {
    int row = 0;
    for (int i = 0; i < s->n_chain && row >= 0; i++) row = hn_tree_child(t, row, s->chain[i]);
    return row;
}

/* A row of logits in the target's vocabulary: ids that the draft model lacks get -inf, its own padding is cut. */
static const float *logits_fit(const model_state *st, const float *own, int worker) {
    const int n = st->model.arch.vocab;
    if (!st->logits) return own;
    float *fit = st->logits + (size_t)worker * (size_t)st->vocab;
    memcpy(fit, own, (size_t)n * sizeof *own);
    for (int i = n; i < st->vocab; i++) fit[i] = -INFINITY;
    return fit;
}

/* softmax(logits)[token]. best: the argmax. */
static float probability(const model_state *st, const hn_vocab_ops *vocab_ops, const float *logits, int32_t best, int32_t token) {
    float weight;
    vocab_ops->weights(logits + token, 1, logits[best], 1, &weight);
    return (float)((double)weight / vocab_ops->weigh(logits, st->vocab, logits[best], 1));
}

static int32_t argmax(const float *l, int n) {
    int32_t best = -1;
    float most = -INFINITY;
    for (int i = 0; i < n; i++)
        if (l[i] > most) most = l[i], best = i;
    return best;
}

/* The token that the request's own noise draws from the draft model's logits. False: none. */
static bool draft_coupled(hn_drafter *d, hn_propose *p, int row, const float *logits, int32_t best,
                          const hn_history *h) {
    model_state *st = d->state;
    model_seq *s = &st->seq[p->seq];
    const int32_t token = hn_sampler_draw(p->sampler, logits, h, best);
    if (token < 0 || (p->budget < 1 && hn_tree_child(p->tree, row, token) < 0)) return false;
    const float estimate = probability(st, p->sampler->vocab_ops, logits, best, token);
    if (hn_tree_add(p->tree, row, token, d->index, estimate) < 0) return false;
    s->chain[s->n_chain++] = token;
    return true;
}

/* A token drawn from the request's distribution over the draft model's logits; the candidate carries that distribution. */
static bool draft_drawn(hn_drafter *d, hn_propose *p, int row, const float *logits, const hn_history *h, int worker) {
    model_state *st = d->state;
    model_seq *s = &st->seq[p->seq];
    int16_t child[HN_TREE_ROWS];
    const hn_draft_dist *dist = hn_draft_dist_make(&st->dists, p->seq, s->n_chain, p->sampler, logits, h);
    if (!dist || hn_draft_dist_draw(&st->dists, dist, p, d->index, row, 1, child, worker) < 1) return false;
    s->chain[s->n_chain++] = p->tree->token[child[0]];
    return true;
}

/* Adds the candidate of a row of the last pass. Changes what belongs to this text and this worker alone. */
static bool draft(hn_drafter *d, hn_propose *p, int pass_row, int worker) {
    model_state *st = d->state;
    const model_seq *s = &st->seq[p->seq];
    const float *logits = logits_fit(st, hn_pass_logits(st->runner, pass_row), worker);
    const hn_history h = {p->text.token, p->text.n, p->text.n_prompt, s->chain, s->n_chain};
    int32_t best = hn_pass_argmax(st->runner, pass_row);
    if (best >= st->vocab) best = argmax(logits, st->vocab); /* the maximum was in the draft model's padding */
    if (p->on_logits) p->on_logits(p->on_logits_ctx, s->n_chain, logits);
    if (best < 0) return false;
    const int row = chain_tip(s, p->tree), from = p->tree->n_candidates;
    const bool added = p->drawn ? draft_drawn(d, p, row, logits, &h, worker) : draft_coupled(d, p, row, logits, best, &h);
    if (added && p->certainty)
        hn_tree_set_certainty(p->tree, from, hn_certainty_of_logits(p->sampler->vocab_ops, logits, st->vocab, best));
    return added;
}

/* ---- passes ---------------------------------------------------------------------------------------------------------- */

/* Without pages there are no drafts this round; after any other failure none for the rest of the text. */
static void draft_failed(hn_drafter *d, int seq, const hunch_error *why) {
    model_state *st = d->state;
    hn_drafter_record(d, why);
    st->seq[seq].lost |= why->status != HUNCH_NO_MEMORY;
}

/* The rows of one pass. A sequence's part is whole if its last row is the one that gives the draft, and that was not refused memory. */
typedef struct batch {
    int n_rows, n_seqs;
    hn_row row[HN_MAX_ROWS];
    int cache_seq[HN_MAX_ROWS], n_certain[HN_MAX_ROWS];
    hn_draft_rows drafts[HN_MAX_ROWS];
    struct {
        hn_propose *p;
        int rows, last; /* how many; the last one in the pass */
        bool whole, added;
    } part[HN_MAX_ROWS];
} batch;

/* Whether the level is evaluated: not if it could add nothing, and never beyond the draft model's context or ids. */
static bool wants_level(const model_state *st, const hn_propose *p, int level) {
    const model_seq *s = &st->seq[p->seq];
    if (s->lost || level >= st->depth || s->n_chain != level || p->text.n + level > st->context) return false;
    const int tip = chain_tip(s, p->tree);
    if (tip < 0 || !hn_propose_has_room(p, tip)) return false;
    for (int i = rows_held(st, p->seq); i < p->text.n; i++)
        if (p->text.token[i] >= st->model.arch.vocab) return false;
    return true;
}

/* How many of the text's rows are in the next pass: for a model with recurrent layers those up to the last end of a block of the index
 * among them, where its state is stored, and the rest in a later pass. */
static int rows_together(const model_state *st, int held, int missing, int room) {
    const int n = missing < room ? missing : room, end = (held + n) - (held + n) % hn_cache_node_rows(st->cache);
    return st->model.recurrent && end > held && end < held + missing ? end - held : n;
}

/* Adds the sequence's missing rows to the pass: at level 0 those of the text, later the newest draft's. False: some did not fit, they are
 * in the next pass. */
static bool batch_add(hn_drafter *d, batch *b, hn_propose *p, int level) {
    static const int16_t one_by_one[HN_MAX_ROWS] = {
        -1, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
        31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62};
    const model_state *st = d->state;
    const model_seq *s = &st->seq[p->seq];
    hunch_error why = {0};
    const int held = rows_held(st, p->seq), missing = level ? 1 : p->text.n - held, room = HN_MAX_ROWS - b->n_rows;
    const int n = room > 0 ? rows_together(st, held, missing, room) : 0, kept = level ? level - 1 : 0;
    assert(missing > 0 && s->n_draft_rows == kept);
    if (n == 0) return false;
    if (hn_cache_reserve(st->cache, p->seq, st->model_id, kept + n, &why)) {
        draft_failed(d, p->seq, &why);
        return true;
    }
    for (int i = 0; i < n; i++) {
        const int32_t token = level ? s->chain[kept] : p->text.token[held + i];
        int parent = b->n_rows + i - 1;
        if (i == 0) parent = kept ? hn_draft_parent(kept - 1) : -1;
        assert(token >= 0 && token < st->model.arch.vocab);
        b->row[b->n_rows + i] = (hn_row){.token = token,
                                         .seq = (int16_t)b->n_seqs,
                                         .parent = (int16_t)parent,
                                         .logits = n == missing && i == n - 1 ? HN_LOGITS_ALL : HN_LOGITS_NONE};
    }
    b->part[b->n_seqs].p = p;
    b->part[b->n_seqs].rows = n;
    b->part[b->n_seqs].whole = n == missing;
    b->part[b->n_seqs].added = false;
    b->drafts[b->n_seqs] = (hn_draft_rows){kept, one_by_one};
    b->n_certain[b->n_seqs] = n;
    b->cache_seq[b->n_seqs++] = p->seq;
    b->n_rows += n;
    return n == missing;
}

typedef struct drawing {
    hn_drafter *d;
    batch *b;
} drawing;

static void draw_rank(void *arg, int rank, int ranks HN_UNUSED) {
    const drawing *g = arg;
    const model_state *st = g->d->state;
    hn_claim c = hn_claim_begin(st->model.pool, rank, g->b->n_seqs);
    for (int i; (i = hn_claim_next(&c)) >= 0;)
        if (g->b->part[i].whole) g->b->part[i].added = draft(g->d, g->b->part[i].p, g->b->part[i].last, rank);
}

/* Adds the candidates of the sequences that are complete, by all workers if there are several; each has its own noise, so it does not
 * matter by which. Their memory is reserved before. Returns how many. */
static int draw_all(hn_drafter *d, batch *b) {
    model_state *st = d->state;
    drawing g = {d, b};
    int n = 0, added = 0;
    for (int i = 0; i < b->n_seqs; i++) n += b->part[i].whole;
    const bool together = n > 1 && st->workers > 1;
    for (int i = 0; i < b->n_seqs; i++) {
        const hn_propose *p = b->part[i].p;
        if (b->part[i].whole && together && p->drawn)
            b->part[i].whole = hn_draft_dist_reserve(&st->dists, p->seq, st->seq[p->seq].n_chain, p->sampler);
        if (b->part[i].whole && !together) b->part[i].added = draft(d, b->part[i].p, b->part[i].last, 0);
    }
    if (together) hn_pool_run(st->model.pool, draw_rank, &g);
    for (int i = 0; i < b->n_seqs; i++) added += b->part[i].added;
    return added;
}

/* Evaluates, keeps the rows and adds the candidates of the sequences that are complete. Returns how many, -1: the pass failed. */
static int batch_run(hn_drafter *d, batch *b, int level) {
    model_state *st = d->state;
    const hn_pass_options more = {.draft_rows = level ? b->drafts : NULL, .n_certain = level ? NULL : b->n_certain};
    hunch_error why = {0};
    int last = -1;
    if (b->n_rows == 0) return 0;
    if (hn_pass_run_with(st->runner, b->row, b->n_rows, b->cache_seq, b->n_seqs, &more, &why)) {
        for (int i = 0; i < b->n_seqs; i++) draft_failed(d, b->cache_seq[i], &why);
        return -1;
    }
    for (int i = 0; i < b->n_seqs; i++) {
        const int seq = b->cache_seq[i];
        last += b->part[i].rows;
        if (level == 0) {
            hn_cache_commit(st->cache, seq, st->model_id, NULL, b->part[i].rows);
            hn_cache_publish_rows(st->cache, seq, st->model_id);
        } else
            st->seq[seq].n_draft_rows++;
        b->part[i].last = last;
    }
    return draw_all(d, b);
}

/* Level 0 starts a round: the newest token's row is always evaluated, because it gives the draft. */
static int model_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    model_state *st = d->state;
    int added = 0;
    batch b;
    for (int i = 0; level == 0 && i < n; i++) rows_cut(st, p[i].seq, p[i].text.n - 1);
    for (int i = 0; i < n;) {
        b.n_rows = b.n_seqs = 0;
        while (i < n && (!wants_level(st, &p[i], level) || batch_add(d, &b, &p[i], level))) i++;
        const int more = batch_run(d, &b, level);
        if (more < 0) break;
        added += more;
    }
    return added;
}

static double model_pass_s(const hn_drafter *d) {
    const model_state *st = d->state;
    return hn_runner_seconds(st->runner);
}

/* A drawn level's distribution has up to a vocabulary more. */
static size_t model_text_bytes(const hn_drafter *d, int tokens HN_UNUSED) {
    const model_state *st = d->state;
    return sizeof *st->seq + (size_t)st->depth * (sizeof *st->chains + sizeof *st->dists.dist);
}

static const hn_drafter_ops ops = {
    .open = model_open,
    .attach = model_attach,
    .begin = model_begin,
    .observe = model_observe,
    .propose = model_propose,
    .valid_rows = model_valid_rows,
    .pass_s = model_pass_s,
    .text_bytes = model_text_bytes,
    .end = model_end,
    .close = model_close,
};

static const hn_drafter_help help = {
    ":MODEL", "a smaller model of the same vocabulary",
    {{"precision", "native|f32", "that of the target by default"},
     {"kv", "bf16|f16|f32", "that of the target by default"},
     {"depth", "1..63", "tokens drafted, default 5"},
     {"over", "leader|ranks", "under mpirun: on the leader alone, the default, or divided too"}}};
const hn_drafter_kind hn_drafter_model = {.name = "model", .help = &help, .path_is_model = true, .ops = &ops};
