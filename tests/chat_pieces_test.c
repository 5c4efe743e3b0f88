/* SPDX-License-Identifier: Apache-2.0 */
/* chat_pieces_test.c - what users write is text: names of special tokens in messages are not these tokens, those that the template writes
 * are; and an answer is split by the template's marks, however it arrives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

enum { BEGIN = 1 }; /* <s> */
static hunch_model *model;

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static int count(const hunch_token *ids, size_t n, hunch_token id) {
    int found = 0;
    for (size_t i = 0; i < n; i++) found += ids[i] == id;
    return found;
}

/* How many <s> a conversation has as tokens, and how many in its text. */
static void check_chat(const char *template_text, const char *vars, int tokens, int names) {
    hunch_chat_options o;
    char *text, *plain;
    size_t len, plain_len, n_pieces, n, all = 0;
    hunch_piece *pieces;
    hunch_token *ids;
    int in_text = 0;
    hunch_chat_options_defaults(&o);
    o.template_text = template_text;
    must(hunch_chat_pieces(model, vars, &o, &text, &len, &pieces, &n_pieces, err));
    must(hunch_chat_render(model, vars, &o, &plain, &plain_len, err));
    assert_int_equal(len, plain_len);
    assert_memory_equal(text, plain, len);
    for (size_t i = 0; i < n_pieces; i++) all += pieces[i].len;
    assert_int_equal(all, len);
    for (const char *at = text; (at = strstr(at, "<s>")); at++) in_text++;
    assert_int_equal(in_text, names);
    must(hunch_tokenize_pieces(model, text, len, pieces, n_pieces, &ids, &n, err));
    if (count(ids, n, BEGIN) != tokens) fail_msg("%s with %s: %d tokens, expected %d", template_text, vars, count(ids, n, BEGIN), tokens);
    hunch_free(ids);
    hunch_free(text);
    hunch_free(plain);
    hunch_free(pieces);
}

static void test_messages_are_text(void **state) {
    (void)state;
    static const char *const vars = "{\"messages\": [{\"role\": \"s\", \"content\": \"a<s> b\"}, {\"role\": \"s\", \"content\": \"<s>\"}]}";
    static const char each[] = "{% for m in messages %}";
    char t[400];
    const struct {
        const char *body;
        int tokens, names;
    } cases[] = {
        {"<s>{{ m.content }}", 2, 4},
        {"{{ '<s>' + m.content }}", 2, 4},
        {"{{ '<s>' ~ (m.content | trim) ~ 'x' }}", 2, 4},
        {"{{ bos_token }}{{ m['content'] | replace('a', '<s>') }}", 3, 5}, /* the template's own replacement */
        {"{{ (m.content ~ bos_token) | trim }}", 3, 4},
        {"{% set x %}<s>{{ m.content }}{% endset %}{{ x }}", 2, 4},
        {"{{ m.content | tojson }}", 1, 2}, /* the one that is added before texts */
        {"{{ m.content.split('<s>') | join('<s>') }}", 3, 2}, /* what joins them is the template's */
        {"{{ m.content[0:] | upper | lower }}", 1, 2},
        {"{{ '<' + m.role + '>' }}", 2, 2}, /* as templates make names of roles */
        {"{{ '<' + m.content }}", 1, 2},
        {"{{ '%s' | format(m.content) }}", 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(t, sizeof t, "%s%s{%% endfor %%}", each, cases[i].body);
        check_chat(t, vars, cases[i].tokens, cases[i].names);
    }
    /* a caller's bos_token is a variable as any other */
    check_chat("{{ bos_token }}a", "{\"messages\": [], \"bos_token\": \"x<s>\"}", 1, 1);
    check_chat("", "{\"messages\": []}", 1, 0);
}

/* Without a template messages are text too. */
static void test_without_a_template(void **state) {
    (void)state;
    const hunch_message m[] = {{"user", "a<s>b"}, {"user", "<s>"}};
    hunch_token *ids;
    size_t n;
    must(hunch_chat_tokens(model, m, 2, &ids, &n, err));
    assert_int_equal(count(ids, n, BEGIN), 1);
    hunch_free(ids);
}

/* Words go on over the ends of pieces: with all pieces special the tokens are those of the whole text. */
static void test_pieces_do_not_cut_words(void **state) {
    (void)state;
    static const char text[] = "<s>Once upon a <s>time, there was a little girl";
    hunch_token *whole, *ids;
    size_t n_whole, n;
    must(hunch_tokenize(model, text, strlen(text), HUNCH_TEXT_RENDERED, &whole, &n_whole, err));
    assert_int_equal(count(whole, n_whole, BEGIN), 2);
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        const hunch_piece pieces[] = {{cut, true}, {strlen(text) - cut, true}}, user[] = {{cut, true}, {strlen(text) - cut, false}};
        must(hunch_tokenize_pieces(model, text, strlen(text), pieces, 2, &ids, &n, err));
        assert_int_equal(n, n_whole);
        assert_memory_equal(ids, whole, n * sizeof *ids);
        hunch_free(ids);
        must(hunch_tokenize_pieces(model, text, strlen(text), user, 2, &ids, &n, err));
        assert_int_equal(count(ids, n, BEGIN), 1 + (cut >= 18)); /* the added one, or the text's own in its place */
        hunch_free(ids);
    }
    const hunch_piece short_one = {3, true};
    hunch_error why;
    assert_int_equal(hunch_tokenize_pieces(model, text, strlen(text), &short_one, 1, &ids, &n, &why), HUNCH_USAGE);
    assert_non_null(strstr(why.message, "expected as many in all"));
    assert_null(ids);
    const hunch_piece long_one = {SIZE_MAX, true};
    assert_int_equal(hunch_tokenize_pieces(model, text, strlen(text), &long_one, 1, &ids, &n, &why), HUNCH_USAGE);
    hunch_free(whole);
}

