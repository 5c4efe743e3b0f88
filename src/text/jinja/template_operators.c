/* SPDX-License-Identifier: Apache-2.0 */
/* template_operators.c - Python's operators on values: arithmetic, concatenation, comparison, attributes, subscripts,
 * slices. Expressions are evaluated in template_eval.c; equality and order are in template_value.c. */
#include <math.h>
#include <string.h>

#include "text/jinja/template_run.h"

/* ---- arithmetic ---- */

static tvalue join_lists(trun *r, tvalue a, tvalue b) {
    tvalue *items, v = tv_list(r, a.kind, a.list->n + b.list->n, &items);
    if (v.kind == TV_ERROR) return v;
    if (a.list->n) memcpy(items, a.list->items, a.list->n * sizeof *items);
    if (b.list->n) memcpy(items + a.list->n, b.list->items, b.list->n * sizeof *items);
    return trun_step(r, v.list->n) ? v : tv_error();
}

static tvalue join_strings(trun *r, tstr a, tstr b) {
    tbuf out = {.arena = &r->arena};
    tbuf_put(&out, a.s, a.n);
    tbuf_put(&out, b.s, b.n);
    return tv_buffer(r, &out);
}

static tvalue repeat(trun *r, tvalue v, int64_t times) {
    tbuf out = {.arena = &r->arena};
    if (v.kind == TV_STRING) {
        for (int64_t i = 0; i < times && v.str.n && !out.failed && trun_step(r, 1); i++)
            tbuf_put(&out, v.str.s, v.str.n);
        return tv_buffer(r, &out);
    }
    size_t n;
    tvalue *items, list;
    if (times < 0 || v.list->n == 0) times = 0;
    if (__builtin_mul_overflow(v.list->n, (size_t)times, &n)) return trun_fail_memory(r);
    if (!trun_step(r, n)) return tv_error();
    list = tv_list(r, v.kind, n, &items);
    for (size_t i = 0; list.kind != TV_ERROR && i < n; i++) items[i] = v.list->items[i % v.list->n];
    return list;
}

/* x // y and x % y round toward minus infinity, as in Python. */
static tvalue divide(trun *r, int op, tvalue a, tvalue b) {
    if (tv_number(b) == 0) return trun_fail(r, "division by zero");
    if (op == '/') return tv_float(tv_number(a) / tv_number(b));
    if (a.kind == TV_FLOAT || b.kind == TV_FLOAT) {
        double x = tv_number(a), y = tv_number(b), q = floor(x / y);
        return tv_float(op == TOP_FLOOR ? q : x - q * y);
    }
    int64_t x = tv_integer(a), y = tv_integer(b);
    if (y == -1) { /* INT64_MIN / -1 overflows */
        int64_t negated;
        if (op == '%') return tv_int(0);
        return __builtin_sub_overflow((int64_t)0, x, &negated) ? trun_fail(r, "an integer beyond 64 bits")
                                                               : tv_int(negated);
    }
    int64_t q = x / y, m = x % y;
    if (m && (m < 0) != (y < 0)) {
        q--;
        m += y;
    }
    return tv_int(op == TOP_FLOOR ? q : m);
}

static tvalue power(trun *r, tvalue a, tvalue b) {
    if (a.kind == TV_FLOAT || b.kind == TV_FLOAT || tv_integer(b) < 0) {
        double x = tv_number(a), y = tv_number(b), z = pow(x, y);
        if (x == 0 && y < 0) return trun_fail(r, "division by zero");
        return isnan(z) && !isnan(x) && !isnan(y) ? trun_fail(r, "a power that is no real number") : tv_float(z);
    }
    int64_t out = 1, base = tv_integer(a), times = tv_integer(b);
    if (base >= -1 && base <= 1 && times > 2) times = 2 - (times & 1); /* 0, 1 and -1 repeat */
    for (; times > 0; times--) {
        if (__builtin_mul_overflow(out, base, &out)) return trun_fail(r, "an integer beyond 64 bits");
    }
    return tv_int(out);
}

static tvalue arithmetic(trun *r, int op, tvalue a, tvalue b) {
    if (op == '/' || op == '%' || op == TOP_FLOOR) return divide(r, op, a, b);
    if (op == TOP_POWER) return power(r, a, b);
    if (a.kind == TV_FLOAT || b.kind == TV_FLOAT) {
        double x = tv_number(a), y = tv_number(b);
        return tv_float(op == '+' ? x + y : op == '-' ? x - y : x * y);
    }
    int64_t x = tv_integer(a), y = tv_integer(b), out;
    bool over = op == '+'   ? __builtin_add_overflow(x, y, &out)
                : op == '-' ? __builtin_sub_overflow(x, y, &out)
                            : __builtin_mul_overflow(x, y, &out);
    return over ? trun_fail(r, "an integer beyond 64 bits") : tv_int(out);
}

