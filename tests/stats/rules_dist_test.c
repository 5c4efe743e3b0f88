/* SPDX-License-Identifier: Apache-2.0 */
/* rules_dist_test.c - the distributions of ratio, block and traversal verification through the real engine on a real tiny model, with
 * a draft model that draws from its own distributions (verification.md T1, T2, T5).
 *
 *   exact     a session's random numbers are replaced by ones that take every outcome one after the other (verify/explorer_for_tests.h):
 *   the joint
 *             distribution of the first tokens, over two rounds and more, equals the product of the model's distributions up to rounding
 *   counted   the same with the engine's own random numbers, over seeds, by chi-square
 * The rules alone, on synthetic models and with many more shapes: src/verify/exact_dist_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "fixture.h"
#include "sample/chi_square.h"
#include "dist.h"
#include "explored.h"
#include "preempt_for_tests.h"

/* Two or three tokens that occur often, so that target and drafter have the same support, with different distributions. */
static const hunch_bias two[] = {{261, 14}, {378, 14}}, three[] = {{261, 14}, {378, 14}, {407, 14}};
/* Two to enumerate, three to count; with processors that read each row's own path. */
static dist exact_dist = {.prompt = {1, 403, 407, 261, 378},
                        .n_prompt = 5,
                        .top = 2,
                        .tokens = 4,
                        .params = {.temperature = 3, .top_p = 1, .bias = two, .n_bias = 2}},
           short_dist = {.prompt = {1, 403, 407, 261, 378},
                        .n_prompt = 5,
                        .top = 2,
                        .tokens = 3,
                        .params = {.temperature = 3, .top_p = 1, .bias = two, .n_bias = 2}},
           penal_dist = {.prompt = {1, 403, 407, 261, 378},
                        .n_prompt = 5,
                        .top = 2,
                        .tokens = 4,
                        .params = {.temperature = 3.5,
                                   .top_p = 1,
                                   .bias = two,
                                   .n_bias = 2,
                                   .presence_penalty = 1.1,
                                   .frequency_penalty = .4,
                                   .repetition_penalty = 1.02}},
           three_dist = {.prompt = {1, 403, 407, 261, 378},
                        .n_prompt = 5,
                        .top = 3,
                        .tokens = 3,
                        .params = {.temperature = 2.5, .top_p = 1, .bias = three, .n_bias = 3, .presence_penalty = .6}},
           count_dist = {
               .prompt = {1, 403, 407, 261, 378},
               .n_prompt = 5,
               .top = 3,
               .tokens = 4,
               .params = {.temperature = 2.5, .top_p = 1, .bias = three, .n_bias = 3, .frequency_penalty = .5}};

/* Drafts with `2of5`: the target's first two layers. */
static const char *spec(const char *form) {
    static char text[1000];
    snprintf(text, sizeof text, form, data_path("models/stories260K/stories260K.2of5.f16.gguf"));
    return text;
}

