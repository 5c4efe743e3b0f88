/* SPDX-License-Identifier: Apache-2.0 */
/* processors_test.c - bias, penalties, DRY and forbidden tokens: against the definition over random texts; after a drafted
 * path as after the same tokens committed; whatever text a sampler saw before; and rows with another row's history are detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>

#include "base/fault.h"
#include "fixture.h"
#include "sample/chi_square.h"
#include "sample/sampling_for_tests.h"

enum { MAX_VOCAB = 300, MAX_TEXT = 400, MAX_BIAS = 5 };

/* Parameters and their arrays. */
typedef struct request {
    hunch_sampling q;
    hunch_bias bias[MAX_BIAS];
    uint8_t breakers[(MAX_VOCAB + 7) / 8];
    bool breaks;
} request;

/* Each processor with probability 1 in `rare`. */
static void request_make(request *r, uint64_t *seed, int vocab, int rare) {
    hunch_sampling *q = &r->q;
    memset(r, 0, sizeof *r);
    *q = cuts_make(seed, vocab, 2 * rare);
    q->temperature += .3;
    q->bias = r->bias;
    if (!below(seed, rare))
        for (int i = 0; i < MAX_BIAS && i < vocab; i++)
            r->bias[q->n_bias++] = (hunch_bias){(vocab - 1) * i / MAX_BIAS,
                                                below(seed, 3) ? 8 * unit(seed) - 4 : -INFINITY};
    for (int i = 1; i < q->n_bias; i++)
        if (r->bias[i].token == r->bias[i - 1].token) q->n_bias = i; /* a small vocabulary: each token once */
    if (!below(seed, rare)) q->repetition_penalty = .5 + 1.5 * unit(seed);
    if (!below(seed, rare)) q->frequency_penalty = 2 * unit(seed) - 1;
    if (!below(seed, rare)) q->presence_penalty = 4 * unit(seed) - 2;
    if (!below(seed, rare)) {
        q->dry_multiplier = 2 * unit(seed) + .1;
        if (below(seed, 2)) q->dry_base = 1 + unit(seed);
        if (below(seed, 2)) q->dry_allowed_length = 1 + below(seed, 4);
        if (below(seed, 2)) q->dry_range = 1 + below(seed, MAX_TEXT);
        r->breaks = below(seed, 2);
        for (int i = 0; i < vocab; i++) r->breakers[i / 8] |= (uint8_t)((below(seed, 8) == 0) << (i % 8));
    }
}

static void request_open(hn_sampler *s, const request *r, int vocab) {
    sampler_open(s, r->q, vocab);
    if (r->breaks) assert_int_equal(hn_sampler_breakers(s, r->breakers, NULL), HUNCH_OK);
}

/* Tokens that repeat: of few ids, often the one `period` tokens before. */
static void text_make(uint64_t *seed, int32_t *text, int n, int vocab) {
    const int ids = 1 + below(seed, vocab), period = 1 + below(seed, 9), often = 1 + below(seed, 6);
    for (int i = 0; i < n; i++)
        text[i] =
            i >= period && below(seed, often) ? text[i - period] : (int32_t)(below(seed, ids) * (int64_t)7 % vocab);
}

/* The text of n tokens, the last n_path of them as a path. */
static hn_history split(const int32_t *text, int n, int n_prompt, int n_path) {
    return (hn_history){text, n - n_path, n_prompt, text + n - n_path, n_path};
}

/* ---- the definition --------------------------------------------------------------------------------------------- */

