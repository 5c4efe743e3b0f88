/* SPDX-License-Identifier: Apache-2.0 */
/* serve_ollama.c - Ollama's /api/generate and /api/chat: bodies as those of our completions, answers as lines of JSON. What describes the
 * model is in serve_ollama_about.c. docs/protocols.md lists the fields. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/serve_about.h"
#include "server/serve_answer.h"
#include "server/serve_blocks.h"
#include "server/serve_endpoints.h"
#include "server/serve_fields.h"
#include "server/serve_request.h"
#include "server/serve_tools.h"
#include "server/serve_translate.h"

static const serve_name options[] = {{"options.temperature", "temperature", false},
                                     {"options.top_k", "top_k", false},
                                     {"options.top_p", "top_p", false},
                                     {"options.min_p", "min_p", false},
                                     {"options.typical_p", "typical_p", false},
                                     {"options.repeat_penalty", "repetition_penalty", false},
                                     {"options.presence_penalty", "presence_penalty", false},
                                     {"options.frequency_penalty", "frequency_penalty", false},
                                     {"options.seed", "seed", false},
                                     {"options.stop", "stop", false},
                                     {"options.num_predict", "max_tokens", true},
                                     {"think", "reasoning_effort", true},
                                     {"format", "response_format", true},
                                     {"format", "response_format.json_schema.schema", true},
                                     {NULL, NULL, false}};
static const serve_name both[] = {{"tools", "tools", false}, {"top_logprobs", "top_logprobs", false}, {NULL, NULL, false}};

/* ---- fields -------------------------------------------------------------------------------------------------- */

/* Sizes of a machine's memory and ways to use it, which a server has set when it started; and what is of other samplers. */
static bool options_check(const json_t *given, int context, serve_error *err) {
    static const serve_expected kinds[] = {
        {"num_keep", SERVE_IS_WHOLE}, {"num_batch", SERVE_IS_WHOLE}, {"num_gpu", SERVE_IS_WHOLE}, {"main_gpu", SERVE_IS_WHOLE},
        {"num_thread", SERVE_IS_WHOLE}, {"numa", SERVE_IS_BOOL}, {"low_vram", SERVE_IS_BOOL}, {"f16_kv", SERVE_IS_BOOL},
        {"logits_all", SERVE_IS_BOOL}, {"vocab_only", SERVE_IS_BOOL}, {"use_mmap", SERVE_IS_BOOL}, {"use_mlock", SERVE_IS_BOOL},
        {"embedding_only", SERVE_IS_BOOL}, {"mirostat_tau", SERVE_IS_NUMBER}, {"mirostat_eta", SERVE_IS_NUMBER}, {NULL, 0}};
    static const serve_only only[] = {{"mirostat", 0}, {"tfs_z", 1}, {NULL, 0}};
    int64_t size = 0;
    bool newline = true;
    if (!serve_kinds_check(given, "options.", kinds, err) || !serve_only_check(given, "options.", only, err) ||
        !serve_field_int(given, "options.num_ctx", 1, INT32_MAX, &size, err) ||
        !serve_field_bool(given, "options.penalize_newline", &newline, err)) return false;
    if (size > context)
        return serve_fail(err, 400, "options.num_ctx", "options.num_ctx is %lld, but the context holds %d", (long long)size, context);
    return newline ? true : serve_fail(err, 400, "options.penalize_newline", "options.penalize_newline: only true is supported");
}

static bool options_make(json_t *to, const json_t *body, int context, serve_error *err) {
    const json_t *given = serve_field(body, "options");
    int64_t most = -1;
    if (given && !hn_json_is_object(given)) return serve_fail(err, 400, "options", "options is not an object");
    if (!given) given = json_null();
    serve_translate(to, given, options);
    if (!serve_field_int(given, "options.num_predict", -2, INT32_MAX, &most, err)) return false;
    if (most == 0) return serve_fail(err, 400, "options.num_predict", "options.num_predict is 0: an answer has at least one token");
    json_object_set_new(to, "max_tokens", json_integer(most < 0 ? context : most)); /* -1, -2: what the context holds */
    const json_t *seed = serve_field(given, "seed");
    if (json_is_integer(seed) && json_integer_value(seed) == -1) json_object_del(to, "seed"); /* any */
    return options_check(given, context, err) && serve_window_read(to, given, "options.", err);
}

