/* SPDX-License-Identifier: Apache-2.0 */
/* convert_tokenizer.c - tokenizer.json as a GGUF file's tokenizer.* keys.
 *
 * Two kinds of BPE are supported; a tokenizer that neither expresses exactly is refused:
 * - byte-level BPE becomes "gpt2": tokens, merges in order, the name of the pre-tokenizer, and NFC under a key of ours;
 * - BPE over text with ▁ for spaces becomes "llama": tokens with scores, where a reader merges the neighbours whose
 *   union has the highest score. Scores are not in tokenizer.json; they are made from the merges: the token that the
 *   first merge makes gets 0, the next new one -1, and so on; tokens that no merge makes follow in the order of their
 *   ids. That is also how SentencePiece numbers a BPE vocabulary. It encodes like the merges if each token's merges
 *   are adjacent and each pair of tokens whose union is a token is a merge: both are checked. (Where two merges of
 *   one token overlap in a run such as ▁▁▁▁, scores take the left one, as SentencePiece does; a list of merges takes
 *   its earlier one.)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "format/name_index.h"
#include "convert/convert.h"

enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_UNUSED, TOKEN_BYTE };
enum { PAD_BYTES = 16, MAX_TOKEN = 512 }; /* MAX_TOKEN bounds the work on hostile vocabularies */

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LIKE_LLAMA3(number)                                                                                            \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" number "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(tail)                                                                                                    \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" tail

