/* SPDX-License-Identifier: Apache-2.0 */
/* processors.c - logit bias, penalties, DRY and forbidden tokens, and the grammar of the text before them: one copy of a row's logits, of
 * which only single tokens are changed. If only the best token is needed and the row's own is known and not changed, only the changed
 * logits are copied.
 *
 * The occurrences of the committed text are counted once: a call whose text begins with the text counted last adds the new
 * tokens, any other text is counted from scratch (a sampler whose text only grows, hn_sampler.grows, does not compare them).
 * A drafted path is added during one call and removed again, so rows share no history and a rejected draft has no effect.
 *
 * Arithmetic is in doubles, rounded to float32 after bias, after the penalties together, and after DRY. A finite logit
 * stays finite, except that a bias of -infinity forbids its token.
 */
#include "sample/processors.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "sample/constraint.h"

typedef struct occurrences {
    int32_t all, answer; /* in prompt and answer, and in the answer alone */
} occurrences;

typedef struct hn_penalties {
    /* the committed text; arrays are NULL without a penalty on counts */
    occurrences *count; /* [vocab] */
    int32_t *token;     /* [vocab] those with a count, in order of appearance */
    int n_tokens;
    int n, n_prompt;    /* tokens counted */
    int32_t *text;      /* a copy of them, to compare the next text with */
    size_t text_cap;
    bool kept;          /* the copy is complete: there was memory for it */
    /* DRY; NULL if it is off */
    int32_t *repeats;   /* [vocab] length of the longest repetition that each token would extend; all 0 between calls */
    uint8_t *breakers;  /* bitmap; NULL: no token breaks a repetition */
} penalties;

/* ---- life ------------------------------------------------------------------------------------------------------- */

static bool penalties_count(const hunch_sampling *p) {
    return p->frequency_penalty != 0 || p->presence_penalty != 0 ||
           (p->repetition_penalty != 0 && p->repetition_penalty != 1);
}

static bool penalties_alloc(hn_sampler *s) {
    const size_t vocab = (size_t)s->vocab;
    penalties *c = s->penalties = hn_zalloc(1, sizeof *c);
    if (!c) return false;
    if (penalties_count(&s->params)) {
        c->count = hn_zalloc(vocab, sizeof *c->count);
        c->token = hn_zalloc(vocab, sizeof *c->token);
        if (!c->count || !c->token) return false;
    }
    if (hn_sampler_wants_breakers(s)) {
        c->repeats = hn_zalloc(vocab, sizeof *c->repeats);
        if (!c->repeats) return false;
    }
    return true;
}

static bool bias_copy(hn_sampler *s) {
    const size_t bytes = (size_t)s->params.n_bias * sizeof *s->bias;
    s->bias = hn_alloc(bytes);
    if (!s->bias) return false;
    memcpy(s->bias, s->params.bias, bytes);
    s->params.bias = s->bias;
    return true;
}

hunch_status hn_processors_init(hn_sampler *s, hunch_error *err) {
    const size_t bytes = (size_t)s->vocab * sizeof *s->processed;
    const bool history = penalties_count(&s->params) || hn_sampler_wants_breakers(s), bias = s->params.n_bias > 0;
    if (!history && !bias) return HUNCH_OK;
    s->processed = hn_alloc(bytes);
    if (!s->processed || (bias && !bias_copy(s)) || (history && !penalties_alloc(s)))
        return hn_fail_memory(err, "a sampler's penalties", bytes);
    return HUNCH_OK;
}

size_t hn_processors_bytes(const hn_sampler *s, bool all) {
    const penalties *c = s->penalties;
    size_t each = all || s->processed ? sizeof *s->processed : 0;
    if (all || (c && c->count)) each += sizeof *c->count + sizeof *c->token;
    if (all || (c && c->repeats)) each += sizeof *c->repeats;
    return (size_t)s->vocab * each;
}

