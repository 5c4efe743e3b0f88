/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_cache.c - counts of what followed n-grams of 1 to 4 tokens, at three levels (llama.cpp's lookup decoding):
 *
 *   cache[:FILE][,depth=K][,mib=N][,dynamic=FILE][,save=FILE]
 *
 *   context  this sequence's own text
 *   dynamic  earlier texts of this engine, of the same salt: a text is added when its sequence ends
 *   static   n-grams of two tokens of a large corpus, from FILE (counts_file.h)
 *
 *   depth    tokens of a draft                                                                       8
 *   mib      most memory of the dynamic level, and of each context; when it is exceeded, the half of   64
 *            the n-grams that was counted longest ago is dropped. That of a salt has a quarter of it (salt_stores.h). The
 *            static level takes what its file takes
 *   dynamic  file that the dynamic level of texts without a salt starts with
 *   save     file that this is written to when the engine closes, if there was a text. Closing cannot
 *            report a failure: open checks whether the file can be written. A program asks before that whether it holds
 *            anything but a lookup cache (hn_drafter_check_written)
 *
 * Token by token: the context is searched first, then the dynamic level with stricter thresholds, each for the last 4
 * tokens, then 3, 2, 1; counts of the static level for the last two tokens weight the choice. The static level alone comes
 * last. The tokens drafted so far belong to the key. Of tokens of equal weight the one first seen is taken.
 *
 * Every position is counted once, with the n-grams that reach back over the end of an earlier update. A text that
 * begins with one that ended before (a preempted sequence that resumes, the next turn of a chat) adds only its new part.
 * forget empties the dynamic level; sequences that live at that time are counted as a whole when they end.
 */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/file_out.h"
#include "draft/text/counts_file.h"
#include "draft/draft_chain.h"
#include "draft/text/kept_text.h"
#include "draft/text/salt_stores.h"

enum { STATIC_N = 2, ENDED_TEXTS = 64 };

/* A text that the dynamic level has counted, by its length and hash. */
typedef struct ended_text {
    uint64_t hash;
    int n;
} ended_text;

/* The dynamic level of a salt. */
typedef struct cache_store {
    hn_counts counts;
    ended_text ended[ENDED_TEXTS];
    unsigned n_ended; /* ever; the newest ENDED_TEXTS are kept */
} cache_store;

typedef struct cache_seq {
    bool live;
    int store; /* of the dynamic level; 0: none */
    hn_kept_text text;
    hn_counts context;
    int counted; /* tokens of the text that are in the context */
    int known;   /* tokens of the text that are in the dynamic level */
    hn_draft_chain chain;
} cache_seq;

typedef struct cache_state {
    hn_counts corpus; /* the static level */
    hn_salt_stores tenants;
    cache_store dynamic[HN_SALT_STORES];
    int depth, n_seqs;
    char *save; /* NULL: do not */
    bool began; /* at least one text began: there is something to save */
    cache_seq *seq;
} cache_state;

/* ---- open -------------------------------------------------------------------------------------------------------- */

static void cache_close(hn_drafter *d);

/* Checks whether close will be able to write, while an error can be reported. */
static hunch_status save_try(cache_state *st, const char *path, hunch_error *err) {
    hn_out *o;
    if (!(st->save = hn_strdup(path))) return hn_fail_memory(err, path, strlen(path));
    hunch_status s = hn_out_open(&o, path, true, err);
    hn_out_abort(&o);
    return s;
}

static hunch_status files_open(cache_state *st, hn_spec *spec, int vocab, hunch_error *err) {
    const char *dynamic = hn_spec_string(spec, "dynamic"), *save = hn_spec_string(spec, "save");
    hunch_status s = HUNCH_OK;
    if (spec->path) s = hn_counts_read(&st->corpus, spec->path, STATIC_N, STATIC_N, vocab, err);
    if (!s && dynamic) s = hn_counts_read(&st->dynamic[1].counts, dynamic, 1, HN_COUNTS_N, vocab, err);
    if (!s && save) s = save_try(st, save, err);
    if (s) hn_error_prefix(err, "drafter '%s'", spec->text);
    return s;
}

static hunch_status cache_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs,
                               hunch_error *err) {
    long depth, mib;
    hunch_status s = hn_spec_int(spec, "depth", 1, HN_CHAIN_MAX, 8, &depth, err);
    if (!s) s = hn_spec_int(spec, "mib", 1, 1 << 20, 64, &mib, err);
    if (s) return s;
    cache_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "drafter 'cache'", sizeof *st);
    d->state = st;
    st->n_seqs = d->max_seqs;
    st->depth = (int)depth;
    for (int i = 1; i < HN_SALT_STORES; i++) hn_counts_init(&st->dynamic[i].counts, hn_salt_stores_bytes(i, (size_t)mib << 20));
    st->seq = hn_zalloc((size_t)d->max_seqs, sizeof *st->seq);
    s = st->seq ? files_open(st, spec, target->vocab, err)
                : hn_fail_memory(err, "drafter 'cache'", (size_t)d->max_seqs * sizeof *st->seq);
    if (s) {
        cache_close(d);
        return s;
    }
    for (int i = 0; i < st->n_seqs; i++) hn_counts_init(&st->seq[i].context, (size_t)mib << 20);
    needs->max_depth = st->depth;
    return HUNCH_OK;
}

