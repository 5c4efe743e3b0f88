/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_grammar.c - the tokens that a constrained text's grammar leaves no choice about.
 *
 *   grammar[,depth=K]
 *
 *   depth   tokens of a draft   16
 *
 * Where one token is allowed it is drafted, and cannot be wrong. Where one string follows, but may be written with several splits into
 * tokens, the tokenizer's own split of it is drafted, with the rates at which such drafts were right so far; its last token is less
 * sure than the others, since it may be longer in the text. A draft is one chain, one-hot. It reads the state of the tree's root and
 * computes nothing that verifying a constrained text would not compute, so it costs next to nothing; texts without a grammar have no
 * drafts. Under a rule that takes no drafter beside another it gives way.
 */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "draft/draft_chain.h"

/* Why a token of the chain was drafted. */
enum { ONLY_TOKEN, IN_SPLIT, END_OF_SPLIT, KINDS };
enum { MOST_BYTES = 256 };
static const float CERTAIN = 0.9999f;

typedef struct grammar_seq {
    hn_draft_chain chain;
    unsigned char kind[HN_CHAIN_MAX];
    bool unseen; /* the chain's verification was not observed yet */
} grammar_seq;

typedef struct grammar_state {
    int depth, n_seqs, vocab;
    const hn_tokenizer *tokenizer; /* NULL: none, so no texts with a grammar either */
    uint64_t *mask;                /* [(vocab + 63) / 64] */
    double right[KINDS], tried[KINDS]; /* of all texts */
    grammar_seq *seq;              /* [n_seqs] */
} grammar_state;

/* ---- open -------------------------------------------------------------------------------------------------------- */

static void grammar_close(hn_drafter *d) {
    grammar_state *st = d->state;
    hn_free(st->mask);
    hn_free(st->seq);
    hn_free(st);
    d->state = NULL;
}

static hunch_status grammar_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs, hunch_error *err) {
    long depth;
    hunch_status s = hn_spec_no_path(spec, err);
    if (!s) s = hn_spec_int(spec, "depth", 1, HN_CHAIN_MAX, 16, &depth, err);
    if (s) return s;
    grammar_state *st = d->state = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "drafter 'grammar'", sizeof *st);
    *st = (grammar_state){.depth = (int)depth, .n_seqs = d->max_seqs, .vocab = target->vocab, .tokenizer = target->tokenizer,
                          .right = {0, 9, 1}, .tried = {0, 10, 2}};
    st->mask = hn_zalloc(((size_t)st->vocab + 63) / 64, sizeof *st->mask);
    st->seq = hn_zalloc((size_t)st->n_seqs, sizeof *st->seq);
    needs->max_depth = st->depth;
    needs->for_grammar = true;
    if (st->mask && st->seq) return HUNCH_OK;
    grammar_close(d);
    return hn_fail_memory(err, "drafter 'grammar'", (size_t)d->max_seqs * sizeof *st->seq);
}

/* ---- a chain ------------------------------------------------------------------------------------------------------ */

typedef struct growing {
    grammar_state *st;
    grammar_seq *q;
    hn_matcher *grammar;
    int32_t state; /* after the chain */
    int most;
} growing;

static float estimate_of(const grammar_state *st, int kind) {
    return kind == ONLY_TOKEN ? CERTAIN : (float)(st->right[kind] / st->tried[kind]);
}

/* False: the chain is full, or the token is not allowed. */
static bool push(growing *g, int32_t token, int kind) {
    hn_draft_chain *c = &g->q->chain;
    const int32_t next = c->len < g->most ? hn_matcher_next(g->grammar, g->state, token) : HN_MATCH_NO;
    if (next < 0 || !hn_draft_chain_push(c, token, estimate_of(g->st, kind))) return false;
    g->q->kind[c->len - 1] = (unsigned char)kind;
    g->state = next;
    return true;
}

/* The token if it is the only one that is allowed, else -1. */
static int32_t only_token(const growing *g) {
    const grammar_state *st = g->st;
    if (hn_matcher_mask(g->grammar, g->state, st->mask) != 1) return -1;
    for (int w = 0; w < (st->vocab + 63) / 64; w++)
        if (st->mask[w]) return w * 64 + __builtin_ctzll(st->mask[w]);
    return -1;
}

