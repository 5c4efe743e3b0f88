/* SPDX-License-Identifier: Apache-2.0 */
/* think_marks.c - the marks that a chat template has around thinking. */
#include <string.h>

#include "calls/calls.h"

static bool has(const char *text, size_t len, const char *part) {
    return text && memmem(text, len, part, strlen(part));
}

hn_think_pair hn_think_pair_of(const char *template_text, size_t len) {
    static const hn_think_pair pairs[] = {{"<think>", "</think>", false, true},
                                          {"[THINK]", "[/THINK]", false, true},
                                          {"<seed:think>", "</seed:think>", false, true},
                                          {"<|START_THINKING|>", "<|END_THINKING|>", false, true},
                                          {"<|channel>thought", "<channel|>", false, true},
                                          {"<|channel|>analysis<|message|>", "<|end|>", true, true}};
    enum { KINDS = sizeof pairs / sizeof *pairs, CHANNELS = KINDS - 1 };
    if (has(template_text, len, "<|channel|>analysis")) return pairs[CHANNELS];
    for (size_t i = 0; i < CHANNELS; i++)
        if (has(template_text, len, pairs[i].end)) return pairs[i];
    return (hn_think_pair){pairs[0].begin, pairs[0].end, false, false};
}
