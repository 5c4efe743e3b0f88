/* SPDX-License-Identifier: Apache-2.0 */
/* locale_test.c - setlocale in a host program does not affect the library's input and output: templates, specs,
 * metadata and messages are those of the C locale under one whose decimal point is a comma and whose months are named
 * otherwise. The locale is made on the spot by localedef; skipped where the system has none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <time.h>

#include "base/file_tree_for_tests.h"
#include "fixture.h"

static const char comma[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n"
                            "LC_TIME\n"
                            "abday \"a\";\"b\";\"c\";\"d\";\"e\";\"f\";\"g\"\n"
                            "day \"aa\";\"bb\";\"cc\";\"dd\";\"ee\";\"ff\";\"gg\"\n"
                            "abmon \"a\";\"b\";\"c\";\"d\";\"e\";\"f\";\"g\";\"h\";\"i\";\"j\";\"k\";\"l\"\n"
                            "mon \"aa\";\"b\";\"c\";\"d\";\"e\";\"f\";\"g\";\"h\";\"i\";\"j\";\"k\";\"l\"\n"
                            "d_t_fmt \"%a\"\nd_fmt \"%d\"\nt_fmt \"%T\"\nam_pm \"\";\"\"\nt_fmt_ampm \"\"\n"
                            "END LC_TIME\n";

/* A character map of ASCII for localedef: the system's own tables are in a package that may be missing. */
static void charmap_put(void) {
    char text[8192] = "<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\nCHARMAP\n";
    for (int c = 0; c < 128; c++) sprintf(text + strlen(text), "<U%04X> /x%02x c%d\n", (unsigned)c, (unsigned)c, c);
    tree_put("ascii", strcat(text, "END CHARMAP\n"));
}

/* Makes the locale "comma". False: it cannot be had here. */
static bool locale_make(void) {
    char command[300];
    tree_put("comma.src", comma);
    charmap_put();
    /* -c: missing categories are only warnings */
    snprintf(command, sizeof command, "cd %s && localedef -c -f ./ascii -i comma.src ./comma >/dev/null 2>&1", tree_root);
    setenv("LOCPATH", tree_root, 1);
    if (system(command) == -1 || !setlocale(LC_ALL, "comma")) return false;
    char text[32];
    snprintf(text, sizeof text, "%.1f", 1.5);
    const bool is = strcmp(text, "1,5") == 0;
    setlocale(LC_ALL, "C");
    return is;
}

static void check_render(const char *text, const char *vars, const char *want) {
    char *out;
    size_t len;
    must(hunch_template_render(text, vars, "2026-01-02 03:04:05", &out, &len, err));
    assert_string_equal(out, want);
    hunch_free(out);
}

/* README: "A program's locale changes nothing." */
static void test_templates(void **state) {
    (void)state;
    assert_non_null(setlocale(LC_ALL, "comma"));
    check_render("{{ 1.5 + f }} {{ [f]|tojson }}", "{\"f\": 0.25}", "1.75 [0.25]");
    check_render("{{ '%.2f' % f }} {{ f|round(1) }} {{ '2.5'|float }}", "{\"f\": 0.25}", "0.25 0.2 2.5");
    check_render("{{ strftime_now('%d %b %B %a %A') }}", "{}", "02 Jan January Fri Friday");
    assert_string_equal(setlocale(LC_ALL, NULL), "comma"); /* the host's again */
    char text[16];
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
    setlocale(LC_ALL, "C");
}

static void test_specs_and_messages(void **state) {
    (void)state;
    assert_non_null(setlocale(LC_ALL, "comma"));
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f16.gguf"), NULL, 1, HUNCH_PRECISION_NATIVE);
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    hunch_engine *e = open_engine_with(m, "forced,accept=0.25,depth=2", o);
    hunch_request r;
    hunch_session *s = NULL;
    hunch_error err = {0};
    hunch_request_defaults(&r, m);
    r.prompt = &(hunch_token){1};
    r.n_prompt = 1;
    r.sampling.top_p = 1.5;
    assert_int_equal(hunch_session_open(&s, e, &r, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "top_p=1.5,"));
    hunch_engine_close(&e);
    hunch_model_close(&m);
    setlocale(LC_ALL, "C");
}

/* Metadata as JSON. */
static void test_inspect(void **state) {
    (void)state;
    char *plain, *there;
    must(hunch_inspect(data_path("models/stories260K/stories260K.f16.gguf"), &plain, err));
    assert_non_null(setlocale(LC_ALL, "comma"));
    must(hunch_inspect(data_path("models/stories260K/stories260K.f16.gguf"), &there, err));
    setlocale(LC_ALL, "C");
    assert_string_equal(there, plain);
    hunch_free(plain);
    hunch_free(there);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_specs_and_messages),
        cmocka_unit_test(test_inspect),
    };
    if (tree_make(NULL)) return 1;
    const bool there = locale_make();
    const int failed = there ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
    if (!there) printf("skipped: localedef made no locale with a decimal comma\n");
    tree_remove(NULL);
    return failed;
}
