/* SPDX-License-Identifier: Apache-2.0 */
/* verify_test.c - the walk on a synthetic model: whatever the tree holds, the emitted text is the plain one.
 *
 * The model is a function from a text to logits over a small vocabulary. generate() is an engine's round in twenty lines:
 * propose, verify, append. The same statistics are then held against verifiers that are wrong on purpose, which they
 * have to refuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "draft/drafter.h"
#include "sample/chi_square.h"
#include "verify/verify.h"

enum { MAX_VOCAB = 5, TEXT = 96, PROMPT = 3 };
static const int32_t prompt[PROMPT] = {1, 0, 2};

/* ---- the synthetic model --------------------------------------------------------------------------------------- */

typedef struct model {
    int vocab;
    bool coarse; /* logits on a grid of four values: ties */
    uint64_t salt;
} model;

/* Logits after a text: they depend on its last three tokens, so that texts repeat stretches. */
static void model_logits(const model *m, const int32_t *text, int n, float *l) {
    uint64_t h = m->salt;
    for (int i = n > 3 ? n - 3 : 0; i < n; i++) {
        h ^= (uint64_t)text[i] + 1;
        h = hn_splitmix(&h);
    }
    for (int i = 0; i < m->vocab; i++) {
        uint64_t x = hn_splitmix(&h);
        l[i] = m->coarse ? (float)(x >> 62) : (float)(x >> 40) * 0x1p-24f * 3;
    }
}

/* The pass of one round: logits of a tree row from its path. */
typedef struct pass {
    const model *m;
    const hn_tree *t;
    int32_t text[TEXT + HN_TREE_ROWS]; /* committed, then the path */
    int n;                             /* committed, the root included */
    float logits[MAX_VOCAB];
    bool hint;
} pass;

static const float *pass_logits(void *ctx, int row) {
    pass *p = ctx;
    for (int r = row; r > 0; r = p->t->parent[r]) p->text[p->n + p->t->depth[r] - 1] = p->t->token[r];
    model_logits(p->m, p->text, p->n + p->t->depth[row], p->logits);
    return p->logits;
}

static int32_t pass_greedy(void *ctx, int row) {
    pass *p = ctx;
    const float *l = pass_logits(ctx, row);
    int32_t best = 0;
    for (int i = 1; i < p->m->vocab; i++)
        if (l[i] > l[best]) best = i;
    return p->hint ? best : -1;
}

/* ---- a round ------------------------------------------------------------------------------------------------------- */

/* The token after `row`, drawn wrongly; stands in for the verifier's own draw. */
typedef int32_t (*wrong_draw)(const hn_tree *t, int row, hn_sampler *s, const hn_logits_source *src, uint64_t root);
/* Fills the tree of a round. ctx is the proposer's own. */
typedef void (*proposer)(void *ctx, const int32_t *text, int n, hn_tree *t);

typedef struct setup {
    model m;
    hunch_sampling params;
    wrong_draw wrong; /* NULL: hn_verify_tree */
    proposer propose;
    void *ctx;
    const hn_coins *coins; /* NULL: Philox */
} setup;

/* hn_verify_tree's walk with another draw. */
static void walk_wrong(wrong_draw wrong, const hn_tree *t, hn_sampler *s, const hn_logits_source *src, uint64_t root,
                       hn_verdict *out) {
    out->n_accepted = 0;
    for (int row = 0;;) {
        int32_t token = wrong(t, row, s, src, root);
        int child = hn_tree_child(t, row, token);
        if (child < 0) {
            out->next = token;
            out->next_row = (int16_t)row;
            return;
        }
        for (int c = t->first[row]; c >= 0; c = t->candidate[c].next)
            if (t->candidate[c].child == child) out->provenance[out->n_accepted] = t->candidate[c].drafter;
        out->path[out->n_accepted++] = (int16_t)(row = child);
    }
}

