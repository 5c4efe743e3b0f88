/* SPDX-License-Identifier: Apache-2.0 */
/* tree_best_test.c - the best-first tree compared with all paths, sorted: which nodes, in which order, with ties; measured rates, fitted
 * shapes and Sequoia's compared with every possible shape. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "draft/shape/head_tree.h"
#include "format/bytes_for_tests.h" /* last: it defines a type "bytes" */

enum { MOST_LEVELS = 4, MOST_RANKS = 4, MOST_PATHS = 4 + 16 + 64 + 256 };

static int below(uint64_t *rng, int n) {
    return (int)(hn_splitmix(rng) % (uint64_t)n);
}

/* ---- best first -------------------------------------------------------------------------------------------------------- */

typedef struct path {
    int n, rank[MOST_LEVELS];
    float score;
} path;

typedef struct levels {
    int n;
    float log_p[MOST_LEVELS][MOST_RANKS];
    hn_tree_level level[MOST_LEVELS];
} all_levels;

/* From few values, so that many paths are equally likely; some impossible. */
static void random_levels(uint64_t *rng, all_levels *l) {
    static const float values[] = {0, -1, -2, -3, -INFINITY};
    l->n = 1 + below(rng, MOST_LEVELS);
    for (int d = 0; d < l->n; d++) {
        const int n = below(rng, 8) ? 1 + below(rng, MOST_RANKS) : 0;
        for (int r = 0; r < n; r++) {
            l->log_p[d][r] = values[below(rng, 5)];
            for (int k = r; k > 0 && l->log_p[d][k - 1] < l->log_p[d][k]; k--) {
                const float t = l->log_p[d][k];
                l->log_p[d][k] = l->log_p[d][k - 1];
                l->log_p[d][k - 1] = t;
            }
        }
        l->level[d] = (hn_tree_level){n, l->log_p[d]};
    }
}

static int by_likelihood(const void *a, const void *b) {
    const path *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->n != y->n) return x->n - y->n;
    for (int i = 0; i < x->n; i++)
        if (x->rank[i] != y->rank[i]) return x->rank[i] - y->rank[i];
    return 0;
}

static int list_paths(const all_levels *l, path *all, int n, path at) {
    if (at.n == l->n) return n;
    for (int r = 0; r < l->level[at.n].n; r++) {
        path next = at;
        next.rank[next.n++] = r;
        next.score += l->log_p[at.n][r];
        all[n++] = next;
        n = list_paths(l, all, n, next);
    }
    return n;
}

static path path_of(const hn_best_tree *t, int i) {
    path p = {.n = t->node[i].depth, .score = t->score[i]};
    for (int k = p.n - 1; k >= 0; k--, i = t->node[i].parent) p.rank[k] = t->node[i].rank;
    assert_int_equal(i, -1);
    return p;
}

static void test_best(void **state) {
    (void)state;
    static path all[MOST_PATHS];
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        uint64_t rng = seed;
        all_levels l;
        hn_best_tree t;
        random_levels(&rng, &l);
        const int n = list_paths(&l, all, 0, (path){0}), total = below(&rng, 64);
        const float least = below(&rng, 2) ? -INFINITY : -(float)below(&rng, 6);
        qsort(all, (size_t)n, sizeof *all, by_likelihood);
        int wanted = 0;
        while (wanted < n && wanted < total && all[wanted].score > -INFINITY && all[wanted].score >= least) wanted++;
        hn_best_tree_make(&t, l.level, l.n, total, least);
        assert_int_equal(t.n, wanted);
        for (int i = 0; i < t.n; i++) {
            const path p = path_of(&t, i);
            assert_true(t.node[i].parent < i && p.score == all[i].score);
            assert_int_equal(by_likelihood(&p, &all[i]), 0);
        }
    }
}

