/* SPDX-License-Identifier: Apache-2.0 */
/* template_statements.c - runs the statements of a body, and so a whole template. */
#include "text/jinja/template_run.h"

tvalue tcapture(trun *r, const tnode *body, tframe *f) {
    tbuf own = {.arena = &r->arena}, *out = r->out;
    r->out = &own;
    toutcome o = trun_statements(r, body, f);
    r->out = out;
    return o == TRUN_STOP ? tv_error() : tv_buffer(r, &own);
}

static toutcome run_if(trun *r, const tnode *n, tframe *f) {
    while (n->kind == TN_IF) {
        tvalue condition = teval(r, n->a, f);
        if (condition.kind == TV_ERROR) return TRUN_STOP;
        if (tv_truth(condition)) return trun_statements(r, n->b, f);
        if (!n->c) return TRUN_ON;
        n = n->c; /* the elif, or the body of the else */
    }
    return trun_statements(r, n, f);
}

static toutcome run_set(trun *r, const tnode *n, tframe *f) {
    tvalue v = teval(r, n->b, f);
    return v.kind != TV_ERROR && tassign(r, n->a, v, f) ? TRUN_ON : TRUN_STOP;
}

/* Its values are those of the scope around it. */
static toutcome run_with(trun *r, const tnode *n, tframe *f) {
    tframe own, *frame = tscope_begin(r, &own, f, n->a->op);
    bool ok = frame != NULL;
    for (size_t i = 0; ok && i < n->n; i += 2) {
        tvalue v = teval(r, n->items[i + 1], f);
        ok = v.kind != TV_ERROR && tassign(r, n->items[i], v, frame);
    }
    toutcome o = ok ? trun_statements(r, n->a, frame) : TRUN_STOP;
    tscope_end(r, &own);
    return o;
}

static toutcome run_macro(trun *r, const tnode *n, tframe *f) {
    tvalue v = tmacro_make(r, n, f);
    return v.kind != TV_ERROR && tassign_name(r, f, n->name, v) ? TRUN_ON : TRUN_STOP;
}

static toutcome run_print(trun *r, const tnode *n, tframe *f) {
    tvalue v = teval(r, n->a, f);
    if (v.kind != TV_ERROR) tv_print(r, r->out, v, 0);
    return !r->status ? TRUN_ON : TRUN_STOP;
}

static toutcome run_statement(trun *r, const tnode *n, tframe *f) {
    switch (n->kind) {
    case TN_TEXT: tbuf_put(r->out, n->value.str.s, n->value.str.n); return TRUN_ON;
    case TN_PRINT: return run_print(r, n, f);
    case TN_IF: return run_if(r, n, f);
    case TN_FOR: return trun_for(r, n, f);
    case TN_SET: return run_set(r, n, f);
    case TN_WITH: return run_with(r, n, f);
    case TN_MACRO: return run_macro(r, n, f);
    case TN_BREAK: return TRUN_BREAK;
    case TN_CONTINUE: return TRUN_CONTINUE;
    default: return trun_statements(r, n, f);
    }
}

toutcome trun_statements(trun *r, const tnode *n, tframe *f) {
    toutcome o = trun_deeper(r, n) ? TRUN_ON : TRUN_STOP;
    for (size_t i = 0; i < n->n && o == TRUN_ON; i++) {
        r->line = n->items[i]->line;
        o = trun_step(r, 1) && !r->out->failed ? run_statement(r, n->items[i], f) : TRUN_STOP;
    }
    r->depth--;
    return o;
}

hunch_status trun_body(trun *r, const tnode *body, const json_t *vars) {
    tframe top = {0};
    tvalue given = tv_from_json(r, vars, 0);
    if (given.kind != TV_DICT) return r->status;
    r->vars = given.dict;
    trun_statements(r, body, &top);
    return r->status;
}
