/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_data.h - `hunch train data`: rows become texts in the target's own words, in DIR/texts.jsonl; DIR/made.json says of what. */
#ifndef HN_TRAIN_CMD_DATA_H
#define HN_TRAIN_CMD_DATA_H
#include <hunch/hunch.h>

#include "train/options.h"

/* Makes what is missing of them. stop: see hn_train_make. */
hunch_status hn_train_data(hunch_model *m, const hn_train_options *o, const char *folder, const volatile int *stop, hunch_error *err);
#endif
