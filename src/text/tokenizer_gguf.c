/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_gguf.c - a tokenizer from a GGUF file's metadata, the keys tokenizer.ggml.*.
 *
 * Reads the kinds "gpt2" (byte-level BPE) and "llama" (SentencePiece BPE by scores). The tables are built by vocabulary.c.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer_private.h"

#define KEY "tokenizer.ggml."

/* An array of a key, of `count` entries unless that is 0. */
static hunch_status array_of(const hn_source *src, const char *key, bool strings, size_t count, const hn_array **out,
                             hunch_error *err) {
    hunch_status s = hn_source_array(src, key, out, err);
    if (s != HUNCH_OK || !*out) return s;
    if (hn_array_is_strings(*out) != strings) {
        return hn_fail(err, HUNCH_REFUSED, "%s: expected an array of %s", key, strings ? "strings" : "numbers");
    }
    size_t n = hn_array_count(*out);
    if (count && n != count) {
        return hn_fail(err, HUNCH_REFUSED, "%s: %zu entries, expected %zu, one a token", key, n, count);
    }
    return HUNCH_OK;
}

static hunch_status need_array(const hn_source *src, const char *key, bool strings, size_t count, const hn_array **out,
                               hunch_error *err) {
    hunch_status s = array_of(src, key, strings, count, out, err);
    if (s == HUNCH_OK && !*out) s = hn_fail(err, HUNCH_REFUSED, "%s is missing, expected an array", key);
    return s;
}

/* Token types; without them every token is plain, and hn_gguf's special ids become control tokens later. */
static hunch_status read_tokens(hn_tokenizer *t, const hn_source *src, bool *typed, hunch_error *err) {
    const hn_array *tokens, *types;
    hunch_status s = need_array(src, KEY "tokens", true, 0, &tokens, err);
    if (s != HUNCH_OK) return s;
    size_t n = hn_array_count(tokens), total = 0, len;
    s = array_of(src, KEY "token_type", false, n, &types, err);
    if (s != HUNCH_OK) return s;
    *typed = types != NULL;
    for (size_t i = 0; i < n; i++) {
        hn_array_string(tokens, i, &len);
        total += len; /* of bytes that are mapped */
    }
    s = hn_vocab_init(t, n, total, err);
    for (size_t i = 0; i < n && s == HUNCH_OK; i++) {
        double type = types ? hn_array_number(types, i) : HN_TOKEN_NORMAL;
        if (type == 0) type = HN_TOKEN_NORMAL; /* "undefined" */
        if (!(type >= HN_TOKEN_NORMAL && type <= HN_TOKEN_BYTE)) {
            return hn_fail(err, HUNCH_REFUSED, KEY "token_type[%zu] is %g, expected 1 to 6", i, type);
        }
        const char *text = hn_array_string(tokens, i, &len);
        s = hn_vocab_put(t, (int32_t)i, (hn_token_kind)type, text, len, err);
        if (s != HUNCH_OK) hn_error_prefix(err, KEY "tokens");
    }
    return s;
}

static hunch_status read_id(const hn_tokenizer *t, const hn_source *src, const char *key, int32_t *out,
                            hunch_error *err) {
    uint64_t id;
    bool found;
    hunch_status s = hn_source_u64(src, key, &id, &found, err);
    if (s != HUNCH_OK || !found) return s;
    if (id >= (uint64_t)t->vocab) {
        return hn_fail(err, HUNCH_REFUSED, "%s is %llu, but the vocabulary has %d tokens", key, (unsigned long long)id,
                       t->vocab);
    }
    *out = (int32_t)id;
    return HUNCH_OK;
}

/* eot and eom: the ends of a turn and of a message that is not the last of its turn. The unknown token is SentencePiece's
 * alone: byte-level files name one too, but what they were converted from never uses it. */
static hunch_status read_ids(hn_tokenizer *t, const hn_source *src, bool typed, hunch_error *err) {
    int32_t eot = -1, eom = -1;
    const struct {
        const char *key;
        int32_t *out;
        bool ends, control;
    } ids[] = {
        {KEY "bos_token_id", &t->bos, false, true},
        {KEY "eos_token_id", &t->eos, true, true},
        {KEY "eot_token_id", &eot, true, true},
        {KEY "eom_token_id", &eom, true, true},
        {KEY "unknown_token_id", &t->unknown, false, false},
    };
    if (t->sentencepiece && t->vocab > 2) { /* what SentencePiece's trainer makes of them by default */
        t->unknown = 0;
        t->bos = 1;
        t->eos = 2;
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        hunch_status s = read_id(t, src, ids[i].key, ids[i].out, err);
        if (s != HUNCH_OK) return s;
        int32_t id = *ids[i].out;
        if (id < 0) continue;
        if (ids[i].ends) t->marks[id] |= HN_MARK_END;
        if (!typed && ids[i].control) t->kinds[id] = HN_TOKEN_CONTROL;
    }
    if (!t->sentencepiece) t->unknown = -1;
    return HUNCH_OK;
}

