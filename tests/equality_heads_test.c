/* SPDX-License-Identifier: Apache-2.0 */
/* equality_heads_test.c - losslessness as a test (contracts C1, C2), for drafters that read the target: with any head, any trees, any
 * split of the work and any other texts, tokens AND logits are bit-identical to plain decoding; and under the rules that preserve only
 * the distribution the text is the same for any split of the work. The heads are random: nearly all of their drafts are wrong, so those
 * with `force` are made right at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "heads.h"
#include "levels_as_best.h"
#include "preempt_for_tests.h"
#include "random_head.h"

enum { N_PROMPTS = 8, CONTEXT = 128, FLAT = 20 }; /* a temperature at which any token may come */

static hunch_token prompt[N_PROMPTS][48];
static const size_t prompt_len[N_PROMPTS] = {1, 2, 7, 15, 16, 17, 33, 47};

typedef struct target {
    const char *path;
    const char *const *drafts;
    int n_drafts;
} target;

static const char *const of_llama[] = {
    "eagle:@eagle1-bias-bin,depth=4,force=0.7",
    "eagle3:@eagle3-official-d2t,depth=3,tree=dynamic,topk=3,total=9,force=0.6",
    "eagle:@eagle2-nobias-gqa,depth=5,tree=dynamic,topk=8,total=59,force=0.8,weights=f32",
    "eagle3:@eagle3spec-plain,tree=mc_sim_7b_63,force=0.7,kv=f16",
    "eagle:@eagle1-bias-bin,tree=#fork.json,weights=q4_0",
    "eagle3:@eagle3spec-v31,depth=5,weights=bf16+ngram,min=1",
    "eagle:@eagle2-nobias-gqa,depth=3,force=0.5+eagle3:@eagle3-official-d2t,depth=4,force=0.7+suffix",
    "auto+eagle3:@eagle3-official-d2t,force=0.9",
    "peagle:@peagle-spec-2layers,depth=6,force=0.7",
    "peagle:@peagle-spec-2layers,depth=4,tree=dynamic,topk=4,total=14,force=0.7",
    "peagle:@peagle-spec-2layers,tree=mc_sim_7b_63,force=0.6,weights=q4_0",
    "dart:@dart-d2t,force=0.7",
    "dart:@dart-d2t,tree=pruned,total=20,force=0.6,weights=f32",
    "dart:@dart-d2t,depth=3,tree=#fork.json,force=0.8+ngram,min=1",
    "auto+dart:@dart-d2t,depth=3,tree=pruned,force=0.9",
    "falcon:@falcon-k2,depth=5,force=0.7",
    "falcon:@falcon-k3,depth=7,force=0.8,weights=q4_0",
    "falcon:@falcon-k2,tree=mc_sim_7b_63,force=0.6+ngram,min=1",
    "auto+falcon:@falcon-k3,depth=4,force=0.9",
    "eagle:@eagle1-bias-bin,depth=4,vocab=150,ids=%even.json,force=0.7",
    "eagle3:@eagle3spec-2layers,depth=4,tree=dynamic,topk=4,total=12,vocab=90,ids=%even.json,force=0.7",
    "auto+eagle:@eagle2-nobias-gqa,tree=dynamic,topk=4,total=12,force=0.9",
    "peagle:@peagle-spec-2layers,depth=5,tree=best,topk=6,total=40,force=0.7",
    "eagle3:@eagle3-official-d2t,depth=6,tree=opt,topk=5,total=30,gain=0.05,force=0.8",
    "eagle:@eagle1-bias-bin,tree=fitted,ranks=#ranks.json,total=20,force=0.6+peagle:@peagle-spec-2layers,depth=4,tree=best,total=20",
    "dflash:@dflashspec-d2t,force=0.8",
    "dflash:@dflashwin-zlab,depth=4,force=0.7,weights=q4_0,kv=f16",
    "dflash:@dflashspec-windows,tree=dynamic,topk=4,total=14,force=0.7",
    "dflash:@dflashspec-ahead-anchor,depth=4,vocab=150,ids=%even.json,force=0.6+ngram,min=1",
    "auto+dflash:@dflash-default-ids,force=0.9",
    "dspark:@dspark-vanilla,force=0.7",
    "dspark:@dspark-rnn,depth=4,tree=dynamic,topk=3,total=12,force=0.7,weights=q4_0",
    "dspark:@dspark-windows,tree=mc_sim_7b_63,force=0.6",
    "auto+dspark:@dspark-gated,force=0.9",
    "dspark:@dspark-windows,depth=4,vocab=150,ids=%even.json,force=0.7",
    "dspark:@dspark-deepspec,min_confidence=0.3,force=0.7+ngram,min=1",
    "domino:@domino-early,force=0.8",
    "domino:@domino-early,depth=4,tree=dynamic,topk=3,total=12,pool=100,force=0.7,weights=q4_0",
    "auto+domino:@domino-early,pool=40,force=0.9",
    "domino:@domino-early,vocab=150,ids=%even.json,pool=90,tree=mc_sim_7b_63,force=0.6",
    "dflash2:@dflash2-zlab,force=0.8",
    "dflash2:@dflash2spec-windows,depth=4,tree=dynamic,topk=3,total=12,force=0.7,weights=q4_0",
    "auto+dflash2:@dflash2-zlab,force=0.9",
    "dflash2:@dflash2-zlab,vocab=150,ids=%even.json,tree=mc_sim_7b_63,force=0.6",
    "dflash:@dflash-swa-sinks,force=0.8",
    "dflash:@dflash-causal,tree=best,topk=4,total=20,force=0.7,weights=f32",
    "jetspec:@jetspec-automodel,force=0.7",
    "jetspec:@jetspec-automodel,depth=4,vocab=150,ids=%even.json,force=0.6+ngram,min=1",
    "auto+jetspec:@jetspec-automodel,tree=expanded,topk=4,total=20,force=0.9",
    "pard:@pard-llama-tied,depth=6,force=0.7",
    "pard:@pard-qwen2-padded,depth=5,vocab=150,ids=%even.json,weights=q4_0,force=0.6+ngram,min=1",
    "auto+pard:@pard-qwen2-padded,tree=best,topk=4,total=20,force=0.9",
    "medusa:@medusa-4heads,depth=4,force=0.7",
    "mlp:@mlp-tied-5,depth=5,force=0.7,vocab=150,ids=%even.json",
    "hydra:@hydra-prefix,depth=3,force=0.7",
    "medusa:@medusa-4heads,tree=mc_sim_7b_63,force=0.6,weights=q4_0",
    "mlp:@mlp-arctic-lstm,depth=4,tree=dynamic,topk=3,total=9,force=0.6",
    "medusa:@medusa-vllm-map,depth=3,tree=dynamic,topk=4,total=14,force=0.7",
    "hydra:@hydra-offset,tree=#fork.json,force=0.7+medusa:@medusa-blockwise,force=0.6",
    "auto+medusa:@medusa-4heads,force=0.9",
};
static const char *const of_qwen[] = {
    "hass:@hass-bias,depth=4,force=0.7",
    "eagle3:@eagle3-official-fullvocab,depth=4,tree=dynamic,topk=4,total=16,force=0.6,weights=f32",
    "eagle3:@eagle3spec-norm-before-residual,tree=#fork.json,force=0.6",
    "mtp:@mtp-spec-qwen3,depth=5,force=0.7",
    "mtp:@mtp-spec-qwen3,depth=4,vocab=200,ids=%even.json,force=0.7",
    "mtp:@mtp-spec-qwen3,depth=3,tree=dynamic,topk=3,total=9,force=0.6,weights=f32",
    "dflash:@dflash-zlab,depth=5,force=0.7",
    "dflash:@dflash-zlab,tree=mc_sim_7b_63,force=0.6",
    "jetspec:@jetspec-official,depth=5,tree=expanded,total=30,force=0.7,weights=q4_0,kv=f16",
    "pard:@pard-2-qwen3,depth=6,force=0.8",
    "pard:@pard-2-qwen3,tree=mc_sim_7b_63,force=0.6,kv=f32",
    "hass:@hass-bias,depth=4,tree=dynamic,topk=4,total=16+ngram,min=1+forced,accept=0.6,depth=4",
    "mtp:@mtp-spec-qwen3,tree=sequoia,ranks=#ranks.json,total=63,force=0.7",
    "medusa:@medusa-vllm-5heads,depth=5,force=0.7",
    "hydra:@hydra-2blocks,depth=3,tree=dynamic,topk=3,total=9,force=0.6",
    "mlp:@mlp-tied-scaled,depth=4,force=0.7,weights=f32",
    "hydra:@hydra-ungrounded,tree=mc_sim_7b_63,force=0.6",
    "medusa:@medusa-vllm-one-output,depth=3,pick=best",
    "mlp:@mlp-tied-scaled,tree=mc_sim_7b_63,pick=best",
};
static const char *const of_meta[] = {
    "meta-mtp:@meta-3tokens,force=0.8",
    "meta-mtp:@meta-3tokens,tree=#pair.json,force=0.8",
    "meta-mtp:@meta-3tokens,tree=dynamic,topk=4,total=12,force=0.7",
};
#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
static const target targets[] = {{HEADS_LLAMA, of_llama, COUNT(of_llama)}, {HEADS_QWEN, of_qwen, COUNT(of_qwen)},
                                 {"goldens-heads/targets/meta-b", of_meta, COUNT(of_meta)}};

