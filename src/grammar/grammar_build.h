/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_build.h - grammars made by calls: expressions are small numbers, built from their parts, and belong to the builder. The sources
 * (schemas, expressions, GBNF) and the formats of tool calls are made of these. A failure (no memory, a bound) is kept and returned by
 * hn_grammar_finish, so calls in between need no checks. */
#ifndef HN_GRAMMAR_BUILD_H
#define HN_GRAMMAR_BUILD_H
#include "grammar/grammar.h"

typedef struct hn_builder hn_builder;
typedef int32_t hn_expr;

hn_builder *hn_builder_open(hunch_error *err); /* NULL: no memory */
void hn_builder_close(hn_builder **b);
/* Whether what of schemas cannot be honoured is ignored from now on, and hn_grammar_ignored names it, instead of a failure. */
void hn_builder_loosen(hn_builder *b, bool loose);
/* Keeps the first failure; returns -1. */
hn_expr hn_builder_fail(hn_builder *b, hunch_status status, const char *fmt, ...) HN_PRINTF(3, 4);
hn_expr hn_builder_no_memory(hn_builder *b);
hn_expr hn_expr_empty(hn_builder *b);
hn_expr hn_expr_bytes(hn_builder *b, const char *bytes, size_t len); /* a literal */
hn_expr hn_expr_text(hn_builder *b, const char *text);
/* One character of ranges of code points, as UTF-8: pairs first, last. */
hn_expr hn_expr_class(hn_builder *b, const uint32_t *ranges, size_t n_pairs, bool negated);
/* A control token by its name, or, in a vocabulary in which the name is plain text, its bytes. */
hn_expr hn_expr_special(hn_builder *b, const char *name);
hn_expr hn_expr_seq(hn_builder *b, const hn_expr *part, size_t n);
hn_expr hn_expr_alt(hn_builder *b, const hn_expr *part, size_t n);
hn_expr hn_expr_repeat(hn_builder *b, hn_expr e, int min, int max); /* max -1: no limit */
/* Any text up to and including the first `mark` (the bytes, or the control token of this name); control tokens other than ends and the mark
 * may occur in it if `free`. or_end: it may also end without the mark. */
hn_expr hn_expr_until(hn_builder *b, const char *mark, bool free, bool or_end);
/* Any text in which the mark does not occur; other control tokens may. */
hn_expr hn_expr_without(hn_builder *b, const char *mark);
/* Any text, control tokens too, up to the first of some marks, and what follows that one; or up to the end. The first mark may be a control
 * token. */
typedef struct hn_mark {
    const char *mark;
    hn_expr rest;  /* what follows it */
    bool at_start; /* it counts where the text begins alone, perhaps behind spaces and line breaks */
} hn_mark;
hn_expr hn_expr_marked(hn_builder *b, const hn_mark *marks, size_t n);
hn_expr hn_expr_rule(hn_builder *b, const char *name);                 /* a rule to be set later: recursion */
void hn_expr_rule_set(hn_builder *b, hn_expr rule, hn_expr body);
/* Sources as parts; pointer: where the schema stands, for messages. */
hn_expr hn_expr_json_schema(hn_builder *b, const char *schema, size_t len, const char *pointer);
hn_expr hn_expr_json_value(hn_builder *b); /* any JSON value */
/* The strings that a schema allows, as they are: without quotes or escapes, and none with a character of `never` (ASCII) but those of enum
 * and const. */
hn_expr hn_expr_plain_string(hn_builder *b, const char *schema, size_t len, const char *pointer, const char *never);
hn_expr hn_expr_gbnf(hn_builder *b, const char *text, size_t len);
hn_expr hn_expr_regex(hn_builder *b, const char *regex, size_t len, bool search);
/* Takes the builder in any case. */
hunch_status hn_grammar_finish(hn_grammar **out, hn_builder **b, hn_expr root, hunch_error *err);
#endif
