/* SPDX-License-Identifier: Apache-2.0 */
/* draft_model_fit_test.c - which models may draft for which, at what precision, and what happens without memory or pages: padded
 * vocabularies, refusals, no pages, no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "draft/draft_model_for_tests.h"
#include "format/bytes_for_tests.h"
#include "format/gguf_writer.h"

/* ---- padding ---- */

static void copy_strings(hn_gguf_writer *w, hn_source *src, const char *key, int extra, hunch_error *err) {
    const hn_array *a = NULL;
    const char *text[WIDEST];
    char pad[WIDEST - VOCAB][24];
    size_t len[WIDEST];
    ok(hn_source_array(src, key, &a, err), err);
    for (size_t i = 0; i < VOCAB; i++) text[i] = hn_array_string(a, i, &len[i]);
    for (int i = 0; i < extra; i++) {
        snprintf(pad[i], sizeof pad[i], "[PAD%d]", VOCAB + i);
        text[VOCAB + i] = pad[i];
        len[VOCAB + i] = strlen(pad[i]);
    }
    ok(hn_gguf_put_strings(w, key, text, len, (size_t)(VOCAB + extra), err), err);
}

static void copy_keys(hn_gguf_writer *w, hn_source *src, int extra, hunch_error *err) {
    static const char *const numbers[] = {"llama.context_length",       "llama.embedding_length",
                                          "llama.block_count",          "llama.feed_forward_length",
                                          "llama.attention.head_count", "llama.attention.head_count_kv",
                                          "llama.rope.dimension_count", "tokenizer.ggml.bos_token_id"};
    const hn_array *a = NULL;
    int32_t kinds[WIDEST];
    float scores[WIDEST] = {0};
    bool found;
    ok(hn_gguf_put_str(w, "general.architecture", "llama", 5, err), err);
    ok(hn_gguf_put_str(w, "tokenizer.ggml.model", "llama", 5, err), err);
    ok(hn_gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f, err), err);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t v = 0;
        ok(hn_source_u64(src, numbers[i], &v, &found, err), err);
        ok(hn_gguf_put_u32(w, numbers[i], (uint32_t)v, err), err);
    }
    copy_strings(w, src, "tokenizer.ggml.tokens", extra, err);
    ok(hn_source_array(src, "tokenizer.ggml.token_type", &a, err), err);
    for (size_t i = 0; i < WIDEST; i++) kinds[i] = i < VOCAB ? (int32_t)hn_array_number(a, i) : 5;
    ok(hn_source_array(src, "tokenizer.ggml.scores", &a, err), err);
    for (size_t i = 0; i < VOCAB; i++) scores[i] = (float)hn_array_number(a, i);
    ok(hn_gguf_put_i32s(w, "tokenizer.ggml.token_type", kinds, (size_t)(VOCAB + extra), err), err);
    ok(hn_gguf_put_f32s(w, "tokenizer.ggml.scores", scores, (size_t)(VOCAB + extra), err), err);
}

/* The draft model with more rows of embedding: rows of existing tokens times two, so that padding has the best logit now and then. */
static void write_padded(const char *path) {
    enum { EXTRA = WIDEST - VOCAB, HIDDEN = 64 };
    hn_source *src = NULL;
    hn_gguf_writer *w = NULL;
    hunch_error err = {0};
    static uint16_t rows[WIDEST * HIDDEN];
    ok(hn_source_open(&src, MODEL, &err), &err);
    ok(hn_gguf_writer_open(&w, path, &err), &err);
    copy_keys(w, src, EXTRA, &err);
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const hn_tensor *t = hn_source_tensor(src, i);
        uint64_t dims[2] = {t->dims[0], t->dims[1]};
        if (!strcmp(t->name, "token_embd.weight")) dims[1] = WIDEST;
        ok(hn_gguf_declare(w, t->name, t->dtype, t->n_dims, dims, &err), &err);
    }
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const hn_tensor *t = hn_source_tensor(src, i);
        if (strcmp(t->name, "token_embd.weight")) {
            ok(hn_gguf_data(w, t->data, t->bytes, &err), &err);
            continue;
        }
        memcpy(rows, t->data, t->bytes);
        for (int k = 0; k < EXTRA * HIDDEN; k++) {
            const uint16_t f16 = rows[(k / HIDDEN * 20 + 300) * HIDDEN + k % HIDDEN];
            rows[VOCAB * HIDDEN + k] = f16 & 0x7C00 ? (uint16_t)(f16 + 0x400) : f16;
        }
        ok(hn_gguf_data(w, rows, sizeof rows, &err), &err);
    }
    ok(hn_gguf_writer_finish(&w, &err), &err);
    hn_source_close(&src);
}

