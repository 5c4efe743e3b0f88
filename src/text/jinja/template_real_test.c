/* SPDX-License-Identifier: Apache-2.0 */
/* template_real_test.c - the chat templates of real models over conversations, tools and thinking: byte for byte the output
 * of Python's Jinja2 (tools/make_template_vectors.py), and refused where it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "text/jinja/template.h"
#include "text/vectors_for_tests.h"

enum { CASES = 416, REFUSED = 13 };

typedef struct counts {
    size_t made, refused;
} counts;

/* The template that a case names or contains. */
static hn_template *parse(const json_t *row) {
    char path[600], *file = NULL;
    size_t len;
    hunch_error e = {0};
    hn_template *t;
    const char *text = row_text(row, "text", &len), *name = row_text(row, "template", NULL);
    if (!text) {
        snprintf(path, sizeof path, "%s/%s", HUNCH_TEST_TEMPLATES, name);
        assert_int_equal(hn_file_read(path, 1 << 20, &file, &len, &e), HUNCH_OK);
        text = file;
    }
    if (hn_template_parse(&t, text, len, &e) != HUNCH_OK) fail_msg("%s: %s", name, e.message);
    hn_free(file);
    return t;
}

static void check_case(const json_t *row, void *user) {
    counts *seen = user;
    const char *name = row_text(row, "template", NULL), *scenario = row_text(row, "scenario", NULL);
    size_t want_len, len;
    const char *want = row_text(row, "output", &want_len);
    hunch_error e = {0};
    char *got;
    hn_template *t = parse(row);
    hunch_status s =
        hn_template_render(t, json_object_get(row, "vars"), "2026-01-02 03:04:05", &got, &len, &e);
    if (want) {
        if (s != HUNCH_OK) fail_msg("%s, %s: %s", name, scenario, e.message);
        if (len != want_len || memcmp(got, want, len) != 0)
            fail_msg("%s, %s: \"%s\", expected \"%s\"", name, scenario, got, want);
        seen->made++;
    } else {
        if (s != HUNCH_USAGE) fail_msg("%s, %s: %d, expected %s", name, scenario, s, row_text(row, "error", NULL));
        assert_non_null(strstr(e.message, "chat template, line "));
        const char *words = strstr(row_text(row, "error", NULL), "ValueError: "); /* the template's own */
        if (words && !strstr(e.message, words + strlen("ValueError: ")))
            fail_msg("%s, %s: %s", name, scenario, e.message);
        seen->refused++;
    }
    hn_free(got);
    hn_template_free(t);
}

/* README: "Token ids and chat prompts are those of the model's own tokenizer and template." */
static void test_real_templates(void **state) {
    (void)state;
    counts seen = {0};
    assert_int_equal(each_row_of(HUNCH_TEST_TEMPLATES "/cases.jsonl", check_case, &seen), CASES);
    assert_int_equal(seen.refused, REFUSED);
    assert_int_equal(seen.made, CASES - REFUSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real_templates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
