/* SPDX-License-Identifier: Apache-2.0 */
/* support_test.c - every cut and all of them together against the definition by sorting; distributions known by hand; XTC's random number;
 * large vocabularies; the same bits at every level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "sample/sampling_for_tests.h"

enum { MAX_VOCAB = 3000, BIG = 151936 };

static void describe_failure(const hunch_sampling *q, int n, int round, const double *got, const double *want) {
    int i = 0;
    while (i < n - 1 && fabs(got[i] - want[i]) <= 1e-5 * want[i]) i++;
    fail_msg("round %d: V %d T %g k %d p %g min %g sigma %g typical %g xtc %g/%g: token %d has %g, expected %g", round,
             n, q->temperature, q->top_k, q->top_p, q->min_p, q->top_n_sigma, q->typical_p, q->xtc_probability,
             q->xtc_threshold, i, got[i], want[i]);
}

/* Compares one row; false if a cut is so close that float32 may differ. */
static bool dist_checked(const float *l, int n, hunch_sampling q, int round) {
    hn_sampler s;
    defined_dist d;
    const hn_history h = at(round);
    double *got = calloc((size_t)n, sizeof *got);
    sampler_open(&s, q, n);
    defined_dist_open(&d, n);
    defined_by(&d, l, &q, NULL, 0, 0, NULL, q.xtc_probability > 0 && xtc_expected(&q, round));
    const bool sure = !d.unsure;
    if (sure) {
        dist_spread(&s, l, &h, got);
        if (!dists_agree(got, d.p, n)) describe_failure(&q, n, round, got, d.p);
    }
    defined_dist_close(&d);
    hn_sampler_fini(&s);
    free(got);
    return sure;
}

static void test_dist(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    uint64_t seed = 1;
    const int rounds = light() ? 600 : 6000;
    int sure = 0;
    for (int round = 0; round < rounds; round++) {
        const int n = 1 + below(&seed, round % 20 ? 60 : MAX_VOCAB);
        logits_make(&seed, l, n, round % 3 == 0);
        l[below(&seed, n)] = 1; /* at least one number */
        sure += dist_checked(l, n, cuts_make(&seed, n, 2 + below(&seed, 3)), round);
    }
    assert_true(sure > rounds * 9 / 10);
}

/* The same with the vocabulary of current models: each cut alone, and all. */
static void test_large_vocabulary(void **state) {
    (void)state;
    const hunch_sampling cuts[] = {{.top_p = 1},
                                   {.top_k = 40, .top_p = 1},
                                   {.top_k = 5000, .top_p = 1},
                                   {.top_p = .95},
                                   {.top_p = 1, .min_p = .05},
                                   {.top_p = 1, .top_n_sigma = 2.5},
                                   {.top_p = 1, .typical_p = .9},
                                   {.top_p = 1, .xtc_probability = 1, .xtc_threshold = .1},
                                   {.top_k = 1000, .top_p = .9, .min_p = .001, .top_n_sigma = 3, .typical_p = .95,
                                    .xtc_probability = 1, .xtc_threshold = .05}};
    const int vocab = light() ? 20000 : BIG;
    float *l = calloc((size_t)vocab, sizeof *l);
    uint64_t seed = 12;
    int sure = 0;
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
        hunch_sampling q = cuts[c];
        q.temperature = .8;
        q.seed = c;
        for (int i = 0; i < vocab; i++) l[i] = (float)(-2 * log(unit(&seed)) * unit(&seed));
        for (int i = 0; i < 100; i++) l[below(&seed, vocab)] += (float)(8 * unit(&seed));
        sure += dist_checked(l, vocab, q, 5);
    }
    assert_true(sure >= 8);
    free(l);
}

/* ---- by hand ---------------------------------------------------------------------------------------------------- */

