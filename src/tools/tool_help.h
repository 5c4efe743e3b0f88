/* SPDX-License-Identifier: Apache-2.0 */
/* tool_help.h - what help and manual say: of the whole, of a command, of a topic. */
#ifndef HN_TOOL_HELP_H
#define HN_TOOL_HELP_H

#include <stdbool.h>

#include "tool_commands.h"
#include "tool_page.h"

/* color: --color. */
void tool_help_all(int color);                                        /* hunch --help */
void tool_help_command(const tool_command *c, bool basic, int color); /* basic: its most used flags alone */

/* Parts that the manual has as well. */
void tool_write_commands(tool_page *p);
void tool_write_flags(tool_page *p, const tool_command *c, bool basic);
void tool_write_examples(tool_page *p, const tool_example *e, int most);
void tool_write_topic(tool_page *p, const tool_topic *t);

#endif
