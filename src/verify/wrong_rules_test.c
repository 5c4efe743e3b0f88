/* SPDX-License-Identifier: Apache-2.0 */
/* wrong_rules_test.c - common mistakes of verification (verification.md T8), each made on purpose here: the statistics of
 * exact_dist_test.c must detect them. A wrong rule is written here with the library's own parts, a wrong drafter breaks its
 * contract, wrong keys are a source of random numbers that changes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample/chi_square.h"
#include "verify/toy_for_tests.h"

static const hunch_sampling warm = {.temperature = 1, .top_p = 1},
                            penal = {.temperature = 1, .top_p = 1, .presence_penalty = 2};

/* Over some targets the right setup is exact; the wrong one is far off on at least one. */
static void refuse(const char *what, const toy *right, const toy *wrong) {
    double worst = 0;
    for (uint64_t salt = 0; salt < 3; salt++) {
        toy a = *right, b = *wrong;
        a.m.salt = b.m.salt = salt;
        const double off = toy_distance(&a);
        if (!(off < 1e-12)) fail_msg("%s: the right one is off by %g", what, off);
        worst = fmax(worst, toy_distance(&b));
    }
    if (!(worst > 1e-3)) fail_msg("%s: passes, off by %g only", what, worst);
}

static toy chain_toy(hn_rule rule, int vocab) {
    return (toy){.m = {.vocab = vocab},
                 .params = warm,
                 .rule = rule,
                 .tokens = 3,
                 .rounds = 2,
                 .first = {.branch = {1, 1, 1}},
                 .second = {.branch = {1, 1, 1}}};
}
static toy tree_toy(hn_rule rule, bool without) {
    return (toy){.m = {.vocab = 3},
                 .params = warm,
                 .rule = rule,
                 .tokens = 2,
                 .rounds = 2,
                 .first = {.branch = {2, 2}, .without = without},
                 .second = {.branch = {2}, .without = without}};
}

/* ---- ratio ------------------------------------------------------------------------------------------------------- */

/* A chain's ratio test with the distribution of each row by `push`; plain: a rejection draws from P, not from the residual. */
static hunch_status wrong_chain(const hn_walk *k, hunch_status (*push)(const hn_walk *, int, hn_residual *),
                                bool plain) {
    for (int row = 0;; row++) {
        hn_residual r;
        const int c = k->t->first[row];
        assert_int_equal(push(k, row, &r), HUNCH_OK);
        if (c >= 0) {
            const hn_candidate *x = &k->t->candidate[c];
            const double q = hn_residual_q(k, &r, c);
            if (hn_candidate_accept(k, x, hn_residual_p(k, &r, x->token) / q)) continue;
            if (!plain) hn_residual_subtract(k, &r, 1, 1);
        }
        hn_verdict_draw(k, &r);
        return HUNCH_OK;
    }
}

static hunch_status rule_right(const hn_walk *k) {
    return wrong_chain(k, hn_residual_push, false);
}
static hunch_status rule_unsubtracted(const hn_walk *k) {
    return wrong_chain(k, hn_residual_push, true);
}

static void test_unsubtracted_residual(void **state) {
    (void)state;
    toy right = chain_toy(HN_RULE_RATIO, 3), wrong = right;
    right.wrong = rule_right; /* the test setup itself passes */
    wrong.wrong = rule_unsubtracted;
    refuse("unsubtracted residual", &right, &wrong);
}

typedef struct moved_row {
    const hn_walk *k;
    int row;
} moved_row;

static const float *logits_moved(void *ctx, int row) {
    (void)row;
    const moved_row *m = ctx;
    return m->k->v->rows.logits(m->k->v->rows.ctx, m->row);
}

/* A row's own logits with the root's history. */
static hunch_status push_with_roots_history(const hn_walk *k, int row, hn_residual *r) {
    moved_row m = {k, row};
    hn_verification v = *k->v;
    hn_walk moved = *k;
    v.rows = (hn_logits_source){logits_moved, NULL, &m};
    moved.v = &v;
    hunch_status st = hn_residual_push(&moved, 0, r);
    r->row = row;
    return st;
}
static hunch_status rule_shared_history(const hn_walk *k) {
    return wrong_chain(k, push_with_roots_history, false);
}

