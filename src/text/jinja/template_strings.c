/* SPDX-License-Identifier: Apache-2.0 */
/* template_strings.c - operations of Python's str on UTF-8: lengths and indices in code points, white space. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/template_private.h"

bool ts_same(tstr a, tstr b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

bool ts_equal(tstr a, const char *literal) {
    return ts_same(a, (tstr){literal, strlen(literal)});
}

size_t ts_length(tstr s) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += (s.s[i] & 0xC0) != 0x80;
    return n;
}

size_t ts_offset(tstr s, size_t index) {
    for (size_t i = 0; i < s.n; i++) {
        if ((s.s[i] & 0xC0) != 0x80 && index-- == 0) return i;
    }
    return s.n;
}

const char *ts_find(tstr hay, tstr needle) {
    if (needle.n == 0) return hay.s;
    return hay.n >= needle.n ? memmem(hay.s, hay.n, needle.s, needle.n) : NULL;
}

bool ts_is_space(uint32_t cp) {
    return (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x20) || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F ||
           cp == 0x3000;
}

tstr ts_strip_space(tstr s, bool left, bool right) {
    return ts_strip(NULL, s, NULL, left, right);
}

/* Only characters of chars cost steps. */
static bool strips(trun *r, uint32_t cp, const tstr *chars) {
    if (!chars) return ts_is_space(cp);
    char utf8[4];
    return trun_step(r, 1 + chars->n / HN_TPL_STEP_BYTES) &&
           ts_find(*chars, (tstr){utf8, (size_t)hn_utf8_encode(cp, utf8)}) != NULL;
}

tstr ts_strip(trun *r, tstr s, const tstr *chars, bool left, bool right) {
    uint32_t cp;
    while (left && s.n) {
        size_t step = (size_t)hn_utf8_decode(s.s, s.n, &cp);
        if (!strips(r, cp, chars)) break;
        s.s += step;
        s.n -= step;
    }
    while (right && s.n) {
        size_t step = 1;
        while ((s.s[s.n - step] & 0xC0) == 0x80) step++;
        hn_utf8_decode(s.s + s.n - step, step, &cp);
        if (!strips(r, cp, chars)) break;
        s.n -= step;
    }
    return s;
}

tvalue ts_replace(trun *r, tstr s, tstr from, tstr to, int64_t count) {
    tbuf b = {.arena = &r->arena};
    uint32_t cp;
    size_t at = 0;
    for (; count != 0 && !b.failed && trun_step(r, 1); count--) {
        const char *found = ts_find((tstr){s.s + at, s.n - at}, from);
        if (!found) break;
        size_t n = (size_t)(found - (s.s + at));
        tbuf_put(&b, s.s + at, n);
        tbuf_put(&b, to.s, to.n);
        at += n + from.n;
        if (from.n) continue;
        if (at == s.n) break; /* an empty one matches before each character and at the end */
        size_t step = (size_t)hn_utf8_decode(s.s + at, s.n - at, &cp);
        tbuf_put(&b, s.s + at, step);
        at += step;
    }
    tbuf_put(&b, s.s + at, s.n - at);
    return tv_buffer(r, &b);
}
