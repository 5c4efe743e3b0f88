/* SPDX-License-Identifier: Apache-2.0 */
/* head_specs_test.c - options of a draft head's SPEC: types of its weights and of its cache, trees by name and from files, and which
 * rules can verify them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "draft/head/head_passes.h"
#include "engine/session.h"
#include "fixture.h"
#include "model/folder_for_tests.h"

enum { DEPTH = 5, VOCAB = 480, MOST_PATH = 8 };
#define TARGET "goldens-heads/targets/llama-a"
#define HEAD "goldens-heads/eagle3-official-d2t/head"

static const hunch_token text[] = {5, 77, 301, 9, 44, 260, 133, 8, 19, 402, 350};
enum { N_TEXT = sizeof text / sizeof *text };

typedef struct drafted {
    hunch_draft_result r;
    float logits[DEPTH][VOCAB];
} drafted;

static void take_logits(void *user, int level, const float *logits, int vocab) {
    drafted *d = user;
    assert_int_equal(vocab, VOCAB);
    memcpy(d->logits[level], logits, sizeof d->logits[level]);
}

static hunch_engine *open_with(hunch_model *m, const char *options) {
    char spec[1100];
    snprintf(spec, sizeof spec, "eagle3:%s,%s", data_path(HEAD), options);
    return open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
}

/* Logits of a chain, or of the chain beside a tree. depth 0: the head's maximum. To be freed. */
static drafted *draft_deep(hunch_model *m, const char *options, int depth) {
    drafted *d = calloc(1, sizeof *d);
    hunch_engine *e = open_with(m, options);
    must(hunch_draft(e, text, N_TEXT, depth, -1, NULL, take_logits, d, &d->r, err));
    hunch_engine_close(&e);
    return d;
}

static drafted *draft_with(hunch_model *m, const char *options) {
    return draft_deep(m, options, DEPTH);
}

static void drafted_free(drafted *d) {
    hunch_free(d->r.node);
    free(d);
}

/* ---- weights ----------------------------------------------------------------------------------------------------------- */

/* Mean error of the first draft's logits (which depend on no earlier draft), relative to weights as they are stored. */
static double error_of(const drafted *have, const drafted *want) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < VOCAB; i++) {
        assert_int_equal(isfinite(have->logits[0][i]), isfinite(want->logits[0][i]));
        if (!isfinite(want->logits[0][i])) continue;
        const double d = (double)have->logits[0][i] - (double)want->logits[0][i];
        sum += d * d;
        n++;
    }
    assert_int_equal(n, 160);
    return sqrt(sum / n);
}

static bool same_bits(const drafted *a, const drafted *b) {
    return memcmp(a->logits, b->logits, sizeof a->logits) == 0;
}

static void check_weights(hunch_precision precision, const char *usual) {
    static const char *const types[] = {"f32", "bf16", "q8_0", "q4_0"};
    /* logits here spread by 3 or so; a step of the type is 2^-8, 1/127, 1/8 of the largest weight of 32 */
    static const double most[] = {0, 0.1, 0.15, 1.5};
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), precision);
    drafted *d[4], *by_default = draft_with(m, "depth=5");
    for (int i = 0; i < 4; i++) {
        char options[40];
        snprintf(options, sizeof options, "depth=5,weights=%s", types[i]);
        d[i] = draft_with(m, options);
        assert_int_equal(d[i]->r.n, DEPTH);
        assert_int_equal(d[i]->r.root, d[0]->r.root); /* the target's */
        const double error = error_of(d[i], d[0]);
        if (!(error <= most[i])) fail_msg("%s: off by %g", types[i], error);
        if (i > 0 && !(error > 0)) fail_msg("%s: no other weights than f32", types[i]);
        assert_int_equal(same_bits(d[i], by_default), !strcmp(types[i], usual));
    }
    assert_true(error_of(d[3], d[0]) > error_of(d[2], d[0]));
    for (int i = 0; i < 4; i++) drafted_free(d[i]);
    drafted_free(by_default);
    hunch_model_close(&m);
}