static void check_verdict(const hn_tree *t, const hn_verdict *v) {
    int row = 0;
    for (int i = 0; i < v->n_accepted; i++) {
        assert_int_equal(t->parent[v->path[i]], row);
        row = v->path[i];
        bool proposed = false;
        for (int c = t->first[t->parent[row]]; c >= 0; c = t->candidate[c].next)
            proposed |= t->candidate[c].child == row && t->candidate[c].drafter == v->provenance[i];
        assert_true(proposed);
    }
    assert_int_equal(v->next_row, row);
    assert_int_equal(hn_tree_child(t, row, v->next), -1);
}

/* Emits at least n_new tokens behind the prompt into out; returns the rounds. */
static int generate(const setup *u, hn_sampler *s, int n_new, int32_t *out) {
    pass p = {.m = &u->m, .n = PROMPT, .hint = u->params.seed % 2};
    hn_tree t;
    p.t = &t;
    memcpy(p.text, prompt, sizeof prompt);
    hn_rule rule;
    assert_int_equal(hn_rule_choose(HUNCH_VERIFY_DEFAULT, &u->params, &rule, NULL), HUNCH_OK);
    int rounds = 0;
    for (; p.n < PROMPT + n_new; rounds++) {
        hn_tree_reset(&t, p.text[p.n - 1], 1 + (TEXT - p.n - 1 < HN_TREE_ROWS - 1 ? TEXT - p.n - 1 : HN_TREE_ROWS - 1));
        if (u->propose) u->propose(u->ctx, p.text, p.n, &t);
        assert_true(hn_tree_valid(&t));
        hn_verdict v;
        hn_logits_source src = {pass_logits, pass_greedy, &p};
        hunch_error err = {0};
        if (u->wrong)
            walk_wrong(u->wrong, &t, s, &src, (uint64_t)p.n - 1, &v);
        else if (hn_verify_tree(&t, rule, s, &src, (uint64_t)p.n - 1, &v, &err))
            fail_msg("%s", err.message);
        check_verdict(&t, &v);
        for (int i = 0; i < v.n_accepted; i++) p.text[p.n++] = t.token[v.path[i]];
        p.text[p.n++] = v.next;
    }
    memcpy(out, p.text + PROMPT, (size_t)n_new * sizeof *out);
    return rounds;
}

static void generate_once(const setup *u, int n_new, int32_t *out) {
    hn_sampler s;
    assert_int_equal(hn_sampler_init(&s, &u->params, u->m.vocab, NULL), HUNCH_OK);
    if (u->coins) s.coins = *u->coins;
    generate(u, &s, n_new, out);
    hn_sampler_fini(&s);
}

/* ---- proposers ------------------------------------------------------------------------------------------------------ */

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
            tip = hn_tree_add(t, tip, token, 0, .5f, NULL);
            if (tip < 0) return;
        } else if (s->kind == 1) {
            for (int x = 0; i < t->n_rows && x < s->vocab; x++) hn_tree_add(t, i, x, 0, .5f, NULL);
        } else {
            hn_tree_add(t, (int)(hn_splitmix(&s->seed) % (uint64_t)t->n_rows), token, (int)(hn_splitmix(&s->seed) % 2),
                        (float)(hn_splitmix(&s->seed) % 3), NULL);
        }
    }
}

/* The engine's way of asking real drafters, several on one tree. */
typedef struct drafters {
    hn_drafter d[2];
    int n;
} drafters;

static void propose_drafters(void *ctx, const int32_t *text, int n, hn_tree *t) {
    drafters *ds = ctx;
    for (int level = 0, added = 1; added; level++) {
        added = 0;
        for (int i = 0; i < ds->n; i++) {
            hn_propose p = {.text = {text, n, PROMPT}, .tree = t, .budget = t->max_rows - t->n_rows};
            added += ds->d[i].ops->propose(&ds->d[i], &p, 1, level);
        }
    }
}

