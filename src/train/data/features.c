/* SPDX-License-Identifier: Apache-2.0 */
/* features.c - see features.h. */
#include "train/data/features.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "model/pass.h"
#include "train/data/online.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shards are written as numbers lie in memory");

static const char magic[8] = "HUNCHFT1";
enum { SHARD = 1 << 30 };

static uint64_t sum_of_texts(const hn_train_texts *t) {
    uint64_t h = 1;
    for (size_t i = 0; i < t->n; i++) {
        h = hn_bytes_hash(&t->item[i].own, sizeof t->item[i].own, h);
        h = hn_bytes_hash(t->item[i].ids, (size_t)t->item[i].n * sizeof *t->item[i].ids, h);
    }
    return h;
}

char *hn_features_shard_path(const char *folder, size_t number) {
    char name[40];
    snprintf(name, sizeof name, "features-%04zu.bin", number);
    return hn_path_join(folder, name);
}

static hunch_status file_fail(const char *path, const char *what, hunch_error *err) {
    return hn_fail(err, HUNCH_FAILED, "%s: %s: %s", path, what, strerror(errno));
}

static size_t record_bytes(const hn_shard_header *h, uint32_t n) {
    return 2 * sizeof(uint32_t) + n * sizeof(int32_t) + (size_t)n * h->n_states * h->width * sizeof(uint16_t) +
           sizeof(uint64_t);
}

/* ---- records ------------------------------------------------------------------------------------------------------------ */

/* Several records are computed at a time, so that their texts share passes. */
enum { GROUP_TEXTS = 64, GROUP_ROWS = 2048 };

typedef struct taking {
    hn_shard_header header;
    hn_states *states;
    FILE *shard;
    const char *folder;
    char *path;
    size_t number; /* of the shard */
    unsigned char *records;
} taking;

/* The number of texts from `first` on that are computed together, and the bytes of their records. */
static size_t group_at(const hn_shard_header *h, const hn_train_texts *texts, size_t first, size_t *bytes) {
    size_t n = 0;
    int rows = 0;
    for (*bytes = 0; first + n < texts->n && n < GROUP_TEXTS; n++) {
        const int more = texts->item[first + n].n;
        if (n && rows + more > GROUP_ROWS) break;
        rows += more;
        *bytes += (record_bytes(h, (uint32_t)more) + 7) / 8 * 8;
    }
    return n;
}

/* Computes their records, each at a multiple of 8 bytes. */
static hunch_status take_group(taking *t, const hn_train_text *text, size_t n, hunch_error *err) {
    hn_states_text wanted[GROUP_TEXTS];
    unsigned char *p = t->records;
    for (size_t i = 0; i < n; i++) {
        const uint32_t rows = (uint32_t)text[i].n, own = (uint32_t)text[i].own;
        memcpy(p, &rows, sizeof rows);
        memcpy(p + sizeof rows, &own, sizeof own);
        memcpy(p + 2 * sizeof rows, text[i].ids, rows * sizeof *text[i].ids);
        wanted[i] = (hn_states_text){text[i].ids, text[i].n,
                                     (uint16_t *)(void *)(p + 2 * sizeof rows + rows * sizeof *text[i].ids)};
        p += (record_bytes(&t->header, rows) + 7) / 8 * 8;
    }
    return hn_states_compute(t->states, wanted, n, err);
}

/* ---- shards ------------------------------------------------------------------------------------------------------------- */

static hunch_status shard_close(taking *t, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    if (t->shard && fclose(t->shard) != 0) st = file_fail(t->path, "cannot be written", err);
    hn_free(t->path);
    t->shard = NULL;
    t->path = NULL;
    return st;
}

/* Opens shard `number`, to continue after `end` bytes; 0: a new one. */
static hunch_status shard_open(taking *t, size_t number, long end, hunch_error *err) {
    t->number = number;
    t->path = hn_features_shard_path(t->folder, number);
    if (!t->path) return hn_fail_memory(err, "a path", 0);
    t->shard = fopen(t->path, end ? "r+b" : "wb");
    if (!t->shard || (end && (ftruncate(fileno(t->shard), end) != 0 || fseek(t->shard, end, SEEK_SET) != 0)))
        return file_fail(t->path, "cannot be written", err);
    if (!end && fwrite(&t->header, sizeof t->header, 1, t->shard) != 1)
        return file_fail(t->path, "cannot be written", err);
    return HUNCH_OK;
}

