/* SPDX-License-Identifier: Apache-2.0 */
/* serve_anthropic.c - Anthropic's /v1/messages and /v1/messages/count_tokens: bodies as those of chat completions, answers as content
 * blocks. docs/protocols.md lists the fields. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_blocks.h"
#include "server/protocols/serve_endpoints.h"
#include "server/protocols/serve_parameters.h"
#include "server/serve_prompt.h"
#include "server/serve_request.h"
#include "server/serve_tools.h"

static const serve_name names[] = {{.theirs = "max_tokens", .ours = "max_tokens"},
                                   {.theirs = "stop_sequences", .ours = "stop"},
                                   {.theirs = "stream", .ours = "stream"},
                                   {.theirs = "messages", .ours = "messages"},
                                   {.theirs = "tools", .ours = "tools"},
                                   {.theirs = "tool_choice", .ours = "tool_choice"},
                                   {.theirs = "output_config.effort", .ours = "reasoning_effort"},
                                   {.theirs = "thinking.budget_tokens", .ours = "thinking_token_budget"},
                                   SERVE_NAMES};

/* ---- messages ------------------------------------------------------------------------------------------------ */

/* A message under way: one of Anthropic's may become several, since results of tools are messages of their own. */
typedef struct writer {
    serve_wanted *w;
    json_t *to;      /* its messages */
    json_t *current; /* the one that blocks go to; NULL: none yet */
    const char *role, *between;
    char field[80]; /* "messages[2].content[1]" */
    serve_error *err;
} writer;

static json_t *current(writer *w) {
    json_t *last = json_array_get(w->to, json_array_size(w->to) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (w->current) return w->current;
    if (role && strcmp(role, w->role) == 0 && !json_object_get(last, "tool_calls")) { /* turns of one speaker are one */
        w->between = "\n";
        return w->current = last;
    }
    json_array_append_new(w->to, w->current = serve_message_json(w->role, json_string("")));
    return w->current;
}

static bool text_take(writer *w, const json_t *block) {
    json_t *text = json_object_get(block, "text");
    if (!json_is_string(text)) return serve_wrong(w->err, &(serve_view){.within = w->field}, "text", " is not a text");
    json_t *message = current(w);
    serve_text_add(message, "content", w->between, text);
    w->between = "";
    return true;
}

static bool thinking_take(writer *w, const json_t *block) {
    json_t *text = json_object_get(block, "thinking");
    if (!json_is_string(text)) return serve_wrong(w->err, &(serve_view){.within = w->field}, "thinking", " is not a text");
    serve_text_add(current(w), "reasoning_content", "\n", text);
    return true;
}

static bool hidden_take(writer *w, const json_t *block) { return (void)w, (void)block, true; } /* nobody here can read it */

static bool use_take(writer *w, const json_t *block) {
    json_t *id = json_object_get(block, "id"), *name = json_object_get(block, "name"), *input = json_object_get(block, "input");
    if (!json_string_length(id) || !json_string_length(name) || !hn_json_is_object(input))
        return serve_fail(w->err, 400, w->field, "%s: a tool_use block has the texts id and name, and the object input", w->field);
    char *arguments = serve_json_dump(input, JSON_COMPACT);
    serve_call_add(w->w, current(w), id, name, arguments);
    hn_free(arguments);
    return true;
}

static bool result_take(writer *w, const json_t *block) {
    static const serve_expected kinds[] = {{"is_error", SERVE_IS_BOOL}, {NULL, 0}};
    const serve_view v = {.body = block, .within = w->field};
    json_t *id = json_object_get(block, "tool_use_id");
    if (!serve_result_check(w->w, &v, "tool_use_id", w->err)) return false;
    if (!serve_kinds_check(&v, kinds, w->err)) return false;
    json_t *text = serve_field(&v, "content") ? serve_prompt_content(&v, "content", w->err) : json_string("");
    if (!text) return false;
    json_array_append_new(w->to, json_pack("{s:s,s:O,s:o}", "role", "tool", "tool_call_id", id, "content", text));
    w->current = NULL;
    return true;
}

static const struct {
    const char *type, *role; /* role NULL: of any */
    bool (*take)(writer *w, const json_t *block);
} blocks[] = {{"text", NULL, text_take},
              {"thinking", "assistant", thinking_take},
              {"redacted_thinking", "assistant", hidden_take},
              {"tool_use", "assistant", use_take},
              {"tool_result", "user", result_take}};

static bool block_take(writer *w, const json_t *block) {
    const char *type = json_string_value(json_object_get(block, "type"));
    if (!type) return serve_fail(w->err, 400, w->field, "%s is not an object with a type", w->field);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (strcmp(type, blocks[i].type) == 0 && (!blocks[i].role || strcmp(blocks[i].role, w->role) == 0)) return blocks[i].take(w, block);
    return serve_fail(w->err, 400, w->field, "%s: a block of type %.40s of the role %s is not supported", w->field, type, w->role);
}

static bool message_take(serve_wanted *to, const json_t *message, size_t i, serve_error *err) {
    static const char *const roles[] = {"user", "assistant", "system", NULL};
    writer w = {.w = to, .to = to->messages, .between = "", .err = err};
    json_t *content = json_object_get(message, "content"), *block;
    size_t k;
    snprintf(w.field, sizeof w.field, "messages[%zu]", i);
    const serve_view v = {.body = message, .within = w.field};
    if (!hn_json_is_object(message)) return serve_fail(err, 400, w.field, "%s is not an object", w.field);
    if (!serve_field_word(&v, "role", roles, &w.role, err) || !w.role)
        return serve_wrong(err, &v, "role", " is none of user, assistant, system");
    snprintf(w.field, sizeof w.field, "messages[%zu].content", i);
    if (json_is_string(content)) {
        serve_text_add(current(&w), "content", w.between, content);
        return true;
    }
    if (!json_is_array(content)) return serve_fail(err, 400, w.field, "%s is not a text or a list of blocks", w.field);
    json_array_foreach(content, k, block) {
        snprintf(w.field, sizeof w.field, "messages[%zu].content[%zu]", i, k);
        if (!block_take(&w, block)) return false;
    }
    if (json_array_size(content) == 0) current(&w);
    return true;
}

/* The system's text, and what was said. */
static bool messages_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "messages"), *system = serve_field(v, "system"), *message;
    size_t i;
    json_t *text = system ? serve_prompt_content(v, "system", err) : NULL;
    w->messages = json_array();
    if (text) json_array_append_new(w->messages, serve_message_json("system", text));
    if (system && !text) return false;
    if (!json_array_size(given)) return serve_wrong(err, v, "messages", " is not a list of messages, or is empty");
    json_array_foreach(given, i, message) if (!message_take(w, message, i, err)) return false;
    serve_texts_join(w->messages);
    w->goes_on = serve_ends_with_answer(w->messages);
    return true;
}

