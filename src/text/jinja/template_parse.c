/* SPDX-License-Identifier: Apache-2.0 */
/* template_parse.c - the parser's errors, nodes and tokens, with which the grammar is written: recursive descent over
 * Jinja's, without what chat templates never use (template_parse_expressions.c, template_parse_statements.c). */
#include "text/jinja/template_parse.h"

#include <stdio.h>
#include <string.h>

tnode *tp_fail(tparser *p, const char *what) {
    if (p->status) return NULL;
    ttoken k = p->token;
    static const char *const found[] = {[TT_END] = "the end",
                                        [TT_PRINT_END] = "}}",
                                        [TT_BLOCK_END] = "%}",
                                        [TT_PRINT_BEGIN] = "{{",
                                        [TT_BLOCK_BEGIN] = "{%"};
    bool named = k.kind == TT_NAME || k.kind == TT_OP;
    tstr s = named ? k.str : (tstr){"a value", 7};
    if (!named && k.kind < TT_NAME && k.kind != TT_TEXT) s = (tstr){found[k.kind], strlen(found[k.kind])};
    p->status = hn_fail(p->err, HUNCH_REFUSED, "chat template, line %d: %s, not %s%.*s%s", k.line, what,
                        named ? "\"" : "", s.n < 60 ? (int)s.n : 60, s.s, named ? "\"" : "");
    return NULL;
}

tnode *tp_refuse(tparser *p, int line, const char *what, tstr name) {
    if (!p->status) {
        p->status = hn_fail(p->err, HUNCH_REFUSED, "chat template, line %d: %s \"%.*s\" is not supported", line, what,
                            name.n < 60 ? (int)name.n : 60, name.s);
    }
    return NULL;
}

void *tp_alloc(tparser *p, size_t size) {
    void *m = ta_alloc(&p->t->arena, size);
    if (m)
        memset(m, 0, size);
    else if (!p->status)
        p->status = hn_fail_memory(p->err, "the chat template", size);
    return m;
}

tnode *tp_node(tparser *p, tnode_kind kind, tnode *a, tnode *b) {
    tnode *n = !p->status ? tp_alloc(p, sizeof *n) : NULL;
    if (n) *n = (tnode){.kind = kind, .line = p->token.line, .a = a, .b = b};
    return n;
}

bool tp_advance(tparser *p) {
    if (p->status) return false;
    if (!tlex_next(&p->lex, &p->token)) p->status = p->lex.status;
    return !p->status;
}

bool tp_at_op(const tparser *p, const char *op) {
    return !p->status && p->token.kind == TT_OP && ts_equal(p->token.str, op);
}

bool tp_at_name(const tparser *p, const char *name) {
    return !p->status && p->token.kind == TT_NAME && ts_equal(p->token.str, name);
}

bool tp_take_op(tparser *p, const char *op) {
    return tp_at_op(p, op) && tp_advance(p);
}

bool tp_take_name(tparser *p, const char *name) {
    return tp_at_name(p, name) && tp_advance(p);
}

bool tp_need_op(tparser *p, const char *op) {
    if (tp_at_op(p, op)) return tp_advance(p);
    char what[32];
    snprintf(what, sizeof what, "expected \"%s\"", op);
    tp_fail(p, what);
    return false;
}

bool tp_need_name(tparser *p, tstr *name) {
    if (p->status || p->token.kind != TT_NAME) return tp_fail(p, "expected a name"), false;
    *name = p->token.str;
    return tp_advance(p);
}

bool tp_need_end(tparser *p, ttoken_kind end) {
    if (!p->status && p->token.kind == end) return tp_advance(p);
    tp_fail(p, end == TT_BLOCK_END ? "expected %}" : "expected }}");
    return false;
}

/* The capacity is the next power of two. */
bool tp_append(tparser *p, tnode *to, tnode *item) {
    if (p->status) return false;
    if ((to->n & (to->n - 1)) == 0) { /* 0 or a power of two: full */
        tnode **grown = tp_alloc(p, (to->n ? 2 * to->n : 1) * sizeof *grown);
        if (!grown) return false;
        if (to->n) memcpy(grown, to->items, to->n * sizeof *grown);
        to->items = grown;
    }
    to->items[to->n++] = item;
    return true;
}

bool tp_enter(tparser *p) {
    if (p->depth++ < HN_TPL_MAX_DEPTH) return !p->status;
    if (!p->status) {
        p->status = hn_fail(p->err, HUNCH_REFUSED, "chat template, line %d: nested deeper than %d", p->token.line,
                            HN_TPL_MAX_DEPTH);
    }
    return false;
}

tnode *tp_items_until(tparser *p, tnode *n, const char *close, bool (*item)(tparser *, tnode *)) {
    while (n && !p->status && !tp_at_op(p, close)) {
        if (!item(p, n) || (!tp_at_op(p, close) && !tp_need_op(p, ","))) return NULL;
    }
    return n && tp_need_op(p, close) ? n : NULL;
}

hunch_status tparse(hn_template *t, hunch_error *err) {
    tparser p = {.t = t, .err = err};
    tlex_init(&p.lex, t, err);
    if (tp_advance(&p)) t->body = tp_body(&p, NULL);
    for (int i = 0; i < TP_UNBUILT; i++)
        if (p.called[i] && !p.set[i]) tp_refuse(&p, p.called[i], "the function", tfunction_name(i));
    return p.status;
}
