/* SPDX-License-Identifier: Apache-2.0 */
/* required_calls_test.c - a tiny trained model that must call: every answer that ends is calls whose arguments their schemas allow, the
 * same with and without drafts; one that may call writes no call that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/mem.h"
#include "fixture.h"

static hunch_model *model;

static const char offered[] =
    "[{\"name\": \"look\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", "
    "\"maxLength\": 6}, \"days\": "
    "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 9}}, \"required\": [\"city\"]}}, {\"name\": \"ping\"}]";

static hunch_tools *tools_open(const char *format, hunch_tool_choice choice) {
    hunch_tools *t = NULL;
    hunch_tools_options o;
    hunch_tools_options_defaults(&o);
    o.tools = offered;
    o.format = format;
    o.choice = choice;
    o.name = "look";
    o.one = choice == HUNCH_TOOLS_REQUIRED; /* so that answers end */
    must(hunch_tools_open(&t, model, &o, err));
    return t;
}

static hunch_engine *engine_open(const char *draft) {
    hunch_engine *e = NULL;
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.drafts = &draft;
    o.n_drafts = draft ? 1 : 0;
    o.context = 256;
    must(hunch_engine_open(&e, model, &o, err));
    return e;
}

/* An answer's text; to be freed with hn_free. */
static char *answer_of(hunch_engine *e, const hunch_tools *t, uint64_t seed, hunch_finish *finish) {
    static const hunch_token prompt[] = {1, 403, 407};
    hunch_session *s = NULL;
    hunch_session_state st;
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = 3;
    r.max_tokens = 120;
    r.special_text = true;
    r.sampling = (hunch_sampling){.temperature = 1, .top_p = 1, .seed = seed};
    must(hunch_tools_grammar(&r.grammar, t, false, err));
    assert_non_null(r.grammar);
    must(hunch_session_open(&s, e, &r, err));
    hunch_grammar_close(&r.grammar);
    must(hunch_engine_run(e, err));
    hunch_session_get(s, &st);
    if (st.finish == HUNCH_FINISH_FAILED) fail_msg("%s", st.error.message);
    *finish = st.finish;
    char *text = hn_strndup(st.text, st.text_len);
    hunch_session_close(&s);
    return text;
}

static void check_call(const hunch_call *c) {
    json_t *args = json_loads(c->arguments, 0, NULL);
    assert_true(json_is_object(args));
    if (strcmp(c->name, "ping") == 0)
        assert_int_equal(json_object_size(args), 0);
    else {
        const json_t *city = json_object_get(args, "city"), *days = json_object_get(args, "days");
        assert_string_equal(c->name, "look");
        assert_true(json_is_string(city) && json_string_length(city) <= 6 * 4);
        assert_int_equal(json_object_size(args), 1 + (days != NULL));
        if (days) assert_in_range(json_integer_value(days), 1, 9);
    }
    json_decref(args);
}

/* Whether the answer ended; then its calls are whole. */
static bool check_answer(const hunch_tools *t, const char *text, hunch_finish finish, bool required) {
    hunch_calls *c = NULL;
    hunch_answer a;
    must(hunch_calls_open(&c, t, false, err));
    must(hunch_calls_feed(c, text, strlen(text), true, err));
    hunch_calls_get(c, &a);
    for (size_t i = 0; i < a.n_calls; i++)
        if (a.call[i].state == HUNCH_CALL_DONE) check_call(&a.call[i]);
    const bool ended = finish == HUNCH_FINISH_STOP;
    if (ended && (a.n_done != a.n_calls || a.n_broken || (required && (!a.n_done || a.n_text)))) fail_msg("'%s'", text);
    hunch_calls_close(&c);
    return ended;
}

static void test_required(void **state) {
    (void)state;
    static const char *const formats[] = {"hermes", "qwen3-coder", "mistral-json", "gemma4", "llama-pythonic"};
    enum { SEEDS = 3 };
    hunch_engine *plain = engine_open(NULL), *drafts = engine_open("ngram");
    int ended = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        hunch_tools *t = tools_open(formats[i], i % 2 ? HUNCH_TOOLS_NAMED : HUNCH_TOOLS_REQUIRED);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            hunch_finish finish, again;
            char *a = answer_of(plain, t, seed, &finish), *b = answer_of(drafts, t, seed, &again);
            assert_string_equal(a, b);
            ended += check_answer(t, a, finish, true);
            hn_free(a);
            hn_free(b);
        }
        hunch_tools_close(&t);
    }
    assert_true(ended >= SEEDS * 4);
    hunch_engine_close(&plain);
    hunch_engine_close(&drafts);
}