/* "think": whether the template lets the model think, or how long. */
static bool think_make(json_t *to, const json_t *body, serve_error *err) {
    json_t *given = serve_field(body, "think");
    if (!given) return true;
    if (!json_is_boolean(given) && !json_string_length(given)) return serve_fail(err, 400, "think", "think is not true, false or a level");
    if (json_is_string(given)) json_object_set(to, "reasoning_effort", given);
    serve_think(to, !json_is_false(given));
    return true;
}

static bool format_make(json_t *to, const json_t *body, serve_error *err) {
    json_t *given = serve_field(body, "format");
    const char *word = json_string_value(given);
    if (!given || (word && !*word)) return true;
    if (word && strcmp(word, "json") == 0) json_object_set_new(to, "response_format", json_pack("{s:s}", "type", "json_object"));
    else if (hn_json_is_object(given))
        json_object_set_new(to, "response_format", json_pack("{s:s,s:{s:O}}", "type", "json_schema", "json_schema", "schema", given));
    else return serve_fail(err, 400, "format", "format is not \"json\" or a JSON schema");
    return true;
}

/* Log-probabilities as chats ask for them, or as completions do. */
static bool logprobs_make(json_t *to, const json_t *body, bool chat, serve_error *err) {
    bool wanted = false;
    int64_t top = 0;
    if (!serve_field_bool(body, "logprobs", &wanted, err) || !serve_field_int(body, "top_logprobs", 0, 20, &top, err)) return false;
    if (top && !wanted) return serve_fail(err, 400, "top_logprobs", "top_logprobs needs \"logprobs\": true");
    if (!wanted) return true;
    json_object_set_new(to, "logprobs", chat ? json_true() : json_integer(top));
    if (chat) json_object_set_new(to, "top_logprobs", json_integer(top));
    return true;
}

static bool keep_check(const json_t *body, serve_error *err) {
    const json_t *keep = serve_field(body, "keep_alive");
    return !keep || hn_json_is_number(keep) || json_is_string(keep)
               ? true
               : serve_fail(err, 400, "keep_alive", "keep_alive is not a number or a text");
}

/* Ollama's names of models have a tag. */
json_t *serve_ollama_model(const json_t *body, const char *field) {
    json_t *given = serve_field(body, field);
    static const char tag[] = ":latest";
    const char *name = json_string_value(given);
    const size_t n = name ? strlen(name) : 0, end = sizeof tag - 1;
    return n > end && strcmp(name + n - end, tag) == 0 ? json_stringn(name, n - end) : json_incref(given);
}

/* What both endpoints have, in our words. False after an error. */
static bool shared_make(json_t *to, serve_server *s, const json_t *body, bool chat, serve_error *err) {
    bool stream = true;
    serve_translate(to, body, serve_own_names);
    json_t *model = serve_ollama_model(body, "model");
    if (model) json_object_set_new(to, "model", model);
    if (!serve_field_bool(body, "stream", &stream, err)) return false;
    json_object_set_new(to, "stream", json_boolean(stream));
    return options_make(to, body, serve_engine_context(s->engine), err) && (!chat || think_make(to, body, err)) &&
           format_make(to, body, err) && logprobs_make(to, body, chat, err) && keep_check(body, err);
}

static json_t *head_json(const serve_server *s);

/* Nothing is asked: clients load a model so, or unload it, which is done at once here. */
static bool nothing_asked(const serve_server *s, const json_t *body, bool chat, serve_reply *r) {
    const json_t *keep = serve_field(body, "keep_alive");
    r->json = head_json(s);
    if (chat) json_object_set_new(r->json, "message", json_pack("{s:s,s:s}", "role", "assistant", "content", ""));
    else json_object_set_new(r->json, "response", json_string(""));
    json_object_set_new(r->json, "done", json_true());
    json_object_set_new(r->json, "done_reason", json_string(json_is_integer(keep) && !json_integer_value(keep) ? "unload" : "load"));
    return true;
}

