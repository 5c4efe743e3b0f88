/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - whether output can be coloured and overwritten. */
#ifndef HN_TERMINAL_H
#define HN_TERMINAL_H
#include <stdbool.h>

/* Whether this is a terminal that obeys escape sequences: TERM is not "dumb". Reads the environment. */
bool hn_terminal_obeys(int fd);

#define HN_TERMINAL_WIPE "\r\033[K" /* goes to the beginning of the line and removes it */
#endif
