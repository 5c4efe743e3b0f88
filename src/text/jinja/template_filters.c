/* SPDX-License-Identifier: Apache-2.0 */
/* template_filters.c - the filters (`value | name`) as in Jinja, tojson as in Hugging Face: the table of all filters, and those
 * of strings and numbers. Those of lists: template_lists.c. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/template_private.h"

/* ---- text ---- */

static tvalue to_string(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    (void)how;
    return tv_to_string(r, v);
}

static tvalue change_case(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    v = tv_to_string(r, v);
    return v.kind == TV_ERROR ? v : ts_change_case(r, v.str, (char)how);
}

bool targs_text(trun *r, const targs *a, size_t place, const char *name, tstr *out) {
    const tvalue *v = targs_get(a, place, name);
    tvalue text = tv_to_string(r, v ? *v : tv_text(""));
    if (text.kind == TV_ERROR) return false;
    *out = text.str;
    return true;
}

static tvalue trim(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *chars = targs_get(a, 0, "chars");
    (void)how;
    v = tv_to_string(r, v);
    if (v.kind == TV_ERROR) return v;
    if (chars && chars->kind != TV_STRING && chars->kind != TV_NONE) return trun_fail(r, "trim takes a string");
    tstr s = ts_strip(r, v.str, chars && chars->kind == TV_STRING ? &chars->str : NULL, true, true);
    return tv_str(s.s, s.n);
}

static tvalue replace(trun *r, tvalue v, const targs *a, int how) {
    tstr from, to;
    (void)how;
    v = tv_to_string(r, v);
    if (v.kind == TV_ERROR || !targs_check(r, a, "replace", 2, 3)) return tv_error();
    if (!targs_text(r, a, 0, "old", &from) || !targs_text(r, a, 1, "new", &to)) return tv_error();
    const tvalue *count = targs_get(a, 2, "count");
    return ts_replace(r, v.str, from, to, count && count->kind == TV_INT ? count->i : -1);
}

enum { INDENT_MAX = 1 << 20, JSON_INDENT_MAX = 100 };

/* The indent of a line: a string, or a number of spaces. width: NULL for the default. False: too many. */
static bool indent_of(trun *r, const tvalue *width, int64_t otherwise, int64_t most, tstr *out) {
    if (width && width->kind == TV_STRING) {
        *out = width->str;
        return true;
    }
    if (width && width->kind != TV_INT && width->kind != TV_BOOL)
        return trun_fail(r, "an indent is a string or an integer, not %s", tv_type_name(*width)), false;
    int64_t n = width ? tv_integer(*width) : otherwise;
    tvalue spaces = n > most ? tv_error() : tbinary(r, '*', tv_text(" "), tv_int(n));
    *out = spaces.kind == TV_ERROR ? (tstr){"", 0} : spaces.str;
    return spaces.kind != TV_ERROR;
}

static tvalue indent(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *width = targs_get(a, 0, "width"), *first = targs_get(a, 1, "first"),
                 *blank = targs_get(a, 2, "blank");
    tbuf b = {.arena = &r->arena};
    (void)how;
    if (v.kind != TV_STRING) return trun_fail(r, "indent takes a string, not %s", tv_type_name(v));
    tstr text = v.str, prefix, line;
    if (!indent_of(r, width, 4, INDENT_MAX, &prefix)) return trun_fail(r, "an indent beyond %d", INDENT_MAX);
    bool more = true;
    for (size_t n = 0; more && !b.failed && trun_step(r, 1); n++) {
        size_t end = ts_take_line(&text, &line);
        more = text.n || (end && line.s[line.n + end - 1] != '\r'); /* one more line after the last line end */
        if (n) tbuf_put(&b, "\n", 1);
        if (n == 0 ? first && tv_truth(*first) : line.n > 0 || (blank && tv_truth(*blank)))
            tbuf_put(&b, prefix.s, prefix.n);
        tbuf_put(&b, line.s, line.n);
    }
    return tv_buffer(r, &b);
}

