/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hostile_test.c - files and texts made to be slow, huge or wrong: a status within seconds, never a crash.
 *
 * Errors of single wrong values: tokenizer_test.c. Inputs of a fuzzer: tests/fuzz.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/random.h"
#include "fixture.h"
#include "text/tokenizer/tokenizer_for_tests.h"
#include "text/tokenizer/tokenizer_private.h"

#define BYTES "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}"
#define SMALL "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"aa\": 2}, \"merges\": [\"a a\"]}"

/* Opens it and encodes: any status, within finite time. */
static void try(const char *json, size_t len, const char *text, size_t n_text) {
    hn_tokenizer *t = NULL;
    hunch_error e = {0};
    int32_t *ids = NULL;
    size_t n;
    hunch_status s = open_folder_of(json, len, "{}", "{}", &t, &e);
    assert_true(s == HUNCH_OK || (t == NULL && e.message[0]));
    if (s == HUNCH_OK && t) s = hn_tokenizer_encode(t, text, n_text, HUNCH_TEXT_PARSE_SPECIAL, &ids, &n, &e);
    assert_true(s == HUNCH_OK || (ids == NULL && e.message[0]));
    hn_free(ids);
    hn_tokenizer_close(&t);
}

static hn_tokenizer *opened(const char *json) {
    hn_tokenizer *t;
    hunch_error e = {0};
    if (open_json(json, &t, &e) != HUNCH_OK) fail_msg("%s", e.message);
    return t;
}

static void refused(const char *json, const char *says) {
    hn_tokenizer *t;
    hunch_error e = {0};
    if (open_json(json, &t, &e) != HUNCH_REFUSED || !strstr(e.message, says))
        fail_msg("\"%s\", expected \"%s\"", e.message, says);
    assert_null(t);
}

/* prefix, then `one` n times, then suffix; freed by the caller. */
static char *repeat(const char *prefix, const char *one, size_t n, const char *suffix) {
    size_t a = strlen(prefix), b = strlen(one), c = strlen(suffix);
    char *out = malloc(a + n * b + c + 1), *at = out;
    at = (char *)memcpy(at, prefix, a) + a;
    for (size_t i = 0; i < n; i++) at = (char *)memcpy(at, one, b) + b;
    memcpy(at, suffix, c + 1);
    return out;
}

static void test_nesting(void **state) {
    (void)state;
    static const size_t depths[] = {3, 8, 100, 100000};
    for (int i = 0; i < 4; i++) {
        char *open = repeat("{\"normalizer\": ", "{\"type\": \"Sequence\", \"normalizers\": [", depths[i],
                            "{\"type\": \"NFC\"}");
        char *json = repeat(open, "]}", depths[i], ", " BYTES ", " SMALL "}");
        hn_tokenizer *t;
        hunch_error e = {0};
        hunch_status s = open_json(json, &t, &e);
        assert_true(i == 0 ? s == HUNCH_OK : s == HUNCH_REFUSED && !t);
        hn_tokenizer_close(&t);
        free(open);
        free(json);
    }
}

