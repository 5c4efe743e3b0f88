/* SPDX-License-Identifier: Apache-2.0 */
/* template_eval.c - runs a tree: statements, expressions, scopes.
 *
 * Scopes as in Jinja: a for loop's body and a macro have one each (the body a new one each turn), an if has none; a macro
 * sees what its definition's scope holds when it is called. Names that nothing sets are undefined, which prints as nothing
 * and fails when looked into.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/template_private.h"

tvalue trun_fail(trun *r, const char *fmt, ...) {
    if (r->status != HUNCH_OK) return tv_error();
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *c = text; *c; c++) { /* a template's own message may have any lines */
        if (*c == '\n' || *c == '\r') *c = ' ';
    }
    r->status = hn_fail(r->err, HUNCH_USAGE, "chat template, line %d: %s", r->line, text);
    return tv_error();
}

tvalue trun_fail_memory(trun *r) {
    if (r->arena.exhausted) return trun_fail(r, "needs more than %d MiB", HN_TPL_MAX_MEMORY >> 20);
    if (r->status == HUNCH_OK) r->status = hn_fail_memory(r->err, "the chat template", 0);
    return tv_error();
}

bool trun_step(trun *r, size_t n) {
    r->steps += n;
    if (r->steps > HN_TPL_MAX_STEPS) trun_fail(r, "takes more than %d steps", HN_TPL_MAX_STEPS);
    return r->status == HUNCH_OK;
}

bool trun_text(trun *r, size_t bytes) {
    return trun_step(r, bytes / HN_TPL_STEP_BYTES);
}

bool trun_value(trun *r, tvalue v) {
    if (v.kind == TV_STRING) return trun_text(r, v.str.n);
    if (tv_is_list(v)) return trun_step(r, v.list->n / HN_TPL_STEP_ITEMS);
    return v.kind == TV_DICT ? trun_step(r, v.dict->n / HN_TPL_STEP_ITEMS) : r->status == HUNCH_OK;
}

/* ---- names ---- */

static tvar *find_own(trun *r, tframe *f, tstr name) {
    size_t seen = 0;
    for (tvar *v = f->vars; v; v = v->next) {
        if (++seen % 32 == 0 && !trun_step(r, 4)) return NULL;
        if (ts_same(v->name, name)) return v;
    }
    return NULL;
}

static tvalue look_up(trun *r, tframe *f, tstr name) {
    for (; f; f = f->parent) {
        tvar *v = find_own(r, f, name);
        if (v) return v->value;
    }
    const tvalue *given = tv_dict_find(r, r->vars, name);
    if (given) return *given;
    int function = tfunction_find(name);
    return function < 0 ? tv_undefined(name.s, name.n) : (tvalue){.kind = TV_FUNCTION, .function = function};
}

/* A scope, in `own` and given back by scope_end; or, if a macro is defined in it that may outlive it, in the arena.
 * NULL: no memory. */
static tframe *scope_begin(trun *r, tframe *own, tframe *parent, bool outlives) {
    *own = (tframe){.parent = parent};
    if (!outlives) return own;
    tframe *f = ta_alloc(&r->arena, sizeof *f);
    if (f)
        *f = (tframe){.parent = parent};
    else
        trun_fail_memory(r);
    return f;
}

/* Loops take many turns: their variables are used again. */
static void scope_end(trun *r, tframe *own) {
    for (tvar *v; (v = own->vars) != NULL;) {
        own->vars = v->next;
        v->next = r->spare;
        r->spare = v;
    }
}

static bool assign_name(trun *r, tframe *f, tstr name, tvalue value) {
    tvar *v = find_own(r, f, name);
    if (!v) {
        v = r->spare ? r->spare : ta_alloc(&r->arena, sizeof *v);
        if (!v) return trun_fail_memory(r), false;
        if (v == r->spare) r->spare = v->next;
        *v = (tvar){.name = name, .next = f->vars};
        f->vars = v;
    }
    v->value = value;
    return true;
}

static tvalue eval(trun *r, const tnode *n, tframe *f);

