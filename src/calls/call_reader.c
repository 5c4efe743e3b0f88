/* SPDX-License-Identifier: Apache-2.0 */
/* call_reader.c - an answer as thinking, text and calls: what is common to all families. */
#include "calls/call_reader.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/random.h"

enum { IN_TEXT, IN_THINKING, IN_CALL, IN_BROKEN };
enum { MOST_MARKS = 12 };

/* ---- open, close, results ---------------------------------------------------------------------------------------------- */

hn_call_reader *hn_call_reader_open(const hn_call_family *f, const hn_tools *t, const hn_call_options *o) {
    hn_call_reader *r = hn_zalloc(1, sizeof *r);
    if (!r) return NULL;
    r->family = f;
    r->tools = t;
    r->o = *o;
    r->mode = o->thinks && o->think_end ? IN_THINKING : IN_TEXT;
    return r;
}

void hn_call_reader_close(hn_call_reader **out) {
    hn_call_reader *r = *out;
    *out = NULL;
    if (!r) return;
    hn_bytes *const all[] = {&r->in, &r->text, &r->thinking, &r->broken, &r->whole, &r->later, &r->args};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_bytes_free(all[i]);
    for (size_t i = 0; i < r->n_calls; i++) {
        hn_free((char *)(uintptr_t)r->call[i].name);
        hn_free((char *)(uintptr_t)r->call[i].id);
        if (!(r->open && i == r->n_calls - 1)) hn_free((char *)(uintptr_t)r->call[i].arguments); /* those of the open one are r->args */
    }
    hn_free(r->call);
    hn_free(r);
}

static size_t without_space(const hn_bytes *b) {
    size_t n = b->n;
    while (n && hn_is_space(b->at[n - 1])) n--;
    return n;
}

/* Bytes at the end of the text that are a call which was cut. */
static size_t cut_bytes(const hn_call_reader *r) {
    const size_t space = r->text.n - r->text_kept; /* at the end of the text */
    if (r->o.required) return r->ended ? r->text_kept : 0;
    return !r->holds && r->n_done == 0 && r->n_cut > space ? r->n_cut - space : 0;
}

void hn_call_reader_get(const hn_call_reader *r, hn_call_answer *out) {
    const size_t n_cut = cut_bytes(r);
    *out = (hn_call_answer){.text = r->text.n ? r->text.at : "",
                       .thinking = r->thinking.n ? r->thinking.at : "",
                       .broken = r->broken.n ? r->broken.at : "",
                       .thinking_end = r->thinking_end,
                       .n_text = r->o.required && !r->ended ? 0 : r->text_kept,
                       .n_thinking = r->thinking_kept,
                       .n_broken = without_space(&r->broken),
                       .n_cut = n_cut,
                       .call = r->call,
                       .n_calls = r->n_calls,
                       .n_done = r->n_done,
                       .cut = r->cuts || n_cut > 0};
}

static void add(hn_call_reader *r, hn_bytes *to, const char *bytes, size_t n) {
    if (!hn_bytes_add(to, bytes, n)) r->failed = true;
}

/* kept: bytes up to the last one that is no white space. */
static void add_trimmed(hn_call_reader *r, hn_bytes *to, size_t *kept, const char *bytes, size_t n) {
    while (to->n == 0 && n && hn_is_space(*bytes)) bytes++, n--;
    const size_t before = to->n;
    add(r, to, bytes, n);
    while (n && hn_is_space(bytes[n - 1])) n--;
    if (n && !r->failed) *kept = before + n;
}

/* Bytes of `in`. */
static void thinking_add(hn_call_reader *r, const char *bytes, size_t n) {
    add_trimmed(r, &r->thinking, &r->thinking_kept, bytes, n);
    if (n) r->thinking_end = r->passed + (size_t)(bytes - r->in.at) + n;
}

static void text_add(hn_call_reader *r, const char *bytes, size_t n) {
    for (size_t i = 0; i < n && !r->started; i++) r->started = !hn_is_space(bytes[i]);
    if (n) r->n_cut = 0;
    if (!r->holds) {
        add_trimmed(r, &r->text, &r->text_kept, bytes, n);
        return;
    }
    add(r, &r->whole, bytes, n);
    add(r, &r->later, bytes, n);
}

/* A broken call, from r->from to `at`. It is text if no call becomes complete, and not if one does, so until then nothing is shown. */
static void broken_add(hn_call_reader *r) {
    const char *bytes = r->in.at + r->from;
    const size_t n = r->at - r->from;
    add(r, &r->broken, bytes, n);
    r->n_cut = r->cut ? n : 0;
    r->cut = false;
    r->holds = r->holds || r->n_done == 0;
    if (r->holds) add(r, &r->whole, bytes, n);
    r->from = r->at;
}

