/* SPDX-License-Identifier: Apache-2.0 */
/* chat_api.c - conversations as prompts: templates are rendered in pieces, so that what a user wrote never becomes a special token. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "base/json_load.h"

/* A conversation as text, and who wrote which part of it. Both parts hn_alloc'ed. */
typedef struct rendered {
    char *text;
    size_t len;
    hunch_piece *piece;
    size_t n_pieces;
} rendered;

static void rendered_fini(rendered *r) {
    hn_free(r->text);
    hn_free(r->piece);
}

static hunch_status parse_vars(const char *vars_json, json_t **vars, hunch_error *err) {
    json_error_t e;
    *vars = hn_json_load(vars_json, strlen(vars_json), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (hn_json_is_object(*vars)) return HUNCH_OK;
    if (!*vars && json_error_code(&e) == json_error_out_of_memory)
        return hn_fail_memory(err, "template variables", strlen(vars_json));
    hunch_status st = *vars ? hn_fail(err, HUNCH_USAGE, "template variables: expected a JSON object")
                            : hn_fail(err, HUNCH_USAGE, "template variables: line %d: %s", e.line, e.text);
    json_decref(*vars);
    *vars = NULL;
    return st;
}

/* Variables of the model that templates use, unless the caller sets them. */
static hunch_status chat_defaults(const hunch_model *m, json_t *vars, hunch_error *err) {
    const char *bos = m->chat_bos ? m->chat_bos : "", *eos = m->chat_eos ? m->chat_eos : "";
    if ((!json_object_get(vars, "bos_token") && json_object_set_new(vars, "bos_token", json_string(bos)) != 0) ||
        (!json_object_get(vars, "eos_token") && json_object_set_new(vars, "eos_token", json_string(eos)) != 0) ||
        (!json_object_get(vars, "add_generation_prompt") &&
         json_object_set_new(vars, "add_generation_prompt", json_true()) != 0))
        return hn_fail_memory(err, "template variables", strlen(bos) + strlen(eos));
    return HUNCH_OK;
}

/* The model's own template for a conversation, with tools or without. */
static hunch_status own_template(const hunch_model *m, bool tools, const hn_template **out, hunch_error *err) {
    const bool special = tools && (m->chat_tools || m->chat_tools_refused);
    const char *refused = special ? m->chat_tools_refused : m->chat_refused;
    *out = special ? m->chat_tools : m->chat;
    if (refused) return hn_fail(err, HUNCH_REFUSED, "%s", refused);
    return *out ? HUNCH_OK : hn_fail(err, HUNCH_USAGE, "this model has no chat template: give raw text");
}

/* How the template that renders a conversation writes calls. */
static const hn_call_family *calls_of(const hunch_model *m, const hunch_chat_options *o, const json_t *vars) {
    if (o->template_text) return hn_call_family_of(o->template_text, strlen(o->template_text));
    return m->calls_tools && json_array_size(json_object_get(vars, "tools")) > 0 ? m->calls_tools : m->calls;
}

void hunch_chat_options_defaults(hunch_chat_options *o) {
    if (o) memset(o, 0, sizeof *o);
}

static hunch_status render_chat(const hunch_model *m, const hunch_chat_options *o, json_t *vars, rendered *out, hunch_error *err) {
    static const char *const names[] = {"bos_token", "eos_token"};
    const char *own[2]; /* those that are the model's */
    size_t n_own = 0;
    hn_template *given = NULL;
    const hn_template *use = NULL;
    hunch_status st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!json_object_get(vars, names[i])) own[n_own++] = names[i];
    if (o->template_text) {
        st = hn_template_parse(&given, o->template_text, strlen(o->template_text), err);
        use = given;
    } else {
        st = own_template(m, json_array_size(json_object_get(vars, "tools")) > 0, &use, err);
    }
    if (!st) st = chat_defaults(m, vars, err);
    if (!st) hn_calls_convert(calls_of(m, o, vars), json_object_get(vars, "messages"));
    if (!st) st = hn_template_render_pieces(use, vars, o->now, own, n_own, &out->text, &out->len, &out->piece, &out->n_pieces, err);
    hn_template_free(given);
    return st;
}

static hunch_status render_vars(const hunch_model *m, const char *vars_json, const hunch_chat_options *o, rendered *out, hunch_error *err) {
    json_t *vars = NULL;
    hunch_status st = parse_vars(vars_json, &vars, err);
    if (!st) st = render_chat(m, o ? o : &(hunch_chat_options){0}, vars, out, err);
    json_decref(vars);
    return st;
}

hunch_status hunch_chat_render(const hunch_model *m, const char *vars_json, const hunch_chat_options *o, char **text, size_t *len,
                               hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"vars_json", vars_json}, {"text", text}, {"len", len}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    rendered r = {0};
    *text = NULL;
    st = render_vars(m, vars_json, o, &r, err);
    if (!st) {
        *text = r.text;
        *len = r.len;
        r.text = NULL;
    }
    rendered_fini(&r);
    return st;
}

