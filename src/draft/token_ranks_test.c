/* SPDX-License-Identifier: Apache-2.0 */
/* token_ranks_test.c - the tokens that hn_tokens_choose chooses: by lists, counts and the tokenizer, the special ones, and its errors
 * for invalid files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "draft/token_ranks.h"
#include "format/torch_for_tests.h"
#include "text/tokenizer/tokenizer_for_tests.h"

enum { VOCAB = 16 }; /* of the model: two more than the tokenizer has */
static hunch_error error;

/* 0 and 13 are special, 12 is padding. */
static const char json[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"<s>\": 0, \"a\": 1, \"b\": 2, \"c\": 3, \"d\": 4, \"ab\": 5, \"cd\": 6, \"bc\": 7, "
    "\"abcd\": 8, \"da\": 9, \"dd\": 10, \"\\n\": 11, \"</s>\": 13}, "
    "\"merges\": [\"a b\", \"c d\", \"b c\", \"ab cd\", \"d a\", \"d d\"]}, \"added_tokens\": ["
    "{\"id\": 0, \"content\": \"<s>\", \"special\": true}, {\"id\": 13, \"content\": \"</s>\", \"special\": true}]}";

static hn_tokenizer *open_tokenizer(void) {
    hn_tokenizer *t;
    if (open_json(json, &t, &error)) fail_msg("%s", error.message);
    assert_int_equal(hn_tokenizer_vocab(t), 14);
    assert_true(hn_tokenizer_is_padding(t, 12) && !hn_tokenizer_is_padding(t, 13));
    return t;
}

static const char *file_of(const char *name, const char *text, size_t size) {
    const char *path = test_path(name);
    test_file_write(path, text, size);
    return path;
}

static void check(const hn_tokenizer *t, hn_token_selection wish, const int32_t *want, int n) {
    int32_t *out;
    int got;
    if (hn_tokens_choose(&wish, t, VOCAB, &out, &got, &error)) fail_msg("%s", error.message);
    assert_int_equal(got, n);
    for (int i = 0; i < n; i++)
        if (out[i] != want[i]) fail_msg("%d tokens: number %d is %d, expected %d", wish.n, i, out[i], want[i]);
    hn_free(out);
}
#define CHECK(t, wish, ...) check(t, wish, (const int32_t[]){__VA_ARGS__}, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static hn_token_selection by_tokenizer(int n) { return (hn_token_selection){n, NULL, NULL}; }
static hn_token_selection by_list(int n, const char *path) { return (hn_token_selection){n, path, NULL}; }
static hn_token_selection by_texts(int n, const char *path) { return (hn_token_selection){n, NULL, path}; }

static void test_by_tokenizer(void **state) {
    (void)state;
    hn_tokenizer *t = open_tokenizer();
    int32_t *out = (int32_t *)&error;
    int n = 7;
    CHECK(t, by_tokenizer(2), 0, 13);
    CHECK(t, by_tokenizer(3), 0, 1, 13);
    CHECK(t, by_tokenizer(8), 0, 1, 2, 3, 4, 5, 11, 13);
    CHECK(t, by_tokenizer(12), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13);
    CHECK(t, by_tokenizer(15), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13); /* there are no more */
    const hn_token_selection all = {VOCAB, NULL, NULL}, more = {1 << 30, "no such file", NULL};
    assert_int_equal(hn_tokens_choose(&all, t, VOCAB, &out, &n, &error), HUNCH_OK);
    assert_true(!out && n == 0);
    assert_int_equal(hn_tokens_choose(&more, t, VOCAB, &out, &n, &error), HUNCH_OK);
    assert_true(!out && n == 0);
    hn_tokenizer_close(&t);
}

static void test_by_list(void **state) {
    (void)state;
    hn_tokenizer *t = open_tokenizer();
    const char *list = file_of("list.json", " [9, 12, 15, 7, 13, 4, 1]", 25);
    CHECK(t, by_list(3, list), 0, 9, 13);
    CHECK(t, by_list(5, list), 0, 4, 7, 9, 13);
    CHECK(NULL, by_list(5, list), 7, 9, 12, 13, 15); /* special tokens and padding are not known */
    list = file_of("list.txt", "9 12\n15\t7\r\n13 4 1\n", 18);
    CHECK(t, by_list(5, list), 0, 4, 7, 9, 13);
    hn_tokenizer_close(&t);
}

/* As torch.save writes a list, FR-Spec's form. */
static void test_by_torch(void **state) {
    (void)state;
    zip_builder z = {.n = 0};
    bytes pickle = {0};
    pk_raw(&pickle, "\x80\x02](");
    static const int64_t ids[] = {9, 7, 4, 1};
    for (int i = 0; i < 4; i++) pk_int(&pickle, ids[i]);
    pk_raw(&pickle, "e.");
    zip_add(&z, "freq/data.pkl", pickle.at, pickle.size);
    zip_add(&z, "freq/version", "3\n", 2);
    zip_finish(&z);
    CHECK(NULL, by_list(3, file_of("freq.pt", (const char *)z.b.at, z.b.size)), 4, 7, 9);
    bytes_free(&z.b);
    bytes_free(&pickle);
}

static void test_by_texts(void **state) {
    (void)state;
    hn_tokenizer *t = open_tokenizer();
    const char *text = file_of("text.txt", "dddddd\nbc\nab", 12); /* dd dd dd, bc, ab */
    CHECK(t, by_texts(3, text), 0, 10, 13);
    CHECK(t, by_texts(4, text), 0, 10, 11, 13);
    CHECK(t, by_texts(5, text), 0, 5, 10, 11, 13); /* of those that occur once the one whose merge is first */
    CHECK(t, by_texts(7, text), 0, 1, 5, 7, 10, 11, 13); /* and after them the first of all */
    static const char rows[] = "{\"text\": \"dddd\", \"id\": \"cdcdcdcdcd\"}\n\n"
                               "{\"messages\": [{\"role\": \"abab\", \"content\": [{\"type\": \"text\", \"text\": \"dada\"}]}, "
                               "{\"content\": \"da\"}]}\n"
                               "{\"prompt\": [\"bc\", \"bc\"], \"n\": 3}";
    text = file_of("rows.jsonl", rows, sizeof rows - 1);
    CHECK(t, by_texts(3, text), 0, 9, 13);
    CHECK(t, by_texts(5, text), 0, 7, 9, 10, 13);
    CHECK(t, by_texts(6, text), 0, 1, 7, 9, 10, 13);
    hn_tokenizer_close(&t);
}

/* A long text is read in pieces. */
static void test_long_text(void **state) {
    (void)state;
    enum { LINES = 50000 };
    hn_tokenizer *t = open_tokenizer();
    char *text = malloc(8 * LINES + 1);
    for (int i = 0; i < LINES; i++) memcpy(text + 8 * i, i < LINES - 9 ? "dddddd\nd" : "bcbcbcd\n", 8);
    CHECK(t, by_texts(6, file_of("long.txt", text, 8 * LINES)), 0, 4, 7, 10, 11, 13);
    free(text);
    hn_tokenizer_close(&t);
}

static void refused(const hn_tokenizer *t, hn_token_selection wish, hunch_status status, const char *says) {
    int32_t *out = (int32_t *)&error;
    int n = 7;
    assert_int_equal(hn_tokens_choose(&wish, t, VOCAB, &out, &n, &error), status);
    if (!strstr(error.message, says) || strpbrk(error.message, "\n\r\x1b")) fail_msg("\"%s\", expected \"%s\"", error.message, says);
    if (status != HUNCH_USAGE && !strstr(error.message, wish.ids ? wish.ids : wish.texts)) fail_msg("\"%s\" names no file", error.message);
    assert_true(!out && n == 0);
}

static void test_bad_lists(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no token in it"},
        {" \n", "no token in it"},
        {"[]", "no token in it"},
        {"1 2 x", "entry 3 is no whole number"},
        {"1 2.5", "entry 2 is no whole number"},
        {"1,2", "entry 1 is no whole number"},
        {"1 99999999999999999999", "entry 2 is no whole number"},
        {"1 2 16", "entry 3 is token 16, expected 0 to 15"},
        {"-1", "entry 1 is token -1, expected 0 to 15"},
        {"3 1 3", "entry 3 is token 3, as one before it is"},
        {"[1, 2", "not readable as JSON: line 1"},
        {"[1, \"2\"]", "entry 2 is no whole number"},
        {"[1, 1e30]", "entry 2 is no whole number"},
        {"[1, 99999999999999999999]", "entry 2 is no whole number"},
        {"[1, 2.0]", "entry 2 is no whole number"},
        {"[[1]]", "entry 1 is no whole number"},
        {"[1, 2, 3, 16]", "entry 4 is token 16"},
        {"[5, 5]", "entry 2 is token 5, as one before it is"},
        {"{\"ids\": [1]}", "entry 1 is no whole number"},
        {"1 2 3", "5 tokens with the special ones, expected at least the 6 of vocab=6"},
        {"PK\3\4 and so on", "freq"},
    };
    hn_tokenizer *t = open_tokenizer();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(t, by_list(6, file_of("freq", cases[i].text, strlen(cases[i].text))), HUNCH_REFUSED, cases[i].says);
    refused(t, by_list(6, file_of("nul", "1 2\0" "3", 5)), HUNCH_REFUSED, "entry 3 is no whole number");
    refused(t, by_list(6, test_path("missing")), HUNCH_FAILED, "no such file");
    hn_tokenizer_close(&t);
}