static void test_against_the_definition(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    static double got[MAX_VOCAB];
    static int32_t text[MAX_TEXT];
    uint64_t seed = 5;
    const int rounds = light() ? 300 : 3000;
    int sure = 0;
    for (int round = 0; round < rounds; round++) {
        const int vocab = 2 + below(&seed, round % 2 ? 12 : MAX_VOCAB - 2), n = below(&seed, round % 3 ? 40 : MAX_TEXT);
        const int n_prompt = below(&seed, n + 1), n_path = below(&seed, n - n_prompt + 1);
        const hn_history h = split(text, n, n_prompt, n_path);
        request r;
        hn_sampler s;
        defined_dist d;
        request_make(&r, &seed, vocab, 2);
        if (r.q.n_bias == vocab) continue; /* every token may be forbidden */
        logits_make(&seed, l, vocab, false);
        text_make(&seed, text, n, vocab);
        request_open(&s, &r, vocab);
        defined_dist_open(&d, vocab);
        defined_by(&d, l, &r.q, text, n, n_prompt, r.breaks ? r.breakers : NULL,
                   r.q.xtc_probability > 0 && xtc_expected(&r.q, n));
        if (!d.unsure) {
            dist_spread(&s, l, &h, got);
            if (!dists_agree(got, d.p, vocab))
                fail_msg("round %d: V %d n %d prompt %d path %d bias %d rep %g freq %g pres %g dry %g^%g/%d range %d",
                         round, vocab, n, n_prompt, n_path, r.q.n_bias, r.q.repetition_penalty, r.q.frequency_penalty,
                         r.q.presence_penalty, r.q.dry_multiplier, r.q.dry_base, r.q.dry_allowed_length, r.q.dry_range);
            sure++;
        }
        defined_dist_close(&d);
        hn_sampler_fini(&s);
    }
    assert_true(sure > rounds * 8 / 10);
}

/* The processed logits, from a distribution without cuts at temperature 1: differences to those of token 0. */
static void logits_behind(const hunch_sampling *p, const uint8_t *breakers, const float *l, int vocab,
                          const hn_history *h, double *out) {
    hunch_sampling q = *p;
    double dist[16];
    hn_sampler s;
    q.temperature = q.top_p = 1;
    sampler_open(&s, q, vocab);
    if (breakers) assert_int_equal(hn_sampler_breakers(&s, breakers, NULL), HUNCH_OK);
    dist_spread(&s, l, h, dist);
    for (int i = 0; i < vocab; i++) out[i] = log(dist[i] / dist[0]) + (double)l[0];
    hn_sampler_fini(&s);
}

/* Token 0 never occurs and keeps its logit. */
static void assert_logits(hunch_sampling q, const uint8_t *breakers, const float *l, int vocab, hn_history h,
                          const double *want) {
    double got[16];
    logits_behind(&q, breakers, l, vocab, &h, got);
    for (int i = 0; i < vocab; i++)
        if (!(fabs(got[i] - want[i]) < 1e-5)) fail_msg("token %d: logit %g, expected %g", i, got[i], want[i]);
}

static void test_penalties_by_hand(void **state) {
    (void)state;
    const float l[] = {0, 2, -2, 1, -1};
    const int32_t text[] = {1, 1, 2, 3, 3, 2, 3};
    const hn_history h = split(text, 7, 3, 2); /* prompt 1 1 2, answer 3 3, path 2 3 */
    assert_logits((hunch_sampling){.repetition_penalty = 1.25}, NULL, l, 5, h, (double[]){0, 1.6, -2.5, .8, -1});
    assert_logits((hunch_sampling){.frequency_penalty = .5}, NULL, l, 5, h, (double[]){0, 2, -2.5, -.5, -1});
    assert_logits((hunch_sampling){.presence_penalty = .5}, NULL, l, 5, h, (double[]){0, 2, -2.5, .5, -1});
    assert_logits((hunch_sampling){.presence_penalty = -2, .frequency_penalty = 1, .repetition_penalty = 2}, NULL, l, 5,
                  h, (double[]){0, 1, -3, -.5, -1});
    const hunch_bias bias[] = {{1, -4}, {4, 3}}; /* before the penalties: the biased logit is multiplied */
    assert_logits((hunch_sampling){.bias = bias, .n_bias = 2, .repetition_penalty = 2}, NULL, l, 5, h,
                  (double[]){0, -4, -4, .5, 2});
}

