/* SPDX-License-Identifier: Apache-2.0 */
/* command_harmony_test.c - answers in channels by the command: `run --json`, rows of a file, a text; and `chat`, whose earlier turns are
 * what the template wants of them. */
#include "command.h"
#include "harmony_folder.h"

static char model[300];

static int setup(void **state) {
    const int code = folder_make(state);
    snprintf(model, sizeof model, "%s/harmony", folder);
    harmony_folder(model);
    return code;
}

static void answered(const json_t *one) {
    assert_string_equal(text_of(one, "text"), HARMONY_ANSWER);
    assert_string_equal(text_of(one, "answer"), HARMONY_SAYS);
    assert_string_equal(text_of(one, "thinking"), HARMONY_THINKING);
    assert_string_equal(text_of(one, "finish"), "stop");
}

static void test_run(void **state) {
    (void)state;
    json_t *one = json_of("run", "-m", model, "-p", HARMONY_QUESTION, "--temperature", "0", "-n", "100");
    answered(one);
    json_decref(one);
    result r = command("run", "-m", model, "-f", text_write("rows.jsonl", "{\"prompt\": \"" HARMONY_QUESTION "\"}\n"), "--temperature", "0",
                       "--json-lines", "-n", "100");
    json_t *row = json_loads(r.out, 0, NULL);
    assert_non_null(row);
    answered(row);
    json_decref(row);
    result_free(&r);
    r = command("run", "-m", model, "-p", HARMONY_QUESTION, "--temperature", "0", "-n", "100");
    assert_string_equal(r.out, HARMONY_ANSWER "\n");
    result_free(&r);
    /* what no template made is no conversation */
    one = json_of("run", "-m", model, "--raw", "-p", "<|start|>user<|message|>" HARMONY_QUESTION "<|end|><|start|>assistant",
                  "--temperature", "0", "-n", "100");
    assert_string_equal(text_of(one, "text"), "analysis" HARMONY_THINKING "assistantfinal" HARMONY_SAYS);
    assert_true(json_is_null(get(one, "answer")) && json_is_null(get(one, "thinking")));
    json_decref(one);
}

static void test_chat(void **state) {
    (void)state;
    char input[400];
    snprintf(input, sizeof input, HARMONY_QUESTION "\n" HARMONY_QUESTION "\n/save %s\n", path_of("talk.json"));
    result r = command_input(input, "chat", "-m", model, "--json-lines", "--temperature", "0", "-n", "100");
    assert_int_equal(r.code, 0);
    for (char *line = r.out, *end; (end = strchr(line, '\n')); line = end + 1) {
        json_t *turn = json_loadb(line, (size_t)(end - line), 0, NULL);
        answered(turn);
        json_decref(turn);
    }
    result_free(&r);
    json_t *talk = json_load_file(path_of("talk.json"), 0, NULL), *messages = get(talk, "messages");
    assert_int_equal(json_array_size(messages), 4);
    for (size_t i = 1; i < 4; i += 2) {
        assert_string_equal(text_of(json_array_get(messages, i), "content"), HARMONY_SAYS);
        assert_string_equal(text_of(json_array_get(messages, i), "thinking"), HARMONY_THINKING);
    }
    json_decref(talk);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_run), cmocka_unit_test(test_chat)};
    return cmocka_run_group_tests(tests, setup, folder_remove);
}
