/* SPDX-License-Identifier: Apache-2.0 */
/* template_text_methods.c - the methods of Python's str: a row and a function each. Their table is at the end; how they are found and
 * called: template_methods.c. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/template_private.h"

enum { LEFT = 1, RIGHT = 2 };

/* ---- ends ---- */

static tvalue strip(trun *r, tvalue self, const targs *a, int how) {
    tstr chars, s = self.str;
    bool given;
    if (!targs_string(r, a, 0, NULL, &chars, &given)) return tv_error();
    s = ts_strip(r, s, given ? &chars : NULL, how & LEFT, how & RIGHT);
    return tv_str(s.s, s.n);
}

static bool has_end(tstr s, tstr end, int side) {
    return end.n <= s.n && ts_same((tstr){side == LEFT ? s.s : s.s + s.n - end.n, end.n}, end);
}

static tvalue remove_end(trun *r, tvalue self, const targs *a, int side) {
    tstr end, s = self.str;
    if (!targs_string(r, a, 0, NULL, &end, NULL)) return tv_error();
    if (!has_end(s, end, side)) return self;
    return tv_str(side == LEFT ? s.s + end.n : s.s, s.n - end.n);
}

/* ---- searches ---- */

/* The part of a string from the index in the argument `place` to that in the next one, as Python counts them, and how many characters are
 * before it. *part.s is NULL if the part ends before it begins: not even an empty string is there. False: an error. */
static bool part_of(trun *r, tstr s, const targs *a, size_t place, tstr *part, int64_t *before) {
    int64_t n = (int64_t)ts_length(s), bound[2] = {0, n};
    *part = s;
    *before = 0;
    if (a->n <= place) return true;
    for (size_t i = 0; i < 2; i++) {
        const tvalue *v = targs_get(a, place + i, NULL);
        if (v && v->kind != TV_NONE && !targs_integer(r, a, place + i, NULL, 0, &bound[i])) return false;
        if (bound[i] < 0) bound[i] = bound[i] < -n ? 0 : bound[i] + n;
    }
    if (bound[1] > n) bound[1] = n;
    const size_t from = ts_offset(s, (size_t)bound[0]), to = ts_offset(s, (size_t)bound[1]);
    *part = bound[0] <= bound[1] ? (tstr){s.s + from, to - from} : (tstr){NULL, 0};
    *before = bound[0];
    return trun_text(r, s.n);
}

/* startswith and endswith, of a string or any of a tuple. */
static tvalue ends_with(trun *r, tvalue self, const targs *a, int side) {
    tstr part;
    int64_t before;
    tvalue v = a->values[0];
    const tlist one = {.items = &v, .n = 1}, *ends = v.kind == TV_TUPLE ? v.list : &one;
    if (!part_of(r, self.str, a, 1, &part, &before)) return tv_error();
    for (size_t i = 0; i < ends->n && trun_value(r, ends->items[i]); i++) {
        if (ends->items[i].kind != TV_STRING)
            return trun_fail(r, "%s takes a string or a tuple of strings", side == LEFT ? "startswith" : "endswith");
        if (part.s && has_end(part, ends->items[i].str, side)) return tv_bool(true);
    }
    return !r->status ? tv_bool(false) : tv_error();
}

static tvalue count(trun *r, tvalue self, const targs *a, int how) {
    tstr part, needle;
    int64_t before, n = 0;
    (void)how;
    if (!targs_string(r, a, 0, NULL, &needle, NULL) || !part_of(r, self.str, a, 1, &part, &before)) return tv_error();
    if (!part.s) return tv_int(0);
    if (needle.n == 0) return tv_int((int64_t)ts_length(part) + 1);
    for (const char *found; (found = ts_find(part, needle)) && trun_step(r, 1); n++) {
        const char *next = found + needle.n;
        part = (tstr){next, (size_t)(part.s + part.n - next)};
    }
    return !r->status ? tv_int(n) : tv_error();
}

enum { NEEDED = 4 }; /* beside LEFT or RIGHT: index and rindex, which fail where find says -1 */

static tvalue find(trun *r, tvalue self, const targs *a, int how) {
    tstr part, needle;
    int64_t before;
    if (!targs_string(r, a, 0, NULL, &needle, NULL) || !part_of(r, self.str, a, 1, &part, &before)) return tv_error();
    const char *found = !part.s ? NULL : how & LEFT ? ts_find(part, needle) : ts_find_last(r, part, needle);
    if (!found && how & NEEDED) return trun_fail(r, "substring not found");
    if (r->status) return tv_error();
    return tv_int(found ? before + (int64_t)ts_length((tstr){part.s, (size_t)(found - part.s)}) : -1);
}

/* ---- pieces ---- */

