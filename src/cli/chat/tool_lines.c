/* SPDX-License-Identifier: Apache-2.0 */
/* tool_lines.c - see tool_lines.h. */
#include "cli/chat/tool_lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* False: interrupted by Ctrl-C. */
static bool input_wait(void) {
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {tool_interrupt_fd(), POLLIN, 0}};
    while (!tool_interrupted && poll(fds, 2, -1) < 0 && errno == EINTR)
        continue;
    return !tool_interrupted;
}

static void input_read(tool_lines *l) {
    enum { PIECE = 4096 };
    memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
    l->buffer = tool_grow(l->buffer, &l->cap, l->end + PIECE + 1, 1);
    ssize_t n;
    do
        n = read(STDIN_FILENO, l->buffer + l->end, PIECE);
    while (n < 0 && errno == EINTR && !tool_interrupted);
    if (n > 0)
        l->end += (size_t)n;
    else
        l->ended = n == 0 || (errno != EINTR && errno != EAGAIN);
}

tool_line tool_lines_next(tool_lines *l, char **line, size_t *len) {
    if (!l->buffer)
        l->buffer = tool_grow(NULL, &l->cap, 1, 1);
    char *at;
    while (!(at = memchr(l->buffer + l->begin, '\n', l->end - l->begin)) && !l->ended) {
        if (!input_wait())
            return TOOL_LINE_INTERRUPTED;
        input_read(l);
    }
    if (!at && l->begin == l->end)
        return TOOL_LINE_END;
    *line = l->buffer + l->begin;
    *len = at ? (size_t)(at - *line) : l->end - l->begin;
    l->begin += *len + (at != NULL);
    if (*len && (*line)[*len - 1] == '\r') /* of files with CR LF */
        --*len;
    (*line)[*len] = 0; /* there is room for it after the last byte */
    return TOOL_LINE;
}

void tool_lines_fini(tool_lines *l) {
    hn_free(l->buffer);
    *l = (tool_lines){0};
}
