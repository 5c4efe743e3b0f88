/* SPDX-License-Identifier: Apache-2.0 */
/* tool_guard.h - nothing that a command writes is something that it reads: neither by its name nor through links, nor under the
 * name that it has until it is whole, nor twice.
 *
 * What is read and written says the table of flags (tool_flags.h: MODEL, FOLDER, FILE, SPEC), so a new flag is guarded as it
 * stands there; which files a model or a drafter reads says the library. Nothing is opened for writing before.
 * A file that is read and written by design is no clash: what a drafter goes on with, or the FILE of one flag whose command reads
 * it too. */
#ifndef HN_TOOL_GUARD_H
#define HN_TOOL_GUARD_H

#include "tool_options.h"

/* -1 to go on, else the exit code after a message. */
int tool_guard(const tool_options *o, const tool_command *c);

#endif
