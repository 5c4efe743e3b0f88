/* SPDX-License-Identifier: Apache-2.0 */
/* tool_machines.h - a program that mpirun has started several times (docs/machines.md): one leads, and is the command; the others compute
 * with it. */
#ifndef HN_TOOL_MACHINES_H
#define HN_TOOL_MACHINES_H
#include "engine/program_files.h"

/* At the beginning of the program. -1: it goes on, alone or as the leader; else the exit code of one that has followed, or of an error. */
int tool_machines_begin(int argc, char **argv);
hn_machines *tool_machines(void); /* NULL: it is alone */
/* Of a command that does not run so: an exit code, or -1. */
int tool_machines_refuse(int argc, char **argv);
/* At the end; returns the code. */
int tool_machines_end(int code);
#endif
