/* SPDX-License-Identifier: Apache-2.0 */
/* features_test.c - stored features are the states of the target's passes, row by row, for the requested layers; a run
 * that was interrupted anywhere gives the same bytes; shards of other models, texts and states, and damaged ones, are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "engine/engine.h"
#include "fixture.h"
#include "model/kv_groups.h"
#include "train/data/features.h"
#include "tiny_gguf.h"

static hunch_model *model;
static const int states[] = {1, 3, HN_FEATURE_POST_NORM};
enum { N_STATES = 3, N_TEXTS = 4, MOST = 150 };
static int32_t ids[N_TEXTS][MOST];
static hn_train_text text[N_TEXTS];
static hn_train_texts texts = {.item = text, .n = N_TEXTS};

static int setup(void **state) {
    (void)state;
    static const int length[N_TEXTS] = {1, 64, MOST, 17};
    for (int i = 0; i < N_TEXTS; i++) {
        for (int k = 0; k < length[i]; k++) ids[i][k] = k ? (i * 131 + k * 37) % 500 + 3 : 1;
        text[i] = (hn_train_text){ids[i], length[i], i};
        texts.tokens += (uint64_t)length[i];
    }
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static hunch_status make(const char *folder, const hn_train_texts *t, int n_states, uint64_t identity,
                         hunch_error *why) {
    (void)mkdir(folder, 0700);
    return hn_features_make(&model->target, identity, t, states, n_states, folder, NULL, NULL, NULL, why);
}

/* Row by row, with other chunks than those of the stored features. */
static void check_rows(const hn_feature_text *have, const hn_train_text *want) {
    hn_cache_group group[HN_MAX_GROUPS];
    const hn_feature_set set = {{1 << 1 | 1 << 3}, true};
    const int n = hn_kv_groups(model->target.run, HN_BF16, group, NULL), id = 0, width = model->target.arch.hidden;
    hn_cache *cache;
    hn_runner *runner;
    group[0].page_rows = 16;
    must(hn_cache_open(&cache, model->target.backend, group, n, 1, MOST, 0, err));
    must(hn_runner_open(&runner, &model->target, cache, 0, MOST, &set, err));
    hn_cache_seq_begin(cache, id);
    assert_int_equal(have->n, want->n);
    assert_int_equal(have->own, want->own);
    assert_memory_equal(have->ids, want->ids, (size_t)want->n * sizeof *want->ids);
    for (int i = 0; i < want->n; i++) {
        const hn_row row = {.token = want->ids[i], .parent = -1, .feature = true};
        must(hn_pass_run(runner, &row, 1, &id, 1, err));
        for (int k = 0; k < N_STATES; k++) {
            uint16_t packed[1024];
            hn_quantise(HN_BF16, hn_pass_feature(runner, states[k], 0), (size_t)width, packed);
            assert_memory_equal(packed, have->states + (size_t)((i * N_STATES + k) * width),
                                (size_t)width * sizeof *packed);
        }
        hn_cache_commit(cache, id, 0, NULL, 1);
    }
    hn_cache_seq_end(cache, id);
    hn_runner_close(&runner);
    hn_cache_close(&cache);
}

static void test_states(void **state) {
    (void)state;
    hn_features_read f;
    must(make(test_path("whole"), &texts, N_STATES, 7, err));
    must(hn_features_open(&f, test_path("whole"), err));
    assert_int_equal(f.n, N_TEXTS);
    assert_int_equal(f.tokens, texts.tokens);
    assert_int_equal(f.header.width, model->target.arch.hidden);
    for (int i = 0; i < N_TEXTS; i++) check_rows(&f.text[i], &text[i]);
    hn_features_close(&f);
}

static void test_resume(void **state) {
    (void)state;
    hunch_error why;
    bytes whole = test_file_read(test_path("whole/features-0000.bin"));
    uint64_t x = 3;
    for (int i = 0; i < 20; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const size_t cut = (size_t)(x >> 20) % whole.size;
        (void)mkdir(test_path("part"), 0700);
        test_file_write(test_path("part/features-0000.bin"), whole.at, cut);
        must(make(test_path("part"), &texts, N_STATES, 7, err));
        bytes part = test_file_read(test_path("part/features-0000.bin"));
        assert_int_equal(part.size, whole.size);
        assert_memory_equal(part.at, whole.at, whole.size);
        bytes_free(&part);
    }
    (void)why;
    bytes_free(&whole);
}

static void refused(hunch_status st, const hunch_error *why, const char *says) {
    assert_int_equal(st, HUNCH_REFUSED);
    if (!strstr(why->message, says)) fail_msg("%s", why->message);
}

