/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_suffix.c - suffix decoding: drafts what followed the text's last tokens where they occurred before, in this text
 * or in texts of sequences that ended, by the number of occurrences.
 *
 *   suffix[,mode=M][,depth=K][,window=D][,factor=F][,offset=O][,min_p=P][,max_texts=N][,mib=S][,text=N]
 *
 *   mode       path: a chain of the most frequent tokens; tree: the most probable tokens, branching            path
 *   depth      most tokens of a draft, 1..63                                                                   16
 *   window     longest string that is counted, match and draft together, 2..64                                 64
 *   factor     a match of m tokens drafts floor(F m + O) tokens, F 0..64                                       1
 *   offset     O, -64..64                                                                                      0
 *   min_p      least probability of a token's path, given the match; 0..1                                      0.3
 *   max_texts  earlier texts that are kept; 0: this text alone                                                 10000
 *   mib        limit of their memory; whole texts are dropped, the oldest first. Texts of one salt share their 64
 *              own store of a quarter of that (salt_stores.h)
 *   text       tokens of one text that are used, the newest; 256..16777216, at most 80 bytes each              131072
 *
 * All matches of all lengths are tried (suffix_draft.h); the draft with the highest score wins; of this text's and the
 * earlier texts' drafts the former, unless the latter scores higher. An occurrence that ends the text counts too: after a match
 * with one earlier occurrence the first token has probability 1/2. Estimates are count(child) / count(parent).
 *
 * Both limits hold at rest; a tree that grows exists twice for a moment.
 *
 * State: a tree for each sequence, extended to the committed text at a round's first level and between rounds, SLICE tokens at a time: a
 * long prompt is counted while it is read, and until it is there are no drafts from its own text; a store of earlier texts for each salt,
 * to which a sequence's text is added when it ends. Without memory there is no draft, or a text is not stored.
 */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "draft/draft_nodes.h"
#include "draft/text/suffix_draft.h"
#include "draft/text/suffix_store.h"
#include "draft/text/salt_stores.h"

enum { SLICE = 1024 }; /* tokens: about half a millisecond */

typedef struct suffix_seq {
    hn_suffix_tree tree; /* a text position is a position there */
    hn_draft_nodes draft;
    int store; /* of earlier texts; 0: none */
} suffix_seq;

typedef struct suffix_state {
    hn_suffix_rules rules;
    int window, text, max_texts;
    size_t bytes;
    hn_salt_stores tenants;
    hn_suffix_store earlier[HN_SALT_STORES]; /* zeroed until a text needs it */
    int n_seqs;
    suffix_seq *seq; /* [n_seqs] */
} suffix_state;

/* ---- options ----------------------------------------------------------------------------------------------------- */

static hunch_status options_read(suffix_state *st, hn_spec *spec, hunch_error *err) {
    static const char *const modes[] = {"path", "tree", NULL};
    long depth = 0, window = 0, max_texts = 0, mib = 0, text = 0;
    int mode = 0;
    hunch_status s = hn_spec_no_path(spec, err);
    if (!s) s = hn_spec_choice(spec, "mode", modes, 0, &mode, err);
    if (!s) s = hn_spec_int(spec, "depth", 1, HN_SUFFIX_DEPTH, 16, &depth, err);
    if (!s) s = hn_spec_int(spec, "window", 2, HN_SUFFIX_WINDOW, HN_SUFFIX_WINDOW, &window, err);
    if (!s) s = hn_spec_double(spec, "factor", 0, 64, 1, &st->rules.factor, err);
    if (!s) s = hn_spec_double(spec, "offset", -64, 64, 0, &st->rules.offset, err);
    if (!s) s = hn_spec_double(spec, "min_p", 0, 1, 0.3, &st->rules.min_p, err);
    if (!s) s = hn_spec_int(spec, "max_texts", 0, 1000000, 10000, &max_texts, err);
    if (!s) s = hn_spec_int(spec, "mib", 1, 65536, 64, &mib, err);
    if (!s) s = hn_spec_int(spec, "text", 256, 1 << 24, 1 << 17, &text, err);
    if (s) return s;
    st->rules.tree = mode == 1;
    st->rules.depth = (int)depth;
    st->window = (int)window;
    st->max_texts = (int)max_texts;
    st->bytes = (size_t)mib << 20;
    st->text = (int)text;
    return HUNCH_OK;
}

