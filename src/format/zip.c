/* SPDX-License-Identifier: Apache-2.0 */
/* zip.c - see zip.h. An archive is read from its end:
 *
 *     (header  name  extra  bytes)...   (entry  name  extra  comment)...   [zip64 end]  [zip64 place]  end  comment
 *                                       the central directory
 *
 * Numbers that do not fit into 32 bits are all ones, and are stored as 64 bits in an extra field or in the zip64 end.
 */
#include "format/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    ZIP_HEADER = 0x04034b50,
    ZIP_ENTRY = 0x02014b50,
    ZIP_END = 0x06054b50,
    ZIP64_END = 0x06064b50,
    ZIP64_PLACE = 0x07064b50,
    HEADER_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    PLACE_BYTES = 20, /* without fields of variable length */
    COMMENT_MAX = 0xFFFF,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1,
    NAME_MAX_BYTES = 512
};
static const uint64_t ZIP_MAX_LIST = 64 << 20;
static const uint32_t ELSEWHERE = 0xFFFFFFFF; /* the number is stored as 64 bits */

static uint64_t number(const unsigned char *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static hunch_status damaged(const hn_zip *z, hunch_error *err, const char *what) {
    return hn_fail(err, HUNCH_REFUSED, "%s: damaged zip archive: %s (truncated?)", z->path, what);
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

typedef struct ending {
    uint64_t off, bytes, n; /* of the central directory */
    uint64_t at;            /* offset of the end records */
} ending;

/* *at: offset of the end record, which only its comment follows. */
static hunch_status end_find(const hn_zip *z, unsigned char *end, uint64_t *at, hunch_error *err) {
    const size_t size = z->map->size, n = size < END_BYTES + COMMENT_MAX ? size : END_BYTES + COMMENT_MAX;
    unsigned char *tail = hn_alloc(n);
    if (tail == NULL) return hn_fail_memory(err, z->path, n);
    hunch_status status = hn_map_read(z->map, z->path, size - n, n, tail, err);
    size_t from = n;
    for (size_t i = n >= END_BYTES ? n - END_BYTES + 1 : 0; i-- > 0 && from == n && !status;)
        if (number(tail + i, 4) == ZIP_END && number(tail + i + 20, 2) == n - i - END_BYTES) from = i;
    if (!status && from == n) status = damaged(z, err, "it has no end record");
    if (!status) memcpy(end, tail + from, END_BYTES);
    *at = size - n + from;
    hn_free(tail);
    return status;
}

/* Reads the 64-bit form of the end, if there is one. */
static hunch_status end64_read(const hn_zip *z, ending *e, hunch_error *err) {
    unsigned char place[PLACE_BYTES], end[END64_BYTES];
    if (e->at < PLACE_BYTES + END64_BYTES) return HUNCH_OK;
    hunch_status status = hn_map_read(z->map, z->path, e->at - PLACE_BYTES, sizeof place, place, err);
    if (status || number(place, 4) != ZIP64_PLACE) return status;
    const uint64_t at = number(place + 8, 8);
    if (at > e->at - PLACE_BYTES - END64_BYTES) return damaged(z, err, "its zip64 end record lies behind its end");
    status = hn_map_read(z->map, z->path, at, sizeof end, end, err);
    if (status) return status;
    if (number(end, 4) != ZIP64_END || number(end + 16, 4) != 0 || number(end + 20, 4) != 0)
        return damaged(z, err, "it has no readable zip64 end record");
    *e = (ending){.off = number(end + 48, 8), .bytes = number(end + 40, 8), .n = number(end + 32, 8), .at = at};
    return HUNCH_OK;
}

static hunch_status ending_read(const hn_zip *z, ending *e, hunch_error *err) {
    unsigned char end[END_BYTES] = {0};
    hunch_status status = end_find(z, end, &e->at, err);
    if (status) return status;
    if (number(end + 4, 2) != 0 || number(end + 6, 2) != 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: a part of a zip archive of several disks; expected a whole one",
                       z->path);
    e->n = number(end + 10, 2);
    e->bytes = number(end + 12, 4);
    e->off = number(end + 16, 4);
    status = end64_read(z, e, err);
    if (status) return status;
    if (e->bytes > e->at || e->off != e->at - e->bytes || e->n > e->bytes / ENTRY_BYTES)
        return damaged(z, err, "the place of its list of entries is wrong");
    if (e->bytes > ZIP_MAX_LIST)
        return hn_fail(err, HUNCH_REFUSED, "%s: its list of entries has %" PRIu64 " bytes; expected at most %" PRIu64,
                       z->path, e->bytes, ZIP_MAX_LIST);
    return HUNCH_OK;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* Reads the 64-bit numbers of an entry, in this order: size, size in the archive, offset. False: they are missing. */
static bool extra_read(const unsigned char *extra, size_t len, uint64_t *numbers[3]) {
    bool wanted = false;
    for (int i = 0; i < 3; i++) wanted = wanted || *numbers[i] == ELSEWHERE;
    while (wanted && len >= 4) {
        size_t n = (size_t)number(extra + 2, 2);
        if (n > len - 4) return false;
        const unsigned char *at = extra + 4;
        if (number(extra, 2) == EXTRA_ZIP64) {
            for (int i = 0; i < 3; i++) {
                if (*numbers[i] != ELSEWHERE) continue;
                if (n < 8) return false;
                *numbers[i] = number(at, 8);
                at += 8, n -= 8;
            }
            return true;
        }
        extra += 4 + n, len -= 4 + n;
    }
    return !wanted;
}

/* Reads the entry at p and advances p. The name is moved down by one byte, over the fixed fields, to make room for a NUL. */
static hunch_status entry_read(hn_zip *z, unsigned char **p, const unsigned char *end, hunch_error *err) {
    unsigned char *at = *p;
    const size_t left = (size_t)(end - at);
    if (left < ENTRY_BYTES || number(at, 4) != ZIP_ENTRY) return damaged(z, err, "an entry of its list is invalid");
    const size_t name = (size_t)number(at + 28, 2), extra = (size_t)number(at + 30, 2),
                 comment = (size_t)number(at + 32, 2);
    if (name + extra + comment > left - ENTRY_BYTES)
        return damaged(z, err, "an entry of its list is longer than the list");
    uint64_t packed = number(at + 20, 4), bytes = number(at + 24, 4), header = number(at + 42, 4);
    if (!extra_read(at + ENTRY_BYTES + name, extra, (uint64_t *[3]){&bytes, &packed, &header}))
        return damaged(z, err, "an entry of its list lacks its 64-bit numbers");
    hn_zip_entry *e = &z->entries[z->n];
    *e = (hn_zip_entry){.name = (const char *)at + ENTRY_BYTES - 1, .bytes = bytes, .header = header};
    e->stored = number(at + 10, 2) == 0 && !(number(at + 8, 2) & FLAG_ENCRYPTED) && packed == bytes;
    memmove(at + ENTRY_BYTES - 1, at + ENTRY_BYTES, name);
    at[ENTRY_BYTES - 1 + name] = '\0';
    if (name > NAME_MAX_BYTES || !hn_name_is_printable(e->name, name))
        return damaged(z, err, "the name of an entry is too long or not printable");
    z->n++;
    *p = at + ENTRY_BYTES + name + extra + comment;
    return HUNCH_OK;
}

static int entry_compare(const void *a, const void *b) {
    const hn_zip_entry *x = a, *y = b;
    return (x->header > y->header) - (x->header < y->header);
}

/* Sets the limit of each entry: the start of the next one, or of the list. */
static hunch_status limits_set(hn_zip *z, const ending *e, hunch_error *err) {
    if (z->n > 1) qsort(z->entries, z->n, sizeof *z->entries, entry_compare);
    for (size_t i = 0; i < z->n; i++) {
        hn_zip_entry *at = &z->entries[i];
        at->limit = i + 1 < z->n ? at[1].header : e->off;
        if (at->header > at->limit || at->limit - at->header < HEADER_BYTES ||
            at->bytes > at->limit - at->header - HEADER_BYTES)
            return hn_fail(err, HUNCH_REFUSED, "%s: damaged zip archive: entry %s reaches into %s", z->path, at->name,
                           i + 1 < z->n ? at[1].name : "the list of entries");
    }
    return HUNCH_OK;
}

static const char *entry_name_of(const void *items, size_t i) {
    return ((const hn_zip_entry *)items)[i].name;
}

static hunch_status entries_index(hn_zip *z, hunch_error *err) {
    size_t first, second;
    if (!hn_name_index_init(&z->by_name, z->entries, z->n, entry_name_of))
        return hn_fail_memory(err, "the entries of an archive", z->n * sizeof(hn_name));
    if (hn_name_index_duplicate(&z->by_name, &first, &second))
        return hn_fail(err, HUNCH_REFUSED, "%s: damaged zip archive: two entries are called %s", z->path,
                       z->entries[first].name);
    return HUNCH_OK;
}

static hunch_status entries_read(hn_zip *z, const ending *e, hunch_error *err) {
    const size_t bytes = (size_t)e->bytes, n = (size_t)e->n;
    z->list = hn_alloc(bytes);
    z->entries = hn_zalloc(n, sizeof *z->entries);
    if (z->list == NULL || z->entries == NULL) return hn_fail_memory(err, "the entries of an archive", bytes);
    hunch_status status = hn_map_read(z->map, z->path, (size_t)e->off, bytes, z->list, err);
    unsigned char *p = z->list;
    for (size_t i = 0; i < n && !status; i++) status = entry_read(z, &p, z->list + bytes, err);
    if (!status && p != z->list + bytes) status = damaged(z, err, "its list is longer than its entries");
    if (!status) status = limits_set(z, e, err);
    return status ? status : entries_index(z, err);
}

hunch_status hn_zip_open(hn_zip *z, const hn_map *map, const char *path, hunch_error *err) {
    ending e = {0};
    *z = (hn_zip){.map = map, .path = path};
    hunch_status status = ending_read(z, &e, err);
    if (!status) status = entries_read(z, &e, err);
    if (status) hn_zip_close(z);
    return status;
}

void hn_zip_close(hn_zip *z) {
    hn_name_index_fini(&z->by_name);
    hn_free(z->entries);
    hn_free(z->list);
    *z = (hn_zip){0};
}

const hn_zip_entry *hn_zip_find(const hn_zip *z, const char *name) {
    ptrdiff_t i = hn_name_index_find(&z->by_name, name);
    return i < 0 ? NULL : &z->entries[i];
}

hunch_status hn_zip_locate(const hn_zip *z, const hn_zip_entry *e, size_t *off, hunch_error *err) {
    unsigned char head[HEADER_BYTES + NAME_MAX_BYTES];
    const size_t len = strlen(e->name), room = (size_t)(e->limit - e->header) - HEADER_BYTES;
    if (!e->stored)
        return hn_fail(err, HUNCH_REFUSED, "%s: entry %s is compressed or encrypted; expected it stored as it is",
                       z->path, e->name);
    if (len > room) return damaged(z, err, "an entry's name is longer than the entry");
    hunch_status status = hn_map_read(z->map, z->path, (size_t)e->header, HEADER_BYTES + len, head, err);
    if (status) return status;
    const size_t before = (size_t)(number(head + 26, 2) + number(head + 28, 2));
    if (number(head, 4) != ZIP_HEADER || number(head + 26, 2) != len || memcmp(head + HEADER_BYTES, e->name, len) != 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: damaged zip archive: the header of entry %s is not where the list says",
                       z->path, e->name);
    if (before > room || e->bytes > room - before)
        return hn_fail(err, HUNCH_REFUSED, "%s: damaged zip archive: entry %s has %" PRIu64 " bytes, its place %zu",
                       z->path, e->name, e->bytes, before < room ? room - before : 0);
    *off = (size_t)e->header + HEADER_BYTES + before;
    return HUNCH_OK;
}
