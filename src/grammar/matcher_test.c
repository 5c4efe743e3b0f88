/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_test.c - masks are what trying every token by itself says, over the vocabulary of a real model. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "base/random.h"
#include "grammar/grammar_for_tests.h"
#include "grammar/matcher_private.h"

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

/* The tokens that may follow others, each tried by itself; its steps are remembered, so that the matcher is one of its own. */
static int tokens_allowed(grammar_source *source, const char *text, const int32_t *path, int n_path, int32_t *allowed, bool *final) {
    hn_matcher *m = matcher_open(source, text);
    int32_t state = hn_matcher_start(m);
    int n = 0;
    for (int i = 0; i < n_path; i++) state = hn_matcher_next(m, state, path[i]);
    assert_true(state >= 0);
    *final = hn_matcher_is_final(m, state);
    for (int32_t id = -1; id <= vocab; id++) {
        const int32_t next = hn_matcher_next(m, state, id);
        assert_int_not_equal(next, HN_MATCH_FULL);
        if (next >= 0) allowed[n++] = id;
    }
    hn_matcher_close(&m);
    return n;
}

/* A text of tokens from the mask, each state's mask compared with the steps of all tokens. Returns the tokens that were allowed in all. */
static long walk(grammar_source *source, const char *text, uint64_t seed, int steps) {
    hn_matcher *m = matcher_open(source, text);
    uint64_t *mask = malloc((size_t)(vocab + 63) / 64 * sizeof *mask);
    int32_t *allowed = malloc((size_t)(vocab + steps) * sizeof *allowed), *path = allowed + vocab, state = hn_matcher_start(m);
    long all = 0;
    bool final;
    for (int i = 0; i < steps; i++) {
        const int n = tokens_allowed(source, text, path, i, allowed, &final);
        assert_int_equal(hn_matcher_mask(m, state, mask), n);
        assert_int_equal(hn_matcher_is_final(m, state), final);
        for (int k = 0; k < n; k++)
            if (!(mask[allowed[k] / 64] >> allowed[k] % 64 & 1)) fail_msg("%s: step %d: token %d is not in the mask", text, i, allowed[k]);
        all += n;
        if (n == 0) break;
        path[i] = allowed[hn_splitmix(&seed) % (uint64_t)n];
        state = hn_matcher_next(m, state, path[i]);
        assert_true(state >= 0);
    }
    assert_false(hn_matcher_is_full(m));
    hn_matcher_close(&m);
    free(mask);
    free(allowed);
    return all;
}

static const char *const gbnf[] = {
    "root ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" [\"\\\\nrt])* \"\\\"\" (\", \" root)?",
    "root ::= [a-z ]{0,7} \".\"",
    "root ::= ([^<]{3,300} \"<b>\")*",
    "root ::= .{5,6} [0-9]*",
    "root ::= [a-z] . (\"com\" | .)",
    "root ::= (\"def \" | \"class \") [a-zA-Z_]+ \":\\n\" (\"    \" [^\\n]+ \"\\n\"){1,3}",
    "root ::= \"(\" root \")\" root | \"x\"",
    "root ::= <|im_start|> [a-z]+ (<|im_end|> | <file_sep>)?",
};

/* States of many threads, from number `from` on. */
static size_t large_states(const hn_matcher *m, size_t from) {
    size_t n = 0;
    for (size_t i = from; i < m->states->n_states; i++) n += m->states->states[i].n > 512;
    return n;
}

/* What takes long of a grammar of many alternatives is done when it was prepared: a text that is written finds no state of many of them,
 * and its masks are the same. */
static void test_prepared(void **state) {
    (void)state;
    enum { ALTERNATIVES = 20000, LINE = 24 };
    char *text = malloc(ALTERNATIVES * LINE);
    size_t len = 0, words = (size_t)(vocab + 63) / 64;
    for (int i = 0; i < ALTERNATIVES; i++) len += (size_t)sprintf(text + len, "%svalue number %d", i ? "|" : "", i);
    uint64_t *mask = malloc(2 * words * sizeof *mask);
    hn_matcher *m[2];
    for (int k = 0; k < 2; k++) m[k] = matcher_open(hn_grammar_regex, text);
    assert_int_equal(large_states(m[0], 0), 1);
    hn_matcher_prepare(m[1]);
    const size_t before = m[1]->states->n_states;
    int32_t at[] = {hn_matcher_start(m[0]), hn_matcher_start(m[1])};
    for (const char *c = "value number 12345"; *c; c++) {
        for (int k = 0; k < 2; k++) {
            assert_true(hn_matcher_mask(m[k], at[k], mask + (size_t)k * words) > 0);
            at[k] = hn_matcher_bytes(m[k], at[k], c, 1);
        }
        assert_memory_equal(mask, mask + words, words * sizeof *mask);
    }
    assert_true(large_states(m[0], 1) > 10);
    assert_int_equal(large_states(m[1], before), 0);
    for (int k = 0; k < 2; k++) hn_matcher_close(&m[k]);
    free(mask);
    free(text);
}

static void test_masks_are_steps(void **state) {
    (void)state;
    long all = 0;
    for (size_t i = 0; i < sizeof gbnf / sizeof *gbnf; i++)
        for (uint64_t seed = 1; seed <= 2; seed++) all += walk(hn_grammar_gbnf, gbnf[i], seed, 12);
    assert_true(all > 100000);
}

static const char *const schemas[] = {
    "{}",
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":9},\"n\":{\"type\":\"integer\"}},"
    "\"required\":[\"name\"]}",
    "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"},\"minProperties\":5}",
    "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":400},\"minItems\":3}",
    "{\"type\":\"string\",\"pattern\":\"^[a-f]{2,30}-x\"}",
};

