/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_api.c - inspection: logits of a text, the contents of a file. One draft: draft_api.c. Measuring: measure_api.c. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "draft/head/open/head_kind.h"
#include "convert/head_to_gguf.h"
#include "engine/pass_costs.h"
#include "engine/session.h"
#include "base/json_load.h"

void hn_chain_rows(hn_row *rows, const hunch_token *tokens, int n, hn_logits logits) {
    for (int i = 0; i < n; i++) rows[i] = (hn_row){.token = tokens[i], .parent = (int16_t)(i - 1), .logits = logits};
}

hunch_status hunch_evaluate(hunch_engine *e, const hunch_token *tokens, size_t n,
                            void (*row)(void *user, size_t position, const float *logits, int vocab), void *user,
                            hunch_error *err) {
    const hn_argument needed[] = {{"e", e}, {"tokens", tokens || n == 0}, {"row", row}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hn_row rows[HN_MAX_ROWS];
    const int vocab = e->model->target.arch.vocab;
    if (n == 0) return hn_fail(err, HUNCH_USAGE, "no tokens: expected at least one");
    if (n > (size_t)e->context) return hn_fail_context(e, "text", n, err);
    st = hn_check_tokens(e, "", tokens, n, err);
    if (!st) st = hn_engine_check_idle(e, err);
    if (st) return st;
    hn_engine_enter(e);
    hn_internal_begin(e);
    const int chunk = e->chunk < HN_MAX_ROWS ? e->chunk : HN_MAX_ROWS;
    for (size_t at = 0; !st && at < n; at += (size_t)chunk) {
        const int m = n - at < (size_t)chunk ? (int)(n - at) : chunk;
        hn_chain_rows(rows, tokens + at, m, HN_LOGITS_ALL);
        st = hn_internal_read(e, rows, m, err);
        for (int i = 0; !st && i < m; i++) row(user, at + (size_t)i, hn_pass_logits(e->runner, i), vocab);
    }
    hn_internal_end(e);
    hn_engine_leave(e);
    return st;
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

/* Adds whether the model runs, its description if so, and the tensors that it does not use. For one that does not run, these are
 * unknown. False: no memory. */
static bool describe_model(json_t *d, const hn_arch *a, const hn_model_bytes *bytes, hunch_status fits, const char *why) {
    const json_t *tensors = json_object_get(d, "tensors");
    json_t *unused = json_array(), *t;
    size_t i;
    bool ok = unused != NULL && json_object_set_new(d, "runs", json_boolean(fits == HUNCH_OK)) == 0;
    json_array_foreach (tensors, i, t) {
        if (fits != HUNCH_OK)
            ok = ok && json_object_set_new(t, "used", json_null()) == 0;
        else if (!json_is_true(json_object_get(t, "used")))
            ok = ok && json_array_append(unused, json_object_get(t, "name")) == 0;
    }
    if (fits != HUNCH_OK) {
        json_decref(unused);
        return ok && json_object_set_new(d, "refused", hn_json_from_bytes(why, strlen(why))) == 0;
    }
    if (json_object_set_new(d, "unused", unused) != 0) ok = false;
    json_t *model = json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:I, s:I}", "architecture", a->architecture, "name",
                              hn_json_from_bytes(a->name, strlen(a->name)), "layers", a->layers, "hidden", a->hidden, "vocab",
                              a->vocab, "context", a->context, "packed_bytes", (json_int_t)bytes->memory,
                              "mapped_bytes", (json_int_t)bytes->stored);
    if (json_object_set_new(model, "text_bytes", json_integer((json_int_t)hn_sampler_most_bytes(a->vocab))) != 0) ok = false;
    uint64_t window;
    const uint64_t row = hn_model_row_bytes(hn_layers_of(a), HN_BF16, &window),
                   state = hn_model_group_bytes(hn_layers_of(a), HN_CACHE_STATE);
    ok = ok && json_object_set_new(model, "cache_row_bytes", json_integer((json_int_t)row)) == 0;
    if (window > 0) ok = ok && json_object_set_new(model, "cache_window_row_bytes", json_integer((json_int_t)window)) == 0;
    if (state > 0) ok = ok && json_object_set_new(model, "state_bytes", json_integer((json_int_t)state)) == 0;
    if (bytes->table > 0) ok = ok && json_object_set_new(model, "table_bytes", json_integer((json_int_t)bytes->table)) == 0;
    if (bytes->experts_stored > 0)
        ok = ok && json_object_set_new(model, "expert_bytes", json_integer((json_int_t)bytes->experts_stored)) == 0 &&
             json_object_set_new(model, "packed_expert_bytes", json_integer((json_int_t)bytes->experts_memory)) == 0;
    return json_object_set_new(d, "model", model) == 0 && ok;
}

