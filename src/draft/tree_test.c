/* SPDX-License-Identifier: Apache-2.0 */
/* tree_test.c - adding, sharing, limits, and that the walker finds each kind of damage. */
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
    assert_int_equal(hn_tree_add(&t, 0, 1, 0, .5f), -1); /* no row left */
    assert_int_equal(t.n_candidates, 0);
    hn_tree_reset(&t, 7, 1000);
    assert_int_equal(t.max_rows, HN_TREE_ROWS);
}

static void test_share_row_not_candidate(void **state) {
    (void)state;
    hn_tree t;
    hn_tree_reset(&t, 1, 64);
    int a = hn_tree_add(&t, 0, 5, 0, .25f), b = hn_tree_add(&t, 0, 6, 0, .5f);
    int again = hn_tree_add(&t, 0, 5, 1, .75f), below = hn_tree_add(&t, a, 5, 1, 1);
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
    /* the order of addition is kept, and each drafter counts its own */
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
    assert_int_equal(hn_tree_add(&t, 0, 1, 0, 1), 1);
    assert_int_equal(hn_tree_add(&t, 1, 1, 0, 1), 2);
    assert_int_equal(hn_tree_add(&t, 2, 1, 0, 1), -1);
    assert_int_equal(hn_tree_add(&t, 0, 1, 1, 1), 1); /* sharing needs no row */
    assert_true(hn_tree_is_chain(&t));
    for (int i = t.n_candidates; i < HN_TREE_CANDIDATES; i++) assert_int_equal(hn_tree_add(&t, 0, 1, 1, 1), 1);
    assert_int_equal(hn_tree_add(&t, 0, 1, 1, 1), -1);
    assert_int_equal(t.n_candidates, HN_TREE_CANDIDATES);
    assert_true(hn_tree_valid(&t));
}

