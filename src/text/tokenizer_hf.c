/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hf.c - a tokenizer from a Hugging Face folder: tokenizer.json, tokenizer_config.json, generation_config.json.
 *
 * tokenizer.json describes a pipeline of any pieces. We read the pipelines that are one of our two families, byte-level
 * BPE and SentencePiece BPE, and refuse any other piece by its name: a tokenizer that is nearly right is worse than none.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer_private.h"

#define FILE_NAME "tokenizer.json: "
static const char SPACE_MARK[] = "\xE2\x96\x81";

static const char *string_of(const json_t *object, const char *key) { /* "" if absent or no string */
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static bool bool_of(const json_t *object, const char *key) {
    return json_is_true(json_object_get(object, key));
}

static hunch_status refuse_piece(const char *what, const char *type, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, FILE_NAME "%s \"%.60s\" is not supported", what, type);
}

/* ---- normalizer and pre-tokenizer ---- */

static hunch_status read_normalizer(hn_tokenizer *t, const json_t *n, int depth, hunch_error *err) {
    const char *type = string_of(n, "type");
    if (!n || json_is_null(n)) return HUNCH_OK;
    if (strcmp(type, "Sequence") == 0 && depth < 4) {
        size_t i;
        json_t *part;
        hunch_status s = HUNCH_OK;
        json_array_foreach(json_object_get(n, "normalizers"), i, part) {
            if (s == HUNCH_OK) s = read_normalizer(t, part, depth + 1, err);
        }
        return s;
    }
    if (strcmp(type, "Prepend") == 0 && strcmp(string_of(n, "prepend"), SPACE_MARK) == 0) {
        t->prefix = HN_PREFIX_EACH;
        t->sentencepiece = true;
        return HUNCH_OK;
    }
    if (strcmp(type, "Replace") == 0 && strcmp(string_of(json_object_get(n, "pattern"), "String"), " ") == 0 &&
        strcmp(string_of(n, "content"), SPACE_MARK) == 0) {
        t->sentencepiece = true;
        return HUNCH_OK;
    }
    return refuse_piece("normalizer", type, err);
}

typedef struct pattern_list {
    const char *patterns[HN_PRETOK_MAX_PATTERNS];
    size_t n;
    bool byte_level;
} pattern_list;

static hunch_status add_pattern(pattern_list *list, const char *pattern, hunch_error *err) {
    if (list->n == HN_PRETOK_MAX_PATTERNS) return refuse_piece("pre-tokenizer", "of so many patterns", err);
    list->patterns[list->n++] = pattern;
    return HUNCH_OK;
}

static hunch_status read_metaspace(hn_tokenizer *t, const json_t *p, hunch_error *err) {
    const char *scheme = string_of(p, "prepend_scheme");
    if (!*scheme) scheme = bool_of(p, "add_prefix_space") ? "always" : "never";
    if (strcmp(string_of(p, "replacement"), SPACE_MARK) != 0)
        return refuse_piece("Metaspace", string_of(p, "replacement"), err);
    if (!json_is_false(json_object_get(p, "split"))) return refuse_piece("Metaspace", "split", err);
    t->sentencepiece = t->prefix_unless_space = true;
    t->prefix = strcmp(scheme, "always") == 0  ? HN_PREFIX_EACH
                : strcmp(scheme, "first") == 0 ? HN_PREFIX_FIRST
                                               : HN_PREFIX_NONE;
    return HUNCH_OK;
}

static hunch_status read_split(pattern_list *list, const json_t *p, hunch_error *err) {
    const char *regex = string_of(json_object_get(p, "pattern"), "Regex");
    if (!*regex) return refuse_piece("pre-tokenizer Split with the pattern", "String", err);
    if (strcmp(string_of(p, "behavior"), "Isolated") != 0)
        return refuse_piece("pre-tokenizer Split with the behavior", string_of(p, "behavior"), err);
    if (bool_of(p, "invert")) return refuse_piece("pre-tokenizer Split with", "invert", err);
    return add_pattern(list, regex, err);
}

