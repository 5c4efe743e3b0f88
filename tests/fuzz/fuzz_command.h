/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_command.h - for targets that call the command's own files, in place of main.c: the table of what they run. */
#ifndef HN_FUZZ_COMMAND_H
#define HN_FUZZ_COMMAND_H
#include "fuzz.h"
#include "tools/tool_commands.h"

const tool_command tool_commands[] = {{TOOL_TOKENIZE, "tokenize", "tokenize", "", NULL, tool_tokenize},
                                      {TOOL_CHAT, "chat", "chat", "", NULL, tool_chat},
                                      {TOOL_BENCH, "bench", "bench", "", NULL, tool_bench},
                                      {0}};
const tool_command *tool_command_find(unsigned bit) {
    for (const tool_command *c = tool_commands; c->name; c++)
        if (c->bit == bit) return c;
    return NULL;
}
#endif
