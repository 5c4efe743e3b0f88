/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_files_test.c - files of Mamba-2, Granite 4 and Bamba: spellings that give the same description, values and tensors that are refused,
 * and GGUF files as llama.cpp's converter writes them where they differ from ours. Results: golden/golden_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "model/arch/ssm_desc.h"
#include "model/folder_for_tests.h"
#include "fixture.h"
#include "gguf_edit.h"

enum { N = 40, VOCAB = 128 };
#define GGUF "ssm.gguf"

/* ---- folders -------------------------------------------------------------------------------------------------------------- */

#define MAMBA(find, replace, word) {"mamba2-plain", find, replace, word}
#define GRANITE(find, replace, word) {"granitemoehybrid-dense", find, replace, word}
#define BAMBA(find, replace, word) {"bamba-plain", find, replace, word}
static const folder_change refused[] = {
    MAMBA("\"n_groups\": 2", "\"n_groups\": 3", "8 heads do not share 3 groups"),
    MAMBA("\"n_groups\": 2", "\"n_groups\": 0", "n_groups is 0"),
    MAMBA("\"n_groups\": 2", "\"n_groups\": 4", "mixer.in_proj.weight"),
    MAMBA("\"num_heads\": 8", "\"num_heads\": 1000000", "num_heads is 1000000"),
    MAMBA("\"head_dim\": 16", "\"head_dim\": 513", "head_dim is 513"),
    MAMBA("\"state_size\": 16", "\"state_size\": 1025", "state_size is 1025"),
    MAMBA("\"state_size\": 16", "\"state_size\": 8", "mixer.in_proj.weight"),
    MAMBA("\"conv_kernel\": 4", "\"conv_kernel\": 9", "conv_kernel is 9"),
    MAMBA("\"conv_kernel\": 4", "\"conv_kernel\": 3", "conv1d"),
    MAMBA("\"use_bias\": false", "\"use_bias\": true", "in_proj.bias"),
    MAMBA("\"use_bias\": false", "\"use_bias\": 1", "use_bias"),
    MAMBA("\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu_pytorch_tanh\"", "hidden_act is \"gelu_pytorch_tanh\", expected silu"),
    MAMBA("\"time_step_limit\": [", "\"time_step_limit\": [1.0, 0.5], \"other\": [", "time_step_limit, expected a list of two numbers"),
    MAMBA("\"time_step_limit\": [", "\"time_step_limit\": [-1.0, 0.5], \"other\": [", "time_step_limit, expected a list of two numbers"),
    MAMBA("\"time_step_limit\": [", "\"time_step_limit\": [0.5], \"other\": [", "time_step_limit, expected a list of two numbers"),
    MAMBA("\"time_step_limit\": [", "\"time_step_limit\": 0.5, \"other\": [", "time_step_limit, expected a list of two numbers"),
    MAMBA("Infinity", "{\"__float__\": \"NaN\"}", "time_step_limit, expected a list of two numbers"),
    GRANITE("\"mamba_d_head\": 16", "\"mamba_d_head\": \"wide\"", "mamba_d_head"),
    GRANITE("\"mamba_d_head\": 16,\n \"mamba_d_state\": 16,\n \"mamba_expand\": 2", "\"mamba_expand\": 1", "mamba.in_proj.weight"),
    GRANITE("\"mamba_d_head\": 16,\n \"mamba_d_state\": 16,\n \"mamba_expand\": 2,\n \"mamba_n_groups\": 1,\n \"mamba_n_heads\": 8",
            "\"mamba_n_heads\": 7", "give heads of 18.2857"),
    GRANITE("\"mamba_n_groups\": 1", "\"mamba_n_groups\": 3", "8 heads do not share 3 groups"),
    GRANITE("\"mamba\"", "\"conv\"", "layer_types, expected a list of 3 names, attention or mamba"),
    GRANITE("\"mamba\"", "\"linear_attention\"", "layer_types, expected a list of 3 names, full_attention or linear_attention"),
    GRANITE("\"layer_types\": [", "\"layer_types\": [\"mamba\",", "layer_types, expected a list of 3 names"),
    GRANITE("\"layer_types\": [", "\"layers_block_type\": [\"mamba\"], \"other\": [", "layers_block_type, expected a list of 3 names"),
    GRANITE("\"position_embedding_type\": \"nope\"", "\"position_embedding_type\": \"alibi\"", "position_embedding_type is \"alibi\""),
    GRANITE("\"mamba_conv_bias\": true", "\"mamba_conv_bias\": \"yes\"", "mamba_conv_bias"),
    GRANITE("\"mamba_proj_bias\": false", "\"mamba_proj_bias\": true", "in_proj.bias"),
    GRANITE("\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\"", "hidden_act"),
    GRANITE("\"shared_intermediate_size\": 48", "\"shared_intermediate_size\": 64", "shared_mlp.input_linear"),
    GRANITE("\"num_local_experts\": 0", "\"num_local_experts\": 4", "block_sparse_moe.router.layer.weight is missing"),
    BAMBA("\"attn_layer_indices\": [", "\"attn_layer_indices\": [2,", "attn_layer_indices[0], expected a layer from 0 to 1"),
    BAMBA("\"attn_layer_indices\": [", "\"attn_layer_indices\": [-1,", "attn_layer_indices[0], expected a layer from 0 to 1"),
    BAMBA("\"attn_layer_indices\": [", "\"attn_layer_indices\": [0.5,", "attn_layer_indices[0], expected a layer from 0 to 1"),
    BAMBA("\"attn_layer_indices\": [", "\"attn_layer_indices\": 1, \"other\": [", "attn_layer_indices, expected a list of layers"),
    BAMBA("\"attn_layer_indices\": [", "\"attn_layer_indices\": [0,", "self_attn"),
    BAMBA("\"attention_bias\": false", "\"attention_bias\": true", "self_attn.q_proj.bias"),
    BAMBA("\"mlp_bias\": false", "\"mlp_bias\": true", "feed_forward.gate_proj.bias")};

