/* SPDX-License-Identifier: Apache-2.0 */
/* arch_qwen_hybrid_test.c - invalid files of Qwen's hybrids: sizes of states, lists of layers, draft blocks, in folders
 * and in GGUF files. Each is refused, and the message names the error. Results of valid ones: tests/golden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "convert/convert.h"
#include "model/arch/delta_desc.h"
#include "model/head/head.h"
#include "model/model.h"
#include "model/folder_for_tests.h" /* last: it calls a type "bytes" */

#define GOLDEN "qwen3_5-dense"

/* Whether its description and its tensors agree. */
static hunch_status mark(hn_source *s, hn_arch *a, hunch_error *err) {
    hunch_status st = hn_model_mark(s, a, NULL, err);
    hn_source_close(&s);
    return st;
}

static void test_folders(void **state) {
    (void)state;
    static const struct {
        const char *find, *replace, *word;
    } cases[] = {
        {"\"linear_num_key_heads\": 2", "\"linear_num_key_heads\": 0", "linear_num_key_heads is 0"},
        {"\"linear_num_key_heads\": 2", "\"linear_num_key_heads\": 3", "4 value heads do not share 3 key heads"},
        {"\"linear_num_key_heads\": 2", "\"linear_num_key_heads\": 4", "linear_attn."},
        {"\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 1000000", "linear_num_value_heads is 1000000"},
        {"\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 8", "linear_attn."},
        {"\"linear_key_head_dim\": 16", "\"linear_key_head_dim\": 100000", "linear_key_head_dim is 100000"},
        {"\"linear_key_head_dim\": 16", "\"linear_key_head_dim\": -1", "linear_key_head_dim is -1"},
        {"\"linear_value_head_dim\": 16", "\"linear_value_head_dim\": 513", "linear_value_head_dim is 513"},
        {"\"linear_value_head_dim\": 16", "\"linear_value_head_dim\": 32", "linear_attn."},
        {"\"linear_conv_kernel_dim\": 4", "\"linear_conv_kernel_dim\": 9", "linear_conv_kernel_dim is 9"},
        {"\"linear_conv_kernel_dim\": 4", "\"linear_conv_kernel_dim\": 3", "conv1d"},
        {"\"full_attention_interval\": 4", "\"full_attention_interval\": 0", "full_attention_interval is 0"},
        {"\"full_attention_interval\": 4", "\"full_attention_interval\": 5", "none of 4 layers has attention"},
        {"\"full_attention_interval\": 4", "\"full_attention_interval\": 1", "self_attn."},
        {"\"full_attention_interval\": 4", "\"layer_types\": [\"full_attention\"]", "layer_types, expected a list of 4 names"},
        {"\"full_attention_interval\": 4", "\"layer_types\": 7", "layer_types"},
        {"\"full_attention_interval\": 4",
         "\"layer_types\": [\"linear_attention\", \"linear_attention\", \"linear_attention\", \"mamba\"]", "layer_types"},
        {"\"full_attention_interval\": 4",
         "\"layer_types\": [\"linear_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\"]",
         "none of 4 layers has attention"},
        {"\"attn_output_gate\": true", "\"attn_output_gate\": false", "self_attn.q_proj"},
        {"\"attn_output_gate\": true", "\"attn_output_gate\": 1", "attn_output_gate"},
        {"\"output_gate_type\": \"swish\"", "\"output_gate_type\": \"sigmoid\"", "output_gate_type is \"sigmoid\""},
        {"\"head_dim\": 32", "\"head_dim\": 32, \"attention_bias\": true", "self_attn.q_proj.bias"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        folder_write_changed(GOLDEN, cases[i].find, cases[i].replace);
        if (mark(folder_open(), &a, &err) != HUNCH_REFUSED || !strstr(err.message, cases[i].word))
            fail_msg("%s: %s", cases[i].replace, err.message);
    }
}

/* Defaults, and other spellings. */
static void test_read(void **state) {
    (void)state;
    hn_arch a;
    hunch_error err = {0};
    folder_write_changed(GOLDEN, "\"full_attention_interval\": 4",
                         "\"layer_types\": [\"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\"]");
    assert_int_equal(mark(folder_open(), &a, &err), HUNCH_OK);
    assert_true(hn_layer_is(&a.layer[0], &hn_mixer_delta) && hn_layer_is(&a.layer[3], &hn_mixer_attention) && a.layer[3].gate.in_q);
    assert_true(a.rotation[0].dims == 8 && a.files.norms_less_one && a.layer[3].qk_norm && !a.layer[0].qk_norm);
    assert_true(hn_delta_at(a.layer)->taps == 4 && !hn_delta_at(a.layer)->tiled);
    hn_arch_fini(&a);
    folder_write_changed(GOLDEN, "\"partial_rotary_factor\": 0.25", "\"other\": 1"); /* a quarter is the default */
    assert_int_equal(mark(folder_open(), &a, &err), HUNCH_OK);
    assert_int_equal(a.rotation[0].dims, 8);
    hn_arch_fini(&a);
}

/* The golden's GGUF with the number of one key changed; `tensor`: with another name of a tensor. */
static hn_source *changed_gguf(const char *key, uint32_t number, const char *tensor) {
    char folder[600], path[1400];
    hunch_error err = {0};
    snprintf(folder, sizeof folder, "%s/goldens/" GOLDEN, HUNCH_TEST_DATA);
    snprintf(path, sizeof path, "%s/hybrid.gguf", test_path("changed"));
    (void)mkdir(test_path("changed"), 0700);
    if (hn_convert(folder, path, &err)) fail_msg("%s", err.message);
    bytes b = test_file_read(path);
    const char *find = tensor ? tensor : key;
    unsigned char *at = memmem(b.at, b.size, find, strlen(find));
    if (!at) fail_msg("no %s", find);
    if (tensor)
        *at = 'X';
    else
        memcpy(at + strlen(key) + 4, &number, sizeof number);
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
    hn_source *s = NULL;
    if (hn_source_open(&s, path, &err)) fail_msg("%s", err.message);
    return s;
}

static void test_ggufs(void **state) {
    (void)state;
    static const struct {
        const char *key;
        uint32_t number;
        const char *tensor, *word;
    } cases[] = {{"qwen35.ssm.conv_kernel", 0, NULL, "qwen35.ssm.conv_kernel is 0"},
                 {"qwen35.ssm.conv_kernel", 5, NULL, "ssm_conv1d"},
                 {"qwen35.ssm.state_size", 4000000000u, NULL, "qwen35.ssm.state_size is 4000000000"},
                 {"qwen35.ssm.state_size", 32, NULL, "attn_qkv"},
                 {"qwen35.ssm.group_count", 3, NULL, "do not share 3 key heads"},
                 {"qwen35.ssm.time_step_rank", 1 << 30, NULL, "qwen35.ssm.time_step_rank is"},
                 {"qwen35.ssm.inner_size", 63, NULL, "qwen35.ssm.inner_size is 63"},
                 {"qwen35.ssm.inner_size", 4 * 520, NULL, "qwen35.ssm.inner_size is 2080"},
                 {"qwen35.full_attention_interval", 2, NULL, "tensor blk."},
                 {"qwen35.nextn_predict_layers", 5, NULL, "qwen35.nextn_predict_layers is 5"},
                 {"qwen35.nextn_predict_layers", 0, NULL, "blk.4."},
                 {"qwen35.nextn_predict_layers", 2, NULL, "none of 3 layers has attention"},
                 {NULL, 0, "blk.0.ssm_a", "ssm_a"},
                 {NULL, 0, "blk.2.ssm_dt.bias", "ssm_dt.bias"},
                 {NULL, 0, "blk.1.post_attention_norm", "post_attention_norm"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a = {0};
        hunch_error err = {0};
        const hunch_status st = mark(changed_gguf(cases[i].key, cases[i].number, cases[i].tensor), &a, &err);
        if (st != HUNCH_REFUSED || !strstr(err.message, cases[i].word))
            fail_msg("%s %s: %s", cases[i].key ? cases[i].key : "", cases[i].tensor ? cases[i].tensor : "", err.message);
    }
}

/* The draft block is found. */
static void test_own_blocks(void **state) {
    (void)state;
    hn_head_names names;
    hn_arch a, head = {0};
    hunch_error err = {0};
    folder_write_changed(GOLDEN, "\"head_dim\": 32", "\"head_dim\": 32");
    hn_source *s = folder_open();
    assert_int_equal(hn_arch_read(&a, s, &err), HUNCH_OK);
    assert_true(hn_head_find_own(s, &a, &names) && names.form == &hn_head_own);
    assert_int_equal(hn_head_read_own(&head, s, &names, &a, &err), HUNCH_OK);
    assert_true(head.layers == 1 && head.layer[0].gate.in_q && head.layer[0].first == 1 && head.files.norms_less_one);
    hn_arch_fini(&head);
    names.modules = HN_MOST_HEAD_MODULES + 1;
    assert_int_equal(hn_head_read_own(&head, s, &names, &a, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "expected at most 8"));
    hn_arch_fini(&a);
    hn_source_close(&s);
    s = changed_gguf(NULL, 0, "blk.4.nextn.eh_proj");
    assert_int_equal(hn_arch_read(&a, s, &err), HUNCH_OK);
    assert_false(hn_head_find_own(s, &a, &names));
    hn_arch_fini(&a);
    hn_source_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folders), cmocka_unit_test(test_read), cmocka_unit_test(test_ggufs),
                                       cmocka_unit_test(test_own_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
