/* SPDX-License-Identifier: Apache-2.0 */
/* json_load.c - see json_load.h. */
#include "base/json_load.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/mem.h"
#include "base/shortest.h"
#include "base/utf8.h"

/* The largest real documents (tokenizers of 260,000 tokens and 500,000 merges) need half of it. */
static const size_t MAX_BYTES = (size_t)640 << 20;

/* Bytes that the parser allocates at most for the value that a character begins: an array and its table, an object and its
 * buckets, an element, a key, a string. Measured with jansson 2.14 and glibc; other builds differ by little. */
static const unsigned short COST[256] = {['['] = 128, ['{'] = 224, [','] = 56, [':'] = 112, ['"'] = 80};

static size_t bytes_estimate(const char *text, size_t size) {
    size_t bytes = size; /* of all strings together */
    bool inside = false; /* of a string */
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (!inside) bytes += COST[c];
        if (c == '"')
            inside = !inside;
        else if (c == '\\' && inside)
            i++;
    }
    return bytes;
}

/* malloc may set ENOMEM and still succeed (glibc, if the heap cannot grow in place). If as much memory as the document needs
 * can be allocated once more, no allocation failed. */
static bool has_room(const char *text, size_t size) {
    void *again = hn_alloc(bytes_estimate(text, size));
    const bool has = again != NULL;
    hn_free(again);
    return has;
}

static json_t *no_memory(json_error_t *where) {
    where->text[JSON_ERROR_TEXT_LENGTH - 1] = (char)json_error_out_of_memory; /* read by json_error_code */
    return NULL;
}

static json_t *load(const char *text, size_t size, size_t flags, json_error_t *where) {
    errno = 0;
    json_t *out = json_loadb(text, size, flags, where);
    if (errno != ENOMEM || has_room(text, size)) return out;
    json_decref(out); /* bytes of a key, a string or a number may be missing */
    return no_memory(where);
}

/* ---- large numbers ---- */

/* The key, and before the digits: jansson (2.14) does not look whether a key can be written. */
static const char MARK[] = "\xFF";

json_t *hn_json_big(const char *digits, size_t n) {
    char *marked = hn_alloc(n + sizeof MARK);
    json_t *big = marked ? json_object() : NULL;
    if (big) {
        memcpy(marked, MARK, 1);
        memcpy(marked + 1, digits, n);
        if (json_object_set_new_nocheck(big, MARK, json_stringn_nocheck(marked, n + 1)) != 0) {
            json_decref(big);
            big = NULL;
        }
    }
    hn_free(marked);
    return big;
}

const char *hn_json_digits(const json_t *value) {
    const char *marked = json_object_size(value) == 1 ? json_string_value(json_object_get(value, MARK)) : NULL;
    return marked ? marked + 1 : NULL;
}

bool hn_json_is_whole(const char *digits) {
    return strpbrk(digits, ".eE") == NULL;
}

bool hn_json_is_object(const json_t *value) {
    return json_is_object(value) && !hn_json_digits(value);
}

bool hn_json_is_number(const json_t *value) {
    return json_is_number(value) || hn_json_digits(value);
}

static double real_of(const char *digits) {
    const locale_t before = hn_c_locale_begin();
    const double v = strtod(digits, NULL);
    hn_c_locale_end(before);
    return v;
}

double hn_json_number_value(const json_t *value) {
    const char *digits = hn_json_digits(value);
    return digits ? real_of(digits) : json_number_value(value);
}

const char *hn_json_show(const json_t *value, char *out, size_t size) {
    char *text = hn_json_dump(value, JSON_ENCODE_ANY);
    const int n = snprintf(out, size, "%s", text ? text : "");
    if (n >= 0 && (size_t)n >= size && size > 4) { /* not within a character */
        out[size - 4] = '\0';
        strcpy(out + hn_utf8_check(out, size - 4), "...");
    }
    hn_free(text);
    return out;
}

/* A number of the text that the parser must not see: one that it cannot hold, or one that looks like the place of such a one. */
typedef struct place {
    size_t at, n;
    bool big;
    json_int_t value; /* unless it is big */
} place;

