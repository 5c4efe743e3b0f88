/* SPDX-License-Identifier: Apache-2.0 */
/* tool_signals.h - handling of Ctrl-C (SIGINT), SIGTERM and SIGHUP in a subcommand, and of a mapped model file that is truncated (SIGBUS).
 *
 * By default each ends the process within milliseconds, after cleaning up: incomplete files are removed, the terminal's colour is reset,
 * the exit code is 128 + the signal's number (130, 143, 129). A subcommand that reports results when interrupted calls
 * tool_interrupts_catch; then it has 0.7 s to do so. Signals that were ignored when the process began (nohup) stay ignored. */
#ifndef HN_TOOL_SIGNALS_H
#define HN_TOOL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

void tool_signals_begin(void); /* before anything else */

/* The first signal that came; 0: none. */
extern volatile sig_atomic_t tool_interrupted;
/* From now on the first signal sets tool_interrupted; the second, or the end of those 0.7 s, ends the process. */
void tool_interrupts_catch(void);
/* From now on every Ctrl-C sets tool_interrupted and makes tool_interrupt_fd readable, until tool_interrupts_clear; without that call
 * more than `presses_allowed` further ones end the process. SIGTERM and SIGHUP make it readable, too. False: the system gave no such
 * descriptor. */
bool tool_interrupts_repeat(int presses_allowed);
int tool_interrupt_fd(void);
int tool_interrupts_clear(void); /* number of them since the last call */
/* Between these calls only a second signal ends the process, so that output in several writes is complete. They do not
 * nest. */
void tool_interrupts_hold(void);
void tool_interrupts_resume(void);

/* A file to remove if a signal ends the process (at most one; path is borrowed); NULL: none. */
void tool_signals_remove(const char *path);

_Noreturn void tool_end(int code); /* exits at once, as on a signal */

/* The exit code of the process: for HUNCH_CANCELLED 128 + the signal. */
int tool_exit_code(int code);

#endif
