/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - the parts of layers but their mixers (mixers.h). Each reads and updates the residual stream of the pass's rows, and is
 * called by every rank. */
#ifndef HN_LAYERS_H
#define HN_LAYERS_H
#include "model/model.h"

/* The input of a draft head's rows: rows `from` of a store of features. */
typedef struct hn_head_input {
    hn_buf from;    /* int32 [n] */
    hn_matrix rows; /* the head's own outputs, or the target's states side by side */
    bool drafts;    /* the former */
    hn_count n_masks; /* with hn_masks_desc.pair, or in a block with mask_row; most 0: this pass has none */
    hn_buf zero, masks; /* int32 [n_masks]: 0, 0, ...; the rows that are masks */
    bool context;  /* rows of the text in a head of blocks: `in` gets the input of their keys and values */
    int module;    /* number of the module, if several draft in turn */
} hn_head_input;

/* The buffers of a pass, for the most rows of one. Each is as wide as the widest layer needs; a layer uses its first columns. */
typedef struct hn_pass_buffers {
    const hn_rows *rows; /* with the page tables of one group: attention gets those of its own */
    hn_matrix x;        /* [hidden] residual stream */
    hn_act in;          /* input of a layer half, [hidden]; of HN_INPUT_PAIR [2 * hidden] */
    hn_act mixed;       /* attention output as the input of o, [heads * head_dim] */
    hn_act gated;       /* input of down, [ffn] */
    hn_act joined;      /* of ranks: input of o or down, as wide as the file has it */
    hn_act expert_joined; /* the same of experts, for rows times the experts that a row uses */
    hn_buf join_room;   /* of operations that join */
    hn_matrix heads;    /* q | k of all heads, where they are normed as whole rows */
    hn_act sorted;      /* input of a matrix whose inputs have an order of their own, as wide as any; none if no matrix has */
    hn_matrix qkv;      /* q | k | v */
    hn_matrix attended; /* [heads * head_dim] */
    hn_matrix gate, up; /* [ffn] if the product of gate and up is a separate operation */
    hn_matrix branch;   /* [hidden] the output of a branch, if it is normed first */
    hn_matrix halves;   /* [hidden] the sum of a dense half and experts beside it */
    hn_rope_table rotation[HN_MOST_ROTATIONS]; /* of the rows, by each of the model's */
    hn_buf scratch;     /* of a mixer's operation */
    hn_matrix token_inputs, token_products; /* of all layers, side by side; a layer overwrites its own */
    /* of layers of experts */
    hn_matrix scores;      /* [experts] */
    hn_matrix shared_gate; /* [1] */
    hn_act expert_gated;   /* [width] of an expert, for rows times the experts that a row uses */
    hn_matrix expert_out;  /* [hidden], for as many */
    hn_routing routing;    /* distinct: for [layers] */
    /* of a draft head */
    hn_matrix pair;   /* [2 * hidden] norm(embedding) | norm(stream) */
    hn_matrix joint;  /* input of fc */
    hn_act joint_in;  /* the same, in the forms that fc reads */
    hn_matrix states; /* the feature, if each of its states is normed before fc */
    hn_matrix lstm;   /* [4 * hidden] gates of an LSTM */
    hn_matrix token;  /* [hidden] embedding of the rows' tokens */
    hn_matrix normed, coefficients; /* of convolutions: [hidden]; [2][taps][groups] of both sides */
    hn_buf each;      /* int32 [rows] 0, 1, 2, ... */
    /* of mixers that have more products */
    hn_matrix fused; /* products whose parts are interleaved; latent: reduced queries | latent row | queries */
    hn_matrix z;     /* gates of results, or results before they are reduced to what o reads */
    hn_matrix gates; /* a few numbers of a row */
    hn_act head_in;  /* of matrices of heads: the inputs of all heads of some rows */
} hn_pass_buffers;

/* How a layer's heads are rotated; NULL: not at all. */
static inline const hn_rope_table *hn_layer_rotation(const hn_pass_buffers *s, const hn_layer_desc *d) {
    return d->rotation == HN_NO_ROTATION ? NULL : &s->rotation[d->rotation];
}