static bool assign(trun *r, const tnode *target, tvalue value, tframe *f) {
    if (target->kind == TN_NAME) return assign_name(r, f, target->name, value);
    if (target->kind == TN_ATTRIBUTE) {
        tvalue space = eval(r, target->a, f);
        if (space.kind == TV_ERROR) return false;
        if (space.kind != TV_NAMESPACE)
            return trun_fail(r, "only a namespace's attributes can be set, not those of %s", tv_type_name(space)),
                   false;
        return tv_dict_put(r, space.dict, tv_str(target->name.s, target->name.n), value);
    }
    tvalue items = tv_iterate(r, value);
    if (items.kind == TV_ERROR) return false;
    if (items.list->n != target->n) return trun_fail(r, "%zu values for %zu names", items.list->n, target->n), false;
    for (size_t i = 0; i < target->n; i++) {
        if (!assign(r, target->items[i], items.list->items[i], f)) return false;
    }
    return true;
}

/* ---- attributes and subscripts ---- */

static tvalue loop_attribute(trun *r, const tloop *l, tstr name) {
    int64_t i = (int64_t)l->index, n = (int64_t)l->items->n;
    const struct {
        const char *name;
        tvalue v;
    } known[] = {
        {"index", tv_int(i + 1)},
        {"index0", tv_int(i)},
        {"first", tv_bool(i == 0)},
        {"last", tv_bool(i + 1 == n)},
        {"length", tv_int(n)},
        {"revindex", tv_int(n - i)},
        {"revindex0", tv_int(n - i - 1)},
        {"depth", tv_int(l->depth)},
        {"depth0", tv_int(l->depth - 1)},
        {"previtem", i > 0 ? l->items->items[i - 1] : tv_undefined("previtem", 8)},
        {"nextitem", i + 1 < n ? l->items->items[i + 1] : tv_undefined("nextitem", 8)},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (ts_equal(name, known[k].name)) return known[k].v;
    }
    return trun_fail(r, "loop.%.*s is not supported", name.n < 60 ? (int)name.n : 60, name.s);
}

static tvalue fail_undefined(trun *r, tvalue v) {
    return trun_fail(r, "'%.*s' is undefined", v.str.n < 100 ? (int)v.str.n : 100, v.str.s);
}

static tvalue bind_method(trun *r, tvalue v, tstr name) {
    tmethod *m = ta_alloc(&r->arena, sizeof *m);
    if (!m) return trun_fail_memory(r);
    *m = (tmethod){v, name};
    return (tvalue){.kind = TV_METHOD, .method = m};
}

tvalue tattribute(trun *r, tvalue v, tstr name) {
    const tvalue *found = NULL;
    if (v.kind == TV_UNDEFINED) return fail_undefined(r, v);
    if (v.kind == TV_LOOP) return loop_attribute(r, v.loop, name);
    if (tmethod_known(v, name)) return bind_method(r, v, name);
    if (v.kind == TV_DICT || v.kind == TV_NAMESPACE) found = tv_dict_find(r, v.dict, name);
    return found ? *found : tv_undefined(name.s, name.n);
}

