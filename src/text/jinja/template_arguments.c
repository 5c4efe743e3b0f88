/* SPDX-License-Identifier: Apache-2.0 */
/* template_arguments.c - the arguments that a call, a filter or a test is given: by place or by name, counted, of the right type. */
#include <string.h>

#include "text/jinja/template_private.h"

const tvalue *targs_get(const targs *a, size_t place, const char *name) {
    if (place < a->n) return &a->values[place];
    for (size_t i = 0; name && i < a->n_named; i++) {
        if (ts_equal(a->named[i].name, name)) return &a->named[i].value;
    }
    return NULL;
}

/* ---- signatures ---- */

typedef struct parameter {
    tstr name;
    bool by_place, optional, more, names;
} parameter;

/* Takes the next parameter from a signature. False: there is none. */
static bool next_parameter(const char **signature, parameter *out) {
    const char *s = *signature + strspn(*signature, " ");
    size_t n = strcspn(s, " ");
    if (!n) return false;
    *signature = s + n;
    *out = (parameter){
        .by_place = *s == '/', .optional = s[n - 1] == '?', .more = n == 1 && *s == '*', .names = n == 2 && *s == '*'};
    out->name = (tstr){s + out->by_place, n - out->by_place - out->optional};
    return true;
}

static bool is_named(const char *signature, tstr name) {
    for (parameter p; next_parameter(&signature, &p);) {
        if (p.names || (!p.by_place && ts_same(p.name, name))) return true;
    }
    return false;
}

static size_t times_given(const targs *a, tstr name) {
    size_t n = 0;
    for (size_t i = 0; i < a->n_named; i++) n += ts_same(a->named[i].name, name);
    return n;
}

bool targs_fit(trun *r, const char *what, const char *signature, const targs *a) {
    size_t place = 0;
    bool more = false;
    parameter p;
    for (const char *rest = signature; next_parameter(&rest, &p);) {
        more |= p.more;
        if (p.more || p.names) continue;
        size_t given = (place < a->n) + (p.by_place ? 0 : times_given(a, p.name));
        if (given > 1) return trun_fail(r, "%s is given its %.*s twice", what, (int)p.name.n, p.name.s), false;
        if (!given && !p.optional) return trun_fail(r, "%s needs its %.*s", what, (int)p.name.n, p.name.s), false;
        place++;
    }
    if (a->n > place && !more) return trun_fail(r, "%s takes at most %zu arguments, not %zu", what, place, a->n), false;
    for (size_t i = 0; i < a->n_named; i++) {
        tstr name = a->named[i].name;
        if (!is_named(signature, name))
            return trun_fail(r, "%s takes no argument %.*s", what, name.n < 60 ? (int)name.n : 60, name.s), false;
    }
    return true;
}

/* ---- types ---- */

bool targs_text(trun *r, const targs *a, size_t place, const char *name, tstr *out) {
    const tvalue *v = targs_get(a, place, name);
    tvalue text = tv_to_string(r, v ? *v : tv_text(""));
    if (text.kind == TV_ERROR) return false;
    *out = text.str;
    return true;
}

bool targs_string(trun *r, const targs *a, size_t place, const char *name, tstr *out, bool *given) {
    const tvalue *v = targs_get(a, place, name), none = tv_none();
    if (!v) v = &none;
    if (given) {
        *given = v->kind != TV_NONE;
        if (!*given) return true;
    }
    if (v->kind != TV_STRING) return trun_fail(r, "expected a string, not %s", tv_type_name(*v)), false;
    *out = v->str;
    return trun_text(r, out->n);
}

bool targs_integer(trun *r, const targs *a, size_t place, const char *name, int64_t otherwise, int64_t *out) {
    const tvalue *v = targs_get(a, place, name);
    *out = otherwise;
    if (!v) return true;
    if (v->kind != TV_INT && v->kind != TV_BOOL)
        return trun_fail(r, "expected an integer, not %s", tv_type_name(*v)), false;
    *out = tv_integer(*v);
    return true;
}

tvalue targs_dict(trun *r, const targs *a) {
    tvalue v = tv_dict(r, a->n_named);
    for (size_t i = 0; v.kind != TV_ERROR && i < a->n_named; i++) {
        if (!tv_dict_put(r, v.dict, tv_str(a->named[i].name.s, a->named[i].name.n), a->named[i].value))
            return tv_error();
    }
    return v;
}
