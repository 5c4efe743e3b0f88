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
#include "base/run_mode_for_tests.h"
#include "calls/calls_for_tests.h"
#include "grammar/grammar_for_tests.h"

static hn_tools tools, strict, beyond;
static const hn_tools *offered = &tools;

/* Strings that are bounded in several ways, a schema that refers to itself, properties without a name. */
static const char strict_json[] =
    "[{\"name\": \"find\", \"parameters\": {\"type\": \"object\", \"properties\": {\"code\": {\"type\": \"string\", \"pattern\": "
    "\"^[A-Z]{2}-[0-9]+$\"}, \"day\": {\"type\": \"string\", \"format\": \"date\"}, \"kind\": {\"enum\": [\"a<b\", \"c\"]}, "
    "\"node\": {\"$ref\": \"#/$defs/node\"}, \"short\": {\"anyOf\": [{\"type\": \"string\", \"maxLength\": 3}, {\"type\": "
    "\"null\"}]}, \"some\": {\"allOf\": [{\"$ref\": \"#/$defs/flag\"}]}}, \"required\": [\"code\", \"node\"], \"$defs\": "
    "{\"flag\": {\"type\": \"object\", \"properties\": {\"on\": {\"type\": \"boolean\"}}, \"required\": [\"on\"], "
    "\"additionalProperties\": false}, \"node\": {\"type\": \"object\", \"properties\": {\"next\": {\"$ref\": \"#/$defs/node\"}, "
    "\"v\": {\"type\": \"integer\", \"maximum\": 9}}, \"required\": [\"v\"], \"additionalProperties\": {\"type\": "
    "\"boolean\"}}}}}, {\"name\": \"ping\", \"parameters\": {\"type\": \"object\"}}]";

/* The functions of tools.json that answers below begin to call, with a schema that no grammar honours. */
static const char beyond_json[] =
    "[{\"name\": \"get_weather\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", "
    "\"pattern\": \"(?<!a)b\"}}}}, {\"name\": \"ping\"}]";

static int setup(void **state) {
    (void)state;
    hunch_error err = {0};
    json_t *list = json_loads(strict_json, 0, NULL), *other = json_loads(beyond_json, 0, NULL);
    assert_int_equal(hn_tools_open(&beyond, other, "tools", &err), HUNCH_OK);
    json_decref(other);
    tools_offer(&tools, HUNCH_TEST_DATA "/tool-calls/tools.json", NULL);
    assert_int_equal(hn_tools_open(&strict, list, "tools", &err), HUNCH_OK);
    json_decref(list);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_tools_close(&tools);
    hn_tools_close(&strict);
    hn_tools_close(&beyond);
    return 0;
}

static accepter grammar_by(const hn_call_family *f, const hn_tool_function *only, hunch_tool_choice choice, const hn_call_options *o) {
    hn_grammar *g = NULL;
    hunch_error err = {0};
    if (hn_call_grammar_make(&g, f, offered, only, choice, o, &err)) fail_msg("%s: %s", hn_call_family_name(f), err.message);
    return accepter_of(g, hn_call_family_name(f));
}

