/* SPDX-License-Identifier: Apache-2.0 */
/* tool_tty.h - the terminal of a conversation: its modes and bracketed paste are restored however the process ends or is stopped (Ctrl-Z,
 * Ctrl-\, signals), and resizes are reported. One terminal per process: that of standard input. */
#ifndef HN_TOOL_TTY_H
#define HN_TOOL_TTY_H

#include <stdbool.h>

/* Saves the modes of the terminal for tool_tty_end. From now on Ctrl-C does not flush pending input and output in the kernel (NOFLSH): that
 * happens after the signal, and might discard later output of the process. False: not a terminal, or the system gave no descriptor. */
bool tool_tty_begin(void);
void tool_tty_drop_typed(void); /* discards unread input instead */

/* The key of Ctrl-C sends a signal (true: as before tool_tty_begin), which overtakes what was typed before it; or it is a byte of input, in
 * its place among the others. */
void tool_tty_signals(bool on);
int tool_tty_interrupt_key(void); /* that byte; -1: there is no such key, or its signal is ignored */

void tool_tty_mark_pastes(int out); /* turns bracketed paste on through `out`; -1: off */
/* Restores the state before tool_tty_begin. May be called from a handler, repeatedly, and without tool_tty_begin. */
void tool_tty_end(void);

int tool_tty_fd(void); /* readable after a resize, and when the process continues after a stop */
/* Makes it unreadable again. CONTINUED: what was on the screen is somewhere above, whatever its size. */
typedef enum tool_tty_change { TOOL_TTY_SAME, TOOL_TTY_RESIZED, TOOL_TTY_CONTINUED } tool_tty_change;
tool_tty_change tool_tty_clear(void);

#endif
