/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_test.c - matches, the translation of Oniguruma's patterns, and patterns made to be slow or to crash. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "text/split/pattern.h"

static hn_pattern_work *open_work(void) {
    hn_pattern_work *w;
    assert_int_equal(hn_pattern_work_open(&w, NULL), HUNCH_OK);
    return w;
}

/* The matches of an Oniguruma pattern in a text, with bars between them. */
static void check(const char *pattern, const char *text, const char *want) {
    char got[200] = "", *translated;
    hn_pattern *p;
    hn_pattern_work *w = open_work();
    hunch_error e = {0};
    if (hn_pattern_translate(&translated, pattern, &e) != HUNCH_OK) fail_msg("%s", e.message);
    if (hn_pattern_open(&p, translated, &e) != HUNCH_OK) fail_msg("%s", e.message);
    bool found = true;
    for (size_t at = 0, from, to, len = strlen(text); at < len; at = to) {
        assert_int_equal(hn_pattern_find(p, w, text, at, len, &found, &from, &to, &e), HUNCH_OK);
        if (!found) break;
        strncat(got, text + from, to - from);
        strcat(got, "|");
    }
    if (strcmp(got, want)) fail_msg("\"%s\" in \"%s\": \"%s\", expected \"%s\"", pattern, text, got, want);
    hn_free(translated);
    hn_pattern_close(&p);
    hn_pattern_work_close(&w);
}

static void test_matches(void **state) {
    (void)state;
    check("\\p{L}+|\\p{N}", "añ12 語", "añ|1|2|語|");
    check("x*", "axxb", "xx|"); /* empty matches do not count */
    check("^b", "a\nb", "b|");  /* lines begin after \n, as in Oniguruma */
    check("a.c", "a\nc abc", "abc|");
    /* \w: marks and connectors are word characters, ½ and ² are not. */
    check("\\w+", "e\xCC\x81\xE2\x80\xBFx_1 \xC2\xBD\xC2\xB2", "e\xCC\x81\xE2\x80\xBFx_1|");
    check("\\W", "a ½", " |½|");
    check("[\\w-]+", "a-b c", "a-b|c|");
    check("\\h+", "12afg", "12af|"); /* hexadecimal digits, not spaces */
    check("\\H", "a g", " |g|");
    check("a\\b", "a\xCC\x81 a1 a½a", "a|a|"); /* a mark continues the word, ½ does not */
    check("\\B.", "ab c", "b|");
    check("[\\b]", "b\b", "\b|");
    check("[]a]+|[^]a]", "]ab", "]a|b|"); /* a bracket first in a class is a literal */
    check("[[:digit:]x]+", "a1x", "1x|");
    check("\\[\\w\\]", "[a]", "[a]|");
    check("[\\[&]", "a[&", "[|&|");
}

static void test_refused(void **state) {
    (void)state;
    static const char *const untranslated[] = {"[a&&b]", "[a[bc]]", "[\\W]", "[^\\H]", "[a[:b]"};
    static const char *const broken[] = {"a(b", "[z-a]", "\\p{Nonsense}", "\\C", "(?<=a+)b", "a{2,1}", "\\"};
    char *out = (char *)"";
    hn_pattern *p;
    hunch_error e = {0};
    for (size_t i = 0; i < sizeof untranslated / sizeof *untranslated; i++) {
        assert_int_equal(hn_pattern_translate(&out, untranslated[i], &e), HUNCH_REFUSED);
        assert_null(out);
        assert_non_null(strstr(e.message, "not supported"));
    }
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_int_equal(hn_pattern_open(&p, broken[i], &e), HUNCH_REFUSED);
        assert_null(p);
        assert_non_null(strstr(e.message, broken[i]));
    }
    char *deep = calloc(1, 40001);
    memset(deep, '(', 2000);
    assert_int_equal(hn_pattern_open(&p, deep, &e), HUNCH_REFUSED);
    memset(deep, 'a', 40000);
    assert_int_equal(hn_pattern_open(&p, deep, &e), HUNCH_REFUSED);
    free(deep);
}

