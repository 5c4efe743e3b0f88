/* SPDX-License-Identifier: Apache-2.0 */
/* serve_openai.c - the bodies of OpenAI's /v1/chat/completions and /v1/completions. Our names of fields are theirs, and else vLLM's and
 * llama.cpp's; docs/server.md lists them. What they answer is in serve_answer.c. */
#include "server/protocols/serve_openai.h"

#include <stdio.h>
#include <string.h>

#include "server/protocols/serve_endpoints.h"
#include "server/serve_prompt.h"
#include "server/serve_request.h"

enum { COMPLETION_TOKENS = 16 }; /* of OpenAI: max_tokens of completions */

/* ---- what is refused ----------------------------------------------------------------------------------------- */

/* What an answer consists of: a text. */
static bool modalities_check(const serve_view *v, serve_error *err) {
    const json_t *list = serve_field(v, "modalities"), *one = json_array_get(list, 0);
    if (!list || (json_array_size(list) == 1 && json_is_string(one) && strcmp(json_string_value(one), "text") == 0)) return true;
    return serve_wrong(err, v, "modalities", ": only [\"text\"] is supported");
}

/* Fields that would change the answer and are not honoured: ignoring them silently would be wrong. */
static bool refused_check(const serve_view *v, serve_error *err) {
    static const char *const verbosities[] = {"medium", NULL};
    static const serve_only only[] = {{"mirostat", 0}, {"tfs_z", 1}, {"dynatemp_range", 0}, {"length_penalty", 1},
                                      {"no_repeat_ngram_size", 0}, {"diversity_penalty", 0}, {NULL, 0}};
    const char *verbosity = NULL;
    static const char *const refused[] = {
        "suffix", "functions", "function_call", "logits_processors", "bad_words", "allowed_token_ids", "audio", "chat_template",
        "documents", "images", "lora_request", "prompt_logprobs", "truncate_prompt_tokens",
        "guided_whitespace_pattern", "samplers", "lora", "early_stopping", "post_sampling_probs", NULL};
    if (serve_field(v, "web_search_options")) return serve_wrong(err, v, "web_search_options", " is not supported"); /* {} searches, too */
    return serve_refused_check(v, refused, "", err) && modalities_check(v, err) && serve_switch_check(v, "use_beam_search", false, err) &&
           serve_switch_check(v, "include_stop_str_in_output", false, err) && serve_only_check(v, only, err) &&
           serve_field_word(v, "verbosity", verbosities, &verbosity, err);
}

/* ---- chats --------------------------------------------------------------------------------------------------- */

/* Calls of an earlier answer; templates take arguments as a text or as an object. */
static bool calls_read(serve_wanted *w, const serve_view *message, serve_error *err) {
    const json_t *calls = serve_field(message, "tool_calls"), *one;
    size_t i;
    if (calls && !json_is_array(calls)) return serve_wrong(err, message, "tool_calls", " is not a list");
    json_array_foreach(calls, i, one) {
        char within[SERVE_NAME + 32];
        snprintf(within, sizeof within, "%s.tool_calls[%zu]", message->within, i);
        const serve_view v = {.body = one, .within = within};
        const json_t *type = serve_field(&v, "type"), *id = serve_field(&v, "id"), *arguments = serve_field(&v, "function.arguments");
        if (!hn_json_is_object(one)) return serve_fail(err, 400, within, "%s is not an object", within);
        if (type && (!json_is_string(type) || strcmp(json_string_value(type), "function") != 0))
            return serve_wrong(err, &v, "type", " is not \"function\"");
        if (id && !json_string_length(id)) return serve_wrong(err, &v, "id", " is not a text");
        if (!json_string_length(serve_field(&v, "function.name"))) return serve_wrong(err, &v, "function.name", " is not a text");
        if (!json_is_string(arguments) && !hn_json_is_object(arguments))
            return serve_wrong(err, &v, "function.arguments", " is not the text of an object");
        if (id) serve_call_known(w, id);
    }
    return true;
}

static bool message_read(serve_wanted *w, json_t *message, size_t i, serve_error *err) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", NULL};
    char within[SERVE_NAME];
    const char *role = NULL;
    snprintf(within, sizeof within, "messages[%zu]", i);
    const serve_view v = {.body = message, .within = within};
    if (!hn_json_is_object(message)) return serve_fail(err, 400, within, "%s is not an object", within);
    if (!serve_field_word(&v, "role", roles, &role, err)) return false;
    if (!role) return serve_wrong(err, &v, "role", " is missing: one of system, developer, user, assistant, tool");
    const bool answer = strcmp(role, "assistant") == 0, result = strcmp(role, "tool") == 0;
    if ((answer && !calls_read(w, &v, err)) || (result && !serve_result_check(w, &v, "tool_call_id", err))) return false;
    const json_t *content = serve_field(&v, "content");
    if (!content && !(answer && (json_array_size(serve_field(&v, "tool_calls")) || serve_field(&v, "reasoning_content"))))
        return serve_wrong(err, &v, "content", " is missing: a text, or a list of parts%s",
                           answer ? ", unless the message calls or has reasoning_content" : "");
    if (!content) return true;
    json_t *text = serve_prompt_content(&v, "content", err);
    if (text) json_object_set_new(message, "content", text);
    return text != NULL;
}

