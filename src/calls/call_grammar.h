/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammar.h - what families build grammars of calls from. */
#ifndef HN_CALL_GRAMMAR_H
#define HN_CALL_GRAMMAR_H
#include "calls/call_families.h"
#include "grammar/grammar_build.h"

enum { HN_MOST_RULES = 256 };
struct hn_call_grammar {
    hn_builder *b;
    const hn_tools *tools;
    const hn_tool_function *only; /* NULL: any of them */
    const hn_call_family *family;
    bool one;                     /* no second call */
    bool none;                    /* nor a first one: what begins a call has nothing that may follow it */
    size_t earlier;               /* calls of the conversation so far */
    int depth;                    /* of nested values */
    struct {
        const json_t *schema;
        hn_expr rule;
    } rules[HN_MOST_RULES]; /* of schemas that others refer to */
    size_t n_rules;
};

#define HN_SEQ(g, ...) hn_expr_seq((g)->b, (const hn_expr[]){__VA_ARGS__}, sizeof((const hn_expr[]){__VA_ARGS__}) / sizeof(hn_expr))
#define HN_ALT(g, ...) hn_expr_alt((g)->b, (const hn_expr[]){__VA_ARGS__}, sizeof((const hn_expr[]){__VA_ARGS__}) / sizeof(hn_expr))
static inline hn_expr hn_g_text(hn_call_grammar *g, const char *text) {
    return hn_expr_text(g->b, text);
}
static inline hn_expr hn_g_mark(hn_call_grammar *g, const char *mark) {
    return hn_expr_special(g->b, mark);
}
/* The mark that opens a call, unless it was read already. */
static inline hn_expr hn_g_open(hn_call_grammar *g, bool opened) {
    return opened ? hn_expr_empty(g->b) : hn_g_mark(g, g->family->opens[0]);
}
hn_expr hn_g_object(hn_call_grammar *g, const hn_tool_function *f); /* its arguments as JSON */
hn_expr hn_g_json(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema); /* a value of a schema that is part of f's */
/* A string of such a schema as it is, without quotes, and without the characters of `never`; -1: any string is one. */
hn_expr hn_g_string(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, const char *never);
/* One of the functions. */
hn_expr hn_g_any(hn_call_grammar *g, hn_expr (*call)(hn_call_grammar *g, const hn_tool_function *f));
/* Parts of families that call_grammars_may.c needs, too: a call in Python's spelling, and it from behind NAME( on; in tags a call without
 * its block, from behind the function's mark on. */
hn_expr hn_g_python_call(hn_call_grammar *g, const hn_tool_function *f);
hn_expr hn_g_python_members(hn_call_grammar *g, const hn_tool_function *f);
hn_expr hn_g_bare_call(hn_call_grammar *g);
/* `first`, and unless only one call is allowed `more` any number of times, `between` before each. */
hn_expr hn_g_list(hn_call_grammar *g, hn_expr first, hn_expr between, hn_expr more);
/* Members of a schema in its order, those that are required once, the others at most once, then any number of `others` (-1: none);
 * `between` stands between two. */
typedef hn_expr hn_g_member(hn_call_grammar *g, const hn_tool_function *f, const char *name, const json_t *schema);
hn_expr hn_g_members(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, const char *between, hn_expr others,
                     hn_g_member *member);
#endif
