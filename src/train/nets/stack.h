/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h - layers for training with two sets of rows: those of texts, and those of blocks after them (block_attention.h).
 *
 *     x = norm_input(z), or the caller's input of the first layer
 *     r   = z + o · attention(q, k, v of x)        text rows among themselves, blocks over their text and themselves
 *     z'  = r + down · swiglu(gate, up of norm_post(r))
 *
 * Rows of all texts come first, then those of all blocks, in one matrix. If texts do not pass (DFlash), their rows are
 * only keys and values, from the same `beside` in every layer. The caller sets the initial rows of z and uses the last
 * (block_net.c). */
#ifndef HN_STACK_H
#define HN_STACK_H
#include "train/math/layers/block_attention.h"
#include "train/math/parts.h"
#include "train/math/room.h"

enum { HN_STACK_MOST_LAYERS = 64 };

/* A layer's weights, or their gradients. */
typedef struct hn_stack_layer {
    hn_mat input;          /* a gain [1][hidden]; not read if x is given */
    hn_mat q, k, v;        /* [heads * head_dim], [kv_heads * head_dim] twice, [inputs] */
    hn_mat q_norm, k_norm; /* with head_norms: gains [1][head_dim] */
    hn_mat o, post, gate, up, down;
} hn_stack_layer;

/* Values of a layer for the backward pass, [rows][..]. */
typedef struct hn_stack_kept {
    hn_mat z, x; /* [hidden], [inputs] */
    hn_mat plain_q, plain_k, q, k, v, y;
    hn_mat r, post, gate, up, s;
    hn_real *inverse_input, *inverse_q, *inverse_k, *inverse_post, *log_sums;
} hn_stack_kept;

typedef struct hn_stack {
    HN_SIZES;
    hn_workers *workers;
    int inputs, layers; /* inputs: of the first layer; hidden in others */
    bool head_norms;
    bool pass;  /* text rows pass through the layers; else they are only keys and values */
    bool given; /* the caller sets at[0].x for all rows */
    bool ahead;
    int most_texts_rows, most_blocks_rows;
    hn_stack_kept at[HN_STACK_MOST_LAYERS];
    hn_mat top, dz;         /* z after the last layer; its gradient, then that of each earlier z */
    hn_mat beside, dbeside; /* [text rows][hidden], if texts do not pass */
    hn_mat dx, dq, dk, dv, wide, dpost;
    /* of one batch */
    int texts;
    const int *start, *of;
    const hn_text_block *block;
    const int *position; /* [rows] */
    hn_stack_layer w[HN_STACK_MOST_LAYERS], g[HN_STACK_MOST_LAYERS];
} hn_stack;

/* Allocates the matrices of s, whose sizes are set. */
void hn_stack_lay_out(hn_stack *s, hn_room *r);
int hn_stack_text_rows(const hn_stack *s);
int hn_stack_rows(const hn_stack *s);
/* The rows of the batch in a matrix of all rows: all, and those that pass through the layers. */
hn_mat hn_stack_all(const hn_stack *s, hn_mat m);
hn_mat hn_stack_passing(const hn_stack *s, hn_mat m);
/* From at[0].z (and at[0].x, if it is given; or beside) to top. */
void hn_stack_forward(hn_stack *s);
/* From the gradient of top in dz to that of at[0].z in dz, and of at[0].x in dx, if it is given; dbeside is written. */
void hn_stack_back(hn_stack *s);
#endif
