/* SPDX-License-Identifier: Apache-2.0 */
/* serve_tools_test.c - calls of tools in whole answers and in streams, as OpenAI's protocol has them, from texts that a model may write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json_load.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "fixture.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_openai.h"
#include "server/protocols/serve_protocol.h"
#include "server/serve_tools.h"

static hunch_model *model;
static char *hermes;

static const char offered[] =
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"look\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"city\": "
    "{\"type\": \"string\"}}}}}, {\"type\": \"function\", \"function\": {\"name\": \"ping\"}}]";

static json_t *body_of(const char *more) {
    char text[1000];
    snprintf(text, sizeof text, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], %s%s}", offered, more);
    json_t *body = json_loads(text, 0, NULL);
    assert_non_null(body);
    return body;
}

static bool tools_read(const serve_server *s, serve_call *c, const json_t *body, serve_error *err) {
    const serve_view v = {.body = body};
    serve_wanted w = {0};
    const bool ok = serve_openai_chat(&w, &v, err) && serve_tools_read(s, c, model, &v, &w, err);
    serve_wanted_free(&w);
    return ok;
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
    if (!tools_read(s, c, body, &err)) fail_msg("%s", err.message);
    serve_call_choices(c);
    assert_true(serve_tools_begin(&c->choices[0]));
    json_decref(body);
    return c;
}

static void say(serve_call *c, const char *text, size_t n, bool done, hunch_finish finish) {
    serve_choice *one = &c->choices[0];
    assert_true(serve_bytes_add(&one->text, text, n));
    assert_true(serve_parts_grow(&one->parts, model, one->text.at, one->text.n, done,
                                 finish == HUNCH_FINISH_LENGTH || finish == HUNCH_FINISH_GRAMMAR));
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
         "", ""},
        {"", "Well.\n<tool_call>{\"name\": \"look\", \"arguments\": {\"city\": \"Par", HUNCH_FINISH_LENGTH, "length", "Well.",
         "look{\"city\": \"Par "},
        {"", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call><tool_call>{\"name\": \"look\", \"arguments\": {\"ci",
         HUNCH_FINISH_LENGTH, "length", NULL, "ping{} look{\"ci "},
        {"", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>\n<tool_call>{\"na", HUNCH_FINISH_LENGTH, "length",
         NULL, "ping{} "},
        {"", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}\n</tool", HUNCH_FINISH_LENGTH, "tool_calls", NULL, "ping{} "},
        {", \"tool_choice\": \"required\"", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>\n<tool_",
         HUNCH_FINISH_LENGTH, "length", NULL, "ping{} "},
        {"", "<tool_call>{\"name\": \"look\", \"arguments\": {\"ci", HUNCH_FINISH_STOP, "stop",
         "<tool_call>{\"name\": \"look\", \"arguments\": {\"ci", ""},
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
        assert_false(tools_read(&s, c, body, &err));
        assert_int_equal(err.http, 400);
        serve_call_release(c);
        json_decref(body);
    }
}

/* ---- whole and streamed ------------------------------------------------------------------------------------------ */

/* What a client of a protocol makes of an answer: its thinking and its text each together, and its calls. */
typedef struct understood {
    char thinking[4000], text[4000], finish[40];
    struct {
        char id[40], name[20], arguments[600];
        bool ended;
    } call[8];
    int calls, blocks;
} understood;

static void text_to(char *to, size_t cap, const json_t *text) {
    const size_t n = strlen(to);
    if (json_is_string(text)) snprintf(to + n, cap - n, "%s", json_string_value(text));
}

/* A call as it begins or is whole; arguments: text or an object. */
static void call_to(understood *u, const json_t *id, const json_t *name, const json_t *arguments) {
    assert_in_range(u->calls, 0, 7);
    text_to(u->call[u->calls].id, sizeof u->call[0].id, id);
    text_to(u->call[u->calls].name, sizeof u->call[0].name, name);
    if (json_is_object(arguments)) {
        char *text = hn_json_dump(arguments, 0);
        json_t *value = json_string(text);
        text_to(u->call[u->calls].arguments, sizeof u->call[0].arguments, value);
        json_decref(value);
        hn_free(text);
    } else text_to(u->call[u->calls].arguments, sizeof u->call[0].arguments, arguments);
    u->calls++;
}

