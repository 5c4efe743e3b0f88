/* SPDX-License-Identifier: Apache-2.0 */
/* long_chunks_test.c - passes of more rows than trees and batches have: the chunk of a prompt changes no bit (contract
 * C2), for any kind of layer, beside other texts, after prefixes and after a lost place; and which prompts get such
 * passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heads.h"
#include "preempt_for_tests.h"

enum { CONTEXT = 700, TEXTS = 3, TOKENS = 10, VOCAB = 128 };
static size_t lengths[TEXTS] = {613, 130, 33};
static int context = CONTEXT;
static hunch_token prompt[TEXTS][CONTEXT];

static hunch_request request(const hunch_model *m, int i) {
    hunch_request r;
    uint64_t x = 77 + (uint64_t)i;
    for (size_t k = 0; k < lengths[i]; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        prompt[i][k] = k >= 9 && (x >> 60) < 8 ? prompt[i][k - 9] : (hunch_token)((x >> 33) % VOCAB);
    }
    hunch_request_defaults(&r, m);
    r.prompt = prompt[i];
    r.n_prompt = lengths[i];
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = i == 1 ? 0.8 : 0, .top_p = 1, .seed = 5};
    return r;
}

static hunch_engine_options options(int chunk, int parallel) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.chunk = chunk;
    o.parallel = parallel;
    o.context = context;
    o.page_rows = 16;
    return o;
}

static void expect(hunch_model *m, answer want[TEXTS]) {
    hunch_engine *e = open_engine_with(m, NULL, options(7, 1));
    for (int i = 0; i < TEXTS; i++) {
        const hunch_request r = request(m, i);
        run_requests(e, &r, 1, true, &want[i]);
    }
    hunch_engine_close(&e);
}

static void compare(hunch_engine *e, hunch_model *m, const answer want[TEXTS], int parallel, const char *what) {
    hunch_request r[TEXTS];
    answer got[TEXTS] = {{0}};
    for (int i = 0; i < TEXTS; i++) r[i] = request(m, i);
    for (int i = 0; i < TEXTS; i += parallel) run_requests(e, r + i, parallel, true, got + i);
    for (int i = 0; i < TEXTS; i++) {
        assert_same(&want[i], &got[i], what);
        answer_free(&got[i]);
    }
}

/* chunk: the requested size; most: the resulting one. */
static void check_chunk(hunch_model *m, const answer want[TEXTS], const char *name, int chunk, int most) {
    static const char *const drafts[] = {NULL, "ngram", "forced,accept=0.7,depth=6,tree=random,seed=5", "auto"};
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++)
        for (int parallel = 1; parallel <= TEXTS; parallel += TEXTS - 1) {
            if ((d + (parallel > 1) + (chunk > 0)) % (size_t)test_every(1, 2)) continue;
            char what[200];
            hunch_engine *e = open_engine_with(m, drafts[d], options(chunk, parallel));
            assert_int_equal(hunch_engine_chunk(e), most);
            snprintf(what, sizeof what, "%s, chunk %d, %d together, draft %s", name, chunk, parallel, drafts[d] ? drafts[d] : "none");
            compare(e, m, want, parallel, what);
            compare(e, m, want, parallel, what); /* after prefixes */
            hunch_engine_close(&e);
        }
}

/* usual: rows of a chunk by default; widest: if 600 are requested. */
static void check_model(const char *path, int usual, int widest) {
    answer want[TEXTS] = {{0}};
    for (int threads = 1; threads <= 2; threads++) {
        hunch_model *m = open_model_as(data_path(path), "best", threads, HUNCH_PRECISION_NATIVE, threads == 2 && widest > 64);
        if (threads == 1) expect(m, want);
        check_chunk(m, want, path, 0, usual);
        check_chunk(m, want, path, 600, widest);
        if (!light() && widest > 64) check_chunk(m, want, path, 100, 100);
        hunch_model_close(&m);
    }
    for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
}

static void test_experts(void **state) {
    (void)state;
    check_model("goldens/mixtral-window", 128, 512);
    check_model("goldens/gpt_oss-mxfp4", 128, 512);
    if (light()) return;
    check_model("goldens/glm4_moe-groups", 128, 512); /* 3 of 16: an expert for 16 rows */
    check_model("goldens/gemma4-e", 128, 512);
    check_model("goldens/qwen3_moe-fine", 128, 512);
    check_model("goldens/qwen3_moe-mixed", 128, 512);
    check_model("goldens/qwen2_moe-gated", 128, 512);
}

