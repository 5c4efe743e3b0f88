/* SPDX-License-Identifier: Apache-2.0 */
/* arch.h - what a target is made of, as checked data. One small file an architecture (arch_llama.c, arch_qwen.c) maps a
 * file's keys and tensor names to this description; layer code (layer_*.c) is written once against it. */
#ifndef HN_ARCH_H
#define HN_ARCH_H
#include "format/gguf_writer.h"
#include "format/source.h"
#include "ops/ops.h"

/* A new kind of layer is a value here, fields below, roles for its tensors, and a file layer_*.c that pass.c calls. */
typedef enum hn_mixer { HN_MIXER_ATTENTION, HN_MIXER_DELTA } hn_mixer; /* latent attention: a later kind */
typedef enum hn_ffn { HN_FFN_SWIGLU, HN_FFN_GEGLU, HN_FFN_EXPERTS } hn_ffn;

/* What a layer's attention reads. */
typedef enum hn_layer_input {
    HN_INPUT_NORMED, /* the norm of the stream */
    HN_INPUT_PLAIN,  /* the stream itself */
    HN_INPUT_PAIR    /* norm(embedding) | norm(stream), twice as wide: of a draft head's first layer */
} hn_layer_input;

/* Of a gated delta net (ops/delta.h). */
typedef struct hn_delta_desc {
    int key_heads, value_heads, key_dim, value_dim, taps;
    bool tiled;       /* as the file has its value heads */
    bool fused;       /* q, k, v and z of a key head lie together, in one matrix */
    bool fused_gates; /* b and a of a key head lie together, in one matrix */
} hn_delta_desc;
/* The experts of a layer: SwiGLU each; how rows choose among them is hn_router's. */
typedef struct hn_expert_desc {
    int count, used, width;
    bool sigmoid, normalised, bias;
    int groups, groups_used;
    float scale;
    int shared_width; /* of what all rows share beside; 0: nothing */
    bool shared_gate; /* which counts as much as the sigmoid of a product of its own */
    bool stacked;     /* gate and up of all experts lie in one tensor, down in another */
    bool single;      /* of a GGUF: a tensor of each expert, as old ones have them; a folder that is not stacked has them so */
} hn_expert_desc;

typedef struct hn_layer_desc {
    hn_mixer mixer;
    hn_delta_desc delta; /* of HN_MIXER_DELTA */
    hn_layer_input input;
    int heads, kv_heads, head_dim;
    int window; /* 0: full attention */
    int first;  /* positions below it are not seen by rows from it on */
    bool ahead; /* rows of a block see those behind them in it */
    float attention_scale;
    bool qkv_bias, o_bias; /* q, k and v have biases; o has one */
    bool qk_norm;          /* RMSNorm over each head of q and k, before the rotation */
    bool sinks;            /* a score a head takes part in the softmax and has no value */
    bool no_rope;          /* no rotation at all (NoPE) */
    bool local;            /* rotates with rope_local */
    bool fused_qkv;        /* q, k, v lie in one matrix */
    bool post_norms;       /* what each branch adds to the stream is normed */
    bool gated;            /* each head of q has a gate behind it, whose sigmoid its result is multiplied by */
    bool hybrid;           /* a GGUF calls the norm before the feed-forward half post_attention_norm */
    hn_ffn ffn;
    int ffn_width;
    bool fused_gate_up; /* gate and up lie in one matrix */
    bool gate_up_bias, down_bias;
    hn_expert_desc experts; /* of HN_FFN_EXPERTS; ffn_width is what a dense layer of the model would have */
} hn_layer_desc;

