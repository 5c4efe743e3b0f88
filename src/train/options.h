/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line of hunch-train: flags and parser are those of all commands. */
#ifndef HN_TRAIN_OPTIONS_H
#define HN_TRAIN_OPTIONS_H
#include "app/tool_options.h"

typedef struct tool_options hn_train_options;
#endif
