/* SPDX-License-Identifier: Apache-2.0 */
/* template_fields.c - Python's "{}".format(values): replacement fields, and the specifications that say how a value is written. Fields
 * look attributes and items up as templates do, which is what Jinja's sandbox makes of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shortest.h"
#include "base/utf8.h"
#include "text/jinja/template_private.h"

/* ---- a specification: [[fill]align][sign][z][#][0][width][,|_][.precision][type] ---- */

typedef struct spec {
    tstr fill;
    char align, sign;
    bool no_negative_zero, alternative, filled; /* filled: with what the specification names */
    int64_t width, precision;                   /* precision -1: none */
    char group;                                 /* ',', '_' or 0 */
    char type;                                  /* 0: none */
} spec;

static bool is_any(char c, const char *any) {
    return c && strchr(any, c);
}

static bool take(tstr *f, const char *any, char *out) {
    if (f->n == 0 || !is_any(*f->s, any)) return false;
    *out = *f->s;
    *f = (tstr){f->s + 1, f->n - 1};
    return true;
}

/* Takes digits; -1: there are none. False: too large for any text. */
static bool take_number(trun *r, tstr *f, int64_t *out) {
    char digit;
    for (*out = -1; take(f, "0123456789", &digit);) {
        *out = (*out < 0 ? 0 : *out * 10) + (digit - '0');
        if (*out > HN_TPL_MAX_OUTPUT)
            return trun_fail(r, "a format that would grow a text beyond %d bytes", HN_TPL_MAX_OUTPUT), false;
    }
    return true;
}

static bool read_spec(trun *r, tstr f, bool number, spec *s) {
    char mark = 0;
    uint32_t cp;
    *s = (spec){.fill = {" ", 1}, .precision = -1};
    const size_t first = f.n ? (size_t)hn_utf8_decode(f.s, f.n, &cp) : 0;
    if (f.n > first && is_any(f.s[first], "<>=^")) {
        s->fill = (tstr){f.s, first};
        s->filled = true;
        f = (tstr){f.s + first, f.n - first};
    }
    take(&f, "<>=^", &s->align);
    take(&f, "+- ", &s->sign);
    s->no_negative_zero = take(&f, "z", &mark);
    s->alternative = take(&f, "#", &mark);
    if (!s->filled && take(&f, "0", &mark)) {
        s->fill = (tstr){"0", 1};
        if (!s->align && number) s->align = '=';
    }
    if (!take_number(r, &f, &s->width)) return false;
    take(&f, ",_", &s->group);
    if (take(&f, ",_", &mark)) return trun_fail(r, "cannot specify both ',' and '_'"), false;
    if (take(&f, ".", &mark)) {
        if (!take_number(r, &f, &s->precision)) return false;
        if (s->precision < 0) return trun_fail(r, "format specifier missing precision"), false;
    }
    if (f.n > 1) return trun_fail(r, "invalid format specifier"), false;
    s->type = f.n ? *f.s : 0;
    if (!s->align) s->align = number ? '>' : '<';
    return true;
}

/* ---- what a specification makes of a value ---- */

/* A number in parts: its sign, what stands before its digits, the digits, what follows those that are grouped. */
typedef struct parts {
    char sign[2], prefix[3], text[TFORMAT_ROOM];
    size_t digits; /* of text */
} parts;

static const char *plus_sign(const spec *s) {
    return s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
}

/* How many digits, with zeros in front, make a text with marks between groups at least this long. */
static int64_t digits_for(int64_t digits, int64_t width, int64_t group) {
    int64_t n = width * group / (group + 1);
    if (n < digits) n = digits;
    while (n + (n - 1) / group < width) n++;
    return n;
}

static bool put_parts(trun *r, tbuf *b, const spec *s, const parts *p) {
    const tstr text = {p->text, strlen(p->text)};
    const int64_t outside = (int64_t)(strlen(p->sign) + strlen(p->prefix) + text.n - p->digits);
    const int64_t group = !s->group ? 0 : is_any(s->type, "boxX") ? 4 : 3;
    const bool zeros = s->align == '=' && ts_equal(s->fill, "0") && p->digits;
    int64_t digits = (int64_t)p->digits;
    if (zeros && group) digits = digits_for(digits, s->width - outside, group);
    const int64_t marks = group && digits ? (digits - 1) / group : 0, missing = s->width - outside - digits - marks;
    const int64_t left = s->align == '>' ? missing : s->align == '^' ? missing / 2 : 0;
    if (left > 0) tbuf_fill(b, s->fill, left);
    tbuf_puts(b, p->sign);
    tbuf_puts(b, p->prefix);
    if (s->align == '=') tbuf_fill(b, s->fill, missing);
    if (!trun_step(r, (size_t)digits)) return false;
    for (int64_t k = digits; k > 0 && !b->failed; k--) {
        tbuf_put(b, k > (int64_t)p->digits ? "0" : text.s + ((int64_t)p->digits - k), 1);
        if (group && k > 1 && (k - 1) % group == 0) tbuf_put(b, &s->group, 1);
    }
    tbuf_put(b, text.s + p->digits, text.n - p->digits);
    if (s->align == '<' || s->align == '^') tbuf_fill(b, s->fill, missing - left);
    return trun_text(r, (size_t)(missing > 0 ? missing : 0));
}

