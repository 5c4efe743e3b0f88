/* SPDX-License-Identifier: Apache-2.0 */
/* template_eval.c - evaluates a syntax tree: statements, expressions, scopes.
 *
 * Scopes as in Jinja: a for loop's body (in each iteration) and a macro have one of their own, an if has none; a macro sees
 * the variables of the scope of its definition as they are when it is called. Names that nothing sets are undefined, which
 * prints as nothing and gives an error if an attribute is read.
 */
#include <stdio.h>
#include <string.h>

#include "text/jinja/template_private.h"

tvalue trun_fail(trun *r, const char *fmt, ...) {
    if (r->status) return tv_error();
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *c = text; *c; c++) { /* a template's own message may have line ends */
        if (*c == '\n' || *c == '\r') *c = ' ';
    }
    r->status = hn_fail(r->err, HUNCH_USAGE, "chat template, line %d: %s", r->line, text);
    return tv_error();
}

tvalue trun_fail_memory(trun *r) {
    if (r->arena.exhausted) return trun_fail(r, "needs more than %d MiB", HN_TPL_MAX_MEMORY >> 20);
    if (!r->status) r->status = hn_fail_memory(r->err, "the chat template", 0);
    return tv_error();
}

bool trun_step(trun *r, size_t n) {
    r->steps += n;
    if (r->steps > HN_TPL_MAX_STEPS) trun_fail(r, "takes more than %d steps", HN_TPL_MAX_STEPS);
    return !r->status;
}

bool trun_text(trun *r, size_t bytes) {
    return trun_step(r, bytes / HN_TPL_STEP_BYTES);
}