#define AT(value, key) json_object_get(value, key)
static void openai_understand(understood *u, const json_t *choice, const json_t *message) {
    const json_t *call;
    size_t i;
    text_to(u->thinking, sizeof u->thinking, AT(message, "reasoning_content"));
    text_to(u->text, sizeof u->text, AT(message, "content"));
    text_to(u->finish, sizeof u->finish, AT(choice, "finish_reason"));
    const json_t *calls = AT(message, "tool_calls");
    json_array_foreach(calls, i, call) {
        const json_t *function = AT(call, "function");
        if (AT(call, "id")) call_to(u, AT(call, "id"), AT(function, "name"), AT(function, "arguments"));
        else text_to(u->call[json_integer_value(AT(call, "index"))].arguments, sizeof u->call[0].arguments, AT(function, "arguments"));
    }
}

static void anthropic_block(understood *u, const json_t *block) {
    const char *type = json_string_value(AT(block, "type"));
    u->blocks++;
    text_to(u->thinking, sizeof u->thinking, AT(block, "thinking"));
    text_to(u->text, sizeof u->text, AT(block, "text"));
    if (strcmp(type, "tool_use") == 0)
        call_to(u, AT(block, "id"), AT(block, "name"),
                json_object_size(AT(block, "input")) ? AT(block, "input") : NULL);
}

static void anthropic_event(understood *u, const json_t *e) {
    const char *type = json_string_value(AT(e, "type"));
    const json_t *delta = AT(e, "delta");
    if (strcmp(type, "content_block_start") == 0) {
        assert_int_equal(json_integer_value(AT(e, "index")), u->blocks);
        anthropic_block(u, AT(e, "content_block"));
    }
    if (strcmp(type, "content_block_delta") == 0) {
        assert_int_equal(json_integer_value(AT(e, "index")), u->blocks - 1);
        text_to(u->thinking, sizeof u->thinking, AT(delta, "thinking"));
        text_to(u->text, sizeof u->text, AT(delta, "text"));
        if (AT(delta, "partial_json")) text_to(u->call[u->calls - 1].arguments, sizeof u->call[0].arguments, AT(delta, "partial_json"));
    }
    if (strcmp(type, "message_delta") == 0) text_to(u->finish, sizeof u->finish, AT(delta, "stop_reason"));
}

static void responses_item(understood *u, const json_t *item) {
    const char *type = json_string_value(AT(item, "type"));
    const json_t *part = json_array_get(AT(item, "content"), 0);
    u->blocks++;
    if (strcmp(type, "reasoning") == 0) text_to(u->thinking, sizeof u->thinking, AT(part, "text"));
    if (strcmp(type, "message") == 0) text_to(u->text, sizeof u->text, AT(part, "text"));
    if (strcmp(type, "function_call") == 0) call_to(u, AT(item, "call_id"), AT(item, "name"), AT(item, "arguments"));
}

static void responses_whole(understood *u, const json_t *response) {
    const json_t *item;
    size_t i;
    json_array_foreach(AT(response, "output"), i, item) responses_item(u, item);
    text_to(u->finish, sizeof u->finish, AT(response, "status"));
}

/* Deltas are what the items at their ends have. */
static void responses_event(understood *u, understood *items, const json_t *e) {
    const char *type = json_string_value(AT(e, "type"));
    const json_t *item = AT(e, "item");
    if (strcmp(type, "response.output_item.added") == 0 && strcmp(json_string_value(AT(item, "type")), "function_call") == 0)
        call_to(u, AT(item, "call_id"), AT(item, "name"), NULL);
    if (strcmp(type, "response.output_text.delta") == 0) text_to(u->text, sizeof u->text, AT(e, "delta"));
    if (strcmp(type, "response.reasoning_text.delta") == 0) text_to(u->thinking, sizeof u->thinking, AT(e, "delta"));
    if (strcmp(type, "response.function_call_arguments.delta") == 0)
        text_to(u->call[u->calls - 1].arguments, sizeof u->call[0].arguments, AT(e, "delta"));
    if (strcmp(type, "response.output_item.done") == 0) responses_item(items, item);
    if (AT(e, "response") && AT(AT(e, "response"), "completed_at") && strcmp(type, "response.created") != 0 &&
        strcmp(type, "response.in_progress") != 0) {
        static understood whole;
        memset(&whole, 0, sizeof whole);
        responses_whole(&whole, AT(e, "response"));
        text_to(u->finish, sizeof u->finish, AT(AT(e, "response"), "status"));
        assert_string_equal(whole.text, items->text);
        assert_int_equal(whole.calls, items->calls);
    }
}

