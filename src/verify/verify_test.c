/* SPDX-License-Identifier: Apache-2.0 */
/* verify_test.c - greedy and match on a synthetic model: whatever the tree has, the emitted text is that of plain decoding. Then
 * the rules for given trees, drafter_of, and failures.
 *
 * generate() is an engine's round in twenty lines: propose, verify, append. The same statistics are then applied to verifiers
 * that are wrong on purpose, which they must reject. The distributions of the other rules: exact_dist_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "sample/chi_square.h"
#include "verify/toy_for_tests.h"

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* The token after `row`, drawn wrongly; replaces the verifier's own draw. */
typedef int32_t (*wrong_draw)(const hn_walk *k, int row);
/* Fills the tree of a round. ctx is the proposer's own. */
typedef void (*proposer)(void *ctx, const int32_t *text, int n, hn_tree *t);

typedef struct setup {
    toy_model m;
    hunch_sampling params;
    wrong_draw wrong; /* NULL: hn_verify_tree */
    proposer propose;
    void *ctx;
    const hn_rng *rng; /* NULL: Philox */
} setup;

/* hn_verify_tree's walk with another draw. */
static void walk_wrong(wrong_draw wrong, const hn_walk *k) {
    for (int row = 0;;) {
        const int32_t token = wrong(k, row);
        const int child = hn_tree_child(k->t, row, token);
        if (child < 0) {
            hn_verdict_path(k, row);
            k->out->next = token;
            return;
        }
        row = child;
    }
}

/* Emits at least n_new tokens after the prompt into out; returns the number of rounds. */
static int generate(const setup *u, hn_sampler *s, int n_new, int32_t *out) {
    toy_pass p = {.m = &u->m, .n = TOY_PROMPT, .hint = u->params.seed % 2};
    hn_tree t;
    hn_verifier *w = NULL;
    hn_rule rule;
    p.t = &t;
    memcpy(p.text, toy_prompt, sizeof toy_prompt);
    assert_int_equal(hn_verifier_open(&w, u->m.vocab, NULL), HUNCH_OK);
    assert_int_equal(hn_rule_choose(HUNCH_VERIFY_DEFAULT, NULL, &u->params, &rule, NULL), HUNCH_OK);
    int rounds = 0;
    for (; p.n < TOY_PROMPT + n_new; rounds++) {
        hn_tree_reset(&t, p.text[p.n - 1], TOY_PROMPT + n_new + 16 - p.n);
        if (u->propose) u->propose(u->ctx, p.text, p.n, &t);
        assert_true(hn_tree_valid(&t));
        hn_verdict v;
        hunch_error err = {0};
        const hn_verification ver = toy_verification(&p, rule, s);
        const hn_walk k = {w, &t, &ver, &v, &err};
        if (u->wrong)
            walk_wrong(u->wrong, &k);
        else if (hn_verify_tree(w, &t, &ver, &v, &err))
            fail_msg("%s", err.message);
        toy_check_verdict(&t, &v);
        assert_int_equal(hn_tree_child(&t, v.next_row, v.next), -1);
        for (int i = 0; i < v.n_accepted; i++) p.text[p.n++] = t.token[v.path[i]];
        p.text[p.n++] = v.next;
    }
    memcpy(out, p.text + TOY_PROMPT, (size_t)n_new * sizeof *out);
    hn_verifier_close(&w);
    return rounds;
}

static void generate_once(const setup *u, int n_new, int32_t *out) {
    hn_sampler s;
    assert_int_equal(hn_sampler_init(&s, &u->params, u->m.vocab, NULL), HUNCH_OK);
    if (u->rng) s.rng = *u->rng;
    generate(u, &s, n_new, out);
    hn_sampler_fini(&s);
}

/* ---- proposers --------------------------------------------------------------------------------------------------- */

typedef struct shape {
    uint64_t seed;
    int vocab, kind; /* 0: chain, 1: every token at every row, 2: any tree with doubles and two drafters, 3: none */
} shape;

