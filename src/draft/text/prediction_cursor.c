/* SPDX-License-Identifier: Apache-2.0 */
/* prediction_cursor.c - see prediction_cursor.h. */
#include "draft/text/prediction_cursor.h"

#include <stdlib.h>
#include <string.h>

enum {
    START_AGREED = 2, /* agreement that a new prediction starts with */
    FIRM = 4,         /* tokens that must agree before a place counts as established */
    NEAR = 4,         /* tokens after the break within which one agreeing token is enough */
    TAIL_MOST = 16,   /* agreement is counted up to here */
    GUESSED = 2,      /* tokens assumed to be replaced one for one */
    PLACES = 128,     /* tried anywhere in the text */
    PRIOR_TOKENS = 2  /* tokens that found_rate counts against those that agreed */
};
/* Averages: their initial values, and the weight of the newest outcome. */
static const float OTHER_RATE = .2f, OTHER_STEP = 1 / 16.f;
static const float FOUND_RATE = .75f, FOUND_STEP = 1 / 8.f, BREAK_RATE = .02f, BREAK_STEP = 1 / 64.f;
static const float MIN_REACHED = .2f; /* a token less likely to be reached is not drafted */

void hn_cursor_init(hn_cursor *c) {
    *c = (hn_cursor){.agreed = START_AGREED, .edit = -1, .other_rate = OTHER_RATE, .found_rate = FOUND_RATE, .break_rate = BREAK_RATE};
}

/* The prediction is followed from here. */
static void found(hn_cursor *c, int at, int agreed) {
    c->at = at;
    c->agreed = agreed;
    c->off = 0;
    c->edit = -1;
}

/* ---- edits ------------------------------------------------------------------------------------------------------- */

/* Whether the prediction has at `at` the tokens that this edit replaced. */
static bool edit_fits(const hn_cursor_edit *e, const hn_prediction_text *x, int at) {
    return e->len > 0 && at >= 0 && at + e->len <= x->n &&
           !memcmp(x->token + at, x->token + e->at, (size_t)e->len * sizeof *x->token);
}

/* The newest edit for this place, or -1. */
static int edit_at(const hn_cursor *c, const hn_prediction_text *x, int at) {
    for (int k = c->n_edits - 1; k >= 0 && k >= c->n_edits - HN_CURSOR_EDITS; k--)
        if (edit_fits(&c->edits[k % HN_CURSOR_EDITS], x, at)) return k % HN_CURSOR_EDITS;
    return -1;
}

/* prediction[base..end) became `n` emitted tokens. Stores edits that may repeat: not insertions, which replace no
 * tokens, not single omitted tokens, not long passages. */
static void edit_keep(hn_cursor *c, const hn_prediction_text *x, int end, const int32_t *token, int n) {
    const int len = end - c->base;
    if (len < 1 || len > HN_CURSOR_SPAN || n < 0 || n > HN_CURSOR_SPAN || len + n < 2) return;
    const int known = edit_at(c, x, c->base);
    if (known >= 0 && c->edits[known].len == len)
        c->edits[known].len = 0; /* it was replaced by something else this time */
    hn_cursor_edit *e = &c->edits[c->n_edits++ % HN_CURSOR_EDITS];
    *e = (hn_cursor_edit){.at = c->base, .len = len, .n = n};
    memcpy(e->token, token, (size_t)n * sizeof *token);
}

/* The token is the one after the tokens that this edit omitted. */
static bool edit_skips(hn_cursor *c, const hn_prediction_text *x, const hn_cursor_edit *e, int32_t token) {
    const int at = c->base + e->len;
    if (at >= x->n || x->token[at] != token) return false;
    found(c, at + 1, c->agreed_before + 1);
    return true;
}

