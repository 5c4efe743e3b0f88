/* SPDX-License-Identifier: Apache-2.0 */
/* fault_grammar_test.c - every allocation of compiling a grammar, opening its matcher and asking for masks fails, once and from then on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "grammar/matcher.h"
#include "tiny_gguf.h"

typedef struct life {
    hunch_status (*source)(hn_grammar **out, const char *text, size_t len, hunch_error *err);
    const char *grammar, *text;
    const hn_tokenizer *tokenizer;
} life;

/* Masks and states along a text. */
static hunch_status follow(hn_matcher *m, const char *text, int vocab, uint64_t *digest, hunch_error *err) {
    uint64_t mask[64] = {0};
    int32_t state = hn_matcher_start(m);
    for (; state >= 0; text++) {
        const int n = hn_matcher_mask(m, state, mask);
        if (n == HN_MATCH_FULL) return hn_fail_memory(err, "a mask", sizeof mask);
        digest_add(digest, mask, ((size_t)vocab + 63) / 64 * sizeof *mask);
        if (!*text) return HUNCH_OK;
        state = hn_matcher_bytes(m, state, text, 1);
    }
    assert_int_equal(state, HN_MATCH_FULL); /* else the text does not match */
    assert_true(hn_matcher_is_full(m));
    return hn_fail_memory(err, "a state", 0);
}

static hunch_status grammar_life(const void *what, uint64_t *digest, hunch_error *err) {
    const life *l = what;
    const int vocab = hn_tokenizer_vocab(l->tokenizer);
    hn_grammar *g = NULL;
    hn_matcher *m = NULL;
    hn_vocab_trie *v = NULL;
    *digest = 0;
    hunch_status st = l->source(&g, l->grammar, strlen(l->grammar), err);
    if (!st) st = hn_vocab_trie_open(&v, l->tokenizer, vocab, err);
    if (!st) st = hn_matcher_open(&m, &g, v, err);
    if (!st) st = follow(m, l->text, vocab, digest, err);
    hn_matcher_close(&m);
    hn_vocab_trie_close(&v);
    hn_grammar_close(&g);
    return st;
}

static void test_grammars(void **state) {
    (void)state;
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\",\"minimum\":-1.5,\"maximum\":20},\"s\":{\"type\":\"string\","
        "\"pattern\":\"^a+b\",\"maxLength\":9},\"e\":{\"enum\":[\"x\",\"yy\"],\"maxLength\":1},"
        "\"l\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},"
        "\"prefixItems\":[{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"string\",\"minLength\":2,\"maxLength\":300}]}]}}}";
    static const char opposites[] =
        "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[1,2]},\"u\":{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\"]},"
        "\"uniqueItems\":true},\"m\":{\"type\":\"integer\",\"multipleOf\":3},\"c\":{\"type\":\"array\",\"contains\":{\"const\":1}}},"
        "\"if\":{\"properties\":{\"k\":{\"const\":1}}},\"then\":{\"required\":[\"m\"]},\"dependentRequired\":{\"c\":[\"u\"]},"
        "\"patternProperties\":{\"^x\":{\"type\":\"string\",\"not\":{\"pattern\":\"b\"}}},\"additionalProperties\":false}";
    tiny t;
    tiny_open(&t);
    bytes file = tiny_bytes(&t);
    char path[200];
    hn_source *src;
    life l[] = {{hn_grammar_json_schema, schema,
                 "{\"n\":2.5,\"s\":\"aab\",\"e\":\"x\",\"l\":[\"abc\",{\"q\":1}],\"other\":{\"a\":1,\"b\":2}}", NULL},
                {hn_grammar_json_schema, opposites, "{\"k\":1,\"u\":[\"a\",\"b\"],\"m\":12,\"c\":[2,1],\"xy\":\"ac\"}", NULL},
                {hn_grammar_regex, "([a-z]{2,40}(\\d|\\W)?)+", "ab1cde!xy", NULL},
                {hn_grammar_gbnf, "root ::= \"(\" root{0,80} \")\" | <s> [^()]+ | \"a\"", "(a(a)a)", NULL}};
    hn_tokenizer *tokenizer;
    snprintf(path, sizeof path, "%s", test_path("grammar.gguf"));
    test_file_write(path, file.at, file.size);
    assert_int_equal(hn_source_open(&src, path, NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_open(&tokenizer, src, NULL), HUNCH_OK);
    hn_source_close(&src);
    for (size_t i = 0; i < sizeof l / sizeof *l; i++) {
        l[i].tokenizer = tokenizer;
        faults_break_both(l[i].grammar, grammar_life, &l[i], HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 100, 2);
    }
    hn_tokenizer_close(&tokenizer);
    bytes_free(&file);
    tiny_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grammars)};
    return cmocka_run_group_tests(tests, faults_setup, faults_teardown);
}
