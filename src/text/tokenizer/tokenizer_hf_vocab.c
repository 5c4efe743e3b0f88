/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hf_vocab.c - the model and the added tokens of a tokenizer.json: BPE with merges, Unigram with scores. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/tokenizer_hf.h"

static hunch_status id_of(const json_t *value, const char *what, int32_t *out, hunch_error *err) {
    json_int_t id = json_integer_value(value);
    if (!json_is_integer(value) || id < 0 || id >= HN_MAX_VOCAB) {
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "%s: expected an id from 0 to %d", what, HN_MAX_VOCAB - 1);
    }
    *out = (int32_t)id;
    return HUNCH_OK;
}

/* ---- the model's tokens: {"text": id, …} of BPE, [["text", score], …] of Unigram ---- */

typedef hunch_status token_fn(void *user, const char *text, int32_t id, double score, hunch_error *err);

static hunch_status each_of_object(json_t *vocab, token_fn *token, void *user, hunch_error *err) {
    const char *text;
    json_t *value;
    hunch_status s = HUNCH_OK;
    json_object_foreach(vocab, text, value) {
        int32_t id = 0;
        s = id_of(value, "model.vocab", &id, err);
        if (!s) s = token(user, text, id, NAN, err);
        if (s) return s;
    }
    return HUNCH_OK;
}

static hunch_status each_of_list(const json_t *vocab, token_fn *token, void *user, hunch_error *err) {
    size_t i;
    json_t *entry;
    if (json_array_size(vocab) > HN_MAX_VOCAB) {
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "model.vocab has %zu tokens, at most %d are read",
                       json_array_size(vocab), HN_MAX_VOCAB);
    }
    json_array_foreach(vocab, i, entry) {
        const char *text = json_string_value(json_array_get(entry, 0));
        const json_t *score = json_array_get(entry, 1);
        if (!text || !json_is_number(score))
            return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "model.vocab[%zu]: expected [\"token\", score]", i);
        hunch_status s = token(user, text, (int32_t)i, json_number_value(score), err);
        if (s) return s;
    }
    return HUNCH_OK;
}

static hunch_status each_token(const json_t *model, token_fn *token, void *user, hunch_error *err) {
    json_t *vocab = json_object_get(model, "vocab");
    bool unigram = strcmp(hn_hf_string(model, "type"), "Unigram") == 0;
    if (unigram ? !json_is_array(vocab) : !json_is_object(vocab)) {
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "model.vocab is missing, expected %s",
                       unigram ? "an array" : "an object");
    }
    return unigram ? each_of_list(vocab, token, user, err) : each_of_object(vocab, token, user, err);
}

typedef struct size {
    size_t n, bytes; /* the highest id plus one; bytes of all texts */
} size;

static hunch_status measure_token(void *user, const char *text, int32_t id, double score, hunch_error *err) {
    size *m = user;
    (void)score;
    (void)err;
    if ((size_t)id >= m->n) m->n = (size_t)id + 1;
    m->bytes += strlen(text);
    return HUNCH_OK;
}

static hunch_status measure_added(const json_t *added, size *m, hunch_error *err) {
    size_t i;
    json_t *value;
    json_array_foreach(added, i, value) {
        int32_t id = 0;
        hunch_status s = id_of(json_object_get(value, "id"), "added_tokens", &id, err);
        if (s) return s;
        const char *text = hn_hf_string(value, "content");
        if (!*text) return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "added_tokens[%zu] has no content", i);
        measure_token(m, text, id, 0, err);
    }
    return HUNCH_OK;
}

typedef struct filler {
    hn_tokenizer *t;
    const hn_source *src;
    double *scores; /* Unigram */
    /* tokens of the vocabulary that the folder's other files make special, though added_tokens does not list them */
    const char *named[2];
    int32_t named_id[2]; /* -1: none */
} filler;

static hunch_status put_once(hn_tokenizer *t, int32_t id, hn_token_kind kind, const char *text, hunch_error *err) {
    if (t->kinds[id] != HN_TOKEN_UNUSED) /* not the length, as a token may be empty */
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "two tokens have the id %d", id);
    hunch_status s = hn_vocab_put(t, id, kind, text, strlen(text), err);
    if (s) hn_error_prefix(err, "tokenizer.json");
    return s;
}

/* True if the id is an added token of this name. */
static bool is_added_as(const hn_tokenizer *t, int32_t id, const char *text) {
    hn_token_kind kind = t->kinds[id];
    return (kind == HN_TOKEN_CONTROL || kind == HN_TOKEN_USER) && hn_vocab_is_spelled(t, id, text, strlen(text));
}

