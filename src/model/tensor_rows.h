/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_rows.h - the properties of a tensor, a row each: those of all models, heads and steps are in roles.c, those of a kind of mixers in
 * its file. */
#ifndef HN_TENSOR_ROWS_H
#define HN_TENSOR_ROWS_H
#include "model/model.h"

typedef bool hn_has_fn(const hn_arch *a, const hn_layer_desc *l);
typedef uint64_t hn_size_fn(const hn_arch *a, const hn_layer_desc *l, hn_tensor_id t);
typedef int hn_count_fn(const hn_arch *a, int k);
uint64_t hn_size_one(const hn_arch *a, const hn_layer_desc *l, hn_tensor_id t);
uint64_t hn_size_hidden(const hn_arch *a, const hn_layer_desc *l, hn_tensor_id t);

enum { HN_SHARE_STREAM = -1 }; /* those of the stream's columns */
struct hn_plan;
typedef struct hn_tensor_row {
    /* in a GGUF, in a folder, in a folder whose experts are stacked, in a GGUF with a tensor for each expert (NULL: the
     * first or second); %d is the layer, then the expert */
    const char *name[4];
    hn_role_kind kind;
    hn_size_fn *in, *out;   /* a vector's length is `in`; `out` is the number of an expert's */
    hn_phase phase;         /* of a matrix's product */
    hn_has_fn *has;         /* NULL: always */
    /* where it is loaded to in hn_model, hn_layer, hn_step or a mixer's weights: an hn_weight, hn_norm or a vector's hn_buf, plus 1;
     * 0: elsewhere */
    int at;
    hn_count_fn *count;     /* of a head's parts: tensors, NULL: one; of steps: those of step k */
    hn_role of[4];          /* it is instead of these, whose rows or values it has one after another */
    bool pair;              /* products read it together with the one before it */
    hn_change change;       /* of its values */
    float eps;              /* of a norm; 0: the model's */
    bool by_row;            /* a pass reads one row of it, unless logits are made of it too */
    const char *other;      /* the name in a GGUF that has none of its own */
    hunch_status (*plan)(struct hn_plan *p, hn_tensor_id t, hunch_error *err); /* NULL: as its kind is */
    hn_role from;           /* a GGUF has it even if the folder has this tensor instead, of whose rows */
    hn_size_fn *from_row;   /* it is those from this one on; NULL: 0 */
    bool folder;            /* a GGUF does not have it */
    hn_size_fn *across;     /* of a vector: a GGUF has it as a matrix of so many rows; NULL: of one */
    int share;              /* of a mixer's own: which rows of it a rank has (hn_mixer_split): 1 + a number of `rows`, or HN_SHARE_STREAM;
                             * 0: all */
} hn_tensor_row;
const hn_tensor_row *hn_tensor_row_of(hn_role role);

/* Conditions and sizes. */
#define HN_TENSOR_HAS(name, condition) \
    static bool name(const hn_arch *a HN_UNUSED, const hn_layer_desc *l HN_UNUSED) { return condition; }
#define HN_TENSOR_SIZE(name, value) \
    static uint64_t name(const hn_arch *a HN_UNUSED, const hn_layer_desc *l HN_UNUSED, hn_tensor_id t HN_UNUSED) { \
        return (uint64_t)(value);                                                                                  \
    }
#define HN_AT_LAYER(member) (int)offsetof(hn_layer, member) + 1
/* Names of a layer's tensors. */
#define HN_TENSOR_GGUF(part) "blk.%d." part
#define HN_TENSOR_FOLDER(part) "model.layers.%d." part

/* How a GGUF's tensor differs from the folder's. Items are a matrix's rows, a vector's values. PAIRED: those of heads, rotated in halves
 * in a folder, in neighbouring pairs in the family's GGUF; HALVED: the opposite. TILED: those of heads that share another, in a folder by
 * these (head k * each + r), in a GGUF r * keys + k; with COLUMNS those of the columns. TRANSPOSED: rows and columns of a matrix. */
typedef enum hn_way { HN_AS_STORED, HN_PAIRED, HN_HALVED, HN_TILED, HN_TILED_COLUMNS, HN_TRANSPOSED } hn_way;
typedef struct hn_tensor_change {
    hn_way way;
    int size;        /* items of a head */
    int first, dims; /* PAIRED, HALVED: those of a head that are rotated; TILED: items before the first head */
    int keys, each;  /* TILED */
} hn_tensor_change;
#endif
