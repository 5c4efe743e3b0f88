/* SPDX-License-Identifier: Apache-2.0 */
/* tool_conversation.c - see tool_conversation.h. */
#include "cli/chat/tool_conversation.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/least.h"
#include "app/tool_file.h"
#include "cli/tool_prompts.h"
#include "cli/tool_rows.h"

void tool_conversation_init(tool_conversation *c) {
    *c = (tool_conversation){.messages = json_array()};
}

void tool_conversation_fini(tool_conversation *c) {
    json_decref(c->messages);
    hn_free(c->system);
    *c = (tool_conversation){0};
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

void tool_conversation_clear(tool_conversation *c) {
    json_array_clear(c->messages);
    tool_conversation_restore(c);
}

void tool_conversation_system(tool_conversation *c, const char *text) {
    hn_free(c->system);
    c->system = *text ? tool_strdup(text) : NULL;
}

static json_t *message_of(const char *role, const char *text, size_t len) {
    return json_pack("{s:s,s:o}", "role", role, "content", tool_json_text(text, len));
}

void tool_conversation_add(tool_conversation *c, const char *role, const char *text, size_t len) {
    tool_conversation_push(c, message_of(role, text, len));
}

void tool_conversation_push(tool_conversation *c, json_t *message) {
    if (!message || json_array_append_new(c->messages, message) != 0) {
        tool_message("out of memory for the conversation");
        tool_end(HUNCH_NO_MEMORY);
    }
}

void tool_conversation_set(tool_conversation *c, const char *field, const char *text, size_t len) {
    json_t *newest = json_array_get(c->messages, json_array_size(c->messages) - 1);
    json_object_set_new(newest, field, tool_json_text(text, len));
}

const json_t *tool_conversation_last(const tool_conversation *c) {
    const size_t n = json_array_size(c->messages);
    return n ? json_array_get(c->messages, n - 1) : NULL;
}

static bool is_of(const json_t *message, const char *role) {
    const json_t *given = json_object_get(message, "role");
    return json_is_string(given) && strcmp(json_string_value(given), role) == 0;
}

const json_t *tool_conversation_calls(const tool_conversation *c, size_t *results) {
    const size_t n = json_array_size(c->messages);
    *results = 0;
    while (*results < n && is_of(json_array_get(c->messages, n - 1 - *results), "tool"))
        ++*results;
    return *results < n ? json_object_get(json_array_get(c->messages, n - 1 - *results), "tool_calls") : NULL;
}

const json_t *tool_conversation_waits(const tool_conversation *c) {
    size_t results;
    const json_t *calls = tool_conversation_calls(c, &results);
    return json_array_get(calls, results);
}

bool tool_conversation_last_is(const tool_conversation *c, const char *role) {
    return is_of(tool_conversation_last(c), role);
}

void tool_conversation_drop(tool_conversation *c) {
    json_array_remove(c->messages, json_array_size(c->messages) - 1);
}

/* The system message, messages [0, begin) and those from `end` on. */
static json_t *messages_list(const tool_conversation *c, size_t begin, size_t end) {
    json_t *list = json_array();
    if (c->system)
        json_array_append_new(list, message_of("system", c->system, strlen(c->system)));
    for (size_t i = 0; i < json_array_size(c->messages); i++)
        if (i < begin || i >= end)
            json_array_append(list, json_array_get(c->messages, i));
    return list;
}

json_t *tool_conversation_messages(const tool_conversation *c) {
    return messages_list(c, c->out_begin, c->out_end);
}

/* ---- turns --------------------------------------------------------------------------------------------------- */

/* The first message of the turn after message `from`, or the number of messages. */
static size_t turn_next(const tool_conversation *c, size_t from) {
    const size_t n = json_array_size(c->messages);
    size_t i = from + 1;
    while (i < n && !is_of(json_array_get(c->messages, i), "user"))
        i++;
    return hn_least_size(i, n);
}

size_t tool_conversation_turns(const tool_conversation *c) {
    size_t turns = 0;
    for (size_t i = 0; i < json_array_size(c->messages); i = turn_next(c, i))
        turns++;
    return turns;
}

bool tool_conversation_leave_out(tool_conversation *c, size_t keep) {
    const size_t n = json_array_size(c->messages);
    size_t begin = c->out_begin, end = c->out_end;
    if (begin == end) {
        begin = 0;
        for (size_t kept = 0; kept < keep && begin < n; kept++)
            begin = turn_next(c, begin);
        end = begin;
    }
    const size_t next = end < n ? turn_next(c, end) : n;
    if (next == n)
        return false;
    c->out_begin = begin;
    c->out_end = next;
    return true;
}

void tool_conversation_restore(tool_conversation *c) {
    c->out_begin = c->out_end = 0;
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

/* Whether the file may be overwritten: it is missing or empty, or holds a conversation. Anything but a regular file may
 * be written. */
static bool may_replace(const char *path) {
    static const char blank[] = " \t\r\n", key[] = "\"messages\"";
    char begin[200] = "";
    hn_map file;
    if (!hn_is_file(path))
        return true;
    if (hn_map_open(&file, path, NULL) != HUNCH_OK)
        return false;
    const size_t n = hn_least_size(file.size, sizeof begin - 1);
    const bool read = hn_map_read(&file, path, 0, n, begin, NULL) == HUNCH_OK;
    hn_map_close(&file);
    if (n == 0 || !read)
        return n == 0;
    const char *at = begin + strspn(begin, blank);
    if (*at == '{' || *at == '[')
        at += 1 + strspn(at + 1, blank);
    return at > begin && (strncmp(at, key, sizeof key - 1) == 0 || strncmp(at, "{\"role\"", 7) == 0);
}

int tool_conversation_save(const tool_conversation *c, const char *path) {
    tool_file f;
    if (tool_is_standard(path))
        return tool_usage("a conversation is kept in a file: expected its name, not -");
    if (!may_replace(path))
        return tool_usage("%s is there and holds no conversation: expected another name", path);
    int code = tool_file_begin(&f, path);
    if (!code) {
        json_t *all = json_pack("{s:o}", "messages", messages_list(c, 0, 0));
        char *text = tool_json_dump(all, JSON_INDENT(2));
        json_decref(all);
        tool_file_write(&f, text, strlen(text));
        tool_file_write(&f, "\n", 1);
        hn_free(text);
    }
    return tool_file_end(&f, code);
}

/* Each message has a role, and a text or no content; the template checks the rest. */
static int shapes_check(const json_t *messages, const char *path) {
    size_t i;
    const json_t *message;
    json_array_foreach(messages, i, message) {
        const json_t *content = json_object_get(message, "content");
        if (!json_is_string(json_object_get(message, "role")))
            return tool_usage("%s: message %zu has no \"role\"", path, i);
        if (content && !json_is_string(content) && !json_is_null(content))
            return tool_usage("%s: \"content\" of message %zu is not a text", path, i);
    }
    return 0;
}

int tool_conversation_load(tool_conversation *c, const char *path) {
    json_t *file;
    int code = tool_json_read(path, 0, "not the JSON of a conversation", &file);
    if (code)
        return code;
    json_t *messages = json_is_array(file) ? file : json_object_get(file, "messages");
    if (!json_is_array(messages))
        code = tool_usage("%s: expected an object with \"messages\", or a list of them", path);
    if (!code && (code = tool_messages_check(messages, path)) == 0 && (code = shapes_check(messages, path)) == 0) {
        json_incref(messages);
        json_decref(c->messages);
        c->messages = messages;
        tool_conversation_restore(c);
        const json_t *first = json_array_get(messages, 0), *text = json_object_get(first, "content");
        const bool system = is_of(first, "system") && json_is_string(text);
        tool_conversation_system(c, system ? json_string_value(text) : "");
        if (system)
            json_array_remove(messages, 0);
    }
    json_decref(file);
    return code;
}