tvalue tbinary(trun *r, int op, tvalue a, tvalue b) {
    bool sequence_a = a.kind == TV_STRING || a.kind == TV_LIST || a.kind == TV_TUPLE;
    bool sequence_b = b.kind == TV_STRING || b.kind == TV_LIST || b.kind == TV_TUPLE;
    if (op == '~') {
        a = tv_to_string(r, a);
        b = tv_to_string(r, b);
        return !r->status ? join_strings(r, a.str, b.str) : tv_error();
    }
    if (tv_is_number(a) && tv_is_number(b)) return arithmetic(r, op, a, b);
    if ((a.kind == TV_BIG && (b.kind == TV_BIG || tv_is_number(b))) || (b.kind == TV_BIG && tv_is_number(a)))
        return trun_fail(r, "an integer beyond 64 bits");
    if (op == '%' && a.kind == TV_STRING) return tformat(r, a.str, b);
    if (a.kind == TV_UNDEFINED) return tv_fail_undefined(r, a);
    if (b.kind == TV_UNDEFINED) return tv_fail_undefined(r, b);
    if (op == '+' && a.kind == b.kind && sequence_a)
        return a.kind == TV_STRING ? join_strings(r, a.str, b.str) : join_lists(r, a, b);
    if (op == '*' && sequence_a && (b.kind == TV_INT || b.kind == TV_BOOL)) return repeat(r, a, tv_integer(b));
    if (op == '*' && sequence_b && (a.kind == TV_INT || a.kind == TV_BOOL)) return repeat(r, b, tv_integer(a));
    const char *name = op == TOP_FLOOR ? "//" : op == TOP_POWER ? "**" : (char[2]){(char)op, 0};
    return trun_fail(r, "%s %s %s is not possible", tv_type_name(a), name, tv_type_name(b));
}

tvalue tv_add(trun *r, tvalue a, tvalue b) {
    return tbinary(r, '+', a, b);
}

tvalue tv_negative(trun *r, tvalue big) {
    tbuf b = {.arena = &r->arena};
    const bool minus = big.str.s[0] == '-';
    if (!minus) tbuf_puts(&b, "-");
    tbuf_put(&b, big.str.s + minus, big.str.n - minus);
    const tvalue text = tv_buffer(r, &b);
    return text.kind == TV_ERROR ? text : tv_whole(text.str.s, text.str.n);
}

tvalue tunary(trun *r, int op, tvalue v) {
    if (op == '!') return tv_bool(!tv_truth(v));
    if (v.kind == TV_UNDEFINED) return tv_fail_undefined(r, v);
    if (v.kind == TV_BIG) return op == '-' ? tv_negative(r, v) : v;
    if (!tv_is_number(v)) return trun_fail(r, "%c%s is not possible", op, tv_type_name(v));
    return op == '-' ? arithmetic(r, '-', v.kind == TV_FLOAT ? tv_float(-0.0) : tv_int(0), v)
                     : arithmetic(r, '+', tv_int(0), v);
}

bool tcompare(trun *r, int op, tvalue a, tvalue b) {
    int order;
    bool found;
    if (op == TOP_EQ || op == TOP_NE) return tv_equal(r, a, b, 0) == (op == TOP_EQ);
    if (op == TOP_IN || op == TOP_NOT_IN) return tv_contains(r, b, a, &found) && found == (op == TOP_IN);
    if (a.kind == TV_UNDEFINED || b.kind == TV_UNDEFINED)
        return tv_fail_undefined(r, a.kind == TV_UNDEFINED ? a : b), false;
    if (!tv_compare(r, a, b, &order, 0)) return false;
    return op == TOP_LT ? order < 0 : op == TOP_LE ? order <= 0 : op == TOP_GT ? order > 0 : order >= 0;
}

/* ---- attributes and subscripts ---- */

static tvalue bind_method(trun *r, tvalue v, tstr name) {
    tmethod *m = ta_alloc(&r->arena, sizeof *m);
    if (!m) return trun_fail_memory(r);
    *m = (tmethod){v, name};
    return (tvalue){.kind = TV_METHOD, .method = m};
}

