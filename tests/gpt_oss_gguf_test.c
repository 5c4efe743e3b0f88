/* SPDX-License-Identifier: Apache-2.0 */
/* gpt_oss_gguf_test.c - GPT-OSS as GGUF files: keys that convert writes and that are read again, names and types of its tensors, and
 * what a GGUF has no place for. Folders: model/arch/arch_gpt_oss_test.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "gguf_keys.h"

#define MXFP4 "gpt_oss-mxfp4"

static hn_arch converted(const char *find, const char *replace) {
    return folder_as_gguf(MXFP4, find, replace, NULL);
}

static void test_converted(void **state) {
    (void)state;
    hn_arch a = converted("\"swiglu_limit\": 7.0", "\"swiglu_limit\": 7.0");
    for (int i = 0; i < a.layers; i++) {
        const hn_expert_desc *e = &a.layer[i].experts;
        assert_int_equal(a.layer[i].window, i % 2 ? 0 : 16);
        assert_true(e->limit == 7 && e->alpha == 1.702f && e->biases && e->normalised && !e->stacked && !e->single && e->width == 64);
        assert_true(a.layer[i].sinks && a.layer[i].qkv_bias && a.layer[i].o_bias);
    }
    assert_true(!a.rotation[0].scaling.whole && a.rotation[0].scaling.factor == 32 && fabsf(a.rotation[0].scale - 1.3465736f) < 1e-6f);
    hn_arch_fini(&a);
    a = converted("\"swiglu_limit\": 7.0", "\"swiglu_limit\": 4.5, \"swiglu_alpha\": 2");
    assert_true(a.layer[2].experts.limit == 4.5f && a.layer[2].experts.alpha == 2);
    hn_arch_fini(&a);
    a = converted("\"sliding_attention\",\n  \"full_attention\",", "\"full_attention\",\n  \"full_attention\",");
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].window, i == 2 ? 16 : 0);
    hn_arch_fini(&a);
    a = converted("\"sliding_attention\",\n  \"full_attention\",\n  \"sliding_attention\",",
                  "\"full_attention\",\n  \"full_attention\",\n  \"full_attention\",");
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].window, 0);
    hn_arch_fini(&a);
}

/* Programs round the bounds of YaRN or not by the family; there is no key for it. */
static void test_not_converted(void **state) {
    (void)state;
    hunch_error err = {0};
    folder_write_changed(MXFP4, "\"truncate\": false", "\"truncate\": true");
    assert_int_equal(hn_convert(test_path("changed"), test_path("no.gguf"), &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "yarn with truncate true: a GGUF file has no place for it"));
    assert_false(test_file_exists(test_path("no.gguf")));
}

/* Two matrices of experts, their biases and a router of one layer, under the names of other programs. */
static void test_names(void **state) {
    (void)state;
    static const written_tensor tensors[] = {{"blk.1.attn_sinks.weight", HN_F32, {4}},
                   {"blk.1.post_attention_norm.weight", HN_F32, {64}},
                   {"blk.1.attn_q.bias", HN_F32, {64}},
                   {"blk.1.attn_output.bias", HN_F32, {64}},
                   {"blk.1.ffn_gate_inp.weight", HN_BF16, {64, 8}},
                   {"blk.1.ffn_gate_inp.bias", HN_F32, {8}},
                   {"blk.1.ffn_gate_exps.weight", HN_MXFP4, {64, 64, 8}},
                   {"blk.1.ffn_up_exps.weight", HN_MXFP4, {64, 64, 8}},
                   {"blk.1.ffn_down_exps.weight", HN_MXFP4, {64, 64, 8}},
                   {"blk.1.ffn_gate_exps.bias", HN_F32, {64, 8}},
                   {"blk.1.ffn_up_exps.bias", HN_F32, {64, 8}},
                   {"blk.1.ffn_down_exps.bias", HN_F32, {64, 8}}};
    hn_source *s = NULL;
    hn_arch a = folder_as_gguf(MXFP4, "\"swiglu_limit\": 7.0", "\"swiglu_limit\": 7.0", &s);
    hn_arch_fini(&a);
    check_written(s, tensors, sizeof tensors / sizeof *tensors);
    assert_int_equal(hn_source_tensor_count(s), 3 + 4 * 19);
    check_number(s, "gpt-oss.attention.sliding_window", 16);
    check_number(s, "gpt-oss.expert_feed_forward_length", 64);
    check_number(s, "general.file_type", 38);
    hn_source_close(&s);
}

