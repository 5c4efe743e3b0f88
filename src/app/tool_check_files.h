/* SPDX-License-Identifier: Apache-2.0 */
/* tool_check_files.h - checks that a command writes no file that it reads, whether named directly, through links or by the name of the
 * partial file, and writes no file twice.
 *
 * The table of flags (tool_flags.h: MODEL, FOLDER, FILE, SPEC) defines which files are read and written, so a new flag is checked without
 * further code; the library lists the files of a model or a drafter. The check runs before anything is opened for writing. A file that is
 * read and written by design is allowed: the saved state of a drafter, or the FILE of one flag whose command reads it too. */
#ifndef HN_TOOL_CHECK_FILES_H
#define HN_TOOL_CHECK_FILES_H

#include "app/tool_options.h"

/* -1: no clash; else the exit code after a message. */
int tool_check_files(const tool_options *o, const tool_command *c);

#endif