static void test_dry_by_hand(void **state) {
    (void)state;
    const float l[] = {0, 2, -2, 1, -1, 3};
    /* after 1 2 3, which occurred before a 4 and before a 5; 2 3 occurred before a 1 */
    const int32_t text[] = {1, 2, 3, 4, 1, 2, 3, 5, 2, 3, 1, 2, 3};
    const hn_history h = split(text, 13, 0, 1);
    const hunch_sampling q = {.dry_multiplier = .8, .dry_base = 2};
    hunch_sampling r = q;
    assert_logits(q, NULL, l, 6, h, (double[]){0, 2 - .8, -2, 1, -1 - 1.6, 3 - 1.6});
    r.dry_allowed_length = 3;
    assert_logits(r, NULL, l, 6, h, (double[]){0, 2, -2, 1, -1.8, 3 - .8});
    r.dry_allowed_length = 4;
    assert_logits(r, NULL, l, 6, h, (double[]){0, 2, -2, 1, -1, 3});
    r = q;
    r.dry_base = 0; /* 1.75 */
    assert_logits(r, NULL, l, 6, h, (double[]){0, 1.2, -2, 1, -1 - 1.4, 3 - 1.4});
    r = q;
    r.dry_range = 8; /* from the second 2 on */
    assert_logits(r, NULL, l, 6, h, (double[]){0, 1.2, -2, 1, -1, 3 - .8});
    r.dry_range = 6; /* from the 5 on */
    assert_logits(r, NULL, l, 6, h, (double[]){0, 1.2, -2, 1, -1, 3});
    const uint8_t at_1 = 1 << 1, at_3 = 1 << 3, at_4 = 1 << 4;
    assert_logits(q, &at_1, l, 6, h, (double[]){0, 2, -2, 1, -1.8, 2.2}); /* matches end at it, and it may follow any */
    assert_logits(q, &at_3, l, 6, h, (double[]){0, 2, -2, 1, -1, 3});
    assert_logits(q, &at_4, l, 6, h, (double[]){0, 1.2, -2, 1, -1, 1.4});
}

/* One token repeated: repetitions grow with the text until they count as 1,024, in little time. */
static void test_dry_on_long_repetitions(void **state) {
    (void)state;
    enum { LONG = 100000 };
    const float l[] = {0, 1};
    const hunch_sampling q = {.dry_multiplier = .01, .dry_base = 1.005, .dry_allowed_length = 1};
    int32_t *text = calloc(LONG, sizeof *text);
    for (int i = 0; i < LONG; i++) text[i] = 1;
    for (int n = 2; n < LONG; n = n * 5 / 2) {
        const int repeat = n - 1 < DEFINED_LONGEST ? n - 1 : DEFINED_LONGEST;
        assert_logits(q, NULL, l, 2, split(text, n, 0, n / 3), (double[]){0, 1 - .01 * pow(1.005, repeat - 1)});
    }
    free(text);
}

/* ---- bias, and limits ------------------------------------------------------------------------------------------- */

static void test_bias_forbids(void **state) {
    (void)state;
    const float l[] = {5, 4, INFINITY, 3};
    const hunch_bias bias[] = {{2, -INFINITY}, {0, -INFINITY}, {1, -INFINITY}, {3, -INFINITY}};
    for (int temperature = 0; temperature < 2; temperature++) {
        const hn_history h = at(1);
        hn_dist dist;
        hn_sampler s;
        for (int n = 1; n <= 4; n++) {
            sampler_open(&s, (hunch_sampling){.temperature = temperature, .top_p = 1, .bias = bias, .n_bias = n}, 4);
            for (int i = 0; i < 30; i++) {
                const hn_history here = at(i);
                const int32_t token = hn_sampler_draw(&s, l, &here, 2); /* a hint that is only right for the raw logits */
                if (n == 4) assert_int_equal(token, -1);
                for (int k = 0; k < n; k++) assert_true(n == 4 || token != bias[k].token);
            }
            hn_sampler_dist(&s, l, &h, &dist);
            assert_int_equal(dist.n, n == 4 ? 0 : temperature == 0 ? 1 : 4 - n);
            hn_sampler_fini(&s);
        }
    }
}

