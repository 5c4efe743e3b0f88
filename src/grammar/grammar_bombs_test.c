/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_bombs_test.c - sources and texts that are large, deep or ambiguous: they compile or are refused in one line, with bounded
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "grammar/grammar_for_tests.h"

enum { TEN_MB = 10000000, DEEP = 10000, MOST_STATE_BYTES = 64 << 20 };

/* A text that is made of a beginning, a part many times, and an end. */
static char *text_of(const char *begin, const char *part, size_t times, const char *end) {
    const size_t first = strlen(begin), n = strlen(part), last = strlen(end);
    char *text = malloc(first + n * times + last + 1), *at = text + first;
    assert_non_null(text);
    memcpy(text, begin, first);
    for (size_t i = 0; i < times; i++, at += n) memcpy(at, part, n);
    memcpy(at, end, last + 1);
    return text;
}

/* The number in a part becomes another one each time, so that no two are the same. */
static char *numbered(const char *begin, const char *format, size_t times, const char *end) {
    char *text = malloc(strlen(begin) + times * (strlen(format) + 10) + strlen(end) + 1);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "%s", begin);
    for (size_t i = 0; i < times; i++) {
        if (i) text[n++] = ',';
        n += (size_t)sprintf(text + n, format, (int)i);
    }
    strcpy(text + n, end);
    return text;
}

/* Opened or refused (why) in one line, by what compiles it or by its automaton; takes the text. */
static void source_try(grammar_source *source, char *text, const char *why) {
    hunch_error err = {0};
    hn_grammar *g = NULL;
    hn_automaton *a = NULL;
    hunch_status st = source(&g, text, strlen(text), &err);
    uint8_t *no_names = calloc(g ? g->n_names + 1 : 1, 1);
    if (!st) st = hn_automaton_open(&a, g, no_names, false, 16, &err);
    if (!why && st) fail_msg("%.40s..: %s", text, err.message);
    if (why && (st != HUNCH_USAGE || !strstr(err.message, why) || strchr(err.message, '\n')))
        fail_msg("%.40s..: %d, '%s', expected '%s'", text, st, err.message, why);
    if (a) assert_true(hn_automaton_bytes(a) < MOST_STATE_BYTES);
    hn_automaton_close(&a);
    hn_grammar_close(&g);
    free(no_names);
    free(text);
}

static void test_large(void **state) {
    (void)state;
    static const char described[] = "{\"type\": \"integer\", \"description\": \"";
    source_try(hn_grammar_json_schema, text_of(described, "x", TEN_MB, "\"}"), NULL);
    source_try(hn_grammar_json_schema, text_of(described, "x", 2 * TEN_MB, "\"}"), "bytes, expected at most");
    source_try(hn_grammar_json_schema, text_of("{\"const\": \"", "x", TEN_MB, "\"}"), "instructions");
    source_try(hn_grammar_json_schema, numbered("{\"enum\": [", "\"w%07d\"", TEN_MB / 12, "]}"), "begins in more than");
    source_try(hn_grammar_regex, text_of("", "ab?", TEN_MB / 3, ""), "too long");
    source_try(hn_grammar_gbnf, text_of("root ::= \"", "x", TEN_MB, "\""), "instructions");
}

static void test_deep(void **state) {
    (void)state;
    char *open = text_of("", "{\"items\": ", DEEP, "{}"), *close = text_of("", "}", DEEP, "");
    source_try(hn_grammar_json_schema, text_of(open, close, 1, ""), "maximum parsing depth");
    free(open);
    free(close);
    static const char rule[] = "\"%1$d\": {\"allOf\": [{\"$ref\": \"#/$defs/%1$d\"}]}";
    source_try(hn_grammar_json_schema, numbered("{\"$ref\": \"#/$defs/0\", \"$defs\": {", rule, DEEP, "}}"), "leads to itself");
    source_try(hn_grammar_regex, text_of("", "(", DEEP, ""), "60");
    source_try(hn_grammar_gbnf, text_of("root ::= ", "(", DEEP, ""), "60");
    accepter x = accepter_open(hn_grammar_json_schema, "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"type\": \"array\", \"items\": "
                                                       "{\"$ref\": \"#/$defs/a\"}}}}");
    open = text_of("", "[", DEEP, ""), close = text_of(open, "]", DEEP, "");
    assert_true(accepts(&x, close));
    assert_true(hn_automaton_bytes(x.a) < MOST_STATE_BYTES);
    free(open);
    free(close);
    accepter_close(&x);
}

/* Combinations of branches, and lists that are compared with each other: what takes too many steps is refused. */
static void test_combined(void **state) {
    (void)state;
    static const char why[] = "combined in more than";
    static const char pair[] = "{\"anyOf\": [{\"properties\": {\"a%1$d\": {\"const\": 1}}}, "
                               "{\"properties\": {\"b%1$d\": {\"const\": 2}}}]}";
    static const char branch[] = "{\"type\": \"object\", \"properties\": {\"k\": {\"const\": %d}}, \"required\": [\"k\"]}";
    source_try(hn_grammar_json_schema, numbered("{\"allOf\": [", pair, 4, "]}"), NULL);
    source_try(hn_grammar_json_schema, numbered("{\"allOf\": [", pair, 16, "]}"), why);
    source_try(hn_grammar_json_schema, numbered("{\"oneOf\": [", branch, 256, "]}"), NULL);
    char *one = numbered("{\"enum\": [", "\"a%d\"", 20000, "]}"), *two = numbered("]}, {\"enum\": [", "\"b%d\"", 20000, "]}]}");
    char *all = text_of("{\"allOf\": [", one, 1, ",");
    char *both = text_of(all, two + 4, 1, "");
    source_try(hn_grammar_json_schema, both, why);
    free(one);
    free(two);
    free(all);
}