void hn_processors_fini(hn_sampler *s) {
    penalties *c = s->penalties;
    if (c) {
        hn_free(c->count);
        hn_free(c->token);
        hn_free(c->text);
        hn_free(c->repeats);
        hn_free(c->breakers);
    }
    hn_free(c);
    hn_free(s->bias);
    hn_free(s->forbidden);
    hn_free(s->processed);
    hn_constraint_fini(s);
}

hunch_status hn_sampler_breakers(hn_sampler *s, const uint8_t *breakers, hunch_error *err) {
    if (!hn_sampler_wants_breakers(s)) return HUNCH_OK;
    const size_t bytes = ((size_t)s->vocab + 7) / 8;
    uint8_t *copy = hn_alloc(bytes);
    if (!copy) return hn_fail_memory(err, "a sampler's breakers", bytes);
    memcpy(copy, breakers, bytes);
    hn_free(s->penalties->breakers);
    s->penalties->breakers = copy;
    return HUNCH_OK;
}

hunch_status hn_sampler_forbid(hn_sampler *s, const int32_t *token, int n, uint64_t before, hunch_error *err) {
    const size_t bytes = (size_t)n * sizeof *token;
    if (n == 0) return HUNCH_OK;
    s->forbidden = hn_alloc(bytes);
    if (!s->processed) s->processed = hn_alloc((size_t)s->vocab * sizeof *s->processed);
    if (!s->forbidden || !s->processed) return hn_fail_memory(err, "a sampler's forbidden tokens", bytes);
    memcpy(s->forbidden, token, bytes);
    s->n_forbidden = n;
    s->forbidden_before = before;
    return HUNCH_OK;
}

bool hn_sampler_wants_breakers(const hn_sampler *s) { return s->params.dry_multiplier > 0; }

/* ---- counts ----------------------------------------------------------------------------------------------------- */

/* Ids without a logit (a text may come from a larger vocabulary) are ignored. */
static bool has_logit(const hn_sampler *s, int32_t token) { return token >= 0 && token < s->vocab; }

static void count_add(hn_sampler *s, int32_t token, bool answer) {
    penalties *c = s->penalties;
    if (!has_logit(s, token)) return;
    if (c->count[token].all++ == 0) c->token[c->n_tokens++] = token;
    c->count[token].answer += answer;
}

/* Undoes the latest count_add, of a token of the answer. */
static void count_remove(hn_sampler *s, int32_t token) {
    penalties *c = s->penalties;
    if (!has_logit(s, token)) return;
    c->count[token].answer--;
    if (--c->count[token].all == 0) c->n_tokens--;
}

static void count_forget(penalties *c) {
    for (int i = 0; i < c->n_tokens; i++) c->count[c->token[i]] = (occurrences){0, 0};
    c->n_tokens = c->n = 0;
}

static bool count_continues(const hn_sampler *s, const hn_history *h) {
    const penalties *c = s->penalties;
    if (s->grows && c->n > 0) {
        assert(c->n <= h->n && c->n_prompt == h->n_prompt);
        return true;
    }
    if (!c->kept || c->n > h->n || c->n_prompt != h->n_prompt) return false;
    return c->n == 0 || memcmp(c->text, h->text, (size_t)c->n * sizeof *c->text) == 0;
}

static void count_text(hn_sampler *s, const hn_history *h) {
    penalties *c = s->penalties;
    if (!count_continues(s, h)) count_forget(c);
    const int from = c->n;
    for (int i = from; i < h->n; i++) count_add(s, h->text[i], i >= h->n_prompt);
    c->n = h->n;
    c->n_prompt = h->n_prompt;
    if (s->grows) return;
    c->kept = hn_grow((void **)&c->text, &c->text_cap, (size_t)h->n, sizeof *c->text);
    if (c->kept && h->n > from) memcpy(c->text + from, h->text + from, (size_t)(h->n - from) * sizeof *c->text);
}

/* ---- bias and penalties ----------------------------------------------------------------------------------------- */

/* The new value of a logit: x, which stays finite if the logit was. */
static float logit_set(float logit, double x) {
    if (!isfinite(logit)) return (float)x;
    return (float)fmax(fmin(x, (double)FLT_MAX), -(double)FLT_MAX);
}