static void ollama_line(understood *u, const json_t *line) {
    const json_t *message = AT(line, "message"), *call;
    size_t i;
    text_to(u->thinking, sizeof u->thinking, AT(message, "thinking"));
    text_to(u->text, sizeof u->text, AT(message, "content"));
    text_to(u->finish, sizeof u->finish, AT(line, "done_reason"));
    const json_t *calls = AT(message, "tool_calls");
    json_array_foreach(calls, i, call)
        call_to(u, AT(call, "id"), AT(AT(call, "function"), "name"), AT(AT(call, "function"), "arguments"));
}

static const serve_protocol *const protocols[] = {&serve_openai, &serve_anthropic, &serve_responses_protocol, &serve_ollama};
enum { PROTOCOLS = sizeof protocols / sizeof *protocols };

static void stream_understand(int which, understood *u, understood *items, const serve_bytes *out) {
    for (const char *at = out->n ? out->at : NULL; at && (at = which == 3 ? strchr(at, '{') : strstr(at, "data: {")); at++) {
        const char *begin = at + (which == 3 ? 0 : 6);
        json_t *e = hn_json_load(begin, strcspn(begin, "\n"), 0, NULL);
        if (!e) fail_msg("no event: %s", at);
        const json_t *choice = json_array_get(AT(e, "choices"), 0);
        if (which == 0) openai_understand(u, choice, AT(choice, "delta"));
        if (which == 1) anthropic_event(u, e);
        if (which == 2) responses_event(u, items, e);
        if (which == 3) ollama_line(u, e);
        json_decref(e);
        if (!(at = strchr(at, '\n'))) break;
    }
}

static const char *more_of = ""; /* of the body */
static serve_call *call_of(const serve_server *s) {
    serve_call *c = call_open(s, more_of);
    c->asked = json_object();
    c->said = json_array();
    snprintf(c->id, sizeof c->id, "x_1");
    return c;
}

static void whole_understand(const serve_server *s, int which, const char *text, hunch_finish finish, understood *u) {
    serve_call *c = call_of(s);
    say(c, text, strlen(text), true, finish);
    json_t *all = protocols[which]->whole(s, c), *block;
    const json_t *choice = json_array_get(AT(all, "choices"), 0);
    size_t i;
    if (which == 0) openai_understand(u, choice, AT(choice, "message"));
    if (which == 1) {
        json_array_foreach(AT(all, "content"), i, block) anthropic_block(u, block);
        text_to(u->finish, sizeof u->finish, AT(all, "stop_reason"));
    }
    if (which == 2) responses_whole(u, all);
    if (which == 3) ollama_line(u, all);
    json_decref(all);
    serve_call_release(c);
}

static void streamed_understand(const serve_server *s, int which, const char *text, hunch_finish finish, unsigned step, understood *u) {
    serve_call *c = call_of(s);
    static understood items;
    memset(&items, 0, sizeof items);
    c->stream = true;
    for (size_t at = 0, n; at <= strlen(text); at += n) {
        serve_bytes out = {0};
        n = step ? 1 + (at * 7 + step) % step : strlen(text) + 1;
        while (at + n <= strlen(text) && ((unsigned char)text[at + n] & 0xC0) == 0x80) n++; /* a round gives whole characters */
        const bool last = at + n > strlen(text);
        if (last) n = strlen(text) - at + 1;
        say(c, text + at, last ? n - 1 : n, last, last ? finish : HUNCH_RUNNING);
        serve_stream_next(protocols[which], s, c, &out);
        assert_true(serve_bytes_add(&out, "", 1));
        stream_understand(which, u, &items, &out);
        serve_bytes_free(&out);
    }
    if (which == 2) {
        assert_string_equal(u->text, items.text);
        assert_string_equal(u->thinking, items.thinking);
        for (int i = 0; i < u->calls; i++) {
            assert_string_equal(u->call[i].id, items.call[i].id);
            assert_string_equal(u->call[i].arguments, items.call[i].arguments);
        }
    }
    serve_call_release(c);
}

