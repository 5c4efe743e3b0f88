/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking.c - see serve_thinking.h. */
#include "server/serve_thinking.h"

static bool part_add(serve_bytes *to, const char *text, size_t n) {
    while (to->n == 0 && n && (*text == '\n' || *text == '\r')) text++, n--;
    return serve_bytes_add(to, text, n);
}

bool serve_parts_grow(serve_parts *p, const hunch_model *m, const char *text, size_t n, bool done) {
    hunch_part part;
    while (n && hunch_split_next(m, &p->split, text, n, done, &part)) {
        if (part.kind == HUNCH_PART_MARK) continue;
        const bool thinking = part.kind == HUNCH_PART_THINKING;
        if (!part_add(thinking ? &p->thinking : &p->answer, text + part.from, part.len)) return false;
        if (thinking) p->thinking_end = p->split.done;
    }
    return true;
}

void serve_parts_free(serve_parts *p) {
    serve_bytes_free(&p->thinking);
    serve_bytes_free(&p->answer);
}
