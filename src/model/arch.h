/* SPDX-License-Identifier: Apache-2.0 */
/* arch.h - what a target is made of, as checked data. One small file an architecture (arch_llama.c, arch_qwen.c) maps a file's keys and
 * tensor names to this description; layer code (layer_*.c) is written once against it. */
#ifndef HN_ARCH_H
#define HN_ARCH_H
#include "format/source.h"

typedef enum hn_mixer { HN_MIXER_ATTENTION } hn_mixer; /* latent attention, gated delta net: later kinds */
typedef enum hn_ffn { HN_FFN_SWIGLU, HN_FFN_GEGLU } hn_ffn;          /* experts: a later kind */

typedef struct hn_layer_desc {
    hn_mixer mixer;
    int heads, kv_heads, head_dim;
    int window; /* 0: full attention */
    float attention_scale;
    bool qkv_bias; /* q, k and v have biases */
    bool qk_norm;  /* RMSNorm over each head of q and k, before the rotation */
    bool no_rope;  /* no rotation at all (NoPE) */
    bool local;    /* rotates with rope_local */
    bool fused;      /* q, k, v lie in one matrix, gate and up in another */
    bool post_norms; /* what each branch adds to the stream is normed */
    hn_ffn ffn;
    int ffn_width;
} hn_layer_desc;

/* Tensors by the part they play. In name patterns %d is the layer. */
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
    HN_ROLE_Q_NORM,
    HN_ROLE_K_NORM,
    HN_ROLE_PRE_FFN_NORM, /* what stands for ffn_norm where branches are normed behind too */
    HN_ROLE_POST_ATTN_NORM,
    HN_ROLE_POST_FFN_NORM,
    HN_ROLE_QKV,     /* instead of q, k and v: their rows one after another */
    HN_ROLE_GATE_UP, /* instead of gate and up */
    HN_ROLES
} hn_role;

struct hn_arch;
/* What the dense families differ in (arch_dense.c); they share keys, tensor names and the block. */
typedef struct hn_dense {
    const char *prefix;  /* of their keys in a GGUF: "llama" */
    bool interleaved;    /* Q and K rows of a GGUF are rotated in neighbouring pairs; of a folder in halves */
    bool qkv_bias, qk_norm;
    bool fused;          /* q, k, v lie in one matrix, gate and up in another */
    bool windowed;       /* sliding_window holds for all layers */
    bool window_key;     /* a GGUF has a key for windows; without it it cannot say them */
    bool no_rope_count;  /* a GGUF does not carry rope.dimension_count: whole heads turn */
    bool multipliers;    /* a GGUF carries those of embeddings, attention, residual branches and logits */
    double theta;        /* the rotation's usual base; 0: 10000 */
    const char *activation_key, *activation; /* of a folder; NULL: hidden_act, silu */
    /* Reads what is the family's own into a description that is made otherwise; NULL: nothing. */
    hunch_status (*finish)(struct hn_arch *a, const hn_source *src, hunch_error *err);
    /* Can a GGUF say all that this folder says? If not HUNCH_REFUSED, naming it. NULL: it can. */
    hunch_status (*fits_gguf)(const struct hn_arch *a, const hn_source *src, hunch_error *err);
} hn_dense;

typedef struct hn_arch {
    char architecture[32];
    char name[128];
    int layers, hidden, vocab, context;
    float norm_eps, embed_scale;
    float residual_scale, logit_scale; /* of what each branch adds to the stream; of the logits */
    bool tied;            /* the output matrix is the embedding */
    hn_layer_desc *layer; /* [layers] */
    int rope_dims;
    bool rope_interleaved;
    double *rope_freq;  /* [rope_dims / 2] radians a position */
    double *rope_local; /* the same for layers marked local; NULL: there are none */
    bool norms_less_one; /* norm weights are stored less 1 */
    float rope_scale;
    const char *const *names; /* [HN_ROLES] */
    const hn_dense *dense;    /* the family */
    hunch_sampling sampling;  /* the file's defaults, else temperature 0 */
} hn_arch;

/* Finds the architecture and describes it. Unknown: HUNCH_REFUSED, naming it and those we know. */
hunch_status hn_arch_read(hn_arch *a, hn_source *src, hunch_error *err);
void hn_arch_fini(hn_arch *a);
/* The tensor name of a role. layer is ignored where the role has none. */
void hn_arch_tensor_name(const hn_arch *a, hn_role role, int layer, char out[128]);

/* One architecture. Reads into a zeroed description. */
typedef struct hn_family {
    const char *gguf_name, *hf_type; /* general.architecture, config.json model_type */
    hunch_status (*read)(hn_arch *a, hn_source *src, hunch_error *err);
} hn_family;
extern const hn_family hn_family_llama, hn_family_mistral, hn_family_smollm3, hn_family_qwen2, hn_family_qwen3,
    hn_family_granite, hn_family_gemma3, hn_family_phi3;
extern const char *const hn_dense_gguf_names[HN_ROLES]; /* what conversion writes */

/* A key of the family: "llama.block_count" for the suffix "block_count". */
void hn_dense_key(const hn_dense *f, const char *suffix, char out[96]);
hunch_status hn_dense_read(hn_arch *a, hn_source *src, const hn_dense *family, hunch_error *err);

/* An integer or real hyper-parameter: where it stands in each format, and what is sane. */
typedef struct hn_key {
    const char *gguf, *hf; /* NULL: this format has none */
    double min, max;
    double dflt; /* NAN: required */
} hn_key;
hunch_status hn_key_int(const hn_source *src, const hn_key *k, int *out, hunch_error *err);
hunch_status hn_key_real(const hn_source *src, const hn_key *k, double *out, hunch_error *err);
#endif