static void drafters_open(drafters *ds, const char *a, const char *b, int vocab, const int32_t *oracle, int n_oracle) {
    const char *specs[] = {a, b};
    hn_target_info target = {.vocab = vocab};
    for (ds->n = 0; ds->n < 2 && specs[ds->n]; ds->n++) {
        hn_drafter *d = &ds->d[ds->n];
        hn_begin begin = {.oracle = oracle, .n_oracle = n_oracle};
        assert_int_equal(hn_drafter_open(d, specs[ds->n], ds->n, 1, &target, NULL), HUNCH_OK);
        assert_int_equal(d->ops->begin(d, &begin, 1, NULL), HUNCH_OK);
    }
}

static void drafters_close(drafters *ds) {
    for (int i = 0; i < ds->n; i++) hn_drafter_close(&ds->d[i]);
}

/* ---- one seed, one text ------------------------------------------------------------------------------------------------ */

static const hunch_sampling PARAMS[] = {{0, 0, 1, 0, 1},  {1, 0, 1, 0, 2},   {.6, 0, 1, 0, 3},   {1, 2, 1, 0, 4},
                                        {1, 0, .7, 0, 5}, {1, 0, 1, .3, 6}, {1.3, 4, .9, .05, 7}, {0, 2, .5, .1, 8}};
enum { N_PARAMS = sizeof PARAMS / sizeof PARAMS[0], NEW = 60 };

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

static void same_text_with_drafters(setup u, const int32_t *plain) {
    static const char *const specs[][2] = {{"ngram", NULL},
                                           {"ngram,form=pld,depth=2", "ngram,form=hf"},
                                           {"forced,accept=.7,depth=6", NULL},
                                           {"forced,accept=.5,depth=5,width=2", "ngram,min=1,max=2,depth=5"},
                                           {"forced,tree=random,accept=.5,seed=3,width=2", "forced,tree=random,accept=.2,width=2"}};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        drafters ds;
        int32_t text[NEW];
        drafters_open(&ds, specs[i][0], specs[i][1], u.m.vocab, plain, NEW);
        u.propose = propose_drafters;
        u.ctx = &ds;
        generate_once(&u, NEW, text);
        assert_memory_equal(text, plain, sizeof text);
        drafters_close(&ds);
    }
}

static void test_same_seed_same_text(void **state) {
    (void)state;
    int different = 0;
    for (int i = 0; i < 4 * N_PARAMS; i++) {
        setup u = {.m = {3 + i % 3, i % 2, (uint64_t)i}, .params = PARAMS[i % N_PARAMS]};
        int32_t plain[NEW], again[NEW];
        generate_once(&u, NEW, plain);
        same_text_with_shapes(u, plain);
        same_text_with_drafters(u, plain);
        u.params.seed += 1000;
        generate_once(&u, NEW, again);
        different += memcmp(plain, again, sizeof plain) != 0;
        if (u.params.temperature == 0) assert_memory_equal(plain, again, sizeof plain);
    }
    assert_in_range(different, 2 * N_PARAMS, 3 * N_PARAMS); /* a seed matters unless greedy */
}

/* An oracle that is always right is accepted whole, one that is always wrong never. */
static void test_extremes(void **state) {
    (void)state;
    for (int i = 0; i < N_PARAMS; i++) {
        setup u = {.m = {4, false, 3}, .params = PARAMS[i]};
        int32_t plain[NEW], text[NEW];
        generate_once(&u, NEW, plain);
        for (int right = 0; right < 2; right++) {
            drafters ds;
            hn_sampler s;
            drafters_open(&ds, right ? "forced,depth=4" : "forced,accept=0,depth=4", NULL, 4, plain, NEW);
            u.propose = propose_drafters;
            u.ctx = &ds;
            assert_int_equal(hn_sampler_init(&s, &u.params, 4, NULL), HUNCH_OK);
            assert_int_equal(generate(&u, &s, NEW, text), right ? NEW / 5 : NEW);
            assert_memory_equal(text, plain, sizeof text);
            hn_sampler_fini(&s);
            drafters_close(&ds);
        }
    }
}

