/* SPDX-License-Identifier: Apache-2.0 */
/* constraint.c - see constraint.h. */
#include "sample/constraint.h"

#include <string.h>

#include "base/mem.h"

/* Where an answer is: its state in the grammar, and what its thinking has spent. */
typedef struct place {
    int32_t state;
    hn_spent spent;
} place;

typedef struct hn_constraint {
    hn_matcher *matcher;     /* NULL: no grammar, */
    const hn_budget *budget; /* NULL: no budget; not both */
    int32_t *answer; /* the tokens after which `at` is, to compare the next text with */
    size_t cap;
    int n;
    place at;
    int32_t masked;  /* the state that `mask` is of; negative: of none */
    int allowed;     /* tokens in `mask`; vocab: all, and the mask is not filled */
    bool stuck;
    uint64_t *mask;  /* [(vocab + 63) / 64] */
} constraint;

static place start(const constraint *c) {
    return (place){c->matcher ? hn_matcher_start(c->matcher) : 0, c->budget ? hn_budget_start(c->budget) : (hn_spent){0}};
}

static hunch_status constraint_open(hn_sampler *s, hunch_error *err) {
    const size_t words = ((size_t)s->vocab + 63) / 64, bytes = (size_t)s->vocab * sizeof *s->processed;
    if (!s->constraint) s->constraint = hn_zalloc(1, sizeof *s->constraint);
    constraint *c = s->constraint;
    if (c && !c->mask) c->mask = hn_zalloc(words, sizeof *c->mask);
    if (!s->processed) s->processed = hn_alloc(bytes);
    if (!c || !c->mask || !s->processed) return hn_fail_memory(err, "a text's constraint", bytes);
    c->masked = HN_MATCH_NO;
    return HUNCH_OK;
}

hunch_status hn_sampler_constrain(hn_sampler *s, hn_matcher *m, hunch_error *err) {
    const hunch_status st = constraint_open(s, err);
    if (st) return st;
    s->constraint->matcher = m;
    s->constraint->at = start(s->constraint);
    return HUNCH_OK;
}

hunch_status hn_sampler_limit_thinking(hn_sampler *s, const hn_budget *b, hunch_error *err) {
    const hunch_status st = constraint_open(s, err);
    if (st) return st;
    s->constraint->budget = b;
    s->constraint->at = start(s->constraint);
    return HUNCH_OK;
}

void hn_constraint_fini(hn_sampler *s) {
    constraint *c = s->constraint;
    if (!c) return;
    hn_free(c->answer);
    hn_free(c->mask);
    hn_free(c);
}

hn_matcher *hn_sampler_matcher(const hn_sampler *s) {
    return s->constraint ? s->constraint->matcher : NULL;
}

bool hn_sampler_is_stuck(const hn_sampler *s) {
    return s->constraint && s->constraint->stuck;
}

/* Whether nothing may follow: behind an end token, or in a vocabulary that has none. */
static bool is_over(constraint *c, int32_t state) {
    return state == HN_MATCH_ENDED ||
           (state >= 0 && hn_matcher_is_final(c->matcher, state) && hn_matcher_mask(c->matcher, state, c->mask) == 0);
}

/* Behind the end a text stays there: rows of a tree are verified beyond it, though none of their tokens is emitted. */
static int32_t step(constraint *c, int32_t state, int32_t token) {
    if (state == HN_MATCH_ENDED) return state;
    const int32_t next = hn_matcher_next(c->matcher, state, token);
    if (next != HN_MATCH_NO || !hn_matcher_is_final(c->matcher, state)) return next;
    c->masked = HN_MATCH_NO;
    return is_over(c, state) ? HN_MATCH_ENDED : next;
}

static bool continues(const hn_sampler *s, const int32_t *answer, int n) {
    const constraint *c = s->constraint;
    return c->n <= n && (c->n == 0 || s->grows || memcmp(c->answer, answer, (size_t)c->n * sizeof *answer) == 0);
}

static place next(constraint *c, place at, int32_t token) {
    if (c->matcher && at.state >= 0) at.state = step(c, at.state, token);
    if (c->budget) at.spent = hn_budget_next(c->budget, at.spent, token);
    return at;
}

/* The place after the committed text. Without memory for the copy it is computed from the beginning each time. */
static place committed(hn_sampler *s, const hn_history *h) {
    constraint *c = s->constraint;
    const int32_t *answer = h->text + h->n_prompt;
    const int n = h->n - h->n_prompt;
    if (!continues(s, answer, n)) {
        c->n = 0;
        c->at = start(c);
    }
    const bool kept = s->grows || hn_grow((void **)&c->answer, &c->cap, (size_t)n, sizeof *c->answer);
    place at = c->at;
    for (int i = c->n; i < n; i++) at = next(c, at, answer[i]);
    if (!kept) return at;
    if (!s->grows && n > c->n) memcpy(c->answer + c->n, answer + c->n, (size_t)(n - c->n) * sizeof *answer);
    c->n = n;
    return c->at = at;
}

static place place_after(hn_sampler *s, const hn_history *h) {
    place at = committed(s, h);
    for (int i = 0; i < h->n_path; i++) at = next(s->constraint, at, h->path[i]);
    return at;
}

int32_t hn_sampler_state(hn_sampler *s, const hn_history *h) {
    return place_after(s, h).state;
}

bool hn_sampler_is_complete(hn_sampler *s, const hn_history *h) {
    constraint *c = s->constraint;
    c->masked = HN_MATCH_NO;
    return is_over(c, hn_sampler_state(s, h));
}

/* What the grammar allows in a state. */
static void mask_fill(const hn_sampler *s, constraint *c, int32_t state) {
    int n = state == HN_MATCH_ENDED || !c->matcher ? s->vocab : state >= 0 ? hn_matcher_mask(c->matcher, state, c->mask) : state;
    if (n == 0 && hn_matcher_is_final(c->matcher, state)) n = s->vocab; /* what is drawn behind the end is not emitted */
    c->stuck = n == HN_MATCH_FULL;
    c->allowed = n > 0 ? n : 0;
    c->masked = n >= 0 ? state : HN_MATCH_NO;
    if (c->allowed == 0) memset(c->mask, 0, ((size_t)s->vocab + 63) / 64 * sizeof *c->mask);
}

int hn_constraint_find(hn_sampler *s, const hn_history *h) {
    constraint *c = s->constraint;
    const place at = place_after(s, h);
    const int32_t forced = c->budget && at.state != HN_MATCH_ENDED ? hn_budget_forced(c->budget, at.spent) : -1;
    if (at.state < 0 || at.state != c->masked) mask_fill(s, c, at.state);
    if (forced < 0 || !hn_constraint_allows(s, forced)) return c->allowed;
    memset(c->mask, 0, ((size_t)s->vocab + 63) / 64 * sizeof *c->mask);
    c->mask[forced / 64] = (uint64_t)1 << (forced % 64);
    c->masked = HN_MATCH_NO;
    return c->allowed = 1;
}

bool hn_constraint_allows(const hn_sampler *s, int32_t token) {
    const constraint *c = s->constraint;
    return !c || c->allowed == s->vocab || (c->mask[token / 64] >> (token % 64) & 1);
}

void hn_constraint_copy(const hn_sampler *s, const float *logits, float *to) {
    const constraint *c = s->constraint;
    if (!c || c->allowed == s->vocab)
        memcpy(to, logits, (size_t)s->vocab * sizeof *to);
    else
        s->vocab_ops->mask(logits, c->mask, s->vocab, to);
}