/* The buffers of a draft head's steps (layer_steps.c): rows whose outputs are wanted. */
typedef struct hn_step_buffers {
    hn_matrix state;  /* input of a step, and its result for the next one */
    hn_matrix result; /* the same, for kinds whose output matrix reads something else */
    hn_matrix mid;
    hn_matrix token;  /* [hidden] embedding of the pass's tokens */
    hn_act in;        /* input of its matrices */
} hn_step_buffers;

/* Runs rows [first, first + n) of the state through a step. rows: the pass's, for their tokens, in the same order. */
void hn_layer_step(const hn_exec *ex, const hn_model *m, const hn_rows *rows, int step, int first, hn_count n, const hn_step_buffers *s);
int hn_step_state_at(const hn_arch *a);       /* offset of the target's state in a row of the state */
int hn_step_width(const hn_arch *a, int step); /* how many numbers of it the next step reads; 0: none */
hn_matrix hn_step_result(const hn_arch *a, const hn_step_buffers *s, int row); /* input of the output matrices, from that row on */

/* x = the input of a draft head's layers, computed from the rows' tokens and features. */
void hn_layer_head(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s);
/* Of a layer whose halves are convolved: in = conv(norm(x)); x += conv(branch). */
void hn_layer_conv_in(const hn_exec *ex, const hn_model *m, const hn_head_conv *c, const hn_norm *norm, hn_act in,
                      const hn_pass_buffers *s);
void hn_layer_conv_out(const hn_exec *ex, const hn_model *m, const hn_head_conv *c, const hn_pass_buffers *s);
/* in = norm(x), or x itself */
static inline void hn_layer_read(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *norm, hn_act in) {
    if (norm->kind)
        ex->ops->norm(ex, n, x, norm, in, hn_no_matrix);
    else
        ex->ops->quantise(ex, n, x, in);
}
/* The forms of the input of a product by a matrix. */
static inline int hn_forms_of(const hn_backend *b, const hn_weight *w) {
    return w->order.mem || (w->ins && !w->ins->groups) ? HN_ACT_F32 : b->act_forms(b, w->dtype);
}
/* What a matrix reads of n * each rows: of ranks `own`, the own slice, and all others in `room`, which has as many rows. */
hn_act hn_layer_joined(const hn_exec *ex, hn_count n, int each, const hn_weight *w, hn_act own, hn_act room, const hn_pass_buffers *s);
/* The columns of y that a matrix gives; of ranks all of y, once each has given its own. */
static inline hn_matrix hn_own_columns(const hn_weight *w, hn_matrix y) {
    return w->outs ? hn_columns(y, hn_own_first(w->outs), hn_own_count(w->outs)) : y;
}
static inline void hn_layer_join(const hn_exec *ex, hn_count n, const hn_weight *w, hn_matrix y, const hn_pass_buffers *s) {
    if (w->outs) ex->ops->join(ex, n, w->outs, hn_columns(y, 0, hn_slices_width(w->outs)), s->join_room);
}
/* linear, whose inputs are permuted first for matrices that have an order of their own */
void hn_layer_product(const hn_exec *ex, hn_count n, hn_act in, const hn_linear_out *outs, int n_outs, bool add, const hn_pass_buffers *s);
/* x += the result of the layer's feed-forward part (ffns.h) */
void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
/* The token's inputs will be needed: they are read from the file meanwhile. */
void hn_token_input_expect(const hn_model *m, int32_t token);
/* The inputs that the rows' tokens have for every layer, in two parts; nothing if there are none. That of x, their embeddings: */
void hn_token_products_make(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s);
/* That of the table, whose rows may still be on their way from the disk: as late as possible. */
void hn_token_inputs_make(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s);
/* x = (x + norm(product(gelu(gate x) * the token's input of the layer))) * the layer's scale */
void hn_layer_token_input(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
/* y = the result of each row's experts for norm x, which the router reads by a norm of its own (HN_FFN_BESIDE) */
void hn_layer_experts_beside(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s, hn_matrix y);
/* A layer's part of routing.distinct. */
static inline hn_buf hn_distinct_of(const hn_routing *r, int layer) {
    return hn_at(r->distinct, sizeof(int32_t) * (size_t)layer * (size_t)(r->experts + 1));
}
/* What the stream is multiplied by after the feed-forward half: the layer's scale, unless its last part follows. */
static inline float hn_ffn_scale(const hn_layer *l, const hn_layer_desc *d) { return d->token_input > 0 ? 1 : l->scale; }
#endif
