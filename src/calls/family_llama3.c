/* SPDX-License-Identifier: Apache-2.0 */
/* family_llama3.c - Llama 3: an answer that is an object {"name": .., "parameters": {..}}, several with "; " between them, or, of a
 * built-in tool, <|python_tag|>name.call(key="value"). */
#include "calls/call_families.h"

enum { BEGIN = 0, BUILT_IN = 100, BUILT_IN_KEY, BUILT_IN_VALUE, BUILT_IN_OVER };

static bool fits(const char *text, size_t len) {
    return hn_has(text, len, "<|python_tag|>") ||
           (hn_has(text, len, "\"parameters\": ") && hn_has(text, len, "<|eot_id|>"));
}

static const hn_block how = {.object = true, .needs_args = true, .between = ";,"};

/* name.call( */
static hn_call_events built_in(hn_call_reader *r) {
    const char *const until[] = {".call(", NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_NOT;
    if (n == SIZE_MAX) return hn_more_or(r, HN_CALL_NOT);
    const hn_span s = hn_trim(r, (hn_span){r->at, n});
    const hn_call_events event = hn_call_begin(r, r->in.at + s.from, s.n, NULL, 0);
    if (event != HN_CALL_AGAIN) return event;
    hn_pass(r, n + 6);
    r->step = BUILT_IN_KEY;
    return HN_CALL_AGAIN;
}

/* key=" or the end. */
static hn_call_events built_in_key(hn_call_reader *r) {
    const char *const until[] = {"=\"", ")", NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if (n == SIZE_MAX) return r->looked > HN_LONGEST_NAME ? HN_CALL_BREAKS : HN_CALL_MORE;
    if (which == 1 && hn_trim(r, (hn_span){r->at, n}).n) return HN_CALL_BREAKS;
    if (which == 1) return hn_pass(r, 1), hn_args_close(r), hn_call_done(r), HN_CALL_CLOSED;
    hn_span s = hn_trim(r, (hn_span){r->at, n});
    if (s.n && r->in.at[s.from] == ',') s = hn_trim(r, (hn_span){s.from + 1, s.n - 1});
    hn_args_member(r, r->in.at + s.from, s.n);
    hn_call_args(r, "\"", 1);
    hn_pass(r, n + 2);
    r->step = BUILT_IN_VALUE;
    return HN_CALL_AGAIN;
}

/* Whether the quote at `n` ends a value: quotes in values are not escaped, so the call's end or another key has to follow. */
static hn_maybe value_ends(const hn_call_reader *r, size_t n) {
    const char *p = hn_next_bytes(r);
    const size_t left = hn_left(r);
    const hn_maybe none = r->ended ? HN_NO : HN_UNKNOWN;
    size_t i = hn_space_ahead(r, n + 1);
    if (i == left) return none;
    if (p[i] == ')') return hn_space_ahead(r, i + 1) < left ? HN_NO : r->ended ? HN_YES : HN_UNKNOWN;
    if (p[i] != ',') return HN_NO;
    const size_t key = i = hn_space_ahead(r, i + 1);
    while (i < left && !strchr("=\"',() \n", p[i])) i++;
    if (i + 1 >= left) return none;
    return i > key && p[i] == '=' && p[i + 1] == '"' ? HN_YES : HN_NO;
}

static hn_call_events built_in_value(hn_call_reader *r) {
    size_t n = r->looked;
    for (; n < hn_left(r); n++) {
        const hn_maybe ends = hn_next_bytes(r)[n] == '"' ? value_ends(r, n) : HN_NO;
        if (ends == HN_UNKNOWN) break;
        if (ends == HN_NO) continue;
        hn_args_string(r, hn_next_bytes(r), n);
        hn_call_args(r, "\"", 1);
        hn_pass(r, n + 1);
        r->step = BUILT_IN_KEY;
        return HN_CALL_AGAIN;
    }
    r->looked = n;
    return HN_CALL_MORE;
}

static hn_call_events read(hn_call_reader *r) {
    if (r->step == BEGIN && r->opened == 0) { /* behind the tag: an object or a built-in tool */
        if (!hn_skip_space(r)) return HN_CALL_MORE;
        if (*hn_next_bytes(r) != '{') r->step = BUILT_IN;
    }
    switch (r->step) {
    case BUILT_IN: return built_in(r);
    case BUILT_IN_KEY: return built_in_key(r);
    case BUILT_IN_VALUE: return built_in_value(r);
    default: return hn_read_block(r);
    }
}

const hn_call_family hn_calls_llama3 = {.name = "llama3",
                                        .opens = (const char *const[]){"<|python_tag|>", NULL},
                                        .at_start = true,
                                        .fits = fits,
                                        .grammar = hn_grammar_llama3,
                                        .may = hn_grammar_may_llama3,
                                        .read = read,
                                        .how = &how};
