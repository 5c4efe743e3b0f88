/* SPDX-License-Identifier: Apache-2.0 */
/* draft_model_for_tests.h - drives a draft model without an engine: rounds over made-up texts, in a cache whose model 0
 * (the target) only counts rows, each compared with a reference: the same model in a cache of its own, which evaluates every text
 * from its first token. Include after cmocka. */
#ifndef HN_DRAFT_MODEL_FOR_TESTS_H
#define HN_DRAFT_MODEL_FOR_TESTS_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/helper_for_tests.h"
#include "base/random.h"
#include "base/run_mode_for_tests.h"
#include "draft/drafter.h"
#include "model/kv_groups.h"


#define STORIES HUNCH_TEST_DATA "/models/stories260K/stories260K"
#define BABYLLAMA HUNCH_TEST_DATA "/models/babyllama105/babyllama105"
#define MODEL STORIES ".f16.gguf"
enum { SEQS = 4, CONTEXT = 256, VOCAB = 512, WIDEST = 520, DEPTH = 5, MODEL_INDEX = 1, OTHER = 0, MODEL_ID = 2 };

static hn_pool *pool;
static hn_backend *backend;
static hn_tokenizer *tokenizer; /* the target's */
static hn_model reference;
static hn_cache *reference_cache;
static hn_runner *reference_runner;

HELPER void ok(hunch_status s, const hunch_error *err) {
    if (s) fail_msg("%s", err->message);
}

HELPER bool light(void) { return test_light(); }

static uint64_t seed = 20261121;
HELPER int below(int n) {
    return (int)(hn_splitmix(&seed) % (uint64_t)n);
}

/* ---- the reference --------------------------------------------------------------------------------------------------- */

HELPER void reference_open(const char *path) {
    const hn_model_load load = {.pool = pool, .isa = hn_isa_best()};
    hn_source *src = NULL;
    hunch_error err = {0};
    ok(hn_source_open(&src, path, &err), &err);
    ok(hn_model_open(&reference, src, &load, &err), &err);
    hn_source_close(&src);
    hn_cache_group g[HN_MODEL_GROUPS];
    const int n = hn_kv_groups(reference.run, HN_BF16, g, NULL);
    g[0].page_rows = 64;
    ok(hn_cache_open(&reference_cache, backend, g, n, 1, CONTEXT + 64, 0, &err), &err);
    ok(hn_runner_open(&reference_runner, &reference, reference_cache, 0, CONTEXT + 64, NULL, &err), &err);
}

HELPER void reference_close(void) {
    hn_runner_close(&reference_runner);
    hn_cache_close(&reference_cache);
    hn_model_close(&reference);
}

/* Logits of rows first..n-1 of a text, evaluated from its first token. */
HELPER void evaluate(const int32_t *text, int n, int first, float out[][WIDEST]) {
    const int seq = 0;
    hunch_error err = {0};
    hn_cache_seq_begin(reference_cache, seq);
    for (int from = 0; from < n; from += HN_MAX_ROWS) {
        hn_row row[HN_MAX_ROWS];
        const int rows = n - from < HN_MAX_ROWS ? n - from : HN_MAX_ROWS;
        for (int i = 0; i < rows; i++)
            row[i] = (hn_row){.token = text[from + i], .parent = (int16_t)(i - 1), .logits = from + i >= first};
        ok(hn_pass_run(reference_runner, row, rows, &seq, 1, &err), &err);
        for (int i = 0; i < rows; i++)
            if (from + i >= first)
                memcpy(out[from + i - first], hn_pass_logits(reference_runner, i), (size_t)reference.arch.vocab * sizeof(float));
        hn_cache_commit(reference_cache, seq, 0, NULL, rows);
    }
    hn_cache_seq_end(reference_cache, seq);
}

HELPER hn_tokenizer *tokenizer_of(const char *path) {
    hn_source *src = NULL;
    hn_tokenizer *t = NULL;
    hunch_error err = {0};
    ok(hn_source_open(&src, path, &err), &err);
    ok(hn_tokenizer_open(&t, src, &err), &err);
    hn_source_close(&src);
    return t;
}

HELPER int setup(void **state) {
    (void)state;
    hunch_error err = {0};
    ok(hn_pool_create(&pool, 2, &err), &err);
    ok(hn_cpu_backend_open(&backend, pool, hn_isa_best(), false, &err), &err);
    tokenizer = tokenizer_of(STORIES ".f32.gguf");
    reference_open(MODEL);
    return 0;
}

HELPER int teardown(void **state) {
    (void)state;
    reference_close();
    hn_tokenizer_close(&tokenizer);
    backend->close(backend);
    hn_pool_free(pool);
    return 0;
}