static accepter grammar_of(const hn_call_family *f, const hn_tool_function *only, bool required, const hn_call_options *o) {
    return grammar_by(f, only, required ? HUNCH_TOOLS_REQUIRED : HUNCH_TOOLS_AUTO, o);
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
    if (!strstr(note, "rendered") || strstr(note, "built-in") || is_narrowed(row) || !hn_call_grammar_fits(f, false))
        return;
    o.thinks = tail && ends_in(tail, o.think_begin);
    char *text = hn_strdup(json_string_value(json_object_get(row, "text"))), *end = strstr(text, "<|call|>");
    if (end) *end = 0; /* the token that ends the turn */
    for (int required = !said; required >= 0; required--) {
        
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
    if (!given) fail_msg("not JSON: %s", arguments);
    json_object_foreach(properties, key, value) if (json_object_get(given, key))
        json_object_set(sorted, key, json_object_get(given, key));
    json_object_update_missing(sorted, given);
    char *text = json_dumps(sorted, 0);
    json_decref(given);
    json_decref(sorted);
    return text;
}

static void check_valid(const hn_call *c) {
    if (strstr(c->arguments, "\\u0000")) return; /* jansson reads no such keys */
    const hn_tool_function *f = hn_tools_find(offered, c->name, strlen(c->name));
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
    hn_call_reader *r = hn_call_reader_open(f, offered, o);
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

static void walk_all(uint64_t rng) {
    const int walks = test_light() ? 5 : 12;
    for (size_t i = 0; hn_call_family_list(i); i++) {
        const hn_call_family *f = hn_call_family_named(hn_call_family_list(i));
        assert_true(hn_call_grammar_fits(f, false));
        int read = 0;
        for (int k = 0; k < 3; k++) {
            const hn_call_options o = {.one = k > 0, .seed = 1};
            const hn_tool_function *only = k == 2 ? &offered->function[offered == &tools] : NULL;
            accepter x = grammar_of(f, only, true, &o);
            for (int n = 0; n < walks; n++) read += walk_and_read(f, &x, &o, &rng, only);
            accepter_close(&x);
        }
        if (!test_light() && read < walks) fail_msg("%s: only %d walks ended", hn_call_family_name(f), read);
    }
}

static void test_walks(void **state) {
    (void)state;
    walk_all(7);
}

static void test_strict_walks(void **state) {
    (void)state;
    offered = &strict;
    walk_all(8);
    offered = &tools;
}

/* Keys that the schema does not name are none of those that it names. */
static void test_gemma_keys(void **state) {
    (void)state;
    static const char begin[] = "<|tool_call>call:find{code:<|\"|>AB-1<|\"|>,node:{next:{v:3},v:1,";
    static const struct {
        const char *rest;
        bool is;
    } cases[] = {{"va:true,w:false}}<tool_call|>", true}, {"nex:true}}<tool_call|>", true}, {"v:true", false}, {"next:true", false},
                 {"w:3", false}, {",", false}};
    const hn_call_options o = {.seed = 1};
    offered = &strict;
    accepter x = grammar_of(hn_call_family_named("gemma4"), NULL, true, &o);
    offered = &tools;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        bool whole;
        snprintf(text, sizeof text, "%s%s", begin, cases[i].rest);
        const size_t n = accepter_prefix(&x, text, strlen(text), &whole);
        if (cases[i].is ? !whole : n == strlen(text)) fail_msg("'%s', %d", text, cases[i].is);
    }
    accepter_close(&x);
}

/* ---- calls that may be ------------------------------------------------------------------------------------------------- */

#define HARMONY_CALL "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
static const struct { const char *family, *yes[8], *no[8]; } may[] = {
    {"hermes", {"<tool", "see <tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call> so"},
               {"<tool_call>\n{\"name\": \"pong", "a <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"days\""}},
    {"qwen3-coder",
     {"a <function", "<function=ping>\n</function>",
      "so <function=ping>\n</function>\n</tool_call> then <tool_call>\n<function=ping>\n</function>\n</tool_call>\nend",
      "<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n</function>"},
     {"<function=pong", "<function=get_weather>\n</function>", "<tool_call>\n<function=ping>\n</function>\n</function>",
      "<function=ping>\n</function>\n</tool_call><function=pong"}},
    {"llama3",
     {"{\"name\": \"Anna\", \"age\": 3}", "{\"name\": \"ping\", \"parameters\": {}}", "\n {\"name\":\"ping\",\"parameters\":{}}",
      "see {\"name\": \"ping\", x",
      "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"B\"}}; {\"name\": \"ping\", \"parameters\": {}}",
      "<|python_tag|>print(3)", "a <|python_tag|>{\"name\": \"ping\", \"parameters\": {}}", "{\"name\": \"pin"},
     {"{\"name\": \"ping\", \"x", "{\"name\": \"ping\", \"parameters\": {\"x", "\n{\"name\":\"get_weather\",\"parameters\":{}",
      "<|python_tag|>{\"name\": \"ping\", \"parameters\": []", "{\"name\": \"ping\", \"parameters\": {}} so"}},
    {"llama-pythonic",
     {"[1, 2]", "[pong()]", "[ping(), get_weather(city=\"B\", days=3)]", "see [ping(3)]", "[get_weather"},
     {"[ping(3", "[get_weather()", "[get_weather(town", "[ping(), pong"}},
    {"functionary-3.2",
     {"all\nLet me look.>>>get_weather\n{\"city\": \"B\"}>>>ping\n{}", "ping\n{}", "pinging\n{x", ">>>> so",
      "all\n>>>pong\n[", "all\nping\n["},
     {"ping\n{\"a", "all\nx>>>ping\n[", "ping\n{}>>>get_weather\n{}", "all\n>>>>ping\n["}},
    {"gpt-oss",
     {"<|channel|>analysis<|message|>to=functions.x<|end|><|start|>assistant" HARMONY_CALL "{\"city\":\"B\"}",
      " to=functions.ping<|channel|>analysis code<|message|>{}", "<|channel|>analysis to=browser.search code<|message|>{\"a",
      "<|channel|>final<|message|>It is warm.", "<|channel|>commentary to=function<|message|>x"},
     {"<|channel|>thinking", HARMONY_CALL "{\"town", HARMONY_CALL "x", "<|channel|>commentary to=functions.pong", "It is",
      " to=functions<|channel|>x",
      "<|channel|>final<|message|>x<|end|>y"}},
};

static void check_may(size_t i) {
    const hn_call_family *f = hn_call_family_named(may[i].family);
    const hn_call_options o = {.seed = 1};
    accepter x = grammar_of(f, NULL, false, &o);
    bool whole;
    for (int k = 0; k < 8 && may[i].yes[k]; k++)
        if (!accepts(&x, may[i].yes[k])) fail_msg("%s refuses '%s'", may[i].family, may[i].yes[k]);
    for (int k = 0; k < 8 && may[i].no[k]; k++) {
        const size_t len = strlen(may[i].no[k]);
        if (accepter_prefix(&x, may[i].no[k], len, &whole) == len) fail_msg("%s goes on with '%s'", may[i].family, may[i].no[k]);
    }
    accepter_close(&x);
}

static void test_may_call(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof may / sizeof *may; i++) check_may(i);
}