/* Tensors by the part they play; all that is known of each stands in the table of roles.c. */
typedef enum hn_role {
    HN_ROLE_EMBEDDING,
    HN_ROLE_OUTPUT_NORM,
    HN_ROLE_OUTPUT,
    HN_ROLE_ATTN_NORM,
    HN_ROLE_Q,
    HN_ROLE_K,
    HN_ROLE_V,
    HN_ROLE_O,
    HN_ROLE_FFN_NORM,
    HN_ROLE_GATE,
    HN_ROLE_UP,
    HN_ROLE_DOWN,
    /* where the description says so */
    HN_ROLE_Q_BIAS,
    HN_ROLE_K_BIAS,
    HN_ROLE_V_BIAS,
    HN_ROLE_QKV_BIAS, /* instead of the three where their matrices are one */
    HN_ROLE_O_BIAS,
    HN_ROLE_GATE_BIAS,
    HN_ROLE_UP_BIAS,
    HN_ROLE_DOWN_BIAS,
    HN_ROLE_Q_NORM,
    HN_ROLE_K_NORM,
    HN_ROLE_SINKS,
    HN_ROLE_PRE_FFN_NORM, /* what stands for ffn_norm where branches are normed behind too */
    HN_ROLE_POST_ATTN_NORM,
    HN_ROLE_POST_FFN_NORM,
    HN_ROLE_QKV,     /* instead of q, k and v: their rows one after another */
    HN_ROLE_GATE_UP, /* instead of gate and up */
    HN_ROLE_HYBRID_FFN_NORM,
    /* of a gated delta net */
    HN_ROLE_DELTA_QKV,
    HN_ROLE_DELTA_Z,
    HN_ROLE_DELTA_QKVZ, /* instead of both */
    HN_ROLE_DELTA_B,
    HN_ROLE_DELTA_A,
    HN_ROLE_DELTA_BA, /* instead of both */
    HN_ROLE_DELTA_CONV,
    HN_ROLE_DELTA_DECAY,
    HN_ROLE_DELTA_DT,
    HN_ROLE_DELTA_NORM,
    HN_ROLE_DELTA_OUT,
    /* of layers of experts, instead of gate, up and down; those of the experts are so many matrices */
    HN_ROLE_ROUTER,
    HN_ROLE_ROUTER_BIAS,
    HN_ROLE_EXPERT_GATE,
    HN_ROLE_EXPERT_UP,
    HN_ROLE_EXPERT_GATE_UP, /* instead of both, where experts are stacked */
    HN_ROLE_EXPERT_DOWN,
    HN_ROLE_SHARED_ROUTER,
    HN_ROLE_SHARED_GATE,
    HN_ROLE_SHARED_UP,
    HN_ROLE_SHARED_DOWN,
    HN_ROLES
} hn_role;

/* A name that a family's files have instead of the usual one; %d is the layer, then the expert. */
typedef struct hn_role_other {
    hn_role role;
    const char *gguf, *folder; /* NULL: the usual one */
} hn_role_other;

/* How a file makes frequencies from theta^(-2i / dims); arch_rope.c. */
typedef enum hn_scaling_kind {
    HN_SCALING_NONE,
    HN_SCALING_LINEAR,   /* all / factor */
    HN_SCALING_LLAMA3,   /* long waves / factor, short ones kept, a line between */
    HN_SCALING_DIVISORS, /* each / its own: how a GGUF says llama3 */
    HN_SCALING_YARN,
    HN_SCALING_LONGROPE, /* each / its own, and a second set for contexts beyond the original one */
} hn_scaling_kind;
typedef struct hn_scaling {
    hn_scaling_kind kind;
    double theta, factor;
    double original;           /* context before scaling */
    double low, high;          /* llama3: turns in the original context */
    double fast, slow;         /* YaRN: the same */
    bool whole;                /* YaRN: the bounds that follow from them are rounded outwards */
    double mscale, mscale_all; /* YaRN: of the amplitude; 0: not given */
    double amplitude;          /* of cos and sin, as a file gives it; 0: what is usual for the kind */
} hn_scaling;

struct hn_arch;
/* How a family's files describe experts (arch_moe.c); NULL: the format has no such key, and the number stays as it is here. */
typedef struct hn_moe {
    const char *count, *width, *groups, *groups_used, *scale; /* of a folder */
    bool width_is_ffn;    /* of a GGUF: where expert_feed_forward_length does not stand, feed_forward_length is it */
    bool sigmoid, bias;
    bool always_normalised;
    bool normalised[2];   /* where norm_topk_prob is not said, by hn_source_kind */
    const char *shared_count, *shared_width; /* of a folder: experts' widths that rows share, or the width */
    bool shared_gate;
    bool sparse_step;     /* decoder_sparse_step and mlp_only_layers say which layers are dense, else first_k_dense_replace */
} hn_moe;

