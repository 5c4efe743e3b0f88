/* SPDX-License-Identifier: Apache-2.0 */
/* target_rows.c - see target_rows.h. */
#include "train/data/target_rows.h"

#include "base/mem.h"

/* Reads row `row` of a matrix as floats times `scale`. stored: room for the row as stored. */
static hunch_status read_row(const hn_source *src, const hn_tensor *t, int32_t row, void *stored, float scale,
                             float *to, hunch_error *err) {
    size_t bytes;
    hn_dtype_row_bytes(t->dtype, t->dims[0], &bytes);
    hunch_status st = hn_source_read(src, t, (size_t)row * bytes, bytes, stored, err);
    if (st) return st;
    hn_dequantise(t->dtype, stored, (size_t)t->dims[0], to);
    for (uint64_t i = 0; i < t->dims[0]; i++) to[i] *= scale;
    return HUNCH_OK;
}

/* ids NULL: rows 0 .. n - 1. */
static hunch_status read_rows(hn_source *src, const hn_arch *a, hn_role role, const int32_t *ids, int n, float scale,
                              float **out, hunch_error *err) {
    char name[128];
    hn_tensor *t;
    size_t bytes;
    hn_arch_tensor_name(a, role, 0, name);
    hunch_status st = hn_source_need(src, name, 2, (uint64_t)a->hidden, (uint64_t)a->vocab, &t, err);
    if (st) return st;
    if (t->dtype == HN_F8_E4M3 || !hn_dtype_row_bytes(t->dtype, t->dims[0], &bytes))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s of type %s: expected a type whose rows can be read one by "
                                           "one",
                       hn_source_path(src), name, hn_dtype_name(t->dtype));
    *out = hn_alloc((size_t)n * (size_t)a->hidden * sizeof **out);
    void *stored = hn_alloc(bytes);
    if (!*out || !stored) st = hn_fail_memory(err, name, (size_t)n * (size_t)a->hidden * sizeof **out);
    for (int i = 0; !st && i < n; i++)
        st = read_row(src, t, ids ? ids[i] : i, stored, scale, *out + (size_t)i * (size_t)a->hidden, err);
    hn_free(stored);
    return st;
}

static hunch_status read_norm(hn_source *src, const hn_arch *a, float **out, hunch_error *err) {
    char name[128];
    hn_tensor *t;
    hn_arch_tensor_name(a, HN_ROLE_OUTPUT_NORM, 0, name);
    hunch_status st = hn_source_need(src, name, 1, (uint64_t)a->hidden, 1, &t, err);
    if (st) return st;
    *out = hn_alloc((size_t)a->hidden * sizeof **out);
    void *stored = hn_alloc(t->bytes);
    if (!*out || !stored) st = hn_fail_memory(err, name, t->bytes);
    if (!st) st = hn_source_read(src, t, 0, t->bytes, stored, err);
    if (!st) hn_dequantise(t->dtype, stored, (size_t)a->hidden, *out);
    for (int i = 0; !st && i < a->hidden; i++) (*out)[i] += hn_arch_vector_more(a, HN_ROLE_OUTPUT_NORM);
    hn_free(stored);
    return st;
}

hunch_status hn_target_rows_read(hn_target_rows *r, const char *path, const hn_arch *a, const int32_t *ids, int kept,
                                 hunch_error *err) {
    hn_source *src = NULL;
    *r = (hn_target_rows){.vocab = a->vocab, .hidden = a->hidden, .kept = kept, .cap = a->logit_cap};
    hunch_status st = hn_source_open(&src, path, err);
    if (!st) st = read_rows(src, a, HN_ROLE_EMBEDDING, NULL, a->vocab, 1, &r->embedding, err);
    if (!st)
        st =
            read_rows(src, a, a->tied ? HN_ROLE_EMBEDDING : HN_ROLE_OUTPUT, ids, kept, a->logit_scale, &r->output, err);
    if (!st) st = read_norm(src, a, &r->norm, err);
    hn_source_close(&src);
    if (st) hn_target_rows_free(r);
    return st;
}

void hn_target_rows_free(hn_target_rows *r) {
    hn_free(r->embedding);
    hn_free(r->output);
    hn_free(r->norm);
    *r = (hn_target_rows){0};
}
