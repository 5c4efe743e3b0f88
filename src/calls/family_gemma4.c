/* SPDX-License-Identifier: Apache-2.0 */
/* family_gemma4.c - Gemma 4: <|tool_call>call:name{key:value,..}<tool_call|>, strings between <|"|>. The model's own variants are read,
 * too: name(key=value), plain quotes, a mark or a comma that is missing. */
#include "calls/call_families.h"

enum { BEGIN, NAME, VALUE, CLOSE };
#define CALL "call:"
#define END "<tool_call|>"

static bool fits(const char *text, size_t len) {
    return hn_has(text, len, "<|tool_call>call:");
}

static hn_call_events begin(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    const hn_maybe found = hn_begins_with(r, 0, CALL);
    if (found == HN_UNKNOWN) return HN_CALL_MORE;
    if (found == HN_NO) return HN_CALL_BREAKS;
    hn_pass(r, strlen(CALL));
    r->step = NAME;
    return HN_CALL_AGAIN;
}

static hn_call_events name(hn_call_reader *r) {
    static const char *const until[] = {"{", "(", NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_BREAKS;
    if (n == SIZE_MAX) return HN_CALL_MORE;
    const hn_span s = hn_trim(r, (hn_span){r->at, n});
    const hn_call_events event = hn_call_begin(r, r->in.at + s.from, s.n, NULL, 0);
    hn_pass(r, n);
    hn_literal_init(&r->literal, HN_GEMMA);
    r->step = VALUE;
    return event;
}

static hn_call_events value(hn_call_reader *r) {
    size_t used;
    const hn_literal_events event = hn_literal_run(&r->literal, hn_next_bytes(r), hn_left(r), r->ended, &used, &r->args);
    r->failed = r->failed || r->literal.no_memory;
    hn_call_args(r, NULL, 0);
    hn_pass(r, used);
    if (event != HN_LITERAL_DONE) return event == HN_LITERAL_MORE ? HN_CALL_MORE : HN_CALL_BREAKS;
    hn_call_done(r);
    r->step = CLOSE;
    return HN_CALL_AGAIN;
}

static hn_call_events read(hn_call_reader *r) {
    switch (r->step) {
    case BEGIN: return begin(r);
    case NAME: return name(r);
    case VALUE: return value(r);
    default: break;
    }
    const size_t i = hn_space_ahead(r, 0);
    if (i == hn_left(r)) return hn_more_or(r, HN_CALL_CLOSED);
    const hn_maybe found = hn_begins_with(r, i, END);
    if (found == HN_YES) hn_pass(r, i + strlen(END));
    return found == HN_UNKNOWN ? HN_CALL_MORE : HN_CALL_CLOSED;
}

const hn_call_family hn_calls_gemma4 = {.name = "gemma4",
                                        .opens = (const char *const[]){"<|tool_call>", NULL},
                                        .closes = (const char *const[]){END, NULL},
                                        .drops = (const char *const[]){END, "<|tool_response>", NULL},
                                        .stop = "<|tool_response>",
                                        .fits = fits,
                                        .grammar = hn_grammar_gemma,
                                        .read = read};
