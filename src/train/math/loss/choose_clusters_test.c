/* SPDX-License-Identifier: Apache-2.0 */
/* choose_clusters_test.c - clusters of tokens before training: each token once, clusters of equal size, the same for any number of workers;
 * k-means finds clusters that are there, and its clusters are more alike than random ones; without memory there is a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/fault.h"
#include "train/math/loss/choose_clusters.h"
#include "train/math/numbers_for_tests.h"

enum { ROWS = 240, COLS = 24, CLUSTERS = 12, SIZE = ROWS / CLUSTERS };

static void choose_with(int threads, hn_cluster_start start, hn_mat rows, const int *first, uint64_t seed, int order[ROWS]) {
    hn_workers workers;
    hunch_error err;
    hn_pool *pool = pool_of(threads);
    assert_int_equal(hn_workers_open(&workers, pool, HN_ISA_REF, HN_PRODUCTS_F32, 0, &err), HUNCH_OK);
    assert_int_equal(hn_clusters_choose(&workers, start, rows, CLUSTERS, first, seed, order, &err), HUNCH_OK);
    hn_workers_close(&workers);
    hn_pool_free(pool);
}

/* Every row once, ascending in each cluster. */
static void assert_clusters(const int order[ROWS]) {
    bool seen[ROWS] = {false};
    for (int i = 0; i < ROWS; i++) {
        assert_true(order[i] >= 0 && order[i] < ROWS && !seen[order[i]]);
        seen[order[i]] = true;
        assert_true(i % SIZE == 0 || order[i] > order[i - 1]);
    }
}

/* Numbers around CLUSTERS centres: row r belongs to centre r * 7 % CLUSTERS. All have the same large part, as logits have. */
static hn_mat planted(double noise) {
    uint64_t seed = 5;
    const hn_mat rows = wide_matrix(ROWS, COLS, 3, &seed), centre = wide_matrix(CLUSTERS, COLS, 0, &seed);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < COLS; i++) {
            hn_real *x = hn_mat_row(rows, r) + i;
            *x = (hn_real)(noise * (double)*x + (double)hn_mat_row(centre, r * 7 % CLUSTERS)[i] + 20 * (i == 1));
        }
    hn_free(centre.p);
    return rows;
}

/* The mean cosine between rows less their mean of the same cluster. */
static double likeness(hn_mat rows, const int *order) {
    double mean[COLS] = {0}, sum = 0;
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < COLS; i++) mean[i] += (double)hn_mat_row(rows, r)[i] / ROWS;
    for (int c = 0; c < CLUSTERS; c++)
        for (int a = 0; a < SIZE; a++)
            for (int b = 0; b < SIZE; b++) {
                const hn_real *x = hn_mat_row(rows, order[c * SIZE + a]), *y = hn_mat_row(rows, order[c * SIZE + b]);
                double xy = 0, xx = 0, yy = 0;
                for (int i = 0; i < COLS; i++) {
                    const double u = (double)x[i] - mean[i], v = (double)y[i] - mean[i];
                    xy += u * v, xx += u * u, yy += v * v;
                }
                sum += xy / sqrt(xx * yy);
            }
    return sum / (CLUSTERS * SIZE * SIZE);
}

static void test_starts(void **state) {
    (void)state;
    int first[ROWS], order[2][ROWS], other[ROWS];
    const hn_mat rows = planted(3);
    double like[3];
    for (int i = 0; i < ROWS; i++) first[i] = i * 7 % ROWS;
    for (int start = 0; start < 3; start++) {
        hn_cluster_start named;
        assert_true(hn_cluster_start_named(hn_cluster_start_name((hn_cluster_start)start), &named) && (int)named == start);
        for (int i = 0; i < 2; i++) choose_with(1 + 2 * i, named, rows, first, 9, order[i]);
        assert_clusters(order[0]);
        assert_memory_equal(order[0], order[1], sizeof order[0]);
        choose_with(1, named, rows, first, 10, other);
        assert_clusters(other);
        assert_true(start == HN_CLUSTERS_FREQUENCY || memcmp(other, order[0], sizeof other) != 0);
        like[start] = likeness(rows, order[0]);
    }
    for (int i = 0; i < ROWS; i++) { /* the last start's: those of a cluster are neighbours in `first` */
        int place = 0;
        while (first[place] != order[0][i]) place++;
        assert_int_equal(place / SIZE, i / SIZE);
    }
    assert_true(like[HN_CLUSTERS_KMEANS] > like[HN_CLUSTERS_RANDOM] + 0.03);
    assert_true(like[HN_CLUSTERS_KMEANS] > like[HN_CLUSTERS_FREQUENCY] + 0.03);
    hn_free(rows.p);
}

/* For most seeds; k-means may end elsewhere with one. */
static void test_planted(void **state) {
    (void)state;
    int order[ROWS], found = 0;
    const hn_mat rows = planted(0.02);
    for (uint64_t seed = 0; seed < 5; seed++) {
        int together = 0;
        choose_with(1, HN_CLUSTERS_KMEANS, rows, NULL, seed, order);
        for (int i = 0; i < ROWS; i++) together += order[i] * 7 % CLUSTERS == order[i / SIZE * SIZE] * 7 % CLUSTERS;
        found += together == ROWS;
    }
    assert_true(found >= 3);
    hn_free(rows.p);
}

static void test_means(void **state) {
    (void)state;
    uint64_t seed = 3;
    int order[6] = {4, 1, 0, 5, 2, 3};
    const hn_mat rows = wide_matrix(6, 5, 2, &seed), means = wide_matrix(3, 5, 1, &seed);
    hn_clusters_means(rows, order, means);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 5; i++) {
            const double want = ((double)hn_mat_row(rows, order[2 * c])[i] + (double)hn_mat_row(rows, order[2 * c + 1])[i]) / 2;
            assert_true(fabs((double)hn_mat_row(means, c)[i] - want) < 1e-6);
        }
    hn_free(rows.p);
    hn_free(means.p);
}

static void test_no_memory(void **state) {
    (void)state;
    hn_workers workers;
    hunch_error err;
    int order[ROWS], failures = 0;
    const hn_mat rows = planted(1);
    hn_pool *pool = pool_of(1);
    assert_int_equal(hn_workers_open(&workers, pool, HN_ISA_REF, HN_PRODUCTS_F32, 0, &err), HUNCH_OK);
    hunch_status st = HUNCH_NO_MEMORY;
    for (int at = 0; st; at++) {
        hn_fault_arm(HN_FAULT_ALLOC, at, false);
        st = hn_clusters_choose(&workers, HN_CLUSTERS_KMEANS, rows, CLUSTERS, NULL, 1, order, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(st == HUNCH_OK || st == HUNCH_NO_MEMORY);
        failures += st != HUNCH_OK;
    }
    assert_int_equal(failures, 4);
    hn_workers_close(&workers);
    hn_pool_free(pool);
    hn_free(rows.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_starts), cmocka_unit_test(test_planted), cmocka_unit_test(test_means),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