static void test_counts(void **state) {
    (void)state;
    char *many = repeat("{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [",
                        "{\"type\": \"Punctuation\"},", 1000, "{\"type\": \"Digits\"}]}, " SMALL "}");
    refused(many, "of so many steps");
    free(many);
    many = repeat("{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [", "{\"type\": \"NFC\"},", 1000,
                  "{\"type\": \"NFD\"}]}, " SMALL "}");
    refused(many, "of so many steps");
    free(many);
    many = repeat("{" BYTES ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [",
                  "{\"SpecialToken\": {\"id\": \"a\"}},", 9, "{\"Sequence\": {}}]}, " SMALL "}");
    refused(many, "at most 8 ids");
    free(many);
    many = repeat("{" BYTES ", \"model\": {\"type\": \"BPE\", \"vocab\": {\"", "x", 1025, "\": 0}, \"merges\": []}}");
    refused(many, "1025 bytes");
    free(many);
    many = repeat("{" BYTES ", " SMALL ", \"decoder\": {\"type\": \"Sequence\", \"decoders\": [",
                  "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": "
                  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"},",
                  15, "{\"type\": \"Fuse\"}]}}");
    refused(many, "the decoder makes more than 1024 bytes");
    free(many);
    /* One token with the highest id: a vocabulary of two million, mostly holes. */
    hn_tokenizer *t =
        opened("{" BYTES ", \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 2097151}, \"merges\": []}}");
    assert_int_equal(hn_tokenizer_vocab(t), 2097152);
    assert_true(hn_tokenizer_is_padding(t, 5) && !hn_tokenizer_is_padding(t, 2097151));
    hn_tokenizer_close(&t);
}

/* A reader that adds more bytes than it measured. */
static void test_more_than_measured(void **state) {
    (void)state;
    hn_tokenizer t = {.spelling = HN_SPELL_PLAIN};
    hunch_error e = {0};
    assert_int_equal(hn_vocab_init(&t, 2, 3, &e), HUNCH_OK);
    assert_int_equal(hn_vocab_put(&t, 0, HN_TOKEN_NORMAL, "abc", 3, &e), HUNCH_OK);
    assert_int_equal(hn_vocab_put(&t, 1, HN_TOKEN_NORMAL, "d", 1, &e), HUNCH_REFUSED);
    assert_int_equal(hn_vocab_put(&t, 1, HN_TOKEN_NORMAL, "", 0, &e), HUNCH_OK);
    assert_int_equal(hn_vocab_put(&t, 1, HN_TOKEN_NORMAL, "", 0, &e), HUNCH_REFUSED);
    hn_free(t.pieces);
    hn_free(t.kinds);
    hn_free(t.marks);
    hn_free(t.bytes);
}

static void check_long(const hn_tokenizer *t, const char *one, size_t size) {
    hunch_error e = {0};
    int32_t *ids;
    size_t n, count = size / strlen(one);
    char *text = repeat("", one, count, "");
    if (hn_tokenizer_encode(t, text, count * strlen(one), HUNCH_TEXT_PARSE_SPECIAL, &ids, &n, &e) != HUNCH_OK)
        fail_msg("\"%s\": %s", one, e.message);
    assert_true(n > 0 && n <= count * strlen(one));
    hn_free(ids);
    free(text);
}

/* A megabyte of one repeated string, through pipelines of each kind. */
static void test_long_texts(void **state) {
    (void)state;
    static const char *const files[] = {
        "{\"normalizer\": {\"type\": \"NFKC\"}, " BYTES ", " SMALL "}",
        "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": "
        "\"Isolated\", \"pattern\": "
        "{\"Regex\": \"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
        "?[^\\\\s\\\\p{L}\\\\p{N}]+"
        "[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}}, {\"type\": \"ByteLevel\", \"use_regex\": "
        "false}]}, " SMALL "}",
        "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"▁\", \"prepend_scheme\": \"always\"}, "
        "\"model\": {\"type\": "
        "\"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", -1], [\"aa\", -1.5], [\"▁\", -2], [\"▁a\", "
        "-2]]}}",
        "{\"pre_tokenizer\": {\"type\": \"Punctuation\", \"behavior\": \"MergedWithNext\"}, \"model\": {\"type\": "
        "\"BPE\", \"unk_token\": "
        "\"b\", \"fuse_unk\": true, \"vocab\": {\"a\": 0, \"b\": 1, \"aa\": 2, \"aaaa\": 3}, \"merges\": [\"a a\", "
        "\"aa aa\"]}}",
    };
    static const char *const parts[] = {"a", "ab", " a", "▁", ".", "\xCC\x81", "語", "🦙", "7", "'", "a\n"};
    for (int f = 0; f < 4; f++) {
        hn_tokenizer *t = opened(files[f]);
        /* The small byte-level vocabulary has no token for most bytes: then there are no ids. */
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            if (f < 2 && !strchr(parts[i], 'a')) continue;
            check_long(t, parts[i], light() ? 1 << 17 : 1 << 20);
        }
        hn_tokenizer_close(&t);
    }
}