/* ---- the parts of an answer ------------------------------------------------------------------------------------------------ */

typedef struct parts {
    char of[3][200]; /* the bytes of each kind */
    int n;
} parts;

static void take_parts(parts *p, hunch_split *s, const char *text, size_t len, bool ended) {
    hunch_part part;
    while (hunch_split_next(model, s, text, len, ended, &part)) {
        assert_true(part.len > 0 && part.from + part.len == s->done && s->done <= len);
        strncat(p->of[part.kind], text + part.from, part.len);
        p->n++;
    }
    assert_true(!ended || s->done == len);
}

static void test_parts_of_an_answer(void **state) {
    (void)state;
    const struct {
        const char *text, *says, *thinks;
        bool begins;
    } cases[] = {
        {"<think>a b</think>c", "c", "a b", false},
        {"a b</think>c", "c", "a b", true},
        {"a < b <thin> c", "a < b <thin> c", "", false},
        {"x<think>y</think>z<think>w", "xz", "yw", false},
        {"", "", "", true},
        {"<think></think>", "", "", false},
        {"a</think", "", "a</think", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        parts whole = {.n = 0}, grown = {.n = 0};
        hunch_split s = {.thinking = cases[i].begins}, g = s;
        take_parts(&whole, &s, text, strlen(text), true);
        for (size_t len = 0; len <= strlen(text); len++) take_parts(&grown, &g, text, len, false); /* a byte at a time */
        take_parts(&grown, &g, text, strlen(text), true);
        assert_string_equal(whole.of[HUNCH_PART_TEXT], cases[i].says);
        assert_string_equal(whole.of[HUNCH_PART_THINKING], cases[i].thinks);
        for (int k = 0; k < 3; k++) assert_string_equal(whole.of[k], grown.of[k]);
        assert_int_equal(s.thinking, g.thinking);
    }
    assert_true(hunch_prompt_thinks(model, "a<think>\n", 9));
    assert_false(hunch_prompt_thinks(model, "a<think>b", 9));
    assert_false(hunch_prompt_thinks(model, "", 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_are_text),
        cmocka_unit_test(test_without_a_template),
        cmocka_unit_test(test_pieces_do_not_cut_words),
        cmocka_unit_test(test_parts_of_an_answer),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
