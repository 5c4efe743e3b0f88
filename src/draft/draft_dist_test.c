/* SPDX-License-Identifier: Apache-2.0 */
/* draft_dist_test.c - distributions that drafts are drawn from and the draws: the distribution is the sampler's, sparse or dense; draws
 * follow it, one token or several without replacement, with the noise of contract C3; room is checked before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "draft/draft_dist.h"
#include "sample/chi_square.h"

enum { VOCAB = 12, HAVE = 4, DRAFTER = 3, ROOT = 6 };
static const int32_t text[ROOT + 1] = {0, 1, 2, 3, 4, 5, 6};
static const hunch_sampling warm = {.temperature = 1, .top_p = 1}, biting = {.temperature = .8, .top_p = 1, .top_k = 3};

/* Logits of a head over a part of the vocabulary (every third id), or over all of it. */
static void logits_make(float l[VOCAB], bool reduced) {
    for (int i = 0; i < VOCAB; i++) l[i] = reduced && i % 3 != 1 ? -INFINITY : (float)(i % 5) * .4f;
}

typedef struct rig {
    hn_draft_dists dists;
    hn_sampler sampler;
    hn_tree tree;
    hn_propose p;
    float logits[VOCAB];
    hn_history h;
} rig;

static void rig_open(rig *r, const hunch_sampling *params, bool reduced, int rows) {
    memset(r, 0, sizeof *r);
    assert_int_equal(hn_draft_dists_open(&r->dists, VOCAB, 2, 5, 1, NULL), HUNCH_OK);
    assert_int_equal(hn_sampler_init(&r->sampler, params, VOCAB, NULL), HUNCH_OK);
    hn_tree_reset(&r->tree, text[ROOT], rows);
    logits_make(r->logits, reduced);
    r->h = (hn_history){text, ROOT + 1, 2, NULL, 0};
    r->p = (hn_propose){.text = {text, ROOT + 1, 2}, .tree = &r->tree, .budget = rows - 1, .sampler = &r->sampler, .drawn = true};
}

static void rig_close(rig *r) {
    hn_sampler_fini(&r->sampler);
    hn_draft_dists_close(&r->dists);
    hn_draft_dists_close(&r->dists);
}

static const hn_draft_dist *dist_at(rig *r, int seq, int slot) {
    return hn_draft_dist_make(&r->dists, seq, slot, &r->sampler, r->logits, &r->h);
}

/* The distribution is the sampler's, and is unchanged while others are made. */
static void test_dists(void **state) {
    (void)state;
    const hunch_sampling *const params[] = {&warm, &biting};
    for (int i = 0; i < 4; i++) {
        rig r;
        float want[VOCAB] = {0};
        hn_dist plain;
        rig_open(&r, params[i / 2], i % 2, 8);
        hn_sampler_dist(&r.sampler, r.logits, &r.h, &plain);
        for (int k = 0; k < plain.n; k++) want[plain.id[k]] = plain.weight[k];
        const double sum = plain.sum;
        const int n = plain.n;
        const hn_draft_dist *dist = dist_at(&r, 1, 4);
        assert_non_null(dist);
        assert_true(dist_at(&r, 1, 3) != dist && dist_at(&r, 0, 4) != dist); /* these do not change it */
        r.logits[0] = 50;
        assert_true(dist_at(&r, 0, 0) != dist);
        assert_true(dist->sum == sum);
        assert_int_equal(dist->q.id == NULL, n > VOCAB / 2);
        assert_int_equal(dist->q.n, dist->q.id ? n : VOCAB);
        for (int x = 0; x < VOCAB; x++) assert_true(hn_proposal_weight(&dist->q, x) == want[x]);
        rig_close(&r);
    }
}

/* Counts the tokens of the first and second of two siblings. */
static void count(const hunch_sampling *params, bool reduced, long *counts) {
    rig r;
    rig_open(&r, params, reduced, 8);
    for (int i = 0; i < 20000; i++) {
        int16_t child[HN_TREE_ROWS];
        hn_tree_reset(&r.tree, text[ROOT], 8);
        r.sampler.params.seed = (uint64_t)i;
        assert_int_equal(hn_draft_dist_draw(&r.dists, dist_at(&r, 0, 1), &r.p, DRAFTER, 0, 2, child, 0), 2);
        counts[r.tree.token[child[0]] * VOCAB + r.tree.token[child[1]]]++;
    }
    rig_close(&r);
}

static void test_pairs_without_replacement(void **state) {
    (void)state;
    const hunch_sampling *const params[] = {&warm, &biting};
    for (int i = 0; i < 4; i++) {
        static long counts[VOCAB * VOCAB];
        static double want[VOCAB * VOCAB];
        rig r;
        memset(counts, 0, sizeof counts);
        memset(want, 0, sizeof want);
        count(params[i / 2], i % 2, counts);
        rig_open(&r, params[i / 2], i % 2, 8);
        const hn_draft_dist *dist = dist_at(&r, 0, 0);
        for (int a = 0; a < VOCAB; a++)
            for (int b = 0; b < VOCAB; b++) {
                const double p = hn_proposal_probability(&dist->q, a), q = hn_proposal_probability(&dist->q, b);
                want[a * VOCAB + b] = a == b ? 0 : p * q / (1 - p);
            }
        assert_true(chi_square_fits(counts, want, VOCAB * VOCAB, 20000));
        rig_close(&r);
    }
}

