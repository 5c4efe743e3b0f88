/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_lookahead.c - lookahead decoding (arXiv 2402.02057): the target's passes also compute guesses of later positions
 * (lookahead_window.h), and what came of these are n-grams that are proposed when their first token is the text's newest one.
 *
 *   lookahead[,window=W][,ngram=N][,guess=G][,prompt=B]
 *
 *   window  columns, W                                                                            5
 *   ngram   tokens of an n-gram, N, 2..16; the window has N - 1 rows                              4
 *   guess   n-grams that are kept of a first token, and proposed, G, 0..63                        5
 *   prompt  1: n-grams of the text too; 0: of the window alone                                    1
 *
 * (W + G)(N - 1) <= 63: the rows of a full tree. N = 2 and G = 0 is Jacobi decoding, a chain that moves by one token a pass.
 *
 * The release (hao-ai-lab/LookaheadDecoding) differs in this: its window is never accepted from, while cells here are rows of the tree as
 * others; it uses no n-grams before its window is full; of a guess that is right to its end it takes all tokens but the last; its first
 * pass is that of the prompt; and its pool ends with the answer, while here texts share one, those of a salt another (salt_stores.h), with
 * a limit of HN_POOL_KEYS first tokens.
 *
 * The rows of the window stay whatever the controller thinks of them: without them there is no next window.
 */
#include <assert.h>

#include "base/mem.h"
#include "draft/text/lookahead_window.h"
#include "draft/text/salt_stores.h"

/* Estimates by what a node is: a cell of row 0, one of a later row, an n-gram's first, second, later token. */
enum { OF_CHAIN, OF_COLUMN, OF_GRAM, KINDS = OF_GRAM + 3 };

typedef struct lookahead_seq {
    int store;  /* 0: none */
    int pooled; /* the text's n-grams that begin before this token are in the pool */
    hn_lookahead window;
    hn_draft_nodes nodes;
    int8_t kind[HN_NODES_MAX]; /* of each node */
} lookahead_seq;

typedef struct lookahead_state {
    int window, n, guess, vocab, n_seqs;
    bool prompt;
    hn_salt_stores tenants;
    hn_ngram_pool pool[HN_SALT_STORES]; /* not open until a text needs it */
    float tried[KINDS], right[KINDS];     /* of all texts */
    lookahead_seq *seq;
} lookahead_state;

/* ---- open ----------------------------------------------------------------------------------------------------------------- */

static void lookahead_close(hn_drafter *d) {
    lookahead_state *st = d->state;
    for (int i = 0; i < HN_SALT_STORES; i++) hn_ngram_pool_close(&st->pool[i]);
    hn_free(st->seq);
    hn_free(st);
    d->state = NULL;
}

/* Most cells of the window: while it fills it may have more than in the end. */
static int most_cells(int columns, int n) {
    int most = 0;
    for (int filled = 0; filled <= n - 2; filled++) {
        const int cells = (filled + 1) * (columns + n - 2 - filled) - 1;
        if (cells > most) most = cells;
    }
    return most;
}

static hunch_status options_read(lookahead_state *st, hn_spec *spec, hunch_error *err) {
    long window = 0, n = 0, guess = 0, prompt = 0;
    hunch_status s = hn_spec_no_path(spec, err);
    if (!s) s = hn_spec_int(spec, "window", 1, HN_NODES_MAX, 5, &window, err);
    if (!s) s = hn_spec_int(spec, "ngram", 2, HN_LOOKAHEAD_N, 4, &n, err);
    if (!s) s = hn_spec_int(spec, "guess", 0, HN_NODES_MAX, 5, &guess, err);
    if (!s) s = hn_spec_int(spec, "prompt", 0, 1, 1, &prompt, err);
    if (s) return s;
    if ((window + guess) * (n - 1) > HN_NODES_MAX)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': (window + guess) (ngram - 1) is %ld, expected at most %d rows", spec->text,
                       (window + guess) * (n - 1), HN_NODES_MAX);
    if (most_cells((int)window, (int)n) > HN_NODES_MAX)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': the window has %d cells while it fills, expected at most %d: a shorter n-gram",
                       spec->text, most_cells((int)window, (int)n), HN_NODES_MAX);
    st->window = (int)window;
    st->n = (int)n;
    st->guess = (int)guess;
    st->prompt = prompt == 1;
    return HUNCH_OK;
}