hunch_status hunch_chat_pieces(const hunch_model *m, const char *vars_json, const hunch_chat_options *o, char **text, size_t *len,
                               hunch_piece **pieces, size_t *n_pieces, hunch_error *err) {
    const hn_argument needed[] = {{"m", m},     {"vars_json", vars_json}, {"text", text},
                                  {"len", len}, {"pieces", pieces},       {"n_pieces", n_pieces}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    rendered r = {0};
    st = render_vars(m, vars_json, o, &r, err);
    *text = r.text;
    *len = r.len;
    *pieces = r.piece;
    *n_pieces = r.n_pieces;
    return st;
}

hunch_status hunch_tokenize_pieces(const hunch_model *m, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                   hunch_token **ids, size_t *n, hunch_error *err) {
    const hn_argument needed[] = {{"m", m},     {"text", text || len == 0}, {"pieces", pieces || n_pieces == 0},
                                  {"ids", ids}, {"n", n},                   {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (!st) st = hn_need_tokenizer(m, err);
    return st ? st : hn_tokenizer_encode_pieces(m->tokenizer, text, len, pieces, n_pieces, HUNCH_TEXT_RENDERED, ids, n, err);
}

hunch_status hunch_tokenize_at_most(const hunch_model *m, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                    int flags, size_t most, hunch_token **ids, size_t *n, hunch_error *err) {
    const hn_argument needed[] = {{"m", m},     {"text", text || len == 0}, {"pieces", pieces || n_pieces == 0},
                                  {"ids", ids}, {"n", n},                   {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (!st) st = hn_need_tokenizer(m, err);
    if (st) return st;
    return hn_tokenizer_encode_at_most(m->tokenizer, text, len, pieces, n_pieces, flags & HUNCH_TEXT_RENDERED, most, ids, n, err);
}

static hunch_status conversation_json(const hunch_message *messages, size_t n, json_t **vars, hunch_error *err) {
    json_t *list = json_array();
    *vars = json_pack("{s:o}", "messages", list);
    for (size_t i = 0; *vars && i < n; i++) {
        const hunch_message *a = &messages[i];
        if (!a->role || !a->content || hn_utf8_check(a->role, strlen(a->role)) < strlen(a->role) ||
            hn_utf8_check(a->content, strlen(a->content)) < strlen(a->content)) {
            json_decref(*vars);
            *vars = NULL;
            return hn_fail(err, HUNCH_USAGE, "message %zu: expected a role and a content in UTF-8", i);
        }
        if (json_array_append_new(list, json_pack("{s:s, s:s}", "role", a->role, "content", a->content))) {
            json_decref(*vars);
            *vars = NULL;
        }
    }
    return *vars ? HUNCH_OK : hn_fail_memory(err, "a conversation", n * sizeof *messages);
}

/* Replaces the template if the model has none. */
static hunch_status contents_in_a_row(const hunch_message *messages, size_t n, rendered *out, hunch_error *err) {
    for (size_t i = 0; i < n; i++) out->len += strlen(messages[i].content);
    char *end = out->text = hn_alloc(out->len + 1);
    out->piece = hn_zalloc(1, sizeof *out->piece);
    if (!out->text || !out->piece) return hn_fail_memory(err, "a conversation", out->len + 1);
    for (size_t i = 0; i < n; i++) end = stpcpy(end, messages[i].content);
    *end = '\0';
    out->n_pieces = 1;
    out->piece[0].len = out->len;
    return HUNCH_OK;
}

hunch_status hunch_chat_tokens(const hunch_model *m, const hunch_message *messages, size_t n, hunch_token **ids, size_t *n_ids,
                               hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"messages", messages || n == 0}, {"ids", ids}, {"n_ids", n_ids}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    json_t *vars = NULL;
    rendered r = {0};
    *ids = NULL;
    *n_ids = 0;
    st = hn_need_tokenizer(m, err);
    if (!st) st = conversation_json(messages, n, &vars, err);
    if (!st) st = m->chat || m->chat_refused ? render_chat(m, &(hunch_chat_options){0}, vars, &r, err)
                                            : contents_in_a_row(messages, n, &r, err);
    if (!st) st = hunch_tokenize_pieces(m, r.text, r.len, r.piece, r.n_pieces, ids, n_ids, err);
    if (!st && *n_ids == 0) {
        hn_free(*ids);
        *ids = NULL;
        st = hn_fail(err, HUNCH_USAGE, "the conversation is empty: expected a message with a text");
    }
    rendered_fini(&r);
    json_decref(vars);
    return st;
}

hunch_status hunch_template_render(const char *template_text, const char *vars_json, const char *now, char **text,
                                   size_t *len, hunch_error *err) {
    const hn_argument needed[] = {{"template_text", template_text}, {"vars_json", vars_json}, {"text", text}, {"len", len}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    json_t *vars = NULL;
    hn_template *t = NULL;
    *text = NULL;
    st = parse_vars(vars_json, &vars, err);
    if (!st) st = hn_template_parse(&t, template_text, strlen(template_text), err);
    if (!st) st = hn_template_render(t, vars, now, text, len, err);
    hn_template_free(t);
    json_decref(vars);
    return st;
}
