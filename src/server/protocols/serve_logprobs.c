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
    return json_pack("{s:i,s:o,s:o,s:o}", "id", id, "token", piece_json(m, id), "logprob", number(logprob), "bytes", list);
}

/* A token at a place of an answer, and the likeliest there. */
typedef struct place {
    hunch_token token;
    float logprob; /* NAN: the first of a prompt */
    const hunch_logprob *top;
    int n_top;
} place;

size_t serve_echoed(const serve_choice *c) { return c->call->echo ? c->prompt->n : 0; }

static place place_of(const serve_choice *c, size_t t) {
    const size_t echoed = serve_echoed(c), top = (size_t)c->n_top;
    if (t >= echoed) {
        t -= echoed;
        return (place){c->tokens[t], c->logprobs[t], top ? c->top + t * top : NULL, c->n_top};
    }
    const float logprob = c->prompt_logprobs[t];
    return (place){c->prompt->ids[t], logprob, top && !isnan(logprob) ? c->prompt_top + t * top : NULL, c->n_top};
}

json_t *serve_tokens_json(const serve_choice *c, size_t from, size_t to) {
    const hunch_model *m = c->call->model;
    json_t *list = json_array();
    for (size_t t = from; t < to; t++) {
        const place p = place_of(c, t);
        json_t *one = entry(m, p.token, p.logprob), *top = json_array();
        for (int i = 0; i < p.n_top; i++) json_array_append_new(top, entry(m, p.top[i].token, p.top[i].logprob));
        json_object_set_new(one, "top_logprobs", top);
        json_array_append_new(list, one);
    }
    return list;
}

/* The likeliest of a place by their texts, and the token that is there. Of two ids with one text the likelier stays. */
static json_t *top_of(const hunch_model *m, const place *p) {
    json_t *top = json_object();
    for (int i = -1; i < p->n_top; i++) {
        const hunch_logprob own = {p->token, p->logprob}, *l = i < 0 ? &own : &p->top[i];
        json_t *name = piece_json(m, l->token);
        const json_t *there = json_object_get(top, json_string_value(name));
        if (!there || json_real_value(there) < (double)l->logprob)
            json_object_set_new(top, json_string_value(name), number(l->logprob));
        json_decref(name);
    }
    return top;
}

/* Bytes of text that a token stands for. */
static size_t bytes_of(const hunch_model *m, hunch_token id) {
    const char *bytes;
    size_t n = 0;
    bool special = false;
    return hunch_token_piece(m, id, &bytes, &n, &special, NULL) == HUNCH_OK && !special ? n : 0;
}

/* Where the first token begins, if the prompt's last one ends with the prompt: before the text if a tokenizer has added a space. */
static json_int_t prompt_begin(const hunch_model *m, const serve_choice *c) {
    size_t sum = 0;
    for (size_t t = 0; t < c->prompt->n; t++) sum += bytes_of(m, c->prompt->ids[t]);
    return (json_int_t)c->prompt->text.n - (json_int_t)sum;
}

static json_t *of_completion(const hunch_model *m, const serve_choice *c, size_t from, size_t to, json_int_t offset) {
    json_t *tokens = json_array(), *values = json_array(), *tops = json_array(), *offsets = json_array();
    for (size_t t = from; t < to; t++) {
        const place p = place_of(c, t);
        json_array_append_new(tokens, piece_json(m, p.token));
        json_array_append_new(values, isnan(p.logprob) ? json_null() : number(p.logprob));
        json_array_append_new(tops, p.top ? top_of(m, &p) : json_null());
        json_array_append_new(offsets, json_integer(offset < 0 ? 0 : offset));
        offset += (json_int_t)bytes_of(m, p.token);
    }
    return json_pack("{s:o,s:o,s:o,s:o}", "tokens", tokens, "token_logprobs", values, "top_logprobs", tops, "text_offset", offsets);
}

json_t *serve_logprobs_json(const serve_choice *c, size_t from, size_t to, size_t before) {
    const hunch_model *m = c->call->model;
    if (c->call->chat) return json_pack("{s:o}", "content", serve_tokens_json(c, from, to));
    return of_completion(m, c, from, to, from < serve_echoed(c) ? prompt_begin(m, c) : (json_int_t)before);
}