static void propose_shape(void *ctx, const int32_t *text, int n, hn_tree *t) {
    (void)text, (void)n;
    shape *s = ctx;
    int adds = s->kind == 3 ? 0 : s->kind == 1 ? HN_TREE_ROWS : (int)(hn_splitmix(&s->seed) % 40);
    for (int i = 0, tip = 0; i < adds; i++) {
        int32_t token = (int32_t)(hn_splitmix(&s->seed) % (uint64_t)s->vocab);
        if (s->kind == 0) {
            tip = hn_tree_add(t, tip, token, 0, .5f);
            if (tip < 0) return;
        } else if (s->kind == 1) {
            for (int x = 0; i < t->n_rows && x < s->vocab; x++) hn_tree_add(t, i, x, 0, .5f);
        } else {
            hn_tree_add(t, (int)(hn_splitmix(&s->seed) % (uint64_t)t->n_rows), token, (int)(hn_splitmix(&s->seed) % 2),
                        (float)(hn_splitmix(&s->seed) % 3));
        }
    }
}

/* A drafter that knows the text: in each of `width` chains each token is right with probability `right`. */
typedef struct oracle {
    const int32_t *text; /* after the prompt */
    int n, depth, width, vocab;
    double right;
    uint64_t seed;
} oracle;

static void propose_oracle(void *ctx, const int32_t *text, int n, hn_tree *t) {
    (void)text;
    oracle *o = ctx;
    for (int w = 0; w < o->width; w++)
        for (int i = 0, row = 0; i < o->depth && n - TOY_PROMPT + i < o->n && row >= 0; i++) {
            const bool right = (double)(hn_splitmix(&o->seed) >> 11) * 0x1p-53 < o->right;
            row = hn_tree_add(t, row, (o->text[n - TOY_PROMPT + i] + !right) % o->vocab, w % 2, .5f);
        }
}

/* ---- one seed, one text ------------------------------------------------------------------------------------------ */

static const hunch_sampling PARAMS[] = {
    {.temperature = 0, .top_p = 1, .seed = 1},
    {.temperature = 0, .top_k = 2, .top_p = .5, .min_p = .1, .seed = 8},
    {.temperature = 1, .top_p = 1, .seed = 2},
    {.temperature = .6, .top_p = 1, .seed = 3},
    {.temperature = 1, .top_k = 2, .top_p = 1, .seed = 4},
    {.temperature = 1, .top_p = .7, .seed = 5},
    {.temperature = 1, .top_p = 1, .min_p = .3, .seed = 6},
    {.temperature = 1.3, .top_k = 4, .top_p = .9, .min_p = .05, .seed = 7},
    {.temperature = 1, .top_p = 1, .seed = 9, .presence_penalty = 1, .dry_multiplier = .5},
    {.temperature = .9, .top_p = 1, .seed = 10, .repetition_penalty = 1.4, .xtc_probability = .5, .xtc_threshold = .2}};
enum { N_PARAMS = sizeof PARAMS / sizeof PARAMS[0], COLD = 2, NEW = 60 };

static void same_text_with_shapes(setup u, const int32_t *plain) {
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < 6; i++) {
            shape s = {.seed = (uint64_t)(100 * kind + i), .vocab = u.m.vocab, .kind = kind};
            int32_t text[NEW];
            u.propose = propose_shape;
            u.ctx = &s;
            generate_once(&u, NEW, text);
            assert_memory_equal(text, plain, sizeof text);
        }
}

static void same_text_with_oracles(setup u, const int32_t *plain) {
    for (int i = 0; i < 6; i++) {
        oracle o = {.text = plain,
                    .n = NEW,
                    .depth = 1 + i,
                    .width = 1 + i % 3,
                    .vocab = u.m.vocab,
                    .right = .3 + .1 * i,
                    .seed = (uint64_t)i};
        int32_t text[NEW];
        u.propose = propose_oracle;
        u.ctx = &o;
        generate_once(&u, NEW, text);
        assert_memory_equal(text, plain, sizeof text);
    }
}