/* The tokens since the break are those of an edit, or its beginning. */
static bool edit_follow(hn_cursor *c, const hn_prediction_text *x, const int32_t *end) {
    const int k = edit_at(c, x, c->base);
    c->edit = -1;
    if (k < 0) return false;
    const hn_cursor_edit *e = &c->edits[k];
    if (e->n == 0 && c->off == 1 && edit_skips(c, x, e, end[-1])) return true;
    if (c->off > e->n || memcmp(e->token, end - c->off, (size_t)c->off * sizeof *end)) return false;
    c->at = -1;
    c->edit = k;
    if (c->off < e->n) return true;
    found(c, c->base + e->len, c->agreed_before + e->n); /* as without a difference */
    return true;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

typedef struct search {
    const hn_cursor *c;
    const hn_prediction_text *x;
    const int32_t *end; /* of the emitted tokens, of which there are n */
    int n, window;
    int at, tail; /* the best place so far, at -1: none */
    int margin, distance;
} search;

/* How many tokens before `at` agree with the last ones emitted. */
static int tail_of(const search *s, int at) {
    int tail = 0;
    while (tail < TAIL_MOST && tail < at && tail < s->n && s->x->token[at - 1 - tail] == s->end[-1 - tail]) tail++;
    return tail;
}

/* Tries a place: the newest token would be at at - 1. */
static void place_try(search *s, int at) {
    if (s->x->token[at - 1] != s->end[-1]) return;
    const int from_base = at - 1 - s->c->base, from_firm = at - 1 - s->c->firm;
    const int distance = abs(from_base) < abs(from_firm) ? abs(from_base) : abs(from_firm);
    const bool near = (from_base >= 0 && from_base <= NEAR) || (from_firm >= 0 && from_firm <= NEAR);
    const int tail = tail_of(s, at), margin = tail - (near ? 1 : distance <= s->window ? 2 : HN_ANCHOR);
    if (margin < 0 || (s->at >= 0 && (margin < s->margin || (margin == s->margin && distance >= s->distance)))) return;
    s->at = at;
    s->tail = tail;
    s->margin = margin;
    s->distance = distance;
}

static void window_try(search *s, int around) {
    const int from = around - s->window > 0 ? around - s->window : 0;
    for (int at = from + 1; at <= s->x->n && at <= around + s->window; at++) place_try(s, at);
}

static void anywhere_try(search *s) {
    if (s->n < HN_ANCHOR) return;
    int at = hn_prediction_text_first(s->x, s->end - HN_ANCHOR);
    for (int k = 0; k < PLACES && at >= 0; k++, at = hn_prediction_text_next(s->x, at)) place_try(s, at);
}

/* Whether the token after a place is `next`, or that after one of the places so far. */
static bool same_next(const hn_prediction_text *x, int place, int32_t next, const int *at, int n) {
    bool same = x->token[place] == next;
    for (int i = 0; i < n; i++) same |= x->token[at[i]] == x->token[place];
    return same;
}

int hn_prediction_others(const hn_prediction_text *x, const int32_t *text, int n, int32_t next, int at[HN_CURSOR_PLACES], int most) {
    const search s = {.x = x, .end = text + n, .n = n};
    int found = 0;
    if (n < FIRM) return 0;
    int place = hn_prediction_text_first(x, s.end - HN_ANCHOR);
    for (int k = 0; k < PLACES && place >= 0 && found < most; k++, place = hn_prediction_text_next(x, place))
        if (place < x->n && tail_of(&s, place) >= FIRM && !same_next(x, place, next, at, found)) at[found++] = place;
    return found;
}

/* Whether one of the other places, if there are any, has the token next; it is known how often that is so. */
static void others_learn(hn_cursor *c, const hn_prediction_text *x, const int32_t *emitted, int i) {
    int at[HN_CURSOR_PLACES];
    const int32_t own = c->at >= 0 && c->at < x->n ? x->token[c->at] : -1;
    const int n = hn_prediction_others(x, emitted, i, own, at, HN_CURSOR_PLACES);
    bool right = false;
    for (int k = 0; k < n; k++) right |= x->token[at[k]] == emitted[i];
    if (n > 0) c->other_rate += (right - c->other_rate) * OTHER_STEP;
}

/* ---- following --------------------------------------------------------------------------------------------------- */

/* The token is the expected one; tokens that differed before it, if any, were replaced one for one. */
static void agree(hn_cursor *c, const hn_prediction_text *x, const int32_t *end) {
    if (c->off > 0) {
        edit_keep(c, x, c->at, end - 1 - c->off, c->off);
    } else {
        const int k = edit_at(c, x, c->at);
        if (k >= 0) c->edits[k].len = 0; /* not replaced this time: no longer expected */
    }
    found(c, c->at + 1, c->agreed + 1);
}

static void differ(hn_cursor *c, const hn_prediction_text *x, const int32_t *end, int n, int window) {
    if (c->off == 0) {
        c->base = c->at;
        c->agreed_before = c->agreed;
        if (c->agreed >= FIRM) c->firm = c->base;
    }
    c->off++;
    c->agreed = 0;
    if (edit_follow(c, x, end)) return;
    search s = {.c = c, .x = x, .end = end, .n = n, .window = window, .at = -1};
    window_try(&s, c->base);
    window_try(&s, c->firm);
    anywhere_try(&s);
    if (s.at >= 0) {
        const int same = s.tail < c->off ? s.tail : c->off;
        edit_keep(c, x, s.at - same, end - c->off, c->off - same);
        found(c, s.at, s.tail);
    } else {
        c->at = c->off <= GUESSED && c->base + c->off < x->n ? c->base + c->off : -1;
    }
}

void hn_cursor_advance(hn_cursor *c, const hn_prediction_text *x, const int32_t *emitted, int i, int window) {
    others_learn(c, x, emitted, i);
    const bool expects = c->at >= 0 && c->at < x->n, agrees = expects && x->token[c->at] == emitted[i];
    if (expects && c->agreed >= FIRM)
        c->break_rate += (!agrees - c->break_rate) * BREAK_STEP;
    else if (expects)
        c->found_rate += (agrees - c->found_rate) * FOUND_STEP;
    if (agrees)
        agree(c, x, emitted + i + 1);
    else
        differ(c, x, emitted + i + 1, i + 1, window);
}

/* ---- drafting ---------------------------------------------------------------------------------------------------- */

typedef struct drafting {
    const hn_cursor *c;
    hn_draft_chain *out;
    int agreed, most;
    float reached; /* probability that the next token's row is reached */
} drafting;

/* The probability of a wrong place decreases as tokens agree; besides, the text may differ from here on. */
static bool draft_token(drafting *d, int32_t token) {
    const float n = (float)(d->agreed + d->out->len);
    const float estimate = (n + PRIOR_TOKENS * d->c->found_rate) / (n + PRIOR_TOKENS) * (1 - d->c->break_rate);
    d->reached *= estimate;
    return d->out->len < d->most && d->reached >= MIN_REACHED && hn_draft_chain_push(d->out, token, estimate);
}

void hn_cursor_draft(const hn_cursor *c, const hn_prediction_text *x, int most, hn_draft_chain *out) {
    const hn_cursor_edit *e = c->edit >= 0 ? &c->edits[c->edit] : NULL;
    drafting d = {c, out, e ? c->agreed_before : c->agreed, most, 1};
    int at = e ? c->base + e->len : c->at;
    for (int k = c->off; e && k < e->n; k++)
        if (!draft_token(&d, e->token[k])) return;
    while (at >= 0 && at < x->n) {
        const int k = edit_at(c, x, at);
        const int32_t *token = k >= 0 ? c->edits[k].token : x->token + at;
        for (int i = 0; i < (k >= 0 ? c->edits[k].n : 1); i++)
            if (!draft_token(&d, token[i])) return;
        at += k >= 0 ? c->edits[k].len : 1;
    }
}
