/* SPDX-License-Identifier: Apache-2.0 */
/* call_markup.c - see call_markup.h. Nothing is escaped in values, so one ends at a mark that is followed by what may follow it: another
 * parameter, the end of the call, or the end of the answer. */
#include "calls/call_markup.h"

enum { BLOCK, NAME, PARAMS, PARAM, VALUE_OPEN, VALUE_BEGIN, VALUE, OVER };
#define CDATA "<![CDATA["

static const hn_markup *how(const hn_call_reader *r) {
    return r->family->how;
}

/* Behind the mark that opens a block: the first call. */
static hn_call_events block(hn_call_reader *r) {
    const hn_markup *m = how(r);
    const bool direct = *m->name_open && r->opened >= 0 && strcmp(r->family->opens[r->opened], m->name_open) == 0;
    r->step = NAME;
    if (direct || !*m->name_open) return HN_CALL_AGAIN;
    r->step = BLOCK;
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    const hn_maybe found = hn_begins_with(r, 0, m->name_open);
    if (found == HN_UNKNOWN) return HN_CALL_MORE;
    if (found == HN_NO) return HN_CALL_NOT;
    hn_pass(r, strlen(m->name_open));
    r->step = NAME;
    return HN_CALL_AGAIN;
}

static hn_call_events name(hn_call_reader *r) {
    const hn_markup *m = how(r);
    const char *const until[] = {m->name_close ? m->name_close : "\n", m->name_close ? NULL : m->param_open, m->call_close, NULL};
    int which;
    if (r->looked == 0 && !*m->name_open) { /* a line break before the name ends none */
        if (!hn_skip_space(r)) return HN_CALL_MORE;
    }
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_NOT;
    if (n == SIZE_MAX) return HN_CALL_MORE;
    const hn_span s = hn_trim(r, (hn_span){r->at, n});
    const hn_call_events event = hn_call_begin(r, r->in.at + s.from, s.n, NULL, 0);
    if (event != HN_CALL_AGAIN) return event;
    r->name = s;
    hn_pass(r, n + (which == 0 ? strlen(until[0]) : 0));
    r->step = PARAMS;
    return HN_CALL_AGAIN;
}

static hn_call_events params(hn_call_reader *r) {
    const hn_markup *m = how(r);
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    const hn_maybe more = hn_begins_with(r, 0, m->param_open), end = hn_begins_with(r, 0, m->call_close);
    if (more == HN_YES) {
        hn_pass(r, strlen(m->param_open));
        r->step = PARAM;
        return HN_CALL_AGAIN;
    }
    if (end != HN_YES) return more == HN_UNKNOWN || end == HN_UNKNOWN ? HN_CALL_MORE : HN_CALL_BREAKS;
    hn_pass(r, strlen(m->call_close));
    hn_args_close(r);
    hn_call_done(r);
    r->step = OVER;
    return HN_CALL_AGAIN;
}

/* Of name" string="false the name. */
static hn_span name_of(const hn_call_reader *r, hn_span s) {
    const char *text = r->in.at + s.from, *quote = memchr(text, '"', s.n);
    return (hn_span){s.from, quote ? (size_t)(quote - text) : s.n};
}

/* And whether it is a string. */
static void type_said(const hn_call_reader *r, hn_span s, unsigned *types) {
    const unsigned others = *types & ~(unsigned)HN_TYPE_STRING;
    if (memmem(r->in.at + s.from, s.n, "string=\"true", 12)) *types = HN_TYPE_STRING;
    if (memmem(r->in.at + s.from, s.n, "string=\"false", 13)) *types = others ? others : HN_TYPE_OTHERS;
}

