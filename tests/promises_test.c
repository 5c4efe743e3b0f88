/* SPDX-License-Identifier: Apache-2.0 */
/* promises_test.c - README and the tests agree: each promise of README is quoted by a test that checks it.
 *
 * A promise is an item of README's list under "What it promises". The test that holds it has it in a comment above its
 * function, in a shell test anywhere: README: "the item, word for word" over one line or several. A promise without such a
 * comment fails here, and so does a comment whose words README no longer has. Whether the test checks the promise is left to
 * the reader: nothing here runs one.
 */
#include "text.h"

#include <ctype.h>

enum { MANY = 200, LONG = 600 };

typedef struct quotes {
    struct { char text[LONG]; int held; } item[MANY];
    int n;
} quotes;

/* Appends a character; a run of spaces, line ends and comment marks at the start of lines counts as one space. */
static void put(char out[LONG], char c) {
    size_t n = strlen(out);
    if (isspace((unsigned char)c)) {
        if (n == 0 || out[n - 1] == ' ') return;
        c = ' ';
    }
    assert_true(n + 1 < LONG);
    out[n] = c;
    out[n + 1] = 0;
}

static void trim(char out[LONG]) {
    size_t n = strlen(out);
    if (n > 0 && out[n - 1] == ' ') out[n - 1] = 0;
}

/* The items of README's list: lines that begin with "* " and those that continue them. */
static void promises_read(const char *readme, quotes *q) {
    const char *at = strstr(readme, "\n## What it promises\n");
    assert_non_null(at);
    at = strchr(at + 1, '\n');
    const char *end = strstr(at, "\n## ");
    bool in_item = false;
    for (const char *line = at + 1; end ? line < end : *line; line = strchr(line, '\n') + 1) {
        if (text_starts(line, "* ")) {
            assert_true(q->n < MANY);
            memset(&q->item[q->n], 0, sizeof *q->item);
            q->n++;
            in_item = true;
            line += 2;
        } else if (!text_starts(line, "  ")) {
            in_item = false;
        }
        for (const char *p = line; in_item && p <= strchr(line, '\n'); p++) put(q->item[q->n - 1].text, *p);
    }
    for (int i = 0; i < q->n; i++) trim(q->item[i].text);
}

/* The quote that starts at `at`; NULL if it does not end. *end: after it. */
static bool quote_read(const char *at, char out[LONG], const char **end) {
    out[0] = 0;
    for (; *at && *at != '"'; at++) {
        put(out, *at);
        if (*at != '\n') continue;
        while (at[1] == ' ') at++;
        if (at[1] == '*' || at[1] == '#') at++;
    }
    trim(out);
    *end = at;
    return *at == '"';
}

/* A function called test_x or x_test begins here. */
static bool test_begins(const char *at) {
    static const char start[] = "static void ";
    if (!text_starts(at, start)) return false;
    at += sizeof start - 1;
    const size_t n = strcspn(at, "(");
    return text_starts(at, "test_") || (n > 5 && strncmp(at + n - 5, "_test", 5) == 0);
}

/* In C the next line that is neither a comment's nor empty begins a test. */
static bool test_follows(const char *at) {
    const char *close = strstr(at, "*/");
    if (!close) return false;
    for (at = close + 2; *at;) {
        while (isspace((unsigned char)*at)) at++;
        if (!text_starts(at, "/*")) return test_begins(at);
        close = strstr(at, "*/");
        if (!close) return false;
        at = close + 2;
    }
    return false;
}