static void suffix_close(hn_drafter *d) {
    suffix_state *st = d->state;
    for (int i = 0; i < st->n_seqs && st->seq; i++) hn_suffix_fini(&st->seq[i].tree);
    for (int i = 0; i < HN_SALT_STORES; i++) hn_suffix_store_fini(&st->earlier[i]);
    hn_free(st->seq);
    hn_free(st);
}

static hunch_status suffix_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target HN_UNUSED, hn_needs *needs,
                                hunch_error *err) {
    suffix_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "drafter 'suffix'", sizeof *st);
    d->state = st;
    st->n_seqs = d->max_seqs;
    hunch_status s = options_read(st, spec, err);
    if (!s) {
        st->seq = hn_zalloc((size_t)st->n_seqs, sizeof *st->seq);
        if (!st->seq || !hn_suffix_store_init(&st->earlier[1], st->window, st->bytes, st->max_texts))
            s = hn_fail_memory(err, "drafter 'suffix'", (size_t)st->n_seqs * sizeof *st->seq);
    }
    if (s) {
        suffix_close(d);
        d->state = NULL;
        return s;
    }
    for (int i = 0; i < st->n_seqs; i++) hn_suffix_init(&st->seq[i].tree, st->window, (uint32_t)st->text);
    needs->max_depth = st->rules.depth;
    needs->branches = st->rules.tree;
    return HUNCH_OK;
}

/* ---- the text of a sequence -------------------------------------------------------------------------------------- */

/* Stores the text's tokens from the tree's end on, and drops the oldest if there are too many. */
static bool text_store(const suffix_state *st, hn_suffix_tree *t, const hn_committed_text *text) {
    const uint32_t n = (uint32_t)text->n, most = (uint32_t)st->text;
    if (n - t->head > most) {
        const uint32_t head = n - most;
        if (head + HN_SUFFIX_WINDOW <= t->open) { /* the dropped windows are complete */
            hn_suffix_cut(t, t->open);
            hn_suffix_remove(t, t->head, head, t->open);
            hn_suffix_release(t, head);
        } else {
            hn_suffix_clear(t, head);
        }
    }
    return hn_suffix_put(t, text->token + t->end, n - t->end);
}

/* Extends the tree to the committed text, and counts some of it. Tokens that were stored but not counted may be a prompt that the text
 * begins with, or those that `observe` added for a last round; the text overrides them. */
static bool text_count(const suffix_state *st, suffix_seq *q, const hn_committed_text *text) {
    hn_suffix_tree *t = &q->tree;
    const uint32_t n = (uint32_t)text->n;
    if (n < t->head) hn_suffix_clear(t, 0);
    hn_suffix_cut(t, n < t->open ? n : t->open);
    return text_store(st, t, text) && hn_suffix_count_some(t, SLICE);
}

/* The store of a text's salt, made or emptied for it if need be. Without memory there is none. */
static int store_enter(suffix_state *st, uint64_t salt) {
    bool fresh;
    int at = hn_salt_stores_enter(&st->tenants, salt, &fresh);
    hn_suffix_store *s = &st->earlier[at];
    if (fresh && s->text) hn_suffix_store_clear(s);
    if (!at || s->text || hn_suffix_store_init(s, st->window, hn_salt_stores_bytes(at, st->bytes), st->max_texts)) return at;
    hn_suffix_store_fini(s);
    *s = (hn_suffix_store){0};
    hn_salt_stores_leave(&st->tenants, &at);
    return 0;
}

static hunch_status suffix_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err HN_UNUSED) {
    suffix_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        suffix_seq *q = &st->seq[seqs[i].seq];
        hn_suffix_fini(&q->tree);
        hn_salt_stores_leave(&st->tenants, &q->store);
        q->store = store_enter(st, seqs[i].salt);
        q->draft.text_n = 0;
        text_store(st, &q->tree, &seqs[i].text); /* counted by the next draft, which also stores it if memory fails here */
    }
    return HUNCH_OK;
}

static void suffix_observe(hn_drafter *d, const hn_observe *o, int n) {
    suffix_state *st = d->state;
    for (int i = 0; i < n; i++) {
        suffix_seq *q = &st->seq[o[i].seq];
        bool room = q->draft.text_n > 0; /* a draft was made, so all before it is stored */
        for (int k = 0; room && k < o[i].n_accepted; k++)
            room = hn_suffix_put(&q->tree, &o[i].tree->token[o[i].path[k]], 1);
        if (room) hn_suffix_put(&q->tree, &o[i].next_token, 1);
        q->draft.text_n = 0;
    }
}