/* ---- a drafter in a cache --------------------------------------------------------------------------------------------- */

typedef struct rig {
    hn_drafter d;
    hn_cache *cache;
} rig;

HELPER hn_target_info target_info(int vocab) {
    return (hn_target_info){.name = "stories260K",
                            .vocab = vocab,
                            .hidden = 64,
                            .layers = 5,
                            .context = CONTEXT,
                            .tokenizer = tokenizer,
                            .pool = pool,
                            .isa = hn_isa_best(),
                            .kv = HN_BF16};
}

/* The target's group, another drafter's, the draft model's. */
HELPER hunch_status rig_attach(rig *r, int pool_rows, hunch_error *err) {
    hn_cache_group g[2 + HN_MAX_DRAFT_GROUPS] = {
        {.name = "attention", .layers = 5, .kv_heads = 4, .head_dim = 8, .type = HN_BF16, .page_rows = 64},
        {.name = "other", .layers = 1, .kv_heads = 4, .head_dim = 8, .type = HN_BF16, .model_id = 1}};
    const int n = r->d.needs.n_groups;
    for (int i = 0; i < n; i++) {
        g[2 + i] = r->d.needs.group[i];
        g[2 + i].model_id = MODEL_ID;
    }
    hunch_status s = hn_cache_open(&r->cache, backend, g, 2 + n, SEQS, CONTEXT, pool_rows, err);
    return s ? s : r->d.ops->attach(&r->d, r->cache, 2, MODEL_ID, err);
}

HELPER hunch_status rig_open(rig *r, const char *spec, int vocab, int pool_rows, hunch_error *err) {
    const hn_target_info info = target_info(vocab);
    memset(r, 0, sizeof *r);
    hunch_status s = hn_drafter_open(&r->d, spec, MODEL_INDEX, SEQS, &info, err);
    return s ? s : rig_attach(r, pool_rows, err);
}

HELPER void rig_close(rig *r) {
    hn_drafter_close(&r->d);
    hn_cache_close(&r->cache);
}

HELPER rig rig_of(const char *spec, int vocab) {
    rig r;
    hunch_error err = {0};
    ok(rig_open(&r, spec, vocab, 0, &err), &err);
    assert_true(r.d.needs.cost == HN_COST_PER_LEVEL && r.d.needs.has_dist && !r.d.needs.branches);
    return r;
}

/* ---- texts and rounds --------------------------------------------------------------------------------------------------- */

typedef struct story {
    int seq, vocab;
    int n, n_prompt;
    int32_t token[CONTEXT + 64];
    hn_sampler sampler;
    bool drawn;
    hn_tree tree;
    int levels; /* with logits in this round */
    float logits[DEPTH][WIDEST];
    int drafted;
    int32_t chain[DEPTH]; /* its drafts */
    int expected_rows;    /* that are known before the next round */
} story;

HELPER void story_begin(story *s, rig *r, int seq, int vocab, const hunch_sampling *p, int n) {
    hunch_error err = {0};
    memset(s, 0, sizeof *s);
    s->seq = seq;
    s->vocab = vocab;
    s->n = s->n_prompt = n;
    for (int i = 0; i < n; i++) s->token[i] = below(VOCAB);
    ok(hn_sampler_init(&s->sampler, p, vocab, &err), &err);
    hn_cache_seq_begin(r->cache, seq);
    const hn_begin b = {.seq = seq, .seed = p->seed, .text = {s->token, s->n, s->n_prompt}};
    ok(r->d.ops->begin(&r->d, &b, 1, &err), &err);
}

HELPER void story_end(story *s, rig *r) {
    r->d.ops->end(&r->d, s->seq);
    hn_cache_seq_end(r->cache, s->seq);
    hn_sampler_fini(&s->sampler);
}

HELPER void keep_logits(void *ctx, int level, const float *logits) {
    story *s = ctx;
    assert_int_equal(level, s->levels);
    memcpy(s->logits[s->levels++], logits, (size_t)s->vocab * sizeof *logits);
}

HELPER int rows_of(const rig *r, const story *s) {
    return hn_cache_committed(r->cache, s->seq, MODEL_ID);
}

/* One level of all stories in one call; every story gets a candidate and exactly the rows that it lacked. */
HELPER void level_of(rig *r, story *const *s, int n, int level, int budget) {
    hn_propose p[SEQS];
    int before[SEQS];
    for (int i = 0; i < n; i++) {
        before[i] = rows_of(r, s[i]);
        assert_int_equal(before[i], level ? s[i]->n : s[i]->expected_rows);
        p[i] = (hn_propose){.seq = s[i]->seq,
                            .text = {s[i]->token, s[i]->n, s[i]->n_prompt},
                            .tree = &s[i]->tree,
                            .budget = budget,
                            .sampler = &s[i]->sampler,
                            .drawn = s[i]->drawn,
                            .on_logits = keep_logits,
                            .on_logits_ctx = s[i]};
    }
    assert_int_equal(r->d.ops->propose(&r->d, p, n, level), n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(rows_of(r, s[i]), s[i]->n); /* rows of drafts are not committed */
        assert_int_equal(s[i]->levels, level + 1);
        assert_true(hn_tree_valid(&s[i]->tree));
    }
}

