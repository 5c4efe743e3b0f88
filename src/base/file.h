/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - reading files whole, mapped or piece by piece. Errors name the path. Writing: file_out.h. */
#ifndef HN_FILE_H
#define HN_FILE_H
#include <sys/types.h>
#include <time.h>

#include "base/status.h"

/* A regular file as memory, read-only and private. If the file is truncated, an access to a page after its new end raises
 * SIGBUS, as with every mapping: so data that is read once is read by hn_map_copy_head or hn_map_read, which return errors, and
 * code that reads data repeatedly calls hn_map_check first. */
typedef struct hn_map {
    const unsigned char *data; /* NULL when size is 0 */
    size_t size;
    size_t held;               /* bytes from the beginning that are private copies */
    int fd;                    /* of an open map */
    struct timespec changed;   /* mtime of the file when it was opened */
} hn_map;

/* HUNCH_FAILED if it cannot be opened or read, is a folder, … The map holds a descriptor: it shows the opened file even if that
 * is removed, or replaced by another of its name. */
hunch_status hn_map_open(hn_map *out, const char *path, hunch_error *err);
void hn_map_close(hn_map *m); /* zeroed is fine */
/* Replaces the map's first `bytes` bytes (or a few more) by copies, which do not change with the file. */
hunch_status hn_map_copy_head(hn_map *m, const char *path, size_t bytes, hunch_error *err);
void hn_map_drop_head(hn_map *m); /* replaces the copies by the mapped file again; they stay if that has no memory */
/* Copies bytes [off, off + bytes), which are in the map, from the file. Any thread. */
hunch_status hn_map_read(const hn_map *m, const char *path, size_t off, size_t bytes, void *to, hunch_error *err);
/* HUNCH_FAILED if the file's size or mtime has changed since it was opened. Any thread. */
hunch_status hn_map_check(const hn_map *m, const char *path, hunch_error *err);

/* Whole file, NUL-terminated (size does not count the NUL). Freed with hn_free. HUNCH_REFUSED if it has more than max
 * bytes. */
hunch_status hn_file_read(const char *path, size_t max, char **data, size_t *size, hunch_error *err);
bool hn_is_folder(const char *path);
bool hn_is_file(const char *path);
bool hn_folder_holds(const char *folder, const char *name); /* a file of that name */
bool hn_exists(const char *path);
/* hn_is_file for callers that report a missing file: HUNCH_FAILED if it cannot be determined whether there is one, because a
 * folder of the path may not be searched, links form a loop, or the disk fails. */
hunch_status hn_file_probe(const char *path, bool *is_file, hunch_error *err);
bool hn_same_file(const char *a, const char *b); /* true if both name one existing file or folder */
char *hn_path_join(const char *folder, const char *name); /* hn_free; NULL: no memory */
#endif
