/* SPDX-License-Identifier: Apache-2.0 */
/* head_passes.c - see head_passes.h: what all kinds of heads have in common, and which file computes the rows of each kind. */
#include "draft/head/head_passes.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "base/mem.h"
#include "draft/head/head_passes_private.h"
#include "model/kv_groups.h"

/* ---- open and close ----------------------------------------------------------------------------------------------------- */

static hunch_status copy_ids(hn_head_passes *h, const int32_t *ids, hunch_error *err) {
    const size_t bytes = (size_t)h->model.arch.vocab * sizeof *ids;
    h->ids = hn_alloc(bytes);
    if (!h->ids) return hn_fail_memory(err, "draft tokens", bytes);
    memcpy(h->ids, ids, bytes);
    return HUNCH_OK;
}

/* Room for a row in the target's vocabulary, which the head's ids reduce. */
static hunch_status create_logits(hn_head_passes *h, hunch_error *err) {
    const size_t n = (size_t)h->workers * (size_t)h->vocab;
    h->logits = hn_zalloc(n, sizeof *h->logits);
    if (!h->logits) return hn_fail_memory(err, "the tables of a draft head", n * sizeof *h->logits);
    for (size_t i = 0; i < n; i++) h->logits[i] = -INFINITY;
    return HUNCH_OK;
}

static void request(const hn_head_passes *h, hn_dtype kv, hn_needs *needs) {
    needs->features = h->set;
    needs->n_groups = hn_kv_groups(h->model.run, kv, needs->group, NULL);
    if (hn_head_is_borrowed(h)) needs->n_groups = 0;
    assert(hn_head_is_block(h) || needs->n_groups == (hn_head_has_rows(h) ? 1 : 0));
    for (int g = 0; g < needs->n_groups; g++) {
        needs->group[g].name = "draft head";
        /* the text's new rows stay until they are in the index, and a block follows them */
        needs->group[g].tentative = HN_MAX_ROWS + (hn_head_is_block(h) ? h->model.arch.draft_head.rows.block.n : HN_MOST_DRAFT_ROWS);
        needs->group[g].recompute = hn_head_recompute(h);
    }
}

static hunch_status open_sources(hn_head_passes *h, hunch_error *err) {
    const size_t n = (size_t)h->n_seqs, nodes = n * (size_t)h->width;
    h->source = hn_zalloc(nodes, sizeof *h->source);
    h->kept_source = hn_zalloc(n, sizeof *h->kept_source);
    return h->source && h->kept_source ? HUNCH_OK : hn_fail_memory(err, "the tables of a draft head", nodes * sizeof *h->source);
}

hunch_status hn_head_passes_open(hn_head_passes *h, const int *boundaries, int n_states, const int32_t *ids, int vocab,
                                 int n_seqs, int width, hn_dtype kv, hn_needs *needs, hunch_error *err) {
    const hn_rows_stage *rows = &h->model.arch.draft_head.rows;
    h->n_seqs = n_seqs;
    h->workers = hn_pool_threads(h->model.pool);
    h->vocab = vocab;
    h->span = rows->kind == HN_ROWS_SPAN ? rows->span : 1;
    h->modules = hn_arch_modules(&h->model.arch);
    h->width = width * h->span;
    hunch_status st = ids ? copy_ids(h, ids, err) : HUNCH_OK;
    if (!st) st = hn_head_store_open(h, boundaries, n_states, err);
    if (!st && (ids || hn_head_chooses(&h->model.arch.draft_head))) st = create_logits(h, err);
    if (!st) st = hn_mtp_open(h, err);
    if (!st && h->model.backend->one_wait) st = open_sources(h, err);
    if (!st) request(h, kv, needs);
    return st;
}

hunch_status hn_head_passes_attach(hn_head_passes *h, hn_cache *cache, int first_group, int model_id, int context, int best,
                                   hunch_error *err) {
    const int least = hn_most(hn_head_least_best(&h->model.arch.draft_head), 2); /* two for the margin */
    const hn_head_stores stores = {h->room, hn_mtp_outputs(h), hn_most(best, least)};
    h->cache = cache;
    h->model_id = model_id;
    hunch_status st = hn_head_is_borrowed(h) ? hn_head_borrowed_attach(h, &stores, context, err)
                                             : hn_runner_open_head(&h->runner, &h->model, cache, first_group, context, &stores, err);
    const hn_rows_stage *rows = &h->model.arch.draft_head.rows;
    if (!st && rows->kind == HN_ROWS_MASKS && rows->masks.input == HN_MASK_OWN) hn_head_store_mask(h);
    return st;
}

bool hn_head_saves_levels(const hn_head_passes *h) {
    switch (hn_head_rows_kind(h)) {
    case HN_ROWS_MASKS: return true;
    case HN_ROWS_BLOCK: return !hn_head_block_is_whole(&h->model.arch);
    case HN_ROWS_STEPS: return hn_steps_at_once(&h->model.arch.draft_head.rows.steps);
    case HN_ROWS_CHAIN:
    case HN_ROWS_TURNS:
    case HN_ROWS_SPAN:
    case HN_ROWS_BORROWED: break;
    }
    return false;
}

