/* SPDX-License-Identifier: Apache-2.0 */
/* hf.c - a Hugging Face folder: config.json and its companions, and the files of weights.
 *
 * The weights are one file, or an index whose weight_map names a shard for each tensor; weights_file.h has their names. The
 * files are read by safetensors.c or torch.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/json_load.h"
#include "format/quantised.h"
#include "format/source_private.h"
#include "format/weights_file.h"

static const struct {
    const char *name;
    size_t max_bytes;
} HF_DOCUMENTS[HN_HF_DOCUMENTS] = {
    [HN_HF_CONFIG] = {"config.json", 16 << 20},
    [HN_HF_TOKENIZER] = {"tokenizer.json", 128 << 20},
    [HN_HF_TOKENIZER_CONFIG] = {"tokenizer_config.json", 64 << 20},
    [HN_HF_SPECIAL_TOKENS] = {"special_tokens_map.json", 1 << 20},
    [HN_HF_GENERATION_CONFIG] = {"generation_config.json", 1 << 20},
    [HN_HF_MODELOPT] = {"hf_quant_config.json", 16 << 20},
    [HN_HF_GPTQ] = {"quantize_config.json", 16 << 20},
    [HN_HF_AWQ] = {"quant_config.json", 16 << 20},
};
enum { HF_MAX_INDEX = 64 << 20, HF_MAX_SHARDS = 10000, HF_MAX_KEY = 128 };

/* Python writes words for the numbers that JSON has none for: those that are infinite become a number beyond all, of as many bytes, which
 * is read as infinite. Words in strings stay. False: there are none. */
static bool infinities_replace(char *text, size_t size) {
    static const char word[] = "Infinity", number[] = "1e999999";
    enum { N = sizeof word - 1 };
    _Static_assert(sizeof word == sizeof number, "in place");
    bool inside = false, any = false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"') inside = !inside;
        if (text[i] == '\\' && inside) i++;
        if (inside || size - i < N || memcmp(text + i, word, N) != 0)
            continue;
        memcpy(text + i, number, N);
        any = true;
    }
    return any;
}

/* *out: NULL and HUNCH_OK if the file is absent. */
static hunch_status document_read(hn_source *s, const char *folder, const char *name, size_t max_bytes, json_t **out,
                                  hunch_error *err) {
    char *text = NULL, *path = hn_path_join(folder, name);
    size_t size = 0;
    *out = NULL;
    if (path == NULL)
        return hn_fail_memory(err, "a path", strlen(folder) + strlen(name) + 2);
    bool is_file;
    hunch_status status = hn_file_probe(path, &is_file, err);
    if (is_file)
        status = hn_file_read(path, max_bytes, &text, &size, err);
    if (text != NULL) {
        json_error_t where;
        *out = hn_json_parse(text, size, &s->json_bytes, &where);
        if (*out == NULL && json_error_code(&where) != json_error_out_of_memory && infinities_replace(text, size))
            *out = hn_json_parse(text, size, &s->json_bytes, &where);
        if (*out == NULL && json_error_code(&where) == json_error_out_of_memory)
            status = hn_fail_memory(err, path, size);
        else if (*out == NULL)
            status = hn_fail(err, HUNCH_REFUSED, "%s: not readable as JSON: line %d: %s", path, where.line, where.text);
        else if (!json_is_object(*out))
            status = hn_fail(err, HUNCH_REFUSED, "%s: expected a JSON object", path);
    }
    hn_free(text);
    hn_free(path);
    return status;
}

/* ---- shards ----------------------------------------------------------------------------------------------------- */

/* A shard is in the folder itself: a name in the index must not lead elsewhere. */
static bool shard_name_allowed(const char *name) {
    return hn_is_weights_file(name) && strlen(name) <= 255 && name[0] != '.' && strpbrk(name, "/\\") == NULL;
}

static hunch_status file_read(hn_source *s, const char *path, hunch_error *err) {
    return hn_is_checkpoint(path) ? hn_torch_read(s, path, err) : hn_safetensors_read(s, path, err);
}