/* Of the row before. */
static hunch_status push_of_parent(const hn_walk *k, int row, hn_residual *r) {
    hunch_status st = hn_residual_push(k, row ? row - 1 : 0, r);
    r->row = row;
    return st;
}
static hunch_status rule_shifted(const hn_walk *k) {
    return wrong_chain(k, push_of_parent, false);
}

static void test_wrong_rows(void **state) {
    (void)state;
    toy right = chain_toy(HN_RULE_RATIO, 3), wrong = right;
    right.params = wrong.params = penal;
    wrong.wrong = rule_shared_history;
    refuse("history shared between rows", &right, &wrong);
    wrong.wrong = rule_shifted;
    refuse("rows off by one", &right, &wrong);
}

/* ---- drafters that break their contract --------------------------------------------------------------------------- */

static void test_wrong_drafters(void **state) {
    (void)state;
    static const hn_rule chains[] = {HN_RULE_RATIO, HN_RULE_BLOCK, HN_RULE_TRAVERSAL};
    for (int i = 0; i < 3; i++) {
        toy right = chain_toy(chains[i], 3), wrong = right;
        wrong.first.warps = .5;
        refuse("q of another temperature", &right, &wrong);
        wrong = right;
        wrong.first.prunes = .3;
        refuse("pruned by its own value", &right, &wrong);
    }
    static const hn_rule trees[] = {HN_RULE_RATIO, HN_RULE_TRAVERSAL};
    for (int i = 0; i < 2; i++) {
        toy right = tree_toy(trees[i], false), wrong = right;
        wrong.first.merges = true;
        refuse("a drawn candidate merged with another", &right, &wrong);
        wrong = right = tree_toy(trees[i], true);
        wrong.first.denies = true;
        refuse("without replacement, verified as with", &right, &wrong);
        wrong = right;
        wrong.first.prunes = .3;
        refuse("pruned by its own value in a tree", &right, &wrong);
    }
}

/* ---- distributions that list their ids ------------------------------------------------------------------------------------- */

typedef enum misreading { WEIGHS_NOTHING, THE_NEIGHBOURS, BY_PLACE } misreading;

/* Verifies the same tree with distributions that are expanded to all ids. */
static hunch_status spelt_out(const hn_walk *k, misreading m) {
    hn_tree t = *k->t;
    hn_proposal_dist dist[HN_TREE_ROWS];
    float weight[HN_TREE_ROWS][TOY_VOCAB];
    hn_walk spelt = *k;
    spelt.t = &t;
    for (int row = 0; row < t.n_rows; row++) {
        if (t.first[row] < 0) continue;
        const hn_proposal_dist *q = t.candidate[t.first[row]].q;
        dist[row] = (hn_proposal_dist){k->w->vocab, NULL, weight[row]};
        for (int i = 0, at = 0; i < k->w->vocab; i++) {
            while (at < q->n && q->id[at] < i) at++;
            const bool listed = at < q->n && q->id[at] == i;
            weight[row][i] = listed || (m == THE_NEIGHBOURS && at < q->n) ? q->weight[at] : 0;
            if (m == BY_PLACE) weight[row][i] = i < q->n ? q->weight[i] : 0;
        }
        for (int c = t.first[row]; c >= 0; c = t.candidate[c].next) t.candidate[c].q = &dist[row];
    }
    return k->v->rule == HN_RULE_TRAVERSAL ? hn_verify_traversal(&spelt)
           : k->v->rule == HN_RULE_BLOCK   ? hn_verify_block(&spelt)
                                           : hn_verify_ratio(&spelt);
}
static hunch_status rule_spelt_out(const hn_walk *k) {
    return spelt_out(k, WEIGHS_NOTHING);
}
static hunch_status rule_of_neighbours(const hn_walk *k) {
    return spelt_out(k, THE_NEIGHBOURS);
}
static hunch_status rule_by_place(const hn_walk *k) {
    return spelt_out(k, BY_PLACE);
}

static void test_wrong_ids(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        const hn_rule rule = i < 2 ? HN_RULE_RATIO : i < 4 ? HN_RULE_TRAVERSAL : HN_RULE_BLOCK;
        toy right = rule == HN_RULE_BLOCK ? chain_toy(rule, 3) : tree_toy(rule, i % 2), wrong;
        right.first.only = right.second.only = 1 << 1 | 1 << 2;
        wrong = right;
        right.wrong = rule_spelt_out;
        wrong.wrong = rule_of_neighbours;
        refuse("a missing id that weighs what its neighbour does", &right, &wrong);
        wrong.wrong = rule_by_place;
        refuse("weights read by place, not by id", &right, &wrong);
    }
}