/* A draft model with a padded vocabulary: logits of the padding are dropped. */
static void test_padded_draft(void **state) {
    (void)state;
    char spec[1300];
    const char *path = test_path("padded.gguf");
    write_padded(path);
    snprintf(spec, sizeof spec, "model:%s", path);
    reference_close();
    reference_open(path);
    assert_int_equal(reference.arch.vocab, WIDEST);
    check_rounds(spec, VOCAB, light() ? 6 : 30);
    int won = 0;
    static float l[CONTEXT][WIDEST];
    int32_t text[100];
    for (int i = 0; i < 100; i++) text[i] = below(VOCAB);
    evaluate(text, 100, 0, l);
    for (int i = 0; i < 100; i++) {
        int best = 0;
        for (int k = 1; k < WIDEST; k++) best = l[i][k] > l[i][best] ? k : best;
        won += best >= VOCAB;
    }
    assert_true(won > 0); /* else nothing was tested */
    reference_close();
    reference_open(MODEL);
}

/* ---- errors -------------------------------------------------------------------------------------------------------------------- */

static void expect_error(const char *spec, hunch_status want, const char *says) {
    const hn_target_info info = target_info(VOCAB);
    hunch_error err = {0};
    hn_drafter d;
    assert_int_equal(hn_drafter_open(&d, spec, 0, SEQS, &info, &err), want);
    if (!strstr(err.message, says)) fail_msg("%s: no '%s' in: %s", spec, says, err.message);
}

static void test_refused(void **state) {
    (void)state;
    expect_error("model", HUNCH_USAGE, "model:PATH");
    expect_error("model:" HUNCH_TEST_DATA "/models/nowhere.gguf", HUNCH_REFUSED, "nowhere.gguf");
    expect_error("model:" HUNCH_TEST_DATA "/README.md", HUNCH_REFUSED, "README.md");
    expect_error("model:" MODEL ",depth=0", HUNCH_USAGE, "depth=0");
    expect_error("model:" MODEL ",depth=64", HUNCH_USAGE, "1 to 63");
    expect_error("model:" MODEL ",precision=f16", HUNCH_USAGE, "native, f32");
    expect_error("model:" MODEL ",kv=q8", HUNCH_USAGE, "bf16, f16, f32");
    expect_error("model:" MODEL ",width=2", HUNCH_USAGE, "width");
    expect_error(
        "model:" HUNCH_TEST_DATA "/models/babyllama105/babyllama105.f32.gguf", HUNCH_REFUSED,
        "the vocabularies of target stories260K (512 tokens) and draft BabyLlama-105 (105 tokens) differ: token 3");
}

/* The first logits of a babyllama that drafts for the other one. */
static void first_logits(const char *spec, const hn_target_info *info, float out[WIDEST]) {
    static story s;
    hunch_error err = {0};
    rig r = {0};
    ok(hn_drafter_open(&r.d, spec, MODEL_INDEX, SEQS, info, &err), &err);
    ok(rig_attach(&r, 0, &err), &err);
    seed = 5;
    story_begin(&s, &r, 0, info->vocab, &GREEDY, 60);
    for (int i = 0; i < s.n; i++) s.token[i] %= info->vocab;
    draft_round(&r, (story *const[]){&s}, 1, 1);
    memcpy(out, s.logits[0], sizeof s.logits[0]);
    story_end(&s, &r);
    rig_close(&r);
}

/* Each key changes the logits, and only a little. */
static void test_kinds(void **state) {
    (void)state;
    static const char *const keys[] = {"", ",precision=f32", ",kv=f16", ",kv=f32", ",precision=f32,kv=f32"};
    enum { KINDS = sizeof keys / sizeof *keys };
    static float l[KINDS][WIDEST];
    hn_tokenizer *letters = tokenizer_of(BABYLLAMA ".f32.gguf");
    hn_target_info info = target_info(105);
    info.tokenizer = letters;
    for (int k = 0; k < KINDS; k++) {
        char spec[1300];
        snprintf(spec, sizeof spec, "model:%s%s", BABYLLAMA ".q8_0.gguf", keys[k]);
        first_logits(spec, &info, l[k]);
        for (int j = 0; j < k; j++) {
            double off = 0;
            for (int i = 0; i < 105; i++) off = fmax(off, fabs((double)(l[k][i] - l[j][i])));
            assert_true(off > 0 && off < 1);
        }
    }
    info.f32 = true;
    info.kv = HN_F32;
    float as_target[WIDEST];
    first_logits("model:" BABYLLAMA ".q8_0.gguf", &info, as_target);
    assert_memory_equal(as_target, l[KINDS - 1], 105 * sizeof(float));
    hn_tokenizer_close(&letters);
}

