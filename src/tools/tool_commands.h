/* SPDX-License-Identifier: Apache-2.0 */
/* tool_commands.h - the subcommands, one file each (cmd_NAME.c). argv[0] is the command's name; they return the exit
 * code, having written one line to standard error for any but 0 and 130. */
#ifndef HN_TOOL_COMMANDS_H
#define HN_TOOL_COMMANDS_H

#include "tool_options.h"

int tool_run(int argc, char **argv);
int tool_chat(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_bench(int argc, char **argv);
int tool_inspect(int argc, char **argv);
int tool_tokenize(int argc, char **argv);
int tool_draft(int argc, char **argv);
int tool_logits(int argc, char **argv);
int tool_score(int argc, char **argv);
int tool_convert(int argc, char **argv);

#endif
