/* SPDX-License-Identifier: Apache-2.0 */
/* template_filters.c - filters (value | name) and tests (value is name), as in Jinja, tojson as in Hugging Face. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/template_private.h"

typedef tvalue filter_call(trun *r, tvalue v, const targs *a, int how);

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

static bool text_argument(trun *r, const targs *a, size_t place, const char *name, tvalue otherwise, tstr *out) {
    const tvalue *v = targs_get(a, place, name);
    tvalue text = tv_to_string(r, v ? *v : otherwise);
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
    if (!text_argument(r, a, 0, "old", tv_text(""), &from) || !text_argument(r, a, 1, "new", tv_text(""), &to))
        return tv_error();
    const tvalue *count = targs_get(a, 2, "count");
    return ts_replace(r, v.str, from, to, count && count->kind == TV_INT ? count->i : -1);
}

static tvalue indent(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *width = targs_get(a, 0, "width"), *first = targs_get(a, 1, "first"),
                 *blank = targs_get(a, 2, "blank");
    tbuf b = {.arena = &r->arena};
    (void)how;
    if (v.kind != TV_STRING) return trun_fail(r, "indent takes a string, not %s", tv_type_name(v));
    tvalue prefix = width && width->kind == TV_STRING ? *width : tv_text("");
    int64_t spaces = width && width->kind == TV_INT ? width->i : width ? 0 : 4;
    for (size_t at = 0, line = 0; at <= v.str.n && trun_step(r, 1); line++) {
        const char *end = at < v.str.n ? memchr(v.str.s + at, '\n', v.str.n - at) : NULL;
        size_t n = end ? (size_t)(end - v.str.s) - at : v.str.n - at;
        bool wanted = line == 0 ? first && tv_truth(*first) : n > 0 || (blank && tv_truth(*blank));
        for (int64_t i = 0; wanted && i < spaces && !b.failed; i++) tbuf_puts(&b, " ");
        if (wanted) tbuf_put(&b, prefix.str.s, prefix.str.n);
        tbuf_put(&b, v.str.s + at, n + (end != NULL));
        if (!end) break;
        at += n + 1;
    }
    return tv_buffer(r, &b);
}

static tvalue to_json(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *indent_by = targs_get(a, 1, "indent"), *ascii = targs_get(a, 0, "ensure_ascii");
    const tvalue *separators = targs_get(a, 2, "separators"), *sort = targs_get(a, 3, "sort_keys");
    bool pretty = indent_by && indent_by->kind == TV_INT;
    tjson_style style = {.indent = pretty ? indent_by->i : -1,
                         .ascii = ascii && tv_truth(*ascii),
                         .sort = sort && tv_truth(*sort),
                         .item = {pretty ? "," : ", ", pretty ? 1 : 2},
                         .pair = {": ", 2}};
    (void)how;
    if (pretty && (style.indent < 0 || style.indent > 100)) return trun_fail(r, "tojson: an indent of 0 to 100");
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

static tvalue to_number(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *otherwise = targs_get(a, 0, "default");
    tvalue none = otherwise ? *otherwise : how == 'i' ? tv_int(0) : tv_float(0);
    double number;
    if (tv_is_number(v)) {
        if (how == 'i' && v.kind != TV_FLOAT) return tv_int(tv_integer(v));
        number = tv_number(v);
    } else if (v.kind == TV_STRING) {
        char text[64], *end;
        tstr s = ts_strip(r, v.str, NULL, true, true);
        if (s.n == 0 || s.n >= sizeof text) return none;
        memcpy(text, s.s, s.n);
        text[s.n] = '\0';
        long long whole = strtoll(text, &end, 10);
        if (how == 'i' && !*end) return tv_int(whole);
        if (strspn(text, "+-.0123456789eE") != s.n) return none;
        number = strtod(text, &end);
        if (*end) return none;
    } else if (v.kind == TV_UNDEFINED) {
        return trun_fail(r, "'%.*s' is undefined", (int)v.str.n, v.str.s);
    } else {
        return none;
    }
    if (how == 'f') return tv_float(number);
    return fabs(number) < 9e18 ? tv_int((int64_t)number) : none;
}

static tvalue absolute(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    (void)how;
    if (!tv_is_number(v)) return trun_fail(r, "abs takes a number, not %s", tv_type_name(v));
    if (v.kind == TV_FLOAT) return tv_float(fabs(v.f));
    int64_t i = tv_integer(v);
    return i == INT64_MIN ? trun_fail(r, "an integer beyond 64 bits") : tv_int(i < 0 ? -i : i);
}

static tvalue round_number(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *precision = targs_get(a, 0, "precision"), *method = targs_get(a, 1, "method");
    (void)how;
    if (!tv_is_number(v)) return trun_fail(r, "round takes a number, not %s", tv_type_name(v));
    int64_t digits = precision && precision->kind == TV_INT ? precision->i : 0;
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
    char text[400]; /* by the digits that it has, as Python does: 2.675 lies below the half */
    snprintf(text, sizeof text, "%.*f", (int)digits, v.f);
    return tv_float(strtod(text, NULL));
}

