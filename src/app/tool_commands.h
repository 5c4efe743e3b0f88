/* SPDX-License-Identifier: Apache-2.0 */
/* tool_commands.h - the subcommands, one file each (cmd_NAME.c; main.c calls them), and their descriptions: help, manual and completion are
 * made from the tables of commands (tool_commands.c), flags (tool_flags.c) and drafters (tool_drafts.c).
 *
 * argv[0] is the command's name; a command returns the exit code, having written one line to standard error for any but 0
 * and 130. */
#ifndef HN_TOOL_COMMANDS_H
#define HN_TOOL_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TOOL_RUN = 1,
    TOOL_COMPARE = 2,
    TOOL_BENCH = 4,
    TOOL_INSPECT = 8,
    TOOL_TOKENIZE = 16,
    TOOL_LOGITS = 32,
    TOOL_SCORE = 64,
    TOOL_CONVERT = 128,
    TOOL_CHAT = 256,
    TOOL_DRAFT = 512,
    TOOL_HELP = 1024,
    TOOL_MANUAL = 2048,
    TOOL_COMPLETION = 4096,
    TOOL_VERSION = 8192,
    TOOL_CHECK = 16384,
    TOOL_TRAIN = 32768,
    TOOL_SERVE = 65536,
    TOOL_PLAN = 131072,
    TOOL_DEVICES = 262144
};

typedef struct tool_example {
    const char *what, *line;
} tool_example;

enum { TOOL_MOST_EXAMPLES = 5, TOOL_MOST_ARGUMENTS = 3 };

typedef struct tool_command {
    unsigned bit; /* one of the above */
    const char *name, *summary;
    const char *synopsis;                        /* follows the name */
    const char *text;                            /* paragraphs, with empty lines between them */
    const char *arguments[TOOL_MOST_ARGUMENTS];  /* kinds of positional arguments: MODEL, FOLDER, TEXT, COMMAND, SHELL, KIND;
                                                  * the last may be FILES, any number */
    tool_example examples[TOOL_MOST_EXAMPLES];   /* they work in a folder with model.gguf and the files that they name */
} tool_command;
extern const tool_command tool_commands[]; /* ends with a NULL name */
const tool_command *tool_command_find(unsigned bit);
const tool_command *tool_command_named(const char *name); /* NULL: none */
const char *tool_command_near(const char *name, bool topics); /* the nearest name, also of topics; NULL: none is near */

/* A help topic other than a command. */
typedef struct tool_topic {
    const char *name, *summary;
    const char *text; /* paragraphs; NULL: made from a table */
    struct {
        const char *name, *text;
    } items[16]; /* printed after the text */
} tool_topic;
extern const tool_topic tool_topics[]; /* ends with a NULL name */

extern const tool_example tool_first_examples[]; /* of the command as a whole; ends with a NULL line */

int tool_run(int argc, char **argv);
int tool_chat(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_plan(int argc, char **argv);
int tool_bench(int argc, char **argv);
int tool_inspect(int argc, char **argv);
int tool_tokenize(int argc, char **argv);
int tool_draft(int argc, char **argv);
int tool_check(int argc, char **argv);
int tool_logits(int argc, char **argv);
int tool_score(int argc, char **argv);
int tool_convert(int argc, char **argv);
int tool_train(int argc, char **argv);
int tool_serve(int argc, char **argv);
int tool_help(int argc, char **argv);
int tool_manual(int argc, char **argv);
int tool_completion(int argc, char **argv);
int tool_version(int argc, char **argv);
int tool_devices(int argc, char **argv);

#endif
