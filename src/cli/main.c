/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the `hunch` command: finds the subcommand and calls it. Every subcommand is one file, cmd_NAME.c; tool_commands.c has what
 * help says of them, tool_flags.c their flags, the table here what runs. The command sees the library through hunch/hunch.h, and has what
 * is below all layers from base/. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "app/tool_commands.h"
#include "app/tool_foreign.h"
#include "app/tool_help.h"
#include "app/tool_machines.h"
#include "app/tool_output.h"

static const struct {
    unsigned bit;
    int (*run)(int argc, char **argv);
} programs[] = {{TOOL_RUN, tool_run},           {TOOL_CHAT, tool_chat},         {TOOL_COMPARE, tool_compare},
                {TOOL_BENCH, tool_bench},       {TOOL_INSPECT, tool_inspect},   {TOOL_TOKENIZE, tool_tokenize},
                {TOOL_LOGITS, tool_logits},     {TOOL_DRAFT, tool_draft},       {TOOL_CHECK, tool_check},
                {TOOL_SCORE, tool_score},       {TOOL_CONVERT, tool_convert},   {TOOL_TRAIN, tool_train},
                {TOOL_SERVE, tool_serve},       {TOOL_HELP, tool_help},         {TOOL_MANUAL, tool_manual},
                {TOOL_COMPLETION, tool_completion}, {TOOL_VERSION, tool_version},
                {TOOL_PLAN, tool_plan},         {TOOL_DEVICES, tool_devices}};

/* Those whose model may be divided among the processes that mpirun starts, and those that any number of them may run. */
enum {
    OVER_RANKS = TOOL_RUN | TOOL_CHAT | TOOL_COMPARE | TOOL_BENCH | TOOL_LOGITS | TOOL_SCORE | TOOL_DRAFT,
    OF_EACH = TOOL_INSPECT | TOOL_TOKENIZE | TOOL_HELP | TOOL_MANUAL | TOOL_COMPLETION | TOOL_VERSION | TOOL_DEVICES | TOOL_PLAN |
              TOOL_SERVE
};

static int command_run(const tool_command *c, int argc, char **argv) {
    size_t i = 0;
    while (programs[i].bit != c->bit) {
        i++;
        assert(i < sizeof programs / sizeof *programs);
    }
    const int followed = c->bit & OVER_RANKS ? tool_machines_begin(argc + 1, argv - 1)
                         : c->bit & OF_EACH  ? -1
                                             : tool_machines_refuse(argc + 1, argv - 1);
    return followed >= 0 ? followed : tool_machines_end(tool_exit_code(programs[i].run(argc, argv)));
}

/* Whether a word in the place of a command is a model. */
static bool is_model(const char *name) {
    const size_t len = strlen(name);
    return strchr(name, '/') || (len > 5 && strcmp(name + len - 5, ".gguf") == 0) || hn_exists(name);
}

static int unknown_command(const char *name) {
    const tool_foreign *other = tool_foreign_command(name);
    const char *near = other ? other->ours : tool_command_near(name, false);
    if (near)
        return tool_usage("unknown command %s, did you mean %s?", name, near);
    if (name[0] == '-')
        return tool_usage("unknown flag %s: a command comes first, see hunch --help", name);
    if (is_model(name))
        return tool_usage("%s is not a command: did you mean hunch run %s \"...\", or hunch chat %s?", name, name,
                          name);
    return tool_usage("unknown command %s, see hunch --help", name);
}

/* Reserves the numbers of standard streams that are closed: a file opened later would otherwise get such a number, and receive answers or
 * messages, or be read as input. Reading and writing still fail. */
static void closed_streams_reserve(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd) /* open takes the lowest free number; O_PATH allows no reads or writes */
            _exit(HUNCH_FAILED);
}

int main(int argc, char **argv) {
    closed_streams_reserve();
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
    return c ? command_run(c, argc - 1, argv + 1) : unknown_command(name);
}
