/* SPDX-License-Identifier: Apache-2.0 */
/* tool_svg.c - see tool_svg.h. */
#include "tool_svg.h"

#include <stdarg.h>
#include <stdio.h>

void tool_svg_put(tool_file *f, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    tool_file_write(f, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void tool_svg_text(tool_file *f, const char *s) {
    for (; *s; s++) {
        const char *escaped = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '"' ? "&quot;" : NULL;
        if (escaped)
            tool_svg_put(f, "%s", escaped);
        else
            tool_svg_put(f, "%c", (unsigned char)*s < 32 ? '?' : *s);
    }
}
