/* SPDX-License-Identifier: Apache-2.0 */
/* match_law_test.c - sampling with drafts, through the real engine on a real tiny model: the joint law of the first tokens
 * equals the model's own, enumerated; the same seed gives the same text with and without drafting; and a verifier that is
 * wrong on purpose is found out by the same statistic (verification.md T1, T2, T8 in our own words). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "fixture.h"
#include "sample/sampler.h"

enum { TOKENS = 3, TOP = 3, CELLS = 27, CONTEXT = 64 };
static const hunch_token prompt[] = {1, 403, 407, 261, 378};
enum { N_PROMPT = sizeof prompt / sizeof *prompt };
static const hunch_sampling law_params = {.temperature = 1.3, .top_k = TOP, .top_p = 1, .min_p = 0, .seed = 0};

static hunch_model *model;

/* The enumerated tree: at each prefix the TOP tokens of the law and their probabilities. */
typedef struct branch {
    hunch_token token[TOP];
    double p[TOP];
} branch;
static branch first, second[TOP], third[TOP][TOP];

typedef struct last_row {
    float *logits;
    size_t want;
} last_row;

static void keep_last(void *user, size_t position, const float *logits, int vocab) {
    last_row *l = user;
    if (position == l->want) memcpy(l->logits, logits, (size_t)vocab * sizeof(float));
}

static branch law_after(hunch_engine *e, const hunch_token *more, int n) {
    hunch_model_info info;
    hunch_token ids[N_PROMPT + TOKENS];
    branch b = {{0}, {0}};
    hn_sampler s;
    int k = 0;
    hunch_model_get_info(model, &info);
    double *p = calloc((size_t)info.vocab, sizeof *p);
    last_row l = {calloc((size_t)info.vocab, sizeof(float)), (size_t)(N_PROMPT + n - 1)};
    memcpy(ids, prompt, sizeof prompt);
    for (int i = 0; i < n; i++) ids[N_PROMPT + i] = more[i];
    must(hunch_evaluate(e, ids, (size_t)(N_PROMPT + n), keep_last, &l, err));
    must(hn_sampler_init(&s, &law_params, info.vocab, err));
    hn_sampler_law(&s, l.logits, p);
    for (int i = 0; i < info.vocab; i++)
        if (p[i] > 0) {
            assert_true(k < TOP);
            b.token[k] = i;
            b.p[k++] = p[i];
        }
    assert_int_equal(k, TOP);
    hn_sampler_fini(&s);
    free(l.logits);
    free(p);
    return b;
}

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
    first = law_after(e, NULL, 0);
    for (int i = 0; i < TOP; i++) {
        second[i] = law_after(e, &first.token[i], 1);
        for (int k = 0; k < TOP; k++)
            third[i][k] = law_after(e, (hunch_token[]){first.token[i], second[i].token[k]}, 2);
    }
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static int index_of(const branch *b, hunch_token t) {
    for (int i = 0; i < TOP; i++)
        if (b->token[i] == t) return i;
    fail_msg("token %d is outside the law's support", t);
    return -1;
}

static int cell_of(const hunch_token *t) {
    const int i = index_of(&first, t[0]), k = index_of(&second[i], t[1]);
    return (i * TOP + k) * TOP + index_of(&third[i][k], t[2]);
}

static double cell_p(int cell) {
    const int i = cell / 9, k = cell / 3 % 3, j = cell % 3;
    return first.p[i] * second[i].p[k] * third[i][k].p[j];
}

/* Pearson's statistic with cells of small expectation merged; *df is the number of cells less one. */
static double chi_square(const int *count, int n, int *df) {
    double x = 0, rest = 0, rest_seen = 0;
    *df = -1;
    for (int c = 0; c < CELLS; c++) {
        const double want = n * cell_p(c);
        if (want < 8) {
            rest += want;
            rest_seen += count[c];
            continue;
        }
        x += (count[c] - want) * (count[c] - want) / want;
        ++*df;
    }
    if (rest >= 8) {
        x += (rest_seen - rest) * (rest_seen - rest) / rest;
        ++*df;
    }
    return x;
}

