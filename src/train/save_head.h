/* SPDX-License-Identifier: Apache-2.0 */
/* save_head.h - an EAGLE-3 head as a folder in speculators' layout, which hunch, vLLM and SGLang read: config.json and
 * model.safetensors, matrices as bf16, d2t and t2d of a reduced vocabulary. */
#ifndef HN_SAVE_HEAD_H
#define HN_SAVE_HEAD_H
#include "model/arch.h"
#include "train/eagle3_net.h"

typedef struct hn_head_to_save {
    const hn_eagle3_shape *shape;
    hn_real *weights; /* hn_eagle3_count */
    const hn_arch *target;
    const int *taps;    /* boundaries */
    int n_taps, depth;  /* depth: that it was trained for */
    const int32_t *ids; /* [shape->vocab] rising, the target's token of each */
} hn_head_to_save;

/* The folder is made. Each file is there whole or not at all. */
hunch_status hn_head_save(const hn_head_to_save *h, const char *folder, hunch_error *err);
#endif
