/* SPDX-License-Identifier: Apache-2.0 */
/* tool_conversation.h - the messages of `hunch chat`, which of them the model still reads, and their file.
 *
 * A turn is a message of the user and everything up to the next one. Turns for which the context has no room are left out of the prompt;
 * they stay in the conversation, and in its file. */
#ifndef HN_TOOL_CONVERSATION_H
#define HN_TOOL_CONVERSATION_H

#include "app/tool_output.h"

typedef struct tool_conversation {
    json_t *messages; /* {"role","content"}, without the system message */
    char *system;     /* NULL: none */
    size_t out_begin, out_end; /* messages [out_begin, out_end) are left out */
} tool_conversation;

void tool_conversation_init(tool_conversation *c);
void tool_conversation_fini(tool_conversation *c);
void tool_conversation_clear(tool_conversation *c); /* removes all messages but the system message */
void tool_conversation_system(tool_conversation *c, const char *text); /* "": none */
void tool_conversation_add(tool_conversation *c, const char *role, const char *text, size_t len);
void tool_conversation_push(tool_conversation *c, json_t *message); /* takes it */
/* The calls of the newest answer, if nothing but results is behind it, and how many of these there are. Borrowed; NULL: none. */
const json_t *tool_conversation_calls(const tool_conversation *c, size_t *results);
/* The first of them that waits for its result; NULL: none does. */
const json_t *tool_conversation_waits(const tool_conversation *c);
/* Sets a field of the newest message. */
void tool_conversation_set(tool_conversation *c, const char *field, const char *text, size_t len);
/* The newest message, or NULL. Borrowed. */
const json_t *tool_conversation_last(const tool_conversation *c);
bool tool_conversation_last_is(const tool_conversation *c, const char *role);
void tool_conversation_drop(tool_conversation *c); /* the newest message */

/* The messages that the model reads: a new list, the system message first. */
json_t *tool_conversation_messages(const tool_conversation *c);
size_t tool_conversation_turns(const tool_conversation *c);
/* Leaves out the oldest turn still read, other than the first `keep` and the newest. False: there is none. */
bool tool_conversation_leave_out(tool_conversation *c, size_t keep);
void tool_conversation_restore(tool_conversation *c); /* no turn is left out */

/* The whole conversation as {"messages": [...]}, the system message first, which `hunch run -f` reads as well. An existing file that does
 * not begin like one is not overwritten. 0, or an exit code after a message. */
int tool_conversation_save(const tool_conversation *c, const char *path);
/* Replaces the conversation by that of such a file, or by a bare list of messages. The conversation stays if the file cannot be read. */
int tool_conversation_load(tool_conversation *c, const char *path);

#endif
