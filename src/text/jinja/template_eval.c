/* SPDX-License-Identifier: Apache-2.0 */
/* template_eval.c - evaluates expressions; what operators do with values: template_operators.c. */
#include "text/jinja/template_run.h"

/* ---- operators ---- */

static tvalue eval_slice(trun *r, const tnode *n, tframe *f) {
    tvalue v = teval(r, n->a, f), part[3];
    if (v.kind == TV_ERROR) return v;
    if (v.kind == TV_UNDEFINED) return tv_fail_undefined(r, v);
    for (int i = 0; i < 3; i++) {
        part[i] = n->items[i] ? teval(r, n->items[i], f) : tv_none();
        if (part[i].kind == TV_ERROR) return part[i];
    }
    return tslice(r, v, part);
}

static tvalue eval_binary(trun *r, const tnode *n, tframe *f) {
    tvalue a = teval(r, n->a, f);
    if (a.kind == TV_ERROR) return a;
    tvalue b = teval(r, n->b, f);
    return b.kind == TV_ERROR ? b : tbinary(r, n->op, a, b);
}

static tvalue eval_comparison(trun *r, const tnode *n, tframe *f) {
    tvalue left = teval(r, n->a, f);
    bool holds = true;
    for (size_t i = 0; i < n->n && holds && left.kind != TV_ERROR; i++) {
        tvalue right = teval(r, n->items[i]->a, f);
        if (right.kind == TV_ERROR) return right;
        holds = tcompare(r, n->items[i]->op, left, right);
        left = right;
    }
    return !r->status ? tv_bool(holds) : tv_error();
}

static tvalue eval_lazy(trun *r, const tnode *n, tframe *f) {
    tvalue a = teval(r, n->a, f);
    if (a.kind == TV_ERROR) return a;
    if (n->kind == TN_AND) return tv_truth(a) ? teval(r, n->b, f) : a;
    if (n->kind == TN_OR) return tv_truth(a) ? a : teval(r, n->b, f);
    if (tv_truth(a)) return teval(r, n->b, f);
    return n->c ? teval(r, n->c, f) : tv_undefined("the inline if without else", 26);
}

/* ---- lists and dicts ---- */

static tvalue eval_items(trun *r, const tnode *n, tframe *f) {
    tvalue *items, v = tv_list(r, n->kind == TN_LIST ? TV_LIST : TV_TUPLE, n->n, &items);
    for (size_t i = 0; i < n->n && v.kind != TV_ERROR; i++) {
        items[i] = teval(r, n->items[i], f);
        if (items[i].kind == TV_ERROR) return items[i];
    }
    return v;
}

static tvalue eval_dict(trun *r, const tnode *n, tframe *f) {
    tvalue v = tv_dict(r, n->n / 2);
    for (size_t i = 0; i + 1 < n->n && v.kind != TV_ERROR; i += 2) {
        tvalue key = teval(r, n->items[i], f), value = key.kind == TV_ERROR ? key : teval(r, n->items[i + 1], f);
        if (value.kind == TV_ERROR || !tv_dict_put(r, v.dict, key, value)) return tv_error();
    }
    return v;
}

/* ---- calls, filters and tests ---- */

static bool eval_arguments(trun *r, const tnode *n, tframe *f, targs *args) {
    *args = (targs){.values = ta_alloc(&r->arena, (n->n + 1) * sizeof *args->values),
                    .named = ta_alloc(&r->arena, n->n * sizeof *args->named)};
    if (!args->values || !args->named) return trun_fail_memory(r), false;
    for (size_t i = 0; i < n->n; i++) {
        const tnode *item = n->items[i];
        bool keyword = item->kind == TN_KEYWORD;
        tvalue v = teval(r, keyword ? item->a : item, f);
        if (v.kind == TV_ERROR) return false;
        if (!keyword) {
            if (args->n_named) return trun_fail(r, "a positional argument after a keyword argument"), false;
            args->values[args->n++] = v;
            continue;
        }
        args->named[args->n_named++] = (struct tnamed){item->name, v};
    }
    return true;
}

static tvalue call_macro(trun *r, const tmacro *m, const targs *args) {
    const tnode *n = m->node;
    tframe own, *frame = tscope_begin(r, &own, m->frame, n->a->op);
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
        if (!given && parameter->a) v = teval(r, parameter->a, frame);
        if (v.kind == TV_ERROR || !tassign_name(r, frame, parameter->name, v)) return tv_error();
    }
    if (used < args->n_named)
        return trun_fail(r, "the macro %.*s has no such named argument, or it is given twice", (int)n->name.n,
                         n->name.s);
    tvalue out = tcapture(r, n->a, frame);
    tscope_end(r, &own);
    r->line = line;
    return out;
}

static tvalue eval_call(trun *r, const tnode *n, tframe *f) {
    targs args;
    tvalue callee = teval(r, n->a, f);
    if (callee.kind == TV_ERROR || !eval_arguments(r, n, f, &args)) return tv_error();
    r->line = n->line;
    switch (callee.kind) {
    case TV_UNDEFINED: return tv_fail_undefined(r, callee);
    case TV_MACRO: return call_macro(r, callee.macro, &args);
    case TV_FUNCTION: return tfunction_call(r, callee.function, &args);
    case TV_METHOD: return tmethod_call(r, callee.method, &args);
    default: return trun_fail(r, "a value of type %s cannot be called", tv_type_name(callee));
    }
}

static tvalue eval_filter(trun *r, const tnode *n, tframe *f) {
    targs args;
    tvalue v = teval(r, n->a, f);
    if (v.kind == TV_ERROR || !eval_arguments(r, n, f, &args)) return tv_error();
    r->line = n->line;
    if (n->kind == TN_FILTER) return tfilter_apply(r, n->name, v, &args);
    v = ttest_apply(r, n->name, v, &args);
    return v.kind == TV_BOOL ? tv_bool(v.b != (n->op != 0)) : v;
}

/* ---- an expression ---- */

static tvalue eval_node(trun *r, const tnode *n, tframe *f) {
    tvalue a, b;
    switch (n->kind) {
    case TN_CONST: return n->value;
    case TN_NAME: return tlook_up(r, f, n->name);
    case TN_CAPTURED: return r->captured;
    case TN_LIST:
    case TN_TUPLE: return eval_items(r, n, f);
    case TN_DICT: return eval_dict(r, n, f);
    case TN_ATTRIBUTE: a = teval(r, n->a, f); return a.kind == TV_ERROR ? a : tattribute(r, a, n->name);
    case TN_SUBSCRIPT:
        a = teval(r, n->a, f);
        b = a.kind == TV_ERROR ? a : teval(r, n->b, f);
        return b.kind == TV_ERROR ? b : tsubscript(r, a, b);
    case TN_SLICE: return eval_slice(r, n, f);
    case TN_CALL: return eval_call(r, n, f);
    case TN_FILTER:
    case TN_TEST: return eval_filter(r, n, f);
    case TN_UNARY: a = teval(r, n->a, f); return a.kind == TV_ERROR ? a : tunary(r, n->op, a);
    case TN_BINARY: return eval_binary(r, n, f);
    case TN_COMPARE: return eval_comparison(r, n, f);
    case TN_AND:
    case TN_OR:
    case TN_CHOICE: return eval_lazy(r, n, f);
    default: return trun_fail(r, "an expression of no known kind");
    }
}

tvalue teval(trun *r, const tnode *n, tframe *f) {
    tvalue v = trun_deeper(r, n) ? eval_node(r, n, f) : tv_error();
    r->depth--;
    return !r->status ? v : tv_error();
}