/* ---- other fields -------------------------------------------------------------------------------------------- */

static bool tools_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "tools"), *one;
    size_t i;
    if (!given) return true;
    if (!json_is_array(given)) return serve_wrong(err, v, "tools", " is not a list");
    w->tools = json_array();
    json_array_foreach(given, i, one) {
        char within[SERVE_NAME];
        snprintf(within, sizeof within, "tools[%zu]", i);
        const serve_view tool = {.body = one, .within = within};
        const json_t *type = serve_field(&tool, "type"), *schema = serve_field(&tool, "input_schema");
        if (type && (!json_is_string(type) || strcmp(json_string_value(type), "custom") != 0))
            return serve_wrong(err, &tool, "type", " is not \"custom\": the server runs no tools of its own");
        if (!serve_function_name_check(&tool, "name", err)) return false;
        if (!hn_json_is_object(schema)) return serve_wrong(err, &tool, "input_schema", " is not an object");
        json_array_append_new(w->tools, serve_function_json(serve_field(&tool, "name"), serve_field(&tool, "description"), schema,
                                                            serve_field(&tool, "strict")));
    }
    return true;
}

static bool tool_choice_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    static const char *const words[] = {"auto", "none", "any", "tool", NULL}; /* in the order of hunch_tool_choice */
    const json_t *given = serve_field(v, "tool_choice"), *name = serve_field(v, "tool_choice.name");
    const char *type = NULL;
    if (!given) return true;
    if (!hn_json_is_object(given)) return serve_wrong(err, v, "tool_choice", " is not an object");
    if (!serve_field_word(v, "tool_choice.type", words, &type, err)) return false;
    if (!type) return serve_wrong(err, v, "tool_choice.type", " is missing: one of auto, any, tool, none");
    if (!serve_field_bool(v, "tool_choice.disable_parallel_tool_use", &w->one_call, err)) return false;
    while (strcmp(type, words[w->choice]) != 0) w->choice++;
    if (w->choice != HUNCH_TOOLS_NAMED) return true;
    w->function = json_string_value(name);
    return json_string_length(name) ? true : serve_wrong(err, v, "tool_choice.name", " is not the name of a tool");
}

