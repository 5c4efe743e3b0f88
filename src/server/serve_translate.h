/* SPDX-License-Identifier: Apache-2.0 */
/* serve_translate.h - bodies of other protocols in the words of chat and text completions, which serve_request.h reads. A protocol lists
 * the fields that differ by their names alone, and makes the others; an error names what the client sent. */
#ifndef HN_SERVE_TRANSLATE_H
#define HN_SERVE_TRANSLATE_H

#include "server/serve_server.h"

/* A field of a protocol and ours. The last one of a list has no `theirs`. */
typedef struct serve_name {
    const char *theirs; /* also within an object: "text.format" */
    const char *ours;
    bool made; /* by the protocol's own code: the name is for errors alone */
} serve_name;

/* Fields that every protocol has from us: speculation, deadline, cache_salt, ... */
extern const serve_name serve_own_names[];
/* Those of sampling, by the names that they have in chat completions. */
extern const serve_name serve_sampling_names[];
/* Copies the fields of a list. */
void serve_translate(json_t *to, const json_t *from, const serve_name *names);
/* A new body with the fields of all three lists. */
json_t *serve_translated(const json_t *from, const serve_name *names);

/* The call of a body in our words, which is released. names: for errors, before those of the lists above. NULL after an error. */
serve_call *serve_translated_call(serve_server *s, const serve_asked *q, json_t *body, bool chat, const serve_name *names,
                                  serve_error *err);
/* The tokens of a chat's prompt, however many, of a body in our words, which is released. */
bool serve_translated_count(serve_server *s, json_t *body, const serve_name *names, size_t *n, serve_error *err);
/* Makes an error name the client's field instead of ours. False. */
bool serve_translate_error(serve_error *err, const serve_name *names);

/* ---- fields that are only looked at --------------------------------------------------------------------------- */

typedef enum serve_kind { SERVE_IS_TEXT, SERVE_IS_BOOL, SERVE_IS_WHOLE, SERVE_IS_NUMBER, SERVE_IS_OBJECT, SERVE_IS_LIST } serve_kind;
typedef struct serve_expected {
    const char *name; /* NULL: the list ends */
    serve_kind kind;
} serve_expected;
/* Whether these are of their kinds, where they are given. within: of an object within the body, "options."; else "". */
bool serve_kinds_check(const json_t *body, const char *within, const serve_expected *list, serve_error *err);
/* A field that is one of these words, or missing. The words end with NULL. *out: the one that was given. */
bool serve_word_read(const json_t *body, const char *name, const char *const *words, const char **out, serve_error *err);
/* Penalties look at the whole text: a window, "repeat_last_n", that would cut it is refused where they are on. 0 switches them off. */
bool serve_window_read(json_t *to, const json_t *from, const char *within, serve_error *err);
/* Fields that are supported with one value alone: the others are refused. */
typedef struct serve_only {
    const char *name; /* NULL: the list ends */
    double value;
} serve_only;
bool serve_only_check(const json_t *body, const char *within, const serve_only *list, serve_error *err);
/* A new message with a role. */
json_t *serve_message_json(const char *role, json_t *content);
/* Whether the client has begun the answer itself: the last message is the assistant's, and calls nothing. */
bool serve_ends_with_answer(const json_t *messages);
/* Switches thinking on or off by the variables that templates have for it, unless the client has set these itself. */
void serve_think(json_t *body, bool on);
/* Adds a call to a message of the assistant. arguments: the text of an object. */
void serve_call_add(json_t *message, const json_t *id, const json_t *name, const char *arguments);
/* Adds to the text of a message's field, "content" or "reasoning_content", which is a list of texts until serve_texts_join has made one of
 * them: adding takes as long as what is added, however many there are. Keeps `more`. */
void serve_text_add(json_t *message, const char *field, const char *between, json_t *more);
void serve_texts_join(json_t *messages);
bool serve_text_is(const json_t *message, const char *field); /* whether there is any */
/* One function in the form that templates get. Takes none of the values; parameters may be NULL. */
json_t *serve_function_json(const json_t *name, const json_t *description, const json_t *parameters);

#endif