static void suffix_end(hn_drafter *d, int seq) {
    suffix_state *st = d->state;
    suffix_seq *q = &st->seq[seq];
    if (q->store) hn_suffix_store_add(&st->earlier[q->store], &q->tree);
    hn_salt_stores_leave(&st->tenants, &q->store);
    hn_suffix_fini(&q->tree);
    q->draft.text_n = 0;
}

static void suffix_forget(hn_drafter *d) {
    suffix_state *st = d->state;
    for (int i = 0; i < HN_SALT_STORES; i++)
        if (st->earlier[i].text) hn_suffix_store_clear(&st->earlier[i]);
}

/* ---- drafting ---------------------------------------------------------------------------------------------------- */

static void round_begin(const suffix_state *st, suffix_seq *q, const hn_propose *p) {
    hn_draft_nodes_start(&q->draft, p);
    q->draft.text_n = 0;
    if (p->text.n == 0 || !text_count(st, q, &p->text)) return;
    /* of a string of D tokens one is drafted, and the whole text does not occur again in itself */
    const int most = (p->text.n < st->window ? p->text.n : st->window) - 1;
    hn_suffix_draft own = {0}, other = {0};
    if (q->tree.open == q->tree.end) hn_suffix_best(&q->tree, &st->rules, NULL, most, &own);
    if (q->store) hn_suffix_best(&st->earlier[q->store].tree, &st->rules, p->text.token + p->text.n, most, &other);
    const hn_suffix_draft *best = other.score > own.score ? &other : &own;
    for (int i = 0; i < best->n; i++) hn_draft_nodes_push(&q->draft, best->parent[i], best->token[i], (float)best->step[i]);
    q->draft.text_n = p->text.n;
}

static int suffix_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    int added = 0;
    const suffix_state *st = d->state;
    for (int i = 0; i < n; i++) {
        suffix_seq *q = &st->seq[p[i].seq];
        if (level == 0) round_begin(st, q, &p[i]);
        added += hn_draft_nodes_propose(&q->draft, &p[i], d->index, level);
    }
    return added;
}

/* The next slice of the texts of which some tokens are stored and not counted, of one after the other. */
static bool suffix_work(hn_drafter *d) {
    suffix_state *st = d->state;
    uint32_t most = SLICE;
    for (int i = 0; i < st->n_seqs; i++) {
        hn_suffix_tree *t = &st->seq[i].tree;
        const uint32_t left = t->end - t->open, now = left < most ? left : most;
        if (left > 0 && !hn_suffix_count_some(t, now)) continue; /* without memory: at the next draft */
        most -= now;
        if (left > now) return true;
    }
    return false;
}

/* Its tree, of the tokens that are used: hn_suffix_capacity. */
static size_t suffix_text_bytes(const hn_drafter *d, int tokens) {
    const suffix_state *st = d->state;
    const size_t n = (size_t)(tokens < st->text ? tokens : st->text);
    return sizeof *st->seq + n * 2 * (sizeof(hn_suffix_node) + sizeof(int32_t));
}

static const hn_drafter_ops ops = {
    .open = suffix_open, .work = suffix_work, .begin = suffix_begin, .observe = suffix_observe, .propose = suffix_propose,
    .text_bytes = suffix_text_bytes, .end = suffix_end, .forget = suffix_forget, .close = suffix_close,
};

static const hn_drafter_help help = {
    NULL, "suffixes of this text and of earlier ones, with their counts",
    {{"mode", "path|tree", "one likeliest path, or branches; default path"},
     {"depth", "1..63", "tokens drafted at most, default 16"},
     {"window", "2..64", "tokens of a suffix at most, default 64"},
     {"factor", "0..64", "depth for each token that matches, default 1"},
     {"offset", "-64..64", "and that much more, default 0"},
     {"min_p", "0..1", "tokens less likely than that are not drafted, default 0.3"},
     {"max_texts", "0..1000000", "earlier texts that are kept, default 10000"},
     {"mib", "1..65536", "memory for them, default 64"},
     {"text", "256..16777216", "tokens of a text that are kept, default 131072"}}};
const hn_drafter_kind hn_drafter_suffix = {.name = "suffix", .help = &help, .ops = &ops};
