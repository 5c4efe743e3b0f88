/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_test.c - the law against one written by sorting, draws against the law, the quick race against the slow one,
 * and the odd logits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "sample/chi_square.h"
#include "sample/sampler.h"

enum { MAX_VOCAB = 3000 };

static double uniform_slow(void *ctx, const hn_random_key *key) {
    (void)ctx;
    return hn_random_uniform(key);
}

static void sampler_open(hn_sampler *s, hunch_sampling p, int vocab) {
    hunch_error err = {0};
    if (hn_sampler_init(s, &p, vocab, &err)) fail_msg("%s", err.message);
}

static double unit(uint64_t *seed) {
    return (double)(hn_splitmix(seed) >> 11) * 0x1p-53;
}

/* Logits like a model's, on a coarse grid half of the time so that there are ties; now and then NaN and -inf. */
static void logits_make(uint64_t *seed, float *l, int n, bool odd) {
    bool grid = hn_splitmix(seed) % 2;
    double spread = 1 + 12 * unit(seed);
    for (int i = 0; i < n; i++) {
        double x = (unit(seed) + unit(seed) + unit(seed) - 1.5) * spread;
        l[i] = (float)(grid ? rint(2 * x) / 2 : x);
        if (odd && hn_splitmix(seed) % 50 == 0) l[i] = hn_splitmix(seed) % 2 ? NAN : -INFINITY;
    }
}

static hunch_sampling params_make(uint64_t *seed, int vocab) {
    hunch_sampling p = {.temperature = .05 + 2 * unit(seed), .top_p = 1, .seed = hn_splitmix(seed)};
    if (hn_splitmix(seed) % 2) p.top_k = 1 + (int)(hn_splitmix(seed) % (uint64_t)(vocab + 2));
    if (hn_splitmix(seed) % 2) p.top_p = hn_splitmix(seed) % 4 ? .3 + .699 * unit(seed) : unit(seed) + 1e-9;
    if (hn_splitmix(seed) % 2) p.min_p = .3 * unit(seed) * unit(seed);
    return p;
}

/* ---- the law by sorting -------------------------------------------------------------------------------------------- */