/* What the dense families differ in (arch_dense.c); they share keys, tensor names and the block. */
typedef struct hn_dense {
    const char *prefix;  /* of their keys in a GGUF: "llama" */
    bool interleaved;    /* Q and K rows of a GGUF are rotated in neighbouring pairs; of a folder in halves */
    bool qkv_bias, qk_norm;
    bool attention_bias; /* a folder's key of this name puts biases on q, k, v and o */
    bool mlp_bias;       /* the same on gate, up and down */
    bool fused;          /* q, k, v lie in one matrix, gate and up in another (of a folder; a GGUF shows it) */
    bool windowed;       /* sliding_window holds for all layers */
    bool may_slide;      /* use_sliding_window makes some layers slide: finish says which */
    bool window_key;     /* programs know a GGUF's key for windows; else it counts beside a list of the layers only */
    bool no_ffn;         /* files need not say how wide a dense feed-forward half is: there is none */
    bool no_o_bias;      /* attention_bias does not put one on o */
    const hn_role_other *names; /* ends with a role HN_ROLES; NULL: all are the usual ones */
    const hn_moe *moe;   /* some layers have experts; NULL: none */
    bool no_rope_count;  /* a GGUF does not carry rope.dimension_count: whole heads turn */
    bool logit_cap;      /* final_logit_softcapping caps the logits */
    double theta;        /* the rotation's usual base; 0: 10000 */
    bool whole_heads;    /* a folder's heads turn whole, whatever partial_rotary_factor says: it is there for scaled rotations alone */
    double rotated;      /* the usual part of a head that turns; 0: all */
    bool next_layers;    /* a GGUF's last blocks may be of another model, which drafts (nextn_predict_layers) */
    bool tied;           /* the usual tie_word_embeddings of a folder */
    struct {
        int heads, kv_heads, head_dim, context;
        double eps;
    } usual; /* what a folder need not say; 0: it must */
    const char *activation_key, *activation; /* of a folder; NULL: hidden_act, silu */
    /* Reads what is the family's own into a description that is made otherwise; NULL: nothing. */
    hunch_status (*finish)(struct hn_arch *a, const hn_source *src, hunch_error *err);
    /* Writes the family's own keys of a GGUF; NULL: there are none. */
    hunch_status (*put)(const struct hn_arch *a, hn_gguf_writer *w, hunch_error *err);
} hn_dense;

/* Steps: how a head drafts that has weights of its own for each position, and neither a cache nor attention for them (layer_steps.c). */
typedef enum hn_step_kind {
    HN_STEP_NONE,     /* it has none: it goes on from its own output, or has masks */
    HN_STEP_BLOCKS,   /* residual blocks of the target's state: Medusa; Hydra that is not grounded */
    HN_STEP_GROUNDED, /* residual blocks of the state and the tokens drafted so far: Hydra */
    HN_STEP_SUM,      /* a state and a token, added up: IBM's speculator */
    HN_STEP_LSTM,     /* the same with a cell behind gates: Arctic's */
    HN_STEP_LAYERS    /* a layer each, all of one state: Meta's heads */
} hn_step_kind;
enum { HN_MOST_HEAD_STEPS = 16, HN_MOST_STEP_BLOCKS = 8, HN_STEP_GATES = 4 };

typedef struct hn_steps_desc {
    hn_step_kind kind;
    int n;            /* positions that it drafts */
    int blocks;       /* residual blocks of each */
    int inner;        /* of SUM and LSTM: how wide their own state is */
    bool block_bias, output_bias;
    bool tied;        /* of SUM and LSTM: one embedding, norm, output, and one projection behind the first */
    bool one_output;  /* one output matrix for all */
    bool scale_input; /* of SUM and LSTM: the target's state is normed, and divided by sqrt 2 */
    bool fused_gates; /* of LSTM: the projections of the four gates lie in one matrix */
    int first_block, block_stride; /* of a folder: its number of the first block, and how far the next is */
    int state_offset; /* of Hydra: layers before the target's last state; 0: behind the final norm */
    bool inside;      /* of a folder: names have another 0 or 1 inside, of a list of modules */
} hn_steps_desc;
/* Does it draft all positions in the pass of the root, whatever the tokens before them are? */
static inline bool hn_steps_at_once(const hn_steps_desc *s) { return s->kind == HN_STEP_BLOCKS || s->kind == HN_STEP_LAYERS; }

