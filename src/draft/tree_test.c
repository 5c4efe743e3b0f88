/* SPDX-License-Identifier: Apache-2.0 */
/* tree_test.c - adding, sharing, limits, and that the walker sees each kind of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "draft/tree.h"

static void test_root_alone(void **state) {
    (void)state;
    hn_tree t;
    hn_tree_reset(&t, 7, 0);
    assert_int_equal(t.max_rows, 1);
    assert_int_equal(t.n_rows, 1);
    assert_int_equal(t.token[0], 7);
    assert_int_equal(hn_tree_depth(&t), 0);
    assert_true(hn_tree_is_chain(&t));
    assert_true(hn_tree_valid(&t));
    assert_int_equal(hn_tree_add(&t, 0, 1, 0, .5f, NULL), -1); /* no row left */
    assert_int_equal(t.n_candidates, 0);
    hn_tree_reset(&t, 7, 1000);
    assert_int_equal(t.max_rows, HN_TREE_ROWS);
}

static void test_share_row_not_candidate(void **state) {
    (void)state;
    hn_tree t;
    hn_tree_reset(&t, 1, 64);
    int a = hn_tree_add(&t, 0, 5, 0, .25f, NULL), b = hn_tree_add(&t, 0, 6, 0, .5f, NULL);
    int again = hn_tree_add(&t, 0, 5, 1, .75f, NULL), below = hn_tree_add(&t, a, 5, 1, 1, NULL);
    assert_int_equal(a, again);
    assert_int_not_equal(a, b);
    assert_int_not_equal(a, below);
    assert_int_equal(t.n_rows, 4);
    assert_int_equal(t.n_candidates, 4);
    assert_true(hn_tree_valid(&t));
    assert_false(hn_tree_is_chain(&t));
    assert_int_equal(hn_tree_depth(&t), 2);
    assert_int_equal(hn_tree_child(&t, 0, 6), b);
    assert_int_equal(hn_tree_child(&t, 0, 9), -1);
    assert_int_equal(hn_tree_child(&t, b, 5), -1);
    /* the order of adding is kept, and each drafter counts its own */
    const int order[] = {0, 1, 2};
    int c = t.first[0];
    for (int i = 0; i < 3; i++, c = t.candidate[c].next) assert_int_equal(c, order[i]);
    assert_int_equal(c, -1);
    assert_int_equal(t.candidate[1].number, 1);
    assert_int_equal(t.candidate[2].number, 0);
    assert_int_equal(t.candidate[3].number, 1);
}

static void test_limits(void **state) {
    (void)state;
    hn_tree t;
    hn_tree_reset(&t, 0, 3);
    assert_int_equal(hn_tree_add(&t, 0, 1, 0, 1, NULL), 1);
    assert_int_equal(hn_tree_add(&t, 1, 1, 0, 1, NULL), 2);
    assert_int_equal(hn_tree_add(&t, 2, 1, 0, 1, NULL), -1);
    assert_int_equal(hn_tree_add(&t, 0, 1, 1, 1, NULL), 1); /* sharing needs no row */
    assert_true(hn_tree_is_chain(&t));
    for (int i = t.n_candidates; i < HN_TREE_CANDIDATES; i++) assert_int_equal(hn_tree_add(&t, 0, 1, 1, 1, NULL), 1);
    assert_int_equal(hn_tree_add(&t, 0, 1, 1, 1, NULL), -1);
    assert_int_equal(t.n_candidates, HN_TREE_CANDIDATES);
    assert_true(hn_tree_valid(&t));
}

static void random_tree(hn_tree *t, uint64_t *seed) {
    hn_tree_reset(t, 3, 1 + (int)(hn_splitmix(seed) % 64));
    int adds = (int)(hn_splitmix(seed) % 300);
    for (int i = 0; i < adds; i++) {
        int row = (int)(hn_splitmix(seed) % (uint64_t)t->n_rows);
        hn_tree_add(t, row, (int32_t)(hn_splitmix(seed) % 5), (int)(hn_splitmix(seed) % 3), .5f, NULL);
    }
}

static void test_random_trees_are_valid(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int i = 0; i < 2000; i++) {
        hn_tree t;
        random_tree(&t, &seed);
        assert_true(hn_tree_valid(&t));
        int deepest = 0;
        for (int r = 1; r < t.n_rows; r++) {
            int depth = 0;
            for (int a = r; a; a = t.parent[a]) depth++;
            assert_int_equal(depth, t.depth[r]);
            if (depth > deepest) deepest = depth;
        }
        assert_int_equal(hn_tree_depth(&t), deepest);
        assert_true(hn_tree_is_chain(&t) == (deepest == t.n_rows - 1));
    }
}

static void test_walker_sees_damage(void **state) {
    (void)state;
    hn_tree good;
    hn_tree_reset(&good, 1, 64);
    hn_tree_add(&good, 0, 5, 0, 1, NULL);
    hn_tree_add(&good, 0, 6, 0, 1, NULL);
    hn_tree_add(&good, 1, 7, 1, 1, NULL);
    hn_tree_add(&good, 0, 5, 1, 1, NULL);
    assert_true(hn_tree_valid(&good));
    for (int damage = 0; damage < 14; damage++) {
        hn_tree t = good;
        switch (damage) {
        case 0: t.parent[1] = 2; break;
        case 1: t.depth[3] = 1; break;
        case 2: t.token[2] = 5; break;
        case 3: t.candidate[0].token = 8; break;
        case 4: t.candidate[1].child = 0; break;
        case 5: t.candidate[2].row = 2; break;
        case 6: t.candidate[3].next = 0; break; /* a cycle */
        case 7: t.last[0] = 1; break;
        case 8: t.first[1] = -1; break;
        case 9: t.n_rows = 5; break;
        case 10: t.max_rows = 3; break;
        case 11: t.candidate[3].number = 0; break;
        case 12: t.n_candidates = 5; break;
        case 13: t.parent[0] = 0; break;
        }
        assert_false(hn_tree_valid(&t));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root_alone),          cmocka_unit_test(test_share_row_not_candidate),
        cmocka_unit_test(test_limits),              cmocka_unit_test(test_random_trees_are_valid),
        cmocka_unit_test(test_walker_sees_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