static void test_refused(void **state HN_UNUSED) { folder_refused_all(refused, sizeof refused / sizeof *refused); }

static hn_arch changed(const char *folder, const char *find, const char *replace) {
    hn_arch a;
    folder_write_changed(folder, find, replace);
    hn_source *s = folder_open();
    must(hn_model_mark(s, &a, NULL, err));
    hn_source_close(&s);
    return a;
}

/* Of the folder as it is, and with this spelling. */
static void check_spelling(const char *folder, const char *find, const char *replace) {
    hn_arch a = changed(folder, find, find), b = changed(folder, find, replace);
    for (int i = 0; i < a.layers; i++)
        if (memcmp(a.layer[i].mixer, b.layer[i].mixer, sizeof a.layer[i].mixer) || a.layer[i].rotation != b.layer[i].rotation)
            fail_msg("%s with %s: layer %d is another one", folder, replace, i);
    hn_arch_fini(&a);
    hn_arch_fini(&b);
}

static void test_spellings(void **state HN_UNUSED) {
    static const char limit[] = "\"time_step_limit\": [\n  0.0,\n  Infinity\n ],";
    check_spelling("mamba2-plain", "Infinity", "{\"__float__\": \"Infinity\"}");
    check_spelling("mamba2-plain", limit, "\"time_step_limit\": null,");
    check_spelling("mamba2-plain", limit, "");
    check_spelling("mamba2-plain", "\"conv_kernel\": 4,", "");
    check_spelling("mamba2-plain", "\"use_bias\": false,", "");
    check_spelling("granitemoehybrid-dense", "\"mamba_d_head\": 16", "\"mamba_d_head\": \"auto\"");
    check_spelling("granitemoehybrid-dense", "\"mamba_d_head\": 16", "\"mamba_d_head\": null");
    check_spelling("granitemoehybrid-dense", "\"position_embedding_type\": \"nope\"", "\"position_embedding_type\": null");
    check_spelling("granitemoehybrid-dense", "\"layer_types\"", "\"layers_block_type\"");
    check_spelling("granitemoehybrid-dense", "\"layer_types\": [", "\"layer_types\": null, \"layers_block_type\": [");
    check_spelling("granitemoehybrid-dense", "\"layer_types\": [\n  \"mamba\",\n  \"attention\",\n  \"mamba\"\n ]",
                   "\"layer_types\": [\"linear_attention\", \"full_attention\", \"linear_attention\"]");
    hn_arch a = changed("mamba2-plain", limit, "\"time_step_limit\": [0.25, 0.75],");
    assert_true(hn_ssm_limit(hn_ssm_at(a.layer)->least) == 0.25f && hn_ssm_limit(hn_ssm_at(a.layer)->most) == 0.75f);
    hn_arch_fini(&a);
    a = changed("granitemoehybrid-dense", "\"attention_multiplier\": 0.2,", "");
    assert_true(a.layer[1].attention_scale == 1);
    hn_arch_fini(&a);
}

/* ---- GGUF files ------------------------------------------------------------------------------------------------------------ */

static void keep(void *user, size_t row, const float *logits, int vocab) {
    assert_true(row < N && vocab == VOCAB);
    memcpy((float *)user + row * VOCAB, logits, VOCAB * sizeof *logits);
}

static void logits_of(const char *path, bool mapped, float out[N * VOCAB]) {
    hunch_token text[N];
    for (int i = 0; i < N; i++) text[i] = (i * 37 + i * i) % VOCAB;
    hunch_model *m = open_model_as(path, "best", 1, HUNCH_PRECISION_F32, mapped);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_F32, 64, 64);
    must(hunch_evaluate(e, text, N, keep, out, err));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static double apart(const float *a, const float *b) {
    double square = 0, most = 0;
    for (int i = 0; i < N * VOCAB; i++) {
        square += (double)a[i] * (double)a[i];
        most = fmax(most, fabs((double)(a[i] - b[i])));
    }
    return most / sqrt(square / (N * VOCAB));
}

