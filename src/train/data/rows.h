/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - training data of the user: conversations whose answers the target generates, and texts that are used unchanged.
 *
 *   .jsonl, .json   rows, a line each or in an array, with one of
 *                     messages [{"role", "content"}], conversations [{"from", "value"}]   the answers in it are not used
 *                     prompt, question, or instruction and perhaps input                  one message of the user
 *                     text                                                                unchanged
 *   others          text; its paragraphs are joined to pieces of some thousand bytes
 *
 * Repeated conversations are left out, and rows similar to the files to leave out: one in five of their runs of eight
 * words occurs there. */
#ifndef HN_TRAIN_ROWS_H
#define HN_TRAIN_ROWS_H
#include <jansson.h>

#include "base/status.h"

typedef struct hn_train_row {
    json_t *messages; /* up to the last one of the user; NULL: a text row */
    char *text;
} hn_train_row;

typedef struct hn_train_rows {
    hn_train_row *item;
    size_t n, cap;
    size_t doubles, near; /* numbers of rows that were left out */
    struct hn_train_runs *seen, *unseen;
} hn_train_rows;

/* Adds every string in the file's rows to what is left out. Call it before reading rows. */
hunch_status hn_train_rows_leave_out(hn_train_rows *r, const char *path, hunch_error *err);
/* HUNCH_REFUSED: rows with none of the keys, or that are not JSON: what the first lacks, and the numbers of all, at most 20. */
hunch_status hn_train_rows_read(hn_train_rows *r, const char *path, hunch_error *err);
/* One message of the user. */
hunch_status hn_train_rows_add_prompt(hn_train_rows *r, const char *text, hunch_error *err);
void hn_train_rows_fini(hn_train_rows *r); /* zeroed is fine */
#endif