static void test_first_layers(void **state) {
    (void)state;
    reference_close();
    reference_open(STORIES ".2of5.f16.gguf");
    check_rounds("model:" STORIES ".2of5.f16.gguf,depth=2", VOCAB, 5);
    reference_close();
    reference_open(MODEL);
}

/* Without pages a sequence gets no drafts and the others do; with pages again it continues. */
static void test_no_pages(void **state) {
    (void)state;
    static story s[SEQS];
    hn_propose p[SEQS];
    hunch_error err = {0};
    rig r;
    ok(rig_open(&r, "model:" MODEL, VOCAB, 64, &err), &err);
    for (int i = 0; i < SEQS; i++) {
        story_begin(&s[i], &r, i, VOCAB, &GREEDY, i < SEQS - 1 ? 250 : 9);
        hn_tree_reset(&s[i].tree, s[i].token[s[i].n - 1], HN_TREE_ROWS);
        p[i] = (hn_propose){.seq = i,
                            .text = {s[i].token, s[i].n, s[i].n_prompt},
                            .tree = &s[i].tree,
                            .budget = 9,
                            .sampler = &s[i].sampler};
    }
    story *const starved = &s[SEQS - 2], *const last = &s[SEQS - 1];
    assert_int_equal(propose_once(&r, last, 0, 9), 1); /* it still has a page then */
    hn_tree_reset(&last->tree, last->token[last->n - 1], HN_TREE_ROWS);
    for (int i = 0; i < SEQS * MODEL_ID; i++) /* other models take the rest */
        while (hn_cache_committed(r.cache, i / MODEL_ID, i % MODEL_ID) < CONTEXT &&
               !hn_cache_reserve(r.cache, i / MODEL_ID, i % MODEL_ID, 16, NULL))
            hn_cache_commit(r.cache, i / MODEL_ID, i % MODEL_ID, NULL, 16);
    r.d.ops->propose(&r.d, p, SEQS, 0);
    r.d.ops->propose(&r.d, p, SEQS, 1);
    assert_int_equal(starved->tree.n_candidates, 0);
    assert_int_equal(last->tree.n_candidates, 2);
    story_end(&s[0], &r);
    story_end(&s[1], &r);
    starved->expected_rows = rows_of(&r, starved);
    draft_round(&r, (story *const[]){starved}, 1, DEPTH);
    check_round(starved);
    story_end(starved, &r);
    story_end(last, &r);
    assert_true(hn_cache_valid(r.cache));
    rig_close(&r);
}

static void test_no_memory(void **state) {
    (void)state;
    static story s;
    int64_t failing = 0;
    for (hunch_status st = HUNCH_NO_MEMORY; st; failing++) {
        hunch_error err = {0};
        rig r;
        hn_fault_arm(HN_FAULT_ALLOC, failing, false);
        st = rig_open(&r, "model:" MODEL, WIDEST, 0, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        rig_close(&r);
        assert_true(st == HUNCH_OK || st == HUNCH_NO_MEMORY);
        if (light()) failing += 3;
    }
    assert_true(failing > 20);
    rig r = rig_of("model:" MODEL, VOCAB);
    story_begin(&s, &r, 0, VOCAB, &WARM, 30);
    s.drawn = true;
    hn_tree_reset(&s.tree, s.token[s.n - 1], HN_TREE_ROWS);
    for (int i = 0; i < 2; i++) { /* the distribution, then the memory to draw from it */
        hn_fault_arm(HN_FAULT_ALLOC, i, true);
        assert_int_equal(propose_once(&r, &s, 0, 9), 0);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_int_equal(s.tree.n_candidates, 0);
    }
    assert_int_equal(propose_once(&r, &s, 0, 9), 1);
    story_end(&s, &r);
    rig_close(&r);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padded_draft), cmocka_unit_test(test_refused),  cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_first_layers), cmocka_unit_test(test_no_pages), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