/* Real patterns scan long runs of white space forth and back: no error. */
static void test_long_spaces(void **state) {
    (void)state;
    hn_tokenizer *t = opened("{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
                             "\"behavior\": \"Isolated\", \"pattern\": "
                             "{\"Regex\": \"\\\\p{L}+|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}}, {\"type\": "
                             "\"ByteLevel\", \"use_regex\": false}]}, "
                             "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"\u0120\": 1, \"\u0120\u0120\": 2, "
                             "\"\u0120\u0120\u0120\u0120\": 3}, "
                             "\"merges\": [\"\u0120 \u0120\", \"\u0120\u0120 \u0120\u0120\"]}}");
    enum { LONG = 3 << 20 };
    check_long(t, " ", light() ? LONG / 8 : LONG);
    hn_tokenizer_close(&t);
}

/* Names with a common prefix, and a text that matches that prefix everywhere. */
static void test_names_alike(void **state) {
    (void)state;
    enum { NAMES = 500 };
    char *json = malloc(NAMES * (NAMES + 100)), *at = json;
    at += sprintf(at, "{" BYTES ", " SMALL ", \"added_tokens\": [");
    for (int i = 0; i < NAMES; i++) {
        at += sprintf(at, "%s{\"id\": %d, \"content\": \"", i ? ", " : "", 10 + i);
        memset(at, 'a', (size_t)i);
        at += i;
        at += sprintf(at, "x\", \"normalized\": false}");
    }
    strcpy(at, "]}");
    hn_tokenizer *t = opened(json);
    check_long(t, "a", light() ? 1 << 13 : 1 << 16);
    hn_tokenizer_close(&t);
    free(json);
}

/* A pattern that backtracks without end: an error that names it. */
static void test_slow_pattern(void **state) {
    (void)state;
    hn_tokenizer *t = opened("{\"pre_tokenizer\": {\"type\": \"Split\", \"behavior\": \"Removed\", \"pattern\": "
                             "{\"Regex\": \"(a+)+$|(a|aa)+c\"}}, " SMALL "}");
    hunch_error e = {0};
    int32_t *ids = (int32_t *)"";
    size_t n;
    char text[201];
    memset(text, 'a', 200);
    text[200] = 'b';
    assert_int_equal(hn_tokenizer_encode(t, text, 201, 0, &ids, &n, &e), HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "a pattern of the tokenizer"));
    assert_null(ids);
    hn_tokenizer_close(&t);
}

static const char rich[] = "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, "
                           "{\"type\": \"Replace\", \"pattern\": {\"Regex\": "
                           "\" {2,}\"}, \"content\": \" \"}, {\"type\": \"Prepend\", \"prepend\": \"▁\"}]}, "
                           "\"pre_tokenizer\": {\"type\": \"Sequence\", "
                           "\"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"String\": \".\"}, \"behavior\": "
                           "\"MergedWithNext\", \"invert\": true}, "
                           "{\"type\": \"Metaspace\", \"replacement\": \"▁\", \"prepend_scheme\": \"first\", "
                           "\"split\": true}]}, \"decoder\": {\"type\": "
                           "\"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"b\"}, "
                           "\"content\": \"c\"}, {\"type\": \"Fuse\"}, "
                           "{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}, "
                           "\"post_processor\": {\"type\": \"TemplateProcessing\", "
                           "\"single\": [{\"SpecialToken\": {\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], "
                           "\"special_tokens\": {\"<s>\": {\"id\": \"<s>\", "
                           "\"ids\": [5]}}}, \"added_tokens\": [{\"id\": 5, \"content\": \"<s>\", \"special\": true, "
                           "\"normalized\": true, \"lstrip\": true}, "
                           "{\"id\": 6, \"content\": \"<t>\", \"single_word\": true, \"rstrip\": true}], \"model\": "
                           "{\"type\": \"BPE\", \"byte_fallback\": true, "
                           "\"unk_token\": \"<u>\", \"vocab\": {\"a\": 0, \"b\": 1, \"▁\": 2, \"ab\": 3, \"▁ab\": 4, "
                           "\"<0x0A>\": 7, \"<u>\": 8}, \"merges\": "
                           "[\"a b\", [\"▁\", \"ab\"]]}}";

