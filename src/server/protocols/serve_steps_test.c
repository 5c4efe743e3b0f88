/* SPDX-License-Identifier: Apache-2.0 */
/* serve_steps_test.c - what a request costs before the engine sees it: each list and text of each protocol, as long as a body may make it,
 * takes steps in proportion to its bytes. Steps are counted, not timed: base, text, grammar, calls and server are compiled once more for
 * this test, so that each basic block says that it runs (tests.cmake). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "fixture.h"
#include "server/protocols/serve_fields.h"
#include "server/server_for_tests.h"

enum {
    LIGHT_SMALL = 1 << 16,
    LIGHT_LARGE = 1 << 19,
    SMALL = 1 << 20,
    LARGE = 16 << 20,
    MOST_PARTS = SERVE_MOST_VALUES / 16,
    STEPS_A_BYTE = 2000,
    STEPS_A_REQUEST = 4000000
};
#define MOST_RATIO 1.5 /* of steps, beside that of bytes: n log n is below it */

static uint64_t steps;
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    steps++;
}

/* ---- a server whose engine has nothing to do ------------------------------------------------------------------ */

static char *template_text;

static int setup(void **state) {
    size_t len;
    (void)state;
    must(hn_file_read(HUNCH_TEST_TEMPLATES "/Qwen-Qwen3-0.6B.jinja", 1 << 20, &template_text, &len, err));
    test_server_start(1, 1, 256, template_text);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    test_server_stop();
    hn_free(template_text);
    return 0;
}

/* ---- bodies --------------------------------------------------------------------------------------------------- */

/* A body with a part that is repeated, and perhaps another one behind it; %1$d in it is the number of the repeat, %2$d that number from the
 * end. */
typedef struct grown {
    const char *path, *begin, *part, *between, *end;
    const char *middle, *other; /* between all parts and all others; NULL: there are none */
} grown;

#define CHAT "/v1/chat/completions"
#define HI "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"
#define TOOLS                                                                                                          \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\"}}}]"
#define TOOLS_R "\"tools\": [{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"type\": \"object\"}}]"
#define USED "{\"type\": \"function_call\", \"call_id\": \"c%1$d\", \"name\": \"f\", \"arguments\": \"{}\"}"
#define TOLD "{\"max_tokens\": 1, \"messages\": "
#define SCHEMA "{" HI ", \"guided_json\": "
#define CALL_ID                                                                                                        \
    "{\"id\": \"call_%1$d\", \"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}"

/* Calls and their results, in reverse order. */
static const grown pairs[] = {
    {CHAT, "{" TOOLS ", \"messages\": [{\"role\": \"assistant\", \"tool_calls\": [", CALL_ID, ",", "]}", "]},",
     "{\"role\": \"tool\", \"tool_call_id\": \"call_%2$d\", \"content\": \"r\"}"},
    {"/v1/responses", "{" TOOLS_R ", \"input\": [", USED, ",", "]}", ",",
     "{\"type\": \"function_call_output\", \"call_id\": \"c%2$d\", \"output\": \"r\"}"},
    {"/v1/messages", TOLD "[{\"role\": \"assistant\", \"content\": [",
     "{\"type\": \"tool_use\", \"id\": \"t%1$d\", \"name\": \"f\", \"input\": {}}", ",", "]}]}",
     "]}, {\"role\": \"user\", \"content\": [",
     "{\"type\": \"tool_result\", \"tool_use_id\": \"t%2$d\", \"content\": \"r\"}"},
};

