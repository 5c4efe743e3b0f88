/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_ngram.c - prompt lookup: copies what followed earlier occurrences of the text's last tokens.
 *
 *   ngram[,form=FORM][,min=N][,max=N][,depth=K][,grow=G]
 *
 *   form     match: the last n tokens, n from max down to min          draft              defaults min, max, depth
 *   recent   longest n, latest occurrence; a copy that reaches the     1..K tokens, at    2, 8, 16
 *            end of the text continues with its own start (a period)    most G a token
 *                                                                      that matched
 *   pld      earliest; counts only if K tokens follow it and it         K tokens           1, 3, 10
 *            ends before the last n tokens begin (apoorvumang/prompt-lookup-decoding)
 *   hf       earliest (transformers' PromptLookupCandidateGenerator)   1..K tokens        1, 2, 10
 *   longest  earliest (vLLM's n-gram proposer)                         1..K tokens        5, 5, 8
 *   simple   latest, not the text's own start, at least n tokens       n..K tokens        12, 12, 48
 *            after it (llama.cpp's ngram-simple)
 *   map-k    earliest; the accepted part of the last draft from this    1..K tokens        12, 12, 48
 *            n-gram limits the next one (ngram_map.h)
 *   map-k4v  up to four continuations of K tokens, counted; the most   1..K tokens        12, 12, 48
 *            frequent, if seen twice as often as the others together; limited as in map-k
 *   mod      a table that all texts of a salt share, keyed by a hash of the n    min..K tokens      48, 24, 63
 *            = max last tokens, looked up token by token (ngram_mod.h)
 *
 * longest, simple, map-k, map-k4v: one bound alone sets both; the last three match n = max tokens, so both must be
 * equal. `mod` has no shortest match: min is the shortest draft. llama.cpp drafts up to 64 with it; a round's tree has
 * room for 63.
 *
 * `recent` is hunch's own and the default. The length of its match is limited by max, but further tokens that agree before both
 * places are counted, and G (1) times that many tokens are drafted: a chance match costs few rows, a passage that is being
 * copied uses the whole depth. On greedy answers of SmolLM2-135M this beats every fixed depth at every cost of a row
 * from 0.06 to 0.17 of a pass.
 *
 * A draft is one chain, one-hot. The estimate of a candidate is the rule of succession over the tokens that agreed so
 * far: (n + d + 1) / (n + d + 2) at depth d after a match of n tokens, d from 0; controllers replace it by measured
 * rates.
 *
 * State of a sequence: an n-gram index (ngram_index.h) or map, extended to the text at its beginning and at a
 * round's first level. Only observe and begin write to the table of `mod`, in batches of 32 tokens; it is
 * emptied when a text begins and more than a quarter is in use, and after five successive rounds in which less than a
 * quarter was right.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "draft/draft_chain.h"
#include "draft/text/kept_text.h"
#include "draft/text/ngram_index.h"
#include "draft/text/ngram_map.h"
#include "draft/text/ngram_mod.h"
#include "draft/text/salt_stores.h"

enum { MOD_BATCH = 32, MOD_BAD_ROUNDS = 5 };
enum form { RECENT, PLD, HF, LONGEST, SIMPLE, MAP_K, MAP_K4V, MOD };
static const char *const FORMS[] = {"recent", "pld", "hf", "longest", "simple", "map-k", "map-k4v", "mod", NULL};
static const struct {
    int min, max, depth;
    bool latest;
    bool one_n; /* matches only n = max */
} FORM_DEFAULTS[] = {
    [RECENT] = {2, 8, 16, true, false},    [PLD] = {1, 3, 10, false, false},    [HF] = {1, 2, 10, false, false},
    [LONGEST] = {5, 5, 8, false, false},   [SIMPLE] = {12, 12, 48, true, true}, [MAP_K] = {12, 12, 48, false, true},
    [MAP_K4V] = {12, 12, 48, false, true}, [MOD] = {48, 24, 63, false, false}};

typedef struct ngram_seq {
    hn_ngram_index index; /* of the forms up to simple */
    hn_ngram_map map;     /* map-k, map-k4v */
    int key, value;       /* the map's entry that the chain came from */
    hn_kept_text text;    /* mod: the text, of which the first `learned` tokens are in the table */
    int learned;
    int table;            /* of `mod`; 0: none */
    hn_draft_chain chain;
    bool unseen; /* the chain's verification was not observed yet */
} ngram_seq;

/* Of `mod`: the table that texts of a salt share. */
typedef struct mod_table {
    hn_ngram_mod mod; /* zeroed until a text needs it */
    int bad_rounds;   /* in succession */
} mod_table;

typedef struct ngram_state {
    enum form form;
    int min, max, depth;
    double grow;      /* of `recent` */
    hn_salt_stores tenants; /* of `mod`: */
    mod_table mod[HN_SALT_STORES];
    int n_seqs;
    ngram_seq *seq; /* [n_seqs] */
} ngram_state;

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* 0: not given. */
static void bounds_complete(ngram_state *st, long min, long max) {
    int dmin = FORM_DEFAULTS[st->form].min, dmax = FORM_DEFAULTS[st->form].max;
    if (st->form == MOD) {
        st->max = max ? (int)max : dmax;
        st->min = min ? (int)min : dmin < st->depth ? dmin : st->depth;
        return;
    }
    if ((st->form == LONGEST || FORM_DEFAULTS[st->form].one_n) && (min || max)) dmin = dmax = (int)(min ? min : max);
    st->max = max ? (int)max : min > dmax ? (int)min : dmax;
    st->min = min ? (int)min : dmin < st->max ? dmin : st->max;
    if (!min && FORM_DEFAULTS[st->form].one_n) st->min = st->max;
}

static hunch_status bounds_check(const ngram_state *st, const hn_spec *spec, hunch_error *err) {
    if (st->form == MOD && st->min > st->depth)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': min=%d, the shortest draft of form mod, is more than depth=%d",
                       spec->text, st->min, st->depth);
    if (st->form != MOD && st->min > st->max)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': min=%d is more than max=%d", spec->text, st->min, st->max);
    if (FORM_DEFAULTS[st->form].one_n && st->min < st->max)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': form %s matches one length: min=%d contradicts max=%d",
                       spec->text, FORMS[st->form], st->min, st->max);
    return HUNCH_OK;
}

static hunch_status options_read(ngram_state *st, hn_spec *spec, hunch_error *err) {
    int form;
    long min, max, depth;
    hunch_status s = hn_spec_no_path(spec, err);
    if (!s) s = hn_spec_choice(spec, "form", FORMS, RECENT, &form, err);
    if (!s) st->form = (enum form)form;
    if (!s) s = hn_spec_int(spec, "min", 1, form == MOD ? HN_CHAIN_MAX : HN_NGRAM_MAX, 0, &min, err);
    if (!s) s = hn_spec_int(spec, "max", 1, HN_NGRAM_MAX, 0, &max, err);
    if (!s) s = hn_spec_int(spec, "depth", 1, HN_CHAIN_MAX, FORM_DEFAULTS[form].depth, &depth, err);
    if (!s && form == RECENT) s = hn_spec_double(spec, "grow", 0.1, HN_CHAIN_MAX, 1, &st->grow, err);
    if (s) return s;
    st->depth = (int)depth;
    bounds_complete(st, min, max);
    return bounds_check(st, spec, err);
}

static hunch_status ngram_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target HN_UNUSED, hn_needs *needs,
                               hunch_error *err) {
    ngram_state st = {.n_seqs = d->max_seqs};
    hunch_status s = options_read(&st, spec, err);
    if (s) return s;
    ngram_state *out = hn_alloc(sizeof *out);
    st.seq = hn_zalloc((size_t)st.n_seqs, sizeof *st.seq);
    if (!out || !st.seq || (st.form == MOD && !hn_ngram_mod_init(&st.mod[1].mod, st.max))) {
        hn_free(out);
        hn_free(st.seq);
        return hn_fail_memory(err, "drafter 'ngram'", sizeof *out + (size_t)st.n_seqs * sizeof *st.seq);
    }
    for (int i = 0; i < st.n_seqs; i++) {
        if (st.form != MOD) hn_ngram_index_init(&st.seq[i].index, st.min, st.max, FORM_DEFAULTS[st.form].latest);
        hn_ngram_map_init(&st.seq[i].map, st.max, st.depth, st.form == MAP_K4V);
    }
    *out = st;
    d->state = out;
    needs->max_depth = st.depth;
    return HUNCH_OK;
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

/* Extends the store of one sequence's text to the whole text. */
static void seq_extend(const ngram_state *st, ngram_seq *q, const hn_committed_text *t) {
    /* An n-gram that ends with the text is the pattern itself, so it must not be in yet; `simple` also skips the
     * one before it. */
    const int end = t->n - (st->form == SIMPLE ? 2 : 1);
    if (st->form == MOD)
        (void)hn_kept_text_show(&q->text, t); /* without memory the table learns less */
    else if (st->form == MAP_K || st->form == MAP_K4V)
        hn_ngram_map_extend(&q->map, t->token, t->n);
    else
        hn_ngram_index_extend(&q->index, t->token, end > 0 ? end : 0);
}

static void mod_empty(mod_table *x) {
    if (x->mod.next) hn_ngram_mod_empty(&x->mod);
    x->bad_rounds = 0;
}

/* The table of a text's salt; without memory there is none. */
static int mod_enter(ngram_state *st, uint64_t salt) {
    bool fresh;
    int at = hn_salt_stores_enter(&st->tenants, salt, &fresh);
    mod_table *x = &st->mod[at];
    if (fresh) mod_empty(x);
    if (at && !x->mod.next && !hn_ngram_mod_init(&x->mod, st->max)) hn_salt_stores_leave(&st->tenants, &at);
    return at;
}

static void mod_learn(ngram_state *st, ngram_seq *q, int at_least) {
    if (!q->table || q->text.confirmed - q->learned < at_least) return;
    hn_ngram_mod_learn(&st->mod[q->table].mod, q->text.token, q->learned, q->text.confirmed);
    q->learned = q->text.confirmed;
}

static void seq_empty(ngram_seq *q) {
    hn_ngram_index_fini(&q->index);
    hn_ngram_map_fini(&q->map);
    hn_kept_text_fini(&q->text);
    q->learned = 0;
    q->chain.len = 0;
    q->unseen = false;
}

/* ---- lookup ------------------------------------------------------------------------------------------------------ */

/* Copies what follows the match token[at-n..at). */
static void copy_from(ngram_seq *q, const hn_committed_text *t, int n, int at, int most) {
    for (int i = 0; i < most && at + i < t->n; i++)
        hn_draft_chain_push(&q->chain, t->token[at + i], hn_draft_chain_estimate(n + i));
}

static void chain_pld(const ngram_state *st, ngram_seq *q, const hn_committed_text *t, const int32_t *position, int longest) {
    for (int n = longest; n >= st->min; n--) {
        const int at = position[n] + n; /* the earliest: if it does not fit, no later one does */
        if (at + st->depth > t->n || at >= t->n - n) continue;
        copy_from(q, t, n, at, st->depth);
        return;
    }
}

static void chain_simple(const ngram_state *st, ngram_seq *q, const hn_committed_text *t, const int32_t *position, int longest) {
    const int n = st->max, old = t->n - 1; /* the newest token is never copied */
    if (longest != n || old <= n + st->depth + 1 || position[n] == 0) return;
    const int at = position[n] + n;
    if (old - at >= n) copy_from(q, t, n, at, old - at < st->depth ? old - at : st->depth);
}

/* How many tokens before `at` agree with the end of the text, starting from the n that are known; more than K make no difference. */
static int match_extend(const ngram_state *st, const hn_committed_text *t, int n, int at) {
    while (n < st->depth && n < at && t->token[at - n - 1] == t->token[t->n - n - 1]) n++;
    return n;
}

static void chain_recent(const ngram_state *st, ngram_seq *q, const hn_committed_text *t, const int32_t *position, int longest) {
    const int at = position[longest] + longest, period = t->n - at;
    const int match = longest == st->max ? match_extend(st, t, longest, at) : longest;
    const double grown = fmax(1, match * st->grow);
    for (int i = 0; i < st->depth && i + 1 <= grown; i++)
        hn_draft_chain_push(&q->chain, t->token[at + i % period], hn_draft_chain_estimate(match + i));
}

static void chain_index(const ngram_state *st, ngram_seq *q, const hn_committed_text *t) {
    int32_t position[HN_NGRAM_MAX + 1];
    const int longest = hn_ngram_index_find(&q->index, t->token, t->n, position);
    if (!longest) return;
    switch (st->form) {
    case RECENT: chain_recent(st, q, t, position, longest); break;
    case PLD: chain_pld(st, q, t, position, longest); break;
    case SIMPLE: chain_simple(st, q, t, position, longest); break;
    default: copy_from(q, t, longest, position[longest] + longest, st->depth);
    }
}

static void chain_map(const ngram_state *st, ngram_seq *q, const hn_committed_text *t) {
    const hn_map_value *v = hn_ngram_map_find(&q->map, t->token, t->n, &q->key, &q->value);
    if (v) copy_from(q, t, st->max, v->at, v->cap);
}

static void chain_mod(const ngram_state *st, ngram_seq *q, const hn_committed_text *t) {
    int32_t token[HN_CHAIN_MAX];
    if (!q->table) return;
    const int len = hn_ngram_mod_chain(&st->mod[q->table].mod, t->token, t->n, token, st->depth);
    for (int i = 0; i < len && len >= st->min; i++)
        hn_draft_chain_push(&q->chain, token[i], hn_draft_chain_estimate(st->max + i));
}

static void chain_make(const ngram_state *st, ngram_seq *q, const hn_committed_text *t) {
    seq_extend(st, q, t);
    hn_draft_chain_start(&q->chain, t->n);
    if (st->form == MOD)
        chain_mod(st, q, t);
    else if (st->form == MAP_K || st->form == MAP_K4V)
        chain_map(st, q, t);
    else
        chain_index(st, q, t);
    q->unseen = true;
}

/* ---- the drafter's calls ----------------------------------------------------------------------------------------- */

static hunch_status ngram_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err HN_UNUSED) {
    ngram_state *st = d->state;
    for (int i = 0; i < n; i++) {
        ngram_seq *q = &st->seq[seqs[i].seq];
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        seq_empty(q);
        seq_extend(st, q, &seqs[i].text);
        if (st->form != MOD) continue;
        hn_salt_stores_leave(&st->tenants, &q->table);
        q->table = mod_enter(st, seqs[i].salt);
        if (q->table && st->mod[q->table].mod.used > HN_MOD_SIZE / 4) hn_ngram_mod_empty(&st->mod[q->table].mod);
        mod_learn(st, q, 1);
    }
    return HUNCH_OK;
}

