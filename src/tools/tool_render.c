/* SPDX-License-Identifier: Apache-2.0 */
/* tool_render.c - see tool_render.h. */
#include "tool_render.h"

#include <stdlib.h>
#include <string.h>

/* ---- the template -------------------------------------------------------------------------------------------- */

/* K=V: V is what it says as JSON, else a text. */
static int arg_set(json_t *args, const char *given) {
    const char *equals = strchr(given, '=');
    if (!equals || equals == given)
        return tool_usage("--template-arg %s is not K=V", given);
    size_t len = (size_t)(equals - given);
    char *key = tool_alloc(len + 1, 1);
    memcpy(key, given, len);
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
    if (!value)
        value = json_string(equals + 1);
    int code = 0;
    if (strcmp(key, "messages") == 0)
        code = tool_usage("--template-arg messages is the conversation itself and cannot be given");
    else if (!value || json_object_set(args, key, value) != 0)
        code = tool_usage("--template-arg %s is not valid UTF-8", given);
    json_decref(value);
    free(key);
    return code;
}

/* The tools of --tools, a variable like others for the template. */
static int tools_read(json_t *args, const char *path) {
    json_t *tools;
    int code = tool_json_read(path, 0, "not JSON", &tools);
    if (code)
        return code;
    if (!json_is_array(tools))
        code = tool_usage("%s: expected a JSON array of tools", path);
    else if (json_object_get(args, "tools"))
        code = tool_usage("--tools and --template-arg tools: give one of them");
    else
        json_object_set(args, "tools", tools);
    json_decref(tools);
    return code;
}

int tool_template_open(tool_template *t, const tool_options *o) {
    *t = (tool_template){.raw = o->raw, .path = o->chat_template_file, .args = json_object()};
    size_t len;
    int code = t->path ? tool_file_read(t->path, &t->text, &len) : 0;
    if (!code && t->text && strlen(t->text) != len)
        code = tool_usage("%s: a zero byte, not the text of a template", t->path);
    for (int i = 0; i < o->template_args.n && !code; i++)
        code = arg_set(t->args, o->template_args.items[i]);
    return code || !o->chat_tools_file ? code : tools_read(t->args, o->chat_tools_file);
}

void tool_template_fini(tool_template *t) {
    free(t->text);
    json_decref(t->args);
    *t = (tool_template){0};
}

bool tool_template_used(const tool_template *t, const hunch_model *m) {
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    return !t->raw && (t->text || info.has_chat_template);
}

int tool_template_check(const tool_template *t, const hunch_model *m) {
    if (json_object_size(t->args) && !tool_template_used(t, m))
        return tool_usage("%s: the model has no chat template, and no --chat-template-file was given",
                          json_object_get(t->args, "tools") ? "--tools" : "--template-arg");
    return 0;
}

/* ---- text to ids --------------------------------------------------------------------------------------------- */

static void ids_take(hunch_token **to, size_t *n_to, const hunch_token *ids, size_t n) {
    *to = tool_alloc(n, sizeof **to);
    if (n)
        memcpy(*to, ids, n * sizeof *ids);
    *n_to = n;
}

/* rendered: the text comes from a template. */
static int ids_of(tool_rendered *out, const hunch_model *m, const char *text, size_t len, bool rendered) {
    hunch_error err = {0};
    hunch_token *ids;
    size_t n;
    if (hunch_tokenize(m, text, len, rendered ? HUNCH_TEXT_RENDERED : HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL, &ids,
                       &n, &err) != HUNCH_OK)
        return tool_failed(&err);
    int code = n == 0 ? tool_usage("the prompt is empty") : 0;
    if (!code)
        ids_take(&out->ids, &out->n, ids, n);
    hunch_free(ids);
    return code;
}

/* Ends with <think>, spaces and line breaks aside. */
static bool opens_think(const char *text, size_t len) {
    static const char tag[] = "<think>";
    while (len && strchr(" \r\n", text[len - 1]))
        len--;
    return len >= sizeof tag - 1 && memcmp(text + len - (sizeof tag - 1), tag, sizeof tag - 1) == 0;
}