/* Whether a draft head opens depends on the model. */
static hunch_status inspect_head(hn_source *src, const char *kind, char **json, hunch_error *err) {
    char why[160];
    json_t *d = NULL;
    hunch_status st = hn_source_describe(src, &d, err);
    if (st) return st;
    snprintf(why, sizeof why, "a draft head of kind %.40s, which drafts for a model: --draft %.40s:PATH", kind, kind);
    if (describe_model(d, NULL, NULL, HUNCH_REFUSED, why) && !json_object_set_new(d, "head", hn_json_from_bytes(kind, strlen(kind))))
        *json = hn_json_dump(d, JSON_INDENT(1));
    json_decref(d);
    return *json ? HUNCH_OK : hn_fail_memory(err, "description", 0);
}

/* Of a model with a chat template: the format of the calls of tools that it writes, null if it is none that is parsed. False: no memory. */
static bool describe_calls(json_t *d, const hn_source *src) {
    char *text = NULL;
    size_t len = 0;
    if (!json_is_true(json_object_get(d, "chat_template"))) return true;
    hunch_status st = hn_source_chat_template(src, HN_CHAT_TOOLS, &text, &len, NULL);
    if (!st && !text) st = hn_source_chat_template(src, HN_CHAT_DEFAULT, &text, &len, NULL);
    const hn_call_family *family = st || !text ? NULL : hn_call_family_of(text, len);
    hn_free(text);
    return !st && json_object_set_new(d, "calls", family ? json_string(hn_call_family_name(family)) : json_null()) == 0;
}

static hunch_status inspect_model(hn_source *src, char **json, hunch_error *err) {
    json_t *d = NULL;
    hn_arch arch = {0};
    hn_model_bytes bytes = {0};
    hunch_error why = {0};
    hunch_status st;
    const hunch_status fits = hn_model_mark(src, &arch, &bytes, &why);
    if (fits == HUNCH_NO_MEMORY || fits == HUNCH_FAILED) /* no statement about the model */
        st = hn_fail(err, fits, "%s", why.message);
    else
        st = hn_source_describe(src, &d, err);
    if (!st) {
        *json = describe_model(d, &arch, &bytes, fits, why.message) && describe_calls(d, src) &&
                        !json_object_set_new(d, "head", json_null())
                    ? hn_json_dump(d, JSON_INDENT(1)) : NULL;
        if (!*json) st = hn_fail_memory(err, "description", 0);
    }
    json_decref(d);
    hn_arch_fini(&arch);
    return st;
}

hunch_status hunch_inspect(const char *path, char **json, hunch_error *err) {
    const hn_argument needed[] = {{"path", path}, {"json", json}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hn_source *src = NULL;
    *json = NULL;
    st = hn_source_open_head(&src, path, err);
    const char *kind = NULL;
    const hunch_status known = st ? HUNCH_OK : hn_head_kind(src, &kind, err);
    if (known) {
        st = known;
    } else if (hn_head_is(kind)) {
        st = inspect_head(src, kind, json, err);
    } else if (st != HUNCH_NO_MEMORY && st != HUNCH_FAILED) {
        hn_source_close(&src);
        st = hn_source_open(&src, path, err); /* a model must have all files, a head may lack some */
        if (!st) st = inspect_model(src, json, err);
    }
    hn_source_close(&src);
    return st;
}
