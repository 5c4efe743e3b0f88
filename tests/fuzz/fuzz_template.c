/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_template.c - a chat template, and variables for it as JSON (if there are none, a usual conversation). What renders
 * once renders the same twice. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const char CONVERSATION[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be kind.\"},{\"role\":\"user\",\"content\":\"H\\u00e9llo\"},"
    "{\"role\":\"assistant\",\"content\":\"<think>\\nwell\\n</think>\\nHi\",\"tool_calls\":[{\"type\":\"function\","
    "\"id\":\"a1\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1,\"y\":[true,null,-2.5]}}}]},"
    "{\"role\":\"tool\",\"name\":\"f\",\"content\":\"3\"},{\"role\":\"user\",\"content\":\"And?\"}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}},\"required\":[\"x\"]}}}],\"bos_token\":\"<s>\","
    "\"eos_token\":\"</s>\",\"add_generation_prompt\":true,\"enable_thinking\":false}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes rest = {data, size};
    char *source = fuzz_text(fuzz_part(&rest)), *given = fuzz_text(fuzz_part(&rest)), *text[2] = {0};
    const char *vars = given[0] ? given : CONVERSATION;
    size_t len[2] = {0};
    hunch_status st[2];
    for (int i = 0; i < 2; i++) {
        hunch_error err = {0};
        st[i] = hunch_template_render(source, vars, "2026-11-21 12:34:56", &text[i], &len[i], &err);
        fuzz_check(st[i], &err, NULL);
    }
    FUZZ_MUST(st[0] == st[1]);
    if (st[0] == HUNCH_OK) FUZZ_MUST(len[0] == len[1] && memcmp(text[0], text[1], len[0] + 1) == 0);
    for (int i = 0; i < 2; i++) hunch_free(text[i]);
    free(source);
    free(given);
    return 0;
}