/* Where among n tokens those of the last len bytes begin; n: no token begins there. */
static size_t tokens_of_end(const hn_tokenizer *t, const int32_t *id, size_t n, size_t len) {
    size_t i = n, bytes = 0, piece;
    while (i > 0 && bytes < len) {
        (void)hn_tokenizer_piece(t, id[--i], &piece);
        bytes += piece;
    }
    return bytes == len ? i : n;
}

/* The tokens of a text that continues another one: after a line break, since some tokenizers put a space before a text. NULL: none. */
static int32_t *split_of(const grammar_state *st, const char *bytes, size_t len, size_t *first, size_t *n) {
    char text[MOST_BYTES + 1] = "\n";
    hunch_error ignored;
    int32_t *id = NULL;
    memcpy(text + 1, bytes, len);
    if (hn_tokenizer_encode(st->tokenizer, text, len + 1, 0, &id, n, &ignored) != HUNCH_OK) return NULL;
    *first = tokens_of_end(st->tokenizer, id, *n, len);
    return id;
}

/* The tokens of the bytes that must follow. False: the chain ends here. */
static bool push_split(growing *g) {
    char bytes[MOST_BYTES];
    size_t first = 0, n = 0, len = hn_matcher_forced(g->grammar, g->state, bytes, sizeof bytes);
    len = hn_utf8_check(bytes, len); /* an unfinished character is left to the model */
    int32_t *id = len > 0 ? split_of(g->st, bytes, len, &first, &n) : NULL;
    size_t i = first;
    while (i < n && push(g, id[i], i + 1 < n ? IN_SPLIT : END_OF_SPLIT)) i++;
    hn_free(id);
    return i == n && first < n;
}

static void grow(growing *g) {
    for (bool on = g->state >= 0; on && g->q->chain.len < g->most;) {
        const int32_t only = only_token(g);
        on = only >= 0 ? push(g, only, ONLY_TOKEN) : push_split(g);
    }
}

static int grammar_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    grammar_state *st = d->state;
    int added = 0;
    for (int i = 0; i < n; i++) {
        grammar_seq *q = &st->seq[p[i].seq];
        const hn_tree *t = p[i].tree;
        if (level == 0) {
            hn_draft_chain_start(&q->chain, p[i].text.n);
            growing g = {st, q, t->grammar, t->state[0], p[i].depth < st->depth ? p[i].depth : st->depth};
            if (t->grammar && st->tokenizer) grow(&g);
            q->unseen = q->chain.len > 0;
        }
        added += hn_draft_chain_propose(&q->chain, &p[i], d->index, level);
    }
    return added;
}

/* ---- what was right ------------------------------------------------------------------------------------------------ */

static void grammar_observe(hn_drafter *d, const hn_observe *o, int n) {
    grammar_state *st = d->state;
    for (int i = 0; i < n; i++) {
        grammar_seq *q = &st->seq[o[i].seq];
        int verified;
        if (!q->unseen) continue;
        q->unseen = false;
        const int agreed = hn_draft_chain_agreed(&q->chain, &o[i], &verified);
        for (int k = 0; k < verified && k <= agreed; k++) {
            st->tried[q->kind[k]]++;
            st->right[q->kind[k]] += k < agreed;
        }
    }
}

static void grammar_end(hn_drafter *d, int seq) {
    grammar_state *st = d->state;
    st->seq[seq] = (grammar_seq){0};
}

static size_t grammar_text_bytes(const hn_drafter *d HN_UNUSED, int tokens HN_UNUSED) {
    return sizeof(grammar_seq);
}

static const hn_drafter_ops ops = {
    .open = grammar_open, .propose = grammar_propose, .observe = grammar_observe, .text_bytes = grammar_text_bytes,
    .end = grammar_end,   .close = grammar_close,
};

static const hn_drafter_help help = {
    NULL, "what the grammar of a constrained text (--json-schema, ..) leaves no choice about",
    {{"depth", "1..63", "tokens drafted at most, default 16"}}};
const hn_drafter_kind hn_drafter_grammar = {.name = "grammar", .help = &help, .ops = &ops};