/* ---- calls that may not be --------------------------------------------------------------------------------------------- */

/* Where the last byte of what begins a call would stand, nothing of it does. */
static const struct { const char *family, *yes[4], *no[4]; } never[] = {
    {"llama3", {"{\"name\": \"Anna\"}", "see {\"name\": \"ping\", \"parameters\": {}}", "{\"name\": \"pin"},
     {"{\"name\": \"ping\"", "\n{\"name\":\"get_weather\"", "<|python_tag|>", "a <|python_tag|>"}},
    {"llama-pythonic", {"[1, 2]", "see [ping()]", "[pong()]"}, {"[ping(", " [get_weather("}},
    {"functionary-3.2", {"all\nLet me look.", "pinging\n{", "all\nx>>>all\ny"}, {"ping\n", "all\nx>>>get_weather\n"}},
    {"gpt-oss", {"<|channel|>analysis<|message|>to=functions.ping<|end|><|start|>assistant<|channel|>final<|message|>No."},
     {HARMONY_CALL, " to=functions.ping", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.p"}},
    {"qwen3-coder", {"a <function", "<tool"}, {"<function=", "a <tool_call>"}},
    {"hermes", {"<tool"}, {"a <tool_call>"}},
    {"lfm2", {"[ping()]"}, {"<|tool_call_start|>"}},
};

static void check_never(void) {
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        const hn_call_options o = {.seed = 1};
        const hn_call_family *f = hn_call_family_named(never[i].family);
        bool whole;
        assert_true(hn_call_grammar_fits(f, true));
        accepter x = grammar_by(f, NULL, HUNCH_TOOLS_NONE, &o);
        for (int k = 0; k < 4 && never[i].yes[k]; k++)
            if (!accepts(&x, never[i].yes[k])) fail_msg("%s refuses '%s'", never[i].family, never[i].yes[k]);
        for (int k = 0; k < 4 && never[i].no[k]; k++)
            if (accepter_prefix(&x, never[i].no[k], strlen(never[i].no[k]), &whole) == strlen(never[i].no[k]))
                fail_msg("%s goes on with '%s'", never[i].family, never[i].no[k]);
        accepter_close(&x);
    }
}

static void test_no_call(void **state) {
    (void)state;
    check_never();
}

/* No schema matters where no call is: one that cannot be honoured changes nothing. */
static void test_no_call_beyond(void **state) {
    (void)state;
    hn_grammar *g = NULL;
    hunch_error err = {0};
    const hn_call_options o = {.seed = 1};
    assert_int_equal(hn_call_grammar_make(&g, hn_call_family_named("llama3"), &beyond, NULL, HUNCH_TOOLS_AUTO, &o, &err), HUNCH_USAGE);
    offered = &beyond;
    check_never();
    offered = &tools;
}

/* ---- several calls ----------------------------------------------------------------------------------------------------- */

/* As each style has two in one answer; NULL: it has one, and then another turn. */
#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"
#define DS(name) "<" BAR "tool" LOW name BAR ">"
static const struct { const char *family, *first, *second, *end; } several[] = {
    {"hermes", "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>",
     "\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"B\"}}\n</tool_call>", ""},
    {"llama3", "{\"name\": \"ping\", \"parameters\": {}}", "; {\"name\": \"get_weather\", \"parameters\": {\"city\": \"B\"}}", ""},
    {"llama-pythonic", "[ping()", ", get_weather(city=\"B\")", "]"},
    {"lfm2", "<|tool_call_start|>[ping()", ", get_weather(city=\"B\")", "]<|tool_call_end|>"},
    {"mistral-json", "[TOOL_CALLS][{\"name\": \"ping\", \"arguments\": {}, \"id\": \"abcdefgh1\"}",
     ", {\"name\": \"get_weather\", \"arguments\": {\"city\": \"B\"}, \"id\": \"abcdefgh2\"}", "]"},
    {"mistral-args", "[TOOL_CALLS]ping[ARGS]{}", "[TOOL_CALLS]get_weather[CALL_ID]abcdefgh2[ARGS]{\"city\": \"B\"}", ""},
    {"deepseek-r1", DS("calls" LOW "begin") DS("call" LOW "begin") "function" DS("sep") "ping\n```json\n{}\n```" DS("call" LOW "end"),
     "\n" DS("call" LOW "begin") "function" DS("sep") "get_weather\n```json\n{\"city\": \"B\"}\n```" DS("call" LOW "end"),
     DS("calls" LOW "end")},
    {"deepseek-v3.1", DS("calls" LOW "begin") DS("call" LOW "begin") "ping" DS("sep") "{}" DS("call" LOW "end"),
     DS("call" LOW "begin") "get_weather" DS("sep") "{\"city\": \"B\"}" DS("call" LOW "end"), DS("calls" LOW "end")},
    {"functionary-3.2", "ping\n{}", ">>>get_weather\n{\"city\": \"B\"}", ""},
    {"gpt-oss", HARMONY_CALL "{\"city\": \"B\"}", NULL, ""},
};

static size_t read_calls(const hn_call_family *f, const char *text, const hn_call_options *o) {
    hn_call_answer a;
    hn_call_reader *r = hn_call_reader_open(f, &tools, o);
    assert_non_null(r);
    assert_true(hn_call_reader_feed(r, text, strlen(text), true));
    hn_call_reader_get(r, &a);
    if (a.n_done != a.n_calls || a.n_text || a.n_broken) fail_msg("'%s': %zu calls, %zu of them whole", text, a.n_calls, a.n_done);
    const size_t n = a.n_done;
    if (n == 2) assert_true(strcmp(a.call[0].name, "ping") == 0 && strcmp(a.call[1].name, "get_weather") == 0);
    hn_call_reader_close(&r);
    return n;
}

/* A required answer may have several calls in each style that has, and one if no more are wanted; and the reader gives as many. */
static void test_several(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        const hn_call_family *f = hn_call_family_named(several[i].family);
        char one[400], two[800];
        snprintf(one, sizeof one, "%s%s", several[i].first, several[i].end);
        snprintf(two, sizeof two, "%s%s%s", several[i].first, several[i].second ? several[i].second : "", several[i].end);
        for (int single = 0; single < 2; single++) {
            const hn_call_options o = {.seed = 1, .one = single};
            accepter x = grammar_of(f, NULL, true, &o);
            if (!accepts(&x, one)) fail_msg("%s refuses '%s'", several[i].family, one);
            if (several[i].second && accepts(&x, two) != !single) fail_msg("%s, one %d: '%s'", several[i].family, single, two);
            accepter_close(&x);
        }
        const hn_call_options o = {.seed = 1};
        assert_int_equal(read_calls(f, one, &o), 1);
        if (several[i].second) assert_int_equal(read_calls(f, two, &o), 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rendered), cmocka_unit_test(test_walks), cmocka_unit_test(test_strict_walks),
                                       cmocka_unit_test(test_gemma_keys),
                                       cmocka_unit_test(test_may_call), cmocka_unit_test(test_no_call),
                                       cmocka_unit_test(test_no_call_beyond), cmocka_unit_test(test_several)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
