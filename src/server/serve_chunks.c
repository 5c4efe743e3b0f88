/* SPDX-License-Identifier: Apache-2.0 */
/* serve_chunks.c - the events of streams of chat and text completions: one a choice and round, more rounds in one if the client reads
 * slowly. */
#include "server/serve_answer.h"
#include "server/serve_protocol.h"
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

/* What is new of a chat: a delta; of a completion: its text. */
static json_t *new_text(const serve_call *c, serve_choice *one) {
    const serve_bytes *said = serve_choice_answer(one), *thinking = &one->parts.thinking;
    json_t *answer = said->n ? serve_text_json(said->at + one->sent_text, said->n - one->sent_text) : json_string(""), *choice;
    if (c->chat) {
        json_t *delta = json_object();
        if (thinking->n > one->sent_thinking)
            json_object_set_new(delta, "reasoning_content",
                                serve_text_json(thinking->at + one->sent_thinking, thinking->n - one->sent_thinking));
        if (said->n > one->sent_text || !json_object_size(delta)) json_object_set(delta, "content", answer);
        json_decref(answer);
        choice = json_pack("{s:i,s:o}", "index", one->index, "delta", delta);
    } else choice = json_pack("{s:i,s:o}", "index", one->index, "text", answer);
    one->sent_text = said->n;
    one->sent_thinking = thinking->n;
    return choice;
}

/* Text and tokens that are new; at the end of a completion with the reason, of a chat the reason is an event of its own. */
static void piece(const serve_server *s, const serve_call *c, serve_choice *one, serve_bytes *out) {
    const bool last = one->done && !c->chat;
    const size_t echoed = serve_echoed(one), before = one->sent_text + (c->echo ? one->prompt->text.n : 0);
    json_t *choice = new_text(c, one);
    json_t *logprobs = c->request.logprobs && one->n_tokens > one->sent_tokens
                           ? serve_logprobs_json(one, echoed + one->sent_tokens, echoed + one->n_tokens, before)
                           : json_null();
    json_object_set_new(choice, "logprobs", logprobs);
    json_object_set_new(choice, "finish_reason", last ? serve_finish_json(one) : json_null());
    if (last) json_object_set_new(choice, "stop_reason", serve_stop_json(one));
    if (c->token_ids)
        json_object_set_new(choice, "token_ids", serve_ids_json(one->tokens + one->sent_tokens, one->n_tokens - one->sent_tokens));
    one->sent_tokens = one->n_tokens;
    choice_event(s, c, choice, out);
}

/* Calls that are new, a name or a piece of arguments an event. False: there are none. */
static bool calls_next(const serve_server *s, const serve_call *c, serve_choice *one, serve_bytes *out) {
    bool any = false;
    json_t *delta;
    while (!c->whole_text && (delta = serve_tools_delta(one))) {
        choice_event(s, c, json_pack("{s:i,s:o,s:n,s:n}", "index", one->index, "delta", delta, "logprobs", "finish_reason"), out);
        any = true;
    }
    return any;
}

static void next(const serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out) {
    if (!one->begun && !begin(s, c, one, out)) return;
    const bool text = serve_choice_answer(one)->n > one->sent_text || one->parts.thinking.n > one->sent_thinking;
    const bool tokens = one->n_tokens > one->sent_tokens, told = c->request.logprobs || c->token_ids || !one->parts.calls;
    if (text || (tokens && told) || (one->done && !one->ended && !c->chat)) piece(s, c, one, out);
    if (calls_next(s, c, one, out) || tokens) one->sent_tokens = one->n_tokens;
    if (one->done && !one->ended && c->chat)
        choice_event(s, c, json_pack("{s:i,s:{},s:n,s:o,s:o}", "index", one->index, "delta", "logprobs", "finish_reason",
                                     serve_finish_json(one), "stop_reason", serve_stop_json(one)), out);
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
