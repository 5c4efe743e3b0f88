/* SPDX-License-Identifier: Apache-2.0 */
/* tool_page.h - formats a page of help for a terminal or for man: headings, paragraphs, items, examples. tool_help.c has the content. */
#ifndef HN_TOOL_PAGE_H
#define HN_TOOL_PAGE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct tool_page {
    bool roff;          /* for man */
    bool color;         /* else: headings and names in bold */
    int width;          /* columns */
    bool after_heading; /* for man: a heading was written last */
    int left;           /* columns of the left side of items, set by tool_page_items */
} tool_page;

/* A page for standard output: as wide as the terminal, at most 100 columns; 80 if the width is unknown. */
tool_page tool_page_terminal(int color_mode);

void tool_page_title(const tool_page *p, const char *name, const char *text); /* for terminals only */
void tool_page_heading(tool_page *p, const char *text);
void tool_page_text(tool_page *p, const char *text); /* paragraphs, with empty lines between them */
/* The synopsis of a command: its name, then the rest, wrapped and indented after the name. */
void tool_page_synopsis(tool_page *p, const char *command, const char *rest);
/* The items that follow have a left side of at most `longest` columns; a longer one gets a line of its own. */
void tool_page_items(tool_page *p, int longest);
/* name, value (may be NULL), then the text. deep: below another item. */
void tool_page_item(tool_page *p, const char *name, const char *value, const char *text, bool deep);
void tool_page_example(tool_page *p, const char *what, const char *line);

#endif