static hunch_status read_merges(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    const hn_array *merges;
    hunch_status s = need_array(src, KEY "merges", true, 0, &merges, err);
    if (s != HUNCH_OK) return s;
    size_t n = hn_array_count(merges), len;
    if (n > UINT32_MAX || !hn_bpe_init(&t->merges, n)) return hn_fail_memory(err, "the merges", n * sizeof(hn_merge));
    for (size_t i = 0; i < n && s == HUNCH_OK; i++) {
        char where[64];
        snprintf(where, sizeof where, KEY "merges[%zu]", i);
        const char *line = hn_array_string(merges, i, &len);
        s = hn_vocab_add_merge_line(t, line, len, (uint32_t)i, where, err);
    }
    return s;
}

static hunch_status read_scores(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    const hn_array *array;
    size_t n = (size_t)t->vocab;
    hunch_status s = need_array(src, KEY "scores", false, n, &array, err);
    if (s != HUNCH_OK) return s;
    double *scores = hn_alloc(n * sizeof *scores);
    if (!scores) return hn_fail_memory(err, "the scores", n * sizeof *scores);
    for (size_t i = 0; i < n && s == HUNCH_OK; i++) {
        scores[i] = hn_array_number(array, i);
        if (isnan(scores[i])) s = hn_fail(err, HUNCH_REFUSED, KEY "scores[%zu] is not a number", i);
    }
    if (s == HUNCH_OK) s = hn_vocab_merges_from_scores(t, scores, err);
    hn_free(scores);
    return s;
}

static hunch_status read_flag(const hn_source *src, const char *key, bool *out, hunch_error *err) {
    bool found;
    return hn_source_bool(src, key, out, &found, err);
}

static hunch_status open_pretok(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    const char *name = "default";
    size_t len = strlen(name), n = 0;
    bool found;
    const hn_pretok_kind *kind;
    hunch_status s = hn_source_str(src, KEY "pre", &name, &len, &found, err);
    if (s == HUNCH_OK) s = hn_pretok_find(&kind, name, len, err);
    if (s != HUNCH_OK) return s;
    t->ignore_merges = kind->ignore_merges;
    t->adds_bos = kind->adds_bos;
    while (n < HN_PRETOK_MAX_PATTERNS && kind->patterns[n]) n++;
    return hn_pretok_open(&t->pretok, kind->patterns, n, err);
}

static bool has_all_bytes(const hn_tokenizer *t) {
    for (int b = 0; b < 256; b++) {
        if (t->byte_token[b] < 0) return false;
    }
    return true;
}

hunch_status hn_tokenizer_from_gguf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err) {
    const char *model;
    size_t len;
    bool typed = true;
    hunch_status s = hn_source_str(src, KEY "model", &model, &len, found, err);
    if (s != HUNCH_OK || !*found) return s;
    if (strcmp(model, "none") == 0 || strcmp(model, "no_vocab") == 0) {
        *found = false;
        return HUNCH_OK;
    }
    t->sentencepiece = strcmp(model, "llama") == 0;
    if (!t->sentencepiece && strcmp(model, "gpt2") != 0) {
        return hn_fail(err, HUNCH_REFUSED, KEY "model: unknown tokenizer \"%.60s\", expected gpt2 or llama", model);
    }
    s = read_tokens(t, src, &typed, err);
    if (s == HUNCH_OK) s = read_ids(t, src, typed, err);
    if (s == HUNCH_OK) s = hn_vocab_finish(t, err);
    if (s != HUNCH_OK) return s;
    if (t->sentencepiece) {
        bool prefix = true;
        t->adds_bos = t->fuse_unknown = true;
        t->byte_fallback = has_all_bytes(t);
        s = read_scores(t, src, err);
        if (s == HUNCH_OK) s = read_flag(src, KEY "add_space_prefix", &prefix, err);
        t->prefix = prefix ? HN_PREFIX_EACH : HN_PREFIX_NONE;
        t->drops_space = prefix;
    } else {
        s = open_pretok(t, src, err);
        if (s == HUNCH_OK) s = read_merges(t, src, err);
    }
    if (s == HUNCH_OK) s = read_flag(src, KEY "add_bos_token", &t->adds_bos, err);
    if (s == HUNCH_OK) s = read_flag(src, KEY "add_eos_token", &t->adds_eos, err);
    if (s != HUNCH_OK) return s;
    hn_vocab_mark_known_ends(t);
    t->adds_bos = t->adds_bos && t->bos >= 0;
    t->adds_eos = t->adds_eos && t->eos >= 0;
    return HUNCH_OK;
}
