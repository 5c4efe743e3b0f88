/* SPDX-License-Identifier: Apache-2.0 */
/* heads_dist_test.c - the distributions of ratio, block and traversal verification with draft heads: chains and trees that a head draws
 * from its own distributions, over a full and over a reduced vocabulary, and trees of its likeliest paths. Enumerated and counted
 * through the real engine as described in rules_dist_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heads.h"
#include "sample/chi_square.h"
#include "dist.h"
#include "explored.h"

/* The target's logits are far apart: a bias for two or three tokens, and a temperature at which all of them occur. Heads with a reduced
 * vocabulary, and those that draft only even tokens, can draft 8, 12 and 16, not 9. */
static const hunch_bias two[] = {{8, 200}, {12, 200}}, three[] = {{8, 200}, {12, 200}, {16, 200}}, half[] = {{8, 200}, {9, 200}},
                         dart[] = {{10, 200}, {9, 200}}; /* it can draft only the first */
#define DIST(b, top_, tokens_, ...)                                                                                       \
    {.prompt = {1, 403, 407, 261, 378}, .n_prompt = 5, .top = top_, .tokens = tokens_,                                   \
     .params = {.temperature = 20, .top_p = 1, .bias = b, .n_bias = top_, __VA_ARGS__}}
static dist exact_dist = DIST(two, 2, 4, .seed = 0),
           penal_dist = DIST(two, 2, 4, .presence_penalty = 2, .frequency_penalty = 1.5, .repetition_penalty = 1.03),
           three_dist = DIST(three, 3, 3, .repetition_penalty = 1.05), half_dist = DIST(half, 2, 4, .seed = 0),
           count_dist = DIST(three, 3, 4, .repetition_penalty = 1.04), dart_dist = DIST(dart, 2, 4, .seed = 0);