/* ---- the law of what is emitted ---------------------------------------------------------------------------------------- */

enum { V = 4, LAW = 3, CELLS = V * V * V, DRAWS = 40000 };

/* Probability of every text of LAW tokens by plain sampling. */
static void law_product(const setup *u, double *p) {
    hn_sampler s;
    assert_int_equal(hn_sampler_init(&s, &u->params, V, NULL), HUNCH_OK);
    for (int cell = 0; cell < CELLS; cell++) {
        int32_t text[PROMPT + LAW];
        memcpy(text, prompt, sizeof prompt);
        p[cell] = 1;
        for (int i = 0, rest = cell; i < LAW; i++, rest /= V) {
            float l[MAX_VOCAB];
            double law[MAX_VOCAB];
            text[PROMPT + i] = rest % V;
            model_logits(&u->m, text, PROMPT + i, l);
            hn_sampler_law(&s, l, law);
            p[cell] *= law[rest % V];
        }
    }
    hn_sampler_fini(&s);
}

static bool law_holds(setup u) {
    double p[CELLS];
    long counts[CELLS] = {0};
    law_product(&u, p);
    hn_sampler s;
    assert_int_equal(hn_sampler_init(&s, &u.params, V, NULL), HUNCH_OK);
    for (int i = 0; i < DRAWS; i++) {
        int32_t t[LAW];
        s.params.seed = u.params.seed + (uint64_t)i;
        generate(&u, &s, LAW, t);
        counts[t[0] + V * t[1] + V * V * t[2]]++;
    }
    hn_sampler_fini(&s);
    return chi_square_fits(counts, p, CELLS, DRAWS);
}

/* A fixed proposal in every round: a chain of two, or a bush. */
static void propose_chain(void *ctx, const int32_t *text, int n, hn_tree *t) {
    (void)ctx, (void)text;
    int a = hn_tree_add(t, 0, n % V, 0, .5f, NULL);
    hn_tree_add(t, a, (n + 1) % V, 0, .5f, NULL);
}

static void propose_bush(void *ctx, const int32_t *text, int n, hn_tree *t) {
    (void)ctx, (void)n;
    int a = hn_tree_add(t, 0, 0, 0, .5f, NULL), b = hn_tree_add(t, 0, 2, 0, .5f, NULL);
    hn_tree_add(t, 0, 2, 1, .9f, NULL);
    hn_tree_add(t, a, text[0], 0, .5f, NULL);
    hn_tree_add(t, b, 3, 1, .5f, NULL);
    hn_tree_add(t, b, 1, 0, .5f, NULL);
}

static const proposer PROPOSERS[] = {NULL, propose_chain, propose_bush};
static const hunch_sampling LAWS[] = {{1, 0, 1, 0, 77}, {.8, 3, 1, 0, 78}, {1.4, 0, .85, .02, 79}};

static void test_law(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            setup u = {.m = {V, false, 9}, .params = LAWS[k], .propose = PROPOSERS[i]};
            assert_true(law_holds(u));
        }
}

/* ---- verifiers that are wrong on purpose --------------------------------------------------------------------------------- */

static int32_t plain_draw(const hn_tree *t, int row, hn_sampler *s, const hn_logits_source *src, uint64_t root) {
    return hn_sampler_draw(s, src->logits(src->ctx, row), root + 1 + (uint64_t)t->depth[row], -1);
}

/* Takes a candidate because the target likes it well enough. */
static int32_t draw_if_likely(const hn_tree *t, int row, hn_sampler *s, const hn_logits_source *src, uint64_t root) {
    double law[MAX_VOCAB];
    hn_sampler_law(s, src->logits(src->ctx, row), law);
    if (t->first[row] >= 0 && law[t->candidate[t->first[row]].token] > .3) return t->candidate[t->first[row]].token;
    return plain_draw(t, row, s, src, root);
}

