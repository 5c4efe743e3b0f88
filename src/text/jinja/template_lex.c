/* SPDX-License-Identifier: Apache-2.0 */
/* template_lex.c - splits a template into text, tags and the tokens inside them.
 *
 * White space as in Hugging Face's settings of Jinja: the newline after a block tag or comment is removed (trim_blocks), and
 * so are blanks before one that begins its line (lstrip_blocks); "-" strips all white space on its side, "+" keeps it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "text/jinja/template_private.h"

void tlex_init(tlexer *x, hn_template *t, hunch_error *err) {
    *x = (tlexer){.t = t, .line = 1, .line_starting = true, .err = err};
}

static bool fail(tlexer *x, const char *what) {
    x->status = hn_fail(x->err, HUNCH_REFUSED, "chat template, line %d: %s", x->line, what);
    return false;
}

static const char *here(const tlexer *x) {
    return x->t->text + x->at;
}

static bool looking_at(const tlexer *x, const char *s) {
    size_t n = strlen(s);
    return x->t->len - x->at >= n && memcmp(here(x), s, n) == 0;
}

static void skip(tlexer *x, size_t n) {
    for (size_t i = 0; i < n; i++) x->line += here(x)[i] == '\n';
    x->at += n;
}

/* The end of the white space at p. */
static const char *past_blanks(const char *p, const char *end) {
    return ts_strip_space((tstr){p, (size_t)(end - p)}, true, false).s;
}

static const char *text_end(const tlexer *x) {
    return x->t->text + x->t->len;
}

static void skip_blanks(tlexer *x) {
    skip(x, (size_t)(past_blanks(here(x), text_end(x)) - here(x)));
}

/* Skips white space after a tag's end. sign: the '-' or '+' before the end, or 0. block: trim_blocks applies. */
static void after_tag(tlexer *x, char sign, bool block) {
    size_t before = x->at;
    if (sign == '-')
        skip_blanks(x);
    else if (block && sign != '+' && looking_at(x, "\n"))
        skip(x, 1);
    x->line_starting = x->at > before && x->t->text[x->at - 1] == '\n';
}

/* The length of a text of n bytes without the white space that the tag after it strips. */
static size_t trimmed(const tlexer *x, const char *s, size_t n, char tag, char sign) {
    size_t line = n;
    if (sign == '-') return ts_strip_space((tstr){s, n}, false, true).n;
    if (sign == '+' || tag == '{') return n;
    while (line && s[line - 1] != '\n') line--;
    if (line == 0 && !x->line_starting) return n;
    return ts_strip_space((tstr){s + line, n - line}, true, false).n ? n : line;
}

/* Bytes up to the next tag; its kind ('{', '%', '#') in *tag, 0 at the end. */
static size_t text_length(const tlexer *x, char *tag) {
    size_t left = x->t->len - x->at;
    for (size_t i = 0; i + 1 < left; i++) {
        const char *s = here(x) + i;
        if (s[0] == '{' && (s[1] == '{' || s[1] == '%' || s[1] == '#')) {
            *tag = s[1];
            return i;
        }
    }
    *tag = 0;
    return left;
}

static bool skip_comment(tlexer *x) {
    int line = x->line;
    for (size_t i = 0; x->at + i + 1 < x->t->len; i++) {
        const char *s = here(x) + i;
        if (s[0] != '#' || s[1] != '}') continue;
        char sign = i && (s[-1] == '-' || s[-1] == '+') ? s[-1] : 0;
        skip(x, i + 2);
        after_tag(x, sign, true);
        return true;
    }
    x->line = line;
    return fail(x, "a comment that does not end, expected #}");
}

/* After {% raw %}: returns the text up to {% endraw %}. */
static bool lex_raw(tlexer *x, ttoken *token) {
    const char *from = here(x);
    for (size_t i = x->at; i + 1 < x->t->len; i++) {
        const char *s = x->t->text + i, *p = s + 2, *end = text_end(x);
        if (s[0] != '{' || s[1] != '%') continue;
        char open = p < end && (*p == '-' || *p == '+') ? *p++ : 0, close = 0;
        p = past_blanks(p, end);
        if (end - p < 6 || memcmp(p, "endraw", 6) != 0) continue;
        p = past_blanks(p + 6, end);
        if (p < end && (*p == '-' || *p == '+')) close = *p++;
        if (end - p < 2 || p[0] != '%' || p[1] != '}') continue;
        *token =
            (ttoken){.kind = TT_TEXT, .line = x->line, .str = {from, trimmed(x, from, (size_t)(s - from), '%', open)}};
        skip(x, (size_t)(p + 2 - from));
        after_tag(x, close, true);
        return true;
    }
    return fail(x, "a raw block that does not end, expected {% endraw %}");
}

