/* SPDX-License-Identifier: Apache-2.0 */
/* split_for_tests.h - splits a whole GGUF file into parts, as the tools that publish large models do. */
#ifndef HN_SPLIT_FOR_TESTS_H
#define HN_SPLIT_FOR_TESTS_H
#include "format/bytes_for_tests.h"
#include "format/source.h"

static inline void split_key(bytes *b, const char *name, uint32_t type, size_t size, uint64_t value) {
    bytes_text(b, name);
    bytes_number(b, type, 4);
    bytes_number(b, value, size);
}

/* The header of a part up to its tensors: `keys`, which are n_keys keys of the model, then u16 split.no, u16 split.count and
 * i32 split.tensors.count. */
static inline void split_head(bytes *b, uint64_t n_tensors, const bytes *keys, uint64_t n_keys, uint64_t no,
                              uint64_t count, uint64_t total) {
    bytes_put(b, "GGUF", 4);
    bytes_number(b, 3, 4);
    bytes_number(b, n_tensors, 8);
    bytes_number(b, n_keys + 3, 8);
    bytes_put(b, keys->at, keys->size);
    split_key(b, "split.no", 2, 2, no);
    split_key(b, "split.count", 2, 2, count);
    split_key(b, "split.tensors.count", 5, 4, total);
}

/* Declarations and data of tensors first..last-1. */
static inline void split_tensors(bytes *b, hn_source *s, size_t first, size_t last) {
    uint64_t offset = 0;
    for (size_t i = first; i < last; i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        bytes_text(b, t->name);
        bytes_number(b, (uint64_t)t->n_dims, 4);
        for (int d = 0; d < t->n_dims; d++)
            bytes_number(b, t->dims[d], 8);
        bytes_number(b, t->ggml_type, 4);
        bytes_number(b, offset, 8);
        offset += (t->bytes + 31) & ~(uint64_t)31;
    }
    for (size_t i = first; i < last; i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        bytes_zeros(b, -b->size & 31);
        bytes_put(b, t->data, t->bytes);
    }
}

/* The bytes of a whole file's keys: between its header of 24 bytes and its first tensor's declaration. */
static inline bytes split_keys_of(const bytes *file, hn_source *s, uint64_t *n_keys) {
    bytes name = {0}, keys = {0};
    bytes_text(&name, hn_source_tensor(s, 0)->name);
    const unsigned char *tensors = memmem(file->at, file->size, name.at, name.size);
    if (tensors == NULL)
        abort();
    bytes_put(&keys, file->at + 24, (size_t)(tensors - file->at) - 24);
    memcpy(n_keys, file->at + 16, sizeof *n_keys);
    bytes_free(&name);
    return keys;
}

/* Splits the GGUF file `whole` (alignment 32) into `count` parts NAME-00001-of-0000N.gguf in the test's folder. The first
 * part has tensors only if first_has_tensors. Returns the first part's path, as test_path. */
static inline const char *split_file(const char *whole, const char *name, unsigned count, bool first_has_tensors) {
    hn_source *s = NULL;
    bytes file = test_file_read(whole), none = {0};
    char part[256];
    uint64_t n_keys = 0;
    if (hn_source_open(&s, whole, NULL) != HUNCH_OK)
        abort();
    bytes keys = split_keys_of(&file, s, &n_keys);
    size_t n = hn_source_tensor_count(s), skip = first_has_tensors ? 0 : 1;
    for (unsigned no = 0; no < count; no++) {
        size_t first = no < skip ? 0 : n * (no - skip) / (count - skip);
        size_t last = no < skip ? 0 : n * (no - skip + 1) / (count - skip);
        bytes b = {0};
        split_head(&b, last - first, no == 0 ? &keys : &none, no == 0 ? n_keys : 0, no, count, n);
        split_tensors(&b, s, first, last);
        snprintf(part, sizeof part, "%s-%05u-of-%05u.gguf", name, no + 1, count);
        test_file_write(test_path(part), b.at, b.size);
        bytes_free(&b);
    }
    bytes_free(&keys);
    bytes_free(&file);
    hn_source_close(&s);
    snprintf(part, sizeof part, "%s-00001-of-%05u.gguf", name, count);
    return test_path(part);
}
#endif