/* Splits of tokenizer.json, each followed by a ByteLevel step that does not split, and their name in GGUF. */
static const struct {
    const char *patterns[3], *pre;
    bool whole_words; /* "ignore_merges" */
} byte_level_kinds[] = {
    {{LIKE_LLAMA3("\\p{N}{1,3}")}, "llama-bpe", true},
    {{LIKE_LLAMA3("\\p{N}{1,3}")}, "smaug-bpe", false},
    {{LIKE_LLAMA3("\\p{N}")}, "qwen2", false},
    {{CASED(CONTRACTION "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES}, "gpt-4o", false},
    {{CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES}, "tekken", true},
    {{"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
      " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},
     "deepseek-v3",
     false},
};

typedef struct vocabulary {
    hn_gguf_writer *w;
    const hn_source *src;
    const json_t *root, *model, *vocab, *merges, *config;
    int size;
    const char **text; /* [size], owned by the JSON or by pads; NULL: no token has this id */
    size_t *len;       /* [size] */
    int32_t *type;     /* [size] */
    char *pads;        /* names of ids without a token */
    hunch_error *err;
} vocabulary;

static hunch_status refuse(const vocabulary *v, const char *what) {
    return hn_fail(v->err, HUNCH_REFUSED, "%s: tokenizer.json: %s", hn_source_path(v->src), what);
}

static bool json_is_text(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static hunch_status token_add(vocabulary *v, const char *text, size_t len, const json_t *id, int32_t type) {
    json_int_t i = json_integer_value(id);
    if (!json_is_integer(id) || i < 0 || i >= v->size)
        return hn_fail(v->err, HUNCH_REFUSED,
                       "%s: tokenizer.json: token \"%.60s\" has no id in the model's vocabulary of %d",
                       hn_source_path(v->src), text, v->size);
    if (v->text[i] != NULL && (v->len[i] != len || memcmp(v->text[i], text, len) != 0))
        return hn_fail(v->err, HUNCH_REFUSED,
                       "%s: tokenizer.json: tokens \"%.60s\" and \"%.60s\" have the same id %" PRId64,
                       hn_source_path(v->src), v->text[i], text, (int64_t)i);
    if (len > MAX_TOKEN)
        return hn_fail(v->err, HUNCH_REFUSED,
                       "%s: tokenizer.json: token %" PRId64 " has %zu bytes; expected at most %d",
                       hn_source_path(v->src), (int64_t)i, len, MAX_TOKEN);
    v->text[i] = text;
    v->len[i] = len;
    v->type[i] = type;
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

static hunch_status tokens_read(vocabulary *v) {
    const json_t *unknown = json_object_get(v->model, "unk_token"), *added = json_object_get(v->root, "added_tokens");
    bool fallback = json_is_true(json_object_get(v->model, "byte_fallback"));
    const char *text;
    json_t *id, *token;
    size_t i;
    hunch_status status;
    json_object_foreach ((json_t *)(uintptr_t)v->vocab, text, id) {
        int32_t type = fallback && token_is_byte(text) ? TOKEN_BYTE : TOKEN_NORMAL;
        status = token_add(v, text, strlen(text), id, type);
        if (status) return status;
    }
    json_array_foreach (added, i, token) {
        const json_t *content = json_object_get(token, "content");
        bool special = json_is_true(json_object_get(token, "special"));
        if (!json_is_string(content))
            return refuse(v, "an added token has no content");
        status = token_add(v, json_string_value(content), json_string_length(content), json_object_get(token, "id"),
                           special ? TOKEN_CONTROL : TOKEN_USER);
        if (status) return status;
    }
    for (i = 0; i < (size_t)v->size; i++)
        if (v->text[i] != NULL && json_is_text(unknown, v->text[i]))
            v->type[i] = TOKEN_UNKNOWN;
    return HUNCH_OK;
}

/* Models often have more rows than tokens: the rest get names that do not occur in text. */
static hunch_status tokens_fill(vocabulary *v) {
    size_t missing = 0;
    for (int i = 0; i < v->size; i++)
        missing += v->text[i] == NULL;
    v->pads = hn_zalloc(missing, PAD_BYTES);
    if (v->pads == NULL)
        return hn_fail_memory(v->err, "names of unused tokens", missing * PAD_BYTES);
    char *pad = v->pads;
    for (int i = 0; i < v->size; i++) {
        if (v->text[i] != NULL)
            continue;
        v->len[i] = (size_t)snprintf(pad, PAD_BYTES, "[PAD%d]", i);
        v->text[i] = pad;
        v->type[i] = TOKEN_UNUSED;
        pad += PAD_BYTES;
    }
    return HUNCH_OK;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

/* A merge is "left right" or ["left", "right"]; out gets it with one space. False: neither, or too long. */
static bool merge_text(const json_t *merge, char out[2 * MAX_TOKEN + 2], size_t *left) {
    const json_t *a = json_array_get(merge, 0), *b = json_array_get(merge, 1);
    int len;
    if (json_is_string(merge))
        len = snprintf(out, 2 * MAX_TOKEN + 2, "%s", json_string_value(merge));
    else if (json_array_size(merge) == 2 && json_is_string(a) && json_is_string(b))
        len = snprintf(out, 2 * MAX_TOKEN + 2, "%s %s", json_string_value(a), json_string_value(b));
    else
        return false;
    const char *space = strchr(out, ' ');
    if (len < 0 || len > 2 * MAX_TOKEN + 1 || space == NULL || strchr(space + 1, ' ') != NULL)
        return false;
    *left = (size_t)(space - out);
    return *left > 0 && space[1] != '\0';
}

/* All merges as "left right", in order. Freed with merges_free. */
typedef struct merge_list {
    char **text;
    size_t *len, *left; /* of the whole, of its left part */
    size_t count;
} merge_list;

static void merges_free(merge_list *m) {
    for (size_t i = 0; i < m->count; i++)
        hn_free(m->text[i]);
    hn_free(m->text);
    hn_free(m->len);
    hn_free(m->left);
}

static hunch_status merges_read(const vocabulary *v, merge_list *m) {
    size_t n = json_array_size(v->merges);
    char text[2 * MAX_TOKEN + 2];
    *m = (merge_list){.text = hn_zalloc(n, sizeof *m->text),
                      .len = hn_zalloc(n, sizeof *m->len),
                      .left = hn_zalloc(n, sizeof *m->left)};
    if (m->text == NULL || m->len == NULL || m->left == NULL)
        return hn_fail_memory(v->err, "merges", n * 3 * sizeof *m->len);
    for (size_t i = 0; i < n; i++) {
        if (!merge_text(json_array_get(v->merges, i), text, &m->left[i]))
            return hn_fail(v->err, HUNCH_REFUSED, "%s: tokenizer.json: merge %zu is not two tokens without spaces",
                           hn_source_path(v->src), i);
        m->len[i] = strlen(text);
        m->text[i] = hn_strndup(text, m->len[i]);
        if (m->text[i] == NULL)
            return hn_fail_memory(v->err, "a merge", m->len[i]);
        m->count = i + 1;
    }
    return HUNCH_OK;
}

/* ---- "llama": scores from merges --------------------------------------------------------------------------------- */

/* Id of the token that a merge makes; -1: its parts or its union are not tokens. */
static json_int_t merge_makes(const vocabulary *v, const merge_list *m, size_t i) {
    char left[MAX_TOKEN + 1], both[2 * MAX_TOKEN + 2];
    const char *right = m->text[i] + m->left[i] + 1;
    if (m->left[i] > MAX_TOKEN)
        return -1;
    snprintf(left, sizeof left, "%.*s", (int)m->left[i], m->text[i]);
    snprintf(both, sizeof both, "%s%s", left, right);
    const json_t *id = json_object_get(v->vocab, both);
    if (id == NULL || json_object_get(v->vocab, left) == NULL || json_object_get(v->vocab, right) == NULL)
        return -1;
    return json_integer_value(id);
}

/* order[id]: 1 for the token of the first merge, ascending; 0 for tokens that no merge makes. */
static hunch_status merges_order(const vocabulary *v, const merge_list *m, int32_t *order, int32_t *count) {
    json_int_t last = -1;
    *count = 0;
    for (size_t i = 0; i < m->count; i++) {
        json_int_t id = merge_makes(v, m, i);
        if (id < 0)
            return hn_fail(v->err, HUNCH_REFUSED,
                           "%s: tokenizer.json: merge %zu (%.80s) does not make a token of two tokens",
                           hn_source_path(v->src), i, m->text[i]);
        if (order[id] == 0)
            order[id] = ++*count;
        else if (id != last)
            return hn_fail(v->err, HUNCH_REFUSED,
                           "%s: tokenizer.json: the merges of token %s are not adjacent; scores cannot express that",
                           hn_source_path(v->src), v->text[id]);
        last = id;
    }
    return HUNCH_OK;
}

static bool token_is_normal(const vocabulary *v, const char *text) {
    const json_t *id = json_object_get(v->vocab, text);
    return id != NULL && v->type[json_integer_value(id)] == TOKEN_NORMAL;
}

/* Every pair of tokens that together are a token must be a merge. */
static hunch_status pairs_check(const vocabulary *v, const hn_name_index *merges) {
    char left[MAX_TOKEN + 1], pair[MAX_TOKEN + 2];
    for (int i = 0; i < v->size; i++) {
        if (v->type[i] != TOKEN_NORMAL)
            continue;
        uint32_t cp;
        for (size_t at = 0, step; at < v->len[i]; at += step) {
            step = (size_t)hn_utf8_decode(v->text[i] + at, v->len[i] - at, &cp); /* JSON strings are valid UTF-8 */
            const char *right = v->text[i] + at + step;
            snprintf(left, sizeof left, "%.*s", (int)(at + step), v->text[i]);
            snprintf(pair, sizeof pair, "%s %s", left, right);
            if (*right != '\0' && token_is_normal(v, left) && token_is_normal(v, right) &&
                hn_name_index_find(merges, pair) < 0)
                return hn_fail(v->err, HUNCH_REFUSED,
                               "%s: tokenizer.json: %s is not a merge, but its union is a token; scores cannot express "
                               "that",
                               hn_source_path(v->src), pair);
        }
    }
    return HUNCH_OK;
}

static const char *merge_text_of(const void *items, size_t i) {
    return ((const merge_list *)items)->text[i];
}

static hunch_status scores_make(const vocabulary *v, const merge_list *m, int32_t *order, float *scores) {
    int32_t next = 0;
    hn_name_index index;
    hunch_status status = merges_order(v, m, order, &next);
    if (status)
        return status;
    if (!hn_name_index_init(&index, m, m->count, merge_text_of))
        return hn_fail_memory(v->err, "the index of merges", m->count * sizeof(hn_name));
    status = pairs_check(v, &index);
    hn_name_index_fini(&index);
    for (int i = 0; i < v->size; i++) {
        if (v->type[i] != TOKEN_NORMAL)
            continue;
        scores[i] = -(float)(order[i] > 0 ? order[i] - 1 : next);
        next += order[i] == 0;
    }
    return status;
}

static hunch_status scores_write(const vocabulary *v, const merge_list *m) {
    size_t n = (size_t)v->size;
    int32_t *order = hn_zalloc(n, sizeof *order);
    float *scores = hn_zalloc(n, sizeof *scores);
    hunch_status status = order == NULL || scores == NULL ? hn_fail_memory(v->err, "scores", n * sizeof *scores)
                                                          : scores_make(v, m, order, scores);
    if (!status)
        status = hn_gguf_put_f32s(v->w, "tokenizer.ggml.scores", scores, n, v->err);
    hn_free(order);
    hn_free(scores);
    return status;
}

/* ---- which kind ------------------------------------------------------------------------------------------------ */

/* Step i of a normalizer, pre-tokenizer, …: a member of a Sequence, or the only step. */
static const json_t *step_at(const json_t *thing, const char *members, size_t i) {
    if (json_is_text(json_object_get(thing, "type"), "Sequence"))
        return json_array_get(json_object_get(thing, members), i);
    return i == 0 && json_is_object(thing) ? thing : NULL;
}

static bool step_is(const json_t *step, const char *type) {
    return json_is_text(json_object_get(step, "type"), type);
}

/* A ByteLevel step that splits by GPT-2's pattern, or not. */
static bool step_is_bytes(const json_t *step, bool split) {
    const json_t *use = json_object_get(step, "use_regex");
    bool uses = use == NULL || json_is_true(use); /* the default */
    return step_is(step, "ByteLevel") && uses == split && json_is_false(json_object_get(step, "add_prefix_space"));
}

static bool step_is_split(const json_t *step, const char *pattern) {
    return step_is(step, "Split") && json_is_text(json_object_get(step, "behavior"), "Isolated") &&
           !json_is_true(json_object_get(step, "invert")) &&
           json_is_text(json_object_get(json_object_get(step, "pattern"), "Regex"), pattern);
}

/* The name of the kind whose patterns pre has, in order, followed by a ByteLevel step; NULL: none. */
static const char *split_name(const json_t *pre, bool whole_words) {
    for (size_t k = 0; k < sizeof byte_level_kinds / sizeof *byte_level_kinds; k++) {
        size_t i = 0;
        while (i < 3 && byte_level_kinds[k].patterns[i] != NULL &&
               step_is_split(step_at(pre, "pretokenizers", i), byte_level_kinds[k].patterns[i]))
            i++;
        bool all = i == 3 || byte_level_kinds[k].patterns[i] == NULL;
        if (all && byte_level_kinds[k].whole_words == whole_words &&
            step_is_bytes(step_at(pre, "pretokenizers", i), false) && step_at(pre, "pretokenizers", i + 1) == NULL)
            return byte_level_kinds[k].pre;
    }
    return NULL;
}

/* The pre-tokenizer's name in GGUF files; NULL: unknown. nfc: texts are normalised to NFC before it. */
static const char *pre_name(const vocabulary *v, bool *nfc) {
    bool whole_words = json_is_true(json_object_get(v->model, "ignore_merges"));
    const json_t *pre = json_object_get(v->root, "pre_tokenizer");
    const json_t *first = step_at(pre, "pretokenizers", 0), *second = step_at(pre, "pretokenizers", 1);
    const json_t *normalizer = json_object_get(v->root, "normalizer"), *form = step_at(normalizer, "normalizers", 0);
    *nfc = form != NULL && step_is(form, "NFC") && step_at(normalizer, "normalizers", 1) == NULL;
    if (form != NULL && !*nfc)
        return NULL;
    const char *name = split_name(pre, whole_words);
    if (name != NULL || whole_words || step_at(pre, "pretokenizers", 2) != NULL)
        return name;
    if (second == NULL)
        return step_is_bytes(first, true) ? "gpt-2" : NULL;
    if (step_is(first, "Digits") && json_is_true(json_object_get(first, "individual_digits")) &&
        step_is_bytes(second, true))
        return "smollm";
    return NULL;
}

/* Gemma's splits at spaces, which were all replaced before. */
static bool step_is_split_at_spaces(const json_t *pre) {
    return step_is(pre, "Split") && json_is_text(json_object_get(pre, "behavior"), "MergedWithPrevious") &&
           !json_is_true(json_object_get(pre, "invert")) &&
           json_is_text(json_object_get(json_object_get(pre, "pattern"), "String"), " ");
}

/* Text with ▁ for spaces, in the older spelling (a normalizer) or the newer one (Metaspace). prefix: ▁ starts the text. */
static bool spaces_are_known(const vocabulary *v, bool *prefix) {
    static const char mark[] = "\xE2\x96\x81";
    const json_t *normalizer = json_object_get(v->root, "normalizer"), *pre = json_object_get(v->root, "pre_tokenizer");
    const json_t *scheme = json_object_get(pre, "prepend_scheme"), *step = step_at(normalizer, "normalizers", 0);
    if (step_is(pre, "Metaspace")) {
        *prefix =
            scheme != NULL ? !json_is_text(scheme, "never") : !json_is_false(json_object_get(pre, "add_prefix_space"));
        return step == NULL && json_is_text(json_object_get(pre, "replacement"), mark) &&
               !json_is_true(json_object_get(pre, "split"));
    }
    *prefix = step_is(step, "Prepend") && json_is_text(json_object_get(step, "prepend"), mark);
    step = step_at(normalizer, "normalizers", *prefix ? 1 : 0);
    return (json_is_null(pre) || step_is_split_at_spaces(pre)) && step_is(step, "Replace") &&
           json_is_text(json_object_get(step, "content"), mark) &&
           json_is_text(json_object_get(json_object_get(step, "pattern"), "String"), " ") &&
           step_at(normalizer, "normalizers", *prefix ? 2 : 1) == NULL;
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static hunch_status text_write(const vocabulary *v, const char *key, const char *text) {
    return hn_gguf_put_str(v->w, key, text, strlen(text), v->err);
}

static hunch_status kind_write(const vocabulary *v, const merge_list *m) {
    bool prefix = false, nfc;
    const char *pre = pre_name(v, &nfc);
    hunch_status status;
    if (pre != NULL) {
        status = text_write(v, "tokenizer.ggml.model", "gpt2");
        if (!status && nfc)
            status = hn_gguf_put_bool(v->w, "tokenizer.hunch.nfc", true, v->err);
        if (!status)
            status = text_write(v, "tokenizer.ggml.pre", pre);
        if (!status)
            status = hn_gguf_put_strings(v->w, "tokenizer.ggml.merges", (const char *const *)m->text, m->len, m->count,
                                         v->err);
        return status ? status : hn_gguf_put_bool(v->w, "tokenizer.ggml.add_space_prefix", false, v->err);
    }
    if (!spaces_are_known(v, &prefix))
        return refuse(
            v,
            "its normalizer and pre_tokenizer are none that GGUF names; expected SentencePiece's ▁ for spaces, or the "
            "byte-level steps of GPT-2, SmolLM, Llama 3, Qwen 2, GPT-4o, Tekken or DeepSeek 3");
    status = text_write(v, "tokenizer.ggml.model", "llama");
    if (!status)
        status = text_write(v, "tokenizer.ggml.pre", "default");
    if (!status)
        status = scores_write(v, m);
    return status ? status : hn_gguf_put_bool(v->w, "tokenizer.ggml.add_space_prefix", prefix, v->err);
}

/* Id of a token that tokenizer_config.json names by its text ("</s>", or an object with "content"); -1: not named. */
static int token_named(const vocabulary *v, const char *key) {
    const json_t *value = json_object_get(v->config, key);
    const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
    for (int i = 0; i < v->size && json_is_string(content); i++)
        if (strcmp(v->text[i], json_string_value(content)) == 0)
            return i;
    return -1;
}

/* Id i of config.json's or generation_config.json's "eos_token_id", a number or a list; -1: none. */
static int token_numbered(const vocabulary *v, const char *file, const char *key, size_t i) {
    const json_t *value = json_object_get(hn_source_json(v->src, file), key);
    const json_t *id = json_is_array(value) ? json_array_get(value, i) : i == 0 ? value : NULL;
    json_int_t number = json_integer_value(id);
    return json_is_integer(id) && number >= 0 && number < v->size ? (int)number : -1;
}

static hunch_status id_write(const vocabulary *v, const char *key, int id) {
    return id < 0 ? HUNCH_OK : hn_gguf_put_u32(v->w, key, (uint32_t)id, v->err);
}

/* A folder may end texts with several tokens; GGUF has a key for each of three. */
static hunch_status ends_write(const vocabulary *v) {
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    static const char *const files[] = {"generation_config.json", "config.json"};
    int ids[3], n = 0, named = token_named(v, "eos_token");
    if (named >= 0)
        ids[n++] = named;
    for (int file = 0; file < 2; file++) {
        for (size_t i = 0; i < 3 && n < 3; i++) {
            int id = token_numbered(v, files[file], "eos_token_id", i);
            bool seen = id < 0;
            for (int j = 0; j < n; j++)
                seen = seen || ids[j] == id;
            if (!seen)
                ids[n++] = id;
        }
    }
    hunch_status status = HUNCH_OK;
    for (int i = 0; i < n && !status; i++)
        status = id_write(v, keys[i], ids[i]);
    return status;
}

/* Whether BOS is added to a text: as in tokenizer_config.json, else in the template of tokenizer.json. */
static bool bos_is_added(const vocabulary *v) {
    const json_t *said = json_object_get(v->config, "add_bos_token"),
                 *post = json_object_get(v->root, "post_processor"), *step;
    if (json_is_boolean(said))
        return json_is_true(said);
    for (size_t i = 0; (step = step_at(post, "processors", i)) != NULL; i++)
        if (step_is(step, "TemplateProcessing"))
            return json_object_get(json_array_get(json_object_get(step, "single"), 0), "SpecialToken") != NULL;
    return false;
}

static hunch_status ids_write(const vocabulary *v) {
    int bos = token_named(v, "bos_token"), unknown = -1;
    if (bos < 0)
        bos = token_numbered(v, "config.json", "bos_token_id", 0);
    for (int i = 0; i < v->size && unknown < 0; i++)
        if (v->type[i] == TOKEN_UNKNOWN)
            unknown = i;
    hunch_status status = id_write(v, "tokenizer.ggml.bos_token_id", bos);
    if (!status)
        status = ends_write(v);
    if (!status)
        status = id_write(v, "tokenizer.ggml.unknown_token_id", unknown);
    if (!status)
        status = id_write(v, "tokenizer.ggml.padding_token_id", token_named(v, "pad_token"));
    if (!status)
        status = hn_gguf_put_bool(v->w, "tokenizer.ggml.add_bos_token", bos >= 0 && bos_is_added(v), v->err);
    return status ? status
                  : hn_gguf_put_bool(v->w, "tokenizer.ggml.add_eos_token",
                                     json_is_true(json_object_get(v->config, "add_eos_token")), v->err);
}

static hunch_status template_write(const vocabulary *v) {
    static const char *const keys[] = {[HN_CHAT_DEFAULT] = HN_CHAT_KEY, [HN_CHAT_TOOLS] = HN_CHAT_TOOLS_KEY};
    hunch_status status = HUNCH_OK;
    for (hn_chat_use use = HN_CHAT_DEFAULT; use <= HN_CHAT_TOOLS && !status; use++) {
        char *text;
        size_t len;
        status = hn_source_chat_template(v->src, use, &text, &len, v->err);
        if (!status && text) status = hn_gguf_put_str(v->w, keys[use], text, len, v->err);
        hn_free(text);
    }
    return status;
}

/* Properties without GGUF keys: added tokens that take adjacent white space, or match whole words only. */
static hunch_status marks_write(const vocabulary *v) {
    static const char *const flags[] = {"lstrip", "rstrip", "single_word"};
    const json_t *added = json_object_get(v->root, "added_tokens");
    int32_t *ids = hn_zalloc(json_array_size(added) + 1, sizeof *ids);
    hunch_status status = ids == NULL ? hn_fail_memory(v->err, "added tokens", json_array_size(added)) : HUNCH_OK;
    for (int f = 0; f < 3 && !status; f++) {
        char key[64];
        size_t n = 0, i;
        json_t *token;
        json_array_foreach (added, i, token)
            if (json_is_true(json_object_get(token, flags[f])))
                ids[n++] = (int32_t)json_integer_value(json_object_get(token, "id"));
        snprintf(key, sizeof key, "tokenizer.hunch.%s", flags[f]);
        if (n > 0)
            status = hn_gguf_put_i32s(v->w, key, ids, n, v->err);
    }
    hn_free(ids);
    return status;
}

static hunch_status vocabulary_write(vocabulary *v) {
    merge_list merges = {0};
    hunch_status status = tokens_read(v);
    if (!status)
        status = tokens_fill(v);
    if (!status)
        status = merges_read(v, &merges);
    if (!status)
        status = kind_write(v, &merges);
    merges_free(&merges);
    if (!status)
        status = hn_gguf_put_strings(v->w, "tokenizer.ggml.tokens", v->text, v->len, (size_t)v->size, v->err);
    if (!status)
        status = hn_gguf_put_i32s(v->w, "tokenizer.ggml.token_type", v->type, (size_t)v->size, v->err);
    if (!status)
        status = marks_write(v);
    if (!status)
        status = ids_write(v);
    return status ? status : template_write(v);
}

hunch_status hn_convert_tokenizer(hn_gguf_writer *w, const hn_source *src, int vocab, hunch_error *err) {
    vocabulary v = {.w = w, .src = src, .size = vocab, .err = err, .root = hn_source_json(src, "tokenizer.json")};
    if (v.root == NULL)
        return HUNCH_OK;
    v.model = json_object_get(v.root, "model");
    v.vocab = json_object_get(v.model, "vocab");
    v.merges = json_object_get(v.model, "merges");
    v.config = hn_source_json(src, "tokenizer_config.json");
    if (!json_is_text(json_object_get(v.model, "type"), "BPE") || !json_is_object(v.vocab) || !json_is_array(v.merges))
        return refuse(&v, "expected a model of type BPE with vocab and merges");
    size_t n = (size_t)vocab;
    v.text = hn_zalloc(n, sizeof *v.text);
    v.len = hn_zalloc(n, sizeof *v.len);
    v.type = hn_zalloc(n, sizeof *v.type);
    hunch_status status =
        v.text == NULL || v.len == NULL || v.type == NULL
            ? hn_fail_memory(err, "the vocabulary", n * (sizeof *v.text + sizeof *v.len + sizeof *v.type))
            : vocabulary_write(&v);
    hn_free(v.text);
    hn_free(v.len);
    hn_free(v.type);
    hn_free(v.pads);
    return status;
}