static bool put_text(trun *r, tbuf *b, const spec *s, tstr text) {
    if (s->type && s->type != 's')
        return trun_fail(r, "unknown format code '%c' for object of type 'str'", s->type), false;
    if (s->sign || s->no_negative_zero || s->alternative || s->group || s->align == '=')
        return trun_fail(r, "a sign, z, #, ',', '_' and = are not allowed in the format of a string"), false;
    if (s->precision >= 0) text.n = ts_offset(text, (size_t)s->precision);
    const int64_t missing = s->width - (int64_t)ts_length(text), left = s->align == '>'   ? missing
                                                                        : s->align == '^' ? missing / 2
                                                                                          : 0;
    tbuf_fill(b, s->fill, left);
    tbuf_put(b, text.s, text.n);
    tbuf_fill(b, s->fill, missing - left);
    return trun_text(r, text.n);
}

static bool put_whole(trun *r, tbuf *b, const spec *s, int64_t i, parts *p) {
    const char type = s->type ? s->type : 'd';
    const unsigned base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
    if (s->precision >= 0) return trun_fail(r, "precision not allowed in the format of an integer"), false;
    if (s->no_negative_zero) return trun_fail(r, "z not allowed in the format of an integer"), false;
    if (s->group && (type == 'n' || type == 'c' || (s->group == ',' && base != 10)))
        return trun_fail(r, "cannot specify '%c' with '%c'", s->group, type), false;
    if (type == 'c') {
        if (s->sign || s->alternative) return trun_fail(r, "sign and # not allowed with the format c"), false;
        const int n = i >= 0 && i < 0x110000 ? hn_utf8_encode((uint32_t)i, p->text) : 0;
        if (n == 0) return trun_fail(r, "%lld is no character", (long long)i), false;
        const int64_t missing = s->width - 1, left = s->align == '<' ? 0 : s->align == '^' ? missing / 2 : missing;
        tbuf_fill(b, s->fill, left);
        tbuf_put(b, p->text, (size_t)n);
        tbuf_fill(b, s->fill, missing - left);
        return true;
    }
    if (s->alternative && base != 10) p->prefix[0] = '0', p->prefix[1] = type;
    tformat_whole(p->text, i < 0 ? 0 - (uint64_t)i : (uint64_t)i, base, type == 'X');
    p->digits = strlen(p->text);
    return put_parts(r, b, s, p);
}

/* As format g, but with a digit behind the point at least: what a precision without a type means. */
static void general_with_point(char out[TFORMAT_ROOM], bool alternative, int precision, double x) {
    char text[TFORMAT_ROOM];
    const int digits = precision < 1 ? 1 : precision;
    snprintf(text, sizeof text, "%.*e", digits - 1, x);
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10), point = exponent + 1;
    const bool fixed = point > -4 && point <= digits - 1;
    tformat_float(out, 'g', alternative, precision, x);
    if (fixed) {
        if (!strpbrk(out, ".e")) strcat(out, ".0");
        return;
    }
    if (!alternative) hn_shortest_trim(text);
    strcpy(out, text);
}

static bool put_float(trun *r, tbuf *b, const spec *s, tvalue v, parts *p) {
    const double x = fabs(tv_number(v));
    const char kind = s->type == '%' ? 'f' : s->type == 'n' ? 'g' : s->type ? s->type : 'g';
    if (s->precision > TFORMAT_PRECISION) return trun_fail(r, "a precision beyond %d", TFORMAT_PRECISION), false;
    if (s->group && s->type == 'n') return trun_fail(r, "cannot specify '%c' with 'n'", s->group), false;
    const int precision = s->precision < 0 ? 6 : (int)s->precision;
    if (!isfinite(x)) {
        strcpy(p->text, isnan(x) ? "nan" : "inf");
        for (char *c = p->text; *c && strchr("EFG", kind); c++) *c = (char)(*c - 32);
    } else if (s->type) {
        tformat_float(p->text, kind, s->alternative, precision, s->type == '%' ? 100 * x : x);
    } else if (s->precision >= 0) {
        general_with_point(p->text, s->alternative, precision, x);
    } else {
        tvalue text = tv_to_string(r, tv_float(x));
        if (text.kind == TV_ERROR) return false;
        const char *mark =
            s->alternative && !memchr(text.str.s, '.', text.str.n) ? memchr(text.str.s, 'e', text.str.n) : NULL;
        const int before = (int)(mark ? mark - text.str.s : (ptrdiff_t)text.str.n);
        snprintf(p->text, sizeof p->text, "%.*s%s%.*s", before, text.str.s, mark ? "." : "", (int)text.str.n - before,
                 text.str.s + before);
    }
    p->digits = strspn(p->text, "0123456789");
    if (s->no_negative_zero && *p->sign == '-' && isfinite(x) && !strpbrk(p->text, "123456789"))
        strcpy(p->sign, plus_sign(s));
    if (s->type == '%') strcat(p->text, "%");
    return put_parts(r, b, s, p);
}

