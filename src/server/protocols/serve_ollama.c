/* SPDX-License-Identifier: Apache-2.0 */
/* serve_ollama.c - Ollama's /api/generate and /api/chat: bodies as those of our completions, answers as lines of JSON. What describes the
 * model is in serve_ollama_about.c. docs/protocols.md lists the fields. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/protocols/serve_about.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_blocks.h"
#include "server/protocols/serve_endpoints.h"
#include "server/protocols/serve_openai.h"
#include "server/protocols/serve_parameters.h"
#include "server/serve_request.h"
#include "server/serve_tools.h"

/* Names that do not tell what a prompt is: those of a chat, and of a text. */
#define SAME(name) {.theirs = name, .ours = name}
#define OPTION(name) {.theirs = "options." name, .ours = name}
#define NAMES                                                                                                                          \
    SAME("stream"), SAME("tools"), SAME("logprobs"), SAME("top_logprobs"), OPTION("stop"), OPTION("repeat_last_n"),                     \
        {.theirs = "options.repeat_penalty", .ours = "repetition_penalty"},                                                             \
        {.theirs = "options.num_predict", .ours = "max_tokens", .none = true, .from = -2, .to = 0}, /* what the context holds */        \
        {.theirs = "options.seed", .ours = "seed", .none = true, .from = -1, .to = -1},              /* any */                          \
        SERVE_NAMES_IN_OPTIONS
static const serve_name of_chats[] = {SAME("messages"), NAMES};
static const serve_name of_generate[] = {{.theirs = "prompt", .ours = "messages"}, SAME("prompt"), NAMES};

/* ---- fields -------------------------------------------------------------------------------------------------- */

/* Sizes of a machine's memory and ways to use it, which a server has set when it started; and what is of other samplers. */
static bool options_check(const serve_view *v, int context, serve_error *err) {
    static const serve_expected kinds[] = {
        {"options.num_keep", SERVE_IS_WHOLE}, {"options.num_batch", SERVE_IS_WHOLE}, {"options.num_gpu", SERVE_IS_WHOLE},
        {"options.main_gpu", SERVE_IS_WHOLE}, {"options.num_thread", SERVE_IS_WHOLE}, {"options.numa", SERVE_IS_BOOL},
        {"options.low_vram", SERVE_IS_BOOL}, {"options.f16_kv", SERVE_IS_BOOL}, {"options.logits_all", SERVE_IS_BOOL},
        {"options.vocab_only", SERVE_IS_BOOL}, {"options.use_mmap", SERVE_IS_BOOL}, {"options.use_mlock", SERVE_IS_BOOL},
        {"options.embedding_only", SERVE_IS_BOOL}, {"options.mirostat_tau", SERVE_IS_NUMBER}, {"options.mirostat_eta", SERVE_IS_NUMBER},
        {NULL, 0}};
    static const serve_only only[] = {{"options.mirostat", 0}, {"options.tfs_z", 1}, {NULL, 0}};
    const json_t *given = serve_field(v, "options");
    int64_t size = 0;
    if (given && !hn_json_is_object(given)) return serve_wrong(err, v, "options", " is not an object");
    if (!serve_kinds_check(v, kinds, err) || !serve_only_check(v, only, err) ||
        !serve_field_int(v, "options.num_ctx", 1, INT32_MAX, &size, err) ||
        !serve_switch_check(v, "options.penalize_newline", true, err)) return false;
    return size <= context ? true : serve_wrong(err, v, "options.num_ctx", " is %lld, but the context holds %d", (long long)size, context);
}

/* "think": whether the template lets the model think, or how long; "none" is not at all. */
static bool think_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "think");
    const char *level = json_string_value(given);
    if (!given) return true;
    if (!json_is_boolean(given) && !json_string_length(given)) return serve_wrong(err, v, "think", " is not true, false or a level");
    w->think = json_is_false(given) || (level && strcmp(level, "none") == 0) ? -1 : 1;
    if (json_is_boolean(given)) return true;
    w->effort = given;
    return serve_effort_check(v, "think", err);
}

static bool format_read(serve_wanted *w, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "format");
    const char *word = json_string_value(given);
    if (!given || (word && !*word)) return true;
    if (word && strcmp(word, "json") == 0) return serve_form_object(&w->form, "format", err);
    if (hn_json_is_object(given)) return serve_form_schema(&w->form, "format", given, err);
    return serve_wrong(err, v, "format", " is not \"json\" or a JSON schema");
}

static bool keep_check(const serve_view *v, serve_error *err) {
    const json_t *keep = serve_field(v, "keep_alive");
    return !keep || hn_json_is_number(keep) || json_is_string(keep)
               ? true
               : serve_wrong(err, v, "keep_alive", " is not a number or a text");
}

