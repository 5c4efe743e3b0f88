/* SPDX-License-Identifier: Apache-2.0 */
/* head_kind_test.c - the kind of a folder is found by what lies in it, and SPECs that are a path alone are told from kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "draft/drafter.h"
#include "draft/head_kind.h"
#include "fixture.h"

static const char *kind_of(const char *path) {
    hn_source *src;
    must(hn_source_open_head(&src, data_path(path), err));
    const char *kind = hn_head_kind(src);
    static char copy[40];
    snprintf(copy, sizeof copy, "%s", kind ? kind : "nothing");
    hn_source_close(&src);
    return copy;
}

static void test_folders(void **state) {
    (void)state;
    static const char *const folders[][2] = {
        {"goldens-heads/eagle1-bias-bin/head", "eagle"},      {"goldens-heads/eagle2-nobias-gqa/head", "eagle"},
        {"goldens-heads/hass-bias/head", "eagle"},            {"goldens-heads/eagle3-official-d2t/head", "eagle3"},
        {"goldens-heads/eagle3-official-fullvocab/head", "eagle3"}, {"goldens-heads/eagle3spec-plain/head", "eagle3"},
        {"goldens-heads/eagle3-narrow/head", "eagle3"},       {"goldens-heads/peagle-spec-2layers/head", "peagle"},
        {"goldens-heads/mtp-spec-qwen3/head", "mtp"},         {"goldens-heads/targets/llama-a", "model"},
        {"goldens-heads/targets/qwen3-a", "model"}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) assert_string_equal(kind_of(folders[i][0]), folders[i][1]);
}

static void check_spec(const char *text, const char *kind, const char *path, int n) {
    hn_spec s;
    must(hn_spec_parse(&s, text, err));
    if (kind)
        assert_string_equal(s.kind, kind);
    else
        assert_null(s.kind);
    if (path)
        assert_string_equal(s.path, path);
    else
        assert_null(s.path);
    assert_int_equal(s.n, n);
    assert_string_equal(s.text, text);
    hn_spec_fini(&s);
}

static void test_specs(void **state) {
    (void)state;
    char file[600], spec[700];
    check_spec("./head", NULL, "./head", 0);
    check_spec("/a/b:c,depth=3", NULL, "/a/b:c", 1);
    check_spec("eagle3:/a/b,depth=3,topk=4", "eagle3", "/a/b", 2);
    check_spec("ngram", "ngram", NULL, 0);
    check_spec("nowhere", "nowhere", NULL, 0); /* no such file: an unknown kind */
    snprintf(file, sizeof file, "%s", data_path("goldens-heads/hass-bias/head"));
    snprintf(spec, sizeof spec, "%s,tree=dynamic", file);
    check_spec(spec, NULL, file, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folders), cmocka_unit_test(test_specs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