static void make_prompts(void) {
    for (int i = 0; i < N_PROMPTS; i++) heads_prompt(prompt[i], prompt_len[i], 0, (uint64_t)i);
}

/* A target's vocabulary may be smaller than that of the prompts. */
static void fit(hunch_token *t, size_t n, const hunch_model *m) {
    for (size_t i = 0; i < n; i++) t[i] %= m->target.arch.vocab;
}

static hunch_request request(const hunch_model *m, int i, double temperature) {
    hunch_request r;
    fit(prompt[i], prompt_len[i], m);
    hunch_request_defaults(&r, m);
    r.prompt = prompt[i];
    r.n_prompt = prompt_len[i];
    r.max_tokens = light() ? 12 : 20;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature, .top_k = temperature > 0 && temperature < 10 ? 40 : 0,
                                  .top_p = temperature > 0 ? 0.95 : 1, .seed = 1000 + (uint64_t)i};
    return r;
}

typedef struct way {
    int parallel, chunk, page_rows;
} way;

static hunch_engine *open_way(hunch_model *m, const char *draft, hunch_verify verify, hunch_kv kv, const way *w) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = w->parallel;
    o.chunk = w->chunk;
    o.page_rows = w->page_rows;
    o.kv = kv;
    o.context = CONTEXT;
    o.verify = verify;
    return open_engine_with(m, draft ? heads_spec(draft) : NULL, o);
}