/* How the token before a draft changes its logits (pass_markov.c). */
typedef enum hn_markov_kind { HN_MARKOV_NONE, HN_MARKOV_VANILLA, HN_MARKOV_GATED, HN_MARKOV_RNN } hn_markov_kind;

/* What stands in front of a draft head's layers and behind them; zeroed for targets. A row of a head is a token and the
 * feature of the token before it: states of the target side by side, or where that is a draft too, the head's own output. */
typedef struct hn_head_desc {
    int features, feature_width; /* states of the target that make a feature, and the width of each; 0: not a head */
    bool joint;          /* the stream begins as fc(embedding | feature), drafts' rows too; else as fc(feature), of drafts' rows
                            as the output before it */
    bool joint_norms;    /* with it: of norm(embedding) | norm(feature) */
    bool mask;           /* rows of mask_token, with a feature of the head's own, draft the levels behind the root's */
    int mask_token;
    bool mask_pair;      /* with it: what such a row's first layer reads, and goes on from, are vectors of the head's own, behind the
                            norms: no token, no feature */
    bool norm_twice;     /* the norm before the output matrix, of what it makes once more */
    bool lstm;           /* instead of fc two layers of an LSTM, each row with a state of its own that is zero */
    int together;        /* rows at the end of text and drafts that see each other: each drafts the token so many behind its own; 0: 1 */
    int most_levels;     /* that a head whose masks draft was trained to draft in a pass; 0: not said */
    bool fc_bias;
    bool norm_before_fc; /* one RMSNorm over the whole feature */
    bool fc_norms;       /* an RMSNorm over each of its states */
    bool normed_stream;  /* with HN_INPUT_PAIR: the stream goes on as its norm */
    bool norm_output;    /* the output is what the norm makes of the stream, else the stream */
    bool no_norm;        /* no norm before the output matrix */
    bool own_embedding, own_output; /* else the target's */
    /* A head that drafts a block: rows of the text are keys and values alone, made of norm(fc(feature)); the stream of a block's rows
     * begins as embeddings, of the root and of masks behind it. */
    int block;            /* rows of a block, the root's included; 0: it drafts none */
    bool root_drafts;     /* the root's row drafts too; else the first mask drafts what the root's row would */
    bool windows_of_root; /* windows are counted back from the root, else from each row */
    bool mask_row;        /* masks have a vector of their own instead of mask_token's embedding */
    bool scaled_embedding; /* as the target scales it */
    hn_markov_kind markov;
    int markov_rank;
    bool confidence, confidence_of_token; /* a confidence of each draft; made of the token before it too */
    int form;            /* of its file's names, hn_head_form */
    int embeddings;      /* tokens of the embedding (vocab: of the output) */
    int blocks;          /* of a model's own file, or of a folder of modules: blocks, a layer each, that draft in turn, each from what the one before it made; 0: one */
    hn_steps_desc steps;
} hn_head_desc;
enum { HN_MOST_HEAD_FEATURES = 16, HN_MOST_HEAD_BLOCKS = 8 };
static inline int hn_head_blocks(const hn_head_desc *d) { return d->blocks > 1 ? d->blocks : 1; }

