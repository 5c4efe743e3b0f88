/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_gguf.c - a tokenizer from a GGUF file's metadata, the keys tokenizer.ggml.*.
 *
 * Reads the kinds "gpt2" (byte-level BPE), "llama" (SentencePiece BPE by scores, or by merges where scores are none), "t5" (Unigram) and
 * "gemma4" (merges over text with U+2581 for spaces). The tables are built by vocabulary.c.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/other_names.h"
#include "text/answer_ends.h"
#include "text/normal/space_mark.h"
#include "text/tokenizer/token_scores.h"
#include "text/tokenizer/tokenizer_private.h"

#define KEY "tokenizer.ggml."
#define OWN_KEY "tokenizer.hunch."

/* The array of a key, with `count` entries unless that is 0. */
static hunch_status array_of(const hn_source *src, const char *key, bool strings, size_t count, const hn_array **out,
                             hunch_error *err) {
    hunch_status s = hn_source_array(src, key, out, err);
    if (s || !*out) return s;
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
    if (!s && !*out) s = hn_fail(err, HUNCH_REFUSED, "%s is missing, expected an array", key);
    return s;
}

/* What the texts of all tokens say together. */
typedef struct vocabulary_texts {
    hn_answer_ends ends;
    size_t listed;     /* tokens in the file, of which the model may not have the last ones */
    size_t bytes;      /* of all of them */
    int named_bytes;   /* distinct ones spelled <0x0A>, of tokens that a text may have */
    bool space_letter; /* the letter of a space in byte-level vocabularies is a token */
    bool space_marks;  /* a token begins with U+2581 */
} vocabulary_texts;

static bool begins_with(const char *text, size_t len, const char *with) {
    return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* Of a file without types, and of 0, "undefined", the plain one; 0: it is no type. */
static int token_type(const hn_array *types, size_t i) {
    const double type = types ? hn_array_number(types, i) : HN_TOKEN_NORMAL;
    if (type == 0) return HN_TOKEN_NORMAL;
    return type >= HN_TOKEN_NORMAL && type <= HN_TOKEN_BYTE ? (int)type : 0;
}

static bool may_be_byte(int type) {
    return type != HN_TOKEN_CONTROL && type != HN_TOKEN_UNKNOWN;
}

static void note_texts(vocabulary_texts *v, const hn_array *tokens, const hn_array *types, size_t n) {
    bool named[256] = {false};
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *text = hn_array_string(tokens, i, &len);
        const int byte = may_be_byte(token_type(types, i)) ? hn_vocab_byte_value(text, len) : -1;
        v->bytes += len; /* of bytes that are mapped */
        if (byte >= 0) named[byte] = true;
        v->space_letter = v->space_letter || (len == 2 && begins_with(text, len, "\xC4\xA0"));
        v->space_marks = v->space_marks || begins_with(text, len, HN_SPACE_MARK);
        hn_answer_ends_note(&v->ends, (int32_t)i, text, len);
    }
    for (int i = 0; i < 256; i++) v->named_bytes += named[i];
}

/* Ids of the end tokens of fill-in-the-middle. */
static const char *const fill_keys[HN_FILL_ENDS] = {KEY "fim_pad_token_id", KEY "fim_rep_token_id",
                                                    KEY "fim_sep_token_id"};

static hunch_status note_fills(hn_answer_ends *e, const hn_source *src, hunch_error *err) {
    hunch_status s = HUNCH_OK;
    uint64_t id;
    for (int k = 0; k < HN_FILL_ENDS && !s; k++) s = hn_source_u64(src, fill_keys[k], &id, &e->fill_named[k], err);
    return s;
}

/* A text that ends an answer makes a control token, and all 256 bytes' names make bytes, whatever their types: converters that take a
 * vocabulary from a tokenizer.json do not know of either. */