/* ---- block ------------------------------------------------------------------------------------------------------- */

/* Block verification by the formulas, all random numbers in ascending order; `stops`: at the first failure. */
static hunch_status block_by_formula(const hn_walk *k, bool stops) {
    const hn_tree *t = k->t;
    const int n = t->n_rows - 1;
    double w[HN_TREE_ROWS] = {1}, h[HN_TREE_ROWS] = {1};
    hn_residual r[HN_TREE_ROWS];
    for (int i = 0; i <= n; i++) {
        assert_int_equal(hn_residual_push(k, i, &r[i]), HUNCH_OK);
        hn_residual_keep(k, &r[i]);
        if (i == n) break;
        const double q = hn_residual_q(k, &r[i], i), p = hn_residual_p(k, &r[i], t->candidate[i].token);
        const double z = hn_residual_excess(k, &r[i], w[i], 1), below = z + 1 - w[i];
        h[i] = below > 0 ? z / below : 1;
        w[i + 1] = fmin(1, w[i] * p / q);
    }
    h[n] = w[n];
    int a = 0;
    for (int i = 1; i <= n; i++) {
        if (hn_candidate_accept(k, &t->candidate[i - 1], h[i]))
            a = i;
        else if (stops)
            break;
    }
    if (a < n) hn_residual_subtract(k, &r[a], w[a], 1);
    hn_verdict_draw(k, &r[a]);
    return HUNCH_OK;
}
static hunch_status rule_block_right(const hn_walk *k) {
    return block_by_formula(k, false);
}
static hunch_status rule_block_stops(const hn_walk *k) {
    return block_by_formula(k, true);
}

/* Random numbers that are keyed by the position of the candidate's token, whatever the round. */
static bool accept_by_position(void *ctx, const hn_random_key *key, double p) {
    hn_random_key k = *key;
    if (k.purpose == HN_PURPOSE_ACCEPT) {
        k.position += k.number + 1;
        k.number = 0;
    }
    return explorer_accept(ctx, &k, p);
}
static hn_rng rng_by_position(explorer *x) {
    hn_rng c = explorer_rng(x);
    c.accept = accept_by_position;
    return c;
}

/* README: "The tests of these distributions detect a verifier or drafter that is wrong on purpose." */
static void test_wrong_block(void **state) {
    (void)state;
    toy right = chain_toy(HN_RULE_BLOCK, 2), wrong = right;
    right.wrong = rule_block_right;
    wrong.wrong = rule_block_stops;
    refuse("block that stops at its first failure", &right, &wrong);
    right.wrong = wrong.wrong = NULL;
    wrong.rekey = rng_by_position;
    refuse("block with random numbers keyed by token position", &right, &wrong);
    right.rule = wrong.rule = HN_RULE_TRAVERSAL;
    refuse("traversal with random numbers keyed by token position", &right, &wrong);
    right.rule = HN_RULE_RATIO; /* uses no random number after the accepted path */
    right.rekey = rng_by_position;
    wrong.rule = HN_RULE_BLOCK;
    refuse("block, beside ratio, with random numbers keyed by token position", &right, &wrong);
}

/* ---- traversal --------------------------------------------------------------------------------------------------- */

/* Traversal by recursion: returns whether anything at or below the node is accepted, and writes the verdict if so. `again`:
 * each child uses the parent's initial a, not that after its rejected siblings. */
