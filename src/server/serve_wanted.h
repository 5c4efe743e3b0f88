/* SPDX-License-Identifier: Apache-2.0 */
/* serve_wanted.h - what a request wants and protocols say in shapes of their own: a conversation, tools, the form of the answer. A
 * protocol's reader fills it; serve_request.h makes a call of it, with the fields that differ by their names alone (serve_fields.h). */
#ifndef HN_SERVE_WANTED_H
#define HN_SERVE_WANTED_H

#include "server/serve_grammar.h"
#include "server/serve_server.h"

typedef struct serve_wanted {
    /* a chat */
    json_t *messages;         /* as templates get them */
    json_t *calls;            /* the ids of calls in them, as keys of an object; NULL: none, or none has an id */
    json_t *tools;            /* likewise; NULL: none */
    json_t *allowed;          /* those of them that the answer may call; NULL: all */
    hunch_tool_choice choice;
    const char *function;     /* that the answer calls; of the body */
    bool one_call;
    bool goes_on;             /* the answer continues the last message */
    int think;                /* above 0: on, below: off, by the variables that templates have for it; 0: as the template does */
    const json_t *effort;     /* of the body: how long; NULL: "reasoning_effort" of the view */
    /* an answer */
    serve_form form;          /* that it has */
    int most;                 /* tokens, if no field tells; 0: as many as the context holds */
    bool prompt_only, echo, stream, logprobs; /* as if the body said so */
    bool switched;            /* "logprobs" of a text is true or false, as a chat's is, and not how many */
} serve_wanted;

void serve_wanted_free(serve_wanted *w);

/* ---- a conversation ---------------------------------------------------------------------------------------------- */

/* A new message with a role. */
json_t *serve_message_json(const char *role, json_t *content);
/* Whether the client has begun the answer itself: the last message is the assistant's, and calls nothing. */
bool serve_ends_with_answer(const json_t *messages);
size_t serve_calls_count(const json_t *messages); /* in all of them */
/* Adds a call to a message of the assistant. arguments: the text of an object. */
void serve_call_add(serve_wanted *w, json_t *message, const json_t *id, const json_t *name, const char *arguments);
/* A call whose result may follow. */
void serve_call_known(serve_wanted *w, const json_t *id);
/* Whether the field `name` of a result has the id of a call that is known. */
bool serve_result_check(const serve_wanted *w, const serve_view *v, const char *name, serve_error *err);
/* Adds to the text of a message's field, "content" or "reasoning_content", which is a list of texts until serve_texts_join has made one of
 * them: adding takes as long as what is added, however many there are. Keeps `more`. */
void serve_text_add(json_t *message, const char *field, const char *between, json_t *more);
void serve_texts_join(json_t *messages);
bool serve_text_is(const json_t *message, const char *field); /* whether there is any */
/* Whether a field, if it is there, says how long the model thinks: none, minimal, low, medium, high, xhigh or max. */
bool serve_effort_check(const serve_view *v, const char *name, serve_error *err);
/* One function in the form that templates get. Takes none of the values; parameters may be NULL. strict: false if its schema is honoured as
 * far as it can be; another value, or NULL, changes nothing. */
json_t *serve_function_json(const json_t *name, const json_t *description, const json_t *parameters, const json_t *strict);
/* The name of the function that a tool, or a choice of one, has; NULL: none. */
const char *serve_tool_name(const json_t *tool);
/* The tool that is offered by that name, or NULL, also of the name NULL. */
json_t *serve_tool_find(const serve_wanted *w, const char *name);
/* Whether a field has the name of a function: 1 to 64 letters, digits, _ and -. */
bool serve_function_name_check(const serve_view *v, const char *name, serve_error *err);

#endif
