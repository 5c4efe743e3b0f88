/* SPDX-License-Identifier: Apache-2.0 */
/* save_head.h - writes a head as a folder: config.json and model.safetensors, whose matrices are bf16, with d2t and t2d
 * of a reduced vocabulary, or the list of its tokens under another name; or tokens.json, a list for the key ids of a
 * head without one. The kind determines the names of tensors and config.json (learn_kind.h). */
#ifndef HN_SAVE_HEAD_H
#define HN_SAVE_HEAD_H
#include <jansson.h>

#include "train/learn/learn_kind.h"

typedef struct hn_saved_part {
    char name[HN_LEARN_PART_NAME];
    hn_mat m; /* one row: a vector */
    int ones;   /* leading dimensions of 1 of a vector, in the file */
    int turned; /* not 0: each `turned` rows are in halves, and in the file in rotation pairs */
} hn_saved_part;

typedef struct hn_head_to_save {
    const hn_saved_part *part; /* in the order of the file */
    int n_parts;
    json_t *config;           /* not owned; NULL: out of memory */
    const int32_t *ids;       /* [vocab] ascending, the target's token of each; NULL: no reduced vocabulary */
    const char *ids_name;     /* name of the ids, or "d2t": minus their index; NULL: d2t and t2d */
    const int32_t *commonest; /* [vocab] for tokens.json; NULL: not written */
    const int *order;         /* [vocab] outputs, cluster after cluster; NULL: not written */
    int vocab, target_vocab;
} hn_head_to_save;

/* Creates the folder. Each file is written completely or not at all, and all under other names before the first is put in place; after an
 * error, which names the file, no file is left that was not there before. */
hunch_status hn_head_save(const hn_head_to_save *h, const char *folder, hunch_error *err);
#endif