static hunch_status read_pretokenizer(hn_tokenizer *t, pattern_list *list, const json_t *p, int depth,
                                      hunch_error *err) {
    const char *type = string_of(p, "type");
    if (!p || json_is_null(p)) return HUNCH_OK;
    if (list->byte_level) return refuse_piece("after ByteLevel, the pre-tokenizer", type, err);
    if (strcmp(type, "Sequence") == 0 && depth < 4) {
        size_t i;
        json_t *part;
        hunch_status s = HUNCH_OK;
        json_array_foreach(json_object_get(p, "pretokenizers"), i, part) {
            if (s == HUNCH_OK) s = read_pretokenizer(t, list, part, depth + 1, err);
        }
        return s;
    }
    if (strcmp(type, "Split") == 0) return read_split(list, p, err);
    if (strcmp(type, "Digits") == 0)
        return add_pattern(list, bool_of(p, "individual_digits") ? "\\p{N}" : "\\p{N}+", err);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(t, p, err);
    if (strcmp(type, "ByteLevel") != 0) return refuse_piece("pre-tokenizer", type, err);
    if (bool_of(p, "add_prefix_space")) return refuse_piece("pre-tokenizer ByteLevel with", "add_prefix_space", err);
    list->byte_level = true;
    return json_is_false(json_object_get(p, "use_regex")) ? HUNCH_OK : add_pattern(list, hn_pretok_gpt2, err);
}

static hunch_status read_pipeline(hn_tokenizer *t, const json_t *doc, hunch_error *err) {
    pattern_list list = {.n = 0};
    hunch_status s = read_normalizer(t, json_object_get(doc, "normalizer"), 0, err);
    if (s == HUNCH_OK) s = read_pretokenizer(t, &list, json_object_get(doc, "pre_tokenizer"), 0, err);
    if (s != HUNCH_OK) return s;
    if (t->sentencepiece == list.byte_level || (t->sentencepiece && list.n)) {
        return hn_fail(err, HUNCH_REFUSED,
                       FILE_NAME "expected a ByteLevel pre-tokenizer, or spaces as U+2581 without patterns");
    }
    t->drops_space = t->prefix != HN_PREFIX_NONE;
    return t->sentencepiece ? HUNCH_OK : hn_pretok_open(&t->pretok, list.patterns, list.n, err);
}

/* ---- tokens ---- */

static hunch_status id_of(const json_t *value, const char *what, int32_t *out, hunch_error *err) {
    json_int_t id = json_integer_value(value);
    if (!json_is_integer(value) || id < 0 || id >= HN_MAX_VOCAB) {
        return hn_fail(err, HUNCH_REFUSED, FILE_NAME "%s: expected an id from 0 to %d", what, HN_MAX_VOCAB - 1);
    }
    *out = (int32_t)id;
    return HUNCH_OK;
}

/* Vocabulary size (the highest id and one more) and bytes of all texts. */
static hunch_status measure(json_t *vocab, const json_t *added, size_t *n, size_t *total, hunch_error *err) {
    const char *text;
    json_t *value;
    size_t i;
    int32_t id = 0;
    *n = *total = 0;
    json_object_foreach(vocab, text, value) {
        hunch_status s = id_of(value, "model.vocab", &id, err);
        if (s != HUNCH_OK) return s;
        if ((size_t)id >= *n) *n = (size_t)id + 1;
        *total += strlen(text);
    }
    json_array_foreach(added, i, value) {
        hunch_status s = id_of(json_object_get(value, "id"), "added_tokens", &id, err);
        if (s != HUNCH_OK) return s;
        if (!*string_of(value, "content"))
            return hn_fail(err, HUNCH_REFUSED, FILE_NAME "added_tokens[%zu] has no content", i);
        if ((size_t)id >= *n) *n = (size_t)id + 1;
        *total += strlen(string_of(value, "content"));
    }
    return HUNCH_OK;
}

static hunch_status put_once(hn_tokenizer *t, int32_t id, hn_token_kind kind, const char *text, hunch_error *err) {
    if (t->pieces[id].len) return hn_fail(err, HUNCH_REFUSED, FILE_NAME "two tokens have the id %d", id);
    hunch_status s = hn_vocab_put(t, id, kind, text, strlen(text), err);
    if (s != HUNCH_OK) hn_error_prefix(err, "tokenizer.json");
    return s;
}