tvalue tsubscript(trun *r, tvalue v, tvalue key) {
    if (v.kind == TV_UNDEFINED) return fail_undefined(r, v);
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

static tvalue eval_slice(trun *r, const tnode *n, tframe *f) {
    tvalue v = eval(r, n->a, f), part[3];
    if (v.kind == TV_ERROR) return v;
    if (v.kind == TV_UNDEFINED) return fail_undefined(r, v);
    for (int i = 0; i < 3; i++) {
        part[i] = n->items[i] ? eval(r, n->items[i], f) : tv_none();
        if (part[i].kind == TV_ERROR) return part[i];
    }
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
    if (text) return slice_string(r, v.str, from, to, step);
    int64_t span = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
    tvalue *items, out = tv_list(r, v.kind, span > 0 ? (size_t)((span + stride - 1) / stride) : 0, &items);
    if (out.kind == TV_ERROR) return out;
    for (size_t i = 0; i < out.list->n; i++) items[i] = v.list->items[from + (int64_t)i * step];
    return out;
}

/* ---- operators ---- */

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
    if (a.kind == TV_FLOAT || b.kind == TV_FLOAT || tv_integer(b) < 0) return tv_float(pow(tv_number(a), tv_number(b)));
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

static tvalue binary(trun *r, int op, tvalue a, tvalue b) {
    bool sequence_a = a.kind == TV_STRING || a.kind == TV_LIST || a.kind == TV_TUPLE;
    bool sequence_b = b.kind == TV_STRING || b.kind == TV_LIST || b.kind == TV_TUPLE;
    if (op == '~') {
        a = tv_to_string(r, a);
        b = tv_to_string(r, b);
        return r->status == HUNCH_OK ? join_strings(r, a.str, b.str) : tv_error();
    }
    if (tv_is_number(a) && tv_is_number(b)) return arithmetic(r, op, a, b);
    if (op == '%' && a.kind == TV_STRING) return tformat(r, a.str, b);
    if (a.kind == TV_UNDEFINED) return fail_undefined(r, a);
    if (b.kind == TV_UNDEFINED) return fail_undefined(r, b);
    if (op == '+' && a.kind == b.kind && sequence_a)
        return a.kind == TV_STRING ? join_strings(r, a.str, b.str) : join_lists(r, a, b);
    if (op == '*' && sequence_a && (b.kind == TV_INT || b.kind == TV_BOOL)) return repeat(r, a, tv_integer(b));
    if (op == '*' && sequence_b && (a.kind == TV_INT || a.kind == TV_BOOL)) return repeat(r, b, tv_integer(a));
    const char *name = op == TOP_FLOOR ? "//" : op == TOP_POWER ? "**" : (char[2]){(char)op, 0};
    return trun_fail(r, "%s %s %s is not possible", tv_type_name(a), name, tv_type_name(b));
}

static tvalue eval_binary(trun *r, const tnode *n, tframe *f) {
    tvalue a = eval(r, n->a, f);
    if (a.kind == TV_ERROR) return a;
    tvalue b = eval(r, n->b, f);
    return b.kind == TV_ERROR ? b : binary(r, n->op, a, b);
}

static tvalue eval_unary(trun *r, const tnode *n, tframe *f) {
    tvalue v = eval(r, n->a, f);
    if (v.kind == TV_ERROR) return v;
    if (n->op == '!') return tv_bool(!tv_truth(v));
    if (v.kind == TV_UNDEFINED) return fail_undefined(r, v);
    if (!tv_is_number(v)) return trun_fail(r, "%c%s is not possible", n->op, tv_type_name(v));
    return n->op == '-' ? arithmetic(r, '-', v.kind == TV_FLOAT ? tv_float(-0.0) : tv_int(0), v)
                        : arithmetic(r, '+', tv_int(0), v);
}

static bool compare(trun *r, int op, tvalue a, tvalue b) {
    int order;
    bool found;
    if (op == TOP_EQ || op == TOP_NE) return tv_equal(r, a, b, 0) == (op == TOP_EQ);
    if (op == TOP_IN || op == TOP_NOT_IN) return tv_contains(r, b, a, &found) && found == (op == TOP_IN);
    if (a.kind == TV_UNDEFINED || b.kind == TV_UNDEFINED)
        return fail_undefined(r, a.kind == TV_UNDEFINED ? a : b), false;
    if (!tv_compare(r, a, b, &order, 0)) return false;
    return op == TOP_LT ? order < 0 : op == TOP_LE ? order <= 0 : op == TOP_GT ? order > 0 : order >= 0;
}

static tvalue eval_comparison(trun *r, const tnode *n, tframe *f) {
    tvalue left = eval(r, n->a, f);
    bool holds = true;
    for (size_t i = 0; i < n->n && holds && left.kind != TV_ERROR; i++) {
        tvalue right = eval(r, n->items[i]->a, f);
        if (right.kind == TV_ERROR) return right;
        holds = compare(r, n->items[i]->op, left, right);
        left = right;
    }
    return r->status == HUNCH_OK ? tv_bool(holds) : tv_error();
}

/* ---- calls ---- */

static bool eval_arguments(trun *r, const tnode *n, tframe *f, targs *args) {
    *args = (targs){.values = ta_alloc(&r->arena, (n->n + 1) * sizeof *args->values)};
    if (!args->values) return trun_fail_memory(r), false;
    for (size_t i = 0; i < n->n; i++) {
        const tnode *item = n->items[i];
        bool keyword = item->kind == TN_KEYWORD;
        tvalue v = eval(r, keyword ? item->a : item, f);
        if (v.kind == TV_ERROR) return false;
        if (!keyword) {
            if (args->n_named) return trun_fail(r, "an argument without a name behind one with a name"), false;
            args->values[args->n++] = v;
            continue;
        }
        if (args->n_named == sizeof args->named / sizeof *args->named)
            return trun_fail(r, "more than %zu named arguments", args->n_named), false;
        args->named[args->n_named].name = item->name;
        args->named[args->n_named++].value = v;
    }
    return true;
}

typedef enum outcome { GO_ON, BREAK, CONTINUE, STOP } outcome;
static outcome run_body(trun *r, const tnode *n, tframe *f);

/* Runs a body into a string of its own. */
static tvalue capture(trun *r, const tnode *body, tframe *f) {
    tbuf own = {.arena = &r->arena}, *out = r->out;
    r->out = &own;
    outcome o = run_body(r, body, f);
    r->out = out;
    return o == STOP ? tv_error() : tv_buffer(r, &own);
}

static tvalue call_macro(trun *r, const tmacro *m, const targs *args) {
    const tnode *n = m->node;
    tframe own, *frame = scope_begin(r, &own, m->frame, n->a->op);
    int line = r->line;
    size_t used = 0;
    if (!frame) return tv_error();
    if (args->n > n->n)
        return trun_fail(r, "the macro %.*s takes at most %zu arguments", (int)n->name.n, n->name.s, n->n);
    for (size_t i = 0; i < n->n; i++) {
        const tnode *parameter = n->items[i];
        tvalue v = i < args->n ? args->values[i] : tv_undefined(parameter->name.s, parameter->name.n);
        bool given = i < args->n;
        for (size_t k = 0; k < args->n_named && !given; k++) {
            if (!ts_same(args->named[k].name, parameter->name)) continue;
            v = args->named[k].value;
            given = true;
            used++;
        }
        if (!given && parameter->a) v = eval(r, parameter->a, frame);
        if (v.kind == TV_ERROR || !assign_name(r, frame, parameter->name, v)) return tv_error();
    }
    if (used < args->n_named)
        return trun_fail(r, "the macro %.*s has no such named argument, or it is given twice", (int)n->name.n,
                         n->name.s);
    tvalue out = capture(r, n->a, frame);
    scope_end(r, &own);
    r->line = line;
    return out;
}

static tvalue eval_call(trun *r, const tnode *n, tframe *f) {
    targs args;
    tvalue callee = eval(r, n->a, f);
    if (callee.kind == TV_ERROR || !eval_arguments(r, n, f, &args)) return tv_error();
    r->line = n->line;
    switch (callee.kind) {
    case TV_UNDEFINED: return fail_undefined(r, callee);
    case TV_MACRO: return call_macro(r, callee.macro, &args);
    case TV_FUNCTION: return tfunction_call(r, callee.function, &args);
    case TV_METHOD: return tmethod_call(r, callee.method, &args);
    default: return trun_fail(r, "a value of type %s cannot be called", tv_type_name(callee));
    }
}

static tvalue eval_filter(trun *r, const tnode *n, tframe *f) {
    targs args;
    tvalue v = eval(r, n->a, f);
    if (v.kind == TV_ERROR || !eval_arguments(r, n, f, &args)) return tv_error();
    r->line = n->line;
    if (n->kind == TN_FILTER) return tfilter_apply(r, n->name, v, &args);
    v = ttest_apply(r, n->name, v, &args);
    return v.kind == TV_BOOL ? tv_bool(v.b != (n->op != 0)) : v;
}

static tvalue eval_items(trun *r, const tnode *n, tframe *f) {
    tvalue *items, v = tv_list(r, n->kind == TN_LIST ? TV_LIST : TV_TUPLE, n->n, &items);
    for (size_t i = 0; i < n->n && v.kind != TV_ERROR; i++) {
        items[i] = eval(r, n->items[i], f);
        if (items[i].kind == TV_ERROR) return items[i];
    }
    return v;
}

static tvalue eval_dict(trun *r, const tnode *n, tframe *f) {
    tvalue v = tv_dict(r, n->n / 2);
    for (size_t i = 0; i + 1 < n->n && v.kind != TV_ERROR; i += 2) {
        tvalue key = eval(r, n->items[i], f), value = key.kind == TV_ERROR ? key : eval(r, n->items[i + 1], f);
        if (value.kind == TV_ERROR || !tv_dict_put(r, v.dict, key, value)) return tv_error();
    }
    return v;
}

static tvalue eval_lazy(trun *r, const tnode *n, tframe *f) {
    tvalue a = eval(r, n->a, f);
    if (a.kind == TV_ERROR) return a;
    if (n->kind == TN_AND) return tv_truth(a) ? eval(r, n->b, f) : a;
    if (n->kind == TN_OR) return tv_truth(a) ? a : eval(r, n->b, f);
    if (tv_truth(a)) return eval(r, n->b, f);
    return n->c ? eval(r, n->c, f) : tv_undefined("the inline if without else", 26);
}

static tvalue eval_node(trun *r, const tnode *n, tframe *f) {
    tvalue a, b;
    switch (n->kind) {
    case TN_CONST: return n->value;
    case TN_NAME: return look_up(r, f, n->name);
    case TN_CAPTURED: return r->captured;
    case TN_LIST:
    case TN_TUPLE: return eval_items(r, n, f);
    case TN_DICT: return eval_dict(r, n, f);
    case TN_ATTRIBUTE: a = eval(r, n->a, f); return a.kind == TV_ERROR ? a : tattribute(r, a, n->name);
    case TN_SUBSCRIPT:
        a = eval(r, n->a, f);
        b = a.kind == TV_ERROR ? a : eval(r, n->b, f);
        return b.kind == TV_ERROR ? b : tsubscript(r, a, b);
    case TN_SLICE: return eval_slice(r, n, f);
    case TN_CALL: return eval_call(r, n, f);
    case TN_FILTER:
    case TN_TEST: return eval_filter(r, n, f);
    case TN_UNARY: return eval_unary(r, n, f);
    case TN_BINARY: return eval_binary(r, n, f);
    case TN_COMPARE: return eval_comparison(r, n, f);
    case TN_AND:
    case TN_OR:
    case TN_CHOICE: return eval_lazy(r, n, f);
    default: return trun_fail(r, "an expression of no known kind");
    }
}

static bool go_deeper(trun *r, const tnode *n) {
    r->line = n->line;
    if (r->depth++ >= HN_TPL_MAX_CALLS) trun_fail(r, "nested deeper than %d", HN_TPL_MAX_CALLS);
    return trun_step(r, 1);
}

static tvalue eval(trun *r, const tnode *n, tframe *f) {
    tvalue v = go_deeper(r, n) ? eval_node(r, n, f) : tv_error();
    r->depth--;
    return r->status == HUNCH_OK ? v : tv_error();
}

/* ---- statements ---- */

/* What a for statement walks over, without the elements that its condition leaves out. */
static tvalue loop_items(trun *r, const tnode *n, tframe *f) {
    tvalue all = eval(r, n->b, f);
    if (all.kind != TV_ERROR) all = tv_iterate(r, all);
    if (all.kind == TV_ERROR || !n->c) return all;
    tvalue *kept, out = tv_list(r, TV_LIST, all.list->n, &kept);
    size_t k = 0;
    for (size_t i = 0; i < all.list->n && out.kind != TV_ERROR; i++) {
        tframe frame = {.parent = f};
        if (!assign(r, n->a, all.list->items[i], &frame)) return tv_error();
        tvalue keep = eval(r, n->c, &frame);
        if (keep.kind == TV_ERROR) return keep;
        if (tv_truth(keep)) kept[k++] = all.list->items[i];
        scope_end(r, &frame);
    }
    if (out.kind != TV_ERROR) ((tlist *)out.list)->n = k;
    return out;
}

static outcome run_for(trun *r, const tnode *n, tframe *f) {
    tvalue items = loop_items(r, n, f);
    if (items.kind == TV_ERROR) return STOP;
    if (items.list->n == 0) return n->items[1] ? run_body(r, n->items[1], f) : GO_ON;
    tloop *loop = ta_alloc(&r->arena, sizeof *loop);
    if (!loop) return trun_fail_memory(r), STOP;
    *loop = (tloop){.items = items.list, .depth = ++r->loop_depth};
    outcome o = GO_ON;
    for (; loop->index < items.list->n && o != BREAK && o != STOP; loop->index++) {
        tframe own, *frame = scope_begin(r, &own, f, n->items[0]->op);
        bool ok = frame && assign_name(r, frame, (tstr){"loop", 4}, (tvalue){.kind = TV_LOOP, .loop = loop}) &&
                  assign(r, n->a, items.list->items[loop->index], frame);
        o = ok ? run_body(r, n->items[0], frame) : STOP;
        scope_end(r, &own);
    }
    r->loop_depth--;
    return o == STOP ? STOP : GO_ON;
}

static outcome run_if(trun *r, const tnode *n, tframe *f) {
    while (n->kind == TN_IF) {
        tvalue condition = eval(r, n->a, f);
        if (condition.kind == TV_ERROR) return STOP;
        if (tv_truth(condition)) return run_body(r, n->b, f);
        if (!n->c) return GO_ON;
        n = n->c; /* the elif, or the body of the else */
    }
    return run_body(r, n, f);
}

static outcome run_set(trun *r, const tnode *n, tframe *f) {
    tvalue v;
    if (n->kind == TN_SET) {
        v = eval(r, n->b, f);
    } else {
        tframe own, *frame = scope_begin(r, &own, f, n->b->op);
        v = r->captured = frame ? capture(r, n->b, frame) : tv_error();
        scope_end(r, &own);
        if (v.kind != TV_ERROR && n->c) v = eval(r, n->c, f);
    }
    return v.kind != TV_ERROR && assign(r, n->a, v, f) ? GO_ON : STOP;
}

static outcome run_macro(trun *r, const tnode *n, tframe *f) {
    tmacro *m = ta_alloc(&r->arena, sizeof *m);
    if (!m) return trun_fail_memory(r), STOP;
    *m = (tmacro){n, f};
    return assign_name(r, f, n->name, (tvalue){.kind = TV_MACRO, .macro = m}) ? GO_ON : STOP;
}

static outcome run_print(trun *r, const tnode *n, tframe *f) {
    tvalue v = eval(r, n->a, f);
    if (v.kind != TV_ERROR) tv_print(r, r->out, v, 0);
    return r->status == HUNCH_OK ? GO_ON : STOP;
}

static outcome run_statement(trun *r, const tnode *n, tframe *f) {
    switch (n->kind) {
    case TN_TEXT: tbuf_put(r->out, n->value.str.s, n->value.str.n); return GO_ON;
    case TN_PRINT: return run_print(r, n, f);
    case TN_IF: return run_if(r, n, f);
    case TN_FOR: return run_for(r, n, f);
    case TN_SET:
    case TN_SET_BLOCK: return run_set(r, n, f);
    case TN_MACRO: return run_macro(r, n, f);
    case TN_BREAK: return BREAK;
    case TN_CONTINUE: return CONTINUE;
    default: return run_body(r, n, f);
    }
}

static outcome run_body(trun *r, const tnode *n, tframe *f) {
    outcome o = go_deeper(r, n) ? GO_ON : STOP;
    for (size_t i = 0; i < n->n && o == GO_ON; i++) {
        r->line = n->items[i]->line;
        o = trun_step(r, 1) && !r->out->failed ? run_statement(r, n->items[i], f) : STOP;
    }
    r->depth--;
    return o;
}

hunch_status trun_body(trun *r, const tnode *body, const json_t *vars) {
    tframe top = {0};
    tvalue given = tv_from_json(r, vars, 0);
    if (given.kind != TV_DICT) return r->status;
    r->vars = given.dict;
    run_body(r, body, &top);
    return r->status;
}
