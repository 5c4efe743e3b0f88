/* SPDX-License-Identifier: Apache-2.0 */
/* equality_test.c - losslessness as a test (contracts C1, C2): with any drafters and any split of the work, tokens AND logits
 * are bit-identical to plain decoding. The full product on the tiny models, over random accept patterns, at the best
 * level of the machine; a sample of it at each other level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "goldens.h"
#include "levels_as_best.h"

enum { N_PROMPTS = 8, CONTEXT = 128 };

/* Prompts of different lengths that share nothing, from a small generator: the models' texts repeat enough. */
static hunch_token prompt[N_PROMPTS][48];
static size_t prompt_len[N_PROMPTS];

static void make_prompts(int vocab) {
    static const int len[N_PROMPTS] = {1, 2, 7, 15, 16, 17, 33, 47};
    uint64_t x = 12345;
    for (int i = 0; i < N_PROMPTS; i++) {
        prompt_len[i] = (size_t)len[i];
        for (int k = 0; k < len[i]; k++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            /* repeat a phrase now and then, so that lookup finds something */
            prompt[i][k] = k >= 8 && (x >> 60) < 10 ? prompt[i][k - 8] : (hunch_token)((x >> 33) % (uint64_t)vocab);
        }
    }
}

static hunch_request request(const hunch_model *m, int i, double temperature) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt[i];
    r.n_prompt = prompt_len[i];
    r.max_tokens = light() ? 12 : 24;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature,
                                  .top_k = temperature > 0 ? 40 : 0,
                                  .top_p = temperature > 0 ? 0.95 : 1,
                                  .seed = 1000 + (uint64_t)i};
    return r;
}

static void plain_answers(hunch_model *m, double temperature, hunch_kv kv, answer *out) {
    hunch_engine *e = open_engine(m, NULL, 1, 64, kv, 64, CONTEXT);
    for (int i = 0; i < N_PROMPTS; i++) {
        const hunch_request r = request(m, i, temperature);
        run_requests(e, &r, 1, true, &out[i]);
    }
    hunch_engine_close(&e);
}

/* A prediction of this answer: the answer with a token changed, one missing and one added. */
static size_t predict(const answer *a, hunch_token *out) {
    size_t n = 0;
    for (size_t i = 0; i < a->n && n < 60; i++) {
        if (i == 9) continue;
        if (i == 15) out[n++] = 3;
        out[n++] = i == 4 ? 7 : a->token[i];
    }
    return n;
}

/* Compares one split of the work with the plain answers. Returns accepted draft tokens. */
static uint64_t check_way(hunch_model *m, const answer *want, double temperature, hunch_kv kv, const char *draft,
                          int parallel, int chunk, int page_rows, const char *where) {
    answer got[N_PROMPTS] = {{0}};
    hunch_request r[N_PROMPTS];
    uint64_t accepted = 0;
    char what[300];
    hunch_engine *e = open_engine(m, draft, parallel, chunk, kv, page_rows, CONTEXT);
    hunch_token expected[N_PROMPTS][64];
    for (int i = 0; i < N_PROMPTS; i++) {
        r[i] = request(m, i, temperature);
        r[i].prediction = expected[i];
        r[i].n_prediction = predict(&want[i], expected[i]);
    }
    for (int i = 0; i < N_PROMPTS; i += parallel) run_requests(e, r + i, parallel, true, got + i);
    for (int i = 0; i < N_PROMPTS; i++) {
        snprintf(what, sizeof what, "%s draft %s, %d together, chunk %d, pages of %d, temperature %g, prompt %d", where,
                 draft ? draft : "none", parallel, chunk, page_rows, temperature, i);
        assert_same(&want[i], &got[i], what);
        accepted += got[i].accepted;
        answer_free(&got[i]);
    }
    hunch_engine_close(&e);
    return accepted;
}

static const char *const drafts[] = {
    "ngram", "forced,accept=0.7,depth=5,seed=1", "forced,accept=0.6,depth=6,tree=random,seed=2",
    "forced,accept=0.9,depth=4,width=3,seed=3",
    "ngram,min=1+forced,accept=0.5,depth=5,seed=4+forced,accept=0.7,depth=3,width=2,seed=5",
    "ngram,form=mod,max=3,min=2", "cache", "suffix", "suffix,mode=tree", "prediction", "auto",
    "prediction,places=4+suffix+cache+forced,accept=0.6,depth=6,tree=random,seed=6", "recycle,nodes=12", "recycle,tree=paper,k=6",
    "lookahead,window=3,ngram=3,guess=3", "lookahead+recycle+suffix", "auto+recycle+lookahead"};
enum { N_DRAFTS = sizeof drafts / sizeof *drafts, N_SHAPES = 5 }; /* the first shape trees in every way */

