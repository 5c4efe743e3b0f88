/* SPDX-License-Identifier: Apache-2.0 */
/* tool_show.c - see tool_show.h. */
#include "cli/show/tool_show.h"

#include <string.h>

#include "base/utf8.h"

/* ---- tokens of a text ---------------------------------------------------------------------------------------- */

/* Length of the text of n tokens; *whole: it ends at the end of a character. */
static size_t text_length(const hunch_model *m, const hunch_token *tokens, size_t n, bool *whole) {
    char *text = NULL;
    size_t len = 0;
    *whole = hunch_detokenize(m, tokens, n, &text, &len, NULL) == HUNCH_OK && len > 0 &&
             !(len >= 3 && memcmp(text + len - 3, "\xEF\xBF\xBD", 3) == 0);
    hunch_free(text);
    return len;
}

/* Detokenizing all tokens again for each new one would be slow in a long text. So lengths are counted from an anchor: a token whose end is
 * the end of a character, and whose length at the beginning of a text is known. */
void tool_ends_update(tool_ends *e, const hunch_model *m, const hunch_token *tokens, size_t n_tokens) {
    enum { FAR = 32 };
    bool whole, alone;
    e->at = tool_grow(e->at, &e->cap, n_tokens, sizeof *e->at);
    for (; e->n < n_tokens; e->n++) {
        size_t i = e->n, before = e->anchor ? e->at[e->anchor] : 0;
        e->at[i] = before + text_length(m, tokens + e->anchor, i + 1 - e->anchor, &whole) - e->anchor_len;
        if (!whole || i - e->anchor < FAR)
            continue;
        size_t len = text_length(m, tokens + i, 1, &alone);
        if (alone) {
            e->anchor = i;
            e->anchor_len = len;
        }
    }
}

void tool_ends_fini(tool_ends *e) {
    hn_free(e->at);
    *e = (tool_ends){0};
}

/* First token from `token` on whose text ends beyond `offset`; the last one if none does. */
static size_t token_at(const tool_ends *e, size_t token, size_t offset) {
    while (token + 1 < e->n && e->at[token] <= offset)
        token++;
    return token;
}

/* ---- a stream ------------------------------------------------------------------------------------------------ */

static void stream_write(const tool_stream *s, const char *text, size_t n) {
    if (s->wrap)
        tool_wrap_write(s->wrap, text, n);
    else
        fwrite(text, 1, n, stdout);
}

static void stream_style(const tool_stream *s, const char *sequence) {
    stream_write(s, sequence, strlen(sequence));
}

/* Writes bytes [from, to) of text, coloured; ends with the default colour. */
static void stream_colored(const tool_stream *s, const int16_t *drafter_of, const char *text, size_t from, size_t to) {
    const tool_ends *e = &s->ends;
    size_t token = 0;
    while (from < to) {
        token = token_at(e, token, from);
        size_t end = e->at[token] > from && e->at[token] < to ? e->at[token] : to;
        /* A colour ends with its line: pagers reset colours at each line. */
        const char *newline = memchr(text + from, '\n', end - from);
        if (newline)
            end = newline > text + from ? (size_t)(newline - text) : from + 1;
        bool drafted = drafter_of[token] >= 0 && text[from] != '\n';
        stream_style(s, tool_style(s->dim, 'd'));
        stream_style(s, tool_color(drafted, drafter_of[token]));
        stream_write(s, text + from, end - from);
        stream_style(s, tool_style(s->dim || drafted, '0'));
        from = end;
    }
}

static void stream_ids(tool_stream *s, const hunch_session_state *st) {
    for (; s->tokens < st->n_tokens; s->tokens++)
        printf("%s%s%d", s->tokens ? " " : "", tool_color(s->color, st->drafter_of[s->tokens]),
               (int)st->tokens[s->tokens]);
}

/* Writes the next part of the text. False: nothing more to write yet. */
static bool stream_part(tool_stream *s, const hunch_session_state *st) {
    hunch_part part;
    if (!hunch_split_next(s->model, &s->split, st->text, st->text_len, st->finish != HUNCH_RUNNING, &part))
        return false;
    s->dim = part.kind != HUNCH_PART_TEXT;
    stream_colored(s, st->drafter_of, st->text, part.from, part.from + part.len);
    return true;
}

/* ---- calls ---- */

