/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - reading files whole or mapped. Every error names the path and says what was expected of it.
 *
 * Owns no descriptor beyond a call: a mapping outlives the descriptor it was made from. What the bytes mean is the
 * business of src/format/. Reads can be made to fail by a test (fault.h).
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#endif

static hunch_status errno_fail(const char *path, int code, hunch_error *err) {
    if (code == ENOENT || code == ENOTDIR) return hn_fail(err, HUNCH_FAILED, "%s: no such file", path);
    return hn_fail(err, HUNCH_FAILED, "%s: cannot be read: %s", path, strerror(code));
}

/* Opens a regular file. A FIFO or device is refused before it can block or flood us. */
static hunch_status regular_open(const char *path, int *fd, size_t *size, hunch_error *err) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return errno_fail(path, errno, err);
    struct stat st;
    hunch_status status = HUNCH_OK;
    if (hn_fault_hit(HN_FAULT_READ)) {
        status = errno_fail(path, EIO, err);
    } else if (fstat(*fd, &st) != 0) {
        status = errno_fail(path, errno, err);
    } else if (S_ISDIR(st.st_mode)) {
        status = hn_fail(err, HUNCH_FAILED, "%s: is a folder, expected a file", path);
    } else if (!S_ISREG(st.st_mode)) {
        status = hn_fail(err, HUNCH_FAILED, "%s: is not a regular file", path);
    } else {
        *size = (size_t)st.st_size;
    }
    if (status != HUNCH_OK) close(*fd);
    return status;
}

/* The last page of a mapping goes on with zeros behind the file. A sanitizer lets nobody read them. */
static size_t tail_size(size_t size) {
    return -size & ((size_t)sysconf(_SC_PAGESIZE) - 1);
}

hunch_status hn_map_open(hn_map *out, const char *path, hunch_error *err) {
    *out = (hn_map){0};
    int fd;
    size_t size = 0;
    hunch_status status = regular_open(path, &fd, &size, err);
    if (status != HUNCH_OK) return status;
    if (size > 0) {
        void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            status = errno == ENOMEM ? hn_fail(err, HUNCH_NO_MEMORY, "%s: no memory to map %zu bytes", path, size)
                                     : errno_fail(path, errno, err);
        } else {
            *out = (hn_map){p, size};
            ASAN_POISON_MEMORY_REGION(out->data + size, tail_size(size));
        }
    }
    close(fd);
    return status;
}

void hn_map_close(hn_map *m) {
    if (m->data) {
        ASAN_UNPOISON_MEMORY_REGION(m->data + m->size, tail_size(m->size));
        munmap((void *)m->data, m->size);
    }
    *m = (hn_map){0};
}

void hn_map_release(const hn_map *m, size_t off, size_t len) {
    if (off >= m->size) return;
    if (len > m->size - off) len = m->size - off;
    if (m->data) hn_pages_release((void *)(m->data + off), len);
}

static hunch_status whole_read(int fd, const char *path, char *data, size_t size, hunch_error *err) {
    for (size_t at = 0; at < size;) {
        ssize_t n = hn_fault_hit(HN_FAULT_READ) ? (errno = EIO, -1) : read(fd, data + at, size - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno_fail(path, errno, err);
        if (n == 0) return hn_fail(err, HUNCH_FAILED, "%s: ended after %zu of %zu bytes", path, at, size);
        at += (size_t)n;
    }
    return HUNCH_OK;
}

hunch_status hn_file_read(const char *path, size_t max, char **data, size_t *size, hunch_error *err) {
    *data = NULL;
    *size = 0;
    int fd;
    size_t bytes = 0;
    hunch_status status = regular_open(path, &fd, &bytes, err);
    if (status != HUNCH_OK) return status;
    char *buffer = NULL;
    if (bytes > max || bytes == SIZE_MAX) {
        status = hn_fail(err, HUNCH_REFUSED, "%s: has %zu bytes, expected at most %zu", path, bytes, max);
    } else if (!(buffer = hn_alloc(bytes + 1))) {
        status = hn_fail_memory(err, path, bytes + 1);
    } else {
        status = whole_read(fd, path, buffer, bytes, err);
    }
    close(fd);
    if (status != HUNCH_OK) {
        hn_free(buffer);
        return status;
    }
    buffer[bytes] = '\0';
    *data = buffer;
    *size = bytes;
    return HUNCH_OK;
}

bool hn_is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool hn_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

bool hn_is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool hn_folder_holds(const char *folder, const char *name) {
    char path[4096];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && hn_is_file(path);
}

char *hn_path_join(const char *folder, const char *name) {
    size_t n = strlen(folder), bytes;
    const char *slash = n > 0 && folder[n - 1] != '/' ? "/" : "";
    if (!hn_add_size(n + 2, strlen(name), &bytes)) return NULL;
    char *path = hn_alloc(bytes);
    if (path) snprintf(path, bytes, "%s%s%s", folder, slash, name);
    return path;
}
