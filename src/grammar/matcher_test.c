/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_test.c - masks are what trying every token by itself says, over the vocabulary of a real model. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/random.h"
#include "grammar/grammar_for_tests.h"
#include "grammar/matcher.h"

static hn_tokenizer *tokenizer;
static hn_vocab_trie *trie;
static int vocab;
enum { PADDED = 7 /* ids that the model has beyond its tokenizer's */ };

static int setup(void **state) {
    (void)state;
    hn_source *src;
    assert_int_equal(hn_source_open(&src, HUNCH_TEST_DATA "/tokenizers/smollm2-vocab.gguf", NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_open(&tokenizer, src, NULL), HUNCH_OK);
    hn_source_close(&src);
    vocab = hn_tokenizer_vocab(tokenizer) + PADDED;
    return hn_vocab_trie_open(&trie, tokenizer, vocab, NULL);
}

static int teardown(void **state) {
    (void)state;
    hn_vocab_trie_close(&trie);
    hn_tokenizer_close(&tokenizer);
    return 0;
}

static hn_matcher *matcher_open(grammar_source *source, const char *text) {
    hunch_error err = {0};
    hn_grammar *g = NULL;
    hn_matcher *m = NULL;
    if (source(&g, text, strlen(text), &err) != HUNCH_OK || hn_matcher_open(&m, &g, trie, &err) != HUNCH_OK)
        fail_msg("%s: %s", text, err.message);
    assert_null(g);
    return m;
}

/* A text of tokens from the mask, each state's mask compared with the steps of all tokens. Returns the tokens that were allowed in all. */
static long walk(grammar_source *source, const char *text, uint64_t seed, int steps) {
    hn_matcher *m = matcher_open(source, text), *other = matcher_open(source, text);
    uint64_t *mask = malloc((size_t)(vocab + 63) / 64 * sizeof *mask);
    int32_t *allowed = malloc((size_t)vocab * sizeof *allowed), state = hn_matcher_start(m), same = hn_matcher_start(other);
    long all = 0;
    for (int i = 0; i < steps; i++) {
        int n = 0;
        for (int32_t id = -1; id <= vocab; id++) {
            const int32_t next = hn_matcher_next(other, same, id);
            assert_int_not_equal(next, HN_MATCH_FULL);
            if (next >= 0) allowed[n++] = id;
        }
        assert_int_equal(hn_matcher_mask(m, state, mask), n);
        for (int k = 0; k < n; k++)
            if (!(mask[allowed[k] / 64] >> allowed[k] % 64 & 1)) fail_msg("%s: step %d: token %d is not in the mask", text, i, allowed[k]);
        all += n;
        if (n == 0) break;
        const int32_t id = allowed[hn_splitmix(&seed) % (uint64_t)n];
        state = hn_matcher_next(m, state, id);
        same = hn_matcher_next(other, same, id);
        assert_true(state >= 0 && same >= 0 && hn_matcher_is_final(m, state) == hn_matcher_is_final(other, same));
    }
    assert_false(hn_matcher_is_full(m));
    hn_matcher_close(&m);
    hn_matcher_close(&other);
    free(mask);
    free(allowed);
    return all;
}

static const char *const gbnf[] = {
    "root ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" [\"\\\\nrt])* \"\\\"\" (\", \" root)?",
    "root ::= [a-z ]{0,7} \".\"",
    "root ::= ([^<]{3,300} \"<b>\")*",
    "root ::= .{5,6} [0-9]*",
    "root ::= (\"def \" | \"class \") [a-zA-Z_]+ \":\\n\" (\"    \" [^\\n]+ \"\\n\"){1,3}",
    "root ::= \"(\" root \")\" root | \"x\"",
    "root ::= <|im_start|> [a-z]+ (<|im_end|> | <file_sep>)?",
};

static void test_masks_are_steps(void **state) {
    (void)state;
    long all = 0;
    for (size_t i = 0; i < sizeof gbnf / sizeof *gbnf; i++)
        for (uint64_t seed = 1; seed <= 2; seed++) all += walk(hn_grammar_gbnf, gbnf[i], seed, 12);
    assert_true(all > 100000);
}

/* End tokens come at final states, and nothing after them. */
static void test_ends(void **state) {
    (void)state;
    hn_matcher *m = matcher_open(hn_grammar_gbnf, "root ::= \"ab\"+");
    const int32_t eos = hn_tokenizer_eos(tokenizer), start = hn_matcher_start(m), mid = hn_matcher_bytes(m, start, "a", 1);
    assert_int_equal(hn_matcher_next(m, start, eos), HN_MATCH_NO);
    assert_int_equal(hn_matcher_next(m, mid, eos), HN_MATCH_NO);
    const int32_t whole = hn_matcher_bytes(m, start, "abab", 4), ended = hn_matcher_next(m, whole, eos);
    assert_true(hn_matcher_is_final(m, whole) && !hn_matcher_is_final(m, mid) && ended >= 0);
    assert_int_equal(hn_matcher_next(m, ended, eos), HN_MATCH_NO);
    assert_int_equal(hn_matcher_bytes(m, ended, "a", 1), HN_MATCH_NO);
    uint64_t *mask = malloc((size_t)(vocab + 63) / 64 * sizeof *mask);
    assert_int_equal(hn_matcher_mask(m, ended, mask), 0);
    assert_true(hn_matcher_mask(m, whole, mask) > 0 && mask[eos / 64] >> eos % 64 & 1);
    free(mask);
    hn_matcher_close(&m);
}

static void test_forced(void **state) {
    (void)state;
    char bytes[32];
    hn_matcher *m = matcher_open(hn_grammar_gbnf, "root ::= \"one \" (\"two\" | \"three\") \" end\" \"!\"?");
    const int32_t start = hn_matcher_start(m);
    assert_int_equal(hn_matcher_forced(m, start, bytes, sizeof bytes), 5);
    assert_memory_equal(bytes, "one t", 5);
    assert_int_equal(hn_matcher_forced(m, start, bytes, 3), 3);
    const int32_t later = hn_matcher_bytes(m, start, "one th", 6);
    assert_int_equal(hn_matcher_forced(m, later, bytes, sizeof bytes), 7);
    assert_memory_equal(bytes, "ree end", 7);
    assert_int_equal(hn_matcher_forced(m, hn_matcher_bytes(m, later, "ree end", 7), bytes, sizeof bytes), 0);
    hn_matcher_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks_are_steps), cmocka_unit_test(test_ends), cmocka_unit_test(test_forced)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
