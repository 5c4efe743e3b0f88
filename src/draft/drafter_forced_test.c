/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_forced_test.c - the oracle drafter is right with the requested probability, repeatable, within its budget, and its
 * trees are valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "draft/drafter.h"

enum { PROMPT = 5, ORACLE = 4000, ALL = PROMPT + ORACLE };
static const hn_target_info TARGET = {.vocab = 17, .hidden = 8, .layers = 2, .context = ALL};
static int32_t text[ALL];

static void text_make(void) {
    uint64_t seed = 3;
    for (int i = 0; i < ALL; i++) text[i] = (int32_t)(hn_splitmix(&seed) % 17);
}

static void open_begin(hn_drafter *d, const char *spec) {
    hunch_error err = {0};
    if (hn_drafter_open(d, spec, 0, 1, &TARGET, &err)) fail_msg("%s", err.message);
    assert_true(d->needs.oracle);
    const hn_begin b = {.seq = 0, .oracle = text + PROMPT, .n_oracle = ORACLE};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
}

/* One round at a text of n tokens; returns how many tokens of the oracle the tree has. */
static int round_at(hn_drafter *d, const int32_t *h, int n, int budget, hn_tree *t) {
    hn_tree_reset(t, h[n - 1], HN_TREE_ROWS);
    hn_propose p = {.seq = 0, .text = {h, n, PROMPT}, .tree = t, .budget = budget};
    for (int level = 0; p.budget > 0; level++) {
        int before = t->n_rows;
        if (!d->ops->propose(d, &p, 1, level)) break;
        p.budget -= t->n_rows - before;
    }
    assert_true(hn_tree_valid(t));
    assert_true(t->n_rows - 1 <= budget);
    for (int r = 1; r < t->n_rows; r++) assert_in_range(t->token[r], 0, TARGET.vocab - 1);
    int row = 0, accepted = 0;
    while (n + accepted < ALL && (row = hn_tree_child(t, row, text[n + accepted])) > 0) accepted++;
    return accepted;
}

/* Levels are right independently with probability A: of the levels that were reached, A is right (5 sigma). */
static void check_rate(const char *spec, double accept, int depth) {
    hn_drafter d;
    hn_tree t;
    open_begin(&d, spec);
    double tried = 0, right = 0;
    for (int n = PROMPT; n + depth < ALL;) {
        int accepted = round_at(&d, text, n, 63, &t);
        assert_in_range(accepted, 0, depth);
        assert_int_equal(hn_tree_depth(&t), depth);
        tried += accepted + (accepted < depth);
        right += accepted;
        n += accepted + 1;
    }
    if (fabs(right - accept * tried) > 5 * sqrt(tried * accept * (1 - accept)))
        fail_msg("%s: %g of %g levels right", spec, right, tried);
    hn_drafter_close(&d);
}

static void test_rate(void **state) {
    (void)state;
    check_rate("forced", 1, 4);
    check_rate("forced,accept=0", 0, 4);
    check_rate("forced,accept=.8,depth=8", .8, 8);
    check_rate("forced,accept=.5,depth=3,width=4,seed=7", .5, 3);
    check_rate("forced,accept=.3,depth=6,width=3", .3, 6);
    check_rate("forced,accept=.9,depth=1,width=16", .9, 1);
}

static void test_wide_trees_are_trees(void **state) {
    (void)state;
    hn_drafter d;
    hn_tree t;
    open_begin(&d, "forced,accept=.6,depth=5,width=3");
    int garbage = 0, places[3] = {0};
    for (int n = PROMPT; n < 500; n++) {
        round_at(&d, text, n, 63, &t);
        int spine = 0;
        for (int r = 1; r < t.n_rows; r++) {
            int width = 0;
            for (int c = t.first[r]; c >= 0; c = t.candidate[c].next) width++;
            spine += width == 3;
            garbage += width == 1 || width == 2;
        }
        assert_int_equal(spine, 4); /* and the root: W candidates a level */
        for (int c = t.first[0], k = 0; c >= 0; c = t.candidate[c].next, k++) places[k] += t.candidate[c].token == text[n];
    }
    assert_true(garbage > 500);
    for (int k = 0; k < 3; k++) assert_in_range(places[k], 60, 140); /* 495 * .6 / 3 = 99 */
    hn_drafter_close(&d);
}

