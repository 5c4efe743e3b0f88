/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hf.c - a tokenizer from a Hugging Face folder: tokenizer.json, tokenizer_config.json, generation_config.json.
 *
 * tokenizer.json describes a pipeline: normalizer, pre-tokenizer and decoder (tokenizer_hf_pipeline.c), a model and added
 * tokens (tokenizer_hf_vocab.c), and a post-processor, of which only the tokens around a text are read, here. Which tokens begin and
 * end texts the other files specify (tokenizer_hf_ends.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "text/answer_ends.h"
#include "text/tokenizer/tokenizer_hf.h"

/* ---- types of values ---- */

/* A key that is read, and its types; null is allowed for all. Other keys may have any value. Values: checked by their readers. */
typedef struct kind_of_key {
    const char *key;
    unsigned kinds; /* bits 1 << json_type */
    const char *words;
} kind_of_key;

#define IS(type) (1u << JSON_##type)
#define AN_ARRAY IS(ARRAY), "an array"
#define AN_OBJECT IS(OBJECT), "an object"
#define A_STRING IS(STRING), "a string"
#define A_NUMBER IS(INTEGER) | IS(REAL), "a number"
#define A_BOOL IS(TRUE) | IS(FALSE), "true or false"
#define A_TEMPLATE IS(STRING) | IS(ARRAY), "a string or an array of them"
#define A_TOKEN IS(STRING) | IS(OBJECT), "a token's text, or an object with it"

static hunch_status check_kinds(const json_t *object, const char *where, const kind_of_key *k, hunch_error *err) {
    for (; k->key; k++) {
        const json_t *value = json_object_get(object, k->key);
        if (value && !json_is_null(value) && !(k->kinds >> json_typeof(value) & 1))
            return hn_fail(err, HUNCH_REFUSED, "%s%s: expected %s", where, k->key, k->words);
    }
    return HUNCH_OK;
}

static hunch_status check_added_kinds(const json_t *added, hunch_error *err) {
    static const kind_of_key keys[] = {{"special", A_BOOL},     {"lstrip", A_BOOL},    {"rstrip", A_BOOL},
                                       {"single_word", A_BOOL}, {"content", A_STRING}, {"normalized", A_BOOL}, {0}};
    size_t i;
    json_t *token;
    json_array_foreach(added, i, token) {
        char where[64];
        snprintf(where, sizeof where, HN_HF_FILE "added_tokens[%zu].", i);
        hunch_status s = check_kinds(token, where, keys, err);
        if (s) return s;
    }
    return HUNCH_OK;
}

static hunch_status check_all_kinds(const json_t *doc, const json_t *config, const json_t *map, hunch_error *err) {
    static const kind_of_key top[] = {{"added_tokens", AN_ARRAY},   {"model", AN_OBJECT},
                                      {"normalizer", AN_OBJECT},    {"decoder", AN_OBJECT},
                                      {"pre_tokenizer", AN_OBJECT}, {"post_processor", AN_OBJECT},
                                      {0}};
    static const kind_of_key model[] = {{"type", A_STRING},
                                        {"unk_token", A_STRING},
                                        {"byte_fallback", A_BOOL},
                                        {"fuse_unk", A_BOOL},
                                        {"ignore_merges", A_BOOL},
                                        {"dropout", A_NUMBER},
                                        {"continuing_subword_prefix", A_STRING},
                                        {"end_of_word_suffix", A_STRING},
                                        {0}};
    static const kind_of_key settings[] = {
        {"bos_token", A_TOKEN},    {"eos_token", A_TOKEN},          {"add_bos_token", A_BOOL},
        {"add_eos_token", A_BOOL}, {"chat_template", A_TEMPLATE}, {0}};
    static const kind_of_key names[] = {{"bos_token", A_TOKEN}, {"eos_token", A_TOKEN}, {0}};
    static const kind_of_key decoder[] = {{"decoders", AN_ARRAY}, {0}}, post[] = {{"processors", AN_ARRAY}, {0}};
    hunch_status s = check_kinds(doc, HN_HF_FILE, top, err);
    if (!s) s = check_kinds(json_object_get(doc, "model"), HN_HF_FILE "model.", model, err);
    if (!s) s = check_kinds(json_object_get(doc, "decoder"), HN_HF_FILE "decoder.", decoder, err);
    if (!s) s = check_kinds(json_object_get(doc, "post_processor"), HN_HF_FILE "post_processor.", post, err);
    if (!s) s = check_added_kinds(json_object_get(doc, "added_tokens"), err);
    if (!s) s = check_kinds(config, "tokenizer_config.json: ", settings, err);
    return s ? s : check_kinds(map, "special_tokens_map.json: ", names, err);
}

/* ---- tokens that begin and end a text ---- */

/* The token of the first name that the vocabulary has. */
static int32_t token_named(const hn_tokenizer *t, const hn_source *src, const char *key) {
    const char *name;
    int32_t id = -1;
    for (size_t i = 0; id < 0 && (name = hn_hf_token_name(src, key, i)) != NULL; i++) id = hn_vocab_find_named(t, name, strlen(name));
    return id;
}

/* The ids of a special token of the post-processor: its own list, else the token of that name. */
static hunch_status add_special(const hn_tokenizer *t, const json_t *post, const json_t *piece, hn_added *out,
                                hunch_error *err) {
    const char *name = hn_hf_string(piece, "id");
    const json_t *ids = json_object_get(json_object_get(json_object_get(post, "special_tokens"), name), "ids");
    size_t n = json_is_array(ids) ? json_array_size(ids) : 1;
    for (size_t i = 0; i < n; i++) {
        json_int_t id = json_is_array(ids) ? json_integer_value(json_array_get(ids, i))
                                           : hn_vocab_find_named(t, name, strlen(name));
        if (id < 0 || id >= t->vocab || out->n == HN_MAX_ADDED) {
            return hn_fail(err, HUNCH_REFUSED,
                           HN_HF_FILE "post_processor: special token \"%.60s\": expected at most %d "
                                      "ids of the vocabulary",
                           name, HN_MAX_ADDED);
        }
        out->ids[out->n++] = (int32_t)id;
    }
    return HUNCH_OK;
}

/* "single": the special tokens before and after {"Sequence": …}. */
static hunch_status read_template(hn_tokenizer *t, const json_t *post, hunch_error *err) {
    size_t i;
    json_t *piece;
    hn_added *side = &t->front;
    hunch_status s = HUNCH_OK;
    json_array_foreach(json_object_get(post, "single"), i, piece) {
        const json_t *special = json_object_get(piece, "SpecialToken");
        if (special)
            s = add_special(t, post, special, side, err);
        else
            side = &t->back;
        if (s) return s;
    }
    return HUNCH_OK;
}

/* BERT's and RoBERTa's: "cls" and "sep", each a token and its id. */
static hunch_status read_cls_and_sep(hn_tokenizer *t, const json_t *post, hunch_error *err) {
    static const char *const keys[] = {"cls", "sep"};
    for (int i = 0; i < 2; i++) {
        const json_t *id = json_array_get(json_object_get(post, keys[i]), 1);
        json_int_t v = json_integer_value(id);
        if (!json_is_integer(id) || v < 0 || v >= t->vocab)
            return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "post_processor: %s: expected [\"token\", id]", keys[i]);
        *(i ? &t->back : &t->front) = (hn_added){{(int32_t)v}, 1};
    }
    return HUNCH_OK;
}

