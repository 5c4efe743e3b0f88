/* SPDX-License-Identifier: Apache-2.0 */
/* template_is.c - Jinja's tests: value is name. */
#include <math.h>

#include "text/jinja/template_private.h"

typedef bool test_call(trun *r, tvalue v, const tvalue *arg, int how);

static bool is_kind(trun *r, tvalue v, const tvalue *arg, int how) {
    (void)r;
    (void)arg;
    switch (how) {
    case 'd': return v.kind != TV_UNDEFINED;
    case 'u': return v.kind == TV_UNDEFINED;
    case 'n': return v.kind == TV_NONE;
    case 's': return v.kind == TV_STRING;
    case 'm': return v.kind == TV_DICT;
    case 'q':
        return v.kind == TV_STRING || v.kind == TV_LIST || v.kind == TV_TUPLE || v.kind == TV_DICT ||
               v.kind == TV_UNDEFINED;
    case 'i': return tv_is_list(v) || v.kind == TV_STRING || v.kind == TV_DICT || v.kind == TV_UNDEFINED;
    case '0': return tv_is_number(v) || v.kind == TV_BIG;
    case '1': return v.kind == TV_INT || v.kind == TV_BIG;
    case '.': return v.kind == TV_FLOAT;
    case 'b': return v.kind == TV_BOOL;
    case 't': return v.kind == TV_BOOL && v.b;
    case 'f': return v.kind == TV_BOOL && !v.b;
    default: /* callable: so is Jinja's Undefined, which fails when it is called */
        return v.kind == TV_MACRO || v.kind == TV_FUNCTION || v.kind == TV_METHOD || v.kind == TV_UNDEFINED;
    }
}

static bool compares(trun *r, tvalue v, const tvalue *arg, int how) {
    return tcompare(r, how, v, *arg);
}

/* Python's "is": identity for lists, dicts and similar, equal value and type for others. */
static bool is_same(trun *r, tvalue v, const tvalue *arg, int how) {
    (void)how;
    bool holds_items = tv_is_list(v) || v.kind == TV_DICT;
    return v.kind == arg->kind && (holds_items ? v.list == arg->list : tv_equal(r, v, *arg, 0));
}

/* What is left of the digits, without their sign, divided by a number. */
static uint64_t digits_rest(tstr digits, uint64_t by) {
    uint64_t rest = 0;
    for (size_t i = digits.s[0] == '-'; i < digits.n; i++)
        rest = (uint64_t)(((unsigned __int128)rest * 10u + (unsigned)(digits.s[i] - '0')) % by);
    return rest;
}

static bool divides(trun *r, tvalue v, const tvalue *arg, int how) {
    tvalue by = how ? tv_int(2) : *arg;
    if (v.kind == TV_BIG && by.kind == TV_INT && by.i != 0) {
        const uint64_t size = by.i < 0 ? 0 - (uint64_t)by.i : (uint64_t)by.i;
        return (digits_rest(v.str, size) != 0) == (how == 'o');
    }
    if (!tv_is_number(v) || !tv_is_number(by) || tv_number(by) == 0)
        return trun_fail(r, "only numbers are odd, even or divisible"), false;
    double rest = fmod(tv_number(v), tv_number(by));
    if (v.kind != TV_FLOAT && by.kind != TV_FLOAT)
        rest = tv_integer(by) == -1 ? 0 : (double)(tv_integer(v) % tv_integer(by));
    return how == 'o' ? fabs(rest) == 1 : rest == 0;
}

static bool has_case(trun *r, tvalue v, const tvalue *arg, int how) {
    (void)arg;
    v = tv_to_string(r, v);
    if (v.kind == TV_ERROR) return false;
    tvalue done =
        tmethod_call(r, &(tmethod){v, how == 'u' ? (tstr){"isupper", 7} : (tstr){"islower", 7}}, &(targs){.n = 0});
    return done.kind == TV_BOOL && done.b;
}

static const struct {
    const char *name;
    test_call *call;
    int how, arity;
} tests[] = {
    {"defined", is_kind, 'd', 0},      {"undefined", is_kind, 'u', 0}, {"none", is_kind, 'n', 0},
    {"string", is_kind, 's', 0},       {"mapping", is_kind, 'm', 0},   {"sequence", is_kind, 'q', 0},
    {"iterable", is_kind, 'i', 0},     {"number", is_kind, '0', 0},    {"integer", is_kind, '1', 0},
    {"float", is_kind, '.', 0},        {"boolean", is_kind, 'b', 0},   {"true", is_kind, 't', 0},
    {"false", is_kind, 'f', 0},        {"callable", is_kind, 'c', 0},  {"eq", compares, TOP_EQ, 1},
    {"equalto", compares, TOP_EQ, 1},  {"==", compares, TOP_EQ, 1},    {"sameas", is_same, 0, 1},
    {"ne", compares, TOP_NE, 1},       {"!=", compares, TOP_NE, 1},    {"lt", compares, TOP_LT, 1},
    {"lessthan", compares, TOP_LT, 1}, {"<", compares, TOP_LT, 1},     {"le", compares, TOP_LE, 1},
    {"<=", compares, TOP_LE, 1},       {"gt", compares, TOP_GT, 1},    {"greaterthan", compares, TOP_GT, 1},
    {">", compares, TOP_GT, 1},        {"ge", compares, TOP_GE, 1},    {">=", compares, TOP_GE, 1},
    {"in", compares, TOP_IN, 1},       {"odd", divides, 'o', 0},       {"even", divides, 'e', 0},
    {"divisibleby", divides, 0, 1},    {"upper", has_case, 'u', 0},    {"lower", has_case, 'l', 0},
};

static size_t find_test(tstr name) {
    size_t i = 0, n = sizeof tests / sizeof *tests;
    while (i < n && !ts_equal(name, tests[i].name)) i++;
    return i;
}

int ttest_arity(tstr name) {
    size_t i = find_test(name);
    return i < sizeof tests / sizeof *tests ? tests[i].arity : -1;
}

tvalue ttest_apply(trun *r, tstr name, tvalue v, const targs *args) {
    size_t i = find_test(name);
    if (i == sizeof tests / sizeof *tests)
        return trun_fail(r, "the test \"%.*s\" is not supported", name.n < 60 ? (int)name.n : 60, name.s);
    if (args->n != (size_t)tests[i].arity || args->n_named)
        return trun_fail(r, "the test %s takes %d arguments", tests[i].name, tests[i].arity);
    bool holds = trun_value(r, v) && tests[i].call(r, v, args->n ? &args->values[0] : NULL, tests[i].how);
    return !r->status ? tv_bool(holds) : tv_error();
}
