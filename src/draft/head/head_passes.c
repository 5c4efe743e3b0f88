/* SPDX-License-Identifier: Apache-2.0 */
/* head_passes.c - see head_passes.h. */
#include "draft/head/head_passes.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/kv_groups.h"

enum { SLOTS_A_SEQ = 8, NO_FEATURE = 0, MASK_FEATURE = 1 };

/* A head without layers has no rows in the cache: it reads the newest feature only. */
static bool has_rows(const hn_head_passes *h) {
    return h->model.arch.layers > 0;
}

static bool has_steps(const hn_head_passes *h) {
    return h->model.arch.draft_head.steps.n > 0;
}

/* ---- open and close --------------------------------------------------------------------------------------------------- */

/* Which of the fed buffers is which state: they come in ascending order of boundaries. */
static void read_order(hn_head_passes *h, const int *boundaries, int n) {
    h->n_states = n;
    for (int k = 0; k < n; k++) {
        h->order[k] = 0;
        if (boundaries[k] == HN_FEATURE_POST_NORM)
            h->set.post_norm = true;
        else
            h->set.layers[boundaries[k] / 64] |= 1ull << (boundaries[k] % 64);
        for (int i = 0; i < n; i++) h->order[k] += boundaries[i] >= 0 && boundaries[i] < boundaries[k];
    }
}

static hunch_status create_lists(hn_head_passes *h, hunch_error *err) {
    const size_t n = (size_t)h->n_seqs, room = (size_t)h->room;
    h->seq = hn_zalloc(n, sizeof *h->seq);
    h->lists = hn_zalloc(2 * n * room, sizeof *h->lists);
    h->free_slot = hn_zalloc(room, sizeof *h->free_slot);
    if (h->ids) h->logits = hn_zalloc((size_t)h->vocab, sizeof *h->logits);
    if (!h->seq || !h->lists || !h->free_slot || (h->ids && !h->logits))
        return hn_fail_memory(err, "the tables of a draft head", 2 * n * room * sizeof *h->lists);
    for (size_t i = 0; i < n; i++) {
        h->seq[i].token = h->lists + 2 * i * room;
        h->seq[i].slot = h->seq[i].token + room;
    }
    for (int p = h->room - 1; p > MASK_FEATURE; p--) h->free_slot[h->n_free++] = p;
    return HUNCH_OK;
}

static bool is_block(const hn_head_passes *h) {
    return h->model.arch.draft_head.block > 0;
}

hunch_status hn_head_passes_open(hn_head_passes *h, const int *boundaries, int n_states, const int32_t *ids, int vocab,
                                 int n_seqs, int width, hn_dtype kv, hn_needs *needs, hunch_error *err) {
    h->n_seqs = n_seqs;
    h->vocab = vocab;
    h->span = h->model.arch.draft_head.span > 1 ? h->model.arch.draft_head.span : 1;
    h->modules = hn_head_modules(&h->model.arch.draft_head);
    h->width = width * h->span;
    /* rows of a call beside one of each sequence */
    h->room = 2 + HN_FEED_ROWS + SLOTS_A_SEQ * n_seqs + (h->span > 1 ? h->span * n_seqs : 0);
    if (ids) {
        const size_t bytes = (size_t)h->model.arch.vocab * sizeof *ids;
        h->ids = hn_alloc(bytes);
        if (!h->ids) return hn_fail_memory(err, "draft tokens", bytes);
        memcpy(h->ids, ids, bytes);
    }
    read_order(h, boundaries, n_states);
    needs->features = h->set;
    needs->n_groups = hn_kv_groups(&h->model.arch, kv, needs->group, NULL);
    assert(is_block(h) || needs->n_groups == (has_rows(h) ? 1 : 0));
    for (int g = 0; g < needs->n_groups; g++) {
        needs->group[g].name = "draft head";
        /* the text's new rows stay until they are in the index, and a block follows them */
        needs->group[g].tentative = is_block(h) ? HN_MAX_ROWS + h->model.arch.draft_head.block : HN_MOST_DRAFT_ROWS + HN_MAX_ROWS;
        needs->group[g].recompute = h->modules > 1 ? h->modules : h->span;
    }
    hunch_status st = create_lists(h, err);
    if (!st) st = hn_mtp_open(h, err);
    for (int i = 0; !st && h->logits && i < vocab; i++) h->logits[i] = -INFINITY;
    return st;
}

