/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_writer.c - writes a GGUF v3 file (gguf_writer.h; layout: gguf.c).
 *
 * Keys and declarations are buffered in memory, as the header counts them, and written with the first tensor's data. Data is
 * written directly to the file, which exists completely or not at all (base/file_out.h).
 */
#include "format/gguf_writer.h"

#include <string.h>

#include "base/file_out.h"
#include "base/mem.h"
#include "format/source_private.h"

typedef struct buffer {
    char *bytes;
    size_t size, cap;
} buffer;

struct hn_gguf_writer {
    char *path;
    hn_out *out;
    buffer keys, declarations;
    uint64_t n_keys, n_tensors, n_written;
    size_t *sizes; /* bytes of each declared tensor */
    size_t cap_sizes;
    uint64_t offset; /* where the next declared tensor's data will start */
    bool head_written;
    size_t left; /* bytes to come of the tensor that is being written */
};

enum { GGML_TYPES = 64 }; /* more than the format has */

static const unsigned char ZEROS[HN_GGUF_ALIGNMENT];

static size_t padding_of(uint64_t size) {
    return (size_t)(-size & (HN_GGUF_ALIGNMENT - 1));
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static hunch_status buffer_put(buffer *b, const void *data, size_t n, hunch_error *err) {
    size_t need;
    if (!hn_add_size(b->size, n, &need) || !hn_grow((void **)&b->bytes, &b->cap, need, 1))
        return hn_fail_memory(err, "the head of a GGUF file", b->size + n);
    if (n > 0)
        memcpy(b->bytes + b->size, data, n);
    b->size = need;
    return HUNCH_OK;
}

/* value: the low `bytes` bytes, little endian. */
static hunch_status buffer_put_number(buffer *b, uint64_t value, size_t bytes, hunch_error *err) {
    unsigned char out[8];
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(value >> 8 * i);
    return buffer_put(b, out, bytes, err);
}

static hunch_status buffer_put_text(buffer *b, const char *text, size_t len, hunch_error *err) {
    hunch_status status = buffer_put_number(b, len, 8, err);
    return status ? status : buffer_put(b, text, len, err);
}

static hunch_status key_begin(hn_gguf_writer *w, const char *key, enum hn_gguf_type type, hunch_error *err) {
    hunch_status status = buffer_put_text(&w->keys, key, strlen(key), err);
    if (!status)
        status = buffer_put_number(&w->keys, type, 4, err);
    w->n_keys++;
    return status;
}

static hunch_status array_begin(hn_gguf_writer *w, const char *key, enum hn_gguf_type type, size_t n,
                                hunch_error *err) {
    hunch_status status = key_begin(w, key, HN_GGUF_ARRAY, err);
    if (!status)
        status = buffer_put_number(&w->keys, type, 4, err);
    return status ? status : buffer_put_number(&w->keys, n, 8, err);
}

static uint32_t bits_of_float(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

hunch_status hn_gguf_put_u32(hn_gguf_writer *w, const char *key, uint32_t v, hunch_error *err) {
    hunch_status status = key_begin(w, key, HN_GGUF_U32, err);
    return status ? status : buffer_put_number(&w->keys, v, 4, err);
}

hunch_status hn_gguf_put_f32(hn_gguf_writer *w, const char *key, float v, hunch_error *err) {
    hunch_status status = key_begin(w, key, HN_GGUF_F32, err);
    return status ? status : buffer_put_number(&w->keys, bits_of_float(v), 4, err);
}

hunch_status hn_gguf_put_bool(hn_gguf_writer *w, const char *key, bool v, hunch_error *err) {
    hunch_status status = key_begin(w, key, HN_GGUF_BOOL, err);
    return status ? status : buffer_put_number(&w->keys, v ? 1 : 0, 1, err);
}

hunch_status hn_gguf_put_str(hn_gguf_writer *w, const char *key, const char *v, size_t len, hunch_error *err) {
    hunch_status status = key_begin(w, key, HN_GGUF_STRING, err);
    return status ? status : buffer_put_text(&w->keys, v, len, err);
}

hunch_status hn_gguf_put_strings(hn_gguf_writer *w, const char *key, const char *const *v, const size_t *len, size_t n,
                                 hunch_error *err) {
    hunch_status status = array_begin(w, key, HN_GGUF_STRING, n, err);
    for (size_t i = 0; i < n && !status; i++)
        status = buffer_put_text(&w->keys, v[i], len[i], err);
    return status;
}

hunch_status hn_gguf_put_i32s(hn_gguf_writer *w, const char *key, const int32_t *v, size_t n, hunch_error *err) {
    hunch_status status = array_begin(w, key, HN_GGUF_I32, n, err);
    for (size_t i = 0; i < n && !status; i++)
        status = buffer_put_number(&w->keys, (uint32_t)v[i], 4, err);
    return status;
}

hunch_status hn_gguf_put_f32s(hn_gguf_writer *w, const char *key, const float *v, size_t n, hunch_error *err) {
    hunch_status status = array_begin(w, key, HN_GGUF_F32, n, err);
    for (size_t i = 0; i < n && !status; i++)
        status = buffer_put_number(&w->keys, bits_of_float(v[i]), 4, err);
    return status;
}

/* ---- tensors ------------------------------------------------------------------------------------------------- */

static bool tensor_bytes(hn_dtype t, int n_dims, const uint64_t *dims, size_t *bytes) {
    bool ok = n_dims >= 1 && n_dims <= HN_MAX_DIMS && hn_dtype_row_bytes(t, dims[0], bytes);
    for (int i = 1; i < n_dims && ok; i++)
        ok = hn_mul_size(*bytes, (size_t)dims[i], bytes);
    return ok;
}

static bool ggml_type_of(hn_dtype t, uint32_t *out) {
    hn_dtype found;
    for (uint32_t n = 0; n < GGML_TYPES; n++) {
        if (hn_dtype_from_ggml(n, &found) && found == t) {
            *out = n;
            return true;
        }
    }
    return false;
}

hunch_status hn_gguf_declare(hn_gguf_writer *w, const char *name, hn_dtype t, int n_dims, const uint64_t *dims,
                             hunch_error *err) {
    size_t bytes = 0;
    uint32_t type = 0;
    buffer *b = &w->declarations;
    if (!tensor_bytes(t, n_dims, dims, &bytes) || !ggml_type_of(t, &type))
        return hn_fail(err, HUNCH_REFUSED, "tensor %s: its shape cannot be stored as %s", name, hn_dtype_name(t));
    if (!hn_grow((void **)&w->sizes, &w->cap_sizes, w->n_tensors + 1, sizeof *w->sizes))
        return hn_fail_memory(err, "the list of tensors", (w->n_tensors + 1) * sizeof *w->sizes);
    hunch_status status = buffer_put_text(b, name, strlen(name), err);
    if (!status)
        status = buffer_put_number(b, (uint64_t)n_dims, 4, err);
    for (int i = 0; i < n_dims && !status; i++)
        status = buffer_put_number(b, dims[i], 8, err);
    if (!status)
        status = buffer_put_number(b, type, 4, err);
    if (!status)
        status = buffer_put_number(b, w->offset, 8, err);
    w->sizes[w->n_tensors++] = bytes;
    w->offset += bytes + padding_of(bytes);
    return status;
}

static hunch_status head_write(hn_gguf_writer *w, hunch_error *err) {
    buffer head = {0};
    hunch_status status = buffer_put(&head, "GGUF", 4, err);
    if (!status)
        status = buffer_put_number(&head, 3, 4, err);
    if (!status)
        status = buffer_put_number(&head, w->n_tensors, 8, err);
    if (!status)
        status = buffer_put_number(&head, w->n_keys, 8, err);
    if (!status)
        status = hn_out_write(w->out, head.bytes, head.size, err);
    if (!status)
        status = hn_out_write(w->out, w->keys.bytes, w->keys.size, err);
    if (!status)
        status = hn_out_write(w->out, w->declarations.bytes, w->declarations.size, err);
    if (!status)
        status = hn_out_write(w->out, ZEROS, padding_of(head.size + w->keys.size + w->declarations.size), err);
    hn_free(head.bytes);
    w->head_written = true;
    return status;
}

hunch_status hn_gguf_data_begin(hn_gguf_writer *w, size_t bytes, hunch_error *err) {
    if (w->n_written >= w->n_tensors || w->sizes[w->n_written] != bytes)
        return hn_fail(err, HUNCH_FAILED, "%s: tensor %zu got %zu bytes; expected as many as were declared", w->path,
                       (size_t)w->n_written, bytes);
    w->left = bytes;
    return w->head_written ? HUNCH_OK : head_write(w, err);
}

hunch_status hn_gguf_data_piece(hn_gguf_writer *w, const void *data, size_t bytes, hunch_error *err) {
    if (bytes > w->left)
        return hn_fail(err, HUNCH_FAILED, "%s: tensor %zu got more bytes than were declared", w->path,
                       (size_t)w->n_written);
    hunch_status status = hn_out_write(w->out, data, bytes, err);
    w->left -= bytes;
    if (status || w->left > 0)
        return status;
    return hn_out_write(w->out, ZEROS, padding_of(w->sizes[w->n_written++]), err);
}

hunch_status hn_gguf_data(hn_gguf_writer *w, const void *data, size_t bytes, hunch_error *err) {
    hunch_status status = hn_gguf_data_begin(w, bytes, err);
    return status ? status : hn_gguf_data_piece(w, data, bytes, err);
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

hunch_status hn_gguf_writer_open(hn_gguf_writer **out, const char *path, hunch_error *err) {
    *out = NULL;
    hn_gguf_writer *w = hn_zalloc(1, sizeof *w);
    if (w == NULL)
        return hn_fail_memory(err, "a GGUF writer", sizeof *w);
    w->path = hn_strdup(path);
    hunch_status status = w->path == NULL ? hn_fail_memory(err, "a path", strlen(path) + 1)
                                          : hn_out_open(&w->out, path, false, err);
    if (status)
        hn_gguf_writer_abort(&w);
    *out = w;
    return status;
}

void hn_gguf_writer_abort(hn_gguf_writer **writer) {
    hn_gguf_writer *w = *writer;
    if (w == NULL)
        return;
    hn_out_abort(&w->out);
    hn_free(w->keys.bytes);
    hn_free(w->declarations.bytes);
    hn_free(w->sizes);
    hn_free(w->path);
    hn_free(w);
    *writer = NULL;
}

hunch_status hn_gguf_writer_finish(hn_gguf_writer **writer, hunch_error *err) {
    hn_gguf_writer *w = *writer;
    hunch_status status = HUNCH_OK;
    if (w->n_written != w->n_tensors)
        status = hn_fail(err, HUNCH_FAILED, "%s: %zu of %zu tensors were written", w->path, (size_t)w->n_written,
                         (size_t)w->n_tensors);
    if (!status && !w->head_written)
        status = head_write(w, err);
    if (!status)
        status = hn_out_finish(&w->out, err);
    hn_gguf_writer_abort(writer);
    return status;
}
