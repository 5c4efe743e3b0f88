/* SPDX-License-Identifier: Apache-2.0 */
/* outputs.h - what `hunch train` may write: no file that it reads; what is there already only if it is this run's own, or with
 * --force; and one process at a time in a folder.
 *
 * A training is recognised by HEAD.training/training.json, which has the kind and the model's number (identity.h); texts by
 * made.json (cmd_data.h); a trie by its first bytes. */
#ifndef HN_TRAIN_OUTPUTS_H
#define HN_TRAIN_OUTPUTS_H
#include <jansson.h>

#include "base/status.h"
#include "train/learn/learn_kind.h"
#include "train/options.h"

/* Whether HEAD is one file, not a folder. */
bool hn_train_head_is_file(const hn_train_options *o);
/* Before the model is opened. kind: NULL for data and trie. HUNCH_USAGE: an output is an input, or is there and is not this run's;
 * HUNCH_FAILED: a folder where a file is expected, or the other way round. */
hunch_status hn_train_outputs_check(const hn_train_options *o, const hn_learn_kind *kind, hunch_error *err);

/* Makes the folder if there is none, and locks it (base/folder_lock.h). HUNCH_REFUSED: another process writes there. */
hunch_status hn_train_folder_take(const char *folder, int *lock, hunch_error *err);
/* Removes texts, features, checkpoint and record: another run begins there. */
hunch_status hn_train_folder_clear(const char *folder, hunch_error *err);

/* HUNCH_REFUSED: the record is of another kind or model; with force the folder is cleared instead. No record is HUNCH_OK. */
hunch_status hn_train_record_check(const char *folder, const char *kind, uint64_t model, bool force, hunch_error *err);
hunch_status hn_train_record_write(const char *folder, const char *kind, uint64_t model, const char *name, hunch_error *err);

/* Writes the file, completely or not at all. */
hunch_status hn_train_json_write(const json_t *j, const char *path, hunch_error *err);
#endif
