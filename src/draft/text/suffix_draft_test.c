/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_draft_test.c - golden vectors of suffix decoding, and drafts on random texts compared with recounting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/random.h"
#include "draft/text/suffix_draft.h"
#include "fixture.h"
#include "suffix_naive.h"

static void text_put(hn_suffix_tree *t, const int32_t *token, int n) {
    assert_true(hn_suffix_put(t, token, (uint32_t)n));
    assert_true(hn_suffix_count(t));
}

/* As a drafter does: after the tree's own text, or after one that is not stored. */
static void best(const hn_suffix_tree *t, const hn_suffix_rules *r, const int32_t *text, int n, bool own,
                 hn_suffix_draft *out) {
    hn_suffix_best(t, r, own ? NULL : text + n, (n < t->window ? n : t->window) - 1, out);
}

/* ---- golden vectors: ties go to the child that was inserted first --------------------------------------------------- */

#define A {1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 11
#define B {7, 8, 9, 7, 8, 1, 7, 8, 9, 2, 7, 8}, 12
#define C {5, 6, 5, 6, 5, 6, 5}, 7
#define THIRD (1. / 3)

static const struct {
    int32_t text[12];
    int n;
    bool tree;
    double factor;
    int32_t token[8];
    int len;
    int16_t parent[8];
    double p[8];
    int match; /* 0: not given */
    double score;
} OWN[] = {
    {A, false, 1, {4, 1, 2}, 3, {-1, 0, 1}, {THIRD, THIRD, THIRD}, 3, 1},
    {B, false, 1, {9, 7}, 2, {-1, 0}, {.5, .25}, 2, .75},
    {C, false, 1, {6, 5, 6}, 3, {-1, 0, 1}, {2 * THIRD, 2 * THIRD, THIRD}, 3, 5. / 3},
    {A, false, 2, {4, 1, 2, 3, 5}, 5, {-1, 0, 1, 2, 3}, {THIRD, THIRD, THIRD, THIRD, THIRD}, 3, 5. / 3},
    {B, false, 2, {9, 7, 8, 1}, 4, {-1, 0, 1, 2}, {.5, .25, .25, .25}, 0, 1.25},
    {C, false, 2, {6, 5, 6, 5}, 4, {-1, 0, 1, 2}, {2 * THIRD, 2 * THIRD, THIRD, THIRD}, 3, 2},
    {A, true, 1, {4, 5, 1}, 3, {-1, -1, 0}, {THIRD, THIRD, THIRD}, 3, 1},
    {B, true, 1, {9, 1}, 2, {-1, -1}, {.5, .25}, 2, .75},
    {C, true, 1, {6, 5, 6}, 3, {-1, 0, 1}, {2 * THIRD, 2 * THIRD, THIRD}, 3, 5. / 3},
};

static void test_golden_own_text(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof OWN / sizeof OWN[0]; i++) {
        const hn_suffix_rules r = {.tree = OWN[i].tree, .depth = 16, .factor = OWN[i].factor, .min_p = .1};
        hn_suffix_tree t;
        hn_suffix_draft d;
        hn_suffix_init(&t, 8, 100);
        text_put(&t, OWN[i].text, OWN[i].n);
        best(&t, &r, OWN[i].text, OWN[i].n, true, &d);
        assert_int_equal(d.n, OWN[i].len);
        if (OWN[i].match) assert_int_equal(d.match, OWN[i].match);
        assert_float_equal(d.score, OWN[i].score, 1e-12);
        for (int k = 0; k < d.n; k++) {
            assert_int_equal(d.token[k], OWN[i].token[k]);
            assert_int_equal(d.parent[k], OWN[i].parent[k]);
            assert_float_equal(d.p[k], OWN[i].p[k], 1e-12);
        }
        hn_suffix_fini(&t);
    }
}

static void test_golden_earlier_texts(void **state) {
    (void)state;
    static const struct {
        int32_t text[4];
        int n;
        bool tree;
        int32_t token[3];
        double p[3];
        int len, match;
    } cases[] = {
        {{2, 3}, 2, false, {4}, {1}, 1, 1},
        {{1, 2, 3}, 3, false, {4, 5}, {1, .5}, 2, 2},
        {{9, 2, 3, 4}, 4, false, {5, 6}, {.5, .5}, 2, 3},
        {{9, 2, 3, 4}, 4, true, {5, 7, 6}, {.5, .5, .5}, 3, 3},
    };
    hn_suffix_tree t;
    hn_suffix_init(&t, 8, 100);
    text_put(&t, (int32_t[]){1, 2, 3, 4, 5, 6}, 6);
    hn_suffix_break(&t);
    text_put(&t, (int32_t[]){9, 2, 3, 4, 7, 8}, 6);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const hn_suffix_rules r = {.tree = cases[i].tree, .depth = 8, .factor = 1, .min_p = .1};
        hn_suffix_draft d;
        best(&t, &r, cases[i].text, cases[i].n, false, &d);
        assert_int_equal(d.n, cases[i].len);
        assert_int_equal(d.match, cases[i].match);
        assert_memory_equal(d.token, cases[i].token, (size_t)d.n * sizeof *d.token);
        for (int k = 0; k < d.n; k++) assert_float_equal(d.p[k], cases[i].p[k], 1e-12);
    }
    hn_suffix_fini(&t);
}

