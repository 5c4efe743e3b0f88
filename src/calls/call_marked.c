/* SPDX-License-Identifier: Apache-2.0 */
/* call_marked.c - calls whose name and arguments stand between marks: OUTER (INNER name SEPARATOR {..} INNER_END)+ OUTER_END. */
#include "calls/call_families.h"

enum { BEGIN, HEADER, NAME_LINE, ARGS_BEGIN, ARGS, AFTER };
#define FENCE "```"

static const hn_marked *how(const hn_call_reader *r) {
    return r->family->how;
}

static hn_call_events begin(hn_call_reader *r) {
    r->step = HEADER;
    if (r->opened != 0) return HN_CALL_AGAIN; /* the inner mark was first */
    r->step = BEGIN;
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    const hn_maybe inner = hn_begins_with(r, 0, how(r)->inner);
    if (inner == HN_UNKNOWN) return HN_CALL_MORE;
    if (inner == HN_NO) return HN_CALL_BREAKS;
    hn_pass(r, strlen(how(r)->inner));
    r->step = HEADER;
    return HN_CALL_AGAIN;
}

static hn_call_events named(hn_call_reader *r, hn_span name, hn_span id, size_t passed) {
    const hn_call_events event = hn_call_begin(r, r->in.at + name.from, name.n, r->in.at + id.from, id.n);
    hn_pass(r, passed);
    r->step = ARGS_BEGIN;
    return event;
}

static hn_call_events header(hn_call_reader *r) {
    const char *const until[] = {how(r)->separator, NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_BREAKS;
    if (n == SIZE_MAX) return HN_CALL_MORE;
    hn_span name = hn_trim(r, (hn_span){r->at, n}), id = {0};
    const size_t passed = n + strlen(until[0]);
    if (how(r)->type && hn_span_is(r, name, how(r)->type)) {
        hn_pass(r, passed);
        r->step = NAME_LINE;
        return HN_CALL_AGAIN;
    }
    if (how(r)->resolve) how(r)->resolve(r, &name, &id);
    return named(r, name, id, passed);
}

/* The name's line, before the fence. */
static hn_call_events name_line(hn_call_reader *r) {
    static const char *const until[] = {"\n", FENCE, "{", NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_BREAKS;
    return n == SIZE_MAX ? HN_CALL_MORE : named(r, hn_trim(r, (hn_span){r->at, n}), (hn_span){0}, n);
}

static hn_call_events args_begin(hn_call_reader *r) {
    static const char *const fences[] = {FENCE "json", FENCE};
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    for (size_t i = 0; i < 2; i++) {
        const hn_maybe found = hn_begins_with(r, 0, fences[i]);
        if (found == HN_UNKNOWN) return HN_CALL_MORE;
        if (found == HN_NO) continue;
        hn_pass(r, strlen(fences[i]));
        break;
    }
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) != '{') return HN_CALL_BREAKS;
    hn_json_scan_init(&r->scan);
    r->step = ARGS;
    return HN_CALL_AGAIN;
}

static hn_call_events args(hn_call_reader *r) {
    const hn_call_events event = hn_read_args(r);
    if (event != HN_CALL_CLOSED) return event;
    hn_call_done(r);
    r->step = AFTER;
    return HN_CALL_AGAIN;
}

/* Passes white space and marks that may be missing; another call, or the end. */
static hn_call_events after(hn_call_reader *r) {
    const char *const marks[] = {FENCE, how(r)->inner_end, how(r)->inner, how(r)->outer_end};
    const size_t i = hn_space_ahead(r, 0);
    bool unknown = i == hn_left(r);
    for (int k = 0; k < 4 && i < hn_left(r); k++) {
        const hn_maybe found = hn_begins_with(r, i, marks[k]);
        unknown = unknown || found == HN_UNKNOWN;
        if (found != HN_YES) continue;
        hn_pass(r, i + strlen(marks[k]));
        if (k == 2) r->step = HEADER;
        if (k != 2) r->from = r->at;
        return k == 3 ? HN_CALL_CLOSED : HN_CALL_AGAIN;
    }
    return unknown && !r->ended ? HN_CALL_MORE : HN_CALL_CLOSED;
}

hn_call_events hn_read_marked(hn_call_reader *r) {
    switch (r->step) {
    case BEGIN: return begin(r);
    case HEADER: return header(r);
    case NAME_LINE: return name_line(r);
    case ARGS_BEGIN: return args_begin(r);
    case ARGS: return args(r);
    default: return after(r);
    }
}
