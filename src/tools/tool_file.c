/* SPDX-License-Identifier: Apache-2.0 */
/* tool_file.c - see tool_file.h. */
#include "tool_file.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_out.h"
#include "base/mem.h"

static int file_failed(const tool_file *f, int error) {
    tool_message("%s: %s", f->partial, strerror(error));
    return HUNCH_FAILED;
}

int tool_file_place(char **place, char **partial, const char *path) {
    hunch_error err = {0};
    const bool standard = tool_is_standard(path);
    *partial = *place = NULL;
    if (!standard && hn_out_resolve(path, place, &err) != HUNCH_OK)
        return tool_failed(&err);
    const char *name = *place ? *place : standard ? "standard output" : path;
    *partial = tool_alloc(strlen(name) + sizeof TOOL_PARTIAL, 1);
    sprintf(*partial, "%s%s", name, *place ? TOOL_PARTIAL : "");
    tool_signals_remove(*place ? *partial : NULL);
    return 0;
}

/* Duplicates the descriptor of standard output: a socket cannot be opened by name. */
static FILE *standard_open(void) {
    fflush(stdout);
    const int fd = dup(STDOUT_FILENO);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!f && fd >= 0)
        close(fd);
    return f;
}

int tool_file_begin(tool_file *f, const char *path) {
    *f = (tool_file){0};
    const int code = tool_file_place(&f->place, &f->partial, path);
    if (code)
        return code;
    if (f->place)
        unlink(f->partial); /* left by an earlier process; a link there would lead to another file */
    f->file = tool_is_standard(path) ? standard_open() : fopen(f->partial, f->place ? "wbx" : "ab");
    struct stat old;
    if (f->file && f->place && stat(f->place, &old) == 0)
        fchmod(fileno(f->file), old.st_mode & 0777); /* keeps the permissions of the old file */
    return f->file ? 0 : file_failed(f, errno);
}

int tool_file_check(const char *path) {
    tool_file f;
    int code = tool_file_place(&f.place, &f.partial, path);
    const bool renamed = !code && f.place;
    tool_signals_remove(NULL);
    free(f.partial);
    hn_free(f.place);
    if (!renamed)
        return code;
    code = tool_file_begin(&f, path);
    tool_file_end(&f, HUNCH_FAILED);
    return code;
}

void tool_file_write(tool_file *f, const void *data, size_t size) {
    if (!f->error && fwrite(data, 1, size, f->file) != size)
        f->error = errno ? errno : EIO;
}

/* Removes the part of a piece that was written before an error. A file that is written directly may be somebody else's. */
static void part_drop(tool_file *f) {
    __fpurge(f->file); /* or closing it would try again */
    if (f->published && ftruncate(fileno(f->file), f->whole) != 0 && !f->error)
        f->error = errno;
}

int tool_file_publish(tool_file *f) {
    if (fflush(f->file) != 0 && !f->error)
        f->error = errno;
    if (!f->error && f->place && rename(f->partial, f->place) != 0)
        f->error = errno;
    if (f->error) {
        part_drop(f);
        return file_failed(f, f->error);
    }
    if (f->place) {
        f->published = true;
        tool_signals_remove(NULL);
        free(f->partial);
        f->partial = strcpy(tool_alloc(strlen(f->place) + 1, 1), f->place);
        hn_free(f->place);
        f->place = NULL;
    }
    f->whole = f->published ? ftell(f->file) : 0;
    return 0;
}

int tool_file_end(tool_file *f, int code) {
    bool opened = f->file != NULL;
    if (opened && fclose(f->file) != 0 && !f->error)
        f->error = errno;
    if (!code && !f->error && f->place && rename(f->partial, f->place) != 0)
        f->error = errno;
    if (!code && f->error)
        code = file_failed(f, f->error);
    if (code && opened && f->place)
        unlink(f->partial);
    tool_signals_remove(NULL);
    free(f->partial);
    hn_free(f->place);
    *f = (tool_file){0};
    return code;
}
