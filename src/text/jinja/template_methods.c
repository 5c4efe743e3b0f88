/* SPDX-License-Identifier: Apache-2.0 */
/* template_methods.c - the methods of dicts, lists, tuples, numbers and of loop, and how methods are found and called; those of str:
 * template_text_methods.c. Methods that would change a value are refused, as in Hugging Face's immutable sandbox; but a list's append
 * and pop work, which templates of Kimi K2 need for calls of tools. */
#include <math.h>
#include <string.h>

#include "text/jinja/template_run.h"

enum { NOT_HERE, UNSAFE }; /* of rows without a call */

/* ---- dict ---- */

static tvalue dict_get(trun *r, tvalue self, const targs *a, int how) {
    (void)how;
    if (!tv_need_hash(r, a->values[0])) return tv_error();
    const tvalue *found = tv_dict_get(r, self.dict, a->values[0]);
    return r->status ? tv_error() : found ? *found : a->n > 1 ? a->values[1] : tv_none();
}

static tvalue dict_copy(trun *r, tvalue self, const targs *a, int how) { /* nothing changes either */
    (void)r;
    (void)a;
    (void)how;
    return self;
}

tvalue tv_dict_part(trun *r, tvalue dict, const targs *none, int how) {
    static const char *const kinds[] = {"dict_keys", "dict_values", "dict_items"};
    const tdict *d = dict.dict;
    tvalue *items, *pair, v = tv_list(r, TV_VIEW, d->n, &items);
    (void)none;
    if (v.kind != TV_ERROR) ((tlist *)(uintptr_t)v.list)->names = kinds + (how == 'v' ? 1 : how == 'i' ? 2 : 0);
    for (size_t i = 0; i < d->n && v.kind != TV_ERROR; i++) {
        items[i] = how == 'k' ? d->entries[i].key : d->entries[i].value;
        if (how != 'i') continue;
        items[i] = tv_list(r, TV_TUPLE, 2, &pair);
        if (items[i].kind == TV_ERROR) return items[i];
        pair[0] = d->entries[i].key;
        pair[1] = d->entries[i].value;
    }
    return trun_step(r, d->n) ? v : tv_error();
}

static tvalue dict_of_keys(trun *r, tvalue self, const targs *a, int how) {
    tvalue keys = tv_iterate(r, a->values[0]), v = tv_dict(r, 4);
    (void)self;
    (void)how;
    for (size_t i = 0; keys.kind != TV_ERROR && v.kind != TV_ERROR && i < keys.list->n; i++) {
        if (!tv_dict_put(r, v.dict, keys.list->items[i], a->n > 1 ? a->values[1] : tv_none())) return tv_error();
    }
    return keys.kind == TV_ERROR ? keys : v;
}

static const tmethod_row dict_rows[] = {
    {"get", dict_get, 0, "/key /default?"},
    {"items", tv_dict_part, 'i', ""},
    {"keys", tv_dict_part, 'k', ""},
    {"values", tv_dict_part, 'v', ""},
    {"copy", dict_copy, 0, ""},
    {"fromkeys", dict_of_keys, 0, "/keys /value?"},
    {"pop", NULL, UNSAFE, ""},
    {"popitem", NULL, UNSAFE, ""},
    {"update", NULL, UNSAFE, ""},
    {"clear", NULL, UNSAFE, ""},
    {"setdefault", NULL, UNSAFE, ""},
};

/* ---- list and tuple ---- */

static tvalue list_copy(trun *r, tvalue self, const targs *a, int how) {
    tvalue *items, v = tv_list(r, TV_LIST, self.list->n, &items);
    (void)a;
    (void)how;
    if (v.kind != TV_ERROR && self.list->n) memcpy(items, self.list->items, self.list->n * sizeof *items);
    return trun_step(r, self.list->n) ? v : tv_error();
}

