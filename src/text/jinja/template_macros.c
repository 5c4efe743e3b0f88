/* SPDX-License-Identifier: Apache-2.0 */
/* template_macros.c - macros: what a call gives their parameters, caller of a call block, and what MACRO.NAME is. */
#include "text/jinja/template_run.h"

tvalue tmacro_make(trun *r, const tnode *n, tframe *f) {
    tmacro *m = ta_alloc(&r->arena, sizeof *m);
    if (!m) return trun_fail_memory(r);
    *m = (tmacro){n, f};
    return (tvalue){.kind = TV_MACRO, .macro = m};
}

/* The named arguments of a call that are left; what is taken from them goes. */
typedef struct leftover {
    struct tnamed *named;
    size_t n;
} leftover;

static bool take_named(leftover *l, tstr name, tvalue *out) {
    for (size_t i = 0; i < l->n; i++) {
        if (!ts_same(l->named[i].name, name)) continue;
        *out = l->named[i].value;
        for (l->n--; i < l->n; i++) l->named[i] = l->named[i + 1];
        return true;
    }
    return false;
}

/* Sets what a macro asks for beside its parameters: caller, kwargs, varargs. False: an error. */
static bool set_others(trun *r, const tnode *n, const targs *args, leftover *l, bool has_caller, tframe *frame) {
    const size_t extra = args->n > n->n ? args->n - n->n : 0;
    tvalue v = tv_undefined("caller", 6), *items;
    if (n->op & TMACRO_CALLER && !has_caller) {
        take_named(l, (tstr){"caller", 6}, &v);
        if (!tassign_name(r, frame, (tstr){"caller", 6}, v)) return false;
    }
    if (n->op & TMACRO_NAMED) {
        v = targs_dict(r, &(targs){.named = l->named, .n_named = l->n});
        if (v.kind == TV_ERROR || !tassign_name(r, frame, (tstr){"kwargs", 6}, v)) return false;
    } else if (l->n) {
        return trun_fail(r, "the macro %.*s takes no argument %.*s, or it is given twice", (int)n->name.n, n->name.s,
                         l->named->name.n < 60 ? (int)l->named->name.n : 60, l->named->name.s),
               false;
    }
    if (n->op & TMACRO_MORE) {
        v = tv_list(r, TV_TUPLE, extra, &items);
        for (size_t i = 0; v.kind != TV_ERROR && i < extra; i++) items[i] = args->values[n->n + i];
        return v.kind != TV_ERROR && tassign_name(r, frame, (tstr){"varargs", 7}, v);
    }
    if (extra) trun_fail(r, "the macro %.*s takes at most %zu arguments", (int)n->name.n, n->name.s, n->n);
    return !extra;
}

/* Sets the parameters. */
static bool set_parameters(trun *r, const tnode *n, const targs *args, tframe *frame) {
    leftover left = {.named = args->named, .n = args->n_named};
    bool has_caller = false;
    for (size_t i = 0; i < n->n; i++) {
        const tnode *parameter = n->items[i];
        tvalue v = i < args->n ? args->values[i] : tv_undefined(parameter->name.s, parameter->name.n);
        has_caller |= ts_equal(parameter->name, "caller");
        if (i >= args->n && !take_named(&left, parameter->name, &v) && parameter->a) v = teval(r, parameter->a, frame);
        if (v.kind == TV_ERROR || !tassign_name(r, frame, parameter->name, v)) return false;
    }
    return set_others(r, n, args, &left, has_caller, frame);
}

tvalue tmacro_call(trun *r, const tmacro *m, const targs *args) {
    const tnode *n = m->node;
    tframe own, *frame = tscope_begin(r, &own, m->frame, n->a->op);
    const int line = r->line;
    if (!frame || !set_parameters(r, n, args, frame)) return tv_error();
    tvalue out = tcapture(r, n->a, frame);
    tscope_end(r, &own);
    r->line = line;
    return out;
}

tvalue tmacro_attribute(trun *r, const tmacro *m, tstr name) {
    static const struct {
        const char *name;
        int asks;
    } known[] = {{"caller", TMACRO_CALLER}, {"catch_kwargs", TMACRO_NAMED}, {"catch_varargs", TMACRO_MORE}};
    const tnode *n = m->node;
    tvalue *items, v;
    if (ts_equal(name, "name")) return tv_str(n->name.s, n->name.n);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ts_equal(name, known[i].name)) return tv_bool(n->op & known[i].asks);
    if (!ts_equal(name, "arguments")) return tv_undefined(name.s, name.n);
    v = tv_list(r, TV_TUPLE, n->n, &items);
    for (size_t i = 0; v.kind != TV_ERROR && i < n->n; i++) items[i] = tv_str(n->items[i]->name.s, n->items[i]->name.n);
    return v;
}
