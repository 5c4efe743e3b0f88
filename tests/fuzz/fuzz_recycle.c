/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_recycle.c - a saved matrix of token recycling: as it is, and with the right hash at its end, so that its rows are read. What was
 * read is inside the vocabulary, and is the same when it is read again; of a refused file nothing is taken. */
#include <string.h>

#include "base/hash.h"
#include "draft/text/recycle_matrix.h"
#include "fuzz.h"

enum { VOCAB = 50, MOST = 1 << 16 };

static void rows_check(const hn_recycle *x, const hn_recycle *again) {
    for (int32_t token = 0; token < VOCAB; token++) {
        const int32_t *row = hn_recycle_row(x, token), *other = hn_recycle_row(again, token);
        FUZZ_MUST((row == NULL) == (other == NULL));
        if (!row) continue;
        FUZZ_MUST(row[0] >= 0 && !memcmp(row, other, sizeof *row * (size_t)x->k));
        for (int k = 0; k < x->k; k++) FUZZ_MUST(row[k] >= -1 && row[k] < VOCAB);
    }
}

static void file_try(const uint8_t *data, size_t size) {
    hn_recycle x, again;
    hunch_error err = {0};
    const char *path = fuzz_file(0, (fuzz_bytes){data, size});
    FUZZ_MUST(hn_recycle_open(&x, VOCAB, HN_RECYCLE_K) && hn_recycle_open(&again, VOCAB, HN_RECYCLE_K));
    const hunch_status st = hn_recycle_read(&x, path, VOCAB, &err);
    fuzz_check(st, &err, path);
    const hunch_status looks = hn_recycle_file_check(path, &err);
    fuzz_check(looks, &err, path);
    FUZZ_MUST(st != HUNCH_OK || looks == HUNCH_OK); /* what can be read may be replaced */
    if (!st) FUZZ_MUST(hn_recycle_read(&again, path, VOCAB, &err) == HUNCH_OK);
    rows_check(&x, &again);
    hn_recycle_close(&x);
    hn_recycle_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t right[MOST];
    file_try(data, size);
    if (size < 8 || size > MOST) return 0;
    memcpy(right, data, size);
    const uint64_t hash = hn_bytes_hash(right, size - 8, 0);
    for (int i = 0; i < 8; i++) right[size - 8 + (size_t)i] = (uint8_t)(hash >> 8 * i);
    file_try(right, size);
    return 0;
}
