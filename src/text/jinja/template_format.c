/* SPDX-License-Identifier: Apache-2.0 */
/* template_format.c - Python's "text %d" % values, as an operator and as the filter format. Widths are limited like all strings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/template_private.h"

typedef struct spec {
    bool left, zero, plus, space, alternative;
    int64_t width;
    int precision; /* -1: none */
    char kind;
} spec;

/* The arguments: values that conversions take in order, or a dict that they take by name. */
typedef struct supply {
    tvalue all;
    size_t taken;
} supply;

static bool next_value(trun *r, supply *s, tvalue *out) {
    bool many = s->all.kind == TV_TUPLE;
    if (s->taken >= (many ? s->all.list->n : 1)) return trun_fail(r, "not enough arguments for format string"), false;
    *out = many ? s->all.list->items[s->taken] : s->all;
    s->taken++;
    return true;
}

static bool named_value(trun *r, const supply *s, tstr name, tvalue *out) {
    if (s->all.kind != TV_DICT) return trun_fail(r, "format requires a mapping"), false;
    const tvalue *found = tv_dict_find(r, s->all.dict, name);
    if (!found) return trun_fail(r, "no value for %%(%.*s)", name.n < 60 ? (int)name.n : 60, name.s), false;
    *out = *found;
    return true;
}

/* Reads digits at f, or takes a value for a *; false: beyond any limit, or another error. */
static bool read_number(trun *r, tstr *f, supply *values, int64_t *out) {
    if (f->n && *f->s == '*') {
        tvalue v;
        f->s++, f->n--;
        if (!next_value(r, values, &v)) return false;
        if (v.kind != TV_INT && v.kind != TV_BOOL)
            return trun_fail(r, "* wants an integer, not %s", tv_type_name(v)), false;
        *out = tv_integer(v);
        return *out <= HN_TPL_MAX_OUTPUT && *out >= -HN_TPL_MAX_OUTPUT;
    }
    for (*out = 0; f->n && *f->s >= '0' && *f->s <= '9'; f->s++, f->n--) {
        *out = *out * 10 + (*f->s - '0');
        if (*out > HN_TPL_MAX_OUTPUT) return false;
    }
    return true;
}

/* Reads a conversion's flags, width and kind, after % and a name. */
static bool read_spec(trun *r, tstr *f, supply *values, spec *out) {
    int64_t precision = -1;
    *out = (spec){.precision = -1};
    for (; f->n; f->s++, f->n--) {
        if (*f->s == '-')
            out->left = true;
        else if (*f->s == '0')
            out->zero = true;
        else if (*f->s == '+')
            out->plus = true;
        else if (*f->s == ' ')
            out->space = true;
        else if (*f->s == '#')
            out->alternative = true;
        else
            break;
    }
    bool fits = read_number(r, f, values, &out->width);
    if (fits && out->width < 0) { /* of a * */
        out->left = true;
        out->width = -out->width;
    }
    if (fits && f->n && *f->s == '.') {
        f->s++, f->n--;
        fits = read_number(r, f, values, &precision) && precision <= TFORMAT_PRECISION;
        if (precision < 0) precision = 0;
    }
    if (!fits) return trun_fail(r, "a format that would grow a text beyond %d bytes", HN_TPL_MAX_OUTPUT), false;
    out->precision = (int)precision;
    if (f->n && *f->s && strchr("hlL", *f->s)) f->s++, f->n--;
    if (f->n == 0) return trun_fail(r, "incomplete format"), false;
    out->kind = *f->s;
    f->s++, f->n--;
    return true;
}

void tformat_float(char out[TFORMAT_ROOM], char kind, bool alternative, int precision, double x) {
    char format[] = {'%', '#', '.', '*', kind, 0}, plain[] = {'%', '.', '*', kind, 0};
    snprintf(out, TFORMAT_ROOM, alternative ? format : plain, precision, x);
}

void tformat_whole(char out[TFORMAT_ROOM], uint64_t x, unsigned base, bool capital) {
    char digits[64];
    size_t n = 0;
    do digits[n++] = (capital ? "0123456789ABCDEF" : "0123456789abcdef")[x % base];
    while ((x /= base) != 0);
    while (n) *out++ = digits[--n];
    *out = '\0';
}

/* Formats a number without its sign. */
static bool number_text(trun *r, const spec *s, tvalue v, char out[TFORMAT_ROOM], bool *negative) {
    bool whole = strchr("diuxXo", s->kind) != NULL;
    if (v.kind == TV_BIG) {
        *negative = v.str.s[0] == '-';
        if (!strchr("diu", s->kind) || v.str.n >= TFORMAT_ROOM) return trun_fail(r, "an integer beyond 64 bits"), false;
        snprintf(out, TFORMAT_ROOM, "%.*s", (int)(v.str.n - *negative), v.str.s + *negative);
        return true;
    }
    if (!tv_is_number(v) || (v.kind == TV_FLOAT && strchr("xXo", s->kind)))
        return trun_fail(r, "%%%c takes a number, not %s", s->kind, tv_type_name(v)), false;
    if (!whole) {
        double x = tv_number(v);
        *negative = signbit(x) && !isnan(x);
        tformat_float(out, s->kind, s->alternative, s->precision < 0 ? 6 : s->precision, fabs(x));
        return true;
    }
    if (v.kind == TV_FLOAT && !(fabs(v.f) < 9e18)) return trun_fail(r, "an integer beyond 64 bits"), false;
    int64_t i = v.kind == TV_FLOAT ? (int64_t)v.f : tv_integer(v);
    char digits[TFORMAT_ROOM];
    *negative = i < 0;
    tformat_whole(digits, i < 0 ? 0 - (uint64_t)i : (uint64_t)i,
                  s->kind == 'o'                     ? 8
                  : s->kind == 'x' || s->kind == 'X' ? 16
                                                     : 10,
                  s->kind == 'X');
    const int zeros = s->precision - (int)strlen(digits);
    memset(out, '0', zeros > 0 ? (size_t)zeros : 0);
    strcpy(out + (zeros > 0 ? zeros : 0), digits);
    return true;
}