static bool call_make(serve_server *s, const serve_asked *q, json_t *to, bool chat, serve_reply *r, serve_error *err) {
    r->call = serve_translated_call(s, q, to, chat, options, err);
    return r->call != NULL;
}

/* ---- generate ------------------------------------------------------------------------------------------------ */

static bool generate_check(const json_t *body, bool *raw, serve_error *err) {
    static const serve_expected kinds[] = {{"prompt", SERVE_IS_TEXT}, {"system", SERVE_IS_TEXT}, {"template", SERVE_IS_TEXT},
                                           {"suffix", SERVE_IS_TEXT}, {"images", SERVE_IS_LIST}, {"context", SERVE_IS_LIST}, {NULL, 0}};
    static const char *const refused[] = {"template", "suffix", "images", "context"};
    if (!serve_kinds_check(body, "", kinds, err) || !serve_field_bool(body, "raw", raw, err)) return false;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const json_t *value = serve_field(body, refused[i]);
        if (json_string_length(value) || json_array_size(value))
            return serve_fail(err, 400, refused[i], "%s is not supported; earlier turns go to /api/chat", refused[i]);
    }
    const json_t *prompt = serve_field(body, "prompt");
    if (!*raw && prompt && strlen(json_string_value(prompt)) != json_string_length(prompt))
        return serve_fail(err, 400, "prompt", "prompt has the character U+0000, which only a raw prompt may have");
    return !*raw || !json_string_length(serve_field(body, "system"))
               ? true
               : serve_fail(err, 400, "system", "system is not supported beside raw: a raw prompt is the whole text");
}

bool serve_ollama_generate(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err) {
    const json_t *body = q->body, *system = serve_field(body, "system");
    json_t *prompt = serve_field(body, "prompt"), *to = json_object();
    bool raw = false;
    if (!serve_model(s, err) || !generate_check(body, &raw, err) || !shared_make(to, s, body, !raw, err)) return json_decref(to), false;
    if (!json_string_length(prompt)) {
        const bool here = serve_request_model(s, to, err);
        json_decref(to);
        return here && nothing_asked(s, body, false, r);
    }
    if (raw) json_object_set(to, "prompt", prompt);
    else {
        json_t *messages = json_array();
        if (json_string_length(system))
            json_array_append_new(messages, serve_message_json("system", json_copy((json_t *)(uintptr_t)system)));
        json_array_append_new(messages, serve_message_json("user", json_copy(prompt)));
        json_object_set_new(to, "messages", messages);
    }
    if (!call_make(s, q, to, !raw, r, err)) return false;
    r->call->generate = true;
    return true;
}

/* ---- chat ---------------------------------------------------------------------------------------------------- */

/* Calls have objects as arguments and no ids: results follow in the order of the calls. */
static bool calls_make(json_t *to, const json_t *calls, size_t i, serve_error *err) {
    json_t *call;
    size_t k;
    json_array_foreach(calls, k, call) {
        json_t *function = json_object_get(call, "function"), *name = json_object_get(function, "name");
        json_t *arguments = json_object_get(function, "arguments");
        char id[48];
        if (!json_string_length(name) || (arguments && !hn_json_is_object(arguments)))
            return serve_fail(err, 400, "messages",
                              "messages[%zu].tool_calls[%zu] has no function with a name and an object of arguments", i,
                              k);
        snprintf(id, sizeof id, "call_%zu_%zu", i, k);
        char *text = arguments ? serve_json_dump(arguments, JSON_COMPACT) : NULL;
        json_t *made = json_string(id);
        serve_call_add(to, made, name, text ? text : "{}");
        json_decref(made);
        hn_free(text);
    }
    return true;
}

/* The conversation so far, and the calls that the next results answer. */
typedef struct turns {
    json_t *messages;
    const json_t *calls; /* of the newest message that has any; NULL: none, or another message came since */
    size_t results;      /* to these */
} turns;

static bool is_of(const json_t *call, const json_t *name) {
    return call && (!name || json_equal(name, json_object_get(json_object_get(call, "function"), "name")));
}