/* The support of probabilities given in 64ths, as a bit mask. */
static unsigned support_of(const int *parts, int n, hunch_sampling q) {
    float l[8];
    double p[8];
    unsigned mask = 0;
    const hn_history h = at(3);
    hn_sampler s;
    for (int i = 0; i < n; i++) l[i] = (float)log(parts[i] / 64.);
    q.temperature = 1;
    if (q.top_p == 0) q.top_p = 1;
    sampler_open(&s, q, n);
    dist_spread(&s, l, &h, p);
    for (int i = 0; i < n; i++) mask |= (unsigned)(p[i] > 0) << i;
    hn_sampler_fini(&s);
    return mask;
}

static void test_typical_by_hand(void **state) {
    (void)state;
    /* -log2 p: 1, 2, 3, 4, 5, 5; entropy 1.9375: the second token is nearest, then the first, then the third */
    const int parts[] = {32, 16, 8, 4, 2, 2};
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.typical_p = .2}), 0x2);
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.typical_p = .7}), 0x3);
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.typical_p = .8}), 0x7);
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.typical_p = .95}), 0x1f); /* of the last two the lower id */
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.typical_p = 1}), 0x3f);
    /* later cuts see only the remaining tokens: the largest weight of {second} is its own */
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.typical_p = .2, .min_p = .9}), 0x2);
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.typical_p = .8, .min_p = .4, .top_p = .9}), 0x3);
    /* equal tokens are equally typical: lower ids first */
    assert_int_equal(support_of((int[]){16, 16, 16, 16}, 4, (hunch_sampling){.typical_p = .6}), 0x7);
}

static void test_xtc_by_hand(void **state) {
    (void)state;
    const int parts[] = {4, 28, 2, 16, 8, 6};
    const hunch_sampling q = {.xtc_probability = 1, .xtc_threshold = .1};
    assert_int_equal(support_of(parts, 6, q), 0x35); /* of 28, 16 and 8 the 8 stays, and all below */
    assert_int_equal(support_of((int[]){16, 16, 16, 16}, 4, q), 0x1);
    assert_int_equal(support_of((int[]){60, 2, 2}, 3, q), 0x7); /* a single one stays */
    assert_int_equal(support_of((int[]){2, 31, 31}, 3, (hunch_sampling){.xtc_probability = 1, .xtc_threshold = .5}),
                     0x7);
    assert_int_equal(support_of((int[]){32, 32}, 2, (hunch_sampling){.xtc_probability = 1, .xtc_threshold = .5}), 0x1);
    /* the threshold applies to the remaining tokens: 28 and 16 alone are 0.64 and 0.36 */
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.top_k = 2, .xtc_probability = 1, .xtc_threshold = .3}),
                     0x8);
    assert_int_equal(support_of(parts, 6, (hunch_sampling){.top_k = 2, .xtc_probability = 1, .xtc_threshold = .4}),
                     0xa);
}

static void test_sigma_by_hand(void **state) {
    (void)state;
    const float l[] = {1, 3, -INFINITY, 1, 3, NAN, 3, 5, 3}; /* of seven numbers: mean 19/7, variance 80/49 */
    const double sigma = sqrt(80) / 7;
    const struct {
        double n;
        int kept;
    } cases[] = {{.9 * 2 / sigma, 1}, {1.1 * 2 / sigma, 5}, {.9 * 4 / sigma, 5}, {1.1 * 4 / sigma, 7}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int k = 0; k < 9; k += 3) /* alone, and with a top-k */
            for (int hot = 0; hot < 2; hot++) { /* at any temperature */
                double p[9];
                const hn_history h = at(0);
                hn_sampler s;
                hunch_sampling q = {.temperature = hot ? 5 : .3, .top_p = 1, .top_k = k, .top_n_sigma = cases[c].n};
                sampler_open(&s, q, 9);
                assert_int_equal(dist_spread(&s, l, &h, p), k && k < cases[c].kept ? k : cases[c].kept);
                hn_sampler_fini(&s);
            }
}

