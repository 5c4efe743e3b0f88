/* SPDX-License-Identifier: Apache-2.0 */
/* tool_file.h - files that a command writes: FILE.partial until complete, then renamed to FILE, with symbolic links followed. Devices,
 * pipes and open descriptors are written directly, as a rename would replace them. "-" is standard output. */
#ifndef HN_TOOL_FILE_H
#define HN_TOOL_FILE_H

#include "tool_output.h"

#define TOOL_PARTIAL ".partial"

typedef struct tool_file {
    FILE *file;
    char *place;   /* its final name; NULL: written directly */
    char *partial; /* its name while it is written */
    bool published; /* it has its final name already */
    long whole;     /* then: its bytes so far */
    int error;     /* errno of the first write that failed, 0 if none */
} tool_file;

/* Both names of a file written to path: *place, to be freed with hn_free, and *partial, with free. From now on a signal removes the
 * partial file, until tool_signals_remove(NULL). 0, or an exit code after a message. */
int tool_file_place(char **place, char **partial, const char *path);
/* 0, or an exit code after a message. tool_file_end must follow in either case. */
int tool_file_begin(tool_file *f, const char *path);
/* Checks that a file can be begun there, before long work whose results go to it: 0, or an exit code after a message. Leaves no file
 * behind, and does not open what is written directly. */
int tool_file_check(const char *path);
/* After a failure nothing more is written; tool_file_end reports it. */
void tool_file_write(tool_file *f, const void *data, size_t size);
/* Renames the file to its final name now, and what was written is visible and stays. Called again after each further piece: if that cannot
 * be written as a whole, the file ends with the piece before it. 0, or an exit code after a message. */
int tool_file_publish(tool_file *f);
/* code 0: the file gets its final name; else it is removed. Returns code, or HUNCH_FAILED after a message. */
int tool_file_end(tool_file *f, int code);

#endif