static const float *sort_by;
static int compare_ids(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    if (sort_by[x] != sort_by[y]) return sort_by[x] > sort_by[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

/* Exponentials in double, every processor on a fully sorted list. */
static void law_by_sorting(const float *l, int n, const hunch_sampling *q, double *p) {
    static int id[MAX_VOCAB];
    static double w[MAX_VOCAB];
    int kept = 0;
    for (int i = 0; i < n; i++) {
        p[i] = 0;
        if (l[i] > -INFINITY) id[kept++] = i;
    }
    sort_by = l;
    qsort(id, (size_t)kept, sizeof *id, compare_ids);
    if (q->top_k > 0 && q->top_k < kept) kept = q->top_k;
    double sum = 0, run = 0;
    for (int i = 0; i < kept; i++) sum += w[i] = exp(((double)l[id[i]] - (double)l[id[0]]) / q->temperature);
    for (int i = 0; q->top_p < 1 && i < kept; i++)
        if ((run += w[i]) >= q->top_p * sum) kept = i + 1;
    sum = 0;
    for (int i = 0; i < kept; i++) sum += w[i] = w[i] >= q->min_p ? w[i] : 0;
    for (int i = 0; i < kept; i++) p[id[i]] = w[i] / sum;
}

static void test_law(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    static double got[MAX_VOCAB], want[MAX_VOCAB];
    uint64_t seed = 1;
    for (int round = 0; round < 1500; round++) {
        int n = 1 + (int)(hn_splitmix(&seed) % (round % 10 ? 60 : MAX_VOCAB));
        logits_make(&seed, l, n, round % 3 == 0);
        l[hn_splitmix(&seed) % (uint64_t)n] = 1; /* at least one number */
        hunch_sampling q = params_make(&seed, n);
        hn_sampler s;
        sampler_open(&s, q, n);
        hn_sampler_law(&s, l, got);
        law_by_sorting(l, n, &q, want);
        double sum = 0;
        for (int i = 0; i < n; i++) {
            double z = want[i] > 0 ? log(want[i]) : 0; /* whose float32 rounding is relative */
            if (fabs(got[i] - want[i]) > (1e-6 - 3e-7 * z) * want[i] + 1e-36)
                fail_msg("round %d, token %d of %d (T %g k %d p %g m %g): %g, expected %g", round, i, n, q.temperature, q.top_k,
                         q.top_p, q.min_p, got[i], want[i]);
            sum += got[i];
        }
        assert_true(fabs(sum - 1) < 1e-9);
        hn_sampler_fini(&s);
    }
}

/* ---- draws ------------------------------------------------------------------------------------------------------------ */

/* The race as the definition reads: smallest e / P, ties to the lowest id. */
static int32_t race_by_definition(const double *p, int n, uint64_t seed, uint64_t position) {
    int32_t winner = -1;
    double best = INFINITY;
    for (int i = 0; i < n; i++) {
        hn_random_key key = {.seed = seed, .position = position, .purpose = HN_PURPOSE_TARGET, .token = (uint32_t)i};
        if (p[i] > 0 && hn_random_exponential(&key) / p[i] < best) {
            best = hn_random_exponential(&key) / p[i];
            winner = i;
        }
    }
    return winner;
}

/* Shortcuts change nothing: the quick race, the generic one and the definition agree, with and without the hint. */
static void test_draw_is_the_race(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    static double p[MAX_VOCAB];
    uint64_t seed = 2;
    for (int round = 0; round < 1200; round++) {
        int n = 1 + (int)(hn_splitmix(&seed) % (round % 4 ? 130 : MAX_VOCAB));
        logits_make(&seed, l, n, round % 3 == 0);
        l[hn_splitmix(&seed) % (uint64_t)n] = 1;
        hunch_sampling q = params_make(&seed, n);
        if (round % 2) q.top_k = 0, q.top_p = 1, q.min_p = 0;
        hn_sampler s;
        sampler_open(&s, q, n);
        hn_sampler_law(&s, l, p);
        int32_t best = 0;
        for (int i = 0; i < n; i++)
            if (l[i] > l[best] || isnan(l[best])) best = i;
        for (uint64_t position = 0; position < 4; position++) {
            int32_t quick = hn_sampler_draw(&s, l, position, -1);
            assert_int_equal(quick, hn_sampler_draw(&s, l, position, best));
            assert_int_equal(quick, race_by_definition(p, n, q.seed, position));
            s.coins.uniform = uniform_slow;
            assert_int_equal(quick, hn_sampler_draw(&s, l, position, -1));
            s.coins = hn_coins_philox;
        }
        hn_sampler_fini(&s);
    }
}

/* Draws over positions, and over seeds, follow the law; neighbours in position are independent. */
static void test_draws_follow_the_law(void **state) {
    (void)state;
    enum { V = 12, N = 40000 };
    static const hunch_sampling cases[] = {{1, 0, 1, 0, 5},   {.7, 0, 1, 0, 6},     {1.8, 5, 1, 0, 7},    {1, 0, .8, 0, 8},
                                           {1, 0, 1, .2, 9}, {1.2, 9, .95, .05, 10}, {.3, 0, .999, 0, 11}};
    static const float l[V] = {1.f, -.5f, 2.f, 2.f, 0.f, -3.f, 1.5f, -INFINITY, .25f, -1.f, NAN, 1.f};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        hn_sampler s;
        sampler_open(&s, cases[c], V);
        double p[V], pair[V * V];
        hn_sampler_law(&s, l, p);
        for (int i = 0; i < V * V; i++) pair[i] = p[i / V] * p[i % V];
        long counts[V * V] = {0};
        for (int i = 0; i < N; i++) {
            int32_t a = hn_sampler_draw(&s, l, 2 * (uint64_t)i, -1), b = hn_sampler_draw(&s, l, 2 * (uint64_t)i + 1, -1);
            counts[a * V + b]++;
        }
        assert_true(chi_square_fits(counts, pair, V * V, N));
        long by_seed[V] = {0};
        for (int i = 0; i < N; i++) {
            s.params.seed = (uint64_t)i;
            by_seed[hn_sampler_draw(&s, l, 3, -1)]++;
        }
        assert_true(chi_square_fits(by_seed, p, V, N));
        /* and the test has power: a law three percent off is refused */
        double other[V], sum = 0;
        for (int i = 0; i < V; i++) sum += other[i] = p[i] * (i == 2 ? 1.03 : 1);
        for (int i = 0; i < V; i++) other[i] /= sum;
        long doubled[V] = {0};
        for (int i = 0; i < 10 * N; i++) doubled[hn_sampler_draw(&s, l, (uint64_t)i, -1)]++;
        assert_true(chi_square_fits(doubled, p, V, 10 * N));
        if (p[2] < .9) assert_false(chi_square_fits(doubled, other, V, 10 * N));
        hn_sampler_fini(&s);
    }
}

/* Coins on a grid instead of random ones: the share of each winner tends to P (area under a monotone boundary). */
typedef struct grid {
    int index[3];
    int cells;
} grid;
static double uniform_grid(void *ctx, const hn_random_key *key) {
    const grid *g = ctx;
    return (g->index[key->token] + .5) / g->cells;
}

static void test_race_on_a_grid(void **state) {
    (void)state;
    enum { M = 60 };
    grid g = {.cells = M};
    const float l[3] = {.5f, 1.f, -.7f};
    hn_sampler s;
    sampler_open(&s, (hunch_sampling){1, 0, 1, 0, 0}, 3);
    s.coins = (hn_coins){uniform_grid, &g};
    double p[3], share[3] = {0};
    hn_sampler_law(&s, l, p);
    for (g.index[0] = 0; g.index[0] < M; g.index[0]++)
        for (g.index[1] = 0; g.index[1] < M; g.index[1]++)
            for (g.index[2] = 0; g.index[2] < M; g.index[2]++) share[hn_sampler_draw(&s, l, 0, -1)] += 1. / (M * M * M);
    for (int i = 0; i < 3; i++) assert_true(fabs(share[i] - p[i]) < 1.5 / M);
    hn_sampler_fini(&s);
}

/* ---- odd logits, limits ------------------------------------------------------------------------------------------------ */

static int32_t draw(const float *l, int n, hunch_sampling q) {
    hn_sampler s;
    sampler_open(&s, q, n);
    int32_t token = hn_sampler_draw(&s, l, 9, -1);
    hn_sampler_fini(&s);
    return token;
}

static void test_odd_logits(void **state) {
    (void)state;
    static const hunch_sampling all[] = {{0, 0, 1, 0, 1}, {1, 0, 1, 0, 1}, {1, 2, 1, 0, 1}, {1, 0, .9, 0, 1}, {1, 0, 1, .1, 1},
                                         {1e-300, 0, 1, 0, 1}, {1000, 3, .5, .5, 1}};
    const float nothing[] = {NAN, -INFINITY, NAN}, one[] = {NAN, -INFINITY, -1e30f, NAN},
                infinite[] = {1, INFINITY, 3, INFINITY, NAN}, low[] = {-3e38f, -3.1e38f};
    int first = 0, second = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(draw(nothing, 3, all[i]), -1);
        assert_int_equal(draw(one, 4, all[i]), 2);
        assert_int_equal(draw(low, 2, all[i]), 0);
        for (uint64_t seed = 0; seed < 20; seed++) {
            hunch_sampling q = all[i];
            q.seed = seed;
            int32_t t = draw(infinite, 5, q);
            assert_true(t == 1 || t == 3);
            if (q.temperature > 0 && q.top_p == 1) first += t == 1, second += t == 3;
        }
    }
    assert_true(first > 20 && second > 20); /* equally likely where nothing cuts */
}