tvalue tattribute(trun *r, tvalue v, tstr name) {
    const tvalue *found = NULL;
    if (v.kind == TV_UNDEFINED) return tv_fail_undefined(r, v);
    if (v.kind == TV_LOOP) return tloop_attribute(r, v.loop, name);
    if (v.kind == TV_MACRO)
        return trun_fail(r, "attributes of macros are not supported (%.*s)", name.n < 60 ? (int)name.n : 60, name.s);
    if (tmethod_known(v, name)) return bind_method(r, v, name);
    if (v.kind == TV_DICT || v.kind == TV_NAMESPACE) found = tv_dict_find(r, v.dict, name);
    return found ? *found : tv_undefined(name.s, name.n);
}

tvalue tsubscript(trun *r, tvalue v, tvalue key) {
    if (v.kind == TV_UNDEFINED) return tv_fail_undefined(r, v);
    if (v.kind == TV_DICT) {
        const tvalue *found = tv_dict_get(r, v.dict, key);
        if (found) return *found;
    }
    if (key.kind == TV_STRING && v.kind != TV_LOOP)
        return v.kind == TV_DICT && !tmethod_known(v, key.str) ? tv_undefined(key.str.s, key.str.n)
                                                               : tattribute(r, v, key.str);
    bool text = v.kind == TV_STRING;
    if (text && !trun_text(r, v.str.n)) return tv_error();
    if ((key.kind != TV_INT && key.kind != TV_BOOL) || (!text && v.kind != TV_LIST && v.kind != TV_TUPLE))
        return tv_undefined("subscript", 9);
    int64_t n = (int64_t)(text ? ts_length(v.str) : v.list->n), i = tv_integer(key);
    if (i < 0) i += n;
    if (i < 0 || i >= n) return tv_undefined("element", 7);
    if (!text) return v.list->items[i];
    size_t from = ts_offset(v.str, (size_t)i), to = ts_offset(v.str, (size_t)i + 1);
    return tv_str(v.str.s + from, to - from);
}

/* ---- slices ---- */

/* Python's slice bounds for n elements. */
static bool slice_bound(trun *r, tvalue v, int64_t n, int64_t step, int64_t otherwise, int64_t *out) {
    if (v.kind == TV_NONE) {
        *out = otherwise;
        return true;
    }
    if (v.kind != TV_INT && v.kind != TV_BOOL)
        return trun_fail(r, "a slice's bounds must be integers, not %s", tv_type_name(v)), false;
    int64_t i = tv_integer(v), low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    if (i < 0) i = i < -n ? low : i + n;
    *out = i < low ? low : i > high ? high : i;
    return true;
}

static tvalue slice_string(trun *r, tstr s, int64_t from, int64_t to, int64_t step) {
    if (step == 1) {
        size_t a = ts_offset(s, (size_t)from), b = to > from ? ts_offset(s, (size_t)to) : a;
        return tv_str(s.s + a, b - a);
    }
    tbuf b = {.arena = &r->arena};
    tvalue chars = tv_iterate(r, tv_str(s.s, s.n));
    for (int64_t i = from; chars.kind != TV_ERROR && (step > 0 ? i < to : i > to); i += step) {
        tstr c = chars.list->items[i].str;
        tbuf_put(&b, c.s, c.n);
    }
    return tv_buffer(r, &b);
}

static tvalue slice_list(trun *r, tvalue v, int64_t from, int64_t to, int64_t step) {
    int64_t span = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
    tvalue *items, out = tv_list(r, v.kind, span > 0 ? (size_t)((span + stride - 1) / stride) : 0, &items);
    if (out.kind == TV_ERROR) return out;
    for (size_t i = 0; i < out.list->n; i++) items[i] = v.list->items[from + (int64_t)i * step];
    return out;
}

tvalue tslice(trun *r, tvalue v, const tvalue part[3]) {
    bool text = v.kind == TV_STRING;
    if (text && !trun_text(r, v.str.n)) return tv_error();
    if (!text && v.kind != TV_LIST && v.kind != TV_TUPLE)
        return trun_fail(r, "a value of type %s cannot be sliced", tv_type_name(v));
    int64_t size = (int64_t)(text ? ts_length(v.str) : v.list->n), from, to, step = 1;
    if (part[2].kind == TV_INT) step = part[2].i;
    if (step == 0 || step > INT32_MAX || step < -INT32_MAX)
        return trun_fail(r, "a slice's step cannot be %lld", (long long)step);
    if (!slice_bound(r, part[0], size, step, step < 0 ? size - 1 : 0, &from)) return tv_error();
    if (!slice_bound(r, part[1], size, step, step < 0 ? -1 : size, &to)) return tv_error();
    return text ? slice_string(r, v.str, from, to, step) : slice_list(r, v, from, to, step);
}
