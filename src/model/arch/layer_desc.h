/* SPDX-License-Identifier: Apache-2.0 */
/* layer_desc.h - what a layer is, of a target or of a draft head: its mixers and feed-forward half, heads, widths, window, and which of the
 * model's rotations its heads have. */
#ifndef HN_LAYER_DESC_H
#define HN_LAYER_DESC_H
#include <stdbool.h>

#include "ops/ops.h"

/* The kinds of mixers: what a kind is is in model/mixers.h, and each has a file, model/mixer_NAME.c. */
#define HN_MIXERS(MIXER) \
    MIXER(attention)     \
    MIXER(latent)        \
    MIXER(delta)         \
    MIXER(short_conv)    \
    MIXER(ssm)
typedef struct hn_mixer_kind hn_mixer_kind;
#define HN_MIXER_DECLARED(NAME) extern const hn_mixer_kind hn_mixer_##NAME;
HN_MIXERS(HN_MIXER_DECLARED)
#define HN_MIXER_NUMBERED(NAME) HN_MIXER_##NAME,
enum { HN_MIXERS(HN_MIXER_NUMBERED) HN_MIXER_KINDS };

enum { HN_LAYER_MIXERS = 2, HN_MIXER_NUMBERS = 12 };
/* A mixer of a layer. Attention and latent attention share the heads that the layer describes; other kinds have all their sizes in `own`.
 * */
typedef struct hn_mixer_desc {
    const hn_mixer_kind *kind; /* NULL: the layer has no more */
    float times;               /* factor of its result, beside that of all branches (hn_arch.residual_scale); 0: 1 */
    int own[HN_MIXER_NUMBERS]; /* a struct of ints that the kind's file describes */
} hn_mixer_desc;

typedef enum hn_ffn {
    HN_FFN_SWIGLU,
    HN_FFN_GEGLU,
    HN_FFN_EXPERTS,
    HN_FFN_PLAIN,  /* without a gate: down(plain_unit(up x)) */
    HN_FFN_BESIDE, /* GeGLU, and experts of GeGLU beside it, each with norms of its own; their sum is normed */
    HN_FFN_NONE
} hn_ffn;

/* What a layer's mixers read. */
typedef enum hn_layer_input {
    HN_INPUT_NORMED, /* the norm of the stream */
    HN_INPUT_PLAIN,  /* the stream itself */
    HN_INPUT_PAIR,   /* norm(embedding) | norm(stream), twice as wide: first layer of a draft head */
    HN_INPUT_PAIR_NORMED /* the same, and the stream continues as its norm */
} hn_layer_input;

/* The experts of a layer; hn_router describes how rows choose among them. */
typedef struct hn_expert_desc {
    int count, used, width;
    bool sigmoid, normalised, bias;
    int groups, groups_used;
    bool largest;     /* groups are compared by their largest score */
    float scale;
    float sum_more;   /* added to the sum of the chosen, by which they are divided; 0: hardly anything */
    float score_cap;  /* the router's product is cap * tanh(product / cap); 0: it is not capped */
    int shared_width; /* width of the shared expert that all rows use; 0: none */
    bool shared_gate; /* its result is multiplied by the sigmoid of a product of its own */
    bool stacked;     /* gate and up of all experts are one tensor, down another */
    bool biases;      /* of gate, up and down of each expert, and of the router's product */
    float limit, alpha; /* of their unit (hn_expert_unit); 0: SwiGLU */
    bool shared_bias; /* its gate, up and down have biases */
    bool shared_fused; /* its gate and up are one matrix */
    bool stacks;        /* in a folder a tensor has a matrix for each expert, gate and up apart */
    bool single;      /* GGUF: one tensor for each expert, as in old files (and in folders that are not stacked) */
} hn_expert_desc;

/* What the results of heads are multiplied by before o: a function of numbers that are products of the layer's input. At most one of the
 * first three. */
typedef struct hn_gate {
    bool in_q;       /* rows of q's matrix: each head's are followed by as many of its gate */
    bool of_numbers; /* a matrix of its own, with a row for each number of a head's result */
    bool of_heads;   /* with a row for each head */
    bool softplus;   /* the function, else the sigmoid */
} hn_gate;
static inline bool hn_gate_has_matrix(const hn_gate *g) { return g->of_numbers || g->of_heads; }
static inline bool hn_gate_is(const hn_gate *g) { return g->in_q || hn_gate_has_matrix(g); }

