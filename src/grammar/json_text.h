/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.h - JSON as expressions: its strings, numbers and values, without white space but one space that may follow ':' and ','. What
 * has a fixed content (keys, constants, patterns) has one spelling: characters as themselves, \" and \\, control characters by their short
 * escape or \u00xx. So keys are equal if their bytes are. */
#ifndef HN_JSON_TEXT_H
#define HN_JSON_TEXT_H
#include <jansson.h>

#include "base/json_load.h"
#include "grammar/grammar_ranges.h"
#include "grammar/json_decimal.h"

/* One character of a sorted set, in its one spelling; a hn_regex_class. */
hn_expr hn_json_class(hn_builder *b, const hn_ranges *set);
hn_expr hn_json_char(hn_builder *b);   /* any character in any spelling */
hn_expr hn_json_string(hn_builder *b); /* any string */
hn_expr hn_json_quoted(hn_builder *b, hn_expr body);
hn_expr hn_json_colon(hn_builder *b);
hn_expr hn_json_comma(hn_builder *b);
hn_expr hn_json_word(hn_builder *b, const char *text, size_t len); /* a string of this content */
char *hn_json_word_text(const char *text, size_t len, size_t *n); /* its spelling, hn_alloc'ed; NULL: no memory */
/* A key that is none of these, sorted by their bytes. (json_keys.c) */
hn_expr hn_json_key_beside(hn_builder *b, const hn_word *names, size_t n);
hn_expr hn_json_constant(hn_builder *b, const json_t *value);

/* An end of a range of numbers. */
typedef struct hn_json_bound {
    const json_t *value; /* NULL: none */
    bool exclusive;
} hn_json_bound;
/* What their digits must be besides; zeroed: anything. */
typedef struct hn_json_form {
    int32_t multiple; /* of multiple / 10^places, 0: of anything */
    int places;
    bool fraction;     /* no integer */
    bool one_spelling; /* no zeros at the end behind the point, no exponent, no -0 */
} hn_json_form;
enum { HN_JSON_MULTIPLE = 10000 /* the largest */ };
/* Numbers between bounds. (json_number.c) */
hn_expr hn_json_number(hn_builder *b, bool integer, hn_json_bound low, hn_json_bound high, hn_json_form form);
#endif
