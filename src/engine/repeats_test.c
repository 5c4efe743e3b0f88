/* SPDX-License-Identifier: Apache-2.0 */
/* repeats_test.c - loops are found at their fourth occurrence, whatever their period, and nothing else is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "engine/repeats.h"

enum { PIECE = 64, TIMES = 4 };

/* The length at which a text that repeats with this period after `before` other tokens is found; 0: it is not. */
static size_t found_at(size_t before, size_t period) {
    static int32_t text[4096];
    for (size_t n = 0; n < 4096; n++) {
        text[n] = n < before ? (int32_t)(100000 + n) : (int32_t)((n - before) % period);
        if (hn_repeats(text, n + 1, PIECE, TIMES)) return n + 1;
    }
    return 0;
}

/* Occurrences must not overlap: the fourth begins as many periods after the first as three pieces need, each rounded up to periods. */
static void test_found_at_the_fourth_time(void **state) {
    (void)state;
    static const size_t periods[] = {1, 2, 3, 13, 63, 64, 65, 100, 300};
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        const size_t p = periods[i], step = (PIECE + p - 1) / p * p;
        assert_int_equal(found_at(0, p), 3 * step + PIECE);
        assert_int_equal(found_at(500, p), 500 + 3 * step + PIECE);
    }
    assert_int_equal(found_at(0, 2000), 0);
}

/* The same piece with other tokens between its occurrences, different each time. */
static void test_other_tokens_between(void **state) {
    (void)state;
    int32_t text[1000];
    size_t n = 0;
    for (int place = 0; place < TIMES; place++) {
        for (int i = 0; i < PIECE; i++) {
            text[n++] = i;
            assert_true(hn_repeats(text, n, PIECE, TIMES) == (place == TIMES - 1 && i == PIECE - 1));
        }
        for (int i = 0; i < 10 * (place + 1); i++) text[n++] = 1000 + place * 100 + i;
    }
    assert_false(hn_repeats(text, n, PIECE, TIMES));
}

/* By dynamic programming over all sets of occurrences. */
static int most_places(const int32_t *t, size_t n, size_t piece) {
    int best[64] = {0}; /* [end] number of occurrences up to there, from the front on */
    for (size_t end = 1; end <= n; end++) {
        best[end] = best[end - 1];
        if (end >= piece && memcmp(t + end - piece, t + n - piece, piece * sizeof *t) == 0) {
            const int more = best[end - piece] + 1;
            if (more > best[end]) best[end] = more;
        }
    }
    return best[n];
}

static void test_short_texts_against_counting(void **state) {
    (void)state;
    int32_t text[40];
    int found = 0;
    for (uint64_t draw = 0; draw < 200000; draw++) {
        uint64_t bits = (draw + 1) * 0x9E3779B97F4A7C15u;
        bits ^= bits >> 29, bits *= 0xBF58476D1CE4E5B9u, bits ^= bits >> 32;
        const size_t n = 4 + bits % 24, piece = 1 + (bits >> 8) % 4;
        for (size_t i = 0; i < n; i++) text[i] = (int32_t)((bits >> (12 + i)) & 1);
        const bool expected = n >= piece && most_places(text, n, piece) >= TIMES;
        assert_int_equal(hn_repeats(text, n, piece, TIMES), expected);
        found += expected;
    }
    assert_true(found > 1000 && found < 199000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_at_the_fourth_time),
        cmocka_unit_test(test_other_tokens_between),
        cmocka_unit_test(test_short_texts_against_counting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