/* The distinct files of the weight map. Their values become indices into s->files once they are read. */
static hunch_status shards_list(const char *index_path, const json_t *weight_map, json_t *shards, hunch_error *err) {
    const char *tensor;
    json_t *file;
    json_object_foreach ((json_t *)(uintptr_t)weight_map, tensor, file) {
        const char *name = json_string_value(file);
        if (name == NULL || !shard_name_allowed(name))
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: weight_map gives no usable file for %.200s; expected a .safetensors or .bin file in "
                           "the same folder",
                           index_path, tensor);
        if (json_object_get(shards, name) != NULL)
            continue;
        if (json_object_size(shards) >= HF_MAX_SHARDS)
            return hn_fail(err, HUNCH_REFUSED, "%s: weight_map names more than %d files", index_path, HF_MAX_SHARDS);
        if (json_object_set_new(shards, name, json_integer(-1)) != 0)
            return hn_fail_memory(err, "the list of shards", strlen(name));
    }
    return HUNCH_OK;
}

static hunch_status shards_read(hn_source *s, const char *folder, const char *index_path, json_t *shards,
                                hunch_error *err) {
    const char *name;
    json_t *number;
    hunch_status status = HUNCH_OK;
    json_object_foreach (shards, name, number) {
        char *path = hn_path_join(folder, name);
        if (path == NULL)
            return hn_fail_memory(err, "a path", strlen(folder) + strlen(name) + 2);
        bool is_file;
        status = hn_file_probe(path, &is_file, err);
        if (is_file)
            status = file_read(s, path, err);
        else if (!status)
            status = hn_fail(err, HUNCH_REFUSED, "%s: weight_map names %s, which is missing", index_path, path);
        hn_free(path);
        if (status)
            return status;
        json_integer_set(number, (json_int_t)s->n_files - 1);
    }
    return HUNCH_OK;
}

/* Every tensor of the index must be in the file that it names. */
static hunch_status shards_check(const hn_source *s, const char *index_path, const json_t *weight_map,
                                 const json_t *shards, hunch_error *err) {
    const char *tensor;
    json_t *file;
    json_object_foreach ((json_t *)(uintptr_t)weight_map, tensor, file) {
        const char *name = json_string_value(file);
        ptrdiff_t i = hn_name_index_find(&s->by_name, tensor);
        if (i < 0 || s->tensors[i].file != (size_t)json_integer_value(json_object_get(shards, name)))
            return hn_fail(err, HUNCH_REFUSED, "%s: weight_map lists tensor %.200s in %s, which does not hold it",
                           index_path, tensor, name);
    }
    return HUNCH_OK;
}

static hunch_status index_read_shards(hn_source *s, const char *folder, const char *index_path, const json_t *index,
                                      hunch_error *err) {
    const json_t *weight_map = json_object_get(index, "weight_map");
    if (!json_is_object(weight_map) || json_object_size(weight_map) == 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: no weight_map; expected an object that names a file for each tensor",
                       index_path);
    json_t *shards = json_object();
    if (shards == NULL)
        return hn_fail_memory(err, "the list of shards", 1);
    hunch_status status = shards_list(index_path, weight_map, shards, err);
    if (!status)
        status = shards_read(s, folder, index_path, shards, err);
    if (!status)
        status = hn_source_index_tensors(s, err);
    if (!status)
        status = shards_check(s, index_path, weight_map, shards, err);
    json_decref(shards);
    return status;
}

static hunch_status weights_read_index(hn_source *s, const char *folder, const char *path, hunch_error *err) {
    json_t *index = NULL;
    hunch_status status = document_read(s, folder, strrchr(path, '/') + 1, HF_MAX_INDEX, &index, err);
    if (!status && index == NULL)
        status = hn_fail(err, HUNCH_FAILED, "%s: no such file", path); /* it was there a moment ago */
    if (!status)
        status = index_read_shards(s, folder, path, index, err);
    json_decref(index);
    return status;
}

