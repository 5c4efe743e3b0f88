/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a target's weights, packed for the backend: made once at load, read-only afterwards, shared by all threads.
 * Where the numbers of a pass live is pass.h's business. */
#ifndef HN_MODEL_H
#define HN_MODEL_H
#include "model/arch.h"
#include "ops/delta.h"
#include "ops/ops.h"

/* Of a layer that has them: `experts` matrices each (hn_weight), the rows of all behind each other. */
typedef struct hn_layer_experts {
    hn_router choice;
    hn_weight router, gate, up, down; /* [experts, hidden]; of each expert [width, hidden] twice (strips interleaved), [hidden, width] */
    hn_weight shared_router, shared_gate, shared_up, shared_down; /* [1, hidden]; as a dense layer's, of the shared width */
    int in_forms, down_forms, shared_forms; /* what the inputs of the half, of down and of shared_down must hold */
} hn_layer_experts;

typedef struct hn_layer {
    hn_buf attn_norm, ffn_norm; /* f32 [hidden] */
    hn_buf post_attn_norm, post_ffn_norm; /* the same, where the description has them */
    hn_head_fix heads;          /* biases and norms of q, k, v, if any */
    hn_buf gated_bias;          /* f32 [2*heads*head_dim], in place of q's: of each head and its gate, if any */
    hn_buf sinks;               /* f32 [heads], if any */
    hn_buf o_bias, down_bias, gate_bias, up_bias; /* f32 [hidden] twice, [ffn] twice, where the description has them */
    hn_weight q, k, v, o; /* a delta net's q is its q | k | v, or with z behind each key head's; gated: each head of q and its gate.
                             Else [heads*head_dim, hidden], [kv_heads*head_dim, hidden] twice, [hidden, heads*head_dim] */
    hn_weight gate, up, down;                       /* [ffn, hidden] twice (strips interleaved), [hidden, ffn] */
    /* of a gated delta net, beside o; z also of an attention with gates, whose q has them too */
    hn_weight z, beta, alpha;  /* [values, hidden], [value heads, hidden] twice; alpha not where beta holds both */
    hn_buf conv, decay, dt, delta_norm; /* hn_delta's */
    hn_layer_experts experts;                       /* instead, of HN_FFN_EXPERTS */
    int attn_forms, o_forms, ffn_forms, down_forms; /* what their inputs must hold, HN_ACT_* */
} hn_layer;

/* What a draft head has for one of the positions that it drafts (hn_steps_desc); H: hidden, I: inner. */
typedef struct hn_step {
    hn_weight block[HN_MOST_STEP_BLOCKS];    /* [H, H]; of HN_STEP_GROUNDED the first [H, (step + 2) * H] */
    hn_buf block_bias[HN_MOST_STEP_BLOCKS];  /* f32 [H] */
    hn_weight residual;                      /* of HN_STEP_GROUNDED: as the first block */
    hn_buf residual_bias;
    hn_weight embedding;                     /* [tokens, I] */
    hn_weight gate[HN_STEP_GATES];           /* [I, H], behind the first step [I, I]; of HN_STEP_SUM one, of LSTM those of forget,
                                                input, output and cell */
    hn_buf norm, norm_bias, cell_norm, cell_norm_bias; /* f32 [I] */
    hn_weight output;                        /* [vocab, H or I] */
    hn_buf output_bias;                      /* f32 [vocab] */
} hn_step;

/* What each of several blocks of multi-token prediction has beside its layer. */
typedef struct hn_head_block {
    hn_weight fc;                               /* [hidden, 2 * hidden] */
    hn_buf token_norm, stream_norm, output_norm; /* f32 [hidden] */
} hn_head_block;

