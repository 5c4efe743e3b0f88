/* SPDX-License-Identifier: Apache-2.0 */
/* arch.h - the description of a model as checked data: its sizes, its layers (layer_desc.h), the stages around them if it is a draft head
 * (head_desc.h), and how its files name all this. One small file per architecture (arch_llama.c, arch_qwen.c) maps a file's keys and
 * tensor names to it; layer code (layer_*.c) is written once against it. */
#ifndef HN_ARCH_H
#define HN_ARCH_H
#include "format/gguf_writer.h"
#include "format/source.h"
#include "model/arch/head_desc.h"
#include "model/arch/layer_desc.h"
#include "ops/ops.h"
#include "schema/key_rows.h"

/* Tensors by their role; rows of roles.c and of the kinds of mixers have the properties of each. */
enum { HN_MIXER_TENSORS = 16 }; /* numbers of roles that a kind of mixers has */
typedef enum hn_role {
    HN_ROLE_EMBEDDING,
    HN_ROLE_TOKEN_TABLE, /* inputs of each token for all layers, side by side */
    HN_ROLE_TOKEN_PRODUCT, /* what the embedding adds to them */
    HN_ROLE_TOKEN_NORM,
    HN_ROLE_OUTPUT_NORM,
    HN_ROLE_OUTPUT,
    HN_ROLE_OUTPUT_NORM_BIAS,
    HN_ROLE_OUTPUT_BIAS,
    HN_ROLE_ATTN_NORM,
    HN_ROLE_ATTN_NORM_BIAS,
    HN_ROLE_Q,
    HN_ROLE_K,
    HN_ROLE_V,
    HN_ROLE_O,
    HN_ROLE_FFN_NORM,
    HN_ROLE_FFN_NORM_BIAS,
    HN_ROLE_GATE,
    HN_ROLE_UP,
    HN_ROLE_DOWN,
    /* if the description has them */
    HN_ROLE_Q_BIAS,
    HN_ROLE_K_BIAS,
    HN_ROLE_V_BIAS,
    HN_ROLE_QKV_BIAS, /* instead of the three if their matrices are one */
    HN_ROLE_O_BIAS,
    HN_ROLE_GATE_BIAS,
    HN_ROLE_UP_BIAS,
    HN_ROLE_DOWN_BIAS,
    HN_ROLE_Q_NORM,
    HN_ROLE_K_NORM,
    HN_ROLE_SINKS,
    HN_ROLE_HEADS_GATE, /* of heads' results, if it has a matrix of its own */
    HN_ROLE_PRE_FFN_NORM, /* in place of ffn_norm if the outputs of branches are normed too */
    HN_ROLE_POST_ATTN_NORM,
    HN_ROLE_POST_FFN_NORM,
    HN_ROLE_QKV,     /* instead of q, k and v: their rows one after another */
    HN_ROLE_GATE_UP, /* instead of gate and up */
    HN_ROLE_HYBRID_FFN_NORM,
    /* of a token's own input for the layer, and the number that its result is multiplied by */
    HN_ROLE_INPUT_GATE,
    HN_ROLE_INPUT_PRODUCT,
    HN_ROLE_INPUT_NORM,
    HN_ROLE_LAYER_SCALE,
    HN_ROLES_OF_MIXERS, /* of kinds of mixers, those that are theirs alone (HN_ROLE_OF) */
    /* layers of experts, instead of gate, up and down; tensors of experts hold one matrix for each */
    HN_ROLE_ROUTER = HN_ROLES_OF_MIXERS + HN_MIXER_KINDS * HN_MIXER_TENSORS,
    HN_ROLE_ROUTER_BIAS, /* for the choice alone */
    HN_ROLE_SCORE_BIAS,  /* of the router's product */
    HN_ROLE_EXPERT_GATE,
    HN_ROLE_EXPERT_UP,
    HN_ROLE_EXPERT_GATE_UP, /* instead of both if experts are stacked */
    HN_ROLE_EXPERT_DOWN,
    HN_ROLE_EXPERT_GATE_BIAS,
    HN_ROLE_EXPERT_UP_BIAS,
    HN_ROLE_EXPERT_GATE_UP_BIAS, /* instead of both if experts are stacked */
    HN_ROLE_EXPERT_DOWN_BIAS,
    /* with experts beside a dense half: the router's norm, a factor of each expert's weight; norms before the experts and after each
     * half */
    HN_ROLE_ROUTER_SCALE,
    HN_ROLE_EXPERT_SCALE,
    HN_ROLE_PRE_EXPERTS_NORM,
    HN_ROLE_POST_DENSE_NORM,
    HN_ROLE_POST_EXPERTS_NORM,
    HN_ROLE_SHARED_ROUTER,
    HN_ROLE_SHARED_GATE,
    HN_ROLE_SHARED_UP,
    HN_ROLE_SHARED_DOWN,
    HN_ROLE_SHARED_GATE_UP, /* instead of gate and up */
    HN_ROLE_SHARED_GATE_BIAS,
    HN_ROLE_SHARED_UP_BIAS,
    HN_ROLE_SHARED_DOWN_BIAS,
    /* of a draft head outside its layers */
    HN_ROLES_OF_MODELS, /* so many, of models and their layers */
    HN_HEAD_FC = HN_ROLES_OF_MODELS,
    HN_HEAD_FC_BIAS,
    HN_HEAD_FEATURE_NORM, /* of the whole feature, before fc */
    HN_HEAD_STATE_NORM,   /* of one of its states */
    HN_HEAD_TOKEN_NORM,   /* of the embedding */
    HN_HEAD_STREAM_NORM,  /* of the other half of the input, beside the embedding */
    HN_HEAD_OUTPUT_NORM,
    HN_HEAD_CARRY,        /* from the normed stream to what the next row reads */
    HN_HEAD_MASK,         /* the feature of rows without one */
    HN_HEAD_MASK_PAIR,    /* input of the first layer in rows without token and feature */
    HN_HEAD_CONTEXT_NORM, /* after fc, in a head of blocks */
    HN_HEAD_MASK_ROW,     /* instead of a mask's embedding */
    HN_HEAD_MARKOV_IN,    /* and the other tensors after a block (pass_markov.c) */
    HN_HEAD_MARKOV_OUT,
    HN_HEAD_MARKOV_GATE,
    HN_HEAD_MARKOV_GATE_BIAS,
    HN_HEAD_MARKOV_STEP,
    HN_HEAD_MARKOV_STEP_BIAS,
    HN_HEAD_CONFIDENCE,
    HN_HEAD_CONFIDENCE_BIAS,
    HN_HEAD_CONV_BASE,    /* of the layer whose number is given: around attention, and the feed-forward half (layer_conv.c) */
    HN_HEAD_CONV_PRODUCT,
    HN_HEAD_FFN_CONV_BASE,
    HN_HEAD_FFN_CONV_PRODUCT,
    HN_HEAD_SELECTOR,     /* from a row, and of the tokens before and after, to what are multiplied (pass_selector.c) */
    HN_HEAD_CODES_BEFORE,
    HN_HEAD_CODES_AFTER,
    HN_HEAD_GRU_INPUT,    /* gates of a recurrence over tokens: reset, update, new (pass_prefix.c) */
    HN_HEAD_GRU_STATE,
    HN_HEAD_BIAS_IN,      /* from a row and that state to the bias of its outputs */
    HN_HEAD_BIAS_OUT,
    HN_HEAD_LSTM_1,       /* gates of the two layers: input, forget, candidate, output */
    HN_HEAD_LSTM_2,
    HN_HEAD_LSTM_BIAS_1,
    HN_HEAD_LSTM_BIAS_2,
    HN_HEAD_LSTM_STATE_BIAS_1, /* bias of the recurrent product, whose state is zero */
    HN_HEAD_LSTM_STATE_BIAS_2,
    HN_HEAD_EMBEDDING,
    HN_HEAD_OUTPUT,
    HN_HEAD_IDS,          /* d2t */
    HN_HEAD_CENTROIDS,    /* of the output's clusters (head_clusters.c) */
    HN_HEAD_ORDER,        /* the outputs, cluster after cluster */
    /* of its weights for one drafted position */
    HN_ROLES_OF_STEPS,
    HN_STEP_RESBLOCK = HN_ROLES_OF_STEPS,
    HN_STEP_RESBLOCK_BIAS,
    HN_STEP_RESIDUAL,
    HN_STEP_RESIDUAL_BIAS,
    HN_STEP_PROJECTION,
    HN_STEP_GATE_FORGET, /* the gates of a cell, in this order also if they are one matrix */
    HN_STEP_GATE_INPUT,
    HN_STEP_GATE_OUTPUT,
    HN_STEP_GATE_CELL,
    HN_STEP_GATES_FUSED,
    HN_STEP_EMBEDDING,
    HN_STEP_NORM,
    HN_STEP_NORM_BIAS,
    HN_STEP_CELL_NORM,
    HN_STEP_CELL_NORM_BIAS,
    HN_STEP_OUTPUT,
    HN_STEP_OUTPUT_BIAS,
    HN_ROLES
} hn_role;
#define HN_ROLE_OF(mixer, k) ((hn_role)(HN_ROLES_OF_MIXERS + HN_MIXER_##mixer * HN_MIXER_TENSORS + (k)))
static inline bool hn_role_of_steps(hn_role role) { return role >= HN_STEP_RESBLOCK; }
/* One tensor. k: its layer, step or module, or the state of a head's norm; block: the number of a step's residual block. */
typedef struct hn_tensor_id {
    hn_role role;
    int k, block;
} hn_tensor_id;

