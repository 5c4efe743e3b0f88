/* SPDX-License-Identifier: Apache-2.0 */
/* tool_chat.h - the parts of `hunch chat`: cmd_chat.c (opens, and takes message after message), tool_chat_input.c (what a message
 * is), tool_chat_turn.c (an answer), tool_chat_commands.c (lines that begin with /), tool_chat_set.c (/set). */
#ifndef HN_TOOL_CHAT_H
#define HN_TOOL_CHAT_H

#include "tool_conversation.h"
#include "tool_editor.h"
#include "tool_lines.h"
#include "tool_open.h"
#include "tool_render.h"

typedef struct tool_talk {
    tool_options o;
    json_t *words; /* of /set: what o points to */
    tool_method method;
    tool_template template;
    hunch_model *model;
    hunch_engine *engine;
    hunch_request request;
    double load_s;
    int context;                  /* rows that the conversation may hold */
    bool color, styled, terminal; /* of standard output; of standard error; input comes from a terminal */
    tool_editor *editor;          /* NULL: lines are read as they come */
    tool_lines lines;
    tool_conversation talk;
    bool failed; /* a message was not answered, or a command not done */
    /* since the command began */
    size_t turns, tokens, rows, restored;
    uint64_t rounds, drafted, accepted;
    double decoded, decode_s; /* tokens behind the first of each answer, and their time */
} tool_talk;

enum { TOOL_GO_ON = -1 }; /* what a message or a command led to, else the exit code of the command */

/* ---- cmd_chat.c ---- */

/* Engine and request of c->o, c->model being open. 0, or an exit code after a message; c->engine may then be NULL. */
int tool_chat_engine_open(tool_talk *c);

/* ---- tool_chat_input.c ---- */

typedef struct tool_chat_message {
    char *text; /* to be freed with free */
    size_t len;
    bool block; /* it stood between """ and """: no command, whatever it begins with */
    bool begun; /* where input was interrupted: something had been typed */
} tool_chat_message;
/* A message or a command: a line, and those behind it while they end in a backslash; or the lines from """ to """. */
tool_line tool_chat_read(tool_talk *c, tool_chat_message *m);

/* ---- tool_chat_turn.c ---- */

int tool_chat_say(tool_talk *c, const char *text, size_t len);
/* Answers the newest message of the user once more, with the next seed; one that had no answer yet, with the same. */
int tool_chat_again(tool_talk *c);

/* ---- tool_chat_commands.c ---- */

int tool_chat_command(tool_talk *c, const char *line);
/* Every command with its slash, for completion; to a NULL. */
extern const char *const tool_chat_names[];

/* ---- tool_chat_set.c ---- */

/* "NAME VALUE", "NAME" or "". 0, or an exit code after a message: then all is as before, but for HUNCH_NO_MEMORY and the like
 * where c->engine is NULL. */
int tool_chat_set(tool_talk *c, const char *words);

#endif
