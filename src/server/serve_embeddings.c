/* SPDX-License-Identifier: Apache-2.0 */
/* serve_embeddings.c - /v1/embeddings: a vector for each input, the mean or the last of the states of its rows after the model's last norm,
 * of length one. It is a completion of no tokens to the engine, with another answer. */
#include <math.h>
#include <string.h>

#include "server/serve_answer.h"
#include "server/serve_endpoints.h"
#include "server/serve_protocol.h"
#include "server/serve_request.h"

#define SAME(name) {.theirs = name, .ours = name}
static const serve_name names[] = {{.theirs = "input", .ours = "prompt"}, SAME("add_special_tokens"), SAME("model"), SAME("cache_salt"),
                                   SAME("service_tier"), SAME("deadline"), {.theirs = NULL}};
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

bool serve_embeddings(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err) {
    hunch_model *m = serve_model(s, err);
    const serve_view own = {.body = q->body}, v = {.body = q->body, .names = names};
    serve_wanted w = {.prompt_only = true};
    hunch_pooling pooling;
    bool packed;
    if (!m || !pooling_read(&own, &pooling, err) || !dimensions_check(&own, m, err) || !format_read(&own, &packed, err) ||
        !(r->call = serve_request_read(s, q, &v, &w, false, err))) return false;
    r->call->request.pooling = pooling;
    r->call->packed = packed;
    return true;
}