/* README: "By default a seed gives one text, whichever drafter is used." */
static void test_same_seed_same_text(void **state) {
    (void)state;
    const int times = toy_light() ? 2 : 4, rounds = times * N_PARAMS;
    int different = 0;
    for (int i = 0; i < rounds; i++) {
        setup u = {.m = {3 + i % 3, i % 2, (uint64_t)i, NULL}, .params = PARAMS[i % N_PARAMS]};
        int32_t plain[NEW], again[NEW];
        generate_once(&u, NEW, plain);
        same_text_with_shapes(u, plain);
        same_text_with_oracles(u, plain);
        u.params.seed += 1000;
        generate_once(&u, NEW, again);
        different += memcmp(plain, again, sizeof plain) != 0;
        if (u.params.temperature == 0) assert_memory_equal(plain, again, sizeof plain);
    }
    assert_in_range(different, times * (N_PARAMS - COLD - 2),
                    times * (N_PARAMS - COLD)); /* a seed matters unless greedy */
}

/* The drafts of an oracle that is always right are all accepted, those of one that is always wrong never. */
static void test_extremes(void **state) {
    (void)state;
    for (int i = 0; i < N_PARAMS; i++) {
        setup u = {.m = {4, false, 3, NULL}, .params = PARAMS[i]};
        int32_t plain[NEW], text[NEW];
        generate_once(&u, NEW, plain);
        for (int right = 0; right < 2; right++) {
            oracle o = {.text = plain, .n = NEW, .depth = 4, .width = 1, .vocab = 4, .right = right};
            hn_sampler s;
            u.propose = propose_oracle;
            u.ctx = &o;
            assert_int_equal(hn_sampler_init(&s, &u.params, 4, NULL), HUNCH_OK);
            assert_int_equal(generate(&u, &s, NEW, text), right ? NEW / 5 : NEW);
            assert_memory_equal(text, plain, sizeof text);
            hn_sampler_fini(&s);
        }
    }
}

/* ---- the distribution of the emitted tokens ------------------------------------------------------------------------------- */

enum { V = 4, DIST = 3, CELLS = V * V * V };

static bool dist_holds(setup u) {
    double p[CELLS];
    long counts[CELLS] = {0};
    const toy plain = {.m = u.m, .params = u.params, .tokens = DIST};
    toy_product(&plain, p);
    hn_sampler s;
    const int draws = toy_light() ? 8000 : 40000;
    assert_int_equal(hn_sampler_init(&s, &u.params, V, NULL), HUNCH_OK);
    for (int i = 0; i < draws; i++) {
        int32_t t[DIST];
        s.params.seed = u.params.seed + (uint64_t)i;
        generate(&u, &s, DIST, t);
        counts[(t[0] * V + t[1]) * V + t[2]]++;
    }
    hn_sampler_fini(&s);
    return chi_square_fits(counts, p, CELLS, draws);
}

/* A fixed proposal in every round: a chain of two, or a tree. */
static void propose_chain(void *ctx, const int32_t *text, int n, hn_tree *t) {
    (void)ctx, (void)text;
    int a = hn_tree_add(t, 0, n % V, 0, .5f);
    hn_tree_add(t, a, (n + 1) % V, 0, .5f);
}

static void propose_bush(void *ctx, const int32_t *text, int n, hn_tree *t) {
    (void)ctx, (void)n;
    int a = hn_tree_add(t, 0, 0, 0, .5f), b = hn_tree_add(t, 0, 2, 0, .5f);
    hn_tree_add(t, 0, 2, 1, .9f);
    hn_tree_add(t, a, text[0], 0, .5f);
    hn_tree_add(t, b, 3, 1, .5f);
    hn_tree_add(t, b, 1, 0, .5f);
}

static const proposer PROPOSERS[] = {NULL, propose_chain, propose_bush};
static const hunch_sampling DISTS[] = {{.temperature = 1, .top_p = 1, .seed = 77},
                                      {.temperature = .8, .top_k = 3, .top_p = 1, .seed = 78},
                                      {.temperature = 1.4, .top_p = .85, .min_p = .02, .seed = 79}};

static void test_dist(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            setup u = {.m = {V, false, 9, NULL}, .params = DISTS[k], .propose = PROPOSERS[i]};
            assert_true(dist_holds(u));
        }
}

/* ---- verifiers that are wrong on purpose ------------------------------------------------------------------------- */

