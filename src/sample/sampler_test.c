/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_test.c - draws against the distribution, the fast race against the slow one, replaced random numbers, odd logits and
 * log-probabilities. The distribution itself: support_test.c and processors_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "fixture.h"
#include "sample/chi_square.h"
#include "sample/sampling_for_tests.h"

enum { MAX_VOCAB = 3000 };

#define CUTS(t, k, p, m, s) {.temperature = (t), .top_k = (k), .top_p = (p), .min_p = (m), .seed = (s)}

static double uniform_slow(void *ctx, const hn_random_key *key) {
    (void)ctx;
    return hn_random_uniform(key);
}

/* ---- draws ------------------------------------------------------------------------------------------------------ */

/* The race by its definition: smallest e / P, ties to the lowest id. */
static int32_t race_by_definition(const double *p, int n, uint64_t seed, uint64_t position) {
    int32_t winner = -1;
    double best = INFINITY;
    for (int i = 0; i < n; i++) {
        hn_random_key key = {.seed = seed, .position = position, .purpose = HN_PURPOSE_TARGET, .token = (uint32_t)i};
        const double e = -log(hn_random_uniform(&key));
        if (p[i] > 0 && e / p[i] < best) {
            best = e / p[i];
            winner = i;
        }
    }
    return winner;
}

/* Shortcuts change no result: the fast race, the generic one and the definition agree, with and without the hint. */
static void test_draw_is_the_race(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    static double p[MAX_VOCAB];
    uint64_t seed = 2;
    for (int round = 0; round < 1200; round++) {
        const int n = 1 + below(&seed, round % 4 ? 130 : MAX_VOCAB);
        logits_make(&seed, l, n, round % 3 == 0);
        l[below(&seed, n)] = 1;
        hunch_sampling q = cuts_make(&seed, n, 3);
        if (round % 2) q = (hunch_sampling)CUTS(q.temperature, 0, 1, 0, q.seed);
        hn_sampler s;
        sampler_open(&s, q, n);
        int32_t best = 0;
        for (int i = 0; i < n; i++)
            if (l[i] > l[best] || isnan(l[best])) best = i;
        for (int position = 0; position < 4; position++) {
            const hn_history h = at(position);
            dist_spread(&s, l, &h, p);
            const int32_t quick = hn_sampler_draw(&s, l, &h, -1);
            assert_int_equal(quick, hn_sampler_draw(&s, l, &h, best));
            assert_int_equal(quick, race_by_definition(p, n, q.seed, (uint64_t)position));
            s.rng.uniform = uniform_slow;
            assert_int_equal(quick, hn_sampler_draw(&s, l, &h, -1));
            s.rng = hn_rng_philox;
        }
        hn_sampler_fini(&s);
    }
}

/* The same with the vocabulary of current models, with and without penalties. */
static void test_large_vocabulary(void **state) {
    (void)state;
    const int vocab = light() ? 20011 : 151936;
    float *l = calloc((size_t)vocab, sizeof *l);
    int32_t text[100];
    uint64_t seed = 31;
    for (int round = 0; round < 12; round++) {
        const hunch_sampling q = {.temperature = .4 + .2 * round, .top_p = 1, .seed = hn_splitmix(&seed),
                                  .repetition_penalty = round % 2 ? 1.1 : 0};
        hn_sampler s;
        sampler_open(&s, q, vocab);
        for (int i = 0; i < vocab; i++) l[i] = (float)(-2 * log(unit(&seed)) * unit(&seed));
        for (int i = 0; i < 100; i++) text[i] = below(&seed, vocab), l[text[i]] += 5;
        for (int n = 0; n < 100; n += 20) {
            const hn_history h = {text, n, 5, text + n, 10};
            const int32_t quick = hn_sampler_draw(&s, l, &h, -1);
            s.rng.uniform = uniform_slow;
            assert_int_equal(quick, hn_sampler_draw(&s, l, &h, -1));
            s.rng = hn_rng_philox;
        }
        hn_sampler_fini(&s);
    }
    free(l);
}

