/* SPDX-License-Identifier: Apache-2.0 */
/* heads.h - for tests of draft heads: the tiny heads of tests/data/goldens-heads, and a listener in the place of an
 * engine's drafter. It checks the engine's contract with every head (each committed row is fed once, in order, with its next token;
 * no others), records each round's drafts, and can inject mistakes into the rows. Include after cmocka. */
#ifndef HN_TEST_HEADS_H
#define HN_TEST_HEADS_H
#include "base/fault.h"
#include "base/mem.h"
#include "draft/head/head_passes.h"
#include "engine/session.h"
#include "fixture.h"

#define HEADS_LLAMA "goldens-heads/targets/llama-a"
#define HEADS_QWEN "goldens-heads/targets/qwen3-a"
#define HEADS_META "goldens-heads/targets/meta-b"
enum { HEADS_CONTEXT = 512, HEADS_VOCAB = 512 };

/* "eagle:@eagle1-bias-bin,tree=#fork.json": @NAME is that head's folder, #NAME a file of tests/data/trees, %NAME one of
 * tests/data/token-lists. Several specs are joined by '+'. */
HELPER const char *heads_spec(const char *form) {
    static char text[8][1000];
    static int next;
    char *out = text[next++ & 7];
    size_t n = 0;
    for (const char *c = form; *c && n < 800; c++) {
        if (!strchr("@#%", *c)) {
            out[n++] = *c;
            continue;
        }
        const size_t len = strcspn(c + 1, ",+");
        const char *where = *c == '@' ? "%s/goldens-heads/%.*s/head" : *c == '#' ? "%s/trees/%.*s" : "%s/token-lists/%.*s";
        n += (size_t)snprintf(out + n, 1000 - n, where, HUNCH_TEST_DATA, (int)len, c + 1);
        c += len;
    }
    out[n] = 0;
    return out;
}

static int heads_tokens = 480; /* number of different tokens in prompts */

/* A text that sometimes repeats itself: `n` tokens, the first `shared` of them the same for every salt. */
HELPER void heads_prompt(hunch_token *t, size_t n, size_t shared, uint64_t salt) {
    uint64_t x = 99, y = salt * 7919 + 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t *from = i < shared ? &x : &y;
        *from = *from * 6364136223846793005u + 1442695040888963407u;
        t[i] = i == 0 ? 1 : i > 9 && (*from >> 60) < 8 ? t[i - 9] : (hunch_token)((*from >> 33) % (uint64_t)heads_tokens);
    }
}

/* ---- drafts of a round ---------------------------------------------------------------------------------------------- */

typedef struct heads_round {
    hunch_token *text; /* [n] the text before it; the last is the root */
    int n, n_prompt;
    uint64_t seed;
    int depth;         /* levels allowed */
    int n_drafted;     /* candidates */
    uint64_t digest;   /* of the candidates, their q and the logits of a chain */
    int32_t first;     /* the first candidate, -1: none */
    int accepted;      /* of its drafts; -1: unknown */
    bool starved;      /* the cache may have had too few pages for some of its levels */
} heads_round;

typedef enum heads_mistake {
    HEADS_RIGHT,
    HEADS_WRONG_SLOT,     /* two adjacent rows are swapped */
    HEADS_STALE_FEATURE,  /* the feature of the row before */
    HEADS_REJECTED_ROW,   /* the newest row has the feature of a draft that was not accepted */
    HEADS_WRONG_NEXT,     /* a row's own token instead of the next one */
    HEADS_TAPS_SWAPPED,   /* the first state and the last are swapped */
    HEADS_ONE_TOO_MANY,   /* a rejected draft is fed as if it had been accepted */
    HEADS_ONE_MISSING,    /* the newest row is not fed */
    HEADS_TWICE           /* every row is fed again: allowed, it must change nothing */
} heads_mistake;

/* Rows of a prefix that a head recomputes: one, or as many as it has in a block, or blocks. */
HELPER int heads_rows_again(const char *spec) {
    return strstr(spec, "falcon-k3") || !strncmp(spec, "mtp,", 4) ? 3 : strstr(spec, "falcon-k2") ? 2 : 1;
}