static hunch_status weights_read(hn_source *s, const char *folder, hunch_error *err) {
    char *path;
    hunch_status status = hn_weights_find(folder, &path, err);
    if (!status)
        status = hn_is_weights_file(path) ? file_read(s, path, err) : weights_read_index(s, folder, path, err);
    hn_free(path);
    return status;
}

static hunch_status documents_read(hn_source *s, const char *folder, hunch_error *err) {
    hunch_status status = HUNCH_OK;
    for (int i = 0; i < HN_HF_DOCUMENTS && !status; i++)
        status = document_read(s, folder, HF_DOCUMENTS[i].name, HF_DOCUMENTS[i].max_bytes, &s->documents[i], err);
    return status;
}

/* Of a draft head's folder: Meta's own have params.json instead of config.json. */
static hunch_status head_documents_read(hn_source *s, const char *folder, hunch_error *err) {
    hunch_status status = documents_read(s, folder, err);
    if (status || s->documents[HN_HF_CONFIG] != NULL)
        return status;
    return document_read(s, folder, "params.json", HF_DOCUMENTS[HN_HF_CONFIG].max_bytes, &s->documents[HN_HF_CONFIG],
                         err);
}

hunch_status hn_hf_read(hn_source *s, const char *folder, hunch_error *err) {
    hunch_status status = documents_read(s, folder, err);
    if (!status && s->documents[HN_HF_CONFIG] == NULL)
        status = hn_fail(err, HUNCH_REFUSED, "%s: no config.json; expected a Hugging Face model folder", folder);
    if (!status)
        status = weights_read(s, folder, err);
    if (!status)
        status = hn_source_join(s, err);
    if (!status)
        hn_quantised_take_scales(s);
    return status;
}

/* The row that a DFlash head has for its mask token, where it lies in a file of its own: it must be of the token that config.json names. */
static hunch_status mask_check(const hn_source *s, const char *path, int64_t token, hunch_error *err) {
    static const char *const keys[] = {"mask_token_id", "dflash_config.mask_token_id"};
    uint64_t said = 0;
    bool found = false;
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !status && !found; i++)
        status = hn_source_u64(s, keys[i], &said, &found, err);
    if (!status && token >= 0 && found && said != (uint64_t)token)
        status = hn_fail(err, HUNCH_REFUSED, "%s: it is of token %lld, expected the mask_token_id %llu of config.json", path,
                         (long long)token, (unsigned long long)said);
    return status;
}

static hunch_status mask_read(hn_source *s, const char *folder, hunch_error *err) {
    char *path = hn_path_join(folder, HN_MASK_FILE);
    int64_t token = -1;
    bool is_file;
    if (path == NULL)
        return hn_fail_memory(err, "a path", strlen(folder) + sizeof HN_MASK_FILE);
    hunch_status status = hn_file_probe(path, &is_file, err);
    if (is_file)
        status = hn_torch_read_mask(s, path, &token, err);
    if (is_file && !status)
        status = mask_check(s, path, token, err);
    hn_free(path);
    return status;
}

/* What a draft head's folder may have beside the file of weights. */
static hunch_status rest_read(hn_source *s, const char *folder, hunch_error *err) {
    char *path = hn_path_join(folder, HN_WARP_FILE);
    bool is_file;
    if (path == NULL)
        return hn_fail_memory(err, "a path", strlen(folder) + sizeof HN_WARP_FILE);
    hunch_status status = hn_file_probe(path, &is_file, err);
    if (is_file)
        status = hn_torch_read(s, path, err);
    hn_free(path);
    return status ? status : mask_read(s, folder, err);
}

hunch_status hn_hf_read_head(hn_source *s, const char *folder, hunch_error *err) {
    hunch_status status = head_documents_read(s, folder, err);
    if (!status)
        status = weights_read(s, folder, err);
    return status ? status : rest_read(s, folder, err);
}

