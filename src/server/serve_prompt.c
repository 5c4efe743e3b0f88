/* SPDX-License-Identifier: Apache-2.0 */
/* serve_prompt.c - see serve_prompt.h. */
#include "server/serve_prompt.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/protocols/serve_about.h"

/* An error of the library. */
static bool failed(serve_error *err, const serve_view *v, const char *field, const hunch_error *why) {
    char name[SERVE_NAME];
    return serve_fail_hunch(err, serve_field_name(v, field, name), why);
}

bool serve_prompt_tokenize(hunch_model *m, const serve_view *v, const char *text, size_t len, int flags, const char *field, size_t most,
                           hunch_token **ids, size_t *n, serve_error *err) {
    hunch_error why = {0};
    hunch_model_info info;
    char name[SERVE_NAME];
    hunch_model_get_info(m, &info);
    if (!info.has_tokenizer)
        return serve_fail(err, 400, serve_field_name(v, field, name), "the model has no tokenizer: send token ids");
    return hunch_tokenize_at_most(m, text, len, NULL, 0, flags, most, ids, n, &why) ? failed(err, v, field, &why) : true;
}

/* ---- conversations ------------------------------------------------------------------------------------------- */

json_t *serve_prompt_content(const serve_view *v, const char *name, serve_error *err) {
    const json_t *content = serve_field(v, name), *part;
    serve_bytes all = {0};
    size_t i;
    if (!content) return NULL;
    if (json_is_string(content)) return json_copy((json_t *)(uintptr_t)content);
    bool ok = json_is_array(content) || serve_wrong(err, v, name, " is not a text or a list of parts");
    json_array_foreach(content, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *text = json_object_get(part, "text");
        char field[SERVE_NAME];
        if (!ok) break;
        snprintf(field, sizeof field, "%s[%zu]", name, i);
        if (!type || strcmp(type, "text") != 0)
            ok = serve_wrong(err, v, field, ": a part of type %.40s: only text is supported", type ? type : "none");
        else if (!json_is_string(text)) ok = serve_wrong(err, v, field, ".text is not a text");
        else serve_bytes_join(&all, json_string_value(text), json_string_length(text));
    }
    json_t *joined = ok ? json_stringn(all.n ? all.at : "", all.n) : NULL;
    serve_bytes_free(&all);
    return joined;
}

/* Whether the model thinks, by the variables that templates have for it, unless the client has set these itself. */
static void think_set(json_t *vars, int think) {
    static const char *const names[] = {"enable_thinking", "thinking"};
    for (int i = 0; think && i < 2; i++)
        if (!json_object_get(vars, names[i])) json_object_set_new(vars, names[i], json_boolean(think > 0));
}

/* What clients call reasoning_content is `thinking` for templates with channels; they take one text beside calls. */
static void thinking_name(json_t *message) {
    json_t *thinking = json_object_get(message, "reasoning_content");
    const bool both = json_string_length(json_object_get(message, "content")) && json_array_size(json_object_get(message, "tool_calls"));
    if (json_string_length(thinking) && !both && !json_object_get(message, "thinking")) json_object_set(message, "thinking", thinking);
}

/* Variables of the template. NULL after an error. */
static json_t *variables(const serve_view *v, const serve_wanted *w, bool add, serve_error *err) {
    json_t *own = serve_field(v, "chat_template_kwargs"), *message;
    size_t i;
    const json_t *effort = w->effort ? w->effort : serve_field(v, "reasoning_effort");
    if (own && !hn_json_is_object(own)) return serve_wrong(err, v, "chat_template_kwargs", " is not an object"), NULL;
    if (!w->effort && !serve_effort_check(v, "reasoning_effort", err)) return NULL;
    json_t *vars = json_object();
    if (json_array_size(w->tools) && w->choice != HUNCH_TOOLS_NONE) json_object_set(vars, "tools", w->tools);
    json_object_set_new(vars, "add_generation_prompt", json_boolean(add));
    if (effort) json_object_set(vars, "reasoning_effort", (json_t *)(uintptr_t)effort);
    if (own) json_object_update(vars, own);
    think_set(vars, w->think ? w->think : effort && strcmp(json_string_value(effort), "none") == 0 ? -1 : 0);
    json_object_set(vars, "messages", w->messages);
    json_array_foreach(w->messages, i, message) thinking_name(message);
    return vars;
}

void serve_rendered_free(serve_rendered *r) {
    hunch_free(r->text);
    hunch_free(r->pieces);
    *r = (serve_rendered){0};
}

