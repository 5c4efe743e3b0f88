/* SPDX-License-Identifier: Apache-2.0 */
/* call_reader_test.c - answers that are no calls, broken ones beside whole ones, what models write instead of their own format, types of
 * parameters, ids, and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/fault.h"
#include "calls/calls_for_tests.h"
#include "calls/json_scan.h"

static hn_tools tools;

static int setup(void **state) {
    (void)state;
    static const char more[] =
        "{\"name\": \"types\", \"parameters\": {\"type\": \"object\", \"$defs\": {\"t\": {\"type\": \"array\"}}, "
        "\"properties\": {"
        "\"s\": {\"type\": \"string\"}, \"n\": {\"type\": \"integer\"}, \"sn\": {\"type\": [\"string\", \"null\"]},"
        "\"in\": {\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}]}, \"ref\": {\"$ref\": \"#/$defs/t\"},"
        "\"e\": {\"enum\": [\"5\", \"6\"]}, \"any\": {}, \"on\": {\"type\": \"boolean\"}}}}";
    json_t *list = json_load_file(HUNCH_TEST_DATA "/tool-calls/tools.json", 0, NULL);
    json_array_append_new(list, json_loads(more, 0, NULL));
    hunch_error err = {0};
    assert_int_equal(hn_tools_open(&tools, list, "tools", &err), HUNCH_OK);
    json_decref(list);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_tools_close(&tools);
    return 0;
}

static hn_call_reader *reader(const char *family, bool one) {
    const hn_call_options o = {.think_begin = "<think>", .think_end = "</think>", .one = one, .earlier = 4, .seed = 3};
    const hn_call_family *f = hn_call_family_named(family);
    assert_non_null(f);
    return hn_call_reader_open(f, &tools, &o);
}

/* What an answer is, as "text|name{..}|name{..}|!broken", whole and a byte at a time. */
static void check_how(const char *family, bool one, const char *text, const char *wanted) {
    for (size_t step = 1; step <= strlen(text); step += step == 1 ? strlen(text) - 1 + !text[1] : 1) {
        char is[2000];
        hn_call_reader *r = reader(family, one);
        for (size_t at = 0; at < strlen(text); at += step)
            assert_true(hn_call_reader_feed(r, text + at, step < strlen(text + at) ? step : strlen(text + at), false));
        assert_true(hn_call_reader_feed(r, NULL, 0, true));
        hn_call_answer a;
        hn_call_reader_get(r, &a);
        size_t n = (size_t)snprintf(is, sizeof is, "%.*s", (int)a.n_text, a.text);
        for (size_t i = 0; i < a.n_calls; i++)
            if (a.call[i].state == HUNCH_CALL_DONE)
                n += (size_t)snprintf(is + n, sizeof is - n, "|%s%s", a.call[i].name, a.call[i].arguments);
        if (a.n_broken) snprintf(is + n, sizeof is - n, "|!%.*s", (int)a.n_broken, a.broken);
        json_decref(calls_json(&a)); /* their arguments are JSON */
        if (strcmp(is, wanted) != 0) fail_msg("%s, %zu: '%s' is '%s', not '%s'", family, step, text, is, wanted);
        hn_call_reader_close(&r);
    }
}

static void check(const char *family, const char *text, const char *wanted) {
    check_how(family, false, text, wanted);
}

