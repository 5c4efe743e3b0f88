/* SPDX-License-Identifier: Apache-2.0 */
/* tool_train.h - the command line of training, for `hunch train` and for hunch-train, the program that it starts: what the first
 * word may be. Flags are in the table of all commands (tool_flags.c). */
#ifndef HN_TOOL_TRAIN_H
#define HN_TOOL_TRAIN_H

#include "app/tool_options.h"

typedef struct tool_train_word {
    const char *name, *about;
} tool_train_word;
/* What the first word may be: the commands that make data, then the kinds of heads; ends with a NULL name. */
extern const tool_train_word tool_train_words[];

/* As tool_options_parse, and there are a known first word, a model and an output. */
int tool_train_parse(tool_options *o, int argc, char **argv);

#endif