/* A tensor name that a family uses instead of the usual one; %d is the layer, then the expert. */
typedef struct hn_role_other {
    hn_role role;
    const char *gguf, *folder, *stacked; /* stacked: in a folder whose experts are. NULL: the usual one */
} hn_role_other;

struct hn_arch;
/* A family: one architecture's rows, beside those of all families (arch_base.c), and what it computes from them. */
typedef struct hn_family {
    const char *gguf_name, *hf_type;  /* general.architecture, which keys begin with too; config.json model_type */
    const hn_key_row *keys[8];        /* lists, each before those that may replace its rows; NULL: there are no more */
    const char *unread;               /* of tensors that nothing reads: beginnings of a folder's names, and + for layers behind the last */
    const hn_role_other *names;       /* ends with a role HN_ROLES; NULL: all are the usual ones */
    bool pairs;                       /* Q and K rows are rotated in neighbouring pairs in a GGUF, in halves in a folder */
    bool folder_pairs;                /* in a folder too */
    bool own_rotations;               /* `finish` adds them */
    /* The family of a file, of several that have this name. NULL: there is one. */
    hunch_status (*which)(const struct hn_family **f, const hn_source *src, hunch_error *err);
    /* The shape of heads, after the rows and before the layers. NULL: hn_family_heads. */
    hunch_status (*heads)(struct hn_arch *a, hn_layer_desc *l, const hn_source *src, hunch_error *err);
    /* What else follows, after all other members are set. NULL: nothing. */
    hunch_status (*finish)(struct hn_arch *a, hn_source *src, hunch_error *err);
} hn_family;

