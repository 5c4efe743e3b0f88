/* SPDX-License-Identifier: Apache-2.0 */
/* model_api.c - the public model handle: weights, tokenizer and chat template together; text calls. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "format/json_load.h"
#include "model/kv_groups.h"
#include "text/build_info.h"

const char *hunch_version(void) {
    return HUNCH_VERSION;
}

void hunch_build_get_info(hunch_build_info *out) {
    if (out) *out = hn_build_info();
}

void hunch_free(void *p) {
    hn_free(p);
}

void hunch_model_options_defaults(hunch_model_options *o) {
    if (o) memset(o, 0, sizeof *o);
}

/* A chat template that does not parse is an error only when it is used; without it the model runs as usual. */
static hunch_status parse_chat(hn_template **out, char **refused, const hn_source *src, const char *text, size_t len,
                               hunch_error *err) {
    hunch_error why;
    const hunch_status st = hn_template_parse(out, text, len, &why);
    if (!st) return HUNCH_OK;
    hn_error_prefix(&why, "%s: chat template", hn_source_path(src));
    if (st != HUNCH_REFUSED) return hn_fail(err, st, "%s", why.message);
    *refused = hn_strdup(why.message);
    return *refused ? HUNCH_OK : hn_fail_memory(err, "a message", strlen(why.message));
}

static hunch_status open_chat_for(hn_template **out, char **refused, const hn_source *src, hn_chat_use use,
                                  hunch_error *err) {
    char *text;
    size_t len;
    hunch_status st = hn_source_chat_template(src, use, &text, &len, err);
    if (!st && text) st = parse_chat(out, refused, src, text, len, err);
    hn_free(text);
    return st;
}

static hunch_status open_chat(hunch_model *m, const hn_source *src, hunch_error *err) {
    hunch_status st = open_chat_for(&m->chat, &m->chat_refused, src, HN_CHAT_DEFAULT, err);
    return st ? st : open_chat_for(&m->chat_tools, &m->chat_tools_refused, src, HN_CHAT_TOOLS, err);
}

/* For templates: "" for a token that does not exist, or is not valid UTF-8. */
static char *token_name(const hn_tokenizer *t, int32_t id) {
    size_t len = 0;
    const char *p = id >= 0 ? hn_tokenizer_piece(t, id, &len) : NULL;
    const bool text = p && hn_utf8_check(p, len) == len;
    return hn_strndup(text ? p : "", text ? len : 0);
}

static hunch_status open_text(hunch_model *m, const hn_source *src, hunch_error *err) {
    hunch_status st = hn_tokenizer_open(&m->tokenizer, src, err);
    if (st || !m->tokenizer) return st;
    if (!m->text_only && hn_tokenizer_vocab(m->tokenizer) > m->target.arch.vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: tokenizer of %d tokens, model of %d", hn_source_path(src),
                       hn_tokenizer_vocab(m->tokenizer), m->target.arch.vocab);
    m->chat_bos = token_name(m->tokenizer, hn_tokenizer_bos(m->tokenizer));
    m->chat_eos = token_name(m->tokenizer, hn_tokenizer_eos(m->tokenizer));
    if (!m->chat_bos || !m->chat_eos) return hn_fail_memory(err, "token names", 0);
    return open_chat(m, src, err);
}

/* Every tensor of a file is used or reported (contract C6). */
static void note_unused(hunch_model *m, hn_source *src) {
    enum { NAMED = 3 };
    size_t at = 0, room = sizeof m->unused;
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const hn_tensor *t = hn_source_tensor(src, i);
        if (t->used) continue;
        m->n_unused++;
        if (m->n_unused <= NAMED && at < room)
            at += (size_t)snprintf(m->unused + at, room - at, "%s%.60s", at ? ", " : "", t->name);
    }
    if (m->n_unused > NAMED && at < room) snprintf(m->unused + at, room - at, ", ...");
}

