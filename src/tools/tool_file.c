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

int tool_file_begin(tool_file *f, const char *path) {
    struct stat st;
    const bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    *f = (tool_file){.path = path, .partial = tool_alloc(strlen(path) + 16, 1)};
    sprintf(f->partial, special ? "%s" : "%s.partial", path);
    if (!special)
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
    const bool beside = strcmp(f->partial, f->path) != 0;
    if (!code && !f->error && beside && rename(f->partial, f->path) != 0)
        f->error = errno;
    if (!code && f->error)
        code = file_failed(f, f->error);
    if (code && opened && beside)
        unlink(f->partial);
    tool_signals_remove(NULL);
    free(f->partial);
    *f = (tool_file){0};
    return code;
}