static void piece_write(tool_stream *s, const char *text, size_t n, char style) {
    if (n == 0)
        return;
    if (s->place == TOOL_BEHIND_CALL)
        stream_write(s, "\n", 1);
    stream_style(s, tool_style(s->color && style, style));
    stream_write(s, text, n);
    stream_style(s, tool_style(s->color && style, '0'));
    s->place = text[n - 1] == '\n' ? TOOL_LINE_BEGINS : TOOL_BEHIND_TEXT;
}

/* One line of a call, which leaves out the end of long arguments. */
static void call_write(tool_stream *s, const hunch_call *c) {
    enum { WIDEST = 100 };
    char line[400];
    const size_t n = c->n_arguments <= WIDEST ? c->n_arguments : hn_utf8_check(c->arguments, WIDEST);
    if (s->place == TOOL_BEHIND_TEXT)
        piece_write(s, "\n", 1, 0);
    snprintf(line, sizeof line, "[%.256s %.*s%s]", c->name, (int)n, c->arguments, n < c->n_arguments ? "…" : "");
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    piece_write(s, line, strlen(line), 'b');
    s->place = TOOL_BEHIND_CALL;
}

/* Thinking, text, and whole calls, as far as they are known. */
static void stream_calls(tool_stream *s, const hunch_session_state *st) {
    hunch_answer a;
    hunch_calls_feed(s->calls, st->text + s->bytes, st->text_len - s->bytes, st->finish != HUNCH_RUNNING, NULL);
    s->bytes = st->text_len;
    hunch_calls_get(s->calls, &a);
    piece_write(s, a.thinking + s->thought, a.n_thinking - s->thought, 'd');
    s->thought = a.n_thinking;
    if (a.n_text && s->said == 0 && s->place == TOOL_BEHIND_TEXT)
        piece_write(s, "\n\n", 2, 0); /* behind thinking */
    piece_write(s, a.text + s->said, a.n_text - s->said, 0);
    s->said = a.n_text;
    for (; s->called < a.n_calls && a.call[s->called].state != HUNCH_CALL_OPEN; s->called++)
        if (a.call[s->called].state == HUNCH_CALL_DONE)
            call_write(s, &a.call[s->called]);
}

void tool_stream_update(tool_stream *s, const hunch_session_state *st) {
    if (!st->text) {
        stream_ids(s, st);
    } else if (s->calls) {
        stream_calls(s, st);
    } else if (!s->color) {
        stream_write(s, st->text + s->bytes, st->text_len - s->bytes);
        s->bytes = st->text_len;
    } else {
        tool_ends_update(&s->ends, s->model, st->tokens, st->n_tokens);
        while (stream_part(s, st))
            continue;
    }
    tool_flush();
}

/* ---- panes --------------------------------------------------------------------------------------------------- */

typedef struct cell {
    const char *bytes;
    int len, width, drafter_of;
} cell;

typedef struct line {
    size_t begin, end; /* cells */
} line;

typedef struct page {
    cell *cells;
    line *lines;
    size_t n_cells, n_lines, cap_cells, cap_lines;
} page;

/* Columns that a character takes on most terminals: none for combining marks, two for East Asian and emoji. */
static int cell_width(uint32_t cp) {
    if ((cp >= 0x300 && cp <= 0x36F) || cp == 0x200D || (cp >= 0xFE00 && cp <= 0xFE0F))
        return 0;
    bool wide = (cp >= 0x1100 && cp <= 0x115F) || (cp >= 0x2E80 && cp <= 0xA4CF) || (cp >= 0xAC00 && cp <= 0xD7A3) ||
                (cp >= 0xF900 && cp <= 0xFAFF) || (cp >= 0xFE30 && cp <= 0xFE6F) || (cp >= 0xFF00 && cp <= 0xFF60) ||
                (cp >= 0x1F300 && cp <= 0x1FAFF) || (cp >= 0x20000 && cp <= 0x3FFFD);
    return wide ? 2 : 1;
}

/* text is valid UTF-8: the library guarantees it. */
static cell cell_read(const char *s, size_t left) {
    uint32_t cp = ' ';
    const int len = hn_utf8_decode(s, left, &cp);
    if (cp < 0x20 && cp != '\n')
        return (cell){" ", 1, 1, 0};
    return (cell){s, len > 0 ? len : 1, cell_width(cp), 0};
}

