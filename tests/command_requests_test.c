/* SPDX-License-Identifier: Apache-2.0 */
/* command_requests_test.c - what `hunch run` may ask of an answer beside sampling: where it may end, who drafts for it, values of its
 * prompt; by flags and by the keys of rows, which are the same. */
#include "command.h"

#define PROMPT "Once upon a time"

/* The answer to the prompt by a row with these keys, drafted by ngram and suffix. */
static json_t *row_of(const char *keys) {
    char text[300];
    snprintf(text, sizeof text, "{\"prompt\": \"" PROMPT "\", %s}", keys);
    return json_of("run", "-m", STORIES, "-n", "150", "--draft", "ngram", "--draft", "suffix", "-f", text_write("key.jsonl", text));
}

static json_t *flags_of(const char *const *flags) {
    const char *args[20] = {"run", "-m", STORIES, "-n", "150", "--draft", "ngram", "--draft", "suffix", "-p", PROMPT, "--json"};
    for (int k = 0; flags[k]; k++)
        args[12 + k] = flags[k];
    return json_args(args);
}

/* Sorted, except what differs from run to run. */
static char *stable(json_t *answer) {
    json_object_del(answer, "timing");
    json_object_del(answer, "peak_rss_mib");
    json_object_del(answer, "seed");
    return json_dumps(answer, JSON_SORT_KEYS);
}

/* Each key is equivalent to its flag, and changes the answer. */
static void test_keys(void **state) {
    (void)state;
    static const struct {
        const char *keys, *flags[4];
    } rows[] = {
        {"\"stop_token_ids\": [421, 338]", {"--stop-token", "421,338"}},
        {"\"stop_token_ids\": [421, 338], \"min_tokens\": 21", {"--stop-token=421,338", "--min-tokens=21"}},
        {"\"drafters\": []", {"--drafters", "none"}},
        {"\"drafters\": \"suffix\"", {"--drafters", "suffix"}},
        {"\"draft_depth\": 1", {"--draft-depth", "1"}},
        {"\"draft_rows\": 2", {"--draft-rows", "2"}},
        {"\"prompt_logprobs\": true", {"--prompt-logprobs"}},
        {"\"pooling\": \"mean\"", {"--pooling", "mean"}},
        {"\"pooling\": \"last\"", {"--pooling", "last"}},
        {"\"prompt_logprobs\": true, \"prompt_only\": true", {"--prompt-logprobs", "--prompt-only"}},
    };
    json_t *plain = row_of("\"id\": 1");
    char *before = stable(plain);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *row = row_of(rows[i].keys), *flags = flags_of(rows[i].flags);
        char *by_row = stable(row), *by_flags = stable(flags);
        assert_string_equal(by_row, by_flags);
        if (strcmp(by_row, before) == 0)
            fail_msg("%s changes nothing", rows[i].keys);
        free(before);
        free(by_flags);
        before = by_row;
        json_decref(row);
        json_decref(flags);
    }
    free(before);
    json_decref(plain);
}

/* What ended the text, by name. */
static void test_stop_reasons(void **state) {
    (void)state;
    json_t *whole = row_of("\"id\": 1");
    const json_t *tokens = get(whole, "tokens");
    assert_true(json_is_null(get(whole, "stop_reason")));
    assert_string_equal(text_of(whole, "finish"), "length");
    char keys[100];
    const long long tenth = json_integer_value(json_array_get(tokens, 9));
    snprintf(keys, sizeof keys, "\"stop_token_ids\": [%lld], \"min_tokens\": 3", tenth);
    json_t *by_token = row_of(keys), *by_text = row_of("\"stop\": [\"xyzzy\", \"Lily\"]");
    assert_string_equal(text_of(by_token, "finish"), "stop");
    assert_int_equal(int_of(by_token, "stop_reason"), tenth);
    assert_string_equal(text_of(by_text, "stop_reason"), "Lily");
    json_decref(by_text);
    by_text = flags_of((const char *const[]){"--stop", "xyzzy", "--stop", "Lily", NULL});
    assert_string_equal(text_of(by_text, "stop_reason"), "Lily");
    json_decref(by_text);
    json_decref(by_token);
    by_token = flags_of((const char *const[]){"--deadline", "1e-9", NULL});
    assert_string_equal(text_of(by_token, "finish"), "deadline");
    json_decref(by_token);
    json_decref(whole);
}

/* Drafters that may not propose give no token. */
static void test_drafters(void **state) {
    (void)state;
    json_t *one = flags_of((const char *const[]){"--drafters", "suffix", "--ignore-eos", NULL});
    const json_t *from = get(one, "provenance");
    for (size_t i = 0; i < json_array_size(from); i++)
        assert_int_not_equal(json_integer_value(json_array_get(from, i)), 0);
    assert_true(int_of(one, "drafted") > 0);
    json_decref(one);
    one = row_of("\"drafters\": [\"none\"]");
    assert_int_equal(int_of(one, "drafted"), 0);
    json_decref(one);
    refused(2, "drafters: \"eagle\" is none", "run", "-m", STORIES, "-p", "a", "--draft", "ngram", "--drafters", "eagle");
    refused(2, "drafters: \"n\" is none", "run", "-m", STORIES, "-p", "a", "--draft", "ngram", "--drafters", "n");
}

