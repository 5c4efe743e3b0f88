/* SPDX-License-Identifier: Apache-2.0 */
/* tool_answers_file.h - where answers to the rows of a file go: standard output, or a file of JSON lines that can be
 * resumed.
 *
 * A file takes its name with its first answer and has every answer whole from the moment it was given, so that a
 * process that is killed loses none but those at work. What had the name is there until then. Each line is an object
 * with "id", and "finish" of an answer or "error" of a row that had none. */
#ifndef HN_TOOL_ANSWERS_FILE_H
#define HN_TOOL_ANSWERS_FILE_H

#include "tool_file.h"

typedef struct tool_answers_file {
    const char *path; /* NULL: standard output */
    bool resume;      /* keep the answers that are there */
    bool begun;
    tool_file file;
} tool_answers_file;

/* The key of an id in a JSON object: 3 and "3" are two. To be freed with free. */
char *tool_answers_key(const json_t *id);
/* Begins as {.path, .resume}. Whether it can be written; and of what it has to resume, answered[i] becomes true where
 * ids, an object, says i of an id. 0, or an exit code after a message. */
int tool_answers_file_check(tool_answers_file *f, const json_t *ids, bool *answered);
/* One line; frees the value. 0, or an exit code after a message. */
int tool_answers_file_write(tool_answers_file *f, json_t *value);
int tool_answers_file_end(tool_answers_file *f, int code); /* returns code, or what went wrong */

#endif
