/* SPDX-License-Identifier: Apache-2.0 */
/* tool_grammar.h - what answers must look like: --json-schema, --json-object, --grammar, --regex, and the keys of rows with these names. */
#ifndef HN_TOOL_GRAMMAR_H
#define HN_TOOL_GRAMMAR_H

#include "cli/tool_prompts.h"

/* A grammar's source. */
typedef struct tool_grammar {
    bool given;
    hunch_grammar_kind kind;
    const char *where; /* the flag or key, for messages */
    char *text;
    size_t len;
} tool_grammar;

/* That of the flags, at most one of which may be given; reads their file, before the model is loaded. 0, or an exit code after a
 * message. */
int tool_grammar_read(tool_grammar *g, const tool_options *o);
void tool_grammar_fini(tool_grammar *g);
/* Whether this key of a row is one, and its value fits: 1, 0 (another key), or -1 after a message. */
int tool_grammar_key(const char *key, const json_t *value, const char *where);

/* The grammar of an answer: the row's (settings may be NULL), else that of the flags; NULL: none. chat, thinks: of its prompt
 * (tool_render.h). *out: to be closed. */
hunch_status tool_grammar_open(hunch_grammar **out, const tool_grammar *flags, const json_t *settings, const hunch_model *m, bool chat,
                               bool thinks, hunch_error *err);

#endif
