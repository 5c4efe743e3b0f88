/* SPDX-License-Identifier: Apache-2.0 */
/* command_terminal_test.c - the `hunch` command on a terminal: progress bars that fit and are wiped, colours, and interactive messages. The
 * terminal is a pseudo-terminal, whose output is read as it arrives. */
#include "pseudo_terminal.h"

/* ---- bars ------------------------------------------------------------------------------------------------------ */

static int columns_of(const char *line, size_t len) {
    int n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)line[i] & 0xC0) != 0x80;
    return n;
}

/* Bars are "\r", a line, "\033[K": all of them narrower than the terminal, the last one empty. Returns their number. */
static int bars_check(const char *text, int columns) {
    int n = 0, last = 1;
    for (const char *at = text, *end; (at = strchr(at, '\r')); at = end) {
        if (at[1] == '\n') {
            end = at + 1;
            continue;
        }
        end = strstr(at, "\033[K");
        assert_non_null(end);
        last = columns_of(at + 1, (size_t)(end - at - 1));
        if (last >= columns)
            fail_msg("%d columns in %d: %.*s", last, columns, (int)(end - at), at + 1);
        n += last > 0;
    }
    if (n && last != 0)
        fail_msg("the bar stays: %s", text);
    return n;
}

#define MANY "run", "-m", STORIES, "-p", "Once", "-n", "40", "--samples", "1000000", "--json-lines"

/* README: "On a terminal, work that takes longer than a second shows its progress and the time left." */
static void test_bar(void **state) {
    (void)state;
    const char *out = path_of("answers");
    terminal t = terminal_of(90, out, MANY);
    terminal_await(&t, 0, "answering ─");
    terminal_await(&t, 0, "of 1000000 answers");
    terminal_await(&t, 0, "left");
    assert_null(strstr(t.text, "\033[3")); /* no colour: share and shape suffice */
    const int wide = bars_check(strcat(t.text, "\r\033[K"), 90);
    assert_true(wide >= 1);
    /* narrower from now on */
    struct winsize size = {.ws_row = 24, .ws_col = 24};
    t.len = 0;
    ioctl(t.master, TIOCSWINSZ, &size);
    for (int i = 0; i < 5; i++)
        terminal_read(&t, 300); /* one bar may still be wide */
    t.len = 0;
    t.text[0] = 0;
    terminal_await(&t, 0, "answering");
    kill(t.child, SIGINT);
    assert_int_equal(terminal_end(&t), 130);
    assert_true(bars_check(t.text, 24) >= 1);
    char *text = file_read(out, &t.len);
    assert_true(t.len > 0 && text[t.len - 1] == '\n');
    assert_null(strchr(text, 27));
    free(text);
    free(t.text);
}

/* The same for the rows of a file, with answers to another file. */
static void test_bar_of_rows(void **state) {
    (void)state;
    enum { ROWS = 20000 };
    char *rows = malloc(ROWS * 40), *to = rows, *text;
    for (int i = 0; i < ROWS; i++)
        to += sprintf(to, "{\"prompt\": \"Once upon %d\"}\n", i);
    const char *file = text_write("rows.jsonl", rows), *out = path_of("rows.out");
    terminal t = terminal_of(90, NULL, "run", "-m", STORIES, "-f", file, "-n", "40", "--json-lines", "--parallel", "4",
                             "-o", out);
    free(rows);
    terminal_await(&t, 0, "of 20000 answers");
    terminal_await(&t, 0, "left");
    kill(t.child, SIGINT);
    assert_int_equal(terminal_end(&t), 130);
    assert_non_null(strstr(t.text, "of 20000 rows were done, --resume answers the rest"));
    assert_true(bars_check(t.text, 90) >= 1);
    text = file_read(out, &t.len);
    assert_true(t.len > 0 && text[t.len - 1] == '\n');
    free(text);
    free(t.text);
}

/* Ctrl-C while a text is scored, which does not catch it. By the key, not by a signal. */
static void test_bar_interrupted(void **state) {
    (void)state;
    enum { TOKENS = 9000 };
    char *list = calloc(TOKENS, 2), *to = list;
    for (int i = 0; i < TOKENS; i++, to += 2)
        memcpy(to, i ? ",2" : "[1", 2);
    to[-1] = ']'; /* replaces the last token's digit, after its comma */
    to[-2] = ' ';
    const char *ids = file_write("many.json", list, (size_t)TOKENS * 2);
    free(list);
    terminal t = terminal_of(100, NULL, "score", "-m", STORIES, "--tokens", ids, "--context", "16", "--isa", "ref",
                             "--threads", "1");
    terminal_await(&t, 0, "of 8999 tokens");
    assert_int_equal(write(t.master, "\003", 1), 1);
    assert_int_equal(terminal_end(&t), 130);
    assert_true(bars_check(t.text, 100) >= 1);
    free(t.text);
}

