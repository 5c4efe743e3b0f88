/* SPDX-License-Identifier: Apache-2.0 */
/* serve_blocks.c - see serve_blocks.h. */
#include "server/protocols/serve_blocks.h"

#include <string.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "server/serve_answer.h"

static serve_told_block block_of(const serve_choice *one, const hunch_answer *a) {
    const serve_block *b = &one->parts.block[one->told.block];
    serve_told_block t = {.kind = b->kind, .index = one->told.index, .last = one->done && one->told.block + 1 == one->parts.n_blocks};
    if (b->kind == SERVE_BLOCK_CALL) {
        t.call = &a->call[b->from];
        t.id = one->told.id ? one->told.id : t.call->id;
        t.n = t.call->n_arguments;
        t.text = t.n ? t.call->arguments : "";
        return t;
    }
    const serve_bytes *all = b->kind == SERVE_BLOCK_THINKING ? &one->parts.thinking : serve_choice_answer(one);
    t.n = b->to - b->from;
    t.text = t.n ? all->at + b->from : "";
    return t;
}

/* A call that turned out to be none: its text is in the answer's. */
static bool is_no_call(const serve_choice *one, const serve_told_block *b) {
    return b->call && (b->call->state == HUNCH_CALL_BROKEN || (b->call->state == HUNCH_CALL_CUT && !one->parts.cut));
}

static bool is_over(const serve_choice *one, const serve_told_block *b) {
    return one->done || one->told.block + 1 < one->parts.n_blocks || (b->call && b->call->state != HUNCH_CALL_OPEN);
}

static char *id_keep(const char *id) {
    const size_t n = strlen(id) + 1;
    return memcpy(serve_alloc(n, 1), id, n);
}

/* False: the block may grow. */
static bool block_tell(serve_choice *one, const hunch_answer *a, const serve_block_events *e, void *to) {
    const serve_told_block b = block_of(one, a);
    serve_told *told = &one->told;
    const bool skipped = !told->open && is_no_call(one, &b);
    if (!skipped && !told->open && e->open) e->open(to, one, &b);
    if (!skipped && !told->open && e->open && b.call && !is_over(one, &b)) told->id = id_keep(b.id);
    told->open = !skipped;
    if (!skipped && b.n > told->n && e->add) e->add(to, one, &b, b.text + told->n, b.n - told->n);
    told->n = b.n;
    if (!is_over(one, &b)) return false;
    if (!skipped && e->close) e->close(to, one, &b);
    hn_free(told->id);
    *told = (serve_told){.block = told->block + 1, .index = told->index + !skipped};
    return true;
}

void serve_blocks_next(serve_choice *one, const serve_block_events *e, bool empty, void *to) {
    hunch_answer a = {0};
    if (one->parts.calls) hunch_calls_get(one->parts.calls, &a);
    while (one->told.block < one->parts.n_blocks && block_tell(one, &a, e, to)) {}
    if (!empty || !one->done || one->told.index > 0) return;
    const serve_told_block nothing = {.kind = SERVE_BLOCK_TEXT, .text = "", .last = true};
    if (e->open) e->open(to, one, &nothing);
    if (e->close) e->close(to, one, &nothing);
    one->told.index++;
}

bool serve_blocks_wait(const serve_choice *one) {
    hunch_answer a = {0};
    if (one->told.block == one->parts.n_blocks) return false;
    if (one->parts.calls) hunch_calls_get(one->parts.calls, &a);
    const serve_told_block b = block_of(one, &a);
    return !one->told.open || b.n > one->told.n || is_over(one, &b);
}

/* ---- arguments that were cut --------------------------------------------------------------------------------- */

enum { DEEPEST = 64, TRIES = 256, ESCAPE = 12 };

/* What closes the first n bytes of a value, in reverse order of what they opened; *from: where the string begins in which they end; n: in
 * none. False: too deep. */
static bool closers_find(const char *text, size_t n, char to[DEEPEST + 2], size_t *from) {
    char open[DEEPEST];
    size_t depth = 0;
    bool in_text = false;
    *from = n;
    for (size_t i = 0; i < n; i++) {
        if (in_text) {
            if (text[i] == '\\') i++;
            else in_text = text[i] != '"';
        } else if (text[i] == '"') in_text = true, *from = i;
        else if (text[i] == '{' || text[i] == '[') {
            if (depth == DEEPEST) return false;
            open[depth++] = text[i] == '{' ? '}' : ']';
        } else if (depth && (text[i] == '}' || text[i] == ']')) depth--;
    }
    if (in_text) *to++ = '"';
    else *from = n;
    while (depth) *to++ = open[--depth];
    *to = 0;
    return true;
}

/* Bytes before the number at the end, of which digits may be missing. */
static size_t before_number(const char *text, size_t n) {
    size_t at = n;
    while (at && strchr("+-.0123456789eE", text[at - 1])) at--;
    return at < n && (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) ? at : n;
}

/* The longest beginning that is a value once it is closed. A string in which it ends is tried without an escape that is cut, then it is
 * left out. */
static json_t *mended(const char *text, size_t n) {
    char closers[DEEPEST + 2];
    size_t from;
    if (!closers_find(text, n, closers, &from)) return NULL;
    if (from == n) n = before_number(text, n);
    for (size_t left = n, tries = 0; left > 0 && tries < TRIES; tries++) {
        serve_bytes all = {0};
        if (!closers_find(text, left, closers, &from)) return NULL;
        json_t *value = serve_bytes_add(&all, text, left) && serve_bytes_add(&all, closers, strlen(closers))
                            ? hn_json_load(all.at, all.n, JSON_ALLOW_NUL, NULL)
                            : NULL;
        serve_bytes_free(&all);
        if (value) return value;
        left = from < left && left + ESCAPE < n ? from : left - 1;
    }
    return NULL;
}

json_t *serve_arguments_json(const serve_told_block *b) {
    json_t *value = hn_json_load(b->text, b->n, JSON_ALLOW_NUL, NULL);
    if (!value && b->call->state == HUNCH_CALL_CUT) value = mended(b->text, b->n);
    if (hn_json_is_object(value)) return value;
    json_decref(value);
    return b->call->state == HUNCH_CALL_CUT ? json_object() : NULL;
}
