/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pickle.c - a checkpoint of PyTorch, as the only file of a draft head's folder: if it opens, it can be read to its last byte.
 *
 * An input that begins with 'W' is only a pickle: an archive is put around it, with storages "0" and "1" of 24 bytes, so that a
 * change of the pickle does not move everything after it. */
#include "fuzz_source.h"

enum { ROOM = 1 << 20, STORAGES = 2, STORAGE_BYTES = 24 };

static uint8_t archive[ROOM + 1000];
static size_t size_of; /* of it, so far */

static void put(const void *data, size_t n) {
    if (n > 0) memcpy(archive + size_of, data, n);
    size_of += n;
}

static void number(uint64_t v, int n) {
    for (int i = 0; i < n; i++) archive[size_of++] = (uint8_t)(v >> 8 * i);
}

static size_t entry(const char *name, const void *data, size_t n) {
    const size_t at = size_of;
    number(0x04034b50, 4);
    number(0, 8), number(0, 8), number(0, 6);
    number(strlen(name), 2);
    number(0, 2);
    put(name, strlen(name));
    put(data, n);
    return at;
}

static void listed(const char *name, size_t n, size_t at) {
    number(0x02014b50, 4);
    number(0, 8), number(0, 8);
    number(n, 4);
    number(n, 4);
    number(strlen(name), 2);
    number(0, 8), number(0, 4);
    number(at, 4);
    put(name, strlen(name));
}

static fuzz_bytes wrap(fuzz_bytes pickle) {
    static const char *const names[STORAGES] = {"a/data/0", "a/data/1"};
    static const uint8_t data[STORAGE_BYTES] = {1, 2, 3};
    size_t at[STORAGES + 1];
    size_of = 0;
    at[STORAGES] = entry("a/data.pkl", pickle.at, pickle.size);
    for (int i = 0; i < STORAGES; i++) at[i] = entry(names[i], data, sizeof data);
    const size_t list = size_of;
    listed("a/data.pkl", pickle.size, at[STORAGES]);
    for (int i = 0; i < STORAGES; i++) listed(names[i], sizeof data, at[i]);
    const size_t end = size_of;
    number(0x06054b50, 4);
    number(0, 4);
    number(STORAGES + 1, 2);
    number(STORAGES + 1, 2);
    number(end - list, 4);
    number(list, 4);
    number(0, 2);
    return (fuzz_bytes){archive, size_of};
}

static void read_integers(const hn_source *s, const hn_tensor *t) {
    static int64_t to[1 << 16];
    hunch_error err = {0};
    if (t->n_dims == 1 && t->dims[0] <= sizeof to / sizeof *to)
        fuzz_check(hn_source_read_integers(s, t, (size_t)t->dims[0], -1000, 1000, to, &err), &err, fuzz_folder());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes whole = {data, size};
    hn_source *s = NULL;
    hunch_error err = {0};
    if (size > 0 && size <= ROOM && data[0] == 'W') whole = wrap((fuzz_bytes){data + 1, size - 1});
    fuzz_folder_file("head.pt", 0, whole, false);
    hunch_status st = hn_source_open_head(&s, fuzz_folder(), &err);
    fuzz_check(st, &err, fuzz_folder());
    if (st == HUNCH_OK) {
        fuzz_read_source(s);
        for (size_t i = 0; i < hn_source_tensor_count(s); i++) read_integers(s, hn_source_tensor(s, i));
    }
    hn_source_close(&s);
    return 0;
}
