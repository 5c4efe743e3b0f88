/* SPDX-License-Identifier: Apache-2.0 */
/* hold_out_test.c - measured texts, and texts that begin like them, are not used for training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "train/data/hold_out.h"

enum { N = 12, LENGTH = 80 };
static int32_t ids[N][LENGTH];
static hn_feature_text text[N];
static hn_text_role role[N];

/* Texts that differ from their first token on, with prompts of `own` tokens. */
static void make(int own) {
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < LENGTH; k++) ids[i][k] = i * LENGTH + k;
        text[i] = (hn_feature_text){.ids = ids[i], .n = LENGTH, .own = own};
    }
}

static void begins_like(int i, int other, int tokens) {
    memcpy(ids[i], ids[other], sizeof **ids * (size_t)tokens);
}

static int count(hn_text_role r) {
    int n = 0;
    for (int i = 0; i < N; i++) n += role[i] == r;
    return n;
}

static void test_spread(void **state) {
    (void)state;
    make(10);
    hn_hold_out(text, N, 3, role);
    for (int i = 0; i < N; i++) assert_int_equal(role[i], i % 4 == 2 ? HN_TEXT_HELD_OUT : HN_TEXT_LEARNED);
    hn_hold_out(text, N, 0, role);
    assert_int_equal(count(HN_TEXT_LEARNED), N);
    hn_hold_out(text, N, N + 1, role);
    assert_int_equal(count(HN_TEXT_LEARNED), N);
    hn_hold_out(text, N, N, role);
    assert_int_equal(count(HN_TEXT_HELD_OUT), N);
}

/* 2, 6 and 10 are held out. */
static void test_same_prompt(void **state) {
    (void)state;
    make(10);
    begins_like(0, 2, 10); /* the same prompt */
    begins_like(1, 6, 9);  /* another */
    begins_like(3, 6, 10); /* a later turn */
    text[3].own = 40;
    text[10].own = 70;
    text[11].own = 75;
    begins_like(11, 10, 64); /* long ones that begin alike */
    text[4].own = 70;
    begins_like(4, 10, 63);
    begins_like(6, 2, 10); /* both are held out */
    hn_hold_out(text, N, 3, role);
    const hn_text_role want[N] = {HN_TEXT_LEFT_OUT, HN_TEXT_LEARNED, HN_TEXT_HELD_OUT, HN_TEXT_LEARNED};
    assert_int_equal(role[0], want[0]);
    assert_int_equal(role[1], want[1]);
    assert_int_equal(role[2], want[2]);
    assert_int_equal(role[6], HN_TEXT_HELD_OUT);
    assert_int_equal(role[11], HN_TEXT_LEFT_OUT);
    assert_int_equal(role[4], HN_TEXT_LEARNED);
    make(10);
    begins_like(3, 6, 10);
    text[3].own = 40;
    hn_hold_out(text, N, 3, role);
    assert_int_equal(role[3], HN_TEXT_LEFT_OUT);
    assert_int_equal(count(HN_TEXT_LEFT_OUT), 1);
}

static void test_all_alike(void **state) {
    (void)state;
    make(10);
    for (int i = 0; i < N; i++) begins_like(i, 2, 10);
    hn_hold_out(text, N, 3, role);
    assert_int_equal(count(HN_TEXT_HELD_OUT), 3);
    assert_int_equal(count(HN_TEXT_LEARNED), N - 3);
    ids[5][0] = 1; /* one that differs */
    hn_hold_out(text, N, 3, role);
    assert_int_equal(count(HN_TEXT_LEARNED), 1);
}

/* Texts without a prompt: by their first tokens; a short one has no similar one. */
static void test_without_prompt(void **state) {
    (void)state;
    make(0);
    begins_like(0, 2, 16);
    begins_like(1, 2, 15);
    begins_like(5, 6, 16);
    text[5].n = 15;
    hn_hold_out(text, N, 3, role);
    assert_int_equal(role[0], HN_TEXT_LEFT_OUT);
    assert_int_equal(role[1], HN_TEXT_LEARNED);
    assert_int_equal(role[5], HN_TEXT_LEARNED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spread), cmocka_unit_test(test_same_prompt), cmocka_unit_test(test_all_alike),
                                       cmocka_unit_test(test_without_prompt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
