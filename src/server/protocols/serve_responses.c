/* SPDX-License-Identifier: Apache-2.0 */
/* serve_responses.c - the bodies of OpenAI's /v1/responses, without state: items become the messages of a chat completion. What it answers
 * is in serve_responses_answer.c. docs/protocols.md lists the fields. */
#include <stdio.h>
#include <string.h>

#include "server/serve_answer.h"
#include "server/protocols/serve_endpoints.h"
#include "server/protocols/serve_openai.h"
#include "server/protocols/serve_parameters.h"
#include "server/serve_request.h"

static const serve_name names[] = {{.theirs = "max_output_tokens", .ours = "max_completion_tokens"},
                                   {.theirs = "stream", .ours = "stream"},
                                   {.theirs = "top_logprobs", .ours = "top_logprobs"},
                                   {.theirs = "stop", .ours = "stop"},
                                   {.theirs = "input", .ours = "messages"},
                                   {.theirs = "tools", .ours = "tools"},
                                   {.theirs = "tool_choice", .ours = "tool_choice"},
                                   {.theirs = "reasoning.effort", .ours = "reasoning_effort"},
                                   {.theirs = "reasoning.max_tokens", .ours = "thinking_token_budget"},
                                   SERVE_NAMES};

/* ---- items --------------------------------------------------------------------------------------------------- */

/* What an item adds to the messages. */
typedef struct reader {
    serve_wanted *w;
    json_t *to;     /* its messages */
    char field[80]; /* "input[2]" */
    serve_error *err;
} reader;

/* The message of the assistant that an item of it belongs to: thinking, text and calls of one turn are one message. */
static json_t *turn(reader *r, bool begins) {
    json_t *last = json_array_get(r->to, json_array_size(r->to) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (role && strcmp(role, "assistant") == 0 && !begins) return last;
    json_array_append_new(r->to, last = serve_message_json("assistant", json_string("")));
    return last;
}

static bool has_more(const json_t *message) {
    return serve_text_is(message, "content") || json_object_get(message, "tool_calls");
}

/* A text, or a list of parts of these types, as one text: new. NULL after an error. */
static json_t *parts_text(reader *r, json_t *given, const char *const *types) {
    serve_bytes all = {0};
    const json_t *part;
    size_t i;
    if (json_is_string(given)) return json_incref(given);
    bool ok = json_is_array(given) || serve_fail(r->err, 400, r->field, "%s is not a text or a list of parts", r->field);
    json_array_foreach(given, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *text = json_object_get(part, "text");
        bool known = false;
        for (int k = 0; types[k]; k++) known = known || (type && strcmp(type, types[k]) == 0);
        if (ok && (!known || !json_is_string(text)))
            ok = serve_fail(r->err, 400, r->field, "%s[%zu]: a part of type %.40s without a text is not supported", r->field, i,
                            type ? type : "none");
        if (ok) serve_bytes_add(&all, json_string_value(text), json_string_length(text));
    }
    json_t *text = ok ? serve_text_json(all.at, all.n) : NULL;
    serve_bytes_free(&all);
    return text;
}

static bool message_take(reader *r, const json_t *item) {
    static const char *const types[] = {"input_text", "output_text", "text", NULL};
    static const char *const roles[] = {"user", "assistant", "system", "developer", NULL};
    const serve_view v = {.body = item, .within = r->field};
    const char *role = NULL;
    if (!serve_field_word(&v, "role", roles, &role, r->err) || !role)
        return serve_wrong(r->err, &v, "role", " is none of user, assistant, system, developer");
    snprintf(r->field + strlen(r->field), sizeof r->field - strlen(r->field), ".content");
    json_t *text = parts_text(r, json_object_get(item, "content"), types);
    if (!text) return false;
    json_t *last = json_array_get(r->to, json_array_size(r->to) - 1);
    const char *before = json_string_value(json_object_get(last, "role"));
    if (strcmp(role, "developer") == 0) role = "system";
    if (strcmp(role, "assistant") == 0) serve_text_add(turn(r, !before || has_more(last)), "content", "", text);
    else if (before && strcmp(role, "system") == 0 && strcmp(before, role) == 0) serve_text_add(last, "content", "\n\n", text);
    else json_array_append_new(r->to, serve_message_json(role, json_incref(text)));
    json_decref(text);
    return true;
}

static bool call_take(reader *r, const json_t *item) {
    json_t *id = json_object_get(item, "call_id"), *name = json_object_get(item, "name"), *given = json_object_get(item, "arguments");
    if (!json_string_length(id) || !json_string_length(name) || !json_is_string(given))
        return serve_fail(r->err, 400, r->field, "%s: a function_call has the texts call_id, name and arguments", r->field);
    serve_call_add(r->w, turn(r, false), id, name, json_string_value(given));
    return true;
}

static bool output_take(reader *r, const json_t *item) {
    static const char *const types[] = {"input_text", "output_text", "text", NULL};
    json_t *id = json_object_get(item, "call_id");
    if (!serve_result_check(r->w, &(serve_view){.body = item, .within = r->field}, "call_id", r->err)) return false;
    snprintf(r->field + strlen(r->field), sizeof r->field - strlen(r->field), ".output");
    json_t *text = parts_text(r, json_object_get(item, "output"), types);
    if (!text) return false;
    json_array_append_new(r->to, json_pack("{s:s,s:O,s:o}", "role", "tool", "tool_call_id", id, "content", text));
    return true;
}

/* Earlier thinking: its text; of what is encrypted nobody here can read anything. */
static bool reasoning_take(reader *r, const json_t *item) {
    static const char *const types[] = {"reasoning_text", "text", NULL}, *const of_summaries[] = {"summary_text", NULL};
    json_t *content = serve_value(item, "content"), *summary = serve_value(item, "summary");
    const bool whole = json_array_size(content) > 0;
    if (!content && !summary) return true;
    json_t *text = parts_text(r, whole || !summary ? content : summary, whole ? types : of_summaries);
    if (!text) return false;
    json_t *last = json_array_get(r->to, json_array_size(r->to) - 1);
    if (json_string_length(text)) serve_text_add(turn(r, has_more(last)), "reasoning_content", "\n", text);
    json_decref(text);
    return true;
}

static bool item_take(reader *r, const json_t *item) {
    static const struct {
        const char *type;
        bool (*take)(reader *r, const json_t *item);
    } kinds[] = {{"message", message_take},
                 {"function_call", call_take},
                 {"function_call_output", output_take},
                 {"reasoning", reasoning_take}};
    const json_t *given = serve_value(item, "type");
    const char *type = json_string_value(given);
    if (!hn_json_is_object(item)) return serve_fail(r->err, 400, r->field, "%s is not an object", r->field);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type ? type : given ? "" : "message", kinds[i].type) == 0) return kinds[i].take(r, item);
    return serve_fail(r->err, 400, r->field, "%s: an item of type %.40s is not supported", r->field, type ? type : "no text");
}

