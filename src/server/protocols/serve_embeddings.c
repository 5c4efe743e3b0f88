/* SPDX-License-Identifier: Apache-2.0 */
/* serve_embeddings.c - /v1/embeddings, and Ollama's /api/embed and /api/embeddings: a vector for each input, the mean or the last of the
 * states of its rows after the model's last norm, of length one. It is a completion of no tokens to the engine, with another answer. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_endpoints.h"
#include "server/protocols/serve_protocol.h"
#include "server/serve_request.h"

#define SAME(name) {.theirs = name, .ours = name}
#define SHARED SAME("add_special_tokens"), SAME("model"), SAME("cache_salt"), SAME("service_tier"), SAME("deadline"), {.theirs = NULL}
static const serve_name names[] = {{.theirs = "input", .ours = "prompt"}, SHARED};
static const serve_name of_one[] = {SAME("prompt"), SHARED}; /* of /api/embeddings */
#undef SHARED
#undef SAME

static bool pooling_read(const serve_view *v, hunch_pooling *out, serve_error *err) {
    const char *word = "last";
    if (!serve_field_text(v, "pooling", &word, err)) return false;
    *out = strcmp(word, "mean") == 0 ? HUNCH_POOL_MEAN : strcmp(word, "last") == 0 ? HUNCH_POOL_LAST : HUNCH_POOL_NONE;
    return *out != HUNCH_POOL_NONE ? true : serve_wrong(err, v, "pooling", " is neither \"last\" nor \"mean\"");
}

static bool dimensions_check(const serve_view *v, const hunch_model *m, serve_error *err) {
    hunch_model_info info;
    int64_t given;
    hunch_model_get_info(m, &info);
    given = info.hidden;
    if (!serve_field_int(v, "dimensions", 1, INT32_MAX, &given, err)) return false;
    return given == info.hidden
               ? true
               : serve_wrong(err, v, "dimensions", " is %lld: this model's vectors have %d, and are not cut", (long long)given,
                             info.hidden);
}

static bool format_read(const serve_view *v, bool *packed, serve_error *err) {
    const char *word = "float";
    if (!serve_field_text(v, "encoding_format", &word, err)) return false;
    *packed = strcmp(word, "base64") == 0;
    if (*packed || strcmp(word, "float") == 0) return true;
    return serve_wrong(err, v, "encoding_format", " is neither \"float\" nor \"base64\"");
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

/* Little-endian floats, as numpy reads them. */
static json_t *packed_json(const float *v, int n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    serve_bytes raw = {0}, text = {0};
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        const char bytes[] = {(char)bits, (char)(bits >> 8), (char)(bits >> 16), (char)(bits >> 24)};
        serve_bytes_join(&raw, bytes, sizeof bytes);
    }
    for (size_t i = 0; i < raw.n; i += 3) {
        const size_t left = raw.n - i;
        uint32_t three = 0;
        for (size_t k = 0; k < 3; k++) three = three << 8 | (k < left ? (unsigned char)raw.at[i + k] : 0);
        const char four[] = {digit[three >> 18], digit[three >> 12 & 63], left > 1 ? digit[three >> 6 & 63] : '=',
                             left > 2 ? digit[three & 63] : '='};
        serve_bytes_join(&text, four, sizeof four);
    }
    json_t *json = json_stringn(text.at, text.n);
    serve_bytes_free(&raw);
    serve_bytes_free(&text);
    return json;
}

static json_t *vector_json(const serve_choice *c, bool packed) {
    double sum = 0;
    float *v = serve_alloc((size_t)c->n_pooled, sizeof *v);
    for (int i = 0; i < c->n_pooled; i++) sum += (double)c->pooled[i] * (double)c->pooled[i];
    for (int i = 0; i < c->n_pooled; i++) v[i] = (float)((double)c->pooled[i] / (sum > 0 ? sqrt(sum) : 1));
    json_t *json = packed ? packed_json(v, c->n_pooled) : json_array();
    for (int i = 0; !packed && i < c->n_pooled; i++) json_array_append_new(json, json_real((double)v[i]));
    free(v);
    return json;
}

static json_t *answer(const serve_server *s, serve_call *c) {
    json_t *data = json_array();
    for (int i = 0; i < c->n_choices; i++)
        json_array_append_new(data, json_pack("{s:s,s:i,s:o}", "object", "embedding", "index", i, "embedding",
                                              vector_json(&c->choices[i], c->packed)));
    const json_int_t n = (json_int_t)serve_call_prompt_tokens(c);
    return json_pack("{s:s,s:o,s:s,s:{s:I,s:I}}", "object", "list", "data", data, "model", s->settings->model_name, "usage",
                     "prompt_tokens", n, "total_tokens", n);
}

const serve_protocol serve_vectors = {.error = serve_error_json, .whole = answer};

/* Of /api/embeddings, which has one text: its vector. */
static json_t *ollama_answer(const serve_server *s, serve_call *c) {
    if (c->generate) return json_pack("{s:o}", "embedding", vector_json(&c->choices[0], false));
    json_t *list = json_array();
    for (int i = 0; i < c->n_choices; i++) json_array_append_new(list, vector_json(&c->choices[i], false));
    return json_pack("{s:s,s:o,s:I,s:I,s:I}", "model", s->settings->model_name, "embeddings", list, "total_duration",
                     (json_int_t)((hn_now() - c->received_s) * 1e9), "load_duration", (json_int_t)0, "prompt_eval_count",
                     (json_int_t)serve_call_prompt_tokens(c));
}

const serve_protocol serve_ollama_vectors = {.error = serve_ollama_error_json, .whole = ollama_answer};

/* own: by the protocol's names. */
static bool vectors_read(serve_server *s, const hunch_model *m, const serve_http_request *q, const serve_view *own, const serve_view *v,
                         serve_reply *r, serve_error *err) {
    serve_wanted w = {.prompt_only = true};
    if (dimensions_check(own, m, err)) r->call = serve_request_read(s, q, v, &w, false, err);
    serve_wanted_free(&w);
    return r->call != NULL;
}

bool serve_embeddings(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view own = {.body = q->body}, v = {.body = q->body, .names = names};
    const hunch_model *m = serve_model(s, err);
    hunch_pooling pooling;
    bool packed;
    if (!m || !pooling_read(&own, &pooling, err) || !format_read(&own, &packed, err) ||
        !vectors_read(s, m, q, &own, &v, r, err)) return false;
    r->call->request.pooling = pooling;
    r->call->packed = packed;
    return true;
}

static bool ollama_read(serve_server *s, const serve_http_request *q, const serve_name *its, serve_reply *r, serve_error *err) {
    static const serve_expected kinds[] = {{"truncate", SERVE_IS_BOOL}, {"options", SERVE_IS_OBJECT}, {NULL, 0}};
    const serve_view own = {.body = q->body}, v = {.body = q->body, .names = its, .tag = ":latest"};
    const hunch_model *m = serve_kinds_check(&own, kinds, err) ? serve_model(s, err) : NULL;
    if (!m || !vectors_read(s, m, q, &own, &v, r, err)) return false;
    r->call->request.pooling = HUNCH_POOL_LAST;
    return true;
}

bool serve_ollama_embed(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    return ollama_read(s, q, names, r, err);
}

bool serve_ollama_embeddings(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const serve_view v = {.body = q->body};
    static const serve_expected kinds[] = {{"prompt", SERVE_IS_TEXT}, {NULL, 0}};
    if (!serve_kinds_check(&v, kinds, err) || !ollama_read(s, q, of_one, r, err)) return false;
    r->call->generate = true;
    return true;
}