static void store_mask(hn_head_passes *h) {
    const int width = h->model.arch.draft_head.feature_width, from = 0, to = MASK_FEATURE;
    hn_buf state[HN_MOST_HEAD_FEATURES];
    for (int k = 0; k < h->n_states; k++) state[k] = hn_at(h->model.head.mask, sizeof(float) * (size_t)(k * width));
    hn_pass_store(h->runner, state, width, &from, &to, 1);
}

hunch_status hn_head_passes_attach(hn_head_passes *h, hn_cache *cache, int first_group, int model_id, int context, int best,
                                   hunch_error *err) {
    const hn_head_stores stores = {h->room, hn_mtp_outputs(h), best};
    h->cache = cache;
    h->model_id = model_id;
    hunch_status st = hn_runner_open_head(&h->runner, &h->model, cache, first_group, context, &stores, err);
    if (!st && h->model.arch.draft_head.mask && !h->model.arch.draft_head.mask_pair) store_mask(h);
    return st;
}

void hn_head_passes_close(hn_head_passes *h) {
    hn_runner_close(&h->runner);
    hn_model_close(&h->model);
    hn_free(h->ids);
    hn_free(h->logits);
    hn_free(h->in_turn);
    hn_free(h->free_slot);
    hn_free(h->lists);
    hn_free(h->seq);
    memset(h, 0, sizeof *h);
}

/* ---- pending rows --------------------------------------------------------------------------------------------------- */

static int rows_held(const hn_head_passes *h, int seq) {
    return hn_cache_committed(h->cache, seq, h->model_id);
}

static void pending_add(hn_head_seq *s, int32_t token, int slot) {
    s->token[s->n_pending] = token;
    s->slot[s->n_pending++] = slot;
}

static void place_free(hn_head_passes *h, int slot) {
    if (slot != NO_FEATURE) h->free_slot[h->n_free++] = slot;
}

/* The newest row will not be evaluated again. */
static void forget_root(hn_head_passes *h, hn_head_seq *s) {
    place_free(h, s->root_slot);
    s->root_slot = NO_FEATURE;
}

/* Removes the first n pending rows. */
void hn_head_pending_drop(hn_head_passes *h, hn_head_seq *s, int n) {
    for (int i = 0; i < n; i++) place_free(h, s->slot[i]);
    s->n_pending -= n;
    memmove(s->token, s->token + n, (size_t)s->n_pending * sizeof *s->token);
    memmove(s->slot, s->slot + n, (size_t)s->n_pending * sizeof *s->slot);
}

void hn_head_lose(hn_head_passes *h, hn_head_seq *s) {
    hn_head_pending_drop(h, s, s->n_pending);
    forget_root(h, s);
    s->lost = true;
}

/* ---- passes and their failures ---------------------------------------------------------------------------------------- */

static void pass_failed(hn_head_passes *h, const int *cache_seq, int n_seqs, const hunch_error *why) {
    hn_drafter_record(h->drafter, why);
    for (int i = 0; i < n_seqs && why->status != HUNCH_NO_MEMORY; i++) hn_head_lose(h, &h->seq[cache_seq[i]]);
}

bool hn_head_run(hn_head_passes *h, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more) {
    hunch_error why = {0};
    if (!hn_pass_run_with(h->runner, rows, n, cache_seq, n_seqs, more, &why)) return true;
    pass_failed(h, cache_seq, n_seqs, &why);
    return false;
}