/* How a file lays out the tensors of a head with weights for each position. */
typedef struct hn_step_layout {
    int resblocks;                       /* of each position */
    int first_resblock, resblock_stride; /* number of the first one in names, and distance to the next; 0: 1 */
    bool inside;                         /* names have another 0 or 1 inside, from a list of modules */
    bool fused_gates;                    /* the projections of a cell's four gates are one matrix */
} hn_step_layout;

/* How the file that a description was read from names and stores its tensors. Loading and converting read it, mostly through
 * hn_arch_tensor_name, hn_arch_find_tensor, hn_arch_matrices and hn_arch_vector_more; passes and operations never do. */
typedef struct hn_arch_files {
    hn_source_kind form;     /* determines the names of tensors */
    const char *body, *head; /* prefixes of a folder's names, instead of "model." and before the others; NULL: as they are */
    int first_block;         /* added to the layer numbers in names */
    const char *first_layer; /* prefix instead of "layers.0."; NULL: none */
    const char *const *layer_names; /* [HN_ROLES] names of a folder's layer tensors, %d is the layer; NULL: the usual ones */
    bool rows_in_pairs;  /* Q and K rows are in pairs; they are packed in halves, so rope_interleaved is false */
    bool norms_less_one; /* norm weights are stored less 1 */
    bool shared_modules; /* modules of multi-token prediction have one projection and its norms for all */
    int next_layers;     /* GGUF: blocks after the model's layers, of a draft head */
    const struct hn_head_form *head_form; /* of a draft head (head/head.h); NULL: it is none */
    hn_step_layout steps;
    /* what keys say that layers show: experts that all rows share; the first layer with experts, and every how many has them; a GGUF's
     * function of scores; a folder's method of choosing; width of a head's values; the part of a head that is rotated; what logits are
     * divided by */
    int shared_experts, first_experts, sparse_step, gating, choice, value_dim;
    double rotated, logit_divisor;
    /* how a GGUF tells YaRN: its bounds are not rounded; mscale_all_dim scales the scores of attention, and it has a tenth of that */
    bool yarn_exact, yarn_scores;
    bool yarn_amplitude; /* its yarn_attn_factor is the amplitude of cos and sin, whatever the factor is */
    bool dims_twice; /* its rope.dimension_count is twice the number of rotated dims of layers with full attention */
    int usual_scaling; /* HN_SCALING_..., of a factor without a type */
    bool gate_up_apart; /* a GGUF has gate and up of dense halves apart, though a folder has them as one */
} hn_arch_files;

typedef struct hn_arch {
    char architecture[32];
    char name[128];
    int layers, hidden, vocab, context;
    float norm_eps, embed_scale;
    hn_norm_kind norms; /* of all norms; HN_NO_NORM: HN_RMS_NORM */
    bool norm_biases;   /* those of the stream have biases */
    float residual_scale, logit_scale; /* factors of every branch's output and of the logits */
    float logit_cap;                   /* logits are cap * tanh(logits / cap); 0: they are not capped */
    bool tied;            /* the output matrix is the embedding */
    bool output_bias;     /* logits have biases, before they are scaled */
    hn_layer_desc *layer; /* [layers] */
    int rotations;        /* number of different rotations; the first is that of layers with full attention */
    hn_rotation rotation[HN_MOST_ROTATIONS];
    bool rope_interleaved; /* rotated dims are in neighbouring pairs, else in halves */
    const hn_family *family;
    hn_arch_files files;
    hn_head_desc draft_head;  /* zeroed for targets */
    hunch_sampling sampling;  /* the file's defaults, else temperature 0 */
} hn_arch;

