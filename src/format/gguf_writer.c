/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_writer.c - writes a GGUF v3 file (gguf_writer.h; layout: gguf.c).
 *
 * Keys and declarations are buffered in memory, as the header counts them, and written with the first tensor's data, when it is known
 * which part has which tensor. Data is written directly to the file, which exists completely or not at all (base/file_out.h). The parts
 * of a file are described in gguf_split.c.
 */
#include "format/gguf_writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file_out.h"
#include "base/mem.h"
#include "format/source_private.h"

typedef struct buffer {
    char *bytes;
    size_t size, cap;
} buffer;

typedef struct declared {
    size_t bytes;        /* of its data */
    size_t begin, end;   /* its declaration in the buffer, without the offset, which depends on its part */
} declared;

/* A file that is written. */
typedef struct part {
    char *path;
    hn_out *out; /* NULL: finished */
    size_t end;  /* the tensor after its last one */
} part;

struct hn_gguf_writer {
    char *path;
    part *parts; /* one, open from the begin; or those that are opened when all tensors are known */
    size_t n_parts, cap_parts, now;
    size_t most_bytes; /* of data in a part; 0: there is one */
    buffer keys, declarations;
    uint64_t n_keys;
    declared *tensors;
    size_t n_tensors, cap_tensors, n_written;
    bool head_written; /* of the part that is being written */
    size_t left;       /* bytes to come of the tensor that is being written */
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

static hunch_status buffer_put_key(buffer *b, const char *key, uint32_t type, hunch_error *err) {
    hunch_status status = buffer_put_text(b, key, strlen(key), err);
    return status ? status : buffer_put_number(b, type, 4, err);
}

static hunch_status key_begin(hn_gguf_writer *w, const char *key, uint32_t type, hunch_error *err) {
    w->n_keys++;
    return buffer_put_key(&w->keys, key, type, err);
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

hunch_status hn_gguf_put_raw(hn_gguf_writer *w, const char *key, uint32_t type, const void *value, size_t bytes, hunch_error *err) {
    if (strcmp(key, "general.alignment") == 0 || strncmp(key, "split.", 6) == 0)
        return HUNCH_OK;
    hunch_status status = key_begin(w, key, type, err);
    return status ? status : buffer_put(&w->keys, value, bytes, err);
}

/* ---- tensors ------------------------------------------------------------------------------------------------- */

static bool tensor_bytes(hn_dtype t, int n_dims, const uint64_t *dims, size_t *bytes) {
    bool ok = n_dims >= 1 && n_dims <= HN_MAX_DIMS && hn_dtype_row_bytes(t, dims[0], bytes);
    for (int i = 1; i < n_dims && ok; i++)
        ok = hn_mul_size(*bytes, (size_t)dims[i], bytes);
    return ok;
}

hunch_status hn_gguf_declare(hn_gguf_writer *w, const char *name, hn_dtype t, int n_dims, const uint64_t *dims,
                             hunch_error *err) {
    size_t bytes = 0;
    buffer *b = &w->declarations;
    const size_t begin = b->size;
    if (!tensor_bytes(t, n_dims, dims, &bytes) || hn_types[t].ggml == HN_NO_NUMBER)
        return hn_fail(err, HUNCH_REFUSED, "tensor %s: its shape cannot be stored as %s", name, hn_dtype_name(t));
    if (!hn_grow((void **)&w->tensors, &w->cap_tensors, w->n_tensors + 1, sizeof *w->tensors))
        return hn_fail_memory(err, "the list of tensors", (w->n_tensors + 1) * sizeof *w->tensors);
    hunch_status status = buffer_put_text(b, name, strlen(name), err);
    if (!status)
        status = buffer_put_number(b, (uint64_t)n_dims, 4, err);
    for (int i = 0; i < n_dims && !status; i++)
        status = buffer_put_number(b, dims[i], 8, err);
    if (!status)
        status = buffer_put_number(b, hn_types[t].ggml, 4, err);
    w->tensors[w->n_tensors++] = (declared){bytes, begin, b->size};
    return status;
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

static hunch_status part_add(hn_gguf_writer *w, size_t end, hunch_error *err) {
    if (!hn_grow((void **)&w->parts, &w->cap_parts, w->n_parts + 1, sizeof *w->parts))
        return hn_fail_memory(err, "the list of parts", (w->n_parts + 1) * sizeof *w->parts);
    w->parts[w->n_parts++] = (part){.end = end};
    return HUNCH_OK;
}

static hunch_status part_open(part *p, const char *path, hunch_error *err) {
    p->path = hn_strdup(path);
    return p->path == NULL ? hn_fail_memory(err, "a path", strlen(path) + 1) : hn_out_open(&p->out, path, false, err);
}

/* Which part has which tensor, and their names, all of which have their number. */
static hunch_status parts_plan(hn_gguf_writer *w, hunch_error *err) {
    hunch_status status = HUNCH_OK;
    size_t bytes = 0, stem = strlen(w->path) - strlen(".gguf"), room = stem + 64;
    for (size_t i = 0; i < w->n_tensors && !status; i++) {
        if (i > 0 && w->tensors[i].bytes > w->most_bytes - (bytes < w->most_bytes ? bytes : w->most_bytes)) {
            status = part_add(w, i, err);
            bytes = 0;
        }
        bytes += w->tensors[i].bytes;
    }
    if (!status)
        status = part_add(w, w->n_tensors, err);
    if (!status && w->n_parts > UINT16_MAX)
        status = hn_fail(err, HUNCH_REFUSED, "%s: %zu parts; expected at most %d: larger ones", w->path, w->n_parts, UINT16_MAX);
    char *path = hn_alloc(room);
    if (!status && path == NULL)
        status = hn_fail_memory(err, "a path", room);
    for (size_t i = 0; i < w->n_parts && !status; i++) {
        snprintf(path, room, "%.*s-%05zu-of-%05zu.gguf", (int)stem, w->path, i + 1, w->n_parts);
        status = part_open(&w->parts[i], path, err);
    }
    hn_free(path);
    return status;
}

enum { SPLIT_KEYS = 3 };

/* What tells a part's place among the others, in the types that other readers of the format expect. */
static hunch_status split_keys_put(const hn_gguf_writer *w, buffer *b, hunch_error *err) {
    const struct {
        const char *key;
        enum hn_gguf_type type;
        uint64_t value;
        size_t bytes;
    } keys[SPLIT_KEYS] = {{"split.no", HN_GGUF_U16, w->now, 2},
                          {"split.count", HN_GGUF_U16, w->n_parts, 2},
                          {"split.tensors.count", HN_GGUF_I32, w->n_tensors, 4}};
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < SPLIT_KEYS && !status; i++) {
        status = buffer_put_key(b, keys[i].key, keys[i].type, err);
        if (!status)
            status = buffer_put_number(b, keys[i].value, keys[i].bytes, err);
    }
    return status;
}

/* The head of the part whose turn it is. */
static hunch_status head_write(hn_gguf_writer *w, hunch_error *err) {
    const bool split = w->most_bytes > 0;
    hunch_status status = HUNCH_OK;
    if (w->now == 0 && split)
        status = parts_plan(w, err);
    else if (!split)
        w->parts[0].end = w->n_tensors;
    if (status)
        return status;
    const part *p = &w->parts[w->now];
    const size_t begin = w->now > 0 ? p[-1].end : 0;
    const uint64_t n_keys = (w->now == 0 ? w->n_keys : 0) + (split ? SPLIT_KEYS : 0);
    uint64_t offset = 0;
    buffer head = {0};
    status = buffer_put(&head, "GGUF", 4, err);
    if (!status)
        status = buffer_put_number(&head, 3, 4, err);
    if (!status)
        status = buffer_put_number(&head, p->end - begin, 8, err);
    if (!status)
        status = buffer_put_number(&head, n_keys, 8, err);
    if (!status && w->now == 0)
        status = buffer_put(&head, w->keys.bytes, w->keys.size, err);
    if (!status && split)
        status = split_keys_put(w, &head, err);
    for (size_t i = begin; i < p->end && !status; i++) {
        const declared *t = &w->tensors[i];
        status = buffer_put(&head, w->declarations.bytes + t->begin, t->end - t->begin, err);
        if (!status)
            status = buffer_put_number(&head, offset, 8, err);
        offset += t->bytes + padding_of(t->bytes);
    }
    if (!status)
        status = hn_out_write(p->out, head.bytes, head.size, err);
    if (!status)
        status = hn_out_write(p->out, ZEROS, padding_of(head.size), err);
    hn_free(head.bytes);
    w->head_written = true;
    return status;
}

hunch_status hn_gguf_data_begin(hn_gguf_writer *w, size_t bytes, hunch_error *err) {
    if (w->n_written >= w->n_tensors || w->tensors[w->n_written].bytes != bytes)
        return hn_fail(err, HUNCH_FAILED, "%s: tensor %zu got %zu bytes; expected as many as were declared", w->path,
                       w->n_written, bytes);
    w->left = bytes;
    if (w->head_written && w->n_written == w->parts[w->now].end) {
        w->now++;
        w->head_written = false;
    }
    return w->head_written ? HUNCH_OK : head_write(w, err);
}

hunch_status hn_gguf_data_piece(hn_gguf_writer *w, const void *data, size_t bytes, hunch_error *err) {
    if (bytes > w->left)
        return hn_fail(err, HUNCH_FAILED, "%s: tensor %zu got more bytes than were declared", w->path,
                       w->n_written);
    hunch_status status = hn_out_write(w->parts[w->now].out, data, bytes, err);
    w->left -= bytes;
    if (status || w->left > 0)
        return status;
    return hn_out_write(w->parts[w->now].out, ZEROS, padding_of(w->tensors[w->n_written++].bytes), err);
}

hunch_status hn_gguf_data(hn_gguf_writer *w, const void *data, size_t bytes, hunch_error *err) {
    hunch_status status = hn_gguf_data_begin(w, bytes, err);
    return status ? status : hn_gguf_data_piece(w, data, bytes, err);
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

static hunch_status writer_create(hn_gguf_writer **out, const char *path, size_t most_bytes, hunch_error *err) {
    hn_gguf_writer *w = *out = hn_zalloc(1, sizeof *w);
    if (w == NULL)
        return hn_fail_memory(err, "a GGUF writer", sizeof *w);
    w->most_bytes = most_bytes;
    w->path = hn_strdup(path);
    return w->path == NULL ? hn_fail_memory(err, "a path", strlen(path) + 1) : HUNCH_OK;
}

hunch_status hn_gguf_writer_open(hn_gguf_writer **out, const char *path, hunch_error *err) {
    hunch_status status = writer_create(out, path, 0, err);
    if (!status)
        status = part_add(*out, 0, err);
    if (!status)
        status = part_open(&(*out)->parts[0], path, err);
    if (status)
        hn_gguf_writer_abort(out);
    return status;
}

hunch_status hn_gguf_writer_open_parts(hn_gguf_writer **out, const char *path, size_t most_bytes, hunch_error *err) {
    const size_t len = strlen(path);
    *out = NULL;
    if (len < 6 || strcmp(path + len - 5, ".gguf") != 0)
        return hn_fail(err, HUNCH_USAGE, "%s: expected a name that ends in .gguf, from which its parts have theirs", path);
    hunch_status status = writer_create(out, path, most_bytes > 0 ? most_bytes : 1, err);
    if (status)
        hn_gguf_writer_abort(out);
    return status;
}

void hn_gguf_writer_abort(hn_gguf_writer **writer) {
    hn_gguf_writer *w = *writer;
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->n_parts; i++) {
        hn_out_abort(&w->parts[i].out);
        hn_free(w->parts[i].path);
    }
    hn_free(w->parts);
    hn_free(w->keys.bytes);
    hn_free(w->declarations.bytes);
    hn_free(w->tensors);
    hn_free(w->path);
    hn_free(w);
    *writer = NULL;
}

hunch_status hn_gguf_writer_finish(hn_gguf_writer **writer, hunch_error *err) {
    hn_gguf_writer *w = *writer;
    hunch_status status = HUNCH_OK;
    if (w->n_written != w->n_tensors)
        status = hn_fail(err, HUNCH_FAILED, "%s: %zu of %zu tensors were written", w->path, w->n_written, w->n_tensors);
    if (!status && !w->head_written)
        status = head_write(w, err);
    size_t done = 0;
    while (!status && done < w->n_parts) {
        status = hn_out_finish(&w->parts[done].out, err);
        done += !status;
    }
    while (status && done > 0)
        unlink(w->parts[--done].path);
    hn_gguf_writer_abort(writer);
    return status;
}
