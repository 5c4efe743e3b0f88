/* SPDX-License-Identifier: Apache-2.0 */
/* torch_file.h - the file of a PyTorch checkpoint: its pickle, and the location of its storages. torch.c interprets the
 * pickle.
 *
 *     an archive (torch 1.6 and later; zip.h)   NAME/data.pkl   the dictionary, pickled
 *                                               NAME/data/KEY   one storage: its elements and nothing else
 *     a stream (before)                         five pickles: a magic number, a version, the machine, the dictionary, keys;
 *                                               then the storage of each key, in this order: u64 number of elements, elements
 */
#ifndef HN_TORCH_FILE_H
#define HN_TORCH_FILE_H
#include "base/dtype.h"
#include "format/pickle.h"
#include "format/zip.h"

typedef struct hn_torch_type {
    const char *name; /* as in safetensors; "bytes": untyped, the tensor specifies the type */
    unsigned bytes;
    bool read;        /* dtype is valid */
    hn_dtype dtype;
} hn_torch_type;

/* Kinds of results of calls in the pickle: hn_pickle_global.what. */
enum { HN_TORCH_TENSOR = 100, HN_TORCH_TENSOR_TYPED, HN_TORCH_PARAMETER };

typedef struct hn_torch_storage {
    const hn_torch_type *type;
    size_t off, bytes; /* inside the file */
} hn_torch_storage;

typedef struct hn_torch_file {
    const hn_map *map;
    const char *path;
    hn_pickle dictionary;
    unsigned char *pickled; /* its bytes */
    hn_zip zip;             /* of an archive */
    char name[256];
    struct hn_torch_place *places; /* of a stream: sorted by key */
    size_t n_places;
} hn_torch_file;

/* The map and the path must outlive it. On error there is nothing to close. */
hunch_status hn_torch_file_open(hn_torch_file *f, const hn_map *map, const char *path, hunch_error *err);
void hn_torch_file_close(hn_torch_file *f);
/* The storage that a value of the dictionary refers to. tensor: for messages. */
hunch_status hn_torch_storage_find(const hn_torch_file *f, const hn_py *value, const char *tensor,
                                   hn_torch_storage *out, hunch_error *err);
/* The element type that a value of the dictionary refers to; NULL: none. */
const hn_torch_type *hn_torch_type_of(const hn_py *value);
#endif
