/* SPDX-License-Identifier: Apache-2.0 */
/* literal.c - see literal.h. A state for each place, a closing letter for each open container; numbers and words are read once what ends
 * them is there, strings as they come. */
#include "calls/literal.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "calls/json_scan.h"

enum { VALUE, FIRST_VALUE, FIRST_KEY, KEY, COLON, AFTER, STRING, OVER };
#define MARK "<|\"|>"
enum { MARK_BYTES = 5, LONGEST_WORD = 400 };

void hn_literal_init(hn_literal *l, hn_literal_style style) {
    memset(l, 0, sizeof *l);
    l->style = style;
}

typedef struct rest { /* of the bytes that are there */
    const char *at;
    size_t n;
    bool ended;
} rest;

typedef enum step { STEP_BAD, STEP_ON, STEP_MORE } step;

static void put(hn_literal *l, hn_bytes *out, const char *bytes, size_t n) {
    if (!hn_bytes_add(out, bytes, n)) l->no_memory = true;
}

static void pass(rest *r, size_t n) {
    r->at += n;
    r->n -= n;
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

static size_t space(const rest *r, size_t i) {
    while (i < r->n && hn_is_json_space(r->at[i])) i++;
    return i;
}

static bool in_object(const hn_literal *l) {
    return l->depth && (l->close[l->depth - 1] == '}' || (l->equals && l->depth == 1));
}

static step value_over(hn_literal *l) {
    l->state = l->depth ? AFTER : OVER;
    return STEP_ON;
}

/* ---- containers -------------------------------------------------------------------------------------------------------- */

static step container_open(hn_literal *l, rest *r, hn_bytes *out, char c) {
    if (l->depth == HN_LITERAL_DEPTH) return STEP_BAD;
    const bool object = c == '{' || (l->style == HN_GEMMA && c == '(' && l->depth == 0);
    if (object && c == '(') l->equals = true;
    l->close[l->depth++] = c == '{' ? '}' : c == '[' ? ']' : ')';
    l->state = object ? FIRST_KEY : FIRST_VALUE;
    put(l, out, object ? "{" : "[", 1);
    pass(r, 1);
    return STEP_ON;
}

static step container_close(hn_literal *l, rest *r, hn_bytes *out) {
    if (l->depth == 0 || *r->at != l->close[l->depth - 1]) return STEP_BAD;
    put(l, out, in_object(l) ? "}" : "]", 1);
    l->depth--;
    pass(r, 1);
    return value_over(l);
}

/* Behind a member: a comma (in Gemma's spelling it may be missing), and another one, or the end. */
static step after(hn_literal *l, rest *r, hn_bytes *out) {
    const bool comma = *r->at == ',';
    if (!comma && *r->at == l->close[l->depth - 1]) return container_close(l, r, out);
    if (!comma && l->style != HN_GEMMA) return STEP_BAD;
    const size_t i = comma ? space(r, 1) : 0;
    if (i == r->n) return r->ended ? STEP_BAD : STEP_MORE;
    pass(r, i);
    if (*r->at == l->close[l->depth - 1]) return container_close(l, r, out); /* Python allows a comma before the end */
    put(l, out, ", ", 2);
    l->state = in_object(l) ? KEY : VALUE;
    return STEP_ON;
}

/* ---- strings ----------------------------------------------------------------------------------------------------------- */

static step string_begin(hn_literal *l, rest *r, hn_bytes *out, char quote, size_t mark) {
    l->quote = quote;
    l->state = STRING;
    put(l, out, "\"", 1);
    pass(r, mark);
    return STEP_ON;
}

static step string_over(hn_literal *l, rest *r, hn_bytes *out, size_t mark) {
    const bool key = l->key;
    put(l, out, "\"", 1);
    pass(r, mark);
    l->key = false;
    if (!key) return value_over(l);
    l->state = COLON;
    return STEP_ON;
}

static int digits(const rest *r, size_t from, size_t n, int base, uint32_t *value) {
    char text[12] = {0}, *end;
    if (from + n > r->n) return -1;
    memcpy(text, r->at + from, n);
    *value = (uint32_t)strtoul(text, &end, base);
    return strspn(text, base == 16 ? "0123456789abcdefABCDEF" : "01234567") == n && *end == 0;
}

static void character(hn_literal *l, hn_bytes *out, uint32_t point) {
    char bytes[4];
    const int n = hn_utf8_encode(point, bytes);
    if (!hn_json_escape(out, n ? bytes : "\xEF\xBF\xBD", n ? (size_t)n : 3)) l->no_memory = true;
}

/* \uD83D\uDE00, as JSON writes it: two halves. *used: bytes. */
static step pair(hn_literal *l, const rest *r, hn_bytes *out, uint32_t high, size_t *used) {
    uint32_t low = 0;
    if (r->n < 12 && !r->ended) return STEP_MORE;
    if (r->n >= 12 && r->at[6] == '\\' && r->at[7] == 'u' && digits(r, 8, 4, 16, &low) == 1 && low >> 10 == 0x37) {
        *used = 12;
        high = 0x10000 + ((high & 0x3FF) << 10 | (low & 0x3FF));
    }
    character(l, out, high);
    return STEP_ON;
}

static step escape(hn_literal *l, rest *r, hn_bytes *out) {
    static const char plain[] = "\\'\"abfnrtv/", meaning[] = "\\'\"\a\b\f\n\r\t\v/";
    if (r->n < 2) return r->ended ? STEP_BAD : STEP_MORE;
    const char c = r->at[1], *found = c ? strchr(plain, c) : NULL;
    const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    size_t used = 2 + n;
    uint32_t point = 0;
    if (found) {
        if (!hn_json_escape(out, meaning + (found - plain), 1)) l->no_memory = true;
    } else if (n) {
        const int is = digits(r, 2, n, 16, &point);
        if (is < 0 && !r->ended) return STEP_MORE;
        if (is != 1) return STEP_BAD;
        if (c == 'u' && point >> 10 == 0x36) {
            if (pair(l, r, out, point, &used) == STEP_MORE) return STEP_MORE;
        } else character(l, out, point);
    } else if (c >= '0' && c <= '7') {
        for (used = 1; used < 4 && used < r->n && r->at[used] >= '0' && r->at[used] <= '7'; used++)
            point = point * 8 + (uint32_t)(r->at[used] - '0');
        if (used == r->n && used < 4 && !r->ended) return STEP_MORE;
        character(l, out, point);
    } else if (c != '\n' && !hn_json_escape(out, r->at, 2)) l->no_memory = true; /* unknown: both stay; a line break goes */
    pass(r, used);
    return STEP_ON;
}

/* Whether the quote at r->at ends its string. Models write quotes in strings without a backslash, so something that follows a string
 * has to follow. */
static step quote_ends(const hn_literal *l, const rest *r) {
    size_t i = space(r, 1);
    if (l->style == HN_PYTHON) return STEP_ON;
    if (i == r->n) return r->ended ? STEP_ON : STEP_MORE;
    if (l->key) return r->at[i] == ':' || r->at[i] == '=' ? STEP_ON : STEP_BAD;
    if (!l->argument || l->depth || r->at[i] != ',') return strchr(",)]}:", r->at[i]) && r->at[i] ? STEP_ON : STEP_BAD;
    const size_t name = i = space(r, i + 1);
    while (i < r->n && is_name(r->at[i])) i++;
    const size_t end = space(r, i);
    if (end == r->n) return r->ended ? STEP_BAD : STEP_MORE;
    return i > name && r->at[end] == '=' ? STEP_ON : STEP_BAD;
}

static step plain_add(hn_literal *l, rest *r, hn_bytes *out, size_t n) {
    if (!hn_json_escape(out, r->at, n)) l->no_memory = true;
    pass(r, n);
    return STEP_ON;
}

/* A string between Gemma's marks: nothing in it is escaped. */
static step marked_string(hn_literal *l, rest *r, hn_bytes *out) {
    const char *at = memchr(r->at, '<', r->n);
    const size_t n = at ? (size_t)(at - r->at) : r->n, left = r->n - n;
    if (n) return plain_add(l, r, out, n);
    if (memcmp(at, MARK, left < MARK_BYTES ? left : MARK_BYTES) != 0) return plain_add(l, r, out, 1);
    if (left < MARK_BYTES) return r->ended ? STEP_BAD : STEP_MORE;
    return string_over(l, r, out, MARK_BYTES);
}

static step string(hn_literal *l, rest *r, hn_bytes *out) {
    if (!l->quote) return marked_string(l, r, out);
    size_t n = 0;
    while (n < r->n && r->at[n] != l->quote && r->at[n] != '\\' && (r->at[n] != '\n' || l->style != HN_PYTHON)) n++;
    if (n) return plain_add(l, r, out, n);
    if (*r->at == '\\') return escape(l, r, out);
    if (*r->at == '\n') return STEP_BAD;
    const step ends = quote_ends(l, r);
    return ends == STEP_MORE ? STEP_MORE : ends == STEP_ON ? string_over(l, r, out, 1) : plain_add(l, r, out, 1);
}

/* ---- words and numbers ------------------------------------------------------------------------------------------------- */

/* A number of Python as JSON's. False: it is none. */
static bool number_add(hn_literal *l, hn_bytes *out, const char *word, size_t n) {
    char text[LONGEST_WORD + 8];
    size_t m = 0, i = 0;
    bool zeros = false;
    if (i < n && (word[i] == '-' || word[i] == '+')) {
        if (word[i++] == '-') text[m++] = '-';
    }
    for (; i + 1 < n && word[i] == '0' && word[i + 1] >= '0' && word[i + 1] <= '9'; i++) zeros = true;
    if (i < n && word[i] == '.') text[m++] = '0';
    for (; i < n; i++) {
        const bool inside = i && i + 1 < n && word[i - 1] >= '0' && word[i - 1] <= '9' && word[i + 1] >= '0' && word[i + 1] <= '9';
        if (word[i] == '_' && inside) continue;
        text[m++] = word[i];
        if (word[i] == '.' && (i + 1 == n || word[i + 1] == 'e' || word[i + 1] == 'E')) text[m++] = '0';
    }
    if ((zeros && l->style == HN_PYTHON) || m == 0 || strchr("\"{[tfn", text[0]) || !hn_json_is_value(text, m)) return false;
    put(l, out, text, m);
    return true;
}

static bool word_add(hn_literal *l, hn_bytes *out, const char *word, size_t n) {
    static const char *const words[][2] = {{"True", "true"},   {"False", "false"}, {"None", "null"},
                                           {"true", "true"}, {"false", "false"}, {"null", "null"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i][0]) != n || memcmp(words[i][0], word, n) != 0) continue;
        put(l, out, words[i][1], strlen(words[i][1]));
        return true;
    }
    return n > 0 && n <= LONGEST_WORD && number_add(l, out, word, n);
}

