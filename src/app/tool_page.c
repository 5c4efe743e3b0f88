/* SPDX-License-Identifier: Apache-2.0 */
/* tool_page.c - see tool_page.h. */
#include "app/tool_page.h"

#include <ctype.h>
#include <string.h>

#include "base/least.h"
#include "base/utf8.h"
#include "app/tool_terminal.h"

enum { WIDEST = 100, USUAL = 80, NARROWEST = 40, INDENT = 2, DEEPER = 4, MOST_LEFT = 28 };

tool_page tool_page_terminal(int color_mode) {
    int width = tool_width_of(stdout);
    if (width <= 0) /* output to a pager ends up on the same terminal */
        width = tool_width_of(stderr) > 0 ? tool_width_of(stderr) : USUAL;
    return (tool_page){.color = tool_colors(color_mode, stdout),
                       .width = width > WIDEST ? WIDEST : width < NARROWEST ? NARROWEST : width};
}

/* ---- for man --------------------------------------------------------------------------------------------------- */

/* Escapes text for roff: backslashes, ASCII hyphens, and a dot or quote at the beginning of a line. */
static void roff_put(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (i == 0 && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stdout);
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else if (text[i] == '`' || text[i] == '\'')
            fputs(text[i] == '`' ? "\\(ga" : "\\(aq", stdout);
        else if (text[i] == '^' || text[i] == '~')
            fputs(text[i] == '^' ? "\\(ha" : "\\(ti", stdout);
        else
            putchar(text[i]);
    }
}

static void roff_line(const char *text) {
    roff_put(text, strlen(text));
    putchar('\n');
}

static void roff_heading(const char *text) {
    fputs(".SH ", stdout);
    for (; *text; text++) {
        const char upper = (char)toupper((unsigned char)*text);
        roff_put(&upper, 1);
    }
    putchar('\n');
}

/* Begins a paragraph; a heading has begun one already. */
static void roff_paragraph(tool_page *p) {
    if (!p->after_heading)
        puts(".PP");
    p->after_heading = false;
}

static void roff_paragraphs(tool_page *p, const char *text) {
    for (const char *end; *text; text = *end ? end + 2 : end) {
        end = strstr(text, "\n\n");
        end = end ? end : text + strlen(text);
        roff_paragraph(p);
        roff_put(text, (size_t)(end - text));
        putchar('\n');
    }
}

/* \fB and \fI: "-m, --model" in bold, MODEL in italics. */
static void roff_item(const char *name, const char *value, const char *text, bool deep) {
    if (deep)
        puts(".RS");
    fputs(".TP\n\\fB", stdout);
    roff_put(name, strlen(name));
    fputs("\\fR", stdout);
    if (value) {
        fputs("\\fI", stdout);
        roff_put(value, strlen(value));
        fputs("\\fR", stdout);
    }
    putchar('\n');
    roff_line(text);
    if (deep)
        puts(".RE");
}

/* ---- for a terminal -------------------------------------------------------------------------------------------- */

/* Columns of the first len bytes of UTF-8. */
static int columns(const char *text, size_t len) {
    int n = 0;
    for (size_t i = 0; i < len; i++)
        n += !hn_utf8_inside(text[i]);
    return n;
}

/* Words from column `at` on, later lines from column `indent` on; ends the line. */
static void words_put(const tool_page *p, const char *text, int at, int indent) {
    bool first = true;
    while (*text) {
        const size_t len = strcspn(text, " \n");
        const int wide = columns(text, len);
        if (!first && at + 1 + wide > p->width) {
            printf("\n%*s", indent, "");
            at = indent;
            first = true;
        }
        printf("%s%.*s", first ? "" : " ", (int)len, text);
        at += wide + !first;
        first = false;
        text += len + strspn(text + len, " ");
        if (*text == '\n') { /* an empty line follows */
            text += strspn(text, "\n");
            printf("\n\n%*s", indent, "");
            at = indent;
            first = true;
        }
    }
    putchar('\n');
}

void tool_page_title(const tool_page *p, const char *name, const char *text) {
    const int used = columns(name, strlen(name)) + 3;
    printf("%s%s%s - ", tool_style(p->color, 'b'), name, tool_style(p->color, '0'));
    words_put(p, text, used, INDENT);
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

void tool_page_heading(tool_page *p, const char *text) {
    p->after_heading = p->roff;
    if (p->roff)
        roff_heading(text);
    else
        printf("\n%s%s%s\n", tool_style(p->color, 'b'), text, tool_style(p->color, '0'));
}

void tool_page_text(tool_page *p, const char *text) {
    if (p->roff) {
        roff_paragraphs(p, text);
    } else if (*text) {
        printf("%*s", INDENT, "");
        words_put(p, text, INDENT, INDENT);
    }
}

void tool_page_synopsis(tool_page *p, const char *command, const char *rest) {
    if (p->roff) {
        roff_paragraph(p);
        fputs("\\fB", stdout);
        roff_put(command, strlen(command));
        fputs("\\fR ", stdout);
        roff_line(rest);
        return;
    }
    const int indent = INDENT + (int)strlen(command) + 1;
    printf("%*s%s%s%s ", INDENT, "", tool_style(p->color, 'b'), command, tool_style(p->color, '0'));
    words_put(p, rest, indent, indent);
}

void tool_page_items(tool_page *p, int longest) {
    p->left = hn_least(longest, hn_least(p->width * 2 / 5, MOST_LEFT));
}

void tool_page_item(tool_page *p, const char *name, const char *value, const char *text, bool deep) {
    if (p->roff) {
        roff_item(name, value, text, deep);
        p->after_heading = false;
        return;
    }
    const int begin = INDENT + (deep ? DEEPER : 0), used = (int)strlen(name) + (value ? (int)strlen(value) : 0);
    const int indent = begin + p->left + 2;
    printf("%*s%s%s%s%s", begin, "", tool_style(p->color, 'b'), name, tool_style(p->color, '0'), value ? value : "");
    if (used > p->left)
        printf("\n%*s", indent, "");
    else
        printf("%*s", p->left + 2 - used, "");
    words_put(p, text, indent, indent);
}

void tool_page_example(tool_page *p, const char *what, const char *line) {
    if (p->roff) {
        roff_paragraph(p);
        roff_line(what);
        puts(".RS 4\n.EX");
        roff_line(line);
        puts(".EE\n.RE");
    } else {
        printf("%*s%s", INDENT, "", tool_style(p->color, 'd'));
        words_put(p, what, INDENT, INDENT);
        printf("%s    %s\n", tool_style(p->color, '0'), line);
    }
}
