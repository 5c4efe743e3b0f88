/* SPDX-License-Identifier: Apache-2.0 */
/* serve_openai.c - the bodies of OpenAI's /v1/chat/completions and /v1/completions. Our names of fields are theirs, and else vLLM's and
 * llama.cpp's; docs/server.md lists them. What they answer is in serve_answer.c. */
#include "server/serve_openai.h"

#include <stdio.h>
#include <string.h>

#include "server/serve_endpoints.h"
#include "server/serve_prompt.h"
#include "server/serve_request.h"

enum { COMPLETION_TOKENS = 16 }; /* of OpenAI: max_tokens of completions */

/* ---- what is refused ----------------------------------------------------------------------------------------- */

static bool switch_check(const serve_view *v, const char *name, bool must, serve_error *err) {
    bool value = must;
    if (!serve_field_bool(v, name, &value, err)) return false;
    return value == must ? true : serve_wrong(err, v, name, ": only %s is supported", must ? "true" : "false");
}

/* What an answer consists of: a text. */
static bool modalities_check(const serve_view *v, serve_error *err) {
    const json_t *list = serve_field(v, "modalities"), *one = json_array_get(list, 0);
    if (!list || (json_array_size(list) == 1 && json_is_string(one) && strcmp(json_string_value(one), "text") == 0)) return true;
    return serve_wrong(err, v, "modalities", ": only [\"text\"] is supported");
}

/* Fields that would change the answer and are not honoured: ignoring them silently would be wrong. */
static bool refused_check(const serve_view *v, serve_error *err) {
    static const char *const refused[] = {
        "suffix", "functions", "function_call", "logits_processors", "bad_words", "allowed_token_ids", "audio", "chat_template",
        "documents", "images", "web_search_options", "lora_request", "prompt_logprobs", "truncate_prompt_tokens", "thinking_token_budget",
        "guided_whitespace_pattern", NULL};
    return serve_refused_check(v, refused, "", err) && modalities_check(v, err) && switch_check(v, "use_beam_search", false, err) &&
           switch_check(v, "include_stop_str_in_output", false, err);
}

/* ---- chats --------------------------------------------------------------------------------------------------- */

static bool message_read(json_t *message, size_t i, serve_error *err) {
    char field[SERVE_NAME];
    const char *wrong = NULL;
    json_t *content = json_object_get(message, "content");
    snprintf(field, sizeof field, "messages[%zu].content", i);
    if (!json_string_length(json_object_get(message, "role")))
        return serve_fail(err, 400, "messages", "messages[%zu] is not an object with a role", i);
    if (!content || json_is_null(content)) return true;
    json_t *text = serve_prompt_content(content, &wrong);
    if (wrong) return serve_fail(err, 400, field, "%s: a part of type %.40s: only text is supported", field, wrong);
    if (!text) return serve_fail(err, 400, field, "%s is not a text or a list of parts", field);
    json_object_set_new(message, "content", text);
    return true;
}

static bool messages_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "messages");
    size_t i;
    json_t *message;
    if (!json_array_size(given)) return serve_wrong(err, v, "messages", " is not a list of messages, or is empty");
    w->messages = json_deep_copy(given);
    json_array_foreach(w->messages, i, message) if (!message_read(message, i, err)) return false;
    return true;
}

bool serve_choice_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    static const char *const words[] = {"auto", "none", "required"};
    const json_t *given = serve_field(v, "tool_choice"), *function = json_object_get(given, "function");
    const char *word = json_string_value(given);
    for (int i = 0; word && i < 3; i++)
        if (strcmp(word, words[i]) == 0) return w->choice = (hunch_tool_choice)i, true;
    w->function = json_string_value(json_object_get(function ? function : given, "name"));
    if (given && !w->function) return serve_wrong(err, v, "tool_choice", " is none of auto, none, required, and names no function");
    if (given) w->choice = HUNCH_TOOLS_NAMED;
    return true;
}

bool serve_openai_chat(serve_wanted *w, const serve_view *v, serve_error *err) {
    json_t *tools = serve_field(v, "tools");
    bool parallel = true;
    w->tools = json_incref(tools);
    if (tools && !json_is_array(tools)) return serve_wrong(err, v, "tools", " is not a list");
    if (!serve_choice_read(w, v, err) || !serve_field_bool(v, "parallel_tool_calls", &parallel, err) ||
        !serve_field_bool(v, "continue_final_message", &w->goes_on, err)) return false;
    w->one_call = !parallel;
    return messages_read(w, v, err);
}

bool serve_chat(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body};
    serve_wanted w = {0};
    if (serve_model(s, err) && refused_check(&v, err) && serve_openai_chat(&w, &v, err))
        r->call = serve_request_read(s, q, &v, &w, true, err);
    serve_wanted_free(&w);
    return r->call != NULL;
}

bool serve_completion(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body};
    serve_wanted w = {.most = COMPLETION_TOKENS};
    if (serve_model(s, err) && refused_check(&v, err)) r->call = serve_request_read(s, q, &v, &w, false, err);
    serve_wanted_free(&w);
    return r->call != NULL;
}
