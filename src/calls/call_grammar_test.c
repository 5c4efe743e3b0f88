/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammar_test.c - grammars of calls accept what templates render, and whatever they accept is read as calls whose arguments their
 * schemas allow: random walks through each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"
#include "calls/calls_for_tests.h"
#include "grammar/grammar_for_tests.h"

static hn_tools tools;

static int setup(void **state) {
    (void)state;
    tools_offer(&tools, HUNCH_TEST_DATA "/tool-calls/tools.json", NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_tools_close(&tools);
    return 0;
}

static accepter grammar_of(const hn_call_family *f, const hn_tool_function *only, bool required,
                           const hn_call_options *o) {
    hn_grammar *g = NULL;
    hunch_error err = {0};
    if (hn_call_grammar_make(&g, f, &tools, only, required, o, &err))
        fail_msg("%s: %s", hn_call_family_name(f), err.message);
    return accepter_of(g, hn_call_family_name(f));
}

/* ---- what is rendered -------------------------------------------------------------------------------------------------- */

/* Rows whose form a grammar narrows: lists as Python prints them, an empty line that one template leaves between tags. */
static bool is_narrowed(const json_t *row) {
    const char *text = json_string_value(json_object_get(row, "text"));
    return strstr(text, "['a'") || strstr(text, "[{'id'") || strstr(text, "ping\">\n\n<");
}

static void check_row(const json_t *row, int *seen) {
    const hn_call_family *f = hn_call_family_named(json_string_value(json_object_get(row, "family")));
    const char *tail = json_string_value(json_object_get(row, "prompt_tail")),
               *note = json_string_value(json_object_get(row, "note"));
    const bool said = json_is_string(json_object_get(row, "content"));
    hn_call_options o = options_of(json_string_value(json_object_get(row, "template")));
    if (!strstr(note, "rendered") || strstr(note, "built-in") || is_narrowed(row) || !hn_call_grammar_fits(f, !said))
        return;
    o.thinks = tail && ends_in(tail, o.think_begin);
    char *text = hn_strdup(json_string_value(json_object_get(row, "text"))), *end = strstr(text, "<|call|>");
    if (end) *end = 0; /* the token that ends the turn */
    for (int required = !said; required >= 0; required--) {
        if (!hn_call_grammar_fits(f, required)) continue;
        accepter x = grammar_of(f, NULL, required, &o);
        bool whole;
        const size_t n = accepter_prefix(&x, text, strlen(text), &whole);
        if (!whole) fail_msg("%s, %d: stops at '%s' of '%s'", hn_call_family_name(f), required, text + n, text);
        accepter_close(&x);
        ++*seen;
    }
    hn_free(text);
}

static void test_rendered(void **state) {
    (void)state;
    char *text = NULL;
    size_t len = 0;
    int seen = 0;
    hunch_error err = {0};
    assert_int_equal(hn_file_read(HUNCH_TEST_DATA "/tool-calls/cases.jsonl", 1 << 24, &text, &len, &err), HUNCH_OK);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        json_t *row = json_loadb(at, (size_t)(end - at), 0, NULL);
        check_row(row, &seen);
        json_decref(row);
    }
    hn_free(text);
    assert_true(seen > 80);
}

/* ---- random walks ------------------------------------------------------------------------------------------------------ */

/* A byte that may come next; ends of things are likelier than their parts. -1: none. */
static int some_byte(const accepter *x, int32_t at, uint64_t *rng) {
    static const char ends[] = "\"}]<>)/|`:,\\";
    int best = -1, n = 0;
    for (int c = 0; c < 256; c++) {
        if (hn_automaton_byte(x->a, at, (unsigned char)c) < 0) continue;
        const int weight = c && strchr(ends, c) ? 12 : c >= 32 && c < 127 ? 1 : 0;
        if (best < 0) best = c;
        for (int k = 0; k < weight; k++)
            if (hn_splitmix(rng) % (uint64_t)++n == 0) best = c;
    }
    return best;
}

