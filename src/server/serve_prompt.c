/* SPDX-License-Identifier: Apache-2.0 */
/* serve_prompt.c - see serve_prompt.h. */
#include "server/serve_prompt.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/serve_fields.h"

bool serve_prompt_tokenize(hunch_model *m, const char *text, size_t len, int flags, const char *field, size_t most, hunch_token **ids,
                           size_t *n, serve_error *err) {
    hunch_error why = {0};
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    if (!info.has_tokenizer) return serve_fail(err, 400, field, "the model has no tokenizer: send token ids");
    if (hunch_tokenize_at_most(m, text, len, NULL, 0, flags, most, ids, n, &why)) return serve_fail_hunch(err, field, &why);
    return true;
}

/* ---- conversations ------------------------------------------------------------------------------------------- */

/* A list of text parts as one text: templates expect a text. NULL: another kind of part. */
static json_t *parts_join(const json_t *parts, const char **wrong) {
    serve_bytes all = {0};
    size_t i;
    const json_t *part;
    bool ok = true;
    json_array_foreach(parts, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *text = json_object_get(part, "text");
        ok = ok && type && strcmp(type, "text") == 0 && json_is_string(text) &&
             serve_bytes_add(&all, json_string_value(text), json_string_length(text));
        if (!ok && !*wrong) *wrong = type ? type : "none";
    }
    json_t *joined = ok ? json_stringn(all.n ? all.at : "", all.n) : NULL;
    serve_bytes_free(&all);
    return joined;
}

json_t *serve_prompt_content(const json_t *content) {
    const char *wrong = NULL;
    return json_is_array(content) ? parts_join(content, &wrong) : json_is_string(content) ? json_copy((json_t *)(uintptr_t)content) : NULL;
}

/* What clients call reasoning_content is `thinking` for templates with channels; they take one text beside calls. */
static void thinking_name(json_t *message) {
    json_t *thinking = json_object_get(message, "reasoning_content");
    const bool both = json_string_length(json_object_get(message, "content")) && json_array_size(json_object_get(message, "tool_calls"));
    if (json_string_length(thinking) && !both && !json_object_get(message, "thinking")) json_object_set(message, "thinking", thinking);
}

static bool message_read(json_t *message, size_t i, serve_error *err) {
    char field[80];
    const char *wrong = NULL;
    json_t *content = json_object_get(message, "content");
    snprintf(field, sizeof field, "messages[%zu].content", i);
    if (!json_string_length(json_object_get(message, "role")))
        return serve_fail(err, 400, "messages", "messages[%zu] is not an object with a role", i);
    if (json_is_array(content)) {
        json_t *joined = parts_join(content, &wrong);
        if (!joined) return serve_fail(err, 400, field, "%s: a part of type %.40s: only text is supported", field, wrong);
        json_object_set_new(message, "content", joined);
    } else if (content && !json_is_string(content) && !json_is_null(content))
        return serve_fail(err, 400, field, "%s is not a text or a list of parts", field);
    thinking_name(message);
    return true;
}

/* The conversation as templates expect it: a new array. NULL after an error. */
static json_t *messages_read(const json_t *body, serve_error *err) {
    const json_t *given = serve_field(body, "messages");
    if (!json_array_size(given)) return serve_fail(err, 400, "messages", "messages is not a list of messages, or is empty"), NULL;
    json_t *messages = json_deep_copy(given);
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message)
        if (!message_read(message, i, err)) return json_decref(messages), NULL;
    return messages;
}

static bool tools_add(json_t *vars, const json_t *body, serve_error *err) {
    json_t *tools = serve_field(body, "tools");
    const char *choice = json_string_value(serve_field(body, "tool_choice"));
    if (!tools || (json_is_array(tools) && json_array_size(tools) == 0)) return true;
    if (!json_is_array(tools)) return serve_fail(err, 400, "tools", "tools is not a list");
    if (!choice || strcmp(choice, "none") != 0) json_object_set(vars, "tools", tools);
    return true;
}

/* Variables of the template. NULL after an error. */
static json_t *variables(const json_t *body, bool add, serve_error *err) {
    json_t *vars = json_object(), *own = serve_field(body, "chat_template_kwargs");
    json_t *messages = messages_read(body, err), *effort = serve_field(body, "reasoning_effort");
    if (messages && own && !hn_json_is_object(own))
        serve_fail(err, 400, "chat_template_kwargs", "chat_template_kwargs is not an object"), json_decref(messages), messages = NULL;
    if (messages && effort && !json_is_string(effort))
        serve_fail(err, 400, "reasoning_effort", "reasoning_effort is not a text"), json_decref(messages), messages = NULL;
    if (!messages || !tools_add(vars, body, err)) return json_decref(messages), json_decref(vars), NULL;
    json_object_set_new(vars, "add_generation_prompt", json_boolean(add));
    if (effort) json_object_set(vars, "reasoning_effort", effort);
    if (own) json_object_update(vars, own);
    json_object_set_new(vars, "messages", messages);
    return vars;
}