/* The object of a call's arguments as its protocol has it: whole answers of two have what can be read of a cut one. */
static void same_arguments(const char *whole, const char *streamed, bool objects) {
    json_t *a = hn_json_load(whole, strlen(whole), 0, NULL), *b = hn_json_load(streamed, strlen(streamed), 0, NULL);
    if (a && b) assert_true(json_equal(a, b));
    else if (!objects) assert_string_equal(whole, streamed);
    json_decref(a);
    json_decref(b);
}

static void same(const understood *w, const understood *t, bool objects) {
    assert_string_equal(w->thinking, t->thinking);
    assert_string_equal(w->text, t->text);
    assert_string_equal(w->finish, t->finish);
    assert_int_equal(w->calls, t->calls);
    for (int i = 0; i < w->calls; i++) {
        for (int k = 0; k < i; k++) assert_true(strcmp(w->call[i].id, w->call[k].id) != 0 && strcmp(t->call[i].id, t->call[k].id) != 0);
        assert_string_equal(w->call[i].name, t->call[i].name);
        same_arguments(w->call[i].arguments, t->call[i].arguments, objects);
    }
}

/* What whole answers of two protocols have of arguments that a limit cut. */
static void test_what_can_be_read(void **state) {
    (void)state;
    const serve_settings settings = {.model_name = "m", .template_text = hermes};
    const serve_server s = {.settings = &settings};
    char name[600];
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = 0;
    const struct {
        const char *arguments, *more, *wanted;
    } cases[] = {{"{\"city\": \"Par", "", "{\"city\": \"Par\"}"},
                 {"{\"city\": \"Par\\u00", "", "{\"city\": \"Par\"}"},
                 {"{\"city\": \"\\ud83d\\ude", "", "{\"city\": \"\"}"},
                 {"{\"n\": 12", "", "{}"}, /* it may be 123 */
                 {"{\"a\": [1, -2.5e", "", "{\"a\": [1]}"},
                 {"{\"a\": true", "", "{\"a\": true}"},
                 {"{\"a\": tru", "", "{}"},
                 {"{\"a\": 1, \"b\": {\"c\": null, \"d\"", "", "{\"a\": 1, \"b\": {\"c\": null}}"},
                 {"{\"a\": 1, \"", name, "{\"a\": 1}"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1000];
        snprintf(text, sizeof text, "<tool_call>{\"name\": \"look\", \"arguments\": %s%s", cases[i].arguments, cases[i].more);
        serve_call *c = call_of(&s);
        say(c, text, strlen(text), true, HUNCH_FINISH_LENGTH);
        json_t *all = serve_anthropic.whole(&s, c), *wanted = json_loads(cases[i].wanted, 0, NULL);
        const json_t *input = AT(json_array_get(AT(all, "content"), 0), "input");
        if (!json_equal(input, wanted)) fail_msg("%s is %s", cases[i].arguments, json_dumps(input, 0));
        json_decref(wanted);
        json_decref(all);
        serve_call_release(c);
    }
}

static uint32_t drawn;
static uint32_t draw(uint32_t n) { return (drawn = drawn * 1664525u + 1013904223u) / 65536 % n; }

/* Thinking, text and up to five calls, in any order, cut anywhere. */
static void answer_make(char *to, size_t cap) {
    static const char *const texts[] = {"Let me see. ",        "\n", "Z\xC3\xBCrich, ", "a < b, ",
                                        "{\"no\": \"call\"} ", "  ", "<tool ",          "</think "};
    static const char *const cities[] = {"Paris", "London", "Z\xC3\xBCrich", "a\\\"b\\n", "{[", "</tool_call"};
    const int parts = 1 + (int)draw(7);
    int calls = 0;
    size_t n = 0;
    to[0] = 0;
    if (draw(3) == 0) n += (size_t)snprintf(to, cap, "<think>\nSo %s\n</think>\n", texts[draw(4)]);
    for (int i = 0; i < parts; i++) {
        if (draw(2) && calls < 5) {
            if (draw(4))
                n += (size_t)snprintf(
                    to + n, cap - n,
                    "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"%s\", \"n\": %s}}\n</tool_call>\n",
                    cities[draw(5)], draw(3) ? "7" : "18446744073709551615");
            else n += (size_t)snprintf(to + n, cap - n, "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>");
            calls++;
        } else n += (size_t)snprintf(to + n, cap - n, "%s", texts[draw(8)]);
    }
    if (n && draw(2)) to[n = draw((uint32_t)n)] = 0;
    while (n && ((unsigned char)to[n - 1] & 0x80)) to[--n] = 0;
}

