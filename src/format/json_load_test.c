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

#include "format/json_load.h"

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
    json = hn_json_parse("{\"a\": 1, \"b\": 123456789012345678901234567890}", 45, &held, &where);
    assert_true(json_is_real(json_object_get(json, "a")));
    json_decref(json);
    assert_null(hn_json_parse("{\"a\": 1, \"a\": 2}", 16, &held, &where));
    assert_non_null(strstr(where.text, "duplicate"));
    assert_null(hn_json_parse("{\"a\": \"\\", 8, &held, &where));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_less), cmocka_unit_test(test_too_much),
                                       cmocka_unit_test(test_strings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
