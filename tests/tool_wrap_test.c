/* SPDX-License-Identifier: Apache-2.0 */
/* tool_wrap_test.c - text that is wrapped on a pseudo-terminal: no line is too long, no word is broken, nothing else changes, however the
 * text is divided into pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/show/tool_show.h"
#include "cli/chat/tool_wrap.h"

#define WIDE "\344\270\255" /* two columns */

static FILE *screen;
static int master;

static int screen_open(void **state) {
    (void)state;
    struct termios raw = {0};
    cfmakeraw(&raw);
    int slave;
    if (openpty(&master, &slave, NULL, &raw, NULL) != 0) {
        print_message("skipped: no pseudo-terminal here\n");
        exit(77);
    }
    return (screen = fdopen(slave, "w")) ? 0 : -1;
}

static int screen_close(void **state) {
    (void)state;
    return fclose(screen) || close(master);
}

/* What the terminal receives for a text that comes in pieces of `piece` bytes; to be freed. */
static char *shown(const char *text, unsigned columns, size_t piece) {
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    enum { MOST = 4000 };
    char *out = calloc(1, MOST);
    assert_non_null(out);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    tool_wrap w = {.to = screen};
    for (size_t at = 0, len = strlen(text); at < len; at += piece)
        tool_wrap_write(&w, text + at, len - at < piece ? len - at : piece);
    tool_wrap_end(&w);
    putc('\1', screen); /* the end */
    fflush(screen);
    size_t n = 0;
    while (n == 0 || out[n - 1] != '\1') {
        const ssize_t got = read(master, out + n, MOST - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
    out[n - 1] = 0;
    return out;
}

static void test_cases(void **state) {
    (void)state;
    static const struct {
        unsigned columns;
        const char *text, *shown;
    } cases[] = {
        {20, "the quick brown fox jumps over the lazy dog", "the quick brown fox \njumps over the lazy \ndog"},
        {20, "exactly twenty wide. Next", "exactly twenty wide.\nNext"},
        {20, "twenty columns, full a b", "twenty columns, full\na b"},     /* the space at the edge is left out */
        {20, "twenty columns, full\nnext", "twenty columns, full\nnext"},    /* no empty line */
        {20, "    four\n\n    spaces stay", "    four\n\n    spaces stay"},
        {20, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b"}, /* the terminal breaks it */
        {20, "a link: aaaaaaaaaaaaaaaaaaaaaaaaaa", "a link: aaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {20, "seventeen columns caf\303\251\303\251", "seventeen columns \ncaf\303\251\303\251"},
        {10, WIDE WIDE WIDE WIDE WIDE WIDE, WIDE WIDE WIDE WIDE WIDE "\n" WIDE},
        {10, "a" WIDE WIDE WIDE WIDE WIDE, "a" WIDE WIDE WIDE WIDE "\n" WIDE},
        {20, "colours: \033[36mtake \033[0mno \033[33mcolumns", "colours: \033[36mtake \033[0mno \033[33m\ncolumns"},
        {20, "a word that \033[36mchan\033[33mges\033[0m it", "a word that \033[36mchan\033[33mges\033[0m \nit"},
        {20, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece < 12; piece++) {
            char *out = shown(cases[i].text, cases[i].columns, piece);
            if (strcmp(out, cases[i].shown) != 0)
                fail_msg("%u columns, pieces of %zu: \"%s\", expected \"%s\"", cases[i].columns, piece, out, cases[i].shown);
            free(out);
        }
}

static const char story[] =
    "Once upon a time there was a little girl named Lily, who loved to play outside in the park with caf\303\251s and "
    "\344\270\255\346\226\207\345\255\227 beside them. One day, unexpectedly,\n\nshe found a magnificent hippopotamus! "
    "\"What is it?\" she said. It was internationalization.\n- a list\n  - with an indented line that is long enough\n";

/* Both texts have the same words, with spaces or line breaks in the same places; every line fits. */
static void test_any_width(void **state) {
    (void)state;
    for (unsigned columns = 44; columns < 120; columns++) {
        char *out = shown(story, columns, 1 + columns % 7), *line = out;
        const char *a = story, *b = out;
        while (*a || *b) {
            const bool gap_a = *a == ' ' || *a == '\n', gap_b = *b == ' ' || *b == '\n';
            const bool wide = (unsigned char)*a >= 0xE0; /* a line may begin with it, without a space */
            if (gap_a != gap_b && !(wide && *b == '\n'))
                fail_msg("%u columns: \"%s\" for \"%s\"", columns, b, a);
            while (*a == ' ' || *a == '\n') a++;
            while (*b == ' ' || *b == '\n') b++;
            assert_int_equal(*a, *b);
            a += *a != 0;
            b += *b != 0;
        }
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (tool_columns(line) > (int)columns) fail_msg("%u columns: \"%s\" is longer", columns, line);
        }
        free(out);
    }
}

/* A terminal without a width: as it comes. */
static void test_no_width(void **state) {
    (void)state;
    char *out = shown(story, 0, 3);
    assert_string_equal(out, story);
    free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_any_width), cmocka_unit_test(test_no_width)};
    return cmocka_run_group_tests(tests, screen_open, screen_close);
}