/* What a protocol says of an answer that ended at a limit, of tokens or of a grammar's states; calls may have been complete by then. */
static void limit_check(int which, const char *finish, int calls) {
    static const char *const words[] = {"length", "max_tokens", "incomplete", "length"};
    static const char *const called[] = {"tool_calls", "tool_use", "", ""};
    if (strcmp(finish, words[which]) != 0 && !(calls && strcmp(finish, called[which]) == 0))
        fail_msg("protocol %d: %s", which, finish);
}

static void test_whole_and_streamed(void **state) {
    (void)state;
    const serve_settings settings = {.model_name = "m", .template_text = hermes};
    const serve_server s = {.settings = &settings};
    int many = 0, cut = 0;
    drawn = 1;
    for (int round = 0; round < 400; round++) {
        char text[2000];
        static understood whole_of[PROTOCOLS];
        memset(whole_of, 0, sizeof whole_of);
        answer_make(text, sizeof text);
        static const hunch_finish ends[] = {HUNCH_FINISH_STOP, HUNCH_FINISH_LENGTH, HUNCH_FINISH_STOP,
                                            HUNCH_FINISH_GRAMMAR};
        const hunch_finish finish = ends[draw(4)];
        const bool limited = finish != HUNCH_FINISH_STOP;
        for (int which = 0; which < PROTOCOLS; which++) {
            static understood streamed;
            memset(&streamed, 0, sizeof streamed);
            whole_understand(&s, which, text, finish, &whole_of[which]);
            streamed_understand(&s, which, text, finish, draw(3) ? draw(30) : 0, &streamed);
            /* a call that the model ended in its middle is text once it is known to be none, but its stream has begun */
            if (finish == HUNCH_FINISH_STOP && streamed.calls > whole_of[which].calls) continue;
            same(&whole_of[which], &streamed, which == 1);
        }
        /* all protocols have the same calls; Ollama's none that was cut */
        const bool was_cut =
            limited && strcmp(whole_of[0].finish, "length") == 0 && whole_of[3].calls < whole_of[0].calls;
        for (int which = 1; which < PROTOCOLS; which++) {
            assert_string_equal(whole_of[which].text, whole_of[0].text);
            assert_string_equal(whole_of[which].thinking, whole_of[0].thinking);
            assert_int_equal(whole_of[which].calls, whole_of[0].calls - (which == 3 && was_cut));
            for (int i = 0; i < whole_of[which].calls; i++) {
                same_arguments(whole_of[which].call[i].arguments, whole_of[0].call[i].arguments, true);
            }
        }
        if (limited) assert_null(strstr(whole_of[0].text, "<tool_call>"));
        for (int which = 0; limited && which < PROTOCOLS; which++)
            limit_check(which, whole_of[which].finish, whole_of[which].calls);
        many += whole_of[0].calls > 1;
        cut += was_cut;
    }
    if (many < 50 || cut < 10) fail_msg("%d answers with several calls, %d with a cut one", many, cut);
}

