/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_learn.h - `hunch train KIND`: from texts to a head. HEAD.training has features, the last checkpoint, and the head
 * of the last check; HEAD is the best one. */
#ifndef HN_CMD_LEARN_H
#define HN_CMD_LEARN_H
#include <hunch/hunch.h>

#include "train/learn/learn_kind.h"
#include "train/options.h"

hunch_status hn_train_learn(hunch_model *m, const hn_learn_kind *kind, const hn_train_options *o,
                            const volatile int *stop, hunch_error *err);
#endif
