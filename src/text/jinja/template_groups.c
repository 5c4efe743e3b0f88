/* SPDX-License-Identifier: Apache-2.0 */
/* template_groups.c - Jinja's filters that make lists of lists: batch, slice, groupby. */
#include <string.h>

#include "text/jinja/template_private.h"

/* A list of n of a list's elements, from one on, with `fill` behind them until it has `whole`. */
static tvalue part(trun *r, const tlist *of, size_t from, size_t n, size_t whole, const tvalue *fill) {
    if (!fill || fill->kind == TV_NONE || whole < n) whole = n;
    tvalue *items, v = trun_step(r, whole) ? tv_list(r, TV_LIST, whole, &items) : tv_error();
    if (v.kind == TV_ERROR) return v;
    if (n) memcpy(items, of->items + from, n * sizeof *items);
    for (size_t i = n; i < whole; i++) items[i] = *fill;
    return v;
}

static bool add(trun *r, tlist *to, tvalue v) {
    if (v.kind != TV_ERROR) to->items[to->n++] = v;
    return !r->status;
}

tvalue tf_batch(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *fill = targs_get(a, 1, "fill_with");
    int64_t size;
    tvalue *items, out;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR || !targs_integer(r, a, 0, "linecount", 0, &size)) return tv_error();
    const size_t all = v.list->n;
    out = tv_list(r, TV_GENERATOR, all + 1, &items);
    if (out.kind == TV_ERROR) return out;
    tlist *list = (tlist *)(uintptr_t)out.list;
    list->n = 0;
    if (size == 0 && all && !add(r, list, part(r, v.list, 0, 0, 0, NULL)))
        return tv_error(); /* Jinja's, before all others in one */
    const size_t each = size > 0 && (uint64_t)size < all ? (size_t)size : all;
    for (size_t from = 0; from < all; from += each) {
        const size_t n = all - from < each ? all - from : each;
        if (!add(r, list, part(r, v.list, from, n, from + n == all && size > 0 ? (size_t)size : n, fill)))
            return tv_error();
    }
    return out;
}

tvalue tf_slice(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *fill = targs_get(a, 1, "fill_with");
    int64_t slices;
    tvalue *items, out;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR || !targs_integer(r, a, 0, "slices", 0, &slices)) return tv_error();
    if (slices == 0) return trun_fail(r, "division by zero");
    const size_t n = slices > 0 ? (size_t)slices : 0;
    out = trun_step(r, n) ? tv_list(r, TV_GENERATOR, n, &items) : tv_error();
    for (size_t i = 0, from = 0, each; i < n && out.kind != TV_ERROR; i++, from += each) {
        const bool longer = i < v.list->n % n;
        each = v.list->n / n + longer;
        items[i] = part(r, v.list, from, each, each + !longer, fill);
        if (items[i].kind == TV_ERROR) return items[i];
    }
    return out;
}

/* The elements of a sorted list whose keys are the same as that of the first, as a pair with what they are grouped by. */
static tvalue group(trun *r, const tlist *sorted, size_t from, size_t n, tvalue by) {
    static const char *const names[] = {"grouper", "list"};
    tvalue *items, v = tv_list(r, TV_TUPLE, 2, &items);
    if (v.kind == TV_ERROR) return v;
    ((tlist *)(uintptr_t)v.list)->names = names;
    items[0] = by;
    items[1] = part(r, sorted, from, n, n, NULL);
    return items[1].kind == TV_ERROR ? items[1] : v;
}

/* The keys of a list's elements, as a list. */
static tvalue keys_of(trun *r, const tlist *of, const targs *a, const tvalue *keep_case) {
    const tvalue *attribute = targs_get(a, 0, "attribute"), *otherwise = targs_get(a, 1, "default");
    tvalue *keys, v = tv_list(r, TV_LIST, of->n, &keys);
    for (size_t i = 0; v.kind != TV_ERROR && i < of->n; i++) {
        keys[i] = tf_key(r, of->items[i], attribute, keep_case, otherwise);
        if (keys[i].kind == TV_ERROR) return keys[i];
    }
    return v;
}

tvalue tf_groupby(trun *r, tvalue v, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 2, "case_sensitive"), yes = tv_bool(true);
    tvalue *groups, keys, given, out;
    (void)how;
    v = tv_iterate(r, v);
    if (v.kind == TV_ERROR) return v;
    keys = keys_of(r, v.list, a, keep);
    if (keys.kind != TV_ERROR) v = tf_sort_by(r, v, keys.list->items, false);
    if (keys.kind == TV_ERROR || v.kind == TV_ERROR) return tv_error();
    keys = keys_of(r, v.list, a, keep); /* of the sorted ones */
    given = keys_of(r, v.list, a, &yes);
    out = tv_list(r, TV_LIST, v.list->n, &groups);
    if (r->status) return tv_error();
    size_t n = 0;
    for (size_t from = 0, to; from < v.list->n && !r->status; from = to) {
        for (to = from + 1; to < v.list->n && tv_equal(r, keys.list->items[from], keys.list->items[to], 0);) to++;
        groups[n++] = group(r, v.list, from, to - from, given.list->items[from]);
    }
    ((tlist *)(uintptr_t)out.list)->n = n;
    return !r->status ? out : tv_error();
}
