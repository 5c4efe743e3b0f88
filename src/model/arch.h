/* SPDX-License-Identifier: Apache-2.0 */
/* arch.h - what a target is made of, as checked data. One small file an architecture (arch_llama.c) maps a file's keys and
 * tensor names to this description; layer code (layer_*.c) is written once against it. */
#ifndef HN_ARCH_H
#define HN_ARCH_H
#include "format/source.h"

typedef enum hn_mixer { HN_MIXER_ATTENTION } hn_mixer; /* latent attention, gated delta net: later kinds */
typedef enum hn_ffn { HN_FFN_SWIGLU } hn_ffn;          /* experts: a later kind */

typedef struct hn_layer_desc {
    hn_mixer mixer;
    int heads, kv_heads, head_dim;
    int window; /* 0: full attention */
    float attention_scale;
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
    HN_ROLES
} hn_role;

typedef struct hn_arch {
    char architecture[32];
    char name[128];
    int layers, hidden, vocab, context;
    float norm_eps, embed_scale;
    bool tied;            /* the output matrix is the embedding */
    hn_layer_desc *layer; /* [layers] */
    int rope_dims;
    bool rope_interleaved;
    double *rope_freq; /* [rope_dims / 2] radians a position */
    float rope_scale;
    const char *const *names; /* [HN_ROLES] */
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
extern const hn_family hn_family_llama;
extern const char *const hn_llama_gguf_names[HN_ROLES]; /* what conversion writes */

/* An integer or real hyper-parameter: where it stands in each format, and what is sane. */
typedef struct hn_key {
    const char *gguf, *hf; /* NULL: this format has none */
    double min, max;
    double dflt; /* NAN: required */
} hn_key;
hunch_status hn_key_int(const hn_source *src, const hn_key *k, int *out, hunch_error *err);
hunch_status hn_key_real(const hn_source *src, const hn_key *k, double *out, hunch_error *err);
#endif
