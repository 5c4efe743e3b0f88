/* SPDX-License-Identifier: Apache-2.0 */
/* tool_rows.c - see tool_rows.h. */
#include "cli/tool_rows.h"

#include <string.h>
#include <strings.h>

#include "cli/tool_row_keys.h"

enum { WHERE = 1100 };

static char *text_copy(const json_t *text, size_t *len) {
    *len = json_string_length(text);
    return tool_strndup(json_string_value(text), *len);
}

/* ---- conversations ------------------------------------------------------------------------------------------- */

/* Replaces content that is a list of parts by their texts, joined. */
static int parts_join(json_t *message, size_t number, const char *where) {
    const json_t *parts = json_object_get(message, "content"), *part;
    char *text = NULL;
    size_t i, len = 0, cap = 0;
    int code = 0;
    json_array_foreach(parts, i, part) {
        const json_t *type = json_object_get(part, "type"), *piece = json_object_get(part, "text");
        if (!json_is_string(type))
            code = tool_usage("%s: part %zu of message %zu is not an object with \"type\"", where, i, number);
        else if (strcmp(json_string_value(type), "text") != 0)
            code = tool_usage("%s: part %zu of message %zu is of type \"%s\": only text can be read", where, i, number,
                              json_string_value(type));
        else if (!json_is_string(piece))
            code = tool_usage("%s: part %zu of message %zu has no \"text\"", where, i, number);
        if (code)
            break;
        const size_t more = json_string_length(piece);
        text = tool_grow(text, &cap, len + more + 1, 1);
        if (i)
            text[len++] = '\n';
        memcpy(text + len, json_string_value(piece), more);
        len += more;
    }
    if (!code)
        json_object_set_new(message, "content", json_stringn(text ? text : "", len));
    hn_free(text);
    return code;
}

int tool_messages_check(json_t *messages, const char *where) {
    size_t i;
    json_t *message;
    if (json_array_size(messages) == 0)
        return tool_usage("%s: \"messages\" is empty: there is no message to answer", where);
    json_array_foreach(messages, i, message) {
        if (!hn_json_is_object(message))
            return tool_usage("%s: message %zu is not an object", where, i);
        const int code = json_is_array(json_object_get(message, "content")) ? parts_join(message, i, where) : 0;
        if (code)
            return code;
    }
    return 0;
}

static int messages_take(tool_prompt *to, json_t *messages, const char *where) {
    const int code = tool_messages_check(messages, where);
    if (!code)
        to->messages = json_incref(messages);
    return code;
}

static bool names_function(const json_t *tool) {
    const json_t *function = json_object_get(tool, "function");
    const json_t *name = json_object_get(function ? function : tool, "name");
    return json_is_string(name) && json_string_length(name) > 0;
}

int tool_tools_check(const json_t *tools, const char *where) {
    size_t i;
    const json_t *tool;
    if (!json_is_array(tools))
        return tool_usage("%s is not an array of tools", where);
    json_array_foreach(tools, i, tool) if (!names_function(tool)) return tool_usage(
        "%s: tool %zu is not an object {\"type\": \"function\", \"function\": {\"name\": ...}}", where, i);
    return 0;
}

/* ---- a row --------------------------------------------------------------------------------------------------- */

/* An object with "prompt", "messages" or "tokens". */
static bool is_prompt(const json_t *row) {
    return json_is_string(json_object_get(row, "prompt")) || json_is_array(json_object_get(row, "messages")) ||
           json_is_array(json_object_get(row, "tokens"));
}

/* Messages without an object around them. */
static bool is_conversation(const json_t *row) {
    return json_object_get(json_array_get(row, 0), "role") != NULL;
}

bool tool_row_id_fits(const json_t *id) {
    const char *digits = hn_json_digits(id);
    return json_is_string(id) || json_is_integer(id) || (digits && hn_json_is_whole(digits));
}

static int id_take(tool_prompt *to, json_t *id, int line, const char *where) {
    if (tool_row_id_fits(id))
        to->id = json_incref(id);
    else if (!id || json_is_null(id))
        to->id = json_integer(line);
    else
        return tool_usage("%s: \"id\" is neither a text nor a whole number", where);
    return 0;
}

static int tools_take(tool_prompt *to, const json_t *row, const char *where) {
    char name[WHERE + 10];
    json_t *tools = json_object_get(row, "tools");
    if (!tools || json_is_null(tools))
        return 0;
    snprintf(name, sizeof name, "%s: \"tools\"", where);
    const int code = tool_tools_check(tools, name);
    if (!code && json_array_size(tools))
        to->tools = json_incref(tools);
    return code;
}

