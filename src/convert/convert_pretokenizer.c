/* SPDX-License-Identifier: Apache-2.0 */
/* convert_pretokenizer.c - which of the tokenizers that a GGUF can name a tokenizer.json is, by its normalizer and its
 * pre-tokenizer. */
#include "convert/convert_tokenizer.h"

#include "text/normal/space_mark.h"

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
    bool whole_words; /* "ignore_merges", unless another key says otherwise */
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

/* A ByteLevel step that splits by GPT-2's pattern, or not. */
static bool step_is_bytes(const json_t *step, bool split) {
    const json_t *use = json_object_get(step, "use_regex");
    bool uses = use == NULL || json_is_true(use); /* the default */
    return hn_step_is(step, "ByteLevel") && uses == split && json_is_false(json_object_get(step, "add_prefix_space"));
}

/* behavior: what becomes of the separator; kind: of the pattern, "Regex" or "String". */
static bool step_is_split(const json_t *step, const char *behavior, const char *kind, const char *pattern) {
    return hn_step_is(step, "Split") && hn_json_is_text(json_object_get(step, "behavior"), behavior) &&
           !json_is_true(json_object_get(step, "invert")) &&
           hn_json_is_text(json_object_get(json_object_get(step, "pattern"), kind), pattern);
}

/* Whether pre has the patterns of a kind, in order, followed by a ByteLevel step. */
static bool is_kind(const json_t *pre, const char *const patterns[3]) {
    size_t i = 0;
    while (i < 3 && patterns[i] != NULL && step_is_split(hn_hf_part(pre, "pretokenizers", i), "Isolated", "Regex", patterns[i]))
        i++;
    return (i == 3 || patterns[i] == NULL) && step_is_bytes(hn_hf_part(pre, "pretokenizers", i), false) &&
           hn_hf_part(pre, "pretokenizers", i + 1) == NULL;
}

/* The name of the kind that pre is, one that treats whole words alike if there is one; *unlike: there is none. NULL: no kind. */
static const char *split_name(const json_t *pre, bool whole_words, bool *unlike) {
    const char *name = NULL;
    for (size_t k = 0; k < sizeof byte_level_kinds / sizeof *byte_level_kinds; k++) {
        if (!is_kind(pre, byte_level_kinds[k].patterns))
            continue;
        *unlike = byte_level_kinds[k].whole_words != whole_words;
        name = byte_level_kinds[k].pre;
        if (!*unlike)
            break;
    }
    return name;
}

const char *hn_pre_tokenizer_name(const hn_tokenizer_conversion *c, bool *nfc, bool *unlike) {
    bool whole_words = json_is_true(json_object_get(c->model, "ignore_merges"));
    *unlike = false;
    const json_t *pre = json_object_get(c->root, "pre_tokenizer");
    const json_t *first = hn_hf_part(pre, "pretokenizers", 0), *second = hn_hf_part(pre, "pretokenizers", 1);
    const json_t *normalizer = json_object_get(c->root, "normalizer"), *form = hn_hf_part(normalizer, "normalizers", 0);
    *nfc = form != NULL && hn_step_is(form, "NFC") && hn_hf_part(normalizer, "normalizers", 1) == NULL;
    if (form != NULL && !*nfc)
        return NULL;
    const char *name = split_name(pre, whole_words, unlike);
    if (name != NULL || whole_words || hn_hf_part(pre, "pretokenizers", 2) != NULL)
        return name;
    if (second == NULL)
        return step_is_bytes(first, true) ? "gpt-2" : NULL;
    if (hn_step_is(first, "Digits") && json_is_true(json_object_get(first, "individual_digits")) &&
        step_is_bytes(second, true))
        return "smollm";
    return NULL;
}

bool hn_space_marks_are_known(const hn_tokenizer_conversion *c, bool *prefix) {
    const json_t *normalizer = json_object_get(c->root, "normalizer"), *pre = json_object_get(c->root, "pre_tokenizer");
    const json_t *scheme = json_object_get(pre, "prepend_scheme"), *step = hn_hf_part(normalizer, "normalizers", 0);
    if (hn_step_is(pre, "Metaspace")) {
        *prefix =
            scheme != NULL ? !hn_json_is_text(scheme, "never") : !json_is_false(json_object_get(pre, "add_prefix_space"));
        return step == NULL && hn_json_is_text(json_object_get(pre, "replacement"), HN_SPACE_MARK) &&
               !json_is_true(json_object_get(pre, "split"));
    }
    *prefix = hn_step_is(step, "Prepend") && hn_json_is_text(json_object_get(step, "prepend"), HN_SPACE_MARK);
    step = hn_hf_part(normalizer, "normalizers", *prefix ? 1 : 0);
    /* Gemma's pre-tokenizer splits at spaces, which were all replaced before */
    return (json_is_null(pre) || step_is_split(pre, "MergedWithPrevious", "String", " ")) && hn_step_is(step, "Replace") &&
           hn_json_is_text(json_object_get(step, "content"), HN_SPACE_MARK) &&
           hn_json_is_text(json_object_get(json_object_get(step, "pattern"), "String"), " ") &&
           hn_hf_part(normalizer, "normalizers", *prefix ? 2 : 1) == NULL;
}