static const grown all[] = {
    /* chats */
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"", " ", "", "\"}]}", NULL, NULL},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"", "a", "", "\"}]}", NULL, NULL},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"", "word %1$d ", "", "\"}]}", NULL, NULL},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"", "\\u00e9\\n", "", "\"}]}", NULL, NULL},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"", "<|im_end|>", "", "\"}]}", NULL, NULL},
    {CHAT, "{\"messages\": [{\"role\": \"assistant\", \"content\": \"", "<think>", "",
     "\"}, {\"role\": \"user\", \"content\": \"\"}]}", NULL, NULL},
    {CHAT, "{\"messages\": [", "{\"role\": \"user\", \"content\": \"Hi\"}", ",", "]}", NULL, NULL},
    {CHAT, "{\"messages\": [", "{\"role\": \"assistant\", \"content\": \"Hi\"}", ",", "]}", NULL, NULL},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": [", "{\"type\": \"text\", \"text\": \"a\"}", ",", "]}]}",
     NULL, NULL},
    {CHAT, "{" TOOLS ", \"messages\": [{\"role\": \"assistant\", \"tool_calls\": [", CALL_ID, ",", "]}]}", NULL, NULL},
    {CHAT,
     "{" TOOLS ", \"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"a\", \"type\": \"function\", "
               "\"function\": "
     "{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": [0",
     ",1", "", "]}\"}}]}]}", NULL, NULL},
    {CHAT, "{\"messages\": [{\"role\": \"tool\", \"tool_call_id\": \"x\", \"content\": \"\"},",
     "{\"role\": \"tool\", "
     "\"tool_call_id\": \"%1$d\", \"content\": \"r\"}",
     ",", "]}", NULL, NULL},
    {CHAT, "{" HI ", \"tools\": [", "{\"type\": \"function\", \"function\": {\"name\": \"f%1$d\", \"parameters\": {}}}",
     ",", "]}", NULL, NULL},
    {CHAT,
     "{" HI
     ", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\", "
     "\"properties\": {",
     "\"p%1$d\": {\"type\": \"integer\"}", ",", "}}}}]}", NULL, NULL},
    {CHAT, "{" HI ", \"chat_template_kwargs\": {", "\"k%1$d\": 1", ",", "}}", NULL, NULL},
    {CHAT, "{" HI ", \"stop\": [", "\"s%1$d\"", ",", "]}", NULL, NULL},
    {CHAT, "{" HI ", \"stop_token_ids\": [", "1", ",", "]}", NULL, NULL},
    {CHAT, "{" HI ", \"logit_bias\": {", "\"%1$d\": 1", ",", "}}", NULL, NULL},
    {CHAT, "{" HI ", \"dry_sequence_breakers\": [", "\"b%1$d\"", ",", "]}", NULL, NULL},
    {CHAT, "{" HI ", \"prediction\": {\"type\": \"content\", \"content\": \"", "ab ", "", "\"}}", NULL, NULL},
    {CHAT, "{" HI ", \"speculation\": {\"draft\": [", "\"d%1$d\"", ",", "]}}", NULL, NULL},
    {CHAT, "{" HI ", \"model\": \"", "m", "", "\"}", NULL, NULL},
    {CHAT, "{" HI ", \"cache_salt\": \"", "m", "", "\"}", NULL, NULL},
    {CHAT, "{" HI ", \"user\": \"", "m", "", "\"}", NULL, NULL},
    {CHAT, "{" HI ", ", "\"unknown%1$d\": 0", ",", "}", NULL, NULL},
    /* grammars */
    {CHAT, SCHEMA "{\"enum\": [", "\"v%1$d\"", ",", "]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"allOf\": [{\"enum\": [0]}, {\"enum\": [", "%1$d", ",", "]}]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"properties\": {", "\"p%1$d\": {\"type\": \"integer\"}", ",", "}}}", NULL, NULL},
    {CHAT, SCHEMA "{\"required\": [", "\"p%1$d\"", ",", "]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"anyOf\": [", "{\"const\": %1$d}", ",", "]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"oneOf\": [", "{\"const\": %1$d}", ",", "]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"allOf\": [", "{\"minimum\": %1$d}", ",", "]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"allOf\": [", "{\"anyOf\": [{\"required\": [\"a%1$d\"]}, {\"required\": [\"b%1$d\"]}]}", ",",
     "]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"prefixItems\": [", "{\"const\": %1$d}", ",", "]}}", NULL, NULL},
    {CHAT, SCHEMA "{\"$ref\": \"#/$defs/d0\", \"$defs\": {", "\"d%1$d\": {\"$ref\": \"#/$defs/d%2$d\"}", ",", "}}}",
     NULL, NULL},
    {CHAT, SCHEMA "{\"type\": \"string\", \"pattern\": \"", "(a|b)", "", "\"}}", NULL, NULL},
    {CHAT, "{" HI ", \"guided_regex\": \"", "(a|b)?", "", "\"}", NULL, NULL},
    {CHAT, "{" HI ", \"guided_choice\": [", "\"c%1$d\"", ",", "]}", NULL, NULL},
    {CHAT, "{" HI ", \"guided_grammar\": \"root ::= r0\\n", "r%1$d ::= \\\"a\\\" | \\\"b\\\"\\n", "", "\"}", NULL,
     NULL},
    {CHAT, "{" HI ", \"guided_grammar\": \"root ::= ", "\\\"a\\\" ", "", "\"}", NULL, NULL},
    /* texts and tokens */
    {"/v1/completions", "{\"prompt\": \"", "a b", "", "\"}", NULL, NULL},
    {"/v1/completions", "{\"prompt\": [", "1", ",", "]}", NULL, NULL},
    {"/v1/completions", "{\"prompt\": [", "\"a\"", ",", "]}", NULL, NULL},
    {"/v1/completions", "{\"prompt\": [", "[1]", ",", "]}", NULL, NULL},
    {"/v1/embeddings", "{\"input\": \"", "a b", "", "\"}", NULL, NULL},
    {"/v1/embeddings", "{\"input\": [", "\"a\"", ",", "]}", NULL, NULL},
    {"/tokenize", "{\"prompt\": \"", "a", "", "\"}", NULL, NULL},
    {"/tokenize", "{\"prompt\": \"", " ", "", "\"}", NULL, NULL},
    {"/tokenize", "{\"prompt\": \"", "ab %1$d", "", "\"}", NULL, NULL},
    {"/tokenize", "{\"return_token_strs\": true, \"messages\": [", "{\"role\": \"user\", \"content\": \"Hi\"}", ",",
     "]}", NULL, NULL},
    {"/detokenize", "{\"tokens\": [", "400", ",", "]}", NULL, NULL},
    {"/apply-template", "{\"messages\": [", "{\"role\": \"user\", \"content\": \"Hi\"}", ",", "]}", NULL, NULL},
    {"/completion", "{\"prompt\": \"", "a b", "", "\"}", NULL, NULL},
    {"/completion", "{\"prompt\": \"a\", \"logit_bias\": [", "[%1$d, 1]", ",", "]}", NULL, NULL},
    {"/completion", "{\"prompt\": \"a\", \"samplers\": [", "\"s%1$d\"", ",", "]}", NULL, NULL},
    /* Responses */
    {"/v1/responses", "{\"input\": \"", "a b", "", "\"}", NULL, NULL},
    {"/v1/responses", "{\"input\": \"a\", \"instructions\": \"", "a b", "", "\"}", NULL, NULL},
    {"/v1/responses", "{\"input\": [", "{\"role\": \"user\", \"content\": \"Hi\"}", ",", "]}", NULL, NULL},
    {"/v1/responses", "{\"input\": [{\"role\": \"user\", \"content\": [",
     "{\"type\": \"input_text\", \"text\": \"Hi\"}", ",", "]}]}", NULL, NULL},
    {"/v1/responses", "{\"input\": [", USED, ",", "]}", NULL, NULL},
    {"/v1/responses", "{\"input\": [",
     "{\"type\": \"function_call_output\", \"call_id\": \"c%2$d\", \"output\": \"r\"}", ",", "]}", NULL, NULL},
    {"/v1/responses", "{\"input\": [",
     "{\"type\": \"reasoning\", \"summary\": [], \"content\": [{\"type\": \"reasoning_text\", \"text\": \"a\"}]}", ",",
     "]}", NULL, NULL},
    {"/v1/responses", "{\"input\": \"a\", \"tools\": [",
     "{\"type\": \"function\", \"name\": \"f%1$d\", \"parameters\": {}}", ",", "]}", NULL, NULL},
    {"/v1/responses", "{\"input\": \"a\", \"metadata\": {", "\"m%1$d\": \"\"", ",", "}}", NULL, NULL},
    {"/v1/responses/input_tokens", "{\"input\": [", "{\"role\": \"user\", \"content\": \"Hi\"}", ",", "]}", NULL, NULL},
    /* Anthropic's */
    {"/v1/messages", TOLD "[", "{\"role\": \"user\", \"content\": \"Hi\"}", ",", "]}", NULL, NULL},
    {"/v1/messages", TOLD "[{\"role\": \"user\", \"content\": [", "{\"type\": \"text\", \"text\": \"Hi\"}", ",", "]}]}",
     NULL, NULL},
    {"/v1/messages", TOLD "[{\"role\": \"assistant\", \"content\": [",
     "{\"type\": \"tool_use\", \"id\": \"t%1$d\", \"name\": \"f\", \"input\": {}}", ",", "]}]}", NULL, NULL},
    {"/v1/messages", TOLD "[{\"role\": \"user\", \"content\": [",
     "{\"type\": \"tool_result\", \"tool_use_id\": \"t%2$d\", \"content\": \"r\"}", ",", "]}]}", NULL, NULL},
    {"/v1/messages", "{\"max_tokens\": 1, " HI ", \"system\": [", "{\"type\": \"text\", \"text\": \"Hi\"}", ",", "]}",
     NULL, NULL},
    {"/v1/messages", "{\"max_tokens\": 1, " HI ", \"tools\": [",
     "{\"name\": \"f%1$d\", \"input_schema\": {\"type\": \"object\"}}", ",", "]}", NULL, NULL},
    {"/v1/messages", "{\"max_tokens\": 1, " HI ", \"stop_sequences\": [", "\"s%1$d\"", ",", "]}", NULL, NULL},
    {"/v1/messages/count_tokens", "{\"messages\": [", "{\"role\": \"user\", \"content\": \"Hi\"}", ",", "]}", NULL,
     NULL},
    /* Ollama's */
    {"/api/generate", "{\"prompt\": \"", "a b", "", "\"}", NULL, NULL},
    {"/api/generate", "{\"prompt\": \"a\", \"context\": [", "1", ",", "]}", NULL, NULL},
    {"/api/generate", "{\"prompt\": \"a\", \"options\": {\"stop\": [", "\"s%1$d\"", ",", "]}}", NULL, NULL},
    {"/api/generate", "{\"prompt\": \"a\", \"format\": {\"enum\": [", "\"v%1$d\"", ",", "]}}", NULL, NULL},
    {"/api/chat", "{\"messages\": [", "{\"role\": \"user\", \"content\": \"Hi\"}", ",", "]}", NULL, NULL},
    {"/api/chat", "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [",
     "{\"function\": {\"name\": \"f%1$d\", \"arguments\": {}}}", ",", "]}]}", NULL, NULL},
    {"/api/chat", "{" HI ", \"tools\": [",
     "{\"type\": \"function\", \"function\": {\"name\": \"f%1$d\", \"parameters\": {}}}", ",", "]}", NULL, NULL},
};