static int setup(void **state) {
    (void)state;
    dist *const all[] = {&exact_dist, &short_dist, &penal_dist, &three_dist, &count_dist};
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_rule(NULL, HUNCH_VERIFY_DEFAULT, 1);
    for (int i = 0; i < 5; i++) dist_enumerate(all[i], e, model);
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

/* ---- exact ------------------------------------------------------------------------------------------------------- */

static void check_exact(const char *drafts, hunch_verify rule, const dist *l, bool beside) {
    const hn_rng rng = explorer_rng(&explored);
    hunch_engine *e = open_rule(drafts, rule, beside ? 2 : 1);
    const outcome o = explore(e, l, &rng, beside ? &count_dist : NULL);
    hunch_engine_close(&e);
    if (!(o.off < 1e-9)) fail_msg("%s, rule %d: off by %g", drafts, (int)rule, o.off);
    if (!(o.accepted > .05)) fail_msg("%s, rule %d: accepts %g", drafts, (int)rule, o.accepted);
}

/* README: "`--verify ratio`, `block` and `traversal` keep the distribution of the model exactly." */
static void test_model_exact(void **state) {
    (void)state;
    static const hunch_verify rules[] = {HUNCH_VERIFY_RATIO, HUNCH_VERIFY_BLOCK, HUNCH_VERIFY_TRAVERSAL};
    for (int i = 0; i < 3; i++) {
        check_exact(spec("model:%s,depth=2"), rules[i], &exact_dist, false);
        if (light()) continue;
        check_exact(spec("model:%s,depth=3"), rules[i], &penal_dist, false);
        check_exact(spec("model:%s,depth=2"), rules[i], &three_dist, false);
        check_exact(spec("model:%s,depth=1"), rules[i], &exact_dist, true);
    }
}

/* So many texts, all of which have more to draft than a round has rows: each draws its share of those that are left, which depends on what
 * the others have drawn and on how near their ends are. least, most: rows that it drafts in a round. */
static void check_shares(hunch_verify rule, int texts, double least, double most) {
    const hn_rng rng = explorer_rng(&explored);
    hunch_engine *e = open_rule(spec("model:%s,depth=5"), rule, texts);
    const outcome o = explore(e, &short_dist, &rng, &count_dist);
    hunch_engine_close(&e);
    const double rows = o.rows / o.rounds;
    if (!(o.off < 1e-9)) fail_msg("rule %d, %d texts: off by %g", (int)rule, texts, o.off);
    if (!(o.accepted > .05)) fail_msg("rule %d, %d texts: accepts %g", (int)rule, texts, o.accepted);
    if (!(rows > least && rows < most)) fail_msg("rule %d, %d texts: %g rows a round", (int)rule, texts, rows);
}

/* A text alone drafts five rows; of a hundred texts 64 draft one, by turns. */
static void test_shares_exact(void **state) {
    (void)state;
    static const hunch_verify rules[] = {HUNCH_VERIFY_RATIO, HUNCH_VERIFY_BLOCK, HUNCH_VERIFY_TRAVERSAL};
    for (int i = 0; i < (light() ? 1 : 3); i++) check_shares(rules[i], 20, 1, (HN_TREE_ROWS - 20) / 20 + 1);
    for (int i = 0; i < (light() ? 1 : 3); i++) check_shares(rules[i], 100, .3, .9);
}

static void test_points_exact(void **state) {
    (void)state;
    check_exact("forced,accept=0.8,depth=2,width=2,seed=4", HUNCH_VERIFY_RATIO, &exact_dist, false);
    check_exact("forced,accept=0.5,depth=3,width=2,tree=random,seed=2", HUNCH_VERIFY_RATIO, &penal_dist, false);
    check_exact("ngram,min=1,max=2,depth=3+forced,accept=0.5,depth=2,tree=random,width=2,seed=3", HUNCH_VERIFY_RATIO,
                &exact_dist, true);
    check_exact("ngram,min=1,max=2,depth=3", HUNCH_VERIFY_MATCH, &exact_dist, false);
    check_exact("forced,accept=0.6,depth=3,width=2,tree=random,seed=4", HUNCH_VERIFY_MATCH, &penal_dist, true);
}

/* ---- drawn trees ------------------------------------------------------------------------------------------------- */

typedef enum mistake { NONE, MERGES, PRUNES, DENIES, WARPS } mistake;

/* The test's own drafter in the place of an engine's: it draws trees from distributions that depend on the last two tokens. */
static struct {
    const dist *l;
    int first[3], later[3]; /* candidates a row by level: in the first drafted round, in the others */
    bool without;
    mistake mistake;
    int drawn; /* in this round */
    float q[HN_TREE_ROWS][1024];
    hn_proposal_dist dist[HN_TREE_ROWS];
} tree_drafter;

/* Weights of the distribution's tokens after a row. */
static void tree_drafter_dist(const hn_propose *p, int row, float *q) {
    const int32_t last = p->tree->token[row],
                  before = row ? p->tree->token[p->tree->parent[row]] : p->text.token[p->text.n - 2];
    uint64_t h = (uint64_t)last * 31 + (uint64_t)before;
    memset(q, 0, sizeof tree_drafter.q[0]);
    for (int i = 0; i < tree_drafter.l->top; i++) q[tree_drafter.l->node[0].token[i]] = .2f + (float)(hn_splitmix(&h) >> 40) * 0x1p-24f;
}

/* Draws one more candidate; weight[i]: of node[0]'s i-th token, 0 if it may not be drawn again. */
static int tree_drafter_draw(const hn_drafter *d, const hn_propose *p, int row, double *weight) {
    const hunch_token *ids = tree_drafter.l->node[0].token;
    const hn_random_key key = {.seed = p->sampler->params.seed,
                               .position = (uint64_t)p->text.n - 1,
                               .purpose = HN_PURPOSE_PROPOSAL,
                               .drafter = (uint32_t)d->index,
                               .number = (uint32_t)tree_drafter.drawn++};
    const int k = hn_rng_draw(&p->sampler->rng, &key, ids, weight, tree_drafter.l->top);
    if (k < 0) return 0;
    if (tree_drafter.without) weight[k] = 0;
    if (tree_drafter.mistake == MERGES && hn_tree_child(p->tree, row, ids[k]) >= 0) return 0;
    if (tree_drafter.mistake == PRUNES && tree_drafter.q[row][ids[k]] < .6f) return 0;
    tree_drafter.dist[row] = (hn_proposal_dist){(int)(sizeof tree_drafter.q[0] / sizeof tree_drafter.q[0][0]), NULL, tree_drafter.q[row]};
    hn_tree_add_drawn(p->tree, row, ids[k], d->index, .5f, &tree_drafter.dist[row], tree_drafter.without && tree_drafter.mistake != DENIES);
    return 1;
}

static int tree_drafter_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    int added = 0;
    assert_int_equal(n, 1);
    assert_true(p->drawn);
    if (level == 0) tree_drafter.drawn = 0;
    const int branch = level > 2 ? 0 : (p->text.n - p->text.n_prompt == 1 ? tree_drafter.first : tree_drafter.later)[level];
    for (int row = 0, rows = p->tree->n_rows; row < rows; row++) {
        if (p->tree->depth[row] != level || branch == 0) continue;
        double weight[DIST_TOP];
        tree_drafter_dist(p, row, tree_drafter.q[row]);
        for (int i = 0; i < tree_drafter.l->top; i++) {
            weight[i] = (double)tree_drafter.q[row][tree_drafter.l->node[0].token[i]];
            if (tree_drafter.mistake == WARPS) weight[i] *= weight[i];
        }
        for (int c = 0; c < branch; c++) added += tree_drafter_draw(d, p, row, weight);
    }
    return added;
}

