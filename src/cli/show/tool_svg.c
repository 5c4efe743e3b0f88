/* SPDX-License-Identifier: Apache-2.0 */
/* tool_svg.c - see tool_svg.h. */
#include "cli/show/tool_svg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "app/tool_output.h"

void tool_svg_put(tool_file *f, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    tool_file_write(f, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void tool_svg_text(tool_file *f, const char *text) {
    const size_t len = strlen(text);
    char *mended = tool_alloc(len + 1, 3); /* ends with a zero */
    hn_utf8_mend(text, len, mended, 3 * len);
    for (const char *s = mended; *s; s++) {
        const char *escaped = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '"' ? "&quot;" : NULL;
        if (escaped)
            tool_svg_put(f, "%s", escaped);
        else
            tool_svg_put(f, "%c", (unsigned char)*s < 32 ? '?' : *s);
    }
    hn_free(mended);
}
