/* SPDX-License-Identifier: Apache-2.0 */
/* serve_llama.c - llama.cpp's /completion: bodies as those of text completions, and answers in its shape. /props and /slots are in
 * serve_about.c. docs/protocols.md lists the fields. */
#include <stdio.h>
#include <string.h>

#include "server/protocols/serve_about.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_endpoints.h"
#include "server/protocols/serve_parameters.h"
#include "server/serve_request.h"

#define SAME(name) {.theirs = name, .ours = name}
static const serve_name names[] = {SAME("prompt"), SAME("stream"), SAME("stop"), SAME("grammar"), SAME("json_schema"),
                                   SAME("repeat_last_n"),
                                   {.theirs = "return_tokens", .ours = "return_token_ids"},
                                   {.theirs = "repeat_penalty", .ours = "repetition_penalty"},
                                   {.theirs = "n_cmpl", .ours = "n"},
                                   {.theirs = "n_predict", .ours = "max_tokens", .none = true, .from = -1, .to = -1},
                                   {.theirs = "n_probs", .ours = "logprobs", .none = true, .from = 0, .to = 0},
                                   {.theirs = "seed", .ours = "seed", .none = true, .from = -1, .to = -1}, /* any */
                                   SERVE_NAMES};
#undef SAME

/* ---- fields -------------------------------------------------------------------------------------------------- */

static bool others_check(const serve_view *v, serve_error *err) {
    static const serve_only only[] = {{"mirostat", 0}, {"dynatemp_range", 0}, {"n_indent", 0}, {NULL, 0}};
    static const serve_expected kinds[] = {
        {"mirostat_tau", SERVE_IS_NUMBER}, {"mirostat_eta", SERVE_IS_NUMBER}, {"dynatemp_exponent", SERVE_IS_NUMBER},
        {"n_keep", SERVE_IS_WHOLE}, {"n_discard", SERVE_IS_WHOLE}, {"id_slot", SERVE_IS_WHOLE}, {"cache_prompt", SERVE_IS_BOOL},
        {"timings_per_token", SERVE_IS_BOOL}, {"return_progress", SERVE_IS_BOOL}, {"samplers", SERVE_IS_LIST}, {"lora", SERVE_IS_LIST},
        {"image_data", SERVE_IS_LIST}, {"multimodal_data", SERVE_IS_LIST}, {"response_fields", SERVE_IS_LIST}, {NULL, 0}};
    static const char *const empty[] = {"samplers", "lora", "image_data", "multimodal_data", "response_fields", NULL};
    int64_t keep = 0, time = 0;
    return serve_only_check(v, only, err) && serve_kinds_check(v, kinds, err) && serve_field_int(v, "min_keep", 0, 1, &keep, err) &&
           serve_field_int(v, "t_max_predict_ms", -1, 0, &time, err) && serve_switch_check(v, "post_sampling_probs", false, err) &&
           serve_refused_check(v, empty, ": expected none, or an empty list", err);
}