/* About the 1 - 1e-5 point of chi-square (Wilson and Hilferty). */
static double bound(int df) {
    const double z = 4.2649, a = 2.0 / (9.0 * df), c = 1 - a + z * sqrt(a);
    return df * c * c * c;
}

static void sample_engine(const char *draft, int n, int *count) {
    hunch_engine *e = open_engine(model, draft, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT),
                 *plain = open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
    uint64_t accepted = 0;
    for (int i = 0; i < n; i++) {
        answer a = {0}, b = {0};
        hunch_request r;
        hunch_request_defaults(&r, model);
        r.prompt = prompt;
        r.n_prompt = N_PROMPT;
        r.max_tokens = TOKENS + 3;
        r.ignore_eos = true;
        r.sampling = law_params;
        r.sampling.seed = (uint64_t)i * 7919 + 17;
        run_requests(e, &r, 1, false, &a);
        if (i % 16 == 0) {
            run_requests(plain, &r, 1, false, &b);
            assert_same(&b, &a, draft ? draft : "none"); /* a seed means the same text */
            answer_free(&b);
        }
        count[cell_of(a.token)]++;
        accepted += a.accepted;
        answer_free(&a);
    }
    if (draft) assert_true(accepted > (uint64_t)n / 4);
    hunch_engine_close(&e);
    hunch_engine_close(&plain);
}

static void check_law(const char *draft) {
    int count[CELLS] = {0}, df;
    const int n = light() ? 800 : 5000;
    sample_engine(draft, n, count);
    const double x = chi_square(count, n, &df);
    if (!(x < bound(df)))
        fail_msg("%s: chi-square %.1f with %d degrees of freedom, bound %.1f", draft ? draft : "none", x, df,
                 bound(df));
}

static void test_plain(void **state) {
    (void)state;
    check_law(NULL);
}
static void test_chain(void **state) {
    (void)state;
    check_law("forced,accept=0.6,depth=4,seed=5");
}
static void test_tree(void **state) {
    (void)state;
    check_law("forced,accept=0.5,depth=4,tree=random,seed=6");
}
static void test_wide(void **state) {
    (void)state;
    check_law("forced,accept=0.7,depth=3,width=3,seed=7");
}

/* A verifier that keeps the draft whenever the target finds it likely enough: a popular mistake, and a biased one. */
static hunch_token wrong_draw(const branch *b, uint64_t *rng) {
    const hunch_token draft = b->token[hn_splitmix(rng) % TOP];
    if (b->p[index_of(b, draft)] > 0.25) return draft;
    double u = (double)(hn_splitmix(rng) >> 11) * 0x1p-53;
    for (int i = 0; i < TOP - 1; i++) {
        if (u < b->p[i]) return b->token[i];
        u -= b->p[i];
    }
    return b->token[TOP - 1];
}

static void test_wrong_verifier_is_rejected(void **state) {
    (void)state;
    int count[CELLS] = {0}, df;
    const int n = 5000;
    uint64_t rng = 99;
    for (int s = 0; s < n; s++) {
        hunch_token t[TOKENS];
        t[0] = wrong_draw(&first, &rng);
        const int i = index_of(&first, t[0]);
        t[1] = wrong_draw(&second[i], &rng);
        t[2] = wrong_draw(&third[i][index_of(&second[i], t[1])], &rng);
        count[cell_of(t)]++;
    }
    const double x = chi_square(count, n, &df);
    if (x < bound(df)) fail_msg("the biased verifier passes: chi-square %.1f, bound %.1f", x, bound(df));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_chain),
                                       cmocka_unit_test(test_tree), cmocka_unit_test(test_wide),
                                       cmocka_unit_test(test_wrong_verifier_is_rejected)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
