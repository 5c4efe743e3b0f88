/* SPDX-License-Identifier: Apache-2.0 */
/* template_value.c - the values of a template: making them, entries of dicts, and Python's truth, equality, order and iteration.
 * As text: template_print.c, template_json.c.
 *
 * Values are immutable (Hugging Face renders in an immutable sandbox), except namespaces; so they are shared without reference
 * counts: all are in the run's arena.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/template_private.h"

/* ---- making values ---- */

tvalue tv_none(void) {
    return (tvalue){.kind = TV_NONE};
}
tvalue tv_bool(bool b) {
    return (tvalue){.kind = TV_BOOL, .b = b};
}
tvalue tv_int(int64_t i) {
    return (tvalue){.kind = TV_INT, .i = i};
}
tvalue tv_float(double f) {
    return (tvalue){.kind = TV_FLOAT, .f = f};
}
tvalue tv_whole(const char *digits, size_t n) {
    const bool minus = digits[0] == '-';
    int64_t i = 0;
    for (size_t k = minus; k < n; k++) {
        const int64_t digit = minus ? '0' - digits[k] : digits[k] - '0';
        if (__builtin_mul_overflow(i, (int64_t)10, &i) || __builtin_add_overflow(i, digit, &i))
            return (tvalue){.kind = TV_BIG, .str = {digits, n}};
    }
    return tv_int(i);
}
tvalue tv_str(const char *s, size_t n) {
    return (tvalue){.kind = TV_STRING, .str = {s, n}};
}
tvalue tv_text(const char *s) {
    return tv_str(s, strlen(s));
}
tvalue tv_undefined(const char *name, size_t n) {
    return (tvalue){.kind = TV_UNDEFINED, .str = {name, n}};
}
tvalue tv_error(void) {
    return (tvalue){.kind = TV_ERROR};
}

tvalue tv_list(trun *r, tkind kind, size_t n, tvalue **items) {
    tlist *list = ta_alloc(&r->arena, sizeof *list);
    size_t bytes;
    if (!list || __builtin_mul_overflow(n, sizeof **items, &bytes)) return trun_fail_memory(r);
    *items = ta_alloc(&r->arena, bytes);
    if (!*items) return trun_fail_memory(r);
    *list = (tlist){.items = *items, .n = n};
    return (tvalue){.kind = kind, .list = list};
}

tvalue tv_dict(trun *r, size_t n) {
    tdict *dict = ta_alloc(&r->arena, sizeof *dict);
    size_t bytes;
    if (!dict || __builtin_mul_overflow(n, sizeof *dict->entries, &bytes)) return trun_fail_memory(r);
    *dict = (tdict){.entries = n ? ta_alloc(&r->arena, bytes) : NULL, .cap = n};
    if (n && !dict->entries) return trun_fail_memory(r);
    return (tvalue){.kind = TV_DICT, .dict = dict};
}

tvalue tv_namespace(trun *r) {
    tvalue v = tv_dict(r, 4);
    if (v.kind == TV_DICT) v.kind = TV_NAMESPACE;
    return v;
}

tvalue tv_buffer(trun *r, const tbuf *b) {
    if (r->status) return tv_error();
    if (b->too_long) return trun_fail(r, "a text grew beyond %d bytes", HN_TPL_MAX_OUTPUT);
    if (b->failed) return trun_fail_memory(r);
    return trun_text(r, b->n) ? tv_str(b->s ? b->s : "", b->n) : tv_error();
}

tvalue tv_fail_undefined(trun *r, tvalue v) {
    return trun_fail(r, "'%.*s' is undefined", v.str.n < 100 ? (int)v.str.n : 100, v.str.s);
}

/* ---- entries of dicts ---- */

const tvalue *tv_dict_find(trun *r, const tdict *d, tstr key) {
    for (size_t i = 0; i < d->n; i++) {
        tvalue k = d->entries[i].key;
        if (k.kind == TV_STRING && k.str.n == key.n && trun_text(r, key.n) && ts_same(k.str, key))
            return &d->entries[i].value;
        if (i % 64 == 63 && !trun_step(r, 8)) return NULL;
    }
    return NULL;
}

const tvalue *tv_dict_get(trun *r, const tdict *d, tvalue key) {
    if (key.kind == TV_STRING) return tv_dict_find(r, d, key.str);
    for (size_t i = 0; i < d->n; i++) {
        if (d->entries[i].key.kind != TV_STRING && tv_equal(r, d->entries[i].key, key, 0)) return &d->entries[i].value;
    }
    return NULL;
}

