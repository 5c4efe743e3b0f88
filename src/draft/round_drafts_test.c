/* SPDX-License-Identifier: Apache-2.0 */
/* round_drafts_test.c - the record of a round's drafts: outcomes, rows that two drafters share, rows that were cut, times; and of random
 * trees each field against what a walk over the tree says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "draft/round_drafts.h"

static const hn_round_draft *draft_of(const hn_round_drafts *r, int child, int drafter) {
    for (int k = 0; k < r->n; k++)
        if (r->draft[k].child == child && r->draft[k].drafter == drafter) return &r->draft[k];
    fail_msg("drafter %d has no draft of row %d", drafter, child);
    return NULL;
}

/* Two drafters agree on the first token, then one is right, and nothing is known below the other. */
static void test_outcomes(void **state) {
    (void)state;
    hn_tree t;
    hn_round_drafts r;
    hn_tree_reset(&t, 9, HN_TREE_ROWS);
    const int a = hn_tree_add(&t, 0, 5, 0, .5f), b = hn_tree_add(&t, 0, 6, 0, .25f);
    assert_int_equal(hn_tree_add(&t, 0, 5, 1, .75f), a);
    const int below_b = hn_tree_add(&t, b, 7, 0, .5f), c = hn_tree_add(&t, a, 8, 1, .5f), d = hn_tree_add(&t, a, 4, 1, .5f);
    const int below_c = hn_tree_add(&t, c, 3, 1, .5f);
    const int16_t path[] = {(int16_t)a, (int16_t)c};
    hn_round_drafts_make(&r, &t, path, 2, false);
    assert_true(r.n == 7 && r.n_reached == 6 && r.n_accepted == 2 && r.n_rows == 7 && r.depth == 3);
    const int order[] = {a, b, a, c, d, below_c, below_b}; /* the path's rows, then the others */
    for (int k = 0; k < r.n; k++) assert_int_equal(r.draft[k].child, order[k]);
    const hn_round_draft *first = draft_of(&r, a, 0), *again = draft_of(&r, a, 1), *wrong = draft_of(&r, b, 0);
    assert_true(first->outcome == HN_ACCEPTED && again->outcome == HN_ACCEPTED && wrong->outcome == HN_REJECTED);
    assert_true(first->first && !again->first && !first->alone && !again->alone && wrong->first && wrong->alone);
    assert_true(first->rank == 0 && wrong->rank == 1 && again->rank == 0);
    assert_true(draft_of(&r, c, 1)->outcome == HN_ACCEPTED && draft_of(&r, d, 1)->outcome == HN_REJECTED);
    assert_true(draft_of(&r, d, 1)->rank == 1 && draft_of(&r, d, 1)->row == a && draft_of(&r, d, 1)->depth == 2);
    assert_int_equal(draft_of(&r, below_c, 1)->outcome, HN_REJECTED);    /* its row was reached, and the text went on without it */
    assert_int_equal(draft_of(&r, below_b, 0)->outcome, HN_NOT_REACHED); /* censored */
    assert_true(r.drafter[0].drafted == 3 && r.drafter[0].drafted_first == 2 && r.drafter[0].levels == 2);
    assert_true(r.drafter[1].drafted == 4 && r.drafter[1].drafted_first == 1 && r.drafter[1].levels == 3);
    assert_true(r.drafter[0].accepted_at == 1 && r.drafter[1].accepted_at == 3 && r.drafter[2].drafted == 0);
    assert_true(hn_round_followed(&r.drafter[0]) == 1 && hn_round_followed(&r.drafter[1]) == 2 && hn_round_followed(&r.drafter[2]) == 0);
    assert_true(isnan(first->q) && isnan(first->certainty.margin) && isnan(first->certainty.entropy) && !first->drawn);
    hn_round_drafts_make(&r, &t, NULL, -1, false); /* without a verdict */
    assert_true(r.n == 7 && r.n_reached == 0);
    for (int k = 0; k < r.n; k++) assert_int_equal(r.draft[k].outcome, HN_NOT_REACHED);
}

