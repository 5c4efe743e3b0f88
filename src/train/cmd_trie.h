/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_trie.h - `hunch train trie`: counts the n-grams of a model's tokens in files of texts, as a trie (draft/shape/ngram_trie.h). */
#ifndef HN_TRAIN_CMD_TRIE_H
#define HN_TRAIN_CMD_TRIE_H
#include <hunch/hunch.h>

#include "train/options.h"

/* m: opened for its tokenizer only. stop: if set, it ends with HUNCH_CANCELLED, and nothing is written. */
hunch_status hn_train_trie(hunch_model *m, const hn_train_options *o, const volatile int *stop, hunch_error *err);
#endif