typedef struct hn_arch {
    char architecture[32];
    char name[128];
    int layers, hidden, vocab, context;
    int next_layers; /* of a GGUF: blocks behind these, of a model that drafts */
    float norm_eps, embed_scale;
    float residual_scale, logit_scale; /* of what each branch adds to the stream; of the logits */
    float logit_cap;                   /* logits are cap * tanh(logits / cap); 0: they are not capped */
    bool tied;            /* the output matrix is the embedding */
    hn_layer_desc *layer; /* [layers] */
    int rope_dims;
    bool rope_interleaved;
    bool rows_in_pairs;   /* Q and K rows stand so in the file, and are packed in halves: rope_interleaved is false */
    hn_scaling scaling;
    double *rope_freq;  /* [rope_dims / 2] radians a position */
    double *rope_long;  /* the same where texts may grow beyond rope_original; NULL: rope_freq holds for all */
    int rope_original;  /* with rope_long */
    float rope_scale;   /* of cos and sin, with rope_freq and rope_long */
    double local_theta; /* of rope_local */
    double *rope_local; /* of layers marked local; NULL: there are none */
    bool norms_less_one;      /* norm weights are stored less 1 */
    hn_source_kind form;      /* of the file that it was read from: which names its tensors have */
    const char *body, *head;  /* what a folder's names have instead of "model." in front, and before the others */
    int first_block;          /* what is added to the numbers of layers in names */
    const char *const *layer_names; /* [HN_ROLES] what a folder's tensors of layers are called, %d is the layer; NULL: as usual */
    const char *first_layer;  /* what they have instead of "layers.0."; NULL: nothing */
    const hn_dense *dense;    /* the family */
    hn_head_desc draft_head;  /* of a draft head */
    hunch_sampling sampling;  /* the file's defaults, else temperature 0 */
} hn_arch;

/* Finds the architecture and describes it. Unknown: HUNCH_REFUSED, naming it and those we know. */
hunch_status hn_arch_read(hn_arch *a, hn_source *src, hunch_error *err);
void hn_arch_fini(hn_arch *a);
/* The tensor of a role: its name, whether a model of this description has it, its shape in ggml's order (inputs, outputs; a
 * vector has outputs 1), what is added to a vector's values as they are stored. layer: 0 where the role has none. */
void hn_arch_tensor_name(const hn_arch *a, hn_role role, int layer, char out[128]);
/* The same of one expert, where each has a tensor of its own (hn_arch_sheets is 1). */
void hn_arch_expert_name(const hn_arch *a, hn_role role, int layer, int expert, char out[128]);
/* How many matrices one tensor of a role has, its third dimension: all experts', or 1. */
int hn_arch_sheets(const hn_arch *a, hn_role role, int layer);
bool hn_arch_has(const hn_arch *a, hn_role role, int layer);
/* What a file has under that name, as hn_source_find; NULL: nothing. */
const hn_tensor *hn_arch_look(const hn_arch *a, const hn_source *src, hn_role role, int layer);
void hn_arch_tensor_shape(const hn_arch *a, hn_role role, int layer, uint64_t dims[2]);
float hn_arch_vector_more(const hn_arch *a, hn_role role);
/* Of every model (roles.c). */
const char *hn_role_name(hn_role role, hn_source_kind form); /* the usual name; %d in it is the layer, then the expert */
const char *hn_role_stacked_name(hn_role role); /* of a folder whose experts are stacked; NULL: the role has none */
const char *hn_role_single_name(hn_role role);  /* of a GGUF with a tensor of each expert; NULL: the role has none */
/* How a vector's values come out of a tensor's. */
typedef enum hn_change {
    HN_CHANGE_NONE,
    HN_CHANGE_DECAY, /* -e^x of a folder's; a GGUF has it so */
    HN_CHANGE_TAPS   /* [channels][taps], of a folder [channels][1][taps]: its columns one after the other */
} hn_change;
hn_change hn_role_change(hn_role role);
bool hn_role_is_vector(hn_role role);                        /* norms and biases */
bool hn_role_of_experts(hn_role role);                       /* each expert of a layer has its own */
bool hn_role_of_layer(hn_role role);                         /* each layer has its own */
bool hn_role_turns(hn_role role);                            /* of rows that are rotated, or of a head's values of one */
bool hn_role_ends_branch(hn_role role);                      /* a bias of what is added to the stream */
hn_phase hn_role_phase(hn_role role);                        /* what a matrix's product is for */

/* The row of a head, of which `dims` rows are rotated in halves (i and i + dims / 2 together), in a file that has them in neighbouring
 * pairs (2i and 2i + 1). */
static inline int hn_paired_row(int row, int dims) {
    return row >= dims ? row : row < dims / 2 ? 2 * row : 2 * (row - dims / 2) + 1;
}