static hn_call_events param(hn_call_reader *r) {
    const hn_markup *m = how(r);
    const char *const until[] = {m->param_close, NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_BREAKS;
    if (n == SIZE_MAX) return HN_CALL_MORE;
    const hn_span all = hn_trim(r, (hn_span){r->at, n}), s = m->typed ? name_of(r, all) : all;
    r->types = hn_param_types(hn_tools_find(r->tools, r->in.at + r->name.from, r->name.n), r->in.at + s.from, s.n);
    if (m->typed) type_said(r, all, &r->types);
    r->param = s;
    hn_pass(r, n + strlen(m->param_close));
    r->step = m->value_open ? VALUE_OPEN : VALUE_BEGIN;
    return HN_CALL_AGAIN;
}

static hn_call_events value_open(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    const hn_maybe found = hn_begins_with(r, 0, how(r)->value_open);
    if (found == HN_UNKNOWN) return HN_CALL_MORE;
    if (found == HN_NO) return HN_CALL_BREAKS;
    hn_pass(r, strlen(how(r)->value_open));
    r->step = VALUE_BEGIN;
    return HN_CALL_AGAIN;
}

static hn_call_events value_begin(hn_call_reader *r) {
    const hn_markup *m = how(r);
    const hn_maybe cdata = m->cdata ? hn_begins_with(r, 0, CDATA) : HN_NO;
    if (hn_left(r) == 0 || cdata == HN_UNKNOWN) return HN_CALL_MORE;
    r->flag = cdata == HN_YES;
    hn_pass(r, r->flag ? sizeof CDATA - 1 : m->lines && *hn_next_bytes(r) == '\n');
    r->sent = 0;
    hn_args_member(r, r->in.at + r->param.from, r->param.n);
    if (r->types == HN_TYPE_STRING) hn_call_args(r, "\"", 1);
    r->step = VALUE;
    return HN_CALL_AGAIN;
}

/* Whether the mark at `ahead`, n bytes long, ends a value. */
static hn_maybe value_ends(const hn_call_reader *r, size_t ahead, size_t n) {
    const hn_markup *m = how(r);
    ahead = hn_space_ahead(r, ahead + n);
    if (ahead == hn_left(r)) return r->ended ? HN_YES : HN_UNKNOWN;
    const hn_maybe more = hn_begins_with(r, ahead, m->param_open), end = hn_begins_with(r, ahead, m->call_close);
    if (more == HN_YES || end == HN_YES) return HN_YES;
    return more == HN_UNKNOWN || end == HN_UNKNOWN ? HN_UNKNOWN : HN_NO;
}

/* Strings are given on as they come, but for what may be the line break before the mark. */
static void value_send(hn_call_reader *r, size_t n, bool whole) {
    const char *value = hn_next_bytes(r);
    if (how(r)->lines && !r->flag && n > r->sent && value[n - 1] == '\n') n--;
    if (r->types == HN_TYPE_STRING) {
        hn_args_string(r, value + r->sent, n - r->sent);
        r->sent = n;
        if (whole) hn_call_args(r, "\"", 1);
    } else if (whole) hn_args_value(r, r->types, value, n);
}

static hn_call_events value(hn_call_reader *r) {
    const hn_markup *m = how(r);
    const char *const until[] = {r->flag ? m->cdata : m->value_close, NULL};
    const size_t mark = strlen(until[0]);
    int which;
    const size_t n = hn_find(r, until, &which);
    if (n == SIZE_MAX) {
        value_send(r, r->looked, false);
        return HN_CALL_MORE;
    }
    const hn_maybe ends = value_ends(r, n, mark);
    r->looked = n;
    value_send(r, n, ends == HN_YES);
    if (ends == HN_UNKNOWN) return HN_CALL_MORE;
    if (ends == HN_YES) {
        hn_pass(r, n + mark);
        r->step = PARAMS;
    } else r->looked = n + 1;
    return HN_CALL_AGAIN;
}

/* Behind a call: another one, the end of the block (also of one that was not opened), or text. */
static hn_call_events over(hn_call_reader *r) {
    const hn_markup *m = how(r);
    const char *const marks[] = {m->close, m->close_too, *m->name_open ? m->name_open : NULL};
    const size_t i = hn_space_ahead(r, 0);
    if (!m->close) return HN_CALL_CLOSED;
    bool unknown = i == hn_left(r);
    for (int k = 0; k < 3 && i < hn_left(r); k++) {
        const hn_maybe found = marks[k] ? hn_begins_with(r, i, marks[k]) : HN_NO;
        unknown = unknown || found == HN_UNKNOWN;
        if (found != HN_YES) continue;
        hn_pass(r, i + strlen(marks[k]));
        r->step = NAME;
        if (k == 2) return HN_CALL_AGAIN;
        r->from = r->at;
        return HN_CALL_CLOSED;
    }
    return unknown && !r->ended ? HN_CALL_MORE : HN_CALL_CLOSED;
}

hn_call_events hn_read_markup(hn_call_reader *r) {
    switch (r->step) {
    case BLOCK: return block(r);
    case NAME: return name(r);
    case PARAMS: return params(r);
    case PARAM: return param(r);
    case VALUE_OPEN: return value_open(r);
    case VALUE_BEGIN: return value_begin(r);
    case VALUE: return value(r);
    default: return over(r);
    }
}
