/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.c - see progress_line.h. */
#include "train/progress_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/terminal.h"

static bool on_screen;

void hn_progress_line(bool last, const char *format, ...) {
    static double shown;
    const double now = hn_now();
    if (!last && (now < shown + 1 || !hn_terminal_obeys(STDERR_FILENO))) return;
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
    if (on_screen) fputs(HN_TERMINAL_WIPE, stderr);
    on_screen = false;
}
