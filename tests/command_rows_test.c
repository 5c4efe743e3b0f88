/* SPDX-License-Identifier: Apache-2.0 */
/* command_rows_test.c - prompts that are JSON: conversations in every format, settings of a row, tools; and files of
 * rows: each answer is the same as alone, in any order, also when resumed. */
#include "base/run_mode_for_tests.h"
#include "command.h"

/* A template that prints roles, contents and the names of tools. */
static const char *template_write(void) {
    return text_write("own.jinja", "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
                                   "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}");
}

/* The answer to one file, by that template. */
static json_t *answer_of(const char *name, const char *text) {
    return json_of("run", "-m", STORIES, "-f", text_write(name, text), "-n", "12", "--chat-template-file",
                   template_write());
}

static void same_answer(const char *name, const char *a, const char *b) {
    json_t *one = answer_of(name, a), *other = answer_of("other.jsonl", b);
    assert_int_equal(int_of(one, "prompt_tokens"), int_of(other, "prompt_tokens"));
    tokens_equal(one, other);
    json_decref(one);
    json_decref(other);
}

/* ---- shapes of a conversation ---------------------------------------------------------------------------------- */

#define TALK "[{\"role\": \"system\", \"content\": \"Be kind.\"}, {\"role\": \"user\", \"content\": \"Once\\nupon\"}]"

static void test_conversations(void **state) {
    (void)state;
    static const char row[] = "{\"messages\": " TALK "}\n";
    same_answer("talk.json", TALK, row);
    same_answer("talk.txt", "\n" TALK "\n", row);
    same_answer("talk.jsonl", TALK, row);
    same_answer("talk.json",
                "[\n {\"role\": \"system\",\n  \"content\": \"Be kind.\"},\n\n {\"role\": \"user\", \"content\": "
                "\"Once\\nupon\"}\n]",
                row);
    same_answer("talk.json", "{\n \"model\": null, \"id\": \"x\",\n \"messages\": " TALK "\n}", row);
    /* parts of text are joined */
    same_answer("talk.json",
                "[{\"role\": \"system\", \"content\": [{\"type\": \"text\", \"text\": \"Be kind.\"}]},"
                "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Once\"}, {\"type\": \"text\", "
                "\"text\": \"upon\"}]}]",
                row);
    /* a text that is JSON but not a conversation stays a text */
    json_t *text = answer_of("list.json", "[1, 2]"),
           *same = json_of("run", "-m", STORIES, "-p", "[1, 2]", "-n", "12", "--chat-template-file", template_write());
    tokens_equal(text, same);
    json_decref(text);
    json_decref(same);
}