/* ---- candidates ---------------------------------------------------------------------------------------------------- */

static int draws;
static double check_key(void *ctx, const hn_random_key *key) {
    (void)ctx;
    assert_int_equal(key->purpose, HN_PURPOSE_PROPOSAL);
    assert_int_equal(key->position, ROOT);
    assert_int_equal(key->drafter, DRAFTER);
    assert_int_equal(key->number, draws++);
    return hn_random_uniform(key);
}

static void test_candidates(void **state) {
    (void)state;
    rig r;
    int16_t child[HN_TREE_ROWS];
    rig_open(&r, &warm, true, 8);
    r.sampler.rng.uniform = check_key;
    draws = 0;
    const hn_draft_dist *dist = dist_at(&r, 0, 0);
    assert_int_equal(hn_draft_dist_draw(&r.dists, dist, &r.p, DRAFTER, 0, 3, child, 0), 3);
    const hn_draft_dist *next = dist_at(&r, 0, 1);
    assert_int_equal(hn_draft_dist_draw(&r.dists, next, &r.p, DRAFTER, child[1], 1, child, 0), 1);
    assert_int_equal(draws, 4);
    assert_true(hn_tree_valid(&r.tree));
    double last = 1;
    for (int c = 0; c < 4; c++) {
        const hn_candidate *x = &r.tree.candidate[c];
        assert_int_equal(x->number, c);
        assert_int_equal(x->without, c < 3);
        assert_ptr_equal(x->q, c < 3 ? &dist->q : &next->q);
        assert_int_equal(x->token % 3, 1);
        if (c < 3) assert_true((double)x->estimate <= last);
        last = (double)x->estimate;
    }
    /* Of logits 0.4, 1.6, 0.8 and 0 at ids 1, 4, 7 and 10, for any draw. */
    const double sum = exp(.4) + exp(1.6) + exp(.8) + 1, estimate[] = {exp(1.6), exp(.8), exp(.4), exp(1.6)};
    for (int c = 0; c < 4; c++)
        assert_true(fabs((double)r.tree.candidate[c].estimate - estimate[c] / sum) < 1e-6);
    rig_close(&r);
}

static void test_room(void **state) {
    (void)state;
    rig r;
    int16_t child[HN_TREE_ROWS];
    rig_open(&r, &warm, true, 3);
    assert_int_equal(hn_draft_dist_draw(&r.dists, dist_at(&r, 0, 0), &r.p, DRAFTER, 0, 4, child, 0), 2); /* rows */
    assert_true(r.tree.candidate[0].without && r.tree.candidate[1].without);
    r.p.budget = 1;
    hn_tree_reset(&r.tree, text[ROOT], 8);
    assert_int_equal(hn_draft_dist_draw(&r.dists, dist_at(&r, 0, 0), &r.p, DRAFTER, 0, 4, child, 0), 1);
    r.p.budget = 0;
    assert_int_equal(hn_draft_dist_draw(&r.dists, dist_at(&r, 0, 1), &r.p, DRAFTER, 1, 4, child, 0), 0);
    r.p.budget = 7;
    hn_tree_reset(&r.tree, text[ROOT], 8);
    assert_int_equal(hn_draft_dist_draw(&r.dists, dist_at(&r, 0, 0), &r.p, DRAFTER, 0, 6, child, 0), HAVE); /* tokens */
    for (int i = 0; i < VOCAB; i++) r.logits[i] = -INFINITY;
    assert_null(dist_at(&r, 0, 0));
    rig_close(&r);
}

static void test_no_memory(void **state) {
    (void)state;
    hn_draft_dists l;
    int refused = 0;
    hn_fault_arm(HN_FAULT_ALLOC, 0, true);
    assert_int_equal(hn_draft_dists_open(&l, VOCAB, 1, 1, 1, NULL), HUNCH_NO_MEMORY);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    hn_draft_dists_close(&l);
    for (int at = 0; at < 6; at++) {
        rig r;
        int16_t child[HN_TREE_ROWS];
        rig_open(&r, &biting, at % 2, 8);
        hn_fault_arm(HN_FAULT_ALLOC, at / 2, true);
        const hn_draft_dist *dist = dist_at(&r, 0, 0);
        const int n = dist ? hn_draft_dist_draw(&r.dists, dist, &r.p, DRAFTER, 0, 2, child, 0) : 0;
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_int_equal(n, 0);
        refused += dist == NULL;
        assert_int_equal(r.tree.n_candidates, 0);
        assert_int_equal(hn_draft_dist_draw(&r.dists, dist_at(&r, 0, 0), &r.p, DRAFTER, 0, 2, child, 0), 2);
        rig_close(&r);
    }
    assert_int_equal(refused, 4);
    for (int dense = 0; dense < 2; dense++) { /* what is reserved is enough */
        rig r;
        int16_t child[HN_TREE_ROWS];
        rig_open(&r, &biting, dense, 8);
        assert_true(hn_draft_dist_reserve(&r.dists, 0, 0, r.p.sampler));
        hn_fault_arm(HN_FAULT_ALLOC, 0, true);
        assert_int_equal(hn_draft_dist_draw(&r.dists, dist_at(&r, 0, 0), &r.p, DRAFTER, 0, 2, child, 0), 2);
        assert_false(hn_draft_dist_reserve(&r.dists, 0, 1, r.p.sampler));
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        rig_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dists), cmocka_unit_test(test_pairs_without_replacement), cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_room), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
