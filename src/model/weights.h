/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - a model's matrices and vectors on their way from the file into memory: first a plan (every tensor found and
 * checked, every place known), then one block of memory and the load. Which tensors make a model: model.c. */
#ifndef HN_WEIGHTS_H
#define HN_WEIGHTS_H
#include "base/name_list.h"
#include "model/model.h"

/* Rows (of a vector: values) that a file has in pairs (hn_paired_row), `dims` of the `size` of each head. size 0: in their order. */
typedef struct hn_turn {
    int size, dims;
} hn_turn;

/* One tensor's way: a matrix (weight) or a vector of floats (vector). */
typedef struct hn_placement {
    hn_tensor *tensor;
    hn_weight *weight;
    hn_buf *vector;
    size_t off;
    float more, times; /* a vector's values: times * value + more */
    int first, out;    /* the tensor's rows (a vector's: values) that it is, of experts of each sheet */
    int expert, sheets; /* of experts: which matrices of the weight it holds; sheets 0: all of a plain one */
    hn_tensor *factors; /* of F8_E4M3 */
    hn_turn turn;
    hn_change change;
} hn_placement;

typedef struct hn_plan {
    hn_model *m;
    hn_source *src;
    bool mapped; /* matrices stay in the file */
    bool mapped_experts; /* those of experts do */
    bool convert; /* matrices of floats are packed as `as`, or where their rows are not whole blocks of that, as BF16 */
    hn_dtype as;
    bool finite; /* matrices and vectors of floats are refused where a value is not finite */
    hn_placement *item; /* owned; room for all is made by hn_plan_begin */
    int n;
    hn_weight *last;    /* the matrix that was planned last */
    size_t last_off;    /* its place */
    size_t bytes;  /* of memory */
    uint64_t stored; /* of matrices in the file */
    uint64_t experts_memory, experts_stored; /* of experts: what they would take packed, and take in the file */
    size_t tables; /* where those of the rotation begin */
    hn_name_list *missing; /* names of tensors that the file lacks go here, and the plan goes on, for what it says alone; NULL: the first is an error */
    size_t strips; /* most bytes of strips that a rank packs while it computes; 0: none */
    hn_stored *each; /* of the model's, those that are free */
} hn_plan;

/* Rows of the tensor that a matrix (or values that a vector) is: a part of a fused one, or with count 0 all. */
typedef struct hn_part {
    int first, count;
} hn_part;

/* room: most tensors there will be. m->ops is filled. */
hunch_status hn_plan_begin(hn_plan *p, hn_model *m, hn_source *src, bool mapped, size_t room, hunch_error *err);
/* HUNCH_REFUSED where the tensor is missing, has another shape or a type without kernels. A vector that the description does not
 * have is left out. */
hunch_status hn_plan_vector(hn_plan *p, hn_role role, int layer, hn_part part, hn_buf *dst, hunch_error *err);
/* pair: the strips of this matrix alternate with those of the one planned before it, which has equal shape. */
hunch_status hn_plan_matrix(hn_plan *p, hn_role role, int layer, hn_part part, bool pair, hn_weight *w, hunch_error *err);
/* Weights of a convolution, [channels][taps]: dst gets [taps][channels]. */
hunch_status hn_plan_convolution(hn_plan *p, hn_role role, int layer, hn_buf *dst, hunch_error *err);
/* All experts' matrices of a role as one weight: of a tensor that has them all, or of one each. */
hunch_status hn_plan_experts(hn_plan *p, hn_role role, int layer, hn_part part, bool pair, hn_weight *w, hunch_error *err);
/* Whether a matrix stays in its file. */
bool hn_plan_leaves(const hn_plan *p, const hn_weight *w);
/* The same by name and shape, for what has no role. A vector may have further dimensions of 1. */
hunch_status hn_plan_named_vector(hn_plan *p, const char *name, int count, hn_buf *dst, hunch_error *err);
hunch_status hn_plan_named_matrix(hn_plan *p, const char *name, int in, int out, hn_weight *w, hunch_error *err);
/* Some rows of one. */
hunch_status hn_plan_named_rows(hn_plan *p, const char *name, int in, int out, hn_part part, hn_weight *w, hunch_error *err);
/* model.c: all of a layer; room for the tables of the rotation (p->tables). */
hunch_status hn_plan_layer(hn_plan *p, int layer, hunch_error *err);
void hn_plan_rotation(hn_plan *p);
enum { HN_MOST_LAYER_TENSORS = 32 }; /* beside those of experts */
size_t hn_plan_expert_tensors(const hn_arch *a); /* of all layers, at most */
size_t hn_plan_factors(const hn_tensor *factors); /* how many there are, of all matrices of a tensor */
/* Room in the model's block for what is not in the file. Returns its place. */
size_t hn_plan_room(hn_plan *p, size_t bytes);
/* Takes the memory (m->weights) and brings everything planned there. On failure m->weights is the caller's to free. */
hunch_status hn_plan_load(hn_plan *p, const hn_model_load *load, hunch_error *err);
void hn_plan_end(hn_plan *p); /* zeroed is fine */
/* model.c, behind the load: the tables of the rotation; what the inputs of all matrices must hold. */
hunch_status hn_model_load_rotation(hn_model *m, size_t tables, hunch_error *err);
void hn_model_choose_forms(hn_model *m);
#endif
