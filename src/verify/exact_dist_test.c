/* SPDX-License-Identifier: Apache-2.0 */
/* exact_dist_test.c - the distribution of the tokens that each rule emits over two rounds, enumerated with the real code, against the
 * product of the target's own distributions (verification.md T1, T7). Rules that are wrong on purpose: wrong_rules_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample/chi_square.h"
#include "verify/toy_for_tests.h"

static const hunch_sampling warm = {.temperature = 1, .top_p = 1},
                            penal = {.temperature = .9, .top_p = 1, .presence_penalty = .8, .frequency_penalty = .3},
                            narrow = {.temperature = 1.2, .top_p = 1, .top_k = 2, .repetition_penalty = 1.3};
static const hunch_sampling *const params[] = {&warm, &penal, &narrow};

static void check(const char *what, toy *y) {
    const double off = toy_distance(y);
    if (!(off < 1e-12))
        fail_msg("%s: V=%d, kind %d, salt %d: off by %g", what, y->m.vocab, (int)y->first.kind, (int)y->m.salt, off);
}

/* The rounds of one shape over targets, parameters and kinds of q. */
static void check_all(const char *what, hn_rule rule, const toy_drafter *first, const toy_drafter *second, int vocab,
                      int tokens) {
    for (int kind = TOY_Q_CONTEXT; kind <= TOY_Q_TARGET; kind++)
        for (int i = 0; i < (toy_light() ? 1 : 3); i++) {
            toy y = {.m = {.vocab = vocab, .salt = (uint64_t)(10 * kind + i)},
                     .params = *params[(kind + i) % 3],
                     .rule = rule,
                     .first = *first,
                     .second = *second,
                     .tokens = tokens,
                     .rounds = 2};
            y.first.kind = (toy_q)kind;
            y.second.kind = (toy_q)((kind + i) % 4);
            check(what, &y);
        }
}

static void check_chain(const char *what, hn_rule rule) {
    const toy_drafter three = {.branch = {1, 1, 1}}, two = {.branch = {1, 1}}, one = {.branch = {1}};
    check_all(what, rule, &three, &three, 2, 5);
    check_all(what, rule, &three, &two, 3, 4);
    check_all(what, rule, &two, &one, 4, 3);
}

/* README: "`--verify ratio`, `block` and `traversal` keep the distribution of the model exactly." */
static void test_ratio_chain(void **state) {
    (void)state;
    check_chain("ratio", HN_RULE_RATIO);
}
static void test_block(void **state) {
    (void)state;
    check_chain("block", HN_RULE_BLOCK);
}
static void test_traversal_chain(void **state) {
    (void)state;
    check_chain("traversal", HN_RULE_TRAVERSAL);
}

static void check_trees(const char *what, hn_rule rule, bool without) {
    const toy_drafter bush = {.branch = {2, 2}, .without = without}, tail = {.branch = {2, 1, 1}, .without = without},
                      wide = {.branch = {3}, .without = without}, two = {.branch = {2}, .without = without},
                      late = {.branch = {1, 2}, .without = without};
    check_all(what, rule, &bush, &bush, 2, 4);
    check_all(what, rule, &tail, &bush, 2, 4);
    check_all(what, rule, &wide, &two, 3, 2);
    check_all(what, rule, &late, &wide, 3, 2);
    check_all(what, rule, &two, &late, 4, 2);
    if (!toy_light()) check_all(what, rule, &bush, &two, 3, 3);
    if (!toy_light()) check_all(what, rule, &tail, &two, 3, 3);
}

static void test_ratio_with(void **state) {
    (void)state;
    check_trees("ratio, with replacement", HN_RULE_RATIO, false);
}
static void test_ratio_without(void **state) {
    (void)state;
    check_trees("ratio, without replacement", HN_RULE_RATIO, true);
}
static void test_traversal_with(void **state) {
    (void)state;
    check_trees("traversal, with replacement", HN_RULE_TRAVERSAL, false);
}
static void test_traversal_without(void **state) {
    (void)state;
    check_trees("traversal, without replacement", HN_RULE_TRAVERSAL, true);
}

/* Drafters with some of the ids only: the target draws others too, and with top-k it lacks some of theirs. */
static void check_reduced(const char *what, hn_rule rule, const int *branch, const int *later, bool without, int vocab,
                          int tokens) {
    static const unsigned have[] = {1 << 1, 1 << 0 | 1 << 2, 1 << 1 | 1 << 3, 15};
    for (int i = 0; i < 4; i++) {
        toy_drafter first = {.without = without, .only = have[i]},
                    second = {.without = without, .only = have[(i + 1) % 4]};
        for (int d = 0; d < 3; d++) first.branch[d] = branch[d], second.branch[d] = later[d];
        check_all(what, rule, &first, &second, vocab, tokens);
    }
}