static hunch_status lookahead_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs, hunch_error *err) {
    lookahead_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "drafter 'lookahead'", sizeof *st);
    d->state = st;
    st->n_seqs = d->max_seqs;
    st->vocab = target->vocab;
    hunch_status s = options_read(st, spec, err);
    if (!s && !(st->seq = hn_zalloc((size_t)st->n_seqs, sizeof *st->seq)))
        s = hn_fail_memory(err, "drafter 'lookahead'", (size_t)st->n_seqs * sizeof *st->seq);
    if (s) {
        lookahead_close(d);
        return s;
    }
    needs->best = 1;
    needs->max_depth = st->window + st->n - 2;
    needs->branches = needs->is_tree = true;
    needs->stays = true;
    return HUNCH_OK;
}

/* ---- estimates ------------------------------------------------------------------------------------------------------------ */

static float estimate_of(const lookahead_state *st, int kind) {
    static const float prior = 0.2f, weight = 4;
    return (st->right[kind] + weight * prior) / (st->tried[kind] + weight);
}

static float of_cell(const void *ctx, int row, int column HN_UNUSED) {
    return estimate_of(ctx, row > 0 ? OF_COLUMN : OF_CHAIN);
}

/* Of every node whose parent was reached it is known now whether it was right. */
static void estimates_learn(lookahead_state *st, const lookahead_seq *q, const hn_observe *o) {
    static const float keep = 1 - 1.0f / 512;
    int16_t row[HN_NODES_MAX];
    bool on_path[HN_TREE_ROWS] = {true};
    for (int i = 0; i < o->n_accepted; i++) on_path[o->path[i]] = true;
    for (int i = 0; i < q->nodes.n; i++) {
        const int parent = q->nodes.parent[i] < 0 ? 0 : row[q->nodes.parent[i]];
        row[i] = (int16_t)(parent < 0 ? -1 : hn_tree_child(o->tree, parent, q->nodes.token[i]));
        if (row[i] < 0 || !on_path[parent]) continue;
        const int kind = q->kind[i];
        st->tried[kind] = st->tried[kind] * keep + 1;
        st->right[kind] = st->right[kind] * keep + (on_path[row[i]] ? 1 : 0);
    }
}

/* ---- a round -------------------------------------------------------------------------------------------------------------- */

/* The n-grams of the pool that begin with the root, the newest first, as many as there is room for, or one. */
static void guesses_push(const lookahead_state *st, lookahead_seq *q, int32_t root, bool one) {
    const hn_ngram_pool *pool = &st->pool[q->store];
    const int n = hn_ngram_pool_of(pool, root);
    for (int g = n - 1; g >= (one ? n - 1 : 0); g--) {
        const int32_t *token = hn_ngram_pool_at(pool, root, g);
        for (int i = 0, node = -1; i < pool->len; i++) {
            const int kind = OF_GRAM + (i < 2 ? i : 2);
            node = hn_draft_nodes_push(&q->nodes, node, token[i], estimate_of(st, kind));
            if (node < 0) return;
            q->kind[node] = (int8_t)kind;
        }
    }
}

static void text_pool(lookahead_state *st, lookahead_seq *q, const hn_committed_text *t) {
    if (!q->store || !st->prompt) return;
    hn_ngram_pool_text(&st->pool[q->store], t->token, q->pooled, t->n);
    q->pooled = t->n - (st->n - 1) > 0 ? t->n - (st->n - 1) : 0;
}