void serve_rendered_free(serve_rendered *r) {
    hunch_free(r->text);
    hunch_free(r->pieces);
    *r = (serve_rendered){0};
}

static bool render(const serve_server *s, hunch_model *m, json_t *vars, serve_rendered *to, serve_error *err) {
    hunch_chat_options how;
    hunch_error why = {0};
    char *dump = serve_json_dump(vars, 0);
    hunch_chat_options_defaults(&how);
    how.template_text = s->settings->template_text;
    const hunch_status st = hunch_chat_pieces(m, dump, &how, &to->text, &to->len, &to->pieces, &to->n_pieces, &why);
    hn_free(dump);
    return st ? serve_fail_hunch(err, "messages", &why) : true;
}

/* Messages that only call have null as their content; templates that fail for it may take none, or an empty text. False: there is no such
 * message. */
static bool nulls_change(json_t *vars, bool drop) {
    bool any = false;
    size_t i;
    json_t *message;
    json_array_foreach(json_object_get(vars, "messages"), i, message) {
        const json_t *content = json_object_get(message, "content");
        if (content && !json_is_null(content)) continue;
        if (drop) json_object_del(message, "content");
        else json_object_set_new(message, "content", json_string(""));
        any = true;
    }
    return any;
}

/* Without a template: the contents, one after the other. */
static bool contents_join(const json_t *vars, serve_rendered *to) {
    serve_bytes all = {0};
    size_t i;
    const json_t *message;
    json_array_foreach(json_object_get(vars, "messages"), i, message) {
        const json_t *content = json_object_get(message, "content");
        serve_bytes_join(&all, json_string_value(content), json_string_length(content));
    }
    to->text = hn_strndup(all.n ? all.at : "", all.n); /* hunch_free takes it, too */
    to->len = all.n;
    serve_bytes_free(&all);
    return to->text != NULL;
}

/* Whether the template's output depends on the tools: else the model would not see them. */
static bool tools_seen(const serve_server *s, hunch_model *m, json_t *vars, const serve_rendered *with, serve_error *err) {
    serve_error ignored;
    serve_rendered without = {0};
    if (!json_object_get(vars, "tools")) return true;
    json_object_del(vars, "tools");
    const bool same = render(s, m, vars, &without, &ignored) && without.len == with->len && !memcmp(without.text, with->text, with->len);
    serve_rendered_free(&without);
    return same ? serve_fail(err, 400, "tools", "the model's chat template ignores tools, so it would not see them") : true;
}

static bool has_template(const serve_server *s, const hunch_model *m) {
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    return s->settings->template_text || info.has_chat_template;
}

/* A text without the white space at its ends, which templates may drop. */
static const char *trimmed(const char *text, size_t *n) {
    while (*n && isspace((unsigned char)*text)) text++, --*n;
    while (*n && isspace((unsigned char)text[*n - 1])) --*n;
    return text;
}

/* Cuts a rendered conversation behind the last message's text, so that the answer continues it. */
static bool end_cut(const json_t *vars, serve_rendered *r, serve_error *err) {
    const json_t *messages = json_object_get(vars, "messages"), *last = json_array_get(messages, json_array_size(messages) - 1);
    const json_t *content = json_object_get(last, "content");
    size_t n = json_string_length(content), end = r->len;
    if (strcmp(json_string_value(json_object_get(last, "role")), "assistant") != 0 || json_object_get(last, "tool_calls") || n == 0)
        return serve_fail(err, 400, "continue_final_message",
                          "continue_final_message: the last of messages is not a text of the assistant, which could be continued");
    const char *wanted = trimmed(json_string_value(content), &n);
    if (!r->pieces) return true; /* without a template the text ends with it */
    for (size_t i = r->n_pieces; i-- > 0; end -= r->pieces[i].len) {
        size_t len = r->pieces[i].len;
        const char *piece = trimmed(r->text + end - len, &len);
        if (r->pieces[i].special || len != n || memcmp(piece, wanted, n) != 0) continue;
        r->pieces[i].len = (size_t)(piece + n - (r->text + end - r->pieces[i].len));
        r->n_pieces = i + 1;
        r->len = (size_t)(piece + n - r->text);
        r->text[r->len] = 0;
        return true;
    }
    return serve_fail(err, 400, "messages", "messages: the chat template changes the last one, so that it cannot be continued");
}

bool serve_prompt_render(serve_server *s, hunch_model *m, const json_t *body, bool add, serve_rendered *to, serve_error *err) {
    *to = (serve_rendered){0};
    bool go_on = false;
    if (!serve_field_bool(body, "continue_final_message", &go_on, err)) return false;
    add = add && !go_on;
    json_t *vars = variables(body, add, err);
    if (!vars) return false;
    bool ok;
    if (has_template(s, m))
        ok = (render(s, m, vars, to, err) || (nulls_change(vars, true) && render(s, m, vars, to, err)) ||
              (nulls_change(vars, false) && render(s, m, vars, to, err))) &&
             tools_seen(s, m, vars, to, err);
    else if (json_object_get(vars, "tools")) ok = serve_fail(err, 400, "tools", "the model has no chat template that renders tools");
    else ok = contents_join(vars, to) || serve_fail(err, 503, NULL, "no memory for the conversation");
    ok = ok && (!go_on || end_cut(vars, to, err));
    json_decref(vars);
    if (!ok) serve_rendered_free(to);
    return ok;
}