static void test_automatic(void **state) {
    (void)state;
    static const char *const formats[] = {"hermes", "gpt-oss"}, *const begins[] = {"", "<|channel|>"};
    hunch_engine *plain = engine_open(NULL);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        hunch_tools *t = tools_open(formats[i], HUNCH_TOOLS_AUTO);
        for (uint64_t seed = 0; seed < 3; seed++) {
            hunch_finish finish;
            char *a = answer_of(plain, t, seed, &finish);
            check_answer(t, a, finish, false);
            assert_true(strncmp(a, begins[i], strlen(begins[i])) == 0 || strncmp(a, " to=", 4) == 0);
            hn_free(a);
        }
        hunch_tools_close(&t);
    }
    hunch_engine_close(&plain);
}

static hunch_grammar *grammar_of(hunch_tools_options o, bool thinks) {
    hunch_tools *t = NULL;
    hunch_grammar *g = NULL;
    must(hunch_tools_open(&t, model, &o, err));
    must(hunch_tools_grammar(&g, t, thinks, err));
    hunch_tools_close(&t);
    return g;
}

/* The same functions, choice and template have one grammar, and others have others. */
static void test_one_grammar(void **state) {
    (void)state;
    enum { ALIKE = 2, OTHERS = 10, ALL = OTHERS + 3 };
    static const char other[] = "[{\"name\": \"look\", \"parameters\": {\"type\": \"object\"}}, {\"name\": \"ping\"}]";
    static const char template[] = "[THINK][/THINK]<tool_call>\n{\"name\": n, \"arguments\": a}\n</tool_call>";
    hunch_tools_options base, o[OTHERS];
    hunch_tools_options_defaults(&base);
    base.tools = offered;
    base.format = "hermes";
    base.choice = HUNCH_TOOLS_REQUIRED;
    for (int i = 0; i < OTHERS; i++) o[i] = base;
    o[ALIKE - 1].earlier = 7; /* hermes numbers no calls */
    o[2].tools = other;
    o[3].format = "glm4";
    o[4].choice = HUNCH_TOOLS_AUTO;
    o[5].choice = HUNCH_TOOLS_NAMED, o[5].name = "look";
    o[6].choice = HUNCH_TOOLS_NAMED, o[6].name = "ping";
    o[7].one = true;
    o[8].template_text = template;
    o[9].format = "kimi-k2";
    hunch_grammar *g[ALL];
    for (int i = 0; i < OTHERS; i++) g[i] = grammar_of(o[i], false);
    g[OTHERS] = grammar_of(base, true);
    g[OTHERS + 2] = grammar_of(o[8], true);
    o[9].earlier = 7;
    g[OTHERS + 1] = grammar_of(o[9], false);
    for (int i = 0; i < ALL; i++) {
        assert_non_null(g[i]);
        for (int k = 0; k < i; k++) assert_int_equal(g[i] == g[k], i < ALIKE);
    }
    for (int i = 0; i < ALL; i++) hunch_grammar_close(&g[i]);
}

/* The mark of calls does not occur. */
static void test_none(void **state) {
    (void)state;
    hunch_engine *plain = engine_open(NULL);
    hunch_tools *t = tools_open("phi4-mini", HUNCH_TOOLS_NONE);
    hunch_grammar *g = NULL;
    hunch_finish finish;
    must(hunch_tools_grammar(&g, t, false, err));
    assert_non_null(g);
    hunch_grammar_close(&g);
    char *a = answer_of(plain, t, 1, &finish);
    assert_true(strlen(a) > 20 && !strstr(a, "functools"));
    hn_free(a);
    hunch_tools_close(&t);
    hunch_engine_close(&plain);
}

/* A schema that cannot be honoured: a call that must be is refused, one that may be is not constrained. */
static void test_refused(void **state) {
    (void)state;
    hunch_tools_options o;
    hunch_tools_options_defaults(&o);
    o.tools = "[{\"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"array\", "
              "\"uniqueItems\": true, \"items\": {\"type\": \"object\"}}}}}]";
    o.format = "hermes";
    for (int required = 0; required < 2; required++) {
        hunch_tools *t = NULL;
        hunch_grammar *g = NULL;
        o.choice = required ? HUNCH_TOOLS_REQUIRED : HUNCH_TOOLS_AUTO;
        must(hunch_tools_open(&t, model, &o, err));
        hunch_error why = {0};
        assert_int_equal(hunch_tools_grammar(&g, t, false, &why), required ? HUNCH_USAGE : HUNCH_OK);
        assert_null(g);
        if (required) assert_non_null(strstr(why.message, "uniqueItems"));
        hunch_tools_close(&t);
    }
}

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_required), cmocka_unit_test(test_automatic),
                                       cmocka_unit_test(test_one_grammar), cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
