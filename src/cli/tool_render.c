/* SPDX-License-Identifier: Apache-2.0 */
/* tool_render.c - see tool_render.h. */
#include "cli/tool_render.h"
#include "base/utf8.h"
#include "cli/tool_rows.h"

#include <string.h>

/* ---- the template -------------------------------------------------------------------------------------------- */

/* K=V: V is parsed as JSON, else taken as a text. */
static int arg_set(json_t *args, const char *given) {
    const char *equals = strchr(given, '=');
    if (!equals || equals == given)
        return tool_usage("--template-arg %s is not K=V", given);
    size_t len = (size_t)(equals - given);
    char *key = tool_strndup(given, len);
    json_t *value = hn_json_load(equals + 1, strlen(equals + 1), JSON_DECODE_ANY, NULL);
    if (!value)
        value = json_string(equals + 1);
    int code = 0;
    if (strcmp(key, "messages") == 0)
        code = tool_usage("--template-arg messages is the conversation itself and cannot be given");
    else if (!value || json_object_set(args, key, value) != 0)
        code = tool_usage("--template-arg %s is not valid UTF-8", given);
    json_decref(value);
    hn_free(key);
    return code;
}

/* The tools of --tools, a template variable like others. */
static int tools_read(json_t *args, const char *path) {
    json_t *tools;
    int code = tool_json_read(path, 0, "not JSON", &tools);
    if (code)
        return code;
    if ((code = tool_tools_check(tools, path)) == 0 && json_object_get(args, "tools"))
        code = tool_usage("--tools and --template-arg tools: give one of them");
    else if (!code && json_array_size(tools)) /* an empty list means no tools */
        json_object_set(args, "tools", tools);
    json_decref(tools);
    return code;
}

int tool_template_file_read(const char *path, char **text) {
    size_t len;
    int code = tool_file_read(path, text, &len);
    if (code || strlen(*text) == len)
        return code;
    hn_free(*text);
    *text = NULL;
    return tool_usage("%s: a zero byte, not the text of a template", path);
}

int tool_template_open(tool_template *t, const tool_options *o) {
    *t = (tool_template){.raw = o->raw, .path = o->chat_template_file, .args = json_object()};
    int code = t->path ? tool_template_file_read(t->path, &t->text) : 0;
    for (int i = 0; i < o->template_args.n && !code; i++)
        code = arg_set(t->args, o->template_args.items[i]);
    t->tools = o->chat_tools_file;
    t->no_calls = o->tool_choice && strcmp(o->tool_choice, "none") == 0;
    return code || !t->tools ? code : tools_read(t->args, t->tools);
}

void tool_template_fini(tool_template *t) {
    hn_free(t->text);
    json_decref(t->args);
    *t = (tool_template){0};
}

bool tool_template_used(const tool_template *t, const hunch_model *m) {
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    return !t->raw && (t->text || info.has_chat_template);
}

#define NO_TOOLS "the chat template ignores tools, so the model would not see them"

/* ---- text to ids --------------------------------------------------------------------------------------------- */

static void ids_take(hunch_token **to, size_t *n_to, const hunch_token *ids, size_t n) {
    *to = tool_alloc(n, sizeof **to);
    if (n)
        memcpy(*to, ids, n * sizeof *ids);
    *n_to = n;
}

/* A rendered conversation. */
typedef struct chat_text {
    char *text;
    size_t len;
    hunch_piece *pieces;
    size_t n_pieces;
} chat_text;

static void chat_text_fini(chat_text *c) {
    hunch_free(c->text);
    hunch_free(c->pieces);
}

/* The functions below return the exit code and leave the message in err, so that the caller can add the prompt's
 * place. Takes the ids, if there are any. */
static int ids_of(tool_rendered *out, hunch_status status, hunch_token *ids, size_t n, hunch_error *err) {
    if (status != HUNCH_OK)
        return (int)status;
    int code = n == 0 ? (int)hn_fail(err, HUNCH_USAGE, "the prompt is empty") : 0;
    if (!code)
        ids_take(&out->ids, &out->n, ids, n);
    hunch_free(ids);
    return code;
}