bool serve_rendered_tokenize(hunch_model *m, const serve_rendered *r, size_t most, hunch_token **ids, size_t *n, serve_error *err) {
    hunch_error why = {0};
    if (!r->pieces) return serve_prompt_tokenize(m, r->text, r->len, HUNCH_TEXT_ADD_SPECIAL, "messages", most, ids, n, err);
    if (hunch_tokenize_at_most(m, r->text, r->len, r->pieces, r->n_pieces, HUNCH_TEXT_RENDERED, most, ids, n, &why))
        return serve_fail_hunch(err, "messages", &why);
    return true;
}

/* A longer prompt is refused (serve_request.c), by its bytes if these tell. */
static size_t most_tokens(serve_server *s) { return (size_t)serve_engine_context(s->engine); }

static serve_prompt *prompts_make(serve_call *c, size_t n) {
    c->prompts = serve_alloc(n, sizeof *c->prompts);
    c->n_prompts = (int)n;
    return c->prompts;
}

bool serve_prompt_chat(serve_server *s, serve_call *c, hunch_model *m, const json_t *body, serve_error *err) {
    serve_rendered rendered;
    bool add = true;
    if (!serve_field_bool(body, "add_generation_prompt", &add, err) || !serve_prompt_render(s, m, body, add, &rendered, err)) return false;
    serve_prompt *p = prompts_make(c, 1);
    bool ok = serve_rendered_tokenize(m, &rendered, most_tokens(s), &p->ids, &p->n, err);
    p->thinks = hunch_prompt_thinks(m, rendered.text, rendered.len);
    /* Marks are in no answer that is sent. */
    if (c->tools || (has_template(s, m) && hunch_marks_are_special(m))) c->request.special_text = true;
    serve_rendered_free(&rendered);
    if (ok && p->n == 0) ok = serve_fail(err, 400, "messages", "the conversation is empty");
    return ok;
}

/* ---- completions --------------------------------------------------------------------------------------------- */

static bool text_read(serve_server *s, serve_prompt *p, hunch_model *m, const json_t *text, bool special, serve_error *err) {
    const int flags = HUNCH_TEXT_PARSE_SPECIAL | (special ? HUNCH_TEXT_ADD_SPECIAL : 0);
    const char *at = json_string_value(text);
    const size_t len = json_string_length(text);
    if (!serve_bytes_add(&p->text, at, len)) return serve_fail(err, 503, NULL, "no memory for the prompt");
    return serve_prompt_tokenize(m, at, len, flags, "prompt", most_tokens(s), &p->ids, &p->n, err);
}

static bool ids_read(serve_prompt *p, hunch_model *m, const json_t *list, serve_error *err) {
    hunch_model_info info;
    hunch_error why = {0};
    char *text = NULL;
    size_t len = 0;
    hunch_model_get_info(m, &info);
    if (!serve_ids_read(list, "prompt", info.vocab, &p->ids, &p->n, err)) return false;
    if (info.has_tokenizer && hunch_detokenize(m, p->ids, p->n, &text, &len, &why)) return serve_fail_hunch(err, "prompt", &why);
    const bool kept = serve_bytes_add(&p->text, text, len);
    hunch_free(text);
    return kept ? true : serve_fail(err, 503, NULL, "no memory for the prompt");
}

bool serve_prompt_completion(serve_server *s, serve_call *c, hunch_model *m, const json_t *body, serve_error *err) {
    const json_t *given = serve_field(body, "prompt");
    const json_t *first = json_array_get(given, 0);
    const bool many = json_is_array(given) && !hn_json_is_number(first);
    const size_t n = many ? json_array_size(given) : 1;
    bool special = true;
    if (!serve_field_bool(body, "add_special_tokens", &special, err)) return false;
    if (!given || n == 0) return serve_fail(err, 400, "prompt", "prompt is missing or empty");
    if (n > SERVE_MOST_CHOICES) return serve_fail(err, 400, "prompt", "%zu prompts: at most %d", n, SERVE_MOST_CHOICES);
    prompts_make(c, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = many ? json_array_get(given, i) : given;
        serve_prompt *p = &c->prompts[i];
        const bool text = json_is_string(one);
        if (!text && !json_is_array(one))
            return serve_fail(err, 400, "prompt", "prompt is not a text, a list of texts, ids or a list of lists of ids");
        if (!(text ? text_read(s, p, m, one, special, err) : ids_read(p, m, one, err))) return false;
        if (p->n == 0) return serve_fail(err, 400, "prompt", "a prompt is empty");
    }
    return true;
}
