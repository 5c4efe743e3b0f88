/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "grammar/grammar_for_tests.h"

static const grammar_case cases[] = {
    {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "y", "yesno", "No"}},
    {"root ::= [a-c]+ [^a-c\\n] # a comment\n", {"ax", "abcé", "cc\""}, {"a", "x", "aa\n", "axx"}},
    {"root ::= \"a\" .\nother ::= root", {"ab", "a\xF0\x9F\x98\x80", "a\n"}, {"a", "abc", "a\xF0\x9F"}},
    {"root ::= (\"ab\" | \"c\")? \"d\"{2,3}", {"abdd", "cddd", "dd"}, {"d", "abd", "dddd", "abcdd"}},
    {"root ::= x{3}\nx ::= [0-9]", {"123"}, {"12", "1234"}},
    {"root ::= [a]{2,}", {"aa", "aaaaaaaa"}, {"", "a"}},
    {"root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "(()", "())"}},
    {"root ::= s\ns ::= \"a\" s s | \"b\"", {"b", "abb", "aabbb", "ababb"}, {"ab", "a", "bb", "abbb"}},
    {"root ::=\n  \"a\"\n  | \"b\" # more\n  | (\n \"c\"\n \"d\" )\n", {"a", "b", "cd"}, {"c", "ab"}},
    {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\\"\\\\\" [\\]\\-\\x61-\\x63]", {"Aé😀\n\"\\]", "Aé😀\n\"\\-", "Aé😀\n\"\\b"}, {"Aé😀\n\"\\d"}},
    {"root ::= [-a] [a-]", {"--", "aa", "-a"}, {"b-"}},
    {"root ::= e e e\ne ::= \"x\"?", {"", "x", "xx", "xxx"}, {"xxxx"}},
    {"root ::= (a b)* \"!\"\na ::= \"1\"?\nb ::= \"2\"?", {"!", "12!", "1122!", "21!"}, {"3!", ""}},
    {"root ::= (\"a\"{0,3} \"b\"?){2,70} \".\"", {".", "a.", "aaab.", "aaaaaaabab."}, {"c.", "a"}},
    {"root ::= [\\u4e00-\\u9fff]{100,200}", {NULL}, {"中", "a"}},
    {"root ::= <think> \"x\"", {"<think>x"}, {"x", "<think>"}},
    {"a ::= \"x\" a | \"y\"\nroot ::= a{3}", {"yyy", "xyyxxy"}, {"yy", "yyyy", "xyx"}},
};

static const grammar_refusal refusals[] = {
    {"", "no rule root"},
    {"a ::= \"b\"", "no rule root"},
    {"root ::= b", "rule b is used but not defined"},
    {"root ::= root \"a\" | \"b\"", "rule root begins with itself"},
    {"root ::= a \"x\"\na ::= n root | \"y\"\nn ::= \"z\"?", "begins with itself"},
    {"root ::= (n | \"a\")* root | \"b\"\nn ::= \"q\"", "begins with itself"},
    {"root ::= \"a\"\nroot ::= \"b\"", "rule root is set twice"},
    {"root ::= \"a", "ends too early"},
    {"root ::= \"a\nb\"", "does not end on its line"},
    {"root ::= [a", "ends too early"},
    {"root ::= [z-a]", "wrong order"},
    {"root ::= (\"a\"", "no )"},
    {"root ::= \"a\")", ") without"},
    {"root ::= \"a\"{3,2}", "wrong order"},
    {"root ::= \"a\"{9999999999999999999}", "2^30"},
    {"root ::= \"a\"{x}", "number of repeats"},
    {"root ::= \"\\q\"", "unknown escape"},
    {"root ::= \"\\xg0\"", "hexadecimal"},
    {"root ::= \"\\ud800\"", "no character"},
    {"root = \"a\"", "::="},
    {"\n\nroot ::= *", "line 3"},
    {"root ::= <[12]>", "tokens by number"},
    {"root ::= !<a>", "negated tokens"},
    {"root ::= \"a\" root", "no text matches the grammar, as none matches root"},
    {"root ::= \"\xff\"", "UTF-8"},
};

static void test_accepts_and_refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) grammar_case_check(hn_grammar_gbnf, &cases[i]);
}

static void test_refuses_grammars(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) grammar_refusal_check(hn_grammar_gbnf, &refusals[i]);
}

/* Nested, long or ambiguous: an answer or an error, in bounded time. */
static void test_bombs(void **state) {
    (void)state;
    char *text = malloc(200000);
    strcpy(text, "root ::= ");
    memset(text + 9, '(', 10000);
    strcpy(text + 10009, "\"a\"");
    grammar_refusal_check(hn_grammar_gbnf, &(grammar_refusal){text, "nested deeper"});
    size_t n = (size_t)sprintf(text, "root ::= r0\n");
    for (int i = 0; i < 5000; i++) n += (size_t)sprintf(text + n, "r%d ::= r%d | \"x\"\n", i, i + 1);
    sprintf(text + n, "r5000 ::= \"y\"");
    grammar_case_check(hn_grammar_gbnf, &(grammar_case){text, {"x", "y"}, {"", "xy"}});
    n = (size_t)sprintf(text, "root ::= r0\n");
    for (int i = 0; i < 40; i++) n += (size_t)sprintf(text + n, "r%d ::= r%d r%d\n", i, i + 1, i + 1);
    sprintf(text + n, "r40 ::= \"y\"?");
    grammar_case_check(hn_grammar_gbnf, &(grammar_case){text, {"", "y", "yyyyyyyyyyyyy"}, {"x", "yx"}});
    memset(text, 'a', 5000);
    text[5000] = '\0';
    accepter x = accepter_open(hn_grammar_gbnf, "root ::= ((\"a\"*)* (\"a\"+)+){0,100000} \"b\"");
    assert_false(accepts(&x, text));
    strcpy(text + 5000, "b");
    assert_true(accepts(&x, text));
    accepter_close(&x);
    x = accepter_open(hn_grammar_gbnf, "root ::= s\ns ::= \"a\" s s | \"a\" | \"b\"");
    text[301] = '\0';
    assert_true(accepts(&x, text));
    accepter_close(&x);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accepts_and_refuses), cmocka_unit_test(test_refuses_grammars),
                                       cmocka_unit_test(test_bombs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
