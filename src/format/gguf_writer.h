/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_writer.h - writes a GGUF v3 file, or one in several parts: metadata first, tensors streamed one at a time, renamed into place at the
 * end. */
#ifndef HN_GGUF_WRITER_H
#define HN_GGUF_WRITER_H
#include "base/dtype.h"
#include "base/status.h"
typedef struct hn_gguf_writer hn_gguf_writer;
hunch_status hn_gguf_writer_open(hn_gguf_writer **out, const char *path, hunch_error *err); /* writes PATH.partial */
/* The same in parts NAME-00001-of-00003.gguf and so on, of path NAME.gguf: the first has all keys, and each as many whole tensors as have
 * most_bytes together, at least one. HUNCH_USAGE: the path has another end. */
hunch_status hn_gguf_writer_open_parts(hn_gguf_writer **out, const char *path, size_t most_bytes, hunch_error *err);
/* Order of calls: all metadata, then all tensors' declarations, then hn_gguf_data for each tensor in the same order. */
hunch_status hn_gguf_put_u32(hn_gguf_writer *w, const char *key, uint32_t v, hunch_error *err);
hunch_status hn_gguf_put_f32(hn_gguf_writer *w, const char *key, float v, hunch_error *err);
hunch_status hn_gguf_put_bool(hn_gguf_writer *w, const char *key, bool v, hunch_error *err);
hunch_status hn_gguf_put_str(hn_gguf_writer *w, const char *key, const char *v, size_t len, hunch_error *err);
hunch_status hn_gguf_put_strings(hn_gguf_writer *w, const char *key, const char *const *v, const size_t *len, size_t n,
                                 hunch_error *err);
hunch_status hn_gguf_put_i32s(hn_gguf_writer *w, const char *key, const int32_t *v, size_t n, hunch_error *err);
hunch_status hn_gguf_put_f32s(hn_gguf_writer *w, const char *key, const float *v, size_t n, hunch_error *err);
/* A value as it stands in another GGUF (hn_source_get_meta), of any type. Keys about that file's own layout are left out:
 * general.alignment, split.*. */
hunch_status hn_gguf_put_raw(hn_gguf_writer *w, const char *key, uint32_t type, const void *value, size_t bytes, hunch_error *err);
hunch_status hn_gguf_declare(hn_gguf_writer *w, const char *name, hn_dtype t, int n_dims, const uint64_t *dims,
                             hunch_error *err);
hunch_status hn_gguf_data(hn_gguf_writer *w, const void *data, size_t bytes, hunch_error *err);
/* The same in pieces: begin with the size of the whole tensor, then its pieces. A tensor without bytes is one empty piece. */
hunch_status hn_gguf_data_begin(hn_gguf_writer *w, size_t bytes, hunch_error *err);
hunch_status hn_gguf_data_piece(hn_gguf_writer *w, const void *data, size_t bytes, hunch_error *err);
/* Flushes and renames to the path. The file exists completely or not at all; of parts all or none. */
hunch_status hn_gguf_writer_finish(hn_gguf_writer **w, hunch_error *err);
void hn_gguf_writer_abort(hn_gguf_writer **w);
#endif
