/* SPDX-License-Identifier: Apache-2.0 */
/* tool_terminal.c - see tool_terminal.h. */
#include "app/tool_terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/link.h"
#include "base/terminal.h"

bool tool_is_terminal(FILE *f) {
    return isatty(fileno(f)) && !hn_link_started();
}

/* "" if it is not set. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

bool tool_colors(int mode, FILE *to) {
    if (mode != TOOL_COLOR_AUTO)
        return mode == TOOL_COLOR_ALWAYS;
    if (*variable("NO_COLOR"))
        return false;
    const char *force = variable("CLICOLOR_FORCE");
    return (*force && strcmp(force, "0") != 0) || hn_terminal_obeys(fileno(to));
}

/* Colours of the 256-colour palette look the same everywhere; the first eight depend on the terminal's settings. */
static bool has_shades(void) {
    return strstr(variable("TERM"), "256color") || *variable("COLORTERM");
}

const char *tool_color(bool on, int drafter) {
    enum { COLORS = 12 };
    static const char *const colors[2][COLORS] = {
        {"\033[36m", "\033[33m", "\033[32m", "\033[4;36m", "\033[4;33m", "\033[4;32m", "\033[3;36m", "\033[3;33m",
         "\033[3;32m", "\033[1;36m", "\033[1;33m", "\033[1;32m"},
        {"\033[38;5;32m", "\033[38;5;172m", "\033[38;5;36m", "\033[4;38;5;32m", "\033[4;38;5;172m",
         "\033[4;38;5;36m", "\033[3;38;5;32m", "\033[3;38;5;172m", "\033[3;38;5;36m", "\033[1;38;5;32m",
         "\033[1;38;5;172m", "\033[1;38;5;36m"}};
    if (!on)
        return "";
    return drafter < 0 ? "\033[0m" : colors[has_shades()][drafter % COLORS];
}

const char *tool_style(bool on, char style) {
    if (!on)
        return "";
    switch (style) {
    case 'b': return "\033[1m";
    case 'd': return "\033[2m";
    case 'g': return "\033[32m";
    case 'r': return "\033[31m";
    case 'y': return "\033[33m";
    default: return "\033[0m";
    }
}

int tool_width_of(FILE *f) {
    struct winsize w;
    return ioctl(fileno(f), TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

int tool_width(void) {
    int width = tool_width_of(stdout);
    if (width > 0)
        return width;
    int n = atoi(variable("COLUMNS"));
    return n >= 20 && n <= 1000 ? n : 100;
}
