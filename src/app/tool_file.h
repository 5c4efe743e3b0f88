/* SPDX-License-Identifier: Apache-2.0 */
/* tool_file.h - files that a command writes: FILE.partial until complete, then renamed to FILE, with symbolic links followed. Devices,
 * pipes and open descriptors are written directly, as a rename would replace them. "-" is standard output. */
#ifndef HN_TOOL_FILE_H
#define HN_TOOL_FILE_H

#include "base/file_out.h"
#include "app/tool_output.h"

typedef struct tool_file {
    hn_out *out;       /* NULL: it could not be opened */
    char *partial;     /* its name while it is written, which a signal removes; NULL: it has its final name, or is written directly */
    hunch_error error; /* of the first write that failed */
} tool_file;

/* Both names of a file written to path: *place and *partial, to be freed with hn_free; NULL: it is written directly. From now
 * on a signal removes the partial file, until tool_signals_remove(NULL). 0, or an exit code after a message. */
int tool_file_place(char **place, char **partial, const char *path);
/* 0, or an exit code after a message. tool_file_end must follow in either case. */
int tool_file_begin(tool_file *f, const char *path);
/* Checks that a file can be begun there, before long work whose results go to it: 0, or an exit code after a message. Leaves no file
 * behind, and does not open what is written directly. */
int tool_file_check(const char *path);
/* After a failure nothing more is written; tool_file_end reports it. */
void tool_file_write(tool_file *f, const void *data, size_t size);
/* As hn_out_publish. 0, or an exit code after a message. */
int tool_file_publish(tool_file *f);
/* code 0: the file gets its final name; else it is removed. Returns code, or HUNCH_FAILED after a message. */
int tool_file_end(tool_file *f, int code);

#endif