static void test_dense_models_keep_theirs(void **state) {
    (void)state;
    check_model("goldens/llama-gqa", 128, 512);
    check_model("goldens/gemma3_text-local", 128, 512);
}

/* Rows that are absorbed into states, more of them in a pass than rows of a tree may be. */
static void test_recurrent_models(void **state) {
    (void)state;
    check_model("goldens/qwen3_5-dense", 64, 512);
    if (light()) return;
    check_model("goldens/qwen3_next-moe", 64, 512);
    check_model("goldens/qwen3_5_moe-fused", 64, 512);
    check_model("goldens/mamba2-plain", 64, 512);
    check_model("goldens/granitemoehybrid-dense", 64, 512);
}

static void keep_level(void *user, int level, const float *logits, int vocab) {
    keep_logits(user, (size_t)level, logits, vocab);
}

/* The drafts after the first text, and their logits: they depend on features of every row. */
static void drafts_of(hunch_model *m, const char *draft, int chunk, answer *out) {
    hunch_draft_result r;
    hunch_engine *e = open_engine_with(m, draft, options(chunk, 1));
    (void)request(m, 0);
    *out = (answer){0};
    must(hunch_draft(e, prompt[0], lengths[0], 0, -1, NULL, keep_level, out, &r, err));
    assert_true(r.n > 0 && out->logits);
    out->n = (size_t)r.n;
    out->token = calloc(out->n, sizeof *out->token);
    for (int i = 0; i < r.n; i++) out->token[i] = r.node[i].token;
    hunch_free(r.node);
    hunch_engine_close(&e);
}

static void compare_drafts(hunch_model *m, const char *draft, int chunk, const char *what) {
    answer want, got;
    drafts_of(m, draft, 7, &want);
    drafts_of(m, draft, chunk, &got);
    if (want.n != got.n || memcmp(want.token, got.token, want.n * sizeof *want.token)) fail_msg("%s: other drafts", what);
    if (memcmp(want.logits, got.logits, (size_t)want.vocab * sizeof *want.logits)) fail_msg("%s: other logits of drafts", what);
    answer_free(&want);
    answer_free(&got);
}

static void answers_of(hunch_model *m, const char *draft, int chunk, int parallel, answer out[TEXTS]) {
    hunch_request r[TEXTS];
    hunch_engine *e = open_engine_with(m, draft, options(chunk, parallel));
    if (chunk >= 64) assert_int_equal(hunch_engine_chunk(e), chunk < 512 ? chunk : 512);
    for (int i = 0; i < TEXTS; i++) r[i] = request(m, i);
    memset(out, 0, TEXTS * sizeof *out);
    for (int i = 0; i < TEXTS; i += parallel) run_requests(e, r + i, parallel, true, out + i);
    hunch_engine_close(&e);
}

