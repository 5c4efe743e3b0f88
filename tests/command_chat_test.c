/* SPDX-License-Identifier: Apache-2.0 */
/* command_chat_test.c - `hunch chat` over a pipe: turns, commands, templates, the full context, Ctrl-C. At a terminal:
 * command_editing_test.c. */
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

/* Lines that end in CR LF are the same messages. */
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
    assert_int_equal(r.code, 1); /* for /wrong */
    assert_string_equal(r.out, wanted);
    assert_non_null(strstr(r.err, "20 tokens"));
    assert_non_null(strstr(r.err, "rows restored"));
    assert_non_null(strstr(r.err, "1 answers"));
    assert_non_null(strstr(r.err, "unknown command /wrong"));
    assert_non_null(strstr(r.err, "/system TEXT"));
    result_free(&r);
    json_decref(alone);
}

/* The objects of a conversation, errors too, as a list. */
static json_t *objects_of(const char *text) {
    json_t *list = json_array();
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        assert_int_equal(json_array_append_new(list, json_loadb(line, (size_t)(end - line), 0, NULL)), 0);
    return list;
}

/* One object for every message, also for those that cannot be answered: too long, not UTF-8. */
static void test_chat_context(void **state) {
    (void)state;
    char input[4000] = "Once upon a time\n";
    for (int i = 0; i < 100; i++)
        strcat(input, "there was a big ");
    strcat(input, "\ncaf\xc3\n/reset\nThe dog\n");
    result r = command_input(input, "chat", "-m", STORIES, "--context", "64", "--ignore-eos", "--json-lines");
    assert_int_equal(r.code, 1);
    json_t *all = objects_of(r.out);
    assert_int_equal(json_array_size(all), 4);
    assert_string_equal(text_of(json_array_get(all, 0), "finish"), "length");
    const char *too_long = text_of(json_array_get(all, 1), "error");
    assert_non_null(strstr(too_long, "not sent: with this message the conversation has "));
    if (!strstr(too_long, "the context holds 64; /reset begins anew, /set context=512 makes room"))
        fail_msg("%s", too_long);
    assert_string_equal(text_of(json_array_get(all, 2), "error"), "the message is not valid UTF-8 at byte 3: not sent");
    assert_true(int_of(json_array_get(all, 3), "prompt_tokens") < 10);
    assert_int_equal(count(r.err, "the answer ends here: the context of 64 rows is full; /set context=256 makes room"),
                     2); /* works below */
    assert_int_equal(count(r.err, "not sent"), 2);
    json_decref(all);
    result_free(&r);
    r = command_input("Once upon a time\n", "chat", "-m", STORIES, "--context", "512", "--ignore-eos", "--json-lines",
                      "--no-loop-guard");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "is full; the model takes 512 at most"));
    result_free(&r);
    refused(2, "tokenizer", "chat", "-m", NO_TOKENIZER);
    refused(2, "token 600", "chat", "-m", STORIES, "--logit-bias", "600=1");
    refused(2, "unknown flag --json", "chat", "-m", STORIES, "--json");
}

/* Which turns the model reads if there is no room for all: the system message, the first of --keep, the newest. Each is one token here (a
 * bias makes every answer one token, too), so that the ids identify the prompt. */