static void test_weights(void **state) {
    (void)state;
    check_weights(HUNCH_PRECISION_F32, "f32");
    check_weights(HUNCH_PRECISION_NATIVE, "q8_0");
}

static void test_cache_types(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_F32);
    drafted *f32 = draft_with(m, "depth=5,kv=f32"), *bf16 = draft_with(m, "depth=5,kv=bf16"), *f16 = draft_with(m, "depth=5,kv=f16");
    assert_true(error_of(f16, f32) > 0 && error_of(bf16, f32) > error_of(f16, f32) && error_of(bf16, f32) < 0.2);
    drafted_free(f32);
    drafted_free(bf16);
    drafted_free(f16);
    hunch_model_close(&m);
}

/* ---- trees -------------------------------------------------------------------------------------------------------------- */

/* Tokens from the root to a node. */
static int path_to(const hunch_draft_result *r, int i, hunch_token path[MOST_PATH]) {
    int n = 0;
    for (int k = i; k >= 0; k = r->node[k].parent) n++;
    assert_true(n <= MOST_PATH);
    for (int k = i, at = n; k >= 0; k = r->node[k].parent) path[--at] = r->node[k].token;
    return n;
}

/* Number of paths that are in both trees; each has the same probability in both, bit for bit, whatever else was computed with it. */
static int common_paths(const hunch_draft_result *a, const hunch_draft_result *b) {
    int common = 0;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++) {
            hunch_token x[MOST_PATH], y[MOST_PATH];
            const int n = path_to(a, i, x);
            if (path_to(b, k, y) != n || memcmp(x, y, (size_t)n * sizeof *x)) continue;
            assert_true(a->node[i].q == b->node[k].q);
            common++;
        }
    return common;
}

static void check_common(hunch_model *m, const char *one, const char *other, int least) {
    drafted *a = draft_with(m, one), *b = draft_with(m, other);
    assert_true(same_bits(a, b)); /* of the chain */
    const int n = common_paths(&a->r, &b->r);
    if (n < least) fail_msg("%s and %s: %d paths in common", one, other, n);
    drafted_free(a);
    drafted_free(b);
}

static void test_trees_agree(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    check_common(m, "depth=5", "tree=eagle_mc_sim_7b_63", 5);
    check_common(m, "depth=5", "depth=5,tree=dynamic,topk=6,total=63", 3);
    check_common(m, "tree=eagle_mc_sim_7b_63", "depth=5,tree=dynamic,topk=6,total=63", 10);
    check_common(m, "depth=5,tree=dynamic,topk=3,total=20", "depth=5,tree=dynamic,topk=16,total=63", 10);
    hunch_model_close(&m);
}

#define MASKS "goldens-heads/peagle-spec-2layers/head"

typedef struct likely {
    int n;
    hunch_token token[DEPTH];
    double logp;
} likely;

/* The best `topk` tokens of each level. */
static void best_tokens(const drafted *d, int topk, hunch_token token[DEPTH][16], double logp[DEPTH][16]) {
    for (int l = 0; l < DEPTH; l++) {
        double sum = 0;
        for (int i = 0; i < VOCAB; i++) sum += exp((double)d->logits[l][i]);
        for (int k = 0; k < topk; k++) {
            int best = -1;
            for (int i = 0; i < VOCAB; i++) {
                bool had = false;
                for (int j = 0; j < k; j++) had |= token[l][j] == i;
                if (!had && (best < 0 || d->logits[l][i] > d->logits[l][best])) best = i;
            }
            token[l][k] = best;
            logp[l][k] = (double)d->logits[l][best] - log(sum);
        }
    }
}

static int by_logp(const void *a, const void *b) {
    const likely *x = a, *y = b;
    return (x->logp < y->logp) - (x->logp > y->logp);
}

