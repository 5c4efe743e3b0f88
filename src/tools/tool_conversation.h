/* SPDX-License-Identifier: Apache-2.0 */
/* tool_conversation.h - what was said in `hunch chat`: the messages, which of them the model still reads, and their file.
 *
 * A turn is a message of the user and what follows it up to the next one. Turns that the context has no room for are left out of
 * what the model reads; they stay in the conversation, and in its file. */
#ifndef HN_TOOL_CONVERSATION_H
#define HN_TOOL_CONVERSATION_H

#include "tool_output.h"

typedef struct tool_conversation {
    json_t *messages; /* {"role","content"}, without the system message */
    char *system;     /* NULL: none */
    size_t out_begin, out_end; /* messages [out_begin, out_end) are left out */
} tool_conversation;

void tool_conversation_init(tool_conversation *c);
void tool_conversation_fini(tool_conversation *c);
void tool_conversation_clear(tool_conversation *c); /* of its messages; the system message stays */
void tool_conversation_system(tool_conversation *c, const char *text); /* "": none */
void tool_conversation_add(tool_conversation *c, const char *role, const char *text, size_t len);
/* The newest message, NULL: there is none. Borrowed. */
const json_t *tool_conversation_last(const tool_conversation *c);
bool tool_conversation_last_is(const tool_conversation *c, const char *role);
void tool_conversation_drop(tool_conversation *c); /* the newest message */

/* What the model reads: a new list, the system message first. */
json_t *tool_conversation_read(const tool_conversation *c);
size_t tool_conversation_turns(const tool_conversation *c);
/* Leaves out the oldest turn that is read, but for the first `keep` and the newest. False: there is no such turn. */
bool tool_conversation_leave_out(tool_conversation *c, size_t keep);
void tool_conversation_take_back(tool_conversation *c); /* no turn is left out */

/* The whole conversation as {"messages": [...]}, the system message first, which `hunch run -f` reads as well. A file that is there
 * and does not begin like one is not written over. 0, or an exit code after a message. */
int tool_conversation_save(const tool_conversation *c, const char *path);
/* Such a file, or a bare list of messages, in the place of the conversation, which stays where the file cannot be read. */
int tool_conversation_load(tool_conversation *c, const char *path);

#endif