typedef struct heads_listener {
    hn_drafter *drafter;
    const hn_drafter_ops *inner;
    hn_drafter_ops ops;
    const hn_cache *cache;
    heads_mistake mistake;
    int mute;          /* the drafter is not called before a text has this many tokens */
    heads_round *round;
    int n, cap, open[HN_MAX_ROWS + 1]; /* the round that a sequence is in, -1: none */
    uint64_t logits[HN_MAX_ROWS + 1];  /* digests of its chain's logits */
    int tree_rows[HN_MAX_ROWS + 1];    /* of its last tree */
    int fed[HN_MAX_ROWS + 1];          /* positions so far, including restored ones */
    int32_t token[HN_MAX_ROWS + 1][HEADS_CONTEXT], next[HN_MAX_ROWS + 1][HEADS_CONTEXT];
    int n_fed; /* rows in all */
} heads_listener;

static heads_listener *heads_listening[4];
static int heads_vocab; /* of the current target */

HELPER heads_listener *heads_of(const hn_drafter *d) {
    for (int i = 0; i < 4; i++)
        if (heads_listening[i] && heads_listening[i]->drafter == d) return heads_listening[i];
    fail_msg("this drafter has no listener");
    return NULL;
}

HELPER void heads_mix(uint64_t *h, const void *data, size_t size) {
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) *h = (*h ^ p[i]) * 0x100000001B3u;
}

HELPER void heads_take_logits(void *ctx, int level, const float *logits) {
    uint64_t *h = ctx;
    heads_mix(h, &level, sizeof level);
    heads_mix(h, logits, (size_t)heads_vocab * sizeof *logits);
}

/* Records the text at a round's start and checks the rows that were fed of it. */
HELPER void heads_round_open(heads_listener *l, const hn_propose *p) {
    if (l->fed[p->seq] != p->text.n - 1)
        fail_msg("a text of %d tokens is drafted for, and %d rows of it were fed", p->text.n, l->fed[p->seq]);
    for (int i = 0; i < p->text.n - 1; i++)
        if (l->token[p->seq][i] >= 0 && (l->token[p->seq][i] != p->text.token[i] || l->next[p->seq][i] != p->text.token[i + 1]))
            fail_msg("row %d was fed as %d %d, the text has %d %d", i, l->token[p->seq][i], l->next[p->seq][i], p->text.token[i],
                     p->text.token[i + 1]);
    l->logits[p->seq] = 0xCBF29CE484222325u;
    l->tree_rows[p->seq] = 1;
    if (l->n == l->cap) l->round = realloc(l->round, (size_t)(l->cap = 2 * l->cap + 64) * sizeof *l->round);
    heads_round *r = &l->round[l->open[p->seq] = l->n++];
    *r = (heads_round){.n = p->text.n, .n_prompt = p->text.n_prompt, .seed = p->sampler->params.seed, .depth = p->depth,
                       .first = -1, .accepted = -1, .text = malloc((size_t)p->text.n * sizeof *r->text)};
    memcpy(r->text, p->text.token, (size_t)p->text.n * sizeof *r->text);
}

/* Records the drafter's candidates of a tree, with their estimates and q; n: texts in the call. */
HELPER void heads_round_read(heads_listener *l, const hn_propose *p, int n_texts) {
    uint64_t h = l->logits[p->seq];
    int n = 0;
    l->tree_rows[p->seq] = p->tree->n_rows;
    heads_round *r = &l->round[l->open[p->seq]];
    for (int i = 0; i < p->tree->n_candidates; i++) {
        const hn_candidate *c = &p->tree->candidate[i];
        if (c->drafter != l->drafter->index) continue;
        if (n++ == 0) r->first = c->token;
        const int32_t up[] = {c->token, c->row ? p->tree->token[c->row] : -1, p->tree->depth[c->row], c->without};
        heads_mix(&h, up, sizeof up);
        heads_mix(&h, &c->estimate, sizeof c->estimate);
        if (!c->q) continue;
        heads_mix(&h, c->q->weight, (size_t)c->q->n * sizeof *c->q->weight);
        if (c->q->id) heads_mix(&h, c->q->id, (size_t)c->q->n * sizeof *c->q->id);
    }
    r->n_drafted = n;
    r->digest = h;
    /* a pass takes at most one more page of a text, and a copy of one */
    r->starved |= l->cache && hn_cache_free_pages(l->cache) < 2 * n_texts;
}

HELPER int heads_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    heads_listener *l = heads_of(d);
    hn_propose own[HN_MAX_ROWS];
    int called = 0;
    for (int i = 0; i < n; i++) {
        if (p[i].text.n < l->mute) continue;
        /* the whole text was restored: a head without rows in the cache drafts after the next computed row */
        if (l->drafter->needs.n_groups == 0 && l->fed[p[i].seq] == 0) continue;
        if (level == 0) heads_round_open(l, &p[i]);
        own[called] = p[i];
        own[called].on_logits = heads_take_logits;
        own[called++].on_logits_ctx = &l->logits[p[i].seq];
    }
    const int added = called ? l->inner->propose(d, own, called, level) : 0;
    for (int i = 0; i < called; i++) heads_round_read(l, &own[i], called);
    return added;
}