/* Rows that are paired up to `from` dims of each head become paired up to `to`. */
static void pair_rows(edit *e, const char *name, int heads, int from, int to) {
    edit_tensor *t = edit_tensor_of(e, name);
    assert_non_null(t);
    const int rows = (int)t->dims[1], size = rows / heads;
    const size_t row = (size_t)t->dims[0] * 2; /* BF16 */
    unsigned char *old = malloc((size_t)rows * row);
    memcpy(old, t->data.at, (size_t)rows * row);
    for (int r = 0; r < rows; r++) {
        const int head = r - r % size;
        memcpy(t->data.at + (size_t)(head + hn_paired_row(r % size, to)) * row, old + (size_t)(head + hn_paired_row(r % size, from)) * row,
               row);
    }
    free(old);
}

/* llama.cpp's converter has the rows of whole heads in pairs, though half of a head turns. */
static void test_bamba(void **state HN_UNUSED) {
    static float want[N * VOCAB], got[N * VOCAB];
    const char *path = test_path(GGUF);
    logits_of(data_path("goldens/bamba-plain"), false, want);
    must(hunch_convert(data_path("goldens/bamba-plain"), path, NULL, err));
    logits_of(path, false, got);
    assert_true(apart(want, got) < 1e-5);
    edit *e = edit_open(path);
    assert_int_equal(edit_value(e, "granitehybrid.hunch.paired_dims"), 8);
    edit_drop(e, "granitehybrid.hunch.paired_dims");
    edit_write(e, path);
    logits_of(path, false, got);
    assert_true(apart(want, got) > 0.1); /* its rows are read otherwise */
    pair_rows(e, "blk.1.attn_q.weight", 3, 8, 16);
    pair_rows(e, "blk.1.attn_k.weight", 1, 8, 16);
    edit_write(e, path);
    for (int mapped = 0; mapped < 2; mapped++) {
        logits_of(path, mapped, got);
        if (!(apart(want, got) < 1e-5)) fail_msg("rows as llama.cpp has them, mapped %d: off by %g", mapped, apart(want, got));
    }
    edit_close(e);
    unlink(path);
}

static void check_gguf(const char *golden, const char *key, uint32_t value, const char *word) {
    const char *path = test_path(GGUF);
    hunch_error why = {0};
    hunch_model *m = NULL;
    must(hunch_convert(data_path(golden), path, NULL, err));
    edit *e = edit_open(path);
    edit_u32(e, key, value);
    edit_write(e, path);
    edit_close(e);
    if (hunch_model_open(&m, path, NULL, &why) != HUNCH_REFUSED || !strstr(why.message, word))
        fail_msg("%s %u: %s", key, value, why.message);
    unlink(path);
}

static void test_gguf_refused(void **state HN_UNUSED) {
    check_gguf("goldens/bamba-plain", "granitehybrid.hunch.paired_dims", 4, "rows are in pairs up to 4");
    check_gguf("goldens/bamba-plain", "granitehybrid.rope.dimension_count", 4, "4 of 16 dims of a head turn");
    check_gguf("goldens/bamba-plain", "granitehybrid.ssm.inner_size", 100, "expected 6 heads");
    check_gguf("goldens/bamba-plain", "granitehybrid.ssm.time_step_rank", 0, "granitehybrid.ssm.time_step_rank is 0");
    check_gguf("goldens/mamba2-plain", "mamba2.ssm.conv_kernel", 9, "mamba2.ssm.conv_kernel is 9");
    check_gguf("goldens/mamba2-plain", "mamba2.ssm.group_count", 3, "8 heads do not share 3 groups");
    check_gguf("goldens/mamba2-plain", "mamba2.ssm.state_size", 8, "blk.0.ssm_in.weight");
}

/* Without state space layers and experts a GGUF is Granite 3's, which programs run. */
static void test_attention_alone(void **state HN_UNUSED) {
    static float want[N * VOCAB], got[N * VOCAB];
    const char *path = test_path(GGUF);
    logits_of(data_path("goldens/granitemoehybrid-attn"), false, want);
    must(hunch_convert(data_path("goldens/granitemoehybrid-attn"), path, NULL, err));
    logits_of(path, false, got);
    assert_true(apart(want, got) < 1e-5);
    edit *e = edit_open(path);
    const edit_key *k = edit_find(e, "general.architecture");
    assert_true(k->value.size == 8 + strlen("granite") && !memcmp(k->value.at + 8, "granite", strlen("granite")));
    edit_close(e);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_spellings), cmocka_unit_test(test_bamba),
                                       cmocka_unit_test(test_gguf_refused), cmocka_unit_test(test_attention_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
