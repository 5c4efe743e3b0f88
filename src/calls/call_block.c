/* SPDX-License-Identifier: Apache-2.0 */
/* call_block.c - objects of calls behind a mark, one after the other or in a list. */
#include "calls/call_families.h"

enum { BEGIN, OBJECT, FOREIGN, AFTER, CLOSE };

static hn_call_events object_next(hn_call_reader *r) {
    r->object = (hn_call_object){0};
    r->step = OBJECT;
    return HN_CALL_AGAIN;
}

static hn_call_events begin(hn_call_reader *r) {
    const hn_block *h = r->family->how;
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    const char c = *hn_next_bytes(r);
    r->flag = c == '[' && h->list; /* in a list */
    if (!r->flag && !(c == '{' && h->object)) return HN_CALL_NOT;
    if (!r->flag) return object_next(r);
    const size_t i = hn_space_ahead(r, 1);
    if (i == hn_left(r)) return HN_CALL_MORE;
    hn_pass(r, i);
    return *hn_next_bytes(r) == '{' ? object_next(r) : HN_CALL_NOT;
}

static hn_call_events object(hn_call_reader *r) {
    const hn_block *h = r->family->how;
    const hn_call_events event = hn_read_call_object(r, h->needs_args);
    if (event != HN_CALL_CLOSED) return event;
    r->step = r->object.foreign ? FOREIGN : AFTER;
    return HN_CALL_AGAIN;
}

/* An object whose name is not offered is text, with the mark behind it. */
static hn_call_events foreign(hn_call_reader *r) {
    const hn_block *h = r->family->how;
    const size_t i = hn_space_ahead(r, 0);
    const hn_maybe closes = !h->close ? HN_NO : i < hn_left(r) ? hn_begins_with(r, i, h->close) : r->ended ? HN_NO : HN_UNKNOWN;
    if (closes == HN_UNKNOWN) return HN_CALL_MORE;
    if (closes == HN_YES) hn_pass(r, i + strlen(h->close));
    hn_call_text(r);
    r->step = AFTER;
    return closes == HN_YES ? HN_CALL_CLOSED : HN_CALL_AGAIN;
}

/* In a list: a comma or its end; outside: another object. */
static hn_call_events after(hn_call_reader *r) {
    const hn_block *h = r->family->how;
    size_t i = hn_space_ahead(r, 0);
    if (i == hn_left(r)) return hn_more_or(r, HN_CALL_CLOSED);
    const char c = hn_next_bytes(r)[i];
    if (r->flag && c == ']') {
        hn_pass(r, i + 1);
        r->from = r->at;
        r->flag = false;
        r->step = CLOSE;
        return HN_CALL_AGAIN;
    }
    const bool between = r->flag ? c == ',' : h->between && strchr(h->between, c);
    if (between) i = hn_space_ahead(r, i + 1);
    if (i == hn_left(r) && !r->ended) return HN_CALL_MORE;
    if (i == hn_left(r)) return hn_pass(r, i), HN_CALL_CLOSED;
    if (hn_next_bytes(r)[i] != '{') {
        r->step = CLOSE;
        return r->flag ? HN_CALL_BREAKS : HN_CALL_AGAIN;
    }
    if (!r->flag && !between && !h->object) return HN_CALL_CLOSED;
    hn_pass(r, i);
    r->from = r->at;
    return object_next(r);
}

static hn_call_events close(hn_call_reader *r) {
    const hn_block *h = r->family->how;
    if (!h->close) return HN_CALL_CLOSED;
    const size_t i = hn_space_ahead(r, 0);
    if (i == hn_left(r)) return hn_more_or(r, HN_CALL_CLOSED);
    const hn_maybe found = hn_begins_with(r, i, h->close);
    if (found == HN_UNKNOWN) return HN_CALL_MORE;
    if (found == HN_YES) hn_pass(r, i + strlen(h->close));
    return HN_CALL_CLOSED;
}

hn_call_events hn_read_block(hn_call_reader *r) {
    switch (r->step) {
    case BEGIN: return begin(r);
    case OBJECT: return object(r);
    case FOREIGN: return foreign(r);
    case AFTER: return after(r);
    default: return close(r);
    }
}