/* The largest: 63 nodes of 63 levels, and of one. */
static void test_best_limits(void **state) {
    (void)state;
    hn_best_tree t;
    hn_tree_level level[HN_TREE_ROWS - 1];
    float log_p[HN_TREE_ROWS] = {0}; /* all certain: the shorter comes first, so all 64 ranks of level 0 */
    for (int i = 0; i < HN_TREE_ROWS - 1; i++) level[i] = (hn_tree_level){HN_TREE_ROWS, log_p};
    hn_best_tree_make(&t, level, HN_TREE_ROWS - 1, HN_TREE_ROWS - 1, -INFINITY);
    assert_int_equal(t.n, HN_TREE_ROWS - 1);
    for (int i = 0; i < t.n; i++) assert_true(t.node[i].parent == -1 && t.node[i].rank == i);
    for (int i = 1; i < HN_TREE_ROWS; i++) log_p[i] = -1;
    for (int i = 0; i < HN_TREE_ROWS - 1; i++) level[i].n = 2;
    hn_best_tree_make(&t, level, HN_TREE_ROWS - 1, HN_TREE_ROWS - 1, -INFINITY);
    for (int i = 0; i < t.n; i++) assert_true(t.node[i].parent == i - 1 && t.node[i].rank == 0 && t.node[i].depth == i + 1);
    hn_best_tree_make(&t, level, 0, 5, -INFINITY);
    assert_int_equal(t.n, 0);
}

/* The likeliest node without successors, of equal ones the shorter, then of lower ranks, gets all of them: by search through all nodes. */
static void test_expanded(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t rng = seed;
        all_levels l;
        hn_best_tree t;
        bool expanded[HN_TREE_ROWS] = {false};
        random_levels(&rng, &l);
        const int total = below(&rng, 64);
        const float least = below(&rng, 2) ? -INFINITY : -(float)below(&rng, 6);
        hn_expanded_tree_make(&t, l.level, l.n, total, least);
        assert_true(t.n <= total);
        for (int i = 0, parent = -1;; expanded[parent] = true) {
            const int depth = parent < 0 ? 0 : t.node[parent].depth;
            for (int r = 0; depth < l.n && r < l.level[depth].n; r++) {
                const float score = (parent < 0 ? 0 : t.score[parent]) + l.log_p[depth][r];
                if (!(score > -INFINITY) || score < least) continue;
                if (i == total) break;
                assert_true(t.node[i].parent == parent && t.node[i].rank == r && t.node[i].depth == depth + 1 && t.score[i] == score);
                i++;
            }
            parent = -1;
            for (int k = 0; k < i; k++) {
                if (expanded[k]) continue;
                const path a = path_of(&t, k), b = parent < 0 ? a : path_of(&t, parent);
                if (parent < 0 || by_likelihood(&a, &b) < 0) parent = k;
            }
            if (parent >= 0) continue;
            assert_int_equal(i, t.n);
            break;
        }
    }
}

/* ---- shapes that fit rates ---------------------------------------------------------------------------------------------- */

static void random_rates(uint64_t *rng, hn_rank_rates *r) {
    memset(r, 0, sizeof *r);
    r->depths = 1 + below(rng, 3);
    r->ranks = 1 + below(rng, 3);
    for (int d = 0; d < r->depths; d++)
        for (int k = 0; k < r->ranks; k++) r->rate[d][k] = below(rng, 10) / 16.0; /* sums are exact; not descending, some 0 */
}

static double path_rate(const hn_rank_rates *r, const hn_shape *s, int i) {
    double p = 1;
    for (; i >= 0; i = s->node[i].parent) p *= r->rate[s->node[i].depth - 1][s->node[i].rank];
    return p;
}

static double value_of(const hn_rank_rates *r, const hn_shape *s) {
    double sum = 1;
    for (int i = 0; i < s->n; i++) sum += path_rate(r, s, i);
    return sum;
}

/* Tries every set of nodes: each possible child of the nodes so far, taken or left out. */
static double best_of_all(const hn_rank_rates *r, int depth, int total, hn_shape *s, int from, int rank) {
    if (s->n == total || from == s->n) return value_of(r, s);
    const int at = from < 0 ? 0 : s->node[from].depth;
    if (at == depth || rank == r->ranks) return best_of_all(r, depth, total, s, from + 1, 0);
    double best = best_of_all(r, depth, total, s, from, rank + 1);
    s->node[s->n++] = (hn_shape_node){(int16_t)from, (int16_t)rank, (int16_t)(at + 1)};
    const double with = best_of_all(r, depth, total, s, from, rank + 1);
    s->n--;
    return with > best ? with : best;
}