static hunch_status put_token(void *user, const char *text, int32_t id, double score, hunch_error *err) {
    filler *f = user;
    hn_tokenizer *t = f->t;
    if (f->scores) f->scores[id] = score;
    if (is_added_as(t, id, text)) {
        t->marks[id] &= (uint8_t)~HN_MARK_NAME;
        return HUNCH_OK;
    }
    bool byte = t->byte_fallback && hn_vocab_byte_value(text, strlen(text)) >= 0;
    return put_once(t, id, byte ? HN_TOKEN_BYTE : HN_TOKEN_NORMAL, text, err);
}

static hunch_status put_added(hn_tokenizer *t, const json_t *added, hunch_error *err) {
    size_t i;
    json_t *value;
    hunch_status s = HUNCH_OK;
    json_array_foreach(added, i, value) {
        int32_t id = (int32_t)json_integer_value(json_object_get(value, "id"));
        hn_token_kind kind = hn_hf_bool(value, "special") ? HN_TOKEN_CONTROL : HN_TOKEN_USER;
        s = put_once(t, id, kind, hn_hf_string(value, "content"), err);
        if (s) return s;
        t->marks[id] |= HN_MARK_NAME; /* until the vocabulary lists it */
    }
    return HUNCH_OK;
}

/* Those that begin and end texts are special, as transformers adds them: never made of text, matched by name where names are. */
static hunch_status put_named(filler *f, const json_t *model, hunch_error *err) {
    static const char *const keys[] = {"bos_token", "eos_token"};
    const json_t *vocab = json_object_get(model, "vocab");
    hunch_status s = HUNCH_OK;
    for (int k = 0; !s && k < 2; k++) {
        const json_t *id;
        const char *name = hn_hf_token_of(f->src, keys[k], vocab, &id);
        if (!name) continue;
        const json_int_t v = json_integer_value(id);
        const bool byte = f->t->byte_fallback && hn_vocab_byte_value(name, strlen(name)) >= 0;
        if (byte || f->t->kinds[v] != HN_TOKEN_UNUSED) continue; /* ids were checked */
        f->named[k] = name;
        f->named_id[k] = (int32_t)v;
        s = put_once(f->t, (int32_t)v, HN_TOKEN_CONTROL, name, err);
    }
    return s;
}

/* The unknown token: by its text, or by its number. */
static hunch_status read_unknown(hn_tokenizer *t, const json_t *model, hunch_error *err) {
    const char *name = hn_hf_string(model, "unk_token");
    const json_t *number = json_object_get(model, "unk_id");
    if (number && !json_is_null(number)) {
        hunch_status s = id_of(number, "model.unk_id", &t->unknown, err);
        if (!s && t->unknown >= t->vocab)
            s = hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "model.unk_id is %d, but there are %d tokens", t->unknown,
                        t->vocab);
        if (s) return s;
    }
    for (int32_t i = 0; i < t->vocab && *name; i++) {
        if (strcmp(t->pieces[i].bytes, name) == 0) t->unknown = i;
    }
    if (t->unknown >= 0) t->kinds[t->unknown] = HN_TOKEN_UNKNOWN;
    return HUNCH_OK;
}

/* Added tokens first: the vocabulary may list them again. */
static hunch_status read_tokens(filler *f, const json_t *doc, const json_t *model, hunch_error *err) {
    const json_t *added = json_object_get(doc, "added_tokens");
    size m = {0};
    hunch_status s = each_token(model, measure_token, &m, err);
    if (!s) s = measure_added(added, &m, err);
    if (!s) s = hn_vocab_init(f->t, m.n, m.bytes, err);
    if (!s && f->t->is_unigram) {
        f->scores = hn_alloc(m.n * sizeof *f->scores);
        if (!f->scores) return hn_fail_memory(err, "the scores", m.n * sizeof *f->scores);
        for (size_t i = 0; i < m.n; i++) f->scores[i] = NAN;
    }
    if (!s) s = put_added(f->t, added, err);
    if (!s) s = put_named(f, model, err);
    if (!s) s = each_token(model, put_token, f, err);
    if (!s) s = read_unknown(f->t, model, err);
    return s ? s : hn_vocab_finish(f->t, err);
}

/* ---- names ---- */

static bool is_normalized(const json_t *added) {
    const json_t *said = json_object_get(added, "normalized");
    return said ? json_is_true(said) : !hn_hf_bool(added, "special");
}

static bool any_normalized(const json_t *added) {
    size_t i;
    json_t *value;
    json_array_foreach(added, i, value) {
        if (is_normalized(value)) return true;
    }
    return false;
}

/* Adds a name as it is in normalised text. Such names are matched second, even without a normalizer (w: NULL). */
static hunch_status add_normal_name(hn_tokenizer *t, hn_normal_work *w, const char *name, int32_t id, uint8_t marks,
                                    hunch_error *err) {
    hn_normal_text n = {.bytes = name, .len = strlen(name)};
    hunch_status s = w ? hn_normalize(t->normalizer, w, name, strlen(name), &n, err) : HUNCH_OK;
    if (s) return s;
    return hn_names_add(&t->normal_names, n.bytes, n.len, id, marks) ? HUNCH_OK : hn_fail_memory(err, "a name", n.len);
}

