/* SPDX-License-Identifier: Apache-2.0 */
/* target_rows.h - the target's matrices that a trainer needs, as floats: its embedding, and rows of its output, read
 * from its file. (In memory they are packed for the kernels.) */
#ifndef HN_TARGET_ROWS_H
#define HN_TARGET_ROWS_H
#include "model/model.h"

typedef struct hn_target_rows {
    int vocab, hidden, kept;
    float *embedding; /* [vocab][hidden] as stored: heads read it without the model's embedding scale */
    float *output;    /* [kept][hidden] the rows of ids[0 .. kept - 1], times the model's logit scale */
    float *norm;      /* [hidden] of the final norm */
    float cap;        /* of logits: cap * tanh(x / cap); 0: none */
} hn_target_rows;

/* path: of the model, or the name of a download. Errors as hn_model_open. */
hunch_status hn_target_rows_read(hn_target_rows *r, const char *path, const hn_arch *a, const int32_t *ids, int kept, hunch_error *err);
void hn_target_rows_free(hn_target_rows *r); /* zeroed is fine */
#endif