static void test_conversations_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"{\"messages\": []}", "no.json:1: \"messages\" is empty"},
        {"\n{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
         "no.json:2: part 0 of message 0 is of type \"image_url\""},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": 5}]}]",
         "part 0 of message 0 has no \"text\""},
        {"[{\"role\": \"user\", \"content\": [\"a\"]}]", "part 0 of message 0 is not an object"},
        {"[{\"role\": \"user\", \"content\": \"a\"}, 5]", "message 1 is not an object"},
        {"{\"prompt\": \"a\", \"id\": 1.5}", "\"id\""},
        {"{\"prompt\": \"a\", \"tools\": [1, 2]}", "tool 0"},
        {"{\"tokens\": [1], \"tools\": [{\"function\": {\"name\": \"f\"}}]}", "\"tools\""},
        {"{\"prompt\": \"a\", \"temperature\": \"hot\"}", "\"temperature\" is not a number from 0 to 1000"},
        {"{\"prompt\": \"a\", \"top_p\": 0}", "\"top_p\" is not a number above 0 and at most 1"},
        {"{\"prompt\": \"a\", \"top_k\": 1.5}", "\"top_k\" is not a whole number from 0"},
        {"{\"prompt\": \"a\", \"max_tokens\": 0}", "\"max_tokens\" is not a whole number from 1 to 2147483647, or -1"},
        {"{\"prompt\": \"a\", \"temperature\": 1e999}", "\"temperature\" is not a number from 0 to 1000, it is 1e999"},
        {"{\"prompt\": \"a\", \"temperature\": -5.25}", "\"temperature\" is not a number from 0 to 1000, it is -5.25"},
        {"{\"prompt\": \"a\", \"top_k\": 18446744073709551615}", " to 2147483647, it is 18446744073709551615"},
        {"{\"prompt\": \"a\", \"max_tokens\": -1e400}", " to 2147483647, or -1 for no limit, it is -1e400"},
        {"{\"prompt\": \"a\", \"seed\": 9223372036854775808}", "from -1 to 9223372036854775807, it is 9223372036854775808"},
        {"{\"tokens\": [1, 1e999]}", "entry 1 is not a token id (a whole number from 0 to 2147483647), it is 1e999"},
        {"{\"messages\": [18446744073709551615]}", "message 0 is not an object"},
        {"{\"prompt\": \"a\", \"json_schema\": 1e999}", "\"json_schema\" is not a schema"},
        {"{\"prompt\": \"a\", \"id\": 1e999}", "\"id\" is neither a text nor a whole number"},
        {"{\"prompt\": \"a\", \"seed\": -2}", "\"seed\""},
        {"{\"prompt\": \"a\", \"stop\": \"\"}", "\"stop\""},
        {"{\"prompt\": \"a\", \"stop\": [\"b\", 1]}", "\"stop\""},
        {"{\"prompt\": \"a\", \"stop\": \"b\\u0000c\"}", "\"stop\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(2, wrong[i].says, "run", "-m", STORIES, "-f", text_write("no.json", wrong[i].text));
}

/* What is not used may be any number, and an id beyond 64 bits is that of the answer. */
static void test_large_numbers(void **state) {
    (void)state;
    static const char row[] = "{\"prompt\": \"Once\", \"id\": 18446744073709551615, \"note\": [1e999, {\"a\": -9223372036854775809}], "
                              "\"json_schema\": {\"type\": \"integer\", \"minimum\": 18446744073709551615, "
                              "\"maximum\": 18446744073709551615}}\n";
    result r = command("run", "-m", STORIES, "-n", "40", "--json-lines", "-f", text_write("large.jsonl", row));
    if (r.code != 0) fail_msg("%s", r.err);
    assert_int_equal(strncmp(r.out, "{\"id\": 18446744073709551615,", 28), 0);
    assert_non_null(strstr(r.out, "\"18446744073709551615\"")); /* the answer's text */
    result_free(&r);
}

/* ---- settings of a row ------------------------------------------------------------------------------------------- */

