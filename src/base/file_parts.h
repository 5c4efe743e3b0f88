/* SPDX-License-Identifier: Apache-2.0 */
/* file_parts.h - bytes of an open file, as tests may break them: what the files of base share. Errors name the path. */
#ifndef HN_FILE_PARTS_H
#define HN_FILE_PARTS_H
#include "base/status.h"

/* Bytes [off, off + size) of a file that has them: HUNCH_FAILED where it has them no more. */
hunch_status hn_fd_read(int fd, const char *path, size_t off, void *to, size_t size, hunch_error *err);
/* All of them, from where the file stands. */
hunch_status hn_fd_write(int fd, const char *path, const void *data, size_t size, hunch_error *err);
#endif