static void test_text_stays_text(void **state) {
    (void)state;
    for (size_t i = 0; hn_call_family_list(i); i++) {
        check(hn_call_family_list(i), "Nothing to <call> here: [1, 2] {3} > 4.",
              "Nothing to <call> here: [1, 2] {3} > 4.");
        check(hn_call_family_list(i), " \n", "");
    }
    check("hermes", "Write <tool_call> to call.", "Write <tool_call> to call.");
    check("hermes", "<tool_call>\n{\"name\": \"nobody\", \"arguments\": {\"a\": 1}}\n</tool_call> x",
          "<tool_call>\n{\"name\": \"nobody\", \"arguments\": {\"a\": 1}}\n</tool_call> x");
    check("llama3", "{ int x; } is C", "{ int x; } is C");
    check("llama3", "{\"name\": \"ping\"}", "{\"name\": \"ping\"}");
    check("llama-pythonic", "[1, 2, 3] is a list", "[1, 2, 3] is a list");
    check("functionary-3.2", "all\n>>> print(1)\n1", ">>> print(1)\n1");
    check("phi4-mini", "use functools and [ping]", "use functools and [ping]");
    check("qwen3-coder", "a <tool_call> b", "a <tool_call> b");
    check("glm4", "a <tool_call> b", "a <tool_call> b");
    check("gpt-oss", "It is warm.", "It is warm.");
    check("gpt-oss", "<|channel|>final<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "ab");
    check("kimi-k2", "see <|tool_calls", "see <|tool_calls");
}

static void test_broken_beside_whole(void **state) {
    (void)state;
    const char *const ping = "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>";
    char text[500], wanted[500];
    snprintf(text, sizeof text, "A.\n%s\n<tool_call>{\"name\": \"ping\", \"arguments\": {bad}}</tool_call>\n%s B.",
             ping, ping);
    check("hermes", text,
          "A.\n\n\n B.|ping{}|ping{}|!<tool_call>{\"name\": \"ping\", \"arguments\": {bad}}</tool_call>");
    snprintf(text, sizeof text, "<tool_call>{\"name\": \"ping\", \"arguments\": [}</tool_call> C %s", ping);
    check("hermes", text,
          "C|ping{}|!<tool_call>{\"name\": \"ping\", \"arguments\": [}</tool_call>"); /* first broken, then whole */
    check("hermes", "C <tool_call>{\"name\": \"ping\", \"arguments\": [}</tool_call> D",
          "C <tool_call>{\"name\": \"ping\", \"arguments\": [}</tool_call> D"); /* none is whole */
    snprintf(text, sizeof text, "%s%s", ping, ping);
    snprintf(wanted, sizeof wanted, "|ping{}|!%s", ping);
    check_how("hermes", true, text, wanted); /* one call is allowed */
    check("mistral-json", "[TOOL_CALLS] [{\"name\": \"ping\", \"arguments\": {}}, {\"name\": \"ping\", \"argum",
          "|ping{}|!{\"name\": \"ping\", \"argum");
    check("mistral-json",
          "[TOOL_CALLS][{\"name\": \"nobody\", \"arguments\": {}}, {\"name\": \"ping\", \"arguments\": {}}]",
          "[TOOL_CALLS][{\"name\": \"nobody\", \"arguments\": {}}|ping{}");
    check("glm4", "<tool_call>ping</tool_call><tool_call>store<arg_key>big</arg_key></tool_call> x",
          "x|ping{}|!<tool_call>store<arg_key>big</arg_key></tool_call>");
}

static void test_hermes(void **state) {
    (void)state;
    check("hermes", "<tool_call>{\"arguments\": {\"city\": \"a\"}, \"name\": \"get_weather\"}</tool_call>",
          "|get_weather{\"city\": \"a\"}");
    check("hermes",
          "<tool_call>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"\\ud83d\\ude00\"}}</tool_call>",
          "|get_weather{\"city\": \"\\ud83d\\ude00\"}");
    check("hermes", "<tool_call>{\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"a\\\"}\"}</tool_call>",
          "|get_weather{\"city\": \"a\"}");
    check("hermes", "<tool_call>{\"name\": \"ping\"}\n{\"name\": \"ping\", \"arguments\": null}</tool_call> x",
          "x|ping{}|ping{}");
    check(
        "hermes", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"\\ud83d\"}}</tool_call>",
        "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"\\ud83d\"}}</tool_call>"); /* half a pair */
    check("hermes", "<tool_call>{\"name\": \"note\", \"arguments\": {\"text\": \"<think>x</think>\"}}</tool_call>",
          "|note{\"text\": \"<think>x</think>\"}");
    check("hermes", "<think>a</think>b<think>c</think>d", "bd");
}

static void test_markup(void **state) {
    (void)state;
    check("qwen3-coder",
          "<function=types>\n<parameter=s>\nnull\n</parameter>\n<parameter=sn>\nnull\n</parameter>\n<parameter=in>\n5\n"
          "</parameter>\n<parameter=ref>\n('a', "
          "None)\n</parameter>\n<parameter=e>\n5\n</parameter>\n<parameter=any>\n{\"x\": [1]}\n"
          "</parameter>\n<parameter=n>\nfive\n</parameter>\n<parameter=other>\n7\n</"
          "parameter>\n<parameter=on>\nFalse\n</parameter>\n"
          "</function>\n</tool_call>",
          "|types{\"s\": \"null\", \"sn\": null, \"in\": 5, \"ref\": [\"a\", null], \"e\": \"5\", \"any\": {\"x\": "
          "[1]}, \"n\": \"five\", "
          "\"other\": \"7\", \"on\": false}");
    check("qwen3-coder", "<tool_call><function=get_weather><parameter=city>Bern</parameter></function></tool_call>x",
          "x|get_weather{\"city\": \"Bern\"}");
    check("qwen3-coder",
          "<tool_call>\n<function=note>\n<parameter=text>\n\n a "
          "\n\n</parameter>\n</function>\n<function=ping>\n</function>",
          "|note{\"text\": \"\\n a \\n\"}|ping{}");
    check("qwen3-coder", "<tool_call>\n<function=note>\n<parameter=text>\n</parameter>\n</function>\n</tool_call>",
          "|note{\"text\": \"\"}");
    check("qwen3-coder",
          "<tool_call>\n<function=note>\n<parameter=text>\nx\n</parameter>\n", /* the function does not end */
          "<tool_call>\n<function=note>\n<parameter=text>\nx\n</parameter>");
    check("minimax-m2",
          "<minimax:tool_call>\n<invoke name=\"note\">\n<parameter name=\"text\"> none </parameter>\n</invoke>\n"
          "</minimax:tool_call>",
          "|note{\"text\": \" none \"}");
    check("glm4", "<tool_call>ping</tool_call>", "|ping{}");
    check("glm4", "<tool_call> get_weather \n<arg_key>city</arg_key>\n<arg_value>a</arg_value></tool_call>",
          "|get_weather{\"city\": \"a\"}");
    check("minicpm5", "<function name=\"note\"><param name=\"text\"><![CDATA[a]]> </param>]]></param></function>",
          "|note{\"text\": \"a]]> </param>\"}");
    check(
        "seed-oss",
        "<seed:tool_call>\n<function=types>\n<parameter=ref>[{'a': \"it's\", 1: True}, 0x, ]</parameter>\n</function>\n"
        "</seed:tool_call>",
        "|types{\"ref\": \"[{'a': \\\"it's\\\", 1: True}, 0x, ]\"}");
    check("seed-oss",
          "<seed:tool_call>\n<function=types>\n<parameter=ref>[{'a': \"it's\", 1: True}, -.5, "
          "1_000,]</parameter>\n</function>\n"
          "</seed:tool_call>",
          "|types{\"ref\": [{\"a\": \"it's\", \"1\": true}, -0.5, 1000]}");
}

static void test_gemma(void **state) {
    (void)state;
    check("gemma4", "<|tool_call>call:note{text:a, b<|\"|>,on:True}<tool_call|>",
          "|note{\"text\": \"a, b\", \"on\": true}");
    check("gemma4", "<|tool_call>call:note{text:<|\"|>a<|\"|>on:false}<tool_call|>",
          "|note{\"text\": \"a\", \"on\": false}");
    check("gemma4", "<|tool_call>call:note(text=\"say \\\"x\\\" \", on=true)<tool_call|>",
          "|note{\"text\": \"say \\\"x\\\" \", \"on\": true}");
    check("gemma4", "<|tool_call>call:get_weather{city:New York,days:3}<tool_call|>",
          "|get_weather{\"city\": \"New York\", \"days\": 3}");
    check("gemma4", "<|tool_call>call:note{text:<|\"|>\\n < <|x<|\"|>,opt:{},tags:[]}<tool_call|>ok",
          "ok|note{\"text\": \"\\\\n < <|x\", \"opt\": {}, \"tags\": []}");
    check("gemma4", "<|tool_call>call:ping{}", "|ping{}");
    check("gemma4", "<|tool_call>call:note{text:<|\"|>a<tool_call|>", "<|tool_call>call:note{text:<|\"|>a<tool_call|>");
}

static void test_python(void **state) {
    (void)state;
    check("lfm2", "<|tool_call_start|>[note(text=\"say \"hi\", he\nsaid\", tags=['a'])]<|tool_call_end|>",
          "|note{\"text\": \"say \\\"hi\\\", he\\nsaid\", \"tags\": [\"a\"]}");
    check("lfm2", "<|tool_call_start|>[types(n=007, from=1)]<|tool_call_end|>[types(n=007)]<|tool_call_end|>ok",
          "ok|types{\"n\": 7, \"from\": 1}");
    check("lfm2", "<|tool_call_start|>[ping()]<|tool_call_end|>[not an echo]", "[not an echo]|ping{}");
    check("llama-pythonic", "[note(text='\\x41\\u00e9\\n\\'', on=True,)]",
          "|note{\"text\": \"A\xC3\xA9\\n'\", \"on\": true}");
    check("llama-pythonic", "[note(text='a', opt={'z': (1, 2)}), ping()] done",
          "done|note{\"text\": \"a\", \"opt\": {\"z\": [1, 2]}}|ping{}");
    check("llama-pythonic", "[note(text=f(x))]", "[note(text=f(x))]");
}

static void test_other_families(void **state) {
    (void)state;
    check("kimi-k2", "<|tool_call_begin|>ping:3<|tool_call_argument_begin|> {} <|tool_call_end|>x", "x|ping{}");
    check("deepseek-r1",
          "<\xEF\xBD\x9Ctool\xE2\x96\x81"
          "call\xE2\x96\x81"
          "begin\xEF\xBD\x9C>ping<\xEF\xBD\x9Ctool\xE2\x96\x81sep\xEF\xBD\x9C>{}",
          "|ping{}"); /* V3.1's form */
    check("llama3", "<|python_tag|>brave_search.call(query=\"a\")",
          "<|python_tag|>brave_search.call(query=\"a\")"); /* not offered */
    check("llama3", "<|python_tag|>note.call(text=\"say \"a\", b\", on=\"1\")",
          "|note{\"text\": \"say \\\"a\\\", b\", \"on\": \"1\"}");
    check("llama3", "{\"name\": \"ping\", \"parameters\": {}}\n{\"name\": \"ping\", \"parameters\": {}} Done.",
          "Done.|ping{}|ping{}");
    check("mistral-args", "[TOOL_CALLS] get_weather [ARGS] {\"city\": \"[TOOL_CALLS]\"}[TOOL_CALLS]ping{}",
          "|get_weather{\"city\": \"[TOOL_CALLS]\"}|ping{}");
    check("gpt-oss", "<|channel|>analysis to=functions.ping code<|message|>{}<|call|>", "|ping{}");
    check("gpt-oss", "<|channel|>commentary to=python<|message|>print(1)<|call|>",
          "<|channel|>commentary to=python<|message|>print(1)");
    check("gpt-oss", "<|channel|>commentary to=functions.ping<|message|>{} and more<|call|>",
          "<|channel|>commentary to=functions.ping<|message|>{} and more<|call|>");
    check("command-r7b", "<|START_RESPONSE|>Hi.<|END_RESPONSE|>", "Hi.");
    check("granite3", "<tool_call>[{\"name\": \"ping\", \"arguments\": {}}]", "|ping{}");
}

/* Ids that the model wrote, and those that are made. */
static void check_id(const char *family, const char *text, const char *wanted) {
    hn_call_reader *r = reader(family, false);
    assert_true(hn_call_reader_feed(r, text, strlen(text), true));
    hn_call_answer a;
    hn_call_reader_get(r, &a);
    assert_int_equal(a.n_done, 1);
    if (strchr(wanted, '*'))
        assert_int_equal(strlen(a.call[0].id), strlen(wanted));
    else
        assert_string_equal(a.call[0].id, wanted);
    hn_call_reader_close(&r);
}

static void test_ids(void **state) {
    (void)state;
#define KIMI(id) "<|tool_call_begin|>" id "<|tool_call_argument_begin|>{}<|tool_call_end|>"
    check_id("kimi-k2", KIMI("functions.ping:12"), "functions.ping:12");
    check_id("kimi-k2", KIMI("functions_ping_3"), "functions.ping:4"); /* four calls came before */
    check_id("kimi-k2", KIMI("functionsping5"), "functions.ping:4");
    check_id("hermes", "<tool_call>{\"name\": \"ping\"}", "call_************************");
    check_id("mistral-args", "[TOOL_CALLS]ping{}", "*********");
    check_id("command-r7b", "<|START_ACTION|>[{\"tool_call_id\": \"7\", \"tool_name\": \"ping\", \"parameters\": {}}]",
             "7");
}

/* Depth is bounded, and a string without an end needs no more than its own memory and time. */
static void test_limits(void **state) {
    (void)state;
    enum { DEEP = 10000, LONG = 4 << 20 };
    static const char *const begins[][2] = {{"hermes", "<tool_call>{\"name\": \"note\", \"arguments\": {\"text\": "},
                                            {"qwen3-coder", "<function=types>\n<parameter=ref>\n"},
                                            {"gemma4", "<|tool_call>call:note{tags:"},
                                            {"llama-pythonic", "[note(tags="}};
    char *deep = hn_alloc(DEEP), *text = hn_alloc(LONG);
    memset(deep, '[', DEEP);
    memset(text, 'x', LONG);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        hn_call_reader *r = reader(begins[i][0], false);
        hn_call_answer a;
        assert_true(hn_call_reader_feed(r, begins[i][1], strlen(begins[i][1]), false));
        assert_true(hn_call_reader_feed(r, deep, DEEP, true));
        hn_call_reader_get(r, &a);
        assert_int_equal(a.n_done, 0);
        assert_int_equal(a.n_text, strlen(begins[i][1]) + DEEP);
        hn_call_reader_close(&r);
        r = reader(begins[i][0], false);
        assert_true(hn_call_reader_feed(r, begins[i][1], strlen(begins[i][1]), false));
        assert_true(hn_call_reader_feed(r, "\"", 1, false));
        for (size_t at = 0; at < LONG; at += 64) assert_true(hn_call_reader_feed(r, text + at, 64, false));
        assert_true(hn_call_reader_feed(r, NULL, 0, true));
        hn_call_reader_close(&r);
    }
    hn_free(deep);
    hn_free(text);
}

