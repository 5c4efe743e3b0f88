/* SPDX-License-Identifier: Apache-2.0 */
/* serve_responses_answer.c - what /v1/responses answers: the response with its items, whole or as typed events. */
#include <stdio.h>
#include <string.h>

#include "server/serve_answer.h"
#include "server/protocols/serve_blocks.h"
#include "server/protocols/serve_endpoints.h"
#include "server/protocols/serve_fields.h"
#include "server/serve_tools.h"

/* ---- the response ---------------------------------------------------------------------------------------------- */

static json_t *given_or_null(const json_t *body, const char *name) {
    const json_t *value = serve_value(body, name);
    return value ? json_deep_copy(value) : json_null();
}

/* Tools as they were given, with what clients expect in each. */
static json_t *tools_asked(const json_t *body) {
    json_t *tools = json_array(), *one;
    size_t i;
    json_array_foreach(serve_value(body, "tools"), i, one) {
        json_t *tool = json_pack("{s:n,s:n,s:n}", "description", "parameters", "strict");
        json_t *given = json_deep_copy(one);
        json_object_update(tool, given);
        json_decref(given);
        json_array_append_new(tools, tool);
    }
    return tools;
}

json_t *serve_responses_asked(const serve_server *s, const serve_call *c, const json_t *body) {
    const hunch_sampling *p = &c->request.sampling;
    json_t *format = serve_value(serve_value(body, "text"), "format"), *choice = serve_value(body, "tool_choice");
    json_t *effort = serve_value(serve_value(body, "reasoning"), "effort"), *metadata = serve_value(body, "metadata");
    const json_t *parallel = serve_value(body, "parallel_tool_calls");
    json_t *r = json_pack("{s:s,s:s,s:I,s:s,s:b,s:b,s:n,s:n,s:n,s:s,s:s,s:f,s:f,s:f,s:f,s:i,s:b}", "id", c->id, "object", "response",
                          "created_at", (json_int_t)c->created, "model", s->settings->model_name, "background", 0, "store", 0, "error",
                          "incomplete_details", "previous_response_id", "truncation", "disabled", "service_tier", "default", "temperature",
                          p->temperature, "top_p", p->top_p, "presence_penalty", p->presence_penalty, "frequency_penalty",
                          p->frequency_penalty, "top_logprobs", c->request.top_logprobs, "parallel_tool_calls",
                          parallel ? json_is_true(parallel) : 1);
    static const char *const repeated[] = {"instructions", "max_output_tokens", "max_tool_calls", "user", "safety_identifier",
                                           "prompt_cache_key"};
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) json_object_set_new(r, repeated[i], given_or_null(body, repeated[i]));
    json_object_set_new(r, "tools", tools_asked(body));
    json_object_set_new(r, "tool_choice", choice ? json_deep_copy(choice) : json_string("auto"));
    json_object_set_new(r, "metadata", metadata ? json_deep_copy(metadata) : json_object());
    json_object_set_new(r, "reasoning", json_pack("{s:o,s:n}", "effort", effort ? json_deep_copy(effort) : json_null(), "summary"));
    json_object_set_new(r, "text", json_pack("{s:o,s:s}", "format", format ? json_deep_copy(format) : json_pack("{s:s}", "type", "text"),
                                             "verbosity", "medium"));
    return r;
}

static json_t *usage_json(const serve_call *c) {
    const serve_choice *one = &c->choices[0];
    const json_int_t prompt = (json_int_t)serve_call_prompt_tokens(c), answer = (json_int_t)one->n_tokens;
    return json_pack("{s:I,s:{s:I,s:I},s:I,s:{s:I},s:I}", "input_tokens", prompt, "input_tokens_details", "cached_tokens",
                     (json_int_t)one->state.n_restored, "cache_write_tokens", (json_int_t)0, "output_tokens", answer,
                     "output_tokens_details", "reasoning_tokens", (json_int_t)serve_thinking_tokens(one), "total_tokens", prompt + answer);
}

