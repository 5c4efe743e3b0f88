/* SPDX-License-Identifier: Apache-2.0 */
/* torch.c - the tensors of a PyTorch checkpoint (.bin, .pt, .pth), as safetensors.c lists those of its format (contract C6).
 * Nothing of the file is executed: pickle.h. The layout of the file: torch_file.h.
 *
 * A checkpoint is a dictionary of tensors, or contains one as "state_dict", "model_state_dict" or "model". A tensor is a view
 * of a storage: offset, shape, strides. Only contiguous tensors are read; several may share a storage, as tied matrices do.
 * Other values of a dictionary are ignored. A DFlash head may have the row of its mask token in a file of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/source_private.h"
#include "format/torch_file.h"

enum { TORCH_MAX_RANK = 8 };

typedef struct reader {
    hn_source *s;
    hn_torch_file f;
    const unsigned char *data; /* of the whole file */
    hunch_error *err;
} reader;

static hunch_status form_unknown(const reader *r, const hn_tensor *t) {
    return hn_fail(r->err, HUNCH_REFUSED, "%s: tensor %s is described in an unknown form", r->f.path, t->name);
}

/* An integer of the pickle, 0 or more. */
static bool py_size(const hn_py *v, uint64_t *out) {
    if (v == NULL || v->kind != HN_PY_INT || v->i < 0) return false;
    *out = (uint64_t)v->i;
    return true;
}

/* A tensor of more than HN_MAX_DIMS dimensions is listed with its outer ones multiplied, as a type that is not read.
 * *elements: their number. */
static hunch_status shape_read(const reader *r, const hn_py *shape, const hn_py *strides, hn_tensor *t,
                               uint64_t *elements) {
    const hn_pickle *p = &r->f.dictionary;
    if (shape == NULL || shape->kind != HN_PY_TUPLE || shape->n > TORCH_MAX_RANK || strides == NULL ||
        strides->kind != HN_PY_TUPLE || strides->n != shape->n)
        return form_unknown(r, t);
    t->n_dims = shape->n < HN_MAX_DIMS ? (int)shape->n : HN_MAX_DIMS;
    for (int i = 0; i < t->n_dims; i++) t->dims[i] = 1;
    *elements = 1;
    bool in_order = true;
    for (uint32_t i = 0; i < shape->n; i++) { /* from the contiguous end */
        uint64_t dim, stride, *to = &t->dims[i < HN_MAX_DIMS ? i : HN_MAX_DIMS - 1];
        if (!py_size(hn_pickle_at(p, shape, shape->n - 1 - i), &dim) ||
            !py_size(hn_pickle_at(p, strides, shape->n - 1 - i), &stride))
            return form_unknown(r, t);
        in_order = in_order && (dim == 1 || stride == *elements);
        if (__builtin_mul_overflow(*elements, dim, elements) || *elements > INT64_MAX ||
            __builtin_mul_overflow(*to, dim, to))
            return hn_fail(r->err, HUNCH_REFUSED, "%s: tensor %s has a shape that is too large", r->f.path, t->name);
    }
    if (!in_order && *elements > 0)
        return hn_fail(
            r->err, HUNCH_REFUSED,
            "%s: tensor %s is a view whose rows do not follow each other; expected it saved with .contiguous()",
            r->f.path, t->name);
    return HUNCH_OK;
}

/* _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks[, metadata]); v3 has the type after the hooks, and
 * counts its storage in bytes. */
static hunch_status tensor_read(const reader *r, const hn_py *call, hn_tensor *t) {
    const hn_pickle *p = &r->f.dictionary;
    const hn_py *outside = hn_pickle_at(p, call, 0);
    hn_torch_storage storage;
    uint64_t offset, elements = 0, begin, bytes;
    if (call->n < 6 || call->n > 8 || outside->kind != HN_PY_OUTSIDE || !py_size(hn_pickle_at(p, call, 1), &offset))
        return form_unknown(r, t);
    hunch_status status = hn_torch_storage_find(&r->f, outside, t->name, &storage, r->err);
    if (!status) status = shape_read(r, hn_pickle_at(p, call, 2), hn_pickle_at(p, call, 3), t, &elements);
    if (status) return status;
    const hn_torch_type *type =
        call->global->what == HN_TORCH_TENSOR ? storage.type : hn_torch_type_of(hn_pickle_at(p, call, 6));
    if (type == NULL) return form_unknown(r, t);
    if (__builtin_mul_overflow(offset, type->bytes, &begin) || __builtin_mul_overflow(elements, type->bytes, &bytes) ||
        begin > storage.bytes || bytes > storage.bytes - begin)
        return hn_fail(r->err, HUNCH_REFUSED,
                       "%s: tensor %s has %" PRIu64 " elements from %" PRIu64 " on; its storage has %zu bytes",
                       r->f.path, t->name, elements, offset, storage.bytes);
    snprintf(t->type_name, sizeof t->type_name, "%s", type->name);
    t->known = type->read && hn_pickle_at(p, call, 2)->n <= HN_MAX_DIMS;
    t->dtype = type->dtype;
    t->data = r->data + storage.off + begin;
    t->bytes = (size_t)bytes;
    return HUNCH_OK;
}

