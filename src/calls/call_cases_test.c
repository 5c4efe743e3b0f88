/* SPDX-License-Identifier: Apache-2.0 */
/* call_cases_test.c - answers of each family as they are rendered and as models break them (tests/data/tool-calls): whole, a byte at a
 * time, and in two pieces cut at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "calls/calls_for_tests.h"

enum { MOST_CASES = 400 };
static json_t *rows[MOST_CASES];
static int n_rows;
static hn_tools tools;

static int setup(void **state) {
    (void)state;
    char *text = NULL;
    size_t len = 0;
    hunch_error err = {0};
    assert_int_equal(hn_file_read(HUNCH_TEST_DATA "/tool-calls/cases.jsonl", 1 << 24, &text, &len, &err), HUNCH_OK);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        assert_true(n_rows < MOST_CASES);
        rows[n_rows] = json_loadb(at, (size_t)(end - at), 0, NULL);
        assert_non_null(rows[n_rows++]);
    }
    hn_free(text);
    tools_offer(&tools, HUNCH_TEST_DATA "/tool-calls/tools.json", "brave_search");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    while (n_rows) json_decref(rows[--n_rows]);
    hn_tools_close(&tools);
    return 0;
}

/* The reader of a row; required: its answer is calls alone. */
static hn_call_reader *row_open(const json_t *row, bool required) {
    const char *family = json_string_value(json_object_get(row, "family")),
               *tail = json_string_value(json_object_get(row, "prompt_tail"));
    hn_call_options o = options_of(json_string_value(json_object_get(row, "template")));
    const hn_call_family *f = hn_call_family_named(family);
    assert_non_null(f);
    o.thinks = tail && ends_in(tail, o.think_begin);
    o.required = required;
    hn_call_reader *r = hn_call_reader_open(f, &tools, &o);
    assert_non_null(r);
    return r;
}

static void same_or_null(const char *what, const json_t *wanted, const char *text, size_t n) {
    const char *w = json_string_value(wanted);
    if (!w) w = "";
    if (strlen(w) != n || memcmp(w, text, n) != 0) fail_msg("%s is '%.*s', not '%s'", what, (int)n, text, w);
}

static void row_compare(const json_t *row, const hn_call_reader *r) {
    hn_call_answer a;
    hn_call_reader_get(r, &a);
    json_t *calls = calls_json(&a);
    if (!json_equal(calls, json_object_get(row, "calls"))) {
        char *is = json_dumps(calls, 0);
        fail_msg("calls are %s, text '%.*s'", is, (int)a.n_text, a.text);
    }
    same_or_null("content", json_object_get(row, "content"), a.text, a.n_text);
    same_or_null("thinking", json_object_get(row, "thinking"), a.thinking, a.n_thinking);
    const json_t *id, *ids = json_object_get(row, "ids");
    size_t i;
    json_array_foreach(ids, i, id) assert_string_equal(a.call[i].id, json_string_value(id));
    json_decref(calls);
}

static void row_read(const json_t *row, size_t first, size_t step) {
    hn_call_reader *r = row_open(row, false);
    const char *text = json_string_value(json_object_get(row, "text"));
    const size_t len = json_string_length(json_object_get(row, "text"));
    for (size_t at = 0, n = first; at < len; at += n, n = step) {
        if (n > len - at) n = len - at;
        assert_true(hn_call_reader_feed(r, text + at, n, false));
    }
    assert_true(hn_call_reader_feed(r, NULL, 0, true));
    row_compare(row, r);
    hn_call_reader_close(&r);
}

static void say(const json_t *row) {
    print_message("%s, %s: %s\n", json_string_value(json_object_get(row, "family")),
                  json_string_value(json_object_get(row, "template")), json_string_value(json_object_get(row, "note")));
}

static void test_whole(void **state) {
    (void)state;
    assert_true(n_rows >= 111);
    for (int i = 0; i < n_rows; i++) {
        if (getenv("HUNCH_SAY")) say(rows[i]);
        row_read(rows[i], SIZE_MAX, 1);
    }
}

static void test_cut(void **state) {
    (void)state;
    for (int i = 0; i < n_rows; i++) {
        const size_t len = json_string_length(json_object_get(rows[i], "text"));
        row_read(rows[i], 1, 1);
        for (size_t k = 1; k < len; k++) row_read(rows[i], k, SIZE_MAX);
        for (size_t k = 2; k < 9; k++) row_read(rows[i], k, k);
    }
}

/* The family that a template's marks choose is that of its rows. */
static void test_chosen_by_marks(void **state) {
    (void)state;
    int seen = 0;
    for (int i = 0; i < n_rows; i++) {
        const char *file = json_string_value(json_object_get(rows[i], "template"));
        const char *family = json_string_value(json_object_get(rows[i], "family"));
        if (!file || strstr(file, "SmolLM3")) continue; /* that copy renders neither tools nor calls */
        size_t len;
        char *text = template_text(file, &len);
        const hn_call_family *f = hn_call_family_of(text, len);
        if (!f || strncmp(hn_call_family_name(f), family, strlen(family)) != 0)
            fail_msg("%s is %s, not %s", file, f ? hn_call_family_name(f) : "none", family);
        hn_free(text);
        seen++;
    }
    assert_true(seen > 90);
}

