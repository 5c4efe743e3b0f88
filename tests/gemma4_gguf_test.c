/* SPDX-License-Identifier: Apache-2.0 */
/* gemma4_gguf_test.c - Gemma 4 as GGUF files: keys and tensors that convert writes, under the names of other programs, and refusals of
 * keys by name. Folders: model/arch/arch_gemma4_test.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gguf_keys.h"

static void check_list(const hn_source *s, const char *key, const int *want, size_t n) {
    const hn_array *list = NULL;
    assert_int_equal(hn_source_array(s, key, &list, NULL), HUNCH_OK);
    assert_non_null(list);
    assert_int_equal(hn_array_count(list), n);
    for (size_t i = 0; i < n; i++) assert_int_equal((int)hn_array_number(list, i), want[i]);
}

static void test_written(void **state) {
    (void)state;
    static const written_tensor e[] = {{"per_layer_token_embd.weight", HN_BF16, {96, 512}},
                                {"per_layer_model_proj.weight", HN_BF16, {64, 96}},
                                {"per_layer_proj_norm.weight", HN_F32, {16}},
                                {"blk.5.inp_gate.weight", HN_BF16, {64, 16}},
                                {"blk.5.proj.weight", HN_BF16, {16, 64}},
                                {"blk.5.post_norm.weight", HN_F32, {64}},
                                {"blk.5.layer_output_scale.weight", HN_F32, {1}},
                                {"rope_freqs.weight", HN_F32, {16}}},
                         mixture[] = {{"blk.1.ffn_gate_inp.weight", HN_BF16, {64, 8}},
                                      {"blk.1.ffn_gate_inp.scale", HN_F32, {64}},
                                      {"blk.1.ffn_gate_up_exps.weight", HN_BF16, {64, 64, 8}},
                                      {"blk.1.ffn_down_exps.weight", HN_BF16, {32, 64, 8}},
                                      {"blk.1.ffn_down_exps.scale", HN_F32, {8}},
                                      {"blk.1.pre_ffw_norm_2.weight", HN_F32, {64}},
                                      {"blk.1.post_ffw_norm_1.weight", HN_F32, {64}},
                                      {"blk.1.post_ffw_norm_2.weight", HN_F32, {64}},
                                      {"blk.1.post_ffw_norm.weight", HN_F32, {64}},
                                      {"blk.1.ffn_gate.weight", HN_BF16, {64, 128}}};
    static const int widths[] = {128, 128, 128, 256, 256, 256}, slide[] = {1, 1, 0, 1, 1, 0}, heads[] = {2, 2, 2, 1};
    hn_source *s = NULL;
    hn_arch a = folder_as_gguf("gemma4-e", "\"model_type\"", "\"model_type\"", &s);
    check_written(s, e, sizeof e / sizeof *e);
    assert_null(hn_source_find(s, "blk.5.attn_k.weight")); /* of another layer */
    check_list(s, "gemma4.feed_forward_length", widths, 6);
    check_list(s, "gemma4.attention.sliding_window_pattern", slide, 6);
    check_number(s, "gemma4.attention.head_count_kv", 1);
    check_number(s, "gemma4.attention.key_length", 32);
    check_number(s, "gemma4.attention.key_length_swa", 16);
    check_number(s, "gemma4.rope.dimension_count", 32);
    check_number(s, "gemma4.rope.dimension_count_swa", 16);
    check_number(s, "gemma4.attention.shared_kv_layers", 3);
    check_number(s, "gemma4.embedding_length_per_layer_input", 16);
    hn_arch_fini(&a);
    hn_source_close(&s);
    a = folder_as_gguf("gemma4_text-moe", "\"model_type\"", "\"model_type\"", &s);
    check_written(s, mixture, sizeof mixture / sizeof *mixture);
    assert_null(hn_source_find(s, "blk.3.attn_v.weight"));
    assert_null(hn_source_find(s, "blk.1.ffn_gate_exps.weight"));
    check_list(s, "gemma4.attention.head_count_kv", heads, 4);
    check_number(s, "gemma4.expert_count", 8);
    check_number(s, "gemma4.expert_used_count", 2);
    check_number(s, "gemma4.expert_feed_forward_length", 32);
    check_number(s, "gemma4.feed_forward_length", 128);
    hn_arch_fini(&a);
    hn_source_close(&s);
}

/* ---- keys of any file ---------------------------------------------------------------------------------------------------- */