static int ngram_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    const ngram_state *st = d->state;
    int added = 0;
    for (int i = 0; i < n; i++) {
        ngram_seq *q = &st->seq[p[i].seq];
        if (level == 0) chain_make(st, q, &p[i].text);
        added += hn_draft_chain_propose(&q->chain, &p[i], d->index, level);
    }
    return added;
}

/* Evaluates a round of `mod` in which `right` of `verified` drafts were right. */
static void mod_judge(mod_table *x, int right, int verified) {
    x->bad_rounds = right * 4 < verified ? x->bad_rounds + 1 : 0;
    if (x->bad_rounds >= MOD_BAD_ROUNDS) mod_empty(x);
}

static void ngram_observe(hn_drafter *d, const hn_observe *o, int n) {
    ngram_state *st = d->state;
    for (int i = 0; i < n; i++) {
        ngram_seq *q = &st->seq[o[i].seq];
        if (!q->unseen) continue;
        q->unseen = false;
        int verified;
        const int right = hn_draft_chain_agreed(&q->chain, &o[i], &verified);
        if (st->form == MOD) {
            mod_learn(st, q, MOD_BATCH);
            if (verified > 0) mod_judge(&st->mod[q->table], right, verified);
        } else if ((st->form == MAP_K || st->form == MAP_K4V) && right < verified) {
            hn_ngram_map_cap(&q->map, q->key, q->value, right);
        }
    }
}

