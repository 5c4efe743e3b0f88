/* SPDX-License-Identifier: Apache-2.0 */
/* template_parse_statements.c - the grammar of statements, and of the text and the tags between which they stand. */
#include "text/jinja/template_parse.h"

/* ---- targets of for and set ---- */

static tnode *target(tparser *p);

/* a   ns.a   (targets) */
static tnode *one_target(tparser *p) {
    tnode *n = NULL;
    if (tp_take_op(p, "(")) {
        if (tp_enter(p)) n = target(p);
        p->depth--;
        return tp_need_op(p, ")") ? n : NULL;
    }
    n = tp_node(p, TN_NAME, NULL, NULL);
    if (!n || !tp_need_name(p, &n->name)) return NULL;
    if (!tp_at_op(p, ".")) tp_name_set(p, n->name);
    while (tp_take_op(p, ".")) {
        n = tp_node(p, TN_ATTRIBUTE, n, NULL);
        if (!n || !tp_need_name(p, &n->name)) return NULL;
    }
    return n;
}

static tnode *target(tparser *p) {
    return tp_tuple_of(p, one_target);
}

/* ---- statements ---- */

static bool end_of(tparser *p, const char *name) {
    return tp_take_name(p, name) ? tp_need_end(p, TT_BLOCK_END) : (tp_fail(p, "expected the end of the block"), false);
}

static tnode *if_statement(tparser *p) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    p->conditions++;
    tnode *n = tp_node(p, TN_IF, NULL, NULL);
    if (n && (n->a = tp_tuple_or_expression(p)) && tp_need_end(p, TT_BLOCK_END)) n->b = tp_body(p, ends);
    if (tp_take_name(p, "elif")) {
        if (n && tp_enter(p)) n->c = if_statement(p); /* consumes the endif */
        p->depth--;
    } else if (tp_take_name(p, "else")) {
        static const char *const last[] = {"endif", NULL};
        if (n && tp_need_end(p, TT_BLOCK_END)) n->c = tp_body(p, last);
        end_of(p, "endif");
    } else {
        end_of(p, "endif");
    }
    p->conditions--;
    return n;
}

static tnode *for_statement(tparser *p) {
    static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    tnode *n = tp_node(p, TN_FOR, NULL, NULL), *otherwise = NULL;
    if (!n || !(n->a = target(p))) return NULL;
    if (!tp_take_name(p, "in")) return tp_fail(p, "expected \"in\"");
    /* The iterable is not an inline if: an "if" after it is the loop's condition. */
    n->b = tp_tuple_of(p, tp_disjunction);
    if (tp_take_name(p, "if")) n->c = tp_expression(p);
    if (tp_at_name(p, "recursive")) return tp_refuse(p, n->line, "the for loop that is", p->token.str);
    if (!tp_need_end(p, TT_BLOCK_END)) return NULL;
    p->loops++;
    tnode *inner = tp_body(p, ends);
    p->loops--;
    if (tp_take_name(p, "else") && tp_need_end(p, TT_BLOCK_END)) otherwise = tp_body(p, last);
    return end_of(p, "endfor") && tp_append(p, n, inner) && tp_append(p, n, otherwise) ? n : NULL;
}

/* A body whose output is a value: a loop's break and continue cannot leave it. */
static tnode *captured_body(tparser *p, const char *const *ends) {
    const int loops = p->loops;
    p->loops = 0;
    tnode *body = tp_body(p, ends);
    p->loops = loops;
    return body;
}

static tnode *set_statement(tparser *p) {
    static const char *const ends[] = {"endset", NULL};
    tnode *n = tp_node(p, TN_SET, target(p), NULL), *captured;
    if (!n) return NULL;
    if (tp_take_op(p, "=")) {
        n->b = tp_tuple_or_expression(p);
        return tp_need_end(p, TT_BLOCK_END) ? n : NULL;
    }
    captured = tp_node(p, TN_CAPTURED, NULL, NULL);
    n->b = tp_filter_chain(p, captured, false);
    if (!n->b || !tp_need_end(p, TT_BLOCK_END)) return NULL;
    captured->a = captured_body(p, ends);
    return end_of(p, "endset") ? n : NULL;
}

static tnode *filter_statement(tparser *p) {
    static const char *const ends[] = {"endfilter", NULL};
    tnode *captured = tp_node(p, TN_CAPTURED, NULL, NULL),
          *n = tp_node(p, TN_PRINT, tp_filter_chain(p, captured, true), NULL);
    if (!n || !tp_need_end(p, TT_BLOCK_END)) return NULL;
    captured->a = captured_body(p, ends);
    return end_of(p, "endfilter") ? n : NULL;
}

static tnode *with_statement(tparser *p) {
    static const char *const ends[] = {"endwith", NULL};
    tnode *n = tp_node(p, TN_WITH, NULL, NULL);
    while (n && !p->status && p->token.kind != TT_BLOCK_END) {
        if (n->n && !tp_need_op(p, ",")) return NULL;
        if (!tp_append(p, n, target(p)) || !tp_need_op(p, "=") || !tp_append(p, n, tp_expression(p))) return NULL;
    }
    if (!n || !tp_need_end(p, TT_BLOCK_END)) return NULL;
    n->a = tp_body(p, ends);
    return end_of(p, "endwith") ? n : NULL;
}

static tnode *print_statement(tparser *p) {
    tnode *n = tp_node(p, TN_BODY, NULL, NULL);
    while (n && !p->status && p->token.kind != TT_BLOCK_END) {
        if (n->n && !tp_need_op(p, ",")) return NULL;
        if (!tp_append(p, n, tp_node(p, TN_PRINT, tp_expression(p), NULL))) return NULL;
    }
    return tp_need_end(p, TT_BLOCK_END) ? n : NULL;
}

