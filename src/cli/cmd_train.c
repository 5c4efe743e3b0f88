/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_train.c - `hunch train`: checks the arguments, then becomes hunch-train, a separate program in the folder of hunch. */
#include "app/tool_commands.h"
#include "cli/tool_program.h"
#include "app/tool_train.h"

int tool_train(int argc, char **argv) {
    tool_options o;
    const int code = tool_train_parse(&o, argc, argv);
    if (code >= 0)
        return code;
    tool_options_fini(&o);
    return tool_program_exec("hunch-train", argv, "expected it beside hunch (make builds both)");
}