/* Draws over positions, and over seeds, follow the distribution; neighbours in position are independent. */
static void test_draws_follow_the_dist(void **state) {
    (void)state;
    enum { V = 12 };
    const int rounds = light() ? 10000 : 40000;
    static const hunch_sampling cases[] = {
        CUTS(1, 0, 1, 0, 5),      CUTS(.7, 0, 1, 0, 6),
        CUTS(1.8, 5, 1, 0, 7),    CUTS(1, 0, .8, 0, 8),
        CUTS(1, 0, 1, .2, 9),     CUTS(1.2, 9, .95, .05, 10),
        CUTS(.3, 0, .999, 0, 11), {.temperature = 1, .top_p = 1, .seed = 12, .typical_p = .7},
        {.temperature = 1.5, .top_p = 1, .seed = 13, .top_n_sigma = 1.5}};
    static const float l[V] = {1.f, -.5f, 2.f, 2.f, 0.f, -3.f, 1.5f, -INFINITY, .25f, -1.f, NAN, 1.f};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        hn_sampler s;
        sampler_open(&s, cases[c], V);
        double p[V], pair[V * V];
        const hn_history start = at(0);
        dist_spread(&s, l, &start, p);
        for (int i = 0; i < V * V; i++) pair[i] = p[i / V] * p[i % V];
        long counts[V * V] = {0}, by_seed[V] = {0}, more[V] = {0};
        for (int i = 0; i < rounds; i++) {
            const hn_history one = at(2 * i), two = at(2 * i + 1);
            counts[hn_sampler_draw(&s, l, &one, -1) * V + hn_sampler_draw(&s, l, &two, -1)]++;
        }
        assert_true(chi_square_fits(counts, pair, V * V, rounds));
        for (int i = 0; i < rounds; i++) {
            const hn_history h = at(3);
            s.params.seed = (uint64_t)i;
            by_seed[hn_sampler_draw(&s, l, &h, -1)]++;
        }
        assert_true(chi_square_fits(by_seed, p, V, rounds));
        if (c % 3) {
            hn_sampler_fini(&s);
            continue;
        }
        /* the test has power: a distribution that is off by three percent is rejected */
        double other[V], sum = 0;
        for (int i = 0; i < V; i++) sum += other[i] = p[i] * (i == 2 ? 1.03 : 1);
        for (int i = 0; i < V; i++) other[i] /= sum;
        for (int i = 0; i < 10 * rounds; i++) {
            const hn_history h = at(i);
            more[hn_sampler_draw(&s, l, &h, -1)]++;
        }
        assert_true(chi_square_fits(more, p, V, 10 * rounds));
        if (p[2] < .9 && !light()) assert_false(chi_square_fits(more, other, V, 10 * rounds));
        hn_sampler_fini(&s);
    }
}

/* If XTC acts with some probability, draws follow the mixture of both distributions. */
static void test_xtc_mixture(void **state) {
    (void)state;
    enum { V = 4, N = 40000 };
    const float l[V] = {1, 1.5f, 0, -1};
    hunch_sampling q = {.temperature = 1, .top_p = 1, .seed = 6};
    double with[V], without[V], p[V];
    long counts[V] = {0};
    const hn_history h = at(0);
    hn_sampler s;
    sampler_open(&s, q, V);
    dist_spread(&s, l, &h, without);
    hn_sampler_fini(&s);
    q.xtc_probability = 1;
    q.xtc_threshold = .2;
    sampler_open(&s, q, V);
    dist_spread(&s, l, &h, with);
    hn_sampler_fini(&s);
    q.xtc_probability = .3;
    sampler_open(&s, q, V);
    for (int i = 0; i < V; i++) p[i] = .3 * with[i] + .7 * without[i];
    for (int i = 0; i < N; i++) {
        const hn_history here = at(i);
        counts[hn_sampler_draw(&s, l, &here, -1)]++;
    }
    assert_true(chi_square_fits(counts, p, V, N));
    assert_false(chi_square_fits(counts, without, V, N));
    hn_sampler_fini(&s);
}

/* ---- replaced random numbers --------------------------------------------------------------------------------------------- */

/* Numbers on a grid instead of random ones: the share of each winner tends to P (area under a monotone boundary). */
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
    const hn_history h = at(0);
    hn_sampler s;
    sampler_open(&s, (hunch_sampling)CUTS(1, 0, 1, 0, 0), 3);
    s.rng = (hn_rng){uniform_grid, NULL, NULL, &g};
    double p[3], share[3] = {0};
    dist_spread(&s, l, &h, p);
    for (g.index[0] = 0; g.index[0] < M; g.index[0]++)
        for (g.index[1] = 0; g.index[1] < M; g.index[1]++)
            for (g.index[2] = 0; g.index[2] < M; g.index[2]++)
                share[hn_sampler_draw(&s, l, &h, -1)] += 1. / (M * M * M);
    for (int i = 0; i < 3; i++) assert_true(fabs(share[i] - p[i]) < 1.5 / M);
    hn_sampler_fini(&s);
}

static double uniform_same(void *ctx, const hn_random_key *key) {
    (void)ctx;
    (void)key;
    return .5;
}

