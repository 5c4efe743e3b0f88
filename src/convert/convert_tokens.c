/* SPDX-License-Identifier: Apache-2.0 */
/* convert_tokens.c - the tokens of a tokenizer.json: their texts and types, and which of them are special. */
#include "convert/convert_tokenizer.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"

enum { PAD_BYTES = 16 };

/* ---- texts and types ---- */

static hunch_status token_add(hn_tokenizer_conversion *c, const char *text, size_t len, const json_t *id, int32_t type) {
    json_int_t i = json_integer_value(id);
    if (!json_is_integer(id) || i < 0 || i >= c->size)
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: tokenizer.json: token \"%.60s\" has no id in the model's vocabulary of %d",
                       hn_source_path(c->src), text, c->size);
    if (c->text[i] != NULL && (c->len[i] != len || memcmp(c->text[i], text, len) != 0))
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: tokenizer.json: tokens \"%.60s\" and \"%.60s\" have the same id %" PRId64,
                       hn_source_path(c->src), c->text[i], text, (int64_t)i);
    if (len > HN_CONVERT_MAX_TOKEN)
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: tokenizer.json: token %" PRId64 " has %zu bytes; expected at most %d",
                       hn_source_path(c->src), (int64_t)i, len, HN_CONVERT_MAX_TOKEN);
    c->text[i] = text;
    c->len[i] = len;
    c->type[i] = type;
    return HUNCH_OK;
}

/* "<0x0A>": the byte 10, where the model falls back to bytes. */
static bool token_is_byte(const char *text) {
    unsigned byte;
    char again[8];
    if (strlen(text) != 6 || sscanf(text, "<0x%2X>", &byte) != 1)
        return false;
    snprintf(again, sizeof again, "<0x%02X>", byte);
    return strcmp(text, again) == 0;
}

/* The tokens that the folder's other files name are special, as the tokenizer reads them. */
static void mark_named(hn_tokenizer_conversion *c) {
    static const char *const keys[] = {"bos_token", "eos_token"};
    const json_t *id;
    for (int k = 0; k < 2; k++)
        if (hn_hf_token_of(c->src, keys[k], c->vocab, &id) != NULL &&
            c->type[json_integer_value(id)] == HN_TOKEN_NORMAL) /* ids were checked */
            c->type[json_integer_value(id)] = HN_TOKEN_CONTROL;
}

static hunch_status read_all(hn_tokenizer_conversion *c) {
    const json_t *unknown = json_object_get(c->model, "unk_token"), *added = json_object_get(c->root, "added_tokens");
    bool fallback = json_is_true(json_object_get(c->model, "byte_fallback"));
    const char *text;
    json_t *id, *token;
    size_t i;
    hunch_status status;
    json_object_foreach ((json_t *)(uintptr_t)c->vocab, text, id) {
        int32_t type = fallback && token_is_byte(text) ? HN_TOKEN_BYTE : HN_TOKEN_NORMAL;
        status = token_add(c, text, strlen(text), id, type);
        if (status) return status;
    }
    json_array_foreach (added, i, token) {
        const json_t *content = json_object_get(token, "content");
        bool special = json_is_true(json_object_get(token, "special"));
        if (!json_is_string(content))
            return hn_tokenizer_refuse(c, "an added token has no content");
        status = token_add(c, json_string_value(content), json_string_length(content), json_object_get(token, "id"),
                           special ? HN_TOKEN_CONTROL : HN_TOKEN_USER);
        if (status) return status;
    }
    mark_named(c);
    for (i = 0; i < (size_t)c->size; i++)
        if (c->text[i] != NULL && hn_json_is_text(unknown, c->text[i]))
            c->type[i] = HN_TOKEN_UNKNOWN;
    return HUNCH_OK;
}

/* Models often have more rows than tokens: the rest get names that do not occur in text. */
static hunch_status fill(hn_tokenizer_conversion *c) {
    size_t missing = 0;
    for (int i = 0; i < c->size; i++)
        missing += c->text[i] == NULL;
    c->pads = hn_zalloc(missing, PAD_BYTES);
    if (c->pads == NULL)
        return hn_fail_memory(c->err, "names of unused tokens", missing * PAD_BYTES);
    char *pad = c->pads;
    for (int i = 0; i < c->size; i++) {
        if (c->text[i] != NULL)
            continue;
        c->len[i] = (size_t)snprintf(pad, PAD_BYTES, "[PAD%d]", i);
        c->text[i] = pad;
        c->type[i] = HN_TOKEN_UNUSED;
        pad += PAD_BYTES;
    }
    return HUNCH_OK;
}

hunch_status hn_tokens_read(hn_tokenizer_conversion *c) {
    hunch_status status = read_all(c);
    return status ? status : fill(c);
}

/* ---- special tokens ---- */

/* Id of the token of this text; -1: none. */
static int id_of(const hn_tokenizer_conversion *c, const char *text) {
    for (int i = 0; i < c->size; i++)
        if (strcmp(c->text[i], text) == 0)
            return i;
    return -1;
}

