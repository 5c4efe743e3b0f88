/* SPDX-License-Identifier: Apache-2.0 */
/* json_load_test.c - the estimated memory of a document is at least what the parser allocates, and not far above it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/mem.h"

static size_t taken, most; /* by the parser, now and at most */

static void *count_alloc(size_t size) {
    void *p = malloc(size);
    taken += p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    most = taken > most ? taken : most;
    return p;
}

static void count_free(void *p) {
    taken -= p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    free(p);
}

/* [PART,PART,…], to be freed with free. %d in PART: a number. */
static char *list_of(const char *open, const char *part, int n, const char *close) {
    const size_t room = strlen(part) + 16;
    char *text = malloc((size_t)n * room + 16), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s", open);
    for (int i = 0; i < n; i++) {
        const char *number = strchr(part, '#');
        at += number ? sprintf(at, "%s%.*s%07d%s", i ? "," : "", (int)(number - part), part, i, number + 1)
                     : sprintf(at, "%s%s", i ? "," : "", part);
    }
    sprintf(at, "%s", close);
    return text;
}

static void test_no_less(void **state) {
    (void)state;
    static const struct {
        const char *open, *part, *close;
    } cases[] = {{"[", "[]", "]"},
                 {"[", "{}", "]"},
                 {"[", "1", "]"},
                 {"[", "1.5", "]"},
                 {"[", "\"\"", "]"},
                 {"[", "null", "]"},
                 {"{", "\"#\":1", "}"},
                 {"{", "\"#\":\"a\"", "}"},
                 {"[", "{\"\":[]}", "]"},
                 {"{", "\"#\":{}", "}"},
                 {"[", "[\"a\",\"b\"]", "]"},
                 {"[", "1e999", "]"},
                 {"{", "\"#\":18446744073709551615", "}"},
                 {"[", "\"a b c d e f g h i j k l m n o p q r s t u v w x y z\"", "]"}};
    json_set_alloc_funcs(count_alloc, count_free);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t held = 0;
        json_error_t where;
        char *text = list_of(cases[i].open, cases[i].part, 50000, cases[i].close);
        taken = most = 0;
        json_t *json = hn_json_parse(text, strlen(text), &held, &where);
        assert_non_null(json);
        if (most > held || most < held / 4)
            fail_msg("%s: %zu bytes were reckoned, %zu taken", cases[i].part, held, most);
        json_decref(json);
        assert_int_equal(taken, 0);
        free(text);
    }
    json_set_alloc_funcs(malloc, free);
}

static void test_too_much(void **state) {
    (void)state;
    size_t held = 0;
    json_error_t where;
    char *text = list_of("[", "{}", 3000000, "]");
    assert_null(hn_json_parse(text, strlen(text), &held, &where));
    assert_non_null(strstr(where.text, "it would take 8"));
    assert_int_equal(held, 0);
    free(text);
    text = list_of("[", "{}", 1300000, "]"); /* one such fits, a second one does not */
    json_t *json = hn_json_parse(text, strlen(text), &held, &where);
    assert_non_null(json);
    json_decref(json);
    const size_t one = held;
    assert_null(hn_json_parse(text, strlen(text), &held, &where));
    assert_non_null(strstr(where.text, "it would take"));
    assert_int_equal(held, one);
    free(text);
}

/* Brackets and quotes inside of strings are neither. */
static void test_strings(void **state) {
    (void)state;
    static const char text[] = "{\"a\": \"[[[[{{{{,,,,\\\"[[[[\\\\\"}";
    size_t held = 0;
    json_error_t where;
    json_t *json = hn_json_parse(text, sizeof text - 1, &held, &where);
    assert_string_equal(json_string_value(json_object_get(json, "a")), "[[[[{{{{,,,,\"[[[[\\");
    assert_int_equal(held, 224 + 112 + 2 * 80 + sizeof text - 1);
    json_decref(json);
    assert_null(hn_json_parse("{\"a\": 1, \"a\": 2}", 16, &held, &where));
    assert_non_null(strstr(where.text, "duplicate"));
    assert_null(hn_json_parse("{\"a\": \"\\", 8, &held, &where));
}

/* ---- large numbers ---- */

static json_t *loaded(const char *text) {
    json_error_t where;
    json_t *json = hn_json_load(text, strlen(text), JSON_ALLOW_NUL | JSON_DECODE_ANY, &where);
    if (!json) fail_msg("%s: %s", text, where.text);
    return json;
}

