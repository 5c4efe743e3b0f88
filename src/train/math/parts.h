/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the matrices of a network are one after another in one vector, as are those of its gradient. A network lists its parts in one
 * table, a row each: its name in files, and its shape by widths, which are the same in all networks, or the network's own. */
#ifndef HN_PARTS_H
#define HN_PARTS_H
#include "train/math/real.h"

typedef enum hn_width {
    HN_WIDTH_ONE,
    HN_WIDTH_HIDDEN,
    HN_WIDTH_PAIR,  /* 2 hidden */
    HN_WIDTH_GATES, /* 4 hidden */
    HN_WIDTH_QUERIES,
    HN_WIDTH_KEYS,
    HN_WIDTH_HEAD, /* of one head of attention */
    HN_WIDTH_FFN,
    HN_WIDTH_OWN, /* of the network, as are the next two */
    HN_WIDTH_OWN_2,
    HN_WIDTH_OWN_3,
    HN_WIDTHS
} hn_width;

typedef struct hn_part_row {
    const char *name;
    hn_width rows, cols;
} hn_part_row;

/* Rows of the matrices of a layer of Llama's, of a network whose parts are NET_Q and so on; inputs: of q, k and v. */
#define HN_LAYER_PARTS(NET, front, POST, inputs)                                                  \
    [NET##_Q] = {front "self_attn.q_proj.weight", HN_WIDTH_QUERIES, inputs},                      \
    [NET##_K] = {front "self_attn.k_proj.weight", HN_WIDTH_KEYS, inputs},                         \
    [NET##_V] = {front "self_attn.v_proj.weight", HN_WIDTH_KEYS, inputs},                         \
    [NET##_O] = {front "self_attn.o_proj.weight", HN_WIDTH_HIDDEN, HN_WIDTH_QUERIES},             \
    [NET##_##POST] = {front "post_attention_layernorm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},    \
    [NET##_GATE] = {front "mlp.gate_proj.weight", HN_WIDTH_FFN, HN_WIDTH_HIDDEN},                 \
    [NET##_UP] = {front "mlp.up_proj.weight", HN_WIDTH_FFN, HN_WIDTH_HIDDEN},                     \
    [NET##_DOWN] = {front "mlp.down_proj.weight", HN_WIDTH_HIDDEN, HN_WIDTH_FFN}

/* Of a network's layers. */
typedef struct hn_sizes {
    int hidden, heads, kv_heads, head_dim, ffn;
    double eps, theta;
} hn_sizes;
/* The same as the first member of a struct: all of them, and each by its name. */
#define HN_SIZES union { hn_sizes sizes; struct { int hidden, heads, kv_heads, head_dim, ffn; double eps, theta; }; }

/* The common widths; the network's own are 0. */
void hn_widths_of(int width[HN_WIDTHS], const hn_sizes *s);
static inline hn_mat hn_part_shaped(const hn_part_row *part, const int width[HN_WIDTHS]) {
    return hn_mat_of(NULL, width[part->rows], width[part->cols]);
}

/* Rows and columns of part `part` of a network of shape *shape; p is not used. */
typedef hn_mat hn_part_shape(const void *shape, int part);

/* Numbers in the parts before `part`; with the number of parts: in all. */
size_t hn_parts_before(hn_part_shape *of, const void *shape, int part);
hn_mat hn_part_in(hn_part_shape *of, const void *shape, int part, hn_real *vector);
#endif
