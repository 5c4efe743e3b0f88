/* SPDX-License-Identifier: Apache-2.0 */
/* weights_file.h - the names of the weights of a Hugging Face folder. */
#ifndef HN_WEIGHTS_FILE_H
#define HN_WEIGHTS_FILE_H
#include "base/status.h"

#define HN_MASK_FILE "mask_embedding.pt" /* beside the weights of a DFlash head, and no weights file of a folder */
#define HN_WARP_FILE "warp_model.bin"    /* the same beside a draft model of PARD-2: its projection of the target's states */
bool hn_is_checkpoint(const char *name);   /* of PyTorch: .bin, .pt, .pth */
bool hn_is_weights_file(const char *name); /* a checkpoint, or .safetensors */

/* True if there is model.safetensors, its index, pytorch_model.bin or its index. */
bool hn_weights_usual(const char *folder);
/* *path (hn_free): the first of those; else the only file of weights, as in the folders of draft heads (medusa_lm_head.pt).
 * HUNCH_REFUSED: there is none, or there are several and none has a usual name. */
hunch_status hn_weights_find(const char *folder, char **path, hunch_error *err);
#endif