static hunch_status add_names(const filler *f, const json_t *added, hn_normal_work *w, hunch_error *err) {
    hn_tokenizer *t = f->t;
    size_t i;
    json_t *value;
    json_array_foreach(added, i, value) {
        int32_t id = (int32_t)json_integer_value(json_object_get(value, "id"));
        const char *name = hn_hf_string(value, "content");
        uint8_t marks = (uint8_t)((hn_hf_bool(value, "special") ? HN_NAME_SPECIAL : 0) |
                                  (hn_hf_bool(value, "lstrip") ? HN_NAME_EAT_LEFT : 0) |
                                  (hn_hf_bool(value, "rstrip") ? HN_NAME_EAT_RIGHT : 0) |
                                  (hn_hf_bool(value, "single_word") ? HN_NAME_SINGLE_WORD : 0));
        hunch_status s = HUNCH_OK;
        if (is_normalized(value))
            s = add_normal_name(t, w, name, id, marks, err);
        else if (!hn_names_add(&t->names, name, strlen(name), id, marks))
            s = hn_fail_memory(err, "a name", strlen(name));
        if (s) return s;
    }
    for (int k = 0; k < 2; k++)
        if (f->named_id[k] >= 0 && !hn_names_add(&t->names, f->named[k], strlen(f->named[k]), f->named_id[k], HN_NAME_SPECIAL))
            return hn_fail_memory(err, "a name", strlen(f->named[k]));
    if (hn_names_finish(&t->names) && hn_names_finish(&t->normal_names)) return HUNCH_OK;
    return hn_fail_memory(err, "the names of tokens", 0);
}

static hunch_status read_names(const filler *f, const json_t *added, hunch_error *err) {
    const hn_tokenizer *t = f->t;
    hn_normal_work *w = NULL;
    hunch_status s = t->normalizer ? hn_normal_work_open(&w, err) : HUNCH_OK;
    if (!s) s = add_names(f, added, w, err);
    hn_normal_work_close(&w);
    return s;
}

/* ---- merges ---- */

static hunch_status read_merges(hn_tokenizer *t, const json_t *merges, hunch_error *err) {
    size_t n = json_array_size(merges);
    hunch_status s = HUNCH_OK;
    if (!json_is_array(merges))
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "model.merges is missing, expected an array");
    if (!hn_bpe_init(&t->merges, n)) return hn_fail_memory(err, "the merges", n * sizeof(hn_merge));
    for (size_t i = 0; i < n && !s; i++) {
        const json_t *m = json_array_get(merges, i);
        char where[64];
        snprintf(where, sizeof where, HN_HF_FILE "model.merges[%zu]", i);
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

/* Settings of the model; what is not supported, by name. */
static hunch_status read_settings(hn_tokenizer *t, const json_t *model, hunch_error *err) {
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = hn_hf_string(model, "type");
    t->is_unigram = strcmp(type, "Unigram") == 0;
    if (!t->is_unigram && strcmp(type, "BPE") != 0) {
        return hn_fail(err, HUNCH_REFUSED,
                       HN_HF_FILE "a model of type \"%.60s\" is not supported, expected BPE or Unigram", type);
    }
    for (int i = 0; i < 2; i++) {
        if (*hn_hf_string(model, empty[i])) return hn_hf_refuse("model with", empty[i], err);
    }
    if (json_number_value(json_object_get(model, "dropout")) != 0) return hn_hf_refuse("model with", "dropout", err);
    t->byte_fallback = hn_hf_bool(model, "byte_fallback");
    t->fuse_unknown = t->is_unigram || hn_hf_bool(model, "fuse_unk");
    t->ignore_merges = hn_hf_bool(model, "ignore_merges");
    return HUNCH_OK;
}

hunch_status hn_hf_read_model(hn_tokenizer *t, hn_hf_pipeline *p, const hn_source *src, hunch_error *err) {
    const json_t *doc = hn_source_json(src, "tokenizer.json");
    const json_t *model = json_object_get(doc, "model"), *added = json_object_get(doc, "added_tokens");
    filler f = {.t = t, .src = src, .named_id = {-1, -1}};
    hunch_status s = read_settings(t, model, err);
    if (!s) s = hn_hf_pipeline_open(p, t, any_normalized(added), err);
    if (!s) s = read_tokens(&f, doc, model, err);
    if (!s) s = read_names(&f, added, err);
    if (!s)
        s = t->is_unigram ? hn_vocab_unigram(t, f.scores, err) : read_merges(t, json_object_get(model, "merges"), err);
    hn_free(f.scores);
    return s;
}
