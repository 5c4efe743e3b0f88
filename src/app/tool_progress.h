/* SPDX-License-Identifier: Apache-2.0 */
/* tool_progress.h - a bar on standard error with share, rate and time left, for work that takes more than a second.
 *
 * Shown on a terminal that can overwrite lines (TERM is not "dumb") while the command is in the foreground, and never with --quiet. At most
 * one bar is on the screen; it must be hidden before other output. Ctrl-C wipes it too (tool_end). */
#ifndef HN_TOOL_PROGRESS_H
#define HN_TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time_left.h"

extern bool tool_quiet; /* --quiet: only the answer and errors */

typedef struct tool_progress {
    const char *label;   /* "loading" */
    const char *unit;    /* of what is counted: "tokens"; "B": bytes; NULL: only the share is shown */
    double begun, shown; /* seconds; shown: time of the last update, 0: never */
    bool on;
    bool of_prompt;      /* set after tool_progress_begin: each token takes longer than the one before */
    hn_time_left slower; /* of a prompt */
} tool_progress;

void tool_progress_begin(tool_progress *p, const char *label, const char *unit);
/* Both in units; total 0: unknown. */
void tool_progress_at(tool_progress *p, double done, double total);
void tool_progress_bytes(void *p, uint64_t done, uint64_t total); /* a hunch_progress */
void tool_progress_end(tool_progress *p);
/* Wipes the bar on the screen, if any; its next update shows it again. */
void tool_progress_hide(void);
void tool_progress_wipe(void); /* the same for a signal handler: async-signal-safe */

#endif