static bool messages_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "messages");
    size_t i;
    json_t *message;
    if (!json_array_size(given)) return serve_wrong(err, v, "messages", " is not a list of messages, or is empty");
    w->messages = json_deep_copy(given);
    json_array_foreach(w->messages, i, message) if (!message_read(w, message, i, err)) return false;
    return true;
}

bool serve_openai_tools(serve_wanted *w, const serve_view *v, serve_error *err) {
    json_t *tools = serve_field(v, "tools");
    const json_t *one;
    size_t i;
    if (tools && !json_is_array(tools)) return serve_wrong(err, v, "tools", " is not a list");
    w->tools = json_incref(tools);
    json_array_foreach(tools, i, one) {
        char within[SERVE_NAME];
        snprintf(within, sizeof within, "tools[%zu]", i);
        const serve_view tool = {.body = one, .within = within};
        const json_t *type = serve_field(&tool, "type"), *parameters = serve_field(&tool, "function.parameters");
        if (!hn_json_is_object(one)) return serve_fail(err, 400, within, "%s is not an object", within);
        if (!json_is_string(type) || strcmp(json_string_value(type), "function") != 0)
            return serve_wrong(err, &tool, "type", " is not \"function\": the server runs no tools of its own");
        if (!serve_function_name_check(&tool, "function.name", err)) return false;
        if (parameters && !hn_json_is_object(parameters)) return serve_wrong(err, &tool, "function.parameters", " is not an object");
    }
    return true;
}

/* {"mode", "tools"}: the answer may call these alone, or has to; the model sees all. */
static bool allowed_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    static const char *const modes[] = {"auto", "required", NULL};
    const char *mode = NULL;
    const json_t *one;
    size_t i;
    if (!serve_field_word(v, "mode", modes, &mode, err)) return false;
    if (!mode) return serve_wrong(err, v, "mode", " is missing: auto or required");
    if (!json_array_size(serve_field(v, "tools"))) return serve_wrong(err, v, "tools", " is not a list of tools, or is empty");
    w->choice = strcmp(mode, "required") == 0 ? HUNCH_TOOLS_REQUIRED : HUNCH_TOOLS_AUTO;
    w->allowed = json_array();
    json_array_foreach(serve_field(v, "tools"), i, one) {
        json_t *tool = serve_tool_find(w, serve_tool_name(one));
        if (!tool) return serve_wrong(err, v, "tools", "[%zu] is none of the tools that are offered", i);
        json_array_append(w->allowed, tool);
    }
    return true;
}

bool serve_choice_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    static const char *const words[] = {"auto", "none", "required"};
    const json_t *given = serve_field(v, "tool_choice"), *allowed = serve_field(v, "tool_choice.allowed_tools");
    const char *word = json_string_value(given), *type = json_string_value(json_object_get(given, "type"));
    for (int i = 0; word && i < 3; i++)
        if (strcmp(word, words[i]) == 0) return w->choice = (hunch_tool_choice)i, true;
    if (type && strcmp(type, "allowed_tools") == 0)
        return allowed_read(w, &(serve_view){.body = allowed ? allowed : given, /* /v1/responses has no object of that name in it */
                                             .within = allowed ? "tool_choice.allowed_tools" : "tool_choice"}, err);
    w->function = serve_tool_name(given);
    if (given && !w->function) return serve_wrong(err, v, "tool_choice", " is none of auto, none, required, and names no function");
    if (given) w->choice = HUNCH_TOOLS_NAMED;
    return true;
}

bool serve_openai_chat(serve_wanted *w, const serve_view *v, serve_error *err) {
    bool parallel = true;
    if (!serve_openai_tools(w, v, err) || !serve_choice_read(w, v, err) || !serve_field_bool(v, "parallel_tool_calls", &parallel, err) ||
        !serve_field_bool(v, "continue_final_message", &w->goes_on, err)) return false;
    w->one_call = !parallel;
    return messages_read(w, v, err);
}

bool serve_chat(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body};
    serve_wanted w = {0};
    if (serve_model(s, err) && refused_check(&v, err) && serve_openai_chat(&w, &v, err))
        r->call = serve_request_read(s, q, &v, &w, true, err);
    serve_wanted_free(&w);
    return r->call != NULL;
}

bool serve_completion(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body};
    serve_wanted w = {.most = COMPLETION_TOKENS};
    if (serve_model(s, err) && refused_check(&v, err)) r->call = serve_request_read(s, q, &v, &w, false, err);
    serve_wanted_free(&w);
    return r->call != NULL;
}
