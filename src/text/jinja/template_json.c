/* SPDX-License-Identifier: Apache-2.0 */
/* template_json.c - values from JSON, of the caller's variables, and to JSON, as Python's json.dumps writes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/utf8.h"
#include "text/jinja/template_private.h"

/* ---- from JSON ---- */

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
    const char *digits = hn_json_digits(j);
    if (depth > HN_TPL_MAX_DEPTH) return trun_fail(r, "variables are nested deeper than %d", HN_TPL_MAX_DEPTH);
    if (digits) return hn_json_is_whole(digits) ? tv_whole(digits, strlen(digits)) : tv_float(hn_json_number_value(j)); /* as Python's json */
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

/* ---- to JSON ---- */

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
    case TV_BIG:
    case TV_INT: tv_print(r, b, v, depth); return true;
    case TV_STRING: dump_string(b, v.str, style->ascii); return true;
    case TV_LIST:
    case TV_TUPLE: return dump_list(r, b, v.list, style, depth);
    case TV_DICT: return dump_dict(r, b, v.dict, style, depth);
    default: trun_fail(r, "a value of type %s has no JSON", tv_type_name(v)); return false;
    }
}
