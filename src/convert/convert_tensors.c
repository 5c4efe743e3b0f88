/* SPDX-License-Identifier: Apache-2.0 */
/* convert_tensors.c - the tensors of a model's layers, by their roles: declared under their names in a GGUF, then written with their
 * rows in the order that the family has there. Experts: convert_experts.c; gated delta nets: convert_delta.c. */
#include "convert/convert_private.h"

#include <string.h>

#include "base/mem.h"
#include "format/quantised.h"

/* ---- declaring ---- */

static hunch_status role_need(hn_conversion *c, hn_role role, int layer, hn_tensor **t) {
    char name[128];
    uint64_t dims[2];
    hn_arch_tensor_name(&c->arch, role, layer, name);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    if (role == HN_ROLE_DELTA_CONV) return hn_source_need_shape(c->src, name, 3, (uint64_t[]){dims[0], 1, dims[1]}, t, c->err);
    return hn_source_need(c->src, name, hn_role_is_vector(role) ? 1 : 2, dims[0], dims[1], t, c->err);
}

hunch_status hn_conversion_refuse_fp8(hn_conversion *c, const hn_tensor *t) {
    hn_fp8_factors factors;
    const hunch_status status = hn_quantised_fp8(c->src, t, t->n_dims > 2 ? (int)t->dims[2] : 1, &factors, c->err);
    return status ? status
                  : hn_fail(c->err, HUNCH_REFUSED,
                            "%s: tensor %s: a GGUF has no 8-bit floats; expected another type, or run the folder as it is",
                            hn_source_path(c->src), t->name);
}

hunch_status hn_conversion_declare(hn_conversion *c, const hn_tensor *t, const char *name, bool vector,
                                   const uint64_t dims[2]) {
    c->total += t->bytes;
    if (vector)
        return hn_gguf_declare(c->w, name, HN_F32, 1, dims, c->err);
    if (t->dtype == HN_F8_E4M3)
        return hn_conversion_refuse_fp8(c, t);
    return hn_gguf_declare(c->w, name, hn_conversion_type(c, t), 2, dims, c->err);
}

hunch_status hn_conversion_declare_role(hn_conversion *c, hn_role role, int layer) {
    char name[128];
    const hn_arch named = {.files.form = HN_SOURCE_GGUF, .family = c->arch.family, .files.first_block = c->first_layer};
    uint64_t dims[2];
    hn_tensor *t;
    if (hn_role_of_experts(role))
        return hn_conversion_declare_experts(c, role, layer);
    if (hn_role_of_expert_vectors(role))
        return hn_conversion_visit_expert_vectors(c, role, layer, false);
    if (hn_role_of_heads(role))
        return hn_conversion_declare_heads(c, role, layer);
    hunch_status status = role_need(c, role, layer, &t);
    if (status)
        return status;
    hn_arch_tensor_name(&named, role, layer, name);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    if (role == HN_ROLE_DELTA_CONV) {
        c->total += t->bytes;
        return hn_gguf_declare(c->w, name, HN_F32, 2, dims, c->err);
    }
    return hn_conversion_declare(c, t, name, hn_role_is_vector(role), dims);
}

/* ---- writing ---- */

/* Rows that have another order in this family's GGUF: those of `heads` heads of `size` rows, of which `dims` from `first` on are rotated,
 * in halves in the folder, in neighbouring pairs in the GGUF. heads 0: the order stays. */
typedef struct turn {
    int heads, size, first, dims;
} turn;

static void rows_pair(char *to, const char *from, turn t, size_t row) {
    for (int h = 0; h < t.heads; h++)
        for (int i = 0; i < t.size; i++) {
            const int at = i < t.first ? i : t.first + hn_paired_row(i - t.first, t.dims);
            memcpy(to + (size_t)(h * t.size + at) * row, from + (size_t)(h * t.size + i) * row, row);
        }
}

