/* SPDX-License-Identifier: Apache-2.0 */
/* serve_logprobs.c - log-probabilities of tokens as OpenAI's objects (serve_answer.h): of a chat a list of objects, of a completion
 * parallel lists. A token's own value and that among the likeliest are printed from one float: clients compare them for equality. */
#include <math.h>

#include "server/serve_answer.h"

enum { LEAST = -9999 }; /* stands for minus infinity, which JSON lacks */

static json_t *number(float logprob) { return json_real(isfinite(logprob) ? (double)logprob : LEAST); }

static void piece_of(const hunch_model *m, hunch_token id, const char **bytes, size_t *n) {
    *bytes = "";
    *n = 0;
    hunch_token_piece(m, id, bytes, n, NULL, NULL);
}

static json_t *piece_json(const hunch_model *m, hunch_token id) {
    const char *bytes;
    size_t n;
    piece_of(m, id, &bytes, &n);
    return serve_text_json(bytes, n);
}

static json_t *entry(const hunch_model *m, hunch_token id, float logprob) {
    const char *bytes;
    size_t n;
    json_t *list = json_array();
    piece_of(m, id, &bytes, &n);
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer((unsigned char)bytes[i]));
    return json_pack("{s:o,s:o,s:o}", "token", piece_json(m, id), "logprob", number(logprob), "bytes", list);
}

static json_t *of_chat(const hunch_model *m, const serve_choice *c, size_t from, size_t to) {
    json_t *content = json_array();
    for (size_t t = from; t < to; t++) {
        json_t *one = entry(m, c->tokens[t], c->logprobs[t]), *top = json_array();
        for (int i = 0; i < c->n_top; i++) {
            const hunch_logprob *l = &c->top[t * (size_t)c->n_top + (size_t)i];
            json_array_append_new(top, entry(m, l->token, l->logprob));
        }
        json_object_set_new(one, "top_logprobs", top);
        json_array_append_new(content, one);
    }
    return json_pack("{s:o}", "content", content);
}

/* The likeliest of a place by their texts, and the token that is there. Of two ids with one text the likelier stays. */
static json_t *top_of(const hunch_model *m, const serve_choice *c, size_t t) {
    json_t *top = json_object();
    for (int i = -1; i < c->n_top; i++) {
        const hunch_logprob own = {c->tokens[t], c->logprobs[t]}, *l = i < 0 ? &own : &c->top[t * (size_t)c->n_top + (size_t)i];
        json_t *name = piece_json(m, l->token);
        const json_t *there = json_object_get(top, json_string_value(name));
        if (!there || json_real_value(there) < (double)l->logprob)
            json_object_set_new(top, json_string_value(name), number(l->logprob));
        json_decref(name);
    }
    return top;
}

static json_t *of_completion(const hunch_model *m, const serve_choice *c, size_t from, size_t to, size_t offset) {
    json_t *tokens = json_array(), *values = json_array(), *tops = json_array(), *offsets = json_array();
    for (size_t t = from; t < to; t++) {
        const char *bytes;
        size_t n;
        bool special = false;
        json_array_append_new(tokens, piece_json(m, c->tokens[t]));
        json_array_append_new(values, number(c->logprobs[t]));
        json_array_append_new(tops, c->n_top ? top_of(m, c, t) : json_null());
        json_array_append_new(offsets, json_integer((json_int_t)offset));
        if (hunch_token_piece(m, c->tokens[t], &bytes, &n, &special, NULL) == HUNCH_OK && !special) offset += n;
    }
    return json_pack("{s:o,s:o,s:o,s:o}", "tokens", tokens, "token_logprobs", values, "top_logprobs", tops, "text_offset", offsets);
}

json_t *serve_logprobs_json(const serve_server *s, const serve_choice *c, size_t from, size_t to, size_t before) {
    const hunch_model *m = serve_engine_model(s->engine);
    return c->call->chat ? of_chat(m, c, from, to) : of_completion(m, c, from, to, before);
}