bool hn_head_reserve(hn_head_passes *h, int seq, int rows) {
    hunch_error why = {0};
    if (!hn_cache_reserve(h->cache, seq, h->model_id, rows, &why)) return true;
    pass_failed(h, &seq, 1, &why);
    return false;
}

/* ---- life of a sequence ----------------------------------------------------------------------------------------------- */

void hn_head_begin(hn_head_passes *h, const hn_begin *b) {
    hn_head_seq *s = &h->seq[b->seq];
    s->lost = false;
    s->n_draft_rows = 0;
    if (!has_rows(h)) return;
    assert(s->n_pending == 0 && b->rows_restored == rows_held(h, b->seq));
    if (b->rows_restored == 0 && !is_block(h)) pending_add(s, b->text.token[0], NO_FEATURE);
    if (b->rows_restored > 0 && h->span > 1) /* the rest of its last block is fed again, because all of its features are needed */
        hn_cache_rewind(h->cache, b->seq, h->model_id, b->rows_restored - (h->span - 1));
    if (h->modules == 1) return;
    if (b->rows_restored > 0) hn_cache_rewind(h->cache, b->seq, h->model_id, b->rows_restored - (h->modules - 1));
    hn_mtp_begin(h, b->seq, b->rows_restored > 0);
}

void hn_head_end(hn_head_passes *h, int seq) {
    hn_head_seq *s = &h->seq[seq];
    hn_head_pending_drop(h, s, s->n_pending);
    forget_root(h, s);
    s->n_draft_rows = 0;
}

int hn_head_rows(const hn_head_passes *h, int seq) {
    return has_rows(h) ? rows_held(h, seq) : INT_MAX; /* none are missing */
}

/* ---- passes over committed tokens -------------------------------------------------------------------------------------- */

typedef struct batch {
    int n_rows, n_seqs;
    int n_further;                                 /* outputs of further steps */
    int further[HN_MAX_ROWS];                      /* of each row */
    hn_row row[HN_MAX_ROWS];
    int32_t feature[HN_MAX_ROWS], output[HN_MAX_ROWS];
    int cache_seq[HN_MAX_ROWS], rows[HN_MAX_ROWS]; /* of each sequence */
    int node[HN_MAX_ROWS];                         /* of its last row, -1: none */
    int masks[HN_MAX_ROWS];                        /* rows after that one, which are not kept */
} batch;

static int32_t next_output(hn_head_passes *h) {
    return h->generation * h->n_seqs * h->width * h->modules + h->n_outputs++;
}

static void batch_row(batch *b, bool first, int32_t token, int feature, int output, bool logits) {
    const int at = b->n_rows++;
    b->feature[at] = feature;
    b->output[at] = output;
    b->further[at] = 0;
    b->row[at] = (hn_row){.token = token, .seq = (int16_t)b->n_seqs, .parent = (int16_t)(first ? -1 : at - 1),
                          .logits = logits ? HN_LOGITS_ALL : HN_LOGITS_NONE};
}

/* The last rows of a block in the pass attend to each other, and all of them draft. */
static void batch_block(hn_head_passes *h, batch *b) {
    for (int i = 0; i < h->span; i++) {
        const int at = b->n_rows - h->span + i;
        b->row[at].n_lookahead = (int16_t)(h->span - 1 - i);
        b->row[at].logits = HN_LOGITS_ALL;
        b->output[at] = next_output(h);
    }
}

/* Adds pending rows to the pass, and masks after the last one. node: that of the last row; -1: all rows but the last, whose
 * logits may still be needed. False: some did not fit. */
