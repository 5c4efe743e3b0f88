/* SPDX-License-Identifier: Apache-2.0 */
/* tool_wrap.c - see tool_wrap.h. A word is written as it comes if there is room for a long one. A word that begins nearer to the edge is
 * held until it ends, to be written on the next line if it does not fit: nothing on the screen is ever taken back. The terminal itself
 * breaks longer words. Wide characters are words of their own, as their scripts have no spaces. */
#include "cli/chat/tool_wrap.h"

#include <string.h>

#include "base/least.h"
#include "base/utf8.h"
#include "app/tool_output.h"
#include "cli/show/tool_show.h"

enum { LONG_WORD = 32, TAB = 8 };

/* Columns of the longest word that is not broken. */
static int long_word(const tool_wrap *w) {
    return w->width / 2 < LONG_WORD ? w->width / 2 : LONG_WORD;
}

static void width_update(tool_wrap *w) {
    const int width = tool_width_of(w->to);
    if (width != w->width && width > 0 && w->column > width)
        w->column %= width;
    w->width = width;
}

static void line_break(tool_wrap *w) {
    putc('\n', w->to);
    w->column = 0;
}

static void hold(tool_wrap *w, const char *bytes, size_t n) {
    w->held = tool_grow(w->held, &w->cap, w->len + n, 1);
    memcpy(w->held + w->len, bytes, n);
    w->len += n;
}

static void put(tool_wrap *w, const char *bytes, size_t n, int columns) {
    fwrite(bytes, 1, n, w->to);
    w->column = w->column + columns <= w->width ? w->column + columns : columns; /* else the terminal has begun a line */
}

static void held_write(tool_wrap *w) {
    if (w->holds && w->column > 0 && w->column + w->columns > w->width)
        line_break(w);
    if (w->len)
        put(w, w->held, w->len, w->columns);
    w->holds = false;
    w->len = 0;
    w->columns = 0;
}

static void word_end(tool_wrap *w) {
    held_write(w);
    w->in_word = false;
}

static void space_write(tool_wrap *w, char c) {
    word_end(w);
    if (c == '\n') {
        line_break(w);
    } else if (c == '\r') {
        put(w, &c, 1, 0);
        w->column = 0;
    } else if (w->column < w->width) { /* at the end of a full line it would begin the next one */
        const int columns = c == '\t' ? TAB - w->column % TAB : 1, room = w->width - w->column;
        put(w, &c, 1, hn_least(columns, room));
    }
}

static void wide_write(tool_wrap *w, const char *bytes, size_t n, int columns) {
    word_end(w);
    if (w->column + columns > w->width)
        line_break(w);
    put(w, bytes, n, columns);
}

static void character_write(tool_wrap *w, const char *bytes, size_t n) {
    const int columns = tool_columns(bytes);
    if (columns > 1) {
        wide_write(w, bytes, n, columns);
        return;
    }
    if (!w->in_word && columns > 0) {
        w->in_word = true;
        w->holds = w->column + long_word(w) > w->width;
    }
    if (!w->holds) {
        put(w, bytes, n, columns);
        return;
    }
    hold(w, bytes, n);
    w->columns += columns;
    if (w->columns > long_word(w))
        held_write(w);
}

/* A byte of an escape sequence. */
static void escape_write(tool_wrap *w, char c) {
    if (w->holds)
        hold(w, &c, 1);
    else
        put(w, &c, 1, 0);
    if (w->state == TOOL_WRAP_TEXT)
        w->state = TOOL_WRAP_ESCAPE;
    else if (w->state == TOOL_WRAP_ESCAPE)
        w->state = c == '[' ? TOOL_WRAP_SEQUENCE : TOOL_WRAP_TEXT;
    else if (c >= 0x40 && c <= 0x7E)
        w->state = TOOL_WRAP_TEXT;
}

static void partial_write(tool_wrap *w) {
    const size_t n = w->partial_len;
    w->partial[n] = 0;
    w->partial_len = 0;
    if (n > 0)
        character_write(w, w->partial, n);
}

static void byte_write(tool_wrap *w, char c) {
    if (!hn_utf8_inside(c))
        partial_write(w); /* of a character that was not whole */
    if (w->state != TOOL_WRAP_TEXT || c == '\033') {
        escape_write(w, c);
    } else if (strchr(" \t\n\r", c) && c) {
        space_write(w, c);
    } else {
        w->partial[w->partial_len++] = c;
        if ((int)w->partial_len >= hn_utf8_length(w->partial[0]))
            partial_write(w);
    }
}

void tool_wrap_write(tool_wrap *w, const char *text, size_t len) {
    width_update(w);
    if (w->width <= 0) {
        partial_write(w);
        held_write(w);
        fwrite(text, 1, len, w->to);
        return;
    }
    for (size_t i = 0; i < len; i++)
        byte_write(w, text[i]);
}

void tool_wrap_end(tool_wrap *w) {
    partial_write(w);
    word_end(w);
    hn_free(w->held);
    *w = (tool_wrap){.to = w->to};
}