static void test_bad_texts(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        {"a.txt", "", "no text in it"},
        {"a.txt", "ab\xff", "not valid UTF-8 at byte 2"},
        {"a.txt", "ab ab", "a.txt: the model's vocabulary has no token for \" \""},
        {"a.jsonl", "", "no text in it, expected some whose tokens can be counted: rows"},
        {"a.jsonl", "{\"role\": \"ab\"}", "no text in it"},
        {"a.jsonl", "                        ", "no text in it"}, /* blanks to the last byte of the file */
        {"a.jsonl", "{\"text\": \"ab\"}\n{\"text\"", "not readable as JSON: line 2"},
        {"a.JSONL", "{\"text\": \"ab\"}\n\n[1]", "line 3: expected an object"},
    };
    hn_tokenizer *t = open_tokenizer();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(t, by_texts(6, file_of(cases[i].name, cases[i].text, strlen(cases[i].text))), HUNCH_REFUSED, cases[i].says);
    refused(t, by_texts(6, test_path("missing")), HUNCH_FAILED, "no such file");
    hn_tokenizer_close(&t);
}

static void test_bad_targets(void **state) {
    (void)state;
    hn_tokenizer *t = open_tokenizer();
    refused(t, by_tokenizer(1), HUNCH_USAGE, "vocab=1: this model has 2 special tokens");
    refused(NULL, by_tokenizer(6), HUNCH_USAGE,
            "the model has no tokenizer, whose order would tell which tokens are likely: expected ids=FILE");
    refused(NULL, by_texts(6, "x"), HUNCH_USAGE, "no tokenizer to count tokens with: expected ids=FILE");
    hn_tokenizer_close(&t);
    static const char flat[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"ab\": 0, \"a\": 1, \"b\": 2}, \"merges\": [\"a b\"]}}";
    if (open_json(flat, &t, &error)) fail_msg("%s", error.message);
    refused(t, by_tokenizer(2), HUNCH_USAGE, "does not tell which tokens are likely: expected ids=FILE or texts=FILE");
    CHECK(t, by_texts(1, file_of("text.txt", "abab", 4)), 0); /* texts have the information */
    hn_tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_tokenizer), cmocka_unit_test(test_by_list),
                                       cmocka_unit_test(test_by_torch),     cmocka_unit_test(test_by_texts),
                                       cmocka_unit_test(test_long_text),    cmocka_unit_test(test_bad_lists),
                                       cmocka_unit_test(test_bad_texts),    cmocka_unit_test(test_bad_targets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
