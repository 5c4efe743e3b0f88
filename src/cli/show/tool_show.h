/* SPDX-License-Identifier: Apache-2.0 */
/* tool_show.h - generated text, each token coloured by the drafter that proposed it: in a stream, or in panes side by
 * side. */
#ifndef HN_TOOL_SHOW_H
#define HN_TOOL_SHOW_H

#include "app/tool_output.h"
#include "cli/chat/tool_wrap.h"

/* Where the text of each token ends. */
typedef struct tool_ends {
    size_t *at; /* [n]: length of the text of tokens 0..i */
    size_t n, cap;
    size_t anchor, anchor_len; /* tool_show.c */
} tool_ends;
/* Brings ends up to n_tokens. The text of a token is the difference of the texts of all tokens with and without it: its
 * piece alone may differ (a leading space that is dropped, a character made of several tokens). */
void tool_ends_update(tool_ends *e, const hunch_model *m, const hunch_token *tokens, size_t n_tokens);
void tool_ends_fini(tool_ends *e);
/* State of printing a session. Initialise as {.model, .color, .split.thinking = the text begins in thinking}. */
typedef struct tool_stream {
    const hunch_model *model;
    bool color;  /* by provenance, thinking dimmed */
    bool dim;    /* what is being written is thinking, or a mark around it */
    hunch_split split;
    tool_wrap *wrap; /* breaks the lines of a text; NULL: the terminal does */
    size_t bytes, tokens;
    tool_ends ends; /* only when colours are on */
    hunch_calls *calls;       /* reads calls of tools, which are lines of their own, and hides marks; NULL: all is text as it comes */
    size_t thought, said, called; /* with calls: bytes and calls that are written */
    enum { TOOL_LINE_BEGINS, TOOL_BEHIND_TEXT, TOOL_BEHIND_CALL } place;
} tool_stream;
/* Prints what was generated since the last call: text, or ids without a tokenizer. */
void tool_stream_update(tool_stream *s, const hunch_session_state *st);

/* Columns that valid UTF-8 takes on most terminals. */
int tool_columns(const char *text);

/* One column: a title, and text with the provenance of each of its tokens. */
typedef struct tool_pane {
    const char *title, *text;
    size_t len;
    const tool_ends *ends;
    const int16_t *drafter_of;
    int colors; /* the colour of its drafter 0: those of another column have others */
} tool_pane;
/* Side by side if the terminal is wide enough, else one after the other. */
void tool_panes_print(const tool_pane *panes, int n, bool color);

#endif
