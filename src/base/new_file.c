/* SPDX-License-Identifier: Apache-2.0 */
/* new_file.c - see new_file.h. */
#include "base/new_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

static hunch_status fail(const char *path, hunch_error *err) {
    return hn_fail(err, HUNCH_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

static void names_free(hn_new_file *f) {
    hn_free(f->path);
    hn_free(f->beside);
    *f = (hn_new_file){0};
}

/* Two that write one name at once, in one process or in two (of one number, where they share a folder and nothing else),
 * write two files; the last to close stays. */
static void open_beside(hn_new_file *f, size_t room) {
    enum { TRIES = 100 };
    static atomic_uint made;
    for (int i = 0; i < TRIES && !f->to; i++) {
        snprintf(f->beside, room, "%s.%ld-%u.partial", f->path, (long)getpid(), atomic_fetch_add(&made, 1));
        f->to = fopen(f->beside, "wbxe");
        if (!f->to && errno != EEXIST) return;
    }
}

hunch_status hn_new_file_open(hn_new_file *f, const char *path, hunch_error *err) {
    *f = (hn_new_file){0};
    if (hn_is_folder(path)) return hn_fail(err, HUNCH_FAILED, "%s: is a folder, expected a file to write", path);
    if (hn_exists(path) && !hn_is_file(path))
        return hn_fail(err, HUNCH_FAILED, "%s: is not a regular file, expected one to write", path);
    const size_t room = strlen(path) + 64;
    f->path = hn_strdup(path);
    f->beside = hn_alloc(room);
    hunch_status st = f->path && f->beside ? HUNCH_OK : hn_fail_memory(err, path, room);
    if (!st) open_beside(f, room);
    if (!st && !f->to) st = fail(path, err);
    if (st) names_free(f);
    return st;
}

hunch_status hn_new_file_close(hn_new_file *f, bool keep, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    errno = EIO; /* of a write that failed before */
    const bool written = !ferror(f->to), closed = fclose(f->to) == 0;
    if (keep && (!written || !closed || rename(f->beside, f->path) != 0)) st = fail(f->path, err);
    if (!keep || st) unlink(f->beside);
    names_free(f);
    return st;
}
