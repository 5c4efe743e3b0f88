/* SPDX-License-Identifier: Apache-2.0 */
/* serve_wanted.c - see serve_wanted.h. */
#include "server/serve_wanted.h"

#include <string.h>

#include "server/serve_answer.h"

void serve_wanted_free(serve_wanted *w) {
    json_decref(w->messages);
    json_decref(w->calls);
    json_decref(w->tools);
    json_decref(w->allowed);
    serve_bytes_free(&w->form.text);
    *w = (serve_wanted){0};
}

json_t *serve_message_json(const char *role, json_t *content) { return json_pack("{s:s,s:o}", "role", role, "content", content); }

bool serve_ends_with_answer(const json_t *messages) {
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    return role && strcmp(role, "assistant") == 0 && !json_object_get(last, "tool_calls") &&
           json_string_length(json_object_get(last, "content"));
}

size_t serve_calls_count(const json_t *messages) {
    size_t i, n = 0;
    const json_t *message;
    json_array_foreach(messages, i, message) n += json_array_size(json_object_get(message, "tool_calls"));
    return n;
}

void serve_call_known(serve_wanted *w, const json_t *id) {
    if (!w->calls) w->calls = json_object();
    json_object_set_new(w->calls, json_string_value(id), json_true());
}

bool serve_result_check(const serve_wanted *w, const serve_view *v, const char *name, serve_error *err) {
    const char *id = json_string_value(serve_field(v, name));
    if (!id || !*id) return serve_wrong(err, v, name, " is not a text, the id of a call");
    return json_object_get(w->calls, id) ? true : serve_wrong(err, v, name, " is %.60s: no message before has a call of that id", id);
}

void serve_call_add(serve_wanted *w, json_t *message, const json_t *id, const json_t *name, const char *arguments) {
    json_t *calls = json_object_get(message, "tool_calls");
    serve_call_known(w, id);
    if (!calls) json_object_set_new(message, "tool_calls", calls = json_array());
    json_array_append_new(calls, json_pack("{s:O,s:s,s:{s:O,s:s}}", "id", id, "type", "function", "function", "name", name, "arguments",
                                           arguments));
}

void serve_text_add(json_t *message, const char *field, const char *between, json_t *more) {
    json_t *had = json_object_get(message, field);
    if (!json_is_array(had)) {
        json_t *list = json_array();
        if (json_string_length(had)) json_array_append(list, had);
        json_object_set_new(message, field, had = list);
    }
    if (json_array_size(had) && *between) json_array_append_new(had, json_string(between));
    if (json_string_length(more)) json_array_append(had, more);
}

bool serve_text_is(const json_t *message, const char *field) {
    const json_t *value = json_object_get(message, field);
    return json_string_length(value) || json_array_size(value);
}

static void text_join(json_t *message, const char *field) {
    const json_t *list = json_object_get(message, field), *one;
    serve_bytes all = {0};
    size_t i;
    if (!json_is_array(list)) return;
    json_array_foreach(list, i, one) serve_bytes_join(&all, json_string_value(one), json_string_length(one));
    json_object_set_new(message, field, serve_text_json(all.at, all.n));
    serve_bytes_free(&all);
}

void serve_texts_join(json_t *messages) {
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) {
        text_join(message, "content");
        text_join(message, "reasoning_content");
    }
}

json_t *serve_function_json(const json_t *name, const json_t *description, const json_t *parameters, const json_t *strict) {
    json_t *function = json_object();
    json_object_set(function, "name", (json_t *)(uintptr_t)name);
    if (description) json_object_set(function, "description", (json_t *)(uintptr_t)description);
    if (parameters) json_object_set(function, "parameters", (json_t *)(uintptr_t)parameters);
    if (json_is_false(strict)) json_object_set_new(function, "strict", json_false());
    return json_pack("{s:s,s:o}", "type", "function", "function", function);
}

const char *serve_tool_name(const json_t *tool) {
    const json_t *function = json_object_get(tool, "function");
    return json_string_value(json_object_get(function ? function : tool, "name"));
}

json_t *serve_tool_find(const serve_wanted *w, const char *name) {
    json_t *one;
    size_t i;
    json_array_foreach(w->tools, i, one) {
        const char *its = serve_tool_name(one);
        if (name && its && strcmp(its, name) == 0) return one;
    }
    return NULL;
}

bool serve_function_name_check(const serve_view *v, const char *name, serve_error *err) {
    enum { MOST = 64 };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const json_t *value = serve_field(v, name);
    const char *text = json_string_value(value);
    if (!value) return serve_wrong(err, v, name, " is missing");
    if (text && *text && strlen(text) <= MOST && !text[strspn(text, letters)]) return true;
    return serve_wrong_value(err, v, name, value, " is not a name of 1 to %d letters, digits, _ and -", MOST);
}

bool serve_effort_check(const serve_view *v, const char *name, serve_error *err) {
    static const char *const words[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max", NULL};
    const char *given;
    return serve_field_word(v, name, words, &given, err);
}
