/* SPDX-License-Identifier: Apache-2.0 */
/* tool_tty.h - the terminal of a conversation: its modes and bracketed paste come back however the process ends or is stopped
 * (Ctrl-Z, Ctrl-\, signals), and its changes of size are heard. One terminal a process: that of standard input. */
#ifndef HN_TOOL_TTY_H
#define HN_TOOL_TTY_H

#include <stdbool.h>

/* Keeps the modes that the terminal has now, for tool_tty_end. From here on Ctrl-C does not make the kernel throw away what waits to
 * be read and to be shown: it does so behind the signal, and may take what the process has said since. False: it is no terminal, or
 * the system gave no descriptor. */
bool tool_tty_begin(void);
void tool_tty_drop_typed(void); /* instead: what was typed and has not been read */
void tool_tty_mark_pastes(int out); /* asks the terminal, over `out`, to put what is pasted between marks from here on; -1: no more */
/* As it was before tool_tty_begin. May be called from a handler, again, and without a beginning. */
void tool_tty_end(void);

int tool_tty_fd(void);       /* readable where the terminal has another size, or the process goes on after a stop */
void tool_tty_seen(void);    /* not any more */

#endif
