/* SPDX-License-Identifier: Apache-2.0 */
/* mixers.h - what a kind of mixers is: the part of a layer by which rows read other rows. A kind is a file, mixer_NAME.c, and a line in the
 * list of kinds (arch/layer_desc.h). Loading, the cache's groups, the buffers of a pass, what measures its work and what writes a GGUF
 * ask the kind; nothing else knows which there are. */
#ifndef HN_MIXERS_H
#define HN_MIXERS_H
#include "model/kv_groups.h"
#include "model/layers.h"
#include "model/tensor_rows.h"
#include "ops/ssm.h"

/* The largest widths that any layer needs of the buffers of a pass (hn_pass_buffers). */
typedef struct hn_widths {
    int attended, kv, qkv, mixed, fused, z, gates; /* columns; kv: of k or v of heads, behind the queries in qkv */
    int heads, head;                               /* inputs of heads' own matrices: heads, and the widest */
    size_t scratch;                                /* bytes */
} hn_widths;

/* What a pass is opened for. kv: the place of the mixer's keys, if it keeps any. */
typedef struct hn_width_of {
    const hn_backend *backend;
    const hn_kv *kv;
    int rows, positions; /* at most */
} hn_width_of;

/* Where the rows of a pass find what a mixer keeps, and leave their own: one for each that `keeps` lists, in that order. */
typedef struct hn_kept {
    const hn_rows *rows; /* with the page tables of its group */
    union {
        hn_kv kv;              /* of HN_CACHE_KV */
        hn_input_pages inputs; /* of HN_CACHE_ROWS */
        hn_state_pages states; /* of HN_CACHE_STATE */
    };
} hn_kept;

/* What a mixer is run with. */
typedef struct hn_mixing {
    const hn_model *m;
    int layer;
    const hn_layer_desc *d;
    const hn_mixer_desc *own;
    const void *weights; /* the kind's own */
    float times;         /* factor of its result */
    hn_act in;           /* its input, as wide as the layer's, in the forms that it needs */
    hn_matrix to;        /* its result; add: it is added to what is there */
    bool add;
    const hn_row_walk *walk; /* of models with states, */
    const hn_state_grid *grid; /* or states on a grid of positions */
    hn_kept kept[HN_MOST_KEPT];
    const hn_pass_buffers *s;
} hn_mixing;

/* What ranks have of a mixer (split.h). */
enum { HN_MIXER_SHARES = 5 };
typedef struct hn_mixer_split {
    hn_slices mixed;               /* of the columns of its result, before the product that leads to the stream */
    hn_runs rows[HN_MIXER_SHARES]; /* the own rows of its tensors (hn_tensor_row.share) */
} hn_mixer_split;

/* Of kinds that attend: their part of `work` and `widen`. keep: what the layer keeps. */
void hn_attention_work(const hn_layer_desc *l, const hn_cache_group *keep, hn_dtype type, int committed, int n, hn_kv_work *w);
void hn_attention_widen(hn_widths *w, const hn_layer_desc *l, const hn_width_of *of);

/* Attention's tensors, by their roles; the other rows are empty. */
extern const hn_tensor_row hn_attention_tensors[HN_ROLES_OF_MIXERS];

enum { HN_MIXER_MATRICES = 8 };
struct hn_mixer_kind {
    const char *name;
    bool attends;           /* it stores keys */
    bool grid;              /* its states are those at multiples of HN_GRID rows (ops/ssm.h); no layer of the model has others */
    const char *as_stored;  /* why a folder's weights are written as they are stored alone; NULL: they may get another type */
    /* Tensors that it has alone, the first HN_ROLE_OF(name, 0), loaded to places in its own weights. */
    const hn_tensor_row *tensor;
    int n_tensors;
    size_t weights;
    /* Its matrices, at most HN_MIXER_MATRICES, those that it lacks have no rows; returns their number. NULL: it has none. */
    int (*matrices)(const hn_layer *l, const void *own, const hn_weight *w[]);
    /* Chooses the forms of inputs inside of it; returns those that its own must have. NULL: it reads HN_ACT_F32. */
    int (*forms)(const hn_backend *b, hn_layer *l, void *own);
    /* What it keeps of a text: groups of this layer alone (name, kind, window, heads or units); returns their number. NULL: nothing. */
    int (*keeps)(const hn_layer_desc *l, const hn_mixer_desc *own, hn_cache_group keep[HN_MOST_KEPT]);
    void (*work)(const hn_layer_desc *l, const hn_mixer_desc *own, hn_dtype type, int committed, int n, hn_kv_work *w);
    void (*widen)(hn_widths *w, const hn_layer_desc *l, const hn_mixer_desc *own, const hn_width_of *of);
    void (*run)(const hn_exec *ex, const hn_mixing *x);
    /* What of `run` a backend has not, by the name that a message has; returns NULL if it has all. NULL: it needs nothing. */
    const char *(*lacks)(const hn_backend *b, const hn_layer_desc *l);
    /* Stores what rows keep, computed from their inputs, and nothing else; NULL: it cannot. */
    void (*context)(const hn_exec *ex, const hn_mixing *x);
    /* How a GGUF's tensor differs from the folder's, of its own roles and those of all mixers. NULL: as for all. */
    hn_tensor_change (*change)(const hn_arch *a, const hn_layer_desc *l, const hn_mixer_desc *own, hn_role role);
    /* Of other kinds than attention: the part of a rank. s->mixed has ranks and rank. Returns whether each has something. NULL: it is not
     * divided. `result`: the product that leads to the stream, in its weights. */
    bool (*divide)(const hn_mixer_desc *whole, hn_mixer_desc *own, hn_mixer_split *s);
    size_t result;
};
#endif
