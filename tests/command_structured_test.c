/* SPDX-License-Identifier: Apache-2.0 */
/* command_structured_test.c - answers held to a form: by flags and by the keys of rows, which are the same; in a chat; and what is wrong
 * with one is said before anything is generated. */
#include "command.h"

#define PROMPT "Tom said 1, 2"
#define SCHEMA "{\"enum\": [\"red\", \"blue\", 7]}"

static const struct {
    const char *key, *flag, *file; /* file: what the flag's file has */
} forms[] = {
    {"\"json_schema\": " SCHEMA, "--json-schema", SCHEMA},
    {"\"json_object\": true", "--json-object", NULL},
    {"\"regex\": \"[a-z]+(, [a-z]+){3}!\"", "--regex=[a-z]+(, [a-z]+){3}!", NULL},
    {"\"grammar\": \"root ::= \\\"<\\\" [a-z]+ \\\">\\\"\"", "--grammar", "root ::= \"<\" [a-z]+ \">\""},
};
enum { FORMS = sizeof forms / sizeof *forms };

static void test_keys(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        char row[300];
        const char *path = forms[i].file ? text_write("form.txt", forms[i].file) : NULL;
        snprintf(row, sizeof row, "{\"prompt\": \"" PROMPT "\", %s}", forms[i].key);
        json_t *by_flag = json_of("run", "-m", STORIES, "-n", "40", "-p", PROMPT, "--json", forms[i].flag, path);
        json_t *by_key = json_of("run", "-m", STORIES, "-n", "40", "-f", text_write("key.jsonl", row));
        json_t *plain = json_of("run", "-m", STORIES, "-n", "40", "-p", PROMPT, "--json");
        assert_true(json_equal(get(by_flag, "tokens"), get(by_key, "tokens")));
        assert_false(json_equal(get(by_flag, "tokens"), get(plain, "tokens")));
        json_decref(by_flag);
        json_decref(by_key);
        json_decref(plain);
    }
}

static void test_refused(void **state) {
    (void)state;
    const char *bad = text_write("bad.json", "{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"type\": \"object\"}}");
    refused(2, "uniqueItems", "run", "-m", STORIES, "-p", PROMPT, "--json-schema", bad);
    refused(2, "--json-object and --regex contradict", "run", "-m", STORIES, "-p", PROMPT, "--json-object", "--regex", "a");
    refused(2, "--regex", "run", "-m", STORIES, "-p", PROMPT, "--regex", "a(?=b)");
    refused(1, "no-such-file", "run", "-m", STORIES, "-p", PROMPT, "--grammar", "/no-such-file");
    refused(2, "\"json_schema\" is not a schema", "run", "-m", STORIES, "--json-lines", "-f",
            text_write("row.jsonl", "{\"prompt\": \"a\", \"json_schema\": 5}"));
    refused(2, "uniqueItems", "chat", "-m", STORIES, "--json-schema", bad);
}

/* --regex, then another one, then none. */
static void test_chat(void **state) {
    (void)state;
    static const char input[] = "Tom\n/set regex [b]{5}\nTom\n/set regex default\nTom\n/set regex (\nTom\n";
    result r = command_input(input, "chat", "-m", STORIES, "--json-lines", "-n", "30", "--regex", "[a]{4}");
    const char *const want[] = {"aaaa", "bbbbb"};
    char *rest = r.out, *line;
    int turns = 0;
    assert_non_null(strstr(r.err, "regex"));
    for (; (line = strsep(&rest, "\n")) && *line; turns++) {
        json_t *turn = json_loads(line, 0, NULL);
        if (turns < 2)
            assert_string_equal(text_of(turn, "text"), want[turns]);
        else
            assert_true(strlen(text_of(turn, "text")) > 10);
        json_decref(turn);
    }
    assert_int_equal(turns, 4);
    result_free(&r);
}

/* --tool-choice: a call that is asked for is made, and contradicts another form; none: the template is given no tools. */
static void test_tool_choice(void **state) {
    (void)state;
    const char *tools = text_write("tools.json", "[{\"type\": \"function\", \"function\": {\"name\": \"look\", \"parameters\": {\"type\": "
                                                 "\"object\", \"properties\": {\"city\": {\"enum\": [\"Rome\", \"Oslo\"]}}, \"required\": "
                                                 "[\"city\"]}}}]");
    const char *template = text_write("tools.jinja", "{% if tools %}{{ tools | tojson }} <tool_call>\n{\"name\": n, \"arguments\": {}}\n"
                                                     "</tool_call>{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}");
#define WITH_TOOLS "run", "-m", STORIES, "-p", PROMPT, "-n", "60", "--chat-template-file", template, "--tools", tools, "--tool-choice"
    static const char *const asks[] = {"required", "look"};
    for (int i = 0; i < 2; i++) {
        json_t *a = json_of(WITH_TOOLS, asks[i]);
        const json_t *call = json_array_get(get(a, "tool_calls"), 0);
        const char *city = text_of(get(call, "arguments"), "city");
        assert_string_equal(text_of(call, "name"), "look");
        assert_true(!strcmp(city, "Rome") || !strcmp(city, "Oslo"));
        json_decref(a);
    }
    json_t *none = json_of(WITH_TOOLS, "none");
    json_t *plain = json_of("run", "-m", STORIES, "-p", PROMPT, "-n", "60", "--chat-template-file", template);
    assert_true(json_equal(get(none, "tokens"), get(plain, "tokens")));
    json_decref(none);
    json_decref(plain);
    refused(2, "the answer is held to another form", WITH_TOOLS, "required", "--json-object");
    refused(2, "'nope' is to be called, but is not offered", WITH_TOOLS, "nope");
    refused(2, "no tools are offered", "run", "-m", STORIES, "-p", PROMPT, "--tool-choice", "required");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys), cmocka_unit_test(test_refused), cmocka_unit_test(test_chat),
                                       cmocka_unit_test(test_tool_choice)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
