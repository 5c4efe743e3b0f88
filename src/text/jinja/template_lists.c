/* SPDX-License-Identifier: Apache-2.0 */
/* template_lists.c - Jinja's filters of lists and dicts: lengths, ends, sorting, selecting, joining. The table of their names:
 * template_filters.c. */
#include <stdlib.h>
#include <string.h>

#include "text/jinja/template_private.h"

tvalue tf_default(trun *r, tvalue v, const targs *a, int how) { /* default */
    const tvalue *value = targs_get(a, 0, "default_value"), *falsy = targs_get(a, 1, "boolean");
    (void)r;
    (void)how;
    bool absent = v.kind == TV_UNDEFINED || (falsy && tv_truth(*falsy) && !tv_truth(v));
    return !absent ? v : value ? *value : tv_text("");
}

tvalue tf_length(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    (void)how;
    switch (v.kind) {
    case TV_UNDEFINED: return tv_int(0);
    case TV_STRING: return tv_int((int64_t)ts_length(v.str));
    case TV_LIST:
    case TV_TUPLE:
    case TV_VIEW: return tv_int((int64_t)v.list->n);
    case TV_DICT: return tv_int((int64_t)v.dict->n);
    default: return trun_fail(r, "a value of type %s has no length", tv_type_name(v));
    }
}

tvalue tf_end_of(trun *r, tvalue v, const targs *a, int how) { /* first, last */
    (void)a;
    if (how == 'l' && v.kind == TV_GENERATOR) return trun_fail(r, "a generator has no last element");
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    if (v.list->n == 0) return tv_undefined("the first or last of an empty list", 34);
    return v.list->items[how == 'f' ? 0 : v.list->n - 1];
}

tvalue tf_list(trun *r, tvalue v, const targs *a, int how) {
    (void)a;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind != TV_ERROR) v.kind = TV_LIST;
    return v;
}