/* With any parameters numbers stay finite and drawable, and ids beyond the vocabulary are ignored. */
static void same_law(hn_sampler *a, hn_sampler *b, const float *l, const hn_history *h, bool *same) {
    static double p[MAX_VOCAB], q[MAX_VOCAB];
    const int best = a->vocab_ops->argmax(l, a->vocab);
    dist_spread(a, l, h, p);
    dist_spread(b, l, h, q);
    *same = memcmp(p, q, (size_t)a->vocab * sizeof *p) == 0;
    if (!*same) return;
    assert_int_equal(hn_sampler_draw(a, l, h, best), hn_sampler_draw(b, l, h, -1));
    assert_int_equal(hn_sampler_draw(a, l, h, -1), hn_sampler_draw(b, l, h, best));
}

/* Before their position forbidden tokens are as with a bias of -infinity, from it on as without; whatever other processors do. */
static void test_forbidden_until_a_position(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    static int32_t text[MAX_TEXT];
    uint64_t seed = 77;
    int differ = 0;
    for (int round = 0; round < (light() ? 100 : 600); round++) {
        enum { FORBIDDEN = 4 };
        const int vocab = 40 + below(&seed, 200), n = 2 + below(&seed, 60), n_path = below(&seed, n), before = below(&seed, 60);
        const hn_history h = split(text, n, (n - n_path) / 2, n_path);
        int32_t token[FORBIDDEN];
        hunch_bias bias[MAX_BIAS + FORBIDDEN];
        hn_sampler forbids, biased, plain;
        bool same;
        request r;
        request_make(&r, &seed, vocab, 3);
        if (below(&seed, 3) == 0) r.q.temperature = 0;
        logits_make(&seed, l, vocab, true);
        text_make(&seed, text, n, vocab);
        int n_bias = 0;
        for (int i = 0; i < FORBIDDEN; i++) {
            token[i] = i * 9 + below(&seed, 9);
            bias[n_bias++] = (hunch_bias){token[i], -INFINITY};
            if (below(&seed, 2)) l[token[i]] += 8; /* likely otherwise */
        }
        for (int i = 0; i < r.q.n_bias; i++) {
            bool is = false;
            for (int k = 0; k < FORBIDDEN; k++) is |= token[k] == r.bias[i].token;
            if (!is) bias[n_bias++] = r.bias[i];
        }
        request_open(&plain, &r, vocab);
        request_open(&forbids, &r, vocab);
        assert_int_equal(hn_sampler_forbid(&forbids, token, FORBIDDEN, (uint64_t)before, NULL), HUNCH_OK);
        r.q.bias = bias;
        r.q.n_bias = n_bias;
        request_open(&biased, &r, vocab);
        same_law(&forbids, n < before ? &biased : &plain, l, &h, &same);
        assert_true(same);
        assert_true(hn_sampler_takes_best(&forbids, (uint64_t)n) == (n >= before && hn_sampler_takes_best(&plain, 0)));
        same_law(&forbids, n < before ? &plain : &biased, l, &h, &same);
        differ += !same;
        hn_sampler_fini(&plain);
        hn_sampler_fini(&forbids);
        hn_sampler_fini(&biased);
    }
    assert_true(differ > 20);
}

static void test_finite_stays_finite(void **state) {
    (void)state;
    const float l[] = {FLT_MAX, -FLT_MAX, -3e38f, -INFINITY, NAN};
    static const int32_t period[] = {0, 1, 2, 3, 4, 9, -5};
    int32_t text[MAX_TEXT - 1]; /* whole periods: token 0 would be next */
    const hunch_sampling all[] = {{.repetition_penalty = 100}, {.repetition_penalty = 1e-300}, {.frequency_penalty = 2},
                                  {.dry_multiplier = 1000, .dry_base = 100, .dry_allowed_length = 1}};
    for (int i = 0; i < MAX_TEXT - 1; i++) text[i] = period[i % 7];
    for (size_t c = 0; c < sizeof all / sizeof all[0]; c++)
        for (int first = 0; first < 3; first++) {
            hunch_sampling q = all[c];
            hn_sampler s;
            const hn_history h = split(text, MAX_TEXT - 1, 3, 9);
            q.top_p = 1;
            sampler_open(&s, q, 5 - first);
            assert_in_range(hn_sampler_draw(&s, l + first, &h, -1), 0, first == 2 ? 0 : 2 - first);
            hn_sampler_fini(&s);
        }
}