/* ---- one token --------------------------------------------------------------------------------------------------- */

/* Thresholds by the number of tokens in the key: how often it must have been seen, and the share of the token that is taken. */
typedef struct thresholds {
    uint64_t samples[HN_COUNTS_N + 1], percent[HN_COUNTS_N + 1];
} thresholds;
static const thresholds LAX = {{0, 2, 2, 1, 1}, {0, 66, 50, 50, 50}}, STRICT = {{0, 4, 3, 2, 2}, {0, 75, 66, 66, 66}},
                        ALONE = {{0, 0, 2, 0, 0}, {0, 0, 50, 0, 0}};

typedef struct pick {
    int32_t token;
    float estimate;
} pick;

/* The weight of a token by its count in the corpus. */
static double weight_of(const hn_counts *corpus, const hn_counts_entry *c, int32_t token) {
    const hn_counts_pair *p = hn_counts_pair_of(corpus, c, token);
    return p ? 100.0 * p->count : 1;
}

/* The pair of e with the largest count times the corpus's weight, the first seen of equals. Walks the shorter list: a
 * token that is not in the corpus has weight 1, and among those the largest count wins. */
static uint32_t weighted_best(const hn_counts *x, const hn_counts_entry *e, const hn_counts *corpus,
                              const hn_counts_entry *c) {
    uint32_t best = e->best;
    double most = x->pair[best].count * weight_of(corpus, c, x->pair[best].token);
    const bool own = e->n_pairs <= c->n_pairs;
    for (uint32_t p = own ? e->first : c->first; p != HN_COUNTS_NONE;
         p = own ? x->pair[p].next : corpus->pair[p].next) {
        const hn_counts_pair *q = own ? &x->pair[p] : hn_counts_pair_of(x, e, corpus->pair[p].token);
        if (!q) continue;
        const double value = q->count * (own ? weight_of(corpus, c, q->token) : 100.0 * corpus->pair[p].count);
        const uint32_t at = (uint32_t)(q - x->pair);
        if (value < most || (value <= most && at >= best)) continue;
        best = at;
        most = value;
    }
    return best;
}

/* The token after the last tokens, which end at `end`, for keys of n tokens; false: not seen often or not clear enough. */
static bool level_find(const hn_counts *x, const thresholds *t, int n, const int32_t *end, const hn_counts *corpus,
                      const hn_counts_entry *c, pick *out) {
    int32_t gram[HN_COUNTS_N];
    hn_counts_gram(gram, end - n, n);
    const hn_counts_entry *e = hn_counts_find(x, gram);
    if (!e || e->sum < t->samples[n]) return false;
    const hn_counts_pair *p = &x->pair[c ? weighted_best(x, e, corpus, c) : e->best];
    if (100 * (uint64_t)p->count < t->percent[n] * e->sum) return false;
    *out = (pick){p->token, (float)((p->count + 1.0) / ((double)e->sum + 2))};
    return true;
}

/* The token after n tokens that end at `end`. */
static bool next_find(const cache_state *st, const cache_seq *q, const int32_t *end, int n, pick *out) {
    int32_t gram[HN_COUNTS_N];
    const hn_counts_entry *c = NULL;
    if (n >= STATIC_N) {
        hn_counts_gram(gram, end - STATIC_N, STATIC_N);
        c = hn_counts_find(&st->corpus, gram);
    }
    for (int k = n; k >= 1; k--)
        if (level_find(&q->context, &LAX, k, end, &st->corpus, c, out)) return true;
    for (int k = n; k >= 1; k--)
        if (level_find(&st->dynamic[q->store].counts, &STRICT, k, end, &st->corpus, c, out)) return true;
    return c && level_find(&st->corpus, &ALONE, STATIC_N, end, NULL, NULL, out);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static void context_extend(cache_seq *q, const hn_committed_text *t) {
    (void)hn_kept_text_show(&q->text, t); /* without memory less is learned */
    (void)hn_counts_text(&q->context, t->token, q->counted, t->n);
    q->counted = t->n;
}

static void chain_make(const cache_state *st, cache_seq *q, const hn_committed_text *t) {
    int32_t token[HN_COUNTS_N + HN_CHAIN_MAX]; /* the text's end and what was drafted */
    const int n = t->n < HN_COUNTS_N ? t->n : HN_COUNTS_N;
    memcpy(token, t->token + t->n - n, (size_t)n * sizeof *token);
    hn_draft_chain_start(&q->chain, t->n);
    for (int len = n; len < n + st->depth; len++) {
        pick p;
        if (!next_find(st, q, token + len, len < HN_COUNTS_N ? len : HN_COUNTS_N, &p)) return;
        hn_draft_chain_push(&q->chain, p.token, p.estimate);
        token[len] = p.token;
    }
}

static int cache_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    cache_state *st = d->state;
    int added = 0;
    for (int i = 0; i < n; i++) {
        cache_seq *q = &st->seq[p[i].seq];
        if (level == 0) {
            context_extend(q, &p[i].text);
            chain_make(st, q, &p[i].text);
        }
        added += hn_draft_chain_propose(&q->chain, &p[i], d->index, level);
    }
    return added;
}