static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? hn_strndup(path, (size_t)(slash - path) + 1) : hn_strdup(".");
}

/* The shapes of embedding and output, which descriptions take from tensors: these have no data. */
static hunch_status ends_add(hn_source *s, const char *path, hunch_error *err) {
    static const char *const names[] = {"model.embed_tokens.weight", "model.language_model.embed_tokens.weight", "lm_head.weight"};
    uint64_t hidden = 0, vocab = 0;
    bool found, has_vocab;
    hunch_status status = hn_source_u64(s, "hidden_size", &hidden, &found, err);
    if (!status)
        status = hn_source_u64(s, "vocab_size", &vocab, &has_vocab, err);
    if (!status && (!found || !has_vocab))
        return hn_fail(err, HUNCH_REFUSED, "%s: no %s; expected the config.json of a language model", path,
                       found ? "vocab_size" : "hidden_size");
    for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++) {
        hn_tensor *t;
        status = hn_source_add_tensor(s, path, names[i], strlen(names[i]), &t, err);
        if (!status)
            *t = (hn_tensor){.name = t->name, .dtype = HN_BF16, .known = true, .n_dims = 2, .dims = {hidden, vocab}};
    }
    return status;
}

hunch_status hn_hf_read_config(hn_source *s, const char *path, hunch_error *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const bool is_folder = hn_is_folder(path);
    char *folder = is_folder ? hn_strdup(path) : folder_of(path);
    if (folder == NULL)
        return hn_fail_memory(err, "a path", strlen(path));
    hunch_status status = document_read(s, folder, is_folder ? HF_DOCUMENTS[HN_HF_CONFIG].name : name,
                                        HF_DOCUMENTS[HN_HF_CONFIG].max_bytes, &s->documents[HN_HF_CONFIG], err);
    if (!status && s->documents[HN_HF_CONFIG] == NULL)
        status = hn_fail(err, HUNCH_REFUSED, "%s: no config.json; expected one, or a folder that has it", path);
    hn_free(folder);
    return status ? status : ends_add(s, path, err);
}

hunch_status hn_hf_read_file(hn_source *s, const char *path, hunch_error *err) {
    char *folder = folder_of(path);
    if (folder == NULL)
        return hn_fail_memory(err, "a path", strlen(path));
    hunch_status status = head_documents_read(s, folder, err);
    if (!status)
        status = file_read(s, path, err);
    if (!status)
        status = rest_read(s, folder, err);
    hn_free(folder);
    return status;
}

static hunch_status documents_each(const char *folder, void (*each)(void *user, const char *file), void *user,
                                   hunch_error *err) {
    const char *names[HN_HF_DOCUMENTS + 6] = {"model.safetensors.index.json", "pytorch_model.bin.index.json",
                                              HN_CHAT_FILE, "params.json", HN_MASK_FILE, HN_WARP_FILE};
    hunch_status status = HUNCH_OK;
    for (int i = 0; i < HN_HF_DOCUMENTS; i++)
        names[i + 6] = HF_DOCUMENTS[i].name;
    for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++) {
        char *path = hn_path_join(folder, names[i]);
        if (path == NULL)
            return hn_fail_memory(err, "a path", strlen(folder) + strlen(names[i]) + 2);
        bool is_file;
        status = hn_file_probe(path, &is_file, err);
        if (is_file)
            each(user, path);
        hn_free(path);
    }
    return status;
}

hunch_status hn_hf_files(const char *path, void (*each)(void *user, const char *file), void *user, hunch_error *err) {
    char *folder = hn_is_folder(path) ? hn_strdup(path) : folder_of(path);
    hunch_status status =
        folder ? documents_each(folder, each, user, err) : hn_fail_memory(err, "a path", strlen(path) + 1);
    hn_free(folder);
    return status;
}

/* ---- config.json ------------------------------------------------------------------------------------------------ */

