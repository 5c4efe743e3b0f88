/* SPDX-License-Identifier: Apache-2.0 */
/* template_format.c - Python's "text %d" % values, as an operator and as the filter format. Conversions that templates do not
 * use (%r, %c, %a, widths of *) are refused; widths are limited like all strings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja/template_private.h"

enum { PRECISION_MAX = 100 };

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

/* Reads digits at f; false: beyond any limit. */
static bool read_number(tstr *f, int64_t *out) {
    for (*out = 0; f->n && *f->s >= '0' && *f->s <= '9'; f->s++, f->n--) {
        *out = *out * 10 + (*f->s - '0');
        if (*out > HN_TPL_MAX_OUTPUT) return false;
    }
    return true;
}

/* Reads a conversion's flags, width and kind, after % and a name. */
static bool read_spec(trun *r, tstr *f, spec *out) {
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
    bool fits = read_number(f, &out->width);
    if (fits && f->n && *f->s == '.') {
        f->s++, f->n--;
        fits = read_number(f, &precision) && precision <= PRECISION_MAX;
    }
    if (!fits) return trun_fail(r, "a format that would grow a text beyond %d bytes", HN_TPL_MAX_OUTPUT), false;
    out->precision = (int)precision;
    if (f->n && strchr("hlL", *f->s)) f->s++, f->n--;
    if (f->n == 0) return trun_fail(r, "incomplete format"), false;
    out->kind = *f->s;
    f->s++, f->n--;
    return true;
}

/* Formats a number without its sign. */
static bool number_text(trun *r, const spec *s, tvalue v, char out[512], bool *negative) {
    bool whole = strchr("diuxXo", s->kind) != NULL;
    if (v.kind == TV_BIG) {
        *negative = v.str.s[0] == '-';
        if (!strchr("diu", s->kind) || v.str.n > 500) return trun_fail(r, "an integer beyond 64 bits"), false;
        snprintf(out, 512, "%.*s", (int)(v.str.n - *negative), v.str.s + *negative);
        return true;
    }
    if (!tv_is_number(v) || (v.kind == TV_FLOAT && strchr("xXo", s->kind)))
        return trun_fail(r, "%%%c takes a number, not %s", s->kind, tv_type_name(v)), false;
    if (!whole) {
        char format[] = "%#.*f", plain[] = "%.*f";
        format[4] = plain[3] = s->kind;
        double x = tv_number(v);
        *negative = signbit(x) && !isnan(x);
        snprintf(out, 512, s->alternative ? format : plain, s->precision < 0 ? 6 : s->precision, fabs(x));
        return true;
    }
    if (v.kind == TV_FLOAT && !(fabs(v.f) < 9e18)) return trun_fail(r, "an integer beyond 64 bits"), false;
    int64_t i = v.kind == TV_FLOAT ? (int64_t)v.f : tv_integer(v);
    *negative = i < 0;
    const char *format = s->kind == 'x' ? "%.*llx" : s->kind == 'X' ? "%.*llX" : s->kind == 'o' ? "%.*llo" : "%.*llu";
    unsigned long long size = i < 0 ? 0 - (unsigned long long)i : (unsigned long long)i;
    snprintf(out, 512, format, s->precision < 1 ? 1 : s->precision, size);
    return true;
}

static void pad(tbuf *b, char with, int64_t n) {
    for (; n > 0 && !b->failed; n--) tbuf_put(b, &with, 1);
}

static bool put_number(trun *r, tbuf *b, const spec *s, tvalue v) {
    char digits[512], head[4] = "";
    bool negative;
    if (!number_text(r, s, v, digits, &negative)) return false;
    strcat(head, negative ? "-" : s->plus ? "+" : s->space ? " " : "");
    if (s->alternative && (s->kind == 'x' || s->kind == 'X' || s->kind == 'o'))
        strcat(head, s->kind == 'x' ? "0x" : s->kind == 'X' ? "0X" : "0o");
    int64_t missing = s->width - (int64_t)(strlen(digits) + strlen(head));
    if (!s->left && !s->zero) pad(b, ' ', missing);
    tbuf_puts(b, head);
    if (!s->left && s->zero) pad(b, '0', missing);
    tbuf_puts(b, digits);
    if (s->left) pad(b, ' ', missing);
    return true;
}

static bool put_text(trun *r, tbuf *b, const spec *s, tvalue v) {
    v = tv_to_string(r, v);
    if (v.kind == TV_ERROR || !trun_text(r, v.str.n)) return false;
    tstr t = v.str;
    if (s->precision >= 0) t.n = ts_offset(t, (size_t)s->precision);
    int64_t missing = s->width - (int64_t)ts_length(t);
    if (!s->left) pad(b, ' ', missing);
    tbuf_put(b, t.s, t.n);
    if (s->left) pad(b, ' ', missing);
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
    if (!read_spec(r, f, &s)) return false;
    if (s.kind == '%') {
        tbuf_put(b, "%", 1);
        return true;
    }
    if (!strchr("sdiuxXofFeEgG", s.kind)) return trun_fail(r, "the format %%%c is not supported", s.kind), false;
    if (name.s ? !named_value(r, values, name, &v) : !next_value(r, values, &v)) return false;
    return s.kind == 's' ? put_text(r, b, &s, v) : put_number(r, b, &s, v);
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