/* By depth, then by path; parents before; no path twice. */
static void check_order(const hn_shape *s) {
    for (int i = 0; i < s->n; i++) {
        const hn_shape_node a = s->node[i];
        assert_true(a.parent < i && a.depth == (a.parent < 0 ? 1 : s->node[a.parent].depth + 1));
        if (i == 0) continue;
        const hn_shape_node b = s->node[i - 1];
        assert_true(b.depth < a.depth || (b.depth == a.depth && (b.parent < a.parent || (b.parent == a.parent && b.rank < a.rank))));
    }
}

static void test_fitted(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        uint64_t rng = seed;
        static hn_rank_rates r;
        hn_shape s = {0}, greedy, programme;
        double tokens;
        random_rates(&rng, &r);
        const int depth = 1 + below(&rng, 3), total = 1 + below(&rng, 5), levels = depth < r.depths ? depth : r.depths;
        const double best = best_of_all(&r, levels, total, &s, -1, 0);
        assert_int_equal(hn_shape_fitted(&greedy, &r, depth, total, NULL), HUNCH_OK);
        assert_int_equal(hn_shape_sequoia(&programme, &r, depth, total, &tokens, NULL), HUNCH_OK);
        assert_true(fabs(tokens - best) < 1e-12 && fabs(value_of(&r, &programme) - best) < 1e-12);
        assert_true(fabs(value_of(&r, &greedy) - best) < 1e-6); /* it adds logarithms */
        assert_true(greedy.n <= total && programme.n <= total && greedy.depth <= levels && programme.depth <= levels);
        check_order(&greedy);
        check_order(&programme);
        for (int i = 0; i < programme.n; i++) assert_true(path_rate(&r, &programme, i) > 0); /* no useless nodes */
        for (int i = 0; i < greedy.n; i++) assert_true(path_rate(&r, &greedy, i) > 0);
    }
}

/* Published rates and values: F of m nodes with the root, (levels with the root - 1) deep. */
static void test_sequoia_values(void **state) {
    (void)state;
    static const struct {
        int nodes, levels;
        double value;
    } cases[] = {{2, 9, 1.6},  {4, 9, 2.176},  {8, 9, 2.7456}, {14, 9, 3.1674}, {4, 1, 1.88},   {4, 2, 2.16},
                 {4, 3, 2.176}, {8, 2, 2.528}, {8, 3, 2.696},  {8, 4, 2.7456},  {14, 2, 2.698}, {14, 3, 3.048}, {14, 4, 3.1376}};
    static hn_rank_rates r = {.depths = 9, .ranks = 4};
    for (int d = 0; d < 9; d++) memcpy(r.rate[d], (double[]){0.6, 0.2, 0.08, 0.03}, 4 * sizeof(double));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_shape s;
        double tokens;
        assert_int_equal(hn_shape_sequoia(&s, &r, cases[i].levels, cases[i].nodes - 1, &tokens, NULL), HUNCH_OK);
        assert_true(fabs(tokens - cases[i].value) < 6e-5);
        assert_true(fabs(value_of(&r, &s) - tokens) < 1e-12);
    }
}

/* The largest possible shapes. */
static void test_fitted_limits(void **state) {
    (void)state;
    static hn_rank_rates r = {.depths = HN_TREE_ROWS - 1, .ranks = HN_TREE_ROWS};
    hn_shape s;
    double tokens;
    for (int d = 0; d < r.depths; d++)
        for (int k = 0; k < r.ranks; k++) r.rate[d][k] = k == 63 ? 0.5 : 0.001;
    assert_int_equal(hn_shape_fitted(&s, &r, 63, 63, NULL), HUNCH_OK);
    assert_int_equal(s.n, 63);
    assert_true(s.node[0].rank == 0 || s.node[0].rank == 63);
    assert_int_equal(hn_shape_sequoia(&s, &r, 63, 63, &tokens, NULL), HUNCH_OK);
    assert_true(s.n == 63 && fabs(value_of(&r, &s) - tokens) < 1e-12 && s.widest == 64);
}

