/* SPDX-License-Identifier: Apache-2.0 */
/* convert_experts.c - writes experts to a GGUF: one tensor with the gates of all experts, one with their ups, one with
 * their downs, in the order of experts, whether the folder has one tensor for each expert or stacks them. */
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
    const bool half = e->stacked && role != HN_ROLE_EXPERT_DOWN;
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

static hunch_status check_type(const hn_conversion *c, const hn_tensor *first, const hn_tensor *t) {
    if (t->dtype == first->dtype && t->dtype != HN_F8_E4M3)
        return HUNCH_OK;
    return hn_fail(c->err, HUNCH_REFUSED, "%s: tensor %s has type %s: expected one type of all experts of a layer that a GGUF has",
                   hn_source_path(c->src), t->name, t->type_name);
}

hunch_status hn_conversion_declare_experts(hn_conversion *c, hn_role role, int layer) {
    const hn_arch named = {.files.form = HN_SOURCE_GGUF, .dense = c->arch.dense, .files.first_block = c->first_layer};
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