/* ---- histories -------------------------------------------------------------------------------------------------- */

static bool same_dist(hn_sampler *a, hn_sampler *b, const float *l, const hn_history *ha, const hn_history *hb) {
    hn_dist x, y;
    hn_sampler_dist(a, l, ha, &x);
    hn_sampler_dist(b, l, hb, &y);
    return x.n == y.n && x.sum == y.sum && memcmp(x.id, y.id, (size_t)x.n * sizeof *x.id) == 0 &&
           memcmp(x.weight, y.weight, (size_t)x.n * sizeof *x.weight) == 0;
}

/* One sampler goes through a text in rounds, as an engine does: rows after drafted paths of which few are kept. It must
 * always agree, to the bit, with a new sampler whose text is all committed. */
static void test_path_is_like_text(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    int32_t text[MAX_TEXT], joined[MAX_TEXT];
    uint64_t seed = 77;
    for (int round = 0; round < (light() ? 60 : 400); round++) {
        const int vocab = 2 + below(&seed, round % 2 ? 8 : MAX_VOCAB - 2), n_prompt = 1 + below(&seed, 20);
        request r;
        hn_sampler s;
        request_make(&r, &seed, vocab, 2);
        request_open(&s, &r, vocab);
        s.grows = round % 4 < 2; /* as it does here: then it is not compared */
        text_make(&seed, text, MAX_TEXT, vocab);
        for (int n = n_prompt; n < 60; n += below(&seed, 4)) {
            int32_t path[8];
            const hn_history drafted = {text, n, n_prompt, path, below(&seed, 9)};
            logits_make(&seed, l, vocab, false);
            text_make(&seed, path, drafted.n_path, vocab);
            for (int i = 0; i < drafted.n_path && below(&seed, 3); i++) path[i] = text[n + i]; /* a prefix of the text to come */
            memcpy(joined, text, (size_t)n * sizeof *text);
            memcpy(joined + n, path, (size_t)drafted.n_path * sizeof *path);
            const hn_history committed = split(joined, n + drafted.n_path, n_prompt, 0);
            hn_sampler other;
            request_open(&other, &r, vocab);
            assert_true(same_dist(&s, &other, l, &drafted, &committed));
            assert_int_equal(hn_sampler_draw(&s, l, &drafted, -1), hn_sampler_draw(&other, l, &committed, -1));
            hn_sampler_fini(&other);
        }
        hn_sampler_fini(&s);
    }
}

/* At temperature 0 the row's own best token is a hint; with or without it the best processed token is the same. */
static void test_hints(void **state) {
    (void)state;
    static float l[MAX_VOCAB];
    int32_t text[MAX_TEXT], path[8];
    uint64_t seed = 78;
    int moved = 0, none = 0;
    for (int round = 0; round < 3000; round++) {
        const int vocab = 2 + below(&seed, round % 2 ? 8 : MAX_VOCAB - 2), n = 1 + below(&seed, 50);
        request r;
        hn_sampler s;
        request_make(&r, &seed, vocab, 2);
        r.q.temperature = 0;
        request_open(&s, &r, vocab);
        text_make(&seed, text, n, vocab);
        text_make(&seed, path, 8, vocab);
        const hn_history h = {text, n, 1 + below(&seed, n), path, below(&seed, 9)};
        logits_make(&seed, l, vocab, round % 3 == 0);
        for (int i = 0; i < vocab && round % 4 == 0; i++) l[i] = rintf(l[i]); /* ties */
        for (int i = 0; i < vocab && round % 50 == 0; i++) l[i] = i % 2 ? NAN : -INFINITY;
        const int32_t hint = s.vocab_ops->argmax(l, vocab), want = hn_sampler_draw(&s, l, &h, -1);
        assert_int_equal(hn_sampler_draw(&s, l, &h, hint), want);
        assert_int_equal(hn_sampler_draw(&s, l, &h, hint), want); /* no state remains */
        moved += want != hint;
        none += want < 0;
        hn_sampler_fini(&s);
    }
    assert_true(moved > 100 && none > 20);
}