/* n_predict -1: as many tokens as the context holds; 0: the prompt alone. */
bool serve_llama_completion(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view own = {.body = q->body}, v = {.body = q->body, .names = names};
    const json_t *most = serve_field(&v, "max_tokens");
    serve_wanted w = {.most = serve_engine_context(s->engine), .echo = most && json_integer_value(most) == 0};
    if (serve_model(s, err) && others_check(&own, err)) r->call = serve_request_read(s, q, &v, &w, false, err);
    serve_wanted_free(&w);
    return r->call != NULL;
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static json_t *error_json(const serve_error *e, const char *id) {
    (void)id;
    const char *type = e->code && strcmp(e->code, "context_length_exceeded") == 0 ? "exceed_context_size_error"
                       : e->http == 401                                            ? "authentication_error"
                       : e->http == 404                                            ? "not_found_error"
                       : e->http == 503 || e->http == 429                          ? "unavailable_error"
                       : e->http >= 500                                            ? "server_error"
                                                                                   : "invalid_request_error";
    return json_pack("{s:{s:i,s:o,s:s}}", "error", "code", e->http, "message", serve_error_named(e), "type", type);
}

static json_t *stops_json(const hunch_request *r) {
    json_t *stops = json_array();
    for (int i = 0; i < r->n_stop; i++) json_array_append_new(stops, json_string(r->stop[i]));
    return stops;
}

json_t *serve_llama_settings(const hunch_request *r) {
    const hunch_sampling *p = &r->sampling;
    return json_pack("{s:i,s:i,s:f,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:i,s:f,s:f,s:f,s:f,s:i,s:i,s:b,s:i,s:i,s:o}",
                     "n_predict", r->max_tokens, "max_tokens", r->max_tokens, "temperature", p->temperature, "top_k",
                     p->top_k, "top_p", p->top_p, "min_p", p->min_p, "top_n_sigma",
                     p->top_n_sigma > 0 ? p->top_n_sigma : -1.0, "xtc_probability", p->xtc_probability, "xtc_threshold",
                     p->xtc_threshold, "typical_p", p->typical_p > 0 ? p->typical_p : 1.0, "repeat_penalty",
                     p->repetition_penalty > 0 ? p->repetition_penalty : 1.0, "repeat_last_n", -1, "presence_penalty",
                     p->presence_penalty, "frequency_penalty", p->frequency_penalty, "dry_multiplier",
                     p->dry_multiplier, "dry_base", p->dry_base > 0 ? p->dry_base : 1.75, "dry_allowed_length",
                     p->dry_allowed_length > 0 ? p->dry_allowed_length : 2, "dry_penalty_last_n",
                     p->dry_range > 0 ? p->dry_range : -1, "ignore_eos", r->ignore_eos, "n_probs", r->top_logprobs,
                     "min_keep", 0, "stop", stops_json(r));
}

static const char *stop_type(const serve_choice *one, const char **word) {
    json_t *stop = serve_stop_json(one);
    const bool length = serve_is_cut(one);
    *word = one->state.finish == HUNCH_FINISH_STOP && one->state.stop_string >= 0 ? one->call->request.stop[one->state.stop_string] : "";
    json_decref(stop);
    return length ? "limit" : **word ? "word" : "eos";
}

/* What is new, of a stream, or all. Takes the content. */
static json_t *piece_json(const serve_choice *one, json_t *content, size_t from, bool stop) {
    const serve_call *c = one->call;
    json_t *p = json_pack("{s:i,s:o,s:o,s:i,s:b,s:I,s:I}", "index", one->index, "content", content, "tokens",
                          c->token_ids ? serve_ids_json(one->tokens + from, one->n_tokens - from) : json_array(),
                          "id_slot", -1, "stop", stop, "tokens_predicted", (json_int_t)one->n_tokens,
                          "tokens_evaluated", (json_int_t)one->prompt->n);
    if (c->request.logprobs && one->n_tokens > from)
        json_object_set_new(p, "completion_probabilities",
                            serve_tokens_json(one, serve_echoed(one) + from, serve_echoed(one) + one->n_tokens));
    return p;
}

/* What the last object of an answer has beside its text. */
static void end_add(const serve_server *s, const serve_choice *one, json_t *to) {
    const char *word, *type = stop_type(one, &word);
    json_t *settings = serve_llama_settings(&one->call->request);
    json_object_set_new(settings, "seed", json_integer((json_int_t)one->seed));
    json_t *rest = json_pack("{s:s,s:o,s:o,s:b,s:b,s:s,s:s,s:I,s:o}", "model", s->settings->model_name, "generation_settings", settings,
                             "prompt", serve_text_json(one->prompt->text.at, one->prompt->text.n), "has_new_line",
                             one->text.n && memchr(one->text.at, '\n', one->text.n) != NULL, "truncated", 0, "stop_type", type,
                             "stopping_word", word, "tokens_cached", (json_int_t)(one->prompt->n + one->n_tokens), "timings",
                             serve_timings_json(one));
    json_object_update(to, rest);
    json_decref(rest);
    serve_figures_add(to, one->call);
}

static json_t *whole(const serve_server *s, serve_call *c) {
    json_t *list = json_array();
    for (int i = 0; i < c->n_choices; i++) {
        serve_choice *one = &c->choices[i];
        json_t *answer = piece_json(one, serve_text_json(one->text.at, one->text.n), 0, true);
        end_add(s, one, answer);
        json_array_append_new(list, answer);
    }
    if (c->n_choices > 1) return list;
    json_t *one = json_incref(json_array_get(list, 0));
    json_decref(list);
    return one;
}

static void next(const serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out) {
    const bool text = one->text.n > one->sent_text, told = c->request.logprobs || c->token_ids;
    if (text || (told && one->n_tokens > one->sent_tokens)) {
        const size_t from = one->sent_text;
        json_t *content = text ? serve_text_json(one->text.at + from, one->text.n - from) : json_string("");
        serve_event_add(out, NULL, piece_json(one, content, one->sent_tokens, false));
        one->sent_text = one->text.n;
    }
    one->sent_tokens = one->n_tokens;
    if (!one->done) return;
    json_t *last = piece_json(one, json_string(""), one->n_tokens, true);
    end_add(s, one, last);
    serve_event_add(out, NULL, last);
    one->ended = true;
}

static void end(const serve_server *s, serve_call *c, serve_bytes *out) { (void)s, (void)c, (void)out; }

static void failed(const serve_server *s, serve_call *c, const serve_error *e, serve_bytes *out) {
    (void)s;
    serve_event_add(out, NULL, error_json(e, c->id));
}

const serve_protocol serve_llama = {.stream_type = "text/event-stream; charset=utf-8",
                                    .comment = ": still at work\n\n",
                                    .error = error_json,
                                    .whole = whole,
                                    .next = next,
                                    .end = end,
                                    .failed = failed};