static void bias_apply(const hn_sampler *s, float *l) {
    for (int i = 0; i < s->params.n_bias; i++) {
        const hunch_bias *b = &s->bias[i];
        float *x = &l[b->token];
        *x = b->bias == -INFINITY ? -INFINITY : logit_set(*x, (double)*x + b->bias);
    }
}

static void penalise(const hn_sampler *s, float *l) {
    const hunch_sampling *p = &s->params;
    const penalties *c = s->penalties;
    const double repetition = p->repetition_penalty > 0 ? p->repetition_penalty : 1;
    for (int i = 0; i < c->n_tokens; i++) {
        const int32_t token = c->token[i], answer = c->count[token].answer;
        double x = (double)l[token];
        x = x > 0 ? x / repetition : x * repetition;
        if (answer > 0) x -= p->frequency_penalty * answer + p->presence_penalty;
        l[token] = logit_set(l[token], x);
    }
}

/* ---- DRY -------------------------------------------------------------------------------------------------------- */

/* A longer repetition counts as one of this length, which bounds the memory of the matches below. */
enum { LONGEST = 1024 };

/* The token i places before the last one. */
static inline int32_t token_back(const hn_history *h, int i) {
    return i < h->n_path ? h->path[h->n_path - 1 - i] : h->text[h->n - 1 - (i - h->n_path)];
}

static bool breaks(const hn_sampler *s, int32_t token) {
    const uint8_t *b = s->penalties->breakers;
    return b && has_logit(s, token) && (b[token / 8] >> (token % 8) & 1);
}

static void repeat_note(hn_sampler *s, int32_t token, int length, int *n) {
    int32_t *repeats = s->penalties->repeats;
    if (!has_logit(s, token) || breaks(s, token)) return;
    if (repeats[token] == 0) s->id[(*n)++] = token;
    if (length > repeats[token]) repeats[token] = length;
}

/* Fills repeats for the tokens that would extend a repetition of at least `allowed` tokens; s->id lists them. Returns their
 * number. In the reversed text, the length of the repetition that ends i tokens before the end is the length of the common
 * prefix of the text and its suffix from i on: the Z function, computed in linear time. */
static int repeats_find(hn_sampler *s, const hn_history *h, int allowed) {
    const int all = h->n + h->n_path, range = s->params.dry_range;
    const int len = range > 0 && range < all ? range : all;
    int z[LONGEST], limit = 0, n = 0;
    while (limit < len && limit < LONGEST && !breaks(s, token_back(h, limit))) limit++;
    if (limit < allowed) return 0;
    for (int i = 1, from = 0, to = 0; i < len; i++) { /* [from, to): the match that reaches farthest */
        int m = i < to ? z[i - from] : 0;
        if (i + m >= to) {
            m = i < to ? to - i : 0;
            while (m < limit && i + m < len && token_back(h, i + m) == token_back(h, m)) m++;
            from = i;
            to = i + m;
        }
        if (i < limit) z[i] = m;
        if (m >= allowed) repeat_note(s, token_back(h, i - 1), m, &n);
    }
    return n;
}