static tvalue replace(trun *r, tvalue self, const targs *a, int how) {
    tstr from, to;
    int64_t most;
    (void)how;
    if (!targs_string(r, a, 0, NULL, &from, NULL) || !targs_string(r, a, 1, NULL, &to, NULL) ||
        !targs_integer(r, a, 2, "count", -1, &most))
        return tv_error();
    return ts_replace(r, self.str, from, to, most);
}

static tvalue split(trun *r, tvalue self, const targs *a, int how) {
    tstr separator;
    bool given;
    int64_t most;
    if (!targs_string(r, a, 0, "sep", &separator, &given) || !targs_integer(r, a, 1, "maxsplit", -1, &most))
        return tv_error();
    if (given && separator.n == 0) return trun_fail(r, "split by an empty string");
    return ts_split(r, self.str, given ? &separator : NULL, most, how == RIGHT);
}

static tvalue partition(trun *r, tvalue self, const targs *a, int how) {
    tstr separator, s = self.str;
    tvalue *items, v = tv_list(r, TV_TUPLE, 3, &items);
    if (v.kind == TV_ERROR || !targs_string(r, a, 0, NULL, &separator, NULL)) return tv_error();
    if (separator.n == 0) return trun_fail(r, "partition by an empty string");
    const char *found = how == LEFT ? ts_find(s, separator) : ts_find_last(r, s, separator);
    items[0] = items[1] = items[2] = tv_text("");
    items[how == LEFT || found ? 0 : 2] = tv_str(s.s, found ? (size_t)(found - s.s) : s.n);
    if (found) {
        items[1] = tv_str(found, separator.n);
        items[2] = tv_str(found + separator.n, (size_t)(s.s + s.n - found) - separator.n);
    }
    return !r->status ? v : tv_error();
}

