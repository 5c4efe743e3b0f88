/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_body.c - the body of a request to the server: parsed, and answered by its engine on a tiny model, whole or as a stream. A refusal
 * is a status of docs/server.md with an error object; an answer has all its choices, whose counts are those of `usage`, and a stream's
 * events are JSON and end.
 *
 * Input: a character from 0 on, the endpoint in the order of `paths`, then the body; the priority of the header after a byte 0xFF. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_tiny.h"
#include "base/clock.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_fields.h"

enum { CONTEXT = 48, PARALLEL = 4 };

static const char *const paths[] = {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/apply-template",
                                    "/v1/responses", "/v1/messages", "/completion", "/api/generate", "/api/chat", "/v1/embeddings",
                                    "/v1/messages/count_tokens", "/v1/responses/input_tokens", "/api/show"};
enum { PATHS = sizeof paths / sizeof *paths };

/* ---- the server ---------------------------------------------------------------------------------------------------- */

static const char *const served[] = {"tiny"};
static serve_settings settings = {.model_name = "tiny", .names = served, .n_names = 1, .parallel = PARALLEL, .queue = 4};
static serve_server server = {.settings = &settings};

static int model_open(void *user, hunch_model **m, hunch_engine **e) {
    static const char *const drafts[] = {"ngram", "suffix", "prediction"};
    hunch_model_options mo;
    hunch_engine_options eo;
    hunch_error err = {0};
    (void)user;
    hunch_model_options_defaults(&mo);
    mo.threads = 1;
    FUZZ_MUST(hunch_model_open(m, fuzz_tiny_model(0), &mo, &err) == HUNCH_OK);
    hunch_engine_options_defaults(&eo);
    eo.context = CONTEXT;
    eo.parallel = PARALLEL;
    eo.drafts = drafts;
    eo.n_drafts = 3;
    eo.pooling = true;
    FUZZ_MUST(hunch_engine_open(e, *m, &eo, &err) == HUNCH_OK);
    return 0;
}

static void ready(void *user, hunch_model *m, hunch_engine *e) {
    (void)user, (void)m;
    json_t *names = json_array();
    for (int i = 0; i < hunch_engine_drafters(e); i++) json_array_append_new(names, json_string(hunch_engine_drafter_name(e, i)));
    server.drafters = names;
}

static void ended(void *user, int code) {
    (void)user, (void)code;
    FUZZ_NEVER("the engine's thread ended");
}

/* Ready for calls; it lives as long as the process. */
static void server_start(void) {
    serve_engine_options o = {.parallel = PARALLEL, .queue = settings.queue, .open = model_open, .ended = ended, .ready = ready};
    if (server.engine) return;
    json_set_alloc_funcs(serve_json_alloc, free);
    server.metrics = o.metrics = serve_metrics_new();
    server.engine = serve_engine_new(&o);
    FUZZ_MUST(serve_engine_start(server.engine));
    while (serve_engine_phase(server.engine) == SERVE_LOADING) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

/* In the shape of its protocol, which has the message. */
static void error_check(const serve_protocol *p, const serve_error *err) {
    static const int allowed[] = {400, 404};
    bool known = false;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) known = known || err->http == allowed[i];
    FUZZ_MUST(known && err->message[0]);
    json_t *value = p->error(err, "fuzz"), *error = json_object_get(value, "error");
    FUZZ_MUST(json_string_length(json_is_string(error) ? error : json_object_get(error, "message")));
    json_decref(value);
}

static void usage_check(const serve_call *c, const json_t *usage) {
    json_int_t tokens = 0;
    for (int i = 0; i < c->n_choices; i++) tokens += (json_int_t)c->choices[i].n_tokens;
    FUZZ_MUST(json_integer_value(json_object_get(usage, "completion_tokens")) == tokens);
    FUZZ_MUST(json_integer_value(json_object_get(json_object_get(usage, "completion_tokens_details"), "reasoning_tokens")) <= tokens);
    FUZZ_MUST(json_integer_value(json_object_get(usage, "total_tokens")) == tokens + (json_int_t)serve_call_prompt_tokens(c));
}

static void whole_check(serve_call *c) {
    size_t i;
    const json_t *choice;
    json_t *answer = serve_answer_json(&server, c);
    FUZZ_MUST(answer != NULL && json_array_size(json_object_get(answer, "choices")) == (size_t)c->n_choices);
    json_array_foreach(json_object_get(answer, "choices"), i, choice) {
        FUZZ_MUST(json_integer_value(json_object_get(choice, "index")) == (json_int_t)i);
        FUZZ_MUST(json_is_string(json_object_get(choice, "finish_reason")));
    }
    usage_check(c, json_object_get(answer, "usage"));
    json_decref(answer);
}

/* Of other protocols: an object, or of vectors and several answers a list; each has what its protocol says it has. */
static void other_check(const serve_protocol *p, serve_call *c) {
    json_t *answer = p->whole(&server, c);
    FUZZ_MUST(json_object_size(answer) || json_array_size(answer) == (size_t)c->n_choices);
    if (p == &serve_vectors) FUZZ_MUST(json_array_size(json_object_get(answer, "data")) == (size_t)c->n_choices);
    if (p == &serve_responses_protocol) FUZZ_MUST(json_array_size(json_object_get(answer, "output")) > 0 || c->tools);
    if (p == &serve_anthropic) FUZZ_MUST(json_is_string(json_object_get(answer, "stop_reason")));
    if (p == &serve_ollama) FUZZ_MUST(json_is_true(json_object_get(answer, "done")));
    json_decref(answer);
}

