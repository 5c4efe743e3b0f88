/* SPDX-License-Identifier: Apache-2.0 */
/* template_methods.c - the methods of Python's str, dict, list and tuple that templates call, and the global functions
 * that Hugging Face provides. Methods that would change a value are refused, as in its immutable sandbox; but a list's append and pop work,
 * which templates of Kimi K2 need for calls of tools. */
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "text/characters.h"
#include "text/jinja/template_private.h"

const tvalue *targs_get(const targs *a, size_t place, const char *name) {
    if (place < a->n) return &a->values[place];
    for (size_t i = 0; name && i < a->n_named; i++) {
        if (ts_equal(a->named[i].name, name)) return &a->named[i].value;
    }
    return NULL;
}

bool targs_check(trun *r, const targs *a, const char *what, size_t min, size_t max) {
    size_t n = a->n + a->n_named;
    if (n >= min && n <= max) return true;
    trun_fail(r, "%s takes %zu to %zu arguments, not %zu", what, min, max, n);
    return false;
}

/* ---- str ---- */

typedef tvalue string_method(trun *r, tstr s, const targs *a, int how);

/* The argument as a string; false, with an error, if it is given and not a string. */
static bool string_argument(trun *r, const targs *a, size_t place, const char *name, tstr *out, bool *given) {
    const tvalue *v = targs_get(a, place, name);
    *given = v && v->kind != TV_NONE;
    if (!*given) return true;
    if (v->kind != TV_STRING) return trun_fail(r, "expected a string, not %s", tv_type_name(*v)), false;
    *out = v->str;
    return true;
}

static bool integer_argument(trun *r, const targs *a, size_t place, const char *name, int64_t otherwise, int64_t *out) {
    const tvalue *v = targs_get(a, place, name);
    *out = otherwise;
    if (!v) return true;
    if (v->kind != TV_INT && v->kind != TV_BOOL)
        return trun_fail(r, "expected an integer, not %s", tv_type_name(*v)), false;
    *out = tv_integer(*v);
    return true;
}

enum { LEFT = 1, RIGHT = 2 };

static tvalue strip(trun *r, tstr s, const targs *a, int how) {
    tstr chars;
    bool given;
    if (!string_argument(r, a, 0, NULL, &chars, &given)) return tv_error();
    s = ts_strip(r, s, given ? &chars : NULL, how & LEFT, how & RIGHT);
    return tv_str(s.s, s.n);
}

static tvalue change_case(trun *r, tstr s, const targs *a, int how) {
    (void)a;
    return ts_change_case(r, s, (char)how);
}

/* startswith and endswith, of a string or any of a tuple. */
static bool has_end(tstr s, tstr end, int side) {
    return end.n <= s.n && ts_same((tstr){side == LEFT ? s.s : s.s + s.n - end.n, end.n}, end);
}

static tvalue ends_with(trun *r, tstr s, const targs *a, int side) {
    if (!targs_check(r, a, side == LEFT ? "startswith" : "endswith", 1, 1)) return tv_error();
    tvalue v = a->n ? a->values[0] : tv_none();
    if (v.kind == TV_STRING) return tv_bool(has_end(s, v.str, side));
    if (v.kind != TV_TUPLE) return trun_fail(r, "startswith and endswith take a string or a tuple of strings");
    for (size_t i = 0; i < v.list->n && trun_value(r, v.list->items[i]); i++) {
        if (v.list->items[i].kind == TV_STRING && has_end(s, v.list->items[i].str, side)) return tv_bool(true);
    }
    return !r->status ? tv_bool(false) : tv_error();
}

static tvalue remove_end(trun *r, tstr s, const targs *a, int side) {
    tstr end;
    bool given;
    if (!string_argument(r, a, 0, NULL, &end, &given)) return tv_error();
    if (!given || !has_end(s, end, side)) return tv_str(s.s, s.n);
    return tv_str(side == LEFT ? s.s + end.n : s.s, s.n - end.n);
}

