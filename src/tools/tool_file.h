/* SPDX-License-Identifier: Apache-2.0 */
/* tool_file.h - files that a command writes: they are FILE.partial until they are whole. Devices and pipes are written as they
 * are: a file that took their name would be in their place. */
#ifndef HN_TOOL_FILE_H
#define HN_TOOL_FILE_H

#include "tool_output.h"

typedef struct tool_file {
    FILE *file;
    char *partial; /* its name while it is written */
    const char *path;
    bool straight; /* no file of its own: partial is path */
    int error;     /* errno of the first write that failed, 0 if none */
} tool_file;

/* 0, or HUNCH_FAILED after a message. tool_file_end must follow in either case. */
int tool_file_begin(tool_file *f, const char *path);
/* After a failure nothing more is written; tool_file_end reports it. */
void tool_file_write(tool_file *f, const void *data, size_t size);
/* code 0: the file takes its name; else it is removed. Returns code, or HUNCH_FAILED after a message. */
int tool_file_end(tool_file *f, int code);

#endif
