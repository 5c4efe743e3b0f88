/* SPDX-License-Identifier: Apache-2.0 */
/* file_out.c - see file_out.h. A test can make every step fail (fault.h). */
#include "base/file_out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file_descriptor.h"
#include "base/mem.h"

enum { PIECE = 64 << 10 };

struct hn_out {
    char *place;   /* the final path; NULL: written in place, nothing to rename or remove */
    char *partial; /* the path until then */
    int fd;        /* -1: none */
    int lock;      /* the same file, locked until it has its final path or is removed; -1: none */
    bool published;
    off_t whole;   /* then: bytes that stay */
    size_t n;
    char piece[PIECE]; /* buffer: n bytes, not written yet */
};

static hunch_status write_fail(const char *path, hunch_error *err) {
    return hn_fail(err, HUNCH_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

/* ---- the final path --------------------------------------------------------------------------------------------- */

/* The links of procfs (/proc/self/fd/1) lead to what a process has open, whatever path they seem to give. */
static bool is_procfs_link(char *link, size_t folder) {
    struct statfs fs;
    const char first = link[folder];
    link[folder] = 0;
    const bool yes = statfs(folder ? link : ".", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
    link[folder] = first;
    return yes;
}

/* If path is a link, replaces it by the path that the chain of links ends at. Returns 0 or an errno. */
static int links_follow(char path[PATH_MAX], bool *open_already) {
    enum { LINKS = 40 }; /* as in Linux */
    for (int i = 0; i < LINKS; i++) {
        char to[PATH_MAX];
        const ssize_t n = readlink(path, to, sizeof to);
        if (n < 0) return 0; /* not a link, or an error that open will report */
        const char *slash = strrchr(path, '/');
        size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
        *open_already = is_procfs_link(path, folder);
        if (*open_already) return 0;
        if (to[0] == '/') folder = 0;
        if (folder + (size_t)n >= PATH_MAX) return ENAMETOOLONG;
        memcpy(path + folder, to, (size_t)n);
        path[folder + (size_t)n] = 0;
    }
    return ELOOP;
}

hunch_status hn_out_resolve(const char *path, char **place, hunch_error *err) {
    char at[PATH_MAX];
    struct stat st;
    bool direct = false;
    *place = NULL;
    /* stat first: the system refuses links that must not be followed, such as other users' in /tmp. */
    const bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) return write_fail(path, err);
    errno = strlen(path) < sizeof at ? links_follow(strcpy(at, path), &direct) : ENAMETOOLONG;
    if (errno) return write_fail(path, err);
    if (there && S_ISDIR(st.st_mode))
        return hn_fail(err, HUNCH_FAILED, "%s: is a folder, expected a file to write", path);
    if (direct || (there && !S_ISREG(st.st_mode))) return HUNCH_OK;
    *place = hn_strdup(at);
    return *place ? HUNCH_OK : hn_fail_memory(err, path, strlen(at));
}

/* ---- open ------------------------------------------------------------------------------------------------------- */

/* True if a system call's result is below 0, or a test made it fail. */
static bool fails(int result) {
    if (result >= 0 && hn_fault_hit(HN_FAULT_WRITE)) return errno = ENOSPC, true;
    return result < 0;
}

/* A unique name: O_EXCL, as two machines may share the folder and have processes of the same number. */
static int unique_open(hn_out *o, size_t room) {
    enum { TRIES = 100 };
    static atomic_uint made;
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        snprintf(o->partial, room, "%s.%ld-%u" HN_OUT_PARTIAL, o->place, (long)getpid(), atomic_fetch_add(&made, 1));
        fd = open(o->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

static bool is_locked(int fd) { return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

/* Removes what an earlier process left there, unless it still writes it: errno is EWOULDBLOCK then. A link there would lead to some other
 * file. */
static int partial_open(hn_out *o, size_t room) {
    snprintf(o->partial, room, "%s" HN_OUT_PARTIAL, o->place);
    const int left = open(o->partial, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool written = is_locked(left);
    if (left >= 0) close(left);
    if (written) return errno = EWOULDBLOCK, -1;
    unlink(o->partial);
    const int fd = open(o->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) o->lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (!is_locked(o->lock)) return fd; /* where there are no locks, it is written without */
    close(fd);
    return errno = EWOULDBLOCK, -1;
}

/* Appends, so that a file which a shell opened by >> keeps its contents. */
static int append_open(hn_out *o, const char *path, size_t room) {
    snprintf(o->partial, room, "%s", path);
    return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

static hunch_status file_make(hn_out *o, const char *path, bool shared, hunch_error *err) {
    if (shared && !o->place)
        return hn_fail(err, HUNCH_FAILED, "%s: is not a regular file, expected one to write", path);
    const size_t bytes = strlen(o->place ? o->place : path) + 64;
    o->partial = hn_alloc(bytes);
    if (!o->partial) return hn_fail_memory(err, path, bytes);
    o->fd = !o->place ? append_open(o, path, bytes) : shared ? unique_open(o, bytes) : partial_open(o, bytes);
    struct stat old;
    if (o->fd >= 0 && o->place && stat(o->place, &old) == 0) fchmod(o->fd, old.st_mode & 0777); /* keep the permissions */
    if (!fails(o->fd)) return HUNCH_OK;
    if (errno == EWOULDBLOCK) return hn_fail(err, HUNCH_FAILED, "%s: another process is writing it", o->partial);
    return hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", o->partial, strerror(errno));
}

hunch_status hn_out_open(hn_out **out, const char *path, bool shared, hunch_error *err) {
    *out = NULL;
    hn_out *o = hn_zalloc(1, sizeof *o);
    if (!o) return hn_fail_memory(err, path, sizeof *o);
    o->fd = o->lock = -1;
    hunch_status st = hn_out_resolve(path, &o->place, err);
    if (!st) st = file_make(o, path, shared, err);
    if (st) hn_out_abort(&o);
    *out = o;
    return st;
}

hunch_status hn_out_open_descriptor(hn_out **out, int fd, const char *name, hunch_error *err) {
    hn_out *o = *out = hn_zalloc(1, sizeof *o);
    if (!o) return hn_fail_memory(err, name, sizeof *o);
    hunch_status st = HUNCH_OK;
    o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    o->lock = -1;
    o->partial = hn_strdup(name);
    if (!o->partial)
        st = hn_fail_memory(err, name, strlen(name));
    else if (fails(o->fd))
        st = write_fail(name, err);
    if (st) hn_out_abort(out);
    return st;
}

/* ---- write ------------------------------------------------------------------------------------------------------ */

static ssize_t some_write(int fd, const void *data, size_t size) {
    if (hn_fault_hit(HN_FAULT_WRITE)) return errno = ENOSPC, -1;
    if (hn_fault_hit(HN_FAULT_SHORT)) {
        if (hn_fault_count(HN_FAULT_SHORT) % 2) return errno = EINTR, -1;
        size = size / 2 + 1;
    }
    return write(fd, data, size);
}

hunch_status hn_fd_write(int fd, const char *path, const void *data, size_t size, hunch_error *err) {
    const char *at = data;
    while (size > 0) {
        ssize_t n = some_write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return write_fail(path, err);
        at += n;
        size -= (size_t)n;
    }
    return HUNCH_OK;
}

static hunch_status piece_write(hn_out *o, hunch_error *err) {
    const size_t n = o->n;
    o->n = 0;
    return hn_fd_write(o->fd, o->partial, o->piece, n, err);
}

hunch_status hn_out_write(hn_out *o, const void *data, size_t size, hunch_error *err) {
    hunch_status st = size > PIECE - o->n ? piece_write(o, err) : HUNCH_OK;
    if (st) return st;
    if (size > PIECE) return hn_fd_write(o->fd, o->partial, data, size, err);
    if (size > 0) memcpy(o->piece + o->n, data, size);
    o->n += size;
    return HUNCH_OK;
}

static hunch_status name_give(hn_out *o, hunch_error *err) {
    if (fails(0) || rename(o->partial, o->place) != 0)
        return hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", o->place, strerror(errno));
    return HUNCH_OK;
}

hunch_status hn_out_publish(hn_out *o, hunch_error *err) {
    hunch_status st = piece_write(o, err);
    if (!st && o->place) {
        st = name_give(o, err);
        if (st) return st;
        hn_free(o->partial);
        o->partial = o->place; /* from now on it is written in place */
        o->place = NULL;
        o->published = true;
    }
    if (!st && o->published) o->whole = lseek(o->fd, 0, SEEK_CUR);
    return st;
}

/* On disk before the rename: a crash leaves the old file or the new one. */
static hunch_status finish(hn_out *o, hunch_error *err) {
    hunch_status st = piece_write(o, err);
    if (st) return st;
    if (fails(fsync(o->fd)) && errno != EINVAL) return write_fail(o->partial, err); /* EINVAL: the file system has no fsync */
    const int fd = o->fd;
    o->fd = -1;
    if (fails(close(fd))) st = write_fail(o->partial, err);
    if (!o->place) return st;
    if (!st) st = name_give(o, err);
    if (st) unlink(o->partial);
    return st;
}

hunch_status hn_out_finish(hn_out **o, hunch_error *err) {
    const hunch_status st = finish(*o, err);
    hn_out_abort(o);
    return st;
}

void hn_out_abort(hn_out **out) {
    hn_out *o = *out;
    *out = NULL;
    if (!o) return;
    if (o->fd >= 0) {
        if (o->published) (void)!ftruncate(o->fd, o->whole); /* if it fails, the piece that was cut off stays */
        close(o->fd);
        if (o->place) unlink(o->partial);
    }
    if (o->lock >= 0) close(o->lock);
    hn_free(o->place);
    hn_free(o->partial);
    hn_free(o);
}
