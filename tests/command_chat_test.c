/* SPDX-License-Identifier: Apache-2.0 */
/* command_chat_test.c - `hunch chat` over a pipe: turns, commands, templates, the full context, Ctrl-C. */
#include "command.h"

static int count(const char *text, const char *word) {
    int n = 0;
    while ((text = strstr(text, word))) {
        n++;
        text++;
    }
    return n;
}

/* ---- chat ------------------------------------------------------------------------------------------------------- */

/* The objects of a conversation, as a list. */
static json_t *chat_of(const char *input, const char *const *args) {
    result r = command_input_args(input, args);
    json_t *list = json_array();
    for (char *line = r.out, *end; (end = strchr(line, '\n')); line = end + 1) {
        json_t *turn = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (!turn)
            fail_msg("no JSON: %s", line);
        run_shape(turn);
        json_array_append_new(list, turn);
    }
    if (r.code != 0)
        fail_msg("exit code %d, %s", r.code, r.err);
    result_free(&r);
    return list;
}
#define chat(input, ...) chat_of(input, (const char *const[]){"chat", "-m", STORIES, "--json-lines", __VA_ARGS__, NULL})

static void test_chat(void **state) {
    (void)state;
    json_t *alone = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "200");
    json_t *turns = chat("Once upon a time\n\n   \n The dog\n/reset\nOnce upon \\\na time", "-n", "200");
    assert_int_equal(json_array_size(turns), 3);
    const json_t *first = json_array_get(turns, 0), *second = json_array_get(turns, 1),
                 *third = json_array_get(turns, 2);
    tokens_equal(alone, first);
    assert_true(int_of(second, "prompt_tokens") > int_of(first, "prompt_tokens") + 100);
    assert_true(int_of(second, "prefix_rows") >= 64); /* the pages of the first turn */
    /* no template: the conversation is one text */
    char whole[4096];
    snprintf(whole, sizeof whole, "Once upon a time%s The dog", text_of(first, "text"));
    json_t *same = json_of("run", "-m", STORIES, "-p", whole, "-n", "200");
    tokens_equal(same, second);
    assert_int_equal(int_of(same, "prompt_tokens"), int_of(second, "prompt_tokens"));
    json_decref(same);
    same = json_of("run", "-m", STORIES, "-p", "Once upon \na time", "-n", "200");
    tokens_equal(same, third);
    json_decref(same);
    json_decref(turns);
    json_decref(alone);
}

/* Lines that end as files from elsewhere do say the same. */
static void test_chat_carriage_returns(void **state) {
    (void)state;
    json_t *a = chat("Once\n\nupon \\\na time\n/exit\nnever\n", "-n", "4");
    json_t *b = chat("Once\r\n\r\nupon \\\r\na time\r\n/exit\r\nnever\r\n", "-n", "4");
    assert_int_equal(json_array_size(a), 2);
    assert_int_equal(json_array_size(b), 2);
    for (size_t i = 0; i < 2; i++) {
        tokens_equal(json_array_get(a, i), json_array_get(b, i));
        assert_int_equal(int_of(json_array_get(a, i), "prompt_tokens"), int_of(json_array_get(b, i), "prompt_tokens"));
    }
    json_decref(a);
    json_decref(b);
}

static void test_chat_template(void **state) {
    (void)state;
    const char *source =
        text_write("chat.jinja", "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}{{ tail }}");
    json_t *turns = chat("hello\n/system be kind\nbye\n/system\n/exit\nnever\n", "-n", "8", "--chat-template-file",
                         source, "--template-arg", "tail=<think>", "--system", "be brief");
    assert_int_equal(json_array_size(turns), 2);
    char text[2000];
    snprintf(text, sizeof text, "[system] be brief\n[user] hello\n<think>");
    json_t *same = json_of("run", "-m", STORIES, "-p", text, "-n", "8");
    tokens_equal(same, json_array_get(turns, 0));
    json_decref(same);
    snprintf(text, sizeof text, "[system] be kind\n[user] hello\n[assistant] %s\n[user] bye\n<think>",
             text_of(json_array_get(turns, 0), "text"));
    same = json_of("run", "-m", STORIES, "-p", text, "-n", "8");
    tokens_equal(same, json_array_get(turns, 1));
    json_decref(same);
    json_decref(turns);
}