/* All prompts in one way; returns accepted drafts. */
static uint64_t run_way(hunch_model *m, const char *draft, hunch_verify verify, hunch_kv kv, double temperature, const way *w,
                        answer *out) {
    hunch_request r[N_PROMPTS];
    uint64_t accepted = 0;
    hunch_engine *e = open_way(m, draft, verify, kv, w);
    for (int i = 0; i < N_PROMPTS; i++) r[i] = request(m, i, temperature);
    for (int i = 0; i < N_PROMPTS; i += w->parallel) run_requests(e, r + i, w->parallel, true, out + i);
    for (int i = 0; i < N_PROMPTS; i++) accepted += out[i].accepted;
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    return accepted;
}

static void answers_free(answer *a) {
    for (int i = 0; i < N_PROMPTS; i++) answer_free(&a[i]);
}

static void check_way(hunch_model *m, const char *draft, hunch_verify verify, hunch_kv kv, double temperature, const way *w,
                      const answer *want, uint64_t *accepted) {
    answer got[N_PROMPTS] = {{0}};
    char what[500];
    *accepted += run_way(m, draft, verify, kv, temperature, w, got);
    for (int i = 0; i < N_PROMPTS; i++) {
        snprintf(what, sizeof what, "%s, rule %d, %d together, chunk %d, pages of %d, temperature %g, prompt %d", draft,
                 (int)verify, w->parallel, w->chunk, w->page_rows, temperature, i);
        assert_same(&want[i], &got[i], what);
    }
    answers_free(got);
}

static const way alone = {1, 64, 64}, ways[] = {{1, 64, 16}, {8, 64, 16}, {8, 3, 64}, {1, 1, 32}};

/* ---- the text of plain decoding ------------------------------------------------------------------------------------- */

enum { MOST_DRAFTS = 64 };
static void check_target(const target *t, double temperature, hunch_kv kv) {
    answer want[N_PROMPTS] = {{0}};
    uint64_t accepted[MOST_DRAFTS] = {0};
    const int step = light() ? 3 : 1, first = light() && temperature > 0; /* a light run: two thirds, each at one of two temperatures */
    assert_true(t->n_drafts <= MOST_DRAFTS);
    hunch_model *m = open_model(data_path(t->path), "best", 1, HUNCH_PRECISION_NATIVE);
    run_way(m, NULL, HUNCH_VERIFY_DEFAULT, kv, temperature, &alone, want);
    for (int threads = 1; threads <= 2; threads++) { /* the plain answers are one thread's */
        for (int d = first; d < t->n_drafts; d += step)
            for (int w = 0; w < COUNT(ways); w++) /* one way, or all in a long test, with one of the numbers of threads */
                if ((2 * w + threads + d) % (2 * test_every(4, 4)) == 0)
                    check_way(m, t->drafts[d], HUNCH_VERIFY_DEFAULT, kv, temperature, &ways[w], want, &accepted[d]);
        hunch_model_close(&m);
        if (threads == 1) m = open_model(data_path(t->path), "best", temperature > 0 ? test_threads() : 2, HUNCH_PRECISION_NATIVE);
    }
    for (int d = first; d < t->n_drafts; d += step) /* paths were accepted and committed; which drafters auto calls depends on time */
        if (strstr(t->drafts[d], "force") && !strstr(t->drafts[d], "auto") && accepted[d] < 5)
            fail_msg("%s: %d accepted", t->drafts[d], (int)accepted[d]);
    answers_free(want);
}