/* Each key is equivalent to its flag. */
static void test_row_keys(void **state) {
    (void)state;
    static const struct {
        const char *keys, *flags[5];
    } rows[] = {
        {"\"max_tokens\": 7", {"-n", "7"}},
        {"\"max_completion_tokens\": 9", {"-n", "9"}},
        {"\"max_completion_tokens\": 6, \"max_tokens\": 8", {"-n", "6"}}, /* of both the first counts, wherever it stands */
        {"\"max_tokens\": 8, \"max_completion_tokens\": 5", {"-n", "5"}},
        {"\"stop\": [\"xyzzy\", \"Lily\"]", {"--stop", "Lily"}},
        {"\"temperature\": 1.5, \"seed\": 5", {"--temperature=1.5", "--seed=5"}},
        {"\"temperature\": 1.5, \"seed\": 5, \"top_k\": 3", {"--temperature=1.5", "--seed=5", "--top-k=3"}},
        {"\"temperature\": 1.5, \"seed\": 5, \"top_p\": 0.5", {"--temperature=1.5", "--seed=5", "--top-p=0.5"}},
        {"\"temperature\": 1.5, \"seed\": 5, \"min_p\": 0.3", {"--temperature=1.5", "--seed=5", "--min-p=0.3"}},
        {"\"repetition_penalty\": 3", {"--repetition-penalty", "3"}},
        {"\"presence_penalty\": 2, \"frequency_penalty\": 1", {"--presence-penalty=2", "--frequency-penalty=1"}},
        {"\"stop\": \"Lily\", \"temperature\": null", {"--stop", "Lily"}},
    };
    json_t *plain = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "40"), *before = json_incref(plain);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        const char *const *f = rows[i].flags;
        snprintf(text, sizeof text, "{\"prompt\": \"Once upon a time\", %s}", rows[i].keys);
        json_t *row = json_of("run", "-m", STORIES, "-n", "40", "-f", text_write("key.jsonl", text));
        const char *args[16] = {"run", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--json"};
        for (int k = 0; f[k]; k++)
            args[8 + k] = f[k];
        json_t *flags = json_args(args);
        tokens_equal(row, flags);
        assert_string_equal(text_of(row, "text"), text_of(flags, "text"));
        if (json_equal(get(row, "tokens"), get(before, "tokens")))
            fail_msg("%s changes nothing", rows[i].keys);
        json_decref(before);
        before = row;
        json_decref(flags);
    }
    json_decref(before);
    json_decref(plain);
    json_t *c = json_of("compare", "-m", STORIES, "--draft", "ngram", "-f",
                        text_write("key.jsonl", "{\"prompt\": \"Once\", \"max_tokens\": 19}\n"
                                                "{\"prompt\": \"Once\", \"max_tokens\": 300, \"stop\": \"Lily\"}\n"));
    const json_t *each = get(json_array_get(get(c, "methods"), 0), "per_prompt");
    assert_int_equal(int_of(json_array_get(each, 0), "tokens"), 19);
    assert_in_range(int_of(json_array_get(each, 1), "tokens"), 1, 18);
    json_decref(c);
}

/* Unknown keys are named once; those of our own files and of Spec-Bench are not. */
static void test_unknown_keys(void **state) {
    (void)state;
    const char *rows =
        text_write("odd.jsonl",
                   "{\"prompt\": \"a\", \"colour\": 1}\n{\"prompt\": \"b\", \"colour\": 2, \"mood\": 3, \"id\": \"x\","
                   "\"group\": \"g\", \"category\": \"c\", \"question_id\": 81, \"turns\": [], \"reference\": []}\n");
    result r = command("run", "-m", STORIES, "-f", rows, "--json-lines", "-n", "1");
    const char *said = strstr(r.err, "\"colour\" (line 1), \"mood\" (line 2)");
    assert_int_equal(r.code, 0);
    assert_non_null(said);
    assert_null(strstr(said + 2, "colour"));
    assert_null(strstr(r.err, "turns"));
    assert_int_equal(strchr(r.err, '\n') - r.err + 1, strlen(r.err));
    result_free(&r);
    r = command("run", "-m", STORIES, "-f", rows, "--json-lines", "-n", "1", "--quiet");
    assert_string_equal(r.err, "");
    result_free(&r);
    static const char *const ours[] = {HUNCH_TEST_DATA "/../../bench/prompts/bench16.jsonl",
                                       HUNCH_TEST_DATA "/../../bench/prompts/specbench48.jsonl",
                                       HUNCH_TEST_DATA "/../../scripts/demo-prompts.jsonl",
                                       HUNCH_TEST_DATA "/prompts/spec64.jsonl"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        r = command("run", "-m", STORIES, "-f", ours[i], "--json-lines", "-n", "1", "--parallel", "8");
        assert_null(strstr(r.err, ": unknown key"));
        result_free(&r);
    }
}

/* ---- tools ------------------------------------------------------------------------------------------------------ */