static hunch_status put_token(hn_tokenizer *t, const vocabulary_texts *v, const hn_array *types, int32_t id,
                              const char *text, size_t len, hunch_error *err) {
    int type = token_type(types, (size_t)id);
    if (type == 0)
        return hn_fail(err, HUNCH_REFUSED, KEY "token_type[%d] is %g, expected 1 to 6", id, hn_array_number(types, (size_t)id));
    const bool ends = hn_answer_ends_has(&v->ends, id, text, len);
    if (v->named_bytes == 256 && t->spelling == HN_SPELL_MARKS && may_be_byte(type) &&
        hn_vocab_byte_value(text, len) >= 0)
        type = HN_TOKEN_BYTE;
    if (ends) type = HN_TOKEN_CONTROL;
    const hunch_status s = hn_vocab_put(t, id, (hn_token_kind)type, text, len, err);
    if (s) hn_error_prefix(err, KEY "tokens");
    if (!s && ends) t->marks[id] |= HN_MARK_END;
    return s;
}

/* How many of n listed tokens the model has: files of Ollama's have one for images in the list of Gemma 3's that has no row. */
static size_t tokens_used(const hn_source *src, size_t n) {
    const hn_tensor *rows =
        strcmp(hn_source_architecture(src), "gemma3") == 0 ? hn_source_find(src, "token_embd.weight") : NULL;
    return rows && rows->n_dims == 2 && rows->dims[1] > 0 && rows->dims[1] < n ? (size_t)rows->dims[1] : n;
}

/* Token types; without them every token is plain, and read_ids makes the special ids control tokens. */
static hunch_status read_tokens(hn_tokenizer *t, const hn_source *src, vocabulary_texts *v, bool *typed,
                                hunch_error *err) {
    const hn_array *tokens, *types;
    hunch_status s = need_array(src, KEY "tokens", true, 0, &tokens, err);
    if (s) return s;
    size_t n = hn_array_count(tokens), len;
    s = array_of(src, KEY "token_type", false, n, &types, err);
    if (!s) s = note_fills(&v->ends, src, err);
    if (s) return s;
    *typed = types != NULL;
    v->listed = n;
    n = tokens_used(src, n);
    note_texts(v, tokens, types, n);
    if (t->spelling == HN_SPELL_BYTES && v->space_marks && !v->space_letter)
        return hn_fail(err, HUNCH_REFUSED,
                       KEY "model is gpt2, but spaces in " KEY
                           "tokens are U+2581 as in SentencePiece's vocabularies, and how these begin a "
                           "text is not said: convert the model again, with its tokenizer.model");
    s = hn_vocab_init(t, n, v->bytes, err);
    for (size_t i = 0; i < n && !s; i++) {
        const char *text = hn_array_string(tokens, i, &len);
        s = put_token(t, v, types, (int32_t)i, text, len, err);
    }
    return s;
}

static hunch_status read_id(const hn_tokenizer *t, const hn_source *src, const char *key, int32_t *out,
                            hunch_error *err) {
    uint64_t id;
    bool found;
    hunch_status s = hn_source_u64(src, key, &id, &found, err);
    if (s || !found) return s;
    if (id >= (uint64_t)t->vocab) {
        return hn_fail(err, HUNCH_REFUSED, "%s is %llu, but the vocabulary has %d tokens", key, (unsigned long long)id,
                       t->vocab);
    }
    *out = (int32_t)id;
    return HUNCH_OK;
}

/* Special ids by the defaults of SentencePiece's trainer, or of the converter of T5. */
static void default_ids(hn_tokenizer *t) {
    if (t->vocab < 3) return;
    if (t->is_unigram) {
        t->eos = 1;
        t->unknown = 2;
    } else {
        t->unknown = 0;
        t->bos = 1;
        t->eos = 2;
    }
}

