/* SPDX-License-Identifier: Apache-2.0 */
/* tool_progress.c - see tool_progress.h. */
#include "app/tool_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/least.h"
#include "base/terminal.h"
#include "app/tool_output.h"

enum { FIRST_MS = 1000, EACH_MS = 100, WIDEST = 100, BAR = 30, BAR_LEAST = 6 };
static const char wipe[] = HN_TERMINAL_WIPE;

bool tool_quiet;
static tool_progress *volatile on_screen; /* also read by the handler of a signal that ends the process */

void tool_progress_wipe(void) {
    if (on_screen && write(STDERR_FILENO, wipe, sizeof wipe - 1) < 0)
        return; /* the process is about to end */
}

void tool_progress_hide(void) {
    if (!on_screen)
        return;
    fputs(wipe, stderr);
    on_screen = NULL;
}

/* ---- one line -------------------------------------------------------------------------------------------------- */

typedef char part[64];

static void seconds_text(double s, part out) {
    const int n = s < 1e7 ? (int)ceil(s) : 10000000;
    if (n < 90)
        snprintf(out, sizeof(part), "%d s left", n);
    else if (n < 3600)
        snprintf(out, sizeof(part), "%d min %02d s left", n / 60, n % 60);
    else
        snprintf(out, sizeof(part), "%d h %02d min left", n / 3600, n % 3600 / 60);
}

static void counts_text(const tool_progress *p, double done, double total, part out) {
    const bool bytes = strcmp(p->unit, "B") == 0;
    const double by = !bytes ? 1 : total >= 1e9 ? 1e9 : 1e6;
    const char *unit = !bytes ? p->unit : total >= 1e9 ? "GB" : "MB";
    const int decimals = by > 1e6 ? 1 : 0;
    if (total > 0)
        snprintf(out, sizeof(part), "%.*f of %.*f %s", decimals, done / by, decimals, total / by, unit);
    else
        snprintf(out, sizeof(part), "%.*f %s", decimals, done / by, unit);
}

static void rate_text(const tool_progress *p, double rate, part out) {
    if (strcmp(p->unit, "B") == 0)
        snprintf(out, sizeof(part), rate >= 1e9 ? "%.1f GB/s" : "%.0f MB/s", rate >= 1e9 ? rate / 1e9 : rate / 1e6);
    else
        snprintf(out, sizeof(part), rate >= 10 ? "%.0f/s" : "%.2g/s", rate);
}

/* A bar of `columns` for a share; the part done is a thick line, so that it needs no colour. */
static size_t bar_put(char *to, double share, int columns) {
    size_t n = 0;
    for (int i = 0; i < columns; i++)
        n += (size_t)sprintf(to + n, "%s", i + 0.5 < share * columns ? "━" : "─");
    return n;
}

/* Parts that do not fit are left out, the least important first: the rate, the counts, the bar, the time. */
static void line_make(const tool_progress *p, double done, double total, double elapsed, int width, char *out,
                      size_t size) {
    enum { SHARE, COUNTS, RATE, LEFT, PARTS };
    static const int to_drop[] = {RATE, COUNTS, LEFT, SHARE};
    part parts[PARTS] = {"", "", "", ""};
    const double rate = elapsed > 0 ? done / elapsed : 0, share = total > 0 ? fmin(done / total, 1) : 0;
    if (total > 0)
        snprintf(parts[SHARE], sizeof(part), "%.0f %%", share * 100);
    if (p->unit)
        counts_text(p, done, total, parts[COUNTS]);
    if (p->unit && rate > 0)
        rate_text(p, rate, parts[RATE]);
    if (total > 0 && rate > 0)
        seconds_text(p->of_prompt ? hn_time_left_of(&p->slower, done, total, elapsed) : (total - done) / rate, parts[LEFT]);
    int used = 0, dropped = 0;
    for (;;) {
        used = (int)strlen(p->label);
        for (int i = 0; i < PARTS; i++)
            used += parts[i][0] ? (int)strlen(parts[i]) + 3 : 0;
        if (used < width || dropped == PARTS)
            break;
        parts[to_drop[dropped++]][0] = 0;
    }
    const int room = width - used - 2;
    size_t n = (size_t)snprintf(out, size, "%.*s", width > 1 ? width - 1 : 0, p->label);
    if (total > 0 && room >= BAR_LEAST) {
        out[n++] = ' ';
        n += bar_put(out + n, share, hn_least(room, BAR));
    }
    for (int i = 0; i < PARTS; i++)
        if (parts[i][0])
            n += (size_t)snprintf(out + n, size - n, "%s%s", i == SHARE ? " " : " · ", parts[i]);
}

/* ---- a bar ----------------------------------------------------------------------------------------------------- */

void tool_progress_begin(tool_progress *p, const char *label, const char *unit) {
    *p = (tool_progress){
        .label = label, .unit = unit, .begun = hn_now(), .on = !tool_quiet && hn_terminal_obeys(STDERR_FILENO)};
}

static bool in_foreground(void) {
    const pid_t group = tcgetpgrp(STDERR_FILENO);
    return group < 0 || group == getpgrp();
}

void tool_progress_at(tool_progress *p, double done, double total) {
    const double now = hn_now();
    if (p->of_prompt)
        hn_time_left_note(&p->slower, done, now - p->begun);
    if (!p->on || now - p->begun < FIRST_MS / 1e3 || now - p->shown < EACH_MS / 1e3 || !in_foreground())
        return;
    char line[4 * WIDEST + 300];
    int width = tool_width_of(stderr);
    width = width > 0 && width < WIDEST ? width : WIDEST;
    line_make(p, done, total, now - p->begun, width, line, sizeof line);
    if (on_screen != p) {
        tool_progress_hide();
        fflush(stdout);
        on_screen = p;
    }
    p->shown = now;
    char whole[sizeof line + 8];
    snprintf(whole, sizeof whole, "\r%s\033[K", line);
    fputs(whole, stderr); /* in one piece: a signal may come between two */
}

void tool_progress_bytes(void *p, uint64_t done, uint64_t total) {
    tool_progress_at(p, (double)done, (double)total);
}

void tool_progress_end(tool_progress *p) {
    if (on_screen == p)
        tool_progress_hide();
    p->on = false;
}
