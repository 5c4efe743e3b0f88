/* SPDX-License-Identifier: Apache-2.0 */
/* convert_experts.c - writes experts to a GGUF: one tensor with the gates of all experts, one with their ups, one with
 * their downs, in the order of experts, whether the folder has one tensor for each expert or stacks them; and their biases. */
#include <string.h>

#include "base/mem.h"
#include "convert/convert_private.h"

/* Rows [first, first + rows) of a tensor: an expert's matrix. */
typedef struct expert_matrix {
    hn_tensor *tensor;
    size_t first, rows, row_bytes;
} expert_matrix;

/* Finds the folder's matrix of one expert for a role of a GGUF. */
static hunch_status matrix_find(hn_conversion *c, hn_role role, int layer, int expert, expert_matrix *s) {
    const hn_arch *a = &c->arch;
    const hn_expert_desc *e = &a->layer[layer].experts;
    const bool half = e->stacked && role != HN_ROLE_EXPERT_DOWN && role != HN_ROLE_EXPERT_GATE_UP;
    const hn_role own = half ? HN_ROLE_EXPERT_GATE_UP : role;
    const int matrices = hn_arch_matrices(a, own, layer);
    uint64_t dims[3];
    char name[128];
    hn_arch_expert_name(a, own, layer, expert, name);
    hn_arch_tensor_shape(a, own, layer, dims);
    dims[2] = (uint64_t)matrices;
    hunch_status status = hn_source_need_shape(c->src, name, matrices > 1 ? 3 : 2, dims, &s->tensor, c->err);
    if (status)
        return status;
    s->rows = half ? (size_t)e->width : (size_t)dims[1];
    s->first = (matrices > 1 ? (size_t)expert * (size_t)dims[1] : 0) + (role == HN_ROLE_EXPERT_UP && half ? s->rows : 0);
    s->row_bytes = s->tensor->bytes / ((size_t)dims[1] * (size_t)dims[2]);
    return HUNCH_OK;
}

static hunch_status check_type(hn_conversion *c, const hn_tensor *first, const hn_tensor *t) {
    if (t->dtype == HN_F8_E4M3)
        return hn_conversion_refuse_fp8(c, t);
    if (t->dtype == first->dtype)
        return HUNCH_OK;
    return hn_fail(c->err, HUNCH_REFUSED, "%s: tensor %s has type %s: expected one type of all experts of a layer",
                   hn_source_path(c->src), t->name, t->type_name);
}

hunch_status hn_conversion_declare_experts(hn_conversion *c, hn_role role, int layer) {
    const hn_arch named = {.files.form = HN_SOURCE_GGUF, .family = c->arch.family, .files.first_block = c->first_layer};
    const int count = c->arch.layer[layer].experts.count;
    hunch_status status = HUNCH_OK;
    hn_tensor *first = NULL;
    char name[128];
    uint64_t dims[3];
    for (int e = 0; e < count && !status; e++) {
        expert_matrix s;
        status = matrix_find(c, role, layer, e, &s);
        if (status)
            break;
        if (first == NULL)
            first = s.tensor;
        c->total += s.rows * s.row_bytes;
        status = check_type(c, first, s.tensor);
    }
    if (status)
        return status;
    hn_arch_tensor_name(&named, role, layer, name);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    dims[2] = (uint64_t)count;
    return hn_gguf_declare(c->w, name, first->dtype, 3, dims, c->err);
}

static hunch_status matrix_write(hn_conversion *c, const expert_matrix *s, void *buffer) {
    const size_t first = s->first * s->row_bytes, bytes = s->rows * s->row_bytes;
    return hn_conversion_done(c, bytes, hn_conversion_copy(c, s->tensor, first, bytes, buffer));
}

hunch_status hn_conversion_write_experts(hn_conversion *c, hn_role role, int layer) {
    const int count = c->arch.layer[layer].experts.count;
    expert_matrix s;
    hunch_status status = matrix_find(c, role, layer, 0, &s);
    void *buffer = !status ? hn_alloc(HN_CONVERSION_PIECE) : NULL;
    if (!status)
        status = buffer != NULL ? hn_gguf_data_begin(c->w, s.rows * s.row_bytes * (size_t)count, c->err)
                                : hn_fail_memory(c->err, "experts", HN_CONVERSION_PIECE);
    for (int e = 0; e < count && !status; e++) {
        status = matrix_find(c, role, layer, e, &s);
        if (!status)
            status = matrix_write(c, &s, buffer);
    }
    hn_free(buffer);
    return status;
}

/* ---- biases ---- */

/* The folder's tensor of vectors for a role of a GGUF, and the first value of each that is the role's. */
static hunch_status vectors_find(hn_conversion *c, hn_role role, int layer, hn_tensor **t, size_t *first) {
    const hn_expert_desc *e = &c->arch.layer[layer].experts;
    const bool half = e->stacked && role != HN_ROLE_EXPERT_DOWN_BIAS;
    const hn_role own = half ? HN_ROLE_EXPERT_GATE_UP_BIAS : role;
    uint64_t dims[2];
    char name[128];
    *first = half && role == HN_ROLE_EXPERT_UP_BIAS ? (size_t)e->width : 0;
    hn_arch_tensor_name(&c->arch, own, layer, name);
    hn_arch_tensor_shape(&c->arch, own, layer, dims);
    return hn_source_need(c->src, name, 2, dims[0], dims[1], t, c->err);
}

/* Values [first, first + each) of every vector of the tensor, as floats. */
static hunch_status vectors_write(hn_conversion *c, const hn_tensor *t, size_t first, size_t each) {
    const size_t count = (size_t)t->dims[1], stored = (size_t)t->dims[0], n = count * stored;
    void *raw = hn_alloc(t->bytes);
    float *values = hn_zalloc(n, sizeof *values);
    hunch_status status = raw && values ? hn_source_read(c->src, t, 0, t->bytes, raw, c->err)
                                        : hn_fail_memory(c->err, t->name, t->bytes + n * sizeof *values);
    if (!status) {
        hn_dequantise(t->dtype, raw, n, values);
        for (size_t e = 0; e < count; e++)
            memmove(values + e * each, values + e * stored + first, each * sizeof *values);
        status = hn_gguf_data(c->w, values, count * each * sizeof *values, c->err);
    }
    hn_free(values);
    hn_free(raw);
    return hn_conversion_done(c, count * each * (t->bytes / n), status);
}

hunch_status hn_conversion_visit_expert_vectors(hn_conversion *c, hn_role role, int layer, bool write) {
    const hn_arch named = {.files.form = HN_SOURCE_GGUF, .family = c->arch.family, .files.first_block = c->first_layer};
    uint64_t dims[2];
    size_t first;
    hn_tensor *t;
    char name[128];
    hunch_status status = vectors_find(c, role, layer, &t, &first);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    if (status)
        return status;
    if (write)
        return vectors_write(c, t, first, (size_t)dims[0]);
    c->total += (size_t)dims[0] * (size_t)dims[1] * (t->bytes / (size_t)(t->dims[0] * t->dims[1]));
    hn_arch_tensor_name(&named, role, layer, name);
    return hn_gguf_declare(c->w, name, HN_F32, 2, dims, c->err);
}
