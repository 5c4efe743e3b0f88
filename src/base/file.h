/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - reading files whole or mapped, and writing them whole. Errors name the path. */
#ifndef HN_FILE_H
#define HN_FILE_H
#include "base/status.h"

typedef struct hn_map {
    const unsigned char *data; /* read-only; NULL when size is 0 */
    size_t size;
} hn_map;

/* Maps a regular file read-only (private). HUNCH_FAILED if it cannot be opened or read, is a folder, …
 * A file that is truncated behind our back raises SIGBUS on access, as with every mapping; loading therefore copies. */
hunch_status hn_map_open(hn_map *out, const char *path, hunch_error *err);
void hn_map_close(hn_map *m);
void hn_map_release(const hn_map *m, size_t off, size_t len); /* these pages were copied: drop them from memory */

/* Whole file, NUL-terminated (size does not count it). To be freed with hn_free. HUNCH_REFUSED if it has more than max
 * bytes. */
hunch_status hn_file_read(const char *path, size_t max, char **data, size_t *size, hunch_error *err);
bool hn_is_folder(const char *path);
bool hn_is_file(const char *path);
bool hn_folder_holds(const char *folder, const char *name); /* a file of that name */
bool hn_exists(const char *path);
char *hn_path_join(const char *folder, const char *name); /* hn_free; NULL: no memory */
#endif