static tvalue replace(trun *r, tstr s, const targs *a, int how) {
    tstr from, to;
    bool b1, b2;
    int64_t count;
    (void)how;
    if (!string_argument(r, a, 0, NULL, &from, &b1) || !string_argument(r, a, 1, NULL, &to, &b2)) return tv_error();
    if (!b1 || !b2) return trun_fail(r, "replace takes two strings");
    return integer_argument(r, a, 2, "count", -1, &count) ? ts_replace(r, s, from, to, count) : tv_error();
}

static tvalue split(trun *r, tstr s, const targs *a, int how) {
    tstr separator;
    bool given;
    int64_t most;
    if (!string_argument(r, a, 0, "sep", &separator, &given) || !integer_argument(r, a, 1, "maxsplit", -1, &most))
        return tv_error();
    if (given && separator.n == 0) return trun_fail(r, "split by an empty string");
    return ts_split(r, s, given ? &separator : NULL, most, how == RIGHT);
}

static tvalue split_lines(trun *r, tstr s, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 0, "keepends");
    size_t n = 0, end;
    tstr line;
    tvalue *items, v;
    (void)how;
    for (tstr rest = s; rest.n && trun_step(r, 1); n++) ts_take_line(&rest, &line);
    v = tv_list(r, TV_LIST, n, &items);
    for (size_t i = 0; v.kind != TV_ERROR && i < n; i++) {
        end = ts_take_line(&s, &line);
        items[i] = tv_str(line.s, line.n + (keep && tv_truth(*keep) ? end : 0));
    }
    return !r->status ? v : tv_error();
}

static tvalue find(trun *r, tstr s, const targs *a, int how) {
    tstr needle;
    bool given;
    if (!string_argument(r, a, 0, NULL, &needle, &given)) return tv_error();
    if (!given || !targs_check(r, a, "find", 1, 1)) return trun_fail(r, "find takes one string");
    const char *found = ts_find(s, needle);
    if (how == 'c') { /* count */
        int64_t n = 0;
        if (needle.n == 0) return tv_int((int64_t)ts_length(s) + 1);
        for (; found && trun_step(r, 1); n++)
            found = ts_find((tstr){found + needle.n, (size_t)(s.s + s.n - found) - needle.n}, needle);
        return !r->status ? tv_int(n) : tv_error();
    }
    if (!found && how == 'i') return trun_fail(r, "substring not found");
    return tv_int(found ? (int64_t)ts_length((tstr){s.s, (size_t)(found - s.s)}) : -1);
}

static tvalue join(trun *r, tstr s, const targs *a, int how) {
    tbuf b = {.arena = &r->arena};
    (void)how;
    if (!targs_check(r, a, "join", 1, 1) || !a->n) return trun_fail(r, "join takes one list");
    tvalue list = tv_iterate(r, a->values[0]);
    for (size_t i = 0; list.kind != TV_ERROR && i < list.list->n; i++) {
        tvalue v = list.list->items[i];
        if (v.kind != TV_STRING) return trun_fail(r, "join takes strings, not %s", tv_type_name(v));
        if (i) tbuf_put(&b, s.s, s.n);
        tbuf_put(&b, v.str.s, v.str.n);
    }
    return tv_buffer(r, &b);
}

/* Digits beyond the decimal ones: superscripts, subscripts, circled. */
static bool is_other_digit(uint32_t cp) {
    return cp == 0xB2 || cp == 0xB3 || cp == 0xB9 || cp == 0x2070 || (cp >= 0x2074 && cp <= 0x2079) ||
           (cp >= 0x2080 && cp <= 0x2089) || (cp >= 0x2460 && cp <= 0x2468);
}

