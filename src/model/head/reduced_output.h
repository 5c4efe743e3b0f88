/* SPDX-License-Identifier: Apache-2.0 */
/* reduced_output.h - an output matrix of chosen tokens only, for drafters: fewer bytes to read per row. Its logits are
 * those of the whole matrix, bit for bit. */
#ifndef HN_REDUCED_OUTPUT_H
#define HN_REDUCED_OUTPUT_H
#include "model/model.h"

typedef struct hn_reduced_output {
    hn_weight w; /* [n, hidden] */
    hn_buf ids;  /* int32 [n] the token of each row: a map for linear_top */
    hn_mem *mem; /* owned: both */
    size_t bytes; /* of it */
} hn_reduced_output;

/* Copies from an output matrix of m, packed or in a file, at load. ids: n different rows of it. Errors: HUNCH_NO_MEMORY;
 * HUNCH_REFUSED: the type is F8_E4M3. */
hunch_status hn_reduce_output(const hn_model *m, const hn_weight *whole, const int32_t *ids, int n, hn_reduced_output *out,
                              hunch_error *err);
void hn_reduced_output_free(const hn_model *m, hn_reduced_output *out); /* zeroed is fine */
#endif
