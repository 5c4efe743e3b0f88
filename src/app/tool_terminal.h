/* SPDX-License-Identifier: Apache-2.0 */
/* tool_terminal.h - colours and width of a terminal. */
#ifndef HN_TOOL_TERMINAL_H
#define HN_TOOL_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

enum { TOOL_COLOR_AUTO, TOOL_COLOR_ALWAYS, TOOL_COLOR_NEVER };
bool tool_is_terminal(FILE *f);
/* auto: not with NO_COLOR; with CLICOLOR_FORCE; else on a terminal whose TERM is not "dumb". Variables that are empty count as
 * absent, CLICOLOR_FORCE=0 as well. */
bool tool_colors(int mode, FILE *to);
/* Escape sequence for tokens of a drafter (-1: the target, in the default colour); "" when off. The first three drafters have blue,
 * orange and bluish green, which remain distinct with red-green colour blindness, on light and dark backgrounds; the next three have them
 * underlined, then in italics, then bold. */
const char *tool_color(bool on, int drafter);
const char *tool_style(bool on, char style); /* 'b'old, 'd'im, 'g'reen, 'r'ed, 'y'ellow, '0' back to normal */
int tool_width(void);                        /* columns of the terminal, else of COLUMNS, else 100 */
int tool_width_of(FILE *f);                  /* columns of that terminal; 0: not a terminal */

#endif
