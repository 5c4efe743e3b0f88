/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "grammar/grammar_for_tests.h"
#include "text/split/pattern.h"

/* Of the whole text. */
static const grammar_case cases[] = {
    {"[a-z]+@[a-z]+\\.(com|org)", {"a@b.com", "joe@site.org"}, {"a@b.net", "@b.com", "a@b.comx"}},
    {"^\\d{3}-\\d{4}$", {"123-4567"}, {"123-456", "1234567", "\xD9\xA1\x32\x33-4567"}},
    {"(?:yes|no)(?<mark>!?)", {"yes", "no!"}, {"maybe", "yes!!"}},
    {"(a*)*b", {"b", "aaaaab"}, {"a", "aab "}},
    {"(a|aa)+c", {"ac", "aaaac"}, {"c", "aaab"}},
    {"[^\"\\\\]*", {"", "any é 中 😀\n"}, {"\"", "a\\"}},
    {".", {"x", "é", "😀", "\t"}, {"", "\n", "\r", "\xE2\x80\xA8", "xx", "\x80"}},
    {"[\\w-]+\\s\\S", {"a_b-9 z", "x\tz"}, {"é z", "a  ", "a \xC2\x85"}},
    {"\\W\\D", {"-a", " !"}, {"aa", "é!", "-1", "-\xD9\xA1"}},
    {"[^\\d\\s]x[\\D]", {"ax!", "éxé"}, {"1x!", " x!", "ax5"}},
    {"\\x41\\u0042\\u{43}\\cJ\\/\\.\\ud83d\\ude00", {"ABC\n/.😀"}, {"ABC\n/x😀"}},
    {"\\p{L}+\\P{L}", {"héé1", "中!"}, {"1", "ab"}},
    {"x{2}y{1,}z{0,2}?", {"xxy", "xxyyyzz"}, {"xy", "xxyzzz"}},
    {"a{,2}", {"a{,2}"}, {"a", "aa"}},
    {"a{b}]", {"a{b}]"}, {"ab"}},
    {"(?:[ab]{2,40}c){3,5}", {"abcbacabc"}, {"abcbac", "acacac"}},
    {"a||b", {"a", "", "b"}, {"ab"}},
    {"[\\]\\-a\\b]+", {"]-a\b"}, {"b"}},
    {"[+-]?[0-9]*\\.?[0-9]+([eE][+-]?[0-9]+)?", {"1", "-.5", "+1.5e-7"}, {"1.", "e5", "--1"}},
    {"[^]x[\\s\\S]", {"\nx\n"}, {"x"}},
    {"", {""}, {"a"}},
};

static hunch_status searched(hn_grammar **out, const char *text, size_t len, hunch_error *err) {
    hn_builder *b = hn_builder_open(err);
    return hn_grammar_finish(out, &b, hn_expr_regex(b, text, len, true), err);
}

static const grammar_case searches[] = {
    {"b", {"b", "abc", "\nb\n"}, {"", "ac"}},
    {"^b", {"b", "bc"}, {"", "ab"}},
    {"b$", {"b", "ab"}, {"", "ba"}},
    {"^b$", {"b"}, {"bb", "", "b\n"}},
    {"^a|b$", {"a", "ax", "b", "xb"}, {"xa", "bx", ""}},
    {"^(a|b)$", {"a", "b"}, {"ab", "xa"}},
    {"(^|,)a(,|$)", {"a", "x,a", "a,x", "x,a,y"}, {"xa", "ax", "x,ab"}},
    {"^$", {""}, {"a"}},
    {"", {"", "anything"}, {NULL}},
    {"(^a$)|c", {"a", "xcx"}, {"ab", "ba"}},
};

static const grammar_refusal refusals[] = {
    {"a(?=b)", "look-ahead"},  {"a(?!b)", "look-ahead"},        {"(?<=a)b", "look-behind"},      {"(?<!a)b", "look-behind"},
    {"(a)\\1", "reference"},   {"(?<n>a)\\k<n>", "reference"},  {"\\bword", "\\b, the boundary"}, {"a\\B", "\\B"},
    {"a^b", "^ or $ inside"},  {"(^a)*", "^ or $ inside"},      {"*a", "nothing to repeat"},     {"a**", "nothing to repeat"},
    {"a++", "nothing to repeat"}, {"(a", "no )"},               {"a)", ") without"},             {"[a", "too early"},
    {"[b-a]", "wrong order"},  {"a{2,1}", "wrong order"},       {"a{99999999999}", "2^30"},      {"\\q", "unknown escape"},
    {"\\p{Han}", "not supported"}, {"\\ud800", "surrogate"},    {"(?i)a", "kind of group"},      {"[]", "no text matches"},
    {"\\", "too early"},       {"a\xff", "UTF-8"},              {"\\012", "octal"},
};

static void test_whole_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) grammar_case_check(hn_grammar_regex, &cases[i]);
}

static void test_searches(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) grammar_case_check(searched, &searches[i]);
}

