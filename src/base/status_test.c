/* SPDX-License-Identifier: Apache-2.0 */
/* status_test.c - messages stay one printable line of valid UTF-8 that fits, whatever they quote. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/status.h"
#include "base/utf8.h"

static void test_fail_writes_status_and_line(void **state) {
    (void)state;
    hunch_error err;
    assert_int_equal(hn_fail(&err, HUNCH_REFUSED, "%s: %d tensors", "x.gguf", 3), HUNCH_REFUSED);
    assert_int_equal(err.status, HUNCH_REFUSED);
    assert_string_equal(err.message, "x.gguf: 3 tensors");
    assert_int_equal(hn_fail(NULL, HUNCH_USAGE, "nobody listens"), HUNCH_USAGE);
    assert_int_equal(hn_fail_memory(&err, "the cache", 12), HUNCH_NO_MEMORY);
    assert_string_equal(err.message, "no memory for the cache (12 bytes)");
    hn_error_clear(&err);
    assert_int_equal(err.status, HUNCH_OK);
    assert_string_equal(err.message, "");
    hn_error_clear(NULL);
}

static void test_control_bytes_are_masked(void **state) {
    (void)state;
    hunch_error err;
    hn_fail(&err, HUNCH_FAILED, "key 'a\nb\x1b[2J\x7f' \xC3\xA9");
    assert_string_equal(err.message, "key 'a?b?[2J?' \xC3\xA9");
    hn_fail(&err, HUNCH_FAILED, "\xC2\x9B" "2J \xC2\x80 \xC2\xA0 \xC2");
    assert_string_equal(err.message, "??2J ?? \xC2\xA0 ");
}

static void test_prefix_keeps_status(void **state) {
    (void)state;
    hunch_error err;
    hn_fail(&err, HUNCH_REFUSED, "tensor %d is cut off", 7);
    hn_error_prefix(&err, "%s", "m.gguf");
    assert_string_equal(err.message, "m.gguf: tensor 7 is cut off");
    assert_int_equal(err.status, HUNCH_REFUSED);
    hn_error_prefix(NULL, "x");
}

/* Fills the message with two-byte characters from every offset, so that the cut meets both halves. */
static void test_cut_messages_stay_utf8(void **state) {
    (void)state;
    char text[2 * sizeof((hunch_error *)0)->message];
    for (size_t lead = 0; lead < 4; lead++) {
        for (size_t i = 0; i + 4 < sizeof text; i += 4) memcpy(text + i, "\xF0\x9F\x90\xA6", 5);
        hunch_error err;
        hn_fail(&err, HUNCH_FAILED, "%.*s%s", (int)lead, "abc", text);
        size_t n = strlen(err.message);
        assert_true(n < sizeof err.message && n > sizeof err.message - 6);
        assert_int_equal(hn_utf8_check(err.message, n), n);
        hn_error_prefix(&err, "%s", text);
        n = strlen(err.message);
        assert_true(n < sizeof err.message);
        assert_int_equal(hn_utf8_check(err.message, n), n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_writes_status_and_line),
        cmocka_unit_test(test_control_bytes_are_masked),
        cmocka_unit_test(test_prefix_keeps_status),
        cmocka_unit_test(test_cut_messages_stay_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