static bool batch_add(hn_head_passes *h, batch *b, int seq, int node, int masks) {
    hn_head_seq *s = &h->seq[seq];
    const int missing = s->n_pending - (node < 0 ? h->span : 0), room = HN_MAX_ROWS - b->n_rows - b->n_further;
    if (missing <= 0 || s->lost) return true;
    if (h->span > 1) masks = 0; /* the rows of the block itself give the levels after the root's */
    const bool last = node >= 0 && missing + masks <= room;
    int n = missing < room ? missing : room;
    /* the last one and its masks must be in one pass, and so must the rows of the last block */
    if (node >= 0 && !last && n > missing - h->span) n = missing - h->span;
    if (n <= 0) return false;
    if (!last) masks = 0;
    const int further = has_steps(h) ? masks : 0; /* of the root's own row */
    masks -= further;
    if (has_rows(h) && !hn_head_reserve(h, seq, n + masks)) { /* the text continues without drafts */
        hn_head_lose(h, s);
        return true;
    }
    for (int i = 0; i < n; i++) {
        const bool root = last && i == n - 1;
        batch_row(b, i == 0, s->token[i], s->slot[i], root && h->span == 1 ? next_output(h) : -1, root);
    }
    if (last && h->span > 1) batch_block(h, b);
    b->further[b->n_rows - 1] = further;
    b->n_further += further;
    for (int i = 0; i < masks; i++)
        batch_row(b, false, h->model.arch.draft_head.mask_token, h->model.arch.draft_head.mask_pair ? -1 : MASK_FEATURE, -1, true);
    b->rows[b->n_seqs] = n;
    b->masks[b->n_seqs] = last && h->span > 1 ? h->span - 1 : masks + further;
    b->node[b->n_seqs] = last ? node : -1;
    b->cache_seq[b->n_seqs++] = seq;
    return n == missing;
}

static void batch_start(batch *b) {
    b->n_rows = b->n_seqs = b->n_further = 0;
}

/* Keeps the rows of sequence i that were computed; the last one is a root's, or one whose logits are not needed. */
static void batch_keep(hn_head_passes *h, const batch *b, int i) {
    hn_head_seq *s = &h->seq[b->cache_seq[i]];
    if (!has_rows(h)) return; /* it may be evaluated again */
    if (h->span > 1 && b->node[i] >= 0) { /* so may the rows of the last block: until then they are kept like those of drafts */
        hn_cache_commit(h->cache, b->cache_seq[i], h->model_id, NULL, b->rows[i] - h->span);
        hn_head_pending_drop(h, s, b->rows[i] - h->span);
        for (int k = 0; k < h->span; k++) s->draft_parent[k] = (int16_t)(k - 1);
        s->n_draft_rows = h->span;
        return;
    }
    hn_cache_commit(h->cache, b->cache_seq[i], h->model_id, NULL, b->rows[i]);
    if (b->node[i] >= 0) { /* the last pending row is the root: its feature is kept */
        s->root = s->token[s->n_pending - 1];
        s->root_slot = s->slot[s->n_pending - 1];
        s->slot[s->n_pending - 1] = NO_FEATURE;
    }
    hn_head_pending_drop(h, s, b->rows[i]);
}

/* Calls take for sequence i's rows; the last of its committed ones is row `row` of the pass. */
static void batch_take(hn_head_passes *h, const batch *b, int i, int row, hn_head_node *node, hn_head_take take, void *ctx) {
    const int first = h->span > 1 ? row - (h->span - 1) : row; /* of the rows that draft */
    if (b->node[i] < 0) return;
    node[b->node[i]].kept = h->span > 1 ? h->span - 1 : -1;
    node[b->node[i]].output = b->output[first];
    for (int mask = 0; mask <= b->masks[i]; mask++)
        take(ctx, b->node[i], mask, mask && has_steps(h) ? hn_pass_further(h->runner, row, mask) : first + mask);
}