static inline bool hn_arch_is_head(const hn_arch *a) { return a->draft_head.input.stream != HN_STREAM_TOKEN; }
static inline hn_norm_kind hn_arch_norms(const hn_arch *a) { return a->norms ? a->norms : HN_RMS_NORM; }
/* The number of logits of a row. */
static inline int hn_arch_logits(const hn_arch *a) {
    const hn_output_stage *o = &a->draft_head.output;
    return o->kind == HN_OUTPUT_CLUSTERS ? o->clusters.used * (a->vocab / o->clusters.n) : a->vocab;
}
/* The width of a token's embedding: the target's, if a head reads it as wide as that is. */
static inline int hn_arch_token_width(const hn_arch *a) {
    const hn_input_stage *in = &a->draft_head.input;
    return in->stream == HN_STREAM_JOINT && in->joint.scaled ? in->feature_width : a->hidden;
}
/* The number of a head's modules that draft in turn, each a layer; 1: there is one. */
static inline int hn_arch_modules(const hn_arch *a) { return a->draft_head.rows.kind == HN_ROWS_TURNS ? a->layers : 1; }

/* Finds the architecture and describes it. Unknown: HUNCH_REFUSED, naming it and the known ones. */
hunch_status hn_arch_read(hn_arch *a, hn_source *src, hunch_error *err);
/* The family alone; errors as above. */
hunch_status hn_arch_find_family(const hn_source *src, const hn_family **family, hunch_error *err);
void hn_arch_fini(hn_arch *a);
/* The tensor of a role: its name, whether a model of this description has it, its shape in ggml's order (inputs,
 * outputs; a vector has outputs 1), what is added to a vector's stored values. layer: 0 if the role has none. */
void hn_arch_tensor_name(const hn_arch *a, hn_role role, int layer, char out[128]);
/* The name of one expert's tensor, if each has its own (hn_arch_matrices is 1). */
void hn_arch_expert_name(const hn_arch *a, hn_role role, int layer, int expert, char out[128]);
/* Number of matrices in one tensor of a role, its third dimension: that of the experts or heads, or 1. */
int hn_arch_matrices(const hn_arch *a, hn_role role, int layer);
bool hn_arch_has(const hn_arch *a, hn_role role, int layer);
/* Whether it is one that files may have of layers that read the keys and values of others; no model reads it. */
bool hn_arch_is_unread(const hn_arch *a, const char *name);
/* The file's tensor of that name, as hn_source_find; NULL: there is none. */
const hn_tensor *hn_arch_find_tensor(const hn_arch *a, const hn_source *src, hn_role role, int layer);
void hn_arch_tensor_shape(const hn_arch *a, hn_role role, int layer, uint64_t dims[2]);
void hn_arch_shape(const hn_arch *a, hn_tensor_id t, uint64_t dims[2]);   /* the same */
int hn_arch_dims(const hn_arch *a, hn_tensor_id t, uint64_t dims[3]); /* those in a GGUF; returns their number */
/* Iterates over all tensors of a model or a head outside its layers; begin with {0, -1, 0}. Tensors that steps share are listed once, as
 * those of the first step. */
bool hn_arch_next(const hn_arch *a, hn_tensor_id *t);
/* The name of any tensor in the file that the description was read from; NULL: a head's form has none. */
const char *hn_arch_name(const hn_arch *a, hn_tensor_id t, char out[128]);
/* Whether a GGUF has a vector as a matrix, and its shape. */
bool hn_arch_vector_across(const hn_arch *a, hn_tensor_id t, uint64_t dims[2]);
float hn_arch_vector_more(const hn_arch *a, hn_role role);
float hn_arch_vector_times(const hn_arch *a, hn_tensor_id t); /* the factor of its stored values */
/* The factor of a branch's result: `own` is a mixer's, or that of the feed-forward part. */
static inline float hn_branch_times(const hn_arch *a, float own) { return a->residual_scale * (own != 0 ? own : 1); }
bool hn_layer_attends(const hn_layer_desc *l); /* some mixer stores keys */
/* Properties of a role in every model (roles.c). */
bool hn_role_exists(hn_role role); /* of mixers some numbers have no tensor */
const char *hn_role_name(hn_role role, hn_source_kind form); /* the usual name; %d in it is the layer, then the expert */
const char *hn_role_stacked_name(hn_role role); /* in a folder whose experts are stacked; NULL: the role has none */
const char *hn_role_single_name(hn_role role);  /* in a GGUF with a tensor for each expert; NULL: the role has none */
/* How a vector's values are computed from the tensor's. */
typedef enum hn_change {
    HN_CHANGE_NONE,
    HN_CHANGE_DECAY, /* -e^x of a folder's value; a GGUF has the result */
    HN_CHANGE_TAPS   /* [channels][taps], in a folder [channels][1][taps]: its columns one after another */
} hn_change;
hn_change hn_role_change(hn_role role);
typedef enum hn_role_kind {
    HN_IS_MATRIX,
    HN_IS_OF_EXPERTS,     /* a matrix for each expert of a layer */
    HN_IS_OF_HEADS,       /* a matrix for each head of a layer, all in one tensor */
    HN_IS_TABLE,          /* its rows are read where they lie in the file */
    HN_IS_NORM,           /* vectors from here on: weights of a norm (hn_norm) */
    HN_IS_STORED_NORM,    /* the same, never stored less 1 */
    HN_IS_BIAS,
    HN_IS_VECTOR,         /* as stored */
    HN_IS_CONVOLUTION,
    HN_IS_SIDES,          /* constant coefficients of a head's convolutions, 3 dimensions */
    HN_IS_EXPERT_VECTORS, /* a vector for each expert, all in one tensor */
    HN_IS_LIST            /* of whole numbers */
} hn_role_kind;
hn_role_kind hn_role_kind_of(hn_role role);
bool hn_role_is_vector(hn_role role);
bool hn_role_is_paired(hn_role role);           /* products read it together with the one before it */
const hn_role *hn_role_parts(hn_role role);     /* up to 4, then 0, whose rows it has one after another; NULL: it has its own */
struct hn_model;
void *hn_tensor_place(struct hn_model *m, hn_tensor_id t); /* where it is loaded to, an hn_weight or an hn_buf; NULL: elsewhere */
bool hn_role_of_layer(hn_role role);                         /* each layer has its own */
bool hn_role_is_rotated(hn_role role);                            /* its rows, or its values for each head, are rotated */
bool hn_role_ends_branch(hn_role role);                      /* a bias of a branch's output */
hn_phase hn_role_phase(hn_role role);                        /* phase of the matrix's product */

