/* SPDX-License-Identifier: Apache-2.0 */
/* zip.h - the entries of a zip archive and the location of their bytes, for PyTorch checkpoints (torch.c).
 *
 * Entries are not decompressed: those that are read must be stored uncompressed. All fields are checked before they are used:
 * names are unique, and no two entries share bytes. Checksums are not verified. Zip64 is supported; archives of several disks
 * and encrypted entries are not.
 */
#ifndef HN_ZIP_H
#define HN_ZIP_H
#include "base/file.h"
#include "format/name_index.h"

typedef struct hn_zip_entry {
    const char *name; /* printable UTF-8 */
    uint64_t bytes;
    uint64_t header;  /* offset of its own header in the file */
    uint64_t limit;   /* offset of the next entry, or of the list */
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

/* The map and the path must outlive it. HUNCH_REFUSED: not an archive, or an invalid one; HUNCH_FAILED: it cannot be read. On
 * error there is nothing to close. */
hunch_status hn_zip_open(hn_zip *z, const hn_map *map, const char *path, hunch_error *err);
void hn_zip_close(hn_zip *z); /* zeroed is fine */
/* NULL: there is none. */
const hn_zip_entry *hn_zip_find(const hn_zip *z, const char *name);
/* The offset of the entry's bytes, all of which are inside the file. HUNCH_REFUSED if they are not stored uncompressed. */
hunch_status hn_zip_locate(const hn_zip *z, const hn_zip_entry *e, size_t *off, hunch_error *err);
#endif
