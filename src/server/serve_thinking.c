/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking.c - see serve_thinking.h. */
#include "server/serve_thinking.h"

static bool part_add(serve_bytes *to, const char *text, size_t n) {
    while (to->n == 0 && n && (*text == '\n' || *text == '\r')) text++, n--;
    return serve_bytes_add(to, text, n);
}

/* The same where calls are read. */
static bool calls_grow(serve_parts *p, const char *text, size_t n, bool done) {
    hunch_answer a;
    if (hunch_calls_feed(p->calls, n ? text + p->fed : "", n - p->fed, done, NULL)) return false;
    p->fed = n;
    hunch_calls_get(p->calls, &a);
    p->thinking_end = a.thinking_end;
    return serve_bytes_add(&p->thinking, a.thinking + p->thinking.n, a.n_thinking - p->thinking.n) &&
           serve_bytes_add(&p->answer, a.text + p->answer.n, a.n_text - p->answer.n);
}

bool serve_parts_grow(serve_parts *p, const hunch_model *m, const char *text, size_t n, bool done) {
    hunch_part part;
    if (p->calls) return calls_grow(p, text, n, done);
    while (n && hunch_split_next(m, &p->split, text, n, done, &part)) {
        if (part.kind == HUNCH_PART_MARK) continue;
        const bool thinking = part.kind == HUNCH_PART_THINKING;
        if (!part_add(thinking ? &p->thinking : &p->answer, text + part.from, part.len)) return false;
        if (thinking) p->thinking_end = p->split.done;
    }
    return true;
}

void serve_parts_free(serve_parts *p) {
    hunch_calls_close(&p->calls);
    serve_bytes_free(&p->thinking);
    serve_bytes_free(&p->answer);
}
