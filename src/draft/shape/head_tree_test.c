/* SPDX-License-Identifier: Apache-2.0 */
/* head_tree_test.c - EAGLE-2's tree compared with a plain search over all nodes: frontiers, kept nodes, their order, ties. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "draft/shape/head_tree.h"

enum { MOST_WIDTH = 4, MOST_LEVELS = 4, MOST_NODES = MOST_WIDTH + (MOST_LEVELS - 1) * MOST_WIDTH * MOST_WIDTH };

static int below(uint64_t *rng, int n) {
    return (int)(hn_splitmix(rng) % (uint64_t)n);
}

/* Probabilities of a row, descending; from few values, so that sums along different paths are often equal. */
static int random_children(uint64_t *rng, int width, int32_t *token, float *p) {
    static const float values[] = {1, 0.5f, 0.25f, 0.125f};
    const int n = below(rng, 4) ? width : below(rng, width + 1); /* a small vocabulary has fewer */
    for (int i = 0; i < n; i++) {
        token[i] = below(rng, 100);
        p[i] = values[below(rng, 4)];
        for (int k = i; k > 0 && p[k - 1] < p[k]; k--) {
            const float t = p[k];
            p[k] = p[k - 1];
            p[k - 1] = t;
        }
    }
    return n;
}

/* Whether x comes before y: by score, of equal ones the earlier. */
static bool before(const hn_beam *b, int x, int y) {
    return b->node[x].score > b->node[y].score || (b->node[x].score == b->node[y].score && x < y);
}

/* How many of nodes [from, to) are before node i. */
static int rank_of(const hn_beam *b, int from, int to, int i) {
    int n = 0;
    for (int k = from; k < to; k++) n += before(b, k, i);
    return n;
}

/* The frontier is the best `width` of the newest level, best first. */
static void check_frontier(const hn_beam *b, int level_first) {
    const int n = b->n - level_first, wanted = n < b->width ? n : b->width;
    assert_int_equal(b->n_frontier, wanted);
    for (int i = 0; i < wanted; i++) assert_int_equal(rank_of(b, level_first, b->n, b->frontier[i]), i);
}

static double score_of(const hn_beam *b, int i) {
    double sum = 0;
    for (; i >= 0; i = b->node[i].parent) sum += log((double)b->node[i].p);
    return sum;
}

/* The best `total`, in the order of creation, none without its parent. */
static void check_best(const hn_beam *b, int total) {
    int list[MOST_NODES];
    bool there[MOST_NODES] = {false};
    const int n = hn_beam_best(b, total, list), wanted = total < b->n ? total : b->n;
    assert_int_equal(n, wanted);
    for (int i = 0; i < n; i++) {
        assert_true(i == 0 || list[i - 1] < list[i]);
        there[list[i]] = true;
    }
    for (int i = 0; i < b->n; i++) {
        assert_int_equal(there[i], rank_of(b, 0, b->n, i) < total);
        assert_true(!there[i] || b->node[i].parent < 0 || there[b->node[i].parent]);
    }
}

static void check_beam(uint64_t seed) {
    uint64_t rng = seed;
    const int width = 1 + below(&rng, MOST_WIDTH), levels = 1 + below(&rng, MOST_LEVELS);
    int32_t token[MOST_WIDTH];
    float p[MOST_WIDTH];
    hn_beam b = {0};
    assert_int_equal(hn_beam_open(&b, width, levels, NULL), HUNCH_OK);
    for (int round = 0; round < 2; round++) { /* the previous round has no effect */
        hn_beam_start(&b);
        hn_beam_add(&b, -1, token, p, random_children(&rng, width, token, p));
        for (int level = 1, first = 0; level < levels; level++) {
            hn_beam_advance(&b);
            check_frontier(&b, first);
            first = b.n;
            for (int i = 0; i < b.n_frontier; i++) {
                const int n = random_children(&rng, width, token, p), at = b.n;
                hn_beam_add(&b, b.frontier[i], token, p, n);
                assert_int_equal(b.n, at + n);
                for (int k = 0; k < n; k++) {
                    assert_int_equal(b.node[at + k].parent, b.frontier[i]);
                    assert_int_equal(b.node[at + k].token, token[k]);
                    assert_true(b.node[at + k].p == p[k]);
                    assert_true(fabs((double)b.node[at + k].score - score_of(&b, at + k)) < 1e-5);
                }
            }
        }
        for (int total = 0; total <= b.n + 1; total++) check_best(&b, total);
    }
    hn_beam_close(&b);
}