/* The row of a head in a file that has its `dims` rotated rows in neighbouring pairs (2i and 2i + 1), given the row in
 * halves (i and i + dims / 2 together). */
static inline int hn_paired_row(int row, int dims) {
    return row >= dims ? row : row < dims / 2 ? 2 * row : 2 * (row - dims / 2) + 1;
}

/* The list of families, in the order in which messages name them; two that share a GGUF architecture are side by side, and the first of
 * them reads it. FAMILY(NAME) is hn_family_NAME, which an arch_*.c defines. */
#define HN_FAMILIES(FAMILY)                                                                                                           \
    FAMILY(llama) FAMILY(mistral) FAMILY(mixtral) FAMILY(smollm3) FAMILY(qwen2) FAMILY(qwen2_moe) FAMILY(qwen3)                       \
    FAMILY(qwen3_moe) FAMILY(granite) FAMILY(seed_oss) FAMILY(gemma3) FAMILY(phi3) FAMILY(qwen35) FAMILY(qwen35_text)                 \
    FAMILY(qwen35_moe) FAMILY(qwen35_moe_text) FAMILY(ernie4_5) FAMILY(ernie4_5_moe) FAMILY(exaone_moe) FAMILY(minimax_m2)            \
    FAMILY(glm4) FAMILY(hunyuan_v1_dense) FAMILY(hunyuan_v1_moe) FAMILY(hy_v3) FAMILY(olmo3) FAMILY(olmo2) FAMILY(exaone4)            \
    FAMILY(ministral3) FAMILY(afmoe) FAMILY(laguna) FAMILY(step3p5) FAMILY(step3p7) FAMILY(mimo_v2_flash) FAMILY(qwen3_next)          \
    FAMILY(glm4_moe) FAMILY(gpt_oss) FAMILY(gemma4) FAMILY(gemma4_text) FAMILY(gemma4_unified) FAMILY(gemma4_unified_text)            \
    FAMILY(deepseek_v2) FAMILY(deepseek_v3) FAMILY(kimi_k2) FAMILY(glm4_moe_lite) FAMILY(lfm2) FAMILY(lfm2_moe) FAMILY(mamba2)         \
    FAMILY(granitemoehybrid) FAMILY(bamba)
#define HN_FAMILY_DECLARED(NAME) extern const hn_family hn_family_##NAME;
HN_FAMILIES(HN_FAMILY_DECLARED)
extern const hn_key_row hn_attention_bias_keys[], hn_mlp_bias_keys[]; /* a folder's keys that add biases */
extern const hn_key_row hn_norms_of_heads[];                          /* heads of q and k are normed */
extern const hn_key_row hn_slides[];                                  /* use_sliding_window: `finish` selects the layers */
extern const hn_key_row hn_granite_multipliers[];                     /* Granite's four; `finish`: */
hunch_status hn_granite_divide_logits(struct hn_arch *a, hn_source *src, hunch_error *err);
extern const hn_key_row hn_next_layers[];                             /* the last blocks of a GGUF may belong to a draft head */
/* Experts (arch_moe.c), of all families; in place of some of these rows: DeepSeek's, with sigmoids; Qwen's; shares are normalised. */
extern const hn_key_row hn_moe_keys[], hn_moe_of_deepseek[], hn_moe_of_v3[], hn_moe_of_qwen[], hn_moe_normalised[];

