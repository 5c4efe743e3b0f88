/* SPDX-License-Identifier: Apache-2.0 */
/* tree_rows_test.c - the cut of several trees by their candidates' estimates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "plan/tree_rows.h"

enum { TREES = 16 };
static hn_tree tree[TREES];
static const hn_tree *trees[TREES];
static hn_plan_item list[TREES * HN_TREE_ROWS];
static bool keep[TREES][HN_TREE_ROWS];

static void reset(int n) {
    for (int i = 0; i < n; i++) {
        hn_tree_reset(&tree[i], 7, HN_TREE_ROWS);
        trees[i] = &tree[i];
    }
}

static void add_chain(int i, int n, float estimate) {
    for (int k = 0, row = 0; k < n; k++) row = hn_tree_add(&tree[i], row, 100 + k, 0, estimate);
}

static int n_kept(int i) {
    int n = 0;
    for (int r = 1; r < tree[i].n_rows; r++) n += keep[i][r];
    return n;
}

/* Fifteen texts with nothing leave all rows to the one that has a copy; with something unlikely they get what is left. */
static void test_rows_go_where_drafts_are(void **state) {
    (void)state;
    reset(16);
    add_chain(5, 30, 0.99f);
    hn_plan_cut_by_estimate(trees, 16, 48, list, keep);
    assert_int_equal(n_kept(5), 30);
    for (int i = 0; i < 16; i++)
        if (i != 5) add_chain(i, 3, 0.1f);
    hn_plan_cut_by_estimate(trees, 16, 40, list, keep);
    assert_int_equal(n_kept(5), 30);
    int others = 0;
    for (int i = 0; i < 16; i++) others += i == 5 ? 0 : n_kept(i);
    assert_int_equal(others, 10);
}

/* Candidates that stay come first, with those before them, however unlikely. */
static void test_some_stay(void **state) {
    (void)state;
    reset(2);
    add_chain(0, 10, 0.9f);
    add_chain(1, 10, 0.01f);
    tree[1].candidate[5].stays = true;
    hn_plan_cut_by_estimate(trees, 2, 10, list, keep);
    assert_int_equal(n_kept(0), 4);
    assert_int_equal(n_kept(1), 6);
    for (int r = 1; r <= 6; r++) assert_true(keep[1][r]);
    hn_plan_cut_by_estimate(trees, 2, 0, list, keep);
    assert_true(n_kept(0) == 0 && n_kept(1) == 6);
}

/* Equal chains get equal rows, from the root on. */
static void test_equal_chains_share(void **state) {
    (void)state;
    reset(4);
    for (int i = 0; i < 4; i++) add_chain(i, 20, 1);
    hn_plan_cut_by_estimate(trees, 4, 40, list, keep);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(n_kept(i), 10);
        for (int r = 0; r <= 10; r++) assert_true(keep[i][r]);
    }
}

/* A drawn row is kept whatever its estimate, and takes the place of others. */
static void test_drawn_rows_stay(void **state) {
    (void)state;
    static const float one[] = {1};
    const hn_proposal_dist q = {1, NULL, one};
    reset(2);
    const int a = hn_tree_add_drawn(&tree[0], 0, 3, 0, 0.01f, &q, false), b = hn_tree_add_drawn(&tree[0], a, 4, 0, 0, &q, false);
    add_chain(1, 5, 0.9f);
    hn_plan_cut_by_estimate(trees, 2, 4, list, keep);
    assert_true(keep[0][a] && keep[0][b]);
    assert_int_equal(n_kept(1), 2);
    hn_plan_cut_by_estimate(trees, 2, 1, list, keep);
    assert_true(keep[0][a] && keep[0][b]);
    assert_int_equal(n_kept(1), 0);
}

/* Random trees, with estimates that no drafter should have: what is kept is connected, as much as fits, and no row that was left out is
 * likelier than one that was kept. */
static void test_random_trees(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 200; round++) {
        const int n = 1 + (int)(hn_splitmix(&seed) % TREES), most = (int)(hn_splitmix(&seed) % 80);
        int rows = 0, kept = 0;
        double least = 2, largest = 0;
        reset(n);
        for (int i = 0; i < n; i++)
            for (int k = (int)(hn_splitmix(&seed) % 70); k > 0; k--) {
                const float estimates[] = {0.2f, 0.7f, 1, 1.5f, NAN, -1};
                (void)hn_tree_add(&tree[i], (int)(hn_splitmix(&seed) % (uint64_t)tree[i].n_rows), (int32_t)(hn_splitmix(&seed) % 9), 0,
                                  estimates[hn_splitmix(&seed) % 6]);
            }
        hn_plan_cut_by_estimate(trees, n, most, list, keep);
        for (int i = 0; i < n; i++) {
            double p[HN_TREE_ROWS] = {1};
            assert_true(keep[i][0]);
            for (int r = 1; r < tree[i].n_rows; r++) {
                double best = 0;
                for (int k = tree[i].first[tree[i].parent[r]]; k >= 0; k = tree[i].candidate[k].next) {
                    const double e = (double)tree[i].candidate[k].estimate;
                    if (tree[i].candidate[k].child == r && e > best) best = e < 1 ? e : 1;
                }
                p[r] = best * p[tree[i].parent[r]];
                rows += p[r] > 0;
                kept += keep[i][r];
                if (keep[i][r]) {
                    assert_true(keep[i][tree[i].parent[r]]);
                    least = fmin(least, p[r]);
                } else {
                    largest = fmax(largest, p[r]);
                }
            }
        }
        assert_int_equal(kept, rows < most ? rows : most);
        assert_true(largest <= least);
    }
}

/* Sorting the first rows alone gives what sorting all gives, whatever ties there are. */
static void test_first_rows_alone(void **state) {
    (void)state;
    enum { MOST = 300 };
    static hn_plan_item whole[MOST], part[MOST];
    uint64_t seed = 6;
    for (int round = 0; round < 300; round++) {
        const int n = (int)(hn_splitmix(&seed) % MOST), most = (int)(hn_splitmix(&seed) % 100);
        int stay = 0;
        for (int i = 0; i < n; i++) {
            const double p = (double)(hn_splitmix(&seed) % 12) / 12, key = hn_splitmix(&seed) % 20 ? p : 2;
            whole[i] = part[i] = (hn_plan_item){key, p, (int16_t)(i % 7), (int16_t)(i / 7), (int16_t)(hn_splitmix(&seed) % 3)};
            stay += key > 1;
        }
        hn_plan_sort(whole, n);
        const int m = hn_plan_sort_first(part, n, most);
        assert_int_equal(m, stay + most < n ? stay + most : n);
        for (int i = 0; i < m; i++) assert_true(part[i].seq == whole[i].seq && part[i].row == whole[i].row);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_go_where_drafts_are), cmocka_unit_test(test_some_stay),
                                       cmocka_unit_test(test_equal_chains_share), cmocka_unit_test(test_drawn_rows_stay),
                                       cmocka_unit_test(test_random_trees), cmocka_unit_test(test_first_rows_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