static outcome explore_tree(const dist *l, hunch_verify rule, bool without, mistake m, const int *first,
                            const int *later) {
    const hn_rng rng = explorer_rng(&explored);
    hunch_engine *e = open_rule(spec("model:%s"), rule, 1);
    hn_drafter_ops ops = *e->drafter[0].ops;
    const hn_drafter_ops *own = e->drafter[0].ops;
    hunch_model_info info;
    hunch_model_get_info(model, &info);
    assert_true(info.vocab <= (int)(sizeof tree_drafter.q[0] / sizeof tree_drafter.q[0][0]));
    ops.propose = tree_drafter_propose;
    e->drafter[0].ops = &ops;
    tree_drafter.l = l;
    tree_drafter.without = without;
    tree_drafter.mistake = m;
    memcpy(tree_drafter.first, first, sizeof tree_drafter.first);
    memcpy(tree_drafter.later, later, sizeof tree_drafter.later);
    const outcome o = explore(e, l, &rng, NULL);
    e->drafter[0].ops = own;
    hunch_engine_close(&e);
    return o;
}

static void check_tree(const char *what, outcome o) {
    if (!(o.off < 1e-9)) fail_msg("%s: off by %g", what, o.off);
    if (!(o.accepted > .5)) fail_msg("%s: accepts %g", what, o.accepted);
}

static void test_trees_exact(void **state) {
    (void)state;
    static const hunch_verify rules[] = {HUNCH_VERIFY_RATIO, HUNCH_VERIFY_TRAVERSAL};
    static const int square[] = {2, 2, 0}, wide[] = {3, 0, 0}, tail[] = {1, 2, 0}, pair[] = {2, 0, 0},
                     one[] = {1, 0, 0};
    for (int r = 0; r < 2; r++)
        for (int without = 0; without < 2; without++) {
            check_tree("tail", explore_tree(&penal_dist, rules[r], without, NONE, tail, pair));
            if (light()) continue;
            check_tree("square", explore_tree(&exact_dist, rules[r], without, NONE, square, one));
            check_tree("wide", explore_tree(&three_dist, rules[r], without, NONE, wide, one));
        }
}

/* ---- mistakes through the engine --------------------------------------------------------------------------------- */

/* README: "The tests of these distributions detect a verifier or drafter that is wrong on purpose." */
static void test_wrong_drafters_are_found(void **state) {
    (void)state;
    static const struct {
        mistake m;
        bool without;
        int first[3];
        const char *what;
    } wrong[] = {{MERGES, false, {2, 0, 0}, "a drawn candidate merged with another"},
                 {PRUNES, false, {1, 1, 0}, "a candidate pruned by its own value"},
                 {DENIES, true, {2, 0, 0}, "without replacement, verified as with"},
                 {WARPS, false, {1, 1, 0}, "q of another temperature"}};
    for (int i = 0; i < (light() ? 2 : 4); i++) {
        const outcome right = explore_tree(&three_dist, HUNCH_VERIFY_RATIO, wrong[i].without, NONE, wrong[i].first,
                                           wrong[i].first),
                      o = explore_tree(&three_dist, HUNCH_VERIFY_RATIO, wrong[i].without, wrong[i].m, wrong[i].first,
                                       wrong[i].first);
        assert_true(right.off < 1e-9);
        if (!(o.off > 1e-4)) fail_msg("%s passes, off by %g", wrong[i].what, o.off);
    }
}