/* With one number for all tokens, the heaviest wins, of equal ones the lowest id, in any order of the candidates. */
static void test_ties(void **state) {
    (void)state;
    float l[60];
    double p[60];
    uint64_t seed = 17;
    for (int round = 0; round < 500; round++) {
        const hn_history h = at(round);
        int32_t want = 0;
        hn_sampler s;
        for (int i = 0; i < 60; i++) l[i] = (float)below(&seed, 4);
        sampler_open(&s, cuts_make(&seed, 60, 2), 60);
        s.rng.uniform = uniform_same;
        dist_spread(&s, l, &h, p);
        for (int i = 1; i < 60; i++)
            if (p[i] > p[want]) want = i;
        assert_int_equal(hn_sampler_draw(&s, l, &h, -1), want);
        hn_sampler_fini(&s);
    }
}

/* Random numbers with outcomes chosen by the test, which record the requested probabilities. */
typedef struct chooser {
    bool acts;
    int want;      /* index to draw */
    int accepts, draws;
    double p, accept_p;
    hn_random_key accept_key, draw_key;
} chooser;
static bool accept_chosen(void *ctx, const hn_random_key *key, double p) {
    chooser *c = ctx;
    c->accept_key = *key;
    c->accept_p = p;
    c->accepts++;
    return c->acts;
}
static int draw_chosen(void *ctx, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    chooser *c = ctx;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += weight[i];
    const int i = c->want % n;
    c->draw_key = *key;
    c->p = weight[i] / sum;
    c->draws++;
    assert_in_range(id[i], 0, 3);
    return i;
}

static void test_chosen_rng(void **state) {
    (void)state;
    const float l[] = {1, 1.5f, 0, -1};
    const hn_history h = {.n = 8, .n_prompt = 2, .path = (const int32_t[]){1, 2}, .n_path = 2};
    chooser c = {0};
    double dist[4], joint[2][4] = {{0}};
    hn_sampler s;
    const hunch_sampling params = {
        .temperature = 1, .top_p = 1, .xtc_probability = .3, .xtc_threshold = .2, .seed = 44};
    sampler_open(&s, params, 4);
    s.rng = (hn_rng){hn_rng_philox.uniform, accept_chosen, draw_chosen, &c};
    for (int acts = 0; acts < 2; acts++) {
        c.acts = acts;
        const int support = dist_spread(&s, l, &h, dist);
        assert_int_equal(support, acts ? 3 : 4);
        for (c.want = 0; c.want < support; c.want++) {
            const int32_t token = hn_sampler_draw(&s, l, &h, -1);
            joint[acts][token] += c.p;
            assert_true(c.accept_p == .3);
        }
        for (int i = 0; i < 4; i++) assert_true(fabs(joint[acts][i] - dist[i]) < 1e-12);
    }
    assert_int_equal(c.draws, 7);
    assert_int_equal(c.accepts, 9);
    const hn_random_key xtc = {.seed = 44, .position = 10, .purpose = HN_PURPOSE_XTC},
                        target = {.seed = 44, .position = 10, .purpose = HN_PURPOSE_TARGET};
    assert_memory_equal(&c.accept_key, &xtc, sizeof xtc);
    assert_memory_equal(&c.draw_key, &target, sizeof target);
    /* greedy calls nothing */
    s.params.temperature = 0;
    assert_int_equal(hn_sampler_draw(&s, l, &h, -1), 1);
    assert_int_equal(dist_spread(&s, l, &h, dist), 1);
    assert_true(dist[1] == 1 && c.draws == 7 && c.accepts == 9);
    hn_sampler_fini(&s);
}

/* ---- odd logits, limits ----------------------------------------------------------------------------------------- */

static int32_t draw(const float *l, int n, hunch_sampling q) {
    const hn_history h = at(9);
    hn_sampler s;
    hn_dist dist;
    sampler_open(&s, q, n);
    const int32_t token = hn_sampler_draw(&s, l, &h, -1);
    hn_sampler_dist(&s, l, &h, &dist);
    bool drawable = token < 0 && dist.n == 0;
    for (int i = 0; i < dist.n; i++) drawable |= dist.id[i] == token;
    assert_true(drawable);
    hn_sampler_fini(&s);
    return token;
}

