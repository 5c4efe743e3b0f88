/* SPDX-License-Identifier: Apache-2.0 */
/* template_functions.c - the global functions of templates: Jinja's own, and those that Hugging Face provides. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "text/jinja/template_private.h"

static tvalue raise(trun *r, const targs *a) {
    tstr text;
    if (!targs_text(r, a, 0, "message", &text)) return tv_error();
    return trun_fail(r, "%.*s", text.n < 500 ? (int)text.n : 500, text.s);
}

/* ---- strftime_now ---- */

static bool read_now(trun *r, struct tm *out, long *micros) {
    struct timespec now;
    *micros = 0;
    if (!r->now) {
        if (clock_gettime(CLOCK_REALTIME, &now) || !localtime_r(&now.tv_sec, out))
            return trun_fail(r, "no time"), false;
        *micros = now.tv_nsec / 1000;
        return true;
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

/* Writes a format for the C library: without what only Python's has (%f), and what is empty for a time without a zone (%z, %Z, %:z).
 * False: it does not fit. */
static bool to_c_format(tstr f, long micros, char *out, size_t room) {
    size_t n = 0;
    for (size_t i = 0; i < f.n; i++) {
        const char next = f.s[i] == '%' && i + 1 < f.n ? f.s[i + 1] : 0;
        const bool zone = next == 'z' || next == 'Z' || (next == ':' && i + 2 < f.n && f.s[i + 2] == 'z');
        if (n + 8 > room) return false;
        if (next == 'f') {
            n += (size_t)snprintf(out + n, room - n, "%06ld", micros);
        } else if (!zone) {
            out[n++] = f.s[i];
            if (f.s[i] == '%') out[n++] = next ? next : '%'; /* a last one stands for itself */
        }
        i += !next ? 0 : next == ':' && zone ? 2 : 1;
    }
    memcpy(out + n, " ", 2); /* so that an empty result differs from one that does not fit */
    return true;
}

static tvalue format_time(trun *r, const targs *a) {
    struct tm now;
    long micros;
    char format[256], text[1024];
    tstr f;
    if (!targs_string(r, a, 0, "format", &f, NULL) || !read_now(r, &now, &micros)) return tv_error();
    if (memchr(f.s, 0, f.n)) return trun_fail(r, "strftime_now: the format has a NUL");
    if (!to_c_format(f, micros, format, sizeof format))
        return trun_fail(r, "strftime_now takes a format of at most %zu bytes", sizeof format - 8);
    size_t n = strftime(text, sizeof text, format, &now);
    if (n == 0) return trun_fail(r, "strftime_now: the format's result is longer than %zu bytes", sizeof text);
    tbuf b = {.arena = &r->arena};
    tbuf_put(&b, text, n - 1);
    return hn_utf8_check(text, n) == n ? tv_buffer(r, &b) : trun_fail(r, "strftime_now: the result is not UTF-8");
}

/* ---- range, namespace, dict ---- */

static tvalue range(trun *r, const targs *a) {
    int64_t bound[3] = {0, 0, 1};
    for (size_t i = 0; i < a->n; i++) {
        if (!targs_integer(r, a, i, NULL, 0, &bound[i + (a->n == 1)])) return tv_error();
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

/* Adds what dict() is made of: a dict, or a list of pairs. */
static bool add_pairs(trun *r, tdict *to, tvalue from) {
    const tvalue pairs = from.kind == TV_DICT ? tv_dict_part(r, from, NULL, 'i') : tv_iterate(r, from);
    for (size_t i = 0; pairs.kind != TV_ERROR && i < pairs.list->n; i++) {
        const tvalue pair = tv_iterate(r, pairs.list->items[i]);
        if (pair.kind == TV_ERROR) return false;
        if (pair.list->n != 2) return trun_fail(r, "a dict is made of pairs, not of %zu values", pair.list->n), false;
        if (!tv_dict_put(r, to, pair.list->items[0], pair.list->items[1])) return false;
    }
    return pairs.kind != TV_ERROR;
}

/* namespace(...) and dict(...): names to values, on top of a dict. */
static tvalue named_values(trun *r, const targs *a, bool space) {
    tvalue v = space ? tv_namespace(r) : tv_dict(r, a->n_named);
    if (v.kind == TV_ERROR || (a->n && !add_pairs(r, v.dict, a->values[0]))) return tv_error();
    for (size_t i = 0; i < a->n_named; i++) {
        if (!tv_dict_put(r, v.dict, tv_str(a->named[i].name.s, a->named[i].name.n), a->named[i].value))
            return tv_error();
    }
    return v;
}

/* ---- all of them ---- */

enum { RAISE, STRFTIME, RANGE, NAMESPACE, DICT, MISSING };
static const struct {
    const char *name;
    int function;
    const char *signature;
} functions[] = {
    {"raise_exception", RAISE, "message"},
    {"strftime_now", STRFTIME, "format"},
    {"range", RANGE, "/start /stop? /step?"},
    {"namespace", NAMESPACE, "/from? **"},
    {"dict", DICT, "/from? **"},
    {"cycler", MISSING, ""},
    {"joiner", MISSING, ""},
    {"lipsum", MISSING, ""},
};

tfound tfunction_find(tstr name, int *function) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!ts_equal(name, functions[i].name)) continue;
        *function = (int)i;
        return functions[i].function == MISSING ? TFOUND_MISSING : TFOUND_HERE;
    }
    return TFOUND_NOT;
}

tstr tfunction_name(int function) {
    return (tstr){functions[function].name, strlen(functions[function].name)};
}

tvalue tfunction_call(trun *r, int function, const targs *args) {
    const char *name = functions[function].name;
    if (functions[function].function == MISSING) return trun_fail(r, "the function \"%s\" is not supported", name);
    if (!targs_fit(r, name, functions[function].signature, args)) return tv_error();
    switch (functions[function].function) {
    case RAISE: return raise(r, args);
    case STRFTIME: return format_time(r, args);
    case RANGE: return range(r, args);
    default: return named_values(r, args, functions[function].function == NAMESPACE);
    }
}
