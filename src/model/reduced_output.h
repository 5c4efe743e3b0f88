/* SPDX-License-Identifier: Apache-2.0 */
/* reduced_output.h - an output matrix over chosen tokens only, for who drafts: fewer bytes read a row. What it says of them is
 * what the whole matrix says, bit for bit. */
#ifndef HN_REDUCED_OUTPUT_H
#define HN_REDUCED_OUTPUT_H
#include "model/model.h"

typedef struct hn_reduced_output {
    hn_weight w; /* [n, hidden] */
    hn_buf ids;  /* int32 [n] the token of each row: a map for linear_top */
    hn_mem *mem; /* owned: both */
} hn_reduced_output;

/* ids: n tokens of the model, each another. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_model_reduce_output(const hn_model *m, const int32_t *ids, int n, hn_reduced_output *out, hunch_error *err);
void hn_reduced_output_free(const hn_model *m, hn_reduced_output *out); /* zeroed is fine */
#endif
