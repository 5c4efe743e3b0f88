/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary_fit_test.c - a tokenizer fits itself in any file format, padding may differ, nothing else may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "draft/vocabulary_fit.h"
#include "format/bytes_for_tests.h"
#include "format/gguf_writer.h"

#define STORIES HUNCH_TEST_DATA "/models/stories260K"
#define BABYLLAMA HUNCH_TEST_DATA "/models/babyllama105"

static hn_tokenizer *open_tokenizer(const char *path) {
    hn_source *src = NULL;
    hn_tokenizer *t = NULL;
    hunch_error err = {0};
    if (hn_source_open(&src, path, &err) || hn_tokenizer_open(&t, src, &err)) fail_msg("%s", err.message);
    hn_source_close(&src);
    assert_non_null(t);
    return t;
}

static void expect_fit(const hn_tokenizer *a, const hn_tokenizer *b) {
    const hn_vocabulary t = {"a", 512, a}, d = {"b", 520, b};
    hunch_error err = {0};
    if (hn_vocabulary_fit(&t, &d, &err) || hn_vocabulary_fit(&d, &t, &err)) fail_msg("%s", err.message);
}

/* says: NULL, or three texts that the message contains */
static void expect_refused(const hn_tokenizer *a, const hn_tokenizer *b, const char *const says[3]) {
    const hn_vocabulary t = {"this one", 512, a}, d = {NULL, 105, b};
    hunch_error err = {0};
    assert_int_equal(hn_vocabulary_fit(&t, &d, &err), HUNCH_REFUSED);
    for (int i = 0; i < 3; i++)
        if (!strstr(err.message, says[i])) fail_msg("no '%s' in: %s", says[i], err.message);
}

static void test_two_formats_of_one(void **state) {
    (void)state;
    hn_tokenizer *a = open_tokenizer(STORIES "/stories260K.f32.gguf"), *b = open_tokenizer(STORIES "/hf");
    expect_fit(a, a);
    expect_fit(a, b);
    hn_tokenizer_close(&a);
    hn_tokenizer_close(&b);
}

static void test_two_vocabularies(void **state) {
    (void)state;
    hn_tokenizer *a = open_tokenizer(STORIES "/stories260K.f32.gguf"),
                 *b = open_tokenizer(BABYLLAMA "/babyllama105.f32.gguf");
    expect_refused(a, b,
                   (const char *const[]){"target this one (512 tokens)", "draft (105 tokens)",
                                         "token 3 is \"\\x00\" in the target, \" \" in the draft"});
    expect_refused(b, a, (const char *const[]){"target this one (105 tokens)", "draft (512 tokens)", "token 3"});
    expect_refused(a, NULL, (const char *const[]){"512 tokens)", "105 tokens, no tokenizer", "size"});
    hn_tokenizer_close(&a);
    hn_tokenizer_close(&b);
}

static void test_without_tokenizers(void **state) {
    (void)state;
    const hn_vocabulary a = {"a", 7, NULL}, b = {"b", 7, NULL}, c = {"c", 8, NULL};
    assert_int_equal(hn_vocabulary_fit(&a, &b, NULL), HUNCH_OK);
    assert_int_equal(hn_vocabulary_fit(&a, &c, NULL), HUNCH_REFUSED);
}

/* A byte-level tokenizer of 256 letters and one merge, then `extra` tokens of the kind (5: unused, 3: control). */
static hn_tokenizer *small_tokenizer(const char *const *extra, int n, int32_t kind) {
    char letters[256][3];
    const char *text[272], *merge = "a b", *path = test_path("vocabulary.gguf");
    size_t len[272], merge_len = 3;
    int32_t kinds[272];
    int made = 0;
    for (int b = 0; b < 256; b++) { /* GPT-2's alphabet, in its own order */
        const unsigned cp = b < 94    ? 0x21u + (unsigned)b
                            : b < 106 ? 0xA1u + (unsigned)b - 94
                            : b < 188 ? 0xAEu + (unsigned)b - 106
                                      : 0x100u + (unsigned)b - 188;
        char *l = letters[made];
        int k = 0;
        if (cp >= 0x80) l[k++] = (char)(0xC0 | cp >> 6);
        l[k++] = (char)(cp >= 0x80 ? 0x80 | (cp & 0x3F) : cp);
        text[made] = l;
        len[made] = (size_t)k;
        kinds[made++] = 1;
    }
    text[made] = "ab", len[made] = 2, kinds[made++] = 1;
    for (int i = 0; i < n; i++) text[made] = extra[i], len[made] = strlen(extra[i]), kinds[made++] = kind;
    hn_gguf_writer *w = NULL;
    hunch_error err = {0};
    hunch_status s = hn_gguf_writer_open(&w, path, &err);
    if (!s) s = hn_gguf_put_str(w, "tokenizer.ggml.model", "gpt2", 4, &err);
    if (!s) s = hn_gguf_put_strings(w, "tokenizer.ggml.tokens", text, len, (size_t)made, &err);
    if (!s) s = hn_gguf_put_i32s(w, "tokenizer.ggml.token_type", kinds, (size_t)made, &err);
    if (!s) s = hn_gguf_put_strings(w, "tokenizer.ggml.merges", &merge, &merge_len, 1, &err);
    if (!s) s = hn_gguf_writer_finish(&w, &err);
    if (s) fail_msg("%s", err.message);
    return open_tokenizer(path);
}

static void test_padding(void **state) {
    (void)state;
    static const char *const pads[] = {"[PAD257]", "[PAD258]"}, *const names[] = {"<|a|>", "<|b|>"},
                             *const other[] = {"<|a|>", "\n\"x"};
    hn_tokenizer *bare = small_tokenizer(NULL, 0, 0), *padded = small_tokenizer(pads, 2, 5),
                 *spelled = small_tokenizer(names, 2, 5);
    hn_tokenizer *named = small_tokenizer(names, 2, 3), *longer = small_tokenizer(pads, 1, 5),
                 *differs = small_tokenizer(other, 2, 3);
    expect_fit(bare, padded);
    expect_fit(longer, padded);
    expect_fit(padded, spelled); /* padding under any name */
    expect_fit(spelled, named);  /* the same name, however it is marked */
    expect_refused(
        bare, named,
        (const char *const[]){"257 tokens", "259 tokens", "token 257 is nothing in the target, \"<|a|>\" in"});
    expect_refused(padded, named, (const char *const[]){"259 tokens", "259 tokens", "token 257 is \"[PAD257]\" in"});
    expect_refused(
        named, differs,
        (const char *const[]){"259", "259", "token 258 is \"<|b|>\" in the target, \"\\x0A\\x22x\" in the draft"});
    hn_tokenizer_close(&bare);
    hn_tokenizer_close(&padded);
    hn_tokenizer_close(&spelled);
    hn_tokenizer_close(&named);
    hn_tokenizer_close(&longer);
    hn_tokenizer_close(&differs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_formats_of_one),
        cmocka_unit_test(test_two_vocabularies),
        cmocka_unit_test(test_without_tokenizers),
        cmocka_unit_test(test_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