/* The call that makes a tensor; NULL: the value is not a tensor. A parameter is a tensor and requires_grad. */
static const hn_py *tensor_call(const hn_pickle *p, const hn_py *v) {
    if (v != NULL && v->kind == HN_PY_CALL && v->global->what == HN_TORCH_PARAMETER) v = hn_pickle_at(p, v, 0);
    return v != NULL && v->kind == HN_PY_CALL && v->global->what != HN_TORCH_PARAMETER ? v : NULL;
}

/* The dictionary of tensors: the checkpoint itself, or the model in the checkpoint of a training loop. */
static const hn_py *dictionary_find(const hn_pickle *p) {
    static const char *const names[] = {"state_dict", "model_state_dict", "model"};
    const hn_py *root = hn_pickle_root(p);
    for (size_t i = 0; root->kind == HN_PY_DICT && i < sizeof names / sizeof *names; i++) {
        const hn_py *inner = hn_pickle_get(p, root, names[i]);
        if (inner != NULL && inner->kind == HN_PY_DICT) return inner;
    }
    return root->kind == HN_PY_DICT ? root : NULL;
}

static hunch_status tensors_read(const reader *r) {
    const hn_pickle *p = &r->f.dictionary;
    const hn_py *dict = dictionary_find(p);
    const size_t first = r->s->n_tensors;
    if (dict == NULL)
        return hn_fail(r->err, HUNCH_REFUSED, "%s: its value is not a dictionary; expected a dictionary of tensors",
                       r->f.path);
    uint32_t at = dict->first;
    for (uint32_t i = 0; i < dict->n; i++, at = p->items[at].next) {
        const hn_py *key = &p->values[p->items[at].key], *call = tensor_call(p, &p->values[p->items[at].value]);
        hn_tensor *t = NULL;
        if (call == NULL) continue;
        if (key->kind != HN_PY_TEXT)
            return hn_fail(r->err, HUNCH_REFUSED, "%s: a tensor has a key that is not a string; expected its name",
                           r->f.path);
        hunch_status status = hn_source_add_tensor(r->s, r->f.path, hn_pickle_text(p, key), key->n, &t, r->err);
        if (!status) status = tensor_read(r, call, t);
        if (status) return status;
    }
    if (r->s->n_tensors == first)
        return hn_fail(r->err, HUNCH_REFUSED, "%s: its dictionary holds no tensors", r->f.path);
    return HUNCH_OK;
}

hunch_status hn_torch_read(hn_source *s, const char *path, hunch_error *err) {
    hn_source_file *file;
    hunch_status status = hn_source_add_file(s, path, &file, err);
    if (status) return status;
    reader r = {.s = s, .data = file->map.data, .err = err};
    status = hn_torch_file_open(&r.f, &file->map, path, err);
    if (status) return status;
    status = tensors_read(&r);
    hn_torch_file_close(&r.f);
    return status;
}

/* Its elements in one row, whatever its shape. */
static hunch_status mask_read(const reader *r, const hn_py *call) {
    hn_tensor *t = NULL;
    hunch_status status = hn_source_add_tensor(r->s, r->f.path, HN_MASK_TENSOR, strlen(HN_MASK_TENSOR), &t, r->err);
    if (status == HUNCH_OK) status = tensor_read(r, call, t);
    for (int i = 1; status == HUNCH_OK && i < t->n_dims; i++) {
        t->dims[0] *= t->dims[i];
        t->dims[i] = 1;
    }
    if (status == HUNCH_OK) t->n_dims = 1;
    return status;
}

hunch_status hn_torch_read_mask(hn_source *s, const char *path, int64_t *token, hunch_error *err) {
    hn_source_file *file;
    hunch_status status = hn_source_add_file(s, path, &file, err);
    if (status != HUNCH_OK) return status;
    reader r = {.s = s, .data = file->map.data, .err = err};
    status = hn_torch_file_open(&r.f, &file->map, path, err);
    if (status != HUNCH_OK) return status;
    const hn_pickle *p = &r.f.dictionary;
    const hn_py *root = hn_pickle_root(p), *id = NULL;
    const bool named = root->kind == HN_PY_DICT;
    const hn_py *call = tensor_call(p, named ? hn_pickle_get(p, root, "embedding") : root);
    if (named) id = hn_pickle_get(p, root, "mask_token_id");
    *token = id != NULL && id->kind == HN_PY_INT ? id->i : -1;
    if (call == NULL)
        status = hn_fail(err, HUNCH_REFUSED, "%s: expected a tensor, or a dictionary with one under \"embedding\"", path);
    else if (id != NULL && *token < 0)
        status = hn_fail(err, HUNCH_REFUSED, "%s: its mask_token_id is not a token", path);
    else
        status = mask_read(&r, call);
    hn_torch_file_close(&r.f);
    return status;
}