/* Counts the quotes of a file for each promise. Returns the number of wrong ones. */
static int file_read_quotes(const char *path, const char *text, quotes *q) {
    static const char mark[] = "README: \"";
    bool c = text_ends(path, ".c");
    int wrong = 0;
    for (const char *at = text; (at = strstr(at, mark));) {
        char quote[LONG];
        const char *end;
        const char *why = quote_read(at + sizeof mark - 1, quote, &end) ? NULL : "has no end";
        int i = 0;
        while (i < q->n && strcmp(q->item[i].text, quote) != 0) i++;
        if (!why && i == q->n) why = "is not in README";
        if (!why && c && !test_follows(end)) why = "stands above no test";
        if (why) print_error("%s: the quote \"%s\" %s\n", path, quote, why);
        else q->item[i].held++;
        wrong += why != NULL;
        at = end;
    }
    return wrong;
}

/* ctest runs what CMake finds by its name, and the scripts that tests.cmake names. */
static bool is_run(const char *path, const char *cmake) {
    if (text_ends(path, "/promises_test.c")) return false; /* it quotes itself */
    if (!text_starts(path, "src/") && !text_starts(path, "tests/")) return false;
    if (text_ends(path, "_test.c")) return true;
    if (!text_ends(path, ".sh") && !text_ends(path, ".py")) return false;
    char name[200];
    snprintf(name, sizeof name, "%s", text_base_name(path));
    *strrchr(name, '.') = 0;
    return strstr(cmake, name) != NULL;
}

static void test_each_promise_has_a_test(void **state) {
    (void)state;
    static quotes q;
    char *readme = text_read("README.md"), *cmake = text_read("tests/tests.cmake");
    assert_non_null(readme);
    assert_non_null(cmake);
    promises_read(readme, &q);
    assert_true(q.n > 10);
    text_files_find();
    int wrong = 0;
    for (int i = 0; i < n_text_files; i++) {
        if (!is_run(text_file[i], cmake)) continue;
        char *text = text_read(text_file[i]);
        wrong += file_read_quotes(text_file[i], text, &q);
        free(text);
    }
    for (int i = 0; i < q.n; i++) {
        if (q.item[i].held == 0) print_error("README promises, and no test quotes: %s\n", q.item[i].text);
        wrong += q.item[i].held == 0;
    }
    text_files_forget();
    free(cmake);
    free(readme);
    assert_int_equal(wrong, 0);
}

/* The check itself: quotes that it must find, and must refuse. */
static void test_the_check(void **state) {
    (void)state;
    static quotes q;
    promises_read("# x\n* none\n\n## What it promises\nText.\n\n* One `thing`\n  over two lines.\n* Another.\n\n"
                  "More.\n## Next\n* no\n", &q);
    assert_int_equal(q.n, 2);
    assert_string_equal(q.item[0].text, "One `thing` over two lines.");
    assert_string_equal(q.item[1].text, "Another.");
    const char *right = "/* README: \"One `thing`\n * over two lines.\" */\n/* why */\nstatic void test_x(void **state) {";
    assert_int_equal(file_read_quotes("a_test.c", right, &q), 0);
    assert_int_equal(q.item[0].held, 1);
    assert_int_equal(q.item[1].held, 0);
    assert_int_equal(file_read_quotes("a_test.sh", "# README: \"Another.\"\ntrue\n", &q), 0);
    assert_int_equal(q.item[1].held, 1);
    assert_int_equal(file_read_quotes("a_test.c", "/* README: \"A third.\" */\nstatic void test_x(", &q), 1);
    assert_int_equal(file_read_quotes("a_test.c", "/* README: \"Another.\" */\nstatic int helper(", &q), 1);
    assert_int_equal(file_read_quotes("a_test.c", "/* README: \"Another. */\nstatic void test_x(", &q), 1);
    assert_int_equal(q.item[1].held, 1);
    assert_true(test_begins("static void test_x(void **state)") && test_begins("static void x_test(void **state)"));
    assert_false(test_begins("static int test_x(") || test_begins("static void x(int a_test)"));
    assert_true(is_run("src/a_test.c", "") && is_run("tests/a_test.sh", "foreach(name a_test)"));
    assert_false(is_run("tests/a_test.sh", "") || is_run("src/a.c", "a"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_check), cmocka_unit_test(test_each_promise_has_a_test)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