/* Reads the record at `at` of a mapped shard: its text, and the offset of the next record; 0: it is incomplete or damaged. */
static size_t record_at(const hn_shard_header *h, const unsigned char *data, size_t size, size_t at,
                        hn_feature_text *out) {
    uint32_t n, own;
    uint64_t sum;
    if (size - at < 2 * sizeof n + sizeof sum) return 0;
    memcpy(&n, data + at, sizeof n);
    memcpy(&own, data + at + sizeof n, sizeof own);
    if (n < 1 || n > 1 << 24 || own > n) return 0;
    const size_t bytes = record_bytes(h, n);
    if (size - at < bytes) return 0;
    memcpy(&sum, data + at + bytes - sizeof sum, sizeof sum);
    if (hn_bytes_hash(data + at, bytes - sizeof sum, 1) != sum) return 0;
    const unsigned char *ids = data + at + 2 * sizeof n;
    *out = (hn_feature_text){(const int32_t *)(const void *)ids,
                             (const uint16_t *)(const void *)(ids + n * sizeof(int32_t)), (int)n, (int)own};
    return at + bytes;
}

enum { TAPS_TEXT = 16 * HN_TRAIN_MOST_STATES };

/* "--taps 1:2:4": the states that are read beside the last one. */
static const char *taps_text(const hn_shard_header *h, char out[TAPS_TEXT]) {
    size_t n = (size_t)snprintf(out, TAPS_TEXT, "no --taps");
    bool any = false;
    for (uint32_t i = 0; i < h->n_states && i < HN_TRAIN_MOST_STATES; i++) {
        if (h->boundary[i] == HN_FEATURE_POST_NORM) continue;
        n = any ? n : 0;
        n += (size_t)snprintf(out + n, TAPS_TEXT - n, "%s%d", any ? ":" : "--taps ", (int)h->boundary[i]);
        any = true;
    }
    return out;
}

static hunch_status check_header(const hn_shard_header *have, const hn_shard_header *want, const char *path,
                                 hunch_error *err) {
    const char *what = memcmp(have->magic, want->magic, sizeof magic) != 0 ? "no features"
                       : have->model != want->model                        ? "features of another model"
                       : have->texts != want->texts                        ? "features of other texts"
                       : strcmp(have->level, want->level) != 0             ? "features of another instruction level"
                       : have->width != want->width                        ? "features of another width"
                                                                           : NULL;
    char has[TAPS_TEXT], wants[TAPS_TEXT];
    if (what) return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected those of this run, or another folder", path, what);
    if (memcmp(have, want, sizeof *have) == 0) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED, "%s: features of %s, this training has %s: expected %s, or another -o", path,
                   taps_text(have, has), taps_text(want, wants), has);
}

/* The number of texts in the shards; leaves the last shard open after them. */
static hunch_status resume(taking *t, const hn_train_texts *texts, size_t *done, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    *done = 0;
    for (size_t number = 0; !st; number++) {
        hn_map map = {0};
        hn_shard_header have;
        char *path = hn_features_shard_path(t->folder, number), *next = hn_features_shard_path(t->folder, number + 1);
        const bool there = path && hn_is_file(path), last = next && !hn_is_file(next);
        size_t end = 0, at;
        if (!path || !next) st = hn_fail_memory(err, "a path", 0);
        if (!st && there) st = hn_map_open(&map, path, err);
        if (!st && there && map.size >= sizeof have) {
            memcpy(&have, map.data, sizeof have);
            st = check_header(&have, &t->header, path, err);
            hn_feature_text text;
            for (at = end = sizeof have; !st && (at = record_at(&have, map.data, map.size, at, &text)); end = at)
                ++*done;
            if (!st && !last && end != map.size) st = hn_fail(err, HUNCH_REFUSED, "%s: damaged at byte %zu", path, end);
        }
        hn_map_close(&map);
        hn_free(path);
        hn_free(next);
        if (!st && *done > texts->n) st = hn_fail(err, HUNCH_REFUSED, "%s: more features than texts", t->folder);
        if (st || !last) continue;
        return shard_open(t, number, (long)end, err);
    }
    return st;
}

static hunch_status write_record(taking *t, unsigned char *record, size_t bytes, hunch_error *err) {
    const uint64_t sum = hn_bytes_hash(record, bytes - sizeof sum, 1);
    memcpy(record + bytes - sizeof sum, &sum, sizeof sum);
    if (ftell(t->shard) > SHARD) {
        hunch_status st = shard_close(t, err);
        if (!st) st = shard_open(t, t->number + 1, 0, err);
        if (st) return st;
    }
    return fwrite(record, 1, bytes, t->shard) == bytes ? HUNCH_OK : file_fail(t->path, "cannot be written", err);
}

static hunch_status write_group(taking *t, const hn_train_text *text, size_t n, hunch_error *err) {
    unsigned char *p = t->records;
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < n; i++) {
        const size_t bytes = record_bytes(&t->header, (uint32_t)text[i].n);
        st = write_record(t, p, bytes, err);
        p += (bytes + 7) / 8 * 8;
    }
    return st;
}

