/* SPDX-License-Identifier: Apache-2.0 */
/* tool_chat.h - the parts of `hunch chat`: cmd_chat.c (opening and the loop over messages), tool_chat_input.c (reading a message),
 * tool_chat_turn.c (an answer), tool_chat_calls.c (results of its calls), tool_chat_commands.c (lines that begin with /),
 * tool_chat_set.c (/set). */
#ifndef HN_TOOL_CHAT_H
#define HN_TOOL_CHAT_H

#include "cli/chat/tool_conversation.h"
#include "cli/chat/tool_editor.h"
#include "cli/tool_grammar.h"
#include "cli/chat/tool_lines.h"
#include "app/tool_open.h"
#include "cli/tool_render.h"

typedef struct tool_chat_state {
    tool_options o;
    json_t *words; /* values of /set, to which o points */
    tool_method method;
    tool_template template;
    tool_grammar grammar; /* of answers */
    hunch_model *model;
    hunch_engine *engine;
    hunch_request request;
    hunch_tools *tools; /* that the newest answer may call; NULL: none */
    hunch_token stops[HUNCH_MOST_STOPS];
    double load_s;
    int context;                  /* rows that the conversation may hold */
    bool color, styled, terminal; /* of standard output; of standard error; input comes from a terminal */
    tool_editor *editor;          /* NULL: lines are read without editing */
    tool_lines lines;
    tool_conversation talk;
    bool failed; /* a message was not answered, or a command failed */
    /* since the command began */
    size_t turns, tokens, rows, restored;
    uint64_t rounds, drafted, accepted;
    double decoded, decode_s; /* tokens after the first of each answer, and their time */
} tool_chat_state;

enum { TOOL_GO_ON = -1 }; /* result of a message or a command; any other is the exit code of hunch chat */

/* ---- cmd_chat.c ---- */

/* Opens the engine and sets the request by c->o; c->model is open. 0, or an exit code after a message; c->engine may
 * then be NULL. */
int tool_chat_engine_open(tool_chat_state *c);
/* Sets the grammar of answers by o, if it can be used. 0, or an exit code after a message: then it is as before. */
int tool_chat_grammar(tool_chat_state *c, const tool_options *o);

/* ---- tool_chat_input.c ---- */

typedef struct tool_chat_message {
    char *text; /* to be freed with hn_free */
    size_t len;
    bool block; /* was between """ and """: not a command, whatever it begins with */
    bool begun; /* after an interrupt: something had been typed */
} tool_chat_message;
/* Reads a message or a command: a line, continued by the next while it ends in a backslash; or the lines from """ to
 * """. */
tool_line tool_chat_read(tool_chat_state *c, tool_chat_message *m);

/* ---- tool_chat_turn.c ---- */

int tool_chat_send(tool_chat_state *c, const char *text, size_t len);
/* Answers the conversation, whose newest message has no answer. *answered: there is one now. */
int tool_chat_answer(tool_chat_state *c, bool *answered);
/* What happens with a message that could not be answered. */
int tool_chat_failed(tool_chat_state *c, const hunch_error *err);
/* Answers the newest message of the user again with the next seed; if it has no answer yet, with the same seed. */
int tool_chat_again(tool_chat_state *c);

/* ---- tool_chat_calls.c ---- */

/* The result of the call that waits; behind the last one the model answers. "": shows what waits. */
int tool_chat_result(tool_chat_state *c, const char *text);
void tool_chat_waits(const tool_chat_state *c); /* says that a call waits for its result, if one does */

/* ---- tool_chat_commands.c ---- */

int tool_chat_command(tool_chat_state *c, const char *line);
/* Every command with its slash, for completion; ends with NULL. */
extern const char *const tool_chat_names[];

/* ---- tool_chat_set.c ---- */

/* "NAME VALUE", "NAME" or "". 0, or an exit code after a message: then nothing has changed, unless c->engine is NULL (such as after
 * HUNCH_NO_MEMORY). */
int tool_chat_set(tool_chat_state *c, const char *words);

#endif
