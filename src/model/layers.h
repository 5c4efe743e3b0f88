/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - the layer kinds. Each reads and updates the residual stream of the pass's rows; every rank calls it. */
#ifndef HN_LAYERS_H
#define HN_LAYERS_H
#include "model/model.h"

/* What a draft head's rows begin from: rows `from` of a store of features [.][ld]. */
typedef struct hn_head_input {
    hn_buf from; /* int32 [n] */
    hn_buf rows;
    int ld;
    bool drafts; /* the head's own outputs, else the target's states side by side */
    int n_masks; /* of mask_pair; of a block, where masks have a row of their own */
    hn_buf zero, masks; /* int32 [n_masks]: 0, 0, ...; the rows that are masks */
    bool context;  /* rows of the text, of a head of blocks: `in` gets what their keys and values are made of */
    int block;     /* of several that draft in turn */
} hn_head_input;

/* The buffers of a pass; widths are leading dimensions in floats. */
/* rows: of a pass at most, as the runner was opened for. */
typedef struct hn_pass_buffers {
    const hn_rows *rows; /* their page tables are one group's: attention takes its own */
    hn_buf x;        /* f32 [rows][ldx] residual stream */
    hn_act in;       /* input of a layer half, [hidden]; of HN_INPUT_PAIR [2 * hidden] */
    hn_act mixed;    /* attention output as the input of o, [heads * head_dim] */
    hn_act gated;    /* input of down, [ffn] */
    hn_buf qkv;      /* f32 [rows][ldqkv]: q | k | v, also of a delta net */
    hn_buf attended; /* f32 [rows][ldattended] */
    hn_buf gate, up; /* f32 [rows][ldhidden] where the product of gate and up is an operation of its own */
    hn_buf branch;   /* f32 [rows][ldx] what a branch adds, where it is normed first */
    hn_buf rotation, rotation_local; /* rope tables of the rows */
    hn_buf scratch;  /* of attention */
    /* of layers of experts */
    hn_buf scores;       /* f32 [rows][ldscores] */
    hn_buf shared_gate;  /* f32 [rows][HN_STRIP] */
    hn_act gathered;     /* [hidden], of rows times the experts that a row uses */
    hn_act expert_gated; /* [width] of an expert, of as many */
    hn_buf expert_out;   /* f32 [as many][ldx] */
    hn_routing routing;  /* distinct: [layers] of them */
    /* of a draft head */
    hn_buf pair;     /* f32 [rows][ldpair] norm(embedding) | norm(stream) */
    hn_buf joint;    /* f32 [rows][ldjoint] input of fc */
    hn_act joint_in; /* the same, in the forms that fc reads */
    hn_buf states;   /* f32 [rows][ldjoint] the feature, where each state of it is normed before fc */
    hn_buf lstm;     /* f32 [rows][4 * ldx] gates of an LSTM */
    hn_buf token;    /* f32 [rows][ldx] embedding of the rows' tokens */
    hn_buf each;     /* int32 [rows] 0, 1, 2, ... */
    /* of gated delta nets, and of attention with gates */
    hn_buf fused; /* f32 [rows][ldfused] products whose parts lie among each other */
    hn_buf z;     /* f32 [rows][ldz] gates of results; of a delta net then its results */
    hn_buf gates; /* f32 [rows][ldgates] b | a */
    hn_buf delta_scratch; /* [ranks] of delta_bytes */
    size_t delta_bytes;
    int ldx, ldqkv, ldattended, ldhidden, ldpair, ldjoint, ldfused, ldz, ldgates, ldscores;
} hn_pass_buffers;

/* Where a gated delta net finds its rows' inputs and states, and how it walks them. */
typedef struct hn_delta_at {
    const hn_delta_walk *walk;
    hn_input_pages inputs;
    hn_state_pages states;
} hn_delta_at;

/* What the steps of a draft head work in (layer_steps.c): rows whose outputs are wanted, widths in floats. */
typedef struct hn_step_buffers {
    hn_buf state;  /* f32 [rows][ldstate] what a step begins from, and leaves for the next one */
    hn_buf result; /* the same: of kinds whose output reads something else */
    hn_buf mid;    /* f32 [rows][ldmid] */
    hn_buf token;  /* f32 [rows][ldtoken] embedding of the pass's tokens */
    hn_act in;     /* what its matrices read */
    int ldstate, ldmid, ldtoken;
} hn_step_buffers;

/* Rows [first, first + n) of the state through a step. rows: the pass's, for their tokens, in the same order. */
void hn_layer_step(const hn_exec *ex, const hn_model *m, const hn_rows *rows, int step, int first, int n, const hn_step_buffers *s);
int hn_step_state_at(const hn_arch *a);       /* where in a row of the state that of the target goes */
int hn_step_kept(const hn_arch *a, int step); /* numbers of it that the step behind reads; 0: none */
hn_buf hn_step_result(const hn_arch *a, const hn_step_buffers *s, int row); /* what the output matrix reads, ldstate apart */

/* x = what a draft head's layers read, made of the rows' tokens and features. */
void hn_layer_head(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s);
/* The rows' K and V, made of `in`, to the cache. */
void hn_layer_context(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                      const hn_pass_buffers *s);
/* x += o(attention(norm x)); writes the rows' K and V to the cache. rows: with the page tables of the layer's group. */
void hn_layer_attention(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                        const hn_pass_buffers *s);
/* x += o(delta net(norm x)); carries the state on, and leaves the rows' inputs in the cache. */
void hn_layer_delta(const hn_exec *ex, const hn_model *m, int layer, const hn_delta_at *at, const hn_pass_buffers *s);
/* x += down(act(gate norm x) * up norm x) */
void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
/* x += what the experts of each row, and those that all share, make of norm x */
void hn_layer_experts_run(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
/* The part of routing.distinct that is a layer's. */
static inline hn_buf hn_distinct_of(const hn_routing *r, int layer) {
    return hn_at(r->distinct, sizeof(int32_t) * (size_t)layer * (size_t)(r->experts + 1));
}
bool hn_ffn_in_steps(const hn_arch *a, int layer); /* gate and up are products of their own: it needs lanes->gate and up */
#endif
