/* SPDX-License-Identifier: Apache-2.0 */
/* save_head.h - a head as a folder: config.json and model.safetensors, whose matrices are bf16, with d2t and t2d of a reduced
 * vocabulary, or the list of its tokens under another name; or tokens.json, a list for the key ids of a head that has none. What its tensors are called, and what config.json
 * says, is the kind's (learn_kind.h). */
#ifndef HN_SAVE_HEAD_H
#define HN_SAVE_HEAD_H
#include <jansson.h>

#include "train/learn_kind.h"

typedef struct hn_saved_part {
    char name[HN_LEARN_PART_NAME];
    hn_mat m; /* one row: a vector */
    int ones;   /* dimensions of 1 before a vector's own, in the file */
    int turned; /* not 0: rows of each `turned` are halves of a rotation, and in the file stand in its pairs */
} hn_saved_part;

typedef struct hn_head_to_save {
    const hn_saved_part *part; /* in the order of the file */
    int n_parts;
    json_t *config;           /* not owned; NULL: there was no memory for it */
    const int32_t *ids;       /* [vocab] rising, the target's token of each; NULL: no reduced vocabulary */
    const char *ids_name;     /* of ids as they are, or "d2t": less their places; NULL: d2t and t2d */
    const int32_t *commonest; /* [vocab] for tokens.json; NULL: none is written */
    int vocab, target_vocab;
} hn_head_to_save;

/* The folder is made. Each file is there whole or not at all. */
hunch_status hn_head_save(const hn_head_to_save *h, const char *folder, hunch_error *err);
#endif