/* "thinking": whether the template lets the model think. The bounds of its budget are the protocol's; max_tokens holds for both parts. */
static bool thinking_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    static const char *const words[] = {"enabled", "disabled", "adaptive", NULL};
    const json_t *given = serve_field(v, "thinking"), *most = serve_field(v, "max_tokens");
    const char *type = NULL;
    int64_t budget = 0;
    if (!given) return true;
    if (!hn_json_is_object(given)) return serve_wrong(err, v, "thinking", " is not an object");
    if (!serve_field_word(v, "thinking.type", words, &type, err)) return false;
    if (!type) return serve_wrong(err, v, "thinking.type", " is missing: one of enabled, disabled, adaptive");
    if (!serve_field_int(v, "thinking.budget_tokens", 1024, INT32_MAX, &budget, err)) return false;
    if (strcmp(type, "enabled") == 0 && !budget)
        return serve_wrong(err, v, "thinking.budget_tokens", " is missing: at least 1024, and less than max_tokens");
    if (json_is_integer(most) && budget >= json_integer_value(most))
        return serve_wrong(err, v, "thinking.budget_tokens", " is not less than max_tokens");
    w->think = strcmp(type, "enabled") == 0 ? 1 : strcmp(type, "disabled") == 0 ? -1 : 0;
    return true;
}

static bool output_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *config = serve_field(v, "output_config"), *format = serve_field(v, "output_format"); /* its older name */
    if (config && !hn_json_is_object(config)) return serve_wrong(err, v, "output_config", " is not an object");
    if (!format) format = serve_value(config, "format");
    if (!format) return true;
    const json_t *schema = serve_value(format, "schema");
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!type || strcmp(type, "json_schema") != 0 || !schema)
        return serve_wrong(err, v, "output_config.format", ", or output_format, is not {\"type\": \"json_schema\", \"schema\": SCHEMA}");
    return serve_form_schema(&w->form, "output_config.format.schema", schema, err);
}

/* What would change the answer, and is not here; and what is looked at. */
static bool others_check(const serve_view *v, serve_error *err) {
    static const char *const refused[] = {"container", "mcp_servers", "context_management", NULL};
    static const serve_expected kinds[] = {{"metadata", SERVE_IS_OBJECT}, {"cache_control", SERVE_IS_OBJECT}, {NULL, 0}};
    const json_t *stops = serve_field(v, "stop_sequences");
    if (stops && !json_is_array(stops)) return serve_wrong(err, v, "stop_sequences", " is not a list of texts");
    return serve_refused_check(v, refused, "", err) && serve_kinds_check(v, kinds, err);
}

static bool chat_read(serve_wanted *w, const json_t *body, serve_error *err) {
    const serve_view v = {.body = body};
    return messages_read(w, &v, err) && others_check(&v, err) && tools_read(w, &v, err) && tool_choice_read(w, &v, err) &&
           thinking_read(w, &v, err) && output_read(w, &v, err);
}

bool serve_messages(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body, .names = names};
    serve_wanted w = {0};
    if (!serve_field(&v, "max_tokens")) return serve_wrong(err, &v, "max_tokens", " is missing");
    if (chat_read(&w, q->body, err)) r->call = serve_request_read(s, q, &v, &w, true, err);
    serve_wanted_free(&w);
    if (r->call) snprintf(r->call->id, sizeof r->call->id, "msg_%s", q->id);
    return r->call != NULL;
}

bool serve_count_tokens(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body, .names = names};
    serve_wanted w = {0};
    size_t n;
    const bool ok = chat_read(&w, q->body, err) && serve_request_count(s, &v, &w, &n, err);
    serve_wanted_free(&w);
    if (ok) r->json = json_pack("{s:I}", "input_tokens", (json_int_t)n);
    return ok;
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static json_t *error_json(const serve_error *e, const char *id) {
    const char *type = e->http == 401   ? "authentication_error"
                       : e->http == 403 ? "permission_error"
                       : e->http == 404 ? "not_found_error"
                       : e->http == 413 ? "request_too_large"
                       : e->http == 429 ? "rate_limit_error"
                       : e->http == 503 ? "overloaded_error"
                       : e->http >= 500 ? "api_error"
                                        : "invalid_request_error";
    return json_pack("{s:s,s:{s:s,s:o},s:s}", "type", "error", "error", "type", type, "message", serve_error_named(e), "request_id", id);
}

static json_t *usage_json(const serve_call *c) {
    const json_int_t prompt = (json_int_t)serve_call_prompt_tokens(c), cached = (json_int_t)c->choices[0].state.n_restored;
    return json_pack("{s:I,s:I,s:I,s:I,s:s}", "input_tokens", prompt - cached, "cache_creation_input_tokens", (json_int_t)0,
                     "cache_read_input_tokens", cached, "output_tokens", (json_int_t)c->choices[0].n_tokens, "service_tier", "standard");
}