/* Each event of the text, or line, is one object of JSON, typed ones by its type; what comes last says that. */
static void typed_check(const serve_protocol *p, const char *at) {
    const bool lines = p == &serve_ollama;
    json_t *event = NULL;
    while (*at && strcmp(at, "data: [DONE]\n\n") != 0) {
        const char *end = strstr(at, lines ? "\n" : "\n\n"), *data = lines ? at : strstr(at, "data: ");
        FUZZ_MUST(end != NULL && data != NULL && data < end);
        json_decref(event);
        event = json_loadb(data + (lines ? 0 : 6), (size_t)(end - data) - (lines ? 0 : 6), 0, NULL);
        FUZZ_MUST(json_is_object(event));
        const char *type = json_string_value(json_object_get(event, "type"));
        if (strncmp(at, "event: ", 7) == 0) FUZZ_MUST(type && strncmp(at + 7, type, strlen(type)) == 0);
        at = end + (lines ? 1 : 2);
    }
    const char *type = json_string_value(json_object_get(event, "type"));
    FUZZ_MUST(lines               ? json_is_true(json_object_get(event, "done"))
              : p == &serve_llama ? json_is_true(json_object_get(event, "stop"))
                                  : type && (strcmp(type, "message_stop") == 0 || json_object_get(event, "response")));
    json_decref(event);
}

/* The same of chunks; the last one is [DONE]. Returns how many choices ended. */
static int events_check(const char *at) {
    static const char begin[] = "data: ", done[] = "data: [DONE]\n\n";
    int n = 0;
    while (strcmp(at, done) != 0) {
        const char *end = strstr(at, "\n\n");
        FUZZ_MUST(end != NULL && strncmp(at, begin, sizeof begin - 1) == 0);
        json_t *event = json_loadb(at + sizeof begin - 1, (size_t)(end - at) - sizeof begin + 1, 0, NULL);
        FUZZ_MUST(json_is_object(event) && !json_object_get(event, "error"));
        const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
        n += json_is_string(json_object_get(choice, "finish_reason"));
        json_decref(event);
        at = end + 2;
    }
    return n;
}

static void wake(void *user) { pthread_cond_signal(user); }

static void sleep_for_news(void *call) {
    serve_call *c = call;
    c->asleep = true;
    while (c->asleep) pthread_cond_wait(c->wake_user, &c->lock);
}

/* Waits for the call as a connection does, asleep until there is news, and takes what was made. */
static void call_answer(const serve_protocol *p, serve_call *c) {
    pthread_cond_t news = PTHREAD_COND_INITIALIZER;
    serve_bytes events = {0};
    serve_error err = {0};
    c->wake = wake;
    c->wake_user = &news;
    FUZZ_MUST(serve_engine_submit(server.engine, c, &err));
    while (c->stream && serve_stream_read(p, &server, c, &events, sleep_for_news, c) != SERVE_LAST) continue;
    pthread_mutex_lock(&c->lock);
    while (!c->stream && c->left > 0) sleep_for_news(c);
    serve_call_collect(c);
    pthread_mutex_unlock(&c->lock);
    serve_call_absorb(c);
    const bool failed = serve_answer_failed(c, &err); /* every logit is NaN or -inf: the tiny model with a bias */
    FUZZ_MUST(serve_bytes_add(&events, "", 1));
    if (!failed && p != &serve_openai) c->stream ? typed_check(p, events.at) : other_check(p, c);
    else if (!failed && c->stream) FUZZ_MUST(events_check(events.at) == c->n_choices);
    else if (!failed) whole_check(c);
    pthread_mutex_lock(&c->lock);
    c->wake = NULL;
    pthread_mutex_unlock(&c->lock);
    pthread_cond_destroy(&news);
    serve_bytes_free(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes rest = {data, size}, body = fuzz_part(&rest);
    serve_error err = {0};
    serve_reply reply = {0};
    server_start();
    const size_t which = body.size ? (size_t)(uint8_t)(body.at[0] - (uint8_t)'0') % PATHS : 0;
    char *priority = fuzz_text(fuzz_part(&rest));
    serve_http_request q = {.id = "fuzz", .rest = "", .priority = *priority ? priority : NULL, .received_s = hn_now()};
    const serve_route *route = serve_route_find("POST", paths[which], &err);
    q.body = body.size ? serve_body_parse((const char *)body.at + 1, body.size - 1, &err) : NULL;
    if (q.body && route->answer(&server, &q, &reply, &err)) {
        if (reply.call) call_answer(route->protocol, reply.call);
        else FUZZ_MUST(reply.json != NULL);
    } else if (body.size) error_check(route->protocol, &err);
    serve_call_release(reply.call);
    json_decref(reply.json);
    json_decref(q.body);
    free(priority);
    return 0;
}