static void held_release(hn_call_reader *r, const hn_bytes *held) {
    if (!r->holds) return;
    r->holds = false;
    if (held->n) add_trimmed(r, &r->text, &r->text_kept, held->at, held->n);
    hn_bytes_free(&r->whole);
    hn_bytes_free(&r->later);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------- */

/* An id that the model did not write: a function of the request's seed and the number of the call. */
static void id_make(const hn_call_reader *r, const char *name, size_t n_name, char *id, size_t cap) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint64_t state = r->o.seed ^ (r->n_calls + 1) * UINT64_C(0x9E3779B97F4A7C15), a = hn_splitmix(&state), b = hn_splitmix(&state);
    if (r->family->ids == HN_IDS_COUNTED)
        snprintf(id, cap, "functions.%.*s:%zu", (int)n_name, name, r->o.earlier + r->n_calls);
    else if (r->family->ids == HN_IDS_HEX)
        snprintf(id, cap, "call_%016llx%08x", (unsigned long long)a, (unsigned)b);
    else
        for (size_t i = 0; i < 10; i++, a /= 36) id[i] = i < 9 ? letters[a % 36] : 0;
}

hn_call_events hn_call_begin(hn_call_reader *r, const char *name, size_t n, const char *id, size_t n_id) {
    char made[HN_LONGEST_NAME + 64];
    if (n > HN_LONGEST_NAME || !hn_tools_find(r->tools, name, n)) return HN_CALL_NOT;
    if (r->o.one && r->n_calls) return HN_CALL_BREAKS;
    id_make(r, name, n, made, sizeof made);
    hn_call c = {.name = hn_strndup(name, n), .id = n_id ? hn_strndup(id, n_id) : hn_strdup(made)};
    if (!c.name || !c.id || !hn_grow((void **)&r->call, &r->cap_calls, r->n_calls + 1, sizeof c)) {
        hn_free((char *)(uintptr_t)c.name);
        hn_free((char *)(uintptr_t)c.id);
        r->failed = true;
        return HN_CALL_BREAKS;
    }
    r->call[r->n_calls++] = c;
    r->open = true;
    r->args = (hn_bytes){0};
    r->members = 0;
    return HN_CALL_AGAIN;
}

void hn_call_args(hn_call_reader *r, const char *bytes, size_t n) {
    if (!r->open) return;
    add(r, &r->args, bytes, n);
    r->call[r->n_calls - 1].arguments = r->args.at;
    r->call[r->n_calls - 1].n_arguments = r->args.n;
}

void hn_call_id(hn_call_reader *r, const char *id, size_t n) {
    hn_call *c = &r->call[r->n_calls - 1];
    char *own = hn_strndup(id, n);
    if (!own) {
        r->failed = true;
        return;
    }
    hn_free((char *)(uintptr_t)c->id);
    c->id = own;
}

static void call_over(hn_call_reader *r, hunch_call_state state) {
    if (!r->open) return;
    r->call[r->n_calls - 1].state = state;
    r->args = (hn_bytes){0}; /* they are the call's */
    r->open = false;
}

void hn_call_done(hn_call_reader *r) {
    call_over(r, HUNCH_CALL_DONE);
    r->n_done++;
    held_release(r, &r->later);
    r->from = r->at;
}

void hn_answer_add(hn_call_reader *r, bool thinking, const char *bytes, size_t n) {
    if (thinking) thinking_add(r, bytes, n);
    else text_add(r, bytes, n);
}

void hn_call_text(hn_call_reader *r) {
    text_add(r, r->in.at + r->from, r->at - r->from);
    r->from = r->at;
}

/* ---- looking ahead ----------------------------------------------------------------------------------------------------- */

static hn_maybe look(const char *bytes, size_t n, const char *what) {
    const size_t len = strlen(what);
    if (n >= len) return memcmp(bytes, what, len) == 0 ? HN_YES : HN_NO;
    return memcmp(bytes, what, n) == 0 ? HN_UNKNOWN : HN_NO;
}

hn_maybe hn_begins_with(const hn_call_reader *r, size_t ahead, const char *what) {
    const hn_maybe found = look(hn_next_bytes(r) + ahead, hn_left(r) - ahead, what);
    return found == HN_UNKNOWN && r->ended ? HN_NO : found;
}

