/* SPDX-License-Identifier: Apache-2.0 */
/* tool_chat_input.c - reads a message of `hunch chat`, which may have several lines. */
#include <string.h>

#include "cli/chat/tool_chat.h"

static const char marks[] = "\"\"\"";
enum { MARKS = sizeof marks - 1 };

/* ---- lines ----------------------------------------------------------------------------------------------------- */

/* mark: '>' at the first line of a message, '.' at others. */
static tool_line line_next(tool_chat_state *c, char mark, char **line, size_t *n) {
    if (c->editor)
        return tool_editor_next(c->editor, mark, line, n);
    if (c->terminal)
        fprintf(stderr, "%s%c%s ", tool_style(c->styled, 'b'), mark, tool_style(c->styled, '0'));
    return tool_lines_next(&c->lines, line, n);
}

typedef struct text {
    char *bytes;
    size_t len, cap;
} text;

static void text_add(text *t, const char *bytes, size_t n) {
    t->bytes = tool_grow(t->bytes, &t->cap, t->len + n + 1, 1);
    if (n)
        memcpy(t->bytes + t->len, bytes, n);
    t->len += n;
    t->bytes[t->len] = 0;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

static bool block_begins(const text *t) {
    return t->len >= MARKS && memcmp(t->bytes, marks, MARKS) == 0;
}

/* The offset of the marks at its end. 0: it has none yet. */
static size_t block_end(const text *t) {
    size_t n = t->len;
    while (n > MARKS && strchr(" \t\n", t->bytes[n - 1]))
        n--;
    return n >= 2 * MARKS && memcmp(t->bytes + n - MARKS, marks, MARKS) == 0 ? n - MARKS : 0;
}

/* Keeps only the text between the marks, without the line breaks next to them. */
static void block_open(text *t) {
    const size_t marked = block_end(t);
    size_t begin = MARKS, end = marked ? marked : t->len;
    begin += begin < end && t->bytes[begin] == '\n';
    end -= end > begin && t->bytes[end - 1] == '\n';
    memmove(t->bytes, t->bytes + begin, end - begin);
    t->len = end - begin;
    t->bytes[t->len] = 0;
}

/* ---- a message ----------------------------------------------------------------------------------------------- */

/* Whether the message continues in another line. */
static bool goes_on(text *t) {
    if (block_begins(t)) {
        const bool open = !block_end(t);
        if (open)
            text_add(t, "\n", 1);
        return open;
    }
    const bool more = t->len && t->bytes[t->len - 1] == '\\';
    if (more)
        t->bytes[t->len - 1] = '\n';
    return more;
}

tool_line tool_chat_read(tool_chat_state *c, tool_chat_message *m) {
    text t = {0};
    char *line;
    size_t n;
    tool_line got;
    bool any = false, more = true;
    while (more && (got = line_next(c, any ? '.' : '>', &line, &n)) == TOOL_LINE) {
        text_add(&t, line, n);
        any = true;
        more = goes_on(&t);
    }
    if (more && got == TOOL_LINE_INTERRUPTED && c->editor)
        text_add(&t, line, n); /* the cleared line */
    if (c->editor && t.len)
        tool_editor_remember(c->editor, t.bytes, t.len);
    *m = (tool_chat_message){.begun = t.len > 0, .block = any && block_begins(&t)};
    if (m->block)
        block_open(&t);
    m->text = t.bytes;
    m->len = t.len;
    return !more || (got == TOOL_LINE_END && any) ? TOOL_LINE : got;
}