static void test_no_memory(void **state) {
    (void)state;
    static const char text[] =
        "Hm.<tool_call>{\"name\": \"ping\", \"arguments\": [}</tool_call> x <tool_call>{\"name\": \"note\", "
        "\"arguments\": {\"text\": \"a\"}, \"id\": \"b\"}</tool_call> y";
    int failed = 0;
    for (int64_t after = 0;; after++) {
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        hn_call_reader *r = reader("hermes", false);
        const bool ok = r && hn_call_reader_feed(r, text, sizeof text - 1, true);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        hn_call_reader_close(&r);
        failed += !ok;
        if (ok) break;
    }
    assert_in_range(failed, 5, 100);
}

static void test_json(void **state) {
    (void)state;
    static const char *const good[] = {
        "0",   "-1.5e+3", "[]", "{}", " {\"a\" : [true, false, null], \"b\": \"\\u00e9\\n\"} ", "\"\\ud83d\\ude00\"",
        "1E5", "[[[1]]]"};
    static const char *const bad[] = {"",
                                      "-",
                                      "01",
                                      "1.",
                                      "1e",
                                      "+1",
                                      "[1,]",
                                      "{\"a\":1,}",
                                      "{a:1}",
                                      "\"\n\"",
                                      "tru",
                                      "truex",
                                      "[1 2]",
                                      "]",
                                      "{\"a\" 1}",
                                      "\"\\x\"",
                                      "\"\\ude00\"",
                                      "\"\\ud83dx\"",
                                      "\"\\ud83d\\u0041\"",
                                      "1 2",
                                      "-x",
                                      "[1}",
                                      "[1!",
                                      "{\"a\": 1!",
                                      "1.e5"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!hn_json_is_value(good[i], strlen(good[i]))) fail_msg("%s is JSON", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hn_json_is_value(bad[i], strlen(bad[i]))) fail_msg("%s is no JSON", bad[i]);
}

static void test_tools(void **state) {
    (void)state;
    static const char *const bad[] = {"{}", "[{}]", "[{\"function\": {}}]", "[{\"name\": \"a\"}, {\"name\": \"a\"}]",
                                      "[{\"name\": \"a\", \"parameters\": 3}]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_tools t;
        hunch_error err = {0};
        json_t *list = json_loads(bad[i], 0, NULL);
        assert_int_equal(hn_tools_open(&t, list, "tools", &err), HUNCH_USAGE);
        assert_non_null(strstr(err.message, "tools"));
        json_decref(list);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_stays_text),
                                       cmocka_unit_test(test_broken_beside_whole),
                                       cmocka_unit_test(test_hermes),
                                       cmocka_unit_test(test_markup),
                                       cmocka_unit_test(test_gemma),
                                       cmocka_unit_test(test_python),
                                       cmocka_unit_test(test_other_families),
                                       cmocka_unit_test(test_ids),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_tools)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