static void test_tools(void **state) {
    (void)state;
    const char *without_tools =
                   text_write("deaf.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"),
               *with_tools = template_write();
    const char *tools = text_write("tools.json", "[{\"type\": \"function\", \"function\": {\"name\": \"look\"}}]");
    static const char why[] = "the chat template ignores tools";
    refused(2, why, "run", "-m", STORIES, "-p", "a", "--chat-template-file", without_tools, "--tools", tools);
    refused(2, why, "chat", "-m", STORIES, "--chat-template-file", without_tools, "--tools", tools);
    refused(2, why, "compare", "-m", STORIES, "-p", "a", "--chat-template-file", without_tools, "--tools", tools);
    const char *row = text_write("row.jsonl", "{\"prompt\": \"a\", \"tools\": [{\"function\": {\"name\": \"look\"}}]}");
    refused(2, why, "run", "-m", STORIES, "-f", row, "--chat-template-file", without_tools);
    static const char *const wrong[] = {"[1,2,3,4]", "[{}]", "[{\"function\": \"look\"}]",
                                        "[{\"function\": {\"name\": 5}}]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(2, "tool 0 is not an object {\"type\": \"function\"", "run", "-m", STORIES, "-p", "a",
                "--chat-template-file", with_tools, "--tools", text_write("wrong.json", wrong[i]));
    json_t *a =
        json_of("run", "-m", STORIES, "-p", "a", "-n", "8", "--chat-template-file", with_tools, "--tools", tools);
    json_t *b = json_of("run", "-m", STORIES, "-f", row, "-n", "8", "--chat-template-file", with_tools);
    json_t *c = json_of("run", "-m", STORIES, "-p", "a", "-n", "8", "--chat-template-file", with_tools);
    json_t *d = json_of("run", "-m", STORIES, "-p", "a", "-n", "8", "--chat-template-file", without_tools, "--tools",
                        text_write("none.json", "[]"));
    tokens_equal(a, b);
    assert_true(int_of(a, "prompt_tokens") > int_of(c, "prompt_tokens"));
    json_decref(a);
    json_decref(b);
    json_decref(c);
    json_decref(d);
}

/* ---- --system --------------------------------------------------------------------------------------------------- */

static void test_system(void **state) {
    (void)state;
    const char *t = template_write(), *row = text_write("talk.jsonl", "{\"messages\": " TALK "}");
    json_t *row_own = json_of("run", "-m", STORIES, "-f", row, "-n", "12", "--chat-template-file", t);
    json_t *kept = json_of("run", "-m", STORIES, "-f", row, "-n", "12", "--chat-template-file", t, "--system",
                           "Be rude and long.");
    json_t *given = json_of("run", "-m", STORIES, "-p", "Once\nupon", "-n", "12", "--chat-template-file", t, "--system",
                            "Be kind.");
    assert_int_equal(int_of(given, "prompt_tokens"), int_of(row_own, "prompt_tokens"));
    assert_int_equal(int_of(kept, "prompt_tokens"), int_of(row_own, "prompt_tokens"));
    tokens_equal(row_own, given);
    tokens_equal(row_own, kept);
    json_decref(row_own);
    json_decref(kept);
    json_decref(given);
    refused(2, "--system", "run", "-m", STORIES, "-p", "a", "--system", "b");
    refused(2, "--raw", "run", "-m", STORIES, "-p", "a", "--system", "b", "--raw");
    refused(2, "--system", "run", "-m", STORIES, "-f", text_write("ids.jsonl", "{\"tokens\": [1]}"), "--system", "b");
    refused(2, "UTF-8", "run", "-m", STORIES, "-p", "a", "--system", "b\xff", "--chat-template-file", t);
}

/* ---- answers to a file ------------------------------------------------------------------------------------------ */

/* One object with the objects of all lines, by the JSON of their ids. */
static json_t *by_id(const char *lines, size_t *n) {
    json_t *all = json_object();
    for (*n = 0; *lines; ++*n) {
        const char *end = strchr(lines, '\n');
        assert_non_null(end);
        json_t *o = json_loadb(lines, (size_t)(end - lines), 0, NULL);
        assert_non_null(o);
        char *key = json_dumps(get(o, "id"), JSON_ENCODE_ANY);
        assert_null(json_object_get(all, key));
        json_object_set_new(all, key, o);
        free(key);
        lines = end + 1;
    }
    return all;
}

static const char many[] =
    "{\"id\": \"first\", \"prompt\": \"Once upon a time\", \"max_tokens\": 60}\n"
    "{\"prompt\": \"The dog\", \"temperature\": 1, \"seed\": 11}\n"
    "\n"
    "{\"id\": 17, \"tokens\": [1, 403, 407, 261], \"temperature\": 0.8, \"seed\": 4, \"max_tokens\": 5}\n"
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Lily and Tom\"}]}\n"
    "{\"id\": \"17\", \"prompt\": \"Once upon a time\", \"temperature\": 1, \"seed\": 11}\n"
    "{\"prompt\": \"\"}\n"
    "{\"id\": \"last\", \"prompt\": \"Once upon a mat\", \"stop\": \".\", \"max_tokens\": 3}\n";

/* Every answer is the same as alone, however many run at once; a row that cannot be answered stops no other. */
static void test_rows(void **state) {
    (void)state;
    const char *file = text_write("many.jsonl", many);
    size_t n, rows = 0, i;
    const char *key, *line = many;
    result r = command("run", "-m", STORIES, "-f", file, "--json-lines", "--parallel", "4", "-n", "30");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "1 of 7 rows failed"));
    json_t *all = by_id(r.out, &n), *answer;
    static const char *const ids[] = {"\"first\"", "2", "17", "5", "\"17\"", "7", "\"last\""};
    assert_int_equal(n, 7);
    for (i = 0; i < 7; i++)
        assert_non_null(json_object_get(all, ids[i]));
    assert_string_equal(text_of(get(all, "7"), "error"), "the prompt is empty");
    /* in the order in which they were done: the first one is the longest */
    assert_true(strstr(r.out, "\"id\": 17,") < strstr(r.out, "\"id\": \"first\""));
    for (; *line; line = strchr(line, '\n') + 1) {
        char row[300];
        snprintf(row, sizeof row, "%.*s\n", (int)strcspn(line, "\n"), line);
        if (row[0] == '\n' || strstr(row, "\"\"}"))
            continue;
        json_t *alone =
            json_of("run", "-m", STORIES, "-f", text_write("one.jsonl", row), "-n", "30", "--draft", "none");
        bool found = false;
        json_object_foreach(all, key, answer) {
            found = found ||
                    (!json_object_get(answer, "error") && json_equal(get(answer, "tokens"), get(alone, "tokens")) &&
                     json_equal(get(answer, "text"), get(alone, "text")) &&
                     int_of(answer, "prompt_tokens") == int_of(alone, "prompt_tokens"));
        }
        if (!found)
            fail_msg("nobody said \"%s\"", text_of(alone, "text"));
        run_shape(alone);
        json_decref(alone);
        rows++;
    }
    assert_int_equal(rows, 6);
    json_decref(all);
    result_free(&r);
    refused(2, "--json-lines answers them all", "run", "-m", STORIES, "-f", file);
    refused(2, "--samples takes one", "run", "-m", STORIES, "-f", file, "--json-lines", "--samples", "2");
    refused(2, "many.jsonl:4: the id 2 is used in line 1 already", "run", "-m", STORIES, "--json-lines", "-f",
            text_write("many.jsonl", "{\"id\": 2, \"prompt\": \"a\"}\n\n\n{\"id\": 2, \"prompt\": \"b\"}\n"));
    refused(2, "the id 2 is used in line 1 already", "run", "-m", STORIES, "--json-lines", "-f",
            text_write("many.jsonl", "{\"id\": 2, \"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n"));
    refused(2, "no prompt in it", "run", "-m", STORIES, "--json-lines", "-f", text_write("many.jsonl", "\n"));
}