/* ---- values and lists ---- */

static tvalue otherwise(trun *r, tvalue v, const targs *a, int how) { /* default */
    const tvalue *value = targs_get(a, 0, "default_value"), *falsy = targs_get(a, 1, "boolean");
    (void)r;
    (void)how;
    bool absent = v.kind == TV_UNDEFINED || (falsy && tv_truth(*falsy) && !tv_truth(v));
    return !absent ? v : value ? *value : tv_text("");
}

static tvalue length(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    (void)how;
    switch (v.kind) {
    case TV_UNDEFINED: return tv_int(0);
    case TV_STRING: return tv_int((int64_t)ts_length(v.str));
    case TV_LIST:
    case TV_TUPLE: return tv_int((int64_t)v.list->n);
    case TV_DICT: return tv_int((int64_t)v.dict->n);
    default: return trun_fail(r, "a value of type %s has no length", tv_type_name(v));
    }
}

static tvalue end_of(trun *r, tvalue v, const targs *a, int how) { /* first, last */
    (void)a;
    if (how == 'l' && v.kind == TV_GENERATOR) return trun_fail(r, "a generator has no last element");
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    if (v.list->n == 0) return tv_undefined("the first or last of nothing", 28);
    return v.list->items[how == 'f' ? 0 : v.list->n - 1];
}

static tvalue to_list(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind != TV_ERROR) v.kind = TV_LIST;
    return v;
}

static tvalue reverse(trun *r, tvalue v, const targs *a, int how) {
    tbuf b = {.arena = &r->arena};
    bool text = v.kind == TV_STRING;
    tvalue *items, from = tv_iterate(r, v), out;
    (void)a;
    (void)how;
    if (from.kind == TV_ERROR) return from;
    out = tv_list(r, TV_GENERATOR, from.list->n, &items);
    for (size_t i = 0; i < from.list->n && out.kind != TV_ERROR; i++) {
        items[i] = from.list->items[from.list->n - 1 - i];
        if (text) tbuf_put(&b, items[i].str.s, items[i].str.n);
    }
    return text && out.kind != TV_ERROR ? tv_buffer(r, &b) : out;
}

/* "a.b.0" of an element. */
static tvalue path_of(trun *r, tvalue v, tvalue path) {
    if (path.kind == TV_INT) return tsubscript(r, v, path);
    if (path.kind != TV_STRING) return trun_fail(r, "an attribute is named by a string, not %s", tv_type_name(path));
    for (tstr rest = path.str; rest.n && v.kind != TV_ERROR;) {
        const char *dot = memchr(rest.s, '.', rest.n);
        tstr part = {rest.s, dot ? (size_t)(dot - rest.s) : rest.n};
        bool number = part.n > 0 && part.n < 10 && strspn(part.s, "0123456789") >= part.n;
        v = tsubscript(r, v, number ? tv_int(atoi(part.s)) : tv_str(part.s, part.n));
        rest = (tstr){part.s + part.n + (dot != NULL), rest.n - part.n - (dot != NULL)};
    }
    return v;
}