static void test_odd_logits(void **state) {
    (void)state;
    static const hunch_sampling all[] = {CUTS(0, 0, 1, 0, 1),
                                         CUTS(1, 0, 1, 0, 1),
                                         CUTS(1, 2, 1, 0, 1),
                                         CUTS(1, 0, .9, 0, 1),
                                         CUTS(1, 0, 1, .1, 1),
                                         CUTS(1e-300, 0, 1, 0, 1),
                                         CUTS(1000, 3, .5, .5, 1),
                                         {.temperature = 1, .top_p = 1, .top_n_sigma = .1},
                                         {.temperature = 1e-300, .top_p = 1, .typical_p = .9},
                                         {.temperature = .5, .top_p = 1, .typical_p = .1, .top_k = 2, .min_p = 1},
                                         {.temperature = .5, .top_p = 1, .xtc_probability = 1, .xtc_threshold = .5}};
    const float nothing[] = {NAN, -INFINITY, NAN}, one[] = {NAN, -INFINITY, -1e30f, NAN},
                infinite[] = {1, INFINITY, 3, INFINITY, NAN}, low[] = {-3e38f, -3.1e38f}, wide[] = {3e38f, -3e38f};
    const hn_history h = at(9);
    int first = 0, second = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        hn_sampler s;
        sampler_open(&s, all[i], 3);
        assert_int_equal(hn_sampler_draw(&s, nothing, &h, 0), -1); /* a backend's argmax of a row without numbers is 0 */
        hn_sampler_fini(&s);
        assert_int_equal(draw(nothing, 3, all[i]), -1);
        assert_int_equal(draw(one, 4, all[i]), 2);
        assert_int_equal(draw(low, 2, all[i]), 0);
        assert_int_equal(draw(wide, 2, all[i]), 0);
        for (uint64_t seed = 0; seed < 20; seed++) {
            hunch_sampling q = all[i];
            q.seed = seed;
            int32_t t = draw(infinite, 5, q);
            assert_true(t == 1 || t == 3);
            if (q.temperature > 0 && q.top_p == 1) first += t == 1, second += t == 3;
        }
    }
    assert_true(first > 20 && second > 20); /* equally likely without cuts */
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
        assert_int_equal(draw(l, n, (hunch_sampling)CUTS(0, 3, .5, .1, 1)), best);
        assert_int_equal(draw(l, n, (hunch_sampling)CUTS(1, 1, 1, 0, 1)), best);  /* top-k 1 is greedy */
        assert_int_equal(draw(l, n, (hunch_sampling)CUTS(1, 0, 1e-9, 0, 1)), best); /* so is a tiny top-p */
    }
}

/* Tokens that cannot be drawn change nothing: a vocabulary padded with -inf gives the same text. */
static void test_padding(void **state) {
    (void)state;
    float l[200];
    uint64_t seed = 8;
    for (int round = 0; round < 400; round++) {
        logits_make(&seed, l, 100, false);
        for (int i = 100; i < 200; i++) l[i] = -INFINITY;
        hunch_sampling q = cuts_make(&seed, 90, 3);
        assert_int_equal(draw(l, 100, q), draw(l, 200, q));
    }
}

/* The token at which the running sum passes u. */
static int32_t token_at(const hn_dist *dist, double u) {
    double passed = 0;
    for (int i = 0; i < dist->n; i++)
        if ((passed += (double)dist->weight[i]) > u * dist->sum) return dist->id[i];
    return dist->id[dist->n - 1];
}

/* Queries of a distribution that is not listed agree with its list. */
static void test_looks(void **state) {
    (void)state;
    static float l[3000], w[3000];
    uint64_t seed = 31;
    int unlisted = 0, tokens = 0, agreed = 0;
    for (int round = 0; round < 400; round++) {
        const int n = 1 + below(&seed, round % 5 ? 200 : 3000);
        const hn_history h = at(round);
        hn_sampler s, other;
        hn_dist look, dist;
        logits_make(&seed, l, n, true);
        l[below(&seed, n)] = 2;
        const hunch_sampling q = cuts_make(&seed, n, round % 2 ? 3 : 1000);
        sampler_open(&s, q, n);
        sampler_open(&other, q, n);
        hn_sampler_dist_lazy(&s, l, &h, &look);
        hn_sampler_dist(&other, l, &h, &dist);
        assert_true(look.sum == dist.sum && look.n >= dist.n);
        for (int i = 0; i < n; i++) {
            const int at_i = hn_dist_find(dist.id, dist.n, i);
            assert_true(hn_dist_weight(&s, &look, i) == (at_i < 0 ? 0 : dist.weight[at_i]));
            assert_true(at_i < 0 || dist.id[at_i] == i);
            assert_true(i == 0 || i >= dist.n || dist.id[i - 1] < dist.id[i]);
        }
        if (!look.id) {
            unlisted++;
            const int first = below(&seed, n);
            hn_dist_weights(&s, &look, first, n - first, w);
            for (int i = first; i < n; i++) assert_true(w[i - first] == hn_dist_weight(&s, &look, i));
            for (int k = 0; k < 20; k++, tokens++) {
                const double u = k == 0 ? 0x1p-53 : k == 1 ? 1 - 0x1p-53 : unit(&seed);
                const int32_t token = hn_dist_token_at(&s, &look, u);
                assert_true(hn_dist_weight(&s, &look, token) > 0);
                agreed += token == token_at(&dist, u); /* except by rounding of sums */
            }
        }
        hn_dist_list(&s, &look);
        assert_int_equal(look.n, dist.n);
        assert_memory_equal(look.id, dist.id, (size_t)dist.n * sizeof *dist.id);
        assert_memory_equal(look.weight, dist.weight, (size_t)dist.n * sizeof *dist.weight);
        hn_sampler_fini(&s);
        hn_sampler_fini(&other);
    }
    assert_true(unlisted > 50 && agreed >= tokens - 2);
}