size_t hn_head_text_bytes(const hn_head_passes *h) {
    const size_t lists = 2 * (size_t)h->room * sizeof *h->lists, in_turn = h->in_turn ? sizeof *h->in_turn : 0;
    const size_t sources = h->source ? (size_t)h->width * sizeof *h->source + sizeof *h->kept_source : 0;
    return sizeof *h->seq + lists + in_turn + sources + hn_pass_store_bytes(h->runner) / (size_t)h->n_seqs;
}

void hn_head_passes_close(hn_head_passes *h) {
    hn_runner_close(&h->runner);
    hn_head_borrowed_close(h);
    hn_model_close(&h->model);
    hn_head_store_close(h);
    hn_free(h->ids);
    hn_free(h->logits);
    hn_free(h->in_turn);
    hn_free(h->source);
    hn_free(h->kept_source);
    memset(h, 0, sizeof *h);
}

/* ---- life of a sequence ------------------------------------------------------------------------------------------------- */

void hn_head_begin(hn_head_passes *h, const hn_begin *b) {
    hn_head_seq *s = &h->seq[b->seq];
    const bool restored = b->rows_restored > 0;
    s->lost = hn_head_has_rows(h) && !hn_head_knows(h, b->text.token[0]);
    s->n_draft_rows = 0;
    if (!hn_head_has_rows(h) || s->lost) return;
    assert(s->n_pending == 0 && b->rows_restored == hn_head_rows_held(h, b->seq));
    if (!restored && !hn_head_is_block(h)) hn_head_pending_add(s, b->text.token[0], HN_NO_FEATURE);
    if (restored && hn_head_recompute(h) > 1) /* these are fed again, because all of their features are needed */
        hn_cache_rewind(h->cache, b->seq, h->model_id, b->rows_restored - (hn_head_recompute(h) - 1));
    if (h->modules > 1) hn_mtp_begin(h, b->seq, restored);
}

void hn_head_end(hn_head_passes *h, int seq) {
    hn_head_seq *s = &h->seq[seq];
    hn_head_pending_drop(h, s, s->n_pending);
    hn_head_forget_root(h, s);
    s->n_draft_rows = 0;
}

int hn_head_rows(const hn_head_passes *h, int seq) {
    return hn_head_has_rows(h) ? hn_head_rows_held(h, seq) : INT_MAX; /* none are missing */
}

/* ---- which file computes the rows --------------------------------------------------------------------------------------- */

void hn_head_evaluate(hn_head_passes *h, const int *seq, int n) {
    if (hn_head_is_block(h))
        hn_head_blocks_evaluate(h, seq, n);
    else
        hn_head_text_evaluate(h, seq, n);
}

void hn_head_flush_pending(hn_head_passes *h, const int *seq, int n) {
    if (hn_head_has_rows(h)) hn_head_evaluate(h, seq, n);
}

void hn_head_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx) {
    h->level = h->n_ahead = 0;
    if (hn_head_is_block(h))
        hn_head_blocks_roots(h, node, text_n, n, take, ctx);
    else
        hn_head_text_roots(h, node, text_n, n, take, ctx);
}

void hn_head_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx) {
    h->level++;
    hn_head_next_level(h);
    switch (hn_head_rows_kind(h)) {
    case HN_ROWS_BLOCK: hn_head_blocks_level(h, node, n, take, ctx); return;
    case HN_ROWS_TURNS: hn_mtp_level(h, node, n, take, ctx); return;
    case HN_ROWS_CHAIN:
    case HN_ROWS_SPAN:
    case HN_ROWS_MASKS:
    case HN_ROWS_BORROWED:
    case HN_ROWS_STEPS: hn_head_drafts_level(h, node, n, take, ctx);
    }
}

/* ---- a pass ------------------------------------------------------------------------------------------------------------- */

static void pass_failed(hn_head_passes *h, const int *cache_seq, int n_seqs, const hunch_error *why) {
    hn_drafter_record(h->drafter, why);
    for (int i = 0; i < n_seqs && why->status != HUNCH_NO_MEMORY; i++) hn_head_lose(h, &h->seq[cache_seq[i]]);
}

hunch_status hn_head_pass_run(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more, hunch_error *err) {
    if (!h->model.backend->one_wait) return hn_pass_run_with(h->runner, p->row, p->n_rows, p->cache_seq, p->n_seqs, more, err);
    hn_token_source source[HN_MAX_ROWS] = {0};
    hn_pass_options options = *more;
    bool reads = false;
    for (int i = 0; i < p->n_rows; i++) {
        reads |= p->row[i].logits != HN_LOGITS_NONE;
        if (p->row[i].token == HN_TOKEN_LATER) source[i] = p->source[i];
    }
    if (h->ahead) options.source = source;
    hunch_status st = hn_pass_begin(h->runner, p->row, p->n_rows, p->cache_seq, p->n_seqs, &options, err);
    if (st) return st;
    if ((h->ahead || !reads) && hn_pass_may_leave(h->runner))
        hn_pass_leave(h->runner);
    else
        st = hn_pass_end(h->runner, err);
    h->n_ahead += h->ahead && reads;
    return st;
}