/* Texts that shrink, change in place, are exchanged or change the prompt: earlier counts have no effect, nor if there is no
 * memory for the copy of the text. */
static void test_any_text_may_follow(void **state) {
    (void)state;
    float l[8];
    int32_t text[2][MAX_TEXT];
    uint64_t seed = 78;
    for (int round = 0; round < (light() ? 20 : 200); round++) {
        request r;
        hn_sampler s;
        request_make(&r, &seed, 8, 1);
        request_open(&s, &r, 8);
        for (int i = 0; i < 2; i++) text_make(&seed, text[i], MAX_TEXT, 8);
        logits_make(&seed, l, 8, false);
        for (int call = 0; call < 60; call++) {
            const int n = below(&seed, 1 + below(&seed, MAX_TEXT)), n_prompt = below(&seed, 2) ? n / 2 : 3;
            const hn_history h = {text[below(&seed, 2)], n, n_prompt, text[0], below(&seed, 5)};
            if (n) text[0][below(&seed, n)] = below(&seed, 8);
            hn_sampler other;
            request_open(&other, &r, 8);
            if (round % 3 == 0) hn_fault_arm(HN_FAULT_ALLOC, 0, true);
            assert_true(same_dist(&s, &other, l, &h, &h));
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            hn_sampler_fini(&other);
        }
        hn_sampler_fini(&s);
    }
}

/* ---- the statistic that detects wrong histories ----------------------------------------------------------------- */

enum { V = 4, STEPS = 3, CELLS = V * V * V };
typedef enum mutant { RIGHT, LAST_ROW_ONLY, ROWS_SHARE, PATH_TWICE, PATH_REVERSED, MUTANTS } mutant;

/* The history of row `step` after the answer so far: the root's text, then the path. */
static hn_history row_history(mutant m, const int32_t *text, int n, int n_prompt, const int32_t *path, int step,
                              int32_t *scratch) {
    hn_history h = {text, n, n_prompt, path, step};
    if (m == LAST_ROW_ONLY && step < STEPS - 1) h.n_path = 0; /* drafted rows ignore their path */
    if (m == ROWS_SHARE && step > 0) h.path = scratch, scratch[0] = (path[0] + 1) % V, scratch[1] = path[0];
    if (m == PATH_TWICE && step > 0) {
        memcpy(scratch, path, (size_t)step * sizeof *path);
        memcpy(scratch + step, path, (size_t)step * sizeof *path);
        h.path = scratch;
        h.n_path = 2 * step;
    }
    if (m == PATH_REVERSED && step == 2) h.path = scratch, scratch[0] = path[1], scratch[1] = path[0];
    return h;
}

/* Logits of a small model: of the last token alone. */
static void toy_logits(int32_t last, float *l) {
    for (int i = 0; i < V; i++) l[i] = (float)((i * 5 + last * 3) % 7) * .3f;
}

/* Joint probabilities of the next STEPS tokens, by the definition. */
static void joint_dist(const hunch_sampling *q, const int32_t *prefix, int n, int n_prompt, double *cell) {
    int32_t text[64];
    float l[V];
    memcpy(text, prefix, (size_t)n * sizeof *text);
    for (int c = 0; c < CELLS; c++) {
        const int token[STEPS] = {c / (V * V), c / V % V, c % V};
        cell[c] = 1;
        for (int step = 0; step < STEPS; step++) {
            defined_dist d;
            defined_dist_open(&d, V);
            toy_logits(text[n + step - 1], l);
            defined_by(&d, l, q, text, n + step, n_prompt, NULL, false);
            cell[c] *= d.p[token[step]];
            defined_dist_close(&d);
            text[n + step] = token[step];
        }
    }
}