static void file_is(const char *path, const char *wanted) {
    char *text = file_read(path, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

/* With -o: an existing file stays until the first answer; then every answer is written completely at once. */
static void test_output(void **state) {
    (void)state;
    const char *file = text_write("many.jsonl", many), *to = text_write("answers.jsonl", "old\n");
    refused(2, "--json-lines", "run", "-m", STORIES, "-f", file, "-o", to, "--json");
    refused(2, "-o FILE", "run", "-m", STORIES, "-f", file, "--json-lines", "--resume");
    refused(2, "-o FILE", "run", "-m", STORIES, "-f", file, "--json-lines", "--resume", "-o", "-");
    refused(2, "holds 7 prompts", "run", "-m", STORIES, "-f", file, "-o", to);
    refused(2, "answers.jsonl:1: not an answer, so --resume leaves the file alone", "run", "-m", STORIES, "-f", file,
            "--json-lines", "-o", to, "--resume");
    refused(2, "would be written over a file that the command reads (-f)", "run", "-m", STORIES, "-f", file,
            "--json-lines", "-o", file, "--resume");
    refused(2, "answers.jsonl:1: not an answer, so -o leaves the file alone", "run", "-m", STORIES, "-f", file, "--json-lines",
            "-o", to);
    refused(2, "not a file", "run", "-m", STORIES, "-f", file, "--json-lines", "-o", "/dev/null", "--resume");
    file_is(to, "old\n");
    file_is(file, many);
    static const char before[] = "{\"id\": 1, \"finish\": \"eos\"}\n{\"id\": 2, \"fin";
    text_write("answers.jsonl", before); /* answers, the last one cut off, may be replaced */
    refused(3, "nothing.gguf", "run", "-m", "/nowhere/nothing.gguf", "-f", file, "--json-lines", "-o", to);
    file_is(to, before);
    result r = command("run", "-m", STORIES, "-f", file, "--json-lines", "--parallel", "3", "-n", "30", "-o", to);
    size_t n;
    assert_int_equal(r.code, 1);
    assert_string_equal(r.out, "");
    result_free(&r);
    char *text = file_read(to, NULL);
    json_t *all = by_id(text, &n);
    assert_int_equal(n, 7);
    assert_int_equal(access(path_of("answers.jsonl.partial"), F_OK), -1);
    json_decref(all);
    free(text);
    r = command("run", "-m", STORIES, "-p", "Once", "--json-lines", "-n", "3", "-o", to,
                "--logprobs=1"); /* one prompt is a file of one */
    assert_int_equal(r.code, 0);
    assert_string_equal(r.err, "");
    result_free(&r);
    r = command("run", "-m", STORIES, "-p", "Once", "--json-lines", "-n", "3", "-o", "-");
    assert_int_equal(strncmp(r.out, "{\"id\": 1, ", 10), 0);
    text = file_read(to, NULL);
    all = by_id(text, &n);
    assert_int_equal(n, 1);
    assert_int_equal(json_array_size(get(get(all, "1"), "top_logprobs")), 3);
    json_decref(all);
    free(text);
    result_free(&r);
}

/* Rows with an answer are unchanged, byte for byte; failed rows and a cut-off line are answered. */
static void test_resume(void **state) {
    (void)state;
    const char *to = text_write("answers.jsonl", "{\"id\": \"first\",   \"finish\": \"stop\"}\n"
                                                 "{\"id\": 7, \"error\": \"the prompt is empty\"}\n"
                                                 "{\"id\": \"gone\", \"finish\": \"length\"}\n"
                                                 "{\"id\": 17, \"tokens\": [1, 2");
    char *whole = strcpy(malloc(sizeof many + 8), many), *empty = strstr(whole, "\"\"}");
    assert_non_null(empty);
    size_t n;
    memcpy(empty, "\"?\"", 3); /* the row that failed, now with a prompt */
    strcpy(empty + 3, "}\n");
    strcat(whole, strstr(many, "{\"id\": \"last\""));
    const char *file = text_write("many.jsonl", whole);
    for (int round = 0; round < 2; round++) {
        result r = command("run", "-m", STORIES, "-f", file, "--json-lines", "--parallel", "3", "-n", "5", "-o", to,
                           "--resume");
        assert_int_equal(r.code, 0);
        assert_non_null(strstr(r.err, round ? "7 of 7 rows are answered" : "1 of 7 rows are answered"));
        result_free(&r);
        char *text = file_read(to, NULL);
        const char *kept = "{\"id\": \"first\",   \"finish\": \"stop\"}\n{\"id\": \"gone\", \"finish\": \"length\"}\n";
        assert_int_equal(strncmp(text, kept, strlen(kept)), 0);
        json_t *all = by_id(text, &n), *o;
        const char *key;
        assert_int_equal(n, 8);
        json_object_foreach(all, key, o) assert_null(json_object_get(o, "error"));
        json_decref(all);
        free(text);
    }
    /* a last answer without its line break counts */
    text_write("answers.jsonl", "{\"id\": 1, \"finish\": \"stop\"}");
    result r =
        command("run", "-m", STORIES, "-f", text_write("two.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n"),
                "--json-lines", "-n", "2", "-o", to, "--resume");
    assert_int_equal(r.code, 0);
    result_free(&r);
    char *text = file_read(to, NULL);
    assert_ptr_equal(strstr(text, "{\"id\": 1, \"finish\": \"stop\"}\n{\"id\": 2, "), text);
    free(text);
    unlink(to); /* nothing to resume yet */
    r = command("run", "-m", STORIES, "-f", path_of("two.jsonl"), "--json-lines", "-n", "2", "-o", to, "--resume");
    assert_int_equal(r.code, 0);
    result_free(&r);
    json_decref(by_id(text = file_read(to, NULL), &n));
    assert_int_equal(n, 2);
    free(text);
    free(whole);
}

static void line_wait(const char *path, int lines) {
    for (int ms = 0; ms < 20000; ms += 5) {
        size_t len = 0;
        int seen = 0;
        char *text = test_file_exists(path) ? file_read(path, &len) : NULL;
        for (size_t i = 0; i < len; i++)
            seen += text[i] == '\n';
        free(text);
        if (seen >= lines)
            return;
        usleep(5000);
    }
    fail_msg("%s never had %d lines", path, lines);
}

/* Killed or interrupted after some answers: they are complete in the file, and a resumed run ends with the same file as
 * an uninterrupted one. */
static void test_killed(void **state) {
    (void)state;
    enum { ROWS = 400 };
    const int n_rows = test_light() ? 220 : ROWS;
    static const int signals[] = {SIGKILL, SIGINT, SIGTERM};
    static char rows[ROWS * 80];
    for (int i = 0; i < n_rows; i++)
        sprintf(rows + strlen(rows), "{\"prompt\": \"Once upon a time %d\", \"temperature\": 1, \"seed\": %d}\n", i, i);
    const char *file = text_write("rows.jsonl", rows), *to = path_of("killed.jsonl"), *whole = path_of("whole.jsonl");
    const char *const args[] = {"run", "-m", STORIES, "-f", file, "--json-lines", "--parallel",
                                "2",   "-n", "40",    "-o", to,   "--resume",     NULL};
    unlink(to);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        const pid_t child = command_start(args, path_of("k.out"), path_of("k.err"));
        line_wait(to, 10 + 60 * (int)i);
        kill(child, signals[i]);
        const int code = child_wait(child);
        assert_int_equal(code, signals[i] == SIGKILL ? -SIGKILL : 128 + signals[i]);
    }
    result r = command_args(args);
    assert_int_equal(r.code, 0);
    result_free(&r);
    r = command("run", "-m", STORIES, "-f", file, "--json-lines", "--parallel", "2", "-n", "40", "-o", whole);
    assert_int_equal(r.code, 0);
    result_free(&r);
    size_t n, m;
    char *a = file_read(to, NULL), *b = file_read(whole, NULL);
    json_t *got = by_id(a, &n), *wanted = by_id(b, &m), *o;
    const char *id;
    assert_int_equal(n, n_rows);
    assert_int_equal(m, n_rows);
    json_object_foreach(wanted, id, o) tokens_equal(get(got, id), o);
    json_decref(got);
    json_decref(wanted);
    free(a);
    free(b);
}

/* ---- flags ------------------------------------------------------------------------------------------------------ */

static void test_top_logprobs(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "20", "--temperature", "1", "--seed", "2",
                        "--logprobs=3", "--draft", "forced,accept=0.7,depth=4");
    const json_t *tokens = get(j, "tokens"), *logprobs = get(j, "logprobs"), *top = get(j, "top_logprobs"), *list;
    size_t i;
    int others = 0;
    assert_int_equal(json_array_size(top), json_array_size(tokens));
    json_array_foreach(top, i, list) {
        const double said = json_number_value(json_array_get(logprobs, i));
        double before = 0;
        bool in = false;
        assert_int_equal(json_array_size(list), 3);
        for (size_t k = 0; k < 3; k++) {
            const json_t *one = json_array_get(list, k);
            const double l = real_of(one, "logprob");
            assert_true(l <= before);
            before = l;
            assert_true(strlen(text_of(one, "piece")) > 0);
            if (int_of(one, "token") != json_integer_value(json_array_get(tokens, i)))
                continue;
            in = true;
            assert_true(l == said);
            others += k > 0;
        }
        assert_true(in || said <= before);
        others += !in;
    }
    assert_true(others > 2); /* it was not greedy */
    json_decref(j);
    j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "2", "--logprobs");
    assert_null(json_object_get(j, "top_logprobs"));
    assert_int_equal(json_array_size(get(j, "logprobs")), 2);
    json_decref(j);
    j = json_of("run", "-m", NO_TOKENIZER, "--tokens", text_write("ids.json", "[1, 2]"), "-n", "2", "--logprobs=2");
    assert_true(json_is_null(get(json_array_get(json_array_get(get(j, "top_logprobs"), 0), 1), "piece")));
    json_decref(j);
    refused(2, "--logprobs 101", "run", "-m", STORIES, "-p", "a", "--json", "--logprobs=101");
}

