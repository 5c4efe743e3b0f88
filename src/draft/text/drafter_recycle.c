/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_recycle.c - token recycling (arXiv 2408.08696): a matrix of the likeliest tokens after each token, which the target's rows leave
 * behind, accepted or not, and a tree that is read from it.
 *
 *   recycle[,k=K][,tree=T][,nodes=N][,depth=D][,load=FILE][,save=FILE]
 *
 *   k      tokens after each token, 1..16                                                         8
 *   tree   best: the likeliest nodes, by the measured rates of ranks at each depth; paper: the    best
 *          published tree, in order of depth and rank
 *   nodes  of a tree, at most, 1..63                                                              6
 *   depth  levels of the tree `best`, at most, 1..63                                              8
 *   load   file that the matrix of texts without a salt begins with
 *   save   file that it is written to when the engine closes, if there was a text; whether it can be written is checked before
 *
 * After a pass the row of each token of the tree becomes the k likeliest tokens after it; of a token that is there twice the later row
 * counts. Texts share the matrix, those of a salt have one of their own with a row for every four tokens of the vocabulary (salt_stores.h).
 * Unlike the release, which begins with zeros, a token without a row has no children.
 */
#include <assert.h>

#include "base/file_out.h"
#include "base/mem.h"
#include "draft/text/recycle_tree.h"
#include "draft/text/salt_stores.h"

typedef struct recycle_seq {
    int store; /* 0: none */
    hn_draft_nodes nodes;
} recycle_seq;

typedef struct recycle_state {
    hn_recycle_shape shape;
    int k, vocab, n_seqs;
    hn_salt_stores tenants;
    hn_recycle store[HN_SALT_STORES]; /* not open until a text needs it */
    hn_recycle_rates rates;             /* of all texts: they tell nothing of what these were */
    char *save;                         /* NULL: do not */
    bool began;                         /* there is something to save */
    recycle_seq *seq;
} recycle_state;

/* ---- open ----------------------------------------------------------------------------------------------------------------- */

static void recycle_close(hn_drafter *d) {
    recycle_state *st = d->state;
    if (st->save && st->began && st->store[1].cell) (void)hn_recycle_write(&st->store[1], st->save, NULL);
    for (int i = 0; i < HN_SALT_STORES; i++) hn_recycle_close(&st->store[i]);
    hn_free(st->save);
    hn_free(st->seq);
    hn_free(st);
    d->state = NULL;
}

static hunch_status options_read(recycle_state *st, hn_spec *spec, hunch_error *err) {
    static const char *const trees[] = {"best", "paper", NULL};
    long k = 0, nodes = 0, depth = 0;
    int tree = 0;
    hunch_status s = hn_spec_no_path(spec, err);
    if (!s) s = hn_spec_int(spec, "k", 1, HN_RECYCLE_K, 8, &k, err);
    if (!s) s = hn_spec_choice(spec, "tree", trees, 0, &tree, err);
    if (!s) s = hn_spec_int(spec, "nodes", 1, HN_NODES_MAX, tree == 1 ? HN_NODES_MAX : 6, &nodes, err);
    if (!s) s = hn_spec_int(spec, "depth", 1, HN_NODES_MAX, 8, &depth, err);
    st->k = (int)k;
    st->shape = (hn_recycle_shape){tree == 1, (int)nodes, tree == 1 ? hn_recycle_paper_depth() : (int)depth, (int)k};
    return s;
}

/* The matrix of texts without a salt is there from the start; what is saved at the end is tried now, while an error can be reported. */
static hunch_status files_open(recycle_state *st, hn_spec *spec, hunch_error *err) {
    const char *load = hn_spec_string(spec, "load"), *save = hn_spec_string(spec, "save");
    hn_out *o = NULL;
    if (!hn_recycle_open(&st->store[1], st->vocab, st->k)) return hn_fail_memory(err, "a matrix of tokens", (size_t)st->vocab);
    hunch_status s = load ? hn_recycle_read(&st->store[1], load, st->vocab, err) : HUNCH_OK;
    if (!s && save && !(st->save = hn_strdup(save))) s = hn_fail_memory(err, save, 0);
    if (!s && save) s = hn_out_open(&o, save, true, err);
    hn_out_abort(&o);
    if (s) hn_error_prefix(err, "drafter '%s'", spec->text);
    return s;
}

static hunch_status recycle_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs, hunch_error *err) {
    recycle_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "drafter 'recycle'", sizeof *st);
    d->state = st;
    st->n_seqs = d->max_seqs;
    st->vocab = target->vocab;
    hunch_status s = options_read(st, spec, err);
    if (!s && !(st->seq = hn_zalloc((size_t)st->n_seqs, sizeof *st->seq)))
        s = hn_fail_memory(err, "drafter 'recycle'", (size_t)st->n_seqs * sizeof *st->seq);
    if (!s) s = files_open(st, spec, err);
    if (s) {
        recycle_close(d);
        return s;
    }
    needs->best = st->k;
    needs->max_depth = st->shape.depth;
    needs->branches = needs->is_tree = true;
    return HUNCH_OK;
}

