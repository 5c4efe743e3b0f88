/* SPDX-License-Identifier: Apache-2.0 */
/* tool_program.h - starting a program of ours that stands beside hunch: hunch-train, hunch-serve. No other program is ever started. */
#ifndef HN_TOOL_PROGRAM_H
#define HN_TOOL_PROGRAM_H

/* Becomes the program, with these arguments. Returns only if that fails: the exit code, after a message that ends with `hint`. */
int tool_program_exec(const char *program, char **argv, const char *hint);

#endif