/* The draw of a row's logits with the noise of so many tokens later. */
static int32_t draw_later(const hn_walk *k, int row, int later) {
    int32_t path[HN_TREE_ROWS];
    hn_history h = hn_row_history(k, row, path);
    h.n += later; /* the toy's distributions here do not depend on the history */
    return hn_sampler_draw(k->v->sampler, k->v->rows.logits(k->v->rows.ctx, row), &h, -1);
}

static int32_t plain_draw(const hn_walk *k, int row) {
    return draw_later(k, row, 0);
}

static double likelihood(const hn_walk *k, int row, int32_t token) {
    hn_residual r;
    assert_int_equal(hn_residual_push(k, row, &r), HUNCH_OK);
    const double p = hn_residual_p(k, &r, token);
    hn_residual_pop(k, &r);
    return p;
}

/* Accepts a candidate if it is likely enough under the target. */
static int32_t draw_if_likely(const hn_walk *k, int row) {
    const int c = k->t->first[row];
    return c >= 0 && likelihood(k, row, k->t->candidate[c].token) > .3 ? k->t->candidate[c].token : plain_draw(k, row);
}

/* Accepts the first candidate with P, but after a rejection draws from P again instead of the residual. */
static int32_t draw_without_residual(const hn_walk *k, int row) {
    const int c = k->t->first[row];
    if (c >= 0 && hn_candidate_accept(k, &k->t->candidate[c], likelihood(k, row, k->t->candidate[c].token)))
        return k->t->candidate[c].token;
    return plain_draw(k, row);
}

/* One noise for all rows of a round. */
static int32_t draw_with_root_noise(const hn_walk *k, int row) {
    return draw_later(k, row, -k->t->depth[row]);
}

/* The logits of the row before. */
static int32_t draw_from_parent(const hn_walk *k, int row) {
    return draw_later(k, row ? k->t->parent[row] : 0, row ? 1 : 0);
}

/* A right draw, but a candidate that was not drawn gets a second chance. */
static int32_t draw_twice(const hn_walk *k, int row) {
    const int32_t token = plain_draw(k, row);
    return k->t->first[row] < 0 || hn_tree_child(k->t, row, token) >= 0 ? token : draw_later(k, row, 1000);
}

/* Lossless in distribution, but what was drafted changes the noise: a seed no longer means a text. */
static int32_t draw_by_tree(const hn_walk *k, int row) {
    return draw_later(k, row, k->t->first[row] < 0 ? 0 : 1000);
}

static void test_wrong_verifiers_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        wrong_draw draw;
    } wrong[] = {{"if likely", draw_if_likely},
                 {"without residual", draw_without_residual},
                 {"root noise", draw_with_root_noise},
                 {"parent's logits", draw_from_parent},
                 {"twice", draw_twice}};
    for (int i = 1; i < 3; i++) {
        setup u = {.m = {V, false, 9, NULL}, .params = DISTS[0], .wrong = plain_draw, .propose = PROPOSERS[i]};
        assert_true(dist_holds(u)); /* the test setup itself passes */
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            u.wrong = wrong[k].draw;
            if (dist_holds(u)) fail_msg("the verifier '%s' passes with proposer %d", wrong[k].name, i);
        }
    }
}

static void test_a_draft_that_changes_the_text_is_refused(void **state) {
    (void)state;
    static const wrong_draw wrong[] = {draw_by_tree, draw_if_likely, draw_with_root_noise};
    setup u = {.m = {V, false, 9, NULL}, .params = DISTS[0]};
    int32_t plain[NEW], text[NEW];
    generate_once(&u, NEW, plain);
    u.propose = propose_chain;
    u.wrong = plain_draw;
    generate_once(&u, NEW, text);
    assert_memory_equal(text, plain, sizeof text);
    for (int i = 0; i < 3; i++) {
        u.wrong = wrong[i];
        generate_once(&u, NEW, text);
        assert_memory_not_equal(text, plain, sizeof text);
    }
}

/* ---- exact enumeration: the random numbers decide the text, the tree never does ------------------------------------------- */

typedef struct script {
    int32_t winner[TOY_TEXT]; /* by position */
} script;

