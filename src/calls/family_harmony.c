/* SPDX-License-Identifier: Apache-2.0 */
/* family_harmony.c - GPT-OSS: an answer of messages, each a header, <|message|>, a body and an end. A recipient in the header makes a call,
 * whatever its channel is; "analysis" is thinking, everything else text. */
#include "calls/call_families.h"

enum { HEADER, BODY, CALL_BEGIN, CALL, CALL_END };
#define MESSAGE "<|message|>"
#define START "<|start|>"
#define CHANNEL "<|channel|>"
static const char *const ends[] = {"<|end|>", "<|call|>", "<|return|>", START, CHANNEL, NULL};
enum { REAL_ENDS = 3 };

static bool fits(const char *text, size_t len) {
    return hn_has(text, len, "<|channel|>") && hn_has(text, len, "<|message|>");
}

/* What a header begins with. */
static hn_maybe header_begins(const hn_call_reader *r) {
    static const char *const first[] = {CHANNEL, START, MESSAGE, "<|constrain|>", " to=", "to="};
    hn_maybe all = HN_NO;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const hn_maybe found = hn_begins_with(r, 0, first[i]);
        if (found == HN_YES) return HN_YES;
        if (found == HN_UNKNOWN) all = HN_UNKNOWN;
    }
    return all;
}

/* The recipient, without "functions."; n 0: none. */
static hn_span recipient(const hn_call_reader *r, hn_span h) {
    static const char prefix[] = "functions.";
    const char *text = r->in.at + h.from,
               *at = h.n > 3 && memcmp(text, "to=", 3) == 0 ? text - 1 : memmem(text, h.n, " to=", 4);
    if (!at) return (hn_span){0};
    hn_span s = {h.from + (size_t)(at - text) + 4, 0};
    while (s.from + s.n < h.from + h.n && !hn_is_space(r->in.at[s.from + s.n]) && r->in.at[s.from + s.n] != '<') s.n++;
    if (s.n > sizeof prefix - 1 && memcmp(r->in.at + s.from, prefix, sizeof prefix - 1) == 0) {
        s.from += sizeof prefix - 1;
        s.n -= sizeof prefix - 1;
    }
    return s;
}

static bool is_thinking(const hn_call_reader *r, hn_span h) {
    static const char name[] = CHANNEL "analysis";
    return memmem(r->in.at + h.from, h.n, name, sizeof name - 1) != NULL;
}

/* A whole header was read. */
static hn_call_events message(hn_call_reader *r, size_t n) {
    const hn_span h = {r->at, n}, to = recipient(r, h);
    r->from = r->at;
    r->flag = is_thinking(r, h);
    hn_pass(r, n + strlen(MESSAGE));
    r->step = BODY;
    if (to.n == 0) return HN_CALL_AGAIN;
    const hn_call_events event = hn_call_begin(r, r->in.at + to.from, to.n, NULL, 0);
    if (event == HN_CALL_AGAIN) r->step = CALL_BEGIN;
    if (event != HN_CALL_NOT) return event;
    r->flag = false;
    hn_call_text(r); /* who it is for is not known: all of it is text */
    return HN_CALL_AGAIN;
}

static hn_call_events header(hn_call_reader *r) {
    static const char *const until[] = {MESSAGE, "<|end|>", "<|call|>", "<|return|>", NULL};
    int which = -1;
    r->from = r->at;
    if (hn_left(r) == 0) return hn_more_or(r, HN_CALL_CLOSED);
    const hn_maybe begins = r->looked ? HN_YES : header_begins(r);
    if (begins == HN_UNKNOWN) return HN_CALL_MORE;
    if (begins == HN_YES && hn_begins_with(r, 0, START "assistant") == HN_YES) {
        hn_pass(r, strlen(START "assistant"));
        return HN_CALL_AGAIN;
    }
    const size_t n = begins == HN_YES ? hn_find(r, until, &which) : SIZE_MAX;
    if (n != SIZE_MAX && which == 0 && n <= HN_LONGEST_NAME) return message(r, n);
    if (begins == HN_YES && n == SIZE_MAX && r->looked <= HN_LONGEST_NAME) return HN_CALL_MORE;
    r->flag = false; /* there is none: a model that writes none answers all the same */
    r->step = BODY;
    if (begins == HN_YES) hn_answer_add(r, false, hn_next_bytes(r), 1), hn_pass(r, 1);
    r->looked = 0;
    return HN_CALL_AGAIN;
}

static hn_call_events body(hn_call_reader *r) {
    int which;
    const size_t n = hn_find(r, ends, &which), len = n == SIZE_MAX ? r->looked : n;
    hn_answer_add(r, r->flag, hn_next_bytes(r), len);
    hn_pass(r, len);
    r->from = r->at;
    if (n == SIZE_MAX) return hn_more_or(r, HN_CALL_CLOSED);
    if (which < REAL_ENDS) hn_pass(r, strlen(ends[which]));
    r->step = HEADER;
    return HN_CALL_AGAIN;
}

static hn_call_events call_begin(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) != '{') return HN_CALL_BREAKS;
    hn_json_scan_init(&r->scan);
    r->step = CALL;
    return HN_CALL_AGAIN;
}

static hn_call_events call(hn_call_reader *r) {
    const hn_call_events event = hn_read_args(r);
    if (event != HN_CALL_CLOSED) return event;
    r->step = CALL_END;
    return HN_CALL_AGAIN;
}

/* The body must be the arguments alone. */
static hn_call_events call_end(hn_call_reader *r) {
    const size_t i = hn_space_ahead(r, 0);
    bool unknown = i == hn_left(r) && !r->ended, is = i == hn_left(r) && r->ended;
    for (int k = 0; ends[k] && i < hn_left(r) && !is; k++) {
        const hn_maybe found = hn_begins_with(r, i, ends[k]);
        unknown = unknown || found == HN_UNKNOWN;
        is = found == HN_YES;
        if (is) hn_pass(r, i + (k < REAL_ENDS ? strlen(ends[k]) : 0));
    }
    if (!is) return unknown ? HN_CALL_MORE : HN_CALL_BREAKS;
    hn_call_done(r);
    r->step = HEADER;
    return HN_CALL_AGAIN;
}

static hn_call_events read(hn_call_reader *r) {
    if (r->step == HEADER && r->opened >= 0) { /* the mark is part of the header */
        r->at = r->from;
        r->opened = -2;
    }
    switch (r->step) {
    case HEADER: return header(r);
    case BODY: return body(r);
    case CALL_BEGIN: return call_begin(r);
    case CALL: return call(r);
    default: return call_end(r);
    }
}

const hn_call_family hn_calls_harmony = {.name = "gpt-oss",
                                         .opens = (const char *const[]){START, CHANNEL, NULL},
                                         .closes = (const char *const[]){"<|call|>", "<|end|>", "<|return|>", NULL},
                                         .at_start = true,
                                         .fits = fits,
                                         .grammar = hn_grammar_harmony,
                                         .may = hn_grammar_may_harmony,
                                         .read = read};