/* Every split of the work, at one level; adds accepted draft tokens. brief: only the shapes of trees that differ most. */
static void check_ways(const char *name, const char *isa, const answer *want, double temperature, hunch_kv kv, bool brief,
                       uint64_t accepted[N_DRAFTS]) {
    const int chunks[] = {1, 3, 64};
    for (int threads = brief ? 2 : 1; threads <= 2; threads++) { /* the plain answers are one thread's */
        char where[200];
        hunch_model *m = open_model(data_path(name), isa, threads, HUNCH_PRECISION_NATIVE);
        snprintf(where, sizeof where, "%s at %s, %d threads:", name, isa, threads);
        for (int c = brief ? 1 : 0; c < (brief || !EVERY_CASE ? 2 : 3); c++)
            for (int parallel = 1; parallel <= 8; parallel += 7) {
                check_way(m, want, temperature, kv, NULL, parallel, chunks[c], 16, where);
                /* the others differ in their drafts, not in how the pass is split: once is enough */
                const int n = !brief && (c == 1) == (parallel == 1) ? N_DRAFTS : N_SHAPES;
                for (int d = 0, every = brief ? test_every(2, 2) : test_every(4, 3); d < n; d++) {
                    if ((d + threads + (parallel > 1) + c) % every) continue;
                    accepted[d] += check_way(m, want, temperature, kv, drafts[d], parallel, chunks[c],
                                             c == 1 ? 16 : 64, where);
                }
            }
        hunch_model_close(&m);
    }
}

/* Another level with the same sums gives the same bits in every kernel (tests/check) and so for whole texts: every shape of tree
 * once. (The drafts of the other drafters do not depend on the level.) */
static void check_level(const char *name, const char *isa, const answer *want, double temperature, hunch_kv kv) {
    const int chunks[] = {3, 64, 1};
    char where[200];
    hunch_model *m = open_model(data_path(name), isa, test_threads(), HUNCH_PRECISION_NATIVE);
    snprintf(where, sizeof where, "%s at %s against the best level:", name, isa);
    check_way(m, want, temperature, kv, NULL, 1, 1, 64, where);
    for (int d = (int)(temperature > 0) % test_every(2, 1); d < N_SHAPES; d += test_every(2, 1))
        check_way(m, want, temperature, kv, drafts[d], d % 2 ? 8 : 1, chunks[d % 3], d % 4 < 2 ? 16 : 64, where);
    hunch_model_close(&m);
}

/* brief: the best level alone, and fewer ways. Outside of the long test each model is run at one of the two temperatures, in turn. */
static void check_model(const char *name, hunch_kv kv, bool brief) {
    static int turn;
    const int only = EVERY_CASE ? -1 : turn++ % 2;
    const char *best = hn_isa_name(hn_isa_best());
    for (int t = 0; t < 2; t++) {
        if (only == !t) continue;
        const double temperature = t ? 0.9 : 0;
        answer want[N_PROMPTS] = {{0}};
        uint64_t accepted[N_DRAFTS] = {0};
        hunch_model *m = open_model(data_path(name), best, 1, HUNCH_PRECISION_NATIVE);
        make_prompts(m->target.arch.vocab);
        plain_answers(m, temperature, kv, want);
        hunch_model_close(&m);
        check_ways(name, best, want, temperature, kv, brief, accepted);
        for (int d = 1; d < N_SHAPES; d++) assert_true(accepted[d] > 0); /* the test did accept and commit paths */
        int n = t; /* each level at one of the two temperatures, or at both */
        for (hn_isa l = HN_ISA_REF; !brief && !light() && l < hn_isa_best(); l = hn_isa_next(l), n++)
            if ((EVERY_CASE || n % 2) && (kv != HUNCH_KV_BF16 || sums_as_best(l)))
                check_level(name, hn_isa_name(l), want, temperature, kv);
        for (int i = 0; i < N_PROMPTS; i++) answer_free(&want[i]);
    }
}

/* README: "By default tokens and logits are the same bits with and without drafting, at temperature 0 and with
 * sampling." */
static void test_stories_f32(void **state) {
    (void)state;
    check_model("models/stories260K/stories260K.f32.gguf", HUNCH_KV_BF16, false);
}
static void test_babyllama_q8(void **state) {
    (void)state;
    check_model("models/babyllama105/babyllama105.q8_0.gguf", HUNCH_KV_F16, false);
}
static void test_golden_folder(void **state) {
    (void)state;
    check_model("goldens/llama-gqa", HUNCH_KV_F32, false);
}

static bool takes_q8(const char *path) {
    hunch_model *m = open_model(data_path(path), "best", 1, HUNCH_PRECISION_NATIVE);
    bool takes = true;
    for (int i = 0; i < m->target.arch.layers; i++) takes &= m->target.arch.layer[i].head_dim % 32 == 0;
    hunch_model_close(&m);
    return takes;
}

/* Every golden that passes run in another way than those before it; the first of each set of mixers in more ways. */
static void test_families(void **state) {
    (void)state;
    static const hunch_kv kv[] = {HUNCH_KV_BF16, HUNCH_KV_BF16, HUNCH_KV_Q8_0, HUNCH_KV_BF16, HUNCH_KV_F16};
    char families[MOST_GOLDENS][GOLDEN_NAME];
    uint64_t seen[MOST_GOLDENS];
    const int n = golden_apart(golden_any, UINT64_MAX, families);
    for (int i = 0, k; i < n; i++) {
        seen[i] = golden_parts_of(families[i]) & GOLDEN_MIXERS;
        for (k = 0; seen[k] != seen[i];) k++;
        check_model(families[i], k == i || (kv[i % 5] == HUNCH_KV_Q8_0 && !takes_q8(families[i])) ? HUNCH_KV_BF16 : kv[i % 5], k < i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families), cmocka_unit_test(test_stories_f32),
                                       cmocka_unit_test(test_babyllama_q8), cmocka_unit_test(test_golden_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