static bool has_hash(trun *r, tvalue v, int depth) {
    if (v.kind == TV_LIST || v.kind == TV_DICT || v.kind == TV_NAMESPACE)
        return trun_fail(r, "a value of type %s has no hash", tv_type_name(v)), false;
    if (depth > HN_TPL_MAX_DEPTH) return trun_fail(r, "a value is nested deeper than %d", HN_TPL_MAX_DEPTH), false;
    for (size_t i = 0; v.kind == TV_TUPLE && i < v.list->n; i++)
        if (!has_hash(r, v.list->items[i], depth + 1)) return false;
    return trun_step(r, 1);
}

bool tv_need_hash(trun *r, tvalue key) {
    return has_hash(r, key, 0);
}

bool tv_dict_put(trun *r, tdict *d, tvalue key, tvalue value) {
    if (!tv_need_hash(r, key)) return false;
    tvalue *old = (tvalue *)tv_dict_get(r, d, key);
    if (r->status) return false;
    if (old) {
        *old = value;
        return true;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 4;
        tentry *grown = ta_alloc(&r->arena, cap * sizeof *grown);
        if (!grown) {
            trun_fail_memory(r);
            return false;
        }
        if (d->n) memcpy(grown, d->entries, d->n * sizeof *grown);
        d->entries = grown;
        d->cap = cap;
    }
    d->entries[d->n++] = (tentry){key, value};
    return true;
}

/* ---- kind and truth ---- */

const char *tv_type_name(tvalue v) {
    static const char *const names[] = {"error",       "Undefined", "NoneType", "bool",  "int",       "float", "int",
                                        "str",         "list",      "tuple",    "generator", "dict", "Namespace",
                                        "LoopContext", "Macro",     "function", "method"};
    return names[v.kind];
}

bool tv_truth(tvalue v) {
    switch (v.kind) {
    case TV_ERROR:
    case TV_UNDEFINED:
    case TV_NONE: return false;
    case TV_BOOL: return v.b;
    case TV_INT: return v.i != 0;
    case TV_FLOAT: return v.f != 0;
    case TV_STRING: return v.str.n > 0;
    case TV_LIST:
    case TV_TUPLE: return v.list->n > 0;
    case TV_DICT: return v.dict->n > 0;
    default: return true;
    }
}

/* ---- equality and order ---- */

static bool lists_equal(trun *r, const tlist *a, const tlist *b, int depth) {
    if (a == b) return true;
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        if (!tv_equal(r, a->items[i], b->items[i], depth + 1)) return false;
    }
    return true;
}

static bool dicts_equal(trun *r, const tdict *a, const tdict *b, int depth) {
    if (a == b) return true;
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        const tvalue *other = tv_dict_get(r, b, a->entries[i].key);
        if (!other || !tv_equal(r, a->entries[i].value, *other, depth + 1)) return false;
    }
    return true;
}

static int order_of(double a, double b) {
    return a < b ? -1 : a > b;
}

/* Of digits with a sign. */
static int digits_order(tstr a, tstr b) {
    const bool minus = a.s[0] == '-';
    if (minus != (b.s[0] == '-')) return minus ? -1 : 1;
    const int longer = (a.n > b.n) - (a.n < b.n), order = longer ? longer : memcmp(a.s, b.s, a.n);
    return minus ? -order : order;
}

/* Of an int beyond 64 bits and another number. */
static int big_order(tvalue big, tvalue x) {
    char whole[400];
    if (x.kind == TV_BIG) return digits_order(big.str, x.str);
    if (x.kind != TV_FLOAT) return big.str.s[0] == '-' ? -1 : 1;
    if (!isfinite(x.f)) return x.f > 0 ? -1 : 1;
    const int n = snprintf(whole, sizeof whole, "%.0f", x.f); /* exact: from 2^63 on a double is a whole number */
    return digits_order(big.str, (tstr){whole, (size_t)n});
}

static bool has_big(tvalue a, tvalue b) {
    return (a.kind == TV_BIG && (b.kind == TV_BIG || tv_is_number(b))) || (b.kind == TV_BIG && tv_is_number(a));
}

