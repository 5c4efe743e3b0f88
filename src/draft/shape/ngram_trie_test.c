/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_trie_test.c - a trie's answers on random texts compared with counts made one by one, and damaged files: refused if the header
 * shows it, else the answers are still probabilities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/random.h"
#include "draft/shape/trie_for_tests.h"

enum { QUERIED = 40 };
static hn_tokenizer *tokenizer;
static trie_texts texts;
static uint64_t seed = 11;

static int number(int below) { return (int)(hn_splitmix(&seed) % (uint64_t)below); }

/* Few different tokens, so that n-grams repeat. */
static void write_texts(int n_texts, int tokens) {
    texts.n = texts.tokens = 0;
    for (int i = 0; i < n_texts; i++) {
        int32_t text[60];
        const int n = 1 + number(60);
        for (int k = 0; k < n; k++) text[k] = number(4) ? number(tokens) : TRIE_VOCAB - 1 - number(2);
        trie_text(&texts, text, n);
    }
}

/* The share of the token after the longest end of the context that it ever followed. */
static float expected(const int32_t *context, int n, int32_t token) {
    for (int from = n > 2 ? n - 2 : 0; from < n; from++) {
        int32_t gram[3];
        memcpy(gram, context + from, (size_t)(n - from) * sizeof *gram);
        gram[n - from] = token;
        const uint32_t times = trie_count(&texts, gram, n - from + 1);
        if (times) return (float)times / (float)trie_count(&texts, gram, n - from);
    }
    return 0;
}

static void test_counts(void **state) {
    (void)state;
    for (int round = 0; round < 8; round++) {
        write_texts(6 + round, 3 + 2 * round);
        hn_trie t = trie_open(&texts, tokenizer, test_path("a.trie"));
        for (int i = 0; i < 300; i++) {
            const int at = number(texts.n), n = number(4);
            int32_t context[3], token[QUERIED];
            float p[QUERIED];
            for (int k = 0; k < n; k++)
                context[k] = number(5) && at + k < texts.n && texts.token[at + k] >= 0 ? texts.token[at + k] : number(TRIE_VOCAB);
            for (int k = 0; k < QUERIED; k++) token[k] = k < 30 ? k : TRIE_VOCAB - 1 - (k - 30);
            hn_trie_query(&t, context, n, token, QUERIED, p);
            for (int k = 0; k < QUERIED; k++)
                if (p[k] != expected(context, n, token[k]))
                    fail_msg("token %d: %g, expected %g", token[k], (double)p[k], (double)expected(context, n, token[k]));
        }
        hn_trie_close(&t);
    }
}

/* Tokens that the trie does not have. */
static void test_unknown_tokens(void **state) {
    (void)state;
    const int32_t odd[] = {-1, TRIE_VOCAB, INT32_MAX, INT32_MIN, 1};
    float p[5];
    write_texts(5, 4);
    hn_trie t = trie_open(&texts, tokenizer, test_path("a.trie"));
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++) {
            const int32_t context[] = {odd[i], odd[k]};
            hn_trie_query(&t, context, 2, odd, 5, p);
            for (int j = 0; j < 4; j++) assert_true(p[j] == 0);
        }
    hn_trie_query(&t, NULL, 0, odd, 5, p);
    for (int j = 0; j < 5; j++) assert_true(p[j] == 0);
    hn_trie_close(&t);
}

static void refused(const bytes *b, hunch_status st, const char *why) {
    hn_trie t;
    hunch_error err = {0};
    const char *path = test_path("bad.trie");
    test_file_write(path, b->at, b->size);
    assert_int_equal(hn_trie_open(&t, path, tokenizer, &err), st);
    if (!strstr(err.message, why) || !strstr(err.message, path)) fail_msg("'%s', expected '%s'", err.message, why);
    assert_null(t.map.data);
}

/* A header with another value and a check that is right again. */
static void header_refused(const bytes *good, size_t at, uint64_t value, size_t width, const char *why) {
    bytes b = {0};
    hn_trie_header head;
    bytes_put(&b, good->at, good->size);
    memcpy(b.at + at, &value, width);
    memcpy(&head, b.at, sizeof head);
    head.check = hn_trie_check(&head);
    memcpy(b.at, &head, sizeof head);
    refused(&b, HUNCH_REFUSED, why);
    bytes_free(&b);
}