static void cache_observe(hn_drafter *d, const hn_observe *o, int n) {
    cache_state *st = d->state;
    for (int i = 0; i < n; i++) hn_kept_text_observe(&st->seq[o[i].seq].text, &o[i]);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* The length of the longest ended text that the text starts with. */
static int known_start(const cache_store *st, const hn_committed_text *t) {
    const unsigned kept = st->n_ended < ENDED_TEXTS ? st->n_ended : ENDED_TEXTS;
    int known = 0, longest = 0;
    for (unsigned k = 0; k < kept; k++)
        if (st->ended[k].n > longest) longest = st->ended[k].n;
    uint64_t h = 0;
    for (int i = 0; i < t->n && i < longest; i++) {
        h = hn_hash_tokens(h, &t->token[i], 1);
        for (unsigned k = 0; k < kept; k++)
            if (st->ended[k].n == i + 1 && st->ended[k].hash == h) known = i + 1;
    }
    return known;
}

static void seq_fini(cache_seq *q) {
    hn_kept_text_fini(&q->text);
    hn_counts_fini(&q->context);
    q->counted = q->known = q->chain.len = 0;
    q->live = false;
}

static void store_empty(cache_store *x) {
    hn_counts_fini(&x->counts);
    x->n_ended = 0;
}

static int store_enter(cache_state *st, uint64_t salt) {
    bool fresh;
    const int at = hn_salt_stores_enter(&st->tenants, salt, &fresh);
    if (fresh) store_empty(&st->dynamic[at]);
    return at;
}

static hunch_status cache_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err HN_UNUSED) {
    cache_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        cache_seq *q = &st->seq[seqs[i].seq];
        seq_fini(q);
        hn_salt_stores_leave(&st->tenants, &q->store);
        q->store = store_enter(st, seqs[i].salt);
        q->live = st->began = true;
        q->known = known_start(&st->dynamic[q->store], &seqs[i].text);
        context_extend(q, &seqs[i].text);
    }
    return HUNCH_OK;
}

static void cache_end(hn_drafter *d, int seq) {
    cache_state *st = d->state;
    cache_seq *q = &st->seq[seq];
    cache_store *x = &st->dynamic[q->store];
    if (q->live && q->store && hn_counts_text(&x->counts, q->text.token, q->known, q->text.n)) {
        const uint64_t h = hn_hash_tokens(0, q->text.token, q->text.n);
        x->ended[x->n_ended++ % ENDED_TEXTS] = (ended_text){h, q->text.n};
    }
    hn_salt_stores_leave(&st->tenants, &q->store);
    seq_fini(q);
}

static void cache_forget(hn_drafter *d) {
    cache_state *st = d->state;
    for (int i = 0; i < HN_SALT_STORES; i++) store_empty(&st->dynamic[i]);
    for (int i = 0; i < st->n_seqs; i++) st->seq[i].known = 0;
}

static void cache_close(hn_drafter *d) {
    cache_state *st = d->state;
    for (int i = 0; st->seq && i < st->n_seqs; i++) cache_end(d, i);
    if (st->save && st->began) (void)hn_counts_write(&st->dynamic[1].counts, st->save, NULL);
    hn_counts_fini(&st->corpus);
    for (int i = 0; i < HN_SALT_STORES; i++) store_empty(&st->dynamic[i]);
    hn_free(st->save);
    hn_free(st->seq);
    hn_free(st);
    d->state = NULL;
}

/* As if every n-gram of the text were new, up to the limit. */
static size_t cache_text_bytes(const hn_drafter *d, int tokens) {
    const cache_state *st = d->state;
    const size_t gram = sizeof(hn_counts_entry) + sizeof(hn_counts_pair) + 4 * sizeof(uint32_t), limit = st->seq[0].context.limit;
    const size_t counts = (size_t)tokens * HN_COUNTS_N * gram;
    return sizeof *st->seq + (size_t)tokens * sizeof(int32_t) + (limit > 0 && limit < counts ? limit : counts);
}

static const hn_drafter_ops ops = {
    .open = cache_open,
    .begin = cache_begin,
    .observe = cache_observe,
    .propose = cache_propose,
    .text_bytes = cache_text_bytes,
    .end = cache_end,
    .forget = cache_forget,
    .close = cache_close,
};

static const hn_drafter_help help = {
    "[:FILE]",
    "n-gram counts of this text, of earlier ones, and of a FILE in llama.cpp's lookup-cache format",
    {{"dynamic", "FILE", "counts of earlier texts to begin with"},
     {"save", "FILE", "where they go at the end"},
     {"depth", "1..63", "tokens drafted at most, default 8"},
     {"mib", "1..1048576", "memory for counts, default 64"}}};
const hn_drafter_kind hn_drafter_cache = {
    .name = "cache", .help = &help, .reads = {"dynamic"}, .writes = "save", .check_written = hn_counts_file_check, .ops = &ops};
