/* SPDX-License-Identifier: Apache-2.0 */
/* serve_tools_test.c - calls of tools in whole answers and in streams, as OpenAI's protocol has them, from texts that a model may write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "fixture.h"
#include "server/serve_answer.h"
#include "server/serve_protocol.h"
#include "server/serve_tools.h"

static hunch_model *model;
static char *hermes;

static const char offered[] =
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"look\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"city\": "
    "{\"type\": \"string\"}}}}}, {\"type\": \"function\", \"function\": {\"name\": \"ping\"}}]";

static json_t *body_of(const char *more) {
    char text[1000];
    snprintf(text, sizeof text, "{%s%s}", offered, more);
    json_t *body = json_loads(text, 0, NULL);
    assert_non_null(body);
    return body;
}

/* A call with one choice, whose session is played by the test. */
static serve_call *call_open(const serve_server *s, const char *more) {
    serve_error err;
    json_t *body = body_of(more);
    serve_call *c = serve_call_new();
    c->chat = true;
    c->model = model;
    c->prompts = hn_zalloc(1, sizeof *c->prompts);
    c->n_prompts = 1;
    if (!serve_tools_read(s, c, model, body, &err)) fail_msg("%s", err.message);
    serve_call_choices(c);
    assert_true(serve_tools_begin(&c->choices[0]));
    json_decref(body);
    return c;
}

static void say(serve_call *c, const char *text, size_t n, bool done, hunch_finish finish) {
    serve_choice *one = &c->choices[0];
    assert_true(serve_bytes_add(&one->text, text, n));
    assert_true(serve_parts_grow(&one->parts, model, one->text.at, one->text.n, done));
    one->done = done;
    one->state.finish = finish;
    one->state.stop_string = one->state.stop_token = -1;
    if (done) c->left = 0;
}

/* What a client makes of events. */
typedef struct heard {
    char text[400], thinking[400], finish[20], name[4][20], id[4][40], arguments[4][200];
    int calls, names_late;
} heard;

static void append(char *to, size_t cap, const json_t *text) {
    if (json_is_string(text)) strncat(to, json_string_value(text), cap - strlen(to) - 1);
}

static void hear(heard *h, const json_t *event) {
    const json_t *choice = json_array_get(json_object_get(event, "choices"), 0),
                 *delta = json_object_get(choice, "delta"), *call;
    size_t i;
    append(h->text, sizeof h->text, json_object_get(delta, "content"));
    append(h->thinking, sizeof h->thinking, json_object_get(delta, "reasoning_content"));
    append(h->finish, sizeof h->finish, json_object_get(choice, "finish_reason"));
    const json_t *calls = json_object_get(delta, "tool_calls");
    json_array_foreach(calls, i, call) {
        const int k = (int)json_integer_value(json_object_get(call, "index"));
        const json_t *function = json_object_get(call, "function");
        assert_in_range(k, 0, 3);
        h->names_late += json_object_get(function, "name") && (h->name[k][0] || h->arguments[k][0]);
        append(h->name[k], sizeof h->name[k], json_object_get(function, "name"));
        append(h->id[k], sizeof h->id[k], json_object_get(call, "id"));
        append(h->arguments[k], sizeof h->arguments[k], json_object_get(function, "arguments"));
        if (k >= h->calls) h->calls = k + 1;
    }
}

static void hear_all(heard *h, const serve_server *s, serve_call *c) {
    serve_bytes out = {0};
    serve_stream_next(&serve_openai, s, c, &out);
    assert_true(serve_bytes_add(&out, "", 1)); /* a text */
    for (char *at = out.n ? strstr(out.at, "data: {") : NULL; at; at = strstr(at + 1, "data: {")) {
        json_t *event = json_loads(at + 6, JSON_DISABLE_EOF_CHECK, NULL);
        if (!event) fail_msg("no event: %s", at);
        hear(h, event);
        json_decref(event);
    }
    serve_bytes_free(&out);
}

static const char said[] = "<think>\nHm.\n</think>\nLet me see.\n<tool_call>\n{\"name\": \"look\", \"arguments\": "
                           "{\"city\": \"Z\xC3\xBCrich\"}}\n"
                           "</tool_call>\n<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>";

/* A round gives `step` bytes, but whole characters. */
static void stream(const serve_server *s, size_t step, heard *h) {
    serve_call *c = call_open(s, "");
    c->stream = true;
    memset(h, 0, sizeof *h);
    for (size_t at = 0, n; at < strlen(said); at += n) {
        n = step < strlen(said) - at ? step : strlen(said) - at;
        while (((unsigned char)said[at + n] & 0xC0) == 0x80) n++;
        say(c, said + at, n, false, HUNCH_RUNNING);
        hear_all(h, s, c);
    }
    say(c, "", 0, true, HUNCH_FINISH_STOP);
    hear_all(h, s, c);
    serve_call_release(c);
}