size_t hn_space_ahead(const hn_call_reader *r, size_t ahead) {
    while (ahead < hn_left(r) && hn_is_space(hn_next_bytes(r)[ahead])) ahead++;
    return ahead;
}

bool hn_skip_space(hn_call_reader *r) {
    hn_pass(r, hn_space_ahead(r, 0));
    return hn_left(r) > 0;
}

/* The first byte from i on that begins a mark; n: none does. */
static size_t beginning(const char *p, size_t i, size_t n, const char *const *marks) {
    enum { SHORT = 64 }; /* bytes for which no table is worth its time */
    bool first[256];
    const bool table = n - i > SHORT;
    if (table) memset(first, 0, sizeof first);
    for (int k = 0; table && marks[k]; k++) first[(unsigned char)*marks[k]] = true;
    for (; i < n; i++) {
        if (table && !first[(unsigned char)p[i]]) continue;
        for (int k = 0; marks[k]; k++)
            if (*marks[k] == p[i]) return i;
    }
    return n;
}

size_t hn_find(hn_call_reader *r, const char *const *marks, int *which) {
    const char *p = hn_next_bytes(r);
    const size_t n = hn_left(r);
    size_t i = beginning(p, r->looked, n, marks);
    for (; i < n; i = beginning(p, i + 1, n, marks)) {
        bool unknown = false;
        for (int k = 0; marks[k]; k++) {
            const hn_maybe found = look(p + i, n - i, marks[k]);
            unknown = unknown || found == HN_UNKNOWN;
            if (found != HN_YES) continue;
            *which = k;
            return i;
        }
        if (unknown && !r->ended) break;
    }
    r->looked = i;
    return SIZE_MAX;
}

hn_call_events hn_pass_optional(hn_call_reader *r, const char *mark) {
    const hn_maybe found = hn_begins_with(r, 0, mark);
    if (found == HN_UNKNOWN) return HN_CALL_MORE;
    if (found == HN_YES) hn_pass(r, strlen(mark));
    return HN_CALL_AGAIN;
}

hn_span hn_trim(const hn_call_reader *r, hn_span s) {
    while (s.n && hn_is_space(r->in.at[s.from])) s.from++, s.n--;
    while (s.n && hn_is_space(r->in.at[s.from + s.n - 1])) s.n--;
    return s;
}

/* ---- modes ------------------------------------------------------------------------------------------------------------- */

static int marks_add(const char **to, int n, const char *const *from) {
    while (from && *from && n < MOST_MARKS) to[n++] = *from++;
    to[n] = NULL;
    return n;
}

static void call_enter(hn_call_reader *r, int opened, size_t mark) {
    r->mode = IN_CALL;
    r->started = true;
    r->opened = opened;
    r->from = r->at;
    r->step = 0;
    r->entered = r->n_calls;
    hn_pass(r, mark);
}

/* At the start of an answer that may begin with a call. True: go on; a family then decides. */
static bool starts(hn_call_reader *r, bool *more) {
    *more = !hn_skip_space(r);
    if (*more) return true;
    const hn_maybe thinks = r->o.think_begin ? hn_begins_with(r, 0, r->o.think_begin) : HN_NO;
    *more = thinks == HN_UNKNOWN;
    if (thinks != HN_NO) return *more;
    for (int k = 0; r->family->opens && r->family->opens[k]; k++) { /* a mark says more than the start */
        const hn_maybe opens = hn_begins_with(r, 0, r->family->opens[k]);
        *more = opens == HN_UNKNOWN;
        if (opens != HN_NO) return *more;
    }
    call_enter(r, -1, 0);
    return true;
}

static bool read_text(hn_call_reader *r) {
    const char *marks[MOST_MARKS + 1] = {r->o.think_begin};
    bool more = false;
    int which, n = r->o.think_begin != NULL;
    if (!r->started && r->family->at_start && starts(r, &more)) return !more;
    const int first = n;
    n = marks_add(marks, n, r->family->opens);
    const int opens = n;
    marks_add(marks, n, r->family->drops);
    const size_t found = hn_find(r, marks, &which), len = found == SIZE_MAX ? r->looked : found;
    text_add(r, hn_next_bytes(r), len);
    hn_pass(r, len);
    if (found == SIZE_MAX) return false;
    if (which >= first && which < opens) call_enter(r, which - first, strlen(marks[which]));
    else hn_pass(r, strlen(marks[which]));
    if (which < first) r->mode = IN_THINKING;
    return true;
}