static void test_others(void **state) {
    (void)state;
    hunch_error why;
    hn_train_texts fewer = texts;
    fewer.n--;
    refused(make(test_path("whole"), &texts, N_STATES, 8, &why), &why, "features of another model");
    refused(make(test_path("whole"), &fewer, N_STATES, 7, &why), &why, "features of other texts");
    refused(make(test_path("whole"), &texts, 2, 7, &why), &why, ": expected --taps ");
}

static void test_damaged(void **state) {
    (void)state;
    hunch_error why;
    hn_features_read f;
    bytes whole = test_file_read(test_path("whole/features-0000.bin"));
    (void)mkdir(test_path("bad"), 0700);
    for (size_t at = 0; at < whole.size; at += at < 200 ? 1 : 977) {
        const unsigned char was = ((unsigned char *)whole.at)[at];
        ((unsigned char *)whole.at)[at] ^= 0x40;
        test_file_write(test_path("bad/features-0000.bin"), whole.at, whole.size);
        const hunch_status st = hn_features_open(&f, test_path("bad"), &why);
        if (at >= sizeof(hn_shard_header)) refused(st, &why, "damaged at byte");
        hn_features_close(&f);
        ((unsigned char *)whole.at)[at] = was;
    }
    test_file_write(test_path("bad/features-0000.bin"), whole.at, 20);
    refused(hn_features_open(&f, test_path("bad"), &why), &why, "too short for features");
    hn_features_close(&f);
    refused(hn_features_open(&f, test_path("nowhere"), &why), &why, "no features there");
    hn_features_close(&f);
    bytes_free(&whole);
}

/* ---- numbers of layers ----------------------------------------------------------------------------------------------- */

enum { LAYERS = 4 };

/* A layer that adds `more` to a state of equal numbers: after the norm they are 1, attention's values are 0, and in the
 * feed-forward layer the gate is 32, which silu does not change, the rest 1 and more / 32 / 8. */
static void add_layer(tiny *t, int layer, float more) {
    static const char *const parts[] = {"attn_norm",   "ffn_norm", "attn_q", "attn_k",  "attn_v",
                                        "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
    const float values[] = {1, 1, 0, 0, 0, 0, 32.0F / TINY_WIDE, 1.0F / TINY_WIDE, more / 32 / TINY_WIDE};
    for (int i = 0; i < 9; i++) {
        char name[80];
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, parts[i]);
        if (layer > 0) tiny_add(t, name, TINY_WIDE, i < 2 ? 0 : TINY_WIDE);
        tiny_tensor *x = tiny_tensor_of(t, name);
        for (size_t k = 0; k < x->n; k++) x->data[k] = values[i];
    }
}

/* Layer i adds i + 1: the state entering layer k for a token whose embedding is 1 is 1 + k (k + 1) / 2. */
static void test_layers_by_number(void **state) {
    (void)state;
    static const int every[] = {0, 1, 2, 3, LAYERS, HN_FEATURE_POST_NORM};
    static const float want[] = {1, 2, 4, 7, 11, 1};
    enum { N = 6 };
    tiny t;
    hn_features_read f;
    int32_t some[] = {1, 8, 9, 10, 3};
    hn_train_text one = {some, 5, 0};
    const hn_train_texts all = {.item = &one, .n = 1, .tokens = 5};
    tiny_open(&t);
    tiny_u32(&t, "llama.block_count", LAYERS);
    for (int i = 0; i < LAYERS; i++) add_layer(&t, i, (float)(i + 1));
    tiny_tensor *embedding = tiny_tensor_of(&t, "token_embd.weight");
    for (size_t i = 0; i < embedding->n; i++) embedding->data[i] = 1;
    bytes b = tiny_bytes(&t);
    test_file_write(test_path("layers.gguf"), b.at, b.size);
    hunch_model *m = open_model(test_path("layers.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    (void)mkdir(test_path("layers"), 0700);
    must(hn_features_make(&m->target, 7, &all, every, N, test_path("layers"), NULL, NULL, NULL, err));
    must(hn_features_open(&f, test_path("layers"), err));
    for (int i = 0; i < 5 * N * TINY_WIDE; i++) {
        float have;
        hn_dequantise(HN_BF16, f.text[0].states + i, 1, &have);
        const int k = i / TINY_WIDE % N;
        if (!(have > want[k] - 0.1F && have < want[k] + 0.1F))
            fail_msg("state %d of row %d is %g, not %g", every[k], i / TINY_WIDE / N, (double)have, (double)want[k]);
    }
    hn_features_close(&f);
    hunch_model_close(&m);
    bytes_free(&b);
    tiny_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states), cmocka_unit_test(test_layers_by_number),
                                       cmocka_unit_test(test_resume), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
