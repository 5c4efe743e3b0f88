/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - a model over ranks (docs/machines.md): which part of it a rank has. The file's description stays whole, for names and shapes;
 * passes run a list of layers of their own (hn_model.run), with the heads and widths of this rank. Matrices are divided by outputs: q, k
 * and v by heads, gate and up by columns, also those of every expert, o and down by columns of the stream, the output by parts of the
 * vocabulary. What o and down read and give is joined (layer_product.c). The embedding is everywhere, and the leader has the output whole,
 * since draft heads may use it. */
#ifndef HN_SPLIT_H
#define HN_SPLIT_H
#include "model/mixers.h"
#include "model/weights.h"

typedef struct hn_layer_split {
    hn_mixer_split mixer; /* mixed: columns of what o reads */
    hn_slices gated, expert, shared; /* of what down reads, and down of experts, and of the shared one */
    hn_slices q, k; /* of queries and keys that are normed as whole rows: a head that several ranks have is the first one's */
} hn_layer_split;

struct hn_model_split {
    hn_layer_split *layer; /* owned: [layers] */
    hn_layer_desc *own;    /* owned: [layers] what this rank computes of each */
    hn_slices hidden, vocab;
    hn_weight output; /* the own slice of the model's output, which may be none of it */
};

/* What ranks exchange in a pass by this description: the number of exchanges; returns bytes of a row. number: bytes of an input of products
 * where it goes in the form that they read. */
double hn_split_exchanged(const hn_arch *a, double number, int *exchanges);
/* Once the description is read, if the backend has a link. Errors: HUNCH_REFUSED: something is not divided yet, or there are too few heads.
 * close: always. */
hunch_status hn_split_open(hn_model *m, const hn_source *src, hunch_error *err);
void hn_split_close(hn_model *m);
/* The own part of a part of a tensor. */
hn_part hn_split_part(const hn_model *m, hn_tensor_id t, hn_part part);
hn_part hn_split_output(const hn_model *m);
hn_part hn_split_heads(const hn_model *m, int layer); /* the own heads of queries */
/* Columns of a product's results, which the next product reads: in whole groups (hn_slices.groups) if there are as many as ranks, else in
 * smaller units. Whether they are in whole groups; whether some rank has none. */
void hn_split_columns(hn_slices *s, int cols);
void hn_split_mark_groups(hn_slices *s);
bool hn_split_has_empty(const hn_slices *s);
/* After the load: matrices get their slices. */
void hn_split_finish(hn_model *m);
#endif
