/* SPDX-License-Identifier: Apache-2.0 */
/* serve_texts.c - endpoints of texts and tokens, in vLLM's and llama.cpp's shapes, and what is known of the tokenizer. */
#include <string.h>

#include "base/mem.h"
#include "server/protocols/serve_about.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_endpoints.h"
#include "server/protocols/serve_openai.h"
#include "server/serve_prompt.h"

/* ---- tokens -------------------------------------------------------------------------------------------------- */

static json_t *pieces_json(hunch_model *m, const hunch_token *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const char *bytes = "";
        size_t len = 0;
        hunch_token_piece(m, ids[i], &bytes, &len, NULL, NULL);
        json_array_append_new(list, serve_text_json(bytes, len));
    }
    return list;
}

/* A conversation as its template's text. */
static bool chat_render(serve_server *s, hunch_model *m, const serve_view *v, serve_rendered *to, serve_error *err) {
    serve_wanted w = {0};
    bool add = true;
    const bool ok = serve_field_bool(v, "add_generation_prompt", &add, err) && serve_openai_chat(&w, v, err) &&
                    serve_prompt_render(s, m, v, &w, add, to, err);
    serve_wanted_free(&w);
    return ok;
}

/* The text of "prompt" (vLLM), of "content" (llama.cpp), or of "messages" as their template renders them. */
static bool text_tokenize(serve_server *s, hunch_model *m, const serve_view *v, hunch_token **ids, size_t *n, serve_error *err) {
    const char *field = serve_field(v, "content") ? "content" : "prompt";
    const json_t *given = serve_field(v, field);
    bool special = strcmp(field, "prompt") == 0;
    if (serve_field(v, "messages")) {
        serve_rendered rendered;
        if (!chat_render(s, m, v, &rendered, err)) return false;
        const bool ok = serve_rendered_tokenize(m, v, &rendered, SIZE_MAX, ids, n, err);
        serve_rendered_free(&rendered);
        return ok;
    }
    if (!json_is_string(given)) return serve_wrong(err, v, field, " is not a text");
    if (!serve_field_bool(v, "add_special_tokens", &special, err) || !serve_field_bool(v, "add_special", &special, err)) return false;
    return serve_prompt_tokenize(m, v, json_string_value(given), json_string_length(given),
                                 HUNCH_TEXT_PARSE_SPECIAL | (special ? HUNCH_TEXT_ADD_SPECIAL : 0), field, SIZE_MAX, ids, n, err);
}

bool serve_tokenize(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    hunch_model *m = serve_model(s, err);
    const serve_view v = {.body = q->body};
    hunch_token *ids = NULL;
    size_t n = 0;
    bool pieces = false;
    if (!m || !serve_field_bool(&v, "return_token_strs", &pieces, err) || !text_tokenize(s, m, &v, &ids, &n, err)) return false;
    r->json = json_pack("{s:I,s:i,s:o,s:o}", "count", (json_int_t)n, "max_model_len", serve_engine_context(s->engine), "tokens",
                        serve_ids_json(ids, n), "token_strs", pieces ? pieces_json(m, ids, n) : json_null());
    hunch_free(ids);
    return true;
}

bool serve_detokenize(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    hunch_model *m = serve_model(s, err);
    hunch_token *ids = NULL;
    hunch_model_info info;
    hunch_error why = {0};
    char *text = NULL;
    size_t n = 0, len = 0;
    if (!m) return false;
    hunch_model_get_info(m, &info);
    const serve_view v = {.body = q->body};
    const json_t *given = serve_field(&v, "tokens");
    if (!json_is_array(given)) return serve_wrong(err, &v, "tokens", " is not a list of token ids");
    if (!serve_ids_read(&v, "tokens", given, info.vocab, &ids, &n, err)) return false;
    const hunch_status st = hunch_detokenize(m, ids, n, &text, &len, &why);
    hn_free(ids);
    if (st) return serve_fail_hunch(err, "tokens", &why);
    json_t *value = serve_text_json(text, len);
    r->json = json_pack("{s:O,s:o}", "prompt", value, "content", value);
    hunch_free(text);
    return true;
}

bool serve_apply_template(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    hunch_model *m = serve_model(s, err);
    const serve_view v = {.body = q->body};
    serve_rendered rendered;
    if (!m || !chat_render(s, m, &v, &rendered, err)) return false;
    r->json = json_pack("{s:o}", "prompt", serve_text_json(rendered.text, rendered.len));
    serve_rendered_free(&rendered);
    return true;
}

/* ---- what is known ------------------------------------------------------------------------------------------- */

/* As lm-eval takes it: null if there is none. */
static json_t *token_json(const hunch_model *m, const char *name) {
    json_t *token = serve_about_token(m, name);
    if (json_string_length(token)) return token;
    json_decref(token);
    return json_null();
}

bool serve_tokenizer_info(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)q;
    hunch_model *m = serve_model(s, err);
    hunch_model_info info;
    const char *text = serve_about_template(s);
    if (!m) return false;
    hunch_model_get_info(m, &info);
    r->json = json_pack("{s:s,s:i,s:i,s:b,s:b,s:o,s:o}", "tokenizer_class", "hunch", "vocab_size", info.vocab, "model_max_length",
                        info.context, "has_tokenizer", info.has_tokenizer, "has_chat_template", info.has_chat_template, "chat_template",
                        serve_text_json(text, strlen(text)), "bos_token", token_json(m, "bos_token"));
    json_object_set_new(r->json, "eos_token", token_json(m, "eos_token"));
    return true;
}
