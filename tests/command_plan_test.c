/* SPDX-License-Identifier: Apache-2.0 */
/* command_plan_test.c - the `hunch` command: `plan` from figures, its JSON and its picture, and figures that are refused. plan_test.c has
 * what is measured. */
#include "command.h"

#include "base/utf8.h"

#define FIGURES "--machine", "bandwidth=1e11,peak=1e12", "--parameters", "8B", "--type", "Q4_K"

static void test_json(void **state) {
    (void)state;
    json_t *j = json_of("plan", FIGURES, "--batch", "1,4");
    assert_true(json_is_true(get(j, "predicted")));
    assert_non_null(strstr(text_of(j, "recommend"), "--draft"));
    assert_true(strlen(text_of(j, "why")) > 0);
    const double plain = json_number_value(get(get(j, "plain"), "predicted_tok_s"));
    assert_true(plain > 15 && plain < 1e11 / 4.7e9); /* 4.7 GB a token at most so many times a second */
    const json_t *methods = get(j, "methods"), *m;
    size_t i;
    bool found = false;
    json_array_foreach(methods, i, m) {
        if (strcmp(text_of(m, "draft"), "mtp") != 0) continue;
        near(json_number_value(json_array_get(get(m, "acceptance"), 0)), .845, 1e-3); /* .72 of 3 drafts, 2.40 times as fast */
        near(real_of(get(m, "leviathan"), "c"), .106, 1e-2);
        found = true;
    }
    assert_true(found);
    json_decref(j);
}

/* A name that is too long for its bar is cut between characters: the picture stays XML. */
static void test_picture(void **state) {
    (void)state;
    for (int pad = 0; pad < 3; pad++) {
        char name[80], draft[500];
        snprintf(name, sizeof name, "%.*s\xD0\xBF\xD1\x80\xD0\xB8\xD0\xBC\xD0\xB5\xD1\x80\xD0\xBD\xD1\x8B\xD0\xB9.gguf", 15 + pad,
                 "aaaaaaaaaaaaaaaaaa");
        (void)unlink(name); /* of a run that failed */
        assert_int_equal(symlink(STORIES, name), 0);
        snprintf(draft, sizeof draft, "model:%s", name);
        result r = command("plan", FIGURES, "--draft", "ngram", "--draft", draft, "--svg", path_of("p.svg"));
        (void)unlink(name);
        if (r.code) fail_msg("%s", r.err);
        size_t len;
        char *svg = file_read(path_of("p.svg"), &len);
        assert_int_equal(hn_utf8_check(svg, len), len);
        assert_non_null(strstr(svg, "model:aaaaaaaaaaaaaaa"));
        assert_non_null(strstr(svg, "</svg>\n"));
        free(svg);
        result_free(&r);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *args[6], *says;
    } cases[] = {{{"plan", "--machine", "bandwidth=1e9"}, "--machine needs bandwidth=BYTES/S and peak=INT8_MAC/S"},
                 {{"plan", "--machine", "bandwidth=x,peak=1", "--parameters", "8B"}, "such as bandwidth=36e9,peak=470e9"},
                 {{"plan", "--machine", "bandwidth=1e9,peak=1e9", "--parameters", "-3"}, "--parameters -3: expected a number"},
                 {{"plan", "--parameters", "8B"}, "--parameters needs --machine"},
                 {{"plan", "--link", "latency=1", "-m", STORIES}, "--link needs --machines"},
                 {{"plan", "-m", STORIES, "--machines", "65"}, "from 2 to 64"},
                 {{"plan", STORIES, "--machines=2", "--link", "latency=0"}, "--link: latency=0: expected latency=SECONDS"},
                 {{"plan", "-m", STORIES, "--batch", "0"}, "from 1 to 256"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r = command_args(cases[i].args);
        assert_int_equal(r.code, 2);
        if (!strstr(r.err, cases[i].says)) fail_msg("'%s' does not say '%s'", r.err, cases[i].says);
        result_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_picture), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