/* Ollama's converter writes all ends of generation_config.json as a list. Negative ids are of no token. */
static hunch_status read_more_ends(hn_tokenizer *t, const hn_source *src, bool typed, hunch_error *err) {
    static const char key[] = KEY "eos_token_ids";
    const hn_array *ids;
    hunch_status s = array_of(src, key, false, 0, &ids, err);
    for (size_t i = 0; !s && ids && i < hn_array_count(ids); i++) {
        const double id = hn_array_number(ids, i);
        if (id < 0) continue;
        if (!(id < t->vocab) || id != (double)(int32_t)id)
            return hn_fail(err, HUNCH_REFUSED, "%s[%zu] is %g, expected the id of one of %d tokens", key, i, id,
                           t->vocab);
        t->marks[(int32_t)id] |= HN_MARK_END;
        if (!typed) t->kinds[(int32_t)id] = HN_TOKEN_CONTROL;
        if (t->eos < 0) t->eos = (int32_t)id;
    }
    return s;
}

/* eot and eom: the ends of a turn and of a message that is not the last of its turn. Only SentencePiece has an unknown token:
 * byte-level files name one too, but the models' own tokenizers never use it. */
static hunch_status read_ids(hn_tokenizer *t, const hn_source *src, const hn_answer_ends *e, bool typed,
                             hunch_error *err) {
    int32_t eot = -1, eom = -1, fill[HN_FILL_ENDS] = {-1, -1, -1};
    const struct {
        const char *key;
        int32_t *out;
        bool ends, control;
    } ids[] = {
        {KEY "bos_token_id", &t->bos, false, true}, {KEY "eos_token_id", &t->eos, true, true},
        {KEY "eot_token_id", &eot, true, true},     {KEY "eom_token_id", &eom, true, true},
        {fill_keys[0], &fill[0], true, true},       {fill_keys[1], &fill[1], true, true},
        {fill_keys[2], &fill[2], true, true},       {KEY "unknown_token_id", &t->unknown, false, false},
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        hunch_status s = read_id(t, src, ids[i].key, ids[i].out, err);
        if (s) return s;
        int32_t id = *ids[i].out;
        if (id < 0) continue;
        if (ids[i].ends && !hn_answer_ends_spares(e, t->pieces[id].bytes, t->pieces[id].len))
            t->marks[id] |= HN_MARK_END;
        if (!typed && ids[i].control) t->kinds[id] = HN_TOKEN_CONTROL;
    }
    if (t->spelling != HN_SPELL_MARKS) t->unknown = -1;
    return read_more_ends(t, src, typed, err);
}

static hunch_status read_merges(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    const hn_array *merges;
    hunch_status s = need_array(src, KEY "merges", true, 0, &merges, err);
    if (s) return s;
    size_t n = hn_array_count(merges), len;
    if (n > UINT32_MAX || !hn_bpe_init(&t->merges, n)) return hn_fail_memory(err, "the merges", n * sizeof(hn_merge));
    for (size_t i = 0; i < n && !s; i++) {
        char where[64];
        snprintf(where, sizeof where, KEY "merges[%zu]", i);
        const char *line = hn_array_string(merges, i, &len);
        s = hn_vocab_add_merge_line(t, line, len, (uint32_t)i, where, err);
    }
    return s;
}

/* User-defined tokens score 0; tokens that do not occur in text do not count. */
static double unigram_score(hn_token_kind kind, double score) {
    return kind == HN_TOKEN_NORMAL || kind == HN_TOKEN_UNUSED ? score : kind == HN_TOKEN_USER ? 0 : NAN;
}

/* fault: of hn_scores_fault. */
static hunch_status use_scores(hn_tokenizer *t, double *scores, const char *fault, hunch_error *err) {
    for (int32_t i = 0; i < t->vocab; i++) {
        if (isnan(scores[i])) return hn_fail(err, HUNCH_REFUSED, KEY "scores[%d] is not a number", i);
        if (t->is_unigram) scores[i] = unigram_score(t->kinds[i], scores[i]);
    }
    if (fault)
        return hn_fail(err, HUNCH_REFUSED, KEY "scores has scores %s, as no SentencePiece model has them%s", fault,
                       t->is_unigram ? "" : ", and there is no " KEY "merges");
    return t->is_unigram ? hn_vocab_unigram(t, scores, err) : hn_vocab_merges_from_scores(t, scores, err);
}