static tvalue is_all(trun *r, tstr s, const targs *a, int how) {
    uint32_t cp;
    (void)r;
    (void)a;
    for (size_t i = 0; i < s.n;) {
        i += (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        bool good = how == 'd'   ? hn_char_is_digit(cp) || is_other_digit(cp)
                    : how == 'a' ? hn_char_is_letter(cp)
                    : how == 'n' ? hn_char_is_letter(cp) || hn_char_is_number(cp)
                                 : ts_is_space(cp);
        if (!good) return tv_bool(false);
    }
    return tv_bool(s.n > 0);
}

static tvalue is_case(trun *r, tstr s, const targs *a, int how) {
    (void)a;
    tvalue same = ts_change_case(r, s, (char)how), other = ts_change_case(r, s, how == 'u' ? 'l' : 'u');
    if (r->status) return tv_error();
    return tv_bool(ts_same(same.str, s) && !ts_same(other.str, s)); /* some letter has a case, and all cased letters have this one */
}

static const struct {
    const char *name;
    string_method *call;
    int how;
} string_methods[] = {
    {"strip", strip, LEFT | RIGHT},
    {"lstrip", strip, LEFT},
    {"rstrip", strip, RIGHT},
    {"upper", change_case, 'u'},
    {"lower", change_case, 'l'},
    {"title", change_case, 't'},
    {"capitalize", change_case, 'c'},
    {"startswith", ends_with, LEFT},
    {"endswith", ends_with, RIGHT},
    {"removeprefix", remove_end, LEFT},
    {"removesuffix", remove_end, RIGHT},
    {"replace", replace, 0},
    {"split", split, LEFT},
    {"rsplit", split, RIGHT},
    {"splitlines", split_lines, 0},
    {"find", find, 'f'},
    {"index", find, 'i'},
    {"count", find, 'c'},
    {"join", join, 0},
    {"isdigit", is_all, 'd'},
    {"isalpha", is_all, 'a'},
    {"isalnum", is_all, 'n'},
    {"isspace", is_all, 's'},
    {"isupper", is_case, 'u'},
    {"islower", is_case, 'l'},
};

/* ---- dict and list ---- */

static const char *const dict_methods[] = {"get", "items", "keys", "values", "copy"};
static const char *const list_methods[] = {"index", "count"}; /* of tuples, too */
static const char *const list_works[] = {"append", "pop"};
/* They exist, and are refused when called. */
static const char *const dict_changes[] = {"pop", "popitem", "update", "clear", "setdefault"};
static const char *const list_changes[] = {"extend", "insert", "remove", "clear", "reverse", "sort"};

static bool is_one_of(tstr name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (ts_equal(name, names[i])) return true;
    }
    return false;
}
#define IS_ONE_OF(name, names) is_one_of(name, names, sizeof(names) / sizeof *(names))

bool tmethod_known(tvalue self, tstr name) {
    if (self.kind == TV_DICT) return IS_ONE_OF(name, dict_methods) || IS_ONE_OF(name, dict_changes);
    if (self.kind == TV_TUPLE) return IS_ONE_OF(name, list_methods);
    if (self.kind == TV_LIST)
        return IS_ONE_OF(name, list_methods) || IS_ONE_OF(name, list_works) || IS_ONE_OF(name, list_changes) || ts_equal(name, "copy");
    for (size_t i = 0; self.kind == TV_STRING && i < sizeof string_methods / sizeof *string_methods; i++) {
        if (ts_equal(name, string_methods[i].name)) return true;
    }
    return false;
}

static tvalue dict_call(trun *r, const tdict *d, tstr name, const targs *a) {
    if (ts_equal(name, "get")) {
        if (!targs_check(r, a, "get", 1, 2) || !a->n) return trun_fail(r, "get takes a key");
        if (!tv_need_hash(r, a->values[0])) return tv_error();
        const tvalue *found = tv_dict_get(r, d, a->values[0]), *otherwise = targs_get(a, 1, "default");
        return found ? *found : otherwise ? *otherwise : tv_none();
    }
    char which = name.s[0];
    if (which == 'c') return (tvalue){.kind = TV_DICT, .dict = (tdict *)(uintptr_t)d}; /* copy: nothing changes either */
    tvalue *items, *pair, v = tv_list(r, TV_LIST, d->n, &items);
    for (size_t i = 0; i < d->n && v.kind != TV_ERROR; i++) {
        items[i] = which == 'k' ? d->entries[i].key : d->entries[i].value;
        if (which != 'i') continue;
        items[i] = tv_list(r, TV_TUPLE, 2, &pair);
        if (items[i].kind == TV_ERROR) return items[i];
        pair[0] = d->entries[i].key;
        pair[1] = d->entries[i].value;
    }
    return trun_step(r, d->n) ? v : tv_error();
}