static int setup(void **state) {
    (void)state;
    dist *const all[] = {&exact_dist, &penal_dist, &three_dist, &half_dist, &count_dist, &dart_dist};
    model = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_rule(NULL, HUNCH_VERIFY_DEFAULT, 1);
    for (int i = 0; i < 6; i++) dist_enumerate(all[i], e, model);
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static const hunch_verify rules[] = {HUNCH_VERIFY_RATIO, HUNCH_VERIFY_BLOCK, HUNCH_VERIFY_TRAVERSAL};

static void check_exact(const char *drafts, hunch_verify rule, const dist *l, const dist *beside) {
    static int number;
    if (number++ % test_every(1, 3)) return;
    const hn_rng rng = explorer_rng(&explored);
    hunch_engine *e = open_rule(heads_spec(drafts), rule, beside ? 2 : 1);
    const outcome o = explore(e, l, &rng, beside);
    hunch_engine_close(&e);
    if (!(o.off < 1e-9)) fail_msg("%s, rule %d: off by %g", drafts, (int)rule, o.off);
    if (!(o.accepted > .05)) fail_msg("%s, rule %d: accepts %g", drafts, (int)rule, o.accepted);
}

/* README: "`--verify ratio`, `block` and `traversal` keep the distribution of the model exactly." */
static void test_chains_exact(void **state) {
    (void)state;
    for (int i = 0; i < 3; i += light() ? 3 : 1) {
        check_exact("eagle:@eagle1-bias-bin,depth=2", rules[i], &exact_dist, NULL);
        check_exact("eagle3:@eagle3-official-d2t,depth=2", rules[i], &half_dist, NULL);
        check_exact("eagle3:@eagle3-official-d2t,depth=2,min_p=1e-6", rules[i], &half_dist, NULL);
        check_exact("peagle:@peagle-spec-2layers,depth=2", rules[i], &exact_dist, NULL);
        check_exact("dart:@dart-d2t,depth=2", rules[i], &dart_dist, NULL);
        check_exact("dflash:@dflashmask-zlab,depth=2", rules[i], &exact_dist, NULL);
        check_exact("dspark:@dspark-windows,depth=2", rules[i], &exact_dist, NULL);
        check_exact("jetspec:@jetspec-automodel,depth=2", rules[i], &exact_dist, NULL);
        check_exact("pard:@pard-llama-tied,depth=2", rules[i], &exact_dist, NULL);
        check_exact("domino:@domino-early,depth=2,pool=60", rules[i], &exact_dist, NULL);
        check_exact("dflash2:@dflash2-zlab,depth=2,vocab=14,ids=%even.json", rules[i], &half_dist, NULL);
        check_exact("falcon:@falcon-k2,depth=3", rules[i], &exact_dist, NULL);
        check_exact("eagle:@eagle1-bias-bin,depth=2,vocab=120,ids=%even.json", rules[i], &half_dist, NULL);
        check_exact("medusa:@medusa-4heads,depth=2", rules[i], &exact_dist, NULL);
        check_exact("hydra:@hydra-prefix,depth=2", rules[i], &exact_dist, NULL);
        check_exact("mlp:@mlp-arctic-lstm,depth=2", rules[i], &exact_dist, NULL);
        if (light()) continue;
        check_exact("mlp:@mlp-tied-5,depth=2,vocab=120,ids=%even.json", rules[i], &half_dist, NULL);
        check_exact("eagle3:@eagle3-official-d2t,depth=3", rules[i], &penal_dist, NULL);
        check_exact("eagle:@eagle2-nobias-gqa,depth=2", rules[i], &three_dist, NULL);
        check_exact("eagle3:@eagle3spec-plain,depth=1", rules[i], &exact_dist, &count_dist);
    }
}

/* Siblings are drawn without replacement. */
static void test_trees_exact(void **state) {
    (void)state;
    for (int i = 0; i < 3; i += light() ? 3 : 2) {
        check_exact("eagle3:@eagle3-official-d2t,tree=#pair.json", rules[i], &half_dist, NULL);
        check_exact("eagle3:@eagle3-official-d2t,tree=#pair.json,min_p=0.2", rules[i], &half_dist, NULL);
        check_exact("peagle:@peagle-spec-2layers,tree=#pair.json", rules[i], &exact_dist, NULL);
        check_exact("dart:@dart-d2t,tree=#pair.json", rules[i], &dart_dist, NULL);
        check_exact("dflash:@dflashspec-ahead-anchor,tree=#pair.json", rules[i], &exact_dist, NULL);
        check_exact("domino:@domino-early,tree=#pair.json,pool=60", rules[i], &exact_dist, NULL);
        check_exact("dflash2:@dflash2-zlab,tree=#pair.json,vocab=14,ids=%even.json", rules[i], &exact_dist, NULL);
        check_exact("falcon:@falcon-k2,tree=#pair.json", rules[i], &exact_dist, NULL);
        check_exact("eagle3:@eagle3spec-2layers,tree=#pair.json,vocab=120,ids=%even.json", rules[i], &half_dist, NULL);
        check_exact("medusa:@medusa-4heads,tree=#pair.json", rules[i], &exact_dist, NULL);
        check_exact("hydra:@hydra-offset,tree=#pair.json", rules[i], &exact_dist, NULL);
        if (light()) continue;
        check_exact("eagle:@eagle1-bias-bin,tree=#pair.json", rules[i], &penal_dist, NULL);
        check_exact("eagle3:@eagle3-official-d2t,tree=#wide.json", rules[i], &three_dist, NULL);
    }
}

/* Drafts that are not drawn: the likeliest ones, sometimes made right. */
static void test_points_exact(void **state) {
    (void)state;
    check_exact("eagle:@eagle2-nobias-gqa,depth=2,tree=dynamic,topk=2,total=5,force=0.8", HUNCH_VERIFY_RATIO, &exact_dist, NULL);
    check_exact("dart:@dart-d2t,depth=2,tree=pruned,total=4,force=0.8", HUNCH_VERIFY_RATIO, &dart_dist, NULL);
    check_exact("eagle3:@eagle3-official-d2t,depth=3,tree=dynamic,topk=1,total=3,force=0.9", HUNCH_VERIFY_RATIO, &penal_dist,
                &count_dist);
}

/* A head with low confidence at a position drafts nothing there: the confidence depends on the tokens before it, never on the token that
 * would be drawn. Some paths end by it, and some do not. */
static void test_confidence_exact(void **state) {
    (void)state;
    static const char *const each[] = {"", ",min_confidence=0.38", ",min_confidence=1"};
    const hn_rng rng = explorer_rng(&explored);
    for (int i = 0; i < 3; i += light() ? 3 : 1) {
        double accepted[3] = {0};
        for (int k = 0; k < 3; k++) {
            char spec[200];
            snprintf(spec, sizeof spec, "dspark:@dspark-deepspec,depth=3%s", each[k]);
            hunch_engine *e = open_rule(heads_spec(spec), rules[i], 1);
            const outcome o = explore(e, &exact_dist, &rng, NULL);
            hunch_engine_close(&e);
            if (!(o.off < 1e-9)) fail_msg("%s, rule %d: off by %g", spec, (int)rules[i], o.off);
            accepted[k] = o.accepted;
        }
        if (!(accepted[2] <= 0 && accepted[1] > .05 && accepted[0] > accepted[1] + .05))
            fail_msg("rule %d: accepted %g, %g, %g", (int)rules[i], accepted[0], accepted[1], accepted[2]);
    }
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------------- */

typedef enum mistake { NONE, WARPS, DENIES, MOVES, CUTS } mistake;

static struct {
    mistake mistake;
    const hn_drafter_ops *inner;
    hn_proposal_dist dist[HN_TREE_ROWS];
    float weight[HN_TREE_ROWS][16];
    int32_t id[HN_TREE_ROWS][16];
} wrong;

/* Keeps the candidate that the head drew, but falsifies its distribution. */
static void falsify(hn_candidate *c) {
    hn_proposal_dist *q = &wrong.dist[c->row];
    assert_true(c->q && c->q->n <= 16 && c->q->id);
    *q = (hn_proposal_dist){c->q->n, wrong.id[c->row], wrong.weight[c->row]};
    for (int i = 0; i < q->n; i++) {
        wrong.weight[c->row][i] = wrong.mistake == WARPS ? c->q->weight[i] * c->q->weight[i] : c->q->weight[i];
        wrong.id[c->row][i] = wrong.mistake == MOVES ? c->q->id[q->n - 1 - i] : c->q->id[i]; /* ids of other outputs */
    }
    if (wrong.mistake == DENIES) c->without = false;
}

/* A path is cut before a token because of that token: its q is low. */
static void cut_by_value(hn_tree *t) {
    bool keep[HN_TREE_ROWS] = {true};
    for (int i = 0; i < t->n_candidates; i++) {
        const hn_candidate *c = &t->candidate[i];
        keep[c->child] = keep[c->row] && hn_proposal_probability(c->q, c->token) * 2 > 1;
    }
    hn_tree_keep(t, keep, NULL);
}

static int wrong_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    const hn_proposal_dist *own[HN_TREE_ROWS] = {NULL};
    const int before = p->tree->n_candidates, added = wrong.inner->propose(d, p, n, level);
    assert_int_equal(n, 1);
    if (wrong.mistake == CUTS && added > 0) cut_by_value(p->tree);
    for (int i = before; wrong.mistake != CUTS && i < p->tree->n_candidates; i++) {
        hn_candidate *c = &p->tree->candidate[i];
        if (!own[c->row]) {
            own[c->row] = c->q;
            falsify(c);
        }
        c->q = &wrong.dist[c->row];
        if (wrong.mistake == DENIES) c->without = false;
    }
    return added;
}

static outcome explore_wrong(const char *drafts, hunch_verify rule, const dist *l, mistake m) {
    const hn_rng rng = explorer_rng(&explored);
    hunch_engine *e = open_rule(heads_spec(drafts), rule, 1);
    hn_drafter_ops ops = *e->drafter[0].ops;
    wrong.inner = e->drafter[0].ops;
    wrong.mistake = m;
    ops.propose = wrong_propose;
    e->drafter[0].ops = &ops;
    const outcome o = explore(e, l, &rng, NULL);
    e->drafter[0].ops = wrong.inner;
    hunch_engine_close(&e);
    return o;
}

/* README: "The tests of these distributions detect a verifier or drafter that is wrong on purpose." */
static void test_wrong_dists_are_found(void **state) {
    (void)state;
    static const struct {
        const char *drafts, *what;
        hunch_verify rule;
        mistake m;
    } cases[] = {{"eagle3:@eagle3-official-d2t,depth=2", "q of another temperature", HUNCH_VERIFY_RATIO, WARPS},
                 {"eagle3:@eagle3-official-d2t,depth=2", "q of other tokens", HUNCH_VERIFY_BLOCK, MOVES},
                 {"eagle:@eagle1-bias-bin,tree=#wide.json", "without replacement, verified as with", HUNCH_VERIFY_RATIO, DENIES},
                 {"eagle:@eagle1-bias-bin,tree=#wide.json", "q of another temperature", HUNCH_VERIFY_TRAVERSAL, WARPS},
                 {"dspark:@dspark-deepspec,depth=2,min_confidence=0.38", "a cut by the drawn token", HUNCH_VERIFY_RATIO, CUTS},
                 {"dspark:@dspark-deepspec,depth=2", "a cut by the drawn token", HUNCH_VERIFY_BLOCK, CUTS}};
    for (size_t i = 0; i < (light() ? 1 : sizeof cases / sizeof *cases); i++) {
        const dist *l = cases[i].m == CUTS ? &exact_dist : &three_dist;
        const outcome right = explore_wrong(cases[i].drafts, cases[i].rule, l, NONE),
                      o = explore_wrong(cases[i].drafts, cases[i].rule, l, cases[i].m);
        assert_true(right.off < 1e-9);
        if (!(o.off > 1e-4)) fail_msg("%s: %s passes, off by %g", cases[i].drafts, cases[i].what, o.off);
    }
}

/* ---- counted ----------------------------------------------------------------------------------------------------------- */

static void check_counted(const char *drafts, hunch_verify rule) {
    static int number;
    if (number++ % test_every(1, 3)) return;
    check_counts(heads_spec(drafts), rule, &count_dist, light() ? 50 : 1000);
}

static void test_counted(void **state) {
    (void)state;
    check_counted("eagle3:@eagle3-official-d2t,depth=3", HUNCH_VERIFY_MATCH);
    check_counted("eagle3:@eagle3-official-d2t,depth=3", HUNCH_VERIFY_RATIO);
    check_counted("eagle:@eagle1-bias-bin,depth=3", HUNCH_VERIFY_BLOCK);
    check_counted("medusa:@medusa-4heads,depth=3", HUNCH_VERIFY_MATCH);
    check_counted("mlp:@mlp-tied-5,depth=3", HUNCH_VERIFY_RATIO);
    check_counted("eagle:@eagle2-nobias-gqa,depth=3,vocab=120,ids=%even.json", HUNCH_VERIFY_RATIO);
    check_counted("eagle3:@eagle3spec-plain,tree=#fork.json", HUNCH_VERIFY_TRAVERSAL);
    check_counted("eagle:@eagle2-nobias-gqa,tree=#fork.json", HUNCH_VERIFY_RATIO);
    /* drafts that are not drawn; those of a fixed shape use the text's noise, which the rule does not use */
    check_counted("eagle:@eagle2-nobias-gqa,depth=3,tree=dynamic,topk=3,total=9,force=0.8", HUNCH_VERIFY_RATIO);
    check_counted("eagle3:@eagle3-official-d2t,depth=3,force=0.7", HUNCH_VERIFY_RATIO);
    check_counted("eagle:@eagle1-bias-bin,tree=#pair.json,force=0.6", HUNCH_VERIFY_RATIO);
    check_counted("eagle3:@eagle3spec-plain,tree=#pair.json", HUNCH_VERIFY_MATCH);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains_exact), cmocka_unit_test(test_trees_exact),
                                       cmocka_unit_test(test_points_exact), cmocka_unit_test(test_confidence_exact),
                                       cmocka_unit_test(test_wrong_dists_are_found), cmocka_unit_test(test_counted)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