/* Of latent attention, whose folders have pairs too, unless they say otherwise. */
static turn latent_turn(const hn_conversion *c, hn_role role, int layer) {
    const hn_latent_desc *d = &c->arch.layer[layer].latent;
    if (c->arch.rope_interleaved)
        return (turn){0};
    if (role == HN_ROLE_KV_A || role == HN_ROLE_KV_A_BIAS)
        return (turn){1, d->rank + d->rope, d->rank, d->rope};
    if (role == HN_ROLE_Q_B || role == HN_ROLE_Q)
        return (turn){c->arch.layer[layer].heads, d->nope + d->rope, d->nope, d->rope};
    return (turn){0};
}

static turn turn_of(const hn_conversion *c, hn_role role, int layer) {
    const hn_layer_desc *l = &c->arch.layer[layer];
    uint64_t dims[2];
    if (l->mixer == HN_MIXER_LATENT)
        return latent_turn(c, role, layer);
    if (!c->arch.family->pairs || !hn_role_is_rotated(role))
        return (turn){0};
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    return (turn){(int)dims[hn_role_is_vector(role) ? 0 : 1] / l->head_dim, l->head_dim, 0, hn_conversion_rotation(c)->dims};
}

static hunch_status rows_write(hn_conversion *c, const void *data, size_t bytes, const char *name, turn t) {
    if (t.heads == 0)
        return hn_gguf_data(c->w, data, bytes, c->err);
    char *copy = hn_alloc(bytes);
    if (copy == NULL)
        return hn_fail_memory(c->err, name, bytes);
    rows_pair(copy, data, t, bytes / ((size_t)t.heads * (size_t)t.size));
    hunch_status status = hn_gguf_data(c->w, copy, bytes, c->err);
    hn_free(copy);
    return status;
}

/* Reads its bytes; to be freed with hn_free. */
static hunch_status tensor_read(hn_conversion *c, const hn_tensor *t, void **out) {
    *out = hn_alloc(t->bytes);
    hunch_status status = *out == NULL ? hn_fail_memory(c->err, t->name, t->bytes)
                                       : hn_source_read(c->src, t, 0, t->bytes, *out, c->err);
    if (status) {
        hn_free(*out);
        *out = NULL;
    }
    return status;
}

static hunch_status vector_write(hn_conversion *c, const hn_tensor *t, float more, turn rows) {
    size_t n = 1;
    void *stored;
    for (int i = 0; i < t->n_dims; i++) n *= (size_t)t->dims[i];
    hunch_status status = tensor_read(c, t, &stored);
    if (status)
        return status;
    float *values = hn_zalloc(n, sizeof *values);
    if (values != NULL) {
        hn_dequantise(t->dtype, stored, n, values);
        for (size_t i = 0; i < n && more != 0; i++)
            values[i] += more;
        status = rows_write(c, values, n * sizeof *values, t->name, rows);
    } else {
        status = hn_fail_memory(c->err, t->name, n * sizeof *values);
    }
    hn_free(values);
    hn_free(stored);
    return status;
}

hunch_status hn_conversion_copy(hn_conversion *c, const hn_tensor *t, size_t first, size_t bytes, void *buffer) {
    hunch_status status = HUNCH_OK;
    for (size_t at = 0; !status && at < bytes; at += HN_CONVERSION_PIECE) {
        const size_t n = bytes - at < HN_CONVERSION_PIECE ? bytes - at : HN_CONVERSION_PIECE;
        status = hn_source_read(c->src, t, first + at, n, buffer, c->err);
        if (!status)
            status = hn_gguf_data_piece(c->w, buffer, n, c->err);
    }
    return status;
}

