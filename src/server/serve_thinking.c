/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking.c - see serve_thinking.h. */
#include "server/serve_thinking.h"

#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"

/* ---- blocks -------------------------------------------------------------------------------------------------- */

static bool block_add(serve_parts *p, serve_block_kind kind, size_t from, size_t to) {
    if (!hn_grow((void **)&p->block, &p->cap_blocks, p->n_blocks + 1, sizeof *p->block)) return false;
    p->block[p->n_blocks++] = (serve_block){kind, from, to};
    return true;
}

/* The thinking, or the answer, has grown from one length to another. */
static bool block_grow(serve_parts *p, serve_block_kind kind, size_t from, size_t to) {
    serve_block *last = p->n_blocks ? &p->block[p->n_blocks - 1] : NULL;
    if (from == to) return true;
    if (last && last->kind == kind) return last->to = to, true;
    return block_add(p, kind, from, to);
}

bool serve_parts_one(serve_parts *p, size_t n) {
    if (p->n_blocks) return p->block[0].to = n, true;
    return n == 0 || block_add(p, SERVE_BLOCK_TEXT, 0, n);
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

static bool part_add(serve_parts *p, serve_block_kind kind, serve_bytes *to, const char *text, size_t n) {
    while (to->n == 0 && n && (*text == '\n' || *text == '\r')) text++, n--;
    const size_t from = to->n;
    return serve_bytes_add(to, text, n) && block_grow(p, kind, from, to->n);
}

/* What the reader has made of the answer so far. */
static bool calls_take(serve_parts *p, const hunch_answer *a, size_t n_text) {
    p->thinking_end = a->thinking_end;
    if (a->n_thinking > p->thinking.n &&
        !part_add(p, SERVE_BLOCK_THINKING, &p->thinking, a->thinking + p->thinking.n, a->n_thinking - p->thinking.n)) return false;
    if (n_text > p->answer.n && !part_add(p, SERVE_BLOCK_TEXT, &p->answer, a->text + p->answer.n, n_text - p->answer.n)) return false;
    for (; p->n_calls < a->n_calls; p->n_calls++)
        if (!block_add(p, SERVE_BLOCK_CALL, p->n_calls, p->n_calls + 1)) return false;
    return true;
}

/* What stands for a character that a limit may have cut is no part of a call, nor of the mark that opens one. */
static bool calls_end(serve_parts *p, const char *mended, size_t n, bool cut) {
    hunch_answer a;
    if (!cut && hunch_calls_feed(p->calls, mended, n, false, NULL)) return false;
    if (hunch_calls_feed(p->calls, "", 0, true, NULL)) return false;
    hunch_calls_get(p->calls, &a);
    p->cut = cut;
    size_t n_text = a.n_text - (cut ? a.n_cut : 0);
    while (n_text && hn_is_json_space(a.text[n_text - 1])) n_text--;
    if (!calls_take(p, &a, n_text)) return false;
    const serve_block_kind kind = p->n_blocks ? p->block[p->n_blocks - 1].kind : SERVE_BLOCK_NONE;
    if (!cut || a.cut || kind == SERVE_BLOCK_NONE || kind == SERVE_BLOCK_CALL) return true;
    return part_add(p, kind, kind == SERVE_BLOCK_THINKING ? &p->thinking : &p->answer, mended, n);
}

/* Byte by byte, so that the order of what is in one piece is seen; a space changes nothing before something follows it. */
static bool calls_grow(serve_parts *p, const char *text, size_t n, bool done, bool cut) {
    static const char replacement[] = "\xEF\xBF\xBD";
    const size_t last = sizeof replacement - 1, mended = n - p->fed >= last && memcmp(text + n - last, replacement, last) == 0 ? last : 0;
    hunch_answer a;
    for (n -= mended; p->fed < n; p->fed++) {
        if (hunch_calls_feed(p->calls, text + p->fed, 1, false, NULL)) return false;
        if (hn_is_json_space(text[p->fed])) continue;
        hunch_calls_get(p->calls, &a);
        if (!calls_take(p, &a, a.n_text)) return false;
    }
    return !done || calls_end(p, text + n, mended, cut);
}

bool serve_parts_grow(serve_parts *p, const hunch_model *m, const char *text, size_t n, bool done, bool cut) {
    hunch_part part;
    if (p->calls) return calls_grow(p, text, n, done, cut);
    while (n && hunch_split_next(m, &p->split, text, n, done, &part)) {
        if (part.kind == HUNCH_PART_MARK) continue;
        const bool thinking = part.kind == HUNCH_PART_THINKING;
        if (!part_add(p, thinking ? SERVE_BLOCK_THINKING : SERVE_BLOCK_TEXT, thinking ? &p->thinking : &p->answer,
                      text + part.from, part.len))
            return false;
        if (thinking) p->thinking_end = p->split.done;
    }
    return true;
}

void serve_parts_free(serve_parts *p) {
    hunch_calls_close(&p->calls);
    serve_bytes_free(&p->thinking);
    serve_bytes_free(&p->answer);
    hn_free(p->block);
}