static void test_chat_text(void **state) {
    (void)state;
    json_t *alone = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "20");
    result r = command_input("Once upon a time\n/stats\n/wrong\n/help\n", "chat", "-m", STORIES, "-n", "20");
    char wanted[1000];
    snprintf(wanted, sizeof wanted, "%s\n", text_of(alone, "text"));
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, wanted);
    assert_non_null(strstr(r.err, "20 tokens"));
    assert_non_null(strstr(r.err, "rows restored"));
    assert_non_null(strstr(r.err, "1 answers"));
    assert_non_null(strstr(r.err, "unknown command /wrong"));
    assert_non_null(strstr(r.err, "/system TEXT"));
    result_free(&r);
    json_decref(alone);
}

static void test_chat_context(void **state) {
    (void)state;
    char input[4000] = "Once upon a time\n";
    for (int i = 0; i < 100; i++)
        strcat(input, "there was a big ");
    strcat(input, "\ncaf\xc3\n/reset\nThe dog\n");
    result r = command_input(input, "chat", "-m", STORIES, "--context", "64", "--ignore-eos", "--json-lines");
    assert_int_equal(r.code, 0);
    assert_int_equal(count(r.out, "\n"), 2);
    char *end = strchr(r.out, '\n');
    *end = 0;
    json_t *first = json_loads(r.out, 0, NULL), *second = json_loads(end + 1, 0, NULL);
    assert_string_equal(text_of(first, "finish"), "length");
    assert_true(int_of(second, "prompt_tokens") < 10);
    assert_int_equal(count(r.err, "context of 64 rows is full"), 2);
    assert_int_equal(count(r.err, "rows of the context are used"), 2); /* once before /reset, once behind it */
    assert_int_equal(count(r.err, "not sent"), 2);
    assert_non_null(strstr(r.err, "the context holds 64"));
    assert_non_null(strstr(r.err, "full; /reset begins anew, --context 256 makes room")); /* a cure that works, below */
    assert_non_null(strstr(r.err, "UTF-8 at byte 3"));
    json_decref(first);
    json_decref(second);
    result_free(&r);
    r = command_input("Once upon a time\n", "chat", "-m", STORIES, "--context", "512", "--ignore-eos", "--json-lines");
    assert_non_null(strstr(r.err, "full; /reset begins anew, the model takes 512 at most"));
    result_free(&r);
    refused(2, "tokenizer", "chat", "-m", NO_TOKENIZER);
    refused(2, "token 600", "chat", "-m", STORIES, "--logit-bias", "600=1");
    refused(2, "unknown flag --json", "chat", "-m", STORIES, "--json");
}

static void wait_for_output(const char *path, off_t size) {
    struct stat st = {0};
    for (int i = 0; i < 600 && st.st_size < size; i++) {
        usleep(50000);
        if (stat(path, &st) != 0)
            st.st_size = 0;
    }
    assert_true(st.st_size >= size);
}

/* Ctrl-C ends the answer, the next line is answered, Ctrl-C at the prompt ends the command. */
static void test_chat_interrupted(void **state) {
    (void)state;
    const char *const args[] = {
        "chat", "-m", STORIES, "--ignore-eos", "--draft", "forced,accept=0,depth=1,cost_us=50000", NULL};
    char out[300], err[300];
    int ends[2];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    unlink(out);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    input_fd = ends[0];
    pid_t child = command_start(args, out, err);
    input_fd = -1;
    close(ends[0]);
    for (int turn = 0; turn < 2; turn++) {
        struct stat before = {0};
        if (turn)
            assert_int_equal(stat(out, &before), 0);
        assert_int_equal(write(ends[1], "Once\n", 5), 5);
        wait_for_output(out, before.st_size + 3);
        kill(child, SIGINT);
        for (int i = 0; i < 600; i++) { /* until the turn has been reported */
            usleep(50000);
            char *text = file_read(err, NULL);
            bool reported = count(text, "finish cancelled") > turn;
            free(text);
            if (reported)
                break;
        }
    }
    usleep(100000);
    kill(child, SIGINT);
    assert_int_equal(child_wait(child), 130);
    close(ends[1]);
    char *text = file_read(err, NULL);
    assert_int_equal(count(text, "finish cancelled"), 2);
    free(text);
}

/* ---- main ------------------------------------------------------------------------------------------------------ */

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat),         cmocka_unit_test(test_chat_template),    cmocka_unit_test(test_chat_text),
        cmocka_unit_test(test_chat_carriage_returns),
        cmocka_unit_test(test_chat_context), cmocka_unit_test(test_chat_interrupted),
    };
    unsetenv("NO_COLOR");
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
