/* SPDX-License-Identifier: Apache-2.0 */
/* utf8_test.c - all code points both ways, all malformed shapes, and every cut of a growing text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

static bool is_scalar(uint32_t cp) {
    return cp < 0x110000 && !(cp >= 0xD800 && cp < 0xE000);
}

static void test_round_trip(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp < 0x110400; cp++) {
        char s[4];
        uint32_t back = ~cp;
        int n = hn_utf8_encode(cp, s);
        if (!is_scalar(cp)) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(n, 1 + (cp >= 0x80) + (cp >= 0x800) + (cp >= 0x10000));
        assert_int_equal(hn_utf8_decode(s, (size_t)n, &back), n);
        assert_int_equal(back, cp);
        assert_int_equal(hn_utf8_decode(s, (size_t)n - 1, &back), 0);
    }
    assert_int_equal(hn_utf8_encode(UINT32_MAX, (char[4]){0}), 0);
}

/* Of all strings of up to three bytes (and the four-byte ones that open with F0..FF), exactly the encodings of scalar
 * values are valid. */
static void test_nothing_else_is_valid(void **state) {
    (void)state;
    int valid = 0;
    for (uint32_t v = 0; v < 1u << 24; v++) {
        const char s[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        if ((unsigned char)s[0] < 0x80 && v & 0xFFFF) continue; /* one byte needs no followers */
        uint32_t cp;
        int n = hn_utf8_decode(s, 3, &cp);
        if (n != 3) continue;
        char again[4];
        if (!is_scalar(cp) || hn_utf8_encode(cp, again) != 3 || memcmp(again, s, 3) != 0) fail();
        valid++;
    }
    assert_int_equal(valid, 0x10000 - 0x800 - 0x800);
    valid = 0;
    for (uint32_t v = 0; v < 1u << 20; v++) { /* 4 bits of lead, 8 of the second byte, 8 of the third */
        const char s[4] = {(char)(0xF0 | v >> 16), (char)(v >> 8), (char)v, (char)0x80};
        uint32_t cp;
        if (hn_utf8_decode(s, 4, &cp) == 4) valid++;
    }
    assert_int_equal(valid, (0x110000 - 0x10000) / 64);
}

static void test_check(void **state) {
    (void)state;
    static const struct {
        const char *s;
        size_t len, offset;
    } cases[] = {
        {"", 0, 0},
        {"plain", 5, 5},
        {"a\0b", 3, 3},
        {"\xC3\xA9t\xC3\xA9", 5, 5},
        {"ab\xFFz", 4, 2},
        {"ab\xC3", 3, 2},
        {"\xC0\x80", 2, 0},             /* overlong NUL */
        {"x\xE0\x9F\xBF", 4, 1},        /* overlong */
        {"\xED\xA0\x80", 3, 0},         /* surrogate */
        {"\xF0\x8F\xBF\xBF", 4, 0},     /* overlong */
        {"\xF4\x90\x80\x80", 4, 0},     /* above U+10FFFF */
        {"\xF0\x9F\x90\xA6\x80", 5, 4}, /* stray continuation */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hn_utf8_check(cases[i].s, cases[i].len), cases[i].offset);
    }
}

static void test_bytes(void **state) {
    (void)state;
    int begin[5] = {0}, inside = 0;
    for (int c = 0; c < 256; c++) {
        begin[hn_utf8_length((char)c)]++;
        inside += hn_utf8_inside((char)c);
    }
    assert_int_equal(inside, 64);
    assert_int_equal(begin[0], 64 + 2 + 11); /* inside, overlong, too large */
    assert_int_equal(begin[1], 128);
    assert_int_equal(begin[2], 30);
    assert_int_equal(begin[3], 16);
    assert_int_equal(begin[4], 5);
    assert_int_equal(hn_utf8_length('\xE2'), 3);
}

static void test_mask(void **state) {
    (void)state;
    char text[] = "a\033[1m\n\x7F \xC2\x9Bz\xC2\xA0\xC2";
    assert_string_equal(hn_utf8_mask(text, '?'), "a?[1m?? ?""?z\xC2\xA0\xC2");
}

static void test_mend(void **state) {
    (void)state;
    char out[64];
    static const char text[] = "caf\xe9 \xC3\xA9\xED\xA0\x80 \xF0\x9F\x98";
    const size_t n = hn_utf8_mend(text, sizeof text - 1, out, sizeof out);
    static const char want[] = "caf\xEF\xBF\xBD \xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
    assert_int_equal(n, sizeof want - 1);
    assert_memory_equal(out, want, n);
    assert_int_equal(hn_utf8_mend("", 0, out, 0), 0);
    assert_int_equal(hn_utf8_mend(text, sizeof text - 1, out, 5), 3);
    assert_int_equal(hn_utf8_mend(text, sizeof text - 1, out, 8), 7);
}

static void test_complete(void **state) {
    (void)state;
    static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\xA6z";
    static const size_t boundaries[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
    for (size_t n = 0; n < sizeof boundaries / sizeof *boundaries; n++) {
        assert_int_equal(hn_utf8_complete(text, n), boundaries[n]);
    }
    /* What can never become valid counts as complete; the caller replaces it. */
    assert_int_equal(hn_utf8_complete("a\xFF", 2), 2);
    assert_int_equal(hn_utf8_complete("a\x80\x80\x80\x80", 5), 5);
    assert_int_equal(hn_utf8_complete("\xE0\x80", 2), 2); /* overlong already */
    assert_int_equal(hn_utf8_complete("\xED\xA0", 2), 2); /* surrogate already */
    assert_int_equal(hn_utf8_complete("\xE2\x82\xAC\x80", 4), 4);
    assert_int_equal(hn_utf8_complete("\xC3\xC3", 2), 1); /* the first is lost, the second may go on */
    assert_int_equal(hn_utf8_complete("\xF0\x9F\x90", 3), 0);
    assert_int_equal(hn_utf8_complete("\xF4\x90\x80", 3), 3); /* above U+10FFFF already */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_nothing_else_is_valid),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_mend),
        cmocka_unit_test(test_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