/* ---- compared with PCRE2: all short texts of an expression's own letters ---- */

enum { LETTERS = 6, LENGTH = 5 };

static int letters_of(const char *regex, char out[LETTERS]) {
    int n = 0;
    for (const char *c = "1x"; *c; c++) out[n++] = *c;
    for (const char *c = regex; *c && n < LETTERS; c++)
        if (*c > 0 && !strchr("()[]{}|*+?\\^$<>:,", *c) && !memchr(out, *c, (size_t)n)) out[n++] = *c;
    return n;
}

static bool pcre_accepts(const hn_pattern *p, hn_pattern_work *w, const char *text, size_t len) {
    size_t from, to;
    bool found;
    hn_pattern_work_begin(w, len);
    assert_int_equal(hn_pattern_find(p, w, text, 0, len, &found, &from, &to, NULL), HUNCH_OK);
    return found && from == 0 && to == len;
}

static long texts_compare(const char *regex, const hn_pattern *p, hn_pattern_work *w) {
    char letters[LETTERS], text[LENGTH + 1];
    const int n = letters_of(regex, letters);
    accepter x = accepter_open(hn_grammar_regex, regex);
    long all = 0;
    for (int len = 1, count = n; len <= LENGTH; len++, count *= n) {
        for (int i = 0; i < count; i++, all++) {
            for (int k = 0, rest = i; k < len; k++, rest /= n) text[k] = letters[rest % n];
            text[len] = '\0';
            if (accepts(&x, text) != pcre_accepts(p, w, text, (size_t)len)) fail_msg("%s: PCRE2 says otherwise of %s", regex, text);
        }
    }
    accepter_close(&x);
    return all;
}

static void test_short_texts(void **state) {
    (void)state;
    static const char *const more[] = {"(1|x1)*x", "(x?1?){2,3}", "[^1]{2}|1+",
                                       "(?:x{2,}1){1,2}", "((1x)*|x+)1?", "x(1|)x", "([1x]{2}){1,2}"};
    enum { CASES = sizeof cases / sizeof *cases, MORE = sizeof more / sizeof *more };
    hn_pattern_work *w;
    long all = 0;
    int compared = 0;
    assert_int_equal(hn_pattern_work_open(&w, NULL), HUNCH_OK);
    for (int i = 0; i < CASES + MORE; i++) {
        const char *regex = i < CASES ? cases[i].grammar : more[i - CASES];
        char whole[300];
        hn_pattern *p;
        snprintf(whole, sizeof whole, "\\A(?:%s)\\z", regex);
        /* PCRE2 lacks some escapes, reads [^] as the beginning of a class, and from 10.43 on {,2} as {0,2}. */
        if (strstr(regex, "[^]") || strstr(regex, "{,") || hn_pattern_open(&p, whole, NULL) != HUNCH_OK) continue;
        all += texts_compare(regex, p, w);
        compared++;
        hn_pattern_close(&p);
    }
    hn_pattern_work_close(&w);
    print_message("%d expressions, %ld texts\n", compared, all);
    assert_true(compared >= 20 && all > 50000);
}

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) grammar_refusal_check(hn_grammar_regex, &refusals[i]);
}

/* Repeats count, they do not copy. */
static void test_bombs(void **state) {
    (void)state;
    char *text = malloc(100001), *deep = malloc(20001);
    accepter x = accepter_open(hn_grammar_regex, "((a{0,1000}){0,1000}){0,1000000}b");
    assert_true(x.g->n_code < 100);
    memset(text, 'a', 100000);
    strcpy(text + 99999, "b");
    assert_true(accepts(&x, text));
    accepter_close(&x);
    x = accepter_open(hn_grammar_regex, "(a{50000}b){2}");
    memset(text, 'a', 100000);
    text[50000] = 'b';
    text[60000] = '\0';
    bool whole;
    assert_int_equal(accepter_prefix(&x, text, 60000, &whole), 60000);
    text[50000] = 'a';
    assert_int_equal(accepter_prefix(&x, text, 60000, &whole), 50000);
    accepter_close(&x);
    for (int i = 0; i < 10000; i++) memcpy(deep + 2 * i, i % 2 ? "\\D" : "\\S", 2);
    deep[20000] = '\0';
    x = accepter_open(hn_grammar_regex, deep); /* a look at all code points for each would take minutes */
    memset(text, 'x', 10000);
    text[10000] = '\0';
    assert_true(accepts(&x, text));
    accepter_close(&x);
    memset(deep, '(', 10000);
    memset(deep + 10000, ')', 10000);
    deep[20000] = '\0';
    grammar_refusal_check(hn_grammar_regex, &(grammar_refusal){deep, "nested deeper"});
    free(text);
    free(deep);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole_texts), cmocka_unit_test(test_searches),
                                       cmocka_unit_test(test_short_texts), cmocka_unit_test(test_refusals), cmocka_unit_test(test_bombs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