static void test_masks_of_json(void **state) {
    (void)state;
    long all = 0;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        for (uint64_t seed = 1; seed <= 2; seed++) all += walk(hn_grammar_json_schema, schemas[i], seed, 12);
    assert_true(all > 100000);
}

/* The mask behind a text is what trying every token by itself says; returns how many tokens keys or items that are there forbid. */
static int mask_check(hn_matcher *m, hn_matcher *other, const char *before) {
    uint64_t *mask = malloc((size_t)(vocab + 63) / 64 * sizeof *mask);
    const int32_t at = hn_matcher_bytes(m, hn_matcher_start(m), before, strlen(before));
    const int32_t same = hn_matcher_bytes(other, hn_matcher_start(other), before, strlen(before));
    int forbidden = 0, count = 0;
    if (at < 0 || same < 0) fail_msg("%s is refused", before);
    hn_matcher_mask(m, at, mask);
    for (int32_t id = 0; id < vocab; id++) {
        const bool allowed = mask[id / 64] >> id % 64 & 1, is = hn_matcher_next(other, same, id) >= 0;
        if (allowed != is) fail_msg("%s: token %d is %s", before, id, allowed ? "allowed" : "not");
    }
    hn_joint j = hn_joint_of(m, at);
    const uint64_t *bits = hn_matcher_bits(m, j.state, &count);
    for (int32_t id = 0; id < vocab; id++) forbidden += (int)((bits[id / 64] & ~mask[id / 64]) >> id % 64 & 1);
    free(mask);
    return forbidden;
}

/* Texts before each of which a key is written twice: the walk of masks cannot find them by chance. */
static void test_keys_twice(void **state) {
    (void)state;
    static const char *const before[] = {"{\"a\":1,\"", "{\"a\":1,\"b\":{\"c\":2},\"",
                                         "{\"x\":{\"a\":[],\"b\":1,\"", "[{\"a\":\"b\"",
                                         "{\"a\":{},\"a", "[{\"a\":0},{\"", "{\"\":1,\"", "{\"a\":\"x"};
    hn_matcher *m = matcher_open(hn_grammar_json_schema, "{}"), *other = matcher_open(hn_grammar_json_schema, "{}");
    int forbidden = 0;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) forbidden += mask_check(m, other, before[i]);
    assert_true(forbidden > 5);
    hn_matcher_close(&m);
    hn_matcher_close(&other);
}