/* What both endpoints have. */
static bool shared_read(serve_wanted *w, serve_server *s, const serve_view *v, bool chat, serve_error *err) {
    w->most = serve_engine_context(s->engine);
    w->stream = w->switched = true;
    return options_check(v, w->most, err) && (!chat || think_read(w, v, err)) && format_read(w, v, err) && keep_check(v, err);
}

static json_t *head_json(const serve_server *s);

/* Nothing is asked: clients load a model so, or unload it, which is done at once here. */
static bool nothing_asked(const serve_server *s, const json_t *body, bool chat, serve_reply *r) {
    const json_t *keep = serve_value(body, "keep_alive");
    r->json = head_json(s);
    if (chat) json_object_set_new(r->json, "message", json_pack("{s:s,s:s}", "role", "assistant", "content", ""));
    else json_object_set_new(r->json, "response", json_string(""));
    json_object_set_new(r->json, "done", json_true());
    json_object_set_new(r->json, "done_reason", json_string(json_is_integer(keep) && !json_integer_value(keep) ? "unload" : "load"));
    return true;
}

/* ---- generate ------------------------------------------------------------------------------------------------ */

static bool generate_check(const serve_view *v, bool *raw, serve_error *err) {
    static const serve_expected kinds[] = {{"prompt", SERVE_IS_TEXT}, {"system", SERVE_IS_TEXT}, {"template", SERVE_IS_TEXT},
                                           {"suffix", SERVE_IS_TEXT}, {"images", SERVE_IS_LIST}, {"context", SERVE_IS_LIST}, {NULL, 0}};
    static const char *const refused[] = {"template", "suffix", "images", "context", NULL};
    if (!serve_kinds_check(v, kinds, err) || !serve_field_bool(v, "raw", raw, err) ||
        !serve_refused_check(v, refused, "; earlier turns go to /api/chat", err)) return false;
    const json_t *prompt = serve_field(v, "prompt");
    if (!*raw && prompt && strlen(json_string_value(prompt)) != json_string_length(prompt))
        return serve_wrong(err, v, "prompt", " has the character U+0000, which only a raw prompt may have");
    return !*raw || !json_string_length(serve_field(v, "system"))
               ? true
               : serve_wrong(err, v, "system", " is not supported beside raw: a raw prompt is the whole text");
}

static bool generate_read(serve_wanted *w, serve_server *s, const serve_view *v, bool *raw, serve_error *err) {
    json_t *system = serve_field(v, "system"), *prompt = serve_field(v, "prompt");
    if (!serve_model(s, err) || !generate_check(v, raw, err) || !shared_read(w, s, v, !*raw, err)) return false;
    w->messages = json_array();
    if (json_string_length(system)) json_array_append_new(w->messages, serve_message_json("system", json_copy(system)));
    if (prompt) json_array_append_new(w->messages, serve_message_json("user", json_copy(prompt)));
    return true;
}

bool serve_ollama_generate(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view own = {.body = q->body}, v = {.body = q->body, .names = of_generate, .tag = ":latest"};
    serve_wanted w = {0};
    bool raw = false, ok = generate_read(&w, s, &own, &raw, err);
    if (ok && !json_string_length(serve_field(&own, "prompt"))) ok = serve_request_model(s, &v, err) && nothing_asked(s, q->body, false, r);
    else if (ok) ok = (r->call = serve_request_read(s, q, &v, &w, !raw, err)) != NULL;
    serve_wanted_free(&w);
    if (r->call) r->call->generate = true;
    return ok;
}

/* ---- chat ---------------------------------------------------------------------------------------------------- */

/* Calls have objects as arguments and no ids: results follow in the order of the calls. */
static bool calls_make(serve_wanted *w, json_t *to, const json_t *calls, size_t i, serve_error *err) {
    json_t *call;
    size_t k;
    json_array_foreach(calls, k, call) {
        json_t *function = json_object_get(call, "function"), *name = json_object_get(function, "name");
        json_t *arguments = json_object_get(function, "arguments");
        char id[48], field[SERVE_NAME];
        snprintf(field, sizeof field, "messages[%zu].tool_calls[%zu]", i, k);
        if (!json_string_length(name) || (arguments && !hn_json_is_object(arguments)))
            return serve_fail(err, 400, field, "%s has no function with a name and an object of arguments", field);
        snprintf(id, sizeof id, "call_%zu_%zu", i, k);
        char *text = arguments ? serve_json_dump(arguments, JSON_COMPACT) : NULL;
        json_t *made = json_string(id);
        serve_call_add(w, to, made, name, text ? text : "{}");
        json_decref(made);
        hn_free(text);
    }
    return true;
}

