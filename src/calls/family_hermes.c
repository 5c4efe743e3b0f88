/* SPDX-License-Identifier: Apache-2.0 */
/* family_hermes.c - objects {"name": .., "arguments": {..}} in <tool_call> .. </tool_call>, a block each: Hermes 2 Pro, Qwen 2.5 and 3,
 * MiMo, Granite 4. */
#include "calls/call_families.h"

static bool fits(const char *text, size_t len) {
    return hn_has(text, len, "<tool_call>");
}

static const hn_block how = {.object = true, .list = true, .close = "</tool_call>"};
const hn_call_family hn_calls_hermes = {.name = "hermes",
                                        .opens = (const char *const[]){"<tool_call>", NULL},
                                        .closes = (const char *const[]){"</tool_call>", NULL},
                                        .fits = fits,
                                        .grammar = hn_grammar_hermes,
                                        .read = hn_read_block,
                                        .how = &how};