bool tv_equal(trun *r, tvalue a, tvalue b, int depth) {
    if (depth > HN_TPL_MAX_DEPTH || !trun_step(r, 1)) return false;
    if (a.kind == TV_INT && b.kind == TV_INT) return a.i == b.i;
    if (has_big(a, b)) return (a.kind == TV_BIG ? big_order(a, b) : big_order(b, a)) == 0;
    if (tv_is_number(a) && tv_is_number(b)) return tv_number(a) == tv_number(b);
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case TV_STRING: return a.str.n == b.str.n && trun_text(r, a.str.n) && ts_same(a.str, b.str);
    case TV_LIST:
    case TV_TUPLE: return lists_equal(r, a.list, b.list, depth);
    case TV_DICT: return dicts_equal(r, a.dict, b.dict, depth);
    case TV_UNDEFINED:
    case TV_NONE: return true;
    case TV_FUNCTION: return a.function == b.function;
    default: return a.list == b.list; /* the same object */
    }
}

bool tv_compare(trun *r, tvalue a, tvalue b, int *order, int depth) {
    if (a.kind == TV_INT && b.kind == TV_INT) {
        *order = a.i < b.i ? -1 : a.i > b.i;
        return true;
    }
    if (has_big(a, b)) {
        const int by = a.kind == TV_BIG ? big_order(a, b) : -big_order(b, a);
        *order = (by > 0) - (by < 0);
        return true;
    }
    if (tv_is_number(a) && tv_is_number(b)) {
        *order = order_of(tv_number(a), tv_number(b));
        return true;
    }
    if (a.kind == TV_STRING && b.kind == TV_STRING) { /* UTF-8 sorts as its code points do */
        size_t n = a.str.n < b.str.n ? a.str.n : b.str.n;
        if (!trun_text(r, n)) return false;
        int c = n ? memcmp(a.str.s, b.str.s, n) : 0;
        *order = c ? (c < 0 ? -1 : 1) : order_of((double)a.str.n, (double)b.str.n);
        return true;
    }
    if ((a.kind == TV_LIST || a.kind == TV_TUPLE) && a.kind == b.kind && depth < HN_TPL_MAX_DEPTH) {
        for (size_t i = 0; i < a.list->n && i < b.list->n; i++) {
            if (!tv_equal(r, a.list->items[i], b.list->items[i], depth + 1)) {
                return tv_compare(r, a.list->items[i], b.list->items[i], order, depth + 1);
            }
        }
        *order = order_of((double)a.list->n, (double)b.list->n);
        return true;
    }
    trun_fail(r, "%s and %s have no order", tv_type_name(a), tv_type_name(b));
    return false;
}

bool tv_contains(trun *r, tvalue container, tvalue item, bool *found) {
    *found = false;
    if (container.kind == TV_STRING) {
        if (item.kind != TV_STRING) {
            trun_fail(r, "'in <string>' needs a string on the left, not %s", tv_type_name(item));
            return false;
        }
        *found = trun_text(r, container.str.n) && ts_find(container.str, item.str) != NULL;
    } else if (container.kind == TV_DICT) {
        *found = tv_need_hash(r, item) && tv_dict_get(r, container.dict, item) != NULL;
    } else if (tv_is_list(container)) {
        for (size_t i = 0; i < container.list->n && !*found; i++)
            *found = tv_equal(r, container.list->items[i], item, 0);
    } else if (container.kind != TV_UNDEFINED) {
        trun_fail(r, "'in' is not possible on a value of type %s", tv_type_name(container));
        return false;
    }
    return !r->status;
}

/* ---- iteration ---- */

tvalue tv_iterate(trun *r, tvalue v) {
    tvalue *items = NULL, list;
    if (tv_is_list(v)) return v;
    if (v.kind == TV_UNDEFINED) return tv_list(r, TV_LIST, 0, &items);
    if (v.kind == TV_DICT) {
        list = tv_list(r, TV_LIST, v.dict->n, &items);
        for (size_t i = 0; i < v.dict->n && list.kind != TV_ERROR; i++) items[i] = v.dict->entries[i].key;
        return list;
    }
    if (v.kind != TV_STRING) return trun_fail(r, "a value of type %s is not iterable", tv_type_name(v));
    list = tv_list(r, TV_LIST, ts_length(v.str), &items);
    uint32_t cp;
    for (size_t i = 0, n = 0; i < v.str.n && list.kind != TV_ERROR; n++) {
        size_t step = (size_t)hn_utf8_decode(v.str.s + i, v.str.n - i, &cp);
        items[n] = tv_str(v.str.s + i, step);
        i += step;
    }
    return list;
}