/* ---- rows, with and without mistakes ---------------------------------------------------------------------------------- */

HELPER void heads_note_rows(heads_listener *l, const hn_feed_row *rows, int n) {
    for (int i = 0; i < n; i++) {
        if (l->drafter->needs.n_groups == 0 && l->fed[rows[i].seq] == 0) { /* without rows in the cache: only rows after a prefix */
            l->fed[rows[i].seq] = rows[i].position;
            memset(l->token[rows[i].seq], 255, (size_t)rows[i].position * sizeof(int32_t));
        }
        const int at = l->fed[rows[i].seq]++;
        if (rows[i].position != at) fail_msg("row %d was fed, expected row %d", rows[i].position, at);
        l->token[rows[i].seq][at] = rows[i].token;
        l->next[rows[i].seq][at] = rows[i].next_token;
        l->n_fed++;
    }
}

static inline bool heads_last_of_seq(const hn_feed_row *rows, int i, int n) {
    return i + 1 == n || rows[i + 1].seq != rows[i].seq;
}

/* Is there a draft after the row that was not accepted? Then in a chain the next row of the pass is that draft. */
static inline bool heads_has_rejected(const heads_listener *l, const hn_feed_row *row) {
    return row->node >= 0 && row->node + 1 < l->tree_rows[row->seq];
}

HELPER int heads_make_mistake(const heads_listener *l, hn_feed_row *rows, int n) {
    for (int i = n - 1; i >= 0; i--) {
        hn_feed_row *r = &rows[i];
        const bool first = i == 0 || rows[i - 1].seq != r->seq, last = heads_last_of_seq(rows, i, n);
        if (l->mistake == HEADS_STALE_FEATURE && !first) r->feature_row = rows[i - 1].feature_row;
        if (l->mistake == HEADS_WRONG_NEXT) r->next_token = r->token;
        if (l->mistake == HEADS_REJECTED_ROW && last && heads_has_rejected(l, r)) r->feature_row++;
        if (l->mistake == HEADS_WRONG_SLOT && !first && i % 2) {
            const hn_feed_row before = rows[i - 1];
            rows[i - 1].next_token = r->next_token, rows[i - 1].feature_row = r->feature_row;
            r->next_token = before.next_token, r->feature_row = before.feature_row;
        }
        if (l->mistake == HEADS_ONE_MISSING && last && r->node >= 0) memmove(r, r + 1, (size_t)(--n - i) * sizeof *r);
        if (l->mistake == HEADS_ONE_TOO_MANY && last && heads_has_rejected(l, r) && n < HN_MAX_ROWS) {
            memmove(r + 1, r, (size_t)(n++ - i) * sizeof *r);
            r[1].position++, r[1].feature_row++, r[1].node++;
        }
    }
    return n;
}

HELPER void heads_feed(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *f) {
    heads_listener *l = heads_of(d);
    hn_feed_row wrong[HN_MAX_ROWS];
    hn_buf swapped[HN_MOST_HEAD_FEATURES];
    hn_features g = *f;
    heads_note_rows(l, rows, n);
    memcpy(wrong, rows, (size_t)n * sizeof *rows);
    n = heads_make_mistake(l, wrong, n);
    if (l->mistake == HEADS_TAPS_SWAPPED) {
        memcpy(swapped, f->buffer, (size_t)f->n * sizeof *swapped);
        swapped[0] = f->buffer[f->n - 1];
        swapped[f->n - 1] = f->buffer[0];
        g.buffer = swapped;
    }
    if (n > 0) l->inner->feed(d, wrong, n, &g);
    if (n > 0 && l->mistake == HEADS_TWICE) l->inner->feed(d, wrong, n, &g);
}

HELPER hunch_status heads_begin(hn_drafter *d, const hn_begin *b, int n, hunch_error *err) {
    heads_listener *l = heads_of(d);
    for (int i = 0; i < n; i++) {
        const int restored = b[i].rows_restored ? b[i].rows_restored - d->needs.group[0].recompute : 0;
        l->open[b[i].seq] = -1;
        l->fed[b[i].seq] = restored; /* those before it are fed again: their features are missing */
        memset(l->token[b[i].seq], 255, (size_t)restored * sizeof(int32_t));
    }
    return l->inner->begin(d, b, n, err);
}

