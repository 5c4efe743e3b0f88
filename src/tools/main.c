/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the `hunch` command: finds the subcommand and hands over. Every subcommand is one file, cmd_NAME.c; what they
 * are and take stands in tool_commands.c and tool_flags.c. The command sees the library through hunch/hunch.h alone. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool_commands.h"
#include "tool_foreign.h"
#include "tool_help.h"
#include "tool_output.h"

/* Whether a word in the place of a command is a model. */
static bool is_model(const char *name) {
    struct stat st;
    const size_t len = strlen(name);
    return strchr(name, '/') || (len > 5 && strcmp(name + len - 5, ".gguf") == 0) || stat(name, &st) == 0;
}

static int unknown_command(const char *name) {
    const tool_foreign *other = tool_foreign_command(name);
    if (other && !other->ours)
        return tool_usage("hunch has no %s: %s", name, other->note);
    const char *near = other ? other->ours : tool_command_near(name, false);
    if (near)
        return tool_usage("unknown command %s, did you mean %s?", name, near);
    if (name[0] == '-')
        return tool_usage("unknown flag %s: a command comes first, see hunch --help", name);
    if (is_model(name))
        return tool_usage("%s is no command: did you mean hunch run %s \"...\", or hunch chat %s?", name, name, name);
    return tool_usage("unknown command %s, see hunch --help", name);
}

/* What was closed stays so for those who read or write it, but no file gets its number: an answer or a message would go there, or
 * input be waited for that never comes. */
static void closed_keep_numbers(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd) /* the lowest that is free; can be named, not read or written */
            _exit(HUNCH_FAILED);
}

int main(int argc, char **argv) {
    closed_keep_numbers();
    tool_signals_begin();
    json_set_alloc_funcs(tool_json_alloc, free);
    const char *name = argc < 2 ? "--help" : argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        tool_help_all(TOOL_COLOR_AUTO);
        return tool_done(argc < 2 ? HUNCH_USAGE : HUNCH_OK);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return tool_exit_code(tool_version(argc - 1, argv + 1));
    const tool_command *c = tool_command_named(name);
    return c ? tool_exit_code(c->run(argc - 1, argv + 1)) : unknown_command(name);
}