/* What is read is written again. */
static void test_digits_kept(void **state) {
    (void)state;
    static const char *const same[] = {
        "18446744073709551615", "9223372036854775808", "-9223372036854775809", "1234567890123456789012345678901234567890", "1e400", "-1.5E+999",
        "1e99999999999999999999", "[9223372036854775807, -9223372036854775808, 9223372036854775806, 18446744073709551616]",
        "[9223372036854775807, 9223372032559808513, 9223372032559808512, 9223372032559808511, 99999999999999999999]",
        "{\"a\": {\"b\": [1, 0.1, 1e999, \"1e999\", \"18446744073709551615\", -2.5e-8, \"a\\\"9\", null, true, [], {}]}, \"9\": \"\\u0000\"}"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        json_t *json = loaded(same[i]), *copy = json_deep_copy(json);
        char *text = hn_json_dump(copy, JSON_ENCODE_ANY);
        assert_string_equal(text, same[i]);
        assert_true(json_equal(json, copy));
        hn_free(text);
        json_decref(json);
        json_decref(copy);
    }
    json_t *json = loaded("[1e999, {\"a\": 18446744073709551615}, []]");
    char *compact = hn_json_dump(json, JSON_COMPACT), *lines = hn_json_dump(json, JSON_INDENT(2));
    assert_string_equal(compact, "[1e999,{\"a\":18446744073709551615},[]]");
    assert_string_equal(lines, "[\n  1e999,\n  {\n    \"a\": 18446744073709551615\n  },\n  []\n]");
    assert_null(json_dumps(json, 0)); /* whoever forgets hn_json_dump writes nothing, and never a text in place of a number */
    hn_free(compact);
    hn_free(lines);
    json_decref(json);
}

static void test_large_are_numbers(void **state) {
    (void)state;
    json_t *list = loaded("[18446744073709551615, -1e400, 5, 1.5, \"18446744073709551615\", {\"a\": 1}, {\"\\u00ff\": \"1\"}, {}]");
    const json_t *whole = json_array_get(list, 0), *real = json_array_get(list, 1);
    char shown[16];
    assert_true(hn_json_is_number(whole) && hn_json_is_number(real) && hn_json_is_number(json_array_get(list, 2)));
    assert_true(hn_json_is_whole(hn_json_digits(whole)) && !hn_json_is_whole(hn_json_digits(real)));
    assert_false(json_is_integer(whole) || json_is_real(real) || json_is_string(whole) || hn_json_is_object(whole));
    assert_true(hn_json_number_value(whole) == 18446744073709551616.0 && hn_json_number_value(real) < -1e308);
    assert_true(hn_json_number_value(json_array_get(list, 3)) == 1.5);
    for (size_t i = 4; i < json_array_size(list); i++) assert_false(hn_json_is_number(json_array_get(list, i)));
    for (size_t i = 5; i < json_array_size(list); i++) assert_true(hn_json_is_object(json_array_get(list, i)));
    assert_string_equal(hn_json_show(whole, shown, sizeof shown), "184467440737...");
    assert_string_equal(hn_json_show(real, shown, sizeof shown), "-1e400");
    assert_null(hn_json_digits(NULL));
    json_decref(list);
}

/* What is no JSON stays none, also where a large number makes a second reading; and keys that are there twice. */
static void test_large_and_wrong(void **state) {
    (void)state;
    static const char *const wrong[] = {"[1e999, 01]",    "[1e999, -]",        "[1e999, 1.]",     "[1e999, 1e]",    "[1e999,]", "[1e999",
                                        "[1e999] 1e999", "{\"a\": 1e999, 2}", "[1e999, \"\xff\"]", "[1e999, +1]", "1e999 1",
                                        "[1e999, \"\\ud800\"]", "{1e999: 1}"};
    json_error_t where;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (hn_json_load(wrong[i], strlen(wrong[i]), JSON_DECODE_ANY, &where)) fail_msg("%s is taken for JSON", wrong[i]);
        assert_int_not_equal(where.line, 0);
    }
    static const char twice[] = "{\"a\": 1e999, \"a\": 18446744073709551615}";
    assert_null(hn_json_load(twice, strlen(twice), JSON_REJECT_DUPLICATES, &where));
    json_t *last = hn_json_load(twice, strlen(twice), 0, NULL);
    assert_string_equal(hn_json_digits(json_object_get(last, "a")), "18446744073709551615");
    json_decref(last);
    static const char open[] = "[1e999, 18446744073709551615]  "; /* the bytes behind the size are not read */
    last = hn_json_load(open, 28, 0, NULL);
    assert_null(last);
    size_t held = 0;
    char *text = list_of("[", "1e999", 1000000, "]");
    assert_null(hn_json_parse(text, strlen(text), &held, &where));
    assert_non_null(strstr(where.text, "it would take"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_less), cmocka_unit_test(test_too_much),
                                       cmocka_unit_test(test_strings),    cmocka_unit_test(test_digits_kept),
                                       cmocka_unit_test(test_large_are_numbers), cmocka_unit_test(test_large_and_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