static bool put_number(trun *r, tbuf *b, const spec *s, tvalue v) {
    char digits[TFORMAT_ROOM], head[4] = "";
    bool negative;
    if (!number_text(r, s, v, digits, &negative)) return false;
    strcat(head, negative ? "-" : s->plus ? "+" : s->space ? " " : "");
    if (s->alternative && (s->kind == 'x' || s->kind == 'X' || s->kind == 'o'))
        strcat(head, s->kind == 'x' ? "0x" : s->kind == 'X' ? "0X" : "0o");
    int64_t missing = s->width - (int64_t)(strlen(digits) + strlen(head));
    if (!s->left && !s->zero) tbuf_fill(b, (tstr){" ", 1}, missing);
    tbuf_puts(b, head);
    if (!s->left && s->zero) tbuf_fill(b, (tstr){"0", 1}, missing);
    tbuf_puts(b, digits);
    if (s->left) tbuf_fill(b, (tstr){" ", 1}, missing);
    return true;
}

/* The text of %s, %r and %a; of %c, a character or its number. */
static tvalue text_of(trun *r, char kind, tvalue v) {
    tbuf b = {.arena = &r->arena};
    if (kind == 's') return tv_to_string(r, v);
    if (kind != 'c') return tv_repr(r, &b, v, kind == 'a', 0), tv_buffer(r, &b);
    if (v.kind == TV_STRING && ts_length(v.str) == 1) return v;
    char utf8[4];
    const int64_t code = v.kind == TV_INT || v.kind == TV_BOOL ? tv_integer(v) : -1;
    const int n = code >= 0 && code < 0x110000 ? hn_utf8_encode((uint32_t)code, utf8) : 0;
    if (n == 0) return trun_fail(r, "%%c takes a character or its number");
    tbuf_put(&b, utf8, (size_t)n);
    return tv_buffer(r, &b);
}

static bool put_text(trun *r, tbuf *b, const spec *s, tvalue v) {
    v = text_of(r, s->kind, v);
    if (v.kind == TV_ERROR || !trun_text(r, v.str.n)) return false;
    tstr t = v.str;
    if (s->precision >= 0 && s->kind != 'c') t.n = ts_offset(t, (size_t)s->precision);
    int64_t missing = s->width - (int64_t)ts_length(t);
    if (!s->left) tbuf_fill(b, (tstr){" ", 1}, missing);
    tbuf_put(b, t.s, t.n);
    if (s->left) tbuf_fill(b, (tstr){" ", 1}, missing);
    return true;
}

/* One conversion, after its %. */
static bool convert(trun *r, tbuf *b, tstr *f, supply *values) {
    spec s;
    tvalue v = tv_none();
    tstr name = {NULL, 0};
    if (f->n && *f->s == '(') {
        const char *end = memchr(f->s, ')', f->n);
        if (!end) return trun_fail(r, "incomplete format key"), false;
        name = (tstr){f->s + 1, (size_t)(end - f->s - 1)};
        *f = (tstr){end + 1, f->n - name.n - 2};
    }
    if (f->n && *f->s == '%' && !name.s) {
        tbuf_put(b, "%", 1);
        f->s++, f->n--;
        return true;
    }
    if (!read_spec(r, f, values, &s)) return false;
    if (!s.kind || !strchr("sracdiuxXofFeEgG", s.kind))
        return trun_fail(r, "the format %%%c is not known", s.kind), false;
    if (name.s ? !named_value(r, values, name, &v) : !next_value(r, values, &v)) return false;
    return strchr("srac", s.kind) ? put_text(r, b, &s, v) : put_number(r, b, &s, v);
}

tvalue tformat(trun *r, tstr f, tvalue values) {
    tbuf b = {.arena = &r->arena};
    supply s = {.all = values};
    while (f.n && !b.failed && trun_step(r, 1)) {
        const char *mark = memchr(f.s, '%', f.n);
        size_t n = mark ? (size_t)(mark - f.s) : f.n;
        tbuf_put(&b, f.s, n);
        f = (tstr){f.s + n + (mark != NULL), f.n - n - (mark != NULL)};
        if (mark && !convert(r, &b, &f, &s)) return tv_error();
    }
    size_t given = values.kind == TV_TUPLE ? values.list->n : values.kind != TV_DICT && values.kind != TV_LIST;
    if (s.taken < given) return trun_fail(r, "not all arguments converted during string formatting");
    return tv_buffer(r, &b);
}