/* A drafter that had the second accepted token but not the first one did not follow the path. */
static void test_a_gap(void **state) {
    (void)state;
    hn_tree t;
    hn_round_drafts r;
    hn_tree_reset(&t, 9, HN_TREE_ROWS);
    const int a = hn_tree_add(&t, 0, 5, 0, .5f), b = hn_tree_add(&t, a, 6, 1, .5f);
    const int16_t path[] = {(int16_t)a, (int16_t)b};
    hn_round_drafts_make(&r, &t, path, 2, false);
    assert_true(r.drafter[1].accepted_at == 2 && hn_round_followed(&r.drafter[1]) == 0);
    assert_true(r.drafter[0].accepted_at == 1 && hn_round_followed(&r.drafter[0]) == 1);
}

/* What was cut is not in it; numbers of rows are those of the tree that was verified. */
static void test_cut_rows(void **state) {
    (void)state;
    hn_tree t;
    hn_round_drafts r;
    int16_t map[HN_TREE_ROWS];
    bool keep[HN_TREE_ROWS] = {true};
    hn_tree_reset(&t, 9, HN_TREE_ROWS);
    hn_tree_add(&t, 0, 5, 0, .5f);
    const int b = hn_tree_add(&t, 0, 6, 0, .5f), c = hn_tree_add(&t, b, 7, 1, .5f);
    hn_tree_set_certainty(&t, 2, (hn_certainty){.25f, 1.5f});
    keep[b] = keep[c] = true;
    hn_tree_keep(&t, keep, map);
    const int16_t path[] = {map[b]};
    hn_round_drafts_make(&r, &t, path, 1, false);
    assert_true(r.n == 2 && r.n_rows == 3 && r.drafter[0].drafted == 1 && r.drafter[0].accepted_at == 1);
    assert_true(draft_of(&r, map[b], 0)->token == 6 && draft_of(&r, map[b], 0)->rank == 0);
    assert_true(isnan(draft_of(&r, map[b], 0)->certainty.margin));
    assert_true(draft_of(&r, map[c], 1)->certainty.margin == .25f && draft_of(&r, map[c], 1)->certainty.entropy == 1.5f);
}

/* Two rows whose path is the same once the token is known: the drafts are of one, each has the row that was made for it. */
static void test_known_later(void **state) {
    (void)state;
    for (int accepted = 1; accepted <= 2; accepted++) {
        hn_tree t;
        hn_round_drafts r;
        hn_mem *mem = (hn_mem *)&t; /* any */
        hn_tree_reset(&t, 9, HN_TREE_ROWS);
        hn_tree_add(&t, 0, 5, 0, .5f);
        hn_tree_add_later(&t, 0, (hn_token_source){.list = {mem, 0}}, 1, .5f);
        const int32_t token[] = {9, 5, 5};
        const int16_t path[] = {(int16_t)accepted};
        hn_tree_fill(&t, token, path, 1);
        hn_round_drafts_make(&r, &t, path, 1, false);
        assert_true(r.n == 2 && r.n_rows == 3 && r.drafter[0].accepted_at == 1 && r.drafter[1].accepted_at == 1);
        assert_true(r.draft[0].child == accepted && r.draft[1].child == accepted && r.draft[0].made + r.draft[1].made == 3);
        assert_true(r.draft[0].first && !r.draft[1].first && !r.draft[0].alone && !r.draft[1].alone);
    }
}

/* The probability of what was drawn, if it is asked for. */
static void test_drawn(void **state) {
    (void)state;
    static const int32_t id[] = {2, 5};
    static const float weight[] = {1, 3};
    static const hn_proposal_dist q = {2, id, weight};
    hn_tree t;
    hn_round_drafts r;
    hn_tree_reset(&t, 9, HN_TREE_ROWS);
    hn_tree_add_drawn(&t, 0, 5, 0, .9f, &q, false);
    hn_round_drafts_make(&r, &t, NULL, 0, false);
    assert_true(r.draft[0].drawn && isnan(r.draft[0].q) && r.draft[0].p == .9f);
    hn_round_drafts_make(&r, &t, NULL, 0, true);
    assert_true(r.draft[0].q == .75 && r.draft[0].outcome == HN_REJECTED);
}