static void test_chat_oldest_turns_go(void **state) {
    (void)state;
    static const char source[] = "{% for m in messages %}{{ m['content'] }}{% endfor %}";
    const char *template = text_write("bare.jinja", source);
    for (int keep = 0; keep <= 2; keep++) {
        char input[2000] = "", count_text[20];
        for (int i = 0; i < 12; i++)
            sprintf(input + strlen(input), " dog number %c\n", 'a' + i);
        snprintf(count_text, sizeof count_text, "%d", keep);
        result r = command_input(input, "chat", "-m", STORIES, "--context", "64", "--ignore-eos", "--json-lines", "-n",
                                 "4", "--keep", count_text, "--system", "Once", "--chat-template-file", template);
        assert_int_equal(r.code, 0);
        json_t *all = objects_of(r.out);
        assert_int_equal(json_array_size(all), 12);
        /* the expected prompts: the turns that fit, computed again from the beginning */
        int first = keep, drops = 0;
        for (int i = 0; i < 12; i++) {
            const json_t *now = json_array_get(all, (size_t)i);
            bool found = false;
            for (int from = first < i ? first : i; from <= i && !found; from++) {
                char text[4000] = "Once";
                for (int k = 0; k <= i; k++)
                    if (k < keep || k >= from)
                        sprintf(text + strlen(text), " dog number %c%s", 'a' + k,
                                k < i ? text_of(json_array_get(all, (size_t)k), "text") : "");
                json_t *same = json_of("run", "-m", STORIES, "-p", text, "-n", "4", "--ignore-eos");
                found = json_equal(get(same, "tokens"), get(now, "tokens")) &&
                        int_of(same, "prompt_tokens") == int_of(now, "prompt_tokens");
                json_decref(same);
                if (found && from > first) {
                    drops++;
                    first = from;
                }
            }
            if (!found)
                fail_msg("--keep %d: message %d was answered to something else", keep, i);
            assert_true(int_of(now, "prompt_tokens") <= 60);
        }
        assert_true(drops >= 2);
        assert_int_equal(count(r.err, "the context of 64 rows is full: the "), drops);
        json_decref(all);
        result_free(&r);
    }
    /* if no turn may be left out, the message is refused */
    result r =
        command_input("Once upon a time there was a dog\nThe dog ran and ran and ran to the big park\n", "chat", "-m",
                      STORIES, "--context", "32", "--ignore-eos", "--json-lines", "-n", "8", "--keep", "1");
    assert_int_equal(r.code, 1);
    assert_non_null(
        strstr(r.out, "\"error\": \"not sent: with this message and the turns of --keep the conversation has "));
    result_free(&r);
}

/* A setting changes a conversation as its flag changes `run`. A change that fails has no effect. */
static void test_chat_settings(void **state) {
    (void)state;
    result r =
        command_input("/set top_k=40\n/set --temperature .9\n/set seed 5\nOnce\n/reset\n/set draft ngram\n/set stop "
                      "the\nOnce\n/reset\n"
                      "/set logit 3\n/set temperature 1e9\n/set draft nothing\n/set dry_range 3\n/set ignore_eos "
                      "maybe\n/set context 0\nOnce\n"
                      "/reset\n/set stop default\n/set temperature default\n/set n 3\n/set context 64\nOnce\n/set\n",
                      "chat", "-m", STORIES, "--json-lines", "-n", "20");
    assert_int_equal(r.code, 1);
    json_t *all = objects_of(r.out);
    assert_int_equal(json_array_size(all), 4);
#define DIST "--top-k", "40", "--temperature", "0.9", "--seed", "5"
    json_t *want[] = {json_of("run", "-m", STORIES, "-p", "Once", "-n", "20", DIST),
                      json_of("run", "-m", STORIES, "-p", "Once", "-n", "20", DIST, "--stop", "the"),
                      json_of("run", "-m", STORIES, "-p", "Once", "-n", "20", DIST, "--stop", "the"),
                      json_of("run", "-m", STORIES, "-p", "Once", "-n", "3")};
    for (size_t i = 0; i < 4; i++) {
        tokens_equal(want[i], json_array_get(all, i));
        assert_string_equal(text_of(want[i], "finish"), text_of(json_array_get(all, i), "finish"));
        json_decref(want[i]);
    }
    assert_string_equal(json_string_value(json_array_get(get(json_array_get(all, 2), "drafters"), 0)), "ngram");
    static const char *const said[] = {"there is no setting logit: /set lists them",
                                       "temperature 1e9 is not a number from 0 to 1000",
                                       "unknown kind 'nothing'", "--dry-range does nothing without --dry-multiplier",
                                       "ignore_eos maybe is unknown: expected on, off or default",
                                       "context 0 is not a whole number",
                                       "\nseed                 5\n", "\ncontext              64\n",
                                       "\nmax_tokens           3\n",
                                       "\nxtc_threshold        0.1\n", "\ndry_base             1.75\n",
                                       "\ndry_allowed_length   2\n",
                                       "\nloop_guard           on\n", "\nstop                 none\n"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strstr(r.err, said[i]))
            fail_msg("no \"%s\" in %s", said[i], r.err);
    json_decref(all);
    result_free(&r);
}

