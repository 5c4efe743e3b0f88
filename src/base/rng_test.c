/* SPDX-License-Identifier: Apache-2.0 */
/* rng_test.c - acceptances and draws: certain ones use no random number, those of Philox follow their distribution and
 * their keys, and the callbacks that a test sets are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/rng.h"

/* The arguments of the last call to a test's callbacks, and the results they return. */
typedef struct script {
    hn_random_key key;
    double u, p;
    bool answer;
    const int32_t *id;
    const double *weight;
    int n, index, calls;
} script;

static double uniform_script(void *ctx, const hn_random_key *key) {
    script *s = ctx;
    s->key = *key;
    s->calls++;
    return s->u;
}
static bool accept_script(void *ctx, const hn_random_key *key, double p) {
    script *s = ctx;
    s->key = *key;
    s->p = p;
    s->calls++;
    return s->answer;
}
static int draw_script(void *ctx, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    script *s = ctx;
    s->key = *key;
    s->id = id, s->weight = weight, s->n = n;
    s->calls++;
    return s->index;
}

static const hn_random_key key = {.seed = 5, .position = 7, .purpose = HN_PURPOSE_RESIDUAL, .drafter = 2, .number = 3};

static void test_accept(void **state) {
    (void)state;
    script s = {.u = .25};
    hn_rng c = {uniform_script, NULL, NULL, &s};
    assert_true(hn_rng_accept(&c, &key, .26));
    assert_false(hn_rng_accept(&c, &key, .25)); /* u < p, not <= */
    assert_false(hn_rng_accept(&c, &key, .24));
    assert_int_equal(s.calls, 3);
    assert_memory_equal(&s.key, &key, sizeof key);
    s.u = .5;
    c.accept = accept_script;
    for (int i = 0; i < 2; i++) {
        s.answer = i;
        assert_int_equal(hn_rng_accept(&c, &key, .125), i);
        assert_true(s.p == .125);
    }
    assert_int_equal(s.calls, 5);
    /* certain outcomes call nothing */
    assert_false(hn_rng_accept(&c, &key, 0));
    assert_false(hn_rng_accept(&c, &key, -1));
    assert_false(hn_rng_accept(&c, &key, NAN));
    assert_true(hn_rng_accept(&c, &key, 1));
    assert_true(hn_rng_accept(&c, &key, INFINITY));
    assert_int_equal(s.calls, 5);
}

static void test_accept_follows_its_probability(void **state) {
    (void)state;
    enum { N = 40000 };
    int accepted = 0;
    for (int i = 0; i < N; i++) {
        const hn_random_key k = {.seed = 1, .position = (uint64_t)i, .purpose = HN_PURPOSE_ACCEPT};
        const bool is = hn_rng_accept(&hn_rng_philox, &k, .3);
        assert_int_equal(is, hn_random_uniform(&k) < .3);
        accepted += is;
    }
    assert_true(fabs(accepted - .3 * N) < 5 * sqrt(.21 * N));
}

static void test_draw(void **state) {
    (void)state;
    enum { N = 30000, CELLS = 5 };
    const int32_t id[CELLS] = {40, 7, 100000, 0, 8};
    const double weight[CELLS] = {1, 0, 5, .5, 3.5};
    int counts[CELLS] = {0};
    double chi = 0;
    for (int i = 0; i < N; i++) {
        const hn_random_key k = {.seed = (uint64_t)i, .position = 3, .purpose = HN_PURPOSE_RESIDUAL};
        const int drawn = hn_rng_draw(&hn_rng_philox, &k, id, weight, CELLS);
        assert_int_equal(drawn, hn_rng_draw(&hn_rng_philox, &k, NULL, weight, CELLS));
        counts[drawn]++;
    }
    assert_int_equal(counts[1], 0);
    for (int i = 0; i < CELLS; i++)
        if (weight[i] > 0) chi += pow(counts[i] - N * weight[i] / 10, 2) / (N * weight[i] / 10);
    assert_true(chi < 30); /* 3 degrees of freedom: 1e-6 */
}

static void test_odd_weights(void **state) {
    (void)state;
    const double none[] = {0, -1, NAN}, tiny[] = {0, 5e-324, 0}, one[] = {-1, NAN, 3};
    const hn_rng all[] = {hn_rng_philox, {hn_rng_philox.uniform, NULL, draw_script, &(script){.index = 1}}};
    for (int i = 0; i < 2; i++) assert_int_equal(hn_rng_draw(&all[i], &key, NULL, none, 3), -1);
    assert_int_equal(hn_rng_draw(&hn_rng_philox, &key, NULL, tiny, 3), 1);
    assert_int_equal(hn_rng_draw(&hn_rng_philox, &key, NULL, one, 3), 2);
}

static void test_draw_replaced(void **state) {
    (void)state;
    const int32_t id[] = {4, 9, 11};
    const double weight[] = {.5, .25, .5};
    script s = {.u = .5, .index = 2};
    hn_rng c = {uniform_script, NULL, NULL, &s};
    assert_int_equal(hn_rng_draw(&c, &key, id, weight, 3), 1); /* .5 of 1.25 is past the first */
    s.u = .399;
    assert_int_equal(hn_rng_draw(&c, &key, id, weight, 3), 0);
    s.u = .601;
    assert_int_equal(hn_rng_draw(&c, &key, id, weight, 3), 2);
    s.u = 1 - 0x1p-53;
    assert_int_equal(hn_rng_draw(&c, &key, id, weight, 3), 2);
    assert_int_equal(s.calls, 4);
    assert_memory_equal(&s.key, &key, sizeof key);
    s.calls = 0;
    c.draw = draw_script;
    assert_int_equal(hn_rng_draw(&c, &key, id, weight, 3), 2);
    assert_int_equal(s.calls, 1);
    assert_ptr_equal(s.id, id);
    assert_ptr_equal(s.weight, weight);
    assert_int_equal(s.n, 3);
    assert_memory_equal(&s.key, &key, sizeof key);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept), cmocka_unit_test(test_accept_follows_its_probability),
        cmocka_unit_test(test_draw), cmocka_unit_test(test_odd_weights), cmocka_unit_test(test_draw_replaced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
