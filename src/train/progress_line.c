/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.c - see progress_line.h. */
#include "train/progress_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static bool on_screen;

static bool can_overwrite(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

void hn_progress_line(bool last, const char *format, ...) {
    static double shown;
    const double now = hn_now();
    if (!last && (now < shown + 1 || !can_overwrite())) return;
    if (!last) shown = now;
    hn_progress_line_wipe();
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    on_screen = !last;
    if (last) fputc('\n', stderr);
}

void hn_progress_line_wipe(void) {
    if (on_screen) fputs("\r\033[K", stderr);
    on_screen = false;
}
