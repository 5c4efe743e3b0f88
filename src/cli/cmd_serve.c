/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - `hunch serve`: checks the arguments, then becomes hunch-serve, a separate program in the folder of hunch. */
#include "app/tool_commands.h"
#include "cli/tool_program.h"
#include "app/tool_serve.h"

int tool_serve(int argc, char **argv) {
    tool_options o;
    const int code = tool_serve_parse(&o, argc, argv);
    if (code >= 0)
        return code;
    tool_options_fini(&o);
    return tool_program_exec("hunch-serve", argv,
                             "expected it beside hunch (the package hunch-server; make builds it where there is libmicrohttpd)");
}
