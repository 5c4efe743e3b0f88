/* SPDX-License-Identifier: Apache-2.0 */
/* tool_history.c - see tool_history.h. A text is appended by one write as soon as it is typed, so that several conversations can share the
 * file and no text is lost if its process ends. */
#include "tool_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool_file.h"

enum { MOST_BYTES = 8 << 20 }; /* read from the end of the file */

/* ---- the path -------------------------------------------------------------------------------------------------- */

static char *joined(const char *a, const char *b) {
    char *path = tool_alloc(strlen(a) + strlen(b) + 1, 1);
    return strcat(strcpy(path, a), b);
}

/* NULL: no folder is known. As the XDG specification requires, relative paths are ignored. */
static char *path_find(void) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        return joined(state, "/hunch/chat_history");
    return home && *home == '/' ? joined(home, "/.local/state/hunch/chat_history") : NULL;
}

/* Makes the folders above a file. Errors show when the file is opened. */
static void folders_make(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* -1: no regular file can be opened with these flags; errno is set. O_NONBLOCK: opening a pipe must not block. */
static int file_open(const char *path, int flags) {
    struct stat st;
    const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* The end of the file, zero-terminated, to be freed with free; NULL: there is nothing to read. */
static char *end_read(const char *path) {
    const int fd = file_open(path, O_RDONLY);
    const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    const off_t begin = size > MOST_BYTES ? size - MOST_BYTES : 0;
    char *text = NULL;
    if (size > 0) {
        text = tool_alloc((size_t)(size - begin) + 1, 1);
        const ssize_t n = pread(fd, text, (size_t)(size - begin), begin);
        text[n > 0 ? n : 0] = 0;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

static json_t *texts_of(char *text) {
    json_t *texts = json_array();
    char *next = text;
    for (char *line; (line = strsep(&next, "\n"));) {
        json_t *one = json_loads(line, JSON_DECODE_ANY, NULL);
        if (json_string_length(one))
            json_array_append(texts, one);
        json_decref(one);
    }
    return texts;
}

/* Replaces the file, which has grown too large, by these texts. On failure the file stays and keeps growing. */
static void texts_write(const char *path, const json_t *texts) {
    char *name = joined(path, ".new");
    const int fd = file_open(name, O_WRONLY | O_CREAT | O_TRUNC);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    size_t i;
    const json_t *one;
    json_array_foreach(texts, i, one) {
        if (!f)
            break;
        json_dumpf(one, f, JSON_ENCODE_ANY);
        putc('\n', f);
    }
    const bool whole = f && !ferror(f);
    if ((f ? fclose(f) : -1) != 0 || !whole || rename(name, path) != 0)
        unlink(name);
    if (fd >= 0 && !f)
        close(fd);
    free(name);
}

void tool_history_open(tool_history *r, void (*take)(void *user, const char *text), void *user) {
    *r = (tool_history){.path = path_find()};
    char *text = r->path ? end_read(r->path) : NULL;
    if (!text)
        return;
    json_t *texts = texts_of(text);
    const bool grown = json_array_size(texts) > 2 * TOOL_MOST_HISTORY;
    while (json_array_size(texts) > TOOL_MOST_HISTORY)
        json_array_remove(texts, 0);
    size_t i;
    const json_t *one;
    json_array_foreach(texts, i, one) take(user, json_string_value(one));
    if (grown)
        texts_write(r->path, texts);
    json_decref(texts);
    free(text);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

void tool_history_add(tool_history *r, const char *text, size_t len) {
    json_t *one = r->path ? json_stringn(text, len) : NULL;
    char *dump = one ? json_dumps(one, JSON_ENCODE_ANY) : NULL;
    json_decref(one);
    if (!dump)
        return;
    char *line = joined(dump, "\n");
    const size_t n = strlen(line);
    folders_make(r->path);
    const int fd = file_open(r->path, O_WRONLY | O_CREAT | O_APPEND);
    const bool written = fd >= 0 && write(fd, line, n) == (ssize_t)n;
    if (!written) {
        if (!tool_quiet)
            tool_message("typed lines are not saved: %s: %s", r->path, strerror(errno));
        tool_history_close(r);
    }
    if (fd >= 0)
        close(fd);
    free(line);
    free(dump);
}

void tool_history_close(tool_history *r) {
    free(r->path);
    *r = (tool_history){0};
}
