/* SPDX-License-Identifier: Apache-2.0 */
/* folder_lock.c - see folder_lock.h. */
#include "base/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

hunch_status hn_folder_lock(const char *folder, int *fd, hn_lock *got, hunch_error *err) {
    *got = HN_LOCK_NONE;
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) return hn_fail(err, HUNCH_FAILED, "%s: %s: expected a folder", folder, strerror(errno));
    int code;
    while ((code = flock(*fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) continue;
    *got = code == 0 ? HN_LOCK_HELD : errno == EWOULDBLOCK ? HN_LOCK_BUSY : HN_LOCK_NONE;
    return HUNCH_OK;
}

void hn_folder_unlock(int *fd) {
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}
