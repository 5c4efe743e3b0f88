/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_data.h - `hunch train data`: the target's answers to rows, as texts in DIR/texts.jsonl; DIR/made.json describes the inputs. */
#ifndef HN_TRAIN_CMD_DATA_H
#define HN_TRAIN_CMD_DATA_H
#include <hunch/hunch.h>

#include "train/options.h"

/* Generates the missing texts. stop: see hn_train_make. */
hunch_status hn_train_data(hunch_model *m, const hn_train_options *o, const char *folder, const volatile int *stop, hunch_error *err);
#endif