/* Items move to a place of twice the room; the old ones stay, for who iterates over them. */
static tvalue list_append(trun *r, tvalue self, const targs *a, int how) {
    tlist *list = (tlist *)(uintptr_t)self.list;
    (void)how;
    if (list->n >= list->cap) {
        const size_t cap = list->n < 4 ? 8 : list->n * 2;
        tvalue *items = ta_alloc(&r->arena, cap * sizeof *items);
        if (!items) return trun_fail_memory(r);
        if (list->n) memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = a->values[0];
    return tv_none();
}

static tvalue list_pop(trun *r, tvalue self, const targs *a, int how) {
    tlist *list = (tlist *)(uintptr_t)self.list;
    int64_t at;
    (void)how;
    if (!targs_integer(r, a, 0, NULL, -1, &at)) return tv_error();
    if (at < 0) at += (int64_t)list->n;
    if (at < 0 || at >= (int64_t)list->n) return trun_fail(r, "pop from a list that has no such item");
    const tvalue v = list->items[at];
    list->n--;
    memmove(list->items + at, list->items + at + 1, (list->n - (size_t)at) * sizeof v);
    return trun_step(r, list->n - (size_t)at) ? v : tv_error();
}

static tvalue list_search(trun *r, tvalue self, const targs *a, int how) { /* 'i'ndex or 'c'ount */
    const tlist *list = self.list;
    int64_t n = 0, bound[2] = {0, (int64_t)list->n};
    for (size_t i = 0; i < 2; i++) {
        if (!targs_integer(r, a, 1 + i, NULL, bound[i], &bound[i])) return tv_error();
        if (bound[i] < 0) bound[i] += (int64_t)list->n;
    }
    for (int64_t i = bound[0] < 0 ? 0 : bound[0]; i < bound[1] && i < (int64_t)list->n; i++) {
        const bool same = tv_equal(r, list->items[i], a->values[0], 0);
        if (same && how == 'i') return tv_int(i);
        n += same;
    }
    return how == 'i' ? trun_fail(r, "the value is not in the list") : !r->status ? tv_int(n) : tv_error();
}

#define SEARCHES                                                                                                       \
    {"index", list_search, 'i', "/value /start? /end?"}, {                                                             \
        "count", list_search, 'c', "/value"                                                                            \
    }
static const tmethod_row tuple_rows[] = {SEARCHES};
static const tmethod_row list_rows[] = {
    SEARCHES,
    {"copy", list_copy, 0, ""},
    {"append", list_append, 0, "/value"},
    {"pop", list_pop, 0, "/index?"},
    {"extend", NULL, UNSAFE, ""},
    {"insert", NULL, UNSAFE, ""},
    {"remove", NULL, UNSAFE, ""},
    {"clear", NULL, UNSAFE, ""},
    {"reverse", NULL, UNSAFE, ""},
    {"sort", NULL, UNSAFE, ""},
};

/* ---- numbers ---- */

static tvalue is_whole(trun *r, tvalue self, const targs *a, int how) {
    (void)r;
    (void)a;
    (void)how;
    return tv_bool(isfinite(self.f) && self.f == floor(self.f));
}

static tvalue bits(trun *r, tvalue self, const targs *a, int how) { /* 'l'ength or 'c'ount */
    const int64_t i = tv_integer(self);
    const uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    (void)r;
    (void)a;
    return tv_int(how == 'c' ? __builtin_popcountll(size) : size ? 64 - __builtin_clzll(size) : 0);
}

static tvalue conjugate(trun *r, tvalue self, const targs *a, int how) {
    (void)r;
    (void)a;
    (void)how;
    return self.kind == TV_BOOL ? tv_int(self.b) : self;
}

static const tmethod_row int_rows[] = {
    {"bit_length", bits, 'l', ""},    {"bit_count", bits, 'c', ""},
    {"conjugate", conjugate, 0, ""},  {"as_integer_ratio", NULL, NOT_HERE, ""},
    {"to_bytes", NULL, NOT_HERE, ""}, {"from_bytes", NULL, NOT_HERE, ""},
};
static const tmethod_row float_rows[] = {
    {"is_integer", is_whole, 0, ""},          {"conjugate", conjugate, 0, ""}, {"hex", NULL, NOT_HERE, ""},
    {"as_integer_ratio", NULL, NOT_HERE, ""}, {"fromhex", NULL, NOT_HERE, ""},
};

/* ---- loop ---- */

static tvalue loop_cycle(trun *r, tvalue self, const targs *a, int how) {
    (void)how;
    if (a->n == 0) return trun_fail(r, "no items for cycling given");
    return a->values[self.loop->index % a->n];
}

static tvalue loop_changed(trun *r, tvalue self, const targs *a, int how) {
    tvalue *items, now = tv_list(r, TV_TUPLE, a->n, &items), *before = &self.loop->changed;
    (void)how;
    if (now.kind == TV_ERROR) return now;
    if (a->n) memcpy(items, a->values, a->n * sizeof *items);
    const bool same = before->kind == TV_TUPLE && tv_equal(r, *before, now, 0);
    if (!same) *before = now;
    return !r->status ? tv_bool(!same) : tv_error();
}

static const tmethod_row loop_rows[] = {{"cycle", loop_cycle, 0, "*"}, {"changed", loop_changed, 0, "*"}};

/* ---- all of them ---- */

#define METHODS(rows)                                                                                                  \
    { rows, sizeof(rows) / sizeof *(rows) }

const tmethod_row *tmethod_find(tvalue self, tstr name) {
    static const tmethods by_kind[] = {
        [TV_DICT] = METHODS(dict_rows), [TV_LIST] = METHODS(list_rows), [TV_TUPLE] = METHODS(tuple_rows),
        [TV_INT] = METHODS(int_rows),   [TV_BOOL] = METHODS(int_rows),  [TV_FLOAT] = METHODS(float_rows),
        [TV_LOOP] = METHODS(loop_rows),
    };
    const size_t kinds = sizeof by_kind / sizeof *by_kind;
    const tmethods none = {NULL, 0}, of = self.kind == TV_STRING ? ttext_methods
                                          : self.kind < kinds    ? by_kind[self.kind]
                                                                 : none;
    for (size_t i = 0; i < of.n; i++) {
        if (ts_equal(name, of.rows[i].name)) return &of.rows[i];
    }
    return NULL;
}

tvalue tmethod_call(trun *r, const tmethod *m, const targs *args) {
    const tmethod_row *row = m->row;
    const char *type = tv_type_name(m->self);
    if (!row->call && row->how == UNSAFE)
        return trun_fail(r, "access to attribute '%s' of '%s' object is unsafe", row->name, type);
    if (!row->call) return trun_fail(r, "the method \"%s\" of %s is not supported", row->name, type);
    if (!trun_value(r, m->self) || (args->n && !trun_value(r, args->values[0])) ||
        !targs_fit(r, row->name, row->signature, args))
        return tv_error();
    return row->call(r, m->self, args, row->how);
}
