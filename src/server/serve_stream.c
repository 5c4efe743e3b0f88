/* SPDX-License-Identifier: Apache-2.0 */
/* serve_stream.c - the events of a stream (serve_answer.h): "data: {json}" and an empty line each; one a choice and round, more rounds in
 * one if the client reads slowly. */
#include <stdlib.h>

#include "server/serve_answer.h"
#include "server/serve_tools.h"

static void event_add(serve_bytes *out, json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT);
    serve_bytes_put(out, "data: ");
    serve_bytes_put(out, text);
    serve_bytes_put(out, "\n\n");
    free(text);
    json_decref(value);
}

static json_t *chunk(const serve_server *s, const serve_call *c, json_t *choices) {
    json_t *one = json_pack("{s:s,s:s,s:I,s:s,s:o}", "id", c->id, "object", c->chat ? "chat.completion.chunk" : "text_completion",
                            "created", (json_int_t)c->created, "model", s->settings->model_name, "choices", choices);
    if (c->continuous_usage) json_object_set_new(one, "usage", serve_usage_json(c));
    else if (c->include_usage) json_object_set_new(one, "usage", json_null());
    return one;
}

static void choice_event(const serve_server *s, const serve_call *c, json_t *choice, serve_bytes *out) {
    event_add(out, chunk(s, c, json_pack("[o]", choice)));
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

static void choice_next(const serve_server *s, const serve_call *c, serve_choice *one, serve_bytes *out) {
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

static void end(const serve_server *s, const serve_call *c, serve_bytes *out) {
    if (c->include_usage || c->with_metrics || c->with_timings) {
        json_t *last = chunk(s, c, json_array());
        json_object_set_new(last, "usage", serve_usage_json(c));
        serve_figures_add(last, c);
        event_add(out, last);
    }
    serve_bytes_put(out, "data: [DONE]\n\n");
}

serve_more serve_stream_next(const serve_server *s, serve_call *c, serve_bytes *out) {
    serve_error err;
    const size_t had = out->n;
    if (serve_answer_failed(c, &err)) return event_add(out, serve_error_json(&err)), SERVE_LAST;
    for (int i = 0; i < c->n_choices; i++)
        if (!c->choices[i].ended) choice_next(s, c, &c->choices[i], out);
    if (c->left == 0) return end(s, c, out), SERVE_LAST;
    if (out->n == had && c->comment) serve_bytes_put(out, ": still at work\n\n");
    c->comment = false;
    return out->n > had ? SERVE_BYTES : SERVE_NOTHING_YET;
}
