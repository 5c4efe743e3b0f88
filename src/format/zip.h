/* SPDX-License-Identifier: Apache-2.0 */
/* zip.h - the list of a zip archive's entries and where their bytes lie, for checkpoints of PyTorch (torch.c).
 *
 * Entries are not unpacked: what is wanted must be stored as it is. All that an archive says is checked before it is used: a
 * name stands once, and no two entries share bytes. Checksums are not looked at. Zip64 is read; archives of several disks and
 * what is encrypted are not.
 */
#ifndef HN_ZIP_H
#define HN_ZIP_H
#include "base/file.h"
#include "format/name_index.h"

typedef struct hn_zip_entry {
    const char *name; /* printable UTF-8 */
    uint64_t bytes;
    uint64_t header;  /* where in the file its own header begins */
    uint64_t limit;   /* where the next entry begins, or the list of them */
    bool stored;      /* neither compressed nor encrypted */
} hn_zip_entry;

typedef struct hn_zip {
    const hn_map *map;
    const char *path;
    unsigned char *list; /* the central directory; names point into it */
    hn_zip_entry *entries;
    size_t n;
    hn_name_index by_name;
} hn_zip;

/* The map and the path must outlive it. HUNCH_REFUSED: no archive, or one that lies; HUNCH_FAILED: it cannot be read. On error
 * there is nothing to close. */
hunch_status hn_zip_open(hn_zip *z, const hn_map *map, const char *path, hunch_error *err);
void hn_zip_close(hn_zip *z); /* zeroed is fine */
/* NULL: none of that name. */
const hn_zip_entry *hn_zip_find(const hn_zip *z, const char *name);
/* Where in the file the entry's bytes begin: all of them lie there. HUNCH_REFUSED where they are not stored as they are. */
hunch_status hn_zip_locate(const hn_zip *z, const hn_zip_entry *e, size_t *off, hunch_error *err);
#endif