static void test_reduced_vocabulary(void **state) {
    (void)state;
    static const int chain[] = {1, 1, 1}, pair[] = {1, 1, 0}, bush[] = {2, 2, 0}, wide[] = {3, 0, 0};
    static const hn_rule any[] = {HN_RULE_MATCH, HN_RULE_RATIO, HN_RULE_BLOCK, HN_RULE_TRAVERSAL};
    for (int i = 0; i < 4; i++) {
        check_reduced("a chain of a reduced vocabulary", any[i], chain, pair, false, 3, 4);
        check_reduced("a chain of a reduced vocabulary", any[i], pair, pair, false, 4, 3);
    }
    static const hn_rule trees[] = {HN_RULE_MATCH, HN_RULE_RATIO, HN_RULE_TRAVERSAL};
    for (int i = 0; i < 3; i++)
        for (int without = 0; without < 2; without++) {
            check_reduced("a tree of a reduced vocabulary", trees[i], wide, bush, without, 3, 2);
            check_reduced("a tree of a reduced vocabulary", trees[i], bush, wide, without, 4, 2);
        }
}

static void test_points(void **state) {
    (void)state;
    const toy_drafter bush = {.branch = {2, 2, 1}, .one_hot = true}, all = {.branch = {4, 3}, .one_hot = true};
    for (int vocab = 2; vocab <= 4; vocab++) {
        check_all("ratio, one-hot", HN_RULE_RATIO, &bush, &all, vocab, vocab < 4 ? 4 : 3);
        check_all("match, one-hot", HN_RULE_MATCH, &all, &bush, vocab, vocab < 4 ? 4 : 3);
    }
}

/* A distribution that is random itself: XTC acts at a position or not, the same in every round. Plain sampling is enumerated too, as
 * it is no product of fixed distributions. */
static void test_xtc(void **state) {
    (void)state;
    static const hn_rule rules[] = {HN_RULE_MATCH, HN_RULE_RATIO, HN_RULE_BLOCK, HN_RULE_TRAVERSAL};
    for (int i = 0; i < 4; i++) {
        toy y = {.m = {.vocab = 3, .salt = 5},
                 .params = warm,
                 .rule = rules[i],
                 .tokens = 3,
                 .rounds = 3,
                 .first = {.branch = {1, 1}},
                 .second = {.branch = {1}}};
        toy plain = y;
        double drafted[TOY_CELLS], want[TOY_CELLS];
        y.params.xtc_threshold = plain.params.xtc_threshold = .2;
        y.params.xtc_probability = plain.params.xtc_probability = .4;
        plain.first.branch[0] = plain.second.branch[0] = 0;
        toy_joint(&y, drafted);
        toy_joint(&plain, want);
        assert_true(plain.accepted == 0 && y.accepted > 0);
        for (int c = 0; c < toy_cells(&y); c++) assert_true(fabs(drafted[c] - want[c]) < 1e-12);
        plain.params.xtc_probability = 0;
        assert_true(toy_distance(&plain) < 1e-12);
        toy_joint(&plain, want);
        double off = 0;
        for (int c = 0; c < toy_cells(&y); c++) off = fmax(off, fabs(drafted[c] - want[c]));
        assert_true(off > .01); /* XTC did act */
    }
}

/* The same with the real random numbers: the joint distribution of the first tokens by counting, over seeds. */
static void test_counted(void **state) {
    (void)state;
    enum { SEEDS = 20000, V = 3 };
    static const hn_rule rules[] = {HN_RULE_MATCH,     HN_RULE_RATIO, HN_RULE_BLOCK,
                                    HN_RULE_TRAVERSAL, HN_RULE_RATIO, HN_RULE_TRAVERSAL};
    for (int i = 0; i < 6; i++) {
        toy y = {.m = {.vocab = V, .salt = (uint64_t)i},
                 .params = penal,
                 .rule = rules[i],
                 .tokens = 3,
                 .rounds = 3,
                 .first = {.branch = {1, 1, 1}}};
        if (i > 3) y.first = (toy_drafter){.branch = {2, 2, 1}, .without = i == 4};
        double product[TOY_CELLS];
        long counts[V * V * V] = {0};
        hn_sampler s;
        hn_verifier *w = NULL;
        toy_product(&y, product);
        assert_int_equal(hn_sampler_init(&s, &y.params, V, NULL), HUNCH_OK);
        assert_int_equal(hn_verifier_open(&w, V, NULL), HUNCH_OK);
        for (int seed = 0; seed < (toy_light() ? SEEDS / 10 : SEEDS); seed++) {
            toy_pass p = {.m = &y.m, .n = TOY_PROMPT};
            memcpy(p.text, toy_prompt, sizeof toy_prompt);
            s.params.seed = (uint64_t)seed + 1000000;
            while (p.n < TOY_PROMPT + 3) toy_round(&y, w, &s, &p, &y.first);
            counts[(p.text[TOY_PROMPT] * V + p.text[TOY_PROMPT + 1]) * V + p.text[TOY_PROMPT + 2]]++;
        }
        hn_verifier_close(&w);
        hn_sampler_fini(&s);
        if (!chi_square_fits(counts, product, V * V * V, toy_light() ? SEEDS / 10 : SEEDS))
            fail_msg("rule %s, case %d", hn_rule_name(rules[i]), i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ratio_chain),
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_traversal_chain),
        cmocka_unit_test(test_ratio_with),
        cmocka_unit_test(test_ratio_without),
        cmocka_unit_test(test_traversal_with),
        cmocka_unit_test(test_traversal_without),
        cmocka_unit_test(test_reduced_vocabulary),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_xtc),
        cmocka_unit_test(test_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