/* The keys beside the prompt: id, tools, prediction, group. */
static int extras_take(tool_prompt *to, const json_t *row, int line, const char *where) {
    const json_t *group = json_object_get(row, "group"), *prediction = json_object_get(row, "prediction");
    int code = id_take(to, json_object_get(row, "id"), line, where);
    if (code || (code = tools_take(to, row, where)))
        return code;
    if (prediction && !json_is_string(prediction))
        return tool_usage("%s: \"prediction\" is not a text", where);
    if (prediction)
        to->prediction = text_copy(prediction, &to->prediction_len);
    if (json_is_string(group)) {
        size_t len;
        hn_free(to->group);
        to->group = text_copy(group, &len);
    }
    return 0;
}

static int object_take(tool_prompts *p, tool_prompt *to, json_t *row, const char *where) {
    const json_t *text = json_object_get(row, "prompt"), *tokens = json_object_get(row, "tokens");
    json_t *messages = json_object_get(row, "messages");
    int code = extras_take(to, row, to->line, where);
    if (code || (code = tool_row_keys_take(p, to, row, where)))
        return code;
    if (json_is_string(text)) {
        to->text = text_copy(text, &to->len);
        return 0;
    }
    if (json_is_array(messages))
        return messages_take(to, messages, where);
    if (to->tools)
        return tool_usage("%s: \"tools\" go with \"messages\" or \"prompt\": \"tokens\" are taken as they are", where);
    return tool_tokens_from_json(tokens, where, &to->ids, &to->n_ids);
}

static int row_add(void *prompts, json_t *row, const char *path, int line) {
    tool_prompts *p = prompts;
    char where[WHERE];
    snprintf(where, sizeof where, "%.1000s:%d", path, line);
    if (!is_prompt(row) && !is_conversation(row))
        return tool_usage(
            "%s: expected an object with \"prompt\" (text), \"messages\" or \"tokens\" (ids), one a line%s", where,
            p->n ? "" : "; a prompt that is JSON itself is given by -p");
    tool_prompt *to = tool_prompt_add(p);
    to->path = path;
    to->line = line;
    if (hn_json_is_object(row))
        return object_take(p, to, row, where);
    to->id = json_integer(line);
    return messages_take(to, row, where);
}

/* ---- a file -------------------------------------------------------------------------------------------------- */

/* Whether the first line at `at` has one of these keys of an object. */
static bool names_key(const char *at, const char *const *keys) {
    const char *end = at + strcspn(at, "\n");
    for (; *keys; keys++)
        for (const char *key = at; (key = strstr(key, *keys)) && key < end;) {
            key += strlen(*keys);
            if (key[strspn(key, " \t")] == ':')
                return true;
        }
    return false;
}

/* JSON lines, or a file meant as such, which is then refused with its line rather than taken for a text. It is
 * recognised by the name of the file; by a first line that is an object; or by one that is nearly an object, is spread
 * over lines, or is in an array. Other texts may begin with a brace, as code does. */
bool tool_rows_begin(const char *path, const char *text) {
    static const char blank[] = " \t\r\n";
    static const char *const of_row[] = {"\"prompt\"", "\"messages\"", "\"tokens\"", NULL}, *const of_message[] = {
                                                                                                "\"role\"", NULL};
    const char *dot = strrchr(path, '.');
    if (dot && (strcasecmp(dot, ".jsonl") == 0 || strcasecmp(dot, ".ndjson") == 0))
        return true;
    text += strspn(text, blank);
    json_t *row = hn_json_load(text, strcspn(text, "\n"), JSON_ALLOW_NUL, NULL);
    bool is = hn_json_is_object(row) || is_conversation(row);
    json_decref(row);
    if (is)
        return true;
    const bool list = *text == '[';
    if (list)
        text += 1 + strspn(text + 1, blank);
    if (*text != '{')
        return false;
    text += 1 + strspn(text + 1, blank);
    return names_key(text, of_row) || (list && names_key(text, of_message));
}

/* Reads a file that is one row as a whole. -1: it is not. */
static int whole_read(tool_prompts *p, const char *text, size_t len, const char *path) {
    json_t *row = hn_json_load(text, len, JSON_ALLOW_NUL, NULL);
    int code = -1, line = 1;
    if (is_prompt(row) || is_conversation(row)) {
        for (const char *c = text; *c != '{' && *c != '['; c++)
            line += *c == '\n';
        code = row_add(p, row, path, line);
    }
    json_decref(row);
    return code;
}

int tool_rows_read(tool_prompts *p, const char *text, size_t len, const char *path) {
    int code = whole_read(p, text, len, path);
    if (code < 0 && !tool_rows_begin(path, text))
        return -1;
    p->rows = true;
    if (code < 0)
        code = tool_rows_each(text, len, JSON_ALLOW_NUL, path, row_add, p);
    if (!code)
        tool_row_keys_note(p, path);
    return code;
}
