/* SPDX-License-Identifier: Apache-2.0 */
/* weights_heads.c - loads the matrices of heads whose rows and columns are exchanged: the part of a tensor that makes keys of a latent
 * row is used the other way round, on queries (mixer_latent.c). */
#include <string.h>

#include "base/mem.h"
#include "model/weights.h"
#include "ops/pack.h"

/* One matrix at a time. */
typedef struct transposition {
    hn_plan *p;
    const hn_placement *it;
    const float *factors; /* of the whole tensor; NULL: none */
    size_t stored_row, row; /* bytes of a row in the file; of the result */
    unsigned char *stored;  /* [in] rows of the tensor */
    float *values;          /* [in][out], then a row of the result */
    unsigned char *rows;    /* [out] rows of the result */
} transposition;

/* The factor of a value of the tensor, by its row and column. */
static float factor_at(const transposition *x, size_t row, size_t column) {
    const size_t across = ((size_t)x->it->weight->out + HN_F8_TILE - 1) / HN_F8_TILE;
    return x->factors[row / HN_F8_TILE * across + column / HN_F8_TILE];
}

/* 8-bit floats stay as they are, and so do their factors, which are found by the other index. */
static void transpose_bytes(const transposition *x) {
    const size_t in = (size_t)x->it->weight->in, out = (size_t)x->it->weight->out;
    for (size_t c = 0; c < out; c++)
        for (size_t r = 0; r < in; r++) x->rows[c * in + r] = x->stored[r * out + c];
}

static hunch_status transpose_values(const transposition *x, size_t first, hunch_error *err) {
    const hn_weight *w = x->it->weight;
    const hn_tensor *t = x->it->tensor;
    const size_t in = (size_t)w->in, out = (size_t)w->out;
    float *row = x->values + in * out;
    for (size_t r = 0; r < in; r++) {
        float *to = x->values + r * out;
        hn_dequantise(t->dtype, x->stored + r * x->stored_row, out, to);
        for (size_t c = 0; c < out && x->factors; c++) to[c] *= factor_at(x, first + r, c);
        if (x->p->finite && !hn_plan_all_finite(to, out)) return hn_plan_not_finite(x->p->src, t, err);
    }
    for (size_t c = 0; c < out; c++) {
        for (size_t r = 0; r < in; r++) row[r] = x->values[r * out + c];
        hn_quantise(w->dtype, row, in, x->rows + c * x->row);
    }
    return HUNCH_OK;
}

/* Packs the result as matrix number `head`. */
static void pack_head(const transposition *x, int head) {
    const hn_weight *w = x->it->weight;
    hn_backend *b = x->p->m->backend;
    float factors[HN_MAX_HEAD_DIM / HN_F8_TILE + 1];
    for (int column = 0; column < w->out; column += HN_STRIP) {
        for (int k = 0; w->dtype == HN_F8_E4M3 && k * HN_F8_TILE < w->in; k++)
            factors[k] = factor_at(x, (size_t)(x->it->first + head * x->it->each + k * HN_F8_TILE), (size_t)column);
        b->pack(b, w, head, column, x->rows + (size_t)column * x->row, x->row, w->dtype == HN_F8_E4M3 ? factors : NULL);
    }
}

static hunch_status transpose_all(transposition *x, hunch_error *err) {
    const hn_placement *it = x->it;
    hunch_status st = HUNCH_OK;
    for (int head = 0; !st && head < it->matrices; head++) {
        const size_t first = (size_t)it->first + (size_t)head * (size_t)it->each;
        st = hn_source_read(x->p->src, it->tensor, first * x->stored_row, (size_t)it->weight->in * x->stored_row, x->stored, err);
        if (st) return st;
        if (it->weight->dtype == HN_F8_E4M3)
            transpose_bytes(x);
        else
            st = transpose_values(x, first, err);
        if (!st) pack_head(x, head);
    }
    return st;
}

hunch_status hn_load_heads(hn_plan *p, const hn_placement *it, hunch_error *err) {
    hn_weight *w = it->weight;
    const size_t in = (size_t)w->in, out = (size_t)w->out;
    float *factors = NULL;
    transposition x = {.p = p, .it = it};
    hunch_status st = it->factors.values ? hn_plan_read_factors(p, it, &factors, err) : HUNCH_OK;
    if (st) return st;
    hn_dtype_row_bytes(it->tensor->dtype, it->tensor->dims[0], &x.stored_row);
    hn_dtype_row_bytes(w->dtype, in, &x.row);
    x.factors = factors;
    x.stored = hn_alloc(in * x.stored_row);
    x.values = hn_alloc((in * out + in) * sizeof *x.values);
    x.rows = hn_alloc(out * x.row);
    w->place.at.mem = p->m->weights;
    st = x.stored && x.values && x.rows ? transpose_all(&x, err) : hn_fail_memory(err, it->tensor->name, in * out * sizeof *x.values);
    hn_free(x.stored);
    hn_free(x.values);
    hn_free(x.rows);
    hn_free(factors);
    return st;
}