static bool render(const serve_server *s, hunch_model *m, const serve_view *v, json_t *vars, serve_rendered *to, serve_error *err) {
    hunch_chat_options how;
    hunch_error why = {0};
    char *dump = serve_json_dump(vars, 0);
    hunch_chat_options_defaults(&how);
    how.template_text = s->settings->template_text;
    const hunch_status st = hunch_chat_pieces(m, dump, &how, &to->text, &to->len, &to->pieces, &to->n_pieces, &why);
    hn_free(dump);
    return st ? failed(err, v, "messages", &why) : true;
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
static bool tools_seen(const serve_server *s, hunch_model *m, const serve_view *v, json_t *vars, const serve_rendered *with,
                       serve_error *err) {
    serve_error ignored;
    serve_rendered without = {0};
    if (!json_object_get(vars, "tools")) return true;
    json_object_del(vars, "tools");
    const bool same = render(s, m, v, vars, &without, &ignored) && without.len == with->len && !memcmp(without.text, with->text, with->len);
    serve_rendered_free(&without);
    char name[SERVE_NAME];
    return !same || serve_fail(err, 400, serve_field_name(v, "tools", name),
                               "the model's chat template ignores tools, so it would not see them");
}

/* Whether the template's output depends on earlier calls. One that does names them, unless it writes whole messages. */
static bool calls_seen(serve_server *s, hunch_model *m, const serve_view *v, const serve_wanted *w, json_t *vars,
                       const serve_rendered *with, serve_error *err) {
    serve_error ignored;
    serve_rendered without = {0};
    size_t i;
    json_t *message, *messages;
    if (!serve_calls_count(w->messages) || strstr(serve_about_template(s), "tool_calls")) return true;
    json_object_set_new(vars, "messages", messages = json_deep_copy(w->messages));
    json_array_foreach(messages, i, message) json_object_del(message, "tool_calls");
    const bool same = render(s, m, v, vars, &without, &ignored) && without.len == with->len && !memcmp(without.text, with->text, with->len);
    json_object_set(vars, "messages", w->messages);
    serve_rendered_free(&without);
    return !same || serve_wrong(err, v, "messages", ": the model's chat template ignores calls of tools, so it would not see them");
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
static bool end_cut(const serve_view *v, const json_t *vars, serve_rendered *r, serve_error *err) {
    const json_t *messages = json_object_get(vars, "messages"), *last = json_array_get(messages, json_array_size(messages) - 1);
    const json_t *content = json_object_get(last, "content");
    size_t n = json_string_length(content), end = r->len;
    if (strcmp(json_string_value(json_object_get(last, "role")), "assistant") != 0 || json_object_get(last, "tool_calls") || n == 0)
        return serve_wrong(err, v, "continue_final_message",
                           ": the last of messages is not a text of the assistant, which could be continued");
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
    return serve_wrong(err, v, "messages", ": the chat template changes the last one, so that it cannot be continued");
}

bool serve_prompt_render(serve_server *s, hunch_model *m, const serve_view *v, const serve_wanted *w, bool add, serve_rendered *to,
                         serve_error *err) {
    char name[SERVE_NAME];
    *to = (serve_rendered){0};
    json_t *vars = variables(v, w, add && !w->goes_on, err);
    if (!vars) return false;
    bool ok;
    if (has_template(s, m))
        ok = (render(s, m, v, vars, to, err) || (nulls_change(vars, true) && render(s, m, v, vars, to, err)) ||
              (nulls_change(vars, false) && render(s, m, v, vars, to, err))) &&
             calls_seen(s, m, v, w, vars, to, err) && tools_seen(s, m, v, vars, to, err);
    else if (json_object_get(vars, "tools"))
        ok = serve_fail(err, 400, serve_field_name(v, "tools", name), "the model has no chat template that renders tools");
    else if (serve_calls_count(w->messages))
        ok = serve_wrong(err, v, "messages", ": the model has no chat template that renders calls of tools");
    else ok = contents_join(vars, to) || serve_fail(err, 503, NULL, "no memory for the conversation");
    ok = ok && (!w->goes_on || end_cut(v, vars, to, err));
    json_decref(vars);
    if (!ok) serve_rendered_free(to);
    return ok;
}

bool serve_rendered_tokenize(hunch_model *m, const serve_view *v, const serve_rendered *r, size_t most, hunch_token **ids, size_t *n,
                             serve_error *err) {
    hunch_error why = {0};
    if (!r->pieces) return serve_prompt_tokenize(m, v, r->text, r->len, HUNCH_TEXT_ADD_SPECIAL, "messages", most, ids, n, err);
    return hunch_tokenize_at_most(m, r->text, r->len, r->pieces, r->n_pieces, HUNCH_TEXT_RENDERED, most, ids, n, &why)
               ? failed(err, v, "messages", &why)
               : true;
}

/* A longer prompt is refused (serve_request.c), by its bytes if these tell. */
static size_t most_tokens(serve_server *s) { return (size_t)serve_engine_context(s->engine); }

static serve_prompt *prompts_make(serve_call *c, size_t n) {
    c->prompts = serve_alloc(n, sizeof *c->prompts);
    c->n_prompts = (int)n;
    return c->prompts;
}

bool serve_prompt_chat(serve_server *s, serve_call *c, hunch_model *m, const serve_view *v, const serve_wanted *w, serve_error *err) {
    serve_rendered rendered;
    bool add = true;
    if (!serve_field_bool(v, "add_generation_prompt", &add, err) || !serve_prompt_render(s, m, v, w, add, &rendered, err)) return false;
    serve_prompt *p = prompts_make(c, 1);
    bool ok = serve_rendered_tokenize(m, v, &rendered, most_tokens(s), &p->ids, &p->n, err);
    p->thinks = hunch_prompt_thinks(m, rendered.text, rendered.len);
    /* Marks are in no answer that is sent. */
    if (c->tools || (has_template(s, m) && hunch_marks_are_special(m))) c->request.special_text = true;
    serve_rendered_free(&rendered);
    if (ok && p->n == 0) ok = serve_wrong(err, v, "messages", ": the conversation is empty");
    return ok;
}

/* ---- completions --------------------------------------------------------------------------------------------- */

static bool text_read(serve_server *s, serve_prompt *p, hunch_model *m, const serve_view *v, const json_t *text, bool special,
                      serve_error *err) {
    const int flags = HUNCH_TEXT_PARSE_SPECIAL | (special ? HUNCH_TEXT_ADD_SPECIAL : 0);
    const char *at = json_string_value(text);
    const size_t len = json_string_length(text);
    if (!serve_bytes_add(&p->text, at, len)) return serve_fail(err, 503, NULL, "no memory for the prompt");
    return serve_prompt_tokenize(m, v, at, len, flags, "prompt", most_tokens(s), &p->ids, &p->n, err);
}

static bool ids_read(serve_prompt *p, hunch_model *m, const serve_view *v, const json_t *list, serve_error *err) {
    hunch_model_info info;
    hunch_error why = {0};
    char *text = NULL;
    size_t len = 0;
    hunch_model_get_info(m, &info);
    if (!serve_ids_read(v, "prompt", list, info.vocab, &p->ids, &p->n, err)) return false;
    if (info.has_tokenizer && hunch_detokenize(m, p->ids, p->n, &text, &len, &why)) return failed(err, v, "prompt", &why);
    const bool kept = serve_bytes_add(&p->text, text, len);
    hunch_free(text);
    return kept ? true : serve_fail(err, 503, NULL, "no memory for the prompt");
}

bool serve_prompt_completion(serve_server *s, serve_call *c, hunch_model *m, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "prompt");
    const json_t *first = json_array_get(given, 0);
    const bool many = json_is_array(given) && !hn_json_is_number(first);
    const size_t n = many ? json_array_size(given) : 1;
    bool special = true;
    if (!serve_field_bool(v, "add_special_tokens", &special, err)) return false;
    if (!given || n == 0) return serve_wrong(err, v, "prompt", " is missing or empty");
    if (n > SERVE_MOST_CHOICES) return serve_wrong(err, v, "prompt", " has %zu prompts: at most %d", n, SERVE_MOST_CHOICES);
    prompts_make(c, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = many ? json_array_get(given, i) : given;
        serve_prompt *p = &c->prompts[i];
        const bool text = json_is_string(one);
        if (!text && !json_is_array(one))
            return serve_wrong(err, v, "prompt", " is not a text, a list of texts, ids or a list of lists of ids");
        if (!(text ? text_read(s, p, m, v, one, special, err) : ids_read(p, m, v, one, err))) return false;
        if (p->n == 0) return serve_wrong(err, v, "prompt", ": a prompt is empty");
    }
    return true;
}