static void test_no_memory(void **state) {
    (void)state;
    const hunch_sampling q = {.temperature = 1, .top_p = 1, .typical_p = .5};
    for (int after = 0; after < 4; after++) {
        hn_sampler s;
        hunch_error err = {0};
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        assert_int_equal(hn_sampler_init(&s, &q, 10, &err), HUNCH_NO_MEMORY);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(err.message[0]);
    }
}

/* ---- log-probabilities ------------------------------------------------------------------------------------------ */

static void test_logprob(void **state) {
    (void)state;
    static float l[20011];
    uint64_t seed = 9;
    for (int round = 0; round < 60; round++) {
        const int n = 1 + below(&seed, round % 3 ? 700 : 20011);
        logits_make(&seed, l, n, round % 2);
        l[below(&seed, n)] = 1;
        long double sum = 0;
        for (int i = 0; i < n; i++)
            if (l[i] > -INFINITY) sum += expl((long double)l[i]);
        for (int i = 0; i < n; i += 1 + n / 50) {
            const double got = hn_logprob(l, n, i);
            if (l[i] > -INFINITY) assert_true(fabs(got - (double)((long double)l[i] - logl(sum))) < 1e-6);
            else assert_true(got == -INFINITY);
        }
    }
    assert_true(isnan(hn_logprob((const float[]){NAN, -INFINITY}, 2, 1)));
    const float infinite[] = {INFINITY, 0, INFINITY};
    assert_true(fabs(hn_logprob(infinite, 3, 2) - log(.5)) < 1e-9);
    assert_true(hn_logprob(infinite, 3, 1) == -INFINITY);
}

/* Logits of few values, so that many are equal; against sorting them all. */
static void test_logprob_top(void **state) {
    (void)state;
    static float l[700];
    uint64_t seed = 4;
    for (int round = 0; round < 60; round++) {
        const int vocab = 1 + below(&seed, 700), n = 1 + below(&seed, vocab < 30 ? vocab : 30);
        hunch_logprob top[30];
        bool taken[700] = {false};
        for (int i = 0; i < vocab; i++)
            l[i] = below(&seed, 9) == 0 ? -INFINITY : (float)below(&seed, round % 2 ? 5 : 100000) / 3;
        l[below(&seed, vocab)] = 1;
        hn_logprob_top(l, vocab, top, n);
        for (int k = 0; k < n; k++) {
            int best = -1;
            for (int i = 0; i < vocab; i++)
                if (!taken[i] && (best < 0 || l[i] > l[best])) best = i;
            taken[best] = true;
            assert_int_equal(top[k].token, best);
            assert_true(top[k].logprob == (float)hn_logprob(l, vocab, best));
        }
    }
    hunch_logprob two[2];
    hn_logprob_top((const float[]){NAN, -3}, 2, two, 2);
    assert_true(two[0].token == 1 && two[0].logprob == 0 && two[1].token == 0 && two[1].logprob == -INFINITY);
    hn_logprob_top((const float[]){NAN, -INFINITY}, 2, two, 2);
    assert_true(isnan(two[0].logprob) && isnan(two[1].logprob));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draw_is_the_race), cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_draws_follow_the_dist), cmocka_unit_test(test_xtc_mixture),
        cmocka_unit_test(test_race_on_a_grid),   cmocka_unit_test(test_chosen_rng),
        cmocka_unit_test(test_ties),            
        cmocka_unit_test(test_odd_logits),       cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_padding),          cmocka_unit_test(test_looks), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_logprob),          cmocka_unit_test(test_logprob_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