/* Skips {% raw %}, with any signs. Unlike after all other tags, the newline after it stays. */
static bool enter_raw(tlexer *x) {
    const char *p = here(x) + 2, *end = text_end(x);
    char close = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    p = past_blanks(p, end);
    if (end - p < 3 || memcmp(p, "raw", 3) != 0) return false;
    p = past_blanks(p + 3, end);
    if (p < end && *p == '-') close = *p++;
    if (end - p < 2 || p[0] != '%' || p[1] != '}') return false;
    skip(x, (size_t)(p + 2 - here(x)));
    after_tag(x, close, false);
    return true;
}

static bool lex_outside(tlexer *x, ttoken *token) {
    char tag;
    if (x->raw) {
        x->raw = false;
        return lex_raw(x, token);
    }
    size_t n = text_length(x, &tag);
    const char *from = here(x);
    char sign = tag && x->at + n + 2 < x->t->len && (from[n + 2] == '-' || from[n + 2] == '+') ? from[n + 2] : 0;
    if (n || !tag) {
        *token = (ttoken){
            .kind = n ? TT_TEXT : TT_END, .line = x->line, .str = {from, tag ? trimmed(x, from, n, tag, sign) : n}};
        skip(x, n);
        if (n) x->line_starting = false;
        return true;
    }
    *token = (ttoken){.kind = TT_TEXT, .line = x->line, .str = {from, 0}};
    if (tag == '%' && enter_raw(x)) {
        x->raw = true;
        return true;
    }
    skip(x, sign ? 3 : 2);
    if (tag == '#') return skip_comment(x);
    token->kind = tag == '{' ? TT_PRINT_BEGIN : TT_BLOCK_BEGIN;
    x->inside = tag;
    x->brackets = 0;
    return true;
}

/* ---- inside a tag ---- */

static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The number that up to `most` digits of a base at s say; how many there are in *used. */
static uint32_t read_code(const char *s, size_t n, int base, size_t most, size_t *used) {
    uint32_t code = 0;
    for (*used = 0; *used < most && *used < n; ++*used) {
        const int c = s[*used] | 0x20, digit = hn_is_digit(s[*used])     ? s[*used] - '0'
                                               : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                                      : 16;
        if (digit >= base) break;
        code = code * (uint32_t)base + (uint32_t)digit;
    }
    return code;
}

/* The character of an escape of a code or a name, read after its backslash. The length of the escape in *used; 0: it is none. False: it is
 * one that Python refuses, or a name that is not known here. */
static bool escaped_character(tlexer *x, const char *s, size_t n, uint32_t *cp, size_t *used) {
    const size_t digits = n == 0 ? 0 : s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    char what[160];
    if (digits) {
        *cp = read_code(s + 1, n - 1, 16, digits, used);
        if (*used < digits) return fail(x, "an escape of too few hexadecimal digits in a string");
        ++*used;
    } else if (n && s[0] == 'N') {
        const char *end = n > 1 && s[1] == '{' ? memchr(s, '}', n) : NULL;
        if (++x->names > HN_TPL_MAX_NAMES) return fail(x, "too many characters by their names");
        if (!end) return fail(x, "an escape \\N without its {NAME} in a string");
        const tstr name = {s + 2, (size_t)(end - s - 2)};
        *used = (size_t)(end - s + 1);
        snprintf(what, sizeof what, "the character named \\N{%.*s} is not known", name.n < 100 ? (int)name.n : 100,
                 name.s);
        return tchar_named(name, cp) || fail(x, what);
    } else {
        *cp = read_code(s, n, 8, 3, used);
    }
    if (*used && (*cp > 0x10FFFF || (*cp >= 0xD800 && *cp < 0xE000)))
        return fail(x, "an escape of what is no character in a string");
    return true;
}

/* Writes what an escape means, read after its backslash, to out (at most twice its bytes and two); the length of the escape in *used. An
 * unknown one is left unchanged, as in Python; but Jinja has escaped characters beyond ASCII before, so that the backslash stands before
 * one for their escapes. */
