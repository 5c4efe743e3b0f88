/* SPDX-License-Identifier: Apache-2.0 */
/* serve_chunks.c - the events of streams of chat and text completions: one a choice and round, more rounds in one if the client reads
 * slowly. */
#include "server/serve_answer.h"
#include "server/protocols/serve_blocks.h"
#include "server/protocols/serve_protocol.h"
#include "server/serve_tools.h"

static json_t *chunk(const serve_server *s, const serve_call *c, json_t *choices) {
    json_t *one = json_pack("{s:s,s:s,s:I,s:s,s:o}", "id", c->id, "object", c->chat ? "chat.completion.chunk" : "text_completion",
                            "created", (json_int_t)c->created, "model", s->settings->model_name, "choices", choices);
    if (c->continuous_usage) json_object_set_new(one, "usage", serve_usage_json(c));
    else if (c->include_usage) json_object_set_new(one, "usage", json_null());
    return one;
}

static void choice_event(const serve_server *s, const serve_call *c, json_t *choice, serve_bytes *out) {
    serve_event_add(out, NULL, chunk(s, c, json_pack("[o]", choice)));
}

/* The first event: of a chat the role, of a completion with echo the prompt. False: that is not read yet. */
static bool begin(const serve_server *s, const serve_call *c, serve_choice *one, serve_bytes *out) {
    const bool logprobs = c->request.prompt_logprobs;
    if (logprobs && !one->prompt_logprobs && !one->done) return false;
    if (c->chat)
        choice_event(s, c, json_pack("{s:i,s:{s:s,s:s},s:n,s:n}", "index", one->index, "delta", "role", "assistant", "content", "",
                                     "logprobs", "finish_reason"), out);
    else if (c->echo)
        choice_event(s, c, json_pack("{s:i,s:o,s:o,s:n}", "index", one->index, "text",
                                     serve_text_json(one->prompt->text.at, one->prompt->text.n), "logprobs",
                                     logprobs && one->prompt_logprobs ? serve_logprobs_json(one, 0, one->prompt->n, 0) : json_null(),
                                     "finish_reason"), out);
    return one->begun = true;
}

/* What is new of a text, and the tokens since the last event, which go with it; at the end of a completion the reason, too. */
static void piece(const serve_server *s, serve_choice *one, json_t *choice, size_t before, serve_bytes *out) {
    const serve_call *c = one->call;
    const bool last = one->done && !c->chat;
    const size_t echoed = serve_echoed(one);
    json_t *logprobs = c->request.logprobs && one->n_tokens > one->sent_tokens
                           ? serve_logprobs_json(one, echoed + one->sent_tokens, echoed + one->n_tokens, before)
                           : json_null();
    json_object_set_new(choice, "index", json_integer(one->index));
    json_object_set_new(choice, "logprobs", logprobs);
    json_object_set_new(choice, "finish_reason", last ? serve_finish_json(one) : json_null());
    if (last) json_object_set_new(choice, "stop_reason", serve_stop_json(one));
    if (c->token_ids)
        json_object_set_new(choice, "token_ids", serve_ids_json(one->tokens + one->sent_tokens, one->n_tokens - one->sent_tokens));
    one->sent_tokens = one->n_tokens;
    choice_event(s, c, choice, out);
}

/* ---- chats --------------------------------------------------------------------------------------------------- */

/* Text and thinking that are told until a call comes between, which are one event. */
typedef struct deltas {
    const serve_server *s;
    serve_bytes *out, text, thinking;
} deltas;

static void deltas_send(deltas *d, serve_choice *one) {
    json_t *delta = json_object();
    if (d->thinking.n) json_object_set_new(delta, "reasoning_content", serve_text_json(d->thinking.at, d->thinking.n));
    if (d->text.n || !d->thinking.n) json_object_set_new(delta, "content", serve_text_json(d->text.at, d->text.n));
    d->text.n = d->thinking.n = 0;
    piece(d->s, one, json_pack("{s:o}", "delta", delta), 0, d->out);
}

static void call_send(deltas *d, serve_choice *one, json_t *call) {
    if (d->text.n || d->thinking.n) deltas_send(d, one);
    choice_event(d->s, one->call, json_pack("{s:i,s:{s:[o]},s:n,s:n}", "index", one->index, "delta", "tool_calls", call, "logprobs",
                                            "finish_reason"), d->out);
}

static void chat_open(void *to, serve_choice *one, const serve_told_block *b) {
    if (b->call)
        call_send(to, one,
                  json_pack("{s:i,s:o,s:s,s:{s:s,s:s}}", "index", one->sent_calls++, "id", serve_call_id_json(b->id),
                            "type", "function", "function", "name", b->call->name, "arguments", ""));
}

static void chat_add(void *to, serve_choice *one, const serve_told_block *b, const char *text, size_t n) {
    deltas *d = to;
    if (b->call)
        call_send(d, one, json_pack("{s:i,s:{s:o}}", "index", one->sent_calls - 1, "function", "arguments", serve_text_json(text, n)));
    else
        serve_bytes_join(b->kind == SERVE_BLOCK_TEXT ? &d->text : &d->thinking, text, n);
}

static void chat_next(const serve_server *s, serve_choice *one, serve_bytes *out) {
    static const serve_block_events events = {chat_open, chat_add, NULL};
    const serve_call *c = one->call;
    deltas d = {.s = s, .out = out};
    serve_blocks_next(one, &events, false, &d);
    const bool told = c->request.logprobs || c->token_ids || !one->parts.calls;
    if (d.text.n || d.thinking.n || (one->n_tokens > one->sent_tokens && told)) deltas_send(&d, one);
    one->sent_tokens = one->n_tokens;
    serve_bytes_free(&d.text);
    serve_bytes_free(&d.thinking);
    if (one->done)
        choice_event(s, c, json_pack("{s:i,s:{},s:n,s:o,s:o}", "index", one->index, "delta", "logprobs", "finish_reason",
                                     serve_finish_json(one), "stop_reason", serve_stop_json(one)), out);
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

static void text_next(const serve_server *s, serve_choice *one, serve_bytes *out) {
    const serve_bytes *said = &one->text;
    const size_t before = one->sent_text + (one->call->echo ? one->prompt->text.n : 0);
    if (said->n == one->sent_text && one->n_tokens == one->sent_tokens && !one->done) return;
    json_t *text = said->n ? serve_text_json(said->at + one->sent_text, said->n - one->sent_text) : json_string("");
    piece(s, one, json_pack("{s:o}", "text", text), before, out);
    one->sent_text = said->n;
}

static void next(const serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out) {
    if (!one->begun && !begin(s, c, one, out)) return;
    if (c->chat) chat_next(s, one, out);
    else text_next(s, one, out);
    one->ended = one->done;
}

static void end(const serve_server *s, serve_call *c, serve_bytes *out) {
    if (c->include_usage || c->with_metrics || c->with_timings) {
        json_t *last = chunk(s, c, json_array());
        json_object_set_new(last, "usage", serve_usage_json(c));
        serve_figures_add(last, c);
        serve_event_add(out, NULL, last);
    }
    serve_bytes_put(out, "data: [DONE]\n\n");
}

static void failed(const serve_server *s, serve_call *c, const serve_error *e, serve_bytes *out) {
    (void)s;
    serve_event_add(out, NULL, serve_error_json(e, c->id));
}

const serve_protocol serve_openai = {.stream_type = "text/event-stream; charset=utf-8",
                                     .comment = ": still at work\n\n",
                                     .error = serve_error_json,
                                     .whole = serve_answer_json,
                                     .next = next,
                                     .end = end,
                                     .failed = failed};
