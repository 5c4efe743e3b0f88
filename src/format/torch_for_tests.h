/* SPDX-License-Identifier: Apache-2.0 */
/* torch_for_tests.h - writes PyTorch checkpoints for tests, pickles opcode by opcode, archives entry by entry, and opens them.
 * Include cmocka.h first. */
#ifndef HN_TORCH_FOR_TESTS_H
#define HN_TORCH_FOR_TESTS_H
#include "format/bytes_for_tests.h"
#include "format/source.h"

/* ---- pickles ---------------------------------------------------------------------------------------------------- */

#define PK_START "\x80\x02}(" /* protocol 2, a dictionary, a mark: keys and values follow */
#define PK_END "u."

static inline void pk_raw(bytes *b, const char *steps) {
    bytes_put(b, steps, strlen(steps));
}

static inline void pk_text(bytes *b, const char *text) {
    pk_raw(b, "X");
    bytes_number(b, strlen(text), 4);
    pk_raw(b, text);
}

static inline void pk_int(bytes *b, int64_t value) {
    pk_raw(b, "\x8a\x08");
    bytes_number(b, (uint64_t)value, 8);
}

static inline void pk_ints(bytes *b, const int64_t *values, int n) {
    pk_raw(b, "(");
    for (int i = 0; i < n; i++)
        pk_int(b, values[i]);
    pk_raw(b, "t");
}

typedef struct pk_tensor {
    const char *type; /* "FloatStorage" */
    const char *key;
    int64_t elements; /* of the storage */
    int64_t offset;
    int n_dims;
    int64_t shape[10], strides[10];
} pk_tensor;

/* As torch.save writes a tensor, without its memo. */
static inline void pk_put_tensor(bytes *b, const pk_tensor *t) {
    pk_raw(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
    pk_text(b, "storage");
    pk_raw(b, "ctorch\n");
    pk_raw(b, t->type);
    pk_raw(b, "\n");
    pk_text(b, t->key);
    pk_text(b, "cpu");
    pk_int(b, t->elements);
    pk_raw(b, "tQ");
    pk_int(b, t->offset);
    pk_ints(b, t->shape, t->n_dims);
    pk_ints(b, t->strides, t->n_dims);
    pk_raw(b, "\x89" "ccollections\nOrderedDict\n)RtR");
}

/* ---- archives --------------------------------------------------------------------------------------------------- */

enum { ZIP_MOST = 64 };

typedef struct zip_builder {
    bytes b;
    int n;
    char names[ZIP_MOST][80];
    size_t sizes[ZIP_MOST];
    size_t headers[ZIP_MOST]; /* offset of each entry */
    size_t listed[ZIP_MOST];  /* offset of its record in the list, once that is written */
    size_t list, end;         /* offsets of the list and the end record */
} zip_builder;

static inline void zip_add(zip_builder *z, const char *name, const void *data, size_t n) {
    const int i = z->n++;
    if (i >= ZIP_MOST)
        abort();
    snprintf(z->names[i], sizeof z->names[i], "%s", name);
    z->sizes[i] = n;
    z->headers[i] = z->b.size;
    bytes_number(&z->b, 0x04034b50, 4);
    bytes_zeros(&z->b, 22); /* versions, time, sizes: zero, as by PyTorch, which writes them after the data */
    bytes_number(&z->b, strlen(name), 2);
    bytes_number(&z->b, 5, 2);
    bytes_put(&z->b, name, strlen(name));
    bytes_put(&z->b, "FB\1\0Z", 5);
    bytes_put(&z->b, data, n);
}

/* Writes the list and the end. */
static inline void zip_finish(zip_builder *z) {
    z->list = z->b.size;
    for (int i = 0; i < z->n; i++) {
        z->listed[i] = z->b.size;
        bytes_number(&z->b, 0x02014b50, 4);
        bytes_zeros(&z->b, 16);
        bytes_number(&z->b, z->sizes[i], 4);
        bytes_number(&z->b, z->sizes[i], 4);
        bytes_number(&z->b, strlen(z->names[i]), 2);
        bytes_zeros(&z->b, 12);
        bytes_number(&z->b, z->headers[i], 4);
        bytes_put(&z->b, z->names[i], strlen(z->names[i]));
    }
    z->end = z->b.size;
    bytes_number(&z->b, 0x06054b50, 4);
    bytes_zeros(&z->b, 4);
    bytes_number(&z->b, (uint64_t)z->n, 2);
    bytes_number(&z->b, (uint64_t)z->n, 2);
    bytes_number(&z->b, z->end - z->list, 4);
    bytes_number(&z->b, z->list, 4);
    bytes_zeros(&z->b, 2);
}

static inline void zip_poke(zip_builder *z, size_t at, uint64_t value, size_t n) {
    for (size_t i = 0; i < n; i++)
        z->b.at[at + i] = (unsigned char)(value >> 8 * i);
}

/* ---- opening them ----------------------------------------------------------------------------------------------- */

static inline hunch_status open_bytes(const bytes *b, hunch_error *err) {
    hn_source *s = NULL;
    const char *path = test_path("hostile.pt");
    test_file_write(path, b->at, b->size);
    hunch_status status = hn_source_open_head(&s, path, err);
    if (status != HUNCH_OK) {
        assert_null(s);
        assert_non_null(strstr(err->message, path));
        assert_null(strpbrk(err->message, "\n\r\x1b"));
    }
    for (size_t i = 0; status == HUNCH_OK && i < hn_source_tensor_count(s); i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        char *copy = malloc(t->bytes + 1);
        assert_int_equal(hn_source_read(s, t, 0, t->bytes, copy, err), HUNCH_OK);
        assert_memory_equal(copy, t->data, t->bytes);
        free(copy);
    }
    hn_source_close(&s);
    return status;
}

static inline void assert_bytes_refused(const bytes *b, const char *says) {
    hunch_error err = {0};
    hunch_status status = open_bytes(b, &err);
    if (status != HUNCH_REFUSED || strstr(err.message, says) == NULL)
        fail_msg("expected a refusal with \"%s\", got %d \"%s\"", says, status, err.message);
}

static inline void assert_bytes_open(const bytes *b) {
    hunch_error err = {0};
    if (open_bytes(b, &err) != HUNCH_OK)
        fail_msg("%s", err.message);
}

/* An archive of a pickle and one storage of 24 bytes, "0". */
static inline zip_builder archive_of(const bytes *pickle) {
    static const float data[] = {0, 1, 2, 3, 4, 5};
    zip_builder z = {0};
    zip_add(&z, "a/data.pkl", pickle->at, pickle->size);
    zip_add(&z, "a/data/0", data, sizeof data);
    zip_finish(&z);
    return z;
}

static inline void assert_pickle_refused(bytes *pickle, const char *says) {
    zip_builder z = archive_of(pickle);
    assert_bytes_refused(&z.b, says);
    bytes_free(&z.b);
    bytes_free(pickle);
}

static const pk_tensor GOOD = {"FloatStorage", "0", 6, 0, 2, {2, 3}, {3, 1}}; /* of the archive's storage */

static inline bytes pickle_of(const char *name, const pk_tensor *t) {
    bytes b = {0};
    pk_raw(&b, PK_START);
    pk_text(&b, name);
    pk_put_tensor(&b, t);
    pk_raw(&b, PK_END);
    return b;
}
#endif