/* The response at this moment. */
static json_t *response_json(const serve_call *c, const char *status) {
    json_t *r = json_copy(c->asked);
    const bool over = strcmp(status, "in_progress") != 0;
    json_object_set_new(r, "status", json_string(status));
    json_object_set_new(r, "output", json_copy(c->said));
    json_object_set_new(r, "usage", over ? usage_json(c) : json_null());
    json_object_set_new(r, "completed_at", strcmp(status, "completed") == 0 ? json_integer((json_int_t)time(NULL)) : json_null());
    if (strcmp(status, "incomplete") == 0)
        json_object_set_new(r, "incomplete_details", json_pack("{s:s}", "reason", "max_output_tokens"));
    if (over) serve_figures_add(r, c);
    return r;
}

/* ---- items ----------------------------------------------------------------------------------------------------- */

static json_t *logprobs_json(const serve_choice *one, size_t from) {
    const size_t thinking = serve_thinking_tokens(one), begin = from > thinking ? from : thinking;
    return one->call->request.logprobs && begin < one->n_tokens ? serve_tokens_json(one, begin, one->n_tokens) : json_array();
}

static const char *item_id(const serve_choice *one, const serve_told_block *b, char *to, size_t size) {
    static const char *const prefix[] = {"", "rs", "msg", "fc"};
    const char *id = strchr(one->call->id, '_');
    snprintf(to, size, "%s%s_%d", prefix[b->kind], id ? id : "_", b->index);
    return to;
}

/* The one part of an item's content; whole: with its text. */
static json_t *part_json(const serve_choice *one, const serve_told_block *b, bool whole) {
    const size_t n = whole ? b->n : 0;
    if (b->kind == SERVE_BLOCK_THINKING) return json_pack("{s:s,s:o}", "type", "reasoning_text", "text", serve_text_json(b->text, n));
    return json_pack("{s:s,s:o,s:[],s:o}", "type", "output_text", "text", serve_text_json(b->text, n), "annotations", "logprobs",
                     whole ? logprobs_json(one, 0) : json_array());
}

/* An item as it begins or as it ends. */
static json_t *item_json(const serve_choice *one, const serve_told_block *b, bool whole) {
    char id[100];
    const char *status = !whole ? "in_progress" : b->last && one->done && serve_is_cut(one) ? "incomplete" : "completed";
    item_id(one, b, id, sizeof id);
    if (b->call) {
        if (whole && b->call->state != HUNCH_CALL_DONE) status = "incomplete";
        return json_pack("{s:s,s:s,s:s,s:o,s:s,s:o}", "id", id, "type", "function_call", "status", status, "call_id",
                         serve_call_id_json(b->id), "name", b->call->name, "arguments",
                         serve_text_json(b->text, whole ? b->n : 0));
    }
    json_t *content = json_array();
    if (whole) json_array_append_new(content, part_json(one, b, true));
    if (b->kind == SERVE_BLOCK_THINKING)
        return json_pack("{s:s,s:s,s:s,s:[],s:o}", "id", id, "type", "reasoning", "status", status, "summary", "content", content);
    return json_pack("{s:s,s:s,s:s,s:s,s:o}", "id", id, "type", "message", "status", status, "role", "assistant", "content", content);
}

static void whole_close(void *to, serve_choice *one, const serve_told_block *b) {
    (void)to;
    json_array_append_new(one->call->said, item_json(one, b, true));
}

