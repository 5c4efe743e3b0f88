/* SPDX-License-Identifier: Apache-2.0 */
/* template_run.c - the state of one rendering: its first error, the steps that it may take, its scopes and their variables.
 *
 * Scopes as in Jinja: a for loop's body (in each iteration) and a macro have one of their own, an if has none; a macro sees
 * the variables of the scope of its definition as they are when it is called. Names that nothing sets are undefined, which
 * prints as nothing and gives an error if an attribute is read.
 */
#include "text/jinja/template_run.h"

#include <stdio.h>

/* ---- errors and limits ---- */

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

bool trun_deeper(trun *r, const tnode *n) {
    r->line = n->line;
    if (r->depth++ >= HN_TPL_MAX_CALLS) trun_fail(r, "nested deeper than %d", HN_TPL_MAX_CALLS);
    return trun_step(r, 1);
}

/* ---- scopes and names ---- */

static tvar *find_own(trun *r, tframe *f, tstr name) {
    size_t seen = 0;
    for (tvar *v = f->vars; v; v = v->next) {
        if (++seen % 32 == 0 && !trun_step(r, 4)) return NULL;
        if (ts_same(v->name, name)) return v;
    }
    return NULL;
}

tvalue tlook_up(trun *r, tframe *f, tstr name) {
    for (; f; f = f->parent) {
        tvar *v = find_own(r, f, name);
        if (v) return v->value;
    }
    const tvalue *given = tv_dict_find(r, r->vars, name);
    if (given) return *given;
    int function;
    if (tfunction_find(name, &function) == TFOUND_NOT) return tv_undefined(name.s, name.n);
    return (tvalue){.kind = TV_FUNCTION, .function = function};
}

tframe *tscope_begin(trun *r, tframe *own, tframe *parent, bool outlives) {
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
void tscope_end(trun *r, tframe *own) {
    for (tvar *v; (v = own->vars) != NULL;) {
        own->vars = v->next;
        v->next = r->spare;
        r->spare = v;
    }
}

bool tassign_name(trun *r, tframe *f, tstr name, tvalue value) {
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

bool tassign(trun *r, const tnode *target, tvalue value, tframe *f) {
    if (target->kind == TN_NAME) return tassign_name(r, f, target->name, value);
    if (target->kind == TN_ATTRIBUTE) {
        tvalue space = teval(r, target->a, f);
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
        if (!tassign(r, target->items[i], items.list->items[i], f)) return false;
    }
    return true;
}