static void test_times(void **state) {
    (void)state;
    static hn_round_drafts r;
    hn_drafting_times all = {.texts = 4, .all_s = 8, .pass_s = 2};
    all.drafter[1].texts = 2;
    all.drafter[1].calls_s = 3;
    all.drafter[1].pass_s = 2;
    hn_round_drafts_times(&r, &all);
    assert_true(r.draft_s == 2 && r.draft_pass_s == .5);
    assert_true(r.drafter[1].calls_s == 3 && r.drafter[1].share_s == 1.5 && r.drafter[1].pass_s == 2);
    assert_true(r.drafter[0].calls_s == 0 && r.drafter[0].share_s == 0);
}

/* ---- random trees ------------------------------------------------------------------------------------------------------- */

static int below(uint64_t *rng, int n) {
    return (int)(hn_splitmix(rng) % (uint64_t)n);
}

/* A random path down from the root; returns its length. */
static int walk(const hn_tree *t, uint64_t *rng, int16_t *path) {
    int n = 0;
    for (int row = 0; t->first[row] >= 0 && below(rng, 4) > 0;) {
        int k = t->first[row];
        for (int steps = below(rng, 3); steps > 0 && t->candidate[k].next >= 0; steps--) k = t->candidate[k].next;
        path[n++] = (int16_t)(row = t->candidate[k].child);
    }
    return n;
}

static void check_draft(const hn_tree *t, const hn_round_draft *d, int candidate, const int16_t *path, int n) {
    const hn_candidate *c = &t->candidate[candidate];
    int rank = 0, others = 0, before = 0;
    hn_outcome outcome = HN_NOT_REACHED;
    for (int k = 0; k < t->n_candidates; k++) {
        const hn_candidate *x = &t->candidate[k];
        rank += k < candidate && x->row == c->row && x->drafter == c->drafter;
        before += k < candidate && x->child == c->child;
        others += x->child == c->child && x->drafter != c->drafter;
    }
    for (int i = 0; i <= n; i++)
        if ((i == 0 ? 0 : path[i - 1]) == c->row) outcome = i < n && path[i] == c->child ? HN_ACCEPTED : HN_REJECTED;
    assert_true(d->token == c->token && d->row == c->row && d->child == c->child && d->depth == t->depth[c->child]);
    assert_true(d->estimate == c->estimate && d->rank == rank && d->first == (before == 0) && d->alone == (others == 0));
    assert_int_equal(d->outcome, outcome);
}

static void test_random(void **state) {
    (void)state;
    uint64_t rng = 11;
    for (int round = 0; round < 500; round++) {
        hn_tree t;
        hn_round_drafts r;
        int16_t path[HN_TREE_ROWS];
        bool seen[HN_TREE_CANDIDATES] = {false};
        hn_tree_reset(&t, 1, 1 + below(&rng, HN_TREE_ROWS));
        for (int i = below(&rng, 200); i > 0; i--)
            hn_tree_add(&t, below(&rng, t.n_rows), below(&rng, 5), below(&rng, 3), (float)i / 256);
        const int n = walk(&t, &rng, path);
        hn_round_drafts_make(&r, &t, path, n, false);
        assert_true(r.n == t.n_candidates && r.depth == hn_tree_depth(&t));
        assert_int_equal(r.drafter[0].drafted + r.drafter[1].drafted + r.drafter[2].drafted, r.n);
        for (int k = 0; k < r.n; k++) { /* candidates that are equal in all are told apart by their order */
            int c = 0;
            while (seen[c] || t.candidate[c].child != r.draft[k].child || t.candidate[c].drafter != r.draft[k].drafter) c++;
            seen[c] = true;
            check_draft(&t, &r.draft[k], c, path, n);
            assert_int_equal(r.draft[k].outcome != HN_NOT_REACHED, k < r.n_reached);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outcomes), cmocka_unit_test(test_a_gap), cmocka_unit_test(test_cut_rows),
                                       cmocka_unit_test(test_known_later), cmocka_unit_test(test_drawn), cmocka_unit_test(test_times),
                                       cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
