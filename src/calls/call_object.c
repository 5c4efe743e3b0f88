/* SPDX-License-Identifier: Apache-2.0 */
/* call_object.c - calls as JSON objects: {"name": .., "arguments": {..}}, keys in any order and by any of their names. */
#include "calls/call_reader.h"

enum { OPEN, KEY_OR_END, KEY, KEY_STRING, COLON, VALUE, IN_VALUE, AFTER };
enum { OTHER, NAME, ARGS, ID };

hn_call_events hn_read_args(hn_call_reader *r) {
    const size_t n = hn_json_scan_run(&r->scan, hn_next_bytes(r), hn_left(r), r->ended);
    hn_call_args(r, hn_next_bytes(r), n);
    hn_pass(r, n);
    if (r->scan.bad) return HN_CALL_BREAKS;
    return r->scan.done ? HN_CALL_CLOSED : HN_CALL_MORE;
}

static int key_kind(const hn_call_reader *r, hn_span key) {
    static const struct { const char *name; int kind; } keys[] = {{"name", NAME},       {"tool_name", NAME}, {"arguments", ARGS},
                                                                  {"parameters", ARGS}, {"id", ID},          {"tool_call_id", ID}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (hn_span_is(r, key, keys[i].name)) return keys[i].kind;
    return OTHER;
}

/* The text of a string with its quotes: new, free. NULL: it is none. */
static char *string_text(const hn_call_reader *r, hn_span s, size_t *n) {
    json_t *value = s.n ? json_loadb(r->in.at + s.from, s.n, JSON_DECODE_ANY, NULL) : NULL;
    char *text = json_is_string(value) ? hn_strndup(json_string_value(value), json_string_length(value)) : NULL;
    *n = json_is_string(value) ? json_string_length(value) : 0;
    json_decref(value);
    return text;
}

/* The call begins as soon as its name and the beginning of its arguments are known. */
static hn_call_events call_begin(hn_call_reader *r) {
    hn_call_object *o = &r->object;
    size_t n, n_id;
    char *name = string_text(r, o->name, &n), *id = string_text(r, o->id, &n_id);
    const hn_call_events event = name ? hn_call_begin(r, name, n, id, id ? n_id : 0) : HN_CALL_NOT;
    o->foreign = event == HN_CALL_NOT;
    hn_free(name);
    hn_free(id);
    return o->foreign ? HN_CALL_AGAIN : event;
}

static bool args_come(const hn_call_reader *r) {
    return r->object.what == ARGS && r->open;
}

static hn_call_events value_begin(hn_call_reader *r) {
    hn_call_object *o = &r->object;
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    o->value = (hn_span){r->at, 0};
    hn_json_scan_init(&o->scan);
    o->step = IN_VALUE;
    const bool object = *hn_next_bytes(r) == '{';
    return o->what == ARGS && object && o->name.n && !o->foreign && !r->open ? call_begin(r) : HN_CALL_AGAIN;
}

static hn_call_events value_read(hn_call_reader *r) {
    hn_call_object *o = &r->object;
    const size_t n = hn_json_scan_run(&o->scan, hn_next_bytes(r), hn_left(r), r->ended);
    if (args_come(r)) hn_call_args(r, hn_next_bytes(r), n);
    hn_pass(r, n);
    if (o->scan.bad) return HN_CALL_BREAKS;
    if (!o->scan.done) return HN_CALL_MORE;
    o->value.n = r->at - o->value.from;
    if (o->what == NAME) o->name = o->value;
    if (o->what == ARGS) o->args = o->value;
    if (o->what == ID) o->id = o->value;
    o->step = AFTER;
    return HN_CALL_AGAIN;
}

/* Arguments that came before the name, as a text of JSON, or not at all. */
static hn_call_events args_late(hn_call_reader *r) {
    hn_call_object *o = &r->object;
    const hn_call_events event = call_begin(r);
    const char *args = o->args.n ? r->in.at + o->args.from : "{}";
    size_t n = o->args.n ? o->args.n : 2;
    if (event != HN_CALL_AGAIN || o->foreign) return event;
    char *text = *args == '"' ? string_text(r, o->args, &n) : NULL;
    if (text) args = text;
    else if (n == 4 && memcmp(args, "null", 4) == 0) args = "{}", n = 2;
    while (text && n && hn_is_space(*args)) args++, n--;
    const bool object = n && *args == '{' && hn_json_is_value(args, n);
    if (object) hn_call_args(r, args, n);
    hn_free(text);
    return object ? HN_CALL_AGAIN : HN_CALL_BREAKS;
}

static hn_call_events object_over(hn_call_reader *r, bool needs_args) {
    hn_call_object *o = &r->object;
    if (!r->open && (o->name.n == 0 || (needs_args && o->args.n == 0))) return HN_CALL_NOT;
    const hn_call_events event = r->open || o->foreign ? HN_CALL_AGAIN : args_late(r);
    if (event != HN_CALL_AGAIN) return event;
    if (!r->open) return HN_CALL_CLOSED;
    size_t n;
    char *id = string_text(r, o->id, &n);
    if (id && n) hn_call_id(r, id, n);
    hn_free(id);
    hn_call_done(r);
    return HN_CALL_CLOSED;
}

static hn_call_events structure(hn_call_reader *r, bool needs_args) {
    hn_call_object *o = &r->object;
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    const char c = *hn_next_bytes(r);
    const bool end = c == '}' && (o->step == KEY_OR_END || o->step == AFTER);
    const char wanted = o->step == OPEN ? '{' : o->step == COLON ? ':' : o->step == AFTER ? ',' : '"';
    if (!end && c != wanted) return HN_CALL_BREAKS;
    if (wanted == '"' && !end) { /* the key's quote is the scan's */
        o->key = (hn_span){r->at, 0};
        hn_json_scan_init(&o->scan);
        o->step = KEY_STRING;
        return HN_CALL_AGAIN;
    }
    hn_pass(r, 1);
    if (end) return object_over(r, needs_args);
    o->step = o->step == OPEN ? KEY_OR_END : o->step == COLON ? VALUE : KEY;
    return HN_CALL_AGAIN;
}

static hn_call_events key_read(hn_call_reader *r) {
    hn_call_object *o = &r->object;
    hn_pass(r, hn_json_scan_run(&o->scan, hn_next_bytes(r), hn_left(r), r->ended));
    if (o->scan.bad) return HN_CALL_BREAKS;
    if (!o->scan.done) return HN_CALL_MORE;
    o->what = key_kind(r, (hn_span){o->key.from + 1, r->at - o->key.from - 2});
    const bool again = o->what == NAME ? o->name.n > 0 : o->what == ARGS ? o->args.n > 0 : false;
    if (again || (r->open && o->what != ID)) o->what = OTHER; /* the first one counts */
    o->step = COLON;
    return HN_CALL_AGAIN;
}

hn_call_events hn_read_call_object(hn_call_reader *r, bool needs_args) {
    hn_call_events event = HN_CALL_AGAIN;
    while (event == HN_CALL_AGAIN) {
        switch (r->object.step) {
        case KEY_STRING: event = key_read(r); break;
        case VALUE: event = value_begin(r); break;
        case IN_VALUE: event = value_read(r); break;
        default: event = structure(r, needs_args); break;
        }
    }
    return event;
}
