/* SPDX-License-Identifier: Apache-2.0 */
/* serve_routes.c - the table of endpoints, and those that say what the server is. */
#include <stdio.h>
#include <string.h>

#include "server/protocols/serve_about.h"
#include "server/protocols/serve_endpoints.h"

hunch_model *serve_model(serve_server *s, serve_error *err) {
    hunch_model *m = serve_engine_model(s->engine);
    if (m) return m;
    serve_fail(err, 503, NULL, "the model is still being loaded");
    err->retry_after = 1;
    return NULL;
}

/* ---- what the server is -------------------------------------------------------------------------------------- */

static bool health(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)q;
    const serve_phase phase = serve_engine_phase(s->engine);
    if (phase == SERVE_READY) return r->json = json_pack("{s:s}", "status", "ok"), true;
    serve_fail(err, 503, NULL, phase == SERVE_LOADING ? "the model is still being loaded" : "the server is shutting down");
    err->retry_after = 1;
    return false;
}

/* What Ollama's clients look for. */
static bool root(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)s, (void)q, (void)err;
    return serve_bytes_put(&r->text, "hunch is running\n"), true;
}

static bool version(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)s, (void)q, (void)err;
    r->json = json_pack("{s:s}", "version", hunch_version());
    return true;
}

bool serve_is_served(const serve_settings *s, const char *name) {
    for (int i = 0; i < s->n_names; i++)
        if (strcmp(name, s->names[i]) == 0) return true;
    return false;
}

/* As OpenAI, vLLM and Anthropic have it. */
static json_t *model_json(const serve_server *s, const char *name) {
    char started[SERVE_TIME];
    return json_pack("{s:s,s:s,s:I,s:s,s:s,s:n,s:i,s:s,s:s,s:s}", "id", name, "object", "model", "created",
                     (json_int_t)s->started, "owned_by", "hunch", "root", s->settings->model_name, "parent",
                     "max_model_len", serve_engine_context(s->engine), "type", "model", "display_name", name,
                     "created_at", serve_time(s->started, started));
}

static bool models(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)q;
    if (!serve_model(s, err)) return false;
    const serve_settings *all = s->settings;
    json_t *list = json_array();
    for (int i = 0; i < all->n_names; i++) json_array_append_new(list, model_json(s, all->names[i]));
    r->json = json_pack("{s:s,s:o,s:b,s:s,s:s}", "object", "list", "data", list, "has_more", 0, "first_id",
                        all->names[0], "last_id", all->names[all->n_names - 1]);
    return true;
}

static bool model(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    if (!serve_model(s, err)) return false;
    if (!serve_is_served(s->settings, q->rest))
        return serve_fail_code(err, 404, "model_not_found", "model", "there is no model %.200s here, but %s", q->rest,
                               s->settings->model_name);
    r->json = model_json(s, q->rest);
    return true;
}

static bool metrics(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)q, (void)err;
    serve_metrics_write(s->metrics, s->settings->model_name, serve_engine_load(s->engine).queued, &r->text);
    return true;
}

/* Of one path that takes two methods both lines have the same protocol. */
static const serve_route routes[] = {
    {"GET", "/", true, root, &serve_openai},
    {"GET", "/health", true, health, &serve_openai},
    {"GET", "/version", false, version, &serve_openai},
    {"GET", "/metrics", true, metrics, &serve_openai},
    {"GET", "/v1/models", false, models, &serve_openai},
    {"GET", "/v1/models/", false, model, &serve_openai},
    {"GET", "/props", false, serve_props, &serve_llama},
    {"GET", "/slots", false, serve_slots, &serve_llama},
    {"POST", "/completion", false, serve_llama_completion, &serve_llama},
    {"POST", "/completions", false, serve_llama_completion, &serve_llama},
    {"GET", "/tokenizer_info", false, serve_tokenizer_info, &serve_openai},
    {"POST", "/tokenize", false, serve_tokenize, &serve_openai},
    {"POST", "/detokenize", false, serve_detokenize, &serve_openai},
    {"POST", "/apply-template", false, serve_apply_template, &serve_openai},
    {"POST", "/v1/chat/completions", false, serve_chat, &serve_openai},
    {"POST", "/v1/completions", false, serve_completion, &serve_openai},
    {"POST", "/v1/embeddings", false, serve_embeddings, &serve_vectors},
    {"POST", "/v1/responses", false, serve_responses, &serve_responses_protocol},
    {"POST", "/v1/responses/input_tokens", false, serve_responses_count, &serve_responses_protocol},
    {"GET", "/v1/responses/", false, serve_responses_kept, &serve_responses_protocol},
    {"POST", "/v1/messages", false, serve_messages, &serve_anthropic},
    {"POST", "/api/generate", false, serve_ollama_generate, &serve_ollama},
    {"POST", "/api/chat", false, serve_ollama_chat, &serve_ollama},
    {"POST", "/api/embed", false, serve_ollama_embed, &serve_ollama_vectors},
    {"POST", "/api/embeddings", false, serve_ollama_embeddings, &serve_ollama_vectors},
    {"GET", "/api/tags", false, serve_ollama_tags, &serve_ollama},
    {"GET", "/api/ps", false, serve_ollama_running, &serve_ollama},
    {"POST", "/api/show", false, serve_ollama_show, &serve_ollama},
    {"GET", "/api/version", false, serve_ollama_version, &serve_ollama},
    {"POST", "/v1/messages/count_tokens", false, serve_count_tokens, &serve_anthropic},
};
enum { ROUTES = sizeof routes / sizeof *routes };

static bool path_fits(const char *route, const char *path) {
    const size_t n = strlen(route);
    return n > 1 && route[n - 1] == '/' ? strncmp(route, path, n) == 0 && path[n] : strcmp(route, path) == 0;
}

const serve_protocol *serve_protocol_of(const char *path) {
    for (size_t i = 0; i < ROUTES; i++)
        if (path_fits(routes[i].path, path)) return routes[i].protocol;
    return strncmp(path, "/api/", 5) == 0 ? &serve_ollama : &serve_openai;
}

const serve_route *serve_route_find(const char *method, const char *path, serve_error *err) {
    const serve_route *other = NULL;
    for (size_t i = 0; i < ROUTES; i++) {
        if (!path_fits(routes[i].path, path)) continue;
        if (strcmp(routes[i].method, method) == 0) return &routes[i];
        other = &routes[i];
    }
    if (other) {
        serve_fail(err, 405, NULL, "%s takes %s", other->path, other->method);
        err->allow = strcmp(other->method, "GET") == 0 ? "GET, HEAD" : other->method;
    } else serve_fail(err, 404, NULL, "there is no %.200s here", path);
    return NULL;
}
