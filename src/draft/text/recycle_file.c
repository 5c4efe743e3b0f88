/* SPDX-License-Identifier: Apache-2.0 */
/* recycle_file.c - the file of recycle_matrix.h. Files are untrusted: all of one is checked before a row of it is taken. */
#include <string.h>

#include "base/file.h"
#include "base/file_out.h"
#include "base/hash.h"
#include "base/mem.h"
#include "draft/text/recycle_matrix.h"

enum { MARK = 8, HEAD = MARK + 3 * 4, TAIL = 8 };
static const char mark[] = "HNRECYC1", expected[] = "expected the matrix of a drafter 'recycle'";

static int32_t number_at(const unsigned char *p) {
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

static uint64_t hash_at(const unsigned char *p) {
    return (uint64_t)(uint32_t)number_at(p) | (uint64_t)(uint32_t)number_at(p + 4) << 32;
}

/* What the beginning of a file says. */
typedef struct head {
    int vocab, k, records;
} head;

static hunch_status head_read(const char *path, const unsigned char *data, size_t size, head *h, hunch_error *err) {
    if (size < HEAD + TAIL || memcmp(data, mark, MARK))
        return hn_fail(err, HUNCH_REFUSED, "%s: it does not begin with %s, %s", path, mark, expected);
    *h = (head){number_at(data + MARK), number_at(data + MARK + 4), number_at(data + MARK + 8)};
    if (h->vocab < 1 || h->k < 1 || h->k > HN_RECYCLE_K || h->records < 0 || h->records > h->vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d tokens, %d after each, %d rows at byte %d, %s", path, h->vocab, h->k, h->records, MARK,
                       expected);
    const size_t want = HEAD + TAIL + (size_t)h->records * 4 * (size_t)(1 + h->k);
    if (size != want)
        return hn_fail(err, HUNCH_REFUSED, "%s: %zu bytes, but its %d rows need %zu, %s", path, size, h->records, want, expected);
    return HUNCH_OK;
}

/* All records: ascending tokens, and after each at least one token, all inside the vocabulary. */
static hunch_status records_check(const char *path, const unsigned char *data, const head *h, hunch_error *err) {
    const size_t record = 4 * (size_t)(1 + h->k);
    int32_t before = -1;
    for (int i = 0; i < h->records; i++) {
        const size_t at = HEAD + record * (size_t)i;
        const int32_t token = number_at(data + at);
        bool ended = false, fine = token > before && token < h->vocab && number_at(data + at + 4) >= 0;
        for (int r = 1; r <= h->k; r++) {
            const int32_t next = number_at(data + at + 4 * (size_t)r);
            fine = fine && next >= -1 && next < h->vocab && !(ended && next >= 0);
            ended |= next < 0;
        }
        if (!fine) return hn_fail(err, HUNCH_REFUSED, "%s: no row of its vocabulary of %d at byte %zu, %s", path, h->vocab, at, expected);
        before = token;
    }
    return HUNCH_OK;
}

static void records_take(hn_recycle *x, const unsigned char *data, const head *h) {
    int32_t next[HN_RECYCLE_K];
    for (int i = 0; i < h->records; i++) {
        const unsigned char *record = data + HEAD + 4 * (size_t)(1 + h->k) * (size_t)i;
        for (int r = 0; r < h->k; r++) next[r] = number_at(record + 4 * (r + 1));
        hn_recycle_set(x, number_at(record), next, h->k);
    }
}

static hunch_status file_take(hn_recycle *x, const char *path, const unsigned char *data, size_t size, int vocab, hunch_error *err) {
    head h;
    hunch_status st = head_read(path, data, size, &h, err);
    if (st) return st;
    if (h.vocab != vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: of a vocabulary of %d tokens, expected that of this model, %d", path, h.vocab, vocab);
    if (hash_at(data + size - TAIL) != hn_bytes_hash(data, size - TAIL, 0))
        return hn_fail(err, HUNCH_REFUSED, "%s: its bytes do not have the hash at its end, expected an undamaged file", path);
    st = records_check(path, data, &h, err);
    if (!st) records_take(x, data, &h);
    return st;
}

hunch_status hn_recycle_read(hn_recycle *x, const char *path, int vocab, hunch_error *err) {
    hn_map map;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    st = hn_map_copy_head(&map, path, map.size, err);
    if (!st) st = file_take(x, path, map.data, map.size, vocab, err);
    hn_map_close(&map);
    return st;
}

hunch_status hn_recycle_file_check(const char *path, hunch_error *err) {
    unsigned char begin[HEAD] = {0};
    hn_map map;
    head h;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    const size_t n = map.size < HEAD ? map.size : HEAD;
    st = hn_map_read(&map, path, 0, n, begin, err);
    if (!st) st = head_read(path, begin, map.size, &h, err);
    hn_map_close(&map);
    return st;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

static void number_put(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> 8 * i);
}

/* The whole file in memory: *size bytes, freed by the caller. NULL: no memory. */
static unsigned char *file_make(const hn_recycle *x, size_t *size) {
    const size_t record = 4 * (size_t)(1 + x->k);
    size_t n = HEAD;
    uint32_t records = 0;
    unsigned char *data = hn_alloc(HEAD + TAIL + record * (size_t)x->rows);
    if (!data) return NULL;
    for (int32_t token = 0; token < x->rows; token++) {
        const int32_t *row = hn_recycle_row(x, token);
        if (!row) continue;
        number_put(data + n, (uint32_t)token);
        for (int r = 0; r < x->k; r++) number_put(data + n + 4 * (r + 1), (uint32_t)row[r]);
        n += record;
        records++;
    }
    memcpy(data, mark, MARK);
    number_put(data + MARK, (uint32_t)x->rows);
    number_put(data + MARK + 4, (uint32_t)x->k);
    number_put(data + MARK + 8, records);
    const uint64_t hash = hn_bytes_hash(data, n, 0);
    number_put(data + n, (uint32_t)hash);
    number_put(data + n + 4, (uint32_t)(hash >> 32));
    *size = n + TAIL;
    return data;
}

hunch_status hn_recycle_write(const hn_recycle *x, const char *path, hunch_error *err) {
    hn_out *o = NULL;
    size_t size;
    unsigned char *data = file_make(x, &size);
    if (!data) return hn_fail_memory(err, path, (size_t)x->rows);
    hunch_status st = hn_out_open(&o, path, true, err);
    if (!st) st = hn_out_write(o, data, size, err);
    hn_free(data);
    if (!st) return hn_out_finish(&o, err);
    hn_out_abort(&o);
    return st;
}