/* SentencePiece's vocabularies by scores, or by merges if the file has these and no scores that could be some. */
static hunch_status read_scores(hn_tokenizer *t, const hn_source *src, size_t listed, hunch_error *err) {
    const hn_array *array, *merges;
    const size_t n = (size_t)t->vocab;
    hunch_status s = array_of(src, KEY "merges", true, 0, &merges, err);
    const bool merged = !s && !t->is_unigram && merges && hn_array_count(merges) > 0;
    if (!s)
        s = merged ? array_of(src, KEY "scores", false, listed, &array, err)
                   : need_array(src, KEY "scores", false, listed, &array, err);
    if (s || !array) return s ? s : read_merges(t, src, err);
    double *scores = hn_alloc(n * sizeof *scores);
    if (!scores) return hn_fail_memory(err, "the scores", n * sizeof *scores);
    for (size_t i = 0; i < n; i++) scores[i] = hn_array_number(array, i);
    const char *fault = hn_scores_fault(t, scores);
    s = fault && merged ? read_merges(t, src, err) : use_scores(t, scores, fault, err);
    hn_free(scores);
    return s;
}

static hunch_status read_flag(const hn_source *src, const char *key, bool *out, hunch_error *err) {
    bool found;
    return hn_source_bool(src, key, out, &found, err);
}

static hunch_status open_pretok(hn_tokenizer *t, const hn_pretok_kind *kind, hunch_error *err) {
    t->ignore_merges = kind->ignore_merges;
    t->whole_lines = kind->marks;
    return hn_pretok_open_kind(&t->pretok, kind, err);
}

static bool has_all_bytes(const hn_tokenizer *t) {
    for (int b = 0; b < 256; b++) {
        if (t->byte_token[b] < 0) return false;
    }
    return true;
}

/* The charsmap of a Unigram file. NULL (and *n 0) if there is none. */
static hunch_status read_charsmap(const hn_source *src, char **bytes, size_t *n, hunch_error *err) {
    const hn_array *array;
    hunch_status s = array_of(src, KEY "precompiled_charsmap", false, 0, &array, err);
    *bytes = NULL;
    *n = 0;
    if (s || !array || !hn_array_count(array)) return s;
    size_t count = hn_array_count(array);
    *bytes = hn_alloc(count);
    if (!*bytes) return hn_fail_memory(err, KEY "precompiled_charsmap", count);
    for (size_t i = 0; i < count; i++) {
        double v = hn_array_number(array, i);
        if (!(v >= -128 && v <= 255)) {
            hn_free(*bytes);
            *bytes = NULL;
            return hn_fail(err, HUNCH_REFUSED, KEY "precompiled_charsmap[%zu] is %g, expected a byte", i, v);
        }
        (*bytes)[i] = (char)(int)v;
    }
    *n = count;
    return HUNCH_OK;
}

/* The normalizer of a Unigram file: its charsmap, and runs of spaces merged to one. */
static hunch_status open_normalizer(hn_tokenizer *t, const hn_source *src, bool merge_spaces, hunch_error *err) {
    hn_normal_step steps[2];
    size_t n = 0, n_bytes;
    char *bytes;
    hunch_status s = read_charsmap(src, &bytes, &n_bytes, err);
    if (s) return s;
    if (bytes)
        steps[n++] = (hn_normal_step){
            .kind = HN_NORMAL_CHARSMAP, .charsmap = bytes, .n_charsmap = n_bytes, .rule = HN_CHARSMAP_LONGEST};
    if (merge_spaces) steps[n++] = (hn_normal_step){.kind = HN_NORMAL_SPACES};
    if (n) s = hn_normalizer_open(&t->normalizer, steps, n, err);
    hn_free(bytes);
    return s;
}

