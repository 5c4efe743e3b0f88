/* SPDX-License-Identifier: Apache-2.0 */
/* serve_answer.c - see serve_answer.h. */
#include "server/serve_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "server/protocols/serve_blocks.h"
#include "server/serve_tools.h"

bool serve_answer_failed(const serve_call *c, serve_error *err) {
    for (int i = 0; i < c->n_choices; i++) {
        const serve_choice *one = &c->choices[i];
        if (one->done && one->state.finish == HUNCH_FINISH_FAILED) return serve_fail_hunch(err, NULL, &one->state.error), true;
    }
    return false;
}

json_t *serve_text_json(const char *bytes, size_t n) {
    json_t *text = json_stringn(n ? bytes : "", n);
    if (text) return text;
    char *mended = serve_alloc(n, 3);
    text = json_stringn(mended, hn_utf8_mend(bytes, n, mended, 3 * n));
    hn_free(mended);
    return text;
}

json_t *serve_ids_json(const hunch_token *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

json_t *serve_finish_json(const serve_choice *c) {
    if (!c->done) return json_null();
    if (!c->call->whole_text && serve_tools_called(c)) return json_string("tool_calls");
    switch (c->state.finish) {
    case HUNCH_FINISH_STOP:
    case HUNCH_FINISH_LOOP: return json_string("stop");
    case HUNCH_FINISH_LENGTH: return json_string("length");
    case HUNCH_FINISH_DEADLINE:
    case HUNCH_FINISH_GRAMMAR: return json_string("length");
    default: return json_string("abort");
    }
}

static bool is_stop_token(const serve_choice *c) {
    const hunch_request *r = &c->call->request;
    for (int i = 0; i < r->n_stop_tokens; i++)
        if (r->stop_tokens[i] == c->state.stop_token) return true;
    return false;
}

bool serve_is_stopped(const serve_choice *c) {
    return c->state.finish == HUNCH_FINISH_STOP && (c->state.stop_string >= 0 || is_stop_token(c));
}

/* As vLLM: the stop string or the stop token that ended it, null for an end-of-sequence token; and "deadline". */
json_t *serve_stop_json(const serve_choice *c) {
    const hunch_request *r = &c->call->request;
    if (c->done && c->state.finish == HUNCH_FINISH_DEADLINE) return json_string("deadline");
    if (c->done && c->state.finish == HUNCH_FINISH_GRAMMAR) return json_string("grammar");
    if (!c->done || !serve_is_stopped(c)) return json_null();
    return c->state.stop_string >= 0 ? json_string(r->stop[c->state.stop_string]) : json_integer(c->state.stop_token);
}

const serve_bytes *serve_choice_answer(const serve_choice *c) {
    return !c->call->chat || c->call->whole_text ? &c->text : &c->parts.answer;
}

bool serve_is_cut(const serve_choice *c) {
    const hunch_finish f = c->state.finish;
    return f == HUNCH_FINISH_LENGTH || f == HUNCH_FINISH_DEADLINE || f == HUNCH_FINISH_GRAMMAR;
}

/* Bytes of the text that one more byte of a token makes: none while a character is begun; one that is of no character is U+FFFD. */
static size_t shown(serve_choice *c, char byte) {
    size_t n = 0;
    uint32_t code;
    for (c->partial[c->n_partial++] = byte; c->n_partial;) {
        const size_t whole = (size_t)hn_utf8_decode(c->partial, c->n_partial, &code), gone = whole ? whole : 1;
        if (!whole && hn_utf8_complete(c->partial, c->n_partial) == 0) break;
        n += whole ? whole : 3;
        memmove(c->partial, c->partial + gone, c->n_partial -= gone);
    }
    return n;
}

size_t serve_thinking_tokens(const serve_choice *c) {
    serve_choice *own = &c->call->choices[c->index]; /* its count goes on where it was */
    while (own->thinking_n < c->n_tokens && own->thinking_at < c->parts.thinking_end) {
        const char *bytes;
        size_t len = 0;
        bool special = false;
        hunch_token_piece(c->call->model, c->tokens[own->thinking_n++], &bytes, &len, &special, NULL);
        if (special && !c->call->request.special_text) continue;
        for (size_t i = 0; i < len; i++) own->thinking_at += shown(own, bytes[i]);
    }
    return own->thinking_n;
}

/* Parts of an answer's tokens, as far as there are any. */
static json_t *details_json(const serve_call *c) {
    json_t *details = json_object();
    uint64_t predicted = 0, right = 0;
    size_t thinking = 0;
    for (int i = 0; i < c->n_choices; i++) {
        predicted += c->choices[i].predicted;
        right += c->choices[i].predicted_right;
        thinking += serve_thinking_tokens(&c->choices[i]);
    }
    if (thinking) json_object_set_new(details, "reasoning_tokens", json_integer((json_int_t)thinking));
    if (c->request.n_prediction) {
        json_object_set_new(details, "accepted_prediction_tokens", json_integer((json_int_t)right));
        json_object_set_new(details, "rejected_prediction_tokens", json_integer((json_int_t)(predicted - right)));
    }
    return details;
}

/* Prompt tokens count once a prompt, however many choices it has; cached are those that the first of its sessions was given. */
json_t *serve_usage_json(const serve_call *c) {
    const size_t prompt = serve_call_prompt_tokens(c);
    uint64_t cached = 0;
    size_t answer = 0;
    for (int i = 0; i < c->n_choices; i++) {
        answer += c->choices[i].n_tokens;
        if (i % c->n == 0) cached += c->choices[i].state.n_restored;
    }
    json_t *usage = json_pack("{s:I,s:I,s:I,s:{s:I}}", "prompt_tokens", (json_int_t)prompt, "completion_tokens", (json_int_t)answer,
                     "total_tokens", (json_int_t)(prompt + answer), "prompt_tokens_details", "cached_tokens", (json_int_t)cached);
    json_t *details = details_json(c);
    if (json_object_size(details)) json_object_set(usage, "completion_tokens_details", details);
    json_decref(details);
    return usage;
}

/* ---- figures ------------------------------------------------------------------------------------------------- */

/* Rounds by how many drafts they accepted, from the rounds that accepted at least so many. */
static json_t *histogram(const hunch_session_state *st) {
    json_t *list = json_array();
    int deepest = HUNCH_MAX_DEPTH;
    while (deepest > 0 && !st->accepted_per_position[deepest - 1]) deepest--;
    for (int k = 0; k <= deepest; k++) {
        const uint64_t at_least = k ? st->accepted_per_position[k - 1] : st->rounds;
        const uint64_t more = k < deepest ? st->accepted_per_position[k] : 0;
        json_array_append_new(list, json_integer((json_int_t)(at_least - more)));
    }
    return list;
}

/* Of each depth of drafts that there was: rounds by how many of these they accepted. */
static json_t *histogram_by_length(const serve_choice *c) {
    json_t *lengths = json_object();
    for (int k = 0; c->by_length && k <= HUNCH_MAX_DEPTH; k++) {
        char name[16];
        uint64_t sum = 0;
        json_t *list = json_array();
        for (int j = 0; j <= k; j++) {
            sum += c->by_length[k][j];
            json_array_append_new(list, json_integer((json_int_t)c->by_length[k][j]));
        }
        snprintf(name, sizeof name, "%d", k);
        if (sum) json_object_set(lengths, name, list);
        json_decref(list);
    }
    return lengths;
}

/* As vLLM's per-request figures. */
static json_t *metrics_json(const serve_choice *c) {
    const hunch_session_state *st = &c->state;
    const double rounds = (double)st->rounds, drafted = (double)st->drafted, accepted = (double)st->accepted;
    json_t *histogram_of = histogram(st);
    const json_int_t deepest = (json_int_t)json_array_size(histogram_of) - 1;
    return json_pack("{s:{s:f,s:f,s:o,s:o,s:I,s:I,s:I,s:I}}", "speculative_decoding", "mean_acceptance_length",
                     rounds > 0 ? 1 + accepted / rounds : 1, "draft_acceptance_rate", drafted > 0 ? accepted / drafted : 0,
                     "acceptance_histogram", histogram_of, "acceptance_histogram_by_draft_length",
                     histogram_by_length(c), "num_spec_steps", (json_int_t)st->rounds, "num_accepted_draft_tokens",
                     (json_int_t)st->accepted, "num_draft_tokens", (json_int_t)st->drafted, "num_spec_tokens", deepest);
}

json_t *serve_timings_json(const serve_choice *c) {
    const hunch_session_state *st = &c->state;
    const json_int_t read = (json_int_t)(st->n_prefilled - st->n_restored), made = (json_int_t)c->n_tokens;
    return json_pack("{s:I,s:I,s:f,s:f,s:I,s:f,s:f,s:I,s:I,s:I}", "cache_n", (json_int_t)st->n_restored, "prompt_n",
                     read, "prompt_ms", st->prefill_s * 1e3, "prompt_per_second",
                     st->prefill_s > 0 ? (double)read / st->prefill_s : 0, "predicted_n", made, "predicted_ms",
                     st->decode_s * 1e3, "predicted_per_second", st->decode_s > 0 ? (double)made / st->decode_s : 0, "draft_n",
                     (json_int_t)st->drafted, "draft_n_accepted", (json_int_t)st->accepted, "seed",
                     (json_int_t)c->seed);
}

void serve_figures_add(json_t *to, const serve_call *c) {
    if (c->with_metrics) json_object_set_new(to, "metrics", metrics_json(&c->choices[0]));
    if (c->with_timings) json_object_set_new(to, "timings", serve_timings_json(&c->choices[0]));
}

/* ---- whole answers ------------------------------------------------------------------------------------------- */

static json_t *text_of(const serve_call *c, const serve_choice *one) {
    serve_bytes all = {0};
    if (!c->echo) return serve_text_json(one->text.at, one->text.n);
    serve_bytes_join(&all, one->prompt->text.at, one->prompt->text.n);
    serve_bytes_join(&all, one->text.at, one->text.n);
    json_t *text = serve_text_json(all.at, all.n);
    serve_bytes_free(&all);
    return text;
}

/* What OpenAI's message has of an answer's blocks. */
typedef struct message_parts {
    serve_bytes text, thinking;
    json_t *calls; /* NULL: none */
} message_parts;

static void block_take(void *to, serve_choice *one, const serve_told_block *b) {
    message_parts *p = to;
    (void)one;
    if (b->kind != SERVE_BLOCK_CALL) {
        serve_bytes_join(b->kind == SERVE_BLOCK_TEXT ? &p->text : &p->thinking, b->text, b->n);
        return;
    }
    if (!p->calls) p->calls = json_array();
    json_array_append_new(p->calls, serve_tools_call_json(b->call));
}

static json_t *message_json(serve_choice *one) {
    static const serve_block_events events = {.close = block_take};
    message_parts p = {0};
    serve_blocks_next(one, &events, false, &p);
    json_t *message = json_pack("{s:s,s:o}", "role", "assistant", "content",
                                p.calls && !p.text.n ? json_null() : serve_text_json(p.text.at, p.text.n));
    if (p.thinking.n) json_object_set_new(message, "reasoning_content", serve_text_json(p.thinking.at, p.thinking.n));
    if (p.calls) json_object_set_new(message, "tool_calls", p.calls);
    serve_bytes_free(&p.text);
    serve_bytes_free(&p.thinking);
    return message;
}

static json_t *choice_json(const serve_call *c, serve_choice *one) {
    json_t *choice = json_pack("{s:i}", "index", one->index);
    if (c->chat) json_object_set_new(choice, "message", message_json(one));
    else json_object_set_new(choice, "text", text_of(c, one));
    json_object_set_new(choice, "logprobs",
                        c->request.logprobs ? serve_logprobs_json(one, 0, serve_echoed(one) + one->n_tokens, 0) : json_null());
    json_object_set_new(choice, "finish_reason", serve_finish_json(one));
    json_object_set_new(choice, "stop_reason", serve_stop_json(one));
    if (c->token_ids) {
        json_object_set_new(choice, "token_ids", serve_ids_json(one->tokens, one->n_tokens));
        json_object_set_new(choice, "prompt_token_ids", serve_ids_json(one->prompt->ids, one->prompt->n));
    }
    return choice;
}

json_t *serve_answer_json(const serve_server *s, serve_call *c) {
    json_t *choices = json_array();
    for (int i = 0; i < c->n_choices; i++) json_array_append_new(choices, choice_json(c, &c->choices[i]));
    json_t *answer = json_pack("{s:s,s:s,s:I,s:s,s:o,s:o}", "id", c->id, "object", c->chat ? "chat.completion" : "text_completion",
                               "created", (json_int_t)c->created, "model", s->settings->model_name, "choices", choices, "usage",
                               serve_usage_json(c));
    serve_figures_add(answer, c);
    return answer;
}