/* Random numbers that are keyed by the position of the candidate's token, regardless of the round. */
static bool accept_by_position(void *ctx, const hn_random_key *key, double p) {
    hn_random_key k = *key;
    k.position += k.number + 1;
    k.number = 0;
    return explorer_accept(ctx, &k, p);
}

static void test_rng_by_position_are_found(void **state) {
    (void)state;
    hn_rng rng = explorer_rng(&explored);
    rng.accept = accept_by_position;
    hunch_engine *e = open_rule(spec("model:%s,depth=2"), HUNCH_VERIFY_BLOCK, 1);
    const outcome block = explore(e, &exact_dist, &rng, NULL);
    hunch_engine_close(&e);
    e = open_rule(spec("model:%s,depth=2"), HUNCH_VERIFY_RATIO, 1);
    const outcome ratio = explore(e, &exact_dist, &rng, NULL); /* uses no random number after the accepted path */
    hunch_engine_close(&e);
    if (!(block.off > 1e-4)) fail_msg("block with random numbers keyed by position passes, off by %g", block.off);
    assert_true(ratio.off < 1e-9);
}

/* ---- counted ----------------------------------------------------------------------------------------------------- */

static void check_counted(const char *drafts, hunch_verify rule) {
    check_counts(drafts, rule, &count_dist, light() ? 100 : 2000);
}

static void test_counted(void **state) {
    (void)state;
    check_counted(spec("model:%s,depth=3"), HUNCH_VERIFY_MATCH);
    check_counted(spec("model:%s,depth=3"), HUNCH_VERIFY_RATIO);
    check_counted(spec("model:%s,depth=3"), HUNCH_VERIFY_BLOCK);
    check_counted(spec("model:%s,depth=3"), HUNCH_VERIFY_TRAVERSAL);
    check_counted("forced,accept=0.6,depth=3,width=2,tree=random,seed=9", HUNCH_VERIFY_RATIO);
}

/* Several texts at once share the rows of a round: of drawn candidates each has the same part, here one row of the three that its drafter
 * would draw; with 256 texts there is none as long as all of them decode. */
static void test_counted_together(void **state) {
    (void)state;
    static const hunch_verify rules[] = {HUNCH_VERIFY_RATIO, HUNCH_VERIFY_BLOCK, HUNCH_VERIFY_TRAVERSAL};
    const int n = light() ? 192 : 1920;
    for (int i = 0; i < 3; i++) {
        const uint64_t accepted = check_counts_of(spec("model:%s,depth=3"), rules[i], &count_dist, n, 48);
        if (accepted < (uint64_t)n / 4) fail_msg("rule %d: %d accepted", (int)rules[i], (int)accepted);
    }
    check_counts_of(spec("model:%s,depth=3"), HUNCH_VERIFY_RATIO, &count_dist, light() ? 256 : 1536, 256);
    check_counts_of(spec("model:%s,depth=3"), HUNCH_VERIFY_MATCH, &count_dist, light() ? 256 : 1536, 256);
}

/* With the target as drafter both distributions are equal: everything is accepted. */
static void test_the_target_itself(void **state) {
    (void)state;
    static const hunch_verify rules[] = {HUNCH_VERIFY_MATCH, HUNCH_VERIFY_RATIO, HUNCH_VERIFY_BLOCK,
                                         HUNCH_VERIFY_TRAVERSAL};
    char self[600];
    snprintf(self, sizeof self, "model:%s,depth=3", data_path("models/stories260K/stories260K.f32.gguf"));
    for (int i = 0; i < 4; i++) {
        hunch_engine *e = open_rule(self, rules[i], 1);
        dist l = count_dist;
        l.params.top_k = 0;
        for (uint64_t seed = 0; seed < 5; seed++) {
            hunch_session_state st;
            hunch_session *s = open_text(e, &l, seed, ANSWER);
            while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
            hunch_session_get(s, &st);
            if (st.accepted != st.drafted || st.drafted < 6)
                fail_msg("rule %d, seed %d: %d of %d accepted", (int)rules[i], (int)seed, (int)st.accepted,
                         (int)st.drafted);
            hunch_session_close(&s);
        }
        hunch_engine_close(&e);
    }
}

/* A draft is accepted with a probability of the overlap of the two distributions: detects a q of a wrong row, history or temperature
 * even if no other test does. */