bool hn_head_run(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more) {
    hunch_error why = {0};
    if (hn_head_is_borrowed(h) ? !hn_head_borrowed_run(h, p, more, &why) : !hn_head_pass_run(h, p, more, &why)) return true;
    pass_failed(h, p->cache_seq, p->n_seqs, &why);
    return false;
}

bool hn_head_run_drafts(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more) {
    hunch_error why = {0};
    if (!hn_pass_reserve(h->runner, p->row, p->n_rows, p->cache_seq, p->n_seqs, more, &why)) return hn_head_run(h, p, more);
    pass_failed(h, p->cache_seq, p->n_seqs, &why);
    return false;
}

bool hn_head_reserve(hn_head_passes *h, int seq, int rows) {
    hunch_error why = {0};
    if (!hn_cache_reserve(h->cache, seq, h->model_id, rows, &why)) return true;
    pass_failed(h, &seq, 1, &why);
    return false;
}

void hn_head_next_level(hn_head_passes *h) {
    h->generation ^= 1;
    h->n_outputs = 0;
}

int32_t hn_head_next_output(hn_head_passes *h) {
    return h->generation * h->n_seqs * h->width * h->modules + h->n_outputs++;
}

/* ---- rounds that wait once ---------------------------------------------------------------------------------------------- */

bool hn_head_can_go_ahead(const hn_head_passes *h, int n, int levels) {
    return !hn_head_in_order(&h->model.arch.draft_head) && h->span == 1 && (n * levels) / HN_MAX_ROWS + n <= HN_KEPT_LISTS / 2;
}

bool hn_head_keeps_lists(const hn_head_passes *h, int n) {
    return !h->ahead || h->n_ahead + n / HN_MAX_ROWS + 1 <= HN_KEPT_LISTS;
}

hn_token_source hn_head_source(const hn_head_passes *h, int row, int rank) {
    return hn_pass_source(h->runner, row, rank);
}

/* ---- results of a row --------------------------------------------------------------------------------------------------- */

static bool in_order(const hn_head_passes *h) {
    return hn_head_in_order(&h->model.arch.draft_head);
}

/* With clusters: the logits of those of the row, all others -infinity. */
static const float *spread_clusters(const hn_head_passes *h, const float *own, const int32_t *cluster, float *to) {
    const hn_output_stage *d = &h->model.arch.draft_head.output;
    const int size = h->model.arch.vocab / d->clusters.n;
    for (int i = 0; i < h->vocab; i++) to[i] = -INFINITY;
    for (int k = 0; k < d->clusters.used && cluster[k] >= 0; k++)
        for (int i = 0; i < size; i++) to[h->ids[cluster[k] * size + i]] = own[k * size + i];
    return to;
}

/* The logits of some tokens of a place, all others -infinity. */
static const float *spread_tokens(const hn_head_passes *h, const hn_place_result *p, float *to) {
    for (int i = 0; i < h->vocab; i++) to[i] = -INFINITY;
    for (int i = 0; i < p->n_tokens; i++) to[p->tokens[i]] = p->logits[i];
    return to;
}

const float *hn_head_logits(const hn_head_passes *h, int row, int worker) {
    const hn_place_result place = in_order(h) ? hn_pass_place(h->runner, row) : (hn_place_result){.logits = hn_pass_logits(h->runner, row)};
    const int n = h->model.arch.vocab;
    float *to = h->logits ? h->logits + (size_t)worker * (size_t)h->vocab : NULL;
    if (place.tokens) return spread_tokens(h, &place, to);
    if (!h->ids) return place.logits;
    if (h->model.arch.draft_head.output.kind == HN_OUTPUT_CLUSTERS)
        return spread_clusters(h, place.logits, hn_pass_clusters(h->runner, row), to);
    for (int i = 0; i < n; i++) to[h->ids[i]] = place.logits[i];
    return to;
}

const int32_t *hn_head_best(const hn_head_passes *h, int row, const float **value) {
    if (!in_order(h)) return hn_pass_best(h->runner, row, value);
    const hn_place_result place = hn_pass_place(h->runner, row);
    *value = place.value;
    return place.best;
}

double hn_head_sum(const hn_head_passes *h, int row) {
    return in_order(h) ? hn_pass_place(h->runner, row).sum : hn_pass_sum(h->runner, row);
}

void hn_head_want_certainty(hn_head_passes *h, bool wanted) {
    hn_pass_want_entropy(h->runner, wanted);
}

hn_certainty hn_head_certainty(const hn_head_passes *h, int row) {
    const float *value;
    const int32_t *best = hn_head_best(h, row, &value);
    const double entropy = in_order(h) ? hn_pass_place(h->runner, row).entropy : hn_pass_entropy(h->runner, row);
    if (best[0] < 0) return hn_certainty_none();
    return hn_certainty_of((double)value[0], best[1] < 0 ? -INFINITY : (double)value[1], hn_head_sum(h, row), entropy);
}

double hn_head_confidence(const hn_head_passes *h, int row) {
    return in_order(h) ? hn_pass_place(h->runner, row).confidence : NAN;
}
