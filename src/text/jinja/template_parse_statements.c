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

static tnode *set_statement(tparser *p) {
    static const char *const ends[] = {"endset", NULL};
    tnode *n = tp_node(p, TN_SET, target(p), NULL);
    if (!n) return NULL;
    if (tp_take_op(p, "=")) {
        n->b = tp_tuple_or_expression(p);
        return tp_need_end(p, TT_BLOCK_END) ? n : NULL;
    }
    n->kind = TN_SET_BLOCK;
    if (tp_at_op(p, "|")) n->c = tp_filters(p, tp_node(p, TN_CAPTURED, NULL, NULL));
    if (!tp_need_end(p, TT_BLOCK_END)) return NULL;
    n->b = tp_body(p, ends);
    return end_of(p, "endset") ? n : NULL;
}

static bool parameter(tparser *p, tnode *macro) {
    tnode *n = tp_node(p, TN_NAME, NULL, NULL);
    if (!n || !tp_need_name(p, &n->name)) return false;
    if (tp_take_op(p, "=")) n->a = tp_expression(p);
    return tp_append(p, macro, n);
}

static tnode *macro_statement(tparser *p) {
    static const char *const ends[] = {"endmacro", NULL};
    tnode *n = tp_node(p, TN_MACRO, NULL, NULL);
    int loops = p->loops;
    p->macros++;
    if (!n || !tp_need_name(p, &n->name) || !tp_need_op(p, "(") || !tp_items_until(p, n, ")", parameter) ||
        !tp_need_end(p, TT_BLOCK_END))
        return NULL;
    p->loops = 0;
    n->a = tp_body(p, ends);
    p->loops = loops;
    return end_of(p, "endmacro") ? n : NULL;
}

static tnode *jump_statement(tparser *p, tnode_kind kind) {
    tnode *n = tp_node(p, kind, NULL, NULL);
    if (!p->loops) return tp_fail(p, "break and continue are only allowed inside a loop");
    return n && tp_need_end(p, TT_BLOCK_END) ? n : NULL;
}

/* {% generation %}: Hugging Face's mark of the assistant's text, which is output as usual. */
static tnode *generation_statement(tparser *p) {
    static const char *const ends[] = {"endgeneration", NULL};
    if (!tp_need_end(p, TT_BLOCK_END)) return NULL;
    tnode *n = tp_body(p, ends);
    return end_of(p, "endgeneration") ? n : NULL;
}

static tnode *statement(tparser *p) {
    if (tp_take_name(p, "if")) return if_statement(p);
    if (tp_take_name(p, "for")) return for_statement(p);
    if (tp_take_name(p, "set")) return set_statement(p);
    if (tp_take_name(p, "macro")) return macro_statement(p);
    if (tp_take_name(p, "break")) return jump_statement(p, TN_BREAK);
    if (tp_take_name(p, "continue")) return jump_statement(p, TN_CONTINUE);
    if (tp_take_name(p, "generation")) return generation_statement(p);
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