/* By the marks of a given template; the flag, and the key of a row, which counts. */
static void test_thinking_budget(void **state) {
    (void)state;
    const char *source = text_write("think.jinja", "{# </think> #}{{ bos_token }}{{ messages[0].content }}<think>");
    const char *row = text_write("think.jsonl", "{\"prompt\": \"" PROMPT "\", \"thinking_budget\": 4}");
    json_t *by_flag = json_of("run", "-m", STORIES, "-n", "40", "--chat-template-file", source, "-p", PROMPT, "--thinking-budget", "4");
    json_t *by_row = json_of("run", "-m", STORIES, "-n", "40", "--chat-template-file", source, "-f", row, "--thinking-budget", "9");
    json_t *free = json_of("run", "-m", STORIES, "-n", "4", "--chat-template-file", source, "-p", PROMPT);
    tokens_equal(by_flag, by_row);
    assert_string_equal(text_of(by_flag, "thinking"), text_of(free, "thinking"));
    assert_true(*text_of(by_flag, "answer"));
    json_decref(by_flag);
    json_decref(by_row);
    json_decref(free);
    refused(2, "no marks around thinking", "run", "-m", STORIES, "-p", "a", "--thinking-budget", "4");
}

/* The prompt's values are those of `score` and of the model's width. */
static void test_values_of_prompts(void **state) {
    (void)state;
    json_t *r = flags_of((const char *const[]){"--prompt-logprobs", "--logprobs=2", "--pooling=mean", "--prompt-only", NULL});
    const json_t *logs = get(r, "prompt_logprobs"), *top = get(r, "prompt_top_logprobs");
    const size_t n = (size_t)int_of(r, "prompt_tokens");
    assert_int_equal(json_array_size(get(r, "tokens")), 0);
    assert_int_equal(json_array_size(logs), n);
    assert_int_equal(json_array_size(top), n);
    assert_true(json_is_null(json_array_get(logs, 0)) && json_is_null(json_array_get(top, 0)));
    double sum = 0;
    for (size_t i = 1; i < n; i++) {
        const double log_p = json_number_value(json_array_get(logs, i));
        assert_int_equal(json_array_size(json_array_get(top, i)), 2);
        assert_true(log_p <= real_of(json_array_get(json_array_get(top, i), 0), "logprob"));
        sum += log_p;
    }
    json_t *score = json_of("score", "-m", STORIES, "-p", PROMPT);
    near(exp(-sum / (double)(n - 1)), real_of(score, "perplexity"), 1e-5);
    assert_int_equal(json_array_size(get(r, "pooled")), 64);
    json_decref(score);
    json_decref(r);
    refused(2, "--prompt-logprobs needs --json", "run", "-m", STORIES, "-p", "a", "--prompt-logprobs");
    refused(2, "--pooling needs --json", "run", "-m", STORIES, "-p", "a", "--pooling", "last");
}

/* Of waiting rows the one of the largest priority is answered first; texts of another salt share nothing. */
static void test_rows_that_wait(void **state) {
    (void)state;
    static const char rows[] = "{\"prompt\": \"" PROMPT "\", \"id\": \"a\"}\n"
                               "{\"prompt\": \"" PROMPT "\", \"id\": \"b\", \"cache_salt\": \"x\"}\n"
                               "{\"prompt\": \"" PROMPT "\", \"id\": \"c\", \"priority\": 2}\n";
    static const char *const order[] = {"a", "c", "b"};
    result r = command("run", "-m", STORIES, "-f", text_write("wait.jsonl", rows), "--json-lines", "-n", "30");
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        json_t *row = json_loadb(r.out + at, strcspn(r.out + at, "\n"), 0, NULL);
        assert_non_null(row);
        assert_string_equal(text_of(row, "id"), order[i]);
        assert_int_equal(int_of(row, "prefix_rows") > 0, i == 1);
        json_decref(row);
        at += strcspn(r.out + at, "\n") + 1;
    }
    result_free(&r);
}

static void test_wrong_keys(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"{\"prompt\": \"a\", \"pooling\": \"max\"}", "\"pooling\" is not one of none, mean or last"},
        {"{\"prompt\": \"a\", \"prompt_logprobs\": 1}", "\"prompt_logprobs\" is not true or false"},
        {"{\"prompt\": \"a\", \"cache_salt\": \"\"}", "\"cache_salt\" is not a text"},
        {"{\"prompt\": \"a\", \"draft_depth\": 0}", "\"draft_depth\" is not a whole number from 1"},
        {"{\"prompt\": \"a\", \"stop_token_ids\": [1, -1]}", "\"stop_token_ids\": entry 1 is not a token id"},
        {"{\"prompt\": \"a\", \"drafters\": [1]}", "\"drafters\" is not a text, or a list of texts"},
        {"{\"prompt\": \"a\", \"deadline\": 0}", "\"deadline\" is not a number above 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(2, wrong[i].says, "run", "-m", STORIES, "-f", text_write("no.json", wrong[i].text));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys),     cmocka_unit_test(test_stop_reasons),
                                       cmocka_unit_test(test_drafters), cmocka_unit_test(test_thinking_budget),
                                       cmocka_unit_test(test_values_of_prompts),
                                       cmocka_unit_test(test_rows_that_wait), cmocka_unit_test(test_wrong_keys)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
