/* SPDX-License-Identifier: Apache-2.0 */
/* verify_trees_test.c - many texts' trees under every rule: the verdicts by any number of workers are those of one text after the other;
 * a text without memory, or without a token to draw, fails alone, and always the same one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "verify/toy_for_tests.h"

enum { TEXTS = 24, V = TOY_VOCAB };

/* The texts of one round. */
typedef struct texts {
    hn_sampler sampler[TEXTS];
    toy_pass pass[TEXTS];
    toy_drafter drafter[TEXTS];
    hn_tree tree[TEXTS];
    hn_verdict verdict[TEXTS];
    hn_verify_job job[TEXTS], *list[TEXTS];
} texts;

static const toy_model target = {.vocab = V, .salt = 5};

/* Text i: rule, temperature and shape differ, if they are not given (rule < 0). */
static texts *texts_make(int rule) {
    texts *x = calloc(1, sizeof *x);
    for (int i = 0; i < TEXTS; i++) {
        const hn_rule r = rule < 0 ? (hn_rule)(i % (HN_RULE_TOP_M + 1)) : (hn_rule)rule;
        const bool chain = r == HN_RULE_BLOCK;
        const hunch_sampling params = {.temperature = r == HN_RULE_GREEDY ? 0 : i % 3 ? 1 : .7, .top_p = i % 2 ? 1 : .9,
                                       .top_k = i % 5 == 3 ? 3 : 0, .repetition_penalty = i % 4 ? 0 : 1.3, .seed = (uint64_t)i};
        x->pass[i] = (toy_pass){.m = &target, .t = &x->tree[i], .n = TOY_PROMPT + 3};
        for (int k = 0; k < x->pass[i].n; k++) x->pass[i].text[k] = (k * 3 + i) % V;
        x->drafter[i] = (toy_drafter){.branch = {chain ? 1 : 2, chain ? 1 : 2, 1, i % 2}, .without = !chain, .kind = TOY_Q_CONTEXT};
        assert_int_equal(hn_sampler_init(&x->sampler[i], &params, V, NULL), HUNCH_OK);
        hn_tree_reset(&x->tree[i], x->pass[i].text[x->pass[i].n - 1], HN_TREE_ROWS);
        toy_draft(&x->drafter[i], &x->sampler[i], &x->pass[i], &x->tree[i]);
        x->job[i] = (hn_verify_job){.tree = &x->tree[i], .how = toy_verification(&x->pass[i], r, &x->sampler[i]), .out = &x->verdict[i],
                                    .whole_rows = r != HN_RULE_GREEDY || i % 2};
        x->job[i].how.a = r == HN_RULE_TOP_M ? 2 : .5;
        x->job[i].how.b = .5;
        x->list[i] = &x->job[i];
    }
    return x;
}

static void texts_free(texts *x) {
    for (int i = 0; i < TEXTS; i++) hn_sampler_fini(&x->sampler[i]);
    free(x);
}

static void assert_same_verdict(const hn_verdict *a, const hn_verdict *b) {
    assert_int_equal(a->n_accepted, b->n_accepted);
    assert_int_equal(a->next, b->next);
    assert_int_equal(a->next_row, b->next_row);
    for (int i = 0; i < a->n_accepted; i++) {
        assert_int_equal(a->path[i], b->path[i]);
        assert_int_equal(a->drafter_of[i], b->drafter_of[i]);
    }
}

static void test_same_verdicts(void **state) {
    (void)state;
    int accepted = 0;
    for (int rule = -1; rule <= HN_RULE_TOP_M; rule++)
        for (int threads = 1; threads <= 5; threads += 2) {
            texts *alone = texts_make(rule), *together = texts_make(rule);
            hn_verifier *w = NULL;
            hn_verifiers *all = NULL;
            hn_pool *pool = NULL;
            assert_int_equal(hn_verifier_open(&w, V, NULL), HUNCH_OK);
            assert_int_equal(hn_pool_create(&pool, threads, NULL), HUNCH_OK);
            assert_int_equal(hn_verifiers_open(&all, pool, V, NULL), HUNCH_OK);
            hn_verify_trees(all, together->list, TEXTS);
            for (int i = 0; i < TEXTS; i++) {
                assert_int_equal(hn_verify_tree(w, &alone->tree[i], &alone->job[i].how, &alone->verdict[i], NULL), HUNCH_OK);
                assert_int_equal(together->job[i].status, HUNCH_OK);
                assert_same_verdict(&alone->verdict[i], &together->verdict[i]);
                accepted += alone->verdict[i].n_accepted;
            }
            hn_verifiers_close(&all);
            hn_verifier_close(&w);
            hn_pool_free(pool);
            texts_free(alone);
            texts_free(together);
        }
    assert_true(accepted > TEXTS); /* not only roots were decided */
}

/* Which texts fail if the allocation number `at` fails. */
static uint32_t failures(hn_pool *pool, int64_t at, uint64_t *counted) {
    texts *x = texts_make(-1);
    hn_verifiers *all = NULL;
    uint32_t failed = 0;
    assert_int_equal(hn_verifiers_open(&all, pool, V, NULL), HUNCH_OK);
    hn_fault_arm(HN_FAULT_ALLOC, at, false);
    hn_verify_trees(all, x->list, TEXTS);
    *counted = hn_fault_count(HN_FAULT_ALLOC);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    for (int i = 0; i < TEXTS; i++) {
        failed |= (uint32_t)(x->job[i].status != HUNCH_OK) << i;
        if (x->job[i].status == HUNCH_OK) continue;
        assert_int_equal(x->job[i].status, HUNCH_NO_MEMORY);
        assert_non_null(strstr(x->job[i].error.message, "distributions of a tree"));
    }
    hn_verifiers_close(&all);
    texts_free(x);
    return failed;
}

static void test_memory(void **state) {
    (void)state;
    hn_pool *pool = NULL;
    uint64_t all, counted;
    int seen = 0;
    assert_int_equal(hn_pool_create(&pool, 3, NULL), HUNCH_OK);
    assert_int_equal(failures(pool, INT64_MAX, &all), 0);
    assert_true(all > 0);
    for (int64_t at = 0; at < (int64_t)all; at++) {
        const uint32_t failed = failures(pool, at, &counted);
        assert_int_equal(failed & (failed - 1), 0); /* one at most: a penalty's lack of memory changes nothing */
        for (int again = 0; again < 5; again++) assert_int_equal(failures(pool, at, &counted), failed);
        seen += failed != 0;
    }
    assert_true(seen > 2);
    hn_pool_free(pool);
}

static const float *nothing(void *ctx, int row) {
    static const float none[V] = {NAN, NAN, -INFINITY, NAN, NAN};
    (void)ctx, (void)row;
    return none;
}

static void test_one_fails(void **state) {
    (void)state;
    hn_pool *pool = NULL;
    hn_verifiers *all = NULL;
    texts *x = texts_make(HN_RULE_MATCH);
    assert_int_equal(hn_pool_create(&pool, 3, NULL), HUNCH_OK);
    assert_int_equal(hn_verifiers_open(&all, pool, V, NULL), HUNCH_OK);
    x->job[7].how.rows = (hn_logits_source){nothing, NULL, NULL};
    hn_verify_trees(all, x->list, TEXTS);
    for (int i = 0; i < TEXTS; i++) assert_int_equal(x->job[i].status, i == 7 ? HUNCH_FAILED : HUNCH_OK);
    assert_non_null(strstr(x->job[7].error.message, "every logit is NaN"));
    hn_verifiers_close(&all);
    hn_pool_free(pool);
    texts_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_verdicts), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_one_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
