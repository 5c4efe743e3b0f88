/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan.c - see json_scan.h. A state for each place in the grammar; a bit for each open container. Only strings are long, so only
 * they have a loop of their own. */
#include "calls/json_scan.h"
#include "base/ascii.h"

#include <string.h>

enum {
    VALUE,       /* a value begins */
    FIRST_VALUE, /* or the array ends */
    FIRST_KEY,   /* a key, or the object ends */
    KEY,
    COLON,
    AFTER,       /* a comma, or the container ends */
    STRING,
    ESCAPE,
    HEX,
    SURROGATE,   /* \ of the second half of a pair, then its u */
    WORD,        /* the rest of true, false, null */
    MINUS,
    ZERO,
    DIGITS,
    POINT,
    FRACTION,
    EXPONENT,
    SIGNED,
    POWER
};

void hn_json_scan_init(hn_json_scan *s) {
    memset(s, 0, sizeof *s);
}

/* A state that is entered only by a byte that fits. */
static bool go(hn_json_scan *s, bool fits, uint8_t to) {
    if (fits) s->state = to;
    return fits;
}

static void value_over(hn_json_scan *s) {
    s->state = AFTER;
    s->done = s->depth == 0;
}

static bool container_open(hn_json_scan *s, bool object) {
    if (s->depth == HN_JSON_DEPTH) return false;
    const uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *word = &s->object[s->depth++ / 64];
    *word = object ? *word | bit : *word & ~bit;
    s->state = object ? FIRST_KEY : FIRST_VALUE;
    return true;
}

static bool in_object(const hn_json_scan *s) {
    return s->object[(s->depth - 1) / 64] >> ((s->depth - 1) % 64) & 1;
}

static bool container_close(hn_json_scan *s, char c) {
    if (s->depth == 0 || c != (in_object(s) ? '}' : ']')) return false;
    s->depth--;
    value_over(s);
    return true;
}

static bool string_begin(hn_json_scan *s, bool key) {
    s->state = STRING;
    s->key = key;
    s->surrogate = 0;
    return true;
}

static bool word_begin(hn_json_scan *s, const char *word) {
    s->word = word;
    s->word_at = 1;
    s->state = WORD;
    return true;
}

static bool value_begin(hn_json_scan *s, char c) {
    switch (c) {
    case '{': return container_open(s, true);
    case '[': return container_open(s, false);
    case '"': return string_begin(s, false);
    case 't': return word_begin(s, "true");
    case 'f': return word_begin(s, "false");
    case 'n': return word_begin(s, "null");
    case '-': s->state = MINUS; return true;
    default: return go(s, hn_is_digit(c), c == '0' ? ZERO : DIGITS);
    }
}

/* Between the tokens of containers. False: c does not fit. */
static bool structure(hn_json_scan *s, char c) {
    if (hn_is_json_space(c)) return true;
    switch (s->state) {
    case FIRST_VALUE: return c == ']' ? container_close(s, c) : value_begin(s, c);
    case VALUE: return value_begin(s, c);
    case FIRST_KEY: return c == '}' ? container_close(s, c) : c == '"' && string_begin(s, true);
    case KEY: return c == '"' && string_begin(s, true);
    case COLON: s->state = VALUE; return c == ':';
    default: break; /* AFTER */
    }
    if (c != ',') return container_close(s, c);
    s->state = in_object(s) ? KEY : VALUE;
    return true;
}

/* The four digits of \u: their value is needed only as far as it tells halves of pairs. surrogate: 1 after the first half, 2 in the
 * second. */
static bool hex(hn_json_scan *s, char c) {
    const int d = hn_hex_digit(c);
    if (d < 0) return false;
    if (s->hex == 0) s->word_at = d == 13;                                           /* D... */
    else if (s->hex == 1 && s->word_at) s->word_at = d < 8 ? 0 : d < 12 ? 1 : 2; /* D8 to DB, DC to DF */
    if (s->hex == 1 && (s->surrogate == 2) != (s->word_at == 2)) return false;
    if (++s->hex < 4) return true;
    s->surrogate = s->word_at == 1;
    s->state = s->surrogate ? SURROGATE : STRING;
    s->hex = 0;
    return true;
}

static bool escape(hn_json_scan *s, char c) {
    s->state = c == 'u' ? HEX : STRING;
    return c && strchr("\"\\/bfnrtu", c);
}

static bool surrogate(hn_json_scan *s, char c) {
    if (s->surrogate == 1 && c == '\\') return s->surrogate = 3, true;
    s->state = HEX;
    const bool fits = s->surrogate == 3 && c == 'u';
    s->surrogate = 2;
    return fits;
}

static bool word(hn_json_scan *s, char c) {
    if (c != s->word[s->word_at++]) return false;
    if (!s->word[s->word_at]) value_over(s);
    return true;
}

static bool number_may_end(const hn_json_scan *s) {
    return s->state == ZERO || s->state == DIGITS || s->state == FRACTION || s->state == POWER;
}

/* False: c is not part of the number, and nothing changed. */
static bool number(hn_json_scan *s, char c) {
    const bool digit = hn_is_digit(c);
    switch (s->state) {
    case MINUS: return go(s, digit, c == '0' ? ZERO : DIGITS);
    case POINT: return go(s, digit, FRACTION);
    case EXPONENT: return go(s, digit || c == '+' || c == '-', digit ? POWER : SIGNED);
    case SIGNED:
    case POWER: return go(s, digit, POWER);
    default: break; /* ZERO, DIGITS, FRACTION */
    }
    if (digit) return s->state != ZERO;
    if (c == 'e' || c == 'E') return go(s, true, EXPONENT);
    return go(s, c == '.' && s->state != FRACTION, POINT);
}

/* Plain bytes of a string from i on; returns where they end. */
static size_t string_plain(const char *bytes, size_t i, size_t n) {
    while (i < n && bytes[i] != '"' && bytes[i] != '\\' && (unsigned char)bytes[i] >= 0x20) i++;
    return i;
}

static bool in_string(hn_json_scan *s, char c) {
    if (c == '\\') return s->state = ESCAPE, true;
    if (c != '"') return false;
    if (s->key) s->state = COLON;
    else value_over(s);
    return true;
}

static bool next(hn_json_scan *s, char c) {
    switch (s->state) {
    case STRING: return in_string(s, c);
    case ESCAPE: return escape(s, c);
    case HEX: return hex(s, c);
    case SURROGATE: return surrogate(s, c);
    case WORD: return word(s, c);
    default: return s->state < STRING ? structure(s, c) : number(s, c);
    }
}

size_t hn_json_scan_run(hn_json_scan *s, const char *bytes, size_t n, bool ended) {
    size_t i = 0;
    while (i < n && !s->done && !s->bad) {
        if (s->state == STRING) {
            i = string_plain(bytes, i, n);
            if (i == n) break;
        }
        if (next(s, bytes[i])) i++;
        else if (s->state >= MINUS && number_may_end(s)) value_over(s); /* the byte is read again, behind the number */
        else s->bad = true;
    }
    if (i == n && ended && !s->done && !s->bad) {
        if (s->depth == 0 && s->state >= MINUS && number_may_end(s)) s->done = true;
        else s->bad = true;
    }
    return i;
}

bool hn_json_is_value(const char *text, size_t n) {
    hn_json_scan s;
    hn_json_scan_init(&s);
    size_t i = hn_json_scan_run(&s, text, n, true);
    while (i < n && hn_is_json_space(text[i])) i++;
    return s.done && i == n;
}
