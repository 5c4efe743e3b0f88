/* SPDX-License-Identifier: Apache-2.0 */
/* token_order_test.c - the order of hn_tokenizer_order: of small vocabularies against hand-made orders, of real ones by the
 * share of a text that the first tokens make up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "text.h"
#include "text/tokenizer/tokenizer_for_tests.h"

static hunch_error error;

static void check_order(const char *json, bool by_frequency, const int32_t *want, int n) {
    hn_tokenizer *t;
    int32_t ids[64];
    bool ordered;
    if (open_json(json, &t, &error)) fail_msg("%s", error.message);
    assert_int_equal(hn_tokenizer_vocab(t), n);
    assert_int_equal(hn_tokenizer_order(t, ids, &ordered, &error), HUNCH_OK);
    assert_int_equal(ordered, by_frequency);
    for (int i = 0; i < n; i++)
        if (ids[i] != want[i]) fail_msg("place %d has token %d, expected %d", i, ids[i], want[i]);
    hn_tokenizer_close(&t);
}

/* Characters of one byte first, then by the merges; a longer character at the first merge with it; last those in no merge. */
static void test_merges(void **state) {
    (void)state;
    static const char *const json = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"<s>\": 0, \"late\": 1, "
                                    "\"\xC3\xA9\": 2, \"\xC3\xA8\": 3, \"ab\": 4, \"abc\": 5, "
                                    "\"\xC3\xA9"
                                    "a\": 6, \"a\": 7, \"b\": 8, \"c\": 9, \"<x>\": 10}, "
                                    "\"merges\": [\"a b\", \"\xC3\xA9 a\", \"ab c\"]}, \"added_tokens\": ["
                                    "{\"id\": 0, \"content\": \"<s>\", \"special\": true}, {\"id\": 10, \"content\": "
                                    "\"<x>\", \"special\": false}]}";
    static const int32_t want[] = {7, 8, 9, 10, 4, 2, 6, 5, 0, 1, 3};
    check_order(json, true, want, 11);
}

static void test_unigram(void **state) {
    (void)state;
    static const char *const json =
        "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", -5], [\"b\", -3], "
        "[\"ab\", -4], [\"c\", -5]]}}";
    static const int32_t want[] = {2, 3, 1, 4, 0};
    check_order(json, true, want, 5);
}

/* One merge, or one score for all, gives no order. */
static void test_no_order(void **state) {
    (void)state;
    static const int32_t merged[] = {1, 2, 0}, scored[] = {1, 2, 0};
    check_order("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"ab\": 0, \"a\": 1, \"b\": 2}, \"merges\": [\"a b\"]}}",
                false, merged, 3);
    check_order(
        "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", -1], [\"b\", -1]]}}",
        false, scored, 3);
}

/* The share of a text's tokens that are in the first part of the order; hardly any are in the last. */
static void check_text(const char *path, const char *text, double part, double least) {
    hn_source *src;
    hn_tokenizer *t;
    size_t n;
    int32_t *ids;
    bool by_frequency;
    if (hn_source_open(&src, path, &error) || hn_tokenizer_open(&t, src, &error)) fail_msg("%s", error.message);
    const int vocab = hn_tokenizer_vocab(t), first = (int)(part * vocab);
    int32_t *order = calloc((size_t)vocab, sizeof *order);
    int *place = malloc((size_t)vocab * sizeof *place);
    assert_int_equal(hn_tokenizer_order(t, order, &by_frequency, &error), HUNCH_OK);
    assert_true(by_frequency);
    memset(place, 255, (size_t)vocab * sizeof *place);
    for (int i = 0; i < vocab; i++) {
        assert_true(order[i] >= 0 && order[i] < vocab && place[order[i]] == -1);
        place[order[i]] = i;
    }
    assert_int_equal(hn_tokenizer_encode(t, text, strlen(text), 0, &ids, &n, &error), HUNCH_OK);
    size_t inside = 0, turned = 0;
    for (size_t i = 0; i < n; i++) {
        inside += place[ids[i]] < first;
        turned += place[ids[i]] >= vocab - first;
    }
    if (!((double)inside >= least * (double)n) || turned > n / 20)
        fail_msg("%s: the first %d tokens of %d are %.3f of the text, the last %.3f", path, first, vocab,
                 (double)inside / (double)n, (double)turned / (double)n);
    hn_free(ids);
    free(order);
    free(place);
    hn_tokenizer_close(&t);
    hn_source_close(&src);
}

/* A quarter of a real vocabulary covers nine tenths of an English text of another subject than its training text. */
static void test_real(void **state) {
    (void)state;
    char *text = text_read("docs/verification.md");
    static const char *const files[] = {"gguf/ggml-vocab-gpt-2.gguf", "gguf/ggml-vocab-llama-spm.gguf",
                                        "gguf/ggml-vocab-deepseek-coder.gguf", "gguf/ggml-vocab-phi-3.gguf",
                                        "gguf/ggml-vocab-falcon.gguf"};
    char path[500];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", HUNCH_TEST_TOKENIZERS, files[i]);
        check_text(path, text, 0.25, 0.85);
    }
    snprintf(path, sizeof path, "%s/t5.gguf", HUNCH_TEST_TOKENIZERS); /* which has few */
    check_text(path, text, 0.25, 0.65);
    check_text(HUNCH_TEST_DATA "/tokenizers/smollm2-vocab.gguf", text, 0.25, 0.85);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_merges), cmocka_unit_test(test_unigram),
                                       cmocka_unit_test(test_no_order), cmocka_unit_test(test_real)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
