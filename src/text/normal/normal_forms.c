/* SPDX-License-Identifier: Apache-2.0 */
/* normal_forms.c - decomposition and composition by utf8proc; marks are sorted here, because a text of nothing but marks
 * must not take quadratic time.
 *
 * No ASCII character composes with the character before it, so a text is split into parts that begin with one. Parts of
 * ASCII alone are already normalised, and so, in NFC, are characters below U+0300.
 */
#include "text/normal/normal_forms.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"

bool hn_text_put(hn_text *t, const char *bytes, size_t len) {
    if (len == 0) return true;
    t->over = t->most && len > t->most - t->len;
    if (t->over) return false;
    if (!hn_grow((void **)&t->bytes, &t->cap, t->len + len, 1)) return false;
    memcpy(t->bytes + t->len, bytes, len);
    t->len += len;
    return true;
}

bool hn_text_replace(hn_text *t, const char *text, size_t len, const char *from, const char *to) {
    size_t n = strlen(from), at = 0;
    while (n && at < len) {
        const char *found = memmem(text + at, len - at, from, n);
        if (!found) break;
        if (!hn_text_put(t, text + at, (size_t)(found - text) - at)) return false;
        if (!hn_text_put(t, to, strlen(to))) return false;
        at = (size_t)(found - text) + n;
    }
    return hn_text_put(t, text + at, len - at);
}

void hn_form_work_fini(hn_form_work *w) {
    hn_free(w->points);
    hn_free(w->order);
    *w = (hn_form_work){0};
}

enum { MOST_OF_ONE = 32 }; /* no character decomposes into more */

static bool decompose(hn_form_work *w, const char *text, size_t len, int options) {
    uint32_t cp;
    w->n = 0;
    for (size_t i = 0; i < len; i += (size_t)hn_utf8_decode(text + i, len - i, &cp)) {
        int boundary = 0;
        hn_utf8_decode(text + i, len - i, &cp);
        if (!hn_grow((void **)&w->points, &w->cap_points, w->n + MOST_OF_ONE, sizeof *w->points)) return false;
        utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, w->points + w->n, MOST_OF_ONE,
                                                     (utf8proc_option_t)options, &boundary);
        if (n <= 0 || n > MOST_OF_ONE) { /* unknown to utf8proc: unchanged */
            w->points[w->n] = (int32_t)cp;
            n = 1;
        }
        w->n += (size_t)n;
    }
    return true;
}

static int class_of(int32_t cp) {
    return utf8proc_get_property(cp)->combining_class;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the marks between two starters by class, stably. Keys: class, place, code point. */
static bool sort_marks(hn_form_work *w, size_t from, size_t to) {
    enum { FEW = 16 };
    size_t n = to - from;
    if (n <= FEW) {
        for (size_t i = from + 1; i < to; i++) {
            int32_t cp = w->points[i];
            size_t k = i;
            for (; k > from && class_of(w->points[k - 1]) > class_of(cp); k--) w->points[k] = w->points[k - 1];
            w->points[k] = cp;
        }
        return true;
    }
    if (!hn_grow((void **)&w->order, &w->cap_order, n, 2 * sizeof *w->order)) return false;
    for (size_t i = 0; i < n; i++) {
        w->order[2 * i] = (uint64_t)class_of(w->points[from + i]) << 32 | i;
        w->order[2 * i + 1] = (uint64_t)(uint32_t)w->points[from + i];
    }
    qsort(w->order, n, 2 * sizeof *w->order, compare);
    for (size_t i = 0; i < n; i++) w->points[from + i] = (int32_t)w->order[2 * i + 1];
    return true;
}

static bool sort_all(hn_form_work *w) {
    for (size_t i = 0; i < w->n;) {
        size_t from = i;
        while (i < w->n && class_of(w->points[i]) > 0) i++;
        if (i - from > 1 && !sort_marks(w, from, i)) return false;
        i += i == from;
    }
    return true;
}

/* One part of a text. */
static bool put_form(hn_form_work *w, hn_text *out, const char *text, size_t len, bool compose, bool compat) {
    int options = UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0);
    if (!decompose(w, text, len, options | UTF8PROC_DECOMPOSE) || !sort_all(w)) return false;
    if (compose) {
        utf8proc_ssize_t n = utf8proc_normalize_utf32(w->points, (utf8proc_ssize_t)w->n,
                                                      (utf8proc_option_t)(options | UTF8PROC_COMPOSE));
        if (n >= 0) w->n = (size_t)n;
    }
    for (size_t i = 0; i < w->n; i++) {
        char bytes[4];
        if (!hn_text_put(out, bytes, (size_t)hn_utf8_encode((uint32_t)w->points[i], bytes))) return false;
    }
    return true;
}

bool hn_normal_form(hn_form_work *w, hn_text *out, const char *text, size_t len, bool compose, bool compat) {
    unsigned char safe = compose && !compat ? 0xCC : 0x80; /* characters with a lead byte below are already normalised */
    size_t kept = 0;
    for (size_t at = 0; at < len;) {
        if ((unsigned char)text[at] < 0x80) {
            at++;
            continue;
        }
        size_t from = at - (at > kept), to = at; /* the ASCII character before may compose with a mark */
        bool plain = true;
        for (; to < len && (unsigned char)text[to] >= 0x80; to++) {
            unsigned char u = (unsigned char)text[to];
            plain &= u < safe || (u & 0xC0) == 0x80;
        }
        if (safe == 0x80) plain = false;
        if (!plain &&
            (!hn_text_put(out, text + kept, from - kept) || !put_form(w, out, text + from, to - from, compose, compat)))
            return false;
        if (!plain) kept = to;
        at = to;
    }
    return hn_text_put(out, text + kept, len - kept);
}
