/* SPDX-License-Identifier: Apache-2.0 */
/* tool_page.h - a page of help, written for a terminal or for man: headings, paragraphs, items, examples. What stands in it is
 * tool_help.c's. */
#ifndef HN_TOOL_PAGE_H
#define HN_TOOL_PAGE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct tool_page {
    bool roff;  /* for man */
    bool color; /* else: headings and names in bold */
    int width;  /* columns */
    bool fresh; /* for man: a heading was the last thing */
    int left;   /* columns of the left side of items, set by tool_page_items */
} tool_page;

/* Standard output as it is: as wide as the terminal, at most 100 columns; 80 if nobody knows. */
tool_page tool_page_terminal(int color_mode);

void tool_page_title(const tool_page *p, const char *name, const char *text); /* of a terminal's page */
void tool_page_heading(tool_page *p, const char *text);
void tool_page_text(tool_page *p, const char *text); /* paragraphs, with empty lines between them */
/* What a command line looks like: the first word, the rest, wrapped behind it. */
void tool_page_synopsis(tool_page *p, const char *command, const char *rest);
/* Items that follow have a left side of `longest` columns at most, or one line more. */
void tool_page_items(tool_page *p, int longest);
/* name, and value behind it (may be NULL), then the text. deep: below another item. */
void tool_page_item(tool_page *p, const char *name, const char *value, const char *text, bool deep);
void tool_page_example(tool_page *p, const char *what, const char *line);

#endif