/* The places, in the order of the text: place i is a whole number there, FIRST_PLACE + i. */
typedef struct places {
    place *item;
    size_t n, cap;
} places;

enum {
    PLACE_DIGITS = 19,
    PLACE_COST = 640 /* bytes at most of a place and of the number that it becomes, beside its digits */
};
static const json_int_t FIRST_PLACE = INT64_MAX - UINT32_MAX;

static size_t digits_at(const char *text, size_t size) {
    size_t n = 0;
    while (n < size && text[n] >= '0' && text[n] <= '9') n++;
    return n;
}

/* The bytes of the number of JSON that begins there; 0: none does, or it goes on as no number may. */
static size_t number_at(const char *text, size_t size, bool *whole) {
    size_t n = size > 0 && text[0] == '-', more = digits_at(text + n, size - n);
    *whole = true;
    if (more == 0 || (text[n] == '0' && more > 1)) return 0;
    n += more;
    if (n < size && text[n] == '.') {
        *whole = false;
        more = digits_at(text + n + 1, size - n - 1);
        if (more == 0) return 0;
        n += 1 + more;
    }
    if (n < size && (text[n] == 'e' || text[n] == 'E')) {
        *whole = false;
        n++;
        n += n < size && (text[n] == '+' || text[n] == '-');
        more = digits_at(text + n, size - n);
        if (more == 0) return 0;
        n += more;
    }
    return n < size && memchr(".eE+-", text[n], 5) ? 0 : n;
}

/* Whether 64 bits hold the whole number. */
static bool int_of(const char *text, size_t n, json_int_t *out) {
    const bool minus = text[0] == '-';
    *out = 0;
    for (size_t i = minus; i < n; i++) {
        const json_int_t digit = text[i] - '0';
        if (__builtin_mul_overflow(*out, (json_int_t)10, out) ||
            __builtin_add_overflow(*out, minus ? -digit : digit, out))
            return false;
    }
    return true;
}

/* In the C locale. False: no memory. */
static bool place_add(places *p, const char *text, size_t at, size_t n, bool whole) {
    place one = {.at = at, .n = n};
    if (whole) {
        one.big = !int_of(text + at, n, &one.value);
        if (!one.big && one.value < FIRST_PLACE) return true;
    } else {
        char room[64], *copy = n < sizeof room ? room : hn_alloc(n + 1);
        if (!copy) return false;
        memcpy(copy, text + at, n);
        copy[n] = '\0';
        one.big = isinf(strtod(copy, NULL));
        if (copy != room) hn_free(copy);
        if (!one.big) return true;
    }
    if (!hn_grow((void **)&p->item, &p->cap, p->n + 1, sizeof *p->item)) return false;
    p->item[p->n++] = one;
    return true;
}

static bool places_find(places *p, const char *text, size_t size) {
    bool inside = false, whole; /* of a string */
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (c == '"')
            inside = !inside;
        else if (c == '\\' && inside)
            i++;
        else if (!inside && (c == '-' || (c >= '0' && c <= '9'))) {
            const size_t n = number_at(text + i, size - i, &whole);
            if (n == 0) /* the parser says what is wrong with it */
                return true;
            if (p->n == UINT32_MAX || !place_add(p, text, i, n, whole)) return false;
            i += n - 1;
        }
    }
    return true;
}

/* The text with whole numbers at its places. NULL: no memory. */
static char *places_written(const places *p, const char *text, size_t size, size_t *n) {
    char *out = hn_alloc(size + p->n * PLACE_DIGITS + 1), *to = out;
    size_t from = 0;
    for (size_t i = 0; out && i < p->n; i++) {
        const size_t before = p->item[i].at - from;
        memcpy(to, text + from, before);
        to += before;
        to += snprintf(to, PLACE_DIGITS + 1, "%lld", (long long)(FIRST_PLACE + (json_int_t)i));
        from = p->item[i].at + p->item[i].n;
    }
    if (!out) return NULL;
    memcpy(to, text + from, size - from);
    *n = (size_t)(to - out) + size - from;
    return out;
}