static tvalue to_json(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *indent_by = targs_get(a, 1, "indent"), *ascii = targs_get(a, 0, "ensure_ascii");
    const tvalue *separators = targs_get(a, 2, "separators"), *sort = targs_get(a, 3, "sort_keys");
    bool pretty = indent_by && indent_by->kind != TV_NONE;
    tjson_style style = {.pretty = pretty,
                         .ascii = ascii && tv_truth(*ascii),
                         .sort = sort && tv_truth(*sort),
                         .item = {pretty ? "," : ", ", pretty ? 1 : 2},
                         .pair = {": ", 2}};
    (void)how;
    if (pretty && !indent_of(r, indent_by, 0, JSON_INDENT_MAX, &style.indent))
        return trun_fail(r, "tojson: an indent of 0 to %d", JSON_INDENT_MAX);
    if (separators && (separators->kind == TV_TUPLE || separators->kind == TV_LIST)) {
        const tlist *two = separators->list;
        if (two->n != 2 || two->items[0].kind != TV_STRING || two->items[1].kind != TV_STRING)
            return trun_fail(r, "tojson: separators are two strings");
        style.item = two->items[0].str;
        style.pair = two->items[1].str;
    }
    tbuf b = {.arena = &r->arena};
    return tv_to_json(r, &b, v, &style, 0) ? tv_buffer(r, &b) : tv_error();
}

static tvalue same(trun *r, tvalue v, const targs *a, int how) { /* safe: nothing is escaped */
    (void)r;
    (void)a;
    (void)how;
    return v;
}

static tvalue format(trun *r, tvalue v, const targs *a, int how) {
    tvalue *items, values;
    (void)how;
    v = tv_to_string(r, v);
    if (v.kind == TV_ERROR) return v;
    if (a->n && a->n_named) return trun_fail(r, "format takes values or names, not both");
    values = a->n_named ? tv_dict(r, a->n_named) : tv_list(r, TV_TUPLE, a->n, &items);
    if (values.kind == TV_ERROR) return values;
    for (size_t i = 0; i < a->n; i++) items[i] = a->values[i];
    for (size_t i = 0; i < a->n_named; i++)
        if (!tv_dict_put(r, values.dict, tv_str(a->named[i].name.s, a->named[i].name.n), a->named[i].value))
            return tv_error();
    return tformat(r, v.str, values);
}

/* ---- numbers ---- */

/* Parses a number; false: it is not one. If the text is not an integer, int tries float(), as Jinja does. */
static bool read_number(trun *r, tstr s, int how, int base, tvalue *out) {
    char text[64], *end;
    s = ts_strip_space(s, true, true);
    if (s.n == 0 || s.n >= sizeof text) return false;
    memcpy(text, s.s, s.n);
    text[s.n] = '\0';
    errno = 0;
    long long whole = strtoll(text, &end, base);
    if (how == 'i' && !*end) {
        *out = errno ? trun_fail(r, "an integer beyond 64 bits") : tv_int(whole);
        return true;
    }
    if (strspn(text, "+-.0123456789eE") != s.n) return false;
    *out = tv_float(strtod(text, &end));
    return !*end;
}

static tvalue big_float(trun *r, tvalue big) {
    char digits[320] = "";
    if (big.str.n < sizeof digits) memcpy(digits, big.str.s, big.str.n);
    const double f = strtod(digits, NULL);
    return big.str.n < sizeof digits && isfinite(f) ? tv_float(f) : trun_fail(r, "an integer beyond all floats");
}

static tvalue to_number(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *otherwise = targs_get(a, 0, "default"), *base = how == 'i' ? targs_get(a, 1, "base") : NULL;
    tvalue none = otherwise ? *otherwise : how == 'i' ? tv_int(0) : tv_float(0);
    if (base && (base->kind != TV_INT || base->i < 2 || base->i > 36)) return trun_fail(r, "int: a base of 2 to 36");
    if (v.kind == TV_UNDEFINED) return tv_fail_undefined(r, v);
    if (v.kind == TV_STRING && !read_number(r, v.str, how, base ? (int)base->i : 10, &v)) return none;
    if (v.kind == TV_BIG) return how == 'f' ? big_float(r, v) : v;
    if (!tv_is_number(v)) return v.kind == TV_ERROR ? v : none;
    if (how == 'f') return tv_float(tv_number(v));
    if (v.kind != TV_FLOAT) return tv_int(tv_integer(v));
    if (!isfinite(v.f)) return none;
    return fabs(v.f) < 9e18 ? tv_int((int64_t)v.f) : trun_fail(r, "an integer beyond 64 bits");
}