/* tools: of this conversation alone, instead of --tools; NULL: none. */
static int template_render(tool_rendered *out, const tool_template *t, const hunch_model *m, json_t *messages,
                           json_t *tools) {
    json_t *vars = json_copy(t->args);
    char *dump = NULL, *text = NULL;
    size_t len;
    hunch_error err = {0};
    if (vars && json_object_set(vars, "messages", messages) == 0 &&
        (!tools || json_object_set(vars, "tools", tools) == 0))
        dump = json_dumps(vars, 0);
    json_decref(vars);
    if (!dump) {
        tool_message("out of memory for the chat template");
        return HUNCH_NO_MEMORY;
    }
    int code = 0;
    if (hunch_chat_render_with(m, t->text, dump, &text, &len, &err) == HUNCH_OK) {
        out->thinks = opens_think(text, len);
        code = ids_of(out, m, text, len, true);
    } else {
        code = (int)err.status;
        tool_message("%s%s%s", t->path ? t->path : "", t->path ? ": " : "", err.message);
    }
    hunch_free(text);
    free(dump);
    return code;
}

static int contents_join(tool_rendered *out, const hunch_model *m, const json_t *messages) {
    char *text = NULL;
    size_t i, len = 0, cap = 0;
    const json_t *message;
    json_array_foreach(messages, i, message) {
        const json_t *content = json_object_get(message, "content");
        size_t n = json_string_length(content);
        text = tool_grow(text, &cap, len + n, 1);
        if (n)
            memcpy(text + len, json_string_value(content), n);
        len += n;
    }
    int code = ids_of(out, m, text ? text : "", len, false);
    free(text);
    return code;
}

int tool_messages_render(tool_rendered *out, const tool_template *t, const hunch_model *m, json_t *messages) {
    *out = (tool_rendered){0};
    return tool_template_used(t, m) ? template_render(out, t, m, messages, NULL) : contents_join(out, m, messages);
}

/* ---- prompts ------------------------------------------------------------------------------------------------- */

static int message_render(tool_rendered *out, const tool_prompt *p, const hunch_model *m, const tool_template *t) {
    json_t *messages = json_pack("[{s:s,s:o}]", "role", "user", "content", json_stringn(p->text, p->len));
    if (!messages) {
        tool_message("out of memory for the chat template");
        return HUNCH_NO_MEMORY;
    }
    int code = tool_messages_render(out, t, m, messages);
    json_decref(messages);
    return code;
}

/* The conversation of a row. */
static int conversation_ids(tool_prompt *p, const hunch_model *m, const tool_template *t) {
    tool_rendered r = {0};
    int code;
    if (tool_template_used(t, m))
        code = template_render(&r, t, m, p->messages, p->tools);
    else if (p->tools)
        code = tool_usage("\"tools\": there is no chat template that would tell the model of them");
    else
        code = contents_join(&r, m, p->messages);
    p->ids = r.ids;
    p->n_ids = r.n;
    p->thinks = r.thinks;
    return code;
}

static int text_ids(tool_prompt *p, const hunch_model *m, const tool_template *t) {
    if (p->len == 0)
        return tool_usage("the prompt is empty");
    size_t valid = tool_utf8_valid(p->text, p->len);
    if (valid < p->len)
        return tool_usage("the prompt is not valid UTF-8 at byte %zu", valid);
    tool_rendered r = {0};
    int code = t ? message_render(&r, p, m, t) : ids_of(&r, m, p->text, p->len, false);
    p->ids = r.ids;
    p->n_ids = r.n;
    p->thinks = r.thinks;
    return code;
}

static int prediction_ids(tool_prompt *p, const hunch_model *m) {
    hunch_error err = {0};
    hunch_token *ids;
    size_t n;
    if (hunch_tokenize(m, p->prediction, p->prediction_len, 0, &ids, &n, &err) != HUNCH_OK)
        return tool_failed(&err);
    ids_take(&p->prediction_ids, &p->n_prediction, ids, n);
    hunch_free(ids);
    return 0;
}

int tool_prompt_ids(tool_prompt *p, const hunch_model *m, const tool_template *t) {
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    if ((p->text || p->messages) && !info.has_tokenizer)
        return tool_usage("the model has no tokenizer: give token ids with --tokens FILE instead of text");
    if (p->prediction && !info.has_tokenizer)
        return tool_usage("the model has no tokenizer: \"prediction\", a text, cannot be used");
    int code = p->messages ? conversation_ids(p, m, t) : p->text ? text_ids(p, m, t) : 0;
    return code || !p->prediction ? code : prediction_ids(p, m);
}
