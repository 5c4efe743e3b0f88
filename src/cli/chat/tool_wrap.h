/* SPDX-License-Identifier: Apache-2.0 */
/* tool_wrap.h - text that streams to a terminal, with line breaks between words instead of in them. Only for terminals: it adds breaks. */
#ifndef HN_TOOL_WRAP_H
#define HN_TOOL_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Initialise as {.to = the terminal}; the cursor is at the beginning of a line. */
typedef struct tool_wrap {
    FILE *to;
    int width;  /* of the terminal when text last came; 0: unknown, no breaks are added */
    int column; /* of the cursor; width: the line is full */
    bool in_word, holds; /* inside a word; it may not fit, and is not written before it has ended */
    char *held;
    size_t len, cap;
    int columns; /* of what is held */
    char partial[5]; /* the beginning of a character, zero-terminated */
    size_t partial_len;
    enum { TOOL_WRAP_TEXT, TOOL_WRAP_ESCAPE, TOOL_WRAP_SEQUENCE } state; /* of the bytes: an escape sequence takes no columns */
} tool_wrap;

/* The text may end inside a character, a word or an escape sequence that the next one continues. */
void tool_wrap_write(tool_wrap *w, const char *text, size_t len);
/* Writes what is held: the text is complete. */
void tool_wrap_end(tool_wrap *w);

#endif