/* "stop_reason" and "stop_sequence". */
static void stop_add(json_t *to, const serve_choice *one) {
    json_t *stop = serve_stop_json(one), *reason = serve_finish_json(one);
    const char *word = json_string_value(reason);
    const bool length = strcmp(word, "length") == 0, by_text = !length && json_is_string(stop) && strcmp(word, "stop") == 0;
    if (strcmp(word, "tool_calls") == 0) word = "tool_use";
    else if (length && one->state.finish == HUNCH_FINISH_LENGTH && one->n_tokens < (size_t)one->call->request.max_tokens)
        word = "model_context_window_exceeded";
    else word = length ? "max_tokens" : by_text ? "stop_sequence" : "end_turn";
    json_object_set_new(to, "stop_reason", json_string(word));
    if (by_text) json_object_set(to, "stop_sequence", stop);
    else json_object_set_new(to, "stop_sequence", json_null());
    json_decref(stop);
    json_decref(reason);
}

/* A block as it begins, or whole. NULL: a call whose arguments are no object. */
static json_t *block_json(const serve_told_block *b, bool begins) {
    const size_t n = begins ? 0 : b->n;
    if (b->kind == SERVE_BLOCK_TEXT) return json_pack("{s:s,s:o}", "type", "text", "text", serve_text_json(b->text, n));
    if (b->kind == SERVE_BLOCK_THINKING)
        return json_pack("{s:s,s:o,s:s}", "type", "thinking", "thinking", serve_text_json(b->text, n), "signature", "");
    json_t *input = begins ? json_object() : serve_arguments_json(b);
    return input ? json_pack("{s:s,s:o,s:s,s:o}", "type", "tool_use", "id", serve_call_id_json(b->id), "name", b->call->name,
                             "input", input)
                 : NULL;
}

static void whole_close(void *to, serve_choice *one, const serve_told_block *b) {
    json_t *block = block_json(b, false);
    (void)one;
    if (block) json_array_append_new(to, block);
}

static json_t *message_json(const serve_server *s, const serve_call *c, json_t *content) {
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:n,s:n,s:o}", "id", c->id, "type", "message", "role", "assistant", "model",
                     s->settings->model_name, "content", content, "stop_reason", "stop_sequence", "usage", usage_json(c));
}

static json_t *whole(const serve_server *s, serve_call *c) {
    static const serve_block_events events = {.close = whole_close};
    json_t *content = json_array();
    serve_blocks_next(&c->choices[0], &events, true, content);
    json_t *message = message_json(s, c, content);
    stop_add(message, &c->choices[0]);
    serve_figures_add(message, c);
    return message;
}

static void event(void *to, const char *name, json_t *value) {
    json_object_set_new(value, "type", json_string(name));
    serve_event_add(to, name, value);
}

static void delta(void *to, const serve_told_block *b, const char *type, const char *field, json_t *text) {
    event(to, "content_block_delta", json_pack("{s:i,s:{s:s,s:o}}", "index", b->index, "delta", "type", type, field, text));
}

static void stream_open(void *to, serve_choice *one, const serve_told_block *b) {
    (void)one;
    event(to, "content_block_start", json_pack("{s:i,s:o}", "index", b->index, "content_block", block_json(b, true)));
}

static void stream_add(void *to, serve_choice *one, const serve_told_block *b, const char *text, size_t n) {
    static const char *const type[] = {"", "thinking_delta", "text_delta", "input_json_delta"};
    static const char *const field[] = {"", "thinking", "text", "partial_json"};
    (void)one;
    delta(to, b, type[b->kind], field[b->kind], serve_text_json(text, n));
}

static void stream_close(void *to, serve_choice *one, const serve_told_block *b) {
    (void)one;
    if (b->kind == SERVE_BLOCK_THINKING) delta(to, b, "signature_delta", "signature", json_string(""));
    event(to, "content_block_stop", json_pack("{s:i}", "index", b->index));
}

static void next(const serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out) {
    static const serve_block_events events = {stream_open, stream_add, stream_close};
    if (!one->begun) event(out, "message_start", json_pack("{s:o}", "message", message_json(s, c, json_array())));
    one->begun = true;
    serve_blocks_next(one, &events, true, out);
    one->sent_tokens = one->n_tokens;
    one->ended = one->done;
}

static void end(const serve_server *s, serve_call *c, serve_bytes *out) {
    (void)s;
    json_t *change = json_object();
    stop_add(change, &c->choices[0]);
    json_t *last = json_pack("{s:o,s:o}", "delta", change, "usage", usage_json(c));
    serve_figures_add(last, c);
    event(out, "message_delta", last);
    event(out, "message_stop", json_object());
}

static void failed(const serve_server *s, serve_call *c, const serve_error *e, serve_bytes *out) {
    (void)s;
    serve_event_add(out, "error", error_json(e, c->id));
}

const serve_protocol serve_anthropic = {.stream_type = "text/event-stream; charset=utf-8",
                                        .id_header = "request-id",
                                        .comment = "event: ping\ndata: {\"type\":\"ping\"}\n\n",
                                        .error = error_json,
                                        .whole = whole,
                                        .next = next,
                                        .end = end,
                                        .failed = failed};