static void check_heads(const char *target, const char *const *drafts, int n) {
    answer want[TEXTS] = {{0}};
    hunch_model *m = open_model(data_path(target), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    context = 512; /* of these targets */
    lengths[0] = 460;
    expect(m, want);
    for (int d = 0; d < n; d++)
        for (int parallel = 1; parallel <= TEXTS; parallel += TEXTS - 1) {
            answer got[TEXTS];
            char what[600];
            for (int chunk = 100; chunk <= 600; chunk += 500) {
                answers_of(m, heads_spec(drafts[d]), chunk, parallel, got);
                snprintf(what, sizeof what, "%s, chunk %d, %d together", drafts[d], chunk, parallel);
                for (int i = 0; i < TEXTS; i++) assert_same(&want[i], &got[i], what);
                for (int i = 0; i < TEXTS; i++) answer_free(&got[i]);
                if (parallel == 1) compare_drafts(m, heads_spec(drafts[d]), chunk, what);
            }
        }
    hunch_model_close(&m);
    context = CONTEXT;
    lengths[0] = 613;
    for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
}

/* Heads get the features of every row of such a pass: of layers and after the norm, with rows of their own and without. */
static void test_heads(void **state) {
    (void)state;
    static const char *const of_llama[] = {"eagle:@eagle1-bias-bin,depth=4",
                                           "eagle3:@eagle3-official-d2t,depth=3,tree=dynamic,topk=3,total=9",
                                           "medusa:@medusa-4heads,depth=4",
                                           "hydra:@hydra-prefix,depth=3",
                                           "dflash:@dflashspec-d2t",
                                           "falcon:@falcon-k2,depth=4+medusa:@medusa-4heads"};
    static const char *const of_qwen[] = {"mtp:@mtp-spec-qwen3,depth=5"};
    check_heads(HEADS_LLAMA, of_llama, light() ? 3 : 6);
    check_heads(HEADS_QWEN, of_qwen, 1);
}

/* A model of experts beside a block of its own: so many rows that an expert gets 16. */
static void test_own_block(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("goldens/glm4_moe-3blocks"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine_with(m, "mtp", options(0, 1));
    assert_int_equal(hunch_engine_chunk(e), 256); /* 2 of 32 */
    hunch_engine_close(&e);
    hunch_model_close(&m);
    static const char *const drafts[] = {"mtp"};
    check_heads("goldens/glm4_moe-3blocks", drafts, 1);
}

/* Every level computes its own bits, the same in every chunk. */
static void test_levels(void **state) {
    (void)state;
    for (hn_isa l = HN_ISA_REF; !light() && l < hn_isa_best(); l = hn_isa_next(l)) {
        answer want[TEXTS] = {{0}};
        hunch_model *m = open_model(data_path("goldens/qwen3_moe-fine"), hn_isa_name(l), test_threads(), HUNCH_PRECISION_NATIVE);
        expect(m, want);
        hunch_engine *e = open_engine_with(m, NULL, options(512, TEXTS));
        compare(e, m, want, TEXTS, hn_isa_name(l));
        hunch_engine_close(&e);
        hunch_model_close(&m);
        for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
    }
}

/* Passes that the first text's prompt took. */
static uint64_t passes(hunch_session *s) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    return st.passes - (st.n_tokens - 1);
}

/* A single prompt takes as few passes as possible; beside a text that is being answered, which must not be delayed, many. */
static void test_nobody_waits_longer(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("goldens/qwen3_moe-fine"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine_options o = options(512, 2);
    o.max_pause = 1e-9;
    hunch_engine *e = open_engine_with(m, NULL, o);
    hunch_session *s[2];
    hunch_request r = request(m, 0), other = request(m, 2);
    must(hunch_session_open(&s[0], e, &r, err));
    must(hunch_engine_run(e, err));
    assert_int_equal(passes(s[0]), 2); /* 512 and 101 */
    hunch_session_close(&s[0]);
    hunch_engine_forget(e);
    other.max_tokens = 60;
    must(hunch_session_open(&s[1], e, &other, err));
    must(hunch_engine_round(e, err)); /* its prompt */
    must(hunch_session_open(&s[0], e, &r, err));
    must(hunch_engine_run(e, err));
    assert_int_equal(passes(s[0]), 60); /* 59 of 8 rows, and the rest when the other has ended */
    for (int i = 0; i < 2; i++) hunch_session_close(&s[i]);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* Few pages: places are lost and regained, with other chunks than before. */
static void test_places_are_lost(void **state) {
    (void)state;
    answer want[TEXTS] = {{0}}, got[TEXTS] = {{0}};
    hunch_request r[TEXTS];
    uint64_t preempted = 0;
    hunch_model *m = open_model(data_path("goldens/qwen3_moe-fine"), "best", 1, HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < TEXTS; i++) r[i] = request(m, i);
    r[0].max_tokens = 80;
    r[2].max_tokens = r[1].max_tokens = 300;
    hunch_engine *e = open_engine_with(m, NULL, options(9, 1));
    for (int i = 0; i < TEXTS; i++) run_requests(e, &r[i], 1, true, &want[i]);
    hunch_engine_close(&e);
    hunch_engine_options o = options(300, TEXTS);
    o.pool_rows = CONTEXT;
    e = open_engine_with(m, "forced,accept=0.6,depth=4,seed=3", o);
    run_preempted_requests(e, r, TEXTS, got);
    hunch_engine_close(&e);
    for (int i = 0; i < TEXTS; i++) {
        assert_same(&want[i], &got[i], "few pages");
        preempted += got[i].preempted;
        answer_free(&want[i]);
        answer_free(&got[i]);
    }
    assert_true(preempted > 0);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_experts), cmocka_unit_test(test_dense_models_keep_theirs),
                                       cmocka_unit_test(test_recurrent_models), cmocka_unit_test(test_heads),
                                       cmocka_unit_test(test_own_block), cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_nobody_waits_longer), cmocka_unit_test(test_places_are_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