static json_t *whole(const serve_server *s, serve_call *c) {
    static const serve_block_events events = {.close = whole_close};
    (void)s;
    serve_blocks_next(&c->choices[0], &events, true, NULL);
    return response_json(c, serve_is_cut(&c->choices[0]) ? "incomplete" : "completed");
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

static void event(void *to, serve_call *c, const char *name, json_t *value) {
    json_object_set_new(value, "type", json_string(name));
    json_object_set_new(value, "sequence_number", json_integer(c->n_events++));
    serve_event_add(to, name, value);
}

/* Of a part of an item: with a field that the event has. */
static void part_event(void *to, serve_choice *one, const serve_told_block *b, const char *name, const char *field, json_t *value) {
    char id[100];
    json_t *e = json_pack("{s:s,s:i,s:o}", "item_id", item_id(one, b, id, sizeof id), "output_index", b->index, field, value);
    if (!b->call) json_object_set_new(e, "content_index", json_integer(0));
    if (strncmp(name, "response.output_text", 20) == 0)
        json_object_set_new(e, "logprobs", logprobs_json(one, strcmp(field, "delta") == 0 ? one->sent_tokens : 0));
    event(to, one->call, name, e);
}

static void item_event(void *to, serve_choice *one, const serve_told_block *b, const char *name, bool whole) {
    event(to, one->call, name, json_pack("{s:i,s:o}", "output_index", b->index, "item", item_json(one, b, whole)));
}

static void stream_open(void *to, serve_choice *one, const serve_told_block *b) {
    item_event(to, one, b, "response.output_item.added", false);
    if (!b->call) part_event(to, one, b, "response.content_part.added", "part", part_json(one, b, false));
}

static void stream_add(void *to, serve_choice *one, const serve_told_block *b, const char *text, size_t n) {
    static const char *const name[] = {"", "response.reasoning_text.delta", "response.output_text.delta",
                                       "response.function_call_arguments.delta"};
    part_event(to, one, b, name[b->kind], "delta", serve_text_json(text, n));
}

static void stream_close(void *to, serve_choice *one, const serve_told_block *b) {
    static const char *const name[] = {"", "response.reasoning_text.done", "response.output_text.done",
                                       "response.function_call_arguments.done"};
    part_event(to, one, b, name[b->kind], b->call ? "arguments" : "text", serve_text_json(b->text, b->n));
    if (!b->call) part_event(to, one, b, "response.content_part.done", "part", part_json(one, b, true));
    json_array_append_new(one->call->said, item_json(one, b, true));
    item_event(to, one, b, "response.output_item.done", true);
}

static void response_event(serve_bytes *out, serve_call *c, const char *name, const char *status) {
    event(out, c, name, json_pack("{s:o}", "response", response_json(c, status)));
}

static void next(const serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out) {
    static const serve_block_events events = {stream_open, stream_add, stream_close};
    (void)s;
    if (!one->begun) {
        response_event(out, c, "response.created", "in_progress");
        response_event(out, c, "response.in_progress", "in_progress");
    }
    one->begun = true;
    const size_t waited = one->told.n;
    const int told = one->told.index;
    serve_blocks_next(one, &events, true, out);
    /* Log-probabilities of tokens whose text is still held back come with that. */
    if (!c->request.logprobs || one->told.n > waited || one->told.index > told || one->done) one->sent_tokens = one->n_tokens;
    one->ended = one->done;
}

static void end(const serve_server *s, serve_call *c, serve_bytes *out) {
    (void)s;
    const bool cut = serve_is_cut(&c->choices[0]);
    response_event(out, c, cut ? "response.incomplete" : "response.completed", cut ? "incomplete" : "completed");
    serve_bytes_put(out, "data: [DONE]\n\n");
}

static void failed(const serve_server *s, serve_call *c, const serve_error *e, serve_bytes *out) {
    (void)s;
    json_t *r = response_json(c, "failed");
    json_object_set_new(r, "error", json_pack("{s:s,s:o}", "code", "server_error", "message", serve_error_named(e)));
    event(out, c, "response.failed", json_pack("{s:o}", "response", r));
    serve_bytes_put(out, "data: [DONE]\n\n");
}

const serve_protocol serve_responses_protocol = {.stream_type = "text/event-stream; charset=utf-8",
                                                 .comment = ": still at work\n\n",
                                                 .error = serve_error_json,
                                                 .whole = whole,
                                                 .next = next,
                                                 .end = end,
                                                 .failed = failed};