hunch_status hunch_model_open(hunch_model **out, const char *path, const hunch_model_options *o, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {"path", path}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    const double start = hn_now();
    hunch_model_options usual;
    hunch_model_options_defaults(&usual);
    if (!o) o = &usual;
    hn_model_load load = {.threads = o->threads ? o->threads : hn_cores(),
                          .f32 = o->precision == HUNCH_PRECISION_F32,
                          .mapped = o->mapped,
                          .mapped_experts = o->mapped_experts,
                          .progress = o->progress,
                          .progress_user = o->progress_user};
    hn_source *src = NULL;
    st = hn_isa_parse(o->isa, &load.isa, err);
    if (st) return st;
    hunch_model *m = hn_zalloc(1, sizeof *m);
    if (!m) return hn_fail_memory(err, "model", sizeof *m);
    m->threads = load.threads;
    m->precision = o->precision;
    m->text_only = o->text_only;
    st = hn_source_open(&src, path, err);
    if (!st && !m->text_only) st = hn_model_open(&m->target, src, &load, err);
    if (!st) st = open_text(m, src, err);
    if (!st && !m->text_only) note_unused(m, src);
    if (!st && !(m->path = hn_strdup(hn_source_path(src)))) st = hn_fail_memory(err, "a path", 0);
    if (!st && m->target.files) {
        hn_source_trim(src);
        m->mapped = src;
    } else {
        hn_source_close(&src);
    }
    m->load_seconds = hn_now() - start;
    if (st) {
        hunch_model_close(&m);
        return st;
    }
    *out = m;
    return HUNCH_OK;
}

void hunch_model_close(hunch_model **mp) {
    hunch_model *m = mp ? *mp : NULL;
    if (!m) return;
    *mp = NULL;
    hn_template_free(m->chat);
    hn_template_free(m->chat_tools);
    hn_tokenizer_close(&m->tokenizer);
    hn_free(m->path);
    hn_free(m->chat_refused);
    hn_free(m->chat_tools_refused);
    hn_free(m->chat_bos);
    hn_free(m->chat_eos);
    hn_model_close(&m->target);
    hn_source_close(&m->mapped);
    hn_free(m);
}

static int most_experts(const hn_arch *a, int *used) {
    int most = 0;
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].experts.count > most) {
            most = a->layer[i].experts.count;
            *used = a->layer[i].experts.used;
        }
    return most;
}

void hunch_model_get_info(const hunch_model *m, hunch_model_info *info) {
    if (!info) return;
    *info = (hunch_model_info){0};
    if (!m) return;
    const hn_arch *a = &m->target.arch;
    int used = 0;
    const int experts = most_experts(a, &used);
    *info = (hunch_model_info){.architecture = a->architecture,
                               .name = a->name,
                               .layers = a->layers,
                               .hidden = a->hidden,
                               .vocab = m->text_only && m->tokenizer ? hn_tokenizer_vocab(m->tokenizer) : a->vocab,
                               .context = a->context,
                               .parameters = m->target.parameters,
                               .weight_bytes = m->target.weight_bytes,
                               .memory_bytes = m->target.bytes.memory,
                               .mapped_bytes = m->mapped ? m->target.bytes.stored : 0,
                               .experts = experts,
                               .experts_used = used,
                               .expert_bytes = m->target.expert_bytes * (uint64_t)m->target.expert_layers,
                               .macs_per_row = m->target.macs_per_row,
                               .isa = m->text_only ? "" : hn_isa_name(m->target.ops.isa),
                               .threads = m->threads,
                               .has_tokenizer = m->tokenizer != NULL,
                               .has_chat_template = m->chat || m->chat_refused,
                               .load_seconds = m->load_seconds,
                               .n_unused = m->n_unused,
                               .state_bytes = hn_model_group_bytes(a, HN_CACHE_STATE),
                               .input_bytes = hn_model_group_bytes(a, HN_CACHE_ROWS),
                               .unused = m->unused};
}

