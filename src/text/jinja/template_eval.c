/* SPDX-License-Identifier: Apache-2.0 */
/* template_eval.c - evaluates expressions; what operators do with values: template_operators.c. */
#include <string.h>

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

/* What *values and **values add to the arguments: values to a list of `more`, names to it. */
static bool spread(trun *r, int op, tvalue v, targs *args) {
    if (op == '*') {
        v = v.kind == TV_UNDEFINED ? tv_fail_undefined(r, v) : tv_iterate(r, v);
        if (v.kind == TV_ERROR || !trun_step(r, v.list->n)) return false;
        tvalue *all = ta_alloc(&r->arena, (args->n + v.list->n + 1) * sizeof *all);
        if (!all) return trun_fail_memory(r), false;
        if (args->n) memcpy(all, args->values, args->n * sizeof *all);
        if (v.list->n) memcpy(all + args->n, v.list->items, v.list->n * sizeof *all);
        args->values = all;
        args->n += v.list->n;
        return true;
    }
    if (v.kind != TV_DICT) return trun_fail(r, "** takes a dict, not %s", tv_type_name(v)), false;
    struct tnamed *all = ta_alloc(&r->arena, (args->n_named + v.dict->n + 1) * sizeof *all); /* one more for caller */
    if (!all) return trun_fail_memory(r), false;
    if (args->n_named) memcpy(all, args->named, args->n_named * sizeof *all);
    args->named = all;
    for (size_t i = 0; i < v.dict->n; i++) {
        const tentry *e = &v.dict->entries[i];
        if (e->key.kind != TV_STRING)
            return trun_fail(r, "names of arguments are strings, not %s", tv_type_name(e->key)), false;
        for (size_t k = 0; k < args->n_named; k++)
            if (ts_same(all[k].name, e->key.str)) return trun_fail(r, "an argument is given twice"), false;
        all[args->n_named++] = (struct tnamed){e->key.str, e->value};
    }
    return trun_step(r, v.dict->n * (args->n_named + 1));
}

/* The parser has seen to it that values come before *values, and names before **values. */
static bool eval_arguments(trun *r, const tnode *n, tframe *f, targs *args) {
    *args =
        (targs){.values = ta_alloc(&r->arena, (n->n + 1) * sizeof *args->values),
                .named = ta_alloc(&r->arena, (n->n + (n->b != NULL)) * sizeof *args->named)}; /* one more for caller */
    if (!args->values || !args->named) return trun_fail_memory(r), false;
    for (size_t i = 0; i < n->n; i++) {
        const tnode *item = n->items[i];
        tvalue v = teval(r, item->kind == TN_KEYWORD || item->kind == TN_SPREAD ? item->a : item, f);
        if (v.kind == TV_ERROR) return false;
        if (item->kind == TN_KEYWORD)
            args->named[args->n_named++] = (struct tnamed){item->name, v};
        else if (item->kind != TN_SPREAD)
            args->values[args->n++] = v;
        else if (!spread(r, item->op, v, args))
            return false;
    }
    return true;
}

static tvalue eval_call(trun *r, const tnode *n, tframe *f) {
    targs args;
    tvalue callee = teval(r, n->a, f);
    if (callee.kind == TV_ERROR || !eval_arguments(r, n, f, &args)) return tv_error();
    if (n->b) {
        tvalue caller = tmacro_make(r, n->b, f);
        if (caller.kind == TV_ERROR) return caller;
        args.named[args.n_named++] = (struct tnamed){{"caller", 6}, caller};
    }
    r->line = n->line;
    switch (callee.kind) {
    case TV_UNDEFINED: return tv_fail_undefined(r, callee);
    case TV_MACRO: return tmacro_call(r, callee.macro, &args);
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

static tvalue eval_captured(trun *r, const tnode *n, tframe *f) {
    tframe own, *frame = tscope_begin(r, &own, f, n->a->op);
    tvalue v = frame ? tcapture(r, n->a, frame) : tv_error();
    tscope_end(r, &own);
    return v;
}

/* ---- an expression ---- */

static tvalue eval_node(trun *r, const tnode *n, tframe *f) {
    tvalue a, b;
    switch (n->kind) {
    case TN_CONST: return n->value;
    case TN_NAME: return tlook_up(r, f, n->name);
    case TN_CAPTURED: return eval_captured(r, n, f);
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