static int ids_of_text(tool_rendered *out, const hunch_model *m, const char *text, size_t len, hunch_error *err) {
    hunch_token *ids = NULL;
    size_t n = 0;
    const hunch_status s = hunch_tokenize(m, text, len, HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL, &ids, &n, err);
    return ids_of(out, s, ids, n, err);
}

static int ids_of_chat(tool_rendered *out, const hunch_model *m, const chat_text *c, hunch_error *err) {
    hunch_token *ids = NULL;
    size_t n = 0;
    const hunch_status s = hunch_tokenize_pieces(m, c->text, c->len, c->pieces, c->n_pieces, &ids, &n, err);
    return ids_of(out, s, ids, n, err);
}

/* Renders messages by the template; chat_text_fini frees it. tools NULL: none, even if t has some. */
static int text_of(chat_text *c, const tool_template *t, const hunch_model *m, json_t *messages,
                   json_t *tools, hunch_error *err) {
    json_t *vars = json_copy(t->args);
    char *dump = NULL;
    json_object_del(vars, "tools");
    if (vars && json_object_set(vars, "messages", messages) == 0 &&
        (!tools || json_object_set(vars, "tools", tools) == 0))
        dump = tool_json_dump(vars, 0);
    json_decref(vars);
    if (!dump)
        return (int)hn_fail(err, HUNCH_NO_MEMORY, "out of memory for the chat template");
    hunch_error why = {0};
    hunch_chat_options how;
    hunch_chat_options_defaults(&how);
    how.template_text = t->text;
    const int code = (int)hunch_chat_pieces(m, dump, &how, &c->text, &c->len, &c->pieces, &c->n_pieces, &why);
    if (code)
        hn_fail(err, why.status, "%.300s%s%.600s", t->path ? t->path : "", t->path ? ": " : "", why.message);
    hn_free(dump);
    return code;
}

/* Whether the template's output depends on the tools: it may ignore them, so that the model would not see them. A
 * template that fails without them depends on them. */
static bool uses_tools(const chat_text *with, const tool_template *t, const hunch_model *m, json_t *messages) {
    hunch_error ignored;
    chat_text c = {0};
    const bool same =
        text_of(&c, t, m, messages, NULL, &ignored) == 0 && c.len == with->len && memcmp(c.text, with->text, c.len) == 0;
    chat_text_fini(&c);
    return !same;
}

/* tools: of this conversation, instead of those of t; NULL: none. */
static int template_render(tool_rendered *out, const tool_template *t, const hunch_model *m, json_t *messages,
                           json_t *tools, hunch_error *err) {
    chat_text c = {0};
    json_t *given = t->no_calls ? NULL : tools ? tools : json_object_get(t->args, "tools");
    int code = text_of(&c, t, m, messages, given, err);
    if (!code && given && given == tools && !uses_tools(&c, t, m, messages))
        code = (int)hn_fail(err, HUNCH_USAGE, "\"tools\": " NO_TOOLS);
    if (!code) {
        out->chat = true;
        out->thinks = hunch_prompt_thinks(m, c.text, c.len);
        code = ids_of_chat(out, m, &c, err);
    }
    chat_text_fini(&c);
    return code;
}

/* A template that refuses this sample conversation may still accept others, so it passes. */
static int tools_check(const tool_template *t, const hunch_model *m) {
    hunch_error ignored;
    chat_text c = {0};
    json_t *messages = json_pack("[{s:s,s:s}]", "role", "user", "content", "a"),
           *tools = json_object_get(t->args, "tools");
    const bool used =
        text_of(&c, t, m, messages, tools, &ignored) != 0 || uses_tools(&c, t, m, messages);
    chat_text_fini(&c);
    json_decref(messages);
    return used ? 0 : tool_usage("--tools %s: " NO_TOOLS, t->tools);
}

int tool_template_check(const tool_template *t, hunch_model *m) {
    hunch_error err = {0};
    if (t->text && m && hunch_model_set_marks(m, t->text, &err))
        return tool_failed(&err);
    if (json_object_size(t->args) && !tool_template_used(t, m))
        return tool_usage("%s: the model has no chat template, and no --chat-template-file was given",
                          json_object_get(t->args, "tools") ? "--tools" : "--template-arg");
    return t->tools && json_object_get(t->args, "tools") ? tools_check(t, m) : 0;
}