#define HN_LAYER(TYPE, field) .of = HN_OF_LAYER, .at = offsetof(hn_layer_desc, field), .type = HN_KEY_##TYPE
/* Of mixer k of the layer, whose numbers are a struct `desc`. */
#define HN_MIXER(TYPE, k, desc, field) \
    .of = HN_OF_LAYER, .at = offsetof(hn_layer_desc, mixer[k].own) + offsetof(desc, field), .type = HN_KEY_##TYPE
#define HN_MODEL(TYPE, field) .of = HN_OF_MODEL, .at = offsetof(hn_arch, field), .type = HN_KEY_##TYPE
#define HN_BESIDE(TYPE) .of = HN_OF_NOTHING, .at = 0, .type = HN_KEY_##TYPE /* checked, or written, alone */
/* Rows of all families, with another usual value. */
#define HN_THETA(value) {HN_MODEL(REAL, rotation[0].scaling.theta), "rope.freq_base", "rope_parameters.full_attention.rope_theta " \
                         "rope_parameters.rope_theta rope_theta", 1, 1e12, {value, value}}
#define HN_EPS(gguf, folder) {HN_MODEL(FLOAT, norm_eps), "attention.layer_norm_rms_epsilon", "rms_norm_eps", 0, 1, {gguf, folder}, \
                              HN_NOT_NULL}
#define HN_NORMALISED(gguf, folder) {HN_LAYER(BOOL, experts.normalised), "expert_weights_norm norm_top_k_prob", "norm_topk_prob", 0, 1, \
                                     {gguf, folder}, .written = hn_unusual_choice}
#define HN_CONTEXT(folder) {HN_MODEL(INT, context), "context_length", "max_position_embeddings", 1, 1 << 24, {NAN, folder}, HN_NOT_NULL}
#define HN_TIED(folder) {HN_MODEL(BOOL, tied), NULL, "tie_word_embeddings", 0, 1, {0, folder}, HN_NOT_NULL}
#define HN_HEAD_DIM(folder) {HN_LAYER(INT, head_dim), "attention.key_length", "head_dim", 2, 512, {0, folder}, .read = hn_read_head_dim, \
                             .written = hn_unusual_heads} /* of an absent key; null: hidden / heads */
#define HN_KV_HEADS(folder) {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, {0, folder}, \
                             .read = hn_read_usual_kv_heads} /* of an absent key; null: as many as heads */
#define HN_ROTATED(folder) {HN_MODEL(REAL, files.rotated), .usual = {1, folder}, .read = hn_read_rotated}
/* A family's row about experts; names of a folder's shared experts, and of Mixtral's. */
#define HN_EXPERTS(names, folder) {HN_LAYER(INT, experts.count), "expert_count", names, 1, HN_MAX_EXPERTS, {NAN, folder}}
#define HN_USED(names, folder) {HN_LAYER(INT, experts.used), "expert_used_count", names, 1, HN_MAX_USED, {NAN, folder}}
#define HN_SHARED(names, folder) {HN_MODEL(INT, files.shared_experts), "expert_shared_count", names, 0, HN_MAX_EXPERTS, {0, folder}, \
                                  .written = hn_moe_shared_count}
/* What shows biases of gate, up and down if the first layer is dense, or shares an expert. */
#define HN_GATE_BIAS "?blk.0.ffn_gate.bias ?blk.0.ffn_gate_shexp.bias"
#define HN_DOWN_BIAS "?blk.0.ffn_down.bias ?blk.0.ffn_down_shexp.bias"
#define HN_SHARED_BIAS(folder) {HN_LAYER(BOOL, experts.shared_bias), HN_GATE_BIAS, folder, 0, 1}
#define HN_SHARED_NAME(role, part, name) {HN_ROLE_SHARED_##role, NULL, "model.layers.%d." part name, NULL}
#define HN_SHARED_NAMES(part) HN_SHARED_NAME(GATE, part, ".gate_proj.weight"), HN_SHARED_NAME(GATE_BIAS, part, ".gate_proj.bias"), \
                              HN_SHARED_NAME(UP, part, ".up_proj.weight"), HN_SHARED_NAME(UP_BIAS, part, ".up_proj.bias"), \
                              HN_SHARED_NAME(DOWN, part, ".down_proj.weight"), HN_SHARED_NAME(DOWN_BIAS, part, ".down_proj.bias")
#define HN_MIXTRAL_NAMES {HN_ROLE_ROUTER, NULL, "model.layers.%d.block_sparse_moe.gate.weight", NULL}, \
                         {HN_ROLE_EXPERT_GATE, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w1.weight", NULL}, \
                         {HN_ROLE_EXPERT_UP, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w3.weight", NULL}, \
                         {HN_ROLE_EXPERT_DOWN, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w2.weight", NULL}
#define HN_NAMES_END {HN_ROLES, NULL, NULL, NULL}
/* Windows of some layers (null: none), which turn by a rotation of their own; neither half reads a norm, and what they add is normed. */
#define HN_PATTERN "attention.sliding_window_pattern"
#define HN_WINDOW(folder) {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, {0, folder}, HN_ZERO_IS_NONE, \
                           .read = hn_read_window, .written = hn_any_window}