/* What grows while an answer arrives never changes: names, arguments and texts are beginnings of what they are in the end. */
static void test_only_grows(void **state) {
    (void)state;
    for (int i = 0; i < n_rows; i++) {
        hn_call_reader *r = row_open(rows[i], false);
        const char *text = json_string_value(json_object_get(rows[i], "text"));
        hn_call_answer a, b;
        char *args = NULL, *said = NULL;
        size_t n_args = 0, n_said = 0, calls = 0;
        for (size_t at = 0; at <= strlen(text); at++) {
            assert_true(hn_call_reader_feed(r, text + at, text[at] != 0, text[at] == 0));
            hn_call_reader_get(r, &a);
            assert_true(a.n_calls >= calls && a.n_text >= n_said);
            const hn_call *last = a.n_calls == calls && calls ? &a.call[calls - 1] : NULL;
            if (last)
                assert_true(last->n_arguments >= n_args &&
                            memcmp(last->arguments ? last->arguments : "", args ? args : "", n_args) == 0);
            assert_memory_equal(a.text, said ? said : "", n_said);
            hn_free(args);
            hn_free(said);
            calls = a.n_calls;
            n_args = calls ? a.call[calls - 1].n_arguments : 0;
            args = hn_strndup(calls && n_args ? a.call[calls - 1].arguments : "", n_args);
            said = hn_strndup(a.text, n_said = a.n_text);
        }
        hn_call_reader_get(r, &b);
        hn_free(args);
        hn_free(said);
        hn_call_reader_close(&r);
    }
}

/* Whether text has a mark with which the family opens calls. */
static bool has_mark(const json_t *row, const char *text, size_t n) {
    static const char *const marks[] = {"<tool_call>",         "<seed:tool_call>", "<minimax:tool_call>", "[TOOL_CALLS]",
                                        "<|tool_call>",        "tool_calls>",      "<|tool_call_start|>", "<|python_tag|>",
                                        "<|START_ACTION|>",    "function_calls>",  "<|tool_call_begin|>", "begin\xEF\xBD\x9C>",
                                        "<|tool_call|>",       "<function name=\"", "<|channel|>"};
    const char *content = json_string_value(json_object_get(row, "content"));
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (memmem(text, n, marks[i], strlen(marks[i])) && !(content && strstr(content, marks[i]))) return true;
    return false;
}

/* The first k bytes of a row: what was known of a call stays, whatever the end made of the bytes behind it, and what is no text is none. */
static void limit_check(const json_t *row, size_t k, bool required) {
    hn_call_reader *r = row_open(row, required);
    hn_call_answer b, a;
    char name[100] = "", args[4000] = "";
    const char *text = json_string_value(json_object_get(row, "text"));
    assert_true(hn_call_reader_feed(r, text, k, false));
    hn_call_reader_get(r, &b);
    const size_t calls = b.n_calls;
    const hn_call *last = calls ? &b.call[calls - 1] : NULL;
    const bool open = last && last->state == HUNCH_CALL_OPEN;
    if (open) {
        snprintf(name, sizeof name, "%s", last->name);
        snprintf(args, sizeof args, "%.*s", (int)last->n_arguments, last->n_arguments ? last->arguments : "");
    }
    assert_true(hn_call_reader_feed(r, NULL, 0, true));
    hn_call_reader_get(r, &a);
    const size_t n = a.n_text - a.n_cut;
    last = calls ? &a.call[calls - 1] : NULL;
    assert_int_equal(a.n_calls, calls);
    if (has_mark(row, a.text, n)) fail_msg("cut at %zu the text is '%.*s'", k, (int)n, a.text);
    if (required && n) fail_msg("cut at %zu the text of an answer of calls is '%.*s'", k, (int)n, a.text);
    if (open) {
        assert_string_equal(last->name, name);
        assert_true(last->state == HUNCH_CALL_DONE || (last->state == HUNCH_CALL_CUT && a.cut));
        assert_true(last->n_arguments >= strlen(args) && memcmp(last->n_arguments ? last->arguments : "", args, strlen(args)) == 0);
        if (last->state == HUNCH_CALL_CUT && last->n_arguments != strlen(args))
            fail_msg("cut at %zu its arguments are '%.*s', which were '%s'", k, (int)last->n_arguments, last->arguments, args);
    }
    hn_call_reader_close(&r);
}

/* An answer that a limit cuts anywhere. */
static void test_cut_by_a_limit(void **state) {
    (void)state;
    int alone = 0;
    for (int i = 0; i < n_rows; i++) {
        const char *note = json_string_value(json_object_get(rows[i], "note"));
        const size_t len = json_string_length(json_object_get(rows[i], "text"));
        const bool calls_alone = !json_string_length(json_object_get(rows[i], "content")) && note && strstr(note, "rendered");
        if (getenv("HUNCH_SAY")) say(rows[i]);
        if (!json_array_size(json_object_get(rows[i], "calls"))) continue;
        for (size_t k = 1; k < len; k++) limit_check(rows[i], k, false);
        for (size_t k = 1; k < len && calls_alone; k++) limit_check(rows[i], k, true);
        alone += calls_alone;
    }
    assert_true(alone > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_chosen_by_marks), cmocka_unit_test(test_only_grows),
                                       cmocka_unit_test(test_cut_by_a_limit)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