static bool read_thinking(hn_call_reader *r) {
    const char *const marks[] = {r->o.think_end, NULL};
    int which;
    const size_t found = hn_find(r, marks, &which), len = found == SIZE_MAX ? r->looked : found;
    thinking_add(r, hn_next_bytes(r), len);
    hn_pass(r, len);
    if (found == SIZE_MAX) return false;
    hn_pass(r, strlen(marks[0]));
    r->mode = IN_TEXT;
    return true;
}

/* A call of which the end of the answer is missing has the arguments that were known: bytes that were held back until it was clear whether
 * they begin a mark are none of it. */
static void held_back_drop(hn_call_reader *r) {
    if (!r->open || r->n_calls != r->calls_known) return;
    r->args.n = r->args_known;
    hn_call_args(r, NULL, 0);
}

/* What only looked like a call at the start of an answer is text. */
static bool breaks(hn_call_reader *r, bool cut) {
    if (r->opened == -1 && r->n_calls == r->entered) {
        hn_call_text(r);
        r->mode = IN_TEXT;
        return true;
    }
    if (cut) held_back_drop(r);
    call_over(r, cut ? HUNCH_CALL_CUT : HUNCH_CALL_BROKEN);
    r->cut = cut;
    r->cuts = r->cuts || cut;
    if (r->at == r->from && hn_left(r)) hn_pass(r, 1); /* the mark that opened it, of a family that reads it itself */
    r->mode = IN_BROKEN;
    return true;
}

/* Whether the answer ended within a mark of these. */
static bool ends_in(const hn_call_reader *r, const char *const *marks) {
    const size_t i = hn_space_ahead(r, 0), n = hn_left(r) - i;
    for (int k = 0; n && marks && marks[k]; k++)
        if (look(hn_next_bytes(r) + i, n, marks[k]) == HN_UNKNOWN) return true;
    return false;
}

/* Once the answer has ended, only what was open before goes on: a call that is none then was cut, if a mark had opened it. The beginning of
 * a mark behind a call is no text. */
static bool read_call(hn_call_reader *r) {
    const hn_call_events event = r->family->read(r);
    if (event == HN_CALL_AGAIN || (event == HN_CALL_MORE && !r->ended)) return event == HN_CALL_AGAIN;
    r->looked = 0; /* whoever reads on looks for other marks */
    if (event == HN_CALL_MORE || event == HN_CALL_BREAKS || (event == HN_CALL_NOT && r->ended && r->opened >= 0))
        return breaks(r, r->ended);
    if (event == HN_CALL_NOT) hn_call_text(r);
    if (r->ended && (ends_in(r, r->family->closes) || ends_in(r, r->family->drops))) hn_pass(r, hn_left(r));
    r->mode = IN_TEXT;
    return true;
}

/* A broken call ends behind a mark that closes it, or before one that opens another. */
static bool read_broken(hn_call_reader *r) {
    const char *marks[MOST_MARKS + 1];
    const int closes = marks_add(marks, 0, r->family->closes);
    int which = 0;
    marks_add(marks, closes, r->family->opens);
    const size_t found = hn_find(r, marks, &which), len = found == SIZE_MAX ? r->looked : found;
    hn_pass(r, len);
    if (found == SIZE_MAX && !r->ended) return false;
    if (found != SIZE_MAX && which < closes) hn_pass(r, strlen(marks[which]));
    broken_add(r);
    r->mode = IN_TEXT;
    return true;
}

static bool read_next(hn_call_reader *r) {
    switch (r->mode) {
    case IN_TEXT: return read_text(r);
    case IN_THINKING: return read_thinking(r);
    case IN_CALL: return read_call(r);
    default: return read_broken(r);
    }
}

/* Bytes that nobody needs any more go. Not those of a call, whose places are kept. */
static void forget(hn_call_reader *r) {
    if (r->mode == IN_CALL || r->mode == IN_BROKEN || r->at < r->in.n / 2 || r->at == 0) return;
    memmove(r->in.at, r->in.at + r->at, r->in.n - r->at);
    r->in.n -= r->at;
    r->passed += r->at;
    r->at = 0;
}

bool hn_call_reader_feed(hn_call_reader *r, const char *bytes, size_t n, bool ended) {
    forget(r);
    add(r, &r->in, bytes, n);
    while (!r->failed && r->in.n && read_next(r)) {}
    r->ended = ended;
    r->calls_known = r->n_calls;
    r->args_known = r->open ? r->args.n : 0;
    while (ended && !r->failed && r->in.n && read_next(r)) {}
    if (ended && !r->failed && r->holds) {
        held_release(r, &r->whole);
        r->broken.n = 0;
    }
    return !r->failed;
}
