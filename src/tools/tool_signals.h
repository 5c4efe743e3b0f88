/* SPDX-License-Identifier: Apache-2.0 */
/* tool_signals.h - what Ctrl-C (SIGINT), SIGTERM and SIGHUP do to a subcommand, and a model's file that is cut short (SIGBUS).
 *
 * At first each ends the process within milliseconds, tidily: files that are not whole are removed, a terminal has its own colour
 * again, the exit code is 128 + the signal's number (130, 143, 129). A subcommand that has something to report when it is
 * interrupted says so; then it has most of a second to do so. What was ignored when the process began (nohup) stays ignored. */
#ifndef HN_TOOL_SIGNALS_H
#define HN_TOOL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

void tool_signals_begin(void); /* first of all */

/* The first signal that came; 0: none. */
extern volatile sig_atomic_t tool_interrupted;
/* From here on the first signal sets tool_interrupted; the second, or the end of the time that there is, ends the process. */
void tool_interrupts_catch(void);
/* From here on every Ctrl-C sets tool_interrupted and makes tool_interrupt_fd readable, until tool_interrupts_clear; those that
 * come between end the process, but for the first `patience`. SIGTERM and SIGHUP make it readable, too. False: the system gave
 * no such descriptor. */
bool tool_interrupts_repeat(int patience);
int tool_interrupt_fd(void);
int tool_interrupts_clear(void); /* how many came since it was called before */
/* Between them nothing but a second signal ends the process: what is written in pieces is whole. They do not nest. */
void tool_interrupts_hold(void);
void tool_interrupts_resume(void);

/* A file to remove if a signal ends the process (at most one; the text must stay); NULL: none any more. */
void tool_signals_remove(const char *path);

_Noreturn void tool_end(int code); /* at once, as a signal does */

/* The exit code of the process: of HUNCH_CANCELLED, 128 + the signal. */
int tool_exit_code(int code);

#endif