/* /save, /load and /again, and what they refuse. */
static void test_chat_files(void **state) {
    (void)state;
    char input[4000];
    const char *talk = path_of("talk.json"), *precious = text_write("precious", "the only copy"), *bad[5];
    bad[0] = text_write("bad0", "{\"messages\": [{\"role\": \"user\", \"content\": 3}]}");
    bad[1] = text_write("bad1", "{\"messages\": []}");
    bad[2] = text_write("bad2", "[{\"content\": \"a\"}]");
    bad[3] = text_write("bad3", "{\"messages\": [");
    bad[4] = text_write("bad4", "7");
    snprintf(input, sizeof input, "/again\nOnce\n/save %s\n/save %s\n/save\n/load\n/save -\n The dog\n", talk,
             precious);
    result r = command_input(input, "chat", "-m", STORIES, "--json-lines", "-n", "8", "--system", "A tale.");
    assert_int_equal(r.code, 1);
    json_t *all = objects_of(r.out);
    assert_int_equal(json_array_size(all), 2);
    assert_non_null(strstr(r.err, "there is no message to answer again"));
    assert_non_null(strstr(r.err, "precious is there and holds no conversation"));
    assert_non_null(strstr(r.err, "/save needs the name of a file"));
    assert_non_null(strstr(r.err, "/load needs the name of a file"));
    assert_non_null(strstr(r.err, "expected its name, not -"));
    char *text = file_read(precious, NULL);
    assert_string_equal(text, "the only copy");
    free(text);
    result_free(&r);
    /* a loaded conversation continues as before; files that are not conversations leave it unchanged */
    snprintf(input, sizeof input, "/load %s\n/load %s\n/load %s\n/load %s\n/load %s\n/load %s\n The dog\n/save %s\n",
             talk, bad[0], bad[1], bad[2], bad[3], bad[4], talk);
    r = command_input(input, "chat", "-m", STORIES, "--json-lines", "-n", "8");
    assert_int_equal(r.code, 1);
    json_t *on = objects_of(r.out);
    assert_int_equal(json_array_size(on), 1);
    tokens_equal(json_array_get(all, 1), json_array_get(on, 0));
    assert_int_equal(int_of(json_array_get(all, 1), "prompt_tokens"), int_of(json_array_get(on, 0), "prompt_tokens"));
    assert_int_equal(count(r.err, folder), 7); /* each names its file */
    assert_non_null(strstr(r.err, "bad0: \"content\" of message 0 is not a text"));
    assert_non_null(strstr(r.err, "bad2: message 0 has no \"role\""));
    result_free(&r);
    json_decref(on);
    json_decref(all);
    /* `run` reads it, and a message without an answer gets one */
    json_t *row = json_load_file(talk, 0, NULL), *messages = get(row, "messages");
    assert_int_equal(json_array_size(messages), 5);
    assert_string_equal(text_of(json_array_get(messages, 0), "role"), "system");
    json_array_remove(messages, 4);
    json_write("talk.json", row);
    json_t *same = json_of("run", "-m", STORIES, "-f", talk, "-n", "8");
    snprintf(input, sizeof input, "/load %s\n/again\n", talk);
    r = command_input(input, "chat", "-m", STORIES, "--json-lines", "-n", "8");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "the last has no answer: /again answers it"));
    on = objects_of(r.out);
    tokens_equal(same, json_array_get(on, 0));
    json_decref(on);
    json_decref(same);
    json_decref(row);
    result_free(&r);
}

/* A template that refuses a conversation: an object that says so. */
static void test_chat_errors_are_objects(void **state) {
    (void)state;
    const char *template =
        text_write("refuses.jinja", "{% for m in messages %}{% if 'rude' in m['content'] %}{{ raise_exception('be "
                                    "polite') }}{% endif %}{{ m['content'] }}{% endfor %}");
    result r = command_input("Once\nrude words\n dog\n", "chat", "-m", STORIES, "--json-lines", "-n", "4",
                             "--chat-template-file", template);
    assert_int_equal(r.code, 1);
    json_t *all = objects_of(r.out);
    assert_int_equal(json_array_size(all), 3);
    assert_non_null(strstr(text_of(json_array_get(all, 1), "error"), "be polite"));
    assert_int_equal(json_object_size(json_array_get(all, 1)), 1);
    assert_true(int_of(json_array_get(all, 2), "prompt_tokens") > int_of(json_array_get(all, 0), "prompt_tokens"));
    json_decref(all);
    result_free(&r);
}

