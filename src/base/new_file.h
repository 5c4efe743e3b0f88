/* SPDX-License-Identifier: Apache-2.0 */
/* new_file.h - a file that is written beside its name and takes it when it is whole: who reads the name meanwhile finds the
 * old file or the new one, never a part. Reading files: file.h. */
#ifndef HN_NEW_FILE_H
#define HN_NEW_FILE_H
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

typedef struct hn_new_file {
    FILE *to;            /* write here */
    char *path, *beside; /* the name it will have, and has */
} hn_new_file;

/* HUNCH_FAILED names the path: what is there is a folder or no regular file (a device would be replaced), or nothing can be
 * written beside it. HUNCH_NO_MEMORY. Nothing is left behind then. */
hunch_status hn_new_file_open(hn_new_file *f, const char *path, hunch_error *err);
/* keep false, or a write that failed (HUNCH_FAILED): the new file goes, an old one stays. err may be NULL. */
hunch_status hn_new_file_close(hn_new_file *f, bool keep, hunch_error *err);
#endif
