/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a target's weights, packed for the backend: made once at load, read-only afterwards, shared by all threads.
 * The buffers of a pass: pass.h. */
#ifndef HN_MODEL_H
#define HN_MODEL_H
#include "model/kv_groups.h"
#include "ops/backend.h"

/* The experts of a layer: each weight has `experts` matrices (hn_weight), with the rows of all one after another. */
typedef struct hn_layer_experts {
    hn_router choice;
    hn_weight router, gate, up, down; /* [experts, hidden]; for each expert [width, hidden] twice (strips interleaved), [hidden, width] */
    hn_expert_unit unit;
    hn_norm router_norm, norm, post_dense_norm, post_norm; /* [hidden] each, with HN_FFN_BESIDE */
    hn_buf shared_gate_bias, shared_up_bias, shared_down_bias; /* f32 [shared width] twice, [hidden], if the description has them */
    hn_buf score_bias, down_bias; /* f32 [experts], [experts][hidden], if the description has them */
    hn_weight shared_router, shared_gate, shared_up, shared_down; /* [1, hidden]; as in a dense layer, with the shared width */
    int in_forms, down_forms, shared_forms; /* forms that the inputs of the half, of down and of shared_down must have */
} hn_layer_experts;

typedef struct hn_layer {
    hn_norm attn_norm, ffn_norm;           /* [hidden], of what each half reads; HN_NO_NORM: it reads the stream itself */
    hn_norm post_attn_norm, post_ffn_norm; /* [hidden], of the results, if the description has them */
    hn_buf scale_at; /* f32 [1], if the description has it */
    float scale;     /* the same number, else 1 */
    hn_head_fix heads;          /* biases and norms of q, k, v, if any */
    hn_buf gated_bias;          /* f32 [2*heads*head_dim], instead of q's bias: for each head and its gate, if any */
    hn_buf sinks;               /* f32 [heads], if any */
    hn_buf o_bias, down_bias, gate_bias, up_bias; /* f32 [hidden] twice, [ffn] twice, if the description has them */
    /* [heads*head_dim, hidden], [kv_heads*head_dim, hidden] twice, [hidden, heads*head_dim]. Gated: q has each head and its gate */
    hn_weight q, k, v, o;
    hn_weight g; /* [heads or heads*head_dim, hidden]: their gates, if they have a matrix of their own */
    void *own[HN_LAYER_MIXERS]; /* owned: what its mixers have beside that, known to their files alone; NULL: nothing */
    hn_weight gate, up, down;                       /* [ffn, hidden] twice (strips interleaved), [hidden, ffn] */
    hn_layer_experts experts;                       /* instead of gate, up and down, or beside them */
    /* of a token's own input (width P): [P, hidden], [hidden, P], [hidden] */
    hn_weight input_gate, input_product;
    hn_norm input_norm;
    int input_forms, input_product_forms;
    int attn_forms, o_forms, ffn_forms, down_forms; /* that their inputs must have, HN_ACT_*; attn_forms: that of all mixers */
} hn_layer;

#define HN_STEP_EPS 1e-6f /* of the norms of steps, whatever the model's is */
/* The weights of a draft head for one drafted position (hn_steps_desc); H: hidden, I: inner. */
typedef struct hn_step {
    hn_weight resblock[HN_MOST_STEP_RESBLOCKS];    /* [H, H]; the first of HN_STEP_GROUNDED [H, (step + 2) * H] */
    hn_buf resblock_bias[HN_MOST_STEP_RESBLOCKS];  /* f32 [H] */
    hn_weight residual;                      /* HN_STEP_GROUNDED: as the first resblock */
    hn_buf residual_bias;
    hn_weight embedding;                     /* [tokens, I] */
    /* [I, H], after the first step [I, I]; HN_STEP_SUM has one, LSTM those of forget, input, output and cell */
    hn_weight gate[HN_STEP_GATES];
    hn_norm norm, cell_norm;           /* [I] */
    hn_buf norm_bias, cell_norm_bias; /* f32 [I], added before a GELU */
    hn_weight output;                        /* [vocab, H or I] */
    hn_buf output_bias;                      /* f32 [vocab] */
} hn_step;

