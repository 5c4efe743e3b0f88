/* SPDX-License-Identifier: Apache-2.0 */
/* family_mistral.c - Mistral: [TOOL_CALLS] and a list of objects (Nemo; tokenizers before v11), or a mark for each call, its name, perhaps
 * [CALL_ID] and an id, [ARGS], the arguments. One reader for both. */
#include "calls/call_families.h"

enum { BEGIN, NAME = 200, ID, ARGS_BEGIN, ARGS };
#define CALL_ID "[CALL_ID]"
#define ARGS_MARK "[ARGS]"

static bool fits_json(const char *text, size_t len) {
    return hn_has(text, len, "[TOOL_CALLS]");
}

static bool fits_args(const char *text, size_t len) {
    return fits_json(text, len) && hn_has(text, len, ARGS_MARK);
}

/* A list is one if an object is in it. */
static hn_call_events begin(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) == '[' || *hn_next_bytes(r) == '{') return hn_read_block(r);
    r->step = NAME;
    return HN_CALL_AGAIN;
}

static hn_call_events name(hn_call_reader *r) {
    static const char *const until[] = {CALL_ID, ARGS_MARK, "{", NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_BREAKS;
    if (n == SIZE_MAX) return HN_CALL_MORE;
    r->name = hn_trim(r, (hn_span){r->at, n});
    r->param = (hn_span){0};
    hn_pass(r, n + (which < 2 ? strlen(until[which]) : 0));
    r->step = which == 0 ? ID : ARGS_BEGIN;
    return HN_CALL_AGAIN;
}

static hn_call_events id(hn_call_reader *r) {
    static const char *const until[] = {ARGS_MARK, "{", NULL};
    int which;
    const size_t n = hn_find(r, until, &which);
    if ((n == SIZE_MAX ? r->looked : n) > HN_LONGEST_NAME) return HN_CALL_BREAKS;
    if (n == SIZE_MAX) return HN_CALL_MORE;
    r->param = hn_trim(r, (hn_span){r->at, n});
    hn_pass(r, n + (which == 0 ? strlen(ARGS_MARK) : 0));
    r->step = ARGS_BEGIN;
    return HN_CALL_AGAIN;
}

static hn_call_events args_begin(hn_call_reader *r) {
    if (!hn_skip_space(r)) return HN_CALL_MORE;
    if (*hn_next_bytes(r) != '{') return HN_CALL_BREAKS;
    hn_json_scan_init(&r->scan);
    r->step = ARGS;
    return hn_call_begin(r, r->in.at + r->name.from, r->name.n, r->in.at + r->param.from, r->param.n);
}

static hn_call_events args(hn_call_reader *r) {
    const hn_call_events event = hn_read_args(r);
    if (event == HN_CALL_CLOSED) hn_call_done(r);
    return event;
}

static hn_call_events read(hn_call_reader *r) {
    switch (r->step) {
    case BEGIN: return begin(r);
    case NAME: return name(r);
    case ID: return id(r);
    case ARGS_BEGIN: return args_begin(r);
    case ARGS: return args(r);
    default: return hn_read_block(r);
    }
}

static const char *const opens[] = {"[TOOL_CALLS]", NULL};
static const hn_block how = {.object = true, .list = true, .between = ","};
const hn_call_family hn_calls_mistral_json = {.name = "mistral-json",
                                              .opens = opens,
                                              .ids = HN_IDS_NINE,
                                              .fits = fits_json,
                                              .grammar = hn_grammar_mistral_json,
                                              .read = read,
                                              .how = &how};
const hn_call_family hn_calls_mistral_args = {.name = "mistral-args",
                                              .opens = opens,
                                              .ids = HN_IDS_NINE,
                                              .fits = fits_args,
                                              .grammar = hn_grammar_mistral_args,
                                              .read = read,
                                              .how = &how};