/* ---- rates from a file -------------------------------------------------------------------------------------------------- */

static hunch_status read_text(hn_rank_rates *r, const char *text, bool pooled, hunch_error *err) {
    const char *file = test_path("ranks.json");
    test_file_write(file, text, strlen(text));
    return hn_rank_rates_read(r, file, pooled, err);
}

#define TWO "[{\"asked\": [98, 98], \"accepted\": [50, 25]}, {\"asked\": [48], \"accepted\": [10]}]"

static void test_rates(void **state) {
    (void)state;
    static const char *const same[] = {"{\"ranks\": " TWO "}",
                                       "{\"methods\": [{\"draft\": \"ngram\"}, {\"ranks\": []}, {\"ranks\": " TWO "}]}"};
    hunch_error err;
    static hn_rank_rates r;
    for (int i = 0; i < 2; i++) {
        if (read_text(&r, same[i], false, &err)) fail_msg("%s", err.message);
        assert_true(r.depths == 2 && r.ranks == 2 &&
                    r.rate[0][0] == 0.5 && r.rate[0][1] == 0.25 && r.rate[1][0] == 0.2 && r.rate[1][1] == 0);
        if (read_text(&r, same[i], true, &err)) fail_msg("%s", err.message);
        for (int d = 0; d < 2; d++) assert_true(r.rate[d][0] == 60.0 / 148 && r.rate[d][1] == 0.25);
    }
}

static void test_rates_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"", "not readable as JSON"},
                 {"[", "not readable as JSON"},
                 {"[]", "expected \"ranks\""},
                 {"{\"methods\": 3}", "expected \"ranks\""},
                 {"{\"methods\": [3, {}]}", "expected \"ranks\""},
                 {"{\"ranks\": {}}", "expected \"ranks\""},
                 {"{\"ranks\": []}", "expected \"ranks\""},
                 {"{\"ranks\": [3]}", "depth 1 of \"ranks\""},
                 {"{\"ranks\": [{}]}", "depth 1 of \"ranks\""},
                 {"{\"ranks\": [{\"asked\": [1], \"accepted\": []}]}", "depth 1 of \"ranks\""},
                 {"{\"ranks\": [{\"asked\": [1], \"accepted\": [2]}]}", "depth 1 of \"ranks\""},
                 {"{\"ranks\": [{\"asked\": [3], \"accepted\": [-1]}]}", "depth 1 of \"ranks\""},
                 {"{\"ranks\": [{\"asked\": [3.5], \"accepted\": [1]}]}", "depth 1 of \"ranks\""},
                 {"{\"ranks\": [{\"asked\": [99999999999], \"accepted\": [1]}]}", "depth 1 of \"ranks\""},
                 {"{\"ranks\": [{\"asked\": [3], \"accepted\": [1]}, {\"asked\": 3}]}", "depth 2 of \"ranks\""},
                 {"{\"ranks\": [{\"asked\": [3, 0], \"accepted\": [0, 0]}]}", "no candidate was ever right"}};
    hunch_error err;
    static hn_rank_rates r;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read_text(&r, cases[i].text, false, &err) != HUNCH_REFUSED || !strstr(err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].text, err.message);
    char text[2000] = "{\"ranks\": [{\"asked\": [0";
    for (int i = 0; i < 64; i++) strcat(text, ", 1");
    strcat(text, "], \"accepted\": [0");
    for (int i = 0; i < 64; i++) strcat(text, ", 1");
    strcat(text, "]}]}");
    assert_int_equal(read_text(&r, text, false, &err), HUNCH_REFUSED);
    assert_int_equal(hn_rank_rates_read(&r, test_path("none"), false, &err), HUNCH_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_best),           cmocka_unit_test(test_best_limits),
                                       cmocka_unit_test(test_expanded),
                                       cmocka_unit_test(test_fitted),         cmocka_unit_test(test_sequoia_values),
                                       cmocka_unit_test(test_fitted_limits),  cmocka_unit_test(test_rates),
                                       cmocka_unit_test(test_rates_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
