/* SPDX-License-Identifier: Apache-2.0 */
/* tool_history.c - see tool_history.h. A text is appended by one write as soon as it is typed, so that several conversations can share the
 * file and no text is lost if its process ends. */
#include "cli/chat/tool_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/tool_file.h"

enum { MOST_BYTES = 8 << 20 }; /* read from the end of the file */

/* ---- the path -------------------------------------------------------------------------------------------------- */

/* NULL: no folder is known. As the XDG specification requires, relative paths are ignored. */
static char *path_find(void) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        return tool_joined(state, "/hunch/chat_history");
    return home && *home == '/' ? tool_joined(home, "/.local/state/hunch/chat_history") : NULL;
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

/* The end of the file, zero-terminated, to be freed with hn_free; NULL: there is nothing to read. */
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

static int piece_write(const char *text, size_t len, void *out) {
    return hn_out_write(out, text, len, NULL) ? -1 : 0;
}

/* Replaces the file, which has grown too large, by these texts. On failure the file stays and keeps growing. */
static void texts_write(const char *path, const json_t *texts) {
    hn_out *out;
    size_t i;
    const json_t *one;
    hunch_status st = hn_out_open(&out, path, true, NULL);
    json_array_foreach(texts, i, one) {
        if (!st)
            st = json_dump_callback(one, piece_write, out, JSON_ENCODE_ANY) || piece_write("\n", 1, out) ? HUNCH_FAILED : HUNCH_OK;
    }
    if (!st)
        hn_out_finish(&out, NULL);
    hn_out_abort(&out);
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
    hn_free(text);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

void tool_history_add(tool_history *r, const char *text, size_t len) {
    json_t *one = r->path ? json_stringn(text, len) : NULL;
    char *dump = one ? json_dumps(one, JSON_ENCODE_ANY) : NULL;
    json_decref(one);
    if (!dump)
        return;
    char *line = tool_joined(dump, "\n");
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
    hn_free(line);
    free(dump);
}

void tool_history_close(tool_history *r) {
    hn_free(r->path);
    *r = (tool_history){0};
}