/* Draws STEPS tokens many times, each from the row after the ones before it. */
static bool draws_fit(hunch_sampling q, mutant m) {
    enum { N = 30000 };
    const int32_t text[] = {0, 1, 2, 1, 2, 0, 1, 2}; /* no 3: its first occurrence counts too */
    const int n = 8, n_prompt = 3;
    double cell[CELLS];
    long counts[CELLS] = {0};
    float l[V];
    hn_sampler s;
    joint_dist(&q, text, n, n_prompt, cell);
    sampler_open(&s, q, V);
    for (int i = 0; i < N; i++) {
        int32_t path[STEPS], scratch[2 * STEPS];
        for (int step = 0; step < STEPS; step++) {
            s.params.seed = (uint64_t)(i * STEPS + step); /* new noise, though a mutant may take the same position twice */
            const hn_history h = row_history(m, text, n, n_prompt, path, step, scratch);
            toy_logits(step ? path[step - 1] : text[n - 1], l);
            path[step] = hn_sampler_draw(&s, l, &h, -1);
        }
        counts[(path[0] * V + path[1]) * V + path[2]]++;
    }
    hn_sampler_fini(&s);
    return chi_square_fits(counts, cell, CELLS, N);
}

static void test_wrong_histories_are_found(void **state) {
    (void)state;
    const struct {
        hunch_sampling q;
        bool found[MUTANTS]; /* mutants that change this distribution */
    } cases[] = {
        {{.repetition_penalty = 1.6}, {false, true, true, false, false}},
        {{.presence_penalty = 1}, {false, true, true, false, false}},
        {{.frequency_penalty = .7}, {false, true, true, true, false}},
        {{.dry_multiplier = .5, .dry_allowed_length = 1}, {false, true, true, true, true}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int m = 0; m < MUTANTS; m++) {
            hunch_sampling q = cases[c].q;
            q.temperature = q.top_p = 1;
            if (m != RIGHT && !cases[c].found[m]) continue;
            if (draws_fit(q, (mutant)m) == cases[c].found[m])
                fail_msg("case %zu: mutant %d is %s", c, m,
                         cases[c].found[m] ? "not found" : "no mutant, yet rejected");
        }
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void test_no_memory(void **state) {
    (void)state;
    const hunch_bias bias[] = {{1, 1}, {2, -1}};
    const hunch_sampling q = {.temperature = 1, .top_p = 1, .typical_p = .5, .bias = bias, .n_bias = 2,
                              .presence_penalty = 1, .dry_multiplier = 1};
    const uint8_t breakers[2] = {4, 1};
    hn_sampler s;
    int after = 0;
    for (;; after++) {
        hunch_error err = {0};
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        const hunch_status st = hn_sampler_init(&s, &q, 10, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (st == HUNCH_OK) break;
        assert_int_equal(st, HUNCH_NO_MEMORY);
        assert_true(err.message[0]);
    }
    assert_true(after > 5);
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    assert_int_equal(hn_sampler_breakers(&s, breakers, NULL), HUNCH_NO_MEMORY);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_int_equal(hn_sampler_breakers(&s, breakers, NULL), HUNCH_OK);
    assert_int_equal(hn_sampler_breakers(&s, breakers, NULL), HUNCH_OK); /* replaces */
    hn_sampler_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_penalties_by_hand),
        cmocka_unit_test(test_dry_by_hand),
        cmocka_unit_test(test_dry_on_long_repetitions),
        cmocka_unit_test(test_bias_forbids),
        cmocka_unit_test(test_forbidden_until_a_position),
        cmocka_unit_test(test_finite_stays_finite),
        cmocka_unit_test(test_path_is_like_text),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_any_text_may_follow),
        cmocka_unit_test(test_wrong_histories_are_found),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
