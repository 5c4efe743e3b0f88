/* SPDX-License-Identifier: Apache-2.0 */
/* file_out.c - see file_out.h. Every step can be made to fail by a test (fault.h). */
#include "base/file_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

enum { PIECE = 64 << 10 };

struct hn_out {
    char *path, *partial;
    int fd; /* -1: none */
    size_t n;
    char piece[PIECE]; /* not written yet: n bytes */
};

static hunch_status write_fail(const char *path, hunch_error *err) {
    return hn_fail(err, HUNCH_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

/* A call of the system that says less than 0 where it fails. */
static bool fails(int result) {
    if (result >= 0 && hn_fault_hit(HN_FAULT_WRITE)) return errno = ENOSPC, true;
    return result < 0;
}

/* A name that nothing else has: two processes of one number share a folder and nothing else. */
static int unique_open(hn_out *o, size_t room) {
    enum { TRIES = 100 };
    static atomic_uint made;
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        snprintf(o->partial, room, "%s.%ld-%u.partial", o->path, (long)getpid(), atomic_fetch_add(&made, 1));
        fd = open(o->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

static int alone_open(hn_out *o, size_t room) {
    snprintf(o->partial, room, "%s.partial", o->path);
    return open(o->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static hunch_status file_make(hn_out *o, bool shared, size_t room, hunch_error *err) {
    if (hn_is_folder(o->path)) return hn_fail(err, HUNCH_FAILED, "%s: is a folder, expected a file to write", o->path);
    if (hn_exists(o->path) && !hn_is_file(o->path))
        return hn_fail(err, HUNCH_FAILED, "%s: is not a regular file, expected one to write", o->path);
    o->fd = shared ? unique_open(o, room) : alone_open(o, room);
    if (!fails(o->fd)) return HUNCH_OK;
    return hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", o->partial, strerror(errno));
}

hunch_status hn_out_open(hn_out **out, const char *path, bool shared, hunch_error *err) {
    const size_t bytes = strlen(path) + 64;
    *out = NULL;
    hn_out *o = hn_zalloc(1, sizeof *o);
    if (!o) return hn_fail_memory(err, path, sizeof *o);
    o->path = hn_strdup(path);
    o->partial = hn_alloc(bytes);
    o->fd = -1;
    hunch_status st = HUNCH_OK;
    if (!o->path || !o->partial) {
        st = hn_fail_memory(err, path, bytes);
    } else {
        st = file_make(o, shared, bytes, err);
    }
    if (st) hn_out_abort(&o);
    *out = o;
    return st;
}

static ssize_t some_write(int fd, const void *data, size_t size) {
    if (hn_fault_hit(HN_FAULT_WRITE)) return errno = ENOSPC, -1;
    if (hn_fault_hit(HN_FAULT_SHORT)) {
        if (hn_fault_count(HN_FAULT_SHORT) % 2) return errno = EINTR, -1;
        size = size / 2 + 1;
    }
    return write(fd, data, size);
}

static hunch_status all_write(hn_out *o, const char *data, size_t size, hunch_error *err) {
    while (size > 0) {
        ssize_t n = some_write(o->fd, data, size);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return write_fail(o->partial, err);
        data += n;
        size -= (size_t)n;
    }
    return HUNCH_OK;
}

static hunch_status piece_write(hn_out *o, hunch_error *err) {
    const size_t n = o->n;
    o->n = 0;
    return all_write(o, o->piece, n, err);
}

hunch_status hn_out_write(hn_out *o, const void *data, size_t size, hunch_error *err) {
    hunch_status st = size > PIECE - o->n ? piece_write(o, err) : HUNCH_OK;
    if (st) return st;
    if (size > PIECE) return all_write(o, data, size, err);
    if (size > 0) memcpy(o->piece + o->n, data, size);
    o->n += size;
    return HUNCH_OK;
}

/* On disk before the rename: a crash leaves the old file or the new one. */
static hunch_status publish(hn_out *o, hunch_error *err) {
    hunch_status st = piece_write(o, err);
    if (st) return st;
    if (fails(fsync(o->fd)) && errno != EINVAL) return write_fail(o->partial, err); /* EINVAL: a file system without it */
    const int fd = o->fd;
    o->fd = -1;
    if (fails(close(fd))) st = write_fail(o->partial, err);
    if (!st && (fails(0) || rename(o->partial, o->path) != 0))
        st = hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", o->path, strerror(errno));
    if (st) unlink(o->partial);
    return st;
}

hunch_status hn_out_finish(hn_out **o, hunch_error *err) {
    const hunch_status st = publish(*o, err);
    hn_out_abort(o);
    return st;
}

void hn_out_abort(hn_out **out) {
    hn_out *o = *out;
    *out = NULL;
    if (!o) return;
    if (o->fd >= 0) {
        close(o->fd);
        unlink(o->partial);
    }
    hn_free(o->path);
    hn_free(o->partial);
    hn_free(o);
}
