/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - calls of tools in a model's answer: which functions are offered, in which format a model writes its calls, and what of a
 * growing answer is thinking, text or a call. Formats are families: a file each, family_NAME.c.
 *
 * A reader is given an answer in pieces of any size, and what it knows only grows: the same texts and calls, however the answer was cut.
 * A call shows its name as soon as that is complete, then its arguments as they come, always as JSON. Any bytes are safe (C6): what is no
 * call is text, one that breaks off or breaks its format is `broken` and, unless another call is complete, text in the end.
 */
#ifndef HN_CALLS_H
#define HN_CALLS_H
#include <jansson.h>
#include "base/status.h"

/* ---- what is offered --------------------------------------------------------------------------------------------------- */

typedef struct hn_tool_function {
    const char *name;
    const json_t *parameters; /* a JSON schema; NULL: none */
    bool loose;               /* "strict": false: what of it cannot be honoured is ignored */
} hn_tool_function;
/* The functions of one request. Read-only after open. */
typedef struct hn_tools {
    hn_tool_function *function;
    size_t n;
    json_t *json; /* the list as it was given */
} hn_tools;
enum { HN_MOST_TOOLS = 1024 };
/* A list as in OpenAI's protocol: objects with "function", or functions themselves. HUNCH_USAGE: it is none, a function lacks its name, or
 * two have the same; `field` names it in messages. */
hunch_status hn_tools_open(hn_tools *out, const json_t *list, const char *field, hunch_error *err);
void hn_tools_close(hn_tools *t);
const hn_tool_function *hn_tools_find(const hn_tools *t, const char *name, size_t len); /* NULL: it is not offered */

/* ---- thinking ---------------------------------------------------------------------------------------------------------- */

typedef struct hn_think_pair {
    const char *begin, *end;
    bool channels; /* answers are messages whose headers name channels */
    bool found;    /* the template has them */
} hn_think_pair;
/* The marks around thinking that a chat template has; one that has none, or NULL: <think> and </think>. */
hn_think_pair hn_think_pair_of(const char *template_text, size_t len);

/* ---- families ---------------------------------------------------------------------------------------------------------- */

typedef struct hn_call_family hn_call_family;
/* The family whose marks a chat template has; NULL: none that is known. */
const hn_call_family *hn_call_family_of(const char *template_text, size_t len);
const hn_call_family *hn_call_family_named(const char *name); /* NULL: there is none */
const char *hn_call_family_name(const hn_call_family *f);
const char *hn_call_family_stop(const hn_call_family *f); /* a control token that ends an answer after its calls; NULL: none */
const char *hn_call_family_list(size_t i);              /* names by number; NULL: no more */
/* Messages of a conversation as a family's template expects them: arguments as objects (or as text), ids as it takes them. */
void hn_calls_convert(const hn_call_family *f, json_t *messages);
size_t hn_calls_count(const json_t *messages); /* calls in them */

/* ---- grammars ---------------------------------------------------------------------------------------------------------- */

struct hn_call_options;
struct hn_grammar;
/* Whether answers can be held to the family's format, or, `none`, kept from it. */
bool hn_call_grammar_fits(const hn_call_family *f, bool none);
/* What an answer must be: thinking and, if a call is required, calls (of `only`, if it is given); else text and calls, or, with
 * HUNCH_TOOLS_NONE, text in which no call begins. */
hunch_status hn_call_grammar_make(struct hn_grammar **out, const hn_call_family *f, const hn_tools *t, const hn_tool_function *only,
                                  hunch_tool_choice choice, const struct hn_call_options *o, hunch_error *err);

/* ---- answers ----------------------------------------------------------------------------------------------------------- */

typedef hunch_call hn_call; /* strings are the reader's */

typedef struct hn_call_options {
    const char *think_begin, *think_end; /* the template's marks; NULL: it has none */
    bool thinks;                         /* the prompt ends in thinking */
    bool one;                            /* no second call: it counts as broken */
    bool required;                       /* the answer is held to be thinking and calls: text at its end is a call that was cut */
    size_t earlier;                      /* calls of the conversation so far, for ids that count them */
    uint64_t seed;                       /* of ids */
} hn_call_options;

typedef hunch_answer hn_call_answer;
typedef struct hn_call_reader hn_call_reader;
/* f and t must live longer. NULL: no memory. */
hn_call_reader *hn_call_reader_open(const hn_call_family *f, const hn_tools *t, const hn_call_options *o);
void hn_call_reader_close(hn_call_reader **r);
/* More of the answer; ended: it is whole (n may be 0). False: no memory. */
bool hn_call_reader_feed(hn_call_reader *r, const char *bytes, size_t n, bool ended);
void hn_call_reader_get(const hn_call_reader *r, hn_call_answer *out); /* valid until the next feed */
#endif