static size_t part_bytes(const grown *g, const char *part) {
    char text[400];
    snprintf(text, sizeof text, part, 100000, 100000);
    return strlen(text) + strlen(g->between);
}

static void parts_put(serve_bytes *to, const grown *g, const char *part, size_t times) {
    char text[400];
    for (size_t i = 0; i < times; i++) {
        snprintf(text, sizeof text, part, (int)i, (int)(times - 1 - i));
        if (i) serve_bytes_put(to, g->between);
        serve_bytes_put(to, text);
    }
}

static void body_make(serve_bytes *to, const grown *g, size_t bytes) {
    const size_t one = part_bytes(g, g->part) + (g->other ? part_bytes(g, g->other) : 0);
    size_t times = bytes / one;
    if (*g->between && times > MOST_PARTS) times = MOST_PARTS;
    serve_bytes_put(to, g->begin);
    parts_put(to, g, g->part, times);
    if (g->other) serve_bytes_put(to, g->middle), parts_put(to, g, g->other, times);
    serve_bytes_put(to, g->end);
}

/* The steps of a request of about so many bytes, which are set to what they are. An answer of 400 is one, too. */
static uint64_t request_try(const grown *g, size_t *bytes) {
    serve_error err = {0};
    serve_reply r = {0};
    serve_bytes body = {0};
    body_make(&body, g, *bytes);
    *bytes = body.n;
    steps = 0;
    const serve_route *route = serve_route_find("POST", g->path, &err);
    assert_non_null(route);
    serve_http_request q = {.id = "id", .rest = "", .body = serve_body_parse(body.at, body.n, &err)};
    if (!q.body) fail_msg("%s %.100s: %s", g->path, g->begin, err.message);
    const bool ok = route->answer(&server, &q, &r, &err);
    if (!ok && (err.http < 400 || err.http >= 500))
        fail_msg("%s %.100s: %d %s", g->path, g->begin, err.http, err.message);
    json_decref(q.body);
    json_decref(r.json);
    serve_call_release(r.call);
    serve_bytes_free(&r.text);
    serve_bytes_free(&body);
    return steps;
}

/* HUNCH_TEST_TELL: prints what it counts. */
static void growth_try(const grown *g) {
    size_t small = light() ? LIGHT_SMALL : SMALL, large = light() ? LIGHT_LARGE : LARGE;
    const uint64_t few = request_try(g, &small), many = request_try(g, &large);
    const double ratio = (double)many / (double)few, bytes = (double)large / (double)small,
                 a_byte = (double)many / (double)large;
    if (getenv("HUNCH_TEST_TELL"))
        printf("%s %.60s %.30s: %.1f steps a byte, %.1f times for %.1f\n", g->path, g->begin, g->part, a_byte, ratio,
               bytes);
    if (many > STEPS_A_REQUEST && ratio > MOST_RATIO * bytes)
        fail_msg("%s %.100s: %.1f times the steps for %.1f times the bytes", g->path, g->begin, ratio, bytes);
    if (a_byte > STEPS_A_BYTE) fail_msg("%s %.100s: %.1f steps a byte", g->path, g->begin, a_byte);
}

static void test_steps_grow_as_bytes_do(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) growth_try(&all[i]);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) growth_try(&pairs[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps_grow_as_bytes_do)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
