/* SPDX-License-Identifier: Apache-2.0 */
/* target_rows.h - what a trainer needs of the target's matrices as floats: its embedding, and rows of its output, as its file stores
 * them. (In memory they are packed for the kernels.) */
#ifndef HN_TARGET_ROWS_H
#define HN_TARGET_ROWS_H
#include "model/model.h"

typedef struct hn_target_rows {
    int vocab, hidden, kept;
    float *embedding; /* [vocab][hidden] as stored: heads read it without what some models scale it by */
    float *output;    /* [kept][hidden] the rows of ids[0 .. kept - 1], times what it scales logits by */
    float *norm;      /* [hidden] of the final norm */
    float cap;        /* of logits: cap * tanh(x / cap); 0: none */
} hn_target_rows;

/* path: of the model, which may be a download's name. Errors as hn_model_open. */
hunch_status hn_target_rows_read(hn_target_rows *r, const char *path, const hn_arch *a, const int32_t *ids, int kept, hunch_error *err);
void hn_target_rows_free(hn_target_rows *r); /* zeroed is fine */
#endif