static hunch_status take_all(taking *t, const hn_train_texts *texts, hunch_progress progress, void *user,
                             const volatile int *stop, hunch_error *err) {
    size_t i = 0, n, bytes;
    uint64_t tokens = 0;
    hunch_status st = resume(t, texts, &i, err);
    for (size_t k = 0; k < i && !st; k++) tokens += (uint64_t)texts->item[k].n;
    for (; !st && i < texts->n; i += n) {
        n = group_at(&t->header, texts, i, &bytes);
        hn_free(t->records);
        t->records = hn_alloc(bytes);
        st = t->records ? take_group(t, &texts->item[i], n, err) : hn_fail_memory(err, "features of texts", bytes);
        if (!st) st = write_group(t, &texts->item[i], n, err);
        for (size_t k = 0; k < n; k++) tokens += (uint64_t)texts->item[i + k].n;
        if (progress && !st) progress(user, tokens, texts->tokens);
        if (!st && stop && *stop)
            st = hn_fail(err, HUNCH_CANCELLED, "interrupted: features of %zu of %zu texts are there", i + n, texts->n);
    }
    hunch_error late;
    const hunch_status closed = shard_close(t, st ? &late : err);
    return st ? st : closed;
}

hn_shard_header hn_features_header(const hn_model *target, uint64_t identity, const hn_train_texts *texts,
                                   const int *states, int n_states) {
    hn_shard_header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    h.model = identity;
    h.texts = sum_of_texts(texts);
    h.n_states = (uint32_t)n_states;
    h.width = (uint32_t)target->arch.hidden;
    for (int i = 0; i < n_states; i++) h.boundary[i] = states[i];
    snprintf(h.level, sizeof h.level, "%s", hn_isa_name(target->isa));
    return h;
}

uint64_t hn_features_bytes(const hn_shard_header *h, const hn_train_texts *texts) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < texts->n; i++) bytes += record_bytes(h, (uint32_t)texts->item[i].n);
    return bytes + (bytes / SHARD + 1) * sizeof *h;
}

hunch_status hn_features_make(const hn_model *target, uint64_t identity, const hn_train_texts *texts, const int *states,
                              int n_states, const char *folder, hunch_progress progress, void *user,
                              const volatile int *stop, hunch_error *err) {
    taking t = {.header = hn_features_header(target, identity, texts, states, n_states), .folder = folder};
    const int longest = hn_train_texts_longest(texts);
    if (longest == 0) return hn_fail(err, HUNCH_USAGE, "no texts to learn from");
    hunch_status st = hn_states_open(&t.states, target, states, n_states, longest, err);
    if (!st) st = take_all(&t, texts, progress, user, stop, err);
    hn_states_close(&t.states);
    hn_free(t.records);
    return st;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

typedef struct hn_shard_map {
    hn_map map;
} hn_shard_map;

static hunch_status read_shard(hn_features_read *f, const char *path, bool first, hunch_error *err) {
    hn_feature_text text;
    hn_shard_header have;
    if (!hn_grow((void **)&f->map, &f->maps_cap, f->n_maps + 1, sizeof *f->map))
        return hn_fail_memory(err, "shards", f->n_maps);
    hn_map *map = &f->map[f->n_maps].map;
    *map = (hn_map){0};
    hunch_status st = hn_map_open(map, path, err);
    if (st) return st;
    f->n_maps++;
    if (map->size < sizeof have) return hn_fail(err, HUNCH_REFUSED, "%s: too short for features", path);
    memcpy(&have, map->data, sizeof have);
    if (first) f->header = have;
    st = check_header(&have, &f->header, path, err);
    for (size_t at = sizeof have, next; !st && at < map->size; at = next) {
        next = record_at(&have, map->data, map->size, at, &text);
        if (!next) return hn_fail(err, HUNCH_REFUSED, "%s: damaged at byte %zu", path, at);
        if (!hn_grow((void **)&f->text, &f->cap, f->n + 1, sizeof *f->text)) return hn_fail_memory(err, "texts", f->n);
        f->text[f->n++] = text;
        f->tokens += (uint64_t)text.n;
    }
    return st;
}

hunch_status hn_features_open(hn_features_read *f, const char *folder, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    *f = (hn_features_read){0};
    for (size_t number = 0; !st; number++) {
        char *path = hn_features_shard_path(folder, number);
        const bool there = path && hn_is_file(path);
        if (!path) st = hn_fail_memory(err, "a path", 0);
        if (there) st = read_shard(f, path, number == 0, err);
        hn_free(path);
        if (!there) break;
    }
    if (!st && f->n == 0) st = hn_fail(err, HUNCH_REFUSED, "%s: no features there", folder);
    return st;
}

void hn_features_close(hn_features_read *f) {
    for (size_t i = 0; i < f->n_maps; i++) hn_map_close(&f->map[i].map);
    hn_free(f->map);
    hn_free(f->text);
    hn_online_close(&f->online);
    *f = (hn_features_read){0};
}
