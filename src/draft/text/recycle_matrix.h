/* SPDX-License-Identifier: Apache-2.0 */
/* recycle_matrix.h - the likeliest tokens after each token, as the target's newest row of that token said (token recycling, arXiv
 * 2408.08696): a matrix of fixed size, V × k, and the file that keeps it.
 *
 * A matrix of fewer rows than tokens has a row for several tokens: the newest of them has it.
 *
 * The file, little endian:
 *
 *   char × 8   "HNRECYC1"
 *   int32 × 3  tokens of the vocabulary; k; number of records
 *   records    int32 × (1 + k): a token, ascending, and the likeliest after it, -1 after the last
 *   uint64     hash of all bytes before it (hn_bytes_hash with seed 0)
 */
#ifndef HN_RECYCLE_MATRIX_H
#define HN_RECYCLE_MATRIX_H
#include "base/status.h"

enum { HN_RECYCLE_K = 16 }; /* most tokens of a row */

typedef struct hn_recycle {
    int rows, k;
    int32_t *cell; /* [rows][1 + k]: whose row it is, -1: nobody's; the likeliest after it, -1 after the last. NULL: not open */
} hn_recycle;

bool hn_recycle_open(hn_recycle *x, int rows, int k); /* without memory false, and nothing is open */
void hn_recycle_close(hn_recycle *x);                 /* zeroed is fine */
void hn_recycle_clear(hn_recycle *x);
/* The likeliest tokens after `token`: [k], -1 after the last; NULL: none is known. */
const int32_t *hn_recycle_row(const hn_recycle *x, int32_t token);
/* The first k of `best` [n], which end at a -1, become the row of the token; of an empty list none. */
void hn_recycle_set(hn_recycle *x, int32_t token, const int32_t *best, int n);

/* Adds the rows of a file, the first k of each. HUNCH_REFUSED, naming the file and what is wrong: damage, another vocabulary; x is as it
 * was then. */
hunch_status hn_recycle_read(hn_recycle *x, const char *path, int vocab, hunch_error *err);
/* HUNCH_REFUSED: the file does not begin as one of these does, of whatever vocabulary. */
hunch_status hn_recycle_file_check(const char *path, hunch_error *err);
/* Writes the complete file or nothing (base/file_out.h). x has a row for each token of the vocabulary. */
hunch_status hn_recycle_write(const hn_recycle *x, const char *path, hunch_error *err);
#endif
