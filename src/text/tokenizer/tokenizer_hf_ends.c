/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hf_ends.c - which tokens begin and end a text, as the files of a Hugging Face folder say it: by name in
 * tokenizer_config.json and special_tokens_map.json, by id in generation_config.json, config.json and tokenizer_config.json. The
 * tokenizer and `hunch convert` ask here, so that a folder and its GGUF end alike.
 */
#include "base/mem.h"
#include "text/tokenizer/tokenizer_hf.h"

/* ---- names ---- */

const char *hn_hf_token_name(const hn_source *src, const char *key, size_t i) {
    const json_t *config = hn_source_json(src, "tokenizer_config.json"),
                 *map = hn_source_json(src, "special_tokens_map.json");
    /* transformers puts the older file over a configuration that does not list its tokens by id; any other is only completed by it */
    const bool map_first = json_object_get(config, "added_tokens_decoder") == NULL;
    const json_t *files[] = {map_first ? map : config, map_first ? config : map};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        const json_t *value = json_object_get(files[f], key);
        const char *name = json_is_object(value) ? hn_hf_string(value, "content") : hn_hf_string(files[f], key);
        if (*name && i-- == 0) return name;
    }
    return NULL;
}

const char *hn_hf_token_of(const hn_source *src, const char *key, const json_t *vocab, const json_t **id) {
    const char *name;
    for (size_t i = 0; (name = hn_hf_token_name(src, key, i)) != NULL; i++)
        if ((*id = json_object_get(vocab, name)) != NULL) return name;
    return NULL;
}

/* ---- ids ---- */

typedef struct id_list {
    int32_t *ids;
    unsigned char *seen; /* [vocab] */
    size_t n, cap;
    int32_t vocab;
} id_list;

/* value: 1, or [1, 2]. A null is absent. */
static hunch_status add_ids(id_list *l, const json_t *value, const char *file, const char *key, hunch_error *err) {
    if (!value || json_is_null(value)) return HUNCH_OK;
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        const json_int_t v = json_integer_value(id);
        if (!json_is_integer(id) || v < 0 || v > INT32_MAX)
            return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected a token id or an array of them", file, key);
        if (v >= l->vocab || l->seen[v]) continue; /* the model may have more rows than the tokenizer has tokens */
        if (!hn_grow((void **)&l->ids, &l->cap, l->n + 1, sizeof *l->ids))
            return hn_fail_memory(err, "the ids of tokens", l->n);
        l->seen[v] = 1;
        l->ids[l->n++] = (int32_t)v;
    }
    return HUNCH_OK;
}

static hunch_status add_all(id_list *l, const hn_source *src, const char *const keys[2], hunch_error *err) {
    const json_t *config = hn_source_json(src, "config.json");
    const struct {
        const char *name;
        const json_t *object;
    } places[] = {{"generation_config.json", hn_source_json(src, "generation_config.json")},
                  {"config.json: text_config", json_object_get(config, "text_config")},
                  {"config.json", config},
                  {"tokenizer_config.json", hn_source_json(src, "tokenizer_config.json")}};
    hunch_status s = HUNCH_OK;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int k = 0; !s && k < 2; k++)
            s = add_ids(l, json_object_get(places[i].object, keys[k]), places[i].name, keys[k], err);
    return s;
}

hunch_status hn_hf_token_ids(const hn_source *src, hn_hf_end which, int32_t vocab, int32_t **ids, size_t *n,
                             hunch_error *err) {
    static const char *const keys[][2] = {
        [HN_HF_BEGIN] = {"bos_token_id", "bos_token_ids"}, [HN_HF_END] = {"eos_token_id", "eos_token_ids"}};
    id_list l = {.vocab = vocab, .seen = hn_zalloc((size_t)vocab, 1)};
    hunch_status s =
        l.seen ? add_all(&l, src, keys[which], err) : hn_fail_memory(err, "the ids of tokens", (size_t)vocab);
    hn_free(l.seen);
    if (s) hn_free(l.ids);
    *ids = s ? NULL : l.ids;
    *n = s ? 0 : l.n;
    return s;
}
