/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.h - what a text must look like, compiled: a stack automaton over bytes and special tokens. Sources are a JSON schema, a
 * regular expression, a GBNF text, or calls of grammar_build.h (tool calls). Read-only after it was made; any thread.
 *
 * A grammar's size, depth of recursion without a byte, and time of compiling are bounded; what exceeds a bound, and what cannot be
 * honoured, is HUNCH_USAGE and names the keyword (with its JSON pointer), the rule, or the place in the expression (C6).
 */
#ifndef HN_GRAMMAR_H
#define HN_GRAMMAR_H
#include "base/status.h"
#include "text/tokenizer/tokenizer.h"

typedef struct hn_grammar hn_grammar;

hunch_status hn_grammar_json_schema(hn_grammar **out, const char *schema, size_t len, hunch_error *err);
hunch_status hn_grammar_json_object(hn_grammar **out, hunch_error *err); /* any JSON object */
hunch_status hn_grammar_regex(hn_grammar **out, const char *regex, size_t len, hunch_error *err); /* ECMA, of the whole text */
hunch_status hn_grammar_gbnf(hn_grammar **out, const char *text, size_t len, hunch_error *err);   /* rule `root` */
/* Where the parts of schemas stand that are ignored (hn_builder_loosen), with commas between; NULL: none. */
const char *hn_grammar_ignored(const hn_grammar *g);
void hn_grammar_close(hn_grammar **g);
#endif