#define HN_SLIDING_THETA {HN_MODEL(REAL, rotation[1].scaling.theta), "rope.freq_base_swa", .how = HN_LATER, .written = hn_slides_otherwise}
#define HN_SLIDING_DIMS {HN_MODEL(INT, rotation[1].dims), "rope.dimension_count_swa", .how = HN_LATER, .written = hn_slides_otherwise}
#define HN_POST_NORMED HN_ALWAYS(HN_LAYER(BOOL, post_norms), 1), HN_ALWAYS(HN_LAYER(INT, input), HN_INPUT_PLAIN), \
                       HN_ALWAYS(HN_LAYER(INT, ffn_input), HN_INPUT_PLAIN)
#define HN_ALWAYS(field, value) {field, NULL, NULL, 0, 0, {value, value}} /* of HN_LAYER or HN_MODEL */
#define HN_ROWS_END {.type = HN_KEY_END}

hn_file_keys hn_family_keys(const hn_family *f);
bool hn_family_drafts(const hn_family *f); /* the last blocks of its files may belong to a draft head */
bool hn_family_has(const hn_family *f, size_t layer_field); /* whether its rows give this field of a layer */
/* A key of the family: "llama.block_count" for the suffix "block_count". */
void hn_family_key(const hn_family *f, const char *suffix, char out[96]);
hunch_status hn_family_read(hn_arch *a, hn_source *src, const hn_family *family, hunch_error *err);
/* The layers only, all of one kind: sizes, heads, rotation; no vocabularies, and only the family's biases and norms. */
hunch_status hn_family_read_layers(hn_arch *a, hn_source *src, const hn_family *family, hunch_error *err);
/* Writes the keys of a GGUF. */
hunch_status hn_family_write(const hn_arch *a, hn_gguf_writer *w, hunch_error *err);
/* Heads of grouped queries. */
hunch_status hn_family_heads(hn_arch *a, hn_layer_desc *l, const hn_source *src, hunch_error *err);
/* In a folder: sliding_window if use_sliding_window is on, else 0. */
hunch_status hn_family_sliding(const hn_source *src, int *window, hunch_error *err);
double hn_usual_value_dim(const hn_arch *a, const hn_layer_desc *l);
double hn_scale_of_heads(const hn_arch *a, const hn_layer_desc *l); /* `follows`: 1 / sqrt(head size) */
hunch_status hn_read_head_dim(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err);
hunch_status hn_read_usual_kv_heads(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err);
hunch_status hn_read_window(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err);
hunch_status hn_read_rotated(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err);
hunch_status hn_read_kv_heads(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err);
hunch_status hn_read_gate_up(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err);
bool hn_unusual_heads(const hn_arch *a, const hn_key_row *k, double *v); /* `written`: sizes that do not follow from the width */
bool hn_any_window(const hn_arch *a, const hn_key_row *k, double *window); /* `written`: one of the windows */
int hn_layer_slides(const hn_layer_desc *l); /* has a window */
bool hn_slides_otherwise(const hn_arch *a, const hn_key_row *k, double *v); /* `written`: there is a rotation of layers with a window */
/* A folder's key that has a number, or a list of one for each layer: these numbers, of the absent key or null its usual one. */
enum { HN_MOST_LAYERS = 1024 };
hunch_status hn_family_numbers(const hn_arch *a, const hn_source *src, const hn_key *key, bool whole, double each[HN_MOST_LAYERS],
                               hunch_error *err);
/* Which layers have no key heads in a GGUF that lists how many each has: second. */
hunch_status hn_family_headless(hn_arch *a, const hn_source *src, void (*set)(hn_layer_desc *l, bool second), hunch_error *err);
/* Which layers a folder's list of their numbers names, or a text that has commas between them; found: there is one. No number may be above
 * most, which is below HN_MOST_LAYERS. */