/* The id of the call that a result answers: results come in the order of the calls, or else by their names. New. */
static json_t *result_id(turns *t, const json_t *name) {
    enum { MOST = 128 }; /* calls that are looked at */
    const json_t *call = json_array_get(t->calls, t->results++);
    for (size_t k = 0; k < MOST && !is_of(call, name) && k < json_array_size(t->calls); k++)
        if (is_of(json_array_get(t->calls, k), name)) call = json_array_get(t->calls, k);
    return call ? json_incref(json_object_get(call, "id")) : json_string("call");
}

static bool message_check(const json_t *given, size_t i, serve_error *err) {
    static const serve_expected kinds[] = {{"content", SERVE_IS_TEXT}, {"thinking", SERVE_IS_TEXT}, {"images", SERVE_IS_LIST},
                                           {"tool_calls", SERVE_IS_LIST}, {"tool_name", SERVE_IS_TEXT}, {NULL, 0}};
    char within[40];
    snprintf(within, sizeof within, "messages[%zu].", i);
    if (!json_string_length(json_object_get(given, "role")))
        return serve_fail(err, 400, "messages", "messages[%zu] is not an object with a role", i);
    if (!serve_kinds_check(given, within, kinds, err)) return false;
    return json_array_size(serve_field(given, "images")) == 0 ||
           serve_fail(err, 400, "messages", "messages[%zu].images: only text is supported", i);
}

static bool message_make(turns *t, const json_t *given, size_t i, serve_error *err) {
    if (!message_check(given, i, err)) return false;
    json_t *content = serve_field(given, "content"), *thinking = serve_field(given, "thinking"), *calls = serve_field(given, "tool_calls");
    const char *role = json_string_value(json_object_get(given, "role"));
    json_t *to = serve_message_json(role, content ? json_incref(content) : json_string(""));
    json_array_append_new(t->messages, to);
    if (json_string_length(thinking)) json_object_set(to, "reasoning_content", thinking);
    if (strcmp(role, "tool") == 0) {
        json_t *name = serve_field(given, "tool_name");
        if (!name) name = serve_field(given, "name");
        json_object_set_new(to, "tool_call_id", result_id(t, name));
        if (json_is_string(name)) json_object_set(to, "name", name);
        return true;
    }
    if (json_array_size(calls) && !calls_make(to, calls, i, err)) return false;
    t->calls = json_object_get(to, "tool_calls");
    t->results = 0;
    return true;
}