/* Items and keys of which few are left: what would leave none is not begun. # parts texts behind which another byte must not follow. */
static void test_spent(void **state) {
    (void)state;
    static const struct { const char *schema, *before[8]; } cases[] = {
        {"{\"type\":\"array\",\"items\":{\"enum\":[1,2,12]},\"uniqueItems\":true}",
         {"[1,1#,", "[1,#1,", "[1,2", "[1, 2,#2", "[2,1,12#,", "[12,2,1#2", "[12,1,#3"}},
        {"{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"ab\",\"b,\",null]},\"uniqueItems\":true}",
         {"[\"a\",\"a#\"", "[\"ab\",\"a\",\"#a", "[\"b,\",#\"b,\",", "[null,#n", "[null,\"a\",\"b,\",\"ab\"#,"}},
        {"{\"type\":\"array\",\"items\":{\"type\":[\"integer\",\"string\"]},\"uniqueItems\":true}",
         {"[12,12#,", "[\"ab\",\"ab#\",", "[12,1", "[\"12\",12", "[5, 5#]", "[\"a\\\"\", \"a\\\"#\"]"}},
        {"{\"type\":\"object\",\"patternProperties\":{\"^[ab]c?$\":{\"type\":\"integer\"}},\"additionalProperties\":false}",
         {"{\"a\":1,\"a#\"", "{\"a\":1,\"ac\":2,\"#a", "{\"a\":1,\"b\":2,\"ac\":3, \"b#\"",
          "{\"a\":1,\"b\":2,\"ac\":3,\"bc\":4#,"}},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"uniqueItems\":true}}",
         {"{\"a\":[true,#t", "{\"a\":[true,false#,", "{\"a\":[true],\"a#\"", "{\"a\":[true],\"b\":[true#,true", "{\"a\":[],\"b\":[]"}}};
    int forbidden = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_matcher *m = matcher_open(hn_grammar_json_schema, cases[i].schema);
        hn_matcher *other = matcher_open(hn_grammar_json_schema, cases[i].schema);
        for (int k = 0; k < 8 && cases[i].before[k]; k++) {
            char text[100];
            snprintf(text, sizeof text, "%s", cases[i].before[k]);
            char *mark = strchr(text, '#');
            if (mark) memmove(mark, mark + 1, strlen(mark));
            if (mark && hn_matcher_bytes(m, hn_matcher_start(m), text, strlen(text)) != HN_MATCH_NO) fail_msg("accepts %s", text);
            if (mark) *mark = '\0';
            forbidden += mask_check(m, other, text);
        }
        hn_matcher_close(&m);
        hn_matcher_close(&other);
    }
    assert_in_range(forbidden, 40, 1000);
}

/* Values with what jsonschema says of them: tests/schemas_long_test.py --write. */
static void test_instances(void **state) {
    (void)state;
    FILE *f = fopen(HUNCH_TEST_DATA "/structured/instances.jsonl", "r");
    static char line[65536];
    int n = 0, wrong = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *j = hn_json_load(line, strlen(line), 0, NULL);
        char *source = hn_json_dump(json_object_get(j, "schema"), JSON_ENCODE_ANY);
        hn_matcher *m = matcher_open(hn_grammar_json_schema, source);
        for (int valid = 0; valid < 2; valid++) {
            const json_t *list = json_object_get(j, valid ? "valid" : "invalid");
            for (size_t i = 0; i < json_array_size(list); i++, n++) {
                const char *text = json_string_value(json_array_get(list, i));
                const int32_t at = hn_matcher_bytes(m, hn_matcher_start(m), text, strlen(text));
                if ((at >= 0 && hn_matcher_is_final(m, at)) == valid) continue;
                print_error("%s: %s %s\n", json_string_value(json_object_get(j, "name")), valid ? "refuses" : "accepts", text);
                wrong++;
            }
        }
        hn_matcher_close(&m);
        hn_free(source);
        json_decref(j);
    }
    fclose(f);
    assert_true(n > 1500);
    assert_int_equal(wrong, 0);
}

static void twice_check(const char *name, const json_t *schema, const json_t *texts) {
    char *source = hn_json_dump(schema, JSON_ENCODE_ANY);
    hn_matcher *m = matcher_open(hn_grammar_json_schema, source);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const char *text = json_string_value(json_array_get(texts, i));
        if (hn_matcher_bytes(m, hn_matcher_start(m), text, strlen(text)) != HN_MATCH_NO) fail_msg("%s: accepts %s", name, text);
    }
    hn_matcher_close(&m);
    hn_free(source);
}

static void test_schemas_with_keys_twice(void **state) {
    (void)state;
    FILE *f = fopen(HUNCH_TEST_DATA "/structured/schemas.jsonl", "r");
    static char line[65536];
    int n = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *j = hn_json_load(line, strlen(line), 0, NULL);
        const json_t *texts = json_object_get(j, "twice");
        if (texts) twice_check(json_string_value(json_object_get(j, "name")), json_object_get(j, "schema"), texts);
        n += texts != NULL;
        json_decref(j);
    }
    fclose(f);
    assert_true(n >= 3);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prepared),
                                       cmocka_unit_test(test_masks_are_steps),
                                       cmocka_unit_test(test_masks_of_json),
                                       cmocka_unit_test(test_keys_twice),
                                       cmocka_unit_test(test_schemas_with_keys_twice),
                                       cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_forced),
                                       cmocka_unit_test(test_spent),
                                       cmocka_unit_test(test_instances)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
