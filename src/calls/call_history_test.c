/* SPDX-License-Identifier: Apache-2.0 */
/* call_history_test.c - earlier calls and results as templates expect them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "calls/calls_for_tests.h"

static json_t *converted(const char *family) {
    json_t *messages = json_loads("[{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", \"function\": "
                                  "{\"name\": \"a\", \"arguments\": \"{\\\"x\\\": 1}\"}},"
                                  "{\"id\": \"call_2\", \"function\": {\"name\": \"b\", \"arguments\": {\"y\": 2}}}]},"
                                  "{\"role\": \"tool\", \"tool_call_id\": \"call_2\", \"content\": \"second\"},"
                                  "{\"role\": \"tool\", \"tool_call_id\": \"call_1\", \"content\": \"first\"}, "
                                  "{\"role\": \"user\", \"content\": \"u\"}]",
                                  0, NULL);
    assert_non_null(messages);
    assert_int_equal(hn_calls_count(messages), 2);
    hn_calls_convert(family ? hn_call_family_named(family) : NULL, messages);
    return messages;
}

static const json_t *function_of(const json_t *messages, size_t call) {
    return json_object_get(json_array_get(json_object_get(json_array_get(messages, 0), "tool_calls"), call),
                           "function");
}

static const char *text_of(const json_t *messages, size_t i, const char *key) {
    return json_string_value(json_object_get(json_array_get(messages, i), key));
}

static void test_arguments(void **state) {
    (void)state;
    json_t *m = converted("hermes");
    assert_true(json_is_object(json_object_get(function_of(m, 0), "arguments")));
    assert_true(json_is_object(json_object_get(function_of(m, 1), "arguments")));
    json_decref(m);
    m = converted("functionary-3.2");
    assert_string_equal(json_string_value(json_object_get(function_of(m, 0), "arguments")), "{\"x\": 1}");
    assert_string_equal(json_string_value(json_object_get(function_of(m, 1), "arguments")), "{\"y\": 2}");
    json_decref(m);
}

/* Digits beyond 64 bits are kept, and decimals as they were. */
static void test_large_numbers(void **state) {
    (void)state;
    static const char given[] = "[{\"role\": \"assistant\", \"tool_calls\": ["
                                "{\"function\": {\"name\": \"a\", \"arguments\": "
                                "\"{\\\"x\\\": [18446744073709551615, 0.1, 1e999]}\"}},"
                                "{\"function\": {\"name\": \"b\", \"arguments\": "
                                "{\"x\": [18446744073709551615, 0.1, 1e999]}}},"
                                "{\"function\": {\"name\": \"c\", \"arguments\": 18446744073709551615}}]}]";
    for (int text = 0; text < 2; text++) {
        json_t *m = hn_json_load(given, strlen(given), 0, NULL);
        hn_calls_convert(hn_call_family_named(text ? "functionary-3.2" : "hermes"), m);
        for (size_t i = 0; i < 2; i++) {
            json_t *args = json_object_get(function_of(m, i), "arguments");
            char *dump = text ? hn_strdup(json_string_value(args)) : hn_json_dump(args, 0);
            assert_string_equal(dump, "{\"x\": [18446744073709551615, 0.1, 1e999]}");
            hn_free(dump);
        }
        assert_string_equal(hn_json_digits(json_object_get(function_of(m, 2), "arguments")), "18446744073709551615");
        json_decref(m);
    }
}

static void test_results_come_in_order(void **state) {
    (void)state;
    json_t *m = converted(NULL);
    assert_string_equal(text_of(m, 1, "content"), "first");
    assert_string_equal(text_of(m, 2, "content"), "second");
    assert_string_equal(text_of(m, 3, "content"), "u");
    json_decref(m);
}

/* However many there are; those that answer no call, or have no id, stay behind the others in their order. */
static void test_many_results(void **state) {
    (void)state;
    enum { MANY = 500 };
    json_t *messages = json_array(), *calls = json_array();
    for (int i = 0; i < MANY; i++) json_array_append_new(calls, json_pack("{s:i,s:{s:s}}", "id", i, "function", "name", "f"));
    json_array_append_new(messages, json_pack("{s:s,s:o}", "role", "assistant", "tool_calls", calls));
    json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "tool", "content", "nobody's"));
    json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "tool", "tool_call_id", "0"));
    for (int i = MANY; i-- > 0;) json_array_append_new(messages, json_pack("{s:s,s:i}", "role", "tool", "tool_call_id", i));
    hn_calls_convert(NULL, messages);
    assert_int_equal(json_array_size(messages), MANY + 3);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(json_integer_value(json_object_get(json_array_get(messages, (size_t)i + 1), "tool_call_id")), i);
    assert_string_equal(text_of(messages, MANY + 1, "content"), "nobody's");
    assert_string_equal(text_of(messages, MANY + 2, "tool_call_id"), "0");
    json_decref(messages);
}

/* Mistral's templates refuse other ids than nine letters. */
static void test_ids(void **state) {
    (void)state;
    json_t *m = converted("mistral-args");
    const json_t *calls = json_object_get(json_array_get(m, 0), "tool_calls");
    const char *id = json_string_value(json_object_get(json_array_get(calls, 0), "id"));
    assert_int_equal(strlen(id), 9);
    assert_string_equal(text_of(m, 1, "tool_call_id"), id);
    assert_string_not_equal(text_of(m, 2, "tool_call_id"), id);
    json_decref(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arguments), cmocka_unit_test(test_large_numbers),
                                       cmocka_unit_test(test_results_come_in_order),
                                       cmocka_unit_test(test_many_results), cmocka_unit_test(test_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