/* What a value of the parser becomes, which belongs to the call: itself, or the number of its place. NULL: no memory. */
static json_t *restored(json_t *value, const places *p, const char *text) {
    const json_int_t number = json_integer_value(value); /* 0 of other values */
    if (number >= FIRST_PLACE && (size_t)(number - FIRST_PLACE) < p->n) {
        const place *one = &p->item[number - FIRST_PLACE];
        json_decref(value);
        return one->big ? hn_json_big(text + one->at, one->n) : json_integer(one->value);
    }
    bool ok = true;
    for (size_t i = 0; ok && json_is_array(value) && i < json_array_size(value); i++) {
        json_t *made = restored(json_incref(json_array_get(value, i)), p, text);
        ok = made && json_array_set_new(value, i, made) == 0;
    }
    for (void *i = json_is_object(value) ? json_object_iter(value) : NULL; ok && i;
         i = json_object_iter_next(value, i)) {
        json_t *made = restored(json_incref(json_object_iter_value(i)), p, text);
        ok = made && json_object_iter_set_new(value, i, made) == 0;
    }
    if (ok) return value;
    json_decref(value);
    return NULL;
}

static json_t *too_much(size_t bytes, size_t most, json_error_t *where) {
    snprintf(where->text, sizeof where->text, "it would take %zu MiB of memory; expected at most %zu", bytes >> 20,
             most >> 20);
    return NULL;
}

/* *bytes: an estimate of what the document takes, to which its large numbers are added. */
static json_t *load_big(const char *text, size_t size, size_t flags, size_t *bytes, size_t most, json_error_t *where) {
    places p = {0};
    size_t n;
    json_t *out = NULL;
    const locale_t before = hn_c_locale_begin();
    const bool found = places_find(&p, text, size);
    hn_c_locale_end(before);
    *bytes += p.n * PLACE_COST;
    char *written = found && *bytes <= most ? places_written(&p, text, size, &n) : NULL;
    if (written)
        out = load(written, n, flags, where);
    else if (found && *bytes > most)
        too_much(*bytes, most, where);
    else
        no_memory(where);
    if (out && !(out = restored(out, &p, text))) no_memory(where);
    hn_free(written);
    hn_free(p.item);
    return out;
}

static json_t *load_within(const char *text, size_t size, size_t flags, size_t *bytes, size_t most,
                           json_error_t *where) {
    json_t *out = load(text, size, flags, where);
    const bool big = !out && json_error_code(where) == json_error_numeric_overflow;
    return big ? load_big(text, size, flags, bytes, most, where) : out;
}

json_t *hn_json_load(const char *text, size_t size, size_t flags, json_error_t *where) {
    json_error_t own;
    size_t bytes = 0;
    return load_within(text, size, flags, &bytes, SIZE_MAX, where ? where : &own);
}

json_t *hn_json_parse(const char *text, size_t size, size_t *held, json_error_t *where) {
    *where = (json_error_t){.line = 1};
    const size_t most = MAX_BYTES - *held;
    size_t bytes = bytes_estimate(text, size);
    json_t *out = bytes > most ? too_much(bytes, most, where)
                               : load_within(text, size, JSON_REJECT_DUPLICATES, &bytes, most, where);
    if (out != NULL) *held += bytes;
    return out;
}

/* ---- writing ---- */

typedef struct writer {
    char *at;
    size_t n, cap, flags;
    bool failed;
} writer;

static void put(writer *w, const char *text, size_t n) {
    w->failed = w->failed || !hn_grow((void **)&w->at, &w->cap, w->n + n + 1, 1);
    if (w->failed) return;
    memcpy(w->at + w->n, text, n);
    w->n += n;
    w->at[w->n] = '\0';
}

/* What jansson writes, which is written again only if there was no room. */
static void put_theirs(writer *w, const json_t *value, size_t flags) {
    enum { GUESS = 500 };
    size_t n = GUESS, room = 0;
    for (; !w->failed && n > room; n = w->failed ? 0 : json_dumpb(value, w->at + w->n, room, flags)) {
        w->failed = !hn_grow((void **)&w->at, &w->cap, w->n + n + 1, 1);
        room = w->cap - w->n - 1;
    }
    w->failed = w->failed || n == 0;
    if (w->failed) return;
    w->n += n;
    w->at[w->n] = '\0';
}