static void ngram_end(hn_drafter *d, int seq) {
    ngram_state *st = d->state;
    seq_empty(&st->seq[seq]);
    hn_salt_stores_leave(&st->tenants, &st->seq[seq].table);
}

/* The table of `mod` outlives sequences; those that live add their text again with the next batch. */
static void ngram_forget(hn_drafter *d) {
    ngram_state *st = d->state;
    for (int i = 0; i < HN_SALT_STORES; i++) mod_empty(&st->mod[i]);
    for (int i = 0; i < st->n_seqs; i++) st->seq[i].learned = 0;
}

static void ngram_close(hn_drafter *d) {
    ngram_state *st = d->state;
    for (int i = 0; i < st->n_seqs; i++) seq_empty(&st->seq[i]);
    for (int i = 0; i < HN_SALT_STORES; i++) hn_ngram_mod_fini(&st->mod[i].mod);
    hn_free(st->seq);
    hn_free(st);
}

/* As if every n-gram of the text were new. */
static size_t ngram_text_bytes(const hn_drafter *d, int tokens) {
    const ngram_state *st = d->state;
    const size_t n = (size_t)tokens;
    switch (st->form) {
    case MOD: return sizeof *st->seq + n * sizeof(int32_t);
    case MAP_K:
    case MAP_K4V: return sizeof *st->seq + n * (sizeof(hn_map_key) + 4 * sizeof(int32_t));
    case RECENT:
    case PLD:
    case HF:
    case LONGEST:
    case SIMPLE: break;
    }
    return sizeof *st->seq + hn_ngram_index_bytes(&st->seq[0].index, n);
}

static const hn_drafter_ops ops = {
    .open = ngram_open,
    .begin = ngram_begin,
    .observe = ngram_observe,
    .propose = ngram_propose,
    .text_bytes = ngram_text_bytes,
    .end = ngram_end,
    .forget = ngram_forget,
    .close = ngram_close,
};

static const hn_drafter_help help = {
    NULL, "the continuation of an earlier occurrence of the last tokens in this text",
    {{"form", "recent|pld|hf|longest|simple|map-k|map-k4v|mod", "how places are found and chosen; default recent"},
     {"min", "1..32", "tokens that must agree; of form mod the shortest draft, to 63"},
     {"max", "1..32", "tokens that are looked for at most"},
     {"depth", "1..63", "tokens drafted at most; by form 8 to 63"},
     {"grow", "0.1..63", "of form recent: tokens drafted for each that agrees, default 1"}}};
const hn_drafter_kind hn_drafter_ngram = {.name = "ngram", .help = &help, .ops = &ops};