/* One architecture. Reads into a zeroed description. */
typedef struct hn_family {
    const char *gguf_name, *hf_type; /* general.architecture, config.json model_type */
    hunch_status (*read)(hn_arch *a, hn_source *src, hunch_error *err);
} hn_family;
extern const hn_family hn_family_llama, hn_family_mistral, hn_family_smollm3, hn_family_qwen2, hn_family_qwen3,
    hn_family_granite, hn_family_gemma3, hn_family_phi3, hn_family_qwen35, hn_family_qwen35_text,
    hn_family_qwen35_moe, hn_family_qwen35_moe_text, hn_family_qwen3_next, hn_family_mixtral,
    hn_family_qwen2_moe, hn_family_qwen3_moe, hn_family_glm4_moe;
hunch_status hn_mixtral_read(hn_arch *a, hn_source *src, hunch_error *err); /* a GGUF says llama */

/* A key of the family: "llama.block_count" for the suffix "block_count". */
void hn_dense_key(const hn_dense *f, const char *suffix, char out[96]);
hunch_status hn_dense_read(hn_arch *a, hn_source *src, const hn_dense *family, hunch_error *err);
/* The layers alone, all of one kind: sizes, heads, rotation; nothing of vocabularies, and no biases nor norms but the family's. */
hunch_status hn_dense_read_layers(hn_arch *a, hn_source *src, const hn_dense *family, hunch_error *err);
/* Of a folder: sliding_window where use_sliding_window is on, else 0. */
hunch_status hn_dense_sliding(const hn_source *src, int *window, hunch_error *err);
/* A key of a GGUF that lists the layers of which `is` holds: 1 or 0 for each. */
hunch_status hn_dense_put_layers(const hn_arch *a, hn_gguf_writer *w, const char *key, bool (*is)(const hn_layer_desc *),
                                 hunch_error *err);
bool hn_dense_slides(const hn_layer_desc *l); /* has a window */
/* Of a GGUF: the layers that the list of flags names have this window, the others none. */
hunch_status hn_dense_listed_windows(hn_arch *a, const hn_source *src, const hn_array *list, int window, hunch_error *err);
/* Where layer_types stands in a folder's config.json: gives the sliding layers this window and the others none, and says so
 * in *found. */
hunch_status hn_dense_layer_types(hn_arch *a, const hn_source *src, int window, bool *found, hunch_error *err);

/* An integer or real hyper-parameter: where it stands in each format, and what is sane. */
typedef struct hn_key {
    const char *gguf, *hf; /* NULL: this format has none */
    double min, max;
    double dflt; /* NAN: required */
} hn_key;
hunch_status hn_key_int(const hn_source *src, const hn_key *k, int *out, hunch_error *err);
hunch_status hn_key_real(const hn_source *src, const hn_key *k, double *out, hunch_error *err);

/* A key of a dense family: its suffix in a GGUF, its path in a folder. Lives as long as *k. */
typedef struct hn_dense_key_buf {
    char name[96];
    hn_key key;
} hn_dense_key_buf;
const hn_key *hn_dense_key_of(hn_dense_key_buf *k, const hn_dense *f, const char *suffix, const char *hf, double min,
                              double max, double dflt);
/* ---- experts (arch_moe.c) ------------------------------------------------------------------------------------------- */

/* Which layers have experts, and how many and how chosen; a->layer is made, and dense. */
hunch_status hn_moe_read(hn_arch *a, hn_source *src, hunch_error *err);
void hn_moe_find_tensors(hn_arch *a, const hn_source *src); /* in which tensors the experts of each layer lie */
hunch_status hn_moe_put(const hn_arch *a, hn_gguf_writer *w, hunch_error *err); /* keys of a GGUF */

/* ---- rotation (arch_rope.c) ----------------------------------------------------------------------------------------- */

/* Reads how the file scales and makes the frequencies; rope_dims, context and dense are set. theta: the base. */
hunch_status hn_rope_read(hn_arch *a, hn_source *src, double theta, hunch_error *err);
/* freq [dims / 2] as a scaling without tables makes them. */
void hn_rope_frequencies(const hn_scaling *s, int dims, double *freq);
double hn_rope_usual_amplitude(const hn_scaling *s);
#endif