static tvalue join(trun *r, tvalue v, const targs *a, int how) {
    tstr separator;
    const tvalue *attribute = targs_get(a, 1, "attribute");
    tbuf b = {.arena = &r->arena};
    (void)how;
    if (!text_argument(r, a, 0, "d", tv_text(""), &separator)) return tv_error();
    v = tv_iterate(r, v);
    for (size_t i = 0; v.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue item = v.list->items[i];
        if (attribute) item = path_of(r, item, *attribute);
        if (item.kind == TV_ERROR) return item;
        if (i) tbuf_put(&b, separator.s, separator.n);
        tv_print(r, &b, item, 0);
    }
    return tv_buffer(r, &b);
}

static tvalue items(trun *r, tvalue v, const targs *a, int how) {
    tvalue *none;
    (void)a;
    (void)how;
    if (v.kind == TV_UNDEFINED) return tv_list(r, TV_GENERATOR, 0, &none);
    if (v.kind != TV_DICT) return trun_fail(r, "items takes a dict, not %s", tv_type_name(v));
    v = tmethod_call(r, &(tmethod){v, {"items", 5}}, &(targs){.n = 0});
    if (v.kind == TV_LIST) v.kind = TV_GENERATOR;
    return v;
}

/* ---- sorting ---- */

typedef struct sort_item {
    tvalue key, value;
    size_t place; /* equal keys keep their order */
} sort_item;

typedef struct sort_run {
    trun *r;
    bool reverse;
} sort_run;

static int compare_items(const void *a, const void *b, void *user) {
    const sort_item *x = a, *y = b;
    sort_run *s = user;
    int order = 0;
    if (s->r->status == HUNCH_OK && trun_step(s->r, 1)) tv_compare(s->r, x->key, y->key, &order, 0);
    if (s->reverse) order = -order;
    return order ? order : x->place < y->place ? -1 : 1;
}

static tvalue fold(trun *r, tvalue v, bool keep_case) {
    return keep_case || v.kind != TV_STRING ? v : ts_change_case(r, v.str, 'l');
}

/* Sorts a list's elements by keys of them (in place of `keys`, an element each). */
static tvalue sort_by(trun *r, tvalue list, const tvalue *keys, bool backwards) {
    size_t n = list.list->n;
    tvalue *out, sorted = tv_list(r, TV_LIST, n, &out);
    sort_item *all = ta_alloc(&r->arena, (n + 1) * sizeof *all);
    if (!all || sorted.kind == TV_ERROR) return trun_fail_memory(r);
    for (size_t i = 0; i < n; i++) all[i] = (sort_item){keys[i], list.list->items[i], i};
    qsort_r(all, n, sizeof *all, compare_items, &(sort_run){r, backwards});
    for (size_t i = 0; i < n; i++) out[i] = all[i].value;
    return r->status == HUNCH_OK ? sorted : tv_error();
}

static tvalue sort(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *backwards = targs_get(a, 0, "reverse"), *keep = targs_get(a, 1, "case_sensitive"),
                 *attribute = targs_get(a, 2, "attribute");
    tvalue *keys, list;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    list = tv_list(r, TV_LIST, v.list->n, &keys);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue key =
            attribute && attribute->kind != TV_NONE ? path_of(r, v.list->items[i], *attribute) : v.list->items[i];
        keys[i] = key.kind == TV_ERROR ? key : fold(r, key, keep && tv_truth(*keep));
        if (keys[i].kind == TV_ERROR) return keys[i];
    }
    return list.kind == TV_ERROR ? list : sort_by(r, v, keys, backwards && tv_truth(*backwards));
}