/* All paths of up to DEPTH tokens through `topk` of each level, likeliest first. Returns their number. */
static int all_paths(const drafted *d, int topk, likely *out) {
    hunch_token token[DEPTH][16];
    double logp[DEPTH][16];
    int n = 0, from = 0;
    best_tokens(d, topk, token, logp);
    for (int k = 0; k < topk; k++) out[n++] = (likely){1, {token[0][k]}, logp[0][k]};
    for (int l = 1; l < DEPTH; l++) {
        const int to = n;
        for (; from < to; from++)
            for (int k = 0; k < topk; k++) {
                out[n] = out[from];
                out[n].logp += logp[l][k];
                out[n].token[out[n].n++] = token[l][k];
                n++;
            }
    }
    qsort(out, (size_t)n, sizeof *out, by_logp);
    return n;
}

/* vLLM's key: a file that has 0.5 there drafts from half of the logits, to the bit. */
static void test_logit_scale(void **state) {
    (void)state;
    static const char *const config = "{\"model_type\": \"medusa\", \"hidden_size\": 64, \"num_heads\": 3, \"num_hidden_layers\": 2, "
                                      "\"vocab_size\": 480, \"truncated_vocab_size\": 160, \"logit_scale\": 0.5}";
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    drafted *d[2];
    assert_int_equal(mkdir(test_path("scaled"), 0700), 0);
    test_file_write(test_path("scaled/config.json"), config, strlen(config));
    assert_int_equal(symlink(data_path("goldens-heads/medusa-vllm-map/head/model.safetensors"), test_path("scaled/model.safetensors")), 0);
    for (int i = 0; i < 2; i++) {
        char spec[1100];
        snprintf(spec, sizeof spec, "medusa:%s,depth=3", i ? test_path("scaled") : data_path("goldens-heads/medusa-vllm-map/head"));
        hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
        assert_int_equal(e->drafter[0].needs.cost, HN_COST_PER_ROUND);
        d[i] = calloc(1, sizeof *d[i]);
        must(hunch_draft(e, text, N_TEXT, 3, -1, NULL, take_logits, d[i], &d[i]->r, err));
        hunch_engine_close(&e);
    }
    int finite = 0;
    for (int l = 0; l < 3; l++)
        for (int i = 0; i < VOCAB; i++) {
            assert_true(d[1]->logits[l][i] == 0.5f * d[0]->logits[l][i]);
            finite += isfinite(d[0]->logits[l][i]);
        }
    assert_int_equal(finite, 3 * 160);
    for (int i = 0; i < 2; i++) drafted_free(d[i]);
    hunch_model_close(&m);
}

/* Hydra's prefix layer is described by the model's first layer alone: it norms with the model's eps, from a folder and from a file that
 * convert wrote. */