/* The model's candidates of the tree in order: a chain. */
HELPER void chain_find(story *s) {
    s->drafted = 0;
    for (int c = 0; c < s->tree.n_candidates; c++)
        if (s->tree.candidate[c].drafter == MODEL_INDEX) s->chain[s->drafted++] = s->tree.candidate[c].token;
}

HELPER void draft_round(rig *r, story *const *s, int n, int levels) {
    for (int i = 0; i < n; i++) {
        hn_tree_reset(&s[i]->tree, s[i]->token[s[i]->n - 1], HN_TREE_ROWS);
        s[i]->levels = 0;
    }
    for (int level = 0; level < levels; level++) level_of(r, s, n, level, HN_TREE_ROWS);
    for (int i = 0; i < n; i++) {
        assert_int_equal(r->d.ops->valid_rows(&r->d, s[i]->seq), s[i]->n);
        chain_find(s[i]);
        assert_int_equal(s[i]->drafted, levels);
        s[i]->expected_rows = s[i]->n; /* those of drafts join them when they are accepted */
    }
}

HELPER double softmax_at(const float *l, int vocab, int32_t token) {
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < vocab; i++) max = fmax(max, (double)l[i]);
    for (int i = 0; i < vocab; i++) sum += exp((double)l[i] - max);
    return exp((double)l[token] - max) / sum;
}

/* Logits, tokens and estimates of the round are those of a fresh evaluation. */
HELPER void check_round(story *s) {
    static float want[DEPTH + 1][WIDEST];
    const int n = s->drafted, common = reference.arch.vocab < s->vocab ? reference.arch.vocab : s->vocab;
    memcpy(s->token + s->n, s->chain, (size_t)n * sizeof *s->chain);
    evaluate(s->token, s->n + n - 1, s->n - 1, want);
    for (int k = 0, c = 0; k < n; k++, c++) {
        while (s->tree.candidate[c].drafter != MODEL_INDEX) c++;
        assert_memory_equal(s->logits[k], want[k], (size_t)common * sizeof(float));
        for (int i = common; i < s->vocab; i++) assert_true(s->logits[k][i] == -INFINITY);
        const hn_history h = {s->token, s->n, s->n_prompt, s->chain, k};
        if (s->drawn) continue;
        assert_int_equal(s->chain[k], hn_sampler_draw(&s->sampler, s->logits[k], &h, -1));
        assert_null(s->tree.candidate[c].q);
        assert_true(fabs((double)s->tree.candidate[c].estimate - softmax_at(s->logits[k], s->vocab, s->chain[k])) <
                    1e-5);
    }
}

/* The verifier accepted this path of the tree, with `next` after it. */
HELPER void end_round(rig *r, story *s, const int32_t *path, int n, int32_t next, bool observed) {
    int16_t rows[HN_TREE_ROWS];
    for (int i = 0, row = 0; i < n; i++) {
        row = hn_tree_child(&s->tree, row, path[i]);
        assert_true(row > 0);
        rows[i] = (int16_t)row;
    }
    const hn_observe o = {.seq = s->seq, .tree = &s->tree, .n_accepted = n, .path = rows, .next_token = next};
    if (observed) r->d.ops->observe(&r->d, &o, 1);
    int same = 0;
    while (same < n && same < s->drafted - 1 && path[same] == s->chain[same]) same++; /* the last draft has no row */
    s->expected_rows += same;
    s->drafted = 0;
    for (int i = 0; i < n; i++) s->token[s->n + i] = path[i];
    s->token[s->n + n] = next;
    s->n += n + 1;
    if (!observed) return;
    assert_int_equal(r->d.ops->valid_rows(&r->d, s->seq), s->expected_rows);
    assert_int_equal(rows_of(r, s), s->expected_rows);
}

HELPER bool has_windows(const rig *r) {
    return r->d.needs.group[r->d.needs.n_groups - 1].window > 0;
}

