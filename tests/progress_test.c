/* SPDX-License-Identifier: Apache-2.0 */
/* progress_test.c - progress of the public calls: bytes of loading and of converting; and build information. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hunch/hunch.h"

#define STORIES HUNCH_TEST_DATA "/models/stories260K/"

typedef struct seen {
    uint64_t done, total;
    int calls;
} seen;

static void look(void *user, uint64_t done, uint64_t total) {
    seen *s = user;
    assert_true(done > s->done && done <= total);
    assert_true(s->calls == 0 || total == s->total);
    *s = (seen){done, total, s->calls + 1};
}

static void test_loading(void **state) {
    (void)state;
    seen s = {0};
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.progress = look;
    o.progress_user = &s;
    if (hunch_model_open(&m, STORIES "stories260K.f32.gguf", &o, &err) != HUNCH_OK)
        fail_msg("%s", err.message);
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    assert_true(s.calls > 40);
    assert_int_equal(s.done, s.total);
    assert_int_equal(s.total, 4 * info.parameters); /* the file is float32 */
    hunch_model_close(&m);
}

static void test_converting(void **state) {
    (void)state;
    seen s = {0};
    hunch_error err = {0};
    char path[] = "/tmp/hunch-progress-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    if (hunch_convert(STORIES "hf", path, &(hunch_convert_options){.progress = look, .progress_user = &s}, &err) != HUNCH_OK)
        fail_msg("%s", err.message);
    assert_true(s.calls > 40);
    assert_int_equal(s.done, s.total);
    unlink(path);
}

static void test_build(void **state) {
    (void)state;
    hunch_build_info b;
    hunch_build_get_info(&b);
    assert_string_equal(b.version, hunch_version());
    assert_int_equal(strncmp(b.levels, "ref", 3), 0);
    assert_non_null(strstr(b.levels, b.isa));
    assert_true(strlen(b.compiler) > 3 && strlen(b.target) > 3);
    assert_non_null(strstr(b.libraries, "pcre2 10."));
    assert_non_null(strstr(b.libraries, "utf8proc 2."));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loading), cmocka_unit_test(test_converting),
                                       cmocka_unit_test(test_build)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
