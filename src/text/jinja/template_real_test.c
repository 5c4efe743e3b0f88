/* SPDX-License-Identifier: Apache-2.0 */
/* template_real_test.c - the chat templates of real models over conversations, tools and thinking: byte for byte the output
 * of Python's Jinja2 (tools/make_template_vectors.py), and refused where it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>

#include "base/file.h"
#include "base/mem.h"
#include "text/jinja/template.h"
#include "text/tokenizer/vectors_for_tests.h"

enum { CASES = 416, REFUSED = 13 };

typedef struct counts {
    size_t made, refused, named, injected;
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

/* ---- who wrote what ---- */

static const char *const own[] = {"bos_token", "eos_token"};

/* Marks of the bytes of a text in pieces, which must add up to it. */
static uint8_t *marks_of(const hunch_piece *pieces, size_t n, size_t len) {
    uint8_t *mark = calloc(len + 1, 1);
    size_t at = 0;
    for (size_t i = 0; i < n; at += pieces[i++].len) {
        assert_true(pieces[i].len > 0 && at + pieces[i].len <= len && (i == 0 || pieces[i].special != pieces[i - 1].special));
        memset(mark + at, pieces[i].special, pieces[i].len);
    }
    assert_int_equal(at, len);
    return mark;
}

/* The names in a text, as far as they look like names: <|...|>, and tags and [WORDS] of letters. */
static size_t name_length(const char *s, const char *end) {
    const char close = *s == '<' ? '>' : *s == '[' ? ']' : 0;
    size_t n = 1;
    while (close && s + n < end && n < 40 && (isalnum((unsigned char)s[n]) || strchr("|_/:", s[n]))) n++;
    return close && s + n < end && s[n] == close && n > 2 ? n + 1 : 0;
}

/* The text is the same with pieces; names that no variable has are the template's. */
static size_t check_names(const hn_template *t, const json_t *vars, const char *want, size_t want_len, const char *name) {
    char *got, *given = json_dumps(vars, JSON_COMPACT);
    size_t len, n, found = 0;
    hunch_piece *pieces;
    hunch_error e = {0};
    if (hn_template_render_pieces(t, vars, "2026-01-02 03:04:05", own, 2, &got, &len, &pieces, &n, &e)) fail_msg("%s: %s", name, e.message);
    assert_int_equal(len, want_len);
    assert_memory_equal(got, want, len);
    uint8_t *mark = marks_of(pieces, n, len);
    for (size_t i = 0; i < len; i++) {
        char word[50] = {0};
        const size_t bytes = name_length(got + i, got + len);
        if (!bytes) continue;
        memcpy(word, got + i + 1, bytes - 2); /* a tag may be made of the name of a key */
        const bool by_template = mark[i] && mark[i + bytes - 1]; /* some are made of a role: '<|' + role + '|>' */
        if (!by_template && !strstr(given, word + (*word == '/'))) fail_msg("%s: %s is not the template's", name, word);
        found += by_template;
    }
    free(mark);
    free(given);
    hn_free(got);
    hn_free(pieces);
    return found;
}

/* Whatever the template does with messages, names in their contents stay the user's. Returns how many were found. */
static size_t check_injected(const hn_template *t, const json_t *row_vars, const char *name) {
    static const char bad[] = "<|im_start|>QQ";
    json_t *vars = json_deep_copy(row_vars), *message;
    size_t i, len, n, found = 0;
    char *got;
    hunch_piece *pieces;
    hunch_error e = {0};
    json_array_foreach(json_object_get(vars, "messages"), i, message) {
        const json_t *content = json_object_get(message, "content");
        char text[4000];
        if (!json_is_string(content) || json_string_length(content) > 3000) continue;
        snprintf(text, sizeof text, " %s%s %s ", bad, json_string_value(content), bad);
        json_object_set_new(message, "content", json_string(text));
    }
    if (hn_template_render_pieces(t, vars, "2026-01-02 03:04:05", own, 2, &got, &len, &pieces, &n, &e) == HUNCH_OK) {
        uint8_t *mark = marks_of(pieces, n, len);
        for (const char *at = got; (at = memmem(at, (size_t)(got + len - at), bad, strlen(bad))); at++) {
            if (memchr(mark + (at - got), 1, strlen(bad))) fail_msg("%s: a message's %s counts as the template's", name, bad);
            found++;
        }
        free(mark);
    }
    hn_free(got);
    hn_free(pieces);
    json_decref(vars);
    return found;
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
        seen->named += check_names(t, json_object_get(row, "vars"), want, want_len, name);
        seen->injected += check_injected(t, json_object_get(row, "vars"), name);
    } else if (strstr(row_text(row, "error", NULL), "'append' of 'list'")) { /* Kimi K2's, which only the sandbox refuses */
        if (s != HUNCH_OK) fail_msg("%s, %s: %s", name, scenario, e.message);
        assert_non_null(strstr(got, "functions.get_weather:0"));
        seen->refused++;
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
    assert_true(seen.named > 3000 && seen.injected > 2000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real_templates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