static tvalue split_lines(trun *r, tvalue self, const targs *a, int how) {
    const tvalue *keep = targs_get(a, 0, "keepends");
    size_t n = 0, end;
    tstr line, s = self.str;
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

static tvalue join(trun *r, tvalue self, const targs *a, int how) {
    tbuf b = {.arena = &r->arena};
    (void)how;
    tvalue list = tv_iterate(r, a->values[0]);
    for (size_t i = 0; list.kind != TV_ERROR && i < list.list->n; i++) {
        tvalue v = list.list->items[i];
        if (v.kind != TV_STRING) return trun_fail(r, "join takes strings, not %s", tv_type_name(v));
        if (i) tbuf_put(&b, self.str.s, self.str.n);
        tbuf_put(&b, v.str.s, v.str.n);
    }
    return tv_buffer(r, &b);
}

/* ---- widths ---- */

static tvalue justify(trun *r, tvalue self, const targs *a,
                      int how) { /* how: the side that the text is at; both: the middle */
    int64_t width;
    tstr fill = {" ", 1};
    tbuf b = {.arena = &r->arena};
    if (!targs_integer(r, a, 0, NULL, 0, &width) || (a->n > 1 && !targs_string(r, a, 1, NULL, &fill, NULL)))
        return tv_error();
    if (ts_length(fill) != 1) return trun_fail(r, "the fill character must be exactly one character");
    const int64_t n = (int64_t)ts_length(self.str), missing = width > n ? width - n : 0;
    const int64_t before = how == LEFT ? 0 : how == RIGHT ? missing : missing / 2 + (missing & width & 1);
    tbuf_fill(&b, fill, before);
    tbuf_put(&b, self.str.s, self.str.n);
    tbuf_fill(&b, fill, missing - before);
    return tv_buffer(r, &b);
}

static tvalue zero_fill(trun *r, tvalue self, const targs *a, int how) {
    int64_t width;
    tstr s = self.str;
    tbuf b = {.arena = &r->arena};
    (void)how;
    if (!targs_integer(r, a, 0, NULL, 0, &width)) return tv_error();
    const size_t sign = s.n && (*s.s == '-' || *s.s == '+');
    const int64_t n = (int64_t)ts_length(s);
    tbuf_put(&b, s.s, sign);
    tbuf_fill(&b, (tstr){"0", 1}, width > n ? width - n : 0);
    tbuf_put(&b, s.s + sign, s.n - sign);
    return tv_buffer(r, &b);
}

static tvalue expand_tabs(trun *r, tvalue self, const targs *a, int how) {
    int64_t size, column = 0;
    tstr s = self.str;
    tbuf b = {.arena = &r->arena};
    uint32_t cp;
    (void)how;
    if (!targs_integer(r, a, 0, "tabsize", 8, &size)) return tv_error();
    for (size_t i = 0, step; i < s.n && !b.failed && trun_step(r, 1); i += step) {
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        if (cp != '\t') {
            tbuf_put(&b, s.s + i, step);
            column = cp == '\n' || cp == '\r' ? 0 : column + 1;
        } else if (size > 0) {
            const int64_t blanks = size - column % size;
            tbuf_fill(&b, (tstr){" ", 1}, blanks);
            column = blanks > HN_TPL_MAX_OUTPUT ? 0 : column + blanks; /* too long, then */
        }
    }
    return tv_buffer(r, &b);
}

/* ---- characters ---- */

static tvalue change_case(trun *r, tvalue self, const targs *a, int how) {
    (void)a;
    return ts_change_case(r, self.str, (char)how);
}

static tvalue is_case(trun *r, tvalue self, const targs *a, int how) {
    (void)a;
    return trun_text(r, 4 * self.str.n) ? tv_bool(ts_is_case(self.str, (char)how)) : tv_error();
}

static tvalue is_all(trun *r, tvalue self, const targs *a, int how) {
    tstr s = self.str;
    uint32_t cp;
    (void)a;
    if (!trun_text(r, 4 * s.n)) return tv_error();
    for (size_t i = 0, step; i < s.n; i += step) {
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        if (!tchar_is(cp, how == TCHAR_NAME_START && i ? TCHAR_NAME_PART : (tchar_class)how)) return tv_bool(false);
    }
    return tv_bool(s.n > 0 || how == TCHAR_ASCII || how == TCHAR_PRINTABLE);
}

/* What a table for translate has for a character, by its number. False: nothing, it stays. */
static bool look_up(trun *r, tvalue table, uint32_t cp, tvalue *out) {
    if (table.kind == TV_DICT) {
        const tvalue *found = tv_dict_get(r, table.dict, tv_int(cp));
        if (found) *out = *found;
        return found != NULL;
    }
    *out = tsubscript(r, table, tv_int(cp));
    return out->kind != TV_UNDEFINED && out->kind != TV_ERROR;
}

static tvalue translate(trun *r, tvalue self, const targs *a, int how) {
    tvalue table = a->values[0], to;
    tstr s = self.str;
    tbuf b = {.arena = &r->arena};
    char utf8[4];
    uint32_t cp;
    (void)how;
    if (table.kind != TV_DICT && table.kind != TV_LIST && table.kind != TV_TUPLE && table.kind != TV_STRING)
        return trun_fail(r, "translate takes a dict, not %s", tv_type_name(table));
    for (size_t i = 0, step; i < s.n && !b.failed && trun_step(r, 1); i += step) {
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        if (!look_up(r, table, cp, &to)) {
            tbuf_put(&b, s.s + i, step);
        } else if (to.kind == TV_STRING) {
            tbuf_put(&b, to.str.s, to.str.n);
        } else if (to.kind == TV_INT || to.kind == TV_BOOL) {
            const int64_t code = tv_integer(to);
            const int n = code >= 0 && code < 0x110000 ? hn_utf8_encode((uint32_t)code, utf8) : 0;
            if (n == 0) return trun_fail(r, "translate: %lld is no character", (long long)code);
            tbuf_put(&b, utf8, (size_t)n);
        } else if (to.kind != TV_NONE) {
            return trun_fail(r, "translate puts a string, an integer or none, not %s", tv_type_name(to));
        }
    }
    return tv_buffer(r, &b);
}

/* Takes the first character of a text. False: there is none. */
static bool take_character(tstr *s, uint32_t *cp) {
    if (s->n == 0) return false;
    const size_t step = (size_t)hn_utf8_decode(s->s, s->n, cp);
    *s = (tstr){s->s + step, s->n - step};
    return true;
}

/* A table of one dict: its keys, characters or their numbers, become numbers. */
static tvalue table_of_dict(trun *r, tvalue from) {
    tvalue v = tv_dict(r, 4);
    if (from.kind != TV_DICT)
        return trun_fail(r, "maketrans takes a dict, if only one argument, not %s", tv_type_name(from));
    for (size_t i = 0; v.kind != TV_ERROR && i < from.dict->n; i++) {
        tvalue key = from.dict->entries[i].key;
        uint32_t cp;
        if (key.kind == TV_STRING) {
            tstr s = key.str;
            if (!take_character(&s, &cp) || s.n) return trun_fail(r, "maketrans: a key must be one character");
            key = tv_int(cp);
        } else if (key.kind != TV_INT && key.kind != TV_BOOL) {
            return trun_fail(r, "maketrans: a key is a character or an integer, not %s", tv_type_name(key));
        }
        if (!tv_dict_put(r, v.dict, key, from.dict->entries[i].value)) return tv_error();
    }
    return v;
}

static tvalue make_table(trun *r, tvalue self, const targs *a, int how) {
    tstr from, to, gone = {"", 0};
    uint32_t cp, other;
    (void)self;
    (void)how;
    if (a->n == 1) return table_of_dict(r, a->values[0]);
    if (!targs_string(r, a, 0, NULL, &from, NULL) || !targs_string(r, a, 1, NULL, &to, NULL) ||
        (a->n > 2 && !targs_string(r, a, 2, NULL, &gone, NULL)))
        return tv_error();
    if (ts_length(from) != ts_length(to)) return trun_fail(r, "maketrans takes two strings of the same length");
    tvalue v = tv_dict(r, 4);
    while (v.kind != TV_ERROR && take_character(&from, &cp) && take_character(&to, &other)) {
        if (!tv_dict_put(r, v.dict, tv_int(cp), tv_int(other))) return tv_error();
    }
    while (v.kind != TV_ERROR && take_character(&gone, &cp)) {
        if (!tv_dict_put(r, v.dict, tv_int(cp), tv_none())) return tv_error();
    }
    return v;
}

/* ---- format ---- */

static tvalue format(trun *r, tvalue self, const targs *a, int how) {
    (void)how;
    return tformat_fields(r, self.str, a);
}

static tvalue format_map(trun *r, tvalue self, const targs *a, int how) {
    const tvalue map = a->values[0];
    (void)how;
    if (map.kind != TV_DICT) return trun_fail(r, "format_map takes a dict, not %s", tv_type_name(map));
    targs named = {.named = ta_alloc(&r->arena, map.dict->n * sizeof *named.named)};
    if (!named.named) return trun_fail_memory(r);
    for (size_t i = 0; i < map.dict->n; i++) {
        const tentry *e = &map.dict->entries[i];
        if (e->key.kind == TV_STRING) named.named[named.n_named++] = (struct tnamed){e->key.str, e->value};
    }
    return tformat_fields(r, self.str, &named);
}

static const tmethod_row rows[] = {
    {"strip", strip, LEFT | RIGHT, "/chars?"},
    {"lstrip", strip, LEFT, "/chars?"},
    {"rstrip", strip, RIGHT, "/chars?"},
    {"upper", change_case, 'u', ""},
    {"lower", change_case, 'l', ""},
    {"title", change_case, 't', ""},
    {"capitalize", change_case, 'c', ""},
    {"swapcase", change_case, 's', ""},
    {"casefold", change_case, 'f', ""},
    {"startswith", ends_with, LEFT, "/prefix /start? /end?"},
    {"endswith", ends_with, RIGHT, "/suffix /start? /end?"},
    {"removeprefix", remove_end, LEFT, "/prefix"},
    {"removesuffix", remove_end, RIGHT, "/suffix"},
    {"replace", replace, 0, "/old /new count?"},
    {"split", split, LEFT, "sep? maxsplit?"},
    {"rsplit", split, RIGHT, "sep? maxsplit?"},
    {"splitlines", split_lines, 0, "keepends?"},
    {"partition", partition, LEFT, "/separator"},
    {"rpartition", partition, RIGHT, "/separator"},
    {"find", find, LEFT, "/text /start? /end?"},
    {"rfind", find, RIGHT, "/text /start? /end?"},
    {"index", find, LEFT | NEEDED, "/text /start? /end?"},
    {"rindex", find, RIGHT | NEEDED, "/text /start? /end?"},
    {"count", count, 0, "/text /start? /end?"},
    {"join", join, 0, "/items"},
    {"ljust", justify, LEFT, "/width /fill?"},
    {"rjust", justify, RIGHT, "/width /fill?"},
    {"center", justify, LEFT | RIGHT, "/width /fill?"},
    {"zfill", zero_fill, 0, "/width"},
    {"expandtabs", expand_tabs, 0, "tabsize?"},
    {"isalpha", is_all, TCHAR_LETTER, ""},
    {"isdecimal", is_all, TCHAR_DECIMAL, ""},
    {"isdigit", is_all, TCHAR_DIGIT, ""},
    {"isnumeric", is_all, TCHAR_NUMBER, ""},
    {"isalnum", is_all, TCHAR_LETTER_OR_NUMBER, ""},
    {"isspace", is_all, TCHAR_SPACE, ""},
    {"isascii", is_all, TCHAR_ASCII, ""},
    {"isprintable", is_all, TCHAR_PRINTABLE, ""},
    {"isidentifier", is_all, TCHAR_NAME_START, ""},
    {"isupper", is_case, 'u', ""},
    {"islower", is_case, 'l', ""},
    {"istitle", is_case, 't', ""},
    {"translate", translate, 0, "/table"},
    {"maketrans", make_table, 0, "/from /to? /gone?"},
    {"format", format, 0, "* **"},
    {"format_map", format_map, 0, "/mapping"},
    {"encode", NULL, 0, ""},
};

const tmethods ttext_methods = {rows, sizeof rows / sizeof *rows};