bool trun_value(trun *r, tvalue v) {
    if (v.kind == TV_STRING) return trun_text(r, v.str.n);
    if (tv_is_list(v)) return trun_step(r, v.list->n / HN_TPL_STEP_ITEMS);
    return v.kind == TV_DICT ? trun_step(r, v.dict->n / HN_TPL_STEP_ITEMS) : !r->status;
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

/* Opens a scope, in `own` and released by scope_end; or, if a macro is defined in it, which may outlive it, in the arena.
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

/* Recycles the variables, as loops have many iterations. */
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

/* ---- loops ---- */

/* Evaluates the loop's condition until n elements have passed it. False: there are fewer, or an error is set. */
static bool loop_filter(trun *r, tloop *l, size_t n) {
    int line = r->line;
    while (l->n < n && l->frame && l->n_tested < l->items->n) {
        tvalue item = l->items->items[l->n_tested++];
        tframe frame = {.parent = l->frame};
        if (!assign(r, l->node->a, item, &frame)) return false;
        tvalue keep = eval(r, l->node->c, &frame);
        if (keep.kind == TV_ERROR) return false;
        if (tv_truth(keep)) l->kept[l->n++] = item;
        scope_end(r, &frame);
    }
    r->line = line;
    return l->n >= n;
}

static tloop *loop_begin(trun *r, const tnode *n, tvalue items, tframe *f) {
    tloop *l = ta_alloc(&r->arena, sizeof *l);
    if (l) *l = (tloop){.items = items.list, .kept = items.list->items, .n = items.list->n, .depth = ++r->loop_depth};
    if (l && n->c) {
        l->node = n;
        l->frame = f;
        l->n = 0;
        l->kept = ta_alloc(&r->arena, items.list->n * sizeof *l->kept);
    }
    if (!l || !l->kept) return trun_fail_memory(r), NULL;
    return l;
}

static tvalue loop_attribute(trun *r, tloop *l, tstr name) {
    static const struct {
        const char *name;
        char what;
        size_t ahead; /* following elements that must be known */
    } known[] = {{"index", 'i', 0},    {"index0", '0', 0},           {"first", 'f', 0},
                 {"last", 'l', 1},     {"length", 'n', SIZE_MAX},    {"revindex", 'r', SIZE_MAX},
                 {"depth", 'd', 0},    {"revindex0", 'R', SIZE_MAX}, {"depth0", 'D', 0},
                 {"previtem", 'p', 0}, {"nextitem", 'x', 1}};
    size_t k = 0;
    while (k < sizeof known / sizeof *known && !ts_equal(name, known[k].name)) k++;
    if (k == sizeof known / sizeof *known)
        return trun_fail(r, "loop.%.*s is not supported", name.n < 60 ? (int)name.n : 60, name.s);
    if (known[k].ahead) loop_filter(r, l, known[k].ahead == SIZE_MAX ? SIZE_MAX : l->index + 1 + known[k].ahead);
    if (r->status) return tv_error();
    int64_t i = (int64_t)l->index, n = (int64_t)l->n;
    switch (known[k].what) {
    case 'i': return tv_int(i + 1);
    case '0': return tv_int(i);
    case 'f': return tv_bool(i == 0);
    case 'l': return tv_bool(i + 1 >= n);
    case 'n': return tv_int(n);
    case 'r': return tv_int(n - i);
    case 'R': return tv_int(n - i - 1);
    case 'd': return tv_int(l->depth);
    case 'D': return tv_int(l->depth - 1);
    case 'p': return i > 0 && i <= n ? l->kept[i - 1] : tv_undefined("previtem", 8);
    default: return i + 1 < n ? l->kept[i + 1] : tv_undefined("nextitem", 8);
    }
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
    if (v.kind == TV_LOOP) return loop_attribute(r, v.loop, name);
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

/* ---- operators ---- */

static tvalue eval_slice(trun *r, const tnode *n, tframe *f) {
    tvalue v = eval(r, n->a, f), part[3];
    if (v.kind == TV_ERROR) return v;
    if (v.kind == TV_UNDEFINED) return tv_fail_undefined(r, v);
    for (int i = 0; i < 3; i++) {
        part[i] = n->items[i] ? eval(r, n->items[i], f) : tv_none();
        if (part[i].kind == TV_ERROR) return part[i];
    }
    return tslice(r, v, part);
}

static tvalue eval_binary(trun *r, const tnode *n, tframe *f) {
    tvalue a = eval(r, n->a, f);
    if (a.kind == TV_ERROR) return a;
    tvalue b = eval(r, n->b, f);
    return b.kind == TV_ERROR ? b : tbinary(r, n->op, a, b);
}

static tvalue eval_comparison(trun *r, const tnode *n, tframe *f) {
    tvalue left = eval(r, n->a, f);
    bool holds = true;
    for (size_t i = 0; i < n->n && holds && left.kind != TV_ERROR; i++) {
        tvalue right = eval(r, n->items[i]->a, f);
        if (right.kind == TV_ERROR) return right;
        holds = tcompare(r, n->items[i]->op, left, right);
        left = right;
    }
    return !r->status ? tv_bool(holds) : tv_error();
}

/* ---- calls ---- */

static bool eval_arguments(trun *r, const tnode *n, tframe *f, targs *args) {
    *args = (targs){.values = ta_alloc(&r->arena, (n->n + 1) * sizeof *args->values),
                    .named = ta_alloc(&r->arena, n->n * sizeof *args->named)};
    if (!args->values || !args->named) return trun_fail_memory(r), false;
    for (size_t i = 0; i < n->n; i++) {
        const tnode *item = n->items[i];
        bool keyword = item->kind == TN_KEYWORD;
        tvalue v = eval(r, keyword ? item->a : item, f);
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

typedef enum outcome { GO_ON, BREAK, CONTINUE, STOP } outcome;
static outcome run_body(trun *r, const tnode *n, tframe *f);

/* Runs a body and returns its output as a string. */
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
    case TV_UNDEFINED: return tv_fail_undefined(r, callee);
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
    case TN_UNARY: a = eval(r, n->a, f); return a.kind == TV_ERROR ? a : tunary(r, n->op, a);
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
    return !r->status ? v : tv_error();
}

/* ---- statements ---- */

/* Runs the body of a for statement in a scope of its own. loop: NULL for its else, if it had no element. */
static outcome run_inner(trun *r, const tnode *n, const tnode *body, tframe *f, tloop *loop) {
    tframe own, *frame = scope_begin(r, &own, f, body->op);
    bool ok = frame != NULL;
    if (ok && loop)
        ok = assign_name(r, frame, (tstr){"loop", 4}, (tvalue){.kind = TV_LOOP, .loop = loop}) &&
             assign(r, n->a, loop->kept[loop->index], frame);
    outcome o = ok ? run_body(r, body, frame) : STOP;
    scope_end(r, &own);
    return o;
}

static outcome run_for(trun *r, const tnode *n, tframe *f) {
    tvalue items = eval(r, n->b, f);
    if (items.kind != TV_ERROR) items = tv_iterate(r, items);
    tloop *loop = items.kind == TV_ERROR ? NULL : loop_begin(r, n, items, f);
    if (!loop) return STOP;
    outcome o = GO_ON;
    for (size_t i = 0; o != BREAK && o != STOP && loop_filter(r, loop, i + 1); i++) {
        loop->index = i;
        o = run_inner(r, n, n->items[0], f, loop);
    }
    loop->frame = NULL;
    r->loop_depth--;
    if (r->status) return STOP;
    if (loop->n == 0 && n->items[1]) return run_inner(r, n, n->items[1], f, NULL);
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
    return !r->status ? GO_ON : STOP;
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