static int contents_join(tool_rendered *out, const hunch_model *m, const json_t *messages, hunch_error *err) {
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
    int code = ids_of_text(out, m, text ? text : "", len, err);
    hn_free(text);
    return code;
}

int tool_messages_render(tool_rendered *out, const tool_template *t, const hunch_model *m, json_t *messages,
                         hunch_error *err) {
    *out = (tool_rendered){0};
    return tool_template_used(t, m) ? template_render(out, t, m, messages, NULL, err)
                                    : contents_join(out, m, messages, err);
}

/* ---- prompts ------------------------------------------------------------------------------------------------- */

/* A conversation without a system message gets that of --system. */
static void system_insert(json_t *messages, const tool_template *t) {
    const json_t *role = json_object_get(json_array_get(messages, 0), "role");
    const char *first = json_is_string(role) ? json_string_value(role) : "";
    if (t->system && strcmp(first, "system") != 0 && strcmp(first, "developer") != 0)
        json_array_insert_new(messages, 0, json_pack("{s:s,s:s}", "role", "system", "content", t->system));
}

/* The ids of the conversation of a row, or of its text as one message. */
static int conversation_ids(tool_prompt *p, const hunch_model *m, const tool_template *t, hunch_error *err) {
    json_t *messages = p->messages ? json_copy(p->messages)
                                   : json_pack("[{s:s,s:o}]", "role", "user", "content", json_stringn(p->text, p->len));
    tool_rendered r = {0};
    int code;
    if (!messages)
        return (int)hn_fail(err, HUNCH_NO_MEMORY, "out of memory for the chat template");
    system_insert(messages, t);
    if (tool_template_used(t, m))
        code = template_render(&r, t, m, messages, p->tools, err);
    else if (p->tools)
        code = (int)hn_fail(err, HUNCH_USAGE, "\"tools\": there is no chat template to render them");
    else
        code = contents_join(&r, m, messages, err);
    json_decref(messages);
    p->ids = r.ids;
    p->n_ids = r.n;
    p->chat = r.chat;
    p->thinks = r.thinks;
    return code;
}

static int text_ids(tool_prompt *p, const hunch_model *m, const tool_template *t, hunch_error *err) {
    if (p->len == 0)
        return (int)hn_fail(err, HUNCH_USAGE, "the prompt is empty");
    size_t valid = hn_utf8_check(p->text, p->len);
    if (valid < p->len)
        return (int)hn_fail(err, HUNCH_USAGE, "the prompt is not valid UTF-8 at byte %zu", valid);
    if (t)
        return conversation_ids(p, m, t, err);
    tool_rendered r = {0};
    int code = ids_of_text(&r, m, p->text, p->len, err);
    p->ids = r.ids;
    p->n_ids = r.n;
    return code;
}

static int prediction_ids(tool_prompt *p, const hunch_model *m, hunch_error *err) {
    hunch_token *ids;
    size_t n;
    hunch_status s = hunch_tokenize(m, p->prediction, p->prediction_len, 0, &ids, &n, err);
    if (s != HUNCH_OK)
        return (int)s;
    ids_take(&p->prediction_ids, &p->n_prediction, ids, n);
    hunch_free(ids);
    return 0;
}

int tool_prompt_render(tool_prompt *p, const hunch_model *m, const tool_template *t, hunch_error *err) {
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    if ((p->text || p->messages) && !info.has_tokenizer)
        return (int)hn_fail(err, HUNCH_USAGE, "the model has no tokenizer: give token ids with --tokens FILE instead of text");
    if (p->prediction && !info.has_tokenizer)
        return (int)hn_fail(err, HUNCH_USAGE, "the model has no tokenizer: \"prediction\", a text, cannot be used");
    int code = p->messages ? conversation_ids(p, m, t, err) : p->text ? text_ids(p, m, t, err) : 0;
    return code || !p->prediction ? code : prediction_ids(p, m, err);
}

int tool_prompt_ids(tool_prompt *p, const hunch_model *m, const tool_template *t) {
    hunch_error err = {0};
    char where[1100];
    int code = tool_prompt_render(p, m, t, &err);
    if (code)
        tool_message("%s%s", tool_prompt_where(p, where, sizeof where), err.message);
    return code;
}