static tvalue sort_dict(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 0, "case_sensitive"), *by = targs_get(a, 1, "by"),
                 *backwards = targs_get(a, 2, "reverse");
    bool by_value = by && by->kind == TV_STRING && ts_equal(by->str, "value");
    tvalue *keys, pairs = items(r, v, a, how), list;
    if (v.kind == TV_UNDEFINED) return trun_fail(r, "'%.*s' is undefined", (int)v.str.n, v.str.s);
    if (pairs.kind == TV_ERROR) return pairs;
    list = tv_list(r, TV_LIST, pairs.list->n, &keys);
    for (size_t i = 0; list.kind != TV_ERROR && i < pairs.list->n; i++) {
        keys[i] = fold(r, pairs.list->items[i].list->items[by_value], keep && tv_truth(*keep));
        if (keys[i].kind == TV_ERROR) return keys[i];
    }
    return list.kind == TV_ERROR ? list : sort_by(r, pairs, keys, backwards && tv_truth(*backwards));
}

static tvalue extreme(trun *r, tvalue v, const targs *a, int how) { /* min, max */
    v = sort(r, v, &(targs){.n = 0}, how);
    if (v.kind == TV_ERROR) return v;
    return end_of(r, v, a, how == 'm' ? 'f' : 'l');
}

static tvalue sum(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *attribute = targs_get(a, 0, "attribute");
    double total = 0;
    int64_t whole = 0;
    bool exact = true;
    (void)how;
    v = tv_iterate(r, v);
    for (size_t i = 0; v.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue item = attribute ? path_of(r, v.list->items[i], *attribute) : v.list->items[i];
        if (!tv_is_number(item)) return trun_fail(r, "sum takes numbers, not %s", tv_type_name(item));
        if (item.kind == TV_FLOAT)
            exact = false;
        else if (__builtin_add_overflow(whole, tv_integer(item), &whole))
            return trun_fail(r, "an integer beyond 64 bits");
        total += tv_number(item);
    }
    return v.kind == TV_ERROR ? v : exact ? tv_int(whole) : tv_float(total);
}

static tvalue unique(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 0, "case_sensitive"), *attribute = targs_get(a, 1, "attribute");
    tvalue *keys, *out, list, folded;
    size_t n = 0;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    folded = tv_list(r, TV_LIST, v.list->n, &keys);
    list = folded.kind == TV_ERROR ? folded : tv_list(r, TV_GENERATOR, v.list->n, &out);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue key = attribute ? path_of(r, v.list->items[i], *attribute) : v.list->items[i];
        key = key.kind == TV_ERROR ? key : fold(r, key, keep && tv_truth(*keep));
        if (key.kind == TV_ERROR) return key;
        bool seen = false;
        for (size_t k = 0; k < n && !seen && r->status == HUNCH_OK; k++) seen = tv_equal(r, keys[k], key, 0);
        if (seen) continue;
        keys[n] = key;
        out[n++] = v.list->items[i];
    }
    if (list.kind != TV_ERROR) ((tlist *)list.list)->n = n;
    return r->status == HUNCH_OK ? list : tv_error();
}

/* ---- select, reject, selectattr, rejectattr, map ---- */

static targs rest_of(const targs *a, size_t from) {
    targs rest = {.values = a->values + (from < a->n ? from : a->n), .n = from < a->n ? a->n - from : 0};
    return rest;
}

enum { REJECT = 1, BY_ATTRIBUTE = 2 };

static tvalue select_items(trun *r, tvalue v, const targs *a, int how) {
    size_t place = (how & BY_ATTRIBUTE) != 0, n = 0;
    tvalue *out, list;
    if (a->n < place) return trun_fail(r, "selectattr and rejectattr take an attribute");
    if (a->n > place && a->values[place].kind != TV_STRING) return trun_fail(r, "a test is named by a string");
    targs rest = rest_of(a, place + 1);
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    list = tv_list(r, TV_GENERATOR, v.list->n, &out);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue item = v.list->items[i];
        if (place) item = path_of(r, item, a->values[0]);
        if (item.kind != TV_ERROR)
            item = a->n > place ? ttest_apply(r, a->values[place].str, item, &rest) : tv_bool(tv_truth(item));
        if (item.kind == TV_ERROR) return item;
        if (item.b != ((how & REJECT) != 0)) out[n++] = v.list->items[i];
    }
    if (list.kind != TV_ERROR) ((tlist *)list.list)->n = n;
    return list;
}