/* Instructions and input as messages. */
static bool messages_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    json_t *to = w->messages = json_array(), *instructions = serve_field(v, "instructions"), *given = serve_field(v, "input");
    const json_t *item;
    size_t i;
    if (instructions && !json_is_string(instructions)) return serve_wrong(err, v, "instructions", " is not a text");
    if (json_string_length(instructions)) json_array_append_new(to, serve_message_json("system", json_incref(instructions)));
    if (json_is_string(given)) json_array_append_new(to, serve_message_json("user", json_incref(given)));
    else if (!json_array_size(given)) return serve_wrong(err, v, "input", " is not a text or a list of items, or is empty");
    json_array_foreach(given, i, item) {
        reader r = {.w = w, .to = to, .err = err};
        snprintf(r.field, sizeof r.field, "input[%zu]", i);
        if (!item_take(&r, item)) return false;
    }
    serve_texts_join(to);
    return true;
}

/* ---- other fields -------------------------------------------------------------------------------------------- */

static bool unsupported(serve_error *err, const char *field, const char *value, const char *why) {
    return serve_fail_code(err, 400, "unsupported_parameter", field, "%s%s is not supported: %s", field, value, why);
}

/* What needs a memory of the server, and what is not here. */
static bool refused_check(const serve_view *v, serve_error *err) {
    static const struct {
        const char *name, *why;
    } refused[] = {{"previous_response_id", "responses are not kept; send the whole conversation as input"},
                   {"conversation", "conversations are not kept; send the whole conversation as input"},
                   {"prompt", "the server has no stored prompts"},
                   {"context_management", "the context is what input has"},
                   {"moderation", "the server has no other model"}};
    bool store = false, background = false;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (serve_field(v, refused[i].name)) return unsupported(err, refused[i].name, "", refused[i].why);
    if (!serve_field_bool(v, "store", &store, err) || !serve_field_bool(v, "background", &background, err)) return false;
    if (store) return unsupported(err, "store", ": true", "responses are not kept; leave it out, or send false");
    return background ? unsupported(err, "background", ": true", "responses are not kept; use a stream") : true;
}

