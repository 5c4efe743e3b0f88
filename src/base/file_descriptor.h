/* SPDX-License-Identifier: Apache-2.0 */
/* file_descriptor.h - reads and writes of a descriptor, which tests can make fail; shared by the files of base. Errors name the path. */
#ifndef HN_FILE_DESCRIPTOR_H
#define HN_FILE_DESCRIPTOR_H
#include "base/status.h"

/* Bytes [off, off + size); HUNCH_FAILED if the file ends before. */
hunch_status hn_fd_read(int fd, const char *path, size_t off, void *to, size_t size, hunch_error *err);
/* All `size` bytes, at the current offset. */
hunch_status hn_fd_write(int fd, const char *path, const void *data, size_t size, hunch_error *err);
#endif