/* Accepts the first candidate with P, but after a rejection draws from P again instead of the residual. */
static int32_t draw_without_residual(const hn_tree *t, int row, hn_sampler *s, const hn_logits_source *src, uint64_t root) {
    double law[MAX_VOCAB];
    uint64_t position = root + 1 + (uint64_t)t->depth[row];
    hn_sampler_law(s, src->logits(src->ctx, row), law);
    if (t->first[row] >= 0) {
        int32_t token = t->candidate[t->first[row]].token;
        const hn_random_key key = {.seed = s->params.seed, .position = position, .purpose = HN_PURPOSE_COIN};
        if (hn_random_uniform(&key) < law[token]) return token;
    }
    return plain_draw(t, row, s, src, root);
}

/* One noise for all rows of a round. */
static int32_t draw_with_root_noise(const hn_tree *t, int row, hn_sampler *s, const hn_logits_source *src, uint64_t root) {
    (void)t;
    return hn_sampler_draw(s, src->logits(src->ctx, row), root + 1, -1);
}

/* The logits of the row before. */
static int32_t draw_from_parent(const hn_tree *t, int row, hn_sampler *s, const hn_logits_source *src, uint64_t root) {
    return hn_sampler_draw(s, src->logits(src->ctx, row ? t->parent[row] : 0), root + 1 + (uint64_t)t->depth[row], -1);
}

/* The draw stands, but a candidate that was not drawn gets a second chance. */
static int32_t draw_twice(const hn_tree *t, int row, hn_sampler *s, const hn_logits_source *src, uint64_t root) {
    int32_t token = plain_draw(t, row, s, src, root);
    if (t->first[row] < 0 || hn_tree_child(t, row, token) >= 0) return token;
    return hn_sampler_draw(s, src->logits(src->ctx, row), root + 1000 + (uint64_t)t->depth[row], -1);
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
        setup u = {.m = {V, false, 9}, .params = LAWS[0], .wrong = plain_draw, .propose = PROPOSERS[i]};
        assert_true(law_holds(u)); /* the frame itself is not what is refused */
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            u.wrong = wrong[k].draw;
            if (law_holds(u)) fail_msg("the verifier '%s' passes with proposer %d", wrong[k].name, i);
        }
    }
}

/* ---- exact enumeration: the coins decide the text, the tree never does ------------------------------------------------- */

typedef struct script {
    int32_t winner[TEXT]; /* by position */
} script;

/* The scripted token's coin makes it win any race against a token of probability above 1e-10. */
static double uniform_script(void *ctx, const hn_random_key *key) {
    const script *s = ctx;
    assert_int_equal(key->purpose, HN_PURPOSE_TARGET);
    return s->winner[key->position] == (int32_t)key->token ? 1 - 0x1p-53 : 0x1p-53;
}

/* Every outcome of the coins over LAW positions, that is every branch of the law with its probability, gives its own
 * text whatever the tree is; so the law of the text is the product law, exactly. */
static void test_enumerated(void **state) {
    (void)state;
    for (int cell = 0; cell < CELLS; cell++) {
        script sc;
        for (int i = 0, rest = cell; i < TEXT; i++) {
            sc.winner[i] = i < PROMPT || i >= PROMPT + LAW ? 0 : rest % V;
            if (i >= PROMPT && i < PROMPT + LAW) rest /= V;
        }
        const hn_coins coins = {uniform_script, &sc};
        for (int kind = 0; kind < 4; kind++)
            for (uint64_t i = 0; i < 10; i++) {
                shape sh = {.seed = i, .vocab = V, .kind = kind};
                setup u = {.m = {V, false, i}, .params = {1, 0, 1, 0, i}, .propose = propose_shape,
                           .ctx = &sh, .coins = &coins};
                int32_t text[LAW];
                generate_once(&u, LAW, text);
                assert_memory_equal(text, sc.winner + PROMPT, sizeof text);
            }
    }
}