/* ---- recounting ------------------------------------------------------------------------------------------------------- */

static hn_suffix_rules rules_make(uint64_t *seed) {
    static const double factor[] = {1, 1, 2, .5, 0, .7}, offset[] = {0, 0, 1.5, -1, .1},
                        min_p[] = {.1, .1, 0, .3, .5, 1};
    return (hn_suffix_rules){.tree = hn_splitmix(seed) % 2,
                             .depth = 1 + (int)(hn_splitmix(seed) % 16),
                             .factor = factor[hn_splitmix(seed) % 6],
                             .offset = offset[hn_splitmix(seed) % 5],
                             .min_p = min_p[hn_splitmix(seed) % 6]};
}

static void text_remove(hn_suffix_tree *t, naive_texts *x) {
    uint32_t end = t->head + (uint32_t)x->text[0].n;
    hn_suffix_remove(t, t->head, end, end);
    hn_suffix_release(t, end);
    x->n--;
    memmove(&x->text[0], &x->text[1], (size_t)x->n * sizeof x->text[0]);
}

/* 1 to 4 texts, some of them removed again; drafts after the last of them and after a text that is not stored. */
static void check_case(uint64_t *seed) {
    static naive_texts x;
    uint64_t vocab = 2 + hn_splitmix(seed) % 4;
    const hn_suffix_rules r = rules_make(seed);
    hn_suffix_tree t;
    x.window = 4 + (int)(hn_splitmix(seed) % 13);
    x.n = 0;
    hn_suffix_init(&t, x.window, 1000);
    for (int k = 1 + (int)(hn_splitmix(seed) % 4); k > 0; k--) {
        int n = 1 + (int)(hn_splitmix(seed) % 40);
        hn_suffix_break(&t);
        x.text[x.n].n = n;
        for (int i = 0; i < n; i++) x.text[x.n].token[i] = (int32_t)(hn_splitmix(seed) % vocab);
        text_put(&t, x.text[x.n].token, n);
        x.n++;
        if (x.n > 1 && hn_splitmix(seed) % 3 == 0) text_remove(&t, &x);
    }
    for (int own = 0; own < 2; own++) {
        int32_t other[NAIVE_TOKENS], *text = x.text[x.n - 1].token;
        int n = x.text[x.n - 1].n;
        if (!own) {
            text = other;
            n = 1 + (int)(hn_splitmix(seed) % 20);
            for (int i = 0; i < n; i++) text[i] = (int32_t)(hn_splitmix(seed) % vocab);
        }
        hn_suffix_draft d, want;
        best(&t, &r, text, n, own, &d);
        naive_best(&x, &r, text, n, &want);
        assert_true(naive_same(&d, &want));
        assert_true(d.n <= r.depth);
    }
    hn_suffix_fini(&t);
}

static void test_oracle(void **state) {
    (void)state;
    uint64_t seed = 17;
    for (int i = 0; i < (light() ? 500 : 4000); i++) check_case(&seed);
}

/* 7 * .7 + .1 is slightly less than 5 in floating point, but counts as 5. */
static void test_rounding(void **state) {
    (void)state;
    static const int32_t text[] = {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15, 16, 1, 2, 3, 4, 5, 6, 7};
    const hn_suffix_rules r = {.depth = 16, .factor = .7, .offset = .1, .min_p = .1};
    hn_suffix_tree t;
    hn_suffix_draft d;
    hn_suffix_init(&t, 16, 100);
    text_put(&t, text, 20);
    best(&t, &r, text, 20, true, &d);
    assert_int_equal(d.match, 7);
    assert_int_equal(d.n, 5);
    hn_suffix_fini(&t);
}

/* The largest possible draft: a period that continues. */
static void test_widest(void **state) {
    (void)state;
    int32_t text[400];
    for (int i = 0; i < 400; i++) text[i] = i % 7;
    for (int tree = 0; tree < 2; tree++) {
        const hn_suffix_rules r = {.tree = tree, .depth = HN_SUFFIX_DEPTH, .factor = 64, .offset = 64, .min_p = 0};
        hn_suffix_tree t;
        hn_suffix_draft d;
        hn_suffix_init(&t, HN_SUFFIX_WINDOW, 400);
        text_put(&t, text, 400);
        best(&t, &r, text, 400, true, &d);
        assert_int_equal(d.n, HN_SUFFIX_DEPTH);
        for (int i = 0; i < d.n; i++) assert_int_equal(d.token[i], (400 + i) % 7);
        hn_suffix_fini(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_own_text), cmocka_unit_test(test_golden_earlier_texts),
        cmocka_unit_test(test_oracle),          cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_widest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