static hunch_status put_added(hn_tokenizer *t, const json_t *added, hunch_error *err) {
    size_t i;
    json_t *value;
    json_array_foreach(added, i, value) {
        int32_t id = (int32_t)json_integer_value(json_object_get(value, "id"));
        const char *text = string_of(value, "content");
        if (bool_of(value, "single_word")) return refuse_piece("added token with", "single_word", err);
        hunch_status s = put_once(t, id, bool_of(value, "special") ? HN_TOKEN_CONTROL : HN_TOKEN_USER, text, err);
        if (s != HUNCH_OK) return s;
        t->marks[id] = (uint8_t)((bool_of(value, "lstrip") ? HN_MARK_EAT_LEFT : 0) |
                                 (bool_of(value, "rstrip") ? HN_MARK_EAT_RIGHT : 0));
    }
    return HUNCH_OK;
}

static bool is_byte_name(const char *s) {
    return strlen(s) == 6 && strncmp(s, "<0x", 3) == 0 && s[5] == '>' && strspn(s + 3, "0123456789ABCDEFabcdef") == 2;
}

static hunch_status read_tokens(hn_tokenizer *t, const json_t *doc, const json_t *model, hunch_error *err) {
    json_t *vocab = json_object_get(model, "vocab"), *value;
    const json_t *added = json_object_get(doc, "added_tokens");
    const char *text;
    size_t n, total, i;
    if (!json_is_object(vocab))
        return hn_fail(err, HUNCH_REFUSED, FILE_NAME "model.vocab is missing, expected an object");
    hunch_status s = measure(vocab, added, &n, &total, err);
    if (s == HUNCH_OK) s = hn_vocab_init(t, n, total, err);
    if (s != HUNCH_OK) return s;
    /* Added tokens first: the vocabulary may list them again. */
    s = put_added(t, added, err);
    json_object_foreach(vocab, text, value) {
        int32_t id = (int32_t)json_integer_value(value);
        bool again = t->pieces[id].len && t->kinds[id] != HN_TOKEN_NORMAL && t->kinds[id] != HN_TOKEN_BYTE;
        if (s != HUNCH_OK) break;
        if (again && strcmp(t->pieces[id].bytes, text) == 0) continue;
        s = put_once(t, id, t->byte_fallback && is_byte_name(text) ? HN_TOKEN_BYTE : HN_TOKEN_NORMAL, text, err);
    }
    const char *unknown = string_of(model, "unk_token");
    for (i = 0; i < n && *unknown && s == HUNCH_OK; i++) {
        if (strcmp(t->pieces[i].bytes, unknown) != 0) continue;
        t->unknown = (int32_t)i;
        t->kinds[i] = HN_TOKEN_UNKNOWN;
    }
    return s;
}

static hunch_status read_merges(hn_tokenizer *t, const json_t *merges, hunch_error *err) {
    size_t n = json_array_size(merges);
    hunch_status s = HUNCH_OK;
    if (!json_is_array(merges))
        return hn_fail(err, HUNCH_REFUSED, FILE_NAME "model.merges is missing, expected an array");
    if (!hn_bpe_init(&t->merges, n)) return hn_fail_memory(err, "the merges", n * sizeof(hn_merge));
    for (size_t i = 0; i < n && s == HUNCH_OK; i++) {
        const json_t *m = json_array_get(merges, i);
        char where[64];
        snprintf(where, sizeof where, FILE_NAME "model.merges[%zu]", i);
        const char *left = json_string_value(json_array_get(m, 0)), *right = json_string_value(json_array_get(m, 1));
        if (json_is_string(m)) {
            s = hn_vocab_add_merge_line(t, json_string_value(m), json_string_length(m), (uint32_t)i, where, err);
        } else if (left && right && json_array_size(m) == 2) {
            s = hn_vocab_add_merge(t, left, strlen(left), right, strlen(right), (uint32_t)i, where, err);
        } else {
            s = hn_fail(err, HUNCH_REFUSED, "%s: expected \"a b\" or [\"a\", \"b\"]", where);
        }
    }
    return s;
}

static hunch_status read_model(hn_tokenizer *t, const json_t *doc, hunch_error *err) {
    const json_t *model = json_object_get(doc, "model");
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (strcmp(string_of(model, "type"), "BPE") != 0) return refuse_piece("model", string_of(model, "type"), err);
    for (int i = 0; i < 2; i++) {
        if (*string_of(model, empty[i])) return refuse_piece("model with", empty[i], err);
    }
    if (json_number_value(json_object_get(model, "dropout")) != 0) return refuse_piece("model with", "dropout", err);
    t->byte_fallback = bool_of(model, "byte_fallback");
    t->fuse_unknown = bool_of(model, "fuse_unk");
    t->ignore_merges = bool_of(model, "ignore_merges");
    hunch_status s = read_tokens(t, doc, model, err);
    if (s == HUNCH_OK) s = hn_vocab_finish(t, err);
    return s == HUNCH_OK ? read_merges(t, json_object_get(model, "merges"), err) : s;
}

