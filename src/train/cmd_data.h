/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_data.h - `hunch train data`: the target's answers to rows, as texts in DIR/texts.jsonl; DIR/made.json describes the inputs. */
#ifndef HN_TRAIN_CMD_DATA_H
#define HN_TRAIN_CMD_DATA_H
#include <hunch/hunch.h>

#include "train/options.h"

/* Generates the missing texts in -o. stop: see hn_train_make. */
hunch_status hn_train_data(hunch_model *m, const hn_train_options *o, const volatile int *stop, hunch_error *err);
/* The same in a folder that is there and that this process has taken (outputs.h). */
hunch_status hn_train_data_make(hunch_model *m, const hn_train_options *o, const char *folder, const volatile int *stop, hunch_error *err);
/* HUNCH_REFUSED: the folder's texts were made by another model, whose made.json says so. */
hunch_status hn_train_data_check_model(const char *folder, const char *model, uint64_t identity, hunch_error *err);
#endif