const json_t *hn_source_json(const hn_source *s, const char *file_name) {
    for (int i = 0; i < HN_HF_DOCUMENTS; i++)
        if (strcmp(HF_DOCUMENTS[i].name, file_name) == 0)
            return s->documents[i];
    return NULL;
}

static bool value_from_json(const json_t *json, hn_value *out) {
    switch (json_typeof(json)) {
    case JSON_INTEGER: {
        json_int_t i = json_integer_value(json);
        *out = i < 0 ? (hn_value){.kind = HN_VALUE_INT, .i = i} : (hn_value){.kind = HN_VALUE_UINT, .u = (uint64_t)i};
        return true;
    }
    case JSON_REAL: *out = (hn_value){.kind = HN_VALUE_FLOAT, .f = json_real_value(json)}; return true;
    case JSON_TRUE:
    case JSON_FALSE: *out = (hn_value){.kind = HN_VALUE_BOOL, .b = json_is_true(json)}; return true;
    case JSON_STRING:
        *out = (hn_value){.kind = HN_VALUE_STRING, .str = json_string_value(json), .len = json_string_length(json)};
        return true;
    case JSON_ARRAY: *out = (hn_value){.kind = HN_VALUE_ARRAY}; return true;
    case JSON_OBJECT: *out = (hn_value){.kind = HN_VALUE_OBJECT}; return true;
    default: return false; /* null counts as absent */
    }
}

/* Follows a dotted path. *out: NULL if it is absent or null. HUNCH_REFUSED if it leads through a value that is not an
 * object. */
static hunch_status path_walk(const hn_source *s, const json_t *at, const char *key, const json_t **out,
                              hunch_error *err) {
    const char *part = key;
    *out = NULL;
    while (at != NULL && !json_is_null(at)) {
        const char *dot = strchr(part, '.');
        size_t len = dot != NULL ? (size_t)(dot - part) : strlen(part);
        if (!json_is_object(at))
            return hn_fail(err, HUNCH_REFUSED, "%s: config.json: %.*s is not an object; expected one that may hold %s",
                           s->path, (int)(part - key - 1), key, part);
        char name[HF_MAX_KEY];
        snprintf(name, sizeof name, "%.*s", (int)len, part);
        at = len < sizeof name ? json_object_get(at, name) : NULL;
        if (dot == NULL)
            break;
        part = dot + 1;
    }
    *out = json_is_null(at) ? NULL : at;
    return HUNCH_OK;
}

static hunch_status config_walk(const hn_source *s, const char *key, const json_t **out, hunch_error *err) {
    /* of a multimodal model, of a draft head by speculators, and by vLLM */
    static const char *const inner[] = {"text_config", "transformer_layer_config", "model"};
    const json_t *config = s->documents[HN_HF_CONFIG];
    hunch_status status = HUNCH_OK;
    *out = NULL;
    for (size_t i = 0; i < sizeof inner / sizeof *inner && !status && *out == NULL; i++)
        if (json_is_object(json_object_get(config, inner[i])))
            status = path_walk(s, json_object_get(config, inner[i]), key, out, err);
    return status || *out != NULL ? status : path_walk(s, config, key, out, err);
}

const json_t *hn_source_config(const hn_source *s, const char *path) {
    const json_t *at = NULL;
    return s->kind == HN_SOURCE_HF && config_walk(s, path, &at, NULL) == HUNCH_OK ? at : NULL;
}

bool hn_source_is_null(const hn_source *s, const char *key) {
    const json_t *config = s->documents[HN_HF_CONFIG], *text = json_object_get(config, "text_config");
    return s->kind == HN_SOURCE_HF && hn_source_config(s, key) == NULL &&
           (json_is_null(json_object_get(text, key)) || json_is_null(json_object_get(config, key)));
}

hunch_status hn_hf_value(const hn_source *s, const char *key, hn_value *out, bool *found, hunch_error *err) {
    const json_t *at;
    *found = false;
    hunch_status status = config_walk(s, key, &at, err);
    *found = !status && at != NULL && value_from_json(at, out);
    return status;
}
