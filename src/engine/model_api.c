/* SPDX-License-Identifier: Apache-2.0 */
/* model_api.c - the public model handle: weights, tokenizer and chat template together; text calls, but those of chats (chat_api.c). */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/machines.h"
#include "engine/program_files.h"
#include "model/kv_groups.h"
#include "text/build_info.h"
#include "engine/loaded_model.h"

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

static hunch_status open_chat_for(hunch_model *m, hn_template **out, char **refused, const hn_source *src, hn_chat_use use,
                                  hunch_error *err) {
    char *text;
    size_t len;
    hunch_status st = hn_source_chat_template(src, use, &text, &len, err);
    if (!st && text) st = parse_chat(out, refused, src, text, len, err);
    if (!st && use == HN_CHAT_DEFAULT) st = hn_think_marks(m, text, text ? len : 0, err);
    if (!st && text) *(use == HN_CHAT_DEFAULT ? &m->calls : &m->calls_tools) = hn_call_family_of(text, len);
    hn_free(text);
    return st;
}

static hunch_status open_chat(hunch_model *m, const hn_source *src, hunch_error *err) {
    hunch_status st = open_chat_for(m, &m->chat, &m->chat_refused, src, HN_CHAT_DEFAULT, err);
    return st ? st : open_chat_for(m, &m->chat_tools, &m->chat_tools_refused, src, HN_CHAT_TOOLS, err);
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

/* The name of the level that passes have. Asked once: a backend looks for memory when it is asked for its limits. */
static const char *level_of(const hn_backend *b) {
    hn_backend_limits l;
    b->limits(b, &l);
    return l.name;
}

static hunch_status open_loaded(hunch_model *m, hn_source *src, const hn_model_load *load, const hunch_model_options *o, hunch_error *err) {
    if (!m->machines) return hn_model_open(&m->target, src, load, err);
    hunch_status st = hn_machines_tell_model(m->machines, src, load, o, err);
    if (st) return st;
    st = hn_link_agree(load->link, hn_model_open(&m->target, src, load, err), err);
    if (!st) hn_machines_begin_model(m->machines, m);
    return st;
}

hunch_status hunch_model_open(hunch_model **out, const char *path, const hunch_model_options *o, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {"path", path}, {0}};
    const hunch_status st = hn_check_arguments(__func__, needed, err);
    return st ? st : hn_machines_model_open(out, NULL, path, o, err);
}

