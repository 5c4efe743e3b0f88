/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_translate.c - translates a pattern from Oniguruma's syntax to PCRE2's.
 *
 * The two agree on nearly all that tokenizers use. They differ in \w and so in \b (Oniguruma: marks and connecting
 * punctuation are included, numbers that are not digits are not), in \h (a hexadecimal digit), and in classes within
 * classes and their intersections. The first are translated, the last refused, because PCRE2 would read them as
 * something else.
 */
#include <string.h>

#include "base/mem.h"
#include "text/split/pattern.h"

#define WORD "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"
#define HEX "0-9A-Fa-f"
#define BOUNDARY "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))"
#define NO_BOUNDARY "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))"

typedef struct translation {
    char *out;
    size_t n, cap;
    int class; /* 0: outside of a class; else the number of bytes of it that were read, with the bracket */
} translation;

static bool put(translation *t, const char *s, size_t len) {
    if (!hn_grow((void **)&t->out, &t->cap, t->n + len + 1, 1)) return false;
    memcpy(t->out + t->n, s, len);
    t->n += len;
    t->out[t->n] = '\0';
    return true;
}

/* The set of characters that the escape of a letter means in Oniguruma; NULL: as in PCRE2. */
static const char *set_of(char letter) {
    return letter == 'w' || letter == 'W' ? WORD : letter == 'h' || letter == 'H' ? HEX : NULL;
}

static hunch_status refuse(const char *text, const char *what, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "pattern \"%.200s\": %s is not supported", text, what);
}

static hunch_status put_escape(translation *t, const char *text, char letter, hunch_error *err) {
    const char *set = set_of(letter);
    char raw[2] = {'\\', letter};
    bool ok;
    if (!t->class && (letter == 'b' || letter == 'B')) {
        const char *edge = letter == 'b' ? BOUNDARY : NO_BOUNDARY;
        ok = put(t, edge, strlen(edge));
    } else if (!set) {
        ok = put(t, raw, letter ? 2 : 1);
    } else if (t->class) {
        if (letter == 'W' || letter == 'H') return refuse(text, "\\W or \\H inside of a class", err);
        ok = put(t, set, strlen(set));
    } else {
        bool negated = letter == 'W' || letter == 'H';
        ok = put(t, negated ? "[^" : "[", negated ? 2 : 1) && put(t, set, strlen(set)) && put(t, "]", 1);
    }
    return ok ? HUNCH_OK : hn_fail_memory(err, "a pattern", t->n);
}

/* Translates one character in or outside of a class, other than an escape. */
static hunch_status put_plain(translation *t, const char *text, const char *at, hunch_error *err) {
    if (t->class) {
        bool first = t->class == 1 || (t->class == 2 && at[-1] == '^'); /* there a bracket is a literal */
        if (*at == '[') return refuse(text, "a class within a class", err);
        if (*at == '&' && at[1] == '&') return refuse(text, "an intersection of classes (&&)", err);
        t->class = *at == ']' && !first ? 0 : t->class + 1;
    } else if (*at == '[') {
        t->class = 1;
    }
    return put(t, at, 1) ? HUNCH_OK : hn_fail_memory(err, "a pattern", t->n);
}

hunch_status hn_pattern_translate(char **out, const char *text, hunch_error *err) {
    translation t = {0};
    hunch_status s = put(&t, "", 0) ? HUNCH_OK : hn_fail_memory(err, "a pattern", 0);
    for (const char *at = text; *at && !s; at++) {
        const char *close = t.class && at[0] == '[' && at[1] == ':' ? strstr(at + 2, ":]") : NULL;
        if (close) { /* [:alpha:] */
            s = put(&t, at, (size_t)(close + 2 - at)) ? HUNCH_OK : hn_fail_memory(err, "a pattern", t.n);
            t.class += 2;
            at = close + 1;
        } else if (*at != '\\') {
            s = put_plain(&t, text, at, err);
        } else {
            s = put_escape(&t, text, at[1], err);
            if (t.class) t.class += 2;
            if (at[1]) at++;
        }
    }
    if (s) {
        hn_free(t.out);
        t.out = NULL;
    }
    *out = t.out;
    return s;
}

char *hn_pattern_quote(const char *text) {
    size_t n = 0;
    char *out = hn_alloc(2 * strlen(text) + 1);
    if (!out) return NULL;
    for (; *text; text++) {
        if (strchr("\\^$.|?*+()[]{}-#&~/ \t\n\r", *text)) out[n++] = '\\';
        out[n++] = *text;
    }
    out[n] = '\0';
    return out;
}