/* An int beyond 64 bits, of which only the digits are known. */
static bool put_big(trun *r, tbuf *b, const spec *s, tstr digits, parts *p) {
    const bool negative = digits.s[0] == '-';
    digits = (tstr){digits.s + negative, digits.n - negative};
    if ((s->type && !is_any(s->type, "dn")) || digits.n >= sizeof p->text) return trun_fail(r, "an integer beyond 64 bits"), false;
    if (s->precision >= 0) return trun_fail(r, "precision not allowed in the format of an integer"), false;
    if (s->no_negative_zero) return trun_fail(r, "z not allowed in the format of an integer"), false;
    if (s->group && s->type == 'n') return trun_fail(r, "cannot specify '%c' with 'n'", s->group), false;
    strcpy(p->sign, negative ? "-" : plus_sign(s));
    memcpy(p->text, digits.s, digits.n);
    p->text[digits.n] = 0;
    p->digits = digits.n;
    return put_parts(r, b, s, p);
}

/* format(v, text) */
static bool put_value(trun *r, tbuf *b, tvalue v, tstr text) {
    spec s;
    parts p = {.sign = ""};
    if (text.n == 0) return tv_print(r, b, v, 0), !r->status;
    if (v.kind != TV_STRING && v.kind != TV_BIG && !tv_is_number(v))
        return trun_fail(r, "a format of %s takes no specification", tv_type_name(v)), false;
    if (!read_spec(r, text, v.kind != TV_STRING, &s)) return false;
    if (v.kind == TV_BIG) return put_big(r, b, &s, v.str, &p);
    if (v.kind == TV_STRING) return put_text(r, b, &s, v.str);
    const bool whole = v.kind != TV_FLOAT && (!s.type || is_any(s.type, "bcdoxXn"));
    if (!whole && s.type && !is_any(s.type, "eEfFgGn%"))
        return trun_fail(r, "unknown format code '%c' for object of type '%s'", s.type, tv_type_name(v)), false;
    const bool negative = v.kind == TV_FLOAT ? signbit(v.f) && !isnan(v.f) : tv_integer(v) < 0;
    strcpy(p.sign, negative ? "-" : plus_sign(&s));
    return whole ? put_whole(r, b, &s, tv_integer(v), &p) : put_float(r, b, &s, v, &p);
}

/* ---- fields ---- */

typedef struct formatting {
    trun *r;
    const targs *args;
    size_t next;   /* number of the next field without one */
    bool numbered; /* a field had a number: those without are refused */
} formatting;

static bool all_digits(tstr s) {
    for (size_t i = 0; i < s.n; i++)
        if (s.s[i] < '0' || s.s[i] > '9') return false;
    return s.n > 0;
}

/* The number that digits say, SIZE_MAX if it is large. */
static size_t number_of(tstr digits) {
    size_t n = 0;
    for (size_t i = 0; i < digits.n; i++) n = n > 1000000 ? SIZE_MAX / 20 : n * 10 + (size_t)(digits.s[i] - '0');
    return n;
}

/* The argument that a field begins with, from the left of its name. */
static tvalue first_value(formatting *f, tstr *name) {
    size_t n = 0, place = 0;
    while (n < name->n && name->s[n] != '.' && name->s[n] != '[') n++;
    const tstr first = {name->s, n};
    bool by_place = all_digits(first);
    if (by_place) place = number_of(first);
    if (name->n == 0) {
        if (f->numbered) return trun_fail(f->r, "cannot switch from numbered fields to fields without a number");
        by_place = true;
        place = f->next++;
    } else if (by_place && n == name->n) {
        if (f->next) return trun_fail(f->r, "cannot switch from fields without a number to numbered fields");
        f->numbered = true;
    }
    *name = (tstr){name->s + n, name->n - n};
    if (by_place)
        return place < f->args->n ? f->args->values[place]
                                  : trun_fail(f->r, "format has no argument for the field %zu", place);
    if (!trun_step(f->r, f->args->n_named / HN_TPL_STEP_ITEMS)) return tv_error();
    for (size_t i = 0; i < f->args->n_named; i++)
        if (ts_same(f->args->named[i].name, first)) return f->args->named[i].value;
    return trun_fail(f->r, "format has no argument \"%.*s\"", first.n < 60 ? (int)first.n : 60, first.s);
}

