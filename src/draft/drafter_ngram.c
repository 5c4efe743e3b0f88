/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_ngram.c - prompt lookup: where did the text's last tokens stand before, and what followed them there?
 *
 *   ngram[,form=FORM][,min=N][,max=N][,depth=K][,grow=G]
 *
 *   form     match: the last n tokens, n from max down to min          draft              defaults min, max, depth
 *   recent   longest n, latest occurrence; a copy that reaches the     1..K tokens, at    2, 8, 16
 *            end of the text goes on with its own start (a period)     most G a token
 *                                                                      that matched
 *   pld      earliest; counts only if K tokens fit behind it and it    K tokens           1, 3, 10
 *            ends before the last n tokens begin (apoorvumang/prompt-lookup-decoding)
 *   hf       earliest (transformers' PromptLookupCandidateGenerator)   1..K tokens        1, 2, 10
 *   longest  earliest (vLLM's n-gram proposer)                         1..K tokens        5, 5, 8; one bound sets both
 *   simple   n = max alone, latest, not the text's own start, at       n..K tokens        12, 12, 48
 *            least n tokens behind it (llama.cpp's ngram-simple)
 *
 * `recent` is hunch's own and the default. What it matches with is bounded by max, but how far the two places agree is
 * counted on, and G (1) times that many tokens are drafted: a chance match costs few rows, a passage that is being copied
 * fills the depth. On greedy answers of SmolLM2-135M this beats every fixed depth at every cost of a row
 * from 0.06 to 0.17 of a pass.
 *
 * A draft is one chain, one-hot. The estimate of a candidate is the rule of succession over the tokens that agreed so
 * far: (n + d + 1) / (n + d + 2) at depth d behind a match of n tokens, d from 0; controllers replace it by what they
 * measure.
 *
 * State: an n-gram index a sequence (ngram_index.h), brought up to the committed text when a round's first level is
 * asked for, and the chain of the round, from which later levels are answered.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "draft/drafter.h"
#include "draft/ngram_index.h"

enum { MAX_DEPTH = HN_TREE_ROWS - 1 };
enum form { RECENT, PLD, HF, LONGEST, SIMPLE };
static const char *const FORMS[] = {"recent", "pld", "hf", "longest", "simple", NULL};
static const struct {
    int min, max, depth;
    bool latest;
} FORM_DEFAULTS[] = {[RECENT] = {2, 8, 16, true}, [PLD] = {1, 3, 10, false}, [HF] = {1, 2, 10, false},
                     [LONGEST] = {5, 5, 8, false}, [SIMPLE] = {12, 12, 48, true}};

typedef struct ngram_seq {
    hn_ngram_index index;
    int32_t chain[MAX_DEPTH]; /* of the round that began with text_n tokens */
    int len, match;           /* tokens of the chain; tokens that matched */
    int text_n, tip;          /* tip: the row that the next level continues */
} ngram_seq;

typedef struct ngram_state {
    enum form form;
    int min, max, depth;
    double grow; /* of `recent` */
    int n_seqs;
    ngram_seq *seq; /* [n_seqs] */
} ngram_state;

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* 0: not given. */
static void bounds_complete(ngram_state *st, long min, long max) {
    int dmin = FORM_DEFAULTS[st->form].min, dmax = FORM_DEFAULTS[st->form].max;
    if (st->form == LONGEST && (min || max)) dmin = dmax = (int)(min ? min : max);
    st->max = max ? (int)max : min > dmax ? (int)min : dmax;
    st->min = min ? (int)min : dmin < st->max ? dmin : st->max;
    if (st->form == SIMPLE) st->min = st->max;
}

static hunch_status options_read(ngram_state *st, hn_spec *spec, hunch_error *err) {
    int form;
    long min = 0, max, depth;
    hunch_status s = hn_spec_no_path(spec, err);
    if (!s) s = hn_spec_choice(spec, "form", FORMS, RECENT, &form, err);
    if (!s) st->form = (enum form)form;
    if (!s && form != SIMPLE) s = hn_spec_int(spec, "min", 1, HN_NGRAM_MAX, 0, &min, err);
    if (!s) s = hn_spec_int(spec, "max", 1, HN_NGRAM_MAX, 0, &max, err);
    if (!s) s = hn_spec_int(spec, "depth", 1, MAX_DEPTH, FORM_DEFAULTS[form].depth, &depth, err);
    if (!s && form == RECENT) s = hn_spec_double(spec, "grow", 0.1, MAX_DEPTH, 1, &st->grow, err);
    if (s) return s;
    bounds_complete(st, min, max);
    st->depth = (int)depth;
    if (st->min > st->max)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': min=%d is more than max=%d", spec->text, st->min, st->max);
    return HUNCH_OK;
}

static hunch_status ngram_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target HN_UNUSED, hn_needs *needs,
                               hunch_error *err) {
    ngram_state st = {.n_seqs = d->max_seqs};
    hunch_status s = options_read(&st, spec, err);
    if (s) return s;
    ngram_state *out = hn_alloc(sizeof *out);
    st.seq = hn_zalloc((size_t)st.n_seqs, sizeof *st.seq);
    if (!out || !st.seq) {
        hn_free(out);
        hn_free(st.seq);
        return hn_fail_memory(err, "drafter 'ngram'", sizeof *out + (size_t)st.n_seqs * sizeof *st.seq);
    }
    for (int i = 0; i < st.n_seqs; i++)
        hn_ngram_index_init(&st.seq[i].index, st.min, st.max, FORM_DEFAULTS[st.form].latest);
    *out = st;
    d->state = out;
    needs->max_depth = st.depth;
    return HUNCH_OK;
}

/* ---- lookup ------------------------------------------------------------------------------------------------------ */

/* Copies what follows the match token[at-n..at); returns how much. */
static int copy_from(ngram_seq *q, const hn_text *t, int n, int at, int most) {
    int len = t->n - at < most ? t->n - at : most;
    memcpy(q->chain, t->token + at, (size_t)len * sizeof *q->chain);
    q->match = n;
    return len;
}

static int chain_pld(const ngram_state *st, ngram_seq *q, const hn_text *t, const int32_t *position, int longest) {
    for (int n = longest; n >= st->min; n--) {
        int at = position[n] + n; /* the earliest: where it does not fit, no later one does */
        if (at + st->depth <= t->n && at < t->n - n) return copy_from(q, t, n, at, st->depth);
    }
    return 0;
}

static int chain_simple(const ngram_state *st, ngram_seq *q, const hn_text *t, const int32_t *position, int longest) {
    int n = st->max, old = t->n - 1; /* the newest token is not part of what may be copied */
    if (longest != n || old <= n + st->depth + 1 || position[n] == 0) return 0;
    int at = position[n] + n;
    if (old - at < n) return 0;
    return copy_from(q, t, n, at, old - at < st->depth ? old - at : st->depth);
}

/* How many tokens before `at` agree with the end of the text, from the n that are known to on; no more than K matter. */
static int match_extend(const ngram_state *st, const hn_text *t, int n, int at) {
    while (n < st->depth && n < at && t->token[at - n - 1] == t->token[t->n - n - 1]) n++;
    return n;
}

static int chain_recent(const ngram_state *st, ngram_seq *q, const hn_text *t, const int32_t *position, int longest) {
    int at = position[longest] + longest;
    int match = longest == st->max ? match_extend(st, t, longest, at) : longest;
    double grown = fmax(1, match * st->grow);
    int most = grown < st->depth ? (int)grown : st->depth;
    int len = copy_from(q, t, match, at, most);
    for (; len < most; len++) q->chain[len] = q->chain[len - (t->n - at)];
    return len;
}

static void chain_make(const ngram_state *st, ngram_seq *q, const hn_text *t) {
    int32_t position[HN_NGRAM_MAX + 1];
    /* An n-gram that ends with the text is the pattern itself, so it must not be in yet; `simple` also skips the
     * one before it. */
    int end = t->n - (st->form == SIMPLE ? 2 : 1);
    hn_ngram_index_extend(&q->index, t->token, end > 0 ? end : 0);
    int longest = hn_ngram_index_find(&q->index, t->token, t->n, position);
    q->tip = 0;
    q->text_n = t->n;
    q->len = 0;
    if (!longest) return;
    switch (st->form) {
    case RECENT: q->len = chain_recent(st, q, t, position, longest); break;
    case PLD: q->len = chain_pld(st, q, t, position, longest); break;
    case HF:
    case LONGEST: q->len = copy_from(q, t, longest, position[longest] + longest, st->depth); break;
    case SIMPLE: q->len = chain_simple(st, q, t, position, longest); break;
    }
}

/* ---- the drafter's calls ----------------------------------------------------------------------------------------- */

static hunch_status ngram_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err HN_UNUSED) {
    ngram_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        hn_ngram_index_fini(&st->seq[seqs[i].seq].index);
        st->seq[seqs[i].seq].len = 0;
    }
    return HUNCH_OK;
}