HELPER void heads_observe(hn_drafter *d, const hn_observe *o, int n) {
    heads_listener *l = heads_of(d);
    for (; n > 0; n--, o++) {
        if (l->open[o->seq] >= 0) l->round[l->open[o->seq]].accepted = o->n_accepted;
        l->open[o->seq] = -1; /* a round without room for a draft has no propose call, but is observed */
    }
}

/* Takes the place of an engine's drafter number `index`. */
HELPER heads_listener *heads_listen(hunch_engine *e, int index, heads_mistake mistake) {
    heads_listener *l = calloc(1, sizeof *l);
    int i = 0;
    while (heads_listening[i]) i++;
    assert_true(i < 4);
    heads_listening[i] = l;
    l->drafter = &e->drafter[index];
    l->inner = l->drafter->ops;
    l->ops = *l->inner;
    l->mistake = mistake;
    l->cache = e->cache;
    l->ops.begin = heads_begin;
    l->ops.feed = heads_feed;
    l->ops.propose = heads_propose;
    l->ops.observe = heads_observe;
    l->drafter->ops = &l->ops;
    memset(l->open, 255, sizeof l->open);
    heads_vocab = e->model->target.arch.vocab;
    return l;
}

HELPER void heads_listen_end(heads_listener *l) {
    for (int i = 0; i < 4; i++)
        if (heads_listening[i] == l) heads_listening[i] = NULL;
    l->drafter->ops = l->inner;
    for (int i = 0; i < l->n; i++) free(l->round[i].text);
    free(l->round);
    free(l);
}

/* ---- comparison with a fresh engine ----------------------------------------------------------------------------------- */

/* The drafts of an engine without any history after the round's text, all of it read at once. */
HELPER heads_round heads_draft_afresh(hunch_engine *e, heads_listener *l, const heads_round *r, const hunch_sampling *params) {
    hunch_session *s = NULL;
    hunch_request q;
    hunch_request_defaults(&q, e->model);
    q.prompt = r->text;
    q.n_prompt = (size_t)r->n_prompt;
    q.max_tokens = r->depth + r->n - r->n_prompt + 1;
    q.ignore_eos = true;
    q.sampling = *params;
    q.sampling.seed = r->seed;
    const int before = l->n;
    must(hunch_session_open(&s, e, &q, err));
    hn_session_release(s); /* as a preempted text: its tokens are there, none of its rows */
    assert_true(hn_grow((void **)&s->text.token, &s->text.cap, (size_t)r->n, sizeof *s->text.token));
    memcpy(s->text.token, r->text, (size_t)r->n * sizeof *s->text.token);
    s->text.n = (size_t)r->n;
    hn_queue_push(s, true);
    while (l->n == before && hunch_engine_running(e)) must(hunch_engine_round(e, err));
    hunch_session_close(&s);
    assert_true(l->n > before);
    return l->round[before];
}

/* Number of a listener's rounds in which a fresh engine's drafts differ; *first: the first of them (may be NULL). every: compares only
 * every so many rounds. The engine reuses nothing and has one sequence. */
HELPER int heads_differing(const heads_listener *l, hunch_model *m, const char *spec, const hunch_sampling *params,
                               hunch_verify verify, int every, const heads_round **first) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = HEADS_CONTEXT;
    o.no_prefix_reuse = true;
    o.verify = verify;
    hunch_engine *e = open_engine_with(m, spec, o);
    heads_listener *fresh = heads_listen(e, l->drafter->index, HEADS_RIGHT);
    int differing = 0;
    for (int i = 0; i < l->n; i += every) {
        if (l->round[i].depth == 0) continue;
        const heads_round r = heads_draft_afresh(e, fresh, &l->round[i], params);
        if (r.n_drafted == l->round[i].n_drafted && r.digest == l->round[i].digest) continue;
        if (first && differing == 0) *first = &l->round[i];
        differing++;
    }
    heads_listen_end(fresh);
    hunch_engine_close(&e);
    return differing;
}

HELPER void heads_same_as_fresh(const heads_listener *l, hunch_model *m, const char *spec, const hunch_sampling *params,
                                 hunch_verify verify, int every, const char *what) {
    const heads_round *r = NULL;
    const int differing = heads_differing(l, m, spec, params, verify, every, &r);
    if (differing)
        fail_msg("%s, %s: in %d rounds %d differ from a fresh engine's drafts, the first after %d tokens (%d drafts, the first %d)",
                 what, spec, l->n, differing, r->n, r->n_drafted, r->first);
}
#endif