bool serve_ollama_chat(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err) {
    const json_t *given = serve_field(q->body, "messages"), *message;
    json_t *to = json_object(), *messages = json_array();
    turns t = {.messages = messages};
    size_t i;
    json_object_set_new(to, "messages", messages);
    serve_translate(to, q->body, both);
    bool ok = serve_model(s, err) && shared_make(to, s, q->body, true, err);
    if (ok && given && !json_is_array(given)) ok = serve_fail(err, 400, "messages", "messages is not a list of messages");
    json_array_foreach(given, i, message) ok = ok && message_make(&t, message, i, err);
    if (ok && serve_ends_with_answer(messages)) json_object_set_new(to, "continue_final_message", json_true());
    if (ok && json_array_size(given)) return call_make(s, q, to, true, r, err);
    ok = ok && serve_request_model(s, to, err) && nothing_asked(s, q->body, true, r);
    json_decref(to);
    return ok;
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static json_t *error_json(const serve_error *e, const char *id) {
    (void)id;
    return json_pack("{s:o}", "error", serve_error_named(e));
}

static json_t *head_json(const serve_server *s) {
    struct timespec now;
    char day[SERVE_TIME], text[64];
    clock_gettime(CLOCK_REALTIME, &now);
    serve_time(now.tv_sec, day);
    snprintf(text, sizeof text, "%.19s.%09ldZ", day, now.tv_nsec);
    return json_pack("{s:s,s:s}", "model", s->settings->model_name, "created_at", text);
}

/* What of an answer comes after what was sent. */
typedef struct news {
    serve_bytes text, thinking;
    json_t *calls; /* NULL: none */
} news;

static void news_add(void *to, serve_choice *one, const serve_told_block *b, const char *text, size_t n) {
    news *all = to;
    (void)one;
    if (!b->call) serve_bytes_join(b->kind == SERVE_BLOCK_TEXT ? &all->text : &all->thinking, text, n);
}

/* A call has an object, so it is told once it is complete; one that was cut is not told, since whoever reads it would run it. */
static void news_close(void *to, serve_choice *one, const serve_told_block *b) {
    news *all = to;
    json_t *arguments = b->call && b->call->state == HUNCH_CALL_DONE ? serve_arguments_json(b) : NULL;
    (void)one;
    if (!arguments) return;
    if (!all->calls) all->calls = json_array();
    json_array_append_new(all->calls, json_pack("{s:o,s:{s:s,s:o}}", "id", serve_call_id_json(b->id), "function",
                                                "name", b->call->name, "arguments", arguments));
}

/* The same as a line; NULL: nothing. */
static json_t *news_json(const serve_server *s, serve_choice *one) {
    static const serve_block_events events = {.add = news_add, .close = news_close};
    const bool generate = one->call->generate;
    news all = {0};
    serve_blocks_next(one, &events, false, &all);
    const bool tokens = one->call->request.logprobs && one->n_tokens > one->sent_tokens;
    json_t *line = NULL;
    if (all.text.n || all.thinking.n || all.calls || tokens) {
        json_t *to = generate ? head_json(s) : json_pack("{s:s}", "role", "assistant");
        json_object_set_new(to, generate ? "response" : "content", serve_text_json(all.text.at, all.text.n));
        if (all.thinking.n) json_object_set_new(to, "thinking", serve_text_json(all.thinking.at, all.thinking.n));
        if (all.calls && !generate) json_object_set(to, "tool_calls", all.calls);
        line = to;
        if (!generate) json_object_set_new(line = head_json(s), "message", to);
        json_object_set_new(line, "done", json_false());
        if (tokens) json_object_set_new(line, "logprobs", serve_tokens_json(one, one->sent_tokens, one->n_tokens));
    }
    if (!one->call->request.logprobs || line) one->sent_tokens = one->n_tokens;
    serve_bytes_free(&all.text);
    serve_bytes_free(&all.thinking);
    json_decref(all.calls);
    return line;
}

/* The reason and the figures of the last line. */
static void end_add(const serve_choice *one, json_t *to) {
    const hunch_session_state *st = &one->state;
    const bool cut = serve_is_cut(one);
    json_t *figures = json_pack("{s:b,s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "done", 1, "done_reason", cut ? "length" : "stop", "total_duration",
                                (json_int_t)((hn_now() - one->call->received_s) * 1e9), "load_duration", (json_int_t)0, "prompt_eval_count",
                                (json_int_t)one->prompt->n, "prompt_eval_duration", (json_int_t)(st->prefill_s * 1e9), "eval_count",
                                (json_int_t)one->n_tokens, "eval_duration", (json_int_t)(st->decode_s * 1e9));
    json_object_update(to, figures);
    json_decref(figures);
    serve_figures_add(to, one->call);
}

static json_t *empty_json(const serve_server *s, const serve_call *c) {
    json_t *line = head_json(s);
    if (c->generate) json_object_set_new(line, "response", json_string(""));
    else json_object_set_new(line, "message", json_pack("{s:s,s:s}", "role", "assistant", "content", ""));
    return line;
}

static json_t *whole(const serve_server *s, serve_call *c) {
    json_t *all = news_json(s, &c->choices[0]);
    if (!all) all = empty_json(s, c);
    end_add(&c->choices[0], all);
    return all;
}

static void next(const serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out) {
    json_t *line = news_json(s, one);
    (void)c;
    if (line) serve_line_add(out, line);
    one->ended = one->done;
}

static void end(const serve_server *s, serve_call *c, serve_bytes *out) {
    json_t *last = empty_json(s, c);
    end_add(&c->choices[0], last);
    serve_line_add(out, last);
}

static void failed(const serve_server *s, serve_call *c, const serve_error *e, serve_bytes *out) {
    (void)s;
    serve_line_add(out, error_json(e, c->id));
}

const serve_protocol serve_ollama = {.stream_type = "application/x-ndjson",
                                     .error = error_json,
                                     .whole = whole,
                                     .next = next,
                                     .end = end,
                                     .failed = failed};
