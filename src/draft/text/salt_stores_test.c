/* SPDX-License-Identifier: Apache-2.0 */
/* salt_stores_test.c - which store a text has, and drafters whose stores outlive texts: what a text of one salt left is drafted for texts
 * of that salt alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draft/drafter_for_tests.h"
#include "draft/text/salt_stores.h"

static void test_stores(void **state) {
    (void)state;
    static hn_salt_stores t;
    int store[HN_SALTS + 1], again, none = 0;
    bool fresh;
    assert_int_equal(none = hn_salt_stores_enter(&t, 0, &fresh), 1);
    assert_false(fresh);
    for (int i = 0; i < HN_SALTS; i++) { /* each its own */
        store[i] = hn_salt_stores_enter(&t, 100 + (uint64_t)i, &fresh);
        assert_true(fresh && store[i] > 1 && store[i] < HN_SALT_STORES);
        for (int k = 0; k < i; k++) assert_int_not_equal(store[i], store[k]);
    }
    assert_int_equal(hn_salt_stores_enter(&t, 99, &fresh), 0); /* no store is idle */
    assert_int_equal(again = hn_salt_stores_enter(&t, 103, &fresh), store[3]);
    assert_false(fresh);
    hn_salt_stores_leave(&t, &again);
    hn_salt_stores_leave(&t, &again); /* has none any more */
    const int fifth = store[5], seventh = store[7];
    hn_salt_stores_leave(&t, &store[7]);
    hn_salt_stores_leave(&t, &store[5]);
    assert_int_equal(hn_salt_stores_enter(&t, 105, &fresh), fifth); /* it is still there */
    assert_false(fresh);
    assert_int_equal(hn_salt_stores_enter(&t, 99, &fresh), seventh); /* of those that are idle; 3 still has a text */
    assert_true(fresh);
    assert_int_equal(hn_salt_stores_enter(&t, 107, &fresh), 0);
    hn_salt_stores_leave(&t, &none);
}

static void begin_salted(hn_drafter *d, int seq, uint64_t salt, const int32_t *token, int n) {
    const hn_begin b = {.seq = seq, .salt = salt, .text = {token, n, n}};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
}

enum { N = 200, PROMPT = 40, TURNS = 4 };

/* So many texts of this salt, which differ in their first token: often enough for the thresholds of drafters. */
static void learn(hn_drafter *d, uint64_t salt, int32_t *text) {
    hn_tree t;
    for (int turn = 0; turn < TURNS; turn++) {
        text[0] = 500 + turn;
        begin_salted(d, 0, salt, text, N);
        draft(d, 0, (hn_committed_text){text, N, N}, DEPTH, &t);
        d->ops->end(d, 0);
    }
}

/* How many of the tokens after the text's first n a text of this salt is proposed. */
static int drafted(hn_drafter *d, uint64_t salt, const int32_t *token, int n) {
    hn_tree t;
    int right = 0;
    begin_salted(d, 1, salt, token, n);
    draft(d, 1, (hn_committed_text){token, n, n}, DEPTH, &t);
    for (int row = 0; n + right < N && (row = hn_tree_child(&t, row, token[n + right])) > 0;) right++;
    d->ops->end(d, 1);
    return right;
}

static void test_drafters(void **state) {
    (void)state;
    static const char *const specs[] = {"suffix,depth=16", "cache,depth=8", "ngram,form=mod,min=4,max=4,depth=16"};
    int32_t text[N];
    for (int i = 0; i < N; i++) text[i] = i; /* which repeats nothing */
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++)
        for (uint64_t salt = 0; salt < 2; salt++) {
            hn_drafter d;
            open_or_fail(&d, specs[k], 2);
            learn(&d, salt, text);
            assert_true(drafted(&d, salt, text, PROMPT) >= 4);
            d.ops->forget(&d);
            assert_int_equal(drafted(&d, salt, text, PROMPT), 0);
            hn_drafter_close(&d);
            open_or_fail(&d, specs[k], 2);
            learn(&d, salt, text);
            for (uint64_t other = 0; other < 30; other++)
                if (other != salt && drafted(&d, other, text, PROMPT)) fail_msg("%s: salt %d for %d", specs[k], (int)salt, (int)other);
            hn_drafter_close(&d);
        }
}

/* A text of each of so many salts at once: those beyond the stores are drafted from their own text alone. */
static void test_many(void **state) {
    (void)state;
    enum { TEXTS = HN_SALTS + 3 };
    int32_t text[N];
    hn_drafter d;
    for (int i = 0; i < N; i++) text[i] = i;
    open_or_fail(&d, "suffix", TEXTS + 1);
    for (int i = 0; i < TEXTS; i++) begin_salted(&d, i, 1 + (uint64_t)i, text, N);
    for (int i = 0; i < TEXTS; i++) d.ops->end(&d, i);
    assert_true(drafted(&d, 1 + 0, text, PROMPT) > 0);
    assert_int_equal(drafted(&d, TEXTS, text, PROMPT), 0);
    hn_drafter_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stores), cmocka_unit_test(test_drafters), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
