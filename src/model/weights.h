/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - loads a model's matrices and vectors from the file: first a plan (every tensor found and checked, every
 * place known), then one block of memory and the load. The list of a model's tensors: model.c. */
#ifndef HN_WEIGHTS_H
#define HN_WEIGHTS_H
#include "base/name_list.h"
#include "format/quantised.h"
#include "model/model.h"

/* Rows (values of a vector) that a file has in pairs (hn_paired_row), `dims` of the `size` of each head. size 0: not reordered. */
typedef struct hn_row_order {
    int size, dims;
} hn_row_order;

/* Where one tensor is loaded to: a matrix (weight) or a vector of floats (vector). */
typedef struct hn_placement {
    hn_tensor *tensor;
    hn_weight *weight;
    hn_buf *vector;
    size_t off;     /* of a vector in the model's block; of the factors of a matrix that stays in the file, among all */
    float more, times; /* a vector's values: times * value + more */
    int first, out;    /* the part of the tensor's rows (values of a vector), with experts of each matrix */
    const hn_runs *runs; /* or those of these runs, `out` in all; of a convolution its channels; NULL: first says it */
    int expert, matrices; /* experts: the matrices of the weight that it holds; matrices 0: a plain matrix */
    hn_fp8_factors factors;
    hn_row_order order;
    const int32_t *inputs; /* the order that its inputs are sorted in, to be written to weight->order; NULL: none */
    int each;        /* matrices > 0: rows from one matrix to the next in the tensor; 0: all its rows are a matrix's */
    bool transposed; /* the matrices' rows are the columns of the tensor's rows (weights_heads.c) */
    int vectors; /* of a tensor with a vector for each expert: their number, `first` and `out` being values of each; else 0 */
    hn_change change;
} hn_placement;

typedef struct hn_plan {
    hn_model *m;
    hn_source *src;
    bool mapped; /* matrices stay in the file */
    bool mapped_experts; /* matrices of experts do */
    bool convert; /* matrices of floats are packed as `as`, or as BF16 if their rows are not whole blocks of that */
    hn_dtype as;
    bool finite; /* matrices and vectors of floats with a value that is not finite are refused */
    hn_placement *item; /* owned */
    int n;
    hn_weight *last;    /* the matrix that was planned last */
    int sorted;         /* the item whose inputs are sorted that was planned last */
    size_t bytes;  /* of memory */
    uint64_t stored; /* of matrices in the file */
    uint64_t experts_memory, experts_stored; /* of experts: packed, and in the file; 0 where some of them cannot stay there */
    bool experts_load; /* some cannot */
    uint64_t table; /* of a table that stays in the file */
    size_t tables; /* offset of the frequencies of all rotations */
    /* collects the names of missing tensors, and the plan continues, but cannot be loaded; NULL: the first is an error */
    hn_name_list *missing;
    size_t stored_room; /* for reading matrices that stay in the file; 0: none does */
    size_t factors;     /* number of floats that matrices in the file are multiplied by */
    hn_stored *each; /* the free ones of the model's */
    hn_matrix_place stored_place; /* of matrices that stay in the file */
} hn_plan;

/* The rows of the tensor (values of a vector, channels of a convolution) that are used: a part of a fused one, or with count 0 all. */
typedef struct hn_part {
    int first, count;
    const hn_runs *runs; /* then first is 0, and they are these; they outlive the model. NULL: one after another */
} hn_part;

/* Plans all tensors of m->arch, of a model or a head (model.c): m->backend, and what p says of how they are loaded, are set. Errors as of
 * each, or with p->missing none for those. */
hunch_status hn_plan_all(hn_plan *p, hn_model *m, hn_source *src, hunch_error *err);
void hn_plan_rotations(hn_plan *p); /* room for the frequencies of all rotations (p->tables) */
/* HUNCH_REFUSED if the tensor is missing, has another shape or a type without kernels. A vector that the description
 * does not have is skipped. */
hunch_status hn_plan_vector(hn_plan *p, hn_tensor_id id, hn_part part, hn_buf *dst, hunch_error *err);
/* The weights of a norm, its kind and its eps; a bias is a vector of its own. */
hunch_status hn_plan_norm(hn_plan *p, hn_tensor_id id, hn_norm *to, hunch_error *err);
/* pair: products read this matrix together with the one planned before it, which has the same shape. */
hunch_status hn_plan_matrix(hn_plan *p, hn_tensor_id id, hn_part part, bool pair, hn_weight *w, hunch_error *err);
/* A table whose rows are read where they lie in the file: no part of what a pass reads. */
hunch_status hn_plan_table(hn_plan *p, hn_role role, hn_weight *w, hunch_error *err);
/* A matrix for each head of `heads`, of all that the tensor has: of a tensor of their own; or two, from one tensor: of each head's
 * part.first + part.count rows the first are the one, with rows and columns exchanged, those of `part` the other. */
hunch_status hn_plan_split_heads(hn_plan *p, hn_role role, int layer, hn_part heads, hn_weight *w, hunch_error *err);
hunch_status hn_plan_heads(hn_plan *p, hn_tensor_id id, hn_part part, hn_part heads, hn_weight *transposed, hn_weight *rows,
                           hunch_error *err);
hunch_status hn_load_heads(hn_plan *p, const hn_placement *it, hunch_error *err); /* of a placement that is transposed */
/* Reads the tensor's first n values as floats, to be freed with hn_free; whether numbers are finite, and the error that they are not. */
hunch_status hn_plan_read_values(const hn_source *src, const hn_tensor *t, size_t n, float **out, hunch_error *err);
bool hn_plan_all_finite(const float *f, size_t n);
hunch_status hn_plan_not_finite(const hn_source *src, const hn_tensor *t, hunch_error *err);
/* Weights of a convolution, [channels][taps]: dst gets [taps][channels] of a part of them. */
hunch_status hn_plan_convolution(hn_plan *p, hn_role role, int layer, hn_part part, hn_buf *dst, hunch_error *err);
/* The matrices of all experts for a role as one weight: from one tensor with all, or from one for each. */
hunch_status hn_plan_experts(hn_plan *p, hn_role role, int layer, hn_part part, bool pair, hn_weight *w, hunch_error *err);
/* Values [part.first, part.first + part.count) of each expert's vector (count 0: all), one expert's after another's. A role that the
 * description does not have is skipped. */
hunch_status hn_plan_expert_vectors(hn_plan *p, hn_role role, int layer, hn_part part, hn_buf *dst, hunch_error *err);
/* Whether a matrix stays in its file. */
bool hn_plan_stays_in_file(const hn_plan *p, const hn_weight *w);
/* The factors of 8-bit floats: their number, for all matrices of a tensor; their values, a product's, to be freed with hn_free. */
size_t hn_plan_factors(const hn_tensor *t);
hunch_status hn_plan_read_factors(const hn_plan *p, const hn_placement *it, float **out, hunch_error *err);
/* Reserves bytes of the model's block for data that is not in the file. Returns the offset. */
size_t hn_plan_room(hn_plan *p, size_t bytes);
/* Allocates the memory (m->weights) and loads everything planned. On failure the caller frees m->weights. */
hunch_status hn_plan_load(hn_plan *p, const hn_model_load *load, hunch_error *err);
void hn_plan_end(hn_plan *p); /* zeroed is fine */
/* model.c, after the load: the frequencies of all rotations; the forms that the inputs of all matrices must have. */
hunch_status hn_model_load_rotations(hn_model *m, size_t tables, hunch_error *err);
void hn_model_choose_forms(hn_model *m);
#endif
