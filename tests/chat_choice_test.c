/* SPDX-License-Identifier: Apache-2.0 */
/* chat_choice_test.c - the chat template that a model renders with, from a GGUF's keys or a folder's files, with tools
 * and without, and the variables that templates get from the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "tiny_gguf.h"

#define USER "\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]"

static hunch_model *open_text(const char *path) {
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_model_options_defaults(&o);
    o.text_only = true;
    must(hunch_model_open(&m, path, &o, err));
    return m;
}

static hunch_model *open_tiny(const tiny *t) {
    bytes b = tiny_bytes(t);
    const char *path = test_path("tiny.gguf");
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
    return open_text(path);
}

static void renders(const hunch_model *m, const char *vars, const char *expected) {
    char *text = NULL;
    size_t len;
    must(hunch_chat_render(m, vars, NULL, &text, &len, err));
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
    hunch_free(text);
}

static void test_gguf(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    tiny_text(&t, "tokenizer.chat_template",
              "{{ bos_token }}{{ messages[0].content }}{{ tools|length if tools }}{{ eos_token }}"
              "{{ enable_thinking }}{{ add_generation_prompt }}");
    hunch_model *m = open_tiny(&t);
    renders(m, "{" USER "}", "<s>hi</s>True");
    renders(m, "{" USER ", \"tools\": [1, 2], \"enable_thinking\": false}", "<s>hi2</s>FalseTrue");
    renders(m, "{" USER ", \"bos_token\": \"\", \"add_generation_prompt\": false}", "hi</s>False");
    hunch_model_close(&m);
    tiny_text(&t, "tokenizer.chat_template.tool_use", "{% for t in tools %}[{{ t }}]{% endfor %}");
    m = open_tiny(&t);
    renders(m, "{" USER "}", "<s>hi</s>True");
    renders(m, "{" USER ", \"tools\": []}", "<s>hi</s>True");
    renders(m, "{" USER ", \"tools\": [1, 2]}", "[1][2]");
    hunch_model_close(&m);
    tiny_close(&t);
}

/* Another template and another time than the model's and the clock's. */
static void test_options(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    tiny_text(&t, "tokenizer.chat_template", "{{ messages[0].content }} {{ strftime_now('%d %B') }}");
    hunch_model *m = open_tiny(&t);
    hunch_chat_options o;
    hunch_chat_options_defaults(&o);
    o.now = "2026-01-02 03:04:05";
    for (int own = 1; own >= 0; own--) {
        char *text = NULL;
        size_t len;
        o.template_text = own ? NULL : "{{ bos_token }}{{ strftime_now('%H') }}";
        must(hunch_chat_render(m, "{" USER "}", &o, &text, &len, err));
        assert_string_equal(text, own ? "hi 02 January" : "<s>03");
        hunch_free(text);
    }
    hunch_model_close(&m);
    tiny_close(&t);
}

static void file(const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "folder/%s", name);
    test_file_write(test_path(path), text, strlen(text));
}

static void test_folder(void **state) {
    (void)state;
    static const char *const linked[] = {"config.json", "model.safetensors", "tokenizer.json"};
    mkdir(test_path("folder"), 0700);
    for (int i = 0; i < 3; i++) {
        char from[600], to[300];
        snprintf(from, sizeof from, "%s/models/stories260K/hf/%s", HUNCH_TEST_DATA, linked[i]);
        snprintf(to, sizeof to, "folder/%s", linked[i]);
        assert_int_equal(symlink(from, test_path(to)), 0);
    }
    file("tokenizer_config.json", "{\"chat_template\": \"one {{ tools }}\"}");
    hunch_model *m = open_text(test_path("folder"));
    renders(m, "{" USER ", \"tools\": [1]}", "one [1]");
    hunch_model_close(&m);
    file("tokenizer_config.json",
         "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"no\"}, {\"name\": \"tool_use\", \"template\": "
         "\"two {{ tools }}\"}, {\"name\": \"default\", \"template\": \"three\"}, 7, {\"name\": \"default\"}]}");
    m = open_text(test_path("folder"));
    renders(m, "{" USER "}", "three");
    renders(m, "{" USER ", \"tools\": [1]}", "two [1]");
    hunch_model_close(&m);
    file("chat_template.jinja", "four\n");
    m = open_text(test_path("folder"));
    renders(m, "{" USER ", \"tools\": [1]}", "four"); /* the separate file is the newer form */
    hunch_model_close(&m);
}

static void is_refused(const hunch_model *m, const char *vars, const char *why) {
    char *text = NULL;
    size_t len;
    hunch_error err;
    assert_int_equal(hunch_chat_render(m, vars, NULL, &text, &len, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, why));
}