static void test_against_search(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) check_beam(seed);
}

/* A certain child is as likely as its parent: the parent, which is the earlier, comes first. */
static void test_certain_children(void **state) {
    (void)state;
    static const int32_t token[] = {5, 6};
    static const float even[] = {0.5f, 0.5f}, certain[] = {1, 0};
    int list[3];
    hn_beam b = {0};
    assert_int_equal(hn_beam_open(&b, 2, 2, NULL), HUNCH_OK);
    hn_beam_start(&b);
    hn_beam_add(&b, -1, token, even, 2);
    hn_beam_advance(&b);
    hn_beam_add(&b, b.frontier[0], token, certain, 2);
    hn_beam_add(&b, b.frontier[1], token, certain, 2);
    assert_int_equal(hn_beam_best(&b, 3, list), 3);
    assert_int_equal(list[0], 0);
    assert_int_equal(list[1], 1);
    assert_int_equal(list[2], 2);
    hn_beam_close(&b);
}

/* A row of fewer tokens than requested ends in -1. */
static void test_short_row(void **state) {
    (void)state;
    static const int32_t token[] = {5, -1, -1};
    static const float p[] = {1, 0, 0};
    hn_beam b = {0};
    assert_int_equal(hn_beam_open(&b, 3, 2, NULL), HUNCH_OK);
    hn_beam_start(&b);
    hn_beam_add(&b, -1, token, p, 3);
    assert_int_equal(b.n, 1);
    hn_beam_advance(&b);
    assert_int_equal(b.n_frontier, 1);
    hn_beam_close(&b);
}

/* ---- OPT-Tree ---------------------------------------------------------------------------------------------------------- */

static double best_sum(const hn_beam *b, int total) {
    double sum = 0;
    for (int i = 0; i < b->n; i++) sum += rank_of(b, 0, b->n, i) < total ? exp((double)b->node[i].score) : 0;
    return sum;
}

/* Nodes of the newest level that are among the likeliest of all are expanded, in order, as long as the level added enough. */
static void check_opt(uint64_t seed) {
    uint64_t rng = seed;
    const int width = 1 + below(&rng, MOST_WIDTH), levels = 1 + below(&rng, MOST_LEVELS), total = 1 + below(&rng, 12);
    const double gain = below(&rng, 3) / 4.0 + 1e-6; /* no ties with sums of few values */
    int32_t token[MOST_WIDTH];
    float p[MOST_WIDTH];
    double expected = 0, before = 0;
    hn_beam b = {0};
    assert_int_equal(hn_beam_open(&b, width, levels, NULL), HUNCH_OK);
    hn_beam_start(&b);
    hn_beam_add(&b, -1, token, p, random_children(&rng, width, token, p));
    for (int level = 1, first = 0; level < levels; level++) {
        int wanted = 0;
        hn_opt_advance(&b, total, gain, &expected);
        const double sum = best_sum(&b, total);
        assert_true(fabs(sum - expected) < 1e-9);
        for (int i = first; i < b.n && sum - before > gain; i++) {
            const int place = rank_of(&b, first, b.n, i);
            if (place >= width || rank_of(&b, 0, b.n, i) >= total) continue;
            assert_true(place < b.n_frontier && b.frontier[place] == i);
            wanted++;
        }
        assert_int_equal(b.n_frontier, wanted);
        before = sum;
        first = b.n;
        for (int i = 0; i < b.n_frontier; i++)
            hn_beam_add(&b, b.frontier[i], token, p, random_children(&rng, width, token, p));
    }
    hn_beam_close(&b);
}

static void test_opt(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) check_opt(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_search), cmocka_unit_test(test_certain_children),
                                       cmocka_unit_test(test_short_row), cmocka_unit_test(test_opt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