static void test_no_limit(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "-1", "--ignore-eos", "--context", "400", "--seed",
                        "-1", "--temperature", "1");
    json_t *k = json_of("run", "-m", STORIES, "-p", "Once", "-n", "-1", "--ignore-eos", "--context", "400", "--seed=-1",
                        "--temperature", "1");
    assert_int_equal(json_array_size(get(j, "tokens")), 400 - int_of(j, "prompt_tokens"));
    assert_true(int_of(j, "seed") >= 0 && int_of(j, "seed") != int_of(k, "seed"));
    json_decref(j);
    json_decref(k);
    refused(2, "-n 0 is not a whole number from 1 to 2147483647, or -1 for no limit", "run", "-m", STORIES, "-p", "a",
            "-n", "0");
    refused(2, "-n -1", "compare", "-m", STORIES, "-p", "a", "-n", "-1");
}

static void test_other_programs(void **state) {
    (void)state;
    static const struct {
        const char *flag, *says;
    } flags[] = {
        {"--temp", "did you mean --temperature?"},
        {"--max-tokens", "did you mean -n?"},
        {"-c", "did you mean --context?"},
        {"-t", "did you mean --threads?"},
        {"--ctx-size=4096", "did you mean --context?"},
        {"--n-predict", "did you mean -n?"},
        {"--format", "there is no --format: "},
        {"--grammar-file=a", "did you mean --grammar?"},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        refused(2, flags[i].says, "run", "-m", STORIES, "-p", "a", flags[i].flag, "1");
    refused(2, "see hunch inspect --help", "inspect", STORIES, "-t", "1"); /* inspect has no such flag */
    refused(2, "did you mean score?", "perplexity");
    refused(2, "did you mean serve?", "server");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversations),  cmocka_unit_test(test_conversations_refused), cmocka_unit_test(test_large_numbers),
        cmocka_unit_test(test_row_keys),       cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_tools),          cmocka_unit_test(test_system),
        cmocka_unit_test(test_rows),           cmocka_unit_test(test_output),
        cmocka_unit_test(test_resume),         cmocka_unit_test(test_killed),
        cmocka_unit_test(test_top_logprobs),   cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_other_programs),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
