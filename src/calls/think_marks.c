/* SPDX-License-Identifier: Apache-2.0 */
/* think_marks.c - the marks that a chat template has around thinking. */
#include <string.h>

#include "calls/calls.h"

static bool has(const char *text, size_t len, const char *part) {
    return text && memmem(text, len, part, strlen(part));
}

hn_think_pair hn_think_pair_of(const char *template_text, size_t len) {
    static const hn_think_pair pairs[] = {{"<think>", "</think>", false},
                                          {"[THINK]", "[/THINK]", false},
                                          {"<seed:think>", "</seed:think>", false},
                                          {"<|START_THINKING|>", "<|END_THINKING|>", false},
                                          {"<|channel>thought", "<channel|>", false},
                                          {"<|channel|>analysis<|message|>", "<|end|>", true}};
    enum { KINDS = sizeof pairs / sizeof *pairs, CHANNELS = KINDS - 1 };
    if (has(template_text, len, "<|channel|>analysis")) return pairs[CHANNELS];
    for (size_t i = 0; i < CHANNELS; i++)
        if (has(template_text, len, pairs[i].end)) return pairs[i];
    return pairs[0];
}
