/* SPDX-License-Identifier: Apache-2.0 */
/* convert_heads.c - writes the matrices of heads of latent attention to a GGUF: a folder has the rows for keys and those for values of
 * each head one after another in one tensor, a GGUF two tensors with a matrix for each head, those for keys with rows and columns
 * exchanged. Their numbers stay as they are stored. */
#include <string.h>

#include "base/mem.h"
#include "convert/convert_private.h"

/* The folder's tensor, and the part of it that a role of a GGUF has. */
typedef struct head_part {
    hn_tensor *tensor;
    size_t first, rows, each; /* rows of a head's part, and from a head to the next */
    size_t columns, value;    /* of a row; bytes of a number */
    int heads;
} head_part;

static hunch_status part_find(hn_conversion *c, hn_role role, int layer, head_part *p) {
    const hn_layer_desc *l = &c->arch.layer[layer];
    const size_t keys = (size_t)l->latent.nope, values = (size_t)l->latent.value;
    char name[128];
    uint64_t dims[2];
    hn_arch_tensor_name(&c->arch, HN_ROLE_KV_B, layer, name);
    hn_arch_tensor_shape(&c->arch, HN_ROLE_KV_B, layer, dims);
    const hunch_status status = hn_source_need(c->src, name, 2, dims[0], dims[1], &p->tensor, c->err);
    if (status)
        return status;
    if (p->tensor->dtype > HN_BF16)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: tensor %s has type %s: its rows are exchanged with its columns, expected floats",
                       hn_source_path(c->src), name, p->tensor->type_name);
    p->first = role == HN_ROLE_V_B ? keys : 0;
    p->rows = role == HN_ROLE_V_B ? values : keys;
    p->each = keys + values;
    p->columns = (size_t)dims[0];
    p->value = p->tensor->bytes / ((size_t)dims[0] * (size_t)dims[1]);
    p->heads = l->heads;
    return HUNCH_OK;
}

hunch_status hn_conversion_declare_heads(hn_conversion *c, hn_role role, int layer) {
    const hn_arch named = {.files.form = HN_SOURCE_GGUF, .family = c->arch.family, .files.first_block = c->first_layer};
    head_part p;
    char name[128];
    uint64_t dims[3];
    const hunch_status status = part_find(c, role, layer, &p);
    if (status)
        return status;
    hn_arch_tensor_name(&named, role, layer, name);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    dims[2] = (uint64_t)p.heads;
    c->total += p.rows * p.columns * p.value * (size_t)p.heads;
    return hn_gguf_declare(c->w, name, p.tensor->dtype, 3, dims, c->err);
}

static void exchange(const head_part *p, const char *from, char *to) {
    for (size_t r = 0; r < p->rows; r++)
        for (size_t i = 0; i < p->columns; i++)
            memcpy(to + (i * p->rows + r) * p->value, from + (r * p->columns + i) * p->value, p->value);
}

hunch_status hn_conversion_write_head_matrices(hn_conversion *c, hn_role role, int layer) {
    head_part p;
    hunch_status status = part_find(c, role, layer, &p);
    if (status)
        return status;
    const size_t bytes = p.rows * p.columns * p.value;
    char *part = hn_alloc(2 * bytes);
    status = part != NULL ? hn_gguf_data_begin(c->w, bytes * (size_t)p.heads, c->err)
                          : hn_fail_memory(c->err, p.tensor->name, 2 * bytes);
    for (int h = 0; h < p.heads && !status; h++) {
        const size_t at = ((size_t)h * p.each + p.first) * p.columns * p.value;
        status = hn_source_read(c->src, p.tensor, at, bytes, part, c->err);
        if (!status && role == HN_ROLE_K_B)
            exchange(&p, part, part + bytes);
        if (!status)
            status = hn_gguf_data_piece(c->w, part + (role == HN_ROLE_K_B ? bytes : 0), bytes, c->err);
        status = hn_conversion_done(c, bytes, status);
    }
    hn_free(part);
    return status;
}