/* plan: the memory that the model needs is reported, and nothing else. */
static void no_bar(const char *const *args, bool plan) {
    terminal t = terminal_start(90, path_of("answers"), args);
    struct stat st = {0};
    while (st.st_size == 0 && terminal_read(&t, 100)) /* answers come */
        if (stat(path_of("answers"), &st) != 0)
            st.st_size = 0;
    for (int i = 0; i < 25; i++)
        terminal_read(&t, 100);
    kill(t.child, SIGINT);
    assert_int_equal(terminal_end(&t), 130);
    const char *end = plan ? strstr(t.text, " of cache a token") : t.text;
    assert_non_null(end);
    if (strncmp(t.text, "hunch: ", plan ? 7 : 0) != 0 || strchr(t.text, 27) ||
        strcmp(plan ? end + strcspn(end, "\r") : end, plan ? "\r\n" : "") != 0)
        fail_msg("said \"%s\"", t.text);
    free(t.text);
}

static void test_no_bar(void **state) {
    (void)state;
    no_bar((const char *const[]){MANY, "--quiet", NULL}, false);
    setenv("TERM", "dumb", 1);
    no_bar((const char *const[]){MANY, NULL}, true);
    setenv("TERM", "xterm", 1);
}

/* ---- colours --------------------------------------------------------------------------------------------------- */

#define SHORT "run", "-m", STORIES, "-p", "Once upon a time", "-n", "30", "--draft", "forced,accept=1,depth=2"

static bool colored(const char *text) {
    return strstr(text, "\033[36m") || strstr(text, "\033[38;5;32m");
}

static void colors_are(bool expected, const char *const *args) {
    terminal t = terminal_start(90, NULL, args);
    assert_int_equal(terminal_end(&t), 0);
    if (colored(t.text) != expected || (!expected && strchr(t.text, 27)))
        fail_msg("expected %s: %s", expected ? "colours" : "none", t.text);
    free(t.text);
}

/* README: "Without a terminal, and if `NO_COLOR` is set, there are no colours unless a flag requests them." */
static void test_colors(void **state) {
    (void)state;
    colors_are(true, (const char *const[]){SHORT, NULL});
    colors_are(false, (const char *const[]){SHORT, "--color=never", NULL});
    setenv("NO_COLOR", "1", 1);
    colors_are(false, (const char *const[]){SHORT, NULL});
    colors_are(true, (const char *const[]){SHORT, "--color=always", NULL});
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    colors_are(false, (const char *const[]){SHORT, NULL});
    setenv("TERM", "xterm-256color", 1);
    terminal t = terminal_of(90, NULL, SHORT);
    assert_int_equal(terminal_end(&t), 0);
    assert_non_null(strstr(t.text, "\033[38;5;32m"));
    /* the legend: the drafter's name in its colour */
    assert_non_null(strstr(t.text, "tokens from: "));
    assert_non_null(strstr(t.text, "\033[38;5;32mforced,accept=1,depth=2\033[0m "));
    free(t.text);
    setenv("TERM", "xterm", 1);
    setenv("CLICOLOR_FORCE", "1", 1);
    result r = command(SHORT);
    assert_true(colored(r.out));
    result_free(&r);
    setenv("CLICOLOR_FORCE", "0", 1);
    r = command(SHORT);
    assert_false(colored(r.out));
    result_free(&r);
    unsetenv("CLICOLOR_FORCE");
}

/* A colour that continues in the next line is reset and set again: pagers reset colours at each line. */
static void test_colors_end_with_lines(void **state) {
    (void)state;
    result r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "300", "--draft",
                       "forced,accept=1,depth=8", "--color", "always", "--stop", "xyzzy");
    bool on = false;
    int lines = 0;
    for (const char *c = r.out; *c; c++) {
        if (strncmp(c, "\033[0m", 4) == 0)
            on = false;
        else if (*c == 27)
            on = true;
        lines += *c == '\n';
        assert_false(*c == '\n' && on);
    }
    assert_true(lines >= 2);
    result_free(&r);
}

/* ---- interactive use -------------------------------------------------------------------------------------------- */

static void test_no_prompt(void **state) {
    (void)state;
    terminal t = terminal_of(90, NULL, "run", "-m", STORIES);
    assert_int_equal(terminal_end(&t), 2);
    assert_non_null(strstr(t.text, "no prompt: give TEXT"));
    assert_non_null(strstr(t.text, "hunch chat " STORIES));
    free(t.text);
    result r = command_input("Once upon a time\n", "run", "-m", STORIES, "-n", "8", "-q"),
           same = command("run", STORIES, "Once upon a time", "-n", "8", "--quiet");
    assert_int_equal(r.code + same.code, 0);
    assert_string_equal(r.out, same.out);
    assert_string_equal(r.err, "");
    assert_string_equal(same.err, "");
    result_free(&r);
    result_free(&same);
}