static bool offer(const hn_walk *k, int row, int from, double a, bool again) {
    const hn_tree *t = k->t;
    const double arrived = a;
    hn_residual r;
    assert_int_equal(hn_residual_push(k, row, &r), HUNCH_OK);
    hn_residual_keep(k, &r);
    for (int c = t->first[row]; c >= 0; c = t->candidate[c].next) {
        const hn_candidate *x = &t->candidate[c];
        const double q = hn_residual_q(k, &r, c), p = hn_residual_p(k, &r, x->token);
        if (offer(k, x->child, c, fmin(1, (again ? arrived : a) * p / q), again)) return true;
        const double z = hn_residual_subtract(k, &r, a, 1), below = z + 1 - a;
        a = below > 0 ? z / below : 1;
    }
    const bool accepted = from < 0 || hn_candidate_accept(k, &t->candidate[from], a);
    if (accepted) hn_verdict_draw(k, &r);
    hn_residual_pop(k, &r);
    return accepted;
}
static hunch_status rule_traversal_right(const hn_walk *k) {
    return offer(k, 0, -1, 1, false) ? HUNCH_OK : HUNCH_FAILED;
}
static hunch_status rule_traversal_again(const hn_walk *k) {
    return offer(k, 0, -1, 1, true) ? HUNCH_OK : HUNCH_FAILED;
}

static void test_wrong_traversal(void **state) {
    (void)state;
    for (int without = 0; without < 2; without++) {
        toy right = tree_toy(HN_RULE_TRAVERSAL, without), wrong = right;
        right.first.branch[0] = wrong.first.branch[0] = 1; /* two children where a < 1 */
        right.wrong = rule_traversal_right;
        wrong.wrong = rule_traversal_again;
        refuse("traversal with a computed again from above", &right, &wrong);
    }
}

/* ---- noise that two decisions share ------------------------------------------------------------------------------ */

/* Draws with the real noise; the residual with the noise of the given purpose. */
static int draw_as(const hn_random_key *key, uint32_t purpose, const int32_t *id, const double *weight, int n) {
    hn_random_key k = *key;
    if (k.purpose == HN_PURPOSE_RESIDUAL)
        k = (hn_random_key){.seed = k.seed, .position = k.position, .purpose = purpose};
    for (int i = 0; i < n; i++) assert_true(!id || id[i] == i); /* the whole vocabulary: index and token are one */
    return toy_race(&k, weight, n);
}
static int draw_apart(void *ctx, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    (void)ctx;
    return draw_as(key, HN_PURPOSE_RESIDUAL, id, weight, n);
}
static int draw_shared(void *ctx, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    (void)ctx;
    return draw_as(key, HN_PURPOSE_PROPOSAL, id, weight, n);
}

static const double noise_p[] = {.1, .6, .3}, noise_q[] = {.6, .2, .2};
enum { DRAWS = 20000 };

/* Counts of the first token over many seeds. */
static void count_first(int (*draw)(void *, const hn_random_key *, const int32_t *, const double *, int),
                        long counts[3]) {
    toy y = {.m = {.vocab = 3, .same = noise_p},
             .params = warm,
             .rule = HN_RULE_RATIO,
             .first = {.branch = {1}, .same = noise_q}};
    hn_sampler s;
    hn_verifier *w = NULL;
    assert_int_equal(hn_sampler_init(&s, &y.params, 3, NULL), HUNCH_OK);
    assert_int_equal(hn_verifier_open(&w, 3, NULL), HUNCH_OK);
    s.rng.draw = draw;
    for (int i = 0; i < DRAWS; i++) {
        toy_pass p = {.m = &y.m, .n = TOY_PROMPT};
        memcpy(p.text, toy_prompt, sizeof toy_prompt);
        s.params.seed = (uint64_t)i;
        toy_round(&y, w, &s, &p, &y.first);
        counts[p.text[TOY_PROMPT]]++;
    }
    hn_verifier_close(&w);
    hn_sampler_fini(&s);
}

static void test_shared_noise(void **state) {
    (void)state;
    long product[3] = {0}, right[3] = {0}, wrong[3] = {0};
    count_first(NULL, product);
    count_first(draw_apart, right);
    count_first(draw_shared, wrong);
    assert_true(chi_square_fits(product, noise_p, 3, DRAWS));
    assert_true(chi_square_fits(right, noise_p, 3, DRAWS));
    assert_false(chi_square_fits(wrong, noise_p, 3, DRAWS));
    assert_true(fabs((double)wrong[1] / DRAWS - .6375) < .015); /* the known result of the mistake */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsubtracted_residual), cmocka_unit_test(test_wrong_rows),
        cmocka_unit_test(test_wrong_drafters),        cmocka_unit_test(test_wrong_block),
        cmocka_unit_test(test_wrong_traversal),       cmocka_unit_test(test_wrong_ids),
        cmocka_unit_test(test_shared_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