/* ---- rules, provenance, errors --------------------------------------------------------------------------------------------- */

static void test_rules(void **state) {
    (void)state;
    hunch_sampling cold = {0, 0, 1, 0, 0}, warm = {.5, 0, 1, 0, 0};
    hn_rule r;
    assert_int_equal(hn_rule_choose(HUNCH_VERIFY_DEFAULT, &cold, &r, NULL), HUNCH_OK);
    assert_int_equal(r, HN_RULE_GREEDY);
    assert_int_equal(hn_rule_choose(HUNCH_VERIFY_DEFAULT, &warm, &r, NULL), HUNCH_OK);
    assert_int_equal(r, HN_RULE_MATCH);
    assert_int_equal(hn_rule_choose(HUNCH_VERIFY_MATCH, &cold, &r, NULL), HUNCH_OK);
    assert_int_equal(r, HN_RULE_MATCH);
    assert_int_equal(hn_rule_choose(HUNCH_VERIFY_GREEDY, &cold, &r, NULL), HUNCH_OK);
    assert_int_equal(r, HN_RULE_GREEDY);
    hunch_error err = {0};
    assert_int_equal(hn_rule_choose(HUNCH_VERIFY_GREEDY, &warm, &r, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "temperature 0.5"));
    hn_tree t;
    const float q[V] = {.25f, .25f, .25f, .25f};
    hn_tree_reset(&t, 0, 8);
    hn_tree_add(&t, 0, 1, 0, .5f, NULL);
    assert_true(hn_rule_fits(HN_RULE_MATCH, &t));
    hn_tree_add(&t, 0, 2, 0, .5f, q); /* drawn from a distribution: not for these rules */
    assert_false(hn_rule_fits(HN_RULE_MATCH, &t));
    assert_false(hn_rule_fits(HN_RULE_GREEDY, &t));
}

static const float *fixed_logits(void *ctx, int row) {
    (void)row;
    return ctx;
}

static void test_provenance(void **state) {
    (void)state;
    float l[V] = {0, 1, 0, 0};
    hn_sampler s;
    const hunch_sampling greedy = {0, 0, 1, 0, 0};
    assert_int_equal(hn_sampler_init(&s, &greedy, V, NULL), HUNCH_OK);
    hn_tree t;
    hn_tree_reset(&t, 0, 8);
    int a = hn_tree_add(&t, 0, 1, 3, .5f, NULL);
    hn_tree_add(&t, 0, 1, 2, .7f, NULL); /* highest estimate */
    hn_tree_add(&t, 0, 2, 0, .9f, NULL); /* another token */
    int b = hn_tree_add(&t, a, 1, 3, .4f, NULL);
    hn_tree_add(&t, a, 1, 1, .4f, NULL); /* a tie: the lower index */
    hn_tree_add(&t, a, 1, 2, .4f, NULL);
    const hn_logits_source src = {fixed_logits, NULL, l};
    hn_verdict v;
    assert_int_equal(hn_verify_tree(&t, HN_RULE_GREEDY, &s, &src, 0, &v, NULL), HUNCH_OK);
    assert_int_equal(v.n_accepted, 2);
    assert_int_equal(v.path[1], b);
    assert_int_equal(v.provenance[0], 2);
    assert_int_equal(v.provenance[1], 1);
    assert_int_equal(v.next, 1);
    assert_int_equal(v.next_row, b);
    for (int i = 0; i < V; i++) l[i] = i % 2 ? NAN : -INFINITY;
    hunch_error err = {0};
    assert_int_equal(hn_verify_tree(&t, HN_RULE_GREEDY, &s, &src, 41, &v, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "position 42"));
    hn_sampler_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_text),         cmocka_unit_test(test_extremes),   cmocka_unit_test(test_law),
        cmocka_unit_test(test_wrong_verifiers_are_refused), cmocka_unit_test(test_enumerated), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_provenance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