/* README: "By default tokens and logits are the same bits with and without drafting, at temperature 0 and with
 * sampling." */
static void test_greedy(void **state) {
    (void)state;
    for (int t = 0; t < COUNT(targets); t++) check_target(&targets[t], 0, HUNCH_KV_DEFAULT);
}

static void test_match(void **state) {
    (void)state;
    for (int t = 0; t < COUNT(targets); t += light() ? 2 : 1) check_target(&targets[t], 0.9, t ? HUNCH_KV_DEFAULT : HUNCH_KV_F16);
}

/* Everything in floats: the heads' weights too. */
static void test_f32(void **state) {
    (void)state;
    static const way crowd = {8, 3, 16};
    for (int t = 0; t < COUNT(targets); t++) {
        answer want[N_PROMPTS] = {{0}};
        uint64_t accepted = 0;
        hunch_model *m = open_model(data_path(targets[t].path), "best", 1 + t % 2, HUNCH_PRECISION_F32);
        run_way(m, NULL, HUNCH_VERIFY_DEFAULT, HUNCH_KV_DEFAULT, 0, &alone, want);
        for (int d = 0; d < targets[t].n_drafts; d += test_every(6, 16))
            check_way(m, targets[t].drafts[d], HUNCH_VERIFY_DEFAULT, HUNCH_KV_DEFAULT, 0, &crowd, want, &accepted);
        hunch_model_close(&m);
        answers_free(want);
    }
}

/* Other levels of instructions with the same sums: the head's drafts may differ, the text does not. */
static void test_levels(void **state) {
    (void)state;
    const char *names[HN_ISA_COUNT];
    const int n = levels_as_best(names);
    static const way crowd = {8, 64, 16};
    answer want[N_PROMPTS] = {{0}};
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE);
    run_way(m, NULL, HUNCH_VERIFY_DEFAULT, HUNCH_KV_DEFAULT, 0, &alone, want);
    hunch_model_close(&m);
    for (int i = 0; i < n; i += light() && n > 1 ? n - 1 : 1) {
        uint64_t accepted = 0;
        m = open_model(data_path(HEADS_LLAMA), names[i], 1 + i % 2, HUNCH_PRECISION_NATIVE);
        for (int d = i % 2; d < COUNT(of_llama); d += 2 * test_every(6, 12))
            check_way(m, of_llama[d], HUNCH_VERIFY_DEFAULT, HUNCH_KV_DEFAULT, 0, &crowd, want, &accepted);
        hunch_model_close(&m);
    }
    answers_free(want);
}

/* ---- rules that preserve the distribution ------------------------------------------------------------------------------------ */

