/* SPDX-License-Identifier: Apache-2.0 */
/* convert_lines_test.c - Gemma 4's tokenizer as a GGUF: merges over text with a mark for spaces, and words of ends of lines. The ids are
 * those of the folder; what such a GGUF would encode otherwise is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "convert/convert.h"
#include "model/folder_for_tests.h"
#include "text/tokenizer/tokenizer.h"

#define MARK "\xE2\x96\x81"
#define VOCAB                                                                                                                          \
    "\"<bos>\": 0, \"<unk>\": 1, \"" MARK "\": 2, \"a\": 3, \"b\": 4, \"\\n\": 5, \"ab\": 6, \"" MARK "a\": 7, \"aba\": 8, \"\\n\\n\": 9"
#define MERGES "\"" MARK " a\", \"a b\", \"ab a\", \"\\n \\n\""

/* A folder of Gemma 4 whose tokenizer has more tokens and merges than these. */
static void write_folder(const char *tokens, const char *merges) {
    char text[2000];
    snprintf(text, sizeof text,
             "{\"added_tokens\": [{\"id\": 0, \"content\": \"<bos>\", \"special\": true}], "
             "\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" MARK "\"}, "
             "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": \"MergedWithPrevious\"}, "
             "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"" MARK "\"}, "
             "\"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]}, "
             "\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"fuse_unk\": true, \"byte_fallback\": true, "
             "\"vocab\": {" VOCAB "%s}, \"merges\": [" MERGES "%s]}}",
             tokens, merges);
    folder_write_changed("gemma4_text-moe", "\"model_type\"", "\"model_type\"");
    folder_write("tokenizer.json", text, strlen(text));
}

static hn_tokenizer *open_tokenizer(const char *path) {
    hn_source *s = NULL;
    hn_tokenizer *t = NULL;
    hunch_error err = {0};
    if (hn_source_open(&s, path, &err) || hn_tokenizer_open(&t, s, &err)) fail_msg("%s", err.message);
    hn_source_close(&s);
    return t;
}

static void check_ids(const char *tokens, const char *merges) {
    static const char *const texts[] = {"ab a aba  a", "a\nb", "\n\n\n\n\n", " a\n\n\n a b\n", "aab\n\n\n\nab", "\n \n", "abab x a"};
    hunch_error err = {0};
    write_folder(tokens, merges);
    if (hn_convert(test_path("changed"), test_path("lines.gguf"), &err)) fail_msg("%s", err.message);
    hn_tokenizer *a = open_tokenizer(test_path("changed")), *b = open_tokenizer(test_path("lines.gguf"));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t *want = NULL, *got = NULL;
        size_t n = 0, m = 0;
        assert_int_equal(hn_tokenizer_encode(a, texts[i], strlen(texts[i]), 0, &want, &n, &err), HUNCH_OK);
        assert_int_equal(hn_tokenizer_encode(b, texts[i], strlen(texts[i]), 0, &got, &m, &err), HUNCH_OK);
        if (n != m || memcmp(want, got, n * sizeof *want)) fail_msg("\"%s\": %zu ids, %zu from the GGUF", texts[i], n, m);
        hn_free(want);
        hn_free(got);
    }
    hn_tokenizer_close(&a);
    hn_tokenizer_close(&b);
}

static void test_same_ids(void **state) {
    (void)state;
    check_ids("", "");
    check_ids(", \"\\n\\n\\n\": 10, \"\\n\\n\\n\\n\": 11", ", \"\\n\\n \\n\", \"\\n\\n \\n\\n\"");
    /* not what scores can express: two tokens whose union is one are no merge */
    check_ids(", \"ba\": 10", ", \"b a\"");
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *tokens, *merges, *word;
    } cases[] = {
        {", \"a\\n\": 10", ", \"a \\n\"", "token 10 has ends of lines beside other characters"},
        {", \"\\n\\n\\n\": 10", "", "token 10, 3 ends of lines, is not what its merges make of them"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hunch_error err = {0};
        write_folder(cases[i].tokens, cases[i].merges);
        assert_int_equal(hn_convert(test_path("changed"), test_path("lines.gguf"), &err), HUNCH_REFUSED);
        if (!strstr(err.message, cases[i].word)) fail_msg("%s", err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_ids), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
