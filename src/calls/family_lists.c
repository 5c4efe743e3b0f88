/* SPDX-License-Identifier: Apache-2.0 */
/* family_lists.c - families that write a list of objects behind a mark: Command R7B, Granite 3, Phi-4-mini. */
#include "calls/call_families.h"

static bool fits_command(const char *text, size_t len) {
    return hn_has(text, len, "<|START_ACTION|>");
}

static bool fits_granite(const char *text, size_t len) {
    return hn_has(text, len, "<|tool_call|>");
}

static bool fits_phi(const char *text, size_t len) {
    return hn_has(text, len, "functools") || hn_has(text, len, "<|tool|>");
}

static const hn_block command = {.object = true, .list = true, .close = "<|END_ACTION|>"},
                      granite = {.object = true, .list = true, .close = "</tool_call>"}, phi = {.list = true};
const hn_call_family hn_calls_command_r7b = {.name = "command-r7b",
                                             .opens = (const char *const[]){"<|START_ACTION|>", NULL},
                                             .closes = (const char *const[]){"<|END_ACTION|>", NULL},
                                             .drops =
                                                 (const char *const[]){"<|START_RESPONSE|>", "<|END_RESPONSE|>", NULL},
                                             .fits = fits_command,
                                             .grammar = hn_grammar_command,
                                             .read = hn_read_block,
                                             .how = &command};
const hn_call_family hn_calls_granite3 = {.name = "granite3",
                                          .opens = (const char *const[]){"<|tool_call|>", "<tool_call>", NULL},
                                          .closes = (const char *const[]){"</tool_call>", NULL},
                                          .fits = fits_granite,
                                          .grammar = hn_grammar_list,
                                          .read = hn_read_block,
                                          .how = &granite};
const hn_call_family hn_calls_phi4 = {.name = "phi4-mini",
                                      .opens = (const char *const[]){"functools", NULL},
                                      .fits = fits_phi,
                                      .grammar = hn_grammar_list,
                                      .read = hn_read_block,
                                      .how = &phi};