/* The weights of each further module of multi-token prediction outside its layer. */
typedef struct hn_head_module {
    hn_weight fc;                               /* [hidden, 2 * hidden] */
    hn_norm token_norm, stream_norm, output_norm; /* [hidden] */
} hn_head_module;

/* The convolutions around a half of a layer of a draft head. */
typedef struct hn_head_conv {
    hn_buf base;       /* f32 [2 sides][taps][hidden] */
    hn_weight product; /* [2 * taps * groups, hidden] */
} hn_head_conv;

/* The weights of a draft head outside its layers. */
typedef struct hn_head {
    hn_weight fc; /* [hidden, features * feature_width]; joint: [hidden, hidden + feature_width] */
    hn_buf fc_bias;       /* f32 [hidden] */
    hn_norm feature_norm; /* [features * feature_width] */
    hn_norm fc_norm[HN_MOST_HEAD_FEATURES]; /* [feature_width] each */
    hn_norm token_norm, stream_norm; /* [hidden]: with a pair; with joint.norms the second is [feature_width] */
    hn_weight lstm[2];                     /* [4 * hidden, .] of input, forget, candidate and output gate */
    hn_buf lstm_bias[2], lstm_state_bias[2]; /* f32 [4 * hidden] */
    hn_buf mask;                    /* f32 [features * feature_width], or with HN_MASK_PAIR [2 * hidden], if the description has it */
    hn_norm context_norm; /* [hidden], in a head of blocks */
    hn_buf mask_row;      /* f32 [hidden], the same */
    /* [target's tokens, rank], [vocab, rank], [rank, hidden + rank] for a gate or [3 rank, 2 rank + hidden] for a
     * recurrence, [1, hidden or hidden + rank] */
    hn_weight markov_in, markov_out, markov_mix, confidence;
    hn_buf markov_bias, confidence_bias; /* f32 [rank or 3 rank], [1] */
    /* of the tokens before a draft: [3 state, hidden], [3 state, state], [width, hidden + state], [vocab, width] */
    hn_weight gru_input, gru_state, bias_in, bias_out;
    hn_weight selector, codes_before, codes_after; /* [rank, hidden], [target's tokens, rank] twice */
    hn_head_conv *conv;  /* owned: [layers][2] around attention and the feed-forward half; NULL: none */
    hn_weight carry;     /* [feature_width, hidden], if the description has it */
    hn_weight centroids; /* [clusters, hidden], if the description has them */
    hn_buf ids;    /* int32 [vocab]: the target's token of each output; mem NULL: the same ids */
    hn_mem *table; /* owned: ids, and the rows of a trimmed output */
    hn_mem *bias_rows; /* owned: the same rows of markov_out or bias_out */
    int fc_forms, lstm_forms[2];
    hn_step *step;   /* owned: [steps.n], NULL: there are none */
    hn_mem **picked; /* owned: [steps.n] rows of trimmed outputs, NULL: none */
    hn_head_module further[HN_MOST_HEAD_MODULES - 1]; /* of the modules after the first */
    hn_norm root_half; /* [feature_width], weights 1 / sqrt 2 each, with scale_input */
} hn_head;

/* Sizes of the weights. */
typedef struct hn_model_bytes {
    uint64_t memory; /* packed matrices, vectors, tables */
    uint64_t stored; /* matrices in the file: those that stay there, or (hn_model_mark) all */
    uint64_t experts_memory, experts_stored; /* the part of experts: packed, in the file; 0 where some cannot stay there */
    uint64_t table; /* of a table whose rows are read from the file, one for each token; beside `stored` */
} hn_model_bytes;