/* Evaluates and keeps the rows. */
static bool batch_run(hn_head_passes *h, batch *b, hn_head_node *node, hn_head_take take, void *ctx) {
    const hn_pass_options more = {.feature = b->feature, .output = b->output, .further = b->further};
    hn_head_rows_of of[HN_MAX_ROWS];
    if (b->n_rows == 0) return true;
    for (int i = 0; i < b->n_seqs; i++) of[i] = (hn_head_rows_of){b->cache_seq[i], b->rows[i]};
    if (h->modules > 1) hn_mtp_places(h, of, b->n_seqs, b->output);
    bool ran = hn_head_run(h, b->row, b->n_rows, b->cache_seq, b->n_seqs, &more);
    for (int i = 0, row = -1; ran && i < b->n_seqs; i++) {
        row += b->rows[i];
        batch_take(h, b, i, row, node, take, ctx);
        if (h->span == 1 && b->node[i] >= 0) row += b->masks[i] - b->further[row];
    }
    if (ran && h->modules > 1) ran = hn_mtp_follow(h, of, b->n_seqs, b->row);
    for (int i = 0; i < b->n_seqs; i++) {
        if (ran)
            batch_keep(h, b, i);
        else
            hn_head_lose(h, &h->seq[b->cache_seq[i]]);
    }
    batch_start(b);
    return ran;
}

/* Evaluates the pending rows of sequences [first, end), except the last row of each. */
static void evaluate(hn_head_passes *h, int first, int end) {
    batch b;
    if (is_block(h)) {
        hn_head_blocks_evaluate(h, first, end);
        return;
    }
    batch_start(&b);
    for (int seq = first; seq < end; seq++)
        while (!batch_add(h, &b, seq, -1, 0)) batch_run(h, &b, NULL, NULL, NULL);
    batch_run(h, &b, NULL, NULL, NULL);
}

void hn_head_flush_pending(hn_head_passes *h, int seq) {
    if (has_rows(h)) evaluate(h, seq, seq + 1);
}

static bool newest(const hn_feed_row *rows, int n, int i) {
    for (int k = i + 1; k < n; k++)
        if (rows[k].seq == rows[i].seq) return false;
    return true;
}

/* For a head without layers: the newest row of each sequence replaces the previous one. */
static int feed_newest(hn_head_passes *h, const hn_feed_row *rows, int n, int32_t *from, int32_t *to) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        hn_head_seq *s = &h->seq[rows[i].seq];
        if (!newest(rows, n, i)) continue;
        if (s->n_pending == 0) pending_add(s, 0, h->free_slot[--h->n_free]);
        s->token[0] = rows[i].next_token;
        s->text_n = rows[i].position + 2;
        from[m] = rows[i].feature_row;
        to[m++] = s->slot[0];
    }
    return m;
}

static int feed_pending(hn_head_passes *h, const hn_feed_row *rows, int n, int32_t *from, int32_t *to) {
    int m = 0;
    if (h->n_free < n) evaluate(h, 0, h->n_seqs); /* makes room in the store */
    for (int i = 0; i < n; i++) {
        hn_head_seq *s = &h->seq[rows[i].seq];
        const int next = rows_held(h, rows[i].seq) + s->n_pending, slot = rows[i].position + !is_block(h);
        if (s->lost || slot < next) continue; /* restored with a prefix */
        if (slot > next || h->n_free + (s->root_slot != NO_FEATURE) == 0) {
            hn_head_lose(h, s);
            continue;
        }
        forget_root(h, s);
        from[m] = rows[i].feature_row;
        to[m] = h->free_slot[--h->n_free];
        pending_add(s, rows[i].next_token, to[m++]);
    }
    return m;
}

hunch_status hn_head_feed(hn_head_passes *h, const hn_feed_row *rows, int n, const hn_features *f, hunch_error *err HN_UNUSED) {
    int32_t from[HN_FEED_ROWS], to[HN_FEED_ROWS];
    hn_buf state[HN_MOST_HEAD_FEATURES];
    assert(n <= HN_FEED_ROWS && f->n >= 1);
    const int m = has_rows(h) ? feed_pending(h, rows, n, from, to) : feed_newest(h, rows, n, from, to);
    for (int k = 0; k < h->n_states; k++) state[k] = f->buffer[h->order[k]];
    if (m > 0) hn_pass_store(h->runner, state, f->ld, from, to, m);
    return HUNCH_OK;
}

/* ---- passes of a round --------------------------------------------------------------------------------------------------- */