/* SentencePiece's two models, byte-pair merges and Unigram, by scores. */
static hunch_status open_scored(hn_tokenizer *t, const hn_source *src, size_t listed, hunch_error *err) {
    bool prefix = strncmp(hn_source_architecture(src), "gemma", strlen("gemma")) != 0,
         merge_spaces = false; /* Gemma's vocabularies never have one in front */
    hunch_status s = read_scores(t, src, listed, err);
    if (!s) s = read_flag(src, KEY "add_space_prefix", &prefix, err);
    if (!s && t->is_unigram) s = read_flag(src, KEY "remove_extra_whitespaces", &merge_spaces, err);
    if (!s && t->is_unigram) s = open_normalizer(t, src, merge_spaces, err);
    t->fuse_unknown = true;
    t->byte_fallback = has_all_bytes(t);
    t->prefix =
        prefix && !merge_spaces ? HN_SPACE_PREFIX_EACH : HN_SPACE_PREFIX_NONE; /* HN_NORMAL_SPACES puts one in front */
    t->drops = prefix || merge_spaces;
    return s;
}

/* hunch's own keys, which `hunch convert` writes as GGUF has none: the ids of tokens with a mark. */
static hunch_status read_marks(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    static const struct {
        const char *key;
        uint8_t mark;
    } lists[] = {{OWN_KEY "lstrip", HN_NAME_EAT_LEFT},
                 {OWN_KEY "rstrip", HN_NAME_EAT_RIGHT},
                 {OWN_KEY "single_word", HN_NAME_SINGLE_WORD}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const hn_array *ids;
        hunch_status s = array_of(src, lists[k].key, false, 0, &ids, err);
        if (s) return s;
        for (size_t i = 0; ids && i < hn_array_count(ids); i++) {
            double id = hn_array_number(ids, i);
            if (!(id >= 0 && id < t->vocab))
                return hn_fail(err, HUNCH_REFUSED, "%s[%zu] is %g, expected the id of a token", lists[k].key, i, id);
            hn_piece p = t->pieces[(int32_t)id];
            hn_names_mark(&t->names, p.bytes, p.len, lists[k].mark);
        }
    }
    return HUNCH_OK;
}

/* Phi-3's names include the white space after them; its files do not specify it, so its model name decides. */
static hunch_status mark_phi3(hn_tokenizer *t, const hn_source *src, hunch_error *err) {
    static const char *const others[] = {"<unk>", "<s>", "<|endoftext|>"};
    const char *name = "";
    bool found;
    hunch_status s = hn_source_str(src, "general.name", &name, NULL, &found, err);
    if (s || !(strcasestr(name, "phi-3") || strcasestr(name, "phi3"))) return s;
    for (int32_t id = 0; id < t->vocab; id++) {
        hn_piece p = t->pieces[id];
        bool other = t->kinds[id] == HN_TOKEN_USER && strcmp(p.bytes, "</s>") != 0;
        for (int i = 0; i < 3; i++) other |= strcmp(p.bytes, others[i]) == 0;
        if (!other) hn_names_mark(&t->names, p.bytes, p.len, HN_NAME_EAT_RIGHT);
    }
    return HUNCH_OK;
}

static hunch_status open_merged(hn_tokenizer *t, const hn_source *src, const hn_pretok_kind *kind, hunch_error *err) {
    t->byte_fallback = kind->marks && has_all_bytes(t);
    t->fuse_unknown = true;
    bool nfc = false;
    hunch_status s = open_pretok(t, kind, err);
    if (!s) s = read_flag(src, OWN_KEY "ignore_merges", &t->ignore_merges, err);
    if (!s) s = read_flag(src, OWN_KEY "nfc", &nfc, err);
    if (!s && nfc) s = hn_normalizer_open(&t->normalizer, &(hn_normal_step){.kind = HN_NORMAL_NFC}, 1, err);
    return s ? s : read_merges(t, src, err);
}

/* Ollama's converter calls Gemma 4's vocabulary llama: it is one of merges if the file has them, and the name of the pre-tokenizer or
 * the architecture says so. */
