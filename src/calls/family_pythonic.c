/* SPDX-License-Identifier: Apache-2.0 */
/* family_pythonic.c - calls in Python's spelling: Llama 3.2 and 4, as the whole answer; LFM2, between marks. */
#include "calls/call_families.h"

enum { CLOSE = 100, ECHO_OF_IT };
#define END "<|tool_call_end|>"

static bool fits_llama(const char *text, size_t len) {
    return hn_has(text, len, "func_name1(params_name1=");
}

static bool fits_lfm2(const char *text, size_t len) {
    return hn_has(text, len, "<|tool_call_start|>") || hn_has(text, len, "<|tool_list_start|>");
}

/* The mark may be missing. LFM2 sometimes writes the list again behind it, and the mark. */
static hn_call_events close(hn_call_reader *r) {
    const size_t i = hn_space_ahead(r, 0);
    if (i == hn_left(r)) return hn_more_or(r, HN_CALL_CLOSED);
    const hn_maybe found = hn_begins_with(r, i, END);
    if (found == HN_UNKNOWN) return HN_CALL_MORE;
    if (found == HN_NO) return HN_CALL_CLOSED;
    hn_pass(r, i + strlen(END));
    r->from = r->at;
    r->step = ECHO_OF_IT;
    return HN_CALL_AGAIN;
}

static hn_call_events echo(hn_call_reader *r) {
    const char *const until[] = {END, r->family->opens[0], NULL};
    int which;
    const size_t i = hn_space_ahead(r, 0);
    if (i == hn_left(r)) return hn_more_or(r, HN_CALL_CLOSED);
    if (hn_next_bytes(r)[i] != '[') return HN_CALL_CLOSED;
    const size_t n = hn_find(r, until, &which);
    if (n == SIZE_MAX && !r->ended) return HN_CALL_MORE;
    if (n == SIZE_MAX || which == 1) return HN_CALL_CLOSED;
    hn_pass(r, n + strlen(END));
    r->from = r->at;
    return HN_CALL_CLOSED;
}

static hn_call_events read_lfm2(hn_call_reader *r) {
    if (r->step == CLOSE) return close(r);
    if (r->step == ECHO_OF_IT) return echo(r);
    const hn_call_events event = hn_read_python(r);
    if (event != HN_CALL_CLOSED) return event;
    r->step = CLOSE;
    return HN_CALL_AGAIN;
}

const hn_call_family hn_calls_llama_pythonic = {.name = "llama-pythonic",
                                                .at_start = true,
                                                .fits = fits_llama,
                                                .grammar = hn_grammar_python,
                                                .may = hn_grammar_may_pythonic,
                                                .read = hn_read_python};
const hn_call_family hn_calls_lfm2 = {.name = "lfm2",
                                      .opens = (const char *const[]){"<|tool_call_start|>", NULL},
                                      .closes = (const char *const[]){END, NULL},
                                      .drops = (const char *const[]){END, NULL},
                                      .fits = fits_lfm2,
                                      .grammar = hn_grammar_python,
                                      .read = read_lfm2};