void hn_head_roots(hn_head_passes *h, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx) {
    batch b;
    if (is_block(h)) {
        hn_head_blocks_roots(h, node, text_n, n, take, ctx);
        return;
    }
    batch_start(&b);
    h->generation ^= 1;
    h->n_outputs = h->level = 0;
    for (int i = 0; i < n; i++) {
        hn_head_seq *s = &h->seq[node[i].seq];
        s->n_draft_rows = 0;
        if (h->modules > 1) hn_mtp_round(h, node[i].seq);
        if (s->n_pending == 0 && s->root_slot != NO_FEATURE) { /* evaluated again */
            hn_cache_rewind(h->cache, node[i].seq, h->model_id, rows_held(h, node[i].seq) - 1);
            pending_add(s, s->root, s->root_slot);
            s->root_slot = NO_FEATURE;
            if (h->modules > 1) hn_mtp_again(h, node[i].seq);
        }
        const int there = has_rows(h) ? rows_held(h, node[i].seq) + s->n_pending : s->text_n;
        if (s->lost || s->n_pending < h->span || there != text_n[i]) continue;
        if (h->span > 1 && text_n[i] <= h->span) continue; /* slot 0 is not a row of a block */
        while (!batch_add(h, &b, node[i].seq, i, node[i].masks)) batch_run(h, &b, node, take, ctx);
    }
    batch_run(h, &b, node, take, ctx);
}

/* Nodes [first, last) in one pass. */
static void level_pass(hn_head_passes *h, hn_head_node *node, int first, int last, hn_head_take take, void *ctx) {
    hn_row row[HN_MAX_ROWS];
    hn_draft_rows drafts[HN_MAX_ROWS];
    int32_t feature[HN_MAX_ROWS], output[HN_MAX_ROWS];
    int cache_seq[HN_MAX_ROWS], n_seqs = 0;
    assert(first < last && last - first <= HN_MAX_ROWS);
    for (int i = first; i < last; i++) {
        const hn_head_seq *s = &h->seq[node[i].seq];
        if (i == first || node[i].seq != node[i - 1].seq) {
            drafts[n_seqs] = (hn_draft_rows){s->n_draft_rows, s->draft_parent};
            cache_seq[n_seqs++] = node[i].seq;
        }
        feature[i - first] = node[i].output;
        output[i - first] = next_output(h);
        row[i - first] = (hn_row){.token = node[i].token,
                                  .seq = (int16_t)(n_seqs - 1),
                                  .parent = node[i].kept < 0 ? (int16_t)-1 : hn_draft_parent(node[i].kept),
                                  .logits = HN_LOGITS_ALL};
    }
    const hn_pass_options more = {.draft_rows = has_steps(h) ? NULL : drafts, .feature = feature, .output = output, .drafts = true,
                               .step = h->level};
    if (!hn_head_run(h, row, last - first, cache_seq, n_seqs, &more)) return; /* no more levels */
    for (int i = first; i < last; i++) {
        hn_head_seq *s = &h->seq[node[i].seq];
        node[i].output = output[i - first];
        if (has_steps(h)) continue; /* no rows of the cache */
        s->draft_parent[s->n_draft_rows] = (int16_t)node[i].kept;
        node[i].kept = s->n_draft_rows++;
    }
    for (int i = first; i < last; i++) take(ctx, i, 0, i - first);
}

