/* SPDX-License-Identifier: Apache-2.0 */
/* convert_tokenizer_test.c - tokenizers of real models, from tokenizer.json and from the GGUF keys written for it, are
 * the same. Small artificial ones and refusals: convert_test.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "fixture.h"
#include "convert/convert_tokenizer.h"
#include "text/tokenizer/tokenizer_for_tests.h"
#include "text/tokenizer/vectors_for_tests.h"

static hn_source *open_source(const char *path) {
    hn_source *src;
    hunch_error e = {0};
    if (hn_source_open(&src, path, &e) != HUNCH_OK) fail_msg("%s: %s", path, e.message);
    return src;
}

static hn_tokenizer *open_tokenizer(hn_source *src) {
    hn_tokenizer *t;
    hunch_error e = {0};
    if (hn_tokenizer_open(&t, src, &e) != HUNCH_OK) fail_msg("%s", e.message);
    assert_non_null(t);
    return t;
}

static hn_tokenizer *convert(hn_source *from, int vocab) {
    hn_gguf_writer *w;
    hunch_error e = {0};
    const char *path = test_path("tokenizer.gguf");
    assert_int_equal(hn_gguf_writer_open(&w, path, &e), HUNCH_OK);
    assert_int_equal(hn_gguf_put_str(w, "general.architecture", "llama", 5, &e), HUNCH_OK);
    if (hn_convert_tokenizer(w, from, vocab, &e) != HUNCH_OK) fail_msg("%s", e.message);
    assert_int_equal(hn_gguf_writer_finish(&w, &e), HUNCH_OK);
    hn_source *src = open_source(path);
    hn_tokenizer *t = open_tokenizer(src);
    hn_source_close(&src);
    return t;
}

typedef struct twins {
    const hn_tokenizer *a, *b;
} twins;

static void compare(const twins *t, const char *text, size_t len) {
    int32_t *x, *y;
    size_t n, m;
    int flags = HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL;
    assert_int_equal(hn_tokenizer_encode(t->a, text, len, flags, &x, &n, NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_encode(t->b, text, len, flags, &y, &m, NULL), HUNCH_OK);
    if (n != m || memcmp(x, y, n * sizeof *x)) fail_msg("\"%.*s\" differs", (int)len, text);
    char *p = decode_ids(t->a, x, n), *q = decode_ids(t->b, y, m);
    if (p) assert_string_equal(p, q);
    hn_free(p);
    hn_free(q);
    hn_free(x);
    hn_free(y);
}

static void compare_row(const json_t *row, void *user) {
    size_t len;
    const char *text = row_text(row, "text", &len);
    compare(user, text, len);
}

static void compare_random(const twins *t, const char *const *parts, size_t n_parts) {
    uint64_t seed = 21;
    for (int i = 0; i < 400; i++) {
        char text[600];
        size_t n = 0;
        for (size_t k = hn_splitmix(&seed) % 20; k > 0; k--) {
            const char *part = parts[hn_splitmix(&seed) % n_parts];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        compare(t, text, n);
    }
}

static void check(const char *folder, int vocab) {
    static const char *const parts[] = {
        "a",          "The",    " of", " ", "  ",        "\n", "\r\n", "1",    "234",          "'s",
        "'LL",        ".",      "/",   "é", "e\xCC\x81", "Ж",  "語",   "🦙", "\xE3\x80\x80", "<|im_start|>",
        "<|eot_id|>", "<think>"};
    char path[600];
    snprintf(path, sizeof path, "%s/%s", HUNCH_TEST_TOKENIZERS, folder);
    hn_source *src = open_source(path);
    hn_tokenizer *a = open_tokenizer(src), *b = convert(src, vocab);
    twins t = {a, b};
    assert_int_equal(hn_tokenizer_vocab(b), vocab);
    assert_int_equal(hn_tokenizer_bos(a), hn_tokenizer_bos(b));
    assert_int_equal(hn_tokenizer_eos(a), hn_tokenizer_eos(b));
    assert_true(each_row("tokenizers/smollm2.vectors.jsonl", compare_row, &t) > 200);
    compare_random(&t, parts, sizeof parts / sizeof *parts);
    hn_tokenizer_close(&a);
    hn_tokenizer_close(&b);
    hn_source_close(&src);
}

static void test_real(void **state) {
    (void)state;
    check("hf/qwen3", 151936); /* normalises to NFC */
    if (light()) return;
    check("hf/llama3", 128256);
    check("hf/deepseek_v3", 129280);
}

/* Tokens that take white space or stand alone; patterns of GPT-4o's kind; Gemma's spaces. */
static void test_small(void **state) {
    (void)state;
#define LETTERS "\"a\": 0, \"b\": 1, \"\u0120\": 2, \"ab\": 3, \"\u0120a\": 4, \"A\": 5"
#define ADDED                                                                                                          \
    "\"added_tokens\": [{\"id\": 6, \"content\": \"<l>\", \"lstrip\": true, \"normalized\": false}, {\"id\": 7, "      \
    "\"content\": \"<r>\", \"special\": true, \"rstrip\": true}, {\"id\": 8, \"content\": \"b\", \"single_word\": "    \
    "true}]"
#define CASED(whole)                                                                                                                     \
    "{" ADDED                                                                                                                            \
    ", \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": "                             \
    "\"Isolated\", \"pattern\": {\"Regex\": "                                                                                            \
    "\"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*"                                                    \
    "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"                                 \
    "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|"                     \
    "'d)?|"                                                                                                                              \
    "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}}, "                           \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}, "                                                   \
    "\"model\": {\"type\": \"BPE\", " whole "\"vocab\": {" LETTERS ", \"aab\": 9}, \"merges\": [\"a b\", \"\u0120 a\"]}}"
    static const char *const gemma =
        "{" ADDED ", \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"▁\"}, "
        "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": "
        "\"MergedWithPrevious\"}, "
        "\"model\": {\"type\": \"BPE\", \"fuse_unk\": true, \"unk_token\": \"<unk>\", \"vocab\": {\"<unk>\": 9, \"a\": "
        "0, \"b\": 1, \"▁\": 2, "
        "\"▁▁\": 3, \"▁a\": 4, \"A\": 5}, \"merges\": [\"▁ ▁\", \"▁ a\"]}}";
    static const char *const parts[] = {"a", "b", " ", "  ", "A", "<l>", "<r>", "\n", "c", "ab"};
    /* of "aab" alone: the third has it as a whole, although no merge makes it */
    const char *const files[] = {CASED(""), gemma, CASED("\"ignore_merges\": true, ")};
    for (int i = 0; i < 3; i++) {
        tokenizer_folder(files[i], strlen(files[i]), "{}", "{}");
        hn_source *src = open_source(test_path("hf"));
        hn_tokenizer *a = open_tokenizer(src), *b = convert(src, 12);
        compare_random(&(twins){a, b}, parts, sizeof parts / sizeof *parts);
        int32_t *ids;
        size_t n;
        assert_int_equal(hn_tokenizer_encode(b, "aab", 3, 0, &ids, &n, NULL), HUNCH_OK);
        if (i != 1) assert_int_equal(n, i == 0 ? 2 : 1);
        hn_free(ids);
        hn_tokenizer_close(&a);
        hn_tokenizer_close(&b);
        hn_source_close(&src);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real), cmocka_unit_test(test_small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
