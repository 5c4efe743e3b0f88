/* SPDX-License-Identifier: Apache-2.0 */
/* arch_ernie.c - ERNIE 4.5: the plain block, whose heads turn in neighbouring pairs in folders too; use_bias says whether all its matrices
 * have biases. With experts: chosen by softmax and a correction, from one layer to another and every so many, beside those that all rows
 * share. A folder's blocks of multi-token prediction are not read, as in its reference. */
#include <math.h>

#include "model/arch/arch.h"

static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-5), HN_THETA(5e5), HN_TIED(1), HN_CONTEXT(131072),
    HN_ROWS_END};
static const hn_key_row biases[] = { /* of all matrices but experts' */
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "use_bias", 0, 1},
    {HN_LAYER(BOOL, o_bias), "?blk.0.attn_output.bias", "use_bias", 0, 1},
    {HN_LAYER(BOOL, gate_up_bias), HN_GATE_BIAS, "use_bias", 0, 1},
    {HN_LAYER(BOOL, down_bias), HN_DOWN_BIAS, "use_bias", 0, 1},
    HN_ROWS_END};
static const hn_key_row dense[] = {HN_HEAD_DIM(128), HN_KV_HEADS(2), HN_ROWS_END};
const hn_family hn_family_ernie4_5 = {
    .gguf_name = "ernie4_5", .hf_type = "ernie4_5", .pairs = true, .folder_pairs = true, .keys = {keys, biases, dense}};

/* A folder's layers before the first and after the last with experts. */
static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    const json_t *end = hn_source_config(src, "moe_layer_end_index");
    const int last = json_is_integer(end) && json_integer_value(end) >= 0 && json_integer_value(end) < a->layers
                         ? (int)json_integer_value(end) : a->layers - 1;
    if (end && (!json_is_integer(end) || json_integer_value(end) < -1)) /* beyond the last layer: it is none */
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: moe_layer_end_index, expected -1 or a layer", hn_source_path(src));
    for (int i = 0; a->files.form == HN_SOURCE_HF && i < a->layers; i++)
        if (i < a->files.first_experts || i > last) hn_moe_set(&a->layer[i], NULL);
    return HUNCH_OK;
}

static double most_layers(const hn_arch *a) { return a->layers; }
static const hn_key_row moe[] = {
    HN_KV_HEADS(4),
    HN_EXPERTS("moe_num_experts num_experts", 64), HN_USED("moe_k num_experts_per_tok", 6), HN_SHARED("moe_num_shared_experts", 2),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 1536}},
    HN_ALWAYS(HN_LAYER(BOOL, experts.bias), 1),
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", "moe_layer_start_index", 0, 0, {0, 1}, .up_to = most_layers,
     .written = hn_moe_first},
    {HN_MODEL(INT, files.sparse_step), "interleave_moe_layer_step", "moe_layer_interval", 1, 1024, {0, 1}, HN_GGUF_WRITTEN},
    {HN_BESIDE(REAL), NULL, "moe_norm_min", 0, 1e-6},
    HN_SHARED_BIAS("use_bias"),
    {HN_MODEL(BOOL, output_bias), "?output.bias", "use_bias", 0, 1},
    HN_ROWS_END};
static const hn_role_other names[] = {
    {HN_ROLE_ROUTER_BIAS, NULL, "model.layers.%d.mlp.moe_statics.e_score_correction_bias", NULL}, HN_SHARED_NAMES("mlp.shared_experts"),
    HN_NAMES_END};
const hn_family hn_family_ernie4_5_moe = {.gguf_name = "ernie4_5-moe", .hf_type = "ernie4_5_moe", .pairs = true, .folder_pairs = true,
                                          .unread = "mtp_emb_norm. mtp_hidden_norm. mtp_linear_proj. mtp_block.",
                                          .names = names, .keys = {keys, biases, hn_moe_keys, hn_moe_normalised, moe}, .finish = finish};