/* The same for blocks: a node's rows are the last tokens of its path, which start from the outputs of the block before. */
static void module_pass(hn_head_passes *h, hn_head_node *node, int first, int last, hn_head_take take, void *ctx) {
    hn_row row[HN_MAX_ROWS];
    hn_draft_rows drafts[HN_MAX_ROWS];
    int32_t feature[HN_MAX_ROWS], output[HN_MAX_ROWS];
    int cache_seq[HN_MAX_ROWS], n_seqs = 0, n = 0;
    const int k = h->span;
    assert(first < last && k > 1 && (last - first) * k <= HN_MAX_ROWS);
    for (int i = first; i < last; i++) {
        const hn_head_seq *s = &h->seq[node[i].seq];
        if (i == first || node[i].seq != node[i - 1].seq) {
            drafts[n_seqs] = (hn_draft_rows){s->n_draft_rows, s->draft_parent};
            cache_seq[n_seqs++] = node[i].seq;
        }
        for (int j = 0; j < k; j++, n++) {
            feature[n] = node[i].output + j;
            output[n] = next_output(h);
            row[n] = (hn_row){.token = node[i].path[j], .seq = (int16_t)(n_seqs - 1), .logits = HN_LOGITS_ALL,
                              .parent = j ? (int16_t)(n - 1) : hn_draft_parent(node[i].kept), .n_lookahead = (int16_t)(k - 1 - j)};
        }
    }
    const hn_pass_options more = {.draft_rows = drafts, .feature = feature, .output = output, .drafts = true};
    if (!hn_head_run(h, row, n, cache_seq, n_seqs, &more)) return; /* no more levels */
    for (int i = first; i < last; i++) {
        hn_head_seq *s = &h->seq[node[i].seq];
        for (int j = 0; j < k; j++, s->n_draft_rows++) s->draft_parent[s->n_draft_rows] = (int16_t)(j ? s->n_draft_rows - 1 : node[i].kept);
        node[i].kept = s->n_draft_rows - 1;
        node[i].output = output[(i - first) * k];
    }
    for (int i = first; i < last; i++)
        for (int j = 0; j < k; j++) take(ctx, i, j, (i - first) * k + j);
}

void hn_head_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx) {
    if (is_block(h)) {
        hn_head_blocks_level(h, node, n, take, ctx);
        return;
    }
    h->generation ^= 1;
    h->n_outputs = 0;
    h->level++;
    if (h->modules > 1) {
        hn_mtp_level(h, node, n, next_output, take, ctx);
        return;
    }
    const int most = HN_MAX_ROWS / h->span;
    for (int first = 0; first < n; first += most) {
        const int last = n - first < most ? n : first + most;
        if (h->span > 1)
            module_pass(h, node, first, last, take, ctx);
        else
            level_pass(h, node, first, last, take, ctx);
    }
}

static bool has_markov(const hn_head_passes *h) {
    return h->model.arch.draft_head.markov != HN_MARKOV_NONE;
}

/* With clusters: the logits of those of the row, all others -infinity. */
static const float *spread_clusters(hn_head_passes *h, const float *own, const int32_t *cluster) {
    const hn_head_desc *d = &h->model.arch.draft_head;
    const int size = h->model.arch.vocab / d->clusters;
    for (int i = 0; i < h->vocab; i++) h->logits[i] = -INFINITY;
    for (int k = 0; k < d->clusters_used && cluster[k] >= 0; k++)
        for (int i = 0; i < size; i++) h->logits[h->ids[cluster[k] * size + i]] = own[k * size + i];
    return h->logits;
}

const float *hn_head_logits(hn_head_passes *h, int row) {
    const float *own = has_markov(h) ? hn_markov_logits(h->runner, row) : hn_pass_logits(h->runner, row);
    const int n = h->model.arch.vocab;
    if (h->model.arch.draft_head.clusters) return spread_clusters(h, own, hn_pass_clusters(h->runner, row));
    if (!h->logits) return own;
    for (int i = 0; i < n; i++) h->logits[h->ids[i]] = own[i];
    return h->logits;
}

const int32_t *hn_head_best(const hn_head_passes *h, int row, const float **value) {
    return has_markov(h) ? hn_markov_best(h->runner, row, value) : hn_pass_best(h->runner, row, value);
}

double hn_head_sum(const hn_head_passes *h, int row) {
    return has_markov(h) ? hn_markov_sum(h->runner, row) : hn_pass_sum(h->runner, row);
}

double hn_head_confidence(const hn_head_passes *h, int row) {
    return has_markov(h) ? hn_markov_confidence(h->runner, row) : NAN;
}