/* What a draft head has beside its layers. */
typedef struct hn_head {
    hn_weight fc; /* [hidden, features * feature_width]; joint: [hidden, hidden + feature_width] */
    hn_buf fc_bias, feature_norm; /* f32 [hidden], [features * feature_width] */
    hn_buf fc_norm[HN_MOST_HEAD_FEATURES]; /* f32 [feature_width] each */
    hn_buf token_norm, stream_norm; /* f32 [hidden]: of HN_INPUT_PAIR; with joint_norms the second [feature_width] */
    hn_weight lstm[2];                     /* [4 * hidden, .] of input, forget, candidate and output gate */
    hn_buf lstm_bias[2], lstm_state_bias[2]; /* f32 [4 * hidden] */
    hn_buf mask;                    /* f32 [features * feature_width], or of mask_pair [2 * hidden], where the description has it */
    hn_buf context_norm, mask_row;  /* f32 [hidden], of a head of blocks */
    hn_weight markov_in, markov_out, markov_mix, confidence; /* [target's tokens, rank], [vocab, rank], of a gate [rank, hidden + rank]
                                       or of a recurrence [3 rank, 2 rank + hidden], [1, hidden or hidden + rank] */
    hn_buf markov_bias, confidence_bias; /* f32 [rank or 3 rank], [1] */
    hn_buf ids;    /* int32 [vocab]: the target's token of each output; mem NULL: the same */
    hn_mem *table; /* owned: ids, and the rows of an output that was trimmed */
    hn_mem *markov_rows; /* owned: the same rows of markov_out */
    int fc_forms, lstm_forms[2];
    hn_step *step;   /* owned: [steps.n], NULL: it has none */
    hn_mem **picked; /* owned: [steps.n] rows of their outputs that were trimmed, NULL: none were */
    hn_head_block further[HN_MOST_HEAD_BLOCKS - 1]; /* of the blocks behind the first */
    hn_buf root_half; /* f32 [feature_width]: 1 / sqrt 2 each, with scale_input */
} hn_head;

/* Where the weights are. */
typedef struct hn_model_bytes {
    uint64_t memory; /* packed matrices, vectors, tables */
    uint64_t stored; /* matrices in the file; of a packed model what they were there */
    uint64_t experts_memory, experts_stored; /* of them those of experts: packed, in the file */
} hn_model_bytes;

typedef struct hn_model {
    hn_arch arch;
    hn_ops ops;
    hn_pool *pool;
    bool owns_pool;
    hn_mem *weights;     /* owned: every matrix and vector */
    hn_weight embedding; /* [vocab, hidden] */
    hn_weight output;    /* [vocab, hidden]; the embedding itself where tied */
    hn_buf output_norm;  /* f32 [hidden] */
    hn_head head;        /* of a draft head */
    hn_rope rope, rope_long, rope_local; /* hn_model_rope chooses among the first two */
    hn_layer *layer; /* [arch.layers] */
    int output_forms;
    uint64_t weight_bytes; /* of matrices that a pass of one row reads, as they lie in memory or in the mapped file */
    uint64_t expert_bytes; /* of them, one expert of one layer (the mean); 0: there are none */
    int expert_layers;     /* that have experts */
    hn_stored *each;       /* owned: where stored experts are; NULL: there are none */
    hn_model_bytes bytes;
    uint64_t parameters;
    double macs_per_row;
    bool has_own_head; /* its file holds a block that drafts (head.h) */
    const hn_source *files; /* that hold its matrices, borrowed; NULL: they are in memory */
} hn_model;

typedef struct hn_model_load {
    int threads;   /* >= 1 */
    hn_pool *pool; /* NULL: a pool of `threads` is made; else borrowed (one pool a process) and threads is ignored */
    hn_isa isa;
    bool f32;
    bool mapped_experts; /* those of experts stay there, as below */
    bool mapped; /* matrices stay in the source's files, which must then stay open as long as the model */
    hunch_progress progress; /* NULL: nobody looks */
    void *progress_user;
} hn_model_load;

/* Reads the description, checks every tensor's shape and type, reads and packs with all threads;
 * or leaves matrices in the mapped file, whose strips are then packed again and again while passes run.
 * Errors: HUNCH_REFUSED naming the tensor, HUNCH_NO_MEMORY. Nothing is left behind on failure. */
hunch_status hn_model_open(hn_model *m, hn_source *src, const hn_model_load *load, hunch_error *err);
void hn_model_close(hn_model *m); /* zeroed is fine */
/* The rotation of layers that are not local, where sequences may reach max_context rows. */
const hn_rope *hn_model_rope(const hn_model *m, int max_context);
/* Marks the tensors that hn_model_open would use (for inspect); *bytes: where they would be, packed (may be NULL). */
hunch_status hn_model_mark(hn_source *src, hn_arch *arch, hn_model_bytes *bytes, hunch_error *err);
#endif