/* Marks that end strings, which no walk by bytes would find. */
static int32_t some_mark(const accepter *x, int32_t at, uint64_t *rng, char *text, size_t *n, size_t cap) {
    static const char *const marks[] = {"</parameter>",
                                        "</arg_value>",
                                        "<|\"|>",
                                        "]]></param>",
                                        "</param>",
                                        "</\xEF\xBD\x9C"
                                        "DSML\xEF\xBD\x9C"
                                        "parameter>"};
    const char *mark = marks[hn_splitmix(rng) % (sizeof marks / sizeof *marks)];
    int32_t to = at;
    for (const char *c = mark; *c && to >= 0; c++) to = hn_automaton_byte(x->a, to, (unsigned char)*c);
    if (to < 0 || *n + strlen(mark) + 1 >= cap) return at;
    strcpy(text + *n, mark);
    *n += strlen(mark);
    return to;
}

/* A text that the grammar accepts; false: it became too long. */
static bool walk(const accepter *x, uint64_t *rng, char *text, size_t cap) {
    int32_t at = x->a->start;
    for (size_t n = 0; n + 1 < cap; n++) {
        text[n] = 0;
        if (hn_splitmix(rng) % 8 == 0) at = some_mark(x, at, rng, text, &n, cap);
        const int c = some_byte(x, at, rng);
        if (x->a->states[at].final && (c < 0 || hn_splitmix(rng) % 2)) return true;
        if (c < 0) fail_msg("the grammar goes on nowhere: '%s'", text);
        text[n] = (char)c;
        at = hn_automaton_byte(x->a, at, (unsigned char)c);
    }
    return false;
}

/* Arguments in the order of the schema, which a grammar wants; Gemma sorts them. */
static char *in_order(const hn_tool_function *f, const char *arguments) {
    json_t *given = json_loads(arguments, 0, NULL), *sorted = json_object(), *value;
    const char *key;
    json_t *properties = json_object_get(f->parameters, "properties");
    assert_non_null(given);
    json_object_foreach(properties, key, value) if (json_object_get(given, key))
        json_object_set(sorted, key, json_object_get(given, key));
    json_object_update_missing(sorted, given);
    char *text = json_dumps(sorted, 0);
    json_decref(given);
    json_decref(sorted);
    return text;
}

static void check_valid(const hn_call *c) {
    const hn_tool_function *f = hn_tools_find(&tools, c->name, strlen(c->name));
    char *schema = json_dumps(f->parameters, 0), *arguments = in_order(f, c->arguments);
    accepter x = accepter_open(hn_grammar_json_schema, schema);
    bool whole;
    if (!accepts(&x, c->arguments) && !accepts(&x, arguments))
        fail_msg("%s is not allowed by %s", arguments + accepter_prefix(&x, arguments, strlen(arguments), &whole),
                 schema);
    accepter_close(&x);
    free(schema);
    free(arguments);
}

static int walk_and_read(const hn_call_family *f, const accepter *x, const hn_call_options *o, uint64_t *rng,
                         const hn_tool_function *only) {
    static char text[1 << 14];
    if (!walk(x, rng, text, sizeof text)) return 0;
    hn_call_reader *r = hn_call_reader_open(f, &tools, o);
    hn_call_answer a;
    assert_true(hn_call_reader_feed(r, text, strlen(text), true));
    hn_call_reader_get(r, &a);
    if (a.n_done == 0 || a.n_done != a.n_calls || a.n_broken || a.n_text)
        fail_msg("%s: '%s' is no call", hn_call_family_name(f), text);
    for (size_t i = 0; i < a.n_calls; i++) {
        check_valid(&a.call[i]);
        if (only) assert_string_equal(a.call[i].name, only->name);
    }
    if (only || o->one) assert_int_equal(a.n_calls, 1);
    hn_call_reader_close(&r);
    return 1;
}

static void test_walks(void **state) {
    (void)state;
    uint64_t rng = 7;
    for (size_t i = 0; hn_call_family_list(i); i++) {
        const hn_call_family *f = hn_call_family_named(hn_call_family_list(i));
        assert_true(hn_call_grammar_fits(f, true));
        int read = 0;
        for (int k = 0; k < 3; k++) {
            const hn_call_options o = {.one = k > 0, .seed = 1};
            const hn_tool_function *only = k == 2 ? &tools.function[1] : NULL;
            accepter x = grammar_of(f, only, true, &o);
            for (int n = 0; n < 12; n++) read += walk_and_read(f, &x, &o, &rng, only);
            accepter_close(&x);
        }
        if (read < 12) fail_msg("%s: only %d walks ended", hn_call_family_name(f), read);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rendered), cmocka_unit_test(test_walks)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
