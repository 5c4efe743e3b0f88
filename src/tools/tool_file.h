/* SPDX-License-Identifier: Apache-2.0 */
/* tool_file.h - files that a command writes: they are FILE.partial until they are whole, FILE being what links lead to. Devices,
 * pipes and what is open already are written as they are: a file that took their name would be in their place. "-" is standard
 * output. */
#ifndef HN_TOOL_FILE_H
#define HN_TOOL_FILE_H

#include "tool_output.h"

#define TOOL_PARTIAL ".partial"

typedef struct tool_file {
    FILE *file;
    char *place;   /* the name it gets; NULL: written as it is */
    char *partial; /* its name while it is written */
    int error;     /* errno of the first write that failed, 0 if none */
} tool_file;

/* Both names of what is written to path: *place, to be freed with hunch_free, and *partial, with free. A signal removes the
 * partial one from here on, until tool_signals_remove(NULL). 0, or an exit code after a message. */
int tool_file_place(char **place, char **partial, const char *path);
/* 0, or an exit code after a message. tool_file_end must follow in either case. */
int tool_file_begin(tool_file *f, const char *path);
/* Whether a file can be begun there, for those who write it after long work: 0, or an exit code after a message. Nothing stays, and
 * what is written as it is is not opened. */
int tool_file_check(const char *path);
/* After a failure nothing more is written; tool_file_end reports it. */
void tool_file_write(tool_file *f, const void *data, size_t size);
/* The file takes its name now; what is written from here on is there as it comes, and stays. 0, or an exit code after a
 * message. */
int tool_file_settle(tool_file *f);
/* code 0: the file takes its name; else it is removed. Returns code, or HUNCH_FAILED after a message. */
int tool_file_end(tool_file *f, int code);

#endif