static bool in_word(char c) {
    return is_name(c) || c == '.' || c == '-' || c == '+';
}

static step word(hn_literal *l, rest *r, hn_bytes *out) {
    size_t n = 0;
    while (n < r->n && in_word(r->at[n])) n++;
    if (n == r->n && !r->ended) return n > LONGEST_WORD ? STEP_BAD : STEP_MORE;
    if (!word_add(l, out, r->at, n)) return STEP_BAD;
    pass(r, n);
    return value_over(l);
}

/* Whether another key follows the comma at r->at[i]: its name and a colon. */
static step key_follows(const hn_literal *l, const rest *r, size_t i) {
    const size_t from = i = space(r, i + 1);
    while (i < r->n && is_name(r->at[i])) i++;
    if (i == r->n && !r->ended) return STEP_MORE;
    if (i == r->n) return STEP_BAD;
    const char c = r->at[i];
    const bool key = i > from ? c == ':' || (l->equals && c == '=') : c == '"' || c == '<';
    return key ? STEP_ON : STEP_BAD;
}

/* A value of Gemma's without a mark at its beginning: a word or number, else a string, up to the mark that should end it, to the end of its
 * container, or to the next member. */
static step bare(hn_literal *l, rest *r, hn_bytes *out) {
    size_t n = l->looked, mark = 0;
    for (; n < r->n; n++) {
        const char c = r->at[n];
        const size_t left = r->n - n;
        if (c == '<' && memcmp(r->at + n, MARK, left < MARK_BYTES ? left : MARK_BYTES) == 0) {
            if (left < MARK_BYTES && !r->ended) return STEP_MORE;
            if (left >= MARK_BYTES) mark = MARK_BYTES;
            break;
        }
        if (c == '}' || c == ']' || (c == ')' && l->equals)) break;
        const step ends = c != ',' ? STEP_BAD : in_object(l) ? key_follows(l, r, n) : STEP_ON;
        if (ends == STEP_MORE) return STEP_MORE;
        if (ends == STEP_ON) break;
        l->looked = n + 1;
    }
    if (n == r->n && !r->ended) return STEP_MORE;
    l->looked = 0;
    size_t len = n;
    while (len && hn_is_json_space(r->at[len - 1])) len--;
    if (mark || !word_add(l, out, r->at, len)) {
        if (len == 0 && !mark) return STEP_BAD;
        put(l, out, "\"", 1);
        if (!hn_json_escape(out, r->at, mark ? n : len)) l->no_memory = true;
        put(l, out, "\"", 1);
    }
    pass(r, n + mark);
    return value_over(l);
}