uint64_t hunch_model_kv_elements(const hunch_model *m, int rows) {
    return m && rows > 0 ? hn_model_kv_work(&m->target.arch, HN_BF16, rows - 1, 1).elements : 0;
}

hn_dtype hn_kv_type(const hunch_model *m, hunch_kv kv) {
    if (kv == HUNCH_KV_DEFAULT) kv = m->precision == HUNCH_PRECISION_F32 ? HUNCH_KV_F32 : HUNCH_KV_BF16;
    return kv == HUNCH_KV_F32 ? HN_F32 : kv == HUNCH_KV_F16 ? HN_F16 : kv == HUNCH_KV_Q8_0 ? HN_Q8_0 : HN_BF16;
}

uint64_t hunch_model_row_bytes(const hunch_model *m, hunch_kv kv, uint64_t *window) {
    uint64_t of_window = 0;
    const uint64_t all = !m ? 0 : hn_model_row_bytes(&m->target.arch, hn_kv_type(m, kv), &of_window);
    if (window) *window = of_window;
    return all;
}

int hunch_model_context_for(const hunch_model *m, size_t tokens) {
    if (!m) return 0;
    const size_t most = (size_t)m->target.arch.context;
    size_t rows = 1;
    while (rows < most && rows / 2 < tokens) rows *= 2;
    return tokens > most ? 0 : (int)(rows < most ? rows : most);
}

hunch_status hn_fail_context(const hunch_engine *e, const char *what, size_t n, hunch_error *err) {
    const int cure = hunch_model_context_for(e->model, n);
    return cure ? hn_fail(err, HUNCH_USAGE, "%s of %zu tokens is longer than the context of %d: one of %d makes room", what, n,
                          e->context, cure)
                : hn_fail(err, HUNCH_USAGE, "%s of %zu tokens is longer than the context of %d, and the model takes %d at most",
                          what, n, e->context, e->model->target.arch.context);
}

/* ---- text ------------------------------------------------------------------------------------------------------------ */

static hunch_status need_tokenizer(const hunch_model *m, hunch_error *err) {
    return m->tokenizer ? HUNCH_OK
                        : hn_fail(err, HUNCH_USAGE, "this model has no tokenizer: give token ids instead of text");
}

hunch_status hunch_tokenize(const hunch_model *m, const char *text, size_t len, int flags, hunch_token **ids, size_t *n,
                            hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"text", text || len == 0}, {"ids", ids}, {"n", n}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    enum { BOTH = HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL };
    hunch_token *with;
    size_t n_with;
    st = need_tokenizer(m, err);
    if (st) return st;
    if ((flags & HUNCH_TEXT_RENDERED) != HUNCH_TEXT_RENDERED)
        return hn_tokenizer_encode(m->tokenizer, text, len, flags & BOTH, ids, n, err);
    st = hn_tokenizer_encode(m->tokenizer, text, len, HUNCH_TEXT_PARSE_SPECIAL, ids, n, err);
    if (st) return st;
    st = hn_tokenizer_encode(m->tokenizer, text, len, BOTH, &with, &n_with, err);
    /* was one added before one that the text has already? */
    const bool twice = !st && n_with == *n + 1 && *n > 0 && with[0] == (*ids)[0] && with[1] == with[0];
    if (twice) {
        hn_free(with);
        return HUNCH_OK;
    }
    hn_free(*ids);
    *ids = st ? NULL : with;
    *n = st ? 0 : n_with;
    return st;
}

hunch_status hunch_token_piece(const hunch_model *m, hunch_token id, const char **bytes, size_t *len, bool *special,
                               hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"bytes", bytes}, {"len", len}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    st = need_tokenizer(m, err);
    if (st) return st;
    *bytes = hn_tokenizer_piece(m->tokenizer, id, len);
    if (!*bytes)
        return hn_fail(err, HUNCH_USAGE, "token id %d: expected 0 to %d", id, hn_tokenizer_vocab(m->tokenizer) - 1);
    if (special) *special = hn_tokenizer_is_special(m->tokenizer, id);
    return HUNCH_OK;
}