enum { DIGITS = 15 /* that every double keeps */ };

static bool has_precision(size_t flags) {
    return flags & JSON_REAL_PRECISION(31);
}

/* As few digits as are read as the same number: of 0.1 jansson alone writes 0.10000000000000001. In the C locale. */
static size_t digits_of(double v) {
    char text[HN_SHORTEST_TEXT];
    return (size_t)hn_shortest(v, DIGITS, text);
}

static void put_plain(writer *w, const json_t *value) {
    size_t flags = w->flags;
    if (json_is_real(value) && !has_precision(flags)) flags |= JSON_REAL_PRECISION(digits_of(json_real_value(value)));
    put_theirs(w, value, flags);
}

static void put_line(writer *w, int depth) {
    const int indent = (int)(w->flags & 0x1F);
    if (indent) put(w, "\n", 1);
    for (int i = 0; i < depth * indent; i++) put(w, " ", 1);
}

/* Before element i of a list or an object. */
static void put_between(writer *w, size_t i, int depth) {
    const bool close = w->flags & (JSON_COMPACT | 0x1F);
    if (i) put(w, ", ", close ? 1 : 2);
    put_line(w, depth);
}

static void put_value(writer *w, const json_t *value, int depth);

static void put_object(writer *w, json_t *value, int depth) {
    size_t i = 0;
    const char *key;
    json_t *one;
    put(w, "{", 1);
    json_object_foreach(value, key, one) {
        json_t *name = json_string(key);
        put_between(w, i++, depth + 1);
        put_plain(w, name); /* fails if there is no memory for it */
        put(w, ": ", w->flags & JSON_COMPACT ? 1 : 2);
        put_value(w, one, depth + 1);
        json_decref(name);
    }
    put_line(w, depth);
    put(w, "}", 1);
}

static void put_array(writer *w, json_t *value, int depth) {
    size_t i;
    json_t *one;
    put(w, "[", 1);
    json_array_foreach(value, i, one) {
        put_between(w, i, depth + 1);
        put_value(w, one, depth + 1);
    }
    put_line(w, depth);
    put(w, "]", 1);
}

static void put_value(writer *w, const json_t *value, int depth) {
    const char *digits = hn_json_digits(value);
    json_t *list = (json_t *)(uintptr_t)value; /* jansson iterates over a json_t * only, and changes nothing */
    if (w->failed) return;
    if (digits)
        put(w, digits, strlen(digits));
    else if (json_object_size(value) > 0)
        put_object(w, list, depth);
    else if (json_array_size(value) > 0)
        put_array(w, list, depth);
    else
        put_plain(w, value);
}

/* Whether jansson would write a part of it otherwise: large numbers not at all, and reals that need more digits than others. */
static bool is_own(const json_t *value, size_t flags) {
    json_t *list = (json_t *)(uintptr_t)value, *one; /* as in put_value */
    const char *key;
    size_t i;
    if (json_is_real(value)) return !has_precision(flags) && digits_of(json_real_value(value)) > DIGITS;
    if (hn_json_digits(value)) return true;
    json_array_foreach(list, i, one) if (is_own(one, flags)) return true;
    json_object_foreach(list, key, one) if (is_own(one, flags)) return true;
    return false;
}

/* Writes to a buffer of known size: json_dumps, too, drops bytes if its buffer cannot grow. */
char *hn_json_dump(const json_t *json, size_t flags) {
    writer w = {.flags = flags};
    const locale_t before = hn_c_locale_begin();
    if (is_own(json, flags)) {
        w.flags |= JSON_ENCODE_ANY; /* of parts */
        put_value(&w, json, 0);
    } else {
        put_theirs(&w, json, has_precision(flags) ? flags : flags | JSON_REAL_PRECISION(DIGITS));
    }
    hn_c_locale_end(before);
    if (!w.failed) return w.at;
    hn_free(w.at);
    return NULL;
}
