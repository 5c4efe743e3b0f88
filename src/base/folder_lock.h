/* SPDX-License-Identifier: Apache-2.0 */
/* folder_lock.h - one process at a time in a folder. The lock is advisory: it stops those that ask for it too, and ends with its
 * holder, however that ends. */
#ifndef HN_FOLDER_LOCK_H
#define HN_FOLDER_LOCK_H
#include "base/status.h"

typedef enum hn_lock {
    HN_LOCK_HELD, /* until hn_folder_unlock */
    HN_LOCK_BUSY, /* someone else holds it */
    HN_LOCK_NONE  /* the file system has no locks of folders, as some over a network */
} hn_lock;

/* Does not wait. *fd: for hn_folder_unlock, whatever *got is; -1 after HUNCH_FAILED, of a folder that cannot be opened. */
hunch_status hn_folder_lock(const char *folder, int *fd, hn_lock *got, hunch_error *err);
void hn_folder_unlock(int *fd); /* -1 is fine */
#endif