static size_t unescape_one(tlexer *x, const char *s, size_t n, char *out, size_t *used) {
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    const char *simple = n && s[0] ? strchr(from, s[0]) : NULL;
    uint32_t cp;
    *used = 1;
    if (simple) {
        out[0] = to[simple - from];
        return 1;
    }
    if (n && s[0] == '\n') return 0;
    if (n && (unsigned char)s[0] >= 0x80) {
        *used = (size_t)hn_utf8_decode(s, n, &cp);
        return (size_t)sprintf(out, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
    }
    if (!escaped_character(x, s, n, &cp, used)) return 0;
    if (*used) return (size_t)hn_utf8_encode(cp, out);
    out[0] = '\\';
    return 1;
}

static bool lex_string(tlexer *x, ttoken *token) {
    const char *s = here(x);
    size_t left = x->t->len - x->at, n = 1;
    bool escaped = false;
    for (; n < left && s[n] != s[0]; n++) {
        if (s[n] == '\\') {
            escaped = true;
            n++;
        }
    }
    if (n >= left) return fail(x, "a string that does not end");
    token->kind = TT_STRING;
    token->str = (tstr){s + 1, n - 1};
    skip(x, n + 1);
    if (!escaped) return true;
    char *out = ta_alloc(&x->t->arena, 2 * n + 8);
    if (!out) {
        x->status = hn_fail_memory(x->err, "the chat template", n);
        return false;
    }
    size_t len = 0;
    for (size_t i = 1; i < n;) {
        if (s[i] != '\\') {
            out[len++] = s[i++];
            continue;
        }
        size_t used;
        len += unescape_one(x, s + i + 1, n - i - 1, out + len, &used);
        if (x->status) return false;
        i += 1 + used;
    }
    token->str = (tstr){out, len};
    return true;
}

/* 16, 8 or 2 for a number that begins with 0x, 0o or 0b, else 10. */
static int base_of(const char *s, size_t left) {
    if (left < 3 || s[0] != '0') return 10;
    char mark = (char)(s[1] | 0x20);
    return mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
}

/* Length of the start of an exponent at s, e and an optional sign; 0: no digit follows. */
static size_t exponent_length(const char *s, size_t left) {
    if (left < 2 || (s[0] | 0x20) != 'e') return 0;
    size_t n = s[1] == '-' || s[1] == '+' ? 2 : 1;
    return n < left && hn_is_digit(s[n]) ? n : 0;
}

/* Copies a number without its underscores to out; returns the bytes it takes. *is_float: it has a point or an exponent. */
static size_t read_digits(const char *s, size_t left, int base, char *out, size_t room, bool *is_float) {
    size_t used = base == 10 ? 0 : 2, n = 0, e;
    bool exponent = false;
    for (*is_float = false; used < left && n + 3 < room; used++) {
        char c = s[used];
        bool letter = base == 16 && (c | 0x20) >= 'a' && (c | 0x20) <= 'f';
        bool point = base == 10 && c == '.' && !*is_float && used + 1 < left && hn_is_digit(s[used + 1]);
        if (c == '_') continue;
        if (base == 10 && !exponent && (e = exponent_length(s + used, left - used)) != 0) {
            exponent = *is_float = true;
            memcpy(out + n, s + used, e);
            n += e;
            used += e - 1;
            continue;
        }
        if (!hn_is_digit(c) && !letter && !point) break;
        out[n++] = c;
        *is_float |= point;
    }
    out[n] = '\0';
    return used;
}

static bool lex_number(tlexer *x, ttoken *token) {
    char digits[64], *end;
    bool is_float;
    size_t left = x->t->len - x->at;
    int base = base_of(here(x), left);
    size_t used = read_digits(here(x), left, base, digits, sizeof digits, &is_float);
    if (strlen(digits) + 3 >= sizeof digits) return fail(x, "a number of too many digits");
    skip(x, used);
    errno = 0;
    token->kind = is_float ? TT_FLOAT : TT_INT;
    if (is_float)
        token->f = strtod(digits, &end);
    else
        token->i = strtoll(digits, &end, base);
    if (end == digits || *end) return fail(x, "an invalid number");
    return errno && !is_float ? fail(x, "an integer beyond 64 bits") : true;
}

static bool lex_operator(tlexer *x, ttoken *token) {
    static const char *const ops[] = {"==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "<",
                                      ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ":", ".", "|", ";"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (!looking_at(x, ops[i])) continue;
        token->kind = TT_OP;
        token->str = (tstr){ops[i], strlen(ops[i])};
        skip(x, token->str.n);
        if (strchr("([{", ops[i][0])) x->brackets++;
        if (strchr(")]}", ops[i][0])) x->brackets--;
        return true;
    }
    return fail(x, "an invalid character in an expression");
}

/* }} or %}, with its sign. */
static bool lex_tag_end(tlexer *x, ttoken *token) {
    bool block = x->inside == '%';
    const char *end = block ? "%}" : "}}";
    char sign = looking_at(x, "-") || (block && looking_at(x, "+")) ? *here(x) : 0;
    if (x->brackets > 0 || x->t->len - x->at < 2u + (sign != 0) || memcmp(here(x) + (sign != 0), end, 2) != 0)
        return false;
    skip(x, sign ? 3 : 2);
    after_tag(x, sign, block);
    token->kind = block ? TT_BLOCK_END : TT_PRINT_END;
    x->inside = 0;
    return true;
}

static bool lex_inside(tlexer *x, ttoken *token) {
    skip_blanks(x);
    *token = (ttoken){.line = x->line};
    if (x->at == x->t->len) return fail(x, "the template ends inside a tag");
    if (lex_tag_end(x, token)) return true;
    char c = *here(x);
    if (is_name_start(c)) {
        size_t n = 0;
        while (x->at + n < x->t->len && (is_name_start(here(x)[n]) || hn_is_digit(here(x)[n]))) n++;
        token->kind = TT_NAME;
        token->str = (tstr){here(x), n};
        skip(x, n);
        return true;
    }
    if (hn_is_digit(c)) return lex_number(x, token);
    return c == '"' || c == '\'' ? lex_string(x, token) : lex_operator(x, token);
}

bool tlex_next(tlexer *x, ttoken *token) {
    return x->inside ? lex_inside(x, token) : lex_outside(x, token);
}
