/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_lookahead_test.c - the drafter around the window: bounds of its pool, options, rows that a round has not, texts of other salts,
 * memory that runs out. Its trees, step for step: tests/selfdraft_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "draft/drafter_for_tests.h"
#include "draft/text/ngram_pool.h"

enum { VOCAB = 1000 };

/* The oldest first token makes room, and of a token the oldest n-gram. */
static void test_pool(void **state) {
    (void)state;
    enum { KEYS = 4, EACH = 2 };
    hn_ngram_pool p;
    assert_true(hn_ngram_pool_open(&p, VOCAB, 2, EACH, KEYS));
    for (int32_t token = 0; token < 6; token++)
        for (int32_t i = 0; i < 3; i++) hn_ngram_pool_add(&p, token, (int32_t[]){i, token});
    for (int32_t token = 0; token < 6; token++) assert_int_equal(hn_ngram_pool_of(&p, token), token < 2 ? 0 : EACH);
    assert_int_equal(hn_ngram_pool_at(&p, 5, 0)[0], 1);
    hn_ngram_pool_add(&p, 2, (int32_t[]){1, 2}); /* again: the newest of 2, and 3 is the oldest now */
    assert_int_equal(hn_ngram_pool_at(&p, 2, EACH - 1)[0], 1);
    assert_int_equal(hn_ngram_pool_of(&p, 2), EACH);
    hn_ngram_pool_add(&p, 9, (int32_t[]){8, 8});
    assert_int_equal(hn_ngram_pool_of(&p, 3), 0);
    assert_int_equal(hn_ngram_pool_of(&p, 2), EACH);
    assert_int_equal(p.n_keys, KEYS);
    hn_ngram_pool_clear(&p);
    for (int32_t token = 0; token < 10; token++) assert_int_equal(hn_ngram_pool_of(&p, token), 0);
    hn_ngram_pool_text(&p, (int32_t[]){1, 2, 3, 4}, 0, 4);
    assert_true(hn_ngram_pool_of(&p, 1) == 1 && hn_ngram_pool_of(&p, 2) == 1 && hn_ngram_pool_of(&p, 3) == 0);
    hn_ngram_pool_close(&p);
}

static void refused(const char *spec, const char *words) {
    hn_drafter d;
    hunch_error err = {0};
    assert_int_equal(hn_drafter_open(&d, spec, 0, 1, &TARGET, &err), HUNCH_USAGE);
    if (!strstr(err.message, words)) fail_msg("%s: %s", spec, err.message);
}

static void test_options(void **state) {
    (void)state;
    refused("lookahead,window=9,ngram=5,guess=7", "(window + guess) (ngram - 1) is 64, expected at most 63 rows");
    refused("lookahead,window=4,ngram=16,guess=0", "cells while it fills, expected at most 63");
    refused("lookahead,ngram=1", "ngram");
    static const char *const fine[] = {"lookahead,window=1,ngram=2,guess=0", "lookahead,window=1,ngram=16,guess=3",
                                       "lookahead,window=63,ngram=2,guess=0", "lookahead,window=15,ngram=5,guess=0"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        hn_drafter d;
        hn_tree t;
        const int32_t text[] = {1, 2, 3};
        open_or_fail(&d, fine[i], 1);
        begin(&d, 0, text, 3);
        for (int round = 0; round < 20; round++) {
            int16_t path[1];
            int32_t best[HN_TREE_ROWS];
            draft(&d, 0, (hn_committed_text){text, 3, 3}, DEPTH, &t);
            assert_true(t.n_rows > 1 || i == 0); /* of one column of one row the root is all there is */
            for (int k = 0; k < t.n_rows; k++) best[k] = (t.token[k] * 7 + k) % VOCAB;
            d.ops->observe(&d, &(hn_observe){.tree = &t, .path = path, .next_token = 5, .best = best, .n_best = 1}, 1);
        }
        hn_drafter_close(&d);
    }
}