static tvalue absolute(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    (void)how;
    if (v.kind == TV_BIG) return v.str.s[0] == '-' ? tv_negative(r, v) : v;
    if (!tv_is_number(v)) return trun_fail(r, "abs takes a number, not %s", tv_type_name(v));
    if (v.kind == TV_FLOAT) return tv_float(fabs(v.f));
    int64_t i = tv_integer(v);
    return i == INT64_MIN ? trun_fail(r, "an integer beyond 64 bits") : tv_int(i < 0 ? -i : i);
}

static tvalue round_number(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *precision = targs_get(a, 0, "precision"), *method = targs_get(a, 1, "method");
    (void)how;
    int64_t digits = precision && precision->kind == TV_INT ? precision->i : 0;
    if (v.kind == TV_BIG) return digits < 0 || method ? trun_fail(r, "an integer beyond 64 bits") : v;
    if (!tv_is_number(v)) return trun_fail(r, "round takes a number, not %s", tv_type_name(v));
    if (digits < -15 || digits > 15) return trun_fail(r, "round: -15 to 15 digits");
    double scale = pow(10, (double)digits), x = tv_number(v) * scale;
    bool up = method && method->kind == TV_STRING && ts_equal(method->str, "ceil"),
         down = method && method->kind == TV_STRING && ts_equal(method->str, "floor");
    if (up || down) return tv_float((up ? ceil(x) : floor(x)) / scale);
    if (v.kind != TV_FLOAT && digits >= 0) return tv_int(tv_integer(v));
    if (digits < 0) {
        x = rint(x) / scale;
        if (v.kind == TV_FLOAT) return tv_float(x);
        return fabs(x) < 9e18 ? tv_int((int64_t)x) : trun_fail(r, "an integer beyond 64 bits");
    }
    char text[400]; /* by its exact decimal digits, as Python does: 2.675 is below the half */
    snprintf(text, sizeof text, "%.*f", (int)digits, v.f);
    return tv_float(strtod(text, NULL));
}

static const struct {
    const char *name;
    tfilter_call *call;
    int how;
} filters[] = {
    {"string", to_string, 0},
    {"upper", change_case, 'u'},
    {"lower", change_case, 'l'},
    {"title", change_case, 'T'},
    {"capitalize", change_case, 'c'},
    {"trim", trim, 0},
    {"replace", replace, 0},
    {"indent", indent, 0},
    {"format", format, 0},
    {"tojson", to_json, 0},
    {"safe", same, 0},
    {"int", to_number, 'i'},
    {"float", to_number, 'f'},
    {"abs", absolute, 0},
    {"round", round_number, 0},
    {"default", tf_default, 0},
    {"d", tf_default, 0},
    {"length", tf_length, 0},
    {"count", tf_length, 0},
    {"first", tf_end_of, 'f'},
    {"last", tf_end_of, 'l'},
    {"list", tf_list, 0},
    {"reverse", tf_reverse, 0},
    {"join", tf_join, 0},
    {"items", tf_items, 0},
    {"sort", tf_sort, 0},
    {"dictsort", tf_dictsort, 0},
    {"min", tf_extreme, HN_TPL_LEAST},
    {"max", tf_extreme, HN_TPL_MOST},
    {"sum", tf_sum, 0},
    {"unique", tf_unique, 0},
    {"select", tf_select, 0},
    {"reject", tf_select, HN_TPL_REJECT},
    {"selectattr", tf_select, HN_TPL_BY_ATTRIBUTE},
    {"rejectattr", tf_select, HN_TPL_REJECT | HN_TPL_BY_ATTRIBUTE},
    {"map", tf_map, 0},
};

static size_t find_filter(tstr name) {
    size_t i = 0, n = sizeof filters / sizeof *filters;
    while (i < n && !ts_equal(name, filters[i].name)) i++;
    return i;
}

bool tfilter_known(tstr name) {
    return find_filter(name) < sizeof filters / sizeof *filters;
}

tvalue tfilter_apply(trun *r, tstr name, tvalue v, const targs *args) {
    if (!tfilter_known(name))
        return trun_fail(r, "the filter \"%.*s\" is not supported", name.n < 60 ? (int)name.n : 60, name.s);
    size_t i = find_filter(name);
    /* map and similar filters call filters: nested ones must not exhaust the stack */
    if (r->depth++ >= HN_TPL_MAX_CALLS) trun_fail(r, "nested deeper than %d", HN_TPL_MAX_CALLS);
    v = trun_step(r, 1) && trun_value(r, v) ? filters[i].call(r, v, args, filters[i].how) : tv_error();
    r->depth--;
    return !r->status ? v : tv_error();
}