static void test_greedy(void **state) {
    (void)state;
    float l[100];
    uint64_t seed = 4;
    for (int round = 0; round < 300; round++) {
        int n = 1 + round % 100;
        logits_make(&seed, l, n, true);
        l[n / 2] = 0;
        int32_t best = -1;
        for (int i = 0; i < n; i++)
            if (l[i] > -INFINITY && (best < 0 || l[i] > l[best])) best = i;
        assert_int_equal(draw(l, n, (hunch_sampling){0, 3, .5, .1, 1}), best);
        assert_int_equal(draw(l, n, (hunch_sampling){1, 1, 1, 0, 1}), best);  /* top-k 1 is greedy */
        assert_int_equal(draw(l, n, (hunch_sampling){1, 0, 1e-9, 0, 1}), best); /* so is a tiny top-p */
    }
}

/* Tokens that cannot be drawn change nothing: a vocabulary padded with -inf gives the same text. */
static void test_padding(void **state) {
    (void)state;
    float l[200];
    uint64_t seed = 8;
    for (int round = 0; round < 200; round++) {
        logits_make(&seed, l, 100, false);
        for (int i = 100; i < 200; i++) l[i] = -INFINITY;
        hunch_sampling q = params_make(&seed, 90);
        assert_int_equal(draw(l, 100, q), draw(l, 200, q));
    }
}

static void test_parameters(void **state) {
    (void)state;
    static const struct {
        hunch_sampling p;
        const char *word;
    } bad[] = {{{-1, 0, 1, 0, 0}, "temperature=-1"}, {{NAN, 0, 1, 0, 0}, "temperature"}, {{INFINITY, 0, 1, 0, 0}, "temperature"},
               {{1, -1, 1, 0, 0}, "top_k=-1"},        {{1, 0, 0, 0, 0}, "top_p=0"},        {{1, 0, 1.5, 0, 0}, "top_p=1.5"},
               {{1, 0, NAN, 0, 0}, "top_p"},          {{1, 0, 1, -.1, 0}, "min_p=-0.1"},   {{1, 0, 1, 2, 0}, "min_p=2"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hn_sampler s;
        hunch_error err = {0};
        assert_int_equal(hn_sampler_init(&s, &bad[i].p, 10, &err), HUNCH_USAGE);
        assert_non_null(strstr(err.message, bad[i].word));
        assert_non_null(strstr(err.message, "expected"));
    }
    for (int after = 0; after < 2; after++) {
        hn_sampler s;
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        assert_int_equal(hn_sampler_init(&s, &(hunch_sampling){1, 0, 1, 0, 0}, 10, NULL), HUNCH_NO_MEMORY);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law),           cmocka_unit_test(test_draw_is_the_race), cmocka_unit_test(test_draws_follow_the_law),
        cmocka_unit_test(test_race_on_a_grid), cmocka_unit_test(test_odd_logits),       cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_padding),       cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
