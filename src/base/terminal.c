/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - see terminal.h. */
#include "base/terminal.h"
#include "base/link.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool hn_terminal_obeys(int fd) {
    const char *term = getenv("TERM");
    return isatty(fd) && !hn_link_started() && !(term && strcmp(term, "dumb") == 0);
}