static void test_help_fits(void **state) {
    (void)state;
    terminal t = terminal_of(50, NULL, "run", "--help");
    assert_int_equal(terminal_end(&t), 0);
    bool names = false;
    for (char *line = strtok(t.text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        char plain[2000];
        size_t n = 0;
        for (const char *c = line; *c && n < sizeof plain; c++)
            if (*c == 27)
                c = strchr(c, 'm');
            else
                plain[n++] = *c;
        names |= memmem(plain, n, "--temperature T", 15) != NULL;
        if (columns_of(plain, n) > 50 && !memmem(plain, n, "    hunch ", 10)) /* examples are not wrapped */
            fail_msg("%.*s", (int)n, plain);
    }
    assert_true(names);
    free(t.text);
}

/* ---- suggestions ------------------------------------------------------------------------------------------------ */

/* README: "The error for a misspelt command, flag, drafter or file names the nearest one that exists." */
static void test_nearest(void **state) {
    (void)state;
    char meant[1200], dir[300];
    snprintf(dir, sizeof dir, "%s", path_of("models"));
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(meant, sizeof meant, "cp '%s' %s/stories.gguf && touch %s/model.safetensors && echo Once > %s/tale.txt",
             STORIES, dir, dir, dir);
    assert_int_equal(system(meant), 0);
    snprintf(meant, sizeof meant, "did you mean %s/stories.gguf?", dir);
    char path[400];
    snprintf(path, sizeof path, "%s/storys.gguf", dir);
    refused(3, meant, "run", path, "a");
    snprintf(path, sizeof path, "%s/stories", dir);
    refused(3, meant, "inspect", path);
    snprintf(meant, sizeof meant, "did you mean %s/tale.txt?", dir);
    snprintf(path, sizeof path, "%s/tale", dir);
    refused(1, meant, "run", STORIES, "-f", path);
    refused(1, "is a folder", "run", STORIES, "-f", dir);
    refused(3, "one of its GGUF files: stories.gguf", "run", dir, "a");
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    refused(3, "expected the folder itself", "run", path, "a");
    refused(2, "did you mean hunch run", STORIES);
    refused(2, "did you mean match?", "run", STORIES, "a", "--verify", "mtch");
    refused(2, "did you mean q8_0?", "run", STORIES, "a", "--kv", "q8");
    refused(2, "did you mean ngram?", "run", STORIES, "a", "--draft", "ngrm");
    refused(2, "did you mean depth?", "run", STORIES, "a", "--draft", "ngram,dpeth=3");
    refused(2, "did you mean longest?", "run", STORIES, "a", "--draft", "ngram,form=longst");
    refused(2, "takes no keys", "run", STORIES, "a", "--draft", "auto,depth=3");
    refused(2, "expected ref", "run", STORIES, "a", "--isa", "warp");
    refused(2, "did you mean bash?", "completion", "bsh");
    refused(2, "for which shell", "completion");
    refused(2, "a command comes first", "--modle");
    refused(2, "standard input is empty", "run", STORIES);
    refused(2, "MODEL comes before the text", "run", "Why is the sky blue?");
    result r = command("run", "-n", "4", STORIES, "--quiet", "--", "--dashes");
    assert_int_equal(r.code, 0);
    result_free(&r);
}

/* Devices have long names. */
static void test_devices_fit(void **state) {
    (void)state;
    enum { COLUMNS = 40 };
    terminal t = terminal_of(COLUMNS, NULL, "devices");
    if (terminal_end(&t) != 0) {
        free(t.text);
        skip(); /* there is no Vulkan here */
    }
    for (char *line = strtok(t.text, "\r\n"); line; line = strtok(NULL, "\r\n"))
        if (columns_of(line, strlen(line)) > COLUMNS && strchr(line + strspn(line, " "), ' '))
            fail_msg("%d columns in %d: %s", columns_of(line, strlen(line)), COLUMNS, line);
    free(t.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bar), cmocka_unit_test(test_bar_of_rows),    cmocka_unit_test(test_bar_interrupted),
        cmocka_unit_test(test_no_bar),
        cmocka_unit_test(test_colors), cmocka_unit_test(test_colors_end_with_lines), cmocka_unit_test(test_no_prompt),
        cmocka_unit_test(test_help_fits), cmocka_unit_test(test_devices_fit),
        cmocka_unit_test(test_nearest),
    };
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    unsetenv("COLORTERM");
    setenv("TERM", "xterm", 1);
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