/* 0.7 is between two float32 numbers: the weight just below it is dropped, though 0.7 in float32 equals it. */
static void test_min_p_in_doubles(void **state) {
    (void)state;
    const hn_history h = at(0);
    float l[2] = {0, logf(.7f) - 1e-6f}, w = 0;
    double p[2];
    hn_sampler s;
    assert_true((double).7f < .7);
    while (w < .7f) {
        l[1] = nextafterf(l[1], 0);
        hn_vocab_ops_ref.weights(l + 1, 1, 0, 1, &w);
    }
    assert_true(w == .7f);
    for (int exact = 0; exact < 2; exact++) {
        sampler_open(&s, (hunch_sampling){.temperature = 1, .top_p = 1, .min_p = exact ? .7 : (double).7f}, 2);
        assert_int_equal(dist_spread(&s, l, &h, p), exact ? 1 : 2);
        hn_sampler_fini(&s);
    }
}

/* ---- XTC's random number ------------------------------------------------------------------------------------------------- */

/* It is a function of seed and position, for drafted and committed rows, draws and distributions alike, and follows its probability. */
static void test_xtc_draw(void **state) {
    (void)state;
    enum { N = 4000 };
    const float l[] = {1, 1.5f, 0, -1};
    const int32_t text[N] = {0};
    hn_sampler s;
    int acted = 0;
    const hunch_sampling params = {.temperature = 1, .top_p = 1, .xtc_probability = .3, .xtc_threshold = .2, .seed = 6};
    sampler_open(&s, params, 4);
    for (int i = 0; i < N; i++) {
        double p[4], q[4];
        const int path = i % 7 < i ? i % 7 : 0;
        const hn_history plain = at(i), drafted = {.text = text, .n = i - path, .path = text, .n_path = path};
        const int support = dist_spread(&s, l, &plain, p);
        dist_spread(&s, l, &drafted, q);
        assert_memory_equal(p, q, sizeof p);
        assert_int_equal(support, xtc_expected(&s.params, i) ? 3 : 4);
        assert_true(p[hn_sampler_draw(&s, l, &drafted, -1)] > 0);
        acted += support == 3;
    }
    assert_true(fabs(acted - .3 * N) < 5 * sqrt(.21 * N));
    hn_sampler_fini(&s);
}

/* ---- levels ----------------------------------------------------------------------------------------------------- */

static void test_levels(void **state) {
    (void)state;
    static float l[MAX_VOCAB], weight[MAX_VOCAB];
    static int32_t id[MAX_VOCAB];
    uint64_t seed = 21;
    for (int round = 0; round < 300; round++) {
        const int n = 1 + below(&seed, round % 5 ? 100 : MAX_VOCAB);
        const hn_history h = at(round);
        hn_dist first, dist;
        hn_sampler s;
        logits_make(&seed, l, n, true);
        l[0] = 0;
        sampler_open(&s, cuts_make(&seed, n, 3), n);
        s.vocab_ops = &hn_vocab_ops_ref;
        const int32_t token = hn_sampler_draw(&s, l, &h, -1);
        hn_sampler_dist(&s, l, &h, &first);
        memcpy(id, first.id, (size_t)first.n * sizeof *id);
        memcpy(weight, first.weight, (size_t)first.n * sizeof *weight);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            s.vocab_ops = hn_vocab_ops_for(isa);
            assert_int_equal(hn_sampler_draw(&s, l, &h, -1), token);
            hn_sampler_dist(&s, l, &h, &dist);
            assert_int_equal(dist.n, first.n);
            assert_true(dist.sum == first.sum);
            assert_memory_equal(dist.id, id, (size_t)dist.n * sizeof *id);
            assert_memory_equal(dist.weight, weight, (size_t)dist.n * sizeof *weight);
        }
        hn_sampler_fini(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dist),
        cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_typical_by_hand),
        cmocka_unit_test(test_xtc_by_hand),
        cmocka_unit_test(test_sigma_by_hand),
        cmocka_unit_test(test_xtc_draw),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_min_p_in_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