/* ---- a round -------------------------------------------------------------------------------------------------------------- */

static int recycle_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    const recycle_state *st = d->state;
    int added = 0;
    for (int i = 0; i < n; i++) {
        recycle_seq *q = &st->seq[p[i].seq];
        hn_recycle_shape shape = st->shape;
        if (p[i].chain) shape.paper = false, shape.width = 1;
        if (level == 0) hn_draft_nodes_start(&q->nodes, &p[i]);
        if (level == 0 && q->store)
            hn_recycle_tree(&st->store[q->store], &st->rates, &shape, p[i].text.token[p[i].text.n - 1], &q->nodes);
        added += hn_draft_nodes_propose(&q->nodes, &p[i], d->index, level);
    }
    return added;
}

/* Which rank the emitted tokens had after the tokens before them. */
static void ranks_learn(recycle_state *st, const hn_recycle *x, const hn_observe *o) {
    for (int i = 0; i <= o->n_accepted; i++) {
        const int32_t from = o->tree->token[i == 0 ? 0 : o->path[i - 1]];
        const int32_t to = i < o->n_accepted ? o->tree->token[o->path[i]] : o->next_token, *row = hn_recycle_row(x, from);
        int rank = 0;
        if (!row) continue;
        while (rank < st->k && row[rank] != to) rank++;
        hn_recycle_learn(&st->rates, i + 1, rank < st->k ? rank : -1);
    }
}

static void recycle_observe(hn_drafter *d, const hn_observe *o, int n) {
    recycle_state *st = d->state;
    for (; n > 0; n--, o++) {
        recycle_seq *q = &st->seq[o->seq];
        hn_recycle *x = &st->store[q->store];
        if (!q->store || !o->best) continue;
        if (q->nodes.text_n > 0) ranks_learn(st, x, o);
        q->nodes.text_n = 0;
        for (int i = 0; i < o->tree->n_rows; i++) hn_recycle_set(x, o->tree->token[i], o->best + i * o->n_best, o->n_best);
    }
}

/* ---- life ----------------------------------------------------------------------------------------------------------------- */

/* The store of a text's salt, made or emptied for it if need be. Without memory there is none. */
static int store_enter(recycle_state *st, uint64_t salt) {
    bool fresh;
    int at = hn_salt_stores_enter(&st->tenants, salt, &fresh);
    hn_recycle *x = &st->store[at];
    if (fresh && x->cell) hn_recycle_clear(x);
    const int rows = (st->vocab + HN_SALT_SHARE - 1) / HN_SALT_SHARE;
    if (at && !x->cell && !hn_recycle_open(x, rows, st->k)) hn_salt_stores_leave(&st->tenants, &at);
    return at;
}

static void recycle_end(hn_drafter *d, int seq) {
    recycle_state *st = d->state;
    hn_salt_stores_leave(&st->tenants, &st->seq[seq].store);
    st->seq[seq].nodes.text_n = 0;
}

static hunch_status recycle_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err HN_UNUSED) {
    recycle_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        recycle_end(d, seqs[i].seq);
        st->seq[seqs[i].seq].store = store_enter(st, seqs[i].salt);
        st->began = true;
    }
    return HUNCH_OK;
}

static void recycle_forget(hn_drafter *d) {
    recycle_state *st = d->state;
    for (int i = 0; i < HN_SALT_STORES; i++)
        if (st->store[i].cell) hn_recycle_clear(&st->store[i]);
}

/* The matrices do not grow with a text. */
static size_t recycle_text_bytes(const hn_drafter *d HN_UNUSED, int tokens HN_UNUSED) {
    return sizeof(recycle_seq);
}

static const hn_drafter_ops ops = {
    .open = recycle_open,   .begin = recycle_begin,           .observe = recycle_observe, .propose = recycle_propose,
    .text_bytes = recycle_text_bytes, .end = recycle_end, .forget = recycle_forget,   .close = recycle_close,
};

static const hn_drafter_help help = {
    NULL, "the likeliest tokens after each token, as the model's own rows said, in a tree",
    {{"k", "1..16", "tokens kept after each token, default 8"},
     {"tree", "best|paper", "the likeliest nodes by measured rates, or the published tree; default best"},
     {"nodes", "1..63", "of a tree at most, default 6, of the published one 63"},
     {"depth", "1..63", "levels at most, default 8"},
     {"load", "FILE", "what to begin with, as it was saved"},
     {"save", "FILE", "where it goes at the end"}}};
const hn_drafter_kind hn_drafter_recycle = {
    .name = "recycle", .help = &help, .reads = {"load"}, .writes = "save", .check_written = hn_recycle_file_check, .ops = &ops};
