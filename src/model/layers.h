/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - the layer kinds. Each reads and updates the residual stream of the pass's rows, and is called by every rank. */
#ifndef HN_LAYERS_H
#define HN_LAYERS_H
#include "model/model.h"

/* The input of a draft head's rows: rows `from` of a store of features [.][ld]. */
typedef struct hn_head_input {
    hn_buf from; /* int32 [n] */
    hn_buf rows;
    int ld;
    bool drafts; /* the head's own outputs, else the target's states side by side */
    int n_masks; /* with mask_pair, or in a block if masks have a row of their own */
    hn_buf zero, masks; /* int32 [n_masks]: 0, 0, ...; the rows that are masks */
    bool context;  /* rows of the text in a head of blocks: `in` gets the input of their keys and values */
    int module;    /* number of the module, if several draft in turn */
} hn_head_input;

/* The buffers of a pass; widths are leading dimensions in floats. */
/* rows: the most in a pass, as the runner was opened for. */
typedef struct hn_pass_buffers {
    const hn_rows *rows; /* with the page tables of one group: attention gets those of its own */
    hn_buf x;        /* f32 [rows][ldx] residual stream */
    hn_act in;       /* input of a layer half, [hidden]; of HN_INPUT_PAIR [2 * hidden] */
    hn_act mixed;    /* attention output as the input of o, [heads * head_dim] */
    hn_act gated;    /* input of down, [ffn] */
    hn_buf qkv;      /* f32 [rows][ldqkv]: q | k | v, also of a delta net */
    hn_buf attended; /* f32 [rows][ldattended] */
    hn_buf gate, up; /* f32 [rows][ldhidden] if the product of gate and up is a separate operation */
    hn_buf branch;   /* f32 [rows][ldx] the output of a branch, if it is normed first */
    hn_rope_table rotation[HN_MOST_ROTATIONS]; /* of the rows, by each of the model's */
    hn_buf scratch;  /* of attention */
    /* of layers of experts */
    hn_buf scores;       /* f32 [rows][ldscores] */
    hn_buf shared_gate;  /* f32 [rows][HN_STRIP] */
    hn_act gathered;     /* [hidden], for rows times the experts that a row uses */
    hn_act expert_gated; /* [width] of an expert, for as many */
    hn_buf expert_out;   /* f32 [as many][ldx] */
    hn_routing routing;  /* distinct: for [layers] */
    /* of a draft head */
    hn_buf pair;     /* f32 [rows][ldpair] norm(embedding) | norm(stream) */
    hn_buf joint;    /* f32 [rows][ldjoint] input of fc */
    hn_act joint_in; /* the same, in the forms that fc reads */
    hn_buf states;   /* f32 [rows][ldjoint] the feature, if each of its states is normed before fc */
    hn_buf lstm;     /* f32 [rows][4 * ldx] gates of an LSTM */
    hn_buf token;    /* f32 [rows][ldx] embedding of the rows' tokens */
    hn_buf each;     /* int32 [rows] 0, 1, 2, ... */
    /* of gated delta nets, and of attention with gates */
    hn_buf fused; /* f32 [rows][ldfused] products whose parts are interleaved */
    hn_buf z;     /* f32 [rows][ldz] gates of results; in a delta net then its results */
    hn_buf gates; /* f32 [rows][ldgates] b | a */
    hn_buf delta_scratch; /* [ranks] of delta_bytes */
    size_t delta_bytes;
    int ldx, ldqkv, ldattended, ldhidden, ldpair, ldjoint, ldfused, ldz, ldgates, ldscores;
} hn_pass_buffers;

/* How a layer's heads are rotated; NULL: not at all. */
static inline const hn_rope_table *hn_layer_rotation(const hn_pass_buffers *s, const hn_layer_desc *d) {
    return d->rotation == HN_NO_ROTATION ? NULL : &s->rotation[d->rotation];
}

/* The inputs and states of a gated delta net's rows, and the order of the walk. */
typedef struct hn_delta_at {
    const hn_delta_walk *walk;
    hn_input_pages inputs;
    hn_state_pages states;
} hn_delta_at;

/* The buffers of a draft head's steps (layer_steps.c): rows whose outputs are wanted, widths in floats. */
typedef struct hn_step_buffers {
    hn_buf state;  /* f32 [rows][ldstate] input of a step, and its result for the next one */
    hn_buf result; /* the same, for kinds whose output matrix reads something else */
    hn_buf mid;    /* f32 [rows][ldmid] */
    hn_buf token;  /* f32 [rows][ldtoken] embedding of the pass's tokens */
    hn_act in;     /* input of its matrices */
    int ldstate, ldmid, ldtoken;
} hn_step_buffers;

/* Runs rows [first, first + n) of the state through a step. rows: the pass's, for their tokens, in the same order. */
void hn_layer_step(const hn_exec *ex, const hn_model *m, const hn_rows *rows, int step, int first, int n, const hn_step_buffers *s);
int hn_step_state_at(const hn_arch *a);       /* offset of the target's state in a row of the state */
int hn_step_width(const hn_arch *a, int step); /* how many numbers of it the next step reads; 0: none */
hn_buf hn_step_result(const hn_arch *a, const hn_step_buffers *s, int row); /* input of the output matrix, rows ldstate apart */

/* x = the input of a draft head's layers, computed from the rows' tokens and features. */
void hn_layer_head(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s);
/* Writes the rows' K and V, computed from `in`, to the cache. */
void hn_layer_context(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                      const hn_pass_buffers *s);
/* x += o(attention(norm x)); writes the rows' K and V to the cache. rows: with the page tables of the layer's group. */
void hn_layer_attention(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                        const hn_pass_buffers *s);
/* x += o(delta net(norm x)); updates the state, and writes the rows' inputs to the cache. */
void hn_layer_delta(const hn_exec *ex, const hn_model *m, int layer, const hn_delta_at *at, const hn_pass_buffers *s);
/* x += down(act(gate norm x) * up norm x) */
void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
/* x += the result of each row's experts and of the shared expert for norm x */
void hn_layer_experts_run(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
/* A layer's part of routing.distinct. */
static inline hn_buf hn_distinct_of(const hn_routing *r, int layer) {
    return hn_at(r->distinct, sizeof(int32_t) * (size_t)layer * (size_t)(r->experts + 1));
}
bool hn_ffn_in_steps(const hn_arch *a, int layer); /* gate and up are separate products, and need the buffers gate and up */
#endif