static hunch_status read_post(hn_tokenizer *t, const json_t *thing, hunch_error *err) {
    const json_t *part;
    hunch_status s = HUNCH_OK;
    for (size_t i = 0; !s && (part = hn_hf_part(thing, "processors", i)); i++) {
        const char *type = hn_hf_string(part, "type");
        if (strcmp(type, "TemplateProcessing") == 0)
            s = read_template(t, part, err);
        else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
            s = read_cls_and_sep(t, part, err);
        else if (strcmp(type, "ByteLevel") != 0)
            s = hn_hf_refuse("post_processor", type, err);
    }
    return s;
}

/* tokenizer_config.json overrides the post-processor on BOS and EOS. */
static hunch_status read_added(hn_tokenizer *t, const json_t *config, const json_t *post, hunch_error *err) {
    const json_t *bos = json_object_get(config, "add_bos_token"), *eos = json_object_get(config, "add_eos_token");
    hunch_status s = read_post(t, post, err);
    if (json_is_boolean(bos)) {
        bool had = t->front.n && t->front.ids[0] == t->bos;
        if (json_is_true(bos) && !had && t->bos >= 0) t->front = (hn_added){{t->bos}, 1};
        if (json_is_false(bos) && had) t->front.n = 0;
    }
    if (json_is_boolean(eos)) {
        bool had = t->back.n && t->back.ids[t->back.n - 1] == t->eos;
        if (json_is_true(eos) && !had && t->eos >= 0) t->back = (hn_added){{t->eos}, 1};
        if (json_is_false(eos) && had) t->back.n--;
    }
    return s;
}

/* *first: the token that the files name, else the first whose id they have; ends marks all of them. */
static hunch_status read_side(hn_tokenizer *t, const hn_source *src, hn_hf_end which, const char *key, int32_t *first,
                              hunch_error *err) {
    int32_t *ids;
    size_t n;
    hunch_status s = hn_hf_token_ids(src, which, t->vocab, &ids, &n, err);
    if (s) return s;
    *first = token_named(t, src, key);
    if (*first < 0 && n > 0) *first = ids[0];
    if (which == HN_HF_END && *first >= 0) t->marks[*first] |= HN_MARK_END;
    for (size_t i = 0; which == HN_HF_END && i < n; i++) t->marks[ids[i]] |= HN_MARK_END;
    hn_free(ids);
    return HUNCH_OK;
}

static hunch_status read_ends(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    hunch_status s = read_side(t, src, HN_HF_BEGIN, "bos_token", &t->bos, err);
    if (!s) s = read_side(t, src, HN_HF_END, "eos_token", &t->eos, err);
    if (!s) hn_answer_ends_mark(t);
    return s;
}

hunch_status hn_tokenizer_from_hf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err) {
    const json_t *doc = hn_source_json(src, "tokenizer.json");
    hn_hf_pipeline p;
    *found = doc != NULL;
    if (!doc) return HUNCH_OK;
    hunch_status s = check_all_kinds(doc, hn_source_json(src, "tokenizer_config.json"),
                                     hn_source_json(src, "special_tokens_map.json"), err);
    if (s) return s;
    s = hn_hf_pipeline_read(&p, t, doc, err);
    if (!s) s = hn_hf_read_model(t, &p, src, err);
    hn_hf_pipeline_fini(&p);
    if (!s) s = hn_hf_read_decoder(t, doc, err);
    if (!s) s = read_ends(t, src, err);
    if (!s)
        s = read_added(t, hn_source_json(src, "tokenizer_config.json"), json_object_get(doc, "post_processor"), err);
    return s;
}