#define BAR "\xEF\xBD\x9C" /* U+FF5C */
#define LOW "\xE2\x96\x81" /* U+2581 */
/* Calls in other formats. */
static const struct {
    const char *format, *text;
} calls_of[] = {
    {"hermes", "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>\n<tool_call>\n"
               "{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>"},
    {"qwen3-coder", "<tool_call>\n<function=look>\n<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"
                    "<function=ping>\n</function>\n</tool_call>"},
    {"seed-oss", "<seed:tool_call>\n<function=look>\n<parameter=city>Bern</parameter>\n</function>\n</seed:tool_call>"},
    {"glm4", "<tool_call>look\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n</tool_call>\n<tool_call>ping\n</tool_call>"},
    {"minimax-m2", "<minimax:tool_call>\n<invoke name=\"look\">\n<parameter name=\"city\">Bern</parameter>\n</invoke>\n"
                   "<invoke name=\"ping\">\n</invoke>\n</minimax:tool_call>"},
    {"llama3", "{\"name\": \"look\", \"parameters\": {\"city\": \"Bern\"}}"},
    {"llama-pythonic", "[look(city=\"Bern\"), ping()]"},
    {"lfm2", "<|tool_call_start|>[look(city=\"Bern\"), ping()]<|tool_call_end|>"},
    {"mistral-json", "[TOOL_CALLS][{\"name\": \"look\", \"arguments\": {\"city\": \"Bern\"}, \"id\": \"abcdefghi\"}]"},
    {"mistral-args", "[TOOL_CALLS]look[ARGS]{\"city\": \"Bern\"}[TOOL_CALLS]ping[ARGS]{}"},
    {"gemma4", "<|tool_call>call:look{city:<|\"|>Bern<|\"|>}<tool_call|><|tool_call>call:ping{}<tool_call|>"},
    {"gpt-oss", "<|channel|>commentary to=functions.look <|constrain|>json<|message|>{\"city\": \"Bern\"}<|call|>"},
    {"functionary-3.2", "look\n{\"city\": \"Bern\"}>>>ping\n{}"},
    {"kimi-k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{\"city\": \"Bern\"}"
                "<|tool_call_end|><|tool_calls_section_end|>"},
    {"deepseek-v3.1", "<" BAR "tool" LOW "calls" LOW "begin" BAR "><" BAR "tool" LOW "call" LOW "begin" BAR ">look"
                      "<" BAR "tool" LOW "sep" BAR ">{\"city\": \"Bern\"}<" BAR "tool" LOW "call" LOW "end" BAR ">"
                      "<" BAR "tool" LOW "calls" LOW "end" BAR ">"},
    {"dsml", "<" BAR "DSML" BAR "function_calls>\n<" BAR "DSML" BAR "invoke name=\"look\">\n<" BAR "DSML" BAR
             "parameter name=\"city\" string=\"true\">Z\xC3\xBCrich</" BAR "DSML" BAR "parameter>\n</" BAR "DSML" BAR
             "invoke>\n</" BAR "DSML" BAR "function_calls>"},
    {"command-r7b", "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"look\", "
                    "\"parameters\": {\"city\": \"Bern\"}}\n]<|END_ACTION|>"}};

/* A limit cuts an answer of calls anywhere: no protocol has a byte of it as text, and streams have what whole answers have. */
static void test_cut_in_every_format(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof calls_of / sizeof *calls_of; i++) {
        const serve_settings settings = {.model_name = "m", .template_text = hermes, .tool_format = calls_of[i].format};
        const serve_server s = {.settings = &settings};
        for (size_t k = 1; k < strlen(calls_of[i].text); k++) {
            char text[1000];
            const size_t n = hn_utf8_complete(calls_of[i].text, k); /* the engine has U+FFFD for a character that is cut */
            snprintf(text, sizeof text, "%.*s%s", (int)n, calls_of[i].text, n < k ? "\xEF\xBF\xBD" : "");
            for (int which = 0; which < PROTOCOLS; which++) {
                static understood w, t;
                memset(&w, 0, sizeof w);
                memset(&t, 0, sizeof t);
                more_of = ", \"tool_choice\": \"required\"";
                whole_understand(&s, which, text, HUNCH_FINISH_LENGTH, &w);
                streamed_understand(&s, which, text, HUNCH_FINISH_LENGTH, (unsigned)(k % 4), &t);
                more_of = "";
                if (w.text[0] || t.text[0] || w.calls != t.calls)
                    fail_msg("%s, protocol %d, cut at %zu: '%s' and %d calls, '%s' and %d calls", settings.tool_format, which, k, w.text,
                             w.calls, t.text, t.calls);
                same(&w, &t, which == 1);
                limit_check(which, w.finish, w.calls);
            }
        }
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
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_what_can_be_read), cmocka_unit_test(test_whole_and_streamed),
                                       cmocka_unit_test(test_cut_in_every_format)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
