/* SPDX-License-Identifier: Apache-2.0 */
/* tool_help.h - pages of help and manual: the overview, a command, a topic. */
#ifndef HN_TOOL_HELP_H
#define HN_TOOL_HELP_H

#include <stdbool.h>

#include "app/tool_commands.h"
#include "app/tool_page.h"

/* color: --color. */
void tool_help_all(int color);                                        /* hunch --help */
void tool_help_command(const tool_command *c, bool basic, int color); /* basic: only its most used flags */

/* Parts shared with the manual. */
void tool_write_commands(tool_page *p);
void tool_write_flags(tool_page *p, const tool_command *c, bool basic);
void tool_write_kinds(tool_page *p, const tool_command *c); /* of train; nothing for others */
void tool_write_examples(tool_page *p, const tool_example *e, int most);
void tool_write_topic(tool_page *p, const tool_topic *t);

#endif
