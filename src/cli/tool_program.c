/* SPDX-License-Identifier: Apache-2.0 */
/* tool_program.c - see tool_program.h. */
#include "cli/tool_program.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hunch/hunch.h"
#include "app/tool_output.h"

int tool_program_exec(const char *program, char **argv, const char *hint) {
    char self[PATH_MAX], path[PATH_MAX + 64];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *command = argv[0];
    argv[0] = (char *)(uintptr_t)program;
    fflush(NULL);
    if (n > 0) {
        self[n] = 0;
        snprintf(path, sizeof path, "%s/%s", dirname(self), program);
        execv(path, argv);
    }
    tool_message("%s: %s cannot be started: %s; %s", command, n > 0 ? path : program, strerror(errno), hint);
    return HUNCH_FAILED;
}
