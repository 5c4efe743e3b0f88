/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_trie.h - `hunch train trie`: files of texts become a trie of n-grams of a model's tokens (draft/ngram_trie.h). */
#ifndef HN_TRAIN_CMD_TRIE_H
#define HN_TRAIN_CMD_TRIE_H
#include <hunch/hunch.h>

#include "train/options.h"

/* m: opened for its text alone. stop: set, it ends with HUNCH_CANCELLED, and nothing is written. */
hunch_status hn_train_trie(hunch_model *m, const hn_train_options *o, const volatile int *stop, hunch_error *err);
#endif
