/* SPDX-License-Identifier: Apache-2.0 */
/* template_strings.c - what Python's str does, on UTF-8: lengths and places in code points, white space, case. */
#include <string.h>

#include "base/utf8.h"
#include "text/template_private.h"

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

/* Letters whose cases lie a fixed distance apart, or side by side (step 1: even upper, -1: odd upper). The scripts that
 * chat templates change the case of; others stay as they are. */
static const struct case_range {
    uint32_t first, last; /* upper case */
    int32_t to_lower;
} cases[] = {
    {'A', 'Z', 32},     {0xC0, 0xD6, 32},    {0xD8, 0xDE, 32},    {0x391, 0x3A1, 32}, {0x3A3, 0x3AB, 32},
    {0x410, 0x42F, 32}, {0x400, 0x40F, 80},  {0x531, 0x556, 48},  {0x100, 0x12E, 1},  {0x132, 0x136, 1},
    {0x139, 0x147, -1}, {0x14A, 0x176, 1},   {0x179, 0x17D, -1},  {0x460, 0x480, 1},  {0x48A, 0x4BE, 1},
    {0x4D0, 0x52E, 1},  {0x1E00, 0x1E94, 1}, {0x1EA0, 0x1EFE, 1},
};

static uint32_t change_case(uint32_t cp, bool upper) {
    if (cp < 0x80) return upper ? cp - (cp >= 'a' && cp <= 'z' ? 32 : 0) : cp + (cp >= 'A' && cp <= 'Z' ? 32 : 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct case_range *c = &cases[i];
        int32_t distance = c->to_lower == -1 ? 1 : c->to_lower;
        uint32_t letter = upper ? cp - (uint32_t)distance : cp;
        if (letter < c->first || letter > c->last) continue;
        if (distance == 1 && ((letter & 1) == 0) != (c->to_lower == 1)) continue;
        return upper ? letter : letter + (uint32_t)distance;
    }
    return cp;
}

static bool is_letter(uint32_t cp) {
    uint32_t low = cp | 0x20;
    return (low >= 'a' && low <= 'z') || cp == 0xAA || cp == 0xB5 || cp == 0xBA ||
           (cp >= 0xC0 && cp != 0xD7 && cp != 0xF7);
}

/* Jinja's filter title looks for these in front of words, Python's method for anything but letters. */
static bool begins_word(uint32_t cp) {
    return ts_is_space(cp) || cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<';
}

tvalue ts_change_case(trun *r, tstr s, char how) {
    tbuf b = {.arena = &r->arena};
    bool begins = true; /* a word; for 'c' the text */
    uint32_t cp;
    for (size_t i = 0, step; i < s.n && !b.failed; i += step) {
        char utf8[4];
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        bool upper = how == 'u' || (how != 'l' && begins);
        begins = how == 't' ? !is_letter(cp) : how == 'T' && begins_word(cp);
        if (cp == 0xDF && upper)
            tbuf_puts(&b, how == 'u' ? "SS" : "Ss");
        else
            tbuf_put(&b, utf8, (size_t)hn_utf8_encode(change_case(cp, upper), utf8));
    }
    return tv_buffer(r, &b);
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
        if (at == s.n) break; /* an empty one stands before each character and at the end */
        size_t step = (size_t)hn_utf8_decode(s.s + at, s.n - at, &cp);
        tbuf_put(&b, s.s + at, step);
        at += step;
    }
    tbuf_put(&b, s.s + at, s.n - at);
    return tv_buffer(r, &b);
}