static int propose_one(const hn_drafter *d, hn_propose *p, int level) {
    const ngram_state *st = d->state;
    ngram_seq *q = &st->seq[p->seq];
    if (level == 0) chain_make(st, q, &p->text);
    if (level >= q->len || q->text_n != p->text.n) return 0;
    int32_t token = q->chain[level];
    int row = -1;
    if (p->budget > 0 || hn_tree_child(p->tree, q->tip, token) >= 0) {
        int agreed = q->match + level;
        row = hn_tree_add(p->tree, q->tip, token, d->index, (float)(agreed + 1) / (float)(agreed + 2), NULL);
    }
    if (row < 0) {
        q->len = level; /* the chain ends here: a deeper level must not hang on a wrong row */
        return 0;
    }
    q->tip = row;
    return 1;
}

static int ngram_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    int added = 0;
    for (int i = 0; i < n; i++) added += propose_one(d, &p[i], level);
    return added;
}

static void ngram_drop(hn_drafter *d, int seq, int rows HN_UNUSED) {
    ngram_state *st = d->state;
    hn_ngram_index_extend(&st->seq[seq].index, NULL, 0); /* occurrences were overwritten: start over */
    st->seq[seq].len = 0;
}

static void ngram_end(hn_drafter *d, int seq) {
    ngram_state *st = d->state;
    hn_ngram_index_fini(&st->seq[seq].index);
    st->seq[seq].len = 0;
}

static void ngram_close(hn_drafter *d) {
    ngram_state *st = d->state;
    for (int i = 0; i < st->n_seqs; i++) hn_ngram_index_fini(&st->seq[i].index);
    hn_free(st->seq);
    hn_free(st);
}

const hn_drafter_ops hn_drafter_ngram = {
    .name = "ngram", .open = ngram_open, .begin = ngram_begin, .propose = ngram_propose, .drop = ngram_drop,
    .end = ngram_end, .close = ngram_close,
};