hunch_status hunch_detokenize(const hunch_model *m, const hunch_token *ids, size_t n, char **text, size_t *len,
                              hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"ids", ids || n == 0}, {"text", text}, {"len", len}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    *text = NULL;
    *len = 0;
    size_t cap = 0;
    hn_detok d;
    st = need_tokenizer(m, err);
    hn_detok_init(&d);
    for (size_t i = 0; !st && i < n; i++) st = hn_detok_push(&d, m->tokenizer, ids[i], text, len, &cap, err);
    if (!st) st = hn_detok_end(&d, text, len, &cap, err);
    if (!st && !*text && !(*text = hn_strdup(""))) st = hn_fail_memory(err, "text", 1);
    if (st) {
        hn_free(*text);
        *text = NULL;
    }
    return st;
}

static hunch_status parse_vars(const char *vars_json, json_t **vars, hunch_error *err) {
    json_error_t e;
    *vars = hn_json_load(vars_json, strlen(vars_json), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (json_is_object(*vars)) return HUNCH_OK;
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

void hunch_chat_options_defaults(hunch_chat_options *o) {
    if (o) memset(o, 0, sizeof *o);
}

static hunch_status render_chat(const hunch_model *m, const hunch_chat_options *o, json_t *vars, char **text, size_t *len,
                                hunch_error *err) {
    hn_template *given = NULL;
    const hn_template *use = NULL;
    hunch_status st;
    if (o->template_text) {
        st = hn_template_parse(&given, o->template_text, strlen(o->template_text), err);
        use = given;
    } else {
        st = own_template(m, json_array_size(json_object_get(vars, "tools")) > 0, &use, err);
    }
    if (!st) st = chat_defaults(m, vars, err);
    if (!st) st = hn_template_render(use, vars, o->now, text, len, err);
    hn_template_free(given);
    return st;
}

hunch_status hunch_chat_render(const hunch_model *m, const char *vars_json, const hunch_chat_options *o, char **text, size_t *len,
                               hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"vars_json", vars_json}, {"text", text}, {"len", len}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    json_t *vars = NULL;
    *text = NULL;
    st = parse_vars(vars_json, &vars, err);
    if (!st) st = render_chat(m, o ? o : &(hunch_chat_options){0}, vars, text, len, err);
    json_decref(vars);
    return st;
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
static hunch_status contents_in_a_row(const hunch_message *messages, size_t n, char **text, size_t *len, hunch_error *err) {
    *len = 0;
    for (size_t i = 0; i < n; i++) *len += strlen(messages[i].content);
    char *end = *text = hn_alloc(*len + 1);
    if (!*text) return hn_fail_memory(err, "a conversation", *len + 1);
    for (size_t i = 0; i < n; i++) end = stpcpy(end, messages[i].content);
    *end = '\0';
    return HUNCH_OK;
}

hunch_status hunch_chat_tokens(const hunch_model *m, const hunch_message *messages, size_t n, hunch_token **ids, size_t *n_ids,
                               hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"messages", messages || n == 0}, {"ids", ids}, {"n_ids", n_ids}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    json_t *vars = NULL;
    char *text = NULL;
    size_t len = 0;
    *ids = NULL;
    *n_ids = 0;
    st = need_tokenizer(m, err);
    if (!st) st = conversation_json(messages, n, &vars, err);
    if (!st) st = m->chat || m->chat_refused ? render_chat(m, &(hunch_chat_options){0}, vars, &text, &len, err)
                                            : contents_in_a_row(messages, n, &text, &len, err);
    if (!st) st = hunch_tokenize(m, text, len, HUNCH_TEXT_RENDERED, ids, n_ids, err);
    if (!st && *n_ids == 0) {
        hn_free(*ids);
        *ids = NULL;
        st = hn_fail(err, HUNCH_USAGE, "the conversation is empty: expected a message with a text");
    }
    hn_free(text);
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