/* Rounds of a target that counts up, with rows enough for a part of the window; returns how many tokens were accepted. */
static int run_text(hn_drafter *d, int seq, uint64_t salt, int budget) {
    int32_t text[TEXT], best[HN_TREE_ROWS];
    int16_t path[HN_TREE_ROWS];
    hn_tree t;
    int n = 1, accepted = 0;
    text[0] = 3;
    const hn_begin b = {.seq = seq, .salt = salt, .seed = 1, .text = {text, 1, 1}};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
    while (n < TEXT - HN_TREE_ROWS) {
        hn_observe o = {.seq = seq, .tree = &t, .path = path, .best = best, .n_best = 1};
        draft(d, seq, (hn_committed_text){text, n, 1}, budget, &t);
        for (int c = 0; c < t.n_candidates; c++) assert_true(t.candidate[c].estimate > 0 && t.candidate[c].estimate < 1);
        for (int i = 0; i < t.n_rows; i++) best[i] = (t.token[i] + 1) % 40;
        for (int row = 0; row >= 0; n++) {
            text[n] = o.next_token = (text[n - 1] + 1) % 40;
            row = hn_tree_child(&t, row, text[n]);
            if (row >= 0) path[o.n_accepted++] = (int16_t)row;
        }
        d->ops->observe(d, &o, 1);
        accepted += o.n_accepted;
    }
    return accepted;
}

static void test_few_rows(void **state) {
    (void)state;
    hn_drafter d;
    open_or_fail(&d, "lookahead,window=5,ngram=4,guess=5", 1);
    assert_int_equal(run_text(&d, 0, 0, 0), 0);
    for (int budget = 1; budget < DEPTH; budget += 6) run_text(&d, 0, 0, budget);
    assert_true(run_text(&d, 0, 0, DEPTH) > TEXT / 2);
    hn_drafter_close(&d);
}

static int guessed(hn_drafter *d, uint64_t salt, int32_t token) {
    hn_tree t;
    const hn_begin b = {.seq = 1, .salt = salt, .text = {&token, 1, 1}};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
    draft(d, 1, (hn_committed_text){&token, 1, 1}, DEPTH, &t);
    d->ops->end(d, 1);
    return hn_tree_child(&t, 0, token + 1) > 0; /* the window's own cells are the token itself */
}

static void test_salts(void **state) {
    (void)state;
    for (uint64_t salt = 0; salt < 2; salt++)
        for (int prompt = 0; prompt < 2; prompt++) {
            hn_drafter d;
            open_or_fail(&d, prompt ? "lookahead" : "lookahead,prompt=0", 2);
            run_text(&d, 0, salt, DEPTH);
            assert_true(guessed(&d, salt, 5));
            for (uint64_t other = 0; other < 30; other++)
                if (other != salt) assert_false(guessed(&d, other, 5));
            d.ops->end(&d, 0);
            assert_true(guessed(&d, salt, 5)); /* the next turn of the conversation */
            for (uint64_t other = 100; other < 130; other++) assert_false(guessed(&d, other, 5)); /* one gets the place of the first */
            run_text(&d, 0, salt, DEPTH);
            d.ops->end(&d, 0);
            d.ops->forget(&d);
            assert_false(guessed(&d, salt, 5));
            hn_drafter_close(&d);
        }
}

static void test_no_memory(void **state) {
    (void)state;
    int opened = 0, right = 0;
    for (int after = 0; after < 12; after++) {
        hn_drafter d;
        hn_fault_arm(HN_FAULT_ALLOC, after, true);
        const hunch_status st = hn_drafter_open(&d, "lookahead", 0, 1, &TARGET, NULL);
        if (!st) {
            opened++;
            right += run_text(&d, 0, 0, DEPTH) > TEXT / 2; /* without a pool from the window alone */
            d.ops->end(&d, 0);
        }
        hn_drafter_close(&d);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (st) assert_int_equal(st, HUNCH_NO_MEMORY);
    }
    assert_true(opened > right && right > 0 && opened < 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pool),  cmocka_unit_test(test_options), cmocka_unit_test(test_few_rows),
                                       cmocka_unit_test(test_salts), cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