hunch_status hn_machines_model_open(hunch_model **out, hn_machines *machines, const char *path, const hunch_model_options *o,
                                    hunch_error *err) {
    hunch_status st;
    *out = NULL;
    const double start = hn_now();
    hunch_model_options usual;
    hunch_model_options_defaults(&usual);
    if (!o) o = &usual;
    hn_model_load load = {.threads = o->threads ? o->threads : hn_cores(),
                          .f32 = o->precision == HUNCH_PRECISION_F32,
                          .mapped = o->mapped,
                          .mapped_experts = o->mapped_experts,
                          .progress = o->progress,
                          .progress_user = o->progress_user,
                          .link = hn_machines_link(machines)};
    hn_source *src = NULL;
    st = hn_isa_parse(o->isa, &load.isa, err);
    if (st) return st;
    hunch_model *m = hn_zalloc(1, sizeof *m);
    if (!m) return hn_fail_memory(err, "model", sizeof *m);
    load.account = &m->account;
    if (!o->text_only) st = hn_device_open(&load.backend, o->device, load.f32, err);
    if (st) {
        hn_free(m);
        return st;
    }
    if (machines && load.backend) {
        load.backend->close(load.backend);
        hn_free(m);
        return hn_fail(err, HUNCH_USAGE, "--device %s: over ranks passes run on CPUs: expected cpu", o->device);
    }
    m->machines = machines;
    m->threads = load.threads;
    m->precision = o->precision;
    m->text_only = o->text_only;
    (void)hn_think_marks(m, NULL, 0, err); /* without a tokenizer it cannot fail */
    st = hn_grammars_open(m, o->grammar_bytes, err);
    if (!st) st = hn_source_open(&src, path, err);
    if (!st && !m->text_only)
        st = open_loaded(m, src, &load, o, err);
    else if (load.backend)
        load.backend->close(load.backend);
    m->level = !st && !m->text_only ? level_of(m->target.backend) : "";
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

uint64_t hunch_model_memory_left(const hunch_model *m) {
    if (!m) return 0;
    return m->text_only ? hn_account_left(&m->account, hn_memory_available()) : hn_backend_memory_left(m->target.backend);
}

void hunch_model_close(hunch_model **mp) {
    hunch_model *m = mp ? *mp : NULL;
    if (!m) return;
    *mp = NULL;
    hn_machines_end_model(m->machines, m);
    hn_grammars_close(m);
    hn_template_free(m->chat);
    hn_template_free(m->chat_tools);
    hn_tokenizer_close(&m->tokenizer);
    hn_free(m->think_stop);
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
                               .mapped_bytes = m->target.bytes.stored,
                               .table_bytes = m->target.bytes.table,
                               .experts = experts,
                               .experts_used = used,
                               .expert_bytes = m->target.expert_bytes * (uint64_t)m->target.expert_layers,
                               .macs_per_row = m->target.macs_per_row,
                               .isa = m->level,
                               .threads = m->threads,
                               .has_tokenizer = m->tokenizer != NULL,
                               .has_chat_template = m->chat || m->chat_refused,
                               .has_thinking = m->may_think,
                               .load_seconds = m->load_seconds,
                               .n_unused = m->n_unused,
                               .state_bytes = hn_model_group_bytes(m->target.run, HN_CACHE_STATE),
                               .input_bytes = hn_model_group_bytes(m->target.run, HN_CACHE_ROWS),
                               .unused = m->unused};
}

uint64_t hunch_model_kv_elements(const hunch_model *m, int rows) {
    return m && rows > 0 ? hn_model_kv_work(m->target.run, HN_BF16, rows - 1, 1).elements : 0;
}

hn_dtype hn_kv_type(const hunch_model *m, hunch_kv kv) {
    if (kv == HUNCH_KV_DEFAULT) kv = m->precision == HUNCH_PRECISION_F32 ? HUNCH_KV_F32 : HUNCH_KV_BF16;
    return kv == HUNCH_KV_F32 ? HN_F32 : kv == HUNCH_KV_F16 ? HN_F16 : kv == HUNCH_KV_Q8_0 ? HN_Q8_0 : HN_BF16;
}

uint64_t hunch_model_row_bytes(const hunch_model *m, hunch_kv kv, uint64_t *window) {
    uint64_t of_window = 0;
    const uint64_t all = !m ? 0 : hn_model_row_bytes(m->target.run, hn_kv_type(m, kv), &of_window);
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

hunch_status hn_need_tokenizer(const hunch_model *m, hunch_error *err) {
    return m->tokenizer ? HUNCH_OK
                        : hn_fail(err, HUNCH_USAGE, "this model has no tokenizer: give token ids instead of text");
}

hunch_status hunch_tokenize(const hunch_model *m, const char *text, size_t len, int flags, hunch_token **ids, size_t *n,
                            hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"text", text || len == 0}, {"ids", ids}, {"n", n}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    st = hn_need_tokenizer(m, err);
    return st ? st : hn_tokenizer_encode(m->tokenizer, text, len, flags & HUNCH_TEXT_RENDERED, ids, n, err);
}

hunch_status hunch_token_piece(const hunch_model *m, hunch_token id, const char **bytes, size_t *len, bool *special,
                               hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"bytes", bytes}, {"len", len}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    st = hn_need_tokenizer(m, err);
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
    st = hn_need_tokenizer(m, err);
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