int tool_columns(const char *text) {
    int columns = 0;
    for (size_t left = strlen(text); left > 0;) {
        const cell c = cell_read(text, left);
        columns += c.width;
        const size_t n = c.len < 1 ? 1 : (size_t)c.len;
        text += n;
        left -= n;
    }
    return columns;
}

static void page_line(page *p, size_t begin, size_t end) {
    p->lines = tool_grow(p->lines, &p->cap_lines, p->n_lines + 1, sizeof *p->lines);
    p->lines[p->n_lines++] = (line){begin, end};
}

static bool is_char(const page *p, size_t i, char c) {
    return p->cells[i].len == 1 && *p->cells[i].bytes == c;
}

/* Breaks cells into lines of at most `width` columns, at spaces where there are some. */
static void page_wrap(page *p, int width) {
    size_t begin = 0, space = 0; /* space: the cell after the last one in this line */
    int used = 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        if (is_char(p, i, '\n')) {
            page_line(p, begin, i);
            begin = space = i + 1;
            used = 0;
            continue;
        }
        if (used + p->cells[i].width > width) {
            size_t end = space > begin ? space : i;
            page_line(p, begin, end);
            begin = space = end;
            used = 0;
            for (size_t j = begin; j < i; j++)
                used += p->cells[j].width;
        }
        used += p->cells[i].width;
        if (is_char(p, i, ' '))
            space = i + 1;
    }
    page_line(p, begin, p->n_cells);
}

static void page_init(page *p, const tool_pane *from, int width) {
    *p = (page){0};
    size_t token = 0;
    for (size_t at = 0; at < from->len;) {
        cell c = cell_read(from->text + at, from->len - at);
        if (from->ends->n) {
            token = token_at(from->ends, token, at);
            c.drafter_of = from->drafter_of[token] < 0 ? -1 : from->drafter_of[token] + from->colors;
        }
        p->cells = tool_grow(p->cells, &p->cap_cells, p->n_cells + 1, sizeof *p->cells);
        p->cells[p->n_cells++] = c;
        at += (size_t)(*c.bytes == ' ' ? 1 : c.len);
    }
    page_wrap(p, width);
}

static void page_fini(page *p) {
    hn_free(p->cells);
    hn_free(p->lines);
}

/* One line, filled with spaces up to `width` columns. */
static void line_print(const page *p, size_t number, int width, bool color) {
    int used = 0, now = -1;
    line l = number < p->n_lines ? p->lines[number] : (line){0, 0};
    for (size_t i = l.begin; i < l.end; i++) {
        const cell *c = &p->cells[i];
        if (c->drafter_of != now)
            fputs(tool_color(color, now = c->drafter_of), stdout);
        fwrite(c->bytes, 1, (size_t)c->len, stdout);
        used += c->width;
    }
    fputs(tool_style(color && now != -1, '0'), stdout);
    printf("%*s", used < width ? width - used : 0, "");
}

static void titles_print(const tool_pane *panes, int n, int width, bool color) {
    for (int i = 0; i < n; i++)
        printf("%s%s%-*.*s%s", i ? " │ " : "", tool_style(color, 'b'), i + 1 < n ? width : 0, width, panes[i].title,
               tool_style(color, '0'));
    putchar('\n');
}

static void row_print(const tool_pane *panes, int n, int width, bool color) {
    page *pages = tool_alloc((size_t)n, sizeof *pages);
    size_t lines = 0;
    for (int i = 0; i < n; i++) {
        page_init(&pages[i], &panes[i], width);
        lines = pages[i].n_lines > lines ? pages[i].n_lines : lines;
    }
    titles_print(panes, n, width, color);
    for (size_t l = 0; l < lines; l++) {
        for (int i = 0; i < n; i++) {
            fputs(i ? " │ " : "", stdout);
            line_print(&pages[i], l, i + 1 < n ? width : 0, color);
        }
        putchar('\n');
    }
    for (int i = 0; i < n; i++)
        page_fini(&pages[i]);
    hn_free(pages);
}

void tool_panes_print(const tool_pane *panes, int n, bool color) {
    enum { NARROWEST = 32 };
    int width = (tool_width() - 3 * (n - 1)) / n;
    if (width >= NARROWEST) {
        row_print(panes, n, width, color);
        return;
    }
    for (int i = 0; i < n; i++) {
        row_print(&panes[i], 1, tool_width(), color);
        putchar('\n');
    }
}