/* The scripted token's random number makes it win any race against a token of probability above 1e-10. */
static double uniform_script(void *ctx, const hn_random_key *key) {
    const script *s = ctx;
    assert_int_equal(key->purpose, HN_PURPOSE_TARGET);
    return s->winner[key->position] == (int32_t)key->token ? 1 - 0x1p-53 : 0x1p-53;
}

/* Every outcome of the random numbers over LAW positions, that is every branch of the distribution with its probability, gives its own
 * text whatever the tree is; so the distribution of the text is the product distribution, exactly. */
static void test_enumerated(void **state) {
    (void)state;
    for (int cell = 0; cell < CELLS; cell++) {
        script sc;
        for (int i = 0, rest = cell; i < TOY_TEXT; i++) {
            sc.winner[i] = i < TOY_PROMPT || i >= TOY_PROMPT + DIST ? 0 : rest % V;
            if (i >= TOY_PROMPT && i < TOY_PROMPT + DIST) rest /= V;
        }
        const hn_rng rng = {uniform_script, NULL, NULL, &sc};
        for (int kind = 0; kind < 4; kind++)
            for (uint64_t i = 0; i < 10; i++) {
                shape sh = {.seed = i, .vocab = V, .kind = kind};
                setup u = {.m = {V, false, i, NULL},
                           .params = {.temperature = 1, .top_p = 1, .seed = i},
                           .propose = propose_shape,
                           .ctx = &sh,
                           .rng = &rng};
                int32_t text[DIST];
                generate_once(&u, DIST, text);
                assert_memory_equal(text, sc.winner + TOY_PROMPT, sizeof text);
            }
    }
}

/* With nothing drafted every rule is plain decoding: the same text, not only the same distribution. */
static void test_the_root_alone(void **state) {
    (void)state;
    toy_model m = {.vocab = V, .salt = 12};
    hn_sampler s;
    hn_verifier *w = NULL;
    assert_int_equal(hn_verifier_open(&w, V, NULL), HUNCH_OK);
    assert_int_equal(hn_sampler_init(&s, &DISTS[0], V, NULL), HUNCH_OK);
    for (uint64_t seed = 0; seed < 20; seed++) {
        hn_tree t;
        toy_pass p = {.m = &m, .t = &t, .n = TOY_PROMPT};
        hn_verdict plain, v;
        memcpy(p.text, toy_prompt, sizeof toy_prompt);
        s.params.seed = seed;
        hn_tree_reset(&t, 2, 8);
        hn_verification ver = toy_verification(&p, HN_RULE_MATCH, &s);
        assert_int_equal(hn_verify_tree(w, &t, &ver, &plain, NULL), HUNCH_OK);
        for (hn_rule rule = HN_RULE_RATIO; rule <= HN_RULE_TOP_M; rule++) {
            ver.rule = rule;
            assert_int_equal(hn_verify_tree(w, &t, &ver, &v, NULL), HUNCH_OK);
            assert_true(v.n_accepted == 0 && v.next_row == 0 && v.next == plain.next);
        }
    }
    hn_sampler_fini(&s);
    hn_verifier_close(&w);
}

/* ---- which rule, for which trees --------------------------------------------------------------------------------- */

static const hunch_sampling cold = {.temperature = 0, .top_p = 1}, warm = {.temperature = .5, .top_p = 1};

static void chosen(hunch_verify option, hunch_lossy lossy, const hunch_sampling *p, hn_rule want) {
    hn_rule r;
    hunch_error err = {0};
    if (hn_rule_choose(option, &lossy, p, &r, &err)) fail_msg("%s", err.message);
    assert_int_equal(r, want);
}

static void refused(hunch_verify option, hunch_lossy lossy, const hunch_sampling *p, const char *why) {
    hn_rule r;
    hunch_error err = {0};
    assert_int_equal(hn_rule_choose(option, &lossy, p, &r, &err), HUNCH_USAGE);
    if (!strstr(err.message, why)) fail_msg("'%s' does not say '%s'", err.message, why);
}