/* Copies a matrix through a small buffer; one whose rows are reordered or converted is read as a whole. */
static hunch_status matrix_write(hn_conversion *c, const hn_tensor *t, turn rows) {
    const hn_dtype type = hn_conversion_type(c, t);
    void *stored = NULL;
    hunch_status status;
    if (type != t->dtype) {
        size_t bytes = 0;
        status = hn_conversion_read_as(c, t, type, &stored, &bytes);
        if (!status)
            status = rows_write(c, stored, bytes, t->name, rows);
    } else if (rows.heads > 0) {
        status = tensor_read(c, t, &stored);
        if (!status)
            status = rows_write(c, stored, t->bytes, t->name, rows);
    } else if ((stored = hn_alloc(HN_CONVERSION_PIECE)) == NULL) {
        status = hn_fail_memory(c->err, t->name, HN_CONVERSION_PIECE);
    } else {
        status = hn_gguf_data_begin(c->w, t->bytes, c->err);
        if (!status)
            status = hn_conversion_copy(c, t, 0, t->bytes, stored);
    }
    hn_free(stored);
    return status;
}

hunch_status hn_conversion_done(hn_conversion *c, size_t bytes, hunch_status status) {
    c->done += bytes;
    if (!status && c->progress != NULL)
        c->progress(c->user, c->done, c->total);
    return status;
}

/* Writes a matrix or vector. */
static hunch_status tensor_write(hn_conversion *c, const hn_tensor *t, bool vector, float more, turn rows) {
    hunch_status status = vector ? vector_write(c, t, more, rows) : matrix_write(c, t, rows);
    return hn_conversion_done(c, t->bytes, status);
}

hunch_status hn_conversion_write(hn_conversion *c, const hn_tensor *t, bool vector) {
    return tensor_write(c, t, vector, 0, (turn){0});
}

hunch_status hn_conversion_write_vector(hn_conversion *c, const hn_tensor *t, float more) {
    return tensor_write(c, t, true, more, (turn){0});
}

hunch_status hn_conversion_write_role(hn_conversion *c, hn_role role, int layer) {
    hn_tensor *t;
    if (hn_role_of_experts(role))
        return hn_conversion_write_experts(c, role, layer);
    if (hn_role_of_expert_vectors(role))
        return hn_conversion_visit_expert_vectors(c, role, layer, true);
    if (hn_role_of_heads(role))
        return hn_conversion_write_head_matrices(c, role, layer);
    hunch_status status = role_need(c, role, layer, &t);
    if (!status && hn_conversion_has_heads(c, role, layer))
        return hn_conversion_done(c, t->bytes, hn_conversion_write_heads(c, t, role, layer));
    return status ? status
                  : tensor_write(c, t, hn_role_is_vector(role), hn_arch_vector_more(&c->arch, role),
                                 turn_of(c, role, layer));
}

/* ---- all of a layer ---- */

/* Whether a GGUF of the model has it: there the experts' matrices of a kind are one tensor, gate and up separate (unless the family has
 * them in one), and so are their biases; and the two matrices of heads. */
static bool role_written(const hn_conversion *c, hn_role role, int layer) {
    const bool vectors = hn_role_of_expert_vectors(role);
    const hn_layer_desc *l = &c->arch.layer[layer];
    if (hn_role_of_heads(role) || role == HN_ROLE_KV_B)
        return l->mixer == HN_MIXER_LATENT && role != HN_ROLE_KV_B;
    if (!hn_role_of_experts(role) && !vectors)
        return hn_arch_has(&c->arch, role, layer);
    if (!hn_layer_has_experts(l) || (vectors && !l->experts.biases) || role == HN_ROLE_EXPERT_GATE_UP_BIAS)
        return false;
    const bool fused = l->ffn == HN_FFN_BESIDE;
    return role == HN_ROLE_EXPERT_GATE_UP ? fused : (role != HN_ROLE_EXPERT_GATE && role != HN_ROLE_EXPERT_UP) || !fused;
}

hunch_status hn_conversion_visit_layers(hn_conversion *c, hn_visit_role visit) {
    hunch_status status = HUNCH_OK;
    for (int layer = 0; layer < c->arch.layers; layer++)
        for (int role = 0; role < HN_ROLES && !status; role++)
            if (hn_role_of_layer((hn_role)role) && role_written(c, (hn_role)role, layer))
                status = visit(c, (hn_role)role, layer);
    return status;
}