static void test_prefix_eps(void **state) {
    (void)state;
    folder_write_changed("../" TARGET, "1e-05", "0.0078125");
    hunch_model *m = open_model(test_path("changed"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    const char *const head[] = {data_path("goldens-heads/hydra-prefix/head"), test_path("prefix.gguf")};
    must(hunch_convert(head[0], head[1], &(hunch_convert_options){.target = test_path("changed")}, err));
    for (int i = 0; i < 2; i++) {
        char spec[1100];
        snprintf(spec, sizeof spec, "hydra:%s", head[i]);
        hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
        const hn_head_passes *h = e->drafter[0].state; /* the state of every head begins with it */
        assert_true(h->model.arch.layers == 1 && h->model.arch.norm_eps == 0.0078125f);
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

/* ---- level by level ------------------------------------------------------------------------------------------------------- */

/* A round's tree after nodes that another drafter added: all levels at once, or one by one. */
static void draft_levels(const hunch_session *s, int levels, bool one_by_one, hn_tree *t) {
    hn_drafter *d = &s->engine->drafter[0];
    hn_tree_reset(t, s->text.token[s->text.n - 1], HN_TREE_ROWS);
    hn_tree_add(t, hn_tree_add(t, 0, 3, 1, 0.5f), 4, 1, 0.5f);
    for (int level = 0; level < levels; level++) {
        hn_propose p = {.seq = s->id, .text = {s->text.token, (int)s->text.n, (int)s->text.n_prompt}, .tree = t,
                        .budget = t->max_rows - t->n_rows, .depth = one_by_one ? DEPTH : levels, .by_levels = one_by_one,
                        .sampler = (hn_sampler *)&s->sampler};
        const int added = d->ops->propose(d, &p, 1, level);
        assert_true(hn_tree_valid(t));
        assert_int_equal(p.budget, t->max_rows - t->n_rows);
        int newest = 0;
        for (int k = 0; k < t->n_candidates; k++)
            newest += t->candidate[k].drafter == 0 && (!one_by_one || t->depth[t->candidate[k].child] == level + 1);
        assert_int_equal(added,
                         level > 0 && !one_by_one && d->needs.branches ? added : newest); /* 0: none of the level is among the best */
        if (added == 0) break;
    }
}

/* Auto decides level by level: at each level the tree is as if that were the last one, and other drafters' rows stay. */
static void test_by_levels(void **state) {
    (void)state;
    static const char *const trees[] = {"dynamic,topk=10,total=59", "dynamic,topk=10,total=5", "opt,topk=8,total=40,gain=0.05",
                                        "opt,gain=0", "mc_sim_7b_63"};
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < 5; i++) {
        char options[80];
        snprintf(options, sizeof options, "depth=%d,tree=%s", DEPTH, trees[i]);
        hunch_engine *e = open_with(m, options);
        assert_int_equal(e->drafter[0].needs.cost, HN_COST_PER_LEVEL);
        hunch_request r;
        hunch_session *s;
        hunch_request_defaults(&r, m);
        r.prompt = text;
        r.n_prompt = N_TEXT;
        r.max_tokens = 60;
        r.ignore_eos = true;
        r.sampling.temperature = 0;
        must(hunch_session_open(&s, e, &r, err));
        for (int round = 0; round < 3; round++) must(hunch_engine_round(e, err));
        int rows = 0;
        for (int levels = 1; levels <= DEPTH; levels++) {
            hn_tree whole, grown;
            draft_levels(s, levels, false, &whole);
            draft_levels(s, levels, true, &grown);
            assert_int_equal(grown.n_rows, whole.n_rows);
            assert_int_equal(grown.n_candidates, whole.n_candidates);
            for (int k = 0; k < whole.n_candidates; k++) {
                const hn_candidate *a = &grown.candidate[k], *b = &whole.candidate[k];
                assert_true(a->token == b->token && a->row == b->row && a->child == b->child && a->drafter == b->drafter && a->p == b->p);
            }
            assert_true(whole.n_rows >= rows && (levels > 1 || whole.n_rows > 3)); /* more levels, no fewer nodes */
            rows = whole.n_rows;
        }
        hunch_session_close(&s);
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

/* For a head that drafts all levels at once tree=best has the likeliest of all paths, the likeliest first. */
static void test_best(void **state) {
    enum { TOPK = 6, TOTAL = 63, PATHS = 6 + 36 + 216 + 1296 + 7776 };
    (void)state;
    likely *all = calloc(PATHS, sizeof *all);
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    char spec[700];
    snprintf(spec, sizeof spec, "peagle:%s,depth=%d,tree=best,topk=%d,total=%d", data_path(MASKS), DEPTH, TOPK, TOTAL);
    for (int round = 0; round < 4; round++) { /* after different texts */
        drafted *d = calloc(1, sizeof *d);
        hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
        must(hunch_draft(e, text, (size_t)(N_TEXT - 2 * round), DEPTH, -1, NULL, take_logits, d, &d->r, err));
        assert_int_equal(all_paths(d, TOPK, all), PATHS);
        assert_true(d->r.is_tree && d->r.n == TOTAL);
        for (int i = 0; i < TOTAL; i++) {
            hunch_token path[MOST_PATH];
            assert_int_equal(path_to(&d->r, i, path), all[i].n);
            assert_memory_equal(path, all[i].token, (size_t)all[i].n * sizeof *path);
            assert_true(fabs(d->r.node[i].logp - all[i].logp) < 1e-4);
        }
        hunch_engine_close(&e);
        drafted_free(d);
    }
    free(all);
    hunch_model_close(&m);
}

/* OPT-Tree's ends at the depth at which a level no longer adds its gain; with gain=0 it is EAGLE-2's if that is as wide. */
static void test_opt(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    int before = 0;
    static const char *const gains[] = {"64", "0.3", "0.1", "0.02", "0"};
    for (int i = 0; i < 5; i++) {
        char options[80];
        snprintf(options, sizeof options, "depth=5,tree=opt,topk=8,total=40,gain=%s", gains[i]);
        drafted *d = draft_with(m, options);
        int deepest = 0;
        hunch_token path[MOST_PATH];
        for (int k = 0; k < d->r.n; k++) deepest = path_to(&d->r, k, path) > deepest ? path_to(&d->r, k, path) : deepest;
        assert_true(d->r.is_tree && deepest >= before && (i > 0 || (deepest == 1 && d->r.n == 8)));
        before = deepest;
        drafted_free(d);
    }
    assert_true(before > 2);
    drafted *opt = draft_with(m, "depth=5,tree=opt,topk=16,total=12,gain=0"),
            *dynamic = draft_with(m, "depth=5,tree=dynamic,topk=16,total=12");
    assert_int_equal(opt->r.n, 12);
    assert_int_equal(common_paths(&opt->r, &dynamic->r), 12);
    drafted_free(opt);
    drafted_free(dynamic);
    hunch_model_close(&m);
}

/* The shape is fitted to the rates and filled with the head's drafts. */
static void test_fitted(void **state) {
    (void)state;
    char options[400];
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    static const char *const forms[] = {"fitted", "sequoia"};
    static const int nodes[] = {1, 4, 9};
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < 3; i++) {
            snprintf(options, sizeof options, "tree=%s,ranks=%s,total=%d", forms[f], data_path("trees/ranks.json"), nodes[i]);
            drafted *d = draft_deep(m, options, 0), *wide = draft_with(m, "depth=5,tree=dynamic,topk=16,total=63");
            assert_int_equal(d->r.n, nodes[i]);
            assert_true(d->r.is_tree && common_paths(&d->r, &wide->r) > 0);
            assert_true(d->r.node[0].parent == -1 && d->r.node[0].token == wide->r.node[0].token);
            drafted_free(d);
            drafted_free(wide);
        }
    hunch_model_close(&m);
}

/* In a fixed shape each node's children are its best tokens, in the order of ranks. */
static void test_shape(void **state) {
    static const int parent[25] = {-1, -1, -1, -1, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 4, 5, 5, 6, 6, 7, 12, 12, 12, 20, 20};
    (void)state;
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    drafted *d = draft_with(m, "tree=eagle_mc_sim_7b_63");
    assert_true(d->r.is_tree);
    assert_int_equal(d->r.n, 25);
    for (int i = 0; i < 25; i++) {
        assert_int_equal(d->r.node[i].parent, parent[i]);
        if (i > 0 && parent[i] == parent[i - 1]) assert_true(d->r.node[i].q < d->r.node[i - 1].q);
        /* compared with the chain, whose first node is node 0 */
        if (parent[i] == -1) assert_true(d->logits[0][d->r.node[0].token] >= d->logits[0][d->r.node[i].token]);
    }
    drafted_free(d);
    hunch_model_close(&m);
}

static hunch_status open_verified(hunch_model *m, const char *tree, hunch_verify rule, hunch_engine **e, hunch_error *err) {
    char spec[1200];
    const char *const drafts[] = {spec};
    hunch_engine_options o;
    const char *path = test_path("shape.json");
    test_file_write(path, tree, strlen(tree));
    snprintf(spec, sizeof spec, "eagle3:%s,tree=%s", data_path(HEAD), path);
    hunch_engine_options_defaults(&o);
    o.drafts = drafts;
    o.n_drafts = 1;
    o.verify = rule;
    o.context = 128;
    return hunch_engine_open(e, m, &o, err);
}

/* A single path of other than the best tokens has several candidates at a row when they are drawn: it is no chain. */
static void test_rules(void **state) {
    static const char *const chain = "[[0], [0, 0], [0, 0, 0]]", *const second = "[[0], [0, 2]]";
    hunch_engine *e = NULL;
    hunch_error error = {0};
    (void)state;
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    must(open_verified(m, chain, HUNCH_VERIFY_BLOCK, &e, err));
    hunch_engine_close(&e);
    assert_int_equal(open_verified(m, second, HUNCH_VERIFY_BLOCK, &e, &error), HUNCH_USAGE);
    assert_non_null(strstr(error.message, "(branches)"));
    must(open_verified(m, second, HUNCH_VERIFY_TRAVERSAL, &e, err));
    hunch_request r;
    answer a = {0};
    hunch_request_defaults(&r, m);
    r.prompt = text;
    r.n_prompt = N_TEXT;
    r.max_tokens = 60;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = 1, .top_p = 1, .seed = 3};
    run_requests(e, &r, 1, false, &a);
    assert_int_equal(a.n, 60);
    assert_true(a.drafted > 30);
    answer_free(&a);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* ---- choice of tokens, under sampling ----------------------------------------------------------------------------------------- */

/* Number of a sampled chain's tokens that are the likeliest of their level. */
static int count_best(hunch_model *m, const char *options, const hunch_sampling *params, hunch_token *first) {
    drafted d = {0};
    int best = 0;
    hunch_engine *e = open_with(m, options);
    must(hunch_draft(e, text, N_TEXT, DEPTH, -1, params, take_logits, &d, &d.r, err));
    assert_int_equal(d.r.n, DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        int at = 0;
        for (int id = 0; id < VOCAB; id++)
            if (d.logits[i][id] > d.logits[i][at]) at = id;
        best += d.r.node[i].token == at;
        if (i == 0) *first = at;
    }
    hunch_free(d.r.node);
    hunch_engine_close(&e);
    return best;
}

/* The likeliest, after the request's processors too; drawn by default. */
static void test_pick(void **state) {
    (void)state;
    enum { SEEDS = 8 };
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_token first = 0;
    int drawn = 0, by_default = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hunch_sampling s = {.temperature = 2, .top_p = 1, .seed = seed};
        assert_int_equal(count_best(m, "depth=5,pick=best", &s, &first), DEPTH);
        drawn += count_best(m, "depth=5,pick=drawn", &s, &first);
        by_default += count_best(m, "depth=5", &s, &first);
    }
    assert_int_equal(drawn, by_default);
    assert_true(drawn < SEEDS * DEPTH / 2);
    const hunch_bias less = {first, -100};
    const hunch_sampling s = {.temperature = 1, .top_p = 1, .bias = &less, .n_bias = 1};
    assert_true(count_best(m, "depth=5,pick=best", &s, &first) < DEPTH); /* with the bias another token is the likeliest */
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights),     cmocka_unit_test(test_cache_types),
                                       cmocka_unit_test(test_trees_agree), cmocka_unit_test(test_by_levels),
                                       cmocka_unit_test(test_best),        cmocka_unit_test(test_opt),
                                       cmocka_unit_test(test_fitted),      cmocka_unit_test(test_shape),
                                       cmocka_unit_test(test_rules),       cmocka_unit_test(test_pick),
                                       cmocka_unit_test(test_logit_scale), cmocka_unit_test(test_prefix_eps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