static void test_choose(void **state) {
    (void)state;
    const hunch_lossy none = {HUNCH_LOSSLESS, 0, 0}, lenience = {HUNCH_LOSSY_LENIENCE, .5, 0},
                      typical = {HUNCH_LOSSY_TYPICAL, .3, .09}, top = {HUNCH_LOSSY_TOP_M, 3, 0};
    static const hn_rule rules[] = {HN_RULE_MATCH, 0, HN_RULE_MATCH, HN_RULE_RATIO, HN_RULE_BLOCK, HN_RULE_TRAVERSAL};
    for (hunch_verify v = HUNCH_VERIFY_DEFAULT; v <= HUNCH_VERIFY_TRAVERSAL; v++) {
        chosen(v, none, &cold, HN_RULE_GREEDY);
        if (v != HUNCH_VERIFY_GREEDY) chosen(v, none, &warm, rules[v]);
        if (v != HUNCH_VERIFY_DEFAULT)
            refused(v, lenience, &warm, hn_rule_name(v == HUNCH_VERIFY_GREEDY ? HN_RULE_GREEDY : rules[v]));
    }
    refused(HUNCH_VERIFY_GREEDY, none, &warm, "temperature 0.5");
    refused((hunch_verify)17, none, &warm, "17");
    chosen(HUNCH_VERIFY_DEFAULT, lenience, &warm, HN_RULE_LENIENCE);
    chosen(HUNCH_VERIFY_DEFAULT, lenience, &cold, HN_RULE_LENIENCE);
    chosen(HUNCH_VERIFY_DEFAULT, typical, &warm, HN_RULE_TYPICAL);
    chosen(HUNCH_VERIFY_DEFAULT, typical, &cold, HN_RULE_GREEDY);
    chosen(HUNCH_VERIFY_DEFAULT, top, &warm, HN_RULE_TOP_M);
    chosen(HUNCH_VERIFY_DEFAULT, top, &cold, HN_RULE_TOP_M);
    static const hunch_lossy wrong[] = {{HUNCH_LOSSY_LENIENCE, 0, 0},   {HUNCH_LOSSY_LENIENCE, 1.1, 0},
                                        {HUNCH_LOSSY_LENIENCE, NAN, 0}, {HUNCH_LOSSY_TYPICAL, 0, .1},
                                        {HUNCH_LOSSY_TYPICAL, .1, 2},   {HUNCH_LOSSY_TYPICAL, .1, NAN},
                                        {HUNCH_LOSSY_TOP_M, 0, 0},      {HUNCH_LOSSY_TOP_M, 1.5, 0},
                                        {HUNCH_LOSSY_TOP_M, 1e9, 0},    {(hunch_lossy_rule)9, 1, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refused(HUNCH_VERIFY_DEFAULT, wrong[i], &warm, "expected");
        refused(HUNCH_VERIFY_DEFAULT, wrong[i], &cold, "lossy");
    }
    assert_true(hn_rule_wants_dist(HN_RULE_RATIO) && hn_rule_wants_dist(HN_RULE_BLOCK) &&
                hn_rule_wants_dist(HN_RULE_TRAVERSAL));
    assert_false(hn_rule_wants_dist(HN_RULE_GREEDY) || hn_rule_wants_dist(HN_RULE_MATCH));
}

static bool checks(hn_rule rule, const hn_rule_drafter *d, int n) {
    hunch_error err = {0};
    if (hn_rule_check(rule, d, n, &err) == HUNCH_OK) return true;
    assert_int_equal(err.status, HUNCH_USAGE);
    assert_non_null(strstr(err.message, hn_rule_name(rule)));
    for (int i = 0; i < n; i++) assert_non_null(strstr(err.message, d[i].name));
    return false;
}

static void test_check(void **state) {
    (void)state;
    const hn_rule_drafter guess = {"ngram", false, true}, chain = {"model:a", true, false},
                          tree = {"model:b,width=2", true, true};
    const hn_rule_drafter two[] = {guess, guess}, mixed[] = {chain, guess}, dists[] = {chain, chain};
    static const hn_rule any[] = {HN_RULE_GREEDY, HN_RULE_MATCH, HN_RULE_LENIENCE, HN_RULE_TYPICAL, HN_RULE_TOP_M};
    for (int i = 0; i < 5; i++)
        assert_true(checks(any[i], mixed, 2) && checks(any[i], dists, 2) && checks(any[i], &tree, 1));
    for (hn_rule r = HN_RULE_GREEDY; r <= HN_RULE_TOP_M; r++) assert_true(checks(r, NULL, 0));
    assert_true(checks(HN_RULE_RATIO, two, 2) && checks(HN_RULE_RATIO, &chain, 1) && checks(HN_RULE_RATIO, &tree, 1));
    assert_false(checks(HN_RULE_RATIO, mixed, 2) || checks(HN_RULE_RATIO, dists, 2));
    assert_true(checks(HN_RULE_BLOCK, &chain, 1));
    assert_false(checks(HN_RULE_BLOCK, &tree, 1) || checks(HN_RULE_BLOCK, &guess, 1) || checks(HN_RULE_BLOCK, dists, 2));
    assert_true(checks(HN_RULE_TRAVERSAL, &chain, 1) && checks(HN_RULE_TRAVERSAL, &tree, 1));
    assert_false(checks(HN_RULE_TRAVERSAL, &guess, 1) || checks(HN_RULE_TRAVERSAL, mixed, 2));
}

static void fits(const hn_tree *t, bool ratio, bool block, bool traversal) {
    static const hn_rule any[] = {HN_RULE_GREEDY, HN_RULE_MATCH, HN_RULE_LENIENCE, HN_RULE_TYPICAL, HN_RULE_TOP_M};
    for (int i = 0; i < 5; i++) assert_true(hn_rule_fits(any[i], t));
    assert_int_equal(hn_rule_fits(HN_RULE_RATIO, t), ratio);
    assert_int_equal(hn_rule_fits(HN_RULE_BLOCK, t), block);
    assert_int_equal(hn_rule_fits(HN_RULE_TRAVERSAL, t), traversal);
}

static void test_fits(void **state) {
    (void)state;
    const float flat[V] = {1, 1, 1, 1}, steep[V] = {1, 2, 3, 4};
    const hn_proposal_dist dists[] = {{V, NULL, flat}, {V, NULL, steep}}, *const q = &dists[0], *const other = &dists[1];
    hn_tree t;
    hn_tree_reset(&t, 0, 8);
    fits(&t, true, true, true);
    const int a = hn_tree_add_drawn(&t, 0, 1, 0, .5f, q, false);
    hn_tree_add_drawn(&t, a, 2, 0, .5f, other, false);
    fits(&t, true, true, true);
    hn_tree_add_drawn(&t, a, 2, 0, .5f, other, false); /* a chain of rows, but a choice at one */
    fits(&t, true, false, true);
    hn_tree_add_drawn(&t, a, 1, 0, .5f, q, false); /* of another distribution */
    fits(&t, false, false, false);
    hn_tree_reset(&t, 0, 8);
    hn_tree_add_drawn(&t, 0, 1, 0, .5f, q, false);
    hn_tree_add_drawn(&t, 0, 2, 0, .5f, q, true); /* drawn in another way */
    fits(&t, false, false, false);
    hn_tree_reset(&t, 0, 8);
    hn_tree_add_drawn(&t, 0, 1, 0, .5f, q, false);
    hn_tree_add(&t, 0, 2, 0, .5f); /* not drawn at all */
    fits(&t, false, false, false);
    hn_tree_reset(&t, 0, 8);
    hn_tree_add(&t, 0, 1, 0, .5f);
    fits(&t, true, false, false);
    hn_tree_add(&t, 0, 1, 1, .5f);
    hn_tree_add(&t, 0, 2, 1, .5f);
    fits(&t, true, false, false);
}

/* ---- verdicts and failures --------------------------------------------------------------------------------------- */

static const float *fixed_logits(void *ctx, int row) {
    (void)row;
    return ctx;
}

static void test_provenance(void **state) {
    (void)state;
    float l[V] = {0, 1, 0, 0};
    const int32_t text[] = {0, 0};
    hn_sampler s;
    hn_verifier *w = NULL;
    assert_int_equal(hn_verifier_open(&w, V, NULL), HUNCH_OK);
    assert_int_equal(hn_sampler_init(&s, &cold, V, NULL), HUNCH_OK);
    hn_tree t;
    hn_tree_reset(&t, 0, 8);
    int a = hn_tree_add(&t, 0, 1, 3, .5f);
    hn_tree_add(&t, 0, 1, 2, .7f); /* highest estimate */
    hn_tree_add(&t, 0, 2, 0, .9f); /* another token */
    int b = hn_tree_add(&t, a, 1, 3, .4f);
    hn_tree_add(&t, a, 1, 1, .4f); /* a tie: the lower index */
    hn_tree_add(&t, a, 1, 2, .4f);
    const hn_verification ver = {
        .rule = HN_RULE_GREEDY, .sampler = &s, .committed = {.text = text, .n = 2}, .rows = {fixed_logits, NULL, l}};
    hn_verdict v;
    assert_int_equal(hn_verify_tree(w, &t, &ver, &v, NULL), HUNCH_OK);
    assert_int_equal(v.n_accepted, 2);
    assert_int_equal(v.path[1], b);
    assert_int_equal(v.drafter_of[0], 2);
    assert_int_equal(v.drafter_of[1], 1);
    assert_int_equal(v.next, 1);
    assert_int_equal(v.next_row, b);
    hn_sampler_fini(&s);
    hn_verifier_close(&w);
    hn_verifier_close(&w);
}

/* Logits of which nothing can be drawn, and failing allocations, under every rule. */
static void test_failures(void **state) {
    (void)state;
    const int32_t text[42] = {0};
    const float flat[V] = {1, 1, 1, 1}, good[V] = {0, 1, 2, 3};
    const hn_proposal_dist dist = {V, NULL, flat};
    float bad[V];
    for (int i = 0; i < V; i++) bad[i] = i % 2 ? NAN : -INFINITY;
    for (hn_rule rule = HN_RULE_GREEDY; rule <= HN_RULE_TOP_M; rule++) {
        hn_sampler s;
        hn_verifier *w = NULL;
        hn_tree t;
        hn_verdict v;
        hunch_error err = {0};
        assert_int_equal(hn_sampler_init(&s, rule == HN_RULE_GREEDY ? &cold : &warm, V, NULL), HUNCH_OK);
        assert_int_equal(hn_verifier_open(&w, V, NULL), HUNCH_OK);
        hn_tree_reset(&t, 0, 8);
        hn_tree_add_drawn(&t, 0, 1, 0, .5f, &dist, false);
        hn_verification ver = {.rule = rule,
                               .a = .5,
                               .b = .5,
                               .sampler = &s,
                               .committed = {.text = text, .n = 42},
                               .rows = {fixed_logits, NULL, bad}};
        assert_int_equal(hn_verify_tree(w, &t, &ver, &v, &err), HUNCH_FAILED);
        assert_non_null(strstr(err.message, "position 42"));
        ver.rows.ctx = (void *)good;
        hn_fault_arm(HN_FAULT_ALLOC, 0, true);
        const hunch_status st = hn_verify_tree(w, &t, &ver, &v, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_int_equal(st, rule <= HN_RULE_MATCH ? HUNCH_OK : HUNCH_NO_MEMORY);
        assert_int_equal(hn_verify_tree(w, &t, &ver, &v, &err), HUNCH_OK); /* no effect of the failure remains */
        hn_fault_arm(HN_FAULT_ALLOC, 0, true);
        assert_int_equal(hn_verify_tree(w, &t, &ver, &v, &err), HUNCH_OK); /* once grown, nothing is allocated */
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        hn_verifier_close(&w);
        hn_sampler_fini(&s);
    }
    hn_verifier *w;
    hn_fault_arm(HN_FAULT_ALLOC, 0, true);
    assert_int_equal(hn_verifier_open(&w, V, NULL), HUNCH_NO_MEMORY);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_null(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_text),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_dist),
        cmocka_unit_test(test_wrong_verifiers_are_refused),
        cmocka_unit_test(test_a_draft_that_changes_the_text_is_refused),
        cmocka_unit_test(test_enumerated),
        cmocka_unit_test(test_the_root_alone),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_provenance),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
