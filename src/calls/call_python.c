/* SPDX-License-Identifier: Apache-2.0 */
/* call_python.c - calls as a list of Python's: [name(key=value, ..), ..], keyword arguments alone, values literals. */
#include "calls/call_families.h"

enum { BEGIN, CALL, ARG, VALUE, AFTER_VALUE, AFTER_CALL };

/* A name up to a letter that ends it. HN_CALL_BREAKS: something else stands there. */
static hn_call_events name_until(hn_call_reader *r, char end, hn_span *s) {
    const char *p = hn_next_bytes(r);
    size_t n = 0;
    while (n < hn_left(r) && p[n] != end && !strchr("()[]{},\"'<>\n", p[n])) n++;
    if (n > HN_LONGEST_NAME) return HN_CALL_BREAKS;
    if (n == hn_left(r)) return HN_CALL_MORE;
    *s = hn_trim(r, (hn_span){r->at, n});
    return p[n] == end && s->n ? HN_CALL_AGAIN : HN_CALL_BREAKS;
}

static hn_call_events call(hn_call_reader *r) {
    hn_span s;
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    hn_call_events event = name_until(r, '(', &s);
    if (event == HN_CALL_BREAKS) return r->n_calls == r->entered ? HN_CALL_NOT : event;
    if (event == HN_CALL_AGAIN) event = hn_call_begin(r, r->in.at + s.from, s.n, NULL, 0);
    if (event != HN_CALL_AGAIN) return event;
    hn_pass(r, s.from + s.n - r->at);
    hn_pass(r, hn_space_ahead(r, 0) + 1);
    r->step = ARG;
    return HN_CALL_AGAIN;
}

static hn_call_events call_close(hn_call_reader *r) {
    hn_pass(r, 1);
    hn_args_close(r);
    hn_call_done(r);
    r->step = AFTER_CALL;
    return HN_CALL_AGAIN;
}

static hn_call_events arg(hn_call_reader *r) {
    hn_span s;
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) == ')') return call_close(r);
    const hn_call_events event = name_until(r, '=', &s);
    if (event != HN_CALL_AGAIN) return event;
    hn_args_member(r, r->in.at + s.from, s.n);
    hn_pass(r, s.from + s.n - r->at);
    hn_pass(r, hn_space_ahead(r, 0) + 1);
    hn_literal_init(&r->literal, HN_PYTHON_WRITTEN);
    r->literal.argument = true;
    r->step = VALUE;
    return HN_CALL_AGAIN;
}

static hn_call_events value(hn_call_reader *r) {
    size_t used;
    const hn_literal_events event = hn_literal_run(&r->literal, hn_next_bytes(r), hn_left(r), r->ended, &used, &r->args);
    r->failed = r->failed || r->literal.no_memory;
    hn_call_args(r, NULL, 0);
    hn_pass(r, used);
    if (event == HN_LITERAL_DONE) r->step = AFTER_VALUE;
    return event == HN_LITERAL_DONE ? HN_CALL_AGAIN : event == HN_LITERAL_MORE ? HN_CALL_MORE : HN_CALL_BREAKS;
}

static hn_call_events after_value(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) == ')') return call_close(r);
    if (*hn_next_bytes(r) != ',') return HN_CALL_BREAKS;
    hn_pass(r, 1);
    r->step = ARG;
    return HN_CALL_AGAIN;
}

static hn_call_events after_call(hn_call_reader *r) {
    if (!hn_skip_space(r)) return hn_more_or(r, HN_CALL_CLOSED);
    const char c = *hn_next_bytes(r);
    if (c == ']' || c == ',') hn_pass(r, 1);
    if (c == ']') r->from = r->at;
    r->step = CALL;
    return c == ']' ? HN_CALL_CLOSED : c == ',' ? HN_CALL_AGAIN : HN_CALL_BREAKS;
}

static hn_call_events begin(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) != '[') return HN_CALL_NOT;
    hn_pass(r, 1);
    r->step = CALL;
    return HN_CALL_AGAIN;
}

hn_call_events hn_read_python(hn_call_reader *r) {
    switch (r->step) {
    case BEGIN: return begin(r);
    case CALL: return call(r);
    case ARG: return arg(r);
    case VALUE: return value(r);
    case AFTER_VALUE: return after_value(r);
    default: return after_call(r);
    }
}