static bool kinds_check(const serve_view *v, serve_error *err) {
    static const serve_expected kinds[] = {
        {"metadata", SERVE_IS_OBJECT}, {"user", SERVE_IS_TEXT}, {"safety_identifier", SERVE_IS_TEXT}, {"prompt_cache_key", SERVE_IS_TEXT},
        {"max_tool_calls", SERVE_IS_WHOLE}, {"stream_options", SERVE_IS_OBJECT}, {"text", SERVE_IS_OBJECT},
        {"reasoning", SERVE_IS_OBJECT}, {"include", SERVE_IS_LIST}, {NULL, 0}};
    static const char *const truncations[] = {"auto", "disabled", NULL}, *const verbosities[] = {"low", "medium", "high", NULL},
                      *const summaries[] = {"auto", "concise", "detailed", NULL};
    const char *word = NULL, *verbosity = NULL, *summary = NULL;
    const json_t *one;
    size_t i;
    if (!serve_kinds_check(v, kinds, err) || !serve_field_word(v, "truncation", truncations, &word, err) ||
        !serve_field_word(v, "text.verbosity", verbosities, &verbosity, err) ||
        !serve_field_word(v, "reasoning.summary", summaries, &summary, err)) return false;
    if (word && strcmp(word, "auto") == 0)
        return unsupported(err, "truncation", ": auto", "no item of input is left out; leave it out, or send disabled");
    if (verbosity && strcmp(verbosity, "medium") != 0) return unsupported(err, "text.verbosity", "", "only medium is");
    json_array_foreach(serve_field(v, "include"), i, one)
        if (!json_is_string(one)) return serve_wrong(err, v, "include", " is not a list of texts");
    return true;
}

/* Log-probabilities: by their number, or by the word of "include". */
static void logprobs_read(serve_wanted *w, const serve_view *v) {
    const json_t *one;
    size_t i;
    w->logprobs = json_integer_value(serve_field(v, "top_logprobs")) > 0;
    json_array_foreach(serve_field(v, "include"), i, one)
        w->logprobs = w->logprobs || strcmp(json_string_value(one), "message.output_text.logprobs") == 0;
}

static bool tools_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "tools"), *one;
    size_t i;
    bool parallel = true;
    if (!serve_field_bool(v, "parallel_tool_calls", &parallel, err)) return false;
    w->one_call = !parallel;
    if (!given) return true;
    if (!json_is_array(given)) return serve_wrong(err, v, "tools", " is not a list");
    w->tools = json_array();
    json_array_foreach(given, i, one) {
        char within[SERVE_NAME];
        snprintf(within, sizeof within, "tools[%zu]", i);
        const serve_view tool = {.body = one, .within = within};
        const char *type = json_string_value(serve_field(&tool, "type"));
        const json_t *parameters = serve_field(&tool, "parameters");
        if (!type || strcmp(type, "function") != 0)
            return serve_wrong(err, &tool, "type", " is not \"function\": the server runs no tools of its own");
        if (!serve_function_name_check(&tool, "name", err)) return false;
        if (parameters && !hn_json_is_object(parameters)) return serve_wrong(err, &tool, "parameters", " is not an object");
        json_array_append_new(w->tools, serve_function_json(serve_field(&tool, "name"), serve_field(&tool, "description"), parameters,
                                                            serve_field(&tool, "strict")));
    }
    return true;
}

static bool format_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *format = serve_field(v, "text.format"), *schema = serve_value(format, "schema");
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!format || (type && strcmp(type, "text") == 0)) return true;
    if (type && strcmp(type, "json_object") == 0) return serve_form_object(&w->form, "text.format", err);
    if (!type || strcmp(type, "json_schema") != 0)
        return serve_wrong(err, v, "text.format.type", " is none of text, json_object, json_schema");
    if (!schema) return serve_wrong(err, v, "text.format.schema", " is missing");
    return serve_form_schema(&w->form, "text.format.schema", schema, err) && serve_form_strict(&w->form, json_object_get(format, "strict"));
}

static bool chat_read(serve_wanted *w, const json_t *body, serve_error *err) {
    const serve_view v = {.body = body};
    if (!refused_check(&v, err) || !kinds_check(&v, err) || !messages_read(w, &v, err) || !tools_read(w, &v, err) ||
        !serve_choice_read(w, &v, err) || !format_read(w, &v, err)) return false;
    logprobs_read(w, &v);
    return true;
}

bool serve_responses(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body, .names = names};
    serve_wanted w = {0};
    if (chat_read(&w, q->body, err)) r->call = serve_request_read(s, q, &v, &w, true, err);
    serve_wanted_free(&w);
    if (!r->call) return false;
    snprintf(r->call->id, sizeof r->call->id, "resp_%s", q->id);
    r->call->asked = serve_responses_asked(s, r->call, q->body);
    r->call->said = json_array();
    return true;
}

bool serve_responses_count(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body, .names = names};
    serve_wanted w = {0};
    size_t n;
    const bool ok = chat_read(&w, q->body, err) && serve_request_count(s, &v, &w, &n, err);
    serve_wanted_free(&w);
    if (ok) r->json = json_pack("{s:s,s:I}", "object", "response.input_tokens", "input_tokens", (json_int_t)n);
    return ok;
}

/* A response that was given earlier. */
bool serve_responses_kept(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)s, (void)r;
    return serve_fail_code(err, 404, "response_not_found", "response_id", "there is no response %.100s: responses are not kept", q->rest);
}