static void put_keys(hn_gguf_writer *w, const changed_key *c) {
    static const usual_key usual[] = {
        {"context_length", 4096},          {"embedding_length", 32},        {"block_count", 4},
        {"feed_forward_length", 32},       {"attention.head_count", 4},     {"attention.head_count_kv", 2},
        {"attention.key_length", 16},      {"attention.value_length", 16},  {"attention.key_length_swa", 8},
        {"attention.value_length_swa", 8}, {"attention.sliding_window", 8}, {"rope.dimension_count", 16},
        {"rope.dimension_count_swa", 8},   {"attention.shared_kv_layers", 2}};
    static const int32_t flags[] = {1, 0, 1, 0, 1}, all[] = {1, 1, 1, 1};
    if (strcmp(c->name, "attention.sliding_window_pattern") != 0)
        PUT(hn_gguf_put_i32s(w, "gemma4.attention.sliding_window_pattern", flags, 4, NULL));
    put_changed_keys(w, "gemma4", usual, sizeof usual / sizeof *usual, c, all);
}

/* Reads a file with an embedding and the table of the rotation, which are enough for the description. */
static hunch_status read_with(const changed_key *c, hn_arch *a, hunch_error *err) {
    static const uint16_t zeros[32];
    const float table[8] = {1, 1, c->kind == TABLE ? (float)c->value : 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f};
    hn_gguf_writer *w = NULL;
    PUT(hn_gguf_writer_open(&w, test_path("keys.gguf"), NULL));
    PUT(hn_gguf_put_str(w, "general.architecture", "gemma4", 6, NULL));
    PUT(hn_gguf_put_f32(w, "gemma4.attention.layer_norm_rms_epsilon", 1e-6f, NULL));
    put_keys(w, c);
    PUT(hn_gguf_declare(w, "token_embd.weight", HN_F16, 2, (const uint64_t[]){32, 1}, NULL));
    PUT(hn_gguf_declare(w, "rope_freqs.weight", HN_F32, 1, (const uint64_t[]){8}, NULL));
    PUT(hn_gguf_data(w, zeros, sizeof zeros, NULL));
    PUT(hn_gguf_data(w, table, sizeof table, NULL));
    return read_written(w, a, err);
}

static void test_keys(void **state) {
    (void)state;
    static const wrong_key wrong[] = {{{"attention.sliding_window", LEFT_OUT, 0}, "gemma4.attention.sliding_window is missing"},
                 {{"attention.sliding_window_pattern", LIST, 3}, "sliding_window_pattern, expected 4 flags"},
                 {{"attention.sliding_window_pattern", LIST, 4}, "the last layer has a window"},
                 {{"attention.key_length_swa", LEFT_OUT, 0}, "gemma4.attention.key_length_swa is missing"},
                 {{"attention.key_length_swa", WHOLE, 7}, "heads of 16 and 7"},
                 {{"attention.value_length_swa", WHOLE, 6}, "(values 6)"},
                 {{"attention.head_count_kv", LIST, 3}, "head_count_kv is a list of 3"},
                 {{"attention.head_count_kv", WHOLE, 3}, "3 key heads"},
                 {{"feed_forward_length", LIST, 2}, "feed_forward_length is a list of 2"},
                 {{"feed_forward_length", WHOLE, 0}, "feed_forward_length is 0"},
                 {{"attention.shared_kv_layers", WHOLE, 4}, "shared_kv_layers is 4"},
                 {{"attention.shared_kv_layers", WHOLE, 3}, "shared_kv_layers is 3: layer 1 would read"},
                 {{"rope.dimension_count", WHOLE, 8}, "rope.dimension_count is 8"},
                 {{"rope.dimension_count_swa", WHOLE, 4}, "rope.dimension_count_swa is 4"},
                 {{"rope.scaling.type", TEXT, 0}, "rope.scaling.type is \"yarn\""},
                 {{"rope.scaling.factor", REAL, 8}, "rope.scaling.factor is 8"},
                 {{"rope.freq_base_swa", REAL, 0}, "rope.freq_base_swa is 0"},
                 {{"rope_freqs", TABLE, 2}, "rope_freqs.weight: value 2 at 2"},
                 {{"final_logit_softcapping", REAL, -1}, "final_logit_softcapping is -1"},
                 {{"embedding_length_per_layer_input", WHOLE, 1 << 20}, "embedding_length_per_layer_input is 1048576"},
                 {{"expert_count", WHOLE, 4}, "expert_used_count is missing"}};
    static const changed_key none = {"nothing", NOTHING, 0}, few = {"final_logit_softcapping", REAL, 0};
    hn_arch a;
    hunch_error err = {0};
    if (read_with(&none, &a, &err)) fail_msg("%s", err.message);
    assert_true(a.layer[2].kv_back == 2 && a.layer[3].kv_back == 2 && a.logit_cap == 30 && a.rotation[0].scaling.pairs == 2);
    assert_true(a.layer[1].v_is_k && !a.layer[0].v_is_k && a.layer[1].head_dim == 16 && a.layer[0].head_dim == 8);
    hn_arch_fini(&a);
    if (read_with(&few, &a, &err)) fail_msg("%s", err.message);
    assert_true(a.logit_cap == 0);
    hn_arch_fini(&a);
    check_wrong_keys(wrong, sizeof wrong / sizeof *wrong, read_with);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_written), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