/* Id of the token that the folder's files name; -1: none. */
static int token_named(const hn_tokenizer_conversion *c, const char *key) {
    const char *name;
    int id = -1;
    for (size_t i = 0; id < 0 && (name = hn_hf_token_name(c->src, key, i)) != NULL; i++)
        id = id_of(c, name);
    return id;
}

static hunch_status id_write(const hn_tokenizer_conversion *c, const char *key, int id) {
    return id < 0 ? HUNCH_OK : hn_gguf_put_u32(c->w, key, (uint32_t)id, c->err);
}

/* All tokens that end texts, the one that the folder's files name first. *ids: to be freed with hn_free. */
static hunch_status ends_list(const hn_tokenizer_conversion *c, int32_t **ids, size_t *n) {
    const int named = token_named(c, "eos_token");
    int32_t *said;
    size_t count;
    hunch_status status = hn_hf_token_ids(c->src, HN_HF_END, c->size, &said, &count, c->err);
    *n = 0;
    *ids = status ? NULL : hn_alloc((count + 1) * sizeof **ids);
    if (!status && *ids == NULL)
        status = hn_fail_memory(c->err, "the tokens that end texts", count * sizeof **ids);
    if (!status && named >= 0)
        (*ids)[(*n)++] = named;
    for (size_t i = 0; !status && i < count; i++)
        if (said[i] != named)
            (*ids)[(*n)++] = said[i];
    hn_free(said);
    return status;
}

/* GGUF has a key for each of three, and a list for those that have more. */
static hunch_status ends_write(const hn_tokenizer_conversion *c) {
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    int32_t *ids;
    size_t n;
    hunch_status status = ends_list(c, &ids, &n);
    for (size_t i = 0; i < n && i < 3 && !status; i++)
        status = id_write(c, keys[i], ids[i]);
    if (!status && n > 3)
        status = hn_gguf_put_i32s(c->w, "tokenizer.ggml.eos_token_ids", ids, n, c->err);
    hn_free(ids);
    return status;
}

/* The token that begins texts; -1: none. */
static hunch_status begin_find(const hn_tokenizer_conversion *c, int *bos) {
    int32_t *ids;
    size_t n;
    hunch_status status = hn_hf_token_ids(c->src, HN_HF_BEGIN, c->size, &ids, &n, c->err);
    *bos = token_named(c, "bos_token");
    if (*bos < 0 && n > 0)
        *bos = ids[0];
    hn_free(ids);
    return status;
}

/* Whether BOS is added to a text: as in tokenizer_config.json, else in the template of tokenizer.json. */
static bool bos_is_added(const hn_tokenizer_conversion *c) {
    const json_t *said = json_object_get(c->config, "add_bos_token"),
                 *post = json_object_get(c->root, "post_processor"), *step;
    if (json_is_boolean(said))
        return json_is_true(said);
    for (size_t i = 0; (step = hn_hf_part(post, "processors", i)) != NULL; i++)
        if (hn_step_is(step, "TemplateProcessing"))
            return json_object_get(json_array_get(json_object_get(step, "single"), 0), "SpecialToken") != NULL;
    return false;
}

hunch_status hn_special_ids_write(const hn_tokenizer_conversion *c) {
    int bos, unknown = -1;
    hunch_status status = begin_find(c, &bos);
    for (int i = 0; i < c->size && unknown < 0; i++)
        if (c->type[i] == HN_TOKEN_UNKNOWN)
            unknown = i;
    if (!status)
        status = id_write(c, "tokenizer.ggml.bos_token_id", bos);
    if (!status)
        status = ends_write(c);
    if (!status)
        status = id_write(c, "tokenizer.ggml.unknown_token_id", unknown);
    if (!status)
        status = id_write(c, "tokenizer.ggml.padding_token_id", token_named(c, "pad_token"));
    if (!status)
        status = hn_gguf_put_bool(c->w, "tokenizer.ggml.add_bos_token", bos >= 0 && bos_is_added(c), c->err);
    return status ? status
                  : hn_gguf_put_bool(c->w, "tokenizer.ggml.add_eos_token",
                                     json_is_true(json_object_get(c->config, "add_eos_token")), c->err);
}

/* Properties without GGUF keys: added tokens that take adjacent white space, or match whole words only. */
hunch_status hn_token_marks_write(const hn_tokenizer_conversion *c) {
    static const char *const flags[] = {"lstrip", "rstrip", "single_word"};
    const json_t *added = json_object_get(c->root, "added_tokens");
    int32_t *ids = hn_zalloc(json_array_size(added) + 1, sizeof *ids);
    hunch_status status = ids == NULL ? hn_fail_memory(c->err, "added tokens", json_array_size(added)) : HUNCH_OK;
    for (int f = 0; f < 3 && !status; f++) {
        char key[64];
        size_t n = 0, i;
        json_t *token;
        json_array_foreach (added, i, token)
            if (json_is_true(json_object_get(token, flags[f])))
                ids[n++] = (int32_t)json_integer_value(json_object_get(token, "id"));
        snprintf(key, sizeof key, "tokenizer.hunch.%s", flags[f]);
        if (n > 0)
            status = hn_gguf_put_i32s(c->w, key, ids, n, c->err);
    }
    hn_free(ids);
    return status;
}
