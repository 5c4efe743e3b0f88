/* SPDX-License-Identifier: Apache-2.0 */
/* convert_delta.c - the tensors of gated delta nets in a GGUF. It has the value heads tiled (head r * key_heads + k is
 * a folder's k * each + r; in Qwen3-Next, whose gates are ordered by key heads, as in the folder), decays as -e^x, and
 * weights of a convolution in two dimensions. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "convert/convert_private.h"

/* The rows of a tensor, or the columns of each row, that are value heads: from `first` on, `size` for each head. */
typedef struct heads {
    int first, size;
    bool columns;
} heads;

static heads heads_of(const hn_delta_desc *d, hn_role role) {
    const int keys = 2 * d->key_heads * d->key_dim;
    switch (role) {
    case HN_ROLE_DELTA_QKV:
    case HN_ROLE_DELTA_CONV: return (heads){keys, d->value_dim, false};
    case HN_ROLE_DELTA_Z: return (heads){0, d->value_dim, false};
    case HN_ROLE_DELTA_OUT: return (heads){0, d->value_dim, true};
    case HN_ROLE_DELTA_B:
    case HN_ROLE_DELTA_A:
    case HN_ROLE_DELTA_DECAY:
    case HN_ROLE_DELTA_DT: return (heads){0, 1, false};
    default: return (heads){0, 0, false};
    }
}

bool hn_conversion_has_heads(const hn_conversion *c, hn_role role, int layer) {
    const hn_layer_desc *l = &c->arch.layer[layer];
    return hn_role_of_layer(role) && l->mixer == HN_MIXER_DELTA && heads_of(&l->delta, role).size > 0;
}

/* Tiles items [first, ...) of `bytes` each, whose heads of `size` items are ordered by key heads. */
static void tile(const hn_delta_desc *d, const heads *h, size_t bytes, const char *from, char *to) {
    const int each = d->value_heads / d->key_heads;
    const size_t head = bytes * (size_t)h->size, first = bytes * (size_t)h->first;
    memcpy(to, from, first);
    for (int i = 0; i < d->value_heads; i++) {
        const int source = d->fused_gates ? i : i % d->key_heads * each + i / d->key_heads;
        memcpy(to + first + head * (size_t)i, from + first + head * (size_t)source, head);
    }
}

/* Converts all of the tensor to the order and values of a GGUF. */
static hunch_status change(const hn_conversion *c, const hn_tensor *t, hn_role role, int layer, const void *stored, size_t row,
                           size_t rows, void *to) {
    const hn_delta_desc *d = &c->arch.layer[layer].delta;
    const heads h = heads_of(d, role);
    if (!h.columns) {
        tile(d, &h, row, stored, to);
        return HUNCH_OK;
    }
    const size_t element = row / (size_t)(d->value_heads * d->value_dim);
    if (element * (size_t)(d->value_heads * d->value_dim) != row)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: tensor %s: columns of %s are not moved, expected floats", hn_source_path(c->src),
                       t->name, hn_dtype_name(t->dtype));
    for (size_t i = 0; i < rows; i++) tile(d, &h, element, (const char *)stored + row * i, (char *)to + row * i);
    return HUNCH_OK;
}

/* Vectors and convolutions are written as floats. */
static hunch_status to_floats(hn_conversion *c, const hn_tensor *t, hn_role role, void **stored, size_t *bytes) {
    const size_t n = t->bytes / (size_t)hn_dtype_block_bytes(t->dtype) * (size_t)hn_dtype_block(t->dtype);
    float *f = hn_alloc(n * sizeof *f);
    if (!f) return hn_fail_memory(c->err, t->name, n * sizeof *f);
    hn_dequantise(t->dtype, *stored, n, f);
    for (size_t i = 0; i < n && role == HN_ROLE_DELTA_DECAY; i++) f[i] = (float)-exp((double)f[i]);
    hn_free(*stored);
    *stored = f;
    *bytes = n * sizeof *f;
    return HUNCH_OK;
}

hunch_status hn_conversion_write_heads(hn_conversion *c, const hn_tensor *t, hn_role role, int layer) {
    uint64_t dims[2];
    size_t bytes = t->bytes;
    void *stored = hn_alloc(t->bytes), *to = NULL;
    const bool vector = hn_role_is_vector(role);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    const size_t rows = (size_t)(vector && role != HN_ROLE_DELTA_CONV ? dims[0] : dims[1]);
    hunch_status st = stored ? hn_source_read(c->src, t, 0, t->bytes, stored, c->err) : hn_fail_memory(c->err, t->name, t->bytes);
    if (!st && vector) st = to_floats(c, t, role, &stored, &bytes);
    if (!st && !(to = hn_alloc(bytes))) st = hn_fail_memory(c->err, t->name, bytes);
    if (!st) st = change(c, t, role, layer, stored, bytes / rows, rows, to);
    if (!st) st = hn_gguf_data(c->w, to, bytes, c->err);
    hn_free(to);
    hn_free(stored);
    return st;
}