/* Opposites and cases multiply as branches do; machines of what does not match, numbers and counted items are bounded. */
static void test_opposites(void **state) {
    (void)state;
    static const char why[] = "combined in more than";
    static const char test[] = "{\"if\": {\"properties\": {\"a%1$d\": {\"const\": 1}}}, \"then\": {\"required\": [\"b%1$d\"]}}";
    static const char property[] = "\"a%1$d\": {\"not\": {\"allOf\": [{\"minimum\": %1$d}, {\"multipleOf\": 1, \"not\": {}}]}}";
    static const char depends[] = "\"a%1$d\": [\"b%1$d\"]";
    static const char either[] = "{\"not\": {\"allOf\": [{\"const\": \"a%1$d\"}, {\"required\": [\"b%1$d\"]}, {\"minItems\": %1$d}]}}";
    source_try(hn_grammar_json_schema, numbered("{\"allOf\": [", test, 4, "]}"), NULL);
    source_try(hn_grammar_json_schema, numbered("{\"allOf\": [", test, 20, "]}"), why);
    source_try(hn_grammar_json_schema, numbered("{\"properties\": {", property, 200, "}}"), "the opposite of multipleOf");
    source_try(hn_grammar_json_schema, numbered("{\"dependentRequired\": {", depends, 4, "}}"), NULL);
    source_try(hn_grammar_json_schema, numbered("{\"dependentRequired\": {", depends, 30, "}}"), why);
    source_try(hn_grammar_json_schema, numbered("{\"allOf\": [", either, 30, "]}"), why);
    static const char *const same[][2] = {
        {"{\"type\":\"string\",\"not\":{\"pattern\":\"(a|b)*a(a|b){30}\"}}", "takes more than 4000000 steps"},
        {"{\"type\":\"string\",\"not\":{\"pattern\":\"(a?){900}(b?){900}(a|b){900}\"}}", "takes more than 4000000 steps"},
        {"{\"type\":\"string\",\"not\":{\"pattern\":\"[^a]{0,100000}b\"}}", "needs more than 100000 states"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) source_try(hn_grammar_json_schema, text_of(same[i][0], "", 0, ""), same[i][1]);
    static const char patterns[] = "{\"patternProperties\":{\"^\\\\p{L}+$\":{},\"\\\\p{N}\":{},\"^a.*b$\":{},\"[^x]$\":{}},"
                                   "\"maxProperties\":3}";
    static const char counted[] = "{\"contains\":{\"const\":1},\"minContains\":300,\"maxItems\":300,\"items\":{\"type\":\"integer\"}}";
    source_try(hn_grammar_json_schema, text_of(patterns, "", 0, ""), NULL);
    source_try(hn_grammar_json_schema, text_of(counted, "", 0, ""), NULL);
    source_try(hn_grammar_json_schema, text_of("{\"type\":\"integer\",\"multipleOf\":9997,\"minimum\":1e40}", "", 0, ""),
               "/multipleOf: bounds or multiples of numbers with too many digits");
    source_try(hn_grammar_json_schema, text_of("{\"type\":\"integer\",\"multipleOf\":9997}", "", 0, ""), NULL);
    source_try(hn_grammar_json_schema, numbered("{\"type\":\"integer\",\"not\":{\"enum\":[", "%d", 2000, "]}}"), NULL);
    source_try(hn_grammar_json_schema,
               numbered("{\"items\":{\"enum\":[", "\"w%d\"", 10000, "]},\"uniqueItems\":true,\"minItems\":10000,\"type\":\"array\"}"), why);
}

/* Every way of reading these texts would take forever. */
static void test_ambiguous(void **state) {
    (void)state;
    static const char *const bombs[] = {"(a*)*b", "((((a*)*)*)*)*b", "((a{0,99}){0,99})*b", "(a|a|aa|a?)*b", "(a?){400}(a*){400}b"};
    char *text = text_of("", "a", DEEP, "b");
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        accepter x = accepter_open(hn_grammar_regex, bombs[i]);
        bool whole;
        accepter_prefix(&x, text, strlen(text), &whole);
        assert_true(whole);
        assert_true(hn_automaton_bytes(x.a) < MOST_STATE_BYTES);
        accepter_close(&x);
    }
    free(text);
    text = text_of("", "a", 500, "");
    accepter x = accepter_open(hn_grammar_gbnf, "root ::= s\ns ::= \"a\" s s | \"a\"");
    bool whole;
    accepter_prefix(&x, text, strlen(text), &whole);
    assert_true(hn_automaton_bytes(x.a) < MOST_STATE_BYTES);
    accepter_close(&x);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large), cmocka_unit_test(test_deep), cmocka_unit_test(test_combined),
                                       cmocka_unit_test(test_opposites),
                                       cmocka_unit_test(test_ambiguous)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
