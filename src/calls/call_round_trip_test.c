/* SPDX-License-Identifier: Apache-2.0 */
/* call_round_trip_test.c - calls with random arguments, rendered by a family's own template and read back: the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"
#include "calls/calls_for_tests.h"
#include "text/jinja/template.h"

#define DEEPSEEK_END                                                                                                   \
    "<\xEF\xBD\x9C"                                                                                                    \
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"
static const struct {
    const char *file, *end; /* what ends the turn */
    bool one;               /* it renders one call */
    bool plain;             /* nothing in a value is escaped: values hold no marks */
} templates[] = {{"Qwen-Qwen2.5-7B-Instruct.jinja", "<|im_end|>", false, false},
                 {"Qwen-Qwen3-0.6B.jinja", "<|im_end|>", false, false},
                 {"Qwen-QwQ-32B.jinja", "<|im_end|>", false, false},
                 {"MiMo-VL.jinja", "<|im_end|>", false, false},
                 {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", "<|im_end|>", false, false},
                 {"ibm-granite-granite-4.0.jinja", "<|end_of_text|>", false, false},
                 {"Qwen3-Coder.jinja", "<|im_end|>", false, true},
                 {"Qwen3.5-4B.jinja", "<|im_end|>", false, true},
                 {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja", "<|im_end|>", false, true},
                 {"ByteDance-Seed-OSS.jinja", "<EOS>", false, true},
                 {"GLM-4.6.jinja", NULL, false, true},
                 {"GLM-4.7-Flash.jinja", NULL, false, true},
                 {"MiniMax-M2.jinja", "[e~[", false, true},
                 {"deepseek-ai-DeepSeek-V3.2.jinja", DEEPSEEK_END, false, true},
                 {"deepseek-ai-DeepSeek-V4.jinja", DEEPSEEK_END, false, true},
                 {"deepseek-ai-DeepSeek-V3.1.jinja", DEEPSEEK_END, false, false},
                 {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", DEEPSEEK_END, false, false},
                 {"Kimi-K2-Instruct.jinja", "<|im_end|>", false, false},
                 {"Kimi-K2-Thinking.jinja", "<|im_end|>", false, false},
                 {"mistralai-Mistral-Nemo-Instruct-2407.jinja", "<EOS>", false, false},
                 {"Mistral-Small-3.2-24B-Instruct-2506.jinja", "<EOS>", false, false},
                 {"mistralai-Ministral-3-14B-Reasoning-2512.jinja", "<EOS>", false, false},
                 {"meta-llama-Llama-3.1-8B-Instruct.jinja", "<|eot_id|>", true, false},
                 {"meta-llama-Llama-3.2-3B-Instruct.jinja", "<|eot_id|>", true, false},
                 {"meta-llama-Llama-3.3-70B-Instruct.jinja", "<|eot_id|>", true, false},
                 {"google-gemma-4-31B-it.jinja", "<turn|>", false, true},
                 {"openai-gpt-oss-120b.jinja", NULL, true, false},
                 {"CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja", "<|END_OF_TURN_TOKEN|>", false, false},
                 {"meetkai-functionary-medium-v3.2.jinja", "<|eot_id|>", false, false},
                 {"openbmb-MiniCPM5-1B.jinja", "<|im_end|>", false, true}};
enum { TEMPLATES = sizeof templates / sizeof *templates };

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

/* ---- random calls ------------------------------------------------------------------------------------------------------ */

static json_t *some_string(uint64_t *rng, bool plain) {
    static const char *const pieces[] = {"a",    "B c", "\"",    "'", "\\",     "\n",     "\t",  "{",   "}",
                                         "[",    "]",   ":",     ",", "Zürich", "日本 ☕", "007", " ",   "True",
                                         "null", "&",   "x < y", "=", ">>> ",   "`",      "%",   "\\n", "e\xCC\x81"};
    static const char *const marks[] = {"</tool_call>", "<tool_call>",  "```",    "<think>",
                                        "</think>",     "[TOOL_CALLS]", "[ARGS]", ">>>all\n"};
    char text[400] = "";
    for (size_t n = hn_splitmix(rng) % 7; n > 0; n--) {
        const uint64_t k = hn_splitmix(rng);
        const bool mark = !plain && k % 5 == 0;
        strcat(text,
               mark ? marks[k / 8 % (sizeof marks / sizeof *marks)] : pieces[k / 8 % (sizeof pieces / sizeof *pieces)]);
    }
    return json_string(text);
}

static json_t *some_number(uint64_t *rng) {
    static const double reals[] = {0.25, -1.5, 2.5e-7, 1e22, 3.25};
    const uint64_t k = hn_splitmix(rng);
    return k % 2 ? json_real(reals[k / 2 % 5]) : json_integer((json_int_t)(k >> 9) * (k % 3 ? 1 : -1));
}

/* A whole number beyond 64 bits. */
static json_t *some_digits(uint64_t *rng) {
    char digits[48];
    size_t n = 0;
    if (hn_splitmix(rng) % 2) digits[n++] = '-';
    digits[n++] = '9';
    for (uint64_t more = 19 + hn_splitmix(rng) % 20; more > 0; more--) digits[n++] = (char)('0' + hn_splitmix(rng) % 10);
    return hn_json_big(digits, n);
}

static json_t *some_items(uint64_t *rng, bool plain) {
    json_t *list = json_array();
    for (size_t n = hn_splitmix(rng) % 3; n > 0; n--)
        json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "id", (int)n, "name", some_string(rng, plain), "price",
                                              some_number(rng)));
    return list;
}

static json_t *some_grid(uint64_t *rng) {
    json_t *list = json_array();
    for (size_t n = hn_splitmix(rng) % 3; n > 0; n--)
        json_array_append_new(list, n % 2 ? json_array() : json_pack("[i,i]", (int)(hn_splitmix(rng) % 9), -4));
    return list;
}

static json_t *some_arguments(uint64_t *rng, const char **name, bool plain) {
    static const char *const names[] = {"get_weather", "note", "store", "ping"};
    const uint64_t k = hn_splitmix(rng);
    json_t *args = json_object();
    *name = names[k % 4];
    if (k % 4 == 0) json_object_set_new(args, "city", some_string(rng, plain));
    if (k % 4 == 0 && k & 8) json_object_set_new(args, "days", json_integer((json_int_t)(k >> 20 & 63) - 30));
    if (k % 4 == 1) {
        json_object_set_new(args, "text", some_string(rng, plain));
        if (k & 8)
            json_object_set_new(args, "tags", json_pack("[o,o]", some_string(rng, plain), some_string(rng, plain)));
        json_t *z = k & 32 ? json_null() : some_string(rng, plain);
        if (k & 16) json_object_set_new(args, "opt", json_pack("{s:o, s:O}", "a", some_number(rng), "z", z));
        json_decref(z);
        if (k & 64) json_object_set_new(args, "on", json_boolean(k & 128));
    }
    if (k % 4 == 2) {
        json_object_set_new(args, "code", some_string(rng, plain));
        if (k & 8) json_object_set_new(args, "items", some_items(rng, plain));
        if (k & 16) json_object_set_new(args, "grid", some_grid(rng));
        if (k & 32) json_object_set_new(args, "big", k & 128 ? some_digits(rng) : json_integer((json_int_t)(k >> 1)));
        if (k & 64) json_object_set_new(args, "ratio", some_number(rng));
    }
    return args;
}

/* ---- rendering --------------------------------------------------------------------------------------------------------- */

static char *rendered(const hn_template *t, json_t *messages, bool add) {
    hunch_error err = {0};
    char *text = NULL;
    size_t len;
    json_t *vars =
        json_pack("{s:O, s:O, s:b, s:s, s:s, s:b}", "messages", messages, "tools", tools.json, "add_generation_prompt",
                  add, "bos_token", "<BOS>", "eos_token", "<EOS>", "enable_thinking", 0);
    if (hn_template_render(t, vars, "2026-01-02 03:04:05", &text, &len, &err)) fail_msg("%s", err.message);
    json_decref(vars);
    return text;
}

/* The answer's text: what the conversation with the answer has behind that without it. */
static char *answer_text(const hn_template *t, json_t *calls, const char *end, const char *content,
                         hn_call_options *o) {
    json_t *user = json_pack("[{s:s, s:s}]", "role", "user", "content", "Do it.");
    char *before = rendered(t, user, true);
    json_array_append_new(user,
                          json_pack("{s:s, s:s?, s:O}", "role", "assistant", "content", content, "tool_calls", calls));
    char *all = rendered(t, user, false);
    size_t n = 0;
    while (before[n] && before[n] == all[n]) n++;
    while (before[n] && n && !strchr("\n>]", before[n - 1])) n--; /* not inside a mark */
    before[n] = 0;
    o->thinks = ends_in(before, o->think_begin);
    char *stop = end ? strstr(all + n, end) : NULL, *last;
    for (last = stop; last; last = strstr(last + 1, end)) stop = last; /* the last one: strings may hold it */
    char *text = hn_strndup(all + n, stop ? (size_t)(stop - all) - n : strlen(all + n));
    hn_free(before);
    hn_free(all);
    json_decref(user);
    return text;
}

static json_t *calls_for_template(const json_t *calls, bool as_text) {
    json_t *list = json_array();
    size_t i;
    const json_t *one;
    json_array_foreach(calls, i, one) {
        char id[16];
        snprintf(id, sizeof id, "call%05u", (unsigned)i % 100000u);
        char *text = hn_json_dump(json_object_get(one, "arguments"), 0);
        json_t *args = as_text ? json_string(text) : json_incref(json_object_get(one, "arguments"));
        json_array_append_new(list, json_pack("{s:s, s:s, s:{s:O, s:o}}", "type", "function", "id", id, "function",
                                              "name", json_object_get(one, "name"), "arguments", args));
        hn_free(text);
    }
    return list;
}

static void round_trip(int which, const hn_template *t, const hn_call_family *f, uint64_t *rng) {
    json_t *calls = json_array();
    for (size_t n = templates[which].one ? 1 : 1 + hn_splitmix(rng) % 3; n > 0; n--) {
        const char *name;
        json_t *args = some_arguments(rng, &name, templates[which].plain);
        json_array_append_new(calls, json_pack("{s:s, s:o}", "name", name, "arguments", args));
    }
    json_t *given = calls_for_template(calls, strstr(templates[which].file, "functionary") != NULL);
    hn_call_options o = options_of(templates[which].file);
    char *text = answer_text(t, given, templates[which].end, "", &o);
    hn_call_reader *r = hn_call_reader_open(f, &tools, &o);
    for (size_t at = 0, len = strlen(text); at < len;) {
        const size_t n = 1 + hn_splitmix(rng) % 40, left = len - at;
        assert_true(hn_call_reader_feed(r, text + at, n < left ? n : left, false));
        at += n;
    }
    assert_true(hn_call_reader_feed(r, NULL, 0, true));
    hn_call_answer a;
    hn_call_reader_get(r, &a);
    json_t *read = calls_json(&a);
    if (!json_equal(read, calls)) {
        char *is = hn_json_dump(read, 0), *was = hn_json_dump(calls, 0);
        fail_msg("%s: %s became %s by '%s'", templates[which].file, was, is, text);
    }
    assert_int_equal(a.n_broken, 0);
    hn_call_reader_close(&r);
    json_decref(read);
    json_decref(given);
    json_decref(calls);
    hn_free(text);
}

static void test_round_trips(void **state) {
    (void)state;
    uint64_t rng = 20261126;
    for (int i = 0; i < TEMPLATES; i++) {
        size_t len;
        char *text = template_text(templates[i].file, &len);
        hn_template *t = NULL;
        hunch_error err = {0};
        const hn_call_family *f = hn_call_family_of(text, len);
        assert_non_null(f);
        assert_int_equal(hn_template_parse(&t, text, len, &err), HUNCH_OK);
        for (int k = 0; k < 40; k++) round_trip(i, t, f, &rng);
        hn_template_free(t);
        hn_free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