/* ---- keys -------------------------------------------------------------------------------------------------------------- */

static step bare_key(hn_literal *l, rest *r, hn_bytes *out) {
    size_t n = 0;
    while (n < r->n && r->at[n] != ':' && !(l->equals && r->at[n] == '=')) n++;
    if (n > LONGEST_WORD) return STEP_BAD;
    if (n == r->n) return r->ended ? STEP_BAD : STEP_MORE;
    size_t len = n;
    while (len && hn_is_json_space(r->at[len - 1])) len--;
    put(l, out, "\"", 1);
    if (!hn_json_escape(out, r->at, len)) l->no_memory = true;
    put(l, out, "\"", 1);
    pass(r, n);
    l->state = COLON;
    return len ? STEP_ON : STEP_BAD;
}

/* A key of Python that is a number or a word becomes its text. */
static step word_key(hn_literal *l, rest *r, hn_bytes *out) {
    put(l, out, "\"", 1);
    const step s = word(l, r, out);
    if (s != STEP_ON) { /* it is read again when more is there */
        out->n--;
        return s;
    }
    put(l, out, "\"", 1);
    l->state = COLON;
    return STEP_ON;
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

/* A string or a container begins; STEP_BAD: neither. */
static step opens(hn_literal *l, rest *r, hn_bytes *out) {
    const char c = *r->at;
    if (c == '"' || c == '\'') return string_begin(l, r, out, c, 1);
    if (l->style == HN_GEMMA && c == '<') {
        const size_t n = r->n < MARK_BYTES ? r->n : MARK_BYTES;
        if (memcmp(r->at, MARK, n) != 0) return STEP_BAD;
        return n == MARK_BYTES ? string_begin(l, r, out, 0, n) : r->ended ? STEP_BAD : STEP_MORE;
    }
    if (l->key || !(c == '{' || c == '[' || c == '(')) return STEP_BAD;
    return container_open(l, r, out, c);
}

static step value(hn_literal *l, rest *r, hn_bytes *out) {
    const step s = opens(l, r, out);
    if (s != STEP_BAD || strchr("{[(\"'", *r->at)) return s;
    return l->style == HN_GEMMA ? bare(l, r, out) : word(l, r, out);
}

static step key(hn_literal *l, rest *r, hn_bytes *out) {
    l->key = true;
    step s = opens(l, r, out);
    if (s != STEP_BAD) return s;
    l->key = false;
    return l->style == HN_GEMMA ? bare_key(l, r, out) : word_key(l, r, out);
}

static step colon(hn_literal *l, rest *r, hn_bytes *out) {
    if (*r->at != ':' && !(l->equals && *r->at == '=')) return STEP_BAD;
    pass(r, 1);
    put(l, out, ": ", 2);
    l->state = VALUE;
    return STEP_ON;
}

static step next(hn_literal *l, rest *r, hn_bytes *out) {
    if (l->state == STRING) return string(l, r, out);
    pass(r, space(r, 0));
    if (r->n == 0) return STEP_MORE;
    const bool first = l->state == FIRST_KEY || l->state == FIRST_VALUE;
    if (first && *r->at == l->close[l->depth - 1]) return container_close(l, r, out);
    switch (l->state) {
    case FIRST_KEY:
    case KEY: return key(l, r, out);
    case COLON: return colon(l, r, out);
    case AFTER: return after(l, r, out);
    default: return value(l, r, out);
    }
}

hn_literal_events hn_literal_run(hn_literal *l, const char *bytes, size_t n, bool ended, size_t *used, hn_bytes *out) {
    rest r = {bytes, n, ended};
    step s = STEP_ON;
    while (s == STEP_ON && l->state != OVER && r.n && !l->no_memory) s = next(l, &r, out);
    *used = n - r.n;
    if (l->no_memory) return HN_LITERAL_BAD;
    if (l->state == OVER) return HN_LITERAL_DONE;
    return s == STEP_BAD || ended ? HN_LITERAL_BAD : HN_LITERAL_MORE;
}