static void round_begin(lookahead_state *st, lookahead_seq *q, const hn_propose *p) {
    text_pool(st, q, &p->text);
    hn_draft_nodes_start(&q->nodes, p);
    if (!p->chain) hn_lookahead_push(&q->window, &q->nodes, of_cell, st);
    for (int i = 0; i < q->nodes.n; i++) q->kind[i] = (int8_t)(i < hn_lookahead_chain(&q->window) ? OF_CHAIN : OF_COLUMN);
    if (q->store) guesses_push(st, q, p->text.token[p->text.n - 1], p->chain);
}

static int lookahead_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    lookahead_state *st = d->state;
    int added = 0;
    for (int i = 0; i < n; i++) {
        lookahead_seq *q = &st->seq[p[i].seq];
        if (level == 0) round_begin(st, q, &p[i]);
        added += hn_draft_nodes_propose(&q->nodes, &p[i], d->index, level);
    }
    return added;
}

static void lookahead_observe(hn_drafter *d, const hn_observe *o, int n) {
    lookahead_state *st = d->state;
    for (; n > 0; n--, o++) {
        lookahead_seq *q = &st->seq[o->seq];
        if (q->nodes.text_n == 0 || !o->best) continue;
        estimates_learn(st, q, o);
        hn_lookahead_move(&q->window, o->tree, o->best, o->n_best, q->store ? &st->pool[q->store] : NULL);
        q->nodes.text_n = 0;
    }
}

/* ---- life ----------------------------------------------------------------------------------------------------------------- */

/* The store of a text's salt, made or emptied for it if need be. Without memory there is none. */
static int store_enter(lookahead_state *st, uint64_t salt) {
    bool fresh;
    int at = hn_salt_stores_enter(&st->tenants, salt, &fresh);
    hn_ngram_pool *pool = &st->pool[at];
    if (fresh && pool->key_of) hn_ngram_pool_clear(pool);
    const int keys = at == 1 ? HN_POOL_KEYS : HN_POOL_KEYS / HN_SALT_SHARE;
    if (at && !pool->key_of && !hn_ngram_pool_open(pool, st->vocab, st->n - 1, st->guess, keys)) hn_salt_stores_leave(&st->tenants, &at);
    return at;
}

static void lookahead_end(hn_drafter *d, int seq) {
    lookahead_state *st = d->state;
    hn_salt_stores_leave(&st->tenants, &st->seq[seq].store);
    st->seq[seq].nodes.text_n = 0;
}

static hunch_status lookahead_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err HN_UNUSED) {
    lookahead_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        lookahead_seq *q = &st->seq[seqs[i].seq];
        lookahead_end(d, seqs[i].seq);
        q->store = store_enter(st, seqs[i].salt);
        q->pooled = 0;
        text_pool(st, q, &seqs[i].text);
        hn_lookahead_begin(&q->window, st->window, st->n, seqs[i].text.token, seqs[i].text.n, seqs[i].seed);
    }
    return HUNCH_OK;
}

static void lookahead_forget(hn_drafter *d) {
    lookahead_state *st = d->state;
    for (int i = 0; i < HN_SALT_STORES; i++)
        if (st->pool[i].key_of) hn_ngram_pool_clear(&st->pool[i]);
}

/* The pools do not grow with a text. */
static size_t lookahead_text_bytes(const hn_drafter *d HN_UNUSED, int tokens HN_UNUSED) {
    return sizeof(lookahead_seq);
}

static const hn_drafter_ops ops = {
    .open = lookahead_open,   .begin = lookahead_begin,           .observe = lookahead_observe, .propose = lookahead_propose,
    .text_bytes = lookahead_text_bytes, .end = lookahead_end, .forget = lookahead_forget,   .close = lookahead_close,
};

static const hn_drafter_help help = {
    NULL, "n-grams that the model's passes make beside the text, in rows that guess later tokens",
    {{"window", "1..63", "positions that are guessed at once, default 5"},
     {"ngram", "2..16", "tokens of an n-gram, one more than the window has rows, default 4"},
     {"guess", "0..63", "n-grams kept of a first token, and proposed, default 5"},
     {"prompt", "0..1", "n-grams of the text too, default 1"}}};
const hn_drafter_kind hn_drafter_lookahead = {.name = "lookahead", .help = &help, .ops = &ops};