/* Drawn chains and trees for which there is room beside seven other texts. */
static const struct {
    const char *draft;
    hunch_verify verify;
} ruled[] = {
    {"eagle:@eagle1-bias-bin,depth=4", HUNCH_VERIFY_RATIO},
    {"eagle3:@eagle3-official-d2t,depth=4", HUNCH_VERIFY_BLOCK},
    {"eagle3:@eagle3spec-plain,depth=3", HUNCH_VERIFY_TRAVERSAL},
    {"eagle:@eagle2-nobias-gqa,tree=#pair.json", HUNCH_VERIFY_RATIO},
    {"eagle3:@eagle3-official-d2t,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"eagle:@eagle2-nobias-gqa,depth=3,tree=dynamic,topk=2,total=6,force=0.7", HUNCH_VERIFY_RATIO},
    {"eagle3:@eagle3-official-d2t,depth=4,force=0.6", HUNCH_VERIFY_RATIO},
    {"peagle:@peagle-spec-2layers,depth=4", HUNCH_VERIFY_BLOCK},
    {"eagle:@eagle1-bias-bin,depth=4,vocab=200,ids=%even.json", HUNCH_VERIFY_BLOCK},
    {"peagle:@peagle-spec-2layers,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"dart:@dart-d2t,depth=4", HUNCH_VERIFY_BLOCK},
    {"falcon:@falcon-k2,depth=5", HUNCH_VERIFY_BLOCK},
    {"falcon:@falcon-k3,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"dart:@dart-d2t,tree=pruned,total=6,force=0.7", HUNCH_VERIFY_RATIO},
    {"peagle:@peagle-spec-2layers,depth=3,tree=best,total=6,force=0.7", HUNCH_VERIFY_RATIO},
    {"eagle3:@eagle3-official-d2t,tree=fitted,ranks=#ranks.json,total=6", HUNCH_VERIFY_TRAVERSAL},
    {"dflash:@dflashspec-d2t,depth=4", HUNCH_VERIFY_RATIO},
    {"dflash:@dflashspec-windows,depth=3", HUNCH_VERIFY_BLOCK},
    {"dspark:@dspark-gated,depth=4", HUNCH_VERIFY_RATIO},
    {"dspark:@dspark-rnn,depth=3", HUNCH_VERIFY_BLOCK},
    {"dspark:@dspark-deepspec,depth=4,min_confidence=0.35", HUNCH_VERIFY_BLOCK},
    {"domino:@domino-early,depth=4,pool=60", HUNCH_VERIFY_RATIO},
    {"domino:@domino-early,depth=3,pool=60", HUNCH_VERIFY_BLOCK},
    {"domino:@domino-early,tree=#pair.json,pool=60", HUNCH_VERIFY_TRAVERSAL},
    {"dflash2:@dflash2-zlab,depth=4", HUNCH_VERIFY_RATIO},
    {"dflash2:@dflash2-zlab,depth=3", HUNCH_VERIFY_BLOCK},
    {"dflash2:@dflash2spec-windows,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"dflash:@dflash-swa-sinks,depth=4", HUNCH_VERIFY_RATIO},
    {"dspark:@dspark-windows,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"dflash:@dflashmask-zlab,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"jetspec:@jetspec-automodel,depth=4", HUNCH_VERIFY_BLOCK},
    {"jetspec:@jetspec-automodel,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"pard:@pard-llama-tied,depth=4", HUNCH_VERIFY_RATIO},
    {"pard:@pard-qwen2-padded,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
    {"medusa:@medusa-4heads,depth=4", HUNCH_VERIFY_BLOCK},
    {"hydra:@hydra-prefix,depth=3", HUNCH_VERIFY_RATIO},
    {"mlp:@mlp-tied-5,tree=#pair.json", HUNCH_VERIFY_TRAVERSAL},
};

/* At temperature 0 plain decoding's text; with sampling the same text for any split of the work, not always plain decoding's. */
static void test_rules(void **state) {
    (void)state;
    int others = 0;
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE);
    answer plain[2][N_PROMPTS] = {{{0}}};
    for (int warm = 0; warm < 2; warm++)
        run_way(m, NULL, HUNCH_VERIFY_DEFAULT, HUNCH_KV_DEFAULT, warm ? FLAT : 0, &alone, plain[warm]);
    for (int d = 0; d < COUNT(ruled); d += test_every(1, 2)) {
        answer want[N_PROMPTS] = {{0}};
        uint64_t accepted = 0;
        for (int w = d % 2; w < COUNT(ways); w += 2 * test_every(2, 2))
            check_way(m, ruled[d].draft, ruled[d].verify, HUNCH_KV_DEFAULT, 0, &ways[w], plain[0], &accepted);
        run_way(m, ruled[d].draft, ruled[d].verify, HUNCH_KV_DEFAULT, FLAT, &alone, want);
        accepted = 0;
        for (int w = d % test_every(2, 4); w < COUNT(ways); w += test_every(2, 4))
            check_way(m, ruled[d].draft, ruled[d].verify, HUNCH_KV_DEFAULT, FLAT, &ways[w], want, &accepted);
        if (accepted == 0 && !strstr(ruled[d].draft, "force"))
            fail_msg("%s, rule %d: nothing accepted", ruled[d].draft, (int)ruled[d].verify);
        for (int i = 0; i < N_PROMPTS; i++)
            others += memcmp(want[i].token, plain[1][i].token, want[i].n * sizeof *want[i].token) != 0;
        answers_free(want);
    }
    assert_true(others > 0); /* else the rules had no effect */
    for (int warm = 0; warm < 2; warm++) answers_free(plain[warm]);
    hunch_model_close(&m);
}

/* ---- sharing, preemption, ends ------------------------------------------------------------------------------------------ */

enum { LONG = 512, PAGE = 16 };

static hunch_engine *open_small(hunch_model *m, const char *draft, int parallel, int pool_rows, bool reuse) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = LONG;
    o.page_rows = PAGE;
    o.pool_rows = pool_rows;
    o.no_prefix_reuse = !reuse;
    return open_engine_with(m, draft ? heads_spec(draft) : NULL, o);
}

static hunch_request small_request(const hunch_model *m, const hunch_token *t, size_t n, int max_tokens, double temperature) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = t;
    r.n_prompt = n;
    r.max_tokens = max_tokens;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature, .top_p = 0.95, .seed = n};
    return r;
}

static void plain_answer(hunch_model *m, const hunch_request *r, answer *out) {
    hunch_engine *e = open_small(m, NULL, 1, 0, false);
    run_requests(e, r, 1, true, out);
    hunch_engine_close(&e);
}

static void check_same_as_plain(hunch_model *m, const hunch_request *r, const answer *got, const char *what) {
    answer want = {0};
    plain_answer(m, r, &want);
    assert_same(&want, got, what);
    assert_int_equal(want.finish, got->finish);
    answer_free(&want);
}

/* Requests one after the other on one engine, each with the beginning of an earlier one; the last continues an answer. */
static void check_prefixes(hunch_model *m, const char *draft, double temperature) {
    enum { N = 6 };
    static const size_t length[N] = {120, 120, 121, 97, 40, 112}, shared[N] = {120, 80, 121, 96, 33, 112};
    hunch_token text[400];
    hunch_engine *e = open_small(m, draft, 2, 0, true);
    size_t recompute = 0; /* a head with rows of its own recomputes one row of a prefix, or as many as a block has */
    for (int d = 0; d < e->n_drafters; d++)
        if (e->drafter[d].needs.n_groups > 0 && (size_t)e->drafter[d].needs.group[0].recompute > recompute)
            recompute = (size_t)e->drafter[d].needs.group[0].recompute;
    for (int i = 0; i < N; i++) {
        answer got = {0}, turn = {0};
        heads_prompt(text, length[i], shared[i], (uint64_t)i);
        fit(text, length[i], m);
        hunch_request r = small_request(m, text, length[i], 30, temperature);
        run_requests(e, &r, 1, true, &got);
        check_same_as_plain(m, &r, &got, draft);
        memcpy(text + length[i], got.token, got.n * sizeof *text);
        heads_prompt(text + length[i] + got.n, 12, 0, 5);
        fit(text + length[i] + got.n, 12, m);
        r = small_request(m, text, length[i] + got.n + 12, 20, temperature);
        run_requests(e, &r, 1, true, &turn);
        check_same_as_plain(m, &r, &turn, draft);
        const size_t rows = length[i] + got.n - 1; /* the newest token of the answer had no row */
        /* a head that recomputes several rows continues at the end of a page */
        assert_int_equal(turn.restored, (recompute > 1 ? rows / PAGE * PAGE : rows) - recompute);
        answer_free(&got);
        answer_free(&turn);
    }
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
}

/* More texts than places and pages; some are cancelled. */
static uint64_t check_crowd(hunch_model *m, const char *draft, double temperature, int parallel, int pool_rows, int tokens) {
    enum { N = 10 };
    static hunch_token text[N][100];
    hunch_session *s[N] = {0};
    hunch_request r[N];
    answer got[N] = {{0}};
    uint64_t preempted = 0;
    hunch_engine *e = open_small(m, draft, parallel, pool_rows, true);
    for (int i = 0; i < N; i++) {
        const size_t n = (size_t)(i == 3 ? 1 : 20 + 7 * i);
        heads_prompt(text[i], n, 20, (uint64_t)i / 2);
        fit(text[i], n, m);
        r[i] = small_request(m, text[i], n, tokens, temperature);
        hunch_request q = r[i];
        q.on_logits = keep_logits;
        q.on_logits_user = &got[i];
        must(hunch_session_open(&s[i], e, &q, err));
    }
    for (int round = 0; hunch_engine_running(e) > 0; round++) {
        must(hunch_engine_round(e, err));
        if (pool_rows > 0 && round % 9 == 8) preempt_youngest(e); /* admission makes a real shortage rare */
        if (round == 4) hunch_session_cancel(s[1]);
        if (round == 9) hunch_session_cancel(s[6]);
    }
    for (int i = 0; i < N; i++) {
        keep_answer(&got[i], s[i]);
        preempted += got[i].preempted;
        if (i != 1 && i != 6) check_same_as_plain(m, &r[i], &got[i], draft);
        hunch_session_close(&s[i]);
        answer_free(&got[i]);
    }
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    return preempted;
}

/* README: "Texts that share a prefix, wait, or are preempted when memory runs out are the same as if each were
 * generated alone." */
static void test_sharing(void **state) {
    (void)state;
    for (int t = 0; t < COUNT(targets); t++) {
        hunch_model *m = open_model(data_path(targets[t].path), "best", test_threads(), HUNCH_PRECISION_NATIVE);
        for (int d = t; d < targets[t].n_drafts; d += test_every(6, 40)) {
            const double temperature = d % 2 ? 0.9 : 0;
            check_prefixes(m, targets[t].drafts[d], temperature);
            assert_int_equal(check_crowd(m, targets[t].drafts[d], temperature, 3, 0, 20), 0);
        }
        hunch_model_close(&m);
    }
}

static void test_preemption(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    for (int d = 1; d < COUNT(of_llama); d += 3 * test_every(6, 30))
        if (check_crowd(m, of_llama[d], d % 4 ? 0.9 : 0, 8, 1, light() ? 120 : 400) == 0)
            fail_msg("%s: nobody had to give way", of_llama[d]);
    hunch_model_close(&m);
}

/* As many texts as places: each has one row a pass at first, and drafts when the others are done. */
static void test_sixty_four(void **state) {
    (void)state;
    enum { N = 64 };
    static hunch_token text[N][N];
    static answer got[N];
    hunch_request r[N];
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE);
    for (int d = 0; d < (EVERY_CASE ? 2 : 1); d++) {
        uint64_t drafted = 0;
        hunch_engine *e = open_small(m, of_llama[d], N, 0, true);
        for (int i = 0; i < N; i++) {
            heads_prompt(text[i], (size_t)i + 1, 0, (uint64_t)i);
            r[i] = small_request(m, text[i], (size_t)i + 1, 2 + i % 24, d ? 0.9 : 0);
        }
        run_requests(e, r, N, true, got);
        for (int i = 0; i < N; i++) {
            drafted += got[i].drafted;
            if (i % test_every(4, 8) == d) check_same_as_plain(m, &r[i], &got[i], of_llama[d]);
            answer_free(&got[i]);
        }
        assert_true(drafted > 0);
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

/* A text that ends inside an accepted block, by its end token or by the context, and one that continues it. */
static void check_end(hunch_model *m, const char *draft, size_t n_prompt, bool by_token) {
    hunch_bias bias = {2, by_token ? 0 : -1000};
    hunch_token text[LONG + 50];
    answer got = {0}, turn = {0};
    heads_prompt(text, n_prompt, 0, 21);
    hunch_request r = small_request(m, text, n_prompt, LONG, 8); /* flat enough for any token to come */
    r.ignore_eos = false;
    r.sampling.bias = &bias;
    r.sampling.n_bias = 1;
    while (by_token && (got.n < 6 || got.n > 90)) { /* until it is likely enough to come soon, but not at once */
        answer_free(&got);
        bias.bias += 3;
        assert_true(bias.bias < 300);
        plain_answer(m, &r, &got);
    }
    answer_free(&got);
    hunch_engine *e = open_small(m, draft, 2, 0, true);
    run_requests(e, &r, 1, true, &got);
    check_same_as_plain(m, &r, &got, draft);
    assert_int_equal(got.finish, by_token ? HUNCH_FINISH_STOP : HUNCH_FINISH_LENGTH);
    assert_true(got.n > 4 && got.accepted > 2);
    memcpy(text + n_prompt, got.token, got.n * sizeof *text);
    const size_t n = n_prompt + got.n < LONG - 40 ? n_prompt + got.n : LONG - 40;
    r = small_request(m, text, n, 20, 0);
    run_requests(e, &r, 1, true, &turn);
    check_same_as_plain(m, &r, &turn, draft);
    assert_true(turn.restored > 0);
    answer_free(&got);
    answer_free(&turn);
    hunch_engine_close(&e);
}

/* A target whose texts can end: that of the goldens has no tokenizer. */
static const char *const parts[][2] = {{HEADS_QWEN, "config.json"},
                                       {HEADS_QWEN, "model.safetensors"},
                                       {"models/stories260K/hf", "tokenizer.json"},
                                       {"models/stories260K/hf", "tokenizer_config.json"}};

static void test_ends(void **state) {
    (void)state;
    static const char *const certain[] = {"hass:@hass-bias,depth=7,force=1",
                                          "eagle3:@eagle3-official-fullvocab,depth=6,tree=dynamic,topk=3,total=20,force=1"};
    char folder[] = "/tmp/hunch-heads-XXXXXX", to[600];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < COUNT(parts); i++) {
        snprintf(to, sizeof to, "%s/%s", folder, parts[i][1]);
        char from[600];
        snprintf(from, sizeof from, "%s/%s", data_path(parts[i][0]), parts[i][1]);
        assert_int_equal(symlink(from, to), 0);
    }
    hunch_model *m = open_model(folder, "best", 1, HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < COUNT(parts); i++) {
        snprintf(to, sizeof to, "%s/%s", folder, parts[i][1]);
        assert_int_equal(unlink(to), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    for (int d = 0; d < 2; d++) {
        check_end(m, certain[d], LONG - 60, false);
        check_end(m, certain[d], 30, true);
    }
    hunch_model_close(&m);
}

/* Every level of instructions with the same sums, and experts or all weights left in the file: the same bits as with weights in memory at
 * the best level. */
static void check_ways_of_weights(const char *path, const char *const *drafts, int n) {
    static const way crowd = {8, 64, 16};
    const char *names[HN_ISA_COUNT];
    const int n_levels = levels_as_best(names);
    answer want[N_PROMPTS] = {{0}};
    hunch_model *m = open_model(data_path(path), "best", 1, HUNCH_PRECISION_NATIVE);
    run_way(m, NULL, HUNCH_VERIFY_DEFAULT, HUNCH_KV_DEFAULT, 0, &alone, want);
    hunch_model_close(&m);
    for (int i = 0; i < n_levels + 2; i++) {
        uint64_t accepted = 0;
        hunch_model_options o;
        hunch_model_options_defaults(&o);
        o.isa = i < n_levels ? names[i] : "best";
        o.threads = 1 + i % 2;
        o.mapped = i == n_levels;
        o.mapped_experts = i == n_levels + 1;
        must(hunch_model_open(&m, data_path(path), &o, err));
        for (int d = EVERY_CASE ? 0 : i % n; d < n; d += EVERY_CASE ? 1 : n)
            check_way(m, drafts[d], HUNCH_VERIFY_DEFAULT, HUNCH_KV_DEFAULT, 0, &crowd, want, &accepted);
        assert_true(accepted > 0);
        hunch_model_close(&m);
    }
    answers_free(want);
}

/* Writes a random head's files, which folder_remove_head removes. */
static void folder_make_head(const head_form *form, char *folder) {
    assert_non_null(mkdtemp(folder));
    head_write_form(form, folder);
}

static void folder_remove_head(const char *folder) {
    static const char *const files[] = {"config.json", "model.safetensors"};
    char file[200];
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, files[i]);
        assert_int_equal(unlink(file), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* Rows of chains and trees that use different experts, with shared prefixes and preempted texts. */
static void test_experts(void **state) {
    (void)state;
    static const char *const models[] = {"goldens/qwen3_moe-top2", "goldens/glm4_moe-groups", "goldens/gpt_oss-mxfp4",
                                        "goldens/deepseek_v2-lite"};
    static const char *const rests[] = {"depth=4,force=0.7", "depth=5,tree=dynamic,topk=4,total=24,force=0.7",
                                        "tree=mc_sim_7b_63,force=0.6", "force=0.7", "tree=best,topk=4,total=20,force=0.7"};
    enum { EAGLES = 3, ALL = sizeof rests / sizeof *rests };
    char eagle[] = "/tmp/hunch-experts-XXXXXX", block[] = "/tmp/hunch-experts-XXXXXX", spec[ALL][200];
    const char *drafts[ALL];
    folder_make_head(&STORIES_EAGLE3, eagle);
    folder_make_head(&STORIES_DFLASH, block);
    for (int d = 0; d < ALL; d++) {
        snprintf(spec[d], sizeof spec[d], "%s:%s,%s", d < EAGLES ? "eagle3" : "dflash", d < EAGLES ? eagle : block, rests[d]);
        drafts[d] = spec[d];
    }
    for (int t = light() ? 2 : 0; t < COUNT(models); t++) { /* the last one has all: windows, sinks, biases, MXFP4 */
        const int n = t == 2 ? ALL : EAGLES;
        const target one = {models[t], drafts, n};
        check_target(&one, t == 1 ? 0.9 : 0, HUNCH_KV_DEFAULT);
        check_ways_of_weights(models[t], drafts, n);
        hunch_model *m = open_model(data_path(models[t]), "best", test_threads(), HUNCH_PRECISION_NATIVE);
        check_prefixes(m, drafts[t], 0);
        if (check_crowd(m, drafts[t == 0], t == 1 ? 0 : 0.9, 8, 1, light() ? 120 : 400) == 0)
            fail_msg("%s: nobody had to give way", models[t]);
        hunch_model_close(&m);
    }
    folder_remove_head(eagle);
    folder_remove_head(block);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_experts),    cmocka_unit_test(test_greedy),
                                       cmocka_unit_test(test_match),      cmocka_unit_test(test_f32),
                                       cmocka_unit_test(test_levels),     cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_sharing),    cmocka_unit_test(test_preemption),
                                       cmocka_unit_test(test_sixty_four), cmocka_unit_test(test_ends)};
    make_prompts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
