/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - reading files whole, mapped or piece by piece. Every error names the path and what was expected of it.
 *
 * Owns the descriptors of maps. src/format/ interprets the bytes; file_out.c writes files. Tests can make reads fail
 * (fault.h).
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file_descriptor.h"
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

/* Opens a regular file. A FIFO or device is refused before a read can block or never end. */
static hunch_status regular_open(const char *path, int *fd, struct stat *st, hunch_error *err) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return errno_fail(path, errno, err);
    hunch_status status = HUNCH_OK;
    if (hn_fault_hit(HN_FAULT_READ)) {
        status = errno_fail(path, EIO, err);
    } else if (fstat(*fd, st) != 0) {
        status = errno_fail(path, errno, err);
    } else if (S_ISDIR(st->st_mode)) {
        status = hn_fail(err, HUNCH_FAILED, "%s: is a folder, expected a file", path);
    } else if (!S_ISREG(st->st_mode)) {
        status = hn_fail(err, HUNCH_FAILED, "%s: is not a regular file", path);
    }
    if (status) close(*fd);
    return status;
}

/* pread, with the faults that a test armed. */
static ssize_t some_read(int fd, void *to, size_t size, size_t off) {
    if (hn_fault_hit(HN_FAULT_READ)) return errno = EIO, -1;
    if (hn_fault_hit(HN_FAULT_SHORT)) {
        if (hn_fault_count(HN_FAULT_SHORT) % 2) return errno = EINTR, -1;
        size = size / 2 + 1;
    }
    return pread(fd, to, size, (off_t)off);
}

hunch_status hn_fd_read(int fd, const char *path, size_t off, void *to, size_t size, hunch_error *err) {
    for (size_t done = 0; done < size;) {
        ssize_t n = some_read(fd, (char *)to + done, size - done, off + done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno_fail(path, errno, err);
        if (n == 0)
            return hn_fail(err, HUNCH_FAILED, "%s: ended after %zu of %zu bytes: it was cut short while it was read",
                           path, off + done, off + size);
        done += (size_t)n;
    }
    return HUNCH_OK;
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

static size_t page_size(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes of the last page of a mapping after the end of the file: zeros, poisoned for the address sanitizer. */
static size_t tail_size(size_t size) {
    return -size & (page_size() - 1);
}

static void *pages_map(void *at, size_t size, int protection, int flags, int fd, size_t off) {
    if (hn_fault_hit(HN_FAULT_ALLOC)) return errno = ENOMEM, MAP_FAILED;
    return mmap(at, size, protection, MAP_PRIVATE | flags, fd, (off_t)off);
}

hunch_status hn_map_open(hn_map *out, const char *path, hunch_error *err) {
    *out = (hn_map){0};
    int fd;
    struct stat st;
    hunch_status status = regular_open(path, &fd, &st, err);
    if (status) return status;
    const size_t size = (size_t)st.st_size;
    if (size == 0) {
        close(fd);
        return HUNCH_OK;
    }
    void *p = pages_map(NULL, size, PROT_READ, 0, fd, 0);
    if (p == MAP_FAILED) {
        status = errno == ENOMEM ? hn_fail(err, HUNCH_NO_MEMORY, "%s: no memory to map %zu bytes", path, size)
                                 : errno_fail(path, errno, err);
        close(fd);
        return status;
    }
    *out = (hn_map){.data = p, .size = size, .fd = fd, .changed = st.st_mtim};
    ASAN_POISON_MEMORY_REGION(out->data + size, tail_size(size));
    return HUNCH_OK;
}

void hn_map_close(hn_map *m) {
    if (m->data) {
        ASAN_UNPOISON_MEMORY_REGION(m->data + m->size, tail_size(m->size));
        munmap((void *)m->data, m->size);
        close(m->fd);
    }
    *m = (hn_map){0};
}

hunch_status hn_map_copy_head(hn_map *m, const char *path, size_t bytes, hunch_error *err) {
    enum { LEAST = 64 << 10 };
    if (bytes <= m->held) return HUNCH_OK;
    const size_t page = page_size(), from = m->held; /* a whole number of pages, or the whole file */
    size_t end = bytes < LEAST ? LEAST : bytes + bytes / 2; /* a header is read in many small pieces */
    end = end < m->size ? (end + page - 1) / page * page : m->size;
    if (end > m->size) end = m->size;
    if (bytes > m->size) return hn_fail(err, HUNCH_FAILED, "%s: has %zu bytes, expected %zu", path, m->size, bytes);
    unsigned char *to = (unsigned char *)(uintptr_t)m->data + from;
    if (pages_map(to, end - from, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return hn_fail_memory(err, path, end - from);
    hunch_status status = hn_fd_read(m->fd, path, from, to, end - from, err);
    if (!status)
        m->held = end;
    else
        pages_map(to, end - from, PROT_READ, MAP_FIXED, m->fd, from); /* map the file again, as far as it exists */
    return status;
}

void hn_map_drop_head(hn_map *m) {
    if (m->held > 0 && pages_map((void *)(uintptr_t)m->data, m->held, PROT_READ, MAP_FIXED, m->fd, 0) != MAP_FAILED)
        m->held = 0;
}

hunch_status hn_map_read(const hn_map *m, const char *path, size_t off, size_t bytes, void *to, hunch_error *err) {
    if (bytes == 0) return HUNCH_OK;
    return hn_fd_read(m->fd, path, off, to, bytes, err);
}

hunch_status hn_map_check(const hn_map *m, const char *path, hunch_error *err) {
    struct stat st;
    if (!m->data) return HUNCH_OK;
    if (hn_fault_hit(HN_FAULT_READ)) return errno_fail(path, EIO, err);
    if (fstat(m->fd, &st) != 0) return errno_fail(path, errno, err);
    if ((size_t)st.st_size != m->size)
        return hn_fail(err, HUNCH_FAILED,
                       "%s: was changed while it is in use: it has %zu bytes now, %zu when it was opened", path,
                       (size_t)st.st_size, m->size);
    if (st.st_mtim.tv_sec != m->changed.tv_sec || st.st_mtim.tv_nsec != m->changed.tv_nsec)
        return hn_fail(err, HUNCH_FAILED, "%s: was written to while it is in use", path);
    return HUNCH_OK;
}

/* ---- whole files -------------------------------------------------------------------------------------------------- */

hunch_status hn_file_read(const char *path, size_t max, char **data, size_t *size, hunch_error *err) {
    *data = NULL;
    *size = 0;
    int fd;
    struct stat st;
    hunch_status status = regular_open(path, &fd, &st, err);
    if (status) return status;
    const size_t bytes = (size_t)st.st_size;
    char *buffer = NULL;
    if (bytes > max || bytes == SIZE_MAX) {
        status = hn_fail(err, HUNCH_REFUSED, "%s: has %zu bytes, expected at most %zu", path, bytes, max);
    } else if (!(buffer = hn_alloc(bytes + 1))) {
        status = hn_fail_memory(err, path, bytes + 1);
    } else {
        status = hn_fd_read(fd, path, 0, buffer, bytes, err);
    }
    close(fd);
    if (status) {
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

hunch_status hn_file_probe(const char *path, bool *is_file, hunch_error *err) {
    struct stat st;
    const bool there = stat(path, &st) == 0;
    *is_file = there && S_ISREG(st.st_mode);
    if (there || errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return HUNCH_OK;
    return hn_fail(err, HUNCH_FAILED, "%s: %s", path, strerror(errno));
}

bool hn_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
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