static void test_headers(void **state) {
    (void)state;
    write_texts(5, 6);
    bytes b = trie_bytes(&texts, tokenizer);
    hn_trie_header head;
    memcpy(&head, b.at, sizeof head);
    header_refused(&b, 0, 'h', 1, "begins with other bytes");
    header_refused(&b, 8, 2, 4, "a trie of version 2 and order 3, expected 1 and 3");
    header_refused(&b, 12, 4, 4, "version 1 and order 4");
    header_refused(&b, 16, 5, 8, "of another tokenizer's tokens, expected one built with this model");
    header_refused(&b, 24, head.vocab + 1, 8, "it was cut off or damaged");
    header_refused(&b, 32, head.pairs - 1, 8, "it was cut off or damaged");
    header_refused(&b, 40, UINT64_MAX, 8, "it was cut off or damaged");
    header_refused(&b, 32, (uint64_t)1 << 62, 8, "it was cut off or damaged");
    b.at[24] ^= 1;
    refused(&b, HUNCH_REFUSED, "has a damaged header");
    b.at[24] ^= 1;
    for (size_t size = 0; size < b.size; size += size < 70 ? 1 : b.size / 7) {
        const bytes cut = {b.at, size, size};
        refused(&cut, HUNCH_REFUSED, size < sizeof head ? "has no room for a header" : "it was cut off or damaged");
    }
    bytes_put(&b, "", 1);
    refused(&b, HUNCH_REFUSED, "it was cut off or damaged");
    bytes_free(&b);
}

/* Random bytes after the header. */
static void test_damage(void **state) {
    (void)state;
    write_texts(9, 6);
    bytes good = trie_bytes(&texts, tokenizer);
    for (int round = 0; round < 300; round++) {
        bytes b = {0};
        hn_trie t;
        hunch_error err;
        bytes_put(&b, good.at, good.size);
        for (int i = 0; i < 1 + round; i++) b.at[64 + number((int)b.size - 64)] = (unsigned char)(number(3) ? number(256) : 255);
        test_file_write(test_path("damaged.trie"), b.at, b.size);
        bytes_free(&b);
        if (hn_trie_open(&t, test_path("damaged.trie"), tokenizer, &err)) fail_msg("%s", err.message);
        for (int i = 0; i < 60; i++) {
            int32_t token[QUERIED];
            float p[QUERIED];
            for (int k = 0; k < QUERIED; k++) token[k] = number(8) ? number(8) : number(TRIE_VOCAB);
            hn_trie_query(&t, token, 2, token, QUERIED, p);
            for (int k = 0; k < QUERIED; k++) assert_true(p[k] >= 0 && p[k] <= 1);
        }
        hn_trie_close(&t);
    }
    bytes_free(&good);
}

/* The file is checked again before it is queried: truncation is noticed. */
static void test_changes(void **state) {
    (void)state;
    hunch_error err;
    write_texts(5, 6);
    hn_trie t = trie_open(&texts, tokenizer, test_path("a.trie"));
    assert_int_equal(hn_map_check(&t.map, "a.trie", &err), HUNCH_OK);
    assert_int_equal(truncate(test_path("a.trie"), 100), 0);
    assert_int_equal(hn_map_check(&t.map, "a.trie", &err), HUNCH_FAILED);
    hn_trie_close(&t);
}

static void test_faults(void **state) {
    (void)state;
    hunch_error err;
    write_texts(5, 6);
    hn_trie t = trie_open(&texts, tokenizer, test_path("a.trie"));
    hn_trie_close(&t);
    for (enum hn_fault_kind kind = HN_FAULT_ALLOC; kind <= HN_FAULT_READ; kind++) {
        hn_fault_arm(kind, INT64_MAX, false);
        assert_int_equal(hn_trie_open(&t, test_path("a.trie"), tokenizer, &err), HUNCH_OK);
        const int64_t n = (int64_t)hn_fault_count(kind);
        hn_trie_close(&t);
        assert_true(n > 0);
        for (int64_t i = 0; i < n; i++) {
            hn_fault_arm(kind, i, false);
            assert_int_equal(hn_trie_open(&t, test_path("a.trie"), tokenizer, &err),
                             kind == HN_FAULT_ALLOC ? HUNCH_NO_MEMORY : HUNCH_FAILED);
        }
        hn_fault_arm(kind, -1, false);
    }
}

/* One hash for the same tokens from a GGUF and from a folder, another for others. */
static void test_tokenizers(void **state) {
    (void)state;
    static const char *const file[] = {"/models/stories260K/stories260K.f16.gguf", "/models/stories260K/hf", "/models/babyllama105/hf"};
    for (int i = 0; i < 3; i++) {
        hn_source *src;
        hn_tokenizer *t;
        hunch_error err;
        char path[500];
        snprintf(path, sizeof path, "%s%s", HUNCH_TEST_DATA, file[i]);
        if (hn_source_open(&src, path, &err) || hn_tokenizer_open(&t, src, &err)) fail_msg("%s", err.message);
        if ((hn_trie_tokenizer(t) == hn_trie_tokenizer(tokenizer)) != (i < 2)) fail_msg("%s", file[i]);
        hn_tokenizer_close(&t);
        hn_source_close(&src);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts),  cmocka_unit_test(test_unknown_tokens),
                                       cmocka_unit_test(test_headers), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_changes), cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_tokenizers)};
    tokenizer = trie_tokenizer();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hn_tokenizer_close(&tokenizer);
    return failed;
}