hunch_status hn_family_listed(const hn_source *src, const char *path, int most, bool listed[HN_MOST_LAYERS], bool *found, hunch_error *err);
/* A folder's part of a head that turns in layers of a kind, beside the other numbers of its rotation. */
hunch_status hn_family_part(const hn_source *src, bool slides, double usual, double *part, hunch_error *err);
/* hn_rope_read for a family with own_rotations. */
hunch_status hn_family_rotation(hn_arch *a, hn_source *src, int dims, double theta, hunch_error *err);
hunch_status hn_family_check_heads(const hn_arch *a, const hn_source *src, hunch_error *err); /* that those of all layers share key heads */
/* `finish`: windows as long as the context are none. */
hunch_status hn_family_short_windows(hn_arch *a, hn_source *src, hunch_error *err);
/* In a GGUF: the layers that the list of flags marks get this window, the others none. */
hunch_status hn_family_listed_windows(hn_arch *a, const hn_source *src, const hn_array *list, int window, hunch_error *err);
/* If config.json has layer_types: gives the sliding layers this window and the others none, and sets *found. */
hunch_status hn_family_layer_types(hn_arch *a, const hn_source *src, int window, bool *found, hunch_error *err);
/* Whether it has a value for each layer, and for blocks after them that predict further tokens, or not for these. */
bool hn_family_is_list(const hn_arch *a, const hn_source *src, const json_t *list);
/* A folder's list with one of two names for each layer; is: what to set in layers of the second name. *found: there is one. */
hunch_status hn_family_kinds(const hn_arch *a, const hn_source *src, const char *path, const char *const names[2],
                             void (*set)(hn_layer_desc *l, bool second), bool *found, hunch_error *err);
/* Which layers have this window: those of a folder's layer_types, or of a GGUF's list of flags under the key `period`; else all but
 * every period-th, by that key or its default. */
hunch_status hn_family_windows(hn_arch *a, const hn_source *src, const hn_key *period, int window, hunch_error *err);

/* A key of a family: its suffix in a GGUF, its path in a folder. Valid as long as *k. */
typedef struct hn_key_buf {
    char name[96];
    hn_key key;
} hn_key_buf;
const hn_key *hn_family_key_of(hn_key_buf *k, const hn_family *f, const char *suffix, const char *hf, double min, double max, double dflt);
/* ---- experts (arch_moe.c) ------------------------------------------------------------------------------------------- */

/* From what was read of all: which layers have experts, and how rows choose. */
const hn_expert_desc *hn_moe_of(const hn_arch *a); /* those of the first layer that has some */
hunch_status hn_moe_finish(hn_arch *a, hn_source *src, hunch_error *err);
double hn_moe_layers(const hn_arch *a); /* `up_to`, and `written`, of the number of dense layers before those with experts */
bool hn_moe_first(const hn_arch *a, const hn_key_row *k, double *v);
/* `written`: of how rows choose; the number of shared experts */
bool hn_unusual_choice(const hn_arch *a, const hn_key_row *k, double *v);
bool hn_moe_shared_count(const hn_arch *a, const hn_key_row *k, double *v);
double hn_width_of_dense(const hn_arch *a, const hn_layer_desc *l); /* `follows`: experts are as wide as dense layers' halves */
void hn_moe_set(hn_layer_desc *l, const hn_expert_desc *e); /* gives a layer these experts, or NULL: a dense half */
void hn_moe_find_tensors(hn_arch *a, const hn_source *src); /* finds the tensors that hold the experts of each layer */

/* Finds whether the matrices of heads of each layer with latent attention are apart (arch_deepseek.c). */
void hn_latent_find_tensors(hn_arch *a, const hn_source *src);

/* ---- rotation (arch_rope.c) ----------------------------------------------------------------------------------------- */

#define HN_MOST_SCALING 1e9 /* by a factor of frequencies */
/* Adds the first rotation, of the first `dims` dims of a head with theta as its base: reads the file's scaling and makes the frequencies.
 * context and family are set; r: of this source. */
hunch_status hn_rope_read(const hn_key_reading *r, hn_source *src, int dims, double theta, hunch_error *err);
/* Adds a rotation with a scaling without tables. */
hunch_status hn_rope_add(hn_arch *a, int dims, const hn_scaling *s, hunch_error *err);
/* Adds a copy of another description's rotation. */
hunch_status hn_rope_add_copy(hn_arch *a, const hn_rotation *from, hunch_error *err);
/* Adds the rotation of layers with a window, which only folders scale, and sets theirs: base and dims by their keys, or these. */
hunch_status hn_rope_add_sliding(hn_arch *a, const hn_source *src, double theta, int dims, hunch_error *err);
/* The first rotation becomes one of a head's `dims`, of whose pairs every second turns, by the frequencies that it has. */
hunch_status hn_rope_spread(hn_arch *a, int dims, hunch_error *err);
double hn_rope_usual_amplitude(const hn_scaling *s);

/* Of Gemma 4's layers with full attention, and of those with a window. */
typedef struct hn_kinds_of_heads {
    int dim[2], kv_heads[2];
} hn_kinds_of_heads;
/* Reads per_layer_config, in which transformers 5 writes what layers have of their own, if a folder has it; it replaces
 * global_head_dim and num_global_key_value_heads. The layers' windows are set. */
hunch_status hn_gemma4_own_sizes(const hn_arch *a, const hn_source *src, int usual_dim, int usual_heads, hn_kinds_of_heads *h,
                                 hunch_error *err);
/* The pairs that a GGUF rotates by its tensor (NULL: it is missing): divisors of 1, then such that nothing is left. */
hunch_status hn_gemma4_pairs(const hn_source *src, const hn_tensor *t, int half, int *pairs, hunch_error *err);
#endif