typedef struct hn_layer_desc {
    hn_mixer_desc mixer[HN_LAYER_MIXERS]; /* they read the same input, and their results are added; without any the layer is a half */
    hn_layer_input input, ffn_input; /* of the feed-forward half: normed or plain */
    int heads, kv_heads;
    int head_dim; /* of queries and keys; of a latent row rank + rope */
    int narrow;   /* width of values, if they are narrower than keys; 0: they are as wide */
    int window; /* 0: full attention */
    int first;  /* positions below it are not visible to rows at or above it */
    bool ahead; /* rows of a block see later rows of the block */
    float attention_scale;
    bool qkv_bias, o_bias; /* q, k and v (latent: the products that reduce to a rank) have biases; o has one */
    bool qk_norm;          /* RMSNorm over each head of q and k, before rotation */
    bool norm_rows;        /* over the whole row of all heads instead */
    bool norm_late;        /* after rotation instead */
    bool v_norm;           /* the same over each head of v, without weights */
    bool v_is_k;           /* v has no product: it is that of k, before its norm and rotation */
    int kv_back;           /* its keys and values are those of the layer that many before it, and it stores none; 0: its own */
    bool sinks;            /* each head has a score that takes part in the softmax and has no value */
    int rotation;          /* index of its rotation (hn_arch.rotation); HN_NO_ROTATION: none at all (NoPE) */
    bool fused_qkv;        /* q, k, v are one matrix */
    bool post_norms;       /* the output of each branch is normed before it is added to the stream */
    hn_gate gate;          /* of the heads' results */
    hn_position_scale query_scale; /* of queries; span 0: none */
    bool hybrid;           /* a GGUF calls the norm before the feed-forward half post_attention_norm */
    hn_ffn ffn;
    hn_function plain_unit; /* of HN_FFN_PLAIN */
    float ffn_times;       /* as a mixer's */
    float ffn_limit;       /* of the unit of the dense half, or of the shared expert: as that of experts without alpha (hn_expert_unit) */
    float expert_limit;    /* the same of experts */
    int ffn_width;
    bool fused_gate_up; /* gate and up are one matrix */
    bool gate_up_bias, down_bias;
    int token_input;       /* width of the input that each token has for this layer alone (layer_input.c); 0: none */
    bool scaled;           /* its result is multiplied by a number of its own */
    hn_expert_desc experts; /* of kinds with experts; ffn_width is the width of the dense half, or of the model's dense layers */
} hn_layer_desc;

static inline bool hn_layer_has_experts(const hn_layer_desc *l) { return l->ffn == HN_FFN_EXPERTS || l->ffn == HN_FFN_BESIDE; }
/* A token's inputs are the mean of two parts, times the root of 2: each is multiplied by the root of 1/2. */
#define HN_TOKEN_INPUT_SHARE 0.70710678f
/* How many mixers it has; which of them is of this kind, -1: none is. */
static inline int hn_layer_mixers(const hn_layer_desc *l) { return !l->mixer[0].kind ? 0 : !l->mixer[1].kind ? 1 : 2; }
static inline int hn_layer_mixer(const hn_layer_desc *l, const hn_mixer_kind *kind) {
    return l->mixer[0].kind == kind ? 0 : l->mixer[1].kind == kind ? 1 : -1;
}
static inline bool hn_layer_is(const hn_layer_desc *l, const hn_mixer_kind *kind) { return l->mixer[0].kind == kind && !l->mixer[1].kind; }
/* Whether it has a feed-forward part without experts. */
static inline bool hn_layer_is_dense(const hn_layer_desc *l) { return l->ffn != HN_FFN_EXPERTS && l->ffn != HN_FFN_NONE; }

/* Whether queries and keys are normed over the rows of all heads. */
static inline bool hn_layer_norms_rows(const hn_layer_desc *l) { return l->qk_norm && l->norm_rows; }

/* Whether its mixers read a pair. */
static inline bool hn_layer_reads_pair(const hn_layer_desc *l) { return l->input == HN_INPUT_PAIR || l->input == HN_INPUT_PAIR_NORMED; }

/* How frequencies are made from theta^(-2i / dims); arch_rope.c. */
typedef enum hn_scaling_kind {
    HN_SCALING_NONE,
    HN_SCALING_LINEAR,   /* all / factor */
    HN_SCALING_LLAMA3,   /* long waves / factor, short ones unchanged, linear in between */
    HN_SCALING_DIVISORS, /* each / its own: llama3 in a GGUF */
    HN_SCALING_YARN,
    HN_SCALING_LONGROPE, /* each / its own, and a second set for contexts beyond the original one */
    HN_SCALING_PART,     /* the first pairs as they are, the others are not rotated */
} hn_scaling_kind;
typedef struct hn_scaling {
    hn_scaling_kind kind;
    double theta, factor;
    double original;           /* context before scaling */
    double low, high;          /* llama3: turns in the original context */
    double fast, slow;         /* YaRN: the same */
    bool whole;                /* YaRN: the bounds computed from them are rounded outwards */
    double mscale, mscale_all; /* YaRN: factors of the amplitude; 0: not given */
    double amplitude;          /* of cos and sin, as given by the file; 0: the usual one of the kind */
    int pairs;                 /* HN_SCALING_PART: the number that are rotated */
} hn_scaling;

/* One rotation of the heads of queries and keys (RoPE). A model has a list of them, since its layers may differ in base, scaling and
 * width. A frequency of 0 leaves its pair as it is, so a rotation of some pairs of a head has the dims of all. */
typedef struct hn_rotation {
    int first, dims;    /* the rotated dims of a head are [first, first + dims); both even */
    hn_scaling scaling; /* how the frequencies are made */
    double *freq;       /* owned: [dims / 2] radians a position */
    double *freq_long;  /* owned: the same if texts may grow beyond scaling.original; NULL: freq applies to all */
    float scale;        /* of cos and sin */
} hn_rotation;
enum { HN_MOST_ROTATIONS = 4, HN_NO_ROTATION = -1 };
#endif
