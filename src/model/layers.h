/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - the layer kinds. Each reads and updates the residual stream of the pass's rows; every rank calls it. */
#ifndef HN_LAYERS_H
#define HN_LAYERS_H
#include "model/model.h"

/* The buffers of a pass; widths are leading dimensions in floats. */
typedef struct hn_pass_buffers {
    const hn_rows *rows; /* their page tables are one group's: attention takes its own */
    hn_buf x;        /* f32 [HN_MAX_ROWS][ldx] residual stream */
    hn_act in;       /* normed input of a layer half, [hidden] */
    hn_act mixed;    /* attention output as the input of o, [heads * head_dim] */
    hn_act gated;    /* input of down, [ffn] */
    hn_buf qkv;      /* f32 [HN_MAX_ROWS][ldqkv]: q | k | v */
    hn_buf attended; /* f32 [HN_MAX_ROWS][ldattended] */
    hn_buf gate, up; /* f32 [HN_MAX_ROWS][ldhidden] where the product of gate and up is an operation of its own */
    hn_buf branch;   /* f32 [HN_MAX_ROWS][ldx] what a branch adds, where it is normed first */
    hn_buf rotation, rotation_local; /* rope tables of the rows */
    hn_buf scratch;  /* of attention */
    int ldx, ldqkv, ldattended, ldhidden;
} hn_pass_buffers;

/* x += o(attention(norm x)); writes the rows' K and V to the cache. rows: with the page tables of the layer's group. */
void hn_layer_attention(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                        const hn_pass_buffers *s);
/* x += down(act(gate norm x) * up norm x) */
void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
bool hn_ffn_in_steps(const hn_arch *a, int layer); /* gate and up are products of their own: it needs lanes->gate and up */
#endif