tvalue tf_reverse(trun *r, tvalue v, const targs *a, int how) {
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

static tvalue part_of_path(trun *r, tvalue v, tvalue part, const tvalue *otherwise) {
    v = tsubscript(r, v, part);
    return v.kind == TV_UNDEFINED && otherwise && otherwise->kind != TV_NONE ? *otherwise : v;
}

tvalue tf_path(trun *r, tvalue v, tvalue path, const tvalue *otherwise) {
    if (path.kind == TV_NONE) return v;
    if (path.kind == TV_INT) return part_of_path(r, v, path, otherwise);
    if (path.kind != TV_STRING) return trun_fail(r, "an attribute is named by a string, not %s", tv_type_name(path));
    for (tstr rest = path.str; rest.n && v.kind != TV_ERROR;) {
        const char *dot = memchr(rest.s, '.', rest.n);
        tstr part = {rest.s, dot ? (size_t)(dot - rest.s) : rest.n};
        bool number = part.n > 0 && part.n < 10 && strspn(part.s, "0123456789") >= part.n;
        v = part_of_path(r, v, number ? tv_int(atoi(part.s)) : tv_str(part.s, part.n), otherwise);
        rest = (tstr){part.s + part.n + (dot != NULL), rest.n - part.n - (dot != NULL)};
    }
    return v;
}

tvalue tf_join(trun *r, tvalue v, const targs *a, int how) {
    tstr separator;
    const tvalue *attribute = targs_get(a, 1, "attribute");
    tbuf b = {.arena = &r->arena};
    (void)how;
    if (!targs_text(r, a, 0, "d", &separator)) return tv_error();
    v = tv_iterate(r, v);
    for (size_t i = 0; v.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue item = v.list->items[i];
        if (attribute) item = tf_path(r, item, *attribute, NULL);
        if (item.kind == TV_ERROR) return item;
        if (i) tbuf_put(&b, separator.s, separator.n);
        tv_print(r, &b, item, 0);
    }
    return tv_buffer(r, &b);
}

tvalue tf_items(trun *r, tvalue v, const targs *a, int how) {
    tvalue *none;
    (void)a;
    (void)how;
    if (v.kind == TV_UNDEFINED) return tv_list(r, TV_GENERATOR, 0, &none);
    if (v.kind != TV_DICT) return trun_fail(r, "items takes a dict, not %s", tv_type_name(v));
    v = tv_dict_part(r, v, NULL, 'i');
    if (v.kind == TV_VIEW) v.kind = TV_GENERATOR;
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
    if (!s->r->status && trun_step(s->r, 1)) tv_compare(s->r, x->key, y->key, &order, 0);
    if (s->reverse) order = -order;
    return order ? order : x->place < y->place ? -1 : 1;
}

tvalue tf_key(trun *r, tvalue v, const tvalue *attribute, const tvalue *keep_case, const tvalue *otherwise) {
    if (attribute) v = tf_path(r, v, *attribute, otherwise);
    return v.kind != TV_STRING || (keep_case && tv_truth(*keep_case)) ? v : ts_change_case(r, v.str, 'l');
}

/* The same of several attributes, separated by commas: a list of keys. */
static tvalue keys_of(trun *r, tvalue v, const tvalue *attribute, const tvalue *keep_case) {
    if (!attribute || attribute->kind != TV_STRING || !memchr(attribute->str.s, ',', attribute->str.n))
        return tf_key(r, v, attribute, keep_case, NULL);
    tvalue keys = ts_split(r, attribute->str, &(tstr){",", 1}, -1, false);
    for (size_t i = 0; keys.kind != TV_ERROR && i < keys.list->n; i++) {
        tvalue *key = &keys.list->items[i];
        *key = tf_key(r, v, key, keep_case, NULL);
        if (key->kind == TV_ERROR) return *key;
    }
    return keys;
}

tvalue tf_sort_by(trun *r, tvalue list, const tvalue *keys, bool backwards) {
    size_t n = list.list->n;
    tvalue *out, sorted = tv_list(r, TV_LIST, n, &out);
    sort_item *all = ta_alloc(&r->arena, (n + 1) * sizeof *all);
    if (!all || sorted.kind == TV_ERROR) return trun_fail_memory(r);
    for (size_t i = 0; i < n; i++) all[i] = (sort_item){keys[i], list.list->items[i], i};
    qsort_r(all, n, sizeof *all, compare_items, &(sort_run){r, backwards});
    for (size_t i = 0; i < n; i++) out[i] = all[i].value;
    return !r->status ? sorted : tv_error();
}

tvalue tf_sort(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 1, "case_sensitive"), *attribute = targs_get(a, 2, "attribute");
    int64_t backwards;
    tvalue *keys, list;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR || !targs_integer(r, a, 0, "reverse", 0, &backwards)) return tv_error();
    list = tv_list(r, TV_LIST, v.list->n, &keys);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        keys[i] = keys_of(r, v.list->items[i], attribute, keep);
        if (keys[i].kind == TV_ERROR) return keys[i];
    }
    return list.kind == TV_ERROR ? list : tf_sort_by(r, v, keys, backwards != 0);
}

tvalue tf_dictsort(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 0, "case_sensitive"), *by = targs_get(a, 1, "by");
    int64_t backwards;
    if (!targs_integer(r, a, 2, "reverse", 0, &backwards)) return tv_error();
    bool by_value = by && by->kind == TV_STRING && ts_equal(by->str, "value");
    if (by && !by_value && (by->kind != TV_STRING || !ts_equal(by->str, "key")))
        return trun_fail(r, "dictsort: by key or value");
    tvalue *keys, pairs = tf_items(r, v, a, how), list;
    if (v.kind == TV_UNDEFINED) return tv_fail_undefined(r, v);
    if (pairs.kind == TV_ERROR) return pairs;
    list = tv_list(r, TV_LIST, pairs.list->n, &keys);
    for (size_t i = 0; list.kind != TV_ERROR && i < pairs.list->n; i++) {
        keys[i] = tf_key(r, pairs.list->items[i].list->items[by_value], NULL, keep, NULL);
        if (keys[i].kind == TV_ERROR) return keys[i];
    }
    return list.kind == TV_ERROR ? list : tf_sort_by(r, pairs, keys, backwards != 0);
}

tvalue tf_extreme(trun *r, tvalue v, const targs *a, int how) { /* min, max: of equal ones the first */
    const tvalue *keep = targs_get(a, 0, "case_sensitive"), *attribute = targs_get(a, 1, "attribute");
    tvalue best = tv_undefined("the least or greatest of an empty list", 38), best_key = tv_none();
    v = tv_iterate(r, v);
    for (size_t i = 0; v.kind != TV_ERROR && i < v.list->n && trun_step(r, 1); i++) {
        tvalue key = tf_key(r, v.list->items[i], attribute, keep, NULL);
        int order = 0;
        if (key.kind == TV_ERROR || (i && !tv_compare(r, key, best_key, &order, 0))) return tv_error();
        if (i && (how == HN_TPL_LEAST ? order >= 0 : order <= 0)) continue;
        best = v.list->items[i];
        best_key = key;
    }
    return v.kind == TV_ERROR || r->status ? tv_error() : best;
}