static tvalue map(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *attribute = targs_get(a, SIZE_MAX, "attribute"), *none = targs_get(a, SIZE_MAX, "default");
    tvalue *out, list;
    (void)how;
    if (!attribute && (!a->n || a->values[0].kind != TV_STRING))
        return trun_fail(r, "map takes a filter's name or attribute=");
    targs rest = rest_of(a, 1);
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    list = tv_list(r, TV_GENERATOR, v.list->n, &out);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        out[i] = attribute ? path_of(r, v.list->items[i], *attribute)
                           : tfilter_apply(r, a->values[0].str, v.list->items[i], &rest);
        if (attribute && none && out[i].kind == TV_UNDEFINED) out[i] = *none;
        if (out[i].kind == TV_ERROR) return out[i];
    }
    return list;
}

static const struct {
    const char *name;
    filter_call *call;
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
    {"default", otherwise, 0},
    {"d", otherwise, 0},
    {"length", length, 0},
    {"count", length, 0},
    {"first", end_of, 'f'},
    {"last", end_of, 'l'},
    {"list", to_list, 0},
    {"reverse", reverse, 0},
    {"join", join, 0},
    {"items", items, 0},
    {"sort", sort, 0},
    {"dictsort", sort_dict, 0},
    {"min", extreme, 'm'},
    {"max", extreme, 'M'},
    {"sum", sum, 0},
    {"unique", unique, 0},
    {"select", select_items, 0},
    {"reject", select_items, REJECT},
    {"selectattr", select_items, BY_ATTRIBUTE},
    {"rejectattr", select_items, REJECT | BY_ATTRIBUTE},
    {"map", map, 0},
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
    /* map and its kin call filters: a map of maps of maps must not use the stack up */
    if (r->depth++ >= HN_TPL_MAX_CALLS) trun_fail(r, "nested deeper than %d", HN_TPL_MAX_CALLS);
    v = trun_step(r, 1) && trun_value(r, v) ? filters[i].call(r, v, args, filters[i].how) : tv_error();
    r->depth--;
    return r->status == HUNCH_OK ? v : tv_error();
}

/* ---- tests ---- */

typedef bool test_call(trun *r, tvalue v, const tvalue *arg, int how);

static bool is_kind(trun *r, tvalue v, const tvalue *arg, int how) {
    (void)r;
    (void)arg;
    switch (how) {
    case 'd': return v.kind != TV_UNDEFINED;
    case 'u': return v.kind == TV_UNDEFINED;
    case 'n': return v.kind == TV_NONE;
    case 's': return v.kind == TV_STRING;
    case 'm': return v.kind == TV_DICT;
    case 'q':
        return v.kind == TV_STRING || v.kind == TV_LIST || v.kind == TV_TUPLE || v.kind == TV_DICT ||
               v.kind == TV_UNDEFINED;
    case 'i': return tv_is_list(v) || v.kind == TV_STRING || v.kind == TV_DICT || v.kind == TV_UNDEFINED;
    case '0': return tv_is_number(v);
    case '1': return v.kind == TV_INT;
    case '.': return v.kind == TV_FLOAT;
    case 'b': return v.kind == TV_BOOL;
    case 't': return v.kind == TV_BOOL && v.b;
    case 'f': return v.kind == TV_BOOL && !v.b;
    default: return v.kind == TV_MACRO || v.kind == TV_FUNCTION || v.kind == TV_METHOD;
    }
}

static bool compares(trun *r, tvalue v, const tvalue *arg, int how) {
    int order = 0;
    bool found = false;
    if (how == TOP_EQ || how == TOP_NE) return tv_equal(r, v, *arg, 0) == (how == TOP_EQ);
    if (how == TOP_IN) return tv_contains(r, *arg, v, &found) && found;
    if (!tv_compare(r, v, *arg, &order, 0)) return false;
    return how == TOP_LT ? order < 0 : how == TOP_LE ? order <= 0 : how == TOP_GT ? order > 0 : order >= 0;
}

