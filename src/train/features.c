/* SPDX-License-Identifier: Apache-2.0 */
/* features.c - see features.h. */
#include "train/features.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "cache/cache.h"
#include "model/kv_groups.h"
#include "model/pass.h"

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

static char *shard_path(const char *folder, size_t number) {
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

/* ---- the target's passes ------------------------------------------------------------------------------------------------ */

typedef struct taking {
    const hn_model *target;
    hn_shard_header header;
    hn_cache *cache;
    hn_runner *runner;
    int longest;
    FILE *shard;
    const char *folder;
    char *path;
    size_t number; /* of the shard */
    unsigned char *record;
} taking;

static hunch_status runner_open(taking *t, hunch_error *err) {
    hn_cache_group group[HN_MAX_GROUPS];
    hn_feature_set set = {{0}, false};
    const int n = hn_kv_groups(&t->target->arch, HN_BF16, group, NULL);
    for (uint32_t i = 0; i < t->header.n_states; i++) {
        const int b = t->header.boundary[i];
        if (b == HN_FEATURE_POST_NORM)
            set.post_norm = true;
        else
            set.layers[b / 64] |= 1ull << (b % 64);
    }
    if (n == 0) return hn_fail(err, HUNCH_REFUSED, "layers with more than %d kinds of rows", HN_MODEL_GROUPS);
    group[0].page_rows = 64;
    hunch_status st = hn_cache_open(&t->cache, &t->target->ops, group, n, 1, t->longest, 0, err);
    return st ? st : hn_runner_open(&t->runner, t->target, t->cache, 0, t->longest, &set, err);
}

/* Rows [at, at + m) of a text into its record. */
static void keep_rows(const taking *t, int at, int m, uint16_t *states) {
    const hn_shard_header *h = &t->header;
    for (int i = 0; i < m; i++)
        for (uint32_t k = 0; k < h->n_states; k++)
            hn_quantise(HN_BF16, hn_pass_feature(t->runner, h->boundary[k], i), h->width,
                        states + ((size_t)(at + i) * h->n_states + k) * h->width);
}

static hunch_status take_text(taking *t, const hn_train_text *text, hunch_error *err) {
    const int id = 0;
    const uint32_t n = (uint32_t)text->n, own = (uint32_t)text->own;
    unsigned char *p = t->record;
    const size_t bytes = record_bytes(&t->header, n);
    hn_row rows[HN_MAX_ROWS];
    hunch_status st = HUNCH_OK;
    memcpy(p, &n, sizeof n);
    memcpy(p + sizeof n, &own, sizeof own);
    memcpy(p + 2 * sizeof n, text->ids, n * sizeof *text->ids);
    uint16_t *states = (uint16_t *)(void *)(p + 2 * sizeof n + n * sizeof *text->ids);
    hn_cache_seq_begin(t->cache, id);
    for (int at = 0; !st && at < text->n; at += HN_MAX_ROWS) {
        const int m = text->n - at < HN_MAX_ROWS ? text->n - at : HN_MAX_ROWS;
        for (int i = 0; i < m; i++)
            rows[i] = (hn_row){
                .token = text->ids[at + i], .parent = (int16_t)(i - 1), .logits = HN_LOGITS_NONE, .feature = true};
        st = hn_pass_run(t->runner, rows, m, &id, 1, err);
        if (st) break;
        keep_rows(t, at, m, states);
        hn_cache_commit(t->cache, id, 0, NULL, m);
    }
    hn_cache_seq_end(t->cache, id);
    const uint64_t sum = hn_bytes_hash(p, bytes - sizeof sum, 1);
    memcpy(p + bytes - sizeof sum, &sum, sizeof sum);
    return st;
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

/* Opens shard `number`, to be gone on with behind `end` bytes; 0: it begins. */
static hunch_status shard_open(taking *t, size_t number, long end, hunch_error *err) {
    t->number = number;
    t->path = shard_path(t->folder, number);
    if (!t->path) return hn_fail_memory(err, "a path", 0);
    t->shard = fopen(t->path, end ? "r+b" : "wb");
    if (!t->shard || (end && (ftruncate(fileno(t->shard), end) != 0 || fseek(t->shard, end, SEEK_SET) != 0)))
        return file_fail(t->path, "cannot be written", err);
    if (!end && fwrite(&t->header, sizeof t->header, 1, t->shard) != 1)
        return file_fail(t->path, "cannot be written", err);
    return HUNCH_OK;
}

/* Walks the records of a mapped shard from `at` on: the text of the record there, and where the next begins; 0: it is not whole, or not
 * what was written. */
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

static hunch_status check_header(const hn_shard_header *have, const hn_shard_header *want, const char *path,
                                 hunch_error *err) {
    const char *what = memcmp(have->magic, want->magic, sizeof magic) != 0 ? "no features"
                       : have->model != want->model                        ? "features of another model"
                       : have->texts != want->texts                        ? "features of other texts"
                       : strcmp(have->level, want->level) != 0             ? "features of another instruction level"
                       : memcmp(have, want, sizeof *have) != 0             ? "features of other states"
                                                                           : NULL;
    return what ? hn_fail(err, HUNCH_REFUSED, "%s: %s: expected those of this run, or another folder", path, what)
                : HUNCH_OK;
}

/* How many texts the shards hold; the last one is open behind them. */
static hunch_status resume(taking *t, const hn_train_texts *texts, size_t *done, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    *done = 0;
    for (size_t number = 0; !st; number++) {
        hn_map map = {0};
        hn_shard_header have;
        char *path = shard_path(t->folder, number), *next = shard_path(t->folder, number + 1);
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

static hunch_status write_record(taking *t, const hn_train_text *text, hunch_error *err) {
    const size_t bytes = record_bytes(&t->header, (uint32_t)text->n);
    if (ftell(t->shard) > SHARD) {
        hunch_status st = shard_close(t, err);
        if (!st) st = shard_open(t, t->number + 1, 0, err);
        if (st) return st;
    }
    return fwrite(t->record, 1, bytes, t->shard) == bytes ? HUNCH_OK : file_fail(t->path, "cannot be written", err);
}

static hunch_status take_all(taking *t, const hn_train_texts *texts, hunch_progress progress, void *user,
                             const volatile int *stop, hunch_error *err) {
    size_t i = 0;
    uint64_t tokens = 0;
    hunch_status st = resume(t, texts, &i, err);
    for (size_t k = 0; k < i && !st; k++) tokens += (uint64_t)texts->item[k].n;
    for (; !st && i < texts->n; i++) {
        st = take_text(t, &texts->item[i], err);
        if (!st) st = write_record(t, &texts->item[i], err);
        tokens += (uint64_t)texts->item[i].n;
        if (progress) progress(user, tokens, texts->tokens);
        if (!st && stop && *stop)
            st = hn_fail(err, HUNCH_CANCELLED, "interrupted: features of %zu of %zu texts are there", i + 1, texts->n);
    }
    hunch_error late;
    const hunch_status closed = shard_close(t, st ? &late : err);
    return st ? st : closed;
}

hunch_status hn_features_make(const hn_model *target, uint64_t identity, const hn_train_texts *texts, const int *states,
                              int n_states, const char *folder, hunch_progress progress, void *user,
                              const volatile int *stop, hunch_error *err) {
    taking t = {.target = target, .folder = folder};
    memcpy(t.header.magic, magic, sizeof magic);
    t.header.model = identity;
    t.header.texts = sum_of_texts(texts);
    t.header.n_states = (uint32_t)n_states;
    t.header.width = (uint32_t)target->arch.hidden;
    for (int i = 0; i < n_states; i++) t.header.boundary[i] = states[i];
    snprintf(t.header.level, sizeof t.header.level, "%s", hn_isa_name(target->ops.isa));
    for (size_t i = 0; i < texts->n; i++)
        if (texts->item[i].n > t.longest) t.longest = texts->item[i].n;
    if (t.longest == 0) return hn_fail(err, HUNCH_USAGE, "no texts to learn from");
    t.record = hn_alloc(record_bytes(&t.header, (uint32_t)t.longest));
    hunch_status st = t.record
                          ? runner_open(&t, err)
                          : hn_fail_memory(err, "features of a text", record_bytes(&t.header, (uint32_t)t.longest));
    if (!st) st = take_all(&t, texts, progress, user, stop, err);
    hn_runner_close(&t.runner);
    hn_cache_close(&t.cache);
    hn_free(t.record);
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
        char *path = shard_path(folder, number);
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
    *f = (hn_features_read){0};
}