tvalue tf_sum(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *attribute = targs_get(a, 0, "attribute"), *start = targs_get(a, 1, "start");
    tvalue total = start ? *start : tv_int(0);
    (void)how;
    if (total.kind == TV_STRING) return trun_fail(r, "sum does not join strings");
    v = tv_iterate(r, v);
    for (size_t i = 0; v.kind != TV_ERROR && total.kind != TV_ERROR && i < v.list->n && trun_step(r, 1); i++) {
        tvalue item = v.list->items[i];
        if (attribute && attribute->kind != TV_NONE) item = tf_path(r, item, *attribute, NULL);
        total = item.kind == TV_ERROR ? item : tv_add(r, total, item);
    }
    return v.kind == TV_ERROR || r->status ? tv_error() : total;
}

tvalue tf_unique(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 0, "case_sensitive"), *attribute = targs_get(a, 1, "attribute");
    tvalue *keys, *out, list, folded;
    size_t n = 0;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    folded = tv_list(r, TV_LIST, v.list->n, &keys);
    list = folded.kind == TV_ERROR ? folded : tv_list(r, TV_GENERATOR, v.list->n, &out);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue key = tf_key(r, v.list->items[i], attribute, keep, NULL);
        if (key.kind == TV_ERROR) return key;
        bool seen = !tv_need_hash(r, key);
        for (size_t k = 0; k < n && !seen && !r->status; k++) seen = tv_equal(r, keys[k], key, 0);
        if (seen) continue;
        keys[n] = key;
        out[n++] = v.list->items[i];
    }
    if (list.kind != TV_ERROR) ((tlist *)list.list)->n = n;
    return !r->status ? list : tv_error();
}

/* ---- select, reject, selectattr, rejectattr, map ---- */

static targs rest_of(const targs *a, size_t from) {
    targs rest = {.values = a->values + (from < a->n ? from : a->n),
                  .n = from < a->n ? a->n - from : 0,
                  .named = a->named,
                  .n_named = a->n_named};
    return rest;
}

tvalue tf_select(trun *r, tvalue v, const targs *a, int how) {
    size_t place = (how & HN_TPL_BY_ATTRIBUTE) != 0, n = 0;
    tvalue *out, list;
    if (a->n < place) return trun_fail(r, "selectattr and rejectattr take an attribute");
    if (a->n > place && a->values[place].kind != TV_STRING) return trun_fail(r, "a test is named by a string");
    targs rest = rest_of(a, place + 1);
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    list = tv_list(r, TV_GENERATOR, v.list->n, &out);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        tvalue item = v.list->items[i];
        if (place) item = tf_path(r, item, a->values[0], NULL);
        if (item.kind != TV_ERROR)
            item = a->n > place ? ttest_apply(r, a->values[place].str, item, &rest) : tv_bool(tv_truth(item));
        if (item.kind == TV_ERROR) return item;
        if (item.b != ((how & HN_TPL_REJECT) != 0)) out[n++] = v.list->items[i];
    }
    if (list.kind != TV_ERROR) ((tlist *)list.list)->n = n;
    return list;
}

tvalue tf_map(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *attribute = targs_get(a, SIZE_MAX, "attribute"), *none = targs_get(a, SIZE_MAX, "default");
    tvalue *out, list;
    (void)how;
    if (!a->n && attribute && !targs_fit(r, "map", "attribute default?", a)) return tv_error();
    if (a->n) attribute = NULL; /* an argument of the filter */
    if (!attribute && (!a->n || a->values[0].kind != TV_STRING))
        return trun_fail(r, "map takes a filter's name or attribute=");
    targs rest = rest_of(a, 1);
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    list = tv_list(r, TV_GENERATOR, v.list->n, &out);
    for (size_t i = 0; list.kind != TV_ERROR && i < v.list->n; i++) {
        out[i] = attribute ? tf_path(r, v.list->items[i], *attribute, none)
                           : tfilter_apply(r, a->values[0].str, v.list->items[i], &rest);
        if (out[i].kind == TV_ERROR) return out[i];
    }
    return list;
}