/* A good file with bytes changed, removed, doubled. */
static void test_mutations(void **state) {
    (void)state;
    static const char text[] = "a <t> ab. ab▁b<s> \n語 é 'll";
    uint64_t seed = 77;
    hn_tokenizer *t = opened(rich);
    assert_true(hn_tokenizer_vocab(t) == 9);
    hn_tokenizer_close(&t);
    for (int i = 0; i < (light() ? 300 : 800); i++) {
        char json[2 * sizeof rich];
        size_t len = sizeof rich - 1, at = hn_splitmix(&seed) % len, n = 1 + hn_splitmix(&seed) % 12;
        memcpy(json, rich, len);
        if (at + n > len) n = len - at;
        switch (hn_splitmix(&seed) % 4) {
        case 0: json[at] = (char)hn_splitmix(&seed); break;
        case 1:
            memmove(json + at, json + at + n, len - at - n);
            len -= n;
            break;
        case 2:
            memmove(json + at + n, json + at, len - at);
            len += n;
            break;
        default: json[at] = "0123456789[]{}\",:-\\"[hn_splitmix(&seed) % 19];
        }
        try(json, len, text, sizeof text - 1);
    }
}

static void test_truncation(void **state) {
    (void)state;
    for (size_t len = 0; len < sizeof rich - 1; len += light() ? 37 : 7) try(rich, len, "ab", 2);
}

/* Each allocation in turn fails: no leaks, no partial results. */
static void test_no_memory(void **state) {
    (void)state;
    static const char unigram[] = "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": "
                                  "\"BAAAAAAAAAA=\"}, \"pre_tokenizer\": {\"type\": "
                                  "\"Metaspace\", \"replacement\": \"▁\"}, \"model\": {\"type\": \"Unigram\", "
                                  "\"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", -1], "
                                  "[\"▁\", -2]]}}";
    const char *const files[] = {rich, unigram};
    for (int f = 0; f < 2; f++) {
        hn_source *src;
        int failed = 0;
        tokenizer_folder(files[f], strlen(files[f]), "{}", "{}");
        assert_int_equal(hn_source_open(&src, test_path("hf"), NULL), HUNCH_OK);
        for (int64_t after = 0; after < 300; after++) { /* one may fail without an error: that of PCRE2's own stack */
            hn_tokenizer *t = NULL;
            hunch_error e = {0};
            int32_t *ids = NULL;
            size_t n;
            hn_fault_arm(HN_FAULT_ALLOC, after, false);
            hunch_status s = hn_tokenizer_open(&t, src, &e);
            if (s == HUNCH_OK) s = hn_tokenizer_encode(t, "a ab <t> é  b.", 15, HUNCH_TEXT_PARSE_SPECIAL, &ids, &n, &e);
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            assert_true(s == HUNCH_OK || (s == HUNCH_NO_MEMORY && e.status == s && !ids));
            failed += s != HUNCH_OK;
            hn_free(ids);
            hn_tokenizer_close(&t);
        }
        assert_in_range(failed, 30, 290);
        hn_source_close(&src);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting),     cmocka_unit_test(test_counts),      cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_long_spaces), cmocka_unit_test(test_names_alike), cmocka_unit_test(test_slow_pattern),
        cmocka_unit_test(test_mutations),   cmocka_unit_test(test_truncation),  cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_more_than_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