/* ---- macros ---- */

static bool parameter(tparser *p, tnode *macro) {
    tnode *n = tp_node(p, TN_NAME, NULL, NULL);
    if (!n || !tp_need_name(p, &n->name)) return false;
    if (tp_take_op(p, "="))
        n->a = tp_expression(p);
    else if (macro->n && macro->items[macro->n - 1]->a)
        return tp_fail(p, "expected a default for a parameter after one with a default"), false;
    return tp_append(p, macro, n);
}

/* The body of a macro. What it asks for, the macro around it asks for too, as in Jinja. */
static bool macro_body(tparser *p, tnode *n, const char *const *ends) {
    const int asked = p->asked, own = p->own;
    p->macros++;
    p->asked = p->own = 0;
    for (size_t i = 0; i < n->n; i++) tp_name_set(p, n->items[i]->name);
    if (tp_need_end(p, TT_BLOCK_END)) n->a = captured_body(p, ends);
    n->op = p->asked;
    p->asked = asked | (p->asked & ~own);
    p->own |= own;
    return end_of(p, ends[0]);
}

static tnode *macro_statement(tparser *p) {
    static const char *const ends[] = {"endmacro", NULL};
    tnode *n = tp_node(p, TN_MACRO, NULL, NULL);
    if (!n || !tp_need_name(p, &n->name)) return NULL;
    tp_name_set(p, n->name);
    if (!tp_need_op(p, "(") || !tp_items_until(p, n, ")", parameter)) return NULL;
    return macro_body(p, n, ends) ? n : NULL;
}

/* {% call(parameters) macro(arguments) %}: the body is a macro, the argument caller of the call. */
static tnode *call_statement(tparser *p) {
    static const char *const ends[] = {"endcall", NULL};
    tnode *n = tp_node(p, TN_PRINT, NULL, NULL), *macro = tp_node(p, TN_MACRO, NULL, NULL);
    if (!n || !macro) return NULL;
    macro->name = (tstr){"caller", 6};
    if (tp_take_op(p, "(") && !tp_items_until(p, macro, ")", parameter)) return NULL;
    n->a = tp_expression(p);
    if (!n->a || n->a->kind != TN_CALL) return tp_fail(p, "expected a call of a macro before the end of the tag");
    n->a->b = macro;
    return macro_body(p, macro, ends) ? n : NULL;
}

static tnode *jump_statement(tparser *p, tnode_kind kind) {
    tnode *n = tp_node(p, kind, NULL, NULL);
    if (!p->loops)
        return tp_fail(
            p, "break and continue are only allowed inside a loop, and not in a block inside it that is captured");
    return n && tp_need_end(p, TT_BLOCK_END) ? n : NULL;
}

/* {% generation %}: Hugging Face's mark of the assistant's text, which is output as usual. */
static tnode *generation_statement(tparser *p) {
    static const char *const ends[] = {"endgeneration", NULL};
    if (!tp_need_end(p, TT_BLOCK_END)) return NULL;
    tnode *n = tp_body(p, ends);
    return end_of(p, "endgeneration") ? n : NULL;
}

static tnode *break_statement(tparser *p) {
    return jump_statement(p, TN_BREAK);
}

static tnode *continue_statement(tparser *p) {
    return jump_statement(p, TN_CONTINUE);
}

static tnode *statement(tparser *p) {
    static const struct {
        const char *name;
        tnode *(*parse)(tparser *);
    } statements[] = {
        {"if", if_statement},
        {"for", for_statement},
        {"set", set_statement},
        {"macro", macro_statement},
        {"call", call_statement},
        {"filter", filter_statement},
        {"with", with_statement},
        {"print", print_statement},
        {"break", break_statement},
        {"continue", continue_statement},
        {"generation", generation_statement},
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (tp_take_name(p, statements[i].name)) return statements[i].parse(p);
    if (p->token.kind == TT_NAME) return tp_refuse(p, p->token.line, "the statement", p->token.str);
    return tp_fail(p, "expected a statement");
}

/* ---- bodies ---- */

static bool at_end(const tparser *p, const char *const *ends) {
    for (; ends && *ends; ends++) {
        if (tp_at_name(p, *ends)) return true;
    }
    return false;
}

tnode *tp_body(tparser *p, const char *const *ends) {
    tnode *n = tp_node(p, TN_BODY, NULL, NULL);
    int macros = p->macros;
    if (!tp_enter(p)) n = NULL;
    while (n && !p->status) {
        ttoken k = p->token;
        if (k.kind == TT_END && !ends) break;
        if (k.kind == TT_END) return tp_fail(p, "expected the end of a block");
        tp_advance(p);
        tnode *item = NULL;
        if (k.kind == TT_TEXT) {
            if (k.str.n == 0) continue;
            item = tp_node(p, TN_TEXT, NULL, NULL);
            if (item) item->value = tv_str(k.str.s, k.str.n);
        } else if (k.kind == TT_PRINT_BEGIN) {
            item = tp_node(p, TN_PRINT, tp_tuple_or_expression(p), NULL);
            tp_need_end(p, TT_PRINT_END);
        } else {
            if (at_end(p, ends)) break;
            item = statement(p);
        }
        tp_append(p, n, item);
    }
    p->depth--;
    if (n) n->op = p->macros > macros;
    return !p->status ? n : NULL;
}
