/* SPDX-License-Identifier: Apache-2.0 */
/* trie_for_tests.h - a trie of n-grams counted in a simple way, and its file; and a tokenizer with these tokens. Include after
 * cmocka's headers. */
#ifndef HN_TRIE_FOR_TESTS_H
#define HN_TRIE_FOR_TESTS_H
#include "draft/shape/ngram_trie.h"
#include "format/bytes_for_tests.h"

enum { TRIE_VOCAB = 512 }; /* of the tokenizer of tests/data/models/stories260K */

static inline hn_tokenizer *trie_tokenizer(void) {
    hn_source *src = NULL;
    hn_tokenizer *t = NULL;
    hunch_error err;
    if (hn_source_open(&src, HUNCH_TEST_DATA "/models/stories260K/stories260K.f32.gguf", &err) || hn_tokenizer_open(&t, src, &err))
        fail_msg("%s", err.message);
    hn_source_close(&src);
    assert_int_equal(hn_tokenizer_vocab(t), TRIE_VOCAB);
    return t;
}

/* Texts of tokens, one after another: a text's tokens, then -1. */
typedef struct trie_texts {
    int32_t token[4096];
    int n, tokens;
} trie_texts;

static inline void trie_text(trie_texts *t, const int32_t *token, int n) {
    for (int i = 0; i < n; i++) t->token[t->n++] = token[i];
    t->token[t->n++] = -1;
    t->tokens += n;
}

/* Number of occurrences of the n tokens in this order. */
static inline uint32_t trie_count(const trie_texts *t, const int32_t *gram, int n) {
    uint32_t times = 0;
    for (int i = 0; i + n <= t->n; i++) times += !memcmp(t->token + i, gram, (size_t)n * sizeof *gram);
    return times;
}

/* The file's bytes, for all tokens below TRIE_VOCAB. */
static inline bytes trie_bytes(const trie_texts *t, const hn_tokenizer *of) {
    bytes single = {0}, pair = {0}, triple = {0};
    hn_trie_header head = {.magic = HN_TRIE_MAGIC, .version = HN_TRIE_VERSION, .order = 3, .tokenizer = hn_trie_tokenizer(of),
                           .vocab = TRIE_VOCAB, .tokens = (uint64_t)t->tokens};
    for (int32_t a = 0; a < TRIE_VOCAB; a++) {
        bytes_number(&single, trie_count(t, &a, 1), 4);
        bytes_number(&single, head.pairs, 4);
        for (int32_t b = 0; b < TRIE_VOCAB && trie_count(t, &a, 1); b++) {
            const uint32_t times = trie_count(t, (int32_t[]){a, b}, 2);
            if (!times) continue;
            bytes_number(&pair, (uint64_t)b, 4);
            bytes_number(&pair, times, 4);
            bytes_number(&pair, head.triples, 4);
            head.pairs++;
            for (int32_t c = 0; c < TRIE_VOCAB; c++) {
                const uint32_t of_three = trie_count(t, (int32_t[]){a, b, c}, 3);
                if (!of_three) continue;
                bytes_number(&triple, (uint64_t)c, 4);
                bytes_number(&triple, of_three, 4);
                head.triples++;
            }
        }
    }
    bytes_number(&single, 0, 4);
    bytes_number(&single, head.pairs, 4);
    bytes_zeros(&pair, 8);
    bytes_number(&pair, head.triples, 4);
    bytes out = {0};
    head.check = hn_trie_check(&head);
    bytes_put(&out, &head, sizeof head);
    bytes_put(&out, single.at, single.size);
    bytes_put(&out, pair.at, pair.size);
    bytes_put(&out, triple.at, triple.size);
    bytes_free(&single);
    bytes_free(&pair);
    bytes_free(&triple);
    return out;
}

/* Writes and opens it. */
static inline hn_trie trie_open(const trie_texts *t, const hn_tokenizer *of, const char *path) {
    bytes b = trie_bytes(t, of);
    hn_trie out;
    hunch_error err;
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
    if (hn_trie_open(&out, path, of, &err)) fail_msg("%s", err.message);
    return out;
}
#endif
