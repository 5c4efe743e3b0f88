/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.c - see scratch.h. The file is unlinked as soon as it is open. */
#include "base/scratch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file_descriptor.h"
#include "base/mem.h"

enum { PIECE = 64 << 10 };

struct hn_scratch {
    char *name; /* before it was unlinked, for errors */
    int fd;     /* -1: none */
    size_t size, n; /* all bytes; those in piece, not written yet */
    char piece[PIECE];
};

static hunch_status make(hn_scratch *s, const char *beside, hunch_error *err) {
    static atomic_uint made;
    const size_t bytes = strlen(beside) + 64;
    s->name = hn_alloc(bytes);
    if (!s->name) return hn_fail_memory(err, beside, bytes);
    snprintf(s->name, bytes, "%s.%ld-%u.scratch", beside, (long)getpid(), atomic_fetch_add(&made, 1));
    s->fd = open(s->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (s->fd >= 0) unlink(s->name);
    const bool fault = s->fd >= 0 && hn_fault_hit(HN_FAULT_WRITE);
    if (fault) errno = ENOSPC;
    return s->fd >= 0 && !fault ? HUNCH_OK
                                : hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", s->name, strerror(errno));
}

hunch_status hn_scratch_open(hn_scratch **out, const char *beside, hunch_error *err) {
    hn_scratch *s = *out = hn_zalloc(1, sizeof *s);
    if (!s) return hn_fail_memory(err, beside, sizeof *s);
    s->fd = -1;
    const hunch_status st = make(s, beside, err);
    if (st) hn_scratch_close(out);
    return st;
}

static hunch_status piece_write(hn_scratch *s, hunch_error *err) {
    const size_t n = s->n;
    s->n = 0;
    return n ? hn_fd_write(s->fd, s->name, s->piece, n, err) : HUNCH_OK;
}

hunch_status hn_scratch_write(hn_scratch *s, const void *data, size_t size, hunch_error *err) {
    const hunch_status st = size > PIECE - s->n ? piece_write(s, err) : HUNCH_OK;
    if (st) return st;
    s->size += size;
    if (size > PIECE) return hn_fd_write(s->fd, s->name, data, size, err);
    if (size > 0) memcpy(s->piece + s->n, data, size);
    s->n += size;
    return HUNCH_OK;
}

size_t hn_scratch_size(const hn_scratch *s) {
    return s->size;
}

hunch_status hn_scratch_read(hn_scratch *s, size_t off, void *to, size_t size, hunch_error *err) {
    assert(off <= s->size && size <= s->size - off);
    const hunch_status st = piece_write(s, err);
    return st ? st : hn_fd_read(s->fd, s->name, off, to, size, err);
}

void hn_scratch_close(hn_scratch **out) {
    hn_scratch *s = *out;
    *out = NULL;
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    hn_free(s->name);
    hn_free(s);
}