/* ---- which tokens begin and end ---- */

/* A token of tokenizer_config.json: its text, or an object with it. */
static int32_t token_named(const hn_tokenizer *t, const json_t *config, const char *key) {
    const json_t *value = json_object_get(config, key);
    const char *name = json_is_object(value) ? string_of(value, "content") : string_of(config, key);
    return hn_vocab_find_named(t, name, strlen(name));
}

/* "bos_token_id": 1, or [1, 2]; *first is the first, ends marks them all. A null is absent. */
static hunch_status read_ids(hn_tokenizer *t, const json_t *config, const char *file, const char *key, bool ends,
                             int32_t *first, hunch_error *err) {
    const json_t *value = json_object_get(config, key);
    if (!value || json_is_null(value)) return HUNCH_OK;
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        json_int_t v = json_integer_value(id);
        if (!json_is_integer(id) || v < 0 || v > INT32_MAX) {
            return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected a token id or an array of them", file, key);
        }
        if (v >= t->vocab) continue; /* the model may have more rows than the tokenizer tokens */
        if (ends) t->marks[v] |= HN_MARK_END;
        if (*first < 0) *first = (int32_t)v;
    }
    return HUNCH_OK;
}

/* Does the post-processor put a token in front (index 0) or behind (the last) of a single text? */
static bool template_has(const json_t *post, const char *token, bool front, int depth) {
    size_t i;
    json_t *part;
    if (strcmp(string_of(post, "type"), "Sequence") == 0 && depth < 4) {
        json_array_foreach(json_object_get(post, "processors"), i, part) {
            if (template_has(part, token, front, depth + 1)) return true;
        }
        return false;
    }
    const json_t *single = json_object_get(post, "single");
    size_t n = json_array_size(single);
    const json_t *at = json_object_get(json_array_get(single, front || !n ? 0 : n - 1), "SpecialToken");
    return n && at && strcmp(string_of(at, "id"), token) == 0;
}

static void read_added(hn_tokenizer *t, const json_t *config, const json_t *post) {
    const json_t *bos = json_object_get(config, "add_bos_token"), *eos = json_object_get(config, "add_eos_token");
    t->adds_bos = t->bos >= 0 &&
                  (json_is_boolean(bos) ? json_is_true(bos) : template_has(post, t->pieces[t->bos].bytes, true, 0));
    t->adds_eos = t->eos >= 0 &&
                  (json_is_boolean(eos) ? json_is_true(eos) : template_has(post, t->pieces[t->eos].bytes, false, 0));
}

static hunch_status read_ends(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    const json_t *config = hn_source_json(src, "tokenizer_config.json");
    t->bos = token_named(t, config, "bos_token");
    t->eos = token_named(t, config, "eos_token");
    if (t->eos >= 0) t->marks[t->eos] |= HN_MARK_END;
    static const char *const files[] = {"generation_config.json", "config.json"};
    for (int i = 0; i < 2; i++) {
        const json_t *doc = hn_source_json(src, files[i]);
        hunch_status s = read_ids(t, doc, files[i], "bos_token_id", false, &t->bos, err);
        if (s == HUNCH_OK) s = read_ids(t, doc, files[i], "eos_token_id", true, &t->eos, err);
        if (s != HUNCH_OK) return s;
    }
    hn_vocab_mark_known_ends(t);
    return HUNCH_OK;
}

hunch_status hn_tokenizer_from_hf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err) {
    const json_t *doc = hn_source_json(src, "tokenizer.json");
    *found = doc != NULL;
    if (!doc) return HUNCH_OK;
    hunch_status s = read_pipeline(t, doc, err);
    if (s == HUNCH_OK) s = read_model(t, doc, err);
    if (s == HUNCH_OK) s = read_ends(t, src, err);
    if (s == HUNCH_OK)
        read_added(t, hn_source_json(src, "tokenizer_config.json"), json_object_get(doc, "post_processor"));
    return s;
}
