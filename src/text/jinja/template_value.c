/* SPDX-License-Identifier: Apache-2.0 */
/* template_value.c - the values of a template and Python's operations on them: truth, equality, order, str(), JSON.
 *
 * Values are immutable (Hugging Face renders in an immutable sandbox), except namespaces; so they are shared without reference
 * counts: all are in the run's arena.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/characters.h"
#include "text/jinja/template_private.h"

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
    *list = (tlist){*items, n};
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

static tvalue array_from_json(trun *r, const json_t *j, int depth) {
    tvalue *items = NULL, v = tv_list(r, TV_LIST, json_array_size(j), &items);
    for (size_t i = 0; i < json_array_size(j) && v.kind != TV_ERROR; i++) {
        items[i] = tv_from_json(r, json_array_get(j, i), depth + 1);
        if (items[i].kind == TV_ERROR) return items[i];
    }
    return v;
}

static tvalue object_from_json(trun *r, const json_t *j, int depth) {
    tvalue v = tv_dict(r, json_object_size(j));
    json_t *object = (json_t *)j; /* jansson iterates over a json_t * only, and changes nothing */
    for (void *i = json_object_iter(object); i && v.kind != TV_ERROR; i = json_object_iter_next(object, i)) {
        tvalue value = tv_from_json(r, json_object_iter_value(i), depth + 1);
        if (value.kind == TV_ERROR) return value;
        v.dict->entries[v.dict->n++] = (tentry){tv_str(json_object_iter_key(i), json_object_iter_key_len(i)), value};
    }
    return v;
}

