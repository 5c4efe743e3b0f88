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
    return trun_text(r, 4 * v.str.n) && ts_is_case(v.str, (char)how);
}

/* Whether there is a filter or a test of this name. */
static bool is_known(trun *r, tvalue v, const tvalue *arg, int how) {
    bool takes;
    (void)arg;
    return tv_need_hash(r, v) && v.kind == TV_STRING &&
           (how == 'f' ? tfilter_find(v.str) : ttest_find(v.str, &takes)) != TFOUND_NOT;
}

/* call NULL: Jinja's, and refused. */
static const struct {
    const char *name;
    test_call *call;
    int how;
    const char *signature;
} tests[] = {
    {"defined", is_kind, 'd', ""},        {"undefined", is_kind, 'u', ""},     {"none", is_kind, 'n', ""},
    {"string", is_kind, 's', ""},         {"mapping", is_kind, 'm', ""},       {"sequence", is_kind, 'q', ""},
    {"iterable", is_kind, 'i', ""},       {"number", is_kind, '0', ""},        {"integer", is_kind, '1', ""},
    {"float", is_kind, '.', ""},          {"boolean", is_kind, 'b', ""},       {"true", is_kind, 't', ""},
    {"false", is_kind, 'f', ""},          {"callable", is_kind, 'c', ""},      {"odd", divides, 'o', ""},
    {"even", divides, 'e', ""},           {"divisibleby", divides, 0, "num"},  {"upper", has_case, 'u', ""},
    {"lower", has_case, 'l', ""},         {"filter", is_known, 'f', ""},       {"test", is_known, 't', ""},
    {"eq", compares, TOP_EQ, "/b"},       {"equalto", compares, TOP_EQ, "/b"}, {"==", compares, TOP_EQ, "/b"},
    {"ne", compares, TOP_NE, "/b"},       {"!=", compares, TOP_NE, "/b"},      {"lt", compares, TOP_LT, "/b"},
    {"lessthan", compares, TOP_LT, "/b"}, {"<", compares, TOP_LT, "/b"},       {"le", compares, TOP_LE, "/b"},
    {"<=", compares, TOP_LE, "/b"},       {"gt", compares, TOP_GT, "/b"},      {"greaterthan", compares, TOP_GT, "/b"},
    {">", compares, TOP_GT, "/b"},        {"ge", compares, TOP_GE, "/b"},      {">=", compares, TOP_GE, "/b"},
    {"in", compares, TOP_IN, "seq"},      {"sameas", is_same, 0, "other"},     {"escaped", NULL, 0, ""},
};
enum { TESTS = sizeof tests / sizeof *tests };

static size_t find_test(tstr name) {
    size_t i = 0;
    while (i < TESTS && !ts_equal(name, tests[i].name)) i++;
    return i;
}

tfound ttest_find(tstr name, bool *takes) {
    const size_t i = find_test(name);
    if (i == TESTS) return TFOUND_NOT;
    *takes = *tests[i].signature;
    return tests[i].call ? TFOUND_HERE : TFOUND_MISSING;
}

tvalue ttest_apply(trun *r, tstr name, tvalue v, const targs *args) {
    const size_t i = find_test(name);
    if (i == TESTS || !tests[i].call)
        return trun_fail(r, "the test \"%.*s\" is not supported", name.n < 60 ? (int)name.n : 60, name.s);
    const char *name_of_argument = tests[i].signature + (*tests[i].signature == '/');
    const bool holds = targs_fit(r, tests[i].name, tests[i].signature, args) && trun_value(r, v) &&
                       tests[i].call(r, v, targs_get(args, 0, name_of_argument), tests[i].how);
    return !r->status ? tv_bool(holds) : tv_error();
}
