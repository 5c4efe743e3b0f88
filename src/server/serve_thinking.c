/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking.c - see serve_thinking.h. */
#include "server/serve_thinking.h"

#include <stdint.h>
#include <string.h>

static const char BEGIN[] = "<think>", END[] = "</think>";
#define NOWHERE SIZE_MAX
enum { BEGINS = sizeof BEGIN - 1, ENDS = sizeof END - 1 };

bool serve_opens_thinking(const char *prompt, size_t n) {
    while (n && strchr(" \r\n", prompt[n - 1])) n--;
    return n >= BEGINS && memcmp(prompt + n - BEGINS, BEGIN, BEGINS) == 0;
}

static size_t after_breaks(const char *text, size_t at, size_t n) {
    while (at < n && (text[at] == '\n' || text[at] == '\r')) at++;
    return at;
}

/* Bytes at the end of the text that END may begin with. */
static size_t held_back(const char *text, size_t n) {
    for (size_t k = n < ENDS - 1 ? n : ENDS - 1; k > 0; k--)
        if (memcmp(text + n - k, END, k) == 0) return k;
    return 0;
}

/* Where thinking begins; NOWHERE also where that is not known yet (*unknown). */
static size_t thinking_begin(const char *text, size_t n, bool thinks, bool done, bool *unknown) {
    size_t at = 0;
    *unknown = false;
    if (thinks) return 0;
    while (at < n && strchr(" \r\n", text[at])) at++;
    const size_t left = n - at, same = left < BEGINS ? left : BEGINS;
    if (memcmp(text + at, BEGIN, same) != 0) return NOWHERE;
    if (left >= BEGINS) return at + BEGINS;
    *unknown = !done;
    return NOWHERE;
}

serve_parts serve_parts_of(const char *text, size_t n, bool thinks, bool done) {
    bool unknown;
    serve_parts p = {0};
    if (n == 0) return p;
    const size_t begin = thinking_begin(text, n, thinks, done, &unknown);
    if (unknown) return p;
    if (begin == NOWHERE) return (serve_parts){.n_answer = n};
    p.thinking = after_breaks(text, begin, n);
    const char *end = memmem(text + begin, n - begin, END, ENDS);
    if (!end) {
        const size_t held = done ? 0 : held_back(text + begin, n - begin);
        p.n_thinking = n - held > p.thinking ? n - held - p.thinking : 0;
        p.answer = n;
        return p;
    }
    const size_t at = (size_t)(end - text);
    p.n_thinking = at > p.thinking ? at - p.thinking : 0;
    p.answer = after_breaks(text, at + ENDS, n);
    p.n_answer = n - p.answer;
    return p;
}