static bool merged_by_name(const hn_source *src, const hn_pretok_kind **kind) {
    static const char gemma4[] = "gemma4";
    const hn_array *merges = NULL;
    const char *name = "";
    size_t len = 0;
    bool found;
    if (hn_source_array(src, KEY "merges", &merges, NULL) || !merges || !hn_array_count(merges)) return false;
    if (!hn_source_str(src, KEY "pre", &name, &len, &found, NULL) && found && !hn_pretok_find(kind, name, len, NULL) &&
        (*kind)->marks)
        return true;
    return strcmp(hn_source_architecture(src), gemma4) == 0 && !hn_pretok_find(kind, gemma4, strlen(gemma4), NULL);
}

/* kind: of the pre-tokenizer; NULL: the model needs none. */
static hunch_status read_kind(hn_tokenizer *t, const hn_source *src, const char *model, const hn_pretok_kind **kind,
                              hunch_error *err) {
    const char *name = "default";
    size_t len = strlen(name);
    bool found;
    *kind = NULL;
    t->is_unigram = strcmp(model, "t5") == 0;
    t->spelling = HN_SPELL_MARKS;
    if (t->is_unigram) return HUNCH_OK;
    if (strcmp(model, "llama") == 0) {
        if (!merged_by_name(src, kind)) *kind = NULL;
        return HUNCH_OK;
    }
    if (strcmp(model, "gemma4") == 0) return hn_pretok_find(kind, model, strlen(model), err);
    if (strcmp(model, "gpt2") != 0) {
        return hn_fail(
            err, HUNCH_REFUSED,
            KEY "model: tokenizers of the kind \"%.60s\" are not supported, expected gpt2, llama, t5 or gemma4", model);
    }
    hunch_status s = hn_source_str(src, KEY "pre", &name, &len, &found, err);
    const char *other = strcmp(name, "default") == 0 ? hn_other_pretokenizer(hn_source_architecture(src)) : NULL;
    if (other) {
        name = other;
        len = strlen(other);
    }
    if (!s) s = hn_pretok_find(kind, name, len, err);
    if (!s && !(*kind)->marks) t->spelling = HN_SPELL_BYTES;
    return s;
}

/* Whether BOS and EOS are added to a text. llama: the file calls it so, whatever it is read as. */
static hunch_status read_added(hn_tokenizer *t, const hn_source *src, const hn_pretok_kind *kind, bool llama,
                               hunch_error *err) {
    bool bos = llama || (kind && kind->adds_bos), eos = t->is_unigram;
    hunch_status s = read_flag(src, KEY "add_bos_token", &bos, err);
    if (!s) s = read_flag(src, KEY "add_eos_token", &eos, err);
    if (bos && t->bos >= 0) t->front = (hn_added){{t->bos}, 1};
    if (eos && t->eos >= 0) t->back = (hn_added){{t->eos}, 1};
    return s;
}

hunch_status hn_tokenizer_from_gguf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err) {
    const char *model;
    size_t len;
    bool typed = true;
    vocabulary_texts texts = {0};
    const hn_pretok_kind *kind;
    hunch_status s = hn_source_str(src, KEY "model", &model, &len, found, err);
    if (s || !*found) return s;
    if (strcmp(model, "none") == 0 || strcmp(model, "no_vocab") == 0) {
        *found = false;
        return HUNCH_OK;
    }
    s = read_kind(t, src, model, &kind, err);
    if (!s) s = read_tokens(t, src, &texts, &typed, err);
    if (s) return s;
    if (!kind) default_ids(t);
    s = read_ids(t, src, &texts.ends, typed, err);
    if (!s) s = hn_vocab_finish(t, err);
    if (!s) s = hn_vocab_name_by_kind(t, err);
    if (!s) s = read_marks(t, src, err);
    if (!s && !kind) s = mark_phi3(t, src, err);
    if (!s) s = kind ? open_merged(t, src, kind, err) : open_scored(t, src, texts.listed, err);
    if (!s) s = read_added(t, src, kind, strcmp(model, "llama") == 0, err);
    return s;
}
