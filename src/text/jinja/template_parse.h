/* SPDX-License-Identifier: Apache-2.0 */
/* template_parse.h - what the files of the parser share: its state, the tokens that it takes, the nodes that it makes.
 *
 * The first error stays in the state; from then on no token is taken and no node is made, so that callers need not ask after each
 * step. */
#ifndef HN_TEMPLATE_PARSE_H
#define HN_TEMPLATE_PARSE_H
#include "text/jinja/template_private.h"

enum { TP_UNBUILT = 16 }; /* functions */

typedef struct tparser {
    hn_template *t;
    tlexer lex;
    ttoken token;              /* the current one */
    int depth;                 /* nesting of what is being parsed */
    int conditions;            /* ifs around it: an unknown filter or test there is an error only when it is evaluated */
    int loops, macros;         /* loops around it in the same macro; macros so far */
    int asked, own;            /* TMACRO_... that the macro around it names; those that it sets itself before */
    int called[TP_UNBUILT];    /* the line of the first call of a function that is only Jinja's, 0: none */
    bool set[TP_UNBUILT];      /* the template sets something of this name */
    hunch_error *err;
    hunch_status status;
} tparser;

/* ---- template_parse.c: errors, nodes, tokens ---- */

tnode *tp_fail(tparser *p, const char *what);                             /* "line 3: WHAT, not TOKEN"; returns NULL */
tnode *tp_refuse(tparser *p, int line, const char *what, tstr name);      /* WHAT "NAME" is not supported; returns NULL */
void *tp_alloc(tparser *p, size_t size);                                  /* zeroed, in the template's arena */
tnode *tp_node(tparser *p, tnode_kind kind, tnode *a, tnode *b);          /* of the current token's line */
bool tp_append(tparser *p, tnode *to, tnode *item);                       /* to the items of a node; item may be NULL */
bool tp_enter(tparser *p);                                                /* one level deeper; p->depth-- whatever it returns */

bool tp_advance(tparser *p);                                              /* to the next token */
bool tp_at_op(const tparser *p, const char *op);                          /* the current token is this operator or bracket */
bool tp_at_name(const tparser *p, const char *name);
bool tp_take_op(tparser *p, const char *op);                              /* if it is, advances */
bool tp_take_name(tparser *p, const char *name);
bool tp_need_op(tparser *p, const char *op);                              /* advances; an error if it is not */
bool tp_need_name(tparser *p, tstr *name);                                /* any name */
bool tp_need_end(tparser *p, ttoken_kind end);                            /* TT_PRINT_END or TT_BLOCK_END */
/* Items up to a closing bracket, parsed by `item`, which appends them to n; the opening bracket was consumed. */
tnode *tp_items_until(tparser *p, tnode *n, const char *close, bool (*item)(tparser *, tnode *));

/* ---- template_parse_expressions.c ---- */

tnode *tp_expression(tparser *p);
tnode *tp_disjunction(tparser *p);         /* an expression that is no inline if */
tnode *tp_filters(tparser *p, tnode *of);  /* the filters, tests and calls that follow a value */
tnode *tp_filter_chain(tparser *p, tnode *of, bool begun); /* filters alone; begun: without a | before the first */
void tp_name_set(tparser *p, tstr name);   /* the template sets a variable of this name */
/* One, or a tuple without parentheses: several, separated by commas, with an optional trailing comma. */
tnode *tp_tuple_of(tparser *p, tnode *(*one)(tparser *));
tnode *tp_tuple_or_expression(tparser *p);

/* ---- template_parse_statements.c ---- */

/* Text and tags up to one of the statements `ends` (ended by NULL), whose {% is consumed; NULL: up to the end of the template. */
tnode *tp_body(tparser *p, const char *const *ends);
#endif