static void test_streams(void **state) {
    (void)state;
    const serve_settings settings = {.model_name = "m", .template_text = hermes};
    const serve_server s = {.settings = &settings};
    for (size_t step = 1; step < sizeof said; step += 1 + step / 3) {
        heard h;
        stream(&s, step, &h);
        assert_string_equal(h.text, "Let me see.");
        assert_string_equal(h.thinking, "Hm.");
        assert_string_equal(h.finish, "tool_calls");
        assert_int_equal(h.calls, 2);
        assert_int_equal(h.names_late, 0); /* the name is first, and once */
        assert_string_equal(h.name[0], "look");
        assert_string_equal(h.arguments[0], "{\"city\": \"Z\xC3\xBCrich\"}");
        assert_string_equal(h.name[1], "ping");
        assert_string_equal(h.arguments[1], "{}");
        assert_true(strncmp(h.id[0], "call_", 5) == 0 && strlen(h.id[0]) == 29 && strcmp(h.id[0], h.id[1]) != 0);
    }
}

static json_t *whole(const serve_server *s, const char *more, const char *text, hunch_finish finish) {
    serve_call *c = call_open(s, more);
    say(c, text, strlen(text), true, finish);
    json_t *reply = serve_answer_json(s, c);
    serve_call_release(c);
    return reply;
}

static void check_whole(const json_t *reply, const char *finish, const char *content, const char *names) {
    const json_t *choice = json_array_get(json_object_get(reply, "choices"), 0),
                 *message = json_object_get(choice, "message"), *call;
    char all[100] = "";
    size_t i;
    assert_string_equal(json_string_value(json_object_get(choice, "finish_reason")), finish);
    if (content)
        assert_string_equal(json_string_value(json_object_get(message, "content")), content);
    else
        assert_true(json_is_null(json_object_get(message, "content")));
    const json_t *calls = json_object_get(message, "tool_calls");
    json_array_foreach(calls, i, call) {
        const json_t *function = json_object_get(call, "function");
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s ",
                 json_string_value(json_object_get(function, "name")),
                 json_string_value(json_object_get(function, "arguments")));
    }
    assert_string_equal(all, names);
}

static void test_whole_answers(void **state) {
    (void)state;
    const serve_settings settings = {.model_name = "m", .template_text = hermes};
    const serve_server s = {.settings = &settings};
    const struct {
        const char *more, *text;
        hunch_finish finish;
        const char *reason, *content, *names;
    } cases[] = {
        {"", said, HUNCH_FINISH_STOP, "tool_calls", "Let me see.", "look{\"city\": \"Z\xC3\xBCrich\"} ping{} "},
        {", \"parallel_tool_calls\": false", said, HUNCH_FINISH_STOP, "tool_calls", "Let me see.",
         "look{\"city\": \"Z\xC3\xBCrich\"} "},
        {"", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>", HUNCH_FINISH_STOP, "tool_calls", NULL,
         "ping{} "},
        {"", "<tool_call>{\"name\": \"ping\", \"argu", HUNCH_FINISH_LENGTH, "length",
         "<tool_call>{\"name\": \"ping\", \"argu", ""},
        {"", "Nothing.", HUNCH_FINISH_STOP, "stop", "Nothing.", ""},
        {", \"tool_choice\": \"none\"", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>",
         HUNCH_FINISH_STOP, "stop", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *reply = whole(&s, cases[i].more, cases[i].text, cases[i].finish);
        check_whole(reply, cases[i].reason, cases[i].content, cases[i].names);
        json_decref(reply);
    }
}

static void test_refusals(void **state) {
    (void)state;
    const serve_settings settings = {.model_name = "m", .template_text = hermes};
    const serve_server s = {.settings = &settings};
    static const char *const bad[] = {
        ", \"tool_choice\": \"perhaps\"", ", \"tool_choice\": {\"type\": \"function\"}",
        ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"nobody\"}}",
        ", \"parallel_tool_calls\": 3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        serve_error err = {0};
        json_t *body = body_of(bad[i]);
        serve_call *c = serve_call_new();
        assert_false(serve_tools_read(&s, c, model, body, &err));
        assert_int_equal(err.http, 400);
        serve_call_release(c);
        json_decref(body);
    }
}

static int setup(void **state) {
    (void)state;
    size_t len;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    must(hn_file_read(HUNCH_TEST_TEMPLATES "/Qwen-Qwen3-0.6B.jinja", 1 << 20, &hermes, &len, err));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_free(hermes);
    hunch_model_close(&model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_streams), cmocka_unit_test(test_whole_answers),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