static bool divides(trun *r, tvalue v, const tvalue *arg, int how) {
    tvalue by = how ? tv_int(2) : *arg;
    if (!tv_is_number(v) || !tv_is_number(by) || tv_number(by) == 0)
        return trun_fail(r, "only numbers are odd, even or divisible"), false;
    double rest = fmod(tv_number(v), tv_number(by));
    if (v.kind != TV_FLOAT && by.kind != TV_FLOAT)
        rest = tv_integer(by) == -1 ? 0 : (double)(tv_integer(v) % tv_integer(by));
    return how == 'o' ? fabs(rest) == 1 : rest == 0;
}

static bool has_case(trun *r, tvalue v, const tvalue *arg, int how) {
    (void)arg;
    v = tv_to_string(r, v);
    if (v.kind == TV_ERROR) return false;
    tvalue done =
        tmethod_call(r, &(tmethod){v, how == 'u' ? (tstr){"isupper", 7} : (tstr){"islower", 7}}, &(targs){.n = 0});
    return done.kind == TV_BOOL && done.b;
}

static const struct {
    const char *name;
    test_call *call;
    int how, arity;
} tests[] = {
    {"defined", is_kind, 'd', 0},      {"undefined", is_kind, 'u', 0}, {"none", is_kind, 'n', 0},
    {"string", is_kind, 's', 0},       {"mapping", is_kind, 'm', 0},   {"sequence", is_kind, 'q', 0},
    {"iterable", is_kind, 'i', 0},     {"number", is_kind, '0', 0},    {"integer", is_kind, '1', 0},
    {"float", is_kind, '.', 0},        {"boolean", is_kind, 'b', 0},   {"true", is_kind, 't', 0},
    {"false", is_kind, 'f', 0},        {"callable", is_kind, 'c', 0},  {"eq", compares, TOP_EQ, 1},
    {"equalto", compares, TOP_EQ, 1},  {"==", compares, TOP_EQ, 1},    {"sameas", compares, TOP_EQ, 1},
    {"ne", compares, TOP_NE, 1},       {"!=", compares, TOP_NE, 1},    {"lt", compares, TOP_LT, 1},
    {"lessthan", compares, TOP_LT, 1}, {"<", compares, TOP_LT, 1},     {"le", compares, TOP_LE, 1},
    {"<=", compares, TOP_LE, 1},       {"gt", compares, TOP_GT, 1},    {"greaterthan", compares, TOP_GT, 1},
    {">", compares, TOP_GT, 1},        {"ge", compares, TOP_GE, 1},    {">=", compares, TOP_GE, 1},
    {"in", compares, TOP_IN, 1},       {"odd", divides, 'o', 0},       {"even", divides, 'e', 0},
    {"divisibleby", divides, 0, 1},    {"upper", has_case, 'u', 0},    {"lower", has_case, 'l', 0},
};

static size_t find_test(tstr name) {
    size_t i = 0, n = sizeof tests / sizeof *tests;
    while (i < n && !ts_equal(name, tests[i].name)) i++;
    return i;
}

int ttest_arity(tstr name) {
    size_t i = find_test(name);
    return i < sizeof tests / sizeof *tests ? tests[i].arity : -1;
}

tvalue ttest_apply(trun *r, tstr name, tvalue v, const targs *args) {
    size_t i = find_test(name);
    if (i == sizeof tests / sizeof *tests)
        return trun_fail(r, "the test \"%.*s\" is not supported", name.n < 60 ? (int)name.n : 60, name.s);
    if (args->n != (size_t)tests[i].arity || args->n_named)
        return trun_fail(r, "the test %s takes %d arguments", tests[i].name, tests[i].arity);
    bool holds = trun_value(r, v) && tests[i].call(r, v, args->n ? &args->values[0] : NULL, tests[i].how);
    return r->status == HUNCH_OK ? tv_bool(holds) : tv_error();
}