static void random_tree(hn_tree *t, uint64_t *seed) {
    hn_tree_reset(t, 3, 1 + (int)(hn_splitmix(seed) % 64));
    int adds = (int)(hn_splitmix(seed) % 300);
    for (int i = 0; i < adds; i++) {
        int row = (int)(hn_splitmix(seed) % (uint64_t)t->n_rows);
        hn_tree_add(t, row, (int32_t)(hn_splitmix(seed) % 5), (int)(hn_splitmix(seed) % 3), .5f);
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

static void test_drawn(void **state) {
    (void)state;
    static const float weight[] = {.5f, .25f, .25f};
    static const hn_proposal_dist dist = {3, NULL, weight}, *const q = &dist;
    hn_tree t;
    hn_tree_reset(&t, 1, 3);
    assert_int_equal(hn_tree_next_number(&t, 0), 0);
    assert_int_equal(hn_tree_add(&t, 0, 2, 0, .5f), 1);
    assert_int_equal(hn_tree_next_number(&t, 0), 1);
    assert_int_equal(hn_tree_next_number(&t, 4), 0);
    assert_int_equal(hn_tree_add_drawn(&t, 0, 2, 4, .25f, q, true), 1); /* the same token drawn: a candidate more */
    assert_int_equal(hn_tree_add_drawn(&t, 0, 2, 4, .25f, q, false), 1);
    assert_int_equal(t.n_rows, 2);
    assert_int_equal(t.n_candidates, 3);
    assert_null(t.candidate[0].q);
    assert_false(t.candidate[0].without);
    assert_ptr_equal(t.candidate[1].q, q);
    assert_true(t.candidate[1].without);
    assert_false(t.candidate[2].without);
    assert_int_equal(t.candidate[1].number, 0);
    assert_int_equal(t.candidate[2].number, 1);
    assert_int_equal(hn_tree_next_number(&t, 0), 1);
    assert_int_equal(hn_tree_next_number(&t, 4), 2);
    assert_int_equal(hn_tree_add_drawn(&t, 1, 0, 4, 1, q, false), 2);
    assert_int_equal(hn_tree_add_drawn(&t, 1, 1, 4, 1, q, false), -1); /* no row: nothing changes, not even the number */
    assert_int_equal(hn_tree_next_number(&t, 4), 3);
    assert_true(hn_tree_valid(&t));
}

/* A small example: numbers stay, so that later draws do not use the same noise again. */
static void test_keep(void **state) {
    (void)state;
    hn_tree t;
    hn_tree_reset(&t, 1, 64);
    hn_tree_add(&t, 0, 5, 0, 1); /* row 1 */
    hn_tree_add(&t, 0, 6, 0, 1); /* row 2 */
    hn_tree_add(&t, 1, 7, 0, 1); /* row 3 */
    hn_tree_add(&t, 2, 8, 0, 1); /* row 4 */
    hn_tree_add(&t, 0, 6, 1, 1); /* shares row 2 */
    const bool keep[] = {false, false, true, false, true}; /* the root always stays */
    int16_t map[HN_TREE_ROWS];
    hn_tree_keep(&t, keep, map);
    const int16_t went[] = {0, -1, 1, -1, 2};
    assert_memory_equal(map, went, sizeof went);
    assert_int_equal(t.n_rows, 3);
    assert_int_equal(t.token[1], 6);
    assert_int_equal(t.token[2], 8);
    assert_int_equal(t.parent[2], 1);
    assert_int_equal(t.n_candidates, 3);
    assert_int_equal(t.candidate[0].number, 1);
    assert_int_equal(t.candidate[1].number, 3);
    assert_int_equal(t.candidate[2].drafter, 1);
    assert_int_equal(t.candidate[t.first[0]].next, 2);
    assert_int_equal(hn_tree_next_number(&t, 0), 4);
    assert_true(hn_tree_valid(&t));
    assert_true(hn_tree_is_chain(&t));
    assert_int_equal(hn_tree_add(&t, 2, 9, 0, 1), 3);
    assert_int_equal(t.candidate[3].number, 4);
    assert_true(hn_tree_valid(&t));
}

/* All that was added since is removed, even if rows were shared with it; later additions do not depend on it. */
static void test_rewind(void **state) {
    (void)state;
    uint64_t seed = 13;
    for (int i = 0; i < 1000; i++) {
        hn_tree t, u;
        hn_tree_reset(&t, 1, 64);
        const int some = (int)(hn_splitmix(&seed) % 40), more = (int)(hn_splitmix(&seed) % 40);
        for (int k = 0; k < some; k++)
            hn_tree_add(&t, (int)(hn_splitmix(&seed) % (uint64_t)t.n_rows), (int32_t)(hn_splitmix(&seed) % 5), 0, 1);
        u = t;
        for (int k = 0; k < more; k++)
            hn_tree_add(&t, (int)(hn_splitmix(&seed) % (uint64_t)t.n_rows), (int32_t)(hn_splitmix(&seed) % 5), 1, 1);
        hn_tree_rewind(&t, u.n_rows, u.n_candidates);
        assert_true(hn_tree_valid(&t));
        assert_int_equal(t.n_rows, u.n_rows);
        assert_memory_equal(t.first, u.first, (size_t)u.n_rows * sizeof *u.first);
        assert_memory_equal(t.last, u.last, (size_t)u.n_rows * sizeof *u.last);
        for (int c = 0; c < u.n_candidates; c++) assert_int_equal(t.candidate[c].next, u.candidate[c].next);
        const int row = (int)(hn_splitmix(&seed) % (uint64_t)t.n_rows);
        assert_int_equal(hn_tree_add(&t, row, 3, 2, 1), hn_tree_add(&u, row, 3, 2, 1));
        assert_int_equal(hn_tree_next_number(&t, 1), 0);
        assert_true(hn_tree_valid(&t));
    }
}

static void path_of(const hn_tree *t, int row, int32_t path[HN_TREE_ROWS]) {
    for (; row; row = t->parent[row]) path[t->depth[row] - 1] = t->token[row];
}

/* Any closed set of rows: exactly their paths stay, in order, with all their candidates; keeping all changes nothing. */
static void test_keep_random(void **state) {
    (void)state;
    uint64_t seed = 12;
    for (int i = 0; i < 1000; i++) {
        hn_tree t, u;
        bool keep[HN_TREE_ROWS] = {true};
        int16_t map[HN_TREE_ROWS];
        int rows = 1, candidates = 0, before = 0;
        random_tree(&t, &seed);
        for (int r = 1; r < t.n_rows; r++) rows += keep[r] = keep[t.parent[r]] && hn_splitmix(&seed) % 4;
        for (int c = 0; c < t.n_candidates; c++) candidates += keep[t.candidate[c].child];
        u = t;
        hn_tree_keep(&u, keep, i % 2 ? map : NULL);
        assert_true(hn_tree_valid(&u));
        assert_int_equal(u.n_rows, rows);
        assert_int_equal(u.n_candidates, candidates);
        for (int r = 0; r < t.n_rows && i % 2; r++) {
            int32_t a[HN_TREE_ROWS], b[HN_TREE_ROWS];
            assert_int_equal(map[r] >= 0, keep[r]);
            if (map[r] < 0) continue;
            assert_int_equal(map[r], before++);
            assert_int_equal(u.depth[map[r]], t.depth[r]);
            path_of(&t, r, a);
            path_of(&u, map[r], b);
            assert_memory_equal(a, b, (size_t)t.depth[r] * sizeof *a);
        }
        for (int r = 0; r < HN_TREE_ROWS; r++) keep[r] = true;
        hn_tree v = u;
        hn_tree_keep(&v, keep, NULL);
        assert_int_equal(v.n_rows, u.n_rows);
        assert_memory_equal(v.parent, u.parent, (size_t)u.n_rows * sizeof *u.parent);
        assert_int_equal(v.n_candidates, u.n_candidates);
        for (int c = 0; c < u.n_candidates; c++) {
            assert_int_equal(v.candidate[c].number, u.candidate[c].number);
            assert_int_equal(v.candidate[c].next, u.candidate[c].next);
        }
    }
}

static void test_walker_finds_damage(void **state) {
    (void)state;
    hn_tree good;
    hn_tree_reset(&good, 1, 64);
    hn_tree_add(&good, 0, 5, 0, 1);
    hn_tree_add(&good, 0, 6, 0, 1);
    hn_tree_add(&good, 1, 7, 1, 1);
    hn_tree_add(&good, 0, 5, 1, 1);
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
        cmocka_unit_test(test_drawn),               cmocka_unit_test(test_keep),
        cmocka_unit_test(test_keep_random), cmocka_unit_test(test_rewind),         cmocka_unit_test(test_walker_finds_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