/* name[item].attribute */
static tvalue field_value(formatting *f, tstr name) {
    tvalue v = first_value(f, &name);
    while (name.n && v.kind != TV_ERROR) {
        const bool item = *name.s == '[';
        size_t n = 1;
        while (n < name.n && (item ? name.s[n] != ']' : name.s[n] != '.' && name.s[n] != '[')) n++;
        const tstr part = {name.s + 1, n - 1};
        if (part.n == 0 || (item && n == name.n))
            return trun_fail(f->r, "an empty or unfinished attribute in a format");
        name = (tstr){name.s + n + item, name.n - n - item};
        if (item && name.n && *name.s != '.' && *name.s != '[')
            return trun_fail(f->r, "only . or [ may follow ] in a format's field");
        v = !item ? tattribute(f->r, v, part)
                  : tsubscript(f->r, v, all_digits(part) ? tv_int((int64_t)number_of(part)) : tv_str(part.s, part.n));
    }
    return v;
}

/* Takes a field after its {, up to its }. conversion: 0 if there is none. */
static bool take_field(trun *r, tstr *text, tstr *name, char *conversion, tstr *specification) {
    const char *s = text->s, *end = s + text->n;
    *conversion = 0;
    *specification = (tstr){"", 0};
    while (s < end && !is_any(*s, "{}:!")) {
        const char *close = *s == '[' ? memchr(s, ']', (size_t)(end - s)) : s;
        s = close ? close + 1 : end;
    }
    *name = (tstr){text->s, (size_t)(s - text->s)};
    if (s == end || *s == '{') return trun_fail(r, "expected } in a format, after the field's name"), false;
    if (*s == '!') {
        *conversion = ++s < end ? *s++ : 0;
        if (s == end || (*s != ':' && *s != '}'))
            return trun_fail(r, "expected ! and a character, then : or }, in a format's field"), false;
    }
    int depth = 1;
    const char *from = *s == ':' ? ++s : s;
    for (; s < end; s++) {
        if (*s == '{') depth++;
        if (*s == '}' && --depth == 0) break;
    }
    if (s == end) return trun_fail(r, "a { without its } in a format"), false;
    *specification = (tstr){from, (size_t)(s - from)};
    *text = (tstr){s + 1, (size_t)(end - s - 1)};
    return true;
}

static bool put_fields(formatting *f, tbuf *b, tstr text, int depth);

static bool put_field(formatting *f, tbuf *b, tstr *text, int depth) {
    trun *r = f->r;
    tstr name, specification;
    char conversion;
    tbuf converted = {.arena = &r->arena}, written = {.arena = &r->arena};
    if (!take_field(r, text, &name, &conversion, &specification)) return false;
    tvalue v = field_value(f, name);
    if (v.kind == TV_ERROR) return false;
    if (conversion == 'r' || conversion == 'a')
        tv_repr(r, &converted, v, conversion == 'a', 0);
    else if (conversion == 's')
        tv_print(r, &converted, v, 0);
    else if (conversion)
        return trun_fail(r, "unknown conversion !%c in a format", conversion), false;
    if (conversion) v = tv_buffer(r, &converted);
    if (r->status || !put_fields(f, &written, specification, depth - 1)) return false;
    const tvalue spec_text = tv_buffer(r, &written);
    return spec_text.kind != TV_ERROR && put_value(r, b, v, spec_text.str);
}

/* Writes a text with fields; depth: of fields in the specifications of fields. */
static bool put_fields(formatting *f, tbuf *b, tstr text, int depth) {
    if (depth < 0) return trun_fail(f->r, "fields of a format are nested too deep"), false;
    while (text.n && !b->failed && trun_step(f->r, 1)) {
        size_t n = 0;
        while (n < text.n && text.s[n] != '{' && text.s[n] != '}') n++;
        tbuf_put(b, text.s, n);
        if (n == text.n) break;
        const char mark = text.s[n];
        const bool twice = n + 1 < text.n && text.s[n + 1] == mark;
        if (!twice && (mark == '}' || n + 1 == text.n)) return trun_fail(f->r, "a single %c in a format", mark), false;
        if (twice) tbuf_put(b, text.s + n, 1);
        text = (tstr){text.s + n + 1 + twice, text.n - n - 1 - twice};
        if (!twice && !put_field(f, b, &text, depth)) return false;
    }
    return !f->r->status;
}

tvalue tformat_fields(trun *r, tstr text, const targs *a) {
    enum { NESTED = 2 };
    formatting f = {.r = r, .args = a};
    tbuf b = {.arena = &r->arena};
    return put_fields(&f, &b, text, NESTED) ? tv_buffer(r, &b) : tv_error();
}
