/* SPDX-License-Identifier: Apache-2.0 */
/* ffns.h - what a kind of feed-forward parts is (hn_ffn, arch/layer_desc.h): the half of a layer in which a row reads itself alone. Kinds
 * of dense parts are in layer_ffn.c, those with experts in layer_experts.c. The buffers of a pass, the forms of inputs, what a device lacks
 * and what measures work ask the kind. */
#ifndef HN_FFNS_H
#define HN_FFNS_H
#include "model/layers.h"

/* The largest widths that any layer needs of the buffers of a pass (hn_pass_buffers). */
typedef struct hn_ffn_widths {
    int gated, gate, up;       /* columns */
    int experts, used, expert; /* of layers with experts: their number, those of a row, columns */
    bool branch, halves;       /* these buffers are needed */
} hn_ffn_widths;

/* A matrix, and how many of those that it holds a row reads. */
typedef struct hn_ffn_matrix {
    const hn_weight *w;
    int used;
} hn_ffn_matrix;

enum { HN_FFN_MATRICES = 11 };
typedef struct hn_ffn_kind {
    hn_glu unit;           /* of a dense part with gates */
    const char *as_stored; /* why a folder's weights are written as they are stored alone; NULL: they may get another type */
    int (*matrices)(const hn_layer *l, hn_ffn_matrix w[HN_FFN_MATRICES]); /* returns their number; those that it lacks have no rows */
    void (*forms)(const hn_backend *b, const hn_layer_desc *d, hn_layer *l);
    void (*widen)(hn_ffn_widths *w, const hn_model *m, int layer);
    void (*run)(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s);
    const char *(*lacks)(const hn_backend *b, const hn_layer_desc *l); /* as a mixer's; NULL: it needs nothing */
} hn_ffn_kind;
extern const hn_ffn_kind hn_ffn_experts;
/* NULL: the layer has no such part. */
const hn_ffn_kind *hn_ffn_of(const hn_layer_desc *l);
#endif
