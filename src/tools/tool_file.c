/* SPDX-License-Identifier: Apache-2.0 */
/* tool_file.c - see tool_file.h. */
#include "tool_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_failed(const tool_file *f, int error) {
    tool_message("%s: %s", f->partial, strerror(error));
    return HUNCH_FAILED;
}

/* A file renamed over /dev/null would take its place, for everybody. */
static bool keeps_its_place(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int tool_file_begin(tool_file *f, const char *path) {
    *f = (tool_file){.path = path, .partial = tool_alloc(strlen(path) + 16, 1), .straight = keeps_its_place(path)};
    sprintf(f->partial, "%s%s", path, f->straight ? "" : ".partial");
    if (!f->straight)
        tool_signals_remove(f->partial);
    f->file = fopen(f->partial, "wb");
    return f->file ? 0 : file_failed(f, errno);
}

void tool_file_write(tool_file *f, const void *data, size_t size) {
    if (!f->error && fwrite(data, 1, size, f->file) != size)
        f->error = errno ? errno : EIO;
}

int tool_file_end(tool_file *f, int code) {
    bool opened = f->file != NULL;
    if (opened && fclose(f->file) != 0 && !f->error)
        f->error = errno;
    if (!code && !f->error && !f->straight && rename(f->partial, f->path) != 0)
        f->error = errno;
    if (!code && f->error)
        code = file_failed(f, f->error);
    if (code && opened && !f->straight)
        unlink(f->partial);
    tool_signals_remove(NULL);
    free(f->partial);
    *f = (tool_file){0};
    return code;
}