/* An invalid template is reported only to callers that need it. */
static void test_no_template(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    tiny_text(&t, "tokenizer.chat_template", "{% bogus %}");
    hunch_model *m = open_tiny(&t);
    is_refused(m, "{" USER "}", "bogus");
    hunch_model_close(&m);
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.text_only = true;
    assert_int_equal(hunch_model_open(&m, test_path("tiny.gguf"), &o, NULL), HUNCH_OK); /* without an error */
    hunch_model_close(&m);
    tiny_text(&t, "tokenizer.chat_template.tool_use", "with {{ tools }}");
    m = open_tiny(&t);
    is_refused(m, "{" USER "}", "bogus");
    renders(m, "{" USER ", \"tools\": [1]}", "with [1]");
    hunch_model_close(&m);
    tiny_text(&t, "tokenizer.chat_template", "without");
    tiny_text(&t, "tokenizer.chat_template.tool_use", "{% rubbish %}");
    m = open_tiny(&t);
    renders(m, "{" USER "}", "without");
    is_refused(m, "{" USER ", \"tools\": [1]}", "rubbish");
    hunch_model_close(&m);
    tiny_close(&t);
}

/* A text that begins with a byte which is not UTF-8 cannot be passed to a template: it gets an empty text. */
static void test_token_that_is_no_text(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    const tiny_key *tokens = tiny_find(&t, "tokenizer.ggml.tokens");
    unsigned char *line_feed = memmem(tokens->value.at, tokens->value.size, "<0x0A>", 6);
    assert_non_null(line_feed);
    memcpy(line_feed, "<0x80>", 6);
    tiny_u32(&t, "tokenizer.ggml.bos_token_id", 3);
    tiny_text(&t, "tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
    hunch_model *m = open_tiny(&t);
    renders(m, "{" USER "}", "hi</s>");
    hunch_model_close(&m);
    tiny_close(&t);
}

static void tokens_are(const hunch_model *m, const hunch_token *ids, size_t n, const char *text, int flags) {
    hunch_token *want = NULL;
    size_t n_want;
    must(hunch_tokenize(m, text, strlen(text), flags, &want, &n_want, err));
    assert_int_equal(n, n_want);
    assert_memory_equal(ids, want, n * sizeof *ids);
    hunch_free(want);
}

static void conversation_is(const hunch_model *m, const hunch_message *messages, size_t n, const char *text, int flags) {
    hunch_token *ids = NULL;
    size_t n_ids;
    must(hunch_chat_tokens(m, messages, n, &ids, &n_ids, err));
    tokens_are(m, ids, n_ids, text, flags);
    hunch_free(ids);
}

/* A conversation as tokens: rendered, or without a template its contents joined; with one BOS, from the template or the tokenizer. */
static void test_chat_tokens(void **state) {
    (void)state;
    enum { AS_IT_IS = HUNCH_TEXT_PARSE_SPECIAL, WITH_BOS = HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL };
    const hunch_message two[] = {{"system", "One"}, {"user", " day"}}, marked = {"user", "<s>One day"},
                        broken = {"user", "\xC3"}, none = {"user", NULL};
    hunch_token *ids = NULL;
    size_t n;
    hunch_error why = {0};
    hunch_model *m = open_text(data_path("models/stories260K/stories260K.f32.gguf"));
    conversation_is(m, two, 2, "One day", WITH_BOS);
    conversation_is(m, two, 2, "<s>One day", AS_IT_IS);
    conversation_is(m, &marked, 1, "<s>One day", HUNCH_TEXT_ADD_SPECIAL); /* what a user writes is text */
    must(hunch_tokenize(m, "<s><s>One", 9, HUNCH_TEXT_RENDERED, &ids, &n, err));
    tokens_are(m, ids, n, "<s><s>One", AS_IT_IS); /* two in the text itself are kept */
    hunch_free(ids);
    assert_int_equal(hunch_chat_tokens(m, &broken, 1, &ids, &n, &why), HUNCH_USAGE);
    assert_non_null(strstr(why.message, "message 0"));
    assert_int_equal(hunch_chat_tokens(m, &none, 1, &ids, &n, &why), HUNCH_USAGE);
    assert_null(ids);
    hunch_model_close(&m);
    tiny t;
    tiny_open(&t);
    tiny_text(&t, "tokenizer.chat_template",
              "{% for m in messages %}{{ raise_exception('whose?') if m.role == 'x' }}{{ m.content }}{% endfor %}");
    m = open_tiny(&t);
    const hunch_message whose = {"x", "a"};
    conversation_is(m, two, 1, "One", WITH_BOS);
    assert_int_equal(hunch_chat_tokens(m, &whose, 1, &ids, &n, &why), HUNCH_USAGE);
    assert_non_null(strstr(why.message, "whose?"));
    hunch_model_close(&m);
    tiny_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chat_tokens), cmocka_unit_test(test_gguf), cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_folder), cmocka_unit_test(test_no_template),
                                       cmocka_unit_test(test_token_that_is_no_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
