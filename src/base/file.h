/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - reading files whole, mapped or piece by piece. Errors name the path. Writing: file_out.h. */
#ifndef HN_FILE_H
#define HN_FILE_H
#include <sys/types.h>
#include <time.h>

#include "base/status.h"

/* A regular file as memory, read-only and private. Whoever touches a page of it that was cut off meanwhile gets SIGBUS, as with
 * every mapping: so what is read once goes through hn_map_hold or hn_map_read, which give errors, and what is read again
 * and again asks hn_map_check before. */
typedef struct hn_map {
    const unsigned char *data; /* NULL when size is 0 */
    size_t size;
    size_t held;               /* bytes from the beginning that are copies of our own */
    int fd;                    /* of an open map */
    struct timespec changed;   /* when the file was, as it was opened */
} hn_map;

/* HUNCH_FAILED if it cannot be opened or read, is a folder, … The map holds a descriptor: a file that is removed or replaced
 * by another of that name stays what it was. */
hunch_status hn_map_open(hn_map *out, const char *path, hunch_error *err);
void hn_map_close(hn_map *m); /* zeroed is fine */
/* Puts copies in the place of the file's first `bytes` bytes (or a few more): they stay whatever happens to the file. */
hunch_status hn_map_hold(hn_map *m, const char *path, size_t bytes, hunch_error *err);
void hn_map_let_go(hn_map *m); /* the copies: the file itself is there again. Without memory they stay. */
/* Copies bytes [off, off + bytes), which lie in the map, from the file. Any thread. */
hunch_status hn_map_read(const hn_map *m, const char *path, size_t off, size_t bytes, void *to, hunch_error *err);
/* HUNCH_FAILED where the file's size or time of change is not what it was when it was opened. Any thread. */
hunch_status hn_map_check(const hn_map *m, const char *path, hunch_error *err);

/* Whole file, NUL-terminated (size does not count it). To be freed with hn_free. HUNCH_REFUSED if it has more than max
 * bytes. */
hunch_status hn_file_read(const char *path, size_t max, char **data, size_t *size, hunch_error *err);
bool hn_is_folder(const char *path);
bool hn_is_file(const char *path);
bool hn_folder_holds(const char *folder, const char *name); /* a file of that name */
bool hn_exists(const char *path);
/* hn_is_file, for those who would say that there is nothing: HUNCH_FAILED where it cannot be known whether there is something of
 * that name. A folder on the way may not be searched, links go in a circle, the disk fails. */
hunch_status hn_file_look(const char *path, bool *is_file, hunch_error *err);
bool hn_same_file(const char *a, const char *b); /* two names of one file or folder that is there */
char *hn_path_join(const char *folder, const char *name); /* hn_free; NULL: no memory */
#endif