/* Changes the logits of the n tokens that s->id lists. */
static void dry_apply(hn_sampler *s, float *l, int allowed, int n) {
    const hunch_sampling *p = &s->params;
    const double base = p->dry_base > 0 ? p->dry_base : 1.75;
    for (int i = 0; i < n; i++) {
        const int32_t token = s->id[i];
        const double penalty = p->dry_multiplier * pow(base, s->penalties->repeats[token] - allowed);
        l[token] = logit_set(l[token], (double)l[token] - penalty);
        s->penalties->repeats[token] = 0;
    }
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

/* The tokens whose logits change after a history, by processor: s->bias, s->forbidden, the penalties' list, and n_repeated of s->id. */
typedef struct changes {
    int n_bias, n_forbidden, n_counted, n_repeated, allowed;
} changes;

bool hn_processors_act(const hn_sampler *s, uint64_t position) {
    return s->bias || s->penalties || s->constraint || position < s->forbidden_before;
}

/* How many tokens are forbidden after this history: none where the grammar allows no other. */
static int count_forbidden(hn_sampler *s, const hn_history *h) {
    const int allowed = s->constraint ? hn_constraint_find(s, h) : s->vocab;
    int both = 0;
    if (hn_history_position(h) >= s->forbidden_before) return 0;
    for (int i = 0; i < s->n_forbidden; i++) both += hn_constraint_allows(s, s->forbidden[i]);
    return both < allowed ? s->n_forbidden : 0;
}

static changes changes_begin(hn_sampler *s, const hn_history *h) {
    penalties *c = s->penalties;
    changes t = {.n_bias = s->params.n_bias, .n_forbidden = count_forbidden(s, h)};
    if (c && c->count) {
        count_text(s, h);
        for (int i = 0; i < h->n_path; i++) count_add(s, h->path[i], true);
        t.n_counted = c->n_tokens;
    }
    if (c && c->repeats) {
        t.allowed = s->params.dry_allowed_length > 0 ? s->params.dry_allowed_length : 2;
        t.n_repeated = repeats_find(s, h, t.allowed);
    }
    return t;
}

/* The i-th of them; several processors may change one token. */
static int32_t change_at(const hn_sampler *s, const changes *t, int i) {
    if (i < t->n_bias) return s->bias[i].token;
    i -= t->n_bias;
    if (i < t->n_forbidden) return s->forbidden[i];
    i -= t->n_forbidden;
    return i < t->n_counted ? s->penalties->token[i] : s->id[i - t->n_counted];
}

static int change_count(const changes *t) { return t->n_bias + t->n_forbidden + t->n_counted + t->n_repeated; }

static void changes_end(hn_sampler *s, const hn_history *h, const changes *t) {
    float *l = s->processed;
    bias_apply(s, l);
    if (s->penalties && s->penalties->count) {
        penalise(s, l);
        for (int i = h->n_path - 1; i >= 0; i--) count_remove(s, h->path[i]);
    }
    dry_apply(s, l, t->allowed, t->n_repeated);
    for (int i = 0; i < t->n_forbidden; i++) l[s->forbidden[i]] = -INFINITY;
}

const float *hn_processors_apply(hn_sampler *s, const float *logits, const hn_history *h) {
    if (!hn_processors_act(s, hn_history_position(h))) return logits;
    const changes t = changes_begin(s, h);
    hn_constraint_copy(s, logits, s->processed);
    changes_end(s, h, &t);
    return s->processed;
}

static void copy_one(const hn_sampler *s, const float *logits, int32_t token, float *to) {
    to[token] = hn_constraint_allows(s, token) ? logits[token] : -INFINITY;
}

/* Of two tokens of processed logits: the larger, of equal ones the lower id. */
static int32_t better_of(const float *l, int32_t a, int32_t b) {
    return l[b] > l[a] || (l[b] == l[a] && b < a) ? b : a;
}

int32_t hn_processors_best(hn_sampler *s, const float *logits, const hn_history *h, int32_t hint) {
    const float *l = logits;
    int32_t best = hint;
    if (hn_processors_act(s, hn_history_position(h))) {
        float *to = s->processed;
        const changes t = changes_begin(s, h);
        const int n = change_count(&t);
        if (best >= 0 && !hn_constraint_allows(s, best)) best = -1;
        for (int i = 0; i < n; i++)
            if (change_at(s, &t, i) == hint) best = -1; /* the best of the other tokens is unknown */
        if (best < 0) {
            hn_constraint_copy(s, logits, to);
        } else {
            for (int i = 0; i < n; i++) copy_one(s, logits, change_at(s, &t, i), to);
            to[best] = logits[best];
        }
        changes_end(s, h, &t);
        for (int i = 0; i < n && best >= 0; i++) best = better_of(to, best, change_at(s, &t, i));
        l = to;
    }
    if (best < 0) best = s->vocab_ops->argmax(l, s->vocab);
    return best >= 0 && l[best] > -INFINITY ? best : -1; /* -1 also if the row has no number but a hint */
}