/* The conversation so far, and the calls that the next results answer. */
typedef struct turns {
    serve_wanted *w;
    json_t *messages;    /* its */
    const json_t *calls; /* of the newest message that has any; NULL: none */
    size_t results;      /* to these */
} turns;

static bool is_of(const json_t *call, const json_t *name) {
    return call && (!name || json_equal(name, json_object_get(json_object_get(call, "function"), "name")));
}

/* The id of the call that a result answers: results come in the order of the calls, or else by their names. NULL: it answers none. */
static json_t *result_id(turns *t, const json_t *name) {
    enum { MOST = 128 }; /* calls that are looked at */
    const json_t *call = json_array_get(t->calls, t->results++);
    for (size_t k = 0; k < MOST && !is_of(call, name) && k < json_array_size(t->calls); k++)
        if (is_of(json_array_get(t->calls, k), name)) call = json_array_get(t->calls, k);
    return json_object_get(call, "id");
}

static bool message_check(const json_t *given, size_t i, serve_error *err) {
    static const serve_expected kinds[] = {{"content", SERVE_IS_TEXT}, {"thinking", SERVE_IS_TEXT}, {"images", SERVE_IS_LIST},
                                           {"tool_calls", SERVE_IS_LIST}, {"tool_name", SERVE_IS_TEXT}, {NULL, 0}};
    char within[40];
    static const char *const roles[] = {"system", "user", "assistant", "tool", NULL};
    const serve_view v = {.body = given, .within = within};
    const char *role = NULL;
    snprintf(within, sizeof within, "messages[%zu]", i);
    if (!hn_json_is_object(given)) return serve_fail(err, 400, within, "%s is not an object", within);
    if (!serve_field_word(&v, "role", roles, &role, err)) return false;
    if (!role) return serve_wrong(err, &v, "role", " is missing: one of system, user, assistant, tool");
    if (!serve_kinds_check(&v, kinds, err)) return false;
    return json_array_size(serve_field(&v, "images")) == 0 || serve_wrong(err, &v, "images", ": only text is supported");
}

static bool message_make(turns *t, const json_t *given, size_t i, serve_error *err) {
    if (!message_check(given, i, err)) return false;
    json_t *content = serve_value(given, "content"), *thinking = serve_value(given, "thinking"), *calls = serve_value(given, "tool_calls");
    const char *role = json_string_value(json_object_get(given, "role"));
    char field[SERVE_NAME];
    snprintf(field, sizeof field, "messages[%zu]", i);
    json_t *to = serve_message_json(role, content ? json_incref(content) : json_string(""));
    json_array_append_new(t->messages, to);
    if (json_string_length(thinking)) json_object_set(to, "reasoning_content", thinking);
    if (strcmp(role, "tool") == 0) {
        json_t *name = serve_value(given, "tool_name");
        if (!name) name = serve_value(given, "name");
        json_t *id = result_id(t, name);
        if (!id) return serve_fail(err, 400, field, "%s is the result of no call: no message before has a call for it", field);
        json_object_set(to, "tool_call_id", id);
        if (json_is_string(name)) json_object_set(to, "name", name);
        return true;
    }
    if (!json_array_size(calls)) return true;
    t->results = 0;
    return calls_make(t->w, to, calls, i, err) && (t->calls = json_object_get(to, "tool_calls"));
}

static bool chat_read(serve_wanted *w, serve_server *s, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "messages"), *message;
    turns t = {.w = w, .messages = w->messages = json_array()};
    size_t i;
    if (!serve_model(s, err) || !shared_read(w, s, v, true, err) || !serve_openai_tools(w, v, err)) return false;
    if (given && !json_is_array(given)) return serve_wrong(err, v, "messages", " is not a list of messages");
    json_array_foreach(given, i, message) if (!message_make(&t, message, i, err)) return false;
    w->goes_on = serve_ends_with_answer(w->messages);
    return true;
}

bool serve_ollama_chat(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view own = {.body = q->body}, v = {.body = q->body, .names = of_chats, .tag = ":latest"};
    serve_wanted w = {0};
    bool ok = chat_read(&w, s, &own, err);
    if (ok && !json_array_size(w.messages)) ok = serve_request_model(s, &v, err) && nothing_asked(s, q->body, true, r);
    else if (ok) ok = (r->call = serve_request_read(s, q, &v, &w, true, err)) != NULL;
    serve_wanted_free(&w);
    return ok;
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

json_t *serve_ollama_error_json(const serve_error *e, const char *id) {
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
    serve_line_add(out, serve_ollama_error_json(e, c->id));
}

const serve_protocol serve_ollama = {.stream_type = "application/x-ndjson",
                                     .error = serve_ollama_error_json,
                                     .whole = whole,
                                     .next = next,
                                     .end = end,
                                     .failed = failed};
