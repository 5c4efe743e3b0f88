/* SPDX-License-Identifier: Apache-2.0 */
/* template_split.c - splits strings as Python's split, rsplit and splitlines do. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/template_private.h"

/* ---- split ---- */

/* A separator in s: its offset and length in bytes. */
typedef struct cut {
    size_t at, width;
} cut;

const char *ts_find_last(trun *r, tstr hay, tstr needle) {
    if (hay.n < needle.n) return NULL;
    if (needle.n == 0) return hay.s + hay.n;
    for (size_t left = hay.n - needle.n + 1; left && trun_step(r, 1 + needle.n / HN_TPL_STEP_BYTES);) {
        const char *found = memrchr(hay.s, needle.s[0], left);
        if (!found || memcmp(found, needle.s, needle.n) == 0) return found;
        left = (size_t)(found - hay.s);
    }
    return NULL;
}

static bool find_space(tstr s, cut *out) {
    uint32_t cp;
    for (size_t i = 0; i < s.n; i += out->width) {
        out->at = i;
        out->width = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        if (ts_is_space(cp)) return true;
    }
    return false;
}

static bool find_last_space(tstr s, cut *out) {
    uint32_t cp;
    for (size_t end = s.n; end > 0; end = out->at) {
        for (out->at = end - 1; ((unsigned char)s.s[out->at] & 0xC0) == 0x80;) out->at--;
        out->width = (size_t)hn_utf8_decode(s.s + out->at, end - out->at, &cp);
        if (ts_is_space(cp)) return true;
    }
    return false;
}

static bool find_cut(trun *r, tstr s, const tstr *separator, bool from_right, cut *out) {
    if (!separator) return from_right ? find_last_space(s, out) : find_space(s, out);
    const char *found = from_right ? ts_find_last(r, s, *separator) : ts_find(s, *separator);
    if (found) *out = (cut){(size_t)(found - s.s), separator->n};
    return found != NULL;
}

/* Removes the next piece from *s. False: it was the last. Without a separator, white space alone is not a piece. */
static bool take_piece(trun *r, tstr *s, const tstr *separator, bool cuts, bool from_right, tstr *piece) {
    cut c;
    bool more = cuts && find_cut(r, *s, separator, from_right, &c);
    tstr before = {s->s, more ? c.at : s->n}, after = {s->s + s->n, 0};
    if (more) after = (tstr){s->s + c.at + c.width, s->n - c.at - c.width};
    *piece = more && from_right ? after : before;
    *s = from_right ? before : after;
    if (!separator) *s = ts_strip_space(*s, !from_right, from_right);
    return more && (separator || s->n);
}

/* Counts the pieces, and stores them in items unless that is NULL. */
static size_t split_into(trun *r, tstr s, const tstr *separator, int64_t most, bool from_right, tvalue *items) {
    size_t n = 0;
    tstr piece;
    if (!separator) s = ts_strip_space(s, !from_right, from_right);
    for (bool more = separator || s.n; more && trun_step(r, 1); n++) {
        more = take_piece(r, &s, separator, most < 0 || n < (uint64_t)most, from_right, &piece);
        if (items) items[n] = tv_str(piece.s, piece.n);
    }
    return n;
}

tvalue ts_split(trun *r, tstr s, const tstr *separator, int64_t most, bool from_right) {
    if (!trun_text(r, s.n)) return tv_error(); /* it is read twice */
    tvalue *items, v = tv_list(r, TV_LIST, split_into(r, s, separator, most, from_right, NULL), &items);
    if (v.kind == TV_ERROR || r->status) return tv_error();
    size_t n = split_into(r, s, separator, most, from_right, items);
    for (size_t i = 0; from_right && i < n / 2; i++) {
        tvalue other = items[i];
        items[i] = items[n - 1 - i];
        items[n - 1 - i] = other;
    }
    return !r->status ? v : tv_error();
}

/* ---- lines ---- */

static bool ends_line(uint32_t cp) {
    return (cp >= 0x0A && cp <= 0x0D) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

size_t ts_take_line(tstr *s, tstr *line) {
    size_t at = 0, end = 0;
    uint32_t cp;
    for (size_t step; at < s->n && !end; at += end ? 0 : step) {
        step = (size_t)hn_utf8_decode(s->s + at, s->n - at, &cp);
        if (ends_line(cp)) end = cp == '\r' && at + 1 < s->n && s->s[at + 1] == '\n' ? 2 : step;
    }
    *line = (tstr){s->s, at};
    *s = (tstr){s->s + at + end, s->n - at - end};
    return end;
}
