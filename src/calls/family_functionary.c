/* SPDX-License-Identifier: Apache-2.0 */
/* family_functionary.c - functionary 3.2: parts that each begin with ">>>" (the first one in the prompt) and a line that names who gets
 * it: a function, and its arguments follow, or "all", and text does. */
#include "calls/call_families.h"

enum { RECIPIENT, ARGS_BEGIN, ARGS };

static bool fits(const char *text, size_t len) {
    return hn_has(text, len, ">>>all");
}

static hn_call_events recipient(hn_call_reader *r) {
    static const char *const until[] = {"\n", NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_NOT;
    if (n == SIZE_MAX) return hn_more_or(r, r->n_done ? HN_CALL_MORE : HN_CALL_NOT);
    const hn_span s = hn_trim(r, (hn_span){r->at, n});
    const bool all = hn_span_is(r, s, "all");
    const hn_call_events event = all ? HN_CALL_CLOSED : hn_call_begin(r, r->in.at + s.from, s.n, NULL, 0);
    if (event == HN_CALL_NOT) return HN_CALL_NOT;
    hn_pass(r, n + 1);
    r->step = ARGS_BEGIN;
    return event;
}

static hn_call_events args_begin(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) != '{') return HN_CALL_BREAKS;
    hn_json_scan_init(&r->scan);
    r->step = ARGS;
    return HN_CALL_AGAIN;
}

static hn_call_events read(hn_call_reader *r) {
    if (r->step == RECIPIENT) return recipient(r);
    if (r->step == ARGS_BEGIN) return args_begin(r);
    const hn_call_events event = hn_read_args(r);
    if (event == HN_CALL_CLOSED) hn_call_done(r);
    return event;
}

const hn_call_family hn_calls_functionary = {.name = "functionary-3.2",
                                             .opens = (const char *const[]){">>>", NULL},
                                             .at_start = true,
                                             .text_arguments = true,
                                             .fits = fits,
                                             .grammar = hn_grammar_functionary,
                                             .may = hn_grammar_may_functionary,
                                             .read = read};
