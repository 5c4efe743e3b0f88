/* SPDX-License-Identifier: Apache-2.0 */
/* tool_answers_file.h - output of the answers to the rows of a file: standard output, or a file of JSON lines that can
 * be resumed.
 *
 * The file gets its name with its first answer, and each answer is written completely as soon as it is known, so that a
 * killed process loses only the rows being answered. Until then an older file of that name stays, and one that holds
 * anything but answers is not replaced. Each line is an object with "id", and "finish" (an answer) or "error" (a failed
 * row). */
#ifndef HN_TOOL_ANSWERS_FILE_H
#define HN_TOOL_ANSWERS_FILE_H

#include "app/tool_file.h"

typedef struct tool_answers_file {
    const char *path; /* NULL: standard output */
    bool resume;      /* keep the answers that are there */
    bool force;       /* replace whatever is there */
    bool begun;
    tool_file file;
} tool_answers_file;

/* The key of an id in a JSON object: 3 and "3" differ. To be freed with hn_free. */
char *tool_answers_key(const json_t *id);
/* Called with .path, .resume and .force set. Checks that the file can be written, and holds answers or nothing; to resume,
 * sets answered[ids[id]] for each answer in it whose id is a key of ids. 0, or an exit code after a message. */
int tool_answers_file_check(tool_answers_file *f, const json_t *ids, bool *answered);
/* One line; frees the value. 0, or an exit code after a message. */
int tool_answers_file_write(tool_answers_file *f, json_t *value);
int tool_answers_file_end(tool_answers_file *f, int code); /* returns code, or that of an error */

#endif