/* The text is preempted, and begins again with fewer tokens, from the rows that are left of it. */
HELPER void cut_text(rig *r, story *s, int n) {
    s->n = n;
    if (s->n_prompt > n) s->n_prompt = n;
    if (s->expected_rows > n - 1) s->expected_rows = n - 1;
    const hn_begin again = {.seq = s->seq, .text = {s->token, n, s->n_prompt}, .rows_restored = s->expected_rows};
    r->d.ops->end(&r->d, s->seq);
    assert_int_equal(r->d.ops->begin(&r->d, &again, 1, NULL), HUNCH_OK);
    if (has_windows(r) && rows_of(r, s) == 0) s->expected_rows = 0; /* the window had moved past it: computed from the start */
    assert_int_equal(rows_of(r, s), s->expected_rows);
    assert_int_equal(r->d.ops->valid_rows(&r->d, s->seq), s->expected_rows);
}

/* Continues the text after a round, in one of several ways at random. */
HELPER void end_round_at_random(rig *r, story *s) {
    int32_t path[HN_TREE_ROWS];
    const int32_t *chain = s->chain, next = below(VOCAB);
    const int drafted = s->drafted, kept = below(drafted + 1);
    memcpy(path, chain, sizeof s->chain);
    switch (below(5)) {
    case 0: end_round(r, s, path, kept, next, true); break;
    case 1: end_round(r, s, path, drafted, next, true); break;
    case 2: { /* another drafter's tokens after some of the model's */
        int n = kept, row = 0;
        for (int i = 0; i < kept; i++) row = hn_tree_child(&s->tree, row, chain[i]);
        for (int i = 0; i < 3; i++, n++) {
            path[n] = below(VOCAB);
            row = hn_tree_add(&s->tree, row, path[n], OTHER, 0.5f);
        }
        end_round(r, s, path, n, next, true);
        break;
    }
    case 3: { /* the chain was cut before verification, and the target's token is that of the cut draft */
        bool keep[HN_TREE_ROWS] = {false};
        for (int i = 0, row = 0; i < kept; i++) keep[row = hn_tree_child(&s->tree, row, chain[i])] = true;
        const int32_t after = kept < drafted ? chain[kept] : next;
        hn_tree_keep(&s->tree, keep, NULL);
        end_round(r, s, path, kept, after, true);
        break;
    }
    default: end_round(r, s, path, kept, kept < drafted ? (chain[kept] + 1) % VOCAB : next, true); break;
    }
}

/* Rounds without the drafter: it observes none, or trees without candidates of its own. */
HELPER void idle(rig *r, story *s) {
    for (int i = below(6); i > 0; i--) {
        hn_tree_reset(&s->tree, s->token[s->n - 1], HN_TREE_ROWS);
        end_round(r, s, NULL, 0, below(VOCAB), below(2));
    }
}

HELPER const hunch_sampling GREEDY = {.top_p = 1, .seed = 1},
                            WARM = {.temperature = 0.9, .top_k = 40, .top_p = 0.95, .seed = 7},
                            PENALTIES = {.top_p = 1, .repetition_penalty = 1.3, .frequency_penalty = 0.5, .seed = 3},
                            HOT = {.temperature = 1.5, .top_p = 1, .seed = 9};

HELPER void check_rounds(const char *spec, int vocab, int rounds) {
    const hunch_sampling *const params[SEQS] = {&GREEDY, &WARM, &PENALTIES, &HOT};
    static const int prompt[SEQS] = {1, 150, 63, 65};
    static story s[SEQS];
    rig r = rig_of(spec, vocab);
    for (int i = 0; i < SEQS; i++) story_begin(&s[i], &r, i, vocab, params[i], prompt[i]);
    for (int round = 0; round < rounds; round++) {
        story *some[SEQS];
        int n = 0;
        for (int i = 0; i < SEQS; i++)
            if (round == 0 || below(3)) some[n++] = &s[i];
        draft_round(&r, some, n, 1 + below(r.d.needs.max_depth));
        for (int i = 0; i < n; i++) check_round(some[i]);
        for (int i = 0; i < n; i++) end_round_at_random(&r, some[i]);
        for (int i = 0; i < SEQS; i++) {
            if (below(4) == 0) idle(&r, &s[i]);
            if (s[i].n > CONTEXT - 24 || below(12) == 0) cut_text(&r, &s[i], 1 + below(s[i].n));
        }
        assert_true(hn_cache_valid(r.cache));
    }
    for (int i = 0; i < SEQS; i++) story_end(&s[i], &r);
    assert_true(hn_cache_valid(r.cache));
    rig_close(&r);
}

HELPER int propose_once(rig *r, story *s, int level, int budget) {
    hn_propose p = {.seq = s->seq,
                    .text = {s->token, s->n, s->n_prompt},
                    .tree = &s->tree,
                    .budget = budget,
                    .sampler = &s->sampler,
                    .drawn = s->drawn};
    return r->d.ops->propose(&r->d, &p, 1, level);
}
#endif
