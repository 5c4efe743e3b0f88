/* SPDX-License-Identifier: Apache-2.0 */
/* tool_chat_calls.c - /tool of `hunch chat`: results of the calls in the newest answer, one after the other. */
#include <string.h>

#include "base/utf8.h"
#include "cli/chat/tool_chat.h"

static const char *name_of(const json_t *call) {
    const char *name = json_string_value(json_object_get(json_object_get(call, "function"), "name"));
    return name ? name : "";
}

void tool_chat_waits(const tool_chat_state *c) {
    const json_t *call = tool_conversation_waits(&c->talk);
    if (call && !tool_quiet)
        fprintf(stderr, "/tool RESULT answers the call of %s\n", name_of(call));
}

/* The calls that wait, whole. */
static void waiting_show(const tool_chat_state *c) {
    size_t i;
    const json_t *calls = tool_conversation_calls(&c->talk, &i);
    for (; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        const char *arguments = json_string_value(json_object_get(json_object_get(call, "function"), "arguments"));
        fprintf(stderr, "%s %s\n", name_of(call), arguments ? arguments : "{}");
    }
}

static int nothing_waits(tool_chat_state *c) {
    hunch_error err = {0};
    hn_fail(&err, HUNCH_USAGE, "/tool: no call waits for a result");
    return tool_chat_failed(c, &err);
}

/* Takes the result, and answers if it was the last one that was missing. */
static int result_take(tool_chat_state *c, const json_t *call, const char *text) {
    const json_t *id = json_object_get(call, "id");
    bool answered = false;
    tool_conversation_push(&c->talk, json_pack("{s:s,s:s,s:o}", "role", "tool", "name", name_of(call), "content",
                                               tool_json_text(text, strlen(text))));
    if (json_is_string(id))
        tool_conversation_set(&c->talk, "tool_call_id", json_string_value(id), json_string_length(id));
    if (tool_conversation_waits(&c->talk)) {
        tool_chat_waits(c);
        return TOOL_GO_ON;
    }
    const int code = tool_chat_answer(c, &answered);
    if (!answered)
        tool_conversation_drop(&c->talk);
    return code;
}

int tool_chat_result(tool_chat_state *c, const char *text) {
    hunch_error err = {0};
    const json_t *call = tool_conversation_waits(&c->talk);
    if (!call)
        return nothing_waits(c);
    if (!*text) {
        waiting_show(c);
        return TOOL_GO_ON;
    }
    if (hn_utf8_check(text, strlen(text)) < strlen(text)) {
        hn_fail(&err, HUNCH_USAGE, "/tool: the result is not valid UTF-8: not sent");
        return tool_chat_failed(c, &err);
    }
    return result_take(c, call, text);
}