/* ---- keys of any file ---------------------------------------------------------------------------------------------------- */

/* Reads a file with only an embedding, which is enough for the description. */
static hunch_status read_with(const changed_key *c, hn_arch *a, hunch_error *err) {
    static const usual_key usual[] = {
        {"context_length", 131072},  {"embedding_length", 32},       {"block_count", 4},
        {"feed_forward_length", 32}, {"attention.head_count", 4},    {"attention.head_count_kv", 2},
        {"attention.key_length", 8}, {"attention.value_length", 8},  {"attention.sliding_window", 128},
        {"expert_count", 8},         {"expert_used_count", 4},       {"expert_feed_forward_length", 32}};
    static const int32_t flags[] = {1, 1, 0, 1};
    static const uint16_t zeros[32];
    hn_gguf_writer *w = NULL;
    PUT(hn_gguf_writer_open(&w, test_path("keys.gguf"), NULL));
    PUT(hn_gguf_put_str(w, "general.architecture", "gpt-oss", 7, NULL));
    PUT(hn_gguf_put_f32(w, "gpt-oss.attention.layer_norm_rms_epsilon", 1e-5f, NULL));
    put_changed_keys(w, "gpt-oss", usual, sizeof usual / sizeof *usual, c, flags);
    PUT(hn_gguf_declare(w, "token_embd.weight", HN_F16, 2, (const uint64_t[]){32, 1}, NULL));
    PUT(hn_gguf_data(w, zeros, sizeof zeros, NULL));
    return read_written(w, a, err);
}

static void test_keys(void **state) {
    (void)state;
    static const struct {
        changed_key key;
        unsigned slide; /* bit i: layer i has the window */
    } good[] = {{{"attention.sliding_window_pattern", WHOLE, 2}, 5},
                {{"attention.sliding_window_pattern", WHOLE, 3}, 11},
                {{"attention.sliding_window_pattern", LIST, 4}, 11},
                {{"expert_gating_func", WHOLE, 1}, 5}};
    static const wrong_key wrong[] = {{{"attention.sliding_window", LEFT_OUT, 0}, "gpt-oss.attention.sliding_window is missing"},
                 {{"attention.sliding_window", WHOLE, 0}, "gpt-oss.attention.sliding_window is 0"},
                 {{"attention.sliding_window_pattern", WHOLE, 0}, "sliding_window_pattern is 0"},
                 {{"attention.sliding_window_pattern", LIST, 3}, "sliding_window_pattern, expected 4 flags"},
                 {{"expert_feed_forward_length", LEFT_OUT, 0}, "expert_feed_forward_length is missing"},
                 {{"expert_used_count", WHOLE, 9}, "rows use 9 of 8 experts"},
                 {{"expert_gating_func", WHOLE, 2}, "expert_gating_func is that of sigmoids"},
                 {{"expert_gating_func", WHOLE, 7}, "expert_gating_func is 7"},
                 {{"hunch.swiglu_limit", REAL, 0}, "hunch.swiglu_limit is 0"},
                 {{"hunch.swiglu_alpha", REAL, -1}, "hunch.swiglu_alpha is -1"},
                 {{"final_logit_softcapping", REAL, 30}, "final_logit_softcapping is 30"}};
    hn_arch a;
    hunch_error err = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (read_with(&good[i].key, &a, &err)) fail_msg("%s: %s", good[i].key.name, err.message);
        for (int k = 0; k < a.layers; k++)
            assert_int_equal(a.layer[k].window, good[i].slide >> k & 1 ? 128 : 0);
        hn_arch_fini(&a);
    }
    check_wrong_keys(wrong, sizeof wrong / sizeof *wrong, read_with);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_converted), cmocka_unit_test(test_not_converted),
                                       cmocka_unit_test(test_names), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