static void test_random_trees(void **state) {
    (void)state;
    hn_drafter d;
    hn_tree t;
    open_begin(&d, "forced,tree=random,accept=.5,depth=6,width=3,seed=1");
    int chains = 0, doubles = 0, full = 0, accepted[7] = {0};
    for (int n = PROMPT; n < 2000; n++) {
        accepted[round_at(&d, text, n, 1 + n % 40, &t)]++;
        chains += hn_tree_is_chain(&t);
        doubles += t.n_candidates > t.n_rows - 1;
        full += t.n_rows - 1 == 1 + n % 40;
    }
    assert_true(chains > 100 && doubles > 100 && full > 100);
    for (int i = 0; i < 7; i++) assert_true(accepted[i] > 10);
    hn_drafter_close(&d);
}

static void test_repeats(void **state) {
    (void)state;
    static const char *const specs[] = {"forced,accept=.5,depth=4,width=2", "forced,tree=random,accept=.5"};
    for (int i = 0; i < 2; i++) {
        hn_drafter a, b;
        hn_tree s = {0}, t = {0};
        open_begin(&a, specs[i]);
        open_begin(&b, specs[i]);
        int differ = 0;
        for (int n = PROMPT; n < 200; n += 3) {
            round_at(&a, text, n, 20, &s);
            round_at(&b, text, n, 20, &t);
            assert_int_equal(s.n_rows, t.n_rows);
            assert_memory_equal(s.token, t.token, (size_t)s.n_rows * sizeof *s.token);
            assert_memory_equal(s.parent, t.parent, (size_t)s.n_rows * sizeof *s.parent);
            round_at(&b, text, n + 1, 20, &t);
            differ += s.n_rows != t.n_rows || memcmp(s.parent, t.parent, (size_t)s.n_rows * sizeof *s.parent) != 0;
        }
        assert_true(differ > 5);
        hn_drafter_close(&a);
        hn_drafter_close(&b);
    }
}

static void test_leaves_the_oracle(void **state) {
    (void)state;
    hn_drafter d;
    hn_tree t;
    int32_t other[ALL];
    memcpy(other, text, sizeof other);
    other[PROMPT + 10] = (text[PROMPT + 10] + 1) % 17;
    open_begin(&d, "forced,depth=8");
    assert_int_equal(round_at(&d, other, PROMPT + 10, 63, &t), 8);
    assert_int_equal(round_at(&d, other, PROMPT + 11, 63, &t), 0);
    assert_int_equal(t.n_rows, 1);
    assert_int_equal(round_at(&d, other, PROMPT + 20, 63, &t), 0);
    assert_int_equal(t.n_rows, 1);
    hn_drafter_close(&d);
    open_begin(&d, "forced,depth=8");
    assert_int_equal(round_at(&d, text, PROMPT + 3, 63, &t), 8);
    assert_int_equal(round_at(&d, text, ALL - 3, 63, &t), 3);    /* no more than the oracle knows */
    assert_int_equal(round_at(&d, text, ALL, 63, &t), 0);
    hn_drafter_close(&d);
    assert_int_equal(hn_drafter_open(&d, "forced", 0, 1, &TARGET, NULL), HUNCH_OK);
    const hn_begin none = {.seq = 0};
    assert_int_equal(d.ops->begin(&d, &none, 1, NULL), HUNCH_OK);
    assert_int_equal(round_at(&d, text, PROMPT, 63, &t), 0);
    hn_drafter_close(&d);
}

static void test_cost(void **state) {
    (void)state;
    hn_drafter d;
    hn_tree t;
    open_begin(&d, "forced,depth=4,cost_us=3000");
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 5; i++) round_at(&d, text, PROMPT + i, 63, &t);
    clock_gettime(CLOCK_MONOTONIC, &b);
    assert_true((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec) >= 5 * 3e-3);
    hn_drafter_close(&d);
}

int main(void) {
    text_make();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),    cmocka_unit_test(test_wide_trees_are_trees), cmocka_unit_test(test_random_trees),
        cmocka_unit_test(test_repeats), cmocka_unit_test(test_leaves_the_oracle),    cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