typedef struct hn_model {
    hn_arch arch;
    hn_backend *backend; /* has the weights, and runs the passes */
    hn_pool *pool;       /* of this CPU: loads, verifies, drafts */
    hn_isa isa;          /* its level */
    bool owns_backend, owns_pool;
    hn_mem *weights;     /* owned: every matrix and vector */
    hn_weight embedding; /* [vocab, hidden] */
    /* of inputs that each token has for every layer (widths W in all): [vocab, W], of which a pass reads rows where they lie in the
     * file; [W, hidden]; f32 of one layer's width. Without outputs: there are none */
    hn_weight token_table, token_product;
    hn_norm token_norm;
    int token_forms;
    hn_weight output;    /* [vocab, hidden]; the embedding itself if tied */
    hn_norm output_norm; /* [hidden] */
    hn_buf output_bias;  /* f32 [vocab], if the description has it */
    hn_head head;        /* of a draft head */
    hn_rope rope[HN_MOST_ROTATIONS], rope_long[HN_MOST_ROTATIONS]; /* of each rotation; hn_model_rope chooses between them */
    hn_layer *layer; /* [arch.layers] */
    struct hn_model_split *split; /* owned: the part of it that this rank has (split.h); NULL: it is whole */
    uint32_t told_id;             /* of a draft model that ranks have too: the leader's number of it; 0: the target, or none has it */
    hn_layers run;   /* what passes run: the file's arch.layer, or what is set in its place before hn_model_choose_forms */
    bool recurrent;  /* some layer of these keeps a state */
    int output_forms;
    int sorted_width;      /* the most inputs of a matrix that has them in an order of its own; 0: none has */
    uint64_t weight_bytes; /* bytes of matrices that a pass of one row reads, in memory or in the mapped file */
    uint64_t expert_bytes; /* of one expert of one layer (the mean); 0: there are none */
    int expert_layers;     /* number of layers with experts */
    hn_stored *each;       /* owned: places of experts that stay in the file; NULL: there are none */
    float *factors;        /* owned: those of matrices that stay in the file; NULL: there are none */
    hn_model_bytes bytes;
    uint64_t parameters;
    double macs_per_row;
    bool has_own_head; /* its file has a draft block (head.h) */
    const hn_source *files; /* borrowed: files that hold its matrices; NULL: they are in memory */
} hn_model;

typedef struct hn_model_load {
    int threads;   /* >= 1 */
    hn_pool *pool; /* NULL: a pool of `threads` is created; else borrowed (one pool per process), and threads is ignored */
    hn_account *account; /* of its memory; NULL: that of `like`, or none */
    hn_backend *backend; /* that of a device, which belongs to the model also if it cannot be opened; NULL: */
    hn_link *link;    /* to the ranks that open it together with this one: the CPU at level `isa`; NULL: it is alone */
    uint32_t told_id; /* the same: hn_model.told_id */
    hn_backend *like; /* another model's, which the weights are for too, but for its precision; NULL: the CPU at level `isa` */
    hn_isa isa;
    bool f32;
    bool mapped_experts; /* matrices of experts stay in the file, as below */
    bool mapped; /* matrices stay in the source's files, which must then stay open as long as the model */
    hunch_progress progress; /* NULL: not reported */
    void *progress_user;
} hn_model_load;

/* Reads the description, checks every tensor's shape and type, reads and packs with all threads; or leaves matrices in
 * the mapped file, whose strips are then packed in every pass. Errors: HUNCH_REFUSED naming the tensor,
 * HUNCH_NO_MEMORY. On failure nothing is allocated. */
hunch_status hn_model_open(hn_model *m, hn_source *src, const hn_model_load *load, hunch_error *err);
void hn_model_close(hn_model *m); /* zeroed is fine */
void hn_layers_free(hn_model *m); /* weights of its layers */
/* Rotation number `rotation` of the description, if sequences may reach max_context rows. */
const hn_rope *hn_model_rope(const hn_model *m, int rotation, int max_context);
/* HUNCH_REFUSED if passes of the model need an operation that its backend lacks (lacks.c). */
hunch_status hn_model_refuse(const hn_model *m, const char *path, const char *what, hunch_error *err); /* what: it needs */
hunch_status hn_model_check_operations(const hn_model *m, const hn_source *src, hunch_error *err);
/* Bytes of one of its matrices when packed. */
static inline uint64_t hn_packed_bytes(const hn_model *m, const hn_weight *w) {
    return m->backend->matrix_bytes(m->backend, w->dtype, w->out, w->in);
}
/* Marks the tensors that hn_model_open would use (for inspect); *bytes: their sizes when packed (may be NULL). */
hunch_status hn_model_mark(hn_source *src, hn_arch *arch, hn_model_bytes *bytes, hunch_error *err);
#endif