static void test_chat_blocks(void **state) {
    (void)state;
    json_t *turns = chat("\"\"\"\n/save the\ndog\n\"\"\"\n/reset\n\"\"\"The \\\ndog\"\"\"\n/reset\n\"\"\"The dog\"\"\" "
                         " \n/reset\n\"\"\"The\ndog",
                         "-n", "4");
    static const char *const said[] = {"/save the\ndog", "The \\\ndog", "The dog", "The\ndog"};
    assert_int_equal(json_array_size(turns), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *same = json_of("run", "-m", STORIES, "-p", said[i], "-n", "4");
        tokens_equal(same, json_array_get(turns, i));
        assert_int_equal(int_of(same, "prompt_tokens"), int_of(json_array_get(turns, i), "prompt_tokens"));
        json_decref(same);
    }
    json_decref(turns);
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

/* ---- calls of tools --------------------------------------------------------------------------------------------- */

static const char calls_template[] =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": "
    "\"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}\n{% endfor %}"
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}";
static const char calls_tools[] = "[{\"function\": {\"name\": \"look\"}}, {\"function\": {\"name\": \"ping\"}}]";
static const char calls_grammar[] = "root ::= \"So.\" look ping\n"
                                    "look ::= open \"look\" args \"{\\\"city\\\": \\\"Bern\\\"}\" close\n"
                                    "ping ::= open \"ping\" args \"{}\" close\n"
                                    "open ::= \"\\n<tool_call>\\n{\\\"name\\\": \\\"\"\n"
                                    "args ::= \"\\\", \\\"arguments\\\": \"\n"
                                    "close ::= \"}\\n</tool_call>\"\n";
static const char calls_input[] = "hello\n/tool\nNo\n/tool 21\n/set grammar default\n/tool pong\n/tool more\n";

/* Calls are a line each, wait for their results in their order, and stand in the conversation as calls. */
static void test_chat_calls(void **state) {
    (void)state;
    char template[300], tools[300], grammar[300], talk[300], input[600];
    snprintf(template, sizeof template, "%s", text_write("calls.jinja", calls_template));
    snprintf(tools, sizeof tools, "%s", text_write("calls.json", calls_tools));
    snprintf(grammar, sizeof grammar, "%s", text_write("calls.gbnf", calls_grammar));
    snprintf(talk, sizeof talk, "%s", text_write("called.json", ""));
    snprintf(input, sizeof input, "%s/save %s\n", calls_input, talk);
    result r = command_input(input, "chat", "-m", STORIES, "-n", "150", "--context", "512", "--chat-template-file", template, "--tools",
                             tools, "--grammar", grammar);
    assert_int_equal(r.code, 1); /* for No, and for the last result */
    const char wanted[] = "So.\n[look {\"city\": \"Bern\"}]\n[ping {}]\n";
    if (strncmp(r.out, wanted, strlen(wanted)) != 0) fail_msg("%s", r.out);
    assert_int_equal(count(r.err, "/tool RESULT answers the call of look\n"), 1);
    assert_non_null(strstr(r.err, "look {\"city\": \"Bern\"}\nping {}\n"));
    assert_int_equal(count(r.err, "not sent: a call waits"), 1);
    assert_int_equal(count(r.err, "/tool RESULT answers the call of ping\n"), 1);
    assert_int_equal(count(r.err, "no call waits for a result"), 1);
    result_free(&r);
    /* the last answer is that of `hunch run` to the same messages */
    json_t *all = json_load_file(talk, 0, NULL), *messages = json_object_get(all, "messages");
    const json_t *call = json_array_get(json_object_get(json_array_get(messages, 1), "tool_calls"), 1);
    const json_t *answer = json_array_get(messages, 4);
    assert_int_equal(json_array_size(messages), 5);
    assert_string_equal(text_of(json_object_get(call, "function"), "name"), "ping");
    assert_string_equal(text_of(json_array_get(messages, 3), "tool_call_id"), text_of(call, "id"));
    char *said = strdup(text_of(answer, "content"));
    json_array_remove(messages, 4);
    json_dump_file(all, talk, 0);
    json_t *same =
        json_of("run", "-m", STORIES, "-f", talk, "-n", "150", "--context", "512", "--chat-template-file", template, "--tools", tools);
    assert_string_equal(text_of(same, "text"), said);
    free(said);
    json_decref(same);
    json_decref(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat),         cmocka_unit_test(test_chat_template),    cmocka_unit_test(test_chat_text),
        cmocka_unit_test(test_chat_carriage_returns),
        cmocka_unit_test(test_chat_context), cmocka_unit_test(test_chat_interrupted),
        cmocka_unit_test(test_chat_oldest_turns_go), cmocka_unit_test(test_chat_settings),
        cmocka_unit_test(test_chat_files),
        cmocka_unit_test(test_chat_errors_are_objects), cmocka_unit_test(test_chat_blocks),
        cmocka_unit_test(test_chat_calls),
    };
    unsetenv("NO_COLOR");
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
