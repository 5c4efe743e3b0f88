/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_train.c - `hunch train`: checks the arguments, then runs hunch-train, a separate program in the folder of hunch, with them. No
 * other program is ever started. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hunch/hunch.h"
#include "tool_commands.h"
#include "tool_train.h"

static const char program[] = "hunch-train";

int tool_train(int argc, char **argv) {
    char self[PATH_MAX], path[PATH_MAX + sizeof program + 1];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    tool_options o;
    const int code = tool_train_parse(&o, argc, argv);
    if (code >= 0)
        return code;
    tool_options_fini(&o);
    argv[0] = (char *)(uintptr_t)program;
    fflush(NULL);
    if (n > 0) {
        self[n] = 0;
        snprintf(path, sizeof path, "%s/%s", dirname(self), program);
        execv(path, argv);
    }
    tool_message("train: %s cannot be started: %s; expected it beside hunch (make builds both)", n > 0 ? path : program,
                 strerror(errno));
    return HUNCH_FAILED;
}