static void test_acceptance(void **state) {
    (void)state;
    dist l = three_dist;
    double want = 0;
    l.tokens = 2;
    hunch_model *draft = open_model(spec("%s"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_model_info info;
    hunch_model_get_info(draft, &info);
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = CONTEXT;
    hunch_engine *plain = open_rule(NULL, HUNCH_VERIFY_DEFAULT, 1), *e = open_engine_with(draft, NULL, o);
    dist_enumerate(&l, plain, model);
    for (int i = 0; i < l.top; i++) {
        hunch_token ids[DIST_PROMPT + 1];
        memcpy(ids, l.prompt, sizeof l.prompt);
        ids[l.n_prompt] = l.node[0].token[i];
        const dist_node p = l.node[1 + i], q = dist_after(&l, e, info.vocab, ids, l.n_prompt + 1, l.n_prompt + 1);
        for (int x = 0; x < l.top; x++)
            for (int y = 0; y < l.top; y++)
                if (p.token[x] == q.token[y]) want += l.node[0].p[i] * fmin(p.p[x], q.p[y]);
    }
    hunch_engine_close(&e);
    hunch_engine_close(&plain);
    hunch_model_close(&draft);
    const hn_rng rng = explorer_rng(&explored);
    e = open_rule(spec("model:%s,depth=1"), HUNCH_VERIFY_RATIO, 1);
    const outcome got = explore(e, &l, &rng, NULL);
    hunch_engine_close(&e);
    assert_true(want > .1 && want < .95);
    if (!(fabs(got.accepted - want) < 1e-9)) fail_msg("accepts %.9f, the distributions overlap in %.9f", got.accepted, want);
}

/* ---- a seed -------------------------------------------------------------------------------------------------------------- */

enum { TEXTS = 4, N_TOKENS = 170 };

/* Answers by seed; preempting: the youngest loses its place again and again. Returns how often sessions were preempted. */
static uint64_t generate_all(hunch_engine *e, bool preempting, hunch_token emitted[TEXTS][N_TOKENS]) {
    hunch_session *s[TEXTS];
    uint64_t preempted = 0;
    for (int i = 0; i < TEXTS; i++) s[i] = open_text(e, &count_dist, 100 + (uint64_t)i, N_TOKENS);
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        must(hunch_engine_round(e, err));
        if (preempting && round % 8 == 0) preempt_youngest(e);
    }
    for (int i = 0; i < TEXTS; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        if (st.finish != HUNCH_FINISH_LENGTH) fail_msg("%s", st.error.message);
        assert_int_equal(st.n_tokens, N_TOKENS);
        memcpy(emitted[i], st.tokens, sizeof emitted[i]);
        preempted += st.preempted;
        hunch_session_close(&s[i]);
    }
    return preempted;
}

/* Under the rules that do not follow the target's noise a seed still means one text, with any other texts in the same passes. */
static void test_a_seed_is_a_text(void **state) {
    (void)state;
    static const hunch_verify rules[] = {HUNCH_VERIFY_RATIO, HUNCH_VERIFY_BLOCK, HUNCH_VERIFY_TRAVERSAL};
    for (int i = light() ? 2 : 0; i < 3; i++) {
        hunch_token alone[TEXTS][N_TOKENS], other[TEXTS][N_TOKENS];
        hunch_engine_options o;
        hunch_engine_options_defaults(&o);
        o.context = 3 * CONTEXT;
        o.verify = rules[i];
        hunch_engine *e = open_engine_with(model, spec("model:%s,depth=3"), o);
        generate_all(e, false, alone);
        hunch_engine_close(&e);
        o.parallel = 4;
        o.page_rows = 16;
        for (int tight = 0; tight < 2; tight++) {
            o.pool_rows = tight ? 3 * CONTEXT : 0; /* of four texts, of one */
            e = open_engine_with(model, spec("model:%s,depth=3"), o);
            const uint64_t preempted = generate_all(e, tight, other);
            hunch_engine_close(&e);
            assert_int_equal(preempted > 0, tight);
            assert_memory_equal(alone, other, sizeof alone);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_exact),
        cmocka_unit_test(test_shares_exact),
        cmocka_unit_test(test_points_exact),
        cmocka_unit_test(test_trees_exact),
        cmocka_unit_test(test_wrong_drafters_are_found),
        cmocka_unit_test(test_rng_by_position_are_found),
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_counted_together),
        cmocka_unit_test(test_the_target_itself),
        cmocka_unit_test(test_acceptance),
        cmocka_unit_test(test_a_seed_is_a_text),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