static tvalue list_copy(trun *r, const tlist *list) {
    tvalue *items, v = tv_list(r, TV_LIST, list->n, &items);
    if (v.kind != TV_ERROR && list->n) memcpy(items, list->items, list->n * sizeof *items);
    return trun_step(r, list->n) ? v : tv_error();
}

/* Items move to a place of twice the room; the old ones stay, for who iterates over them. */
static tvalue list_append(trun *r, tlist *list, const targs *a) {
    if (!targs_check(r, a, "append", 1, 1) || !a->n) return trun_fail(r, "append takes a value");
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

static tvalue list_pop(trun *r, tlist *list, const targs *a) {
    int64_t at;
    if (!targs_check(r, a, "pop", 0, 1) || !integer_argument(r, a, 0, NULL, -1, &at)) return tv_error();
    if (at < 0) at += (int64_t)list->n;
    if (at < 0 || at >= (int64_t)list->n) return trun_fail(r, "pop from a list that has no such item");
    const tvalue v = list->items[at];
    list->n--;
    memmove(list->items + at, list->items + at + 1, (list->n - (size_t)at) * sizeof v);
    return trun_step(r, list->n - (size_t)at) ? v : tv_error();
}

static tvalue list_call(trun *r, const tlist *list, tstr name, const targs *a) {
    if (ts_equal(name, "copy")) return list_copy(r, list);
    if (ts_equal(name, "append")) return list_append(r, (tlist *)(uintptr_t)list, a);
    if (ts_equal(name, "pop")) return list_pop(r, (tlist *)(uintptr_t)list, a);
    if (!a->n) return trun_fail(r, "index and count take a value");
    int64_t n = 0;
    bool index = ts_equal(name, "index");
    for (size_t i = 0; i < list->n; i++) {
        bool same = tv_equal(r, list->items[i], a->values[0], 0);
        if (same && index) return tv_int((int64_t)i);
        n += same;
    }
    return index ? trun_fail(r, "the value is not in the list") : tv_int(n);
}

tvalue tmethod_call(trun *r, const tmethod *m, const targs *args) {
    tvalue self = m->self;
    if (!trun_value(r, self) || (args->n && !trun_value(r, args->values[0]))) return tv_error();
    if (self.kind == TV_STRING) {
        for (size_t i = 0; i < sizeof string_methods / sizeof *string_methods; i++) {
            if (ts_equal(m->name, string_methods[i].name))
                return string_methods[i].call(r, self.str, args, string_methods[i].how);
        }
    }
    if ((self.kind == TV_DICT && IS_ONE_OF(m->name, dict_changes)) ||
        (self.kind == TV_LIST && IS_ONE_OF(m->name, list_changes))) {
        return trun_fail(r, "access to attribute '%.*s' of '%s' object is unsafe", (int)m->name.n, m->name.s,
                         tv_type_name(self));
    }
    return self.kind == TV_DICT ? dict_call(r, self.dict, m->name, args) : list_call(r, self.list, m->name, args);
}

/* ---- functions ---- */

static tvalue raise(trun *r, const targs *a) {
    if (!targs_check(r, a, "raise_exception", 1, 1)) return tv_error();
    const tvalue *v = targs_get(a, 0, "message");
    tvalue text = v ? tv_to_string(r, *v) : tv_text("");
    if (text.kind == TV_ERROR) return text;
    return trun_fail(r, "%.*s", text.str.n < 500 ? (int)text.str.n : 500, text.str.s);
}

static bool read_now(trun *r, struct tm *out) {
    if (!r->now) {
        time_t now = time(NULL);
        return localtime_r(&now, out) != NULL;
    }
    memset(out, 0, sizeof *out);
    const char *end = strptime(r->now, "%Y-%m-%d %H:%M:%S", out);
    if (!end || *end) return trun_fail(r, "the time is \"%.40s\", expected YYYY-MM-DD HH:MM:SS", r->now), false;
    out->tm_isdst = -1;
    struct tm copy = *out;
    mktime(&copy); /* the weekday, and the day of the year */
    out->tm_wday = copy.tm_wday;
    out->tm_yday = copy.tm_yday;
    return true;
}

static tvalue format_time(trun *r, const targs *a) {
    struct tm now;
    char format[256], text[1024];
    if (!targs_check(r, a, "strftime_now", 1, 1) || !a->n || a->values[0].kind != TV_STRING ||
        a->values[0].str.n + 2 > sizeof format) {
        return trun_fail(r, "strftime_now takes a format of at most %zu bytes", sizeof format - 2);
    }
    if (!read_now(r, &now)) return trun_fail(r, "no time");
    tstr f = a->values[0].str;
    memcpy(format, f.s, f.n);
    memcpy(format + f.n, " ", 2); /* so that an empty result differs from one that does not fit */
    size_t n = strftime(text, sizeof text, format, &now);
    if (n == 0) return trun_fail(r, "strftime_now: the format's result is longer than %zu bytes", sizeof text);
    tbuf b = {.arena = &r->arena};
    tbuf_put(&b, text, n - 1);
    return hn_utf8_check(text, n) == n ? tv_buffer(r, &b) : trun_fail(r, "strftime_now: the result is not UTF-8");
}

static tvalue range(trun *r, const targs *a) {
    int64_t bound[3] = {0, 0, 1};
    if (!targs_check(r, a, "range", 1, 3) || a->n_named) return trun_fail(r, "range takes one to three integers");
    for (size_t i = 0; i < a->n; i++) {
        if (!integer_argument(r, a, i, NULL, 0, &bound[i + (a->n == 1)])) return tv_error();
    }
    int64_t from = bound[0], to = bound[1], step = bound[2];
    if (step == 0) return trun_fail(r, "range with a step of 0");
    double span = step > 0 ? (double)to - (double)from : (double)from - (double)to,
           stride = step > 0 ? (double)step : -(double)step;
    if (span / stride > HN_TPL_MAX_RANGE) return trun_fail(r, "range of more than %d elements", HN_TPL_MAX_RANGE);
    /* Unsigned: the distance of two 64-bit integers may need 64 bits itself. */
    uint64_t distance = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
    size_t n = span > 0 ? (size_t)((distance - 1) / (step > 0 ? (uint64_t)step : 0 - (uint64_t)step)) + 1 : 0;
    tvalue *items, v = tv_list(r, TV_LIST, n, &items);
    for (size_t i = 0; i < n && v.kind != TV_ERROR; i++)
        items[i] = tv_int((int64_t)((uint64_t)from + i * (uint64_t)step));
    return trun_step(r, n) ? v : tv_error();
}

/* namespace(...) and dict(...): names to values, on top of a dict. */
static tvalue named_values(trun *r, const targs *a, bool space) {
    tvalue v = space ? tv_namespace(r) : tv_dict(r, a->n_named);
    if (v.kind == TV_ERROR || !targs_check(r, a, "dict", 0, 64)) return tv_error();
    for (size_t i = 0; i < a->n; i++) {
        tvalue from = a->values[i];
        if (from.kind != TV_DICT) return trun_fail(r, "expected a dict, not %s", tv_type_name(from));
        for (size_t k = 0; k < from.dict->n; k++) {
            if (!tv_dict_put(r, v.dict, from.dict->entries[k].key, from.dict->entries[k].value)) return tv_error();
        }
    }
    for (size_t i = 0; i < a->n_named; i++) {
        if (!tv_dict_put(r, v.dict, tv_str(a->named[i].name.s, a->named[i].name.n), a->named[i].value))
            return tv_error();
    }
    return v;
}

int tfunction_find(tstr name) {
    static const char *const names[] = {"raise_exception", "strftime_now", "range", "namespace", "dict"};
    for (int i = 0; i < TF_COUNT; i++) {
        if (ts_equal(name, names[i])) return i;
    }
    return -1;
}

tvalue tfunction_call(trun *r, int function, const targs *args) {
    switch (function) {
    case TF_RAISE: return raise(r, args);
    case TF_STRFTIME: return format_time(r, args);
    case TF_RANGE: return range(r, args);
    default: return named_values(r, args, function == TF_NAMESPACE);
    }
}
