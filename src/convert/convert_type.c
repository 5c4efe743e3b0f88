/* SPDX-License-Identifier: Apache-2.0 */
/* convert_type.c - conversion of float matrices to the types that a head's matrices are packed in when it opens
 * (weights.c), by the same arithmetic, so that a quantised file drafts the same tokens as the floats that it was made
 * of. */
#include <string.h>

#include "base/mem.h"
#include "convert/convert_private.h"

hunch_status hn_convert_type(const char *name, hn_dtype *type, hunch_error *err) {
    static const char *const names[] = {"q8_0", "q4_0", "bf16", "f32"};
    static const hn_dtype types[] = {HN_Q8_0, HN_Q4_0, HN_BF16, HN_F32};
    *type = HN_WEIGHT_TYPES;
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) *type = types[i];
    if (!name || *type != HN_WEIGHT_TYPES) return HUNCH_OK;
    return hn_fail(err, HUNCH_USAGE, "type %.40s: expected q8_0, q4_0, bf16 or f32", name);
}

hn_dtype hn_conversion_type(const hn_conversion *c, const hn_tensor *t) {
    size_t row;
    if (!c->convert || t->dtype > HN_BF16) return t->dtype; /* quantised matrices are not converted */
    return hn_dtype_row_bytes(c->as, t->dims[0], &row) ? c->as : HN_BF16;
}

/* Row by row; only the result is in memory as a whole. */
static hunch_status convert_rows(hn_conversion *c, const hn_tensor *t, hn_dtype type, size_t row_bytes, char *out) {
    const size_t n = (size_t)t->dims[0], rows = (size_t)t->dims[1], stored_bytes = t->bytes / rows;
    float *floats = hn_alloc(n * sizeof *floats);
    void *stored = hn_alloc(stored_bytes);
    hunch_status st = floats && stored ? HUNCH_OK : hn_fail_memory(c->err, t->name, n * sizeof *floats + stored_bytes);
    for (size_t i = 0; !st && i < rows; i++) {
        st = hn_source_read(c->src, t, i * stored_bytes, stored_bytes, stored, c->err);
        if (st) break;
        hn_dequantise(t->dtype, stored, n, floats);
        hn_quantise(type, floats, n, out + i * row_bytes);
    }
    hn_free(floats);
    hn_free(stored);
    return st;
}

hunch_status hn_conversion_read_as(hn_conversion *c, const hn_tensor *t, hn_dtype type, void **out, size_t *bytes) {
    size_t row = 0;
    *out = NULL;
    if (!hn_dtype_row_bytes(type, t->dims[0], &row) || !hn_mul_size(row, (size_t)t->dims[1], bytes))
        return hn_fail_memory(c->err, t->name, SIZE_MAX);
    *out = hn_alloc(*bytes);
    hunch_status st = *out ? convert_rows(c, t, type, row, *out) : hn_fail_memory(c->err, t->name, *bytes);
    if (!st) return HUNCH_OK;
    hn_free(*out);
    *out = NULL;
    return st;
}