/* Patterns that backtrack without end at one place, or a little at each of many, or give a match elsewhere. */
static void test_slow(void **state) {
    (void)state;
    enum { LONG = 200000 };
    static const char *const patterns[] = {"(a+)+$b|(?:a|aa)+$c", "(?=a*[bc])a", "(?:a?){50}a{50}[bc]",
                                           "(?:.|\\n)*?[bc]"};
    char *text = malloc(LONG);
    memset(text, 'a', LONG);
    hn_pattern_work *w = open_work();
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        hn_pattern *p;
        hunch_error e = {0};
        bool found;
        size_t from, to;
        assert_int_equal(hn_pattern_open(&p, patterns[i], &e), HUNCH_OK);
        hn_pattern_work_limit(w, 0.05);
        if (hn_pattern_find(p, w, text, 0, LONG, &found, &from, &to, &e) != HUNCH_REFUSED) fail_msg("%s", patterns[i]);
        assert_non_null(strstr(e.message, "a pattern of the tokenizer"));
        hn_pattern_close(&p);
    }
    hn_pattern *p;
    bool found;
    size_t from, to;
    hunch_error e = {0};
    if (hn_pattern_open(&p, "(?=ab\\K)a", &e) == HUNCH_OK) {
        hunch_status s = hn_pattern_find(p, w, "xab", 0, 3, &found, &from, &to, &e);
        assert_true(s == HUNCH_REFUSED || (s == HUNCH_OK && (!found || to <= 3)));
        hn_pattern_close(&p);
    }
    hn_pattern_work_close(&w);
    free(text);
}

/* A match that begins or ends far after the window of its search. */
static void test_windows(void **state) {
    (void)state;
    enum { LONG = 50000 };
    char *text = malloc(LONG);
    hn_pattern *p;
    hn_pattern_work *w = open_work();
    bool found;
    size_t from, to;
    assert_int_equal(hn_pattern_open(&p, "b+", NULL), HUNCH_OK);
    for (size_t place = 1; place < LONG - 1; place += place / 3 + 1) {
        memset(text, 'a', place);
        memset(text + place, 'b', LONG - place);
        text[LONG - 1] = 'a';
        assert_int_equal(hn_pattern_find(p, w, text, 0, LONG, &found, &from, &to, NULL), HUNCH_OK);
        assert_true(found && from == place && to == LONG - 1);
    }
    for (size_t i = 0; i + 1 < LONG; i += 2) memcpy(text + i, "\xC3\xA9", 2); /* windows end between characters */
    assert_int_equal(hn_pattern_find(p, w, text, 0, LONG, &found, &from, &to, NULL), HUNCH_OK);
    assert_false(found);
    hn_pattern_close(&p);
    hn_pattern_work_close(&w);
    free(text);
}

static void test_quote(void **state) {
    (void)state;
    static const char *const texts[] = {" ", "a.b", "\\E(x)*[y]", "a{2}|^$", "#-&&\n\t~/", "é語"};
    hn_pattern_work *w = open_work();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *quoted = hn_pattern_quote(texts[i]);
        hn_pattern *p;
        bool found;
        size_t from, to, len = strlen(texts[i]);
        assert_non_null(quoted);
        assert_int_equal(hn_pattern_open(&p, quoted, NULL), HUNCH_OK);
        assert_int_equal(hn_pattern_find(p, w, texts[i], 0, len, &found, &from, &to, NULL), HUNCH_OK);
        assert_true(found && from == 0 && to == len);
        hn_pattern_close(&p);
        hn_free(quoted);
    }
    hn_pattern_work_close(&w);
}

static void test_no_memory(void **state) {
    (void)state;
    int failed = 0;
    for (int64_t after = 0; after < 40; after++) {
        char *text = NULL;
        hn_pattern *p = NULL;
        hn_pattern_work *w = NULL;
        hunch_error e = {0};
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        hunch_status s = hn_pattern_translate(&text, "\\w+[a-z]\\W", &e);
        if (s == HUNCH_OK) s = hn_pattern_open(&p, text, &e);
        if (s == HUNCH_OK) s = hn_pattern_work_open(&w, &e);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(s == HUNCH_OK || (s == HUNCH_NO_MEMORY && e.status == s));
        failed += s != HUNCH_OK;
        hn_free(text);
        hn_pattern_close(&p);
        hn_pattern_work_close(&w);
    }
    assert_in_range(failed, 5, 39);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches), cmocka_unit_test(test_refused), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_windows), cmocka_unit_test(test_quote),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