tvalue tv_from_json(trun *r, const json_t *j, int depth) {
    if (depth > HN_TPL_MAX_DEPTH) return trun_fail(r, "variables are nested deeper than %d", HN_TPL_MAX_DEPTH);
    switch (json_typeof(j)) {
    case JSON_OBJECT: return object_from_json(r, j, depth);
    case JSON_ARRAY: return array_from_json(r, j, depth);
    case JSON_STRING: return tv_str(json_string_value(j), json_string_length(j));
    case JSON_INTEGER: return tv_int(json_integer_value(j));
    case JSON_REAL: return tv_float(json_real_value(j));
    case JSON_TRUE: return tv_bool(true);
    case JSON_FALSE: return tv_bool(false);
    default: return tv_none();
    }
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

const char *tv_type_name(tvalue v) {
    static const char *const names[] = {"error",       "Undefined", "NoneType", "bool",      "int",  "float",
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

bool tv_equal(trun *r, tvalue a, tvalue b, int depth) {
    if (depth > HN_TPL_MAX_DEPTH || !trun_step(r, 1)) return false;
    if (a.kind == TV_INT && b.kind == TV_INT) return a.i == b.i;
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

static int order_of(double a, double b) {
    return a < b ? -1 : a > b;
}

bool tv_compare(trun *r, tvalue a, tvalue b, int *order, int depth) {
    if (a.kind == TV_INT && b.kind == TV_INT) {
        *order = a.i < b.i ? -1 : a.i > b.i;
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

/* ---- str() ---- */

enum { FLOAT_STEPS = 64 }; /* several precisions are tried */

/* The doubles below a power of two are closer than those above, so that 16 digits may read back as the number even if the
 * nearest 16 digits do not: those one above them. */
static bool sixteen_digits(double f, char digits[40]) {
    snprintf(digits, 40, "%.15e", f);
    char *last = strchr(digits, 'e') - 1;
    if (*last == '9') return false;
    ++*last;
    return strtod(digits, NULL) == f;
}

/* As Python's repr: the fewest digits that read back the same, with an exponent below 1e-4 and from 1e16 on. */
static void print_float(tbuf *b, double f) {
    char digits[40], out[64];
    if (!isfinite(f)) {
        tbuf_puts(b, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    /* Up to 15 digits survive conversion to a double and back: 15 are tried first, less only if it is subnormal. */
    int precision = fabs(f) < DBL_MIN ? 0 : 14;
    do snprintf(digits, sizeof digits, "%.*e", precision, f);
    while (strtod(digits, NULL) != f && ++precision < 17);
    char shorter[40];
    if (precision == 16 && sixteen_digits(f, shorter)) {
        strcpy(digits, shorter);
        precision = 15;
    }
    char *mark = strchr(digits, 'e'), *last = mark;
    for (; precision > 0 && last[-1] == '0'; precision--) last--;
    if (precision == 0 && last[-1] == '.') last--;
    memmove(last, mark, strlen(mark) + 1);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        tbuf_puts(b, digits);
        return;
    }
    int decimals = precision - exponent;
    snprintf(out, sizeof out, "%.*f", decimals > 1 ? decimals : 1, f);
    tbuf_puts(b, out);
}

static void print_escaped(tbuf *b, tstr s, char quote) {
    uint32_t cp;
    for (size_t i = 0, step; i < s.n; i += step) {
        char code[12] = "";
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        if (cp == (uint32_t)quote || cp == '\\')
            snprintf(code, sizeof code, "\\%c", (int)cp);
        else if (cp == '\n')
            strcpy(code, "\\n");
        else if (cp == '\r')
            strcpy(code, "\\r");
        else if (cp == '\t')
            strcpy(code, "\\t");
        else if (!hn_char_is_printable(cp))
            snprintf(code, sizeof code, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
        if (*code)
            tbuf_puts(b, code);
        else
            tbuf_put(b, s.s + i, step);
    }
}

static void print_repr(trun *r, tbuf *b, tvalue v, int depth) {
    if (v.kind != TV_STRING) {
        if (v.kind == TV_UNDEFINED) tbuf_puts(b, "Undefined");
        tv_print(r, b, v, depth);
        return;
    }
    char quote = v.str.n && memchr(v.str.s, '\'', v.str.n) && !memchr(v.str.s, '"', v.str.n) ? '"' : '\'';
    tbuf_put(b, &quote, 1);
    print_escaped(b, v.str, quote);
    tbuf_put(b, &quote, 1);
}

static void print_list(trun *r, tbuf *b, tvalue v, int depth) {
    bool tuple = v.kind == TV_TUPLE;
    tbuf_puts(b, tuple ? "(" : "[");
    for (size_t i = 0; i < v.list->n; i++) {
        if (i) tbuf_puts(b, ", ");
        print_repr(r, b, v.list->items[i], depth + 1);
    }
    tbuf_puts(b, tuple ? (v.list->n == 1 ? ",)" : ")") : "]");
}

static void print_dict(trun *r, tbuf *b, const tdict *d, int depth) {
    tbuf_puts(b, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i) tbuf_puts(b, ", ");
        print_repr(r, b, d->entries[i].key, depth + 1);
        tbuf_puts(b, ": ");
        print_repr(r, b, d->entries[i].value, depth + 1);
    }
    tbuf_puts(b, "}");
}

void tv_print(trun *r, tbuf *b, tvalue v, int depth) {
    char number[32];
    if (b->failed || !trun_step(r, 1)) return;
    if (depth > HN_TPL_MAX_DEPTH) {
        trun_fail(r, "a value is nested deeper than %d", HN_TPL_MAX_DEPTH);
        return;
    }
    switch (v.kind) {
    case TV_ERROR:
    case TV_UNDEFINED: break;
    case TV_NONE: tbuf_puts(b, "None"); break;
    case TV_BOOL: tbuf_puts(b, v.b ? "True" : "False"); break;
    case TV_INT:
        snprintf(number, sizeof number, "%lld", (long long)v.i);
        tbuf_puts(b, number);
        break;
    case TV_FLOAT:
        if (trun_step(r, FLOAT_STEPS)) print_float(b, v.f);
        break;
    case TV_STRING: tbuf_put(b, v.str.s, v.str.n); break;
    case TV_LIST:
    case TV_TUPLE: print_list(r, b, v, depth); break;
    case TV_DICT: print_dict(r, b, v.dict, depth); break;
    default: trun_fail(r, "a value of type %s has no text", tv_type_name(v));
    }
}

tvalue tv_to_string(trun *r, tvalue v) {
    if (v.kind == TV_STRING) return v;
    tbuf b = {.arena = &r->arena};
    tv_print(r, &b, v, 0);
    return tv_buffer(r, &b);
}

/* ---- JSON, as Python's json.dumps ---- */

static void dump_string(tbuf *b, tstr s, bool ascii) {
    uint32_t cp;
    tbuf_puts(b, "\"");
    for (size_t i = 0, step; i < s.n; i += step) {
        static const char named[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
        char code[16] = "";
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        const char *found = cp && cp < 0x80 ? strchr(named, (int)cp) : NULL;
        if (found)
            snprintf(code, sizeof code, "\\%c", letters[found - named]);
        else if (cp < 0x20 || (ascii && cp >= 0x7F && cp < 0x10000 && cp != 0x7F))
            snprintf(code, sizeof code, "\\u%04x", (unsigned)cp);
        else if (ascii && cp >= 0x10000) {
            snprintf(code, sizeof code, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((cp - 0x10000) >> 10)),
                     (unsigned)(0xDC00 + (cp & 0x3FF)));
        }
        if (*code)
            tbuf_puts(b, code);
        else
            tbuf_put(b, s.s + i, step);
    }
    tbuf_puts(b, "\"");
}

static void dump_break(tbuf *b, const tjson_style *style, int depth) {
    if (!style->pretty) return;
    tbuf_puts(b, "\n");
    for (int i = 0; i < depth && !b->failed; i++) tbuf_put(b, style->indent.s, style->indent.n);
}

static bool dump_list(trun *r, tbuf *b, const tlist *list, const tjson_style *style, int depth) {
    tbuf_puts(b, "[");
    for (size_t i = 0; i < list->n; i++) {
        if (i) tbuf_put(b, style->item.s, style->item.n);
        dump_break(b, style, depth + 1);
        if (!tv_to_json(r, b, list->items[i], style, depth + 1)) return false;
    }
    if (list->n) dump_break(b, style, depth);
    tbuf_puts(b, "]");
    return true;
}

static int compare_entries(const void *a, const void *b, void *run) {
    int order = 0;
    tv_compare(run, ((const tentry *)a)->key, ((const tentry *)b)->key, &order, 0);
    return order;
}

static bool dump_key(trun *r, tbuf *b, tvalue key, const tjson_style *style) {
    if (key.kind == TV_STRING) {
        dump_string(b, key.str, style->ascii);
        return true;
    }
    if (key.kind == TV_TUPLE) {
        trun_fail(r, "keys of JSON must be strings or numbers, not tuple");
        return false;
    }
    tbuf_puts(b, "\"");
    bool ok = tv_to_json(r, b, key, style, 0);
    tbuf_puts(b, "\"");
    return ok;
}

static bool dump_dict(trun *r, tbuf *b, const tdict *d, const tjson_style *style, int depth) {
    const tentry *entries = d->entries;
    if (style->sort && d->n) {
        tentry *copy = ta_alloc(&r->arena, d->n * sizeof *copy);
        if (!copy) return trun_fail_memory(r), false;
        memcpy(copy, d->entries, d->n * sizeof *copy);
        qsort_r(copy, d->n, sizeof *copy, compare_entries, r);
        entries = copy;
    }
    tbuf_puts(b, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i) tbuf_put(b, style->item.s, style->item.n);
        dump_break(b, style, depth + 1);
        if (!dump_key(r, b, entries[i].key, style)) return false;
        tbuf_put(b, style->pair.s, style->pair.n);
        if (!tv_to_json(r, b, entries[i].value, style, depth + 1)) return false;
    }
    if (d->n) dump_break(b, style, depth);
    tbuf_puts(b, "}");
    return true;
}

bool tv_to_json(trun *r, tbuf *b, tvalue v, const tjson_style *style, int depth) {
    if (b->failed || !trun_step(r, 1)) return !r->status;
    if (depth > HN_TPL_MAX_DEPTH) {
        trun_fail(r, "a value is nested deeper than %d", HN_TPL_MAX_DEPTH);
        return false;
    }
    switch (v.kind) {
    case TV_NONE: tbuf_puts(b, "null"); return true;
    case TV_BOOL: tbuf_puts(b, v.b ? "true" : "false"); return true;
    case TV_FLOAT:
        if (isfinite(v.f))
            tv_print(r, b, v, depth);
        else
            tbuf_puts(b, isnan(v.f) ? "NaN" : v.f < 0 ? "-Infinity" : "Infinity");
        return true;
    case TV_INT: tv_print(r, b, v, depth); return true;
    case TV_STRING: dump_string(b, v.str, style->ascii); return true;
    case TV_LIST:
    case TV_TUPLE: return dump_list(r, b, v.list, style, depth);
    case TV_DICT: return dump_dict(r, b, v.dict, style, depth);
    default: trun_fail(r, "a value of type %s has no JSON", tv_type_name(v)); return false;
    }
}
